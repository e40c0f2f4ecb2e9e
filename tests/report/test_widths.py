# ruff: noqa: RUF001 (marks of other scripts are what is tested)
"""Every reading verb on terminals of 80 and 120 columns, with long names and Chinese text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from npuprof.report.text import measure_width
from npuprof.report.wrapping import fit_excerpt, wrap_lines
from support.captured import capture, strip_colours
from support.repositories import Repo

LONG = "a-preset-of-a-name-that-nobody-would-type/" * 2 + "end"
WORDS = (
    "所有训练任务共用的基础配置：混合精度、通信超时以及日志级别，"
    "由平台组维护，修改前请先与负责人沟通。"
)
STORE = {
    "base": f'[profile]\ndescription = "{WORDS * 2}"\nscenario = "training"\nowner = "平台组"\n'
    "[options]\nhccl_timeout = 600\n"
    '[env]\nHCCL_CONNECT_TIMEOUT = "300"\n',
    LONG: '[profile]\nextends = ["base"]\n'
    f'description = "{"a description that goes on and on " * 8}"\n'
    "[options]\nhccl_timeout = 7\n"
    f'enable_dump = true\ndump_path = "/{"deep/" * 40}x"\nnosuch_option_{"x" * 70} = 1\n',
    "nlp/gpt": '[profile]\nextends = ["base"]\n[options.modify_mixlist]\n'
    f"black-list = {{ to-add = {[f'算子{number}' for number in range(30)]} }}\n",
}
SCRIPT = (
    "import npu_bridge\nc = DumpConfig(enable_dump=True, dump_path='"
    + "/long" * 20
    + "', dump_pth='"
    + "x" * 90
    + "')\n"
)
#: What stands on a line that is too wide, to be copied as it is: one word; a path, a key, a command
#: or a patch.
WHOLE = re.compile(r"\s*(?:[|`] *-- )?\S+$| {4}[$>] |[-+ @](?![- ])|diff --git|[a-z_.-]+ = ")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repo = Repo(tmp_path_factory.mktemp("terminal") / "repo")
    repo.commit(STORE, WORDS)
    repo.release("base", "1.0.0")
    repo.commit({"base": STORE["base"].replace("600", "900")}, "a subject of many words " * 8)
    (repo.folder / "train.py").write_text(SCRIPT)
    return repo.folder


#: What is typed at a terminal of 80 columns, and at one of 120.
TYPED = [
    ["list"],
    ["list", "--tree"],
    ["show", LONG],
    ["explain", "nlp/gpt", "modify_mixlist"],
    ["check"],
    ["diff", "base", LONG, "nlp/gpt"],
    ["diff", "--rev", "HEAD~1"],
    ["log", "base", "hccl_timeout"],
    ["blame", LONG],
    ["options", "dump"],
    ["option", "modify_mixlist"],
    ["rule", "NP202"],
    ["scan", "train.py"],
    ["doctor"],
    ["whatran", LONG],
    ["migrate", "--all", "--cann", "9.0.0", "--dry-run"],
    ["release", "--all", "--dry-run"],
    [],
    ["help", "usage"],
    ["check", "--help"],
    ["explain", "base", "hccl_timeuot"],
]


@pytest.mark.parametrize(
    ("typed", "columns"), [(typed, (80, 120)[place % 2]) for place, typed in enumerate(TYPED)]
)
def test_no_row_of_a_table_and_no_sentence_is_wider_than_the_terminal(
    world: Path, typed: list[str], columns: int
) -> None:
    shown = strip_colours(
        capture(
            typed,
            columns,
            world,
            NO_COLOR="1",
            LANG="C.UTF-8",
            XDG_STATE_HOME=str(world.parent / "state"),
        )
    )
    assert shown.strip()
    assert [
        line
        for line in shown.splitlines()
        if measure_width(line) > columns and not WHOLE.match(line)
    ] == []


def test_what_a_command_of_a_page_prints_is_wrapped_and_what_is_typed_is_not(world: Path) -> None:
    from npuprof import docs
    from npuprof.report.tables import Markdown

    text = (
        f"```console\n$ npuprof show {LONG}{LONG} \\\n>   --origin {LONG}{LONG}\n"
        f"{'some words ' * 20}\n```\n"
    )
    page = Markdown(text, tuple(docs.split_code(text)), lambda label, target: label)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "60")
        lines = page.format_terminal(False).splitlines()
    assert lines[:2] == [f"    $ npuprof show {LONG}{LONG} \\", f"    >   --origin {LONG}{LONG}"]
    assert len(lines) > 5
    assert all(measure_width(line) <= 60 for line in lines[2:])


def test_a_remark_at_the_end_of_a_wide_line_of_code_stands_above_it() -> None:
    from npuprof import docs
    from npuprof.report.tables import Markdown

    note = "words of a remark that goes on and on"
    text = (
        f'```toml\n[options]     # near\nlocked = ["hccl_timeout"]        # {note}\n'
        f'  a = "x  # {note} y"\n# {note} {note}\n```\n'
    )
    page = Markdown(text, tuple(docs.split_code(text)), lambda label, target: label)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "48")
        shown = page.format_terminal(False)
        patch.setenv("COLUMNS", "90")
        assert 'locked = ["hccl_timeout"]        # words' in page.format_terminal(False)
    lines = [line.removeprefix("    ") for line in shown.splitlines()]
    assert lines[:3] == ["[options]     # near", f"# {note}", 'locked = ["hccl_timeout"]']
    assert f"# {note} {note}" in lines


class WideTextCase(NamedTuple):
    text: str
    at: int
    width: int
    shown: tuple[str, str] | None


@pytest.mark.parametrize(
    ("text", "at", "width", "shown"),
    [
        WideTextCase(
            text="abcdefghij" * 3,
            at=2,
            width=40,
            shown=None,
        ),
        WideTextCase(
            text="abcdefghij" * 5,
            at=2,
            width=36,
            shown=("  7 | abcdefghijabcdefghijabcdefg...", "    |   ^"),
        ),
        WideTextCase(
            text="abcdefghij" * 9,
            at=45,
            width=36,
            shown=("  7 | ...defghijabcdefghijabcdefg...", "    |                ^"),
        ),
        WideTextCase(
            text="abcdefghij" * 9,
            at=89,
            width=36,
            shown=("  7 | ...hijabcdefghij", "    |                ^"),
        ),
        WideTextCase(
            text="算子" * 30,
            at=60,
            width=36,
            shown=None,
        ),
    ],
)
def test_of_a_wide_line_of_a_file_the_part_around_the_caret_is_shown(
    text: str, at: int, width: int, shown: tuple[str, str] | None
) -> None:
    source_lines = (f"  7 | {text}", f"    | {' ' * at}^")
    assert (
        fit_excerpt(*source_lines, width) == shown
        if shown
        else wrap_lines("\n".join(source_lines), width) == "\n".join(source_lines)
    )
    if shown:
        assert wrap_lines("\n".join((*source_lines, "  why: it is so")), width).split("\n") == [
            *shown,
            "  why: it is so",
        ]
        assert max(map(measure_width, shown)) <= width
