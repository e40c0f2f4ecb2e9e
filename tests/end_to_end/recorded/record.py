"""Recordings of what the command prints and writes.

The scenarios are in ``cases/``, their recordings in ``recordings/``.

A scenario lays out its ``fixtures`` and runs its ``lines`` one after another; a line with a
``{word}`` is run for each value of ``each.word``: a list, or the name of one that the code knows
(``"every target"``); with ``side_by_side`` each value meets one of the other word's, not all. A
recording is a transcript: below each command line (``$``) stand its exit code (``=``), standard
output (indented), standard error (``!``) and the files it made (``+``), changed (``~``) and removed
(``-``).
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
RECORDINGS = HERE / "recordings"

#: Fixtures that are folders of this repository: where they are, and where they are laid out.
FOLDERS = {
    "the shipped presets": ("profiles", "profiles"),
    "the scripts": ("tests/scripts/samples", "scripts"),
    "the bundles": ("tests/end_to_end/upgrade/data", "bundles"),
}

#: The whole environment of a command, beside the paths that depend on the machine.
ENVIRONMENT = {
    "COLUMNS": "100",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_NAME": "Ada Lovelace",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada Lovelace",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C.UTF-8",
    "TERM": "dumb",
    "TZ": "UTC",
}
START = datetime(2026, 1, 1, 12, tzinfo=UTC)

#: What differs from machine to machine, or from release to release, and is no behaviour.
RULES = [
    (re.compile(r"\bnpuprof \d+\.\d+\.\d+\b"), "npuprof {version}"),
    (
        re.compile(r'(?<="name": "npuprof",)(\s*)"version": "[^"]+"'),
        r'\1"version": "{version}"',
    ),  # SARIF's driver
    (
        re.compile(
            rf"/[^\s\"']*/site-packages/npuprof/profiles|{re.escape(str(REPOSITORY))}/profiles"
        ),
        "{builtin}",
    ),
    (
        re.compile(r"\S+/npuprof(?= git (textconv|diff-driver|merge-driver) )"),
        "{npuprof}",
    ),  # what git install found
    (re.compile(r"\S+ -P -m npuprof(?= git (textconv|diff-driver|merge-driver) )"), "{npuprof}"),
]

#: A text longer than this is kept as its digest and its beginning.
LONGEST = 1_200
#: Control characters are shown by their pictures.
PICTURES = {number: 0x2400 + number for number in range(32) if chr(number) not in "\t\n"}


class Result(NamedTuple):
    """What a command did."""

    code: int
    out: bytes
    err: bytes


#: Words of npuprof, standard input, environment and folder to what came of them.
Command = Callable[[Sequence[str], bytes, Mapping[str, str], Path], Result]


class Scenario(NamedTuple):
    """Files, by path, and command lines that run one after another beside them."""

    room: str
    name: str
    files: Mapping[str, str]
    folders: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]

    @property
    def recording(self) -> Path:
        """Where its transcript is kept."""
        return (
            RECORDINGS
            / self.room
            / f"{re.sub('[^a-z0-9]+', '-', self.name.lower()).strip('-')}.txt"
        )


def scenarios() -> list[Scenario]:
    """Return all scenarios, room by room."""
    rooms = {
        path.stem: tomllib.loads(path.read_text())
        for path in sorted((HERE / "cases").glob("*.toml"))
    }
    fixtures = {
        name: files for room in rooms.values() for name, files in room.get("fixtures", {}).items()
    }
    return [
        read_scenario(room, name, row, fixtures)
        for room, table in rooms.items()
        for name, row in table["scenario"].items()
    ]


def read_scenario(
    room: str, name: str, row: Mapping[str, Any], fixtures: Mapping[str, Mapping[str, str]]
) -> Scenario:
    lines = row.get("lines", "").splitlines()
    files: dict[str, str] = {}
    for fixture in row.get("fixtures", ()):
        files |= fixtures.get(fixture, {})
    if "examples" in row:
        made, more = _examples(row["examples"])
        files |= made
        lines += more
    folders = tuple(
        FOLDERS[fixture] for fixture in row.get("fixtures", ()) if fixture not in fixtures
    )
    return Scenario(
        room, name, files, folders, tuple(said for line in lines for said in repeat(line, row))
    )


def _list_all(named: str) -> list[str]:
    """Return the values that ``every shell`` and the like stand for. Raises KeyError."""
    from npuprof.commands.framework import list_verbs
    from npuprof.renderers import load_target_index
    from npuprof.renderers.environment_files import FORMATS
    from npuprof.renderers.shell import SHELLS

    verbs = [names for names, verb in list_verbs() if not verb.hidden]
    lists = {
        "every verb": list(
            dict.fromkeys(" ".join(names[:depth]) for depth in (1, 2) for names in verbs)
        ),
        "every target": list(load_target_index()),
        "every shell": list(SHELLS),
        "every format": list(FORMATS),
    }
    return lists[named]


def repeat(line: str, row: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each combination of the values of its ``{words}``, or for each value."""
    words = {name: values for name, values in row.get("each", {}).items() if f"{{{name}}}" in line}
    lists = [_list_all(values) if isinstance(values, str) else values for values in words.values()]
    combined: Iterable[tuple[str, ...]] = itertools.product(*lists)
    if row.get("side_by_side"):
        combined = (
            itertools.islice(zip(*map(itertools.cycle, lists), strict=True), max(map(len, lists)))
            if lists
            else [()]
        )
    for values in combined:
        repeated = line
        for name, value in zip(words, values, strict=True):
            repeated = repeated.replace(f"{{{name}}}", value)
        yield repeated


