"""The editor schema: valid, complete, and never stricter than ``check``.

What editors themselves make of it is tried in ``test_commands_schema``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import npuprof
from npuprof import catalog
from npuprof.catalog.preset_schema import build_profile_schema
from npuprof.checks.frameworks import find_framework_faults
from npuprof.checks.setting_values import find_setting_faults
from npuprof.document import profile
from npuprof.document.keys import format_toml_value
from support.building import examples
from support.running import Run
from support.schemas import LET_PASS, UNDERLINED
from support.vllm_values import RECORDS, list_rows, list_values

jsonschema = pytest.importorskip("jsonschema")
#: Values of each type, which few arguments take.
ODD = ["zzz", -5, True, {"zz": 1}, [1, "a"], "yes", 1, 2.0, "", "None", "7", '{"a": 1}']
SCHEMA = build_profile_schema()
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)


def accepts(section: str, name: str, value: Any) -> bool:
    return bool(VALIDATOR.is_valid({section: {name: value}}))


def test_it_is_a_schema_of_the_draft_that_editors_of_toml_read() -> None:
    VALIDATOR.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert SCHEMA["$id"] == "urn:npuprof:profile"
    assert SCHEMA["title"]
    assert SCHEMA["description"]


def test_it_accepts_every_shipped_preset(shipped: Path) -> None:
    paths = sorted(shipped.rglob("*.toml"))
    assert len(paths) > 13
    for path in paths:
        VALIDATOR.validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize("text", UNDERLINED)
def test_what_an_editor_should_underline_is_refused(text: str) -> None:
    assert not VALIDATOR.is_valid(tomllib.loads(text))


@pytest.mark.parametrize("text", LET_PASS)
def test_what_means_something_is_not_underlined(text: str) -> None:
    VALIDATOR.validate(tomllib.loads(text))


def test_every_name_of_the_catalogue_is_in_it_with_its_meaning() -> None:
    for section in ("options", "env", "estimator", "atc"):
        known = SCHEMA["definitions"][section]["properties"]
        names = catalog.record_names(section)
        assert names
        for name in names:
            if (
                section == "estimator"
                and (argument := catalog.find_argument(name))
                and argument.kind == "object"
            ):
                assert name not in known
            else:
                assert known[name]["description"].startswith(
                    catalog.find_record_texts(section, name)["summary"]
                )


def test_it_has_the_tables_that_the_code_has() -> None:
    assert set(SCHEMA["properties"]) == set(profile.TABLES)
    assert set(SCHEMA["definitions"]["override"]["properties"]) == set(profile.OVERRIDE_KEYS)


def patterns(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("pattern"), str):
            yield node["pattern"]
        for item in node.values():
            yield from patterns(item)
    elif isinstance(node, list):
        for item in node:
            yield from patterns(item)


def test_its_patterns_are_those_that_editors_know_too() -> None:
    found = list(patterns(SCHEMA))
    assert len(found) > 20
    for pattern in found:
        re.compile(pattern)
        assert not re.search(r"\(\?[^:=!]|\\[AZz]|[+*?]\+", pattern), "Python only"


#: What a preset may say it is for: with some of it, check lets values pass that it refuses
#: elsewhere.
HEADS = ("", 'scenario="offline-inference"', 'cann="<6.0"')
WORDS = sorted(
    {
        str(choice)
        for name in catalog.record_names()
        if (option := catalog.find_option(name))
        for choice in option.choices
    }
)
NAMES = [
    (section, name)
    for section in ("options", "env", "estimator", "atc")
    for name in catalog.record_names(section)
]
EXAMPLES = [catalog.find_record_texts(section, name).get("example") for section, name in NAMES]
VALUES = (
    st.sampled_from(
        [*WORDS, "", "0", "1", "-1", "3-5", "0|5", "a:1;b:2", "x:on", "/tmp/x", "{}", "a b", "1,2"]
    )
    | st.sampled_from([example for example in EXAMPLES if example is not None])
    | st.integers(-5, 5)
    | st.sampled_from([100, 2**31, 2**62])
    | st.booleans()
    | st.floats(-2, 2)
    | st.text(max_size=4)
    | st.lists(st.integers(-1, 3) | st.sampled_from(["a", "0-3", "fast", "step", 0.5]), max_size=4)
    | st.lists(st.lists(st.integers(-1, 3), max_size=3), max_size=3)
    | st.dictionaries(
        st.sampled_from(["a", "launcher", "Switch", "ByOpType", "black-list"]),
        st.sampled_from(["rank", "on", 1, {}]),
        max_size=2,
    )
)


@examples(200)
@given(st.sampled_from(NAMES), VALUES)
def test_it_never_refuses_what_the_checks_let_pass(place: tuple[str, str], value: Any) -> None:
    section, name = place
    faults = find_setting_faults(name if section == "options" else f"{section}.{name}", value)
    # Of a table among pairs whose reader nobody found check warns only, and the schema has no place
    # for one.
    assume(
        not any(
            fault.severity == "error" or (fault.code == "NP203" and isinstance(value, dict))
            for fault in faults
        )
    )
    assert accepts(section, name, value), (name, value)


@pytest.mark.parametrize(("section", "floor"), [("options", 200), ("env", 100), ("atc", 100)])
def test_it_accepts_choices_of_any_release_that_check_lets_pass_in_what_a_preset_is_for(
    section: str, floor: int
) -> None:
    passed = 0
    for name in catalog.record_names(section)[:: 10 if section == "env" else 1]:
        record: Any = catalog.find_record(section, name)
        kinds = ("choices", "tolerated", "choices_until", "doubtful_values")
        for head, value in product(
            HEADS, [value for kind in kinds for value in getattr(record, kind, ())]
        ):
            text = f"[profile]\n{head}\n[{section}]\n{name} = {format_toml_value(value)}\n"
            if not any(
                finding.severity == "error" and finding.code[2:3] in "24"
                for finding in npuprof.check(npuprof.loads(text))
            ):
                passed += 1
                assert VALIDATOR.is_valid(tomllib.loads(text)), text
    assert passed > floor


def test_it_accepts_the_arguments_of_every_release_that_check_lets_pass() -> None:
    counts = Counter[object]()
    wrong = []
    for path in sorted(RECORDS.glob("*.json"))[::4]:
        for (name, *inside), row in list_rows(json.loads(path.read_text("utf-8"))):
            for value, _ in [*list_values((name, *inside), row), *((each, False) for each in ODD)]:
                for part in reversed(inside):
                    value = {part: value}
                is_clean = not find_framework_faults("vllm", name, value)
                is_valid = accepts("vllm", name, value)
                counts[is_clean, is_valid] += 1
                if is_clean and not is_valid:
                    wrong.append((name, value))
    assert not wrong
    assert counts[False, False] > counts[False, True] > 0


def test_the_command_prints_it(run: Run) -> None:
    assert json.loads(run("schema").out) == json.loads(json.dumps(SCHEMA))
