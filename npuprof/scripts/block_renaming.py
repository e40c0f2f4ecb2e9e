"""Renames the presets of marked blocks; blocks that were up to date stay so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from npuprof.edit.changed import build_opener
from npuprof.model import Context, Finding, NpuprofError
from npuprof.report.text import count_rest
from npuprof.scripts import blocks
from npuprof.scripts.block_files import FileBlocks, PlannedBlocks, plan_blocks
from npuprof.scripts.blocks import Block, Injector, RefreshedBlock
from npuprof.scripts.file_discovery import find_script_files
from npuprof.store.folder import Folder
from npuprof.store.spec import Workspace
from npuprof.system import find_repository_top
from npuprof.system.files import read_plain_file

#: The maximum number of outdated blocks in a note.
_SHOWN = 5


def plan_renamed_blocks(
    top: str,
    rename_spec: Callable[[str], str],
    before: Injector,
    after: Injector,
    problems: list[Finding],
) -> PlannedBlocks:
    """Return the new scripts below a folder; unreadable ones are added to ``problems``.

    Blocks that are up to date are rendered again, even if only a parent is renamed, since their
    comments cite files. In outdated blocks only the marks change. Raises NpuprofError.
    """
    files = {}
    for path, data, marked in _read_blocks(top, problems):
        names = [
            (block, name) for block in marked if (name := rename_spec(block.spec)) != block.spec
        ]
        changes = [
            change
            for block in marked
            if (change := _refresh(block, rename_spec(block.spec), before, after))
        ]
        if names or changes:
            files[path] = FileBlocks(data, blocks.rename_marks(data, names), changes)
    return plan_blocks(files, force=False)


def describe_outdated_blocks(
    home: Folder, open_changed: Callable[[Context], Workspace]
) -> tuple[str, ...]:
    """Return a note on blocks of the repository that a changed store makes outdated."""
    top = find_repository_top(home.root)
    if not top:
        return ()
    place = os.path.relpath(top)
    before, after = (
        # the rendered text is only compared, so exports that need trust are no obstacle
        Injector(None, trusting=True, opener=opener)
        for opener in (build_opener(home), open_changed)
    )
    known = ((path, block) for path, _, marked in _read_blocks(place, []) for block in marked)
    outdated = [
        f"{path}:{block.first + 1} ({block.spec})"
        for path, block in known
        if _refresh(block, block.spec, before, after)
    ]
    if not outdated:
        return ()
    counted = (
        "1 block in a script is" if len(outdated) == 1 else f"{len(outdated)} blocks in scripts are"
    )
    return (
        (
            f"{counted} out of date by that: {count_rest(outdated, _SHOWN)}; "
            f"npuprof inject {place} --all refreshes"
        ),
    )


def _read_blocks(top: str, problems: list[Finding]) -> Iterator[tuple[str, bytes, list[Block]]]:
    for path in find_script_files([top], problems):
        try:
            data = read_plain_file(path)
            yield path, data, blocks.find_blocks(path, data)
        except OSError:
            continue
        except NpuprofError as error:
            # a file with broken marks must not prevent the rename in all others
            problems += [finding._replace(severity="warning") for finding in error.findings]


def _refresh(block: Block, name: str, before: Injector, after: Injector) -> RefreshedBlock | None:
    """Return a block under its new name, None if it stays unchanged.

    It must not be more outdated than before.
    """
    try:
        if not before.refresh_block(block).state.current:
            return None
        change = after.refresh_block(block, None, name)
    except NpuprofError:
        return None
    return None if change.state.current else change
