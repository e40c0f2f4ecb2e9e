"""Values of all arguments of vLLM, and its file of arguments: read by its records, or itself."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDS = REPOSITORY / ".ci/upstream/vllm"
#: The first release that reads ``NAME: false``.
READS_FALSE = (0, 28, 0)
TEXTS = ("a", "yes", "1.5", "x = '1' # \"y: z\"", "-dash", "--a_b.c", "ünï\n$HOME", "a=b", "-1.5")
SIZES = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
#: Prints what the parser of a folder yields for each case: of the file, and of the command line.
_READER = """
import json, re, sys
from contextlib import redirect_stdout
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from vllm_parser import build_parser
def read(parser, arguments, dest):
    try:
        value = getattr(parser.parse_args(arguments), dest)
    except (SystemExit, Exception) as error:
        return f"error: {error}"
    if isinstance(value, (bool, int, float, str, list, type(None))):
        return value
    return re.sub("[0-9a-f]{8}-[0-9a-f-]{27}", "ID", repr(value))
with redirect_stdout(sys.stderr):
    parser = build_parser(Path(sys.argv[2]))
    answers = []
    for file, command in json.loads(Path(sys.argv[3]).read_text()):
        flag = command[0].partition("=")[0].replace("--no-", "--", 1)
        dest = next(a.dest for a in parser._actions if flag in a.option_strings)
        answers.append([read(parser, ["--config", file], dest), read(parser, command, dest)])
json.dump(answers, sys.stdout)
"""


def load_record(release: str) -> dict[str, Any]:
    """Return what the parser of a release says of its arguments."""
    record: dict[str, Any] = json.loads((RECORDS / f"{release}.json").read_text("utf-8"))
    return record


def list_cases(record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each argument with the values that it is tried with."""
    for name, row in record["arguments"].items():
        if name not in ("config", "additional-config"):
            for value in _list_values(row, record["classes"]):
                yield name, value


def _list_values(row: dict[str, Any], classes: dict[str, Any]) -> list[Any]:
    kind, several = row["kind"], row.get("nargs") == "+" or row.get("repeated")
    samples: dict[str, list[Any]] = {
        "bool": [True, False],
        "int": [3, -1],
        "float": [0.5, 1e-05, -0.25, -1e-05, 2.0],
        "size": [4096, -1, "32k", "2M"],
        "str": [*TEXTS],
    }
    plain = samples.get(kind, [])
    if "choices" in row:
        plain = [int(each) if kind == "int" else each for each in row["choices"]]
    if row.get("repeated"):
        return [[text] for text in plain] + [["a", "-b", "it's"]]
    if several:
        items = [each for each in plain if not str(each).startswith("-") or kind == "int"]
        return [items[:1], items[:3]]
    if kind == "json":
        fields = classes.get(row.get("class", ""), {})
        switch = next((name for name, each in fields.items() if each["kind"] == "bool"), "a")
        if row.get("class"):
            return [{}] if switch == "a" else [{switch: True}, {switch: False}]
        return [{}, {"a": {"b": [1, "it's"]}, "c": 0.5}, ["*", "it's"], []]
    return [*plain, True] if row.get("nargs") == "?" else plain


def write_command(name: str, value: Any, row: dict[str, Any]) -> list[str]:
    """Return the arguments that mean a value on the command line."""
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if row["kind"] == "json":
        return [f"--{name}={json.dumps(value)}"]
    if row.get("repeated"):
        return [f"--{name}={item}" for item in value]
    if isinstance(value, list):
        return [f"--{name}", *map(str, value)]
    return [f"--{name}={value}"]


# -- by the records -------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def build_recorded_parser(record: dict[str, Any]) -> argparse.ArgumentParser:
    """Return a parser with the arguments of a record."""
    parser = _Parser()
    for row in record["arguments"].values():
        negated = [flag for flag in row["flags"] if re.match("--(no|disable|enable)-", flag)]
        given: dict[str, Any] = {}
        if row["kind"] == "bool":
            # 0.33.0 shows --disable-x only, and reads --no-enable-x too
            can_negate = len(row["flags"]) > 1 and negated
            given["action"] = argparse.BooleanOptionalAction if can_negate else "store_true"
        else:
            given["type"] = {
                "int": int,
                "float": float,
                "size": _read_size,
                "json": json.loads,
            }.get(row["kind"], str)
            given |= {"action": "append"} if row.get("repeated") else {}
            given |= {"nargs": row["nargs"]} if "nargs" in row else {}
            given |= {"const": True} if row.get("nargs") == "?" else {}
        parser.add_argument(row["flags"][0], **given)
    return parser


