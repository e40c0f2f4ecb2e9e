"""Profiles to configs: the order of ancestors, and one fold over their steps.

Lowest first. Ancestors are put in an order in which each stands once, before everything that extends it, and
in which the parents of one profile keep the order they are written in; later wins. (That is the C3 order,
read from the far end.) Then each layer clears what it unsets, lays its values over what is there, and adds
what it appends, its matching overrides after it in file order.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import groupby
from operator import is_
from typing import Any

from npuprof.catalog import products, releases, values
from npuprof.document import build_command_line_document
from npuprof.document.profile import Override, Profile
from npuprof.model import Context, Event, Finding, NpuprofError, Origin, Step, renew_hints
from npuprof.resolve.claims import combine_claims
from npuprof.resolve.config import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.policy import Policy
    from npuprof.resolve.claims import Claims
    from npuprof.resolve.config import Lookup

#: The name of a layer, as origins show it, and the steps it takes.
Layer = tuple[str, tuple[Step, ...]]

#: Layers of so few steps are gone through each time: that is faster than sorting them.
_FEW_STEPS = 50

#: What the keys of personal layers begin with.
PERSONAL = "personal:"

#: How many presets one may build on.
MOST_ANCESTORS = 2000

_NO_ORDER = "Later parents win, and every profile wins over what it extends; here these wishes contradict each other."


class Resolver:
    """Resolves profiles against one lookup and one context, and remembers what they share.

    Values only are folded at first; the origins of a setting are traced by a second run of the same fold, over the
    steps that touch it, when somebody asks.
    """

    def __init__(self, lookup: Lookup, context: Context | None = None) -> None:
        renew_hints()
        self.lookup = lookup
        self.context = context or Context()
        self.judged: dict[Any, dict[Any, Any]] = {}  #: what the checks have found of values, by what they were checked for
        self._lineages: dict[str, tuple[Profile, ...]] = {}
        self._refused: dict[str, NpuprofError] = {}  #: what is wrong with the ancestors of profiles that have no order
        self._steps: dict[int, tuple[tuple[Step, ...], dict[str, list[Step]]]] = {}
        self._claims: dict[str, Claims] = {}
        self._parents: dict[str, tuple[str, ...]] = {}
        self._folds: dict[tuple[str | None, ...], dict[str, Any]] = {}
        self._others: dict[Context, Resolver] = {}
        self._has_sources = False

    def for_context(self, context: Context) -> Resolver:
        """Return the resolver of the same profiles for another context: one for all who ask, so they share what it folds."""
        if context not in self._others:
            self._others[context] = Resolver(self.lookup, context)
            self._others[context].judged = self.judged
        return self._others[context]

    def resolve_profile(self, profile: Profile, name: str | None = None, changes: Iterable[Step] = ()) -> Config:
        """Return the profile resolved; ``changes`` come last, from the command line.

        Raises NpuprofError with all findings for a missing parent, a cycle, an order that cannot be, a
        profile whose form is wrong, or an append to something that is no list.
        """
        lineage = self.resolve_lineage(profile)
        return self.resolve_members(lineage, name or profile.name, self._resolve_claims(lineage), changes)

    def resolve_members(self, lineage: tuple[Profile, ...], name: str, claims: Claims, changes: Iterable[Step] = ()) -> Config:
        """Return a lineage resolved, lowest first; nothing is looked up. Raises NpuprofError as ``resolve_profile`` does."""
        problems = [problem for member in lineage for problem in member.problems]
        problems += [claim.conflict for claim in claims.values() if claim.conflict]
        if problems:
            raise NpuprofError(problems)
        return self._build_config(name, lineage, claims, tuple(changes))

    def reduce_config(self, config: Config) -> tuple[Any, ...]:
        """Return what a pickle of a config holds: a function, and what to call it with."""
        return rebuild_config, (config.name, config.context, config.lineage, config.claims, config.changes, config.policy)

    def resolve_as_far_as_can_be(self, profile: Profile) -> Config:
        """Return a profile resolved with what is wrong with its form left out, and alone where its ancestors cannot be ordered.

        Raises NpuprofError for an append to something that is no list.
        """
        try:
            lineage = self.resolve_lineage(profile)
            claims = self._resolve_claims(lineage)
        except NpuprofError:
            lineage, claims = (profile,), combine_claims(profile, ())
        return self._build_config(profile.name, lineage, claims, ())

    def _build_config(self, name: str, lineage: tuple[Profile, ...], claims: Claims, changes: tuple[Step, ...]) -> Config:
        last = _build_command_line(changes)
        scenario = claims["scenario"].value if "scenario" in claims else None
        settings = dict(self.fold_lineage(lineage, scenario))
        for member in last:
            apply_layers(settings, member, self._select_layers(member, scenario), None)
        tracer = partial(self._trace_setting, (*lineage, *last), scenario)
        return Config(name, self.context, lineage, settings, tracer, self, changes, claims)

    def list_parent_keys(self, profile: Profile) -> tuple[str, ...]:
        """Return the keys of what a profile extends, in the order in which it names them; nothing of one that was not resolved."""
        return self._parents.get(profile.key, ())

    def _resolve_claims(self, lineage: tuple[Profile, ...]) -> Claims:
        """Return what the last profile of a lineage is for."""
        members = {member.key: member for member in lineage}
        waiting = [lineage[-1]]
        while waiting:  # by descent: of presets laid over one another an ancestor may stand last
            current = waiting[-1]
            parents = self._parents[current.key]
            unknown = [members[key] for key in parents if key not in self._claims]
            waiting += unknown
            if not unknown:
                waiting.pop()
                self._claims[current.key] = combine_claims(current, [self._claims[key] for key in parents])
        return self._claims[lineage[-1].key]

    def _trace_setting(self, members: tuple[Profile, ...], scenario: str | None, key: str) -> tuple[Any, list[Event]]:
        """Return a setting with the origin of every leaf, and each step that touched it; no step looks at any other setting."""
        traced: dict[str, Any] = {}
        events: dict[str, list[Event]] = {}
        near = [profile for profile in members if profile.touched is None or key in profile.touched]
        for profile in near:
            if not profile.touches(key):
                continue
            layers = self._select_layers(profile, scenario)
            own = [(name, found) for name, steps in layers if (found := self._find_steps(steps, key))]
            apply_layers(traced, profile, own, events)
        return traced.get(key), events.get(key, [])

    def find_last_origin(self, lineage: tuple[Profile, ...], first: int, scenario: str | None, key: str) -> Origin | None:
        """Return who touched a setting last, of the members from a place on; the history before that member is not gone through."""
        near = [place for place in range(first, len(lineage)) if (touched := lineage[place].touched) is None or key in touched]
        for place in reversed(near):
            profile = lineage[place]
            if not profile.touches(key):
                continue
            before = self.fold_lineage(lineage[:place], scenario)
            events: dict[str, list[Event]] = {}
            own = [(name, found) for name, steps in self._select_layers(profile, scenario) if (found := self._find_steps(steps, key))]
            apply_layers({key: before[key]} if key in before else {}, profile, own, events)
            if key in events:
                return events[key][-1].origin
        return None

    def _find_steps(self, steps: tuple[Step, ...], key: str) -> tuple[Step, ...]:
        """Return those of a layer's steps that touch a setting; the layer is gone through once, however many settings are asked for."""
        if len(steps) <= _FEW_STEPS:
            return tuple([step for step in steps if step.key == key])
        kept = self._steps.get(id(steps))
        if kept is None:
            by_key: dict[str, list[Step]] = {}
            for step in steps:
                by_key.setdefault(step.key, []).append(step)
            kept = self._steps[id(steps)] = (steps, by_key)  # while the steps are kept no others have their id
        return tuple(kept[1].get(key, ()))

    def forget_lineages(self, kept: int) -> None:
        """Forget who extends whom, because the profiles are now other ones; keep at most ``kept`` folds."""
        self._lineages.clear()
        self._refused.clear()
        self._steps.clear()
        self._claims.clear()
        self._others.clear()
        if len(self._folds) > kept:
            self._folds.clear()

    def fold_lineage(self, lineage: tuple[Profile, ...], scenario: str | None) -> dict[str, Any]:
        """Return the settings after the steps of a lineage, or of a part of one from its lowest profile on.

        They are shared: copy them before changing them.
        """
        marks = (scenario, *[profile.key for profile in lineage])
        done = len(marks)
        while done > 1 and marks[:done] not in self._folds:
            done -= 1
        settings = self._folds[marks[:done]] if done > 1 else {}
        for place in range(done, len(marks)):
            profile = lineage[place - 1]
            settings = dict(settings)
            apply_layers(settings, profile, self._select_layers(profile, scenario), None)
            if place >= len(marks) - 2:  # the whole, and the part below it from which its siblings go on
                self._folds[marks[: place + 1]] = settings
        return settings

    def _select_layers(self, profile: Profile, scenario: str | None) -> list[Layer]:
        """Return the layers of one profile that take part in this context, by name."""
        found = [("values", profile.steps)]
        if profile.overrides:
            found += [(o.layer, o.steps) for o in profile.overrides if is_override_active(o, self.context, scenario)]
        return found

    def resolve_lineage(self, profile: Profile) -> tuple[Profile, ...]:
        """Return the profile behind all its ancestors, lowest first. Raises NpuprofError."""
        chain: dict[str, Profile] = {}  # those whose parents are being ordered, each extends the next
        try:
            self._order_ancestors(profile, chain)
        except NpuprofError as error:
            self._refused |= dict.fromkeys(chain, error)  # whoever extends them has the same fault
            raise
        return self._lineages[profile.key]

    def _order_ancestors(self, profile: Profile, chain: dict[str, Profile]) -> None:
        """Find the lineages of a profile and of all its ancestors. Raises NpuprofError for the last of ``chain``."""
        known = self._lineages
        waiting = [profile]
        parents: dict[str, list[Profile]] = {}
        while waiting:
            current = waiting[-1]
            if current.key not in known and current.key not in chain:
                chain[current.key] = current
                if current.key in self._refused:
                    raise self._refused[current.key].with_traceback(None)
                parents[current.key] = self._resolve_parents(current, chain)
                waiting += [parent for parent in reversed(parents[current.key]) if parent.key not in known]
                continue
            waiting.pop()
            if current.key not in known:
                self._parents[current.key] = tuple(parent.key for parent in parents[current.key])
                lineage = self._order_lineage(current, parents[current.key])
                if self._has_sources:
                    lineage = self._settle_versions(current, lineage)
                if len(lineage) > MOST_ANCESTORS + 1:
                    raise NpuprofError([_build_long_lineage_finding(current)])
                known[current.key] = lineage
                del chain[current.key]

    def _resolve_parents(self, profile: Profile, chain: dict[str, Profile]) -> list[Profile]:
        parents: list[Profile] = []
        problems: list[Finding] = []
        repeated: dict[str, list[int]] = {}
        for index, reference in enumerate(profile.extends):
            try:
                parent = self.lookup(reference, profile, index)
            except NpuprofError as error:
                problems += error.findings
                continue
            if parent.key in chain:
                raise NpuprofError([_build_cycle_finding(list(chain.values()), parent)])
            repeated.setdefault(parent.key, []).append(index)
            parents.append(parent)
            self._has_sources = self._has_sources or is_of_source(parent)
        problems += [_build_repeated_parent_finding(profile, places) for places in repeated.values() if len(places) > 1]
        if problems:
            raise NpuprofError([*problems, *profile.problems])
        return parents

    def _settle_versions(self, profile: Profile, lineage: tuple[Profile, ...]) -> tuple[Profile, ...]:
        """Return a lineage in which each preset of a source stands once: two versions that say the same are one.

        Raises NpuprofError (NP110) where they do not.
        """
        first: dict[str, Profile] = {}
        kept: list[Profile] = []
        for member in lineage:
            other = first.setdefault(identify_preset(member), member) if is_of_source(member) else member
            if other is member or member is profile or other in self._lineages[member.key]:  # (a preset may build on its own older release)
                kept.append(member)
            elif [one.document.text for one in self._lineages[other.key]] == [one.document.text for one in self._lineages[member.key]]:
                self._resolve_claims(self._lineages[member.key])  # its heirs ask for them
            else:
                paths = [self._find_path(profile, {one.key: one for one in (*lineage, profile)}, end) for end in (other, member)]
                raise NpuprofError([_build_two_versions_finding(profile, other, member, paths)])
        return tuple(kept)

    def _find_path(self, profile: Profile, members: dict[str, Profile], end: Profile) -> str:
        """Return how a profile comes to one of its ancestors, in words."""
        paths: dict[str, tuple[Profile, ...]] = {profile.key: (profile,)}
        waiting = [profile]
        for current in waiting:
            for key in self._parents.get(current.key, ()):
                if key in members and key not in paths:
                    paths[key] = (*paths[current.key], members[key])
                    waiting.append(members[key])
        return " -> ".join(member.name for member in paths.get(end.key, (profile, end)))

    def _order_lineage(self, profile: Profile, parents: list[Profile]) -> tuple[Profile, ...]:
        """Merge the orders of the parents so that none of them is contradicted."""
        if len(parents) < 2:
            return (*self._lineages[parents[0].key], profile) if parents else (profile,)
        lines = [self._lineages[parent.key] for parent in parents]
        if profile.stacked:
            named = [parent.key for parent in parents]
            if any(member.key in named[place + 1 :] for place, line in enumerate(lines) for member in line):
                return self._stack_lineages(profile, lines)
        return (*self._merge_lineages(profile, [*reversed(lines), tuple(parents)]), profile)

    def _stack_lineages(self, profile: Profile, lines: list[tuple[Profile, ...]]) -> tuple[Profile, ...]:
        """Lay profiles over one another where a later one is an ancestor of an earlier: it moves to the end."""
        order = lines[0]
        for line in lines[1:]:
            last = line[-1]
            if any(member.key == last.key for member in order):
                order = (*(member for member in order if member.key != last.key), last)
            else:
                order = self._merge_lineages(profile, [line, order, (order[-1], last)])
        return (*order, profile)

    def _merge_lineages(self, profile: Profile, lines: list[tuple[Profile, ...]]) -> tuple[Profile, ...]:
        """Return one order of all members that contradicts none of the given ones. Raises NpuprofError."""
        from heapq import heappop, heappush  # most presets have one parent

        common = _count_common(lines[:-1])
        queues = [list(line[common:]) for line in lines[:-1]] + [list(lines[-1])]
        inside: dict[str, int] = {}  # how often a member is waited for: it stands in a queue and not at its end
        ends: dict[str, list[int]] = {}  # the queues that a member is the last of
        for place, queue in enumerate(queues):
            ends.setdefault(queue[-1].key, []).append(place)
            for member in queue[:-1]:
                inside[member.key] = inside.get(member.key, 0) + 1
        # From the far end: the winner of the rest is the last of some queue and inside no other; of several that of the first queue.
        free = [place for place, queue in enumerate(queues) if not inside.get(queue[-1].key)]
        order: list[Profile] = []
        while free:
            queue = queues[heappop(free)]
            if not queue or inside.get(queue[-1].key):
                continue
            winner = queue[-1]
            order.append(winner)
            for place in ends.pop(winner.key):
                queues[place].pop()
                if queues[place]:
                    last = queues[place][-1].key
                    inside[last] -= 1
                    ends.setdefault(last, []).append(place)
                    if not inside[last]:
                        for ready in ends[last]:
                            heappush(free, ready)
        if any(queues):
            raise NpuprofError([_build_order_finding(profile, [queue for queue in queues if queue])])
        return (*lines[0][:common], *reversed(order))


