"""The records of the processes of a launch: which ranks got the same settings, and in what the others differ.

A launch is what one launcher started: its records have the same writer, job and size. Of each preset the newest launch counts, of each
rank the newest record. Presets share a launch if each was given to ranks of its own. Records of processes without a rank are runs of
their own.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from npuprof.catalog import find_variable, load_env_twins
from npuprof.catalog.launchers import FACTS
from npuprof.compare.pairs import Pair, build_preset_pair
from npuprof.document import keys
from npuprof.model import Finding, Record
from npuprof.report.text import escape_controls, format_count
from npuprof.resolve.config import Config
from npuprof.runs.records import list_record_names, read_folder
from npuprof.store.spec import Workspace

#: What stands before the number of a process that has no rank.
RUN = "run "
#: A size that no launch has: missing ranks are not listed up to it.
_LARGEST = 100_000


class Launch(Record):
    """The records of one launch: how its preset is called, the newest path of each label, and how many older records there are.

    ``size`` is how many processes the launcher started, None if that is not known or no rank is.
    """

    name: str
    size: int | None
    paths: dict[str, str]
    older: int

    @property
    def missing(self) -> tuple[str, ...]:
        """The ranks without a record, if the size is known."""
        return tuple(str(rank) for rank in range(self.size or 0) if str(rank) not in self.paths)


def find_launches(read: Mapping[str, dict[str, Any]]) -> list[Launch]:
    """Return the newest launch of each preset whose records were read from paths, by preset and by who wrote the records."""
    groups: dict[tuple[Any, ...], dict[str, dict[str, dict[str, Any]]]] = {}
    for path in sorted(read, key=lambda path: str(read[path].get("start") or "")):
        fields = read[path]
        by = " (env-loader)" if fields.get("by") == "env-loader" else ""
        key = by, str(_find_fact(fields, "job")), _find_number(fields, "world_size")
        groups.setdefault(key, {}).setdefault(f"{fields['preset']['name']}{by}", {})[path] = fields
    latest: dict[str, Launch] = {}
    for (_, _, size), presets in groups.items():
        for launch in _join_presets([_select_newest(name, size, records) for name, records in presets.items()]):
            before = latest.get(launch.name)
            older = before.older + len(before.paths) if before is not None else 0
            latest[launch.name] = launch._replace(older=launch.older + older)
    return sorted(latest.values(), key=lambda launch: launch.name)


def sort_label(label: str) -> tuple[int, str]:
    """Return by what labels are sorted: ranks by number, before what has none."""
    if label.startswith(RUN):
        return (1 << 61) + int(label.removeprefix(RUN)), ""
    return (int(label), "") if label.isdecimal() else (1 << 62, label)


def _select_newest(name: str, size: int | None, records: Mapping[str, dict[str, Any]]) -> Launch:
    """Return the launch of records of one preset, which are in the order in which they began."""
    runs = _number_runs(records)
    newest = {runs.get(path) or str(_find_number(fields, "rank") or 0): path for path, fields in records.items()}
    known_size = None if runs or size is None or size > _LARGEST else size
    return Launch(name, known_size, dict(sorted(newest.items(), key=lambda pair: sort_label(pair[0]))), len(records) - len(newest))


def _join_presets(launches: list[Launch]) -> list[Launch]:
    """Return launches, as one if each preset was given to ranks of its own: the most common names it."""
    labels = [label for launch in launches for label in launch.paths]
    if len(launches) < 2 or len(set(labels)) < len(labels) or any(label.startswith(RUN) for label in labels):
        return launches
    paths = {label: path for launch in launches for label, path in launch.paths.items()}
    joined = dict(sorted(paths.items(), key=lambda pair: sort_label(pair[0])))
    return [max(launches, key=lambda launch: len(launch.paths))._replace(paths=joined, older=sum(launch.older for launch in launches))]


def _number_runs(records: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return labels of the processes that no launcher gave a rank, in the order in which they began: each is a run of its own.

    One that is alone is rank 0, as in the name of its record.
    """
    if len(records) < 2:
        return {}
    alone = [path for path, fields in records.items() if _find_number(fields, "rank") is None]
    return {path: f"{RUN}{number}" for number, path in enumerate(alone, 1)}


