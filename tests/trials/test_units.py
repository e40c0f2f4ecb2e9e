"""What a combination consists of, on the presets of this repository.

Each change alone gives itself, all of them give the other end.
"""

from __future__ import annotations

from typing import Any

import pytest

import npuprof
from npuprof.catalog import load_built_part, load_rules
from npuprof.resolve.config import Config
from npuprof.resolve.digests import compute_digest
from npuprof.trials.combinations import Combinations, Difference, build_flat_config
from npuprof.trials.coupled_changes import tie_changes


def describe(difference: Difference, mask: int) -> list[tuple[str, str, str]]:
    """Return what came and what went, leaf by leaf: a list that came whole is its elements."""
    found = []
    for change in difference.select(mask):
        sides = (
            ("-", change.before, change.kind != "added"),
            ("+", change.after, change.kind != "removed"),
        )
        found += [
            (sign, change.setting, leaf)
            for sign, value, there in sides
            if there
            for leaf in list_leaves(value, change.tail)
        ]
    return sorted(found)


def list_leaves(value: Any, tail: tuple[Any, ...] = ()) -> list[str]:
    if isinstance(value, dict):
        return [leaf for name, item in value.items() for leaf in list_leaves(item, (*tail, name))]
    if isinstance(value, list) and all(isinstance(item, (str, int)) for item in value):
        return [f"{tail}{item!r}" for item in value]
    return [f"{tail}{value!r}"]


def load(text: str) -> Config:
    return npuprof.loads(text)


LISTS = (
    "options.modify_mixlist = {{ black-list = {{ to-add "
    "= [{}] }}, white-list = {{ to-add = [{}] }} }}\n"
)
PAIRS = {
    "lists that differ": (LISTS.format('"A", "B"', '"C"'), LISTS.format('"B", "D"', '"E", "F"')),
    "an element that went over": (LISTS.format('"A", "B"', '"C"'), LISTS.format('"A"', '"C", "B"')),
    "text beside the structured form": (
        "options.fusion_switch_file = './a.cfg'\n",
        "options.fusion_switch_file = './b.cfg'\n",
    ),
    "a table of members": (
        "options.profiling_options = { output = '/a', training_trace = 'on' }\n",
        "options.profiling_options = { output = '/b', task_trace = 'on' }\n",
    ),
    "what a launcher says": (
        "env.A = { launcher = 'rank' }\n",
        "env.A = { launcher = 'local-rank' }\nenv.B = 1\n",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_every_combination_differs_from_the_first_end_in_its_changes_alone(name: str) -> None:
    before, after = map(load, PAIRS[name])
    difference = Difference(before, after)
    assert compute_digest(difference.build_settings(0)) == before.digest
    assert compute_digest(difference.build_settings(difference.every)) == after.digest
    digests = set()
    for mask in range(difference.every + 1):
        config = build_flat_config(difference.build_settings(mask), after, "trial")
        again = Difference(before, config)
        assert describe(again, again.every) == describe(difference, mask)
        digests.add(config.digest)
    assert len(digests) == difference.every + 1


def test_nothing_that_goes_with_what_it_needs_breaks_a_rule() -> None:
    """Each rule of the catalogue, from nothing to its good example.

    The checks allow what remains without any one unit.
    """
    tried = 0
    cases = [*load_rules()]
    assert cases
    for rule in cases:
        text = load_built_part("rule_texts")["rules"][rule.code]["good"]
        difference = Difference(
            load(""), load(text if isinstance(text, str) else next(iter(text.values())))
        )
        combinations = Combinations(difference, "trial")
        units, drops = tie_changes(combinations)
        assert sum(units) == difference.every
        for unit in units:
            tried += 1
            assert not combinations.find_new_errors(difference.every & ~drops[unit]), rule.code
    assert tried > 50


@pytest.mark.parametrize(
    ("before", "after", "needed_by"),
    [
        pytest.param(
            "options.precision_mode = 'allow_fp32_to_fp16'",
            "options.precision_mode_v2 = 'fp16'",
            {"precision_mode": {"precision_mode_v2"}},
            id="one option replaces another",
        ),
        pytest.param(
            "",
            "options.precision_mode_v2 = 'mixed_float16'\n" + LISTS.format('"A"', '"B"'),
            {
                "precision_mode_v2": {
                    "modify_mixlist.black-list.to-add",
                    "modify_mixlist.white-list.to-add",
                }
            },
            id="lists that need a mode",
        ),
        pytest.param(
            "options.hccl_timeout = 600",
            "options.hccl_timeout = 900\nenv.X = 1",
            {},
            id="unrelated changes",
        ),
    ],
)
def test_what_a_change_needs_is_found_from_the_rules(
    before: str, after: str, needed_by: dict[str, set[str]]
) -> None:
    difference = Difference(load(before), load(after))
    units, drops = tie_changes(Combinations(difference, "trial"))
    found = {
        difference.select(unit)[0].key: {
            change.key for change in difference.select(drops[unit] & ~unit)
        }
        for unit in units
        if drops[unit] != unit
    }
    assert found == needed_by
