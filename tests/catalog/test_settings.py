"""Settings of frameworks: each row as a preset, its rendered code, and faults of values."""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import npuprof
from npuprof import catalog
from npuprof.catalog import releases
from npuprof.catalog.preset_schema import build_profile_schema
from npuprof.checks.setting_values import find_setting_faults
from npuprof.document.keys import format_toml_value, parse_key
from npuprof.model import FRAMEWORK_SECTIONS
from support.running import Run

VALIDATOR = pytest.importorskip("jsonschema").Draft7Validator(build_profile_schema())

ROWS = {
    name: record
    for name in catalog.record_names("torch_npu")
    if (record := catalog.find_setting("torch_npu", name))
}
ALL = [(section, name) for section in FRAMEWORK_SECTIONS for name in catalog.record_names(section)]
ENUM = "torch.npu.matmul.cube_math_type = torch.npu.CubeMathType.KEEP_DTYPE"
#: A value of each option of ``set_option``.
SET_OPTION = {
    name: row.choices[-1]
    if row.choices
    else {"int": 24, "path": "/tmp/x"}.get(row.kind, "Pooling,SoftmaxV2")
    for name, row in ROWS.items()
    if not row.call
}
#: A value of each setting of torch_npu, and the line that sets it.
LINES: dict[str, tuple[Any, str]] = {
    "jit_compile": (False, "torch.npu.set_compile_mode(jit_compile=False)"),
    "allow_internal_format": (False, "torch.npu.config.allow_internal_format = False"),
    "matmul.allow_hf32": (True, "torch.npu.matmul.allow_hf32 = True"),
    "matmul.cube_math_type": ("KEEP_DTYPE", ENUM),
    "conv.allow_hf32": (False, "torch.npu.conv.allow_hf32 = False"),
    "aclnn.allow_hf32": (False, "torch.npu.aclnn.allow_hf32 = False"),
    "use_deterministic_algorithms": (True, "torch.use_deterministic_algorithms(True)"),
    "set_deterministic_level": (2, "torch.npu.set_deterministic_level(2)"),
    "use_compatible_impl": (True, "torch.npu.use_compatible_impl(True)"),
    "set_mm_bmm_format_nd": (True, "torch.npu.set_mm_bmm_format_nd(True)"),
    "set_sync_debug_mode": ("warn", 'torch.npu.set_sync_debug_mode("warn")'),
    **{
        name: (value, f'torch.npu.set_option({{"{name}": {json.dumps(value)}}})')
        for name, value in SET_OPTION.items()
    },
    "set_aoe": ("/tmp/aoe", 'torch.npu.set_aoe("/tmp/aoe")'),
    "set_op_timeout_ms": (1000, "torch.npu.set_op_timeout_ms(1000)"),
    "set_per_process_memory_fraction": (1, "torch.npu.set_per_process_memory_fraction(1.0)"),
    "set_device_limit.cube_num": (
        12,
        "torch.npu.set_device_limit(torch.npu.current_device(), cube_num=12)",
    ),
    "set_device_limit.vector_num": (
        24,
        "torch.npu.set_device_limit(torch.npu.current_device(), vector_num=24)",
    ),
}


def load(*lines: str) -> npuprof.Config:
    return npuprof.loads("\n".join(lines) + "\n")


def list_codes(*lines: str) -> list[str]:
    return [finding.code for finding in npuprof.check(load(*lines)) if finding.severity != "info"]


def render(*lines: str) -> list[str]:
    """Return the lines of the rendered function, behind its docstring."""
    text = npuprof.render(load(*lines), "torch-npu")
    ast.parse(text, feature_version=(3, 7))
    return [line.removeprefix("    ") for line in text.partition('NPU."""\n')[2].splitlines()]


def test_there_are_lines_for_every_setting_of_torch_npu() -> None:
    assert LINES.keys() == ROWS.keys()
    assert len(ROWS) >= 40


