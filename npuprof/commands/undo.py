"""``undo``: the last edit of a project taken back, where nobody has changed its files since."""

from __future__ import annotations

import os

from npuprof.commands.framework.parameters import DRY_RUN, STORE
from npuprof.commands.framework.verb import Verb
from npuprof.model import Finding, NpuprofError, Place
from npuprof.report.answer import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.report.journal import Edit, FileChange
    from npuprof.report.writing import Wanted
    from npuprof.store.edits import EditPlace


class Undo(Verb):
    """Take back the last edit made here; a second time makes it again.

    A file that was changed since is not touched, and then no other is.
    """

    usage_hint = "It takes back the last edit, whichever presets that changed; npuprof restore bert-training@HEAD takes back one preset."
    group = "edit"
    undoable = True

    dry_run: bool = DRY_RUN
    store: str | None = STORE

    def run(self) -> Answer:
        """Return what changes as a unified diff, written unless it is a dry run. Raises NpuprofError, and writes nothing then."""
        from npuprof.report import writing
        from npuprof.report.journal import read_last_edit
        from npuprof.report.locks import lock_folders
        from npuprof.store.edits import find_edit_place

        place = find_edit_place(self.store)
        edit = read_last_edit(place.file)
        if edit is None or not edit.changes:
            why, hint = "An edit is kept until the next one.", "git has what was committed: npuprof restore NAME@HEAD"
            raise NpuprofError([Finding("NP926", "there is no edit to undo here", why, hint)])
        with lock_folders(os.path.dirname(change.path) for change in edit.changes):
            wanted = _plan(place, edit)
            if wanted and not self.dry_run:
                for one in wanted:
                    writing.make_folder_below(os.path.dirname(one.path), one.below)
                writing.write_wanted_files(wanted)
                for one in wanted:
                    if one.content is None:
                        writing.remove_empty_folders(one.path, one.below)
        if not wanted:
            return Answer(None, (f"nothing is left to undo of: {edit.command}",))
        done = "would undo" if self.dry_run else "undid"
        return Answer("".join(map(_format_file, wanted)), (f"{done}: {edit.command}",))


def _plan(place: EditPlace, edit: Edit) -> list[Wanted]:
    """Return the files to put back; what a killed run did not get to is left out. Raises NpuprofError for any that was changed since."""
    from npuprof.report.writing import Wanted, read_known_file

    wanted: list[Wanted] = []
    refused: list[Finding] = []
    for change in edit.changes:
        folder = place.find_folder_of(change.path)
        shown = _cite(change.path)
        if not folder:
            what, why = f"{shown} is no file of {_cite(place.top)}", "What is kept here may only put back files of this project."
            refused.append(Finding("NP926", what, why, "bring it back where it belongs", where=Place(shown)))
            continue
        now = read_known_file(change.path)
        if now == change.after and now != change.before:
            wanted.append(Wanted(change.path, change.before, now, folder, change.mode))
        elif now != change.before:
            refused.append(_build_changed_finding(shown, change, edit.command, gone=now is None))
    if refused:
        raise NpuprofError(refused)
    return wanted


def _build_changed_finding(shown: str, change: FileChange, command: str, gone: bool) -> Finding:
    done = "has been removed" if gone else "is there again" if change.after is None else "has been changed"
    why = "Putting back what it held would lose that; nothing was written."
    return Finding("NP927", f"{shown} {done} since: {command}", why, f"look at it: git diff -- {shown}", where=Place(shown))


def _format_file(one: Wanted) -> str:
    from npuprof.edit.preset_file import format_difference

    old, new = (None if raw is None else raw.decode("utf-8-sig", errors="replace") for raw in (one.known, one.content))
    return format_difference(_cite(one.path).lstrip(os.sep), old, new)


def _cite(path: str) -> str:
    """Return a path as it is seen from here, where it lies below."""
    near = os.path.relpath(path, os.path.realpath(os.getcwd()))
    return path if near.startswith(os.pardir + os.sep) else near


VERB = Undo
