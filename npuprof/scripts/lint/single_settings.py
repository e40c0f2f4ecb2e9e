"""Faults of one setting of a script, independent of other settings."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import cache

from npuprof import catalog
from npuprof.catalog import Flag, Option
from npuprof.catalog.execution import find_rewritten_name, is_known_variable, list_ascend_names
from npuprof.catalog.programs import Program, find_program
from npuprof.checks import setting_values
from npuprof.checks.frameworks import find_framework_faults
from npuprof.checks.meaning import UNKNOWN
from npuprof.checks.plain_values import find_chip_faults, find_flag_faults
from npuprof.checks.restrictions import OFFLINE, find_surface_faults
from npuprof.checks.variables import build_misspelt_fault, find_option_faults
from npuprof.checks.view import Fault, Scope
from npuprof.document.keys import format_short_value, split_section_and_name
from npuprof.model import Context, did_you_mean, find_nearest_names
from npuprof.renderers.python_source import format_literal
from npuprof.scripts.atc_flags import read_as_flag
from npuprof.scripts.lint.attributes import find_attribute_faults, find_plain_value_faults
from npuprof.scripts.lint.run_config_faults import find_argument_faults, is_before
from npuprof.scripts.lint.torch_faults import find_torch_faults
from npuprof.scripts.python.environ import has_slip, is_ascend_variable
from npuprof.scripts.reading.program_arguments import NO_TABLE
from npuprof.scripts.script_records import EMPTY, ScriptSetting

#: Minimum similarity of misspelt names: keys of the adapter, and variables.
_ALIKE, _SLIP = 0.8, 0.93
#: Types accepted by a field, by kind. A switch takes any integer and is on unless 0 (hcom_parallel
#: = 2), in a session and through NPURunConfig; TF 2 compares with True and False, and presets have
#: their own types: both reject it.
_TYPES = {
    "s": ("bytes",),
    "b": ("bool", "int"),
    "i": ("int", "bool"),
    "f": ("float", "int", "bool"),
}
#: A device list as in PyTorch scripts, where the TensorFlow adapter reads one device.
_IDS = re.compile(r"[0-9]+(?:,[0-9]+)+")
#: Where an exported session option belongs.
OPTION_ADVICE = "set it where the script makes its session"
_SAMPLE = {"b": "True", "i": "1", "s": 'tf.compat.as_bytes("...")'}
_ANY = {"b": "True or False", "i": "a whole number", "s": 'tf.compat.as_bytes("...")'}


#: The scope of an ATC command line.
_CONVERSION = Scope(OFFLINE, (), ())
_STOPS = "atc stops at such a value."


def find_script_faults(setting: ScriptSetting, requested: Context) -> list[Fault]:
    """Return the faults of one setting."""
    find_faults = _FINDERS.get(setting.surface)
    if find_faults is not None:
        return find_faults(setting, requested)
    if program := find_program(setting.surface):
        return _find_program_faults(setting, program)
    return _find_misplaced_faults(setting) or find_script_flag_faults(setting)


def _find_script_parameter_faults(setting: ScriptSetting, requested: Context) -> list[Fault]:
    if not setting.name:
        return []
    option = catalog.find_option(setting.name)
    if option is None:
        return [_build_unknown_fault(setting.name)]
    if setting.field is None:
        what = f"{setting.name} is assigned without a field"
        field = option.field or "s"
        hint = f'write parameter_map["{setting.name}"].{field} = {_SAMPLE[field]}'
        return [
            Fault(
                "NP803",
                what,
                "The entries of a parameter map are messages: protobuf raises ValueError.",
                hint,
            )
        ]
    if option.field is None:
        return []  # nothing reads the key at all: NP502 reports it
    if setting.field != option.field:
        if setting.reason and (
            not setting.field
            or any("isinstance(" in test or "type(" in test for _, _, test in setting.branches)
        ):
            return []  # a type-dependent branch, or no field in the source
        until = option.field_until.get(setting.field or "")
        return (
            [_build_wrong_field_fault(setting, option)]
            if not until or not is_before(requested, until)
            else []
        )
    kind = setting.assigned.kind
    if kind and kind not in _TYPES.get(setting.field, (kind,)):
        hint = f"write {_suggest_field_value(setting, option)}"
        why = "The script stops there with TypeError: a protobuf field takes its own type only."
        return [
            Fault(
                "NP803",
                (
                    f"{setting.name}: .{setting.field} takes no "
                    f"{'None' if kind == 'NoneType' else kind}"
                ),
                why,
                hint,
            )
        ]
    return _find_script_value_faults(setting)


def _build_unknown_fault(name: str) -> Fault:
    why = "The adapter looks up its own list of keys; one that is not in it is ignored silently."
    known = _list_read_options()
    similar = find_nearest_names(name, known, 1)
    if similar and SequenceMatcher(None, name.lower(), similar[0].lower()).ratio() >= _ALIKE:
        return Fault("NP201", f"unknown option {name!r}", why, did_you_mean(name, known))
    return Fault(
        "NP201",
        f"no adapter reads the key {name!r}",
        why,
        "remove it, or see npuprof options",
        severity="warning",
    )


@cache
def _list_read_options() -> tuple[str, ...]:
    """Return the options that some adapter reads."""
    return tuple(option.name for option in catalog.list_records(Option) if option.field is not None)


def _build_wrong_field_fault(setting: ScriptSetting, option: Option) -> Fault:
    wrong = setting_values.WRONG_FIELD.get(
        option.on_wrong_field, "Stored in another protobuf field it is not found."
    )
    what = f"{setting.name} is stored in .{setting.field}, the adapter reads .{option.field}"
    return Fault(
        "NP802",
        what,
        wrong,
        (
            f'write parameter_map["{setting.name}"].{option.field} = '
            f"{_suggest_field_value(setting, option)}"
        ),
    )


def _suggest_field_value(setting: ScriptSetting, option: Option) -> str:
    """Return the value for the right field: the same one if known, and if the checks accept it."""
    field = option.field or "s"
    if field == "s" and (setting.reason or setting.value is None):
        return _SAMPLE[field]
    is_right = not setting_values.find_setting_faults(option.name, setting.value)
    guess = setting.value if is_right else setting_values.guess_option_value(option, setting.value)
    if guess is not UNKNOWN:
        return f"tf.compat.as_bytes({format_literal(guess)})" if field == "s" else str(guess)
    return (
        f"{_ANY[field]}, one of {', '.join(map(format_short_value, option.choices[:8]))}"
        if option.choices
        else _ANY[field]
    )


def _find_script_value_faults(setting: ScriptSetting) -> list[Fault]:
    return (
        []
        if setting.reason
        else _find_misplaced_faults(setting) or find_plain_value_faults(setting)
    )


def _find_misplaced_faults(setting: ScriptSetting) -> list[Fault]:
    """Return the fault of a value that belongs to another option, a mistake found in
    several scripts.
    """
    mode = catalog.find_option("dump_mode")
    if (
        setting.reason
        or setting.key != "dump_path"
        or mode is None
        or setting.value not in mode.choices
    ):
        return []
    why = "It is a value of dump_mode; as a path it names a folder that is hardly meant."
    shown = format_short_value(setting.value)
    return [
        Fault(
            "NP804",
            f"dump_path = {shown} is a dump mode, not a path",
            why,
            f"write dump_mode = {shown}",
        )
    ]


def _find_script_variable_faults(setting: ScriptSetting, requested: Context) -> list[Fault]:
    name = setting.name
    if not setting.key.startswith("env."):  # an exported option
        return _find_script_value_faults(setting)
    variable = catalog.find_variable(name)
    if variable is None:
        return find_option_faults(name, OPTION_ADVICE) or find_misspelt_variable(name)
    if setting.reason.startswith("os.environ takes text"):
        why = "The script stops there with TypeError: environment variables are strings."
        return [Fault("NP814", f"{name}: {setting.reason}", why, "write the value in quotes")]
    if setting.reason or setting.value in variable.tolerated or setting.value == "":
        return []
    faults = find_plain_value_faults(setting)
    # the job continues if another reader accepts the value, or the list is for the script itself
    goes_on = (variable.otherwise and variable.framework == "cann") or (
        variable.per_process and _IDS.fullmatch(str(setting.value))
    )
    return [fault._replace(severity="warning") for fault in faults] if goes_on else faults


def find_misspelt_variable(name: str) -> list[Fault]:
    """Return the fault of an unknown variable that is a misspelt known one.

    Scripts may have their own variables.
    """
    if meant := find_rewritten_name(name):
        return [build_misspelt_fault(name, f"did you mean {meant!r}?", meant=meant)]
    similar = (
        find_nearest_names(name, list_ascend_names(), 1)
        if is_ascend_variable(name) and not is_known_variable(name)
        else []
    )
    is_own = (
        similar and name.startswith(similar[0]) and name != similar[0] + similar[0][-1]
    )  # with a suffix
    is_part = similar and similar[0].startswith(name) and len(similar[0]) > len(name) + 1
    if (
        not similar
        or is_own
        or is_part
        or (SequenceMatcher(None, name, similar[0]).ratio() < _SLIP and not has_slip(name))
    ):
        return []
    return [build_misspelt_fault(name, did_you_mean(name, similar), meant=similar[0])]


def _find_program_faults(setting: ScriptSetting, program: Program) -> list[Fault]:
    """Return the faults of an argument of a program, or of a key in a table that is an argument."""
    if setting.reason.startswith(NO_TABLE):
        return [
            Fault(
                "NP203",
                f"{setting.name} {setting.reason}",
                f"{program.title} stops at it.",
                "write it as '{\"key\": value}'",
            )
        ]
    return (
        []
        if setting.reason or not setting.key
        else find_framework_faults(*split_section_and_name(setting.key), setting.value)
    )


#: Finders by surface; all others are arguments of programs, or ATC flags.
_FINDERS = {
    "session": _find_script_parameter_faults,
    "env": _find_script_variable_faults,
    "run_config": find_argument_faults,
    "global_options": find_attribute_faults,
    "torch_npu": find_torch_faults,
}


def _tell_doubt(setting: ScriptSetting, fault: Fault) -> Fault:
    subject, is_of_value, rest = fault.message.partition(" is doubtful")
    message = (
        f"{setting.name}={setting.assigned.written}{is_of_value}{rest}" if is_of_value else subject
    )
    return fault._replace(message=message, hint=fault.hint.replace('"', ""))


def find_script_flag_faults(item: ScriptSetting) -> list[Fault]:
    """Return the faults of one flag: by its record, or by its equivalent option if the record has
    no format.
    """
    if not item.name:
        return []
    flag = catalog.find_flag(item.name.removeprefix("--"))
    if flag is None:
        return [_build_unknown_flag_fault(item.name)]
    if item.reason or item.assigned.written is None:
        return []
    if item.unused == EMPTY:
        return [
            Fault(
                "NP502",
                f"{item.name} is {EMPTY}",
                "The empty text is its default.",
                f"omit {item.name}, or give it a value",
            )
        ]
    if flag.kind == "chip":
        return find_chip_faults(item.name, item.assigned.written)
    faults = list(setting_values.find_value_faults(_CONVERSION, item.key, item.value))
    if flag.choices or flag.pattern or flag.kind in ("int", "bool"):
        doubts = (fault for fault in faults if fault.code == "NP205")
        return _find_text_faults(flag, item.assigned.written) or [
            _tell_doubt(item, fault) for fault in doubts
        ]
    faults = [fault for fault in faults if fault.severity == "error" or fault.code == "NP205"]
    option = catalog.find_option(item.key)
    if not faults and option is not None:
        faults = [
            fault
            for fault in find_surface_faults(_CONVERSION, option, item.value)
            if fault.code == "NP203"
        ]
    return [fault if flag.kind == "path" else fault._replace(why=_STOPS) for fault in faults]


def _build_unknown_flag_fault(name: str) -> Fault:
    longer = [
        flag for flag in catalog.record_names("atc") if flag.startswith(name.removeprefix("--"))
    ]
    if len(longer) == 1:
        why = (
            "atc of the current release takes a beginning that "
            "no other flag has; older releases stop at it."
        )
        return Fault(
            "NP209",
            f"{name} is short for --{longer[0]}",
            why,
            f"write --{longer[0]}",
            severity="warning",
        )
    similar = find_nearest_names(name.removeprefix("--"), catalog.record_names("atc"), 1)
    what, why = (
        f"atc of the current release has no flag {name}",
        "atc stops at a flag it does not know.",
    )
    return Fault(
        "NP209", what, why, f"did you mean '--{similar[0]}'?" if similar else "see npuprof options"
    )


def _find_text_faults(flag: Flag, text: str) -> list[Fault]:
    """Return the faults of a flag's text if its record lists valid texts: the same as
    in a preset.
    """
    faults = find_flag_faults(flag.name, read_as_flag(flag, text))
    return [
        fault._replace(
            message=_spell_flag(fault.message, flag), why=_STOPS, hint=_spell_flag(fault.hint, flag)
        )
        for fault in faults
    ]


def _spell_flag(text: str, flag: Flag) -> str:
    """Return a message about a preset key in command line form: ``--flag=value``."""
    return re.sub(
        rf"(?:atc\.|(?<=write )){flag.name}( = )?",
        lambda match: f"--{flag.name}{'=' * bool(match[1])}",
        text,
    ).replace('"', "")
