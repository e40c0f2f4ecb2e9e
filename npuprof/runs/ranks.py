"""The records of the processes of a launch: which ranks got the same settings, and in what the others differ.

A launch is what one launcher started: its records have the same writer, job and size. Of each rank the newest record counts. Presets
share a launch if each was given to ranks of its own at the same time. Records of processes without a rank are runs of their own.
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
    """The records of one launch: how its preset is called, the newest path of each label, how many older ones there are.

    ``key`` is the writer, the job and the size that its records have, ``span`` when it began and ended. ``missing`` are the ranks without
    a record, if ``size`` is known.
    """

    name: str
    key: tuple[Any, ...]
    span: tuple[str, str]
    paths: dict[str, str]
    older: int
    missing: tuple[str, ...] = ()

    @property
    def size(self) -> int | None:
        """How many processes the launcher started, None if that is not known or no rank is."""
        size: int | None = self.key[2]
        return None if size is None or size > _LARGEST or self.has_runs else size

    @property
    def has_runs(self) -> bool:
        """Whether some process has no rank."""
        return any(label.startswith(RUN) for label in self.paths)


def find_launches(read: Mapping[str, dict[str, Any]]) -> list[Launch]:
    """Return the launches whose records were read from paths, by preset and by who wrote the records."""
    parts: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for path in sorted(read, key=lambda path: _find_start(read[path])):
        fields = read[path]
        by = " (env-loader)" if fields.get("by") == "env-loader" else ""
        job = _find_fact(fields, "job")
        key = by, job if isinstance(job, str) else None, _find_number(fields, "world_size")
        parts.setdefault((f"{fields['preset']['name']}{by}", key), {})[path] = fields
    launches = _drop_older([_select_newest(name, key, part) for (name, key), part in parts.items()])
    joined = _join_presets(launches)
    return [launch._replace(missing=_list_missing(launch)) for launch in sorted(joined, key=lambda launch: launch.name)]


def sort_label(label: str) -> tuple[int, str]:
    """Return by what labels are sorted: ranks by number, before what has none."""
    if label.startswith(RUN):
        return (1 << 61) + int(label.removeprefix(RUN)), ""
    return (int(label), "") if label.isdecimal() else (1 << 62, label)


def _select_newest(name: str, key: tuple[Any, ...], records: Mapping[str, dict[str, Any]]) -> Launch:
    """Return the newest record of each rank, without those of an earlier launch: the other ranks were started again after they ended."""
    runs = _number_runs(records)
    labels = {path: runs.get(path) or _label_rank(fields) for path, fields in records.items()}
    newest = {label: path for path, label in labels.items()}  # in the order in which they began
    counts = Counter(labels.values())
    most = max(counts.values())
    again = min(_find_start(records[newest[label]]) for label, count in counts.items() if count == most)
    for label, count in counts.items():
        ended = str(records[newest[label]].get("end") or "")  # the process may still run if it has no end
        if count < most and ended and ended < again:
            del newest[label]
    span = min(map(_find_start, records.values())), max(str(fields.get("end") or _find_start(fields)) for fields in records.values())
    return Launch(name, key, span, dict(sorted(newest.items(), key=lambda pair: sort_label(pair[0]))), len(records) - len(newest))


def _drop_older(launches: Sequence[Launch]) -> list[Launch]:
    """Return launches without those that a later one of the same preset and ranks has replaced."""
    latest: list[Launch] = []
    for launch in sorted(launches, key=lambda launch: launch.span, reverse=True):
        place = next((place for place, later in enumerate(latest) if _is_replaced(launch, later)), None)
        if place is None:
            latest.append(launch)
        else:
            latest[place] = latest[place]._replace(older=latest[place].older + launch.older + len(launch.paths))
    return latest


def _is_replaced(launch: Launch, later: Launch) -> bool:
    shares_ranks = not launch.paths.keys().isdisjoint(later.paths) and not launch.has_runs
    return launch.name == later.name and shares_ranks and launch.span[1] < later.span[0]


def _join_presets(launches: Sequence[Launch]) -> list[Launch]:
    """Return launches, those as one in which ranks of one launch were given different presets: the most common names it."""
    joined: list[Launch] = []
    for launch in sorted(launches, key=lambda launch: -len(launch.paths)):
        place = next((place for place, known in enumerate(joined) if _are_of_one_launch(launch, known)), None)
        if place is None:
            joined.append(launch)
            continue
        known = joined[place]
        paths = dict(sorted({**known.paths, **launch.paths}.items(), key=lambda pair: sort_label(pair[0])))
        joined[place] = known._replace(paths=paths, older=known.older + launch.older)
    return joined


def _are_of_one_launch(launch: Launch, known: Launch) -> bool:
    """Return whether the ranks of two presets are of one launch: none is in both, and they ran at the same time."""
    are_disjoint = launch.paths.keys().isdisjoint(known.paths) and not launch.has_runs and not known.has_runs
    overlap = max(launch.span[0], known.span[0]) <= min(launch.span[1], known.span[1])
    return launch.key == known.key and are_disjoint and overlap


def _list_missing(launch: Launch) -> tuple[str, ...]:
    return tuple(str(rank) for rank in range(launch.size or 0) if str(rank) not in launch.paths)


def _number_runs(records: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return labels of the processes that no launcher gave a rank, in the order in which they began: each is a run of its own.

    One that is alone is rank 0, as in the name of its record.
    """
    if len(records) < 2:
        return {}
    alone = [path for path, fields in records.items() if _find_number(fields, "rank") is None]
    alone.sort(key=lambda path: _find_start(records[path]))
    return {path: f"{RUN}{number}" for number, path in enumerate(alone, 1)}


def _label_rank(fields: Mapping[str, Any]) -> str:
    """Return the rank of a process, 0 if no launcher set it, as in the name of its record."""
    return str(_find_number(fields, "rank") or 0)


def _find_number(fields: Mapping[str, Any], name: str) -> int | None:
    """Return a number that the launcher set for a process, None if its record has none."""
    value = _find_fact(fields, name)
    return value if type(value) is int and value >= 0 else None


def _find_fact(fields: Mapping[str, Any], name: str) -> Any:
    """Return what a record says of its process, None where it does not."""
    process = fields.get("process")
    return process.get(name) if isinstance(process, dict) else None


def _find_start(fields: Mapping[str, Any]) -> str:
    return str(fields.get("start") or "")


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
