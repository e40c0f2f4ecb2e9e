"""The installed adapter, parsed and never executed.

Its parts are its packages, the classes of TensorFlow 2 and the option names in its library.
"""

from __future__ import annotations

import ast
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial

from npuprof import catalog
from npuprof.catalog import Option, attribute_values, releases
from npuprof.model import Finding, NpuprofError, Place, Record
from npuprof.runs.adapter_files import PACKAGES, Source, find_installed, open_source
from npuprof.system.files import LARGEST_FILE, describe_os_error

_PIECE = 1 << 20
#: Names of at most this length may be stored inside instructions, where no search finds them.
_SHORT = 15
#: The minimum share of universally read options for a library to be an adapter.
_LEAST_SHARE = 0.6


class Package(Record):
    """A found package: its name, path, and distribution version, if any."""

    name: str
    path: str
    version: str


class Adapter(Record):
    """What an adapter reads; None for parts that could not be read.

    ``keys`` are the option names in its library, ``short_kept`` is set if short names are stored as
    text, ``attributes`` are the attribute paths of TF 2's class. ``unread`` are unreadable files
    with reasons.
    """

    packages: tuple[Package, ...] = ()
    libraries: tuple[str, ...] = ()
    keys: frozenset[str] | None = None
    short_kept: bool = True
    attributes: frozenset[str] | None = None
    unread: tuple[tuple[str, str], ...] = ()

    def reads(self, option: str) -> bool | None:
        """Return whether it reads a session option, by its library or by TF 2's class.

        None if unknown.
        """
        answers: list[bool | None] = []
        if self.keys is not None and (
            option in self.keys or len(option) > _SHORT or self.short_kept
        ):
            answers.append(option in self.keys)
        if self.attributes is not None and (
            "global_options" in _load_option(option).spelling or not self.has_session_library()
        ):
            answers.append(is_read_by_attributes(_load_option(option), self.attributes))
        names = {package.name for package in self.packages}
        if self.keys is None and (
            PACKAGES[0] in names or (PACKAGES[1] in names and self.attributes is None)
        ):
            answers.append(None)  # a package without library or classes
        return True if True in answers else None if None in answers or not answers else False

    def has_session_library(self) -> bool:
        """Return whether its library reads the parameter map.

        Such a library contains names that every one of them has and TF 2 lacks.
        """
        only_there = [
            name
            for name in _list_constant()
            if len(name) > _SHORT and "global_options" not in _load_option(name).spelling
        ]
        return (
            self.keys is not None
            and sum(name in self.keys for name in only_there) > len(only_there) / 2
        )


class Likeness(Record):
    """The best matching releases, the number of compared names, and the number of mismatches."""

    releases: tuple[str, ...]
    compared: int
    different: tuple[str, ...]


def read_adapter(path: str | None) -> Adapter:
    """Return the adapter at a path (a folder, a wheel, a library), or that of the Python on PATH.

    Raises NpuprofError (NP963) if there is none.
    """
    sources = [open_source(path)] if path is not None else list(find_installed())
    adapters = [_read_source(source) for source in sources]
    adapters = [adapter for adapter in adapters if adapter.packages or adapter.libraries]
    if not adapters:
        raise NpuprofError(_build_missing_finding(path))
    return _join(adapters)


def _build_missing_finding(path: str | None) -> Finding:
    if path is not None:
        what = (
            f"{path} contains no adapter: neither {PACKAGES[0]}, "
            f"nor {PACKAGES[1]}, nor a library with its options"
        )
        return Finding(
            "NP963",
            what,
            "",
            "name the folder with the packages, a wheel, or the shared library",
            where=Place(path),
        )
    what = f"the Python on PATH has neither {PACKAGES[0]} nor {PACKAGES[1]}"
    hint = "activate the environment that the training runs in, or name the adapter with --adapter"
    return Finding("NP963", what, "doctor reads the adapter's own files.", hint)


