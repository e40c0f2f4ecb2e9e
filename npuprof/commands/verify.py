"""``verify``: whether released versions are what their tags say."""

from __future__ import annotations

from typing import Any

from npuprof.commands.parameters import COLOR, OUTPUT, STORE, formats
from npuprof.commands.verb import Verb, arguments, flag
from npuprof.model import Finding, NpuprofError, did_you_mean
from npuprof.report.answer import Answer
from npuprof.report.findings import build_finding_dict, format_findings
from npuprof.report.tables import Table
from npuprof.report.text import format_count
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.history.verification import VerifiedVersion
    from npuprof.report.answer import Forms

_SAID = {"holds": "holds", "fails": "does not hold", "unknown": "cannot tell"}


class Verify(Verb):
    """Verify released versions against their tags.

    Where the repository asks for signatures (tag.gpgSign, gpg.*), git verify-tag is run, and with it the signing program.
    """

    group = "versions"
    prose = True

    names: list[str] = arguments("NAME...", "Only the versions of these presets.")
    tags: bool = flag("--tags", text="Verify the tags NAME/vX.Y.Z and vX.Y.Z (@); all if none is named.")
    format: str = formats("text", "json")
    store: str | None = STORE
    output: str | None = OUTPUT
    color: str = COLOR

    def run(self) -> Answer:
        """Return each version and whether it holds. Exit 1 where one does not, 2 where that cannot be told, 0 where all hold."""
        from npuprof.history.verification import Verifier

        if not self.tags:
            hint = f"released versions are verified with --tags: npuprof verify --tags {' '.join(self.names)}".rstrip()
            raise NpuprofError([Finding("NP902", "verify has nothing to verify", "", hint)])
        workspace = spec.Workspace(self.store)
        _refuse_unknown_names(workspace, self.names)
        verifier = Verifier(workspace)
        found = list(verifier.verify_tags(self.names))
        states = [one.status for one in found]
        remarks = [
            f"{format_count(len(found), 'released version')} verified: {_count_states(states)}" if found else "nothing is released yet"
        ]
        if verifier.signatures and found:
            remarks.append("the repository asks for signatures: git verify-tag was run, with its signing program")
        remarks += [f"not verified by that is what is here now: {finding.message}" for finding in verifier.find_edits_here()[:1]]
        forms: Forms = {
            "text": lambda: self._build_table(found),
            "json": lambda: {
                "schema": "npuprof.verified/1",
                "signatures": verifier.signatures,
                "versions": [_build_fields(one) for one in found],
            },
        }
        return Answer(forms, tuple(remarks), 1 if "fails" in states else 2 if "unknown" in states else 0)

    def _build_table(self, found: list[VerifiedVersion]) -> Table:
        findings = [finding for one in found for finding in one.findings]
        told = format_findings(findings, self.coloured) if findings else ""
        rows = [(one.name, one.version, one.commit[:7] or "-", _SAID[one.status], _tell_yank(one)) for one in found]
        return Table(rows, after=told, header=("preset", "version", "commit", "its tag", "yanked"))


def _tell_yank(one: VerifiedVersion) -> str:
    return f"yanked: {one.yanked}" if one.yanked else ""


def _refuse_unknown_names(workspace: spec.Workspace, names: list[str]) -> None:
    """Raise NpuprofError where a name is neither a preset's nor that of any version."""
    from npuprof.history.verification import WHOLE_STORE
    from npuprof.store import revisions

    if not names:
        return
    released = {ref.name for ref in revisions.find_repository(workspace.store).list_tag_refs()}
    known = {*released, *workspace.store.names(), WHOLE_STORE}
    problems = [
        Finding(
            "NP008", f"no preset {name!r} was ever released, and there is none", "", did_you_mean(name, known, "npuprof list --versions")
        )
        for name in names
        if name not in known
    ]
    if problems:
        raise NpuprofError(problems)


def _count_states(states: list[str]) -> str:
    parts = [(states.count("holds"), "hold"), (states.count("fails"), "not"), (states.count("unknown"), "cannot be told")]
    return ", ".join(f"{count} {words}" for count, words in parts if count)


def _build_fields(one: VerifiedVersion) -> dict[str, Any]:
    return {
        "name": one.name, "version": one.version, "tag": one.tag, "commit": one.commit or None, "status": one.status,
        "yanked": one.yanked or None,
        "findings": [build_finding_dict(finding) for finding in one.findings],
    }  # fmt: skip


VERB = Verify
