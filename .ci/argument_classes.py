"""Records of the classes from which transformers' HfArgumentParser makes arguments.

``argument_classes.py FOLDER... > FILE`` parses the dataclasses of the wheels in folders, each named
like its library, without running anything, and prints their fields as TOML: a class has what any of
the releases has. The kind of a field is empty if the releases differ, or if it is no plain type.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import zipfile
from pathlib import Path

from packaging.version import Version

from npuprof.scripts.programs.dataclass_fields import read_type

_CLASS = re.compile(r"class \w+(?:Arguments|Args|Config)\b")
_PLAIN = ("int", "float", "str", "bool")


def read_wheel(path: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Return the bases and the fields of the dataclasses of a wheel, by class."""
    found: dict[str, tuple[list[str], dict[str, str]]] = {}
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if name.endswith(".py") and "/models/" not in name:
                text = wheel.read(name).decode()
                if "dataclass" in text and _CLASS.search(text):
                    for node in ast.parse(text).body:
                        if isinstance(node, ast.ClassDef) and _CLASS.match(f"class {node.name}"):
                            bases, fields = found.setdefault(node.name, ([], {}))
                            bases += [ast.unparse(base).rpartition(".")[2] for base in node.bases]
                            fields.update(_read_fields(node))
    return found


def _read_fields(node: ast.ClassDef) -> dict[str, str]:
    fields = {}
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            kind, choices = read_type(item.annotation)
            is_plain = kind in _PLAIN and not choices
            is_hidden = item.value is not None and "init=False" in ast.unparse(item.value)
            if not is_hidden:
                fields[item.target.id] = kind if is_plain else ""
    return fields


def main(folders: list[str]) -> None:
    """Print the classes of libraries, each with the wheels in a folder of its name."""
    for folder in map(Path, folders):
        library = folder.name
        wheels = sorted(folder.glob("*.whl"))
        bases: dict[str, list[str]] = {}
        kinds: dict[str, dict[str, set[str]]] = {}
        for wheel in wheels:
            for name, (own, fields) in read_wheel(wheel).items():
                bases.setdefault(name, []).extend(own)
                of_class = kinds.setdefault(name, {})
                for field, kind in fields.items():
                    of_class.setdefault(field, set()).add(kind)
        releases = sorted((wheel.name.split("-")[1] for wheel in wheels), key=Version)
        print(f"\n# {library}: {', '.join(releases)}")
        for name in sorted(kinds):
            print(f"\n[{library}.{name}]")
            print(f"bases = {json.dumps([*dict.fromkeys(bases[name])])}")
            print(f"[{library}.{name}.fields]")
            for field, found in sorted(kinds[name].items()):
                print(f'{field} = "{found.pop() if len(found) == 1 else ""}"')


if __name__ == "__main__":
    main(sys.argv[1:])
