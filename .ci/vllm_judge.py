"""Print what a release of vLLM says to lines of arguments, as JSON: one verdict for each line.

Run ``python .ci/vllm_judge.py FOLDER FILE`` with the folder of an unpacked source package and a
JSON file of lists of words. Needs what ``vllm_parser.py`` needs. ``parser`` refuses a line, or the
``class`` of an argument refuses its value; a ``start`` compares several values, often those of
the machine, and counts for nothing; other lines are ``accepted``.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pydantic import ValidationError
from vllm_parser import build_parser, find_origins

#: Values that are no tables, by kind.
_OTHERS = {"str": "word", "int": 8, "float": 0.5, "bool": True}


class Judge:
    """The parser and the configuration classes of a package."""

    def __init__(self, folder: Path) -> None:
        self.parser = build_parser(folder)
        module = sys.modules["vllm.engine.arg_utils"]
        self.classes = {
            name: each
            for owner in list(sys.modules.values())
            if getattr(owner, "__name__", "").startswith("vllm.config")
            for name, each in vars(owner).items()
            if isinstance(each, type) and hasattr(each, "__pydantic_validator__")
        } | {
            name: each
            for name, each in vars(module).items()
            if isinstance(each, type) and hasattr(each, "__pydantic_validator__")
        }
        origins = find_origins(folder)
        self.fields = {
            action.dest: origins[flag]
            for action in self.parser._actions  # noqa: SLF001 - public nowhere
            for flag in action.option_strings
            if flag in origins
        }

    def judge(self, words: list[str]) -> str:
        """Return the verdict about a line."""
        with ExitStack() as stack:
            for each in self.classes.values():
                if hasattr(each, "__post_init__"):
                    stack.enter_context(patch.object(each, "__post_init__", lambda *_: None))
            try:
                given = self._parse(words)
            except (SystemExit, Exception):
                return "parser"
            if any(map(self._is_refused, given, given.values())):
                return "class"
        try:
            self._parse(words)
        except (SystemExit, Exception):
            return "start"
        return "accepted"

    def widen(self, arguments: dict[str, Any], fields: dict[str, Any]) -> None:
        """Add the ``others`` that a list or table may be too, as validators convert them."""

        def widen(row: dict[str, Any], is_right: Callable[[Any], bool]) -> None:
            if "auto" not in row.get("choices", ["auto"]) and is_right("auto"):
                row["choices"].append("auto")
            if row["kind"] in ("json", "list") and "class" not in row:
                more = [kind for kind, value in _OTHERS.items() if is_right(value)]
                row |= {"others": more} if more else {}
                if "flags" not in row and row["kind"] == "json" and is_right(["word"]):
                    row |= {"others": ["list", *more], "items": "any"}

        for name, row in arguments.items():
            widen(
                row,
                lambda value, name=name: (
                    self.judge(
                        [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
                    )
                    in ("accepted", "start")
                ),
            )
        for owner, rows in fields.items():
            for field, row in rows.items() if owner in self.classes else ():
                widen(
                    row,
                    lambda value, owner=owner, field=field: (
                        not any(True for _ in self._find_errors(owner, {field: value}))
                    ),
                )

    def _parse(self, words: list[str]) -> dict[str, Any]:
        before = {action.dest: action.default for action in self.parser._actions}  # noqa: SLF001
        with redirect_stderr(StringIO()), redirect_stdout(StringIO()):
            found = vars(self.parser.parse_args(["m", *words]))
        return {
            name: value
            for name, value in found.items()
            if name not in before or value is not before[name]
        }

    def _is_refused(self, name: str, value: Any) -> bool:
        owner, field = self.fields.get(name, ("", ""))
        given = {field: value}
        camel = "".join(part.capitalize() for part in name.split("_"))
        if isinstance(value, dict) and camel in self.classes:  # its fields are its keywords
            owner, given = camel, value
        return owner in self.classes and any(True for _ in self._find_errors(owner, given))

    def _find_errors(self, owner: str, given: dict[str, Any]) -> Iterator[Any]:
        """Yield what a class says to fields; nothing of others, which it would be given too."""
        known = {each.name for each in dataclasses.fields(self.classes[owner]) if each.init}
        yield from given.keys() - known
        try:
            self.classes[owner](**{key: given[key] for key in given.keys() & known})
        except ValidationError as error:
            for row in error.errors(include_url=False, include_context=False):
                if row["loc"] and row["loc"][0] in given:
                    yield row
        except Exception as error:  # a validator stumbles over the value
            yield error


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):  # the package logs
        judge = Judge(Path(sys.argv[1]).resolve())
        verdicts = [judge.judge(words) for words in json.loads(Path(sys.argv[2]).read_text())]
    json.dump(verdicts, sys.stdout)
