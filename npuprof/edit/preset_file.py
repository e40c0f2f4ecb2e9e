"""Edits of a preset's file: located, locked, checked, compared, and written atomically."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import unified_diff
from functools import partial

from npuprof import catalog, checks, document
from npuprof.document.keys import format_full_key
from npuprof.document.profile import Profile, ProfileSource
from npuprof.edit.changed import ChangedStore, find_faults, resolve_apart, select_new_findings
from npuprof.edit.dependents import require_valid_dependents
from npuprof.edit.paths import find_at_path
from npuprof.edit.toml_statements import split_lines
from npuprof.model import (
    Finding,
    NpuprofError,
    Record,
    TomlTable,
    build_error,
    is_same_typed_value,
    select_errors,
)
from npuprof.report import Answer, output
from npuprof.report.findings import format_findings
from npuprof.report.text import escape_file_line
from npuprof.store import BUILTIN, FILE, is_profile_name, is_source_reference, spec
from npuprof.store.folder import Folder, find_project_folder
from npuprof.store.problems import build_bad_new_name_finding
from npuprof.system import find_real_folder, group_pairs, list_items, writing
from npuprof.system.files import describe_os_error
from npuprof.system.locks import lock_folders
from npuprof.system.writing import PlannedWrite

#: The byte order mark that some editors write before UTF-8.
BOM = b"\xef\xbb\xbf"


class PresetFile(Record):
    """A file under edit: ``path`` to open (``-`` is standard input), its bytes, and its profile."""

    path: str
    raw: bytes
    profile: Profile

    @property
    def text(self) -> str:
        """The content of the file."""
        return self.profile.document.text

    @property
    def source(self) -> str:
        """The path to cite."""
        return self.profile.document.source

    def parse_changed(self, text: str) -> Profile:
        """Return the profile of another text. Raises NpuprofError."""
        return Profile(
            document.parse_document(self.profile.name, self.source, text),
            self.profile.key,
            self.profile.home,
        )

    def write_changed(self, text: str) -> None:
        """Write another text into the file.

        Raises NpuprofError if that fails, or if the file was changed by somebody else.
        """
        writing.write_planned_files([self.build_wanted(text)])

    def build_wanted(self, text: str) -> PlannedWrite:
        """Return the file with another text."""
        return PlannedWrite(
            choose_cited_path(self.path, self.source), encode_like(self.raw, text), self.raw
        )


def encode_like(raw: bytes, text: str) -> bytes:
    """Return a text as bytes, after a byte order mark if the bytes of the old file have one."""
    return (BOM if raw.startswith(BOM) else b"") + text.encode()


def choose_cited_path(path: str, source: str) -> str:
    """Return the cited path if it leads to the same file, so that messages use one path for it."""
    return source if os.path.realpath(source) == os.path.realpath(path) else path


def answer_shared_edit(
    name: str,
    workspace: spec.Workspace,
    change_text: ChangeText,
    dry_run: bool,
    no_check: bool,
    notes: list[str],
) -> Answer:
    """Edit the file of a spec; for standard input, the new text is the answer.

    Raises NpuprofError.
    """
    with open_for_edit(name, workspace) as file:
        new = change_text(file, None)
        changed = new != file.text
        if changed and not no_check:
            judge_change(file.profile, file.parse_changed(new))
            # a preset on standard input has no dependents
            if file.path != "-":
                require_valid_dependents(workspace, file.path, file.profile, new)
        if changed and "override" in file.profile.document.data:
            notes += describe_shadowing_overrides(file.profile, file.parse_changed(new))
        difference = format_difference(file.source, file.text, new)
        if file.path == "-":
            return Answer(new, tuple(notes), aside=difference or "npuprof: nothing to change\n")
        if changed and not dry_run:
            file.write_changed(new)
    return Answer(difference, (f"{describe_write(changed, dry_run)} {file.source}", *notes))


def describe_write(changed: bool, dry_run: bool) -> str:
    """Return what an edit did to a file, as the start of a note."""
    if not changed:
        return "nothing to change in"
    return "would write" if dry_run else "wrote"


def read_preset_file(home: Folder, name: str) -> PresetFile:
    """Return the file of a preset of a store. Raises NpuprofError if it is not a writable file."""
    profile = home.profile(name)
    path = home.profile_path(name)
    return PresetFile(path, _read_raw(path, profile), profile)


def _read_raw(path: str, profile: Profile) -> bytes:
    """Return the bytes of a preset's file; its size shows whether a byte order mark comes first.

    Raises NpuprofError if the file was deleted. (A later change of the file is detected when it is
    written.)
    """
    raw = profile.document.text.encode()
    try:
        size = os.path.getsize(path)
    except OSError as error:
        raise build_error(
            "NP003",
            f"cannot read {path}: {describe_os_error(error, path)}",
            "",
            "check the path and its permissions",
        ) from None
    return BOM + raw if size == len(BOM) + len(raw) else raw


#: Edits the text of a file; for a personal layer, it also gets the settings of the preset below.
ChangeText = Callable[[PresetFile, TomlTable | None], str]


class NewFile(Record):
    """A file to create: its path, the path to cite, and the folder that links may not leave."""

    path: str
    source: str
    folder: str

    def require_absent(self) -> None:
        """Raise NpuprofError if the path exists."""
        if os.path.lexists(self.path):
            what = f"{self.source} exists already"
            hint = "choose another name, or change it with set"
            raise build_error("NP923", what, "Nothing is overwritten.", hint)

    def build_wanted(self, content: bytes, mode: int | None = None) -> PlannedWrite:
        """Return the file with its content."""
        return PlannedWrite(
            choose_cited_path(self.path, self.source), content, None, self.folder, mode
        )


def locate_new_file(home: Folder, name: str) -> NewFile:
    """Return the file for a new preset's name in a store.

    Raises NpuprofError for an impossible name.
    """
    require_writable_store(home)
    if not is_profile_name(name):
        raise NpuprofError(build_bad_new_name_finding(name))
    path = home.profile_path(name)
    folder = home.folder_of(name)
    first, _, rest = name.partition("/")
    starts_with_store = first == os.path.basename(os.path.realpath(home.root))
    # profiles/base/x is a path as shells complete it, and no name
    if rest and starts_with_store and not os.path.isdir(os.path.join(home.root, first)):
        what = f"{name!r} would be {home.cite_file(f'{name}.toml')}"
        why = f"A name is a path below {home.label}."
        raise build_error(
            "NP004", what, why, f"write {rest}, or make the folder {first} there first"
        )
    if not os.path.realpath(path).startswith(os.path.realpath(folder).rstrip(os.sep) + os.sep):
        why = "A store is shared as it is; files outside it would be missing elsewhere."
        raise build_error("NP005", f"{name!r} leads out of the store", why, "choose another name")
    # only if the store is the top of the repository
    if os.path.realpath(path) == os.path.join(find_project_folder(home), FILE):
        why = f"{FILE} at the top of a repository says where its presets come from."
        raise build_error(
            "NP004", f"{name!r} cannot be the name of a preset here", why, "choose another name"
        )
    return NewFile(path, home.cite_file(f"{name}.toml"), folder)


def require_free_name(home: Folder, name: str, besides: str = "") -> None:
    """Raise NpuprofError if a preset has a name already, in any letter case.

    Some file systems ignore case.
    """
    taken = next(
        (known for known in home.names() if known.lower() == name.lower() and known != besides),
        None,
    )
    if taken:
        why = (
            "Nothing is overwritten."
            if taken == name
            else "On case-insensitive file systems they would be one file."
        )
        raise build_error(
            "NP923", f"there is a preset {taken!r} already", why, "choose another name"
        )


def answer_new_preset(
    home: Folder, texts: Mapping[str, str], dry_run: bool, no_check: bool
) -> Answer:
    """Write a new preset, the last of some texts by name, after parents that the store lacks.

    The answer is the texts as a unified diff. Raises NpuprofError, and then writes nothing.
    """
    files = {name: locate_new_file(home, name) for name in texts}
    for name, file in files.items():
        # before the check, whose findings would concern the existing preset
        file.require_absent()
        require_free_name(home, name)
    changed = ChangedStore(home, {name: (files[name].source, texts[name]) for name in texts})
    if not no_check:
        judge_change(None, changed.profile(name))
    with lock_folders([home.root]):
        for file in files.values():
            # again: it may have been created while the preset was checked
            file.require_absent()
            if not dry_run:
                writing.make_folder_below(os.path.dirname(file.path), file.folder)
        if not dry_run:
            writing.write_planned_files(
                [file.build_wanted(texts[name].encode()) for name, file in files.items()]
            )
    written = ", ".join(file.source for file in files.values())
    return Answer(
        "".join(format_difference(files[name].source, None, texts[name]) for name in texts),
        (f"{describe_write(True, dry_run)} {written}",),
    )


@contextmanager
def open_for_edit(name: str, workspace: spec.Workspace) -> Iterator[PresetFile]:
    """Open the single file of a spec, and lock its folder.

    Raises NpuprofError for a spec that is not a single writable file.
    """
    # before the preset is looked up, as the message would be about its name
    _require_one_file(name)
    if name == "-":
        yield PresetFile("-", b"", workspace.profile(name))
        return
    home, name_in_store = _locate_preset(name, workspace)
    if home and name_in_store:
        path = home.profile_path(name_in_store)
        folder = home.root
    else:
        home = None
        path = name
        folder = os.path.dirname(os.path.abspath(name))
    with lock_folders([folder, find_real_folder(path)]):
        # only under the lock: another npuprof may just have written it
        profile = workspace.profile(name)
        if home:
            require_writable_store(home)
        yield PresetFile(path, _read_raw(path, profile), profile)


def _require_one_file(name: str) -> None:
    """Raise NpuprofError for a spec that is not one file of the work tree."""
    if is_source_reference(name):
        what = f"{name!r} is a preset of another repository, and cannot be edited"
        hint = (
            "change it where it comes from, then npuprof source update here; or extend it, and "
            "set the value in a preset of your own"
        )
        raise build_error("NP920", what, "Sources are read as they are locked.", hint)
    if name.endswith(".toml"):
        return
    if "+" in name:
        kind = "several presets"
        hint = "name one of them"
    elif "@" in name:
        kind = "a preset as it was"
        hint = f"edit {name.partition('@')[0]!r}, or first npuprof restore {name}"
    else:
        return
    what = f"{name!r} is {kind}, and cannot be edited"
    raise build_error("NP920", what, "An edit changes one file of the working tree.", hint)


def _locate_preset(name: str, workspace: spec.Workspace) -> tuple[Folder | None, str]:
    """Return the store of a preset's name or path, and its name there.

    An empty name for a file outside of it.
    """
    if not name.endswith(".toml"):
        home = workspace.store
        if name.startswith(BUILTIN) or not home.in_work_tree:
            require_writable_store(workspace.profile(name).home)
        return home, name
    try:
        home = workspace.store
    except NpuprofError:
        return None, ""  # reported when the file is read
    return home, home.locate_file(os.path.abspath(name))


def require_writable_store(home: ProfileSource | None) -> None:
    """Raise NpuprofError for the store that npuprof ships."""
    if home and home.is_shipped:
        why = "These presets come with npuprof and are the same for everybody."
        hint = (
            "take the preset into a store of your own: "
            "npuprof init, then npuprof copy builtin:NAME NAME"
        )
        raise build_error("NP920", "builtin: is read-only", why, hint)


def judge_change(old: Profile | None, new: Profile) -> None:
    """Reject an edit that adds errors, and print the warnings it adds.

    ``old`` is None for a new preset. Raises NpuprofError.
    """
    # errors that were there before must not keep a user from fixing others
    known = find_faults(lambda: resolve_apart(old)) if old else _find_inherited_faults(new)
    require_no_new_errors(known, find_faults(lambda: resolve_apart(new)))


def require_no_new_errors(known: Iterable[Finding], findings: Iterable[Finding]) -> None:
    """Raise NpuprofError for errors that are not known, by identity, and print new warnings."""
    brought = select_new_findings(known, findings)
    if errors := select_errors(brought):
        output.print_note(
            "nothing written: the change would add errors "
            "to the preset; --no-check writes it anyway"
        )
        raise NpuprofError(checks.fold_findings(errors))
    warnings = checks.fold_findings(finding for finding in brought if finding.severity == "warning")
    if warnings:
        output.write_to_stderr(format_findings(warnings).rstrip("\n"))


def _find_inherited_faults(new: Profile) -> list[Finding]:
    """Return the findings that a new preset's parents already have."""
    findings = []
    for index, reference in enumerate(new.extends):
        with suppress(NpuprofError):  # reported when the new preset is resolved
            parent = spec.Workspace().find_parent(reference, new, index)
            findings += find_faults(partial(resolve_apart, parent))
    # the new preset may close a cycle
    return [finding for finding in findings if finding.code != "NP102"]


