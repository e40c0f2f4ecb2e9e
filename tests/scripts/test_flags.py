"""Single flags and pairs of an ``atc`` command line, as the records of the catalogue say: what ATC takes is clean, all else is told."""

from __future__ import annotations

import pytest

from npuprof import catalog, checks
from npuprof.catalog import Flag
from npuprof.catalog.readers import is_taken
from npuprof.scripts.atc_flags import ignores_empty
from npuprof.scripts.preset import build_drafts
from support.building import config, toml
from support.importing import findings, imported

CHIPS = {
    "ascend-950": "Ascend950PR_9599", "atlas-a3": "Ascend910_9391", "atlas-a2": "Ascend910B1", "atlas-training": "Ascend910A",
    "atlas-inference": "Ascend310P3", "atlas-200i-500-a2": "Ascend310B1", "ipv350": "Ascend035A",
}  # fmt: skip
FLAGS = [flag for name in catalog.record_names("atc") if (flag := catalog.find_flag(name)) and not flag.required and name != "mode"]
#: What stands beside a flag so that nothing else is wrong with it.
BESIDE = {
    "modify_mixlist": "--precision_mode_v2=mixed_float16", "optypelist_for_implmode": "--op_select_implmode=high_precision",
    "dynamic_batch_size": "--input_shape='a:-1,2'", "dynamic_image_size": "--input_shape='a:1,3,-1,-1'",
    "dynamic_dims": "--input_shape='a:-1' --input_format=ND", "deterministic_level": "--deterministic=1",
    "is_input_adjust_hw_layout": "--input_fp16_nodes=a", "is_output_adjust_hw_layout": "--out_nodes=a:0",
    "host_env_os": "--host_env_cpu=arm64", "host_env_cpu": "--host_env_os=linux",
    "raw_ge_options_ignore_unsupported": "--raw_ge_options=a.json",
    "debug_dir": "--op_debug_level=3", "keep_dtype": "--precision_mode_v2=fp16",
}  # fmt: skip
SAMPLES = {
    "input_shape": "'a:1,2'", "dynamic_batch_size": "1,2", "dynamic_image_size": "'1,2;3,4'", "dynamic_dims": "'1;2'",
    "output_type": "FP16", "is_input_adjust_hw_layout": "true", "is_output_adjust_hw_layout": "true", "multi_stream_parallel_mode": "cv",
    "static_model_ops_lower_limit": "-1", "h2d_overlapped_with_compute": "1", "aicore_num": "8", "optimization_switch": "'A:on'",
}  # fmt: skip


def told(words: str, chip: str) -> set[str]:
    line = f"atc --model=a --framework={0 if 'map' in words or 'weight=' in words else 3} --output=o --soc_version={chip} {words}\n"
    found = {finding.code for finding in findings(line, "x.sh") if finding.severity != "info"}
    return found - {"NP501", "NP502"}


def works_on(flag: Flag) -> str:
    """Return the chip of a family that supports a flag, empty where there is none."""
    fits = [family for family in CHIPS if (not flag.products or family in flag.products) and family not in flag.products_not]
    return CHIPS["atlas-inference" if "atlas-inference" in fits else fits[0]] if fits else ""


def texts(flag: Flag) -> list[str]:
    found = [str(choice) for choice in flag.choices] or (["true", "false"] if flag.kind == "bool" else [])
    return found or [SAMPLES.get(flag.name, "./a" if flag.kind == "path" else "a")]


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if works_on(flag) or flag.choices], ids=lambda flag: flag.name)
def test_what_a_flag_takes_is_clean_and_a_word_that_it_does_not_take_is_told(flag: Flag) -> None:
    chip, beside, judged = works_on(flag), BESIDE.get(flag.name, ""), 0
    for text in texts(flag) if chip else ():
        on = next((CHIPS[family] for family in flag.value_products.get(text, ()) if family in CHIPS), chip)
        alone = text in flag.value_conflicts or text in flag.requires_unless
        doubts = {"NP205"} if text in flag.doubtful_values else set()
        assert told(f"--{flag.name}={text} {'' if alone else beside}", on) == doubts, text
        judged += 1
    if flag.choices or flag.kind in ("bool", "int") or flag.pattern:
        for text in ("xx", "TRUE", "7,", *(() if ignores_empty(flag) else ("''",))):
            if not is_taken(flag, text.strip("'")):
                assert told(f"--{flag.name}={text} {beside}", chip or "$CHIP") & {"NP202", "NP203"}, text
                judged += 1
    assert judged


def list_barred(flag: Flag) -> list[str]:
    """Return the families that do not support a flag."""
    return [family for family in CHIPS if (bool(flag.products) and family not in flag.products) or family in flag.products_not]


@pytest.mark.parametrize("flag", list(filter(list_barred, FLAGS)), ids=lambda flag: flag.name)
def test_a_flag_is_told_on_each_chip_that_does_not_support_it(flag: Flag) -> None:
    for family in list_barred(flag):
        assert "NP409" in told(f"--{flag.name}={texts(flag)[-1]} {BESIDE.get(flag.name, '')}", CHIPS[family]), family


