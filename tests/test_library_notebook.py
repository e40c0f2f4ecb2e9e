"""The library typed line by line, as in a notebook: what is shown of a value, and what is offered after a dot or a bracket."""

from __future__ import annotations

import pytest

import npuprof

TEXT = '[profile]\nscenario = "training"\n[options]\nhccl_timeot = 1\nprecision_mode_v2 = "fp16"\n'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (lambda: npuprof.open_store("builtin:"), "npuprof.open_store('builtin:')"),
        (lambda: npuprof.loads(TEXT), "Config('<text>', 2 settings)"),
        (lambda: npuprof.loads(TEXT).origins("precision_mode_v2"), "[<Origin <text>:5, values of <text>>]"),
        (
            lambda: npuprof.check(npuprof.loads(TEXT))[0],
            "Finding(code='NP201', message=\"unknown option 'hccl_timeot'\", "
            "why='The adapter looks up its own list of keys; one that is not in it is ignored in silence.', "
            "hint=\"did you mean 'hccl_timeout'?\", origin=<Origin <text>:4, values of <text>>, key='hccl_timeot', "
            "profiles=('<text>',), severity='error')",
        ),
        (
            lambda: npuprof.diff(npuprof.loads(""), npuprof.loads("options.hccl_timeout = 1"))[0],
            "Change(key='hccl_timeout', kind='added', before=None, after=1, setting='hccl_timeout', unit='s', risk=('distributed',), "
            "origins=(None, <Origin <text>:1, values of <text>>))",
        ),
    ],
)
def test_what_is_shown_of_a_value_fits_a_cell(value: object, shown: str) -> None:
    assert repr(value()) == shown  # type: ignore[operator]


def test_what_is_offered_after_a_dot_is_for_users() -> None:
    config, store = npuprof.loads(TEXT), npuprof.open_store("builtin:")
    assert {name for name in dir(store) if not name.startswith("_")} == {"names", "resolve"}
    offered = {name for name in dir(config) if not name.startswith("_")}
    assert {"options", "env", "origins", "digest", "context", "keys"} <= offered
    assert not offered & {"memo", "resolver", "changes", "claims", "policy", "traced_value"}
    assert all(hasattr(config, name) for name in offered)
    assert set(npuprof.__all__) <= set(dir(npuprof))


def test_keys_are_offered_in_a_bracket() -> None:
    config = npuprof.loads(TEXT)
    assert config._ipython_key_completions_() == list(config) == ["precision_mode_v2", "hccl_timeot"]
