# ruff: noqa: RUF001 (marks of other scripts are what is tested)
"""What a terminal is shown: captured on a real one, 80 and 120 columns wide."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from npuprof.document.keys import format_toml_value
from npuprof.model import Finding, Place
from npuprof.report.findings import format_findings
from npuprof.report.output import track_items
from npuprof.report.tables import Table
from npuprof.report.wrapping import split_pieces, wrap_lines
from support.building import build_store
from support.captured import capture, strip_colours
from support.running import Run

LONG = "Use it to train a model of many layers on several devices; not where memory is short."
STORE = {
    "base/training": "[profile]\nabstract = true\n[options]\nhccl_timeout = 1800\n",
    "bert-large-cluster-training": (
        '[profile]\nextends = ["base/training"]\n'
        f'description = "{LONG}"\n[options]\nhccl_timeout = 600\n'
    ),
    "x": '[options]\nprecision_mode_v2 = "fp17"\n',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build_store(tmp_path / "profiles", STORE)
    return tmp_path


def test_tables_have_headers_on_a_terminal_and_descriptions_below(folder: Path) -> None:
    shown = capture(["list"], 80, folder)
    lines = strip_colours(shown).splitlines()
    assert lines[0].split() == ["PRESET", "FOR", "EXTENDS"]  # none has a version
    assert "\033[1mbert-large-cluster-training\033[0m" in shown
    assert lines[2].strip() == LONG[:76].rpartition(" ")[0]
    assert lines[3].strip() == LONG[len(lines[2].strip()) :].strip()


def test_presets_in_a_folder_have_a_heading_on_a_terminal(folder: Path) -> None:
    lines = strip_colours(capture(["list"], 80, folder)).splitlines()
    assert lines[-4].split()[0] == "x"
    assert lines[-3:-1] == ["", "base/"]
    assert lines[-1].split()[0] == "base/training"


def test_labels_of_an_explanation_are_dim_and_findings_have_a_blank_line_between_them(
    folder: Path,
) -> None:
    assert "\n  \033[2mset by      \033[0m bert-large-cluster-training" in capture(
        ["explain", "bert-large-cluster-training", "hccl_timeout"], 80, folder
    ).replace("\r", "")
    build_store(
        folder / "profiles", {"y": '[options]\nhccl_timeout = -1\nprecision_mode_v2 = "fp17"\n'}
    )
    listed = strip_colours(capture(["check", "y", "x"], 80, folder)).replace("\r", "")
    assert [block.split(":")[0] for block in listed.split("\n\n")] == [
        "profiles/x.toml",
        "profiles/y.toml",
        "profiles/y.toml",
        "npuprof",
    ]


def test_an_answer_that_fits_the_screen_opens_no_pager(folder: Path) -> None:
    pager = folder / "pager"
    pager.write_text("#!/bin/sh\necho paged; cat\n")
    pager.chmod(0o755)
    shown = [
        capture(line.split(), 80, folder, NPUPROF_PAGER=str(pager))
        for line in ("check x", "list", "rule")
    ]
    assert ["paged" in text for text in shown] == [False, False, True]


def test_a_long_answer_goes_through_the_pager_of_the_user(folder: Path) -> None:
    pager = folder / "pager"
    pager.write_text('#!/bin/sh\nwhile read -r line; do echo "paged: $line"; done\n')
    pager.chmod(0o755)
    for name in ("NPUPROF_PAGER", "PAGER"):
        environ = (
            {"NPUPROF_PAGER": str(pager)} if name == "NPUPROF_PAGER" else {"PAGER": str(pager)}
        )
        shown = capture(["rule"], 80, folder, **environ)
        assert shown.startswith("paged: ") == (
            name == "NPUPROF_PAGER"
        )  # an empty NPUPROF_PAGER stands over PAGER
    assert capture(
        ["options", "hccl_timeout"], 80, folder, NPUPROF_PAGER="/nowhere/pager"
    ).startswith("NAME")


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("one two three four", 10, "one two\n    three\n    four"),
        ("  why: one two three", 14, "  why: one two\n       three"),
        (
            "  set by       one two three",
            24,
            "  set by       one two\n               three".replace(
                "               ", "            "
            ),
        ),
        ("  12 | a line of a file that is long", 10, "  12 | a line of a file that is long"),
        ("averyveryverylongword", 10, "averyveryverylongword"),
        (
            "error: a/path/of/many/folders.sh:1:8: no",
            16,
            "error: a/path/\n       of/many/\n       folders.sh:1:8:\n       no",
        ),
        (
            "\033[1mone two\033[0m three",
            11,
            "\033[1mone two\033[0m\n    three".replace("    ", " " * 4),
        ),
        (
            "\u4f60\u597d \u4e16\u754c \u4f60\u597d",
            10,
            "\u4f60\u597d \u4e16\u754c\n    \u4f60\u597d",
        ),
    ],
)
def test_prose_is_wrapped_at_the_ends_of_words(text: str, width: int, expected: str) -> None:
    assert wrap_lines(text, width) == expected


def test_wide_characters_line_up_in_a_pipe() -> None:
    assert (
        Table([("\u4f60\u597d", "x"), ("abcde", "y")]).format_plain()
        == "\u4f60\u597d   x\nabcde  y\n"
    )


@pytest.mark.parametrize(
    ("arguments", "there", "absent"),
    [
        (("--deprecated",), "op_debug_level", "precision_mode_v2"),
        (("--since", "9.0.0"), "", "hccl_timeout"),
        (("--product", "Ascend910B2"), "hccl_timeout", ""),
        (("--risk", "numerics"), "precision_mode_v2", "hccl_timeout"),
    ],
)
def test_the_catalogue_is_filtered(
    run: Run, arguments: tuple[str, ...], there: str, absent: str
) -> None:
    names = [line.split()[0] for line in run("options", *arguments).out.splitlines()]
    assert names
    assert not there or there in names
    assert not absent or absent not in names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--risk", "numeric"), "did you mean 'numerics'"),
        (("--since", "latest"), "unknown CANN release"),
        (("--since", ""), "--since is empty"),
        (("--product", "910B2"), "did you mean 'Ascend910B2'"),
        (("nothing like it",), "nothing in the catalogue matches"),
        (("--deprecated", "--risk", "numerics", "--since", "9.2.0"), "the filters leave nothing"),
    ],
)
def test_filters_that_leave_nothing_say_why(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    result = run("options", *arguments)
    assert result.code == 2, result.err
    assert message in result.err


def test_the_bare_command_says_what_to_do_next(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "npuprof init creates one" in run().err
    (tmp_path / "profiles").mkdir()
    assert "profiles has no presets yet" in run().err
    build_store(tmp_path / "profiles", {"base/a": "", "bert": ""})
    assert "profiles has 2 presets: npuprof list, npuprof show bert" in run().err


@pytest.mark.parametrize(
    ("rows", "width", "lines"),
    [
        ([["key", "a b", "c"]], 80, ["key  a b  c"]),
        ([["key", "aaaa bbbb", "cc dd"]], 16, ["key  aaaa  cc dd", "     bbbb"]),
        ([["key", "a" * 9, "c"]], 12, ["key  aaaa  c", "     aaaa", "     a"]),
        ([["名前", "適合 設定", "c"]], 13, ["名前  適合  c", "      設定"]),
        ([["key of its own", "a", "b"]], 5, ["key of its own  a  b"]),
        ([["", "", ""]], 80, [""]),
        ([["[red]key", ":smile:", "b"]], 80, ["[red]key  :smile:  b"]),
        ([], 80, []),
    ],
)
def test_columns_give_way_and_the_first_is_whole(
    rows: list[list[str]], width: int, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert Table(rows, wrapping=2).format_terminal(coloured=False).splitlines() == lines


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("one  two", ["one", "  two"]),
        ("适合BERT训练，多设备。", ["适", "合", "BERT", "训", "练，", "多", "设", "备。"]),
        ("用（例）和「例」", ["用", "（例）", "和", "「例」"]),
        ("用 hccl_timeout 秒", ["用", " hccl_timeout", " 秒"]),
        ("設定する。ファイル", ["設", "定", "す", "る。", "フ", "ァ", "イ", "ル"]),
        ("학습용 설정", ["학습용", " 설정"]),
        ("ℓ’été", ["ℓ’été"]),
        ("（（", ["（（"]),
    ],
)
def test_a_line_may_end_between_characters_that_need_no_blanks(
    text: str, pieces: list[str]
) -> None:
    assert split_pieces(text) == pieces
    assert "".join(split_pieces(text)) == text


def test_a_paragraph_is_wrapped_once(tmp_path: Path) -> None:
    lines = strip_colours(capture(["rule", "NP302"], 60, tmp_path)).splitlines()
    first = lines.index("") + 1
    paragraph = lines[first : lines.index("", first)]
    assert len(paragraph) > 2
    assert {len(line) - len(line.lstrip()) for line in paragraph} == {4}


def test_no_value_is_cut_in_a_pipe(run: Run, tmp_path: Path) -> None:
    values = [format_toml_value(f"/{sign * 200}") for sign in "ab"]
    build_store(
        tmp_path / "profiles",
        {
            "x": f"options.dump_path = {values[0]}\n",
            "y": f'profile.extends = ["x"]\noptions.dump_path = {values[1]}\n',
        },
    )
    for arguments in (["explain", "y", "dump_path"], ["show", "y", "--origin"], ["diff", "x", "y"]):
        assert all(value in run(*arguments).out for value in values), arguments


@pytest.mark.parametrize(
    ("text", "line", "cited"),
    [
        pytest.param("a\nb = 2", 2, "  2 | b = 2\n    |   ^\n", id="the last, without a newline"),
        pytest.param("a", 2, "", id="a line that is no longer there"),
        pytest.param("x" * 400, 1, f"  1 | {'x' * 400}\n    |   ^\n", id="as long as is shown"),
        pytest.param("x" * 401, 1, "", id="a longer one"),
    ],
)
def test_a_finding_cites_its_line_unless_that_is_missing_or_long(
    text: str, line: int, cited: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.txt"
    file.write_text(text)
    finding = Finding("NP001", "it is wrong", where=Place(str(file), line, 3))
    shown = format_findings([finding]).partition("it is wrong\n")[2]
    assert shown == cited


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_moves_while_one_item_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, seconds = _Screen(), iter(range(0, 900, 3))
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    handler = signal.getsignal(signal.SIGALRM)
    for _ in track_items(["a", "b"], "files"):
        before = screen.getvalue()
        os.kill(os.getpid(), signal.SIGALRM)
        moved = screen.getvalue().removeprefix(before)
        assert moved.startswith("\r\033[Knpuprof: ")
    assert "1 of 2 files, 12 s" in before + moved
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
