"""Record what npuprof answers about many stores, and compare two such recordings.

It is for changes that must not change an answer.

``python tests/end_to_end/recorded/answers.py record FOLDER [--npuprof COMMAND]`` lays out the
stores of ``cases/`` and ``stores.toml`` one by one and asks each the same questions; FOLDER gets
one transcript for each store. COMMAND is an installed npuprof [default: the one on the PATH], which
lets the answers of two versions be recorded with one checkout.

``python tests/end_to_end/recorded/answers.py compare BEFORE AFTER`` prints the stores, the command
lines and the first lines that differ; it exits with 1 if any do.
"""

from __future__ import annotations

import argparse
import difflib
import fcntl
import hashlib
import itertools
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from end_to_end.recorded import record

#: Stores are laid out here, always: paths are in digests and decide where lines are broken.
WORK = Path(tempfile.gettempdir()).resolve() / "npuprof-answers"
#: Seconds after which a command is taken to hang.
PATIENCE = 120

#: What a store is asked.
OF_A_STORE = (
    "check --format json",
    "check --severity info",
    "check --rev HEAD --format json",
    "check --staged --format json",
    "list --format json",
    "list --tree",
    "list --versions --format json",
    "diff --format json",
    "diff --rev HEAD~1..HEAD --format json",
    "verify --tags --format json",
    "check --strict --format github",
    "check --cann 9.0.0 --product atlas-a2 --format json",
    "check --cann 8.0.0 --cann 9.0.0 --product atlas-a2 --product atlas-a3",
    "list",
    "list --tree --format json",
    "list --where 'hccl_timeout > 0' --format json",
    "diff --all",
    "diff --raw",
    "verify --tags",
)
#: What is asked of each of its presets.
OF_A_PRESET = (
    "check --format json -- {name}",
    "show --format json -- {name}",
    "render --to json -- {name}",
    "env -- {name}",
    "show --origin -- {name}",
    "show --format json --product atlas-a2 --cann 9.0.0 -- {name}",
    "render -- {name}",
    "env --format json --no-check -- {name}",
    "check --format json -- {path}",
    "show --format json -- {path}",
)
#: What is asked of each preset as well if the store has a history, and of its first one if not.
OF_A_HISTORY = (
    "log --format json -- {name}",
    "show --format json -- {name}@HEAD",
    "diff --format json -- {name}",
    "check --format json -- {name}@HEAD~1",
)
#: What is asked of the first three presets together.
OF_PRESETS = (
    "diff --format json -- {0} {1}",
    "show --format json -- {0}+{1}",
    "diff --format json -- {0} {1} {2}",
    "diff --raw -- {0} {1}",
    "show --origin --with {1} -- {0}",
    "check --format json -- {0} {1} {2}",
)


class Depth(NamedTuple):
    """How many of the questions of each kind are asked, which is what takes the time."""

    store: int = len(OF_A_STORE)
    preset: int = len(OF_A_PRESET)
    history: int = len(OF_A_HISTORY)
    presets: int = len(OF_PRESETS)


FULL = Depth()
#: A variant of a store that is asked everything, and a store that was asked on the way.
SHORT = Depth(10, 4, 1, 2)
#: The example of a page of the codes, of which there are more than a hundred.
EXAMPLE = Depth(0, 4, 0, 0)
#: In a store of more presets, each is asked as in a variant.
MANY = 12


class Store(NamedTuple):
    """A scenario that ends in a store, and where and what it is asked."""

    scenario: record.Scenario
    at: str = ""
    folder: str = "profiles"
    requested: tuple[str, ...] = ()
    depth: Depth = FULL

    @property
    def path(self) -> str:
        """The transcript of its answers, in the folder of a recording."""
        return os.path.join(*self.scenario.recording.parts[-2:])

    def ask(self, work: Path) -> Iterator[str]:
        """Yield the command lines that ask a store which is laid out.

        The names of presets come from its files.
        """
        npuprof = f"cd {self.at} && npuprof" if self.at else "npuprof"
        names = find_presets(work / self.at / self.folder)
        yield from self.requested
        yield from (f"{npuprof} {question}" for question in OF_A_STORE[: self.depth.store])
        where = "" if self.folder == "profiles" else f" --store {self.folder}"
        versioned = (work / self.at / ".git").exists()
        ordinary = OF_A_PRESET[
            : min(self.depth.preset, SHORT.preset if len(names) > MANY else FULL.preset)
        ]
        for number, name in enumerate(names):
            words = {"name": shlex.quote(name), "path": shlex.quote(f"{self.folder}/{name}.toml")}
            for question in ordinary + (
                OF_A_HISTORY[: self.depth.history] if versioned or number == 0 else ()
            ):
                verb, rest = question.format(**words).split(" ", 1)
                yield f"{npuprof} {verb}{where} {rest}"
        some = [shlex.quote(name) for name in (names * 3)[:3]]
        yield from (
            f"{npuprof} {question.format(*some)}"
            for question in OF_PRESETS[: self.depth.presets]
            if some
        )


