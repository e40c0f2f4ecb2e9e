"""``copy`` of presets that npuprof ships, into stores that lack their parents."""

from __future__ import annotations

from itertools import product

import pytest

import npuprof
from npuprof.catalog.products import load_products
from npuprof.catalog.releases import list_frameworks, load_releases
from npuprof.document.profile import Override
from npuprof.model import Context
from npuprof.store import spec
from npuprof.store.folder import open_builtin_store
from support.running import Run, Store, expect

SHIPPED = open_builtin_store().names()


def list_contexts(store: str, name: str) -> list[Context]:
    """Return every product with the releases at which an override of a preset may begin or end."""
    workspace = spec.Workspace(store)
    config = workspace.resolve_spec(name)
    matched: dict[str, None] = {}
    overrides: list[Override] = [o for profile in config.lineage for o in profile.overrides]
    for override in overrides:
        matched |= dict.fromkeys(override.match)
    axes = [axis for axis in ("cann", *list_frameworks()) if axis in matched]
    products = [*config.products, *(p for o in overrides for p in o.match.get("product", ()))]
    every = [
        [None, *dict.fromkeys(products or load_products())],
        *([None, *load_releases(axis)] for axis in axes),
        [None, "torch-npu", "vllm", "session"] if "target" in matched else [None],
    ]
    contexts = []
    for chosen, *releases, target in product(*every):
        by_axis = {axis: release for axis, release in zip(axes, releases, strict=True) if release}
        cann = by_axis.pop("cann", None)
        contexts.append(Context(cann, chosen, target, tuple(sorted(by_axis.items()))))
    return contexts


@pytest.mark.parametrize("flags", [(), ("--flat",)], ids=["with its parents", "as one file"])
@pytest.mark.parametrize("name", SHIPPED)
def test_a_copy_of_a_shipped_preset_is_clean_and_equal_in_every_context(
    name: str, flags: tuple[str, ...], store: Store, run: Run
) -> None:
    folder = store({})
    done = run("copy", f"builtin:{name}", "team/mine", *flags)
    assert done.code == 0, done.err
    copied = {str(path.relative_to(folder)) for path in folder.rglob("*.toml")}
    lineage = spec.Workspace("builtin:").resolve_spec(name).lineage
    parents = {f"{profile.name}.toml" for profile in lineage[:-1]}
    assert copied == {"team/mine.toml"} | (parents if not flags else set())
    assert all(f"profiles/{path}" in done.err for path in copied)
    assert "extends" not in (folder / "team/mine.toml").read_text() or not flags
    assert run("check", "--strict").code == 0, run("check").out
    for context in list_contexts("builtin:", name):
        before = spec.Workspace("builtin:", context).resolve_spec(name)
        after = spec.Workspace(str(folder), context).resolve_spec("team/mine")
        assert after.digest == before.digest, context
        for claim in ("scenario", "cann", "products", "versions"):
            assert after.find_profile_value(claim) == before.find_profile_value(claim)


def test_parents_that_the_store_has_stay_and_the_schema_line_is_added(
    store: Store, run: Run
) -> None:
    folder = store({})
    (folder / ".schema.json").write_text("{}")
    assert run("copy", "builtin:bert-training", "a").code == 0
    parent = folder / "base/training.toml"
    assert parent.read_text().startswith("#:schema ../.schema.json\n")
    assert (folder / "a.toml").read_text().startswith("#:schema ./.schema.json\n")
    kept = f"# ours\n{parent.read_text()}"
    parent.write_text(kept)
    done = run("copy", "builtin:bert-large-cluster-training", "b")
    assert done.code == 0, done.err
    assert "base/training.toml" not in done.out + done.err
    assert parent.read_text() == kept


@pytest.mark.parametrize("new", ["mine", "base/inference"])
def test_another_preset_of_a_parents_name_is_rejected_and_the_hint_works(
    new: str, store: Store, run: Run
) -> None:
    presets = {} if new == "base/inference" else {"base/inference": "[options]\n"}
    folder = store(presets)
    before = sorted(folder.rglob("*"))
    done = run("copy", "builtin:resnet-inference-fp16", new)
    expect(done, 2, "NP923", "base/inference.toml is another one", "--flat")
    assert sorted(folder.rglob("*")) == before
    assert run("copy", "builtin:resnet-inference-fp16", new, "--flat").code == 0


def test_a_dry_run_shows_all_files_and_writes_none(store: Store, run: Run) -> None:
    folder = store({})
    done = run("copy", "builtin:resnet-inference-fp16", "mine", "--dry-run")
    expect(done, 0, "would write profiles/base/inference.toml, profiles/mine.toml")
    assert "+++ b/profiles/base/inference.toml" in done.out
    assert list(folder.rglob("*.toml")) == []


