"""Files config.json with one to three changes, and what MindIE and npuprof say to them."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from npuprof.model import Context, Finding
from npuprof.scripts.lint import check_script
from npuprof.scripts.reading.file_kinds import import_script
from support.building import REPOSITORY

#: A file for each release: what the changes are made to, then changes with verdicts, one a line.
#: ``python -m support.mindie_variants RELEASE GIT_DIRECTORY REVISION`` in ``tests`` renews it.
RECORDS = REPOSITORY / "tests/catalog/mindie"
#: How many variants of a release are recorded, by verdict. MindIE starts with an ``overruled`` one
#: although a check refuses it, as CheckAllParam forgets what the checks found when
#: layerwiseDisaggregated is on. With an ``altered`` one, it reads a number of more than 32 bits as
#: another one, such as 2**32 as 0.
SHARES = {"accepted": 180, "refused": 220, "overruled": 3, "altered": 3}
#: How many variants are judged for it.
JUDGED = 1500
#: Errors that tell of a key that MindIE ignores, not of a value that stops it.
IGNORED = ("NP212", "NP404")
SHIPPED = "src/server/conf/config.json"
ROWS = tomllib.loads(
    (REPOSITORY / "npuprof/catalog/frameworks/mindie/settings.toml").read_text("utf-8")
)

SERVER, BACKEND = "ServerConfig", "BackendConfig"
SCHEDULE, DEPLOY = f"{BACKEND}.ScheduleConfig", f"{BACKEND}.ModelDeployConfig"
MODEL = f"{DEPLOY}.ModelConfig"
#: What the judge does not see: logs, and a key that counts while the server runs.
UNSEEN = ("Version", "LogConfig.", "EnableDynamicAdjustTimeoutConfig")

INTEGERS = (-(2**31) - 1, -1, 0, 1, 2, 3, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63)
VALUES = {
    "int": (*INTEGERS, 1.0, 1.5, "1", True, None, [1], {}),
    "bool": (True, False, True, False, 0, 1, "true", "", None, []),
    "str": ("", "one", "x" * 51, "x" * 501, 0, 1.5, False, None, ["one"], {}),
    "list": ([], ["a.pem"], ["a.pem", "b.pem"], ["a.pem"] * 4, [1], [[0]], "a.pem", 0, None, {}),
    "json": ({}, {"x": 1}, [], "x", 1, None),
}
KINDS = {"string": "str", "bool": "bool", "array": "list", "object": "json"}
#: Keys that the judge's doubles would answer for: only their kind is changed.
NAMES = ("Address", "Path", "Cert", "Pk")

FOUR = ["a.pem", "b.pem", "c.pem", "d.pem"]
LIMITS = (1, 50, 51, 199, 200, 201, 4999, 5000, 5001)
TOKENS = (2047, 2048, 2049, 8191, 8192, 8193)
ONE = {
    "modelName": "one",
    "modelWeightPath": "/models/one",
    "worldSize": 4,
    "cpuMemSize": 0,
    "npuMemSize": -1,
    "backendType": "atb",
    "trustRemoteCode": False,
}
PLUGINS = (
    '{"plugin_type": "splitfuse"}',
    {"plugin_type": "splitfuse"},
    '{"plugin_type": "mtp,splitfuse", "num_speculative_tokens": 1}',
    '{"plugin_type": "prefix_cache"}',
    {"plugin_type": "mtp", "num_speculative_tokens": 1},
    '{"plugin_type": "splitfuse"',
    "{}",
    "",
)
#: Keys that the checks compare, with values on both sides of where they stop.
RELATIONS: tuple[dict[str, tuple[Any, ...]], ...] = (
    {f"{SERVER}.port": (1120, 1121), f"{BACKEND}.multiNodesInferPort": (1120, 1121, 1025)},
    {
        f"{SCHEDULE}.maxPreemptCount": (0, 1, *LIMITS),
        f"{SCHEDULE}.maxBatchSize": LIMITS,
        f"{MODEL}.cpuMemSize": (0, 5),
    },
    {f"{SCHEDULE}.maxN": LIMITS, f"{SCHEDULE}.maxBatchSize": LIMITS},
    {f"{SCHEDULE}.maxPrefillBatchSize": (0, *LIMITS), f"{SCHEDULE}.maxBatchSize": LIMITS},
    {
        f"{SCHEDULE}.maxLongPartialPrefills": (1, 7, 8, 9, 64, 65),
        f"{SCHEDULE}.maxNumPartialPrefills": (1, 7, 8, 9, 64),
    },
    {
        f"{SCHEDULE}.maxPrefillTokens": TOKENS,
        f"{DEPLOY}.maxInputTokenLen": TOKENS,
        f"{SCHEDULE}.templateType": ("Standard", "Mix"),
    },
    {
        f"{BACKEND}.npuDeviceIds": ([[0]], [[0, 1]], [[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 0, 1, 2]]),
        f"{BACKEND}.modelInstanceNumber": (1, 2),
        f"{MODEL}.worldSize": (1, 2, 4, 8),
    },
    {
        f"{BACKEND}.npuDeviceIds": (
            [0, 1, 2, 3],
            [[0, 1, 2, -1]],
            [["0", "1", "2", "3"]],
            [[]],
            [],
        ),
        f"{MODEL}.worldSize": (0, 4),
    },
    {
        f"{SERVER}.httpsEnabled": (True, False),
        f"{SERVER}.tlsCaFile": ([], FOUR[:1], FOUR[:3], FOUR, [1]),
        f"{SERVER}.tlsCrlFiles": ([], FOUR[:3], FOUR, [1]),
        f"{SERVER}.managementTlsCaFile": ([], FOUR[:3], FOUR, [1]),
        f"{SERVER}.managementTlsCrlFiles": ([], FOUR[:3], FOUR, [1]),
        f"{SERVER}.metricsTlsCaFile": ([], FOUR[:3], FOUR, [1]),
        f"{SERVER}.metricsTlsCrlFiles": ([], FOUR[:3], FOUR, [1]),
    },
    {
        f"{SERVER}.interCommTLSEnabled": (True, False),
        f"{SERVER}.interCommTlsCaFiles": ([], FOUR, [1]),
        f"{SERVER}.interCommTlsCrlFiles": ([], FOUR, [1]),
        f"{SERVER}.interCommTlsCert": ("a.pem", 1),
    },
    {
        f"{BACKEND}.interNodeTLSEnabled": (True, False),
        f"{BACKEND}.interNodeTlsCaFiles": ([], FOUR[:3], FOUR, [1]),
        f"{BACKEND}.interNodeTlsCrlFiles": ([], FOUR[:3], FOUR, [1]),
        f"{BACKEND}.multiNodesInferEnabled": (True, False),
    },
    {
        f"{MODEL}.plugin_params": PLUGINS,
        f"{SCHEDULE}.templateType": ("Standard", "Mix"),
        f"{SCHEDULE}.splitChunkTokens": (0, 1, 512),
        f"{SCHEDULE}.supportSelectBatch": (True, False),
    },
    {f"{MODEL}": ([], [ONE], [ONE, ONE]), f"{SCHEDULE}.templateType": ("Standard", "Mix")},
    {
        f"{SCHEDULE}.supportSelectBatch": (True, False),
        f"{SCHEDULE}.stageSelectPolicy": (0, 1, 2, 3, 65536),
    },
    {
        f"{MODEL}.dp": (1, 2, 0, -1, "1", "0", "x", "2x", "", [1], 1.5),
        f"{MODEL}.sp": (1, 2, 0, "1", "0", "x"),
        f"{MODEL}.cp": (1, 2, 0, "1", "0", "x", True, False),
    },
    {
        f"{DEPLOY}.LoraModules": (
            [],
            [{"name": "a", "path": "/a", "baseModelName": "one"}],
            [{"name": "a", "path": "/a", "baseModelName": "other"}],
            [{"name": "-", "path": "/a", "baseModelName": "one"}],
            [{"name": "a", "path": "/a"}],
            {},
        ),
        f"{MODEL}.modelName": ("one", "-one", "o", "x" * 256, "x" * 257, "one two", "日本"),
    },
)
#: With layerwiseDisaggregated, always.
SPLIT: dict[str, tuple[Any, ...]] = {
    f"{SERVER}.layerwiseDisaggregatedRoleType": ("master", "slave", "", "other"),
    f"{SERVER}.layerwiseDisaggregatedDataPort": (1023, 1024, 65535, 65536),
    f"{SERVER}.layerwiseDisaggregatedCrtlPort": ([], [1023], [1024, 65536], ["1024"]),
    f"{SERVER}.layerwiseDisaggregatedSlaveIpAddress": ([], ["10.0.0.2"], ["a", "b"], [1]),
    f"{SERVER}.distDPServerEnabled": (True, False),
    f"{SERVER}.maxLinkNum": (0, 1),
    f"{BACKEND}.multiNodesInferEnabled": (True, False),
    f"{SCHEDULE}.supportSelectBatch": (True, False),
    f"{SCHEDULE}.bufferResponseEnabled": (True, False),
    f"{SCHEDULE}.templateType": ("Standard", "Mix"),
    f"{SCHEDULE}.layerwiseDisaggregated.nextPHeadPrior": (True, 1),
    f"{MODEL}.backendType": ("atb", "ms", "torch"),
    f"{MODEL}.dp": (1, 2, 3, "1", "2"),
    f"{MODEL}.plugin_params": PLUGINS,
    f"{BACKEND}.layerwiseDisaggregated": (
        {"layerwiseDisaggregatedMultiNodesInferEnabled": True},
        {
            "layerwiseDisaggregatedMultiNodesInferEnabled": True,
            "layerwiseDisaggregatedMultiNodesCtrlPort": 1023,
        },
        {
            "layerwiseDisaggregatedMultiNodesInferEnabled": True,
            "layerwiseDisaggregatedMultiNodesCtrlPort": 10003,
        },
        {},
    ),
}

#: A key with its new value, or a key that is left out.
Change = list[Any]


def _list_tables(data: dict[str, Any], path: str, *, make: bool) -> tuple[dict[str, Any], str]:
    *above, last = path.split(".")
    for part in above:
        data = data.setdefault(part, {}) if make else data.get(part, {})
        if isinstance(data, list):
            data = data[0] if data else {}
        if not isinstance(data, dict):  # another change's value
            data = {}
    return data, last


def change_file(data: dict[str, Any], changes: list[Change]) -> dict[str, Any]:
    """Return a file with changes; a list of tables stands for its first one in a path."""
    changed = copy.deepcopy(data)
    for path, *value in changes:
        table, key = _list_tables(changed, path, make=bool(value))
        if value:
            table[key] = copy.deepcopy(value[0])
        else:
            table.pop(key, None)
    return changed


def _list_values(record: dict[str, Any], key: str) -> tuple[str, list[Any]]:
    """Return the kind of a key and values on both sides of what it takes."""
    row = ROWS.get(key, {})
    kind = record["keys"].get(key, {}).get("kind", "")
    kind = KINDS.get(kind, "int") if kind else row.get("kind", "json").replace("path", "str")
    low, high = record["ranges"].get(key, (row.get("minimum"), row.get("maximum")))
    bounds = [bound + step for bound in (low, high) if bound is not None for step in (-1, 0, 1)]
    choices = [*row.get("choices", ())]
    choices += [each.upper() for each in choices if isinstance(each, str)]
    if key.endswith(NAMES):
        return kind, [each for each in VALUES[kind] if not isinstance(each, str)]
    return kind, [*bounds, *choices, *VALUES[kind]]


def _list_single_changes(
    record: dict[str, Any], data: dict[str, Any], pick: random.Random
) -> Iterator[list[Change]]:
    keys = [key for key in dict.fromkeys((*record["keys"], *ROWS)) if not key.startswith(UNSEEN)]
    for key in (*keys, SERVER, BACKEND, DEPLOY):
        table, last = _list_tables(data, key, make=False)
        for value in _list_values(record, key)[1]:
            yield [[key, value]]
        if last in table:
            yield [[key]]
            place = pick.randrange(1, len(last))
            wrong = last[:place] + last[place + 1 :] if pick.random() < 0.5 else last.lower()
            if wrong != last:
                yield [[key], [f"{key.removesuffix(last)}{wrong}", table[last]]]
    yield [[f"{SERVER}.{pick.choice(('host', 'maxTokens', 'portt'))}", 1]]


def list_variants(
    record: dict[str, Any], data: dict[str, Any], seed: int, number: int
) -> list[list[Change]]:
    """Return changes to a file, of a record of .ci/mindie_parser.py."""
    pick = random.Random(seed)
    single = list(_list_single_changes(record, data, pick))
    by_key: dict[str, list[list[Change]]] = {}
    for change in single:
        by_key.setdefault(change[0][0], []).append(change)
    keys = sorted(by_key)
    found: dict[str, list[Change]] = {}
    while len(found) < number:
        draw = pick.random()
        if draw < 0.6:
            many = 1 if draw < 0.45 else 2 if draw < 0.55 else 3
            changes = [each for key in pick.sample(keys, many) for each in pick.choice(by_key[key])]
        else:
            if draw < 0.9:
                changes, relation = [], pick.choice(RELATIONS)
            else:
                role = pick.choice(SPLIT[f"{SERVER}.layerwiseDisaggregatedRoleType"][:2])
                changes, relation = [[f"{SERVER}.layerwiseDisaggregated", True]], SPLIT
                changes.append([f"{SERVER}.layerwiseDisaggregatedRoleType", role])
            chosen = pick.sample(list(relation), min(len(relation), pick.choice((1, 2, 2, 3))))
            changes += [[key, pick.choice(relation[key])] for key in chosen]
        found.setdefault(json.dumps(changes, ensure_ascii=False), changes)
    return list(found.values())


def find_faults(data: dict[str, Any], release: str) -> list[Finding]:
    """Return what npuprof says to a file for a release, without notes."""
    imported = import_script("config.json", json.dumps(data, indent=1).encode())
    found = check_script(imported, Context(versions=(("mindie", release),)))
    return [each for each in found if each.severity != "info"]


def judge_files(git: str, revision: str, files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a revision of MindIE says to files."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.json") for number in range(len(files))]
        for path, data in zip(paths, files, strict=True):
            path.write_text(json.dumps(data), "utf-8")
        done = subprocess.run(
            [sys.executable, REPOSITORY / ".ci/mindie_judge.py", git, revision],
            input="".join(f"{path}\n" for path in paths),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def judge_variants(
    git: str, revision: str, data: dict[str, Any], variants: list[list[Change]]
) -> list[dict[str, Any]]:
    """Return what a revision says to variants of a file, with ``verdict``."""
    rows = judge_files(git, revision, [change_file(data, changes) for changes in variants])
    split = f"{SERVER}.layerwiseDisaggregated"
    doubted = [
        number
        for number, changes in enumerate(variants)
        if rows[number]["accepted"] and [split, True] in changes
    ]
    off = [change_file(data, [*variants[number], [split, False]]) for number in doubted]
    for row, changes in zip(rows, variants, strict=True):
        numbers = [value for _, *given in changes for value in given if isinstance(value, int)]
        is_long = any(not -(2**31) <= number < 2**32 for number in numbers)
        row["verdict"] = ("altered" if is_long else "accepted") if row["accepted"] else "refused"
    for number, row in zip(doubted, judge_files(git, revision, off), strict=True):
        if not row["accepted"]:
            rows[number] |= {"verdict": "overruled", "messages": row["messages"]}
    return rows


def disguise(value: Any) -> Any:
    """Return a shipped file with other names and paths than its own."""
    if isinstance(value, dict):
        return {key: disguise(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [disguise(inner) for inner in value]
    known = [
        each for row in ROWS.values() for each in (row.get("default"), *row.get("choices", ()))
    ]
    if not isinstance(value, str) or value in known:
        return value
    return f"made-up{'.pem' if value.endswith('.pem') else '/' if value.endswith('/') else ''}"


def read_record(release: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what the changes are made to, and the changes with verdicts."""
    lines = (RECORDS / f"{release}.jsonl").read_text("utf-8").splitlines()
    data, *rows = map(json.loads, lines)
    return data, rows


def record_release(release: str, git: str, revision: str) -> None:
    """Write the record of a release."""
    command = ["git", f"--git-dir={git}", "show", f"{revision}:{SHIPPED}"]
    shipped = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    data = disguise(json.loads(shipped))
    keys = json.loads((REPOSITORY / f".ci/upstream/mindie/{release}.json").read_text())
    variants = list_variants(keys, data, 72, JUDGED)
    lines = [json.dumps(data)]
    taken = dict.fromkeys(SHARES, 0)
    for changes, row in zip(variants, judge_variants(git, revision, data, variants), strict=True):
        verdict = row["verdict"]
        if taken[verdict] < SHARES[verdict]:
            taken[verdict] += 1
            lines.append(json.dumps({"verdict": verdict, "changes": changes}, ensure_ascii=False))
    RECORDS.mkdir(exist_ok=True)
    (RECORDS / f"{release}.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    record_release(*sys.argv[1:])
