"""What Ascend lets you set: session options, environment variables, ATC flags, estimator arguments, rules.

The source is the TOML beside this file, one record each. Every record feeds code, checks, help, the editor
schema and the documentation. Reading the source takes ten times longer than the rest of a command, so an
installed npuprof carries it as Python literals (``_built``, made by ``build``); in a checkout ``checkout`` makes
and keeps the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cache
from importlib import import_module
from marshal import loads
from typing import Any

from npuprof.document import keys
from npuprof.model import FRAMEWORK_SECTIONS, Finding, Path, Record

#: Variables ``NPUPROF_...`` that name no option: what an export says of itself, and what npuprof obeys.
SAID_VARIABLES = ("BEFORE", "CONTEXT", "DIGEST", "PRESET_DIGEST", "PROFILE")
OBEYED_VARIABLES = ("DEBUG", "PAGER", "RECORD", "STORE", "TIMEOUT")

#: What stands before a name of each section where users read it, in the order of the catalogue.
PREFIXES = {
    "options": "", "env": "env.", "estimator": "estimator.", "atc": "--", **{section: f"{section}." for section in FRAMEWORK_SECTIONS},
}  # fmt: skip


class Option(Record):
    """One session option.

    ``field`` is the protobuf field the adapter reads (``b``, ``i``, ``s``), None where nothing reads the key.
    ``choices``, ``minimum``, ``maximum`` and ``pattern`` bound the value, ``lax_pattern`` and
    ``doubtful_values`` what the adapter takes beyond the documentation, ``tolerated`` old spellings of a choice.
    ``structure`` names the structured form. ``states`` has one letter for each release of ``load_releases()``: ``Y``
    read, ``.`` not read, ``?`` unknown. ``level`` says which part of the engine receives the option (``init``: once per process).
    ``spelling`` is the name on each other surface, ``surface_values`` how values are written on one that
    writes them differently (a value missing there cannot be written there); ``class_checks`` what the class of one looks at where
    that is not the choices: ``nothing``, or ``choices or None``. Sources are in ``Texts``.

    What surfaces do with it: ``not_carried`` says why one has no place for it, ``always`` the value one has whatever is
    said, ``closed_by`` what has to close a text there, ``engine_choices`` the values the engine knows of those the surface
    takes. NPUEstimator ``estimator_sends`` it where the argument is left out, with ``estimator_default`` if that is not the
    default; it may be lost but for another argument that ``needs_argument`` names; ``estimator_bytes`` is stored as it is
    given. ``field_until`` names fields the adapter read before a release. ``repeated_at_start`` is what the manual wants
    in the session of initialize_system as well. ``surface_states`` are the ``states`` of a surface of another age, and
    ``surface_range`` bounds the numbers that one takes.

    What is in it: ``path_characters`` are what the manual lets a path be made of, the inside of a class of a pattern, empty where
    it says nothing. ``listed`` are the names that the documentation of a list has, ``names`` says of what they are (a
    list of ``names.toml``). ``value_products`` and ``doubtful_values`` hold for the members of a structured value as well.
    Other tools have a setting of the same name where that is a ``common_name``: alone it says nothing of Ascend. Choices that are
    ``numbered`` stand for things, with no word for them: 0 is not "off", nor 1 "on".

    ``topic`` is what it is for in a word or two, where its page does not say that, ``value_topics`` what a value is for: presets that
    are made of scripts are named by it.
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
        """Return whether a surface can write a value, and the value as it is written there."""
        table = self.surface_values.get(surface)
        if table is None:
            return True, value
        known = str(value).lower() if isinstance(value, bool) else str(value)
        return known in table, table.get(known)

    def is_always(self, surface: str, value: Any) -> bool:
        """Return whether a surface has this very value whatever is said."""
        return surface in self.always and type(value) is type(self.always[surface]) and value == self.always[surface]