def _count_common(lines: list[tuple[Profile, ...]]) -> int:
    """Return with how many members all lines begin alike, none of them the last of its line: they come first in every order."""
    first, *others = lines
    shortest = min(map(len, lines)) - 1
    for other in others:
        same = list(map(is_, first[:shortest], other))
        shortest = same.index(False) if False in same else len(same)
    return shortest


def is_of_source(profile: Profile) -> bool:
    """Return whether a profile is a preset of another repository."""
    return profile.key.startswith("source:")


def is_personal(profile: Profile) -> bool:
    """Return whether a profile is a layer of one user's own over a shared preset."""
    return profile.key.startswith(PERSONAL)


def identify_preset(profile: Profile) -> str:
    """Return what all versions of a source's preset have in common in their keys."""
    return profile.key.rpartition("#")[0]


def rebuild_config(
    name: str, context: Context, lineage: tuple[Profile, ...], claims: Claims, changes: tuple[Step, ...], policy: Policy | None = None
) -> Config:
    """Return a config that was pickled: resolved again from the profiles that took part, with no store behind it."""
    found = Resolver(_find_no_profile, context).resolve_members(lineage, name, claims, changes)
    found.memo["policy"] = policy
    return found


def _find_no_profile(reference: str, *_: object) -> Profile:
    raise AssertionError(f"nothing is looked up behind a config that was pickled: {reference}")


