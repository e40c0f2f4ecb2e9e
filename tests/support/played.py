"""Logs of a run for pages that read some.

Run ``python tests/support/played.py FOLDER PRESET KEY=VALUE...``.

The process was given what a preset of ``profiles/`` says, but for the values that are named; it is
made by the facts that are known of the adapter, since no NPU was at hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import npuprof
from support.adapterlogs import process, wire


def write_log(folder: Path, preset: str, changed: dict[str, object]) -> None:
    """Write the folder of logs of one process."""
    config = npuprof.open_store("profiles").resolve(preset)
    texts = npuprof.env(config)
    plain = {
        name: texts[f"NPUPROF_{name.upper()}"] if isinstance(value, (dict, list)) else value
        for name, value in config.options.items()
    }
    known = wire.list_options()
    process.write_log(
        folder, {name: value for name, value in {**plain, **changed}.items() if name in known}
    )


if __name__ == "__main__":
    write_log(
        Path(sys.argv[1]), sys.argv[2], dict(argument.split("=", 1) for argument in sys.argv[3:])
    )