@pytest.mark.parametrize("name", LINES)
def test_each_setting_of_torch_npu_is_clean_and_rendered_as_its_call(name: str) -> None:
    value, line = LINES[name]
    lines = "[torch_npu]", f"{name} = {format_toml_value(value)}"
    findings = npuprof.check(load(*lines))
    # without a release, what later ones read or remove is a note
    severities = {finding.code: finding.severity for finding in findings}
    assert severities.keys() <= {"NP501", "NP214", "NP502"}
    assert severities.get("NP501", "info") == "info"
    assert severities.get("NP502", "info") == "info"
    newest = releases.load_releases("torch_npu")[-1]
    named = f'profile.versions.torch_npu = "{newest}"'
    assert ("NP501" in list_codes(named, *lines)) is ROWS[name].deprecated.endswith("Y")
    assert render(*lines) == [line]


def test_settings_of_one_call_are_set_together_and_in_the_order_of_the_catalogue() -> None:
    lines = [f"{name} = {format_toml_value(LINES[name][0])}" for name in reversed(LINES)]
    rendered = render("[torch_npu]", *lines)
    calls = ast.parse("\n".join(rendered)).body
    assert len(calls) == len(
        [name for name in ROWS if ROWS[name].call]
    )  # one set_option, and one set_device_limit for two settings
    assert (
        rendered[-1]
        == "torch.npu.set_device_limit(torch.npu.current_device(), cube_num=12, vector_num=24)"
    )
    assert sum("set_option" in line for line in rendered) == 1
    options = [name for name in ROWS if not ROWS[name].call]
    assert [line.split('"')[1] for line in rendered if line.startswith('        "')] == options


@pytest.mark.parametrize(("section", "name"), ALL)
def test_each_setting_names_releases_settings_and_variables_that_there_are(
    section: str, name: str
) -> None:
    record = catalog.find_setting(section, name)
    assert record is not None
    known = releases.load_releases(releases.find_axis(section, record))
    for letters in filter(None, (record.states, record.deprecated, record.no_effect)):
        assert len(letters) == len(known)
        assert set(letters) <= set("Y.?")
    assert len(record.successor_states) in (0, len(known))
    assert set(record.choices_since.values()) <= set(known)
    named = {*record.counterparts, *filter(None, [record.replaced_by])}
    for other in (*named, *record.conflicts, *record.requires):
        key = other if other in named or other.startswith("env.") else f"{section}.{other}"
        tables = (f"{section}.{row.rpartition('.')[0]}" for row in catalog.record_names(section))
        if other in named and (key in tables or " " in other):
            continue  # a table, or settings of another program, which have no key here
        assert (
            catalog.find_record(*catalog.find_record_place(*(parse_key(key) or (key, ()))))
            is not None
        ), key
    texts = catalog.find_record_texts(section, name)
    assert texts["summary"].endswith(".")
    assert texts["source"]
    assert record.risk


@pytest.mark.parametrize("name", ROWS)
def test_a_conflict_of_torch_npu_is_named_by_both_settings(name: str) -> None:
    assert all(name in ROWS[other].conflicts for other in ROWS[name].conflicts)


#: Values of another type, or that the framework reads differently: what the framework would do, and
#: what to write.
WRONG = [
    ('jit_compile = "False"', "switches it on", "write jit_compile = false"),
    ("allow_internal_format = 0", "switches it on", "write allow_internal_format = false"),
    ("matmul.allow_hf32 = 1", "TypeError", "write matmul.allow_hf32 = true"),
    ('matmul.cube_math_type = "FORCE_GRP_ACC_FOR_FP32"', "no other members", "USE_FP32_ADD"),
    ("matmul.cube_math_type = 4", "no other members", "write one of"),
    ('set_sync_debug_mode = "warning"', "RuntimeError", 'did you mean "warn"?'),
    ('ACL_PRECISION_MODE = "force_fp16"', "ValueError", "write one of"),
    ('ACL_OP_SELECT_IMPL_MODE = "high_precision_for_all"', "deprecated", "unset it"),
    ('ACL_AICORE_NUM = "24|48"', "ValueError", "write a whole number"),
    ("ALLOW_MATMUL_HF32 = true", "counts as disable", 'write ALLOW_MATMUL_HF32 = "enable"'),
    ("bmmv2_enable = true", "counts as 0", "write bmmv2_enable = 1"),
    ('set_op_timeout_ms = "1s"', "raises an error", "write set_op_timeout_ms = 1000"),
    ("set_per_process_memory_fraction = 1.5", "raises an error", "write 0 to 1"),
    ('set_aoe = "$HOME/aoe"', "as it is", "write the path out"),
    ("set_device_limit.cube_num = 0", "", "write at least 1"),
]


