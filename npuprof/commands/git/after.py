"""``git after``: report the findings that a merge or rebase caused; called by hooks."""

from __future__ import annotations

import os
import sys

from npuprof.checks import fold_findings
from npuprof.commands.framework import Verb, argument, arguments
from npuprof.model import Finding, NpuprofError, Record
from npuprof.renderers.outputs import check_store
from npuprof.report import Answer
from npuprof.report.findings import format_severity_counts
from npuprof.store.base import CachedStore
from npuprof.store.checked import CheckedStore
from npuprof.store.folder import find_store
from npuprof.store.gitstore.objects import Git
from npuprof.store.spec import Workspace


class _FaultKey(Record):
    """The identity of a finding on both sides."""

    code: str
    key: str
    preset: str
    message: str


class After(Verb):
    """Report findings that a merge or rebase caused.

    Exits with 1 if there are errors or warnings that neither side has alone.
    """

    group = "team"
    hidden = True
    takes_any_word = True

    deed = argument("deed", "Git operation: merge or rewrite")
    arguments = arguments("words", "Arguments that git passes to the hook")

    def run(self) -> Answer:
        """Return the findings that neither side has, nothing if there are none.

        Raises NpuprofError.
        """
        is_rebase = self.deed == "rewrite"
        rewritten = sys.stdin.read() if is_rebase else ""
        # git also calls post-rewrite after commit --amend, which joins no two sides
        if is_rebase and self.arguments[:1] != ["rebase"]:
            return Answer()
        try:
            home = find_store(None, os.environ)
        except NpuprofError:
            return Answer()
        # the result first: most merges have no faults, and then no other commit is checked
        now = _find_faults(home, home.root)
        sides = _find_sides(Git(home.root), self.deed, self.arguments, rewritten) if now else []
        if not sides:
            return Answer()
        for side in sides:
            revision = home.repository.load_revision(side)
            revision.shown = None  # files are cited as in the work tree
            folder = revision.repository.prefix.rstrip("/") or revision.label
            for key in _find_faults(revision, folder):
                now.pop(key, None)
        if not now:
            return Answer()
        findings_now = fold_findings(now.values())
        done = "rebase" if is_rebase else "merge"
        note = (
            f"the {done} is done, and introduces findings that neither side had: "
            f"{format_severity_counts(findings_now)}"
        )
        hint = "fix it and commit, or undo the merge: git reset --keep ORIG_HEAD"
        return Answer(None, (note, hint), 1, problems=findings_now)


def _find_sides(git: Git, deed: str, arguments: list[str], rewritten: str) -> list[str]:
    """Return the merged commits; empty if there is only one, which has all faults itself."""
    names = []
    if deed == "rewrite":
        for line in rewritten.splitlines():  # OLD-COMMIT NEW-COMMIT, oldest first
            commits = line.split()
            if len(commits) > 1:
                # the branch as it was, and the commit on which its first commit is now
                names = ["ORIG_HEAD", f"{commits[1]}^"]
                break
    elif arguments[:1] == ["1"]:  # a squash: HEAD is still this side
        names = ["HEAD"]
    else:
        names = ["HEAD^1", "HEAD^2"]
    commits = [read.oid for read in git.read_objects(names) if read is not None] if names else []
    return commits if len(commits) == len(names) else []


def _find_faults(home: CachedStore, folder: str) -> dict[_FaultKey, Finding]:
    """Return the errors and warnings of a store in a folder, by identity."""
    try:
        by_preset = check_store(CheckedStore(Workspace(opened=home)), notes=False).by_preset
    except NpuprofError as error:  # it cannot be listed, or is empty
        by_preset = {"": [finding for finding in error.findings if finding.code != "NP010"]}
    faults: dict[_FaultKey, Finding] = {}
    for preset, findings in by_preset.items():
        for finding in findings:
            if finding.severity != "info":
                # the sides have other labels and folders, which would make every message a new one
                message = finding.message.replace(home.label, "the store")
                message = message.replace(folder, "the store")
                faults.setdefault(_FaultKey(finding.code, finding.key, preset, message), finding)
    return faults


VERB = After
