"""``npuprof.toml``: a repository's sources, rules, presets outside the store, and npuprof."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from npuprof.catalog.execution import find_declaration_fault
from npuprof.catalog.records import NONE_DECLARED, TeamVariable, TeamVariables
from npuprof.catalog.releases import list_frameworks
from npuprof.catalog.targets import load_target_index
from npuprof.document import Document, parse_document
from npuprof.document.secrets import hide_secrets
from npuprof.model import (
    TYPE_CHECKING,
    Axes,
    Finding,
    NpuprofError,
    Origin,
    Path,
    Record,
    TomlTable,
    __version__,
    build_error,
    did_you_mean,
    raise_any,
)
from npuprof.store import FILE, LOCK_FILE, axes, layout, teamrules
from npuprof.store.teamrules import ProjectKey
from npuprof.store.urls import find_url_fault
from npuprof.store.versions import parse_version_range, parse_version_text
from npuprof.system.files import describe_os_error, read_plain_file

if TYPE_CHECKING:
    from typing import Any, TypeVar

    Entry = TypeVar("Entry")
    #: The keys of a table by name.
    Keys = dict[str, ProjectKey]

    from npuprof.document.policy import Ignore, TeamRule

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
#: Prefixes before a colon with another meaning.
TAKEN_NAMES = ("builtin", "file", "stdin", "composed", "http", "https", "ssh")
#: Why a source cannot have some names, and what to do.
SOURCE_NAME_RULE = (
    f"It is written before a colon, where {', '.join(TAKEN_NAMES)} have another meaning."
)
SOURCE_NAME_ADVICE = "use another name of letters, digits, '-' and '_'"

#: The kinds of variables that a team can declare, with the keys that limit their values.
TEAM_KINDS: dict[str, tuple[str, ...]] = {
    "str": (),
    "enum": ("values",),
    "int": ("min", "max"),
    "float": ("min", "max"),
    "bool": (),
    "path": (),
    "pathlist": (),
}


class Source(Record):
    """A source as declared: its URL, the store's folder there, and the versions or revision.

    ``vendor`` is the folder of a copy in this repository, relative to ``npuprof.toml``; an empty
    string if there is none.
    """

    name: str
    url: str
    path: str = "profiles"
    rev: str = "*"
    rules: bool = False
    vendor: str = ""


class Project(Record):
    """The content of ``npuprof.toml``.

    ``variables`` are the team's own, by name. ``axes`` are the values of the declared axes, by
    name. ``outputs`` are the texts of each ``[[output]]``, by key.
    """

    document: Document | None = None
    requires: str = ""
    sources: dict[str, Source] = {}
    rules: tuple[TeamRule, ...] = ()
    ignores: tuple[Ignore, ...] = ()
    variables: TeamVariables = NONE_DECLARED
    axes: Axes = {}
    outputs: tuple[tuple[dict[str, str], Origin], ...] = ()

    def find_source_origin(self, name: str, *path: str) -> Origin | None:
        """Return the location of a source or one of its keys; None if it is not written yet."""
        if self.document is None or name not in self.sources:
            return None
        return Origin(self.document, ("sources", name, *path))


def parse_project(source: str, raw: bytes, revision: str | None = None) -> Project:
    """Return ``npuprof.toml`` parsed; ``source`` is the path to cite.

    Raises NpuprofError with all its faults.
    """
    reader = _Reader(parse_document(FILE, source, raw, revision))
    project = reader.read_project()
    raise_any(reader.problems)
    return project


def is_source_name(name: str) -> bool:
    """Return whether a source name is valid."""
    return _NAME.fullmatch(name) is not None and name.lower() not in TAKEN_NAMES


class _Reader:
    """Reads the tables of one document and collects their faults."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.problems: list[Finding] = []

    def _add(self, message: str, path: Path, hint: str, why: str = "") -> None:
        # a URL in a faulty key may contain a password
        message = hide_secrets(FILE, message)
        key = hide_secrets(FILE, ".".join(map(str, path)))
        self.problems.append(
            Finding("NP040", message, why, hint, Origin(self._document, path), key)
        )

    def read_project(self) -> Project:
        """Return the project, without faulty parts."""
        good = self._read_table(self._document.data, (), KEYS)
        sources = self._read_entries("sources", good, SOURCE_KEYS, self._read_source)
        # after the sources are read: a faulty one is reported for its fault only
        self._require_distinct((name, ("sources", name)) for name in sources)
        variables = self._read_entries(
            "variables",
            good,
            lambda table: list_variable_keys(str(table.get("kind"))),
            self._read_variable,
        )
        declared = self._read_axes(good.get("axes", {}))
        read_rule = partial(teamrules.read_rule, declared)
        rules = self._read_entries("rule", good, teamrules.KEYS, read_rule)
        self._require_distinct((rule.code, ("rule", index)) for index, rule in rules.items())
        ignores = self._read_entries("ignore", good, teamrules.IGNORE_KEYS, teamrules.read_ignore)
        outputs = self._read_entries(
            "output",
            good,
            {**OUTPUT_KEYS, **_list_axis_keys(declared)},
            lambda origin, texts, _: (texts, origin),
        )
        return Project(
            self._document,
            good.get("requires", ""),
            sources,
            tuple(rules.values()),
            tuple(ignores.values()),
            variables,
            declared,
            tuple(outputs.values()),
        )

    def _read_axes(self, table: TomlTable) -> Axes:
        """Return the declared axes without faulty ones."""
        good = {}
        for name, values in table.items():
            if fault := axes.find_axis_fault(name, values):
                hint = 'write it as in role = ["prefill", "decode"]'
                self._add(f"{name!r} cannot be an axis: {fault}", ("axes", name), hint)
            else:
                good[name] = tuple(values)
        return good

    def _read_entries(
        self,
        kind: str,
        tables: TomlTable,
        known: Keys | Callable[[TomlTable], Keys],
        read: Callable[..., Entry | None],
    ) -> dict[Any, Entry]:
        """Return the entries of a table or list of tables by name or index, without faulty ones."""
        entries = {}
        listed = tables.get(kind, ())
        for name, table in listed.items() if isinstance(listed, dict) else enumerate(listed):
            before, path = len(self.problems), (kind, name)
            if not isinstance(table, dict):
                what = f"the {kind.removesuffix('s')} {name!r} must be a table"
                self._add(what, path, f"write [{kind}.{name}]")
                continue
            good = self._read_table(table, path, known(table) if callable(known) else known)
            entry = read(Origin(self._document, path), good, self._add)
            # a rule with a faulty key would judge more or other presets than it was written for
            if entry is not None and len(self.problems) == before:
                entries[name] = entry
        return entries

    def _read_table(self, table: TomlTable, path: Path, known: Keys) -> TomlTable:
        """Return the known keys of a table with valid values."""
        section = ".".join(part for part in path if isinstance(part, str))
        where = f" in [{section}]" if path else ""
        good = {}
        for name, value in table.items():
            if name not in known:
                hint = did_you_mean(name, known, f"known are {', '.join(known)}")
                why = "Unknown keys would otherwise be ignored silently."
                self._add(f"unknown key {name!r}{where}", (*path, name), hint, why)
                continue
            key = known[name]
            if fault := key.find_fault(value):
                self._add(f"{name!r}{where}{fault}", (*path, name), f"write {key.example}")
            else:
                good[name] = value
        for name, key in known.items():
            # by the table, not by its valid keys: a faulty value is no missing one
            if key.is_required and name not in table:
                self._add(f"{name!r} is missing{where}", path, f"write {key.example}")
        return good

    def _read_source(self, origin: Origin, good: TomlTable, _: object) -> Source:
        name = str(origin.path[-1])
        if not is_source_name(name):
            what = f"{name!r} cannot be the name of a source"
            self._add(what, origin.path, SOURCE_NAME_ADVICE, SOURCE_NAME_RULE)
        # "./profiles/" and "profiles" are one store, with one mirror and one lock entry
        folder = posixpath.normpath(good.get("path", "profiles"))
        return Source(name, **{"url": "", **good, "path": "" if folder == "." else folder})

    def _read_variable(self, origin: Origin, good: TomlTable, _: object) -> TeamVariable:
        name = str(origin.path[-1])
        if fault := find_declaration_fault(name):
            why = "A team declares names of its own programs; other names keep their meaning."
            what = f"env.{name} cannot be declared: {fault}"
            self._add(what, origin.path, "remove it, or choose another name", why)
        low, high, kind = good.get("min"), good.get("max"), good.get("kind", "")
        if low is not None and high is not None and low > high:
            self._add(f"'min' of {name} is above 'max'", (*origin.path, "min"), "swap them")
        choices = ("1", "0", "true", "false") if kind == "bool" else good.get("values", ())
        return TeamVariable(
            name,
            kind,
            choices=tuple(choices),
            minimum=low,
            maximum=high,
            doc=good.get("doc", ""),
            origin=origin,
        )

    def _require_distinct(self, named: Iterable[tuple[str, Path]]) -> None:
        """Report names that differ only in case: a reader of team:base could mean either."""
        first: dict[str, Path] = {}
        for name, path in named:
            known = first.setdefault(name.lower(), path)
            if known != path:
                line = Origin(self._document, known).line
                hint = "give one of them another name; case makes no difference"
                self._add(f"{name!r} is there already, in line {line}", path, hint)