def format_difference(source: str, old: str | None, new: str) -> str:
    """Return a change as a unified diff for display, empty if there is none.

    ``old`` is None for a new file.
    """
    name = "/dev/null" if old is None else f"a/{source}"
    shown = []
    for line in unified_diff(split_lines(old or ""), split_lines(new), name, f"b/{source}"):
        shown.append(escape_file_line(line))
        if not line.endswith("\n"):
            shown.append("\\ No newline at end of file\n")
    return "".join(shown)


def describe_shadowing_overrides(before: Profile, after: Profile) -> list[str]:
    """Return a note for each changed key that the preset's own overrides change too."""
    notes = []
    origins = group_pairs(  # of the overrides that change a key
        (key, str(after.origin("override", index)))
        for index, override in enumerate(after.overrides)
        for key in {step.key for step in override.steps}
    )
    for key in _list_changed_keys(before, after):
        if key in origins:
            overrides = "overrides" if len(origins[key]) > 1 else "an override"
            notes.append(f"{key} is changed again by {overrides}: {', '.join(origins[key])}")
    return notes


def _list_changed_keys(before: Profile, after: Profile) -> Iterator[str]:
    """Yield the keys whose own value changed, without overrides."""
    for section in catalog.load_sections():
        for name, value in list_items(after.document.data.get(section)):
            old_value = find_at_path(before.document.data, (section, name))
            if not is_same_typed_value(old_value, value):
                yield format_full_key(section, name)
