"""Logs of runs on the command line: ``verify SPEC EVIDENCE...``, ``import``, and as a preset."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.building import build_store
from support.logged import write_line, write_run
from support.running import Run

PRESET = """\
[profile]
scenario = "training"
[options]
precision_mode = "force_fp16"
deterministic = 1
hcom_parallel = true
in_out_pair_flag = false
[env]
HCCL_CONNECT_TIMEOUT = 300
"""
MODES = {
    "ge.exec.precision_mode": "force_fp16",
    "precision_mode": "force_fp16",
    "ge.deterministic": "1",
}
GOOD = write_run(MODES, pid=7)
BAD = write_run(
    {"ge.deterministic": "1"}, {}, {"dump_layer": "a\nb", "ge.exec.dumpLayer": "a\nb"}, pid=8
) + write_run(
    {
        **MODES,
        "ge.deterministic": "0",
        "precision_mode": "force_fp32",
        "ge.exec.precision_mode": "force_fp32",
    },
    pid=8,
)


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one preset, and the logs of two processes."""
    build_store(tmp_path / "profiles", {"bert": PRESET})
    (tmp_path / "good.log").write_text(GOOD)
    (tmp_path / "bad.log").write_text(BAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_verdicts_on_a_run_are_a_table(logs: Path, run: Run) -> None:
    shown = run("verify", "bert", "good.log")
    assert shown.code == 0
    assert shown.out == (
        "deterministic     in force        1\n"
        "in_out_pair_flag  cannot tell\n"
        'precision_mode    in force        "force_fp16"\n'
        "hcom_parallel     default or set  true\n"
        "\n"
        "PRINT_MODEL=1 would log next time: in_out_pair_flag\n"
    )
    assert (
        "1 process of 1 file, adapter of 2026-07: 2 in force, 1 default or set, 1 cannot tell"
        in shown.err
    )
    assert (
        "1 setting outside [options] omitted: no adapter logs them (env.HCCL_CONNECT_TIMEOUT)"
        in shown.err
    )


def test_processes_that_do_not_agree_are_told_apart(logs: Path, run: Run) -> None:
    shown = run("verify", "bert", "good.log", "bad.log")
    assert shown.code == 1
    assert (
        "deterministic     changed         pid 8  0, not 1; at start 2 of 2 of the engine"
        in shown.out
    )
    assert "hcom_parallel     default or set  all" in shown.out
    assert "the processes do not agree on deterministic, precision_mode" in shown.err
    assert max(map(len, shown.out.splitlines())) <= 100


def test_the_json_of_verdicts_has_every_process_and_setting(logs: Path, run: Run) -> None:
    fields = json.loads(run("verify", "bert", "good.log", "bad.log", "--format", "json").out)
    assert fields["schema"] == "npuprof.verdicts/1"
    assert [(process["pid"], process["starts"]) for process in fields["processes"]] == [
        (7, 1),
        (8, 2),
    ]
    found = {verdict["setting"]: verdict for verdict in fields["processes"][1]["verdicts"]}
    assert found["deterministic"] == {
        "setting": "deterministic",
        "state": "changed",
        "value": 1,
        "found": ["0"],
        "note": "at start 2 of 2 of the engine",
        "tell": None,
    }
    assert fields["counts"]["in force"] == 2
    assert fields["left_out"] == ["env.HCCL_CONNECT_TIMEOUT"]


def test_annotations_stand_where_the_preset_sets_what_was_not_in_force(
    logs: Path, run: Run
) -> None:
    shown = run("verify", "bert", "bad.log", "--format", "github")
    assert shown.code == 1
    assert (
        "::error file=profiles/bert.toml,line=5,col=1,title=npuprof NP971::deterministic was "
        "changed in pid 8: 0, not 1"
    ) in shown.out
    assert (
        "::notice file=profiles/bert.toml,line=7,col=1,title=npuprof "
        "NP972::it is unknown whether in_out_pair_flag"
    ) in shown.out


FOREIGN = "[INFO] HCCL(7,python3.7):2026-03-04-05:06:07.008.009 [hcom.cc:51]7 ready\n"


@pytest.mark.parametrize("ahead", ["", FOREIGN * 500])
def test_standard_input_is_read_as_what_it_holds(logs: Path, run: Run, ahead: str) -> None:
    log = (ahead + GOOD).encode()
    shown = run("diff", "bert", "-", stdin=log)
    assert shown.code == 0, shown.err
    assert shown.out == "", shown.err
    assert "not logged by the run (in_out_pair_flag, env.HCCL_CONNECT_TIMEOUT)" in shown.err
    assert 'precision_mode = "force_fp16"' in run("show", "-", stdin=log).out
    assert "2 of 4 options in force" in run("whatran", "-", stdin=log).out
    assert run("diff", "bert", "-", stdin=PRESET.encode()).out == ""


def test_a_record_may_come_in_a_pipe(logs: Path, run: Run) -> None:
    subprocess.run(
        [sys.executable, "-m", "npuprof", "run", "bert", "--record", "runs", "--", "true"],
        check=True,
        capture_output=True,
    )
    (path,) = (logs / "runs").iterdir()
    raw = path.read_bytes()
    for changed, text in (
        (raw, ""),
        (raw.replace(b'"value": 300', b'"value": 301'), "~ env.HCCL_CONNECT_TIMEOUT"),
    ):
        shown = run("diff", str(path), "-", stdin=changed)
        assert shown.code == 0, shown.err
        assert (shown.out[: len(text)] or shown.out) == text, shown.err
    assert run("whatran", "-", stdin=raw).out.startswith("standard input: ")
    line = f"{sys.executable} -m npuprof diff bert <(cat {path})"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, cwd=logs)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"", done.stderr
    (logs / "runs/torn.0.run.json").write_text("{")
    torn = run("whatran", "runs")
    assert torn.code == 2
    assert "bert.0.run.json: " in torn.out
    assert "torn.0.run.json is not a run record" in torn.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["bert"], 2, "name the logs of a run: npuprof verify bert ~/ascend/log"),
        ([], 2, "verify has nothing to verify"),
        (["-", "-"], 2, "standard input can be read once only"),
        (["bert", "missing.log"], 2, "cannot read missing.log: no such file or directory"),
        (
            ["bert", "profiles/bert.toml"],
            2,
            (
                "profiles/bert.toml: error NP970: nothing in "
                "profiles/bert.toml was written by an adapter"
            ),
        ),
        (["bert", "profiles"], 2, "profiles has no log and no graph dump in it"),
        (["brt", "good.log"], 2, "did you mean 'bert'?"),
        (
            ["bert", "quiet.log"],
            2,
            (
                "ASCEND_MODULE_LOG_LEVEL=FMK=1 would log next time: deterministic, "
                "precision_mode, hcom_parallel"
            ),
        ),
        (["--tags", "--cann", "8.0", "bert"], 2, "--cann is for evidence"),
        (["env", "good.log"], 2, "env sets no session option"),
    ],
)
def test_where_nothing_can_be_told_it_says_why(
    arguments: list[str], code: int, message: str, logs: Path, run: Run
) -> None:
    build_store(logs / "profiles", {"env": "[env]\nJOB_ID = 1\n"})
    (logs / "quiet.log").write_text(
        write_line("[GEOP] call ge session add graph jit_compile: 2, graph_id: 1", "geop_npu.cc")
    )
    shown = run("verify", *arguments)
    assert shown.code == code
    assert message in shown.out + shown.err


