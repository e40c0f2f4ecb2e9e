"""The arguments of the vLLM beside npuprof, by the source of its parser, which never runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from npuprof.system.files import find_packages, read_plain_file

#: The class whose fields are arguments of the server.
_SERVER = "FrontendArgs"


@cache
def list_installed_arguments() -> frozenset[str]:
    """Return the arguments without leading dashes, none if the parser cannot be resolved."""
    parsers = Parsers()
    try:
        for folder in map(Path, find_packages("vllm")[:1]):
            for path in (folder / "engine/arg_utils.py", *folder.glob("entrypoints/*/cli_args.py")):
                parsers.read(read_plain_file(str(path)))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return frozenset()
    return parsers.list_arguments() or frozenset()


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
