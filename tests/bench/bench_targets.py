"""How long all targets of 1,000 presets take against resolving them: ``python tests/bench/bench_targets.py``.

Each preset extends a base of fifteen options and sets ten of its own. A target that cannot carry a preset says so,
and that is counted as well. Printed are ratios to the time in which the same presets are read and resolved.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from pathlib import Path

from npuprof import renderers
from npuprof.model import NpuprofError
from npuprof.store import spec

NUMBER = 1_000

_BASE = """\
[options]
graph_run_mode = 1
deterministic = 1
static_memory_policy = 0
enable_exception_dump = 2
precision_mode_v2 = "mixed_float16"
enable_dump = true
dump_path = "/data/dump"
dump_mode = "all"
hcom_parallel = true
enable_small_channel = 0
op_compiler_cache_mode = "enable"
op_compiler_cache_dir = "./op_cache"
aicore_num = "24|48"
jit_compile = "auto"
stream_sync_timeout = 60000
"""
_LEAF = """\
[profile]
description = "Preset {0}"
extends = ["base"]

[options]
stream_sync_timeout = {0}
modify_mixlist = "/data/{0}/ops_info.json"
debug_dir = "/data/{0}"
export_compile_stat = 1
event_sync_timeout = 10
input_fusion_size = 0
external_weight = false
compile_dynamic_mode = false
op_precision_mode = "/data/op_precision.ini"
customize_dtypes = "/data/customize_dtypes.cfg"
"""


def measure(store: str) -> dict[str, float]:
    """Return the seconds of resolving (``resolve``) and of each target."""
    start = time.perf_counter()
    workspace = spec.Workspace(store)
    configs = [workspace.resolve_spec(name) for name in workspace.store.names()]
    digests = {config.digest for config in configs}
    taken = {"resolve": time.perf_counter() - start}
    assert len(digests) == NUMBER + 1
    for name in renderers.MODULES:
        target = renderers.load_target(name)
        start = time.perf_counter()
        for config in configs:
            try:
                target.write(config, False)
            except NpuprofError:
                continue
        taken[name] = time.perf_counter() - start
    return taken


def main() -> int:
    """Print the ratios; return 1 where all targets together take more than 3 times as long as resolving."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "base.toml").write_text(_BASE, encoding="utf-8")
        for number in range(NUMBER):
            Path(folder, f"p{number}.toml").write_text(_LEAF.format(number), encoding="utf-8")
        gc.disable()  # as the command does
        rounds = [measure(folder) for _ in range(5)]
    best = {name: min(taken[name] for taken in rounds) for name in rounds[0]}
    base = best.pop("resolve")
    for name, taken in best.items():
        print(f"{name:20} {taken / base:.2f}")
    total = sum(best.values()) / base
    print(f"{'all targets':20} {total:.2f}  (at most 3)")
    return 0 if total <= 3 else 1


if __name__ == "__main__":
    sys.exit(main())
