"""``git receive``: check the branches of a push; called by the pre-receive hook of a server."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from npuprof.checks import identify_finding
from npuprof.commands.framework import Verb, flag
from npuprof.commands.framework.parameters import STORE
from npuprof.commands.resolving import open_workspace
from npuprof.document.keys import format_short_value
from npuprof.model import Finding, NpuprofError, build_usage_error, select_errors
from npuprof.renderers.outputs import check_store
from npuprof.report import Answer
from npuprof.report.findings import format_findings, format_severity_counts
from npuprof.store import spec
from npuprof.store.checked import CheckedStore
from npuprof.store.lock_sync import sync_sources
from npuprof.store.problems import lacks_source
from npuprof.system import lazy_pattern
from npuprof.system.files import read_standard_input

#: A line of the hook's input: the old commit, the new commit, the ref.
_LINE = lazy_pattern(
    r"(?P<old>[0-9a-f]{40,64}) (?P<new>[0-9a-f]{40,64}) (?P<ref>refs/.+)", re.DOTALL
)


class Receive(Verb):
    """Reject a push that adds errors.

    Checks the tips of the pushed branches before the push is accepted. Errors that existed before
    do not count. Exits with 1 if the push is rejected.
    """

    group = "team"
    hidden = True

    sync = flag("--sync", text="Fetch the locked sources of each tip first")
    store = STORE

    def run(self) -> Answer:
        """Return the errors of each tip.

        Tags, deleted branches, and tips without presets are ignored. Raises NpuprofError.
        """
        text = ""
        notes = []
        code = 0
        for commit, moved in _read_tips(read_standard_input()).items():
            errors = self._find_new_errors(commit, moved)
            text += format_findings(errors)
            # an output that is not up to date is reported, and rejects nothing
            if select_errors(errors):
                code = 1
                refs = ", ".join(ref for _, ref in moved)
                notes.append(f"not taken: {refs}: {format_severity_counts(errors)}")
        return Answer(text, tuple(notes), code)

    def _find_new_errors(self, commit: str, moved: list[tuple[str, str]]) -> list[Finding]:
        """Return the errors of a commit that the old commits of its branches lack."""
        errors = self._find_errors(commit)
        if not errors:
            return []
        earlier = set()
        for old, _ in moved:
            # a new branch has no old commit: what it is based on counts as known
            earlier.update([old] if old else self._list_beginnings(commit))
        for before in earlier:
            known = _identify_errors(self._find_errors(before))
            errors = [
                error
                for error in errors
                # a missing source hides the errors behind it, in the old commit, too
                if lacks_source([error]) or not _identify_errors([error]) <= known
            ]
        return errors

    def _list_beginnings(self, commit: str) -> list[str]:
        """Return the existing commits on which the new ones are based.

        The commit itself if it already exists.
        """
        git = spec.Workspace(self.store).store.repository.git
        listed = (
            git.run_command("rev-list", "--boundary", commit, "--not", "--all").decode().split()
        )
        return [line[1:] for line in listed if line.startswith("-")] if listed else [commit]

    def _find_errors(self, commit: str) -> list[Finding]:
        try:
            checked = CheckedStore(open_workspace(self.store), commit)
            if self.sync:
                sync_sources(self.store, rev=commit)
                # a new store, which sees the new files
                checked = CheckedStore(open_workspace(self.store), commit)
        except NpuprofError as error:
            # a branch without presets is none of npuprof's concern
            return [finding for finding in error.findings if finding.code != "NP023"]
        return [
            finding
            for finding in check_store(checked, notes=False).findings
            if finding.severity == "error" or finding.code == "NP713"
        ]


def _identify_errors(errors: Iterable[Finding]) -> set[tuple[str, ...]]:
    """Return the identities of errors, each with its preset."""
    return {
        (*identify_finding(error), name) for error in errors for name in error.profiles or ("",)
    }


def _read_tips(lines: bytes) -> dict[str, list[tuple[str, str]]]:
    """Return the new commits of branches in the hook's input, each with its old commits and refs.

    Raises NpuprofError.
    """
    tips = defaultdict(list)
    text = lines.decode(errors="surrogateescape").removesuffix("\n")
    for line in text.split("\n") if lines else ():
        match = _LINE.fullmatch(line)
        if match is None:
            what = f"{format_short_value(line)} is not input of a git hook"
            raise build_usage_error(
                what, "this is for pre-receive, which git install --server writes"
            )
        commit = match["new"]
        ref = match["ref"]
        # git writes zeros for a branch that did not exist, or is deleted
        if ref.startswith("refs/heads/") and commit.strip("0"):  # no tags, no deleted branches
            old = match["old"] if match["old"].strip("0") else ""
            tips[commit].append((old, ref.removeprefix("refs/heads/")))
    return tips


VERB = Receive
