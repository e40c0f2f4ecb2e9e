"""``new``, ``set``, ``unset``: changes to the file of a preset, shown, checked, and written whole or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import Any

from npuprof import checks, document, edit, report, store
from npuprof.document.profile import Profile
from npuprof.edit import PathChange
from npuprof.edit.assignments import assignment, inherits, nothing, removal, spelled
from npuprof.edit.tree import MISSING, find_at_path
from npuprof.model import Finding, NpuprofError, Record
from npuprof.report import output
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_BOM = b"\xef\xbb\xbf"


class Target(Record):
    """The file an edit is for: ``path`` as it can be opened (``-`` is standard input), ``profile`` as it is now."""

    path: str
    profile: Profile
    folder: str


def set_values(spec_: str, given: Sequence[str], store_: str | None, dry_run: bool, no_check: bool) -> int:
    """Set values in a preset's own file and show the change."""

    def changes(profile: Profile) -> list[PathChange]:
        data = _copy(profile)
        found = [assignment(data, text) for text in given]
        return [change for change in found if change is not None]

    return _edit(spec_, store_, changes, dry_run, no_check)


def unset_keys(spec_: str, given: Sequence[str], store_: str | None, dry_run: bool, no_check: bool) -> int:
    """Remove values from a preset's own file; what is inherited goes into its ``unset``."""
    said: list[str] = []

    def changes(profile: Profile) -> list[PathChange]:
        data = _copy(profile)
        said.clear()
        found = [change for text in given for change in removal(profile, data, text, said)]
        left = [text for text in given if inherits(profile, data, text)]
        listed = list(find_at_path(data, ("profile", "unset"))) if find_at_path(data, ("profile", "unset")) is not MISSING else []
        added = [name for name in dict.fromkeys(map(spelled, left)) if name not in listed]
        said.extend(f"{name} is inherited: it stands in 'unset' now" for name in added)
        if added:
            found.append(PathChange(("profile", "unset"), [*listed, *added]))
        if not found:
            raise NpuprofError([nothing(profile, text) for text in given])
        return found

    code = _edit(spec_, store_, changes, dry_run, no_check)
    for line in said:
        output.write_to_stderr(f"npuprof: {line}")
    return code


def new_preset(
    name: str,
    extends: Sequence[str],
    head: dict[str, Any],
    given: Sequence[str],
    store_: str | None,
    dry_run: bool,
    no_check: bool,
) -> int:
    """Write a new preset; ``head`` is its ``[profile]`` beside ``extends``, None for what is not given."""
    workspace = spec.Workspace(store_)
    home = workspace.store
    _writable(home)
    if not store.is_profile_name(name):
        home.profile(name)  # says what a name is
    path = home.profile_path(name)
    _stays_inside(home.root, path, name)
    table = {key: value for key, value in head.items() if value is not None}
    if extends:
        table["extends"] = list(extends)
    data: dict[str, Any] = {"profile": table}
    changes = [PathChange(("profile", key), value) for key, value in table.items()]
    changes += [change for text in given if (change := assignment(data, text))]
    text = edit.apply_changes("[profile]\n", changes)
    source = os.path.join(home.label, f"{name}.toml")
    profile = Profile(document.parse_document(name, source, text), home=home)
    _judge(store_, None, profile, no_check)
    with _locked(home.root):
        if os.path.lexists(path):
            what = f"{source} exists already"
            raise NpuprofError([Finding("NP923", "error", what, "Nothing is overwritten.", "choose another name, or change it with set")])
        output.write_answer(_shown(source, None, text))
        if not dry_run:
            output.make_folder(os.path.dirname(path))
            output.write_files_atomically({path: text})
    output.write_to_stderr(f"npuprof: {'would write' if dry_run else 'wrote'} {source}")
    return 0


def _edit(spec_: str, store_: str | None, changes: Callable[[Profile], list[PathChange]], dry_run: bool, no_check: bool) -> int:
    target = _target(spec_, store_)
    with _locked(target.folder):
        if target.path == "-":
            old, before = target.profile.document.text, b""
            profile = target.profile
        else:
            before = output.read_file_content(target.path)
            profile = _read(target, before)
            old = profile.document.text
        new = edit.apply_changes(old, changes(profile))
        source = profile.document.source
        if new != old:
            _judge(store_, profile, Profile(document.parse_document(profile.name, source, new), profile.key, profile.home), no_check)
        difference = _shown(source, old, new)
        if target.path == "-":
            output.write_answer(new)
            output.write_to_stderr(difference.rstrip("\n") or "npuprof: nothing to change")
            return 0
        output.write_answer(difference)
        if new != old and not dry_run:
            if output.read_file_content(target.path) != before:
                why = "Another program wrote it while the change was being made."
                raise NpuprofError([Finding("NP922", "error", f"{source} has changed meanwhile", why, "try again", where=(source, 0, 0))])
            output.write_files_atomically({target.path: (_BOM if before.startswith(_BOM) else b"") + new.encode()})
    output.write_to_stderr(f"npuprof: {'nothing to change in' if new == old else 'would write' if dry_run else 'wrote'} {source}")
    return 0


