"""Recipes that are migrated to later releases, judged by what the releases' readers make of them.

What was in effect before is in effect after, or a step or report of ``migrate`` names it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.upgrade_replay import (
    STEPS,
    WITHOUT_EFFECT,
    Difference,
    Replayed,
    can_judge,
    compare_effects,
    is_off,
    judge,
    list_shipped,
    load_recipes,
    migrate,
    recall,
)

#: As many reports that nothing on an NPU is behind a recipe may have at a step.
MOST_IDLE = 3
#: Reports of migrating; others are findings that the preset has at the release anyway.
CODES = ("NP511", "NP512")
#: The catalogue knows vLLM's arguments and variables since 0.18.0.
UNKNOWN = {"0.13.0": ("vllm.", "env.VLLM_")}
RECIPES = load_recipes()


class Step:
    """A step that all recipes are migrated over, with the answers of the judge."""

    def __init__(self, folder: Path, releases: tuple[str, str]) -> None:
        self.releases = old, new = releases
        self.replayed = migrate(folder, [*RECIPES, *list_shipped(old)], releases)
        self.answers = {
            name: (recall(each.settings, old), recall(each.migrated, new))
            for name, each in self.replayed.items()
        }
        if can_judge():
            names = [name for name, answers in self.answers.items() if None in answers]
            before = judge([self.replayed[name].settings for name in names], old)
            after = judge([self.replayed[name].migrated for name in names], new)
            self.answers |= {name: pair for name, *pair in zip(names, before, after, strict=True)}

    def list_differences(self) -> dict[str, list[Difference]]:
        """Return what differs, by recipe; without those that a release stops at."""
        unknown = UNKNOWN.get(self.releases[0], ())
        return {
            name: [
                each
                for each in compare_effects(old, new, self.releases)
                if each.name.startswith("env.VLLM_ASCEND_") or not each.name.startswith(unknown)
            ]
            for name, (old, new) in self.answers.items()
            if old and new and "stops" not in old and "stops" not in new
        }


@pytest.fixture(scope="module", params=STEPS, ids="-".join)
def step(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Step:
    return Step(tmp_path_factory.mktemp("step"), request.param)


def test_most_are_judged(step: Step) -> None:
    unknown = [name for name, answers in step.answers.items() if None in answers]
    assert len(unknown) < len(RECIPES) / 20, "python -m support.upgrade_replay records them"
    assert len(step.list_differences()) > 70


def test_nothing_in_effect_changes_without_a_report(step: Step) -> None:
    silent: dict[str, list[str]] = {}
    for name, differences in step.list_differences().items():
        for each in differences:
            if not step.replayed[name].names(each):
                silent.setdefault(each.name, []).append(name)
    assert silent == {}


def test_no_setting_is_lost_without_a_report(step: Step) -> None:
    assert {name: lost for name, each in step.replayed.items() if (lost := each.list_lost())} == {}


def test_a_release_that_stops_was_reported(step: Step) -> None:
    for name, (old, new) in step.answers.items():
        if new and "stops" in new and not (old and "stops" in old):
            keys = {row["key"].rpartition(".")[2] for row in step.replayed[name].reports}
            assert any(key in new["stops"] for key in keys), (name, new["stops"])
            assert not new.get("unclear"), (name, new["stops"])


def test_few_reports_are_about_nothing(step: Step) -> None:
    for name, differences in step.list_differences().items():
        each = step.replayed[name]
        effective = step.answers[name][1]
        assert effective is not None
        idle = [row for row in each.reports if _is_noise(row, each, differences, effective)]
        assert len(idle) <= MOST_IDLE, (name, [row["message"] for row in idle])


def _is_noise(
    row: dict[str, Any], each: Replayed, differences: list[Difference], answer: dict[str, Any]
) -> bool:
    """Return whether a report of migrating is about nothing that is in effect on an NPU."""
    if row["code"] not in CODES:
        return False
    alone = each._replace(reports=[row], steps=[])
    if any(alone.names(difference) for difference in differences):
        return False
    names = [name for name in answer["effective"] if alone.names(_made_up(name))]
    # what the judge does not see may be right
    return any(name in WITHOUT_EFFECT or is_off(name, answer["effective"]) for name in names) or (
        row["code"] == "NP511"
    )


def _made_up(name: str) -> Difference:
    return Difference(name, None, None, None, given=False)
