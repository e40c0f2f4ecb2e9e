"""Releases that a tree pins: tags of images, requirements, and checkouts of repositories.

A pin in a file is for that file. Those of the requirements, pyproject.toml and Dockerfiles of a
folder are for the files in and below it. For each framework, the nearest pin decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

from npuprof.catalog import load_built_part, releases
from npuprof.checks.lifetimes import build_newer_finding
from npuprof.model import LIKELY, Context, Finding, Place, Record
from npuprof.report.text import count_rest, escape_controls
from npuprof.scripts.import_resolution import list_enclosing_folders
from npuprof.scripts.reading.file_kinds import detect_named_kind
from npuprof.scripts.script_records import ImportedFile
from npuprof.system import group_pairs
from npuprof.system.files import read_plain_file

#: Limits per folder: the number of files with pins for others, and their size in bytes.
_MOST_FILES, _LARGEST = 50, 1_000_000
#: The maximum number of pins in a summary.
_SHOWN = 5
_PROJECT_FILE = re.compile(r"requirements[\w.-]*\.(?:txt|in)|pyproject\.toml", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\S)#[^\n]*")
_CONTINUED = re.compile(r"\\[ \t]*\n")
_ARGUMENT = re.compile(r"ARG[ \t]+(\w+)(?:=[\"']?([^\s\"'$]{0,200})[\"']?(?!\S))?", re.IGNORECASE)
_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::-([^{}]*))?\})")
#: The maximum number of replaced references in a line: a long default could fill the memory.
_MOST_REFERENCES = 4
#: Characters around a word of a command line that are not part of it.
_MARKS = "\"'`();"
_FROM = re.compile(r"FROM(?:\s+--\S+)*\s+(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE)
#: The commands that select a revision: a clone, a change of folder, a checkout.
_GIT = re.compile(
    r"\bgit\s+clone\b(?P<clone>[^;&|]*)|\b(?:cd|pushd|WORKDIR)\s+(?P<folder>[^\s;&|]+)"
    r"|\bgit\s+(?:-C\s+(?P<home>\S+)\s+)?(?:checkout|switch)\s+(?:-\S+\s+)*(?P<ref>[^\s;&|]+)"
)
_BRANCH = re.compile(r"(?:^|\s)(?:-b|--branch)[\s=]+(\S+)")
_VERSION = re.compile(
    r"v?(?P<release>\d+\.\w+(?:\.\w+)*(?:-(?:alpha|beta|rc|post)[\w.]*)?)(?P<suffix>(?:-[\w.]+)*)"
)
#: What precedes a version, and its start; the pattern with all names is slower.
_PINNED = re.compile(r"(?:==[ \t]*|[:@])v?\d+\.")
#: The parts of a tag behind the release that make it another one.
_OTHER = re.compile(r"-(?:dev|nightly|alpha|beta|rc|\d+\.)", re.IGNORECASE)


class Pin(Record):
    """A known release of CANN or a framework, and the text that selects it.

    ``is_newer`` if the written release is newer than all known ones.
    """

    axis: str
    release: str
    written: str
    file: str
    line: int
    is_newer: bool

    def describe(self, here: str = "") -> str:
        """Return the release and its origin: that is only a line in the file ``here``."""
        where = f"line {self.line}" if self.file == here else f"{self.file}:{self.line}"
        newest = ", the newest known" if self.is_newer else ""
        return f"{self.axis} {self.release}{newest} ({self.written} in {where})"


def describe_pins(counts: Mapping[Pin, int]) -> str:
    """Return the pins that files were judged for as the end of a sentence; empty for none."""
    listed = [escape_controls(pin.describe()) for pin in counts]
    return f"; judged for {count_rest(listed, _SHOWN)}" if listed else ""


class _Stage(NamedTuple):
    """One ``FROM`` with its numbered lines, and the stage that it is based on."""

    base: _Stage | None
    lines: list[tuple[int, str]]


class FilePins(Record):
    """The pins for a file, at most one of each axis, and notes on undecided axes."""

    pins: tuple[Pin, ...] = ()
    notes: tuple[Finding, ...] = ()

    def narrow_context(self, requested: Context) -> Context:
        """Return a context with the pinned releases."""
        versions = {pin.axis: pin.release for pin in self.pins}
        cann = versions.pop(releases.CANN, requested.cann)
        versions.update(requested.versions)
        newer = {pin.axis: pin.written for pin in self.pins if pin.is_newer}
        return requested._replace(
            cann=cann,
            versions=tuple(sorted(versions.items())),
            newer=(*requested.newer, *newer.items()),
        )

    def place_pins(self, imported: ImportedFile) -> tuple[Pin, ...]:
        """Return the pins with lines of their files: those of a notebook are lines of its cells."""
        parts = imported.part_locations
        return tuple(
            pin._replace(line=parts.find_location(pin.line, 1).line)
            if parts is not None and pin.file == imported.file
            else pin
            for pin in self.pins
        )

    def explain_findings(
        self, imported: ImportedFile, findings: list[Finding], others: Iterable[Finding]
    ) -> list[Finding]:
        """Return the findings; those that the pins cause name them.

        ``others`` are the findings without pins. In a file with launches in several tables, a pin
        may be for one of them.
        """
        usual, file = set(others), imported.file
        commands = {setting.command for setting in imported.settings if setting.surface != "env"}
        likely = LIKELY if imported.declarative and len(commands) > 1 else {}
        judged = f"Judged for {', '.join(pin.describe(file) for pin in self.pins)}."
        return [
            finding
            if finding in usual
            else finding._replace(why=f"{finding.why} {judged}".lstrip(), **likely)
            for finding in findings
        ]


class PinFinder:
    """Finds the pins for files below folders; each folder is read once."""

    def __init__(self, folders: Sequence[str], requested: Context) -> None:
        self._folders = folders
        self._requested = requested
        self._list_pins = cache(_list_folder_pins)
        self._list_folders = cache(lambda folder: list_enclosing_folders(folder, self._folders))

    def find_pins(self, imported: ImportedFile) -> FilePins:
        """Return the pins for a file, except of frameworks with a requested release.

        Different releases in the file, or in the nearest folder that pins any, select none.
        """
        if not imported.settings:
            return FilePins()
        found: dict[str, list[Pin]] = {}
        is_docker = detect_named_kind(imported.file) == "docker"
        parts = imported.part_locations
        text = imported.text if parts is None else parts.text
        # an image of no release runs a part of the file
        own = [] if ":nightly" in text else list_pins(imported.file, text, is_docker)
        folders = self._list_folders(os.path.dirname(imported.file))
        for level in (own, *map(self._list_pins, folders)):
            found |= group_pairs(
                (pin.axis, pin)
                for pin in level
                if pin.axis not in found and not self._requested.find_value(pin.axis)
            )
        decided, notes = [], []
        for pins in found.values():
            other = next((pin for pin in pins if pin.release != pins[0].release), None)
            if other is None:
                decided.append(pins[0])
            else:
                notes.append(_build_note(pins[0], other))
        notes += [
            build_newer_finding(pin.axis, pin.written)._replace(where=Place(pin.file, pin.line))
            for pin in decided
            if pin.is_newer
        ]
        return FilePins(tuple(decided), tuple(notes))


def _build_note(pin: Pin, other: Pin) -> Finding:
    flag = "--cann" if pin.axis == releases.CANN else f"--framework {pin.axis}="
    return Finding(
        "NP833",
        f"{other.describe(other.file)}, but {pin.describe(other.file)}",
        f"No release of {pin.axis} is selected for the files that these lines apply to.",
        f"name the release: {flag}{' ' * (pin.axis == releases.CANN)}{pin.release}",
        where=Place(other.file, other.line),
        severity="info",
    )


def _list_folder_pins(folder: str) -> list[Pin]:
    """Return the pins of the requirements, pyproject.toml and Dockerfiles of a folder."""
    paths = [
        os.path.join(folder, name)
        for name in _list_names(folder)
        if _PROJECT_FILE.fullmatch(name) or detect_named_kind(name) == "docker"
    ]
    below = os.path.join(folder, "requirements")
    paths += [os.path.join(below, name) for name in _list_names(below) if name.endswith(".txt")]
    pins = []
    for path in paths[:_MOST_FILES]:
        try:
            data = read_plain_file(path, _LARGEST)
        except OSError:
            continue  # it selects nothing
        text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
        pins += list_pins(path, text, detect_named_kind(path) == "docker")
    return pins


def _list_names(folder: str) -> list[str]:
    """Return the names of the plain files of a folder; links may lead out of the tree."""
    try:
        with os.scandir(folder or ".") as entries:
            return sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    except OSError:
        return []


def list_pins(file: str, text: str, is_docker: bool = False) -> list[Pin]:
    """Return the pins of a text outside comments: of each release, the first one."""
    known = _normalize(text) if _PINNED.search(text) else ""
    # the arguments of a Dockerfile may be parts of a name
    has_name = is_docker or any(name in known for name in _load_axes())
    has_clone = "clone" in text  # other revisions are of folders that it names
    if not (has_name or has_clone):
        return []
    pins = {}
    lines = _list_lines(text)
    folders: dict[str, str] = {}
    for line, content in _list_last_stage(lines) if is_docker else lines:
        versions = _list_versions(content) if has_name and _PINNED.search(content) else ()
        revisions = _list_revisions(content, folders) if has_clone else ()
        for written in (*versions, *revisions):
            release, is_newer = _find_release(written)
            if release and (written.axis, release) not in pins:
                at = line + content.count("\n", 0, written.start)
                pin = Pin(written.axis, release, written.version, file, at, is_newer)
                pins[written.axis, release] = pin
    return list(pins.values())


class _Written(NamedTuple):
    """A version of an axis as written, and its offset; a tag of an image may have suffixes."""

    axis: str
    version: str
    start: int
    is_tag: bool = False


def _list_versions(content: str) -> Iterator[_Written]:
    """Yield the tags of images and the versions of requirements in a line."""
    for match in _compile_names().finditer(content):
        axis = _load_axes()[_normalize(match["name"])]
        version = match["tag"] or match["version"] or match["ref"]
        yield _Written(axis, version, match.start(), bool(match["tag"]))


def _list_revisions(content: str, folders: dict[str, str]) -> Iterator[_Written]:
    """Yield the revisions of repositories that a line selects.

    ``folders`` has the axis of each cloned repository by its folder, and that of the current folder
    by an empty text.
    """
    for match in _GIT.finditer(content):
        if match["clone"] is not None:
            axis = _read_clone(match["clone"], folders)
            branch = _BRANCH.search(match["clone"])
            ref = branch[1] if branch else ""
        elif match["folder"]:
            folders[""] = folders.get(_name_folder(match["folder"]), "")
            continue
        else:
            axis = folders.get(_name_folder(match["home"] or ""), "")
            ref = match["ref"]
        if axis and ref:
            yield _Written(axis, ref.strip(_MARKS), match.start())


def _read_clone(arguments: str, folders: dict[str, str]) -> str:
    """Return the axis of a cloned repository, and record its folder."""
    words = [word.strip(_MARKS).rstrip("/") for word in arguments.split()]
    for word, following in zip_longest(words, words[1:]):
        address = word.removesuffix(".git").replace(":", "/")
        if axis := _load_axes().get(_normalize("/".join(address.split("/")[-2:]))):
            folders[_name_folder(following or address)] = axis
            return axis
    return ""


def _name_folder(path: str) -> str:
    return path.strip(_MARKS).rstrip("/").rpartition("/")[2]


def _find_release(written: _Written) -> tuple[str, bool]:
    """Return the release of a version, and whether that is newer than all known ones.

    A release older than all known ones counts as the oldest of them. Other texts have an empty one.
    """
    version = _VERSION.fullmatch(written.version)
    suffix = version["suffix"] if version else ""
    # the branch v0.11.0-dev is not the release v0.11.0
    if version is None or (suffix and not written.is_tag) or _OTHER.search(suffix):
        return "", False
    release, is_newer = releases.find_judged_release(version["release"], written.axis)
    oldest = releases.load_releases(written.axis)[0]
    newer = f">{version['release']}"
    if not release and releases.is_inside_range(oldest, newer, written.axis):
        release = oldest  # the nearest known one
    return release, is_newer


def _list_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their continuations and numbers, without comments.

    A continuation starts after a line end.
    """
    number = 1
    joined = []
    for line in _COMMENT.sub("", text).split("\n"):
        joined.append(line)
        if not line.rstrip(" \t").endswith("\\"):
            content = "\n".join(joined)
            yield number, _CONTINUED.sub(" \n", content) if len(joined) > 1 else content
            number += len(joined)
            joined = []
    yield number, "\n".join(joined)


