"""The typed changes between two configs, in structured form, each with its cause on both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from npuprof import catalog
from npuprof.catalog import values
from npuprof.document import Document, keys
from npuprof.model import (
    LIST_OPS,
    SECTIONS,
    TYPE_CHECKING,
    Origin,
    Path,
    Record,
    TomlTable,
    find_change_kind,
    is_same_typed_value,
)
from npuprof.resolve.claims import order_claims
from npuprof.system import group_pairs

if TYPE_CHECKING:
    from typing import Any

    from npuprof.compare.differences import Difference
    from npuprof.resolve.config import Config

#: Signs of changes in text output.
SIGNS = {"added": "+", "removed": "-", "changed": "~"}


class Change(Record):
    """One difference between two configs.

    ``key`` is the full path (``modify_mixlist.black-list.to-add``), ``setting`` its setting and
    ``tail`` the path below that. ``kind`` is ``added``, ``removed`` or ``changed``. In an unordered
    list, each added or removed element is a separate change (``element``). ``origins`` are the
    origins of the value before and after; of a removed value, the step that unset it, if any.
    ``extends`` is the edited line that added the preset of the new value, or removed the preset of
    the old one. ``scope`` is the product, release or target to which the change is limited.
    """

    key: str
    kind: str
    before: Any
    after: Any
    setting: str = ""
    tail: Path = ()
    element: bool = False
    unit: str = ""
    risk: tuple[str, ...] = ()
    origins: tuple[Origin | None, Origin | None] = (None, None)
    scope: str = ""
    extends: Origin | None = None

    @property
    def cause(self) -> Origin | None:
        """The cited origin: an edited ``extends``, else that after or before the change."""
        return self.extends or self.origins[1] or self.origins[0]

    @property
    def sign(self) -> str:
        """``+``, ``-`` or ``~``."""
        return SIGNS[self.kind]

    @property
    def has_lists(self) -> bool:
        """Whether both sides are lists."""
        return isinstance(self.before, list) and isinstance(self.after, list)

    def compare_elements(self) -> list[Difference]:
        """Return the changes inside a list; empty if one side is no list."""
        if not self.has_lists:
            return []
        from npuprof.compare import differences

        return differences.compare_lists(self.before, self.after)


def compare_configs(before: Config, after: Config, trace: bool = True) -> list[Change]:
    """Return the changes from one config to another, in catalogue order.

    With ``trace``, including their origins. Equivalent values are equal in any form; ``true`` and
    ``1``, ``2`` and ``2.0`` differ.
    """
    edits = _find_edited_parents(before, after)
    layers = {profile.name: layer for layer, profile in enumerate(after.lineage)}
    changes = [
        _add_edited_parent(change, edits)
        for key in _find_differing_keys(before.settings, after.settings)
        for change in compare_setting(key, before, after, trace, layers)
    ]
    return [*_compare_profile_tables(before, after), *changes]


def compare_setting(
    key: str, before: Config, after: Config, trace: bool, layers: Mapping[str, int] | None = None
) -> list[Change]:
    """Return the changes of a setting that differs.

    With ``trace``, including their origins, of which those in lower ``layers`` remove no element.
    """
    from npuprof.catalog.risks import find_unit_and_risk
    from npuprof.compare.differences import compare_pairs

    unordered = ((),) if values.is_unordered(key) else ()
    changes = [
        Change(
            keys.format_key_path(key, difference.tail),
            difference.kind,
            difference.before,
            difference.after,
            key,
            difference.tail,
            difference.element,
            *find_unit_and_risk(
                key, difference.tail, before.settings.get(key), after.settings.get(key)
            ),
        )
        for _, difference in compare_pairs({(): read_both_sides(key, before, after)}, unordered)
    ]
    return _trace_changes(before, after, changes, layers or {}) if trace else changes


def compare_documents(before: Document | None, after: Document | None) -> Iterator[Change]:
    """Yield the differences between two files as written, without inheritance."""
    from npuprof.catalog import risks
    from npuprof.compare import differences

    pairs = _pair_entries(before.data if before else {}, after.data if after else {})
    for entry, difference in differences.compare_pairs(pairs):
        path = (*entry, *difference.tail)
        kind = difference.kind
        setting = unit = ""
        risk: tuple[str, ...] = ()
        # only keys of sections are settings with a unit and a risk
        if path[0] in SECTIONS and len(path) > 1:
            setting = keys.format_full_key(*path[:2])
            unit, risk = risks.find_unit_and_risk(setting, path[2:])
        was = Origin(before, path) if before and kind != "added" else None
        now = Origin(after, path) if after and kind != "removed" else None
        yield Change(
            keys.format_path(path),
            kind,
            difference.before,
            difference.after,
            setting=setting,
            tail=path,
            unit=unit,
            risk=risk,
            origins=(was, now),
        )


def build_setting_change(
    key: str, before: Any, after: Any, was: Origin | None, now: Origin | None
) -> Change:
    """Return the change of a whole setting: None is an unset value.

    ``was`` and ``now`` are the origins.
    """
    from npuprof.catalog.risks import find_unit_and_risk

    unit, risk = find_unit_and_risk(key, (), before, after)
    kind = find_change_kind(before, after)
    return Change(key, kind, before, after, key, (), False, unit, risk, (was, now))


def build_one_sided_changes(
    settings: Mapping[str, Any], kind: str, find_origin: Callable[[str], Origin | None]
) -> list[Change]:
    """Return the settings that only one config has: all ``added``, or all ``removed``."""
    changes = []
    for key, value in settings.items():
        origin = find_origin(key)
        sides = (None, value, None, origin) if kind == "added" else (value, None, origin, None)
        changes.append(build_setting_change(key, *sides))
    return changes


def find_catalogue_position(key: str) -> tuple[int, int, str]:
    """Return the position of a setting in catalogue order.

    Unknown settings come last in their section, by name.
    """
    section, name = keys.split_section_and_name(key)
    return catalog.load_sections()[section].find_position(name)


def find_meta_value(config: Config, name: str) -> Any:
    """Return an inherited key of ``[profile]``; lists are sorted, as their order has no meaning."""
    value = config.find_profile_value(name)
    return sorted(value) if isinstance(value, list) else value


def _find_differing_keys(before: TomlTable, after: TomlTable) -> list[str]:
    """Return the keys whose values differ, in catalogue order."""
    differing = [
        key
        for key in {**before, **after}
        if key not in before
        or key not in after
        or not values.is_equivalent_setting(key, before[key], after[key])
    ]
    return sorted(differing, key=find_catalogue_position)


def read_both_sides(key: str, before: Config, after: Config) -> tuple[Any, Any]:
    """Return both values of a setting, None if unset: structured, unless that loses information."""
    written = before.settings.get(key), after.settings.get(key)
    if str not in map(type, written):
        return written
    old, new = (values.parse_structured_value(key, side) for side in written)
    # Values that are equal in structured form differ in how they are written.
    if type(old) is not type(new) or is_same_typed_value(old, new):
        return written
    return old, new


def _pair_entries(old: TomlTable, new: TomlTable) -> dict[Path, tuple[Any, Any]]:
    """Return the differences between two documents by path.

    Tables that both have are compared by entry, everything else by top-level key.
    """
    pairs: dict[Path, tuple[Any, Any]] = {}
    for name in {**old, **new}:
        was = old.get(name)
        now = new.get(name)
        if isinstance(was, dict) and isinstance(now, dict):
            pairs |= {(name, entry): (was.get(entry), now.get(entry)) for entry in {**was, **now}}
        else:
            pairs[name,] = was, now
    return {
        path: pair
        for path, pair in pairs.items()
        if not values.is_equivalent_setting(
            keys.format_full_key(*path) if len(path) == 2 and None not in pair else "", *pair
        )
    }


def _compare_profile_tables(before: Config, after: Config) -> Iterator[Change]:
    for name in order_claims(before.claims, after.claims):
        # an empty list of products means the same as none
        old = find_meta_value(before, name) or None
        new = find_meta_value(after, name) or None
        if old == new:
            continue
        key = f"profile.{name}"
        yield Change(
            key,
            find_change_kind(old, new),
            old,
            new,
            setting=key,
            risk=("compatibility",),
            origins=(before.find_profile_origin(name), after.find_profile_origin(name)),
        )


def _trace_changes(
    before: Config, after: Config, changes: list[Change], layers: Mapping[str, int]
) -> list[Change]:
    """Return changes of a setting with their origins; ``layers`` are those of profiles by name."""
    # Several changes of one list ask the same. Sides are by number, 0 is before and 1 is after: a
    # config as a key would be hashed by its digest, which takes long.
    sides = (before, after)
    found: dict[Any, Origin | None] = {}

    def find_last_step(side: int, change: Change) -> Origin | None:
        mark = side, change.setting, change.tail
        if mark not in found:
            found[mark] = _find_last_step(sides[side], sides[1 - side], change.setting, change.tail)
        return found[mark]

    def find_value_origin(side: int, change: Change, value: Any) -> Origin | None:
        if change.element:
            mark = f"elements {change.setting} {change.tail}"
            find = partial(_map_elements, sides[side], change.setting, change.tail)
            leaf = sides[side].remember(mark, find).get(repr(value))
            if leaf:
                return leaf.origin
        return sides[side].origin(change.setting, change.tail)

    def trace_removal(change: Change) -> Change:
        was = find_value_origin(0, change, change.before)
        now = find_last_step(1, change)
        if not (change.element and was and now):
            return change._replace(origins=(was, now))
        was_below = layers.get(now.profile, len(layers)) < layers.get(was.profile, 0)
        # A step in a layer below that of the element did not remove it.
        return change._replace(origins=(was, None if was_below else now))

    def trace_change(change: Change) -> Change:
        if change.kind == "removed":
            return trace_removal(change)
        was = None if change.kind == "added" else find_value_origin(0, change, change.before)
        now = find_value_origin(1, change, change.after)
        if change.has_lists:
            lost_step = find_last_step(0, change)
            new_step = find_last_step(1, change)
            # a list has several authors: the step that changed it is the cause, not the last one
            was = lost_step or was
            if new_step:
                now = new_step
            elif lost_step and lost_step.layer in LIST_OPS:
                now = None  # no line of the new state changed the list: one that did is gone
        return change._replace(origins=(was, now))

    return list(map(trace_change, changes))


def _find_edited_parents(before: Config, after: Config) -> dict[str, Origin]:
    """Return the ``extends`` that added or removed each preset that only one lineage contains."""
    old, new = ({profile.name: profile for profile in config.lineage} for config in (before, after))
    edited = [
        name
        for name, profile in new.items()
        if old.get(name, profile) is not profile and old[name].extends != profile.extends
    ]
    editors: dict[str, Origin] = {}
    if not edited:
        return editors
    for name in old.keys() ^ new.keys():
        direct = (
            editor for editor in edited if name in {*old[editor].extends} ^ {*new[editor].extends}
        )
        # Without a preset that named it directly, the last edit brought it or took it away.
        editors[name] = new[next(direct, edited[-1])].origin("profile", "extends")
    return editors


def _add_edited_parent(change: Change, edits: Mapping[str, Origin]) -> Change:
    """Return a change with the ``extends`` that caused it, unless its own line was edited."""
    for origin in reversed(change.origins):
        if origin and origin.profile in edits:
            return change._replace(extends=edits[origin.profile])
    return change


def _find_last_step(config: Config, other: Config, setting: str, tail: Path) -> Origin | None:
    """Return the last step that clears or writes a path and that the other config lacks."""
    known = group_pairs(
        ((event.origin.profile, event.step.path), event.step) for event in other.history(setting)
    )
    for event in reversed(config.history(setting)):
        step = event.step
        # both sides have this step, so that it explains no difference
        if step in known.get((event.origin.profile, step.path), ()):
            continue
        if step.op == "unset":
            # a table that was unset takes everything below it along
            if step.tail == tail[: len(step.tail)]:
                return event.origin
        elif values.find_value(setting, step.value, tail)[0]:
            return event.origin.locate_below(*tail)
    return None


def _map_elements(config: Config, setting: str, tail: Path) -> dict[str, values.Leaf]:
    """Return the elements of a list by ``repr`` of their values; of duplicates, the first."""
    leaves = values.parse_structured_value(
        setting, values.find_value(setting, config.traced_value(setting), tail)[1]
    )
    elements: dict[str, values.Leaf] = {}
    for leaf in leaves if isinstance(leaves, list) else ():
        if isinstance(leaf, values.Leaf):
            elements.setdefault(repr(leaf.value), leaf)
    return elements
