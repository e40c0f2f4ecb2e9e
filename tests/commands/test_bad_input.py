"""Bad input: a clear error with a location and a fix, exit 2, no traceback, no partial output."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from npuprof.commands.framework import Parameter, list_verbs
from support.building import REPOSITORY, toml
from support.running import Run, Store

GOOD = "[options]\nhcom_parallel = true\n"

#: What is asked of each verb about the preset ``bad``.
ASK = {
    "show": ["show", "bad"],
    "check": ["check", "bad"],
    "list": ["list"],
    "render": ["render", "bad"],
    "render to a file": ["render", "bad", "-o", "out.py"],
    "composed": ["show", "good+bad"],
    "mixed in": ["env", "good", "--with", "bad"],
}

#: Bytes of ``bad.toml``, the code, and the place of the first finding.
FILES: list[tuple[str, bytes, str, str]] = [
    ("no value", b"a = ", "NP001", ":1:5"),
    ("no closing bracket", b"# c\n[options\nx = 1", "NP001", ":2:9"),
    ("the same key twice", b"[options]\nx = 1\nx = 2\n", "NP001", ":3:1"),
    ("a NUL", b"[options]\nx = 1\0\n", "NP001", ":2:6"),
    ("five thousand digits", b"[options]\n\nx = " + b"9" * 5000 + b"\n", "NP001", ":3:5"),
    ("nested too deep", b"[options]\nx = " + b"[" * 5000 + b"]" * 5000, "NP001", ":2:5"),
    ("UTF-16", "[options]\nx = 1\n".encode("utf-16"), "NP002", ":1:1"),
    ("a surrogate in UTF-8", b"x = '\xed\xa0\x80'", "NP002", ":1:6"),
    ("an unknown table", b"[option]\nx = 1\n", "NP006", ":1:2"),
    ("an option outside of its table", b"hcom_parallel = true\n", "NP006", ":1:1"),
    ("an unknown key of the profile", b"[profile]\nextend = ['base']\n", "NP006", ":2:1"),
    ("extends is text", b"[profile]\nextends = 'base'\n", "NP007", ":2:1"),
    ("a parent is a number", b"[profile]\nextends = [1]\n", "NP007", ":2:1"),
    ("a section is text", b"options = 'x'\n", "NP007", ":1:1"),
    ("profile is an array of tables", b"[[profile]]\nextends = ['a']\n", "NP007", ":1:3"),
    ("an override is no array", b"[override]\nmatch = { product = 'atlas-a2' }\n", "NP007", ":1:2"),
    ("a match is text", b"[[override]]\nmatch = 'atlas-a2'\n", "NP007", ":2:1"),
    (
        "an unset of an override is text",
        b"[[override]]\nmatch.product = 'atlas-a2'\nunset = 'x'\n",
        "NP007",
        ":3:1",
    ),
    ("append is text", b"append = 'x'\n", "NP007", ":1:1"),
    ("append to nothing known", b"[append.option]\nx = [1]\n", "NP006", ":1:9"),
    ("an unset that is no key", b"[profile]\nunset = ['a', 'b..c']\n", "NP009", ":2:15"),
    ("a missing parent", b"[profile]\nextends = ['goood']\n", "NP101", ":2:12"),
    ("itself as a parent", b"[profile]\nextends = ['bad']\n", "NP102", ":2:1"),
    ("a parent twice", b"[profile]\nextends = ['good', 'good']\n", "NP104", ":2:20"),
    ("a parent above the store", b"[profile]\nextends = ['../good']\n", "NP004", ":2:12"),
    (
        "append to a number",
        b"[options]\nhccl_timeout = 1\n[append.options]\nhccl_timeout = [2]\n",
        "NP106",
        ":4:1",
    ),
]


@pytest.mark.parametrize(
    ("verb", "text", "code", "place"),
    [
        pytest.param(verb, *row[1:], id=f"{verb}-{row[0]}")
        for i, row in enumerate(FILES)
        for j, verb in enumerate(ASK)
        if (i + j) % 2
    ],
)
def test_a_bad_file_is_told_with_place_and_repair(
    verb: str, text: bytes, code: str, place: str, store: Store, run: Run
) -> None:
    store({"good": GOOD, "bad": text})
    Path("out.py").write_text("before\n")
    result = run(*ASK[verb])
    output = result.out if verb.startswith("check") else result.err
    assert result.code == 2, (result.out, result.err)
    first = output.split("\n")[0]
    assert first.startswith(f"profiles/bad.toml{place}: error {code}: "), output
    assert "\n  try: " in output
    assert "Traceback" not in result.err
    if not verb.startswith(("check", "list")):
        assert result.out == ""
    assert Path("out.py").read_text() == "before\n"
    assert sorted(os.listdir()) == ["home", "out.py", "profiles"]


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/etc/passwd",
        "a//b",
        ".git",
        "-x/y",
        "a\nb",
        "ä",
        "good+",
        "*",
        "x" * 300,
        "a/" * 3000 + "a",
        "good@",
        "@{-1}",
        "con\0",
    ],
)
@pytest.mark.parametrize("verb", ["show", "check"])
def test_a_bad_name_is_refused(verb: str, name: str, store: Store, run: Run) -> None:
    store({"good": GOOD})
    result = run(verb, "--", name)
    text = result.out if verb == "check" else result.err
    assert result.code == 2, text
    assert "error NP" in text
    assert "try: " in text


def test_what_is_no_file_is_told_and_never_waited_for(
    store: Store, run: Run, tmp_path: Path
) -> None:
    folder = store({"good": GOOD})
    os.mkfifo(folder / "pipe.toml")
    os.mkdir(folder / "folder.toml")
    os.symlink("circle.toml", folder / "circle.toml")
    os.symlink("/dev/zero", folder / "outside.toml")
    os.symlink("gone.toml", folder / "dangling.toml")
    expected = {
        "circle": "NP003",
        "dangling": "NP008",
        "folder": "NP003",
        "outside": "NP005",
        "pipe": "NP003",
    }
    for verb in ("list", "check"):
        result = run(verb)
        assert result.code == 2
        text = result.out if verb == "check" else result.err
        assert {
            name: re.search(rf"error (NP\d+): .*{name}", text)[1] for name in expected
        } == expected  # type: ignore[index]
    for name, code in expected.items():
        result = run("render", name)
        assert result.code == 2
        assert result.out == ""
        assert code in result.err
        assert "try: " in result.err
        assert f"did you mean {name!r}" not in result.err


def test_files_whose_names_no_preset_can_have_are_told(store: Store, run: Run) -> None:
    folder = store({"good": GOOD})
    names = ["-rf.toml", "a b.toml", "\u00e4.toml", "x\x1b[31m.toml", "a\nb.toml"]
    if sys.platform != "darwin":  # there, names are text
        names.append(os.fsdecode(b"\xff.toml"))
    for name in names:
        (folder / name).write_text(GOOD)
    (folder / ".hidden.toml").write_text("not toml")
    result = run("check")
    assert result.code == 2
    assert result.out.count("error NP004") == len(names)
    assert "\x1b" not in result.out
    assert run("list").out.startswith("good")


@pytest.mark.parametrize("arguments", [["--store", "gone"], ["--store", "file"], ["--store", "\0"]])
@pytest.mark.parametrize("verb", [["list"], ["show", "x"], ["render", "x"], ["check"]])
def test_a_store_that_is_none_is_told(verb: list[str], arguments: list[str], run: Run) -> None:
    Path("file").write_text("")
    result = run(*verb, *arguments)
    assert result.code == 2, arguments
    assert result.out == "", arguments
    assert "NP010" in result.err


@pytest.mark.parametrize(
    ("names", "parameters"),
    [(names, verb.parameters) for names, verb in list_verbs() if not verb.hidden],
)
def test_an_empty_argument_is_refused_by_name(
    names: tuple[str, ...], parameters: dict[str, Parameter], store: Store, run: Run
) -> None:
    store({"good": GOOD})
    needed = [
        "x" for parameter in parameters.values() if parameter.required and not parameter.flags
    ]
    flags = [
        argument
        for parameter in parameters.values()
        if parameter.required and parameter.flags
        for argument in (parameter.flags[0], "x")
    ]
    judged = 0
    assert parameters
    for parameter in parameters.values():
        if parameter.flags and parameter.kind in ("text", "many"):
            result = run(*names, *needed, *flags, f"{parameter.flags[0]}=")
            assert result.code == 2, parameter
            assert result.out == "", parameter
            assert f"{parameter.flags[0]} is empty" in result.err
            judged += 1
        elif not parameter.flags and parameter.metavar != "CMD...":
            result = run(*names, "", *needed[1:], *flags)
            assert result.code == 2
            assert result.out == ""
            assert " is empty" in result.err
            judged += 1
    assert judged


def test_the_mark_of_an_encoding_moves_no_column(store: Store, run: Run) -> None:
    store({"a": b"\xef\xbb\xbfoptions.hcom_paralel = true\r\n"})
    assert run("check").out.startswith("profiles/a.toml:1:9: error NP201")


def test_bad_text_on_standard_input_is_told(run: Run) -> None:
    result = run("show", "-", stdin=b"x = \xff")
    assert result.code == 2
    assert result.err.startswith("<stdin>:1:5: error NP002")
    result = run("check", "-", stdin=b"[options]\nhcom_paralel = 1\n")
    assert result.code == 1
    assert result.out.startswith("<stdin>:2:1: error NP201")
    assert "  2 | hcom_paralel = 1" in result.out


# -- hostile words --------------------------------------------------------------------------------

ESCAPES = "a\x1b[31m\x07\x9b31m\u202e\r\n::error::x"


def test_nothing_that_was_written_moves_a_cursor(store: Store, run: Run) -> None:
    hostile = {
        "profile": {"description": ESCAPES, "scenario": "training"},
        "options": {
            ESCAPES: 1,
            "precision_mode_v2": ESCAPES,
            "dump_step": [ESCAPES],
            "profiling_options": {ESCAPES: ESCAPES},
        },
        "env": {ESCAPES: ESCAPES, "X": ESCAPES},
        "estimator": {ESCAPES: 1},
        "atc": {ESCAPES: 1},
    }
    store(
        {
            "a": toml(hostile),
            "b": toml({"profile": {"extends": [ESCAPES], "unset": [ESCAPES], "locked": [ESCAPES]}}),
            "c": toml({ESCAPES: {}}),
            "d": f"x = '\x1b'  # {ESCAPES.splitlines()[0]}".encode(),
            "e": toml({"override": [{"match": {ESCAPES: ESCAPES}, ESCAPES: 1}]}),
        }
    )
    arguments = [["show", spec] for spec in "abcde"] + [
        ["check", "--severity", "info"],
        ["check", "--format", "github"],
        ["list"],
    ]
    arguments += [
        ["explain", "a", key] for key in ("precision_mode_v2", "env.X", "profiling_options")
    ] + [
        ["show", "a", "--origin"],
        ["render", "a"],
    ]
    arguments += [
        ["show", ESCAPES],
        ["show", f"{ESCAPES}.toml"],
        ["show", "a", "--set", ESCAPES],
        ["show", "a", "--unset", ESCAPES],
    ]
    arguments += [
        ["list", "--where", ESCAPES],
        ["explain", "a", ESCAPES],
        ["options", ESCAPES],
        ["option", ESCAPES],
        ["rule", ESCAPES],
    ]
    arguments += [
        ["render", "a", "--to", ESCAPES],
        ["env", "a", "--shell", ESCAPES],
        ["show", "a", "--cann", ESCAPES, "--product", ESCAPES],
    ]
    assert arguments
    for line in arguments:
        result = run(*line)
        assert "bug in npuprof" not in result.err, line
        shown = result.out + result.err
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown), (line, shown)
        if line[-1] == "github":
            assert all(
                text.startswith(("::error ", "::warning ", "::notice "))
                for text in result.out.splitlines()
            )


@pytest.mark.parametrize("target", ["session", "toml"])
def test_a_hostile_description_does_not_get_out_of_the_rendered_header(
    target: str, store: Store, run: Run
) -> None:
    store(
        {
            "a": toml(
                {
                    "profile": {"description": 'x\nimport os\nos.system("false")\r"""'},
                    "options": {"dump_path": "'\"\n\\"},
                }
            )
        }
    )
    result = run("render", "a", "--to", target, "--no-check")
    assert result.code == 0
    lines = result.out.replace("\r", "\n").split("\n")
    assert "import os" not in lines