def is_override_active(override: Override, context: Context, scenario: str | None) -> bool:
    """Return whether every key of an override's match holds; what was not asked for matches nothing."""
    for name, wanted in override.match.items():
        asked = scenario if name == "scenario" else getattr(context, name)
        if not is_match_met(name, wanted, asked):
            return False
    return True


def is_match_met(name: str, wanted: tuple[str, ...], asked: str | None) -> bool:
    """Return whether one key of an override's match holds for a product, a release, a target or a scenario."""
    if asked is None:
        return False
    if name == "product":
        return any(products.is_product_covered(pattern, asked) for pattern in wanted)
    if name == "cann":
        return any(asked in (releases.find_releases_in_range(spec) or ()) for spec in wanted)
    return asked in wanted


def apply_layers(settings: dict[str, Any], profile: Profile, layers: list[Layer], events: dict[str, list[Event]] | None) -> None:
    """Take the steps of one profile's layers in ``settings``; with ``events``, keep the leaves' origins and the history.

    Raises NpuprofError for an append to something that is no list.
    """
    for layer, steps in layers:
        cuts: dict[str, values.Cut] = {}
        for step in steps:
            value = step.value if events is None else _trace_step(profile, layer, step, step.key in settings, events)
            if step.op == "unset":
                take_unset_step(settings, step, cuts)
                continue
            cuts.pop(step.key, None)
            try:
                _apply_step(settings, step, value)
            except values.NotAListError as error:
                raise NpuprofError([_build_append_finding(profile, step, error.path)]) from None


