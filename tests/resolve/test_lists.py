"""Lists that layers change: a second implementation, digests, notes, and old releases."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import npuprof
from npuprof import checks
from npuprof.catalog import values
from npuprof.document import keys, parse_document
from npuprof.document.profile import Profile
from npuprof.model import Context
from npuprof.resolve import FixedPolicy, Resolver
from npuprof.resolve.config import Config
from npuprof.resolve.digests import compute_digest, compute_preset_digest
from support.building import config, resolve
from support.repositories import Repo
from support.running import Run

MIXLIST = "options.modify_mixlist.black-list.to-add"
#: A list without an order, and one with an order: where each is written, its setting and path.
LISTS: dict[str, tuple[str, tuple[str, ...]]] = {
    MIXLIST: ("modify_mixlist", ("black-list", "to-add")),
    "vllm.allowed-origins": ("vllm.allowed-origins", ()),
}
OPERATIONS = ("unset", "set", "remove", "append")

# -- a second implementation ----------------------------------------------------------------------

elements = st.lists(st.sampled_from("abcd"), max_size=4)
blocks = st.dictionaries(
    st.sampled_from(OPERATIONS), st.dictionaries(st.sampled_from([*LISTS]), elements), max_size=4
)
#: Each layer has its own values, and those of an override that applies.
layers = st.lists(st.tuples(blocks, blocks), min_size=1, max_size=5)


def write_block(block: dict[str, dict[str, list[str]]]) -> str:
    lines = []
    if "unset" in block:
        names = [LISTS[name][0] for name in block["unset"]]
        lines.append(f"unset = {keys.format_toml_value(names)}")
    for op, prefix in (("append", "append."), ("set", ""), ("remove", "remove.")):
        lines += [
            f"{prefix}{name} = {keys.format_toml_value(listed)}"
            for name, listed in block.get(op, {}).items()
        ]
    return "\n".join(lines) + "\n"


def write_layer(layer: tuple[dict[str, Any], dict[str, Any]]) -> str:
    own, override = layer
    text = write_block(own)
    text = f"profile.{text}" if "unset" in own else text
    block = f'[[override]]\nmatch = {{ product = "atlas-a3" }}\n{write_block(override)}'
    return text + (block if override else "")


def fold_by_hand(
    written: list[tuple[dict[str, Any], dict[str, Any]]], counts: Counter[str]
) -> dict[str, list[tuple[str, int]]]:
    """Return each list as pairs of an element and the number of the layer that it is from."""
    state: dict[str, list[tuple[str, int]]] = {}
    for number, layer in enumerate(written):
        for block in layer:
            for name in block.get("unset", {}):
                state.pop(name, None)
            for name, listed in block.get("set", {}).items():
                state[name] = [(item, number) for item in listed]
            for name, listed in block.get("remove", {}).items():
                if name in state:
                    left = [pair for pair in state[name] if pair[0] not in listed]
                    counts["removed"] += len(left) < len(state[name])
                    state[name] = left
            for name, listed in block.get("append", {}).items():
                state.setdefault(name, [])
                for item in listed:
                    if name == MIXLIST and any(item == known for known, _ in state[name]):
                        counts["known"] += 1
                    else:
                        state[name].append((item, number))
    return state


def test_lists_are_those_of_a_second_implementation_with_the_layer_of_each_element() -> None:
    counts: Counter[str] = Counter()

    @settings(max_examples=300, deadline=None)
    @given(layers)
    def compare(written: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        lineage = tuple(
            Profile(parse_document(f"p{number}", f"p{number}", write_layer(layer)))
            for number, layer in enumerate(written)
        )
        assert not [problem for profile in lineage for problem in profile.problems]
        resolver = Resolver(FixedPolicy(None, lineage[-1]), Context(product="atlas-a3"))
        resolved = resolver.resolve_members(lineage, "p", {})
        expected = fold_by_hand(written, counts)
        for name, (key, tail) in LISTS.items():
            is_set, listed = values.find_setting_value(resolved.settings, key, tail)
            assert is_set == (name in expected)
            if is_set:
                traced = values.find_value(key, resolved.traced_value(key), tail)[1]
                assert listed == [item for item, _ in expected[name]]
                assert [(leaf.value, int(leaf.origin.profile[1:])) for leaf in traced] == (
                    expected[name]
                )

    compare()
    assert counts["removed"] >= 60, counts
    assert counts["known"] >= 60, counts


# -- digests --------------------------------------------------------------------------------------

BASE = '[profile]\nscenario = "training"\n[options]\nprecision_mode_v2 = "mixed_float16"\n'
ADDS = '[append.options.modify_mixlist]\nblack-list = {{ to-add = ["Cast", "{}"] }}\n'
TWICE = {
    "base": BASE,
    "m1": f"[profile]\nabstract = true\n{ADDS.format('Mul')}",
    "m2": f"[profile]\nabstract = true\n{ADDS.format('Add')}",
    "leaf": '[profile]\nextends = ["base", "m1", "m2"]\n',
}


@pytest.mark.parametrize(
    ("child", "same"),
    [
        ("", True),
        ("[remove]\n", True),
        ("[remove.options]\n", True),
        ('[remove.options.modify_mixlist]\nblack-list = { to-add = ["Cast"] }\n', False),
    ],
    ids=["nothing", "an empty table", "an empty section", "an element"],
)
def test_only_what_is_removed_is_part_of_the_preset_digest(child: str, same: bool) -> None:
    alone = config("[options]\ndeterministic = 1\n")
    digest = config(f"[options]\ndeterministic = 1\n{child}").preset_digest
    assert (digest == alone.preset_digest) is same


@pytest.mark.parametrize("form", [1, 2])
def test_a_release_that_had_an_element_twice_is_still_what_its_tag_records(
    tmp_path: Path, run: Run, form: int
) -> None:
    repo = Repo(tmp_path)
    repo.commit(TWICE)
    resolved = npuprof.open_store().resolve("leaf@HEAD")
    once = {"black-list": {"to-add": ["Cast", "Mul", "Add"]}}
    assert resolved.settings["modify_mixlist"] == once
    # as older npuprof resolved it, and released it
    twice = {"black-list": {"to-add": ["Cast", "Mul", "Cast", "Add"]}}
    digest = compute_digest({**resolved.settings, "modify_mixlist": twice}, form)
    lines = [f"Digest: {digest}"]
    preset_digest = compute_preset_digest(resolved.lineage, 2)
    lines += [f"Preset-Digest: {preset_digest}", "Digest-Form: 2"] if form == 2 else []
    repo.git("tag", "-a", "leaf/v1.0.0", "-m", "leaf 1.0.0\n\n" + "\n".join(lines))
    done = run("verify", "--tags", "--format", "json")
    assert done.code == 0, done.out
    assert run("verify", "--tags").code == 0
    other = compute_digest({**resolved.settings, "modify_mixlist": {}}, form)
    repo.git("tag", "-f", "-a", "leaf/v1.0.0", "-m", f"leaf 1.0.0\n\nDigest: {other}")
    assert run("verify", "--tags").code == 1


# -- notes and causes -----------------------------------------------------------------------------

SHIPPED = '[vllm]\nallowed-origins = ["a", "b"]\n'


def list_notes(resolved: Config) -> list[tuple[str, str, int]]:
    return [
        (finding.code, finding.message, finding.line)
        for finding in checks.check_config(resolved)
        if finding.code in ("NP714", "NP715")
    ]


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        ('remove.vllm.allowed-origins = ["a"]', []),
        (
            'remove.vllm.allowed-origins = ["a", "c"]',
            [("NP714", 'vllm.allowed-origins has no ["c"]', 2)],
        ),
        (
            'remove.vllm.middleware = ["m"]',
            [("NP714", 'vllm.middleware has no ["m"]', 2)],
        ),
        (
            'append.vllm.allowed-origins = ["c", "b"]',
            [("NP715", 'vllm.allowed-origins has already ["b"]', 2)],
        ),
        (
            'remove.vllm.allowed-origins = ["b"]\nappend.vllm.allowed-origins = ["b"]',
            [],
        ),
        (
            '[[override]]\nmatch = { product = "atlas-a3" }\n'
            'remove.vllm.allowed-origins = ["a", "c"]',
            [("NP714", 'vllm.allowed-origins has no ["c"] on atlas-a3', 4)],
        ),
    ],
    ids=["there", "not there", "no list", "twice", "moved to the end", "in an override"],
)
def test_what_a_layer_changes_in_vain_is_a_note_at_its_line(
    child: str, expected: list[tuple[str, str, int]], tmp_path: Path
) -> None:
    presets = {"base": SHIPPED, "leaf": f'profile.extends = ["base"]\n{child}\n'}
    resolved = resolve(tmp_path, presets, "leaf")
    assert list_notes(resolved) == expected


def test_two_mixins_with_one_element_are_a_note_only_if_the_order_counts(tmp_path: Path) -> None:
    presets = {
        **TWICE,
        "m1": TWICE["m1"] + '[append.vllm]\nallowed-origins = ["a"]\n',
        "m2": TWICE["m2"] + '[append.vllm]\nallowed-origins = ["b", "a"]\n',
    }
    resolved = resolve(tmp_path, presets, "leaf")
    assert list_notes(resolved) == [("NP715", 'vllm.allowed-origins has already ["a"]', 6)]
    assert resolved.settings["vllm.allowed-origins"] == ["a", "b", "a"]


def test_explain_shows_what_was_removed_and_by_which_line(tmp_path: Path, run: Run) -> None:
    repo = Repo(tmp_path)
    removal = '\n[remove.options.modify_mixlist]\nblack-list = { to-add = ["Cast"] }\n'
    repo.commit({**TWICE, "leaf": TWICE["leaf"] + removal})
    key = "modify_mixlist.black-list.to-add"
    shown = run("explain", "leaf", key).out
    assert 'removed      ["Cast"] by leaf (profiles/leaf.toml:4, remove)' in shown
    assert "overridden" not in shown
    answer = json.loads(run("explain", "leaf", key, "--format", "json").out)
    assert [(item["value"], item["line"]) for item in answer["removed"]] == [(["Cast"], 4)]
    assert [winner["profile"] for winner in answer["winners"]] == ["m1", "m2"]


def test_diff_names_the_line_that_removes_an_element_or_has_it_again(
    tmp_path: Path, run: Run
) -> None:
    repo = Repo(tmp_path)
    repo.commit(TWICE)
    removal = '\n[remove.options.modify_mixlist]\nblack-list = { to-add = ["Cast"] }\n'
    repo.commit({"leaf": TWICE["leaf"] + removal})
    gone = run("diff", "--rev", "HEAD~1..HEAD").out
    assert '- modify_mixlist.black-list.to-add "Cast"' in gone
    assert "profiles/leaf.toml:5" in gone
    repo.commit({"leaf": TWICE["leaf"]})
    back = run("diff", "--rev", "HEAD~1..HEAD").out
    assert '+ modify_mixlist.black-list.to-add "Cast"' in back
    assert "profiles/m1.toml:4" in back


def test_a_locked_list_cannot_lose_an_element(tmp_path: Path) -> None:
    presets = {
        "base": f'profile.locked = ["vllm.allowed-origins"]\n{SHIPPED}',
        "leaf": 'profile.extends = ["base"]\nremove.vllm.allowed-origins = ["a"]\n',
    }
    (finding,) = [
        finding
        for finding in checks.check_config(resolve(tmp_path, presets, "leaf"))
        if finding.code == "NP105"
    ]
    assert (finding.path, finding.line) == (f"{tmp_path}/leaf.toml", 2)
