"""Records what MindIE's parser of config.json accepts: kinds, compulsory keys and ranges.

    python .ci/mindie_parser.py CHECKOUT_OF_MINDIE_LLM REF RELEASE

The kinds are those of its ``ParamSpec`` tables, the ranges those of ``CheckMaxMinValue``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

#: The tables of keys in src/config_manager, and what is above their keys in the file.
TABLES = {
    "g_serverParamsConstraint": "ServerConfig",
    "g_backendConfigConstraint": "BackendConfig",
    "g_modelParentParamsConstraint": "BackendConfig.ModelDeployConfig",
    "g_modelParamsConstraint": "BackendConfig.ModelDeployConfig.ModelConfig",
    "g_scheduleParamsConstraint": "BackendConfig.ScheduleConfig",
}
#: What messages call the tables.
PREFIXES = {
    "serverConfig": "ServerConfig",
    "backendConfig": "BackendConfig",
    "scheduleParam": "BackendConfig.ScheduleConfig",
}
TABLE = re.compile(r"std::vector<ParamSpec> (\w+) = \{(.*?)\};", re.DOTALL)
SPEC = re.compile(r'\{"(\w+)", "(\w+)", (true|false)\}')
RANGE = re.compile(
    r'CheckMaxMinValue<\w+>\(\s*[\w.]+,\s*([\w.]+),\s*([\w.]+),\s*"(\w+)\.([\w.]+)"\s*\)'
)
CONSTANT = re.compile(r"const(?:expr)? \w+ (\w+) = ([\d *]+)U?;")


def read_release(checkout: str, ref: str) -> dict[str, object]:
    """Return the kinds, compulsory keys and ranges of a release, by dotted key."""

    def git(*words: str) -> str:
        command = ["git", "-C", checkout, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603

    names = git("ls-tree", "-r", "--name-only", ref, "src/config_manager").split()
    names.append("src/include/config/config_info.h")
    text = "\n".join(git("show", f"{ref}:{name}") for name in names)
    constants = {
        name: str(eval(value))  # noqa: S307 - digits and * only
        for name, value in CONSTANT.findall(text)
    }
    keys = {
        f"{TABLES[table]}.{key}": {"kind": kind, "compulsory": needed == "true"}
        for table, body in TABLE.findall(text)
        if table in TABLES
        for key, kind, needed in SPEC.findall(body)
    }
    ranges: dict[str, list[int]] = {}
    for high, low, prefix, key in RANGE.findall(text):
        bounds = [constants.get(each, each).rstrip("U") for each in (low, high)]
        if prefix in PREFIXES and all(each.isdigit() for each in bounds):
            ranges[f"{PREFIXES[prefix]}.{key}"] = [int(each) for each in bounds]
    return {"keys": keys, "ranges": ranges}


def main() -> None:
    """Write the record of a release."""
    checkout, ref, release = sys.argv[1:]
    folder = Path(__file__).parent / "upstream" / "mindie"
    folder.mkdir(parents=True, exist_ok=True)
    record = json.dumps(read_release(checkout, ref), indent=1, sort_keys=True)
    (folder / f"{release}.json").write_text(f"{record}\n")


if __name__ == "__main__":
    main()
