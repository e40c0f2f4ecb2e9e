"""The store at two revisions, or at a revision and in the work tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from shlex import quote

from npuprof.compare.owners import find_owners
from npuprof.compare.spans import Page
from npuprof.compare.survey import Survey, compare_store_states
from npuprof.model import Context, build_error
from npuprof.store.folder import Folder
from npuprof.store.gitstore.revisions import Revision


def compare_revisions(
    store: Folder, rev: str, context: Context, names: Sequence[str] = (), raw: bool = False
) -> Survey:
    """Return the differences between two revisions, or a revision and the work tree.

    ``A..B`` compares both, ``A...B`` the merge base with B, and ``A`` the work tree. With
    ``names``, only of these presets; with ``raw``, of the files as written. Raises NpuprofError.
    """
    repository = store.repository
    left, dots, right = _split_range(rev)
    base = before = repository.resolve_commit(left)
    after: Revision | Folder = store
    first, second = _label_commit(left, base), "work tree"
    if dots:
        tip = repository.resolve_commit(right)
        after, second = store.repository.load_named_revision(right), _label_commit(right, tip)
        if dots == "...":
            before = repository.find_merge_base(base, tip)
            first = first if before == base else f"merge base with {_shorten(left)} ({before[:7]})"
    start = (
        store.repository.load_revision(before)
        if dots == "..."
        else store.repository.load_named_revision(left)
    )
    if not start.files and not after.names():
        what = f"there are no presets in {start.label}, nor in {after.label}"
        raise build_error("NP023", what, "", "name the store with --store")
    here = (
        after
        if isinstance(after, Revision)
        else store.repository.load_revision(repository.resolve_commit("HEAD"))
    )
    return compare_store_states(start, after, (first, second), context, names, raw)._replace(
        committed=here
    )


def build_page(survey: Survey, command: str, link: str | None) -> Page:
    """Return the context of a page of changes: links, owners, and the command for everything.

    Only revisions have links and owners. Raises NpuprofError.
    """
    if survey.committed is None:
        return Page(command=command)
    return Page(link or "", find_owners(survey, survey.committed), command=command)


def format_diff_command(
    rev: str | None, options: Mapping[str, str | None], words: Sequence[str] = ()
) -> str:
    """Return the command that prints the same in a terminal, with short commit ids."""
    short = (
        None
        if rev is None
        else re.sub(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b", lambda match: match[0][:12], rev)
    )
    given = [
        word
        for name, value in {"--rev": short, **options}.items()
        if value is not None
        for word in (name, value)
    ]
    return " ".join(["npuprof diff", *map(_quote, (*given, *words))])


def _label_commit(text: str, commit: str) -> str:
    return commit[:7] if commit.startswith(text) and len(text) >= 7 else f"{text} ({commit[:7]})"


def _quote(word: str) -> str:
    """Return a word quoted for a shell.

    A tilde inside a word, as in ``HEAD~1``, needs no quotes.
    """
    return word if re.fullmatch(r"[\w./:@%+=,-][\w./:@%+=,~-]*", word, re.ASCII) else quote(word)


def _shorten(text: str) -> str:
    """Return a revision for display: full ids are shortened."""
    return text[:7] if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text) else text


def _split_range(rev: str) -> tuple[str, str, str]:
    for dots in ("...", ".."):
        left, found, right = rev.partition(dots)
        if found:
            return left or "HEAD", dots, right or "HEAD"
    return rev or "HEAD", "", ""
