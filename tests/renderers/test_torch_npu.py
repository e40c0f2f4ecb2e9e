"""Rendered settings of torch_npu run against torch_npu's own Python files.

The same set by hand is imported to the same preset.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import npuprof
from npuprof import catalog
from npuprof.document.keys import format_toml_value
from npuprof.scripts.preset import build_drafts
from npuprof.scripts.reading import import_script
from npuprof.scripts.reading.variable_files import is_placeholder
from support.building import examples
from support.torch_parts import WHEEL, fetch_files, run_code

ROWS: dict[str, catalog.Setting] = {
    name: row
    for name in catalog.record_names("torch_npu")
    if (row := catalog.find_setting("torch_npu", name)) is not None
}
#: What the package ``torch_npu.npu`` has to have, by the code of the rows.
NAMES = {match[1] for row in ROWS.values() if (match := re.match(r"torch\.npu\.(\w+)", row.call))}
MEMBERS = ("KEEP_DTYPE", "ALLOW_FP32_DOWN_PRECISION", "USE_FP16", "USE_HF32", "USE_FP32_ADD")
SWITCH = {True: "enable", False: "disable"}
#: What the C extension, or torch, receives of each row that is no key of ``set_option``, by the
#: sources of torch_npu.
RECEIVED: dict[str, Any] = {
    "jit_compile": lambda value: {"jitCompile": SWITCH[value]},
    "allow_internal_format": lambda value: {"ALLOW_INTERNAL_FORMAT": SWITCH[value]},
    "matmul.allow_hf32": lambda value: {"ALLOW_MATMUL_HF32": SWITCH[value]},
    "conv.allow_hf32": lambda value: {"ALLOW_CONV_HF32": SWITCH[value]},
    "aclnn.allow_hf32": lambda value: {"ALLOW_CONV_HF32": SWITCH[value]},
    "matmul.cube_math_type": lambda value: {"CUBE_MATH_TYPE": str(MEMBERS.index(value))},
    "use_deterministic_algorithms": lambda value: {"use_deterministic_algorithms": value},
    "set_deterministic_level": lambda value: {
        "_npu_set_deterministic_level": (value,),
        **({"use_deterministic_algorithms": True} if value else {}),
    },
    "use_compatible_impl": lambda value: {"TORCH_NPU_USE_COMPATIBLE_IMPL": str(int(value))},
    "set_mm_bmm_format_nd": lambda value: {("MM_BMM_ND_ENABLE", "flag"): value},
    "set_sync_debug_mode": lambda value: {
        "_npu_set_sync_debug_mode": (("default", "warn", "error").index(value),)
    },
    "set_aoe": lambda value: {"autotune": "enable", "autotunegraphdumppath": value},
    "set_op_timeout_ms": lambda value: {"set_op_timeout_ms": value},
    "set_per_process_memory_fraction": lambda value: {"_npu_setMemoryFraction": (value, 3)},
    "set_device_limit.cube_num": lambda value: {("_npu_set_device_res_limit", 0): (3, value)},
    "set_device_limit.vector_num": lambda value: {("_npu_set_device_res_limit", 1): (3, value)},
}
HOSTILE = [
    "'",
    '"',
    "\\",
    "\n",
    "\r",
    "\t",
    "{}",
    "{0}",
    "#",
    '"""',
    "'''",
    "\\n",
    "${HOME}",
    "`id`",
    "é",
    "\u202e",
    "\x7f",
    "\u2028",
]
HOSTILE += ['"\n    import os  # ', "\\", "x" * 200]
TEXTS = st.lists(
    st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    min_size=1,
).map("".join)
#: An import leaves placeholders out.
TEXTS = TEXTS.filter(lambda text: not is_placeholder(text))
NUMBERS = {"int": st.integers, "float": st.floats}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the files of the wheel."""
    try:
        return fetch_files(tmp_path_factory.mktemp("torch_npu"))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{WHEEL} cannot be fetched: {error.stderr}")


def values(name: str) -> st.SearchStrategy[Any]:
    """Return the values that a row takes."""
    row = ROWS[name]
    if row.choices:
        return st.sampled_from(row.choices)
    if row.kind == "bool":
        return st.booleans()
    if row.kind in NUMBERS:
        return NUMBERS[row.kind](row.minimum, row.maximum if row.maximum is not None else 10**9)
    return TEXTS


@st.composite
def mixes(draw: st.DrawFn) -> dict[str, Any]:
    """Return settings that do not exclude each other, without ``set_aoe``, which makes a folder."""
    named = draw(
        st.lists(
            st.sampled_from([name for name in ROWS if name != "set_aoe"]),
            unique=True,
            min_size=1,
            max_size=12,
        )
    )
    kept: list[str] = []
    for name in named:
        if not any(
            name in ROWS[other].conflicts or other in ROWS[name].conflicts for other in kept
        ):
            kept.append(name)
    return {name: draw(values(name)) for name in kept}


def build_config(settings: dict[str, Any]) -> Any:
    return npuprof.loads(
        "".join(
            [
                "[torch_npu]\n",
                *(f"{name} = {format_toml_value(value)}\n" for name, value in settings.items()),
            ]
        )
    )


def expect_received(settings: dict[str, Any]) -> dict[Any, Any]:
    """Return what is received of a preset."""
    received: dict[Any, Any] = {
        ("MM_BMM_ND_ENABLE", "flag"): settings.get("MM_BMM_ND_ENABLE") != "disable"
    }
    for name, value in settings.items():
        received |= RECEIVED[name](value) if ROWS[name].call else {name: str(value)}
    return received


def write_by_hand(settings: dict[str, Any]) -> str:
    """Return a script that sets the same as people write it, not as npuprof renders it."""
    lines = ["import torch", "import torch_npu as tn", "from torch_npu import npu", "options = {}"]
    for name, value in settings.items():
        row = ROWS[name]
        if row.call:
            written = str(value) if ".CubeMathType." in row.call else repr(value)
            lines.append(
                row.call.format(written).replace("torch.npu.", ("npu.", "tn.npu.")[len(lines) % 2])
            )
        else:
            lines.append(
                f"options[{name!r}] = {value!r}"
                if len(lines) % 2
                else f"options.update({{{name!r}: {str(value)!r}}})"
            )
    return "\n".join([*lines, "tn.npu.set_option(options)", ""])


def read(text: str) -> dict[str, Any]:
    """Return the settings of the one preset that a script makes, all that it sets."""
    (draft,) = build_drafts(import_script("train.py", text.encode()))
    assert [note.why for note in draft.notes] == []
    return {key.removeprefix("torch_npu."): value for key, value in draft.settings.items()}


def sample(name: str, folder: Path) -> list[Any]:
    """Return values of a row: all choices, or a few that are none."""
    row = ROWS[name]
    if name == "set_aoe":
        return [str(folder / "it's here")]
    numbers = {"int": [int(row.minimum or 0), 7], "float": [0.0, 0.5]}
    return list(row.choices) or {"bool": [True, False], **numbers}.get(
        row.kind, ["".join(HOSTILE[start::4]) for start in range(4)]
    )


def test_the_files_are_those_of_the_wheel_and_refuse_what_torch_npu_refuses(files: Path) -> None:
    assert (files / "torch_npu/npu/npu_config.py").stat().st_size > 5_000
    head = "import torch\nimport torch_npu\n"
    with pytest.raises(ValueError, match="ACL_PRECISION_MODE"):
        run_code(
            files, NAMES, f"{head}torch.npu.set_option({{'ACL_PRECISION_MODE': 'force_fp16'}})\n"
        )
    with pytest.raises(TypeError, match="allow_hf32 must be a bool"):
        run_code(files, NAMES, f"{head}torch.npu.matmul.allow_hf32 = 1\n")
    misspelt = run_code(
        files,
        NAMES,
        (
            f"{head}torch.npu.matmul.allow_tf32 = True\n"
            "torch.npu.set_compile_mode(jit_compile='False')\n"
        ),
    )
    assert misspelt == {"jitCompile": "enable", ("MM_BMM_ND_ENABLE", "flag"): True}


def group_rows() -> list[list[str]]:
    """Return the rows in groups that exclude no others and share no function."""
    groups: list[list[str]] = []
    for name, row in ROWS.items():
        home = f"{name.partition('.')[0]}."
        group = next(
            (
                group
                for group in groups
                if not any(other in row.conflicts or other.startswith(home) for other in group)
            ),
            None,
        )
        if group is None:
            groups.append(group := [])
        group.append(name)
    return groups


@pytest.mark.parametrize("names", group_rows(), ids=lambda names: names[0])
def test_every_row_is_received_as_the_preset_has_it_and_imported_as_such(
    names: list[str], files: Path, tmp_path: Path
) -> None:
    samples = {name: sample(name, tmp_path) for name in names}
    for place in range(max(map(len, samples.values()))):
        settings = {name: values[place % len(values)] for name, values in samples.items()}
        for text in (
            npuprof.render(build_config(settings), "torch-npu", bool(place % 2), check=False),
            write_by_hand(settings),
        ):
            assert run_code(files, NAMES, text) == expect_received(settings), text
            assert read(text) == settings, text


@examples(20)
@given(settings=mixes())
@example(settings={"set_device_limit.cube_num": 12, "set_device_limit.vector_num": 24})
def test_a_mix_of_settings_is_received_as_the_preset_has_it_and_imported_as_such(
    settings: dict[str, Any], files: Path
) -> None:
    text = npuprof.render(build_config(settings), "torch-npu", check=False)
    assert run_code(files, NAMES, text) == expect_received(settings), text
    assert read(text) == settings


def test_rows_that_no_function_of_torch_npu_has_are_noticed(files: Path) -> None:
    assert len(ROWS) >= 7
    with pytest.raises(AttributeError):
        run_code(files, NAMES, "import torch\ntorch.npu.set_no_such_thing(1)\n")
    assert {name for name, row in ROWS.items() if row.call} <= set(RECEIVED)
