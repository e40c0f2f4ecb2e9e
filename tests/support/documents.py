"""Pages of the documentation as tests read them: blocks, worlds and generated parts."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import npuprof
from npuprof import catalog, docs, renderers
from npuprof.commands.framework import list_verbs
from npuprof.document.profile import PROFILE_KEYS
from npuprof.renderers.environment_files import FORMATS
from npuprof.renderers.shell import SHELLS
from support import generated
from support.building import REPOSITORY

README = REPOSITORY / "README.md"
FOLDER = REPOSITORY / "npuprof" / "docs"
#: All pages by the names that the tests have for them.
PAGES = {
    "README": README,
    **{
        str(FOLDER.joinpath(topic.path).relative_to(FOLDER)): FOLDER / topic.path
        for topic in docs.load_topics()
    },
}
#: The languages of blocks, so that none escapes the tests by its name; what is ``text`` is not
#: tried.
LANGUAGES = ("console", "sh", "toml", "python", "yaml", "json", "text")

_PRESETS = f"cp -r '{REPOSITORY}/profiles' . && git init -q -b main"
_COMMIT = "git add . && git commit -qm 'Add the presets'"
#: Where the commands of a page run, by what the page says of it: what makes that world.
WORLDS = {
    "in an empty folder": "true",
    "in an empty git repository": "git init -q -b main",
    "in a git repository that `npuprof init` set up": (
        f"git init -q -b main && npuprof init >/dev/null 2>&1 && {_COMMIT}"
    ),
    "in a git repository with the presets of npuprof": f"{_PRESETS} && {_COMMIT}",
    "in the [example repository]": f"{_PRESETS} && {_COMMIT}",  # a link to how it is made
}


class Block(NamedTuple):
    """A block of code: its language, its text, and the path that its first line names, if any."""

    language: str
    text: str
    path: str


def read_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page."""
    for part, prose in docs.split_code(text):
        if not prose:
            first, _, rest = part.partition("\n")
            body = rest[: rest.rstrip("\n").rfind("\n") + 1]
            named = re.match(r"# ([\w./-]+\.\w+)\n", body)
            yield Block(first.strip().lstrip("`~"), body, named[1] if named else "")


def list_blocks(page: str, language: str) -> list[str]:
    """Return the blocks of a page in one language."""
    return [
        block.text
        for block in read_blocks(PAGES[page].read_text(encoding="utf-8"))
        if block.language == language
    ]


def find_world(text: str) -> str | None:
    """Return the setup of the world of a page, None if the page names no world."""
    prose = " ".join(text.split()).lower()
    setups = [setup for phrase, setup in WORLDS.items() if phrase in prose]
    assert len(setups) <= 1, "a page has one world"
    return setups[0] if setups else None


#: A commit id, full or short, in what git and npuprof print.
#: A commit id on a page: a page shows none without a digit, but git may print one.
_COMMIT_ID = re.compile(r"(?<![0-9a-f:])(?=[0-9a-f]*\d)(?:[0-9a-f]{40}|[0-9a-f]{7})(?![0-9a-f])")


