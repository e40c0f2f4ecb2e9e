"""Unexpected files: foreign files, links that lead out of a folder, endless pipes."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from npuprof.renderers import load_target
from npuprof.system.files import read_plain_file
from support.building import REPOSITORY
from support.repositories import Repo
from support.running import Run, Store

PRESET = (
    '[options]\nprecision_mode_v2 = "mixed_float16"\n'
    'modify_mixlist = { black-list = { to-add = ["MatMul"] } }\n'
)
OTHER = PRESET.replace("MatMul", "Cast")
PLAIN = "[options]\nhccl_timeout = 1836\n"
SWITCH = "[options]\ndeterministic = {}\n"
BLOCK = "# >>> npuprof plain >>>\n# <<< npuprof <<<\n"


@pytest.fixture
def project(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    store({})
    (tmp_path / "profiles").rename(folder / "profiles")
    for name, text in {"a": PRESET, "plain": PLAIN}.items():
        (folder / f"profiles/{name}.toml").write_text(text)
    (folder / "env.sh").write_text("export HCCL_CONNECT_TIMEOUT=600\n")
    return folder


def change(text: str) -> None:
    Path("profiles/a.toml").write_text(text)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("profiles/made.toml", 0),
        ("deep/er/made.toml", 0),
        ("{top}/beside/made.toml", 0),
        ("{top}/../elsewhere/made.toml", 2),
        ("leads/new/made.toml", 2),
    ],
    ids=["a store", "folders", "in the work tree", "outside of it", "through a link out of it"],
)
def test_an_import_makes_missing_folders_of_its_file_within_the_work_tree(
    path: str, code: int, run: Run, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo.folder / "sub").mkdir()
    monkeypatch.chdir(repo.folder / "sub")
    Path("env.sh").write_text("export HCCL_CONNECT_TIMEOUT=600\npython train.py\n")
    (tmp_path / "outside").mkdir()
    Path("leads").symlink_to(tmp_path / "outside")
    file = Path(path.format(top=repo.folder))
    done = run("import", "env.sh", "-o", file)
    assert done.code == code, done.err
    assert file.exists() == (code == 0)
    assert file.parent.exists() == (code == 0)
    assert ("made the folder" in done.err) == (code == 0)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize(("name", "hint"), [("a b", "a-b"), ("../x", "x"), (".z", "z")])
def test_an_import_takes_no_name_that_a_preset_cannot_have(
    name: str, hint: str, run: Run, repo: Repo
) -> None:
    Path("env.sh").write_text("export HCCL_CONNECT_TIMEOUT=600\npython train.py\n")
    before = sorted(repo.folder.rglob("*.toml"))
    done = run("import", "env.sh", "--name", name, "-o", "profiles")
    assert done.code == 2
    assert "NP004" in done.err
    assert f"write {hint}" in done.err
    assert sorted(repo.folder.rglob("*.toml")) == before


# -- what npuprof has not written -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("render", "a", "-o", "out"), "out/session.py"),
        (("render", "a", "-o", "out"), "out/ops_info.json"),
        (("render", "a", "-o", "code.py"), "code.py"),
        (("render", "a", "-o", "code.py"), "ops_info.json"),
        (("render", "plain", "-o", "notes.txt"), "notes.txt"),
        (("render", "plain", "--to", "json", "-o", "x.json"), "x.json"),
        (("render", "plain", "--to", "toml", "-o", "x.toml"), "x.toml"),
        (("inject", "train.py", "a"), "ops_info.json"),
        (("import", "env.sh", "-o", "made.toml"), "made.toml"),
        (("import", "env.sh", "-o", "made/"), "made/env.toml"),
    ],
)
def test_a_file_that_somebody_wrote_stays_unless_it_is_forced(
    arguments: tuple[str, ...], path: str, run: Run, project: Path
) -> None:
    Path("train.py").write_text("import tensorflow as tf\nconfig = tf.ConfigProto()\n")
    mine = "{}  # mine\n"
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(mine)
    before = {file: file.read_bytes() for file in project.rglob("*") if file.is_file()}
    result = run(*arguments)
    assert result.code == 2
    assert path in result.err
    assert "--force" in result.err
    assert {file: file.read_bytes() for file in project.rglob("*") if file.is_file()} == before
    assert run(*arguments, "--force").code == 0
    assert Path(path).read_text() != mine


@pytest.mark.parametrize("target", ["session", "keras", "torch-npu", "vllm", "env-loader", "toml"])
def test_what_npuprof_wrote_and_nobody_edited_is_written_anew(
    target: str, run: Run, project: Path
) -> None:
    command = ("render", "plain", "--to", target, "-o", "out", "--no-check")
    file = Path("out") / load_target(target).file
    Path("profiles/plain.toml").write_text(SWITCH.format(0))
    assert run(*command).code == 0
    before = file.read_text()
    Path("profiles/plain.toml").write_text(SWITCH.format(1))
    assert run(*command).code == 0
    assert file.read_text() != before
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))  # as git checks it out elsewhere
    Path("profiles/plain.toml").write_text(SWITCH.format(0))
    assert run(*command).code == 0
    assert file.read_text() == before


@pytest.mark.parametrize("target", ["session", "ge", "torch-npu", "toml", "json"])
def test_an_edit_anywhere_in_rendered_text_is_kept(target: str, run: Run, project: Path) -> None:
    command = ("render", "plain", "--to", target, "-o", "out", "--no-check")
    file = Path("out") / load_target(target).file
    Path("profiles/plain.toml").write_text(SWITCH.format(0))
    assert run(*command).code == 0
    lines = file.read_text().splitlines(keepends=True)
    Path("profiles/plain.toml").write_text(SWITCH.format(1))
    note = "# mine\n" if target != "json" else '  "mine": 1,\n'
    for place in range(1 if target == "json" else 0, len(lines) + (target != "json")):
        edited = "".join([*lines[:place], note, *lines[place:]])
        file.write_text(edited)
        assert run(*command).code == 2, place
        assert file.read_text() == edited


def test_files_beside_the_code_are_known_by_what_its_header_lists(run: Run, project: Path) -> None:
    assert run("render", "a", "-o", "out").code == 0
    assert re.search(
        r"^# beside: ops_info\.json sha256:[0-9a-f]{32}$",
        Path("out/session.py").read_text(),
        re.MULTILINE,
    )
    change(OTHER)
    assert run("render", "a", "-o", "out").code == 0
    assert "Cast" in Path("out/ops_info.json").read_text()
    change(PRESET)
    result = run(
        "render", "a", "--to", "estimator", "-o", "out"
    )  # what session.py needs is not this code's
    assert result.code == 2
    assert "out/ops_info.json" in result.err
    Path("out/ops_info.json").write_text('{"mine": 1}')
    assert run("render", "a", "-o", "out").code == 2
    assert Path("out/ops_info.json").read_text() == '{"mine": 1}'
    assert run("render", "a", "-o", "out", "--check", "out").code == 1


def test_restore_keeps_edits_that_no_commit_holds(run: Run, repo: Repo) -> None:
    path = Path("profiles/leaf.toml")
    for number in (68, 136):
        repo.commit({"leaf": f"[options]\nhccl_timeout = {number}\n"})
    path.write_text("[options]\nhccl_timeout = 204\n")
    subprocess.run(["git", "add", "."], check=True)
    for arguments in (("leaf@HEAD~1",), ("leaf@HEAD",), ("leaf@HEAD~1", "--resolved")):
        result = run("restore", *arguments)
        assert result.code == 2
        assert "NP943" in result.err
        assert "204" in path.read_text()
    assert run("restore", "leaf@HEAD~1", "--force").code == 0
    assert run("restore", "leaf@HEAD").code == 0  # what is there is in a commit
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert run("restore", "leaf@HEAD~1").code == 0
    Path("mine.toml").write_text("mine")
    assert run("restore", "leaf@HEAD", "-o", "mine.toml").code == 2
    assert Path("mine.toml").read_text() == "mine"


# -- links ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "arguments"),
    [
        ("out/session.py", ("render", "plain", "-o", "out")),
        ("out/ops_info.json", ("render", "a", "-o", "out")),
        ("ops_info.json", ("render", "a", "-o", "code.py")),
        ("ops_info.json", ("inject", "train.py", "a")),
        ("made/env.toml", ("import", "env.sh", "-o", "made")),
        ("new/.gitattributes", ("init", "new")),
    ],
)
def test_nothing_is_written_through_a_link_out_of_the_folder(
    link: str, arguments: tuple[str, ...], run: Run, project: Path, tmp_path: Path
) -> None:
    Path("train.py").write_text("import tensorflow as tf\nconfig = tf.ConfigProto()\n")
    outside = tmp_path / "outside"
    outside.write_text("outside\n")
    Path(link).parent.mkdir(exist_ok=True)
    Path(link).symlink_to(outside)
    result = run(*arguments)
    assert outside.read_text() == "outside\n"
    assert result.code == 2, result.err
    outside.unlink()
    run(*arguments, *(["--force"] if arguments[0] != "init" else []))
    assert not outside.exists(), "a link to nothing makes no file outside"


def test_inject_leaves_what_a_link_leads_out_to_and_follows_the_one_that_is_typed(
    run: Run, project: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.sh"
    outside.write_text(f"#!/bin/sh\n{BLOCK}")
    Path("scripts").mkdir()
    Path("scripts/in.sh").write_text(f"#!/bin/sh\n{BLOCK}")
    Path("scripts/same.sh").symlink_to("in.sh")
    Path("scripts/link.sh").symlink_to(outside)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/far.sh").write_text(f"#!/bin/sh\n{BLOCK}")
    Path("scripts/folder").symlink_to(tmp_path / "elsewhere")
    result = run("inject", "scripts", "--all")
    assert result.code == 0
    assert "scripts/link.sh" in result.err
    assert (
        outside.read_text() == (tmp_path / "elsewhere/far.sh").read_text() == f"#!/bin/sh\n{BLOCK}"
    )
    assert "digest" in Path("scripts/in.sh").read_text()
    assert Path("scripts/same.sh").is_symlink()
    assert run("inject", "scripts/link.sh", "plain").code == 0
    assert "digest" in outside.read_text()
    assert Path("scripts/link.sh").is_symlink()


# -- pipes, devices, and what has no end ----------------------------------------------------------

READERS = [
    ("show", "{}.toml"),
    ("scan", "{}.py"),
    ("set", "{}.toml", "hccl_timeout=1"),
    ("check", "{}.toml"),
    ("diff", "plain", "{}.toml"),
    ("import", "{}.py"),
    ("inject", "{}.py", "plain"),
    ("migrate", "{}.toml", "--cann", "9.0.0"),
    ("git", "textconv", "{}.toml"),
    ("env", "{}.toml"),
    ("render", "plain", "--check", "{}.py"),
    ("inject", "{}.py", "plain", "--check"),
    ("git", "diff-driver", "x", "{}.toml", "0", "0", "{}.toml", "0", "0"),
]
#: What a path may be, and the word for it.
KINDS = [
    ("pipe", "named pipe"),
    ("socket", "socket"),
    ("device", "device"),
    ("long", "longer than"),
    ("folder", "folder|directory"),
]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [(arguments, KINDS[place % len(KINDS)]) for place, arguments in enumerate(READERS)],
)
def test_what_is_no_file_is_refused_by_name(
    arguments: tuple[str, ...],
    kind: tuple[str, str],
    run: Run,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for path in ("odd.toml", "odd.py"):
        if kind[0] == "pipe":
            os.mkfifo(path)
        elif kind[0] == "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path)
        elif kind[0] == "folder":
            Path(path).mkdir()
        elif kind[0] == "long":
            monkeypatch.setattr("npuprof.system.files.LARGEST_FILE", 1000)
            monkeypatch.setattr(read_plain_file, "__defaults__", (1000, True))
            Path(path).write_text("# " + "x" * 1000 + "\n[options]\n")
        else:
            Path(path).symlink_to("/dev/zero")
    result = run(*(argument.format("odd") for argument in arguments))
    text = result.out + result.err
    assert result.code == 2, text
    assert "odd." in text, text
    assert re.search(kind[1], text) is not None, text


@pytest.mark.parametrize("is_repository", [False, True])
@pytest.mark.parametrize(
    "arguments", [("scan", "scripts"), ("import", "scripts"), ("inject", "scripts", "--all")]
)
def test_pipes_among_the_files_of_a_folder_are_left_out_and_told(
    arguments: tuple[str, ...], is_repository: bool, run: Run, project: Path
) -> None:
    Path("scripts/deep").mkdir(parents=True)
    Path("scripts/deep/fine.py").write_text(
        'import os\nos.environ["HCCL_CONNECT_TIMEOUT"] = "600"\n'
    )
    os.mkfifo("scripts/deep/pipe.py")
    os.mkfifo("scripts/pipe")
    Path("scripts/zero.sh").symlink_to("/dev/zero")
    if is_repository:
        subprocess.run(["git", "init", "-q"], check=True)
        subprocess.run(["git", "add", "scripts/deep/fine.py"], check=True)
    result = run(*arguments)
    assert result.code == 0, result
    assert "scripts/deep/pipe.py" in result.out + result.err
    assert "scripts/pipe" in result.out + result.err
    assert "scripts/zero.sh" in result.out + result.err


@pytest.mark.parametrize("codec", ["rot13", "hex", "undefined"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("scan", "."),
        ("import", "train.py", "fine.py"),
        ("site", "out", "--scripts", "."),
    ],
)
def test_a_coding_line_that_names_no_text_encoding_is_no_internal_error(
    arguments: tuple[str, ...], codec: str, run: Run, project: Path
) -> None:
    write_scripts(codec)
    done = run(*arguments)
    assert done.code != 70, done.err
    assert "NP831" not in done.err, done.err


@pytest.mark.parametrize("codec", ["rot13", "hex", "undefined"])
def test_a_coding_line_that_names_no_text_encoding_is_a_finding_about_that_file(
    codec: str, run: Run, project: Path
) -> None:
    write_scripts(codec)
    done = run("inject", "train.py", "leaf")
    assert done.code != 70, done.err
    assert "NP831" not in done.err, done.err
    assert "train.py:1: warning NP801" in run("scan", ".").out


def write_scripts(codec: str) -> None:
    """Write a preset, a script with a coding line, and a script without one."""
    Path("profiles").mkdir(exist_ok=True)
    Path("profiles/leaf.toml").write_text("[options]\nhccl_timeout = 600\n")
    Path("train.py").write_text(
        f"# coding: {codec}\nimport tensorflow as tf\nconfig = tf.ConfigProto()\n"
    )
    Path("fine.py").write_text('import os\nos.environ["HCCL_CONNECT_TIMEOUT"] = "600"\n')


@pytest.mark.parametrize("path", ["/dev/stdin", "/dev/fd/0"])
def test_what_a_shell_hands_over_is_read_up_to_a_bound(path: str, project: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "npuprof", "import", path, "--format", "text"]
    text = b'import os\nos.environ["HCCL_CONNECT_TIMEOUT"] = "600"\n'
    done = subprocess.run(command, input=text, capture_output=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    assert b"HCCL_CONNECT_TIMEOUT" in done.stdout, done.stderr
    for arguments in (command[3:], ["show", "-"]):
        with open("/dev/zero", "rb") as endless:
            done = subprocess.run(
                [*command[:3], *arguments],
                stdin=endless,
                capture_output=True,
                check=False,
                env=environ,
            )
        assert done.returncode == 2, done
        assert b"longer than 64 MiB" in done.stdout + done.stderr, done