def _find_number(fields: Mapping[str, Any], name: str) -> int | None:
    """Return a number that the launcher set for a process, None if its record has none."""
    value = _find_fact(fields, name)
    return value if type(value) is int and value >= 0 else None


def _find_fact(fields: Mapping[str, Any], name: str) -> Any:
    """Return what a record says of its process, None where it does not."""
    process = fields.get("process")
    return process.get(name) if isinstance(process, dict) else None


#: Variables of npuprof's own say again what the settings say, but for these.
_OWN = "NPUPROF_"


class Ranks(Record):
    """Processes that were given the same: their records by path, the labels of their ranks, and what one of them resolves to.

    ``pair`` is what differs from most of the processes, None for those themselves; ``environment`` has the variables that do,
    with both values (None: not set), ``told`` what else differs: the preset, the npuprof that started it.
    """

    paths: tuple[str, ...]
    labels: tuple[str, ...]
    config: Config
    pair: Pair | None
    environment: dict[str, tuple[str | None, str | None]]
    told: dict[str, tuple[str | None, str | None]]
    endings: tuple[str, ...]

    @property
    def title(self) -> str:
        """The ranks as people read them: ``ranks 0-2, 4``."""
        return name_ranks(self.labels)


class Processes(Record):
    """All processes of one launch, most of them first; how many older records were left out, and the ranks that have none."""

    name: str
    groups: tuple[Ranks, ...]
    older: int
    missing: tuple[str, ...]
    size: int | None

    @property
    def count(self) -> int:
        """How many processes there are."""
        return sum(len(group.paths) for group in self.groups)


def holds_records(folder: str) -> bool:
    """Return whether a folder contains records of runs."""
    return bool(list_record_names(folder))


def load_processes(folder: str, workspace: Workspace) -> tuple[list[Processes], list[Finding]]:
    """Return the processes whose records a folder contains, by preset and writer, and findings about unreadable records.

    Raises NpuprofError.
    """
    read, unread = read_folder(folder)
    return [_compare_processes(launch, read, workspace) for launch in find_launches(read)], unread


def _compare_processes(launch: Launch, records: dict[str, dict[str, Any]], workspace: Workspace) -> Processes:
    newest = launch.paths
    alike: dict[str, list[str]] = {}
    for rank in newest:
        alike.setdefault(identify_record(records[newest[rank]]), []).append(rank)
    groups = sorted(alike.values(), key=lambda ranks: (-len(ranks), sort_label(ranks[0])))
    compared: list[Ranks] = []
    for ranks in groups:
        first = newest[ranks[0]]
        config = workspace.resolve_spec(
            first if os.path.isabs(first) or first.startswith(f"{os.pardir}/") else os.path.join(os.curdir, first)
        )
        base = compared[0] if compared else None
        pair = build_preset_pair(base.config, config, name_ranks(ranks, one="rank")) if base else None
        environment = compare_environments(records[base.paths[0]], records[first]) if base else {}
        origins = compare_origins(records[base.paths[0]], records[first]) if base else {}
        paths = tuple(newest[rank] for rank in ranks)
        compared.append(
            Ranks(paths, tuple(ranks), config, pair, environment, origins, tuple(describe_ending(records[path]) for path in paths))
        )
    return Processes(launch.name, tuple(compared), launch.older, launch.missing, launch.size)


def name_ranks(labels: Sequence[str], one: str = "") -> str:
    """Return who processes are: ``ranks 0-2, 4``, or ``run 2`` where they have no rank; ``one`` is the word however many there are."""
    if all(label.startswith(RUN) for label in labels):
        return ", ".join(labels)
    return f"{one or ('ranks' if len(labels) > 1 else 'rank')} {join_ranks(labels)}"


def join_ranks(labels: Sequence[str]) -> str:
    """Return ranks as people write them, neighbours as a span: ``0-2, 4``."""
    spans: list[list[str]] = []
    for label in labels:
        if spans and label.isdecimal() and spans[-1][-1].isdecimal() and int(spans[-1][-1]) + 1 == int(label):
            spans[-1] = [spans[-1][0], label]
        else:
            spans.append([label])
    return ", ".join("-".join(span) for span in spans)


