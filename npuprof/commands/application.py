"""The command-line framework over the verbs: help, completion, and what is unusual or wrong in a command line."""

from __future__ import annotations

import inspect
import io
import operator
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from npuprof.commands.registry import list_verbs, load_verb
from npuprof.model import Finding, NpuprofError, __version__
from npuprof.report import output
from npuprof.report.text import escape_lines, shorten_words

if TYPE_CHECKING:
    from npuprof.commands.verb import Parameter, Verb

    Runner = Callable[[type[Verb], dict[str, Any]], int]

#: Options by the names that other tools have for them.
_CALLED_ELSEWHERE = {
    "--to": "--target --type --format --shell",
    "--shell": "--to --target --for",
    "--format": "--json --yaml --sarif --type",
    "--output": "--out --dir --folder --file --outfile",
    "--store": "--dir --folder --profiles --repo",
    "--product": "--soc --soc_version --soc-version --chip --device",
    "--cann": "--to --target-release --release --cann-version --toolkit",
    "--with": "--mixin --mixins --overlay --add",
    "--rev": "--revision --commit --ref --since --base",
    "--set": "--option --define --param --override",
    "--number": "--limit --max-count",
    "--severity": "--level --min-severity",
    "--strict": "--fail-on-warning --werror",
    "--where": "--filter --query",
    "--no-check": "--nocheck --unsafe",
    "--dry-run": "--check-only --simulate --diff",
    "--color": "--no-color --colour",
    "--force": "--overwrite --yes",
}
#: What to say of a word that is missing, by its name in the help.
_MISSING = {
    "SPEC": "Name a preset: npuprof list shows them.",
    "NAME": "Name the preset to make: team/bert-training.",
    "KEY": "Name a key: npuprof show SPEC and npuprof options list them.",
    "KEY=VALUE": "Write what to set: hccl_timeout=600",
    "RELEASE": "Name a CANN release: 9.0.0",
}
#: What is meant by verbs of other tools.
_VERBS_ELSEWHERE = {
    "--help": "help",
    "--version": "version",
    "list": "ls profiles presets",
    "show SPEC": "cat view get resolve config print",
    "explain SPEC KEY": "why origin",
    "option KEY": "describe doc man",
    "options WORD": "search find",
    "rule CODE": "rules code",
    "check": "validate test doctor lint verify-presets",
    "env SPEC, or npuprof render SPEC": "export",
    "render SPEC": "generate build compile",
    "import SCRIPT": "convert parse extract",
    "new NAME": "create add",
    "rename SPEC NEW": "mv move",
    "copy SPEC NEW": "cp clone duplicate",
    "release SPEC": "tag publish bump",
    "log SPEC": "history",
    "set SPEC KEY=VALUE": "edit update change",
    "unset SPEC KEY": "delete remove rm",
    "diff A B": "compare",
    "run SPEC -- CMD": "exec apply start",
    "restore NAME@REV": "checkout rollback",
    "undo": "revert redo",
    "migrate --all --cann RELEASE": "upgrade port",
    "git status": "status",
}
_ANNOTATED: Any = Annotated  # subscripted with values, which a type checker cannot follow
_TYPES: dict[tuple[str, bool], Any] = {
    ("argument", True): str, ("argument", False): str | None, ("arguments", True): list[str], ("arguments", False): list[str] | None,
    ("text", True): str, ("text", False): str | None, ("many", False): list[str] | None, ("number", False): int | None,
    ("flag", False): bool,
}  # fmt: skip


def suggest_next_steps() -> str:
    """Return what to do next, said to somebody who typed the bare command: by whether there is a store, and presets in it."""
    from npuprof.model import NpuprofError
    from npuprof.report.text import format_count
    from npuprof.store import find_store

    try:
        store = find_store(None, os.environ)
        names = store.names()
    except NpuprofError:
        return "No store of presets here: npuprof init lays one out; npuprof import SCRIPT makes presets of a script."
    if not names:
        return f"{store.label} holds no preset yet: npuprof init, or npuprof new NAME."
    first = next((name for name in names if "/" not in name), names[0])
    return f"{store.label} holds {format_count(len(names), 'preset')}: npuprof list, npuprof show {first}, npuprof check."


