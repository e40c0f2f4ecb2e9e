"""The installed adapter, parsed and never executed.

Its parts are its packages, the classes of TensorFlow 2 and the option names in its library.
"""

from __future__ import annotations

import ast
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial

from npuprof import catalog
from npuprof.catalog import Option, attribute_values, releases
from npuprof.model import Finding, NpuprofError, Place, Record
from npuprof.runs.adapter_files import PACKAGES, Source, find_installed, open_source
from npuprof.system import decode_safely
from npuprof.system.files import LARGEST_FILE, describe_os_error

_PIECE = 1 << 20
#: Names of at most this length may be stored inside instructions, where no search finds them.
_SHORT = 15
#: The minimum share of universally read options for a library to be an adapter.
_LEAST_SHARE = 0.6
#: The errors of an unreadable member: zipfile raises RuntimeError for encrypted files,
#: NotImplementedError for other compressions.
UNREADABLE = (
    OSError,
    ValueError,
    SyntaxError,
    RecursionError,
    MemoryError,
    zipfile.BadZipFile,
    RuntimeError,
    NotImplementedError,
)


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
        record = _load_option(option)
        answers: list[bool | None] = []
        if self.keys is not None and self.shows(option):
            answers.append(option in self.keys)
        # with a library for sessions, the missing attribute of an option without one proves nothing
        if self.attributes is not None and (
            "global_options" in record.spelling or not self.has_session_library()
        ):
            answers.append(is_read_by_attributes(record, self.attributes))
        if self.keys is None:
            session_package, tf2_package = PACKAGES
            names = {package.name for package in self.packages}
            if session_package in names or (tf2_package in names and self.attributes is None):
                answers.append(None)  # the part that reads options was not readable
        if True in answers:
            return True
        return None if None in answers or not answers else False

    def shows(self, option: str) -> bool:
        """Return whether the text of its library decides if it has an option name.

        A short name that is missing in the text may still be in its instructions.
        """
        return self.keys is not None and (
            option in self.keys or len(option) > _SHORT or self.short_kept
        )

    def has_session_library(self) -> bool:
        """Return whether its library reads the parameter map.

        Such a library contains names that every one of them has and TF 2 lacks.
        """
        if self.keys is None:
            return False
        session_names = [
            name
            for name in _list_constant()
            if len(name) > _SHORT and "global_options" not in _load_option(name).spelling
        ]
        present = self.keys.intersection(session_names)
        return len(present) > len(session_names) / 2


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
    adapters = [
        adapter for adapter in map(_read_source, sources) if adapter.packages or adapter.libraries
    ]
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
    what = (
        f"the Python on PATH has neither vLLM nor an adapter of TensorFlow ({', '.join(PACKAGES)})"
    )
    why = "doctor compares presets with these packages; of torch_npu it reads nothing."
    hint = (
        "activate the environment of the run, or name a package: --installed VLLM, --adapter PATH"
    )
    return Finding("NP963", what, why, hint)


def _read_source(source: Source) -> Adapter:
    """Return the adapter in a source; files that cannot be read are in ``unread``."""
    unread = []
    packages = tuple(_list_packages(source))
    classes = Classes()
    libraries = []
    keys: frozenset[str] | None = None
    for name in source.names:
        in_package = any(part in PACKAGES for part in name.split("/")[:-1])
        try:
            if name.endswith(".py") and in_package:
                with source.open(name) as file:
                    classes.read(file.read(LARGEST_FILE))
            # without a package, the user named the library, or its folder
            elif re.search(r"\.so(?:\.\d+)*$", name) and (in_package or not packages):
                with source.open(name) as file:
                    pieces = iter(partial(file.read, _PIECE), b"")
                    option_names = find_names(pieces, catalog.record_names())
                # the packages have other libraries too, which read few of these names or none
                if _is_library(option_names):
                    libraries.append(os.path.join(source.shown, name))
                    keys = option_names | (keys or frozenset())
        except UNREADABLE as error:
            unread.append((os.path.join(source.shown, name), describe_os_error(error)))
    constant_short = {name for name in _list_constant() if len(name) <= _SHORT}
    # adapters of all releases read these: one that is missing must be inside instructions
    short_kept = keys is None or keys >= constant_short
    return Adapter(
        packages, tuple(libraries), keys, short_kept, classes.list_attributes(), tuple(unread)
    )


def _join(adapters: Sequence[Adapter]) -> Adapter:
    """Return several adapters merged.

    The first one with a part counts, like the first import on the path.
    """
    packages: dict[str, Package] = {}
    for adapter in adapters:
        for package in adapter.packages:
            packages.setdefault(package.name, package)
    with_keys = next((adapter for adapter in adapters if adapter.keys is not None), Adapter())
    attributes = (each.attributes for each in adapters if each.attributes is not None)
    return with_keys._replace(
        packages=tuple(packages.values()),
        attributes=next(attributes, None),
        unread=tuple(fault for adapter in adapters for fault in adapter.unread),
    )


