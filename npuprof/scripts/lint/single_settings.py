"""Faults of one setting of a script, independent of other settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache

from npuprof import catalog
from npuprof.catalog import Flag, Option, list_file_sections
from npuprof.catalog.programs import Program, find_program
from npuprof.checks import setting_values
from npuprof.checks.frameworks import find_framework_faults
from npuprof.checks.meaning import UNKNOWN
from npuprof.checks.plain_values import find_chip_faults, find_flag_faults
from npuprof.checks.restrictions import OFFLINE, find_surface_faults
from npuprof.checks.variables import find_misspelt_faults, find_name_faults, find_option_faults
from npuprof.checks.view import Fault, Scope
from npuprof.document.keys import format_short_value, split_section_and_name
from npuprof.model import LIKELY, Context, did_you_mean, find_nearest_names
from npuprof.renderers.python_source import format_literal
from npuprof.scripts.atc_flags import read_as_flag
from npuprof.scripts.lint.attributes import find_attribute_faults, find_plain_value_faults
from npuprof.scripts.lint.run_config_faults import find_argument_faults, is_before
from npuprof.scripts.lint.torch_faults import find_torch_faults
from npuprof.scripts.reading.kubernetes import NO_STRING
from npuprof.scripts.reading.program_arguments import NO_TABLE, NULL
from npuprof.scripts.script_records import EMPTY, NO_VALUE, ScriptSetting

#: Minimum similarity of misspelt keys of the adapter.
_ALIKE = 0.8
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


def share_answers(find_faults: Callable[..., Iterable[Fault]]) -> Callable[..., list[Fault]]:
    """Return a function that keeps the faults of plain values: launches have many in common."""
    find_kept = lru_cache(10_000, typed=True)(lambda *given: tuple(find_faults(*given)))
    return lambda *given: [
        *(find_faults if isinstance(given[-1], (list, dict)) else find_kept)(*given)
    ]


_find_framework_faults = share_answers(find_framework_faults)


def find_script_faults(setting: ScriptSetting, requested: Context) -> list[Fault]:
    """Return the faults of one setting."""
    find_faults = _FINDERS.get(setting.surface)
    if find_faults is not None:
        return find_faults(setting, requested)
    if program := find_program(setting.surface):
        return _find_program_faults(setting, program)
    if setting.surface in list_file_sections():
        section, name = split_section_and_name(setting.key)
        is_null = setting.reason == NULL and catalog.find_setting(section, name)
        is_known = is_null or not setting.reason
        return _find_framework_faults(section, name, setting.value) if is_known else []
    return _find_misplaced_faults(setting) or find_script_flag_faults(setting)


def _find_script_parameter_faults(setting: ScriptSetting, requested: Context) -> list[Fault]:
    if not setting.name:
        return []
    option = catalog.find_option(setting.name)
    if option is None:
        return [_build_unknown_fault(setting.name)]
    if setting.field is None:
        what = f"{setting.name} is assigned without a field"
        why = "The entries of a parameter map are messages: protobuf raises ValueError."
        field = option.field or "s"
        hint = f'write parameter_map["{setting.name}"].{field} = {_SAMPLE[field]}'
        return [Fault("NP803", what, why, hint)]
    if option.field is None:
        return []  # nothing reads the key at all: NP502 reports it
    if setting.field != option.field:
        is_valid = _may_be_right_field(setting, option, requested)
        return [] if is_valid else [_build_wrong_field_fault(setting, option)]
    kind = setting.assigned.kind
    if kind and kind not in _TYPES.get(setting.field, (kind,)):
        shown = "None" if kind == "NoneType" else kind
        what = f"{setting.name}: .{setting.field} takes no {shown}"
        why = "The script stops there with TypeError: a protobuf field takes its own type only."
        hint = f"write {_suggest_field_value(setting, option)}"
        return [Fault("NP803", what, why, hint)]
    return _find_script_value_faults(setting)


def _may_be_right_field(setting: ScriptSetting, option: Option, requested: Context) -> bool:
    """Return whether another field than the option's may be right for a setting."""
    if setting.reason and not setting.field:  # no field in the source
        return True
    tests = [branch.test for branch in setting.branches]
    if setting.reason and any("isinstance(" in test or "type(" in test for test in tests):
        return True  # the branch for values of that type
    until = option.field_until.get(setting.field or "")
    return bool(until) and is_before(requested, until or "")


