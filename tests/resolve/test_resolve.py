"""Resolution: published cases, a second resolver, origins and digests.

Origins are compared with the text.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

import npuprof
from npuprof import catalog
from npuprof.catalog import values
from npuprof.catalog.values import load_form
from npuprof.model import is_same_typed_value
from npuprof.resolve.digests import compute_digest
from npuprof.store import assignment_arguments, spec
from support.building import build_store, toml

CASES = [
    pytest.param(case, id=f"{path.stem}: {case['name']}")
    for path in sorted((Path(__file__).parent / "conformance").glob("*.toml"))
    for case in tomllib.loads(path.read_text())["case"]
]


@pytest.mark.parametrize("case", CASES)
def test_conformance(case: dict[str, Any], tmp_path: Path) -> None:
    unread = case.keys() - {
        "name",
        "presets",
        "spec",
        "expect",
        "lineage",
        "error",
        "hint",
        "scenario",
        "cann_range",
    }
    assert unread <= {"cann", "product", "target", "with", "set", "unset"}
    build_store(tmp_path / "profiles", case["presets"])

    def resolved() -> npuprof.Config:
        workspace = spec.Workspace(
            None, spec.build_context(case.get("cann"), case.get("product"), case.get("target"))
        )
        changes = assignment_arguments.parse_assignments(case.get("set", []), case.get("unset", []))
        return workspace.resolve_spec(case["spec"], case.get("with", []), changes)

    if "error" in case:
        with pytest.raises(npuprof.NpuprofError) as caught:
            resolved()
        found = caught.value.findings
        assert [finding.code for finding in found] == [case["error"]]
        assert case.get("hint", found[0].hint) == found[0].hint
        assert found[0].hint or found[0].why, "an error without a repair"
        return
    config = resolved()
    assert is_same_typed_value(config.settings, case["expect"]), config.settings
    traced = {key: strip_leaves(config.traced_value(key)) for key in config.settings}
    assert is_same_typed_value(traced, case["expect"]), (
        "the values with origins differ from those without"
    )
    if "lineage" in case:
        assert [profile.name for profile in config.lineage] == case["lineage"]
    if "scenario" in case:
        assert config.scenario == case["scenario"]
    if "cann_range" in case:
        assert config.cann == case["cann_range"]


def strip_leaves(value: Any) -> Any:
    """Return leaves as the values they hold."""
    if isinstance(value, values.Leaf):
        return value.value
    if isinstance(value, dict):
        return {name: strip_leaves(item) for name, item in value.items()}
    return [strip_leaves(item) for item in value]


# -- errors in detail -----------------------------------------------------------------------------


def test_a_circle_is_printed_once_with_its_places(tmp_path: Path) -> None:
    build_store(
        tmp_path / "profiles",
        {
            "leaf": '[profile]\nextends = ["a"]\n',
            "a": '# first\n[profile]\nextends = ["b"]\n',
            "b": '[profile]\n\n\nextends = ["a"]\n',
        },
    )
    with pytest.raises(npuprof.NpuprofError) as caught:
        npuprof.open_store().resolve("leaf")
    (finding,) = caught.value.findings
    assert (
        finding.message == "inheritance cycle: a (profiles/a.toml:3) -> b (profiles/b.toml:4) -> a"
    )
    assert finding.place == "profiles/a.toml:3:1"


def test_all_missing_parents_are_reported_each_at_its_name(tmp_path: Path) -> None:
    build_store(
        tmp_path / "profiles", {"a": '[profile]\nextends = [\n  "x",\n  "b",\n  "y",\n]\n', "b": ""}
    )
    with pytest.raises(npuprof.NpuprofError) as caught:
        npuprof.open_store().resolve("a")
    assert [finding.place for finding in caught.value.findings] == [
        "profiles/a.toml:3:3",
        "profiles/a.toml:5:3",
    ]


def test_parents_without_order_say_what_was_asked_for(tmp_path: Path) -> None:
    build_store(
        tmp_path / "profiles",
        {
            "B": "",
            "C": "",
            "A": 'profile.extends = ["B", "C"]',
            "E": 'profile.extends = ["C", "B"]',
            "Z": 'profile.extends = ["A", "E"]',
        },
    )
    with pytest.raises(npuprof.NpuprofError) as caught:
        npuprof.open_store().resolve("Z")
    (finding,) = caught.value.findings
    assert finding.place == "profiles/Z.toml:1:9"
    assert "B before C" in finding.why
    assert "C before B" in finding.why


def test_every_file_of_a_chain_is_opened_once_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_store(
        tmp_path / "profiles",
        {
            "d": "",
            "b": 'profile.extends = ["d"]',
            "c": 'profile.extends = ["d"]',
            "a": 'profile.extends = ["b", "c"]',
            "other": "options = {",
        },
    )
    opened: list[str] = []
    real = os.open

    def watching(file: Any, *rest: Any, **named: Any) -> int:
        opened.append(str(file))
        return real(file, *rest, **named)

    monkeypatch.setattr(os, "open", watching)
    npuprof.open_store().resolve("a")
    assert sorted(name for name in opened if name.endswith(".toml")) == [
        str(tmp_path / f"profiles/{name}.toml") for name in "abcd"
    ]


# -- origins --------------------------------------------------------------------------------------


def test_origins_name_the_winner_first_and_keep_single_elements_apart(tmp_path: Path) -> None:
    build_store(
        tmp_path / "profiles",
        {
            "base": '[options.modify_mixlist.black-list]\nto-add = ["MatMul",\n  "Cast"]\n',
            "mid": (
                '[profile]\nextends = ["base"]\n[append.options.modify_mixlist]\n'
                'black-list = { to-add = ["Xlog1py"] }\n'
            ),
            "leaf": '[profile]\nextends = ["mid"]\n[options]\nhccl_timeout = 2\n[[override]]\n'
            'match = { product = "atlas-a3" }\noptions = { hccl_timeout = 3 }\n',
        },
    )
    config = npuprof.open_store().resolve("leaf", product="atlas-a3", set={"hccl_timeout": 4})
    assert [str(origin) for origin in config.origins("hccl_timeout")] == [
        "set",
        "profiles/leaf.toml:7",
        "profiles/leaf.toml:4",
    ]
    assert [origin.layer for origin in config.origins("hccl_timeout")] == [
        "command line",
        "override 1",
        "values",
    ]
    adds = ("black-list", "to-add")
    places = [config.origin("modify_mixlist", (*adds, index)) for index in range(3)]
    assert [(origin.file, origin.line, origin.column) for origin in places] == [
        ("profiles/base.toml", 2, 11),
        ("profiles/base.toml", 3, 3),
        ("profiles/mid.toml", 4, 26),
    ]
    assert [str(origin) for origin in config.origins("modify_mixlist.black-list.to-add")] == [
        "profiles/mid.toml:4",
        "profiles/base.toml:2",
    ]


# -- the digest -----------------------------------------------------------------------------------


def examples() -> list[Any]:
    """Return options with a structured form, and the documented text of each."""
    found = []
    for name in catalog.record_names():
        option = catalog.find_option(name)
        assert option is not None
        example = catalog.find_record_texts("options", name).get("example")
        if option.structure and not load_form(option.structure).file and isinstance(example, str):
            found.append(pytest.param(name, example, id=name))
    return found


@pytest.mark.parametrize(("name", "text"), examples())
def test_text_and_structured_form_have_one_digest(name: str, text: str) -> None:
    parsed = values.parse_structured_value(name, text)
    assert parsed != text, "the documented example has no structured form"
    from_text, from_table = (
        npuprof.loads(toml({"options": {name: form}})) for form in (text, parsed)
    )
    assert from_text.digest == from_table.digest
    assert values.is_equivalent_setting(name, text, parsed)
    assert from_text.options[name] == text, "a text is kept as it was written"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("deterministic = 1", "deterministic = true"),
        ("deterministic = 1", "deterministic = 1.0"),
        ("deterministic = 1", 'deterministic = "1"'),
        ("dynamic_dims = [[1, 2]]", "dynamic_dims = [[2, 1]]"),
        ("dynamic_dims = [[1], [2]]", "dynamic_dims = [[2], [1]]"),
        ("input_shape = { a = [1], b = [1] }", "input_shape = { b = [1], a = [1] }"),
        ("x = 1979-05-27", "x = '1979-05-27'"),
        ("x = 07:32:00", "x = 1979-05-27T07:32:00"),
        ("x = [1, [2]]", "x = [[1], 2]"),
        ("x = {}", "x = []"),
    ],
)
def test_what_differs_has_another_digest(left: str, right: str) -> None:
    assert (
        npuprof.loads(f"[options]\n{left}\n").digest
        != npuprof.loads(f"[options]\n{right}\n").digest
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("dump_step = [1, 2]", "dump_step = [2, 1]"),
        (
            "modify_mixlist = { black-list = { to-add = ['A', 'B'] } }",
            "modify_mixlist = { black-list = { to-add = ['B', 'A'] } }",
        ),
        ('profiling_options = \'{"a": 1, "b": 2}\'', "profiling_options = { b = 2, a = 1 }"),
        ("hccl_timeout = 10", "hccl_timeout = 0xA"),
        ("hccl_timeout = 1\ndeterministic = 1", "deterministic = 1\nhccl_timeout = 1"),
        ("dump_path = '/a'", 'dump_path = "\\u002fa"'),
    ],
)
def test_what_means_the_same_has_one_digest(left: str, right: str) -> None:
    assert (
        npuprof.loads(f"[options]\n{left}\n").digest
        == npuprof.loads(f"[options]\n{right}\n").digest
    )


def test_the_digest_is_the_documented_hash() -> None:
    config = npuprof.loads(
        '[options]\nhccl_timeout = 3\ndump_path = "\u00e9\\n"\nrate = [1.5, 1979-05-27]\n'
        """[env]\nX = true\nY = '"'\nZ = '\\'\n"""
    )
    canonical = (
        '{"dump_path":"\\u00e9\\n","env.X":%s,"env.Y":"\\"","env.Z":"\\\\","hccl_timeout":3,'
        '"rate":[1.5,{"$toml":"date 1979-05-27"}]}'
    )
    older = canonical % "true"
    texts = {
        3: '{"form":3,"settings":%s}' % (canonical % '"true"'),
        2: f'{{"form":2,"settings":{older}}}',
        1: older,
    }
    assert config.digest == hashlib.sha256(texts[3].encode()).hexdigest()
    for form, text in texts.items():
        digest = hashlib.sha256(text.encode()).hexdigest()
        assert compute_digest(config.settings, form) == digest, form


def test_the_preset_digest_is_the_documented_hash() -> None:
    config = npuprof.loads("""
