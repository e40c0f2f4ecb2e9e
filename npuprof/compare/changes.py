"""Two configs to the changes between them: typed, in the structured form, each with its cause on both sides."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.catalog import values
from npuprof.document import keys
from npuprof.model import SECTIONS, Origin, Path, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from npuprof.document import Document
    from npuprof.resolve.config import Config

#: Keys of ``[profile]`` that decide what a preset is for; the others are text for people.
META = ("scenario", "cann", "products")
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


class Change(Record):
    """One difference between two configs.

    ``key`` is the whole place (``modify_mixlist.black-list.to-add``), ``setting`` the setting it belongs to and
    ``tail`` what of it lies below. ``kind`` is ``added``, ``removed`` or ``changed``. Where the order of a list
    means nothing, each element that came or went is a change of its own (``element``). ``origins`` says who set
    the value before and after; where it was removed, who unset it, if anybody did. ``scope`` says for which product,
    release or target alone it holds.
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

    @property
    def sign(self) -> str:
        """``+``, ``-`` or ``~``."""
        return _SIGNS[self.kind]

    @property
    def cause(self) -> Origin | None:
        """Who brought the change about: whoever set or unset the value now, else who had set it before."""
        return self.origins[1] or self.origins[0]

    def compare_elements(self) -> list[tuple[str, str, Any, Any]]:
        """Return what changed inside a list: kind, place (``[2]``), element before, element after."""
        if not (isinstance(self.before, list) and isinstance(self.after, list)):
            return []
        return _compare_list_elements(self.before, self.after)


def compare_configs(before: Config, after: Config, trace: bool = True) -> list[Change]:
    """Return the changes from one config to another, in the catalogue's order; ``trace`` finds their origins.

    Values that mean the same are equal whatever form they are written in; ``true`` and ``1``, ``2`` and ``2.0``
    differ.
    """
    found = [
        change._replace(origins=_find_change_origins(before, after, change)) if trace else change
        for key in _find_differing_keys(before.settings, after.settings)
        for change in _compare_setting(key, before.settings, after.settings)
    ]
    return [*_compare_profile_tables(before, after), *found]


def compare_documents(before: Document | None, after: Document | None) -> list[Change]:
    """Return what differs between two files as they are written, inheritance aside."""
    old, new = before.data if before else {}, after.data if after else {}
    found = []
    for kind, tail, was, now in _walk_differences((), old, new, False):
        section, name = (str(tail[0]), str(tail[1])) if len(tail) > 1 else ("", "")
        setting = keys.format_full_key(section, name) if section in SECTIONS else ""
        unit, risk = find_unit_and_risk(setting) if setting else ("", ())
        origins = (
            Origin(before, tail) if before and kind != "added" else None,
            Origin(after, tail) if after and kind != "removed" else None,
        )
        found.append(Change(keys.format_key_path("", tail).lstrip("."), kind, was, now, setting, tail, False, unit, risk, origins))
    return found


def find_unit_and_risk(setting: str) -> tuple[str, tuple[str, ...]]:
    """Return the unit of a setting and what a change of it puts at risk, as far as the catalogue knows."""
    section, name = keys.split_section_and_name(setting)
    if section == "options":
        option = catalog.find_option(name)
        return (option.unit, tuple(option.risk)) if option else ("", ())
    twin = ""
    unit = ""
    if section == "env" and (variable := catalog.find_variable(name)):
        twin, unit = variable.session_option, variable.unit
    elif section == "atc" and (flag := catalog.find_flag(name)):
        twin = flag.twin
    option = catalog.find_option(twin) if twin else None
    return unit, tuple(option.risk) if option else ()


