"""``npuprof sweep``: combinations, reports, and schedulers with their programs and schemas."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from npuprof.trials.sweeping import split_values
from support.running import Run, Store
from support.waiting import skip_hangs

#: Two axes of which one combination breaks a rule: lists of operators need a mixed mode.
AXES = (
    "--vary",
    "precision_mode_v2=fp16,mixed_float16",
    "--vary",
    'modify_mixlist.black-list.to-add=["Cast"],["Cast","MatMul"]',
)
SAY = (
    'echo "$NPUPROF_DIGEST" >> ran; echo "loss=1 loss=0.$NPUPROF_HCCL_TIMEOUT"; echo "{\\"it\\": '
    '$((NPUPROF_HCCL_TIMEOUT / 7))}"'
)


@pytest.fixture
def base(store: Store) -> None:
    store(
        {
            "base": "[options]\nhccl_timeout = 600\n",
            "fast": "options.hccl_timeout = 300\n",
            "odd": "env.ODD = 1\n",
        }
    )


def sweep(run: Run, *arguments: str, code: int = 0) -> dict[str, Any]:
    result = run("sweep", "base", "--format", "json", *arguments)
    assert result.code == code, result.err
    found: dict[str, Any] = json.loads(result.out)
    return found


def test_only_allowed_combinations_are_run_each_digest_once_and_each_refusal_names_its_rule(
    run: Run, base: None, tmp_path: Path
) -> None:
    arguments = [*AXES, "--vary", "hccl_timeout=600,900", "-j", "3", "--", "sh", "-c", SAY]
    found = sweep(run, *arguments)["combinations"]
    assert [combination["allowed"] for combination in found] == [False] * 4 + [True] * 4
    assert {finding["code"] for combination in found for finding in combination["findings"]} == {
        "NP303"
    }
    ran = (tmp_path / "ran").read_text().split()
    assert sorted(ran) == sorted(
        combination["digest"] for combination in found if combination["allowed"]
    )
    assert sweep(run, *arguments)["combinations"] == found
    assert len((tmp_path / "ran").read_text().split()) == 4  # nothing is run twice
    text = run("sweep", "base", *arguments).out
    assert "4 combinations not allowed:" in text
    assert "precision_mode_v2=fp16" in text
    assert "NP303" in text


def test_equal_settings_share_a_run(run: Run, base: None, tmp_path: Path) -> None:
    found = sweep(
        run,
        "--with",
        "fast,odd",
        "--vary",
        "hccl_timeout=600,900",
        "--set",
        "env.ODD=1",
        "--",
        "sh",
        "-c",
        SAY,
    )["combinations"]
    assert len(found) == 4
    assert (
        len((tmp_path / "ran").read_text().split())
        == 2
        == sum(combination["same_as"] is None for combination in found)
    )
    assert all(combination["run"]["exit"] == 0 for combination in found)


def test_where_chooses_among_combinations(run: Run, base: None) -> None:
    found = sweep(
        run, "--vary", "hccl_timeout=600,900,1200", "--where", "hccl_timeout > 600", "--", "true"
    )
    assert [combination["values"]["hccl_timeout"] for combination in found["combinations"]] == [
        "900",
        "1200",
    ]
    assert found["left_out"] == 1
    both = sweep(
        run,
        "--vary",
        "hccl_timeout=600,900,1200",
        "--where",
        "hccl_timeout > 600",
        "--where",
        "hccl_timeout < 1200",
        "--",
        "true",
    )
    assert [combination["values"]["hccl_timeout"] for combination in both["combinations"]] == [
        "900"
    ]


def test_what_has_one_value_and_is_given_two_is_refused(run: Run, base: None) -> None:
    result = run("show", "base", "--cann", "8.0", "--cann=8.1")
    assert result.code == 2, result.err
    assert "is given more than once" in result.err, result.err


def test_metrics_are_read_by_pattern_and_from_json_lines(run: Run, base: None) -> None:
    arguments = [
        "--vary",
        "hccl_timeout=600,900",
        "--metric",
        "loss=loss=([0-9.]+)",
        "--metric",
        "it",
        "--",
        "sh",
        "-c",
        SAY,
    ]
    found = sweep(run, *arguments)["combinations"]
    assert [combination["run"]["metrics"] for combination in found] == [
        {"loss": 0.6, "it": 85},
        {"loss": 0.9, "it": 128},
    ]
    rows = list(
        csv.DictReader(io.StringIO(run("sweep", "base", "--format", "csv", *arguments).out))
    )
    assert [(row["hccl_timeout"], row["exit"], row["loss"], row["it"]) for row in rows] == [
        ("600", "0", "0.6", "85.0"),
        ("900", "0", "0.9", "128.0"),
    ]


def test_runs_that_fail_hang_or_are_killed_are_rows_and_never_best(
    run: Run, base: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_hangs(monkeypatch, tmp_path / "hangs")
    script = (
        "echo v=$NPUPROF_HCCL_TIMEOUT; case $NPUPROF_HCCL_TIMEOUT in 601) exit 3 ;; 602) kill "
        "-SEGV $$ ;; 603) echo >> hangs; sleep 100 ;; esac"
    )
    arguments = [
        "--vary",
        "hccl_timeout=600,601,602,603",
        "--metric",
        "v=v=(.*)",
        "--timeout",
        "500",
        "--",
        "sh",
        "-c",
        script,
    ]
    rows = [line.split() for line in run("sweep", "base", *arguments).out.splitlines()[1:]]
    assert [row[1] for row in rows] == ["0", "3", "SIGSEGV", "hang"]
    assert "hccl_timeout = 600" in run("sweep", "base", "--best", "max:v", *arguments).out


def test_a_sweep_that_is_cut_short_goes_on(run: Run, base: None, tmp_path: Path) -> None:
    arguments = ["--vary", "hccl_timeout=600,601,602,603", "--", "sh", "-c", SAY]
    found = sweep(run, "--max-runs", "3", *arguments, code=2)["combinations"]
    assert [combination["run"] is not None for combination in found] == [True, True, True, False]
    assert all(combination["run"] for combination in sweep(run, *arguments)["combinations"])
    assert len((tmp_path / "ran").read_text().split()) == 4
    assert run("sweep", "base", "--results", *arguments).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "true"], "nothing is varied"),
        (["--vary", "hccl_timeout=600"], "no command to run"),
        (["--vary", "hccl_timeout=", "--", "true"], "a value that is empty"),
        (["--vary", "profile.owner=x", "--", "true"], "is no setting"),
        (["--vary", "hccl_timeout=1", "--vary", "hccl_timeout=2", "--", "true"], "varied twice"),
        (["--vary", "hccl_timeout=1", "--metric", "time=x", "--", "true"], "names no metric"),
        (
            ["--vary", "hccl_timeout=1", "--metric", r"loss: (\d+)", "--", "true"],
            "'loss=loss: ([0-9.]+)'",
        ),
        (
            ["--vary", "hccl_timeout=1", "--best", "x", "--", "true"],
            "is not a metric of this sweep",
        ),
        (["--vary", "hccl_timeout=1", "--to", "k8s-indexed-job", "--", "true"], "--image"),
        (["--vary", "hccl_timeout=x", "--", "true"], "no combination is left to run"),
        (["--with", "fast,", "--", "true"], "without a name"),
        (
            [
                *(
                    argument
                    for n in range(9)
                    for argument in ("--vary", f"env.V{n}=1,2,3,4,5,6,7,8,9")
                ),
                "--",
                "true",
            ],
            "are more than 100,000",
        ),
    ],
)
def test_what_cannot_be_understood_is_said(
    run: Run, base: None, arguments: list[str], message: str
) -> None:
    result = run("sweep", "base", *arguments)
    assert result.code == 2, result.err
    assert message in result.err, result.err


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('["a","b"],["c"]', ['["a","b"]', '["c"]']),
        ('"a,b",c', ['"a,b"', "c"]),
        ("{ a = 1, b = 2 },x", ["{ a = 1, b = 2 }", "x"]),
        (r'"a\",b",c', [r'"a\",b"', "c"]),
        ('''"""a"b,c"d""",e''', ['"""a"b,c"d"""', "e"]),
        ("it's", ["it's"]),
    ],
)
def test_values_are_split_at_commas_that_no_quote_or_bracket_holds(
    text: str, values: list[str]
) -> None:
    assert split_values(text) == values


@pytest.mark.parametrize("values", ['["a",["b"]', '"a,b', "a),b", "1,[2}"])
def test_values_that_a_quote_or_a_bracket_leaves_open_are_refused(
    run: Run, base: None, values: str
) -> None:
    result = run("sweep", "base", "--vary", f"env.X={values}", "--", "true")
    assert result.code == 2, result.err
    assert "--vary: error NP902: a quote or bracket in the values of env.X" in result.err, (
        result.err
    )


# -- schedulers -----------------------------------------------------------------------------------


SRUN = '#!/bin/bash\nwhile [ "${1#--}" != "$1" ]; do shift; done\nSLURM_PROCID=0 exec "$@"\n'


def test_a_task_of_an_array_is_one_combination_with_its_rendered_file(
    run: Run, base: None, tmp_path: Path
) -> None:
    arguments = ["--vary", "hccl_timeout=600,900", "--to", "session"]
    command = ["--", "sh", "-c", 'grep -c "i = $NPUPROF_HCCL_TIMEOUT" "$0"', "{code}"]
    script = run("sweep", "base", "--to", "slurm-array", "-j", "2", *arguments, *command).out
    assert "#SBATCH --array=0-1%2\n" in script
    (tmp_path / "job.sh").write_text(script)
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    for task in "012":
        done = subprocess.run(
            ["bash", "job.sh"],
            env={**environment, "SLURM_ARRAY_TASK_ID": task},
            check=False,
            capture_output=True,
        )
        assert done.returncode == (2 if task == "2" else 0)
    found = sweep(run, "--results", *arguments, *command)["combinations"]
    assert [combination["run"]["exit"] for combination in found] == [0, 0]


def test_kubernetes_takes_the_manifest_by_its_published_schema_and_the_shell_its_script(
    run: Run, base: None, tmp_path: Path
) -> None:
    lists = [
        "--set",
        "precision_mode_v2=mixed_float16",
        "--vary",
        'modify_mixlist.black-list.to-add=["Cast"],["MatMul"]',
    ]
    command = ["--", "sh", "-c", 'echo "$1" "$NPUPROF_MODIFY_MIXLIST"', "it's $(X)", "a: b\n"]
    result = run(
        "sweep", "base", "--to", "k8s-indexed-job", "--image", "registry/train:1", *lists, *command
    )
    assert result.code == 0, result.err
    assert "# backoffLimitPerIndex and maxFailedIndexes need Kubernetes 1.29 " in result.out
    documents = list(yaml.safe_load_all(result.out))
    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    held, job = documents
    assert job["spec"]["completions"] == 2
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["backoffLimitPerIndex"] == 0
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", job["metadata"]["name"])
    volume = job["spec"]["template"]["spec"]["volumes"][0]["configMap"]
    assert volume["name"] == held["metadata"]["name"]
    assert {item["key"] for item in volume["items"]} == set(held["data"])
    for item in volume["items"]:
        path = tmp_path / "mount" / item["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(held["data"][item["key"]])
    assert json.loads((tmp_path / "mount/1/ops_info.json").read_text()) == {
        "black-list": {"to-add": ["MatMul"]}
    }
    arguments = ["sh", str(tmp_path / "mount/run.sh")]
    done = subprocess.run(
        arguments,
        env={"PATH": "/usr/bin:/bin", "JOB_COMPLETION_INDEX": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    outcome, last = done.stdout.rstrip("\n").rsplit("\n", 2)[0], done.stdout.splitlines()[-1]
    assert outcome.endswith("/etc/npuprof/1/ops_info.json")
    assert json.loads(last)["exit"] == 0
    (tmp_path / "logs").write_text(f"[pod/x] before\n{done.stdout}after\n")
    arguments = [*lists, "--format", "json", "--logs", "logs", *command]
    found = json.loads(run("sweep", "base", *arguments).out)["combinations"]
    assert [combination["run"] and combination["run"]["exit"] for combination in found] == [None, 0]
    assert "contains no new results of this sweep" in run("sweep", "base", *arguments).err


def test_a_timeout_ends_the_trial_of_a_scheduler_and_nothing_else(
    run: Run, base: None, tmp_path: Path
) -> None:
    arguments = ["--vary", "hccl_timeout=600,900", "--timeout", "1"]
    command = ["--", "sh", "-c", "[ $NPUPROF_HCCL_TIMEOUT = 600 ] || sleep 1000"]
    (tmp_path / "job.sh").write_text(
        run("sweep", "base", "--to", "slurm-array", *arguments, *command).out
    )
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    for task in "01":
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_ARRAY_TASK_ID": task}
        subprocess.run(["bash", "job.sh"], env=environment, check=False, capture_output=True)
    rows = sweep(run, "--results", *arguments, *command)["combinations"]
    assert [(row["run"]["exit"], row["run"]["hung"]) for row in rows] == [(0, False), (124, True)]
    shown = [
        line.split()[1]
        for line in run("sweep", "base", "--results", *arguments, *command).out.splitlines()[1:]
    ]
    assert shown == ["0", "hang"]


def test_an_array_beyond_the_default_of_slurm_says_how_to_submit_it_in_parts(
    run: Run, base: None, tmp_path: Path
) -> None:
    script = 'echo "$NPUPROF_HCCL_TIMEOUT" > said'
    few = run(
        "sweep",
        "base",
        "--vary",
        "hccl_timeout=600,601",
        "--to",
        "slurm-array",
        "--",
        "sh",
        "-c",
        script,
    )
    assert "MaxArraySize" not in few.out + few.err
    values = ",".join(map(str, range(600, 2100)))
    many = run(
        "sweep",
        "base",
        "--vary",
        f"hccl_timeout={values}",
        "--to",
        "slurm-array",
        "--",
        "sh",
        "-c",
        script,
    )
    parts = "sbatch --array=0-999 THIS 0; sbatch --array=0-999 THIS 1000"
    assert parts in many.out
    assert parts in " ".join(many.err.split())
    (tmp_path / "job.sh").write_text(many.out)
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_ARRAY_TASK_ID": "7"}
    subprocess.run(["bash", "job.sh", "1000"], env=environment, check=True, capture_output=True)
    assert (tmp_path / "said").read_text() == "1607\n"


def test_the_best_is_a_number_and_the_way_that_was_taken_is_said(run: Run, base: None) -> None:
    script = (
        "case $NPUPROF_HCCL_TIMEOUT in 600) echo loss=nan "
        ";; *) echo loss=$NPUPROF_HCCL_TIMEOUT ;; esac"
    )
    arguments = ["--vary", "hccl_timeout=600,601,602", "--metric", "loss=loss=(.*)"]
    for best, timeout, text in (
        ("loss", 602, "greatest loss 602"),
        ("min:loss", 601, "least loss 601"),
    ):
        result = run("sweep", "base", *arguments, "--best", best, "--", "sh", "-c", script)
        assert f"hccl_timeout = {timeout}" in result.out
        assert text in result.err
    none = run(
        "sweep",
        "base",
        "--vary",
        "hccl_timeout=600",
        *arguments[2:],
        "--best",
        "loss",
        "--",
        "sh",
        "-c",
        script,
    )
    assert "no run has printed loss" in none.err
