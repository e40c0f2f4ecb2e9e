"""Which presets a change of files reaches, by what they extend, without resolving them."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.compare.sides import StoreSide
from npuprof.model import Finding, NpuprofError, did_you_mean
from npuprof.store import Folder
from npuprof.store.around import has_release_tags
from npuprof.store.gitstore.revisions import Revision
from npuprof.store.parents import is_source_reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.policy import TeamRule
    from npuprof.store.sources.reading import Sources


def select_named_presets(names: Sequence[str], known: list[str], renamed: dict[str, str]) -> list[str]:
    """Return the presets that somebody named, by what they are called now. Raises NpuprofError for names of neither side."""
    selected, problems = [], []
    now = {was: name for name, was in renamed.items()}
    for name in names:
        name = now.get(name, name)
        if name in known:
            selected.append(name)
        else:
            problems.append(Finding("NP008", f"no preset {name!r} on either side", "", did_you_mean(name, known)))
    if problems:
        raise NpuprofError(problems)
    return sorted(dict.fromkeys(selected))


def find_reached_presets(old: StoreSide, new: StoreSide, changed: set[str]) -> set[str]:
    """Return the changed names and all that may extend them; their texts have been read, each once."""
    moved = have_moved_ranges(old.store, new.store)
    sources = find_moved_sources(old.store, new.store)
    if have_other_rules(old.store, new.store):
        return {*old.names, *new.names}
    if not changed and not moved and sources == set():
        return set()
    new.texts.load_texts(new.names)
    heirs: dict[str, set[str]] = {}
    reached = set(changed)
    for name in new.names - changed:
        parents = new.read_parent_names(name)
        if parents is None:
            reached.add(name)
        for parent in parents or ():
            heirs.setdefault(parent, set()).add(name)
            is_moved = is_source_reference(parent) and (sources is None or parent.partition(":")[0] in sources)
            if is_moved or (moved and "@" in parent):
                reached.add(name)
    waiting = list(reached)
    while waiting:
        more = heirs.get(waiting.pop(), set()) - reached
        reached |= more
        waiting += more
    if isinstance(old.texts, Revision) and isinstance(new.texts, Revision):
        old.texts.adopt_texts(new.texts)
    old.texts.load_texts(reached)
    return reached


def have_moved_ranges(before: Revision | Folder, after: Revision | Folder) -> bool:
    """Return whether a reference with an @ may mean something else in one state than in the other, though no file differs."""
    if not isinstance(before, Revision) or not before.commit or not has_release_tags(before.root):
        return False
    if before.release or (isinstance(after, Revision) and after.release):
        return True
    repository = before.repository
    seen = after.seen_from if isinstance(after, Revision) else ""
    head = None if seen else repository.git.read_objects(["HEAD"])[0]
    commit = seen or (head.oid if head else "")
    return not commit or not repository.sees_same_versions(before.commit, commit)


def find_moved_sources(before: Revision | Folder, after: Revision | Folder) -> set[str] | None:
    """Return the names of the sources that are not the same in two states; None, for all, if one of them cannot be read."""
    from npuprof.store.sources.reading import find_sources

    try:
        old, new = find_sources(before), find_sources(after)
    except NpuprofError:
        return None
    names = {*old.project.sources, *new.project.sources}
    return {
        name
        for name in names
        if (old.project.sources.get(name), old.lock.sources.get(name)) != (new.project.sources.get(name), new.lock.sources.get(name))
        or _has_edited_copy(old, name) != _has_edited_copy(new, name)
    }


def _has_edited_copy(sources: Sources, name: str) -> bool:
    from npuprof.store.sources.reading import find_copy_faults

    return sources.open_copy is not None and bool(sources.project.sources[name].vendor) and bool(find_copy_faults(sources, name))


def have_other_rules(before: Revision | Folder, after: Revision | Folder) -> bool:
    """Return whether two states have other rules of the team; what cannot be understood is another rule."""
    rules: list[list[TeamRule] | None] = []
    for home in (before, after):
        try:
            policy = home.load_policy()
            rules.append([rule._replace(origin=None) for rule in policy.rules] if policy else [])
        except NpuprofError:
            rules.append(None)
    return rules[0] is None or rules[0] != rules[1]
