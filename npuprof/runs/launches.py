"""Which records of a folder belong together: the newest of each rank of one launch, without what earlier ones have left behind.

A launch is what one launcher started. It has a job and a size, where the launcher told them; presets share one where each was given to
ranks of its own. Records of processes without a rank are runs of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from npuprof.model import Record

#: What stands before the number of a process that has no rank.
RUN = "run "
#: A size that no launch has: missing ranks are not listed up to it.
_LARGEST = 100_000


class Launch(Record):
    """The records of one launch: how its preset is called, the newest path of each label, how many older ones there are.

    ``missing`` are the ranks of which there is no record, where the launcher told how many there are: ``size``.
    """

    name: str
    paths: dict[str, str]
    older: int
    missing: tuple[str, ...] = ()
    size: int | None = None


def find_launches(read: Mapping[str, dict[str, Any]]) -> list[Launch]:
    """Return the launches whose records were read from paths, by preset and by who wrote the records."""
    groups: dict[str, list[str]] = {}
    for path, fields in read.items():
        by = " (env-loader)" if fields.get("by") == "env-loader" else ""
        groups.setdefault(f"{fields['preset']['name']}{by}", []).append(path)
    parts = [(name, part) for name, paths in groups.items() for part in _split_jobs({path: read[path] for path in paths})]
    found = [_select_newest(name, part) for name, part in parts]
    return [_count_missing(launch, read) for launch in _join_presets(found, read)]


def sort_label(label: str) -> tuple[int, str]:
    """Return by what labels are sorted: ranks by number, before what has none."""
    if label.startswith(RUN):
        return (1 << 61) + int(label.removeprefix(RUN)), ""
    return (int(label), "") if label.isdecimal() else (1 << 62, label)


def _split_jobs(found: dict[str, dict[str, Any]]) -> list[dict[str, dict[str, Any]]]:
    """Return records apart by jobs that have ranks in common and ran at the same time: each was started by a launcher of its own."""
    parts: list[dict[str, dict[str, Any]]] = []
    by_job: dict[tuple[Any, Any], dict[str, dict[str, Any]]] = {}
    for path in sorted(found, key=lambda path: _tell_start(found[path])):
        by_job.setdefault(_identify_launch(found[path]), {})[path] = found[path]
    for (job, _), part in by_job.items():
        beside = next((other for other in parts if job is None or not _are_side_by_side(part, other)), None)
        if beside is None:
            parts.append(dict(part))
        else:
            beside.update(part)
    return parts


def _are_side_by_side(one: Mapping[str, dict[str, Any]], other: Mapping[str, dict[str, Any]]) -> bool:
    """Return whether jobs ran at the same time, and both had a process of the same rank; what was killed is over when another begins."""
    first, second = ({_find_number(fields, "rank") for fields in part.values()} - {None} for part in (one, other))
    spans = [
        (min(map(_tell_start, part.values())), max(_tell_end(one) or _tell_start(one) for one in part.values())) for part in (one, other)
    ]
    return not first.isdisjoint(second) and _do_overlap(spans)


def _do_overlap(spans: list[tuple[str, str]]) -> bool:
    return max(start for start, _ in spans) <= min(end for _, end in spans)


def _select_newest(name: str, found: dict[str, dict[str, Any]]) -> Launch:
    """Return the newest record of each rank; of an earlier launch that had more ranks none is left."""
    runs = _number_runs(found)
    by_label: dict[str, list[str]] = {}
    for path in sorted(found, key=lambda path: _tell_start(found[path])):
        by_label.setdefault(runs.get(path) or _label_rank(found[path]), []).append(path)
    newest = {label: paths[-1] for label, paths in by_label.items()}
    ranked = {label: path for label, path in newest.items() if not label.startswith(RUN)}
    if ranked:
        last = max(ranked.values(), key=lambda path: _tell_start(found[path]))
        of_last = {path for path in found if _identify_launch(found[path]) == _identify_launch(found[last])}
        counts = {label: len(of_last.intersection(by_label[label])) for label in ranked}
        same = [path for path in ranked.values() if path in of_last]
        again = [path for label, path in ranked.items() if counts[label] == max(counts.values())]
        for label, path in ranked.items():
            others = same if path not in same else again if path not in again else []
            ended = _tell_end(found[path])  # of what was killed nobody knows: it may run still, beside a rank that was started again
            if others and ended and ended < min(_tell_start(found[other]) for other in others):
                del newest[label]
    return Launch(name, dict(sorted(newest.items(), key=lambda pair: sort_label(pair[0]))), len(found) - len(newest))


def _join_presets(found: Iterable[Launch], read: Mapping[str, dict[str, Any]]) -> list[Launch]:
    """Return launches, those as one in which ranks of one launch were given different presets: the most common names it."""
    joined: list[Launch] = []
    for launch in sorted(found, key=lambda launch: -len(launch.paths)):
        place = next((place for place, other in enumerate(joined) if _are_of_one_launch(launch, other, read)), None)
        if place is None:
            joined.append(launch)
            continue
        other = joined[place]
        paths = dict(sorted({**other.paths, **launch.paths}.items(), key=lambda pair: sort_label(pair[0])))
        joined[place] = other._replace(paths=paths, older=other.older + launch.older)
    return sorted(joined, key=lambda launch: launch.name)


def _are_of_one_launch(one: Launch, other: Launch, read: Mapping[str, dict[str, Any]]) -> bool:
    """Return whether the ranks of two presets are of one launch: none is in both, and the launcher says the same of them.

    Where it does not say how many there are, they have run at the same time.
    """
    if not one.paths.keys().isdisjoint(other.paths) or any(label.startswith(RUN) for label in (*one.paths, *other.paths)):
        return False
    first, second = ([read[path] for path in launch.paths.values()] for launch in (one, other))
    if (
        len({str(fields.get("by")) for fields in (*first, *second)}) > 1
        or len({_identify_launch(fields) for fields in (*first, *second)}) > 1
    ):
        return False
    if _find_number(first[0], "world_size") is not None:
        return True
    return _do_overlap([(min(map(_tell_start, part)), max(_tell_end(fields) or "~" for fields in part)) for part in (first, second)])


def _count_missing(launch: Launch, read: Mapping[str, dict[str, Any]]) -> Launch:
    sizes = {_find_number(read[path], "world_size") for path in launch.paths.values()}
    size = sizes.pop() if len(sizes) == 1 else None
    if size is None or size > _LARGEST or any(label.startswith(RUN) for label in launch.paths):
        return launch
    return launch._replace(missing=tuple(str(rank) for rank in range(size) if str(rank) not in launch.paths), size=size)


def _number_runs(found: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return labels of the processes that no launcher gave a rank, in the order in which they began: each is a run of its own.

    One that is alone is rank 0, as in the name of its record.
    """
    if len(found) < 2:
        return {}
    alone = [path for path, fields in found.items() if _find_number(fields, "rank") is None]
    alone.sort(key=lambda path: _tell_start(found[path]))
    return {path: f"{RUN}{number}" for number, path in enumerate(alone, 1)}


def _label_rank(fields: Mapping[str, Any]) -> str:
    """Return the rank of a process; where no launcher told it, 0, as in the name of its record."""
    return str(_find_number(fields, "rank") or 0)


def _find_number(fields: Mapping[str, Any], name: str) -> int | None:
    """Return a number that the launcher told of a process, None where a record has none."""
    value = _find_fact(fields, name)
    return value if type(value) is int and value >= 0 else None


def _find_fact(fields: Mapping[str, Any], name: str) -> Any:
    """Return what a record says of its process, None where it does not."""
    process = fields.get("process")
    return process.get(name) if isinstance(process, dict) else None


def _identify_launch(fields: Mapping[str, Any]) -> tuple[Any, Any]:
    job = _find_fact(fields, "job")
    return (job if isinstance(job, str) else None), _find_number(fields, "world_size")


def _tell_start(fields: Mapping[str, Any]) -> str:
    return str(fields.get("start") or "")


def _tell_end(fields: Mapping[str, Any]) -> str:
    return str(fields.get("end") or "")
