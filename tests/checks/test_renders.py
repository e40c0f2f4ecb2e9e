"""What the checks call clean renders: to every target of its scenario that has a place for each of its options."""

from __future__ import annotations

import os
import random
from functools import cache
from itertools import chain
from itertools import product as product_of
from typing import Any

import pytest

from npuprof import catalog, checks, renderers
from npuprof.catalog import releases, targets, values
from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import LONGEST_WORD, SCENARIOS, Context, NpuprofError
from npuprof.resolve import Resolver
from npuprof.resolve.config import Config
from support.building import config, toml
from support.lanes import more_at_night

SEEDS = range(int(os.environ.get("NPUPROF_SEEDS", "4")))
PRODUCTS = ("atlas-a2", "atlas-a3", "atlas-training")
SPANS = (">=8.0", "9.0.0", ">=8.0,<9.0", ">=6.0.RC1,<7", "<8.0", "5.0.4")
BEFORE_TF2 = ("20.1", "20.2", "5.0.1")  # of a release that has no such target nothing is said
#: Values for any key: most are refused, what is taken must be written.
ODD: list[Any] = [
    "x", "a,b", 0, 1, 2, 3, -1, 1.5, "1", "auto", "", [], {}, "/tmp/x", "a b;c'd\"$x", "\u00e9", "x\n", "x\0y", ["MatMul"], {"a": 1},
    ["a", ""],
    [[1, 2], [3]], {"a": [1, -1]}, {"black-list": {"to-add": ["MatMul"]}}, "a" * LONGEST_WORD, ["a" * 70_000, "b" * 70_000],
]  # fmt: skip


@cache
def list_good_values(section: str, name: str, scenario: str | None) -> list[Any]:
    """Return values of a setting of which the checks have nothing to say."""
    finders = {"options": catalog.find_option, "env": catalog.find_variable, "atc": catalog.find_flag, "estimator": catalog.find_argument}
    record: Any = finders[section](name)
    example = catalog.find_record_texts(section, name).get("example")
    near = [example, *(getattr(record, word, None) for word in ("minimum", "maximum", "default")), *record.choices, True, False, *ODD]
    if section == "options" and isinstance(example, str):
        parsed = values.parse_structured_value(name, example)
        near += [parsed, *list_emptied(parsed)]
    profile = {"scenario": scenario} if scenario else {}
    return [value for value in near if value is not None and not list_loud_codes({"profile": profile, section: {name: value}}, "NP3")]


def list_emptied(value: Any) -> list[Any]:
    """Return a value with one of its lists, tables or texts emptied, for each of them."""
    places = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    found: list[Any] = [[]] if isinstance(value, list) else [{}] if isinstance(value, dict) else [""]
    for place in places:
        for inner in list_emptied(value[place]):
            copy = dict(value) if isinstance(value, dict) else list(value)
            copy[place] = inner
            found.append(copy)
    return found


def list_loud_codes(document: dict[str, Any], but: str = "none") -> list[str]:
    try:
        found = checks.check_config(config(toml(document)), notes=False)
    except NpuprofError as error:
        return [finding.code for finding in error.findings]
    return [finding.code for finding in found if not finding.code.startswith(but)]


def write_document(dice: random.Random) -> dict[str, Any]:
    """Return a random preset of values that are good by themselves, some of them in overrides."""
    scenario = dice.choice([None, *SCENARIOS])
    document: dict[str, Any] = {"profile": {"scenario": scenario} if scenario else {}}
    if dice.random() < 0.2:
        document["profile"] |= {"products": [dice.choice(PRODUCTS)], "cann": dice.choice(SPANS)}
    sections = ["options"] * 6 + ["env"] + (["atc"] * 4 if scenario == "offline-inference" else ["estimator"])
    words = {"target": dice.choice(targets.NAMES), "product": dice.choice(PRODUCTS), "cann": dice.choice(SPANS)}
    block: dict[str, Any] = {"match": {word: words[word] for word in dice.sample([*words], dice.choice([1, 2, 3]))}}
    for _ in range(dice.choice([1, 2, 3, 4, 6])):
        section = dice.choice(sections)
        name = dice.choice(catalog.record_names(section))
        if good := list_good_values(section, name, scenario):
            (block if dice.random() < 0.2 else document).setdefault(section, {})[name] = dice.choice(good)
    return {**document, "override": [block]} if len(block) > 1 else document


def resolve_for(text: str, context: Context) -> Config:
    return Resolver(refuse_parents, context).resolve_profile(Profile(parse_document("x", "x.toml", text)))


