"""The ATC command line: session options by their flag, and the flags of [atc]."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from npuprof import catalog
from npuprof.document.keys import format_plain_value, format_short_value
from npuprof.model import (
    Finding,
    NpuprofError,
    TomlTable,
    build_usage_error,
    raise_any,
)
from npuprof.renderers import (
    Rendered,
    Target,
    build_render_finding,
    build_setting_finding,
    build_uncarried_finding,
    collect_sidecars,
    encode_fitting_value,
    finish_code,
    reject_lost_options,
)
from npuprof.renderers.environment import build_unstartable_finding, explain_unfit_word
from npuprof.renderers.shell import quote_posix
from npuprof.report import format_set_command
from npuprof.resolve.config import Config

_ADVICE = (
    "It is a switch for trying things out: the lists behind "
    "it change with the CANN package. What has been found to "
    "work belongs into an ini file per model, copied from the built-in lists below "
    "opp/built-in/op_impl/ai_core/tbe/impl_mode."
)
#: The required flags of a conversion, by --mode; by default those that the catalogue marks as
#: required.
_REQUIRED = {
    1: ("om", "json"),
    3: ("model", "framework", "soc_version"),
    6: ("om",),
    30: ("model", "output", "soc_version"),
}


def render_atc(config: Config, inline: bool) -> Rendered:
    """Return one command line, a flag on each line; with ``inline`` on a single line."""
    arguments, findings = _format_atc_arguments(config)
    if inline:
        return finish_code(config, "atc", f"{' '.join(['atc', *arguments])}\n", *findings)
    lines = " \\\n    ".join(["atc", *arguments])
    return finish_code(config, "atc", f"\n{lines}\n", *findings)


def write_flags_onto(config: Config, onto: str) -> Rendered:
    """Return only the flags, as a variable for an existing command line.

    It is an array for ``atc "${ONTO[@]}"``, a string for ``atc $ONTO`` if ``onto`` begins with $.
    bash and zsh have arrays; other shells split a string at blanks. Raises NpuprofError (NP902) for
    a flag that a string cannot contain.
    """
    arguments, findings = _format_atc_arguments(config)
    if not onto.startswith("$"):
        rows = "".join(f"    {argument}\n" for argument in arguments)
        return finish_code(config, "atc", f"{onto}=(\n{rows})\n", *findings)
    rows = ""
    for argument in arguments:
        text = " ".join(shlex.split(argument))
        # the path of a file is an expansion, which a shell does not expand inside a variable
        if "$" in argument or not is_plain_flag(text):
            what = f"{text.partition('=')[0]} cannot be passed in a variable"
            why = (
                "A shell without arrays takes a variable apart at "
                "blanks, and reads *, ? and [ in it as names of files."
            )
            hint = "begin the script with #!/bin/bash, and inject again"
            raise build_usage_error(what, hint, why)
        rows += f"    {text}\n"
    return finish_code(config, "atc", f"{onto.removeprefix('$')}='\n{rows}'\n", *findings)


def is_plain_flag(text: str) -> bool:
    """Return whether a shell passes a flag in an unquoted variable unchanged."""
    return not set(text) & set("*?[\\'\"") and text.split() == [text]


def _format_atc_arguments(config: Config) -> tuple[list[str], list[Finding]]:
    """Return the flags as quoted arguments, with findings.

    Raises NpuprofError for options without a flag.
    """
    flags, keys = _collect_atc_flags(config)
    findings = [*_check_atc_flags(config, flags, keys)]
    files = {name: file for name, (file, _) in collect_sidecars(config).items()}
    arguments = []
    rejected = []
    for flag, value in flags.items():
        key = keys[flag]
        if reason := explain_unfit_word(f"--{flag}=", format_plain_value(value)):
            hint = "keep long values in a file"
            rejected.append(build_unstartable_finding(config, key, f"{key} {reason}", hint))
        arguments.append(f"--{flag}={_format_flag_value(value, key, files)}")
    raise_any(rejected)
    return arguments, findings


def _collect_atc_flags(config: Config) -> tuple[TomlTable, dict[str, str]]:
    """Return the flags with their values in catalogue order, and the key of each.

    Raises NpuprofError for options without an ATC flag.
    """
    flags = {}
    keys = {}
    lost = {}
    for name, value in config.shared_sections["options"].items():
        option = catalog.find_option(name)
        # ATC always works so, without a flag
        if option is not None and option.is_always("atc", value):
            continue
        if option is None or "atc" not in option.spelling:
            lost[name] = option.not_carried.get("atc", "") if option else ""
            continue
        carried, written = encode_flag(config, option, value, "atc")
        if not carried:
            lost[name] = (
                f"--{option.flag} takes {' or '.join(option.surface_values['atc'].values())} there."
            )
            continue
        flags[option.flag], keys[option.flag] = written, name
    reject_lost_options(config, lost, "atc")
    for name, value in config.shared_sections["atc"].items():
        key = f"atc.{name}"
        is_known = catalog.find_flag(name) is not None
        if not is_known or isinstance(value, (dict, list)):
            why = "A flag takes one string or number." if is_known else "ATC knows no such flag."
            hint = "npuprof options lists them"
            raise NpuprofError(build_uncarried_finding(config, key, "atc", why, hint))
        if name in flags and format_plain_value(flags[name]) != format_plain_value(value):
            raise NpuprofError(
                _build_duplicate_flag_finding(config, name, flags[name], value, keys[name])
            )
        flags[name], keys[name] = value, key
    in_order = sorted(flags, key=catalog.load_sections()["atc"].find_position)
    return {flag: flags[flag] for flag in in_order}, keys


def encode_flag(
    config: Config, option: catalog.Option, value: Any, target: str
) -> tuple[bool, Any]:
    """Return whether the flag of an option accepts a value, and the value as ATC reads it.

    Raises NpuprofError for another type.
    """
    carried, written = option.write_on("atc", encode_fitting_value(config, option, value, target))
    if carried and option.structure == "shapes":
        # a scalar, whose shape is written name:0 elsewhere, has no sizes in a flag
        parts = written.split(";")
        written = ";".join(
            [part.removesuffix("0") if part.endswith(":0") else part for part in parts]
        )
    return carried, written


def _build_duplicate_flag_finding(
    config: Config, flag: str, first: Any, second: Any, key: str
) -> Finding:
    shown = [format_short_value(format_plain_value(value)) for value in (first, second)]
    what = f"--{flag} is {shown[0]} by {key} and {shown[1]} by atc.{flag}"
    why = "Either is a setting of the preset, and a command line takes one."
    hint = f"unset atc.{flag}, or {key} in an [[override]] for this target"
    return build_setting_finding(config, "NP912", f"atc.{flag}", what, why, hint)


def _format_flag_value(value: Any, key: str, files: dict[str, str]) -> str:
    if key in files:
        return f'"$(dirname "$0")"/{quote_posix(files[key], bare=True)}'
    return quote_posix(format_plain_value(value), bare=True)


def _check_atc_flags(config: Config, flags: TomlTable, keys: dict[str, str]) -> Iterator[Finding]:
    mode = flags.get("mode", 0)
    required = _REQUIRED.get(mode, ())
    if mode == 0:
        records = catalog.list_records(catalog.Flag, "atc")
        required = tuple(flag.name for flag in records if flag.required)
    missing = [flag for flag in required if flag not in flags]
    if missing:
        what = f"the command lacks {', '.join(f'--{flag}' for flag in missing)}"
        why = "They belong to one conversion, not to a preset that many share."
        command = format_set_command(f"atc.{missing[0]}", config.resolver.in_python)
        hint = f"add them to the command, or give {command}"
        yield build_render_finding(config, "NP911", "", what, why, hint)
    if "op_select_implmode" in flags:
        value = flags["op_select_implmode"]
        best = "high_precision_for_all" if "precision" in str(value) else "high_performance_for_all"
        hint = (
            f"if {best} serves, copy {best}.ini to a file of the model, "
            "adjust single operators, and set op_precision_mode"
        )
        what = f"--op_select_implmode={value} is not for conversions that count"
        yield build_render_finding(config, "NP913", keys["op_select_implmode"], what, _ADVICE, hint)
        if str(value).endswith("_for_all") and "optypelist_for_implmode" in flags:
            what = f"--optypelist_for_implmode has no effect with --op_select_implmode={value}"
            why = "The values ending in _for_all read the built-in list and nothing else."
            hint = "unset it, or write the value without _for_all"
            yield build_render_finding(
                config, "NP912", keys["optypelist_for_implmode"], what, why, hint
            )


TARGETS = {
    "atc": Target(
        place=90,
        summary="one `atc` command line",
        file="atc.sh",
        write=render_atc,
        surface="atc",
        offline=True,
        sections=("options", "atc"),
        write_onto=write_flags_onto,
    ),
}
