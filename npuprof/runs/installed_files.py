"""Installed JSON files with the settings of a section, such as ``config.json``, as profiles."""

from __future__ import annotations

import json
from functools import lru_cache

from npuprof.catalog import find_file_section
from npuprof.document import Document
from npuprof.document.json_tree import find_json_fault, read_json_tree
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Path
from npuprof.system import decode_safely
from npuprof.system.files import read_plain_file

#: All values of a file are located in a row.
_read_tree = lru_cache(2)(read_json_tree)


class _InstalledDocument(Document):
    """An installed file, whose values have the places of its tree."""

    __slots__ = ()

    def locate_path(self, path: Path) -> tuple[int, int]:
        """Return line and column of a value, or of what it is in."""
        found = _read_tree(self.text)
        node = found.find(*path[1:2])
        for part in path[2:]:
            found = node or found
            node = node.items[part] if node and node.items else found.find(part)
        return (node or found).position


def is_installed_file(path: str, head: bytes | None) -> bool:
    """Return whether a path is that of a JSON file with settings, by its first bytes."""
    return path.endswith(".json") and bool(head and find_file_section(decode_safely(head)))


def read_installed_file(path: str, unread: list[Finding] | None) -> Profile:
    """Return the settings of a file. Raises NpuprofError."""
    raw = read_plain_file(path)
    if fault := find_json_fault(path, raw):
        raise NpuprofError(fault)
    text = raw.decode()
    table = json.loads(
        raw, object_pairs_hook=lambda pairs: {name: v for name, v in pairs if v is not None}
    )
    data = {find_file_section(text): table}
    return Profile(_InstalledDocument(path, path, text, data), key=f"installed:{path}")
