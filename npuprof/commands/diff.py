"""``diff``: compare two presets, several in a matrix, or a whole store at two revisions."""

from __future__ import annotations

import re

from npuprof.commands.framework.parameters import CANN, COLOR, OUTPUT, PRODUCT, STORE, formats
from npuprof.commands.framework.verb import Verb, arguments, flag, option
from npuprof.commands.parts.comparing import Around, answer_ranks, compare_around, find_processes, is_evidence, leave_out_untold
from npuprof.commands.parts.reading import open_workspace
from npuprof.model import Finding, NpuprofError
from npuprof.report.answer import Answer
from npuprof.store import Folder, spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.spans import Page
    from npuprof.compare.survey import Survey
    from npuprof.report.answer import Forms
    from npuprof.store.gitstore.revisions import Revision


class Diff(Verb):
    """Compare resolved presets or revisions.

    One preset is compared with its last commit, two with each other, and more in a matrix. Without SPEC, the whole store is
    compared with the last commit. Folders of run records are compared rank by rank.
    """

    group = "versions"
    prose = True
    paged = True

    specs: list[str] = arguments("SPEC...", "Presets to compare, or to restrict --rev to [default: the whole store]")
    rev: str | None = option(
        "--rev", metavar="REVS", text="Compare revisions: A..B, A...B (from their merge base), or A with the work tree [default: HEAD]"
    )
    format: str = formats("text", "markdown", "html", "json")
    stat: bool = flag("--stat", text="Print only the number of changes per preset")
    name_only: bool = flag("--name-only", text="Print only the names of presets that differ")
    everything: bool = flag("--all", text="Include unchanged settings, and every setting of new presets")
    raw: bool = flag("--raw", text="Compare the files as written, without inheritance")
    link: str | None = option("--link", metavar="URL", text="Link changed lines to the repository at URL in Markdown output")
    exit_code: bool = flag("--exit-code", text="Exit with 1 if anything differs")
    store: str | None = STORE
    cann: str | None = CANN
    product: str | None = PRODUCT
    output: str | None = OUTPUT
    color: str = COLOR

    _owned: Revision | None = None
    _around: Around = Around()
    _unread: list[Finding] = []

    def run(self) -> Answer:
        """Return what differs. Exit 1 with ``exit_code`` where anything does, else 0. Raises NpuprofError.

        Exit 2 where a preset, or a record in a folder, cannot be read or resolved now, while of all others it is told what differs.
        Without ``rev``: one preset against its last commit, two with each other, more as a matrix, none for the whole
        store against the last commit.
        """
        from npuprof.compare.spans import is_address

        self._unread = []
        workspace = open_workspace(self.store, spec.build_context(self.cann, self.product), unread=self._unread)
        if self.rev is not None or not self.specs:
            if self.link is not None and not is_address(self.link):
                hint = "write it as a browser shows it: https://github.com/team/presets"
                raise NpuprofError([Finding("NP902", f"--link {self.link!r} is no address", "", hint)])
            return self.answer_survey(self._compare_revisions(workspace, self.rev or "HEAD"))
        if len(self.specs) > 2:
            return self._answer_matrix(workspace)
        if len(self.specs) == 1 and (processes := find_processes(self.specs[0], workspace)) is not None:
            return answer_ranks(self, *processes)
        return self.answer_survey(self._compare_two(workspace), single=True)

    def compare_revisions(self) -> Survey:
        """Return what differs in the store between the revisions asked for. Raises NpuprofError."""
        return self._compare_revisions(open_workspace(self.store, spec.build_context(self.cann, self.product)), self.rev or "HEAD")

    def answer_survey(self, found: Survey, single: bool = False) -> Answer:
        """Return what differs as the answer; exit 2 where not all could be told."""
        from npuprof.compare import data, html, markdown

        unread = [pair.name for pair in found.pairs if pair.unread]
        around = self._around
        code = 2 if unread or self._unread else 1 if self.exit_code and (found.different_pairs or around.lines) else 0
        known = [pair.name for pair in found.pairs if pair.unread and not pair.untold]
        untold = [f"cannot tell what differs in {', '.join(known)}: cannot be read or resolved now"] if known else []
        reasons: dict[str, list[str]] = {}
        for pair in found.pairs:
            for finding in pair.untold:
                reasons.setdefault(f"{finding.message}; {finding.hint}", []).append(pair.name)
        untold += [f"cannot tell what differs in {', '.join(names)}: {why}" for why, names in reasons.items()]
        if self.name_only:
            return Answer("".join(f"{pair.name}\n" for pair in found.different_pairs), tuple(untold), code, problems=self._unread)
        forms: Forms = {
            "text": lambda: self._format_text(found, single) + "".join(f"{line}\n" for line in around.lines),
            "markdown": lambda: markdown.format_survey_markdown(found, page=self.build_page(found)),
            "html": lambda: html.format_survey_html(found),
            "json": lambda: data.format_survey_json(found, self.everything, single, around.fields),
        }
        untold += [
            f"{path} has the filter {name!r}, a program, which is not run here: cannot tell whether it differs"
            for path, name in found.untold.items()
        ]
        if self.format in ("markdown", "html"):
            untold += [f"the runs differ: {line}" for line in around.lines]
        return Answer(forms, (*untold, *around.remarks), code, problems=self._unread)

    def build_page(self, found: Survey) -> Page:
        """Return what a page says beside the changes: links to lines, the owners of what is reached, the command that shows it all."""
        from npuprof.compare.owners import find_owners
        from npuprof.compare.spans import Page

        if self._owned is None:
            return Page(command=self._format_command())
        return Page(self.link or "", find_owners(found, self._owned), command=self._format_command())

    def _format_command(self) -> str:
        """Return what to type to see the same on a terminal; of full ids the beginning."""
        rev = None if self.rev is None else re.sub(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b", lambda found: found[0][:12], self.rev)
        given = {"--rev": rev, "--store": self.store, "--cann": self.cann, "--product": self.product}
        words = [word for name, value in given.items() if value is not None for word in (name, value)]
        return " ".join(["npuprof diff", *map(_quote, words), *(["--raw"] if self.raw else []), *map(_quote, self.specs)])

    def _format_text(self, found: Survey, single: bool) -> str:
        from npuprof.compare import plain

        if self.stat:
            return plain.format_survey_stat(found)
        if single:
            return plain.format_pair_text(found.pairs[0], self.everything, self.coloured)
        return plain.format_survey_text(found, self.everything, self.coloured)

    def _answer_matrix(self, workspace: spec.Workspace) -> Answer:
        from npuprof.compare import matrix

        configs = [workspace.resolve_spec(one) for one in self.specs]
        rows = matrix.collect_matrix_rows(configs, self.everything)
        code = 2 if self._unread else 1 if self.exit_code and any(not same for _, _, same in rows) else 0
        if self.name_only:
            return Answer("".join(f"{key}\n" for key, _, _ in rows), code=code, problems=self._unread)
        forms: Forms = {
            "text": lambda: matrix.build_matrix_table(configs, rows) if rows else "",
            "markdown": lambda: matrix.format_matrix_markdown(configs, rows),
            "html": lambda: matrix.format_matrix_html(configs, rows),
            "json": lambda: matrix.format_matrix_json(configs, rows),
        }
        told = ("what stands in no column of a log was a default, not set, or is not told by it; npuprof verify says which",)
        return Answer(forms, told if any(map(is_evidence, configs)) else (), code, problems=self._unread)

    def _compare_two(self, workspace: spec.Workspace) -> Survey:
        from npuprof.compare import pairs, survey
        from npuprof.compare.changes import compare_documents

        left, right = self.specs if len(self.specs) == 2 else _choose_sides(workspace, self.specs[0])
        if self.raw:
            before, after = workspace.profile(left), workspace.profile(right)
            changes = tuple(compare_documents(before.document, after.document))
            return survey.Survey(left, right, (pairs.Pair(after.name, "changed" if changes else "unchanged", changes),))
        old, new = workspace.resolve_spec(left), workspace.resolve_spec(right)
        pair, told = leave_out_untold(pairs.build_preset_pair(old, new), old, new)
        around = compare_around(old, new)
        self._around = around._replace(remarks=(*around.remarks, *told))
        return survey.Survey(old.name, new.name, (pair,))

    def _compare_revisions(self, workspace: spec.Workspace, rev: str) -> Survey:
        from npuprof.compare import survey
        from npuprof.store.gitstore import revisions

        store = workspace.store
        repository = revisions.find_repository(store)
        left, dots, right = _split_range(rev)
        before = repository.resolve_commit(left or "HEAD")
        after: Revision | Folder = store
        first, second = _label_commit(left or "HEAD", before), "work tree"
        if dots:
            tip = repository.resolve_commit(right or "HEAD")
            if dots == "...":
                before = repository.find_merge_base(before, tip)
                base = repository.resolve_commit(left or "HEAD")
                first = (
                    _label_commit(left or "HEAD", base) if before == base else f"merge base with {_shorten(left or 'HEAD')} ({before[:7]})"
                )
            after, second = revisions.load_named_revision(store, right or "HEAD"), _label_commit(right or "HEAD", tip)
        start = revisions.load_revision(store, before) if dots == "..." else revisions.load_named_revision(store, left or "HEAD")
        if not start.files and not after.names():
            what = f"there are no profiles in {start.label}, nor in {after.label}"
            raise NpuprofError([Finding("NP023", what, "", "name the store with --store")])
        here = after if isinstance(after, revisions.Revision) else revisions.load_revision(store, repository.resolve_commit("HEAD"))
        self._owned = here
        return survey.compare_store_states(start, after, (first, second), workspace.resolver.context, self.specs, self.raw)


def _choose_sides(workspace: spec.Workspace, one: str) -> tuple[str, str]:
    """Return what a single spec is compared with: at a revision with now, now with the last commit."""
    if one == "-" or len(workspace.split_spec(one)) > 1:
        why = "A single preset is compared with its last commit."
        raise NpuprofError([Finding("NP902", f"nothing to compare {one!r} with", why, "name a second preset")])
    name, at, _ = one.partition("@")
    if not at and name not in workspace.store.names() and not one.startswith((".", "/", "~")):
        _refuse_revision(workspace, one)
    return (one, name) if at else (f"{one}@HEAD", one)


def _refuse_revision(workspace: spec.Workspace, word: str) -> None:
    """Raise NpuprofError where a revision, or a range of them, stands where a preset belongs."""
    from npuprof.store.gitstore import revisions
    from npuprof.store.missing import require_no_range_of_presets

    require_no_range_of_presets(workspace.store, word)
    ends = [end for end in re.split(r"\.{2,3}", word) if end]
    if not re.search(r"\.\.|[~^]", word):
        try:
            revisions.find_repository(workspace.store).resolve_commit(word)
        except NpuprofError:
            return
    hint = f"npuprof diff --rev {word} compares the whole store"
    hint += f", npuprof diff NAME@{word} one preset" if len(ends) == 1 else ""
    raise NpuprofError([Finding("NP008", f"{word!r} is a revision, and no preset", "", hint)])


def _label_commit(text: str, commit: str) -> str:
    return commit[:7] if commit.startswith(text) and len(text) >= 7 else f"{text} ({commit[:7]})"


def _quote(word: str) -> str:
    """Return a word as it is typed in a shell; a tilde within it, as in ``HEAD~1``, needs no quotes."""
    from shlex import quote

    return word if re.fullmatch(r"[\w./:@%+=,-][\w./:@%+=,~-]*", word, re.ASCII) else quote(word)


def _shorten(text: str) -> str:
    """Return a revision as it is shown: of a full id the beginning."""
    return text[:7] if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text) else text


def _split_range(rev: str) -> tuple[str, str, str]:
    for dots in ("...", ".."):
        left, found, right = rev.partition(dots)
        if found:
            return left, dots, right
    return rev, "", ""


VERB = Diff
