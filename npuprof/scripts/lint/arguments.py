"""What is wrong with the calls that make NPURunConfig and its parts: their arguments, the objects they take, and their number."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.catalog import ConfigClass, releases
from npuprof.checks import settings
from npuprof.checks.view import Fault
from npuprof.model import Context, Finding, Place, did_you_mean
from npuprof.renderers.python import format_literal
from npuprof.scripts.reading.found import UNSET, FoundSetting, ImportedFile
from npuprof.scripts.reading.surfaces.run_config import GivenCall, GivenObject
from npuprof.scripts.reading.values.classes import list_class_arguments, list_object_arguments

_WORDS = {"bool": "True or False", "str": "text", "int": "a whole number"}
_REFUSED = "The class or RunConfig, or protobuf behind NPUEstimator, takes no other type and raises TypeError or ValueError."
_CONTAINERS = ("list", "tuple", "dict", "set")


def find_argument_faults(found: FoundSetting, asked: Context) -> list[Fault]:
    """Return what is wrong with one argument of a call."""
    if not found.name:
        return []
    made = catalog.load_config_classes()[found.made]
    if found.name not in list_class_arguments(made.name) or not is_argument_there(made, found.name, asked):
        known = not found.reason and found.kind not in _CONTAINERS
        return _find_unknown_argument_faults(made, found.name, asked, format_literal(found.written) if known else "...")
    if found.reason == UNSET:
        return _find_missing_value_faults(made, found.name)
    if found.reason:
        return []
    option = catalog.find_option(found.key)
    if option is not None and any(_is_before(asked, until) for until in option.field_until.values()):
        return []  # the argument was of another type then
    if found.name in made.exact and found.kind != made.exact[found.name]:
        return [_build_argument_type_fault(found, _WORDS[made.exact[found.name]])]
    if (taken := made.choices.get(found.name)) and found.value not in taken:
        return [_build_argument_choice_fault(made, found, taken)]
    if found.name in list_object_arguments() or (option is None and not found.key.startswith("estimator.")):
        return []  # what is certain of objects is said where the call is
    if found.kind in _CONTAINERS:
        return [_build_argument_type_fault(found, "text" if option and option.field == "s" else "a plain value")]
    if option is not None and (why := _explain_loss(option, found)):
        return [Fault("NP809", f"{found.key} cannot be given to NPURunConfig", why, "set it in the session_config", severity="error")]
    return _find_argument_value_faults(found)


def _find_unknown_argument_faults(made: ConfigClass, name: str, asked: Context, given: str = "...") -> list[Fault]:
    why = "Python raises TypeError for an argument that the class does not have."
    what = f"{made.name} of the current adapter takes no argument {name!r}"
    if name in list_class_arguments(made.name):
        what = f"{made.name} of CANN {asked.cann} takes no argument {name!r}"
        return [Fault("NP812", what, why, f"leave it out: CANN {made.since[name]} brought it")]
    if gone := made.formerly.get(name):
        if asked.cann and releases.release_index(asked.cann) < releases.release_index(gone):
            return []
        return [Fault("NP812", what, why, f"remove it: CANN {gone} took it away; scan --cann judges by an older release")]
    return [Fault("NP812", what, why, _suggest_home(made, name, given))]


def _suggest_home(made: ConfigClass, name: str, given: str) -> str:
    """Return where an argument belongs that a class does not have: under another name, to another class, or to the session."""
    classes = [other for other in catalog.load_config_classes().values() if not other.until]
    option = catalog.find_option(name)
    spelled = option.spelling.get("run_config", name) if option is not None else name
    owner, _, right = spelled.rpartition(".")
    home = next((other for other in classes if owner and other.argument == owner), None)
    home = home or next((other for other in classes if name in other.positional), None)
    if home is made:
        return f"write {right}={given}"
    if home is not None:
        return f"give it to {home.name}: {_format_home(made, home, f'{right}={given}')}"
    if option is not None and option.field is not None and "run_config" not in option.spelling:
        return "set it in the session_config"
    return did_you_mean(name, list_class_arguments(made.name), "remove it")


def _format_home(made: ConfigClass, home: ConfigClass, given: str) -> str:
    """Return the call of a class with something given to it, as what takes it: an argument of ``made``, or a whole NPURunConfig."""
    classes = catalog.load_config_classes().values()
    text = f"{home.name}({given})"
    while home.argument:
        outer = home.argument.rpartition(".")[0]
        text = f"{home.taken_as}={text}"
        home = next(other for other in classes if other.argument == outer and not other.until)
        if home is made:
            return text
        text = f"{home.name}({text})"
    return text


def _find_missing_value_faults(made: ConfigClass, name: str) -> list[Fault]:
    """Return what None does, where it does not say the same as leaving an argument out."""
    if name in made.exact or name in made.stored:
        why = "It is stored as it is, and a protobuf field or the class raises TypeError for None."
        return [Fault("NP202", f"{made.name} takes no None for {name}", why, "leave the argument out")]
    if name in made.required:
        why = f"NPUEstimator leaves out all of {made.taken_as} where one of its arguments is None."
        return [Fault("NP809", f"{name} = None makes NPUEstimator drop the whole {made.name}", why, "give it a value")]
    return []


def _build_argument_type_fault(found: FoundSetting, wanted: str) -> Fault:
    written = format_literal(found.written) if found.kind not in _CONTAINERS else f"a {found.kind}"
    hint = f"write {wanted}"
    if found.key in catalog.record_names() and found.kind not in _CONTAINERS:
        told = settings.find_setting_faults(found.key, found.written)
        hint = next((fault.hint for fault in told if fault.code == "NP202"), hint)
    if wanted == _WORDS["bool"] and found.written in (0, 1):
        hint = f"write {found.name}={bool(found.written)}"
    return Fault("NP202", f"{found.name} takes {wanted}, not {written}", _REFUSED, hint)


def _build_argument_choice_fault(made: ConfigClass, found: FoundSetting, taken: tuple[Any, ...]) -> Fault:
    listed = ", ".join(map(format_literal, taken))
    return Fault("NP203", f"{found.name} = {format_literal(found.written)} is none of {listed}", f"{made.name} raises ValueError.",
                 f"write one of {listed}")  # fmt: skip


def _explain_loss(option: catalog.Option, found: FoundSetting) -> str:
    """Return why NPUEstimator cannot carry an argument; empty where it can."""
    if option.estimator_bytes:
        why = "NPUEstimator stores the text without turning it into bytes, which raises TypeError."
        return why if found.kind != "bytes" else ""
    return option.not_carried.get("run_config", "")


def _find_argument_value_faults(found: FoundSetting) -> list[Fault]:
    argument = catalog.find_argument(found.name) if found.key.startswith("estimator.") else None
    if argument is not None and argument.kind == "int" and found.kind == "float":
        low = (argument.minimum or 0) - 1
        if not argument.whole and found.written > low:  # RunConfig compares it with 0, whatever number it is
            return []
    told = [fault for fault in settings.find_setting_faults(found.key, found.value) if fault.severity != "info"]
    return [fault._replace(why=_REFUSED) if fault.code == "NP202" else fault for fault in told]


def find_call_faults(imported: ImportedFile, asked: Context) -> list[Finding]:
    """Return what is wrong with whole calls: too many arguments, some missing, objects of another class, a class that is gone."""
    result: list[Finding] = []
    for call in imported.list_own_remarks(GivenCall):
        result += [_build_call_finding(imported.file, call.line, call.column, fault) for fault in _check_call(call, asked)]
    for given in imported.list_own_remarks(GivenObject):
        result += [_build_call_finding(imported.file, given.line, given.column, fault) for fault in _find_object_faults(given, asked)]
    return result


def _build_call_finding(file: str, line: int, column: int, fault: Fault) -> Finding:
    return Finding(fault.code, fault.message, fault.why, fault.hint, where=Place(file, line, column), severity=fault.severity)


def _is_before(asked: Context, release: str) -> bool:
    return bool(asked.cann) and releases.release_index(asked.cann or "") < releases.release_index(release)


def _check_call(call: GivenCall, asked: Context) -> list[Fault]:
    made = catalog.load_config_classes()[call.name]
    why = "Python raises TypeError: the call does not fit the class."
    found = []
    if made.until and not _is_before(asked, made.until):
        why_gone = f"CANN {made.until} took the class away; its arguments became those of ExperimentalConfig."
        what, hint = f"{made.name} is gone from the adapter", "give its arguments to ExperimentalConfig"
        found.append(Fault("NP819", what, why_gone, hint))
    if call.excess:
        most = len(made.positional)
        found.append(Fault("NP819", f"{made.name} takes at most {most} arguments by position", why, f"remove {call.excess} of them"))
    found += [Fault("NP819", f"{name} is given to {made.name} twice", why, "give it by position or by name") for name in call.twice]
    missing = [name for name in made.required if name not in call.given and is_argument_there(made, name, asked)]
    if missing and not call.open:
        found.append(Fault("NP819", f"{made.name} lacks {', '.join(missing)}", why, f"give {' and '.join(missing)} as well"))
    return found


def is_argument_there(made: ConfigClass, name: str, asked: Context) -> bool:
    """Return whether a class may have an argument in the release asked for; without one, today's."""
    since = made.since.get(name)
    if not since or not _is_before(asked, since):
        return True
    spelling = f"{made.argument}.{name}".lstrip(".")
    option = catalog.find_option(catalog.options_by_spelling("run_config").get(spelling, ""))
    return option is not None and option.states[releases.release_index(asked.cann or "")] == "?"


