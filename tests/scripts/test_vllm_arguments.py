"""Forms of vLLM's arguments in scripts: each one is one value below one key, as its parser says."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

import npuprof
from npuprof import catalog
from npuprof.model import Context
from npuprof.scripts.lint import check_script
from npuprof.scripts.preset import build_drafts, format_draft
from npuprof.scripts.reading.file_kinds import import_script
from support.building import config, toml

RECORDED = Path(__file__).parents[2] / ".ci" / "upstream" / "vllm"


def read(name: str, text: str) -> dict[str, Any]:
    """Return the values of vLLM's settings in a file."""
    settings = import_script(name, text.encode()).settings
    return {
        setting.key.removeprefix("vllm."): setting.value
        for setting in settings
        if setting.surface == "vllm" and not setting.reason
    }


def read_line(line: str) -> dict[str, Any]:
    return read("serve.sh", f"vllm serve m {line}\n")


def imported(name: str, text: str) -> dict[str, Any]:
    (draft,) = build_drafts(import_script(name, text.encode()))
    table: dict[str, Any] = tomllib.loads(format_draft(draft))["vllm"]
    return table


def sample(row: dict[str, Any]) -> tuple[str, Any]:
    """Return a text for an argument of a recorded parser, and the value that it makes of it."""
    text, value = {
        "int": ("7", 7),
        "size": ("7k", 7000),
        "float": ("1", 1.0),
        "json": ('{"a": {"b": [1]}}', {"a": {"b": [1]}}),
        "str": ("None!", "None!"),
    }[row["kind"]]
    return text, [value] if row.get("nargs") == "+" or row.get("repeated") else value


@pytest.mark.parametrize("release", sorted(path.stem for path in RECORDED.glob("*.json")))
def test_each_flag_of_each_release_gives_the_value_of_its_argument(release: str) -> None:
    """The parser's answers are recorded: its flags, kinds and numbers of values."""
    rows = json.loads((RECORDED / f"{release}.json").read_text("utf-8"))["arguments"]
    read_flags = 0
    for name, row in rows.items():
        if name in ("additional-config", "config", "api-key", "hf-token", "ssl-keyfile-password"):
            continue
        is_switch = row["kind"] == "bool"
        plain = name.removeprefix("enable-").removeprefix("disable-")
        for flag in row["flags"]:
            if is_switch:
                is_off = flag.startswith("--no-") or (
                    flag not in (f"--{name}", *row["flags"][:1]) and flag.endswith(f"able-{plain}")
                )
                lines = {flag: not is_off, flag.replace("_", "-"): not is_off}
            else:
                text, value = sample(row)
                lines = dict.fromkeys(
                    (shlex.join([flag, text]), shlex.join([f"{flag}={text}"])), value
                )
            for line, expected in lines.items():
                found = read_line(line)
                assert found == {"model": "m", name: expected}, (flag, line)
                assert type(found[name]) is type(expected), line
            read_flags += 1
    assert read_flags > 280


