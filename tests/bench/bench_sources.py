"""Costs of three sources with 100, 1,000 and 10,000 presets, as a table and a plot.

Run ``python tests/bench/bench_sources.py [PAGE.md]``. Processor time of a command and all that it
starts, the least of some runs, in multiples of the bare interpreter; ``render`` of a preset with
locked parents is measured against the same preset with local ones. Where a page is named, as
``npuprof/docs/guides/sources.md``, its measured part gets the table, and an SVG file beside it a
plot. Exits 1 where a line is not held.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from bench.workplace import BARE_RUN, time_command

from support.repositories import ENVIRONMENT, Repo

SIZES = (100, 1_000, 10_000)
SOURCES = ("alpha", "beta", "gamma")
_SCRIPT = Path(sys.executable).with_name("npuprof")
NPUPROF = [str(_SCRIPT)] if _SCRIPT.exists() else [sys.executable, "-m", "npuprof"]
#: The most that a preset with locked parents may cost, in multiples of one with local parents.
LINE = 1.3
_BASE = "[profile]\nscenario = 'training'\nabstract = true\n[options]\nhccl_timeout = {}\n"
_HEIR = (
    "[profile]\nextends = ['{}']\n[options]\niterations_per_loop = {}\n"
    "enable_data_pre_proc = true\n"
)


def main() -> int:
    """Measure and print; return 1 where a line is not held."""
    found: dict[str, list[float]] = {}
    worst = 0.0
    os.environ.update(ENVIRONMENT)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="npuprof-bench-") as name:
        for size in SIZES:
            folder = Path(name) / str(size)
            os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
            app, local = _build(folder, size)
            bare = min(
                time_command(app, BARE_RUN) for _ in range(10)
            )  # what else the machine does only adds
            rounds = 4 if size > 1_000 else 8
            shutil.rmtree(folder / "cache")
            first = time_command(app, [*NPUPROF, "source", "sync"])
            found.setdefault("sync, nothing there", []).append(first / bare)
            for title, arguments in {
                "sync, all there": ["source", "sync"],
                "list": ["list"],
                "check": ["check"],
                "render": ["render", "job0"],
            }.items():
                found.setdefault(title, []).append(
                    min(time_command(app, [*NPUPROF, *arguments]) for _ in range(rounds)) / bare
                )
            pairs = [
                (
                    time_command(app, [*NPUPROF, "render", "job0"]),
                    time_command(local, [*NPUPROF, "render", "job0"]),
                )
                for _ in range(25)
            ]
            ratio = statistics.median(sourced / own for sourced, own in pairs)
            found.setdefault("render / the same with local parents", []).append(ratio)
            worst = max(worst, ratio)
    print(f"{'presets in three sources':38}" + "".join(f"{size:>10,}" for size in SIZES))
    for title, values in found.items():
        print(f"{title:38}" + "".join(f"{value:>10.2f}" for value in values))
    if len(sys.argv) > 1:
        page = Path(sys.argv[1])
        page.with_suffix(".svg").write_text(draw_svg(found))
        measured = format_measured(found, page.with_suffix(".svg").name)
        page.write_text(
            re.sub(
                r"(?s)(?<=<!-- measured -->\n).*?(?=<!-- end -->)",
                lambda _: measured,
                page.read_text(),
            )
        )
    print(
        f"{worst:7.2f}  hold {LINE}  {'' if worst <= LINE else 'NOT HELD  '}render "
        "with locked parents / with local ones"
    )
    return int(worst > LINE)


def _build(folder: Path, size: int) -> tuple[Path, Path]:
    """Make three sources; return a repository that uses them, and one with the same parents."""
    each = size // len(SOURCES)
    app, local = Repo(folder / "app"), Repo(folder / "local")
    for source in SOURCES:
        made = Repo(folder / source)
        made.write({f"base{number}": _BASE.format(1800 + number % 60) for number in range(each)})
        made.commit()
        made.git("tag", "-a", "v1.0.0", "-m", "1.0.0")
        time_command(app.folder, [*NPUPROF, "source", "add", source, f"file://{made.folder}"])
    app.write(
        {
            f"job{number}": _HEIR.format(f"{SOURCES[number % 3]}:base{number % each}", number + 2)
            for number in range(size)
        }
    )
    local.write({f"base{number}": _BASE.format(1800 + number % 60) for number in range(each)})
    local.write(
        {f"job{number}": _HEIR.format(f"base{number % each}", number + 2) for number in range(size)}
    )
    app.commit()
    local.commit()
    return app.folder, local.folder


def format_measured(found: dict[str, list[float]], plot: str) -> str:
    """Return the part of the page that holds the table, with the plot below it."""
    rows = []
    for title, values in found.items():
        cells = " | ".join(f"{value:.2f}" for value in values)
        rows.append(f"| {title} | {cells} |")
    return "\n".join(
        [
            (
                "Written by `tests/bench/bench_sources.py`: a repository takes presets from three "
                "sources, each with a third of them, and has"
            ),
            (
                "as many child presets. Processor time of a command and all that it starts, the "
                "least of some runs, in multiples of a bare Python."
            ),
            (
                "The last row compares `render` of a preset with locked parents to one with "
                f"local parents; the limit is {LINE}."
            ),
            "",
            "| presets | " + " | ".join(f"{size:,}" for size in SIZES) + " |",
            "|---|" + "---:|" * len(SIZES),
            *rows,
            "",
            f"![The same as a plot]({plot})",
            "",
        ]
    )


def draw_svg(found: dict[str, list[float]]) -> str:
    """Return a plot: lines over the number of presets, both axes logarithmic."""
    width, height, left, low = 640, 400, 60, 340
    most = max(math.log10(value) for values in found.values() for value in values)
    colours = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b")
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            'font-family="sans-serif" font-size="12">'
        )
    ]
    for power in range(math.ceil(most) + 1):
        y = low - (low - 20) * power / most
        parts.append(
            f'<text x="4" y="{y:.0f}">{10**power} x bare</text><path d="M{left} '
            f'{y:.0f}H{width - 200}" stroke="#ddd"/>'
        )
    for place, (title, values) in enumerate(found.items()):
        points = [
            (
                left + index * (width - 260) / (len(SIZES) - 1),
                low - (low - 20) * math.log10(max(value, 1)) / most,
            )
            for index, value in enumerate(values)
        ]
        line = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
        colour = colours[place % len(colours)]
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{width - 190}" y="{30 + 18 * place}" fill="{colour}">{title}</text>'
        )
    for index, size in enumerate(SIZES):
        parts.append(
            f'<text x="{left + index * (width - 260) / (len(SIZES) - 1) - 20:.0f}" '
            f'y="{low + 20}">{size:,}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    sys.exit(main())
