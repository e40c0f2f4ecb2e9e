"""The store at two revisions, or at a revision and in the work tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from shlex import quote

from npuprof.compare.owners import find_owners
from npuprof.compare.spans import Page
from npuprof.compare.survey import Survey, compare_outputs, compare_store_states
from npuprof.model import Context, NpuprofError, build_error
from npuprof.store.folder import Folder
from npuprof.store.gitstore.revisions import Revision

_FULL_COMMIT = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
_UNQUOTED = re.compile(r"[\w./:@%+=,-][\w./:@%+=,~-]*", re.ASCII)


def compare_revisions(
    store: Folder,
    rev: str,
    context: Context,
    names: Sequence[str] = (),
    raw: bool = False,
    is_brief: bool = False,
) -> Survey:
    """Return the differences between two revisions, or a revision and the work tree.

    ``A..B`` compares both, ``A...B`` the merge base with B, and ``A`` the work tree. With
    ``names``, only of these presets; with ``raw``, of the files as written; ``is_brief`` as in
    ``compare_store_states``. Raises NpuprofError.
    """
    repository = store.repository
    left, dots, right = _split_range(rev)
    base = repository.resolve_commit(left)
    old_label = _label_commit(left, base)
    new_label = "work tree"
    after: Revision | Folder = store
    tip = base
    if dots:
        tip = repository.resolve_commit(right)
        after = repository.load_named_revision(right)
        new_label = _label_commit(right, tip)
    if dots == "...":
        merge_base = repository.find_merge_base(base, tip)
        before = repository.load_revision(merge_base)
        # the side is a commit that nobody has named
        if merge_base != base:
            left = left[:7] if _FULL_COMMIT.fullmatch(left) else left
            old_label = f"merge base with {left} ({merge_base[:7]})"
    else:
        before = repository.load_named_revision(left)
    if not before.files and not after.names():
        what = f"there are no presets in {before.label}, nor in {after.label}"
        raise build_error("NP023", what, "", "name the store with --store")
    committed = (
        after
        if isinstance(after, Revision)
        else repository.load_revision(repository.resolve_commit("HEAD"))
    )
    labels = (old_label, new_label)
    survey = compare_store_states(before, after, labels, context, names, raw, is_brief)
    outputs: tuple[str, ...] = ()
    if not (names or raw):
        with suppress(NpuprofError):  # an invalid npuprof.toml, which check reports
            outputs = tuple(compare_outputs(before, after))
    return survey._replace(committed=committed, outputs=outputs)


def build_page(survey: Survey, command: str, link: str | None) -> Page:
    """Return the context of a page of changes: links, owners, and the command for everything.

    Only revisions have links and owners. Raises NpuprofError.
    """
    if survey.committed is None:
        return Page(command=command)
    return Page(link or "", find_owners(survey, survey.committed), command=command)


def format_diff_command(
    rev: str | None, options: Mapping[str, str | None], others: Sequence[str] = ()
) -> str:
    """Return the command that prints the same in a terminal, with short commit ids.

    ``options`` have values; ``others`` are flags and presets.
    """
    arguments = []
    if rev is not None:
        arguments += ["--rev", _FULL_COMMIT.sub(lambda commit: commit[0][:12], rev)]
    for option, value in options.items():
        if value is not None:
            arguments += [option, value]
    return " ".join(["npuprof diff", *map(_quote, (*arguments, *others))])


def _label_commit(text: str, commit: str) -> str:
    return commit[:7] if commit.startswith(text) and len(text) >= 7 else f"{text} ({commit[:7]})"


def _quote(argument: str) -> str:
    """Return an argument quoted for a shell.

    ``shlex.quote`` quotes each tilde; one inside an argument, as in ``HEAD~1``, needs no quotes.
    """
    return argument if _UNQUOTED.fullmatch(argument) else quote(argument)


def _split_range(rev: str) -> tuple[str, str, str]:
    """Return a revision range as typed: two revisions around the dots.

    The dots and the second one are empty for a single revision.
    """
    for dots in ("...", ".."):
        left, separator, right = rev.partition(dots)
        if separator:
            return left or "HEAD", dots, right or "HEAD"
    return rev or "HEAD", "", ""
