"""Values of settings: plain and structured forms, merging, and equality.

A value has a TOML type. When the fold tracks origins, every leaf is a ``Leaf``; the same functions
merge, append, remove and unset values with and without origins.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cache, lru_cache
from operator import add

from npuprof import catalog
from npuprof.model import TYPE_CHECKING, Any, Origin, Path, TomlTable, is_same_typed_value
from npuprof.system import is_list_of, map_leaves

if TYPE_CHECKING:
    from typing import NoReturn

    from npuprof.catalog.records import Option
    from npuprof.catalog.shapes import Structure


class Leaf:
    """A value that is neither a table nor a list, with its origin."""

    __slots__ = ("_path", "_whole", "value")

    def __init__(self, value: Any, whole: Origin, path: Path = ()) -> None:
        self.value = value
        self._whole = whole
        self._path = path

    @property
    def origin(self) -> Origin:
        """Its origin: that of the whole value, or of a path below."""
        return self._whole.locate_below(*self._path) if self._path else self._whole


#: The error message for an attempt to modify a value of a config.
_HINT = (
    "a config is a value and does not change; copy it "
    "(copy.deepcopy, dict(...)), or resolve with set={...}"
)


class NotAListError(Exception):
    """Raised for a change of the elements of a value that is not a list.

    ``path`` is the path below the setting.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path


@cache
def find_structure(key: str) -> Structure | None:
    """Return the structured form of a setting, or None."""
    if key.startswith("env."):
        variable = catalog.find_variable(key.removeprefix("env."))
        if variable is None or variable.kind != "pairs":
            return None
        from npuprof.catalog.key_value_pairs import find_pairs_form

        return find_pairs_form(variable.name)
    option = catalog.find_option(key)
    if option is not None and option.structure:
        return load_form(option.structure)
    section = catalog.load_sections().get(key.partition(".")[0])
    if not catalog.is_argument(key) or section is None or section.is_exact:
        return None
    return load_form("argument")  # a table is exported as JSON text


def is_unordered(key: str) -> bool:
    """Return whether the order of a setting's lists means nothing."""
    structure = find_structure(key)
    return structure is not None and structure.unordered


def load_form(name: str) -> Structure:
    """Return a structured form by name: of a text, or of a sidecar file. Raises KeyError."""
    from npuprof.catalog.structures import STRUCTURES

    if name in STRUCTURES:
        return STRUCTURES[name]
    from npuprof.catalog.sidecars import SIDECARS

    if name in SIDECARS:
        return SIDECARS[name]
    from npuprof.catalog.conversions import CONVERSIONS

    return CONVERSIONS[name]


def parse_structured_value(key: str, value: Any) -> Any:
    """Return the structured form of a text, or the value unchanged if it has none."""
    text = value.value if isinstance(value, Leaf) else value
    if not isinstance(text, str):
        return value
    structure = find_structure(key)
    parsed = structure.parse(text) if structure and not structure.file else None
    if parsed is None:
        return value
    return wrap_in_leaves(parsed, value.origin) if isinstance(value, Leaf) else parsed


#: For lookups of many paths of one text in a row.
_parse_once = lru_cache(maxsize=8)(parse_structured_value)


def wrap_in_leaves(value: Any, origin: Origin) -> Any:
    """Return a value with each leaf as a ``Leaf``, all with the same origin."""
    return map_leaves(lambda leaf: Leaf(leaf, origin), value)


def trace_leaves(value: Any, whole: Origin, path: Path = ()) -> Any:
    """Return a value with each leaf as a ``Leaf`` that has its own place in the document."""
    if isinstance(value, dict):
        return {name: trace_leaves(item, whole, (*path, name)) for name, item in value.items()}
    if isinstance(value, list):
        return [trace_leaves(item, whole, (*path, index)) for index, item in enumerate(value)]
    return Leaf(value, whole, path)


def merge_values(key: str, old: Any, new: Any) -> Any:
    """Return ``old`` merged with ``new``: tables are merged key by key, other values replaced."""
    if isinstance(new, dict):
        if isinstance(old, str) or type(old) is Leaf:
            old = parse_structured_value(key, old)
        if isinstance(old, dict):
            return _merge_tables(old, new)
    return new


def _merge_tables(old: TomlTable, new: TomlTable) -> TomlTable:
    merged = dict(old)
    for name, item in new.items():
        before = merged.get(name)
        both = isinstance(item, dict) and isinstance(before, dict)
        merged[name] = _merge_tables(before, item) if both else item  # type: ignore[arg-type]
    return merged


