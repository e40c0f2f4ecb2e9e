"""Figures that benchmarks keep for ``npuprof/docs/reference/speed.md``.

With ``--keep`` they are written to ``measured.json``.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("measured.json")
#: What was measured, the figure, the limit if there is one, and whether more is better.


class Row(NamedTuple):
    """A measured figure and its limit, an upper one unless ``more`` is better."""

    title: str
    figure: float
    limit: float | None
    more: bool = False


def keep_figures(bench: str, rows: Sequence[Row]) -> None:
    """Keep what a benchmark measured, and on what kind of machine, if it was asked to."""
    if "--keep" not in sys.argv:
        return
    _, _, load = os.getloadavg()
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    kept[bench] = {
        "day": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} on {platform.machine()}, Python "
        f"{platform.python_version()},"
        f" load {load:.1f}",
        "rows": [[title, round(figure, 2), limit, more] for title, figure, limit, more in rows],
    }
    text = json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False)
    FILE.write_text(text + "\n", encoding="utf-8")


def print_rows(rows: Sequence[Row]) -> int:
    """Print what was measured beside its limit; return 1 where one is exceeded."""
    exceeded = 0
    for title, figure, limit, more in rows:
        is_kept = limit is None or (figure >= limit if more else figure <= limit)
        exceeded |= not is_kept
        shown = "" if limit is None else f"{'at least' if more else 'at most'} {limit:g}"
        print(f"{figure:8.2f}  {shown:<14} {'' if is_kept else 'EXCEEDED  '}{title}")
    return int(exceeded)
