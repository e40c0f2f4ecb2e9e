"""Records of runs: what is in them, and how the verbs that read take them as specs."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from npuprof.runs import run_records
from npuprof.runs.recording import Recorder, hide_arguments
from npuprof.runs.run_records import _report_arguments, digest_arguments, load_record_schema
from support.building import build_store
from support.repositories import Repo
from support.running import Run, Store

NPUPROF = [sys.executable, "-m", "npuprof"]
BASE = (
    '[profile]\nscenario = "training"\n[options]\nhccl_timeout = 600\n'
    'precision_mode_v2 = "mixed_float16"\n'
)
HEIR = """\
[profile]
description = "the one that runs"
extends = ["base/training"]
[options]
hccl_timeout = 1800
modify_mixlist = { black-list = { to-add = ["Cast"] } }
[env]
HCCL_CONNECT_TIMEOUT = 300
RANK_ID = { launcher = "rank" }
"""
Record = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Run a command with a record in ``out``, over presets given as texts."""

    def start(
        presets: Mapping[str, str],
        *command: str,
        spec: str = "bert",
        environ: Mapping[str, str] | None = None,
        flags: tuple[str, ...] = (),
    ) -> subprocess.CompletedProcess[bytes]:
        build_store(tmp_path / "profiles", presets)
        arguments = [*NPUPROF, "run", spec, "--record", "out", *flags, "--", *command]
        return subprocess.run(
            arguments,
            env={**os.environ, **(environ or {})},
            capture_output=True,
            cwd=tmp_path,
            check=False,
        )

    return start


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    Draft202012Validator(
        load_record_schema(), format_checker=Draft202012Validator.FORMAT_CHECKER
    ).validate(found)
    return found


def test_the_published_schema_is_a_schema_and_shown(run: Run) -> None:
    Draft202012Validator.check_schema(load_record_schema())
    assert json.loads(run("schema", "--of", "run").out) == load_record_schema()


def test_a_record_says_what_was_asked_given_and_done(record: Record, tmp_path: Path) -> None:
    done = record(
        {"base/training": BASE, "bert": HEIR},
        "sh",
        "-c",
        "exit 3",
        environ={"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "OTHER": "x"},
        flags=("--set", "hccl_timeout=700", "--product", "atlas-a2-training"),
    )
    assert done.returncode == 3
    found = read(tmp_path / "out" / "bert.5.run.json")
    assert found["asked"] == {
        "spec": "bert",
        "set": ["hccl_timeout=700"],
        "product": "atlas-a2-training",
    }
    assert found["context"] == {"product": "atlas-a2-training"}
    assert found["state"] == "ended"
    assert found["exit"] == {"code": 3, "signal": None}
    assert found["command"] == {
        "program": "sh",
        "script": None,
        "digest": digest_arguments(["-c", "exit 3"]),
    }
    assert [found["process"][name] for name in ("rank", "local_rank", "world_size")] == [5, 1, 8]
    by_key = {setting["key"]: setting for setting in found["settings"]}
    assert by_key["hccl_timeout"]["value"] == 700
    assert [origin["path"] for origin in by_key["hccl_timeout"]["origins"]] == [
        "--set",
        "profiles/bert.toml",
        "profiles/base/training.toml",
    ]
    assert by_key["precision_mode_v2"]["origins"][0]["line"] == 5
    assert found["environment"]["RANK_ID"] == "5"
    assert "OTHER" not in found["environment"]
    assert "HOME" not in found["environment"]
    assert [profile["name"] for profile in found["profiles"]] == ["base/training", "bert"]
    assert found["start"] <= found["end"]


def test_a_record_is_called_by_presets_and_rank(record: Record, tmp_path: Path) -> None:
    environ = {"OMPI_COMM_WORLD_RANK": "4", "SLURM_PROCID": "0"}
    assert (
        record(
            {"base/training": BASE, "bert": HEIR},
            "true",
            spec="base/training+bert",
            environ=environ,
        ).returncode
        == 0
    )
    assert os.listdir(tmp_path / "out") == ["base-training-bert.4.run.json"]


def test_names_that_are_taken_get_numbers_and_many_ranks_can_start_at_once(
    record: Record, tmp_path: Path
) -> None:
    for _ in range(2):
        record({"bert": BASE}, "true")
    arguments = [*NPUPROF, "run", "bert", "--record", "out", "--", "true"]
    started = [
        subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.DEVNULL) for _ in range(6)
    ]
    assert [process.wait(60) for process in started] == [0] * 6
    assert sorted(os.listdir(tmp_path / "out")) == sorted(
        f"bert.0{f'-{n}' if n > 1 else ''}.run.json" for n in range(1, 9)
    )
    assert all(read(path)["state"] == "ended" for path in (tmp_path / "out").iterdir())


