"""The screen before the checks: it may save work, and must never change what is found."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import adapter
from building import build_store, toml
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof import catalog, checks
from npuprof.model import Finding

WORDS = st.sampled_from(["training", "online-inference", "offline-inference"])
HEADS = st.fixed_dictionaries(
    {},
    optional={
        "scenario": WORDS,
        "cann": st.sampled_from([">=8.0", ">=9.0", ">=6.0,<7", "8.5.0"]),
        "products": st.lists(st.sampled_from(["atlas-a2", "atlas-a3", "atlas-training", "ascend-950"]), max_size=2, unique=True),
        "abstract": st.booleans(),
        "unset": st.lists(st.sampled_from(["hccl_timeout", "dump_path", "precision_mode", "env.X"]), max_size=1),
        "locked": st.lists(st.sampled_from(["hccl_timeout", "precision_mode_v2"]), max_size=1),
    },
)


@st.composite
def settings_of(draw: st.DrawFn) -> dict[str, Any]:
    """Draw options that mostly are fine, some that meet, now and then one that is not."""
    found = draw(adapter.combinations()) if draw(st.booleans()) else {}
    for name in draw(st.lists(st.sampled_from(catalog.record_names()), max_size=3)):
        option = catalog.find_option(name)
        assert option is not None
        example = catalog.find_record_texts("options", name).get("example")
        fine = [*option.choices, *([True, False] if option.field == "b" else []), *([example] if example is not None else [])]
        found[name] = draw(st.sampled_from(fine) if fine else st.integers(0, 3))
    found |= draw(
        st.fixed_dictionaries({}, optional={"enable_data_pre_proc": st.just(True), "iterations_per_loop": st.sampled_from([1, 100])})
    )
    return found


@st.composite
def stores(draw: st.DrawFn) -> dict[str, str]:
    texts: dict[str, str] = {}
    for number in range(draw(st.integers(2, 6))):
        head = draw(HEADS)
        if number:
            head["extends"] = draw(st.lists(st.sampled_from(sorted(texts)), max_size=2, unique=True))
        document = {"profile": head, "options": draw(settings_of())}
        document["env"] = draw(
            st.fixed_dictionaries(
                {}, optional={"HCCL_EXEC_TIMEOUT": st.sampled_from([100, "3000"]), "RANK_ID": st.just(0), "AOE_MODE": st.just(1)}
            )
        )
        texts[f"p{number}"] = toml(document)
    return texts


@given(stores(), st.sampled_from([None, "8.0.0", "9.0.0"]), st.sampled_from([None, "atlas-a2-training", "atlas-training"]))
def test_screened_or_not_the_findings_are_the_same(tmp_path: Path, texts: dict[str, str], cann: str | None, product: str | None) -> None:
    folder = build_store(tmp_path / hashlib.sha256(repr(texts).encode()).hexdigest(), texts)
    library = npuprof.open_store(str(folder))
    for name in texts:
        try:
            config = library.resolve(name, cann=cann, product=product)
        except npuprof.NpuprofError:
            continue
        assert shown(checks.check_config(config, notes=False)) == shown(f for f in checks.check_config(config) if f.severity != "info")


def shown(findings: Any) -> list[str]:
    return sorted(map(str, findings))


def quiet(text: str) -> list[Finding]:
    return checks.check_config(npuprof.loads(text), notes=False)


def test_a_store_with_the_same_names_is_another_store(tmp_path: Path) -> None:
    good = {"base": "options.hccl_timeout = 5", "leaf": 'profile.extends = ["base"]\noptions.deterministic = 1'}
    bad = {"base": "options.hccl_timeot = 5", "leaf": 'profile.extends = ["base"]\noptions.deterministic = 1'}
    for folder, texts, number in (("good", good, 0), ("bad", bad, 1), ("better", good, 0)):
        library = npuprof.open_store(str(build_store(tmp_path / folder, texts)))
        assert len(checks.check_config(library.resolve("leaf"), notes=False)) == number


def test_what_is_fine_beside_one_option_is_not_beside_another() -> None:
    loops = "[options]\niterations_per_loop = 100\nenable_data_pre_proc = true\n"
    alone = "[options]\nenable_data_pre_proc = true\n"
    for _ in range(2):
        assert [finding.code for finding in quiet(loops)] == []
        assert [finding.code for finding in quiet(alone)] == ["NP501"]
