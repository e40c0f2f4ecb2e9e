"""The catalogue of Ascend settings: session options, environment variables, ATC flags, estimator arguments, rules.

Its source is the TOML files of this folder, one record per setting. The records drive code, checks, help, the editor
schema and the documentation. Parsing TOML takes ten times as long as a typical command, so an installed npuprof
contains the catalogue as marshalled values (``_built``, written by ``build``); in a checkout, ``checkout`` creates and
caches them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cache
from marshal import loads

from npuprof.document import keys
from npuprof.model import FRAMEWORK_SECTIONS, Finding, Path, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    Kind = TypeVar("Kind", bound=Record)

#: ``NPUPROF_...`` variables that are not options: metadata of an export, and settings of npuprof.
SAID_VARIABLES = ("BEFORE", "CONTEXT", "DIGEST", "PRESET_DIGEST", "PROFILE")
OBEYED_VARIABLES = ("DEBUG", "PAGER", "RECORD", "STORE", "TIMEOUT")

#: The risk of variables that decide what programs execute or load.
EXECUTES = "executes"

#: The prefix of each section's names, in catalogue order.
PREFIXES = {
    "options": "", "env": "env.", "estimator": "estimator.", "atc": "--", **{section: f"{section}." for section in FRAMEWORK_SECTIONS},
}  # fmt: skip

#: Records packed by ``build``: their names, separated by spaces, the offset of each, and the bytes.
Packed = tuple[str, tuple[int, ...], bytes]


class Option(Record):
    """One session option.

    ``field`` is the protobuf field that the adapter reads (``b``, ``i``, ``s``), None if nothing reads the key.
    ``choices``, ``minimum``, ``maximum`` and ``pattern`` limit the value; ``lax_pattern`` and ``doubtful_values`` are what
    the adapter accepts beyond the documentation, ``tolerated`` old spellings of a choice. ``structure`` names the
    structured form. ``states`` has one letter per release of ``load_releases()``: ``Y`` read, ``.`` not read, ``?``
    unknown. ``level`` is the part of the engine that receives the option (``init``: once per process). ``spelling`` is the
    name on each other surface, ``surface_values`` the values on a surface that writes them differently (a missing value
    cannot be written there), and ``class_checks`` what the class of a surface validates instead of the choices:
    ``nothing``, or ``choices or None``. Sources are in ``Texts``.

    Per surface: ``not_carried`` is the reason why a surface lacks the option, ``always`` the fixed value of a surface,
    ``closed_by`` the required end of a text, ``engine_choices`` the values that the engine supports among those the surface
    accepts. NPUEstimator ``estimator_sends`` the option if the argument is missing, with ``estimator_default`` unless that
    is the default; the option may be lost without the argument ``needs_argument``; ``estimator_bytes`` is stored unchanged.
    ``field_until`` maps releases to fields that the adapter read before. ``repeated_at_start`` is required in the session
    of initialize_system as well. ``surface_states`` are the ``states`` of a surface with its own history, and
    ``surface_range`` limits its numbers.

    Content: ``path_characters`` are the characters that the manual allows in a path, as the inside of a regular expression
    class, empty if it lists none. ``listed`` are the documented names of a list, ``names`` their kind (a list of
    ``names.toml``). ``value_products`` and ``doubtful_values`` apply to the members of a structured value too. Other tools
    share a ``common_name``, so the name alone does not indicate Ascend. ``numbered`` choices are codes, not booleans: 0 is
    not "off", nor 1 "on".

    ``topic`` is the purpose in one or two words, unless its page gives it, ``value_topics`` the purpose of each value: they
    name presets created from scripts.
    """

    name: str
    page: str
    kind: str
    field: str | None = None
    choices: tuple[Any, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    unit: str = ""
    pattern: str = ""
    lax_pattern: str = ""
    structure: str = ""
    default: Any = None
    default_training: Any = None
    default_inference: Any = None
    default_by_product: dict[str, Any] = {}
    default_since: dict[str, Any] = {}
    scenarios: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    value_products: dict[str, tuple[str, ...]] = {}
    product_range: dict[str, tuple[int, int]] = {}
    product_count: dict[str, tuple[int, int]] = {}
    default_count: tuple[int, int] | tuple[()] = ()
    doubtful_values: dict[str, str] = {}
    tolerated: tuple[Any, ...] = ()
    choices_since: dict[str, str] = {}
    choices_until: dict[str, str] = {}
    on_bad_value: str = ""
    on_wrong_field: str = ""
    level: str = ""
    states: str = ""
    deprecated: bool = False
    deprecated_since: str = ""
    no_effect: bool = False
    no_effect_since: str = ""
    replaced_by: str = ""
    per_process: bool = False
    risk: tuple[str, ...] = ()
    spelling: dict[str, str] = {}
    surface_values: dict[str, dict[str, Any]] = {}
    class_checks: dict[str, str] = {}
    env: tuple[str, ...] = ()
    not_carried: dict[str, str] = {}
    always: dict[str, Any] = {}
    closed_by: dict[str, str] = {}
    engine_choices: dict[str, tuple[Any, ...]] = {}
    estimator_sends: bool = False
    estimator_default: Any = None
    estimator_bytes: bool = False
    needs_argument: str = ""
    field_until: dict[str, str] = {}
    repeated_at_start: bool = False
    surface_states: dict[str, str] = {}
    surface_range: dict[str, tuple[int, int]] = {}
    path_characters: str = ""
    listed: tuple[str, ...] = ()
    names: str = ""
    common_name: bool = False
    numbered: bool = False
    topic: str = ""
    value_topics: dict[str, str] = {}

    def write_on(self, surface: str, value: Any) -> tuple[bool, Any]:
        """Return whether a surface can express a value, and the value in that surface's form."""
        table = self.surface_values.get(surface)
        if table is None:
            return True, value
        known = str(value).lower() if isinstance(value, bool) else str(value)
        return known in table, table.get(known)

    def is_always(self, surface: str, value: Any) -> bool:
        """Return whether a surface always has this value."""
        return surface in self.always and type(value) is type(self.always[surface]) and value == self.always[surface]