def refuse_parents(reference: str, *_: object) -> Profile:
    raise AssertionError(reference)


def list_ends(span: str) -> list[str]:
    """Return the first and the last release of a range."""
    covered = releases.find_releases_in_range(span) or ()
    return [covered[0], covered[-1]] if covered else []


def has_place(there: Config, target: renderers.Target) -> bool:
    """Return whether the catalogue has a place in a target for each setting, whatever its value."""
    for key, value in there.settings.items():
        option = catalog.find_option(key) if "." not in key else None
        if key.startswith("estimator.") and target.surface in ("atc", "global_options"):  # TF 2 has no Estimator of ours either
            return False
        if option is not None and target.surface in ("atc", "global_options") and target.surface not in option.spelling:
            return False
        if option is not None and target.surface in option.not_carried and not option.is_always(target.surface, value):
            return False
        if target.file == "ge_options.json" and option is not None and "ge_option" not in catalog.find_record_texts("options", key):
            return False
        argument = catalog.find_argument(key.partition(".")[2]) if key.startswith("estimator.") else None
        if argument is not None and target.file == "estimator_migrated.py" and not argument.run_config:
            return False
    return True


@pytest.mark.parametrize("seed", more_at_night(SEEDS[:1], SEEDS[1:]))
def test_a_clean_preset_renders_to_every_target_that_has_a_place_for_its_options(seed: int) -> None:
    dice, rendered = random.Random(seed), 0
    for _ in range(60):
        document = write_document(dice)
        if list_loud_codes(document):
            continue
        text, blocks = toml(document), document.get("override", [])
        for name in renderers.MODULES:
            target = renderers.load_target(name)
            scenario = document["profile"].get("scenario")
            if scenario and (scenario == "offline-inference") != target.offline and name not in ("toml", "json"):
                continue
            profile = document["profile"]
            spans = [list_ends(span) for span in (profile.get("cann", SPANS[0]), *(block["match"].get("cann", "") for block in blocks))]
            for product, cann in product_of((None, *profile.get("products", PRODUCTS)), (None, *chain(*spans))):
                if cann and "cann" in profile and cann not in (releases.find_releases_in_range(profile["cann"]) or ()):
                    continue
                if cann in BEFORE_TF2 and target.surface == "global_options":
                    continue
                there = resolve_for(text, Context(cann, product, name))
                if has_place(there, target):
                    if (not product or "products" in profile) and (not cann or "cann" in profile):
                        assert not [found for found in checks.check_before_export(there) if found.severity == "error"], (
                            name,
                            product,
                            cann,
                        )
                    assert target.render(there).text, name
                    rendered += 1
    assert rendered > 100


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('[options]\ngraph_slice = "manual"\n', "NP413"),
        ('[options]\ngraph_slice = "manual"\nhccl_timeout = 600\n', ""),
        ('[options]\ngraph_slice = "manual"\n[[override]]\nmatch = { target = "global-options" }\nunset = ["graph_slice"]\n', ""),
        (
            '[options]\ngraph_slice = "manual"\n[[override]]\nmatch = { target = "global-options" }\noptions = { graph_slice = "auto" }\n',
            "",
        ),
        (
            '[options]\ngraph_slice = "auto"\n[[override]]\nmatch = { product = "atlas-a3" }\noptions = { graph_slice = "manual" }\n',
            "NP413",
        ),
        ('[options]\ngraph_slice = "auto"\n[[override]]\nmatch = { target = "session" }\noptions = { graph_slice = "manual" }\n', ""),
        ('[profile]\nscenario = "offline-inference"\n[options]\nop_debug_list = []\n', "NP201"),
    ],
)
def test_a_value_that_some_target_cannot_write_is_told_unless_that_has_another(text: str, code: str) -> None:
    found = [finding.code for finding in checks.check_config(config(text), notes=False)]
    assert found == [code] * bool(code)


@pytest.mark.parametrize(
    ("option", "key"),
    [
        ('op_debug_config = { op_debug_config = ["oom"], op_debug_list = [] }', "op_debug_config.op_debug_list"),
        ("dynamic_dims = []", "dynamic_dims"),
        ("input_shape = { a = [] }", "input_shape"),
        ('modify_mixlist = { black-list = { to-add = [] } }\nprecision_mode_v2 = "mixed_float16"', ""),
    ],
)
@pytest.mark.parametrize("scenario", ["offline-inference", "training"])
def test_an_empty_list_is_found_where_it_cannot_be_written(option: str, key: str, scenario: str) -> None:
    there = config(f'[profile]\nscenario = "{scenario}"\n[options]\n{option}\n')
    errors = [finding.key for finding in checks.check_config(there) if finding.code in ("NP203", "NP204")]
    assert bool(errors) is bool(key), errors
    assert not key or errors[0].startswith(key)


