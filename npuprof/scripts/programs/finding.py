"""Finds the source of the programs that scripts start, and reads each parser once."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from npuprof.scripts.import_resolution import open_modules
from npuprof.scripts.programs.argparse_calls import read_parser
from npuprof.scripts.programs.hydra_configs import HydraConfig, read_hydra_config
from npuprof.scripts.programs.parsers import Parser
from npuprof.scripts.steps import TooManySteps, limit_steps
from npuprof.system.files import find_packages


class Programs:
    """The programs of the trees of ``folders``, and of other folders with ``programs``."""

    def __init__(self, folders: Sequence[str], programs: Sequence[str] = ()) -> None:
        self._programs = [os.path.normpath(each) for each in programs]
        roots = [each if os.path.isdir(each) else os.path.dirname(each) for each in self._programs]
        # not the modules of the scan, which keep other words of each file
        self._modules = open_modules([*folders, *roots], roots=roots)
        #: Returns the parser of a program by its file, None if it is not read.
        self.read_parser = cache(self._read_parser)

    def find(self, file: str, script: str, module: str) -> str:
        """Return the file of a program that a script starts, empty if it is not found."""
        if module:
            return self._find_module(file, module)
        locate = self._modules.locate_file
        found = locate(file, script, False) if locate and not os.path.isabs(script) else ()
        if len(found) == 1:
            return found[0]
        names = dict.fromkeys((script, os.path.basename(script)))
        below = [os.path.join(top, name) for top in self._programs for name in names]
        below += [each for each in self._programs if os.path.basename(each) in names]
        files = [] if found else filter(os.path.isfile, below)
        return next((each for each in files if each.endswith(".py")), "")

    def _find_module(self, file: str, module: str) -> str:
        tops = [file, *(os.path.join(top, "program.py") for top in self._programs)]
        names = (f"{module}.__main__", module)
        found = [self._modules.locate(top, name, 0) for top in tops for name in names]
        package, *rest = module.split(".")
        for folder in find_packages(package)[:1]:
            path = os.path.join(folder, *rest)
            found += filter(os.path.isfile, (f"{path}.py", os.path.join(path, "__main__.py")))
        return next((each for each in found if each and not each.endswith("__init__.py")), "")

    def list_parsers(self) -> list[Parser]:
        """Return the parsers of the named programs, and of those in the named folders."""
        files = []
        for path in self._programs:
            names = sorted(os.listdir(path)) if os.path.isdir(path) else [""]
            files += [os.path.join(path, name) if name else path for name in names]
        found = [self.read_parser(file) for file in files if file.endswith(".py")]
        return [parser for parser in found if parser is not None]

    def _read_parser(self, path: str) -> Parser | None:
        try:
            with limit_steps():
                return read_parser(path, self._modules)
        except (TooManySteps, RecursionError):
            return None

    def read_config(self, path: str, overrides: Mapping[str, Any]) -> HydraConfig | None:
        """Return the configuration of a program of Hydra, None if it is not read."""
        try:
            with limit_steps():
                return read_hydra_config(path, self._modules, overrides)
        except (TooManySteps, RecursionError):
            return None

    def is_quoted(self, parser: Parser, flag: str) -> bool:
        """Return whether the source of a program has the name of an unknown flag elsewhere.

        For a parser that is not complete, the whole tree counts.
        """
        name = re.escape(flag.lstrip("-"))
        if parser.complete:  # what the arguments are compared with
            pattern = rf"['\"](?:--)?{name}['\"=]"
            files: Sequence[str] | None = parser.files
        else:
            either = re.sub(r"\\-|_", "[-_]", name)
            pattern = rf"(?<![\w-]){either}(?![\w-])"
            files = self._modules.list_tree(parser.path)
        if files is None:
            return True
        quoted = re.compile(pattern.encode())
        return any(quoted.search(data) for data in map(self._modules.read, files))