def run_words(words: list[str], runner: Runner) -> int:
    """Let the framework read the words and run what they ask for; return the exit code. It prints errors of usage itself."""
    try:
        if not words:
            build_application(["--help"], runner)(args=["--help"], prog_name="npuprof", standalone_mode=False)
            output.write_to_stderr(suggest_next_steps())
            return 2
        result = build_application(words, runner)(args=words, prog_name="npuprof", standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    except Exception as error:
        if isinstance(error, (KeyError, ValueError)) and "_NPUPROF_COMPLETE" in os.environ:
            what = "the shell asks for a completion, and does not say of what"
            hint = "unset _NPUPROF_COMPLETE, or install the completion anew"
            raise NpuprofError([Finding("NP902", what, "", hint)]) from None
        show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
        if show is None or code is None:
            raise
        _suggest_flag(error, words)
        told = io.StringIO()
        show(file=told)
        told.writelines(f"{line}\n" for line in _explain_usage(error, words))
        output.write_to_stderr(escape_lines("\n".join(map(shorten_words, told.getvalue().rstrip("\n").split("\n")))))
        return int(code)
    return result if isinstance(result, int) else 0


def _suggest_flag(error: Exception, words: list[str]) -> None:
    """Let an error on an unknown option name the one of the verb that does what is meant, where other tools call it so."""
    found, name = load_verb(words), getattr(error, "option_name", "")
    if found is None or not hasattr(error, "possibilities"):
        return
    flags = {flag for parameter in found[1].parameters.values() for flag in parameter.flags}
    meant = [flag for flag, others in _CALLED_ELSEWHERE.items() if flag in flags and name in others.split()]
    if name == "--set" and "assignments" in found[1].parameters:
        meant = ["KEY=VALUE, without a flag"]
    error.possibilities = meant[:1] or error.possibilities


def _explain_usage(error: Exception, words: list[str]) -> Iterator[str]:
    """Yield what to try after an error of usage."""
    found = load_verb(words)
    if found is None:
        word = next((word for word in words if not word.startswith("-")), "")
        meant = next((verb for verb, others in _VERBS_ELSEWHERE.items() if word in others.split()), None)
        if meant:
            yield f"What is meant may be: npuprof {meant}"
        return
    flag = next(
        (
            f"{parameter.flags[0]} {word}"
            for word in words[1:]
            for parameter in found[1].parameters.values()
            if f"({word})" in str(error) and parameter.flags and word in parameter.list_choices()
        ),
        "",
    )
    if flag:
        yield f"What is meant may be: {flag}"
        return
    missing = getattr(getattr(error, "param", None), "name", None)
    parameter = found[1].parameters.get(missing or "")
    if parameter is not None and (hint := _MISSING.get(parameter.metavar.rstrip("."))):
        yield hint
    elif found[1].usage_hint:
        yield found[1].usage_hint


def build_application(words: list[str], runner: Runner) -> typer.Typer:
    """Return the application with the verb that the words name.

    Where they name none it has all, without their parameters unless words are to be completed: making those takes its time.
    """
    app = typer.Typer(
        name="npuprof",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_show_version)
    found = load_verb([word for word in words if word != "--"])
    only_listed = found is None and not any(name.endswith("_COMPLETE") for name in os.environ)
    families: dict[str, typer.Typer] = {}
    for names, verb in [found[:2]] if found else list_verbs():
        family = app
        if len(names) > 1:
            if names[0] not in families:
                families[names[0]] = typer.Typer(name=names[0], help=_describe_family(verb), no_args_is_help=True, rich_markup_mode=None)
                app.add_typer(families[names[0]])
            family = families[names[0]]
        _add_verb(family, names[-1], verb, runner, {} if only_listed else verb.parameters, found[2] if found else [])
    return app


def _describe_family(verb: type[Verb]) -> str:
    from sys import modules

    return str(modules[verb.__module__.rpartition(".")[0]].__doc__)


def _add_verb(app: typer.Typer, name: str, verb: type[Verb], runner: Runner, parameters: Mapping[str, Parameter], words: list[str]) -> None:
    """Make a command of the framework from the declaration of a verb; ``words`` are what is given to it."""

    def command(**given: Any) -> int:
        return runner(verb, given)

    signature = [_build_parameter(name, parameter) for name, parameter in parameters.items()]
    command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    settings: dict[str, Any] = {"ignore_unknown_options": verb.takes_any_word}
    if verb.hidden and words not in (["--help"], ["-h"]):
        settings["help_option_names"] = []  # git hands over words, whatever they are, but never one of these alone
    app.command(name, help=inspect.getdoc(verb), hidden=verb.hidden, context_settings=settings)(command)


def _build_parameter(name: str, parameter: Parameter) -> inspect.Parameter:
    shown = parameter.metavar or None
    if parameter.kind in ("argument", "arguments"):
        info = typer.Argument(metavar=shown, help=parameter.describe())
    else:
        info = typer.Option(*parameter.flags, metavar=shown, help=parameter.describe(), min=parameter.least)
    default = inspect.Parameter.empty if parameter.required else parameter.default
    annotation: Any = operator.getitem(_ANNOTATED, (_TYPES[parameter.kind, parameter.required], info))
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"npuprof {__version__}")
        raise typer.Exit


def _show_version(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Presets for Huawei Ascend NPUs: written once, checked, compared, rendered everywhere."""
