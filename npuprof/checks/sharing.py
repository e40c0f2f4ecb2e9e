"""Content that does not belong in a shared preset.

Examples are facts of one process, redundant values, and changes to locked keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from npuprof import catalog
from npuprof.catalog import values
from npuprof.catalog.records import TeamVariables
from npuprof.checks.view import Fault, View
from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.document.profile import REQUESTED, Lineage, Profile
from npuprof.model import (
    LIST_OPS,
    TYPE_CHECKING,
    Finding,
    NpuprofError,
    Path,
    Record,
    Step,
    TomlTable,
    did_you_mean,
    is_same_typed_value,
)
from npuprof.report import format_set_command
from npuprof.resolve import (
    apply_layers,
    apply_unset_step,
    is_override_active,
    lineages,
    take_over_spellings,
)
from npuprof.resolve.config import Config

if TYPE_CHECKING:
    from typing import Any

    from npuprof.checks.rules import KeyFilter

_YANKED = "Its maintainer has marked it as not to be used any more."
_DEPRECATED = "Its owners keep it only for those who use it already."


#: By operation on an element: code, adverb and reason of the finding that it changes nothing.
_IN_VAIN = {
    "append": ("NP715", "already", "The order of the list counts, so that both elements stay."),
    "remove": ("NP714", "no", "No inherited list has the element."),
}


def is_written_down(config: Config, key: str) -> bool:
    """Return whether a setting is set in a file rather than on the command line."""
    origin = config.origin(key)
    return origin is not None and bool(origin.document.text)


def build_own_variable_fault(key: str) -> Fault:
    """Return the fault for setting a variable of npuprof itself."""
    why = (
        "It decides where npuprof looks for the user's "
        "own settings and trust, which no preset may do."
    )
    return Fault(
        "NP607",
        f"{key} is a variable of npuprof itself",
        why,
        "remove it, and set it where the job is started",
    )


def find_shared_faults(
    key: str, value: Any, in_python: bool, declared: TeamVariables
) -> Iterator[Fault]:
    """Yield the faults of a value that belongs in no shared preset, or needs trust."""
    section, name = keys.split_section_and_name(key)
    if section == "options":
        option = catalog.find_option(name)
        if option and option.per_process:
            what = f"{key} belongs to one process, not to a preset"
            why = "Every process of every user would get the same value."
            command = format_set_command(key, in_python)
            hint = f"set it in the script, or give it at the start: {command}"
            yield Fault("NP601", what, why, hint)
    elif section == "env":
        if fault := _find_frozen_fault(key, name, value, declared):
            yield fault
    else:
        from npuprof.catalog.execution import find_setting_effects

        for tail, _, effect in find_setting_effects(section, name, value):
            part = keys.format_key_path(key, tail)
            fault = _build_execution_fault(f"{part} needs trust: {effect}", "write another value")
            yield fault._replace(tail=tail)


def _find_frozen_fault(key: str, name: str, value: Any, declared: TeamVariables) -> Fault | None:
    """Return the fault for a variable that belongs to the process, the job or the site, or None.

    A variable that the team has ``declared`` is not reported as unknown.
    """
    from npuprof.catalog.execution import is_own_variable
    from npuprof.checks.variables import is_filled_in

    if is_own_variable(name) and not is_filled_in(name):
        return build_own_variable_fault(key)
    if fault := _find_trust_fault(key, name, value, declared):
        return fault
    variable = catalog.find_variable(name)
    # A table is filled in when the process starts: { launcher = "rank" }.
    if variable is None or variable.freeze == "ok" or isinstance(value, dict):
        return None
    return _build_frozen_fault(key, variable)


def _build_frozen_fault(key: str, variable: catalog.Variable) -> Fault:
    """Return the fault for a variable whose value belongs to the process, the job or the site."""
    hint = variable.advice or "leave it to the launcher"
    if variable.launcher and "launcher" not in hint:
        hint = (
            f'write {variable.name} = {{ launcher = "{variable.launcher}" '
            "}, filled in when the process starts"
        )
    if variable.freeze == "never":
        why = (
            "It differs from process to process; frozen "
            "in a preset every process gets the same one."
        )
        return Fault("NP602", f"{key} is a fact of one process", why, hint)
    if variable.freeze == "launcher":
        return Fault(
            "NP603",
            f"{key} is a fact of the job",
            "The value belongs to a job, not to a shared preset.",
            hint,
        )
    return Fault(
        "NP604",
        f"{key} depends on the site",
        "Other machines and networks need another value.",
        hint,
    )


def _find_trust_fault(key: str, name: str, value: Any, declared: TeamVariables) -> Fault | None:
    """Return the fault for a variable whose export needs trust, or None."""
    from npuprof.catalog.execution import (
        find_execution,
        find_text_effect,
        find_weakening,
        is_unknown_variable,
    )
    from npuprof.checks.variables import is_misspelt

    text = values.format_exported_text(name, value)
    if executes := find_execution(name):
        return _build_execution_fault(f"{key} affects code execution: {executes}")
    if protects := find_weakening(name, text or ""):
        return _build_execution_fault(f"{key} weakens a protection: {protects}")
    if text is not None and (effect := find_text_effect(name, text)):
        why = (
            "Scripts use variables unquoted and in calculations; exports reject the value until "
            "the store is trusted with it."
        )
        return Fault(
            "NP608",
            f"{key}: {effect}",
            why,
            "write a number or a plain word; if the preset needs it: npuprof trust STORE",
        )
    if name not in declared and is_unknown_variable(name) and not is_misspelt(name, declared):
        why = (
            "Its effect on programs is unknown; exports reject "
            "it until the store is trusted with its name."
        )
        return Fault(
            "NP606",
            f"{key} is not in the catalogue",
            why,
            f"check the spelling; if it is right: npuprof trust STORE {name}",
        )
    return None


def _build_execution_fault(what: str, hint: str = "set it where the job is started") -> Fault:
    why = (
        "Anyone who can change the preset controls the code that all jobs run; exports reject it "
        "until the store is trusted."
    )
    return Fault(
        "NP605",
        what,
        why,
        f"{hint}; if the preset needs it: npuprof trust STORE",
    )


class LostProtection(Record):
    """A step of a profile that unsets a variable which protects the user, and what is lost."""

    profile: Profile
    step: Step
    loss: str


def list_lost_protections(
    config: Config, in_every_context: bool = False
) -> Iterator[LostProtection]:
    """Yield the steps that unset a variable which protects the user.

    Variables that are set again do not count. Only overrides that match the config's context count,
    unless ``in_every_context``.
    """
    for profile in config.lineage:
        if "unset" not in profile.table and not profile.overrides:
            continue
        from npuprof.catalog.execution import find_weakening

        steps = [step for step in profile.steps if step.key not in config.settings]
        for override in profile.overrides:
            if in_every_context or is_override_active(override, config.context, config.scenario):
                steps += [
                    step
                    for step in override.steps
                    if in_every_context or step.key not in config.settings
                ]
        for step in steps:
            section, name = keys.split_section_and_name(step.key)
            if step.op == "unset" and section == "env" and (loss := find_weakening(name)):
                yield LostProtection(profile, step, loss)


def check_lost_protections(view: View) -> Iterator[Finding]:
    """Yield the steps of a lineage that unset a variable which protects the user."""
    for lost in list_lost_protections(view.config, in_every_context=True):
        key = lost.step.key
        what = f"unset {key} removes a protection: {lost.loss}"
        fault = _build_execution_fault(what, "keep the variable")
        yield view.build_finding(fault, key, lost.profile.origin(*lost.step.path))


def list_locked_keys(config: Config) -> list[tuple[str]]:
    """Return the settings that some profile locks, each as the only one that a check reads."""
    return [
        keys.split_key(name)[:1]
        for profile in config.lineage
        if "locked" in profile.table
        for name in profile.locked
    ]


class _Lock(Record):
    """An entry of ``locked``: its position there, its setting, and a path in the value."""

    index: int
    key: str
    tail: Path


def _list_locks(profile: Profile, about: KeyFilter) -> list[_Lock]:
    """Return the entries of a profile's ``locked`` about selected settings."""
    locks = (_Lock(index, *keys.split_key(written)) for index, written in enumerate(profile.locked))
    return [lock for lock in locks if about((lock.key,))]


