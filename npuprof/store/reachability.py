"""Which versions a commit can see: those whose tags are reachable from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from npuprof.store.git import Git
from npuprof.store.versions import TagRef, parse_tag_ref

#: How many commits git is asked about one by one; for more, the graph of all commits is read once.
_SINGLE_COMMITS = 2


def list_tag_refs(git: Git, *words: str, annotated: bool = False) -> list[TagRef]:
    """Return the tags whose names are those of versions, as ``for-each-ref`` lists them for some words, oldest number first.

    No tag is read, unless only those that are ``annotated`` are wanted. Raises NpuprofError.
    """
    kind = "%(objecttype)" if annotated else "tag"
    listed = git.run_command("for-each-ref", f"--format={kind} %(objectname) %(refname)", *words).decode(errors="replace")
    rows = (line.split(" ", 2) for line in listed.splitlines())
    found = [parse_tag_ref(ref, oid) for kind, oid, ref in rows if kind == "tag"]
    return sorted((ref for ref in found if ref), key=lambda ref: ref.sort_key)


class CommitGraph(NamedTuple):
    """Which tags each commit can see: a bit for every tag."""

    refs: list[TagRef]
    masks: dict[str, int]


class Reachability:
    """Tells which tags are reachable from a commit. Nothing is read before it is asked."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._seen: dict[str | int, dict[str, list[TagRef]]] = {}
        self._graph: CommitGraph | None = None
        self._asked: list[str] = []

    def list_reachable_refs(self, name: str, commit: str) -> list[TagRef]:
        """Return the tags of a preset's versions that are reachable from a commit (its full id). Raises NpuprofError."""
        return self._find_visible_tags(commit).get(name, [])

    def sees_same_tags(self, one: str, other: str) -> bool:
        """Return whether two commits can see the same tags. Raises NpuprofError."""
        return one == other or self._find_visible_tags(one) == self._find_visible_tags(other)

    def _find_visible_tags(self, commit: str) -> dict[str, list[TagRef]]:
        if commit in self._seen:
            return self._seen[commit]
        if self._graph is None and len(self._asked) < _SINGLE_COMMITS:
            self._asked.append(commit)
            self._seen[commit] = _group_by_name(list_tag_refs(self._git, f"--merged={commit}", "refs/tags/"))
            return self._seen[commit]
        if self._graph is None or commit not in self._graph.masks:
            self._graph = self._load_graph(commit)
        mask = self._graph.masks[commit]
        if mask not in self._seen:
            self._seen[mask] = _group_by_name(ref for place, ref in enumerate(self._graph.refs) if mask >> place & 1)
        return self._seen[mask]

    def _load_graph(self, commit: str) -> CommitGraph:
        """Return the graph of all commits behind branches and tags, and behind what was asked for, from one process."""
        refs = self._graph.refs if self._graph else list_tag_refs(self._git, "refs/tags/")
        tips = [found.oid if found else "" for found in self._git.read_objects([f"{ref.oid}^{{commit}}" for ref in refs])]
        masks = self._graph.masks if self._graph else {}
        # Once the graph is there, a commit that it lacks is one that no branch leads to.
        known = [f"^{tip}" for tip in self._asked] if self._graph else [*self._asked, *filter(None, tips)]
        sides = () if self._graph else ("--branches", "--remotes")
        words = ("rev-list", "--topo-order", "--reverse", "--parents", "--ignore-missing", *sides, "--stdin")
        listed = self._git.run_command(*words, stdin="".join(f"{tip}\n" for tip in (commit, *known)).encode())
        self._asked.append(commit)
        own: dict[str, int] = {}
        for place, tip in enumerate(tips):
            own[tip] = own.get(tip, 0) | 1 << place
        for line in listed.decode().splitlines():
            oid, *parents = line.split(" ")
            mask = own.get(oid, 0)
            for parent in parents:
                mask |= masks.get(parent, 0)
            masks[oid] = mask
        masks.setdefault(commit, own.get(commit, 0))
        return CommitGraph(refs, masks)


def _group_by_name(refs: Iterable[TagRef]) -> dict[str, list[TagRef]]:
    found: dict[str, list[TagRef]] = {}
    for ref in refs:
        found.setdefault(ref.name, []).append(ref)
    return found