def _build_unknown_fault(name: str) -> Fault:
    why = "The adapter looks up its own list of keys; one that is not in it is ignored silently."
    known = _list_read_options()
    if find_nearest_names(name, known, 1, _ALIKE):
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
    what = f"{setting.name} is stored in .{setting.field}, the adapter reads .{option.field}"
    why = setting_values.WRONG_FIELD.get(
        option.on_wrong_field, "Stored in another protobuf field it is not found."
    )
    value = _suggest_field_value(setting, option)
    hint = f'write parameter_map["{setting.name}"].{option.field} = {value}'
    return Fault("NP802", what, why, hint)


def _suggest_field_value(setting: ScriptSetting, option: Option) -> str:
    """Return the value for the right field: the same one if known, and if the checks accept it."""
    field = option.field or "s"
    if field == "s" and (setting.reason or setting.value is None):
        return _SAMPLE[field]
    is_right = not setting_values.find_setting_faults(option.name, setting.value)
    guess = setting.value if is_right else setting_values.guess_option_value(option, setting.value)
    if guess is not UNKNOWN:
        return f"tf.compat.as_bytes({format_literal(guess)})" if field == "s" else str(guess)
    if option.choices:
        return f"{_ANY[field]}, one of {', '.join(map(format_short_value, option.choices[:8]))}"
    return _ANY[field]


def _find_script_value_faults(setting: ScriptSetting) -> list[Fault]:
    if setting.reason:
        return []
    return _find_misplaced_faults(setting) or find_plain_value_faults(setting)


def _find_misplaced_faults(setting: ScriptSetting) -> list[Fault]:
    """Return the fault of a value of another option, a mistake found in several scripts."""
    if setting.reason or setting.key != "dump_path":
        return []
    mode = catalog.find_option("dump_mode")
    if mode is None or setting.value not in mode.choices:
        return []
    shown = format_short_value(setting.value)
    what = f"dump_path = {shown} is a dump mode, not a path"
    why = "It is a value of dump_mode; as a path it names a folder that is hardly meant."
    return [Fault("NP804", what, why, f"write dump_mode = {shown}")]


def _find_script_variable_faults(setting: ScriptSetting, requested: Context) -> list[Fault]:
    name = setting.name
    if not setting.key.startswith("env."):  # an exported option
        return _find_script_value_faults(setting)
    variable = catalog.find_variable(name)
    if variable is None:
        faults = find_name_faults(name) or find_option_faults(name, OPTION_ADVICE)
        return faults or find_misspelt_faults(name)
    if setting.reason.startswith("os.environ takes text"):
        why = "The script stops there with TypeError: environment variables are strings."
        return [Fault("NP814", f"{name}: {setting.reason}", why, "write the value in quotes")]
    if setting.reason == NO_STRING:
        written = setting.assigned.written
        what = f"{name} = {written} {NO_STRING.partition(':')[0]}"
        why = "The API server of Kubernetes rejects the manifest: values of variables are strings."
        faults = find_plain_value_faults(setting.with_value(value=str(written), reason=""))
        hint = faults[0].hint + ", in quotes" if faults else f'write "{written}"'
        return [Fault("NP814", what, why, hint)]
    if setting.reason or setting.value in variable.tolerated or setting.value == "":
        return []
    faults = find_plain_value_faults(setting)
    # the job continues if another reader accepts the value, or the list is for the script itself
    has_other_reader = variable.otherwise and variable.framework == "cann"
    is_one = variable.per_process and not variable.ascending
    is_list_of_script = is_one and _IDS.fullmatch(str(setting.value))
    if has_other_reader or is_list_of_script:
        return [
            fault._replace(**LIKELY) if fault.severity == "error" else fault for fault in faults
        ]
    return faults


def _find_program_faults(setting: ScriptSetting, program: Program) -> list[Fault]:
    """Return the faults of an argument of a program, or of a key in a table that is an argument."""
    if setting.reason.startswith(NO_TABLE):
        what = f"{setting.name} {setting.reason}"
        why = f"{program.title} stops at it."
        return [Fault("NP203", what, why, "write it as '{\"key\": value}'")]
    if setting.reason or not setting.key:
        return []
    section, name = split_section_and_name(setting.key)
    if program.spelling == "exact" and catalog.find_setting(section, name) is None:
        return []  # programs add arguments
    faults = _find_framework_faults(section, name, setting.value)
    # The program converts a value in Python that has an equivalent of the right type. The text of
    # an argument, which has no type, is converted already.
    return [
        fault._replace(**LIKELY)
        if fault.code == "NP202" and fault.fix and setting.assigned.kind and not fault.tail
        else fault
        for fault in (*faults, *_find_short_name_faults(setting, program))
    ]


