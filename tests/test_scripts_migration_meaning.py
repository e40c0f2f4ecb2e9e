"""Scripts moved to another release mean what they meant: names that others read, pairs that are one configuration, links, places."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from importing import HEAD, TAIL, write

from npuprof.model import Context
from npuprof.scripts.migration.moving import MovedScript, move_script

RUN = "from npu_bridge.npu_init import *\n"
TF2 = "import npu_device as npu\n"
OLD = 'custom_op.parameter_map["precision_mode"].s = b"force_fp32"\n'
NEW = 'custom_op.parameter_map["precision_mode_v2"].s = b"cube_fp16in_fp32out"\n'
USE = 'custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(MODE)\n'
TABLE = 'OPTIONS = {"precision_mode": "force_fp32"}\n'
CONF = f'MODE = "force_fp32"\n{HEAD}{USE}{TAIL}'


def moved(text: str, release: str = "9.0.0") -> MovedScript:
    return move_script("x.py", text.encode(), Context(release))


@pytest.mark.parametrize(
    ("conf", "others", "changes"),
    [
        (CONF, {}, True),
        (CONF, {"a/other.py": "print(1)\n"}, True),
        (CONF, {"a/other.py": "MODE = 'train'\nprint(MODE)\n"}, True),  # it speaks of a name of its own, and of no conf
        (CONF, {"a/loss.py": 'from conf import MODE\nif MODE == "force_fp32": print(1)\n'}, False),
        (CONF, {"a/loss.py": "import conf as c\nprint(c.MODE)\n"}, False),
        (CONF, {"a/__init__.py": "from . import conf as c\n", "b/loss.py": "from a import c\nprint(c.MODE)\n"}, False),
        (CONF, {"a/loss.py": "from .conf import *\n"}, False),
        (CONF, {"a/loss.py": "import importlib, sys\nprint(importlib.import_module(sys.argv[1]).MODE)\n"}, False),
        (CONF, {"a/run.sh": "python -c 'from conf import MODE; print(MODE)'\n"}, False),
        (f"__all__ = ['MODE']\n{CONF}", {}, False),
        (f"{CONF}show(globals())\n", {}, False),
        (CONF.replace("MODE =", "MODE: str ="), {"a/loss.py": "from conf import MODE\n"}, False),
        # a table that becomes the arguments of a call
        (f"{RUN}{TABLE}c = NPURunConfig(**OPTIONS)\n", {}, True),
        (f"{RUN}{TABLE}c = NPURunConfig(**OPTIONS)\n", {"a/loss.py": "from conf import OPTIONS\n"}, False),
        (f"{RUN}{TABLE}c = NPURunConfig(**OPTIONS)\nprint(OPTIONS)\n", {}, False),
        (f"{RUN}def f():\n    {TABLE}    return NPURunConfig(**OPTIONS)\n", {"a/loss.py": "from conf import OPTIONS\n"}, True),
        (f"{RUN}def f():\n    {TABLE}    c = NPURunConfig(**OPTIONS)\n    return OPTIONS\n", {}, False),
        # an object of a class is nobody's text
        (f'{RUN}c = NPURunConfig(precision_mode="force_fp32")\n', {"a/loss.py": "from conf import c\n"}, True),
    ],
)  # fmt: skip
def test_a_literal_behind_a_name_changes_only_where_nothing_else_can_read_the_name(
    conf: str, others: dict[str, str], changes: bool, tmp_path: Path, run: Callable[..., Any]
) -> None:
    write(tmp_path, {"a/conf.py": conf, **others})
    done = run("migrate", "a", "b" if (tmp_path / "b").exists() else "a", "--cann", "9.0.0")
    assert ((tmp_path / "a/conf.py").read_text() != conf) == changes, done.out
    assert ("NP511" in done.out) != changes
    assert all((tmp_path / name).read_text() == text for name, text in others.items())


def test_a_reader_anywhere_in_the_repository_counts_although_only_one_file_is_named(tmp_path: Path, run: Callable[..., Any]) -> None:
    write(tmp_path, {"src/conf.py": CONF, "tools/eval.py": "from conf import MODE\nprint(MODE)\n"})
    (tmp_path / ".git").mkdir()
    done = run("migrate", "src/conf.py", "--cann", "9.0.0", "--format", "json")
    [file] = json.loads(done.out)["files"]
    assert not file["changed"]
    assert [one["line"] for one in file["findings"] if one["code"] == "NP511"] == [CONF[: CONF.index(USE)].count("\n") + 1]
    assert "tools/eval.py may read MODE" in done.out


SESSION = f"""{RUN}config = tf.ConfigProto()
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
"""


@pytest.mark.parametrize(
    ("session", "argument", "moves"),
    [
        ('b"force_fp32"', '"force_fp32"', True),
        ('b"force_fp32"', '"allow_fp32_to_fp16"', False),  # precision_mode_v2 has no word for that
        ('b"allow_fp32_to_fp16"', '"force_fp32"', False),
        ('b"force_fp32"', "FLAGS.mode", False),
        ("tf.compat.as_bytes(FLAGS.mode)", '"force_fp32"', False),
        ('b"force_fp32"', '"force_" + "fp32"', False),  # no literal that could change
    ],
)
def test_the_session_config_and_the_arguments_of_one_run_config_move_together_or_not_at_all(
    session: str, argument: str, moves: bool
) -> None:
    text = f'{SESSION}custom_op.parameter_map["precision_mode"].s = {session}\n'
    text += f"c = NPURunConfig(session_config=config, precision_mode={argument})\n"
    done = moved(text)
    assert (done.after != done.before) == moves
    assert (b'"precision_mode"' in done.after) != moves
    assert b"precision_mode=" not in done.after or not moves
    if not moves:
        assert [one for one in done.left if one.code == "NP511" and one.key == "precision_mode"]


def test_what_the_other_half_of_a_configuration_sets_counts_for_the_conditions_of_a_step() -> None:
    text = f'{SESSION}custom_op.parameter_map["precision_mode_v2"].s = b"origin"\n'
    done = moved(f'{text}c = NPURunConfig(session_config=config, precision_mode="force_fp32")\n')
    assert done.after == done.before
    assert any("M13" in one.message for one in done.left)


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}{OLD}for k, v in options.items():\n    custom_op.parameter_map[k].s = v\n{TAIL}",
        f"{HEAD}{OLD}put = lambda k, v: setattr(custom_op.parameter_map[k], 's', v)\nput(*sys.argv[1:])\n{TAIL}",
        f"{HEAD}{OLD}[custom_op.parameter_map[k].CopyFrom(v) for k, v in options]\n{TAIL}",
        f"{TF2}npu.global_options().precision_mode = 'force_fp32'\nput = lambda k, v: setattr(npu.global_options(), k, v)\nnpu.open()\n",
        f"{TF2}o = npu.global_options()\no.precision_mode = 'force_fp32'\nput = functools.partial(setattr, o)\nnpu.open()\n",
        f"{RUN}c = NPURunConfig(precision_mode='force_fp32', **more)\n",
        f"{RUN}def f(**kw):\n    return NPURunConfig(precision_mode='force_fp32', **kw)\n",
    ],
)
def test_no_name_changes_beside_a_key_that_only_a_run_tells(text: str) -> None:
    done = moved(text)
    assert (done.after, done.made) == (text.encode(), ())
    [one] = [one for one in done.left if one.code == "NP511"]
    assert (one.key, one.line) == ("precision_mode", text[: text.index("precision_mode")].count("\n") + 1)


def test_a_file_that_is_there_under_two_names_is_read_and_written_once(tmp_path: Path, run: Callable[..., Any]) -> None:
    write(tmp_path, {"a/train.py": f"{HEAD}{OLD}{TAIL}"})
    os.symlink("train.py", tmp_path / "a/link.py")
    os.symlink("a", tmp_path / "b")
    for words in (["a", "--dry-run"], ["a", "b/train.py", "a/link.py"]):
        done = run("migrate", *words, "--cann", "9.0.0")
        assert (done.code, done.out.count("M8:")) == (0, 1), done.err
    assert (tmp_path / "a/train.py").read_text() == f"{HEAD}{NEW}{TAIL}"
    assert (tmp_path / "a/link.py").is_symlink()


GONE = 'custom_op.parameter_map["graph_memory_max_size"].s = b"1"\n'
LEFT = 'custom_op.parameter_map["auto_tune_mode"].s = b"GA"\n'
STUCK = 'custom_op.parameter_map["mstune_mode"].s = b"1"\nprint(custom_op.parameter_map["mstune_mode"].s)\n'
CALL = 'c = NPURunConfig(\n    graph_memory_max_size="1",\n    auto_tune_mode="GA",\n    mstune_mode="1",\n    model_dir="x")\n'


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}{GONE}{OLD}x = 'é'\n{LEFT}{GONE}{STUCK}{TAIL}",
        f"{HEAD}{GONE}{LEFT}{GONE}{LEFT}{STUCK}{TAIL}".replace("\n", "\r\n"),
        f"{HEAD}{GONE}é = 1; {OLD.rstrip()}; {LEFT}{STUCK}{TAIL}",
        f"{RUN}{CALL}",
        f"{RUN}c = NPURunConfig(graph_memory_max_size='1', precision_mode='force_fp32', auto_tune_mode='GA')\n",
        f"{HEAD}{GONE}x = 1\n{TAIL}",  # what the release brings, and what defaults have changed
    ],
)
def test_places_are_those_of_the_file_as_it_is_for_who_reads_them(text: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    for dry_run in (True, False):
        write(tmp_path, {"x.py": text})
        done = run("migrate", "x.py", "--cann", "9.0.0", "--from", "8.0.0", "--format", "json", *(["--dry-run"] if dry_run else []))
        lines = (tmp_path / "x.py").read_bytes().decode().splitlines()
        [file] = json.loads(done.out)["files"]
        assert file["changed"]
        found = [one for one in file["findings"] if one["code"] != "NP512"]
        assert found or "x = 1" in text
        for one in found:
            line = lines[one["line"] - 1]
            assert one["key"] in line
            assert line[one["column"] - 1 :].startswith(("custom_op", one["key"]))
            if match := re.search(r"line (\d+) uses", one["message"]):
                assert lines[int(match[1]) - 1].startswith("print(")
        for one in file["findings"]:
            assert one["code"] != "NP512" or "custom_optimizers.add()" in lines[one["line"] - 1] or "NPURunConfig" in lines[one["line"] - 1]
        if not dry_run:
            assert all(step["to"] in lines[step["line"] - 1] for step in file["steps"] if step["to"])
