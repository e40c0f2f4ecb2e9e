"""How many trials ``bisect`` asks for, against what is promised: 2 k log2(n / k) + 2 k + 4 for k of n settings needed together.

Run ``python tests/bench/bench_trials.py``. A thousand planted cases, the worst and the mean share of the promise; then what a trial
costs beside ``npuprof run``, whole processes. Exits 1 where a line is not held.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
CASES, ROUNDS, SETTINGS = 1000, 7, 24


def count_trials(count: int, needed: int) -> int:
    from npuprof.trials.search import BAD, GOOD, find_cause

    asked = {0, (1 << count) - 1}

    def ask(units: int) -> str:
        asked.add(units)
        return BAD if units & needed == needed else GOOD

    assert find_cause([1 << place for place in range(count)], ask).units == needed
    return len(asked)


def measure_search() -> bool:
    chance = random.Random(1)
    shares, single = [], []
    for _ in range(CASES):
        count = chance.randint(4, 128)
        k = chance.choice([1, 1, 2, 3, chance.randint(1, count // 4)])
        k = min(k, count // 4)
        trials = count_trials(count, sum(1 << place for place in chance.sample(range(count), k)))
        shares.append(trials / (2 * k * math.log2(count / k) + 2 * k + 4))
        if k == 1:
            single.append(trials - math.log2(count))
    print(f"{CASES} planted cases: worst {max(shares):.2f}, mean {statistics.mean(shares):.2f} of the promise (hold 1.00)")
    print(f"one setting of n: log2(n) + {statistics.mean(single):.1f} on average")
    return max(shares) <= 1


def measure_cost() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "profiles")
        store.mkdir()
        for name, value in (("good", 1), ("bad", 2)):
            store.joinpath(f"{name}.toml").write_text("[env]\n" + "".join(f"S{place} = {value}\n" for place in range(SETTINGS)))
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        npuprof = [sys.executable, "-m", "npuprof"]
        judge = ["sh", "-c", '[ "$S3$S9$S20" != 222 ]']

        def take(words: list[str]) -> float:
            began = time.perf_counter()
            subprocess.run([*npuprof, *words], cwd=folder, env=environment, capture_output=True, check=False)
            return time.perf_counter() - began

        take(["run", "bad", "--", *judge])
        runs = statistics.median(take(["run", "bad", "--", *judge]) for _ in range(ROUNDS))
        whole = statistics.median(take(["bisect", "good", "bad", "--fresh", "--", *judge]) for _ in range(ROUNDS))
        journal = next(Path(folder).glob(".npuprof/trials/*/journal.jsonl"))
        trials = len(journal.read_text().splitlines()) - 1
    print(f"bisect, {trials} trials: {whole / trials / runs:.2f} of npuprof run a trial (hold 1.5)")
    return whole / trials / runs <= 1.5


if __name__ == "__main__":
    held = [measure_search(), measure_cost()]
    sys.exit(0 if all(held) else 1)
