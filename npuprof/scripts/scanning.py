"""Scripts judged file by file, for the verbs that report them one by one or all together; one broken file never stops the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from npuprof.model import Context, Finding, NpuprofError, Place
from npuprof.report.isolating import isolate_faults
from npuprof.scripts.blocks import build_block_checker
from npuprof.scripts.files import find_script_files, read_script_files
from npuprof.scripts.ignoring import sift_script_findings
from npuprof.scripts.import_resolution import open_modules, set_callers_apart
from npuprof.scripts.lint import check_script
from npuprof.scripts.lint.shared import open_shared, read_shared_script
from npuprof.scripts.reading import place_settings, read_script
from npuprof.scripts.reading.files import may_be_called
from npuprof.scripts.sidecars import attach_contents, check_sidecars, find_sidecars
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.policy import TeamRule
    from npuprof.scripts.places import PartPlaces
    from npuprof.scripts.python.imports import Modules
    from npuprof.scripts.reading import ImportedFile
    from npuprof.scripts.summary.survey import Survey


class Scanned:
    """What came of it: the findings, how many files were looked at, how many of them could not be read, what is accepted.

    ``faults`` are those of the findings that say where npuprof itself failed. Of the files that cannot be read otherwise only those
    that were named count as unread.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.faults: list[Finding] = []
        self.seen: set[str] = set()
        self.files = 0
        self.unread = 0
        self.accepted = 0


def scan_scripts(paths: list[str], context: Context, store: str | None, survey: Survey | None = None) -> Scanned:
    """Return what is wrong with the scripts below the paths; a survey is given what each of them holds. Raises NpuprofError."""
    result = Scanned()
    named = set(paths)
    folders = [path for path in paths if os.path.isdir(path)]
    modules = open_modules(folders)
    judge = _Judge(context, _load_team_rules(store), folders, modules, build_block_checker(store))
    surveyed = _Surveyed(folders) if survey is not None else None
    pages = _Pages()
    faults: list[Finding] = []
    for file, data in read_script_files(list(find_script_files(paths, result.findings, with_blocks=False))):
        result.files += not isinstance(data, Finding)
        result.seen.add(os.path.abspath(file))
        unread = holds = False
        with isolate_faults(file, faults):
            unread, holds = _scan_script(file, data, file in named, judge, pages, surveyed)
        result.unread += unread and file in named
        if survey is not None:
            survey.unread += unread and not holds  # what was read with a remark was read
    told, result.accepted = pages.sift_findings(modules.read, faults)
    if survey is not None and surveyed is not None:
        surveyed.count_scripts(survey, faults)
        survey.files, survey.unread = result.files, survey.unread + len({one.path for one in faults})
    result.faults = list(dict.fromkeys(faults))
    result.unread += len({one.path for one in faults})
    result.findings += [*told, *result.faults]
    return result


def _scan_script(
    file: str, data: bytes | Finding, named: bool, judge: _Judge, pages: _Pages, surveyed: _Surveyed | None
) -> tuple[bool, bool]:
    """Add what a file sets and what is wrong with it; return whether some of it could not be read, and whether it sets anything."""
    if isinstance(data, Finding):
        pages.add_finding(data)
        return True, False
    imported = read_shared_script(file, data, named, judge.modules)
    if imported is None:
        faults = read_script(file, data).problems if named else ()
        pages.add_page(file, b"", None, faults)
        return any(one.severity == "warning" for one in faults), False
    found = judge.judge_script(imported, data)
    if surveyed is not None:
        surveyed.add_script(imported)
    pages.add_page(file, data, imported.places, found)
    return any(one.code == "NP801" and one.severity == "warning" for one in found), bool(imported.found)


class _Judge:
    """What is wrong with scripts and with the files that they name, which are judged once."""

    def __init__(
        self,
        context: Context,
        team: list[TeamRule],
        folders: list[str],
        modules: Modules,
        check_blocks: Callable[[str, bytes], list[Finding]],
    ) -> None:
        self._context = context
        self._team = team
        self._folders = folders
        self.modules = modules
        self._check_blocks = check_blocks
        self._judged: set[tuple[Place | None, str]] = set()

    def judge_script(self, imported: ImportedFile, data: bytes) -> list[Finding]:
        """Return what is wrong with a script, its blocks and the files that it names."""
        sidecars = find_sidecars(imported, self._folders)
        whole = attach_contents(imported, sidecars)
        found = check_script(whole, self._context, self._team)
        if any(one.code.startswith("NP3") or not one.code.startswith("NP") for one in found):  # what is not set may be set elsewhere
            opened = open_shared(whole, self.modules)
            found = found if opened is whole else check_script(opened, self._context, self._team)
        beside = [one for one in check_sidecars(sidecars, self._context) if (one.where, one.message) not in self._judged]
        self._judged |= {(one.where, one.message) for one in beside}
        return [*found, *beside, *self._check_blocks(imported.file, data)]


