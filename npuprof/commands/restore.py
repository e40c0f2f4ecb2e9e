"""``restore``: write a preset as it was at a revision, as a file or flattened."""

from __future__ import annotations

import os
from contextlib import suppress
from io import StringIO

from npuprof.commands.framework import argument, flag, option
from npuprof.commands.framework.parameters import ContextVerb
from npuprof.compare import preset_states, text_changes
from npuprof.compare.sides import compute_blob_id
from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.edit.preset_file import choose_cited_path
from npuprof.model import NpuprofError, Place, build_error
from npuprof.renderers.flattened import render_toml
from npuprof.report import Answer
from npuprof.report.text import escape_file_line
from npuprof.resolve.config import Config
from npuprof.resolve.digests import compute_digest
from npuprof.store import spec
from npuprof.store.folder import Folder
from npuprof.store.gitstore.revisions import Revision
from npuprof.store.spec import Workspace
from npuprof.store.worktree import find_converted_files
from npuprof.system import decode_safely, find_real_folder, writing
from npuprof.system.files import is_stream
from npuprof.system.locks import lock_folders
from npuprof.system.writing import ANYTHING, PlannedWrite


class Restore(ContextVerb):
    """Restore a preset from a revision.

    Writes the file as it was at REV and commits nothing. With --resolved, the options --cann and
    --product select overrides.
    """

    usage_hint = "Put the revision after the name: npuprof restore NAME@1.2.0"
    group = "versions"

    spec = argument("SPEC", "Preset and revision to restore: NAME@REV", "spec")
    resolved = flag("--resolved", text="Write a flattened preset that resolves as it did at REV")
    dry_run = flag("--dry-run", text="Show the file without writing it")
    force = flag("--force", text="Overwrite uncommitted edits, or an existing file named by -o")
    output = option(
        "--output", "-o", metavar="FILE", text="Write to FILE [default: the file of the preset]"
    )

    def run(self) -> Answer:
        """Write a preset's file as of a revision, flattened with ``resolved``.

        The effect is printed; with ``dry_run``, nothing is written. Raises NpuprofError, and then
        writes nothing.
        """
        workspace = self.open_workspace()
        name, revision = workspace.split_single_spec(self.spec, "restore")
        if not (name and revision):
            what = f"{self.spec!r} names no {'revision' if name else 'preset'}"
            name = name or "NAME"
            raise build_error("NP027", what, "", f"say which: {name}@HEAD, {name}@1.2.0")
        home = workspace.store
        if home.label == "builtin:":
            raise build_error(
                "NP027", "the shipped presets cannot be written", "", "work in a store of your own"
            )
        pin = home.repository.find_pin(f"{name}@{revision}")
        then = pin.home
        raw, notes = self._recover_text(workspace, then, name)
        now = None
        # the preset may be missing or broken now, which is why it is restored
        with suppress(NpuprofError):
            now = workspace.resolve_spec(name)
        folder = "" if self.output is not None else _find_folder(home, then, name)
        target = self.output or os.path.join(folder, f"{name}.toml")
        shown = os.path.relpath(target) if target != "-" else "-"
        after = _resolve_text(workspace, raw, name, shown)
        printed = self.dry_run or target == "-"
        if not printed:
            if folder:
                writing.make_folder_below(os.path.dirname(target), folder)
            with lock_folders([folder or find_real_folder(target)]):
                known = (
                    ANYTHING
                    if is_stream(target)
                    else self._read_replaced(workspace, name, target, raw)
                )
                writing.write_planned_files(
                    [PlannedWrite(choose_cited_path(target, shown), raw, known, folder)]
                )
            notes.append(
                f"{shown} is as it was at {pin.commit[:7]}" + (", flat" if self.resolved else "")
            )
        self.output = None  # the file is written, or the text is the answer
        shown_lines = map(escape_file_line, StringIO(decode_safely(raw), newline="\n"))
        text = raw if target == "-" else "".join(shown_lines) if printed else None
        return _describe_effect(now, after)._replace(forms=text, early_notes=tuple(notes))

    def _read_replaced(
        self, workspace: Workspace, name: str, target: str, new: bytes
    ) -> bytes | None:
        """Return the content of the file to replace.

        Raises NpuprofError if it is not committed anywhere.
        """
        content = writing.read_known_file(target)
        if self.force or content in (None, new):
            return content
        if self.output is not None:
            hint = "name another file, or write over it with --force"
            raise build_error(
                "NP923",
                f"{target} exists already",
                "Nothing is overwritten unasked.",
                hint,
                where=Place(target),
            )
        if not _is_committed(workspace, name, content or b""):
            shown = os.path.relpath(target)
            what = f"{shown} has uncommitted edits"
            why = "They would be lost; nothing was written."
            hint = "commit them first (npuprof commit), or discard them with --force"
            raise build_error("NP943", what, why, hint, where=Place(shown))
        return content

    def _recover_text(
        self, workspace: Workspace, then: Revision, name: str
    ) -> tuple[bytes, list[str]]:
        """Return the text to write, and the notes."""
        profile = then.profile(name)
        if not self.resolved:
            return _read_checked_out(then, name), []
        config = workspace.resolver.resolve_profile(profile)
        notes = []
        if any(member.overrides for member in config.lineage) and not (
            self.cann or self.product or self.frameworks or self.axes
        ):
            notes.append(
                "overrides for single products or releases are not "
                "in a flat preset; --cann and --product pick them"
            )
        return format_flat_preset(config).encode(), notes


