"""Logs of runs on the command line: ``verify SPEC EVIDENCE...``, ``import EVIDENCE``, and evidence where a preset is read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from npuprof.catalog.wire import list_tf2_standing_keys
from support.building import build_store
from support.logged import INIT, SESSION, write_block, write_engine_line, write_line, write_run, write_tf2_block
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
MODES = {"ge.exec.precision_mode": "force_fp16", "precision_mode": "force_fp16", "ge.deterministic": "1"}
GOOD = write_run(MODES, pid=7)
BAD = write_run({"ge.deterministic": "1"}, {}, {"dump_layer": "a\nb", "ge.exec.dumpLayer": "a\nb"}, pid=8).replace(
    "ge.exec.opDebugConfig", "ge.exec.opDebugConfig"
) + write_run({**MODES, "ge.deterministic": "0", "precision_mode": "force_fp32", "ge.exec.precision_mode": "force_fp32"}, pid=8)


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
    assert (shown.code, shown.out) == (
        0,
        "deterministic     in force        1\n"
        "in_out_pair_flag  cannot tell\n"
        'precision_mode    in force        "force_fp16"\n'
        "hcom_parallel     default or set  true\n"
        "\n"
        "PRINT_MODEL=1 would tell next time: in_out_pair_flag\n",
    )
    assert "1 process of 1 file, adapter of 2026-07: 2 in force, 1 default or set, 1 cannot tell" in shown.err
    assert "1 setting outside [options] left out: no adapter writes them down (env.HCCL_CONNECT_TIMEOUT)" in shown.err


def test_processes_that_do_not_agree_are_told_apart(logs: Path, run: Run) -> None:
    shown = run("verify", "bert", "good.log", "bad.log")
    assert shown.code == 1
    assert "deterministic     changed         pid 8  0, not 1; at start 2 of 2 of the engine" in shown.out
    assert "hcom_parallel     default or set  all" in shown.out
    assert "the processes do not agree on deterministic, precision_mode" in shown.err
    assert max(map(len, shown.out.splitlines())) <= 100


def test_the_json_of_verdicts_has_every_process_and_setting(logs: Path, run: Run) -> None:
    fields = json.loads(run("verify", "bert", "good.log", "bad.log", "--format", "json").out)
    assert fields["schema"] == "npuprof.verdicts/1"
    assert [(one["pid"], one["starts"]) for one in fields["processes"]] == [(7, 1), (8, 2)]
    found = {one["setting"]: one for one in fields["processes"][1]["verdicts"]}
    assert found["deterministic"] == {
        "setting": "deterministic", "state": "changed", "value": 1, "found": ["0"], "note": "at start 2 of 2 of the engine", "tell": None,
    }  # fmt: skip
    assert fields["counts"]["in force"] == 2
    assert fields["left_out"] == ["env.HCCL_CONNECT_TIMEOUT"]


def test_annotations_stand_where_the_preset_sets_what_was_not_in_force(logs: Path, run: Run) -> None:
    shown = run("verify", "bert", "bad.log", "--format", "github")
    assert shown.code == 1
    assert "::error file=profiles/bert.toml,line=5,col=1,title=npuprof NP971::deterministic was changed in pid 8: 0, not 1" in shown.out
    assert "::notice file=profiles/bert.toml,line=7,col=1,title=npuprof NP972::whether in_out_pair_flag was in force" in shown.out


def test_evidence_may_come_in_a_pipe(logs: Path, run: Run) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "npuprof", "verify", "bert", "-"], input=GOOD.encode(), capture_output=True, check=False, cwd=logs
    )
    assert done.returncode == 0
    assert b"deterministic     in force" in done.stdout
    assert run("verify", "-", "good.log", stdin=PRESET.encode()).code == 0


FOREIGN = "[INFO] HCCL(7,python3.7):2026-03-04-05:06:07.008.009 [hcom.cc:51]7 ready\n"


@pytest.mark.parametrize("ahead", ["", FOREIGN * 500])
def test_standard_input_is_read_as_what_it_holds(logs: Path, run: Run, ahead: str) -> None:
    log = (ahead + GOOD).encode()
    shown = run("diff", "bert", "-", stdin=log)
    assert (shown.code, shown.out) == (0, ""), shown.err
    assert "left out (in_out_pair_flag, env.HCCL_CONNECT_TIMEOUT)" in shown.err
    assert 'precision_mode = "force_fp16"' in run("show", "-", stdin=log).out
    assert "2 of 4 options in force" in run("whatran", "-", stdin=log).out
    assert run("diff", "bert", "-", stdin=PRESET.encode()).out == ""


def test_a_record_may_come_in_a_pipe(logs: Path, run: Run) -> None:
    subprocess.run([sys.executable, "-m", "npuprof", "run", "bert", "--record", "runs", "--", "true"], check=True, capture_output=True)
    (path,) = (logs / "runs").iterdir()
    raw = path.read_bytes()
    for changed, told in ((raw, ""), (raw.replace(b'"value": 300', b'"value": 301'), "~ env.HCCL_CONNECT_TIMEOUT")):
        shown = run("diff", str(path), "-", stdin=changed)
        assert (shown.code, shown.out[: len(told)] or shown.out) == (0, told), shown.err
    assert run("whatran", "-", stdin=raw).out.startswith("standard input: ")
    line = f"{sys.executable} -m npuprof diff bert <(cat {path})"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, cwd=logs)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["bert"], 2, "name the logs of a run: npuprof verify bert ~/ascend/log"),
        ([], 2, "verify has nothing to verify"),
        (["-", "-"], 2, "standard input can be read once only"),
        (["bert", "missing.log"], 2, "cannot read missing.log: no such file or directory"),
        (["bert", "profiles/bert.toml"], 2, "nothing in profiles/bert.toml was written by an adapter"),
        (["bert", "profiles"], 2, "profiles has no log and no graph dump in it"),
        (["brt", "good.log"], 2, "did you mean 'bert'?"),
        (["bert", "quiet.log"], 2, "ASCEND_MODULE_LOG_LEVEL=FMK=1 would tell next time: deterministic, precision_mode, hcom_parallel"),
        (["--tags", "--cann", "8.0", "bert"], 2, "--cann is for evidence"),
        (["env", "good.log"], 2, "env sets no session option"),
    ],
)
def test_where_nothing_can_be_told_it_says_why(words: list[str], code: int, said: str, logs: Path, run: Run) -> None:
    build_store(logs / "profiles", {"env": "[env]\nJOB_ID = 1\n"})
    (logs / "quiet.log").write_text(write_line("[GEOP] call ge session add graph jit_compile: 2, graph_id: 1", "geop_npu.cc"))
    shown = run("verify", *words)
    assert shown.code == code
    assert said in shown.out + shown.err


@pytest.mark.parametrize(
    "words", [["verify", "bert", "a pipe"], ["import", "a pipe"], ["diff", "bert", "a pipe"], ["whatran", "a pipe"], ["show", "./a pipe"]]
)
def test_a_pipe_with_a_name_is_refused_and_what_the_shell_opens_is_read(words: list[str], logs: Path, run: Run) -> None:
    os.mkfifo(logs / "a pipe")
    shown = run(*words)
    assert (shown.code, "it is a named pipe, not a file" in shown.err) == (2, True)
    assert "opened by the shell: <(cat PIPE)" in shown.err
    piped = (logs / "good.log").read_bytes()
    assert "in force" in run("verify", "bert", "-", stdin=piped).out
    assert "what was in force by standard input" in run("import", "-", stdin=piped).out


@pytest.mark.parametrize("name", ["../ev/none.log", "none.log", "ev/none.run.json", "a/none.pbtxt", "/none/x.err", "none.out"])
@pytest.mark.parametrize("words", [["diff", "bert"], ["show"], ["check"], ["whatran"], ["verify", "bert"], ["render", "--to", "toml"]])
def test_a_path_that_leads_to_nothing_is_no_bad_name(words: list[str], name: str, logs: Path, run: Run) -> None:
    shown = run(*words, name)
    assert shown.code == 2
    assert f"NP003: there is no {name}\n" in shown.err + shown.out or f"NP003: cannot read {name}: no such file" in shown.err


def test_what_is_no_path_of_a_run_is_a_name(logs: Path, run: Run) -> None:
    assert "NP008" in run("show", "brt").err
    assert "NP003: there is no ../none" in run("diff", "bert", "../none").err
    assert "NP004" in run("show", "/etc/passwd").err
    assert 'write "bert"' in run("show", "./bert").err
    assert "NP008" in run("show", "a/none.json").err
    build_store(logs / "profiles", {"a.log": "[options]\ndeterministic = 1\n"})
    assert run("show", "a.log").code == 0


def test_ranks_have_the_names_that_the_engine_gives_them(logs: Path, run: Run) -> None:
    for rank in (0, 1):
        (logs / f"{rank}.log").write_text(write_tf2_block({"ge.deterministic": str(rank), "ge.exec.rankId": str(rank)}))
    shown = run("verify", "bert", "0.log", "1.log")
    assert "deterministic     changed      rank 0 (0.log)" in shown.out
    assert "deterministic     in force     rank 1 (1.log)" in shown.out


IMPORTED = """\
[profile]
description = "what was in force by good.log"
scenario = "training"

