"""Histories of one setting, walked as commands do and by resolving every commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import npuprof
from npuprof.document import keys
from npuprof.history.timeline import Timeline
from npuprof.model import Context, NpuprofError
from npuprof.store.gitstore.revisions import StoreRepository
from support.repositories import Node, Repo, import_graph


def walk_history(folder: Path, key: str, context: Context, name: str = "leaf") -> list[str]:
    """Return the commits that the history of a setting tells, the newest first."""
    repository = StoreRepository(str(folder / "profiles"))
    full, tail = keys.parse_key(key) or ("", ())
    steps = Timeline(repository, repository.resolve_commit("HEAD"), name, context).walk_steps(
        full, tail
    )
    return [step.commit.id for step in steps]


def describe_history(folder: Path, key: str) -> list[Any]:
    """Return the history of a setting as plain values, with the origins of each change."""
    repository = StoreRepository(str(folder / "profiles"))
    full, tail = keys.parse_key(key) or ("", ())
    timeline = Timeline(repository, repository.resolve_commit("HEAD"), "leaf", Context())
    return [
        (step.commit.id, step.kind, step.findings, list(map(_describe_change, step.changes)))
        for step in timeline.walk_steps(full, tail)
    ]


def _describe_change(change: Any) -> tuple[Any, ...]:
    origins = [origin and (str(origin), origin.column, origin.layer) for origin in change.origins]
    return (change._replace(origins=(None, None)), *origins)


def resolve_setting(
    folder: Path, revisions: Iterable[str], key: str, context: Context
) -> dict[str, Any]:
    """Return the value of a setting at each commit, or why there is none."""
    store = npuprof.open_store(str(folder / "profiles"))
    full, found = (keys.parse_key(key) or ("",))[0], {}
    for oid in revisions:
        try:
            settings = store.resolve(
                f"leaf@{oid}", cann=context.cann, product=context.product, target=context.target
            ).settings
            found[oid] = settings.get(full, "not set")
        except NpuprofError as error:
            found[oid] = "absent" if error.findings[0].code == "NP023" else "broken"
    return found


def import_versions(folder: Path, trees: Sequence[Mapping[str, str]]) -> Repo:
    """Make a repository with one commit for each tree, one after the other."""
    return import_graph(
        folder, [Node((number - 1,) if number else (), tree) for number, tree in enumerate(trees)]
    )
