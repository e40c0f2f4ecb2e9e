"""What a base and mix-ins take out of many presets: only what makes the whole shorter, and never what an heir has to take back."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.scripts.sharing import FILE_LINES, Pair, choose_base, choose_mixins, measure_alone, measure_family


def pairs(text: str) -> frozenset[Pair]:
    """Return the pairs of a word: a letter is a key that is 1, with an apostrophe behind it one that is 2."""
    return frozenset((letter, "2" if text[at + 1 : at + 2] == "'" else "1") for at, letter in enumerate(text) if letter != "'")


@pytest.mark.parametrize(
    ("leaves", "base", "heirs"),
    [
        (["ab", "abc", "abd", "abe", "abf", "abg", "abh"], "ab", 7),
        (["ab", "abc", "abd"], "", 0),  # what three save does not pay for a file
        (["abcx", "abcy", "abcz", "abcu", "abcv"], "abc", 5),
        (["abcx", "abcy", "abcz", "abcu", "abcv", "ab"], "abc", 5),  # the last one would have to take c back
        (["abcx", "abcy", "abcz", "abcu", "ab'cv", "ab'cw"], "abc", 6),  # the last ones overrule b
        (["abcx", "abcy", "abcz", "abcu", *(f"{letter}q" for letter in "ghijklmnoprst")], "", 0),  # for a few only
        (["a", "a", "a", "a", "a", "a", "a", "a"], "", 0),  # an entry of extends is as long as the line
        (["abcdef"], "", 0),
        ([], "", 0),
    ],
)
def test_a_base_holds_what_is_shorter_to_say_once(leaves: list[str], base: str, heirs: int) -> None:
    found, users = choose_base([pairs(leaf) for leaf in leaves], lambda key: True)
    assert (found, len(users)) == (pairs(base), heirs)


def test_a_base_is_not_overruled_where_values_would_be_merged() -> None:
    leaves = [pairs(leaf) for leaf in ("abcx", "abcy", "abcz", "abcu", "ab'cv", "ab'cw")]
    assert choose_base(leaves, lambda key: key != "b") == (pairs("abc"), {0, 1, 2, 3})


@pytest.mark.parametrize(
    ("leaves", "shared"),
    [
        (["abcd", "abcdx", "abcdy"], ["abcd"]),
        (["abcd", "abcd"], []),
        (["abcdef", "abcdefx"], []),
        (["abcdefg", "abcdefgx"], ["abcdefg"]),
        (["ab", "abx", "aby", "abz", "abu", "abv", "abw"], ["ab"]),
        (["abc", "abcx", "abcy", "abcz", "ab'c"], ["abc"]),
        (["abcdx", "abcdy", "abcdz", "efghx", "efghy", "efghz"], ["abcd", "efgh"]),
    ],
)
def test_a_mixin_is_made_where_it_saves_lines(leaves: list[str], shared: list[str]) -> None:
    found = choose_mixins([pairs(leaf) for leaf in leaves], lambda pair: "one")
    assert sorted(sorted(mixin) for mixin, _ in found) == sorted(sorted(pairs(word)) for word in shared)


def test_a_mixin_is_about_two_things_at_most() -> None:
    leaves = [pairs(f"abcdef{letter}") for letter in "tuvwxyz"]
    topics = dict(zip("abcdeftuvwxyz", "1122334567890", strict=True))
    assert sorted(len(mixin) for mixin, _ in choose_mixins(leaves, lambda pair: topics[pair[0]])) == [2, 4]


LEAVES = st.lists(st.frozensets(st.sampled_from([(key, value) for key in "abcdefghij" for value in "12"]), max_size=10), max_size=12).map(
    lambda leaves: [frozenset(dict(sorted(leaf)).items()) for leaf in dict.fromkeys(leaves)]
)


@given(LEAVES)
def test_a_family_is_never_longer_than_its_leaves(leaves: list[frozenset[Pair]]) -> None:
    base, heirs = choose_base(leaves, lambda key: key != "a")
    own = [leaf - base if at in heirs else leaf for at, leaf in enumerate(leaves)]
    parents = [int(at in heirs) for at in range(len(leaves))]
    shared = [base] if base else []
    for mixin, users in choose_mixins(own, lambda pair: pair[0] if pair[0] > "h" else ""):
        shared.append(mixin)
        for at in users:
            assert mixin <= own[at]
            own[at] -= mixin
            parents[at] += 1
    for at in heirs:
        assert {key for key, _ in base} <= {key for key, _ in leaves[at]}
    assert measure_family(shared, zip(parents, own, strict=True)) <= measure_alone(leaves)
    assert measure_alone(leaves) == sum(map(len, leaves)) + FILE_LINES * len(leaves)


@given(LEAVES, st.randoms(use_true_random=False))
def test_the_order_of_the_leaves_means_nothing(leaves: list[frozenset[Pair]], rng: random.Random) -> None:
    mixed = rng.sample(leaves, len(leaves))
    assert choose_base(leaves, lambda key: True)[0] == choose_base(mixed, lambda key: True)[0]
    assert [mixin for mixin, _ in choose_mixins(leaves, lambda pair: "")] == [mixin for mixin, _ in choose_mixins(mixed, lambda pair: "")]
