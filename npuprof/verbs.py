"""The parameters of the hot verbs, ``render`` and ``env``, in one table.

Both run thousands of times in job scripts, and importing a command-line framework costs more than they do. So
their plain form is parsed here; anything unusual (help, an unknown flag, an error) goes to Typer with the same
words, and the Typer commands are made from this same table.
"""

from __future__ import annotations

from typing import Any

from npuprof.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Parameter(Record):
    """One parameter: ``kind`` is ``argument``, ``text``, ``many`` or ``flag``; ``flags`` are its spellings.

    ``metavar`` is what the help calls its value.
    """

    name: str
    kind: str
    help: str
    flags: tuple[str, ...] = ()
    default: Any = None
    metavar: str = ""


SPEC = "A preset: NAME, NAME@REV, A+B, a path ending in .toml, or - for standard input."
_CODE = "A file, or a folder for the code and the files it needs; whole or not at all."
_FILES = "A file: dotenv, docker, systemd, github, k8s-configmap, k8s-env, slurm or json."

_COMMON = (
    Parameter("spec", "argument", SPEC, metavar="SPEC"),
    Parameter("store", "text", "The folder that holds the presets; builtin: for those npuprof ships.", ("--store",), metavar="DIR"),
    Parameter("cann", "text", "The CANN release to resolve for.", ("--cann",), metavar="RELEASE"),
    Parameter("product", "text", "The product, or a soc_version, to resolve for.", ("--product",), metavar="PRODUCT"),
    Parameter("mixin", "many", "Lay another preset over it; may be repeated.", ("--with",), metavar="SPEC"),
    Parameter("set_", "many", "Set a value, after everything else; may be repeated.", ("--set",), metavar="KEY=VALUE"),
    Parameter("unset", "many", "Remove a key, after everything else; may be repeated.", ("--unset",), metavar="KEY"),
    Parameter("no_check", "flag", "Skip the checks.", ("--no-check",), False),
)
_SPEC, *_REST = _COMMON

VERBS: dict[str, tuple[Parameter, ...]] = {
    "render": (
        _SPEC,
        Parameter("to", "text", "The target: session, estimator, atc, ...; a wrong one lists all.", ("--to", "-t"), "session", "TARGET"),
        Parameter("output", "text", _CODE, ("--output", "-o"), metavar="PATH"),
        *_REST,
        Parameter("inline", "flag", "Only the lines to paste, no function.", ("--inline",), False),
        Parameter("check", "text", "Say whether this file is up to date (exit 1 if not).", ("--check",), metavar="FILE"),
    ),
    "env": (
        _SPEC,
        Parameter("shell", "text", "bash, zsh, sh, fish, tcsh or pwsh; bash if nothing is said.", ("--shell", "-s"), metavar="NAME"),
        Parameter("format", "text", _FILES, ("--format",), metavar="FORMAT"),
        Parameter("output", "text", "Write to this file, whole or not at all.", ("--output", "-o"), metavar="FILE"),
        *(parameter for parameter in _REST if parameter.name != "unset"),
        Parameter("undo", "flag", "Print what undoes the export.", ("--unset",), False),
        Parameter("diff", "flag", "Print what would change in the current environment.", ("--diff",), False),
    ),
}  # fmt: skip


def plain(words: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
    """Return a hot verb with its arguments, or None where Typer has to look at the words."""
    if not words or words[0] not in VERBS:
        return None
    parameters = VERBS[words[0]]
    by_flag = {flag: parameter for parameter in parameters for flag in parameter.flags}
    found: dict[str, Any] = {p.name: [] if p.kind == "many" else p.default for p in parameters if p.kind != "argument"}
    rest = iter(words[1:])
    for word in rest:
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        parameter = by_flag.get(name)
        if parameter is None:
            if (word.startswith("-") and word != "-") or "spec" in found:
                return None
            found["spec"] = word
        elif parameter.kind == "flag":
            if equals:
                return None
            found[parameter.name] = True
        else:
            taken = value if equals else next(rest, None)
            if taken is None or (not equals and taken.startswith("-") and taken != "-"):
                return None
            if parameter.kind == "many":
                found[parameter.name].append(taken)
            else:
                found[parameter.name] = taken
    return (words[0], found) if "spec" in found else None
