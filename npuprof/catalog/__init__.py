"""The catalogue of Ascend settings: session options, environment variables, ATC flags, estimator arguments, rules.

Its source is the TOML files of this folder, one record per setting. The records drive code, checks, help, the editor
schema and the documentation. Parsing TOML takes ten times as long as a typical command, so an installed npuprof
contains the catalogue as marshalled values (``_built``, what ``build`` returns); in a checkout, ``system.checkout``
creates and caches them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cache
from marshal import loads

from npuprof import system
from npuprof.catalog.records import Argument as Argument
from npuprof.catalog.records import ConfigClass as ConfigClass
from npuprof.catalog.records import Flag as Flag
from npuprof.catalog.records import Option as Option
from npuprof.catalog.records import Packed
from npuprof.catalog.records import Rule as Rule
from npuprof.catalog.records import Setting as Setting
from npuprof.catalog.records import Variable as Variable
from npuprof.document import keys
from npuprof.model import FRAMEWORK_SECTIONS, Finding, Path, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    Kind = TypeVar("Kind", bound=Record)

#: ``NPUPROF_...`` variables that are not options: metadata of an export, and settings of npuprof.
SAID_VARIABLES = ("BEFORE", "CONTEXT", "DIGEST", "PRESET_DIGEST", "PROFILE")
OBEYED_VARIABLES = ("DEBUG", "PAGER", "RECORD", "STORE", "TIMEOUT")

#: The prefix of each section's names, in catalogue order.
PREFIXES = {
    "options": "", "env": "env.", "estimator": "estimator.", "atc": "--", **{section: f"{section}." for section in FRAMEWORK_SECTIONS},
}  # fmt: skip


def load_built_part(name: str) -> Any:
    """Return one part of the built form: a section, or ``texts``, ``rules``, ``pages``, ``releases``, ..."""
    return system.load_built_part("catalog", name)


@cache
def _load_records(part: str, inner: str = "") -> tuple[dict[str, int], memoryview]:
    """Return the offset of each packed record of a part by name, and the bytes; a command unpacks only the records it needs."""
    built = load_built_part(part)
    packed: Packed = built[inner] if inner else built
    return dict(zip(packed[0].split(), packed[1], strict=True)), memoryview(packed[2])


def _unpack_record(name: str, part: str, inner: str = "") -> Any:
    starts, packed = _load_records(part, inner)
    return loads(packed[starts[name] :]) if name in starts else None  # noqa: S302 - part of this package


def _build_record(kind: type[Kind], section: str, name: str) -> Kind | None:
    fields = _unpack_record(name, section)
    if not fields:
        return None
    record = object.__new__(kind)
    record.__dict__.update(fields, name=name)  # unchecked: the rows are part of this package
    return record


@cache
def find_option(name: str) -> Option | None:
    """Return the session option of that name, or None."""
    return _build_record(Option, "options", name)


@cache
def find_variable(name: str) -> Variable | None:
    """Return the environment variable of that name, or None."""
    return _build_record(Variable, "env", name)


@cache
def find_flag(name: str) -> Flag | None:
    """Return the ATC flag of that name (without dashes), or None."""
    return _build_record(Flag, "atc", name)


@cache
def find_argument(name: str) -> Argument | None:
    """Return the estimator argument of that name, or None."""
    return _build_record(Argument, "estimator", name)


def is_checked(section: str) -> bool:
    """Return whether the catalogue has the settings of a framework; otherwise they are passed through."""
    return bool(_load_records(section)[0])


def is_passed_through(key: str) -> bool:
    """Return whether the settings of a key's section are passed through."""
    section = key.partition(".")[0]
    return section in FRAMEWORK_SECTIONS and not is_checked(section)


@cache
def find_setting(section: str, name: str) -> Setting | None:
    """Return the setting of a framework by its section and path, or None."""
    return _build_record(Setting, section, name)


def list_settings(section: str, name: str, value: Any) -> Iterator[tuple[Path, Any]]:
    """Yield the settings in a value with their paths below ``name``: the leaves of its tables, and tables that are values themselves."""
    yield from _list_leaves(section, (name,), value)


