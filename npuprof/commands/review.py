"""``review``: report the changes and new findings of a pull request in a GitHub or GitLab job."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import quote

from npuprof import hosting
from npuprof.catalog import build_finding
from npuprof.commands.finding_options import JudgingVerb
from npuprof.commands.framework import flag, option, optional_argument
from npuprof.commands.resolving import open_workspace
from npuprof.compare.markdown_changes import format_faults, format_survey_markdown
from npuprof.compare.spans import COMMENT_LIMIT, Faults, Page, format_listed_span, is_address
from npuprof.compare.store_states import build_page, compare_revisions, format_diff_command
from npuprof.compare.survey import Survey
from npuprof.hosting.job import Job
from npuprof.hosting.merge_base import complete_checkout
from npuprof.hosting.reports import FORMATS
from npuprof.model import Context, Finding, NpuprofError, build_usage_error
from npuprof.renderers.outputs import check_store
from npuprof.report import Answer, baselines
from npuprof.report.findings import format_findings, format_severity_counts, strip_lines
from npuprof.report.text import format_count
from npuprof.store import spec
from npuprof.store.checked import CheckedStore
from npuprof.store.lock_sync import sync_sources
from npuprof.store.worktree import list_changed_paths
from npuprof.system import lazy_pattern
from npuprof.system.tree import Tree
from npuprof.system.writing import write_files_atomically

#: The report format of each CI service.
_REPORTS = {"GitHub": "sarif", "GitLab": "gitlab"}
#: The commit of a store in messages.
_COMMIT = lazy_pattern(r" at [0-9a-f]{7,64}\b")
#: GitHub limits a summary to 1 MiB and a log should not be longer; in characters of up to four
#: bytes.
_SUMMARY_LIMIT = 250_000
#: Revisions that may be the branch which a change goes into, the best first.
_DEFAULT_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


@dataclass
class _Results:
    """The results of a job: shown findings, failing findings, failures, notes, the exit code."""

    shown: list[Finding] = field(default_factory=list)
    failing: list[Finding] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    code: int = 0
    unresolved: int = 0

    @contextmanager
    def note_failures(self) -> Iterator[None]:
        """Record the findings of errors that prevent checking or comparing, without duplicates."""
        try:
            yield
        except NpuprofError as error:
            known = {(finding.code, finding.message, finding.place) for finding in self.problems}
            # a source that is missing fails the check, the comparison and the sync alike
            new = [
                finding
                for finding in error.findings
                if (finding.code, finding.message, finding.place) not in known
            ]
            self.problems += new
            self.failing += new
            self.code = 2


class Review(JudgingVerb):
    """Review a pull request in a CI job.

    Runs in jobs of GitHub and GitLab. Checks the presets and writes the semantic diff to the job's
    summary or log. If the token may comment, npuprof keeps one comment on the pull request up to
    date. Exits with 1 if there are errors. With --local, it prints the comment and posts nothing.
    """

    usage_hint = (
        "It is for GitHub and GitLab jobs, whose variables identify the pull request; elsewhere: "
        "npuprof review --local"
    )
    group = "team"

    revision = optional_argument(
        "BASE", "Same as --base [default with --local: the default branch]", "revision"
    )
    local = flag("--local", text="Print the comment for the work tree or, if equal, HEAD")
    base = option(
        "--base",
        metavar="REV",
        text="Compare with this revision [default: the one that the CI service names]",
        complete="revision",
    )
    report = option(
        "--report",
        metavar="FILE",
        text="Write the findings to FILE too, as SARIF on GitHub or code quality on GitLab",
    )
    sync = flag(
        "--sync",
        text="Fetch the locked sources first, of the work tree and of both compared commits",
    )

    def run(self) -> Answer:
        """Return the findings.

        Exit codes as for ``check``, and 2 if the changes are unknown. Raises NpuprofError.

        Everything that fails the job is on the page. A failed comment is reported without changing
        the exit code.
        """
        base = self.revision or self.base
        if self.local:
            job = self._describe_work_tree(base)
        else:
            job = hosting.read_job(os.environ)
            job = job._replace(base=base) if base else job
        results = _Results()
        with results.note_failures():
            # first: without the sources, neither the check nor the comparison is complete
            self._sync_sources()
        self._judge(results)
        if self.report is not None:
            with results.note_failures():
                findings = [*results.shown, *results.problems]
                write_files_atomically({self.report: FORMATS[_REPORTS[job.service]](findings)})
        page = self._review(job, results) if job.number or self.local else ""
        return Answer(
            page if self.local else self._format_answer(job, results, page),
            tuple(results.notes),
            results.code,
            problems=results.problems,
        )

    def _describe_work_tree(self, base: str | None) -> Job:
        """Return a job without a service; its head is HEAD, or empty if the work tree differs.

        Raises NpuprofError.
        """
        repository = spec.Workspace(self.store).store.repository
        target = base or next(filter(repository.has_commit, _DEFAULT_BRANCHES), None)
        if target is None:
            what = f"the default branch is none of {', '.join(_DEFAULT_BRANCHES)}"
            raise build_usage_error(what, "npuprof review --local BASE")
        commit, head = map(repository.resolve_commit, (target, "HEAD"))
        if list_changed_paths(repository, repository.find_layout(head)).changed:
            commit, head = repository.find_merge_base(commit, head), ""
        return Job("GitHub", "text", base=commit, head=head, target=target)

    def _sync_sources(self, rev: str | None = None) -> None:
        """Fetch the sources in the lock of the work tree or a revision, if requested.

        Raises NpuprofError.
        """
        if self.sync:
            sync_sources(self.store, rev=rev)

    def _judge(self, results: _Results) -> None:
        """Record the findings of the work tree, or why it cannot be checked."""
        with results.note_failures():
            self.require_known_choice()
            outcome = self.check_store(CheckedStore(open_workspace(self.store)))
            findings = outcome.settled.findings
            results.shown = self.filter_by_severity(findings)
            results.failing += [finding for finding in findings if self.decide_code([finding])]
            results.unresolved = outcome.report.unresolved
            results.code = max(results.code, self.decide_code(findings, results.unresolved))
            results.notes.append(self.describe_outcome(outcome))

    def _review(self, job: Job, results: _Results) -> str:
        """Compare the commits of the pull request and publish the result.

        Return the page for the log. Faults are recorded.
        """
        rev = f"{job.base}...{job.head}" if job.head else job.base
        link = job.pages if is_address(job.pages) else None
        command = format_diff_command(rev, {"--store": self.store})
        survey: Survey | None = None
        states: States | None = None
        is_whole = False
        differs = False
        with results.note_failures():
            if not self.local:
                self._complete_checkout(job)
            is_whole = True
            survey = compare_revisions(spec.Workspace(self.store).store, rev, Context())
            states = States(job, self.store, self.least_severity == "info")
        if survey is not None:
            results.notes += survey.describe_unread()
            results.code = max(results.code, 2 if survey.has_unread else 0)
            differs = bool(
                survey.has_unread
                or survey.outputs
                or any(pair.is_different or pair.accepted for pair in survey.pairs)
            )
        faults = sort_faults(results.failing, survey, states, job.target or "the target branch")
        if results.unresolved and not (faults or differs):
            what = (
                f"{format_count(results.unresolved, 'preset')} cannot be read or resolved, and a "
                "baseline hides why (npuprof check)"
            )
            faults = [Faults(what, f"{results.unresolved} unread", ())]

        def format_page(limit: int) -> str:
            if survey is None:
                return format_faults(Page(faults=faults, limit=limit))
            return format_survey_markdown(
                survey, build_page(survey, command, link)._replace(faults=faults, limit=limit)
            )

        needed = is_whole and (differs or results.code > 0)
        # a comment is limited to a smaller size than the summary
        short = format_page(COMMENT_LIMIT)
        if self.local:
            if not needed:
                results.notes.append("the job creates no comment for this")
            return f"{self._build_marker()}\n{short}"
        page = format_page(_SUMMARY_LIMIT)
        self._publish(job, page, short, needed, results)
        if states is not None:
            self._leave_out_known(job, states, results)
        return page

    def _complete_checkout(self, job: Job) -> None:
        """Fetch what the comparison needs: commits, and with ``sync`` sources.

        Raises NpuprofError.
        """
        try:
            folder = spec.Workspace(self.store).store.root
        except NpuprofError:  # the check reports it; the commits may still be available
            folder = os.getcwd()
        complete_checkout(folder, job.base, job.head, job.depth)
        for side in (job.base, job.head):
            with suppress(NpuprofError):  # the comparison reports a missing side
                self._sync_sources(side)

    def _leave_out_known(self, job: Job, states: States, results: _Results) -> None:
        """Keep the findings that the pull request adds and those that fail the job.

        A note counts the others.
        """
        # what fails the job is always shown
        aside = [finding for finding in results.shown if not self.decide_code([finding])]
        omitted = _leave_out(aside, states.drop_known(aside, states.merge_base))
        if not omitted:
            return
        are = "is" if len(omitted) == 1 else "are"
        results.notes.append(
            f"{format_severity_counts(omitted)} that this {_name_request(job)} did not introduce "
            f"{are} omitted here (npuprof check)"
        )
        results.shown = _leave_out(results.shown, omitted)

    def _publish(self, job: Job, page: str, short: str, needed: bool, results: _Results) -> None:
        """Write the summary and the comment, which is the ``short`` page; record failures.

        Without ``needed``, no new comment is created.
        """
        if job.summary:
            try:
                folder, name = os.path.split(os.path.realpath(job.summary))
                # appended: other steps of the job write to the same file
                handle = Tree(folder).open_file(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                with open(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(page)
            except OSError as error:
                what = f"the summary of the job cannot be written: {error.strerror}"
                results.problems.append(
                    build_finding("NP062", what, "", "see the comment, or npuprof diff")
                )
        if job.comments is None:
            results.problems.append(
                Finding(
                    "NP062",
                    "no comment is written: there is no token",
                    "",
                    job.token_hint,
                    severity="info",
                )
            )
            return
        from npuprof.hosting import comments, service

        try:
            done = comments.update_comment(
                job.comments,
                self._build_marker(),
                short,
                needed,
            )
        except service.ServiceError as error:
            why = (
                "The token may lack the right: that of a fork may only read."
                if error.refused
                else ""
            )
            where = "the summary of this job" if job.summary else "the log of this job"
            what = f"the comment could not be written: {error.message}"
            problem = build_finding("NP062", what, why, f"see {where}, which has all of it")
            results.problems.append(problem._replace(severity="info") if error.refused else problem)
        else:
            results.notes.append(f"the comment on {_name_request(job)} {job.number}: {done}")

    def _build_marker(self) -> str:
        """Return the first line of npuprof's comment, unique per store of a repository."""
        path = os.path.normpath(self.store or os.environ.get("NPUPROF_STORE") or "profiles")
        which = (
            ""
            if path == "profiles"
            else f" in {quote(path, errors='surrogateescape').replace('--', '%2D%2D')}"
        )
        return f"<!-- npuprof: presets{which} -->"

    def _format_answer(self, job: Job, results: _Results, page: str) -> str:
        """Return the log output: annotations on GitHub, else the page and the findings."""
        if job.format == "github":
            return FORMATS["github"]([*results.shown, *results.problems])
        blank_line = "\n" if page and results.shown else ""
        return f"{page}{blank_line}{format_findings(results.shown)}"