FORMS = {
    "short": ("-tp 4", {"tensor-parallel-size": 4}),
    "short with equals": ("-tp=4", {"tensor-parallel-size": 4}),
    "letter": ("-q ascend", {"quantization": "ascend"}),
    "letter with equals": ("-q=ascend", {"quantization": "ascend"}),
    "letter with its value": ("-n2", {"nnodes": 2}),
    "level": ("-O3", {"optimization-level": "3"}),
    "level apart": ("-O 3", {"optimization-level": "3"}),
    "level with equals": ("-O=3", {"optimization-level": "3"}),
    "underscores": ("--max_model_len 8", {"max-model-len": 8}),
    "alias": ("--device-memory-utilization 0.5", {"gpu-memory-utilization": 0.5}),
    "short dotted": ("-cc.mode=3", {"compilation-config": {"mode": 3}}),
    "short dotted text": ("-sc.method=mtp", {"speculative-config": {"method": "mtp"}}),
    "dotted keys": (
        "--speculative-config.method mtp --speculative-config.num_speculative_tokens 1",
        {"speculative-config": {"method": "mtp", "num_speculative_tokens": 1}},
    ),
    "deep dotted keys": (
        "--compilation_config.pass_config.a true --compilation-config.pass_config.b=2k",
        {"compilation-config": {"pass_config": {"a": True, "b": 2000}}},
    ),
    "elements": (
        "-cc.cudagraph_capture_sizes+ 1,2 -cc.cudagraph_capture_sizes+ 3",
        {"compilation-config": {"cudagraph_capture_sizes": ["1", "2", "3"]}},
    ),
    "json": (
        """--kv-transfer-config '{"kv_role": "kv_both", "kv_rank": null}'""",
        {"kv-transfer-config": {"kv_role": "kv_both"}},
    ),
    "dotted after json": (
        """-sc.method ngram --speculative-config '{"method": "mtp", "a": 1}'""",
        {"speculative-config": {"method": "ngram"}},
    ),
    "negation": ("--no-enable-prefix-caching", {"enable-prefix-caching": False}),
    "newer negation": ("--disable_prefix_caching", {"enable-prefix-caching": False}),
    "last spelling": ("-tp 2 --tensor-parallel-size 4 -tp 8", {"tensor-parallel-size": 8}),
    "last switch": ("--enable-lora --no-enable-lora", {"enable-lora": False}),
    "several": ("--served-model-name a b", {"served-model-name": ["a", "b"]}),
    "several numbers": ("--cudagraph-capture-sizes 1 2", {"cudagraph-capture-sizes": [1, 2]}),
    "several again": ("--lora-modules a=b --lora-modules c=d", {"lora-modules": ["c=d"]}),
    "appended": ("--middleware a --port 1 --middleware b", {"middleware": ["a", "b"], "port": 1}),
    "beginning": ("--max-model 100", {"max-model-len": 100}),
    "beginning of a negation": ("--no-enable-prefix", {"enable-prefix-caching": False}),
    "decimal size": ("--max-model-len 25.6k", {"max-model-len": 25600}),
    "binary size": ("--max-model-len 32K", {"max-model-len": 32768}),
    "automatic size": ("--max-model-len auto", {"max-model-len": -1}),
    "no automatic size": ("--max-num-batched-tokens auto", {"max-num-batched-tokens": "auto"}),
    "no size": ("--max-num-seqs 1k", {"max-num-seqs": "1k"}),
    "no number": ("--max-num-seqs lots", {"max-num-seqs": "lots"}),
    "float": ("--cpu-offload-gb 4", {"cpu-offload-gb": 4.0}),
    "digits of a text": ("--revision 7", {"revision": "7"}),
    "None": ("--quantization None", {}),
    "value of a switch": ("--enforce-eager=true", {"enforce-eager": "true"}),
    "word after a switch": ("--enforce-eager True", {"enforce-eager": "True"}),
    "unknown": ("--prot 8000", {"prot": 8000}),
    "ambiguous": ("--max-num 8", {"max-num": 8}),
    "help": ("--help=max-num-seqs", {}),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_value_that_the_parser_makes_of_it(form: str) -> None:
    line, expected = FORMS[form]
    found = read_line(line)
    assert found == {"model": "m", **expected}
    assert all(type(found[name]) is type(value) for name, value in expected.items())


LINE = (
    "vllm serve m -tp 4 -q=ascend --disable-prefix-caching --max-model 32k "
    "--served-model-name a b -sc.method mtp --speculative-config.num_speculative_tokens 1 "
    "--middleware x --middleware y -O3 --cpu-offload-gb 4"
).replace("--speculative-config.num", "-sc.num")
WORDS = json.dumps(LINE.split())
VALUES = {
    "model": "m",
    "tensor-parallel-size": 4,
    "quantization": "ascend",
    "enable-prefix-caching": False,
    "max-model-len": 32000,
    "served-model-name": ["a", "b"],
    "speculative-config": {"method": "mtp", "num_speculative_tokens": 1},
    "middleware": ["x", "y"],
    "optimization-level": "3",
    "cpu-offload-gb": 4.0,
}
SURFACES = {
    "serve.sh": f"exec {LINE}",
    "module.sh": LINE.replace("vllm serve", "python -m vllm.entrypoints.openai.api_server"),
    "Dockerfile": f"FROM x\nCMD {WORDS}",
    "run.md": f"```bash\n{LINE}\n```\n",
    "compose.yaml": f"services:\n  a:\n    command: {WORDS}",
    "text.yaml": f"services:\n  a:\n    command: {LINE}",
    "pod.yaml": f"spec:\n  containers:\n  - command: [vllm, serve]\n    args: {LINE.split()[2:]}",
    "shell.yaml": f"spec:\n  containers:\n  - command: [bash, -c]\n    args: [{json.dumps(LINE)}]",
    "config.yaml": (
        "model: m\ntensor_parallel_size: '4'\nquantization: ascend\n"
        "no-enable-prefix-caching: true\nmax-model-len: 32k\nserved-model-name: [a, b]\n"
        "gpu-memory-utilization: null\n"
        "speculative-config: {method: mtp, num_speculative_tokens: 1, model: null}\n"
        "middleware: x\nmax-num-seqs: null\noptimization-level: 3\ncpu-offload-gb: 4\n"
    ),
    "dotted.yaml": (
        "model: m\ntensor-parallel-size: 4\nquantization: ascend\nenable_prefix_caching: false\n"
        "max-model-len: 32000\nserved-model-name: [a, b]\nspeculative-config.method: mtp\n"
        "speculative_config.num_speculative_tokens: 1\nmax-num-seqs: null\n"
        "middleware: x\noptimization-level: 3\ncpu-offload-gb: 4\n"
    ),
    "run.py": (
        "from vllm import LLM\nLLM('m', tensor_parallel_size=4, quantization='ascend',\n"
        "    enable_prefix_caching=False, max_model_len=32000, served_model_name=['a', 'b'],\n"
        "    speculative_config={'method': 'mtp', 'num_speculative_tokens': 1, 'model': None},\n"
        "    middleware=['x', 'y'], optimization_level='3', cpu_offload_gb=4.0)"
    ),
}


@pytest.mark.parametrize("name", SURFACES)
def test_all_surfaces_give_the_same_table(name: str) -> None:
    # YAML has a key once
    values = VALUES | ({"middleware": ["x"]} if "max-num-seqs" in SURFACES[name] else {})
    assert read(name, SURFACES[name]) == values
    made = imported(name, SURFACES[name])
    assert made == values
    rendered = npuprof.render(config(toml({"vllm": made})), "vllm", check=False)
    again = imported("config.yaml", rendered["config.yaml"])
    del again["enable-prefix-caching"], values["enable-prefix-caching"]
    assert again.pop("middleware", None)
    del values["middleware"]
    assert again == values


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("--max-model 100", "--max-model is short for --max-model-len"),
        ("-t 4", "-t is short for -tp"),
        ("--disable-prefix", "--disable-prefix is short for --disable-prefix-caching"),
    ],
)
def test_the_beginning_of_a_name_is_a_note(line: str, text: str) -> None:
    found = check_script(import_script("a.sh", f"vllm serve m {line}\n".encode()), Context())
    (note,) = [finding for finding in found if finding.code == "NP216"]
    assert (note.message, note.severity, note.line) == (text, "info", 1)


