"""``new``, ``set``, ``unset``: files, what is said, and what is refused."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.running import Run, Store

BASE = """\
[profile]
description = "base"
scenario = "training"

[options]
# seconds
hccl_timeout = 1836 # 27 * 68
profiling_options = '{"output":"/tmp/p","training_trace":"on"}'

[options.modify_mixlist]
black-list = { to-add = ["MatMul"] }

[env]
HCCL_ALGO = "ring"
"""
CHILD = """\
[profile]
description = "child"
extends = ["base"]

[options]
deterministic = 1
"""


@pytest.fixture
def folder(store: Store) -> Path:
    return store({"base": BASE, "team/child": CHILD})


def text(folder: Path, name: str = "base") -> str:
    return (folder / f"{name}.toml").read_bytes().decode()


# -- set ------------------------------------------------------------------------------------------


def test_a_value_is_set_and_the_change_shown(folder: Path, run: Run) -> None:
    result = run("set", "base", "hccl_timeout=1904")
    assert result.code == 0
    assert text(folder) == BASE.replace("1836 #", "1904 #")
    assert result.out.splitlines()[:2] == ["--- a/profiles/base.toml", "+++ b/profiles/base.toml"]
    assert "-hccl_timeout = 1836 # 27 * 68\n+hccl_timeout = 1904 # 27 * 68\n" in result.out
    assert "wrote profiles/base.toml" in result.err


def test_the_diff_is_a_patch_that_git_applies(folder: Path, run: Run) -> None:
    (folder / "base.toml").write_bytes(BASE.replace("\n", "\r\n").rstrip("\r\n").encode())
    before = (folder / "base.toml").read_bytes()
    result = run(
        "set", "base", "hccl_timeout=1904", "env.HCCL_ALGO=level0:NA;level1:NHR", "env.X=1"
    )
    after = (folder / "base.toml").read_bytes()
    (folder / "base.toml").write_bytes(before)
    subprocess.run(["git", "apply", "-"], input=result.out.encode(), check=True)
    assert (folder / "base.toml").read_bytes() == after


@pytest.mark.parametrize(
    ("values", "path", "value"),
    [
        (
            "modify_mixlist.white-list.to-add=['Cast']",
            ("options", "modify_mixlist", "white-list", "to-add"),
            ["Cast"],
        ),
        ("env.HCCL_ALGO=level0:ring", ("env", "HCCL_ALGO"), "level0:ring"),
        ('env.RANK_ID={ launcher = "rank" }', ("env", "RANK_ID"), {"launcher": "rank"}),
        ("append.options.dynamic_dims=[[9, 9]]", ("append", "options", "dynamic_dims"), [[9, 9]]),
        ("dynamic_dims=[[20, 20], [40, 40]]", ("options", "dynamic_dims"), [[20, 20], [40, 40]]),
        ("profiling_options.task_trace=on", ("options", "profiling_options", "task_trace"), "on"),
        ("profile.owner=nlp team", ("profile", "owner"), "nlp team"),
        ("profile.products=atlas-a2, atlas-a3", ("profile", "products"), ["atlas-a2", "atlas-a3"]),
        (
            "append.options.modify_mixlist.black-list.to-add=['X']",
            ("append", "options", "modify_mixlist", "black-list", "to-add"),
            ["X"],
        ),
    ],
)
def test_a_key_is_set_where_it_belongs_in_the_type_it_has(
    folder: Path, run: Run, values: str, path: tuple[str, ...], value: Any
) -> None:
    result = run("set", "base", values, "--no-check")
    assert result.code == 0, result.err
    written = tomllib.loads(text(folder))
    for part in path:
        written = written[part]
    assert written == value
    assert type(written) is type(value)
    assert "# 27 * 68" in text(folder)


def test_standard_input_is_edited_to_standard_output(folder: Path, run: Run) -> None:
    result = run("set", "-", "hccl_timeout=1904", stdin=BASE.encode())
    assert result.out == BASE.replace("1836 #", "1904 #")
    assert "+hccl_timeout = 1904" in result.err


def test_a_file_outside_any_store_is_edited(tmp_path: Path, run: Run, folder: Path) -> None:
    path = tmp_path / "alone.toml"
    path.write_text("[options]\nhccl_timeout = 1836\n")
    assert run("set", str(path), "hccl_timeout=1904").code == 0
    assert path.read_text() == "[options]\nhccl_timeout = 1904\n"
    assert run("set", "profiles/base.toml", "hccl_timeout=1904").code == 0
    assert "1904" in text(folder)


@pytest.mark.parametrize(
    ("arguments", "code", "hint"),
    [
        (("set", "base", "hccl_timout=3"), "NP201", "hccl_timeout"),
        (("set", "base", "deterministic=true"), "NP202", "write deterministic = 1"),
        (("set", "base", "hccl_timeout"), "NP009", "KEY=VALUE"),
        (("set", "base", "a..b=3"), "NP009", "key"),
        (("set", "base", "env.X=\udcff", "--no-check"), "NP921", ""),
        (("set", "base", "hccl_timeout.x=3"), "NP920", "as a whole"),
        (("set", "base", "profile.scenario=trainig"), "NP007", "training"),
        (("set", "base", "profile.extends=team/child"), "NP102", "break the circle at another"),
        (("set", "base", "profile.extends=nowhere"), "NP101", ""),
        (("set", "nowhere", "hccl_timeout=3"), "NP008", ""),
        (("set", "base+team/child", "hccl_timeout=3"), "NP920", "one of them"),
        (("set", "base@HEAD", "hccl_timeout=3"), "NP920", "restore"),
        (("unset", "base", "deterministic"), "NP924", ""),
        (("new", "base"), "NP923", ""),
        (("new", "x.toml"), "NP004", ""),
        (("new", "fresh", "--extends", "nowhere"), "NP101", ""),
        (("new", "fresh", "--extends", "base", "--extends", "base"), "NP104", ""),
    ],
)
def test_what_would_be_wrong_is_refused_and_nothing_written(
    folder: Path, run: Run, arguments: tuple[str, ...], code: str, hint: str
) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert code in result.err
    assert hint in result.err
    assert text(folder) == BASE
    assert text(folder, "team/child") == CHILD
    assert sorted(path.name for path in folder.rglob("*")) == ["base.toml", "child.toml", "team"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("set", "bert-training", "hccl_timeout=3"),
        ("unset", "bert-training", "op_compiler_cache_mode"),
        ("new", "mine"),
    ],
)
def test_the_shipped_presets_are_read_only(
    arguments: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    result = run(*arguments, "--store", "builtin:")
    assert result.code == 2
    assert "read-only" in result.err


def test_the_byte_order_mark_and_the_permissions_stay(folder: Path, run: Run) -> None:
    path = folder / "base.toml"
    path.write_bytes(b"\xef\xbb\xbf" + BASE.encode())
    path.chmod(0o640)
    assert run("set", "base", "hccl_timeout=1904").code == 0
    assert path.read_bytes() == b"\xef\xbb\xbf" + BASE.replace("1836 #", "1904 #").encode()
    assert path.stat().st_mode & 0o777 == 0o640


# -- unset ----------------------------------------------------------------------------------------


def test_what_is_inherited_is_cleared(folder: Path, run: Run) -> None:
    result = run("unset", "team/child", "hccl_timeout", "env.HCCL_ALGO")
    assert result.code == 0
    assert 'unset = ["hccl_timeout", "env.HCCL_ALGO"]\n' in text(folder, "team/child")
    assert "hccl_timeout is inherited" in result.err
    assert "hccl_timeout" not in run("show", "team/child").out
    assert run("unset", "team/child", "hccl_timeout").code == 2, (
        "it is neither set nor inherited any more"
    )
    (folder / "team/child.toml").write_text(CHILD.replace("deterministic", "hccl_timeout"))
    both = run("unset", "team/child", "hccl_timeout")
    assert "removed hccl_timeout" in both.err, both.err
    assert "is inherited" in both.err, both.err


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "[options]\nhccl_timeout = 1904 # ours\ndeterministic = 1\n",
            "[options]\ndeterministic = 1\n",
            "removed hccl_timeout",
        ),
        ('unset = ["hccl_timeout"]\n', "", "removed hccl_timeout from 'unset'"),
        (
            'unset = ["env.HCCL_ALGO", "options.hccl_timeout"]\n',
            'unset = ["env.HCCL_ALGO"]\n',
            "removed options.hccl_timeout from 'unset'",
        ),
        (
            'unset = ["hccl_timeout"]\n[options]\nhccl_timeout = 1904\n',
            "[options]\n",
            "removed hccl_timeout",
        ),
    ],
)
def test_what_a_preset_says_itself_is_removed_and_what_it_inherits_is_in_force_again(
    before: str, after: str, message: str, folder: Path, run: Run
) -> None:
    child = folder / "team/child.toml"
    head = '[profile]\nextends = ["base"]\n'
    child.write_text(head + before)
    done = run("unset", "team/child", "hccl_timeout", "--own", "--no-check")
    assert done.code == 0
    assert child.read_text() == head + after
    assert message in done.err
    assert "hccl_timeout = 1836" in run("show", "team/child").out
    assert run("unset", "team/child", "hccl_timeout", "--own").err.startswith(
        "error NP924: team/child says nothing itself of hccl_timeout"
    )


def test_a_part_of_a_value_is_removed_and_empty_tables_go_with_it(folder: Path, run: Run) -> None:
    assert run("unset", "base", "modify_mixlist.black-list.to-add").code == 0
    assert "modify_mixlist" not in text(folder)
    assert run("unset", "base", "profiling_options.training_trace").code == 0
    assert tomllib.loads(text(folder))["options"]["profiling_options"] == {"output": "/tmp/p"}


def test_what_an_override_still_sets_is_said(folder: Path, run: Run) -> None:
    (folder / "base.toml").write_text(
        BASE
        + '\n[[override]]\nmatch = { product = "atlas-a3" }\noptions = { hccl_timeout = 600 }\n'
    )
    result = run("unset", "base", "hccl_timeout")
    assert result.code == 0
    assert 'still set by override 1, where { product = "atlas-a3" } matches' in result.err


# -- new ------------------------------------------------------------------------------------------


def test_a_new_preset_extends_and_sets(folder: Path, run: Run) -> None:
    result = run(
        "new",
        "team/deep/leaf",
        "--extends",
        "base",
        "--extends",
        "team/child",
        "--description",
        'a "leaf"',
        "--set",
        "hccl_timeout=1904",
    )
    assert result.code == 0, result.err
    assert text(folder, "team/deep/leaf") == (
        '[profile]\ndescription = "a \\"leaf\\""\n'
        'extends = ["base", "team/child"]\n\n[options]\nhccl_timeout = 1904\n'
    )
    assert result.out.startswith("--- /dev/null\n+++ b/profiles/team/deep/leaf.toml\n")
    assert "1904" in run("show", "team/deep/leaf").out
