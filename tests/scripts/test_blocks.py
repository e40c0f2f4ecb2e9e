"""Marked blocks: written in place, kept equal to their presets, never at the cost of what is around them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from npuprof import __main__
from npuprof.model import NpuprofError
from npuprof.renderers import stamp
from npuprof.scripts import blocks
from support.importing import write
from support.running import Run

PRESET = """\
[profile]
description = "d"

[options]
precision_mode_v2 = "mixed_float16"
hccl_timeout = 600

[env]
ASCEND_GLOBAL_LOG_LEVEL = 3
"""
SCRIPT = """\
import tensorflow as tf
from npu_bridge.npu_init import *


def main():
    cfg = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(config=cfg):
        pass
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    write(folder, {"profiles/a.toml": PRESET, "train.py": SCRIPT, "run.sh": "#!/bin/sh\necho\n"})
    monkeypatch.chdir(folder)
    return folder


def run(*words: str) -> int:
    return __main__.main(list(words))


def test_a_block_goes_after_the_line_that_makes_the_config(here: Path) -> None:
    assert run("inject", "train.py", "a") == 0
    lines = (here / "train.py").read_text().split("\n")
    assert lines[:7] == [*SCRIPT.split("\n")[:6], "    # >>> npuprof a >>>"]
    assert "    cfg.graph_options.rewrite_options.remapping = RewriterConfig.OFF" in lines
    assert lines[-4:] == ["    # <<< npuprof <<<", *SCRIPT.split("\n")[6:]]
    assert not any(" config.graph_options" in line for line in lines)
    compile((here / "train.py").read_text(), "train.py", "exec")


def test_the_block_fills_a_real_config(here: Path, tensorflow: Any) -> None:
    assert run("inject", "train.py", "a") == 0
    from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

    text = (here / "train.py").read_text()
    block = text[text.index("    # >>>") : text.index("    # <<<")]
    names = {"tf": tensorflow, "RewriterConfig": RewriterConfig, "cfg": tensorflow.compat.v1.ConfigProto()}
    exec("if True:\n" + block, names)
    (entry,) = names["cfg"].graph_options.rewrite_options.custom_optimizers
    assert (entry.parameter_map["hccl_timeout"].i, entry.parameter_map["precision_mode_v2"].s) == (600, b"mixed_float16")


def test_a_second_time_changes_nothing(here: Path) -> None:
    run("inject", "train.py", "a")
    before = (here / "train.py").read_bytes()
    stamp = os.stat("train.py").st_mtime_ns
    assert run("inject", "train.py", "a") == 0
    assert ((here / "train.py").read_bytes(), os.stat("train.py").st_mtime_ns) == (before, stamp)


@pytest.mark.parametrize(("newline", "indent"), [("\n", "\t"), ("\r\n", "  ")])
def test_indentation_and_line_endings_stay(here: Path, newline: str, indent: str) -> None:
    text = SCRIPT.replace("    ", indent).replace("\n", newline)
    (here / "train.py").write_bytes(text.encode())
    assert run("inject", "train.py", "a") == 0
    after = (here / "train.py").read_bytes().decode()
    assert after.count("\n") == after.count(newline)
    begin, end = after.index(f"{indent}# >>> npuprof a >>>{newline}"), after.index(f"{indent}# <<< npuprof <<<{newline}")
    assert after[:begin] + after[end + len(f"{indent}# <<< npuprof <<<{newline}") :] == text
    assert run("inject", "train.py", "--check") == 0


