"""Keys renamed in presets that inherit from each other: everywhere or nowhere."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.repositories import Repo
from support.running import Run, Store

BASE = '[options]\nprecision_mode = "allow_mix_precision"\n'
HEIR = '[profile]\nextends = ["b"]\n'
OLD, NEW = "precision_mode", "precision_mode_v2"


def read_texts(folder: Path) -> dict[str, str]:
    return {path.stem: path.read_text() for path in folder.glob("*.toml")}


@pytest.mark.parametrize(
    ("heir", "after"),
    [
        pytest.param(HEIR + f'unset = ["{OLD}"]\n', HEIR + f'unset = ["{NEW}"]\n', id="unset"),
        pytest.param(
            HEIR + f'unset = ["options.{OLD}", "hccl_timeout"]  # why\n',
            HEIR + f'unset = ["{NEW}", "hccl_timeout"]  # why\n',
            id="unset with its section",
        ),
        pytest.param(
            HEIR + f'unset = ["{OLD}", "{NEW}"]\n',
            HEIR + f'unset = ["{NEW}"]\n',
            id="both names unset",
        ),
        pytest.param(
            HEIR + f'unset = ["{OLD}"]\n\n[options]\n{OLD} = "force_fp32"\n',
            HEIR + f'unset = ["{NEW}"]\n\n[options]\n{NEW} = "cube_fp16in_fp32out"\n',
            id="unset and set again",
        ),
        pytest.param(
            HEIR
            + (
                '\n[[override]]\nmatch = { product = "atlas-a2" }\n'
                f'options = {{ {OLD} = "force_fp32" }}\n'
            ),
            HEIR
            + (
                '\n[[override]]\nmatch = { product = "atlas-a2" }\n'
                f'options = {{ {NEW} = "cube_fp16in_fp32out" }}\n'
            ),
            id="set in an override",
        ),
        pytest.param(
            HEIR + f'\n[[override]]\nmatch = {{ product = "atlas-a2" }}\nunset = ["{OLD}"]\n',
            HEIR + f'\n[[override]]\nmatch = {{ product = "atlas-a2" }}\nunset = ["{NEW}"]\n',
            id="unset in an override",
        ),
    ],
)
def test_what_an_heir_does_with_a_key_it_does_under_its_new_name(
    heir: str, after: str, store: Store, run: Run
) -> None:
    folder = store({"b": BASE, "heir": heir})
    done = run("migrate", "--all", "--cann", "9.0.0")
    texts = read_texts(folder)
    assert done.code == 0, done.out
    assert texts["b"] == f'[options]\n{NEW} = "mixed_float16"\n', done.out
    assert texts["heir"] == after
    assert run("migrate", "--all", "--cann", "9.0.0").out == ""


@pytest.mark.parametrize(
    ("heir", "message"),
    [
        pytest.param(
            HEIR + f'unset = ["{OLD}"]\n\n[options]\n{OLD} = "allow_fp32_to_fp16"\n',
            'heir: the preset gives it "allow_fp32_to_fp16"',
            id="value without a new form",
        ),
        pytest.param(
            HEIR + f'unset = ["{NEW}"]\n',
            f"heir: the preset clears {NEW} as well",
            id="new name unset",
        ),
        pytest.param(
            HEIR
            + (
                '\n[[override]]\nmatch = { product = "atlas-a2" }\n'
                f'options = {{ {NEW} = "origin" }}\n'
            ),
            f"heir: an override sets {NEW} as well",
            id="new name set in an override",
        ),
    ],
)
def test_a_family_in_which_one_cannot_follow_stays_as_it_is(
    heir: str, message: str, store: Store, run: Run
) -> None:
    texts = {
        "b": BASE,
        "heir": heir,
        "other": HEIR + f'unset = ["{OLD}"]\n',
        "apart": BASE,
        "z": BASE,
    }
    folder = store(texts)
    done = run("migrate", "--all", "--cann", "9.0.0")
    assert done.code == 1, done.out
    assert message in done.out, done.out
    assert read_texts(folder) == texts | dict.fromkeys(
        ("apart", "z"), f'[options]\n{NEW} = "mixed_float16"\n'
    )


def test_two_presets_that_have_a_part_each_of_what_becomes_one_option_stay(
    store: Store, run: Run
) -> None:
    both = '[options]\nop_select_implmode = "high_precision"\noptypelist_for_implmode = "Pooling"\n'
    texts = {"b": both, "heir": f'{HEIR}[options]\noptypelist_for_implmode = "SoftmaxV2"\n'}
    folder = store(texts)
    done = run("migrate", "--all", "--cann", "9.0.0")
    assert done.code == 1, done.out
    assert "b and heir have a part of it each" in done.out, done.out
    assert read_texts(folder) == texts, done.out


def test_a_parent_that_is_fixed_at_a_version_keeps_a_family_as_it_is_and_the_hint_says_how_to_go_on(
    store: Store, run: Run, repo: Repo
) -> None:
    folder = repo.folder / "profiles"
    repo.commit({"b": BASE})
    assert run("release", "b", "1.0.0").code == 0
    text = f'[profile]\nextends = ["b@1.0.0"]\n\n[options]\n{OLD} = "force_fp32"\n'
    (folder / "heir.toml").write_text(text)
    done = run("migrate", "--all", "--cann", "9.0.0")
    assert read_texts(folder)["heir"] == text
    assert NEW in read_texts(folder)["b"]
    assert "migrate and release b, then move the pin" in done.out


@pytest.mark.parametrize(
    "heir", [f'unset = ["{OLD}"]\n', f'locked = ["{OLD}"]\n', f'[options]\n{OLD} = "force_fp32"\n']
)
def test_one_preset_is_not_moved_away_from_those_that_build_on_it(
    heir: str, store: Store, run: Run
) -> None:
    texts = {"b": BASE, "heir": HEIR + heir}
    folder = store(texts)
    for arguments in ((), ("--dry-run",)):
        result = run("migrate", "b", "--cann", "9.0.0", *arguments)
        assert result.code == 2
        assert "npuprof migrate --all --cann 9.0.0" in result.err
        assert read_texts(folder) == texts
    assert run("migrate", "b", "--cann", "9.0.0", "--no-check").code == 1
    assert NEW in read_texts(folder)["b"]


RULE = "[[rule]]\ncode = 'T-1'\n"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            f"require = \"{OLD} == 'allow_mix_precision'\"\n",
            f"rule T-1 reads {OLD}, which is {NEW} now",
        ),
        (
            f"when = \"{OLD} == 'force_fp32'\"\nrequire = 'deterministic == 1'\n",
            f"rule T-1 reads {OLD}, which is {NEW} now",
        ),
        (
            "require = 'static_memory_policy == 1'\n",
            "rule T-1 reads static_memory_policy, whose values are others now",
        ),
        (
            "require = 'graph_memory_max_size is unset'\n",
            "rule T-1 reads graph_memory_max_size, which is not set any more",
        ),
        ("require = 'hccl_timeout is unset'\n", ""),
        (f"require = \"{OLD} == 'allow_mix_precision'\"\npresets = ['other/*']\n", ""),
    ],
)
@pytest.mark.parametrize("preset", ["b", "--all"])
def test_a_team_rule_that_reads_a_migrated_key_is_reported(
    rule: str, message: str, preset: str, store: Store, run: Run, tmp_path: Path
) -> None:
    store({"b": MIGRATED})
    (tmp_path / "npuprof.toml").write_text(RULE + rule)
    done = run("migrate", preset, "--cann", "9.0.0", "--dry-run")
    assert ("rule T-1" in done.out) == bool(message), done.out
    assert message in done.out, done.out
    if message:
        assert done.code == 1
        assert "npuprof.toml:" in done.out
    if NEW in message:
        assert f"write {NEW} in the rule" in done.out


MIGRATED = BASE + 'static_memory_policy = 1\ngraph_memory_max_size = "1"\n'


def test_blocks_that_a_migration_leaves_behind_are_named(
    store: Store, run: Run, tmp_path: Path
) -> None:
    store({"b": BASE, "other": "[options]\nhccl_timeout = 5\n"})
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for number, spec in enumerate(["b", "other", "b"]):
        Path(f"s{number}.py").write_text("import tensorflow as tf\nconfig = tf.ConfigProto()\n")
        made = run("inject", f"s{number}.py", spec)
        assert made.code == 0, made.err
    result = (
        "2 blocks in scripts are out of date by that: s0.py:3 (b), s2.py:3 (b)",
        "npuprof inject . --all",
    )
    for arguments in (("b", "--dry-run"), ("--all", "--dry-run"), ("--all",)):
        done = run("migrate", *arguments, "--cann", "9.0.0")
        assert all(text in done.err for text in result), done.err
    assert "out of date" not in run("migrate", "--all", "--cann", "9.0.0").err, (
        "nothing changes any more"
    )
    assert run("inject", ".", "--all").code == 0
    assert "deterministic" not in Path("s1.py").read_text()