SECRETS = (
    "--user=me:pa55",
    "-pk3yk3y",
    "--token",
    "t0ken",
    "--password=pa55",
    "https://me:pa55@host/x",
    "sh -c 'echo k3yk3y | login'",
    "--epochs=3",
)


def test_no_argument_of_the_command_is_recorded_and_equal_ones_have_equal_digests(
    record: Record, tmp_path: Path
) -> None:
    text = f'{BASE}[env]\nWANDB_API_KEY = "k3y"\nHTTPS_PROXY = "http://me:pa55@proxy:80"\n'
    flags = ("--no-check", "--trust", "--set", "env.MY_SECRET=s3cret")
    (tmp_path / "train.py").write_text("")
    for arguments in (SECRETS, SECRETS, SECRETS[:-1]):
        assert (
            record({"bert": text}, "true", "-u", "train.py", *arguments, flags=flags).returncode
            == 0
        )
    raw = (tmp_path / "out" / "bert.0.run.json").read_text()
    assert not any(secret in raw for secret in ("k3y", "t0ken", "s3cret", "pa55", "epochs"))
    first, second, third = (
        read(tmp_path / "out" / f"bert.0{ending}.run.json") for ending in ("", "-2", "-3")
    )
    assert set(first["hidden"]) == {"env.WANDB_API_KEY", "env.MY_SECRET", "env.HTTPS_PROXY"}
    assert first["command"]["program"] == "true"
    assert first["command"]["script"] == "train.py"
    assert first["command"] == second["command"] != third["command"]
    assert first["asked"]["set"] == ["env.MY_SECRET=***"]


def test_arguments_are_recorded_where_that_is_asked_for_redacted_by_name_and_that_is_said(
    record: Record, tmp_path: Path
) -> None:
    done = record({"bert": BASE}, "true", *SECRETS, flags=("--record-args",))
    assert (
        b"the record contains the arguments of the command; only those with a name of "
        b"something secret are redacted"
    ) in done.stderr
    assert read(tmp_path / "out" / "bert.0.run.json")["command"]["arguments"] == [
        "--user=me:pa55",
        "-pk3yk3y",
        "--token",
        "***",
        "--password=***",
        "https://***@host/x",
        "sh -c 'echo k3yk3y | login'",
        "--epochs=3",
    ]


#: Arguments of which none has the name of a secret.
HARMLESS = (
    ["--tokenizer", "bert", "--author=Ada", "--epochs", "3", "-u", "train.py"],
    [
        "--moe-token-dispatcher-type",
        "alltoall",
        "--image-token-index",
        "5",
        "ASCEND_GE_PY_PASS_PATH=/x",
    ],
    [
        "TOKENIZERS_PARALLELISM=false",
        "--keyboard=us",
        "--max-tokens=512",
        "--num-tokens=8",
        "tokenizer=bert",
    ],
    [
        "--token-budget",
        "8",
        "--max-tokens",
        "4096",
        "token_type=bpe",
        "--pad-token",
        "<pad>",
        "eos_token=</s>",
    ],
    [
        "key=value",
        "lr:0.1",
        "pin_memory=true",
        '{"max_tokens": 8}',
        "count the tokens",
        "--author=Ada",
        "bypass=1",
    ],
    [
        "-v",
        "/run/secrets:/run/secrets",
        "--master=tcp://token-server:29500",
        "ssh://me@auth:22/x",
    ],
)


