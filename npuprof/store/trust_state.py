"""The user's trust per store: variables by name, or by name and value if they execute code."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

from npuprof.model import Record, build_error
from npuprof.system import find_user_folder, is_list_of, writing
from npuprof.system.files import make_folder, read_plain_file
from npuprof.system.locks import lock_files

#: A variable with its trusted value.
Pair = tuple[str, str]

_SCHEMA = "npuprof.trust/2"
#: The previous schema, which has pairs only.
_OLD_SCHEMA = "npuprof.trust/1"


class Trusted(Record):
    """The trusted variables of one store: names, and names with their values.

    ``declared`` are variables that the store declares, each with the signature of its declaration.
    """

    names: frozenset[str] = frozenset()
    pairs: frozenset[Pair] = frozenset()
    declared: frozenset[Pair] = frozenset()

    def allows(self, name: str, text: str, executes: str, signature: str) -> bool:
        """Return whether a variable may be exported.

        If it affects code execution, only with a trusted value.
        """
        is_named = name in self.names or (name, signature) in self.declared
        return (name, text) in self.pairs or (not executes and is_named)

    def add(self, more: Trusted) -> Trusted:
        """Return the union of two trust entries."""
        return Trusted(
            self.names | more.names, self.pairs | more.pairs, self.declared | more.declared
        )


def find_trust_file() -> str:
    """Return the path of the trust file."""
    return os.path.join(find_user_folder("state"), "trust.json")


def load_trusted(identity: str) -> Trusted:
    """Return the trust entry of a store, by identity.

    Raises NpuprofError if the file is invalid.
    """
    return _read_stores(find_trust_file()).get(identity, Trusted())


def store_trusted(identity: str, trusted: Trusted, *, adding: bool) -> None:
    """Set the trust entry of a store, or extend it if ``adding``; an empty one is removed.

    Raises NpuprofError.
    """
    path = find_trust_file()
    make_folder(os.path.dirname(path))
    with lock_files(path):
        # read again under the lock: another npuprof may have added its entry
        known = writing.read_known_file(path)
        stores = _read_stores(path)
        if adding and identity in stores:
            trusted = stores[identity].add(trusted)
        stores[identity] = trusted
        rows = {
            store: {
                name: sorted(trusted)
                for name, trusted in trust._asdict().items()
                if trusted or name != "declared"  # an older npuprof reads and writes the others
            }
            for store, trust in sorted(stores.items())
            if trust != Trusted()
        }
        text = json.dumps({"schema": _SCHEMA, "stores": rows}, indent=2, ensure_ascii=True) + "\n"
        writing.write_planned_files([writing.PlannedWrite(path, text.encode(), known)])


def read_trusted(fields: object) -> Trusted:
    """Return ``names``, ``pairs`` and ``declared`` of a table; older ones lack the last.

    Raises ValueError, TypeError, LookupError or AttributeError if it is invalid.
    """
    names, pairs = fields["names"], fields["pairs"]  # type: ignore[index]
    # a text would be read as a list of its letters
    if not is_list_of(str, names):
        raise ValueError(names)
    declared = fields.get("declared", ())  # type: ignore[attr-defined]
    return Trusted(frozenset(names), _read_pairs(pairs), _read_pairs(declared))


def _read_pairs(pairs: Iterable[tuple[str, str]]) -> frozenset[Pair]:
    return frozenset((str(name), str(text)) for name, text in pairs)


def _read_stores(path: str) -> dict[str, Trusted]:
    try:
        data = json.loads(read_plain_file(path))
        # still read, so that an update of npuprof does not drop what was trusted
        if data["schema"] == _OLD_SCHEMA:
            return {
                str(store): Trusted(pairs=_read_pairs(pairs))
                for store, pairs in data["stores"].items()
            }
        if data["schema"] != _SCHEMA:
            raise ValueError(data["schema"])
        return {str(store): read_trusted(fields) for store, fields in data["stores"].items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = getattr(error, "strerror", None)
        why = f"{reason or 'It is not a list of stores and their variables'}."
        hint = "remove the file, then look again: npuprof trust STORE"
        raise build_error("NP931", f"cannot read the trusted stores: {path}", why, hint) from None