def _find_folder(home: Folder, then: Revision, name: str) -> str:
    """Return the folder of the restored preset: the store, or that of npuprof.toml.

    Raises NpuprofError.
    """
    if not then.files[name].outside:
        home.profile_path(name)  # raises an error if there is no work tree
        return home.root
    if not home.is_outside(name):
        what = f"{name} lay outside the store then, and npuprof.toml does not name it now"
        raise build_error(
            "NP027",
            what,
            "Only the files it lists are presets.",
            "add its path to presets in npuprof.toml first",
        )
    return home.folder_of(name)


def _describe_effect(now: Config | None, after: Config | NpuprofError) -> Answer:
    """Return notes on how a restored preset differs from its current state."""
    if isinstance(after, NpuprofError):
        return Answer(
            notes=("it cannot be resolved any more, because other files have changed:",),
            problems=after.findings,
        )
    if now is None:
        return Answer()
    pair = preset_states.build_preset_pair(now, after)
    return Answer(
        aside=text_changes.format_pair_text(pair)
        + ("" if pair.is_different else "npuprof: it resolves as before\n")
    )


def format_flat_preset(config: Config) -> str:
    """Return a preset without parents that resolves to the same settings.

    Raises NpuprofError if that is impossible.
    """
    text = render_toml(config, True).text.lstrip("\n")
    # read back: the text must resolve to the same values without its parents
    again = Profile(parse_document(config.name, config.name, text))
    settings = {} if again.problems else {step.key: step.value for step in again.steps}
    if compute_digest(settings, config.form) != config.digest:
        what = f"a flat form of {config.name} would not resolve as it does"
        raise build_error(
            "NP027", what, "Nothing was written.", "restore the file itself, without --resolved"
        )
    return text


def _read_checked_out(then: Revision, name: str) -> bytes:
    """Return a file as git would check it out, with the line endings of this work tree.

    No filters are run.
    """
    raw = then.read_profile_text(name)
    checked_out = (
        None
        if then.files[name].is_link
        else then.repository.read_checked_out(then.commit, then.source_path(name))
    )
    return raw if checked_out is None else checked_out


def _is_committed(workspace: Workspace, name: str, raw: bytes) -> bool:
    """Return whether an ancestor of HEAD contains this content of the preset file."""
    repository = workspace.store.repository
    head = repository.load_revision(repository.resolve_commit("HEAD"))
    # line endings and filters change bytes of a committed file
    if name in head.files and find_converted_files(repository, [name], head.files):
        return True
    # git may have checked the file out with CRLF
    for content in {raw, raw.replace(b"\r\n", b"\n")}:
        oid = compute_blob_id(content, len(head.commit))
        log = repository.git.try_command(
            "log", "--max-count=1", "--format=%H", f"--find-object={oid}", "HEAD"
        )
        if not log.code and log.output.strip():
            return True
    return False


def _resolve_text(
    workspace: spec.Workspace, raw: bytes, name: str, source: str
) -> Config | NpuprofError:
    """Return what a text would resolve to in the current store."""
    try:
        return workspace.resolver.resolve_profile(
            Profile(parse_document(name, source, raw), key=f"restored:{name}", home=workspace.store)
        )
    except NpuprofError as error:
        return error


VERB = Restore
