"""The contexts to look at a config in beside its own: all that the preset is meant for, and those that its overrides name.

A context is a point: a product, a release, a target, a scenario. Points are of one kind for some settings where the same of the overrides
that touch these settings take part: the settings have the same values there. So what looks at few settings looks at few contexts, however
many overrides there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import product as combinations
from typing import NamedTuple

from npuprof.catalog import products, releases, targets
from npuprof.document.profile import Override
from npuprof.model import SCENARIOS, Context, Finding, NpuprofError, Origin
from npuprof.resolve import is_match_met
from npuprof.resolve.claims import Claim
from npuprof.resolve.config import Config

#: A context, and the words of an override's match that it was made from: ``("product", "atlas-a3")``.
NamedContext = tuple[Context, tuple[tuple[str, str], ...]]


def resolve_elsewhere(config: Config, context: Context) -> Config | None:
    """Return a config resolved again in another context, None where that cannot be."""
    try:
        return config.resolver.for_context(context).resolve_members(config.lineage, config.name, config.claims, config.changes)
    except NpuprofError:
        return None


def list_override_points(override: Override, asked: Context, claimed: tuple[str, ...] | None = None) -> Iterator[NamedContext]:
    """Yield the contexts that a match names: what was asked for stays, of a range of releases the newest counts.

    Only releases that are ``claimed`` do, if any are.
    """
    match = override.match
    for product, cann, target in combinations(
        ("",) if asked.product else match.get("product", ("",)),
        ("",) if asked.cann else match.get("cann", ("",)),
        ("",) if asked.target else match.get("target", ("",)),
    ):
        covered = [name for name in (releases.find_releases_in_range(cann) or ()) if not claimed or name in claimed] if cann else []
        if cann and not covered:
            continue
        context = Context(
            covered[-1] if cann else asked.cann,
            product or asked.product,
            target or asked.target,
        )
        yield context, tuple((word, text) for word, text in (("product", product), ("cann", cann), ("target", target)) if text)


def find_unasked_overrides(config: Config) -> dict[str, list[Origin]]:
    """Return where the overrides stand that were left out only because no product, or no release, was asked for, by which of the two."""
    here = {**config.context._asdict(), "scenario": config.scenario}
    claimed = set(releases.find_releases_in_range(config.cann) or ()) if config.cann else None
    unasked: dict[str, list[Origin]] = {}
    for profile in config.lineage:
        for index, override in enumerate(profile.overrides):
            open_ = [axis for axis in ("product", "cann") if axis in override.match and not here[axis]]
            met = all(is_match_met(axis, wanted, here[axis]) for axis, wanted in override.match.items() if axis not in open_)
            if open_ and met and _may_be_asked(config, override, claimed):
                unasked.setdefault(" and ".join(f"--{axis}" for axis in open_), []).append(profile.origin("override", index))
    return unasked


def _may_be_asked(config: Config, override: Override, claimed: set[str] | None) -> bool:
    """Return whether an override is for products and releases that the preset is for."""
    wanted = override.match.get("product", ())
    if wanted and config.products:
        pairs = [(name, meant) for name in wanted for meant in config.products]
        if not any(products.may_contain(name, meant) or products.may_contain(meant, name) for name, meant in pairs):
            return False
    spans = [set(releases.find_releases_in_range(spec) or ()) for spec in override.match.get("cann", ())]
    return not spans or claimed is None or any(span & claimed for span in spans)


#: Where an axis is not asked for, or a preset says nothing of it.
_OPEN = None

#: The words of what holds only where a preset that is meant for some products, or releases, is used without naming one.
UNASKED = ("where no product is asked for", "where no release is asked for")

#: Values of one axis at which the same overrides take part.
Stretch = tuple[str | None, ...]


class Point(NamedTuple):
    """Products and releases, a target and a scenario; ``active`` has a bit for each override that takes part there."""

    product: Stretch
    cann: Stretch
    target: str | None
    scenario: str | None
    active: int


class Region(NamedTuple):
    """Points of one kind with the preset as it is there.

    ``products`` and ``releases`` are those that count there, empty where they are not known, and so the ``surface`` that
    the targets there write. ``apart`` tells that the products have to be asked for, ``words`` what else has to be, piece by
    piece; ``plain`` that nothing has to be.
    """

    config: Config
    scenario: str | None
    products: tuple[str, ...]
    releases: tuple[str, ...]
    surface: str
    apart: bool
    words: tuple[str, ...]
    plain: bool


class ContextMap:
    """The contexts of a config. ``touched`` are the settings that some override touches.

    ``problems`` gathers why the config cannot be resolved in contexts that were looked at.
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
        context = config.context
        self._alike: dict[str | None, Stretch] = {}  # releases by the newest of them, which is looked at for all
        self._base = (context.product, context.cann, context.target, config.scenario)
        self.named_targets = frozenset(self._list_named("target"))  #: those that overrides name
        self._points = self._list_points()
        self._kinds: dict[int, tuple[int, ...]] = {}
        self._regions: dict[tuple[tuple[int, ...], str | None, bool], list[Region]] = {}
        self._configs: dict[tuple[int, str | None], Config | None] = {}

    def find_regions(self, settings: Collection[str]) -> list[Region]:
        """Return where some settings differ by the overrides that take part; all that the preset is meant for is in some region."""
        return self._find_regions_of(self.find_kinds(settings), _OPEN, unasked=False)

    def find_target_regions(self, settings: Collection[str], target: str) -> list[Region]:
        """Return where some settings differ in one target, as one that nobody asked for: it has no ``surface`` there, and no ``words``.

        A target that no override names has the values of where none is asked for.
        """
        there = target if target in self.named_targets else _OPEN
        return self._find_regions_of(self.find_kinds(settings), there, unasked=True)

    def _find_regions_of(self, kinds: tuple[int, ...], target: str | None, unasked: bool) -> list[Region]:
        mark = kinds, target, unasked
        if mark not in self._regions:
            sorted_points: dict[int, list[Point]] = {}
            for kind, point in zip(kinds, self._points, strict=True):
                if not unasked or point.target == target:
                    sorted_points.setdefault(kind, []).append(point)
            self._regions[mark] = [region for points in sorted_points.values() for region in self._build_regions(points, unasked)]
        return self._regions[mark]

    def find_kinds(self, settings: Collection[str]) -> tuple[int, ...]:
        """Return the number of its kind for each point: two points are of a kind where some settings have the same values."""
        bits = 0
        for key in settings:
            bits |= self._touching.get(key, 0)
        if bits not in self._kinds:
            numbers: dict[int, int] = {}
            self._kinds[bits] = tuple(numbers.setdefault(point.active & bits, len(numbers)) for point in self._points)
        return self._kinds[bits]

    def find_idle_overrides(self) -> list[int]:
        """Return the numbers of the profile's own overrides that take part in none of the contexts."""
        own = len(self._config.lineage[-1].overrides)
        first = len(self._overrides) - own
        return [place for place in range(own) if not any(point.active >> first + place & 1 for point in self._points)]

    def _list_points(self) -> list[Point]:
        product, cann, target, scenario = self._list_axis_values()
        axes = [self._find_stretches("product", product).items(), self._find_stretches("cann", cann).items()]
        points = []
        for (on, families), (by, span) in combinations(*axes):
            for place, name in combinations(target, scenario):  # each for itself: checks ask for them
                active = on & by & self._find_active("target", place) & self._find_active("scenario", name)
                points.append(Point(tuple(families), tuple(span), place, name, active))
        return points

    def _list_axis_values(self) -> list[Sequence[str | None]]:
        """Return the values of each axis; those that were asked for, or that the preset is for alone, are the only ones of theirs."""
        config, asked = self._config, self._config.context
        axes: list[Sequence[str | None]] = []
        axes.append([asked.product] if asked.product else [_OPEN, *_list_products(config.products, self._list_named("product"))])
        axes.append([asked.cann] if asked.cann else [_OPEN, *self._list_releases()])
        for axis, fixed, known in (("target", asked.target, targets.NAMES), ("scenario", config.scenario, SCENARIOS)):
            axes.append([fixed] if fixed else [_OPEN, *(name for name in self._list_named(axis) if name in known)])
        return axes

    def _list_named(self, axis: str) -> list[str]:
        """Return what overrides name on an axis, each once."""
        return list(dict.fromkeys(text for override in self._overrides for text in override.match.get(axis, ())))

    def _list_releases(self) -> Sequence[str]:
        """Return the releases of the preset's range; where it names none, the newest that each mix of overrides takes part in."""
        claimed = releases.find_releases_in_range(self._config.cann) if self._config.cann else None
        if claimed is not None or not self._list_named("cann"):
            return claimed or ()
        outside = self._find_active("cann", _OPEN)
        stretches = self._find_stretches("cann", releases.load_releases())
        self._alike = {values[-1]: tuple(values) for mask, values in stretches.items() if mask != outside}
        return [newest or "" for newest in self._alike]

    def _find_stretches(self, axis: str, values: Iterable[str | None]) -> dict[int, list[str | None]]:
        stretches: dict[int, list[str | None]] = {}
        for value in values:
            stretches.setdefault(self._find_active(axis, value), []).append(value)
        return stretches

    def _find_active(self, axis: str, value: str | None) -> int:
        """Return a bit for each override that takes part as far as one axis decides."""
        active = 0
        for place, override in enumerate(self._overrides):
            if axis not in override.match or is_match_met(axis, override.match[axis], value):
                active |= 1 << place
        return active

    def _build_regions(self, points: list[Point], unasked: bool) -> list[Region]:
        """Return points of one kind in pieces in which every product goes with every release; ``unasked`` as if for no target."""
        plain = any(self._is_plain(point) for point in points)
        for axis in ("target", "scenario"):
            if any(getattr(point, axis) is _OPEN for point in points):  # then no other decides: all are here
                points = [point for point in points if getattr(point, axis) is _OPEN]
        nearest = min(points, key=lambda point: point.active.bit_count())
        pieces: dict[tuple[str | None, str, Stretch, Stretch], list[str | None]] = {}
        for scenario, target in dict.fromkeys((point.scenario, point.target) for point in points):
            spans: dict[Stretch, list[str | None]] = {}
            for product in dict.fromkeys(point.product for point in points):
                here = [point.cann for point in points if (point.product, point.scenario, point.target) == (product, scenario, target)]
                spans.setdefault(_join(here), []).extend(product)
            for span, families in spans.items():
                surface = "" if unasked else targets.SURFACES.get(target or "", "")
                if span:
                    pieces.setdefault((scenario, surface, tuple(families), span), []).append(_OPEN if unasked else target)
        config = self._config if plain else self._resolve_at(nearest)
        if config is None:
            return []
        return [self._build_region(config, *piece, tuple(places)) for piece, places in pieces.items()]

    def _build_region(
        self, config: Config, scenario: str | None, surface: str, families: Stretch, span: Stretch, places: Stretch
    ) -> Region:
        asked_product, asked_cann, asked_target, claimed = self._base
        apart = asked_product not in families
        words = (
            *(() if asked_cann in span else (f"in CANN {_format_span(_join(self._alike.get(name, (name,)) for name in span))}",)),
            *(() if asked_target in places else (f"for the target {', '.join(map(str, places))}",)),
            *(() if scenario == claimed else (f"for {scenario}",)),
        )
        # What overrides name beyond what the preset is for counts only where they decide.
        meant = families if apart or asked_product or self._config.products else ()
        read = span if asked_cann not in span or asked_cann or self._config.cann else ()
        plain = not apart and not words
        words += _list_unasked(((families, self._config.products), (span, self._config.cann)))
        return Region(config, scenario, _drop_open(meant), _drop_open(read), surface, apart, words, plain)

    def _is_plain(self, point: Point) -> bool:
        product, cann, target, scenario = self._base
        return product in point.product and cann in point.cann and (target, scenario) == (point.target, point.scenario)

    def _resolve_at(self, point: Point) -> Config | None:
        """Return the preset as it is at a point, None where it cannot be resolved there."""
        mark = point.active, point.scenario
        if mark not in self._configs:
            self._configs[mark] = self._resolve_anew(point)
        return self._configs[mark]

    def _resolve_anew(self, point: Point) -> Config | None:
        config, scenario = self._config, point.scenario
        claims = {**config.claims}
        if scenario and scenario != config.scenario:
            claims["scenario"] = Claim(scenario, config.lineage[-1].origin("profile"))
        resolver = config.resolver.for_context(Context(point.cann[-1], point.product[-1], point.target))
        try:
            resolved = resolver.resolve_members(config.lineage, config.name, claims, config.changes)
        except NpuprofError as error:
            self.problems += [finding for finding in error.findings if finding not in self.problems]
            return None
        resolved.memo["policy"] = config.policy
        return resolved


