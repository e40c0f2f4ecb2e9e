"""The git history of presets: commits that touched their files, and released versions."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.compare.owners import match_owners, read_owner_rules
from npuprof.compare.spans import link_line
from npuprof.model import NpuprofError, Origin, Record
from npuprof.site.presets import Preset
from npuprof.store.base import CachedStore
from npuprof.store.folder import Folder
from npuprof.store.gitstore.commits import Commit, FileChange, walk_commits
from npuprof.system import group_pairs

#: The maximum number of commits on a page; ``npuprof log`` lists all.
_MOST = 20


class VersionRow(Record):
    """One released version, and why it was yanked; an empty string if it was not."""

    number: str
    date: str
    yanked: str


class Past(Record):
    """The checked out commit; commits and versions of each preset, newest first, and its owners.

    A commit has the ancestors of the preset that it touched, if it did not touch the preset itself.
    ``paths`` are the paths in the repository of presets that are equal in the checked out commit.
    """

    head: str = ""
    commits: dict[str, list[tuple[Commit, list[str]]]] = {}
    versions: dict[str, list[VersionRow]] = {}
    owners: dict[str, tuple[str, ...]] = {}
    paths: dict[str, str] = {}

    def link_origin(self, address: str | None, origin: Origin) -> str:
        """Return the URL of the line that set a value, empty if it is not in the repository."""
        document = origin.document
        path = document.source if document.revision else self.paths.get(document.name)
        # a source and the shipped store are other repositories
        if not (address and path and origin.line) or ":" in document.name + path:
            return ""
        return link_line(address, document.revision or self.head, path, origin.line)


def read_past(store: CachedStore, presets: Sequence[Preset]) -> Past:
    """Return the git history of presets, empty if the store is not in a repository with commits."""
    if not isinstance(store, Folder):
        return Past()
    try:
        repository = store.repository
        head = repository.resolve_commit("HEAD")
        commits = list(walk_commits(repository, head))
        # the presets that a commit changed, created, removed or renamed: a merge from each parent
        touching = group_pairs(
            (name, index)
            for index, commit in enumerate(commits)
            for name in set[str].intersection(*map(_list_touched, commit.changes.values()))
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
        names = [preset.name for preset in presets]
        owners = {name: match_owners(rules, revision.source_path(name)) for name in names}
        revision.load_texts(names)
        paths = {
            preset.name: revision.source_path(preset.name)
            for preset in presets
            if preset.profile and preset.name in revision.files
            if revision.read_profile_text(preset.name) == preset.profile.document.text.encode()
        }
    # a site without its history is better than none
    except NpuprofError:
        return Past()
    newest = {}
    for preset in presets:
        ancestors = [member.name for member in preset.config.lineage] if preset.config else []
        touched = group_pairs(
            (index, name) for name in {preset.name, *ancestors} for index in touching.get(name, ())
        )
        newest[preset.name] = [
            (commits[index], [] if preset.name in touched[index] else sorted(touched[index]))
            for index in sorted(touched)[:_MOST]
        ]
    return Past(head, newest, versions, owners, paths)


def _list_touched(changes: Sequence[FileChange]) -> set[str]:
    """Return the presets that changes of files touch."""
    return {name for change in changes for name in (change.was, change.now) if name}