@pytest.mark.parametrize(
    ("arguments", "redacted"),
    [
        (["--api-key", "k3y"], ["--api-key", "***"]),
        (["sh", "-c", "export HF_TOKEN=k3y; train"], ["sh", "-c", "***"]),
        (["--header", "X-Api-Key: k3y", "X-Auth-Token: k3y"], ["--header", "***", "***"]),
        (['{"password":"k3y"}', "-d", '{"user":"me"}'], ["***", "-d", '{"user":"me"}']),
        (["s3://a:k3y@b/?sig=k3y"], ["s3://***@b/?..."]),
        (["DB_PWD=k3y", "--pwd=k3y", "--pin", "4711"], ["DB_PWD=***", "--pwd=***", "--pin", "***"]),
        (["x", "hf_abcdefghijklmnopqrstuvwx", "x=ghp_0123456789abcdef"], ["x", "***", "x=***"]),
        (
            ["https://me:k3y@host/x", "--url=https://me:k3y@host/x"],
            ["https://***@host/x", "--url=https://***@host/x"],
        ),
        (
            ["token:k3y", "X-Api-Key:k3y", "api.key=k3y", "token=", "k3y"],
            ["token:***", "X-Api-Key:***", "api.key=***", "token=***", "***"],
        ),
        (["-H", "Authorization: Bearer k3y", "Authorization:Bearer k3y"], ["-H", "***", "***"]),
        (
            ["-H", "Authorization:", "Bearer", "k3y", "Bearer k3y"],
            ["-H", "Authorization:***", "***", "***", "***"],
        ),
        (["Server=x;Password=k3y;Db=y", "Server=x; UserPwd=k3y"], ["Server=x;Password=***", "***"]),
        (
            ["--opts=lr=1,token:k3y,epochs=3", "AccountKey=k3y==;"],
            ["--opts=lr=1,token:***", "AccountKey=***"],
        ),
        (
            ['{"user_key": "k3y"}', "AWS_SECRET_ACCESS_KEY:k3y", "API_TOKENS=k3y"],
            ["***", "AWS_SECRET_ACCESS_KEY:***", "API_TOKENS=***"],
        ),
        (
            ["VLLM_API_KEY=k3y", "RAY_REDIS_PASSWORD:k3y", "GIT_TOKEN=k3y", "--dbpass", "k3y"],
            ["VLLM_API_KEY=***", "RAY_REDIS_PASSWORD:***", "GIT_TOKEN=***", "--dbpass", "***"],
        ),
        *((arguments, arguments) for arguments in HARMLESS),
    ],
)
def test_of_arguments_what_has_the_name_of_a_secret_is_redacted_and_the_rest_kept(
    arguments: list[str], redacted: list[str]
) -> None:
    assert hide_arguments(arguments) == redacted


OLD_COMMAND = ["sh", "-c", "mysql -p***"]


def test_records_of_an_older_npuprof_are_read_with_a_note_that_they_contain_arguments(
    record: Record, tmp_path: Path, run: Run
) -> None:
    record({"bert": BASE}, "sh", "-c", "true")
    path = tmp_path / "out" / "bert.0.run.json"
    old = tmp_path / "old" / "bert.0.run.json"
    old.parent.mkdir()
    old.write_text(json.dumps({**read(path), "schema": "npuprof.run/1", "command": OLD_COMMAND}))
    for arguments in (
        ["show", str(old)],
        ["whatran", str(old)],
        ["diff", str(old), str(path)],
        ["diff", "bert", str(old)],
    ):
        done = run(*arguments)
        assert done.code == 0, (arguments, done.err)
        assert "records of an older npuprof contain the arguments of commands" in done.err, (
            arguments
        )
        _report_arguments.cache_clear()
    assert "the commands differ" not in run("diff", str(old), str(path)).err, (
        "what is redacted cannot be compared"
    )