def _examples(prefix: str) -> tuple[dict[str, str], list[str]]:
    """Return the failing examples of codes with a prefix, as stores, and their checks."""
    from npuprof.catalog.code_pages import load_pages

    files: dict[str, str] = {}
    lines: list[str] = []
    for code, page in load_pages().items():
        if code.startswith(prefix) and page.bad:
            files |= {f"{code}/{name}.toml": text for name, text in page.bad.items()}
            requested = "".join(f" --{flag} '{value}'" for flag, value in page.ask_bad.items())
            lines.append(f"npuprof check --store {code}{requested} --severity info")
    return files, lines


def play(
    scenario: Scenario,
    here: Path,
    command: Command,
    more: Iterable[str] = (),
    longest: float = LONGEST,
) -> str:
    """Lay a scenario out below an empty folder, run its lines and then ``more`` there.

    Return the transcript.

    Lines that do not call npuprof are the shell's. The clock of git moves an hour with each line.
    ``more`` may be a generator: it starts when the lines of the scenario have run, and sees what
    they made.
    """
    here = here.resolve()
    work, home = here / "work", here / "home"
    home.mkdir(parents=True)
    for source, target in scenario.folders:
        shutil.copytree(
            REPOSITORY / source, work / target, ignore=shutil.ignore_patterns("__pycache__")
        )
    work.mkdir(exist_ok=True)
    for name, text in scenario.files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    lines: list[str] = []
    before = _snapshot(here)
    for number, line in enumerate(itertools.chain(scenario.lines, more)):
        stamp = (START + timedelta(hours=number)).isoformat()
        environ = {
            **ENVIRONMENT,
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "GIT_AUTHOR_DATE": stamp,
            "GIT_COMMITTER_DATE": stamp,
        }
        given, arguments, source, folder = _parsed(line)
        if arguments[0] == "npuprof":
            done = command(
                arguments[1:],
                (work / source).read_bytes() if source else b"",
                environ | given,
                work / folder,
            )
        else:
            done = run(["sh", "-c", line], b"", environ, work)
        after = _snapshot(here)
        changed = _files(before, after, here, longest) if arguments[0] == "npuprof" else []
        printed = (*_block("  ", done.out, here, longest), *_block("! ", done.err, here, longest))
        lines += [f"$ {line}", f"= {done.code}", *printed, *changed, ""]
        before = after
    return _neutral("\n".join(lines), here)


def _neutral(text: str, here: Path) -> str:
    """Return a text without what differs from machine to machine."""
    text = text.replace(str(here), "{here}")
    for pattern, instead in RULES:
        text = pattern.sub(instead, text)
    return text


def run(arguments: Sequence[str], stdin: bytes, environ: Mapping[str, str], folder: Path) -> Result:
    """Run a program."""
    done = subprocess.run(
        arguments, input=stdin, env=dict(environ), cwd=folder, capture_output=True, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)


def work_tree(
    arguments: Sequence[str], stdin: bytes, environ: Mapping[str, str], folder: Path
) -> Result:
    """Run the npuprof of the work tree as a process of its own."""
    return run(
        [sys.executable, "-m", "npuprof", *arguments],
        stdin,
        {**environ, "PYTHONPATH": str(REPOSITORY)},
        folder,
    )


def _parsed(line: str) -> tuple[dict[str, str], list[str], str, str]:
    """Return the parts of a line: variables, arguments, the input file and the folder.

    The file follows ``<`` at the end; the folder is that of a leading ``cd``.
    """
    arguments = shlex.split(line)
    folder = source = ""
    if arguments[0] == "cd" and arguments[2:3] == ["&&"]:
        folder, arguments = arguments[1], arguments[3:]
    if arguments[-2:-1] == ["<"]:
        source, arguments = arguments[-1], arguments[:-2]
    environ = dict(
        word.split("=", 1) for word in itertools.takewhile(re.compile(r"[A-Z_]+=").match, arguments)
    )
    return environ, arguments[len(environ) :], source, folder


def _snapshot(here: Path) -> dict[str, bytes]:
    """Return all files below a folder.

    Of a repository's inside only its configuration, of a bare one nothing.
    """
    found: dict[str, bytes] = {}
    for folder, inner, names in os.walk(here):
        if "objects" in inner and "HEAD" in names:
            inner.clear()
            continue
        if ".git" in inner:
            inner.remove(".git")
            names.append(".git/config")
        for name in names:
            path = Path(folder, name)
            if path.is_symlink():
                found[_named(path, here)] = f"link to {os.readlink(path)}".encode()
            elif path.is_file() and os.access(path, os.R_OK):
                found[_named(path, here)] = path.read_bytes()
    return dict(sorted(found.items()))


def _named(path: Path, here: Path) -> str:
    return os.path.relpath(path, here / "work")


def _files(
    before: Mapping[str, bytes], after: Mapping[str, bytes], here: Path, longest: float
) -> Iterator[str]:
    for name, content in after.items():
        if before.get(name) != content:
            yield f"{'~' if name in before else '+'} {name}"
            yield from _block("| ", content, here, longest)
    yield from (f"- {name}" for name in before if name not in after)


def _block(mark: str, raw: bytes, here: Path, longest: float) -> Iterator[str]:
    text = _neutral(raw.decode(errors="backslashreplace").translate(PICTURES), here)
    if len(text) > longest:
        yield (
            f"{mark}({len(text)} characters, sha256 "
            f"{hashlib.sha256(text.encode()).hexdigest()}, which begin with:)"
        )
        text = "".join(text[: int(longest) // 3].splitlines(keepends=True)[:-1])
    *lines, last = text.split("\n")
    yield from (f"{mark}{line}" if line else mark.rstrip() for line in lines)
    if last:
        yield f"{mark}{last}"
        yield "\\ no line end"
