"""A hundred common mistakes, each with its message: what is wrong, where, and what to do."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.repositories import Repo
from support.running import Run

BERT = (
    '[profile]\nscenario = "training"\n\n[options]\n'
    'precision_mode_v2 = "mixed_float16"\nhccl_timeout = 600\n'
)

MISTAKES: dict[str, list[list[Any]]] = tomllib.loads(
    Path(__file__).with_name("mistakes.toml").read_text()
)

#: What is typed, the exit code, and what has to be said.
TYPED: list[list[Any]] = [
    *MISTAKES["typed"],
    (
        "sweep bert --vary deterministic=0,1 --devices " + "9" * 5000 + " -- true",
        2,
        "names no devices",
    ),
]


def test_a_preset_is_found_by_the_last_part_of_its_name(folder: Path, run: Run) -> None:
    (folder / "profiles/nlp").mkdir()
    (folder / "profiles/nlp/gpt.toml").write_text(BERT)
    assert "did you mean 'nlp/gpt'?" in run("show", "gpt").err
    (folder / "profiles/child.toml").write_text('[profile]\nextends = ["gpt"]\n')
    assert "did you mean 'nlp/gpt'?" in run("check", "child").out


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "5",
        '"x"',
        "null",
        '{"schema": "npuprof.baseline/1", "findings": 5}',
        '{"schema": "npuprof.baseline/1", "findings": [5]}',
    ],
)
def test_what_is_no_baseline_is_told_without_words_of_python(
    folder: Path, run: Run, text: str
) -> None:
    Path("base.json").write_text(text)
    result = run("check", "--baseline", "base.json")
    assert result.code == 2, result.err
    assert "base.json is not a baseline\n" in result.err, result.err


#: The same beside a source, ``team``, that has a preset ``bert``.
TYPED_BESIDE_A_SOURCE = [
    ("show team:", 2, "no preset 'team:'", "npuprof list --store team:"),
    (
        "trust nope",
        2,
        "the store 'nope' is not a folder",
        "STORE is the folder of a store, or a source",
    ),
    ("trust team", 2, "write team: for the store of that source"),
    ("list --store team", 2, "It was named by --store", "write team: for the store"),
]


@pytest.fixture
def folder(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Path:
    repo.commit({"bert": BERT, "x": BERT, "held": "[env]\nMY_VAR = 1\n"})
    repo.release("held", "1.0.0")
    (repo.folder / "profiles/draft.toml").write_text(BERT)
    (repo.folder / "other").mkdir()
    (repo.folder / "other/d.toml").write_text(BERT)
    (repo.folder / "other/d.txt").write_text("x = 1\n")
    (repo.folder / "empty").mkdir()
    (repo.folder / "train.py").write_text("import tensorflow as tf\n")
    monkeypatch.chdir(repo.folder)
    return repo.folder


@pytest.mark.parametrize(
    ("typed", "code", "messages"), [(typed, code, messages) for typed, code, *messages in TYPED]
)
def test_a_mistake_on_the_command_line_is_answered_in_words(
    folder: Path, run: Run, typed: str, code: int, messages: list[str]
) -> None:
    result = run(*shlex.split(typed))
    assert result.code == code, result.err
    output = result.out + result.err
    assert not [message for message in messages if message not in output], output
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("typed", "code", "messages"),
    [(typed, code, messages) for typed, code, *messages in TYPED_BESIDE_A_SOURCE],
)
def test_a_mistake_beside_a_source_names_it(
    folder: Path, tmp_path: Path, run: Run, typed: str, code: int, messages: list[str]
) -> None:
    team = Repo(tmp_path / "team")
    team.commit({"bert": BERT})
    assert run("source", "add", "team", team.folder.as_uri()).code == 0
    result = run(*shlex.split(typed))
    assert result.code == code, result.err
    assert [message for message in messages if message not in result.out + result.err] == [], (
        result.err
    )


#: A text, the line and column of what is wrong, and what has to be said.
WRITTEN: list[list[Any]] = [
    *MISTAKES["written"],
    (
        f"[options]\nx = '['\ny = {'[' * 1500}{']' * 1500}\n",
        3,
        5,
        "the brackets are nested too deeply",
    ),
    (f"[options]\n{'.'.join('a' * 150)} = 1\n", 2, 1, "a key has too many parts"),
]


@pytest.mark.parametrize(
    ("text", "line", "column", "messages"), [(row[0], row[1], row[2], row[3:]) for row in WRITTEN]
)
def test_a_mistake_in_a_file_is_answered_where_it_stands(
    folder: Path, run: Run, text: str, line: int, column: int, messages: tuple[str, ...]
) -> None:
    Path("profiles/it.toml").write_text(text)
    result = run("check", "it")
    assert f"profiles/it.toml:{line}:{column}: error" in result.out + result.err, (
        result.out + result.err
    )
    missing = [message for message in messages if message not in result.out + result.err]
    assert not missing, result.out + result.err


def test_a_ci_sample_joins_a_store_that_is_there(folder: Path, run: Run) -> None:
    arguments = (
        "init",
        "--ci",
        "gitlab",
        "--install",
        f"git+https://git.example.org/npuprof@{'0' * 40}",
    )
    result = run(*arguments)
    assert result.code == 0
    assert result.out == ".gitlab/presets.yml\n"
    assert run(*arguments).code == 2


def test_init_says_what_commit_leaves_behind(
    repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo.folder)
    (repo.folder / "new").mkdir()
    result = run("init", "new")
    assert result.code == 0
    assert "to commit these files: git -C new add" in result.err
    assert ".gitattributes" in result.err


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("scenario", 'profile.scenario = "training"'),
        ("profile.cann", "profile.cann is not set"),
        ("profile.versions", "profile.versions is not set"),
    ],
)
def test_what_a_preset_is_for_is_explained_too(
    folder: Path, run: Run, key: str, message: str
) -> None:
    assert message in run("explain", "bert", key).out


@pytest.mark.parametrize("path", ["other/d.txt", "program", "program.py", "nosuch.py"])
def test_why_a_script_cannot_be_read_is_one_message(folder: Path, run: Run, path: str) -> None:
    for program in ("program", "program.py"):
        (folder / program).write_bytes(b"\x7fELF\2\1\1" + bytes(200))
    result = run("import", path)
    assert result.code == 2, result.err
    assert result.err.count("NP8") == 1, result.err
    assert ("binary" in result.err) == path.startswith("program"), result.err


@pytest.mark.parametrize("arguments", [["x"], ["x", "1.0.0"]])
def test_a_tag_without_a_message_is_no_release_and_in_the_way_of_one(
    folder: Path, repo: Repo, run: Run, arguments: list[str]
) -> None:
    repo.git("tag", "x/v1.0.0")
    result = run("release", *arguments)
    assert result.code == 2, result.err
    assert "the tag x/v1.0.0 exists already and is not a release\n" in result.err, result.err
    assert "delete it with git tag -d x/v1.0.0, or give another number" in result.err


def test_a_sweep_of_what_is_not_there_says_so_alone(folder: Path, run: Run) -> None:
    messages = run("sweep", "bret", "--vary", "hccl_timeout=1,2", "--", "true").err
    assert messages.count("error NP") == 1, messages
    assert "no combination" not in messages, messages


def test_a_word_that_the_catalogue_has_is_not_offered_in_its_own_place(
    folder: Path, run: Run
) -> None:
    messages = run("options", "hccl", "--since", "9.2.0", "--risk", "numerics").err
    assert "omit a filter" in messages, messages
    assert "did you mean" not in messages, messages
