"""The memo of judged values: it saves work where presets share values, and must never change what is found."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof import catalog, checks
from npuprof.checks import judgement, rules
from npuprof.model import Finding, NpuprofError
from npuprof.resolve.config import Config
from npuprof.store import spec
from support import adapter
from support.building import build_store, toml

WORDS = st.sampled_from(["training", "online-inference", "offline-inference"])
PRODUCTS = st.sampled_from(["atlas-a2", "atlas-a3", "atlas-training", "ascend-950", "atlas-a2-training", "atlas-z9"])
RANGES = st.sampled_from([">=8.0", ">=9.0", ">=6.0,<7", "8.5.0", "<6"])
HEADS = st.fixed_dictionaries(
    {},
    optional={
        "scenario": WORDS,
        "cann": RANGES,
        "products": st.lists(PRODUCTS, max_size=2, unique=True),
        "abstract": st.booleans(),
        "unset": st.lists(st.sampled_from(["hccl_timeout", "dump_path", "precision_mode", "env.X"]), max_size=1),
        "locked": st.lists(st.sampled_from(["hccl_timeout", "precision_mode_v2"]), max_size=1),
    },
)
MATCHES = st.fixed_dictionaries(
    {}, optional={"product": PRODUCTS | st.lists(PRODUCTS, max_size=2), "cann": RANGES, "scenario": WORDS, "target": st.just("session")}
).filter(bool)

#: Values that are equal and do not read the same, and such as look alike.
ALIKE: list[Any] = [1, True, 1.0, "1", 0, False, 0.0, -0.0, "0", "true", [], {}, [1], [True], [1.0], ["1"], {"a": 1}, {"a": True}]
MEETING: dict[str, Any] = {
    "enable_data_pre_proc": st.just(True),
    "iterations_per_loop": st.sampled_from([1, 100]),
    "precision_mode_v2": st.sampled_from(["mixed_float16", "fp16", "mixed_bfloat16", "mixed_hif8", "origin"]),
    "precision_mode": st.sampled_from(["allow_mix_precision", "force_fp16", "allow_mix_precision_bf16"]),
    "modify_mixlist": st.sampled_from(["/m.json", {"black-list": {"to-add": ["MatMul"]}}, {}]),
    "op_debug_level": st.sampled_from([0, 1, 4]),
    "aoe_mode": st.sampled_from(["1", "3", "mdat"]),
    "mstune_mode": st.just("2"),
    "enable_small_channel": st.sampled_from([0, 1, True]),
    "stream_sync_timeout": st.sampled_from([60000, 1900000]),
    "hccl_timeout": st.sampled_from([10, 1800]),
    "experimental_accelerate_train_mode": st.sampled_from(["fast|step", ["fast", "step", "0.9"], "fast|step|0.9"]),
    "dynamic_dims": st.sampled_from(["1,2;3,4", [[1, 2], [3, 4]], [[1]]]),
    "input_shape": st.sampled_from(["a:-1;b:-1", {"b": [-1], "a": [-1]}]),
    "graph_run_mode": st.sampled_from([0, 1]),
    "a.b": st.sampled_from([1, "x"]),
    'quoted "key"': st.just(1),
    "stranger": st.sampled_from(ALIKE),
    "deterministic": st.sampled_from(ALIKE),
    "hcom_parallel": st.sampled_from(ALIKE),
}
VARIABLES = {
    "HCCL_EXEC_TIMEOUT": st.sampled_from([100, "3000", 1.5, "x"]),
    "RANK_ID": st.sampled_from([0, {"launcher": "rank"}]),
    "AOE_MODE": st.sampled_from([1, True, "1"]),
    "HCCL_IF_IP": st.just("10.0.0.1"),
    "DEVICE_ID": st.sampled_from([0, "0"]),
    "A.B": st.just(1),
}


@st.composite
def settings_of(draw: st.DrawFn) -> dict[str, Any]:
    """Draw options that mostly are fine, some that meet, now and then one that is not."""
    found = draw(adapter.combinations()) if draw(st.booleans()) else {}
    for name in draw(st.lists(st.sampled_from(catalog.record_names()), max_size=3)):
        option = catalog.find_option(name)
        assert option is not None
        example = catalog.find_record_texts("options", name).get("example")
        fine = [*option.choices, *([True, False] if option.field == "b" else []), *([example] if example is not None else [])]
        found[name] = draw(st.sampled_from(fine) if fine else st.integers(0, 3))
    for name in draw(st.lists(st.sampled_from(sorted(MEETING)), max_size=4)):
        found[name] = draw(MEETING[name])
    return found


@st.composite
def stores(draw: st.DrawFn) -> dict[str, str]:
    """Draw presets that inherit from one another, say the same things in different scopes, and override them here and there."""
    texts: dict[str, str] = {}
    shared = draw(st.lists(settings_of(), min_size=1, max_size=3))
    for number in range(draw(st.integers(2, 6))):
        head = draw(HEADS)
        if number:
            head["extends"] = draw(st.lists(st.sampled_from(sorted(texts)), max_size=2, unique=True))
        document: dict[str, Any] = {"profile": head, "options": draw(st.sampled_from(shared)) | draw(settings_of() | st.just({}))}
        document["env"] = draw(st.fixed_dictionaries({}, optional=VARIABLES))
        document["atc"] = draw(st.fixed_dictionaries({}, optional={"framework": st.sampled_from([3, "3"]), "log": st.just("info")}))
        blocks = draw(st.lists(st.tuples(MATCHES, st.sampled_from(shared) | settings_of()), max_size=2)) if draw(st.booleans()) else []
        document["override"] = [{"match": match, "options": options} for match, options in blocks]
        texts[f"p{number}"] = toml(document)
    return texts


class Forgetful(dict[Any, Any]):
    """A memo that keeps nothing: whoever asks it has to work out everything anew."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Forget it."""

    def setdefault(self, key: Any, default: Any = None) -> Self:
        return type(self)()


