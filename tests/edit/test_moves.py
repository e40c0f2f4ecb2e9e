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
        '[env] # loads\nVLLM_ASCEND_ENABLE_NZ = "2"\n',
        "[vllm_ascend]\nweight_nz_mode = 2\n\n[env] # loads\n",
    ),
    "comments go along": (
        '[env]\n# why\nVLLM_ASCEND_ENABLE_MLAPO = "0" # off\nHCCL_BUFFSIZE = 1\n',
        "[vllm_ascend]\n# why\nenable_mlapo = false # off\n\n[env]\nHCCL_BUFFSIZE = 1\n",
    ),
    "an override": (
        '[[override]]\nmatch = { product = "atlas-a3" }\n'
        'env = { VLLM_ASCEND_ENABLE_FUSED_MC2 = "1" }\n',
        '[[override]]\nmatch = { product = "atlas-a3" }\nenv = { }\n'
        "vllm_ascend = { enable_fused_mc2 = 1 }\n",
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
    "set for one product only, and the old name for another": (
        '[vllm_ascend]\nweight_nz_mode = 2\n[[override]]\nmatch = { product = "atlas-a3" }\n'
        'env = { VLLM_ASCEND_ENABLE_NZ = "0" }\n',
        "vllm_ascend.weight_nz_mode is set elsewhere as well",
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


#: Ranges and settings that have no place in a release of a framework, and what is told.
OTHERS = {
    "two names of one": (
        'mindie = "==1.0.0"',
        '[env]\nMINDIE_LLM_LOG_LEVEL = "ERROR"\nATB_LOG_LEVEL = "DEBUG"\n',
        "mindie=3.0.0",
        "MINDIE_LOG_LEVEL is set as well",
    ),
    "another meaning": (
        'vllm = "==0.18.0"',
        '[env]\nNPU_ASD_ENABLE = "1"\n[vllm]\nrope-theta = 500000.0\n',
        "vllm=0.23.0",
        "",
    ),
    "a group that is a text": (
        'vllm_ascend = "==0.23.0"',
        '[env]\nVLLM_ASCEND_BALANCE_SCHEDULING = "0"\n[vllm_ascend]\nscheduler_config = "{}"\n',
        "vllm_ascend=0.28.0rc1",
        "in a value that is no table",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_another_name_cannot_say_stays(name: str, store: Store, run: Run) -> None:
    versions, settings, target, message = OTHERS[name]
    folder = store({"a": f"[profile]\nversions = {{ {versions} }}\n{settings}"})
    result = run("migrate", "a", "--framework", target, "--no-check")
    assert result.code in (0, 1)
    assert message in " ".join((result.out + result.err).split())
    kept = tomllib.loads((folder / "a.toml").read_text())
    before = tomllib.loads(settings)
    lost = [value for table in before.values() for value in table.values()]
    assert [value for value in lost if str(value) not in str(kept)] == []


def test_a_child_is_moved_from_the_releases_of_its_parent(store: Store, run: Run) -> None:
    head = HEAD.replace("[profile]\n", "[profile]\nabstract = true\n")
    store(
        {
            "base": head,
            "leaf": f'[profile]\nextends = ["base"]\n{KEPT}[vllm_ascend]\nweight_nz_mode = 2\n',
        }
    )
    message = "vllm_ascend.weight_nz_mode takes effect with vllm_ascend 0.23.0"
    assert message in migrate(run, "leaf", "--dry-run")[1]
    assert message in migrate(run, "--all")[1]


def test_a_default_is_no_default_where_the_old_name_was_set(store: Store, run: Run) -> None:
    folder = store(
        {
            "a": '[profile]\nversions = { vllm_ascend = "==0.11.0rc0" }\n'
            '[env]\nVLLM_ASCEND_ENABLE_MLAPO = "1"\n'
        }
    )
    migrate(run, "a", "--keep-defaults", "--no-check", target="0.20.2rc1")
    assert "enable_mlapo = true" in (folder / "a.toml").read_text()


def test_a_list_keeps_the_name_of_what_stays(store: Store, run: Run) -> None:
    settings = '[env]\nVLLM_ASCEND_ENABLE_NZ = "auto"\n[[override]]\n'
    unset = 'match = { product = "atlas-a3" }\nunset = ["env.VLLM_ASCEND_ENABLE_NZ"]\n'
    folder = store({"a": f"{HEAD}{KEPT}{settings}{unset}"})
    migrate(run, "a", "--no-check")
    assert unset in (folder / "a.toml").read_text()


@pytest.mark.parametrize(
    ("written", "widened"),
    [
        ("<0.19,>=0.18.0", ">=0.18.0"),
        ("==0.18.0", ">=0.18.0"),
        (">=0.18.0,!=0.19.1rc1,<0.20", ">=0.18.0,!=0.19.1rc1"),
    ],
)
def test_a_widened_range_has_the_release(
    written: str, widened: str, store: Store, run: Run
) -> None:
    folder = store({"a": f'[profile]\nversions = {{ vllm_ascend = "{written}" }}\n{KEPT}'})
    migrate(run, "a", "--widen", "--no-check")
    assert f'"{widened}"' in (folder / "a.toml").read_text()


def test_a_preset_for_a_later_release_is_not_moved_back(store: Store, run: Run) -> None:
    store({"a": f"{MOVED}{KEPT}"})
    code, text = migrate(run, "a", target="0.18.0")
    assert code == 2
    assert "a is for vllm_ascend 0.23.0, later than 0.18.0" in text


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


def test_a_default_that_is_only_described_is_not_written(store: Store, run: Run) -> None:
    settings = "[vllm_ascend]\nenable_cpu_binding = true\n"
    head = '[profile]\nversions = { vllm_ascend = "==0.26.0rc1" }\n'
    folder = store({"a": head + settings})
    text = migrate(run, "a", "--keep-defaults", "--no-check", target="0.27.1rc1")[1]
    assert '"the value of enable_flashcomm1", then false' in text
    assert "set vllm_ascend.enable_shared_expert_dp to keep it" in text
    assert "--keep-defaults does so" not in text
    assert "enable_shared_expert_dp" not in (folder / "a.toml").read_text()


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
    "--framework vllm_ascend=0.23.0 --cann 9.0.0 --from 0.18.0": "--from NAME=0.18.0",
    "--framework vllm_ascend=0.23.0 --from vllm=0.18.0": "--framework NAME=RELEASE",
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
