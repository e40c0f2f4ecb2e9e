"""What is wrong with the releases that a store keeps as files, beyond what a reference to one of them tells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from npuprof.catalog import build_finding
from npuprof.model import Finding, NpuprofError, Place
from npuprof.store import Folder
from npuprof.store.kept import FOLDER, RECORD, find_kept_release, keeps_releases, may_be_kept
from npuprof.store.parents import prove_kept_release


def find_kept_faults(home: Folder) -> Iterator[Finding]:
    """Yield a finding for each kept release that no preset pins, and for each that is pinned and not what was released."""
    if not keeps_releases(home):
        return
    pinned: set[str] = set()
    for name in home.names():
        with suppress(NpuprofError):  # told of the preset
            pinned.update(home.profile(name).extends)
    for reference in list_kept_references(home):
        if reference not in pinned:
            yield _build_idle_finding(home, reference)
    for reference in sorted(filter(may_be_kept, pinned)):
        place = Place(home.cite_file(f"{FOLDER}/{reference}"))
        try:
            release = find_kept_release(home, reference)
            if release is not None:
                prove_kept_release(release, None)
        except NpuprofError as error:
            for finding in error.findings:
                yield finding if finding.where or finding.origin else finding._replace(where=place)


def list_kept_references(home: Folder) -> list[str]:
    """Return the references that releases are kept for, by the folders that hold one, sorted; links are not followed."""
    top = os.path.join(home.root, FOLDER)
    references: list[str] = []
    if os.path.islink(top):
        return references
    for folder, below, _ in os.walk(top):
        place = os.path.relpath(folder, top)
        if "@" in os.path.basename(folder) and may_be_kept(place):
            references.append(place)
            below.clear()  # what it keeps of its own is part of it
        below[:] = [name for name in below if not name.startswith(".")]
    return sorted(references)


def _build_idle_finding(home: Folder, reference: str) -> Finding:
    what = f"the release {reference} is kept in {home.cite_file(FOLDER)}, and no preset extends it"
    why = "It looks as if something meant it, and is carried into every wheel, image and export."
    where = Place(home.cite_file(f"{FOLDER}/{reference}/{RECORD}"))
    return build_finding("NP710", what, why, "take it away: npuprof source vendor .", where=where)
