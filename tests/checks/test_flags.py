"""Flags of ATC that stand together, whether options or [atc] set them."""

from __future__ import annotations

import re
from typing import Any

import pytest

import npuprof
from npuprof import catalog, checks
from npuprof.checks import flags
from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import Context
from npuprof.resolve import FixedPolicy, Resolver
from support.building import toml

SHAPE = {"input_shape": "a:-1,2"}


def list_messages(
    options: dict[str, Any],
    atc: dict[str, Any],
    scenario: str = "offline-inference",
    target: str | None = None,
) -> list[str]:
    text = toml(
        {"profile": {"scenario": scenario} if scenario else {}, "options": options, "atc": atc}
    )
    profile = Profile(parse_document("x", "x", text))
    there = Resolver(FixedPolicy(None, profile), Context(target=target)).resolve_profile(profile)
    return [
        f"{finding.severity} {finding.message}"
        for finding in checks.check_config(there)
        if finding.code == "NP912"
    ]


@pytest.mark.parametrize(
    ("options", "atc", "expected"),
    [
        (SHAPE, {"dynamic_batch_size": "1,2"}, []),
        (
            SHAPE,
            {"dynamic_batch_size": "1,2", "dynamic_image_size": "1,2;3,4"},
            ["error --dynamic_batch_size and --dynamic_image_size exclude each other"],
        ),
        (
            {"dynamic_dims": "1;2", "input_shape": "a:-1"},
            {"insert_op_conf": "/i", "input_format": "ND"},
            [
                "error --dynamic_dims and --insert_op_conf exclude each other",
                "warning --insert_op_conf needs another --input_format than ND, NCDHW, NDHWC",
            ],
        ),
        (
            {"precision_mode": "force_fp16", "precision_mode_v2": "fp16"},
            {},
            ["error --precision_mode and --precision_mode_v2 exclude each other"],
        ),
        (
            {"op_select_implmode": "high_precision", "op_precision_mode": "/p.ini"},
            {},
            ["warning --op_precision_mode and --op_select_implmode exclude each other"],
        ),
        ({"external_weight": True}, {"external_weight": "1"}, []),
        (
            {"external_weight": True},
            {"external_weight": "2"},
            ['error --external_weight is "1" by external_weight and "2" by atc.external_weight'],
        ),
    ],
)
def test_flags_that_exclude_each_other_are_told_once(
    options: dict[str, Any], atc: dict[str, Any], expected: list[str]
) -> None:
    assert list_messages(options, atc) == expected
    assert list_messages(options, atc, "", "atc") == expected
    assert list_messages(options, atc, "training") == []
    assert list_messages(options, atc, "") == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            "origin",
            [
                (
                    "warning --compression_optimize_conf and "
                    "--precision_mode_v2=origin exclude each other"
                )
            ],
        ),
        ("fp16", []),
    ],
)
def test_a_conflict_with_one_value_is_none_with_others(value: str, expected: list[str]) -> None:
    assert (
        list_messages({"precision_mode_v2": value}, {"compression_optimize_conf": "/c"}) == expected
    )


LEVEL = "error --deterministic_level needs --deterministic=1"
IMAGES = {"dynamic_image_size": "1,2;3,4"}


