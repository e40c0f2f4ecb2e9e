"""Overrides of Hydra: what hydra-core itself takes is no error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException

from npuprof.model import Context
from npuprof.scripts.scanning import scan_scripts

PROGRAM = """
import hydra

@hydra.main(config_path="config", config_name="ppo", version_base=None)
def main(config):
    print(config)

if __name__ == "__main__":
    main()
"""
FILES = {
    "ppo.yaml": """
defaults:
  - actor@worker.actor: dense
  - engine: first
  - optional extra: missing
  - optim@worker.optim: ${engine}_optim
  - data@data
  - zero@first.zero: one
  - zero: two
  - _self_
seed: 1
nothing: null
open: {}
items: [1, 2]
table: {a: 1}
same: ${table}
must: ???
""",
    "over.yaml": "defaults:\n  - ppo\n  - override engine: second\n  - _self_\n",
    "data.yaml": "batch: 8\nfiles:\n  train: x\n",
    "actor/dense.yaml": "defaults:\n  - ../loss@loss: plain\n  - base\n  - _self_\nlayers: 2\n",
    "actor/sparse.yaml": "defaults:\n  - base\n  - _self_\nexperts: 2\n",
    "actor/base.yaml": "hidden: 4\n",
    "loss/plain.yaml": "weight: 1.0\n",
    "engine/first.yaml": "# @package _global_\nengine_name: first\n",
    "engine/second.yaml": "# @package _global_\nengine_name: second\nsecond_only: 1\n",
    "optim/first_optim.yaml": "lr: 1\n",
    "optim/second_optim.yaml": "lr: 1\nsecond_lr: 1\n",
    # skyrl_train/config of NovaSky-AI/SkyRL
    "zero/one.yaml": "# @package one.zero\nstage: 3\n",
    "zero/two.yaml": "# @package second.zero\nstage: 3\n",
    "more/some.yaml": "value: 1\n",
}
LINES = """
seed=2
sed=2
+seed=2
++seed=2
+new=1
~seed
~sed
nothing=1
+nothing=1
nothing.a=1
open.a=1
+open.a=1
items=[3]
+items=[3]
items.0=3
table.a=2
table.b=2
+table.b=2
+table={b:2}
same.a=1
must=1
+must=1
must.a=1
data.batch=4
data.batch=null
data.bach=4
batch=4
data.files.train=y
+data.files.train=y
worker.actor.layers=3
worker.actor.layer=3
worker.actor.loss.weight=2
worker.actor.loss.wait=2
worker.actor.hidden=3
+worker.actor.hidden=3
worker.optim.lr=2
worker.optim.second_lr=2
actor@worker.actor=sparse
actor@worker.actor=sparse worker.actor.experts=3
actor@worker.actor=sparse worker.actor.layers=3
actor@worker.actor=sparse worker.actor.nothing=3
worker.actor.experts=3
engine=second second_only=2
engine=second worker.optim.second_lr=2
engine=second worker.optim.third_lr=2
second_only=2
+more=some
+more=some more.value=2
+more=some more.values=2
more.value=2
first.zero.stage=2
one.zero.stage=2
second.zero.stage=2
zero.stage=2
+new={a:1} new.a=2
+new={a:1} new.b=2
++new.a=1 new.a=2
seed.a=1
hydra.run.dir=x
+seed.a=1
~table.a
~table.c
Seed=1
worker={}
worker=1
""".strip().splitlines()
#: Of 29 lines.
FLOOR = 20


def test_what_hydra_takes_is_no_error(tmp_path: Path) -> None:
    folder = tmp_path / "verl/trainer/config"
    for path, content in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    (tmp_path / "verl/__init__.py").write_text("")
    (tmp_path / "verl/trainer/main.py").write_text(PROGRAM)
    taken = {}
    with initialize_config_dir(str(folder), version_base=None):
        for line in LINES:
            try:
                taken[line] = bool(compose("ppo", line.split()))
            except (HydraException, ValueError):
                taken[line] = False
    for number, line in enumerate(LINES):
        words = " ".join(f"'{word}'" for word in line.split())
        (tmp_path / f"run{number:03}.sh").write_text(f"python3 -m verl.trainer.main {words}\n")
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    errors = {
        LINES[int(Path(finding.path).stem[3:])]
        for finding in found
        if finding.severity == "error" and finding.path.endswith(".sh")
    }
    assert [line for line in errors if taken[line]] == []
    rejected = {line for line in LINES if not taken[line]}
    assert len(errors) >= FLOOR, sorted(rejected - errors)


@pytest.mark.parametrize("name", ["second_only", "worker.optim.second_lr", "worker.optim.third_lr"])
def test_an_override_in_a_defaults_list_chooses_the_option(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "verl/trainer/config"
    for path, content in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    (tmp_path / "verl/__init__.py").write_text("")
    (tmp_path / "verl/trainer/main.py").write_text(PROGRAM.replace('"ppo"', '"over"'))
    (tmp_path / "run.sh").write_text(f"python3 -m verl.trainer.main {name}=2\n")
    with initialize_config_dir(str(folder), version_base=None):
        try:
            is_taken = bool(compose("over", [f"{name}=2"]))
        except HydraException:
            is_taken = False
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.code for each in found] == ([] if is_taken else ["NP212"])


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("+seed=2", "ppo.yaml:11"),
        ("+worker.actor.hidden=3", "actor/base.yaml:1"),
    ],
    ids=["in the main file", "in the file of a group"],
)
def test_the_message_names_the_place_of_the_key(tmp_path: Path, line: str, place: str) -> None:
    folder = tmp_path / "verl/trainer/config"
    for path, content in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    (tmp_path / "verl/__init__.py").write_text("")
    (tmp_path / "verl/trainer/main.py").write_text(PROGRAM)
    (tmp_path / "run.sh").write_text(f"python3 -m verl.trainer.main {line}\n")
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [finding.code for finding in found] == ["NP203"]
    assert f"{folder}/{place}." in found[0].why


# scripts of rllm-org/rllm: verl's keys in a configuration of the tree, and other programs
@pytest.mark.parametrize("launch", ["python3 -m mine.main", "uv run --isolated -m mine.main"])
@pytest.mark.parametrize("keys", ["trainer.nnodes", "worker.optim.lr"])
def test_overrides_of_any_program_with_hydra_are_judged(
    tmp_path: Path, launch: str, keys: str
) -> None:
    folder = tmp_path / "mine/config"
    folder.mkdir(parents=True)
    (tmp_path / "mine/__init__.py").write_text("")
    (tmp_path / "mine/main.py").write_text(PROGRAM)
    (folder / "ppo.yaml").write_text(
        "trainer: {nnodes: 1, project_name: a, experiment_name: b}\nworker: {optim: {lr: 1}}\n"
        "data: {own: 1, seed: 2}\n"
    )
    named = "trainer.project_name=x trainer.experiment_name=x" if "nodes" in keys else "data.seed=1"
    overrides = f"{keys}=2 {named} data.own=1 worker.optim.lrr=3"
    (tmp_path / "run.sh").write_text(f"{launch} \\\n  {overrides} \\\n  data.own=2\n")
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    messages = [each.message for each in found if each.path.endswith(".sh")]
    assert messages == [f"{folder}/ppo has no key worker.optim.lrr"]


# skyrl_train/entrypoints/main_base.py of NovaSky-AI/SkyRL
@pytest.mark.parametrize(
    "folder",
    [
        'str(Path(__file__).parent.parent / "config")',
        'str(Path(__file__).resolve().parent / ".." / "config")',
        'os.path.join(os.path.dirname(__file__), "../config")',
    ],
)
def test_a_configuration_beside_the_program_is_found(tmp_path: Path, folder: str) -> None:
    (tmp_path / "mine/start").mkdir(parents=True)
    (tmp_path / "mine/config").mkdir()
    program = PROGRAM.replace('"config"', folder)
    (tmp_path / "mine/start/main.py").write_text(f"from pathlib import Path\nimport os\n{program}")
    (tmp_path / "mine/config/ppo.yaml").write_text("a: {b: 1, c: 2}\n")
    (tmp_path / "run.sh").write_text("torchrun mine/start/main.py a.b=1 a.c=2 a.d=3\n")
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.message for each in found] == [f"{tmp_path}/mine/config/ppo has no key a.d"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("trainer.nnode=1", "trainer.nnodes"),
        (
            "actor_rollout_ref.rollout.gpu_memory_utilisation=0.5",
            "actor_rollout_ref.rollout.gpu_memory_utilization",
        ),
        pytest.param("trainer.my_own_key=1", "", id="key of a fork"),
        pytest.param("+trainer.nnode=1", "", id="new key"),
        pytest.param("critic.nnode=1", "", id="key of another table"),
        pytest.param("trainer.n_gpu_per_node=1", "", id="named in the tree"),
    ],
)
def test_a_key_near_one_of_verl_is_likely_a_slip_without_verl_at_hand(
    tmp_path: Path, words: str, meant: str
) -> None:
    """Of a key that its configuration lacks, Hydra says so and stops."""
    (tmp_path / "reward.py").write_text("def score(config):\n    return config.n_gpu_per_node\n")
    line = f"python3 -m verl.trainer.main_ppo trainer.nnodes=1 data.train_files=a {words}\n"
    (tmp_path / "run.sh").write_text(line)
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    hints = [(each.code, each.certainty, each.hint) for each in found]
    assert hints == ([("NP212", "likely", f"did you mean {meant!r}?")] if meant else [])


def test_keys_of_a_program_that_is_not_found_are_not_judged_by_verl(tmp_path: Path) -> None:
    overrides = "data.train_batch_size=1 trainer.nnodes=1 algorithm.gamma=1 +trainer.nnodes=2"
    for module in ("recipe.mine.main", "verl.trainer.main_ppo"):
        (tmp_path / "run.sh").write_text(f"python3 -m {module} {overrides}\n")
        found = scan_scripts([str(tmp_path)], Context(), None, None).findings
        assert [each.code for each in found] == ["NP217"] * module.startswith("verl.")


RUNNER = PROGRAM.replace("hydra.main", "hydra_runner")
STORE = "from hydra.core.config_store import ConfigStore\nConfigStore.instance().store(NAME, {})\n"


# tests/functional_tests and nemo/core/config/hydra_runner.py of NVIDIA/NeMo
@pytest.mark.parametrize(
    ("program", "line", "names"),
    [
        (PROGRAM, "data.batch=1 table.a=2 table.b=2", ["table.b"]),
        (RUNNER, "data.batch=1 table.a=2 table.b=2", ["table.b"]),
        (PROGRAM.replace("hydra.main", "other"), "data.batch=1 table.a=2 table.b=2", []),
        # the command names the configuration
        (PROGRAM, "--config-name=over data.batch=1 table.a=2 table.c=2", ["table.c"]),
        (PROGRAM, "--config-name=data files.train=x files.a=2 files.b=2", ["files.a", "files.b"]),
        (PROGRAM, "--config-name=$NAME data.batch=1 table.a=2 table.b=2", []),
        # one that Python registers may have more keys only if it has this name
        (f"import others\n{PROGRAM}", "a.b=1 a.c=1 a.d=1", ["a.b", "a.c", "a.d"]),
        (f"import same\n{PROGRAM}", "a.b=1 a.c=1 a.d=1", []),
        (RUNNER.replace("config_path=", "schema=A, config_path="), "a.b=1 a.c=1 a.d=1", []),
    ],
)
def test_overrides_of_any_program_are_judged_by_the_named_configuration(
    tmp_path: Path, program: str, line: str, names: list[str]
) -> None:
    for path, content in FILES.items():
        (tmp_path / "config" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "config" / path).write_text(content)
    (tmp_path / "train.py").write_text(program)
    (tmp_path / "others.py").write_text(STORE.replace("NAME", "'schema'"))
    (tmp_path / "same.py").write_text(STORE.replace("NAME", "'ppo'"))
    (tmp_path / "run.sh").write_text(f"torchrun train.py {line}\n")
    found = scan_scripts([str(tmp_path / "run.sh")], Context(), None, None).findings
    assert [each.message.rpartition(" ")[2] for each in found] == names
