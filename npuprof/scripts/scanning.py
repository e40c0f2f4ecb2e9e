"""Scans scripts file by file; a broken file never stops the run."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from npuprof.catalog.execution import list_misspelt_names
from npuprof.document.policy import TeamRule
from npuprof.model import Context, Finding, NpuprofError, Place
from npuprof.report.coverage import Coverage, Unjudged
from npuprof.report.isolating import isolate_faults
from npuprof.report.output import track_items
from npuprof.scripts.blocks import Injector, check_file_blocks
from npuprof.scripts.file_discovery import find_script_files, read_script_file
from npuprof.scripts.ignoring import sift_script_findings
from npuprof.scripts.import_resolution import open_modules, set_callers_apart
from npuprof.scripts.lint import ONLY_READ, RECOMMENDED, check_script
from npuprof.scripts.lint.program_faults import judge_programs
from npuprof.scripts.lint.yaml_files import judge_yaml
from npuprof.scripts.named_files import Sidecar, attach_contents, check_sidecars, find_sidecars
from npuprof.scripts.pinned_releases import FilePins, Pin, PinFinder
from npuprof.scripts.programs.finding import Programs
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading import (
    ImportedFile,
    may_call_settings,
    may_hold_settings,
    place_settings,
    read_script,
)
from npuprof.scripts.reading.file_kinds import is_script_candidate
from npuprof.scripts.reading.shell_scripts import import_shell_script
from npuprof.scripts.reading.training_launches import YAML_ENDINGS
from npuprof.scripts.reading.variable_files import set_others_apart
from npuprof.scripts.script_coverage import CoverageCount, list_unjudged
from npuprof.scripts.script_records import PartLocations
from npuprof.scripts.summary.report import is_in_tests
from npuprof.scripts.summary.setting_counts import Survey
from npuprof.store import spec
from npuprof.system.processes import map_in_processes

#: Reads of variables in a shell and in Python, and other uses of names: a value, a default.
_READ = re.compile(rb"(\$\{?|getenv\(\W|environ(?:\.get\(|\[)\W)([A-Za-z_]\w*)\b(?!\W?\]\s*=[^=])")
_NAMED = re.compile(rb"(?<![\w$])(?<!\$\{)(?<!\$\{[#!])(\w+)|\{(\w+):?[-=]")
#: The commands of a job at the top of a YAML file, as of SkyPilot or MosaicML.
_COMMANDS = re.compile(r"^(?:run|setup|command): *\|[-+]?\n((?:[ \t]+.*\n|\n)+)", re.MULTILINE)
#: As many of them are read: each is placed below the lines above it.
_MOST_PARTS = 10
#: The maximum number of files per process and batch: files of a folder share imports.
_BATCH = 100
#: The number of files whose imports are indexed first.
_SAMPLE = 40


class Scanned:
    """The result of a scan: findings, and the numbers of files, unread files and accepted findings.

    ``folders`` are the scanned folders. ``faults`` are the findings about internal errors. Of other
    unreadable files, only named ones count as unread. ``releases`` are the pins of files with
    settings, with their numbers of files.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = folders
        self.findings: list[Finding] = []
        self.faults: list[Finding] = []
        self.seen: set[str] = set()
        self.files = 0
        self.unread = 0
        self.accepted = 0
        self.coverage = Coverage()
        self.releases: Counter[Pin] = Counter()


