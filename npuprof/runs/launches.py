"""Which records of a folder belong together: the newest of each rank of one launch, without what earlier ones have left behind.

A launch is what one launcher started: its records have the same writer, job and size. Presets share a launch if each was given to ranks
of its own at the same time. Records of processes without a rank are runs of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from npuprof.model import Record

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


def _select_newest(name: str, key: tuple[Any, ...], found: Mapping[str, dict[str, Any]]) -> Launch:
    """Return the newest record of each rank, without those of an earlier launch: the other ranks were started again after they ended."""
    runs = _number_runs(found)
    labels = {path: runs.get(path) or _label_rank(fields) for path, fields in found.items()}
    newest = {label: path for path, label in labels.items()}  # in the order in which they began
    counts = Counter(labels.values())
    most = max(counts.values())
    again = min(_find_start(found[newest[label]]) for label, count in counts.items() if count == most)
    for label, count in counts.items():
        ended = str(found[newest[label]].get("end") or "")  # the process may still run if it has no end
        if count < most and ended and ended < again:
            del newest[label]
    span = min(map(_find_start, found.values())), max(str(fields.get("end") or _find_start(fields)) for fields in found.values())
    return Launch(name, key, span, dict(sorted(newest.items(), key=lambda pair: sort_label(pair[0]))), len(found) - len(newest))


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
        place = next((place for place, other in enumerate(joined) if _are_of_one_launch(launch, other)), None)
        if place is None:
            joined.append(launch)
            continue
        other = joined[place]
        paths = dict(sorted({**other.paths, **launch.paths}.items(), key=lambda pair: sort_label(pair[0])))
        joined[place] = other._replace(paths=paths, older=other.older + launch.older)
    return joined


def _are_of_one_launch(launch: Launch, other: Launch) -> bool:
    """Return whether the ranks of two presets are of one launch: none is in both, and they ran at the same time."""
    are_disjoint = launch.paths.keys().isdisjoint(other.paths) and not launch.has_runs and not other.has_runs
    overlap = max(launch.span[0], other.span[0]) <= min(launch.span[1], other.span[1])
    return launch.key == other.key and are_disjoint and overlap


def _list_missing(launch: Launch) -> tuple[str, ...]:
    return tuple(str(rank) for rank in range(launch.size or 0) if str(rank) not in launch.paths)


def _number_runs(found: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return labels of the processes that no launcher gave a rank, in the order in which they began: each is a run of its own.

    One that is alone is rank 0, as in the name of its record.
    """
    if len(found) < 2:
        return {}
    alone = [path for path, fields in found.items() if _find_number(fields, "rank") is None]
    alone.sort(key=lambda path: _find_start(found[path]))
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
