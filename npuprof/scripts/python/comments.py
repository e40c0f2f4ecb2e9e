"""Settings that were commented out but kept in the file."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from contextlib import suppress

from npuprof.scripts.python.module import Module
from npuprof.scripts.python.parameter_map import SURFACE
from npuprof.scripts.python.syntax import Script
from npuprof.scripts.python.visitor import Visitor
from npuprof.scripts.records import ScriptPlace, ScriptSetting

_COMMENTED = re.compile(r"(\s*)(#.*\bparameter_map\s*\[.*)")


def find_commented_settings(module: Module) -> list[ScriptSetting]:
    """Return the parameter-map lines that stand in comments of their own."""
    lines = module.script.lines
    matches = [(at, match) for at, line in enumerate(lines, 1) if "parameter_map" in line and (match := _COMMENTED.fullmatch(line))]
    texts = [node for node in module.index.nodes if isinstance(node, (ast.Constant, ast.JoinedStr))] if matches else []
    inside = {line for text in texts for line in range(text.lineno + 1, (text.end_lineno or 0) + 1)}
    own = ((line, match) for line, match in matches if line not in inside)
    return [setting for line, match in own for setting in _read_comment(module.path, line, match)]


def iterate_comments(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield the comments of a Python text, up to where that is none: Python 2, or tabs beside blanks."""
    with suppress(tokenize.TokenError, SyntaxError):
        yield from (token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT)


def _read_comment(path: str, line: int, match: re.Match[str]) -> list[ScriptSetting]:
    """Return what the text of a comment would set, read as a script of its own."""
    script = Script(path, match[2].lstrip("# \t").strip().encode())
    if script.tree is None or not script.tree.body or not isinstance(script.tree.body[0], ast.Assign):
        return []
    visitor = Visitor(Module(script, None), lambda module: (SURFACE,))
    visitor.visit_module()
    at = ScriptPlace(path, line, match.end(1) + 1)
    return [setting._replace(place=at, scope="", order=0, commented=True) for setting in visitor.found if setting.key]
