"""The presets that npuprof ships: each alone, each behind each, and each written down for every target of its scenario."""

from __future__ import annotations

import itertools

import pytest

import npuprof
from npuprof import renderers
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
def test_a_preset_says_when_to_use_it_and_when_not(name: str) -> None:
    description = STORE.store.profile(name).table["description"]
    assert description.startswith(("Use it ", "Add it ", "Extend it "))
    if not name.startswith("base/"):
        assert any(word in description for word in (" not ", "Not ", "never ", "Never ", ";", "If ")), description


@pytest.mark.parametrize("model", MODELS)
def test_an_overlay_behind_a_model_is_clean_or_truly_refused(model: str) -> None:
    for overlay in OVERLAYS:
        if overlay != model:
            assert find_codes(f"{model}+{overlay}", ("error",)) <= REFUSED.keys(), overlay


def test_a_dump_is_clean_behind_a_server_too() -> None:
    assert find_codes("resnet-inference-fp16+mixins/data-dump", ("error", "warning")) == set()


@pytest.mark.parametrize("overlay", [name for name in OVERLAYS if name.startswith("mixins/")])
def test_an_overlay_is_clean_behind_some_model(overlay: str) -> None:
    assert any(not find_codes(f"{model}+{overlay}", ("error", "warning")) for model in MODELS)


def test_each_refusal_happens() -> None:
    pairs = itertools.product(MODELS, OVERLAYS)
    assert set().union(*(find_codes(f"{model}+{overlay}", ("error",)) for model, overlay in pairs if model != overlay)) == REFUSED.keys()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("target", renderers.MODULES)
def test_a_preset_is_rendered_where_each_of_its_options_has_a_place(name: str, target: str) -> None:
    config = STORE.resolve(name, target=target)
    offline = config.scenario == "offline-inference"
    if offline != (target in OFFLINE) and target not in ("toml", "json"):
        return
    surface = renderers.load_target(target).surface
    from npuprof import catalog

    options = [option for key in config.options if (option := catalog.find_option(key))]
    if surface and not all(surface in option.spelling for option in options):
        return
    if target == "ge" and not all("ge_option" in catalog.find_record_texts("options", option.name) for option in options):
        return
    assert find_codes(name, ("error", "warning"), target) == set()
    assert render_unchecked(config, target)


def test_the_shipped_presets_show_what_a_preset_can_say() -> None:
    tables = [STORE.store.profile(name) for name in NAMES]
    matched = {key for profile in tables for override in profile.overrides for key in override.match}
    assert {"product", "cann", "target"} <= matched
    assert any("owner" in profile.table for profile in tables)
    assert any(step.key.startswith("estimator.") for profile in tables for step in profile.steps)
    assert any("@" in reference for profile in tables for reference in profile.extends)


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_says_when_not_to_use_it(name: str) -> None:
    description = STORE.store.profile(name).table["description"]
    words = (" not ", "Not ", "Never ", " never ", "no other", "starts no cluster", "after.")
    assert any(word in description for word in words), description


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_names_the_pages_that_its_values_rest_on(name: str) -> None:
    (line,) = [line for line in STORE.store.profile(name).document.text.splitlines() if line.startswith("# Manuals: ")]
    assert len(line) > len("# Manuals: x")