def _list_leaves(section: str, path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value and is_checked(section) and find_setting(section, ".".join(path)) is None:
        for key, item in value.items():
            yield from _list_leaves(section, (*path, key), item)
    else:
        yield path[1:], value


def find_record_place(key: str, tail: Path = ()) -> tuple[str, str]:
    """Return section and name of a key's record; the name of a framework setting includes the path below the key."""
    section, name = keys.split_section_and_name(key)
    if section in FRAMEWORK_SECTIONS:
        names = (".".join(map(str, (name, *tail[:end]))) for end in range(len(tail) + 1))
        return section, next((dotted for dotted in names if find_setting(section, dotted)), name)
    return section, name


def find_record(section: str, name: str) -> Option | Variable | Flag | Argument | Setting | None:
    """Return the record of a section by that name, or None."""
    if section in FRAMEWORK_SECTIONS:
        return find_setting(section, name)
    finders: dict[str, Callable[[str], Option | Variable | Flag | Argument | None]]
    finders = {"options": find_option, "env": find_variable, "estimator": find_argument, "atc": find_flag}
    return finders[section](name) if section in finders else None


def find_key_record(key: str) -> Option | Variable | Flag | Argument | Setting | None:
    """Return the record of a full key, or None."""
    return find_record(*keys.split_section_and_name(key))


def find_key_elsewhere(key: str, known: Collection[str] = ()) -> str:
    """Return the key that an unknown option name has in another section: one of the ``known`` keys, else one of the catalogue.

    Empty if there is none, and for the key of an option.
    """
    if "." in key or key in known or find_option(key) is not None:
        return ""
    others = [section for section in PREFIXES if section != "options"]
    sections = [section for section in others if f"{section}.{key}" in known]
    sections += [
        section
        for section in others
        if find_record(section, key) is not None or (section in FRAMEWORK_SECTIONS and key in record_positions(section))
    ]
    return f"{sections[0]}.{key}" if sections else ""


def record_names(section: str = "options") -> tuple[str, ...]:
    """Return the names of a section in catalogue order, which is the order of every output."""
    return tuple(_load_records(section)[0])


@cache
def record_positions(section: str) -> dict[str, int]:
    """Return the position of each name in catalogue order; a table of settings has the position of its first setting."""
    positions: dict[str, int] = {}
    for index, name in enumerate(_load_records(section)[0]):
        positions.setdefault(name.partition(".")[0] if section in FRAMEWORK_SECTIONS else name, index)
    return positions


@cache
def options_by_spelling(surface: str) -> dict[str, str]:
    """Return the option for each name that options have on another surface."""
    options = {name: find_option(name) for name in record_names()}
    return {record.spelling[surface]: name for name, record in options.items() if record and surface in record.spelling}


@cache
def estimator_defaults() -> dict[str, Any]:
    """Return the values that NPUEstimator sets on every run if the argument is missing; they override the session_config."""
    defaults: dict[str, Any] = {}
    for name in record_names():
        option = find_option(name)
        if option and option.estimator_sends:
            plain = option.default_training if option.default is None else option.default
            defaults[name] = plain if option.estimator_default is None else option.estimator_default
    return defaults


@cache
def load_config_classes() -> dict[str, ConfigClass]:
    """Return the classes for arguments of NPURunConfig by name, NPURunConfig first."""
    return {name: ConfigClass(name, **record) for name, record in load_built_part("classes").items()}


def load_attributes() -> dict[str, dict[str, Any]]:
    """Return the attributes of ``global_options()`` that are not options, by table of ``attributes.toml`` and path."""
    attributes: dict[str, dict[str, Any]] = load_built_part("attributes")
    return attributes


def find_record_texts(section: str, name: str) -> dict[str, Any]:
    """Return the texts and sources of a record: summary, doc, value_docs, source, ..."""
    return _unpack_record(name, "texts", section) or {}


@cache
def load_rules() -> tuple[Rule, ...]:
    """Return the rules between options."""
    return tuple(map(find_rule, list_rule_reads()))


@cache
def find_rule(code: str) -> Rule:
    """Return the rule with a code. Raises TypeError if there is none."""
    return Rule(*_unpack_record(code, "rules", "rules"))


def list_rule_reads() -> dict[str, tuple[str, ...]]:
    """Return, by code, the settings that each rule reads."""
    reads: dict[str, tuple[str, ...]] = load_built_part("rules")["reads"]
    return reads


def list_triggered_rules(names: tuple[str, ...]) -> list[str]:
    """Return the codes of the rules that settings can break: one of the triggers and all required settings are among the names."""
    known, index = frozenset(names), load_built_part("rules")
    triggered = {code for name in names for code in index["codes_by_trigger"].get(name, ())}
    return sorted(code for code in triggered if known.issuperset(index["required"][code]))


@cache
def list_outside_variables() -> frozenset[str]:
    """Return the variables that a launcher or the process itself sets, not a preset."""
    return frozenset(load_built_part("rules")["outside"])


def find_severity(code: str) -> str:
    """Return the severity of a code's findings according to its page; error for codes without a page."""
    severities: dict[str, str] = load_built_part("severities")
    return severities.get(code, "error")


def build_finding(code: str, *fields: Any, **named: Any) -> Finding:
    """Return a finding with the severity of its code's page. The other fields are those of ``Finding``."""
    return Finding(code, *fields, **{"severity": find_severity(code), **named})


def load_advice() -> tuple[dict[str, Any], ...]:
    """Return advice that no check can give: ``options``, ``when``, ``text``, ``source``."""
    return tuple(load_built_part("rule_texts")["advice"])


@cache
def load_excuses() -> dict[tuple[str, str], Any]:
    """Return, by key and code, the condition under which a deprecated option is needed or a text is harmless."""
    excuses: dict[tuple[str, str], Any] = load_built_part("rules")["excuses"]
    return excuses


@cache
def load_env_twins() -> dict[str, tuple[str, ...]]:
    """Return the equivalent environment variables of each option."""
    twins: dict[str, tuple[str, ...]] = load_built_part("rules")["twins"]
    return twins
