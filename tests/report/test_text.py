"""Terminals, comments and pages show invisible characters; rendered values are unchanged."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import unicodedata
from pathlib import Path

import pytest

from npuprof.document import keys
from npuprof.report.json_text import format_json_answer
from npuprof.report.tables import format_code_span
from npuprof.report.text import escape_controls, escape_terminal_text
from support.building import REPOSITORY
from support.captured import capture
from support.repositories import Repo
from support.running import Run, Store

#: A control sequence of one byte, marks that turn the text around, and letters that show nothing.
EVIL = "\x9b31m\u202e\u2066\u200f\u061c\u200b\ufe0f\u3164"
WORST = EVIL + "\u2028\u2029"
LINK = "https://example.org/x @nobody \\@nobody www.example.org \\|`|`` <b> #1"
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff]"
)


NOTHING = [
    *range(32),
    0x7F,
    0x85,
    0x9B,
    0xAD,
    0x34F,
    0x61C,
    0x115F,
    0x180E,
    0x200B,
    0x200E,
    0x2028,
    0x202A,
    0x202E,
    0x2060,
    0x2066,
    0x2069,
    0x2800,
    0x3164,
    0xFE0F,
    0xFEFF,
    0xFFA0,
    0xFFF9,
    0x1BCA0,
    0x1D173,
    0xE0001,
    0xE0020,
    0xE0100,
    0xE01EF,
    0x10FFFF,
]


@pytest.mark.parametrize("char", list(map(chr, NOTHING)), ids=map(hex, NOTHING))
def test_what_shows_nothing_is_shown_and_means_the_same(char: str) -> None:
    text = f"a{char}b"
    shown = escape_controls(text)
    assert shown.isascii()
    assert shown.isprintable()
    assert shown != text
    assert json.loads(format_json_answer({"x": text})) == {"x": text}
    assert re.fullmatch(r'\{\n  "x": ".*"\n\}\n', format_json_answer({"x": text}))
    assert not HIDDEN.search(format_json_answer({"x": text}))
    quoted = keys.quote_basic_string(text)
    assert tomllib.loads(f"x = {quoted}")["x"] == text
    assert quoted.isprintable()
    assert not HIDDEN.search(quoted)


def test_no_format_character_of_unicode_is_printed() -> None:
    hidden = [
        char
        for char in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    ]
    assert len(hidden) > 100_000
    assert [hex(ord(char)) for char in hidden if keys.is_visible(char)] == []


def test_plain_text_of_any_script_stays_as_it_is() -> None:
    for text in ("plain", "größer → 5 µs", "日本語", "العربية", "עברית", "हिन्दी", "e\u0301"):
        assert escape_controls(text) == text
        assert keys.is_visible(text)


PRESET = (
    f'# c{EVIL}\n[profile]\ndescription = "d{EVIL}"\nowner = "o{EVIL}"\n[options]\n'
    f'op_compiler_cache_dir = "./p{EVIL}" # x{EVIL}\n'
    f'hccl_timeout = {{}}\n[env]\nASCEND_PROCESS_LOG_PATH = "/l{EVIL}"\n'
)
SCRIPT = (
    f"# {WORST}\nimport tensorflow as tf\nc = tf.ConfigProto()\n"
    f'custom_op.parameter_map["precison{EVIL}"].s = tf.compat.as_bytes("a{EVIL}") # {EVIL}\n'
    f'custom_op.parameter_map["op_compiler_cache_dir"].s = tf.compat.as_bytes("b{EVIL}")\n'
    f"# >>> npuprof good >>>\n# q{EVIL}\n# <<< npuprof <<<\n"
)
BRANCH = EVIL.replace("\x9b31m", "branch")
#: Command lines; {} is a word that hides all it can, BRANCH a branch of such a name.
COMMANDS = """
list; list --format json; show good; show good --origin; show x{}.toml; show good@{};
show good --set {}=1; explain good op_compiler_cache_dir; explain good {}; option {}; check;
check --format sarif; check --format github; check x{}.toml; check x{}.toml --format github;
check y{}.toml --cann 8.0.0 --cann 9.0.0; set good hccl_timeout=5 --dry-run;
new fresh --description {} --dry-run; render good; render good --to toml; render good -o out{}/;
env good --diff; env good --format k8s-configmap; diff good y{}.toml;
diff good y{}.toml leaf --format html; diff --rev BRANCH; diff --rev BRANCH --format markdown;
diff --rev BRANCH --format html; diff --rev {}; log good; blame good; commit --dry-run;
release good --dry-run; restore good@HEAD --dry-run; import s{}.py; import s{}.py --format json;
import s{}.py -o i{}/; scan .; scan . --format github; scan . --format sarif; scan no{};
scan . --format concise; scan - --stdin-filename s{}.py;
inject s{}.py good --force --dry-run; inject . --all --dry-run;
migrate good --cann 9.0.0 --dry-run; init s{}.py; {}; show --{}
"""


@pytest.fixture
def hostile(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("GIT_AUTHOR_NAME", f"Ada{EVIL}")
    repo.write(
        {
            "good": PRESET.format(1836),
            "leaf": (
                '[profile]\nextends = ["good"]\n[options]\n'
                f'op_compiler_cache_dir = "./q{EVIL}" # y\n'
            ),
        }
    )
    repo.write(
        {
            "bad": (
                f'[profile]\nextends = ["none{EVIL}"]\n[options]\n'
                f'hccl_timeout = "{EVIL}"\n"k{EVIL}" = 1\n'
            )
        }
    )
    for message, number in ((f"one {WORST}", 1836), (f"two {WORST}", 1700)):
        repo.write({"good": PRESET.format(number)})
        for arguments in (("add", "-A"), ("commit", "-q", "-m", message)):
            subprocess.run(
                ["git", *arguments], check=True, env={**os.environ, "GIT_AUTHOR_NAME": f"Ada{EVIL}"}
            )
    repo.git("branch", BRANCH, "HEAD~1")
    repo.write({"good": PRESET.format(1701)})
    Path(f"x{WORST}.toml").write_text(
        f'[profile]\nextends = ["good", "none{EVIL}"]\n[options]\nhccl_timeout = "{EVIL}"\n'
    )
    Path(f"y{WORST}.toml").write_text(
        '[profile]\nextends = ["good"]\n[options]\nhccl_timeout = 3 \n'
    )
    Path(f"s{WORST}.py").write_text(SCRIPT)
    (repo.folder / f"profiles/stray{WORST}.toml").write_text("[options]\n")
    return repo


def test_no_verb_prints_what_hides_itself(hostile: Repo, run: Run) -> None:
    lines = [line.strip() for line in COMMANDS.split(";")]
    assert len(lines) > 40
    for line in lines:
        arguments = [
            BRANCH if word == "BRANCH" else word.replace("{}", WORST) for word in line.split()
        ]
        output = run(*arguments)
        assert output.code in (0, 1, 2), (arguments, output.err)
        for text in (output.out, output.err):
            assert not HIDDEN.search(text), (arguments, text)
    for path in (*hostile.folder.glob("out*/*.py"), *hostile.folder.glob("i*/*.toml")):
        assert not HIDDEN.search(path.read_text())


@pytest.mark.parametrize("value", [WORST, LINK])
def test_rendered_values_are_the_preset_s_to_the_byte(value: str, run: Run, store: Store) -> None:
    folder = store({"a": f"[options]\nop_compiler_cache_dir = {keys.quote_basic_string(value)}\n"})
    code = run("render", "a", "--no-check").out
    assert not HIDDEN.search(code)
    literals = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
    assert value in literals
    assert (
        tomllib.loads(run("render", "a", "--to", "toml", "--no-check").out)["options"][
            "op_compiler_cache_dir"
        ]
        == value
    )
    assert (
        json.loads(run("render", "a", "--to", "json", "--no-check").out)["options"][
            "op_compiler_cache_dir"
        ]
        == value
    )
    lines = run("env", "a", "--no-check", "--shell", "bash", "--store", str(folder)).out
    done = subprocess.run(
        ["bash", "-c", f'{lines}\nprintf %s "$NPUPROF_OP_COMPILER_CACHE_DIR"'],
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == value


def test_every_value_of_a_markdown_page_stands_in_a_code_span(repo: Repo, run: Run) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    value = keys.quote_basic_string(LINK)
    first = {
        "a": "[options]\nhccl_timeout = 1\n",
        "www.example.org": "[options]\n",
        "b": "[options]\n",
        "gone": "[options]\n",
    }
    repo.commit(first)
    shown = (
        f"[options]\nhccl_timeout = 1\nop_compiler_cache_dir = {value}\n"
        f"dump_path = {value}\n{value} = {value}\n"
    )
    repo.commit(
        {
            "a": shown,
            "www.example.org": f"[options]\nhccl_timeout = {value}\n",
            "gone": None,
            "new@x": "[options]\n",
        }
    )
    for arguments in (("--rev", "HEAD~1..HEAD"), ("a", "b", "www.example.org"), ("a", "b")):
        page = run("diff", *arguments, "--format", "markdown").out
        assert "example.org" in page
        parsed = markdown_it.MarkdownIt("commonmark").enable("table").parse(page)
        plain = [
            inner.content
            for token in parsed
            for inner in token.children or ()
            if inner.type != "code_inline"
        ]
        assert not [text for text in plain if re.search(r"example|@|nobody|profiles|<b>", text)], (
            page
        )


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("a", "`a`"),
        ("`a", "`` `a ``"),
        ("a`", "`` a` ``"),
        ("a`b", "``a`b``"),
        ("a``b`", "``` a``b` ```"),
        (" ", "`   `"),
        ("", "`  `"),
    ],
)
def test_a_code_span_has_a_blank_next_to_backticks_and_around_blanks(text: str, span: str) -> None:
    assert format_code_span(text) == span


def test_a_terminal_is_shown_what_a_pipe_is_handed(store: Store, tmp_path: Path) -> None:
    store({"a": f'[options]\nop_compiler_cache_dir = "./p{EVIL}"\n'})
    command = [sys.executable, "-m", "npuprof", "env", "a", "--no-check"]
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    assert (
        EVIL
        in subprocess.run(command, capture_output=True, check=True, env=environ).stdout.decode()
    )
    shown = capture(command[3:], 200, tmp_path)
    assert "\\u202e" in shown
    assert HIDDEN.search(shown) is None


def test_colours_stay_where_a_text_is_coloured() -> None:
    text = f"\033[1mhead\033[0m {EVIL}\n\tnext\n"
    shown = escape_terminal_text(text, True)
    assert shown.startswith("\033[1mhead\033[0m \\x9b31m\\u202e")
    assert shown.endswith("\n\tnext\n")
    assert "\033" not in escape_terminal_text(text, False)