def scan_scripts(
    paths: list[str],
    context: Context,
    store: str | None,
    survey: Survey | None,
    with_docs: bool = False,
    programs: Sequence[str] = (),
    as_folder: bool = False,
) -> Scanned:
    """Return the findings about the scripts below paths; their content is also counted in a survey.

    ``programs`` are files and folders outside with the programs that scripts start. With
    ``as_folder``, files are treated like those of a folder.

    Raises NpuprofError.
    """
    folders = [path for path in paths if os.path.isdir(path)]
    result = Scanned(folders)
    named = set[str]() if as_folder else set(paths)
    scanner = _Scanner(named, folders, context, store, programs)
    files = list(find_script_files(paths, result.findings, with_blocks=False, with_docs=with_docs))
    if as_folder:
        files = [file for file in files if is_script_candidate(file, with_docs=with_docs)]
    pages, scans, count = _Pages(), list[_Scan](), CoverageCount()
    for file, scan in zip(track_items(files, "files"), scanner.scan_files(files), strict=True):
        result.seen.add(os.path.abspath(file))
        result.files += not scan.is_missing
        result.unread += scan.is_unread and file in named
        result.faults += scan.faults
        if not scan.faults:
            pages.add_page(scan)
        if scan.imported is not None:
            count.add_file(scan.imported)
        count.add_unjudged(scan.unjudged)
        result.releases.update(scan.pins)
        scans += [scan] if survey is not None else []
    result.coverage = count.coverage
    findings, result.accepted = pages.sift_findings(scanner.modules.read, result.faults)
    first = next((finding for finding in findings if finding.code == RECOMMENDED), None)
    findings = [each for each in findings if each.code != RECOMMENDED or each is first]
    findings = _exclude_own_names(findings, files)
    if survey is not None:
        _count_scripts(survey, scans, result, folders)
    result.faults = list(dict.fromkeys(result.faults))
    result.unread += len({fault.path for fault in result.faults})
    result.findings += [*findings, *result.faults]
    # fixtures of tests are often wrong on purpose
    result.findings.sort(key=lambda finding: is_in_tests(finding.path or "", folders))
    return result


def _exclude_own_names(findings: list[Finding], files: list[str]) -> list[Finding]:
    """Return findings without those about names that only the scanned files themselves use.

    One file sets such a name and another one reads it. What a shell reads it may pass on, so a
    recorded misspelling is such a name only if Python reads it.
    """
    names = {_encode_name(finding) for finding in findings if finding.code == "NP206"}
    read, named = set[bytes](), set[bytes]()
    for data in map(partial(read_script_file, among_others=True), files if names else ()):
        if isinstance(data, Finding) or not any(name in data for name in names):
            continue
        named.update(*_NAMED.findall(data))
        for how, name in _READ.findall(data):
            if how[:1] != b"$" or name.decode() not in list_misspelt_names():
                read.add(name)
    return [
        finding
        for finding in findings
        if finding.code != "NP206"
        or _encode_name(finding) not in (named if finding.why.startswith(ONLY_READ) else read)
    ]


def _encode_name(finding: Finding) -> bytes:
    return finding.key.removeprefix("env.").encode()


