"""Public trees at fixed commits: fetch one, scan it, and compare a summary with the kept one.

A summary has one line for each code and setting: how many findings, in how many files, and a digest
of where they are. Messages are not part of it: tests of the gate compare them.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from npuprof.model import Record
from support.building import REPOSITORY

HERE = Path(__file__).parent
FINDINGS = HERE / "findings"
#: A folder of clones, each with the name of its tree, for machines that do not reach the addresses.
CLONES = os.environ.get("ECOSYSTEM_CLONES")
#: Commits that were fetched, for the next run.
CACHE = REPOSITORY / ".cache" / "ecosystem"
#: The most findings of a changed line that a comparison lists.
MOST_LISTED = 5
#: The longest time that git may take, in seconds.
PATIENCE = 900


class Tree(Record):
    """A commit of a public repository.

    ``only`` and ``without`` are pathspecs of files that are checked out, and that are not.
    """

    name: str
    url: str
    commit: str
    without: tuple[str, ...] = ()
    only: tuple[str, ...] = (".",)


def read_trees() -> list[Tree]:
    """Return the trees of ``trees.toml``."""
    table = tomllib.loads((HERE / "trees.toml").read_text())
    without = tuple(table.pop("without"))
    return [Tree(name, row["url"], row["commit"], without) for name, row in table.items()]


def check_out(tree: Tree, folder: Path, clones: str | None, cache: Path) -> None:
    """Write the files of a tree into an empty folder; skip the test if its commit is out of
    reach.
    """
    repository = Path(clones, tree.name) if clones else cache / f"{tree.name}.git"
    if not clones and not repository.exists():
        _run_git(["init", "--quiet", "--bare", str(repository)])
    if clones and (repository / ".git").exists():
        repository /= ".git"
    git_dir = f"--git-dir={repository}"
    is_here = _run_git([git_dir, "cat-file", "-e", f"{tree.commit}^{{commit}}"])
    fetching = [git_dir, "fetch", "--quiet", "--depth", "1", tree.url, tree.commit]
    if not is_here and (clones or not _run_git(fetching)):
        pytest.skip(f"{tree.name} cannot be fetched: no commit {tree.commit} in {repository}")
    excluded = [f":(exclude){path}" for path in tree.without]
    arguments = [git_dir, f"--work-tree={folder}", "checkout", "--quiet", tree.commit, "--"]
    index = {"GIT_INDEX_FILE": str(folder.with_suffix(".index"))}  # a clone keeps its own
    assert _run_git([*arguments, *tree.only, *excluded], folder, index), (
        f"{tree.name} is not complete"
    )


def _run_git(
    arguments: Sequence[str], folder: Path | None = None, more: Mapping[str, str] | None = None
) -> bool:
    """Run git; return whether it succeeded. Nothing is asked on a terminal."""
    environ = {
        **os.environ,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        **(more or {}),
    }
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, env=environ, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def scan(folder: Path) -> dict[str, Any]:
    """Return what ``npuprof scan`` prints about a folder as JSON."""
    arguments = ["scan", ".", "--docs", "--all", "--severity", "info", "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "npuprof", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def summarize(answer: Mapping[str, Any]) -> str:
    """Return the summary of a scan: the counts of settings, a line for each code and setting, and
    the names that the catalogue does not have.
    """
    coverage = dict(answer["coverage"])
    names = coverage.pop("names")
    unjudged = coverage.pop("not_judged", ())
    rows = [f"{name}\t{count}" for name, count in coverage.items()]
    rows += [
        f"not_judged\t{seen['surface']}\t{seen['lines']} in {seen['files']} files"
        for seen in unjudged
    ]
    for line, findings in sorted(group_findings(answer).items()):
        files = {finding["path"] for finding in findings}
        rows.append(f"{line}\t{len(findings)} in {len(files)} files\t{_digest(findings)}")
    return "".join(f"{row}\n" for row in (*rows, *(f"unknown\t{name}" for name in names)))


def group_findings(answer: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the findings of a scan by the start of their line in a summary."""
    groups = defaultdict(list)
    for finding in answer["findings"]:
        groups[f"{finding['code']}\t{finding['severity']}\t{finding['key'] or '-'}"].append(finding)
    return groups


def _digest(findings: Sequence[Mapping[str, Any]]) -> str:
    """Return eight digits that change with the place of any of the findings."""
    places = sorted(format_place(finding) for finding in findings)
    return hashlib.sha256("\n".join(places).encode()).hexdigest()[:8]


def format_place(finding: Mapping[str, Any]) -> str:
    return f"{finding['path']}:{finding['line']}:{finding['column']}"


def describe_changes(kept: str, answer: Mapping[str, Any]) -> list[str]:
    """Return the lines of a diff between a kept summary and that of a scan, with the first findings
    of each line that is new.
    """
    diff = difflib.unified_diff(
        kept.splitlines(), summarize(answer).splitlines(), "kept", "now", lineterm="", n=0
    )
    groups = group_findings(answer)
    lines = []
    for row in diff:
        lines.append(row)
        findings = groups.get("\t".join(row[1:].split("\t")[:3]), []) if row[0] == "+" else []
        lines += [
            f"    {format_place(finding)}: {finding['message']}"
            for finding in findings[:MOST_LISTED]
        ]
    return lines
