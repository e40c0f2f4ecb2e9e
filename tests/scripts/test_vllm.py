"""Arguments of vLLM in scripts: shell, Docker, Compose, Kubernetes, Python, ``--config``."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof.model import Context
from npuprof.renderers.shell import quote_posix
from npuprof.scripts.lint import check_script
from npuprof.scripts.preset import build_drafts, format_draft
from npuprof.scripts.reading.file_kinds import import_script
from support.building import config, toml
from support.importing import findings
from support.running import Run
from support.vllm_rows import ROWS, nest, sample

KEYS = {"weight_nz_mode": 0, "eplb_config": {"dynamic_eplb": True, "num_redundant_experts": 2}}
TEXT = json.dumps(KEYS)
RELEASE = "0.23.0"
LINES = {
    "equals.sh": f"exec vllm serve m --additional_config='{TEXT}' --port 80",
    "variable.sh": f"CONFIG='{TEXT}'\nvllm serve m --additional-config \"$CONFIG\"",
    "module.sh": (
        f"python3 -m vllm.entrypoints.openai.api_server --model m --additional-config '{TEXT}'"
    ),
    "dotted.sh": "vllm serve m --additional-config.weight_nz_mode 0 "
    "--additional_config.eplb_config.dynamic_eplb"
    " --additional-config.eplb_config.num_redundant_experts=2",
    "Dockerfile": f"FROM x\nCMD vllm serve m --additional-config '{TEXT}'",
    "run.md": f"```bash\n$ vllm serve m --additional-config '{TEXT}'\n```\n",
    "run.py": f"llm = LLM(model='m', additional_config={KEYS!r})",
    "named.py": (
        f"extra = dict(weight_nz_mode=0)\nextra2 = {KEYS!r}\n"
        "args = EngineArgs('m', additional_config=extra2)"
    ),
    "compose.yaml": "services:\n  a:\n    command: "
    + json.dumps(["vllm", "serve", "m", "--additional-config", TEXT]),
    "text.yaml": "services:\n  a:\n    command: "
    + json.dumps(f"vllm serve m --additional-config '{TEXT}'"),
    "pod.yaml": "spec:\n  containers:\n  - args: "
    + json.dumps([f"--additional-config={TEXT}"])
    + "\n    command: [vllm, serve, m]",
    "shell.yaml": "spec:\n  containers:\n  - command: [bash, -c]\n    args: "
    + json.dumps([f"vllm serve m --additional-config '{TEXT}'"]),
    "config.yaml": f"model: m\nadditional-config: '{TEXT}'",
    "tables.yaml": f"model: m\nadditional_config: {TEXT}",
}


def read(name: str, text: str) -> Any:
    return import_script(name, text.encode())


def imported(name: str, text: str) -> dict[str, Any]:
    """Return the preset that a file makes, as TOML says it."""
    (draft,) = build_drafts(read(name, text))
    return tomllib.loads(format_draft(draft))


def faults(name: str, text: str) -> list[tuple[str, int, int]]:
    """Return code and place of the errors of a file for a release that reads ``KEYS``."""
    context = Context(versions=(("vllm_ascend", RELEASE),))
    return [
        (finding.code, finding.line, finding.column)
        for finding in check_script(read(name, text), context)
        if finding.severity == "error"
    ]


@pytest.mark.parametrize("name", LINES)
def test_every_way_to_pass_additional_config_is_read_and_misspelt_keys_are_found_there(
    name: str,
) -> None:
    assert imported(name, LINES[name])["vllm_ascend"] == KEYS
    assert faults(name, LINES[name]) == []
    broken = LINES[name].replace("weight_nz_mode", "weight_nz_mde")
    ((code, line, column),) = faults(name, broken)
    assert code == "NP212"
    assert ('"$CONFIG"' if name == "variable.sh" else "weight_nz_mde") in broken.splitlines()[
        line - 1
    ][column - 1 :]


@pytest.mark.parametrize("name", ROWS)
def test_each_key_comes_back_from_a_script_a_module_and_the_rendered_file(name: str) -> None:
    table = nest(name, sample(ROWS[name]))
    # a key alone may break a rule: it needs others
    rendered = npuprof.render(config(toml({"vllm_ascend": table})), "vllm", check=False)
    files = {
        "serve.sh": f"vllm serve m --additional-config {quote_posix(json.dumps(table))}",
        "run.py": f"LLM('m', additional_config={table!r})",
        "config.yaml": rendered["config.yaml"],
    }
    assert files
    for file, text in files.items():
        assert imported(file, text)["vllm_ascend"] == table, file


def test_other_arguments_are_carried_over_where_they_are_constant_and_listed_where_not() -> None:
    text = (
        "vllm serve $MODEL --tensor_parallel_size 4 -dp 2 --served-model-name a b "
        "--no-enable-prefix-caching --api-key x \\\n"
        "  --port=$PORT --gpu-memory-utilization 0.9 "
        """--speculative-config '{"method": "mtp"}' -x\n"""
    )
    (draft,) = build_drafts(read("serve.sh", text))
    assert tomllib.loads(format_draft(draft))["vllm"] == {
        "tensor-parallel-size": 4,
        "data-parallel-size": 2,
        "served-model-name": ["a", "b"],
        "no-enable-prefix-caching": True,
        "gpu-memory-utilization": 0.9,
        "speculative-config": '{"method": "mtp"}',
    }
    assert [(note.setting.name, note.setting.line, note.why) for note in draft.notes] == [
        ("model", 1, "depends on $MODEL"),
        ("api-key", 1, "is a secret"),
        ("port", 2, "depends on $PORT"),
        ("-x", 2, "is not the full name of an argument"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.sh", "vllm serve m --additional-config '{\"a\": 1 2}'", (1, 43)),
        ("a.sh", "vllm serve m --additional-config '{\n\"refresh\" true}'", (2, 11)),
        ("a.sh", "vllm serve m --additional-config 7", (1, 34)),
        ("a.sh", "vllm serve m --additional-config {refresh:true}", (1, 35)),
        ("a.yaml", "additional-config: '{'", (1, 20)),
        ("a.yaml", "a:\n  command: [vllm, serve, m, --additional-config, '[1]']", (2, 50)),
    ],
)
def test_broken_json_is_an_error_at_its_place(name: str, text: str, place: tuple[int, int]) -> None:
    assert faults(name, text) == [("NP203", *place)]


@pytest.mark.parametrize(
    ("value", "severity"),
    [
        pytest.param({"weight_nz_mode": True}, "warning", id="true for 1"),
        pytest.param({"weight_nz_mode": "1"}, "warning", id="digits"),
        pytest.param({"refresh": "true"}, "warning", id="text of a switch"),
        pytest.param({"refresh": 1}, "warning", id="1 for true"),
        pytest.param({"eplb_config": {"dynamic_eplb": "true"}}, "warning", id="in a group"),
        pytest.param({"refresh": "maybe"}, "error", id="text that is no switch"),
        pytest.param({"weight_nz_mode": [1]}, "error", id="a list"),
        pytest.param({"layer_sharding": True}, "error", id="a switch in place of a list"),
    ],
)
def test_a_value_that_vllm_ascend_converts_is_no_error(value: Any, severity: str) -> None:
    found = findings(f"vllm serve m --additional-config '{json.dumps(value)}'\n", "a.sh")
    (fault,) = (finding for finding in found if finding.code == "NP202")
    assert (fault.severity, fault.certainty == "likely") == (severity, severity == "warning")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.sh", "vllm serve m --additional-config '{\"refresh\": '$X'}'", "depends on $X"),
        ("a.yaml", "spec:\n- args: [--additional-config, $(CONFIG)]", "depends on $(CONFIG)"),
        ("a.py", "LLM('m', additional_config=load())", "depends on the result of load()"),
        (
            "a.py",
            "LLM('m', additional_config={'refresh': FLAGS.x})",
            "depends on the command line or its parameters (FLAGS.x)",
        ),
        ("a.py", "LLM('m', additional_config={**base, 'refresh': True})", "takes in another table"),
    ],
)
def test_what_is_not_constant_is_listed_with_the_reason(name: str, text: str, reason: str) -> None:
    imported_file = read(name, text)
    assert reason in [setting.reason for setting in imported_file.settings]
    assert faults(name, text) == []


@pytest.mark.parametrize(
    ("text", "arguments", "reasons"),
    [
        (
            "from vllm import LLM\nLLM('m', tensor_parallel_size=2, hf_token='x')",
            {"model": "m", "tensor-parallel-size": 2},
            ["is a secret"],
        ),
        (
            "import vllm\nmore = {'max_num_seqs': 4, 'seed': None}\nvllm.LLM(model='m', **more)",
            {"model": "m", "max-num-seqs": 4},
            ["None says nothing"],
        ),
        (
            "from vllm.engine.arg_utils import AsyncEngineArgs\n"
            "AsyncEngineArgs(*names, enforce_eager=True, **load())",
            {"enforce-eager": True},
            ["depends on *names", "depends on the result of load()"],
        ),
        ("from lmdeploy import LLM\nLLM('m', tensor_parallel_size=2)", {}, []),
        ("class LLM: ...\nLLM('m', tensor_parallel_size=2)", {}, []),
    ],
)
def test_arguments_of_vllm_s_classes_are_those_of_the_command(
    text: str, arguments: dict[str, Any], reasons: list[str]
) -> None:
    """As in vLLM's own examples of offline inference; other libraries have a class LLM too."""
    settings = [setting for setting in read("a.py", text).settings if setting.surface == "vllm"]
    given = {s.key.removeprefix("vllm."): s.value for s in settings if not s.reason}
    assert given == arguments
    assert [s.reason for s in settings if s.reason] == reasons


