"""``new``, ``set``, ``unset``: changes to the file of a preset, shown, checked, and written whole or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import Any

from npuprof import checks, document, edit, keys, layout, output, report, spec, store, values
from npuprof.edit import MISSING, Change, at
from npuprof.errors import NpuprofError
from npuprof.model import SECTIONS, Finding, Path
from npuprof.nearest import did_you_mean
from npuprof.profile import Profile
from npuprof.record import Record

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

    def changes(profile: Profile) -> list[Change]:
        data = _copy(profile)
        found = [_assignment(data, text) for text in given]
        return [change for change in found if change is not None]

    return _edit(spec_, store_, changes, dry_run, no_check)


def unset_keys(spec_: str, given: Sequence[str], store_: str | None, dry_run: bool, no_check: bool) -> int:
    """Remove values from a preset's own file; what is inherited goes into its ``unset``."""
    said: list[str] = []

    def changes(profile: Profile) -> list[Change]:
        data = _copy(profile)
        said.clear()
        found = [change for text in given for change in _removal(profile, data, text, said)]
        left = [text for text in given if _inherits(profile, data, text)]
        listed = list(at(data, ("profile", "unset"))) if at(data, ("profile", "unset")) is not MISSING else []
        added = [name for name in dict.fromkeys(map(_spelled, left)) if name not in listed]
        said.extend(f"{name} is inherited: it stands in 'unset' now" for name in added)
        if added:
            found.append(Change(("profile", "unset"), [*listed, *added]))
        if not found:
            raise NpuprofError([_nothing(profile, text) for text in given])
        return found

    code = _edit(spec_, store_, changes, dry_run, no_check)
    for line in said:
        output.talk(f"npuprof: {line}")
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
    if not store.is_name(name):
        home.profile(name)  # says what a name is
    path = home.path(name)
    _stays_inside(home.root, path, name)
    table = {key: value for key, value in head.items() if value is not None}
    if extends:
        table["extends"] = list(extends)
    data: dict[str, Any] = {"profile": table}
    changes = [Change(("profile", key), value) for key, value in table.items()]
    changes += [change for text in given if (change := _assignment(data, text))]
    text = edit.edited("[profile]\n", changes)
    source = os.path.join(home.label, f"{name}.toml")
    profile = Profile(document.read(name, source, text), home=home)
    _judge(store_, None, profile, no_check)
    with _locked(home.root):
        if os.path.lexists(path):
            what = f"{source} exists already"
            raise NpuprofError([Finding("NP923", "error", what, "Nothing is overwritten.", "choose another name, or change it with set")])
        output.answer(_shown(source, None, text))
        if not dry_run:
            output.make_folder(os.path.dirname(path))
            output.write_all({path: text})
    output.talk(f"npuprof: {'would write' if dry_run else 'wrote'} {source}")
    return 0


def _edit(spec_: str, store_: str | None, changes: Callable[[Profile], list[Change]], dry_run: bool, no_check: bool) -> int:
    target = _target(spec_, store_)
    with _locked(target.folder):
        if target.path == "-":
            old, before = target.profile.document.text, b""
            profile = target.profile
        else:
            before = _bytes(target.path)
            profile = _read(target, before)
            old = profile.document.text
        new = edit.edited(old, changes(profile))
        source = profile.document.source
        if new != old:
            _judge(store_, profile, Profile(document.read(profile.name, source, new), profile.key, profile.home), no_check)
        difference = _shown(source, old, new)
        if target.path == "-":
            output.answer(new)
            output.talk(difference.rstrip("\n") or "npuprof: nothing to change")
            return 0
        output.answer(difference)
        if new != old and not dry_run:
            if _bytes(target.path) != before:
                why = "Another program wrote it while the change was being made."
                raise NpuprofError([Finding("NP922", "error", f"{source} has changed meanwhile", why, "try again", where=(source, 0, 0))])
            output.write_all({target.path: (_BOM if before.startswith(_BOM) else b"") + new.encode()})
    output.talk(f"npuprof: {'nothing to change in' if new == old else 'would write' if dry_run else 'wrote'} {source}")
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
        return Target(home.path(profile.name), profile, home.root)
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


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        what = f"cannot read {path}: {str(error.strerror).lower()}"
        raise NpuprofError([Finding("NP003", "error", what, "", "check the path and its permissions")]) from None