def resolve(workspace: spec.Workspace, name: str) -> Config | None:
    try:
        return workspace.resolve_spec(name)
    except NpuprofError:
        return None


def shown(found: list[Finding]) -> list[Any]:
    return [(str(one), one.why, one.key, one.profiles, str(one.origin), one.origin.path if one.origin else None) for one in found]


@given(
    stores(),
    st.sampled_from([None, "5.0.4", "8.0.0", "9.0.0"]),
    st.sampled_from([None, "atlas-a2-training", "atlas-training"]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_a_preset_is_judged_alike_whatever_was_judged_before(
    tmp_path: Path, texts: dict[str, str], cann: str | None, product: str | None, notes: bool, dice: random.Random
) -> None:
    folder = build_store(tmp_path / hashlib.sha256(repr(texts).encode()).hexdigest(), texts)
    context = spec.build_context(cann, product)
    common = spec.Workspace(str(folder), context)
    for name in dice.choices(sorted(texts), k=2 * len(texts)):
        fresh = spec.Workspace(str(folder), context)
        fresh.resolver.judged = Forgetful()
        with_memo, without = resolve(common, name), resolve(fresh, name)
        assert (with_memo is None) == (without is None)
        if with_memo is not None and without is not None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(rules, "_plan_rules", rules._plan_rules.__wrapped__)
                expected = shown(checks.check_config(without, notes))
            assert shown(checks.check_config(with_memo, notes)) == expected


@given(stores(), st.sampled_from([None, "8.0.0", "9.0.0"]), st.sampled_from([None, "atlas-a2-training", "atlas-training"]))
def test_without_notes_all_the_rest_is_found(tmp_path: Path, texts: dict[str, str], cann: str | None, product: str | None) -> None:
    workspace = spec.Workspace(
        str(build_store(tmp_path / hashlib.sha256(repr(texts).encode()).hexdigest(), texts)), spec.build_context(cann, product)
    )
    for name in texts:
        config = resolve(workspace, name)
        if config is not None:
            assert checks.check_config(config, notes=False) == [one for one in checks.check_config(config) if one.severity != "info"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("hcom_parallel = true", "hcom_parallel = 1"),
        ("deterministic = 1", "deterministic = true"),
        ("deterministic = 0.0", "deterministic = -0.0"),
        ("deterministic = 1", "deterministic = 1.0"),
        ("dump_path = 1979-05-27T07:32:00Z", "dump_path = 1979-05-27T08:32:00+01:00"),
        ("dump_step = [1]", "dump_step = [true]"),
        ("modify_mixlist = { black-list = { to-add = ['A'] } }", "modify_mixlist = { black-list = { to-add = [1] } }"),
        ("enable_data_pre_proc = true\niterations_per_loop = 100", "enable_data_pre_proc = true"),
    ],
)
def test_values_that_are_equal_or_look_alike_are_judged_apart(tmp_path: Path, first: str, second: str) -> None:
    texts = {"a": f"[options]\n{first}\n", "b": f"[options]\n{second}\n", "c": f"[options]\n{first}\n"}
    workspace = spec.Workspace(str(build_store(tmp_path, texts)))
    together = [[str(one) for one in checks.check_config(workspace.resolve_spec(name))] for name in texts]
    alone = [[str(one) for one in npuprof.check(npuprof.open_store(str(tmp_path)).resolve(name))] for name in texts]
    assert together == alone
    assert together[0] != together[1]


@pytest.mark.parametrize("value", ["'mixed_float16'", "{ black-list = { to-add = ['MatMul'] } }", "[1, 2]", "1.5", "true", "7"])
def test_a_value_that_many_inherit_is_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    texts = {"base": f"[options]\nstranger = {value}\n"} | {f"heir{n}": 'profile.extends = ["base"]' for n in range(5)}
    workspace = spec.Workspace(str(build_store(tmp_path, texts)))
    judged = []
    real = judgement._judge_value
    monkeypatch.setattr(judgement, "_judge_value", lambda there, key, *given: (judged.append(key), real(there, key, *given))[1])
    for name in texts:
        assert [one.code for one in checks.check_config(workspace.resolve_spec(name))] == ["NP201"]
    assert judged == ["stranger"]


def test_a_rule_is_asked_once_for_the_same_values_of_what_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = "[options]\nstream_sync_timeout = {}\nhccl_timeout = 1800\ndump_path = '/{}'\n"
    texts = {f"p{n}": pair.format(60000 if n < 4 else 1900000, n) for n in range(8)}
    workspace = spec.Workspace(str(build_store(tmp_path, texts)))
    asked = []
    real = rules._is_rule_broken
    monkeypatch.setattr(rules, "_is_rule_broken", lambda rule, view, family: (asked.append(rule.code), real(rule, view, family))[1])
    found = [[one.code for one in checks.check_config(workspace.resolve_spec(name)) if one.code == "NP378"] for name in texts]
    assert found == [["NP378"]] * 4 + [[]] * 4
    assert asked.count("NP378") == 2
