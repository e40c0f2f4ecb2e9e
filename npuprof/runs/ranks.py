"""The records of a launch: ranks with equal settings, and the differences of the others.

A launch is a job started by one launcher: its records share writer, job and size. For each preset
the newest launch counts, for each rank the newest record. Presets share a launch if they have
different ranks. Records without a rank are separate runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from npuprof.catalog import find_variable, load_equivalent_variables
from npuprof.catalog.launchers import FACTS
from npuprof.compare.preset_states import Pair, build_preset_pair
from npuprof.document import keys
from npuprof.model import Fields, Finding, Record
from npuprof.report.text import escape_controls, format_count
from npuprof.resolve.config import Config
from npuprof.runs.run_records import read_folder
from npuprof.store.spec import Workspace
from npuprof.system import group_pairs

#: The prefix of a process number without a rank.
RUN = "run "
#: An impossible launch size: missing ranks are not listed beyond it.
_LARGEST = 100_000


#: Both values of each differing name; None for a side that lacks it.
Differences = dict[str, tuple[str | None, str | None]]


class Launch(Record):
    """The records of one launch.

    ``name`` is that of the preset, ``paths`` has the newest path of each label, ``older`` is the
    number of older records.

    ``size`` is the number of started processes, None if unknown or without ranks.
    """

    name: str
    size: int | None
    paths: dict[str, str]
    older: int

    @property
    def missing(self) -> tuple[str, ...]:
        """The ranks without a record, if the size is known."""
        return tuple(str(rank) for rank in range(self.size or 0) if str(rank) not in self.paths)


def find_launches(read: Mapping[str, Fields]) -> list[Launch]:
    """Return the newest launch of each preset, from records read from paths.

    They are by preset and by writer of the records.
    """
    # by writer, job and size, then by preset, then by path
    groups: dict[tuple[Any, ...], dict[str, dict[str, Fields]]] = {}
    for path in sorted(read, key=lambda path: str(read[path].get("start") or "")):
        fields = read[path]
        writer = " (env-loader)" if fields.get("by") == "env-loader" else ""
        key = writer, str(_find_fact(fields, "job")), _find_number(fields, "world_size")
        presets = groups.setdefault(key, {})
        presets.setdefault(f"{fields['preset']['name']}{writer}", {})[path] = fields
    latest: dict[str, Launch] = {}
    for (_, _, size), presets in groups.items():  # in the order of their first start
        launches = [_select_newest(name, size, records) for name, records in presets.items()]
        for launch in _join_presets(launches):
            earlier = latest.get(launch.name)
            older = earlier.older + len(earlier.paths) if earlier is not None else 0
            latest[launch.name] = launch._replace(older=launch.older + older)
    return sorted(latest.values(), key=attrgetter("name"))


def sort_label(label: str) -> tuple[int, int, str]:
    """Return the sort key of a label: ranks by number, then runs by number, then others."""
    if label.startswith(RUN):
        return 1, int(label.removeprefix(RUN)), ""
    return (0, int(label), "") if label.isdecimal() else (2, 0, label)


def _select_newest(name: str, size: int | None, records: Mapping[str, Fields]) -> Launch:
    """Return the newest launch among records of one preset, which are sorted by start."""
    runs = _number_runs(records)
    newest = {}
    for path, fields in records.items():
        label = runs.get(path) or str(_find_number(fields, "rank") or 0)
        newest[label] = path  # a later start replaces an earlier one
    known_size = None if runs or size is None or size > _LARGEST else size
    return Launch(name, known_size, _sort_paths(newest), len(records) - len(newest))


def _sort_paths(paths: Mapping[str, str]) -> dict[str, str]:
    """Return paths by label in the order of the labels."""
    return {label: paths[label] for label in sorted(paths, key=sort_label)}


def _join_presets(launches: list[Launch]) -> list[Launch]:
    """Return launches, merged if their presets have different ranks.

    The most common preset names the result.
    """
    paths = {label: path for launch in launches for label, path in launch.paths.items()}
    has_shared_ranks = len(paths) < sum(len(launch.paths) for launch in launches)
    has_runs = any(label.startswith(RUN) for label in paths)
    if len(launches) < 2 or has_shared_ranks or has_runs:
        return launches
    largest = max(launches, key=lambda launch: len(launch.paths))
    older = sum(launch.older for launch in launches)
    return [largest._replace(paths=_sort_paths(paths), older=older)]


def _number_runs(records: Mapping[str, Fields]) -> dict[str, str]:
    """Return labels for processes without a rank, in start order: each is a separate run.

    A single one is rank 0, as in the name of its record.
    """
    if len(records) < 2:
        return {}
    alone = [path for path, fields in records.items() if _find_number(fields, "rank") is None]
    return {path: f"{RUN}{number}" for number, path in enumerate(alone, 1)}


def _find_number(fields: Mapping[str, Any], name: str) -> int | None:
    """Return a number set by the launcher, None if the record has none."""
    value = _find_fact(fields, name)
    # bool is an int, too, and records may have been edited
    return value if type(value) is int and value >= 0 else None


def _find_fact(fields: Mapping[str, Any], name: str) -> Any:
    """Return a fact about a record's process, None if it is missing."""
    process = fields.get("process")
    return process.get(name) if isinstance(process, dict) else None


