"""Values and overrides judged together give the findings of each single context.

The reference resolves and checks the preset in every context.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import npuprof
from npuprof import checks
from npuprof.model import Context, NpuprofError
from npuprof.resolve import contexts
from support.building import build_store, config, findings
from support.running import Run, Store

A2, A3 = "atlas-a2", "atlas-a3"

# -- the forms that a clash takes -----------------------------------------------------------------

CLASH = "precision_mode and precision_mode_v2 are both set"


def list_clashes(text: str, **requested: Any) -> list[str]:
    return [finding.message for finding in findings(text, **requested) if finding.code == "NP301"]


def clash(match: str, profile: str = "") -> str:
    return (
        f'[profile]\n{profile}\n[options]\nprecision_mode_v2 = "mixed_float16"\n'
        f"[[override]]\nmatch = {{ {match} }}\n"
        'options = { precision_mode = "allow_mix_precision" }\n'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(clash(f'product = "{A3}"'), f"{CLASH} on atlas-a3", id="a product"),
        pytest.param(
            clash(f'product = "{A3}"', f'products = ["{A2}", "{A3}"]'),
            f"{CLASH} on atlas-a3",
            id="a product of two",
        ),
        pytest.param(
            clash('cann = ">=8.5"'), f"{CLASH} in CANN 8.5.0 to 9.2.0", id="releases from one on"
        ),
        pytest.param(
            clash('cann = [">=9.1", "==8.5.0"]'),
            f"{CLASH} in CANN 8.5.0, 9.1.0 to 9.2.0",
            id="two ranges of releases",
        ),
        pytest.param(clash('cann = ">=9.0,<9.1"'), f"{CLASH} in CANN 9.0.0", id="one release"),
        pytest.param(
            clash('cann = ">=8.5"', 'cann = ">=8.0,<9.1"'),
            f"{CLASH} in CANN 8.5.0 to 9.0.0",
            id="releases that the preset limits",
        ),
        pytest.param(
            clash('target = ["session", "keras"]'),
            f"{CLASH} for the target session, keras",
            id="two targets",
        ),
        pytest.param(clash('scenario = "training"'), f"{CLASH} for training", id="a scenario"),
        pytest.param(
            clash(f'product = "{A3}", cann = ">=9.0,<9.1", target = "session"'),
            f"{CLASH} on atlas-a3 in CANN 9.0.0 for the target session",
            id="product, releases and target",
        ),
        pytest.param(
            clash(f'product = "{A3}", cann = ">=9.0,<9.1"'),
            f"{CLASH} on atlas-a3 in CANN 9.0.0",
            id="product and releases",
        ),
        # what the preset is not meant for clashes with nothing
        pytest.param(
            clash(f'product = "{A3}"', f'products = ["{A2}"]'),
            None,
            id="a product the preset is not for",
        ),
        pytest.param(
            clash('cann = "<8.5"', 'cann = ">=9.0"'), None, id="releases the preset is not for"
        ),
        pytest.param(
            clash('scenario = "training"', 'scenario = "online-inference"'),
            None,
            id="a scenario the preset is not for",
        ),
    ],
)
def test_a_value_and_an_override_are_judged_together(text: str, expected: str | None) -> None:
    assert list_clashes(text) == [expected] * (expected is not None)


def lists(*overrides: str, profile: str = f'products = ["{A2}", "{A3}"]') -> str:
    """Return a preset with a list for mixed precision, and overrides, each ``match: value``."""
    blocks = "".join(
        f'[[override]]\nmatch = {{ {match} }}\noptions = {{ precision_mode_v2 = "{value}" }}\n'
        for match, _, value in (override.partition(": ") for override in overrides)
    )
    head = f'[profile]\nscenario = "training"\n{profile}\n[options]\n'
    return f'{head}modify_mixlist = {{ black-list = {{ to-add = ["MatMul"] }} }}\n{blocks}'


NO_MODE = "modify_mixlist is set without a mixed precision mode"
WITHOUT = "where no product is asked for"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            lists(f'product = "{A2}": mixed_float16', f'product = "{A3}": mixed_bfloat16'),
            [("warning", f"{NO_MODE} {WITHOUT}")],
            id="set for each product",
        ),
        pytest.param(
            lists(f'product = ["{A2}", "{A3}"]: mixed_float16'),
            [("warning", f"{NO_MODE} {WITHOUT}")],
            id="one override for both products",
        ),
        pytest.param(
            lists(f'product = "{A2}": mixed_float16'),
            [("error", NO_MODE)],
            id="set for one product of two",
        ),
        pytest.param(
            lists(f'product = "{A2}": mixed_float16', f'product = "{A3}": origin'),
            [("error", f"{NO_MODE} on atlas-a3"), ("warning", f"{NO_MODE} {WITHOUT}")],
            id="wrong for one product of two",
        ),
        pytest.param(
            lists('cann = ">=8.0": mixed_float16', profile='cann = ">=8.0"'),
            [("warning", f"{NO_MODE} where no release is asked for")],
            id="set for all releases",
        ),
        pytest.param(
            lists('cann = ">=9.0": mixed_float16', profile='cann = ">=8.0"'),
            [("error", NO_MODE)],
            id="set for some releases only",
        ),
    ],
)
def test_what_holds_only_without_a_product_or_a_release_is_no_error_of_a_preset_that_names_them(
    text: str, expected: list[tuple[str, str]]
) -> None:
    found = [finding for finding in findings(text) if finding.code == "NP303"]
    assert sorted((finding.severity, finding.message) for finding in found) == expected


def test_used_without_its_product_the_same_preset_is_refused(tmp_path: Path) -> None:
    config = npuprof.loads(
        lists(f'product = "{A2}": mixed_float16', f'product = "{A3}": mixed_bfloat16')
    )
    (found,) = [finding for finding in npuprof.check(config) if finding.code == "NP303"]
    assert found.hint.endswith("; or give --product wherever the preset is used")
    with pytest.raises(NpuprofError, match=NO_MODE):
        npuprof.render(config, "session")


@pytest.mark.parametrize(
    "profile", [f'products = ["{A2}"]', 'cann = "<8.0"', 'scenario = "training"']
)
def test_values_of_an_override_that_takes_part_nowhere_are_judged_by_themselves(
    profile: str,
) -> None:
    text = (
        f"[profile]\n{profile}\n[[override]]\n"
        f'match = {{ product = "{A3}", cann = ">=9.0", scenario = "online-inference" }}\n'
        'options = { hccl_timeot = 1, hccl_timeout = "x" }\n'
    )
    assert [(finding.code, finding.key, str(finding.origin)) for finding in findings(text)] == [
        ("NP711", "override.match", "<text>:4"),
        ("NP201", "hccl_timeot", "<text>:5"),
        ("NP202", "hccl_timeout", "<text>:5"),
    ]


def test_what_cannot_be_resolved_in_a_context_is_told() -> None:
    text = (
        f'options.hccl_timeout = 1\n[[override]]\nmatch.product = "{A3}"\n'
        "append.options.hccl_timeout = [1]\n"
    )
    assert contexts.resolve_elsewhere(config(text), Context(None, A3, None)) is None
    assert [finding.code for finding in findings(text)] == ["NP106"]


def test_a_lock_holds_in_every_context(tmp_path: Path) -> None:
    override = f'[[override]]\nmatch = {{ product = "{A3}" }}\noptions = {{ hccl_timeout = 2 }}\n'
    base = '[profile]\nlocked = ["hccl_timeout"]\n[options]\nhccl_timeout = 1\n'
    store = npuprof.open_store(
        str(
            build_store(
                tmp_path,
                {
                    "base": base + override.replace("2", "3"),
                    "leaf": f'[profile]\nextends = ["base"]\n{override}',
                },
            )
        )
    )
    assert [finding.code for finding in checks.check_config(store.resolve("base"))] == []
    found = checks.check_config(store.resolve("leaf"))
    assert [
        (
            finding.code,
            finding.message.rpartition(" on ")[2],
            str(finding.origin).rpartition("/")[2],
        )
        for finding in found
    ] == [("NP105", A3, "leaf.toml:5")]


@pytest.mark.parametrize(
    ("product", "expected"),
    [(None, ["mid.toml:2", "leaf.toml:4"]), (A3, ["leaf.toml:4"])],
    ids=["every context", "a product"],
)
def test_a_lock_is_broken_by_the_last_step_that_applies(
    product: str | None, expected: list[str], tmp_path: Path
) -> None:
    override = f'[[override]]\nmatch = {{ product = "{A3}" }}\noptions.hccl_timeout = 3\n'
    presets = {
        "base": '[profile]\nlocked = ["hccl_timeout"]\n[options]\nhccl_timeout = 1\n',
        "mid": 'profile.extends = ["base"]\nprofile.unset = ["hccl_timeout"]\n',
        "leaf": f'profile.extends = ["mid"]\n{override}',
    }
    store = npuprof.open_store(str(build_store(tmp_path, presets)))
    found = npuprof.check(store.resolve("leaf", product=product))
    places = [str(item.origin) for item in found if item.code == "NP105"]
    assert [name.rpartition("/")[2] for name in places] == expected


def test_a_fault_of_form_hides_no_clash_of_values_that_an_override_changes(
    run: Run, store: Store
) -> None:
    override = clash(f'product = "{A3}"').partition("[[")[2]
    modes = 'precision_mode_v2 = "mixed_float16"\nprecision_mode = "force_fp32"\n'
    store({"a": f'[profile]\nscenari = "x"\n[options]\n{modes}[[{override}'})
    found = json.loads(run("check", "a", "--format", "json").out)["findings"]
    assert [(item["code"], item["message"]) for item in found if item["code"] == "NP301"] == [
        ("NP301", CLASH)
    ]
    assert [item["code"] for item in found].count("NP006") == 1


# -- the chip of a conversion decides for which product the rest is judged ------------------------

CHIPS = """
[profile]
scenario = "offline-inference"
{}
[options]
precision_mode = "allow_fp32_to_bf16"
[atc]
soc_version = "Ascend910B2"
[[override]]
match = {{ {} }}
atc = {{ soc_version = "{}" }}
"""
CHIP = 'atc.soc_version = "{}" is'
BF16 = 'precision_mode = "allow_fp32_to_bf16" is not supported on atlas-training'


class ChipCase(NamedTuple):
    profile: str
    match: str
    chip: str
    expected: str | None


@pytest.mark.parametrize(
    ("profile", "match", "chip", "expected"),
    [
        ChipCase(
            profile="",
            match='cann = ">=9.2"',
            chip="Ascend910A",
            expected=f"{BF16} in CANN 9.2.0",
        ),
        ChipCase(
            profile="",
            match='target = "atc"',
            chip="Ascend910A",
            expected=f"{BF16} for the target atc",
        ),
        ChipCase(
            profile="",
            match=f'product = "{A3}"',
            chip="Ascend910_9392",
            expected=None,
        ),
        ChipCase(
            profile="",
            match='product = "atlas-training"',
            chip="Ascend910A",
            expected=f"{BF16}",
        ),
        ChipCase(
            profile="",
            match='cann = ">=9.2"',
            chip="Ascend910_9392",
            expected=None,
        ),
        ChipCase(
            profile=f'products = ["{A2}", "{A3}"]',
            match=f'product = "{A3}"',
            chip="Ascend910_9392",
            expected=None,
        ),
        ChipCase(
            profile=f'products = ["{A2}", "{A3}"]',
            match=f'product = "{A3}"',
            chip="Ascend910B3",
            expected=f"{CHIP} a chip of {A2}, not of {A3} on {A3}",
        ),
        ChipCase(
            profile=f'products = ["{A2}"]',
            match='cann = ">=9.2"',
            chip="Ascend910_9392",
            expected=f"{CHIP} a chip of {A3}, not of {A2} in CANN 9.2.0",
        ),
    ],
)
def test_the_chip_that_an_override_names_narrows_the_products_where_it_takes_part(
    profile: str, match: str, chip: str, expected: str | None
) -> None:
    text = CHIPS.format(profile, match, chip)
    messages = [finding.message for finding in findings(text) if finding.code in ("NP407", "NP409")]
    assert messages == [expected.format(chip)] if expected else not messages
    narrow = text.replace("Ascend910B2", chip).partition("[[override]]")[0]  # that chip everywhere
    alone = [finding.message for finding in findings(narrow) if finding.code == "NP409"]
    assert bool(alone) == (expected is not None and expected.startswith(BF16))


# -- overrides that never apply -------------------------------------------------------------------

#: An override's match, what the preset is meant for, and the line that is reported, if any.
NEVER: dict[str, tuple[str, str, bool]] = {
    "a product the preset excludes": (
        'product = "atlas-a3"',
        'products = ["atlas-a2-training"]',
        True,
    ),
    "a release the preset excludes": ('cann = ">=9.0"', 'cann = ">=8.0,<9"', True),
    "a scenario of another preset": (
        'scenario = "online-inference"',
        'scenario = "training"',
        True,
    ),
    "one product of two": (
        'product = ["atlas-a3", "atlas-a2"]',
        'products = ["atlas-a2-training"]',
        False,
    ),
    "a part of the preset's releases": ('cann = ">=8.5"', 'cann = ">=8.0,<9"', False),
    "a product where the preset names none": ('product = "atlas-a3"', "", False),
    "a conversion where the preset trains": ('target = "atc"', 'scenario = "training"', True),
    "a session where the preset converts": (
        'target = "session"',
        'scenario = "offline-inference"',
        True,
    ),
    "a target that writes every preset": ('target = "json"', 'scenario = "training"', False),
    "a product that nobody knows": (
        'product = "atlas-a9"',
        'products = ["atlas-a2-training"]',
        False,
    ),
}


@pytest.mark.parametrize("case", NEVER)
def test_an_override_that_never_applies_is_a_warning_at_its_match(case: str) -> None:
    match, meant, is_dead = NEVER[case]
    text = (
        f"[profile]\n{meant}\n[[override]]\nmatch = {{ {match} }}\n"
        "options = { hccl_timeout = 900 }\n"
    )
    found = [
        (finding.severity, finding.line) for finding in findings(text) if finding.code == "NP711"
    ]
    assert found == ([("warning", 4)] if is_dead else [])


def test_a_misspelt_key_that_an_override_unsets_is_reported() -> None:
    unset = 'unset = ["hccl_timout", "env.HCCL_CONECT_TIMEOUT"]'
    text = (
        "[options]\nhccl_timeout = 900\n[[override]]\n"
        f'match = {{ product = "atlas-a3" }}\n{unset}\n'
    )
    found = [(finding.line, finding.hint) for finding in findings(text) if finding.code == "NP702"]
    hints = [
        "did you mean 'hccl_timeout'?",
        (
            "did you mean 'env.HCCL_CONNECT_TIMEOUT' or "
            "'env.HCCL_EXEC_TIMEOUT' or 'env.HCCL_EVENT_TIMEOUT'?"
        ),
    ]
    assert found == [(5, hint) for hint in hints]
