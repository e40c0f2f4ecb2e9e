"""``rename``: rename a preset and every reference to it, in all files or none."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from npuprof.commands.framework import argument, flag
from npuprof.commands.framework.parameters import DRY_RUN, StoreVerb
from npuprof.edit.changed import build_opener
from npuprof.edit.moving import Moved
from npuprof.model import Context, Finding, NpuprofError, raise_any
from npuprof.report import Answer
from npuprof.report.isolating import collect_errors
from npuprof.report.text import format_count
from npuprof.scripts.block_files import PlannedBlocks
from npuprof.scripts.block_renaming import plan_renamed_blocks
from npuprof.scripts.blocks import Injector
from npuprof.store import spec
from npuprof.system import find_repository_top, writing
from npuprof.system.locks import lock_folders


class Rename(StoreVerb):
    """Rename a preset and every reference to it.

    Updates dependents, npuprof.toml, and the marked blocks of the repository; all of them resolve
    as before. References that pin a revision keep the old name.
    """

    usage_hint = "npuprof rename bert-training nlp/bert-training; --dry-run shows the changes."
    group = "presets"

    spec = argument("SPEC", "Preset to rename", "spec")
    name = argument("NEW", "New name of the preset", "nothing")
    dry_run = DRY_RUN
    no_check = flag(
        "--no-check", text="Rename even if some presets cannot be read or would resolve differently"
    )

    def run(self) -> Answer:
        """Return all changes as unified diffs, and write them unless it is a dry run.

        Raises NpuprofError, and then writes nothing.
        """
        home = spec.Workspace(self.store).store
        with lock_folders([home.root]):
            moved = Moved(home, self.spec, self.name)
            unread = moved.read_referrers()
            if unread and not self.no_check:
                hint = "fix it first, or pass --no-check"
                raise NpuprofError(
                    [
                        finding._replace(
                            hint=f"{finding.hint}; or {hint}" if finding.hint else hint
                        )
                        for finding in unread
                    ]
                )
            after = build_opener(moved.changed)
            if not self.no_check:
                _require_same_results(moved, after)
            problems = list(unread)
            scripts = _plan_scripts(moved, after, problems)
            if scripts is not None and scripts.rejections:
                raise NpuprofError(scripts.rejections)
            writes = [*moved.list_wanted(), *(scripts.writes.values() if scripts else ())]
            if not self.dry_run:
                writing.make_folder_below(os.path.dirname(moved.new.path), moved.new.folder)
                writing.write_planned_files(writes)
                # git does not track folders: an empty one would only be here
                writing.remove_empty_folders(moved.old.path, moved.new.folder)
        done = "would rename" if self.dry_run else "renamed"
        summary = f"{done} {self.spec} to {self.name}" + (
            f", also in {format_count(len(writes) - 2, 'other file')}" if writes[2:] else ""
        )
        notes = [summary, *moved.list_notes()]
        if not self.dry_run and find_repository_top(home.root):
            notes.append("npuprof commit commits the presets; git sees the file as renamed")
        return Answer(
            f"{scripts.shown if scripts else ''}{moved.format_difference()}",
            tuple(notes),
            problems=problems,
        )


def _require_same_results(moved: Moved, open_renamed: Callable[[Context], spec.Workspace]) -> None:
    """Raise NpuprofError if a preset would resolve differently."""
    before, after = (opener(Context()) for opener in (build_opener(moved.home), open_renamed))
    problems: list[Finding] = []
    for name in moved.home.names():
        # a preset that does not resolve before the rename has nothing to compare
        with suppress(NpuprofError):
            was = before.resolver.resolve_profile(before.store.profile(name))
            new_name = moved.name if name == moved.old_name else name
            with collect_errors(problems):
                now = after.resolver.resolve_profile(after.store.profile(new_name))
                # the preset digest covers all contexts, the other one the values in this one
                if (was.digest, was.preset_digest) != (now.digest, now.preset_digest):
                    what = f"{name} would resolve to something else"
                    why = "A rename changes no value of any preset."
                    problems.append(Finding("NP921", what, why, "rename it by hand"))
    raise_any(problems)


def _plan_scripts(
    moved: Moved, open_renamed: Callable[[Context], spec.Workspace], problems: list[Finding]
) -> PlannedBlocks | None:
    """Return the new scripts of the repository; None if there is none. Raises NpuprofError."""
    top = find_repository_top(moved.home.root)
    if not top:
        return None
    before, after = (
        Injector(None, trusting=True, opener=opener)
        for opener in (build_opener(moved.home), open_renamed)
    )

    def rename_spec(text: str) -> str:
        # a block may be rendered from a composed spec
        return "+".join(moved.name if part == moved.old_name else part for part in text.split("+"))

    return plan_renamed_blocks(os.path.relpath(top), rename_spec, before, after, problems)


VERB = Rename
