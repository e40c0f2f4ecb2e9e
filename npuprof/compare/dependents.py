"""Unchanged presets that an edited ancestor changes alike: one of each kind is compared."""

from __future__ import annotations

from collections.abc import Iterable

from npuprof.catalog import is_argument
from npuprof.checks.context_checks import list_parts
from npuprof.checks.view import list_chip_settings
from npuprof.compare.preset_states import Pair
from npuprof.compare.sides import StoreSide
from npuprof.document import parse_toml_text
from npuprof.model import is_same_typed_value
from npuprof.resolve.lineages import has_overrides
from npuprof.system import group_pairs, is_list_of

#: The tables of a plain preset.
_TABLES = ("profile", "options", "env")


def group_dependents(side: StoreSide, names: Iterable[str]) -> list[list[str]]:
    """Return the names of plain presets by kind.

    Presets of a kind have equal ``[profile]`` tables, apart from the description, and set the same
    options and variables, each to a text or number.
    """
    kinds = group_pairs((_find_kind(side.texts.read_profile_text(name)), name) for name in names)
    kinds.pop("", None)
    return list(kinds.values())


def _find_kind(text: bytes) -> str:
    """Return a text that presets of a kind share, an empty one if a preset is not plain."""
    try:
        data = {**parse_toml_text(text.decode())}
    except (ValueError, RecursionError):
        return ""
    tables = [data.pop(name, {}) for name in _TABLES]
    if data or not is_list_of(dict, tables):
        return ""
    profile, *sections = tables
    values = [value for section in sections for value in section.values()]
    # a reference with a version or a source may lead each preset elsewhere
    is_plain = {"@", ":"}.isdisjoint(str(profile.get("extends")))
    if not (is_plain and is_list_of((str, int, float), values)):
        return ""
    return repr(
        ({**profile, "description": type(profile.get("description"))}, *map(list, sections))
    )


def has_same_effect(pair: Pair) -> bool:
    """Return whether all presets of a kind change as this one, and get or lose no findings.

    No check may read one of its own values together with an inherited one that has changed.

    Raises NpuprofError for an invalid team policy.
    """
    before, after = pair.before, pair.after
    if not (before and after) or pair.broken or pair.fixed or pair.accepted:
        return False
    if before.policy or after.policy:
        return False  # its entries may be about some names only
    was, now = ([(m.name, m.table) for m in side.lineage] for side in (before, after))
    if was != now or has_overrides((*before.lineage, *after.lineage)):
        return False
    old, new = (
        side.resolver.fold_lineage(side.lineage[:-1], side.scenario) for side in (before, after)
    )
    changed = {key for key in {**old, **new} if not is_same_typed_value(old.get(key), new.get(key))}
    # the first argument of a program, and a "no-" form, tell of arguments that are not set
    if any(is_argument(key) and (".no-" in key or (key in old) != (key in new)) for key in changed):
        return False
    own = {step.key for step in after.profile.steps}
    touched = frozenset(changed | own)
    # the chip of a conversion decides what all checks read
    return touched.isdisjoint(list_chip_settings()) and not any(
        part & changed and part & own for part in list_parts(touched, ())
    )