def test_a_record_says_of_which_commit_each_file_was_and_whether_it_was_changed(repo: Repo) -> None:
    repo.commit({"base/training": BASE, "bert": HEIR})
    repo.write({"bert": f"{HEIR}\n# changed\n"})
    done = subprocess.run(
        [*NPUPROF, "run", "bert", "--record", "out", "--", "true"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = read(repo.folder / "out" / "bert.0.run.json")
    head = repo.head
    assert [
        (profile["name"], profile["commit"], profile["dirty"]) for profile in found["profiles"]
    ] == [
        ("base/training", head, False),
        ("bert", head, True),
    ]


def test_a_record_that_cannot_be_written_stops_nothing_but_what_can_be_mended_first(
    record: Record, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("a file")
    done = record({"bert": BASE}, "touch", str(tmp_path / "ran"))
    assert done.returncode == 2
    assert not (tmp_path / "ran").exists()
    assert b"it is not a folder" in done.stderr


def test_that_a_record_cannot_say_more_is_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Recorder(str(tmp_path), {"preset": {"name": "bert"}, "process": {"rank": 0}})
    kept.start()

    def fail(self: Recorder, tree: object, name: str) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Recorder, "_write", fail)
    kept.record_start(7)
    kept.finish(state="ended")
    assert capsys.readouterr().err.count("does not say how the run ended") == 1


@pytest.mark.parametrize(
    ("environ", "job"),
    [
        ({"SLURM_JOB_ID": "9", "SLURM_STEP_ID": "1", "SLURM_PROCID": "0"}, "9.1"),
        ({"SLURM_JOB_ID": "9"}, "9"),
        (
            {
                "SLURM_JOB_ID": "9",
                "SLURM_STEP_ID": "0",
                "OMPI_COMM_WORLD_RANK": "2",
                "PMIX_NAMESPACE": "77",
            },
            "77",
        ),
        ({"JOB_ID": "own", "SLURM_JOB_ID": "9", "SLURM_STEP_ID": "1"}, "own"),
    ],
)
def test_the_job_of_a_record_is_that_of_the_innermost_launcher(
    record: Record, tmp_path: Path, environ: dict[str, str], job: str
) -> None:
    record({"bert": BASE}, "true", environ=environ)
    (path,) = (tmp_path / "out").iterdir()
    assert read(path)["process"]["job"] == job


def test_a_folder_without_records_is_no_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    build_store(tmp_path / "team" / "profiles", {"bert": BASE})
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "team")
    done = run("diff", "../empty")
    assert done.code == 2, done.err
    assert "error NP962: ../empty contains no run record" in done.err, done.err


def test_a_command_that_is_not_there_is_recorded_as_not_started(
    record: Record, tmp_path: Path
) -> None:
    assert record({"bert": BASE}, "no-such-command").returncode == 127
    found = read(tmp_path / "out" / "bert.0.run.json")
    assert found["state"] == "not started"
    assert found["exit"] == {"code": 127, "signal": None}


# -- records as specs -----------------------------------------------------------------------------


def test_a_record_is_a_spec_with_the_digest_and_the_origins_of_what_ran(
    record: Record, tmp_path: Path, run: Run
) -> None:
    record({"base/training": BASE, "bert": HEIR}, "true", flags=("--set", "hccl_timeout=700"))
    path = "out/bert.0.run.json"
    digest = read(tmp_path / path)["preset"]["digest"]
    shown = json.loads(run("show", path, "--format", "json", "--origin").out)
    assert shown["digest"] == digest
    assert (
        shown["origins"]["precision_mode_v2"][0]
        | {"path": "profiles/base/training.toml", "line": 5}
        == shown["origins"]["precision_mode_v2"][0]
    )
    assert run("diff", path, f"./{path}", "--exit-code").code == 0
    result = run("diff", "bert", path)
    assert result.err == ""
    assert "hccl_timeout" in result.out
    assert "700" in result.out
    assert run("check", path).code == 0
    assert "hccl_timeout = 700  # --set" in run("show", path, "--origin").out
    assert "hccl_timeout" in run("explain", path, "hccl_timeout").out
    assert run("render", path, "--to", "json").code == 0


def test_a_folder_whose_records_say_the_same_is_a_spec_and_of_others_one_is_to_be_named(
    record: Record, tmp_path: Path, run: Run
) -> None:
    record({"bert": BASE}, "true", flags=("--set", "hccl_timeout=700"))
    assert "hccl_timeout = 700\n" in run("show", "out").out
    assert run("diff", "out", "./out/bert.0.run.json", "--exit-code").code == 0
    (tmp_path / "out").rename(tmp_path / "good")
    write_records(tmp_path, record, {}, 3)
    assert "hccl_timeout = 600\n" in run("show", "out").out
    done = run("diff", "good", "out", "--exit-code")
    assert done.code == 1
    assert done.out.partition("  ")[0] == "~ hccl_timeout 700 → 600 s"
    write_records(tmp_path, record, {2: {"hccl_timeout": 700}}, 3)
    done = run("show", "out")
    assert done.code == 2
    assert done.out == ""
    assert "NP960: out contains the records of 4 processes" in done.err
    assert "name one, such as out/bert.0.run.json; npuprof diff out compares them" in done.err


@pytest.mark.parametrize("spec", ["out/bert.0.run.json", "out", "./out"])
@pytest.mark.parametrize("arguments", ["run {} -- true", "env {} --shell bash"])
def test_verbs_that_do_something_take_no_record_and_say_so(
    arguments: str, spec: str, record: Record, run: Run
) -> None:
    record({"bert": BASE}, "true")
    done = run(*arguments.format(spec).split())
    assert done.code == 2
    assert "NP961" in done.err


BAD = {
    "": "not a run record",
    "{": "not a run record",
    "[]": "its top level is not an object",
    "{}": "it has no schema",
    '{"schema": "npuprof.run/3"}': "this npuprof reads npuprof.run/2",
    '{"schema": "npuprof.run/1"}': "which preset",
    '{"schema": "npuprof.run/1", "preset": {"name": "a"}}': "settings are not a list",
    (
        '{"schema": "npuprof.run/1", "preset": {"name": '
        '"a"}, "settings": [{"key": "x.y", "value": 1}]}'
    ): "setting 1 has",
    (
        '{"schema": "npuprof.run/1", "preset": {"name": "a"}, '
        '"settings": [{"key": "a", "value": {"$toml": "x"}}]}'
    ): "setting 1 has",
    "[" * 100_000: "nested too deeply",
    "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"): "not a run record",
}


