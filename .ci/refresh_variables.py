"""Compare the variables that the sources of a framework read with its file of the catalogue.

Run ``python .ci/refresh_variables.py FRAMEWORK CHECKOUT [FOLDER...]``: FRAMEWORK is a folder of
``npuprof/catalog/frameworks``, CHECKOUT a clone of its repository, FOLDER the parts of it to read.
Prints names that the catalogue lacks (+), names that the sources no longer have (-), and other
defaults (~); exits with 1 if there are any. A person decides what a difference means.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

CATALOGUE = Path(__file__).resolve().parent.parent / "npuprof" / "catalog"
_NAME = r"[A-Za-z][A-Za-z0-9_]{3,}"
#: Where sources name a variable that they read; in Python with the default.
_READS = {
    ".py": (
        rf"(?:os\.)?(?:getenv|environ\.get|environ\.setdefault)\(\s*[\"'](?P<name>{_NAME})[\"'](?:\s*,\s*(?P<default>[^(),]+))?\s*\)",
        rf"(?:os\.)?environ\[\s*[\"'](?P<name>{_NAME})[\"']\s*\]",
        rf"[\"'](?P<name>{_NAME})[\"']\s+(?:not\s+)?in\s+(?:os\.)?environ\b",
    ),
    ".cpp": (
        rf"(?:[Gg]et[Ee]nv|getenv|get_and_log_env|GetBoolTypeOption|getCvar\w+|REGISTER_OPTION_INIT_BY_ENV|MM_SYS_GET_ENV)\(\s*\{{?\s*\"?"
        rf"(?P<name>{_NAME})\"?",
    ),
}
_READS |= dict.fromkeys((".cc", ".h", ".hpp"), _READS[".cpp"])


def find_reads(folders: list[Path]) -> dict[str, str]:
    """Return the variables that sources read, each with its default as written, empty for none."""
    found: dict[str, str] = {}
    for path in sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in _READS and path.is_file()
    ):
        if {"test", "tests", "third_party"} & {part.lower() for part in path.parts}:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for match in (
            match for pattern in _READS[path.suffix] for match in re.finditer(pattern, text)
        ):
            default = (match.groupdict().get("default") or "").strip().strip("\"'")
            if match["name"].upper() == match["name"] and not found.get(match["name"]):
                found[match["name"]] = "" if default == "None" else default
    return found


def list_differences(framework: str, reads: dict[str, str]) -> list[str]:
    """Return in lines how the reads of a framework differ from its rows."""
    files = {
        path.parent.name: tomllib.loads(path.read_text(encoding="utf-8"))
        for path in CATALOGUE.glob("frameworks/*/variables.toml")
    }
    others = tomllib.loads((CATALOGUE / "variables.toml").read_text(encoding="utf-8"))["variables"]
    known = {name for rows in files.values() for name in rows} | {
        name for row in others for name in row["names"]
    }
    own = {
        name: row
        for name, row in files[framework].items()
        if not row.get("dead") and "until" not in row
    }
    lines = [
        f"+ {name}{f' = {default}' if default else ''}"
        for name, default in reads.items()
        if name not in known
    ]
    lines += [f"- {name}" for name in own if name not in reads]
    lines += [
        f"~ {name}: {own[name]['default']} -> {default}"
        for name, default in reads.items()
        if default
        and name in own
        and "default" in own[name]
        and str(own[name]["default"]) != default
    ]
    return lines


def main(words: list[str]) -> int:
    """Print the differences; return the exit code."""
    if (
        len(words) < 2
        or not (CATALOGUE / "frameworks" / words[0] / "variables.toml").is_file()
        or not Path(words[1]).is_dir()
    ):
        sys.stderr.write(f"{(__doc__ or '').strip()}\n")
        return 2
    lines = list_differences(
        words[0], find_reads([Path(words[1], folder) for folder in words[2:] or ["."]])
    )
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
