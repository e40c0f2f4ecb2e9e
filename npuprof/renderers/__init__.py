"""Renderers: one module per group of targets, each with a table ``TARGETS`` with a row per target.

Shared by all targets: the text of an option's value, sidecar files, the header, unsupported
options.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib import import_module

from npuprof import catalog
from npuprof.catalog import values
from npuprof.catalog.targets import load_target_index as load_target_index
from npuprof.document import keys
from npuprof.model import (
    TYPE_CHECKING,
    Finding,
    NpuprofError,
    Record,
    __version__,
    build_error,
    build_usage_error,
)
from npuprof.renderers.stamp import list_sidecars, stamp_text
from npuprof.report import format_switch
from npuprof.resolve.config import Config

if TYPE_CHECKING:
    from typing import Any

    from npuprof.document.json_tree import Edit

#: The sections with arguments of a program, and the word of its command that they replace.
ARGUMENT_SECTIONS = ("megatron", "args", "verl")
ARGUMENTS = "{args}"
_SECTION_COMMANDS = {
    **dict.fromkeys(ARGUMENT_SECTIONS, f"{ARGUMENTS} in the command of npuprof run"),
    "options": "the targets of TensorFlow and ATC",
    "env": "npuprof env",
    "estimator": "npuprof render --to estimator",
    "atc": "npuprof render --to atc",
}


class Rendered(Record):
    """The result of a target: the text, its sidecar files (name to text), and notes.

    ``notes`` are about options that have to be set elsewhere, ``findings`` about what the reader of
    the text does with it, ``left_out`` about sections that the target does not support: errors with
    ``strict``. ``start`` is the command that uses the files, which are in ``DIR``.
    """

    text: str
    sidecars: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    left_out: tuple[Finding, ...] = ()
    start: str = ""


class Target(Record, kw_only=True):
    """One render target: ``write`` takes a config and whether only bare lines are wanted.

    ``place`` is its position in lists of targets. ``sections`` are the sections that it writes,
    ``surface`` is the surface whose spellings of options it uses. ``renames`` is set if its bare
    lines work on a ``config`` of another name, ``offline`` if it accepts presets for the ATC
    compiler, which no TensorFlow process reads. All files of an ``is_folder`` target are its
    answer. ``find_edits`` takes a config and the text of an installed JSON file, and returns what
    gives it the settings. ``write_onto`` takes a config and the expression of an existing object,
    and returns only the lines that set the options on it.
    """

    place: int
    summary: str
    file: str
    write: Callable[[Config, bool], Rendered]
    surface: str = ""
    renames: bool = False
    offline: bool = False
    sections: tuple[str, ...] = ("options",)
    is_folder: bool = False
    find_edits: Callable[[Config, str], list[Edit]] | None = None
    write_onto: Callable[[Config, str], Rendered] | None = None

    def render(self, config: Config, inline: bool = False) -> Rendered:
        """Return a rendered config.

        Raises NpuprofError for options that the target does not support, or for another scenario.
        """
        self.reject_offline(config)
        return self.write(config, inline)._replace(
            left_out=find_left_out_sections(config, self.sections)
        )

    def render_onto(self, config: Config, onto: str) -> Rendered:
        """Return only the lines that set the options on an existing object.

        Raises NpuprofError if the target has none.
        """
        self.reject_offline(config)
        if self.write_onto is None:
            what = f"the lines of {self.file} do not work on an object that is there"
            why = "They make all they need themselves."
            hint = "take the line with `onto` out of the block, and refresh it"
            raise build_usage_error(what, hint, why)
        return self.write_onto(config, onto)._replace(
            left_out=find_left_out_sections(config, self.sections)
        )

    def reject_offline(self, config: Config) -> None:
        """Raise NpuprofError for a preset for the ATC compiler, unless the target supports it."""
        if config.scenario == "offline-inference" and not self.offline:
            what = (
                f"{config.name} is for the ATC compiler, and "
                f"{self.file} would be read by a TensorFlow process"
            )
            why = (
                "The adapter aborts on a session for inference "
                "offline; ATC converts the model before there is one."
            )
            targets = [name for name in load_target_index() if load_target(name).offline]
            hint = f"render it to {', '.join(targets)}"
            origin = config.find_profile_origin("scenario")
            raise build_error("NP916", what, why, hint, origin, "profile.scenario", (config.name,))


def find_left_out_sections(config: Config, written: Collection[str]) -> tuple[Finding, ...]:
    """Return a finding for each section of a config that is not one of the ``written`` sections."""
    findings = []
    for name, settings in config.shared_sections.items():
        if not settings or name in written:
            continue
        command = _SECTION_COMMANDS.get(name) or f"npuprof render --to {_find_target(name)}"
        what = f"[{name}] ({', '.join(settings)}) is for {command}"
        switch = format_switch("strict", config.resolver.in_python)
        hint = f"omit {switch}, or unset them in an [[override]] for this target"
        key = keys.format_full_key(name, next(iter(settings)))
        why = "This target has no place for it."
        findings.append(build_setting_finding(config, "NP917", key, what, why, hint))
    return tuple(findings)


def _find_target(section: str) -> str:
    return next(name for name, row in load_target_index().items() if section in row.sections)


def list_fitting_targets(config: Config) -> list[str]:
    """Return the targets that render a part of a config.

    If it has only variables, those of options.
    """
    used = {name for name, section in config.shared_sections.items() if section}
    sections = used - {"env"} or {"options"}  # variables are written by several targets
    return [
        name for name, row in load_target_index().items() if not sections.isdisjoint(row.sections)
    ]


@cache  # called thousands of times when many presets are written
def load_target(name: str) -> Target:
    """Return a target by name. Raises KeyError."""
    module = import_module(f"npuprof.renderers.{load_target_index()[name].module}")
    table: dict[str, Target] = module.TARGETS
    return table[name]


def add_render_header(
    config: Config, target: str, body: str, sidecars: Mapping[str, str] | None = None
) -> str:
    """Return a text below its header, comment lines with its origin.

    A preset cannot inject code into them.

    ``sidecars`` are the expected sidecar files, name to text.
    """
    version = config.lineage[-1].document.revision if config.lineage else None
    # ascii() escapes line ends, which would end the comment
    head = (
        f"# Generated by npuprof {__version__}: change the preset and render again.\n"
        f"# preset: {ascii(config.name)[1:-1]}\n"
        f"# version: {ascii(version)[1:-1] if version else 'working tree'}\n"
        f"# target: {target}\n"
        f"# context: {config.context.describe()}\n"
        f"# digest: sha256:{config.digest} (form {config.form})\n"
        f"# preset digest: sha256:{config.preset_digest} (form {config.form})\n"
    )
    return stamp_text(head + list_sidecars(sidecars or {}), body)


def finish_code(config: Config, target: str, body: str, *findings: Finding) -> Rendered:
    """Return a body with its header and the sidecar files of its config."""
    files = dict(collect_sidecars(config).values())
    return Rendered(add_render_header(config, target, body, files), files, findings=findings)


def collect_sidecars(config: Config) -> dict[str, tuple[str, str]]:
    """Return file name and text for each option whose file content is in the preset.

    Raises NpuprofError.
    """
    return config.remember("sidecars", lambda: _write_sidecars(config))


def _write_sidecars(config: Config) -> dict[str, tuple[str, str]]:
    sidecars = {}
    for name, value in config.shared_sections["options"].items():
        structure = values.find_structure(name) if isinstance(value, dict) else None
        if structure is not None and structure.file:
            text = values.format_structured_value(structure, value)
            if text is None:
                raise NpuprofError(build_unfit_finding(config, name, structure.file))
            sidecars[name] = (structure.file, text)
    return sidecars


def place_sidecars(config: Config, folder: str) -> dict[str, str]:
    """Return the path in a folder for each option whose file content is in the preset."""
    return {name: f"{folder}/{file}" for name, (file, _) in collect_sidecars(config).items()}


def fits_proto_field(option: catalog.Option, value: Any) -> bool:
    """Return whether a value of ``encode_field_value`` fits the protobuf field of an option."""
    if option.field == "b":
        return isinstance(value, bool)
    if option.field == "i":
        # the field is an int64, and would store True as 1
        return type(value) is int and -(2**63) <= value < 2**63
    structure = values.find_structure(option.name) if isinstance(value, dict) else None
    return isinstance(value, str) or (structure is not None and bool(structure.file))


def encode_fitting_value(config: Config, option: catalog.Option, value: Any, target: str) -> Any:
    """Return the protobuf field value of an option.

    Raises NpuprofError if the value does not fit.
    """
    stored = values.encode_field_value(option.name, value)
    if not fits_proto_field(option, stored):
        raise NpuprofError(build_unfit_finding(config, option.name, target))
    return stored


class NotCarriedError(NpuprofError):
    """A target does not support options (``names``); each is a finding."""

    names: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return NpuprofError, (self.findings,)


def reject_lost_options(config: Config, reasons: Mapping[str, str], target: str) -> None:
    """Raise NotCarriedError for options that a target does not support, each with its reason.

    A reason may be empty. Without options, nothing is raised.
    """
    if reasons:
        error = NotCarriedError(
            _build_lost_finding(config, name, reason, target) for name, reason in reasons.items()
        )
        error.names = tuple(reasons)
        raise error


def _build_lost_finding(config: Config, name: str, reason: str, target: str) -> Finding:
    why = reason or "npuprof never drops a setting silently."
    hint = "unset it: nothing reads it"
    if others := ", ".join(other for other in _list_carriers(name) if other != target):
        where = "unset it here, or in an [[override]] for this target"
        hint = f"it can be carried by {others}; {where}"
    return build_uncarried_finding(config, name, target, why, hint)


@cache
def _list_carriers(name: str) -> list[str]:
    """Return the targets that support an option."""
    option = catalog.find_option(name)
    return [
        target
        for surface in (option.spelling if option else ())
        for target, row in load_target_index().items()
        if row.surface == surface
    ]


def build_unfit_finding(config: Config, name: str, target: str) -> Finding:
    """Return the finding for a value whose type does not fit its place."""
    from npuprof.checks.setting_values import find_setting_faults

    # the key is quoted if the name is not a bare one
    value = config.settings[name] if name in config.settings else config.options[name]
    messages = (fault.message for fault in find_setting_faults(name, value))
    why = next(messages, "Its field has another type.")
    hint = "npuprof check shows how to fix it"
    return build_uncarried_finding(config, name, target, f"{why}.", hint)


def require_json(config: Config, section: str, target: str) -> None:
    """Raise NpuprofError for a value that JSON lacks: an infinite number, a date."""
    import json

    for name, value in config.shared_sections[section].items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            key = keys.format_full_key(section, name)
            raise NpuprofError(build_unfit_finding(config, key, target)) from None


def build_formless_finding(config: Config, key: str, target: str, why: str) -> Finding:
    """Return the finding for a value that the program of a target cannot be given."""
    hint = "unset it here, or in an [[override]] for this target"
    return build_uncarried_finding(config, key, target, why, hint)


def build_uncarried_finding(config: Config, key: str, target: str, why: str, hint: str) -> Finding:
    """Return the error about a setting that a target does not support."""
    what = f"{key} cannot be carried by the target {target}"
    return build_setting_finding(config, "NP901", key, what, why, hint)


def build_setting_finding(
    config: Config, code: str, key: str, what: str, why: str, hint: str
) -> Finding:
    """Return an error about a setting, at its origin."""
    return Finding(code, what, why, hint, config.origin(key), key, (config.name,))


def build_render_finding(
    config: Config, code: str, key: str, what: str, why: str, hint: str
) -> Finding:
    """Return a finding with the severity of its code; at its key's origin unless it is a note."""
    finding = catalog.build_finding(code, what, why, hint, None, key, (config.name,))
    if finding.severity == "info" or key not in config.settings:
        return finding
    return finding._replace(origin=config.origin(key))