@pytest.mark.parametrize(
    "line", ["--max-model-len 100", "-tp 4", "--no-enable-lora", "-O3", "-n2", "-cc.mode 3"]
)
def test_a_full_name_is_no_note(line: str) -> None:
    found = check_script(import_script("a.sh", f"vllm serve m {line}\n".encode()), Context())
    assert "NP216" not in [finding.code for finding in found]


@pytest.mark.parametrize(
    "command",
    [
        "vllm bench serve --model m --max-model 8",
        "vllm chat --url x",
        "vllm run-batch -i a -o b --model m",
        "python -m vllm.entrypoints.openai.run_batch -i a --model m",
    ],
)
def test_other_subcommands_are_other_programs(command: str) -> None:
    assert read("a.sh", command) == {}


@pytest.mark.parametrize("line", ["--kv-transfer-config '{\"a\": 1 2}'", "-sc mtp", "-cc '{'"])
def test_json_that_cannot_be_read_is_an_error(line: str) -> None:
    found = check_script(import_script("a.sh", f"vllm serve m {line}\n".encode()), Context())
    assert [(finding.code, finding.severity) for finding in found] == [("NP203", "error")]


def test_a_dotted_key_that_is_unknown_leaves_the_others() -> None:
    text = "vllm serve m -sc.method mtp -sc.num_speculative_tokens $N\n"
    (draft,) = build_drafts(import_script("a.sh", text.encode()))
    assert tomllib.loads(format_draft(draft))["vllm"]["speculative-config"] == {"method": "mtp"}
    assert [note.why for note in draft.notes] == ["depends on $N"]


def test_the_flags_are_those_of_the_catalogue() -> None:
    row = catalog.find_setting("vllm", "enable-prefix-caching")
    assert row is not None
    assert row.negations == ("--no-enable-prefix-caching", "--disable-prefix-caching")