@pytest.mark.parametrize("text", BAD, ids=[f"{place}" for place in range(len(BAD))])
def test_what_is_no_record_is_told_with_its_place(text: str, tmp_path: Path, run: Run) -> None:
    (tmp_path / "x.run.json").write_text(text)
    done = run("show", "./x.run.json")
    assert done.code == 2, done.err
    assert "NP960" in done.err, done.err
    assert BAD[text] in done.err


@pytest.mark.parametrize(
    "value",
    [
        1,
        1.0,
        True,
        "x",
        "",
        [1, [2.5]],
        {"a": {"b": []}},
        {"$toml": "1"},
        {"$toml": {"x": 1}},
        float("inf"),
        10**30,
        "\x00\u2028é",
    ],
)
def test_every_value_comes_back_typed(value: Any) -> None:
    back = run_records.decode_value(json.loads(json.dumps(run_records.encode_value(value))))
    assert back == value
    assert repr(back) == repr(value)


# -- ranks ----------------------------------------------------------------------------------------


def write_records(
    tmp_path: Path, record: Record, changes: Mapping[int, Mapping[str, Any]], count: int = 8
) -> None:
    """Make the records of many ranks of one real one."""
    record({"bert": BASE}, "true")
    made = json.loads((tmp_path / "out" / "bert.0.run.json").read_text())
    for rank in range(count):
        fields = json.loads(json.dumps(made))
        fields["process"] |= {"rank": rank, "pid": 100 + rank}
        fields["environment"]["RANK_ID"] = str(rank)
        for name, value in changes.get(rank, {}).items():
            if name.isupper():
                fields["environment"][name] = value
            elif name == "exit":
                fields["exit"] = value
            else:
                next(setting for setting in fields["settings"] if setting["key"] == name)[
                    "value"
                ] = value
        (tmp_path / "out" / f"bert.{rank}.run.json").write_text(json.dumps(fields))


def test_ranks_that_were_given_the_same_are_alike_whatever_their_rank(
    record: Record, tmp_path: Path, run: Run
) -> None:
    write_records(tmp_path, record, {})
    done = run("diff", "out", "--exit-code")
    assert done.code == 0
    assert done.out == "8 records of bert: all were given the same\n"


def test_the_rank_that_differs_is_told_with_what_differs(
    record: Record, tmp_path: Path, run: Run
) -> None:
    changes = {
        3: {"hccl_timeout": 1200, "exit": {"code": None, "signal": "SIGKILL"}},
        6: {"ASCEND_GLOBAL_LOG_LEVEL": "1"},
    }
    write_records(tmp_path, record, changes)
    done = run("diff", "out", "--exit-code")
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[0] == "8 records of bert: ranks 0-2, 4-5, 7 alike; rank 3; rank 6 differ"
    assert any(
        "hccl_timeout 600" in line and "1200" in line for line in lines[lines.index("rank 3:") :]
    )
    assert lines[lines.index("rank 6:") + 1] == "  + ASCEND_GLOBAL_LOG_LEVEL '1'  (environment)"
    assert "  died of SIGKILL: rank 3" in lines
    assert run("diff", "out", "--name-only").out.splitlines() == [
        "out/bert.3.run.json",
        "out/bert.6.run.json",
    ]
    fields = json.loads(run("diff", "out", "--format", "json").out)["presets"][0]
    assert [group["ranks"] for group in fields["groups"]] == [[0, 1, 2, 4, 5, 7], [3], [6]]
    assert "hccl_timeout" in run("diff", "out", "--format", "markdown").out
    two = run("diff", "out/bert.0.run.json", "out/bert.6.run.json", "--exit-code")
    assert two.code == 1
    assert two.out == "+ ASCEND_GLOBAL_LOG_LEVEL '1'  (environment)\n"
    two = run("diff", "out/bert.3.run.json", "out/bert.6.run.json", "--format", "json")
    assert json.loads(two.out)["environment"] == [
        {"name": "ASCEND_GLOBAL_LOG_LEVEL", "before": None, "after": "1"}
    ]
    assert json.loads(two.out)["ended"] == ["died of SIGKILL", "exit 0"]


