"""Faults of calls that create NPURunConfig and its parts: their arguments and values."""

from __future__ import annotations

from npuprof import catalog
from npuprof.catalog import ConfigClass, releases
from npuprof.checks.view import Fault
from npuprof.model import Context, Finding, did_you_mean
from npuprof.renderers.python_source import format_literal
from npuprof.scripts.configuration import place_fault
from npuprof.scripts.lint.attributes import find_plain_value_faults
from npuprof.scripts.python.config_classes import (
    CLASSES,
    list_class_arguments,
    list_object_arguments,
)
from npuprof.scripts.python.run_config_calls import GivenCall
from npuprof.scripts.script_records import UNSET, ImportedFile, ScriptSetting

_TYPE_NAMES = {"bool": "True or False", "str": "text"}
_REFUSED = (
    "The class or RunConfig, or protobuf behind NPUEstimator, "
    "takes no other type and raises TypeError or ValueError."
)
_UNTURNED = "NPUEstimator stores the text without turning it into bytes, which raises TypeError."
_CONTAINERS = ("list", "tuple", "dict", "set")


def find_argument_faults(setting: ScriptSetting, requested: Context) -> list[Fault]:
    """Return the faults of one argument of a call."""
    if not setting.name:
        return []
    config_class = CLASSES[setting.class_name]
    if not _is_argument_known(config_class, setting.name, requested):
        return _find_unknown_argument_faults(config_class, setting.name, requested)
    if setting.reason == UNSET:
        return _find_missing_value_faults(config_class, setting.name)
    if setting.name == "session_config" or any(
        setting.name == other.taken_as for other in CLASSES.values() if other.argument
    ):
        what = f"{setting.name} takes an object, no plain value"
        why = (
            "The class raises ValueError for anything else, "
            "or NPUEstimator fails when it looks into it."
        )
        return [Fault("NP819", what, why, f"make an object for {setting.name}")]
    if not _is_value_checked(config_class, setting, requested):
        return []
    option = catalog.find_option(setting.key)
    kind = setting.assigned.kind
    exact = config_class.exact.get(setting.name, "")
    if kind in _CONTAINERS or (exact and kind != exact):
        return [_build_argument_type_fault(setting, exact, option)]
    why = option.not_carried.get("run_config", "") if option else ""
    if option and option.estimator_bytes and kind != "bytes":
        why = _UNTURNED
    if why:
        what = f"{setting.key} cannot be given to NPURunConfig"
        return [Fault("NP809", what, why, "set it in the session_config", severity="error")]
    return _find_argument_value_faults(config_class, setting)


def _is_value_checked(
    config_class: ConfigClass, setting: ScriptSetting, requested: Context
) -> bool:
    """Return whether the type and value of an argument are known, and those of a known release."""
    if setting.name in list_object_arguments():
        return False
    if setting.reason and setting.assigned.kind not in _CONTAINERS:
        return False
    option = catalog.find_option(setting.key)
    if option is not None:  # it may have had another type
        return not any(is_before(requested, until) for until in option.field_until.values())
    return setting.key.startswith("estimator.") or setting.name in config_class.choices


def _is_argument_known(config_class: ConfigClass, name: str, requested: Context) -> bool:
    """Return whether a class may have an argument in the requested release; by default, today's."""
    since = config_class.since.get(name)
    if not since or not is_before(requested, since):
        return name in list_class_arguments(config_class.name)
    option = catalog.find_option(
        catalog.options_by_spelling("run_config").get(
            f"{config_class.argument}.{name}".lstrip("."), ""
        )
    )
    return option is not None and option.states[releases.release_index(requested.cann or "")] == "?"


def is_before(requested: Context, release: str) -> bool:
    """Return whether the requested release is earlier; False if none is requested."""
    if not requested.cann:
        return False
    return releases.release_index(requested.cann) < releases.release_index(release)


