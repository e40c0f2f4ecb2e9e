"""All benchmarks in one run: each goal with its figure, its limit, and whether it holds.

Run ``python tests/bench/bench_all.py``. ``--update`` also writes ``measured.json``,
``npuprof/docs/reference/speed.md`` and its plot, if other processes left the machine alone.
``--reduced`` tries all rows with small inputs, ``--only REGEX`` measures those whose title matches.

A row that needs the network, a clone or another program is skipped, with the reason, where it is
not there. Exits 1 if a limit is exceeded or a row failed, 2 if ``--update`` was refused.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bench import bench_engine, bench_history, bench_scan, bench_verify
from bench.measured import (
    FILE,
    Goal,
    Load,
    describe_machine,
    describe_refusal,
    keep_rows,
    measure_goals,
)
from bench.workplace import ROOT, Workplace
from end_to_end.ecosystem.ecosystem import CACHE, CLONES

from support import generated
from support.documents import fill_generated_parts

GOALS = (*bench_engine.GOALS, *bench_history.GOALS, *bench_scan.GOALS, *bench_verify.GOALS)
PAGE = ROOT / "npuprof" / "docs" / "reference" / "speed.md"


def main() -> int:
    """Measure in a temporary folder; return the exit code."""
    arguments = parse_arguments(sys.argv[1:])
    load = Load()
    refusal = describe_refusal(load.read()) if arguments.update else ""
    if refusal:
        print(refusal)
        return 2
    for variable in ("PYTHONDONTWRITEBYTECODE", "NPUPROF_STORE", "NPUPROF_DEBUG"):
        os.environ.pop(variable, None)
    with tempfile.TemporaryDirectory(prefix="npuprof-bench-") as name:
        place = Workplace(Path(name), arguments.reduced, arguments.clones, Path(arguments.cache))
        os.environ["HOME"] = os.environ["XDG_CACHE_HOME"] = name
        place.npuprof  # noqa: B018 - without it, there are no rows
        return run(GOALS, arguments, place, load)


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write measured.json and speed.md")
    parser.add_argument("--reduced", action="store_true", help="try all rows with small inputs")
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="measure rows whose title matches"
    )
    parser.add_argument(
        "--clones",
        default=CLONES,
        metavar="FOLDER",
        help="take public trees from clones in FOLDER [default: $ECOSYSTEM_CLONES]",
    )
    parser.add_argument(
        "--cache",
        default=CACHE,
        metavar="FOLDER",
        help="keep fetched commits in FOLDER [default: .cache/ecosystem]",
    )
    arguments = parser.parse_args(words)
    if arguments.update and (arguments.reduced or arguments.only):
        parser.error("--update needs all rows at full size")
    return arguments


def run(
    goals: Sequence[Goal],
    arguments: argparse.Namespace,
    place: Workplace,
    load: Load,
    file: Path = FILE,
    page: Path = PAGE,
) -> int:
    """Measure goals, print their rows and the load, and keep them if asked to and quiet."""
    print(describe_machine(load.before), "before the first row")
    if arguments.reduced:
        print("reduced size: the figures are no measurements")
    rows = measure_goals([goal for goal in goals if re.search(arguments.only, goal.title)], place)
    others = load.read()
    print(f"load of other processes: {others:.1f} (before the first row: {load.before:.1f})")
    exceeded = sum(row.is_exceeded for row in rows)
    failed = sum(row.has_failed for row in rows)
    skipped = sum(bool(row.missing) for row in rows) - failed
    print(f"{len(rows)} rows: {exceeded} exceeded, {skipped} skipped, {failed} failed")
    if arguments.update:
        refusal = describe_refusal(others)
        if failed and not refusal:
            refusal = "speed.md is not updated: rows failed."
        if refusal:
            print(refusal)
            return 2
        keep_rows(rows, others, file)
        page.write_text(fill_generated_parts(page.read_text("utf-8")), "utf-8")
        page.with_suffix(".svg").write_text(generated.draw_speed(), "utf-8")
    return int(bool(exceeded or failed))


if __name__ == "__main__":
    sys.exit(main())