def test_a_hint_for_a_target_is_taken() -> None:
    (finding,) = checks.check_config(config("[options]\ntopo_sorting_mode = 2\n"), notes=False)
    assert finding.hint == 'write one of 0, 1, here or in an [[override]] with match = { target = "global-options" }'


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f'[options]\nenable_scope_fusion_passes = "{"x" * LONGEST_WORD}"\n', "enable_scope_fusion_passes"),
        (f'[env]\nA = "{"x" * LONGEST_WORD}"\n', "env.A"),
        (f'[profile]\nscenario = "offline-inference"\n[atc]\nlog = "{"x" * LONGEST_WORD}"\n', "atc.log"),
        ('[profile]\nscenario = "offline-inference"\n[atc]\nmodel = "x\\u0000"\n', "atc.model"),
    ],
)
def test_what_no_program_can_be_started_with_is_found(text: str, key: str) -> None:
    assert [finding.key for finding in checks.check_config(config(text)) if finding.code == "NP203"] == [key]


ACCENT = '[options]\nop_debug_config = "é"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ACCENT, ["NP413"]),
        (f'[profile]\nscenario = "training"\n{ACCENT}', []),
        (f'[profile]\nscenario = "offline-inference"\n{ACCENT}', ["NP203"]),
        (f"[profile]\nabstract = true\n{ACCENT}", []),  # what it is for, heirs say
        (f"{ACCENT}[estimator]\nsave_summary_steps = 10\n", []),
        (f'{ACCENT}[[override]]\nmatch = {{ target = "atc" }}\nunset = ["op_debug_config"]\n', []),
        (f'{ACCENT}[[override]]\nmatch = {{ target = "atc" }}\noptions = {{ hccl_timeout = 600 }}\n', []),
        (f'{ACCENT}hccl_timeout = 600\n[[override]]\nmatch = {{ target = "atc" }}\nunset = ["hccl_timeout"]\n', ["NP413"]),
        (f'{ACCENT}[[override]]\nmatch = {{ target = "atc", cann = "<8.0" }}\nunset = ["op_debug_config"]\n', ["NP413"]),
        ('[options]\ntopo_sorting_mode = 2\n[atc]\nlog = "info"\n', ["NP413"]),  # for global-options only: ATC takes it
        ('[options]\nop_debug_config = "x.cfg"\n[atc]\nlog = "loud"\n', ["NP203"]),  # wrong for anybody, told once
        ('[options]\nprecision_mode = "force_fp16"\nprecision_mode_v2 = "fp16"\n', ["NP301"]),
        (f'{ACCENT.replace("é", "x")}[[override]]\nmatch = {{ product = "atlas-a3" }}\noptions = {{ op_debug_config = "é" }}\n', ["NP413"]),
    ],
)  # fmt: skip
def test_without_a_scenario_a_preset_of_flags_is_judged_as_atc_reads_it_as_well(text: str, expected: list[str]) -> None:
    found = checks.check_config(config(text), notes=False)
    assert [finding.code for finding in found] == expected


LATE = '[profile]\ncann = "{}"\n[options]\natomic_clean_policy = 1\n[[override]]\nmatch = {{ target = "global-options", {} }}\n{}\n'
TOLD = "atomic_clean_policy cannot be written for the target global-options in CANN 6.0.RC1"
OTHER = "options = { hccl_timeout = 600 }"


@pytest.mark.parametrize(
    ("span", "match", "change", "expected"),
    [
        (">=6.0.RC1", 'cann = "<6.3.RC1"', 'unset = ["atomic_clean_policy"]', []),
        (">=6.0.RC1", 'cann = ">=7"', 'unset = ["atomic_clean_policy"]', [TOLD]),
        (">=6.0.RC1", 'product = "atlas-a2"', 'unset = ["atomic_clean_policy"]', [TOLD]),
        (">=6.0.RC1", 'cann = "<6.3.RC1"', OTHER, []),  # there the target has no place for the preset
        (">=6.0.RC1", 'cann = ">=7"', OTHER, [TOLD]),
    ],
)
def test_what_a_target_cannot_write_is_told_for_the_releases_in_which_it_has_that(
    span: str, match: str, change: str, expected: list[str]
) -> None:
    found = checks.check_config(config(LATE.format(span, match, change)), notes=False)
    assert [finding.message for finding in found if finding.code == "NP413"] == expected
