"""``check``: validate presets and report all findings.

For several platforms, print a compatibility matrix.
"""

from __future__ import annotations

from npuprof.catalog.targets import load_target_index
from npuprof.commands.finding_options import FORMATS, JudgingVerb, Outcome
from npuprof.commands.framework import flag, many, option
from npuprof.commands.framework.parameters import (
    AXES,
    BASELINE,
    COLOR,
    FRAMEWORKS,
    IGNORE,
    OUTPUT,
    PROGRAMS,
    SELECT,
    SEVERITY,
    SPECS,
    STORE,
    STRICT,
    WRITE_BASELINE,
    formats,
)
from npuprof.commands.resolving import open_workspace
from npuprof.document import Document
from npuprof.model import (
    Context,
    Finding,
    Record,
    build_error,
    build_usage_error,
    raise_any,
)
from npuprof.report import Answer
from npuprof.report.findings import WITH_PLAIN_PATHS, format_findings, format_severity_counts
from npuprof.report.isolating import collect_errors
from npuprof.report.text import format_count
from npuprof.store import spec
from npuprof.store.checked import CheckedStore
from npuprof.store.folder import Folder
from npuprof.system import PausedCollection

#: Fixes may reveal further faults; the check is repeated at most this often.
_MOST_ROUNDS = 5


class _Fixes(Record):
    """Documents before and after their fixes, by file path, and the findings that remain."""

    before: dict[str, Document]
    after: dict[str, Document]
    count: int
    outcome: Outcome