#: npuprof's own variables repeat the settings, except these.
_OWN = "NPUPROF_"


class Ranks(Record):
    """Processes with equal settings.

    It has their record paths, their rank labels, and their resolved config.

    ``pair`` are the differences from the majority, None for the majority itself; ``environment``
    are the differing variables with both values (None: unset), ``origins`` the other differences:
    the preset, npuprof's version, the context.
    """

    paths: tuple[str, ...]
    labels: tuple[str, ...]
    config: Config
    pair: Pair | None
    environment: Differences
    origins: Differences
    endings: tuple[str, ...]

    @property
    def title(self) -> str:
        """The ranks as text: ``ranks 0-2, 4``."""
        return name_ranks(self.labels)


class Processes(Launch):
    """The compared processes of a launch, largest group first."""

    groups: tuple[Ranks, ...]

    @property
    def count(self) -> int:
        """The number of processes."""
        return sum(len(group.paths) for group in self.groups)


def load_processes(folder: str, workspace: Workspace) -> tuple[list[Processes], list[Finding]]:
    """Return the processes with records in a folder, by preset and writer.

    Findings about unreadable records are added.

    Raises NpuprofError.
    """
    records, unread = read_folder(folder)
    launches = find_launches(records)
    return [_compare_processes(launch, records, workspace) for launch in launches], unread


def _compare_processes(
    launch: Launch, records: dict[str, Fields], workspace: Workspace
) -> Processes:
    """Return the processes of a launch, grouped by settings, each group compared to the largest."""
    path_of = launch.paths
    by_settings = group_pairs(
        (identify_record(records[path]), rank) for rank, path in path_of.items()
    )
    groups = sorted(by_settings.values(), key=lambda ranks: (-len(ranks), sort_label(ranks[0])))
    majority = records[path_of[groups[0][0]]]
    compared: list[Ranks] = []
    for ranks in groups:
        paths = tuple(path_of[rank] for rank in ranks)
        fields = records[paths[0]]
        spec = paths[0]
        if not os.path.isabs(spec) and not spec.startswith(f"{os.pardir}/"):
            spec = os.path.join(os.curdir, spec)  # or it may be the name of a preset
        config = workspace.resolve_spec(spec)
        pair = None
        if compared:
            pair = build_preset_pair(compared[0].config, config, name_ranks(ranks, one="rank"))
        group = Ranks(
            paths,
            tuple(ranks),
            config,
            pair,
            compare_environments(majority, fields),
            compare_origins(majority, fields),
            tuple(describe_ending(records[path]) for path in paths),
        )
        compared.append(group)
    return Processes(**launch._asdict(), groups=tuple(compared))


def name_ranks(labels: Sequence[str], one: str = "") -> str:
    """Return the names of processes: ``ranks 0-2, 4``, or ``run 2`` without ranks.

    ``one`` is a fixed noun instead.
    """
    if all(label.startswith(RUN) for label in labels):
        return ", ".join(labels)
    return f"{one or ('ranks' if len(labels) > 1 else 'rank')} {join_ranks(labels)}"


def join_ranks(labels: Sequence[str]) -> str:
    """Return ranks as text, consecutive ones as a span: ``0-2, 4``."""
    spans: list[list[str]] = []  #: of each span its first label, and its last one if longer
    for label in labels:
        last = spans[-1][-1] if spans else ""
        if last.isdecimal() and label.isdecimal() and int(last) + 1 == int(label):
            spans[-1] = [spans[-1][0], label]
        else:
            spans.append([label])
    return ", ".join("-".join(span) for span in spans)