def _list_packages(source: Source) -> Iterator[Package]:
    """Yield the adapter packages in a source."""
    versions = read_versions(source)
    for package in PACKAGES:
        inside = f"/{package}/"
        member = next((name for name in source.names if inside in f"/{name}"), None)
        if member is not None:
            parent = f"/{member}".partition(inside)[0].lstrip("/")
            path = os.path.join(source.shown, parent, package)
            yield Package(package, path, versions.get(package, ""))


def read_versions(source: Source) -> dict[str, str]:
    """Return the versions in the metadata files of a source, by distribution in lower case."""
    versions = {}
    for name in source.names:
        folder, _, file_name = name.rpartition("/")
        if file_name in ("METADATA", "PKG-INFO") and folder.endswith((".dist-info", ".egg-info")):
            distribution = re.split(r"-|\.egg", folder.rpartition("/")[2])[0].lower()
            with suppress(OSError, ValueError), source.open(name) as file:
                match = re.search(rb"^Version: *(\S+)", file.read(65536), re.MULTILINE)
                versions[distribution] = decode_safely(match[1]) if match else ""
    return versions


# -- names in a library ---------------------------------------------------------------------------


def find_names(pieces: Iterable[bytes], names: Iterable[str]) -> frozenset[str]:
    """Return the names that occur in bytes as zero-terminated strings, reading piece by piece.

    A linker may merge a string with the end of a longer one: of ``_NAME``, a graph attribute, of
    ``ge.NAME``, or of another name.
    """
    raw_names = {name: name.encode() + b"\0" for name in names}
    missing = raw_names
    longest = max(map(len, raw_names.values()), default=0) + 1
    rest = b"\0"
    for piece in pieces:
        text = rest + piece
        missing = {name: raw for name, raw in missing.items() if not _contains_name(text, raw)}
        rest = text[-longest:]  # a name may be split between two pieces
    present = raw_names.keys() - missing.keys()
    merged = {name for name in missing if any(longer.endswith(f"_{name}") for longer in present)}
    return frozenset(present | merged)


def _contains_name(text: bytes, raw_name: bytes) -> bool:
    """Return whether bytes contain a name, preceded at most by the underscore of an attribute.

    Without this, a longer name with the same end would count.
    """
    start = text.find(raw_name, 1)
    while start > 0:
        before = text[start - 1 : start]
        if before == b"_":
            before = text[:start].rstrip(b"_")[-1:]
        if not before.isalnum():
            return True
        start = text.find(raw_name, start + 1)
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
    """
    compared_with = Counter[str]()
    mismatches: dict[str, list[str]] = {}
    for release in releases.load_releases():
        for label, state, is_present in _list_traits(adapter, release):
            if state == "?":  # unknown for this release
                continue
            compared_with[release] += 1
            different = mismatches.setdefault(release, [])
            if is_present is not (state == "Y"):
                different.append(label)
    if not mismatches:
        return None
    best = min(mismatches, key=lambda release: len(mismatches[release]))
    fewest = len(mismatches[best])
    alike = [release for release, different in mismatches.items() if len(different) == fewest]
    return Likeness(tuple(alike), compared_with[best], tuple(mismatches[best]))


def _list_traits(adapter: Adapter, release: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the comparable traits of a release: label, its state there, whether the adapter has it.

    The state is ``Y``, ``.`` or ``?``.
    """
    index = releases.release_index(release)
    # the states of options are those of sessions: a library for TF 2 alone lacks most names
    if adapter.keys is not None and adapter.has_session_library():
        for option in catalog.list_records(catalog.Option):
            if option.states and adapter.shows(option.name):
                yield option.name, option.states[index], option.name in adapter.keys
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
    # any group counts: releases that the catalogue lacks may have moved the option
    names = {attribute.rpartition(".")[2] for attribute in attributes}
    if path in attributes or option.name in names:
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
        #: by class: each attribute, and the class of its value
        self._attributes: dict[str, dict[str, str]] = {}

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
        """Return the option paths of TF 2; None if no class has them.

        The class is recognised by its attributes, not by its name.
        """
        plain = {path for path in attribute_values.list_attribute_paths() if "." not in path}

        def count_known(class_name: str) -> int:
            return len(plain & self._attributes[class_name].keys())

        best = max(self._attributes, key=count_known, default=None)
        if best is None or count_known(best) < _LEAST:
            return None
        paths = set()
        waiting = [("", best, 0)]
        for prefix, class_name, depth in waiting:  # grows by the groups of options
            for name, value_class in self._attributes[class_name].items():
                path = f"{prefix}{name}"
                paths.add(path)
                if value_class in self._attributes and depth < _DEEPEST:
                    waiting.append((f"{path}.", value_class, depth + 1))
        return frozenset(paths)


def _list_attributes(constructor: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Yield the attributes that a constructor assigns, each with the class of its value.

    The class is empty for values that are no calls.
    """
    for node in ast.walk(constructor):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        match node.value:
            case ast.Call(ast.Name(called) | ast.Attribute(_, called)):
                value_class = called
            case _:
                value_class = ""
        for target in targets:
            match target:
                case ast.Attribute(ast.Name("self"), name):
                    yield name, value_class