def check_locked_keys(view: View, about: KeyFilter) -> Iterator[Finding]:
    """Yield locked keys whose value has changed since they were locked.

    With ``about``, only selected ones.
    """
    lineage = view.config.lineage
    if not lineages.is_set_anywhere(lineage, "locked"):
        return
    final = view.resolver.fold_lineage(lineage, view.scenario)
    for position, profile in enumerate(lineage):
        locks = _list_locks(profile, about) if "locked" in profile.table else []
        if not locks:
            continue
        then = view.resolver.fold_lineage(lineage[: position + 1], view.scenario)
        named = set()
        for lock in locks:
            key, tail = lock.key, lock.tail
            if key not in named:
                named.add(key)
                yield from _check_unknown_lock(view, profile, lock)
            before = values.find_value(key, then.get(key), tail)
            now = values.find_value(key, final.get(key), tail)
            if _is_same_setting(key, tail, before, now):
                continue
            if _is_same_setting(key, tail, _find_own_value(view, profile, key, tail), now):
                continue
            changed_by = view.resolver.find_last_origin(lineage, position + 1, view.scenario, key)
            yield view.build_finding(_build_lock_fault(profile, lock), key, changed_by)


def _build_lock_fault(profile: Profile, lock: _Lock) -> Fault:
    what = (
        f"{keys.format_key_path(lock.key, lock.tail)} is locked by {profile.name} "
        f"({profile.origin('profile', 'locked')})"
    )
    why = "The preset that locks it relies on this value in all child presets."
    owner = profile.table.get("owner")
    hint = "remove it here, or ask the owner" + (f" ({owner})" if owner else "")
    return Fault("NP105", what, why, hint)