def test_a_stale_block_and_an_edited_one_are_told_apart(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("inject", "train.py", "a")
    assert run("render", "a", "--check", "train.py") == 0
    (here / "profiles/a.toml").write_text(PRESET.replace("600", "700"))
    assert run("inject", "train.py", "--check") == 1
    assert "NP810" in capsys.readouterr().out
    assert run("render", "a", "--check", "train.py") == 1
    assert run("scan", "train.py", "--strict") == 1
    assert "NP810" in capsys.readouterr().out
    text = (here / "train.py").read_text().replace("= 600", "= 650")
    (here / "train.py").write_text(text)
    assert run("inject", "train.py", "a") == 2
    assert "NP811" in capsys.readouterr().err
    assert (here / "train.py").read_text() == text
    assert run("inject", "train.py", "a", "--force") == 0
    assert "= 700" in (here / "train.py").read_text()


@pytest.mark.parametrize("asked", [("framework", "torch_npu=2.6.0"), ("cann", "9.0.0"), ("product", "atlas-a2-training")])
def test_a_stale_block_that_was_asked_for_a_release_is_not_taken_for_an_edited_one(asked: tuple[str, str], here: Path, run: Run) -> None:
    name, value = asked
    assert run("inject", "run.sh", "a", f"--{name}", value).code == 0
    assert f"\n# {name}: {value}" in (here / "run.sh").read_text()
    (here / "profiles/a.toml").write_text(PRESET.replace("LEVEL = 3", "LEVEL = 1"))
    done = run("inject", "run.sh", "--check")
    assert (done.code, "NP810" in done.out, "NP811" in done.out) == (1, True, False)
    assert run("inject", "run.sh", "--all").code == 0
    assert run("inject", "run.sh", "--check").code == 0


@pytest.mark.parametrize("fact", stamp.BLOCK_FACTS)
def test_no_fact_of_a_header_counts_as_an_edit(fact: str) -> None:
    head = f"# Generated by npuprof 1.0.0\n# {fact}: x\n"
    state = stamp.compare_rendered(stamp.stamp_text(head, "old\n"), stamp.stamp_text(head, "new\n"))
    assert (state.stale, state.edited) == (True, False)


def test_all_blocks_of_a_tree_are_refreshed_together_or_not_at_all(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here, {"x/a.py": SCRIPT, "x/b.py": SCRIPT})
    for name in ("x/a.py", "x/b.py"):
        run("inject", name, "a")
    (here / "profiles/a.toml").write_text(PRESET.replace("600", "700"))
    (here / "x/c.py").write_text("# >>> npuprof a >>>\n")
    assert run("inject", "x", "--all") == 2
    assert "NP817" in capsys.readouterr().err
    assert "600" in (here / "x/a.py").read_text()
    (here / "x/c.py").unlink()
    assert run("inject", "x", "--all", "--dry-run") == 0
    assert "600" in (here / "x/a.py").read_text()
    assert run("inject", "x", "--all") == 0
    assert all("= 700" in (here / name).read_text() for name in ("x/a.py", "x/b.py"))


def test_shell_scripts_get_the_environment(here: Path) -> None:
    assert run("inject", "run.sh", "a") == 0
    text = (here / "run.sh").read_text()
    assert text.startswith("#!/bin/sh\n# >>> npuprof a >>>\n")
    assert text.endswith("# <<< npuprof <<<\necho\n")
    done = subprocess.run(["sh", "-c", '. ./run.sh; printf %s "$NPUPROF_HCCL_TIMEOUT"'], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "600"
    assert run("inject", "run.sh", "--check") == 0


def test_a_pair_of_marks_says_where_the_block_goes(here: Path) -> None:
    (here / "train.py").write_text("if x:\n    # >>> npuprof a >>>\n    # <<< npuprof <<<\n    pass\n")
    assert run("inject", "train.py", "a") == 0
    assert 'custom_op.name = "NpuOptimizer"' in (here / "train.py").read_text()


def test_the_release_a_block_was_made_for_is_kept(here: Path) -> None:
    (here / "profiles/a.toml").write_text(PRESET + '\n[[override]]\nmatch = { cann = "9.0.0" }\noptions = { hccl_timeout = 900 }\n')
    assert run("inject", "train.py", "a", "--cann", "9.0.0") == 0
    assert "= 900" in (here / "train.py").read_text()
    assert run("inject", "train.py", "--check") == 0


@pytest.mark.parametrize(
    "text",
    [ "x\n# <<< npuprof <<<\n", "# >>> npuprof a >>>\n# >>> npuprof b >>>\n# <<< npuprof <<<\n",
        "# >>> npuprof a >>>\n# <<< npuprof b <<<\n",
    ],
)  # fmt: skip
def test_marks_that_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(NpuprofError) as error:
        blocks.find_blocks("x.py", text.encode())
    assert {finding.code for finding in error.value.findings} == {"NP817"}


@pytest.mark.parametrize("text", ["x = 1\n", "a = tf.ConfigProto()\nb = tf.ConfigProto()\n", "if 1: a = tf.ConfigProto()\n"])
def test_no_place_is_guessed(here: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "train.py").write_text(text)
    assert run("inject", "train.py", "a") == 2
    assert "NP818" in capsys.readouterr().err
    assert (here / "train.py").read_text() == text
    assert run("inject", "train.py", "a", "--line", "1") == 0


def test_no_block_is_put_inside_another(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inject", "train.py", "a") == 0
    text = (here / "train.py").read_text()
    lines = text.split("\n")
    first, last = lines.index("    # >>> npuprof a >>>") + 1, lines.index("    # <<< npuprof <<<") + 1
    for line in (first + 1, last):
        assert run("inject", "train.py", "a", "--line", str(line)) == 2
        assert f"line {line} is inside the block of a" in capsys.readouterr().err
        assert (here / "train.py").read_text() == text
    assert run("inject", "train.py", "a", "--line", str(last + 1)) == 0
    assert run("inject", "train.py", "a", "--line", str(first)) == 0
    assert run("inject", "train.py", "--check") == 0


def test_a_preset_that_cannot_be_resolved_changes_nothing(here: Path) -> None:
    assert run("inject", "train.py", "nope") == 2
    assert (here / "train.py").read_text() == SCRIPT


def test_a_name_in_a_text_is_not_renamed() -> None:
    body = 'config.x = f(config=config, y="config")  # config\nother.config = config\n'
    assert blocks.rename_variables(body, {"config": "c"}) == 'c.x = f(config=c, y="config")  # config\nother.config = c\n'
    calls = 'x = tf.f("tf.g", tf=tf.a)  # tf.h\nother.tf.b = not_tf.c\n'
    assert blocks.rename_variables(calls, {"tf": "tf1"}) == 'x = tf1.f("tf.g", tf=tf1.a)  # tf.h\nother.tf.b = not_tf.c\n'


def test_sidecar_files_are_written_beside_the_script(here: Path) -> None:
    (here / "profiles/a.toml").write_text(PRESET.replace("hccl", 'modify_mixlist = { black-list = { to-add = ["MatMul"] } }\nhccl'))
    assert run("inject", "train.py", "a") == 0
    assert (here / "ops_info.json").exists()
    assert subprocess.run([sys.executable, "-m", "py_compile", "train.py"], check=True).returncode == 0


def test_a_mark_without_its_partner_is_told_in_a_folder_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "half.py").write_text("x = 1\n# <<< npuprof <<<\n")
    assert run("inject", ".", "--all") == 2
    assert "NP817" in capsys.readouterr().err


#: A file, its text, what is asked for, and what is said of it.
UNFIT = [
    ("run.sh", "true\n", ["--to", "session"], "a block of session is Python, and run.sh is shell"),
    ("run.sh", "true\n", ["--to", "session", "--line", "1"], "a block of session is Python, and run.sh is shell"),
    ("Dockerfile", "FROM x\n", [], "Dockerfiles cannot contain a block"),
    ("job.yaml", "a: 1\n", ["--line", "1"], "YAML cannot contain a block"),
]


@pytest.mark.parametrize(("name", "text", "words", "what"), UNFIT)
def test_a_file_of_another_language_than_the_target_is_left_alone(
    name: str, text: str, words: list[str], what: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / name).write_text(text)
    assert run("inject", name, "a", *words) == 2
    assert f"error NP818: {what}" in capsys.readouterr().err
    assert (here / name).read_text() == text


def test_a_block_of_an_env_file_goes_to_its_beginning(here: Path) -> None:
    (here / "x.env").write_text("A=b\n")
    assert run("inject", "x.env", "a") == 0
    assert (here / "x.env").read_text().startswith("# >>> npuprof a >>>\n")


@pytest.mark.parametrize(
    "name",
    [
        "a b.toml",
        "a\nb.toml",
    ],
)
def test_a_name_that_no_mark_can_hold_is_refused(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / name).write_text(PRESET)
    assert run("inject", "train.py", name) == 2
    assert "NP818" in capsys.readouterr().err
    assert (here / "train.py").read_text() == SCRIPT


#: What a preset sets, and the code of the finding with which every verb that writes it rejects it.
REJECTED = {
    "a value that the option does not take": ('[options]\nprecision_mode_v2 = "bf16"\n', "NP203"),
    "an abstract preset": ("[profile]\nabstract = true\n[options]\nhccl_timeout = 600\n", "NP107"),
    "an option that the product lacks": ('[profile]\nproducts = ["atlas-training"]\n[options]\nprecision_mode_v2 = "mixed_bfloat16"\n',
        "NP409"),
}  # fmt: skip


@pytest.mark.parametrize("case", REJECTED)
def test_inject_rejects_what_render_rejects_with_the_same_finding(case: str, tmp_path: Path, store: Any, run: Run) -> None:
    text, code = REJECTED[case]
    script = tmp_path / "train.py"
    before = "import tensorflow as tf\n\nconfig = tf.compat.v1.ConfigProto()\n# >>> npuprof p >>>\n# <<< npuprof <<<\n"
    script.write_text(before)
    store({"p": text})
    rendered = run("render", "p", "--to", "session", "--inline")
    assert (rendered.code, f"error {code}" in rendered.err) == (2, True)
    for words in (["p"], ["p", "--check"], ["--all"], ["--all", "--check"]):
        injected = run("inject", "train.py", *words)
        assert (injected.code, injected.err) == (2, rendered.err)
    assert script.read_text() == before


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("import tensorflow.compat.v1 as tf1", "tf1"), ("from tensorflow.compat import v1", "v1"), ("import tensorflow", "tensorflow"),
        ("import tensorflow as tf", "tf"), ("import tensorflow as tf\nimport tensorflow.compat.v1 as tf1", "tf"),
    ],
)  # fmt: skip
def test_a_block_calls_tensorflow_by_the_name_that_the_script_has(line: str, name: str, tmp_path: Path, store: Any, run: Run) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"{line}\n\nconfig = {name}.compat.v1.ConfigProto()\n")
    store({"p": 'options.precision_mode_v2 = "fp16"\n'})
    assert "does not import" not in run("inject", "train.py", "p").err
    assert f'custom_op.parameter_map["precision_mode_v2"].s = {name}.compat.as_bytes("fp16")\n' in script.read_text()
    assert run("inject", "train.py", "--all", "--check").code == 0


def test_a_block_imports_the_rewriter_config_that_it_uses(tmp_path: Path, store: Any, run: Run) -> None:
    script = tmp_path / "train.py"
    script.write_text("import tensorflow as tf\n\nconfig = tf.compat.v1.ConfigProto()\n")
    store({"p": "options.hccl_timeout = 600\n"})
    assert "does not import" not in run("inject", "train.py", "p").err
    lines = script.read_text().splitlines()
    line = "from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig"
    assert 0 < lines.index(line) < lines.index("config.graph_options.rewrite_options.remapping = RewriterConfig.OFF")
