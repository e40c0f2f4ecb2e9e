"""What is wrong with the calls that make NPURunConfig and its parts: their arguments, the objects they take, and their number."""

from __future__ import annotations

from npuprof import catalog
from npuprof.catalog import ConfigClass, releases
from npuprof.checks import settings
from npuprof.checks.meaning import UNKNOWN
from npuprof.checks.view import Fault
from npuprof.model import Context, Finding, did_you_mean
from npuprof.renderers.python import format_literal
from npuprof.scripts.lint.attributes import find_plain_value_faults
from npuprof.scripts.lint.worlds import place_fault
from npuprof.scripts.python.config_classes import list_class_arguments, list_object_arguments
from npuprof.scripts.python.run_config import GivenCall, GivenObject
from npuprof.scripts.records import UNSET, ImportedFile, ScriptSetting

_WORDS = {"bool": "True or False", "str": "text"}
_REFUSED = "The class or RunConfig, or protobuf behind NPUEstimator, takes no other type and raises TypeError or ValueError."
_UNFIT = "Python raises TypeError: the call does not fit the class."
_UNTURNED = "NPUEstimator stores the text without turning it into bytes, which raises TypeError."
_CONTAINERS = ("list", "tuple", "dict", "set")


def find_argument_faults(setting: ScriptSetting, asked: Context) -> list[Fault]:
    """Return what is wrong with one argument of a call."""
    if not setting.name:
        return []
    config_class = catalog.load_config_classes()[setting.made]
    if not _is_argument_known(config_class, setting.name, asked):
        return _find_unknown_argument_faults(config_class, setting.name, asked)
    if setting.reason == UNSET:
        return _find_missing_value_faults(config_class, setting.name)
    option = catalog.find_option(setting.key)
    has_value = option is not None or setting.key.startswith("estimator.") or setting.name in config_class.choices
    was_of_another_type = option is not None and any(is_before(asked, until) for until in option.field_until.values())
    if setting.reason or setting.name in list_object_arguments() or not has_value or was_of_another_type:
        return []  # what is certain of objects is said where the call is
    if setting.given.kind in _CONTAINERS or setting.given.kind != config_class.exact.get(setting.name, setting.given.kind):
        return [_build_argument_type_fault(setting, config_class.exact.get(setting.name, ""), option)]
    lost = option.not_carried.get("run_config", "") if option else ""
    if why := _UNTURNED if option and option.estimator_bytes and setting.given.kind != "bytes" else lost:
        return [Fault("NP809", f"{setting.key} cannot be given to NPURunConfig", why, "set it in the session_config", severity="error")]
    return _find_argument_value_faults(config_class, setting)


def _is_argument_known(config_class: ConfigClass, name: str, asked: Context) -> bool:
    """Return whether a class may have an argument in the release asked for; without one, today's."""
    since = config_class.since.get(name)
    if not since or not is_before(asked, since):
        return name in list_class_arguments(config_class.name)
    option = catalog.find_option(catalog.options_by_spelling("run_config").get(f"{config_class.argument}.{name}".lstrip("."), ""))
    return option is not None and option.states[releases.release_index(asked.cann or "")] == "?"


def is_before(asked: Context, release: str) -> bool:
    """Return whether the release asked for is an earlier one; not where none is."""
    return bool(asked.cann) and releases.release_index(asked.cann or "") < releases.release_index(release)


def _find_unknown_argument_faults(cls: ConfigClass, name: str, asked: Context) -> list[Fault]:
    gone = cls.formerly.get(name)
    if gone and is_before(asked, gone):
        return []
    what, hint = f"{cls.name} of the current adapter takes no argument {name!r}", _suggest_home(cls, name)
    if name in list_class_arguments(cls.name):
        what, hint = f"{cls.name} of CANN {asked.cann} takes no argument {name!r}", f"leave it out: CANN {cls.since[name]} brought it"
    elif gone:
        hint = f"remove it: CANN {gone} took it away; scan --cann judges by an older release"
    return [Fault("NP812", what, "Python raises TypeError for an argument that the class does not have.", hint)]


def _suggest_home(config_class: ConfigClass, name: str) -> str:
    """Return where an argument belongs that a class does not have: to which class by which name, or to the session."""
    option = catalog.find_option(name)
    owner, _, right = option.spelling.get("run_config", name).rpartition(".") if option else ("", "", name)
    for home in catalog.load_config_classes().values():
        if not home.until and (home.argument == owner if owner else right in home.positional):
            return f"give it to {home.name} as {right}"
    if option is not None and option.field is not None:
        return "set it in the session_config"
    return did_you_mean(name, list_class_arguments(config_class.name), "remove it")