def identify_record(fields: dict[str, Any]) -> str:
    """Return what records of processes have in common that were given the same."""
    settings = {setting["key"]: setting["value"] for setting in fields["settings"]}
    return json.dumps([settings, _select_shared(fields), _select_origins(fields)], sort_keys=True)


def _select_origins(fields: dict[str, Any]) -> dict[str, str]:
    """Return who gave a process its settings: the preset, the npuprof that read it, and what it read it for."""
    return {"preset": fields["preset"]["name"], "npuprof": str(fields.get("npuprof"))} | {
        "context" if name == "text" else name: str(value) for name, value in (fields.get("context") or {}).items() if value is not None
    }


def compare_origins(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[str | None, str | None]]:
    """Return where presets, versions of npuprof, releases and products differ between two records, with both; None where one has none."""
    return _pair_differing(_select_origins(before), _select_origins(after))


def _pair_differing(old: dict[str, str], new: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    return {name: (old.get(name), new.get(name)) for name in {**old, **new} if old.get(name) != new.get(name)}


def _select_shared(fields: dict[str, Any]) -> dict[str, str]:
    """Return the variables of a process that should be the same for all, and that do not say again what the settings say."""
    repeated: set[str] = set()
    for section, name in (keys.split_section_and_name(setting["key"]) for setting in fields["settings"]):
        repeated.update((name,) if section == "env" else load_env_twins().get(name, ()) if section == "options" else ())
    log = (fields.get("proof") or {}).get("log")  # a folder of its own, where npuprof has switched the log on
    variables = (fields.get("environment") or {}).items()
    return {name: str(text) for name, text in variables if name not in repeated and text != log and _is_shared(name)}


def _is_shared(name: str) -> bool:
    if name.startswith(_OWN) or any(name in row for row in FACTS.values()):
        return False
    known = find_variable(name)
    return known is None or not (known.per_process or known.launcher or known.freeze in ("launcher", "never"))


def compare_environments(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[str | None, str | None]]:
    """Return the variables that differ between two records, with both values; what is a process's own does not count."""
    return dict(sorted(_pair_differing(_select_shared(before), _select_shared(after)).items()))


def describe_ending(fields: dict[str, Any]) -> str:
    """Return how a process ended, in words."""
    ending = fields.get("exit") or {}
    if ending.get("signal"):
        return f"died of {ending['signal']}"
    if fields.get("state") in ("ended", "not started"):
        return f"exit {ending.get('code')}" if fields["state"] == "ended" else "not started"
    return "no end recorded" if fields.get("state") == "running" else ""


def list_endings(groups: Iterable[Ranks]) -> list[str]:
    """Return how many processes ended in which way, where not all did in the same; the rarest with their ranks."""
    by_ending: dict[str, list[str]] = {}
    for group in groups:
        for label, ending in zip(group.labels, group.endings, strict=True):
            by_ending.setdefault(ending, []).append(label)
    if len(by_ending) < 2:
        return []
    order = Counter({ending: len(labels) for ending, labels in by_ending.items()}).most_common()
    return [f"{ending or 'unknown'}: {name_ranks(sorted(by_ending[ending], key=sort_label), one='rank')}" for ending, _ in order]


def format_differences(changed: dict[str, tuple[str | None, str | None]], kind: str) -> list[str]:
    """Return what differs as lines that end in a word for it: ``~ NAME a → b  (environment)``."""
    lines = []
    for name, (old, new) in changed.items():
        sign = "+" if old is None else "-" if new is None else "~"
        values = " → ".join(repr(text) for text in (old, new) if text is not None)
        lines.append(f"{sign} {escape_controls(f'{name} {values}')}  ({kind})")
    return lines


def describe_count(processes: Processes) -> str:
    """Return how many processes are alike, and which are not."""
    first, *others = processes.groups
    count = f"{format_count(processes.count, 'record')} of {processes.name}"
    if not others:
        return f"{count}: all were given the same"
    alone = len(others) == 1 and len(others[0].labels) == 1
    difference = f"{'; '.join(group.title for group in others)} {'differs' if alone else 'differ'}"
    return f"{count}: {difference} from {first.title}" if len(first.labels) == 1 else f"{count}: {first.title} alike; {difference}"
