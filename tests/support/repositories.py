"""Git repositories for tests and benchmarks, built step by step or imported at once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from support.templates import copy_empty_repository

ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada Lovelace",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada Lovelace",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "LC_ALL": "C",
}
#: Git neither waits for the disk nor tidies up behind a commit.
_QUICK = {
    "GIT_TEST_FSYNC": "0",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "maintenance.auto",
    "GIT_CONFIG_VALUE_0": "false",
}


class Repo:
    """A repository with presets below ``profiles/``; the clock moves one day with each commit."""

    def __init__(self, folder: Path, init: bool = True) -> None:
        self.folder = folder
        self.day = 1
        if init:
            copy_empty_repository(folder)

    def git(self, *arguments: str, stdin: bytes | None = None, check: bool = True) -> str:
        """Run git there; return what it prints, without the last newline."""
        stamp = f"2026-01-{self.day:02d}T12:00:00+00:00"
        environ = {
            **os.environ,
            **_QUICK,
            **ENVIRONMENT,
            "GIT_AUTHOR_DATE": stamp,
            "GIT_COMMITTER_DATE": stamp,
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=environ,
            input=stdin,
            capture_output=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().rstrip("\n")

    def write(self, presets: Mapping[str, str | bytes | None]) -> None:
        """Write presets by name; None removes one."""
        for name, text in presets.items():
            path = self.folder / "profiles" / f"{name}.toml"
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(
        self, presets: Mapping[str, str | bytes | None] | None = None, message: str = "change"
    ) -> str:
        """Write presets and commit everything; return the commit's id."""
        self.write(presets or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        self.day = self.day % 28 + 1
        return self.head

    def release(self, name: str, version: str, revision: str = "HEAD") -> None:
        """Make an annotated tag as ``npuprof release`` does."""
        self.git("tag", "-a", f"{name}/v{version}", "-m", f"{name} {version}", revision)

    @property
    def head(self) -> str:
        """The id of the last commit."""
        return self.git("rev-parse", "HEAD")


def fast_import(folder: Path, history: Iterable[Mapping[str, str]]) -> Repo:
    """Make a repository with one commit for each mapping of names to texts; check out the last."""
    made = Repo(folder)
    stream: list[str] = []
    for number, presets in enumerate(history):
        stamp = 1767225600 + 60 * number
        message = f"step {number}"
        stream.append(
            f"commit refs/heads/main\nauthor Ada <ada@example.org> {stamp} +0000\n"
            f"committer Ada <ada@example.org> {stamp} +0000\n"
            f"data {len(message)}\n{message}\n"
        )
        for name, text in presets.items():
            stream.append(
                f"M 100644 inline profiles/{name}.toml\ndata {len(text.encode())}\n{text}\n"
            )
    made.git("fast-import", "--quiet", stdin="".join(stream).encode())
    made.git("checkout", "-q", "-f", "main")
    return made


class Link(str):
    """Where a symbolic link leads."""


class Node(NamedTuple):
    """One commit of a graph: the numbers of its parents, its presets and released versions."""

    parents: Sequence[int]
    presets: Mapping[str, str]
    released: Sequence[str] = ()


def import_graph(folder: Path, nodes: Sequence[Node]) -> Repo:
    """Make a repository of commits with any parents, the last one checked out; return it."""
    made = Repo(folder)
    stream: list[str] = []
    for number, node in enumerate(nodes):
        who = f"Ada <ada@example.org> {1767225600 + 60 * number} +0000"
        stream += ["reset refs/heads/main\n"] * (not node.parents)
        stream.append(f"commit refs/heads/main\nmark :{number + 1}\ncommitter {who}\ndata 0\n")
        stream += [
            f"{'merge' if place else 'from'} :{parent + 1}\n"
            for place, parent in enumerate(node.parents)
        ]
        stream.append("deleteall\n")
        for name, text in node.presets.items():
            mode = "120000" if isinstance(text, Link) else "100644"
            stream.append(
                f"M {mode} inline profiles/{name}.toml\ndata {len(text.encode())}\n{text}\n"
            )
        stream += [
            f"tag {version}\nfrom :{number + 1}\ntagger {who}\ndata 0\n"
            for version in node.released
        ]
    made.git("fast-import", "--quiet", "--force", stdin="".join(stream).encode())
    made.git("checkout", "-q", "-f", "main")
    return made
