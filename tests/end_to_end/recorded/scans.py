"""Record what scan and import find in trees of scripts, and compare two such recordings.

``python tests/end_to_end/recorded/scans.py record FOLDER TREE... [--npuprof COMMAND]`` runs both
verbs of an installed npuprof [default: the one on the PATH] in each TREE, a checkout of any
project, and writes FOLDER/TREE.json.

``python tests/end_to_end/recorded/scans.py compare BEFORE AFTER [--all]`` counts, for each tree,
the settings and findings that are the same, became dynamic (have no static value any more), became
static, have another value or other details (a condition, a reason, a severity), are lost or new, or
come in another order. It prints the first of each class, with ``--all`` all of them, and exits with
1 if any are not the same.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

VERBS = {
    "scan": ("scan", ".", "--docs", "--all", "--severity", "info", "--format", "json"),
    "import": ("import", ".", "--docs", "--format", "json"),
}
CLASSES = (
    "same",
    "became dynamic",
    "became static",
    "other value",
    "other details",
    "lost",
    "new",
    "other order",
)
#: Differences of one class in one tree that are printed without ``--all``.
FIRST = 10


class Row(NamedTuple):
    """Something that a verb says of a place; values are JSON, to be compared and counted."""

    kind: str
    place: str
    name: str
    value: str
    reason: str = ""
    details: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """What rows of two recordings have in common if they describe the same thing."""
        return self[:3]


class Difference(NamedTuple):
    """Two rows about the same thing, or one that has none beside it."""

    sort: str
    before: Row | None
    after: Row | None

    def __str__(self) -> str:
        row = self.before or self.after
        assert row is not None
        old, new = (
            recording and f"{recording.value}{f' ({recording.reason})' if recording.reason else ''}"
            for recording in (self.before, self.after)
        )
        if self.before and self.after and self.sort == "other details":
            old, new = self.before.details, self.after.details
        return (
            f"{self.sort}: {row.kind} {row.place} {row.name}: "
            f"{' -> '.join(part for part in (old, new) if part is not None)}"
        )


def record_tree(tree: Path, npuprof: Sequence[str]) -> dict[str, Any]:
    """Return what the verbs print about a tree."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as home:
        environ = {
            "HOME": home,
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "100",
            "TERM": "dumb",
            "TZ": "UTC",
        }
        for verb, arguments in VERBS.items():
            done = subprocess.run(
                [*npuprof, *arguments],
                cwd=tree,
                env=environ,
                capture_output=True,
                text=True,
                check=False,
            )
            answer = json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout
            found[verb] = {
                "exit": done.returncode,
                "stderr": done.stderr.replace(home, "{home}").splitlines(),
                "answer": answer,
            }
    return found


def list_rows(recording: Mapping[str, Any]) -> Iterator[Row]:
    """Yield all that the recording of a tree says, row by row."""
    for verb, told in recording.items():
        answer = told["answer"] if isinstance(told["answer"], dict) else {"text": told["answer"]}
        for kind, held in {"exit": told["exit"], "stderr": told["stderr"], **answer}.items():
            title = f"{verb} {kind}"
            for item in held if isinstance(held, list) else [held]:
                if kind == "presets" and isinstance(item, dict):
                    yield from _list_preset(title, item)
                elif isinstance(item, dict) and ("file" in item or "path" in item):
                    yield _read_row(title, item)
                elif isinstance(item, dict):
                    yield from (
                        Row(title, "", name, json.dumps(value)) for name, value in item.items()
                    )
                else:
                    yield Row(title, "", "", json.dumps(item))