class Variable(Record):
    """One environment variable.

    ``freeze`` is who may set it: ``ok`` a preset, ``site`` the machine, ``launcher`` the job, ``never`` only the process
    itself. ``session_option`` is its documented equivalent. With a ``separator``, several of the ``choices`` may be joined.
    ``tolerated`` are values of old scripts, ``replacement_since`` the release that introduced the replacement.
    ``product_range`` and ``product_pattern`` are narrower on a family, ``pattern_before`` applies to releases before the
    given one. ``structure`` is the form of a compound text. ``topic`` is the purpose, unless its ``scope`` gives it.
    ``risk`` is what a change may affect, for variables without an equivalent option. ``numbered`` as for options.
    ``otherwise`` is what the reader does with any other value. ``executes`` is how it affects code execution or loading,
    False if it does not. ``protects`` is what is lost with other values than ``kept_by``. ``reader`` is the
    function of ``readers.toml`` that parses it.

    ``framework`` is the (first) framework that reads it, as described in ``reads.toml``, in its releases from ``since`` to
    ``until``, both included; ``dead`` variables are read by no current release. A ``set_env.sh`` in a folder whose path
    contains a word of ``overwritten_in`` overwrites it. A text of kind ``pairs`` consists of ``items``, ``joined`` by a
    separator, each a key and a value separated by ``pair``; it may begin with one of the words in ``first``, whose key in
    the table form is ``first_name``. ``unknown`` is what the reader does with an unknown key. Other programs share a
    ``common_name``. A text that fits the pattern ``form`` needs no trust, although a shell would act on its characters.
    """

    name: str
    kind: str
    framework: str = "cann"
    executes: str | bool = False
    protects: str = ""
    kept_by: tuple[str, ...] = ()
    scope: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    default: Any = None
    unit: str = ""
    products: tuple[str, ...] = ()
    value_products: dict[str, tuple[str, ...]] = {}
    session_option: str = ""
    twin_values: dict[str, str] = {}
    freeze: str = "ok"
    advice: str = ""
    launcher: str = ""
    per_process: bool = False
    deprecated: bool = False
    replaced_by: str = ""
    replacement_since: str = ""
    tolerated: tuple[str, ...] = ()
    pattern: str = ""
    separator: str = ""
    multiple_of: int = 1
    product_range: dict[str, tuple[int, int]] = {}
    product_pattern: dict[str, str] = {}
    pattern_before: dict[str, str] = {}
    path_characters: str = ""
    form: str = ""
    structure: str = ""
    numbered: bool = False
    topic: str = ""
    risk: tuple[str, ...] = ()
    reader: str = ""
    reads: str = ""
    otherwise: str = ""
    dead: str = ""
    since: str = ""
    until: str = ""
    overwritten_in: tuple[str, ...] = ()
    joined: str = ""
    pair: str = ""
    items: dict[str, Any] = {}
    first: tuple[str, ...] = ()
    first_name: str = ""
    unknown: str = ""
    common_name: bool = False


