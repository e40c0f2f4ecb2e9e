"""The order of ancestors (C3 linearisation): every profile comes after all its ancestors.

Each ancestor appears once, before all its dependents, and the parents of a profile keep their
written order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import repeat
from operator import attrgetter, contains

from npuprof.catalog import releases
from npuprof.document.profile import Lineage, Profile
from npuprof.model import TYPE_CHECKING, Axes, Finding, NpuprofError
from npuprof.resolve.claims import combine_claims
from npuprof.system import count_common, group_pairs

if TYPE_CHECKING:
    from typing import Protocol

    from npuprof.document.policy import Policy
    from npuprof.resolve.claims import Claims

    class Lookups(Protocol):
        """What resolving looks up: parents, and the team's policies."""

        def find_parent(self, reference: str, referrer: Profile | None, index: int) -> Profile:
            """Return the profile for a reference in another profile (None: on the command line).

            Raises NpuprofError.
            """

        def find_policy(self, profile: Profile) -> Policy | None:
            """Return the team policy for a profile, None if it has none. Raises NpuprofError."""

        def find_axes(self, profile: Profile) -> Axes | None:
            """Return the axes declared where a profile was read; None if unknown.

            Raises NpuprofError.
            """


#: The key prefix of personal layers.
PERSONAL = "personal:"

#: The maximum number of ancestors of a preset.
MOST_ANCESTORS = 2000

_get_overrides = attrgetter("overrides")
_get_table = attrgetter("table")
_get_yanked = attrgetter("yanked")


