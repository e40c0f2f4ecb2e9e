"""Trust as it is stored for the user, and read back."""

from __future__ import annotations

import json
from pathlib import Path

from npuprof.store.trust_state import Trusted, find_trust_file, load_trusted, store_trusted
from support.exports import AWKWARD

FIRST = Trusted(frozenset(["A"]), frozenset([("B", "1")]))
SECOND = Trusted(frozenset(["C"]), frozenset([("B", "2")]))


def test_an_entry_replaces_the_earlier_one_of_its_store_unless_it_is_added() -> None:
    store_trusted("/other", FIRST, adding=False)
    store_trusted("/store", FIRST, adding=True)
    store_trusted("/store", SECOND, adding=True)
    assert load_trusted("/store") == Trusted(
        frozenset(["A", "C"]), frozenset([("B", "1"), ("B", "2")])
    )
    store_trusted("/store", SECOND, adding=False)
    assert load_trusted("/store") == SECOND
    store_trusted("/store", Trusted(), adding=False)
    assert load_trusted("/store") == Trusted()
    assert list(json.loads(Path(find_trust_file()).read_bytes())["stores"]) == ["/other"]
    assert load_trusted("/other") == FIRST


def test_any_text_is_read_back_from_a_file_in_ascii() -> None:
    trusted = Trusted(pairs=frozenset(("A", text) for text in (*AWKWARD, "\udcff")))
    store_trusted("/store", trusted, adding=False)
    assert Path(find_trust_file()).read_bytes().isascii()
    assert load_trusted("/store") == trusted
