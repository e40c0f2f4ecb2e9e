"""``npuprof bisect``: planted causes, real processes, the number of runs, stops and resumes."""

from __future__ import annotations

import json
import os
import re
import string
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from npuprof.store.trust_state import Trusted, store_trusted
from support.building import build_store
from support.captured import capture
from support.running import Run, Store
from support.waiting import skip_hangs, wait_for

NPUPROF = [sys.executable, "-m", "npuprof"]
NAMES = "ABCDEFGHIJKLMNOP"
OWN_NAMES = ("DEVICE",)


def preset(value: str, names: str = NAMES, more: str = "") -> str:
    return "[env]\n" + "".join(f'SET_{name} = "{value}"\n' for name in names) + more


#: Bad where all of some variables have the value of the bad preset; a group of several is one of
#: the causes.
JUDGE = """
import os, sys
open("runs", "a").write(".")
causes = [cause.split("+") for cause in sys.argv[1].split("|")]
sys.exit(any(all(os.environ.get("SET_" + name) == "bad" for name in cause) for cause in causes))
"""


@pytest.fixture(autouse=True)
def trust(tmp_path: Path) -> None:
    """The variables that tests vary are their own."""
    names = (
        {f"SET_{name}" for name in string.ascii_uppercase}
        | set(string.ascii_uppercase)
        | {*OWN_NAMES}
    )
    store_trusted(os.path.realpath(tmp_path / "profiles"), Trusted(frozenset(names)), adding=False)


@pytest.fixture
def endpoints(tmp_path: Path) -> Path:
    return build_store(tmp_path / "profiles", {"good": preset("good"), "bad": preset("bad")})


def judge(causes: str) -> list[str]:
    return [sys.executable, "-c", JUDGE, causes]