class _Page(NamedTuple):
    """The findings of one file: its path as it was named, its text where that may accept some, where the places of its parts are."""

    file: str
    data: bytes
    places: PartPlaces | None
    findings: list[Finding]


class _Pages:
    """The findings of a run, file by file in the order of reading; a script may bring findings of other files that it calls."""

    def __init__(self) -> None:
        self._pages: dict[str, _Page] = {}
        self._others: list[Finding] = []

    def add_finding(self, finding: Finding) -> None:
        """Add what is wrong with a file that was not read."""
        assert finding.where is not None
        self.add_page(finding.where.file, b"", None, [finding])

    def add_page(self, file: str, data: bytes, places: PartPlaces | None, findings: Iterable[Finding]) -> None:
        """Add a file with what it told."""
        page = _Page(file, data if b"npuprof:" in data or places is not None else b"", places, [])
        self._pages.setdefault(os.path.normpath(file), page)
        for finding in findings:
            of_file = finding.where is None or finding.where.file == file or not may_be_called(finding.where.file)
            (page.findings if of_file else self._others).append(finding)

    def sift_findings(self, read: Callable[[str], bytes], faults: list[Finding]) -> tuple[list[Finding], int]:
        """Return the findings that are told, each once, and how many the remarks of their files accept."""
        brought: set[str] = set()
        for finding in self._others:
            assert finding.where is not None
            path = os.path.normpath(finding.where.file)
            if path not in self._pages:
                self._pages[path] = _Page(finding.where.file, read(finding.where.file), None, [])
                brought.add(path)
            page = self._pages[path]
            page.findings.append(finding._replace(where=finding.where._replace(file=page.file)))
        told: list[Finding] = []
        accepted = 0
        for path, page in self._pages.items():
            with isolate_faults(page.file, faults):
                kept, number = _sift_page(page, path in brought)
                told += kept
                accepted += number
        return told, accepted


def _sift_page(page: _Page, brought: bool) -> tuple[list[Finding], int]:
    """Return the findings of a file to report, and how many its comments accept; ``brought`` is a file that only another script names."""
    if brought:
        page.findings.sort(key=lambda one: (one.line, one.column, one.code))
    findings = list({(one.code, one.where, one.key, one.message): one for one in reversed(page.findings)}.values())[::-1]
    text = page.places.text.encode(errors="replace") if page.places is not None else page.data
    sifted = sift_script_findings(page.file, text, findings)
    kept = [one for one in sifted.told if one in findings] if brought else sifted.told  # its own remarks were not asked for
    return [page.places.place_finding(one) for one in kept] if page.places is not None else kept, len(sifted.accepted)


class _Surveyed:
    """What scripts set together with the helpers of their tree."""

    def __init__(self, folders: list[str]) -> None:
        self._folders = folders
        self._read: list[ImportedFile] = []

    def add_script(self, imported: ImportedFile) -> None:
        """Add a script that was read with what it imports."""
        self._read.append(place_settings(imported))

    def count_scripts(self, survey: Survey, faults: list[Finding]) -> None:
        """Count what the scripts set; a helper's settings are those of the scripts that call it."""
        take_out, _ = set_callers_apart(self._read)
        for imported in self._read:
            with isolate_faults(imported.file, faults):
                survey.add_script(take_out(imported), self._folders)


def _load_team_rules(given: str | None) -> list[TeamRule]:
    """Return the rules of the team that bind all its presets, and so its scripts; none where there is no store.

    Raises NpuprofError where npuprof.toml cannot be understood.
    """
    try:
        home = spec.Workspace(given).listed_store
    except NpuprofError as error:
        if given or any(finding.code != "NP010" for finding in error.findings):
            raise
        return []
    policy = home.load_policy()
    return [rule for rule in policy.rules if not rule.presets] if policy else []
