"""The memo of judged values: it saves work where presets share values, and changes no finding."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import random
import tomllib
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof import catalog, checks
from npuprof.catalog import code_pages, products, releases
from npuprof.checks import judging, rules, setting_values
from npuprof.checks.view import Scope
from npuprof.document import keys
from npuprof.model import Context, NpuprofError
from npuprof.resolve import contexts
from npuprof.store import spec
from support.building import build_store, examples, toml

#: The tables of the examples of each code: what is wrong, what is right, in overrides too.
EXAMPLES: list[dict[str, Any]] = []
for _page in code_pages.load_pages().values():
    for _text in (*_page.bad.values(), *_page.good.values()):
        with contextlib.suppress(tomllib.TOMLDecodeError):
            EXAMPLES.append(tomllib.loads(_text))
#: Values that are equal and do not read the same, and such as look alike.
ALIKE: list[Any] = [
    1,
    True,
    1.0,
    "1",
    0,
    False,
    0.0,
    -0.0,
    "0",
    "true",
    [],
    {},
    [1],
    [True],
    [1.0],
    ["1"],
    {"a": 1},
    {"a": True},
]


@st.composite
def stores(draw: st.DrawFn) -> dict[str, str]:
    """Draw presets that inherit from one another; some share examples of values."""
    texts: dict[str, str] = {}
    shared = draw(st.lists(st.sampled_from(EXAMPLES), min_size=1, max_size=4))
    for number in range(draw(st.integers(2, 6))):
        document: dict[str, Any] = {
            "profile": {},
            "options": {
                draw(st.sampled_from(["stranger", "deterministic"])): draw(st.sampled_from(ALIKE))
            },
        }
        for table in draw(
            st.lists(st.sampled_from(shared) | st.sampled_from(EXAMPLES), max_size=3)
        ):
            for section, block in table.items():
                document[section] = (
                    [*document.get(section, []), *block]
                    if isinstance(block, list)
                    else {**document.get(section, {}), **block}
                )
        document["profile"]["extends"] = (
            draw(st.lists(st.sampled_from(sorted(texts)), max_size=2, unique=True)) if texts else []
        )
        texts[f"p{number}"] = toml(document)
    return texts


class Forgetful(dict[Any, Any]):
    """A memo that keeps nothing: whoever asks it has to work out everything anew."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Forget it."""

    def setdefault(self, key: Any, default: Any = None) -> Self:
        return type(self)()


def judge(workspace: spec.Workspace, name: str, notes: bool = True) -> list[Any]:
    """Return all that is said of a preset, or why it does not resolve."""
    try:
        found = checks.check_config(workspace.resolve_spec(name), notes)
    except NpuprofError as error:
        found = list(error.findings)
    return [
        (
            finding.severity,
            str(finding),
            finding.why,
            finding.key,
            finding.profiles,
            str(finding.origin),
            finding.origin.path if finding.origin else None,
        )
        for finding in found
    ]


@examples(30)
@given(
    stores(),
    st.sampled_from([None, "5.0.4", "9.0.0"]),
    st.sampled_from([None, "atlas-a2-training", "atlas-training"]),
    st.randoms(use_true_random=False),
)
def test_a_preset_is_judged_alike_whatever_was_judged_before(
    tmp_path: Path,
    texts: dict[str, str],
    cann: str | None,
    product: str | None,
    dice: random.Random,
) -> None:
    folder = build_store(tmp_path / hashlib.sha256(repr(texts).encode()).hexdigest(), texts)
    context = spec.build_context(cann, product)
    common = spec.Workspace(str(folder), context)
    cases = [*dice.choices(sorted(texts), k=2 * len(texts))]
    assert cases
    for name in cases:
        fresh = spec.Workspace(str(folder), context)
        fresh.resolver.judged = Forgetful()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rules, "_plan_rules", rules._plan_rules.__wrapped__)
            expected = judge(fresh, name)
        assert judge(common, name) == expected
        assert judge(common, name, notes=False) == [
            finding for finding in expected if not finding[0].startswith("info")
        ]


@pytest.mark.parametrize(
    "value",
    ["'mixed_float16'", "{ black-list = { to-add = ['MatMul'] } }", "[1, 2]", "1.5", "true", "7"],
)
def test_a_value_that_many_inherit_is_judged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    texts = {"base": f"[options]\nstranger = {value}\n"} | {
        f"heir{n}": 'profile.extends = ["base"]' for n in range(5)
    }
    workspace = spec.Workspace(str(build_store(tmp_path, texts)))
    judged = []
    real = judging._judge_value
    monkeypatch.setattr(
        judging,
        "_judge_value",
        lambda there, key, *rest: (judged.append(key), real(there, key, *rest))[1],
    )
    assert texts
    for name in texts:
        assert [finding.code for finding in checks.check_config(workspace.resolve_spec(name))] == [
            "NP201"
        ]
    assert judged == ["stranger"]


@pytest.mark.parametrize("scenario", [None, "training", "online-inference", "offline-inference"])
@pytest.mark.parametrize("surface", ["", "atc"])
def test_all_plain_folders_of_an_option_have_the_same_faults(
    scenario: str | None, surface: str
) -> None:
    folders = [
        each.name for each in catalog.list_records(catalog.Option) if each.kind == "path-dir"
    ]
    assert len(folders) > 3
    for release, family in [(None, None), *itertools.product(("5.0.4", "9.0.0"), ("atlas-a2",))]:
        there = Scope(scenario, (release,) if release else (), (family,) if family else (), surface)
        for key in folders:
            faults = [
                judging._judge_value(there, key, value, False)
                for value in ("a", "./dump/7", "/var/x_y-z.d", "_" * 4_000)
                if setting_values.is_plain_folder(key, value)
            ]
            assert len(faults) == 4
            assert faults == faults[:1] * 4, key


