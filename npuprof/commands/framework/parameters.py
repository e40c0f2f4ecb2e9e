"""Parameters that many verbs share, each described once."""

from __future__ import annotations

from typing import Any

from npuprof.commands.framework.verb import argument, arguments, flag, many, option
from npuprof.model import SEVERITIES

SPEC = argument("SPEC", "A preset: NAME, NAME@REV, A+B, a path ending in .toml, or - for standard input.")
SPECS = arguments("SPEC...", "Presets; all of the store if none is named.")
EDITED = argument("SPEC", "A preset of the store, a path ending in .toml, or - for standard input.")
OF_STORE = argument("SPEC", "A preset of the store: NAME or NAME@REV.")

STORE = option("--store", metavar="DIR", text="The folder that holds the presets; builtin: for those npuprof ships.")
CANN = option("--cann", metavar="RELEASE", text="The CANN release to resolve for.")
FROM = option("--from", metavar="RELEASE", text="The CANN release to come from, where nothing names one.")
PRODUCT = option("--product", metavar="PRODUCT", text="The product, or a soc_version, to resolve for.")
MIXINS = many("--with", metavar="SPEC", text="Lay another preset over it; may be repeated.")
SETS = many("--set", metavar="KEY=VALUE", text="Set a value, after everything else; may be repeated.")
UNSETS = many("--unset", metavar="KEY", text="Remove a key, after everything else; may be repeated.")
TRUST = flag("--trust", text="Trust the stores with all that [env] sets, this once.")
NO_PERSONAL = flag("--no-personal", text="Leave out the personal layer that this user has over the preset.")
PERSONAL = flag("--personal", text="In the personal layer over the preset: a file of your own, in your config folder.")
NO_CHECK = flag("--no-check", text="Skip the checks.")

OUTPUT = option("--output", "-o", metavar="FILE", text="Write to this file, whole or not at all.")
#: What import and scan read, as help says it: the kinds of ``scripts.reading.files``.
READ_KINDS = "scripts (Python, shell, Slurm), notebooks, Dockerfiles, YAML and JSON, and files of variables"
COLOR = option("--color", metavar="WHEN", text="{choices}.", default="auto", choices=("auto", "always", "never"))
DRY_RUN = flag("--dry-run", text="Show the change and write nothing.")
WRITE_ANYWAY = flag("--no-check", text="Write it even if the checks find errors.")
SEVERITY = option("--severity", metavar="LEVEL", text="The least to report: info, warning or error.", choices=SEVERITIES)
SELECT = many("--select", metavar="CODE,...", text="Tell only findings of these codes, or whose codes begin so (NP3); may be repeated.")
IGNORE = many("--ignore", metavar="CODE,...", text="Leave out findings of these codes, or whose codes begin so; may be repeated.")
BASELINE = option("--baseline", metavar="FILE", text="Tell only what is not in this file, which --write-baseline makes.")
WRITE_BASELINE = flag("--write-baseline", text="Write the baseline: all that is found, if it is new; else it only shrinks.")
EVERYWHERE = flag("--global", text="For all repositories of this user, not only this one.")
STRICT = flag("--strict", text="Warnings are not clean either.")
STRICT_SECTIONS = flag("--strict", text="Sections that have no place there are an error.")


def formats(*names: str) -> Any:
    """Declare ``--format`` with the formats of a verb, the first of them the default."""
    return option("--format", metavar="FORMAT", text="{choices}.", default=names[0], choices=names)