def _find_unknown_argument_faults(cls: ConfigClass, name: str, requested: Context) -> list[Fault]:
    gone = cls.formerly.get(name)
    if gone and is_before(requested, gone):
        return []
    option = catalog.find_option(name)
    known = list_class_arguments(cls.name)
    what = f"{cls.name} of the current adapter takes no argument {name!r}"
    if name in known:
        what = f"{cls.name} of CANN {requested.cann} takes no argument {name!r}"
        hint = f"omit it: it was added in CANN {cls.since[name]}"
    elif gone:
        hint = f"remove it: CANN {gone} took it away; scan --cann judges by an older release"
    elif option is not None and option.field is not None:
        hint = "set it in the session_config"
    else:
        hint = did_you_mean(name, known, "remove it")
    why = "Python raises TypeError for an argument that the class does not have."
    return [Fault("NP812", what, why, hint)]


def _find_missing_value_faults(config_class: ConfigClass, name: str) -> list[Fault]:
    """Return the effect of None, if it differs from omitting the argument."""
    if name in config_class.exact or name in config_class.stored:
        why = "It is stored as it is, and a protobuf field or the class raises TypeError for None."
        return [
            Fault(
                "NP202", f"{config_class.name} takes no None for {name}", why, "omit the argument"
            )
        ]
    if name in config_class.required:
        why = f"NPUEstimator drops all of {config_class.taken_as} if one of its arguments is None."
        return [
            Fault(
                "NP809",
                f"{name} = None makes NPUEstimator drop the whole {config_class.name}",
                why,
                "give it a value",
            )
        ]
    return []


def _build_argument_type_fault(
    setting: ScriptSetting, exact: str, option: catalog.Option | None
) -> Fault:
    if setting.assigned.kind in _CONTAINERS:
        written = f"a {setting.assigned.kind}"
    else:
        written = format_literal(setting.assigned.written)
    if exact:
        expected = _TYPE_NAMES[exact]
    else:
        expected = "text" if option and option.field == "s" else "a plain value"
    what = f"{setting.name} takes {expected}, not {written}"
    return Fault("NP202", what, _REFUSED, f"write {expected}")


def _find_argument_value_faults(cls: ConfigClass, setting: ScriptSetting) -> list[Fault]:
    choices = cls.choices.get(setting.name)
    if choices and setting.value not in choices:
        listed = ", ".join(map(format_literal, choices))
        what = f"{setting.name} = {format_literal(setting.assigned.written)} is none of {listed}"
        return [Fault("NP203", what, f"{cls.name} raises ValueError.", f"write one of {listed}")]
    if choices and catalog.find_option(setting.key) is None:
        return []  # without an option, the class decides
    argument = catalog.find_argument(setting.name) if setting.key.startswith("estimator.") else None
    if argument is not None and argument.kind == "int" and setting.assigned.kind == "float":
        low = (argument.minimum or 0) - 1
        # RunConfig compares any number with 0
        if not argument.whole and setting.assigned.written > low:
            return []
    return [
        fault._replace(why=_REFUSED) if fault.code == "NP202" else fault
        for fault in find_plain_value_faults(setting)
    ]


def find_call_faults(imported: ImportedFile, requested: Context) -> list[Finding]:
    """Return the faults of whole calls: missing arguments, a removed class."""
    return [
        place_fault(fault, call)
        for call in imported.list_own_records(GivenCall)
        for fault in _check_call(call, requested)
    ]


def _check_call(call: GivenCall, requested: Context) -> list[Fault]:
    config_class = CLASSES[call.name]
    if config_class.until and not is_before(requested, config_class.until):
        why = (
            f"CANN {config_class.until} took the class away; "
            "its arguments became those of ExperimentalConfig."
        )
        return [
            Fault(
                "NP819",
                f"{call.name} is gone from the adapter",
                why,
                "give its arguments to ExperimentalConfig",
            )
        ]
    required = (
        name for name in config_class.required if _is_argument_known(config_class, name, requested)
    )
    missing = [name for name in required if name not in call.arguments and not call.open]
    what = f"{call.name} lacks {', '.join(missing)}"
    why = "Python raises TypeError: the call does not fit the class."
    return [Fault("NP819", what, why, f"give {' and '.join(missing)} as well")] if missing else []
