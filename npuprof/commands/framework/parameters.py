"""Parameters shared by many verbs."""

from __future__ import annotations

from npuprof.commands.framework import (
    Verb,
    argument,
    arguments,
    flag,
    many,
    number,
    option,
    option_with_default,
)
from npuprof.model import SEVERITIES, TYPE_CHECKING, Context

if TYPE_CHECKING:
    from npuprof.store.spec import Workspace

SPEC_HELP = "Preset: NAME, NAME@REV, SOURCE:NAME, A+B, a path ending in .toml, or - for stdin"
SPEC = argument("SPEC", SPEC_HELP, "spec")
SPECS = arguments(
    "SPEC...",
    (
        "Presets to check: NAME, a path ending in .toml, or "
        "- for stdin [default: all presets of the store]"
    ),
    "spec",
)
EDITED = argument("SPEC", "Preset to edit: NAME, a path ending in .toml, or - for stdin", "spec")
OF_STORE = argument("SPEC", "Preset of the store: NAME or NAME@REV", "spec")

STORE = option(
    "--store",
    metavar="DIR",
    text=(
        "Use the store in DIR, or builtin: for the shipped presets "
        "[default: $NPUPROF_STORE, else the nearest profiles/]"
    ),
    complete="store",
)
CANN = option(
    "--cann",
    metavar="RELEASE",
    text="Select the CANN release, such as 9.0.0 [default: any]",
    complete="release",
)
FROM = many(
    "--from",
    metavar="[NAME=]RELEASE",
    text="Upgrade from this release of CANN, or of NAME, if a preset or script names none",
    complete="release",
)
PRODUCT = option(
    "--product",
    metavar="PRODUCT",
    text="Select the product or soc_version, such as atlas-a2 [default: any]",
    complete="product",
)
FRAMEWORKS = many(
    "--framework",
    metavar="NAME=RELEASE",
    text="Select the release of a framework, such as torch_npu=7.3; can be repeated [default: any]",
    complete="framework",
)
AXES = many(
    "--axis",
    metavar="NAME=VALUE",
    text=(
        "Select a value of an axis of npuprof.toml, such as role=decode; can be repeated "
        "[default: any]"
    ),
    complete="axis",
)
MIXINS = many(
    "--with", metavar="SPEC", text="Overlay another preset; can be repeated", complete="spec"
)
SETS = many(
    "--set",
    metavar="KEY=VALUE",
    text="Override a value for this command; can be repeated",
    complete="assignment",
)
UNSETS = many(
    "--unset", metavar="KEY", text="Remove a key for this command; can be repeated", complete="key"
)
TRUST = flag("--trust", text="Trust the presets for this command only")
NO_PERSONAL = flag("--no-personal", text="Ignore your personal overlay of the preset")
PERSONAL = flag(
    "--personal", text="Edit your personal overlay in your config folder, not the preset"
)
NO_CHECK = flag("--no-check", text="Skip the checks")

OUTPUT = option("--output", "-o", metavar="FILE", text="Write the output to FILE [default: stdout]")
COLOR = option_with_default(
    "--color",
    metavar="WHEN",
    text="Colour the output: {choices}",
    default="auto",
    choices=("auto", "always", "never"),
)
DRY_RUN = flag("--dry-run", text="Show the change without writing it")
WRITE_ANYWAY = flag("--no-check", text="Write even if the checks find errors")
PROGRAMS = many(
    "--programs",
    metavar="PATH",
    text=(
        "Judge arguments also by the parsers of the programs at PATH, such as a checkout of "
        "Megatron-LM; can be repeated"
    ),
)
SEVERITY = option(
    "--severity",
    metavar="LEVEL",
    text=(
        "Report findings of LEVEL or worse: info, warning or error [default: warning; info in JSON]"
    ),
    choices=SEVERITIES,
)
SELECT = many(
    "--select",
    metavar="CODE,...",
    text="Report only findings with these codes or code prefixes, such as NP3; can be repeated",
    complete="code",
)
IGNORE = many(
    "--ignore",
    metavar="CODE,...",
    text="Omit findings with these codes or code prefixes; can be repeated",
    complete="code",
)
BASELINE = option(
    "--baseline",
    metavar="FILE",
    text="Report only findings that are not in FILE, which --write-baseline creates",
)
WRITE_BASELINE = flag(
    "--write-baseline",
    text=(
        "Create the baseline from all errors and warnings, "
        "or remove fixed findings from an existing one"
    ),
)
EVERYWHERE = flag("--global", text="Apply to all your repositories, not only this one")
STRICT = flag("--strict", text="Exit with 1 if there are warnings too")
STRICT_SECTIONS = flag(
    "--strict", text="Fail if the preset has sections that the target does not use"
)
#: Flags of ``bisect`` and ``sweep``.
JOBS = number(
    "--jobs",
    "-j",
    metavar="N",
    text="Run up to N combinations at once [default: one per device, or 1]",
    least=1,
)
DEVICES = option(
    "--devices",
    metavar="LIST",
    text="Run on these devices, one run at a time on each, such as 0-7 or 0,2,4 [default: none]",
)
TIMEOUT = option(
    "--timeout",
    metavar="TIME",
    text=(
        "Stop a run and its process group after TIME, such "
        "as 90 (seconds), 15m or 2h [default: no limit]"
    ),
)
MAX_RUNS = number(
    "--max-runs",
    metavar="N",
    text="Stop after N runs and keep their results [default: no limit]",
    least=1,
)
REPEAT = number(
    "--repeat",
    metavar="N",
    text=(
        "Run each combination up to N times; the majority decides, a tie is undecided [default: 1]"
    ),
    least=1,
)
FRESH = flag("--fresh", text="Discard the stored results of this command")


def formats(*names: str) -> str:
    """Declare ``--format`` with the formats of a verb; the first is the default."""
    return option_with_default(
        "--format",
        metavar="FORMAT",
        text="Select the output format: {choices}",
        default=names[0],
        choices=names,
    )


#: The format of most answers.
FORMAT = formats("text", "json")


class StoreVerb(Verb):
    """A verb that takes a store."""

    store = STORE


class PrintingVerb(Verb):
    """A verb whose answer is printed in colours, or written to a file."""

    output = OUTPUT
    color = COLOR


class ContextVerb(Verb):
    """A verb that takes a store, and the context in which presets are resolved.

    ``refusal`` says what the verb does not do with a faulty preset.
    """

    refusal = "nothing was written"
    store = STORE
    cann = CANN
    product = PRODUCT
    frameworks = FRAMEWORKS
    axes = AXES

    def build_context(self, target: str | None = None) -> Context:
        """Return the context of the arguments.

        Raises NpuprofError for an unknown release, product, framework or axis.
        """
        from npuprof.store import spec

        return spec.build_context(
            self.cann, self.product, target, self.frameworks, self.axes, self.store
        )

    def open_workspace(self) -> Workspace:
        """Return the store in the context of the arguments. Raises NpuprofError."""
        from npuprof.store import spec

        return spec.Workspace(self.store, self.build_context())


class ResolvingVerb(ContextVerb):
    """A verb that resolves a preset with the user's overlays and values."""

    mixin = MIXINS
    set_ = SETS
    unset = UNSETS