class Variable(Record):
    """One environment variable.

    ``freeze`` says who may set it: ``ok`` a preset, ``site`` the machine, ``launcher`` the job, ``never``
    only the process itself. ``session_option`` is its documented twin. Where there is a ``separator``, several
    of the ``choices`` may be joined by it. ``tolerated`` are values that old scripts may set, ``replacement_since`` the
    release that brought what replaces it. ``product_range`` and ``product_pattern`` are narrower on a family,
    ``pattern_before`` is what releases before one ask for as well. ``structure`` is the form of a text that holds more.
    ``topic`` is what it is for, where its ``scope`` does not say that. ``risk`` is what a change of it may alter, where it has no twin.
    ``numbered`` as of an option. ``otherwise`` is what its reader does with any other value, where it goes on. ``executes`` is how it
    affects what is executed or loaded, False if it does not. ``reader`` is the function that reads it, of ``readers.toml``.

    ``framework`` reads it, the first one where several do, in a way of ``reads.toml``: its releases from ``since`` to ``until``, both
    included; ``dead`` says that no current one does. A ``set_env.sh`` in a folder with a word of ``overwritten_in`` in its path gives it
    another value. A text of kind ``pairs`` is made of ``items``, which are ``joined`` by a separator, each a key and a value with ``pair``
    between them; it may begin with one of the words in ``first``, which is ``first_name`` in a table. ``unknown`` is what its reader
    does with another key. Programs of all kinds have a ``common_name``.
    """

    name: str
    kind: str
    framework: str = "cann"
    executes: str | bool = False
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
    """One flag of the ATC compiler, its name without the dashes. Of kind ``chip`` is the one that names the chip to convert for.

    ``twin`` is the session option that does the same. ``required`` flags belong to one conversion. Two flags that both are
    ``stops`` and exclude each other end it; of others one overrules. What a flag ``requires`` is another one (``--name``), one with
    some of its values (``--name=a|b``) or none of them (``--name!=a|b``), or either of two (``--a or --b``); not with the values
    ``requires_unless``. Without it a conversion ends where the flag ``stops_without``. ``value_conflicts`` are those of one value.
    Of values joined by a ``separator`` there are as many as ``default_count`` allows, on a family ``product_count``, or ``one_per``
    part of another flag. In shapes it is the sizes of so many dimensions as are ``filled``, one of them the first; by the flag that
    holds them. ``product_pattern`` is narrower on a family. ``structure`` is the form of the file that it names.
    ``risk`` is what a change of it may alter, where it has no twin. ``doubtful_values`` are choices that a conversion takes, and that
    its manual warns of; what is doubtful of its twin in a session is not said of it. ``numbered`` as of an option, ``reader`` as of a
    variable.
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
    """One argument of NPURunConfig that is no session option. Kind ``object`` is an object of the script.

    ``run_config`` tells whether tf.estimator.RunConfig has it too. It takes any number for a whole one, unless ``whole``.
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
    """One class that NPURunConfig is made with, or NPURunConfig itself; the fields are explained at the top of ``classes.toml``."""

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
        """The argument that takes an object of the class, without what it is an argument of; empty for NPURunConfig."""
        return self.given_as or self.argument.rpartition(".")[2]


