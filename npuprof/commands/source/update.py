"""``source update``: lock newer versions of sources, after showing what they change."""

from __future__ import annotations

import sys

from npuprof.commands.framework import Verb, arguments, flag
from npuprof.commands.framework.parameters import COLOR, DRY_RUN, STORE, formats
from npuprof.compare import json_changes, markdown_changes, text_changes
from npuprof.compare.survey import Survey, compare_lock_states
from npuprof.model import build_usage_error
from npuprof.report import Answer
from npuprof.report.asking import answer_refusal, confirm_on_terminal
from npuprof.store import spec
from npuprof.store.folder import Folder
from npuprof.store.project import Source
from npuprof.store.sources.copies import collect_files, find_fit_folder, write_copy
from npuprof.store.sources.lock import Lock, LockedSource, LockedVersion
from npuprof.store.sources.locked_commits import lock_sources
from npuprof.store.sources.locking import list_unreadable
from npuprof.store.sources.manifest import MANIFEST, digest_manifest
from npuprof.store.sources.mirrorgit import open_mirror
from npuprof.store.sources.opening import Sources, find_copy_faults
from npuprof.store.sources.project_files import ProjectFiles
from npuprof.store.spec import Workspace
from npuprof.system import join_lines


class _Step:
    """An update of the lock: its new ``sources``, the vendored copies, and notes.

    ``is_new`` is false if nothing in the lock changes.

    Raises NpuprofError if a source cannot be fetched.
    """

    def __init__(self, files: ProjectFiles, selected: list[Source], moved: bool) -> None:
        locking = lock_sources(files, selected, moved)
        self._files = files
        self._declared = files.project.sources
        self._old = files.lock.sources
        self._copies = {
            name: collect_files(there)
            for name, there in locking.sources.items()
            if self._declared[name].vendor
        }
        self._locked = {
            name: source._replace(copy=digest_manifest(self._copies[name][MANIFEST]))
            if name in self._copies
            else source
            for name, source in locking.sources.items()
        }
        unchanged = {name: known for name, known in self._old.items() if name in self._declared}
        self.sources = {**unchanged, **self._locked}
        self.is_new = self.sources != self._old or files.is_lock_unread
        self.notes = locking.notes

    def write(self) -> list[str]:
        """Write the lock if it changes, and the vendored copies that differ from it.

        Return their paths. Raises NpuprofError.
        """
        folders = {  # checked before anything is written
            name: find_fit_folder(
                self._files, self._declared[name], self._declared[name].vendor, texts
            )
            for name, texts in self._copies.items()
        }
        written = self._files.write(None, self.sources) if self.is_new else []
        sources = Sources(
            self._files.project, Lock(sources=self._locked), open_copy=self._files.open_copy
        )
        for name, texts in self._copies.items():
            if find_copy_faults(sources, name):
                write_copy(folders[name], texts)
                written.append(self._declared[name].vendor)
        return written

    def describe(self) -> list[str]:
        """Return a line for each source and each reference to a single version that changes."""
        old = self._old
        new = self.sources
        lines = [_format_step(name, old.get(name), new.get(name)) for name in sorted({*new, *old})]
        for name in sorted(new):
            lines += _list_moved_versions(old.get(name), new[name])
        return [line for line in lines if line]

    def compare(self) -> Survey:
        """Return how the new lock changes the presets of the store."""
        files = self._files
        sides = []
        # A source that no readable lock names is not locked, but exists.
        before = {
            **self._declared,
            **{name: self._restore_source(known) for name, known in self._old.items()},
        }
        unproved = {
            name: known._replace(digest="", is_sealed=True) for name, known in self._old.items()
        }  # this command fixes invalid ones
        for project, lock, opener in (
            (files.project._replace(sources=before), Lock(sources=unproved), files.open_copy),
            (files.project, Lock(sources=self.sources), None),
        ):
            side = Folder(files.home.root)
            side.is_implied = files.home.is_implied
            workspace = Workspace(opened=side)
            workspace.lookups.use_sources(side, Sources(project, lock, open_copy=opener))
            sides.append(workspace)
        return compare_lock_states(sides[0], sides[1])

    def _restore_source(self, known: LockedSource) -> Source:
        """Return a source as of the time when it was locked, to be read from its mirror."""
        source = self._declared.get(known.name, Source(known.name, known.url))
        return source._replace(url=known.url, path=known.path, rev=known.rev, vendor="")

    def list_notes(self) -> list[str]:
        """Return notes on the locked commits: yanked versions, unreadable presets.

        Then those of locking.
        """
        old = self._old
        new = self.sources
        moved = [
            locked
            for name, locked in new.items()
            if name not in old or old[name].commit != locked.commit
        ]
        notes = [
            f"{name} {locked.shown} is yanked: {locked.yanked}"
            for name, locked in new.items()
            if locked.yanked
        ]
        for name, was in old.items():
            if (
                was.tag
                and name in new
                and new[name].tag != was.tag
                and (why := open_mirror(name, was.url, was.path).find_yank(was.tag))
            ):
                notes.append(f"{name} {was.shown} was yanked: {why}")
        pins = [
            (f"{name}:{reference}", pin)
            for name, locked in new.items()
            for reference, pin in locked.versions.items()
        ]
        notes += [f"{reference} is yanked: {pin.yanked}" for reference, pin in pins if pin.yanked]
        notes += [text for locked in moved for text in list_unreadable(locked)]
        notes += self.notes
        if self._files.is_lock_unread and old:
            notes.append("npuprof.lock cannot be read as it is: this is compared with that of HEAD")
        return notes


