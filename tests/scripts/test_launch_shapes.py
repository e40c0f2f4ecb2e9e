"""Launches in YAML and JSON by shape: recipes, catalogues, manifests; and what looks like one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from npuprof.model import Context
from npuprof.scripts import lint
from npuprof.scripts.launches import list_launches
from npuprof.scripts.preset import build_drafts
from support.importing import findings, imported, write
from support.running import Run

#: A file, and for each launch its label, its arguments and the variables that reach it.
LAUNCHES: dict[str, tuple[str, str, list[tuple[str, str, str]]]] = {
    "cases with anchors and merges": (
        "nightly.yaml",
        (
            "_common: &common\n  HCCL_BUFFSIZE: 1024\n"
            "test_cases:\n"
            "- name: long\n  envs: &envs\n    <<: *common\n    HCCL_OP_EXPANSION_MODE: AIV\n"
            "  server_cmd: &cmd\n  - --max-model-len\n  - 8192\n  - --port\n  - $SERVER_PORT\n"
            "  server_cmd_extra: [--enable-expert-parallel]\n"
            "- name: short\n  envs:\n    <<: *envs\n    HCCL_BUFFSIZE: 512\n  server_cmd: *cmd\n"
        ),
        [
            (
                "long",
                "max-model-len port enable-expert-parallel",
                "HCCL_BUFFSIZE=1024 HCCL_OP_EXPANSION_MODE=AIV",
            ),
            ("short", "max-model-len port", "HCCL_OP_EXPANSION_MODE=AIV HCCL_BUFFSIZE=512"),
        ],
    ),
    "nodes with folded texts": (
        "nodes.yaml",
        (
            "env_common: {HCCL_BUFFSIZE: 1024}\ndeployment:\n"
            "- server_cmd: >\n    vllm serve m --headless\n    --additional-config\n"
            """    '{"weight_nz_mode": 0,\n    "refresh": true}'\n"""
            "  envs: {HCCL_BUFFSIZE: 200}\n"
            "- role: decode\n  server_cmd: >-\n    vllm serve m\n    --port {{ port }}\n"
        ),
        [
            ("deployment-1", "model headless weight_nz_mode refresh", "HCCL_BUFFSIZE=200"),
            ("decode", "model port", "HCCL_BUFFSIZE=1024"),
        ],
    ),
    "JSON and flags below their lines": (
        "deeper.yaml",
        (
            "deployment:\n- server_cmd: >\n    vllm serve m --additional-config\n"
            """    '{"refresh": true,\n"""
            """      "weight_nz_mode": 0}'\n    --headless --compilation-config\n"""
            """      '{"cudagraph_mode": "FULL"}'\n    --seed 1\n"""
        ),
        [("deployment-1", "model refresh weight_nz_mode headless compilation-config seed", "")],
    ),
    "a model beside its arguments": (
        "model.yaml",
        (
            "cases:\n- {name: a, model: org/m, server_cmd: [--max-model-len, 8]}\n"
            "- {name: b, model: org/m, server_cmd: [vllm, serve, other, --max-num-seqs, 8]}\n"
        ),
        [("a", "model max-model-len", ""), ("b", "model max-num-seqs", "")],
    ),
    "lists of commands": (
        "epd.yaml",
        "epd_server_cmds:\n- [vllm, serve, a, --port, 1]\n- [vllm, serve, b, --seed, '2']\n",
        [("epd_server_cmds-1", "model port", ""), ("epd_server_cmds-2", "model seed", "")],
    ),
    "fields of the engine": (
        "stages.yaml",
        (
            "stages:\n- name: think\n  env: {HCCL_BUFFSIZE: '200'}\n"
            "  serve: {max_model_len: 4096, max_num_seqs: 8, seed: '${seed}', own_field: x}\n"
        ),
        [("serve", "max-model-len max-num-seqs seed", "HCCL_BUFFSIZE=200")],
    ),
    "a recipe of vLLM with a guide": (
        "Model.yaml",
        (
            "model:\n  base_args: [--trust-remote-code]\n  base_env: {VLLM_USE_V1: '1'}\n"
            "features:\n  reasoning:\n    args: [--reasoning-parser, qwen3]\n"
            "guide: |\n  ## Run\n\n  ```bash\n  vllm serve m --max-num-seqs 8\n  ```\n"
        ),
        [
            ("model", "trust-remote-code", ""),
            ("reasoning", "reasoning-parser", ""),
            ("", "model max-num-seqs", ""),
        ],
    ),
    "a catalogue with several servers": (
        "catalog.yaml",
        (
            "models:\n- name: a\n  specs:\n  - backend: vLLM\n"
            "    backend_parameters: [--max-model-len=8192]\n    env: {HCCL_BUFFSIZE: '200'}\n"
            "  - backend: SGLang\n    backend_parameters: [--tensor-parallel-size=8]\n"
            "  - backend: MindIE\n    backend_parameters: [--trust-remote-code]\n"
        ),
        [("specs-1", "max-model-len", "HCCL_BUFFSIZE=200")],
    ),
    "containers with their own variables": (
        "pod.yaml",
        (
            "kind: Pod\nspec:\n  containers:\n"
            "  - name: p\n    image: vllm\n    env: [{name: HCCL_BUFFSIZE, value: '1'}]\n"
            "    command: [bash, -c]\n    args:\n    - |\n      export TASK_QUEUE_ENABLE=1\n"
            "      vllm serve m --seed 1\n"
            "  - name: d\n    image: vllm\n    env: [{name: HCCL_BUFFSIZE, value: '2'}]\n"
            "    args: [m, --max-model-len, '8']\n"
        ),
        [
            ("p", "model seed", "HCCL_BUFFSIZE=1 TASK_QUEUE_ENABLE=1"),
            ("d", "model max-model-len", "HCCL_BUFFSIZE=2"),
        ],
    ),
    "values of Helm": (
        "values.yaml",
        (
            "extraEnv:\n- {name: HCCL_BUFFSIZE, value: '200'}\n"
            "extraArgs: [--max-num-seqs=8, '--served-model-name={{ .Values.name }}']\n"
        ),
        [("", "max-num-seqs served-model-name", "HCCL_BUFFSIZE=200")],
    ),
    "a script in a ConfigMap": (
        "map.yaml",
        (
            "kind: ConfigMap\ndata:\n  run.sh: |\n    #!/bin/bash\n    export HCCL_BUFFSIZE=200\n"
            "    vllm serve m \\\n      --seed 1\n"
        ),
        [("data", "model seed", "HCCL_BUFFSIZE=200")],
    ),
    "flags on the lines below a program": (
        "set.yaml",
        (
            "start: |\n  vllm serve m\n  --seed 1\n"
            "environment:\n- VLLM_USE_V1: '1'\n- HCCL_BUFFSIZE: 200\n"
        ),
        [("", "model seed", "HCCL_BUFFSIZE=200")],
    ),
    "two servers in one line": (
        "both.sh",
        "export HCCL_BUFFSIZE=200\nvllm serve m --seed 1 & vllm serve n --port 2 &\n",
        [("", "model seed", "HCCL_BUFFSIZE=200"), ("", "model port", "HCCL_BUFFSIZE=200")],
    ),
}


