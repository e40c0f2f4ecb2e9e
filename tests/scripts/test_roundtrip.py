"""Rendered and imported again, a preset is the same: for every target that can be read back."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof import catalog, renderers
from npuprof.catalog.values import is_equivalent_setting
from npuprof.document.keys import format_toml_value
from npuprof.model import NpuprofError
from npuprof.scripts.preset import build_drafts
from npuprof.scripts.reading import import_script
from support.building import REPOSITORY, examples

#: The targets that import reads as a whole: scripts that spell options, but for what only repeats them or gets them elsewhere.
TARGETS = tuple(
    name
    for name in renderers.MODULES
    if (target := renderers.load_target(name)).surface
    and target.file.endswith((".py", ".sh"))
    and name not in ("env-loader", "init-resource")
)
STORE = npuprof.open_store(REPOSITORY / "profiles")


def read_back(target: str, config: Any, inline: bool) -> dict[str, Any] | None:
    """Return the settings found in the rendered text; None where the target cannot carry the preset."""
    try:
        rendered = renderers.load_target(target).write(config, inline)
    except NpuprofError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.sh" if target == "atc" else "x.py")
        for name, text in {**rendered.sidecars, path: rendered.text}.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as file:
                file.write(text)
        with open(path, "rb") as file:
            imported = import_script(path, file.read())
        assert not imported.problems
        made = build_drafts(imported)
    assert len(made) <= 1
    return made[0].settings if made else {}


def differences(target: str, config: Any, found: dict[str, Any]) -> dict[str, Any]:
    wanted = dict(config.options)
    for section in {"estimator": ("estimator",), "atc": ("atc",)}.get(target, ()):
        wanted |= {f"{section}.{name}": value for name, value in config.section(section).items()}
    if target == "atc" and wanted.get("graph_run_mode") == 0:
        del wanted["graph_run_mode"]  # a conversion is for inference whatever it is told
    if target == "estimator" and "compile_hybrid_mode" not in wanted and found.get("compile_hybrid_mode") == 0:
        found = {name: value for name, value in found.items() if name != "compile_hybrid_mode"}  # the class insists on it
    return {
        key: (wanted.get(key), found.get(key))
        for key in {**wanted, **found}
        if key not in wanted or key not in found or not is_equivalent_setting(key, wanted[key], found[key])
    }


@pytest.mark.parametrize("target", TARGETS)
def test_the_presets_of_the_store_come_back(target: str) -> None:
    carried = 0
    for name in STORE.names():
        config = STORE.resolve(name, target=target)
        for inline in (False, True):
            found = read_back(target, config, inline)
            if found is not None:
                carried += 1
                assert not differences(target, config, found), (name, inline)
    assert carried


TEXTS = ("dump_path", "debug_dir", "work_path", "op_compiler_cache_dir", "dump_layer")
PROFILING = st.dictionaries(st.sampled_from(["output", "training_trace"]), st.text("ab/\"'\\ ${}", min_size=1), min_size=1)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1) for name in TEXTS},
        "hccl_timeout": st.integers(-(2**63), 2**63 - 1),
        "deterministic": st.sampled_from([0, 1]),
        "enable_dump": st.booleans(),
        "precision_mode_v2": st.sampled_from(catalog.find_option("precision_mode_v2").choices),  # type: ignore[union-attr]
        "input_shape": st.just({"data": [1, -1], "label": [-1]}),
        "dynamic_dims": st.just([[1, 2], [3, 4]]),
        "modify_mixlist": st.just({"black-list": {"to-add": ["MatMul"]}}),
        "profiling_options": PROFILING,
    },
)  # fmt: skip


@pytest.mark.parametrize("target", ["session", "keras", "global-options", "estimator", "atc"])
@examples(40)
@given(options=VALUES, inline=st.booleans())
def test_any_values_come_back(target: str, options: dict[str, Any], inline: bool) -> None:
    config = npuprof.loads("[options]\n" + "".join(f"{name} = {format_toml_value(value)}\n" for name, value in options.items()))
    found = read_back(target, config, inline)
    if found is not None:
        assert not differences(target, config, found)