class _Scan(NamedTuple):
    """The result of one file: its findings and settings.

    ``text`` is set if it may accept findings, ``part_locations`` if it has parts.

    ``is_missing`` files could not be opened, ``is_unread`` ones not be read completely. ``faults``
    are internal errors. ``unjudged`` surfaces were seen and not judged.
    """

    file: str
    data: bytes = b""
    places: PartLocations | None = None
    findings: list[Finding] = []
    imported: ImportedFile | None = None
    is_missing: bool = False
    is_unread: bool = False
    faults: Sequence[Finding] = ()
    pins: tuple[Pin, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()


class _Scanner:
    """Reads and checks files one by one, with their called functions."""

    def __init__(
        self,
        named: set[str],
        folders: list[str],
        context: Context,
        store: str | None,
        programs: Sequence[str],
    ) -> None:
        self._context = context
        self._team = _load_team_rules(store)
        self._named = named
        self._folders = folders
        self.modules = open_modules(folders)
        self._programs = Programs(folders, programs, self.modules.loaded)
        self._pins = PinFinder(folders, context)
        # blocks are only compared, so exports that need trust are no obstacle
        self._injector = Injector(store, trusting=True)

    def scan_files(self, files: list[str]) -> Iterator[_Scan]:
        """Yield the result of each file; many files are distributed to processes."""
        size = min(len(files) // 64 + 8, _BATCH)
        batches = [files[start : start + size] for start in range(0, len(files), size)]
        for scans in map_in_processes(
            lambda batch: [self._scan_file(file, len(files) > 1) for file in batch],
            batches,
            partial(self._index_imported, files[:: len(files) // _SAMPLE + 1]),
        ):
            yield from scans

    def _index_imported(self, files: list[str]) -> None:
        """Find out what modules supply to some files: most others import the same."""
        for file in files:
            with isolate_faults(file, []):
                may_call_settings(file, self.modules.read(file), self.modules)

    def _scan_file(self, file: str, among_others: bool) -> _Scan:
        data = read_script_file(file, among_others)
        if isinstance(data, Finding):
            return _Scan(file, findings=[data], is_missing=True, is_unread=True)
        faults: list[Finding] = []
        scan = _Scan(file)
        with isolate_faults(file, faults):
            is_named = file in self._named
            if (
                is_named
                or may_hold_settings(file, data)
                or may_call_settings(file, data, self.modules)
            ):
                scan = self._judge_script(read_script(file, data, is_named, self.modules), data)
            if file.endswith(YAML_ENDINGS):
                # the settings of the file may be known
                known = {(each.code, each.where) for each in scan.findings}
                added = [*judge_yaml(file, data, self._programs)]
                text = data.decode(errors="replace") if b": |" in data else ""
                for match in islice(_COMMANDS.finditer(text), _MOST_PARTS):
                    placed = "\n" * text.count("\n", 0, match.start(1)) + match[1]
                    script = import_shell_script(file, placed, self.modules, is_part=True)
                    added += self._judge_script(set_others_apart(script), data).findings
                fresh = [each for each in added if (each.code, each.where) not in known]
                scan = scan._replace(findings=[*scan.findings, *fresh])
        unjudged = tuple(list_unjudged(scan.imported or ImportedFile(file), data))
        return scan._replace(faults=faults, unjudged=unjudged)

    def _judge_script(self, imported: ImportedFile, data: bytes) -> _Scan:
        """Return the findings about a script, its blocks and the files that it names."""
        sidecars = find_sidecars(imported, self._folders)
        script = attach_contents(imported, sidecars)
        pinned = self._pins.find_pins(imported)
        findings = self._check_pinned(script, sidecars, pinned)
        findings = judge_programs(script, findings, self._programs)
        findings += [*pinned.notes, *check_file_blocks(self._injector, imported.file, data)]
        text = data if b"npuprof:" in data or imported.part_locations is not None else b""
        is_unread = any(
            finding.code == "NP801" and finding.severity == "warning" for finding in findings
        )
        return _Scan(
            imported.file,
            text,
            imported.part_locations,
            findings,
            imported,
            is_unread=is_unread,
            pins=pinned.place_pins(imported),
        )

    def _check_pinned(
        self, script: ImportedFile, sidecars: Sequence[Sidecar], pinned: FilePins
    ) -> list[Finding]:
        """Return the findings for the pinned releases; those that depend on them name them."""
        findings = self._check(script, sidecars, pinned.narrow_context(self._context))
        if not findings or not pinned.pins:
            return findings
        others = self._check(script, sidecars, self._context)
        return pinned.explain_findings(script, findings, others)

    def _check(
        self, script: ImportedFile, sidecars: Sequence[Sidecar], context: Context
    ) -> list[Finding]:
        """Return the findings about a script and the files that it names, in a context."""
        findings = check_script(script, context, self._team)
        # rules between settings, and those of the team, may miss settings of other files
        has_rule_findings = any(
            finding.code.startswith("NP3") or not finding.code.startswith("NP")
            for finding in findings
        )
        if has_rule_findings:
            opened = _open_shared(script, self.modules)
            if opened is not script:
                findings = check_script(opened, context, self._team)
        return [*findings, *check_sidecars(sidecars, context)]


def _open_shared(imported: ImportedFile, modules: Modules) -> ImportedFile:
    """Return the content of a file.

    If another file names one of its entries, missing settings may be set there.

    Called only if there are findings, since all files of the tree are searched.
    """
    shared = {
        site
        for site in imported.sites
        if site.closed and site.surface == "session" and site.scope.startswith("<module>:")
        if site.variable and modules.is_named_elsewhere(imported.file, site.variable)
    }
    sites = tuple(
        site._replace(closed=site.closed and site not in shared) for site in imported.sites
    )
    return imported._replace(sites=sites) if shared else imported


class _Pages:
    """The findings of a run, by file in reading order.

    A script may add findings of called files.
    """

    def __init__(self) -> None:
        self._pages: dict[str, _Scan] = {}
        self._others: list[tuple[Place, Finding]] = []

    def add_page(self, page: _Scan) -> None:
        """Add the findings of a file, and those that it has about other files."""
        own: list[Finding] = []
        self._pages.setdefault(
            os.path.normpath(page.file), page._replace(findings=own, imported=None)
        )
        for finding in page.findings:
            if finding.where is None or finding.where.file == page.file:
                own.append(finding)
            else:
                self._others.append((finding.where, finding))

    def sift_findings(
        self, read: Callable[[str], bytes], faults: list[Finding]
    ) -> tuple[list[Finding], int]:
        """Return the findings to report, without duplicates, and the number of accepted ones."""
        only_called = set()
        for where, finding in self._others:
            path = os.path.normpath(where.file)
            if path not in self._pages:
                self._pages[path] = _Scan(where.file, read(where.file), None, [])
                only_called.add(path)
            page = self._pages[path]
            page.findings.append(finding._replace(where=where._replace(file=page.file)))
        reported = []
        accepted = 0
        for path, page in self._pages.items():
            with isolate_faults(page.file, faults):
                findings, number = _sift_page(page, path in only_called)
                reported += findings
                accepted += number
        return reported, accepted


def _sift_page(page: _Scan, is_only_called: bool) -> tuple[list[Finding], int]:
    """Return the findings of a file to report, and the number accepted by its comments.

    ``is_only_called`` if the file was not requested, but is called by a requested script.
    """
    # callers, parsers and slips added theirs behind the others
    page.findings.sort(key=attrgetter("line", "column", "code"))
    # reversed: of equal findings, the first one is kept, in the position of the last
    unique = {
        (finding.code, finding.where, finding.key, finding.message): finding
        for finding in reversed(page.findings)
    }
    findings = list(unique.values())[::-1]
    text = page.places.text.encode(errors="replace") if page.places is not None else page.data
    sifted, accepted = sift_script_findings(page.file, text, findings)
    if is_only_called:  # findings about its comments were not requested
        sifted = [finding for finding in sifted if finding in findings]
    if page.places is not None:  # a notebook
        sifted = [page.places.locate_finding(finding) for finding in sifted]
    return sifted, len(accepted)


def _count_scripts(survey: Survey, scans: list[_Scan], result: Scanned, folders: list[str]) -> None:
    """Count the settings of scripts; a helper's settings belong to its callers."""
    scripts = [place_settings(scan.imported) for scan in scans if scan.imported is not None]
    exclude_passed, _ = set_callers_apart(scripts)
    for imported in scripts:
        with isolate_faults(imported.file, result.faults):
            survey.add_script(exclude_passed(imported), folders)
    # with settings it was read
    unread = sum(
        scan.is_unread and not (scan.imported and scan.imported.settings) for scan in scans
    )
    survey.files = result.files
    survey.folders = folders
    survey.releases = result.releases
    survey.unread = unread + len({fault.path for fault in result.faults})


def _load_team_rules(store: str | None) -> list[TeamRule]:
    """Return the team rules that cover all presets, and therefore scripts; empty without a store.

    Raises NpuprofError if npuprof.toml is invalid.
    """
    try:
        workspace = spec.Workspace(store)
        _ = workspace.listed_store
    except NpuprofError as error:
        if store or any(finding.code != "NP010" for finding in error.findings):
            raise
        return []
    policy = workspace.load_policy()
    return [rule for rule in policy.rules if not rule.presets] if policy else []
