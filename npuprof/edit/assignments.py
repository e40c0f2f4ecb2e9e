"""Arguments of ``set`` and ``unset`` as changes of a document: ``KEY=VALUE`` and ``KEY``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from npuprof.catalog import values
from npuprof.document import keys
from npuprof.document.profile import NAMES, PROFILE_KEYS, Profile
from npuprof.edit.changed import resolve_apart
from npuprof.edit.paths import MISSING, PathChange, assign_at_path, find_at_path
from npuprof.model import SECTIONS, Finding, Path, build_error, has_only_digits
from npuprof.store import assignment_arguments


def locate_key(text: str) -> tuple[Path, str]:
    """Return the document path of a user's key, and the full key of its setting ("" for
    ``[profile]``).
    """
    segments = keys.split_dotted_key(text) or ()
    assignment_arguments.require_shallow_key(text)
    if len(segments) > 1 and segments[0] == "profile":
        return segments, ""
    if len(segments) > 2 and segments[0] == "append" and segments[1] in SECTIONS:
        return segments, keys.format_full_key(segments[1], segments[2])
    parsed = keys.parse_key(text)
    if parsed is None:
        raise build_error(
            "NP009", f"{text!r} is not a key", "", assignment_arguments.suggest_bare_key(text)
        )
    section, name = keys.split_section_and_name(parsed[0])
    return (section, name, *parsed[1]), parsed[0]


def parse_assignment(data: dict[str, Any], text: str) -> PathChange | None:
    """Apply ``KEY=VALUE`` to ``data`` and return it as a change.

    None if the value is already set.
    """
    name, equals, raw = text.partition("=")
    if not equals or name.endswith(":") or assignment_arguments.is_doubled(name, raw):
        raise build_error(
            "NP009", f"{text!r} is not KEY=VALUE", "", assignment_arguments.ASSIGNMENT_ADVICE
        )
    assignment_arguments.require_closed_quote(text)
    path, key = locate_key(name.strip())
    depth = 3 if path[0] == "append" else 2
    value = assignment_arguments.parse_assigned_value(
        key if len(path) == depth and path[0] != "append" else "", raw.strip()
    )
    if path[0] == "profile" and isinstance(value, str):
        value = split_listed_words(path, value)
    if (
        path[0] == "env"
        and isinstance(value, str)
        and has_only_digits(value)
        and len(value) < 19
        and str(int(value)) == value
    ):
        value = int(value)  # as users write it; the process gets the same text
    for end in range(1, len(path)):
        over = find_at_path(data, path[:end])
        if over is MISSING or isinstance(over, dict):
            continue
        parsed = values.parse_structured_value(key, over) if end == depth and key else over
        if not isinstance(parsed, dict):
            shown = keys.format_key_path("", path[:end]).lstrip(".")
            what = (
                f"{shown} is {keys.format_short_value(over)}, which has no "
                f"{keys.format_key_segment(str(path[end]))}"
            )
            raise build_error(
                "NP920", what, "Only a table has keys inside.", f"set {shown} as a whole"
            )
        assign_at_path(parsed, path[end:], value)
        path, value = path[:end], parsed
        break
    if values.is_same_typed_value(find_at_path(data, path), value):
        return None
    assign_at_path(data, path, value)
    return PathChange(path, value)


def split_listed_words(path: Path, value: str) -> Any:
    """Return the elements of a comma-separated list of ``[profile]``:
    ``profile.extends=base/a,base/b``.
    """
    key = PROFILE_KEYS.get(path[1])
    return (
        [word.strip() for word in value.split(",") if word.strip()]
        if key and key.kind == NAMES
        else value
    )


def find_removals(
    profile: Profile, data: dict[str, Any], text: str, notes: list[str]
) -> Iterator[PathChange]:
    """Remove a key from ``data``, and yield the changes that remove it from a document."""
    path, key = locate_key(text)
    shown = format_written_key(text)
    places = [(path, 1 if path[0] == "profile" else 2)]
    if path[0] in SECTIONS:
        places.append((("append", *path), 3))
    for place, depth in places:
        text_or_table = find_at_path(data, place[:depth])
        if key and len(place) > depth and isinstance(text_or_table, str):
            parsed = values.parse_structured_value(key, text_or_table)
            if find_at_path(parsed, place[depth:]) is not MISSING:
                assign_at_path(parsed, place[depth:], MISSING)
                assign_at_path(data, place[:depth], parsed)
                notes.append(
                    f"{keys.format_key_path('', place[:depth]).lstrip('.')} "
                    "was text and is written as a table now"
                )
                yield PathChange(place[:depth], parsed)
        elif find_at_path(data, place) is not MISSING:
            gone = place
            while len(gone) > depth and len(find_at_path(data, gone[:-1])) == 1:
                gone = gone[:-1]
            assign_at_path(data, gone, MISSING)
            notes.append(f"removed {shown} from {profile.document.source}")
            yield PathChange(gone, MISSING)
    blocks = find_at_path(data, ("override",))
    for index, block in enumerate(blocks if isinstance(blocks, list) else []):
        if path[0] in SECTIONS and find_at_path(block, path) is not MISSING:
            match = keys.format_short_value(block.get("match", {}))
            notes.append(f"{shown} is still set by override {index + 1}, where {match} matches")


def find_inherited_keys(
    profile: Profile,
    data: dict[str, Any],
    written: Sequence[str],
    below: dict[str, Any] | None = None,
) -> list[str]:
    """Return the effective keys that are set by a preset's parents, or by the preset below it
    (``below``).
    """
    places = [
        (text, path, key)
        for text, (path, key) in zip(written, map(locate_key, written), strict=True)
        if path[0] in SECTIONS
    ]
    settings = below if below is not None else resolve_inherited(profile, data) if places else {}
    return [
        text for text, path, key in places if values.find_setting_value(settings, key, path[2:])[0]
    ]


def collect_cleared_keys(data: dict[str, Any], written: Sequence[str]) -> list[str]:
    """Remove keys from a document's ``unset`` list, in any spelling.

    Return those that were in it.
    """
    path = ("profile", "unset")
    listed = find_at_path(data, path)
    if not isinstance(listed, list):
        return []
    wanted = {keys.parse_key(format_written_key(text)) for text in written} - {None}
    gone = [name for name in listed if isinstance(name, str) and keys.parse_key(name) in wanted]
    if gone:
        assign_at_path(data, path, [name for name in listed if name not in gone] or MISSING)
    return gone


def resolve_inherited(profile: Profile, data: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that a preset inherits and does not clear in ``data``.

    Raises NpuprofError.
    """
    if not profile.extends:
        return {}
    heir = Profile(profile.document, profile.key, profile.home)
    listed = find_at_path(data, ("profile", "unset"))
    known = (
        {keys.parse_key(name) for name in listed if isinstance(name, str)}
        if isinstance(listed, list)
        else set()
    )
    heir.steps = tuple(
        step for step in heir.steps if step.op == "unset" and (step.key, step.tail) in known
    )
    heir.overrides = ()
    return dict(resolve_apart(heir).settings)


def format_written_key(text: str) -> str:
    """Return a key in npuprof's spelling."""
    path, key = locate_key(text)
    return (
        keys.format_key_path(key, path[2:])
        if key and path[0] != "append"
        else keys.format_key_path("", path).lstrip(".")
    )


def build_nothing_finding(profile: Profile, text: str, name: str, own: bool) -> Finding:
    """Return the finding for a key that the preset ``name`` does not set, in its file or a layer.

    With ``own``, not in itself.
    """
    tables = {section: profile.document.data.get(section) for section in SECTIONS}
    known = [
        keys.format_full_key(section, name)
        for section, table in tables.items()
        if isinstance(table, dict)
        for name in table
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
