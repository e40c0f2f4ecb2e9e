"""Settings of vLLM-Ascend: rows of the catalogue, the rendered folder, and what vLLM-Ascend's own Python makes of it."""

from __future__ import annotations

import json
import os
import subprocess
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof import catalog
from npuprof.catalog.releases import find_releases_read
from support.building import codes, config, texts, toml
from support.running import Run
from support.vllm_parts import (
    RELEASES,
    STRICT_RELEASES,
    fetch_config_source,
    fetch_release,
    list_accepted_keys,
    load_module,
    read_additional_config,
)
from support.vllm_rows import ROWS, nest, sample

#: What leaves no attribute of its name.
OPEN = {"refresh", "dump_config", "hamming_sparse"}
#: Keys that a release of another branch lacks, between releases that have it.
ABSENT = {"0.23.0": {"enable_sparse_c8"}}
#: What releases do not start without where the parallel size of one of these modules is set; those that do not know a key ignore it.
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
    document = yaml.safe_load(npuprof.render(preset, "vllm")["config.yaml"])
    result: dict[str, Any] = json.loads(document["additional-config"])
    return result


@pytest.mark.parametrize("name", ROWS)
def test_a_preset_takes_each_key_of_vllm_ascend_and_the_file_has_it(name: str) -> None:
    row = ROWS[name]
    value = sample(row)
    text = toml({"vllm_ascend": nest(name, value)})
    assert set(codes(text)) <= {*(["NP501"] if row.deprecated or row.until else []), *(["NP214"] if row.requires else [])}
    assert additional(config(text)) == nest(name, value)
    wrong = {"bool": "False", "int": "1", "float": "0.5", "list": "a", "json": 1}.get(row.kind, 7)
    assert codes(toml({"vllm_ascend": nest(name, wrong)})) == ["NP202"]


def test_the_table_has_what_the_documentation_lists_and_what_releases_read() -> None:
    assert len(ROWS) > 130
    documented = [name for name in ROWS if len(catalog.find_record_texts("vllm_ascend", name)["source"]) > 1]
    assert len(documented) == 85
    assert [*ROWS][: len(documented)] == documented
    for name, row in ROWS.items():
        readers = find_releases_read(row.since, row.until, "vllm_ascend")
        assert readers, name
        assert (row.since or row.until) in ("", readers[0], readers[-1]), name
        assert not row.replaced_by or any(f"{known}.".startswith(f"{row.replaced_by}.") for known in ROWS), name
        assert {*row.requires, *row.conflicts} <= set(ROWS), name
        assert all(catalog.find_variable(key.removeprefix("env.")) for key in row.counterparts), name


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[vllm_ascend]\nenable_mlpo = true", ("NP212", "'enable_mlapo'", "0.27.1rc1 and newer stop")),
        ("[vllm_ascend]\neplb_config.dynamic = true", ("NP212", "", "vLLM-Ascend stops at an unknown key of eplb_config.")),
        ("[vllm_ascend]\nnum_redundant_experts = 1", ("NP212", "'eplb_config.num_redundant_experts'", "")),
        ("[vllm]\nadditional-config = '{}'", ("NP212", "[vllm_ascend]", "")),
        ("[vllm]\nadditional_config.refresh = true", ("NP212", "[vllm_ascend]", "")),
        ("[vllm]\nport = inf", ("NP202", "as text", "")),
        ("[vllm_ascend]\nweight_nz_mode = 3", ("NP203", "", "")),
        ("[vllm_ascend]\ndynamic_eplb = true", ("NP501", "eplb_config.dynamic_eplb", "until 0.13.0")),
        ('[profile]\nversions.vllm_ascend = ">=0.23"\n[vllm_ascend]\ndynamic_eplb = true', ("NP404", "", "until 0.13.0")),
        ('[profile]\nversions.vllm_ascend = "0.11.0"\n[vllm_ascend]\nrl_config.enabled = true', ("NP404", "", "since 0.27.1rc1")),
    ],
)
def test_a_key_of_another_place_or_release_is_a_finding_that_says_what_to_write(text: str, wanted: tuple[str, str, str]) -> None:
    (finding,) = npuprof.check(config(text))
    assert finding.code == wanted[0]
    assert wanted[1] in finding.hint
    assert wanted[2] in finding.why


def test_the_folder_is_written_checked_and_printed(tmp_path: Path, run: Run) -> None:
    (tmp_path / "serving.toml").write_text(SERVING)
    words = ("render", tmp_path / "serving.toml", "--to", "vllm")
    assert run(*words, "-o", tmp_path / "out").code == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["config.yaml", "env.sh"]
    files = {name: (tmp_path / "out" / name).read_text() for name in ("config.yaml", "env.sh")}
    assert run(*words).out == "".join(f"# {name}\n{text}" for name, text in files.items())
    preset = config(SERVING)
    bodies = npuprof.render(preset, "vllm", inline=True)
    for name, text in npuprof.render(preset, "vllm").items():
        assert text.startswith("# Generated by npuprof")
        assert f"# digest: sha256:{preset.digest} " in text
        assert text.endswith(f"\n{bodies[name]}")
    exports = run("env", tmp_path / "serving.toml", "--shell", "bash").out.splitlines()
    assert [line for line in files["env.sh"].splitlines() if not line.startswith("#")] == exports
    assert run(*words, "--check", tmp_path / "out").code == 0
    for name in files:
        (tmp_path / "out" / name).write_text(files[name] + "# mine\n")
        assert run(*words, "--check", tmp_path / "out").code == 1
        assert run(*words, "-o", tmp_path / "out").code == 2
        (tmp_path / "out" / name).write_text(files[name])
    assert run(*words, "--set", "vllm.port=8001", "--check", tmp_path / "out").code == 1