def _is_same_setting(key: str, tail: Path, before: tuple[bool, Any], now: tuple[bool, Any]) -> bool:
    return before[0] == now[0] and values.is_equivalent_setting(
        key if not tail else "", before[1], now[1]
    )


def _find_own_value(view: View, profile: Profile, key: str, tail: Path) -> tuple[bool, Any]:
    """Return the value at a path of a profile without its dependents.

    It also holds if an ancestor is composed over the profile again.
    """
    try:
        own = view.resolver.fold_lineage(
            view.resolver.lineages.find_lineage(profile), view.scenario
        )
    except NpuprofError:  # a release whose parents are not available
        return False, None
    return values.find_value(key, own.get(key), tail)


def _check_unknown_lock(view: View, profile: Profile, lock: _Lock) -> Iterator[Finding]:
    """Yield the finding for a lock on an unknown option, which protects nothing."""
    section, name = keys.split_section_and_name(lock.key)
    if section == "options" and catalog.find_option(name) is None and lock.key not in view.settings:
        hint = did_you_mean(name, catalog.record_names(), "npuprof options lists all")
        fault = Fault(
            "NP201",
            f"locked names an unknown option {name!r}",
            "The lock would protect nothing.",
            hint,
        )
        origin = profile.origin("profile", "locked", lock.index)
        yield view.build_finding(fault, "profile.locked", origin)


def check_parents(view: View) -> Iterator[Finding]:
    """Yield the problems of the presets that a profile extends, each at its reference.

    Presets behind a version or in a source cannot be edited here: the finding is placed at the
    reference.
    """
    lineage = view.config.lineage
    own, has_yanked = lineage[-1], lineages.has_yanked(lineage)
    if yank := own.yanked.get(REQUESTED):
        yield view.build_finding(
            Fault("NP704", f"{view.config.name} was yanked: {yank.why}", _YANKED, yank.hint),
            "profile",
        )
    has_deprecated = lineages.is_set_anywhere(lineage[:-1], "deprecated")
    for member in lineage if has_yanked else (own,):
        faults = list(_find_yanked_parents(view, member)) if has_yanked else []
        if member is own and has_deprecated:
            faults += _find_deprecated_parents(lineage)
        if member is own:
            faults += _find_unshared_parents(own)
        for index, fault in faults:
            origin = member.origin("profile", "extends", index)
            yield view.build_finding(fault, "profile.extends", origin)


