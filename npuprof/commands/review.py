"""``review``: what a job of GitHub or GitLab says of a pull request: findings at their lines, a page, one comment that is kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import quote

from npuprof import hosting
from npuprof.commands.check import Check
from npuprof.commands.parameters import BASELINE, IGNORE, SEVERITY, STORE, STRICT
from npuprof.commands.verb import Verb, flag, option
from npuprof.hosting.job import Job
from npuprof.model import Finding, NpuprofError
from npuprof.report.answer import Answer
from npuprof.report.findings import FORMATS, format_findings, format_severity_counts

#: What a report for the service itself is written as.
_REPORTS = {"GitHub": "sarif", "GitLab": "gitlab"}


class Review(Verb):
    """Check presets in a job of GitHub or GitLab, and comment.

    What a pull request changes goes to the job's summary, or its log, and to one comment that is kept, where the token may write
    one. Exit 1 if there are errors.
    """

    usage_hint = "It is for jobs of GitHub and GitLab, whose variables say what to review; elsewhere: npuprof diff --rev main...HEAD"
    group = "git"

    base: str | None = option("--base", metavar="REV", text="The revision to compare with, if not the one that the service names.")
    report: str | None = option("--report", metavar="FILE", text="Also write what was found for the service: code quality, or SARIF.")
    sync: bool = flag("--sync", text="First fetch the sources that npuprof.lock names, here and in the commits that are compared.")
    severity: str | None = SEVERITY
    strict: bool = STRICT
    ignore: list[str] = IGNORE
    baseline: str | None = BASELINE
    store: str | None = STORE

    def run(self) -> Answer:
        """Return what was found. Exit codes are those of ``check``, and 2 where it cannot be told what changes. Raises NpuprofError.

        A comment that could not be written is told, and changes no exit code.
        """
        job = hosting.read_job(os.environ)
        check = Check({
            "store": self.store, "format": job.format, "severity": self.severity, "strict": self.strict, "ignore": self.ignore,
            "baseline": self.baseline, "color": "never",
        })  # fmt: skip
        check.refuse_odd_choice()
        problems = self._sync_sources()
        outcome = check.judge(check.open_store())
        told = check.select_told(outcome.settled.findings)
        code = check.decide_code(outcome.settled.findings, outcome.unresolved)
        remarks = [check.describe_outcome(outcome)]
        if self.report is not None:
            self._write_report(self.report, job, told)
        code = 2 if problems else code
        page = ""
        if job.number:
            try:
                page, found = self._build_page(job, remarks)
                code = max(code, found if found > 1 else 0)
                problems += self._publish(job, page, found > 0, remarks)
            except NpuprofError as error:
                problems, code = [*problems, *error.findings], 2
        if page:
            told, left = self._select_caused(check, job, told)
            remarks += left
        return Answer(self._format_answer(job, told, page, problems), tuple(remarks), code, problems=problems)

    def _sync_sources(self, rev: str | None = None) -> list[Finding]:
        """Fetch what the lock names, of the work tree or at a revision; return what could not be had."""
        from npuprof.commands.source.sync import Sync

        try:
            if self.sync:
                Sync({"store": self.store, "rev": rev}).run()
        except NpuprofError as error:
            return list(error.findings)
        return []

    def _write_report(self, path: str, job: Job, told: Sequence[Finding]) -> None:
        from npuprof.report.writing import write_files_atomically

        write_files_atomically({path: FORMATS[_REPORTS[job.service]](told)})

    def _build_page(self, job: Job, remarks: list[str]) -> tuple[str, int]:
        """Return what the pull request changes as a page; 0 where that is nothing, 2 where not all could be read. Raises NpuprofError."""
        from npuprof.commands.diff import Diff
        from npuprof.compare.spans import is_address
        from npuprof.hosting.checkout import complete_checkout
        from npuprof.store import spec

        base = self.base or job.base
        complete_checkout(spec.Workspace(self.store).store.root, base, job.head, job.depth)
        for side in (base, job.head):
            self._sync_sources(side)  # a side that cannot be had is told by the comparison
        rev = f"{base}...{job.head}"
        link = job.pages if is_address(job.pages) else None
        answer = Diff({"rev": rev, "format": "markdown", "link": link, "exit_code": True, "store": self.store}).run()
        remarks += answer.remarks
        return str(answer.write_form("markdown")), answer.code

    def _select_caused(self, check: Check, job: Job, told: Sequence[Finding]) -> tuple[list[Finding], list[str]]:
        """Return the findings that the pull request brings, and those that fail the job; a remark counts the others.

        What was there before is known by its file, code, key and message; all is told where the state before cannot be judged.
        """
        aside = [finding for finding in told if not check.decide_code([finding])]
        if not aside:
            return list(told), []
        from npuprof.commands import baselines
        from npuprof.commands.baseline_comparing import compare_with_baseline
        from npuprof.store import revisions, spec

        try:
            repository = revisions.find_repository(spec.Workspace(self.store).store)
            commits = [repository.resolve_commit(rev) for rev in (self.base or job.base, "HEAD")]
            before = Check(
                {"store": self.store, "rev": repository.find_merge_base(*commits), "format": "github", "severity": self.severity}
            )
            known = before.judge(before.open_store()).settled.findings
        except NpuprofError:
            return list(told), []
        baseline = baselines.Baseline(place := os.path.join(repository.top, "-"), None, baselines.count_marks(known, place))
        new = {id(finding) for finding in compare_with_baseline(aside, baseline, lambda _: False).new}
        left = {id(finding) for finding in aside} - new
        if not left:
            return list(told), []
        counted = format_severity_counts([finding for finding in told if id(finding) in left])
        remark = f"{counted} that this {_name_request(job)} did not bring {'is' if len(left) == 1 else 'are'} left out here (npuprof check)"
        return [finding for finding in told if id(finding) not in left], [remark]

    def _publish(self, job: Job, page: str, differs: bool, remarks: list[str]) -> list[Finding]:
        """Write the summary and the comment; return what could not be."""
        problems = []
        if job.summary:
            try:
                with open(job.summary, "a", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(page)
            except OSError as error:
                what = f"the summary of the job cannot be written: {error.strerror}"
                problems.append(Finding("NP062", what, "", "see the comment, or npuprof diff"))
        if job.comments is None:
            hint = job.token_hint
            problems.append(Finding("NP062", "no comment is written: there is no token", "", hint, severity="info"))
            return problems
        from npuprof.hosting.comments import keep_comment
        from npuprof.hosting.service import ServiceError

        try:
            done = keep_comment(job.comments, _build_marker(self.store or os.environ.get("NPUPROF_STORE")), page, differs)
        except ServiceError as error:
            why = "The token lacks the right; that of a fork may only read." if error.refused else ""
            where = "the summary of this job" if job.summary else "the log of this job"
            what = f"the comment could not be written: {error.message}"
            problem = Finding("NP062", what, why, f"see {where}, which has all of it")
            problems.append(problem._replace(severity="info") if error.refused else problem)
        else:
            remarks.append(f"the comment on {_name_request(job)} {job.number}: {done}")
        return problems

    def _format_answer(self, job: Job, told: Sequence[Finding], page: str, problems: Sequence[Finding]) -> str:
        """Return what the log shows: on GitHub what becomes annotations, else the page and the findings."""
        if job.format == "github":
            return FORMATS["github"]([*told, *problems])
        return f"{page}\n{format_findings(told)}" if page and told else page + format_findings(told)


def _name_request(job: Job) -> str:
    return f"{'merge' if job.service == 'GitLab' else 'pull'} request"


def _build_marker(store: str | None) -> str:
    """Return the first line of a comment of ours: one for each store that a repository has."""
    path = os.path.normpath(store or "profiles")
    which = "" if path == "profiles" else f" in {quote(path, errors='surrogateescape').replace('--', '%2D%2D')}"
    return f"<!-- npuprof: presets{which} -->"


VERB = Review