@pytest.mark.parametrize(
    "arguments", [["verify", "bert", "a pipe"], ["import", "a pipe"], ["show", "./a pipe"]]
)
def test_a_pipe_with_a_name_is_refused_and_what_the_shell_opens_is_read(
    arguments: list[str], logs: Path, run: Run
) -> None:
    os.mkfifo(logs / "a pipe")
    shown = run(*arguments)
    assert shown.code == 2
    assert "it is a named pipe, not a file" in shown.err
    assert "let the shell open it: <(cat PIPE)" in shown.err
    piped = (logs / "good.log").read_bytes()
    assert "in force" in run("verify", "bert", "-", stdin=piped).out
    assert "what was in force by standard input" in run("import", "-", stdin=piped).out


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("diff bert", "../ev/none.log"),
        ("diff bert", "ev/none.run.json"),
        ("check", "a/none.pbtxt"),
        ("check", "/none/x.err"),
        ("check", "none.out"),
    ],
)
def test_a_path_that_leads_to_nothing_is_no_bad_name(
    arguments: str, name: str, logs: Path, run: Run
) -> None:
    shown = run(*arguments.split(), name)
    assert shown.code == 2, shown
    assert f"NP003: there is no {name}\n" in shown.err + shown.out, shown


IMPORTED = """\
[profile]
description = "what was in force by good.log"
scenario = "training"

[options]
deterministic = 1
precision_mode = "force_fp16"

"""


def test_the_preset_of_a_run_is_what_verify_calls_in_force(logs: Path, run: Run) -> None:
    shown = run("import", "good.log")
    assert shown.code == 0
    assert shown.out.startswith(IMPORTED)
    assert "#     in_out_pair\n" in shown.out
    assert run("import", "good.log", "-o", "profiles/again.toml").code == 0
    again = run("verify", "again", "good.log")
    assert again.code == 0
    assert again.out == 'deterministic   in force  1\nprecision_mode  in force  "force_fp16"\n'
    assert run("import", "good.log", "-o", "profiles/again.toml").code == 2
    assert run("check", "again").code == 0


