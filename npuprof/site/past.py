"""The git history of presets: commits that touched their files, and released versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npuprof.compare.owners import match_owners, read_owner_rules
from npuprof.model import NpuprofError, Record
from npuprof.store.base import ReadOnceStore
from npuprof.store.folder import Folder
from npuprof.store.gitstore.commits import Commit, walk_commits
from npuprof.system import group_pairs

#: The maximum number of commits on a page; ``npuprof log`` lists all.
_MOST = 20


class CommitRow(Record):
    """One commit that touched a preset, or one of its ancestors (``through``)."""

    commit: str
    date: str
    author: str
    subject: str
    through: tuple[str, ...] = ()


class VersionRow(Record):
    """One released version, and why it was yanked; an empty string if it was not."""

    number: str
    date: str
    yanked: str = ""


class Past(Record):
    """Commits and versions of each preset by name, newest first, and its owners; the checked out commit."""

    head: str = ""
    commits: dict[str, list[CommitRow]] = {}
    versions: dict[str, list[VersionRow]] = {}
    owners: dict[str, tuple[str, ...]] = {}


def read_past(store: ReadOnceStore, lineages: Mapping[str, Sequence[str]]) -> Past:
    """Return the git history of presets, given the names of each preset's ancestors.

    Empty if the store is not in a repository with commits.
    """
    if not isinstance(store, Folder):
        return Past()
    try:
        repository = store.repository
        head = repository.resolve_commit("HEAD")
        touching: dict[str, list[Commit]] = {}
        order: dict[int, int] = {}
        for place, commit in enumerate(walk_commits(repository, head)):
            order[id(commit)] = place
            names = {name for changes in commit.changes.values() for change in changes for name in (change.was, change.now) if name}
            for name in names:
                touching.setdefault(name, []).append(commit)
        versions = group_pairs(
            (version.name, VersionRow(str(version.text), version.date[:10], repository.find_yank(version.tag_name)))
            for version in reversed(repository.load_versions())
        )
        rules, at = read_owner_rules(repository, head), store.repository.load_revision(head)
        owners = {name: match_owners(rules, at.source_path(name)) for name in lineages} if rules else {}
    except NpuprofError:
        return Past()
    wanted = {name: _list_touching(name, lineage, touching, order) for name, lineage in lineages.items()}
    return Past(head, {name: [_build_row(commit, through) for commit, through in rows] for name, rows in wanted.items()}, versions, owners)


def _list_touching(
    own: str, lineage: Sequence[str], touching: dict[str, list[Commit]], order: dict[int, int]
) -> list[tuple[Commit, tuple[str, ...]]]:
    touching_by_id: dict[int, tuple[Commit, list[str]]] = {}
    for name in (own, *lineage):
        for commit in touching.get(name, ()):
            touching_by_id.setdefault(id(commit), (commit, []))[1].append(name)
    newest = sorted(touching_by_id, key=lambda mark: order[mark])[:_MOST]
    return [(touching_by_id[mark][0], () if own in touching_by_id[mark][1] else tuple(sorted(touching_by_id[mark][1]))) for mark in newest]


def _build_row(commit: Commit, through: tuple[str, ...]) -> CommitRow:
    return CommitRow(commit.id, commit.date[:10], commit.author, commit.subject, through)
