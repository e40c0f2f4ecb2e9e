"""Presets moved to other releases of frameworks, by the rows of the catalogue."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from npuprof.checks.changed_defaults import list_changed_defaults
from support.running import Run, Store

OLD, NEW = "0.18.0", "0.23.0"
HEAD = f'[profile]\nversions = {{ vllm_ascend = ">={OLD},<0.19" }}\n'
#: What a range becomes.
MOVED = HEAD.replace(f">={OLD},<0.19", f">={NEW}")
#: Defaults of vLLM that change between the two releases.
KEPT = "[vllm]\ngpu-memory-utilization = 0.9\n"


def migrate(run: Run, *arguments: str, target: str = NEW) -> tuple[int, str]:
    result = run("migrate", *arguments, "--framework", f"vllm_ascend={target}")
    return result.code, result.out + result.err


#: Settings of vllm_ascend 0.18.0 and their form in 0.23.0, where the variables are deprecated:
#: vllm_ascend/ascend_config.py of both tags.
MOVES = {
    "a variable with a number": (
        '[env]\nVLLM_ASCEND_ENABLE_NZ = "2"\n',
        "[vllm_ascend]\nweight_nz_mode = 2\n",
    ),
    "comments go along": (
        '[env]\n# why\nVLLM_ASCEND_ENABLE_MLAPO = "0" # off\nHCCL_BUFFSIZE = 1\n',
        "[vllm_ascend]\n# why\nenable_mlapo = false # off\n\n[env]\nHCCL_BUFFSIZE = 1\n",
    ),
    "an override": (
        '[[override]]\nmatch = { product = "atlas-a3" }\n'
        'env = { VLLM_ASCEND_ENABLE_FUSED_MC2 = "1" }\n',
        '[[override]]\nmatch = { product = "atlas-a3" }\nvllm_ascend = { enable_fused_mc2 = 1 }\n',
    ),
    "an override for older releases only": (
        '[[override]]\nmatch = { vllm_ascend = "<0.20" }\n'
        'env = { VLLM_ASCEND_ENABLE_MLAPO = "1" }\n',
        '[[override]]\nmatch = { vllm_ascend = "<0.20" }\n'
        'env = { VLLM_ASCEND_ENABLE_MLAPO = "1" }\n',
    ),
    "an override for newer releases only": (
        '[[override]]\nmatch = { vllm_ascend = ">=0.20" }\nvllm_ascend = { weight_nz_mode = 2 }\n',
        '[[override]]\nmatch = { vllm_ascend = ">=0.20" }\nvllm_ascend = { weight_nz_mode = 2 }\n',
    ),
    "what both releases read": (
        "[vllm_ascend]\nenable_cpu_binding = true\n",
        "[vllm_ascend]\nenable_cpu_binding = true\n",
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_setting_is_moved_to_what_the_release_reads(name: str, store: Store, run: Run) -> None:
    before, after = MOVES[name]
    folder = store({"a": f"{HEAD}{KEPT}{before}"})
    code, _ = migrate(run, "a")
    assert code == 0
    text = (folder / "a.toml").read_text()
    assert tomllib.loads(text) == tomllib.loads(f"{MOVED}{KEPT}{after}")
    assert [line for line in after.split("\n") if line not in text.split("\n")] == []
    # again, nothing is left to do
    assert migrate(run, "a")[0] == 0
    assert (folder / "a.toml").read_text() == text


def test_a_key_is_moved_into_a_group(store: Store, run: Run) -> None:
    # vllm_ascend/ascend_config.py of 0.28.0rc1
    folder = store({"a": f"{HEAD}{KEPT}[env]\nVLLM_ASCEND_BALANCE_SCHEDULING = 0 # no\n"})
    migrate(run, "a", target="0.28.0rc1")
    text = (folder / "a.toml").read_text()
    assert tomllib.loads(text)["vllm_ascend"] == {
        "scheduler_config": {"enable_balance_scheduling": False}
    }
    assert "# no\n" in text


def test_presets_that_build_on_each_other_are_moved_together(store: Store, run: Run) -> None:
    head = HEAD.replace("[profile]\n", "[profile]\nabstract = true\n")
    leaf = '[profile]\nextends = ["base"]\n'
    mlapo = "env.VLLM_ASCEND_ENABLE_MLAPO"
    folder = store(
        {
            "base": f'{head}[env]\nVLLM_ASCEND_ENABLE_MLAPO = "1"\n',
            "leaf": f'{leaf}unset = ["{mlapo}"]\n{KEPT}',
            "other": f'{leaf}{KEPT}[env]\nVLLM_ASCEND_ENABLE_MLAPO = "0"\n',
        }
    )
    assert migrate(run, "base")[0] == 2, "others set or clear the key"
    assert "VLLM_ASCEND_ENABLE_MLAPO" in (folder / "base.toml").read_text()
    assert migrate(run, "--all")[0] == 0
    assert "mlapo" not in run("show", "leaf").out.lower()
    assert 'unset = ["vllm_ascend.enable_mlapo"]' in (folder / "leaf.toml").read_text()
    assert "enable_mlapo = false" in (folder / "other.toml").read_text()
    assert "VLLM_ASCEND" not in "".join(path.read_text() for path in folder.glob("*.toml"))


#: What has no place in the release, or no certain one, and what is said of it.
DECISIONS = {
    "two values": (
        '[env]\nVLLM_ASCEND_ENABLE_NZ = "2"\n[vllm_ascend]\nweight_nz_mode = 1\n',
        "vllm_ascend.weight_nz_mode is set as well, to 1",
    ),
    "no word": (
        '[env]\nVLLM_ASCEND_ENABLE_MLAPO = "maybe"\n',
        "vllm_ascend.enable_mlapo has no word for",
    ),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_what_is_not_certain_is_left_and_told(name: str, store: Store, run: Run) -> None:
    settings, message = DECISIONS[name]
    folder = store({"a": f"{HEAD}{KEPT}{settings}"})
    code, text = migrate(run, "a")
    assert code in (1, 2)
    assert message in " ".join(text.split())
    assert settings in (folder / "a.toml").read_text()


def test_a_setting_without_effect_before_is_not_brought_to_life(store: Store, run: Run) -> None:
    # read up to 0.13.0, then ignored: vllm_ascend/ascend_config.py
    settings = '[vllm_ascend]\nexpert_map_path = "/a.json"\n'
    folder = store({"a": f"{HEAD}{KEPT}{settings}"})
    code, text = migrate(run, "a")
    assert code == 1
    assert "expert_map_path is not read" in text
    assert settings in (folder / "a.toml").read_text()


def test_defaults_that_change_are_told_and_can_be_kept(store: Store, run: Run) -> None:
    # gpu_memory_utilization in vllm/config/cache.py of v0.18.0 and v0.20.2
    folder = store({"a": f"{HEAD}[vllm]\nmax-model-len = 4096\n"})
    _, text = migrate(run, "a", "--dry-run")
    assert re.findall(r"(\S+) is not set, and vllm 0.23.0 changes its default: (.*)", text) == [
        ("vllm.gpu-memory-utilization", "0.9, then 0.92"),
        ("vllm.safetensors-load-strategy", '"lazy", then "None"'),
    ]
    assert migrate(run, "a", "--keep-defaults")[0] == 0
    assert "gpu-memory-utilization = 0.9\n" in (folder / "a.toml").read_text()
    assert "changes its default" not in migrate(run, "a", "--dry-run")[1]


def test_a_range_can_keep_older_releases(store: Store, run: Run) -> None:
    settings = '[env]\nVLLM_ASCEND_ENABLE_MLAPO = "1"\n'
    folder = store({"a": f"{HEAD}{KEPT}{settings}"})
    code, text = migrate(run, "a", "--widen")
    assert code == 1
    assert "env.VLLM_ASCEND_ENABLE_MLAPO is deprecated" in text
    assert (folder / "a.toml").read_text() == f"{HEAD.replace(',<0.19', '')}{KEPT}{settings}"


def test_a_dry_run_shows_what_is_written(store: Store, run: Run) -> None:
    folder = store({"a": f'{HEAD}{KEPT}[env]\nVLLM_ASCEND_ENABLE_NZ = "2" # why\n'})
    before = (folder / "a.toml").read_text()
    dry = run("migrate", "--all", "--framework", f"vllm_ascend={NEW}", "--dry-run")
    assert (folder / "a.toml").read_text() == before
    wet = run("migrate", "--all", "--framework", f"vllm_ascend={NEW}")
    assert dry.out == wet.out
    added = re.findall(r"^\+(?!\+)(.*)", dry.out, re.MULTILINE)
    assert [line for line in added if line] == [
        line for line in (folder / "a.toml").read_text().split("\n") if line not in before
    ]


#: Releases that cannot be moved to, and what is said of them.
REFUSED = {
    "--framework vllm_ascend=0.18.0 --from 0.23.0": "is later than --framework vllm_ascend=0.18.0",
    "--framework vllm_ascend=99.0": "newer than all known releases",
    "--framework vllm_ascend=0.0.1": "unknown vllm_ascend release '0.0.1'",
    "--framework nothing=1.0": "unknown framework 'nothing'",
    "": "npuprof migrate --all --framework vllm_ascend=0.23.0",
    "--framework vllm_ascend=0.23.0 --cann 9.0.0 --from 0.18.0": "--from vllm_ascend=0.18.0",
    "--framework vllm_ascend=0.23.0 --from vllm=0.18.0": "--framework vllm=RELEASE",
}


@pytest.mark.parametrize("flags", REFUSED)
def test_a_release_to_which_nothing_moves_is_an_error(flags: str, store: Store, run: Run) -> None:
    folder = store({"a": f"{HEAD}{KEPT}"})
    result = run("migrate", "a", *flags.split())
    assert result.code == 2
    assert REFUSED[flags] in " ".join(result.err.split())
    assert (folder / "a.toml").read_text() == f"{HEAD}{KEPT}"


def test_several_frameworks_and_cann_move_together(store: Store, run: Run) -> None:
    folder = store(
        {
            "a": f'{HEAD}cann = ">=8.0,<9"\n{KEPT}[options]\nmstune_mode = "2"\n'
            '[env]\nVLLM_ASCEND_ENABLE_NZ = "2"\n'.replace("[profile]\n", "[profile]\n", 1)
        }
    )
    result = run("migrate", "a", "--framework", f"vllm_ascend={NEW}", "--cann", "9.0.0")
    text = (folder / "a.toml").read_text()
    assert "CANN 9.0.0, vllm_ascend 0.23.0: 2 steps made" in result.err
    assert 'aoe_mode = "2"' in text
    assert "weight_nz_mode = 2" in text


def test_a_script_is_told_of_defaults_that_change(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("vllm serve Qwen/Qwen3-8B --max-model-len 4096\n")
    flags = ["--framework", f"vllm_ascend={NEW}", "--from", OLD]
    found = json.loads(run("scan", str(script), *flags, "--format", "json").out)["findings"]
    assert [each["code"] for each in found if "gpu-memory-utilization" in each["message"]] == [
        "NP512"
    ]
    report = run("scan", str(script), *flags, "--statistics").out
    assert "coming from vllm_ascend 0.18.0" in report


def test_a_diff_tells_of_defaults_that_change_with_a_range(store: Store, run: Run) -> None:
    plain = "[vllm]\nmax-model-len = 4096\n"
    store({"old": f"{HEAD}{plain}", "new": f"{MOVED}{plain}"})
    told = run("diff", "old", "new", "--format", "json").out
    assert "gpu-memory-utilization is not set" in told
    assert "gpu-memory-utilization is not set" not in run("diff", "old", "old").out


def test_defaults_are_those_of_both_releases() -> None:
    found = {change.key: change.before for change in list_changed_defaults("vllm", OLD, NEW)}
    assert found["vllm.gpu-memory-utilization"] == 0.9
    assert len(found) >= 3
    assert list_changed_defaults("vllm", NEW, NEW) == ()