@pytest.mark.parametrize("case", LAUNCHES)
def test_each_launch_of_a_file_has_its_arguments_and_its_own_variables(case: str) -> None:
    name, text, expected = LAUNCHES[case]
    launches = list_launches(imported(text, name))
    read = [
        (
            launch.labels[0],
            " ".join(setting.name for setting in launch.settings),
            " ".join(f"{item.name}={item.value}" for item in launch.environment),
        )
        for launch in launches
        if launch.surface == "vllm"
    ]
    assert read == expected
    errors = [item for item in findings(text, name) if item.severity != "info"]
    assert errors == []


@pytest.mark.parametrize("case", LAUNCHES)
def test_each_setting_of_a_launch_is_on_the_line_that_has_it(case: str) -> None:
    name, text, _ = LAUNCHES[case]
    lines = [line.replace("_", "-") for line in text.splitlines()]
    for setting in imported(text, name).settings:
        is_model = setting.name == "model"
        assert (setting.value if is_model else setting.name.replace("_", "-")) in lines[
            setting.line - 1
        ]


def test_variables_of_roles_are_presets_of_their_own() -> None:
    text = json.dumps(
        {
            "version": "v1",
            "mindie_prefill_env": {"HCCL_OP_EXPANSION_MODE": "AIV", "HCCL_BUFFSIZE": 200},
            "mindie_decode_env": {"HCCL_OP_EXPANSION_MODE": "AI_CPU"},
        }
    )
    drafts = build_drafts(imported(text, "mindie_env.json"))
    assert {draft.name: draft.settings for draft in drafts} == {
        "mindie_env-mindie-prefill-env": {
            "env.HCCL_OP_EXPANSION_MODE": "AIV",
            "env.HCCL_BUFFSIZE": "200",
        },
        "mindie_env-mindie-decode-env": {"env.HCCL_OP_EXPANSION_MODE": "AI_CPU"},
    }


