"""Ids of parametrized cases."""

from __future__ import annotations

from typing import Any

import pytest

from support.case_ids import LONGEST, pytest_make_parametrize_id

RING: list[Any] = []
RING.append(RING)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(["show", "leaf"], "show leaf", id="arguments"),
        pytest.param([], "[]", id="an empty list"),
        pytest.param({"a": [1, None]}, "{'a': [1, None]}", id="a table"),
        pytest.param(["\ud800"], "\\ud800", id="a lone surrogate"),
        pytest.param(["x" * 99], f"{'x' * (LONGEST - 3)}...", id="a long text"),
        pytest.param([{"a", "b"}], None, id="a set has no order"),
        pytest.param([print], None, id="a function has an address"),
        pytest.param(RING, None, id="a list that contains itself"),
        pytest.param("text", None, id="pytest names a text itself"),
    ],
)
def test_a_case_is_named_by_its_plain_values(value: Any, expected: str | None) -> None:
    assert pytest_make_parametrize_id(value) == expected