def _apply_step(settings: dict[str, Any], step: Step, value: Any) -> None:
    """Take one step, whose value may have its origins with it. Raises values.NotAListError."""
    key = step.key
    if step.op == "set":
        settings[key] = values.merge_values(key, settings.get(key), value) if isinstance(value, dict) else value
    else:
        settings[key] = values.append_lists(key, settings.get(key), value)


def take_unset_step(settings: dict[str, Any], step: Step, cuts: dict[str, values.Cut]) -> bool:
    """Clear what a step names; return whether it was there. ``cuts`` keeps what parts were taken out of since it was last set."""
    key = step.key
    if key not in settings:
        return False
    cut = cuts.get(key)
    if cut is None:
        cut = cuts[key] = values.Cut(key, settings[key])
    found = cut.remove(step.tail)
    if cut.left is None:
        del settings[key], cuts[key]
    else:
        settings[key] = cut.left
    return found


def _trace_step(profile: Profile, layer: str, step: Step, is_known: bool, events: dict[str, list[Event]]) -> Any:
    """Return the value of a step with its origin in each leaf; remember the step, unless it unsets what is not there."""
    origin = profile.origin(*step.path, layer=step.op if layer == "values" and step.op != "set" else layer)
    if step.op != "unset" or is_known:
        events.setdefault(step.key, []).append(Event(step, origin))
    return values.trace_leaves(step.value, origin)


