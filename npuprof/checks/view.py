"""The checks' view of a config: settings, selected releases and products, places of values."""

from __future__ import annotations

from functools import cache, cached_property, lru_cache

from npuprof import catalog
from npuprof.catalog import condition, releases, values
from npuprof.catalog.condition import Operand
from npuprof.catalog.records import NONE_DECLARED, TeamVariables
from npuprof.catalog.targets import find_surface
from npuprof.document import keys
from npuprof.model import (
    FRAMEWORK_SECTIONS,
    TYPE_CHECKING,
    Context,
    Finding,
    Fix,
    Origin,
    Path,
    Record,
)
from npuprof.resolve import lineages
from npuprof.resolve.config import Config

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Mapping, Sequence
    from typing import Any

    from npuprof.checks.accepted import Acceptance, Accepted
    from npuprof.resolve.contexts import Region

    #: Products or releases by axis: ``product``, ``cann`` or a framework. None is an unknown
    #: product.
    Spans = Mapping[str, tuple[str | None, ...]]
    #: Frameworks with their releases.
    Versions = tuple[tuple[str, tuple[str, ...]], ...]


#: Codes of unknown options, variables, arguments, flags, settings and attributes, and of unread and
#: missing ones.
RELEASE_CODES = frozenset(("NP201", "NP206", "NP208", "NP209", "NP212", "NP404", "NP812", "NP837"))
#: Codes of values; which ones a program takes differs from release to release.
VALUE_CODES = frozenset(("NP202", "NP203"))


def limit_severity(code: str, severity: str, key: str, uncertain: Container[str]) -> str:
    """Return the severity of a finding: not an error if an unknown release may not have it.

    That may read a name which others do not read, or one that the catalogue has in no section.
    A recorded misspelling is one in any release. ``uncertain`` are the axes whose release is
    unknown.
    """
    if severity != "error" or not uncertain:
        return severity
    if catalog.is_argument(key) and (
        code in VALUE_CODES or (code in RELEASE_CODES and catalog.find_key_record(key))
    ):
        return "warning" if releases.find_name_axis(key) in uncertain else severity
    if code not in RELEASE_CODES:
        return severity
    if code == "NP206":
        from npuprof.catalog.execution import list_misspelt_names

        if key.removeprefix("env.") in list_misspelt_names():
            return severity
    plain = key.partition(".")[2] or key
    sections = catalog.load_sections().values()
    is_open = code in ("NP404", "NP812") or all(plain not in each.positions for each in sections)
    return "warning" if is_open and releases.find_name_axis(key) in uncertain else severity


def select_all(reads: Iterable[str]) -> bool:
    """Select every check, whatever settings it reads: the default of ``about``."""
    return True


class _PageSeverity:
    """The default severity of a fault: that of its code's page."""

    def __get__(self, fault: Any, owner: type) -> str:
        return catalog.find_severity(fault.code)


class Fault(Record):
    """A fault of a value, without its place.

    ``tail`` is the path below the setting, ``fix`` and ``certainty`` as in a finding.
    """

    code: str
    message: str
    why: str = ""
    hint: str = ""
    tail: Path = ()
    severity: str = _PageSeverity()  # type: ignore[assignment]
    fix: Fix | None = None
    certainty: str = "certain"

    def place(self, **fields: Any) -> Finding:
        """Return it as a finding without a fix; ``fields`` are those of its place."""
        text = (self.code, self.message, self.why, self.hint)
        return Finding(*text, severity=self.severity, certainty=self.certainty, **fields)


class SettingFault(Record):
    """A fault of one setting, and the target that cannot write it if none was requested."""

    key: str
    fault: Fault
    target: str = ""


class ValueFaults(Record):
    """The faults of settings taken alone, by what they depend on.

    ``plain`` depend on the value only, ``scoped`` also on releases, products and scenario.
    ``shared`` values belong in no shared preset, ``unwritable`` ones in none for some target.
    """

    plain: list[SettingFault]
    scoped: list[SettingFault]
    shared: list[SettingFault]
    unwritable: list[SettingFault]


