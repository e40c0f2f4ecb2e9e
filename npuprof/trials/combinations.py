"""Combinations of two configs.

Their differences are bits of a mask, and each mask has a checked config.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from npuprof.catalog import values
from npuprof.checks import identify_finding, require_exportable
from npuprof.compare.changes import Change, compare_configs, read_both_sides
from npuprof.document import keys, parse_document
from npuprof.document.profile import INHERITED_KEYS, Profile
from npuprof.model import (
    TYPE_CHECKING,
    Finding,
    NpuprofError,
    Path,
    Record,
    TomlTable,
    select_errors,
)
from npuprof.renderers.flattened import build_tables, format_tables
from npuprof.resolve import FixedPolicy, Resolver
from npuprof.resolve.digests import compute_digest
from npuprof.system import is_list_of

if TYPE_CHECKING:
    from npuprof.resolve.config import Config

    #: The identity of a finding's fault.
    Fault = tuple[str, str, str]


class Difference:
    """The differences of two configs: ``changes``, each a bit of a mask.

    ``untried`` are those of ``[profile]``, which are excluded.

    A mask selects the changes applied to the first config: none gives the first, all the second.
    """

    def __init__(self, before: Config, after: Config) -> None:
        self.before = before
        self.after = after
        changes = compare_configs(before, after)
        self.untried = tuple(change for change in changes if change.setting.startswith("profile."))
        self.changes = tuple(
            part
            for change in changes
            if not change.setting.startswith("profile.")
            for part in _split_change(change)
        )
        self.settings: dict[str, int] = {}  # the masks of their changes
        for index, change in enumerate(self.changes):
            self.settings[change.setting] = self.settings.get(change.setting, 0) | 1 << index

    @property
    def every(self) -> int:
        """The mask of all changes."""
        return (1 << len(self.changes)) - 1

    def select(self, mask: int) -> list[Change]:
        """Return the changes of a mask."""
        return [change for index, change in enumerate(self.changes) if mask >> index & 1]

    def build_settings(self, mask: int) -> TomlTable:
        """Return the settings of the first config with some changes made."""
        settings = dict(self.before.settings)
        for key, own in self.settings.items():
            chosen = mask & own
            if chosen == own:
                value = self.after.settings.get(key)
            elif chosen:
                value = self._mix_value(key, chosen)
            else:
                continue
            if value is None:
                settings.pop(key, None)
            else:
                settings[key] = value
        return settings

    def _mix_value(self, key: str, chosen: int) -> Any:
        """Return a setting with some of its changes applied; None if nothing is left."""
        was, _ = read_both_sides(key, self.before, self.after)
        # boxed, so that a value that is removed as a whole needs no special case
        box = {} if was is None else {"value": deepcopy(was)}
        for change in self.select(chosen):
            _make_change(box, change)
        return box.get("value")


def _split_change(change: Change) -> Iterator[Change]:
    """Yield the separable parts of a change.

    They are the elements of an unordered list that was added or removed as a whole.
    """
    content = change.after if change.kind == "added" else change.before
    parts = []
    if values.is_unordered(change.setting) and change.kind != "changed" and not change.element:
        parts = list(_list_parts(content, change.tail))
    if len(parts) < 2:
        yield change
        return
    for part in parts:
        yield change._replace(
            key=keys.format_key_path(change.setting, part.tail),
            tail=part.tail,
            before=None if change.kind == "added" else part.value,
            after=part.value if change.kind == "added" else None,
            element=part.is_element,
        )


class _Part(Record):
    """A part of a value: its path below the setting, and whether it is a list element there."""

    tail: Path
    value: Any
    is_element: bool


def _list_parts(value: Any, tail: Path) -> Iterator[_Part]:
    """Yield the parts of a value, without duplicate list elements."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _list_parts(item, (*tail, name))
    elif value and is_list_of((str, int), value):
        # repr tells 1 from True, which are one key of a dict
        for item in {repr(item): item for item in value}.values():
            yield _Part(tail, item, True)
    else:
        yield _Part(tail, value, False)


def _make_change(box: TomlTable, change: Change) -> None:
    """Apply a change of the boxed value; tables that become empty are removed."""
    path, tables = ("value", *change.tail), [box]
    for part in path[:-1]:
        tables.append(tables[-1].setdefault(part, {}))
    value = change.after
    if change.element:
        items = tables[-1].get(path[-1], [])
        if change.kind == "removed":
            value = [item for item in items if repr(item) != repr(change.before)]
        else:
            value = [*items, change.after]
    if value or change.kind != "removed":
        tables[-1][path[-1]] = value
        return
    for table, part in zip(reversed(tables), reversed(path), strict=True):
        table.pop(part, None)
        if table:
            break


def list_errors(error: NpuprofError) -> tuple[Finding, ...]:
    """Return the errors that prevent a combination from being run, without warnings."""
    return tuple(select_errors(error.findings)) or error.findings


def build_flat_config(settings: Mapping[str, Any], like: Config, name: str) -> Config:
    """Return a config with these settings and another one's claims and context.

    Raises NpuprofError.
    """
    claims = {key: like.find_profile_value(key) for key in INHERITED_KEYS}
    text = format_tables(build_tables(claims, settings))
    document = parse_document(name, f"<{name}>", text)
    profile = Profile(document, key=f"trial:{compute_digest(dict(settings))}")
    policy = FixedPolicy(like.policy, profile)
    resolver = Resolver(policy, like.context, in_python=like.resolver.in_python)
    # combinations share most settings, and so most results of checks
    resolver.judged = like.resolver.judged
    return resolver.resolve_profile(profile, name)


class Combinations:
    """The configs between two others: which of them the checks allow, and why not the others.

    A combination is allowed if it has no errors that neither end has; ``fit`` raises NpuprofError
    for those that cannot be run.
    """

    def __init__(
        self,
        difference: Difference,
        name: str,
        fit: Callable[[Config], object] = require_exportable,
    ) -> None:
        self.difference = difference
        self._name = name
        self._fit = fit
        self._errors: dict[int, tuple[Finding, ...]] = {}
        self._configs: dict[int, Config | None] = {}
        self.excused = {
            identify_finding(error)
            for mask in (0, difference.every)
            for error in self._find_errors(mask)
        }

    def find_config(self, mask: int) -> Config | None:
        """Return the config of a combination; the given config for an end.

        None if it cannot be resolved.
        """
        if mask == 0:
            return self.difference.before
        if mask == self.difference.every:
            return self.difference.after
        if mask not in self._configs:
            self._find_errors(mask)
        return self._configs[mask]

    def compute_digest(self, mask: int) -> str:
        """Return the digest of a combination."""
        return compute_digest(self.difference.build_settings(mask))

    def find_new_errors(self, mask: int) -> tuple[Finding, ...]:
        """Return the errors of a combination that neither end has."""
        errors = self._find_errors(mask)
        if self._configs[mask] is None:  # unresolvable: cannot be run
            return errors
        return tuple(error for error in errors if identify_finding(error) not in self.excused)

    def _find_errors(self, mask: int) -> tuple[Finding, ...]:
        if mask not in self._errors:
            config = None
            errors: tuple[Finding, ...] = ()
            try:
                config = build_flat_config(
                    self.difference.build_settings(mask), self.difference.after, self._name
                )
                self._fit(config)
            except NpuprofError as error:
                errors = list_errors(error)
            self._configs[mask], self._errors[mask] = config, errors
        return self._errors[mask]
