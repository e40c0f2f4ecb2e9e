"""Histories of one setting as something that compares, walked as commands do and by resolving every commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import npuprof
from npuprof.catalog import values
from npuprof.document import keys
from npuprof.history.timeline import HistoryStep, Timeline
from npuprof.model import Context, NpuprofError, Origin
from npuprof.store.gitstore.repository import Repository
from support.repositories import Node, Repo, import_graph


def describe_origin(origin: Origin | None) -> tuple[Any, ...] | None:
    return origin and (origin.profile, origin.file, origin.line, origin.column, origin.layer, origin.revision)


def describe_step(step: HistoryStep) -> tuple[Any, ...]:
    """Return all that the commands tell of a step, as something that compares by type as well."""
    changes = [
        repr((c.key, c.kind, c.before, c.after, c.setting, c.tail, c.element, c.unit, c.risk, [describe_origin(o) for o in c.origins]))
        for c in step.changes
    ]
    return step.commit.id, step.kind, step.name, changes, [str(finding) for finding in step.findings]


def walk_history(folder: Path, key: str, context: Context, name: str = "leaf") -> list[tuple[Any, ...]]:
    repository = Repository(str(folder / "profiles"))
    full, tail = keys.parse_key(key) or ("", ())
    return [describe_step(step) for step in Timeline(repository, repository.resolve_commit("HEAD"), name, context).walk_steps(full, tail)]


def resolve_setting(folder: Path, revisions: Iterable[str], key: str, context: Context) -> dict[str, Any]:
    """Return what a setting is at each commit, resolved for itself: its value, or why there is none."""
    store = npuprof.open_store(str(folder / "profiles"))
    full, found = (keys.parse_key(key) or ("",))[0], {}
    for oid in revisions:
        try:
            settings = store.resolve(f"leaf@{oid}", cann=context.cann, product=context.product, target=context.target).settings
            found[oid] = settings.get(full, "not set")
        except NpuprofError as error:
            found[oid] = "absent" if error.findings[0].code == "NP023" else "broken"
    return found


def list_expected_commits(folder: Path, graph: dict[str, list[str]], key: str, contexts: Sequence[Context]) -> set[str]:
    """Return the commits at which a setting is, in some of the contexts, as at none of their parents in all of them.

    The first context decides whether a preset can be resolved; what cannot be resolved in another is as anything there.
    """
    full = (keys.parse_key(key) or ("",))[0]
    seen = [resolve_setting(folder, graph, key, context) for context in contexts]
    lost = ("absent", "broken")

    def is_same(one: str, other: str) -> bool:
        if seen[0][one] in lost or seen[0][other] in lost:
            return bool(seen[0][one] == seen[0][other])
        pairs = [(at[one], at[other]) for at in seen]
        return all(left == "broken" or right == "broken" or values.is_equivalent_setting(full, left, right) for left, right in pairs)

    found = set()
    for oid, parents in graph.items():
        silent = all(at[one] in ("absent", "not set") for at in seen for one in (oid, *parents))
        same = any(is_same(oid, parent) for parent in parents) or (not parents and seen[0][oid] == "absent")
        if not silent and not same:
            found.add(oid)
    return found


def import_versions(folder: Path, trees: Sequence[Mapping[str, str]]) -> Repo:
    """Make a repository with one commit for each tree, one after the other."""
    return import_graph(folder, [Node((number - 1,) if number else (), tree) for number, tree in enumerate(trees)])
