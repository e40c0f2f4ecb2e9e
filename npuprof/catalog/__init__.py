"""The catalogue of Ascend settings: options, variables, ATC flags, estimator arguments, rules.

Its source is the TOML files of this folder, one record per setting. The records drive code, checks,
help, the editor schema and the documentation. Parsing TOML takes ten times as long as a typical
command, so an installed npuprof contains the catalogue as marshalled values (``_built``, what
``build`` returns); in a checkout, ``system.checkout`` creates and caches them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache, cached_property
from marshal import loads

from npuprof import system
from npuprof.catalog.records import KINDS, Packed
from npuprof.catalog.records import Argument as Argument
from npuprof.catalog.records import ConfigClass as ConfigClass
from npuprof.catalog.records import Entry as Entry
from npuprof.catalog.records import Flag as Flag
from npuprof.catalog.records import Option as Option
from npuprof.catalog.records import Rule as Rule
from npuprof.catalog.records import Setting as Setting
from npuprof.catalog.records import TeamVariable as TeamVariable
from npuprof.catalog.records import Variable as Variable
from npuprof.document import keys
from npuprof.model import TYPE_CHECKING, Finding, Path, Record, TomlTable

if TYPE_CHECKING:
    from typing import Any, TypeVar

    Kind = TypeVar("Kind", bound=Record)

#: ``NPUPROF_...`` variables that are not options: metadata of an export, and settings of npuprof.
PROVENANCE_VARIABLES = ("BEFORE", "CONTEXT", "DIGEST", "PRESET_DIGEST", "PROFILE")
CONTROL_VARIABLES = ("DEBUG", "PAGER", "RECORD", "STORE", "TIMEOUT")


class Section(Record):
    """One section of presets: what its entries are called, and what the catalogue knows of them.

    The first four are described in ``sections.toml``. Any other section is named like its
    framework, a folder of ``frameworks``, and ``section.toml`` there describes it. It is
    ``dotted``: its names are paths below its tables, as in ``matmul.allow_hf32``, and its values
    are never converted to or from other sections. ``settings.toml`` lists its entries,
    ``variables.toml`` the variables that the framework reads first.

    ``framework.toml`` has the ``place`` of a framework in all output and the ``title`` that pages
    show. ``releases`` are what presets can select in [profile.versions], ``match`` and --framework,
    oldest first, from a ``source``. ``reads`` and ``deprecated`` of rows are sets of them, as in
    ``0.9.1..0.11.0, 0.20.2rc1..``; those in ``upstream.toml`` were read from the sources of each
    release and count more than those of rows by hand. If they are ``documented``, they come from
    documentation, and other releases may read the setting too. ``packages`` are a second numbering:
    the versions on PyPI of each release. A range is read in the numbering that its numbers belong
    to; one over packages selects the releases that have a package in it. ``pins`` are the names
    with which trees select a release: ``images`` by tag, ``packages`` in requirements,
    ``repositories`` whose tags are releases.

    ``place`` is the index of the section in all output. Listings print names after ``prefix``, and
    call an entry ``noun``. ``unknown`` is what the framework does with an unknown key, ``conflict``
    what it does with two settings that exclude each other, and ``otherwise`` what it does with
    wrong values, unless the settings have an ``otherwise``.
    ``tables`` maps keys of the framework to the sections that contain their values. ``option_call``
    is the code for settings without a ``call``, with ``NAME`` for the name: they take numbers as
    text too. ``launch`` is how scripts start the program: the fields of ``programs.Program``.
    A JSON file with one of ``file_tables`` at the top has the settings of the section, and all
    ``compulsory`` ones, as paths of conditions.
    """

    name: str
    place: int
    title: str = ""
    description: str = ""
    noun: str = "setting"
    prefix: str = ""
    dotted: bool = False
    unknown: str = ""
    conflict: str = ""
    otherwise: str = ""
    tables: dict[str, str] = {}
    option_call: str = ""
    launch: TomlTable = {}
    file_tables: tuple[str, ...] = ()
    compulsory: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of its entries in catalogue order, which is the order of every output."""
        return tuple(_load_records(self.name)[0])

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each key in catalogue order.

        A table of settings has the position of its first setting.
        """
        positions: dict[str, int] = {}
        for index, name in enumerate(self.names):
            positions.setdefault(name.partition(".")[0], index)
        return positions

    @property
    def is_exact(self) -> bool:
        """Whether its arguments have one spelling, and other programs may add some."""
        return self.launch.get("spelling") == "exact"

    @property
    def axis(self) -> str:
        """The axis of the releases that read its entries.

        Variables have that of their framework.
        """
        return self.name if self.dotted else "cann"

    def find(self, name: str) -> Entry | None:
        """Return the record of an entry, or None."""
        return find_record(self.name, name)

    def find_position(self, name: str) -> tuple[int, int, str]:
        """Return the sort key of a key in catalogue order; unknown keys come last, by name.

        Arguments of a program are in the order of their names.
        """
        place = 0 if self.launch else self.positions.get(name, len(self.positions))
        return self.place, place, name

    def format_key(self, name: str) -> str:
        """Return the full key of an entry."""
        return name if self.name == "options" else f"{self.name}.{name}"


@cache
def load_sections() -> dict[str, Section]:
    """Return the sections of presets by name, in catalogue order."""
    rows = load_built_part("axes")["sections"]
    return {name: Section(name, place, **row) for place, (name, row) in enumerate(rows.items())}


def load_built_part(name: str) -> Any:
    """Return one part of the built form: a section, ``texts``, ``rules``, ``pages``, ...

    ``build.build_parts`` describes the parts.
    """
    return system.load_built_part("catalog", name)


@cache
def _load_records(part: str, inner: str = "") -> tuple[dict[str, int], memoryview]:
    """Return the offset of each packed record of a part by name, and the bytes.

    A command unpacks only the records it needs.
    """
    built = load_built_part(part)
    packed: Packed = built[inner] if inner else built
    return dict(zip(packed[0].split(), packed[1], strict=True)), memoryview(packed[2])


def _unpack_record(name: str, part: str, inner: str = "") -> Any:
    starts, packed = _load_records(part, inner)
    return loads(packed[starts[name] :]) if name in starts else None  # noqa: S302 - part of this package


@cache
def find_record(section: str, name: str) -> Entry | None:
    """Return the record of a section by that name, or another flag of it; None if unknown."""
    fields = _unpack_record(name, section) if section in load_sections() else None
    if not fields and (flags := list_flags(section)):
        if not load_sections()[section].is_exact:
            head, dot, rest = name.partition(".")
            name = f"{head.replace('_', '-')}{dot}{rest}"
        name, _ = flags.get(f"--{name}", (name, True))
        fields = _unpack_record(name, section)
    if not fields:
        return None
    record = object.__new__(KINDS.get(section, Setting))
    record.__dict__.update(fields, name=name)  # unchecked: the rows are part of this package
    return record


def _find_entry_of(kind: type[Kind], section: str, name: str) -> Kind | None:
    record = find_record(section, name)
    return record if isinstance(record, kind) else None


def list_flags(section: str) -> dict[str, tuple[str, bool]]:
    """Return the argument of each flag of a program, and whether the flag switches it on.

    They are the flags of all releases.
    """
    known = load_sections().get(section)
    return load_built_part("flags")[section] if known and known.launch else {}


@cache
def find_option(name: str) -> Option | None:
    """Return the session option of that name, or None."""
    return _find_entry_of(Option, "options", name)


@cache
def find_variable(name: str) -> Variable | None:
    """Return the environment variable of that name, or None."""
    return _find_entry_of(Variable, "env", name)


@cache
def find_flag(name: str) -> Flag | None:
    """Return the ATC flag of that name (without dashes), or None."""
    return _find_entry_of(Flag, "atc", name)


@cache
def find_argument(name: str) -> Argument | None:
    """Return the estimator argument of that name, or None."""
    return _find_entry_of(Argument, "estimator", name)


@cache
def is_argument(key: str) -> bool:
    """Return whether a key is an argument of a program."""
    section = keys.split_section_and_name(key)[0]
    return section in load_sections() and bool(load_sections()[section].launch)


@cache
def find_setting(section: str, name: str) -> Setting | None:
    """Return the setting of a framework by its section and path, or None."""
    return _find_entry_of(Setting, section, name)


@cache
def list_file_sections() -> dict[str, tuple[str, ...]]:
    """Return the tables at the top of JSON files by the section whose settings the files have."""
    sections = load_sections().values()
    return {section.name: section.file_tables for section in sections if section.file_tables}


def find_file_section(names: Collection[str]) -> str:
    """Return the section of a JSON file with some names at the top, or of its text; else empty."""
    tables = list_file_sections().items()
    return next((section for section, each in tables if any(map(names.__contains__, each))), "")


def list_settings(section: str, name: str, value: Any) -> Iterator[tuple[Path, Any]]:
    """Yield the settings in a value with their paths below ``name``.

    They are the leaves of its tables, also of those in JSON, and tables that are values themselves.
    An empty table of a group has none.
    """
    of_program, record = is_argument(f"{section}.{name}"), find_setting(section, name)
    if of_program and record and record.closed and isinstance(value, str):
        value = _read_table(value)
    below = _list_paths_below(section).get(name, ()) if isinstance(value, dict) else ()
    if (
        not isinstance(value, dict)
        or not (value or below)
        or (of_program and not below)
        or (record and not (of_program and len(below) > 1))
    ):
        yield (), value
        return
    for key, item in value.items():
        yield from (
            ((key, *path), leaf) for path, leaf in list_settings(section, f"{name}.{key}", item)
        )


def _read_table(text: str) -> Any:
    """Return the table in a JSON text, without what is null; another text unchanged."""
    import json

    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(table, dict):
        return text
    return {name: item for name, item in table.items() if item is not None}


def list_settings_below(section: str, name: str) -> list[Setting]:
    """Return the settings of a framework at a path or below it; none of another section."""
    paths = _list_paths_below(section).get(name, ())
    return list(filter(None, (find_setting(section, path) for path in paths)))


@cache
def _list_paths_below(section: str) -> dict[str, list[str]]:
    """Return the names of a section by each path above them, and by themselves."""
    below: dict[str, list[str]] = {}
    known = load_sections().get(section)
    for name in known.names if known and known.dotted else ():
        path = name
        while path:
            below.setdefault(path, []).append(name)
            path = path.rpartition(".")[0]
    return below


@cache
def find_record_place(key: str, tail: Path = ()) -> tuple[str, str]:
    """Return section and name of a key's record.

    The name of a framework setting includes the path below the key.
    """
    section, name = keys.split_section_and_name(key)
    names = (".".join(map(str, (name, *tail[:end]))) for end in range(len(tail) + 1))
    return section, next((dotted for dotted in names if find_setting(section, dotted)), name)


def find_key_record(key: str) -> Entry | None:
    """Return the record of a full key, or None."""
    return find_record(*keys.split_section_and_name(key))


def find_key_elsewhere(key: str, known: Collection[str] = ()) -> str:
    """Return the key that an unknown option name has in another section.

    That is one of the ``known`` keys, else one of the catalogue. Empty if there is none, and for
    the key of an option.
    """
    if "." in key or key in known or find_option(key) is not None:
        return ""
    full_keys = {
        section.format_key(key): key in section.positions for section in load_sections().values()
    }
    found = [full for full in full_keys if full in known] or [
        full for full, is_listed in full_keys.items() if is_listed
    ]
    return found[0] if found else ""


def record_names(section: str = "options") -> tuple[str, ...]:
    """Return the names of a section in catalogue order, which is the order of every output."""
    return load_sections()[section].names


def list_records(kind: type[Kind], section: str = "options") -> Iterator[Kind]:
    """Return the records of a section, which has one kind of them, in catalogue order."""
    return filter(None, (_find_entry_of(kind, section, name) for name in record_names(section)))


@cache
def options_by_spelling(surface: str) -> dict[str, str]:
    """Return the option for each name that options have on another surface."""
    return {
        option.spelling[surface]: option.name
        for option in list_records(Option)
        if surface in option.spelling
    }


@cache
def estimator_defaults() -> TomlTable:
    """Return the values that NPUEstimator sets on every run if the argument is missing.

    They override the session_config.
    """
    defaults = {}
    for option in list_records(Option):
        if option.estimator_sends:
            plain = option.default_training if option.default is None else option.default
            defaults[option.name] = (
                plain if option.estimator_default is None else option.estimator_default
            )
    return defaults


@cache
def load_config_classes() -> dict[str, ConfigClass]:
    """Return the classes for arguments of NPURunConfig by name, NPURunConfig first."""
    return {
        name: ConfigClass(name, **record) for name, record in load_built_part("classes").items()
    }


def load_attributes() -> dict[str, TomlTable]:
    """Return the attributes of ``global_options()`` that are not options, by table and path.

    The tables are those of ``attributes.toml``.
    """
    attributes: dict[str, TomlTable] = load_built_part("attributes")
    return attributes


def find_record_texts(section: str, name: str) -> TomlTable:
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
    """Return the codes of the rules that settings can break.

    One of the triggers and all required settings of such a rule are among the names.
    """
    known = frozenset(names)
    index = load_built_part("rules")
    triggered = {code for name in names for code in index["codes_by_trigger"].get(name, ())}
    return sorted(code for code in triggered if known.issuperset(index["required"][code]))


@cache
def list_outside_variables() -> frozenset[str]:
    """Return the variables that a launcher or the process itself sets, not a preset."""
    return frozenset(load_built_part("rules")["outside"])


@cache
def find_severity(code: str) -> str:
    """Return the severity of a code's findings according to its page.

    Error for codes without a page.
    """
    severities: dict[str, str] = load_built_part("severities")
    return severities.get(code, "error")


def build_finding(code: str, *fields: Any, **named: Any) -> Finding:
    """Return a finding with the severity of its code's page.

    The other fields are those of ``Finding``.
    """
    return Finding(code, *fields, **{"severity": find_severity(code), **named})


def load_advice() -> tuple[TomlTable, ...]:
    """Return advice that no check can give: ``options``, ``when``, ``text``, ``source``."""
    return tuple(load_built_part("rule_texts")["advice"])


@cache
def load_excuses() -> dict[tuple[str, str], Any]:
    """Return, by key and code, the condition under which a setting is not reported.

    A deprecated option may be needed, and a text harmless.
    """
    excuses: dict[tuple[str, str], Any] = load_built_part("rules")["excuses"]
    return excuses


@cache
def load_equivalent_variables() -> dict[str, tuple[str, ...]]:
    """Return the equivalent environment variables of each option."""
    equivalents: dict[str, tuple[str, ...]] = load_built_part("rules")["equivalents"]
    return equivalents
