"""Compatibility matrices: where each preset works, and the effects of another release."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from npuprof import catalog, checks
from npuprof.catalog import products, releases
from npuprof.checks.changed_defaults import find_changed_defaults
from npuprof.checks.scope import MEANT_CODES
from npuprof.edit.migration import check_changed_defaults
from npuprof.edit.moves import Upgrade as Move
from npuprof.model import SEVERITIES, Context, Finding, Record
from npuprof.report.isolating import isolate_faults
from npuprof.report.text import format_count
from npuprof.resolve import contexts
from npuprof.resolve.config import Config
from npuprof.site.presets import Preset
from npuprof.system import group_pairs

Names = tuple[str, ...]
#: Errors, changed defaults and deprecated options.
Effects = tuple[Names, Names, Names]
#: The number of releases in the matrix, newest first.
_RELEASES = 8
#: The states of a cell, worst first.
_ORDER = ("error", "warning", "quiet", "ok")


class Cell(Record):
    """One preset on one platform: numbers of errors and warnings, codes, and support."""

    errors: int
    warnings: int
    codes: Names
    meant: bool = True

    @property
    def state(self) -> str:
        """``error``, ``warning``, ``ok``, or ``quiet`` if the preset does not support it."""
        if not self.meant:
            return "quiet"
        if self.errors:
            return "error"
        return "warning" if self.warnings else "ok"

    @property
    def text(self) -> str:
        """The cell in words."""
        if not self.meant:
            return "not meant"
        if self.errors:
            return format_count(self.errors, "error")
        return format_count(self.warnings, "warning") if self.warnings else "ok"


class Row(Record):
    """Presets with the same cells, and their cells other than ``ok``, each with its columns."""

    names: Names
    cells: tuple[Cell, ...]
    others: tuple[tuple[Cell, Names], ...]


class Matrix(Record):
    """Presets on platforms of one kind."""

    title: str
    columns: Names
    rows: tuple[Row, ...]


class Upgrade(Record):
    """The effects of a release, equal for some presets: errors, changed defaults, deprecations."""

    names: Names
    breaks: Names
    defaults: Names
    deprecated: Names


@cache
def _list_columns() -> tuple[Names, Names]:
    """Return the releases and the products of the matrices."""
    return tuple(releases.load_releases()[-_RELEASES:]), tuple(products.load_products())


@cache
def _list_contexts() -> tuple[Context, ...]:
    shown, families = _list_columns()
    return (
        *(Context(cann=release) for release in shown),
        *(Context(product=name) for name in families),
    )


def judge_everywhere(config: Config, findings: Iterable[Finding]) -> tuple[Cell, ...]:
    """Return the results of a preset's checks on each release and product; none if it is abstract.

    ``findings`` are those of the preset in its own context.
    """
    if config.abstract:
        return ()
    platforms = _list_contexts()
    clean = checks.find_clean_contexts(config, findings, platforms)
    return tuple(
        # None: not known without a check
        _judge_there(config, context) if codes is None else Cell(0, 0, codes, not codes)
        for codes, context in zip(clean, platforms, strict=True)
    )


def build_matrices(cells: Mapping[str, tuple[Cell, ...]]) -> list[Matrix]:
    """Return the matrices of releases and products, from ``judge_everywhere`` by preset."""
    shown, families = _list_columns()
    parts = (
        ("On CANN releases", shown, slice(len(shown))),
        ("On products", families, slice(len(shown), None)),
    )
    return [
        Matrix(
            title, columns, _group_rows(columns, {name: row[part] for name, row in cells.items()})
        )
        for title, columns, part in parts
    ]


def _group_rows(columns: Sequence[str], cells: Mapping[str, tuple[Cell, ...]]) -> tuple[Row, ...]:
    """Return the rows of a matrix, those with faults first.

    Presets with equal cells share a row, abstract ones have none.
    """
    names_of_rows = group_pairs((row, name) for name, row in cells.items() if row)
    rows = []
    for row_cells, names in names_of_rows.items():
        columns_of_cells = group_pairs(
            (cell, column)
            for cell, column in zip(row_cells, columns, strict=False)
            if cell.state != "ok"
        )
        others = tuple((cell, tuple(shared)) for cell, shared in columns_of_cells.items())
        rows.append(Row(tuple(names), row_cells, others))
    return tuple(
        sorted(
            rows,
            key=lambda row: (min(_ORDER.index(cell.state) for cell in row.cells), row.names),
        )
    )


def _judge_there(config: Config, context: Context) -> Cell:
    """Return the cell of a preset; one error if it cannot be resolved there."""
    resolved = contexts.resolve_elsewhere(config, context)
    if resolved is None:
        return Cell(1, 0, ())
    findings = checks.check_config(resolved, notes=False)
    unsupported = dict.fromkeys(finding.code for finding in findings if finding.code in MEANT_CODES)
    if unsupported:
        return Cell(0, 0, tuple(unsupported), meant=False)
    errors, warnings = (
        [finding for finding in findings if finding.severity == severity]
        for severity in SEVERITIES[:2]
    )
    codes = tuple(dict.fromkeys(finding.code for finding in (*errors, *warnings)))
    return Cell(len(errors), len(warnings), codes)


def build_upgrades(
    presets: Iterable[Preset], axis: str, release: str, faults: list[Finding]
) -> list[Upgrade]:
    """Return the effects of a release on presets, errors first; unaffected presets are omitted.

    Presets with an internal error are also omitted, and reported in ``faults``.
    """
    alike = defaultdict(list)
    for preset in presets:
        config = preset.config
        if config is None or axis not in (releases.CANN, *config.versions):
            continue
        with isolate_faults(config.profile.document.source, faults, preset.name):
            effects = _compare_with_release(config, preset.findings, axis, release)
            if any(effects):
                alike[effects].append(preset.name)
    upgrades = [Upgrade(tuple(names), *effects) for effects, names in alike.items()]
    return sorted(upgrades, key=lambda upgrade: (not upgrade.breaks, upgrade.names))


def _compare_with_release(
    now: Config, findings: Iterable[Finding], axis: str, release: str
) -> Effects:
    """Return a preset's errors, changed defaults and deprecations in a release.

    Empty if it cannot be resolved.
    """
    is_cann = axis == releases.CANN
    there = Context(cann=release) if is_cann else Context(versions=((axis, release),))
    then = contexts.resolve_elsewhere(now, there) if not now.abstract else None
    if then is None:
        return (), (), ()
    known = {
        checks.identify_finding(finding)[::2] for finding in findings if finding.severity != "info"
    }
    # spares a check of most presets
    is_clean = checks.find_clean_contexts(now, findings, (there,)) == ((),)
    after = [] if is_clean else checks.check_config(then, notes=False)
    breaks = tuple(
        f"{new.code} {new.message}"
        for new in after
        if new.severity == "error"
        # a preset that is not meant for the release does not break there
        and new.code not in MEANT_CODES
        and (new.code, new.message) not in known
    )
    if not is_cann:
        later = releases.list_selected({axis: release})
        changed = find_changed_defaults(now, Move(later).find_all_since(now), later)
        return breaks, tuple(finding.message for _, finding in changed), ()
    defaults = tuple(change.message for change in check_changed_defaults(now, release))
    index = releases.release_index(release)
    deprecated = tuple(
        key
        for key in sorted(then.settings)
        if (option := catalog.find_option(key))
        and "Y" in (option.deprecated[index:][:1], option.no_effect[index:][:1])
    )
    return breaks, defaults, deprecated