def find_presets(folder: Path) -> list[str]:
    """Return the names of the presets of a store that a command line can contain."""
    found = [
        Path(inner, name)
        for inner, folders, names in os.walk(folder)
        for name in [*names, *folders]
        if name.endswith(".toml")
    ]
    relative = [str(path.relative_to(folder).with_suffix("")) for path in found]
    return sorted(name for name in relative if name.isprintable() and "/." not in f"/{name}")


def list_stores() -> list[Store]:
    """Return all stores, those of the scenarios first."""
    stores: dict[object, Store] = {}
    for scenario in record.scenarios():
        if scenario.room == "rules":
            for store in _list_examples(scenario):
                stores[store.path] = store
            continue
        if scenario.room == "versions":
            store = Store(scenario, depth=SHORT)
        else:  # what it goes on to do is compared with its own recording
            lines = tuple(itertools.takewhile(lambda line: "npuprof" not in line, scenario.lines))
            store = Store(scenario._replace(lines=lines))
        stores.setdefault(
            (*sorted(store.scenario.files.items()), scenario.folders, store.scenario.lines), store
        )
    return [*stores.values(), *_list_more()]


def _list_examples(scenario: record.Scenario) -> Iterator[Store]:
    """Yield the store of each code that a scenario checks."""
    for code in dict.fromkeys(name.split("/")[0] for name in scenario.files):
        files = {name: text for name, text in scenario.files.items() if name.startswith(f"{code}/")}
        requested = tuple(
            f"{line} --format json" for line in scenario.lines if f"--store {code} " in line
        )
        yield Store(
            scenario._replace(name=code, files=files, lines=()),
            folder=code,
            requested=requested,
            depth=EXAMPLE,
        )


def _list_more() -> Iterator[Store]:
    """Yield the stores of ``stores.toml``, and two of texts that tests of other modules keep."""
    rows = tomllib.loads((record.HERE / "stores.toml").read_text())
    cases = [
        tomllib.loads(path.read_text()) for path in sorted((record.HERE / "cases").glob("*.toml"))
    ]
    fixtures = {
        name: files for table in [*cases, rows] for name, files in table.get("fixtures", {}).items()
    } | _make_fixtures()
    for name, row in (
        rows["store"] | {title: {"fixtures": [title]} for title in _make_fixtures()}
    ).items():
        scenario = record.read_scenario("stores", name, row, fixtures)
        requested = tuple(
            said for line in row.get("asked", "").splitlines() for said in record.repeat(line, row)
        )
        for number, (variant, line) in enumerate(row.get("variants", {"": ""}).items()):
            title = f"{name}: {variant}" if variant else name
            lines = (*scenario.lines, line) if line else scenario.lines
            yield Store(
                scenario._replace(name=title, lines=lines),
                at=row.get("at", ""),
                requested=requested,
                depth=SHORT if number else FULL,
            )


def _make_fixtures() -> dict[str, dict[str, str]]:
    """Return stores of TOML that is easily misread, and of texts that are easily misquoted."""
    from support.hostile import TEXTS as HOSTILE
    from support.layouts import TEXTS as LAYOUTS

    text = '[profile]\ndescription = "{0}"\n[options]\nhccl_timeout = 600\n[env]\nA = "{0}"\n'
    quoted = ["".join(f"\\U{ord(letter):08x}" for letter in hostile) for hostile in HOSTILE]
    return {
        "layouts of TOML": {
            f"profiles/{re.sub('[^a-z]+', '-', name.lower())}.toml": layout
            for name, layout in LAYOUTS.items()
        },
        "hostile texts": {
            f"profiles/text-{number}.toml": text.format(hostile)
            for number, hostile in enumerate(quoted)
        },
    }


def record_store(store: Store, folder: Path, npuprof: Sequence[str]) -> int:
    """Lay a store out, ask it, and write the transcript; return the number of command lines."""
    here = WORK / hashlib.sha256(store.path.encode()).hexdigest()[:12]
    _remove(here)
    drop = _drop_privileges()

    def command(
        arguments: Sequence[str], stdin: bytes, environ: Mapping[str, str], at: Path
    ) -> record.Result:
        if not at.is_dir():  # a variant has moved it
            return record.Result(127, b"", b"there is no such folder\n")
        try:
            done = subprocess.run(
                [*drop, *npuprof, *arguments],
                input=stdin,
                env=dict(environ),
                cwd=at,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return record.Result(124, b"", b"npuprof did not end\n")
        return record.Result(done.returncode, done.stdout, done.stderr)

    transcript = record.play(store.scenario, here, command, store.ask(here / "work"), math.inf)
    path = folder / store.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"$ (the store)\n= {digest(store.scenario)}\n\n{transcript}")
    _remove(here)
    return transcript.count("\n$ ") + 1


