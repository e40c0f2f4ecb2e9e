"""Scripts to settings: every shape in the corpus, and what must not be read or guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuprof import __main__, document
from npuprof.document.profile import Profile
from npuprof.scripts.preset import build_drafts, format_draft
from support.importing import HEAD, import_setting, imported, settings

SCRIPTS = Path(__file__).parent / "samples"
CORPUS = sorted(path for path in SCRIPTS.iterdir() if path.suffix in (".py", ".sh"))


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_a_script_of_the_corpus_gives_its_preset(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SCRIPTS)
    made = build_drafts(imported(path.read_bytes(), path.name))
    expected = [*SCRIPTS.glob(f"{path.stem}.toml"), *SCRIPTS.glob(f"{path.stem}-*.toml")]
    assert {draft.name: format_draft(draft) for draft in made} == {
        file.stem: file.read_text() for file in expected
    }
    assert made
    for draft in made:
        assert not Profile(document.parse_document("x", "x.toml", format_draft(draft))).problems


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('custom_op.parameter_map["dump_path"].s = tf.compat.as_bytes("/d")', "/d"),
        ('custom_op.parameter_map["dump_path"].s = bytes("/d", encoding="utf8")', "/d"),
        ('custom_op.parameter_map["dump_path"].s = "/" "d".encode()', "/d"),
        ('custom_op.parameter_map["dump_path"].s = tf.compat.as_bytes("/{}".format("d"))', "/d"),
        (
            'custom_op.parameter_map["dump_path"].s = tf.compat.as_bytes(os.path.join("/", "d"))',
            "/d",
        ),
        ('custom_op.parameter_map["dump_path"].s = tf.compat.as_bytes("".join(["/", "d"]))', "/d"),
        (
            'custom_op.parameter_map["dump_path"].s = tf.compat.as_bytes("/d" if True else "/e")',
            "/d",
        ),
        (
            (
                'custom_op.parameter_map["graph_memory_max_size"].s '
                "= tf.compat.as_bytes(str(31 * 1024 ** 3))"
            ),
            str(31 * 1024**3),
        ),
        ('custom_op.parameter_map["hccl_timeout"].i = int(3.6e3)', 3600),
        ('custom_op.parameter_map["enable_dump"].b = 1', True),
        ('custom_op.parameter_map["enable_dump"].b = not True', False),
        (
            (
                'custom_op.parameter_map["profiling_options"].s = '
                'tf.compat.as_bytes(json.dumps({"output": "/p"}))'
            ),
            '{"output": "/p"}',
        ),
        ('self.op.parameter_map["dump_path"].s = b"/d"', "/d"),
        (
            (
                "config.graph_options.rewrite_options.custom_optimizers[0]"
                '.parameter_map["dump_path"].s = b"/d"'
            ),
            "/d",
        ),
    ],
)
def test_a_constant_is_folded(line: str, value: object) -> None:
    assert import_setting(f"{line}\n").value == value
    assert type(import_setting(f"{line}\n").value) is type(value)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("FLAGS.mode", "FLAGS.mode"),
        ("os.environ['MODE']", "environment"),
        ("os.getenv('MODE')", "environment"),
        ("make_mode()", "make_mode()"),
        ("mode", "name mode"),
        ("'a' if args.x else 'b'", "args.x"),
        ("'x' * 10 ** 9", "too large"),
        ("str(9 ** 9 ** 9)", "too large"),
        ("'%0999999999d' % 1", "too large"),
        ("'{:999999999}'.format(1)", "too large"),
        ("str(1 / 0)", "ZeroDivisionError"),
        ("__import__('os').system('touch /tmp/owned')", "__import__"),
    ],
)
def test_what_depends_on_the_run_has_a_reason_and_no_value(expression: str, reason: str) -> None:
    found = import_setting(
        f'custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes({expression})\n'
    )
    assert found.value is None
    assert reason in found.reason


def test_the_default_of_a_flag_is_offered_and_not_taken() -> None:
    found = import_setting(
        'flags.DEFINE_string("mode", "force_fp32", "")\n'
        'custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(FLAGS.mode)\n'
    )
    assert found.value is None
    assert found.assigned.default == "force_fp32"


@pytest.mark.parametrize(
    "before",
    [
        "mode = 'a'\nif flag:\n    mode = 'b'\n",
        "mode = 'a'\nmode += 'b'\n",
        "for mode in names:\n    pass\n",
        "mode = 'a'\ndef f():\n    global mode\n    mode = 'b'\n",
        "if (mode := read()):\n    mode = 'a'\n",
        "with open('x') as mode:\n    pass\n",
        "import mode\n",
        "first, *mode = pair()\n",
        "def mode(): pass\n",
    ],
)
def test_a_name_that_can_have_two_values_has_none(before: str) -> None:
    assert import_setting(
        f'{before}op.parameter_map["precision_mode"].s = tf.compat.as_bytes(mode)\n'
    ).reason


def test_a_function_is_read_with_the_arguments_of_its_calls() -> None:
    source = (
        'def f(op, mode="x"):\n    op.parameter_map["precision_mode"].s = '
        'tf.compat.as_bytes(mode)\nf(o, "force_fp32")\n'
    )
    assert settings(source) == {"precision_mode": "force_fp32"}
    assert settings(source + 'f(o, "force_fp16")\n') == {
        "precision_mode": "force_fp16"
    }  # one call after the other
    assert settings(source.replace('f(o, "force_fp32")', "f(o)")) == {"precision_mode": "x"}


def test_conditions_are_kept_as_they_are_written() -> None:
    source = (
        "if a:\n    op.parameter_map['use_off_line'].b = True\nelif b > 1:\n"
        "    op.parameter_map['enable_dump'].b = True\nelse:\n"
    )
    source += "    op.parameter_map['mix_compile_mode'].b = True\n"
    assert [setting.condition for setting in imported(source).settings] == [
        "a",
        "b > 1",
        "not (a) and not (b > 1)",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "print(op.parameter_map['x'].s)",
        "x = op.parameter_map['x'].s",
        "'op.parameter_map[\"x\"].s = 1'",
        "parameter_map = {}",
        "other['x'].s = b'1'",
        "op.parameters['x'].s = b'1'",
    ],
)
def test_what_only_looks_like_a_setting_is_not_read(line: str) -> None:
    assert imported(f"{line}\n").settings == ()


BAD = {
    "nul": b"x = 1\0\nop.parameter_map['x'].b = True\n",
    "utf16": "op.parameter_map['x'].b = True\n".encode("utf-16"),
    "latin1": "# \xe4\nop.parameter_map['use_off_line'].b = True\n".encode("latin-1"),
    "cookie": "# coding: latin-1\n# \xe4\nop.parameter_map['use_off_line'].b = True\n".encode(
        "latin-1"
    ),
    **{
        f"cookie-{codec}": (
            f"# coding: {codec}\nop.parameter_map['use_off_line'].b = True\n".encode()
        )
        for codec in (
            "klingon",
            "rot13",
            "hex",
            "base64",
            "zip",
            "punycode",
            "undefined",
        )  # none of them decodes a text
    },
    "crlf": b"if a:\r\n    op.parameter_map['use_off_line'].b = True\r\n",
    "cr": b"a = 1\rop.parameter_map['use_off_line'].b = True\r",
    "long": b"parameter_map = [" + b"1," * 5_000_000 + b"]",
    "parentheses": b"parameter_map = " + b"(" * 2000 + b")" * 2000,
    "sum": b"op.parameter_map['dump_path'].s = " + b"+".join([b"b'a'"] * 3000),
    "elifs": b"if a: parameter_map\n"
    + b"elif b: op.parameter_map['use_off_line'].b = True\n" * 2000,
    "names": b"a0 = 'x'\n"
    + b"".join(b"a%d = a%d + a%d\n" % (n + 1, n, n) for n in range(60))
    + b"op.parameter_map['dump_path'].s = a60\n",
    "circle": b"a = b\nb = a\nop.parameter_map['dump_path'].s = a\n",
    "broken": b"def f(:\n  parameter_map\n",
    "empty": b"",
}


@pytest.mark.parametrize("name", BAD)
def test_any_bytes_are_read_or_said_by_name(name: str) -> None:
    found = imported(BAD[name])
    assert found.problems or name in (
        "cookie",
        "crlf",
        "cr",
        "sum",
        "elifs",
        "names",
        "circle",
        "empty",
    )
    assert all(problem.code == "NP801" and problem.path == "x.py" for problem in found.problems)
    if name in ("latin1", "crlf", "cr") or name.startswith("cookie"):
        assert [setting.key for setting in found.settings] == ["use_off_line"]
    build_drafts(found)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("export JOB_ID='a b'", "a b"),
        ('export JOB_ID="a\\"b"', 'a"b'),
        ("export JOB_ID=a\\ b", "a b"),
        ("export JOB_ID=$'a\\tb'", "<depends on $'a\\tb'>"),
        ("declare -x JOB_ID=1", "1"),
        ("env JOB_ID=1 python x.py", "1"),
        ("export A=1 JOB_ID=2", "2"),
        ("JOB_ID=4; export JOB_ID", "4"),
        ("X=7\nexport JOB_ID=${X}", "7"),
        ("export JOB_ID=", ""),
        ("export \\\n  JOB_ID=8", "8"),
        ("export JOB_ID=$X", "<depends on $X>"),
        ("export JOB_ID=`date`", "<depends on `date`>"),
    ],
)
def test_shell_words_mean_what_the_shell_says(line: str, value: str) -> None:
    assert settings(f"{line}\n", "x.sh") == {"env.JOB_ID": value}


@pytest.mark.parametrize(
    "line",
    [
        "JOB_ID=1",
        "# export JOB_ID=1",
        "echo export JOB_ID=1",
        "cat <<X\nexport JOB_ID=1\nX",
        "echo 'export JOB_ID=1'",
    ],
)
def test_shell_text_that_sets_nothing_is_not_read(line: str) -> None:
    assert not imported(f"{line}\n", "x.sh").settings


def test_several_presets_need_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(SCRIPTS / "two_sessions.py")]
    assert __main__.main(["import", *files]) == 2
    assert "NP816" in capsys.readouterr().err
    assert __main__.main(["import", *files, "-o", str(tmp_path / "out")]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "two_sessions-predict.toml",
        "two_sessions-train.toml",
    ]
    assert (
        __main__.main(["import", *files, "-o", str(tmp_path / "out")]) == 2
    )  # never over what is there


@pytest.mark.parametrize(
    "after",
    [
        "C.mode = args.mode\n",
        'setattr(C, "mode", args.mode)\n',
        "def f():\n    C.mode = args.mode\n",
    ],
)
def test_an_attribute_of_a_class_that_is_given_anew_has_no_fixed_value(after: str) -> None:
    line = 'op.parameter_map["precision_mode"].s = tf.compat.as_bytes(C.mode)\n'
    source = 'class C(object):\n    mode = "force_fp32"\n'
    assert import_setting(f"{source}{line}").value == "force_fp32"
    assert import_setting(f"{source}{after}{line}").reason == "depends on C.mode"


def test_the_open_end_of_a_rendered_estimator_sets_nothing() -> None:
    from npuprof.library import loads, render

    text = render(loads("[options]\nhcom_parallel = true\n"), "estimator")
    assert "**more" in text
    assert settings(text) == {"hcom_parallel": True}
    called = f"{text}\n\nconfig = run_config(**read())\n"
    assert "<depends on **more>" in settings(called).values()


def test_a_list_with_a_second_name_is_not_folded() -> None:
    line = 'op.parameter_map["dump_layer"].s = tf.compat.as_bytes(" ".join(names))\n'
    assert import_setting(f'names = ["a"]\nself.names = names\n{line}').value == "a"
    assert (
        import_setting(f'names = ["a"]\nother = names\nother.append("b")\n{line}').reason
        == "depends on the variable names, which has a second name"
    )


@pytest.mark.parametrize(
    ("imports", "expression"),
    [
        ("import os.path as osp", 'osp.join("/a", "b")'),
        ("from os import path as p", 'p.join("/a", "b")'),
        ("from os.path import join", 'join("/a", "b")'),
        ("import os", '{"x": "/a/b"}.get("x", "/c")'),
        ("import os", '{"y": "/c"}.get("x", "/a/b")'),
    ],
)
def test_a_function_is_known_under_the_name_it_is_imported_by(
    imports: str, expression: str
) -> None:
    line = f'op.parameter_map["dump_path"].s = tf.compat.as_bytes({expression})\n'
    assert import_setting(f"{imports}\n{line}").value == "/a/b"


READ = 'custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes({})\n'


def read_mode(before: str, expression: str, behind: str = "") -> object:
    found = [
        setting
        for setting in imported(f"{HEAD}{before}{READ.format(expression)}{behind}").settings
        if setting.name == "precision_mode"
    ]
    return found[-1].value


@pytest.mark.parametrize(
    ("before", "expression"),
    [
        ("def give(mode):\n    return mode\n", "give('right')"),
        ("def give(mode='right'):\n    chosen = mode\n    return chosen\n", "give()"),
        ("def inner():\n    return 'right'\ndef give():\n    return inner()\n", "give()"),
        ("class Config:\n    mode = 'right'\n", "getattr(Config, 'mode')"),
    ],
)
def test_what_is_certain_is_told(before: str, expression: str) -> None:
    assert read_mode(before, expression) == "right"


@pytest.mark.parametrize(
    ("before", "expression"),
    [
        ("def give(flag):\n    if flag:\n        return 'a'\n    return 'b'\n", "give(read())"),
        ("def give():\n    yield 'a'\n", "give()"),
        ("def give():\n    return 'a'\ndef give():\n    return 'b'\n", "give()"),
        ("def give():\n    return give()\n", "give()"),
        ("class Job:\n    def mode(self):\n        return 'a'\njob = Job()\n", "job.mode"),
        ("import json\nmode = json.loads('{')\n", "mode"),
        ("mode = 'a'\nif flag:\n    mode = 'b'\n", "mode"),
        ("class Job:\n    mode = 'a'\njob = Job()\nsetattr(job, read(), 1)\n", "job.mode"),
        ("mode = 'a'\nmode = 'b'\nfor mode in read():\n    pass\n", "mode"),
        ("def change():\n    global mode\n    mode = 'c'\nmode = 'a'\nmode = 'b'\n", "mode"),
    ],
)
def test_what_the_run_may_decide_stays_unknown(before: str, expression: str) -> None:
    assert read_mode(before, expression) is None
