"""Which release of CANN a repository says its scripts are for: what README files, requirements and Dockerfiles beside them name.

It is a guess, and told as one: the nearest folder counts that names a release at all, and only if it names no second one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence

from npuprof.catalog import releases
from npuprof.report.output import read_plain_file
from npuprof.scripts.draft import Draft, NamedRelease, cite_script
from npuprof.system.tree import find_repository_top

_TELLING = re.compile(r"(?:readme.*|requirements.*\.txt|(?:.*\.)?dockerfile.*|containerfile|version\.(?:info|cfg|txt))", re.IGNORECASE)
#: The version behind what names it: the images of the vendor's cloud, the packages, or the word itself.
_NAMED = re.compile(
    r"(?<![A-Za-z])(?<!--)(?:ascend-share/|ascend-cann-\w+[-_:]|ascend-toolkit\W{1,4}|cann(?:[\s_-]*(?:version|release|版本))?(?:\s*(?:is|为|是))?[^\w\n]{0,12})"
    r"v?(\d{1,2}\.\d{1,2}(?:\.[0-9A-Za-z]{1,9}){0,2})",
    re.IGNORECASE,
)
_MOST_BYTES = 1_000_000
_MOST_FOLDERS = 4  #: from a script on that is in no repository and not below the current folder


def find_named_release(text: str) -> list[tuple[int, str]]:
    """Return the known releases that a text names, each once with its first line."""
    found: dict[str, int] = {}
    for match in _NAMED.finditer(text):
        if release := _find_release(match[1]):
            found.setdefault(release, text.count("\n", 0, match.start(1)) + 1)
    return [(line, release) for release, line in found.items()]


def _find_release(version: str) -> str | None:
    """Return the release of a version, ``5.0.4`` of ``5.0.4.alpha005``; a line of releases (``5.0``) is none."""
    if version.count(".") == 1:
        return version if version in releases.load_releases() else None
    return releases.find_release(version) or (releases.find_release(version.rpartition(".")[0]) if version.count(".") > 2 else None)


def mark_named_releases(drafts: Iterable[Draft]) -> None:
    """Say of presets in the making which release is named beside their scripts."""
    known: dict[str, list[NamedRelease]] = {}
    for draft in drafts:
        draft.release = _find_nearest(draft.file, known)


def guess_releases(needed: str, named: Sequence[NamedRelease | None], cite: Callable[[str], str] = cite_script) -> tuple[str, list[str]]:
    """Return the range for a preset of several scripts, and what is to be said of it as comments.

    ``needed`` is the range that its settings need. The earliest release counts that is named for the scripts, if one is for each.
    """
    said = sorted({one for one in named if one is not None}, key=lambda one: (releases.release_index(one.release), one.file, one.line))
    if not said or None in named:
        return needed, []
    first = said[0]
    others = len({one.release for one in said}) - 1
    more = f", and others name {others} later {'one' if others == 1 else 'ones'}" if others else ""
    told = f"{cite(first.file)}:{first.line} names CANN {first.release}{more}"
    if needed and releases.release_index(needed.removeprefix(">=")) > releases.release_index(first.release):
        return needed, ["", f"{told}; the settings need {needed}."]
    return f">={first.release}", ["", f"{told}: cann is guessed by that."]


def _find_nearest(file: str, known: dict[str, list[NamedRelease]]) -> NamedRelease | None:
    """Return what the nearest folder names: up to the top of the repository, else to the current folder, else a few folders up."""
    full = os.path.dirname(os.path.abspath(file))
    last = find_repository_top(full) or _find_current_above(full)
    here = os.path.dirname(file)
    for _ in range(_MOST_FOLDERS if not last else full.count(os.sep) + 1):
        if here not in known:
            known[here] = _read_folder(here)
        if known[here]:
            return known[here][0] if len({one.release for one in known[here]}) == 1 else None
        if full == last:
            return None
        full = os.path.dirname(full)
        here = os.path.dirname(here) if os.path.basename(here) not in ("", os.curdir, os.pardir) else os.path.join(here, os.pardir)
    return None


def _find_current_above(folder: str) -> str:
    current = os.getcwd()
    return current if os.path.commonpath([current, folder]) == current else ""


def _read_folder(folder: str) -> list[NamedRelease]:
    found: list[NamedRelease] = []
    try:
        names = sorted(name for name in os.listdir(folder or os.curdir) if _TELLING.fullmatch(name))
    except OSError:
        return found
    for name in names:
        file = os.path.join(folder, name)
        try:
            if not os.path.isfile(file) or os.path.getsize(file) > _MOST_BYTES:
                continue
            text = read_plain_file(file).decode("utf-8", "replace")
        except OSError:  # nobody asked for this file
            continue
        found += [NamedRelease(release, file, line) for line, release in find_named_release(text)]
    return found
