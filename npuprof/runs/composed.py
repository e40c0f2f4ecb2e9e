"""Commits at which presets that are laid over one another were the same: no index holds digests of what is composed."""

from __future__ import annotations

from collections.abc import Collection

from npuprof.runs.indexed import Digests, Index


def group_commits(index: Index, names: Collection[str], order: dict[str, int]) -> list[list[str]]:
    """Return the commits that have all of some presets, in groups with the same digests of each; every group newest first."""
    present: dict[str, Digests] = {}
    groups: dict[tuple[Digests, ...], list[str]] = {}
    for state in index.states:
        for name, digests in state.changed.items():
            if name in names and digests is not None:
                present[name] = digests
            elif name in names:
                present.pop(name, None)
        if len(present) == len(names):
            groups.setdefault(tuple(present[name] for name in names), []).extend(commit for commit in state.commits if commit in order)
    return [sorted(commits, key=order.__getitem__) for commits in groups.values() if commits]