def test_a_word_to_be_replaced_in_a_manual_is_an_unknown_value() -> None:
    """As in vllm-project/recipes moonshotai/Kimi-K2.5.md: a shell takes it for redirections."""
    text = "```bash\nvllm serve m --port <http-port> \\\n  --served-model-name n\n```\n"
    settings = {s.name: s for s in import_script("a.md", text.encode()).settings}
    assert settings["port"].reason == "depends on $http_port_"
    assert settings["served-model-name"].value in ("n", ["n"])


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        pytest.param(  # LMCache/LMCache-Ascend, .github/workflows/perf-and-accuracy.yml
            "run.yml",
            "jobs:\n  a:\n    steps:\n    - run: |\n        vllm serve m \\\n"
            "          --max-num-seqs 32 \\\n          > server.log 2>&1 &\n",
            {"model": "m", "max-num-seqs": 32},
            id="a step of a workflow",
        ),
        pytest.param(  # volcano-sh/kthena, examples/models/deepseek-v4-flash/modelserving.yaml
            "map.yaml",
            "kind: ConfigMap\ndata:\n  decode.sh: |\n    vllm serve m \\\n"
            "      --enforce-eager --max-num-batched-tokens 144\n",
            {"model": "m", "enforce-eager": True, "max-num-batched-tokens": 144},
            id="a script in a ConfigMap",
        ),
        pytest.param(  # gpustack/gpustack, gpustack/assets/model-catalog.yaml
            "catalog.yaml",
            "specs:\n- backend: vLLM\n  backend_parameters:\n  - --reasoning-parser=a\n"
            "- backend: SGLang\n  backend_parameters:\n  - --reasoning-parser=b\n"
            "  - --context-length=3\n",
            {"reasoning-parser": "a"},
            id="a list whose table names vLLM",
        ),
        pytest.param(  # vllm-project/recipes, models/Qwen/Qwen3.6-27B.yaml
            "guide.yaml",
            "guide: |\n  Run\n\n  ```bash\n  vllm serve m --port 8000\n  ```\n",
            {"model": "m", "port": 8000},
            id="Markdown in a text of YAML",
        ),
        pytest.param(  # volcano-sh/kthena, docs/kthena/docs/user-guide/model-deployment.md
            "page.md",
            "```yaml\nspec:\n  containers:\n  - command: [sh, -c]\n    args:\n    - |\n"
            '      python3 -m vllm.entrypoints.openai.api_server \\\n      --port "8000"\n```\n',
            {"port": 8000},
            id="a manifest in Markdown",
        ),
        pytest.param(  # volcano-sh/kthena, …/model-serving/prefill-decode-disaggregation.yaml
            "pod.yaml",
            "containers:\n- args: [/models/a, --max-model-len, '8', --max-num-seqs, '2']\n",
            {"model": "/models/a", "max-model-len": 8, "max-num-seqs": 2},
            id="arguments for the entrypoint of an image",
        ),
        pytest.param(  # volcano-sh/kthena, …/model-serving/gpu-kvcache-aware.yaml
            "runtime.yaml",
            "containers:\n- image: runtime\n  args: [--port, '8900', --engine, vllm,\n"
            "    --engine-base-url, 'http://a', --model, m]\n",
            {},
            id="arguments of another program",
        ),
        pytest.param(  # vllm-project/vllm-omni, docs/user_guide/acceleration/teacache.md
            "omni.sh", "vllm serve m --omni --cache-backend tea_cache\n", {}, id="vLLM-Omni"
        ),
    ],
)
def test_arguments_are_read_where_people_write_them(
    name: str, text: str, expected: dict[str, Any]
) -> None:
    assert read(name, text) == expected


@pytest.mark.parametrize(
    ("line", "severity", "hint"),
    [
        ("--served-model x", "", ""),
        # ambiguous at one release at least: the start of one only at others
        ("--max 3", "warning", "max-model-len"),
        ("--prot 8000", "error", "'port'"),
        ("--max-num-seqs 0", "error", "at least 1"),
    ],
)
def test_only_what_no_release_takes_is_certainly_wrong(line: str, severity: str, hint: str) -> None:
    script = import_script("a.sh", f"vllm serve m {line}\n".encode())
    context = Context(versions=(("vllm", "0.23.0"),))
    found = [each for each in check_script(script, context) if each.severity != "info"]
    assert [each.severity for each in found] == [severity] * bool(severity)
    assert all(hint in each.hint for each in found)
