"""Findings that somebody has accepted: in a preset, in npuprof.toml, in a script.

What holds for whom, and what never.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import npuprof
from npuprof.model import NpuprofError
from support.building import build_store
from support.repositories import Repo
from support.running import Run

#: A preset that gives NP603 and NP370, a warning of one variable and one of a rule.
JOB = 'env.JOB_ID = "1"\n'


def accept(*codes: str, extends: str = "") -> str:
    entries = ", ".join(f'{{ code = "{code}", reason = "we know" }}' for code in codes)
    return f"profile.ignore = [{entries}]\n" + (
        f"profile.extends = [{extends}]\n" if extends else ""
    )


def codes(presets: Mapping[str, str], name: str, project: str = "", **requested: Any) -> set[str]:
    """Return the codes of the errors and warnings of a preset of a store with an npuprof.toml."""
    build_store(Path("profiles"), presets)
    Path("npuprof.toml").write_text(project)
    config = npuprof.open_store().resolve(name, **requested)
    return {finding.code for finding in npuprof.check(config) if finding.severity != "info"}


GLOB = '[[ignore]]\ncode = "NP603"\nreason = "one job"\npresets = ["a*"]\n'
RULE = "[[rule]]\ncode = 'TEAM-1'\nrequire = 'deterministic == 1'\n"
BROKEN = "options.enable_dump = true\n"  # NP306: a rule that reads dump_path too


class AcceptanceCase(NamedTuple):
    presets: dict[str, str]
    project: str
    name: str
    is_reported: bool


@pytest.mark.parametrize(
    ("presets", "project", "name", "is_reported"),
    [
        AcceptanceCase(
            presets={"a": JOB},
            project="",
            name="a",
            is_reported=True,
        ),
        AcceptanceCase(
            presets={"a": accept("NP603") + JOB},
            project="",
            name="a",
            is_reported=False,
        ),
        AcceptanceCase(
            presets={"a": accept("NP602") + JOB},
            project="",
            name="a",
            is_reported=True,
        ),
        # in heirs for its values and those of its ancestors; not for theirs
        AcceptanceCase(
            presets={"a": accept("NP603") + JOB, "b": 'profile.extends = ["a"]\n'},
            project="",
            name="b",
            is_reported=False,
        ),
        AcceptanceCase(
            presets={
                "a": accept("NP603") + JOB,
                "b": f'profile.extends = ["a"]\n{JOB.replace("1", "2")}',
            },
            project="",
            name="b",
            is_reported=True,
        ),
        AcceptanceCase(
            presets={"a": JOB, "b": accept("NP603", extends='"a"')},
            project="",
            name="b",
            is_reported=False,
        ),
        AcceptanceCase(
            presets={"a": JOB, "b": accept("NP603", extends='"a"')},
            project="",
            name="a",
            is_reported=True,
        ),
        AcceptanceCase(
            presets={"a": JOB, "b": accept("NP603"), "c": 'profile.extends = ["a", "b"]\n'},
            project="",
            name="c",
            is_reported=True,
        ),  # b is no heir of a
        # by a glob
        AcceptanceCase(
            presets={"a": JOB},
            project=GLOB,
            name="a",
            is_reported=False,
        ),
        AcceptanceCase(
            presets={"b": JOB},
            project=GLOB,
            name="b",
            is_reported=True,
        ),
        AcceptanceCase(
            presets={"a": JOB, "b": 'profile.extends = ["a"]\n'},
            project=GLOB,
            name="b",
            is_reported=False,
        ),
        AcceptanceCase(
            presets={"a": "", "b": f'profile.extends = ["a"]\n{JOB}'},
            project=GLOB,
            name="b",
            is_reported=True,
        ),
    ],
)
def test_a_finding_is_accepted_for_the_values_of_who_accepts_it(
    presets: dict[str, str], project: str, name: str, is_reported: bool
) -> None:
    assert ("NP603" in codes(presets, name, project)) == is_reported


@pytest.mark.parametrize(
    ("heir", "is_reported"),
    [
        ("", False),
        ("options.hccl_timeout = 3\n", False),
        ("options.deterministic = 0\n", True),
        ('profile.unset = ["deterministic"]\n', True),  # the winning word is the heir's
    ],
)
def test_a_rule_is_accepted_for_all_the_settings_that_it_reads(
    heir: str, is_reported: bool
) -> None:
    presets = {
        "a": accept("TEAM-1") + "options.deterministic = 0\n",
        "b": f'profile.extends = ["a"]\n{heir}',
    }
    assert ("TEAM-1" in codes(presets, "b", RULE)) == is_reported


def test_a_rule_is_accepted_in_heirs_if_nothing_that_it_reads_is_set() -> None:
    heir = 'profile.extends = ["{}"]\noptions.hccl_timeout = 3\n'
    presets = {"a": accept("TEAM-1"), "b": heir.format("a"), "c": heir.format("d"), "d": ""}
    assert "TEAM-1" not in codes(presets, "b", RULE)
    assert "TEAM-1" in codes(presets, "c", RULE)


@pytest.mark.parametrize("own", [True, False], ids=["its own", "of a child"])
def test_an_override_that_never_applies_is_accepted_in_the_preset_that_accepts_it(
    own: bool,
) -> None:
    claim = 'profile.products = ["atlas-a2"]\n'
    dead = '[[override]]\nmatch.product = "atlas-a3"\noptions.hccl_timeout = 3\n'
    presets = {
        "a": accept("NP711") + claim + (dead if own else ""),
        "b": f'profile.extends = ["a"]\n{dead}',
    }
    assert ("NP711" in codes(presets, "a" if own else "b")) is not own


def test_what_the_command_line_and_mixins_set_is_told_all_the_same() -> None:
    presets = {"a": accept("NP603") + JOB, "mix": JOB.replace("1", "3")}
    assert "NP603" not in codes(presets, "a")
    assert "NP603" in codes(presets, "a", mixins=["mix"])
    assert "TEAM-1" in codes({"c": accept("TEAM-1")}, "c", RULE, set={"deterministic": 0})


def test_a_context_that_an_heir_sets_is_told_beside_one_that_is_accepted() -> None:
    base = accept("TEAM-1") + "options.deterministic = 0\n"
    heir = (
        'profile.extends = ["a"]\n[[override]]\nmatch = { product = "atlas-a3" }\n'
        "options.hccl_timeout = 3\noptions.deterministic = 0\n"
    )
    build_store(Path("profiles"), {"a": base, "b": heir})
    Path("npuprof.toml").write_text(RULE)
    found = [
        finding
        for finding in npuprof.check(npuprof.open_store().resolve("b"))
        if finding.code == "TEAM-1"
    ]
    assert [finding.message for finding in found] == ["deterministic == 1 is required on atlas-a3"]


@pytest.mark.parametrize(
    ("code", "preset"),
    [
        ("NP607", 'env.HOME = "/x"\n'),
        ("NP105", 'profile.extends = ["base"]\noptions.hccl_timeout = 4\n'),
        ("NP413", ""),
        ("NP912", ""),
        ("NP9999", ""),
        ("NP101", ""),
    ],
)
def test_trust_locks_and_what_a_target_refuses_cannot_be_accepted(code: str, preset: str) -> None:
    presets = {
        "base": 'profile.locked = ["hccl_timeout"]\noptions.hccl_timeout = 3\n',
        "a": accept(code) + preset,
    }
    assert codes(presets, "a") >= ({code, "NP706"} if preset else {"NP706"})
    with pytest.raises(NpuprofError, match="NP040"):
        codes({"a": preset}, "a", GLOB.replace("NP603", code))


@pytest.mark.parametrize(
    ("ignore", "message"),
    [
        ("profile.ignore = 1\n", "must be a list of tables with code and reason"),
        ('profile.ignore = [{ code = "NP603" }]\n', "an ignore needs a reason"),
        (
            'profile.ignore = [{ code = "NP603", reason = " " }]\n',
            "'reason' of an ignore must be text",
        ),
        ('profile.ignore = [{ reason = "x" }]\n', "an ignore needs a code"),
        (
            'profile.ignore = [{ code = "NP603", reason = "x", why = 1 }]\n',
            "unknown key 'why' in ignore",
        ),
    ],
)
def test_what_ignore_cannot_say_is_told(ignore: str, message: str) -> None:
    with pytest.raises(NpuprofError, match=message):
        codes({"a": ignore}, "a")


def test_what_is_accepted_is_counted_and_what_no_longer_occurs_is_a_note(run: Run) -> None:
    store = {
        "a": accept("NP603", "NP602") + JOB,
        "b": 'profile.extends = ["a"]\n',
        "x": JOB.replace("1", "2"),
    }
    build_store(Path("profiles"), store)
    Path("npuprof.toml").write_text(GLOB.replace("a*", "x") + GLOB.replace("a*", "nobody"))
    assert ", 2 accepted" in run("check").err
    notes = [
        finding
        for finding in json.loads(run("check", "--format", "json").out)["findings"]
        if finding["code"] == "NP705"
    ]
    assert [(note["path"], note["line"], note["severity"]) for note in notes] == [
        ("profiles/a.toml", 1, "info")
    ]
    assert "NP705" not in run("check", "a", "--severity", "info").out  # an heir may need it
    assert run("check", "--strict", "x").code == 0
    assert run("check", "--strict", "x", "--store", "builtin:").code == 2


@pytest.mark.parametrize(
    ("globs", "idle"),
    [
        (["a"], []),
        (["a", "b*"], ["b*"]),
        (["team/*"], []),
        (["team/**"], []),
        (["*"], []),
        (["taem/*"], ["taem/*"]),
        (["team/y", "A"], ["team/y", "A"]),
    ],
)
@pytest.mark.parametrize(
    "table",
    [
        "[[rule]]\ncode = 'T-1'\nrequire = 'graph_run_mode is unset'\n",
        "[[ignore]]\ncode = 'NP603'\nreason = 'r'\n",
    ],
)
def test_a_glob_of_npuprof_toml_that_means_no_preset_is_a_note(
    table: str, globs: list[str], idle: list[str], run: Run
) -> None:
    build_store(Path("profiles"), {"a": JOB, "team/x": JOB.replace("1", "2")})
    Path("npuprof.toml").write_text(f"{table}presets = {globs}\n")
    notes = [
        finding
        for finding in json.loads(run("check", "--format", "json").out)["findings"]
        if finding["code"] == "NP709"
    ]
    assert [(note["path"], note["line"], note["severity"]) for note in notes] == [
        ("npuprof.toml", 4, "info")
    ] * len(idle)
    assert all(repr(glob) in note["message"] for glob, note in zip(idle, notes, strict=True))
    assert "NP709" not in run("check", "a", "--severity", "info").out


def test_an_ignore_is_text(repo: Repo, run: Run) -> None:
    repo.commit({"a": JOB})
    before = npuprof.open_store().resolve("a")
    assert run("release", "a", "1.0.0").code == 0
    repo.commit({"a": accept("NP603") + JOB})
    after = npuprof.open_store().resolve("a")
    assert before.digest == after.digest
    assert before.preset_digest == after.preset_digest
    assert "1.0.1" in run("release", "a", "--dry-run").out
    assert run("set", "a", "hccl_timeout=4").code == 0
    assert 'code = "NP603"' in (repo.folder / "profiles/a.toml").read_text()


def test_a_source_does_not_silence_what_a_consumer_sets(
    tmp_path: Path, run: Run, committer: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    team, app = Repo(tmp_path / "team"), Repo(tmp_path / "app")
    (team.folder / "npuprof.toml").write_text(GLOB.replace("NP603", "NP602"))
    both = f"{JOB}env.RANK_ID = 3\n"  # NP603, NP602
    team.commit({"a": accept("NP603") + both})
    app.commit(
        {"own": 'profile.extends = ["team:a"]\n', "set": f'profile.extends = ["team:a"]\n{both}'}
    )
    monkeypatch.chdir(app.folder)
    assert run("source", "add", "team", f"file://{team.folder}", "--rev", "main").code == 0
    silent = run("check", "own").out
    assert "NP603" not in silent, silent
    assert "NP602" not in silent, silent
    output = run("check", "set").out
    assert "NP603" in output, output
    assert "NP602" in output, output


# -- scripts --------------------------------------------------------------------------------------

HEAD = """import tensorflow as tf
config = tf.compat.v1.ConfigProto()
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
"""
LINE = 'custom_op.parameter_map["hccl_timeot"].i = 600'


@pytest.mark.parametrize(
    ("line", "codes_told"),
    [
        (LINE, ["NP201"]),
        (f"{LINE}  # npuprof: ignore[NP201] a private option", []),
        (f"# npuprof: ignore[NP201] a private option\n{LINE}", []),
        (f"# npuprof: ignore[NP202, NP201] a private option\n{LINE}", ["NP705"]),
        (
            f"# npuprof: ignore[NP202] x\n# npuprof: ignore[NP201] a private option\n{LINE}",
            ["NP705"],
        ),
        (f"# npuprof: ignore[NP201] a private option\nx = 1\n{LINE}", ["NP201", "NP705"]),
        (f"x = 1  # npuprof: ignore[NP201] not for the next line\n{LINE}", ["NP201", "NP705"]),
        (f"{LINE}  # npuprof: ignore[NP201]", ["NP201", "NP706"]),
        (f"{LINE}  # npuprof: ignore it", ["NP201", "NP706"]),
        (f't = "# npuprof: ignore[NP201] a text"; {LINE}', ["NP201"]),
        (f"{LINE}  # npuprof: ignore[NP607] x", ["NP201", "NP706"]),
    ],
)
def test_a_remark_in_a_script_accepts_what_stands_in_its_line_or_below(
    line: str, codes_told: list[str], run: Run
) -> None:
    Path("train.py").write_text(f"{HEAD}{line}\n")
    result = run("scan", "train.py", "--format", "json")
    found = [finding["code"] for finding in json.loads(result.out)["findings"]]
    assert sorted(code for code in found if code in ("NP201", "NP705", "NP706")) == codes_told


REMARK = "# npuprof: ignore[NP812] ours"
CALL = (
    "config = NPURunConfig(\n    hccl_timeot=600,{}\n"
    '    iterations_per_loop=1,{}\n    dump_pth="/x",{}\n){}'
)


@pytest.mark.parametrize(
    ("text", "codes_told"),
    [
        pytest.param(CALL.format("", "", "", ""), ["NP812", "NP812"], id="no remark"),
        pytest.param(CALL.format("", "", "", f"  {REMARK}"), [], id="after the last line"),
        pytest.param(
            CALL.format("", f"  {REMARK}", "", ""), [], id="after the line of the finding"
        ),
        pytest.param(
            CALL.format(f"  {REMARK}", "", "", ""), ["NP812"], id="after a line without a finding"
        ),
        pytest.param(f"{REMARK}\n{CALL.format('', '', '', '')}", [], id="above the statement"),
        pytest.param(
            CALL.format("", "", "", f"\n{REMARK}\nx = 1"),
            ["NP705", "NP812", "NP812"],
            id="below the statement",
        ),
        pytest.param(
            f"x = (\n    1)  {REMARK}\n{CALL.format('', '', '', '')}",
            ["NP705", "NP812", "NP812"],
            id="after the statement before",
        ),
    ],
)
def test_a_remark_is_for_its_line_else_for_the_whole_statement(
    text: str, codes_told: list[str], run: Run
) -> None:
    Path("train.py").write_text(
        f"from npu_bridge.npu_init import *\n{text}\ntf.estimator.Estimator(config=config)\n"
    )
    result = run("scan", "train.py", "--format", "json")
    found = [finding["code"] for finding in json.loads(result.out)["findings"]]
    assert sorted(code for code in found if code in ("NP812", "NP705", "NP706")) == codes_told, (
        result.out
    )


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        (
            (
                "atc --model=x --framework=3 \\\n"
                "  --output=y --soc_versin=Ascend910B2 \\\n  --log=info  {}\n"
            ),
            1,
        ),
        (
            (
                "{}\natc --model=x --framework=3 \\\n"
                "  --output=y --soc_versin=Ascend910B2 \\\n  --log=info\n"
            ),
            1,
        ),
        ("atc --model=x --framework=3 --output=y --soc_versin=Ascend910B2\necho done  {}\n", 0),
    ],
)
def test_lines_that_a_backslash_joins_are_one_statement(text: str, accepted: int, run: Run) -> None:
    Path("job.sh").write_text(text.format("# npuprof: ignore[NP209] ours"))
    document = json.loads(run("scan", "job.sh", "--format", "json").out)
    codes = [finding["code"] for finding in document["findings"]]
    assert document.get("accepted", 0) == accepted, document
    assert ("NP705" in codes) == (not accepted), document
