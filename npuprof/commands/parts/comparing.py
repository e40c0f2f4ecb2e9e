"""What ``diff`` says of runs: a folder of records rank by rank, and variables that two records do not share."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from npuprof.model import Finding, NpuprofError, Place, Record
from npuprof.report.answer import Answer
from npuprof.report.text import format_count, name_first
from npuprof.resolve.config import Config
from npuprof.store.spec import Workspace
from npuprof.system.folders import expand_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from npuprof.compare.changes import Change
    from npuprof.compare.pairs import Pair
    from npuprof.report.answer import Forms
    from npuprof.runs.ranks import Processes, Ranks

    class Asked(Protocol):
        """What was asked of a comparison, as ``diff`` has it."""

        exit_code: bool
        name_only: bool
        stat: bool
        everything: bool

        @property
        def coloured(self) -> bool:
            """Whether colours are wanted."""


_RECORD, _EVIDENCE = "record:", "evidence:"


def find_processes(given: str, workspace: Workspace) -> tuple[list[Processes], list[Finding]] | None:
    """Return the processes whose records a folder holds, and what cannot be read of it; None for no such folder, or a preset.

    Raises NpuprofError.
    """
    folder = expand_home(given)
    if not os.path.isdir(folder):
        return None
    from npuprof.runs import ranks

    is_path = given.startswith((".", "/", "~"))
    if not is_path and _is_preset(given, workspace):
        return None
    if not ranks.holds_records(folder):
        if is_path:
            hint = "name a preset, or a folder where npuprof run NAME --record has left records"
            raise NpuprofError([Finding("NP962", f"{given} holds no record of a run", "", hint, where=Place(folder))])
        return None
    return ranks.load_processes(folder, workspace)


def _is_preset(name: str, workspace: Workspace) -> bool:
    try:
        return name in workspace.store.names()
    except NpuprofError:
        return False


def answer_ranks(asked: Asked, found: list[Processes], unread: list[Finding]) -> Answer:
    """Return which ranks differ from the most, and in what. Exit 1 with ``exit_code`` where any does, 2 where a record is ``unread``."""
    from npuprof.compare import matrix

    different = [group for processes in found for group in processes.groups[1:]]
    code = 2 if unread else 1 if asked.exit_code and different else 0
    older = sum(processes.older for processes in found)
    remarks = (f"{format_count(older, 'older record')} of the same ranks left out; name the files to compare them",) if older else ()
    if asked.name_only:
        return Answer("".join(f"{path}\n" for group in different for path in group.paths), remarks, code, problems=unread)
    configs = [group.config for processes in found for group in processes.groups]
    forms: Forms = {
        "text": lambda: "".join(_format_processes(asked, processes, bool(unread)) for processes in found) + _format_unread(unread),
        "markdown": lambda: matrix.format_matrix_markdown(configs, matrix.collect_matrix_rows(configs, asked.everything)),
        "html": lambda: matrix.format_matrix_html(configs, matrix.collect_matrix_rows(configs, asked.everything)),
        "json": lambda: {
            "schema": "npuprof.ranks/1",
            "presets": [_build_fields(processes) for processes in found],
            "unread": list_places(unread),
        },
    }
    return Answer(forms, remarks, code, problems=unread)


def _format_unread(unread: list[Finding]) -> str:
    from npuprof.report.text import escape_controls

    return "".join(f"\ncannot be read, and not compared: {escape_controls(path)}\n" for path in list_places(unread))


def _format_processes(asked: Asked, found: Processes, is_damaged: bool) -> str:
    from npuprof.compare.plain import format_pair_text
    from npuprof.report.text import escape_controls
    from npuprof.runs import ranks

    lines = [escape_controls(ranks.describe_count(found))]
    if not asked.stat:
        for group in found.groups[1:]:
            assert group.pair is not None, "it is compared with the first"
            lines += ["", f"{group.title}:"]
            lines += [f"  {line}" for line in format_pair_text(group.pair, asked.everything, asked.coloured).splitlines()]
            lines += [f"  {line}" for line in ranks.format_differences(group.told, "record")]
            lines += [f"  {line}" for line in ranks.format_differences(group.environment, "environment")]
    none = "no record that can be read" if is_damaged else "no record"
    lines += ["", f"{none}: {ranks.name_ranks(found.missing, one='rank')} of {found.size}"] if found.missing else []
    endings = ranks.list_endings(found.groups)
    lines += ["", "how they ended:", *(f"  {line}" for line in endings)] if endings else []
    return "".join(f"{line}\n" for line in lines)


def _build_fields(found: Processes) -> dict[str, Any]:
    return {
        "preset": found.name, "records": found.count, "size": found.size, "missing": [int(label) for label in found.missing],
        "groups": [_build_group_fields(group) for group in found.groups],
    }  # fmt: skip


def _build_group_fields(group: Ranks) -> dict[str, Any]:
    from npuprof.compare.data import build_change_dict

    return {
        "ranks": [int(label) if label.isdecimal() else label for label in group.labels],
        "paths": list(group.paths),
        "digest": group.config.digest,
        "changes": [build_change_dict(change) for change in group.pair.changes] if group.pair is not None else [],
        "environment": _list_differences(group.environment),
        "record": _list_differences(group.told),
        "ended": list(group.endings),
    }


def _list_differences(found: dict[str, tuple[str | None, str | None]]) -> list[dict[str, str | None]]:
    return [{"name": name, "before": old, "after": new} for name, (old, new) in found.items()]


def list_places(unread: Iterable[Finding]) -> list[str]:
    """Return the paths of what cannot be read."""
    return list(dict.fromkeys(finding.where.file for finding in unread if finding.where is not None))


class Around(Record):
    """What two records say beside the settings: lines of what differs, the same as fields, and what there is to remark."""

    lines: tuple[str, ...] = ()
    fields: dict[str, Any] = {}
    remarks: tuple[str, ...] = ()


def compare_around(before: Config, after: Config) -> Around:
    """Return what else differs between two records: variables that no preset set, who started them. Raises NpuprofError."""
    keys = [config.lineage[-1].key if config.lineage else "" for config in (before, after)]
    if not any(key.startswith(_RECORD) for key in keys):
        return Around()
    from npuprof.runs import ranks, records

    found = [records.find_fields(config.lineage[-1]) if config.lineage else None for config in (before, after)]
    read = [fields for fields in found if fields is not None]
    if len(read) == 1:
        return Around(remarks=_tell_context(read[0], before if found[1] is not None else after))
    if not read:
        return Around()
    left, right = read
    endings = [ranks.describe_ending(fields) for fields in read]
    commands = [records.read_command(fields) for fields in read]
    remarks = [f"they ended differently: {endings[0]}; {endings[1]}"] if endings[0] != endings[1] and all(endings) else []
    first, second = commands
    if first and second and first.is_other(second):
        remarks.append(f"the commands differ: {first}; {second}")
    if len({str(fields.get("by")) for fields in read}) > 1:
        return Around(remarks=tuple(remarks))  # the function in the script does not know the environment of the run
    told, environment = ranks.compare_origins(left, right), ranks.compare_environments(left, right)
    lines = (*ranks.format_differences(told, "record"), *ranks.format_differences(environment, "environment"))
    fields = {"environment": _list_differences(environment), "record": _list_differences(told), "ended": endings}
    return Around(lines, fields, tuple(remarks))


def is_evidence(config: Config) -> bool:
    """Return whether a config is what a run used by its evidence."""
    return bool(config.lineage) and config.lineage[-1].key.startswith(_EVIDENCE)


def leave_out_untold(pair: Pair, before: Config, after: Config) -> tuple[Pair, tuple[str, ...]]:
    """Return what differs from evidence without what that does not speak against, and what it does not tell.

    What a run has by default stands in no preset that is made of its evidence, and what no adapter writes down neither. What it was for
    is no setting of a preset that does not say it.
    """
    sides = [(before, after, "removed", "added"), (after, before, "added", "removed")]
    sides = [side for side in sides if is_evidence(side[1])]
    if not sides:
        return pair, ()
    from npuprof.runs import imported

    gone: list[Change] = []
    unknown: dict[str, None] = {}
    for config, run, kind, other in sides:
        evidence = imported.find_evidence(run.lineage[-1])
        agreeing = imported.tell_agreeing(config.options, evidence) if evidence is not None else {}
        untold = [one for one in pair.changes if one.kind == kind and (one.setting not in config.options or one.setting in agreeing)]
        unknown |= dict.fromkeys(one.setting for one in untold if not agreeing.get(one.setting))
        gone += [*untold, *(one for one in pair.changes if one.kind == other and one.setting.startswith("profile."))]
    changes = tuple(one for one in pair.changes if one not in gone)
    count = format_count(len(unknown), "setting")
    told = (f"{count} that the run does not tell left out ({name_first(unknown)}); npuprof verify says why",) if unknown else ()
    # what is not known of a run mends no check, and breaks none
    return pair._replace(status="changed" if changes else "unchanged", changes=changes, broken=(), mended=()), told


def _tell_context(fields: dict[str, Any], other: Config) -> tuple[str, ...]:
    """Return that a preset was resolved for something else than a run, where it was."""
    context = fields.get("context") or {}
    flags = [f"--{name} {context[name]}" for name in ("cann", "product") if context.get(name) and not getattr(other.context, name)]
    return (f"the run was for {' '.join(flags)}, which resolves {other.name} for the same",) if flags else ()
