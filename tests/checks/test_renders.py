"""Presets without findings render to every target of their scenario that supports each option."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

from npuprof import catalog, checks, renderers
from npuprof.catalog.values import parse_structured_value
from npuprof.model import LONGEST_WORD
from npuprof.renderers.trusting import list_needs
from npuprof.resolve.config import Config
from support.building import config, toml
from support.running import Run, Store

#: Values for any key: most are refused, what is taken must be written.
ODD: list[Any] = [
    "x",
    "a,b",
    0,
    2,
    -1,
    1.5,
    "",
    [],
    {},
    "a b;c'd\"$x",
    "é",
    "x\n",
    "x\0y",
    ["MatMul"],
    {"a": 1},
    ["a", ""],
    [[1, 2], [3]],
]
#: The names of which values are tried: of variables, of which there are many of a kind, some.
TRIED = {
    section: catalog.record_names(section)[:: 25 if section == "env" else 1]
    for section in ("options", "env", "atc", "estimator")
}


def list_clean_presets(section: str, name: str) -> list[Config]:
    """Return presets of one setting, with documented and other values, that have no findings."""
    record: Any = catalog.find_record(section, name)
    example = catalog.find_record_texts(section, name).get("example")
    values = [
        example,
        *(getattr(record, field, None) for field in ("minimum", "maximum", "default")),
        *record.choices,
        True,
        *ODD,
    ]
    if section == "options" and isinstance(example, str):
        values.append(parse_structured_value(name, example))
    head = {"scenario": "offline-inference"} if section == "atc" else {}
    presets = [
        config(toml({"profile": head, section: {name: value}}))
        for value in values
        if value is not None
    ]
    return [
        preset
        for preset in presets
        if not checks.check_config(preset, notes=False) and not list_needs(preset)
    ]


def has_place(there: Config, key: str, target: renderers.Target) -> bool:
    """Return whether the catalogue has a place in a target for a setting, whatever its value."""
    section, name = catalog.find_record_place(key)
    record: Any = catalog.find_record(section, name)
    if there.scenario and not target.offline:
        return False
    if section == "estimator":
        return target.surface not in ("atc", "global_options") and (
            target.file != "estimator_migrated.py" or record.run_config
        )
    if section == "options" and target.surface in record.not_carried:
        return bool(record.is_always(target.surface, there.settings[key]))
    is_spelled = (
        section != "options"
        or target.surface not in ("atc", "global_options")
        or target.surface in record.spelling
    )
    return is_spelled and (
        target.file != "ge_options.json"
        or "ge_option" in catalog.find_record_texts("options", name)
    )


@pytest.mark.parametrize("section", TRIED)
def test_a_clean_value_renders_to_every_target_that_has_a_place_for_it(section: str) -> None:
    rendered = 0
    for name in TRIED[section]:
        for preset in list_clean_presets(section, name):
            (key,) = preset.settings
            for target in map(renderers.load_target, renderers.load_target_index()):
                if has_place(preset, key, target):
                    done = target.render(preset)
                    # an @file without arguments is empty: it has no comments
                    assert done.text or done.left_out, (target.file, preset.settings)
                    rendered += 1
    assert rendered > {"options": 2000, "env": 500, "atc": 100, "estimator": 100}[section]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param('[options]\ngraph_slice = "manual"\n', "NP413", id="no other value"),
        pytest.param(
            '[options]\ngraph_slice = "manual"\nhccl_timeout = 600\n',
            "",
            id="another option can be written",
        ),
        pytest.param(
            (
                '[options]\ngraph_slice = "manual"\n[[override]]\n'
                'match = { target = "global-options" }\nunset = ["graph_slice"]\n'
            ),
            "",
            id="unset for the target",
        ),
        pytest.param(
            (
                '[options]\ngraph_slice = "manual"\n[[override]]\n'
                'match = { target = "global-options" }\noptions = { graph_slice = "auto" }\n'
            ),
            "",
            id="another value for the target",
        ),
        pytest.param(
            (
                '[options]\ngraph_slice = "auto"\n[[override]]\nmatch = { product = "atlas-a3" }\n'
                'options = { graph_slice = "manual" }\n'
            ),
            "NP413",
            id="only on a product",
        ),
        pytest.param(
            (
                '[options]\ngraph_slice = "auto"\n[[override]]\nmatch = { target = "session" }\n'
                'options = { graph_slice = "manual" }\n'
            ),
            "",
            id="only for a target that can write it",
        ),
        pytest.param(
            '[profile]\nscenario = "offline-inference"\n[options]\nop_debug_list = []\n',
            "NP201",
            id="an unknown option",
        ),
    ],
)
def test_a_value_that_some_target_cannot_write_is_told_unless_that_has_another(
    text: str, code: str
) -> None:
    found = [finding.code for finding in checks.check_config(config(text), notes=False)]
    assert found == [code] * bool(code)


@pytest.mark.parametrize(
    ("option", "key"),
    [
        (
            'op_debug_config = { op_debug_config = ["oom"], op_debug_list = [] }',
            "op_debug_config.op_debug_list",
        ),
        ("dynamic_dims = []", "dynamic_dims"),
        ("input_shape = { a = [] }", "input_shape"),
        (
            (
                "modify_mixlist = { black-list = { to-add = [] } }\n"
                'precision_mode_v2 = "mixed_float16"'
            ),
            "",
        ),
    ],
)
@pytest.mark.parametrize("scenario", ["offline-inference", "training"])
def test_an_empty_list_is_found_where_it_cannot_be_written(
    option: str, key: str, scenario: str
) -> None:
    there = config(f'[profile]\nscenario = "{scenario}"\n[options]\n{option}\n')
    errors = [
        finding.key for finding in checks.check_config(there) if finding.code in ("NP203", "NP204")
    ]
    assert bool(errors) is bool(key), errors
    assert not key or errors[0].startswith(key)


def test_a_hint_for_a_target_is_taken() -> None:
    (finding,) = checks.check_config(config("[options]\ntopo_sorting_mode = 2\n"), notes=False)
    assert finding.hint == (
        'write one of 0, 1, here or in an [[override]] with match = { target = "global-options" }'
    )


@pytest.mark.parametrize(
    ("text", "key"),
    [
        pytest.param(
            f'[options]\nenable_scope_fusion_passes = "{"x" * LONGEST_WORD}"\n',
            "enable_scope_fusion_passes",
            id="an option too long",
        ),
        pytest.param(f'[env]\nA = "{"x" * LONGEST_WORD}"\n', "env.A", id="a variable too long"),
        pytest.param(
            f'[profile]\nscenario = "offline-inference"\n[atc]\nlog = "{"x" * LONGEST_WORD}"\n',
            "atc.log",
            id="a flag too long",
        ),
        pytest.param(
            '[profile]\nscenario = "offline-inference"\n[atc]\nmodel = "x\\u0000"\n',
            "atc.model",
            id="a flag with a NUL",
        ),
    ],
)
def test_what_no_program_can_be_started_with_is_found(text: str, key: str) -> None:
    assert [
        finding.key for finding in checks.check_config(config(text)) if finding.code == "NP203"
    ] == [key]


ACCENT = '[options]\nop_debug_config = "é"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(ACCENT, ["NP413"], id="no scenario"),
        pytest.param(f'[profile]\nscenario = "training"\n{ACCENT}', [], id="for training"),
        pytest.param(
            f'[profile]\nscenario = "offline-inference"\n{ACCENT}',
            ["NP203"],
            id="for offline inference",
        ),
        pytest.param(
            f"[profile]\nabstract = true\n{ACCENT}", [], id="abstract"
        ),  # what it is for, heirs say
        pytest.param(
            f"{ACCENT}[estimator]\nsave_summary_steps = 10\n", [], id="with an estimator argument"
        ),
        pytest.param(
            f'{ACCENT}[[override]]\nmatch = {{ target = "atc" }}\nunset = ["op_debug_config"]\n',
            [],
            id="unset for ATC",
        ),
        pytest.param(
            (
                f'{ACCENT}[[override]]\nmatch = {{ target = "atc" }}\n'
                "options = { hccl_timeout = 600 }\n"
            ),
            [],
            id="unrelated override for ATC",
        ),
        pytest.param(
            (
                f'{ACCENT}hccl_timeout = 600\n[[override]]\nmatch = {{ target = "atc" }}\n'
                'unset = ["hccl_timeout"]\n'
            ),
            ["NP413"],
            id="another option unset for ATC",
        ),
        pytest.param(
            (
                f'{ACCENT}[[override]]\nmatch = {{ target = "atc", cann = "<8.0" }}\n'
                'unset = ["op_debug_config"]\n'
            ),
            ["NP413"],
            id="unset for ATC in some releases",
        ),
        pytest.param(
            '[options]\ntopo_sorting_mode = 2\n[atc]\nlog = "info"\n',
            ["NP413"],
            id="a value ATC does not take",
        ),  # for global-options only: ATC takes it
        pytest.param(
            '[options]\nop_debug_config = "x.cfg"\n[atc]\nlog = "loud"\n',
            ["NP203"],
            id="a wrong flag is the only finding",
        ),  # wrong for anybody, told once
        pytest.param(
            '[options]\nprecision_mode = "force_fp16"\nprecision_mode_v2 = "fp16"\n',
            ["NP301"],
            id="a clash is the only finding",
        ),
        pytest.param(
            (
                f'{ACCENT.replace("é", "x")}[[override]]\nmatch = {{ product = "atlas-a3" }}\n'
                'options = { op_debug_config = "é" }\n'
            ),
            ["NP413"],
            id="only on a product",
        ),
    ],
)
def test_without_a_scenario_a_preset_of_flags_is_judged_as_atc_reads_it_as_well(
    text: str, expected: list[str]
) -> None:
    found = checks.check_config(config(text), notes=False)
    assert [finding.code for finding in found] == expected


LATE = (
    '[profile]\ncann = "{}"\n[options]\natomic_clean_policy = 1\n[[override]]\n'
    'match = {{ target = "global-options", {} }}\n{}\n'
)
TOLD = "atomic_clean_policy cannot be written for the target global-options in CANN 6.0.RC1"
OTHER = "options = { hccl_timeout = 600 }"


class UnwritableCase(NamedTuple):
    span: str
    match: str
    change: str
    expected: list[str]


@pytest.mark.parametrize(
    ("span", "match", "change", "expected"),
    [
        UnwritableCase(
            span=">=6.0.RC1",
            match='cann = "<6.3.RC1"',
            change='unset = ["atomic_clean_policy"]',
            expected=[],
        ),
        UnwritableCase(
            span=">=6.0.RC1",
            match='cann = ">=7"',
            change='unset = ["atomic_clean_policy"]',
            expected=[TOLD],
        ),
        UnwritableCase(
            span=">=6.0.RC1",
            match='product = "atlas-a2"',
            change='unset = ["atomic_clean_policy"]',
            expected=[TOLD],
        ),
        UnwritableCase(
            span=">=6.0.RC1",
            match='cann = "<6.3.RC1"',
            change=OTHER,
            expected=[],
        ),  # there the target has no place for the preset
        UnwritableCase(
            span=">=6.0.RC1",
            match='cann = ">=7"',
            change=OTHER,
            expected=[TOLD],
        ),
    ],
)
def test_what_a_target_cannot_write_is_told_for_the_releases_in_which_it_has_that(
    span: str, match: str, change: str, expected: list[str]
) -> None:
    found = checks.check_config(config(LATE.format(span, match, change)), notes=False)
    assert [finding.message for finding in found if finding.code == "NP413"] == expected


#: Presets with settings that some targets reject, and one that none does.
TARGETED = {
    "graph": "[options]\ngraph_run_mode = 1\nenable_exception_dump = 2\n",
    "plain": '[options]\nprecision_mode_v2 = "mixed_float16"\n',
    "offline": '[profile]\nscenario = "offline-inference"\n[atc]\nframework = 3\n',
    "torch": "[torch_npu]\nallow_internal_format = true\n[env]\nHCCL_IF_BASE_PORT = 50000\n",
    "serving": "[vllm]\nmax-model-len = 4096\n",
    "training": '[args]\nname = ["a", 1]\n"a b" = 1\n',
    "override": (
        "[options]\ngraph_run_mode = 1\n[[override]]\n"
        'match = { target = "ge" }\nunset = ["options.graph_run_mode"]\n'
    ),
    "unread": "[options]\nx = \n",
}


@pytest.mark.parametrize("target", renderers.load_target_index())
def test_check_reports_what_a_target_rejects_as_render_does(
    target: str, store: Store, run: Run
) -> None:
    store(TARGETED)
    found = json.loads(run("check", "--target", target, "--format", "json").out)["findings"]
    judged = json.loads(run("check", "--format", "json").out)["findings"]
    told = {(each["message"], each["path"], each["line"]) for each in found}
    told -= {(each["message"], each["path"], each["line"]) for each in judged}
    refused = set()
    sections = renderers.load_target(target).sections
    for name, text in TARGETED.items():
        if name != "unread" and any(f"[{section}]" in text for section in sections):
            result = run("render", name, "--to", target, "--trust")
            refused |= set(re.findall(r"^(\S+?):(\d+):\d+: error \w+: (.*)$", result.err, re.M))
    assert told == {(message, path, int(line)) for path, line, message in refused}


def test_check_for_a_target_finds_faults(store: Store, run: Run) -> None:
    store(TARGETED)
    assert (
        "graph_run_mode cannot be carried by the target atc"
        in run("check", "graph", "--target", "atc").out
    )
    assert run("check", "graph", "--target", "session").code == 0
    assert run("check", "override", "--target", "atc").code == 1
    assert run("check", "override", "--target", "ge").code == 0