class Lineages:
    """The lineages of profiles, by the lookups of their parents.

    They are cached for all contexts: a context never changes ancestors.
    """

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups
        self._lineages: dict[str, Lineage] = {}
        #: errors of profiles whose ancestors cannot be ordered
        self._errors: dict[str, NpuprofError] = {}
        self._claims: dict[str, Claims] = {}
        self._parents: dict[str, tuple[str, ...]] = {}
        self._has_sources = False
        self._unknown: dict[str, list[Finding]] = {}

    def forget(self) -> None:
        """Drop the cached lineages after profiles have changed."""
        self._lineages.clear()
        self._errors.clear()
        self._claims.clear()
        self._unknown.clear()

    def list_form_problems(self, lineage: Iterable[Profile]) -> list[Finding]:
        """Return the structural problems of members, and the unknown frameworks and axes."""
        problems = []
        for member in lineage:
            if member.problems or member.named:
                problems += [*member.problems, *self._list_unknown_names(member)]
        return problems

    def _list_unknown_names(self, profile: Profile) -> list[Finding]:
        frameworks = releases.list_frameworks()
        if all(path[-1] in frameworks for path in profile.named):
            return []
        if profile.key not in self._unknown:
            from npuprof.resolve.faults import find_unknown_names

            declared = self._lookups.find_axes(profile)
            self._unknown[profile.key] = (
                [*find_unknown_names(profile, declared)] if declared is not None else []
            )
        return self._unknown[profile.key]

    def list_parent_keys(self, profile: Profile) -> tuple[str, ...]:
        """Return the keys of a profile's parents in written order.

        Empty if the profile was not resolved.
        """
        return self._parents.get(profile.key, ())

    def resolve_claims(self, lineage: Lineage) -> Claims:
        """Return the claims of the last profile of a lineage."""
        waiting = [lineage[-1]]
        while waiting:  # follow the parents: in a composed spec, an ancestor may come last
            current = waiting[-1]
            parents = self._parents[current.key]
            if unknown := [key for key in parents if key not in self._claims]:
                waiting += [member for member in lineage if member.key in unknown]
            else:
                waiting.pop()
                self._claims[current.key] = combine_claims(
                    current, [self._claims[key] for key in parents]
                )
        return self._claims[lineage[-1].key]

    def find_lineage(self, profile: Profile) -> Lineage:
        """Return the profile after all its ancestors, lowest first. Raises NpuprofError."""
        # profiles whose parents are being ordered; each extends the next
        chain: dict[str, Profile] = {}
        try:
            self._order_ancestors(profile, chain)
        except NpuprofError as error:
            self._errors |= dict.fromkeys(chain, error)  # their dependents have the same fault
            raise
        return self._lineages[profile.key]

    def _order_ancestors(self, profile: Profile, chain: dict[str, Profile]) -> None:
        """Compute the lineages of a profile and its ancestors.

        Raises NpuprofError for the last profile of ``chain``.
        """
        known = self._lineages
        waiting = [profile]  # a stack, not recursion: a chain may be longer than Python's stack
        parents = {}
        while waiting:
            current = waiting[-1]
            if current.key not in known and current.key not in chain:
                chain[current.key] = current
                if current.key in self._errors:
                    # without a traceback that grows with each report
                    raise self._errors[current.key].with_traceback(None)
                parents[current.key] = self._resolve_parents(current, chain)
                waiting += [
                    parent for parent in reversed(parents[current.key]) if parent.key not in known
                ]
                continue
            # the second time, all parents have lineages
            waiting.pop()
            if current.key not in known:
                self._parents[current.key] = tuple(parent.key for parent in parents[current.key])
                lineage = self._order_lineage(current, parents[current.key])
                # only a source can bring another version of a preset
                if self._has_sources:
                    lineage = self._settle_versions(current, lineage)
                if len(lineage) > MOST_ANCESTORS + 1:
                    from npuprof.resolve.faults import build_long_lineage_finding

                    raise NpuprofError(build_long_lineage_finding(current, MOST_ANCESTORS))
                known[current.key] = lineage
                del chain[current.key]

    def _resolve_parents(self, profile: Profile, chain: dict[str, Profile]) -> list[Profile]:
        """Return the parents of a profile in written order.

        Raises NpuprofError for missing and repeated ones, and for cycles.
        """
        parents = []
        problems: list[Finding] = []
        repeated = defaultdict(list)
        for index, reference in enumerate(profile.extends):
            try:
                parent = self._lookups.find_parent(reference, profile, index)
            except NpuprofError as error:
                problems += error.findings
                continue
            # before the other faults: the lineage behind a cycle has no end
            if parent.key in chain:
                from npuprof.resolve.faults import build_cycle_finding

                raise NpuprofError(build_cycle_finding(list(chain.values()), parent))
            repeated[parent.key].append(index)
            parents.append(parent)
            self._has_sources = self._has_sources or is_of_source(parent)
        if len(repeated) < len(parents):
            from npuprof.resolve.faults import build_repeated_parent_finding

            problems += [
                build_repeated_parent_finding(profile, indexes)
                for indexes in repeated.values()
                if len(indexes) > 1
            ]
        if problems:
            # with the faults of its own text, so that one run shows all
            raise NpuprofError([*problems, *self.list_form_problems((profile,))])
        return parents

    def _settle_versions(self, profile: Profile, lineage: Lineage) -> Lineage:
        """Return a lineage that contains each source preset once.

        Two versions with equal content are merged.

        Raises NpuprofError (NP110) if their contents differ.
        """
        first: dict[str, Profile] = {}
        settled = []
        for member in lineage:
            known = member
            if is_of_source(member):
                # all versions of a source's preset have the key prefix
                known = first.setdefault(member.key.rpartition("#")[0], member)
            member_lineage = self._lineages.get(member.key, ())
            # a preset may extend its own older release
            if known is member or member is profile or known in member_lineage:
                settled.append(member)
            elif _list_texts(self._lineages[known.key]) == _list_texts(member_lineage):
                self.resolve_claims(member_lineage)  # its dependents need them
            else:
                from npuprof.resolve.faults import build_two_versions_finding

                members = {layer.key: layer for layer in (*lineage, profile)}
                paths = [self._find_path(profile, members, end) for end in (known, member)]
                raise NpuprofError(build_two_versions_finding(profile, known, member, paths))
        return tuple(settled)

    def _find_path(self, profile: Profile, members: dict[str, Profile], end: Profile) -> str:
        """Return the inheritance path from a profile to one of its ancestors, as text."""
        paths: dict[str, Lineage] = {profile.key: (profile,)}
        waiting = [profile]
        for current in waiting:  # breadth first: the shortest path
            for key in self._parents.get(current.key, ()):
                if key in members and key not in paths:
                    paths[key] = (*paths[current.key], members[key])
                    waiting.append(members[key])
        return " -> ".join(member.name for member in paths.get(end.key, (profile, end)))

    def _order_lineage(self, profile: Profile, parents: list[Profile]) -> Lineage:
        """Merge the orders of the parents without contradicting any of them."""
        if len(parents) < 2:
            return (*self._lineages[parents[0].key], profile) if parents else (profile,)
        lines = [self._lineages[parent.key] for parent in parents]
        if profile.stacked:
            later = [parent.key for parent in parents]
            for line in lines:
                later.pop(0)
                # in a composed spec, a later preset may be an ancestor of an earlier one
                if any(member.key in later for member in line):
                    return self._stack_lineages(profile, lines)
        # reversed: of ancestors without a fixed order, those of the last parent come last
        return (*self._merge_lineages(profile, [*reversed(lines), tuple(parents)]), profile)

    def _stack_lineages(self, profile: Profile, lines: list[Lineage]) -> Lineage:
        """Compose profiles of which a later one may be an ancestor of an earlier one.

        Such an ancestor moves to the end.
        """
        order = lines[0]
        for line in lines[1:]:
            last = line[-1]
            if any(member.key == last.key for member in order):
                order = (*(member for member in order if member.key != last.key), last)
            else:
                order = self._merge_lineages(profile, [line, order, (order[-1], last)])
        return (*order, profile)

    def _merge_lineages(self, profile: Profile, lines: list[Lineage]) -> Lineage:
        """Return one order of all members that contradicts none of the given ones.

        Raises NpuprofError.
        """
        # siblings share most ancestors: merging only the rest keeps long chains linear
        common = _count_common(lines[:-1])
        queues = [list(line[common:]) for line in lines[:-1]] + [list(lines[-1])]
        # in how many queues a member occurs before the end
        inside = Counter(member.key for queue in queues for member in queue[:-1])
        # the indexes of the queues that end with a member
        ends = group_pairs((queue[-1].key, index) for index, queue in enumerate(queues))
        # The next winner is the last member of a queue that occurs inside no other; of several,
        # that of the first queue. The order is thus built from its end.
        free = [index for index, queue in enumerate(queues) if not inside[queue[-1].key]]
        order = []
        while free:
            queue = queues[free.pop(0)]
            if not queue or inside[queue[-1].key]:  # emptied, or moved on, by another winner
                continue
            winner = queue[-1]
            order.append(winner)
            for index in ends.pop(winner.key):
                queues[index].pop()
                if queues[index]:
                    last = queues[index][-1].key
                    inside[last] -= 1
                    ends.setdefault(last, []).append(index)
                    if not inside[last]:
                        free = sorted([*free, *ends[last]])
        if any(queues):  # every end is inside another queue: the lines contradict each other
            from npuprof.resolve.faults import build_order_finding

            raise NpuprofError(build_order_finding(profile, [queue for queue in queues if queue]))
        return (*lines[0][:common], *reversed(order))


