"""``npuprof.toml``: what a repository says beside its store, of which sources it takes presets, and which npuprof it needs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any

from npuprof.document import Document, parse_document
from npuprof.document.secrets import hide_secrets
from npuprof.model import Finding, NpuprofError, Origin, Path, Record, did_you_mean
from npuprof.store import layout
from npuprof.store.sources.ranges import parse_version_range
from npuprof.system.patterns import lazy_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.policy import Ignore, TeamRule

FILE = layout.FILE
_KEYS = {"requires": "a text", "presets": "a list of texts", "sources": "a table", "rule": "a list of tables", "ignore": "a list of tables"}
_SOURCE_KEYS = {"url": "a text", "path": "a text", "rev": "a text", "rules": "true or false", "vendor": "a text"}
_EXAMPLES = {
    "requires": 'requires = ">=0.3"', "presets": 'presets = ["jobs/*/preset.toml"]', "sources": "[sources.team]",
    "url": 'url = "ssh://git@host/presets.git"', "path": 'path = "profiles"', "rev": 'rev = "^2.1"', "rules": "rules = true",
    "vendor": 'vendor = "vendor/team"', "rule": "[[rule]]", "ignore": "[[ignore]]",
}  # fmt: skip
_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
#: Names that stand before a colon and mean something else.
TAKEN_NAMES = ("builtin", "file", "stdin", "composed", "http", "https", "ssh")


class Source(Record):
    """A store of another repository, as it is asked for: its address, the folder of the store there, and which versions or revision.

    ``vendor`` is the folder of a copy in this repository, from the folder of ``npuprof.toml``; an empty text where there is none.
    """

    name: str
    url: str
    path: str = "profiles"
    rev: str = "*"
    rules: bool = False
    vendor: str = ""


class Project(Record):
    """What ``npuprof.toml`` says. ``presets`` are globs of files outside the store, from the folder of the file."""

    document: Document | None = None
    requires: str = ""
    presets: tuple[str, ...] = ()
    sources: dict[str, Source] = {}
    rules: tuple[TeamRule, ...] = ()
    ignores: tuple[Ignore, ...] = ()

    def find_source_origin(self, name: str, *path: str) -> Origin | None:
        """Return where a source, or one of its keys, is written; None of one that is not written yet."""
        if self.document is None or name not in self.sources:
            return None
        return Origin(self.document, ("sources", name, *path))


def parse_project(source: str, raw: bytes, revision: str | None = None) -> Project:
    """Return what the text of ``npuprof.toml`` says; ``source`` is its path to cite. Raises NpuprofError with all its faults."""
    document = parse_document(FILE, source, raw, revision)
    reader = _Reader(document)
    project = reader.read_project()
    if reader.problems:
        raise NpuprofError(reader.problems)
    return project


def is_source_name(name: str) -> bool:
    """Return whether a source can have a name."""
    return _NAME.fullmatch(name) is not None and name.lower() not in TAKEN_NAMES


class _Reader:
    def __init__(self, document: Document) -> None:
        self._document = document
        self.problems: list[Finding] = []

    def _add(self, message: str, path: Path, hint: str, why: str = "") -> None:
        shown = [hide_secrets(FILE, text) for text in (message, ".".join(map(str, path)))]
        self.problems.append(Finding("NP040", shown[0], why, hint, Origin(self._document, path), shown[1]))

    def read_project(self) -> Project:
        good = dict(self._read_table(self._document.data, (), _KEYS))
        if "requires" in good and parse_version_range(good["requires"]) is None:
            self._add(f"requires = {good['requires']!r} is no range of versions", ("requires",), 'write requires = ">=0.3"')
        for index, pattern in enumerate(good.get("presets", ())):
            if fault := layout.find_glob_fault(pattern):
                self._add(f"presets: {pattern!r} {fault}", ("presets", index), 'write presets = ["jobs/*/preset.toml"]')
        sources = {name: source for name, table in good.get("sources", {}).items() if (source := self._read_source(name, table))}
        self._require_distinct_names(sources)
        rules = self._read_rules(good.get("rule", ()))
        ignores = self._read_ignores(good.get("ignore", ()))
        return Project(self._document, good.get("requires", ""), tuple(good.get("presets", ())), sources, rules, ignores)

    def _read_ignores(self, tables: Sequence[dict[str, Any]]) -> tuple[Ignore, ...]:
        if not tables:
            return ()
        from npuprof.store.sources import teamrules

        ignores: list[Ignore] = []
        for index, table in enumerate(tables):
            path = ("ignore", index)
            good = dict(self._read_table(table, path, teamrules.IGNORE_KEYS, teamrules.IGNORE_EXAMPLES))
            accepted = teamrules.read_ignore(self._document, path, table, good, self._add)
            ignores += [accepted] if accepted is not None else []
        return tuple(ignores)

    def _read_rules(self, tables: Sequence[dict[str, Any]]) -> tuple[TeamRule, ...]:
        if not tables:
            return ()
        from npuprof.store.sources import teamrules

        rules: list[TeamRule] = []
        first: dict[str, int] = {}
        for index, table in enumerate(tables):
            path = ("rule", index)
            good = dict(self._read_table(table, path, teamrules.KEYS, teamrules.EXAMPLES))
            rule = teamrules.read_rule(self._document, path, table, good, self._add)
            if rule is not None:
                rules.append(rule)
            code = str(good.get("code", "")).upper()
            if code and first.setdefault(code, index) != index:
                line = Origin(self._document, ("rule", first[code], "code")).line
                self._add(f"there is a rule {good['code']} already, in line {line}", (*path, "code"), "give it another code")
        return tuple(rules)

    def _read_table(
        self, table: dict[str, Any], path: Path, known: dict[str, str], examples: dict[str, str] = _EXAMPLES
    ) -> Iterator[tuple[str, Any]]:
        name_of_table = ".".join(str(part) for part in path if isinstance(part, str))
        brackets = f"[[{name_of_table}]]" if any(isinstance(part, int) for part in path) else f"[{name_of_table}]"
        for name, value in table.items():
            where = f" in {brackets}" if path else ""
            if name not in known:
                hint = did_you_mean(name, known, f"known are {', '.join(known)}")
                self._add(f"unknown key {name!r}{where}", (*path, name), hint, "What is not understood would be ignored silently.")
            elif not _is_of_kind(known[name], value):
                self._add(f"{name!r}{where} must be {known[name]}", (*path, name), f"write {examples[name]}")
            else:
                yield name, value

    def _read_source(self, name: str, table: Any) -> Source | None:
        from npuprof.store.sources.urls import find_url_fault, hide_credentials

        path = ("sources", name)
        if not isinstance(table, dict):
            self._add(f"the source {name!r} must be a table", path, f"write [sources.{name}]")
            return None
        if not is_source_name(name):
            self._add(f"{name!r} cannot be the name of a source", path, "use letters, digits, '-' and '_', as in [sources.team]")
        before = len(self.problems)
        good = dict(self._read_table(table, path, _SOURCE_KEYS))
        if "url" not in table:
            self._add(f"the source {name!r} has no url", path, f"write {_EXAMPLES['url']}")
        elif "url" in good and (fault := find_url_fault(good["url"])):
            self._add(f"url = {hide_credentials(good['url'])!r}: {fault}", (*path, "url"), f"write {_EXAMPLES['url']}")
        if "path" in good and not is_store_path(good["path"]):
            self._add(f"path = {good['path']!r} is no folder below the top of a repository", (*path, "path"), f"write {_EXAMPLES['path']}")
        if "vendor" in good and (fault := find_copy_fault(good["vendor"])):
            self._add(f"vendor = {good['vendor']!r} {fault}", (*path, "vendor"), f"write {_EXAMPLES['vendor']}")
        if "rev" in good and not _is_revision(good["rev"]):
            self._add(f"rev = {good['rev']!r} is no range of versions and no revision", (*path, "rev"), f"write {_EXAMPLES['rev']}")
        if len(self.problems) > before or not is_source_name(name):
            return None
        folder = posixpath.normpath(good.get("path", "profiles"))
        return Source(
            name, good["url"], "" if folder == "." else folder, good.get("rev", "*"), good.get("rules", False), good.get("vendor", "")
        )

    def _require_distinct_names(self, sources: dict[str, Source]) -> None:
        first: dict[str, str] = {}
        for name in sources:
            same = first.setdefault(name.lower(), name)
            if same != name:
                what = f"the sources {same!r} and {name!r} differ in case only"
                self._add(what, ("sources", name), "give one of them another name", "Who reads team:base could mean either.")


def is_store_path(path: str) -> bool:
    """Return whether a text can be the path of a store in a repository: below its top, or the top itself (``.``)."""
    parts = path.strip("/").split("/")
    return path == "." or (
        bool(path) and path.isprintable() and path[0] not in "/-" and all(part and part not in (".", "..") for part in parts)
    )


def find_copy_fault(folder: str) -> str:
    """Return why a copy of a source cannot lie in a folder, an empty text where it can."""
    if folder == "." or not is_store_path(folder):
        return "is no folder below that of npuprof.toml"
    return "is git's own folder" if ".git" in folder.lower().split("/") else ""


def _is_revision(text: str) -> bool:
    """Return whether a text can be a range of versions or name a commit; with a colon git means a file, and people an address."""
    return bool(text.strip()) and not text.startswith("-") and ":" not in text and text.isprintable()


def _is_of_kind(kind: str, value: Any) -> bool:
    if kind == "a list of texts":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind == "a list of tables":
        return isinstance(value, list) and all(isinstance(item, dict) for item in value)
    return isinstance(value, {"a text": str, "true or false": bool, "a table": dict}[kind])