@pytest.mark.parametrize("value", ["", "a b", "~/a", "$HOME", "_" * 5_000])
def test_a_folder_that_may_have_a_fault_of_its_own_is_not_plain(value: str) -> None:
    assert setting_values.is_plain_folder("dump_path", "a")
    assert not setting_values.is_plain_folder("dump_path", value)
    assert not setting_values.is_plain_folder("modify_mixlist", "a")


def test_presets_with_folders_of_their_own_judge_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {f"p{n}": f"[options]\ndump_path = './dump/{n}'\n" for n in range(5)}
    texts["p9"] = "[options]\ndump_path = '$HOME/dump'\n"
    workspace = spec.Workspace(str(build_store(tmp_path, texts)))
    judged = []
    real = judging._judge_value
    monkeypatch.setattr(
        judging,
        "_judge_value",
        lambda there, key, value, *rest: (judged.append(value), real(there, key, value, *rest))[1],
    )
    found = {name: checks.check_config(workspace.resolve_spec(name), False) for name in texts}
    assert judged == ["./dump/0", "$HOME/dump"]
    assert [finding.code for finding in found.pop("p9")] == ["NP211"]
    assert not any(found.values())


def test_a_rule_that_reads_tables_is_asked_once_for_equal_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = (
        "profile.scenario = 'training'\n[env.PYTORCH_NPU_ALLOC_CONF]\n"
        "expandable_segments = true\nmax_split_size_mb = {}\n"
    )
    texts = {f"p{n}": table.format(64 if n < 4 else 128) for n in range(8)}
    workspace = spec.Workspace(str(build_store(tmp_path, texts)))
    requested = []
    real = rules._find_spans
    monkeypatch.setattr(
        rules, "_find_spans", lambda rule, view: (requested.append(rule.code), real(rule, view))[1]
    )
    found = [
        [finding.code for finding in checks.check_config(workspace.resolve_spec(name))]
        for name in texts
    ]
    assert found == found[:1] * 8
    assert requested.count(found[0][0]) == 2, found


def test_a_rule_is_asked_once_for_the_same_values_of_what_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = "[options]\nstream_sync_timeout = {}\nhccl_timeout = 1800\ndump_path = '/{}'\n"
    texts = {f"p{n}": pair.format(60000 if n < 4 else 1900000, n) for n in range(8)}
    workspace = spec.Workspace(str(build_store(tmp_path, texts)))
    requested = []
    real = rules._is_rule_broken
    monkeypatch.setattr(
        rules,
        "_is_rule_broken",
        lambda rule, view, family: (requested.append(rule.code), real(rule, view, family))[1],
    )
    found = [
        [
            finding.code
            for finding in checks.check_config(workspace.resolve_spec(name))
            if finding.code == "NP378"
        ]
        for name in texts
    ]
    assert found == [["NP378"]] * 4 + [[]] * 4
    assert requested.count("NP378") == 2


def test_a_rule_is_decided_only_for_presets_with_arguments_of_its_program(tmp_path: Path) -> None:
    texts = {
        "base": "[env]\nASCEND_LAUNCH_BLOCKING = '1'\n",
        "plain": "profile.extends = ['base']\n",
        "served": "profile.extends = ['base']\n[vllm]\nmax-model-len = 1024\n",
        "eager": "profile.extends = ['served']\n[vllm]\nno-enforce-eager = false\n",
    }
    folder = str(build_store(tmp_path, texts))
    for names in (list(texts), list(texts)[::-1]):
        workspace = spec.Workspace(folder)
        found = {
            name: "NP3120" in [finding.code for finding in checks.check_config(config)]
            for name in names
            if (config := workspace.resolve_spec(name))
        }
        assert found == {"base": False, "plain": False, "served": True, "eager": False}


CONTEXTS = tuple(
    [Context(cann=name) for name in releases.load_releases()]
    + [Context(product=name) for name in products.load_products()]
)


@pytest.mark.parametrize(
    "claimed",
    [
        ("<=8.0.0", ["atlas-a2"]),
        (">=6.0.1,<9.0.0", ["atlas-a2", "atlas-a3"]),
        (">=8.5", ["atlas-a3"]),
    ],
)
@pytest.mark.parametrize("scenario", ["training", "online-inference"])
def test_what_is_clean_for_all_that_a_preset_claims_is_clean_for_each_of_it(
    scenario: str, claimed: tuple[str, list[str]]
) -> None:
    clean = 0
    cases = [*catalog.record_names()]
    assert cases
    for name in cases:
        option = catalog.find_option(name)
        assert option is not None
        example = catalog.find_record_texts("options", name).get("example")
        for value in (
            *option.choices,
            *option.choices_until,
            option.minimum,
            option.maximum,
            option.default,
            example,
        ):
            if value is None:
                continue
            text = (
                f"profile = {{ scenario = '{scenario}', cann = '{claimed[0]}', products = "
                f"{claimed[1]} }}\noptions.{name} = "
            )
            config = npuprof.loads(text + keys.format_toml_value(value))
            known = checks.find_clean_contexts(config, checks.check_config(config), CONTEXTS)
            for context, codes in zip(CONTEXTS, known, strict=True):
                if codes is not None:
                    found = checks.check_config(
                        contexts.resolve_elsewhere(config, context) or config, notes=False
                    )
                    assert {finding.code for finding in found} >= {*codes}, (
                        config.options,
                        context,
                    )
                    assert codes or not found, (config.options, context)
                    clean += not codes
    assert clean > 100, clean