def is_store_path(path: str) -> bool:
    """Return whether a text is a store path in a repository: below its top, or ``.``."""
    parts = path.strip("/").split("/")
    return path == "." or (
        bool(path)
        and path.isprintable()
        # git would take a leading "-" for a flag
        and path[0] not in "/-"
        and all(part and part not in (".", "..") for part in parts)
    )


def find_copy_fault(folder: str) -> str:
    """Return why a folder cannot contain a vendored copy, an empty string if it can."""
    if folder == "." or not is_store_path(folder):
        return "it is not a folder below that of npuprof.toml"
    return "it is git's own folder" if ".git" in folder.lower().split("/") else ""


def _find_output_fault(path: str) -> str:
    """Return why an output cannot have a path, an empty string if it can."""
    if path.lower().split("/")[0] in (FILE, LOCK_FILE):
        return "npuprof reads that file itself"
    return find_copy_fault(path)


def _find_target_fault(to: str) -> str:
    known = load_target_index()
    return "" if to in known else did_you_mean(to, known, f"known are {', '.join(known)}")


def _is_revision(text: str) -> bool:
    """Return whether a text can be a version range or commit.

    With a colon, git means a file and users a URL.
    """
    return (
        bool(text.strip()) and not text.startswith("-") and ":" not in text and text.isprintable()
    )


