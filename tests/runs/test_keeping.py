"""Standard error of a command that is run with ``--prove``.

It is kept, because TF 2 logs its options there, and is shown as without npuprof.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from npuprof.catalog.wire import list_tf2_standing_keys
from support.building import build_store
from support.logged import write_tf2_block, write_tf2_line
from support.waiting import wait_for

NPUPROF = [sys.executable, "-m", "npuprof"]
RUN = [*NPUPROF, "run", "leaf", "--record", "out", "--prove", "--"]
PRESET = '[options]\nprecision_mode_v2 = "mixed_float16"\ndeterministic = 1\n'
#: Waits for a file, a minute at most.
WAIT = "for i in $(seq 1200); do [ -e stop ] && break; sleep 0.05; done"


@pytest.fixture(autouse=True)
def leaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_store(tmp_path / "profiles", {"leaf": PRESET})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    write_lines("said", "mixed_float16")
    write_lines("other", "cube_hif8")


def write_lines(path: str, mode: str) -> None:
    standing = dict.fromkeys(list_tf2_standing_keys("TF 2 2026-07"), "0")
    block = write_tf2_block(
        {**standing, "ge.exec.precision_mode_v2": mode, "ge.deterministic": "1"}
    )
    Path(path).write_text(write_tf2_line("Begin to open the device.") + block)


def run(
    script: str, *flags: str, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    arguments = [*NPUPROF, "run", "leaf", "--prove", *flags, "--", "sh", "-c", script]
    return subprocess.run(
        arguments,
        capture_output=True,
        env={**os.environ, **(environ or {})},
        timeout=60,
        check=False,
    )


def find_kept() -> Path:
    (found,) = [path for top in ("out", "state", "mine") for path in Path(top).rglob("stderr.log")]
    return found


@pytest.mark.parametrize(
    ("script", "code", "summary"),
    [
        ("cat said >&2", 0, "2 in force"),
        ("cat other >&2", 1, "cube_hif8, not"),
        ("cat said >&2; exit 9", 9, "2 in force"),
        ("printf '\\r 10%%|#   | 1/10' >&2; cat said >&2; printf '\\r 99%%' >&2", 0, "2 in force"),
        ("sed 's/^/[1,0]<stderr>:/' said >&2", 0, "2 in force"),
        ("echo hello >&2", 2, "its standard error contains no options of an adapter"),
    ],
)
def test_what_an_adapter_writes_to_standard_error_is_evidence_wherever_the_log_goes(
    script: str, code: int, summary: str
) -> None:
    done = run(script, environ={"ASCEND_PROCESS_LOG_PATH": os.path.abspath("mine") if code else ""})
    assert done.returncode == code, done.stderr.decode()
    assert summary in done.stderr.decode(), done.stderr.decode()


def test_the_record_names_the_folder_in_which_it_lies() -> None:
    assert run("cat said >&2", "--record", "out").returncode == 0
    found = json.loads(Path("out/leaf.0.run.json").read_bytes())
    assert found["proof"]["code"] == 0
    assert find_kept().parent == Path(found["proof"]["log"]).relative_to(Path.cwd())
    assert find_kept().read_bytes() == Path("said").read_bytes()
    assert find_kept().stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("script", ["true", "/nonexistent/program"])
def test_of_nothing_nothing_is_kept(script: str) -> None:
    subprocess.run(
        [*RUN, script],
        capture_output=True,
        check=False,
        env={**os.environ, "ASCEND_PROCESS_LOG_PATH": "mine"},
    )
    assert [path.name for path in Path("out").rglob("*") if path.is_file()] == ["leaf.0.run.json"]
    assert not any(Path("out", "logs").iterdir() if Path("out", "logs").is_dir() else ())


@pytest.mark.parametrize("data", [b"\0\xff\r\n\r", b"x" * 3_000_001], ids=len)
def test_every_byte_is_shown_and_kept_and_standard_output_is_another(data: bytes) -> None:
    Path("data").write_bytes(data)
    done = run("cat data >&2; echo out; cat said >&2", "--record", "out")
    assert done.stdout == b"out\n"
    assert done.returncode == 0
    assert data + Path("said").read_bytes() in done.stderr
    assert find_kept().read_bytes() == data + Path("said").read_bytes()


@pytest.mark.parametrize(("first", "code"), [("cat said >&2", 0), ("true", 2)])
def test_who_writes_when_the_command_has_ended_is_shown_and_kept_still(
    first: str, code: int
) -> None:
    read, write = os.pipe()
    script = f"({WAIT}; echo late >&2) & {first}"
    with subprocess.Popen(
        [*RUN, "sh", "-c", script], stdout=subprocess.DEVNULL, stderr=write
    ) as process:
        os.close(write)
        assert process.wait(20) == code
        Path("stop").touch()
        with open(read, "rb") as shown:
            shown_text = shown.read()
    assert shown_text.endswith(b"late\n")
    assert (
        "a process that the command left running may still "
        f"write to its standard error, {find_kept().absolute()}"
    ) in shown_text.decode()
    assert find_kept().read_bytes().endswith(b"late\n")


@pytest.mark.parametrize("code", [0, 3])
def test_a_reader_that_leaves_takes_no_exit_code_with_it(code: int) -> None:
    # whoever writes then is told, and the shell goes on
    script = f"cat other other other >&2; sleep 0.5; cat said >&2; exit {code}"
    arguments = f"{' '.join(RUN)} sh -c '{script}' 2> >(sed -n /cube_hif8/q)"
    assert subprocess.run(
        ["bash", "-c", arguments], capture_output=True, timeout=30, check=False
    ).returncode == (code or 1)
    found = json.loads(Path("out/leaf.0.run.json").read_bytes())
    assert found["exit"] == {"code": code, "signal": None}
    assert found["proof"]["code"] == 1


def test_standard_error_of_a_reader_that_leaves_ends_the_command_by_sigpipe() -> None:
    script = (
        f"{{ {' '.join(RUN)} sh -c 'exec yes >&2'; echo $? >code; }} 2>&1 >/dev/null | head -c 1000"
    )
    subprocess.run(["bash", "-c", script], capture_output=True, timeout=30, check=True)
    assert Path("code").read_text() == "141\n"


def test_on_a_full_disk_it_is_shown_and_told_that_it_is_not_whole() -> None:
    arguments = (
        f"ulimit -f 1; exec {' '.join(NPUPROF)} run leaf --prove -- sh -c 'cat said >&2; exit 3'"
    )
    done = subprocess.run(["bash", "-c", arguments], capture_output=True, timeout=30, check=False)
    assert done.returncode == 3
    assert Path("said").read_bytes() in done.stderr
    assert b"its standard error is not complete in" in done.stderr


def test_a_run_without_standard_error_is_a_run() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{' '.join(RUN)} sh -c 'echo out; exit 4' 2>&-"],
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 4
    assert done.stdout == b"out\n"


def test_who_kills_it_for_good_leaves_nobody_behind() -> None:
    record = Path("out/leaf.0.run.json")
    with subprocess.Popen(
        [*RUN, "sleep", "60"], stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        wait_for(lambda: record.is_file() and '"pid": null' not in record.read_text())
        process.kill()
        assert process.stderr is not None
        process.stderr.read()  # its end comes when the last has gone that could write
        assert process.wait(10) == -signal.SIGKILL

    def nobody_is_left() -> bool:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    wait_for(nobody_is_left)
