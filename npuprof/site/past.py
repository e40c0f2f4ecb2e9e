"""The git history of presets: commits that touched their files, and released versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npuprof.compare.owners import match_owners, read_owner_rules
from npuprof.model import NpuprofError, Record
from npuprof.store.base import CachedStore
from npuprof.store.folder import Folder
from npuprof.store.gitstore.commits import Commit, walk_commits
from npuprof.system import group_pairs

#: The maximum number of commits on a page; ``npuprof log`` lists all.
_MOST = 20


class VersionRow(Record):
    """One released version, and why it was yanked; an empty string if it was not."""

    number: str
    date: str
    yanked: str = ""


class Past(Record):
    """The checked out commit; commits and versions of each preset, newest first, and its owners.

    A commit has the ancestors of the preset that it touched, if it did not touch the preset itself.
    """

    head: str = ""
    commits: dict[str, list[tuple[Commit, list[str]]]] = {}
    versions: dict[str, list[VersionRow]] = {}
    owners: dict[str, tuple[str, ...]] = {}


def read_past(store: CachedStore, lineages: Mapping[str, Sequence[str]]) -> Past:
    """Return the git history of presets, given the names of each preset's ancestors.

    Empty if the store is not in a repository with commits.
    """
    if not isinstance(store, Folder):
        return Past()
    try:
        repository = store.repository
        head = repository.resolve_commit("HEAD")
        commits = list(walk_commits(repository, head))
        # the presets that a commit changed, created, removed or renamed
        touching = group_pairs(
            (name, index)
            for index, commit in enumerate(commits)
            for name in {
                name
                for changes in commit.changes.values()
                for change in changes
                for name in (change.was, change.now)
                if name
            }
        )
        versions = group_pairs(
            (
                version.name,
                VersionRow(
                    str(version.text), version.date[:10], repository.find_yank(version.tag_name)
                ),
            )
            for version in reversed(repository.load_versions())
        )
        rules = read_owner_rules(repository, head)
        revision = repository.load_revision(head)
        owners = {name: match_owners(rules, revision.source_path(name)) for name in lineages}
    # a site without its history is better than none
    except NpuprofError:
        return Past()
    newest = {
        name: _list_newest(name, lineage, touching, commits) for name, lineage in lineages.items()
    }
    return Past(head, newest, versions, owners)


def _list_newest(
    own: str, lineage: Sequence[str], touching: Mapping[str, list[int]], commits: Sequence[Commit]
) -> list[tuple[Commit, list[str]]]:
    """Return the newest commits of a preset and its ancestors.

    ``touching`` are indexes of commits by preset.
    """
    touched = group_pairs(
        (index, name) for name in (own, *lineage) for index in touching.get(name, ())
    )
    return [
        (commits[index], [] if own in touched[index] else sorted(touched[index]))
        for index in sorted(touched)[:_MOST]
    ]
