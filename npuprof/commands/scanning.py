"""Scripts judged file by file, for the verbs that tell of them one by one or all together; one broken file never stops the run."""

from __future__ import annotations

import os

from npuprof.model import Context, Finding, NpuprofError, Place
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.policy import TeamRule
    from npuprof.scripts.reading import ImportedFile
    from npuprof.scripts.summary.gathering import Survey


class Scanned:
    """What came of it: the findings, how many files were looked at, how many that were named could not be read, what is accepted."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.seen: set[str] = set()
        self.files = 0
        self.unread = 0
        self.accepted = 0


def scan_scripts(paths: list[str], context: Context, store: str | None, survey: Survey | None = None) -> Scanned:
    """Return what is wrong with the scripts below the paths; a survey is given what each of them holds. Raises NpuprofError."""
    from npuprof.scripts.blocks import build_block_checker
    from npuprof.scripts.files import find_script_files, read_script_files
    from npuprof.scripts.ignoring import sift_script_findings
    from npuprof.scripts.lint import check_script
    from npuprof.scripts.reading import may_hold_settings, read_script
    from npuprof.scripts.reading.files import find_file_faults
    from npuprof.scripts.sidecars import attach_contents, check_sidecars, find_sidecars

    check_blocks = build_block_checker(store)
    team = _load_team_rules(store)
    named = set(paths)
    folders = [path for path in paths if os.path.isdir(path)]
    result = Scanned()
    judged: set[tuple[Place | None, str]] = set()
    surveyed = _Surveyed(folders) if survey is not None else None
    for file, data in read_script_files(list(find_script_files(paths, result.findings, with_blocks=False))):
        result.files += not isinstance(data, Finding)
        result.seen.add(os.path.abspath(file))
        unread = holds = False
        plain: ImportedFile | None = None
        if isinstance(data, Finding):
            result.findings.append(data)
            unread = True
        elif may_hold_settings(file, data):
            plain = imported = read_script(file, data, file in named)
            holds = bool(imported.found)
            sidecars = find_sidecars(imported, folders)
            imported = attach_contents(imported, sidecars)
            found = [*check_script(imported, context, team), *check_blocks(file, data)]
            beside = [one for one in check_sidecars(sidecars, context) if (one.where, one.message) not in judged]
            judged |= {(one.where, one.message) for one in beside}
            text = imported.places.text.encode(errors="replace") if imported.places is not None else data
            sifted = sift_script_findings(file, text, [*found, *beside])
            result.findings += imported.places.place_findings(sifted.told) if imported.places is not None else sifted.told
            result.accepted += len(sifted.accepted)
            unread = any(one.code == "NP801" and one.severity == "warning" for one in found)
        elif file in named:
            faults = find_file_faults(file, data)
            result.findings += faults
            unread = any(one.severity == "warning" for one in faults)
        if surveyed is not None and not isinstance(data, Finding):
            surveyed.read_followed(file, data, file in named, plain)
        result.unread += unread and file in named
        if survey is not None:
            survey.unread += unread and not holds  # what was read with a remark was read
    if survey is not None and surveyed is not None:
        survey.files = result.files
        surveyed.count_scripts(survey)
    return result


class _Surveyed:
    """What scripts set together with the helpers of their tree, which their findings do not look at: those are of one file each."""

    def __init__(self, folders: list[str]) -> None:
        from npuprof.scripts.following import open_modules

        self._folders = folders
        self._modules = open_modules(folders)
        self._read: list[ImportedFile] = []

    def read_followed(self, file: str, data: bytes, named: bool, plain: ImportedFile | None) -> None:
        """Read one script; ``plain`` is what it holds by itself, which is all where it imports nothing of its tree."""
        from npuprof.scripts.reading import import_script, may_call_settings, may_hold_settings, place_settings

        if plain is not None and not self._modules.list_imported(file, data):
            self._read.append(place_settings(plain))
        elif may_hold_settings(file, data) or may_call_settings(file, data, self._modules):
            self._read.append(import_script(file, data, named, self._modules))

    def count_scripts(self, survey: Survey) -> None:
        """Count what the scripts set; a helper's settings are those of the scripts that call it."""
        from npuprof.scripts.following import set_callers_apart

        take_out, _ = set_callers_apart(self._read)
        for imported in self._read:
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