def _list_ancestors(start: str, list_parents: Callable[[str], Iterable[str]]) -> list[str]:
    """Return a preset and its ancestors, nearest first."""
    ancestors = [start]
    known = {start}
    for current in ancestors:  # grows while it is read
        for parent in list_parents(current):
            if parent not in known:
                known.add(parent)
                ancestors.append(parent)
    return ancestors


def _find_deprecated_parents(lineage: Lineage) -> Iterator[tuple[int, Fault]]:
    """Yield the deprecated presets that a profile extends, each with the index of its reference.

    Those reached through a source, which is not checked here, count too.
    """
    own = lineage[-1]
    members = {member.name: member for member in lineage[:-1]}

    def list_source_parents(name: str) -> list[str]:
        """Return the parents of a preset of a source, named as the profile's own store does."""
        source, colon, _ = name.partition(":")
        if not colon or name not in members:
            return []
        plain = [parent.partition("@")[0] for parent in members[name].extends]
        return [f"{source}/{parent}" if ":" in parent else f"{source}:{parent}" for parent in plain]

    for index, reference in enumerate(own.extends):
        parent = reference.partition("@")[0]
        for name in _list_ancestors(parent, list_source_parents):
            reason = members[name].table.get("deprecated") if name in members else None
            if reason and name == parent:
                what = f"{own.name} extends {reference}, which is deprecated: {reason}"
                yield index, Fault("NP703", what, _DEPRECATED, "extend the replacements they name")
            elif reason:
                what = (
                    f"{own.name} extends {reference}, which builds "
                    f"on {name}, and that is deprecated: {reason}"
                )
                source = reference.partition(":")[0]
                hint = (
                    f"fix it in the repository of {source}, then: npuprof source update "
                    f"{source.partition('/')[0]}"
                )
                yield index, Fault("NP703", what, _DEPRECATED, hint)


def _find_yanked_parents(view: View, member: Profile) -> Iterator[tuple[int, Fault]]:
    """Yield the yanked versions that a member of the store extends, with the reference's index.

    It may reach them through presets of other stores.
    """
    lineage, list_parent_keys = view.config.lineage, view.resolver.lineages.list_parent_keys
    own, members = lineage[-1], {profile.key: profile for profile in lineage}
    homes = {id(own.home)}
    if own.stacked:  # composed on the command line, so its parents count as its own store's
        homes.update(id(members[key].home) for key in list_parent_keys(own))
    if id(member.home) not in homes:
        return
    others = {key: profile for key, profile in members.items() if id(profile.home) not in homes}

    def list_parents_elsewhere(key: str) -> Iterable[str]:
        return list_parent_keys(others[key]) if key in others else ()

    for index, (reference, parent) in enumerate(
        zip(member.extends, list_parent_keys(member), strict=False)
    ):
        if yank := member.yanked.get(reference):
            what = f"{member.name} extends {reference} in a version that was yanked: {yank.why}"
            yield index, Fault("NP704", what, _YANKED, yank.hint)
        for key in _list_ancestors(parent, list_parents_elsewhere):
            if key in others:
                for fault in _find_yanked_beyond(member.name, reference, others[key]):
                    yield index, fault


def _find_yanked_beyond(name: str, reference: str, ancestor: Profile) -> Iterator[Fault]:
    """Yield the yanked versions that an ancestor in another store extends."""
    for version, yank in ancestor.yanked.items():
        if version == REQUESTED:
            continue
        what = (
            f"{name} extends {reference}, which builds on {version} in a version "
            f"that was yanked: {yank.why}"
        )
        plain = reference.partition("@")[0]
        hint = (
            f"extend a version of {plain} without it, or fix {ancestor.name} in its own repository"
        )
        yield Fault("NP704", what, _YANKED, hint)


