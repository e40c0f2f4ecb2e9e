"""Recognises edits that leave a setting alone by their lines, so that most of a long history need not be resolved."""

from __future__ import annotations

from npuprof.catalog import values
from npuprof.document import keys
from npuprof.system import lazy_pattern

#: A line that sets a plain value.
_PLAIN = lazy_pattern(
    rb"""[ \t]*([A-Za-z0-9_-]+)[ \t]*=[ \t]*(?:true|false|[+-]?(?:0|[1-9][0-9]{0,17})|"[ !#-\[\]-~]*")[ \t]*(?:#[\t -~]*)?\r?"""
)
#: The headers below which such lines are compared.
_SECTIONS = {b"[options]": "options", b"[env]": "env", b"[atc]": "atc", b"[estimator]": "estimator"}


def leaves_setting_alone(key: str, old: bytes, new: bytes) -> bool:
    """Return whether two texts of a preset, of which one is valid, differ only in plain values of other settings, line by line."""
    olds, news = old.split(b"\n"), new.split(b"\n")
    if len(olds) != len(news) or any(mark in new or mark in old for mark in (b'"""', b"'''")):
        return False
    section = ""
    for was, now in zip(olds, news, strict=True):
        if was != now and not (section and _is_edit_of_another(key, section, was, now)):
            return False
        if now.lstrip().startswith(b"["):
            section = _SECTIONS.get(now.strip(), "")
    return True


def _is_edit_of_another(key: str, section: str, was: bytes, now: bytes) -> bool:
    before, after = _PLAIN.fullmatch(was), _PLAIN.fullmatch(now)
    if before is None or after is None or before[1] != after[1]:
        return False
    other = keys.format_full_key(section, after[1].decode())
    return other != key and values.find_structure(other) is None
