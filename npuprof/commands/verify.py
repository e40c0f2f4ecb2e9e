"""``verify``: compare a run with a preset by its logs, or released versions with their tags."""

from __future__ import annotations

from npuprof.commands.framework import arguments, flag
from npuprof.commands.framework.parameters import ContextVerb, PrintingVerb, formats
from npuprof.commands.resolving import open_workspace
from npuprof.history.verification import (
    WHOLE_STORE,
    VerifiedVersion,
    Verifier,
    find_edits,
    requires_signatures,
)
from npuprof.model import Fields, Finding, build_usage_error, did_you_mean, raise_any
from npuprof.report import Answer
from npuprof.report.findings import build_finding_dict, format_findings
from npuprof.report.tables import Table
from npuprof.report.text import format_count
from npuprof.runs.evidence.evidence_files import read_logs
from npuprof.runs.proving import answer_proof
from npuprof.store import spec

_SAID = {"holds": "matches", "fails": "does not match", "unknown": "unknown"}


class Verify(PrintingVerb, ContextVerb):
    """Verify a run by its logs, or released versions.

    EVIDENCE is a plog file or folder, the standard error of TensorFlow 2 or torch_npu, a graph dump
    (.pbtxt), or - for stdin. It can also be a pipe that the shell opens: <(zcat run.log.gz). For
    each process and setting, npuprof reports whether it was effective, changed, set too late,
    absent or undetermined. Exits with 1 if a setting was not effective or a tag does not match, and
    with 2 if this cannot be determined. With --signatures, git verify-tag runs the signature
    program of your git configuration.
    """

    group = "runs"
    prose = True

    usage_hint = "npuprof verify bert-training ~/ascend/log, or npuprof verify --tags"

    names = arguments(
        "SPEC EVIDENCE...", "Preset and logs of a run; with --tags, presets [default: all]"
    )
    tags = flag("--tags", text="Verify the tags of released versions; @ is the store itself")
    signatures = flag("--signatures", text="Check the signature of each tag with git (with --tags)")
    format = formats("text", "json", "github")

    def run(self) -> Answer:
        """Return the status of each version, or of each setting of a run.

        Exit 1 if a version does not match or a setting was not effective, 2 if that cannot be
        determined, else 0.
        """
        if not self.tags:
            if self.signatures:
                what = "--signatures is for released versions, and without --tags a run is verified"
                raise build_usage_error(what, "npuprof verify --tags --signatures")
            return self._prove_run()
        self._refuse_odd_flags()
        workspace = spec.Workspace(self.store)
        _refuse_unknown_names(workspace, self.names)
        verifier = Verifier(workspace, self.signatures)
        versions = list(verifier.verify_tags(self.names))
        states = [version.status for version in versions]
        notes = [
            f"{format_count(len(versions), 'released version')} verified: {_count_states(states)}"
            if versions
            else "nothing is released yet"
        ]
        if versions and not self.signatures and requires_signatures(verifier.repository):
            notes.append(
                "signatures were not looked at, though git's configuration asks for them: "
                "--signatures has git check them"
            )
        notes += [
            f"the files here now are not verified by it: {finding.message}"
            for finding in find_edits(workspace.store)[:1]
        ]
        return Answer(
            {
                "text": lambda: self._build_table(versions),
                "json": lambda: {
                    "schema": "npuprof.verified/1",
                    "signatures": verifier.signatures,
                    "versions": [_build_fields(version) for version in versions],
                },
            },
            tuple(notes),
            1 if "fails" in states else 2 if "unknown" in states else 0,
        )

    def _prove_run(self) -> Answer:
        preset, *evidence = self.names or [""]
        if not evidence:
            what = (
                f"verify has no evidence to hold against {preset}"
                if preset
                else "verify has nothing to verify"
            )
            tags = f"npuprof verify --tags {preset}".rstrip()
            hint = (
                f"name the logs of a run: npuprof verify {preset or 'SPEC'} ~/ascend/log; {tags} "
                "verifies released versions"
            )
            raise build_usage_error(what, hint)
        if [preset, *evidence].count("-") > 1:
            raise build_usage_error(
                "standard input can be read once only", "name a file for one of the two"
            )
        config = open_workspace(self.store, self.build_context()).resolve_spec(preset)
        return answer_proof(
            config,
            lambda: read_logs(evidence, True, of_torch=not config.options, with_unknown=True),
        )

    def _refuse_odd_flags(self) -> None:
        odd = {
            "--cann": self.cann,
            "--product": self.product,
            "--framework": self.frameworks,
            "--axis": self.axes,
            "--format github": self.format == "github",
        }
        if flags := [name for name, value in odd.items() if value]:
            raise build_usage_error(
                f"{', '.join(flags)} is for evidence, and --tags has none", "omit one of them"
            )

    def _build_table(self, versions: list[VerifiedVersion]) -> Table:
        findings = [finding for version in versions for finding in version.findings]
        rows = [
            (
                version.name,
                version.version,
                version.commit[:7] or "-",
                _SAID[version.status],
                f"yanked: {version.yanked}" if version.yanked else "",
            )
            for version in versions
        ]
        return Table(
            rows,
            after=format_findings(findings, self.coloured),
            header=("preset", "version", "commit", "its tag", "yanked"),
        )


def _refuse_unknown_names(workspace: spec.Workspace, names: list[str]) -> None:
    """Raise NpuprofError for a name that is neither a preset nor has a version."""
    if not names:
        return
    released = {ref.name for ref in workspace.store.repository.list_tag_refs()}
    known = {*released, *workspace.store.names(), WHOLE_STORE}
    raise_any(
        [
            Finding(
                "NP008",
                f"no preset {name!r} was ever released, and there is none",
                "",
                did_you_mean(name, known, "npuprof list --versions"),
            )
            for name in names
            if name not in known
        ]
    )


def _count_states(states: list[str]) -> str:
    parts = [
        (states.count("holds"), "match"),
        (states.count("fails"), "do not"),
        (states.count("unknown"), "unknown"),
    ]
    return ", ".join(f"{count} {state}" for count, state in parts if count)


def _build_fields(version: VerifiedVersion) -> Fields:
    return {
        "name": version.name,
        "version": version.version,
        "tag": version.tag,
        "commit": version.commit or None,
        "status": version.status,
        "yanked": version.yanked or None,
        "findings": [build_finding_dict(finding) for finding in version.findings],
    }


VERB = Verify
