"""Findings of check and scan, selected by code and filtered by a baseline."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.building import build_store
from support.repositories import Repo
from support.running import Result, Run

#: NP201, an error; NP603, a warning.
OLD = '[options]\nhccl_timeot = 3\n[env]\nJOB_ID = "1"\n'
FILE = "old.json"


def list_codes(result: Result) -> list[str]:
    return sorted(
        finding["code"]
        for finding in json.loads(result.out)["findings"]
        if finding["severity"] != "info"
    )


@pytest.fixture
def old() -> Path:
    return build_store(Path("profiles"), {"a": OLD})


@pytest.mark.parametrize(
    ("arguments", "codes", "exit_code"),
    [
        ((), ["NP201", "NP603"], 1),
        (("--select", "NP603"), ["NP603"], 0),
        (("--select", "NP6"), ["NP603"], 0),
        (("--select", "NP6", "--select", "NP2", "--ignore", "NP201"), ["NP603"], 0),
        (("--ignore", "NP2"), ["NP603"], 0),
        (("--ignore", "NP2,NP6", "--strict"), [], 0),
    ],
)
def test_findings_are_chosen_by_their_codes(
    arguments: tuple[str, ...], codes: list[str], exit_code: int, old: Path, run: Run
) -> None:
    result = run("check", *arguments, "--format", "json")
    assert list_codes(result) == codes
    assert result.code == exit_code


@pytest.mark.parametrize(("verb", "flag"), [("check", "--select"), ("scan", "--ignore")])
@pytest.mark.parametrize("codes", ["NP2O1", "NP201,X", ","])
def test_a_code_that_there_is_not_is_told(
    codes: str, verb: str, flag: str, old: Path, run: Run
) -> None:
    result = run(verb, flag, codes)
    assert result.code == 2
    assert "there is no code" in result.err


def test_a_support_matrix_knows_codes_and_baselines(old: Path, run: Run) -> None:
    platforms = ("check", "--cann", "8.0.0", "--cann", "9.0.0", "--format", "json")
    every = list_codes(run(*platforms))
    assert "NP201" in every
    assert "NP201" not in list_codes(run(*platforms, "--ignore", "NP201"))
    assert set(list_codes(run(*platforms, "--select", "NP201"))) == {"NP201"}
    cells = json.loads(run(*platforms, "--ignore", "NP2").out)["presets"]
    assert not any(
        code.startswith("NP2")
        for row in cells
        for cell in row["platforms"]
        for code in cell["codes"]
    )
    assert run(*platforms, "--baseline", "b.json", "--write-baseline").code == 0
    known = run(*platforms[:-2], "--baseline", "b.json")
    assert known.code == 0
    assert "in the baseline" in known.err


def test_a_baseline_hides_what_it_has_and_only_shrinks(old: Path, run: Run) -> None:
    missing = run("check", "--baseline", FILE)
    assert missing.code == 2
    assert "there is no baseline old.json" in missing.err
    made = run("check", "--baseline", FILE, "--write-baseline", "--strict")
    assert made.code == 0
    assert "wrote old.json with 2" in made.err
    written = Path(FILE).read_text()
    rows = json.loads(written)["findings"]
    assert [(row["path"], row["code"], row["key"]) for row in rows] == [
        ("profiles/a.toml", "NP201", "hccl_timeot"),
        ("profiles/a.toml", "NP603", "env.JOB_ID"),
    ]
    same = run("check", "--baseline", FILE, "--strict")
    assert same.code == 0
    assert same.out == ""
    assert ", 2 in the baseline" in same.err

    build_store(Path("profiles"), {"a": "# moved by a line\n" + OLD, "b": OLD})
    more = run("check", "--baseline", FILE)
    assert more.code == 1
    assert "profiles/b.toml" in more.out
    assert "profiles/a.toml" not in more.out
    again = run("check", "--baseline", FILE, "--write-baseline")
    assert again.code == 1, "what is new is never added"
    assert Path(FILE).read_text() == written, "what is new is never added"

    build_store(Path("profiles"), {"a": '[env]\nJOB_ID = "1"\n', "b": ""})
    gone = run("check", "--baseline", FILE)
    assert gone.code == 0
    assert ", 1 in the baseline, 1 gone from it" in gone.err
    assert "NP707" in run("check", "--baseline", FILE, "--severity", "info").out
    assert "1 taken out of it" in run("check", "--baseline", FILE, "--write-baseline").err
    assert [row["code"] for row in json.loads(Path(FILE).read_text())["findings"]] == ["NP603"]
    build_store(Path("profiles"), {"a": OLD})
    assert run("check", "--baseline", FILE).code == 1, (
        "what was taken out is told when it comes back"
    )


@pytest.mark.parametrize("arguments", [("a",), ("--select", "NP1"), ("--product", "atlas-a2")])
def test_what_was_not_judged_stays_in_a_baseline(
    arguments: tuple[str, ...], old: Path, run: Run
) -> None:
    build_store(Path("profiles"), {"b": OLD})
    run("check", "--baseline", FILE, "--write-baseline")
    written = Path(FILE).read_text()
    build_store(Path("profiles"), {"b": ""})
    result = run("check", *arguments, "--baseline", FILE, "--write-baseline")
    assert "gone" not in result.err, arguments
    assert Path(FILE).read_text() == written, arguments


def test_a_baseline_counts_equal_findings(run: Run) -> None:
    line = "export HCCL_EXEC_TIMEOUT=nonsense\n"
    Path("job.sh").write_text(line)
    assert run("scan", "job.sh").code == 1
    run("scan", "--baseline", FILE, "--write-baseline")
    assert run("scan", "--baseline", FILE).code == 0
    Path("job.sh").write_text(f"{line}run\n{line}")
    assert run("scan", "--baseline", FILE).code == 1


def test_a_store_that_cannot_be_read_makes_no_baseline(old: Path, run: Run) -> None:
    build_store(Path("profiles"), {"b": 'profile.extends = ["gone"]\n'})
    result = run("check", "--baseline", FILE, "--write-baseline")
    assert result.code == 2
    assert "NP101" in result.err
    assert not os.path.exists(FILE)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="an empty file"),
        pytest.param("[]", id="a list"),
        pytest.param('{"schema": "x", "findings": []}', id="another schema"),
        pytest.param('{"schema": "npuprof.baseline/1"}', id="no findings"),
        pytest.param(
            '{"schema": "npuprof.baseline/1", "findings": [1]}', id="a finding that is a number"
        ),
        (
            pytest.param(
                '{"schema": "npuprof.baseline/1", "findings": [{"path": "", "code": "", "key": "", '
                '"message": "", "count": 0}]}',
                id="a finding of no time",
            )
        ),
    ],
)
@pytest.mark.parametrize("flags", [[], ["--write-baseline"]])
def test_a_file_that_is_no_baseline_is_told(
    flags: list[str], text: str, old: Path, run: Run
) -> None:
    Path(FILE).write_text(text)
    result = run("check", "--baseline", FILE, *flags)
    assert result.code == 2, result.err
    assert "NP015" in result.err, result.err
    assert Path(FILE).read_text() == text


# -- files under other names ----------------------------------------------------------------------

#: Whose findings name the preset and its parent: the child overrules what the base locks.
PARENT = '[profile]\nlocked = ["hccl_timeout"]\n[options]\nhccl_timeout = 600\nhccl_timeot = 3\n'
CHILD = '[profile]\nextends = ["base/old"]\n[options]\nhccl_timeout = 700\n'


@pytest.mark.parametrize(
    ("also", "exit_code", "note"),
    [
        pytest.param({}, 0, "profiles/b.toml as profiles/a.toml", id="another name"),
        pytest.param(
            {"b": "# edited\n" + OLD.replace("JOB_ID", "USER_ID")},
            0,
            "knows profiles",
            id="edited as well, for the better",
        ),
        pytest.param(
            {"b": OLD.replace("hccl_timeot", "hccl_timout")},
            1,
            "knows profiles",
            id="edited as well, for the worse",
        ),
        pytest.param({"c": OLD}, 1, "knows profiles", id="moved and copied"),
        pytest.param(
            {"b": '[options]\nhccl_timeuot = "x"\n'},
            1,
            "2 gone from it",
            id="gone, and something else came",
        ),
    ],
)
def test_what_a_baseline_has_stays_known_where_git_moved_the_file(
    also: dict[str, str], exit_code: int, note: str, old: Path, run: Run
) -> None:
    assert run("check", "--baseline", FILE, "--write-baseline").code == 0
    Path("profiles/a.toml").rename("profiles/b.toml")
    build_store(Path("profiles"), also)
    result = run("check", "--baseline", FILE)
    assert result.code == exit_code, result.err + result.out
    assert note in result.err, result.err + result.out
    if exit_code == 0:
        run("check", "--baseline", FILE, "--write-baseline")
        again = run("check", "--baseline", FILE, "--strict")
        assert again.code == 0, "the baseline has the new name"
        assert "knows profiles" not in again.err, "the baseline has the new name"
        assert "gone" not in again.err, "the baseline has the new name"


@pytest.mark.parametrize("place", [FILE, "ci/baseline"])
def test_a_baseline_knows_a_renamed_preset_also_where_messages_name_it(
    place: str, run: Run, repo: Repo
) -> None:
    repo.commit({"base/old": PARENT, "child": CHILD, "other": OLD})
    os.makedirs("ci", exist_ok=True)
    assert run("check", "--baseline", place, "--write-baseline").code == 0
    before = Path(place).read_text()
    assert "base/old" in before.replace("profiles/base/old.toml", ""), "a message names the parent"
    assert run("rename", "base/old", "team/new").code == 0
    assert Path(place).read_text() == before
    for arguments, is_moved in (((), True), (("--write-baseline",), True), ((), False)):
        same = run("check", "--baseline", place, "--strict", *arguments)
        assert same.code == 0, same.err
        assert same.out == "", same.err
        assert "gone" not in same.err, same.err
        assert ("which knows" in same.err) == is_moved, same.err
