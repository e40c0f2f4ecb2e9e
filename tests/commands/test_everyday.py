"""Edits of a preset that others extend, and notes on overrides that are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.building import build_store
from support.running import Run, Store

HEIRS = {
    "base": '[profile]\nscenario = "training"\n[options]\nhccl_timeout = 1836\n',
    "mid": "profile.extends = ['base']\n",
    "leaf": '[profile]\nextends = ["mid"]\n[options]\nhccl_timeout = 600\n'
    '[options.modify_mixlist]\nblack-list = { to-add = ["Add"] }\n'
    '[[override]]\nmatch = { product = "atlas-a3" }\n'
    'options = { precision_mode_v2 = "mixed_float16" }\n',
    "mixed": (
        '[profile]\nextends = ["mode"]\n[options.modify_mixlist]\n'
        'black-list = { to-add = ["Add"] }\n'
    ),
    "mode": '[options]\nprecision_mode_v2 = "mixed_float16"\n',
    "crossed": '[profile]\nextends = ["\\u0062ase", "mode"]\n',
    "broken": '[profile]\nextends = ["mode"]\n[options]\nnothing_known = 1\n',
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["set", "mode", "precision_mode_v2=origin"], "NP303"),
        (["unset", "mode", "precision_mode_v2"], "NP303"),
        (["set", "base", "profile.locked+=hccl_timeout"], "leaf"),
        (["set", "base", "profile.extends+=mode"], "crossed"),
        (["set", "base", "hccl_timeout=1904"], ""),
        (["set", "mode", "deterministic=1"], ""),
        (["set", "leaf", "hccl_timeout=700"], ""),
    ],
)
def test_an_edit_that_breaks_who_builds_on_it_is_refused(
    arguments: list[str], message: str, tmp_path: Path, run: Run
) -> None:
    folder = build_store(tmp_path / "profiles", HEIRS)
    before = {path: path.read_bytes() for path in folder.rglob("*.toml")}
    for spec in (arguments[1], f"profiles/{arguments[1]}.toml"):
        done = run(arguments[0], spec, *arguments[2:])
        assert done.code == (2 if message else 0), done.err
        if message:
            assert {path: path.read_bytes() for path in before} == before
            assert (
                "the change would add errors to presets that extend it; --no-check writes it anyway"
                in done.err
            )
            assert message in done.err
            assert "nothing_known" not in done.err, "that was wrong before"
    assert run(*arguments, "--no-check").code == 0


@pytest.mark.parametrize(
    "verb",
    [
        ["show", "x"],
        ["explain", "x", "hccl_timeout"],
        ["render", "x", "--to", "toml"],
        ["env", "x"],
    ],
)
def test_verbs_print_a_note_on_skipped_overrides(verb: list[str], run: Run, store: Store) -> None:
    head = 'profile.scenario = "training"\n\n\noptions.hccl_timeout = 600\n'
    store({"x": head + '[[override]]\nmatch.product = "atlas-a2"\noptions.hccl_timeout = 900\n'})
    assert (
        run(*verb).err == "npuprof: an override takes part only with --product: profiles/x.toml:5\n"
    )
    assert run(*verb, "--product", "atlas-a2").err == ""
