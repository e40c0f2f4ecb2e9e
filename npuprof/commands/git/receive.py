"""``git receive``: whether the presets at the branches that a push brings are free of errors; a server's hook pre-receive calls it."""

from __future__ import annotations

import re

from npuprof.commands.check import Check
from npuprof.commands.parameters import STORE
from npuprof.commands.verb import Verb, flag
from npuprof.document.keys import format_short_value
from npuprof.model import Finding, NpuprofError
from npuprof.report.answer import Answer
from npuprof.report.findings import format_findings, format_severity_counts
from npuprof.report.output import read_standard_input

#: What git writes to a hook for each ref: the old commit, the new one, the name.
_LINE = re.compile(r"[0-9a-f]{40,64} ([0-9a-f]{40,64}) (refs/.+)", re.DOTALL)


class Receive(Verb):
    """Refuse a push that brings presets with errors (exit 1): the tips of its branches are checked before it is taken."""

    group = "git"
    hidden = True

    sync: bool = flag("--sync", text="First fetch the sources that the lock of each tip names.")
    store: str | None = STORE

    def run(self) -> Answer:
        """Return the errors of each tip. Tags, branches that go, and tips without presets are none of our business. Raises NpuprofError."""
        text, remarks, code = "", [], 0
        for commit, refs in _read_tips(read_standard_input()).items():
            errors = self._find_errors(commit)
            if errors:
                code = 1
                text += format_findings(errors)
                remarks.append(f"not taken: {', '.join(refs)}: {format_severity_counts(errors)}")
        return Answer(text, tuple(remarks), code)

    def _find_errors(self, commit: str) -> list[Finding]:
        from npuprof.commands.source.sync import Sync

        check = Check({"store": self.store, "rev": commit, "color": "never", "severity": "error"})
        try:
            store = check.open_store()
            if self.sync:
                Sync({"store": self.store, "rev": commit}).run()
                store = check.open_store()  # it has not seen what was not there
        except NpuprofError as error:
            return [finding for finding in error.findings if finding.code != "NP023"]
        return check.select_told(check.judge(store).settled.findings)


def _read_tips(lines: bytes) -> dict[str, list[str]]:
    """Return the new commits of branches, each with the names of its branches, as git tells a hook. Raises NpuprofError."""
    tips: dict[str, list[str]] = {}
    for line in lines.decode(errors="surrogateescape").removesuffix("\n").split("\n") if lines else ():
        match = _LINE.fullmatch(line)
        if match is None:
            what = f"{format_short_value(line)} is nothing that git tells a hook"
            raise NpuprofError([Finding("NP902", what, "", "this is for pre-receive, which git install --server writes")])
        commit, ref = match.groups()
        if ref.startswith("refs/heads/") and commit.strip("0"):
            tips.setdefault(commit, []).append(ref.removeprefix("refs/heads/"))
    return tips


VERB = Receive
