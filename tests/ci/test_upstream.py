"""What .ci/upstream.py finds in the sources of releases, and how it compares it with the rows."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.repositories import Repo

REPOSITORY = Path(__file__).resolve().parents[2]
FRAMEWORKS = sorted(
    path.parent.name for path in REPOSITORY.glob("npuprof/catalog/frameworks/*/upstream.toml")
)
UPSTREAM = """title = "demo"

[upstream]
repositories = ["example/demo"]
package = "demo"
tags = 'v(?P<release>\\d+\\.\\d+)'
paths = ["demo"]
section = "settings"

[releases]
"""


class World:
    """A checkout with the script and a framework ``demo``, and a clone of its sources."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(REPOSITORY / ".ci", folder / ".ci")
        shutil.rmtree(folder / ".ci/upstream")
        (folder / ".ci/upstream").mkdir()
        self.catalogue = folder / "npuprof/catalog"
        self.demo = self.catalogue / "frameworks/demo"
        self.demo.mkdir(parents=True)
        (self.catalogue / "variables.toml").write_text("variables = []\n")
        (self.demo / "framework.toml").write_text(UPSTREAM)
        self.upstream = Repo(folder / "upstream")

    def tag(self, release: str, **files: str) -> None:
        """Commit the files of a release with these names and suffixes, ``env_py``, and tag it."""
        shutil.rmtree(self.upstream.folder / "demo", ignore_errors=True)
        write_sources(self.upstream.folder, files)
        self.upstream.git("add", "--all")
        self.upstream.git("commit", "--allow-empty", "--quiet", "--message", release)
        self.upstream.git("tag", f"v{release}")
        self.upstream.day += 1

    def know(self, release: str, ref: str | None = None, day: int = 1) -> None:
        """Add a release to ``framework.toml``; an empty ref means that no sources can be had."""
        ref = f"v{release}" if ref is None else ref
        written = f'ref = "{ref}", ' if ref else ""
        with (self.demo / "framework.toml").open("a") as file:
            file.write(f'"{release}" = {{ {written}date = 2026-01-{day:02d} }}\n')

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the script for the framework and the clone."""
        return subprocess.run(
            [sys.executable, self.folder / ".ci/upstream.py", "demo", "upstream", *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def write(self, *words: str) -> dict[str, Any]:
        """Return the rows that the script writes."""
        result = self.run("--write", *words)
        assert not result.stderr, result.stderr
        return tomllib.loads((self.demo / "upstream.toml").read_text())


def write_sources(folder: Path, files: dict[str, str]) -> None:
    (folder / "demo").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / "demo" / ".".join(name.rsplit("_", 1))).write_text(text)


def read_variables(*names: str) -> str:
    return "import os\n" + "".join(f'os.getenv("{name}")\n' for name in names)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_gaps_late_starts_and_removals_are_ranges(world: World) -> None:
    read = {
        "1.0": ["DEMO_ALWAYS", "DEMO_GAP", "DEMO_GONE"],
        "1.1": ["DEMO_ALWAYS", "DEMO_GONE"],
        "1.2": ["DEMO_ALWAYS", "DEMO_GAP", "DEMO_ONCE"],
        "1.3": ["DEMO_ALWAYS", "DEMO_GAP", "DEMO_LATE"],
    }
    for release, names in read.items():
        world.tag(release, env_py=read_variables(*names))
        world.know(release)
    assert {key: row["reads"] for key, row in world.write().items()} == {
        "env.DEMO_ALWAYS": "1.0..",
        "env.DEMO_GAP": "1.0, 1.2..",
        "env.DEMO_GONE": "1.0..1.1",
        "env.DEMO_LATE": "1.3..",
        "env.DEMO_ONCE": "1.2",
    }


def test_a_release_without_sources_reads_what_its_neighbours_read(world: World) -> None:
    world.know("0.9", "")
    world.tag("1.0", env_py=read_variables("DEMO_OLD", "DEMO_ALWAYS"))
    world.know("1.0")
    world.know("1.1", "")
    world.tag("1.2", env_py=read_variables("DEMO_NEW", "DEMO_ALWAYS"))
    world.know("1.2")
    assert {key: row["reads"] for key, row in world.write().items()} == {
        "env.DEMO_ALWAYS": "0.9..",
        "env.DEMO_NEW": "1.2..",
        "env.DEMO_OLD": "0.9..1.0",
    }


def test_an_unpacked_package_has_the_sources_of_a_release(world: World) -> None:
    world.tag("1.0", env_py=read_variables("DEMO_OLD"))
    world.know("1.0")
    world.know("1.1", "demo==1.1")
    write_sources(world.folder / "packages/1.1", {"env_py": read_variables("DEMO_PACKED")})
    missing = world.run()
    assert (missing.returncode, missing.stderr) == (2, "1.1: no sources for demo==1.1\n")
    rows = world.write("--packages", "packages")
    assert rows["env.DEMO_PACKED"] == {"reads": "1.1..", "source": "demo/env.py"}
    assert rows["env.DEMO_OLD"]["reads"] == "1.0"


class Source(NamedTuple):
    """A file and what the row of a name has beside its releases and its file."""

    name: str
    text: str
    key: str
    row: dict[str, Any]


CONFIG = """
from dataclasses import dataclass
from typing import Literal
@dataclass
class Cache:
    size: int = 4