def _read_source(source: Source) -> Adapter:
    unread: list[tuple[str, str]] = []
    packages = tuple(_list_packages(source))
    classes = Classes()
    libraries: list[str] = []
    keys: frozenset[str] | None = None
    for name in source.names:
        inside = any(part in PACKAGES for part in name.split("/")[:-1])
        try:
            if name.endswith(".py") and inside:
                with source.open(name) as file:
                    classes.read(file.read(LARGEST_FILE))
            elif re.search(r"\.so(?:\.\d+)*$", name) and (inside or not packages):
                with source.open(name) as file:
                    pieces = iter(partial(file.read, _PIECE), b"")
                    option_names = find_names(pieces, catalog.record_names())
                if _is_library(option_names):
                    libraries.append(os.path.join(source.shown, name))
                    keys = option_names | (keys or frozenset())
        except (
            OSError,
            ValueError,
            RecursionError,
            MemoryError,
            zipfile.BadZipFile,
            RuntimeError,
            NotImplementedError,
        ) as error:
            unread.append((os.path.join(source.shown, name), describe_os_error(error)))
    short_kept = keys is None or all(
        name in keys for name in _list_constant() if len(name) <= _SHORT
    )
    return Adapter(
        packages, tuple(libraries), keys, short_kept, classes.list_attributes(), tuple(unread)
    )


def _join(adapters: Sequence[Adapter]) -> Adapter:
    """Return several adapters merged.

    The first one with a part counts, like the first import on the path.
    """
    packages: dict[str, Package] = {}
    for package in (package for adapter in adapters for package in adapter.packages):
        packages.setdefault(package.name, package)
    with_keys = next((adapter for adapter in adapters if adapter.keys is not None), Adapter())
    return Adapter(
        tuple(packages.values()),
        with_keys.libraries,
        with_keys.keys,
        with_keys.short_kept,
        next((adapter.attributes for adapter in adapters if adapter.attributes is not None), None),
        tuple(fault for adapter in adapters for fault in adapter.unread),
    )


def _list_packages(source: Source) -> Iterator[Package]:
    versions = {}
    for name in source.names:
        head, _, tail = name.rpartition("/")
        if tail in ("METADATA", "PKG-INFO") and head.endswith((".dist-info", ".egg-info")):
            with suppress(OSError, ValueError), source.open(name) as file:
                match = re.search(rb"^Version: *(\S+)", file.read(65536), re.MULTILINE)
                versions[re.split(r"-", head.rpartition("/")[2])[0].lower()] = (
                    match[1].decode(errors="replace") if match else ""
                )
    for package in PACKAGES:
        init = next(
            (
                name
                for name in source.names
                if name.endswith(f"{package}/__init__.py") or f"/{package}/" in f"/{name}"
            ),
            None,
        )
        if init is not None:
            above = f"/{init}".partition(f"/{package}/")[0].lstrip("/")
            yield Package(
                package, os.path.join(source.shown, above, package), versions.get(package, "")
            )


# -- names in a library ---------------------------------------------------------------------------


def find_names(pieces: Iterable[bytes], names: Iterable[str]) -> frozenset[str]:
    """Return the names that occur in bytes as zero-terminated strings, reading piece by piece.

    A linker may merge a string with the end of a longer one: of ``_NAME``, a graph attribute, of
    ``ge.NAME``, or of another name.
    """
    raw_names = {name: name.encode() + b"\0" for name in names}
    missing = dict(raw_names)
    longest = max(map(len, raw_names.values()), default=0) + 1
    rest = b"\0"
    for piece in pieces:
        text = rest + piece
        for name in [name for name, word in missing.items() if _holds_word(text, word)]:
            del missing[name]
        rest = text[-longest:]
    present = raw_names.keys() - missing.keys()
    return frozenset(
        present
        | {name for name in missing if any(longer.endswith(f"_{name}") for longer in present)}
    )


def _holds_word(text: bytes, word: bytes) -> bool:
    """Return whether bytes contain a name, preceded at most by the underscore of an attribute.

    Most names are in no piece.
    """
    place = text.find(word, 1)
    while place > 0:
        before = (
            text[:place].rstrip(b"_")[-1:] if text[place - 1] == 0x5F else text[place - 1 : place]
        )
        if not (before.isalnum() or before == b"_"):
            return True
        place = text.find(word, place + 1)
    return False


def _list_constant() -> list[str]:
    """Return the options that adapters of all releases read."""
    return [
        option.name
        for option in catalog.list_records(catalog.Option)
        if set(option.states) == {"Y"}
    ]


def _load_option(name: str) -> catalog.Option:
    option = catalog.find_option(name)
    assert option is not None, "it is listed"
    return option


def _is_library(option_names: frozenset[str]) -> bool:
    constant = [name for name in _list_constant() if len(name) > _SHORT]
    return sum(name in option_names for name in constant) >= _LEAST_SHARE * len(constant)


