"""Which stores this user trusts to say what is executed: pairs of variable and value, kept in the user's state."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

from npuprof.model import Finding, NpuprofError
from npuprof.report import output

#: A variable and the value it is trusted with.
Pair = tuple[str, str]

_SCHEMA = "npuprof.trust/1"


def find_trust_file() -> str:
    """Return the path of the file that keeps what is trusted."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # as the XDG specification wants it
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "npuprof", "trust.json")


def load_trusted_pairs(root: str) -> set[Pair]:
    """Return what the store in a folder is trusted with. Raises NpuprofError where the file cannot be understood."""
    return set(_read_stores(find_trust_file()).get(_identify_store(root), ()))


def _identify_store(root: str) -> str:
    """Return what a store is trusted by: the real path of its folder, of a source its address."""
    return root if root.startswith("source:") else os.path.realpath(root)


def keep_trusted_pairs(root: str, pairs: Iterable[Pair]) -> None:
    """Trust the store in a folder with these pairs and no others; without any, forget it. Raises NpuprofError."""
    from npuprof.report import writing
    from npuprof.report.locks import lock_folders

    path = find_trust_file()
    output.make_folder(os.path.dirname(path))
    with lock_folders([os.path.dirname(os.path.realpath(path))]):
        known = writing.read_known_file(path)
        stores = _read_stores(path)
        stores[_identify_store(root)] = sorted(set(pairs))
        said = {"schema": _SCHEMA, "stores": {store: kept for store, kept in sorted(stores.items()) if kept}}
        text = json.dumps(said, indent=2, ensure_ascii=True) + "\n"
        writing.write_wanted_files([writing.Wanted(path, text.encode(), known)])


def _read_stores(path: str) -> dict[str, list[Pair]]:
    try:
        data = json.loads(output.read_plain_file(path))
        if data["schema"] != _SCHEMA:
            raise ValueError(data["schema"])
        return {str(store): [(str(name), str(text)) for name, text in pairs] for store, pairs in data["stores"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what = f"cannot read what is trusted: {path}"
        why = f"{getattr(error, 'strerror', None) or 'It is no list of stores and their variables'}."
        raise NpuprofError([Finding("NP931", what, why, "remove the file, then look again: npuprof trust STORE")]) from None