class Check(JudgingVerb):
    """Validate presets and report all findings.

    Exits with 1 if there are errors, and with 2 if a preset cannot be read or resolved. With
    several releases or products, npuprof prints a compatibility matrix; add --severity to list the
    findings too.
    """

    group = "presets"
    prose = True

    specs = SPECS
    rev = option(
        "--rev",
        metavar="REV",
        text="Check the presets at this revision [default: the work tree]",
        complete="revision",
    )
    staged = flag("--staged", text="Check the staged changes, as in a pre-commit hook")
    canns = many(
        "--cann",
        metavar="RELEASE",
        text=(
            "Check for this CANN release; repeat for a "
            "matrix [default: all that the preset supports]"
        ),
        complete="release",
    )
    products = many(
        "--product",
        metavar="PRODUCT",
        text="Check for this product; repeat for a matrix [default: all that the preset supports]",
        complete="product",
    )
    frameworks = FRAMEWORKS
    axes = AXES
    target = option(
        "--target",
        metavar="TARGET",
        text="Report what this render target rejects, too: {choices}",
        choices=load_target_index,
        noun="target",
    )
    programs = PROGRAMS
    format = formats(*FORMATS)
    severity = SEVERITY
    strict = STRICT
    select = SELECT
    ignore = IGNORE
    baseline = BASELINE
    write_baseline = WRITE_BASELINE
    fix = flag("--fix", text="Apply safe fixes, then report the remaining findings")
    diff = flag(
        "--diff",
        text=(
            "Show the safe fixes without writing them, "
            "even with --fix; exit with 1 if there are any"
        ),
    )
    store = STORE
    output = OUTPUT
    color = COLOR

    def run(self) -> Answer:
        """Return the findings.

        Exit 2 if a preset could not be read or resolved, 1 for errors, else 0.
        """
        # before the presets are read, which takes longest
        self.require_known_choice()
        if self.staged:
            return self._answer_staged()
        if self._is_matrix:
            return self._answer_matrix()
        if self.fix or self.diff:
            return self._answer_fixes()
        with PausedCollection():
            return self._answer_outcome(self._check(self._open_store()))

    @property
    def _is_matrix(self) -> bool:
        return len(self.canns) > 1 or len(self.products) > 1

    def _answer_staged(self) -> Answer:
        """Check the staged content, as the next commit would contain it. Raises NpuprofError."""
        if self.rev is not None or self.fix or self.diff or self._is_matrix:
            what = "--staged only checks the staged changes and writes nothing"
            raise build_usage_error(
                what, "omit --rev, --fix, --diff and further releases and products"
            )
        from npuprof.history.proposed import propose_index

        checked = self._open_store()
        with propose_index(checked.workspace.store.repository) as proposed:
            checked.use_revision(proposed)
            return self._answer_outcome(self._check(checked))

    def _check(self, checked: CheckedStore) -> Outcome:
        return self.check_store(checked, self.specs, True, self.programs, self.target)

    def _answer_outcome(self, outcome: Outcome, done: str = "") -> Answer:
        """Return the findings as an answer; ``done`` describes the fixes that were applied."""
        report = outcome.report
        findings = outcome.settled.findings
        code = self.decide_code(findings, report.unresolved)
        note = self.describe_outcome(outcome, done)
        shown = self.filter_by_severity(findings)
        return self.answer_findings(
            shown, code, note, len(report.accepted), report.coverage.format_fields()
        )

    def _open_store(self) -> CheckedStore:
        """Return the checked store, for the single requested platform."""
        return self._open_for(self._combine_contexts()[0])

    def _open_for(self, context: Context) -> CheckedStore:
        return CheckedStore(
            open_workspace(self.store, context), self.rev, self.format in WITH_PLAIN_PATHS
        )

    def _answer_fixes(self) -> Answer:
        from npuprof.edit.fixing import build_fixed_file
        from npuprof.edit.preset_file import format_difference
        from npuprof.system import writing

        self._require_fixable()
        fixes = self._fix_presets()
        done = "nothing"
        if fixes.count:
            files = format_count(len(fixes.after), "file")
            done = f"{format_count(fixes.count, 'finding')} in {files}"
        if self.diff:
            shown = "".join(
                format_difference(old.source, old.text, fixes.after[path].text)
                for path, old in fixes.before.items()
            )
            return Answer(shown, (f"would fix {done}",), int(bool(fixes.count)))
        writing.write_planned_files(
            [build_fixed_file(path, old, fixes.after[path]) for path, old in fixes.before.items()]
        )
        answer = self._answer_outcome(fixes.outcome, f"fixed {done}; ")
        if self.format != "text" or not fixes.before:
            return answer
        written = ", ".join(old.source for old in fixes.before.values())
        return answer._replace(notes=(*answer.notes, f"wrote {written}"))

    def _fix_presets(self) -> _Fixes:
        """Return the fixes of all presets. Writes nothing. Raises NpuprofError."""
        from npuprof.edit.fixing import fix_documents
        from npuprof.edit.preset_file import require_writable_store

        # a new workspace, as the old one has cached what the fixed presets resolve to
        checked = self._open_store()
        home = checked.home
        if not isinstance(home, Folder) or not home.in_work_tree:
            what = f"{home.label} is read-only and cannot be fixed"
            raise build_error("NP920", what, "", "do it in a work tree of that repository")
        require_writable_store(home)
        outcome = self._check(checked)
        before: dict[str, Document] = {}
        after: dict[str, Document] = {}
        count = 0
        for _ in range(_MOST_ROUNDS):
            changed = fix_documents(outcome.settled.findings, checked.find_file)
            if not changed:
                break
            # the first text of a file stays: later rounds start from fixed ones
            before = {path: fixed.old for path, fixed in changed.items()} | before
            after |= {path: fixed.new for path, fixed in changed.items()}
            count += sum(fixed.count for fixed in changed.values())
            checked = self._open_store()
            for new in after.values():
                checked.workspace.replace_preset(new)
            outcome = self._check(checked)
        return _Fixes(before, after, count, outcome)

    def _require_fixable(self) -> None:
        """Raise NpuprofError for presets that cannot be fixed, or options that exclude fixing."""
        if self.rev is not None:
            raise build_usage_error("a revision cannot be fixed", "omit --rev")
        if self.write_baseline:
            raise build_usage_error(
                "a baseline records the remaining findings",
                "run --fix first, then write the baseline",
            )
        if "-" in self.specs:
            raise build_usage_error(
                "standard input cannot be fixed", "name the preset, or its file"
            )

    def _answer_matrix(self) -> Answer:
        if self.fix or self.diff:
            raise build_usage_error(
                "--fix takes one platform at a time", "name one release and one product"
            )
        from npuprof.checks.support import build_support_matrix

        contexts = dict.fromkeys(self._combine_contexts())
        names = list(dict.fromkeys(self.specs)) or self._open_for(Context()).home.names()
        matrix = build_support_matrix(names, tuple(contexts), self._open_for)
        # a matrix checks some platforms only: a finding that is missing may occur on others
        settled = self.apply_baseline(matrix.findings, matrix.unresolved, lambda _: False)
        matrix = matrix.filter_findings(settled.findings)
        shown = self.filter_by_severity(matrix.findings)
        code = self.decide_code(matrix.findings, matrix.unresolved)
        if self.format == "json":
            return Answer({"json": matrix.build_fields}, code=code)
        if self.format != "text":
            return self.answer_findings(shown, code, "")
        listed = format_findings(shown, self.coloured) if self.severity else ""
        hint = "" if self.severity else "; --severity warning lists the findings"
        where = (
            f"{format_count(len(matrix.cells), 'preset')} on "
            f"{format_count(len(matrix.contexts), 'platform')}"
        )
        note = (
            f"{where}: "
            f"{format_severity_counts(matrix.findings) or 'no findings'}{settled.note}{hint}"
        )
        return Answer(matrix.build_table(listed), (note,), code)

    def _combine_contexts(self) -> list[Context]:
        problems: list[Finding] = []
        contexts = []
        for cann in self.canns or (None,):
            for product in self.products or (None,):
                with collect_errors(problems):
                    contexts.append(
                        spec.build_context(
                            cann, product, self.target, self.frameworks, self.axes, self.store
                        )
                    )
        raise_any(dict.fromkeys(problems))
        return contexts


VERB = Check
