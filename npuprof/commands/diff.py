"""``diff``: two presets, several side by side, or a whole store at two revisions."""

from __future__ import annotations

import gc
from typing import Any

from npuprof.commands.flags import one_of
from npuprof.model import Finding, NpuprofError, Record
from npuprof.report import output
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuprof.compare.survey import Survey
    from npuprof.store import Folder
    from npuprof.store.revisions import Revision

FORMATS = ("text", "markdown", "html", "json")


class Form(Record):
    """How a diff is to be shown."""

    format: str = "text"
    stat: bool = False
    name_only: bool = False
    all: bool = False
    raw: bool = False
    exit_code: bool = False
    output: str | None = None
    color: str = "auto"


def diff_presets(specs: Sequence[str], rev: str | None, store: str | None, cann: str | None, product: str | None, form: Form) -> int:
    """Print what differs. Exit 1 with ``exit_code`` where anything does, else 0.

    Without ``rev``: one preset against its last commit, two with each other, more as a matrix, none for the whole
    store against the last commit.
    """
    one_of("--format", form.format, FORMATS)
    one_of("--color", form.color, ("auto", "always", "never"))
    gc.freeze()
    gc.disable()  # thousands of small values, none of them garbage
    workspace = spec.Workspace(store, spec.build_context(cann, product))
    if rev is not None or not specs:
        return _show(_revisions(workspace, rev or "HEAD", specs, form), form)
    if len(specs) > 2:
        return _matrix(workspace, specs, form)
    return _two(workspace, specs, form)


def _two(workspace: spec.Workspace, specs: Sequence[str], form: Form) -> int:
    from npuprof.compare import survey

    left, right = specs if len(specs) == 2 else _sides(workspace, specs[0])
    if form.raw:
        from npuprof.compare.changes import compare_documents

        before, after = workspace.profile(left), workspace.profile(right)
        changes = tuple(compare_documents(before.document, after.document))
        found = survey.Pair(after.name, "changed" if changes else "unchanged", changes)
        return _show(survey.Survey(left, right, (found,)), form, single=True)
    old, new = workspace.resolve_spec(left), workspace.resolve_spec(right)
    return _show(survey.Survey(old.name, new.name, (survey.build_preset_pair(old, new),)), form, single=True)


def _sides(workspace: spec.Workspace, one: str) -> tuple[str, str]:
    """Return what a single spec is compared with: at a revision with now, now with the last commit."""
    if one == "-" or len(workspace.split_spec(one)) > 1:
        why = "A single preset is compared with its last commit."
        raise NpuprofError([Finding("NP902", "error", f"nothing to compare {one!r} with", why, "name a second preset")])
    name, at, _ = one.partition("@")
    return (one, name) if at else (f"{one}@HEAD", one)


def _matrix(workspace: spec.Workspace, specs: Sequence[str], form: Form) -> int:
    from npuprof.compare import matrix

    configs = [workspace.resolve_spec(one) for one in specs]
    table = matrix.collect_matrix_rows(configs, form.all)
    differ = any(not same for _, _, same in table)
    if form.name_only:
        output.write_answer("".join(f"{key}\n" for key, _, _ in table), form.output)
    elif form.format == "text":
        output.write_answer(matrix.format_matrix_text(configs, table) if table else "", form.output)
    else:
        forms = {"markdown": matrix.format_matrix_markdown, "html": matrix.format_matrix_html, "json": matrix.format_matrix_json}
        output.write_answer(forms[form.format](configs, table), form.output)
    return 1 if form.exit_code and differ else 0


def _revisions(workspace: spec.Workspace, rev: str, names: Sequence[str], form: Form) -> Survey:
    from npuprof.compare import survey
    from npuprof.store import revisions

    store = workspace.store
    repository = revisions.find_repository(store)
    left, dots, right = _span(rev)
    before = repository.resolve_commit(left or "HEAD")
    after: Revision | Folder = store
    shown = "work tree"
    if dots:
        tip = repository.resolve_commit(right or "HEAD")
        if dots == "...":
            before = repository.find_merge_base(before, tip)
        after, shown = revisions.load_revision(store, tip), _label(right or "HEAD", tip)
    elif not dots:
        tip = ""
    start = revisions.load_revision(store, before)
    if not start.files and not (after.names()):
        what = f"there are no profiles in {start.label}, nor in {after.label}"
        raise NpuprofError([Finding("NP023", "error", what, "", "name the store with --store")])
    first = _label(left or "HEAD", before) if dots != "..." else f"{left or 'HEAD'}...{right or 'HEAD'} ({before[:7]})"
    return survey.compare_store_states(start, after, (first, shown), workspace.resolver.context, names, form.raw)


def _label(text: str, commit: str) -> str:
    return commit[:7] if commit.startswith(text) and len(text) >= 7 else f"{text} ({commit[:7]})"


def _span(rev: str) -> tuple[str, str, str]:
    for dots in ("...", ".."):
        left, found, right = rev.partition(dots)
        if found:
            return left, dots, right
    return rev, "", ""


def _show(found: Survey, form: Form, single: bool = False) -> int:
    coloured = form.output is None and output.is_colour_wanted(form.color)
    output.write_answer(_form(found, form, single, coloured), form.output)
    return 1 if form.exit_code and found.touched_pairs else 0


def _form(found: Survey, form: Form, single: bool, coloured: bool) -> Any:
    if form.name_only:
        return "".join(f"{pair.name}\n" for pair in found.touched_pairs)
    if form.format == "json":
        from npuprof.compare import data

        return data.format_survey_json(found, form.all, single)
    if form.format == "markdown":
        from npuprof.compare import markdown

        return markdown.format_survey_markdown(found)
    if form.format == "html":
        from npuprof.compare import html

        return html.format_survey_html(found)
    from npuprof.compare import plain

    if form.stat:
        return plain.format_survey_stat(found)
    if single:
        return plain.format_pair_text(found.pairs[0], form.all, coloured)
    return plain.format_survey_text(found, form.all, coloured)
