"""The file of engine options for ATC's ``--raw_ge_options``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import npuprof
from npuprof import catalog, renderers
from npuprof.catalog.conversions import CONVERSIONS
from npuprof.document.keys import format_plain_value
from npuprof.renderers.atc import encode_flag
from support.building import config, toml
from support.running import Run

ROWS = [
    line.split("\t")
    for line in Path(__file__).with_name("engine_levels.tsv").read_text().splitlines()
    if line[0] != "#"
]
WITHOUT = [
    name
    for name in catalog.record_names()
    if "ge_option" not in catalog.find_record_texts("options", name)
]
SAMPLES: dict[str, Any] = {"i": 3, "s": "text", "b": True}
STRUCTURE = CONVERSIONS["engine-options"]


def render(options: dict[str, Any]) -> Any:
    """Return the levels of a rendered file; ATC itself would find nothing wrong with its form."""
    text = renderers.load_target("ge").write(config(toml({"options": options})), False).text
    parsed = json.loads(text)
    assert STRUCTURE.faults(parsed) == []
    assert list(parsed) == ["compile options"], "any other key is nothing that ATC reads"
    return parsed["compile options"]


def list_values(name: str) -> list[Any]:
    option = catalog.find_option(name)
    assert option is not None
    values = [True, False] if option.field == "b" else list(option.choices)
    return [
        value
        for value in values or [SAMPLES.get(option.field, "text")]
        if not option.is_always("atc", value)
    ]


def test_the_table_has_all_options_with_a_key() -> None:
    keyed = {
        name: catalog.find_record_texts("options", name)["ge_option"]
        for name in catalog.record_names()
        if name not in WITHOUT
    }
    assert keyed
    assert {row[0]: row[1] for row in ROWS} == keyed


@pytest.mark.parametrize(
    ("name", "key", "documented", "listed"), ROWS, ids=[row[0] for row in ROWS]
)
def test_each_value_is_text_at_a_level_that_the_engine_takes_its_key_at(
    name: str, key: str, documented: str, listed: str
) -> None:
    cases = [*list_values(name)]
    assert cases
    for value in cases:
        ((level, options),) = render({name: value}).items()
        assert options == {key: options[key]}
        assert documented == "-" or level in documented
        assert listed == "-" or level in listed
        option = catalog.find_option(name)
        assert option is not None
        if "atc" in option.spelling:
            _, written = encode_flag(config(""), option, value, "ge")
            assert options[key] == format_plain_value(written), (
                "ATC reads it by the rules of its flag"
            )


@pytest.mark.parametrize("name", WITHOUT)
def test_an_option_without_a_key_is_an_error(name: str) -> None:
    with pytest.raises(npuprof.NpuprofError) as caught:
        render({name: list_values(name)[0], "deterministic": 1})
    (finding,) = caught.value.findings
    assert finding.code == "NP901"
    assert finding.key == name
    assert "no key" in finding.why


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, {}),
        ({"jit_compile": "true"}, {"session": {"ge.jit_compile": "1"}}),
        (
            {"jit_compile": "auto", "oo_level": "O1"},
            {"global": {"ge.oo.level": "O1"}, "session": {"ge.jit_compile": "2"}},
        ),
        ({"external_weight": True}, {"session": {"ge.externalWeight": "1"}}),
        ({"oo_constant_folding": False}, {"global": {"ge.oo.constantFolding": "false"}}),
        (
            {"graph_run_mode": 0, "deterministic": 1},
            {"global": {"ge.deterministic": "1"}},
        ),  # ATC has the first in any case
        ({"input_shape": {"x": [2, 3], "y": [0]}}, {"graph": {"ge.inputShape": "x:2,3;y:"}}),
        ({"op_debug_config": 'a"\\\u2028'}, {"global": {"ge.exec.opDebugConfig": 'a"\\\u2028'}}),
    ],
)
def test_values_are_written_as_the_engine_reads_them(options: dict[str, Any], wanted: Any) -> None:
    assert render(options) == wanted


def test_a_key_that_atc_may_not_know_is_reported() -> None:
    known, unknown = ({"deterministic": 1}, {"hccl_timeout": 600})
    for options, codes in ((known, []), (unknown, ["NP910"]), ({**known, **unknown}, ["NP910"])):
        rendered = renderers.load_target("ge").write(config(toml({"options": options})), False)
        assert [finding.code for finding in rendered.findings] == codes
        assert all("ge.exec.hcclExecuteTimeOut" in finding.message for finding in rendered.findings)


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (lambda text: text, 0, ""),
        (lambda text: text.replace("  ", " "), 1, "was edited by hand"),
        (lambda text: text.replace('"global"', '"execute"'), 1, "was edited by hand"),
        (lambda text: '{"compile options": [', 1, "was not rendered by npuprof"),
        (lambda text: '{"compile options": 1}', 1, "was not rendered by npuprof"),
    ],
)
def test_check_tells_current_stale_and_edited_files_apart(
    tmp_path: Path, run: Run, change: Any, code: int, message: str
) -> None:
    (tmp_path / "job.toml").write_text(
        '[profile]\nscenario = "offline-inference"\n[options]\ndeterministic = 1\n'
    )
    file = tmp_path / "ge_options.json"
    assert run("render", tmp_path / "job.toml", "--to", "ge", "-o", file).code == 0
    file.write_bytes(change(file.read_text()).encode())
    result = run("render", tmp_path / "job.toml", "--to", "ge", "--check", file)
    assert result.code == code
    assert message in result.err


def test_a_file_with_other_options_is_overwritten_by_force_only(tmp_path: Path, run: Run) -> None:
    (tmp_path / "job.toml").write_text("[options]\ndeterministic = 1\n")
    (tmp_path / "ge_options.json").write_text('{\n  "compile options": {}\n}\n')
    arguments = ("render", tmp_path / "job.toml", "--to", "ge", "-o", tmp_path)
    assert "NP940" in run(*arguments).err
    assert run(*arguments, "--force").code == 0
    assert run(*arguments).code == 0
