"""Settings of vLLM-Ascend: catalogue rows, rendered folder, and how vLLM-Ascend reads it."""

from __future__ import annotations

import json
import os
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof import catalog
from npuprof.catalog.releases import find_stable_lines, load_releases
from support.building import codes, config, texts, toml
from support.running import Run
from support.vllm_parts import RELEASES, fetch_release, read_additional_config
from support.vllm_rows import ROWS, nest, sample

#: Codes of rules between settings.
RULES = {rule.code for rule in catalog.load_rules()}

#: What leaves no attribute of its name.
OPEN = {"refresh", "dump_config", "hamming_sparse"}
#: Keys that 0.26.0rc1 rejects for a model without sparse attention, of which a wheel has none.
NEEDS_A_MODEL = "sparse_kv_offload_config."
#: Keys that other files of a release read: utils.py, and spec_decode/llm_base_proposer.py.
READ_ELSEWHERE = {
    "0.23.0": {"enable_dsa_cp"},
    "0.26.0rc1": {"enable_dsa_cp", "draft_window_size"},
}
#: What releases do not start without where the parallel size of one of these modules is set; those
#: that do not know a key ignore it.
NEEDED = {"recompute_scheduler_enable": True, "torchair_graph_config": {"enabled": True}}
SERVING = """
[env]
HCCL_BUFFSIZE = 1024
VLLM_ASCEND_ENABLE_NZ = 2
[vllm_ascend]
weight_nz_mode = 0
eplb_config.num_redundant_experts = 2
[vllm]
model = "Qwen/Qwen3-8B"
tensor-parallel-size = 4
served-model-name = ["a", "yes"]
compilation-config = { cudagraph_mode = "FULL_DECODE_ONLY" }
"""


def additional(preset: npuprof.Config) -> dict[str, Any]:
    """Return what vLLM would take from the rendered file for --additional-config."""
    # a key alone may break a rule: it needs others
    document = yaml.safe_load(npuprof.render(preset, "vllm", check=False)["config.yaml"])
    result: dict[str, Any] = json.loads(document["additional-config"])
    return result