def _read_size(text: str) -> int:
    return int(text[:-1]) * SIZES[text[-1]] if text[-1] in SIZES else int(text)


def read_by_record(parser: argparse.ArgumentParser, release: str, text: str) -> Any:
    """Return the arguments of a file, as ``load_config_file`` of a release reads it."""
    arguments = []
    for key, value in yaml.safe_load(text).items():
        flags = parser._option_string_actions
        if isinstance(value, bool):
            reads_false = tuple(map(int, release.split("."))) >= READS_FALSE
            if value or (reads_false and f"--no-{key}" in flags):
                arguments.append(f"--{key}" if value else f"--no-{key}")
        elif isinstance(value, list):
            arguments += [f"--{key}", *map(str, value)] if value else []
        else:
            arguments += [f"--{key}", json.dumps(value) if isinstance(value, dict) else str(value)]
    # what has a point before its equals sign is part of a table
    if tables := [each for each in arguments if re.match(r"-[^=]*\.", each)]:
        raise ValueError(f"no flag: {tables}")
    return parser.parse_args(arguments)


# -- vLLM itself ----------------------------------------------------------------------------------


def fetch_parser(release: str, folder: Path) -> tuple[Path, Path]:
    """Return a Python that builds the parser of a release, and the folder of the release."""
    python = folder / "venv/bin/python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    (folder / "torch/utils").mkdir(parents=True)
    (folder / "torch/__init__.py").write_text(
        '__version__ = "2.9.0"\nclass version:\n    cuda = hip = xpu = None\n'
    )
    (folder / "torch/utils/__init__.py").write_text("")
    (folder / "torch/utils/cpp_extension.py").write_text("CUDA_HOME = ROCM_HOME = None\n")
    build = "setuptools>=77,<81 setuptools-scm setuptools-rust wheel packaging jinja2 cmake ninja"
    names: dict[str, Any] = {"__name__": "names", "__file__": str(RECORDS)}
    source = (REPOSITORY / ".ci/vllm_parser.py").read_text("utf-8")
    exec(source[source.index("PACKAGES = [") : source.index("#: Kinds")], names)
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    found = subprocess.run(
        [*pip, "install", *build.split(), *names["PACKAGES"]],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        pytest.skip("no package index")
    environment = {"VLLM_TARGET_DEVICE": "empty", "PYTHONPATH": str(folder), "PATH": "/usr/bin"}
    wanted = ["--no-deps", "--no-build-isolation", "--dest", str(folder)]
    command = [str(python), "-m", "pip", "download", f"vllm=={release}", "--no-binary", "vllm"]
    # the version of the metadata is another one, so pip refuses the file and prints its address
    first = subprocess.run(
        [*command, *wanted, "-v"], env=environment, capture_output=True, text=True, check=False
    )
    address = next(
        word
        for word in (first.stdout + first.stderr).split()
        if word.startswith("https:") and ".tar.gz" in word
    )
    subprocess.run([*pip, "download", address, *wanted], env=environment, check=True)
    (archive,) = folder.glob("vllm-*.tar.gz")
    unpacked = folder / release
    unpacked.mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", unpacked, "--strip-components", "1"], check=True)
    return python, unpacked


def read_by_vllm(
    python: Path, package: Path, cases: list[tuple[str, list[str]]], folder: Path
) -> list[tuple[Any, Any]]:
    """Return what vLLM's parser yields for the files, and for the command lines."""
    listed = []
    for number, (text, command) in enumerate(cases):
        file = folder / f"{number}.yaml"
        file.write_text(text, "utf-8")
        listed.append((str(file), command))
    (folder / "cases.json").write_text(json.dumps(listed))
    done = subprocess.run(
        [python, "-c", _READER, REPOSITORY / ".ci", package, folder / "cases.json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [(of_file, of_command) for of_file, of_command in json.loads(done.stdout)]
