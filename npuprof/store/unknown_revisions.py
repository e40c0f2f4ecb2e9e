"""What may be meant by a revision that git does not know: one further back than there are commits, a range, a version alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from npuprof.model import did_you_mean, find_nearest_names
from npuprof.store.git import Git
from npuprof.store.versions import find_bare_version


def suggest_revision(git: Git, revision: str, known: Sequence[str]) -> str:
    """Return what to do about a revision that there is not; ``known`` are branches and tags. Empty where nothing is near."""
    steps = re.fullmatch(r"(.+?)([~^][~^\d]*)", revision)
    if steps:
        return _count_back(git, steps[1], steps[2], known)
    plain = revision.strip("{}()[]<> \"'")
    if plain != revision and (version := find_bare_version(plain)):
        return f"write NAME@{version}"
    if near := did_you_mean(revision, known):
        return near
    if ".." in revision:
        return "one preset has one revision; npuprof diff A B compares two presets, npuprof diff --rev A..B the store at two revisions"
    if version := find_bare_version(revision):
        found = [name for name in known if name.endswith(f"/v{version}")]
        return f"versions are told by preset: {' or '.join(found[:3])}" if found else ""
    if ranged := re.fullmatch(r"[\^~=>]+\s*v?(\d+(?:\.\d+)*)", revision):
        parts = ranged[1].split(".")[: 1 if revision[0] == "^" else 2]
        return f"behind an @ a range is its beginning: NAME@{'.'.join(parts)} is the newest {'.'.join(parts)}.x"
    return ""


def _count_back(git: Git, start: str, steps: str, known: Sequence[str]) -> str:
    """Return how far back one can go from a revision by ``~`` and ``^``, or what the revision itself is meant to be."""
    if git.read_objects([f"{start}^{{commit}}"])[0] is None:
        meant = find_nearest_names(start, known, 1)
        return f"did you mean '{meant[0]}{steps}'?" if meant else ""
    if re.search(r"\^[2-9]", steps):
        return "a commit that is no merge has one parent, which ^ alone names"
    back = int(git.run_command("rev-list", "--count", "--first-parent", start)) - 1
    if not back:
        return f"{start} is the first commit, with none before it"
    return f"{start} goes {back} commit{'s' if back > 1 else ''} back: {start}~{back} is the first there is"