def list_variable_keys(kind: str) -> Keys:
    """Return the keys that the declaration of a variable of a kind may have."""
    return {key: _VARIABLE_KEYS[key] for key in ("kind", "doc", *TEAM_KINDS.get(kind, ()))}


def _list_axis_keys(declared: Axes) -> Keys:
    """Return the keys by which an output selects releases of frameworks and values of axes."""
    names = (*list_frameworks(), *declared)
    return {name: ProjectKey("a text", f'{name} = "VALUE"') for name in names}


def _find_values_fault(texts: list[str]) -> str:
    is_usable = texts and len(set(texts)) == len(texts) and all(map(str.isprintable, texts))
    return "" if is_usable else "it takes different texts of one line, at least one"


#: The tables and keys at the top.
KEYS = {
    "requires": ProjectKey(
        "a text",
        'requires = ">=0.3"',
        "The npuprof it needs.",
        lambda text: "" if parse_version_range(text) else "it is not a version range",
    ),
    "presets": ProjectKey(
        "a list of texts",
        'presets = ["jobs/*/preset.toml"]',
        "Globs of presets outside the store, from this folder.",
        layout.find_globs_fault,
    ),
    "sources": ProjectKey(
        "a table",
        "[sources.team]",
        "Stores of other repositories, by the names they have here.",
    ),
    "axes": ProjectKey("a table", "[axes]", "Values along which presets vary, by axis."),
    "rule": ProjectKey("a list of tables", "[[rule]]", "Team rules, in addition to npuprof's own."),
    "ignore": ProjectKey(
        "a list of tables", "[[ignore]]", "Findings that are accepted, each with its reason."
    ),
    "variables": ProjectKey(
        "a table", "[variables.MY_FLAG]", "Environment variables of the team's own programs."
    ),
    "output": ProjectKey(
        "a list of tables", "[[output]]", "The files that npuprof render --all writes."
    ),
}
_VARIABLE_KEYS = {
    "kind": ProjectKey(
        "a text",
        'kind = "enum"',
        "The kind of its values.",
        lambda kind: "" if kind in TEAM_KINDS else f"known are {', '.join(TEAM_KINDS)}",
        is_required=True,
    ),
    "values": ProjectKey(
        "a list of texts",
        'values = ["a", "b"]',
        "The values of an enum.",
        _find_values_fault,
        is_required=True,
    ),
    "min": ProjectKey("a number", "min = 0", "The least number."),
    "max": ProjectKey("a number", "max = 8", "The greatest number."),
    "doc": ProjectKey("a text", 'doc = "what it does"', "What it does.", teamrules.find_line_fault),
}
#: The keys of an ``[[output]]`` besides those of frameworks and axes.
OUTPUT_KEYS = {
    "spec": ProjectKey(
        "a text",
        'spec = "serving+decode"',
        "The preset, or several joined by +.",
        lambda spec: "" if spec and "-" not in spec.split("+") else "it names no preset",
        is_required=True,
    ),
    "to": ProjectKey("a text", 'to = "vllm"', "The target.", _find_target_fault, is_required=True),
    "path": ProjectKey(
        "a text",
        'path = "deploy/decode"',
        "Its file or folder, from this folder.",
        _find_output_fault,
        is_required=True,
    ),
    "product": ProjectKey("a text", 'product = "atlas-a3"', "The product."),
    "cann": ProjectKey("a text", 'cann = "9.0.0"', "The CANN release."),
}
#: The keys of a source.
SOURCE_KEYS = {
    "url": ProjectKey(
        "a text",
        'url = "ssh://git@host/presets.git"',
        "Any git URL: ssh, https, file.",
        find_url_fault,
        is_required=True,
    ),
    "path": ProjectKey(
        "a text",
        'path = "profiles"',
        "The folder of the store there; profiles if omitted.",
        lambda path: "" if is_store_path(path) else "it is not a folder inside a repository",
    ),
    "rev": ProjectKey(
        "a text",
        'rev = "^2.1"',
        "A range over the store's tags vX.Y.Z, or any revision.",
        lambda rev: "" if _is_revision(rev) else "it is neither a version range nor a revision",
    ),
    "rules": ProjectKey(
        "true or false",
        "rules = true",
        "Whether the source's own rules bind the presets here, too.",
    ),
    "vendor": ProjectKey(
        "a text",
        'vendor = "vendor/team"',
        "The folder of a copy in this repository.",
        find_copy_fault,
    ),
}


