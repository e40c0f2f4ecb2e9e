"""``scan``: lint scripts in place, file by file; one broken file never stops the run."""

from __future__ import annotations

import os
from collections.abc import Iterator

from npuprof.commands.findings import FORMATS, JudgingVerb, describe_accepted
from npuprof.commands.parameters import (
    BASELINE,
    CANN,
    COLOR,
    IGNORE,
    OUTPUT,
    PRODUCT,
    READ_KINDS,
    SELECT,
    SEVERITY,
    STORE,
    STRICT,
    WRITE_BASELINE,
    formats,
)
from npuprof.commands.verb import arguments
from npuprof.model import Finding, NpuprofError, Place
from npuprof.report import output
from npuprof.report.answer import Answer
from npuprof.report.findings import format_severity_counts
from npuprof.report.text import format_count
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.commands.selection import Mark
    from npuprof.document.policy import TeamRule


class Scan(JudgingVerb):
    """Lint scripts in place (exit 1 if there are errors).

    Misspelt keys, wrong fields, bad values, conflicts, what a release does not know, stale blocks.
    """

    group = "scripts"
    prose = True

    paths: list[str] = arguments("PATH...", f"Files and folders, here if none is named; read are {READ_KINDS}.")
    cann: str | None = CANN
    product: str | None = PRODUCT
    format: str = formats(*FORMATS)
    severity: str | None = SEVERITY
    strict: bool = STRICT
    select: list[str] = SELECT
    ignore: list[str] = IGNORE
    baseline: str | None = BASELINE
    write_baseline: bool = WRITE_BASELINE
    store: str | None = STORE
    output: str | None = OUTPUT
    color: str = COLOR

    def run(self) -> Answer:
        """Return what is wrong. Exit 2 where a file named could not be read, 1 where there are errors, 0 otherwise."""
        from npuprof.scripts.blocks import build_block_checker
        from npuprof.scripts.ignoring import sift_script_findings
        from npuprof.scripts.lint import check_script
        from npuprof.scripts.reading import may_hold_settings, read_script
        from npuprof.scripts.reading.files import find_file_faults
        from npuprof.scripts.sidecars import attach_contents, check_sidecars, find_sidecars

        self.refuse_odd_choice()
        context = spec.build_context(self.cann, self.product)
        check_blocks = build_block_checker(self.store)
        team = _load_team_rules(self.store)
        named = set(self.paths)
        folders = [path for path in self.paths or ["."] if os.path.isdir(path)]
        findings: list[Finding] = []
        seen: set[str] = set()
        judged: set[tuple[Place | None, str]] = set()
        unread = count = accepted = 0
        for file, data in _read_scripts(self.paths or ["."], findings):
            count += not isinstance(data, Finding)
            seen.add(os.path.abspath(file))
            if isinstance(data, Finding):
                findings.append(data)
                unread += file in named
            elif may_hold_settings(file, data):
                imported = read_script(file, data, file in named)
                sidecars = find_sidecars(imported, folders)
                imported = attach_contents(imported, sidecars)
                found = [*check_script(imported, context, team), *check_blocks(file, data)]
                beside = [one for one in check_sidecars(sidecars, context) if (one.where, one.message) not in judged]
                judged |= {(one.where, one.message) for one in beside}
                text = imported.places.text.encode(errors="replace") if imported.places is not None else data
                sifted = sift_script_findings(file, text, [*found, *beside])
                findings += imported.places.place_findings(sifted.told) if imported.places is not None else sifted.told
                accepted += len(sifted.accepted)
                unread += file in named and any(one.code == "NP801" and one.severity == "warning" for one in found)
            elif file in named:
                faults = find_file_faults(file, data)
                findings += faults
                unread += any(one.severity == "warning" for one in faults)
        findings += [_build_preset_finding(path) for path in self.paths if path.endswith(".toml") and os.path.isfile(path)]

        def is_judged(mark: Mark) -> bool:
            path = os.path.join(os.path.dirname(self.baseline or ""), mark.path)
            return os.path.abspath(path) in seen or not os.path.lexists(path)

        findings, of_baseline = self.settle_findings(findings, unread, is_judged)
        told = self.select_told(findings)
        hidden = len(findings) - len(told)
        more = f" ({hidden} more with --severity info)" if hidden else ""
        found_now = f"{format_severity_counts(told) or 'nothing found'}{describe_accepted(accepted)}"
        remark = f"{format_count(count, 'file')} scanned: {found_now}{of_baseline}{more}"
        return self.answer_findings(told, self.decide_code(findings, unread), remark, accepted)


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


def _build_preset_finding(path: str) -> Finding:
    what = f"{path} is no script, and was not looked at"
    return Finding("NP801", what, "scan reads scripts.", f"for a preset: npuprof check {path}", where=Place(path))


def _read_scripts(paths: list[str], problems: list[Finding]) -> Iterator[tuple[str, bytes | Finding]]:
    """Yield each file with its bytes, or with the reason why it cannot be read; say how far it is on a terminal."""
    from npuprof.report.terminal import track_items
    from npuprof.scripts.files import find_script_files

    for file in track_items(list(find_script_files(paths, problems, with_blocks=False)), "files"):
        try:
            yield file, output.read_plain_file(file)
        except OSError as error:
            what, why = f"cannot read the file: {output.describe_os_error(error, file)}", "The other files were looked at all the same."
            yield file, Finding("NP801", what, why, "", where=Place(file))


VERB = Scan
