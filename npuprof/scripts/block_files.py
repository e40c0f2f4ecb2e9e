"""Writes files with blocks: all or none, without losing user edits.

Links out of the named folder are not followed.
"""

from __future__ import annotations

import os

from npuprof.edit.preset_file import format_difference
from npuprof.model import Finding, NpuprofError, Place, Record, raise_any
from npuprof.renderers.placing import plan_sidecars
from npuprof.renderers.stamp import read_listed_sidecars
from npuprof.report import Answer
from npuprof.report.text import escape_controls, format_count
from npuprof.scripts import blocks
from npuprof.scripts.blocks import RefreshedBlock
from npuprof.system import decode_safely, writing
from npuprof.system.writing import PlannedWrite


class Writing(Record):
    """How blocks are written: also over edited ones (``force``), or not at all (``dry_run``)."""

    force: bool
    dry_run: bool


class FileBlocks(Record):
    """A file as read, with the marks of new blocks, and the new content of its blocks."""

    known: bytes
    data: bytes
    changes: list[RefreshedBlock]


class PlannedBlocks(Record):
    """Planned writes of blocks: files by path, the diff, and omitted sections.

    ``rejections`` are findings that prevent the writes.
    """

    writes: dict[str, PlannedWrite]
    shown: str
    left_out: tuple[str, ...]
    rejections: list[Finding]


def plan_blocks(files: dict[str, FileBlocks], force: bool, below: str = "") -> PlannedBlocks:
    """Return the planned writes of files with refreshed blocks. Raises NpuprofError."""
    rejections = []
    writes = {}
    shown = []
    left_out: dict[str, None] = {}
    for path, file in files.items():
        due = [change for change in file.changes if not change.state.current]
        if not force:
            hint = "move the change into the preset, or use --force"
            rejections += [
                finding._replace(severity="error", hint=hint)
                for change in due
                for finding in blocks.check_block_state(path, change.block, change.state)
                # NP810, out of date, is what the write repairs; NP811 is an edit that it would undo
                if finding.code == "NP811"
            ]
        left_out |= dict.fromkeys(
            f"left out: {finding.message}" for change in due for finding in change.left_out
        )
        new = blocks.replace_blocks(file.data, due)
        if new != file.known:
            _require_encodable(path, file.data, due)
            writes[path] = PlannedWrite(path, new, file.known, below)
            shown.append(format_difference(path, decode_safely(file.known), decode_safely(new)))
        listed = read_listed_sidecars(decode_safely(file.known))
        # also of blocks that are up to date: a file of theirs may be missing
        for change in file.changes:
            sidecars, clashes = plan_sidecars(os.path.dirname(path), change.sidecars, listed, force)
            rejections += clashes + _list_clashes(path, sidecars, writes)
            writes |= {
                sidecar.path: sidecar for sidecar in sidecars if sidecar.content != sidecar.known
            }
    return PlannedBlocks(writes, "".join(shown), tuple(left_out), rejections)


def write_blocks(files: dict[str, FileBlocks], how: Writing, below: str = "") -> Answer:
    """Write files with refreshed blocks.

    Raises NpuprofError, and then writes nothing; also for edited blocks, unless forced.
    """
    plan = plan_blocks(files, how.force, below)
    raise_any(plan.rejections)
    names = ", ".join(map(escape_controls, plan.writes))
    if how.dry_run:
        return Answer(
            plan.shown,
            (
                *plan.left_out,
                f"{format_count(len(plan.writes), 'file')} would change: {names or 'none'}",
            ),
        )
    if plan.writes:
        writing.write_planned_files(list(plan.writes.values()))
    return Answer(
        None, (*plan.left_out, f"wrote {names}" if plan.writes else "everything is up to date")
    )


def _list_clashes(
    path: str, sidecars: list[PlannedWrite], writes: dict[str, PlannedWrite]
) -> list[Finding]:
    """Return findings about sidecar files that two blocks need with different contents."""
    why = "The code of both would find the text of one of them."
    hint = "give one of them a file of its own: name its path in the preset"
    clashing = (
        sidecar
        for sidecar in sidecars
        if sidecar.path in writes and writes[sidecar.path].content != sidecar.content
    )
    return [
        Finding(
            "NP942",
            f"two blocks need {item.path}, each with another text",
            why,
            hint,
            where=Place(path),
        )
        for item in clashing
    ]


def _require_encodable(path: str, data: bytes, due: list[RefreshedBlock]) -> None:
    """Raise NpuprofError for non-ASCII text in a file that is not UTF-8."""
    if (
        not all(change.text.isascii() for change in due)
        and data.decode(errors="ignore").encode() != data
    ):
        what = f"{path} is not UTF-8, and the block contains non-ASCII text"
        raise NpuprofError(
            Finding(
                "NP801",
                what,
                "",
                "save the script as UTF-8 first",
                where=Place(path),
                severity="error",
            )
        )