def test_a_workflow_sets_variables_and_starts_nothing() -> None:
    text = (
        "on: push\nenv: {HCCL_BUFFSIZE: '200'}\njobs:\n  test:\n    env: {TASK_QUEUE_ENABLE: '1'}\n"
        "    steps:\n    - env: {TASK_QUEUE_ENABLE: '2'}\n      run: pytest --durations 5\n"
    )
    drafts = build_drafts(imported(text, "ci.yml"))
    assert [draft.settings for draft in drafts] == [
        {"env.HCCL_BUFFSIZE": "200", "env.TASK_QUEUE_ENABLE": "2"}
    ]
    assert findings(text, "ci.yml") == []


#: Files that look like launches of vLLM and are none.
OTHERS = {
    "arguments of another program": (
        "a.yaml",
        "x: vllm\nimage: nginx\nargs: ['--host', 0.0.0.0, '--port', '80']\nl: [--port, '1']\n",
    ),
    "a matrix of tox": (
        "a.yaml",
        "envs: [py311, py312]\nenv: {TOX_PARALLEL: '1', CI: x-max-len}\n",
    ),
    "arguments of Megatron": (
        "a.yaml",
        "args:\n  additional_config: null\n  max_model_len: null\n  seq_length: 4096\n  seed: 1\n",
    ),
    "an OpenAPI file": (
        "a.json",
        '{"properties": {"max_model_len": {"type": "integer"}, "max_num_seqs": {"type": "x"}}}',
    ),
    "sentences": (
        "a.yaml",
        "description: vllm serve fails with --max-model-len too big for the model.\n"
        "note: >\n  Run it with vllm serve, and choose --max-num-seqs as you like.\n",
    ),
    "words of a log": ("a.json", '{"in": ["vllm serve", "error", "--scheduling-policy", "x"]}'),
    "names of arguments": ("a.yaml", "vllm: [--max-model-len, --gpu-memory-utilization]\n"),
    "a service of SGLang": (
        "a.yaml",
        "services:\n  s:\n    image: lmsysorg/sglang:v1\n"
        "    command: [python3, -m, sglang.launch_server, --tensor-parallel-size, '8']\n"
        "    environment: {CUDA_VISIBLE_DEVICES: '0'}\nx: vllm serve\n",
    ),
    "fields of another configuration": (
        "a.yaml",
        "rollout: {max_model_len: 8, max_num_seqs: 2, actor: x, critic: y, reward: z, agent: 1}\n",
    ),
    "descriptions of variables": (
        "a.yaml",
        "docs: {HCCL_ALGO: the algorithm that HCCL takes for all collective operations}\n",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_only_looks_like_a_launch_is_quiet(case: str) -> None:
    name, text = OTHERS[case]
    read = imported(text, name)
    assert [setting for setting in read.settings if setting.surface != "config"] == []
    assert [item for item in findings(text, name) if item.code != "NP829"] == []


def test_a_hyphen_in_the_name_of_a_variable_is_an_error_with_the_right_name() -> None:
    text = "cases:\n- envs:\n    VLLM-ASCEND_ENABLE_NZ: '1'\n    HCCL_BUFFSIZE: '200'\n"
    (found,) = findings(text, "a.yaml")
    assert (found.code, found.severity, found.line) == ("NP207", "error", 3)
    assert found.hint == "write VLLM_ASCEND_ENABLE_NZ"


def test_an_argument_of_a_recipe_is_checked_with_the_variables_of_its_case() -> None:
    case = "- envs: {{TASK_QUEUE_ENABLE: '{}'}}\n  cmd: [vllm, serve, m, --max-num-seqs, '8']\n"
    text = f"cases:\n{case.format(1)}{case.format(2)}"
    assert [(item.code, item.line) for item in findings(text, "a.yaml")] == [("NP3118", 4)]


def test_what_stays_unread_is_listed_with_its_lines(run: Run, tmp_path: Path) -> None:
    text = "envs: {HCCL_BUFFSIZE: '200'}\nother:\n- --unknown-flag\n- x\nMY_NAME: 1\n"
    write(tmp_path, {"a.yaml": text})
    done = run("scan", tmp_path / "a.yaml", "--format", "json")
    (unread,) = json.loads(done.out)["coverage"]["not_judged"]
    assert unread["lines"] == 2
    assert [place.rpartition(":")[2] for place in unread["places"]] == ["3", "5"]
    assert "not judged: 2 lines of other arguments and variables" in run("scan", tmp_path).err


def test_cases_are_imported_as_presets_with_a_common_base(run: Run, tmp_path: Path) -> None:
    name, text, _ = LAUNCHES["cases with anchors and merges"]
    write(tmp_path, {name: text})
    made = run("import", tmp_path / name, "--base", "auto")
    assert made.code == 0, made.err
    names = [line for line in made.out.splitlines() if line.startswith("# ---")]
    assert names == ["# --- base.toml", "# --- nightly-long.toml", "# --- nightly-short.toml"]


#: Files that need a limit, and what the finding says.
HOSTILE = {
    "aliases of aliases": (
        "a0: &a0 {HCCL_ALGO: x}\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)),
        "",
    ),
    "merges of merges": (
        "a0: &a0 {HCCL_ALGO: x}\n"
        + "".join(
            f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], VLLM_K{n}: z}}\n" for n in range(1, 2000)
        ),
        "more than",
    ),
    "a table that includes itself": ("a: &a {HCCL_ALGO: x, <<: *a}\n", ""),
    "tables in tables": (f"HCCL_ALGO: x\na: {'{a: ' * 1000}{'}' * 1000}", "nested too deeply"),
    "a bracket that is not closed": ("HCCL_ALGO: [x\ncmd: vllm serve m --x", "not YAML"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_ends_in_a_finding_or_is_read(case: str) -> None:
    text, message = HOSTILE[case]
    problems = imported(text, "a.yaml").problems
    assert [message in problem.message for problem in problems] == [True] * bool(message)


@pytest.mark.parametrize("opening", ["{", "${", "$(", "{{ a"])
def test_templates_that_never_end_are_read_in_bounded_time(opening: str, tmp_path: Path) -> None:
    text = json.dumps(opening * 100_000)
    command = f'["vllm", "serve", "a/b", "--additional-config", {text}]'
    file = tmp_path / "x.yaml"
    file.write_text(f"server_cmd: {command}\nenvs:\n  VLLM_USE_V1: {text}\n")
    scan = [sys.executable, "-m", "npuprof", "scan", str(file), "--format", "json"]
    done = subprocess.run(scan, capture_output=True, timeout=100, check=False)
    assert json.loads(done.stdout)["coverage"]["settings"] > 1


def test_a_file_is_searched_once_for_the_chips_of_its_many_launches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches = []
    monkeypatch.setattr(lint, "_GPUS", SimpleNamespace(search=searches.append))
    case = '- server_cmd: ["vllm", "serve", "a/b"]\n'
    assert not lint.check_script(imported(case * 3, "x.yaml"), Context())
    assert len(searches) <= 1


#: A file of a shape of a public one, and the settings of vLLM in it.
SHAPES = {
    # vllm-project/production-stack tutorials/assets/values-04-multiple-models.yaml
    "Helm fields": (
        "modelSpec:\n- vllmConfig:\n    maxModelLen: 4096\n    maxNumSeqs: 32\n"
        "    gpuMemoryUtilization: 0.8\n    v1: 1\n",
        {"max-model-len": 4096, "max-num-seqs": 32, "gpu-memory-utilization": 0.8},
    ),
    # vllm-project/production-stack tutorials/assets/values-02-basic-config.yaml
    "Helm fields with a list of arguments": (
        "vllmConfig:\n  enablePrefixCaching: false\n  maxModelLen: 4096\n  v1: 1\n"
        '  extraArgs: ["--max-num-seqs", "8"]\n',
        {"enable-prefix-caching": False, "max-model-len": 4096, "max-num-seqs": 8},
    ),
    # vllm-project/recipes models/nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16.yaml
    "switches alone": (
        "base_args:\n- --trust-remote-code\n- --async-scheduling\n",
        {"trust-remote-code": True, "async-scheduling": True},
    ),
    # opea-project/GenAIExamples AgentQnA/docker_compose/amd/gpu/rocm/compose_vllm.yaml
    "a text of flags": (
        "services:\n  vllm:\n    command: --model $M --max-model-len 4096 --max-num-seqs 8\n",
        {"model": None, "max-model-len": 4096, "max-num-seqs": 8},
    ),
    # kserve/kserve docs/samples/llmisvc/agentic-tool-calling/nemotron-3-ultra-pd.yaml
    "a folded text of flags in a variable": (
        "env:\n- name: VLLM_ADDITIONAL_ARGS\n  value: >-\n    --trust-remote-code\n"
        "    --max-model-len=4096\n    --max-num-seqs 8\n",
        {"trust-remote-code": True, "max-model-len": 4096, "max-num-seqs": 8},
    ),
    # kaito-project/kaito examples/inference/kaito_workspace_custom_config.yaml
    "a file of arguments in a ConfigMap": (
        "kind: ConfigMap\ndata:\n  inference_config.yaml: |\n    vllm:\n"
        "      max-model-len: 4096\n      gpu-memory-utilization: 0.9\n",
        {"max-model-len": 4096, "gpu-memory-utilization": 0.9},
    ),
    # vllm-project/recipes models/Qwen/Qwen3.8-27B.yaml
    "a guide with variables": (
        "guide: |\n  ```bash\n  export HCCL_BUFFSIZE=512\n  vllm serve m --max-num-seqs 8\n  ```\n",
        {"HCCL_BUFFSIZE": "512", "model": "m", "max-num-seqs": 8},
    ),
    # vllm-project/aibrix test/regression/v0.3.0/ps_stack.yaml
    "many documents": (
        "".join(f"---\nx: {{a: {n}}}\ny: [b, {{c: d}}]\n" for n in range(9))
        + "---\ncommand: [vllm, serve, m, --max-num-seqs, 8]\n",
        {"model": "m", "max-num-seqs": 8},
    ),
}


@pytest.mark.parametrize("case", SHAPES)
def test_settings_of_public_shapes_are_read_from_their_lines(case: str) -> None:
    text, expected = SHAPES[case]
    settings = [item for item in imported(text, "a.yaml").settings if item.surface != "config"]
    assert {item.name: item.value for item in settings} == expected
    lines = text.replace("maxM", "max-m").replace("maxN", "max-n").splitlines()
    placed = [item for item in settings if item.name.startswith("max-")]
    assert all(item.name[:5] in lines[item.line - 1] for item in placed)


def test_a_schema_of_helm_fields_sets_nothing() -> None:
    """As in vllm-project/production-stack operator/config/crd/bases."""
    text = "vllmConfig:\n  maxModelLen: {type: integer}\n  maxNumSeqs: {type: integer}\n"
    assert imported(text, "a.yaml").settings == ()


def test_a_launch_that_is_no_yaml_is_listed_with_its_lines(run: Run, tmp_path: Path) -> None:
    """As in volcano-sh/kthena cli/kthena/helm/templates/Qwen/Qwen3-32B.yaml."""
    text = "{{- if .x }}\nconfig:\n  max-model-len: {{ .y }}\n  # max-num-seqs: 8\n{{- end }}\n"
    write(tmp_path, {"a.yaml": text})
    done = run("scan", tmp_path, "--format", "json")
    _, unread = json.loads(done.out)["coverage"]["not_judged"]
    assert [place.rpartition(":")[2] for place in unread["places"]] == ["3"]