def _build_command_line(changes: tuple[Step, ...]) -> tuple[Profile, ...]:
    """Return the profiles that changes from the command line belong to, one for each argument: overrides that always match."""
    found = []
    for argument, steps in groupby(changes, lambda step: str(step.path[0])):
        last = Profile(build_command_line_document(argument, {}))
        last.overrides = (Override({}, tuple(steps), "command line"),)
        found.append(last)
    return tuple(found)


def _build_repeated_parent_finding(profile: Profile, places: list[int]) -> Finding:
    reference = profile.extends[places[1]]
    twice = len(places) == 2
    return Finding(
        "NP104",
        f"{profile.name} extends {reference} {'twice' if twice else f'{len(places)} times'}",
        "The order of parents decides who wins, so each may stand there once.",
        f"remove one of the two {reference!r}" if twice else f"leave one {reference!r}",
        profile.origin("profile", "extends", places[1]),
        "profile.extends",
        (profile.name,),
    )


def _build_cycle_finding(chain: list[Profile], parent: Profile) -> Finding:
    """Return the one finding for a ring, whichever of its profiles was asked for."""
    keys = [member.key for member in chain]
    ring = chain[keys.index(parent.key) :]
    start = min(range(len(ring)), key=lambda place: ring[place].key)
    ring = ring[start:] + ring[:start]
    links = " -> ".join([*(f"{p.name} ({p.origin('profile', 'extends')})" for p in ring), ring[0].name])
    return Finding(
        "NP102",
        f"the inheritance runs in a circle: {links}",
        "A profile cannot be laid over itself.",
        "take one of them out of extends",
        ring[0].origin("profile", "extends"),
        "profile.extends",
        tuple(p.name for p in ring),
    )