def _find_object_faults(given: GivenObject, asked: Context) -> list[Fault]:
    """Return the fault of an argument that takes an object: its class has none of that name, or takes another object."""
    owner = catalog.load_config_classes()[given.owner]
    known = given.argument in list_class_arguments(owner.name) and is_argument_there(owner, given.argument, asked)
    if not known and (faults := _find_unknown_argument_faults(owner, given.argument, asked)):
        return faults
    fault = _check_given_object(given, asked) if known or given.argument in owner.formerly else None
    return [fault] if fault else []


def _check_given_object(given: GivenObject, asked: Context) -> Fault | None:
    """Return the fault of an argument that is given something else than an object of its class."""
    classes = catalog.load_config_classes()
    fitting = [made for made in classes.values() if made.taken_as == given.argument]
    if given.argument == "session_config" and given.text and not given.made:
        wanted = "tf.ConfigProto"
    elif not (given.made or given.text) or not fitting or any(made.name == given.made for made in fitting):
        return None
    else:
        wanted = fitting[0].name
    what = f"{given.argument} takes an object of {wanted}, not {given.made or given.text}"
    why = "The class raises ValueError for anything else, or NPUEstimator fails when it looks into it."
    hint = f"write {given.argument}={wanted}(...)"
    if given.made:
        home = _format_home(classes[given.owner], classes[given.made], "...")
        home = classes[given.made].taken_as if home.count("(") == 1 else home
        hint = f"give it as {home}, or write {given.argument}={wanted}(...)"
    elif given.text == "a dict" and given.names:
        hint = f"write {given.argument}={wanted}({', '.join(f'{name}=...' for name in given.names)})"
    return Fault("NP819", what, why, hint)
