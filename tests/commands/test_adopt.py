"""``adopt``: scripts become a group of presets and use generated blocks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import npuprof
from npuprof.system.tree import Tree
from support.adopted import CALLS, HELPER, OTHER, PLAIN
from support.importing import write
from support.replaced import ENTRY, EXPORTS, HEAD, MIXED, OFF, RUN
from support.running import Run, Store

STUCK = (
    f"{HEAD}{ENTRY}custom_op.parameter_map['precision_mode'].s "
    f"= b'force_fp32'; print(1)\n{OFF}{RUN}"
)
#: Something is set, and nothing that a preset could have.
EMPTY = (
    f"import sys\n{HEAD}{ENTRY}custom_op.parameter_map['precision_mode'].s "
    f"= sys.argv[1]\n{OFF}{RUN}"
)
TREE = {
    "src/bert/train.py": PLAIN,
    "src/resnet/train.py": OTHER,
    "src/resnet/eval.py": OTHER,
    "src/stuck.py": STUCK,
    "src/run.sh": f"#!/bin/bash\n{EXPORTS}python3 train.py\n",
    "src/plain.py": "print(1)\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, TREE)
    (tmp_path / "profiles").mkdir()
    return tmp_path


def read_tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not path.name.startswith(".")
        and "home" not in path.relative_to(folder).parts
    }


def test_presets_and_blocks_are_written_together(project: Path, run: Run) -> None:
    done = run("adopt", "src")
    assert done.code == 0
    assert (
        "src/stuck.py:6 keeps its lines: the line that sets precision_mode cannot be taken out"
        in done.err
    )
    assert "generated blocks in 4 of 5 scripts" in done.err
    store = npuprof.open_store("profiles")
    found = [store.resolve(name).options for name in store if not store.resolve(name).env]
    assert {"precision_mode": "allow_mix_precision", "use_off_line": True} in found
    assert run("inject", "src", "--all", "--check").code == 0
    assert run("check").code == 0
    assert [
        b">>> npuprof" in (project / name).read_bytes() for name in ("src/stuck.py", "src/run.sh")
    ] == [False, True]


@pytest.mark.parametrize(
    "more", [{}, {"src/new.py": PLAIN.replace("allow_mix_precision", "must_keep_origin_dtype")}]
)
def test_a_script_that_keeps_its_lines_has_one_preset_however_often_it_is_run(
    more: dict[str, str], project: Path, run: Run
) -> None:
    """With the others of its name in blocks it would be called otherwise."""
    hold = {
        "a": STUCK.replace("force_fp32", "allow_fp32_to_fp16"),
        "b": PLAIN.replace("True", "False"),
    }
    write(
        project,
        {**{f"src/{name}/hold.py": text for name, text in hold.items()}, "src/empty.py": EMPTY},
    )
    assert run("adopt", "src").code == 0
    before = set(read_tree(project / "profiles"))
    assert {"a-hold.toml", "b-hold.toml"} <= before
    write(project, more)
    assert run("adopt", "src").code == 0
    assert len(set(read_tree(project / "profiles")) - before) == ("src/new.py" in more)


def test_a_second_run_changes_nothing(project: Path, run: Run) -> None:
    run("adopt", "src")
    before = read_tree(project)
    assert (
        "wrote no preset, as profiles has those of the scripts; generated blocks in 0"
        in run("adopt", "src").err
    )
    assert read_tree(project) == before
    (project / "src/stuck.py").write_text(STUCK.replace("; print(1)", ""))
    assert "generated blocks in 1 of 1 script" in run("adopt", "src").err
    assert read_tree(project / "profiles") == {
        name[len("profiles/") :]: data
        for name, data in before.items()
        if name.startswith("profiles/")
    }
    assert "nothing in the scripts is written by hand" in run("adopt", "src").err


def test_a_dry_run_shows_it_and_writes_nothing(project: Path, run: Run) -> None:
    before = read_tree(project)
    done = run("adopt", "src", "--dry-run")
    assert done.code == 0
    assert "would write" in done.err
    assert read_tree(project) == before
    assert "+++ b/src/bert/train.py" in done.out
    assert "--- /dev/null\n+++ b/profiles/" in done.out


def test_names_that_are_taken_are_all_told_before_anything_is_written(
    project: Path, run: Run
) -> None:
    write(
        project,
        dict.fromkeys(
            ("profiles/run.toml", "profiles/stuck.toml"), '[profile]\ndescription = "x"\n'
        ),
    )
    before = read_tree(project)
    done = run("adopt", "src")
    assert done.code == 2
    assert read_tree(project) == before
    assert all(
        part in done.err for part in ("'run' already", "'stuck' already", "--under adopted")
    ), done.err
    assert run("adopt", "src", "--under", "adopted").code == 0
    assert (project / "profiles/adopted/run.toml").is_file()
    assert b"# >>> npuprof adopted/run >>>" in (project / "src/run.sh").read_bytes()
    assert run("inject", "src", "--all", "--check").code == 0


def test_a_script_that_cannot_be_written_keeps_its_lines(project: Path, run: Run) -> None:
    (project / "src/bert/train.py").chmod(0o444)
    write(project, {"elsewhere/train.py": PLAIN.replace("allow_mix_precision", "force_fp32")})
    (project / "src/link.py").symlink_to(project / "elsewhere/train.py")
    (project / "src/again.py").symlink_to(project / "src/resnet/train.py")
    done = run("adopt", "src")
    assert done.code == 0
    assert "src/bert/train.py keeps its lines: src/bert/train.py is read-only" in done.err
    assert "src/link.py keeps its lines: src/link.py is a link that leads out of src" in done.err
    assert (project / "src/bert/train.py").read_text() == PLAIN
    assert b">>> npuprof" not in (project / "elsewhere/train.py").read_bytes()
    assert (project / "src/resnet/train.py").read_bytes().count(b">>> npuprof") == 1


@pytest.mark.parametrize(
    ("more", "code"),
    [("'hccl_timeout'].i = -5", "NP203"), ("'modify_mixlist'].s = b'/m.json'", "NP302")],
)
def test_a_preset_that_render_rejects_is_not_written_and_its_script_keeps_its_lines(
    more: str, code: str, project: Path, run: Run
) -> None:
    text = OTHER.replace(OFF, f"custom_op.parameter_map[{more}\n{OFF}")
    write(project, {"src/bert/bad.py": text})
    done = run("adopt", "src")
    assert done.code == 0
    assert "src/bert/bad.py:8 keeps its lines: " in done.err
    assert (project / "src/bert/bad.py").read_text() == text
    assert [path.stem for path in project.glob("profiles/bert*")] == ["bert-train"]
    assert run("check", "--strict").code == 0
    stored = {
        kept["file"]: kept["findings"]
        for kept in json.loads(run("adopt", "src", "--format", "json").out)["kept"]
    }
    assert [
        (finding["code"], finding["path"], finding["line"]) for finding in stored["src/bert/bad.py"]
    ] == [(code, "src/bert/bad.py", 8)]


def test_a_rejected_preset_is_described_by_the_lines_of_its_script(project: Path, run: Run) -> None:
    flags = "--hidden-size 4096 \\\n --num-attention-heads 30 \\\n --num-layers 2\n"
    write(project, {"own/a.sh": f"export HCCL_BUFFSIZE=200\ntorchrun t.py {flags}"})
    err = run("adopt", "own").err
    assert "own/a.sh:2 keeps its lines: hidden-size is not a multiple" in err
    assert "megatron.num-attention-heads is set in own/a.sh:3." in err


def test_a_file_that_is_not_there_is_an_error(project: Path, run: Run) -> None:
    done = run("adopt", "nothere")
    assert done.code == 2
    assert "cannot read the file" in done.err
    done = run("adopt", "src", "--under", "bad name")
    assert done.code == 2
    assert done.err.count("error NP004") == 1


def test_nothing_is_written_where_the_store_cannot_be(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_tree(project)

    def refuse(*values: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(Tree, "link_file", refuse)
    monkeypatch.setattr(Tree, "rename", refuse)
    assert run("adopt", "src").code == 2
    assert read_tree(project) == before
    assert list((project / "profiles").iterdir()) == []


def test_lines_beside_a_block_are_told_and_left_unless_its_preset_has_them_too(
    project: Path, run: Run
) -> None:
    path = project / "src/bert/train.py"
    path.write_text(f'import os\nos.environ["HCCL_CONNECT_TIMEOUT"] = "600"\n{path.read_text()}')
    assert run("adopt", "src/bert").code == 0
    assert "HCCL_CONNECT_TIMEOUT" in "".join(
        path.read_text() for path in (project / "profiles").rglob("*.toml")
    )
    same = run("adopt", "src/bert", "--strict")
    assert same.code == 0
    assert "set more" not in same.err
    path.write_text(path.read_text().replace('"600"', '"1200"'))
    before = read_tree(project)
    more = run("adopt", "src/bert", "--strict")
    assert more.code == 1
    assert "set more outside the block of" in more.err
    assert read_tree(project) == before


CONSTANT = (
    f"from settings import MODE\n{HEAD}{ENTRY}custom_op.parameter_map['precision_mode'].s = "
    f"tf.compat.as_bytes(MODE)\n{OFF}{RUN}"
)


def test_lines_of_a_helper_are_no_other_scripts_to_replace(
    store: Store, tmp_path: Path, run: Run
) -> None:
    scripts = {
        "src/m/train.py": CALLS,
        "src/npu_utils.py": HELPER,
        "src/m/own.py": CONSTANT,
        "src/settings.py": "MODE = 'force_fp16'\n",
    }
    write(tmp_path, scripts)
    store({})
    done = run("adopt", "src")
    assert done.code == 0
    assert "src/m/train.py:2 keeps its lines: its lines are in src/npu_utils.py" in done.err
    assert "generated blocks in 1 of 2 scripts" in done.err
    assert [(tmp_path / name).read_text() for name in ("src/npu_utils.py", "src/m/train.py")] == [
        HELPER,
        CALLS,
    ]
    assert ">>> npuprof own >>>" in (tmp_path / "src/m/own.py").read_text()
    (tmp_path / ".git").mkdir()
    done = run("inject", "src/m/train.py", "m-train", "--replace")
    assert done.code == 2
    assert "src/m/train.py:2: error NP830: its lines are in src/npu_utils.py" in done.err
    assert (
        "if every script that calls it shall have these settings: npuprof inject "
        "src/npu_utils.py m-train --replace"
    ) in done.err


@pytest.mark.parametrize("name", ["src/npu_utils.py", "src/lib/npu_utils.py"])
def test_a_block_stands_in_the_helper_that_has_the_lines(
    name: str, store: Store, tmp_path: Path, run: Run
) -> None:
    helper = HELPER.replace(
        "    return", '    custom_op.parameter_map["use_off_line"].b = True\n    return'
    )
    calls = CALLS if "lib" not in name else CALLS.replace("from npu_utils", "from lib.npu_utils")
    write(
        tmp_path,
        {"src/m/train.py": calls, "src/m/eval.py": calls.replace("'force_fp32'", ""), name: helper},
    )
    store({})
    assert "generated blocks in 1 of 1 script" in run("adopt", "src").err
    (text,) = (path.read_text() for path in (tmp_path / "profiles").rglob("*.toml"))
    assert "use_off_line = true" in text
    block = (tmp_path / name).read_text()
    assert ">>> npuprof npu_utils >>>" in block
    assert "tf.compat.as_bytes(precision)" in block
    assert (tmp_path / "src/m/train.py").read_text() == calls
    before = read_tree(tmp_path)
    assert run("adopt", "src").code == 0
    assert read_tree(tmp_path) == before


def test_a_helper_keeps_lines_whose_values_another_script_sets(
    store: Store, tmp_path: Path, run: Run
) -> None:
    helper = "MODE = 'force_fp16'\n" + HELPER.replace("as_bytes(precision)", "as_bytes(MODE)")
    calls = (
        "import npu_utils\nnpu_utils.MODE = 'force_fp32'\n"
        "sess = tf.Session(config=npu_utils.get_config())\n"
    )
    write(tmp_path, {"src/train.py": calls, "src/eval.py": CALLS, "src/npu_utils.py": helper})
    store({})
    result = " ".join(run("adopt", "src").err.split())
    assert (
        "src/npu_utils.py keeps its lines: a block in it would change the settings of another "
        "script. src/train.py uses it"
    ) in result
    assert (tmp_path / "src/npu_utils.py").read_text() == helper


def test_a_file_that_a_script_names_stays_and_its_path_is_the_value(
    project: Path, run: Run
) -> None:
    mixed = (
        f"{HEAD}{ENTRY}{MIXED}custom_op.parameter_map['modify_mixlist'].s = b'ops.json'\n{OFF}{RUN}"
    )
    atc = (
        "#!/bin/bash\natc --model=a.pb --framework=3 --output=a --soc_version=Ascend310P3 "
        "--modify_mixlist=ops.json --precision_mode=x\n"
    )
    listed = '{"black-list": {"to-add": ["MatMul"]}}\n'
    write(
        project,
        {
            "own/train.py": mixed,
            "own/convert.sh": atc.replace("=x", "=allow_mix_precision"),
            "own/ops.json": listed,
        },
    )
    assert run("adopt", "own", "--strict").code == 0
    assert "as_bytes('ops.json')" in (project / "own/train.py").read_text().replace('"', "'")
    assert "--modify_mixlist=ops.json" in (project / "own/convert.sh").read_text()
    assert (project / "own/ops.json").read_text() == listed
    store = npuprof.open_store("profiles")
    assert {store.resolve(name).options["modify_mixlist"] for name in store} == {"ops.json"}
    after = read_tree(project)
    assert run("adopt", "own").code == 0
    assert read_tree(project) == after


def test_the_variable_of_one_command_stays_and_the_exports_become_a_block(
    project: Path, run: Run
) -> None:
    line = "HCCL_BUFFSIZE=400 torchrun train.py\n"
    exports = "export HCCL_CONNECT_TIMEOUT=1800\nexport OMP_NUM_THREADS=8\n"
    write(project, {"own/start.sh": f"#!/bin/bash\n{exports}{line}"})
    assert "generated blocks in 1 of 1 script" in run("adopt", "own").err
    script = (project / "own/start.sh").read_text()
    assert script.endswith(line)
    assert exports not in script
    assert "HCCL_BUFFSIZE" not in script.removesuffix(line)
    assert "OMP_NUM_THREADS" in (project / "profiles/own-start.toml").read_text()


def test_a_store_has_all_presets_only_if_none_was_rejected(project: Path, run: Run) -> None:
    write(project, {"own/bad.sh": "export HCCL_BUFFSIZE=many\n"})
    message = run("adopt", "own").err
    assert "wrote no preset" in message
    assert "has those of the scripts" not in message


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("export HCCL_BUFFSIZE=$X\n", {1: "depends on $X"}),
        (
            "if [ $1 = a ]; then\nexport HCCL_BUFFSIZE=300\nelse\nexport HCCL_BUFFSIZE=400\nfi\n",
            {2: "only if [ $1 = a ]", 4: "only if not ([ $1 = a ])"},
        ),
        (
            "HCCL_BUFFSIZE=400 torchrun a.py\n",
            {1: "it is set for the command in line 1 only"},
        ),
    ],
    ids=["unknown value", "both arms of an if", "variable of one command"],
)
def test_each_line_that_stays_is_told_with_its_reason(
    script: str, told: dict[int, str], project: Path, run: Run
) -> None:
    (project / "run.sh").write_text(script)
    done = run("adopt", "run.sh")
    assert (project / "run.sh").read_text() == script
    stays = [
        f"run.sh:{line}: env.HCCL_BUFFSIZE stays as it is: {why}" for line, why in told.items()
    ]
    *notes, last = [line.removeprefix("npuprof: ") for line in done.err.splitlines()]
    assert notes == stays
    assert last == "nothing else in the scripts is written by hand that a preset could hold"
    assert json.loads(run("adopt", "run.sh", "--format", "json").out)["stays"] == stays


#: Of the shape of a test recipe, as in https://github.com/volcano-sh/kthena (examples).
_RECIPE = """test_cases:
  - envs:
      HCCL_BUFFSIZE: "400"
    server_cmd: ["--max-model-len", "8192"]
  - server_cmd: ["--max-model-len", "4096"]
