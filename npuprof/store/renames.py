"""What presets were called before: git knows, from the commits that renamed their files."""

from __future__ import annotations

import os
from typing import NamedTuple

from npuprof.store.git import Git
from npuprof.store.layout import Layout


class FormerName(NamedTuple):
    """A name that a preset had, and the commit that gave it the next one."""

    name: str
    commit: str


def find_former_names(git: Git, tip: str, layout: Layout, names: set[str]) -> dict[str, list[FormerName]]:
    """Return what presets were called before a commit, latest first, from one git process; those that were not renamed are left out.

    ``layout`` says where they are, and were. Raises NpuprofError.
    """
    listed = git.run_command(
        "-c", "diff.renameLimit=4000", "log", "--topo-order", "--diff-filter=R", "-M", "--name-status", "-z", "--no-color", "--no-ext-diff",
        "--no-relative", "--format=%x01%H", tip, "--", *layout.pathspecs,
    )  # fmt: skip
    current = {name: name for name in names}
    found: dict[str, list[FormerName]] = {}
    for record in listed.split(b"\1")[1:]:
        commit, *words = record.split(b"\0")
        for was, now in zip(words[1::3], words[2::3], strict=False):
            old, new = (layout.name_of(os.fsdecode(path)) for path in (was, now))
            if old and new and new in current:
                name = current.pop(new)
                current[old] = name
                found.setdefault(name, []).append(FormerName(old, commit.decode()))
    return found


def find_uncommitted_names(git: Git, layout: Layout) -> dict[str, str]:
    """Return what presets are called in the work tree that HEAD has under another name, each with that name. Raises NpuprofError.

    Only what is staged counts: what ``git mv`` or ``git add`` put into the index.
    """
    listed = git.run_command(
        "-c", "diff.renameLimit=4000", "diff-index", "--cached", "--diff-filter=R", "-M", "--name-status", "-z", "--no-ext-diff",
        "--no-relative", "HEAD", "--", *layout.pathspecs,
    )  # fmt: skip
    words = listed.split(b"\0")
    pairs = zip(words[1::3], words[2::3], strict=False)
    names = [tuple(layout.name_of(os.fsdecode(path)) for path in pair) for pair in pairs]
    return {new: old for old, new in names if old and new}
