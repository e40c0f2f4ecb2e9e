"""Trust: the variables of ``[env]`` that need the user's trust before they are exported.

Everything that exports or starts calls ``reject_untrusted``: each shell and format, ``run``,
injected blocks, ``bisect`` and ``sweep``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

from npuprof.catalog import values
from npuprof.catalog.execution import (
    find_execution,
    find_setting_effects,
    find_value_execution,
    find_weakening,
    is_own_variable,
    is_unknown_variable,
)
from npuprof.checks.sharing import build_own_variable_fault, list_lost_protections
from npuprof.document import keys
from npuprof.document.profile import Profile, ProfileSource
from npuprof.model import (
    TYPE_CHECKING,
    Finding,
    NpuprofError,
    Origin,
    Path,
    Record,
    Step,
    is_variable_name,
    raise_any,
)
from npuprof.report import format_switch
from npuprof.resolve.config import Config
from npuprof.resolve.lineages import is_of_source, is_personal
from npuprof.system import group_pairs

if TYPE_CHECKING:
    from typing import Any

    from npuprof.store.trust_state import Trusted


#: The mark of a config that needs no trust: it is only compared with a file, or for --trust.
TRUSTING = "trusting"


class Need(Record):
    """A variable or a framework setting that needs trust, with its value, empty if it is unset.

    ``executes`` is why it needs trust with exactly this value, an empty string if its name is
    unknown. ``signature`` is that of the declaration in npuprof.toml, if its store has one.
    """

    name: str
    text: str
    executes: str
    origin: Origin | None
    signature: str = ""

    @property
    def trust_argument(self) -> str:
        """The argument of ``npuprof trust`` that allows exactly this variable."""
        return f"{self.name}={self.text}" if self.executes else self.name


class Author(Record):
    """The store of the preset that sets a variable: its identity, and its name for users.

    Both are empty for a file outside a store.
    """

    identity: str
    shown: str


def find_need(name: str, value: Any, origin: Origin | None) -> Need | None:
    """Return a variable as one that needs trust, None if it needs none or its name is invalid.

    No value is an ``unset``.
    """
    if not is_variable_name(name):
        return None
    if value is None:
        executes = find_weakening(name)
        return Need(name, "", executes, origin) if executes else None
    text = values.format_exported_text(name, value)
    if text is not None:
        executes = find_value_execution(name, text)
    else:  # a launcher's facts are free
        text = keys.format_toml_value(value)
        executes = find_execution(name) or find_weakening(name)
    needs_trust = executes or is_unknown_variable(name)
    return Need(name, text, executes, origin) if needs_trust else None


def _find_setting_needs(
    key: str, value: Any, locate: Callable[[Path], Origin | None]
) -> Iterator[Need]:
    """Yield the parts of a framework setting that need trust; ``locate`` returns their origins."""
    for tail, leaf, effect in find_setting_effects(*keys.split_section_and_name(key), value):
        text = leaf if isinstance(leaf, str) else keys.format_toml_value(leaf)
        yield Need(keys.format_key_path(key, tail), text, effect, locate(tail))


def identify_store(home: ProfileSource | None) -> str:
    """Return the identity of a store for trust: the URL of a source, or the folder's real path.

    An empty string for neither.
    """
    if home is None or not home.root or home.is_shipped:
        return ""
    return home.root if home.is_locked else os.path.realpath(home.root)


def list_needs(config: Config) -> list[tuple[Need, Author]]:
    """Return the variables of a config that need trust, each with the store that sets it.

    Those of the command line, personal layers and shipped presets need none.
    """
    lost = list_lost_protections(config)
    candidates = [need for each in lost for need in _find_step_needs(each.profile, each.step)]
    for key, value in config.settings.items():
        if not key.startswith("env."):
            locate = partial(config.origin, key)
            candidates += _find_setting_needs(key, value, locate)
    for name, value in config.env.items():
        need = find_need(name, value, None)
        if need is not None:  # of each author of a part of it
            tails = [(part,) for part in value] if isinstance(value, dict) else [()]
            origins = (config.origin(keys.format_full_key("env", name), tail) for tail in tails)
            candidates += [need._replace(origin=origin) for origin in dict.fromkeys(origins)]
    needs = []
    for need in candidates:
        profile = _find_setting_profile(config, need)
        if profile is None or is_personal(profile) or (profile.home and profile.home.is_shipped):
            continue
        if profile.document.text:
            with suppress(NpuprofError):  # an invalid npuprof.toml declares nothing
                policy = config.resolver.lookups.find_policy(profile)
                if policy and need.name in policy.variables:
                    need = need._replace(signature=policy.variables[need.name].signature)
            needs.append((need, _find_author(profile)))
        elif need.executes:  # a run record, which a clone may contain
            needs.append((need, Author("", "")))
    return needs


def _find_setting_profile(config: Config, need: Need) -> Profile | None:
    """Return the preset of a config that sets a variable, None for the command line."""
    for profile in config.lineage:
        if need.origin is not None and profile.document is need.origin.document:
            return profile
    return None


def _find_step_needs(profile: Profile, step: Step) -> list[Need]:
    """Return what a step of a preset sets or unsets that needs trust."""
    section, name = keys.split_section_and_name(step.key)
    origin = profile.origin(*step.path)
    if section != "env":
        return list(
            _find_setting_needs(step.key, step.value, lambda tail: origin.locate_below(*tail))
        )
    need = find_need(name, None if step.op == "unset" else step.value, origin)
    return [need] if need else []


def _find_author(profile: Profile) -> Author:
    # a file outside any store, or standard input
    if profile.key.startswith(("file:", "stdin:", "composed:")):
        return Author("", "")
    identity = identify_store(profile.home)
    if is_of_source(profile):
        return Author(identity, f"{profile.name.rpartition(':')[0]}:")
    return Author(identity, profile.home.root if profile.home else "")


def list_profile_needs(profile: Profile) -> list[Need]:
    """Return the variables in a preset itself that need trust, overrides included."""
    steps = (*profile.steps, *profile.override_steps)
    return [need for step in steps for need in _find_step_needs(profile, step)]


def reject_untrusted(config: Config, trusting: bool, allowing_unknown: bool) -> None:
    """Raise NpuprofError for npuprof's own variables (NP607) and for untrusted ones (NP930).

    ``trusting`` accepts all others, ``allowing_unknown`` those unknown to the catalogue.
    """
    if own := [name for name in config.env if is_own_variable(name)]:
        raise NpuprofError(
            [_build_own_finding(config, keys.format_full_key("env", name)) for name in own]
        )
    if trusting or TRUSTING in config.memo:
        return
    needs = [
        (need, author)
        for need, author in list_needs(config)
        if need.executes or not allowing_unknown
    ]
    if not needs:
        return
    from npuprof.store.trust_state import Trusted, load_trusted

    trusted = {
        author.identity: load_trusted(author.identity) for _, author in needs if author.identity
    }
    missing = [
        (need, author)
        for need, author in needs
        if not trusted.get(author.identity, Trusted()).allows(
            need.name, need.text, need.executes, need.signature
        )
    ]
    missing.sort(key=lambda pair: pair[1].shown)
    needs_by_author = group_pairs((author, need) for need, author in missing)
    findings = []
    for need, author in missing:
        # the last finding of each store has the command that allows all of them
        together = needs_by_author[author] if need is needs_by_author[author][-1] else []
        findings.append(_build_finding(need, author, together, config.resolver.in_python))
    raise_any(findings)


def _build_own_finding(config: Config, key: str) -> Finding:
    fault = build_own_variable_fault(key)
    return fault.place(key=key, origin=config.origin(key), profiles=(config.name,))


def _build_finding(need: Need, author: Author, all_needs: list[Need], in_python: bool) -> Finding:
    import shlex

    once = f"{format_switch('trust', in_python)} for this once"
    hint = ""
    if all_needs and author.identity:
        arguments = dict.fromkeys(shlex.quote(one_need.trust_argument) for one_need in all_needs)
        command = f"npuprof trust {shlex.quote(author.shown)} {' '.join(arguments)}"
        hint = f"look at it, then {command}, or {once}"
    elif all_needs:
        hint = f"pass {once}"
    key = need.name if "." in need.name else f"env.{need.name}"
    if need.executes:
        setting = f"= {keys.format_short_value(need.text)}" if need.text else "without a value"
        what = f"{key} {setting} is not trusted: {need.executes}"
        why = "Anyone who can change the preset could run code here, or redirect what is loaded."
    else:
        reason = "the catalogue does not know it"
        if need.signature:
            reason = f"npuprof.toml declares it as {need.signature}, which grants no trust"
        what = f"{key} is not trusted: {reason}"
        why = "Its effect on programs is unknown."
    presets = (need.origin.profile,) if need.origin else ()
    return Finding("NP930", what, why, hint, need.origin, key, presets)


# -- arguments of the user ------------------------------------------------------------------------


def trust_typed(home: ProfileSource | None, assignments: Iterable[str]) -> None:
    """Trust a store with the variables of the user's ``KEY=VALUE`` arguments.

    Raises NpuprofError if that cannot be saved.
    """
    from npuprof.store.assignment_arguments import parse_assigned_value
    from npuprof.store.trust_state import Pair, Trusted

    names = set()
    pairs: set[Pair] = set()
    for text in assignments:
        key, is_assigned, raw = text.partition("=")
        section, name = keys.split_section_and_name(key.strip())
        if not is_assigned:
            continue
        value = parse_assigned_value("", raw.strip())
        if section != "env":
            needs = _find_setting_needs(key.strip(), value, lambda tail: None)
            pairs.update((need.name, need.text) for need in needs)
            continue
        need = find_need(name, value, None)
        if need is not None and need.executes:
            pairs.add((name, need.text))
        elif need is not None:
            names.add(name)
    _add_trust(home, Trusted(frozenset(names), frozenset(pairs)))


def trust_carried(home: ProfileSource | None, profiles: Iterable[Profile]) -> list[Need]:
    """Trust a store with the unknown variables of imported presets.

    Return those that affect code execution.
    """
    from npuprof.store.trust_state import Trusted

    needs = [need for profile in profiles for need in list_profile_needs(profile)]
    _add_trust(home, Trusted(frozenset(need.name for need in needs if not need.executes)))
    return [need for need in needs if need.executes]


def _add_trust(home: ProfileSource | None, trusted: Trusted) -> None:
    from npuprof.store.trust_state import store_trusted

    if (trusted.names or trusted.pairs) and (identity := identify_store(home)):
        store_trusted(identity, trusted, adding=True)
