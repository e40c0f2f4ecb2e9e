"""Who else can read a name of a script: other files, and the script itself by ways that name nothing."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable

_WORD = re.compile(r"[^\W\d]\w*")
_STAR = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]*\(?[ \t]*\*", re.MULTILINE)
#: What loads a module, or a file, whose name no text has to hold.
_LOADERS = frozenset(("importlib", "import_module", "__import__", "exec", "execfile", "runpy", "imp", "SourceFileLoader"))
#: So many files are remembered for one word: one of two is another file than the one that asks.
_ENOUGH = 2


class Readers:
    """The words of the files around scripts; they are read when somebody asks for the first time."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = tuple(folders)
        self._words: dict[tuple[str, ...], dict[str, list[str]]] = {}  #: by the tops of trees: the files in which a word stands
        self._stars: dict[tuple[str, ...], dict[str, list[str]]] = {}

    def find_reader(self, path: str, name: str) -> str:
        """Return a file other than ``path`` that may read a name of its module, empty where none can.

        A file that speaks of the name is none as long as no file speaks of the module, and it loads none by other ways.
        """
        around = self._find_tops(path)
        if around not in self._words:
            self._gather(around)
        own = os.path.realpath(path)
        base = os.path.splitext(os.path.basename(own))[0]
        module = os.path.basename(os.path.dirname(own)) if base == "__init__" else base
        if star := _pick_other(self._stars[around].get(module, ()), own):
            return star
        words = self._words[around]
        reader = _pick_other(words.get(name, ()), own)
        loaded = any(_pick_other(words.get(loader, ()), own) for loader in _LOADERS)
        return reader if reader and (loaded or _pick_other(words.get(module, ()), own)) else ""

    def _find_tops(self, path: str) -> tuple[str, ...]:
        """Return the repository of a file, or its folder where it has none, and the folders that were named."""
        from npuprof.system.tree import find_repository_top

        own = os.path.dirname(os.path.realpath(path))
        tops: list[str] = []
        for top in sorted({find_repository_top(own) or own, *map(os.path.realpath, self._folders)}, key=len):
            if not any(top.startswith(os.path.join(known, "")) for known in tops):
                tops.append(top)
        return tuple(tops)

    def _gather(self, tops: tuple[str, ...]) -> None:
        from npuprof.report import output
        from npuprof.scripts.files import find_script_files

        words = self._words[tops] = {}
        stars = self._stars[tops] = {}
        for file in find_script_files([*tops], [], with_blocks=False):
            try:
                text = output.read_plain_file(file).decode(errors="replace")
            except OSError:
                continue  # whoever cannot be read by us is told of elsewhere
            full = os.path.realpath(file)
            for word in set(_WORD.findall(text)):
                known = words.setdefault(word, [])
                if len(known) < _ENOUGH and full not in known:
                    known.append(full)
            for module in _STAR.findall(text):
                stars.setdefault(module.rpartition(".")[2], []).append(full)


def _pick_other(files: Iterable[str], own: str) -> str:
    return next((file for file in files if file != own), "")


def list_hidden_uses(tree: ast.Module) -> dict[str, int]:
    """Return the texts of a module that may be names of it, as in ``__all__``, with their lines; under no name, what reads any of them."""
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.setdefault(node.value or " ", node.lineno)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = node.func.id
            if called in ("globals", "eval", "exec") or (called in ("vars", "locals") and not node.args):
                found.setdefault("", node.lineno)
    return found


def find_computed_key(tree: ast.Module) -> int:
    """Return the line of a key of a parameter map, or of an option, that only a call tells and that no importer follows; else 0."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            for inner in ast.walk(node):
                if _is_computed_key(inner):
                    return inner.lineno  # type: ignore[attr-defined, no-any-return]
        elif isinstance(node, ast.Call) and any(isinstance(one, ast.Name) and one.id == "setattr" for one in node.args):
            return node.lineno  # partial(setattr, …), map(setattr, …)
    return 0


def _is_computed_key(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr" and len(node.args) > 1:
        held = node.args[0]
        is_entry = isinstance(held, ast.Subscript) and _is_parameter_map(held.value)  # its key is looked at by itself
        return not is_entry and not isinstance(node.args[1], ast.Constant)
    return isinstance(node, ast.Subscript) and _is_parameter_map(node.value) and not isinstance(node.slice, ast.Constant)


def _is_parameter_map(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "parameter_map"