def read_project(path: str) -> Project:
    """Return the npuprof.toml at a path, an empty one if there is none.

    Raises NpuprofError if it is invalid.
    """
    raw = read_file_beside(path)
    return parse_project(os.path.relpath(path), raw) if raw is not None else Project()


def read_file_beside(path: str) -> bytes | None:
    """Return a file next to a store, None if there is none.

    Raises NpuprofError if it cannot be read.
    """
    try:
        return read_plain_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        what = f"cannot read {os.path.relpath(path)}: {describe_os_error(error, path)}"
        raise build_error("NP040", what, "", "correct or remove it") from None


def explain_unfit_file(path: str) -> Finding | None:
    """Return why an invalid npuprof.toml may be valid for another npuprof (NP041).

    None if it does not ask for another.
    """
    with suppress(NpuprofError):
        raw = read_file_beside(path) or b""
        return find_unmet_requirement(parse_document(FILE, os.path.relpath(path), raw))
    return None


def require_fitting_project(project: Project) -> None:
    """Raise NpuprofError (NP041) if ``requires`` excludes this npuprof."""
    raise_any(find_unmet_requirement(project.document))


def find_unmet_requirement(
    document: Document | None,
    subject: str = "this repository",
    hint: str = "install one of them, or widen requires",
) -> Finding | None:
    """Return the finding if npuprof.toml needs another npuprof, None if it does not."""
    requires = document.data.get("requires") if document is not None else None
    accepted = parse_version_range(requires) if isinstance(requires, str) else None
    current = parse_version_text(__version__)
    if document is None or accepted is None or current is None or accepted.accepts(current):
        return None
    what = f"{subject} needs npuprof {requires}, and this is {__version__}"
    why = "Its presets were written for that one; another may read them otherwise."
    return Finding("NP041", what, why, hint, Origin(document, ("requires",)), "requires")