def test_a_variable_and_an_argument_of_one_call_are_judged_together() -> None:
    """vllm_ascend/device_allocator/camem.py stops at this pair."""
    lines = ["import os", "from vllm import LLM", "os.environ['PYTORCH_NPU_ALLOC_CONF'] = {!r}"]
    text = "\n".join([*lines, "LLM('m', enable_sleep_mode=True)"])
    for value, codes in {
        "expandable_segments:True": ["NP3117"],
        "max_split_size_mb:64": [],
    }.items():
        found = check_script(read("a.py", text.format(value)), Context())
        assert [finding.code for finding in found if finding.severity == "error"] == codes


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.sh", "export HCCL_IF_BASE_PORT=60000 MASTER_PORT=60003\npython a.py", True),
        ("a.sh", "export HCCL_IF_BASE_PORT=60000 MASTER_PORT=60032\npython a.py", False),
        ("a.sh", "export HCCL_IF_BASE_PORT=60000 MASTER_PORT=$PORT\npython a.py", False),
        ("a.sh", "export MASTER_PORT=all OMP_NUM_THREADS=all\npython a.py", False),
        (
            "a.py",
            "import os\nos.environ.update(HCCL_IF_BASE_PORT='60000', MASTER_PORT='60003')",
            True,
        ),
    ],
)
def test_rules_know_variables_that_other_programs_read_too(
    name: str, text: str, found: bool
) -> None:
    """hccl's manual says so about HCCL_IF_BASE_PORT; MASTER_PORT alone says nothing of NPUs."""
    codes = [finding.code for finding in check_script(read(name, text), Context())]
    assert codes == ["NP3210"] * found
    assert "MASTER_PORT" not in imported(name, text).get("env", {}) if found else True