@pytest.mark.parametrize("name", ROWS)
def test_a_preset_takes_each_key_of_vllm_ascend_and_the_file_has_it(name: str) -> None:
    row = ROWS[name]
    value = sample(row)
    text = toml({"vllm_ascend": nest(name, value)})
    found = {
        finding.code: finding.severity
        for finding in npuprof.check(config(text))
        if finding.code not in RULES
    }
    newest, lines = find_stable_lines("vllm_ascend")
    if newest in find_read(name):
        assert found.keys() <= {"NP501", "NP214"}
        assert found.get("NP501", "info") == "info"
    else:
        assert found.keys() <= {"NP502", "NP214"}
        known = load_releases("vllm_ascend")
        is_alive = set(find_read(name)) & {*lines, *known[known.index(newest) :]}
        assert found["NP502"] == ("info" if is_alive else "warning")
    assert "NP214" not in found or row.requires
    assert additional(config(text)) == nest(name, value)
    wrong = {"bool": "False", "int": "1", "float": "0.5", "list": "a", "json": 1}.get(row.kind, 7)
    assert {*codes(toml({"vllm_ascend": nest(name, wrong)}))} - RULES == {"NP202"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "[vllm_ascend]\nenable_mlpo = true",
            ("NP212", "'enable_mlapo'", "0.27.1rc1 and newer stop"),
        ),
        (
            "[vllm_ascend]\neplb_config.dynamic = true",
            ("NP212", "", "vLLM-Ascend stops at an unknown key of eplb_config."),
        ),
        (
            "[vllm_ascend]\nnum_redundant_experts = 1",
            ("NP212", "'eplb_config.num_redundant_experts'", ""),
        ),
        ("[vllm]\nadditional-config = '{}'", ("NP212", "[vllm_ascend]", "")),
        ("[vllm]\nadditional_config.refresh = true", ("NP212", "[vllm_ascend]", "")),
        ("[vllm]\nport = inf", ("NP202", "as text", "")),
        ("[vllm_ascend]\nweight_nz_mode = 3", ("NP203", "", "")),
        (
            "[vllm_ascend]\ndynamic_eplb = true",
            (
                "NP502",
                "use vllm_ascend.eplb_config.dynamic_eplb",
                "The last release of vllm_ascend that reads it is 0.13.0.",
            ),
        ),
        (
            "[vllm_ascend]\nrl_config.enabled = true",
            ("NP502", "set it for 0.27.1rc1 and newer", "does not read it"),
        ),
        (
            "[vllm_ascend]\nrecompute_scheduler_enable = true",
            (
                "NP501",
                "from vllm_ascend 0.25.1rc1: use "
                "vllm_ascend.scheduler_config.recompute_scheduler_enable",
                "A later release may remove it.",
            ),
        ),
        (
            '[profile]\nversions.vllm_ascend = ">=0.23"\n[vllm_ascend]\ndynamic_eplb = true',
            (
                "NP404",
                "use vllm_ascend.eplb_config.dynamic_eplb",
                "0.9.1rc2 to 0.9.1, 0.11.0rc0 to 0.13.0; others fail",
            ),
        ),
        (
            '[profile]\nversions.vllm_ascend = "0.11.0"\n[vllm_ascend]\nrl_config.enabled = true',
            ("NP404", "unset it there, or narrow vllm_ascend", "read by vllm_ascend 0.27.1rc1 on;"),
        ),
    ],
)
def test_a_key_of_another_place_or_release_is_a_finding_that_says_what_to_write(
    text: str, wanted: tuple[str, str, str]
) -> None:
    (finding,) = npuprof.check(config(text))
    assert finding.code == wanted[0]
    assert wanted[1] in finding.hint
    assert wanted[2] in finding.why


def test_the_folder_is_written_checked_and_printed(tmp_path: Path, run: Run) -> None:
    (tmp_path / "serving.toml").write_text(SERVING)
    arguments = ("render", tmp_path / "serving.toml", "--to", "vllm")
    assert run(*arguments, "-o", tmp_path / "out").code == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["config.yaml", "env.sh"]
    files = {name: (tmp_path / "out" / name).read_text() for name in ("config.yaml", "env.sh")}
    assert run(*arguments).out == "".join(f"# {name}\n{text}" for name, text in files.items())
    preset = config(SERVING)
    bodies = npuprof.render(preset, "vllm", inline=True)
    cases = npuprof.render(preset, "vllm")
    assert cases
    for name, text in cases.items():
        assert text.startswith("# Generated by npuprof")
        assert f"# digest: sha256:{preset.digest} " in text
        assert text.endswith(f"\n{bodies[name]}")
    assert (
        run("env", tmp_path / "serving.toml", "--shell", "bash", "-o", tmp_path / "exports").code
        == 0
    )
    exports = (tmp_path / "exports").read_text().splitlines()
    assert [line for line in files["env.sh"].splitlines() if not line.startswith("#")] == exports
    assert run(*arguments, "--check", tmp_path / "out").code == 0
    assert files
    for name in files:
        (tmp_path / "out" / name).write_text(files[name] + "# mine\n")
        assert run(*arguments, "--check", tmp_path / "out").code == 1
        assert run(*arguments, "-o", tmp_path / "out").code == 2
        (tmp_path / "out" / name).write_text(files[name])
    assert run(*arguments, "--set", "vllm.port=8001", "--check", tmp_path / "out").code == 1


plain = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
nested = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
argument_names = texts.filter(lambda name: name.replace("_", "-") != "additional-config")


def _read_plainly(name: str, value: Any) -> tuple[str, Any]:
    """Return an argument as the file has it: a flag has no value of its own."""
    if value is False:
        return f"no-{name.replace('_', '-')}", True
    if isinstance(value, (str, float)) and str(value).startswith("-"):
        return f"{name}={value}", True
    return name, value


