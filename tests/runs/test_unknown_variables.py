"""``verify``, ``whatran`` and ``option`` answer vLLM's line about an unknown variable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npuprof.runs.unknown_variables import explain_variable
from support.running import Run, Store

LINE = "WARNING 11-29 10:00:01 [envs.py:1717] Unknown vLLM environment variable detected: {}"
PRESETS = {
    "serve": '[env]\nVLLM_ASCEND_ENABLE_NZ = "1"\n[vllm]\ntensor-parallel-size = 2\n',
    "bert": "[options]\nhccl_timeout = 1800\n",
}


def write_log(path: Path, *names: str) -> str:
    """Write the lines of two processes of vLLM, and others around them."""
    lines = ["INFO 11-29 10:00:00 [config.py:1] Loading", *(LINE.format(name) for name in names)]
    lines += [f"\x1b[1;36m(EngineCore pid=7)\x1b[0;0m {LINE.format(name)}" for name in names]
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "VLLM_ASCEND_ENABLE_NZ",
            "is valid: vLLM-Ascend reads it (0.11.0rc1 to 0.26.0rc1)",
            id="valid",
        ),
        pytest.param(
            "VLLM_ASCEND_ENABLE_NX", "did you mean 'VLLM_ASCEND_ENABLE_NZ'", id="misspelt"
        ),
        pytest.param(
            "VLLM_ZZZZ_QQQQ_WWWW", "unset it, unless another program reads it", id="like-none"
        ),
        pytest.param("VLLM_PORT", "is of vLLM (", id="of-another-release"),
    ],
)
def test_the_answer_says_whether_a_variable_is_valid(name: str, expected: str) -> None:
    assert expected in explain_variable(name)


@pytest.mark.parametrize("preset", ["serve", "bert"])
def test_verify_answers_each_variable_once(
    preset: str, store: Store, tmp_path: Path, run: Run
) -> None:
    store(PRESETS)
    names = ["VLLM_ASCEND_ENABLE_NZ", "VLLM_ASCEND_ENABLE_NX"]
    log = write_log(tmp_path / "serve.log", *names)
    done = run("verify", preset, log)
    assert done.code == 2  # nothing of the preset is proven
    assert done.err.splitlines() == [
        *(f"npuprof: {explain_variable(name)}" for name in names),
        "npuprof: nothing else in the log shows settings of the preset",
    ]
    fields = json.loads(run("verify", preset, log, "--format", "json").out)
    assert fields["unknown_variables"] == {name: explain_variable(name) for name in names}


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        pytest.param("serve", "nothing in {} was written by", id="preset-of-vllm"),
        pytest.param("bert", "nothing in {} was written by", id="preset-with-options"),
        pytest.param("torch", "torch sets no session option", id="other-preset"),
    ],
)
def test_a_log_without_the_line_is_answered_as_before(
    preset: str, message: str, store: Store, tmp_path: Path, run: Run
) -> None:
    store({**PRESETS, "torch": "[torch_npu]\njit_compile = false\n"})
    log = write_log(tmp_path / "serve.log")
    done = run("verify", preset, log)
    assert done.code == 2
    assert message.format(log) in done.err


@pytest.mark.parametrize("how", ["serve.log", "serve.txt", "-"])
def test_whatran_answers_the_line(how: str, store: Store, tmp_path: Path, run: Run) -> None:
    store(PRESETS)
    log = write_log(tmp_path / "serve.txt", "VLLM_ASCEND_ENABLE_NZ")
    (tmp_path / "serve.log").write_bytes(Path(log).read_bytes())
    if how == "-":
        done = run("whatran", "-", stdin=LINE.format("VLLM_ASCEND_ENABLE_NZ").encode())
    else:
        done = run("whatran", str(tmp_path / how))
    assert explain_variable("VLLM_ASCEND_ENABLE_NZ") in done.err
    assert done.code == 1


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        pytest.param("VLLM_ASCEND_ENABLE_NZ", 0, "env.VLLM_ASCEND_ENABLE_NZ  Selects", id="valid"),
        pytest.param(
            "VLLM_ASCEND_ENABLE_NX", 2, "did you mean 'VLLM_ASCEND_ENABLE_NZ'", id="misspelt"
        ),
    ],
)
def test_option_leads_from_the_line_to_the_variable(
    name: str, code: int, text: str, run: Run
) -> None:
    done = run("option", LINE.format(name))
    assert text in done.out + done.err
    assert done.code == code


def test_a_log_with_many_names_gives_few_answers(store: Store, tmp_path: Path, run: Run) -> None:
    store(PRESETS)
    log = write_log(tmp_path / "serve.log", *(f"VLLM_X{number}" for number in range(999)))
    assert len(run("verify", "serve", log).err.splitlines()) == 65