def _list_preset(title: str, preset: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the values of a preset that import writes, and what it leaves out."""
    place = f"{preset['file']}: {preset['name']}"
    for section, held in preset.items():
        if section == "left_out":
            yield from (
                _read_row(f"{title} left out", item)._replace(reason=item["why"]) for item in held
            )
        elif isinstance(held, dict):
            yield from (
                Row(title, place, f"{section}.{key}", json.dumps(value, sort_keys=True))
                for key, value in held.items()
            )
        else:
            yield Row(title, place, section, json.dumps(held))


def _read_row(title: str, item: Mapping[str, Any]) -> Row:
    """Return a setting, a finding or a remark about a file as a row."""
    rest = dict(item)
    parts = [rest.pop(key) for key in ("file", "path", "line", "column") if key in rest]
    names = [
        rest.pop(key)
        for key in ("code", "surface", "key", "name", "field", "script", "call")
        if key in rest
    ]
    value = rest.pop("value") if "value" in rest else rest.pop("message", None)
    reason = rest.pop("reason", None) or ""
    return Row(
        title,
        ":".join(str(part) for part in parts if part is not None),
        " ".join(str(name) for name in names if name is not None),
        json.dumps(value, sort_keys=True),
        reason,
        json.dumps(rest, sort_keys=True),
    )


def compare_rows(before: Sequence[Row], after: Sequence[Row]) -> list[Difference]:
    """Return all rows of two recordings of a tree, each with its counterpart, in classes."""
    if before != after and sorted(before) == sorted(after):
        moved = next(pair for pair in zip(before, after, strict=True) if pair[0] != pair[1])
        return [Difference("other order", *moved)]
    pairs: list[Difference] = []
    left: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in before:
        left[row.identity].append(row)
    unpaired: list[Row] = []
    for row in after:  # rows that are equal belong together, whatever is between them
        if row in left[row.identity]:
            left[row.identity].remove(row)
            pairs.append(Difference("same", row, row))
        else:
            unpaired.append(row)
    for row in unpaired:
        old = left[row.identity].pop(0) if left[row.identity] else None
        pairs.append(Difference(classify(old, row), old, row))
    return pairs + [Difference("lost", row, None) for rows in left.values() for row in rows]


def classify(before: Row | None, after: Row) -> str:
    """Return the class of a row that is not as it was."""
    if before is None:
        return "new"
    if bool(before.reason) != bool(after.reason):
        return "became dynamic" if after.reason else "became static"
    return "other value" if before.value != after.value else "other details"


def compare(
    before: Mapping[str, Mapping[str, Any]],
    after: Mapping[str, Mapping[str, Any]],
    first: int | None = FIRST,
) -> tuple[list[str], bool]:
    """Return in lines how the recordings of trees differ, and whether they do."""
    lines: list[str] = []
    differs = False
    for tree in sorted(before.keys() | after.keys()):
        if tree not in before or tree not in after:
            lines.append(f"{tree}: only in the recording {'before' if tree in before else 'after'}")
            differs = True
            continue
        classes: dict[str, list[Difference]] = defaultdict(list)
        for difference in compare_rows(list(list_rows(before[tree])), list(list_rows(after[tree]))):
            classes[difference.sort].append(difference)
        lines.append(
            f"{tree}: "
            f"{', '.join(f'{len(classes[sort])} {sort}' for sort in CLASSES if classes[sort])}"
        )
        for sort in CLASSES[1:]:
            differs = differs or bool(classes[sort])
            lines += [f"    {difference}" for difference in classes[sort][:first]]
            if len(classes[sort]) > len(classes[sort][:first]):
                lines.append(
                    f"    ... and {len(classes[sort]) - len(classes[sort][:first])} more: {sort}"
                )
    return lines, differs


def read_recording(folder: Path) -> dict[str, Any]:
    """Return what was recorded of each tree."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record")
    recording.add_argument("folder", type=Path)
    recording.add_argument("trees", type=Path, nargs="+", metavar="TREE")
    recording.add_argument("--npuprof", default="npuprof", help="the command to run")
    comparing = verbs.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--all", action="store_true", help="print every difference")
    requested = parser.parse_args()
    if requested.verb == "record":
        program, *arguments = shlex.split(requested.npuprof)
        found = shutil.which(program)
        if not found or requested.folder.exists():
            parser.error(
                f"{requested.folder} exists" if found else f"there is no command {program}"
            )
        requested.folder.mkdir(parents=True)
        for tree in requested.trees:
            recorded = record_tree(tree, [os.path.abspath(found), *arguments])
            (requested.folder / f"{tree.resolve().name}.json").write_text(
                json.dumps(recorded, indent=1)
            )
            print(f"{tree.resolve().name}: {sum(1 for _ in list_rows(recorded))} rows", flush=True)
        return
    lines, differs = compare(
        read_recording(requested.before),
        read_recording(requested.after),
        None if requested.all else FIRST,
    )
    print(*lines or ["there is nothing to compare"], sep="\n")
    sys.exit(differs or not lines)


if __name__ == "__main__":
    main()
