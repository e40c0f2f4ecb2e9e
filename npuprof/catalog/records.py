"""What the built catalogue contains: records of settings and rules, and versions as sort keys."""

from __future__ import annotations

import re
from operator import eq, ge, gt, le, lt, ne

from npuprof.document.keys import format_plain_value, format_toml_value
from npuprof.model import TYPE_CHECKING, Origin, Record, TomlTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

#: Records packed by ``build``: their names, separated by spaces, the offset of each, and the bytes.
Packed = tuple[str, tuple[int, ...], bytes]

#: A version as a sort key; keys sort by date.
Key = tuple[int, int, int, int, int, int]

_VERSION = (
    r"(?P<major>\d+)(?:\.(?P<minor>\d+))?(?:\.(?:RC(?P<candidate>\d+)|(?P<patch>\d+)))?"
    r"(?:[.-]?(?:alpha|beta)(?P<preview>\d*))?"
)
_PACKAGE_VERSION = (
    r"v?(?P<major>\d{1,6})(?:\.(?P<minor>\d{1,6}))?(?:\.(?P<patch>\d{1,6}))?"
    r"(?:[.-]?(?P<stage>alpha|beta|rc|post)\.?(?P<number>\d{0,6})|\.(?P<fourth>\d{1,6}))?"
)
_FINAL_STAGE = 10**6


