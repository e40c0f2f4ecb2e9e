"""Write a config down: one module for each family of targets, each ending in its table ``TARGETS``, a row a target."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from importlib import import_module
from typing import Any

from npuprof.catalog.targets import MODULES as MODULES
from npuprof.document import keys
from npuprof.model import SECTIONS, Finding, NpuprofError, Record
from npuprof.report import say_switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config


_SECTION_COMMANDS = {
    "options": "the targets of TensorFlow and ATC", "env": "npuprof env", "estimator": "npuprof render --to estimator",
    "atc": "npuprof render --to atc",
}  # fmt: skip


class Rendered(Record):
    """What a target gives: the text, the sidecar files it expects beside it (name to text), and remarks.

    ``notes`` say which options count elsewhere, ``findings`` what the place that reads the text does with it, ``left_out`` which
    sections have no place in the target: an error for who asks for everything.
    """

    text: str
    sidecars: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    left_out: tuple[Finding, ...] = ()


class Target(Record):
    """One render target: ``write`` takes a config and whether only bare lines are wanted.

    ``place`` is its place in lists of all targets, a number that is written out. ``surface`` names the spellings of
    options that it writes, if it ``takes_options``, ``sections`` what it writes beside them. ``renames`` tells
    whether its bare lines work on a ``config`` that may have another name, ``offline`` whether it takes presets for the ATC compiler,
    which no TensorFlow process reads. All files of one that ``is_folder`` are its answer. ``write_onto`` takes a config
    and the expression of an object that is there, and gives the lines that set the options on it and do nothing else.
    """

    place: int
    summary: str
    file: str
    write: Callable[[Config, bool], Rendered]
    surface: str = ""
    renames: bool = False
    offline: bool = False
    sections: tuple[str, ...] = ()
    takes_options: bool = True
    is_folder: bool = False
    write_onto: Callable[[Config, str], Rendered] | None = None

    def render(self, config: Config, inline: bool = False) -> Rendered:
        """Return a config written down. Raises NpuprofError for what the target cannot carry, or is not for."""
        self.refuse_offline(config)
        return self.write(config, inline)._replace(
            left_out=find_left_out_sections(config, (*self.sections, *["options"] * self.takes_options))
        )

    def render_onto(self, config: Config, onto: str) -> Rendered:
        """Return only the lines that set the options on an object that is there. Raises NpuprofError where the target has none such."""
        self.refuse_offline(config)
        if self.write_onto is None:
            what, why = f"the lines of {self.file} do not work on an object that is there", "They make all they need themselves."
            raise NpuprofError([Finding("NP902", what, why, "take the line with `onto` out of the block, and refresh it")])
        return self.write_onto(config, onto)._replace(
            left_out=find_left_out_sections(config, (*self.sections, *["options"] * self.takes_options))
        )

    def list_sections(self) -> list[str]:
        """Return the sections that this target is for: not ``env``, which others write as well."""
        return [section for section in (*self.sections, *["options"] * self.takes_options) if section != "env"]

    def refuse_offline(self, config: Config) -> None:
        """Raise NpuprofError where a preset is for the ATC compiler, and this target is not."""
        if config.scenario == "offline-inference" and not self.offline:
            what = f"{config.name} is for the ATC compiler, and {self.file} would be read by a TensorFlow process"
            why = "The adapter aborts on a session for inference offline; ATC converts the model before there is one."
            hint = f"render it to {', '.join(name for name in MODULES if load_target(name).offline)}"
            origin = config.find_profile_origin("scenario")
            raise NpuprofError([Finding("NP916", what, why, hint, origin, "profile.scenario", (config.name,))])


def config_section(config: Config, name: str) -> dict[str, Any]:
    """Return one section of a config, computed once for all targets; not to be modified."""
    if "sections" not in config.memo:
        config.memo["sections"] = config.sections()
    section: dict[str, Any] = config.memo["sections"][name]
    return section


def find_left_out_sections(config: Config, written: Collection[str]) -> tuple[Finding, ...]:
    """Return a finding for each section that belongs to other targets than one that writes ``written``."""
    left_out = {name: [*config_section(config, name)] for name in SECTIONS if name not in written}
    return tuple(
        Finding(
            "NP917",
            f"[{name}] ({', '.join(settings)}) is for {_SECTION_COMMANDS.get(name) or _find_command(name)}",
            "This target has no place for it.",
            f"leave out {say_switch('strict', config.resolver.in_python)}, or unset them in an [[override]] for this target",
            config.origin(key := keys.format_full_key(name, settings[0])),
            key,
            (config.name,),
        )
        for name, settings in left_out.items()
        if settings
    )


def list_fitting_targets(config: Config) -> list[str]:
    """Return the targets that write something of a config; if it has only variables, those of options."""
    targets = {name: load_target(name) for name in MODULES}
    fitting = [name for name, target in targets.items() if any(config_section(config, section) for section in target.list_sections())]
    return fitting or [name for name, target in targets.items() if target.takes_options]


def _find_command(section: str) -> str:
    """Return the command that writes the section of a framework."""
    return f"npuprof render --to {next(name for name in MODULES if section in load_target(name).sections)}"


@cache  # called thousands of times where many presets are written: which targets have a place for an option
def load_target(name: str) -> Target:
    """Return a target by name. Raises KeyError."""
    table: dict[str, Any] = import_module(f"npuprof.renderers.{MODULES[name]}").TARGETS
    target: Target = table[name]
    return target
