"""The contexts that overrides name: which they are, and what a preset is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import npuprof
from npuprof import checks
from npuprof.document.profile import Override
from npuprof.model import Context
from npuprof.resolve import contexts
from npuprof.resolve.config import Config
from npuprof.resolve.lineages import has_overrides
from npuprof.store.spec import Workspace
from support.building import REPOSITORY, build_store

NOTHING = Context()
A3, A2 = "atlas-a3", "atlas-a2"


def describe_points(
    match: dict[str, Any], requested: Context = NOTHING
) -> list[tuple[tuple[Any, ...], str]]:
    values = {
        name: (value,) if isinstance(value, str) else tuple(value) for name, value in match.items()
    }
    points = []
    for context, axes in contexts.list_override_points(
        Override(values, (), "override 1"), requested
    ):
        description = ", ".join(f"{axis} {text}" for axis, text in axes)
        context_fields = (context.cann, context.product, context.target, *context.versions)
        points.append((context_fields, description))
    return points


@pytest.mark.parametrize(
    ("match", "requested", "expected"),
    [
        ({"product": A3}, NOTHING, [((None, A3, None), "product atlas-a3")]),
        ({"product": "atlas-z9"}, NOTHING, [((None, "atlas-z9", None), "product atlas-z9")]),
        ({"product": []}, NOTHING, []),
        ({"cann": ">=8.0,<9"}, NOTHING, [(("8.5.0", None, None), "cann >=8.0,<9")]),
        ({"cann": "<20.1"}, NOTHING, []),
        (
            {"cann": ["8.0.0", "no range", "9.0.0"]},
            NOTHING,
            [
                (("8.0.0", None, None), "cann 8.0.0"),
                (("9.0.0", None, None), "cann 9.0.0"),
            ],
        ),
        (
            {"target": ["session", "keras"]},
            NOTHING,
            [
                ((None, None, "session"), "target session"),
                ((None, None, "keras"), "target keras"),
            ],
        ),
        ({"scenario": "training"}, NOTHING, [((None, None, None), "")]),
        (
            {"target": "session", "cann": ["8.0.0", "9.0.0"], "product": [A3, A2]},
            NOTHING,
            [
                (("8.0.0", A3, "session"), "product atlas-a3, cann 8.0.0, target session"),
                (("9.0.0", A3, "session"), "product atlas-a3, cann 9.0.0, target session"),
                (("8.0.0", A2, "session"), "product atlas-a2, cann 8.0.0, target session"),
                (("9.0.0", A2, "session"), "product atlas-a2, cann 9.0.0, target session"),
            ],
        ),
        (
            {"torch_npu": [">=7.3", "2.7.1"]},
            NOTHING,
            [
                ((None, None, None, ("torch_npu", "26.2.0-beta.1")), "torch_npu >=7.3"),
                ((None, None, None, ("torch_npu", "7.2.0")), "torch_npu 2.7.1"),
            ],
        ),
        # what was asked for stays
        (
            {"torch_npu": ">=7.3"},
            Context(versions=(("torch_npu", "7.1.0"),)),
            [((None, None, None, ("torch_npu", "7.1.0")), "")],
        ),
        ({"product": A3}, Context(None, A2, None), [((None, A2, None), "")]),
        (
            {"target": "session", "product": A3},
            Context(None, None, "keras"),
            [((None, A3, "keras"), "product atlas-a3")],
        ),
    ],
)
def test_an_override_names_contexts(
    match: dict[str, Any], requested: Context, expected: list[tuple[tuple[Any, ...], str]]
) -> None:
    assert describe_points(match, requested) == expected


BLOCK = "[[override]]\nmatch = {{ {} }}\noptions.hccl_timeout = {}\n"


def resolved_in(config: Config, context: Context) -> dict[str, Any]:
    there = contexts.resolve_elsewhere(config, context)
    assert there is not None
    return there.settings


@pytest.mark.parametrize("cann", [None, "8.0.0", "9.0.0"])
@pytest.mark.parametrize("product", [None, A3])
@pytest.mark.parametrize("target", [None, "session"])
def test_what_is_resolved_elsewhere_is_what_is_resolved_there_at_once(
    tmp_path: Path, cann: str | None, product: str | None, target: str | None
) -> None:
    texts = {
        "base": "options.hccl_timeout = 1\n"
        + BLOCK.format('cann = ">=9.0"', 2)
        + BLOCK.format(f'product = "{A3}"', 3),
        "leaf": 'profile.extends = ["base"]\n' + BLOCK.format('target = "session"', 4),
    }
    store = npuprof.open_store(str(build_store(tmp_path, texts)))
    config = store.resolve("leaf")
    expected = store.resolve("leaf", cann=cann, product=product, target=target).settings
    assert resolved_in(config, Context(cann, product, target)) == expected
    assert config.settings == {"hccl_timeout": 1}


@pytest.mark.parametrize(("cann", "product"), [("8.0.0", None), (None, A3), ("9.0.0", A2)])
def test_a_preset_without_overrides_is_told_the_same_elsewhere_as_when_it_is_resolved_there(
    cann: str | None, product: str | None
) -> None:
    store = npuprof.open_store(str(REPOSITORY / "profiles"))
    plain = [config for config in map(store.resolve, store) if not has_overrides(config.lineage)]
    assert len(plain) > 20
    for config in plain:
        elsewhere = contexts.resolve_elsewhere(config, Context(cann, product))
        resolved = store.resolve(config.name, cann=cann, product=product)
        assert elsewhere == resolved
        assert elsewhere is not None
        assert list(elsewhere) == list(resolved)
        assert [elsewhere.origins(key) for key in resolved] == list(map(resolved.origins, resolved))
        assert checks.judge_config(elsewhere) == checks.judge_config(resolved)
        assert config.context == NOTHING


def test_all_who_ask_for_a_context_share_one_resolver_until_the_profiles_are_others(
    tmp_path: Path,
) -> None:
    workspace = Workspace(
        str(
            build_store(tmp_path, {"a": "options.hccl_timeout = 1", "b": 'profile.extends = ["a"]'})
        )
    )
    resolver = workspace.resolver
    there = resolver.for_context(Context(None, A3, None))
    assert there is resolver.for_context(Context(None, A3, None))
    assert there is not resolver.for_context(Context(None, A2, None))
    assert there.context == Context(None, A3, None)
    assert there.judged is resolver.judged
    resolver.forget_lineages(0)
    assert there is not resolver.for_context(Context(None, A3, None))


class PendingCase(NamedTuple):
    """A profile, the match of its override, and the missing flags with its lines."""

    profile: str
    match: str
    requested: dict[str, Any]
    expected: dict[str, Any]


@pytest.mark.parametrize(
    "case",
    [
        PendingCase(
            profile="", match=f'product = "{A3}"', requested={}, expected={"--product": [4]}
        ),
        PendingCase(profile="", match=f'product = "{A3}"', requested={"product": A2}, expected={}),
        PendingCase(
            profile="",
            match=f'product = "{A3}", cann = ">=9.0"',
            requested={},
            expected={"--product and --cann": [4]},
        ),
        PendingCase(
            profile="",
            match=f'product = "{A3}", cann = ">=9.0"',
            requested={"cann": "9.0.0"},
            expected={"--product": [4]},
        ),
        PendingCase(
            profile="", match=f'product = "{A3}", scenario = "training"', requested={}, expected={}
        ),
        PendingCase(
            profile='scenario = "training"',
            match=f'product = "{A3}", scenario = "training"',
            requested={},
            expected={"--product": [4]},
        ),
        PendingCase(profile="", match='scenario = "training"', requested={}, expected={}),
        PendingCase(
            profile=f'products = ["{A2}"]', match=f'product = "{A3}"', requested={}, expected={}
        ),
        PendingCase(
            profile=f'products = ["{A3}"]', match='product = "Atlas-A3"', requested={}, expected={}
        ),
        PendingCase(profile='cann = ">=9.0"', match='cann = "<9.0"', requested={}, expected={}),
        PendingCase(
            profile='cann = ">=9.0"', match='cann = ">=8.5"', requested={}, expected={"--cann": [4]}
        ),
    ],
    ids=lambda case: f"{case.match} {case.requested}",
)
def test_overrides_that_only_wait_to_be_asked_for_are_known(
    case: PendingCase,
) -> None:
    text = f"[profile]\n{case.profile}\n[options]\n{BLOCK.format(case.match, 1)}"
    found = contexts.find_unasked_overrides(npuprof.loads(text, **case.requested))
    assert {
        flags: [origin.line for origin in origins] for flags, origins in found.items()
    } == case.expected
