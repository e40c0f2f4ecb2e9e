"""Arguments of vLLM in presets: what its parser and its classes accept per release, is clean."""

import json
from collections import Counter
from pathlib import Path

import pytest

import npuprof
from npuprof.checks.frameworks import find_framework_faults
from npuprof.checks.scope import find_scope_faults
from npuprof.checks.view import Scope
from support.building import build_store
from support.vllm_values import RECORDS, list_rows, list_values

RELEASES = sorted(path.stem for path in RECORDS.glob("*.json"))


def find_errors(path, value, release):
    """Return the errors of an argument, or of a field in its JSON, at a release."""
    name, *inside = path
    for part in reversed(inside):
        value = {part: value}
    there = Scope(None, (), (), versions=(("vllm", (release,)),))
    faults = [
        *find_framework_faults("vllm", name, value),
        *find_scope_faults(there, f"vllm.{name}", value),
    ]
    return [fault for fault in faults if fault.severity == "error"]


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_accepts_is_clean_and_what_it_refuses_an_error(release: str) -> None:
    record = json.loads((RECORDS / f"{release}.json").read_text("utf-8"))
    counts = Counter[object]()
    wrong = []
    for path, row in list_rows(record):
        if path == ("additional-config",):
            continue
        for value, is_accepted in list_values(path, row):
            errors = find_errors(path, value, release)
            counts[is_accepted] += 1
            if is_accepted and errors:
                wrong.append(f"{'.'.join(path)} = {value!r}: {errors[0].message}")
            elif not is_accepted and not errors:
                counts["missed"] += 1
    assert not wrong, "\n".join(wrong)
    assert counts[True] > 800
    # bounds that an older release lacks are not judged
    assert counts[False] - counts["missed"] > 0.97 * counts[False] > 500


@pytest.mark.parametrize(
    ("line", "code", "hint"),
    [
        pytest.param("prot = 8000", "NP212", "did you mean 'port'?", id="unknown"),
        pytest.param("max_modl_len = 8", "NP212", "max-model-len", id="unknown, not dashed"),
        pytest.param("tp = 2", "NP212", "write tensor-parallel-size", id="short name"),
        pytest.param("enable-shared-expert-dp = true", "NP212", "[vllm_ascend]", id="elsewhere"),
        pytest.param('max-model-len = "32q"', "NP202", "a whole number", id="size"),
        pytest.param("gpu-memory-utilization = 92", "NP203", "at most 1", id="range"),
        pytest.param(
            'speculative-config.num_speculative_tokens = "three"', "NP202", "", id="field"
        ),
        pytest.param(
            '"speculative-config.num_speculative_tokens" = "three"', "NP202", "", id="dotted"
        ),
        pytest.param(
            """speculative-config = '{"methd": "ngram"}'""", "NP212", "method", id="JSON text"
        ),
        pytest.param("kv-cache-dtype = 'nvfp4_ds_mla'", "NP404", "", id="choice of later releases"),
    ],
)
def test_a_fault_of_an_argument_is_an_error_unless_the_release_is_unknown(
    line: str, code: str, hint: str
) -> None:
    preset = f"[vllm]\n{line}\n"
    (found,) = npuprof.check(npuprof.loads(preset, versions={"vllm_ascend": "0.23.0rc1"}))
    assert (found.code, found.severity) == (code, "error")
    assert hint in found.hint
    for framework in ({"vllm_ascend": "0.11.0"}, {"vllm": "0.60.0"}, {"vllm_ascend": "0.60.0"}):
        others = npuprof.check(npuprof.loads(preset, versions=framework))
        assert code == "NP213" or not [each for each in others if each.severity == "error"]


@pytest.mark.parametrize(
    "line",
    [
        'max-model-len = "32k"',
        'max-model-len = "auto"',
        'port = "8000"',
        'quantization = "None"',
        'compilation-config = { cudagraph_mode = "full_decode_only" }',
        """kv-transfer-config = '{"kv_role": "kv_both", "kv_port": "20001"}'""",
        'attention-config.backend = "FLASH_ATTN"',
        'served-model-name = "name"',
        'middleware = "a.b"',
        'hf-overrides = { any = "key" }',
    ],
)
def test_what_vllm_converts_is_clean(line: str) -> None:
    framework = {"vllm": "0.23.0"}
    found = npuprof.check(npuprof.loads(f"[vllm]\n{line}\n", versions=framework))
    assert [each for each in found if each.severity == "error"] == []


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("no-enable-prefix-caching = true", "write enable-prefix-caching with the opposite value"),
        ("device-memory-utilization = 0.9", "write gpu-memory-utilization"),
    ],
)
def test_an_argument_has_one_name_in_presets(line: str, hint: str) -> None:
    """A child's value under another name would not replace its parent's."""
    found = npuprof.check(npuprof.loads(f"[vllm]\n{line}\n", versions={"vllm": "0.33.0"}))
    assert [(each.code, each.hint) for each in found if each.severity == "error"] == [
        ("NP215", hint)
    ]


def test_an_unknown_name_with_underscores_is_one_fault() -> None:
    found = npuprof.check(
        npuprof.loads("[vllm]\nmax_model_lenn = 1\n", versions={"vllm": "0.23.0"})
    )
    assert [each.code for each in found if each.severity == "error"] == ["NP212"]


def test_an_argument_that_the_newest_vllm_stops_at_is_not_called_without_effect() -> None:
    (found,) = npuprof.check(npuprof.loads("[vllm]\nswap-space = 4\n"))
    assert (found.code, found.severity) == ("NP502", "warning")
    assert "is unknown to vllm" in found.message
    assert "stops at" in found.why


def test_a_negation_that_contradicts_a_parent_is_refused(tmp_path: Path) -> None:
    child = "profile.extends = ['base']\nvllm.no-enable-prefix-caching = true\n"
    texts = {"base": "vllm.enable-prefix-caching = true\n", "child": child}
    config = npuprof.open_store(build_store(tmp_path, texts)).resolve("child")
    found = [each.code for each in npuprof.check(config) if each.severity == "error"]
    assert found == ["NP215"]
    with pytest.raises(npuprof.NpuprofError):
        npuprof.render(config, "vllm")


def test_a_value_that_vllm_ascend_overrides_is_a_warning_that_names_the_winner() -> None:
    (found,) = npuprof.check(npuprof.loads("[vllm]\ndisable-cascade-attn = true\n"))
    assert (found.code, found.severity) == ("NP502", "warning")
    assert found.why == "vLLM-Ascend sets it to false."
    assert npuprof.check(npuprof.loads("[vllm]\ndisable-cascade-attn = false\n")) == []