@pytest.mark.parametrize(("line", "why", "hint"), WRONG)
def test_a_wrong_value_is_an_error_that_names_its_effect_and_what_to_write(
    line: str, why: str, hint: str
) -> None:
    (finding,) = [
        finding
        for finding in npuprof.check(load("[torch_npu]", line))
        if finding.code in ("NP202", "NP203", "NP211")
    ]
    assert finding.severity == "error"
    assert why in (finding.why or "")
    assert hint in (finding.hint or "")


@pytest.mark.parametrize(
    ("section", "line", "hint"),
    [
        (
            "torch_npu",
            "allow_hf32 = true",
            "did you mean 'matmul.allow_hf32' or 'conv.allow_hf32' or 'aclnn.allow_hf32'?",
        ),
        (
            "torch_npu",
            "config.allow_internal_format = true",
            "did you mean 'allow_internal_format'?",
        ),
        ("torch_npu", "jit_compil = true", "did you mean 'jit_compile'"),
        (
            "torch_npu",
            'precision_mode = "force_fp16"',
            "precision_mode belongs below [options]; on a command line it is precision_mode",
        ),
        (
            "torch_npu",
            "TASK_QUEUE_ENABLE = 2",
            "TASK_QUEUE_ENABLE belongs below [env]; on a command line it is env.TASK_QUEUE_ENABLE",
        ),
        (
            "options",
            "allow_internal_format = true",
            "belongs below [torch_npu]; on a command line it is torch_npu.allow_internal_format",
        ),
        (
            "env",
            'ACL_PRECISION_MODE = "allow_fp32_to_fp16"',
            "on a command line it is torch_npu.ACL_PRECISION_MODE",
        ),
    ],
)
def test_a_key_in_the_section_of_another_framework_is_named_with_its_own_section(
    section: str, line: str, hint: str
) -> None:
    finding = next(
        finding
        for finding in npuprof.check(load(f"[{section}]", line))
        if finding.code in ("NP201", "NP206", "NP212")
    )
    assert hint in (finding.hint or "")


#: Settings and counterparts: those that agree, and those that contradict each other with what to
#: write.
PAIRS = [
    ("jit_compile = false", 'options.jit_compile = "auto"', ""),
    ("jit_compile = false", 'options.jit_compile = "true"', 'write jit_compile = "false", or'),
    ("use_deterministic_algorithms = true", "options.deterministic = 1", ""),
    (
        "use_deterministic_algorithms = true",
        "options.deterministic = 0",
        "write deterministic = 1, or",
    ),
    ("ACL_AICORE_NUM = 24", 'options.aicore_num = "24|48"', ""),
    ("ACL_AICORE_NUM = 24", 'options.aicore_num = "20|40"', "unset one of the two"),
    ('ACL_PRECISION_MODE = "must_keep_origin_dtype"', 'options.precision_mode_v2 = "origin"', ""),
    (
        'ACL_PRECISION_MODE = "must_keep_origin_dtype"',
        'options.precision_mode_v2 = "fp16"',
        'write precision_mode_v2 = "origin", or',
    ),
    ("set_op_timeout_ms = 1000", "options.op_execute_timeout = 1", ""),
    ("set_op_timeout_ms = 1500", "options.op_execute_timeout = 1", "unset one of the two"),
    (
        "set_op_timeout_ms = 2000",
        "options.op_execute_timeout = 1",
        "write op_execute_timeout = 2, or",
    ),
    (
        'ACL_OPTYPELIST_FOR_IMPLMODE = "Pooling"',
        'options.optypelist_for_implmode = ["Pooling"]',
        "",
    ),
    ("use_compatible_impl = true", "env.TORCH_NPU_USE_COMPATIBLE_IMPL = 1", ""),
    (
        "use_compatible_impl = true",
        "env.TORCH_NPU_USE_COMPATIBLE_IMPL = 0",
        'write env.TORCH_NPU_USE_COMPATIBLE_IMPL = "1", or',
    ),
    ("matmul.allow_hf32 = true", 'torch_npu.ALLOW_MATMUL_HF32 = "enable"', "unset one of the two"),
]


