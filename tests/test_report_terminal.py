"""What a terminal is shown: captured on a real one, 80 and 120 columns wide."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
from pathlib import Path
from typing import Any

import pytest
from building import REPOSITORY, build_store

from npuprof.report.tables import Table
from npuprof.report.terminal import wrap_lines
from npuprof.report.text import measure_width

LONG = "Use it to train a model of many layers on several devices; not where memory is short."
STORE = {
    "base/training": "[profile]\nabstract = true\n[options]\nhccl_timeout = 1800\n",
    "bert-large-cluster-training": f'[profile]\nextends = ["base/training"]\ndescription = "{LONG}"\n[options]\nhccl_timeout = 600\n',
    "x": '[options]\nprecision_mode_v2 = "fp17"\n',
}


def capture(words: list[str], columns: int, folder: Path, **environ: str) -> str:
    """Return what a command shows on a terminal."""
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(folder)
        known = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "TERM": "xterm",
            "NPUPROF_PAGER": "",
            "PYTHONPATH": str(REPOSITORY),
        }
        os.execve(sys.executable, [sys.executable, "-m", "npuprof", *words], {**known, **environ})
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    found = b""
    while True:
        try:
            piece = os.read(screen, 65536)
        except OSError:  # the other side is gone
            break
        if not piece:
            break
        found += piece
    os.waitpid(pid, 0)
    os.close(screen)
    return found.decode().replace("\r\n", "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build_store(tmp_path / "profiles", STORE)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "words",
    [
        ["list"], ["list", "--store", "builtin:"], ["options", "hccl"], ["option", "hccl_timeout"], ["explain", "x", "hccl_timeout"],
        ["check"], ["rule", "NP301"], ["check", "--product", "atlas-a2", "--product", "atlas-a3"], ["diff", "base/training", "x", "x"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(folder: Path, words: list[str], columns: int) -> None:
    shown = capture([*words, *(["--color", "never"] if words[0] in ("check", "diff") else [])], columns, folder, NO_COLOR="1")
    assert shown.strip()
    assert [line for line in shown.splitlines() if measure_width(line) > columns] == []


@pytest.mark.slow
def test_tables_have_headers_on_a_terminal_and_descriptions_below(folder: Path) -> None:
    lines = capture(["list"], 80, folder).splitlines()
    assert lines[0].split() == ["PRESET", "FOR", "VERSION", "EXTENDS"]
    assert lines[3].strip() == LONG[:76].rpartition(" ")[0]
    assert lines[4].strip() == LONG[len(lines[3].strip()) :].strip()


@pytest.mark.slow
def test_a_long_answer_goes_through_the_pager_of_the_user(folder: Path) -> None:
    pager = folder / "pager"
    pager.write_text('#!/bin/sh\nwhile read -r line; do echo "paged: $line"; done\n')
    pager.chmod(0o755)
    for name in ("NPUPROF_PAGER", "PAGER"):
        environ = {"NPUPROF_PAGER": str(pager)} if name == "NPUPROF_PAGER" else {"PAGER": str(pager)}
        shown = capture(["options", "hccl_timeout"], 80, folder, **environ)
        assert shown.startswith("paged: ") == (name == "NPUPROF_PAGER")  # an empty NPUPROF_PAGER stands over PAGER
    gone = capture(["options", "hccl_timeout"], 80, folder, NPUPROF_PAGER="/nowhere/pager")
    assert gone.startswith("NAME")


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("short", 10, "short"),
        ("one two three four", 10, "one two\n    three\n    four"),
        ("  why: one two three", 14, "  why: one two\n       three"),
        ("  set by       one two three", 24, "  set by       one two\n               three".replace("               ", "            ")),
        ("  12 | a line of a file that is long", 10, "  12 | a line of a file that is long"),
        ("averyveryverylongword", 10, "averyveryverylongword"),
        ("\033[1mone two\033[0m three", 11, "\033[1mone two\033[0m\n    three".replace("    ", " " * 4)),
        ("\u4f60\u597d \u4e16\u754c \u4f60\u597d", 10, "\u4f60\u597d \u4e16\u754c\n    \u4f60\u597d"),
        ("a\n\nb", 3, "a\n\nb"),
    ],
)
def test_prose_is_wrapped_at_the_ends_of_words(text: str, width: int, expected: str) -> None:
    assert wrap_lines(text, width) == expected


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("\u4f60\u597d", 4), ("e\u0301", 1), ("\uff21b", 3), ("\u2018x\u2019", 3), ("", 0)]
)
def test_characters_take_the_columns_that_they_take(text: str, width: int) -> None:
    assert measure_width(text) == width


def test_wide_characters_line_up_in_a_pipe() -> None:
    assert Table([("\u4f60\u597d", "x"), ("abcde", "y")]).format_plain() == "\u4f60\u597d   x\nabcde  y\n"


@pytest.mark.parametrize(
    ("environ", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "0"}, False), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colour_can_be_forced_and_forbidden(run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, environ: Any, coloured: bool) -> None:
    monkeypatch.chdir(folder)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert ("\033[" in run("check", "x").out) is coloured


@pytest.mark.parametrize(
    ("words", "there", "absent"),
    [
        (("--deprecated",), "op_debug_level", "precision_mode_v2"),
        (("--since", "9.0.0"), "", "hccl_timeout"),
        (("--product", "Ascend910B2"), "hccl_timeout", ""),
        (("--risk", "numerics"), "precision_mode_v2", "hccl_timeout"),
        (("precision", "--risk", "numerics"), "precision_mode_v2", "hccl_timeout"),
    ],
)
def test_the_catalogue_is_filtered(run: Any, words: tuple[str, ...], there: str, absent: str) -> None:
    names = [line.split()[0] for line in run("options", *words).out.splitlines()]
    assert names
    assert not there or there in names
    assert not absent or absent not in names


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--risk", "numeric"), "did you mean 'numerics'"), (("--since", "latest"), "unknown CANN release"),
        (("--since", ""), "--since is empty"),
        (("--product", "910B2"), "did you mean 'Ascend910B2'"), (("nothing like it",), "nothing in the catalogue matches"),
        (("--deprecated", "--risk", "numerics", "--since", "9.2.0"), "the filters leave nothing"),
    ],
)  # fmt: skip
def test_filters_that_leave_nothing_say_why(run: Any, words: tuple[str, ...], said: str) -> None:
    result = run("options", *words)
    assert (result.code, said in result.err) == (2, True), result.err


def test_the_bare_command_says_what_to_do_next(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "npuprof init lays one out" in run().err
    (tmp_path / "profiles").mkdir()
    assert "profiles holds no preset yet" in run().err
    build_store(tmp_path / "profiles", {"base/a": "", "bert": ""})
    assert "profiles holds 2 presets: npuprof list, npuprof show bert" in run().err
