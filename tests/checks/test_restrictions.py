"""What ATC and the adapter of TF 2 take of an option, and since when."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import npuprof
from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.store import spec
from support.building import findings

TF2 = "global-options"
OFFLINE = '[profile]\nscenario = "offline-inference"\n'


def list_codes(text: str, cann: str | None = None, target: str | None = None) -> set[str]:
    """Return the codes of errors and warnings in a context, except for deprecated options."""
    workspace = spec.Workspace(None, spec.build_context(cann, None, target))
    profile = Profile(parse_document("<text>", "<text>", text), key="text:")
    found = npuprof.check(workspace.resolver.resolve_profile(profile))
    return {finding.code for finding in found if finding.severity != "info"} - {"NP501", "NP502"}


@pytest.mark.parametrize(
    ("line", "release", "code"),
    [
        ("atomic_clean_policy = 1", "6.0.RC1", "NP404"),
        ("atomic_clean_policy = 1", "6.0.1", None),
        ("op_precision_mode = '/etc/x.ini'", "6.0.1", "NP404"),
        ("op_precision_mode = '/etc/x.ini'", "6.3.RC1", None),
        ("enable_dump = false", "5.0.1", "NP404"),
        ("enable_dump = false", "5.0.2", None),
        ("jit_compile = 'auto'", "6.3.RC1", "NP404"),
        ("compile_dynamic_mode = true", "8.0.0", "NP405"),
    ],
)
def test_an_option_is_younger_in_tf_2_than_in_a_session(
    line: str, release: str, code: str | None
) -> None:
    assert list_codes(f"[options]\n{line}\n", cann=release, target=TF2) == (
        {code} if code else set()
    )


@pytest.mark.parametrize(
    ("shape", "offline", "online"),
    [
        pytest.param("a:1,-1;b:0", set(), set(), id="valid for both"),
        pytest.param("a:1~10,3", set(), {"NP203"}, id="a range"),
        pytest.param("a:1~-1", set(), {"NP203"}, id="a range without end"),
        pytest.param("scalar:", set(), {"NP203"}, id="a scalar"),
        pytest.param("a", {"NP203"}, {"NP203"}, id="no dimensions"),
        pytest.param("a:1;;", {"NP203"}, {"NP203"}, id="empty entries"),
    ],
)
def test_a_conversion_takes_shapes_that_a_session_does_not(
    shape: str, offline: set[str], online: set[str]
) -> None:
    assert (
        list_codes(f"{OFFLINE}[options]\ninput_shape = '{shape}'\n")
        == list_codes(f"{OFFLINE}[atc]\ninput_shape = '{shape}'\n")
        == offline
    )
    alone = (
        f"[profile]\nscenario = 'online-inference'\n[options]\ninput_shape = '{shape}'\n"
        "dynamic_dims = '1;2'\ndynamic_node_type = 1\n"
    )
    assert {"NP203"} & list_codes(alone) == online


class ChipCase(NamedTuple):
    atc: str
    options: str
    more: str
    expected: set[str]


@pytest.mark.parametrize(
    ("atc", "options", "more", "expected"),
    [
        pytest.param(
            *ChipCase(
                atc="soc_version = 'Ascend310P3'",
                options="precision_mode_v2 = 'mixed_bfloat16'",
                more="",
                expected={"NP409"},
            ),
            id="chip without bfloat16",
        ),
        pytest.param(
            *ChipCase(
                atc="soc_version = 'Ascend910B1'",
                options="precision_mode_v2 = 'mixed_bfloat16'",
                more="",
                expected=set(),
            ),
            id="chip with bfloat16",
        ),
        pytest.param(
            *ChipCase(
                atc="",
                options="precision_mode_v2 = 'mixed_bfloat16'\nsoc_config = 'Ascend310P3'",
                more="",
                expected={"NP409"},
            ),
            id="chip from soc_config",
        ),
        pytest.param(
            *ChipCase(
                atc="soc_version = 'Ascend310P3'\nstatus_check = '1'",
                options="",
                more="",
                expected=set(),
            ),
            id="chip with status_check",
        ),
        pytest.param(
            *ChipCase(
                atc="soc_version = 'Ascend910B1'\nstatus_check = '1'",
                options="",
                more="",
                expected={"NP409"},
            ),
            id="chip without status_check",
        ),
        pytest.param(
            *ChipCase(
                atc="soc_version = 'Ascend310P3'",
                options="",
                more="products = ['atlas-a2']",
                expected={"NP407"},
            ),
            id="chip of another product",
        ),
        pytest.param(
            *ChipCase(
                atc="soc_version = 'Ascend310P3'",
                options="",
                more="products = ['atlas-a2', 'atlas-inference']",
                expected={"NP407"},
            ),
            id="chip of one product of two",
        ),
        pytest.param(
            *ChipCase(
                atc="soc_version = 'Ascend910B1'",
                options="",
                more="products = ['atlas-a2-training']",
                expected=set(),
            ),
            id="chip of the preset's product",
        ),
        pytest.param(
            *ChipCase(
                atc="soc_version = 'Ascend910X9'",
                options="",
                more="",
                expected={"NP403"},
            ),
            id="unknown chip",
        ),
        pytest.param(
            *ChipCase(
                atc="",
                options="soc_config = '310P3'",
                more="",
                expected={"NP403"},
            ),
            id="chip without Ascend",
        ),
    ],
)
def test_the_chip_of_a_conversion_says_the_product(
    atc: str, options: str, more: str, expected: set[str]
) -> None:
    assert list_codes(f"{OFFLINE}{more}\n[options]\n{options}\n[atc]\n{atc}\n") == expected


class SurfaceCase(NamedTuple):
    line: str
    session: str | None
    tf2: str | None
    atc: str | None


@pytest.mark.parametrize(
    ("line", "session", "tf2", "atc"),
    [
        SurfaceCase(
            line='oo_level = "O1"',
            session=None,
            tf2=None,
            atc=None,
        ),
        SurfaceCase(
            line='oo_level = "O2"',
            session="NP205",
            tf2="NP205",
            atc="NP203",
        ),
        SurfaceCase(
            line='oo_level = "O9"',
            session="NP203",
            tf2="NP203",
            atc="NP203",
        ),
        SurfaceCase(
            line="topo_sorting_mode = 3",
            session=None,
            tf2="NP203",
            atc=None,
        ),
        SurfaceCase(
            line='op_select_implmode = "high_precision_for_all"',
            session="NP205",
            tf2="NP203",
            atc=None,
        ),
        SurfaceCase(
            line="stream_max_parallel_num = { DNN_VM_AICPU = 14 }",
            session=None,
            tf2="NP203",
            atc="NP411",
        ),
        SurfaceCase(
            line="jit_compile = 'auto'",
            session=None,
            tf2=None,
            atc=None,
        ),
    ],
)
def test_each_surface_takes_its_own_values(
    line: str, session: str | None, tf2: str | None, atc: str | None
) -> None:
    text = f"[options]\n{line}\n"
    there = list_codes(text, target="session")
    assert (session or "") in ("", *there), there
    assert bool(there) is bool(session)
    assert (tf2 or "") in ("", *list_codes(text, target=TF2)), list_codes(text, target=TF2)
    assert bool(list_codes(text, target=TF2)) is bool(tf2)
    offline = {
        finding.code for finding in findings(OFFLINE + text) if finding.severity != "info"
    } - {"NP501", "NP205"}
    assert offline == ({atc} if atc else set())


def test_choices_of_a_surface_are_listed_as_presets_write_them() -> None:
    lines = ("external_weight = 2", "jit_compile = 2")
    whys = [
        finding.why
        for line in lines
        for finding in findings(f"{OFFLINE}[options]\n{line}\n")
        if finding.code == "NP413"
    ]
    assert whys == [
        "There --external_weight takes false, true only.",
        'There --jit_compile takes "false", "true", "auto" only.',
    ]


@pytest.mark.parametrize(
    ("scenario", "target", "is_doubtful"),
    [("training", None, True), ("offline-inference", None, False), ("", "atc", False)],
)
def test_a_choice_is_doubtful_where_the_manual_of_the_surface_warns_of_it(
    scenario: str, target: str | None, is_doubtful: bool
) -> None:
    head = f'[profile]\nscenario = "{scenario}"\n' if scenario else ""
    assert (
        "NP205" in list_codes(f'{head}[options]\nprecision_mode_v2 = "mixed_hif8"\n', target=target)
    ) is is_doubtful


def test_a_preset_for_any_scenario_is_judged_by_the_flags_where_atc_is_asked_for() -> None:
    assert list_codes('[options]\noo_level = "O2"\n', target="atc") == {"NP203", "NP205"}
    assert list_codes('[options]\nbuffer_optimize = "l1_optimize"\n', target="atc") == set()