def read_choice(option: Option, text: str) -> str | int:
    """Return a value in its preset form."""
    if option.field == "i":
        return int(text)
    return text == "true" if option.field == "b" else text


def change_value(key: str, op: str, old: Any, new: Any) -> Any:
    """Return the value of a setting after a step: set, removed or appended elements.

    No element is appended to an unordered list that has it. Raises NotAListError.
    """
    if op == "set":
        return merge_values(key, old, new)
    if op == "remove" and old is None:
        return None
    join = _join_sets if is_unordered(key) else add
    change = subtract_lists if op == "remove" else join
    return _change_lists(change, parse_structured_value(key, old), parse_structured_value(key, new))


def _change_lists(change: Callable[..., list[Any]], old: Any, new: Any, path: Path = ()) -> Any:
    """Return ``old`` with ``change`` applied to each list that ``new`` has a list for."""
    if isinstance(new, dict):
        if old is not None and not isinstance(old, dict):
            raise NotAListError(path)
        merged = dict(old or {})
        for name, item in new.items():
            if name in merged or change is not subtract_lists:
                merged[name] = _change_lists(change, merged.get(name), item, (*path, name))
        return merged
    if not isinstance(new, list) or not (old is None or isinstance(old, list)):
        raise NotAListError(path)
    return change(old or [], new)


def _join_sets(old: list[Any], new: list[Any]) -> list[Any]:
    distinct = {identify_value(item): item for item in new}
    return [*old, *subtract_lists([*distinct.values()], old)]


def subtract_lists(old: list[Any], new: list[Any]) -> list[Any]:
    """Return the elements of a list that another list lacks."""
    removed = set(map(identify_value, new))
    return [item for item in old if identify_value(item) not in removed]


def identify_value(value: Any) -> Hashable:
    """Return what only values of equal content and types share, with or without origins."""
    if isinstance(value, dict):
        return frozenset([(name, identify_value(item)) for name, item in value.items()])
    if isinstance(value, list):
        return tuple(map(identify_value, value))
    return repr(value.value if isinstance(value, Leaf) else value)


def remove_path(key: str, old: Any, tail: tuple[str, ...]) -> Any:
    """Return ``old`` without the path ``tail``, None if nothing is left."""
    cut = Cut(key, old)
    cut.remove(tail)
    return cut.left


class Cut:
    """Removes paths from a value one by one; ``left`` is the remaining value, None if it is empty.

    The initial value is copied once, however many paths are removed, and never modified.
    """

    __slots__ = ("_key", "_own", "left")

    def __init__(self, key: str, value: Any) -> None:
        self._key = key
        self._own = False
        self.left = value

    def remove(self, tail: tuple[str, ...]) -> bool:
        """Remove the path ``tail`` and tables that become empty; return whether it existed."""
        if not tail:
            self.left = None
            return True
        table = self.left if self._own else parse_structured_value(self._key, self.left)
        inner = table
        for part in tail:
            if not isinstance(inner, dict) or part not in inner:
                return False
            inner = inner[part]
        if not self._own:
            table, self._own = _copy_tables(table), True
        way = [table]
        for part in tail[:-1]:
            way.append(way[-1][part])
        for inside, part in zip(reversed(way), reversed(tail), strict=True):
            del inside[part]
            if inside:
                break
        self.left = table or None
        return True


def _copy_tables(value: Any) -> Any:
    return (
        {name: _copy_tables(item) for name, item in value.items()}
        if isinstance(value, dict)
        else value
    )


def find_value(key: str, value: Any, tail: Path) -> tuple[bool, Any]:
    """Return whether a path below a setting has a value, and the value."""
    if tail and isinstance(value, Leaf):
        is_set, inner = find_value(key, value.value, tail)
        return is_set, wrap_in_leaves(inner, value.origin) if is_set else None
    if tail and isinstance(value, str):
        value = _parse_once(key, value)
    for part in tail:
        if (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and -len(value) <= part < len(value)
        ):
            value = value[part]
        else:
            return False, None
    return True, value


def find_setting_value(settings: Mapping[str, Any], key: str, tail: Path) -> tuple[bool, Any]:
    """Return whether settings have a value at a path below a key, and the value."""
    return find_value(key, settings[key], tail) if key in settings else (False, None)


