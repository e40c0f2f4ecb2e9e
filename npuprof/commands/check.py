"""``check``: validate presets and report all findings; for several platforms, print a compatibility matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain

from npuprof import checks
from npuprof.catalog import build_finding, is_passed_through
from npuprof.catalog.execution import is_unknown_variable
from npuprof.checks import is_fixable
from npuprof.commands.framework import flag, many, option
from npuprof.commands.framework.parameters import (
    BASELINE,
    COLOR,
    FRAMEWORKS,
    IGNORE,
    OUTPUT,
    SELECT,
    SEVERITY,
    SPECS,
    STORE,
    STRICT,
    WRITE_BASELINE,
    formats,
)
from npuprof.commands.judging import FORMATS, JudgingVerb, Settled, describe_accepted
from npuprof.commands.resolving import open_workspace
from npuprof.model import Context, Finding, NpuprofError, Place, Record, build_error, build_usage_error
from npuprof.report import Answer
from npuprof.report.coverage import Coverage
from npuprof.report.findings import WITH_PLAIN_PATHS, format_findings, format_severity_counts
from npuprof.report.isolating import isolate_faults
from npuprof.report.output import track_items
from npuprof.report.text import format_count
from npuprof.resolve.config import Config
from npuprof.store import is_profile_name, spec
from npuprof.store.base import ReadOnceStore
from npuprof.store.folder import Folder
from npuprof.store.problems import build_bad_name_finding
from npuprof.system import PausedCollection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.checks.accepted import Accepted
    from npuprof.document import Document
    from npuprof.document.profile import Profile
    from npuprof.store.gitstore.revisions import Revision

#: Fixes may reveal further faults; the check is repeated at most this often.
_MOST_ROUNDS = 5


class JudgedStore:
    """Presets by name, resolved; with ``plainly``, presets of a revision are cited by path only, for machine formats."""

    def __init__(self, given: str | None, rev: str | None, context: Context, plainly: bool = False) -> None:
        self.workspace = open_workspace(given, context)
        self._past: Revision | None = None
        if rev is not None:
            self._open_revision(rev, plainly)

    @contextmanager
    def stage(self) -> Iterator[None]:
        """Check the staged content, as the next commit would contain it, in a context. Raises NpuprofError."""
        from npuprof.history.proposed import propose_index

        with propose_index(self.workspace.store.repository) as proposed:
            self._use(proposed)
            yield

    @property
    def home(self) -> ReadOnceStore:
        """The store; a preset outside a store needs none. Raises NpuprofError if there is none."""
        return self._past if self._past is not None else self.workspace.listed_store

    def _open_revision(self, rev: str, plainly: bool) -> None:

        home = self.workspace.store
        revision = home.repository.load_revision(home.repository.resolve_commit(rev))
        if not revision.files:
            raise build_error("NP023", f"there are no profiles in {revision.label}", "", "name the store with --store")
        if plainly:
            revision.shown = None
        self._use(revision)

    def _use(self, revision: Revision) -> None:
        from npuprof.store.project import require_fitting_project

        require_fitting_project(self.workspace.lookups.find_project(revision))  # npuprof.toml can move the presets' folder
        self._past = revision

    def find_file(self, document: Document) -> str:
        """Return the path of the writable file of a document; an empty string for files outside this store."""
        name = document.name
        if not document.text:
            return ""
        if name.endswith(".toml"):
            return name  # a file outside any store
        home = self.home
        return home.profile_path(name) if isinstance(home, Folder) and home.cite_file(f"{name}.toml") == document.source else ""

    def load_profiles(self, names: Sequence[str]) -> None:
        """Load presets in advance: reading all files before all checks is a fifth faster."""
        if self._past is not None:
            self._past.load_texts(names)
        for name in names:
            with suppress(Exception):  # resolving the preset fails again and reports it
                self.home.profile(name)

    def cite_preset(self, name: str) -> str:
        """Return the path to cite for a preset of the store; other specs unchanged. Raises NpuprofError."""
        return self.home.cite_file(f"{name}.toml") if is_profile_name(name) else name

    def lay_over(self, document: Document) -> None:
        """Replace the text of a preset in the work tree, without writing it."""
        self.workspace.lay_over(document)

    def resolve_preset(self, name: str) -> Config:
        """Return a preset resolved; at a revision, by its name or the path of its file. Raises NpuprofError."""
        if self._past is None:
            return self.workspace.resolve_spec(name)
        return self.workspace.resolver.resolve_profile(self._find_profile(name))

    def resolve_as_far_as_can_be(self, name: str) -> Config:
        """Return a malformed preset, resolved without its malformed parts. Raises NpuprofError if it cannot be read."""
        return self.workspace.resolver.resolve_as_far_as_can_be(self._find_profile(name))

    def _find_profile(self, name: str) -> Profile:
        if self._past is None:
            return self.workspace.profile(name)
        if name.endswith(".toml"):
            name = self._past.layout.name_of(name.removeprefix("./")) or name.removeprefix("./").removesuffix(".toml")
        return self.home.profile(name)


class Outcome(Record):
    """The result of checking a store: the number of presets, the findings, the accepted findings, and the number of unresolved presets."""

    judged: JudgedStore
    presets: int
    settled: Settled
    accepted: int
    unresolved: int
    coverage: Coverage


def _measure_coverage(configs: Iterable[Config]) -> Coverage:
    """Return the number of known settings of presets, and the names of unknown variables."""
    numbers = Counter(chain.from_iterable(config.settings for config in configs))
    passed = sum(number for key, number in numbers.items() if is_passed_through(key))
    variables = ((key.removeprefix("env."), number) for key, number in numbers.items() if key.startswith("env."))
    unknown = [name for name, number in variables if is_unknown_variable(name) for _ in range(number)]
    return Coverage(numbers.total() - len(unknown) - passed, 0, unknown, passed)


class Check(JudgingVerb):
    """Validate presets and report all findings.

    Exits with 1 if there are errors, and with 2 if a preset cannot be read or resolved. With several releases or products,
    npuprof prints a compatibility matrix; add --severity to list the findings too.
    """

    group = "presets"
    prose = True

    specs: list[str] = SPECS
    rev: str | None = option("--rev", metavar="REV", text="Check the presets at this revision [default: the work tree]")
    staged: bool = flag("--staged", text="Check the staged changes, as in a pre-commit hook")
    canns: list[str] = many(
        "--cann", metavar="RELEASE", text="Check for this CANN release; repeat for a matrix [default: all that the preset supports]"
    )
    products: list[str] = many(
        "--product", metavar="PRODUCT", text="Check for this product; repeat for a matrix [default: all that the preset supports]"
    )
    frameworks: list[str] = FRAMEWORKS
    format: str = formats(*FORMATS)
    severity: str | None = SEVERITY
    strict: bool = STRICT
    select: list[str] = SELECT
    ignore: list[str] = IGNORE
    baseline: str | None = BASELINE
    write_baseline: bool = WRITE_BASELINE
    fix: bool = flag("--fix", text="Apply safe fixes, then report the remaining findings")
    diff: bool = flag("--diff", text="Show the safe fixes without writing them, even with --fix; exit with 1 if there are any")
    store: str | None = STORE
    output: str | None = OUTPUT
    color: str = COLOR

    def run(self) -> Answer:
        """Return the findings. Exit 2 if a preset could not be read or resolved, 1 for errors, else 0."""
        self.refuse_odd_choice()
        if self.staged:
            return self._answer_staged()
        if len(self.canns) > 1 or len(self.products) > 1:
            return self._answer_matrix()
        if self.fix or self.diff:
            return self._answer_fixes()
        with PausedCollection():
            return self.answer_outcome(self.judge(self.open_store()))

    def _answer_staged(self) -> Answer:
        if self.rev is not None or self.fix or self.diff or len(self.canns) > 1 or len(self.products) > 1:
            what = "--staged only checks the staged changes and writes nothing"
            raise build_usage_error(what, "omit --rev, --fix, --diff and further releases and products")
        judged = self.open_store()
        with judged.stage():
            return self.answer_outcome(self.judge(judged))

    def judge(self, judged: JudgedStore) -> Outcome:
        """Return all findings about the selected presets. Raises NpuprofError if there are none."""
        names = self.specs or judged.home.names()
        findings = list(_find_strays(judged.home)) if not self.specs else []
        unresolved = len(findings)
        edited = list(_find_edited_copies(judged)) if not self.specs else []
        unresolved += len(edited)  # presets that use an edited copy, at least one
        findings += [*_find_doubles(judged.home), *_find_inner_stores(judged.home), *edited] if not self.specs else []
        if not names and not findings:
            raise NpuprofError([_build_empty_finding(judged.home)])
        if not self.specs:
            judged.load_profiles(names)
        notes = self.least_severity == "info"
        configs: list[Config] = []
        faults: list[Finding] = []
        absent = 0
        for name in names:
            try:
                with isolate_faults(judged.cite_preset(name), faults, name):
                    configs.append(judged.resolve_preset(name))
            except NpuprofError as error:
                unresolved += 1
                absent += all(finding.code == "NP008" and finding.where is None for finding in error.findings)
                findings += [finding._replace(profiles=finding.profiles or (name,)) for finding in error.findings]
                # a file that cannot be read has no further findings
                with suppress(NpuprofError), isolate_faults(judged.cite_preset(name), faults, name):
                    config = judged.resolve_as_far_as_can_be(name)
                    findings += checks.check_config(config, notes) if _is_whole(error) else checks.check_values(config, notes)
        kept_faults = list(_find_kept_faults(judged, findings)) if not self.specs else []
        unresolved += sum(finding.severity == "error" for finding in kept_faults)  # a wheel or an export of it could not be read
        findings += kept_faults
        accepted: list[Accepted] = []
        for config in track_items(configs, "presets"):
            with isolate_faults(config.lineage[-1].document.source, faults, config.name):
                verdict = checks.judge_config(config, notes)
                findings += verdict.findings
                accepted += verdict.accepted
        findings += faults
        unresolved += len(faults)
        is_whole = not (self.specs or self.canns or self.products or self.frameworks)
        if notes and is_whole and not unresolved:
            from npuprof.checks.accepted import find_idle_globs, find_idle_ignores

            findings += find_idle_ignores(configs, accepted)
            lookups = judged.workspace.lookups
            if (policy := lookups.load_policy(judged.home)) is not None:
                own = lookups.find_project(judged.home)  # the policy of a source covers its own presets
                findings += find_idle_globs([rule for rule in policy.rules if rule in own.rules], names)
                findings += find_idle_globs(own.ignores, names)
        settled = self.settle_findings(checks.fold_findings(findings), unresolved, lambda _: is_whole and not unresolved)
        return Outcome(
            judged,
            len(names) - absent,
            settled,
            len(checks.fold_findings(one.finding for one in accepted)),
            unresolved,
            _measure_coverage(configs),
        )

    def answer_outcome(self, outcome: Outcome, done: str = "") -> Answer:
        """Return the findings as an answer; ``done`` describes the fixes that were applied."""
        findings = outcome.settled.findings
        code = self.decide_code(findings, outcome.unresolved)
        return self.answer_findings(
            self.select_told(findings), code, self.describe_outcome(outcome, done), outcome.accepted, outcome.coverage.format_fields()
        )

    def describe_outcome(self, outcome: Outcome, done: str = "") -> str:
        """Return the findings, their scope and the next step in one line."""
        findings = outcome.settled.findings
        fixable = 0
        if not done and any(map(is_fixable, findings)):
            from npuprof.edit.fixing import fix_documents

            fixable = sum(number for *_, number in fix_documents(findings, outcome.judged.find_file).values())
        more = f", --fix corrects at least {fixable}" if fixable else ""
        more += "" if self.least_severity == "info" else " (--severity info shows notes as well)"
        found_now = format_severity_counts(findings) or "no findings"
        result = f"{found_now}{describe_accepted(outcome.accepted)}{outcome.settled.remark}{more}"
        result += f"; {outcome.coverage.describe()}" if outcome.coverage.settings or not findings else ""
        return f"{done}{format_count(outcome.presets, 'preset')} checked: {result}"

    def open_store(self) -> JudgedStore:
        """Return the checked store, for the single requested platform."""
        return self._open_for(spec.build_context(next(iter(self.canns), None), next(iter(self.products), None), versions=self.frameworks))

    def _open_for(self, context: Context) -> JudgedStore:
        return JudgedStore(self.store, self.rev, context, self.format in WITH_PLAIN_PATHS)

    def _answer_fixes(self) -> Answer:
        from npuprof.edit.fixing import build_fixed_file
        from npuprof.edit.preset_file import format_difference
        from npuprof.system import writing

        self._refuse_to_fix()
        before, after, number, outcome = self._fix_presets()
        done = f"{format_count(number, 'finding')} in {format_count(len(after), 'file')}" if number else "nothing"
        if self.diff:
            shown = "".join(format_difference(old.source, old.text, after[path].text) for path, old in before.items())
            return Answer(shown, (f"would fix {done}",), int(bool(number)))
        writing.write_wanted_files([build_fixed_file(path, old, after[path]) for path, old in before.items()])
        answer = self.answer_outcome(outcome, f"fixed {done}; ")
        wrote = (f"wrote {', '.join(old.source for old in before.values())}",) if before else ()
        return answer._replace(remarks=(*answer.remarks, *wrote)) if self.format == "text" else answer

    def _fix_presets(self) -> tuple[dict[str, Document], dict[str, Document], int, Outcome]:
        """Return documents before and after fixing by file path, the number of fixes, and the remaining findings.

        Writes nothing. Raises NpuprofError.
        """
        from npuprof.edit.fixing import fix_documents
        from npuprof.edit.preset_file import require_writable_store

        judged = self.open_store()
        home = judged.home
        if not isinstance(home, Folder) or not home.in_work_tree:
            what = f"{home.label} is read-only and cannot be fixed"
            raise build_error("NP920", what, "", "do it in a work tree of that repository")
        require_writable_store(home)
        outcome = self.judge(judged)
        before: dict[str, Document] = {}
        after: dict[str, Document] = {}
        number = 0
        for _ in range(_MOST_ROUNDS):
            changed = fix_documents(outcome.settled.findings, judged.find_file)
            if not changed:
                break
            before = {path: old for path, (old, _, _) in changed.items()} | before
            after |= {path: new for path, (_, new, _) in changed.items()}
            number += sum(count for *_, count in changed.values())
            judged = self.open_store()
            for new in after.values():
                judged.lay_over(new)
            outcome = self.judge(judged)
        return before, after, number, outcome

    def _refuse_to_fix(self) -> None:
        """Raise NpuprofError for presets that cannot be fixed, or options that exclude fixing."""
        what, hint = "", ""
        if self.rev is not None:
            what, hint = "a revision cannot be fixed", "omit --rev"
        elif self.write_baseline:
            what, hint = "a baseline records the remaining findings", "run --fix first, then write the baseline"
        elif "-" in self.specs:
            what, hint = "standard input cannot be fixed", "name the preset, or its file"
        if what:
            raise build_usage_error(what, hint)

    def _answer_matrix(self) -> Answer:
        if self.fix or self.diff:
            what = "--fix takes one platform at a time"
            raise build_usage_error(what, "name one release and one product")
        from npuprof.checks.support import build_support_matrix

        contexts = dict.fromkeys(_combine_contexts(self.canns, self.products, self.frameworks))
        names = list(dict.fromkeys(self.specs)) or self._open_for(Context()).home.names()
        matrix = build_support_matrix(names, tuple(contexts), self._open_for)
        settled = self.settle_findings(matrix.findings, matrix.unresolved, lambda _: False)
        matrix = matrix.keep_findings(settled.findings)
        shown = self.select_told(matrix.findings)
        code = self.decide_code(matrix.findings, matrix.unresolved)
        if self.format == "json":
            return Answer({"json": matrix.build_fields}, code=code)
        if self.format != "text":
            return self.answer_findings(shown, code, "")
        listed = format_findings(shown, self.coloured) if self.severity else ""
        hint = "" if self.severity else "; --severity warning lists the findings"
        where = f"{format_count(len(matrix.cells), 'preset')} on {format_count(len(matrix.contexts), 'platform')}"
        remark = f"{where}: {format_severity_counts(matrix.findings) or 'no findings'}{settled.remark}{hint}"
        return Answer(matrix.build_table(listed), (remark,), code)


def _combine_contexts(canns: Sequence[str], products: Sequence[str], frameworks: Sequence[str]) -> list[Context]:
    problems: list[Finding] = []
    contexts: list[Context] = []
    for cann in canns or (None,):
        for product in products or (None,):
            try:
                contexts.append(spec.build_context(cann, product, versions=frameworks))
            except NpuprofError as error:
                problems += [finding for finding in error.findings if finding not in problems]
    if problems:
        raise NpuprofError(problems)
    return contexts


def _build_empty_finding(home: ReadOnceStore) -> Finding:
    what = f"there is no preset in {home.label}, so nothing was checked"
    return Finding(
        "NP010", what, "", "npuprof init creates a store with samples, npuprof new NAME a preset; or name another store with --store"
    )


def _is_whole(error: NpuprofError) -> bool:
    """Return whether all settings of an unresolvable preset are known: the faults are only in its metadata."""
    return all(
        finding.code in ("NP006", "NP007", "NP009")
        and finding.origin is not None
        and finding.origin.path[:1] == ("profile",)
        and finding.origin.path[1:2] not in ((), ("extends",), ("unset",))
        for finding in error.findings
    )


def _find_strays(home: ReadOnceStore) -> Iterator[Finding]:
    """Yield a finding for each file of the store whose name no preset can have."""
    for stray in home.stray_files():
        yield build_bad_name_finding(stray)._replace(hint="rename the file", where=Place(home.cite_file(stray)))


def _find_inner_stores(home: ReadOnceStore) -> Iterator[Finding]:
    """Yield a finding for each folder below the store that is itself a store: its presets have two names."""
    reported: set[str] = set()
    is_outside = getattr(home, "is_outside", None)  # presets that npuprof.toml lists stay in their place
    for name in home.names():
        *folders, last = name.split("/")
        inner = (
            "/".join(folders[: folders.index("profiles") + 1]) if "profiles" in folders else "/".join(folders) if last == "npuprof" else ""
        )
        if not inner or inner in reported or (is_outside is not None and is_outside(name)):
            continue
        reported.add(inner)
        what = f"{home.cite_file(inner)} is a store inside a store"
        why = "Its presets have one name from here and another one from within, and both stores resolve, check and release them."
        hint = "move it out of this store, or its presets up into a folder of another name; presets of another team are taken by a source"
        yield Finding("NP017", what, why, hint, where=Place(home.cite_file(f"{name}.toml")))


def _find_edited_copies(judged: JudgedStore) -> Iterator[Finding]:
    """Yield a finding for each vendored file that differs from the lock, and for manual edits of the lock."""
    if isinstance(judged.home, Folder) and not judged.home.project_file:
        return
    with suppress(NpuprofError):  # reported when a preset is read
        yield from judged.workspace.lookups.find_edited_copies(judged.home)


def _find_kept_faults(judged: JudgedStore, findings: list[Finding]) -> Iterator[Finding]:
    """Yield the faults of vendored releases that were not reported with a dependent."""
    home = judged.home
    if isinstance(home, Folder) and home.keeps_releases:
        reported = {finding.message for finding in findings}
        yield from (finding for finding in judged.workspace.lookups.find_kept_faults(home) if finding.message not in reported)


def _find_doubles(home: ReadOnceStore) -> Iterator[Finding]:
    """Yield a finding for each preset whose name differs from another's only in letter case: some file systems ignore case."""
    first: dict[str, str] = {}
    for name in home.names():
        twin = first.setdefault(name.lower(), name)
        if twin != name:
            why = "On file systems without case, as on Windows and macOS, a clone contains only one of the two."
            where = Place(home.cite_file(f"{name}.toml"))
            yield build_finding(
                "NP016", f"the presets {twin} and {name} differ in case only", why, "rename one of them", where=where, profiles=(name,)
            )


VERB = Check