[profile]
description = "not counted"
scenario = "training"
locked = ["b", "a"]
unset = ["dump_path"]
[options]
hccl_timeout = 3
[append.options]
x = ["1"]
[[override]]
match = { product = ["b", "a"] }
unset = ["env.X"]
options = { hccl_timeout = 4 }
""")
    override = (
        '{"append":{},"match":{"product":["a","b"]},"set":{"hccl_timeout":4},"unset":["env.X"]}'
    )
    layer = f'{{"append":{{"x":["1"]}},"locked":["a","b"],"override":[{override}],'
    layer += '"scenario":"training","set":{"hccl_timeout":3},"unset":["dump_path"]}'
    assert (
        config.preset_digest
        == hashlib.sha256(f'{{"abstract":false,"form":3,"layers":[{layer}]}}'.encode()).hexdigest()
    )


LAYERS = {
    "base": "[options]\nhccl_timeout = 600\n",
    "leaf": '[profile]\nextends = ["base"]\n[options]\ndump_path = "/d"\n',
}


@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        pytest.param(
            "leaf",
            (
                '[profile]\nextends = ["base"]\ndescription = "said"\nowner = "me"\n[options]\n'
                '# a comment\ndump_path = "\\u002fd"\n'
            ),
            True,
            id="description, comment and escape",
        ),
        pytest.param(
            "leaf",
            '[profile]\nextends = ["base"]\nabstract = true\n[options]\ndump_path = "/d"\n',
            False,
            id="abstract",
        ),
        pytest.param(
            "leaf",
            '[profile]\nextends = ["base"]\nlocked = ["dump_path"]\n[options]\ndump_path = "/d"\n',
            False,
            id="locked",
        ),
        pytest.param(
            "leaf",
            '[profile]\nextends = ["base"]\nscenario = "training"\n[options]\ndump_path = "/d"\n',
            False,
            id="scenario",
        ),
        pytest.param(
            "leaf",
            LAYERS["leaf"]
            + '[[override]]\nmatch = { product = "atlas-a3" }\noptions = { hccl_timeout = 1 }\n',
            False,
            id="override",
        ),
        pytest.param(
            "leaf", LAYERS["leaf"] + "[append.options]\ndump_step = [1]\n", False, id="append"
        ),
        pytest.param(
            "base",
            "[profile]\nabstract = true\n[options]\nhccl_timeout = 600\n",
            True,
            id="a parent",
        ),
    ],
)
def test_the_preset_digest_counts_what_a_preset_says_whatever_it_is_asked_for(
    tmp_path: Path, name: str, text: str, same: bool
) -> None:
    def digests(folder: str, texts: dict[str, str]) -> set[str]:
        store = npuprof.open_store(build_store(tmp_path / folder, texts))
        return {
            store.resolve("leaf", **requested).preset_digest
            for requested in ({}, {"product": "atlas-a3"}, {"cann": "9.0.0"}, {"set": {"x": 1}})
        }

    before, after = digests("before", LAYERS), digests("after", {**LAYERS, name: text})
    assert len(before) == len(after) == 1
    assert (before == after) == same
