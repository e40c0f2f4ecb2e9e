"""The installed vLLM: the arguments that its parser reads, by the source, which never runs."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator

from npuprof import catalog
from npuprof.model import Record, build_error
from npuprof.runs.adapter import UNREADABLE, read_versions
from npuprof.runs.adapter_files import Source, find_installed, open_source
from npuprof.system.files import LARGEST_FILE, describe_os_error

PACKAGES = ("vllm",)
#: The files with the parser of the engine and that of the server, and its class of fields.
_PARSERS = re.compile(r"((?:.*/)?vllm/)(?:engine/arg_utils|entrypoints/\w+/cli_args)\.py$")
_SERVER = "FrontendArgs"
#: The parts that turn an argument on or off.
_SWITCH = re.compile("^(?:no|enable|disable)-")


class Vllm(Record):
    """An installed vLLM: its folder, its release if known, and the arguments that it reads.

    ``arguments`` are without leading dashes and negations, with short names. They are None if the
    parser cannot be resolved, for which ``why`` is the reason.
    """

    path: str
    version: str
    arguments: frozenset[str] | None
    why: str = ""

    def reads(self, name: str) -> bool | None:
        """Return whether the parser reads an argument of ``[vllm]``, by any of its names.

        None if unknown: releases differ in the switches for which they have a negation.
        """
        top = name.partition(".")[0].replace("_", "-")
        if self.arguments is None:
            return None
        record = catalog.find_record("vllm", top)
        if self.arguments.intersection((top, *getattr(record, "aliases", ()))):
            return True
        bare = _SWITCH.sub("", top)
        switches = (bare, f"enable-{bare}", f"disable-{bare}")
        return None if bare != top and self.arguments.intersection(switches) else False

    def list_uncatalogued(self) -> list[str]:
        """Return the arguments that the parser reads and the catalogue lacks, sorted."""
        known = set(catalog.record_names("vllm"))
        for setting in catalog.list_records(catalog.Setting, "vllm"):
            known.update(name.lstrip("-") for name in (*setting.aliases, *setting.negations))
        return sorted((self.arguments or frozenset()) - known)


def find_vllm(path: str | None = None) -> Vllm | None:
    """Return vLLM at a path (a folder or a wheel), else the installed one; None if there is none.

    That of the Python on PATH comes before that beside npuprof. Raises NpuprofError if there is
    none at the path.
    """
    if path is None:
        return read_vllm(find_installed(PACKAGES)) or find_beside()
    if found := read_vllm([open_source(path, PACKAGES)]):
        return found
    hint = "name the folder that contains vllm, or a wheel"
    raise build_error("NP963", f"{path} does not contain vLLM", "", hint)


def find_beside() -> Vllm | None:
    """Return vLLM in the environment of npuprof itself, without starting Python; None if none."""
    # python -m puts the current folder first, which may be a clone of vLLM
    folders = (each for each in sys.path if os.path.isabs(each) and each != os.getcwd())
    found = (os.path.join(folder, *PACKAGES) for folder in folders)
    return read_vllm(open_source(path, PACKAGES) for path in found if os.path.isdir(path))


def read_vllm(sources: Iterable[Source]) -> Vllm | None:
    """Return vLLM in the first source that has it, None if none has."""
    for source in sources:
        found = list(filter(None, map(_PARSERS.match, source.names)))
        names = [match[0] for match in found if match[1] == found[0][1]]
        if names:
            version = read_versions(source).get("vllm", "")
            path = os.path.join(source.shown, found[0][1].rstrip("/"))
            parsers = Parsers()
            try:
                for name in names:
                    with source.open(name) as file:
                        parsers.read(file.read(LARGEST_FILE))
                arguments = parsers.list_arguments()
            except UNREADABLE as error:
                return Vllm(path, version, None, describe_os_error(error))
            why = "" if arguments else "its parser has an unknown form"
            return Vllm(path, version, arguments, why)
    return None


class Parsers:
    """The arguments in the files read so far."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._classes: dict[str, ast.ClassDef] = {}
        self._is_resolved = True

    def read(self, raw: bytes) -> None:
        """Read one file, whose arguments have constant names, or those of the server's fields.

        Raises SyntaxError or ValueError for invalid Python.
        """
        nodes = list(ast.walk(ast.parse(raw)))
        classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        self._classes |= classes
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        adding = [node for node in calls if ast.unparse(node.func).endswith(".add_argument")]
        words = [word for node in adding for word in node.args]
        texts = [str(word.value) for word in words if isinstance(word, ast.Constant)]
        names = {text.lstrip("-") for text in texts if text.startswith("-")}
        self._names |= names
        known = (ast.Constant, *((ast.JoinedStr, ast.Starred) if _SERVER in classes else ()))
        if not names or not all(isinstance(word, known) for word in words):
            self._is_resolved = False

    def list_arguments(self) -> frozenset[str] | None:
        """Return the names without dashes, None if some cannot be resolved."""
        fields = {name.replace("_", "-") for name in self._list_fields(_SERVER)}
        is_whole = self._is_resolved and fields and "EngineArgs" in self._classes
        return frozenset(self._names | fields) if is_whole else None

    def _list_fields(self, name: str) -> Iterator[str]:
        """Yield the fields of a class and of those it extends."""
        node = self._classes.get(name)
        for base in node.bases if node else ():
            yield from self._list_fields(ast.unparse(base))
        for item in node.body if node else ():
            if isinstance(item, ast.AnnAssign):
                yield ast.unparse(item.target)
