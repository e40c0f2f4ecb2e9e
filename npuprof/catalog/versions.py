"""Version numbers of CANN, as something that sorts by date."""

from __future__ import annotations

import re

Key = tuple[int, int, int, int, int, int]

_VERSION = r"(\d+)(?:\.(\d+))?(?:\.(?:RC(\d+)|(\d+)))?(?:[.-]?(?:alpha|beta)(\d*))?"
_FINAL_STAGE = 10**6


def parse_release_version(version: str) -> Key | None:
    """Return a version as something that sorts by date, or None where it is no version.

    20.1 and 20.2 came before 5.0.1; release candidates and alphas come before what they lead to.
    """
    words = version.strip().split(".")
    if len(words) <= 3 and all(word.isdecimal() and word.isascii() and len(word) < 7 for word in words):
        major, minor, patch = (*map(int, words), 0, 0)[:3]
        return int(major < 20), major, minor, 1, patch, _FINAL_STAGE
    match = re.fullmatch(_VERSION, version.strip(), re.IGNORECASE | re.ASCII)
    if not match or len(version) > 40:
        return None
    number, minor_, candidate, patch_, preview = match.groups()
    stage = _FINAL_STAGE if preview is None else int(preview or 0)
    return int(int(number) < 20), int(number), int(minor_ or 0), int(not candidate), int(candidate or patch_ or 0), stage