def _build_long_lineage_finding(profile: Profile) -> Finding:
    return Finding(
        "NP109",
        f"{profile.name} builds on more than {MOST_ANCESTORS} presets",
        "Every preset is folded over all that it builds on; no store that people keep comes near this bound.",
        "lay what they have in common into fewer presets",
        profile.origin("profile", "extends"),
        "profile.extends",
        (profile.name,),
    )


def _build_two_versions_finding(profile: Profile, one: Profile, other: Profile, paths: list[str]) -> Finding:
    cited = [member.document.source.partition(":")[0] for member in (one, other)]
    return Finding(
        "NP110",
        f"{profile.name} builds on two versions of {one.name}: {cited[0]} by {paths[0]}, and {cited[1]} by {paths[1]}",
        "Each counts once, and neither is newer for both of those who extend it.",
        "let both take one version: npuprof source update, or pin the same one in extends; or extend only one of them",
        profile.origin("profile", "extends"),
        "profile.extends",
        (profile.name,),
    )


def _build_order_finding(profile: Profile, queues: list[list[Profile]]) -> Finding:
    left = list(dict.fromkeys(member.name for queue in queues for member in queue))
    wishes = [" before ".join(member.name for member in queue) for queue in queues if len(queue) > 1]
    return Finding(
        "NP103",
        f"{profile.name} has parents that cannot be ordered: {', '.join(left)}",
        f"{_NO_ORDER} Asked for: {'; '.join(dict.fromkeys(wishes))}.",
        "write them in the same order everywhere, or drop the one that another already extends",
        profile.origin("profile", "extends"),
        "profile.extends",
        (profile.name,),
    )


def _build_append_finding(profile: Profile, step: Step, path: Any) -> Finding:
    from npuprof.document import keys

    shown = keys.format_key_path(step.key, path)
    return Finding(
        "NP106",
        f"append to {shown}, which is not a list",
        "Only lists can be added to.",
        f"set {shown} instead, or append a list to a list",
        profile.origin(*step.path, *path),
        shown,
        (profile.name,),
    )