class ConditionalFinding(Record):
    """A finding, and the conditions under which it applies; none if it always does."""

    finding: Finding
    conditions: tuple[str, ...] = ()


class Scope(Record):
    """The subject of a check: scenario, CANN releases, product families and surface.

    ``versions`` are the framework releases to check for, ``newer`` the axes whose release is newer
    than all known ones, or unknown, ``declared`` the team's variables. Many configs share a scope.
    """

    scenario: str | None
    releases: tuple[str, ...]
    families: tuple[str, ...]
    surface: str = ""
    versions: Versions = ()
    newer: tuple[str, ...] = ()
    declared: TeamVariables = NONE_DECLARED

    def __hash__(self) -> int:  # faster than hashing all fields of a record
        return hash((self.scenario, self.releases, self.families, self.surface, self.versions))


def build_asked_scope(
    asked: Context,
    scenario: str | None = None,
    cann: str | None = None,
    meant: tuple[str, ...] = (),
    versions: Versions = (),
) -> Scope:
    """Return the scope of a requested context, of a preset if its claims are known."""
    covered = releases.list_covered_releases(asked.cann, cann)
    named = (asked.product,) if asked.product else meant
    versions = versions or tuple((name, (release,)) for name, release in asked.versions)
    return _build_scope(scenario, covered, named, find_surface(asked.target), versions)


@cache
def _build_scope(
    scenario: str | None,
    covered: tuple[str, ...],
    named: tuple[str, ...],
    surface: str,
    versions: Versions,
) -> Scope:
    from npuprof.catalog import products

    families = dict.fromkeys(
        products.find_product_family(known)
        for name in named
        if (known := products.find_product(name))  # NP403 reports unknown ones
    )
    return Scope(scenario, covered, tuple(families), surface, versions)


@cache
def _list_newer_axes(ranges: tuple[tuple[str, str], ...], requested: Context) -> tuple[str, ...]:
    """Return the axes whose release is newer than all known ones."""
    newer = [
        axis
        for axis, spec in ranges
        if requested.find_value(axis) is None and releases.is_newer(spec, axis)
    ]
    return (*dict(requested.newer), *newer)


@lru_cache(1024)  # presets of one kind set the same keys
def has_framework_settings(names: Collection[str]) -> bool:
    """Return whether some settings belong to a framework section."""
    prefixes = tuple(
        section.prefix for section in catalog.load_sections().values() if section.dotted
    )
    return any(name.startswith(prefixes) for name in names)


@cache
def list_chip_settings() -> tuple[str, ...]:
    """Return the settings that select the chip of a conversion: flags and equivalent options."""
    flags = [flag for flag in catalog.list_records(catalog.Flag, "atc") if flag.kind == "chip"]
    return tuple(
        key for flag in flags for key in (keys.format_full_key("atc", flag.name), flag.twin) if key
    )


