"""``check --fix`` and ``check --diff``: what hints are certain of is written, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.running import Run, Store

HEAD = 'profile.description = "x"\n'

#: A text, and what becomes of it; equal where no hint is certain.
MENDED = {
    "a value of another type": (
        HEAD + '[options]\nhccl_timeout = "1h"  # long\n',
        HEAD + "[options]\nhccl_timeout = 3600  # long\n",
    ),
    "a choice in capitals": (
        HEAD + 'options.precision_mode_v2 = "FP16"\n',
        HEAD + 'options.precision_mode_v2 = "fp16"\n',
    ),
    "an option in dashes": (
        HEAD + "[options]\n# why\nHCCL-timeout = 1836\n",
        HEAD + "[options]\n# why\nhccl_timeout = 1836\n",
    ),
    "an option that stands there as well": (
        HEAD + "[options]\nHccl_Timeout = 1\nhccl_timeout = 2\n",
        HEAD + "[options]\nHccl_Timeout = 1\nhccl_timeout = 2\n",
    ),
    "a name, then its value": (
        HEAD + 'options.Hccl-Timeout = "20 min"\n',
        HEAD + "options.hccl_timeout = 1200\n",
    ),
    "a variable that is true": (
        HEAD + "env.HCCL_WHITELIST_DISABLE = true\n",
        HEAD + 'env.HCCL_WHITELIST_DISABLE = "1"\n',
    ),
    "a list of one": (
        HEAD + 'profile.products = "atlas-a2"\n',
        HEAD + 'profile.products = ["atlas-a2"]\n',
    ),
    "a product by its short name": (
        HEAD + 'profile.products = ["910B2"]\n',
        HEAD + 'profile.products = ["Ascend910B2"]\n',
    ),
    "in an override": (
        HEAD + '[[override]]\nmatch = { product = "910b2" }\noptions.deterministic = "on"\n',
        HEAD + '[[override]]\nmatch = { product = "Ascend910B2" }\noptions.deterministic = 1\n',
    ),
    "line ends of another system": (
        HEAD + 'options.hccl_timeout = "1h"\r\n',
        HEAD + "options.hccl_timeout = 3600\r\n",
    ),
}


@pytest.mark.parametrize("name", MENDED)
def test_hints_that_are_certain_are_written(name: str, store: Store, run: Run) -> None:
    before, after = MENDED[name]
    path = store({"a": before}) / "a.toml"
    shown = run("check", "--diff", "--store", path.parent)
    assert path.read_bytes() == before.encode()
    assert shown.code == int(before != after)
    assert bool(shown.out) == (before != after)
    run("check", "--fix", "--store", path.parent)
    assert path.read_bytes() == after.encode()
    assert run("check", "--fix", "--store", path.parent).err.startswith("npuprof: fixed nothing; ")


@pytest.mark.parametrize(
    ("text", "least", "fixed"),
    [
        ('options.hccl_timeout = "1h"\n', 1, 1),
        ('options.Hccl-Timeout = "20 min"\n', 1, 2),
        ('[options]\nHccl_Timeout = "1h"\nhccl_timeout = 2\n', 0, 0),
        (
            '[options]\nHccl-Timeout = "1h"\nDeterministic = "on"\nprecision_mode_v2 = "FP16"\n',
            3,
            5,
        ),
    ],
)
def test_what_check_says_that_it_can_mend_is_mended_at_least(
    text: str, least: int, fixed: int, store: Store, run: Run
) -> None:
    folder = store({"a": HEAD + text})
    output = run("check", "--store", folder).err
    assert (f", --fix corrects at least {least}" in output) == bool(least)
    assert ("--fix" in output) == bool(least)
    assert (
        f"would fix {fixed} finding" in run("check", "--diff", "--store", folder).err or not fixed
    )
    assert f"fixed {fixed} finding" in run("check", "--fix", "--store", folder).err or not fixed


def test_the_files_that_were_written_are_named_those_of_parents_too(store: Store, run: Run) -> None:
    folder = store(
        {
            "a": HEAD + 'options.hccl_timeout = "1h"\n',
            "b": HEAD + 'profile.extends = ["a"]\noptions.Deterministic = 1\n',
            "c": HEAD,
        }
    )
    (folder / "d.toml").write_text(HEAD + "options.nothing = 1\n")
    done = run("check", "b", "d", "--fix", "--store", folder)
    assert done.code == 1, "what is left decides"
    assert "NP201" in done.out, "what is left decides"
    assert "NP202" not in done.out, "what is left decides"
    assert done.err.startswith("npuprof: fixed 2 findings in 2 files; 2 presets checked: 1 error")
    assert done.err.endswith("\nnpuprof: wrote profiles/a.toml, profiles/b.toml\n")
    assert "wrote" not in run("check", "b", "--fix", "--store", folder).err


def test_what_somebody_accepted_is_left_alone(store: Store, run: Run) -> None:
    text = (
        HEAD + "profile.ignore = [{ code = 'NP206', reason = 'ours' }]\nenv.rank_table_file = 'a'\n"
    )
    folder = store({"a": text})
    run("check", "--fix", "--store", folder)
    assert (folder / "a.toml").read_text() == text


def test_a_file_outside_the_store_is_mended(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store({"b": HEAD})
    monkeypatch.chdir(folder.parent)
    Path("x.toml").write_text(
        'profile.extends = "b"\nprofile.description = "x"\noptions.Hccl_timeout = "1h"\n'
    )
    assert run("check", "./x.toml", "--fix").code == 0
    assert "hccl_timeout = 3600" in Path("x.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fix", "--rev", "HEAD"], "cannot be fixed"),
        (
            ["--fix", "--baseline", "b.json", "--write-baseline"],
            "a baseline records the remaining findings",
        ),
        (["-", "--fix"], "standard input cannot be fixed"),
        (["--fix", "--cann", "8.0.0", "--cann", "9.0.0"], "one platform"),
    ],
)
def test_what_cannot_be_mended_is_refused(
    arguments: list[str], message: str, store: Store, run: Run
) -> None:
    done = run("check", *arguments, "--store", store({"a": HEAD}))
    assert done.code == 2
    assert message in done.err


def test_diff_beside_fix_shows_what_fix_would_write_and_writes_nothing(
    store: Store, run: Run
) -> None:
    folder = store({"a": HEAD + 'options.hccl_timeout = "600"\n'})
    before = (folder / "a.toml").read_bytes()
    both, alone = (
        run("check", *arguments, "--store", folder)
        for arguments in (("--fix", "--diff"), ("--diff",))
    )
    assert both.code == 1
    assert both.out == alone.out
    assert both.err == alone.err
    assert "+options.hccl_timeout = 600" in both.out
    assert (folder / "a.toml").read_bytes() == before