def build_canonical_value(key: str, value: Any) -> Any:
    """Return a value in a canonical form for comparison: structured, unordered lists sorted.

    A variable without a structured form is its text.
    """
    structure = find_structure(key)
    if key.startswith("env."):
        is_list = isinstance(value, list)
        text = None if is_list else format_exported_text(key.removeprefix("env."), value)
        return value if text is None else parse_structured_value(key, text)
    if structure is None:
        return value
    value = parse_structured_value(key, value)
    if structure.unordered:
        return _sort_unordered_lists(value)
    return list(value.items()) if structure.ordered_keys and isinstance(value, dict) else value


def build_older_canonical_value(key: str, value: Any) -> Any:
    """Return a value in the canonical form of digest forms 1 and 2."""
    if key.startswith("env."):
        structure = find_structure(key) if isinstance(value, dict) else None
        return (structure and format_structured_value(structure, value)) or value
    return value if catalog.is_argument(key) else build_canonical_value(key, value)


def format_exported_text(name: str, value: Any) -> str | None:
    """Return the text of a variable in [env], None if its value differs per process."""
    if isinstance(value, dict):
        pairs = find_structure(f"env.{name}")
        return pairs.format(value) if pairs else None
    if isinstance(value, bool):
        record = catalog.find_variable(name)
        if record is not None and "1" in map(str, record.choices):
            return str(int(value))
        return str(value).lower()
    return str(value)


def _sort_unordered_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sort_unordered_lists(item) for name, item in value.items()}
    if is_list_of((str, int), value):
        return [item for _, item in sorted({(type(item).__name__, item) for item in value})]
    return value


def format_structured_value(structure: Structure, value: Any) -> str | None:
    """Return the text of a structured value.

    None if it would not be parsed back to an equal value.
    """
    try:
        text = structure.format(value)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return text if _drop_empty_tables(structure.parse(text)) == _drop_empty_tables(value) else None


def encode_field_value(name: str, value: Any) -> Any:
    """Return the protobuf field value of an option: a structured value as its documented text.

    For an option that names a file, a structured value stays a table, to be written to a file
    first. An invalid value without a text also stays as it is.
    """
    structure = find_structure(name) if isinstance(value, (dict, list)) else None
    if structure is None or structure.file:
        return value
    text = format_structured_value(structure, value)
    return value if text is None else text


def _drop_empty_tables(value: Any) -> Any:
    """Return a value without empty tables, which some texts cannot express."""
    return (
        {name: _drop_empty_tables(item) for name, item in value.items() if item != {}}
        if isinstance(value, dict)
        else value
    )


def is_equivalent_setting(key: str, left: Any, right: Any) -> bool:
    """Return whether two values of a setting are equivalent, in any form."""
    structure = find_structure(key)
    is_text = key.startswith("env.")
    if structure is None and not is_text:
        return is_same_typed_value(left, right)
    if is_same_typed_value(left, right):
        is_ordered = structure is not None and structure.ordered_keys and isinstance(left, dict)
        return not is_ordered or list(left) == list(right)
    kinds = (str, dict, list)
    either = is_text or (isinstance(left, kinds) and isinstance(right, kinds))
    return either and is_same_typed_value(
        build_canonical_value(key, left), build_canonical_value(key, right)
    )


def _refuse_change(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError(_HINT)


class FrozenDict(dict[str, "Any"]):
    """An immutable dict: behaves like a dict when read, compared or written as JSON.

    Raises TypeError when modified.
    """

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = (
        _refuse_change
    )

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)

    def __copy__(self) -> TomlTable:
        return dict(self)

    def __deepcopy__(self, memo: object) -> Any:
        return copy_value(self)


class FrozenList(list["Any"]):
    """An immutable list: behaves like a list when read, compared or written as JSON.

    Raises TypeError when modified.
    """

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse_change
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse_change

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: object) -> Any:
        return copy_value(self)


def freeze_value(value: Any) -> Any:
    """Return a value whose tables and lists are immutable at any depth."""
    if isinstance(value, dict):
        return FrozenDict({name: freeze_value(item) for name, item in value.items()})
    return FrozenList(map(freeze_value, value)) if isinstance(value, list) else value


def copy_value(value: Any) -> Any:
    """Return a copy of a value, with mutable tables and lists."""
    return map_leaves(lambda leaf: leaf, value)