[options]
deterministic = 1
precision_mode = "force_fp16"

"""


@pytest.mark.parametrize("size", [0, 300_000])
def test_what_the_shell_opens_is_imported_as_what_it_begins_with(logs: Path, size: int) -> None:
    """A pipe can be read once: what was looked at to tell logs from scripts is read all the same, and so is what comes after that."""
    script = b'import tensorflow as tf\ncustom_op.parameter_map["hccl_timeout"].i = 1800\n'
    log = (logs / "good.log").read_bytes() + b"noise\n" * (size // 6)
    for given, said in (
        (log, ["what was in force by a pipe", "deterministic = 1"]),
        (script + b"#\n" * (size // 2), ["hccl_timeout = 1800"]),
    ):
        ours, theirs = os.pipe()

        def give(given: bytes = given, theirs: int = theirs) -> None:
            with open(theirs, "wb") as file:
                file.write(given)

        writer = threading.Thread(target=give)
        writer.start()
        words = [sys.executable, "-m", "npuprof", "import", f"/dev/fd/{ours}"]
        shown = subprocess.run(words, capture_output=True, text=True, pass_fds=[ours], cwd=logs, check=False)
        os.close(ours)
        writer.join()
        assert (shown.returncode, [one in shown.stdout for one in said]) == (0, [True] * len(said)), shown.stderr


def test_the_preset_of_a_run_is_what_verify_calls_in_force(logs: Path, run: Run) -> None:
    shown = run("import", "good.log")
    assert shown.code == 0
    assert shown.out.startswith(IMPORTED)
    assert "#     in_out_pair\n" in shown.out
    assert run("import", "good.log", "-o", "profiles/again.toml").code == 0
    again = run("verify", "again", "good.log")
    assert (again.code, again.out) == (0, 'deterministic   in force  1\nprecision_mode  in force  "force_fp16"\n')
    assert run("import", "good.log", "-o", "profiles/again.toml").code == 2
    assert run("check", "again").code == 0


def test_what_is_not_the_same_everywhere_is_no_setting_of_the_run(logs: Path, run: Run) -> None:
    fields = json.loads(run("import", "good.log", "bad.log", "--format", "json").out)
    assert fields["schema"] == "npuprof.imported-run/1"
    assert fields["options"] == {}
    assert set(fields["differing"]) == {"deterministic", "precision_mode"}
    assert run("import", "good.log", "--strict").code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["good.log", "a.py"], "good.log is the log of a run, and a.py is none"),
        (["good.log", "--base", "auto"], "--base is for scripts, and good.log is the log of a run"),
        (["empty.log"], "nothing in empty.log was written by an adapter"),
    ],
)
def test_scripts_and_runs_are_imported_apart(words: list[str], said: str, logs: Path, run: Run) -> None:
    (logs / "a.py").write_text("x = 1\n")
    (logs / "empty.log").write_text("")
    shown = run("import", *words)
    assert (shown.code, said in shown.err) == (2, True)


def test_evidence_is_a_spec_for_verbs_that_read(logs: Path, run: Run) -> None:
    shown = run("diff", "bert", "good.log")
    assert (shown.code, shown.out) == (0, "")
    assert run("show", "good.log").out.endswith('[options]\ndeterministic = 1\nprecision_mode = "force_fp16"\n')
    assert "+ precision_mode" in run("diff", "./bad.log", "./good.log").out
    build_store(logs / "profiles", {"good.log": "[options]\ndeterministic = 0\n"})
    assert "deterministic = 0" in run("show", "good.log").out
    assert "deterministic = 1" in run("show", "./good.log").out
    refused = run("set", "./good.log", "deterministic=0")
    assert refused.code == 2
    assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a", True),
        ("a\nprecision_mode: force_fp16", False),
        ("a\n[INFO] of another program", False),
        ('\n{"of": "another program"}', False),
        ("a\x00b", False),
    ],
)
def test_an_import_takes_no_line_of_a_stranger_for_the_rest_of_a_text(logs: Path, run: Run, text: str, kept: bool) -> None:
    (logs / "one.log").write_text(write_run({}, {"dump_layer": text, "ge.exec.dumpLayer": text}, pid=7))
    shown = run("import", "one.log").out
    assert ("dump_layer = " in shown) is kept


def test_an_import_keeps_what_is_known_of_some_processes_apart(logs: Path, run: Run) -> None:
    (logs / "one.log").write_text(write_run({"ge.exec.op_precision_mode": "/a"}, {"ge.session_device_id": "3"}, pid=7) + write_run(pid=8))
    shown = run("import", "one.log").out
    assert "session_device_id = " not in shown
    assert "#   session_device_id: 3, not known of all processes" in shown


def test_a_log_is_shown_with_the_scenario_that_an_import_gives_it(logs: Path, run: Run) -> None:
    (logs / "one.log").write_text(write_run({"ge.graphRunMode": "0", "graph_run_mode": "0"}, {"ge.graphRunMode": "0"}))
    for verb in ("import", "show"):
        assert 'scenario = "online-inference"' in run(verb, "one.log").out


def test_an_import_reads_what_early_adapters_gave_to_sessions_as_a_verification_does(logs: Path, run: Run) -> None:
    texts = {**SESSION, "ge.inputShape": "data:-1", "ge.dynamicDims": "1;2", "ge.dynamicNodeType": "1"}
    start = write_line("[GePlugin] Initialize ge success.", "ge_plugin.cc", old=True)
    blocks = write_block("init options:", INIT, old=True, file="geop_npu.cc") + write_block("session options:", texts, old=True)
    (logs / "one.log").write_text(start + blocks)
    shown = run("import", "one.log").out
    for line in ('input_shape = "data:-1"', 'dynamic_dims = "1;2"', "dynamic_node_type = 1"):
        assert line in shown


@pytest.mark.parametrize(
    ("session", "kept", "said"),
    [
        ({"ge.exec.dumpMode": "outp", "ge.exec.enableDump": "1"}, 'dump_mode = "outp"', "the log has no line of it that can be read:"),
    ],
)
def test_an_import_does_not_set_what_may_be_the_beginning_of_a_value(
    logs: Path, run: Run, session: dict[str, str], kept: str, said: str
) -> None:
    (logs / "one.log").write_text(write_run({}, session, pid=7))
    shown = run("import", "one.log").out
    assert kept not in shown
    assert said in shown


def test_processes_of_which_one_proves_a_value_agree_with_those_that_have_it_by_default(logs: Path, run: Run) -> None:
    """The engine of a run of TensorFlow 2 proves more than standard error does: both have the value."""
    (logs / "both").mkdir()
    (logs / "both" / "run.err").write_text(
        write_tf2_block({**dict.fromkeys(list_tf2_standing_keys("TF 2 2023-12"), "0"), "ge.hcomParallel": "0"})
    )
    line = write_engine_line("GE option: ge.hcomParallel, value: 0.", "CreateSession")
    (logs / "both" / "plog-100_20260304050607008.log").write_text(line)
    (logs / "profiles" / "tf2.toml").write_text("[options]\nhcom_parallel = false\n")
    shown = run("verify", "tf2", "both")
    assert [line.split()[1] for line in shown.out.splitlines()] == ["default", "in"]
    assert "do not agree" not in shown.err
    shown = run("import", "both")
    assert "hcom_parallel = false\n" in shown.out
    assert "hcom_parallel: " not in shown.out, "it is not told as one that differs"


@pytest.mark.parametrize(
    "form", ["trainer-{}  | ", "[pod/bert-{}/main] ", "[1,{}]<stdout>:", "{}: ", "2026-03-04T05:06:07.008Z bert-{} main "]
)
@pytest.mark.parametrize("mixed", [False, True])
def test_containers_whose_processes_have_one_number_are_told_apart(logs: Path, run: Run, form: str, mixed: bool) -> None:
    other = {**MODES, "precision_mode": "force_fp32", "ge.exec.precision_mode": "force_fp32"}
    texts = [
        [f"{form.format(number)}{line}\n" for line in write_run(modes).splitlines()] for number, modes in enumerate((MODES, other, MODES))
    ]
    mixture = [line for lines in zip(*texts, strict=True) for line in lines] if mixed else [line for lines in texts for line in lines]
    (logs / "pods.log").write_text("".join(mixture))
    shown = run("verify", "bert", "pods.log")
    assert shown.code == 1
    assert "3 processes of 1 file" in shown.err
    told = [line.split() for line in shown.out.splitlines() if line.startswith("precision_mode")]
    name = form.format(1).rpartition("Z ")[2].strip(" |:")
    assert " ".join(told[0]).startswith(f"precision_mode changed pid 100 of {name} ")
    assert " ".join(told[1]).startswith("precision_mode in force pid 100 of ")


def test_a_label_that_counts_or_tells_the_time_names_nobody(logs: Path, run: Run) -> None:
    forms = [
        "{}:",
        "    {}\t",
        "plog.log:{}:",
        "[   {}.000123] ",
        "1772600{:03d}.008 ",
        "05:{:02d}:07 ",
        "[20260304T0506{:02d}Z] ",
        "({:010d}) ",
    ]
    for form in forms:
        text = "".join(f"{form.format(number)}{line}\n" for number, line in enumerate(GOOD.splitlines(), 10))
        (logs / "kept.log").write_text(text)
        assert "1 process of 1 file, adapter of 2026-07: 2 in force" in run("verify", "bert", "kept.log").err, form


def test_a_preset_and_the_log_of_its_run_differ_in_what_the_log_proves_alone(logs: Path, run: Run) -> None:
    """What the run has by default, what no adapter writes down, and what the checks say of a part of a preset are no differences."""
    for words in (("bert", "good.log"), ("good.log", "bert")):
        same = run("diff", *words, "--exit-code")
        assert (same.code, same.out) == (0, "")
        assert "2 settings that the run does not tell left out (in_out_pair_flag, env.HCCL_CONNECT_TIMEOUT)" in same.err
    (logs / "late.log").write_text(write_run({**MODES, "ge.deterministic": "0"}, {"ge.hcomParallel": "0"}))
    other = run("diff", "bert", "late.log", "--exit-code")
    assert other.code == 1
    assert [line.split()[:2] for line in other.out.splitlines()] == [["-", "deterministic"], ["~", "hcom_parallel"]]
    two = run("diff", "good.log", "late.log").out
    assert [line.split()[:2] for line in two.splitlines()] == [["-", "deterministic"], ["+", "hcom_parallel"]]


@pytest.mark.parametrize(("said", "shown"), [("", ""), ('[profile]\nscenario = "training"\n', "profile.scenario")])
def test_what_a_run_was_for_differs_from_a_preset_that_says_what_it_is_for(said: str, shown: str, logs: Path, run: Run) -> None:
    (logs / "one.log").write_text(write_run({"ge.graphRunMode": "0", "graph_run_mode": "0"}, {"ge.graphRunMode": "0"}))
    (logs / "profiles/plain.toml").write_text(f"{said}[options]\ngraph_run_mode = 0\n")
    for words in (("plain", "one.log"), ("one.log", "plain")):
        assert " ".join(line.split()[1] for line in run("diff", *words).out.splitlines()) == shown


def test_what_one_of_two_logs_does_not_tell_is_no_difference(logs: Path, run: Run) -> None:
    (logs / "early.log").write_text("".join(GOOD.splitlines(True)[:3]))
    for words in (("good.log", "early.log"), ("early.log", "good.log")):
        shown = run("diff", *words)
        assert shown.out == ""
        assert "settings that the run does not tell left out (profile.scenario, precision_mode)" in shown.err


def test_of_processes_that_do_not_agree_it_is_said_where_a_preset_is_made_of_them(logs: Path, run: Run) -> None:
    (logs / "both").mkdir()
    (logs / "both/a.log").write_text(GOOD)
    (logs / "both/b.log").write_text(GOOD.replace("(7,", "(8,").replace("force_fp16", "force_fp32"))
    for words in (("show", "both"), ("diff", "bert", "both")):
        assert "the processes of both do not agree on precision_mode, left out here" in run(*words).err
    assert "do not agree" not in run("show", "good.log").err


@pytest.mark.parametrize("words", ["verify bert logs", "import logs", "diff bert logs", "show logs"])
def test_a_folder_of_logs_is_evidence_whatever_they_are_called(words: str, logs: Path, run: Run) -> None:
    (logs / "logs").mkdir()
    (logs / "logs/train.log").write_text(GOOD)
    assert run(*words.split()).code == 0


#: Root reads everything, unless it lays that down.
AS_ANYBODY = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"] if not os.geteuid() else []


def can_lay_down() -> bool:
    return (
        shutil.which(AS_ANYBODY[0]) is not None and not subprocess.run([*AS_ANYBODY, "true"], capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(bool(AS_ANYBODY) and not can_lay_down(), reason="root reads everything, and setpriv is not here or may not")
@pytest.mark.parametrize(
    "words", ["verify bert logs", "import logs", "diff bert logs", "show logs", "whatran logs", "doctor --adapter logs"]
)
@pytest.mark.parametrize("folder", ["logs", "logs/below"])
def test_a_folder_that_cannot_be_read_is_told(folder: str, words: str, logs: Path) -> None:
    if folder != "logs" and words.startswith("doctor"):
        pytest.skip("what is below may be anything there")
    (logs / "logs/below").mkdir(parents=True)
    (logs / "logs/train.log").write_text(GOOD)
    (logs / folder).chmod(0)
    try:
        command = [*AS_ANYBODY, sys.executable, "-m", "npuprof", *words.split()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        (logs / folder).chmod(0o755)
    assert (done.returncode, "permission denied" in done.stdout + done.stderr) == (2, True)


def test_side_by_side_it_is_said_that_a_log_does_not_tell_all(logs: Path, run: Run) -> None:
    assert "is not told by it; npuprof verify says which" in run("diff", "bert", "good.log", "bad.log").err
    assert run("diff", "bert", "bert", "bert").err == ""