def _find_short_name_faults(setting: ScriptSetting, program: Program) -> list[Fault]:
    """Return a note about a flag of which only the beginning is written."""
    written = setting.name
    is_exact = program.spelling == "exact"  # none is short for another
    if not written.startswith("-") or written in program.flags or is_exact:
        return []
    full = next(flag for flag in program.flags if flag.startswith(written))
    why = "A release with another argument that begins like it stops."
    return [Fault("NP216", f"{written} is short for {full}", why, f"write {full}", severity="info")]


#: Finders by surface; all others are arguments of programs, or ATC flags.
_FINDERS = {
    "session": _find_script_parameter_faults,
    "env": _find_script_variable_faults,
    "run_config": find_argument_faults,
    "global_options": find_attribute_faults,
    "torch_npu": find_torch_faults,
}


def _spell_caveat(setting: ScriptSetting, fault: Fault) -> Fault:
    """Return a fault about a doubtful value in command line form: ``--flag=value``."""
    subject, is_of_value, rest = fault.message.partition(" is doubtful")
    message = subject
    if is_of_value:
        message = f"{setting.name}={setting.assigned.written}{is_of_value}{rest}"
    return fault._replace(message=message, hint=fault.hint.replace('"', ""))


def find_script_flag_faults(setting: ScriptSetting) -> list[Fault]:
    """Return the faults of one flag, by its record.

    If the record has no format, the equivalent option has it.
    """
    if not setting.name:
        return []
    flag = catalog.find_flag(setting.name.removeprefix("--"))
    if flag is None:
        return [_build_unknown_flag_fault(setting.name)]
    if setting.reason == NO_VALUE and flag.kind != "bool":
        what = f"{setting.name} has no value"
        return [Fault("NP203", what, _STOPS, f"write {setting.name}=VALUE")]
    text = setting.assigned.written
    if setting.reason or text is None:
        return []
    if setting.unused == EMPTY:
        what = f"{setting.name} is {EMPTY}"
        hint = f"omit {setting.name}, or give it a value"
        return [Fault("NP502", what, "The empty text is its default.", hint)]
    if flag.kind == "chip":
        return find_chip_faults(setting.name, text)
    faults = list(setting_values.find_value_faults(_CONVERSION, setting.key, setting.value))
    if flag.choices or flag.pattern or flag.kind in ("int", "bool"):
        if text_faults := _find_text_faults(flag, text):
            return text_faults
        return [_spell_caveat(setting, fault) for fault in faults if fault.code == "NP205"]
    faults = [fault for fault in faults if fault.severity == "error" or fault.code == "NP205"]
    option = catalog.find_option(setting.key)
    if not faults and option is not None:
        surface_faults = find_surface_faults(_CONVERSION, option, setting.value)
        faults = [fault for fault in surface_faults if fault.code == "NP203"]
    if flag.kind == "path":
        return faults
    return [fault._replace(why=_STOPS) for fault in faults]


def _build_unknown_flag_fault(name: str) -> Fault:
    flags = catalog.record_names("atc")
    start = name.removeprefix("--")
    longer = [flag for flag in flags if flag.startswith(start)]
    if len(longer) == 1:
        what = f"{name} is short for --{longer[0]}"
        why = (
            "atc of the current release takes a beginning that "
            "no other flag has; older releases stop at it."
        )
        return Fault("NP209", what, why, f"write --{longer[0]}", severity="warning")
    what = f"atc of the current release has no flag {name}"
    hint = did_you_mean(name, [f"--{flag}" for flag in flags], "see npuprof options")
    return Fault("NP209", what, "atc stops at a flag it does not know.", hint)


def _find_text_faults(flag: Flag, text: str) -> list[Fault]:
    """Return the faults of a flag's text as in a preset, if its record lists valid texts."""
    faults = find_flag_faults(flag.name, read_as_flag(flag, text))
    return [
        fault._replace(
            message=_spell_flag(fault.message, flag), why=_STOPS, hint=_spell_flag(fault.hint, flag)
        )
        for fault in faults
    ]


def _spell_flag(text: str, flag: Flag) -> str:
    """Return a message about a preset key in command line form: ``--flag=value``."""
    key = rf"(?:atc\.|(?<=write )){flag.name}"
    text = re.sub(f"{key} = ", f"--{flag.name}=", text)
    return re.sub(key, f"--{flag.name}", text).replace('"', "")
