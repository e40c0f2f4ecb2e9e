"""Rules about settings of frameworks that do not go together: presets, scripts, upstream."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from npuprof.model import Context
from npuprof.scripts import lint
from npuprof.scripts.reading import import_script
from support.building import REPOSITORY, findings
from support.vllm_parts import RELEASES, fetch_release, read_additional_config

RULES = [
    rule
    for rule in tomllib.loads((REPOSITORY / "npuprof/catalog/rules.toml").read_text())["rule"]
    if rule["enforced"] == "framework"
]
EXCLUDED = tomllib.loads((REPOSITORY / ".ci/upstream/relations.toml").read_text())
SITES = [site for sites in EXCLUDED.values() for site in sites]
#: Findings that examples have besides their rule: facts of one node, names with a successor.
ALSO = {"NP501", "NP602", "NP603", "NP3139", "NP605"}


def list_codes(text: str, **context: Any) -> set[str]:
    """Return the codes of what is found in a preset, without notes."""
    return {f.code for f in findings(text, **context) if f.severity != "info"}


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule["code"]) for rule in RULES])
def test_an_example_breaks_its_rule_only_where_it_should(rule: dict[str, Any]) -> None:
    bad = findings(rule["bad"], product=rule.get("bad_product"))
    (found,) = (finding for finding in bad if finding.code == rule["code"])
    assert found.severity == rule["severity"]
    assert {f.code for f in bad if f.severity != "info"} <= {rule["code"], *ALSO}
    assert list_codes(rule["good"], product=rule.get("good_product")) <= ALSO


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule["code"]) for rule in RULES])
def test_a_rule_says_what_the_program_does_and_where(rule: dict[str, Any]) -> None:
    is_stopped = "stop" in rule["why"] or "fail" in rule["why"] or "error" in rule["why"]
    assert is_stopped or rule["severity"] != "error", "an error stops the program"
    for source in rule["source"]:
        assert re.fullmatch(r"\S.*\.(py|cpp|cc): \S+|hicann/hccl docs/\S+\.md", source), source


# -- scripts ---------------------------------------------------------------------------------------


def write_script(preset: dict[str, Any]) -> str:
    """Return the shell script with the settings of a preset."""
    lines = []
    for name, value in preset.get("env", {}).items():
        text = (
            ",".join(f"{key}:{item}" for key, item in value.items())
            if type(value) is dict
            else value
        )
        lines.append(f"export {name}='{text}'")
    if "atc" in preset:
        flags = (f"--{name}='{value}'" for name, value in preset["atc"].items())
        return "\n".join([*lines, f"atc --model=m.onnx {' '.join(flags)}"]) + "\n"
    words = ["vllm serve /models/m"]
    for name, value in preset.get("vllm", {}).items():
        if value is not False:
            text = json.dumps(value) if isinstance(value, (dict, list)) else str(value)
            words.append(f"--{name}" + ("" if value is True else f" '{text}'"))
    if "vllm_ascend" in preset:
        words.append(f"--additional-config '{json.dumps(preset['vllm_ascend'])}'")
    return "\n".join([*lines, " ".join(words)]) + "\n"


def list_script_codes(text: str, name: str = "start.sh", **versions: str) -> set[str]:
    """Return the codes of the findings in a script, without notes."""
    context = Context(versions=tuple(versions.items()))
    found = lint.check_script(import_script(name, text.encode()), context)
    return {f.code for f in found if f.severity != "info"}


#: Warnings that need a variable to be unset, which no script can show, and rules that read what
#: scripts do not set: facts of a job, settings of torch_npu beside a server.
NOT_IN_SCRIPTS = {
    "dsa-cp-without-flashcomm1",
    "flashcomm2-without-flashcomm1",
    "roce-off-without-pcie",
    "pcie-off-without-roce",
    "jit-without-compiled-operators",
    "trace-dump-without-buffer",
    "trace-dump-without-monitor",
    "status-settings-without-status",
    "snapshot-path-without-snapshot",
    "log-filter-without-logs",
    "durations-path-without-recording",
    "limits-without-silent-fault-detection",
    "hybrid-with-sliced-schedule",
    "determinism-of-option-and-variable",
}
#: Releases newer than all stable ones, for which rules with a range are judged.
NEWEST = {"vllm_ascend": "0.30.0rc2", "torch_npu": "26.2.0-beta.1"}


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(rule, id=rule["code"])
        for rule in RULES
        if rule["name"] not in NOT_IN_SCRIPTS
        # test_training_rules.py and test_config_files.py
        and not rule["options"][0].startswith(("megatron.", "verl.", "mindie."))
        and "bad_product" not in rule
        and rule["severity"] != "info"
    ],
)
def test_a_script_is_judged_like_a_preset(rule: dict[str, Any]) -> None:
    bad, good = tomllib.loads(rule["bad"]), tomllib.loads(rule["good"])
    span = bad.get("profile", {}).get("versions", {})
    versions = {
        name: text.lstrip("=>") if "rc" in text or ">" not in text else NEWEST[name]
        for name, text in span.items()
    }
    assert rule["code"] in list_script_codes(write_script(bad), **versions)
    assert rule["code"] not in list_script_codes(write_script(good), **versions)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "export TASK_QUEUE_ENABLE=2\nvllm serve /m --enforce-eager\n", id="eager mode"
        ),
        pytest.param(
            "export TASK_QUEUE_ENABLE=2\n"
            'vllm serve /m --compilation-config \'{"cudagraph_mode": "NONE"}\'\n',
            id="no graphs",
        ),
        pytest.param(
            "export TASK_QUEUE_ENABLE=2\nvllm serve /m --compilation-config.cudagraph_mode NONE\n",
            id="no graphs, dotted",
        ),
        pytest.param(
            "export TASK_QUEUE_ENABLE=2\nvllm serve /m --compilation-config '{\"mode\": 0}'\n",
            id="no compilation",
        ),
        pytest.param("export TASK_QUEUE_ENABLE=2\nvllm serve /m $EXTRA\n", id="other arguments"),
        pytest.param(
            'export TASK_QUEUE_ENABLE=2\nvllm serve /m "$@"\n', id="arguments of a caller"
        ),
        pytest.param("export TASK_QUEUE_ENABLE=2\npython train.py\n", id="training"),
        pytest.param(
            "if [ $MODE = train ]; then\n  export TASK_QUEUE_ENABLE=2\n  python train.py\nelse\n"
            "  export TASK_QUEUE_ENABLE=1\n  vllm serve /m\nfi\n",
            id="other branch",
        ),
        pytest.param(
            "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True\n"
            "export PYTORCH_NPU_ALLOC_CONF=max_split_size_mb:256\npython a.py\n",
            id="replaced variable",
        ),
        pytest.param(
            "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True\nvllm serve /m\n"
            "unset PYTORCH_NPU_ALLOC_CONF\nvllm serve /m --enable-sleep-mode\n",
            id="unset between launches",
        ),
        pytest.param(
            "export PYTORCH_NPU_ALLOC_CONF="
            "expandable_segments:True,garbage_collection_threshold:0\n",
            id="threshold of zero",
        ),
        pytest.param(
            "export RANK_SIZE=8\npython3 a.py\nunset RANK_SIZE\n"
            "export CM_WORKER_SIZE=8\npython3 train.py\n",
            id="variable that is unset before the next program",
        ),
        pytest.param(
            "vllm serve /m -pp 4 --additional-config "
            '\'{"profiling_chunk_config": {"enabled": true}}\'\n',
            id="short flag of pipeline parallelism",
        ),
        pytest.param(
            "vllm serve /m -pp $PP --additional-config "
            '\'{"profiling_chunk_config": {"enabled": true}}\'\n',
            id="size from outside",
        ),
        pytest.param(
            "vllm serve /m --additional-config "
            '\'{"xlite_graph_config": {"enabled": true, "full_mode": true}}\'\n',
            id="another graph mode",
        ),
        pytest.param("export ASCEND_LAUNCH_BLOCKING=0\nvllm serve /m\n", id="variable that is off"),
    ],
)
def test_a_script_without_a_certain_conflict_has_no_finding(text: str) -> None:
    assert not {code for code in list_script_codes(text) if code.startswith("NP3")}


QUEUED = "export TASK_QUEUE_ENABLE=2\n"
POD = """apiVersion: v1
kind: Pod
spec:
  containers:
  - name: tools
    command: [python, collect.py]
    {tools}
  - name: server
    command: {command}
    {server}