def _list_products(claimed: Sequence[str], named: Sequence[str]) -> list[str]:
    """Return the products that a preset is for, and those of them that overrides treat apart; without claims all that overrides name."""
    known = [name for name in named if products.find_product(name)]
    inside = [name for name in known if not claimed or any(products.may_contain(pattern, name) for pattern in claimed)]
    return list(dict.fromkeys([*claimed, *inside]))


def _list_unasked(axes: Iterable[tuple[Stretch, object]]) -> tuple[str, ...]:
    """Return words for the axes, product and release, of which a preset names what it is meant for, and nothing of that is here."""
    return tuple(words for words, (here, meant) in zip(UNASKED, axes, strict=True) if meant and here == (_OPEN,))


def _join(stretches: Iterable[Stretch]) -> Stretch:
    return tuple(value for stretch in stretches for value in stretch)


def _drop_open(values: Stretch) -> tuple[str, ...]:
    return tuple(value for value in values if value is not None)


def _format_span(span: Stretch) -> str:
    """Return releases in words, those that follow one another as ``8.0.0 to 9.2.0``."""
    wanted = set(_drop_open(span))
    runs: list[list[str]] = [[]]
    for name in releases.load_releases():
        if name in wanted:
            runs[-1].append(name)
        elif runs[-1]:
            runs.append([])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs if run)