def test_what_is_not_the_same_everywhere_is_no_setting_of_the_run(logs: Path, run: Run) -> None:
    fields = json.loads(run("import", "good.log", "bad.log", "--format", "json").out)
    assert fields["schema"] == "npuprof.imported-run/1"
    assert fields["options"] == {}
    assert set(fields["differing"]) == {"deterministic", "precision_mode"}
    assert run("import", "good.log", "--strict").code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good.log", "a.py"], "good.log is the log of a run, and a.py is none"),
        (["good.log", "--base", "auto"], "--base is for scripts, and good.log is the log of a run"),
        (["empty.log"], "nothing in empty.log was written by an adapter"),
    ],
)
def test_scripts_and_runs_are_imported_apart(
    arguments: list[str], message: str, logs: Path, run: Run
) -> None:
    (logs / "a.py").write_text("x = 1\n")
    (logs / "empty.log").write_text("")
    shown = run("import", *arguments)
    assert shown.code == 2
    assert message in shown.err


def test_evidence_is_a_spec_for_verbs_that_read(logs: Path, run: Run) -> None:
    shown = run("diff", "bert", "good.log")
    assert shown.code == 0
    assert shown.out == ""
    assert run("show", "good.log").out.endswith(
        '[options]\ndeterministic = 1\nprecision_mode = "force_fp16"\n'
    )
    assert "+ precision_mode" in run("diff", "./bad.log", "./good.log").out
    build_store(logs / "profiles", {"good.log": "[options]\ndeterministic = 0\n"})
    assert "deterministic = 0" in run("show", "good.log").out
    assert "deterministic = 1" in run("show", "./good.log").out
    refused = run("set", "./good.log", "deterministic=0")
    assert refused.code == 2
    assert "Traceback" not in refused.err


def test_a_preset_and_the_log_of_its_run_differ_in_what_the_log_proves_alone(
    logs: Path, run: Run
) -> None:
    """Defaults of a run, unlogged options and findings on a partial preset are no differences."""
    for arguments in (("bert", "good.log"), ("good.log", "bert")):
        same = run("diff", *arguments, "--exit-code")
        assert same.code == 0
        assert same.out == ""
        assert (
            "2 settings omitted, not logged by the run (in_out_pair_flag, env.HCCL_CONNECT_TIMEOUT)"
            in same.err
        )
    (logs / "late.log").write_text(
        write_run({**MODES, "ge.deterministic": "0"}, {"ge.hcomParallel": "0"})
    )
    other = run("diff", "bert", "late.log", "--exit-code")
    assert other.code == 1
    assert [line.split()[:2] for line in other.out.splitlines()] == [
        ["-", "deterministic"],
        ["~", "hcom_parallel"],
    ]
    two = run("diff", "good.log", "late.log").out
    assert [line.split()[:2] for line in two.splitlines()] == [
        ["-", "deterministic"],
        ["+", "hcom_parallel"],
    ]


def test_an_import_sets_nothing_that_may_be_the_beginning_of_a_value_or_is_not_known_of_all(
    logs: Path, run: Run
) -> None:
    (logs / "one.log").write_text(
        write_run({}, {"ge.exec.dumpMode": "outp", "ge.exec.enableDump": "1"}, pid=7)
    )
    shown = run("import", "one.log").out
    assert 'dump_mode = "outp"' not in shown
    assert "the log has no line of it that can be read:" in shown
    (logs / "one.log").write_text(
        write_run({"ge.exec.op_precision_mode": "/a"}, {"ge.session_device_id": "3"}, pid=7)
        + write_run(pid=8)
    )
    shown = run("import", "one.log").out
    assert "session_device_id = " not in shown
    assert "#   session_device_id: 3, not known of all processes" in shown
    unset = {"ge.exec.precision_mode": "None", "precision_mode": "None"}
    followed = {"dump_layer": "a\nb", "ge.exec.dumpLayer": "a\nb", "ge.hcomParallel": "0\nb"}
    (logs / "one.log").write_text(write_run({"ge.deterministic": "1\nb", **unset}, followed))
    fields = json.loads(run("import", "one.log", "--format", "json").out)
    assert fields["options"] == {"deterministic": 1, "hcom_parallel": False}
    assert fields["unknown"]["dump_layer"] == "the log has no line of it that can be read"


#: Root reads everything, unless it lays that down.
AS_ANYBODY = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"] if not os.geteuid() else []


def can_lay_down() -> bool:
    return (
        shutil.which(AS_ANYBODY[0]) is not None
        and not subprocess.run([*AS_ANYBODY, "true"], capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(
    bool(AS_ANYBODY) and not can_lay_down(),
    reason="root reads everything, and setpriv is not here or may not",
)
@pytest.mark.parametrize(
    ("folder", "arguments"),
    [
        ("logs", "verify bert logs"),
        ("logs", "doctor --adapter logs"),
        ("logs/below", "whatran logs"),
    ],
)
def test_a_folder_that_cannot_be_read_is_told(folder: str, arguments: str, logs: Path) -> None:
    (logs / "logs/below").mkdir(parents=True)
    (logs / "logs/train.log").write_text(GOOD)
    (logs / folder).chmod(0)
    try:
        command = [*AS_ANYBODY, sys.executable, "-m", "npuprof", *arguments.split()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        (logs / folder).chmod(0o755)
    assert done.returncode == 2
    assert "permission denied" in done.stdout + done.stderr