def is_alive(pid: str) -> bool:
    """Return whether a process runs: one that nobody reaps does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False


def bisect(run: Run, *arguments: str, code: int = 0) -> dict[str, Any]:
    flags, command = arguments[: arguments.index("--")], arguments[arguments.index("--") :]
    result = run("bisect", "good", "bad", "--format", "json", *flags, *command)
    assert result.code == code, result.err
    found: dict[str, Any] = json.loads(result.out)
    return found


def keys(answer: Mapping[str, Any], places: list[int]) -> list[str]:
    return sorted(answer["changes"][place]["key"] for place in places)


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        ("C", ["env.SET_C"]),
        ("A+P", ["env.SET_A", "env.SET_P"]),
        ("A+G+P", ["env.SET_A", "env.SET_G", "env.SET_P"]),
        ("A+C|A+M", ["env.SET_A", "env.SET_C"]),
    ],
)
def test_a_planted_cause_is_found_each_run_once(
    run: Run, endpoints: Path, tmp_path: Path, causes: str, expected: list[str]
) -> None:
    answer = bisect(run, "--", *judge(causes))
    assert [keys(answer, cause["changes"]) for cause in answer["causes"]] == [expected]
    assert answer["complete"]
    assert all(
        member["without"]["verdict"] == "good"
        for cause in answer["causes"]
        for member in cause["members"]
    )
    made = len((tmp_path / "runs").read_text())
    assert (
        answer["runs"]
        == made
        == len(answer["trials"])
        == sum(len(trial["runs"]) for trial in answer["trials"])
    )
    again = bisect(run, "--", *judge(causes))
    assert again == answer
    assert len((tmp_path / "runs").read_text()) == made


def test_the_answer_in_words(run: Run, store: Store) -> None:
    store(
        {
            "base": "options.hccl_timeout = 600\n",
            "good": '[profile]\nextends = ["base"]\n[env]\nX = "1"\nY = "1"\n',
            "worse": "options.hccl_timeout = 900\n",
            "bad": '[profile]\nextends = ["worse"]\n[env]\nX = "2"\nY = "2"\n',
        }
    )
    result = run("bisect", "good", "bad", "--", "sh", "-c", '[ "$NPUPROF_HCCL_TIMEOUT$X" != 9002 ]')
    assert result.code == 0
    assert result.out == (
        "2 changes make the difference, only together (of 3 changes; 5 runs):\n"
        "\n"
        "  ~ hccl_timeout 600 → 900 s\n"
        "      [distributed]  via profiles/worse.toml:1, before profiles/base.toml:1\n"
        "    without it: good (exit code 0)\n"
        "\n"
        '  ~ env.X "1" → "2"\n'
        "      via profiles/bad.toml:4, before profiles/good.toml:4\n"
        "    without it: good (exit code 0)\n"
    )


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("exit 0", "NP954|bad, which should be bad, is good"),
        ("exit 1", "NP954|good, which should be good, is bad\n|swap the presets"),
        ("exit 125", "NP954|good, which should be good, is unknown"),
        ("exit 127", "NP952|the command ended with exit code 127"),
        ("kill -SEGV $$", "NP952|the command ended with SIGSEGV|--signal bad"),
    ],
)
def test_ends_and_errors_end_it_at_once_with_words(
    run: Run, endpoints: Path, script: str, arguments: str
) -> None:
    result = run("bisect", "good", "bad", "--", "sh", "-c", f"echo . >> runs; {script}")
    assert result.code == 2
    assert all(part in result.err for part in arguments.split("|")), result.err
    assert Path("runs").read_text().count(".") <= 2


def test_a_command_that_is_not_there_is_told_before_anything_runs(
    run: Run, endpoints: Path
) -> None:
    result = run("bisect", "good", "bad", "--", "no-such-command-here")
    assert result.code == 2
    assert "NP915" in result.err


def test_equal_ends_and_ends_with_errors_are_refused(run: Run, store: Store) -> None:
    store(
        {
            "good": "options.hccl_timeout = 600\n",
            "same": "options.hccl_timeout = 600\n",
            "wrong": 'options.hccl_timeout = "x"\n',
        }
    )
    assert "NP954" in run("bisect", "good", "same", "--", "true").err
    assert "NP202" in run("bisect", "good", "wrong", "--", "true").err
    assert not Path(".npuprof").exists()


def test_a_signal_is_bad_where_that_is_said(run: Run, endpoints: Path) -> None:
    answer = bisect(
        run, "--signal", "bad", "--", "sh", "-c", '[ "$SET_E" = good ] || kill -SEGV $$'
    )
    assert keys(answer, answer["causes"][0]["changes"]) == ["env.SET_E"]


def test_a_hang_is_ended_with_all_that_it_started_and_counts_as_said(
    run: Run, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("npuprof.trials.process_groups.GRACE", 0.2)
    skip_hangs(monkeypatch, tmp_path / "hangs")
    store({name: preset(name, "EFG") for name in ("good", "bad")})
    hang = (
        f"(sh -c 'echo $$ >> {tmp_path}/pids; trap : TERM; sleep 1000; sleep 1000' &); echo $$ >> "
        f"{tmp_path}/pids; echo >> {tmp_path}/hangs; sleep 1000 & wait"
    )
    command = ["sh", "-c", f'[ "$SET_E$SET_F" = goodgood ] || [ "$SET_E" = good ] || {{ {hang}; }}']
    answer = bisect(run, "--timeout", "500", "--hang", "bad", "--", *command)
    assert keys(answer, answer["causes"][0]["changes"]) == ["env.SET_E"]
    assert not any(map(is_alive, (tmp_path / "pids").read_text().split()))
    refused = run(
        "bisect",
        "good",
        "bad",
        "--timeout",
        "500",
        "--",
        "sh",
        "-c",
        f'[ "$SET_E" = good ] || {{ echo >> {tmp_path}/hangs; exec sleep 1000; }}',
    )
    assert "bad, which should be bad, is unknown" in refused.err


def test_a_rendered_file_is_fresh_for_each_run(run: Run, store: Store) -> None:
    store(
        {
            "good": "[options]\nhccl_timeout = 600\ndeterministic = 0\n",
            "bad": "[options]\nhccl_timeout = 900\ndeterministic = 1\n",
        }
    )
    answer = bisect(run, "--to", "session", "--", "sh", "-c", '! grep -q "i = 900" "$0"', "{code}")
    assert keys(answer, answer["causes"][0]["changes"]) == ["hccl_timeout"]
    assert not list(Path().glob(".npuprof/trials/*/code/*"))
    assert run("bisect", "good", "bad", "--to", "session", "--", "true").code == 2


def test_a_metric_is_judged_by_the_ends(run: Run, endpoints: Path) -> None:
    speed = (
        'v=100; [ "$SET_C" = bad ] && v=50; [ "$SET_D" = bad ] && v=$((v + 1)); echo "step 1 '
        'speed=90"; echo "speed=$v it/s"'
    )
    answer = bisect(
        run, "--metric", "speed=([0-9.]+)", "--tolerance", "5%", "--", "sh", "-c", speed
    )
    assert keys(answer, answer["causes"][0]["changes"]) == ["env.SET_C"]
    assert answer["metric"]["good"] == 100
    assert answer["metric"]["bad"] == 51
    text = run(
        "bisect",
        "good",
        "bad",
        "--metric",
        "speed=([0-9.]+)",
        "--tolerance",
        "5%",
        "--",
        "sh",
        "-c",
        speed,
    )
    assert "without it: good (exit code 0 and the value 100)\n" in text.out
    same = run(
        "bisect",
        "good",
        "bad",
        "--metric",
        "speed=([0-9.]+)",
        "--tolerance",
        "60%",
        "--",
        "sh",
        "-c",
        speed,
    )
    assert "differ by no more than the tolerance" not in same.err
    none = run("bisect", "good", "bad", "--metric", "loss=([0-9.]+)", "--", "sh", "-c", speed)
    assert "printed no value of the metric" in none.err


#: Adds one to a counter of each combination, and leaves it in $n.
COUNT = "f=n-$NPUPROF_DIGEST; n=$(cat $f 2>/dev/null || echo 0); echo $((n + 1)) > $f; "


def test_the_majority_of_repeated_runs_decides(run: Run, endpoints: Path) -> None:
    """Every fourth run of a combination is wrong.

    A combination is run until its majority is certain, and five times at most.
    """
    flaky = COUNT + '[ $((n % 4)) = 1 ] && set -- bad good || set -- good bad; [ "$SET_C" = "$1" ]'
    arguments = ["--repeat", "5", "--", "sh", "-c", flaky]
    answer = bisect(run, *arguments)
    assert keys(answer, answer["causes"][0]["changes"]) == ["env.SET_C"]
    assert answer["complete"]
    assert {len(trial["runs"]) for trial in answer["trials"]} == {4}
    shown = run("bisect", "good", "bad", *arguments)
    assert "without it: good (good in 3, bad in 1 of 4 runs)\n" in shown.out
    result = " ".join(shown.err.split())
    assert "good was bad in 1 of 4 runs: the command is flaky, and the majority decides" in result
    assert "bad was good in 1 of 4 runs: the command is flaky, and the majority decides" in result


def test_a_tie_is_undecided(run: Run, endpoints: Path) -> None:
    """What has C and not D ends once as good and once as bad."""
    tied = COUNT + '[ "$SET_C$SET_D" = badgood ] && exit $((n % 2)); [ "$SET_C$SET_D" != badbad ]'
    arguments = ["--repeat", "2", "--", "sh", "-c", tied]
    answer = bisect(run, *arguments, code=1)
    (cause,) = answer["causes"]
    assert keys(answer, cause["changes"]) == ["env.SET_C", "env.SET_D"]
    assert keys(answer, cause["undecided"]) == ["env.SET_D"]
    shown = run("bisect", "good", "bad", *arguments).out
    assert "without it: undecided (good in 1, bad in 1 of 2 runs)" in shown
    assert "undecided: whether env.SET_D matters" in shown
    refused = run(
        "bisect", "good", "bad", "--repeat", "2", "--", "sh", "-c", COUNT + "exit $((n % 2))"
    )
    shown = " ".join(refused.err.split())
    assert refused.code == 2
    assert "good, which should be good, is unknown" in shown
    assert "good in 1, bad in 1 of 2 runs" in shown


def test_no_more_runs_are_made_than_allowed_and_what_is_known_goes_on(
    run: Run, endpoints: Path, tmp_path: Path
) -> None:
    answer = bisect(run, "--max-runs", "5", "--", *judge("A+C"), code=2)
    assert answer["found"] is False
    assert len((tmp_path / "runs").read_text()) == 5
    assert {"env.SET_A", "env.SET_C"} <= set(keys(answer, answer["in_question"]))
    text = run("bisect", "good", "bad", "--max-runs", "1", "--", *judge("A+C"))
    assert text.code == 2, text.out
    assert "; run the same command again, or with a greater --max-runs, to go on" in text.out, (
        text.out
    )
    answer = bisect(run, "--", *judge("A+C"))
    assert keys(answer, answer["causes"][0]["changes"]) == ["env.SET_A", "env.SET_C"]
    assert len((tmp_path / "runs").read_text()) == answer["runs"]


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*NPUPROF, "bisect", "good", "bad", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(("name", "code"), [("KILL", -9), ("INT", 130)])
def test_what_is_killed_goes_on_and_runs_nothing_twice(
    run: Run, store: Store, tmp_path: Path, name: str, code: int
) -> None:
    store({name: preset(name, "ABCLMN") for name in ("good", "bad")})
    script = (
        'echo "$NPUPROF_DIGEST" >> done; [ $(wc -l < done) != 4 '
        f'] || kill -{name} $PPID; [ "$SET_B$SET_M" != badbad ]'
    )
    with start(tmp_path, "--", "sh", "-c", script) as process:
        _, text = process.communicate(timeout=20)
    assert process.returncode == code, text
    assert (b"the same command goes on from there" in text) == (name == "INT"), text
    answer = bisect(run, "--", "sh", "-c", script)
    assert keys(answer, answer["causes"][0]["changes"]) == ["env.SET_B", "env.SET_M"]
    ran = (tmp_path / "done").read_text().split()
    assert len(ran) - len(set(ran)) == 1, "the run that was under way"


def test_a_torn_last_line_is_passed_over_and_another_version_refused_by_name(
    run: Run, endpoints: Path, tmp_path: Path
) -> None:
    answer = bisect(run, "--", *judge("B"))
    (journal,) = tmp_path.glob(".npuprof/trials/*/journal.jsonl")
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-20])
    assert bisect(run, "--", *judge("B"))["causes"] == answer["causes"]
    journal.write_bytes(whole.replace(b"npuprof.trials/1", b"npuprof.trials/9", 1))
    result = run("bisect", "good", "bad", "--", *judge("B"))
    assert result.code == 2
    assert "npuprof.trials/9" in result.err
    assert "--fresh" in result.err
    assert bisect(run, "--fresh", "--", *judge("B"))["causes"] == answer["causes"]
    assert journal.with_name("journal.jsonl.old").exists()


def test_results_are_stored_without_the_arguments_of_the_command(
    run: Run, endpoints: Path, tmp_path: Path
) -> None:
    bisect(run, "--", *judge("B"), "--password=pa55")
    (journal,) = tmp_path.glob(".npuprof/trials/*/journal.jsonl")
    assert "pa55" not in journal.read_text()


def test_two_at_once_in_one_folder_are_told(run: Run, endpoints: Path, tmp_path: Path) -> None:
    command = ["sh", "-c", 'touch begun; sleep 100; [ "$SET_B" = good ]']
    with start(tmp_path, "--", *command) as process:
        wait_for((tmp_path / "begun").exists)
        result = run("bisect", "good", "bad", "--", *command)
        assert result.code == 2
        assert f"process {process.pid} on" in result.err
        process.terminate()
        process.communicate(timeout=20)


def test_a_pool_of_devices_gives_each_run_one_of_its_own(
    run: Run, store: Store, tmp_path: Path
) -> None:
    ask_launcher = 'DEVICE = { launcher = "local-rank" }\n'
    store({name: preset(name, more=ask_launcher) for name in ("good", "bad")})
    script = (
        'echo "$ASCEND_DEVICE_ID $DEVICE $RANK_ID" >> devices; mkdir "busy$DEVICE" || exit 125; '
        'for i in $(seq 200); do [ "$(sort -u devices | wc -l)" -gt 1 ] && break; '
        "sleep 0.05; done; "
        'rmdir "busy$DEVICE"'
    )
    script += '; [ "$SET_B" = good ]'
    answer = bisect(run, "--devices", "2-4", "-j", "9", "--", "sh", "-c", script)
    assert keys(answer, answer["causes"][0]["changes"]) == ["env.SET_B"]
    seen = set((tmp_path / "devices").read_text().split("\n")) - {""}
    assert seen <= {"2 2 0", "3 3 0", "4 4 0"}
    assert len(seen) > 1
    assert run("bisect", "good", "bad", "--devices", "x", "--", "true").code == 2


def test_records_of_runs_are_ends_too(run: Run, endpoints: Path, tmp_path: Path) -> None:
    """What a good and a bad run were given, whatever has become of their presets since."""
    for name in ("good", "bad"):
        subprocess.run(
            [*NPUPROF, "run", name, "--record", "records", "--", "true"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
        (tmp_path / "profiles" / f"{name}.toml").write_text("")
    result = run(
        "bisect",
        "records/good.0.run.json",
        "records/bad.0.run.json",
        "--format",
        "json",
        "--",
        *judge("H"),
    )
    answer = json.loads(result.out)
    assert keys(answer, answer["causes"][0]["changes"]) == ["env.SET_H"]


def test_a_record_that_decides_what_is_executed_is_no_end_without_trust(
    run: Run, endpoints: Path, tmp_path: Path
) -> None:
    for name in ("good", "bad"):
        subprocess.run(
            [*NPUPROF, "run", name, "--record", "records", "--", "true"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    record = tmp_path / "records/bad.0.run.json"
    record.write_text(record.read_text().replace("SET_H", "LD_PRELOAD"))
    arguments = ("bisect", "records/good.0.run.json", "records/bad.0.run.json")
    refused = run(*arguments, "--", "true")
    assert refused.code == 2, refused.err
    assert "error NP930: env.LD_PRELOAD" in refused.err, refused.err
    assert "NP930" not in run(*arguments, "--trust", "--", "true").err


def test_a_command_that_has_changed_since_is_told_as_often_as_it_is_asked(
    run: Run, endpoints: Path, tmp_path: Path
) -> None:
    script = tmp_path / "judge.sh"
    script.write_text('[ "$SET_E" = good ]\n')
    assert "changed" not in run("bisect", "good", "bad", "--", "sh", "judge.sh").err
    script.write_text('[ "$SET_F" = good ]\n')
    for _ in range(2):
        assert (
            "judge.sh has changed since" in run("bisect", "good", "bad", "--", "sh", "judge.sh").err
        )
    assert "SET_F" in run("bisect", "good", "bad", "--fresh", "--", "sh", "judge.sh").out


@pytest.mark.parametrize("line", ['{"digest": "a", "exit": 0, "metrics": 3}', "x"])
def test_a_line_of_a_journal_that_is_no_result_is_told_with_its_place(
    run: Run, endpoints: Path, tmp_path: Path, line: str
) -> None:
    bisect(run, "--", *judge("B"))
    (journal,) = tmp_path.glob(".npuprof/trials/*/journal.jsonl")
    journal.write_text(journal.read_text() + line + "\n")
    result = run("bisect", "good", "bad", "--", *judge("B"))
    assert result.code == 2, result.err
    assert "NP951" in result.err, result.err
    assert "journal.jsonl:" in result.err, result.err


def test_a_terminal_shows_what_runs_and_what_is_left_and_a_pipe_does_not(
    store: Store, tmp_path: Path
) -> None:
    store({name: preset(name, "ABCDEF") for name in ("good", "bad")})
    command = ["sh", "-c", 'sleep 0.2; [ "$SET_B$SET_E" != badbad ]']
    arguments = [*NPUPROF, "bisect", "good", "bad", "--", *command]
    shown = capture(arguments[3:], 80, tmp_path)
    assert re.search(r"run \d+: \d+ of 6 changes ruled out", shown)
    assert "\r\x1b[K" in shown
    done = subprocess.run(
        [*arguments[:5], "--fresh", *arguments[5:]], cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stderr == b""


def test_what_several_members_need_is_told_beside_them_and_each_of_them_by_itself(
    run: Run, store: Store
) -> None:
    store(
        {
            "good": 'options.precision_mode_v2 = "fp16"\n',
            "bad": (
                '[options]\nprecision_mode_v2 = "mixed_float16"\n'
                'modify_mixlist = { black-list = { to-add = ["A", "B", "C", "D"] } }\n'
            ),
        }
    )
    command = [
        "--",
        "sh",
        "-c",
        (
            'f=$NPUPROF_MODIFY_MIXLIST; [ -z "$f" ] || ! { '
            'grep -q \'"B"\' "$f" && grep -q \'"D"\' "$f"; }'
        ),
    ]
    answer = bisect(run, *command)
    members = [
        [answer["changes"][place]["after"] for place in member["changes"]]
        for member in answer["causes"][0]["members"]
    ]
    assert members == [["mixed_float16"], ["B"], ["D"]]
    assert [len(member["needed_by"]) for member in answer["causes"][0]["members"]] == [2, 0, 0]
    assert all(member["without"]["verdict"] == "good" for member in answer["causes"][0]["members"])
    assert (
        '    without it, and what needs it (modify_mixlist.black-list.to-add "B", '
        'modify_mixlist.black-list.to-add "D"): good ('
    ) in run("bisect", "good", "bad", *command).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good", "bad"], "npuprof bisect GOOD BAD -- python train.py"),
        (["good", "--", "true"], "npuprof bisect GOOD BAD -- python train.py"),
        (["good", "nosuch", "--", "true"], "no preset 'nosuch'"),
        (["good", "bad", "--metric", "(", "--", "true"], "is not a pattern"),
        (["good", "bad", "--tolerance", "x", "--metric", "a", "--", "true"], "is not a tolerance"),
        (["good", "bad", "--timeout", "soon", "--", "true"], "is not a time"),
        (["good", "bad", "--to", "sesion", "--", "true"], "session"),
        (["good", "bad", "--hang", "good", "--", "true"], "--hang 'good' is unknown"),
    ],
)
def test_what_cannot_be_understood_is_said_before_anything_runs(
    run: Run, endpoints: Path, arguments: list[str], message: str
) -> None:
    result = run("bisect", *arguments)
    assert result.code == 2, result.err
    assert message in result.err, result.err
    assert not Path(".npuprof").exists()