def _list_last_stage(lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the lines of the last stage of a Dockerfile and of those that it is based on.

    Arguments are replaced by their defaults.
    """
    defaults: dict[str, str] = {}
    stages: dict[str, _Stage] = {}
    stage = _Stage(None, [])
    for number, line in lines:
        content = _REFERENCE.sub(
            lambda match: defaults.get(match[1] or match[2]) or match[3] or match[0],
            line,
            _MOST_REFERENCES,
        )
        if (argument := _ARGUMENT.match(content.strip())) and argument[2] is not None:
            defaults[argument[1]] = argument[2]
        elif base := _FROM.match(content.strip()):
            stage = _Stage(stages.get(base[1].lower()), [])
            stages[(base[2] or str(len(stages))).lower()] = stage
        stage.lines.append((number, content))
    kept = []
    following: _Stage | None = stage
    while following is not None:
        kept += following.lines
        following = following.base
    return sorted(kept)


@cache
def _load_axes() -> dict[str, str]:
    """Return the axis of each name of an image, package or repository."""
    known = (releases.CANN, *releases.list_frameworks())
    return {
        _normalize(name): axis
        for axis, kinds in load_built_part("pins").items()
        if axis in known
        for names in kinds.values()
        for name in names
    }


def _normalize(name: str) -> str:
    """Return a name as PyPI compares it."""
    return name.lower().replace("_", "-").replace(".", "-")


@cache
def _compile_names() -> re.Pattern[str]:
    """Return the pattern of a name with its version."""
    names: dict[str, list[str]] = {}
    for axis, kinds in load_built_part("pins").items():
        if axis in _load_axes().values():
            for kind, listed in kinds.items():
                names.setdefault(kind, []).extend(
                    re.escape(name).replace(r"\-", "[-_.]") for name in listed
                )
    images, packages, repositories = (
        "|".join(names.get(kind, ())) or "(?!)" for kind in ("images", "packages", "repositories")
    )
    return re.compile(
        rf"(?<![\w.])(?<!\w-)(?P<name>(?:{images})(?=:)|(?:{packages})(?=[ \t\[=])"
        rf"|(?:{repositories})(?=\.git@|@))"
        r"(?::(?P<tag>[\w.-]{1,128})"
        r"|(?:\[[\w, -]{0,99}\])?[ \t]{0,9}==[ \t]{0,9}(?P<version>v?\d[\w.]{0,60})(?![\w.*!-])"
        r"|(?:\.git)?@(?P<ref>[\w./-]{1,128}))",
        re.IGNORECASE,
    )