def _target(spec_: str, store_: str | None) -> Target:
    """Return the file a spec names. Raises NpuprofError for what is no single file that can be written."""
    is_path = spec_.endswith(".toml")
    if not is_path and ("+" in spec_ or "@" in spec_):
        composed = "+" in spec_
        what = f"{spec_!r} is {'several presets' if composed else 'a preset as it was'}, and cannot be edited"
        hint = "name one of them" if composed else f"edit {spec_.partition('@')[0]!r}, or bring the old version back with restore"
        raise NpuprofError([Finding("NP920", "error", what, "An edit changes one file of the working tree.", hint)])
    workspace = spec.Workspace(store_)
    profile = workspace.profile(spec_)
    if spec_ == "-":
        return Target("-", profile, "")
    home = profile.home if isinstance(profile.home, store.Folder) else None
    inside = home is not None and profile.name != spec_ if is_path else True
    if home is not None and inside:
        _writable(home)
        return Target(home.profile_path(profile.name), profile, home.root)
    return Target(spec_, profile, os.path.dirname(os.path.abspath(spec_)))


def _writable(home: store.Folder) -> None:
    if home.label == "builtin:":
        why = "These presets come with npuprof and are the same for everybody."
        hint = "extend the preset in a store of your own: npuprof init, npuprof new NAME --extends PARENT"
        raise NpuprofError([Finding("NP920", "error", "builtin: is read-only", why, hint)])


def _stays_inside(root: str, path: str, name: str) -> None:
    real = os.path.realpath(root).rstrip(os.sep) + os.sep
    if not os.path.realpath(path).startswith(real):
        why = "A store is shared as it is; what lies outside it would be missing elsewhere."
        raise NpuprofError([Finding("NP005", "error", f"{name!r} leads out of the store", why, "choose another name")])


def _read(target: Target, raw: bytes) -> Profile:
    known = target.profile
    return Profile(document.parse_document(known.name, known.document.source, raw), known.key, known.home)


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Let one npuprof at a time change the files of a folder; the system frees the lock of a process that dies."""
    try:
        import fcntl

        handle = os.open(folder or ".", os.O_RDONLY)
    except (ImportError, OSError):  # no locks here: what is written is still compared with what was read
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _copy(profile: Profile) -> dict[str, Any]:
    from copy import deepcopy

    return deepcopy(profile.document.data)


def _judge(store_: str | None, old: Profile | None, new: Profile, no_check: bool) -> None:
    """Refuse an edit that brings errors, and tell the warnings it brings."""
    if no_check:
        return
    known = {_mark(finding) for finding in _findings(store_, old)} if old else _inherited(store_, new)
    brought = [finding for finding in _findings(store_, new) if _mark(finding) not in known]
    if any(finding.severity == "error" for finding in brought):
        output.write_to_stderr(
            "npuprof: nothing was written, since the preset would have errors it has not now; --no-check writes all the same"
        )
        raise NpuprofError(checks.fold_findings(f for f in brought if f.severity == "error"))
    told = checks.fold_findings(finding for finding in brought if finding.severity == "warning")
    if told:
        output.write_to_stderr(report.format_findings(told).rstrip("\n"))


def _inherited(store_: str | None, new: Profile) -> set[tuple[str, str, str]]:
    """Return the findings that a new preset's parents have already."""
    workspace = spec.Workspace(store_)
    found: set[tuple[str, str, str]] = set()
    for index, reference in enumerate(new.extends):
        try:
            found |= {_mark(finding) for finding in _findings(store_, workspace.find_extended_profile(reference, new, index))}
        except NpuprofError:
            continue  # said when the new preset is resolved
    return found


def _mark(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.key, finding.message


def _findings(store_: str | None, profile: Profile) -> list[Finding]:
    workspace = spec.Workspace(store_)
    if isinstance(profile.home, store.Folder):
        workspace.use_store(profile.home)
    try:
        return checks.check_config(workspace.resolver.resolve_profile(profile))
    except NpuprofError as error:
        return list(error.findings)


def _shown(source: str, old: str | None, new: str) -> str:
    """Return the change as a unified diff; nothing if there is none."""
    from difflib import unified_diff

    before, after = _lines(old or ""), _lines(new)
    names = ("/dev/null" if old is None else f"a/{source}", f"b/{source}")
    end = "\n\\ No newline at end of file\n"
    return "".join(line if line.endswith("\n") else line + end for line in unified_diff(before, after, *names))


def _lines(text: str) -> list[str]:
    return [line for line in text.replace("\n", "\n\0").split("\0") if line]