@pytest.mark.parametrize(("line", "other", "hint"), PAIRS)
def test_a_setting_that_contradicts_its_counterpart_is_a_warning_with_what_to_write(
    line: str, other: str, hint: str
) -> None:
    findings = [
        finding
        for finding in npuprof.check(load(other, f"torch_npu.{line}"))
        if finding.code == "NP213"
    ]
    assert [finding.severity for finding in findings] == ["warning"] * bool(hint)
    assert all((finding.hint or "").startswith(hint) and finding.why for finding in findings)


def test_a_contradiction_in_an_override_names_where_it_holds() -> None:
    text = (
        '[torch_npu]\njit_compile = false\n[options]\njit_compile = "false"\n[[override]]\n'
        'match = { product = "atlas-a3" }\n'
    )
    for override in (
        'options.jit_compile = "true"',
        "torch_npu.jit_compile = true",
        'options.jit_compile = "true"\ntorch_npu.x = 1',
    ):
        (finding,) = [
            finding
            for finding in npuprof.check(npuprof.loads(f"{text}{override}\n"))
            if finding.code == "NP213"
        ]
        assert "atlas-a3" in finding.message
    both = f'{text}options.jit_compile = "true"\ntorch_npu.jit_compile = true\n'
    assert "NP213" not in [finding.code for finding in npuprof.check(npuprof.loads(both))]


def test_a_setting_that_needs_another_one_is_a_warning_without_it() -> None:
    assert "NP214" in list_codes("[torch_npu]", 'autotunegraphdumppath = "/tmp/aoe"')
    assert (
        list_codes("[torch_npu]", 'autotunegraphdumppath = "/tmp/aoe"', 'autotune = "enable"') == []
    )
    assert "NP214" not in list_codes(
        "[profile]", "abstract = true", "[torch_npu]", 'autotunegraphdumppath = "/tmp/aoe"'
    )


@pytest.mark.parametrize("name", [name for name in ROWS if "." in ROWS[name].states])
def test_a_setting_is_an_error_in_releases_before_it_and_clean_from_then_on(name: str) -> None:
    line = f"torch_npu.{name} = {format_toml_value(LINES[name][0])}"
    states, known = ROWS[name].states, releases.load_releases("torch_npu")
    first = states.index("Y")
    assert states[:first] == "." * first
    assert "." not in states[first:]
    before = f'profile.versions.torch_npu = ">={known[first - 1]}"'
    (finding,) = [
        finding for finding in npuprof.check(load(line, before)) if finding.code == "NP404"
    ]
    assert finding.severity == "error"
    assert f"It is read by torch_npu {known[first]} on; others fail at it" in finding.why
    successor = ROWS[name].replaced_by
    assert finding.hint == (
        f"use {successor}" if successor else "unset it there, or narrow torch_npu"
    )
    assert "NP404" not in list_codes(line, f'profile.versions.torch_npu = ">={known[first]}"')
    assert "NP404" not in list_codes(line)


def test_a_value_of_later_releases_is_an_error_before_them() -> None:
    line, range_ = "torch_npu.set_deterministic_level = 3", 'profile.versions.torch_npu = ">=7.3.1"'
    (finding,) = [
        finding for finding in npuprof.check(load(line, range_)) if finding.code == "NP404"
    ]
    assert (
        finding.message
        == "torch_npu.set_deterministic_level = 3 is not read in torch_npu 7.3.1 to 26.1.0"
    )
    assert list_codes("torch_npu.set_deterministic_level = 2", range_) == []