class Setting(Record):
    """One setting of a framework, in a section of that framework: ``name`` is its path there, as ``matmul.allow_hf32``.

    ``kind`` is ``bool``, ``int``, ``float``, ``str``, ``path``, ``list`` or ``json`` (a table that is not looked into). ``call`` is the
    code that sets it, with ``{}`` for the value; where there is none, it is a key of the framework's own table of options.
    Settings whose calls differ in the last argument only are set by one call. ``otherwise`` is what the framework does with other values.
    The framework reads it in its releases from ``since`` to ``until``, both included. ``counterparts`` are options of [options] and
    variables (``env.NAME``) that mean the same, each with the values that agree with each value here, by text (the best first), or a
    pattern of them with ``{}`` for the value here; empty where equal values agree.
    A table with ``closed`` keys is rejected by the framework if another key is in it; it ignores unknown keys of others. A switch is
    ``truthy`` if the framework takes any value by its truth, so that every text but the empty one switches it on.
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
    """A rule between options: a fault where ``when`` holds and ``needs`` (if any) does not.

    ``reads`` names every setting the conditions look at, ``triggers`` those in ``when``: a rule says nothing
    of a preset that sets none of them. Without every one of ``required`` the rule cannot be broken.
    ``by_product`` tells whether the answer may differ from one product family to the next. Of what it ``reads``, it
    ``compares`` the value of some; of the others it only asks whether they are set. ``atc`` is what ATC does
    where the rule is broken, empty for a rule of the TensorFlow adapter that ATC knows nothing of.
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
    required: tuple[str, ...]
    by_product: bool
    compares: tuple[str, ...]
    atc: str


@cache
def load_built_part(name: str) -> Any:
    """Return one part of the built form: a section, or ``texts``, ``rules``, ``pages``, ``releases``, ..."""
    load_part = _find_checkout_loader()
    return load_part(name) if load_part else import_module(f"npuprof.catalog._built.{name}").DATA


@cache
def _find_checkout_loader() -> Callable[[str], Any] | None:
    try:
        from npuprof.catalog.checkout import load_part
    except ModuleNotFoundError:  # installed from a wheel
        return None
    return load_part


@cache
def _load_records(section: str) -> dict[str, bytes]:
    """Return the records of a section by name, each as ``build`` packed it: a command unpacks only those it asks for."""
    records: dict[str, bytes] = load_built_part(section)
    return records


def _find_fields(section: str, name: str) -> dict[str, Any] | None:
    packed = _load_records(section).get(name)
    return loads(packed) if packed else None  # noqa: S302 - part of this package


@cache
def find_option(name: str) -> Option | None:
    """Return the session option of that name, or None."""
    fields = _find_fields("options", name)
    return Option(name, **fields) if fields else None


@cache
def find_variable(name: str) -> Variable | None:
    """Return the environment variable of that name, or None."""
    fields = _find_fields("env", name)
    return Variable(name, **fields) if fields else None


@cache
def find_flag(name: str) -> Flag | None:
    """Return the ATC flag of that name (without dashes), or None."""
    fields = _find_fields("atc", name)
    return Flag(name, **fields) if fields else None


@cache
def find_argument(name: str) -> Argument | None:
    """Return the estimator argument of that name, or None."""
    fields = _find_fields("estimator", name)
    return Argument(name, **fields) if fields else None


def is_checked(section: str) -> bool:
    """Return whether the settings of a framework are known; they are passed through otherwise."""
    return bool(_load_records(section))


def is_passed_through(key: str) -> bool:
    """Return whether a key is of a section whose settings are passed through."""
    section = key.partition(".")[0]
    return section in FRAMEWORK_SECTIONS and not is_checked(section)


@cache
def find_setting(section: str, name: str) -> Setting | None:
    """Return the setting of a framework by its section and its path there, or None."""
    fields = _find_fields(section, name)
    return Setting(name, **fields) if fields else None


def list_settings(section: str, name: str, value: Any) -> Iterator[tuple[Path, Any]]:
    """Yield the settings in a value with their paths below ``name``: the leaves of tables, but for tables that are values themselves."""
    yield from _list_leaves(section, (name,), value)