PAIRS = [(one, other) for one in FLAGS for other in one.conflicts]


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda part: getattr(part, "name", part))
def test_flags_that_exclude_each_other_are_told(one: Flag, other: str) -> None:
    name, _, value = other.removeprefix("--").partition("=")
    there = catalog.find_flag(name)
    assert there is not None
    assert told(f"--{one.name}={texts(one)[0]} --{name}={value or texts(there)[0]}", "$CHIP") & {"NP912", "NP301"}


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if flag.requires], ids=lambda flag: flag.name)
def test_a_flag_without_what_it_requires_is_told(flag: Flag) -> None:
    bad = {"insert_op_conf": "--input_format=ND", "mdl_bank_path": "--buffer_optimize=off_optimize"}.get(flag.name, "")
    text = {"output_type": "a:0:FP16"}.get(flag.name, texts(flag)[-1])
    line = f"atc --model=a --framework=3 --soc_version=$CHIP --{flag.name}={text} {bad}\n"
    assert "NP912" in {finding.code for finding in findings(line, "x.sh") if finding.severity != "info"}


#: What stands together: one flag judged by what another one, or the chip, says.
TOGETHER = [
    ("Ascend910B1", {"output_type": "a:0:FP16", "out_nodes": "a:0"}, ""), ("Ascend910B1", {"output_type": "a:0:FP16"}, "NP912"),
    ("Ascend910B1", {"deterministic_level": "0", "deterministic": "1"}, "NP912"), ("Ascend310B1", {"input_shape": "a:1~10,3"}, "NP409"),
    ("Ascend910B1", {"is_input_adjust_hw_layout": "true,false", "input_fp16_nodes": "a;b"}, ""),
    ("Ascend910B1", {"is_output_adjust_hw_layout": "true", "out_nodes": "a:0;b:0"}, "NP912"),
    ("Ascend910B1", {"dynamic_batch_size": "1,2", "input_shape": "a:-1,3;b:4"}, ""),
    ("Ascend910B1", {"dynamic_image_size": "1,2;3,4", "input_shape": "a:1,3,2,2", "input_format": "NCHW"}, "NP382"),
    ("Ascend910B1", {"framework": 5, "input_format": "NCDHW"}, ""), ("Ascend910B1", {"optimization_switch": "A:on;B:off"}, ""),
    ("Ascend910B1", {"optimization_switch": "A=on"}, "NP205"),
]  # fmt: skip


@pytest.mark.parametrize(("chip", "given", "code"), TOGETHER)
def test_flags_are_judged_by_those_beside_them_in_a_line_and_in_a_preset(chip: str, given: dict[str, str | int], code: str) -> None:
    flags = {"framework": 3, "soc_version": chip, **given}
    line = " ".join(f"--{name}='{value}'" for name, value in flags.items())
    scanned = {finding.code for finding in findings(f"atc --model=a --output=o {line}\n", "x.sh") if finding.severity != "info"}
    assert scanned == ({code} if code else set())
    own = {name: value for name, value in flags.items() if catalog.find_option(name) is None}
    options = {name: int(value) if name == "deterministic" else value for name, value in flags.items() if name not in own}
    document = toml({"profile": {"scenario": "offline-inference"}, "options": options, "atc": own})
    assert {finding.code for finding in checks.check_config(config(document), notes=False)} == scanned


@pytest.mark.parametrize(
    "words",
    [ "--mode=6 --om=a.om", "--help",
        "--model=a.onnx --framework=5 --output=a --soc_version=Ascend310P3 --input_hint_shape='0:[1,3,224,224]'",
        "--model=a.pb --framework=3 --output=a --soc_version=Ascend310P3 --enable_compress_weight=true",
    ],
)  # fmt: skip
def test_a_flag_that_is_no_matter_of_a_conversion_is_known_as_well(words: str) -> None:
    assert [finding.code for finding in findings(f"atc {words}\n", "x.sh") if finding.severity != "info"] == []


@pytest.mark.parametrize("words", ["--mode=1 --om=a.om --jsn=a.json", "--singleops=./ops.json", "--enable_compress_weight=1"])
def test_such_a_flag_is_judged_like_any_other(words: str) -> None:
    assert {finding.code for finding in findings(f"atc {words}\n", "x.sh")} & {"NP203", "NP209"}


#: In api/atc/atc_flags.cc of hicann/ge the default of these is the empty text; cmd_flag_info.cc compares ``STOPPING`` with a table.
EMPTY = ("output_type", "input_shape", "host_env_os")
STOPPING = ("precision_mode", "op_select_implmode", "framework")


@pytest.mark.parametrize("line", ["--{}=", '--{} ""', "--{}=''"])
@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_flag_is_one_that_is_not_given(name: str, line: str) -> None:
    text = f"atc --model=a.pb --framework=3 --output=o --soc_version=Ascend310P3 {line.format(name)}\n"
    (found,) = findings(text, "x.sh")
    assert (found.code, found.severity) == ("NP502", "warning")
    assert found.message == f"--{name} is empty, which atc takes as not given"
    (draft,) = build_drafts(imported(text, "x.sh"))
    assert [note.why for note in draft.notes] == ["empty, which atc takes as not given"]


@pytest.mark.parametrize("name", STOPPING)
def test_atc_stops_at_an_empty_flag_that_it_compares_with_a_table(name: str) -> None:
    found = findings(f"atc --model=a.pb --output=o --soc_version=Ascend310P3 --{name}=\n", "x.sh")
    assert [one.code for one in found if one.code in ("NP202", "NP203")]
    assert not [one for one in found if one.code == "NP502"]
