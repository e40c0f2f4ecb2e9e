"""What changes in how scripts are read: dump what ``import`` and ``scan`` report of a tree, and compare two dumps.

    python tests/bench/compare_reading.py dump TREE BEFORE.json
    python tests/bench/compare_reading.py dump TREE AFTER.json        # with the changed npuprof
    python tests/bench/compare_reading.py compare BEFORE.json AFTER.json

Measured with public trees at pinned commits, which whoever measures clones: nothing of them is committed here. A small tree made up for
it (``tests/scripts``) is compared in the tests. A setting that became dynamic is a loss that is counted; another value is a bug.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Repositories to measure with, and the commits that figures are comparable at.
TREES = {
    "https://github.com/Ascend/ModelZoo-TensorFlow": "a2c3332a",
    "https://github.com/Ascend/ModelZoo-PyTorch": "HEAD",
    "https://github.com/Ascend/samples": "HEAD",
    "https://github.com/mindspore-lab/mindformers": "HEAD",
}
#: What became of a setting or a finding, worst first.
KINDS = ("other value", "lost", "became dynamic", "became constant", "new", "same")
#: Fields of a setting that are compared.
FIELDS = ("value", "field", "condition", "runs", "unused")

Dump = dict[str, dict[str, Any]]


def dump_tree(tree: Path) -> Dump:
    """Return the settings and the findings of a tree, by file, line and key. Several of one line are numbered in their order."""
    read = json.loads(_ask("import", tree))
    scanned = json.loads(_ask("scan", tree))
    settings = [("{file}:{line}:{surface}:{key}".format(**row), {name: row.get(name) for name in FIELDS}) for row in read["settings"]]
    findings = [
        ("{path}:{line}:{code}:{key}".format(**row), {"severity": row["severity"], "message": row["message"]})
        for row in scanned["findings"]
    ]
    return {"settings": _number(settings), "findings": _number(findings)}


def _ask(verb: str, tree: Path) -> bytes:
    words = [sys.executable, "-m", "npuprof", verb, ".", "--format", "json"]
    done = subprocess.run(words, cwd=tree, capture_output=True, check=False)
    if done.returncode not in (0, 1, 2) or not done.stdout:
        raise SystemExit(f"npuprof {verb} failed with {done.returncode}: {done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout


def _number(rows: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: Counter[str] = Counter()
    found = {}
    for key, row in rows:
        seen[key] += 1
        found[f"{key}#{seen[key]}"] = row
    return found


def compare_dumps(before: Dump, after: Dump) -> dict[str, dict[str, list[str]]]:
    """Return what became of each setting and each finding, by its kind."""
    return {part: _classify(before[part], after[part], part == "settings") for part in ("settings", "findings")}


def _classify(before: Mapping[str, Any], after: Mapping[str, Any], has_values: bool) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for key in sorted({*before, *after}):
        found[_judge(before.get(key), after.get(key), has_values)].append(key)
    return found


def _judge(before: Any, after: Any, has_values: bool) -> str:
    if before is None or after is None:
        return "new" if before is None else "lost"
    if before == after:
        return "same"
    if has_values and after["value"] is None and before["value"] is not None:
        return "became dynamic"
    if has_values and before["value"] is None and after["value"] is not None:
        return "became constant"
    return "other value"


def main(words: list[str]) -> int:
    """Dump a tree, or compare two dumps; exit 1 if a setting has another value or is lost."""
    if len(words) == 3 and words[0] == "dump":
        found = dump_tree(Path(words[1]))
        Path(words[2]).write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        print(", ".join(f"{len(rows):,} {part}" for part, rows in found.items()))
        return 0
    if len(words) == 3 and words[0] == "compare":
        before, after = (json.loads(Path(word).read_text(encoding="utf-8")) for word in words[1:])
        compared = compare_dumps(before, after)
        for part, kinds in compared.items():
            print(f"{part}: " + ", ".join(f"{len(keys):,} {kind}" for kind, keys in kinds.items() if keys))
            for kind in ("other value", "lost", "became dynamic"):
                for key in kinds[kind][:20]:
                    print(f"  {kind}: {key}  {before[part].get(key)} -> {after[part].get(key)}")
        return int(any(compared["settings"][kind] for kind in ("other value", "lost")))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
