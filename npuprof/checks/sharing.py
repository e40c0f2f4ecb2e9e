"""Content that does not belong in a shared preset.

Examples are facts of one process, redundant values, and changes to locked keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from npuprof import catalog
from npuprof.catalog import values
from npuprof.checks.view import Fault, View
from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.document.profile import ASKED, Profile
from npuprof.model import Finding, NpuprofError, Path, Step, did_you_mean
from npuprof.report import format_set_command
from npuprof.resolve import apply_layers, apply_unset_step, is_override_active, lineages
from npuprof.resolve.config import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from npuprof.checks.rules import KeyFilter

_YANKED = "Its maintainer has marked it as not to be used any more."
_DEPRECATED = "Its owners keep it only for those who use it already."


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


def find_frozen_fault(key: str, value: Any, in_python: bool = False) -> Fault | None:
    """Return the fault for a value that belongs to the process, the job or the site, or None."""
    if "." not in key:
        option = catalog.find_option(key)
        if option is None or not option.per_process:
            return None
        what = f"{key} belongs to one process, not to a preset"
        why = "Every process of every user would get the same value."
        return Fault(
            "NP601",
            what,
            why,
            f"set it in the script, or give it at the start: {format_set_command(key, in_python)}",
        )
    section, name = keys.split_section_and_name(key)
    if section == "env":
        from npuprof.catalog.execution import is_own_variable
        from npuprof.checks.variables import is_filled_in

        if is_own_variable(name) and not is_filled_in(name):
            return build_own_variable_fault(key)
        if fault := _find_trust_fault(key, name, value):
            return fault
    variable = catalog.find_variable(name) if section == "env" else None
    if variable is None or variable.freeze == "ok" or isinstance(value, dict):
        return None
    hint = variable.advice or "leave it to the launcher"
    if variable.launcher and "launcher" not in hint:
        hint = (
            f'write {name} = {{ launcher = "{variable.launcher}" '
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


def _find_trust_fault(key: str, name: str, value: Any) -> Fault | None:
    """Return the fault for a variable whose export needs trust, or None."""
    from npuprof.catalog.execution import (
        find_execution,
        find_text_effect,
        find_weakening,
        format_exported_text,
        is_unknown_variable,
    )
    from npuprof.checks.variables import is_misspelt

    text = format_exported_text(name, value)
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
            "write a value without it; if the preset needs it: npuprof trust STORE",
        )
    if is_unknown_variable(name) and not is_misspelt(name):
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


def _build_execution_fault(what: str) -> Fault:
    why = (
        "Anyone who can change the preset controls the code that all jobs run; exports reject it "
        "until the store is trusted."
    )
    return Fault(
        "NP605",
        what,
        why,
        "set it where the job is started; if the preset needs it: npuprof trust STORE",
    )


def list_lost_protections(
    config: Config, in_every_context: bool = False
) -> Iterator[tuple[Profile, Step, str]]:
    """Yield the steps that unset a variable which protects the user, with profile and loss.

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
                yield profile, step, loss


def check_lost_protections(view: View) -> Iterator[Finding]:
    """Yield the steps of a lineage that unset a variable which protects the user."""
    for profile, step, loss in list_lost_protections(view.config, in_every_context=True):
        fault = _build_execution_fault(f"unset {step.key} removes a protection: {loss}")
        yield view.build_finding(fault, step.key, profile.origin(*step.path))


def list_locked_keys(config: Config) -> list[str]:
    """Return the settings that some profile locks."""
    written = [
        name for profile in config.lineage if "locked" in profile.table for name in profile.locked
    ]
    return [(keys.parse_key(name) or (name, ()))[0] for name in written]


def check_locked_keys(view: View, about: KeyFilter) -> Iterator[Finding]:
    """Yield locked keys whose value has changed since they were locked.

    With ``about``, only selected ones.
    """
    lineage = view.config.lineage
    if not lineages.is_set_anywhere(lineage, "locked"):
        return
    final = view.resolver.fold_lineage(lineage, view.scenario)
    for place, profile in enumerate(lineage):
        if "locked" not in profile.table:
            continue
        locks = [
            (index, *(keys.parse_key(written) or (written, ())))
            for index, written in enumerate(profile.locked)
        ]
        wanted = [lock for lock in locks if about((lock[1],))]
        then = view.resolver.fold_lineage(lineage[: place + 1], view.scenario) if wanted else {}
        named: set[str] = set()
        for index, key, tail in wanted:
            if key not in named:
                named.add(key)
                yield from _check_unknown_lock(view, profile, key, index)
            before, now = (
                values.find_value(key, then.get(key), tail),
                values.find_value(key, final.get(key), tail),
            )
            if _is_same_setting(key, tail, before, now) or _is_same_setting(
                key, tail, _find_own_value(view, profile, key, tail), now
            ):
                continue
            guilty = view.resolver.find_last_origin(lineage, place + 1, view.scenario, key)
            what = (
                f"{keys.format_key_path(key, tail)} is locked by {profile.name} "
                f"({profile.origin('profile', 'locked')})"
            )
            why = "The preset that locks it relies on this value in all child presets."
            owner = profile.table.get("owner")
            hint = "remove it here, or ask the owner" + (f" ({owner})" if owner else "")
            yield view.build_finding(Fault("NP105", what, why, hint), key, guilty)


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


