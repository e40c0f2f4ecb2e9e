"""Print which tables of arguments a release of Megatron-LM stops at, as JSON.

Run ``python .ci/megatron_judge.py ARGUMENTS FILE`` with the release's
``megatron/training/arguments.py`` and a JSON file of tables as ``[megatron]`` has them. The parser
and ``validate_args`` of that file run; what it imports from torch and Megatron-LM is replaced.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

#: Modules that are imported; names of others become stand-ins.
_IMPORTED = ("argparse", "dataclasses", "enum", "json", "os", "pathlib", "re", "types", "warnings")
_BACKENDS = Enum("_BACKENDS", "flash fused unfused local auto")
_SIZES = ("tensor", "pipeline", "expert")


class Judge:
    """The parser and the checks of a release."""

    def __init__(self, source: Path) -> None:
        self.names: dict[str, Any] = {"__name__": "arguments"}
        kept: list[ast.stmt] = []
        for node in ast.parse(source.read_text()).body:
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                kept.append(node)
                continue
            module = getattr(node, "module", None) or node.names[0].name
            if module in _IMPORTED:
                kept.append(node)
            else:
                self.names |= {
                    (alias.asname or alias.name).partition(".")[0]: MagicMock()
                    for alias in node.names
                }
        torch = MagicMock(float32="fp32", __version__="2.4.0", dtype=type("dtype", (), {}))
        torch.cuda.get_device_capability = lambda: (9, 0)
        self.names |= {
            "AttnBackend": _BACKENDS,
            "is_torch_min_version": lambda *_: True,
            "get_device_arch_version": lambda: 9,
            "torch": torch,
        }
        exec(compile(ast.Module(kept, []), str(source), "exec"), self.names)  # noqa: S102
        self.names |= {
            "_print_args": lambda *_: None,
            "load_retro_args": lambda _: None,
            "update_use_dist_ckpt": _set_checkpoint_format,
        }

    def build_parser(self) -> argparse.ArgumentParser:
        """Return the release's parser."""
        parser = argparse.ArgumentParser(allow_abbrev=False)
        if add := self.names.get("add_megatron_arguments"):
            add(parser)
            return parser
        for name, add in list(self.names.items()):
            if name.startswith("_add_") and callable(add):
                add(parser)
        return parser

    def stops(self, table: dict[str, Any]) -> bool:
        """Return whether the release stops at a table of arguments."""
        words = []
        for name, value in table.items():
            values = value if isinstance(value, list) else [] if value is True else [value]
            words += [f"--{name}", *map(str, values)]
        size = 1
        for name in _SIZES:
            size *= table.get(f"{name}-model-parallel-size", 1)
        os.environ |= {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "RANK": "0"}
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                args = self.build_parser().parse_args(words)
                args.rank, args.world_size = 0, size
                args.attention_backend = _BACKENDS.auto
                args.cp_comm_type = ["p2p"]
                self.names["validate_args"](args)
            except (AssertionError, RuntimeError, ValueError, SystemExit):
                return True
        return False


def _set_checkpoint_format(args: argparse.Namespace) -> None:
    args.use_dist_ckpt = args.ckpt_format != "torch"


if __name__ == "__main__":
    judge = Judge(Path(sys.argv[1]))
    print(json.dumps([judge.stops(table) for table in json.loads(Path(sys.argv[2]).read_text())]))
