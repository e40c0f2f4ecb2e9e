"""Scripts moved to another release: literals change in place, all else stays as it is, what is not certain is said at its line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from growth import count_calls, measure_growth
from hypothesis import given
from hypothesis import strategies as st
from importing import HEAD, TAIL, imported, write

from npuprof.model import Context
from npuprof.scripts.migration import moving
from npuprof.scripts.migration.literals import PythonScript
from npuprof.scripts.migration.moving import MovedScript, move_script

RUN = "from npu_bridge.npu_init import *\n"
TF2 = "import npu_device as npu\n"
ATC = "atc --model=a.pb --framework=3 --output=a --soc_version=Ascend310P3 "
MAP = 'custom_op.parameter_map["{}"].{} = '


def moved(text: str | bytes, name: str = "x.py", release: str = "9.0.0", since: str = "") -> MovedScript:
    data = text if isinstance(text, bytes) else text.encode()
    return move_script(name, data, Context(release), since)


def session(lines: str) -> str:
    return f"{HEAD}{lines}{TAIL}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # every way in which import reads a parameter map
        ('custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes("force_fp32")  # why\n',
         'custom_op.parameter_map["precision_mode_v2"].s = tf.compat.as_bytes("cube_fp16in_fp32out")  # why\n'),
        ("custom_op.parameter_map['precision_mode'].s=b'force_fp32'\n",
         "custom_op.parameter_map['precision_mode_v2'].s=b'cube_fp16in_fp32out'\n"),
        ('custom_op.parameter_map["precision_mode"].s = "must_keep_origin_dtype".encode()\n',
         'custom_op.parameter_map["precision_mode_v2"].s = "origin".encode()\n'),
        ('custom_op.parameter_map["mstune_mode"].s = b"2"; x = 1\n', 'custom_op.parameter_map["aoe_mode"].s = b"2"; x = 1\n'),
        ('custom_op.parameter_map["static_memory_policy"].i = 1\n', 'custom_op.parameter_map["static_memory_policy"].i = 2\n'),
        ('custom_op.parameter_map["jit_compile"].b = True\n', 'custom_op.parameter_map["jit_compile"].s = b"true"\n'),
        ('setattr(custom_op.parameter_map["precision_mode"], "s", b"force_fp32")\n',
         'setattr(custom_op.parameter_map["precision_mode_v2"], "s", b"cube_fp16in_fp32out")\n'),
        ('custom_op.parameter_map["precision_mode"].CopyFrom(AttrValue(s=b"force_fp32"))\n',
         'custom_op.parameter_map["precision_mode_v2"].CopyFrom(AttrValue(s=b"cube_fp16in_fp32out"))\n'),
        ('pm = custom_op.parameter_map\npm["precision_mode"].s = b"force_fp32"\n',
         'pm = custom_op.parameter_map\npm["precision_mode_v2"].s = b"cube_fp16in_fp32out"\n'),
        ('custom_op.parameter_map["use_off_line"].b, custom_op.parameter_map["precision_mode"].s = True, b"force_fp32"\n',
         'custom_op.parameter_map["use_off_line"].b, custom_op.parameter_map["precision_mode_v2"].s = True, b"cube_fp16in_fp32out"\n'),
        ('MODE = "force_fp32"\ncustom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(MODE)\n',
         'MODE = "cube_fp16in_fp32out"\ncustom_op.parameter_map["precision_mode_v2"].s = tf.compat.as_bytes(MODE)\n'),
        ('é = "é"; custom_op.parameter_map["precision_mode"].s = b"force_fp32"; ü = "ü"\n',
         'é = "é"; custom_op.parameter_map["precision_mode_v2"].s = b"cube_fp16in_fp32out"; ü = "ü"\n'),
        ('if FLAGS.fast:\n    custom_op.parameter_map["precision_mode"].s = b"allow_mix_precision"\n'
         'else:\n    custom_op.parameter_map["precision_mode"].s = b"force_fp32"\n',
         'if FLAGS.fast:\n    custom_op.parameter_map["precision_mode_v2"].s = b"mixed_float16"\n'
         'else:\n    custom_op.parameter_map["precision_mode_v2"].s = b"cube_fp16in_fp32out"\n'),
        ('custom_op.parameter_map["graph_run_mode"].i = 0\ncustom_op.parameter_map["precision_mode"].s = b"force_fp16"\n',
         'custom_op.parameter_map["graph_run_mode"].i = 0\ncustom_op.parameter_map["precision_mode_v2"].s = b"fp16"\n'),
        ('x = 1\ncustom_op.parameter_map["graph_memory_max_size"].s = tf.compat.as_bytes(str(3 * 1024))\ny = 2\n', "x = 1\ny = 2\n"),
        ('# custom_op.parameter_map["mstune_mode"].s = b"2"\ncustom_op.parameter_map["mstune_mode"].s = b"2"\n',
         '# custom_op.parameter_map["mstune_mode"].s = b"2"\ncustom_op.parameter_map["aoe_mode"].s = b"2"\n'),
        # a value that no step is about
        ('custom_op.parameter_map["precision_mode"].s = b"allow_fp32_to_fp16"\n', None),
        ('custom_op.parameter_map["precision_mode_v2"].s = b"origin"\n', None),
    ],
)  # fmt: skip
def test_the_literals_of_a_session_change_where_they_stand(before: str, after: str | None) -> None:
    done = moved(session(before))
    assert done.after.decode() == session(before if after is None else after)
    assert bool(done.made) == (after is not None)
    assert [one for one in done.left if one.code == "NP511"] == []


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("x.py", f'{RUN}c = NPURunConfig(precision_mode="force_fp32", use_off_line=True)\n',
         f'{RUN}c = NPURunConfig(precision_mode_v2="cube_fp16in_fp32out", use_off_line=True)\n'),
        ("x.py", f"{RUN}c = NPURunConfig(\n    precision_mode='force_fp32',  # fast\n    model_dir='x')\n",
         f"{RUN}c = NPURunConfig(\n    precision_mode_v2='cube_fp16in_fp32out',  # fast\n    model_dir='x')\n"),
        ("x.py", f'{RUN}c = NPURunConfig(jit_compile=True)\n', f'{RUN}c = NPURunConfig(jit_compile="true")\n'),
        ("x.py", f'{RUN}c = NPURunConfig(graph_memory_max_size="1", use_off_line=True)\n', f"{RUN}c = NPURunConfig(use_off_line=True)\n"),
        ("x.py", f'{RUN}c = NPURunConfig(use_off_line=True,\n  graph_memory_max_size="1")\n',
         f"{RUN}c = NPURunConfig(use_off_line=True)\n"),
        ("x.py", f'{RUN}c = NPURunConfig(\n  graph_memory_max_size="1",  # 1 byte\n  use_off_line=True,  # on\n)\n',
         f"{RUN}c = NPURunConfig(\n  # 1 byte\n  use_off_line=True,  # on\n)\n"),
        ("x.py", f'{RUN}c = NPURunConfig(\n  use_off_line=True,  # on\n  graph_memory_max_size="1"  # 1 byte\n)\n',
         f"{RUN}c = NPURunConfig(\n  use_off_line=True,  # on\n  # 1 byte\n)\n"),
        ("x.py", f'{RUN}c = NPURunConfig(\n  use_off_line=True,  # on\n  graph_memory_max_size="1",\n)\n',
         f"{RUN}c = NPURunConfig(\n  use_off_line=True,  # on\n)\n"),
        ("x.py", session('custom_op.parameter_map["graph_memory_max_size"].s = b"1"  # kept\n'), session("# kept\n")),
        ("x.py", session('if True:\n    x = 1\n    custom_op.parameter_map["graph_memory_max_size"].s = b"1" # a\r\n'),
         session("if True:\n    x = 1\n    # a\r\n")),
        ("x.py", f'{RUN}m = MemoryConfig(static_memory_policy=1)\nc = NPURunConfig(memory_config=m)\n',
         f'{RUN}m = MemoryConfig(static_memory_policy=2)\nc = NPURunConfig(memory_config=m)\n'),
        ("x.py", f'{TF2}npu.global_options().precision_mode = "force_fp32"\nnpu.open().as_default()\n',
         f'{TF2}npu.global_options().precision_mode_v2 = "cube_fp16in_fp32out"\nnpu.open().as_default()\n'),
        ("x.py", f'{TF2}o = npu.global_options()\no.precision_mode = "force_fp32"\n',
         f'{TF2}o = npu.global_options()\no.precision_mode_v2 = "cube_fp16in_fp32out"\n'),
        ("x.py", f'{TF2}setattr(npu.global_options(), "precision_mode", "force_fp32")\n',
         f'{TF2}setattr(npu.global_options(), "precision_mode_v2", "cube_fp16in_fp32out")\n'),
        ("x.sh", f"{ATC}--precision_mode=force_fp32 --log=error\n", f"{ATC}--precision_mode_v2=cube_fp16in_fp32out --log=error\n"),
        ("x.sh", f'{ATC}--precision_mode="force_fp32"\n', f'{ATC}--precision_mode_v2="cube_fp16in_fp32out"\n'),
        ("x.sh", f"{ATC}'--precision_mode=force_fp16' \\\n  --log=error\n", f"{ATC}'--precision_mode_v2=fp16' \\\n  --log=error\n"),
        ("x.sh", f"{ATC}--precision_mode \\\n  force_fp32\n", f"{ATC}--precision_mode_v2 \\\n  cube_fp16in_fp32out\n"),
    ],
)  # fmt: skip
def test_the_other_surfaces_change_too(name: str, before: str, after: str) -> None:
    done = moved(before, name)
    assert done.after.decode() == after
    assert done.made


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('custom_op.parameter_map["auto_tune_mode"].s = b"GA"\n', "M5: auto_tune_mode needs a decision"),
        ('custom_op.parameter_map["mstune_mode"].s = b"3"\n', "M1: mstune_mode needs a decision"),
        ('custom_op.parameter_map["precision_mode"].s = b"force_fp16"\n', "M11: precision_mode needs a decision"),
        ('custom_op.parameter_map["precision_mode"].s = b"force_fp32"\ncustom_op.parameter_map["precision_mode_v2"].s = b"origin"\n',
         "M13"),
        ('custom_op.parameter_map["precision_mode"].s = b"force_" + b"fp32"\n', "its value is not written as one literal"),
        ('custom_op.parameter_map["precision_mode"].s = b"force_" b"fp32"\n', "it is not written as one plain literal"),
        ('K = "precision_mode"\ncustom_op.parameter_map[K].s = b"force_fp32"\n', "its name is not written out"),
        ('MODE = "force_fp32"\nprint(MODE)\ncustom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(MODE)\n',
         "its value is not written as one literal"),
        ('custom_op.parameter_map["precision_mode"].s = b"force_fp32"\nif FLAGS.x:\n'
         '    custom_op.parameter_map["precision_mode"].s = b"allow_fp32_to_fp16"\n', "for which precision_mode_v2 has no word"),
        ('custom_op.parameter_map["precision_mode"].s = b"force_fp32"\nif FLAGS.x:\n'
         '    custom_op.parameter_map["precision_mode"].s = FLAGS.x\n', "to what a run decides"),
        ('custom_op.parameter_map["precision_mode"].s = b"force_fp32"\nprint(custom_op.parameter_map["precision_mode"].s)\n',
         "line 7 uses the name precision_mode for something else"),
        ('custom_op.parameter_map["precision_mode"].s = b"force_fp32"\nif "precision_mode" in custom_op.parameter_map: pass\n',
         "line 7 uses"),
        ('custom_op.parameter_map["precision_mode"].s = b"force_fp32"\nfill(custom_op)\n',
         "the script does not show whether precision_mode_v2 is set as well"),
        ('custom_op.parameter_map["precision_mode"].s = b"force_fp32"\nif FLAGS.x:\n'
         '    custom_op.parameter_map["precision_mode_v2"].s = b"origin"\n', "does not show whether precision_mode_v2"),
        ('if FLAGS.x:\n    custom_op.parameter_map["graph_memory_max_size"].s = b"1"\n', "more than the setting would go with it"),
        ('custom_op.parameter_map["graph_memory_max_size"].s = b"1"  # npuprof: ignore\n', "more than the setting would go with it"),
        ('custom_op.parameter_map["graph_memory_max_size"].s = (  # why\n    b"1")\n', "more than the setting would go with it"),
        ('custom_op.parameter_map["op_select_implmode"].s = b"high_precision"\n'
         'custom_op.parameter_map["optypelist_for_implmode"].s = b"Pooling"\n', "it takes a file"),
        ('# >>> npuprof base >>>\ncustom_op.parameter_map["precision_mode"].s = b"force_fp32"\n# <<< npuprof base <<<\n',
         "the block belongs to the preset base"),
    ],
)  # fmt: skip
def test_what_is_not_certain_stays_and_is_told_at_its_line(lines: str, said: str) -> None:
    before = session(lines)
    done = moved(before)
    assert (done.after.decode(), done.made) == (before, ())
    found = [one for one in done.left if one.code == "NP511"]
    assert any(said in one.message for one in found), [one.message for one in found]
    assert all(one.path == "x.py" and one.line > HEAD.count("\n") and one.why and one.hint for one in found)


def test_a_step_on_a_value_that_only_a_run_knows_names_no_value() -> None:
    done = moved(session('custom_op.parameter_map["graph_memory_max_size"].s = tf.compat.as_bytes(FLAGS.size)\n'))
    assert [str(step) for _, step in done.made] == ["M21: graph_memory_max_size is taken out"]


def test_a_value_that_a_run_decides_is_a_note() -> None:
    done = moved(session('custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(FLAGS.mode)\n'))
    [one] = [one for one in done.left if one.code == "NP511"]
    assert (one.severity, one.line) == ("info", HEAD.count("\n") + 1)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.py", f'print "a"\n{HEAD}custom_op.parameter_map["precision_mode"].s = "force_fp32"\n', "Python 3 does not read the file"),
        ("x.sh", f"MODE=force_fp32\n{ATC}--precision_mode=$MODE\n", "are not written out where it stands"),
    ],
)
def test_a_script_that_cannot_be_changed_keeps_every_byte(name: str, text: str, said: str) -> None:
    done = moved(text, name)
    assert done.after == text.encode()
    assert any(said in one.message for one in done.left)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lambda text: text.replace("\n", "\r\n").encode(), lambda text: text.replace("\n", "\r\n").encode()),
        (lambda text: b"\xef\xbb\xbf" + text.encode(), lambda text: b"\xef\xbb\xbf" + text.encode()),
        (
            lambda text: f"# coding: latin-1\n# é\n{text}".encode("latin-1"),
            lambda text: f"# coding: latin-1\n# é\n{text}".encode("latin-1"),
        ),
        (lambda text: text.rstrip("\n").encode(), lambda text: text.rstrip("\n").encode()),
        (lambda text: f"x = 1\r\ny = 2\r{text}".encode(), lambda text: f"x = 1\r\ny = 2\r{text}".encode()),
    ],
)
def test_ends_of_lines_marks_and_encodings_stay(before: Callable[[str], bytes], after: Callable[[str], bytes]) -> None:
    old, new = (session(MAP.format(key, "s") + f'b"{value}"\n') for key, value in (
        ("precision_mode", "force_fp32"), ("precision_mode_v2", "cube_fp16in_fp32out")))  # fmt: skip
    assert moved(before(old)).after == after(new)


@given(st.lists(st.sampled_from([
    'custom_op.parameter_map["precision_mode"].s = b"force_fp32"\n', 'custom_op.parameter_map["jit_compile"].b = True\n',
    'custom_op.parameter_map["graph_memory_max_size"].s = b"1"\n', 'custom_op.parameter_map["static_memory_policy"].i = 1\n',
    'custom_op.parameter_map["dump_path"].s = b"force_fp32"\n', 'custom_op.parameter_map["mstune_mode"].s = b"1"; y = "mstune_mode"\n',
    'if FLAGS.x:\n    custom_op.parameter_map["precision_mode"].s = b"allow_mix_precision"\n    z = 1\n', "# é\n", 'x = "precision_mode"\n',
    HEAD, "def f(custom_op):\n    custom_op.parameter_map['precision_mode'].s = b'force_fp32'\n    return custom_op\n",
])), st.sampled_from(["9.0.0", "6.0.1", "5.0.4"]))  # fmt: skip
def test_a_moved_script_sets_the_same_under_the_names_of_today_and_a_second_run_changes_nothing(parts: list[str], release: str) -> None:
    before = session("".join(parts))
    done = moved(before, release=release)
    again = moved(done.after, release=release)
    assert (again.after, again.made) == (done.after, ())
    old = [one for one in imported(before).found if not one.commented]
    new = [one for one in imported(done.after).found if not one.commented]
    dropped = sum(made.step.action == "drop" for _, made in done.made)
    assert len(new) == len(old) - dropped
    assert len(done.before.splitlines()) - len(done.after.splitlines()) == dropped
    if not done.made:
        assert done.after == done.before


@pytest.mark.parametrize("wrong", ["fp16", "cube_fp16in_fp32out', 'x"])
def test_a_change_that_does_not_give_what_was_planned_is_not_made(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = PythonScript.list_changes

    def list_wrong_changes(self: PythonScript, due: Any) -> Any:
        return [change._replace(text=wrong) if change.text.startswith("cube") else change for change in right(self, due)]

    monkeypatch.setattr(PythonScript, "list_changes", list_wrong_changes)
    text = session(MAP.format("precision_mode", "s") + 'b"force_fp32"\n' + MAP.format("mstune_mode", "s") + 'b"1"\n')
    done = moved(text)
    assert [made.step.option for _, made in done.made] == ["mstune_mode"]  # the other step is as good as before
    assert done.after.decode() == text.replace("mstune_mode", "aoe_mode")
    assert any("could not be proven" in one.message for one in done.left)
    monkeypatch.setattr(moving, "_apply_units", lambda *_: None)
    assert moved(text).after == text.encode()


@pytest.mark.parametrize(
    ("text", "since", "told"),
    [
        (session('custom_op.parameter_map["use_off_line"].b = True\n'), "8.0.0", {"hccl_timeout"}),
        (session('custom_op.parameter_map["hccl_timeout"].i = 600\n'), "8.0.0", set()),
        (session('custom_op.parameter_map["use_off_line"].b = True\n'), "", set()),
        ("import os\nos.environ['HCCL_CONNECT_TIMEOUT'] = '600'\n", "8.0.0", set()),
        # of NPURunConfig alone, and of TensorFlow 2 alone
        (session('custom_op.parameter_map["use_off_line"].b = True\n'), "7.0.0", {"hccl_timeout"}),
        (session('custom_op.parameter_map["use_off_line"].b = True\n'), "6.3.RC2", {"enable_exception_dump", "hccl_timeout"}),
        (f"{TF2}npu.global_options().hccl_timeout = 600\nnpu.open()\n", "6.3.RC2", {"enable_exception_dump", "op_compiler_cache_mode"}),
        (
            "from npu_bridge.npu_init import *\nNPURunConfig(hccl_timeout=6, jit_compile='auto', precision_mode_v2='fp16')\n",
            "6.0.1",
            {"enable_exception_dump", "variable_format_optimize"},
        ),
    ],
)
def test_defaults_that_changed_on_the_way_are_told_once_a_script(text: str, since: str, told: set[str]) -> None:
    found = [one for one in moved(text, since=since).left if one.code == "NP512"]
    assert {one.key for one in found} == told
    assert all(one.severity == "info" and one.line for one in found)


def test_what_a_release_does_not_know_is_told() -> None:
    done = moved(session('custom_op.parameter_map["precision_mode_v2"].s = b"origin"\n'), release="5.0.4")
    assert [(one.code, one.line) for one in done.left] == [("NP404", HEAD.count("\n") + 1)]


OLD = session(MAP.format("precision_mode", "s") + 'b"force_fp32"\n')
NEW = OLD.replace("precision_mode", "precision_mode_v2").replace("force_fp32", "cube_fp16in_fp32out")


def test_the_verb_writes_all_scripts_that_are_named_and_a_dry_run_shows_them(tmp_path: Path, run: Callable[..., Any]) -> None:
    write(tmp_path, {"tree/a.py": OLD, "tree/b/c.py": OLD, "tree/d.py": "print(1)\n", "x.py": OLD})
    dry = run("migrate", "tree", "x.py", "--cann", "9.0.0", "--dry-run")
    assert (dry.code, (tmp_path / "x.py").read_text()) == (0, OLD)
    assert dry.out.index("x.py:6: M8: precision_mode") < dry.out.index("--- a/tree/a.py")
    assert "+custom_op.parameter_map" in dry.out
    assert "would write 3 files" in dry.err
    done = run("migrate", "tree", "x.py", "--cann", "9.0.0")
    assert (done.code, done.out) == (0, dry.out)
    assert "wrote 3 files" in done.err
    assert {(tmp_path / name).read_text() for name in ("tree/a.py", "tree/b/c.py", "x.py")} == {NEW}
    again = run("migrate", "tree", "x.py", "--cann", "9.0.0")
    assert (again.code, again.out) == (0, "")
    assert "nothing to change in any script" in again.err


def test_json_says_of_each_script_what_was_done_and_what_is_lost(tmp_path: Path, run: Callable[..., Any]) -> None:
    write(tmp_path, {"x.py": OLD, "y.py": session('custom_op.parameter_map["auto_tune_mode"].s = b"GA"\n')})
    done = run("migrate", "x.py", "y.py", "--cann", "9.0.0", "--from", "8.0.0", "--format", "json")
    told = json.loads(done.out)
    assert (done.code, told["schema"], told["cann"], told["from"]) == (1, "npuprof.migrate-scripts/1", "9.0.0", "8.0.0")
    assert [(one["path"], one["changed"]) for one in told["files"]] == [("x.py", True), ("y.py", False)]
    step = told["files"][0]["steps"][0]
    assert (step["rule"], step["line"], step["to"], step["loss"]) == ("M8", 6, "precision_mode_v2", "text")
    assert "NP511" in {one["code"] for one in told["files"][1]["findings"]}


def test_nothing_is_written_where_one_script_cannot_be(tmp_path: Path, run: Callable[..., Any]) -> None:
    write(tmp_path, {"tree/a.py": OLD, "outside/b.py": OLD})
    os.symlink("../outside/b.py", tmp_path / "tree/b.py")
    done = run("migrate", "tree", "--cann", "9.0.0")
    assert done.code == 2
    assert "NP941" in done.err
    assert {(tmp_path / name).read_text() for name in ("tree/a.py", "outside/b.py")} == {OLD}


def test_a_script_outside_of_a_folder_that_is_named_beside_it_is_written(tmp_path: Path, run: Callable[..., Any]) -> None:
    write(tmp_path, {"in/a.py": OLD, "out/b.py": OLD})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "in")
        assert run("migrate", ".", "../out/b.py", "--cann", "9.0.0").code == 0
    assert {(tmp_path / name).read_text() for name in ("in/a.py", "out/b.py")} == {NEW}


def test_a_default_is_told_of_so_many_scripts_as_leave_it_out(tmp_path: Path, run: Callable[..., Any]) -> None:
    write(tmp_path, {"a.py": session(f"{MAP.format('variable_memory_max_size', 's')}b'1'\n")})
    told = run("migrate", str(tmp_path), "--cann", "9.0.0", "--from", "5.1.RC1", "--dry-run")
    assert "NP512: jit_compile" in told.out
    assert "so in" not in told.out


def test_a_preset_is_moved_without_what_reads_scripts(tmp_path: Path) -> None:
    write(tmp_path, {"profiles/p.toml": '[options]\nmstune_mode = "2"\n'})
    code = (
        "import sys; from npuprof.__main__ import main; main(['migrate', 'p', '--cann', '9.0.0']); print('npuprof.scripts' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["x.py", "gone.py"], 2, "cannot read the file: no such file"),
        (["x.py", "p"], 2, "x.py is a script, and p is a preset"),
        (["p", "q"], 2, "p and q are two presets"),
        (["x.py", "--all"], 2, "two ways"),
        ([], 2, "which preset is to be moved?"),
        (["p"], 0, ""),
        (["./profiles/p.toml"], 0, ""),
        (["train"], 0, "precision_mode_v2"),
        (["p/"], 0, "nothing to change in any script"),
    ],
)
def test_words_are_presets_or_scripts(words: list[str], code: int, said: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    preset = '[options]\nmstune_mode = "2"\n'
    write(
        tmp_path, {"profiles/p.toml": preset, "profiles/q.toml": preset, "x.py": OLD, "p/y.txt": "", "train": f"#!/usr/bin/python\n{OLD}"}
    )
    done = run("migrate", *words, "--cann", "9.0.0")
    assert done.code == code
    assert said in done.out + done.err


#: What is written, by how often.
LONG: dict[str, Callable[[int], str]] = {
    "configurations": lambda n: f"{HEAD}{MAP.format('precision_mode', 's')}b'force_fp32'\n" * n,
    "one line": lambda n: HEAD + "; ".join(["custom_op.parameter_map['mstune_mode'].s = 'é' and b'1'"] * n),
    "one line of changes": lambda n: HEAD + "é = 1; " + "; ".join([MAP.format("mstune_mode", "s") + "b'1'"] * n),
    "one key": lambda n: HEAD + f"{MAP.format('precision_mode', 's')}b'force_fp32'\n" * n,
    "one name": lambda n: f"{HEAD}M = b'1'\n" + f"{MAP.format('mstune_mode', 's')}M\n" * n,
    "names": lambda n: HEAD + "".join(f"M{i} = b'1'\n{MAP.format('mstune_mode', 's')}M{i}\n" for i in range(n)),
    "what is given one session config": lambda n: HEAD + "c = NPURunConfig(precision_mode='force_fp32', session_config=config)\n" * n,
    "what is taken out": lambda n: f"{HEAD}x = 1\n" + f"{MAP.format('graph_memory_max_size', 's')}b'1'\n" * n,
    "calls": lambda n: RUN + "c = NPURunConfig(precision_mode='force_fp32', graph_memory_max_size='1', use_off_line=True)\n" * n,
    "blocks": lambda n: HEAD + f"# >>> npuprof a >>>\n{MAP.format('mstune_mode', 's')}b'1'\n# <<< npuprof a <<<\n" * n,
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_moving_scripts_costs_what_their_length_costs(name: str) -> None:
    assert measure_growth(lambda size: lambda: moved(LONG[name](size)), 25) < 1.5


@pytest.mark.parametrize("name", LONG)
def test_long_scripts_are_moved_in_no_time(name: str) -> None:
    text = LONG[name](75)
    alone = count_calls(lambda: imported(text))
    assert count_calls(lambda: moved(text)) < 20 * alone, "what is looked through for each setting takes far longer"
