"""Reasons for the step of a store's next version.

They are changes of presets, of team rules, and of the required npuprof.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from npuprof.compare.renames import match_renamed_presets
from npuprof.document.policy import TeamRule
from npuprof.history.proposal import Reason, explain_changes, find_unreadable, require_readable
from npuprof.history.releasing import find_last_release
from npuprof.model import NpuprofError, Record
from npuprof.report.text import count_rest
from npuprof.resolve import Resolver
from npuprof.resolve.config import Config
from npuprof.store.folder import Folder
from npuprof.store.gitstore.revisions import Revision
from npuprof.store.layout import list_project_paths
from npuprof.store.sources.lookups import Lookups

#: The maximum number of presets in a reason; the notes list all.
_SHOWN = 8


class StoreSteps(Record):
    """The reasons of presets for a step, without duplicates.

    ``removed`` presets are gone, ``renamed`` are old and new names.
    """

    reasons: list[Reason]
    removed: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]


def explain_presets(
    resolver: Resolver,
    before: Revision,
    after: Revision,
    configs: Mapping[str, Config],
    uncompared: Collection[str] | None,
) -> StoreSteps:
    """Return the reasons of a store's presets between two revisions.

    ``configs`` are the presets that resolve now. Renames are detected by content, as in pull
    request reviews. A rename is a major step, like a removal, as the old name is gone.

    Raises NpuprofError if an old preset is unreadable here; with
    ``uncompared``, the names of presets known to be unchanged, all other unreadable presets count
    as breaking instead.
    """
    then = set(before.names())
    now = set(after.names())
    renamed = match_renamed_presets(before, after, then - now, now - then)
    # a renamed preset is no removed one
    removed = sorted(then - now - set(renamed.values()))
    added = sorted(now - then - renamed.keys())
    pairs = tuple(sorted((was, name) for name, was in renamed.items()))
    steps = []
    if removed:
        steps.append(Reason("major", f"removed: {count_rest(removed, _SHOWN)}"))
    steps += [Reason("major", f"renamed: {was} → {name}") for was, name in pairs]
    if added:
        steps.append(Reason("minor", f"new: {count_rest(added, _SHOWN)}"))
    presets_of = defaultdict(list)
    for name in sorted(now - set(added)):
        if name not in configs:
            continue  # unresolvable presets are reported elsewhere
        former = renamed.get(name, name)
        try:
            was = resolver.resolve_profile(before.profile(former), former)
            reasons = explain_changes(was, configs[name])
        except NpuprofError as error:
            if uncompared is None:
                what = f"what {former} was in the last version of the store"
                require_readable(error, what, f"--rev {before.commit[:12]}")
            if not find_unreadable(error):
                message = f"could not be resolved then: {error.findings[0].message}"
                reasons = [Reason("major", message)]
            elif name in (uncompared or ()):
                reasons = []  # known to be unchanged
            else:
                reasons = [Reason("major", "not compared with unreadable presets")]
        for reason in dict.fromkeys(reasons):
            presets_of[reason].append(name)
    steps += [
        Reason(reason.step, _name_presets(reason.text, names))
        for reason, names in presets_of.items()
    ]
    return StoreSteps(steps, tuple(removed), pairs)


def list_removed_presets(store: Folder, committed: Revision) -> tuple[str, ...]:
    """Return the released presets that are gone at a commit, with their last versions.

    Those that the store's last version lacks do not count.
    """
    repository = committed.repository
    refs = repository.list_annotated_refs(committed.commit)
    released = {ref.name: ref for ref in refs if not ref.text.pre}
    names = set(committed.names())
    gone = released.keys() - names
    if not gone:
        return ()
    # a renamed preset goes on under its new name
    for formers in repository.find_former_names(committed.commit, names).values():
        gone -= {former.name for former in formers}
    last = find_last_release(repository.load_store_versions(committed.commit))
    if last:
        then = repository.resolve_commit(last.commit)
        # the store's version has recorded that these are gone
        released_then = {ref.name for ref in repository.list_annotated_refs(then)}
        gone -= released_then - set(store.repository.load_revision(then).names())
    return tuple(f"{name}@{released[name].text}" for name in sorted(gone))


def _name_presets(text: str, names: Sequence[str]) -> str:
    """Return a reason with its presets."""
    if len(names) == 1:
        return f"{names[0]}: {text}"
    return f"{len(names)} presets: {text} (in {count_rest(names, _SHOWN)})"


def explain_project_changes(before: Revision, after: Revision) -> list[Reason]:
    """Return the step for each change of npuprof.toml and the lock.

    Raises NpuprofError if they are invalid now.
    """
    names = list_project_paths(after.repository.prefix)
    old_texts = _read_texts(before, names)
    new_texts = _read_texts(after, names)
    changed = [
        name for name, old, new in zip(names, old_texts, new_texts, strict=True) if old != new
    ]
    if not changed:
        return []
    try:
        reasons = [*_explain_rules(_read_rules(before), _read_rules(after))]
        was, now = (Lookups().find_project(home).requires for home in (before, after))
        if was != now:
            text = f"needs another npuprof: {was or 'any'} → {now or 'any'}"
            reasons.append(Reason("major" if now else "minor", text))
    except NpuprofError as error:
        _read_rules(after)  # raises if they are invalid now, too
        return [Reason("major", f"{names[0]} could not be read then: {error.findings[0].message}")]
    return reasons or [
        Reason("patch", f"only what {' and '.join(changed)} says besides has changed")
    ]


def _read_texts(home: Revision, names: tuple[str, str]) -> list[bytes]:
    texts = home.repository.git.read_files([f"{home.commit}:{name}" for name in names])
    # line endings are git's to convert: they are no change of rules
    return [(text or b"").replace(b"\r\n", b"\n") for text in texts]


def _read_rules(home: Revision) -> dict[str, TeamRule]:
    policy = Lookups().load_policy(home)
    return {rule.code: rule._replace(origin=None) for rule in policy.rules} if policy else {}


def _explain_rules(before: dict[str, TeamRule], after: dict[str, TeamRule]) -> Iterator[Reason]:
    """Yield a reason per rule: a new possible error is major.

    A consumer that adopts the rules gets it too.
    """
    for code in sorted({*before, *after}):
        was = before.get(code)
        now = after.get(code)
        if was == now:
            continue
        if now is None:
            yield Reason("minor", f"the rule {code} is gone")
        # the text of a rule changes no verdict
        elif was and was._replace(message="") == now._replace(message=""):
            yield Reason("patch", f"the rule {code} says it otherwise: {now.title}")
        else:
            what = f"new rule {code}" if was is None else f"the rule {code} is another"
            step = "major" if now.severity == "error" else "minor"
            yield Reason(step, f"{what} ({now.severity}): {now.title}")