def _has_flag_inside(value: Any) -> bool:
    return isinstance(value, list) and any(str(item).startswith("-") for item in value)


@given(
    st.dictionaries(argument_names, nested.filter(lambda v: not _has_flag_inside(v)), max_size=5)
)
def test_pyyaml_reads_back_exactly_the_arguments(arguments: dict[str, Any]) -> None:
    document = yaml.safe_load(
        npuprof.render(config(toml({"vllm": arguments})), "vllm", check=False)["config.yaml"]
    )
    named = dict(_read_plainly(name, value) for name, value in arguments.items())
    assert set(document) == set(named)
    for name, value in named.items():
        pairs = (
            zip(document[name], value, strict=True)
            if isinstance(value, list)
            else [(document[name], value)]
        )
        for read, written in pairs:  # a table is JSON text, which vLLM makes of tables itself
            got = json.loads(read) if isinstance(written, (dict, list)) and written else read
            assert repr(got) == repr(written)


def test_without_a_setting_the_file_is_an_empty_table() -> None:
    assert yaml.safe_load(npuprof.render(config(""), "vllm")["config.yaml"]) == {}


def test_a_value_that_no_yaml_can_express_is_an_error_that_names_it() -> None:
    with pytest.raises(npuprof.NpuprofError, match=r"vllm\.since"):
        npuprof.render(config("[vllm]\nsince = 1979-05-27"), "vllm", check=False)


# -- vLLM-Ascend itself ---------------------------------------------------------------------------


@pytest.fixture(scope="module", params=RELEASES)
def release(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    return request.param, fetch_release(request.param, tmp_path_factory.mktemp("wheels"))


def find_read(name: str) -> list[str]:
    pairs = zip(ROWS[name].states, load_releases("vllm_ascend"), strict=True)
    return [release for letter, release in pairs if letter == "Y"]


def test_a_release_asks_for_the_keys_that_the_table_has_for_it(
    release: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    number, folder = release
    requested = {
        "refresh": True,
        "enable_sparse_li_c8": True,
        "enable_sparse_c8": True,
    }  # what others are read behind
    _, read = read_additional_config(folder, requested, monkeypatch, model_uses_sfa_sparse=True)
    assert read == {
        name.partition(".")[0] for name in ROWS if number in find_read(name)
    } - READ_ELSEWHERE.get(number, set())


def test_a_release_makes_of_the_rendered_keys_what_the_preset_says(
    release: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    number, folder = release
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DYNAMIC_EPLB", "true")
    (tmp_path / "map.json").write_text("{}")
    tried = 0
    for name in (
        name
        for name in ROWS
        if number in find_read(name)
        and name not in OPEN | READ_ELSEWHERE.get(number, set())
        and not name.startswith(NEEDS_A_MODEL)
    ):
        value = sample(ROWS[name])
        needed = (
            NEEDED
            if "tensor_parallel" in name
            else dict.fromkeys(ROWS[name].requires, True)
            if "." not in name
            else {}
        )
        requested = additional(config(toml({"vllm_ascend": {**needed, **nest(name, value)}})))
        flags = {"enable_sp": True, "model_uses_sfa_sparse": "sparse" in name or "c8" in name}
        degree = 1 if "tensor_parallel" in name else 2
        flags |= {
            "parallel_config__tensor_parallel_size": degree,
            "parallel_config__pipeline_parallel_size": 1 + ("chunk" in name),
        }
        made, _ = read_additional_config(folder, requested, monkeypatch, **flags)
        is_kept = hasattr(made, name.partition(".")[0])
        home = name if is_kept else ROWS[name].replaced_by.removeprefix("vllm_ascend.")
        got = reduce(getattr, home.split("."), made)
        assert got == value or ROWS[name].kind == "json", name
        tried += 1
    assert tried > {"0.11.0": 15, "0.23.0": 50, "0.26.0rc1": 60}[number]
