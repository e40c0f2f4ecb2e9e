"""Figures that benchmarks keep for ``npuprof/docs/speed.md``: with ``--keep`` they go to ``measured.json`` beside this file."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

FILE = Path(__file__).with_name("measured.json")
#: What was measured, the figure, the line that is held if there is one, and whether more is better.
Row = tuple[str, float, float | None, bool]


def keep_figures(bench: str, rows: Sequence[Row]) -> None:
    """Keep what a benchmark measured, and on what kind of machine, if it was asked to."""
    if "--keep" not in sys.argv:
        return
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    kept[bench] = {
        "day": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} on {platform.machine()}, Python {platform.python_version()},"
        f" load {os.getloadavg()[2]:.1f}",
        "rows": [[title, round(figure, 2), line, more] for title, figure, line, more in rows],
    }
    text = json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False)
    FILE.write_text(text + "\n", encoding="utf-8")
