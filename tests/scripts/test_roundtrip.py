"""A preset that is rendered or exported, and imported again, is the same."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import npuprof
from npuprof import catalog, renderers
from npuprof.catalog.values import format_exported_text, is_equivalent_setting
from npuprof.document.keys import format_toml_value
from npuprof.model import NpuprofError
from npuprof.renderers import place_sidecars
from npuprof.renderers.environment import collect_env_variables
from npuprof.renderers.environment_files import FORMATS
from npuprof.renderers.shell import SHELLS, format_export_lines
from npuprof.scripts.preset import build_drafts
from npuprof.scripts.reading import ImportedFile, import_script
from npuprof.scripts.reading.variable_files import is_placeholder
from support.building import examples
from support.importing import imported


def read_back(target: str, config: Any, inline: bool) -> dict[str, Any] | None:
    """Return the settings found in the rendered text.

    None where the target cannot carry the preset.
    """
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
            read = import_script(path, file.read())
        assert not read.problems
        made = build_drafts(read)
    assert len(made) <= 1
    return made[0].settings if made else {}


def differences(target: str, config: Any, found: dict[str, Any]) -> dict[str, Any]:
    wanted = dict(config.options)
    for section in {"estimator": ("estimator",), "atc": ("atc",)}.get(target, ()):
        wanted |= {
            f"{section}.{name}": value for name, value in config.shared_sections[section].items()
        }
    if target == "atc" and wanted.get("graph_run_mode") == 0:
        del wanted["graph_run_mode"]  # a conversion is for inference whatever it is told
    if (
        target == "estimator"
        and "compile_hybrid_mode" not in wanted
        and found.get("compile_hybrid_mode") == 0
    ):
        found = {
            name: value for name, value in found.items() if name != "compile_hybrid_mode"
        }  # the class insists on it
    return compare(wanted, found)


def compare(wanted: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    return {
        key: (wanted.get(key), found.get(key))
        for key in {**wanted, **found}
        if key not in wanted
        or key not in found
        or not is_equivalent_setting(key, wanted[key], found[key])
    }


TEXTS = ("dump_path", "debug_dir", "work_path", "op_compiler_cache_dir", "dump_layer")
PROFILING = st.dictionaries(
    st.sampled_from(["output", "training_trace"]), st.text("ab/\"'\\ ${}", min_size=1), min_size=1
)
PLAIN = {
    "hccl_timeout": st.integers(-(2**63), 2**63 - 1),
    "deterministic": st.sampled_from([0, 1]),
    "enable_dump": st.booleans(),
    "precision_mode_v2": st.sampled_from(catalog.find_option("precision_mode_v2").choices),  # type: ignore[union-attr]
    "dynamic_dims": st.just([[1, 2], [3, 4]]),
}
PLAIN_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(TEXTS, PLAIN_TEXT.filter(lambda text: not is_placeholder(text))),
        **PLAIN,
        "input_shape": st.just({"data": [1, -1], "label": [-1]}),
        "modify_mixlist": st.just({"black-list": {"to-add": ["MatMul"]}}),
        "profiling_options": PROFILING,
    },
)


@pytest.mark.parametrize("target", ["session", "keras", "global-options", "estimator", "atc"])
@examples(30)
@given(options=VALUES, inline=st.booleans())
def test_any_values_come_back(target: str, options: dict[str, Any], inline: bool) -> None:
    carried = {
        name: value for name, value in options.items() if target != "atc" or catalog.find_flag(name)
    }
    config = npuprof.loads(
        "[options]\n"
        + "".join(f"{name} = {format_toml_value(value)}\n" for name, value in carried.items())
    )
    found = read_back(target, config, inline)
    assume(found is not None)
    assert found is not None
    assert not differences(target, config, found)


#: How a file with an export is called: what ``npuprof env ... -o`` is given.
NAMES = {
    "bash": "x.sh",
    **dict.fromkeys(("dotenv", "docker", "systemd", "github"), "x.env"),
    **dict.fromkeys(("k8s-configmap", "k8s-env"), "x.yaml"),
    **dict.fromkeys(("slurm", "slurm-job"), "x.sh"),
    "json": "x.json",
}


def write_export(config: Any, name: str) -> str | None:
    """Return the text of an export; None where it refuses a value."""
    folder = FORMATS[name].folder if name in FORMATS else ""
    found, _ = collect_env_variables(config, None, folder or "/side", trusting=True)
    if name in SHELLS:
        return (
            None
            if any(map(SHELLS[name].refuses, found.values()))
            else format_export_lines(SHELLS[name], found)
        )
    kind = FORMATS[name]
    return (
        None
        if any(kind.refuses(key, text) for key, text in found.items())
        else kind.write(config, found, {})
    )


def read_export(
    config: Any, name: str, file: str = ""
) -> tuple[dict[str, Any], ImportedFile] | None:
    text = write_export(config, name)
    if text is None:
        return None
    found = imported(text, file or NAMES[name])
    made = build_drafts(found)
    assert len(made) <= 1
    return (made[0].settings if made else {}), found


def list_differences(config: Any, name: str, found: dict[str, Any]) -> dict[str, Any]:
    wanted = {**config.options}
    wanted |= {
        f"env.{key}": text
        for key, value in config.env.items()
        if (text := format_exported_text(key, value)) is not None
    }
    return compare(
        wanted
        | place_sidecars(
            config, FORMATS[name].folder if name in FORMATS and FORMATS[name].folder else "/side"
        ),
        found,
    )


AWKWARD = PLAIN_TEXT | st.lists(
    st.sampled_from(
        [
            "'",
            '"',
            "\\",
            "$",
            "`",
            "!",
            "\n",
            "\r",
            "\t",
            " ",
            "(",
            ")",
            "{",
            "}",
            "#",
            "=",
            "a",
            "%",
            ";",
            "é",
            "😀",
            "\u2019",
        ]
    ),
    min_size=1,
    max_size=12,
).map("".join)
#: Placeholders are not carried over.
REAL = AWKWARD.filter(lambda text: not is_placeholder(text))
EXPORTED = st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(TEXTS, REAL), **PLAIN, "profiling_mode": st.booleans()}
)
VARIABLES = st.fixed_dictionaries(
    {},
    optional={
        "HCCL_CONNECT_TIMEOUT": st.integers(1, 7200),
        "HCCL_EXEC_TIMEOUT": REAL,
        "ASCEND_CACHE_PATH": REAL,
        "ASCEND_GLOBAL_LOG_LEVEL": st.sampled_from(["0", "3"]),
    },
)


@pytest.mark.parametrize("name", NAMES)
@examples(40)
@given(options=EXPORTED, env=VARIABLES)
def test_any_values_come_back_from_every_export(
    name: str, options: dict[str, Any], env: dict[str, Any]
) -> None:
    tables = {"options": options, "env": env}
    config = npuprof.loads(
        "".join(
            f"[{table}]\n"
            + "".join(f"{key} = {format_toml_value(value)}\n" for key, value in entries.items())
            for table, entries in tables.items()
        )
    )
    back = read_export(config, name)
    assume(back is not None)
    assert back is not None
    difference = list_differences(config, name, back[0])
    if "HCCL_EXEC_TIMEOUT" in env and str(options.get("hccl_timeout")) == env["HCCL_EXEC_TIMEOUT"]:
        difference.pop("env.HCCL_EXEC_TIMEOUT", None)  # the option says as much
    assert not difference
    assert not any(finding.severity != "info" for finding in back[1].problems)


@pytest.mark.parametrize(
    ("text", "value"),
    [("export HCCL_ALGO='a\r\nb'\n", "a\r\nb"), ("export HCCL_ALGO='a\r\nb'\r\n", "a\nb")],
    ids=["plain line ends", "line ends of Windows"],
)
def test_a_carriage_return_is_a_character_where_not_all_lines_end_in_one(
    text: str, value: str
) -> None:
    (setting,) = [
        candidate
        for candidate in imported(text, "x.sh").settings
        if candidate.key == "env.HCCL_ALGO"
    ]
    assert setting.value == value
