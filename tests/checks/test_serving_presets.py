"""The shipped presets of ``serving/``: clean at their release, with their source, and small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import npuprof
from npuprof.catalog import releases
from npuprof.document.profile import Profile
from support.building import REPOSITORY, render_unchecked
from support.running import Run, expect

STORE = npuprof.open_store(str(REPOSITORY / "profiles"))
BASES = [name for name in STORE.store.names() if name.startswith("serving/base/")]
SERVED = [name for name in STORE.store.names() if name.startswith("serving/") and name not in BASES]
#: The release whose tutorials they follow, and its repair.
RELEASES = ("0.23.0", "0.23.0.post1")
SOURCE = re.compile(
    r"# Source: section [\d.]+.* of https://github\.com/vllm-project/vllm-ascend/blob/v0\.23\.0/"
    r"docs/source/tutorials/models/[\w.-]+\.md"
)
NAME = re.compile(r"serving/(?P<model>[a-z0-9.-]+?)(?:-(?P<product>a[23]))?(?:-(prefill|decode))?")
#: What a preset for every host and user never sets.
PER_HOST = {
    "vllm": {
        "host",
        "port",
        "served-model-name",
        "headless",
        "allowed-local-media-path",
        "data-parallel-address",
        "data-parallel-rpc-port",
        "data-parallel-rank",
        "data-parallel-start-rank",
    },
    "env": {"ASCEND_RT_VISIBLE_DEVICES", "HCCL_IF_IP", "LD_PRELOAD", "LD_LIBRARY_PATH"},
}


def list_own_settings(profile: Profile) -> list[str]:
    """Return the lines of a preset that set something: those of its sections but [profile]."""
    section = ""
    lines = []
    for line in profile.document.text.splitlines():
        if line.startswith("["):
            section = line
        elif line and not line.startswith("#") and section != "[profile]":
            lines.append(line)
    return lines


def test_twelve_models_at_least_are_served_in_each_role_and_bases_are_few() -> None:
    names = [NAME.fullmatch(name) for name in SERVED]
    assert len({name["model"] for name in names if name}) >= 12
    families = ("qwen3-8b", "qwen3-30b", "qwen3-vl", "deepseek-v3", "deepseek-r1", "kimi", "glm")
    for family in families:
        assert any(name.startswith(f"serving/{family}") for name in SERVED), family
    assert {role for name in names if name for role in name.groups()[2:]} == {
        None,
        "prefill",
        "decode",
    }
    assert len(BASES) <= 6
    assert all(STORE.resolve(name).abstract for name in BASES)


@pytest.mark.parametrize("name", SERVED)
def test_a_served_model_names_source_release_and_product_and_has_a_short_leaf(name: str) -> None:
    profile, config = STORE.store.profile(name), STORE.resolve(name)
    first = profile.document.text.splitlines()[0]
    assert SOURCE.fullmatch(first), first
    assert config.versions["vllm_ascend"] == ">=0.23.0,<=0.23.0.post1"
    assert set(config.products) <= {"atlas-a2", "atlas-a3"}
    product = NAME.fullmatch(name)["product"]  # type: ignore[index]
    assert not product or config.products == (f"atlas-{product}",)
    assert len(list_own_settings(profile)) <= 15
    model = config.sections()["vllm"]["model"]
    assert model.count("/") == 1, "a public name, not a path"
    assert not model.startswith("/")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", SERVED)
def test_a_served_model_is_clean_at_its_release_and_rendered(name: str, release: str) -> None:
    assert release in releases.load_releases("vllm_ascend")
    for product in STORE.resolve(name).products:
        config = STORE.resolve(
            name, target="vllm", product=product, versions={"vllm_ascend": release}
        )
        found = npuprof.check(config)
        assert [one for one in found if one.severity != "info"] == []
        for section, keys in PER_HOST.items():
            assert not keys & config.sections()[section].keys()
        assert render_unchecked(config, "vllm")


@pytest.mark.parametrize("prefill", [name for name in SERVED if name.endswith("-prefill")])
def test_prefill_and_decode_nodes_agree_on_the_model_and_on_both_shapes(prefill: str) -> None:
    both = [
        STORE.resolve(name).sections()["vllm"]
        for name in (prefill, prefill[: -len("prefill")] + "decode")
    ]
    transfers = [one["kv-transfer-config"] for one in both]
    assert [one["kv_role"] for one in transfers] == ["kv_producer", "kv_consumer"]
    shapes = [one["kv_connector_extra_config"] for one in transfers]
    assert shapes[0] == shapes[1]
    assert both[0]["model"] == both[1]["model"]
    for one, role in zip(both, ("prefill", "decode"), strict=True):
        assert shapes[0][role] == {
            "dp_size": one["data-parallel-size"],
            "tp_size": one["tensor-parallel-size"],
        }


def test_serving_presets_are_listed_together_and_need_no_trust(tmp_path: Path, run: Run) -> None:
    names = [line.split()[0] for line in run("list", "--store", "builtin:").out.splitlines()]
    first = names.index(SERVED[0])
    assert names[first : first + len(SERVED) + len(BASES)] == SERVED + BASES
    expect(run("render", f"builtin:{SERVED[0]}", "--to", "vllm", "-o", str(tmp_path / "out")), 0)
