"""Folders whose names are reached through no link: writes, renames and removals stay in them."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import npuprof
from npuprof.model import NpuprofError
from npuprof.system.tree import Tree, is_plain_name
from support.running import Run, Store


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "kept").write_text("mine")
    return folder


@pytest.fixture
def tree(tmp_path: Path, outside: Path) -> Tree:
    """A folder with links in it that lead out: to a folder, to a file, to nothing."""
    top = tmp_path / "top"
    (top / "real").mkdir(parents=True)
    (top / "real/own").write_text("old")
    for name, target in (
        ("folder", outside),
        ("file", outside / "kept"),
        ("dangling", outside / "new"),
    ):
        (top / name).symlink_to(target)
        (top / "real" / name).symlink_to(target)
    return Tree(str(top))


DEEDS: dict[str, Callable[[Tree, str], object]] = {
    "write": lambda tree, name: tree.write_file(name, b"new"),
    "write below": lambda tree, name: tree.write_file(f"{name}/kept", b"new"),
    "make a folder below": lambda tree, name: tree.make_folder(f"{name}/made"),
    "open to append": lambda tree, name: os.close(
        tree.open_file(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    ),
    "truncate": lambda tree, name: os.close(tree.open_file(name, os.O_WRONLY | os.O_TRUNC)),
    "remove": lambda tree, name: tree.remove_file(name),
    "remove below": lambda tree, name: tree.remove_file(f"{name}/kept"),
    "remove the folder": lambda tree, name: tree.remove_folder(name),
    "remove the folder above": lambda tree, name: (
        tree.remove_folder(os.path.dirname(name)) if "/" in name else None
    ),
    "rename onto": lambda tree, name: tree.rename("real/own", name),
    "rename below": lambda tree, name: tree.rename("real/own", f"{name}/kept"),
    "rename away": lambda tree, name: tree.rename(f"{name}/kept", "taken"),
    "list": lambda tree, name: tree.list_names(name),
    "read": lambda tree, name: tree.open_reader(name).close(),
}


@pytest.mark.parametrize(
    "name", ["folder", "file", "real/../folder", "real/dangling", "../outside"]
)
@pytest.mark.parametrize("deed", DEEDS)
def test_nothing_outside_is_made_changed_or_removed(
    deed: str, name: str, tree: Tree, outside: Path
) -> None:
    with suppress(NpuprofError, OSError, ValueError):
        DEEDS[deed](tree, name)
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"kept": "mine"}
    assert os.path.isdir(outside)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "a/./b",
        "..",
        "../a",
        "a/..",
        "a\0b",
        "a\nb",
        "\x1b",
        "\udc80",
        "\u202e",
    ],
)
def test_a_name_from_a_file_stays_below_its_folder(name: str) -> None:
    assert not is_plain_name(name)
    assert all(map(is_plain_name, ("a", "a/b.c", ".a/..b", "größe ü", "a\\b")))


def test_a_link_on_the_way_is_named(tree: Tree, outside: Path) -> None:
    with pytest.raises(NpuprofError) as caught:
        tree.write_file("folder/kept", b"new")
    (finding,) = caught.value.findings
    assert finding.code == "NP941"
    assert str(outside) in finding.message
    assert "remove the link" in finding.hint


def test_a_tree_does_what_it_is_for(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real").mkdir()
    tree = Tree(str(tmp_path / "link"))  # a home may be a link
    tree.write_files({"a/b/c": b"1", "d": b"2"})
    tree.rename("d", "a/d")
    with tree.open_reader("a/d") as file:
        assert file.read() == b"2"
    assert tree.list_names("a") == ["b", "d"]
    assert tree.list_names("nowhere") == []
    tree.remove_file("a/d")
    tree.remove_folder("a")
    tree.remove_folder("a")
    assert os.listdir(tmp_path / "real") == []
    os.mkfifo(tmp_path / "real/pipe")
    with pytest.raises(OSError, match="not a file"):
        tree.open_reader("pipe")


LINKED = [
    "",
    "/trials/.gitignore",
    "/trials/KEY",
    *(f"/trials/KEY/{name}" for name in ("lock", "journal.jsonl", "logs")),
]


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("where", LINKED)
def test_a_bisection_writes_and_removes_nothing_through_links_of_a_clone(
    where: str,
    fresh: bool,
    run: Run,
    store: Store,
    tmp_path: Path,
    outside: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store({"good": "[options]\nhccl_timeout = 600\n", "bad": "[options]\nhccl_timeout = 700\n"})
    monkeypatch.chdir(tmp_path)
    arguments = [
        "bisect",
        "good",
        "bad",
        *(["--fresh"] if fresh else []),
        "--",
        "sh",
        "-c",
        '[ "$NPUPROF_HCCL_TIMEOUT" = 600 ]',
    ]
    assert run(*arguments).code == 0
    (key,) = [path.name for path in Path(".npuprof/trials").iterdir() if path.is_dir()]
    path = Path(".npuprof" + where.replace("KEY", key))
    (outside / "kept").rename(outside / "before")
    path.rename(tmp_path / "moved")
    path.symlink_to(outside / ("kept" if "." in path.name[1:] or path.name == "lock" else ""))
    (outside / "before").rename(outside / "kept")
    result = run(*arguments)
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"kept": "mine"}, (
        result.out,
        result.err,
    )
    assert result.code == 2 or path.name in (".gitignore", "journal.jsonl"), (
        result.out
    )  # that one is put aside by --fresh


# -- paths that are typed -------------------------------------------------------------------------

WRITING = {
    "-o": ["show", "leaf", "-o", "{path}"],
    "render -o": ["render", "leaf", "-o", "{path}"],
    "env -o": ["env", "leaf", "-o", "{path}"],
    "schema -o": ["schema", "-o", "{path}"],
    "render -o folder": ["render", "leaf", "-o", "{path}/"],
    "site": ["site", "{path}"],
}


@pytest.mark.parametrize(
    ("below", "target"),
    [("", "outside/new"), ("", "outside/kept"), ("", "nowhere/at/all"), ("/x", "outside")],
)
@pytest.mark.parametrize("verb", WRITING)
def test_a_typed_path_is_not_led_out_of_a_work_tree_by_a_link_in_it(
    verb: str,
    below: str,
    target: str,
    run: Run,
    tmp_path: Path,
    outside: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / "profiles").mkdir()
    (clone / "profiles/leaf.toml").write_text("[options]\nhccl_timeout = 600\n")
    (clone / "link").symlink_to(tmp_path / target)
    monkeypatch.chdir(clone)
    result = run(*(argument.format(path=f"link{below}") for argument in WRITING[verb]))
    assert result.code == 2, result.err
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"kept": "mine"}
    assert sorted(os.listdir(tmp_path)) == sorted(
        ["clone", "outside", *(name for name in os.listdir(tmp_path) if name == "home")]
    )


def test_links_that_are_not_a_clones_are_followed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, real = tmp_path / "real/clone", tmp_path / "real"
    (clone / ".git").mkdir(parents=True)
    (clone / "profiles").mkdir()
    (clone / "out").mkdir()
    (clone / "profiles/leaf.toml").write_text("[options]\nhccl_timeout = 600\n")
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home/work").symlink_to(real)
    (clone / "inside").symlink_to("out/file")
    monkeypatch.chdir(tmp_path / "home/work/clone")
    for path, made in (
        ("inside", clone / "out/file"),
        (str(tmp_path / "home/work/other"), real / "other"),
        ("../up", real / "up"),
    ):
        assert run("show", "leaf", "-o", path).code == 0
        assert made.read_text()
    assert (clone / "inside").is_symlink()


#: Functions that change what is on the disk, by their module; of ``shutil`` all but those that
#: read.
CHANGING = {
    "os": {
        "remove",
        "unlink",
        "rename",
        "renames",
        "replace",
        "truncate",
        "ftruncate",
        "mkdir",
        "makedirs",
        "rmdir",
        "removedirs",
        "symlink",
        "link",
        "chmod",
        "lchmod",
        "chown",
        "lchown",
        "mkfifo",
        "mknod",
        "utime",
    },
    "shutil": {
        "copy",
        "copy2",
        "copyfile",
        "copyfileobj",
        "copymode",
        "copystat",
        "copytree",
        "move",
        "rmtree",
        "chown",
        "unpack_archive",
        "make_archive",
    },
}
#: Methods of paths that do.
PATH_METHODS = {"write_bytes", "touch", "symlink_to", "hardlink_to", "rmdir", "unlink", "mkdir"}
#: What may change files by itself, with the reason.
ELSEWHERE = {
    "system/tree.py": "the one place",
    "system/checkout.py": "keeps the built forms of a checkout, and writes those of a wheel",
}
WRITING_FLAGS = ("O_CREAT", "O_TRUNC", "O_WRONLY", "O_RDWR", "O_APPEND")
#: Where a device or a pipe is opened to be written: neither is a file.
DEVICES = ("os.devnull", "stream.path")
#: What gives a handle that may be written to.
OPENERS = (".open_file(", ".create_file(", "os.dup(", "os.pipe(")


def list_changes(code: ast.AST) -> list[str]:
    """Return what in a module changes files by path instead of by an open folder's handle."""
    assigned = [node for node in ast.walk(code) if isinstance(node, ast.Assign)]
    handles = {
        ast.unparse(each)
        for node in assigned
        if is_opener(node.value)
        for target in node.targets
        for each in getattr(target, "elts", [target])
    }
    calls = [node for node in ast.walk(code) if isinstance(node, ast.Call)]
    return [f"{call.lineno}: {ast.unparse(call)}" for call in calls if is_change(call, handles)]