@pytest.mark.parametrize(
    ("options", "atc", "expected"),
    [
        ({"deterministic": 0}, {"deterministic_level": "2"}, [LEVEL]),
        ({}, {"deterministic_level": "2"}, [LEVEL]),
        ({"deterministic": 1}, {"deterministic_level": "2"}, []),
        ({}, {"deterministic": "1", "deterministic_level": "2"}, []),
        ({}, {"deterministic_level": "0"}, []),
        ({}, {"dynamic_batch_size": "1,2"}, ["error --dynamic_batch_size needs --input_shape"]),
        ({}, {"input_shape": "a:-1,2", "dynamic_batch_size": "1,2"}, []),
        # hicann/ge, CheckDynamicDimsInputShapeValid: only older releases compare the format.
        ({"input_shape": "a:-1", "dynamic_dims": "1;2"}, {"input_format": "NHWC"}, []),
        ({"input_shape": "a:-1", "dynamic_dims": "1;2"}, {}, []),
        ({"dynamic_dims": "1;2"}, {}, ["error --dynamic_dims needs --input_shape"]),
        ({"input_shape": "a:-1", "dynamic_dims": "1;2"}, {"input_format": "ND"}, []),
        (SHAPE, IMAGES, []),
        (SHAPE, IMAGES | {"input_format": "NHWC"}, []),
        (
            SHAPE,
            IMAGES | {"input_format": "ND"},
            ["error --dynamic_image_size needs another --input_format than ND, NCDHW, NDHWC"],
        ),
        ({}, {"host_env_os": "linux"}, ["warning --host_env_os needs --host_env_cpu"]),
        ({}, {"weight": "./w", "framework": 3}, ["warning --weight needs --framework=0"]),
        ({}, {"weight": "./w", "framework": 0}, []),
        ({}, {"weight": "./w"}, []),
        ({}, {"external_weight": "1"}, []),
        (
            {},
            {"insert_op_conf": "./i", "input_format": "ND"},
            ["warning --insert_op_conf needs another --input_format than ND, NCDHW, NDHWC"],
        ),
        (
            {},
            {"is_input_adjust_hw_layout": "true"},
            ["warning --is_input_adjust_hw_layout needs --input_fp16_nodes"],
        ),
        (
            {"buffer_optimize": "off_optimize"},
            {"mdl_bank_path": "./x"},
            ["warning --mdl_bank_path needs --buffer_optimize=l2_optimize"],
        ),
        (
            {"debug_dir": "./x"},
            {},
            ["warning --debug_dir needs another --op_debug_level than 0 or --op_debug_config"],
        ),
        ({"debug_dir": "./x", "op_debug_level": 3}, {}, []),
        ({"debug_dir": "./x", "op_debug_config": "/c.cfg"}, {}, []),
        ({"precision_mode_v2": "fp16"}, {"keep_dtype": "/k"}, []),
        ({}, {"keep_dtype": "/k"}, []),
        (
            {"precision_mode_v2": "origin"},
            {"keep_dtype": "/k"},
            ["warning --keep_dtype needs another --precision_mode_v2 than origin"],
        ),
    ],
)
def test_a_flag_that_lacks_another_one_is_told(
    options: dict[str, Any], atc: dict[str, Any], expected: list[str]
) -> None:
    assert list_messages(options, atc) == expected
    assert list_messages(options, atc, "", "atc") == expected
    assert list_messages(options, atc, "training") == list_messages(options, atc, "") == []


REQUIREMENTS = [
    (flag.name, requirement)
    for flag in catalog.list_records(catalog.Flag, "atc")
    for requirement in flag.requires
]


def test_the_catalogue_has_requirements() -> None:
    assert len(REQUIREMENTS) > 12


@pytest.mark.parametrize(("name", "requirement"), REQUIREMENTS)
def test_each_requirement_of_the_catalogue_names_flags_and_values_there_are(
    name: str, requirement: str
) -> None:
    terms = flags._parse_requirement(requirement)
    assert terms
    for term in terms:
        required = catalog.find_flag(term.name)
        assert required is not None, term.name
        assert {*term.values} <= set(map(str, required.choices)), term.name
    flag = catalog.find_flag(name)
    assert flag is not None
    accepted = flag.pattern or "|".join(map(str, flag.choices))
    for text in flag.requires_unless:
        assert re.fullmatch(accepted, text)


def test_what_a_session_takes_or_has_taken_and_atc_does_not_is_told_of_the_flag() -> None:
    found = []
    cases = [*filter(None, map(catalog.find_option, catalog.record_names()))]
    assert cases
    for option in cases:
        flag = catalog.find_flag(option.flag)
        if flag is None or not flag.choices:
            continue
        for value in (*option.choices, *option.choices_until):
            carried, written = option.write_on("atc", value)
            text = str(written).lower() if isinstance(written, bool) else str(written)
            if carried and text not in map(str, flag.choices):
                profile = {"scenario": "offline-inference"}
                config = npuprof.loads(toml({"profile": profile, "options": {option.name: value}}))
                errors = [item for item in npuprof.check(config) if item.severity == "error"]
                found.append((option.name, value))
                assert option.name in {error.key for error in errors}, (option.name, value)
    assert len(found) > 1