def _check_unknown_lock(view: View, profile: Profile, key: str, index: int) -> Iterator[Finding]:
    """Yield the finding for a lock on an unknown option, which protects nothing."""
    section, name = keys.split_section_and_name(key)
    if section == "options" and catalog.find_option(name) is None and key not in view.settings:
        hint = did_you_mean(name, catalog.record_names(), "npuprof options lists all")
        fault = Fault(
            "NP201",
            f"locked names an unknown option {name!r}",
            "The lock would protect nothing.",
            hint,
        )
        yield view.build_finding(
            fault, "profile.locked", profile.origin("profile", "locked", index)
        )


def check_parents(view: View) -> Iterator[Finding]:
    """Yield the problems of the presets that a profile extends, each at its reference.

    Presets behind a version or in a source cannot be edited here: the finding is placed at the
    reference.
    """
    lineage = view.config.lineage
    own, has_yanked = lineage[-1], lineages.has_yanked(lineage)
    if yank := own.yanked.get(ASKED):
        yield view.build_finding(
            Fault("NP704", f"{view.config.name} was yanked: {yank.why}", _YANKED, yank.hint),
            "profile",
        )
    has_deprecated = lineages.is_set_anywhere(lineage[:-1], "deprecated")
    for member in lineage if has_yanked else (own,):
        faults = list(_find_yanked_parents(view, member)) if has_yanked else []
        if member is own:
            faults += [
                *(_find_deprecated_parents(lineage) if has_deprecated else ()),
                *_find_unshared_parents(own),
            ]
        for index, fault in faults:
            yield view.build_finding(
                fault, "profile.extends", member.origin("profile", "extends", index)
            )


def _list_ancestors(start: str, list_parents: Callable[[str], Iterable[str]]) -> list[str]:
    """Return a preset and its ancestors, nearest first."""
    ancestors = {start: None}
    waiting = [start]
    for current in waiting:
        above = [parent for parent in list_parents(current) if parent not in ancestors]
        ancestors.update(dict.fromkeys(above))
        waiting += above
    return list(ancestors)


def _find_deprecated_parents(lineage: tuple[Profile, ...]) -> Iterator[tuple[int, Fault]]:
    """Yield the deprecated presets that a profile extends.

    Those reached through a source, which is not checked here, count too.
    """
    own, members = lineage[-1], {member.name: member for member in lineage[:-1]}
    reasons = {
        member.name: reason for member in lineage[:-1] if (reason := member.table.get("deprecated"))
    }

    def list_source_parents(name: str) -> list[str]:
        source = name.partition(":")[0]
        plain = (
            [parent.partition("@")[0] for parent in members[name].extends]
            if ":" in name and name in members
            else []
        )
        return [f"{source}/{parent}" if ":" in parent else f"{source}:{parent}" for parent in plain]

    for index, reference in enumerate(own.extends):
        parent = reference.partition("@")[0]
        for name in _list_ancestors(parent, list_source_parents):
            reason = reasons.get(name)
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
    """Yield the yanked versions that a member of the store extends.

    It may reach them through presets of other stores.
    """
    lineage, list_parent_keys = view.config.lineage, view.resolver.lineages.list_parent_keys
    own, members = lineage[-1], {profile.key: profile for profile in lineage}
    homes = {id(own.home), *(id(members[key].home) for key in list_parent_keys(own) if own.stacked)}
    if id(member.home) not in homes:
        return
    others = {key: profile for key, profile in members.items() if id(profile.home) not in homes}
    for index, (reference, parent) in enumerate(
        zip(member.extends, list_parent_keys(member), strict=False)
    ):
        if yank := member.yanked.get(reference):
            what = f"{member.name} extends {reference} in a version that was yanked: {yank.why}"
            yield index, Fault("NP704", what, _YANKED, yank.hint)
        behind = _list_ancestors(
            parent, lambda key: list_parent_keys(others[key]) if key in others else ()
        )
        for other in (others[key] for key in behind if key in others):
            for named, yank in other.yanked.items():
                if named != ASKED:
                    what = (
                        f"{member.name} extends {reference}, which builds on {named} in a version "
                        f"that was yanked: {yank.why}"
                    )
                    plain = reference.partition("@")[0]
                    hint = (
                        f"extend a version of {plain} without it, "
                        f"or fix {other.name} in its own repository"
                    )
                    yield index, Fault("NP704", what, _YANKED, hint)


