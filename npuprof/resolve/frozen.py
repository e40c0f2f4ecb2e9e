"""Values that say so when somebody tries to change them: what a config hands out."""

from __future__ import annotations

from typing import Any, NoReturn

_HINT = "a config is a value and does not change; copy it (copy.deepcopy, dict(...)), or resolve with set={...}"


def _refuse_change(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError(_HINT)


class FrozenDict(dict[str, Any]):
    """A dict that cannot be changed: reads, compares and is written as JSON as any dict; raises TypeError otherwise."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse_change

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: object) -> dict[str, Any]:
        return {name: _thaw_value(item) for name, item in self.items()}


class FrozenList(list[Any]):
    """A list that cannot be changed: reads, compares and is written as JSON as any list; raises TypeError otherwise."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse_change
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse_change

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: object) -> list[Any]:
        return [_thaw_value(item) for item in self]


def freeze_value(value: Any) -> Any:
    """Return a value whose tables and lists cannot be changed, at any depth."""
    if isinstance(value, dict):
        return FrozenDict({name: freeze_value(item) for name, item in value.items()})
    return FrozenList(map(freeze_value, value)) if isinstance(value, list) else value


def _thaw_value(value: Any) -> Any:
    """Return a value of plain tables and lists, which may be changed."""
    if isinstance(value, dict):
        return {name: _thaw_value(item) for name, item in value.items()}
    return [_thaw_value(item) for item in value] if isinstance(value, list) else value