#: How a test says who takes part in a launch: rank, when it starts and ends, and fields of its
#: record.
Part = tuple[int, int, int | None, Mapping[str, Any]]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        # each launch has four ranks where no other number is said
        (
            [(0, 1, 9, {}), (1, 1, 9, {}), (2, 1, 9, {})],
            ["3 records of bert: all were given the same", "no record: rank 3 of 4"],
        ),
        (
            [(0, 1, 9, {}), (3, 1, 9, {})],
            ["2 records of bert: all were given the same", "no record: rank 1-2 of 4"],
        ),
        # a smaller launch came later; one was started again
        (
            [(0, 1, 2, {"size": 1}), (1, 3, 4, {"size": 2}), (0, 5, 6, {"size": 2})],
            ["2 records of bert: all were given the same"],
        ),
        (
            [*((rank, 1, 9, {}) for rank in range(4)), (2, 7, 9, {"value": 5})],
            ["4 records of bert: ranks 0-1, 3 alike; rank 2 differs"],
        ),
        # a rank that was given another preset
        (
            [*((rank, 1, 9, {}) for rank in range(3)), (3, 1, 9, {"name": "large"})],
            [
                "4 records of bert: ranks 0-2 alike; rank 3 differs",
                "  ~ preset 'bert' → 'large'  (record)",
            ],
        ),
        (
            [
                *((rank, 1, 9, {}) for rank in range(4)),
                *((rank, 1, 9, {"name": "large"}) for rank in range(4)),
            ],
            [
                "4 records of bert: all were given the same",
                "4 records of large: all were given the same",
            ],
        ),
        # two jobs, of which the last one counts
        (
            [
                (rank, 1 + 3 * job, None if job == 0 else 9, {"job": str(job), "value": 5 + job})
                for job in range(2)
                for rank in range(4)
            ],
            ["4 records of bert: all were given the same"],
        ),
    ],
)
def test_the_records_of_one_launch_are_compared_whatever_else_a_folder_holds(
    parts: Sequence[Part], expected: list[str], record: Record, tmp_path: Path, run: Run
) -> None:
    record({"bert": BASE}, "true")
    out = tmp_path / "out"
    made = json.loads((out / "bert.0.run.json").read_text())
    (out / "bert.0.run.json").unlink()
    for number, (rank, start, end, more) in enumerate(parts):
        fields = json.loads(json.dumps(made))
        fields["process"] |= {
            "rank": rank,
            "world_size": more.get("size", 4),
            "job": more.get("job"),
        }
        fields |= {
            "start": f"2026-01-01T00:00:0{start}.000Z",
            "end": end and f"2026-01-01T00:00:0{end}.000Z",
        }
        fields["preset"]["name"] = more.get("name", "bert")
        fields["settings"][0]["value"] = more.get("value", fields["settings"][0]["value"])
        (out / f"{number:02}.run.json").write_text(json.dumps(fields))
    lines = run("diff", "out").out.splitlines()
    assert [
        line
        for line in lines
        if "records of" in line or "record of" in line or "no record" in line or "(record)" in line
    ] == expected
    missing = [
        preset["missing"]
        for preset in json.loads(run("diff", "out", "--format", "json").out)["presets"]
    ]
    assert any(missing) is any(line.startswith("no record") for line in expected)


