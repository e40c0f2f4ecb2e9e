"""``source update``: lock newer versions of sources, after showing what they change."""

from __future__ import annotations

import sys

from npuprof.commands.framework import Verb, arguments, flag
from npuprof.commands.framework.parameters import COLOR, DRY_RUN, STORE, formats
from npuprof.compare import data, markdown, plain
from npuprof.compare.survey import Survey, compare_lock_states
from npuprof.model import Record, build_usage_error
from npuprof.report import Answer
from npuprof.report.asking import answer_refusal, ask_on_terminal
from npuprof.store import spec
from npuprof.store.folder import Folder
from npuprof.store.project import Source
from npuprof.store.sources.copies import collect_files, find_fit_folder, write_copy
from npuprof.store.sources.lock import Lock, LockedSource, LockedVersion
from npuprof.store.sources.locking import list_unreadable
from npuprof.store.sources.manifest import MANIFEST, digest_manifest
from npuprof.store.sources.mirrorgit import open_mirror
from npuprof.store.sources.project_files import ProjectFiles
from npuprof.store.sources.reading import Sources, find_copy_faults
from npuprof.store.sources.sync import lock_sources
from npuprof.store.spec import Workspace


class _Step(Record):
    """An update: the new lock, the previous entries, vendored copies to write, whether it is new, and notes."""

    sources: dict[str, LockedSource]
    locked: dict[str, LockedSource]
    copies: dict[str, dict[str, bytes]]
    is_new: bool
    remarks: tuple[str, ...]


class Update(Verb):
    """Update the lock to the newest allowed commits.

    The rev of each source in npuprof.toml sets what is allowed. Before it writes npuprof.lock, npuprof shows how the presets of
    this repository change, and asks.
    """

    usage_hint = "npuprof source update team; rev in npuprof.toml limits the update"
    group = "team"

    names: list[str] = arguments("NAME...", "Sources to update [default: all]")
    yes: bool = flag("--yes", "-y", text="Write the lock without asking")
    frozen: bool = flag("--frozen", text="Write nothing, and exit with 1 if the lock would change")
    moved: bool = flag("--moved", text="Accept tags that moved upstream, and older versions if tags are gone")
    dry_run: bool = DRY_RUN
    format: str = formats("text", "markdown", "json")
    store: str | None = STORE
    color: str = COLOR

    def run(self) -> Answer:
        """Return the changes, and write the lock if the user agrees. Exit 1 if not, else 0. Raises NpuprofError."""
        if self.moved and self.frozen:
            what, hint = "--moved takes tags as they are now, and --frozen takes nothing", "omit --moved: moved tags are reported"
            raise build_usage_error(what, hint)
        place = spec.open_project_files(self.store, needs_lock=False)
        wanted = place.select_sources(self.names)
        if not wanted:
            place.refuse_nowhere()
            return Answer(None, (f"{place.cite('npuprof.toml')} names no sources",))
        step = self._find_step(place, wanted)
        answer = self._tell_step(place, step) if step.is_new else Answer()
        if self.frozen or self.dry_run:
            if not step.is_new:
                return Answer(None, (*step.remarks, "npuprof.lock is up to date"))
            return answer._replace(
                remarks=(*answer.remarks, "npuprof.lock would change; nothing was written"), code=1 if self.frozen else 0
            )
        if step.is_new and not self.yes and not ask_on_terminal(answer, self.format, "write npuprof.lock?"):
            return answer_refusal(answer, "written", shown=True)
        return self._take_step(place, step, answer)

    def _find_step(self, place: ProjectFiles, wanted: list[Source]) -> _Step:
        """Fetch sources, and return the update of the lock. Raises NpuprofError."""
        locking = lock_sources(place, wanted, self.moved)
        copies = _collect_copies(place, locking.sources)
        locked = {
            name: source._replace(copy=digest_manifest(copies[name][MANIFEST])) if name in copies else source
            for name, source in locking.sources.items()
        }
        unchanged = {name: known for name, known in place.lock.sources.items() if name in place.project.sources}
        new = {**unchanged, **locked}
        return _Step(new, locked, copies, new != place.lock.sources or place.is_lock_unread, locking.remarks)

    def _tell_step(self, place: ProjectFiles, step: _Step) -> Answer:
        """Return how an update changes the presets of this repository, with notes. Raises NpuprofError."""
        old, new = place.lock.sources, step.sources
        survey = _compare(place, new)
        lines = [line for name in sorted({*new, *old}) if (line := _format_step(name, old.get(name), new.get(name)))]
        lines += [line for name in sorted(new) for line in _list_moved_versions(old.get(name), new[name])]
        remarks = (*_list_remarks(place, new), *step.remarks)
        if place.is_lock_unread and old:
            remarks = (*remarks, "npuprof.lock cannot be read as it is: this is compared with that of HEAD")
        return Answer(self._build_forms(survey, lines), remarks)

    def _take_step(self, place: ProjectFiles, step: _Step, answer: Answer) -> Answer:
        """Write the lock and the vendored copies; ``answer`` describes the changes. Raises NpuprofError."""
        folders = _find_copy_folders(place, step.copies)  # checked before anything is written
        if not step.is_new:
            mended = ", ".join(_copy_anew(place, step.locked, step.copies, folders))
            return Answer(None, (*step.remarks, f"npuprof.lock is up to date{f'; copied again: {mended}' if mended else ''}"))
        written = place.write(None, step.sources)
        written += _copy_anew(place, step.locked, step.copies, folders)
        shown = answer.forms if self.yes or not sys.stdin.isatty() else None
        return Answer(shown, (*answer.remarks, f"wrote {', '.join(written)}"))

    def _build_forms(self, survey: Survey, steps: list[str]):  # type: ignore[no-untyped-def]
        head = "".join(f"{line}\n" for line in steps)
        return {
            "text": lambda: f"{head}\n{plain.format_survey_text(survey, False, self.coloured)}",
            "markdown": lambda: f"{''.join(f'- {line}{chr(10)}' for line in steps)}\n{markdown.format_survey_markdown(survey)}",
            "json": lambda: data.format_survey_json(survey, False, False),
        }