LAYERS = {
    "base": (
        '[profile]\nscenario = "training"\ncann = ">=8.0"\nlocked = ["hccl_timeout"]\n'
        "[options]\nhccl_timeout = 600\niterations_per_loop = 5\n"
        '[env]\nHCCL_ALGO = "level0:NA"\n'
        '[[override]]\nmatch = { product = "atlas-a3" }\n'
        'unset = ["env.HCCL_ALGO"]\noptions = { iterations_per_loop = 7, deterministic = 1 }\n'
        '[[override]]\nmatch = { cann = ">=9" }\noptions = { iterations_per_loop = 8 }\n'
    ),
    "mix": '[profile]\nproducts = ["atlas-a3", "atlas-a2"]\ncann = "<10"\n[options]\n',
    "leaf": (
        '[profile]\nextends = ["base", "mix"]\ndescription = "d"\nowner = "me"\n'
        'unset = ["env.OMP_NUM_THREADS"]\n[options]\ndeterministic = 0\n'
        '[[override]]\nmatch = { product = "atlas-a3", cann = ">=9" }\n'
        "options = { iterations_per_loop = 9 }\n"
    ),
}


def test_a_flat_copy_keeps_the_order_of_overrides_and_drops_what_later_layers_replace(
    store: Store, run: Run
) -> None:
    folder = store(LAYERS)
    assert run("copy", "leaf", "flat", "--flat").code == 0
    text = (folder / "flat.toml").read_text()
    assert 'unset = ["env.OMP_NUM_THREADS"]' in text
    assert 'owner = "me"' in text
    assert 'locked = ["hccl_timeout"]' in text
    for chosen in (None, "atlas-a3", "atlas-a2"):
        for cann in (None, "8.0.0", "9.0.0"):
            workspace = spec.Workspace(str(folder), Context(cann, chosen))
            leaf, flat = (workspace.resolve_spec(name) for name in ("leaf", "flat"))
            assert dict(leaf) == dict(flat), (chosen, cann)
            assert (leaf.cann, leaf.products) == (flat.cann, flat.products)
    assert run("env", "flat", "--shell", "bash", "--trust").out.count("OMP_NUM_THREADS") == run(
        "env", "leaf", "--shell", "bash", "--trust"
    ).out.count("OMP_NUM_THREADS")


@pytest.mark.parametrize(
    "own",
    [
        '[options]\nprofiling_options = { training_trace = "on" }\n',
        '[append.options]\nenable_scope_fusion_passes = ["B"]\n',
        '[profile]\nunset = ["profiling_options.output"]\n',
    ],
    ids=["a table merges", "a list grows", "a part is cleared"],
)
def test_a_flat_copy_that_would_not_be_exact_is_rejected_with_the_layer(
    own: str, store: Store, run: Run
) -> None:
    base = (
        '[[override]]\nmatch = { product = "atlas-a3" }\n'
        'options = { profiling_options = { output = "/tmp" } }\n'
        'append.options.enable_scope_fusion_passes = ["A"]\n'
    )
    extending = '[profile]\nextends = ["base"]\n' if "[profile]" not in own else ""
    own = own.replace("[profile]\n", '[profile]\nextends = ["base"]\n')
    folder = store({"base": base, "leaf": extending + own})
    done = run("copy", "leaf", "flat", "--flat", "--no-check")
    expect(done, 2, "NP920", "leaf does not fit one file", "changes a part of")
    assert not (folder / "flat.toml").exists()


def test_a_composition_becomes_one_file(store: Store, run: Run) -> None:
    folder = store(LAYERS)
    assert run("copy", "base+mix", "x").code == 2
    assert run("copy", "base+mix", "flat", "--flat").code == 0
    both = npuprof.open_store(folder)
    assert both.resolve("flat").digest == both.resolve("base+mix").digest


def test_a_flat_copy_removes_the_elements_that_an_override_removes(store: Store, run: Run) -> None:
    base = (
        '[options]\nenable_scope_fusion_passes = ["A", "B"]\n'
        '[[override]]\nmatch = { product = "atlas-a3" }\n'
        'remove.options.enable_scope_fusion_passes = ["A"]\n'
    )
    folder = store({"base": base, "leaf": '[profile]\nextends = ["base"]\n'})
    assert run("copy", "leaf", "flat", "--flat").code == 0
    chosen = npuprof.open_store(folder).resolve("flat", product="atlas-a3")
    assert chosen["enable_scope_fusion_passes"] == ["B"]
