"""Completion, asked by the functions that bash and fish have read."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from support.building import REPOSITORY
from support.repositories import Repo

BERT = "[options]\nprecision_mode_v2 = 'mixed_float16'\nhccl_timeout = 600\n"


@pytest.fixture
def folder(repo: Repo) -> Path:
    repo.commit({"bert": BERT, "base/training": BERT, "mixins/x": BERT})
    for version in ("1.0.0", "1.1.0"):
        repo.release("bert", version)
    return repo.folder


def complete(folder: Path, command: list[str], lines: Iterable[str]) -> list[str]:
    """Return what a shell prints that has read its own function for our words.

    ``only`` is a file that it would offer by itself.
    """
    binary = folder / "bin/npuprof"
    binary.parent.mkdir()
    binary.write_text(
        f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}" exec "{sys.executable}" -m npuprof "$@"\n'
    )
    binary.chmod(0o755)
    (folder / "only").write_text("")
    environ = {**os.environ, "PATH": f"{binary.parent}:{os.environ['PATH']}"}
    requested = {**environ, "_NPUPROF_COMPLETE": f"source_{command[0]}"}
    script = subprocess.run(
        ["npuprof"], env=requested, capture_output=True, text=True, check=True
    ).stdout
    done = subprocess.run(
        [*command, "-c", "\n".join([script, *lines])],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


#: The words of a line as bash splits them, and its replies: two where one ends in ``=``, so that it
#: puts no blank behind it, and where a text is no path, so that it offers no file.
BASH = {
    "set bert hccl_timeo": "hccl_timeout= hccl_timeout=VALUE",
    "show 'ber": "bert",
    "show bert @ 1.1": "@1.1.0",
    "show bert@1.1": "bert@1.1.0",
    "show 'bert@HE": "bert@HEAD",
    "show bert --with = mix": "mixins/x",
    "yank bert@1.0.0 --why on": "on on...",
    "set bert dump_path = on": "",
    "scan on": "",
}


def test_bash_is_answered_word_by_word_and_left_to_its_files_where_a_path_is_meant(
    folder: Path,
) -> None:
    ask = (
        'ask() { COMP_WORDS=(npuprof "$@"); COMP_CWORD=$#; '
        '_npuprof_completion npuprof; echo "${COMPREPLY[*]}"; }'
    )
    lines = [" ".join(map(shlex.quote, line.split(" "))) for line in BASH]
    assert complete(folder, ["bash"], [ask, *(f"ask {line}" for line in lines)]) == list(
        BASH.values()
    )


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_whole_lines(folder: Path) -> None:
    lines = {
        "set bert hccl_timeo": "hccl_timeout=",
        "show bert@1.1": "bert@1.1.0",
        "show bert --with=mix": "--with=mixins/x",
        "yank bert@1.0.0 --why on": "",
        "set bert dump_path=on": "dump_path=only",
        "scan on": "only",
    }
    requested = [
        f"echo (complete -C 'npuprof {line}' | string replace -r '\\t.*' '')" for line in lines
    ]
    assert complete(folder, ["fish", "--no-config"], requested) == list(lines.values())