# -- the release ----------------------------------------------------------------------------------


def find_likeness(adapter: Adapter) -> Likeness | None:
    """Return the releases with the fewest mismatches to an adapter.

    None if nothing can be compared.

    For some releases it is unknown whether they have a name.
    """
    by_release = {}
    for release in releases.load_releases():
        known = [
            (label, expected == "Y", there)
            for label, expected, there in _list_traits(adapter, release)
            if expected in ("Y", ".")
        ]
        if known:
            by_release[release] = (
                len(known),
                [label for label, expected, there in known if expected is not there],
            )
    if not by_release:
        return None
    compared, different = min(by_release.values(), key=lambda pair: len(pair[1]))
    alike = [
        release for release, (_, others) in by_release.items() if len(others) == len(different)
    ]
    return Likeness(tuple(alike), compared, tuple(different))


def _list_traits(adapter: Adapter, release: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the comparable traits of a release: label, its state there, whether the adapter has it.

    The state is ``Y``, ``.`` or ``?``.
    """
    place = releases.release_index(release)
    has_sessions = adapter.has_session_library()
    for option in catalog.list_records(catalog.Option):
        name = option.name
        if (
            adapter.keys is not None
            and has_sessions
            and option.states
            and (name in adapter.keys or len(name) > _SHORT or adapter.short_kept)
        ):
            yield name, option.states[place], name in adapter.keys
    if adapter.attributes is not None:
        for path in attribute_values.list_attribute_paths():
            yield (
                f"global_options().{path}",
                attribute_values.find_attribute_release(path, release),
                path in adapter.attributes,
            )


def is_read_by_attributes(option: Option, attributes: AbstractSet[str]) -> bool | None:
    """Return whether ``global_options()`` of TF 2 has an option under any path.

    None if its group was not read.
    """
    path = option.spelling.get("global_options", option.name)
    if path in attributes or any(
        attribute.rpartition(".")[2] == option.name for attribute in attributes
    ):
        return True
    group = path.rpartition(".")[0]
    has_members = any(attribute.startswith(f"{group}.") for attribute in attributes)
    # a group is without members if the file of its class was unreadable
    return None if group in attributes and not has_members else False


#: The nesting depth of settings classes.
_DEEPEST = 4
#: The minimum number of attributes for a class to be that of ``global_options()``.
_LEAST = 3


class Classes:
    """The classes in the Python files read so far."""

    def __init__(self) -> None:
        self._attributes: dict[
            str, dict[str, str]
        ] = {}  #: by class: each attribute, and the class of its value

    def read(self, raw: bytes) -> None:
        """Read one file. Raises ValueError for invalid Python."""
        if b"class " not in raw:
            return
        try:
            tree = ast.parse(raw)
        except SyntaxError as error:
            raise ValueError(
                f"line {error.lineno}: {error.msg}" if error.lineno else error.msg
            ) from None
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for item in node.body:
                    if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                        self._attributes[node.name] = dict(_list_attributes(item))
                        break

    def list_attributes(self) -> frozenset[str] | None:
        """Return the option paths of TF 2; None if no class has them."""
        known = attribute_values.list_attribute_paths()
        plain = {path for path in known if "." not in path}
        best = max(
            self._attributes,
            key=lambda name: len(plain & self._attributes[name].keys()),
            default=None,
        )
        if best is None or len(plain & self._attributes[best].keys()) < _LEAST:
            return None
        paths: set[str] = set()
        waiting = [("", best, 0)]
        for before, holder, depth in waiting:
            for name, inner in self._attributes.get(holder, {}).items():
                paths.add(f"{before}{name}")
                if inner in self._attributes and depth < _DEEPEST:
                    waiting.append((f"{before}{name}.", inner, depth + 1))
        return frozenset(paths)


def _list_attributes(start: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Yield the attributes that a constructor assigns: the name, and the called class."""
    for node in ast.walk(start):
        match node:
            case ast.Assign(targets, value):
                pass
            case ast.AnnAssign(annotated, _, value):
                targets = [annotated]
            case _:
                continue
        match value:
            case ast.Call(ast.Name(called) | ast.Attribute(_, called)):
                pass
            case _:
                called = ""
        for target in targets:
            match target:
                case ast.Attribute(ast.Name("self"), name):
                    yield name, called