def test_of_two_runs_it_is_told_that_their_commands_differ(
    record: Record, tmp_path: Path, run: Run
) -> None:
    record({"bert": BASE}, "true")
    record({"bert": BASE}, "sh", "-c", "true")
    done = run("diff", "out/bert.0.run.json", "out/bert.0-2.run.json", "--exit-code")
    assert done.code == 0
    assert done.out == ""
    assert re.search(
        r"the commands differ: true \(arguments 4f53cda\); sh \(arguments [0-9a-f]{7}\)", done.err
    )


def test_runs_that_no_launcher_gave_a_rank_are_compared_one_by_one(
    record: Record, tmp_path: Path, run: Run
) -> None:
    for timeout in ("600", "700", "600"):
        record({"bert": BASE}, "true", flags=("--set", f"hccl_timeout={timeout}"))
    done = run("diff", "out")
    assert done.out.splitlines()[0] == "3 records of bert: run 1, run 3 alike; run 2 differs"
    assert "older" not in done.err
    for number in (1, 3):
        (tmp_path / "out" / f"bert.0{f'-{number}' if number > 1 else ''}.run.json").unlink()
        lines = run("diff", "out").out.splitlines()
        assert lines[0] == (
            "2 records of bert: run 2 differs from run 1"
            if number == 1
            else "1 record of bert: all were given the same"
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("diff out", "~ hccl_timeout 600 → 700 s"),
        ("diff out --format json --exit-code", '"unread": [\n    "out/bert.3.run.json"\n  ]'),
        ("whatran out", "(bert)\n  bert\n"),
        ("diff alike out/bert.2.run.json", "~ hccl_timeout 600 → 700 s"),
        ("diff alike alike out/bert.2.run.json", "hccl_timeout"),
    ],
)
def test_a_damaged_record_in_a_folder_is_told_and_the_others_are_compared(
    arguments: str, message: str, record: Record, tmp_path: Path, run: Run
) -> None:
    write_records(tmp_path, record, {2: {"hccl_timeout": 700}})
    (tmp_path / "out" / "bert.3.run.json").write_text("{")
    shutil.copytree(tmp_path / "out", tmp_path / "alike")
    (tmp_path / "alike" / "bert.2.run.json").unlink()
    done = run(*arguments.split())
    assert done.code == 2, (done.out, done.err)
    assert message in done.out, (done.out, done.err)
    assert "bert.3.run.json:1:2: error NP960" in done.err, (done.out, done.err)


@pytest.mark.parametrize("arguments", ["diff out", "show out"])
def test_of_a_folder_in_which_every_record_is_damaged_nothing_is_said(
    arguments: str, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "out").mkdir()
    for rank in "01":
        (tmp_path / "out" / f"bert.{rank}.run.json").write_bytes(b"\0\xff")
    done = run(*arguments.split())
    assert done.code == 2
    assert done.out == ""
    assert all(f"bert.{rank}.run.json" in done.err for rank in "01")


@pytest.mark.parametrize(
    "field", ["profiles", "process", "start", "exit", "asked", "job", "commit"]
)
def test_a_record_with_a_field_of_another_kind_is_read_as_far_as_it_goes(
    field: str, record: Record, tmp_path: Path, run: Run
) -> None:
    write_records(tmp_path, record, {})
    path = tmp_path / "out" / "bert.1.run.json"
    fields = read(path)
    inner = {"job": fields["process"], "commit": (fields["profiles"] or [{}])[0]}.get(field, fields)
    inner[field] = {"a": [1]}
    path.write_text(json.dumps(fields))
    for arguments, message in (
        ("diff out", " of bert: "),
        ("whatran out", "(bert)"),
        ("diff out/bert.0.run.json out/bert.1.run.json", ""),
    ):
        done = run(*arguments.split())
        assert done.code in (0, 1), (arguments, done)
        assert message in done.out, (arguments, done)


# -- what the function in the script says ---------------------------------------------------------

#: As much of TensorFlow as the loader asks for, so that no test needs it.
TENSORFLOW = """
import collections, types
class Value:
    s = b = i = None
def ConfigProto():
    optimizers = []
    def add():
        parameters = collections.defaultdict(Value)
        optimizers.append(types.SimpleNamespace(name="", parameter_map=parameters))
        return optimizers[-1]
    class Optimizers(list):
        pass
    made = Optimizers()
    made.add = add
    rewrite = types.SimpleNamespace(custom_optimizers=made)
    return types.SimpleNamespace(graph_options=types.SimpleNamespace(rewrite_options=rewrite))
v1 = types.SimpleNamespace(ConfigProto=ConfigProto)
compat = types.SimpleNamespace(as_bytes=str.encode, v1=v1)
"""