"""
LEVEL = 'env: [{name: TASK_QUEUE_ENABLE, value: "2"}]'
SIZE = 'env: [{name: HCCL_BUFFSIZE, value: "200"}]'
SERVE = "[vllm, serve, /m]"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        pytest.param(
            "a.md",
            f"```bash\n{QUEUED}vllm serve /m\n```\n",
            {"NP3118"},
            id="one block of a manual",
        ),
        pytest.param(
            "a.md",
            f"```bash\n{QUEUED}python train.py\n```\n```bash\nvllm serve /m\n```\n",
            set(),
            id="an earlier block",
        ),
        pytest.param(
            "a.md",
            f"```bash\nvllm serve /m\n```\n```bash\n{QUEUED}python train.py\n```\n",
            set(),
            id="a later block",
        ),
        pytest.param(
            "a.yaml",
            POD.format(tools=SIZE, server=LEVEL, command=SERVE),
            {"NP3118"},
            id="the container of the launch",
        ),
        pytest.param(
            "a.yaml",
            POD.format(tools="", server=LEVEL, command='[bash, -c, "vllm serve /m"]'),
            {"NP3118"},
            id="a launch in shell text",
        ),
        pytest.param(
            "a.yaml",
            POD.format(tools=LEVEL, server=LEVEL, command=SERVE),
            {"NP3118"},
            id="every container",
        ),
        pytest.param(
            "a.yaml",
            POD.format(tools=LEVEL, server="", command=SERVE),
            set(),
            id="a container beside one without variables",
        ),
        pytest.param(
            "a.yaml",
            POD.format(tools=LEVEL, server=SIZE, command=SERVE),
            set(),
            id="a container beside one with others",
        ),
    ],
)
def test_a_launch_has_the_variables_of_its_block_or_container(
    name: str, text: str, expected: set[str]
) -> None:
    assert {code for code in list_script_codes(text, name) if code.startswith("NP3")} == expected


MTP = """vllm serve /m -pp 2 --speculative-config '{"method": "mtp"}'\n"""
SLEEPING = "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True\nvllm serve /m"
BROKEN_ON_NPUS = {"NP3183"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(MTP, BROKEN_ON_NPUS, id="no device named"),
        pytest.param(f"export CUDA_VISIBLE_DEVICES=0,1\n{MTP}", set(), id="CUDA"),
        pytest.param(f"export NCCL_DEBUG=INFO\n{MTP}", set(), id="NCCL"),
        pytest.param(f"export VLLM_ROCM_USE_AITER=1\n# needs ROCm 7\n{MTP}", set(), id="ROCm"),
        pytest.param(f"# two nodes with 8 H100 each\n{MTP}", set(), id="a chip of NVIDIA"),
        pytest.param(f"# 8 GPUs each\n{MTP}", set(), id="GPUs"),
        pytest.param(
            f"export GPU_MEMORY=0.9\n# cudagraph_mode is FULL\n{MTP}",
            BROKEN_ON_NPUS,
            id="names of settings with GPU in them",
        ),
        pytest.param(
            f"export NCCL_DEBUG=INFO HCCL_BUFFSIZE=200\n{MTP}", BROKEN_ON_NPUS, id="both libraries"
        ),
        pytest.param(f"# GPUs or NPUs\n{MTP}", BROKEN_ON_NPUS, id="both devices"),
        pytest.param(
            f"# no GPUs: Ascend 910B\n{MTP}", BROKEN_ON_NPUS, id="Ascend in place of GPUs"
        ),
        pytest.param(
            f"export CUDA_VISIBLE_DEVICES=0\n{SLEEPING} --enable-sleep-mode\n",
            {"NP3117"},
            id="a variable that is read on NPUs only",
        ),
    ],
)
def test_rules_of_vllm_ascend_do_not_apply_to_gpus(text: str, expected: set[str]) -> None:
    assert {code for code in list_script_codes(text) if code.startswith("NP3")} == expected


@pytest.mark.parametrize(
    ("export", "expected"),
    [
        pytest.param("", [("warning", "likely")], id="variable from outside"),
        pytest.param("export DYNAMIC_EPLB=false\n", [("warning", "likely")], id="switched off"),
        pytest.param("export DYNAMIC_EPLB=true\n", [], id="switched on"),
        pytest.param("export DYNAMIC_EPLB=$EPLB\n", [], id="value from outside"),
        pytest.param("export EXPERT_MAP_RECORD=true\n", [], id="the other variable"),
    ],
)
def test_a_variable_that_a_script_does_not_set_is_likely_unset(
    export: str, expected: list[tuple[str, str]]
) -> None:
    text = f"{export}vllm serve /m --additional-config.eplb_config.dynamic_eplb true\n"
    found = lint.check_script(import_script("a.sh", text.encode()), Context())
    assert [(f.severity, f.certainty) for f in found if f.code == "NP3149"] == expected


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        pytest.param("eplb_config.dynamic_eplb true", True, id="truth value"),
        pytest.param("weight_nz_mode=2", 2, id="number"),
        pytest.param("""layer_sharding '["o_proj"]'""", ["o_proj"], id="list"),
        pytest.param("dump_config_path /tmp/a.json", "/tmp/a.json", id="text"),
    ],
)
def test_the_value_of_a_dotted_argument_is_json(argument: str, expected: Any) -> None:
    text = f"vllm serve /m --additional-config.{argument}\n"
    *_, setting = import_script("a.sh", text.encode()).settings
    assert setting.value == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param("", {"NP3133"}, id="all arguments"),
        pytest.param(", **more", set(), id="arguments from a table"),
    ],
)
def test_an_argument_that_a_call_leaves_out_is_unset(more: str, expected: set[str]) -> None:
    chunks = {"profiling_chunk_config": {"enabled": True}}
    text = f"from vllm import LLM\nllm = LLM('m', additional_config={chunks}{more})\n"
    assert list_script_codes(text, "run.py", vllm_ascend="0.23.0") == expected


@pytest.mark.parametrize(
    ("text", "versions", "expected"),
    [
        pytest.param(
            '[vllm]\nseed = 1\n[env]\nASCEND_LAUNCH_BLOCKING = "1"\n',
            {"vllm_ascend": "0.30.0rc2"},
            set(),
            id="newer release without the check",
        ),
        pytest.param(
            '[vllm]\nseed = 1\n[env]\nASCEND_LAUNCH_BLOCKING = "1"\n',
            {"vllm_ascend": "0.9.1"},
            set(),
            id="older release without the check",
        ),
        pytest.param(
            '[env]\nASCEND_LAUNCH_BLOCKING = "1"\nTASK_QUEUE_ENABLE = "2"\n',
            {},
            {"NP3109"},
            id="no server",
        ),
        pytest.param(
            "[vllm_ascend]\nprofiling_chunk_config = { enabled = true }\n",
            {},
            set(),
            id="arguments are elsewhere",
        ),
        pytest.param(
            "[profile]\nabstract = true\n[vllm]\nenable-sleep-mode = true\n"
            '[env]\nPYTORCH_NPU_ALLOC_CONF = "expandable_segments:True"\n',
            {},
            set(),
            id="abstract preset",
        ),
        pytest.param(
            "[vllm_ascend]\neplb_config = { dynamic_eplb = true }\n[env]\nDYNAMIC_EPLB = 'TRUE'\n",
            {},
            set(),
            id="spelling that its reader takes",
        ),
        pytest.param(
            "[vllm_ascend]\nscheduler_config.profiling_chunk_config.enabled = true\n"
            "[vllm]\ntensor-parallel-size = 2\n",
            {},
            {"NP3133"},
            id="setting of newer releases only",
        ),
        pytest.param(
            "[vllm_ascend]\nenable_balance_scheduling = true\n"
            "scheduler_config = { enable_balance_scheduling = false }\n",
            {"vllm_ascend": "0.30.0rc2"},
            {"NP213", "NP501"},
            id="deprecated name with another value",
        ),
        pytest.param(
            "[vllm]\nno-enforce-eager = true\n[env]\nTASK_QUEUE_ENABLE = '2'\n",
            {},
            {"NP215", "NP3118"},
            id="flag that is switched off",
        ),
        pytest.param(
            "[vllm]\nenforce-eager = true\n[env]\nTASK_QUEUE_ENABLE = '2'\n",
            {},
            set(),
            id="flag that is on",
        ),
        pytest.param(
            '[vllm]\ntensor-parallel-size = "2"\n'
            'compilation-config = \'{"cudagraph_mode": "FULL"}\'\n'
            "[vllm_ascend]\nascend_compilation_config = { enable_static_kernel = true }\n",
            {},
            set(),
            id="JSON text of full graphs",
        ),
    ],
)
def test_a_rule_takes_releases_and_spellings_into_account(
    text: str, versions: dict[str, str], expected: set[str]
) -> None:
    assert list_codes(text, versions=versions) == expected


def test_a_finding_names_the_places_of_all_its_settings() -> None:
    text = (
        "[vllm]\nenable-sleep-mode = true\n\n"
        '[env]\nPYTORCH_NPU_ALLOC_CONF = "expandable_segments:True"\n'
    )
    (found,) = findings(text)
    assert found.line == 2
    assert found.why.endswith("env.PYTORCH_NPU_ALLOC_CONF is set in line 5.")


def test_a_finding_names_no_table_around_its_settings() -> None:
    text = (
        "[verl]\ndata.train_files = 'a'\ndata.train_batch_size = 1024\n"
        "actor_rollout_ref.model.path = 'm'\n"
        "actor_rollout_ref.actor.ppo_mini_batch_size = 2048\n"
    )
    (found,) = findings(text)
    assert found.line == 5
    assert re.findall(r"verl\.\S+ is set in line \d+", found.why) == [
        "verl.data.train_batch_size is set in line 3"
    ]


# -- upstream --------------------------------------------------------------------------------------


def test_an_excluded_place_is_a_file_and_a_function() -> None:
    assert len(SITES) == len(set(SITES))
    for site in SITES:
        repository, place = site.split(" ", 1)
        path, function, text = place.split(": ", 2)
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", repository), site
        assert re.fullmatch(r"[\w./]+\.(py|cpp|cc)", path), site
        assert re.fullmatch(r"\(module\)|[\w:.]+", function), site
        assert text, site


def normalise(text: str) -> str:
    """Return the words of a text."""
    return " ".join(re.findall(r"\w+", text))


def list_sites(source: str) -> dict[tuple[str, str], str]:
    """Return, by function and words of its message, each statement that rejects or warns."""
    sites = {}

    def walk(node: ast.AST, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = function
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inner = f"{function}.{child.name}".lstrip(".")
            is_call = isinstance(child, ast.Expr) and isinstance(child.value, ast.Call)
            if isinstance(child, (ast.Raise, ast.Assert)) or (
                is_call and "warning" in ast.unparse(child.value.func)
            ):
                texts = [
                    part
                    for part in ast.walk(child)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                ]
                texts.sort(key=lambda part: (part.lineno, part.col_offset))
                message = normalise("".join(part.value for part in texts))
                sites[inner, message] = ast.unparse(child)
            walk(child, inner)

    walk(ast.parse(source), "")
    return sites


@pytest.fixture(scope="module", params=[name for name in RELEASES if name != "0.11.0"])
def release(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    return request.param, fetch_release(request.param, tmp_path_factory.mktemp("wheels"))


def test_each_refusal_of_a_release_is_a_rule_or_is_excluded(release: tuple[str, Path]) -> None:
    _, folder = release
    messages = [normalise(rule["message"]) for rule in RULES if rule.get("message")]
    excluded = [site.split(": ", 2)[1:] for site in SITES]
    missing = []
    for (function, message), code in list_sites((folder / "ascend_config.py").read_text()).items():
        has_rule = any(text[:40] in message for text in messages)
        is_excluded = any(
            function == other and (normalise(text) in message or normalise(text) in normalise(code))
            for other, text in excluded
        )
        if not has_rule and not is_excluded:
            missing.append((function, message))
    assert missing == []


#: The part of vLLM's configuration that has an argument, for the stand-ins.
ARGUMENTS = {
    "tensor-parallel-size": "parallel_config__tensor_parallel_size",
    "pipeline-parallel-size": "parallel_config__pipeline_parallel_size",
    "data-parallel-size": "parallel_config__data_parallel_size",
    "prefill-context-parallel-size": "parallel_config__prefill_context_parallel_size",
    "decode-context-parallel-size": "parallel_config__decode_context_parallel_size",
    "enable-expert-parallel": "parallel_config__enable_expert_parallel",
    "max-num-batched-tokens": "scheduler_config__max_num_batched_tokens",
    "block-size": "cache_config__block_size",
    "enforce-eager": "model_config__enforce_eager",
}


def start(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the error with which a release starts with the settings of a preset, or ""."""
    preset = tomllib.loads(text)
    arguments = preset.get("vllm", {})
    given: dict[str, Any] = {
        ARGUMENTS[name]: value for name, value in arguments.items() if name in ARGUMENTS
    }
    transfer = arguments.get("kv-transfer-config")
    extra = (transfer or {}).get("kv_connector_extra_config", {})
    role = (transfer or {}).get("kv_role")
    given["kv_transfer_config"] = transfer and SimpleNamespace(
        kv_role=role,
        is_kv_consumer=role in ("kv_consumer", "kv_both"),
        get_from_extra_config=lambda name, default: extra.get(name, default),
    )
    draft = arguments.get("speculative-config")
    given["speculative_config"] = draft and SimpleNamespace(**draft)
    given["enable_sp"] = True
    given["use_v2_model_runner"] = preset.get("env", {}).get("VLLM_USE_V2_MODEL_RUNNER") == "1"
    if "sparse_kv_offload_config" in text:
        given["model_config__hf_text_config"] = SimpleNamespace(index_topk=2048)
    with monkeypatch.context() as patch:
        for name, value in preset.get("env", {}).items():
            patch.setenv(name, str(value))
        try:
            read_additional_config(folder, preset.get("vllm_ascend", {}), patch, **given)
        except (ValueError, AssertionError, RuntimeError, NotImplementedError) as error:
            return str(error)
    return ""


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(rule, id=rule["code"])
        for rule in RULES
        if rule["severity"] == "error"
        and any(source.startswith("vllm_ascend/ascend_config.py") for source in rule["source"])
    ],
)
def test_a_release_stops_where_the_rule_is_an_error(
    rule: dict[str, Any],
    release: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    number, folder = release
    monkeypatch.chdir(tmp_path)
    for kind in ("bad", "good"):
        text = re.sub(r"\[profile\.versions\]\n.*\n", "", rule[kind])
        is_broken = rule["code"] in list_codes(text, versions={"vllm_ascend": number})
        message = normalise(rule["message"])[:40]
        assert (message in normalise(start(folder, text, monkeypatch))) == is_broken, kind
