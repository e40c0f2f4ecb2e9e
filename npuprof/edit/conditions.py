"""Conditions on resolved values, for ``--where``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from npuprof import catalog
from npuprof.catalog import condition, written_condition
from npuprof.catalog.axes import find_undeclared_values
from npuprof.checks import setting_values
from npuprof.checks.meaning import UNKNOWN, guess_plain_value
from npuprof.document import keys
from npuprof.model import Axes, Finding, NpuprofError, build_error, did_you_mean, raise_any
from npuprof.resolve.config import Config


class Conditions:
    """Conditions that a preset must all satisfy; ``declared`` are axes that they may read.

    Raises NpuprofError for an invalid one, with a hint.
    """

    def __init__(self, texts: Sequence[str], declared: Axes) -> None:
        self._declared = declared
        trees = [_parse_condition(text) for text in texts]
        self._tree = ("and", *trees) if len(trees) > 1 else trees[0]
        raise_any([*find_undeclared_values(self._tree, declared)])
        self._unset = written_condition.find_unknown_names(self._tree, declared)
        self._keys: set[str] = set()

    def accept(self, config: Config) -> bool:
        """Return whether the resolved values of a preset certainly satisfy the conditions."""
        # a key that the catalogue lacks is valid if any preset sets it
        self._unset = [key for key in self._unset if key not in config.settings]
        self._keys |= config.settings.keys() if self._unset else set()

        def look_up(path: tuple[str, ...]) -> tuple[bool | None, Any]:
            if path[0] in self._declared:
                value = config.context.find_value(path[0])
                meant = [value] if value else config.axes.get(path[0], ())
                return (True, meant[0]) if len(meant) == 1 else (None, None)
            return written_condition.look_up(config.scenario, config.settings, path)

        # unknown is not true: an edit must not reach presets by mistake
        return condition.evaluate_condition(self._tree, look_up) is True

    def require_known_names(self) -> None:
        """Raise NpuprofError for a name that no tested preset sets and the catalogue lacks."""
        if self._unset:
            raise NpuprofError(
                _build_unknown_name_finding(self._unset[0], self._keys, self._declared)
            )


def _parse_condition(text: str) -> Any:
    try:
        return written_condition.read_condition(text, _guess_value)
    except written_condition.ConditionError as error:
        raise build_error("NP013", error.what, written_condition.LANGUAGE, error.hint) from None


def _guess_value(key: str, value: Any, kind: str) -> Any:
    option = catalog.find_option(key)
    guess = (
        setting_values.guess_option_value(option, value)
        if option
        else guess_plain_value(value, kind)
    )
    return None if guess is UNKNOWN else guess


def _build_unknown_name_finding(key: str, set_keys: Collection[str], declared: Axes) -> Finding:
    section, name = keys.split_section_and_name(key)
    elsewhere = catalog.find_key_elsewhere(key, set_keys)
    otherwise = "npuprof options lists all; variables are env.NAME"
    hint = (
        f"write {elsewhere}"
        if elsewhere
        else did_you_mean(name, (*catalog.record_names(section), *declared), otherwise)
    )
    return Finding("NP201", f"--where asks for {key!r}, which is not a setting", "", hint)