# -- the edges of the process ---------------------------------------------------------------------


def script(arguments: str, **named: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a shell line in which ``npuprof`` is the command."""
    line = f'npuprof() {{ "{sys.executable}" -m npuprof "$@"; }}; {arguments}'
    return subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        **named,
    )


@pytest.mark.parametrize("verb", ["env good", "--help"])
def test_a_closed_or_full_output_is_an_error_and_no_traceback(verb: str, store: Store) -> None:
    store({"good": GOOD})
    for where in (">&-", ">/dev/full"):
        result = script(f"npuprof {verb} {where}")
        assert result.returncode == 2, (where, result.stderr)
        assert b"cannot write" in result.stderr
        assert b"Traceback" not in result.stderr
    assert script(f"npuprof {verb} >&- 2>&-").returncode == 2


def test_a_reader_that_leaves_early_is_no_error_to_talk_about(store: Store) -> None:
    store({f"p{n}": GOOD for n in range(3000)})
    result = script(
        "npuprof list | head -1; echo ${PIPESTATUS[0]}; "
        "npuprof options | true; npuprof --help | true"
    )
    first, code = result.stdout.splitlines()
    assert first.split() == [b"p0", b"-", b"-", b"-", b"-"]
    assert code in (b"141", b"0"), "0 if all was written before"
    assert result.stderr == b""


@pytest.mark.parametrize(
    ("arguments", "stream"),
    [
        *(
            (arguments, "stdout")
            for arguments in ("list", "show good", "options", "--help", "list -h")
        ),
        *((arguments, "stderr") for arguments in ("check", "show no", "list --no-such-flag")),
    ],
)
def test_what_nobody_reads_ends_with_the_code_of_sigpipe(
    arguments: str, stream: str, store: Store
) -> None:
    store({"good": GOOD})
    reading, writing = os.pipe()
    os.close(reading)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: writing}
    done = subprocess.run(
        [sys.executable, "-m", "npuprof", *arguments.split()],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=False,
        **streams,
    )
    os.close(writing)
    assert done.returncode == 141
    assert not done.stderr


def test_a_closed_input_is_told() -> None:
    result = script("npuprof show - <&-")
    assert result.returncode == 2
    assert b"NP003" in result.stderr


def test_a_merge_conflict_is_called_one(store: Store, run: Run) -> None:
    store(
        {
            "torn": (
                "[options]\n<<<<<<< ours\nhccl_timeout = 2\n"
                "=======\nhccl_timeout = 3\n>>>>>>> theirs\n"
            )
        }
    )
    result = run("show", "torn")
    assert result.code == 2
    assert (
        "torn.toml:2:1: error NP001: not valid TOML: a merge conflict is not resolved" in result.err
    )


def test_a_file_that_cannot_be_written_leaves_everything_as_it_was(store: Store, run: Run) -> None:
    store({"good": GOOD})
    os.mkdir("folder.d")
    Path("file").write_text("x")
    for path in ("gone/deep/out.py", "file/out.py", "/proc/out.py", "/dev/full/x.py"):
        result = run("show", "good", "-o", path)
        assert result.code == 2, path
        assert result.out == "", path
        assert "NP012" in result.err
        assert "Nothing was" in result.err
        assert path.removesuffix("/out.py") in result.err
        assert result.err == run("show", "good", "-o", path).err, (
            "it names what was asked for, not a temporary file"
        )
    assert sorted(os.listdir()) == ["file", "folder.d", "home", "profiles"]


@pytest.mark.parametrize("arguments", [("show", "good"), ("render", "good")])
def test_a_pipe_is_written_to_and_stays_a_pipe(
    arguments: tuple[str, ...], run: Run, store: Store
) -> None:
    store({"good": GOOD})
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert run(*arguments, "-o", "pipe").code == 0
    assert os.read(reader, 1 << 16).decode() == run(*arguments).out
    os.close(reader)
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


def test_folders_made_for_nothing_are_taken_back(
    run: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"good": GOOD})

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    before = sorted(os.listdir())
    assert run("render", "good", "-o", "new/deep/").code == 2
    assert sorted(os.listdir()) == before


def test_a_bug_is_told_as_a_bug(run: Run, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    import npuprof.resolve

    def broken(*_: Any) -> None:
        raise ZeroDivisionError(f"on purpose {'x' * 50_000}")

    store({"good": GOOD})
    monkeypatch.setattr(npuprof.resolve.Resolver, "resolve_profile", broken)
    result = run("show", "good")
    assert result.code == 70
    assert "a bug in npuprof" in result.err
    assert "on purpose xxx" in result.err
    assert len(result.err) < 1000
    assert "Traceback" not in result.err
    monkeypatch.setenv("NPUPROF_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run("show", "good")


MIXED = (
    '[options]\nprecision_mode_v2 = "mixed_float16"\nmodify_mixlist.black-list.to-add = ["Cast"]\n'
)


@pytest.mark.parametrize(
    ("preset", "environ", "message", "arguments"),
    [
        pytest.param(
            MIXED, {"XDG_CACHE_HOME": "\udcff"}, "", ["env", "x"], id="the folder of caches"
        ),
        pytest.param(
            MIXED,
            {"XDG_CACHE_HOME": "", "HOME": "\udcff"},
            "",
            ["run", "x", "--", "/nonexistent"],
            id="the home",
        ),
        pytest.param(
            'env.RANK_TABLE_FILE = { launcher = "rank" }\n',
            {"OMPI_COMM_WORLD_RANK": "\udcff"},
            "RANK_TABLE_FILE is omitted",
            ["env", "x"],
            id="a variable of the launcher",
        ),
    ],
)
def test_what_is_no_utf8_is_never_exported(
    preset: str,
    environ: dict[str, str],
    message: str,
    arguments: list[str],
    store: Store,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store({"x": preset})
    monkeypatch.setattr(
        "npuprof.commands.run.require_lone_thread", lambda: None
    )  # other tests may have left threads
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    result = run(*arguments)
    assert result.code == (127 if arguments[0] == "run" else 0), result.err
    assert message in result.err, result.err
    assert not re.search("[\ud800-\udfff]", result.out)


def test_a_command_that_cannot_be_started_leaves_the_signals_as_they_were(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"x": MIXED})
    monkeypatch.setattr(
        "npuprof.commands.run.require_lone_thread", lambda: None
    )  # other tests may have left threads
    assert run("run", "x", "--", "/nonexistent").code == 127
    assert [signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGXFSZ)] == [
        signal.SIG_IGN,
        signal.SIG_IGN,
    ]


INNER = [
    ({"a": "", "sub/profiles/b": ""}, ["profiles/sub/profiles is a store inside a store"]),
    (
        {"a": "", "profiles/b": "", "profiles/c": ""},
        ["profiles/profiles is a store inside a store"],
    ),
    ({"a": "", "sub/npuprof": "", "sub/b": ""}, ["profiles/sub is a store inside a store"]),
    ({"a": "", "sub/profile/b": "", "npuprof": "", "x/profiles-old/c": ""}, []),
]


@pytest.mark.parametrize(("presets", "message"), INNER)
def test_a_store_inside_a_store_is_told_once(
    presets: dict[str, str], message: list[str], store: Store, run: Run
) -> None:
    store(presets)
    found = json.loads(run("check", "--format", "json").out)["findings"]
    assert [finding["message"] for finding in found if finding["code"] == "NP017"] == message