def test_code_never_contains_text_of_a_preset_as_code() -> None:
    for value in ("KEEP_DTYPE; import os", "KEEP_DTYPE\nimport os", "x"):
        config = load("[torch_npu]", f"matmul.cube_math_type = {format_toml_value(value)}")
        with pytest.raises(npuprof.NpuprofError, match="cube_math_type") as caught:
            npuprof.render(config, "torch-npu", check=False)
        assert caught.value.findings[0].position == (2, 8)
    hostile = '"}); import os; ({"'
    for name in ROWS:
        if ROWS[name].kind in ("str", "path") and not ROWS[name].call.endswith(".{}"):
            text = npuprof.render(
                load("[torch_npu]", f"{name} = {format_toml_value(hostile)}"),
                "torch-npu",
                check=False,
            )
            names = [
                node.names[0].name
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.Import)
            ]
            assert names == ["torch", "torch_npu"], name


def test_explain_names_meaning_counterpart_and_reader(run: Run) -> None:
    preset = Path("job.toml")
    preset.write_text(
        'options.jit_compile = "false"\n[torch_npu]\njit_compile = false\n'
        'matmul.cube_math_type = "KEEP_DTYPE"\n'
    )
    text = run("explain", "job.toml", "torch_npu.jit_compile").out
    assert '  counterpart  jit_compile = "false"\n' in text
    assert (
        "  read by      torch_npu, set by torch.npu.set_compile_mode(jit_compile=VALUE)\n" in text
    )
    text = run("explain", "job.toml", "torch_npu.matmul.cube_math_type").out
    assert "  meaning      Selects the arithmetic of matrix multiplications." in text
    assert "  read by      torch_npu 7.3.0 on, set by " in text
    fields = json.loads(run("explain", "job.toml", "torch_npu.jit_compile", "--format", "json").out)
    assert fields["default"] is False
    assert fields["counterparts"] == ["jit_compile"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("option", "torch_npu.jit_compil"), "torch_npu.jit_compile"),
        (("option", "torch_npu.matmul.allow_hf3"), "torch_npu.matmul.allow_hf32"),
        (("explain", "job.toml", "torch_npu.matmul.allow_hf3"), "matmul.allow_hf32"),
    ],
)
def test_a_misspelt_setting_is_answered_with_those_of_its_framework(
    arguments: tuple[str, ...], hint: str, run: Run
) -> None:
    Path("job.toml").write_text("[torch_npu]\njit_compile = false\n")
    assert f"did you mean {hint!r}" in run(*arguments).err


def test_check_counts_arguments_of_vllm_as_checked(run: Run) -> None:
    Path("job.toml").write_text(
        "[vllm]\nmax-model-len = 4096\nenforce-eager = true\n[torch_npu]\njit_compile = false\n"
    )
    assert "3 settings: 3 checked" in run("check", "job.toml").err
    coverage = json.loads(run("check", "job.toml", "--format", "json").out)["coverage"]
    assert coverage == {
        "settings": 3,
        "checked": 3,
        "dynamic": 0,
        "unknown": 0,
        "names": [],
    }


def test_fixes_mend_wrong_values_inside_tables(run: Run) -> None:
    path = Path("profiles/job.toml")
    path.parent.mkdir(exist_ok=True)
    path.write_text('[torch_npu]\njit_compile = "off"\nmatmul = { allow_hf32 = "True" }  # kept\n')
    run("check", "--fix")
    assert tomllib.loads(path.read_text()) == {
        "torch_npu": {"jit_compile": False, "matmul": {"allow_hf32": True}}
    }


@pytest.mark.parametrize("name", ROWS)
def test_the_schema_accepts_each_setting_and_no_other_type(name: str) -> None:
    head = name.partition(".")[0]
    assert list(VALIDATOR.iter_errors({"torch_npu": {head: nest(name, LINES[name][0])}})) == []
    assert list(VALIDATOR.iter_errors({"torch_npu": {head: nest(name, {"a": 1})}}))
    assert find_setting_faults(f"torch_npu.{head}", nest(name, LINES[name][0])) == []


def nest(name: str, value: Any) -> Any:
    for part in reversed(name.split(".")[1:]):
        value = {part: value}
    return value
