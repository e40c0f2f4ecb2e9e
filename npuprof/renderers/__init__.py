"""Write a config down: one module for each family of targets, each ending in its table ``TARGETS``, a row a target."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from npuprof.catalog.targets import MODULES as MODULES
from npuprof.model import Finding, NpuprofError, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config


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
    options that it writes, ``sections`` what it writes beside them. ``renames`` tells whether its bare lines work on a
    ``config`` that may have another name, ``offline`` whether it takes presets for the ATC compiler, which no TensorFlow
    process reads. ``write_onto`` takes a config and the expression of an object that is there, and gives the lines that set the
    options on it and do nothing else.
    """

    place: int
    summary: str
    file: str
    write: Callable[[Config, bool], Rendered]
    surface: str = ""
    renames: bool = False
    offline: bool = False
    sections: tuple[str, ...] = ()
    write_onto: Callable[[Config, str], Rendered] | None = None

    def render(self, config: Config, inline: bool = False) -> Rendered:
        """Return a config written down. Raises NpuprofError for what the target cannot carry, or is not for."""
        from npuprof.renderers.sections import find_left_out_sections

        self.refuse_offline(config)
        return self.write(config, inline)._replace(left_out=find_left_out_sections(config, self.sections))

    def render_onto(self, config: Config, onto: str) -> Rendered:
        """Return only the lines that set the options on an object that is there. Raises NpuprofError where the target has none such."""
        from npuprof.renderers.sections import find_left_out_sections

        self.refuse_offline(config)
        if self.write_onto is None:
            what, why = f"the lines of {self.file} do not work on an object that is there", "They make all they need themselves."
            raise NpuprofError([Finding("NP902", what, why, "take the line with `onto` out of the block, and refresh it")])
        return self.write_onto(config, onto)._replace(left_out=find_left_out_sections(config, self.sections))

    def refuse_offline(self, config: Config) -> None:
        """Raise NpuprofError where a preset is for the ATC compiler, and this target is not."""
        if config.scenario == "offline-inference" and not self.offline:
            what = f"{config.name} is for the ATC compiler, and {self.file} would be read by a TensorFlow process"
            why = "The adapter aborts on a session for inference offline; ATC converts the model before there is one."
            hint = f"render it to {', '.join(name for name in MODULES if load_target(name).offline)}"
            origin = config.find_profile_origin("scenario")
            raise NpuprofError([Finding("NP916", what, why, hint, origin, "profile.scenario", (config.name,))])


@cache  # asked thousands of times where many presets are written: which targets have a place for an option
def load_target(name: str) -> Target:
    """Return a target by name. Raises KeyError."""
    table: dict[str, Any] = import_module(f"npuprof.renderers.{MODULES[name]}").TARGETS
    found: Target = table[name]
    return found
