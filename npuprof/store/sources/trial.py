"""A cache for what changes nothing: mirrors are copies there, of the refs alone, and all that is fetched goes with them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from npuprof.model import Finding, NpuprofError
from npuprof.store.sources import mirror
from npuprof.store.sources.failures import build_os_error
from npuprof.store.sources.holding import is_mirror
from npuprof.system.tree import Tree, make_tree

_WHOLE = ("HEAD", "config")


@contextmanager
def try_in_copies() -> Iterator[None]:
    """Let mirrors be copies until the end: what is fetched, tags that are taken and texts that are kept are gone then.

    Messages name the mirrors themselves. Raises NpuprofError.
    """
    import tempfile

    known = mirror.find_cache_folder()
    try:
        folder = tempfile.TemporaryDirectory(prefix="npuprof-", ignore_cleanup_errors=True)
    except OSError as error:
        raise build_os_error(tempfile.gettempdir(), error) from None
    with folder as top, mirror.replace_cache(top, _borrow_mirror):
        try:
            yield
        except NpuprofError as error:
            raise NpuprofError([_name_mirror(finding, top, known) for finding in error.findings]) from None


def _name_mirror(finding: Finding, copy: str, known: str) -> Finding:
    message, why, hint = (text.replace(copy, known) for text in (finding.message, finding.why, finding.hint))
    return finding._replace(message=message, why=why, hint=hint)


def _borrow_mirror(known: str, copy: str) -> None:
    """Make a mirror that has the refs of another and reads the other's objects; nothing where there is no other. Raises NpuprofError."""
    if os.path.lexists(copy) or not is_mirror(known):
        return
    for folder in (os.path.dirname(os.path.dirname(known)), os.path.dirname(known), known):
        mirror.refuse_foreign(folder)
    try:
        _copy_mirror(known, copy)
    except OSError as error:
        raise build_os_error(copy, error) from None


def _copy_mirror(known: str, copy: str) -> None:
    tree = make_tree(copy, 0o700)
    for name in ("objects/pack", "objects/info", "refs"):
        tree.make_folder(name, 0o700)
    tree.write_file(
        "objects/info/alternates", f"{_quote(os.path.join(os.path.realpath(known), 'objects'))}\n".encode(errors="surrogateescape")
    )
    for place, _, names in Tree(known).walk("refs"):
        tree.make_folder(place, 0o700)
        for name in names:
            if not name.endswith(".lock"):
                tree.copy_in(os.path.join(known, place, name), os.path.join(place, name))
    for name in (*_WHOLE, "packed-refs"):  # packed last: what is packed meanwhile is in one of the two
        with suppress(FileNotFoundError):
            tree.copy_in(os.path.join(known, name), name)


def _quote(path: str) -> str:
    """Return a path as git reads it in a list of folders of objects, a line each."""
    if not any(sign in path for sign in '\n"\\'):
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