def test_a_section_of_another_target_is_named_and_an_error_if_strict(tmp_path: Path, run: Run) -> None:
    (tmp_path / "mixed.toml").write_text(SERVING + "[options]\nhccl_timeout = 600\n[torch_npu]\njit_compile = false\n")
    words = ("render", tmp_path / "mixed.toml", "--to", "vllm")
    assert "[torch_npu] (jit_compile)" in run(*words).err
    assert "HCCL_TIMEOUT" not in run(*words).out
    strict = run(*words, "--strict")
    assert (strict.code, strict.out) == (2, "")
    assert "NP917" in strict.err
    assert "render --to vllm" in run("render", tmp_path / "mixed.toml", "--strict").err


plain = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | texts
nested = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6)
argument_names = texts.filter(lambda name: name.replace("_", "-") != "additional-config")


@given(st.dictionaries(argument_names, nested, max_size=5))
def test_pyyaml_reads_back_exactly_the_arguments(arguments: dict[str, Any]) -> None:
    document = yaml.safe_load(npuprof.render(config(toml({"vllm": arguments})), "vllm", check=False)["config.yaml"])
    named = {name.replace("_", "-") if value is False else name: value for name, value in arguments.items()}
    assert set(document) == set(named)
    for name, value in named.items():
        pairs = zip(document[name], value, strict=True) if isinstance(value, list) else [(document[name], value)]
        for read, written in pairs:  # a table is JSON text, which vLLM makes of tables itself
            got = json.loads(read) if isinstance(written, (dict, list)) and written else read
            assert repr(got) == repr(written)


def test_without_a_setting_the_file_is_an_empty_table() -> None:
    assert yaml.safe_load(npuprof.render(config(""), "vllm")["config.yaml"]) == {}


def test_a_value_that_no_yaml_can_express_is_an_error_that_names_it() -> None:
    with pytest.raises(npuprof.NpuprofError, match=r"vllm\.since"):
        npuprof.render(config("[vllm]\nsince = 1979-05-27"), "vllm", check=False)


# -- vLLM-Ascend itself --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return request.param, fetch_release(request.param, tmp_path_factory.mktemp("wheels"))


def find_read(name: str) -> list[str]:
    row = ROWS[name]
    return list(find_releases_read(row.since, row.until, "vllm_ascend"))


def test_a_release_asks_for_the_keys_that_the_table_has_for_it(release: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    number, folder = release
    asked = {"refresh": True, "enable_sparse_li_c8": True, "enable_sparse_c8": True}  # what others are read behind
    _, read = read_additional_config(folder, asked, monkeypatch, model_uses_sfa_sparse=True)
    assert read == {name.partition(".")[0] for name in ROWS if number in find_read(name)} - ABSENT.get(number, set())


@pytest.mark.parametrize("number", STRICT_RELEASES)
def test_a_release_that_stops_at_unknown_keys_takes_those_that_the_table_has_for_it(number: str) -> None:
    fields, taken = list_accepted_keys(fetch_config_source(number))
    rows = {name for name in ROWS if number in find_read(name)}
    assert len(fields) > 50
    assert {name.partition(".")[0] for name in rows} <= {name.partition(".")[0] for name in fields} | taken
    unlisted = {name for name in fields - rows if not any(row.startswith(f"{name}.") or name.startswith(f"{row}.") for row in rows)}
    assert not unlisted


def test_a_release_makes_of_the_rendered_keys_what_the_preset_says(
    release: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    number, folder = release
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DYNAMIC_EPLB", "true")
    (tmp_path / "map.json").write_text("{}")
    tried = 0
    for name in (name for name in ROWS if number in find_read(name) and name not in OPEN | ABSENT.get(number, set())):
        value = sample(ROWS[name])
        needed = NEEDED if "tensor_parallel" in name else dict.fromkeys(ROWS[name].requires, True) if "." not in name else {}
        asked = additional(config(toml({"vllm_ascend": {**needed, **nest(name, value)}})))
        said = {"enable_sp": True, "model_uses_sfa_sparse": "sparse" in name or "c8" in name}
        degree = 1 if "tensor_parallel" in name else 2
        said |= {"parallel_config__tensor_parallel_size": degree, "parallel_config__pipeline_parallel_size": 1 + ("chunk" in name)}
        made, _ = read_additional_config(folder, asked, monkeypatch, **said)
        home = name if hasattr(made, name.partition(".")[0]) else ROWS[name].replaced_by
        got = reduce(getattr, home.split("."), made)
        assert got == value or ROWS[name].kind == "json", name
        tried += 1
    assert tried > {"0.11.0": 15, "0.23.0": 50, "0.26.0rc1": 60}[number]


def test_the_variables_of_env_sh_are_read_by_the_real_envs(
    release: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "env.sh").write_text(npuprof.render(config(SERVING), "vllm")["env.sh"])
    script = f'. "{tmp_path}/env.sh"; printf "%s" "$VLLM_ASCEND_ENABLE_NZ"'
    text = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
    monkeypatch.setenv("VLLM_ASCEND_ENABLE_NZ", text)
    assert int(load_module("envs", release[1] / "envs.py").VLLM_ASCEND_ENABLE_NZ) == 2