def _find_missing_value_faults(config_class: ConfigClass, name: str) -> list[Fault]:
    """Return what None does, where it does not say the same as leaving an argument out."""
    if name in config_class.exact or name in config_class.stored:
        why = "It is stored as it is, and a protobuf field or the class raises TypeError for None."
        return [Fault("NP202", f"{config_class.name} takes no None for {name}", why, "leave the argument out")]
    if name in config_class.required:
        why = f"NPUEstimator leaves out all of {config_class.taken_as} where one of its arguments is None."
        return [Fault("NP809", f"{name} = None makes NPUEstimator drop the whole {config_class.name}", why, "give it a value")]
    return []


def _build_argument_type_fault(setting: ScriptSetting, exact: str, option: catalog.Option | None) -> Fault:
    written = f"a {setting.given.kind}" if setting.given.kind in _CONTAINERS else format_literal(setting.given.written)
    wanted = _WORDS[exact] if exact else "text" if option and option.field == "s" else "a plain value"
    guess = settings.guess_option_value(option, setting.given.written) if option and setting.given.kind not in _CONTAINERS else UNKNOWN
    hint = f"write {setting.name}={format_literal(guess)}" if guess is not UNKNOWN else f"write {wanted}"
    return Fault("NP202", f"{setting.name} takes {wanted}, not {written}", _REFUSED, hint)


def _find_argument_value_faults(cls: ConfigClass, setting: ScriptSetting) -> list[Fault]:
    taken = cls.choices.get(setting.name)
    if taken and (setting.value not in taken or catalog.find_option(setting.key) is None):  # without an option it is the class that decides
        listed = ", ".join(map(format_literal, taken))
        what = f"{setting.name} = {format_literal(setting.given.written)} is none of {listed}"
        return [Fault("NP203", what, f"{cls.name} raises ValueError.", f"write one of {listed}")] if setting.value not in taken else []
    argument = catalog.find_argument(setting.name) if setting.key.startswith("estimator.") else None
    if argument is not None and argument.kind == "int" and setting.given.kind == "float":
        low = (argument.minimum or 0) - 1
        if not argument.whole and setting.given.written > low:  # RunConfig compares it with 0, whatever number it is
            return []
    return [fault._replace(why=_REFUSED) if fault.code == "NP202" else fault for fault in find_plain_value_faults(setting)]


def find_call_faults(imported: ImportedFile, asked: Context) -> list[Finding]:
    """Return what is wrong with whole calls: too many arguments, some missing, objects of another class, a class that is gone."""
    calls = [place_fault(fault, call) for call in imported.list_own_remarks(GivenCall) for fault in _check_call(call, asked)]
    objects = imported.list_own_remarks(GivenObject)
    return [*calls, *(place_fault(fault, given) for given in objects for fault in _find_object_faults(given, asked))]


def _check_call(call: GivenCall, asked: Context) -> list[Fault]:
    config_class = catalog.load_config_classes()[call.name]
    order = config_class.positional
    twice = " and ".join(name for name in call.named if name in order[: call.placed])
    arguments = (*order[: call.placed], *call.named)
    missing = [name for name in config_class.required if name not in arguments and _is_argument_known(config_class, name, asked)]
    gone = config_class.until and not is_before(asked, config_class.until)
    why_gone = f"CANN {config_class.until} took the class away; its arguments became those of ExperimentalConfig."
    excess = f"{config_class.name} takes at most {len(order)} arguments by position"
    faults = (
        (gone, f"{config_class.name} is gone from the adapter", why_gone, "give its arguments to ExperimentalConfig"),
        (call.placed > len(order), excess, _UNFIT, f"remove {call.placed - len(order)} of them"),
        (twice, f"{twice} is given to {config_class.name} twice", _UNFIT, "give it by position or by name"),
        (missing and not call.open, f"{config_class.name} lacks {', '.join(missing)}", _UNFIT, f"give {' and '.join(missing)} as well"),
    )
    return [Fault("NP819", what, why, hint) for is_wrong, what, why, hint in faults if is_wrong]


def _find_object_faults(given: GivenObject, asked: Context) -> list[Fault]:
    """Return the fault of an argument that takes an object: its class has none of that name, or takes another object."""
    classes = catalog.load_config_classes()
    owner = classes[given.owner]
    if not _is_argument_known(owner, given.argument, asked):
        faults = _find_unknown_argument_faults(owner, given.argument, asked)
        if faults or given.argument not in owner.formerly:
            return faults
    fitting = [config_class.name for config_class in classes.values() if config_class.taken_as == given.argument]
    fitting = ["tf.ConfigProto"] if given.argument == "session_config" else fitting
    if not given.given or not fitting or given.given in fitting:
        return []
    what = f"{given.argument} takes an object of {fitting[0]}, not {given.given}"
    why = "The class raises ValueError for anything else, or NPUEstimator fails when it looks into it."
    return [Fault("NP819", what, why, f"write {given.argument}={fitting[0]}(...)")]
