"""Notes about the overrides of a preset that change a key which an edit has just set."""

from __future__ import annotations

from collections.abc import Iterator

from npuprof.catalog import values
from npuprof.document.keys import format_full_key
from npuprof.document.profile import Override, Profile
from npuprof.model import SECTIONS


def describe_shadowing_overrides(before: Profile, after: Profile) -> list[str]:
    """Return a note for each key with a new value in a preset that the preset's own overrides change as well."""
    notes = []
    for key in _list_changed_keys(before, after):
        overrides = [
            f"{after.origin('override', number)}{_format_match(override)}"
            for number, override in enumerate(after.overrides)
            if any(step.key == key for step in override.steps)
        ]
        if overrides:
            notes.append(f"{key} is changed again by {'overrides' if overrides[1:] else 'an override'}: {', '.join(overrides)}")
    return notes


def _list_changed_keys(before: Profile, after: Profile) -> Iterator[str]:
    """Yield the keys that have another value than before in the preset itself, overrides aside."""
    for section in SECTIONS:
        old, new = before.document.data.get(section), after.document.data.get(section)
        for name, value in new.items() if isinstance(new, dict) else ():
            if not (isinstance(old, dict) and name in old and values.is_same_typed_value(old[name], value)):
                yield format_full_key(section, name)


def _format_match(override: Override) -> str:
    conditions = ", ".join(f"{name} {' or '.join(texts)}" for name, texts in override.match.items())
    return f" ({conditions})" if conditions else ""
