"""Arguments of ``set`` and ``unset`` as changes of a document: ``KEY=VALUE`` and ``KEY``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from npuprof.catalog import values
from npuprof.catalog.programs import spell_key
from npuprof.document import keys
from npuprof.document.profile import NAMES, PROFILE_KEYS, Profile
from npuprof.edit.changed import resolve_apart
from npuprof.edit.paths import MISSING, PathChange, assign_at_path, find_at_path
from npuprof.model import LIST_OPS, SECTIONS, Finding, Path, TomlTable, build_error, has_only_digits
from npuprof.store import assignment_arguments
from npuprof.system import list_items


def locate_key(text: str) -> tuple[Path, str]:
    """Return the document path of a user's key, and the full key of its setting.

    A key of ``[profile]`` is no setting: its full key is empty.
    """
    segments = keys.split_dotted_key(text) or ()
    assignment_arguments.require_shallow_key(text)
    if len(segments) > 1 and segments[0] == "profile":
        return segments, ""
    if len(segments) > 2 and segments[0] in LIST_OPS and segments[1] in SECTIONS:
        _, section, name, *_ = segments
        return segments, keys.format_full_key(section, name)
    key, tail = require_key(text)
    key = spell_key(key) or key
    section, name = keys.split_section_and_name(key)
    return (section, name, *tail), key


def require_key(text: str) -> tuple[str, Path]:
    """Return a key and the path below it. Raises NpuprofError for a text that is no key."""
    parsed = keys.parse_key(text)
    if parsed is None:
        raise build_error(
            "NP009", f"{text!r} is not a key", "", assignment_arguments.suggest_bare_key(text)
        )
    return parsed


def parse_assignment(data: TomlTable, text: str) -> PathChange | None:
    """Apply ``KEY=VALUE`` to ``data`` and return it as a change.

    None if the value is already set.
    """
    name, equals, raw = text.partition("=")
    # KEY:=VALUE is an assignment in other languages
    if not equals or name.endswith(":") or assignment_arguments.is_doubled(name, raw):
        raise build_error(
            "NP009", f"{text!r} is not KEY=VALUE", "", assignment_arguments.suggest_assignment(text)
        )
    assignment_arguments.require_closed_quote(text)
    path, key = locate_key(name.strip())
    depth = 3 if path[0] in LIST_OPS else 2
    value = assignment_arguments.parse_assigned_value(
        key if len(path) == depth == 2 else "", raw.strip()
    )
    if path[0] == "profile" and isinstance(value, str):
        value = split_listed_names(path, value)
    elif path[0] == "env":
        value = _prefer_number(value)
    change = _merge_into_text_value(data, PathChange(path, value), key, depth)
    # variables are texts: 3 and "3" are the same
    compared = key if path[0] == "env" and change.path == path[:depth] else ""
    if values.is_equivalent_setting(compared, find_at_path(data, change.path), change.value):
        return None
    assign_at_path(data, change.path, change.value)
    return change


def _prefer_number(value: Any) -> Any:
    """Return the value of a variable as an integer, as users write it, if its text stays equal.

    TOML integers have 64 bits: longer numbers stay text.
    """
    if (
        isinstance(value, str)
        and has_only_digits(value)
        and len(value) < 19
        # "007" would be another text as a number
        and str(int(value)) == value
    ):
        return int(value)
    return value


def _merge_into_text_value(data: TomlTable, change: PathChange, key: str, depth: int) -> PathChange:
    """Return a change that sets a whole value, if ``change`` sets a part of a value given as text.

    Other changes are returned as they are. Raises NpuprofError for a part of a value that has none.
    """
    path = change.path
    for end in range(1, len(path)):
        above = find_at_path(data, path[:end])
        if above is MISSING or isinstance(above, dict):
            continue
        parsed = values.parse_structured_value(key, above) if end == depth and key else above
        if not isinstance(parsed, dict):
            shown = keys.format_path(path[:end])
            what = (
                f"{shown} is {keys.format_short_value(above)}, which has no "
                f"{keys.format_key_segment(str(path[end]))}"
            )
            raise build_error(
                "NP920", what, "Only a table has keys inside.", f"set {shown} as a whole"
            )
        assign_at_path(parsed, path[end:], change.value)
        return PathChange(path[:end], parsed)
    return change


def split_listed_names(path: Path, value: str) -> Any:
    """Return the elements of a comma-separated list of ``[profile]``, other values unchanged.

    Examples are ``profile.extends=base/a,base/b`` and ``profile.axes.role=decode``.
    """
    key = PROFILE_KEYS.get(path[1])
    if path[1:2] != ("axes",) and (key is None or key.kind != NAMES):
        return value
    return [name.strip() for name in value.split(",") if name.strip()]


def find_removals(
    profile: Profile, data: TomlTable, text: str, notes: list[str]
) -> Iterator[PathChange]:
    """Remove a key from ``data``, and yield the changes that remove it from a document."""
    path, key = locate_key(text)
    shown = format_written_key(text)
    paths_with_depth = [(path, 1 if path[0] == "profile" else 2)]
    if path[0] in SECTIONS:
        paths_with_depth += [((op, *path), 3) for op in LIST_OPS]
    for full_path, depth in paths_with_depth:
        value_path = full_path[:depth]
        inner_path = full_path[depth:]
        written = find_at_path(data, value_path)
        if key and inner_path and isinstance(written, str):
            parsed = values.parse_structured_value(key, written)
            if find_at_path(parsed, inner_path) is not MISSING:
                assign_at_path(parsed, inner_path, MISSING)
                assign_at_path(data, value_path, parsed)
                notes.append(
                    f"{keys.format_path(value_path)} was text and is written as a table now"
                )
                yield PathChange(value_path, parsed)
        elif find_at_path(data, full_path) is not MISSING:
            removed = full_path
            # a table that would become empty is removed with its last key
            while len(removed) > depth and len(find_at_path(data, removed[:-1])) == 1:
                removed = removed[:-1]
            assign_at_path(data, removed, MISSING)
            notes.append(f"removed {shown} from {profile.document.source}")
            yield PathChange(removed, MISSING)
    if path[0] in SECTIONS:
        notes += _describe_setting_overrides(data, path, shown)


def _describe_setting_overrides(data: TomlTable, path: Path, shown: str) -> Iterator[str]:
    """Yield a note for each override that still sets a removed key."""
    blocks = find_at_path(data, ("override",))
    for number, block in enumerate(blocks if isinstance(blocks, list) else [], 1):
        if find_at_path(block, path) is not MISSING:
            match = keys.format_short_value(block.get("match", {}))
            yield f"{shown} is still set by override {number}, where {match} matches"


def find_inherited_keys(
    profile: Profile,
    data: TomlTable,
    written: Sequence[str],
    below: TomlTable | None,
) -> list[str]:
    """Return the keys in ``written`` that a preset inherits.

    ``below`` are the settings of the preset below a layer; without it, the parents decide.
    """
    setting_keys = [text for text in written if locate_key(text)[0][0] in SECTIONS]
    if below is None:
        below = resolve_inherited(profile, data) if setting_keys else {}
    inherited = []
    for text in setting_keys:
        path, key = locate_key(text)
        key = next((name for name in below if spell_key(name) == key), key)
        if values.find_setting_value(below, key, path[2:])[0]:
            inherited.append(text)
    return inherited


def collect_cleared_keys(data: TomlTable, written: Sequence[str]) -> list[str]:
    """Remove keys from a document's ``unset`` list, in any spelling.

    Return those that were in it.
    """
    path = ("profile", "unset")
    listed = find_at_path(data, path)
    if not isinstance(listed, list):
        return []
    requested = {keys.parse_key(format_written_key(text)) for text in written} - {None}
    removed = [
        name for name in listed if isinstance(name, str) and keys.parse_key(name) in requested
    ]
    if removed:
        assign_at_path(data, path, [name for name in listed if name not in removed] or MISSING)
    return removed


def resolve_inherited(profile: Profile, data: TomlTable) -> TomlTable:
    """Return the settings that a preset inherits and does not clear in ``data``.

    Raises NpuprofError.
    """
    if not profile.extends:
        return {}
    cleared = set()
    listed = find_at_path(data, ("profile", "unset"))
    if isinstance(listed, list):
        cleared = {keys.parse_key(name) for name in listed if isinstance(name, str)}
    child = Profile(profile.document, profile.key, profile.home)
    child.steps = tuple(
        step for step in child.steps if step.op == "unset" and (step.key, step.tail) in cleared
    )
    # its own overrides are no inherited values
    child.overrides = ()
    return dict(resolve_apart(child).settings)


def format_written_key(text: str) -> str:
    """Return a key in npuprof's spelling."""
    path, key = locate_key(text)
    return (
        keys.format_key_path(key, path[2:])
        if key and path[0] not in LIST_OPS
        else keys.format_path(path)
    )


def build_nothing_finding(profile: Profile, text: str, name: str, own: bool) -> Finding:
    """Return the finding for a key that the preset ``name`` neither sets nor inherits.

    With ``own``, only the preset's own file or layer was searched.
    """
    known = [
        keys.format_full_key(section, key)
        for section in SECTIONS
        for key, _ in list_items(profile.document.data.get(section))
    ]
    shown = format_written_key(text)
    what = (
        f"{name} says nothing itself of {shown}"
        if own
        else f"{name} neither sets nor inherits {shown}"
    )
    shows = f"npuprof show {name} {'--origin ' if own else ''}lists the effective values"
    hint = (
        assignment_arguments.suggest_key(shown, known)
        or f"{assignment_arguments.suggest_unknown_key(shown)} {shows}".strip()
    )
    return Finding("NP924", what, "", hint)
