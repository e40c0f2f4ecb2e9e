"""What a script sets under a condition, as mix-ins.

What a flag is by default, taken where that is asked for.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import npuprof
from npuprof import __main__
from npuprof.scripts.preset import build_drafts
from npuprof.scripts.shared_bases import Family, build_family
from support.importing import HEAD, imported, write

USED = 'custom_op.parameter_map["use_off_line"].b = True\n'
DUMP = (
    'custom_op.parameter_map["enable_dump"].b = True\n'
    '    custom_op.parameter_map["dump_path"].s = b"/d"\n'
)
PROFILING = 'custom_op.parameter_map["profiling_mode"].b = True\n'


def made_of(scripts: dict[str, str]) -> Family:
    return build_family(
        [
            draft
            for name, text in scripts.items()
            for draft in build_drafts(imported(f"{HEAD}{text}", name))
        ]
    )


@pytest.mark.parametrize(
    ("text", "mixins"),
    [
        pytest.param(
            f"{USED}if FLAGS.data_dump:\n    {DUMP}",
            {"mixins/dump": "FLAGS.data_dump"},
            id="one condition",
        ),
        pytest.param(
            (
                f"{USED}if args.mode == 'dump':\n"
                f"    {DUMP}elif args.mode == 'profiling':\n    {PROFILING}"
            ),
            {"mixins/dump": "args.mode == 'dump'", "mixins/profiling": "args.mode == 'profiling'"},
            id="two branches",
        ),
        pytest.param(
            f"{USED}if a:\n    if b:\n        {PROFILING}",
            {"mixins/profiling": "(a) and (b)"},
            id="nested conditions",
        ),
        pytest.param(
            f"{USED}if is_training:\n    custom_op.parameter_map['iterations_per_loop'].i = 10\n",
            {"mixins/loop": "is_training"},
            id="one option",
        ),
        pytest.param(
            (
                f"{USED}if FLAGS.a:\n    custom_op.parameter_map['dump_path'].s = "
                "tf.compat.as_bytes(FLAGS.path)\n"
            ),
            {},
            id="a value that depends on a flag",
        ),
        pytest.param(
            f"{USED}if FLAGS.a:\n    custom_op.parameter_map['dump_pth'].s = b'/d'\n",
            {},
            id="an unknown option",
        ),
        pytest.param(f"{USED}if False:\n    {DUMP}", {}, id="a branch that never runs"),
    ],
)
def test_what_a_condition_switches_on_is_a_mixin(text: str, mixins: dict[str, str]) -> None:
    family = made_of({"train.py": text})
    assert {name: switch.notes[0].condition for name, switch in family.switches.items()} == mixins
    for name, condition in mixins.items():
        assert f" if {condition}: composed over a preset with --with" in family.files[name]
        assert "abstract = true" in family.files[name]
        if "train" in family.files:
            assert f"if {condition}: --with {name}" in family.files["train"]
    assert (
        "Not carried over" not in family.files.get("train", "")
        or "FLAGS.path" in text
        or "dump_pth" in text
        or "False" in text
    )


def test_a_mixin_laid_over_the_leaf_is_what_the_script_sets_then(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": f"{HEAD}{USED}if FLAGS.data_dump:\n    {DUMP}"})
    assert __main__.main(["import", "train.py", "--base", "auto", "-o", "profiles"]) == 0
    config = npuprof.open_store("profiles").resolve("train+mixins/dump")
    assert dict(config.options) == {"use_off_line": True, "enable_dump": True, "dump_path": "/d"}
    assert __main__.main(["check"]) == 0


def test_a_mixin_that_the_store_has_is_not_made_again(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"train.py": f"{HEAD}{USED}if FLAGS.data_dump:\n    {DUMP}", "profiles/README": ""},
    )
    assert __main__.main(["adopt", "train.py"]) == 0
    write(tmp_path, {"other.py": f"{HEAD}{PROFILING}if FLAGS.other:\n    {DUMP}"})
    assert __main__.main(["adopt", "other.py"]) == 0
    assert sorted(
        path.name for path in (tmp_path / "profiles/mixins").iterdir() if path.suffix
    ) == ["dump.toml"]
    assert "if FLAGS.other: --with mixins/dump" in (tmp_path / "profiles/other.toml").read_text()


def test_a_default_that_is_taken_is_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        tmp_path,
        {
            "train.py": (
                'p.add_argument("--loops", default=100)\n'
                f'{HEAD}custom_op.parameter_map["iterations_per_loop"].i = args.loops\n'
            )
        },
    )
    assert __main__.main(["import", "train.py", "--take-defaults"]) == 0
    text = capsys.readouterr().out
    assert "iterations_per_loop = 100\n" in text
    assert (
        "# Defaults of the command line, which a run may change:\n"
        "# train.py:7: iterations_per_loop = 100: depends on"
    ) in text


TAKEN_FLAGS = """\
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--dir", default="/out")
parser.add_argument("--n", type=int, default="600")
parser.add_argument("--on", action="store_true")
parser.add_argument("--gb", type=float, default=15)
parser.add_argument("--late", default="a")
parser.add_argument("--odd", type=lambda text: text + "!", default="force_fp16")
parser.set_defaults(late="enable")
args = parser.parse_args()
flags.DEFINE_integer("hc", "700", "")
out = os.path.join(args.dir, "dump")
"""


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ('custom_op.parameter_map["use_off_line"].b = not args.on', {"use_off_line": True}),
        ('custom_op.parameter_map["hccl_timeout"].i = args.n * 2', {"hccl_timeout": 1200}),
        ('custom_op.parameter_map["hccl_timeout"].i = 5 if args.on else 7', {"hccl_timeout": 7}),
        (
            'custom_op.parameter_map["dump_path"].s = tf.compat.as_bytes(out)',
            {"dump_path": "/out/dump"},
        ),
        (
            'custom_op.parameter_map["dump_path"].s = f"{args.dir}/d".encode()',
            {"dump_path": "/out/d"},
        ),
        (
            (
                'custom_op.parameter_map["graph_memory_max_size"].s = '
                "tf.compat.as_bytes(str(int(args.gb * 1024 ** 3)))"
            ),
            {"graph_memory_max_size": "16106127360"},
        ),
        (
            (
                'custom_op.parameter_map["dump_path"].s = '
                'tf.compat.as_bytes(os.environ["X"] + args.dir)'
            ),
            {},
        ),
        ('custom_op.parameter_map["dump_path"].s = tf.compat.as_bytes(wrap(args.dir))', {}),
        ('os.environ["HCCL_CONNECT_TIMEOUT"] = str(args.n)', {"env.HCCL_CONNECT_TIMEOUT": "600"}),
        ('os.environ["HCCL_CONNECT_TIMEOUT"] = args.n', {}),  # the script would end there
    ],
)
def test_a_default_is_taken_as_the_script_computes_with_it(
    line: str, taken: dict[str, object]
) -> None:
    drafts = build_drafts(imported(f"{TAKEN_FLAGS}{HEAD}{line}\n", "train.py"), take_defaults=True)
    assert {key: value for draft in drafts for key, value in draft.settings.items()} == taken


@pytest.mark.parametrize(
    "change",
    [
        "args.n *= 2",
        "if args.on:\n    args.n = 5",
        "known, rest = parser.parse_known_args()\nknown.n = 5",
        "parser.set_defaults(n=f())",
    ],
)
def test_the_default_of_a_flag_that_the_script_changes_is_not_taken(change: str) -> None:
    line = 'custom_op.parameter_map["hccl_timeout"].i = args.n\n'
    script = f"{TAKEN_FLAGS}{{}}\n{HEAD}{line}"
    plain, changed = (
        build_drafts(imported(script.format(text), "train.py"), take_defaults=True)
        for text in ("self.n = args.n", change)
    )
    assert [draft.settings for draft in plain if draft.settings] == [{"hccl_timeout": 600}]
    assert [draft.settings for draft in changed if draft.settings] == []
