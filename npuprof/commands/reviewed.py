"""Where findings of a job come from: what is proposed, its merge with the target branch, or the state before; and its page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from npuprof.commands.check import Check
from npuprof.compare.spans import Faults, format_listed_span
from npuprof.hosting.job import Job
from npuprof.model import Finding, NpuprofError
from npuprof.report.findings import format_severity_counts, strip_lines
from npuprof.system.patterns import lazy_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.commands.diff import Diff
    from npuprof.compare.survey import Survey

#: How messages tell the commit at which a store is read.
_COMMIT = lazy_pattern(r" at [0-9a-f]{7,64}\b")


class States:
    """The states that a job knows beside the work tree: where the branch left, the target's tip, what is proposed."""

    def __init__(self, job: Job, store: str | None, severity: str | None) -> None:
        from npuprof.store import spec
        from npuprof.store.gitstore import revisions

        home = spec.Workspace(store).store
        self._store, self._severity, self._label = store, severity, home.label
        self._repository = repository = revisions.find_repository(home)
        self._known: dict[str, list[Finding]] = {}
        self.tree, base = repository.resolve_commit("HEAD"), repository.resolve_commit(job.base)
        self.head = repository.resolve_commit(job.head)
        self.left = repository.find_merge_base(base, self.head)
        is_merge = repository.has_commit("HEAD^2") and repository.resolve_commit("HEAD^2") == self.head
        self.target = repository.resolve_commit("HEAD^1") if is_merge else base

    def drop_known(self, findings: Sequence[Finding], commit: str) -> list[Finding]:
        """Return the findings that a commit has not: known by file, code, key and message, whatever files were moved."""
        if not findings:
            return []
        from npuprof.report import baselines

        place = os.path.join(self._repository.top, "-")
        baseline = baselines.Baseline(place, None, baselines.count_marks(self._judge(commit), place))
        return baselines.compare_with_baseline(findings, baseline, lambda _: False).new

    def _judge(self, commit: str) -> list[Finding]:
        """Return what a check finds at a commit; where none is possible, what says why."""
        if commit not in self._known:
            before = Check({"store": self._store, "rev": commit, "format": "github", "severity": self._severity})
            try:
                judged = before.open_store()
                found = before.judge(judged).settled.findings
                there = judged.home.label  # messages call the store by it
                self._known[commit] = [one._replace(message=one.message.replace(there, self._label)) for one in found]
            except NpuprofError as error:
                self._known[commit] = list(error.findings)
        return self._known[commit]


def sort_faults(failing: Sequence[Finding], survey: Survey | None, states: States | None, target: str) -> list[Faults]:
    """Return what fails a job and does not stand in a survey, by where it comes from; all as one where nobody can tell that."""
    known = {mark for pair in survey.pairs for one in (*pair.broken, *pair.untold) for mark in _mark(one)} if survey else set()
    rest = [one for one in failing if one.severity != "error" or known.isdisjoint(_mark(one))]
    if not rest:
        return []
    if states is None or survey is None:
        return [Faults("What fails the job", format_severity_counts(rest), rest)]
    came = states.drop_known(states.drop_known(rest, states.left), states.target)
    merged = [] if states.tree == states.head else states.drop_known(came, states.head)
    own, before = _leave_out(came, merged), _leave_out(rest, came)
    counted = format_severity_counts(before)
    groups = [
        Faults("What else fails the job", f"{format_severity_counts(own)} besides", own),
        Faults(f"Broken by the merge with {format_listed_span(target)}", f"{len(merged)} broken by the merge", merged),
        Faults(f"{counted} of before, which fail{'s' if len(before) == 1 else ''} the job", f"{counted} of before", before),
    ]
    return [group for group in groups if group.findings]


def _leave_out(findings: Iterable[Finding], others: Iterable[Finding]) -> list[Finding]:
    left = {id(one) for one in others}
    return [one for one in findings if id(one) not in left]


def _mark(finding: Finding) -> list[tuple[str, ...]]:
    """Return what makes a finding the same at a commit and in the work tree: its words, or the line that it is about."""
    marks: list[tuple[str, ...]] = [(finding.code, finding.key, _COMMIT.sub("", strip_lines(finding.message)))]
    if finding.origin is not None and finding.origin.line:
        text = finding.origin.document.text.split("\n")[finding.origin.line - 1]
        marks.append((finding.code, finding.key, finding.origin.file, text.strip()))
    return marks


def format_review_page(diff: Diff, survey: Survey | None, faults: Sequence[Faults], limit: int) -> str:
    """Return the page of a pull request in so many characters; ``survey`` is None where nobody can tell what changes."""
    from npuprof.compare.markdown import format_faults, format_survey_markdown
    from npuprof.compare.spans import Page

    if survey is None:
        return format_faults(Page(faults=faults, limit=limit))
    return format_survey_markdown(survey, diff.build_page(survey)._replace(faults=faults, limit=limit))