@pytest.fixture
def loader(tmp_path: Path, store: Store, run: Run) -> Path:
    """A script that calls the env-loader, beside modules that stand for TensorFlow."""
    store({"bert": BASE + "enable_dump = false\n"})
    folder = tmp_path / "script"
    (folder / "tensorflow" / "core" / "protobuf").mkdir(parents=True)
    for below in ("core", "core/protobuf"):
        (folder / "tensorflow" / below / "__init__.py").touch()
    (folder / "tensorflow" / "__init__.py").write_text(TENSORFLOW)
    (folder / "tensorflow" / "core" / "protobuf" / "rewriter_config_pb2.py").write_text(
        "class RewriterConfig:\n    OFF = 2\n"
    )
    assert (
        run("render", "bert", "--to", "env-loader", "-o", str(folder / "env_loader.py")).code == 0
    )
    (folder / "train.py").write_text("import env_loader\nenv_loader.session_config()\n")
    return folder / "train.py"


def test_the_function_in_the_script_says_what_it_set_where_it_is_asked_to(
    loader: Path, tmp_path: Path, run: Run
) -> None:
    arguments = [*NPUPROF, "run", "bert", "--record", "out", "--", sys.executable, str(loader)]
    for _ in range(2):
        done = subprocess.run(
            arguments,
            cwd=tmp_path,
            env={
                **os.environ,
                "NPUPROF_RECORD": "out",
                "RANK_ID": "\u00b2",
                "RANK": "3",
                "WORLD_SIZE": "8",
            },
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0
        assert done.stderr == b"" or b"made the folder" in done.stderr
    assert sorted(os.listdir(tmp_path / "out")) == [
        "bert.3-2.run.json",
        "bert.3.loader-2.run.json",
        "bert.3.loader.run.json",
        "bert.3.run.json",
    ]
    fields = read(tmp_path / "out" / "bert.3.loader.run.json")
    assert fields["by"] == "env-loader"
    assert fields["state"] == "loaded"
    assert fields["process"]["rank"] == 3
    assert (
        fields["preset"]["digest"] == read(tmp_path / "out" / "bert.3.run.json")["preset"]["digest"]
    )
    assert {setting["key"]: setting["value"] for setting in fields["settings"]} == {
        "hccl_timeout": 600,
        "precision_mode_v2": "mixed_float16",
        "enable_dump": False,
    }
    done = run("diff", "out/bert.3.run.json", "out/bert.3.loader.run.json", "--exit-code")
    assert [
        line
        for line in done.out.splitlines()
        if not line.startswith(("~ profile", "- profile", "- scenario"))
    ] == [], done.out


def test_the_record_of_a_script_has_no_saved_values_and_no_token_of_the_job(
    loader: Path, tmp_path: Path
) -> None:
    environ = {
        **os.environ,
        "NPUPROF_RECORD": "out",
        "NPUPROF_HCCL_TIMEOUT": "9",
        "NPUPROF_PROFILE": "bert",
    }
    environ |= {
        "NPUPROF_BEFORE": '{"HTTPS_PROXY": "http://me:pa55@proxy"}',
        "NPUPROF_TOKEN": "pa55",
    }
    subprocess.run(
        [sys.executable, str(loader)], cwd=tmp_path, env=environ, check=True, capture_output=True
    )
    (path,) = (tmp_path / "out").iterdir()
    assert read(path)["environment"] == {
        "NPUPROF_RECORD": "out",
        "NPUPROF_HCCL_TIMEOUT": "9",
        "NPUPROF_PROFILE": "bert",
    }
    assert "pa55" not in path.read_text()


def test_a_script_that_is_not_asked_writes_nothing_and_one_that_cannot_write_goes_on(
    loader: Path, tmp_path: Path
) -> None:
    arguments = [*NPUPROF, "run", "bert", "--", sys.executable, str(loader)]
    assert subprocess.run(arguments, cwd=tmp_path, capture_output=True, check=True).stderr == b""
    (tmp_path / "file").touch()
    done = subprocess.run(
        arguments,
        cwd=tmp_path,
        env={**os.environ, "NPUPROF_RECORD": "file"},
        capture_output=True,
        check=True,
    )
    assert b"no record is kept" in done.stderr
