"""For which releases of CANN a preset is: those that its settings need, or one that files in the folders of its scripts name.

What settings need is said where it is certain only. What README files, requirements and Dockerfiles name is a guess, and reported as
one: the nearest folder counts that names a release at all, and only if it names no second one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.report.output import read_plain_file
from npuprof.scripts.draft import Draft, NamedRelease, cite_script
from npuprof.system.tree import find_repository_top

_FILES = re.compile(r"(?:readme.*|requirements.*\.txt|(?:.*\.)?dockerfile.*|containerfile|version\.(?:info|cfg|txt))", re.IGNORECASE)
#: The version behind what names it: the images of the vendor's cloud, the packages, or the word itself.
_NAMED = re.compile(
    r"(?<![A-Za-z])(?<!--)(?:ascend-share/|ascend-cann-\w+[-_:]|ascend-toolkit\W{1,4}|cann(?:[\s_-]*(?:version|release|版本))?(?:\s*(?:is|为|是))?[^\w\n]{0,12})"
    r"v?(\d{1,2}\.\d{1,2}(?:\.[0-9A-Za-z]{1,9}){0,2})",
    re.IGNORECASE,
)
_MOST_BYTES = 1_000_000


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
    """Give presets in the making the release that is named in the folders of their scripts."""
    read_folder = cache(_read_folder)
    for draft in drafts:
        folders = _list_folders(os.path.dirname(os.path.abspath(draft.file)))
        named = next((found for folder in folders if (found := read_folder(folder))), [])
        draft.release = named[0] if len({found.release for found in named}) == 1 else None


def guess_releases(needed: str, named: Sequence[NamedRelease | None], cite: Callable[[str], str] = cite_script) -> tuple[str, list[str]]:
    """Return the range for a preset of several scripts, and what to say of it in comments.

    ``needed`` is the range that its settings need. The earliest release counts that is named for the scripts, if one is for each.
    """
    known = sorted({one for one in named if one is not None}, key=lambda one: (releases.release_index(one.release), one.file, one.line))
    if not known or None in named:
        return needed, []
    first = known[0]
    others = len({one.release for one in known}) - 1
    more = f", and others name {others} later {'one' if others == 1 else 'ones'}" if others else ""
    text = f"{cite(first.file)}:{first.line} names CANN {first.release}{more}"
    if needed and releases.release_index(needed.removeprefix(">=")) > releases.release_index(first.release):
        return needed, ["", f"{text}; the settings need {needed}."]
    return f">={first.release}", ["", f"{text}: cann is guessed by that."]


def _list_folders(folder: str) -> Iterator[str]:
    """Yield a folder and those around it: up to the top of the repository, else to the current folder."""
    here = os.getcwd()
    top = find_repository_top(folder) or (here if os.path.commonpath([here, folder]) == here else folder)
    yield folder
    while folder not in (top, os.path.dirname(folder)):
        folder = os.path.dirname(folder)
        yield folder


def _read_folder(folder: str) -> list[NamedRelease]:
    found: list[NamedRelease] = []
    try:
        names = sorted(name for name in os.listdir(folder) if _FILES.fullmatch(name))
    except OSError:
        return found
    for name in names:
        file = os.path.join(folder, name)
        try:
            if not os.path.isfile(file) or os.path.getsize(file) > _MOST_BYTES:
                continue
            text = read_plain_file(file).decode("utf-8", "replace")
        except OSError:  # a preset can do without this file
            continue
        found += [NamedRelease(release, os.path.relpath(file), line) for line, release in find_named_release(text)]
    return found


def find_needed_releases(settings: dict[str, Any], surfaces: Iterable[str] = ()) -> str:
    """Return the range from which on every setting is read (``>=6.3.RC2``); empty where that is every release, or not certain.

    Where a setting has gone again nothing is said: a range that ends before today would only hide from a check what is to be mended.
    Nor does an option bound anything that the earliest release read: where it was gone for a while, the script may be from before that.
    """
    known = releases.load_releases()
    rows: list[str] = []
    for key, value in settings.items():
        if option := catalog.find_option(key):
            states = {option.surface_states.get(surface, option.states) for surface in surfaces} or {option.states}
            rows += [row for row in states if "Y" in row and not row.startswith("Y")]
            rows.append(_list_value_states(option, value, known))
    start = max((len(row.rstrip("Y")) for row in rows), default=0)
    is_certain = any(row[start - 1] == "." for row in rows) if 0 < start < len(known) else False
    return f">={known[start]}" if is_certain else ""


def _list_value_states(option: catalog.Option, value: Any, known: tuple[str, ...]) -> str:
    """Return, for each release, whether it takes a value, as far as the value has a history."""
    text = str(value)
    since = releases.release_index(option.choices_since[text]) if text in option.choices_since else 0
    until = releases.release_index(option.choices_until[text]) if text in option.choices_until else len(known)
    return "." * since + "Y" * (until - since) + "." * (len(known) - until)