class Update(Verb):
    """Update the lock to the newest allowed commits.

    The rev of each source in npuprof.toml sets what is allowed. Before it writes npuprof.lock,
    npuprof shows how the presets of this repository change, and asks.
    """

    usage_hint = "npuprof source update team; rev in npuprof.toml limits the update"
    group = "team"

    names = arguments("NAME...", "Sources to update [default: all]", "source")
    yes = flag("--yes", "-y", text="Write the lock without asking")
    frozen = flag("--frozen", text="Write nothing, and exit with 1 if the lock would change")
    moved = flag(
        "--moved", text="Accept tags that moved upstream, and older versions if tags are gone"
    )
    dry_run = DRY_RUN
    format = formats("text", "markdown", "json")
    store = STORE
    color = COLOR

    def run(self) -> Answer:
        """Return the changes, and write the lock if the user agrees.

        Exit 1 if not, else 0. Raises NpuprofError.
        """
        if self.moved and self.frozen:
            raise build_usage_error(
                "--moved takes tags as they are now, and --frozen takes nothing",
                "omit --moved: moved tags are reported",
            )
        files = spec.open_project_files(self.store, needs_lock=False)
        selected = files.select_sources(self.names)
        if not selected:
            files.require_file()
            return Answer(None, (f"{files.cite('npuprof.toml')} names no sources",))
        step = _Step(files, selected, self.moved)
        answer = (
            Answer(self._build_forms(step.compare(), step.describe()), tuple(step.list_notes()))
            if step.is_new
            else Answer()
        )
        if self.frozen or self.dry_run:
            if not step.is_new:
                return Answer(None, (*step.notes, "npuprof.lock is up to date"))
            return answer._replace(
                notes=(*answer.notes, "npuprof.lock would change; nothing was written"),
                code=1 if self.frozen else 0,
            )
        if (
            step.is_new
            and not self.yes
            and not confirm_on_terminal(answer, self.format, "write npuprof.lock?")
        ):
            return answer_refusal(answer, "written", shown=True)
        written = ", ".join(step.write())
        if not step.is_new:
            return Answer(
                None,
                (
                    *step.notes,
                    f"npuprof.lock is up to date{f'; copied again: {written}' if written else ''}",
                ),
            )
        shown = answer.forms if self.yes or not sys.stdin.isatty() else None
        return Answer(shown, (*answer.notes, f"wrote {written}"))

    def _build_forms(self, survey: Survey, steps: list[str]):  # type: ignore[no-untyped-def]
        head = join_lines(steps)
        return {
            "text": lambda: (
                f"{head}\n{text_changes.format_survey_text(survey, False, self.coloured)}"
            ),
            "markdown": lambda: (
                f"{''.join(f'- {line}{chr(10)}' for line in steps)}\n"
                f"{markdown_changes.format_survey_markdown(survey)}"
            ),
            "json": lambda: json_changes.format_survey_json(survey),
        }


def _format_step(name: str, before: LockedSource | None, after: LockedSource | None) -> str:
    if before == after:
        return ""
    if before is None or after is None:
        there = before or after
        assert there is not None, "one of them is there"
        return f"{name}: {'now' if after else 'no longer'} at {there.shown} ({there.commit[:7]})"
    if (before.commit, before.url) == (after.commit, after.url):
        return (
            f"{name}: still at {after.shown} ({after.commit[:7]}), "
            "its entry in npuprof.lock is rewritten"
        )
    return f"{name}: {before.shown} ({before.commit[:7]}) -> {after.shown} ({after.commit[:7]})"


def _list_moved_versions(before: LockedSource | None, after: LockedSource) -> list[str]:
    """Return lines on references to single versions that are new, removed or changed."""
    old = before.versions if before is not None else {}
    moves = []
    for reference in sorted({*old, *after.versions}):
        was = _format_pin(old.get(reference))
        now = _format_pin(after.versions.get(reference))
        if was == now:
            continue
        if not was:
            move = f"now {now}"
        elif not now:
            move = f"no longer {was}"
        else:
            move = f"{was} -> {now}"
        moves.append(f"{after.name}:{reference}: {move}")
    return moves


def _format_pin(pin: LockedVersion | None) -> str:
    if pin is None:
        return ""
    return f"{pin.version} ({pin.commit[:7]})" if pin.version != "-" else pin.commit[:7]


VERB = Update