def _name_request(job: Job) -> str:
    return f"{'merge' if job.service == 'GitLab' else 'pull'} request"


class States:
    """The commits of a job: the merge base, the target's tip, the proposed one, the work tree's."""

    def __init__(self, job: Job, store: str | None, notes: bool) -> None:
        home = spec.Workspace(store).store
        self._store = store
        self._notes = notes
        self._label = home.label
        self._repository = repository = home.repository
        self._known: dict[str, list[Finding]] = {}
        self.tree, base = repository.resolve_commit("HEAD"), repository.resolve_commit(job.base)
        self.head = repository.resolve_commit(job.head or "HEAD")
        self.merge_base = repository.find_merge_base(base, self.head)
        is_merge = (
            repository.has_commit("HEAD^2") and repository.resolve_commit("HEAD^2") == self.head
        )
        # GitHub checks out a merge of the pull request with the target
        self.target = repository.resolve_commit("HEAD^1") if is_merge else base

    def drop_known(self, findings: Sequence[Finding], commit: str) -> list[Finding]:
        """Return the findings that a commit lacks, by file, code, key and message.

        Moved files are matched.
        """
        if not findings:
            return []
        path = os.path.join(self._repository.top, "-")
        counts = baselines.count_findings(self._judge(commit), path)
        baseline = baselines.Baseline(path, None, counts)
        return baselines.compare_with_baseline(findings, baseline, lambda _: False).new

    def _judge(self, commit: str) -> list[Finding]:
        """Return the findings at a commit; if it cannot be checked, the reason."""
        if commit not in self._known:
            try:
                checked = CheckedStore(open_workspace(self._store), commit, plainly=True)
                findings = check_store(checked, notes=self._notes).findings
                there = checked.label  # the label of the store in messages
                self._known[commit] = [
                    finding._replace(message=finding.message.replace(there, self._label))
                    for finding in findings
                ]
            except NpuprofError as error:
                self._known[commit] = list(error.findings)
        return self._known[commit]