def _read(target: Target, raw: bytes) -> Profile:
    known = target.profile
    return Profile(document.read(known.name, known.document.source, raw), known.key, known.home)


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Let one npuprof at a time change the files of a folder; the system frees the lock of a process that dies."""
    try:
        import fcntl
    except ImportError:  # a system without it: what is written is still compared with what was read
        yield
        return
    if not folder:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _copy(profile: Profile) -> dict[str, Any]:
    from copy import deepcopy

    return deepcopy(profile.document.data)


def _place(text: str) -> tuple[Path, str]:
    """Return the path in the document of a key a user wrote, and the full key of its setting ("" for ``[profile]``)."""
    segments = keys.split(text)
    if segments and segments[0] == "profile" and len(segments) > 1:
        return segments, ""
    appended = bool(segments) and segments is not None and segments[0] == "append" and len(segments) > 2 and segments[1] in SECTIONS
    if appended and segments is not None:
        return segments, keys.full(segments[1], segments[2])
    parsed = keys.parse(text)
    if parsed is None:
        raise NpuprofError([Finding("NP009", "error", f"{text!r} is not a key", "", "write the option's name, or section.name")])
    section, name = keys.section_and_name(parsed[0])
    return (section, name, *parsed[1]), parsed[0]


def _assignment(data: dict[str, Any], text: str) -> Change | None:
    """Return ``KEY=VALUE`` as a change and make it in ``data``; None where the value is there already."""
    name, equals, raw = text.partition("=")
    if not equals:
        raise NpuprofError([Finding("NP009", "error", f"{text!r} is not KEY=VALUE", "", "write hccl_timeout=600, or env.HCCL_ALGO='...'")])
    path, key = _place(name.strip())
    depth = 3 if path[0] == "append" else 2
    value = spec.literal(key if len(path) == depth and path[0] != "append" else "", raw.strip())
    if path[0] == "profile" and isinstance(value, str):
        value = _listed(path, value)
    if path[0] == "env" and isinstance(value, str) and value.isascii() and value.isdigit() and str(int(value)) == value:
        value = int(value)  # as people write it; what a process sees is the same
    for end in range(1, len(path)):
        over = at(data, path[:end])
        if over is MISSING or isinstance(over, dict):
            continue
        parsed = values.structured(key, over) if end == depth and key else over
        if not isinstance(parsed, dict):
            shown = keys.show("", path[:end]).lstrip(".")
            what = f"{shown} is {keys.shown(over)}, which has no {keys.segment(str(path[end]))}"
            raise NpuprofError([Finding("NP920", "error", what, "Only a table has keys inside.", f"set {shown} as a whole")])
        edit.assign(parsed, path[end:], value)
        path, value = path[:end], parsed
        break
    if values.same(at(data, path), value):
        return None
    edit.assign(data, path, value)
    return Change(path, value)


def _listed(path: Path, value: str) -> Any:
    """Return the words of a text for the lists of ``[profile]``: ``profile.extends=base/a,base/b``."""
    lists = ("extends", "products", "unset", "locked")
    return [word.strip() for word in value.split(",") if word.strip()] if path[1] in lists else value


def _removal(profile: Profile, data: dict[str, Any], text: str, said: list[str]) -> Iterator[Change]:
    """Yield what takes a key out of a document, and take it out of ``data``."""
    path, key = _place(text)
    shown = _spelled(text)
    places = [(path, 1 if path[0] == "profile" else 2)]
    if path[0] in SECTIONS:
        places.append((("append", *path), 3))
    for place, depth in places:
        if key and len(place) > depth and isinstance(at(data, place[:depth]), str):
            parsed = values.structured(key, at(data, place[:depth]))
            if at(parsed, place[depth:]) is not MISSING:
                edit.assign(parsed, place[depth:], MISSING)
                edit.assign(data, place[:depth], parsed)
                said.append(f"{keys.show('', place[:depth]).lstrip('.')} was text and is written as a table now")
                yield Change(place[:depth], parsed)
        elif at(data, place) is not MISSING:
            gone = place
            while len(gone) > depth and len(at(data, gone[:-1])) == 1:
                gone = gone[:-1]
            edit.assign(data, gone, MISSING)
            said.append(f"removed {shown} from {profile.document.source}{_comment_above(profile, gone)}")
            yield Change(gone, MISSING)
    for index, block in enumerate(at(data, ("override",)) if isinstance(at(data, ("override",)), list) else []):
        if path[0] in SECTIONS and at(block, path) is not MISSING:
            match = keys.shown(block.get("match", {}))
            said.append(f"{shown} is still set by override {index + 1}, where {match} matches")


def _comment_above(profile: Profile, path: Path) -> str:
    rows = layout.read(profile.document.text.replace("\r\n", "\n").rstrip("\n") + "\n")
    for index, row in enumerate(rows):
        if row.kind != "comment" and row.path == path and index and rows[index - 1].kind == "comment":
            return "; the comment above it stays"
    return ""


def _inherits(profile: Profile, data: dict[str, Any], text: str) -> bool:
    """Return whether a key is set by what the preset extends, and still in force."""
    path, key = _place(text)
    if path[0] not in SECTIONS or not profile.extends:
        return False
    heir = Profile(profile.document, profile.key, profile.home)
    listed = at(data, ("profile", "unset"))
    known = listed if isinstance(listed, list) else []
    heir.steps = tuple(step for step in heir.steps if step.op == "unset" and any(keys.parse(n) == (step.key, step.tail) for n in known))
    heir.overrides = ()
    workspace = spec.Workspace(None)
    workspace.keep(profile.home) if profile.home is not None else None
    settings = workspace.resolver.config(heir).settings
    return key in settings and values.find(key, settings[key], path[2:])[0]


def _spelled(text: str) -> str:
    path, key = _place(text)
    return keys.show(key, path[2:]) if key and path[0] != "append" else keys.show("", path).lstrip(".")


def _nothing(profile: Profile, text: str) -> Finding:
    own = [keys.full(section, name) for section in SECTIONS for name in profile.document.data.get(section, {})]
    what = f"{profile.name} neither sets nor inherits {_spelled(text)}"
    return Finding("NP924", "error", what, "", did_you_mean(_spelled(text), own, f"npuprof show {profile.name} lists what is in force"))


def _judge(store_: str | None, old: Profile | None, new: Profile, no_check: bool) -> None:
    """Refuse an edit that brings errors, and tell the warnings it brings."""
    if no_check:
        return
    known = {_mark(finding) for finding in _findings(store_, old)} if old else _inherited(store_, new)
    brought = [finding for finding in _findings(store_, new) if _mark(finding) not in known]
    if any(finding.severity == "error" for finding in brought):
        output.talk("npuprof: nothing was written, since the preset would have errors it has not now; --no-check writes all the same")
        raise NpuprofError(checks.gather(f for f in brought if f.severity == "error"))
    told = checks.gather(finding for finding in brought if finding.severity == "warning")
    if told:
        output.talk(report.findings_text(told).rstrip("\n"))


def _inherited(store_: str | None, new: Profile) -> set[tuple[str, str, str]]:
    """Return the findings that a new preset's parents have already."""
    workspace = spec.Workspace(store_)
    found: set[tuple[str, str, str]] = set()
    for index, reference in enumerate(new.extends):
        try:
            found |= {_mark(finding) for finding in _findings(store_, workspace.lookup(reference, new, index))}
        except NpuprofError:
            continue  # said when the new preset is resolved
    return found


def _mark(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.key, finding.message


def _findings(store_: str | None, profile: Profile) -> list[Finding]:
    workspace = spec.Workspace(store_)
    if isinstance(profile.home, store.Folder):
        workspace.keep(profile.home)
    try:
        return checks.check(workspace.resolver.config(profile))
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
