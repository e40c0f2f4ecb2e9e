"""The contexts in which to check a config.

They are its own, those that the preset supports and those that its overrides match.

A context is a point: a product, a release, a target, a scenario, values of declared axes. For a set
of settings, two points are equivalent if the same overrides touch these settings there: the
settings then have the same values. Checks that read few settings therefore need few contexts,
however many overrides there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, islice
from itertools import combinations as select_combinations
from itertools import product as combinations
from math import prod
from operator import and_, or_

from npuprof.catalog import products, releases, targets
from npuprof.document.profile import MATCH_KEYS, Override
from npuprof.model import (
    SCENARIOS,
    TYPE_CHECKING,
    Axes,
    Context,
    Finding,
    NpuprofError,
    Origin,
    Record,
)
from npuprof.resolve import is_match_met, is_override_active
from npuprof.resolve.claims import Claim, find_axis, narrow_value
from npuprof.resolve.config import Config
from npuprof.resolve.lineages import has_overrides
from npuprof.system import group_pairs, join_boxes

if TYPE_CHECKING:
    from typing import Any, TypeVar

    Choice = TypeVar("Choice")

#: A context, and the override match that it was built from: ``("product", "atlas-a3")``.
NamedContext = tuple[Context, tuple[tuple[str, str], ...]]


def resolve_elsewhere(config: Config, context: Context) -> Config | None:
    """Return a config resolved again in another context, None if that fails."""
    if not has_overrides(config.lineage):
        # without overrides, the values are the same everywhere: all caches stay
        return config.replace_parts(context=context, resolver=config.resolver.for_context(context))
    try:
        return config.resolver.for_context(context).resolve_members(
            config.lineage, config.name, config.claims, config.changes
        )
    except NpuprofError:
        return None


def list_axes_matched(overrides: Iterable[Override]) -> list[str]:
    """Return the frameworks and declared axes that overrides match on, without duplicates."""
    return list(
        dict.fromkeys(
            name for override in overrides for name in override.match if name not in MATCH_KEYS
        )
    )


def list_override_points(override: Override, requested: Context) -> Iterator[NamedContext]:
    """Yield the contexts that a match selects: the requested values stay.

    A release range counts as its newest release.
    """
    axes = ["product", "cann", "target", *list_axes_matched([override])]
    # an axis that was requested is fixed: its match is not tried
    for texts in combinations(
        *(("",) if requested.find_value(axis) else override.match.get(axis, ("",)) for axis in axes)
    ):
        words = tuple((axis, text) for axis, text in zip(axes, texts, strict=True) if text)
        values = {axis: _find_newest(axis, text) for axis, text in words}
        if all(values.values()):
            yield build_point(requested, values), words


def _find_newest(axis: str, text: str) -> str | None:
    """Return the newest release of a range, None if there is none; other values unchanged."""
    if not releases.is_axis(axis):
        return text
    return next(reversed(releases.find_releases_in_range(text, axis) or ()), None)


def build_point(requested: Context, values: Mapping[str, str | None]) -> Context:
    """Return a context with other values on some axes."""
    plain = {axis: value for axis, value in values.items() if axis in ("product", "cann", "target")}
    versions, axes = dict(requested.versions), dict(requested.axes)
    for axis, value in values.items():
        if value and axis not in plain:
            (versions if releases.is_axis(axis) else axes)[axis] = value
    return requested._replace(
        **plain, versions=tuple(sorted(versions.items())), axes=tuple(sorted(axes.items()))
    )


def find_unasked_overrides(config: Config) -> dict[str, list[Origin]]:
    """Return the origins of overrides that were not tried, by axis.

    The axis is the product or the release that was not requested.
    """
    here = config.context
    unasked = defaultdict(list)
    for profile in config.lineage:
        for index, override in enumerate(profile.overrides):
            axes = ("product", "cann", *list_axes_matched([override]))
            open_ = [axis for axis in axes if axis in override.match and not here.find_value(axis)]
            known = {axis: names for axis, names in override.match.items() if axis not in open_}
            is_met = is_override_active(override._replace(match=known), here, config.scenario)
            if open_ and is_met and may_be_asked(config, override):
                unasked[" and ".join(map(format_flag, open_))].append(
                    profile.origin("override", index)
                )
    return unasked


def format_flag(axis: str) -> str:
    """Return the flag that selects a value of an axis."""
    if axis in ("product", "cann"):
        return f"--{axis}"
    return f"--framework {axis}=RELEASE" if releases.is_axis(axis) else f"--axis {axis}=VALUE"


def may_be_asked(config: Config, override: Override) -> bool:
    """Return whether an override matches products, releases and axes that the preset supports."""
    for name, claim in config.claims.items():
        names = override.match.get(find_axis(name), ())
        # ranges are narrowed as texts, other values as lists
        choices = names if isinstance(claim.value, str) else [[*names]]
        is_met = any(narrow_value(name, choice, claim.value) for choice in choices)
        if names and claim.value and name != "scenario" and not is_met:
            return False
    return True


#: The value of an axis that is neither requested nor limited by the preset.
_OPEN = None

#: The prefix of conditions that apply only if a preset that supports some products, or releases, is
#: used without selecting one.
UNREQUESTED = "where no "

#: With declared axes, at most this many combinations of products, releases and axes are judged.
MOST_CONTEXTS = 200

#: Values of one axis at which the same overrides apply.
Stretch = tuple[str | None, ...]
#: A stretch of products, one of CANN releases, and one of releases for each framework that
#: overrides match on.
Box = tuple[Stretch, ...]


class Point(Record):
    """Products, releases, a target and a scenario.

    ``active`` has a bit for each override that applies there.
    """

    box: Box
    target: str | None
    scenario: str | None
    active: int


class Region(Record):
    """Equivalent points, with the preset as resolved there.

    ``products`` and ``releases`` are those of the region, empty if unknown, ``versions`` those of
    frameworks, and ``surface`` the API surface of its targets. ``apart`` is set if the products
    must be selected, ``spans`` are the values of the axes that require a selection, ``words``
    lists the other selections that are required, and ``plain`` is set if none is. ``axes`` are the
    values of declared axes, None if none is selected.
    """

    config: Config
    scenario: str | None
    products: tuple[str, ...]
    releases: tuple[str, ...]
    versions: tuple[tuple[str, tuple[str, ...]], ...]
    surface: str
    apart: bool
    spans: Axes
    words: tuple[str, ...]
    plain: bool
    axes: tuple[tuple[str, Stretch], ...] = ()


class ContextMap:
    """The contexts of a config. ``touched`` are the settings that overrides touch.

    ``problems`` collects the errors of contexts in which the config cannot be resolved.
    """

    def __init__(self, config: Config) -> None:
        self.problems: list[Finding] = []
        self._config = config
        self._overrides = [override for profile in config.lineage for override in profile.overrides]
        self._touching: dict[str, int] = {}
        for place, override in enumerate(self._overrides):
            for step in override.steps:
                self._touching[step.key] = self._touching.get(step.key, 0) | 1 << place
        self.touched = frozenset(self._touching)
        self._axes = ["product", "cann", *list_axes_matched(self._overrides)]
        #: declared axes that overrides match on
        self.declared = [axis for axis in self._axes[1:] if not releases.is_axis(axis)]
        #: equivalent releases, by the newest of them
        self._alike: dict[tuple[str, str | None], Stretch] = {}
        #: targets that overrides match on
        self.named_targets = frozenset(self._list_named("target"))
        self._points = self._list_points()
        self._kinds: dict[int, tuple[int, ...]] = {}
        self._regions: dict[tuple[tuple[int, ...], str | None, bool], list[Region]] = {}
        self._configs: dict[tuple[int, str | None], Config | None] = {}

    def find_regions(self, settings: Collection[str], target: str = "") -> list[Region]:
        """Return the regions in which some settings have different values.

        Together they cover every context that the preset supports. With ``target``, those for a
        target that was not requested, without ``surface`` and ``words``. A target that no override
        matches has the values of an unspecified target.
        """
        kinds, unasked = self.find_kinds(settings), bool(target)
        # one region for all targets that no override names
        there = target if target in self.named_targets else _OPEN
        key = kinds, there, unasked
        if key not in self._regions:
            pairs = zip(kinds, self._points, strict=True)
            by_kind = group_pairs(
                (kind, point) for kind, point in pairs if not unasked or point.target == there
            )
            self._regions[key] = [
                region
                for points in by_kind.values()
                for region in self._build_regions(points, unasked)
            ]
        return self._regions[key]

    def find_kinds(self, settings: Collection[str]) -> tuple[int, ...]:
        """Return an equivalence class number for each point.

        Some settings have equal values at the points of a class.
        """
        bits = 0
        for key in settings:
            bits |= self._touching.get(key, 0)
        if bits not in self._kinds:
            numbers: dict[int, int] = {}
            # overrides that touch none of the settings do not divide the points
            self._kinds[bits] = tuple(
                numbers.setdefault(point.active & bits, len(numbers)) for point in self._points
            )
        return self._kinds[bits]

    def find_idle_overrides(self) -> list[int]:
        """Return the indexes of the profile's own overrides that apply in none of the contexts."""
        own = len(self._config.profile.overrides)
        # the profile is the last of its lineage, and so are its overrides
        first = len(self._overrides) - own
        return [index for index in range(own) if not self._active >> first + index & 1]

    def _list_points(self) -> list[Point]:
        config = self._config
        stretches = [
            [*self._find_stretches(axis, self._list_axis_values(axis)).items()]
            for axis in self._axes
        ]
        named = (
            ("target", config.context.target, targets.list_target_names()),
            ("scenario", config.scenario, SCENARIOS),
        )
        uses = [
            [
                (self._find_active(axis, name), name)
                for name in ([fixed] if fixed else [_OPEN, *self._list_named(axis)])
                if name == fixed or name in known
            ]
            for axis, fixed, known in named
        ]
        # every value of an axis goes with every value of the others
        everything: list[Any] = [*stretches, *uses]
        self._active = reduce(
            and_, (reduce(or_, (mask for mask, _ in choices)) for choices in everything)
        )
        self.count = prod(map(len, stretches))
        is_limited = self.declared and self.count > MOST_CONTEXTS
        combine = _combine_nearest_first if is_limited else combinations
        points = []
        for pairs in islice(combine(*stretches), MOST_CONTEXTS if is_limited else None):
            box = tuple(tuple(values) for _, values in pairs)
            everywhere = reduce(and_, (mask for mask, _ in pairs))
            # separately: checks use each of them alone
            for (there, target), (then, scenario) in combinations(*uses):
                points.append(Point(box, target, scenario, everywhere & there & then))
        return points

    def _list_axis_values(self, axis: str) -> list[str | None]:
        """Return the products, or releases of CANN or a framework, to resolve for.

        Only the requested one, if any.
        """
        if requested := self._config.context.find_value(axis):
            return [requested]
        if axis in self.declared:
            declared = self._config.resolver.lookups.find_axes(self._config.profile) or {}
            values = self._config.axes.get(axis) or declared.get(axis) or self._list_named(axis)
            return [_OPEN, *values]
        if axis == "product":
            return [_OPEN, *_list_products(self._config.products, self._list_named("product"))]
        return [_OPEN, *self._list_releases(axis)]

    def _list_named(self, axis: str) -> list[str]:
        """Return the values that overrides match on an axis, without duplicates."""
        return list(
            dict.fromkeys(
                text for override in self._overrides for text in override.match.get(axis, ())
            )
        )

    def _list_releases(self, axis: str) -> Sequence[str]:
        """Return the releases of the preset's range.

        Without a range, the newest release for each combination of overrides.
        """
        spec = self._config.list_ranges().get(axis)
        claimed = releases.find_judged_releases(spec, axis) if spec else None
        # without an override on the axis, its releases make no difference
        if claimed is not None or not self._list_named(axis):
            return claimed or ()
        outside = self._find_active(axis, _OPEN)
        stretches = self._find_stretches(axis, releases.load_releases(axis))
        alike = {values[-1]: tuple(values) for mask, values in stretches.items() if mask != outside}
        # messages name all releases, not only the newest that stands for them
        self._alike |= {(axis, newest): values for newest, values in alike.items()}
        return [newest or "" for newest in alike]

    def _find_stretches(
        self, axis: str, values: Iterable[str | None]
    ) -> dict[int, list[str | None]]:
        return group_pairs((self._find_active(axis, value), value) for value in values)

    def _find_active(self, axis: str, value: str | None) -> int:
        """Return a bit for each override whose match on one axis is satisfied."""
        active = 0
        for place, override in enumerate(self._overrides):
            if axis not in override.match or is_match_met(axis, override.match[axis], value):
                active |= 1 << place
        return active

    def _build_regions(self, points: list[Point], unasked: bool) -> list[Region]:
        """Return equivalent points as regions in which every product goes with every release.

        ``unasked`` omits the target.
        """
        plain = any(self._is_plain(point) for point in points)
        for axis in ("target", "scenario"):  # if it is open at a point, no other value decides
            points = [point for point in points if getattr(point, axis) is _OPEN] or points
        # fewer active overrides: messages then cite fewer lines
        nearest = min(points, key=lambda point: point.active.bit_count())
        boxes = group_pairs(
            ((point.scenario, _OPEN if unasked else point.target), point.box) for point in points
        )
        pieces = group_pairs(
            ((scenario, targets.find_surface(target), box), target)
            for (scenario, target), own in boxes.items()
            for box in join_boxes(own)
        )
        config = self._config if plain else self._resolve_at(nearest)
        if config is None:
            return []
        return [
            self._build_region(config, *piece, tuple(places)) for piece, places in pieces.items()
        ]

    def _build_region(
        self, config: Config, scenario: str | None, surface: str, box: Box, places: Stretch
    ) -> Region:
        requested, claims = self._config.context, self._config.list_ranges()
        families, *stretches = box
        apart = requested.product not in families
        spans = {}
        axes = []
        versions = self._config.list_covered_versions()
        for axis, span in zip(self._axes[1:], stretches, strict=True):
            here = requested.find_value(axis)
            if here not in span:
                spans[axis] = _drop_open(
                    chain.from_iterable(self._alike.get((axis, name), (name,)) for name in span)
                )
            # Values that overrides match outside the preset's claims count only if they decide.
            decides = here not in span or here or axis in claims
            if axis in self.declared:
                axes.append((axis, _drop_open(span) or span))
            else:
                versions[axis] = _drop_open(span if decides else ())
        words = (
            [] if requested.target in places else [f"for the target {', '.join(map(str, places))}"]
        )
        words += [] if scenario == self._config.scenario else [f"for {scenario}"]
        meant = families if apart or requested.product or self._config.products else ()
        plain = not (apart or spans or words)
        words += self._list_unasked(box)
        read = versions.pop(releases.CANN, ())
        return Region(
            config,
            scenario,
            _drop_open(meant),
            read,
            tuple(versions.items()),
            surface,
            apart,
            spans,
            tuple(words),
            plain,
            tuple(axes),
        )

    def _list_unasked(self, box: Box) -> Iterator[str]:
        """Yield a text for each axis that the preset limits and the box leaves open."""
        config = self._config
        claims = {"product": config.products, **config.list_ranges(), **config.axes}
        for axis, stretch in zip(self._axes, box, strict=True):
            if claims.get(axis) and stretch == (_OPEN,):
                noun = f"release of {axis}" if releases.is_axis(axis) else axis
                noun = "release" if axis == releases.CANN else noun
                yield f"{UNREQUESTED}{noun} is asked for"

    def _is_plain(self, point: Point) -> bool:
        requested = self._config.context
        here = all(
            requested.find_value(axis) in stretch
            for axis, stretch in zip(self._axes, point.box, strict=True)
        )
        return here and (requested.target, self._config.scenario) == (point.target, point.scenario)

    def _resolve_at(self, point: Point) -> Config | None:
        """Return the preset resolved at a point, None if that fails."""
        mark = point.active, point.scenario
        if mark not in self._configs:
            self._configs[mark] = self._resolve_anew(point)
        return self._configs[mark]

    def _resolve_anew(self, point: Point) -> Config | None:
        config, scenario = self._config, point.scenario
        claims = {**config.claims}
        if scenario and scenario != config.scenario:
            claims["scenario"] = Claim(scenario, config.profile.document, ("profile",))
        # any value of a stretch would do: the same overrides apply to all of them
        values = {axis: stretch[-1] for axis, stretch in zip(self._axes, point.box, strict=True)}
        resolver = config.resolver.for_context(
            build_point(config.context, {**values, "target": point.target})
        )
        try:
            return resolver.resolve_members(config.lineage, config.name, claims, config.changes)
        except NpuprofError as error:
            # many points have the same fault
            self.problems += [finding for finding in error.findings if finding not in self.problems]
            return None


def _combine_nearest_first(*choices: Sequence[Choice]) -> Iterator[tuple[Choice, ...]]:
    """Yield the combinations that differ from the first choices in the fewest places first."""
    places = range(len(choices))
    for count in range(len(choices) + 1):
        for changed in map(set, select_combinations(places, count)):
            yield from combinations(
                *(
                    choices[place][1:] if place in changed else choices[place][:1]
                    for place in places
                )
            )


def _list_products(claimed: Sequence[str], named: Sequence[str]) -> list[str]:
    """Return the products that a preset supports, with those that overrides match.

    Without claims, all that overrides match.
    """
    listed = dict.fromkeys(claimed)
    for name in named:
        if products.find_product(name) and (
            not claimed or any(products.may_contain(pattern, name) for pattern in claimed)
        ):
            listed[name] = None
    return list(listed)


def _drop_open(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(value for value in values if value is not None)