def is_opener(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(
        opener in f"{ast.unparse(node.func)}(" for opener in OPENERS
    )


def is_change(call: ast.Call, handles: set[str]) -> bool:
    owner, _, last = ast.unparse(call.func).rpartition(".")
    first = ast.unparse(call.args[0]) if call.args and last in ("open", "fdopen") else ""
    if (owner, last) == ("os", "open"):
        return first not in DEVICES and any(flag in ast.unparse(call) for flag in WRITING_FLAGS)
    if owner in CHANGING and last != "fdopen":
        return last in CHANGING[owner]
    if (owner, last) in (("", "open"), ("os", "fdopen")):
        mode = (
            call.args[1].value
            if len(call.args) > 1 and isinstance(call.args[1], ast.Constant)
            else ""
        )
        return (
            bool(set(str(mode)) & set("wax+"))
            and first not in handles
            and not is_opener(call.args[0])
        )
    return bool(owner) and (
        last in PATH_METHODS or (last == "write_text" and "encoding" in ast.unparse(call))
    )


def test_files_are_written_and_removed_in_one_module() -> None:
    found, judged = {}, 0
    for path in sorted(Path(npuprof.__file__).parent.rglob("*.py")):
        name = path.relative_to(Path(npuprof.__file__).parent).as_posix()
        if name not in ELSEWHERE and not name.startswith("catalog/_built/"):
            judged += 1
            if changes := list_changes(ast.parse(path.read_text())):
                found[name] = changes
    assert judged > 300
    assert found == {}


@pytest.mark.parametrize(
    "code",
    [
        "os.remove(path)",
        "shutil.rmtree(folder)",
        "Path(x).unlink()",
        "open(path, 'ab')",
        "os.open(path, os.O_WRONLY | os.O_CREAT)",
        "path.write_text('x', encoding='utf-8')",
    ],
)
def test_what_changes_files_by_their_paths_would_be_found(code: str) -> None:
    assert list_changes(ast.parse(code))