def _find_unshared_parents(own: Profile) -> Iterator[tuple[int, Fault]]:
    """Yield the parents that other users of the store lack.

    They are another vendored release, or a path outside the folder.
    """
    home = own.home
    for index, reference in enumerate(own.extends):
        if copied := own.outdated.get(reference):
            what = f"{own.name} extends {reference}, of which the store keeps {copied} in .released"
            why = (
                "Without the history, as in a wheel, an image or an export, these files replace it."
            )
            yield (
                index,
                Fault("NP710", what, why, "vendor the pinned versions: npuprof source vendor ."),
            )
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
            yield (
                index,
                Fault(
                    "NP708",
                    what,
                    why,
                    f"move {plain}.toml into the store, or its values into {own.name}",
                ),
            )


def check_dead_steps(view: View) -> Iterator[Finding]:
    """Yield the profile's own steps that change nothing."""
    profile = view.config.lineage[-1]
    if not profile.document.text:
        return
    lineage = view.config.lineage
    before = view.resolver.fold_lineage(lineage[:-1], view.scenario)
    current = before if not any(step.op == "unset" for step in profile.steps) else dict(before)
    cuts: dict[str, values.Cut] = {}
    for step in profile.steps:
        if step.op == "set" and step.key in current:
            repeated = list(_check_repeated_values(view, profile, step, current[step.key]))
            if repeated and step.key not in _collect_overridden_keys(lineage):
                yield from repeated
        if step.op == "unset" and not apply_unset_step(current, step, cuts):
            yield _build_idle_unset(view, profile, step, before)
    if profile.overrides:
        yield from _check_idle_overrides(view, profile, _collect_overridden_keys(lineage))


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
    known = (
        ()
        if catalog.find_record(section, name)
        else (keys.format_full_key(section, record) for record in catalog.record_names(section))
    )
    hint = did_you_mean(step.key, (*before, *known), "remove it from unset")
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


def _collect_overridden_keys(lineage: tuple[Profile, ...]) -> set[str]:
    """Return the keys that ancestors' overrides set.

    A value that looks redundant overrides them in other contexts.
    """
    return {
        step.key
        for member in lineage[:-1]
        for override in member.overrides
        for step in override.steps
    }


def _check_idle_overrides(view: View, profile: Profile, moving: set[str]) -> Iterator[Finding]:
    """Yield override values that are effective without the override in every context."""
    plain = dict(view.resolver.fold_lineage(view.config.lineage[:-1], view.scenario))
    apply_layers(plain, profile, [("values", profile.steps)], None)
    for override in profile.overrides:
        for step in override.steps:
            if step.op == "set" and step.key in plain and step.key not in moving:
                yield from _check_repeated_values(view, profile, step, plain[step.key])
            is_set = step.key in plain or step.key in moving
            section, name = keys.split_section_and_name(step.key)
            if (
                step.op == "unset"
                and not is_set
                and (section == "env" or not catalog.find_record(section, name))
            ):
                yield _build_idle_unset(view, profile, step, plain)
            moving = moving | {step.key}


def _check_repeated_values(
    view: View, profile: Profile, step: Step, before: Any
) -> Iterator[Finding]:
    if isinstance(step.value, dict):
        pairs = _collect_repeated_leaves(
            values.parse_structured_value(step.key, before), step.value, ()
        )
    else:
        pairs = (
            [((), step.value)] if values.is_equivalent_setting(step.key, before, step.value) else []
        )
    for tail, value in pairs:
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


def _collect_repeated_leaves(
    before: Any, value: dict[str, Any], tail: tuple[str, ...]
) -> list[tuple[tuple[str, ...], Any]]:
    leaves = []
    for name, item in value.items():
        inner = before.get(name) if isinstance(before, dict) else None
        if isinstance(item, dict):
            leaves += _collect_repeated_leaves(inner, item, (*tail, name))
        elif inner is not None and values.is_same_typed_value(inner, item):
            leaves.append(((*tail, name), item))
    return leaves