class World:
    """A folder of somebody called Ada, in a home of her own.

    What is printed there names no folder of this machine.
    """

    def __init__(self, root: Path, made: str) -> None:
        self.root = root
        self.folder = root / "home" / "ada" / "presets"
        self.folder.mkdir(parents=True)
        #: Where the next command runs: ``cd`` counts for the commands after it, as in a terminal.
        self.current = self.folder
        #: Commit ids that the page shows with those that were printed, and the other way round.
        self.commits: tuple[dict[str, str], dict[str, str]] = ({}, {})
        who = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
        }
        self.environment = {
            "PYTHONPATH": str(REPOSITORY),
            "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
            "HOME": str(self.folder.parent),
            "LANG": "C.UTF-8",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            **who,
        }
        assert self.run(made) == ""

    def run(self, command: str) -> str:
        """Return what a command prints, on both streams."""
        return self.start(["bash", "-c", command]).stdout.replace(str(self.root), "")

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as somebody types it who stays in the folder that it changes to."""
        place = self.root / "place"
        done = self.start(["bash", "-c", f"trap 'pwd >{shlex.quote(str(place))}' EXIT\n{command}"])
        self.current = Path(place.read_text(encoding="utf-8").strip())
        return done

    def has_commits(self, shown: str, printed_ids: Sequence[str]) -> bool:
        """Return whether a page shows each commit by one id of its own, also in other blocks."""
        pairs = [
            (shown_id[:7], printed_id[:7])
            for shown_id, printed_id in zip(_COMMIT_ID.findall(shown), printed_ids, strict=True)
        ]
        there, back = self.commits
        return all(
            there.setdefault(shown_id, printed_id) == printed_id
            and back.setdefault(printed_id, shown_id) == shown_id
            for shown_id, printed_id in pairs
        )

    def start(self, arguments: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command in the folder."""
        return subprocess.run(
            arguments,
            cwd=self.current,
            env=self.environment,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def write(self, path: str, text: str) -> None:
        """Write a file that a page shows."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def read_transcript(block: str) -> Iterator[tuple[str, str, str]]:
    """Yield the commands of a console block.

    Each is the shown text, the text for a shell, and the output below it.
    """
    assert block.startswith("$ "), "a console block begins with a command"
    for requested, expected in re.findall(
        r"^(\$ .*(?:\n>.*)*\n)((?:(?!\$ ).*\n)*)", block, re.MULTILINE
    ):
        yield requested, re.sub(r"\n> ?", "\n", requested[2:]), expected


def run_console(
    world: World, block: str, refused: list[str] | None = None, outputs: list[str] | None = None
) -> str:
    """Return a console block with what its commands print.

    Where that is as it was expected, as it stands.

    ``refused`` is given the commands that could not do what they were asked for, ``outputs`` the
    block with all that was printed.
    """
    found, typed = [], []
    for requested, command, expected in read_transcript(block):
        done = world.type(command)
        printed = done.stdout.replace(str(world.root), "")
        if refused is not None and done.returncode not in (
            0,
            1,
        ):  # 1 is an answer: not clean, not equal
            refused.append(command)
        match = re.fullmatch(make_pattern(expected), printed)
        same = match is not None and world.has_commits(expected, match.groups())
        found += [requested, expected if same else printed]
        typed += [requested, printed]
    if outputs is not None:
        outputs.append("".join(typed))
    return "".join(found)


def make_pattern(expected: str) -> str:
    """Return a pattern for an expected text; commit ids, dates and durations may differ.

    Its groups are the commit ids.
    """
    text = re.escape(expected)
    text = _COMMIT_ID.sub(
        lambda found: "([0-9a-f]{40})" if len(found[0]) == 40 else "([0-9a-f]{7,})", text
    )
    text = re.sub(r"(?<=presets\\-)[0-9a-f]{8}", "[0-9a-f]{8}", text)  # a checkout by its place
    text = re.sub(r"\d+\\\.\d+\\ s\b", r"\\d+\\.\\d+ s", text)
    text = re.sub(r"(?<=\\ )\d\\\.\d{3}(?=\\ )", r"\\d\\.\\d{3}", text)  # seconds in a table
    return re.sub(
        r"\d{4}\\-\d\d\\-\d\d(T[\d:]+(\\\+\d\d:\d\d|Z))?",
        r"\\d{4}-\\d\\d-\\d\\d(?:T[\\d:]+(?:\\+\\d\\d:\\d\\d|Z))?",
        text,
    )


def format_counts() -> str:
    """Return how much the catalogue knows."""
    counted = [len(catalog.record_names(section)) for section in ("options", "env", "atc")]
    return "{} options, {} environment variables and {} ATC flags".format(*counted)


def format_formats() -> str:
    """Return the formats of files that ``env`` writes."""
    return ", ".join(f"`{name}`" for name in FORMATS)


def format_targets() -> str:
    """Return a table of the targets."""
    return format_table(
        ("target", "form"),
        (
            (f"`{name}`", renderers.load_target(name).summary)
            for name in renderers.load_target_index()
        ),
    )


def format_shells() -> str:
    """Return a table of the shells, with what is typed in each."""
    return format_table(
        ("shell", "line to type"), ((name, f"`` {shell.use} ``") for name, shell in SHELLS.items())
    )


def format_verbs() -> str:
    """Return a table of the verbs that users call."""
    rows = []
    for names, verb in list_verbs():
        if not verb.hidden:
            arguments = [
                *names,
                *(
                    _format_usage(parameter)
                    for parameter in verb.parameters.values()
                    if parameter.required or parameter.kind.startswith("argument")
                ),
            ]
            rows.append((f"`{' '.join(arguments)}`", str(inspect.getdoc(verb)).partition("\n")[0]))
    return format_table(("verb", "does"), rows)


def _format_usage(parameter: Any) -> str:
    usage = " ".join((*parameter.flags[:1], parameter.metavar))
    return usage if parameter.required else f"[{usage}]"


def format_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown, on lines of its own."""
    lines = ["", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        cells = [cell.replace("|", r"\|") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def format_profile_keys() -> str:
    """Return a table of the keys of ``[profile]``, as the schema explains them."""
    return format_table(
        ("key", "meaning"),
        ((f"`{name}`", f"{key.help.rstrip('.')}.") for name, key in PROFILE_KEYS.items()),
    )


def format_library() -> str:
    """Return a table of the library from its docstrings: functions, then classes."""
    rows = []
    for name in sorted(
        npuprof.__all__, key=lambda name: (not inspect.isfunction(getattr(npuprof, name)), name)
    ):
        found = getattr(npuprof, name)
        if inspect.isfunction(found):
            rows.append(
                (
                    f"`{name}({', '.join(inspect.signature(found).parameters)})`",
                    _read_purpose(found),
                )
            )
        elif inspect.isclass(found):
            rows.append((f"`{name}`", _read_purpose(found)))
    resolve = npuprof.Library.resolve
    rows.append(
        (
            f"`Library.resolve({', '.join([*inspect.signature(resolve).parameters][1:])})`",
            _read_purpose(resolve),
        )
    )
    return format_table(("name", "what it is"), rows)


def _read_purpose(found: Any) -> str:
    return str(inspect.getdoc(found)).partition("\n")[0].replace("``", "`")


#: What makes the parts that are written between ``<!-- generated: NAME -->`` and ``<!-- end -->``.
GENERATED: dict[str, Callable[[], str]] = {
    "counts": format_counts,
    "formats": format_formats,
    "targets": format_targets,
    "shells": format_shells,
    "verbs": format_verbs,
    "profile-keys": format_profile_keys,
    "library": format_library,
    **generated.PARTS,
}
PART = re.compile(
    r"(?P<begin><!-- generated: (?P<name>[a-z-]+) -->).*?(?P<end><!-- end -->)", re.DOTALL
)


def fill_generated_parts(text: str) -> str:
    """Return a page with its generated parts as they have to be."""
    return PART.sub(lambda part: f"{part['begin']}{GENERATED[part['name']]()}{part['end']}", text)