def find_chip(settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the setting that selects the chip of a conversion, and the chip's family, or None."""
    from npuprof.catalog import products

    for key in list_chip_settings():
        value = settings.get(key)
        if isinstance(value, str) and (family := products.find_chip_family(value)):
            return key, family
    return None


@cache
def narrow_scope(scope: Scope, family: str) -> Scope:
    """Return a scope reduced to the family of the conversion's chip."""
    from npuprof.catalog import products

    is_outside = scope.families and family not in scope.families
    if is_outside or products.load_products()[family].get("untabled"):
        return scope
    return scope._replace(families=(family,))


class View:
    """A config with the queries that checks need.

    ``releases`` are the requested ones, else those of the profile's range, else none; likewise
    ``families``, the product families; or both are those of a ``region``. ``memory`` caches results
    for this scope and these ranges; all configs of a store share it.
    """

    #: Whether an unmet requirement that cannot be decided is a finding.
    reports_undecided = True
    region: Region | None = None
    #: The releases of the region that require a selection.
    spans: Spans = {}
    #: The families that a preset or a user names besides the conversion's chip.
    named: tuple[str, ...] = ()
    #: Settings that may apply, by key: of a script, not of a preset.
    possible: Mapping[str, Any] = {}

    def __init__(self, config: Config, region: Region | None = None, surface: str = "") -> None:
        self.config = config
        self.resolver = config.resolver
        self.settings = config.settings
        self.names = tuple(config.settings)
        self.requested = config.context
        self.region = region
        if region is None:
            versions = tuple(config.list_covered_versions().items())
            self.scope = build_asked_scope(
                self.requested, config.scenario, config.cann, config.products, versions
            )
        else:
            self.spans = region.spans
            self.scope = _build_scope(
                region.scenario, region.releases, region.products, region.surface, region.versions
            )
        self.ranges = tuple(config.list_ranges().items())
        newer = _list_newer_axes(self.ranges, self.requested)
        if has_framework_settings(self.names) and any(map(catalog.is_argument, self.names)):
            newer += releases.find_uncertain_axes(newer, self.scope.versions)
        if newer:
            self.scope = self.scope._replace(newer=newer)
        if surface:
            self.scope = self.scope._replace(surface=surface)
        if declared := config.declared:
            self.scope = self.scope._replace(declared=declared)
        if (self.scope.scenario == "offline-inference" or self.scope.surface == "atc") and (
            chip := find_chip(config.settings)
        ):
            key, family = chip
            self.named = self.scope.families
            if region is not None or not _is_overridden(config, key):
                self.scope = narrow_scope(self.scope, family)
        self.scenario = self.scope.scenario
        self.releases = self.scope.releases
        self.families = self.scope.families
        self.accepted: list[Accepted] = []  #: findings that are accepted
        #: The faults of each setting taken alone, computed on first use.
        self.faults: ValueFaults | None = None
        self.memory = config.resolver.judged.setdefault(
            (self.scope, *self.spans.items(), *self.ranges), {}
        )

    @cached_property
    def acceptance(self) -> Acceptance | None:
        """The accepted findings of the preset, None if there are none."""
        if not (self.config.policies or lineages.is_set_anywhere(self.config.lineage, "ignore")):
            return None
        from npuprof.checks.accepted import Acceptance

        return Acceptance(self.config) or None

    def view_region(self, region: Region) -> View:
        """Return the view of the same preset in a region."""
        view = View(region.config, region)
        view.acceptance = self.acceptance
        view.accepted = self.accepted
        return view

    def sift_findings(self, conditional: list[ConditionalFinding]) -> list[ConditionalFinding]:
        """Return the findings that are not accepted, moving the others to ``accepted``."""
        return [item for item in conditional if not self._accept(item.finding)]

    def sift_plain_findings(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return findings without conditions, moving accepted ones to ``accepted``."""
        return [finding for finding in findings if not self._accept(finding)]

    def _accept(self, finding: Finding) -> bool:
        if self.acceptance is None:
            return False
        accepted = self.acceptance.accept_finding(self.config, finding)
        if accepted is None:
            return False
        self.accepted.append(accepted)
        return True

    def build_finding(self, fault: Fault, key: str, origin: Origin | None = None) -> Finding:
        """Return a fault as a finding at the place of its setting."""
        why = fault.why
        if fault.code == "NP409" and self.requested.product is None:
            named = self.config.find_profile_origin("products")
            if named is not None:
                where = f"The products are named in {named.file}:{named.line}."
                why = f"{why} {where}".lstrip()
        severity = limit_severity(fault.code, fault.severity, key, self.scope.newer)
        return Finding(
            fault.code,
            fault.message,
            why,
            fault.hint,
            origin or self.config.origin(key, fault.tail),
            keys.format_key_path(key, fault.tail),
            (self.config.name,),
            None,
            severity,
            fault.fix,
            fault.certainty,
        )

    def locate(self, key: str, tail: Path = ()) -> tuple[str, int]:
        """Return the file and line of a setting, ``("", 0)`` if there is none."""
        origin = self.config.origin(key, tail)
        return (origin.file, origin.line) if origin else ("", 0)

    @property
    def is_converted(self) -> bool:
        """Whether the preset is for the ATC compiler and not for a session."""
        return self.scenario == "offline-inference"

    def is_decided(self, key: str) -> bool:
        """Return whether the value of a setting is known."""
        return True

    def may_be_given(self, keys: Iterable[str], of_conversion: bool) -> bool:
        """Return whether an ATC flag missing here may be set elsewhere.

        Flags of one conversion do not belong in a preset.
        """
        return of_conversion

    def look_up_written(self, path: tuple[str, ...]) -> Operand:
        """Return whether an operand of a team rule is set, and its value, ignoring defaults.

        None means unknown.
        """
        from npuprof.catalog import written_condition  # few stores have team rules

        return written_condition.look_up(self.scenario, self.settings, path)

    @cached_property
    def selected(self) -> dict[str, tuple[str | None, ...]]:
        """The product families, releases and values of the region or the scope, by axis."""
        return {
            "product": self.families or (None,),
            releases.CANN: self.releases,
            **dict(self.scope.versions),
            **{name: (value,) for name, value in self.requested.axes},
            **self.spans,
            **dict(self.region.axes if self.region else ()),
        }

    def list_values(self, axis: str, declared: Sequence[str] = ()) -> tuple[str | None, ...]:
        """Return the product families, or the values of an axis, for which to evaluate rules.

        They are those of the region or the scope, else those that the preset supports, else all
        that are ``declared``, or the newest stable release.
        """
        if known := self.selected.get(axis):
            return known
        span = dict(self.ranges).get(axis)
        meant = releases.find_judged_releases(span, axis) if span else ()
        declared = self.config.axes.get(axis, declared)
        return meant or tuple(declared) or (releases.find_newest_stable(axis),)

    def has_default_release(self, axis: str) -> bool:
        """Return whether no release of a framework is selected."""
        return axis not in self.selected | dict(self.ranges)

    def lookup_operand(self, path: tuple[str, ...], point: Mapping[str, str | None]) -> Operand:
        """Return whether an operand of a condition is set, and its value; None means unknown.

        ``point`` has the product family and the releases at which to evaluate the condition.
        """
        head = path[0]
        if path == (head,) and head in point:
            return (True, point[head]) if point[head] else (None, None)
        if head == "scenario":
            return bool(self.scenario), self.scenario or "none"
        key, tail = condition.find_key(path)
        section = catalog.load_sections().get(head)
        if key in self.settings and not (self.is_converted and _is_no_flag(key)):
            operand = _lookup_member(key, self.settings[key], tail)
            if operand[0] is not False or not section or not section.launch:
                return operand
        if section is not None and section.launch:
            # Hydra may read the key by an override with a prefix, or another configuration
            if section.launch.get("syntax") == "hydra" and any(
                name.startswith(_OTHER_OVERRIDES, len(section.prefix)) for name in self.names
            ):
                return None, None
            opposite = keys.format_full_key(head, f"no-{path[1]}")
            if opposite in self.settings:
                return True, self.settings[opposite] is False
            # without any argument, another file has the command line
            if not any(name.startswith(section.prefix) for name in self.names):
                return None, None
        if tail:
            return False, None
        if head == "env":
            # What sets such a variable outside presets is not known.
            return (None, None) if path[1] in catalog.list_outside_variables() else (False, None)
        option = catalog.find_option(key)
        if option is None:
            return False, None
        release = point.get(releases.CANN)
        covered = (release,) if release else self.releases
        return False, releases.resolve_default(option, self.scenario, covered, point.get("product"))


#: How overrides with a prefix begin, and the arguments that name another configuration.
_OTHER_OVERRIDES = ('"+', '"~', "--config")


@cache
def _is_no_flag(key: str) -> bool:
    """Return whether a setting is an option without an ATC flag: ATC does not see it."""
    option = catalog.find_option(key) if "." not in key else None
    return option is not None and "atc" not in option.spelling


def _is_overridden(config: Config, key: str) -> bool:
    """Return whether an override touches a setting, so that it may differ in other contexts."""
    return any(step.key == key for profile in config.lineage for step in profile.override_steps)


def _read_variable(variable: catalog.Variable, value: Any) -> Any:
    """Return a variable's value as its reader sees it: a switch is true or false.

    A number in a text is a number.
    """
    if variable.parsed_as:
        from npuprof.catalog import readers  # few rules read switches

        state = readers.find_reading(variable).read_switch(keys.format_plain_value(value))
        if state in ("on", "off"):
            return state == "on"
    if variable.kind not in ("int", "float") or not isinstance(value, str):
        return value
    try:
        return int(value) if variable.kind == "int" else float(value)
    except ValueError:
        return value


def _read_json(text: str) -> Any:
    """Return what a text means as JSON, such as a number or a table; else the text."""
    if not (text[:1].isdigit() or text[:1] in '{["-' or text in ("true", "false", "null")):
        return text  # without json, as a name is none
    import json

    try:
        return json.loads(text)
    except ValueError:
        return text


def _lookup_member(key: str, value: Any, tail: tuple[str, ...]) -> Operand:
    section, name = keys.split_section_and_name(key)
    variable = catalog.find_variable(name) if section == "env" else None
    if variable is not None and tail:
        from npuprof.catalog.key_value_pairs import parse_pairs, read_pair

        inner = parse_pairs(variable, value) if isinstance(value, str) else value
        if not isinstance(inner, dict):
            return None, None
        is_set = tail[0] in inner
        return is_set, read_pair(variable, tail[0], inner[tail[0]]) if is_set else None
    if isinstance(value, str) and section in FRAMEWORK_SECTIONS:
        value = _read_json(value)
    if not tail:
        return True, _read_variable(variable, value) if variable else value
    if section in catalog.list_file_sections():
        return _find_item(value, tail)
    inner = values.parse_structured_value(key, value)
    structure = values.find_structure(key)
    if isinstance(inner, list) and structure and structure.members:
        inner = dict(zip(structure.members, inner, strict=False))
    if not isinstance(inner, dict):
        return None, None
    is_set, member = values.find_value(key, inner, tail)
    return is_set, _read_json(member) if isinstance(member, str) and not structure else member


def _find_item(value: Any, tail: tuple[str, ...]) -> Operand:
    """Return the value at a path in a table: ``first`` of a list, or its ``length``."""
    for part in tail:
        if isinstance(value, str):
            value = _read_json(value)
        if isinstance(value, dict) and part not in value:
            return False, None
        if isinstance(value, dict):
            value = value[part]
        elif isinstance(value, list) and part == "length":
            value = len(value)
        elif isinstance(value, list) and part == "first" and value:
            value = value[0]
        else:
            return None, None
    return True, value


def find_nul_faults(key: str, value: Any, why: str) -> list[Fault]:
    """Return the fault of a text with a NUL character, which ends strings in C."""
    if isinstance(value, str) and "\0" in value:
        return [Fault("NP203", f"{key} contains a NUL character", why, "remove it")]
    return []


def find_range_faults(
    assignment: str, number: float, record: catalog.Entry, why: str = "", code: str = "NP203"
) -> list[Fault]:
    """Return the fault of a number outside the range of its record.

    ``assignment`` is the text that sets it.
    """
    low, high = record.minimum, record.maximum
    if (low is not None and number < low) or (high is not None and number > high):
        hint = f"write {keys.format_range(low, high, record.unit)}"
        return [Fault(code, f"{assignment} is out of range", why, hint)]
    return []