class Entry(Record):
    """One entry of a section.

    ``states`` has one letter for each release of the axis, oldest first (``Y`` read, ``.`` not
    read, ``?`` unknown), and is empty if all releases read the setting as far as known.
    ``default_since`` has each default by the first release with it.
    ``deprecated`` has ``Y`` for the releases in which it is deprecated, ``no_effect`` for those
    that read the value and do nothing with it. ``replaced_by`` is the key of its successor,
    ``successor_states`` are the ``states`` of that; ``successor_values`` are its values for those
    here, None if equal ones agree.

    ``choices``, ``minimum``, ``maximum`` and ``pattern`` limit the value, ``product_range`` and
    ``product_pattern`` more narrowly on a family. ``tolerated`` are values of old scripts or old
    spellings, ``doubtful_values`` those that the manual excludes and the reader accepts; these and
    ``value_products`` apply to the members of a structured value too. With a ``separator``, several
    values may be joined: as many as ``default_count`` allows, on a family ``product_count``.
    ``reader`` is the function of ``readers.toml`` that parses the text.

    ``structure`` names the structured form of a compound text, or the format of a named file.
    ``path_characters`` are the characters that the manual allows in a path, as the inside of a
    regular expression class, empty if it lists none. ``risk`` is what a change may affect, for
    settings without an equivalent option. ``numbered`` choices are codes, not booleans: 0 is not
    "off", nor 1 "on".
    """

    name: str
    kind: str
    choices: tuple[Any, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    default: Any = None
    default_since: TomlTable = {}
    unit: str = ""
    pattern: str = ""
    structure: str = ""
    separator: str = ""
    reader: str = ""
    tolerated: tuple[Any, ...] = ()
    doubtful_values: dict[str, str] = {}
    choices_since: dict[str, str] = {}
    default_count: tuple[int, int] | tuple[()] = ()
    products: tuple[str, ...] = ()
    value_products: dict[str, tuple[str, ...]] = {}
    product_range: dict[str, tuple[int, int]] = {}
    product_count: dict[str, tuple[int, int]] = {}
    product_pattern: dict[str, str] = {}
    states: str = ""
    deprecated: str = ""
    no_effect: str = ""
    replaced_by: str = ""
    successor_states: str = ""
    successor_values: TomlTable | None = None
    path_characters: str = ""
    risk: tuple[str, ...] = ()
    numbered: bool = False
    executes: str | bool = False
    protects: str = ""
    kept_by: tuple[str, ...] = ()


class Option(Entry):
    """One session option.

    ``field`` is the protobuf field that the adapter reads (``b``, ``i``, ``s``), None if
    nothing reads the key. ``lax_pattern`` is what the adapter accepts beyond the documentation.
    ``level`` is the part of the engine that receives the option (``init``: once per process).
    ``spelling`` is the name on each other surface, ``surface_values`` the values on a
    surface that writes them differently (a missing value cannot be written there), and
    ``class_checks`` what the class of a surface validates instead of the choices: ``nothing``,
    or ``choices or None``. Fields that are not listed here, such as ``summary`` and ``source``,
    are texts (``find_record_texts``).

    Per surface: ``not_carried`` is the reason why a surface lacks the option, ``always`` the
    fixed value of a surface, ``closed_by`` the required end of a text, ``engine_choices`` the
    values that the engine supports among those the surface accepts. NPUEstimator
    ``estimator_sends`` the option if the argument is missing, with ``estimator_default`` unless
    that is the default; the option may be lost without the argument ``needs_argument``;
    ``estimator_bytes`` is stored unchanged. ``field_until`` maps releases to fields that the
    adapter read before. ``repeated_at_start`` is required in the session of initialize_system
    as well. ``surface_states`` are the ``states`` of a surface with its own history, and
    ``surface_range`` limits its numbers.

    Content: ``listed`` are the documented names of a list, ``names`` their kind (a list of
    ``names.toml``). Other tools share a ``common_name``, so the name alone does not indicate
    Ascend.

    ``topic`` is the purpose in one or two words, unless its page gives it, ``value_topics`` the
    purpose of each value: they name presets created from scripts.
    """

    page: str = ""
    field: str | None = None
    lax_pattern: str = ""
    default_training: Any = None
    default_inference: Any = None
    default_by_product: TomlTable = {}
    scenarios: tuple[str, ...] = ()
    choices_until: dict[str, str] = {}
    on_bad_value: str = ""
    on_wrong_field: str = ""
    level: str = ""
    per_process: bool = False
    spelling: dict[str, str] = {}
    surface_values: dict[str, TomlTable] = {}
    class_checks: dict[str, str] = {}
    env: tuple[str, ...] = ()
    not_carried: dict[str, str] = {}
    always: TomlTable = {}
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
    listed: tuple[str, ...] = ()
    names: str = ""
    common_name: bool = False
    topic: str = ""
    value_topics: dict[str, str] = {}

    @property
    def value_field(self) -> str:
        """The protobuf field for values of its type, also if nothing reads the key."""
        return self.field or ("b" if self.kind == "bool" else "s")

    @property
    def flag(self) -> str:
        """The equivalent ATC flag without dashes, empty if there is none."""
        return self.spelling.get("atc", "").removeprefix("--")

    def write_on(self, surface: str, value: Any) -> tuple[bool, Any]:
        """Return whether a surface can express a value, and the value in that surface's form."""
        table = self.surface_values.get(surface)
        if table is None:
            return True, value
        known = format_plain_value(value)
        return known in table, table.get(known)

    def is_always(self, surface: str, value: Any) -> bool:
        """Return whether a surface always has this value."""
        fixed = self.always.get(surface)
        return type(value) is type(fixed) and value == fixed


class Variable(Entry):
    """One environment variable.

    ``freeze`` is who may set it: ``ok`` a preset, ``site`` the machine, ``launcher`` the job,
    ``never`` only the process itself. ``session_option`` is its documented equivalent.
    ``pattern_before`` applies to releases before the given one. ``topic`` is the purpose, unless
    its ``scope`` gives it. ``otherwise`` is what the reader does with any other value. ``executes``
    is how it affects code execution or loading, False if it does not. ``protects`` is what is lost
    with other values than ``kept_by``.

    ``framework`` is the (first) framework that reads it, ``parsed_as`` a row of ``reads.toml`` that
    tells how. ``axis`` has the releases of the ``states`` if they are not those of the framework. A
    ``set_env.sh`` in a folder whose path contains a word of ``overwritten_in`` overwrites it. A
    text of kind ``pairs`` consists of ``items``, ``joined`` by a separator, each a key and a value
    separated by ``pair``; it may begin with one of the words in ``first``, whose key in the table
    form is ``first_name``. ``unknown`` is what the reader does with an unknown key. Other programs
    share a ``common_name``. A text that fits the pattern ``form`` needs no trust, although a shell
    would act on its characters. ``ascending`` is what its reader does with other lists of numbers.
    Programs read ``in_container`` in place of a variable that is read when a container is created.
    ``cuda_names`` are its counterparts for CUDA. After a call named in ``read_by_calls``, a Python
    process does not read it again.
    """

    framework: str = "cann"
    axis: str = ""
    scope: str = ""
    session_option: str = ""
    twin_values: dict[str, str] = {}
    freeze: str = "ok"
    advice: str = ""
    launcher: str = ""
    per_process: bool = False
    multiple_of: int = 1
    pattern_before: dict[str, str] = {}
    form: str = ""
    topic: str = ""
    parsed_as: str = ""
    otherwise: str = ""
    overwritten_in: tuple[str, ...] = ()
    joined: str = ""
    pair: str = ""
    items: TomlTable = {}
    first: tuple[str, ...] = ()
    ascending: str = ""
    in_container: str = ""
    cuda_names: tuple[str, ...] = ()
    read_by_calls: tuple[str, ...] = ()
    first_name: str = ""
    unknown: str = ""
    common_name: bool = False


class TeamVariable(Variable):
    """A variable that a team declares in npuprof.toml, with its description.

    ``origin`` is the declaration. The catalogue stays without it: declaring grants no trust.
    """

    framework: str = ""
    doc: str = ""
    origin: Origin | None = None

    @property
    def signature(self) -> str:
        """The part of the declaration that trust covers: kind, values and range."""
        values = f" {format_toml_value(list(self.choices))}" if self.kind == "enum" else ""
        has_range = self.minimum is not None or self.maximum is not None
        return self.kind + values + f" {self.minimum}..{self.maximum}" * has_range

    @property
    def texts(self) -> TomlTable:
        """The texts of the record, as ``find_record_texts`` returns them for others."""
        return {"summary": self.doc or self.signature, "source": (str(self.origin),)}


#: The variables that a team declares, by name.
TeamVariables = dict[str, TeamVariable]
NONE_DECLARED: TeamVariables = {}


class Flag(Entry):
    """One flag of the ATC compiler, named without dashes.

    A flag of kind ``chip`` selects the chip to convert for.

    ``twin`` is the equivalent session option. ``required`` flags are needed by each conversion. Two
    flags that are both ``stops`` and exclude each other end the conversion; otherwise one overrides
    the other. ``requires`` lists required flags: ``--name``, some of its values (``--name=a|b``),
    none of them (``--name!=a|b``), or alternatives (``--a or --b``); it does not apply to the
    values ``requires_unless``. If it is not met, the conversion ends if the flag ``stops_without``
    is set. ``value_conflicts`` are conflicts of one value. A joined list has ``one_per`` part of
    another flag. In shapes, the sizes are those of ``filled`` open dimensions, one of them the
    first; the open dimensions are those of the flag with the shapes. The ``doubtful_values`` of the
    equivalent option do not apply.
    """

    required: bool = False
    products_not: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    requires_unless: tuple[str, ...] = ()
    stops_without: bool = False
    conflicts: tuple[str, ...] = ()
    value_conflicts: dict[str, tuple[str, ...]] = {}
    stops: bool = False
    twin: str = ""
    one_per: str = ""
    filled: dict[str, int] = {}


class Argument(Entry):
    """One argument of NPURunConfig that is not a session option.

    Kind ``object`` is a Python object of the script.

    ``run_config`` is set if tf.estimator.RunConfig has the argument too. Floats are accepted as
    integers unless ``whole``.
    """

    run_config: bool = False
    whole: bool = False


class ConfigClass(Record):
    """A class that NPURunConfig takes as an argument, or NPURunConfig itself.

    The fields are documented in ``classes.toml``.
    """

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
        """The argument that takes an object of the class, without its prefix.

        Empty for NPURunConfig.
        """
        return self.given_as or self.argument.rpartition(".")[2]


class Setting(Entry):
    """One setting of a framework; ``name`` is its path in the section: ``matmul.allow_hf32``.

    ``kind`` is ``bool``, ``int``, ``float``, ``str``, ``path``, ``list`` or ``json`` (a table that
    is not checked). ``call`` is the code that sets it, with ``{}`` for the value; without a call,
    it is a key of the framework's own table of options. Settings whose calls differ only in the
    last argument are set by one call. ``otherwise`` is what the framework does with other values.
    ``counterparts`` are equivalent options of [options] and variables (``env.NAME``), each with the
    agreeing values for each value here, as text (the best first), or a pattern with ``{}`` for the
    value here; empty if equal values agree. A table with ``closed`` keys is rejected if it contains
    another key; unknown keys of other tables are ignored. The framework evaluates a ``truthy``
    switch as a Python truth value: any non-empty text is true.

    Arguments have ``aliases`` and ``negations``; ``flag_reads`` and ``choice_reads`` are the
    ``states`` of those that not all releases have, ``unlimited`` of any value. ``items`` is the
    kind of several values, ``kinds`` are those of any; a ``bare`` or ``repeated`` one has none or
    more. ``above`` and ``below`` are exclusive bounds. ``parsed_as`` size, 32k is a number; as
    json, a text is JSON. ``npu_resets`` is the value that vLLM-Ascend sets in its place.
    ``always_set`` are the ``states`` of a key that each configuration has, with a value other than
    null.
    """

    aliases: tuple[str, ...] = ()
    negations: tuple[str, ...] = ()
    flag_reads: dict[str, str] = {}
    choice_reads: dict[str, str] = {}
    unlimited: str = ""
    items: str = ""
    kinds: tuple[str, ...] = ()
    optional: bool = False
    bare: bool = False
    repeated: bool = False
    above: float | None = None
    below: float | None = None
    parsed_as: str = ""
    npu_resets: Any = None
    always_set: str = ""
    call: str = ""
    otherwise: str = ""
    requires: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    counterparts: TomlTable = {}
    closed: bool = False
    truthy: bool = False


#: The kinds of records of the sections that belong to no framework.
KINDS: dict[str, type[Entry]] = {
    "options": Option,
    "env": Variable,
    "estimator": Argument,
    "atc": Flag,
}


class Rule(Record):
    """A rule between options: broken if ``when`` is true and ``needs`` (if any) is false.

    ``reads`` are all settings in the conditions, ``triggers`` those in ``when``: a preset that sets
    no trigger cannot break the rule. ``axes`` are ``product`` and the release axes on which the
    result may depend. ``compares`` are the settings whose values are compared; the others are only
    tested for being set. ``atc`` is what ATC does if the rule is broken, empty for a rule of the
    TensorFlow adapter that ATC lacks.
    """

    code: str
    options: tuple[str, ...]
    when: Any
    needs: Any
    what: str
    why: str
    hint: str
    reads: tuple[str, ...]
    triggers: tuple[str, ...]
    axes: tuple[str, ...]
    compares: tuple[str, ...]
    atc: str


def parse_release_version(version: str) -> Key | None:
    """Return the sort key of a version, or None if it is invalid.

    20.1 and 20.2 came before 5.0.1; release candidates and alphas come before their release.
    """
    parts = version.strip().split(".")
    # the common case, without a pattern
    if len(parts) <= 3 and all(
        part.isdecimal() and part.isascii() and len(part) < 7 for part in parts
    ):
        major, minor, patch = (*map(int, parts), 0, 0)[:3]
        return int(major < 20), major, minor, 1, patch, _FINAL_STAGE
    match = re.fullmatch(_VERSION, version.strip(), re.IGNORECASE | re.ASCII)
    if not match or len(version) > 40:
        return None
    major = int(match["major"])
    candidate = match["candidate"]
    return (
        int(major < 20),
        major,
        int(match["minor"] or 0),
        int(not candidate),
        int(candidate or match["patch"] or 0),
        _FINAL_STAGE if match["preview"] is None else int(match["preview"] or 0),
    )


def parse_framework_version(version: str) -> Key | None:
    """Return the sort key of a framework or package version (``2.7.1.post8``), or None."""
    match = re.fullmatch(_PACKAGE_VERSION, version.strip(), re.IGNORECASE | re.ASCII)
    if match is None:
        return None
    return (
        0,
        int(match["major"]),
        int(match["minor"] or 0),
        int(match["patch"] or 0),
        ("alpha", "beta", "rc", "", "post").index((match["stage"] or "").lower())
        + 2 * bool(match["fourth"]),
        int(match["fourth"] or match["number"] or 0),
    )


#: The comparison operators of ranges and conditions.
OPERATORS = {">=": ge, "<=": le, "==": eq, "!=": ne, "<": lt, ">": gt}


class Axis(Record):
    """The releases of CANN or of a framework with their sort keys, oldest first.

    ``parse`` returns the sort key of a version.

    ``packages`` have a separate numbering: each has a sort key and its release. ``documented`` is
    set if the first releases of variables are known from documentation only. ``runs_on`` has the
    releases of other frameworks that a release is made for, by framework.
    """

    parse: Callable[[str], Key | None]
    releases: dict[str, Key]
    packages: dict[str, tuple[Key, str]] = {}
    documented: bool = False
    runs_on: dict[str, dict[str, str]] = {}

    def parse_reads(self, text: str, outside: str = ".") -> str:
        """Return a set of ranges (``0.9.1..0.11.0, 0.13.0rc2..``) as one letter for each release.

        The letter is ``Y`` in the set, both ends included, ``?`` in a range with a question mark
        (``8.0.0..8.5.0?``, unknown), and ``outside`` elsewhere. ``never`` is the empty set. Raises
        ValueError for an unknown release.
        """
        known: list[Key | None] = list(self.releases.values())
        letters = [outside] * len(known)
        for part in text.split(",") if text != "never" else ():
            first, dots, last = part.strip().removesuffix("?").partition("..")
            try:
                start = known.index(self.parse(first)) if first or not dots else 0
                end = known.index(self.parse(last)) if last else len(known) - 1 if dots else start
            except ValueError:
                raise ValueError(f"unknown release in {part.strip()!r}") from None
            if end < start:
                raise ValueError(f"reversed range {part.strip()!r}")
            letter = "?" if part.endswith("?") else "Y"
            letters[start : end + 1] = letter * (end + 1 - start)
        return "".join(letters)

    def is_newer(self, spec: str) -> bool:
        """Return whether a range, or a release, begins after the newest known one."""
        for operator, bound in (self.releases and self.parse_range(spec)) or ():
            keys = list(self.releases.values())
            if self.packages and bound[:2] <= self.newest_package:
                keys = [key for key, _ in self.packages.values()]
            is_beyond = bound > max(keys) or (operator == ">" and bound == max(keys))
            if is_beyond and operator in (">", ">=", "=="):
                return True
        return False

    def find_release(self, version: str) -> str | None:
        """Return the release for a user's version, None if unknown.

        ``8.0`` is 8.0.0, ``8.1`` the newest 8.1, a package its release.
        """
        requested = self.parse(version.removeprefix("CANN").strip())
        if requested is None:
            return None
        named = [name for name, key in self.releases.items() if key == requested]
        named += [release for key, release in self.packages.values() if key == requested]
        if named:
            return named[0]
        same = [name for name, key in self.releases.items() if key[:3] == requested[:3]]
        return same[-1] if same and re.fullmatch(r"\d+\.\d+", version.strip()) else None

    def find_releases_in_range(self, spec: str) -> tuple[str, ...] | None:
        """Return the releases in a range, or None if ``spec`` is not a range."""
        clauses = self.parse_range(spec)
        if clauses is None:
            return None
        oldest = next(iter(self.releases.values()), ())
        of_packages = [clause for clause in clauses if self.packages and clause[1][:2] < oldest[:2]]
        others = [clause for clause in clauses if clause not in of_packages]
        matched = (
            {release for key, release in self.packages.values() if is_inside(key, of_packages)}
            if of_packages
            else None
        )
        return tuple(
            name
            for name, key in self.releases.items()
            if is_inside(key, others) and (matched is None or name in matched)
        )

    def parse_range(self, spec: str) -> list[tuple[str, Key]] | None:
        """Return operators and bounds of a range.

        None if it is invalid, or a lower bound fits no numbering of the framework.
        """
        clauses = []
        oldest = next(iter(self.releases.values()), ())
        for clause in spec.split(","):
            text = clause.strip()
            version = text.lstrip("<>=!")
            op = text.removesuffix(version) or "=="
            bound = self.parse(version)
            if (
                op not in OPERATORS
                or bound is None
                # <3 is an upper bound of packages, of which 3 is none
                or (self.packages and op[0] != "<" and self.newest_package < bound[:2] < oldest[:2])
            ):
                return None
            clauses.append((op, bound))
        return clauses

    @property
    def newest_package(self) -> tuple[int, ...]:
        """The start of the sort key of the newest package, empty if there are none."""
        return max((key[:2] for key, _ in self.packages.values()), default=())


def is_inside(version: Key, clauses: Iterable[tuple[str, Key]]) -> bool:
    """Return whether a sort key satisfies every clause of a range."""
    return all(OPERATORS[op](version, bound) for op, bound in clauses)
