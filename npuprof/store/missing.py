"""What a name that is no preset or no store names instead: a revision, a file, a source."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from npuprof.model import Finding, NpuprofError, find_nearest_names
from npuprof.store import Folder, find_store
from npuprof.store.gitstore import revisions
from npuprof.wording import say_option


def explain_missing_preset(home: Folder, word: str, error: NpuprofError) -> NpuprofError:
    """Return the error about a preset that a store lacks; if the name is a revision or a file, the error says so."""
    finding = error.findings[0]
    if len(error.findings) != 1 or finding.code not in ("NP004", "NP008", "NP023") or finding.origin is not None:
        return error
    if _is_revision(home, word):
        hint = f"npuprof diff --rev {word} compares the whole store"
        if ".." not in word:
            hint = f"NAME@{word} is a preset as it was then; npuprof check --rev {word} checks the whole store, {hint}"
        return NpuprofError([Finding("NP008", f"{word!r} is a revision, and no preset", finding.why, hint)])
    if os.path.isfile(word):
        return NpuprofError(
            [finding._replace(hint=f"{word} is a file: npuprof scan {word} reads a script, npuprof import {word} converts it")]
        )
    return error


def _is_revision(home: Folder, word: str) -> bool:
    """Return whether git knows a word, or both ends of what looks like a range."""
    ends = [end for end in re.split(r"\.{2,3}", word) if end]
    if not ends or len(ends) > 2 or word.startswith(("-", ".", "/")) or not home.in_work_tree:
        return False
    with suppress(NpuprofError):
        repository = revisions.find_repository(home)
        return all(map(repository.has_commit, ends))
    return False


def build_missing_store_finding(word: str, why: str, in_python: bool = False) -> Finding:
    """Return that a word names no store; the hint names a similar source, or how to add one if the word is an address."""
    known: list[str] = []
    with suppress(NpuprofError):
        from npuprof.store.sources.reading import find_sources

        known = [f"{name}:" for name in find_sources(find_store(None, {})).project.sources]
    hint = "name a folder that holds presets, or make one: npuprof init"
    if re.match(r"[a-z][a-z+]*://|[\w.-]+@[\w.-]+:", word):
        hint = f"add the repository as a source: npuprof source add NAME URL, then {say_option('store', 'NAME:', in_python)}"
    elif similar := find_nearest_names(f"{word.rstrip(':/')}:", known, 1):
        hint = f"write {similar[0]} for the store of that source"
    return Finding("NP010", f"the store {word!r} is not a folder", why, hint)


def build_file_revision_finding(path: str, revision: str) -> Finding:
    """Return that a file outside the store has no revisions; the hint shows how to get its text from git."""
    what = f"{path}@{revision}: a path takes no revision"
    why = "A revision is one of the store's presets; this file is none of them."
    shown = path if path.startswith(("./", "../")) else f"./{path}"
    hint = f"write {path} for the file as it is now, or git show {revision}:{shown} > old.toml, and ./old.toml in its place"
    return Finding("NP023", what, why, hint)