@dataclass
class Config:
    mode: Literal["eager", "graph"] = "eager"
    cache: Cache = None
def start(vllm):
    return Config(**vllm.settings)
"""
SOURCES = [
    Source(
        "env_py",
        'import os\nLEVEL = int(os.getenv("DEMO_LEVEL", "3"))\n',
        "env.DEMO_LEVEL",
        {"kind": "int", "default": "3"},
    ),
    Source(
        "env_py",
        'import os\ndef flag(name):\n    return os.environ.get(name)\nflag("DEMO_WRAPPED")\n',
        "env.DEMO_WRAPPED",
        {},
    ),
    Source(
        "env_py",
        'import torch\nx = torch.Config(env_name_default="DEMO_TORCH")\n',
        "env.DEMO_TORCH",
        {},
    ),
    Source(
        "config_py",
        CONFIG,
        "settings.mode",
        {"kind": "str", "default": "eager", "choices": ["eager", "graph"]},
    ),
    Source("config_py", CONFIG, "settings.cache.size", {"kind": "int", "default": "4"}),
    Source(
        "options_cpp",
        'static const char* NAME = "DEMO_NATIVE";\nauto x = std::getenv(NAME);\n',
        "env.DEMO_NATIVE",
        {},
    ),
    Source(
        "options_cpp",
        'char* Find(const char* name) {\n  return getenv(name);\n}\nauto x = Find("DEMO_IN");\n',
        "env.DEMO_IN",
        {},
    ),
    Source(
        "options_cpp",
        'auto y = getCvarInt("DEMO_SIZE", 16);\n',
        "env.DEMO_SIZE",
        {"kind": "int", "default": "16"},
    ),
    Source("options_cpp", "REGISTER_OPTION(jitCompile)\n", "settings.jitCompile", {}),
]


@pytest.mark.parametrize("source", SOURCES, ids=[source.key for source in SOURCES])
def test_names_come_with_what_the_source_tells_of_them(world: World, source: Source) -> None:
    world.tag("1.0", **{source.name: source.text})
    world.know("1.0")
    file = f"demo/{source.name.replace('_', '.')}"
    assert world.write()[source.key] == {"reads": "1.0..", **source.row, "source": file}


@pytest.mark.parametrize(
    "files",
    [
        {"env_py": 'import os\n# os.getenv("DEMO_X")\nos.environ["DEMO_X"] = "1"\n'},
        {"options_cpp": '// getenv("DEMO_X")\n/* getenv("DEMO_X") */\nsetenv("DEMO_X", "1", 1);\n'},
        {"bad_py": 'import os\nos.getenv("DEMO_X"\n'},
    ],
    ids=["python", "c++", "syntax error"],
)
def test_names_in_comments_and_written_names_are_not_read(
    world: World, files: dict[str, str]
) -> None:
    world.tag("1.0", **files)
    world.know("1.0")
    assert world.write() == {}


def test_a_warning_of_the_source_dates_a_deprecated_name(world: World) -> None:
    plain = read_variables("DEMO_OLD")
    warned = plain + 'logger.warning("DEMO_OLD is deprecated, use DEMO_NEW instead")\n'
    for release, text in [("1.0", plain), ("1.1", warned), ("1.2", warned)]:
        world.tag(release, env_py=text)
        world.know(release)
    assert world.write()["env.DEMO_OLD"]["deprecated"] == "1.1.."


def read_env(default: str) -> str:
    return f'import os\nif os.getenv("DEMO_X", {default}):\n    pass\n'


def read_native(default: str) -> str:
    return (
        'auto Find() {\n  char* text = std::getenv("DEMO_X");\n'
        f"  int64_t value = (text != nullptr) ? strtol(text, nullptr, 10) : {default};\n}}\n"
    )


def read_key(default: str) -> str:
    return f'def start(settings):\n    return settings.get("x", {default})\n'


def read_field(default: str) -> str:
    return CONFIG.replace("size: int = 4", f"size: int = {default}")


@pytest.mark.parametrize(
    ("file", "write", "key", "defaults", "changes"),
    [
        ("a_py", read_env, "env.DEMO_X", ['"0"', '"0"', '"1"'], {"1.0": "0", "1.2": "1"}),
        (
            "a_py",
            read_env,
            "env.DEMO_X",
            ['"1"', "64", '"1"'],
            {"1.0": "1", "1.1": "64", "1.2": "1"},
        ),
        ("a_py", read_env, "env.DEMO_X", ["True", '"1"', '"true"'], None),
        ("a_py", read_env, "env.DEMO_X", ['"1"', 'find("y")', '"0"'], None),
        ("a_py", read_env, "env.DEMO_X", ['"1"', '"0" if A else "1"', '"0"'], None),
        ("a_py", read_env, "env.DEMO_X", ['"1"', "None", '"0"'], None),
        ("a_py", read_env, "env.DEMO_X", ["f()", '"0"', '"1"'], {"1.1": "0", "1.2": "1"}),
        ("a_cpp", read_native, "env.DEMO_X", ["8", "32", "32"], {"1.0": "8", "1.1": "32"}),
        ("a_cpp", read_native, "env.DEMO_X", ["8", "kMost", "32"], None),
        ("a_py", read_key, "settings.x", ["False", "False", "True"], {"1.0": False, "1.2": True}),
        ("a_py", read_key, "settings.x", ["0.8", "1.0", "1"], {"1.0": 0.8, "1.1": 1.0}),
        ("a_py", read_key, "settings.x", ["{}", "[]", "{}"], None),
        (
            "a_py",
            read_key,
            "settings.x",
            ["-1", "[8, 16]", "-1"],
            {"1.0": -1, "1.1": [8, 16], "1.2": -1},
        ),
        ("a_py", read_field, "settings.cache.size", ["4", "4", "8"], {"1.0": 4, "1.2": 8}),
        ("a_py", read_field, "settings.cache.size", ["4", "field(default_factory=f)", "8"], None),
    ],
)
def test_a_default_that_releases_changed_is_dated_if_it_is_a_constant(
    world: World,
    file: str,
    write: Callable[[str], str],
    key: str,
    defaults: list[str],
    changes: dict[str, Any] | None,
) -> None:
    for number, default in enumerate(defaults):
        world.tag(f"1.{number}", **{file: write(default)})
        world.know(f"1.{number}")
    row = world.write()[key]
    assert row["reads"] == "1.0.."
    assert row.get("default_since") == changes


def test_a_default_of_c_plus_plus_is_that_of_the_variable_and_of_no_condition(
    world: World,
) -> None:
    other = 'char* text = getenv("DEMO_Y");\nif (text != nullptr) {}\n'
    world.tag("1.0", a_cpp=other + read_native("0"))
    world.tag("1.1", a_cpp=other + read_native("1"))
    world.tag("1.2", a_cpp=other + read_native("1; if (A) value = text != nullptr ? 2 : 3"))
    for release in ("1.0", "1.1", "1.2"):
        world.know(release)
    rows = world.write()
    assert "default_since" not in rows["env.DEMO_X"]
    assert "default_since" not in rows["env.DEMO_Y"]


def test_a_default_that_differs_within_a_release_is_no_change(world: World) -> None:
    world.tag("1.0", env_py=read_env('"0"'))
    world.tag("1.1", env_py=read_env('"0"'), b_py=read_env('"1"'))
    world.tag("1.2", env_py=read_env('"1"'), b_py='import os\nos.getenv("DEMO_X")\n')
    for release in ("1.0", "1.1", "1.2"):
        world.know(release)
    assert "default_since" not in world.write()["env.DEMO_X"]


def test_ignored_names_need_a_reason(world: World) -> None:
    world.tag("1.0", env_py=read_variables("DEMO_A", "HOME", "DEMO_TEST_ONE"))
    world.know("1.0")
    ignored = world.folder / ".ci/upstream/demo.ignore"
    ignored.write_text("HOME  the system's\nDEMO_TEST_*  for its tests\n")
    assert list(world.write()) == ["env.DEMO_A"]
    ignored.write_text("HOME\n")
    result = world.run()
    assert result.returncode == 2
    assert result.stderr == "demo.ignore: HOME has no reason\n"


def test_exit_codes_say_whether_anything_differs(world: World) -> None:
    world.tag("1.0", env_py=read_variables("DEMO_HAND", "DEMO_BARE"))
    world.know("1.0")
    (world.demo / "variables.toml").write_text("[DEMO_HAND]\n")
    new = world.run()
    assert new.returncode == 4
    assert new.stdout.splitlines() == [
        "+ env.DEMO_BARE: 1.0..",
        "+ env.DEMO_HAND: 1.0..",
        "? env.DEMO_BARE: demo/env.py",
    ]
    assert not (world.demo / "upstream.toml").exists()
    world.write()
    written = (world.demo / "upstream.toml").read_bytes()
    again = world.run("--write")
    assert (again.returncode, again.stdout) == (0, "? env.DEMO_BARE: demo/env.py\n")
    assert (world.demo / "upstream.toml").read_bytes() == written
    world.tag("1.1", env_py=read_variables("DEMO_BARE"))
    world.know("1.1")
    gone = world.run()
    assert gone.returncode == 3
    assert "! env.DEMO_HAND: demo/env.py no longer reads it" in gone.stdout.splitlines()
    assert "~ env.DEMO_HAND: reads 1.0.. -> 1.0" in gone.stdout.splitlines()


def test_newer_tags_and_packages_become_releases(world: World) -> None:
    for release in ("0.9", "1.0", "1.1"):
        world.tag(release, env_py=read_variables(f"DEMO_{release.replace('.', '_')}"))
    world.know("1.0", day=2)
    write_sources(world.folder / "packages/1.2", {"env_py": read_variables("DEMO_1_2")})
    (world.folder / "packages/1.2/PKG-INFO").write_text("Version: 1.2\n")
    rows = world.write("--packages", "packages")
    releases = tomllib.loads((world.demo / "framework.toml").read_text())["releases"]
    assert {name: row.get("refs") for name, row in releases.items()} == {
        "1.0": None,
        "1.1": ["v1.1"],
        "1.2": ["demo==1.2"],
    }
    assert str(releases["1.1"]["date"]) == "2026-01-03"
    assert {key: row["reads"] for key, row in rows.items()} == {
        "env.DEMO_1_0": "1.0",
        "env.DEMO_1_1": "1.1",
        "env.DEMO_1_2": "1.2..",
    }
    assert world.run("--packages", "packages").returncode == 0


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_row_by_hand_leaves_its_releases_to_the_sources(framework: str) -> None:
    folder = REPOSITORY / "npuprof/catalog/frameworks" / framework
    text = (folder / "upstream.toml").read_text()
    assert text.startswith("# Generated by .ci/upstream.py")
    generated = tomllib.loads(text)
    assert generated
    for section, name in [("env", "variables"), ("settings", "settings")]:
        path = folder / f"{name}.toml"
        rows = tomllib.loads(path.read_text()) if path.is_file() else {}
        twice = [k for k, row in rows.items() if "reads" in row and f"{section}.{k}" in generated]
        assert twice == []
