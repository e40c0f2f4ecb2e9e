"""What a former run left in the folder of a site, so that only what is made of something else now is made anew.

Beside the pages lies a list: of each preset the digest of what its page was made of, the digests of its files, and what the lists and
the boards tell of it. It is believed where all that counts is the same, npuprof itself included, and where the files hold what they held.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable

from npuprof.model import Record
from npuprof.report.output import read_plain_file
from npuprof.site.boards import Cell

#: Lies in the folder of a site.
FILE = ".npuprof-site-kept.json"
_SCHEMA = "npuprof.site-kept/1"
#: Of what npuprof is made that can change a page.
_PARTS = (".py", ".toml", ".html", ".css", ".js")


class KeptPreset(Record):
    """What is known of one preset: ``core`` is the digest of its texts, ``around`` of what its page shows besides.

    ``page`` and ``data`` are the digests of its files, ``counts`` the numbers of its errors, warnings and notes, ``cells`` its row
    on the boards.
    """

    core: str
    around: str
    page: str
    data: str
    counts: tuple[int, ...]
    cells: tuple[Cell | None, ...]


def digest_texts(*texts: str) -> str:
    """Return a digest of texts, each at its place."""
    made = sha256()
    for text in texts:
        raw = text.encode(errors="surrogatepass")
        made.update(b"%d:" % len(raw))
        made.update(raw)
    return made.hexdigest()


def digest_content(content: bytes) -> str:
    """Return a digest of what a file holds."""
    return sha256(content).hexdigest()


def digest_npuprof() -> str:
    """Return a digest of all that makes pages: npuprof as it is installed here, its templates' language, and Python."""
    import jinja2

    made = sha256(f"{jinja2.__version__} {sys.version_info[:2]}".encode())
    package = resources.files("npuprof")
    # The built form of the catalogue is made anew in a checkout whenever that is needed; an installed npuprof has no other.
    apart = "_built" if package.joinpath("catalog", "rules.toml").is_file() else ""
    for name, content in sorted(_list_parts(package, "", apart)):
        made.update(f"{name}:{len(content)}:".encode())
        made.update(content)
    return made.hexdigest()


def _list_parts(folder: Traversable, below: str, apart: str) -> list[tuple[str, bytes]]:
    found = []
    for one in folder.iterdir():
        name = f"{below}{one.name}"
        if one.is_dir():
            found += _list_parts(one, f"{name}/", apart) if one.name not in (apart, "__pycache__") else []
        elif name.endswith(_PARTS) or "/_built/" in name:
            found.append((name, one.read_bytes()))
    return found


def read_kept_presets(folder: str) -> dict[str, KeptPreset]:
    """Return what the last run knew of presets, by their names; nothing where it left nothing that can be read."""
    try:
        said = json.loads(read_plain_file(os.path.join(folder, FILE)))
        if said["schema"] != _SCHEMA:
            return {}
        rows = [tuple(None if cell is None else _read_cell(*cell) for cell in row) for row in said["rows"]]
        return {name: _read_preset(rows, *fields) for name, fields in said["presets"].items()}
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return {}


def _read_preset(
    rows: list[tuple[Cell | None, ...]], core: str, around: str, page: str, data: str, counts: list[int], row: int
) -> KeptPreset:
    if not all(isinstance(text, str) for text in (core, around, page, data)):
        raise TypeError(core)
    if len(counts) != 3 or not all(type(number) is int and number >= 0 for number in (*counts, row)):
        raise TypeError(counts)
    return KeptPreset(core, around, page, data, tuple(counts), rows[row])


def _read_cell(errors: int, warnings: int, codes: list[str], meant: bool) -> Cell:
    if type(errors) is not int or type(warnings) is not int or type(meant) is not bool or not all(isinstance(code, str) for code in codes):
        raise TypeError(codes)
    return Cell(errors, warnings, tuple(codes), meant)


def format_kept_presets(presets: Mapping[str, KeptPreset]) -> bytes:
    """Return what the next run may read."""
    rows: dict[tuple[Cell | None, ...], int] = {}
    told = {
        name: [*map(str, (one.core, one.around, one.page, one.data)), list(one.counts), rows.setdefault(one.cells, len(rows))]
        for name, one in presets.items()
    }
    cells = [[None if cell is None else [cell.errors, cell.warnings, list(cell.codes), cell.meant] for cell in row] for row in rows]
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(fields, separators=(',', ':'))}" for name, fields in told.items())
    return f'{{"schema":"{_SCHEMA}","rows":{json.dumps(cells, separators=(",", ":"))},"presets":{{\n{lines}}}}}\n'.encode()


def read_same(path: str, digest: str) -> bytes | None:
    """Return what a file holds, where that has a digest; None where it has another, or there is none."""
    try:
        content = read_plain_file(path)
    except (OSError, ValueError):
        return None
    return content if digest_content(content) == digest else None