def digest(scenario: record.Scenario) -> str:
    """Return the digest of everything that a store is laid out from."""
    digest = hashlib.sha256(repr((sorted(scenario.files.items()), scenario.lines)).encode())
    for folder, _ in scenario.folders:
        for path in sorted((record.REPOSITORY / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(str(path.relative_to(record.REPOSITORY)).encode() + path.read_bytes())
    return digest.hexdigest()


def _drop_privileges() -> list[str]:
    """Return what starts a command without root's power to read any file."""
    if os.geteuid() or not shutil.which("setpriv"):
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


def _remove(folder: Path) -> None:
    """Remove a folder that may contain closed ones."""
    if folder.exists():
        subprocess.run(
            ["chmod", "-R", "u+rwX", str(folder)], check=False, stderr=subprocess.DEVNULL
        )
        shutil.rmtree(folder)


def record_answers(folder: Path, npuprof: Sequence[str], only: str, jobs: int) -> str:
    """Record the answers of an installed npuprof; return what was done.

    Only stores whose transcript has a name with ``only`` are recorded.
    """
    stores = [store for store in list_stores() if only in store.path]
    WORK.mkdir(exist_ok=True)
    with open(WORK / "lock", "w") as lock, ThreadPoolExecutor(jobs) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the folder is used by one recording at a time
        lines = sum(pool.map(lambda store: record_store(store, folder, npuprof), stores))
    return f"{lines} command lines in {len(stores)} stores"


def read_transcript(text: str) -> dict[str, list[str]]:
    """Return what came of each command line, by the line; one that is repeated is numbered."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for row in text.split("\n"):
        if row.startswith("$ "):
            line, number = row, itertools.count(2)
            while line in found:
                line = f"{row} (run {next(number)})"
            current = found[line] = []
        else:
            current.append(row)
    return found


def compare(before: Mapping[str, str], after: Mapping[str, str], longest: int = 8) -> list[str]:
    """Return in lines how two recordings differ, which are transcripts by store."""
    lines: list[str] = []
    for store in sorted(before.keys() | after.keys()):
        if store not in before or store not in after:
            lines.append(
                f"{store}: only in the recording {'before' if store in before else 'after'}"
            )
            continue
        old, new = read_transcript(before[store]), read_transcript(after[store])
        made = "$ (the store)"
        if old.get(made) != new.get(made):
            lines.append(f"{store}: the store itself differs: record both with one checkout")
        for line in [*old, *(line for line in new if line not in old)]:
            if line == made or old.get(line) == new.get(line):
                continue
            lines.append(f"{store}: {line}")
            if line not in old or line not in new:
                lines.append(f"    only in the recording {'before' if line in old else 'after'}")
                continue
            rows = [
                row
                for row in difflib.unified_diff(old[line], new[line], lineterm="", n=0)
                if not row.startswith(("---", "+++"))
            ]
            lines += [f"    {row}" for row in rows[:longest]]
            lines += (
                [f"    ... and {len(rows) - longest} lines more"] if len(rows) > longest else []
            )
    return lines


def read_recording(folder: Path) -> dict[str, str]:
    """Return the transcripts of a recording by their names."""
    return {
        str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.txt"))
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--npuprof", default="npuprof", help="the command to ask")
    recording.add_argument(
        "--only", default="", metavar="TEXT", help="record the stores with TEXT in their names"
    )
    recording.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    comparing = verbs.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    requested = parser.parse_args()
    if requested.verb == "record":
        program, *arguments = shlex.split(requested.npuprof)
        found = shutil.which(program)
        if not found or requested.folder.exists():
            parser.error(
                f"{requested.folder} exists" if found else f"there is no command {program}"
            )
        print(
            record_answers(
                requested.folder,
                [os.path.abspath(found), *arguments],
                requested.only,
                requested.jobs,
            )
        )
        return
    before, after = read_recording(requested.before), read_recording(requested.after)
    report = compare(before, after)
    if not before:
        parser.error(f"there is no recording in {requested.before}")
    print(*report or [f"no difference in {len(before)} stores"], sep="\n")
    sys.exit(bool(report))


if __name__ == "__main__":
    main()