def _collect_copies(place: ProjectFiles, locked: dict[str, LockedSource]) -> dict[str, dict[str, bytes]]:
    """Return the files of the vendored copies of sources, by name. Raises NpuprofError."""
    return {name: collect_files(there) for name, there in locked.items() if place.project.sources[name].vendor}


def _find_copy_folders(place: ProjectFiles, copies: dict[str, dict[str, bytes]]) -> dict[str, str]:
    """Return the folders of vendored copies. Raises NpuprofError if one contains files that no copy put there."""
    sources = place.project.sources
    return {name: find_fit_folder(place, sources[name], sources[name].vendor, copies[name]) for name in copies}


def _copy_anew(
    place: ProjectFiles, locked: dict[str, LockedSource], copies: dict[str, dict[str, bytes]], folders: dict[str, str]
) -> list[str]:
    """Update the vendored copies that differ from the lock; return their folders.

    Raises NpuprofError.
    """
    sources = Sources(place.project, Lock(sources=locked), open_copy=place.open_copy)
    written: list[str] = []
    for name, texts in copies.items():
        if find_copy_faults(sources, name):
            write_copy(folders[name], texts)
            written.append(place.project.sources[name].vendor)
    return written


def _format_step(name: str, before: LockedSource | None, after: LockedSource | None) -> str:
    if before == after:
        return ""
    if before is None or after is None:
        there = before or after
        assert there is not None, "one of them is there"
        return f"{name}: {'now' if after else 'no longer'} at {there.shown} ({there.commit[:7]})"
    if (before.commit, before.url) == (after.commit, after.url):
        return f"{name}: still at {after.shown} ({after.commit[:7]}), its entry in npuprof.lock is rewritten"
    return f"{name}: {before.shown} ({before.commit[:7]}) -> {after.shown} ({after.commit[:7]})"


def _list_moved_versions(before: LockedSource | None, after: LockedSource) -> list[str]:
    """Return the references to versions of single presets that are new, removed, or resolve to another version."""
    old = before.versions if before is not None else {}
    moves: list[str] = []
    for reference in sorted({*old, *after.versions}):
        was, now = (_format_pin(versions.get(reference)) for versions in (old, after.versions))
        if was != now:
            moves.append(f"{after.name}:{reference}: {f'{was} -> {now}' if was and now else f'now {now}' if now else f'no longer {was}'}")
    return moves


def _format_pin(pin: LockedVersion | None) -> str:
    if pin is None:
        return ""
    return f"{pin.version} ({pin.commit[:7]})" if pin.version != "-" else pin.commit[:7]


def _compare(place: ProjectFiles, new: dict[str, LockedSource]) -> Survey:
    """Return how another lock changes the presets of the store."""
    sides: list[Workspace] = []
    # A source that no readable lock names is not locked, but exists.
    before = {**place.project.sources, **{name: _restore_source(place, known) for name, known in place.lock.sources.items()}}
    unproved = {
        name: known._replace(digest="", is_sealed=True) for name, known in place.lock.sources.items()
    }  # an invalid one is fixed by this command
    for project, lock, opener in (
        (place.project._replace(sources=before), Lock(sources=unproved), place.open_copy),
        (place.project, Lock(sources=new), None),
    ):
        side = Folder(place.home.root)
        side.is_implied = place.home.is_implied
        workspace = Workspace()
        workspace.use_store(side)
        workspace.lookups.use_sources(side, Sources(project, lock, open_copy=opener))
        sides.append(workspace)
    return compare_lock_states(sides[0], sides[1], ("npuprof.lock", "the update"))


def _restore_source(place: ProjectFiles, known: LockedSource) -> Source:
    """Return a source as of the time when it was locked, to be read from its mirror."""
    source = place.project.sources.get(known.name, Source(known.name, known.url))
    return source._replace(url=known.url, path=known.path, rev=known.rev, vendor="")


def _list_remarks(place: ProjectFiles, new: dict[str, LockedSource]) -> list[str]:
    """Return notes on the locked commits: yanked versions, unreadable presets."""
    moved = [locked for name, locked in new.items() if name not in place.lock.sources or place.lock.sources[name].commit != locked.commit]
    remarks = [f"{name} {locked.shown} is yanked: {locked.yanked}" for name, locked in new.items() if locked.yanked]
    for name, old in place.lock.sources.items():
        if old.tag and name in new and new[name].tag != old.tag and (why := open_mirror(name, old.url, old.path).find_yank(old.tag)):
            remarks.append(f"{name} {old.shown} was yanked: {why}")
    pins = [(f"{name}:{reference}", pin) for name, locked in new.items() for reference, pin in locked.versions.items()]
    remarks += [f"{reference} is yanked: {pin.yanked}" for reference, pin in pins if pin.yanked]
    return [*remarks, *(text for locked in moved for text in list_unreadable(locked))]


VERB = Update