def identify_record(fields: Fields) -> str:
    """Return the identity of the settings in a record."""
    settings = {setting["key"]: setting["value"] for setting in fields["settings"]}
    return json.dumps([settings, _select_shared(fields), _select_origins(fields)], sort_keys=True)


def _select_origins(fields: Fields) -> dict[str, str]:
    """Return the origin of a process's settings: the preset, npuprof's version, and the context."""
    origins = {"preset": fields["preset"]["name"], "npuprof": str(fields.get("npuprof"))}
    for name, value in (fields.get("context") or {}).items():
        if value is not None:
            origins["context" if name == "text" else name] = str(value)
    return origins


def compare_origins(before: Fields, after: Fields) -> Differences:
    """Return how presets, npuprof versions, releases and products of two records differ.

    Each has both values, None if one lacks it.
    """
    return _pair_differing(_select_origins(before), _select_origins(after))


def _pair_differing(old: dict[str, str], new: dict[str, str]) -> Differences:
    """Return the differing entries of two tables with both values, None if one lacks it."""
    return {
        name: (old.get(name), new.get(name))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    }


def _select_shared(fields: Fields) -> dict[str, str]:
    """Return the variables that should be equal for all processes.

    Those that repeat the settings are left out.
    """
    repeated = set()
    for setting in fields["settings"]:
        section, name = keys.split_section_and_name(setting["key"])
        if section == "env":
            repeated.add(name)
        elif section == "options":
            repeated.update(load_equivalent_variables().get(name, ()))
    log = (fields.get("proof") or {}).get("log")  # a separate folder if npuprof enabled the log
    variables = (fields.get("environment") or {}).items()
    return {
        name: str(text)
        for name, text in variables
        if name not in repeated and text != log and _is_shared(name)
    }


def _is_shared(name: str) -> bool:
    """Return whether a variable should be equal for all processes: no launcher sets it for each."""
    if name.startswith(_OWN) or any(name in variables for variables in FACTS.values()):
        return False
    record = find_variable(name)
    if record is None:
        return True
    return not (record.per_process or record.launcher or record.freeze in ("launcher", "never"))


def compare_environments(before: Fields, after: Fields) -> Differences:
    """Return the differing variables of two records, with both values.

    Per-process variables are left out.
    """
    return dict(sorted(_pair_differing(_select_shared(before), _select_shared(after)).items()))


def describe_ending(fields: Fields) -> str:
    """Return how a process ended, as text."""
    ending = fields.get("exit") or {}
    if ending.get("signal"):
        return f"died of {ending['signal']}"
    state = fields.get("state")
    if state == "ended":
        return f"exit {ending.get('code')}"
    if state == "not started":
        return "not started"
    return "no end recorded" if state == "running" else ""


def list_endings(groups: Iterable[Ranks]) -> list[str]:
    """Return the numbers of processes by ending, if they differ; the rarest with their ranks."""
    by_ending = group_pairs(
        pair for group in groups for pair in zip(group.endings, group.labels, strict=True)
    )
    if len(by_ending) < 2:
        return []
    order = sorted(by_ending.items(), key=lambda pair: -len(pair[1]))
    return [
        f"{ending or 'unknown'}: {name_ranks(sorted(labels, key=sort_label), one='rank')}"
        for ending, labels in order
    ]


def format_differences(changed: Differences, kind: str) -> Iterator[str]:
    """Yield differences as lines with a kind: ``~ NAME a → b  (environment)``."""
    for name, (old, new) in changed.items():
        sign = "+" if old is None else "-" if new is None else "~"
        values = " → ".join(repr(text) for text in (old, new) if text is not None)
        yield f"{sign} {escape_controls(f'{name} {values}')}  ({kind})"


def describe_count(processes: Processes) -> str:
    """Return the number of equal processes, and the names of the others."""
    first, *others = processes.groups
    count = f"{format_count(processes.count, 'record')} of {processes.name}"
    if not others:
        return f"{count}: all were given the same"
    is_single = len(others) == 1 and len(others[0].labels) == 1
    titles = "; ".join(group.title for group in others)
    difference = f"{titles} {'differs' if is_single else 'differ'}"
    if len(first.labels) == 1:
        return f"{count}: {difference} from {first.title}"
    return f"{count}: {first.title} alike; {difference}"
