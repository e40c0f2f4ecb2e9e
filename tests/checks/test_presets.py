"""The shipped presets: each alone, each composed with each, each rendered for every target.

The targets are those of its scenario.
"""

from __future__ import annotations

import pytest

import npuprof
from npuprof import catalog, renderers
from npuprof.model import NpuprofError
from support.building import REPOSITORY, render_unchecked

STORE = npuprof.open_store(str(REPOSITORY / "profiles"))
NAMES = STORE.store.names()
MODELS = [name for name in NAMES if "/" not in name]
OVERLAYS = [name for name in NAMES if name.startswith(("mixins/", "debug-"))]
OFFLINE = ("atc", "ge", "toml", "json")

#: What the manuals, or a preset by its own word, refuse: why two presets do not go together.
REFUSED = {
    "NP105": "a lock of the model",
    "NP108": "another scenario, or no product that both are for",
    "NP303": "a list for mixed precision, and no mixed precision",
    "NP307": "accelerated training lowers the precision by itself",
    "NP315": "sizes that are listed, and any size",
    "NP316": "sizes that are listed, and mixed computing",
    "NP317": "sizes that are listed, and tuning",
    "NP347": "two dumps",
}


def find_codes(spec: str, severities: tuple[str, ...], target: str | None = None) -> set[str]:
    """Return the codes of what is found in a spec of the store, whether or not it resolves."""
    try:
        found = npuprof.check(STORE.resolve(spec, target=target))
    except NpuprofError as error:
        found = list(error.findings)
    return {finding.code for finding in found if finding.severity in severities}


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_says_what_it_is_for_when_to_use_it_when_not_and_on_which_pages_it_rests(
    name: str,
) -> None:
    profile = STORE.store.profile(name)
    description = profile.table["description"]
    assert description.startswith(("Use it ", "Add it ", "Extend it "))
    exclusions = (" not ", "Not ", "Never ", " never ", "no other", "starts no cluster", "after.")
    assert any(exclusion in description for exclusion in exclusions), description
    (line,) = [
        line for line in profile.document.text.splitlines() if line.startswith("# Manuals: ")
    ]
    assert len(line) > len("# Manuals: x")
    config = STORE.resolve(name)
    assert config.scenario or name.startswith("mixins/")  # those fit whatever they are laid over
    assert config.cann or config.versions
    assert config.products
    assert config.abstract or not name.startswith(("base/", "mixins/"))


def test_an_overlay_behind_a_model_is_clean_or_truly_refused_and_clean_behind_some_model() -> None:
    loud = {
        (model, over): find_codes(f"{model}+{over}", ("error", "warning"))
        for model in MODELS
        for over in OVERLAYS
        if model != over
    }
    errors = {
        pair: find_codes("+".join(pair), ("error",)) if codes else set()
        for pair, codes in loud.items()
    }
    assert [pair for pair, codes in errors.items() if codes - REFUSED.keys()] == []
    assert set().union(*errors.values()) == REFUSED.keys(), "each refusal happens"
    assert {over for over in OVERLAYS if over.startswith("mixins/")} <= {
        over for (_, over), codes in loud.items() if not codes
    }
    assert loud["resnet-inference-fp16", "mixins/data-dump"] == set(), "a server takes a dump too"


def has_place(name: str, target: str) -> bool:
    """Return whether a target is of the preset's scenario and supports each of its options."""
    config, surface = STORE.resolve(name, target=target), renderers.load_target(target).surface
    if (config.scenario == "offline-inference") != (target in OFFLINE) and target not in (
        "toml",
        "json",
    ):
        return False
    options = [option for key in config.options if (option := catalog.find_option(key))]
    if target == "ge" and not all(
        "ge_option" in catalog.find_record_texts("options", option.name) for option in options
    ):
        return False
    return not surface or all(surface in option.spelling for option in options)


@pytest.mark.parametrize("target", renderers.load_target_index())
def test_a_preset_is_rendered_where_each_of_its_options_has_a_place(target: str) -> None:
    placed = [name for name in MODELS if has_place(name, target)]
    assert len(placed) >= (3 if target in ("atc", "ge") else 5), placed
    for name in placed:
        assert find_codes(name, ("error", "warning"), target) == set()
        # an @file without arguments is empty: it has no comments
        assert render_unchecked(STORE.resolve(name, target=target), target) or target == "args-file"
