"""``adopt``: a tree of scripts becomes a family of presets, and its scripts use generated blocks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import npuprof
from npuprof.system.tree import Tree
from support.adopted import CALLS, HELPER, OTHER, PLAIN
from support.importing import write
from support.replaced import ENTRY, EXPORTS, HEAD, MIXED, OFF, RUN
from support.running import Run, Store

STUCK = f"{HEAD}{ENTRY}custom_op.parameter_map['precision_mode'].s = b'force_fp32'; print(1)\n{OFF}{RUN}"
#: Something is set, and nothing that a preset could have.
EMPTY = f"import sys\n{HEAD}{ENTRY}custom_op.parameter_map['precision_mode'].s = sys.argv[1]\n{OFF}{RUN}"
TREE = {
    "src/bert/train.py": PLAIN, "src/resnet/train.py": OTHER, "src/resnet/eval.py": OTHER, "src/stuck.py": STUCK,
    "src/run.sh": f"#!/bin/bash\n{EXPORTS}python3 train.py\n", "src/plain.py": "print(1)\n",
}  # fmt: skip

#: Scripts that share so much that a base is made of it.
ALIKE = {
    f"src/alike/model{number}.py": PLAIN.replace(
        OFF,
        f"custom_op.parameter_map['hccl_timeout'].i = {1800 + number}\ncustom_op.parameter_map['graph_run_mode'].i = 1\n"
        f"custom_op.parameter_map['hcom_parallel'].b = True\n{OFF}",
    )
    for number in range(4)
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, TREE)
    (tmp_path / "profiles").mkdir()
    return tmp_path


def read_tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".") and "home" not in path.relative_to(folder).parts
    }


def test_presets_and_blocks_are_written_together(here: Path, run: Run) -> None:
    done = run("adopt", "src")
    assert done.code == 0
    assert "src/stuck.py:6 keeps its lines: the line that sets precision_mode cannot be taken out" in done.err
    assert "4 of 5 scripts use generated blocks" in done.err
    store = npuprof.open_store("profiles")
    found = [store.resolve(name).options for name in store if not store.resolve(name).env]
    assert {"precision_mode": "allow_mix_precision", "use_off_line": True} in found
    assert run("inject", "src", "--all", "--check").code == 0
    assert run("check").code == 0
    assert [b">>> npuprof" in (here / name).read_bytes() for name in ("src/stuck.py", "src/run.sh")] == [False, True]


@pytest.mark.parametrize(
    "more", [{}, {"src/new.py": PLAIN.replace("allow_mix_precision", "must_keep_origin_dtype")}, {"src/empty.py": EMPTY}]
)
def test_a_script_that_keeps_its_lines_has_one_preset_however_often_it_is_run(more: dict[str, str], here: Path, run: Run) -> None:
    """With the others of its name in blocks it would be called otherwise."""
    hold = {"a": STUCK.replace("force_fp32", "allow_fp32_to_fp16"), "b": PLAIN.replace("True", "False")}
    write(here, {**{f"src/{name}/hold.py": text for name, text in hold.items()}, "src/empty.py": EMPTY})
    assert run("adopt", "src").code == 0
    before = set(read_tree(here / "profiles"))
    assert {"a-hold.toml", "b-hold.toml"} <= before
    write(here, more)
    assert run("adopt", "src").code == 0
    assert len(set(read_tree(here / "profiles")) - before) == ("src/new.py" in more)


def test_a_second_run_changes_nothing(here: Path, run: Run) -> None:
    run("adopt", "src")
    before = read_tree(here)
    assert "profiles has all the presets already; 0 of 1 script use generated blocks" in run("adopt", "src").err
    assert read_tree(here) == before
    (here / "src/stuck.py").write_text(STUCK.replace("; print(1)", ""))
    assert "1 of 1 script uses generated blocks" in run("adopt", "src").err
    assert read_tree(here / "profiles") == {name[len("profiles/") :]: data for name, data in before.items() if name.startswith("profiles/")}
    assert "nothing in the scripts is written by hand" in run("adopt", "src").err


def test_a_run_that_was_killed_between_its_presets_is_finished_by_the_next(here: Path, run: Run) -> None:
    write(here, ALIKE)
    old = read_tree(here)
    assert run("adopt", "src/alike", "--under", "zoo").code == 0
    whole = read_tree(here)
    made = sorted((name for name in whole if name not in old), key=lambda name: (b"\nabstract = " not in whole[name], name))
    assert len(made) > 3
    for count in range(1, len(made) + 1):
        shutil.rmtree(here / "profiles/zoo")
        write(here, {name: text.decode() for name, text in (old | {name: whole[name] for name in made[:count]}).items()})
        done = run("adopt", "src/alike", "--under", "zoo")
        assert done.code == 0, done.err
        now = read_tree(here)
        assert {name for name in now if name.startswith("src")} == {name for name in whole if name.startswith("src")}
        assert all(now[name] == whole[name] for name in made[:count]), "what is there stays as it is"
        assert all(b">>> npuprof zoo/" in now[name] for name in whole if b">>> npuprof zoo/" in whole[name])


def test_scripts_that_are_adopted_later_get_a_base_of_their_own(here: Path, run: Run) -> None:
    later = {name.replace("alike/model", "later/net"): text.replace("hcom_parallel", "dynamic_input") for name, text in ALIKE.items()}
    write(here, ALIKE | later)
    for folder in ("src/alike", "src/later"):
        assert run("adopt", folder).code == 0
    store = npuprof.open_store("profiles")
    assert (store.resolve("base")["hcom_parallel"], store.resolve("base-2")["dynamic_input"]) == (True, True)
    assert run("inject", "src", "--all", "--check").code == 0


def test_a_dry_run_shows_it_and_writes_nothing(here: Path, run: Run) -> None:
    before = read_tree(here)
    done = run("adopt", "src", "--dry-run")
    assert (done.code, "would write" in done.err, read_tree(here)) == (0, True, before)
    assert "+++ b/src/bert/train.py" in done.out
    assert "--- /dev/null\n+++ b/profiles/" in done.out


def test_names_that_are_taken_are_all_told_before_anything_is_written(here: Path, run: Run) -> None:
    write(here, dict.fromkeys(("profiles/run.toml", "profiles/stuck.toml"), '[profile]\ndescription = "x"\n'))
    before = read_tree(here)
    done = run("adopt", "src")
    assert (done.code, read_tree(here)) == (2, before)
    assert all(said in done.err for said in ("'run' already", "'stuck' already", "--under adopted")), done.err
    assert run("adopt", "src", "--under", "adopted").code == 0
    assert (here / "profiles/adopted/run.toml").is_file()
    assert b"# >>> npuprof adopted/run >>>" in (here / "src/run.sh").read_bytes()
    assert run("inject", "src", "--all", "--check").code == 0


def test_a_script_that_cannot_be_written_keeps_its_lines(here: Path, run: Run) -> None:
    (here / "src/bert/train.py").chmod(0o444)
    write(here, {"elsewhere/train.py": PLAIN.replace("allow_mix_precision", "force_fp32")})
    (here / "src/link.py").symlink_to(here / "elsewhere/train.py")
    (here / "src/again.py").symlink_to(here / "src/resnet/train.py")
    done = run("adopt", "src")
    assert done.code == 0
    assert "src/bert/train.py keeps its lines: src/bert/train.py is read-only" in done.err
    assert "src/link.py keeps its lines: src/link.py is a link that leads out of src" in done.err
    assert (here / "src/bert/train.py").read_text() == PLAIN
    assert b">>> npuprof" not in (here / "elsewhere/train.py").read_bytes()
    assert (here / "src/resnet/train.py").read_bytes().count(b">>> npuprof") == 1


def test_a_script_in_a_read_only_folder_stays_and_the_others_are_taken(here: Path, run: Run) -> None:
    (here / "src/bert").chmod(0o555)
    try:
        tried, done = run("adopt", "src", "--dry-run"), run("adopt", "src")
    finally:
        (here / "src/bert").chmod(0o755)
    assert "src/bert/train.py keeps its lines: the folder of src/bert/train.py is read-only" in done.err
    assert all("3 of 5 scripts use generated blocks" in one.err for one in (tried, done))
    assert (here / "src/bert/train.py").read_text() == PLAIN


@pytest.mark.parametrize(("more", "code"), [("'hccl_timeout'].i = -5", "NP203"), ("'modify_mixlist'].s = b'/m.json'", "NP302")])
def test_a_preset_that_render_rejects_is_not_written_and_its_script_keeps_its_lines(more: str, code: str, here: Path, run: Run) -> None:
    text = OTHER.replace(OFF, f"custom_op.parameter_map[{more}\n{OFF}")
    write(here, {"src/bert/bad.py": text})
    done = run("adopt", "src")
    assert (done.code, "src/bert/bad.py:8 keeps its lines: " in done.err) == (0, True)
    assert (here / "src/bert/bad.py").read_text() == text
    assert [path.stem for path in here.glob("profiles/bert*")] == ["bert-train"]
    assert run("check", "--strict").code == 0
    kept = {one["file"]: one["findings"] for one in json.loads(run("adopt", "src", "--format", "json").out)["kept"]}
    assert [(one["code"], one["path"], one["line"]) for one in kept["src/bert/bad.py"]] == [(code, "src/bert/bad.py", 8)]


def test_a_block_of_a_preset_of_the_store_that_render_rejects_is_not_written(here: Path, run: Run) -> None:
    text = OTHER.replace("'use_off_line'].b = True", "'hccl_timeout'].i = -5")
    write(here, {"profiles/mine.toml": '[options]\nprecision_mode = "force_fp16"\nhccl_timeout = -5\n', "src/bert/bad.py": text})
    done = run("adopt", "src/bert/bad.py")
    assert (done.code, "src/bert/bad.py keeps its lines: hccl_timeout = -5 is out of range" in done.err) == (0, True)
    assert (here / "src/bert/bad.py").read_text() == text


def test_a_file_that_is_not_there_is_an_error(here: Path, run: Run) -> None:
    done = run("adopt", "nothere")
    assert (done.code, "cannot read the file" in done.err) == (2, True)
    done = run("adopt", "src", "--under", "bad name")
    assert (done.code, done.err.count("error NP004")) == (2, 1)


def test_nothing_is_written_where_the_store_cannot_be(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_tree(here)

    def refuse(*given: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(Tree, "link_file", refuse)
    monkeypatch.setattr(Tree, "rename", refuse)
    assert run("adopt", "src").code == 2
    assert (read_tree(here), list((here / "profiles").iterdir())) == (before, [])


def test_an_answer_for_programs_lists_everything(here: Path, run: Run) -> None:
    done = run("adopt", "src", "--format", "json", "--strict")
    told = json.loads(done.out)
    assert (done.code, told["schema"]) == (1, "npuprof.adopt/1")
    scripts = {tuple(preset["scripts"]) for preset in told["presets"] if preset["scripts"]}
    assert ("src/resnet/eval.py", "src/resnet/train.py") in scripts
    assert [one["file"] for one in told["kept"]] == ["src/stuck.py"]
    assert {one["file"] for one in told["adopted"]} == {"src/bert/train.py", "src/resnet/train.py", "src/resnet/eval.py", "src/run.sh"}


def test_lines_beside_a_block_are_told_and_left_unless_its_preset_has_them_too(here: Path, run: Run) -> None:
    path = here / "src/bert/train.py"
    path.write_text(f'import os\nos.environ["HCCL_CONNECT_TIMEOUT"] = "600"\n{path.read_text()}')
    assert run("adopt", "src/bert").code == 0
    assert "HCCL_CONNECT_TIMEOUT" in "".join(one.read_text() for one in (here / "profiles").rglob("*.toml"))
    same = run("adopt", "src/bert", "--strict")
    assert (same.code, "set more" in same.err) == (0, False)
    path.write_text(path.read_text().replace('"600"', '"1200"'))
    before = read_tree(here)
    more = run("adopt", "src/bert", "--strict")
    assert (more.code, "set more beside the block of" in more.err, read_tree(here)) == (1, True, before)


CONSTANT = f"from settings import MODE\n{HEAD}{ENTRY}custom_op.parameter_map['precision_mode'].s = tf.compat.as_bytes(MODE)\n{OFF}{RUN}"


def test_lines_of_a_helper_are_no_other_scripts_to_replace(store: Store, tmp_path: Path, run: Run) -> None:
    scripts = {"src/m/train.py": CALLS, "src/npu_utils.py": HELPER, "src/m/own.py": CONSTANT, "src/settings.py": "MODE = 'force_fp16'\n"}
    write(tmp_path, scripts)
    store({})
    done = run("adopt", "src")
    assert done.code == 0
    assert "src/m/train.py:2 keeps its lines: its lines stand in src/npu_utils.py" in done.err
    assert "1 of 2 scripts uses generated blocks" in done.err
    assert [(tmp_path / name).read_text() for name in ("src/npu_utils.py", "src/m/train.py")] == [HELPER, CALLS]
    assert ">>> npuprof own >>>" in (tmp_path / "src/m/own.py").read_text()
    (tmp_path / ".git").mkdir()
    done = run("inject", "src/m/train.py", "m-train", "--replace")
    assert (done.code, "src/m/train.py:2: error NP830: its lines stand in src/npu_utils.py" in done.err) == (2, True)
    assert "if every script that calls it shall have these settings: npuprof inject src/npu_utils.py m-train --replace" in done.err


@pytest.mark.parametrize("name", ["src/npu_utils.py", "src/lib/npu_utils.py"])
def test_a_block_stands_in_the_helper_that_has_the_lines(name: str, store: Store, tmp_path: Path, run: Run) -> None:
    helper = HELPER.replace("    return", '    custom_op.parameter_map["use_off_line"].b = True\n    return')
    calls = CALLS if "lib" not in name else CALLS.replace("from npu_utils", "from lib.npu_utils")
    write(tmp_path, {"src/m/train.py": calls, "src/m/eval.py": calls.replace("'force_fp32'", ""), name: helper})
    store({})
    assert "1 of 1 script uses generated blocks" in run("adopt", "src").err
    (text,) = (path.read_text() for path in (tmp_path / "profiles").rglob("*.toml"))
    assert "use_off_line = true" in text
    block = (tmp_path / name).read_text()
    assert (">>> npuprof npu_utils >>>" in block, "tf.compat.as_bytes(precision)" in block) == (True, True)
    assert (tmp_path / "src/m/train.py").read_text() == calls
    before = read_tree(tmp_path)
    assert (run("adopt", "src").code, read_tree(tmp_path)) == (0, before)


def test_a_helper_keeps_lines_whose_values_another_script_sets(store: Store, tmp_path: Path, run: Run) -> None:
    helper = "MODE = 'force_fp16'\n" + HELPER.replace("as_bytes(precision)", "as_bytes(MODE)")
    calls = "import npu_utils\nnpu_utils.MODE = 'force_fp32'\nsess = tf.Session(config=npu_utils.get_config())\n"
    write(tmp_path, {"src/train.py": calls, "src/eval.py": CALLS, "src/npu_utils.py": helper})
    store({})
    said = " ".join(run("adopt", "src").err.split())
    assert "src/npu_utils.py keeps its lines: a block in it would change what another script sets. src/train.py uses it" in said
    assert (tmp_path / "src/npu_utils.py").read_text() == helper


def test_import_tells_of_a_helper_who_calls_it(tmp_path: Path, run: Run) -> None:
    write(tmp_path, {"src/m/train.py": CALLS, "src/m/eval.py": CALLS.replace("force_fp32", "force_fp16"), "src/npu_utils.py": HELPER})
    told = json.loads(run("import", "src", "--format", "json").out)
    modes = {"src/m/eval.py": "force_fp16", "src/m/train.py": "force_fp32"}
    assert [(one["file"], one["options"]) for one in told["presets"]] == [(name, {"precision_mode": mode}) for name, mode in modes.items()]
    assert [(one["file"], one["line"], one["value"]) for one in told["settings"]] == [("src/npu_utils.py", 7, None)]
    followed = [(one["script"], one["call"], one["file"], one["line"]) for one in told["followed"]]
    assert followed == [(name, 2, "src/npu_utils.py", 7) for name in modes]
    reason = "used by src/m/eval.py, src/m/train.py (get_config()): what is set there is in the preset of each script that does"
    assert told["nothing"] == [{"file": "src/npu_utils.py", "reason": reason}]
    surfaces = json.loads(run("scan", "src", "--statistics", "--format", "json").out)["surfaces"]
    assert surfaces == [{"files": 2, "settings": 2, "surface": "session"}]
    assert run("import", "src", "--base", "auto", "-o", "out").code == 0
    assert sorted(path.stem for path in (tmp_path / "out").rglob("*.toml"))[-2:] == ["m-eval", "m-train"]
    alone = run("import", "src/npu_utils.py", "--format", "text").out
    assert "src/npu_utils.py:7: precision_mode: depends on the parameter precision of get_config()" in alone
    assert "why: 1 setting: depends on the parameter precision of get_config()." in run("import", "src/npu_utils.py").err


def test_a_file_that_a_script_names_stays_and_its_path_is_the_value(here: Path, run: Run) -> None:
    mixed = f"{HEAD}{ENTRY}{MIXED}custom_op.parameter_map['modify_mixlist'].s = b'ops.json'\n{OFF}{RUN}"
    atc = "#!/bin/bash\natc --model=a.pb --framework=3 --output=a --soc_version=Ascend310P3 --modify_mixlist=ops.json --precision_mode=x\n"
    listed = '{"black-list": {"to-add": ["MatMul"]}}\n'
    write(here, {"own/train.py": mixed, "own/convert.sh": atc.replace("=x", "=allow_mix_precision"), "own/ops.json": listed})
    assert run("adopt", "own", "--strict").code == 0
    assert "as_bytes('ops.json')" in (here / "own/train.py").read_text().replace('"', "'")
    assert "--modify_mixlist=ops.json" in (here / "own/convert.sh").read_text()
    assert (here / "own/ops.json").read_text() == listed
    store = npuprof.open_store("profiles")
    assert {store.resolve(name).options["modify_mixlist"] for name in store} == {"ops.json"}
    after = read_tree(here)
    assert (run("adopt", "own").code, read_tree(here)) == (0, after)


@pytest.mark.parametrize(("value", "said"), [
    ('"ops.json"', "wrote own.py"), ('{ black-list = { to-add = ["MatMul"] } }', "modify_mixlist is"),
    ('"other.json"', 'modify_mixlist is "other.json" in the preset, "ops.json" in line'),
])  # fmt: skip
def test_a_preset_that_writes_a_file_stands_for_no_line_that_names_one(here: Path, value: str, said: str, run: Run) -> None:
    text = f"{HEAD}{ENTRY}{MIXED}custom_op.parameter_map['modify_mixlist'].s = b'ops.json'\n{OFF}{RUN}"
    preset = f'[options]\nprecision_mode = "allow_mix_precision"\nmodify_mixlist = {value}\n'
    write(here, {"own.py": text, "ops.json": '{"black-list": {"to-add": ["MatMul"]}}\n', "profiles/p.toml": preset})
    done = run("inject", "own.py", "p", "--replace")
    assert (done.code, said in " ".join(done.err.split())) == (0 if "wrote" in said else 2, True), done.err