def _find_differing_keys(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the keys whose values differ, in the catalogue's order."""
    absent = object()
    found = []
    for key in {**before, **after}:
        old, new = before.get(key, absent), after.get(key, absent)
        if old is not new and not values.is_equivalent_setting(key, old, new):
            found.append(key)

    def catalogue_position(key: str) -> tuple[Any, ...]:
        section, name = keys.split_section_and_name(key)
        known = catalog.record_positions(section)
        return SECTIONS.index(section), known.get(name, len(known)), name

    return sorted(found, key=catalogue_position) if len(found) > 1 else found


def _compare_setting(key: str, before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    unit, risk = find_unit_and_risk(key)
    if key not in before or key not in after:
        kind = "added" if key in after else "removed"
        return [Change(key, kind, before.get(key), after.get(key), key, (), False, unit, risk)]
    structure = values.find_structure(key)
    old, new = values.parse_structured_value(key, before[key]), values.parse_structured_value(key, after[key])
    if type(old) is not type(new):
        old, new = before[key], after[key]
    unordered = bool(structure and structure.unordered)
    found = [
        Change(keys.format_key_path(key, tail), kind, was, now, key, tail, unordered and _is_list_on_both_sides(old, new, tail), unit, risk)
        for kind, tail, was, now in _walk_differences((), old, new, unordered)
    ]
    # Only the order of a table's keys can be left, where it means something.
    return found or [Change(key, "changed", before[key], after[key], key, (), False, unit, risk)]


def _walk_differences(tail: Path, old: Any, new: Any, unordered: bool) -> Iterator[tuple[str, Path, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            if name not in old:
                yield "added", (*tail, name), None, new[name]
            elif name not in new:
                yield "removed", (*tail, name), old[name], None
            else:
                yield from _walk_differences((*tail, name), old[name], new[name], unordered)
    elif unordered and _is_plain_list(old) and _is_plain_list(new):
        was, now = ({(type(item), item): item for item in side} for side in (old, new))
        yield from (("removed", tail, item, None) for mark, item in was.items() if mark not in now)
        yield from (("added", tail, None, item) for mark, item in now.items() if mark not in was)
    elif not values.is_same_typed_value(old, new):
        yield "changed", tail, old, new


def _is_plain_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, (str, int)) for item in value)


def _is_list_on_both_sides(old: Any, new: Any, tail: Path) -> bool:
    """Return whether both sides have a list at a place, so that a change there is one of an element."""
    for part in tail:
        if not (isinstance(old, dict) and isinstance(new, dict) and part in old and part in new):
            return False
        old, new = old[part], new[part]
    return _is_plain_list(old) and _is_plain_list(new)


def _compare_profile_tables(before: Config, after: Config) -> list[Change]:
    found = []
    for name in META:
        old, new = before.find_profile_value(name), after.find_profile_value(name)
        if name == "products":
            old, new = sorted(old or ()) or None, sorted(new or ()) or None
        if old == new:
            continue
        kind = "added" if old is None else "removed" if new is None else "changed"
        origins = (_find_meta_origin(before, name), _find_meta_origin(after, name))
        found.append(Change(f"profile.{name}", kind, old, new, f"profile.{name}", (), False, "", ("compatibility",), origins))
    return found


def _find_meta_origin(config: Config, name: str) -> Origin | None:
    return next((profile.origin("profile", name) for profile in reversed(config.lineage) if name in profile.table), None)


def _find_change_origins(before: Config, after: Config, change: Change) -> tuple[Origin | None, Origin | None]:
    was = None if change.kind == "added" else _find_value_origin(before, change, change.before)
    now = _find_unset_origin(after, change) if change.kind == "removed" else _find_value_origin(after, change, change.after)
    return was, now


def _find_value_origin(config: Config, change: Change, value: Any) -> Origin | None:
    if change.element:
        found, leaves = values.find_value(change.setting, config.traced_value(change.setting), change.tail)
        leaves = values.parse_structured_value(change.setting, leaves)
        if found and isinstance(leaves, list):
            leaf = next((leaf for leaf in leaves if isinstance(leaf, values.Leaf) and values.is_same_typed_value(leaf.value, value)), None)
            if leaf is not None:
                return leaf.origin
    return config.origin(change.setting, change.tail)


def _find_unset_origin(config: Config, change: Change) -> Origin | None:
    """Return who cleared a key, or replaced the list an element was in; None where nobody sets it any more."""
    for event in reversed(config.history(change.setting)):
        step = event.step
        if step.op == "unset" and step.tail == change.tail[: len(step.tail)]:
            return event.origin
        if change.element and step.op == "set":
            return config.origin(change.setting, change.tail)
    return None


def _compare_list_elements(before: list[Any], after: list[Any]) -> list[tuple[str, str, Any, Any]]:
    from deepdiff import DeepDiff

    kinds = {"iterable_item_added": "added", "iterable_item_removed": "removed", "dictionary_item_added": "added",
             "dictionary_item_removed": "removed", "values_changed": "changed", "type_changes": "changed"}  # fmt: skip
    found = []
    for name, levels in DeepDiff(before, after, view="tree").items():
        for level in levels if name in kinds else ():
            kind = kinds[name]
            path = level.path(output_format="list", force="fake")
            old, new = None if kind == "added" else level.t1, None if kind == "removed" else level.t2
            found.append((kind, keys.format_key_path("", tuple(path)), old, new))
    return sorted(found, key=lambda item: ([int(n) if n.isdigit() else n for n in item[1].strip("[]").split("][")], item[0] != "removed"))
