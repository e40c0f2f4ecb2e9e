"""Frozen records, cheap to define: making a named tuple or a dataclass of forty fields takes milliseconds."""

from __future__ import annotations

from typing import Any, Self, dataclass_transform


@dataclass_transform(frozen_default=True)
class Record:
    """A value with named fields, given by position or by name; class attributes are the defaults.

    Two records are equal when they are of one class and all their fields are.
    """

    _fields: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        self.__dict__.update(zip(self._fields, values, strict=False), **named)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._asdict() == other._asdict()

    def __hash__(self) -> int:
        return hash((type(self), *(str(value) for value in self._asdict().values())))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
        return f"{type(self).__name__}({fields})"

    def _asdict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}

    def _replace(self, **changes: Any) -> Self:
        new = object.__new__(type(self))
        new.__dict__.update({**self.__dict__, **changes})
        return new