def _list_leaves(section: str, path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value and is_checked(section) and find_setting(section, ".".join(path)) is None:
        for key, item in value.items():
            yield from _list_leaves(section, (*path, key), item)
    else:
        yield path[1:], value


def find_record_place(key: str, tail: Path = ()) -> tuple[str, str]:
    """Return the section and the name of a key's record; in a framework's section the name includes the path below the key."""
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
    """Return the key that a name of no option has in another section: one of the ``known`` keys, else one of the catalogue.

    Empty where there is none, and for the key of an option.
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
    """Return the names a section knows, in the catalogue's order, which is the order of every output."""
    return tuple(_load_records(section))


@cache
def record_positions(section: str) -> dict[str, int]:
    """Return the place of each name in the catalogue's order; a table of settings stands where the first of them does."""
    positions: dict[str, int] = {}
    for index, name in enumerate(_load_records(section)):
        positions.setdefault(name.partition(".")[0] if section in FRAMEWORK_SECTIONS else name, index)
    return positions


@cache
def options_by_spelling(surface: str) -> dict[str, str]:
    """Return, for each name that options have on another surface, the option it stands for."""
    options = {name: find_option(name) for name in record_names()}
    return {record.spelling[surface]: name for name, record in options.items() if record and surface in record.spelling}


@cache
def estimator_defaults() -> dict[str, Any]:
    """Return what NPUEstimator writes on every run where the argument is left out: it wins over the session_config."""
    defaults: dict[str, Any] = {}
    for name in record_names():
        option = find_option(name)
        if option and option.estimator_sends:
            plain = option.default_training if option.default is None else option.default
            defaults[name] = plain if option.estimator_default is None else option.estimator_default
    return defaults


@cache
def load_config_classes() -> dict[str, ConfigClass]:
    """Return the classes NPURunConfig is made with, itself first, by name."""
    return {name: ConfigClass(name, **record) for name, record in load_built_part("classes").items()}


def load_attributes() -> dict[str, dict[str, Any]]:
    """Return what is known of the attributes of ``global_options()`` apart from options, by table of ``attributes.toml`` and path."""
    attributes: dict[str, dict[str, Any]] = load_built_part("attributes")
    return attributes


def find_record_texts(section: str, name: str) -> dict[str, Any]:
    """Return the prose and the sources of a record: summary, doc, value_docs, source, ..."""
    packed = load_built_part("texts")[section].get(name)
    return loads(packed) if packed else {}  # noqa: S302 - part of this package


def find_unit_and_risk(setting: str, tail: Path = ()) -> tuple[str, tuple[str, ...]]:
    """Return the unit of a setting and what a change of it puts at risk, as far as the catalogue knows."""
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
    return unit, tuple(option.risk if option else risk)


@cache
def load_rules() -> tuple[Rule, ...]:
    """Return the rules between options."""
    return tuple(Rule(*record) for record in load_built_part("rules")["rules"])


@cache
def rules_by_trigger() -> dict[str, tuple[Rule, ...]]:
    """Return, for each key that can set off rules, the rules it sets off."""
    rules: dict[str, list[Rule]] = {}
    for rule in load_rules():
        for key in rule.triggers:
            rules.setdefault(key, []).append(rule)
    return {key: tuple(group) for key, group in rules.items()}


def find_severity(code: str) -> str:
    """Return how severe the page of a code calls its findings; what has no page is an error."""
    severities: dict[str, str] = load_built_part("severities")
    return severities.get(code, "error")


def build_finding(code: str, *fields: Any, **named: Any) -> Finding:
    """Return a finding with the severity that the page of its code has. The other fields are those of ``Finding``."""
    return Finding(code, *fields, **{"severity": find_severity(code), **named})


def load_advice() -> tuple[dict[str, Any], ...]:
    """Return the advice that no check can give: ``options``, ``when``, ``text``, ``source``."""
    return tuple(load_built_part("rule_texts")["advice"])


@cache
def load_excuses() -> dict[tuple[str, str], Any]:
    """Return, by key and code, the condition on which a deprecated option is needed, or a text does no harm."""
    excuses: dict[tuple[str, str], Any] = load_built_part("rules")["excuses"]
    return excuses


@cache
def load_env_twins() -> dict[str, tuple[str, ...]]:
    """Return, for each option, the environment variables that mean the same."""
    twins: dict[str, tuple[str, ...]] = load_built_part("rules")["twins"]
    return twins