def _find_unshared_parents(own: Profile) -> Iterator[tuple[int, Fault]]:
    """Yield the parents that other users of the store lack, each with its index in ``extends``.

    They are another vendored release, or a path outside the folder.
    """
    home = own.home
    for index, reference in enumerate(own.extends):
        if copied := own.outdated.get(reference):
            what = f"{own.name} extends {reference}, of which the store keeps {copied} in .released"
            why = (
                "Without the history, as in a wheel, an image or an export, these files replace it."
            )
            hint = "vendor the pinned versions: npuprof source vendor ."
            yield index, Fault("NP710", what, why, hint)
        plain = reference.partition("@")[0]
        if (
            home
            and own.key.partition("@")[0] == own.name
            and not home.is_outside(own.name)
            and home.is_outside(plain)
        ):
            what = f"{own.name} extends {reference}, which lies outside the store"
            why = (
                "A project that uses the store as a source gets "
                "only its files: there the parent is missing."
            )
            hint = f"move {plain}.toml into the store, or its values into {own.name}"
            yield index, Fault("NP708", what, why, hint)


def check_dead_steps(view: View) -> Iterator[Finding]:
    """Yield the profile's own steps that change nothing."""
    profile = view.config.profile
    if not profile.document.text:
        return
    lineage = view.config.lineage
    current = before = view.resolver.fold_lineage(lineage[:-1], view.scenario)
    cuts: dict[str, values.Cut] = {}
    for step in profile.steps:
        if step.op == "set" and step.key in current:
            repeated = _list_repeated_values(step, current[step.key])
            if repeated and step.key not in _collect_overridden_keys(lineage):
                yield from _build_repetitions(view, profile, step, repeated)
        if step.op == "unset":
            if current is before:  # most presets need no copy
                current = dict(before)
            take_over_spellings(current, step.key, None)
            if not apply_unset_step(current, step, cuts):
                yield _build_idle_unset(view, profile, step, before)
    if profile.overrides:
        yield from _check_idle_overrides(view, profile, _collect_overridden_keys(lineage))


def check_list_changes(view: View, about: KeyFilter) -> Iterator[Finding]:
    """Yield the elements that are appended again to an ordered list, or removed in vain.

    With ``about``, only of selected settings. Those that overrides of ancestors change are skipped.
    """
    from npuprof.resolve.origins import list_states

    lineage = view.config.lineage
    changed = {key for profile in lineage for key in profile.changed_lists}
    for key in sorted(changed - _collect_overridden_keys(lineage)) if changed else ():
        if not about((key,)):
            continue
        is_set = values.is_unordered(key)
        events = view.config.history(key)
        states = list_states(key, [event.step for event in events])
        for event, before in zip(events, states, strict=False):
            op, own = event.step.op, event.step.value
            is_list = op in LIST_OPS and isinstance(own, (dict, list))
            if not is_list or (is_set and op == "append"):
                continue
            new = own if before is None else values.change_value(key, "remove", own, before)
            in_vain = new if op == "remove" else values.change_value(key, "remove", own, new)
            if in_vain != values.change_value(key, "remove", own, own):
                code, has, why = _IN_VAIN[op]
                what = f"{key} has {has} {format_short_value(in_vain)}"
                yield view.build_finding(Fault(code, what, why, "omit it"), key, event.origin)