class Flag(Record):
    """One flag of the ATC compiler, named without dashes. A flag of kind ``chip`` selects the chip to convert for.

    ``twin`` is the equivalent session option. ``required`` flags are needed by each conversion. Two flags that are both
    ``stops`` and exclude each other end the conversion; otherwise one overrides the other. ``requires`` lists required
    flags: ``--name``, some of its values (``--name=a|b``), none of them (``--name!=a|b``), or alternatives (``--a or
    --b``); it does not apply to the values ``requires_unless``. If it is not met, the conversion ends if the flag
    ``stops_without`` is set. ``value_conflicts`` are conflicts of one value. A list of values joined by a ``separator`` has
    as many elements as ``default_count`` allows, on a family ``product_count``, or ``one_per`` part of another flag. In
    shapes, these are sizes of ``filled`` open dimensions, one of them the first; the open dimensions are those of the flag
    with the shapes. ``product_pattern`` is narrower on a family. ``structure`` is the format of the file that the flag
    names. ``risk`` is what a change may affect, for flags without an equivalent option. ``doubtful_values`` are choices
    that a conversion accepts and the manual warns about; those of the equivalent option do not apply. ``numbered`` as for
    options, ``reader`` as for variables.
    """

    name: str
    kind: str
    required: bool = False
    choices: tuple[Any, ...] = ()
    doubtful_values: dict[str, str] = {}
    minimum: int | None = None
    maximum: int | None = None
    default: Any = None
    pattern: str = ""
    products: tuple[str, ...] = ()
    products_not: tuple[str, ...] = ()
    value_products: dict[str, tuple[str, ...]] = {}
    requires: tuple[str, ...] = ()
    requires_unless: tuple[str, ...] = ()
    stops_without: bool = False
    conflicts: tuple[str, ...] = ()
    value_conflicts: dict[str, tuple[str, ...]] = {}
    stops: bool = False
    twin: str = ""
    deprecated: bool = False
    replacement: str = ""
    path_characters: str = ""
    separator: str = ""
    default_count: tuple[int, int] | tuple[()] = ()
    product_count: dict[str, tuple[int, int]] = {}
    product_pattern: dict[str, str] = {}
    one_per: str = ""
    filled: dict[str, int] = {}
    structure: str = ""
    numbered: bool = False
    risk: tuple[str, ...] = ()
    reader: str = ""


class Argument(Record):
    """One argument of NPURunConfig that is not a session option. Kind ``object`` is a Python object of the script.

    ``run_config`` is set if tf.estimator.RunConfig has the argument too. Floats are accepted as integers unless ``whole``.
    """

    name: str
    kind: str
    minimum: int | None = None
    maximum: int | None = None
    default: Any = None
    choices: tuple[Any, ...] = ()
    run_config: bool = False
    unit: str = ""
    whole: bool = False


class ConfigClass(Record):
    """A class that NPURunConfig takes as an argument, or NPURunConfig itself; the fields are documented in ``classes.toml``."""

    name: str
    argument: str
    positional: tuple[str, ...]
    required: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    exact: dict[str, str] = {}
    as_text: tuple[str, ...] = ()
    choices: dict[str, tuple[Any, ...]] = {}
    since: dict[str, str] = {}
    formerly: dict[str, str] = {}
    given_as: str = ""
    until: str = ""

    @property
    def taken_as(self) -> str:
        """The argument that takes an object of the class, without its prefix; empty for NPURunConfig."""
        return self.given_as or self.argument.rpartition(".")[2]