def sort_faults(
    failing: Sequence[Finding], survey: Survey | None, states: States | None, target: str
) -> list[Faults]:
    """Return findings that fail a job and are not in a survey, grouped by origin.

    In one group if the origin is unknown.
    """
    known = set()
    for pair in survey.pairs if survey else ():
        for finding in (*pair.broken, *pair.unavailable):
            known.update(_identify_finding(finding))
    rest = [
        finding
        for finding in failing
        # the survey lists new errors itself
        if finding.severity != "error" or known.isdisjoint(_identify_finding(finding))
    ]
    if not rest:
        return []
    if states is None or survey is None:
        return [Faults("What fails the job", format_severity_counts(rest), rest)]
    new = states.drop_known(states.drop_known(rest, states.merge_base), states.target)
    merged = [] if states.tree == states.head else states.drop_known(new, states.head)
    own = _leave_out(new, merged)
    before = _leave_out(rest, new)
    counted = format_severity_counts(before)
    groups = [
        Faults("What else fails the job", f"{format_severity_counts(own)} besides", own),
        Faults(
            f"Broken by the merge with {format_listed_span(target)}",
            f"{len(merged)} broken by the merge",
            merged,
        ),
        Faults(
            f"{counted} of before, which fail{'s' if len(before) == 1 else ''} the job",
            f"{counted} of before",
            before,
        ),
    ]
    return [group for group in groups if group.findings]


def _leave_out(findings: Iterable[Finding], others: Iterable[Finding]) -> list[Finding]:
    omitted = {id(finding) for finding in others}
    return [finding for finding in findings if id(finding) not in omitted]


def _identify_finding(finding: Finding) -> list[tuple[str, ...]]:
    """Return the identities of a finding at a commit and in the work tree.

    They are its message, and its source line if it has one.
    """
    message = _COMMIT.sub("", strip_lines(finding))
    identities: list[tuple[str, ...]] = [(finding.code, finding.key, message)]
    if finding.origin is not None and finding.origin.line:
        # the line identifies a finding whose message cites a revision
        text = finding.origin.document.text.split("\n")[finding.origin.line - 1]
        identities.append((finding.code, finding.key, finding.origin.file, text.strip()))
    return identities


VERB = Review