def _build_idle_unset(view: View, profile: Profile, step: Step, before: Iterable[str]) -> Finding:
    """Return the finding for an ``unset`` without effect; ``before`` are the inherited settings."""
    section, name = keys.split_section_and_name(step.key)
    if _is_host_variable(section, name):
        why = (
            "The presets that it extends do not set it; run and env remove the variable that the "
            "caller's environment contains."
        )
        fault = Fault(
            "NP609",
            f"unset {step.key} removes a variable of the host",
            why,
            "remove it from unset to keep the host's value",
        )
        return view.build_finding(fault, step.key, profile.origin(*step.path))
    candidates = [*before]
    if catalog.find_record(section, name) is None:
        known = catalog.record_names(section)
        candidates += [keys.format_full_key(section, record) for record in known]
    hint = did_you_mean(step.key, candidates, "remove it from unset")
    what = f"unset {keys.format_key_path(step.key, step.tail)} clears nothing"
    fault = Fault("NP702", what, "Nothing that the preset extends sets it.", hint)
    return view.build_finding(fault, step.key, profile.origin(*step.path))


def _is_host_variable(section: str, name: str) -> bool:
    """Return whether ``unset`` also removes a setting from the environment of a run.

    It is a variable, and not misspelt.
    """
    from npuprof.catalog.execution import is_own_variable
    from npuprof.checks.variables import is_misspelt

    return (
        section == "env"
        and not is_own_variable(name)
        and (catalog.find_variable(name) is not None or not is_misspelt(name))
    )


def _collect_overridden_keys(lineage: Lineage) -> set[str]:
    """Return the keys that ancestors' overrides set.

    A value that looks redundant overrides them in other contexts.
    """
    return {step.key for member in lineage[:-1] for step in member.override_steps}


def _check_idle_overrides(view: View, profile: Profile, varying: set[str]) -> Iterator[Finding]:
    """Yield override values that are effective without the override in every context.

    ``varying`` are the keys that other overrides set.
    """
    varying = set(varying)
    plain = dict(view.resolver.fold_lineage(view.config.lineage[:-1], view.scenario))
    apply_layers(plain, profile, [("values", profile.steps)], None)
    for step in profile.override_steps:
        if step.key not in varying:
            yield from _check_override_step(view, profile, step, plain)
        varying.add(step.key)


def _check_override_step(
    view: View, profile: Profile, step: Step, plain: TomlTable
) -> Iterator[Finding]:
    """Yield the findings for a step that changes nothing in the settings without overrides."""
    if step.key in plain:
        if step.op == "set":
            repeated = _list_repeated_values(step, plain[step.key])
            yield from _build_repetitions(view, profile, step, repeated)
        return
    section, name = keys.split_section_and_name(step.key)
    # Only unknown names, and variables, which run removes from the environment of the host.
    if step.op == "unset" and (section == "env" or not catalog.find_record(section, name)):
        yield _build_idle_unset(view, profile, step, plain)


def _list_repeated_values(step: Step, before: Any) -> list[tuple[Path, Any]]:
    """Return the parts of a step's value that are inherited anyway, with their paths."""
    if isinstance(step.value, dict):
        inherited = values.parse_structured_value(step.key, before)
        return _collect_repeated_leaves(inherited, step.value, ())
    return [((), step.value)] * values.is_equivalent_setting(step.key, before, step.value)


def _build_repetitions(
    view: View, profile: Profile, step: Step, repeated: list[tuple[Path, Any]]
) -> Iterator[Finding]:
    """Yield the findings for parts of a step's value that are inherited anyway."""
    for tail, value in repeated:
        what = (
            f"{keys.format_key_path(step.key, tail)} = "
            f"{format_short_value(value)} is what is inherited anyway"
        )
        why = "When the parent changes, this preset would silently keep the old value."
        yield view.build_finding(
            Fault("NP701", what, why, "remove the line"),
            step.key,
            profile.origin(*step.path, *tail),
        )


def _collect_repeated_leaves(before: Any, value: TomlTable, tail: Path) -> list[tuple[Path, Any]]:
    """Return the leaves of a table that are the same in the inherited value, with their paths."""
    leaves = []
    for name, item in value.items():
        inner = before.get(name) if isinstance(before, dict) else None
        if isinstance(item, dict):
            leaves += _collect_repeated_leaves(inner, item, (*tail, name))
        elif inner is not None and is_same_typed_value(inner, item):
            leaves.append(((*tail, name), item))
    return leaves
