"""What a preset is for: its own word, else what is left of what it builds on.

What is laid over it narrows it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof.catalog import products, releases
from npuprof.store import spec
from support.building import build_store


def resolve(folder: Path, heads: dict[str, str], requested: str) -> Any:
    texts = {
        name: f"[profile]\n{head}\n[options]\nhccl_timeout = 600\n" for name, head in heads.items()
    }
    return spec.Workspace(str(build_store(folder, texts))).resolve_spec(requested)


@pytest.mark.parametrize(
    ("heads", "claims"),
    [
        ({"a": 'scenario = "training"'}, ("training", None, ())),
        (
            {"b": 'scenario = "training"', "a": 'extends = ["b"]\nscenario = "online-inference"'},
            ("online-inference", None, ()),
        ),
        (
            {"c": 'cann = ">=9.0"', "b": 'cann = ">=8.0"', "a": 'extends = ["c", "b"]'},
            (None, ">=9.0", ()),
        ),
        (
            {"c": 'cann = ">=8.0"', "b": 'cann = "<9.1"', "a": 'extends = ["c", "b"]'},
            (None, ">=8.0,<9.1", ()),
        ),
        (
            {
                "c": 'cann = ">=9.0"',
                "b": 'cann = ">=8.0"',
                "a": 'extends = ["c", "b"]\ncann = ">=8.0"',
            },
            (None, ">=8.0", ()),
        ),
        (
            {
                "b": 'products = ["atlas-a2"]',
                "c": 'products = ["atlas-a3", "atlas-a2-training"]',
                "a": 'extends = ["b", "c"]',
            },
            (None, None, ("atlas-a2-training",)),
        ),
        (
            {
                "b": 'products = ["Ascend910B2"]',
                "c": 'products = ["atlas-a2"]',
                "a": 'extends = ["b", "c"]',
            },
            (None, None, ("Ascend910B2",)),
        ),
        (
            {
                "d": 'scenario = "training"',
                "c": 'extends = ["d"]',
                "b": 'extends = ["d"]',
                "a": 'extends = ["c", "b"]',
            },
            ("training", None, ()),
        ),
    ],
)
def test_a_preset_is_for_what_all_it_builds_on_leaves_over(
    tmp_path: Path, heads: dict[str, str], claims: tuple[Any, ...]
) -> None:
    config = resolve(tmp_path, heads, "a")
    assert (config.scenario, config.cann, config.products) == claims


@pytest.mark.parametrize("how", ["a+b", "d", "e", "f"])
@pytest.mark.parametrize(
    ("left", "right", "what"),
    [
        ('scenario = "training"', 'scenario = "online-inference"', "two scenarios"),
        ('cann = "<8.0"', 'cann = ">=9.0"', "no CANN release"),
        ('versions.cann = "<8.0"', 'cann = ">=9.0"', "no CANN release"),
        (
            'versions.torch_npu = "<7.0"',
            'versions.torch_npu = ">=7.2"',
            "no release of torch_npu",
        ),
        ('products = ["atlas-a2"]', 'products = ["atlas-a3"]', "no product"),
    ],
)
def test_where_nothing_is_left_both_sides_are_named(
    tmp_path: Path, how: str, left: str, right: str, what: str
) -> None:
    heads = {"a": left, "b": right, "c": 'extends = ["a", "b"]', "d": 'extends = ["c"]'}
    heads |= {
        "e": 'extends = ["a", "c"]',
        "f": 'extends = ["b", "c"]',
    }  # a second parent that agrees with one side settles nothing
    with pytest.raises(npuprof.NpuprofError) as caught:
        resolve(tmp_path, heads, how)
    (finding,) = caught.value.findings
    assert finding.code == "NP108"
    assert finding.line == 2
    assert what in finding.message
    for name, head in (("a", left), ("b", right)):
        value = head.split('"')[1]
        assert f"for {value} by {name} ({tmp_path}/{name}.toml:2" in finding.message


RANGES = [">=8.0", "<9.1", ">=9.0", "==8.0.0", ">=7.0,<9.0", "!=8.0.0"]
FAMILIES = ["atlas-a2", "atlas-a2-training", "atlas-a3", "atlas-a3-inference", "atlas-training"]


@given(
    st.sampled_from(RANGES),
    st.sampled_from(RANGES),
    st.permutations(FAMILIES),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_what_is_left_is_what_both_cover(
    tmp_path: Path, left: str, right: str, names: list[str], first: int, second: int
) -> None:
    sides = [names[:first], names[-second:]]
    heads = {
        f"{name}": f'cann = "{cann}"\nproducts = {side}'
        for name, cann, side in zip("ab", (left, right), sides, strict=True)
    }
    covered = [
        {
            product
            for product in products.product_names()
            if any(products.is_product_covered(n, product) for n in side)
        }
        for side in sides
    ]
    known = [set(releases.find_releases_in_range(cann) or ()) for cann in (left, right)]
    try:
        config = resolve(tmp_path, heads, "a+b")
    except npuprof.NpuprofError:
        assert not covered[0] & covered[1] or not known[0] & known[1]
        return
    assert set(releases.find_releases_in_range(config.cann) or ()) == known[0] & known[1]
    assert {
        product
        for product in products.product_names()
        if any(products.is_product_covered(n, product) for n in config.products)
    } == (covered[0] & covered[1])