def _count_common(lines: list[Lineage]) -> int:
    """Return the length of the common prefix of all lines, without the last member of any.

    The prefix comes first in every order.
    """
    first, *others = lines
    return min([min(map(len, lines)) - 1, *(count_common(first, other) for other in others)])


def _list_texts(lineage: Iterable[Profile]) -> list[str]:
    """Return the texts of the documents of profiles."""
    return [member.document.text for member in lineage]


def is_of_source(profile: Profile) -> bool:
    """Return whether a profile is from another repository."""
    return profile.key.startswith("source:")


def is_personal(profile: Profile) -> bool:
    """Return whether a profile is a user's personal layer over a shared preset."""
    return profile.key.startswith(PERSONAL)


# -- predicates over all members: without a function call per member, as a chain of a thousand
# presets evaluates them for each of them


def has_overrides(lineage: Iterable[Profile]) -> bool:
    """Return whether any member has an override."""
    return any(map(_get_overrides, lineage))


def has_yanked(lineage: Iterable[Profile]) -> bool:
    """Return whether any member extends a yanked version, or was itself requested in one."""
    return any(map(_get_yanked, lineage))


def is_set_anywhere(lineage: Iterable[Profile], key: str) -> bool:
    """Return whether any member sets a key of ``[profile]``."""
    return any(map(contains, map(_get_table, lineage), repeat(key)))