"""


@pytest.mark.parametrize("named", [".", "own", "own/recipe.yaml"])
def test_files_that_take_no_block_are_told_with_the_lines_of_their_launches(
    named: str, project: Path, run: Run
) -> None:
    write(project, {"own/recipe.yaml": _RECIPE})
    before = (project / "own/recipe.yaml").read_bytes()
    done = run("adopt", named, "--format", "json")
    path = "own/recipe.yaml"
    kept = {item["file"]: item["findings"] for item in json.loads(done.out)["kept"]}[path]
    assert [finding["line"] for finding in kept] == [3, 4, 5]
    assert {finding["hint"] for finding in kept} == {f"npuprof import {path} makes a preset of it"}
    assert (project / path).read_bytes() == before
    assert not list(project.glob("profiles/*recipe*"))
    assert f"{path}:3 keeps its lines: blocks are supported in" in run("adopt", "own").err


def test_arguments_that_no_block_contains_are_told_with_their_line(project: Path, run: Run) -> None:
    launch = "vllm serve a/model --max-model-len 8192\n"
    write(project, {"own/start.sh": f"export HCCL_BUFFSIZE=400\n{launch}"})
    told = "own/start.sh:2: model, max-model-len of vllm stay as they are: no block contains them"
    assert told in run("adopt", "own").err
    assert (project / "own/start.sh").read_text().endswith(launch)


def test_a_file_that_a_preset_rendered_is_not_told(project: Path, run: Run) -> None:
    write(project, {"profiles/serve.toml": "[vllm]\nmax-model-len = 8192\nmax-num-seqs = 8\n"})
    assert run("render", "serve", "--to", "vllm", "-o", "own").code == 0
    assert "config.yaml" not in run("adopt", "own").err
