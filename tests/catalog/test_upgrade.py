"""What is in effect at releases of vLLM-Ascend, recorded of their own readers, for recipes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.upgrade_replay import (
    RELEASES,
    STEPS,
    Settings,
    can_judge,
    compare_effects,
    judge,
    load_base,
    load_recipes,
    make_settings,
    recall,
)

#: Why a release stops at a recipe that was written for another one.
REASONS = {
    "0.13.0": ["unrecognized arguments: --language-model-only"],
    "0.30.0rc2": [
        "enable_sparse_c8\n  Unexpected keyword argument",
        "multistream_dsa_preprocess\n  Unexpected keyword argument",
    ],
}
RECIPES = {recipe["name"]: recipe for recipe in load_recipes()}


def _recall(settings: Settings, release: str) -> dict[str, Any]:
    answer = recall(settings, release)
    assert answer is not None, f"{release}: python -m support.upgrade_replay records it"
    return answer


def test_the_recipes_are_facts_of_public_trees() -> None:
    assert len(RECIPES) > 70
    assert len({recipe["repository"] for recipe in RECIPES.values()}) > 5
    assert sum("vllm_ascend" in recipe["preset"] for recipe in RECIPES.values()) >= 40
    for recipe in RECIPES.values():
        assert re.fullmatch("[0-9a-f]{40}", recipe["commit"]), recipe["name"]
        assert recipe["preset"].keys() <= {"env", "vllm", "vllm_ascend"}
        assert not re.search(r"/home/|/root/|\d+\.\d+\.\d+\.\d+", str(recipe["preset"]))


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_judged_at_each_release(name: str) -> None:
    settings = make_settings(RECIPES[name]["preset"], RECIPES[name]["model"])
    for release in RELEASES:
        answer = _recall(settings, release)
        if "stops" in answer:
            assert any(reason in answer["stops"] for reason in REASONS.get(release, ())), release


#: Changes that the readers show, seen by eye in the sources of the releases too.
CHANGES = [
    # ascend_config.py: switched off with fused MC2 = 1
    ("0.18.0", "0.23.0", "ascend.multistream_overlap_shared_expert", True, False),
    # envs.py of vLLM has it no more
    ("0.18.0", "0.23.0", "env.VLLM_RPC_TIMEOUT", 3600000, None),
    # CacheConfig of vLLM: another default
    ("0.18.0", "0.23.0", "vllm.gpu_memory_utilization", 0.9, 0.92),
    # keys that the earlier release does not read, so that they do something for the first time
    ("0.18.0", "0.23.0", "ascend.enable_sparse_li_c8", None, True),
    ("0.18.0", "0.23.0", "env.VLLM_ASCEND_ENABLE_FLASHCOMM1", False, True),
    # ascend_config.py: follows enable_flashcomm1
    ("0.23.0", "0.26.0rc1", "ascend.enable_shared_expert_dp", False, True),
    # the same: chosen by attention_config.indexer_kv_dtype of vLLM
    ("0.26.0rc1", "0.30.0rc2", "ascend.enable_sparse_li_c8", True, False),
    ("0.13.0", "0.18.0", "ascend.enable_cpu_binding", False, True),
    ("0.13.0", "0.18.0", "env.VLLM_ASCEND_ENABLE_MLAPO", False, True),
]


@pytest.mark.parametrize(("old", "new", "name", "before", "after"), CHANGES)
def test_recipes_as_they_are_show_what_a_release_changes(
    old: str, new: str, name: str, before: Any, after: Any
) -> None:
    found = []
    for recipe in RECIPES.values():
        settings = make_settings(recipe["preset"], recipe["model"])
        answers = _recall(settings, old), _recall(settings, new)
        if not any("stops" in answer for answer in answers):
            found += compare_effects(*answers, (old, new))
    assert (name, before, after) in [(each.name, each.old, each.new) for each in found]


@pytest.mark.parametrize("step", STEPS, ids="-".join)
def test_settings_that_a_release_moves_are_compared_where_they_are(step: tuple[str, str]) -> None:
    old, new = step
    usual = {"effective": load_base(old), "links": {}}
    later = {"effective": load_base(new), "links": {}}
    moved = {each.new_name for each in compare_effects(usual, later, step)}
    if old == "0.23.0":
        # the defaults of the scheduler's table are equal, so that nothing of it differs
        assert "ascend.scheduler_config.enable_balance_scheduling" in later["effective"]
        assert not any("scheduler_config" in str(name) for name in moved)


@pytest.mark.nightly("catalog/test_upgrade.py::test_a_recipe_is_judged_at_each_release")
@pytest.mark.timeout(900)
@pytest.mark.skipif(not can_judge(), reason="the sources that the judge runs are not at hand")
@pytest.mark.parametrize("release", RELEASES)
def test_the_records_are_what_a_release_says(release: str) -> None:
    lines = [make_settings(recipe["preset"], recipe["model"]) for recipe in RECIPES.values()]
    for settings, answer in zip(lines, judge(lines, release), strict=True):
        assert _recall(settings, release).get("effective") == answer.get("effective")
