"""The catalogue of vLLM: records of its parser, the rows made from them, the real parser."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.catalog.execution import find_value_execution
from npuprof.runs.installed_vllm import find_vllm
from npuprof.runs.recording import is_secret_name
from support.vllm_files import RECORDS, REPOSITORY, fetch_parser, load_record

FRAMEWORK = REPOSITORY / "npuprof/catalog/frameworks/vllm"
ROWS = tomllib.loads((FRAMEWORK / "upstream.toml").read_text("utf-8"))


def list_rows(kind: str) -> list[str]:
    """Return the names of the generated rows of a kind."""
    return [key.removeprefix(f"{kind}.") for key in ROWS if key.startswith(f"{kind}.")]


@pytest.mark.parametrize(
    ("release", "arguments", "flags", "chosen", "variables"),
    [
        ("0.18.0", 225, 308, 27, 218),
        ("0.23.0", 261, 352, 33, 251),
        ("0.33.0", 320, 433, 45, 303),
    ],
)
def test_a_record_has_every_argument_but_help_and_the_model(
    release: str, arguments: int, flags: int, chosen: int, variables: int
) -> None:
    record = load_record(release)
    rows = record["arguments"].values()
    assert len(rows) == arguments
    assert sum(len(row["flags"]) for row in rows) == flags
    assert sum("choices" in row for row in rows) == chosen
    assert len(record["variables"]) == variables


def test_the_rows_are_those_of_the_records() -> None:
    result = subprocess.run(
        [sys.executable, REPOSITORY / ".ci/upstream.py", "vllm"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param(
            "settings.tensor-parallel-size",
            {
                "kind": "int",
                "aliases": ["-tp"],
                "minimum": 1,
                "unlimited": "0.18.0..0.22.1",
                "default": 1,
            },
            id="short name, bound of later releases",
        ),
        pytest.param(
            "settings.gpu-memory-utilization",
            {
                "kind": "float",
                "above": 0,
                "maximum": 1,
                "default": 0.92,
                "default_since": {"0.18.0": 0.9, "0.20.2": 0.92},
                "flag_reads": {"--device-memory-utilization": "0.33.0.."},
            },
            id="default and alias of some releases",
        ),
        pytest.param(
            "settings.enable-log-requests",
            {
                "negations": ["--no-enable-log-requests", "--disable-log-requests"],
                # the parser of 0.33.0 hides --no-enable-log-requests, and reads it
                "flag_reads": {"--disable-log-requests": "0.33.0.."},
            },
            id="negation that newer releases spell differently",
        ),
        pytest.param(
            "settings.kv-cache-dtype", {"unlimited": "0.33.0.."}, id="release without choices"
        ),
        pytest.param(
            "settings.speculative-config.num_speculative_tokens",
            {"kind": "int", "minimum": 1},
            id="field of JSON",
        ),
        pytest.param(
            "settings.kv-transfer-config.kv_role",
            {"choices": ["kv_producer", "kv_both", "kv_consumer"]},
            id="choices of a field",
        ),
        pytest.param("settings.max-model-len", {"parsed_as": "size"}, id="number with a suffix"),
        pytest.param(
            "settings.served-model-name", {"kind": "list", "items": "str"}, id="several values"
        ),
        pytest.param(
            "env.VLLM_ENABLE_PREGRAD_PASSES",
            {
                "kind": "bool",
                "parsed_as": "strtol 0 or 1",
                "default": "1",
                "default_since": {"0.18.0": "0", "0.21.0": "1"},
            },
            id="switch, by what its reader does",
        ),
        pytest.param(
            "env.VLLM_USE_AOT_COMPILE",
            {"default": "0", "default_since": None},
            id="default that depends on what is installed",
        ),
    ],
)
def test_a_row_has_what_the_parser_and_the_classes_say(key: str, expected: dict[str, Any]) -> None:
    assert {name: ROWS[key].get(name) for name in expected} == expected


def test_a_default_of_a_variable_is_computed_unless_it_is_written_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / ".ci")
    parser = importlib.import_module("vllm_parser")
    text = (
        'a = lambda: int(os.getenv("VLLM_A", "1"))\n'
        'b = env_with_choices("VLLM_B", "auto", ["auto", "off"])\n'
        'c = lambda: os.environ.get("VLLM_C") or "1"\n'
        'd = lambda: os.getenv("VLLM_D", "64" if is_rocm() else "20")\n'
        'e = lambda: os.environ.get("VLLM_E", default=find_root())\n'
    )
    assert parser.find_computed(text) == {"VLLM_D", "VLLM_E"}


def test_each_release_that_vllm_ascend_runs_on_has_a_record() -> None:
    axis = releases.load_axis("vllm_ascend")
    assert axis.runs_on.keys() == axis.releases.keys()
    names = list(axis.releases)
    newer = names[names.index("0.18.0") :]
    based = {axis.runs_on[name]["vllm"] for name in newer}
    recorded = {path.stem for path in RECORDS.glob("*.json")}
    assert recorded == based | {releases.load_releases("vllm")[-1]}
    assert axis.runs_on["0.27.1rc1"] == {"vllm": "0.27.1"}
    assert axis.runs_on["0.14.0rc1"] == {"vllm": "0.14.1"}


def test_generated_rows_are_records_of_the_catalogue() -> None:
    names = [key.removeprefix("settings.") for key in ROWS if key.startswith("settings.")]
    assert set(names) <= set(catalog.record_names("vllm"))
    record = catalog.find_setting("vllm", "async-scheduling")
    assert record is not None
    known = releases.load_releases("vllm")
    assert record.states == "".join("?Y"[known.index(n) >= known.index("0.18.0")] for n in known)
    removed = catalog.find_setting("vllm", "swap-space")
    assert removed is not None
    assert removed.states.endswith("." * 8)
    assert "vllm serve --help=" in catalog.find_record_texts("vllm", "middleware")["summary"]


def test_a_variable_that_nobody_has_looked_up_needs_trust() -> None:
    common = tomllib.loads((FRAMEWORK / "framework.toml").read_text("utf-8"))["generated"]["env"]
    assert len(common["executes"]) > 10
    groups = tomllib.loads((FRAMEWORK / "groups.toml").read_text("utf-8"))
    for kind in ("env", "settings"):
        names = [name for group in groups[kind] for name in group["names"]]
        assert sorted(names) == sorted(set(names)), "no name is in two groups"
    assert {n for group in groups["env"] for n in group["names"]} <= set(list_rows("env"))
    by_hand = tomllib.loads((FRAMEWORK / "settings.toml").read_text("utf-8"))
    known = {name.partition(".")[0] for name in (*list_rows("settings"), *by_hand)}
    assert {n for group in groups["settings"] for n in group["names"]} <= known


#: Ends of names of variables that lead to code, data or hosts.
LEADING = re.compile(r"_(?:PATH|ROOT|DIR|CACHE|FOLDER|SERVER|LIST|VARS|COPY|PLUGINS|STREAM)$")
#: Those that lead only to where something is written, or to sockets of the job.
WRITTEN = {"VLLM_DEBUG_DUMP_PATH", "VLLM_RPC_BASE_PATH"}


def test_variables_that_lead_to_code_data_or_hosts_need_trust() -> None:
    leading = {
        name
        for name in list_rows("env")
        if LEADING.search(name) and ROWS[f"env.{name}"]["kind"] == "str"
    }
    assert len(leading) > 15
    assert {name for name in leading if not find_value_execution(name, "word")} == WRITTEN


@pytest.mark.parametrize(
    ("name", "text", "needs_trust"),
    [
        ("VLLM_NIC_SELECTION_VARS", "LD_PRELOAD", True),
        ("VLLM_RAY_EXTRA_ENV_VARS_TO_COPY", "HF_TOKEN", True),
        ("VLLM_MEDIA_CACHE", "/x", True),
        ("VLLM_ENABLE_CUDA_COMPATIBILITY", "1", True),
        ("VLLM_REGEX_COMPILATION_TIMEOUT_S", "0", True),
        ("VLLM_LOOPBACK_IP", "127.0.0.1", False),
        ("VLLM_LOOPBACK_IP", "10.0.0.1", True),
        ("VLLM_API_KEY", "word", True),
        ("VLLM_MEDIA_LOADING_THREAD_COUNT", "4", False),
        ("VLLM_MEDIA_LOADING_THREAD_COUNT", "x[$(id)]", True),
        ("VLLM_LOGGING_LEVEL", "DEBUG", False),
        ("VLLM_USE_V2_MODEL_RUNNER", "1", False),
    ],
)
def test_a_value_needs_trust_by_what_the_reader_does(
    name: str, text: str, needs_trust: bool
) -> None:
    assert bool(find_value_execution(name, text)) == needs_trust


def test_no_row_uncovers_a_secret() -> None:
    assert is_secret_name("VLLM_API_KEY")
    assert [
        name
        for name in list_rows("env")
        if is_secret_name(f"MY_{name}") and not name.endswith("_TOKEN_THRESHOLD")
    ] == []


@pytest.mark.nightly(
    "ci/test_vllm_parser.py::test_a_record_has_every_argument_but_help_and_the_model"
)
@pytest.mark.timeout(1500)
def test_the_real_parser_of_a_release_gives_its_record(tmp_path: Path) -> None:
    python, folder = fetch_parser("0.18.0", tmp_path)
    result = subprocess.run(
        [python, REPOSITORY / ".ci/vllm_parser.py", folder],
        capture_output=True,
        text=True,
        check=True,
    )
    record = load_record("0.18.0")
    assert json.loads(result.stdout) == record
    # doctor reads the same from the source alone
    installed = find_vllm(str(folder))
    assert installed is not None
    flags = {flag.lstrip("-") for row in record["arguments"].values() for flag in row["flags"]}
    assert installed.version == "0.18.0"
    assert set(record["arguments"]) <= set(installed.arguments or ()) <= flags