class Setting(Record):
    """One setting of a framework, in that framework's section: ``name`` is its path there, such as ``matmul.allow_hf32``.

    ``kind`` is ``bool``, ``int``, ``float``, ``str``, ``path``, ``list`` or ``json`` (a table that is not checked).
    ``call`` is the code that sets it, with ``{}`` for the value; without a call, it is a key of the framework's own table
    of options. Settings whose calls differ only in the last argument are set by one call. ``otherwise`` is what the
    framework does with other values. Releases from ``since`` to ``until`` read it, both included. ``counterparts`` are
    equivalent options of [options] and variables (``env.NAME``), each with the agreeing values for each value here, as text
    (the best first), or a pattern with ``{}`` for the value here; empty if equal values agree. A table with ``closed`` keys
    is rejected if it contains another key; unknown keys of other tables are ignored. The framework evaluates a ``truthy``
    switch as a Python truth value: any non-empty text is true.
    """

    name: str
    kind: str
    choices: tuple[Any, ...] = ()
    choices_since: dict[str, str] = {}
    minimum: float | None = None
    maximum: float | None = None
    default: Any = None
    unit: str = ""
    pattern: str = ""
    call: str = ""
    otherwise: str = ""
    since: str = ""
    until: str = ""
    deprecated: bool = False
    replaced_by: str = ""
    requires: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    counterparts: dict[str, Any] = {}
    closed: bool = False
    truthy: bool = False
    risk: tuple[str, ...] = ()
    numbered: bool = False


class Rule(Record):
    """A rule between options: broken if ``when`` is true and ``needs`` (if any) is false.

    ``reads`` are all settings in the conditions, ``triggers`` those in ``when``: a preset that sets no trigger cannot break
    the rule. ``by_product`` is set if the result may depend on the product family. ``compares`` are the settings whose
    values are compared; the others are only tested for being set. ``atc`` is what ATC does if the rule is broken, empty for
    a rule of the TensorFlow adapter that ATC lacks.
    """

    code: str
    name: str
    options: tuple[str, ...]
    when: Any
    needs: Any
    what: str
    why: str
    hint: str
    reads: tuple[str, ...]
    triggers: tuple[str, ...]
    by_product: bool
    compares: tuple[str, ...]
    atc: str


@cache
def load_built_part(name: str) -> Any:
    """Return one part of the built form: a section, or ``texts``, ``rules``, ``pages``, ``releases``, ..."""
    load_part = _find_checkout_loader()
    if load_part:
        return load_part(name)
    packed = __spec__.loader.get_data(f"{__path__[0]}/_built/{name}.marshal")  # type: ignore[union-attr]
    return loads(packed)  # noqa: S302 - part of this package


@cache
def _find_checkout_loader() -> Callable[[str], Any] | None:
    try:
        from npuprof.catalog.checkout import load_part
    except ModuleNotFoundError:  # installed from a wheel
        return None
    return load_part


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


def find_unit_and_risk(setting: str, tail: Path = (), *sides: Any) -> tuple[str, tuple[str, ...]]:
    """Return the unit of a setting and what a change of it may affect, as far as the catalogue has them.

    ``sides`` are its values before and after, None if unset: either can affect execution, whatever the variable.
    """
    section, name = find_record_place(setting, tail)
    if section in FRAMEWORK_SECTIONS:
        records = [
            record for dotted in record_names(section) if f"{dotted}.".startswith(f"{name}.") and (record := find_setting(section, dotted))
        ]
        return records[0].unit if len(records) == 1 else "", tuple(dict.fromkeys(risk for record in records for risk in record.risk))
    if section == "options":
        option = find_option(name)
        return (option.unit, tuple(option.risk)) if option else ("", ())
    twin, unit = "", ""
    risk: tuple[str, ...] = ()
    if section == "env" and (variable := find_variable(name)):
        twin, unit, risk = variable.session_option, variable.unit, variable.risk
    elif section == "atc" and (flag := find_flag(name)):
        twin, risk = flag.twin, flag.risk
    option = find_option(twin) if twin and not risk else None
    risk = tuple(option.risk if option else risk)
    return unit, (EXECUTES, *risk) if section == "env" and _affects_execution(name, sides) else risk


def _affects_execution(name: str, sides: Collection[Any]) -> bool:
    from npuprof.catalog.execution import find_execution, find_value_execution, format_exported_text  # they read the records of this module

    texts = [format_exported_text(name, side) for side in sides if side is not None]
    return bool(find_execution(name)) or any(find_value_execution(name, text) for text in texts if text is not None)


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
