"""Resolves profiles to configs: one fold over the steps of a profile and its ancestors.

Ancestors come first, in the order computed by ``lineages``; later wins. Each layer first unsets
keys, then sets its values, then removes and appends list elements. Matching overrides follow, in
file order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain, groupby, starmap
from operator import attrgetter

from npuprof import catalog
from npuprof.catalog import releases, values
from npuprof.catalog.programs import spell_key
from npuprof.document import Document, build_command_line_document
from npuprof.document.keys import format_full_key
from npuprof.document.profile import FORM, Lineage, Override, Profile
from npuprof.model import (
    TYPE_CHECKING,
    Context,
    Event,
    NpuprofError,
    Origin,
    Path,
    Record,
    Step,
    TomlTable,
    raise_any,
    renew_hints,
)
from npuprof.resolve.claims import combine_claims
from npuprof.resolve.config import Config
from npuprof.resolve.lineages import Lineages
from npuprof.system import group_pairs, map_leaves

if TYPE_CHECKING:
    from typing import Any

    from npuprof.document.policy import Policy
    from npuprof.resolve.claims import Claims
    from npuprof.resolve.lineages import Lookups

#: The name of a layer, as origins show it, and its steps.
Layer = tuple[str, tuple[Step, ...]]

#: Layers with at most this many steps are scanned linearly, which is faster than indexing them.
_FEW_STEPS = 50


class Resolver:
    """Resolves profiles by some lookups, one context and one digest form; caches shared parts.

    The first fold computes values only. The origins of a setting are traced on demand by a second
    fold over the steps that change it.
    """

    def __init__(
        self,
        lookups: Lookups,
        context: Context | None = None,
        lineages: Lineages | None = None,
        in_python: bool = False,
        form: int = FORM,
    ) -> None:
        renew_hints()
        self.form = form
        self.lookups = lookups
        self.context = context or Context()
        self.in_python = (
            in_python  #: whether messages name Python arguments instead of command line options
        )
        self.judged: dict[Any, dict[Any, Any]] = {}  #: cache of check results, by checked context
        self.lineages = lineages or Lineages(lookups)
        self._steps: dict[int, tuple[tuple[Step, ...], dict[str, list[Step]]]] = {}
        self._traces: dict[tuple[Any, ...], tuple[list[Profile], tuple[Any, list[Event]]]] = {}
        self._folds: dict[tuple[str | None, ...], TomlTable] = {}
        self._others: dict[tuple[Context, int], Resolver] = {}

    def for_context(self, context: Context, form: int = 0) -> Resolver:
        """Return the resolver of the same profiles for another context, and by an older form.

        All callers share one instance and its cache.
        """
        form = form or self.form
        other = self._others.get((context, form))
        if other is None:
            other = self._others[context, form] = Resolver(
                self.lookups, context, self.lineages, self.in_python, form
            )
            # its results are cached by context, so that all resolvers of a form can share them
            if form == self.form:
                other.judged = self.judged
        return other

    def resolve_profile(
        self, profile: Profile, name: str | None = None, changes: Iterable[Step] = ()
    ) -> Config:
        """Return the profile resolved; ``changes`` are applied last, from the command line.

        Raises NpuprofError with all findings for a missing parent, a cycle, an impossible order, a
        malformed profile, or a change of the elements of a value that is not a list.
        """
        lineage = self.lineages.find_lineage(profile)
        return self.resolve_members(
            lineage, name or profile.name, self.lineages.resolve_claims(lineage), changes
        )

    def resolve_members(
        self, lineage: Lineage, name: str, claims: Claims, changes: Iterable[Step] = ()
    ) -> Config:
        """Return a lineage resolved, lowest first, without looking up profiles.

        Raises NpuprofError as ``resolve_profile`` does.
        """
        if (form := lineage[-1].form) < self.form:
            older = self.for_context(self.context, form)
            return older.resolve_members(lineage, name, claims, changes)
        problems = self.lineages.list_form_problems(lineage)
        problems += [claim.conflict for claim in claims.values() if claim.conflict]
        raise_any(problems)
        return self._build_config(name, lineage, claims, tuple(changes))

    def edit_config(
        self,
        config: Config,
        documents: Mapping[str, Document],
        edits: Mapping[str, Mapping[Path, Any]],
        with_claims: bool,
    ) -> Config:
        """Return a config with other texts of its members, by name, as ``Profile.edit`` does.

        The origins of claims are in these texts only if it is ``with_claims``.
        """
        lineage = tuple(
            [
                profile.edit(documents[profile.name], edits.get(profile.name, {}))
                if profile.name in documents and not profile.document.revision
                else profile
                for profile in config.lineage
            ]
        )
        claims = config.claims
        if with_claims:
            claims = {
                name: claim._replace(document=documents[claim.document.name])
                if claim.document.name in documents and not claim.document.revision
                else claim
                for name, claim in claims.items()
            }
        scenario = config.scenario
        traced = {
            key: self._trace_anew(lineage, scenario, key)
            for key in starmap(format_full_key, chain(*edits.values()))
        }
        settings = dict(config.settings)
        for key, (value, _) in traced.items():
            if value is None:
                settings.pop(key, None)
            else:
                settings[key] = map_leaves(attrgetter("value"), value)
        return config.replace_parts(
            lineage=lineage,
            settings=settings,
            claims=claims,
            memo={},
            _tracer=partial(self._trace_setting, lineage, scenario),
            _traced=traced,
        )

    def resolve_as_far_as_can_be(self, profile: Profile) -> Config:
        """Return a profile resolved without its malformed parts.

        Its ancestors are left out if they cannot be ordered.

        Raises NpuprofError for a change of the elements of a value that is not a list.
        """
        try:
            lineage = self.lineages.find_lineage(profile)
            claims = self.lineages.resolve_claims(lineage)
        except NpuprofError:
            # the fault of the ancestors is reported elsewhere: its own values can be checked
            lineage, claims = (profile,), combine_claims(profile, ())
        return self._build_config(profile.name, lineage, claims, ())

    def _build_config(
        self, name: str, lineage: Lineage, claims: Claims, changes: tuple[Step, ...]
    ) -> Config:
        last = _build_command_line(changes)
        scenario = claims["scenario"].value if "scenario" in claims else None
        settings = self.fold_lineage(lineage, scenario)
        # not by fold_lineage: changes of one command must not get into the shared cache
        for member in last:
            settings = dict(settings)
            self._apply_profile(settings, member, scenario)
        tracer = partial(self._trace_setting, lineage + last, scenario)
        return Config(name, self.context, lineage, settings, tracer, self, changes, claims)

    def _trace_setting(
        self, members: Lineage, scenario: str | None, key: str
    ) -> tuple[Any, list[Event]]:
        """Return a setting with the origin of every leaf, and each step that changed it.

        Presets that inherit both share them.
        """
        touching = [
            profile
            for profile in members
            if (profile.touched is None or key in profile.touched) and profile.touches(key)
        ]
        if spell_key(key):
            touching = [profile for profile in members if _does_touch(profile, key)]
        # steps of the preset itself are shared with no other one
        if not touching or touching[-1] is members[-1]:
            return self._trace_anew(touching, scenario, key)
        mark = (key, scenario, *map(id, touching))
        if mark not in self._traces:
            # keeping the profiles keeps their ids unique
            self._traces[mark] = touching, self._trace_anew(touching, scenario, key)
        return self._traces[mark][1]

    def _trace_anew(
        self, touching: Iterable[Profile], scenario: str | None, key: str
    ) -> tuple[Any, list[Event]]:
        """Return what ``_trace_setting`` does; other settings are not folded."""
        traced: TomlTable = {}
        events: dict[str, list[Event]] = {}
        for profile in touching:
            self._apply_profile(traced, profile, scenario, key, events)
        return traced.get(key), events.get(key, [])

    def find_last_origin(
        self, lineage: Lineage, first: int, scenario: str | None, key: str
    ) -> Origin | None:
        """Return the last origin of a setting among the members from ``first`` on.

        Earlier members are not folded.
        """
        for place in range(len(lineage) - 1, first - 1, -1):
            profile = lineage[place]
            if not _does_touch(profile, key):
                continue
            # an unset is only an event if the setting was set before
            before = self.fold_lineage(lineage[:place], scenario)
            events: dict[str, list[Event]] = {}
            settings = {key: before[key]} if key in before else {}
            self._apply_profile(settings, profile, scenario, key, events)
            if key in events:
                return events[key][-1].origin
        return None

    def _find_steps(self, steps: tuple[Step, ...], key: str) -> tuple[Step, ...]:
        """Return the steps of a layer that change a setting.

        The layer is indexed once for all settings.
        """
        if spelled := spell_key(key):
            return tuple([step for step in steps if spell_key(step.key) == spelled])
        if len(steps) <= _FEW_STEPS:
            return tuple([step for step in steps if step.key == key])
        sorted_steps = self._steps.get(id(steps))
        if sorted_steps is None:
            by_key = group_pairs((step.key, step) for step in steps)
            # keeping the steps alive keeps their id unique
            sorted_steps = self._steps[id(steps)] = steps, by_key
        return tuple(sorted_steps[1].get(key, ()))

    def forget_lineages(self, kept: int) -> None:
        """Drop the cached lineages after profiles have changed; keep at most ``kept`` folds."""
        self.lineages.forget()
        self._steps.clear()
        self._traces.clear()
        self._others.clear()
        if len(self._folds) > kept:
            self._folds.clear()

    def fold_lineage(self, lineage: Lineage, scenario: str | None) -> TomlTable:
        """Return the settings after the steps of a lineage, or of its lowest part.

        The result is shared: copy it before changing it.
        """
        marks = (scenario, *[profile.key for profile in lineage])
        done, known = len(marks), None
        # from the longest known part: presets of a store share most of their ancestors
        while done > 1 and (known := self._folds.get(marks[:done])) is None:
            done -= 1
        settings = known or {}
        for place in range(done, len(marks)):
            profile = lineage[place - 1]
            settings = dict(settings)
            self._apply_profile(settings, profile, scenario)
            if place == len(marks) - 2:  # sibling profiles and checks continue from here
                self._folds[marks[: place + 1]] = settings
        return settings

    def _apply_profile(
        self,
        settings: TomlTable,
        profile: Profile,
        scenario: str | None,
        key: str | None = None,
        events: dict[str, list[Event]] | None = None,
    ) -> None:
        """Apply the layers of a profile that count in this context; of one ``key``, if it is given.

        With ``events``, as ``apply_layers`` does.
        """
        layers = [("values", profile.steps)]
        if profile.overrides:
            layers += [
                (o.layer, o.steps)
                for o in profile.overrides
                if is_override_active(o, self.context, scenario)
            ]
        if key is not None:
            layers = [
                (name, found) for name, steps in layers if (found := self._find_steps(steps, key))
            ]
        if not layers:
            return
        # arguments of the command line have no store
        form = min(self.form, profile.form) if profile.home else profile.form
        apply_layers(settings, profile, layers, events, form)


def rebuild_config(
    name: str,
    context: Context,
    lineage: Lineage,
    claims: Claims,
    changes: tuple[Step, ...],
    policy: Policy | None,
    in_python: bool,
) -> Config:
    """Return an unpickled config: resolved again from its profiles, without a store."""
    return Resolver(FixedPolicy(policy, lineage[-1]), context, in_python=in_python).resolve_members(
        lineage, name, claims, changes
    )


class FixedPolicy(Record):
    """The lookups of one preset whose lineage is known, and its policy."""

    policy: Policy | None
    profile: Profile

    def find_parent(self, reference: str, referrer: Profile | None, index: int) -> Profile:
        """Raise AssertionError: there are no parents."""
        raise AssertionError(f"nothing is looked up behind such a preset: {reference}")

    def find_policy(self, profile: Profile) -> Policy | None:
        """Return the policy of the preset; None for its ancestors."""
        return self.policy if profile is self.profile else None

    def find_axes(self, profile: Profile) -> None:
        """Return None: the profiles were judged with their store."""


def is_override_active(override: Override, context: Context, scenario: str | None) -> bool:
    """Return whether every key of an override's match is satisfied.

    An axis without a value satisfies nothing.
    """
    for name, allowed in override.match.items():
        value = scenario if name == "scenario" else context.find_value(name)
        if not is_match_met(name, allowed, value):
            return False
    return True


def is_match_met(name: str, allowed: tuple[str, ...], value: str | None) -> bool:
    """Return whether a context satisfies one key of an override's match.

    The key is a product, target, scenario, release or declared axis.
    """
    if value is None:
        return False
    if name == "product":
        from npuprof.catalog.products import is_product_covered

        return any(is_product_covered(pattern, value) for pattern in allowed)
    if not releases.is_axis(name):
        return value in allowed
    # a range that matches no known release satisfies nothing
    return any(value in (releases.find_releases_in_range(spec, name) or ()) for spec in allowed)


def apply_layers(
    settings: TomlTable,
    profile: Profile,
    layers: list[Layer],
    events: dict[str, list[Event]] | None,
    form: int = FORM,
) -> None:
    """Apply the steps of one profile's layers to ``settings``, by the rules of a digest form.

    With ``events``, also record leaf origins and history.

    Raises NpuprofError for a change of the elements of a value that is not a list.
    """
    for layer, steps in layers:
        cuts: dict[str, values.Cut] = {}
        for step in steps:
            if form == FORM and "." in step.key:
                take_over_spellings(settings, step.key, events)
            value = (
                step.value
                if events is None
                else _trace_step(profile, layer, step, step.key in settings, events)
            )
            if step.op == "unset":
                apply_unset_step(settings, step, cuts, form)
                continue
            # the value is another now, so that positions of removed parts are no longer valid
            cuts.pop(step.key, None)
            if step.op == "set" and not isinstance(value, dict):
                settings[step.key] = value
                continue
            if step.op == "remove" and step.key not in settings:
                continue
            try:
                settings[step.key] = values.change_value(
                    _find_structured_key(step.key, form),
                    step.op,
                    settings.get(step.key),
                    value,
                )
            except values.NotAListError as error:
                from npuprof.resolve.faults import build_no_list_finding

                raise NpuprofError(build_no_list_finding(profile, step, error.path)) from None


def _does_touch(profile: Profile, key: str) -> bool:
    """Return whether a profile changes a setting, or another spelling of its key."""
    spelled = spell_key(key)
    return profile.touches(key) or bool(
        spelled and any(spell_key(other) == spelled for other in profile.touched or ())
    )


def take_over_spellings(
    settings: TomlTable, key: str, events: dict[str, list[Event]] | None
) -> None:
    """Move the value of a program's argument to the key in its written form.

    A parent in a source, or released in an older form, may have another spelling.
    """
    if spell_key(key) != key:
        return
    for other in [name for name in settings if name != key and spell_key(name) == key]:
        settings[key] = settings.pop(other)
        if events is not None:
            events.setdefault(key, []).extend(events.pop(other, ()))


def _find_structured_key(key: str, form: int) -> str:
    """Return the key of a setting if its text has a structured form in a digest form."""
    return "" if form < FORM and catalog.is_argument(key) else key


def apply_unset_step(
    settings: TomlTable, step: Step, cuts: dict[str, values.Cut], form: int = FORM
) -> bool:
    """Unset the key of a step; return whether it was set.

    ``cuts`` records the removed parts of values since they were last set.
    """
    key = step.key
    if key not in settings:
        return False
    cut = cuts.get(key)
    if cut is None:
        cut = cuts[key] = values.Cut(_find_structured_key(key, form), settings[key])
    was_set = cut.remove(step.tail)
    if cut.left is None:
        del settings[key], cuts[key]
    else:
        settings[key] = cut.left
    return was_set


def _trace_step(
    profile: Profile, layer: str, step: Step, is_known: bool, events: dict[str, list[Event]]
) -> Any:
    """Return the value of a step with an origin in each leaf.

    The step is recorded unless it unsets a missing key.
    """
    part = step.op if layer == "values" and step.op != "set" else layer
    origin = Origin(profile.document, step.path, part)
    if step.op != "unset" or is_known:
        events.setdefault(step.key, []).append(Event(step, origin))
    return values.trace_leaves(step.value, origin)


def _build_command_line(changes: tuple[Step, ...]) -> Lineage:
    """Return a profile for each change on the command line: overrides that always match."""
    profiles = []
    # one profile per argument: origins name --set or --unset, and the written order decides
    for argument, steps in groupby(changes, lambda step: str(step.path[0])):
        last = Profile(build_command_line_document(argument, {}))
        last.overrides = (Override({}, tuple(steps), "command line"),)
        profiles.append(last)
    return tuple(profiles)