@given(st.text(max_size=60))
def test_any_text_of_additional_config_is_read_or_a_finding(text: str) -> None:
    found = check_script(
        read("a.sh", f"vllm serve m --additional-config {quote_posix(text)}"), Context()
    )
    assert {finding.code for finding in found} <= {"NP203", "NP202", "NP212", "NP801"}
    assert found or isinstance(json.loads(text), dict)


def test_a_file_that_config_names_is_read_and_the_command_line_overrides_it(
    tmp_path: Path, run: Run
) -> None:
    (tmp_path / "serving.yaml").write_text(
        "port: 1\nadditional-config:\n  enable_mlpo: true\n  refresh: true\n"
    )
    (tmp_path / "serve.sh").write_text(
        "vllm serve m --config serving.yaml --port 2\nvllm serve n --config absent.yaml\n"
    )
    requested = ("--framework", f"vllm_ascend={RELEASE}")
    assert "serving.yaml:3:3: error NP212" in run("scan", tmp_path, *requested).out
    assert "serving.yaml:3:3: warning NP212" in run("scan", tmp_path).out
    (tmp_path / "serving.yaml").write_text(
        "port: 1\nadditional-config:\n  enable_mlapo: true\n  refresh: true\n"
    )
    assert run("import", tmp_path / "serve.sh", "-o", f"{tmp_path}/out/").code == 0
    (made,) = [text for file in (tmp_path / "out").iterdir() if '"m"' in (text := file.read_text())]
    assert tomllib.loads(made)["vllm"] == {"model": "m", "port": 2}
    assert tomllib.loads(made)["vllm_ascend"] == {"enable_mlapo": True, "refresh": True}
    assert "absent.yaml" not in made


def test_arguments_that_npuprof_does_not_know_are_counted_as_passed_through(
    tmp_path: Path, run: Run
) -> None:
    arguments = (
        "--max-model-len 4096 --seed $SEED --additional-config "
        '\'{"weight_nz_mode": 1, "weight_nz_mod": 1}\''
    )
    (tmp_path / "launch.sh").write_text(
        f"export TASK_QUEUE_ENABLE=1 FOO_X=1\nvllm serve m {arguments}\n"
    )
    counted = (
        "7 settings: 2 checked, 1 dynamic, 2 unknown "
        "(FOO_X, weight_nz_mod), 2 passed through unchecked"
    )
    assert counted in run("scan", str(tmp_path / "launch.sh")).err
    assert counted in run("import", str(tmp_path / "launch.sh")).err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "additional_config: null\ntensor_model_parallel_size: 8\n"),
        ("a.sh", "vllm serve x --additional-config null\n"),
        ("a.sh", """vllm serve x --additional-config '{"eplb_config": {}}'\n"""),
        ("a.yaml", "model: x\nadditional_config:\n  eplb_config: {}\n"),
    ],
)
def test_null_and_an_empty_group_set_nothing(name: str, text: str) -> None:
    assert findings(text, name) == []


def test_an_empty_table_that_is_no_group_is_an_unknown_setting() -> None:
    (found,) = findings("""vllm serve x --additional-config '{"eplb": {}}'\n""", "a.sh")
    assert found.code == "NP212"
