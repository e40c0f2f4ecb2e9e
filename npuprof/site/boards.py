"""Boards: where each preset works, and what moving to another release would do to it."""

from __future__ import annotations

from collections.abc import Mapping

from npuprof import catalog, checks
from npuprof.catalog import products, releases
from npuprof.checks.scope import MEANT_CODES
from npuprof.edit.migration import check_changed_defaults
from npuprof.model import Context, Finding, Record
from npuprof.report.isolating import isolate_faults
from npuprof.resolve import contexts
from npuprof.resolve.config import Config

#: How many releases the board shows, the newest.
_RELEASES = 8


class Cell(Record):
    """One preset on one platform: how many errors and warnings, their codes, and whether the preset is meant for it."""

    errors: int
    warnings: int
    codes: tuple[str, ...]
    meant: bool = True

    @property
    def state(self) -> str:
        """``error``, ``warning`` or ``ok``."""
        return "error" if self.errors else "warning" if self.warnings else "ok"

    @property
    def text(self) -> str:
        """The cell in a word."""
        words = f"{self.errors} errors" if self.errors > 1 else "1 error" if self.errors else "ok"
        words += f", {self.warnings} warning{'s' if self.warnings > 1 else ''}" if self.warnings and not self.errors else ""
        return words if self.meant else f"({words})"


class Upgrade(Record):
    """What a release would do to presets, alike to each: what breaks, whose default changes, what is deprecated there."""

    names: tuple[str, ...]
    breaks: tuple[str, ...]
    defaults: tuple[str, ...]
    deprecated: tuple[str, ...]


def list_columns() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the releases and the products that boards show."""
    families = dict.fromkeys(products.find_product_family(name) for name in products.product_names())
    return tuple(releases.load_releases()[-_RELEASES:]), tuple(families)


def judge_everywhere(config: Config | None) -> tuple[Cell | None, ...]:
    """Return the row of a preset on a board: what the checks find on each release and product; None is one that cannot be resolved."""
    shown, families = list_columns()
    columns = [*(Context(cann=release) for release in shown), *(Context(product=name) for name in families)]
    return tuple(_judge_there(config, context) for context in columns)


def group_rows(rows: Mapping[str, tuple[Cell | None, ...]]) -> list[tuple[list[str], tuple[Cell | None, ...]]]:
    """Return the rows of a board, each once with the presets that it is about, in the order of their first presets."""
    alike: dict[tuple[Cell | None, ...], list[str]] = {}
    for name, row in rows.items():
        alike.setdefault(row, []).append(name)
    return [(names, row) for row, names in alike.items()]


def _judge_there(config: Config | None, context: Context) -> Cell | None:
    """Return the cell of a preset; None if it cannot be resolved or is only there to be extended."""
    there = contexts.resolve_elsewhere(config, context) if config is not None and not config.abstract else None
    if there is None:
        return None
    findings = checks.check_config(there, notes=False)
    others = [finding for finding in findings if finding.code not in MEANT_CODES]
    errors = [finding for finding in others if finding.severity == "error"]
    warnings = [finding for finding in others if finding.severity == "warning"]
    codes = tuple(dict.fromkeys(finding.code for finding in (*errors, *warnings)))
    return Cell(len(errors), len(warnings), codes, len(others) == len(findings))


def build_upgrades(configs: Mapping[str, Config], release: str, faults: list[Finding]) -> list[Upgrade]:
    """Return what a release would do to presets, those that break first; presets it does nothing to are left out.

    So are those that npuprof fails on, which go to ``faults``.
    """
    alike: dict[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for name, config in configs.items():
        with isolate_faults(config.lineage[-1].document.source, faults, name):
            if any(effects := _compare_with_release(config, release)):
                alike.setdefault(effects, []).append(name)
    upgrades = [Upgrade(tuple(names), *effects) for effects, names in alike.items()]
    return sorted(upgrades, key=lambda upgrade: (not upgrade.breaks, upgrade.names))


def _compare_with_release(now: Config, release: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return what breaks in a preset, whose default changes and what is deprecated there; nothing of one that cannot be resolved."""
    then = contexts.resolve_elsewhere(now, Context(cann=release)) if not now.abstract else None
    if then is None:
        return (), (), ()
    before = {checks.identify_finding(finding)[::2] for finding in checks.check_config(now, notes=False)}
    after = [finding for finding in checks.check_config(then, notes=False) if finding.code not in MEANT_CODES]
    breaks = tuple(f"{new.code} {new.message}" for new in after if new.severity == "error" and (new.code, new.message) not in before)
    stale = tuple(sorted(key for key in then.settings if _is_past(key)))
    return breaks, tuple(change.message for change in check_changed_defaults(now, release)), stale


def _is_past(key: str) -> bool:
    record = catalog.find_option(key)
    return record is not None and (record.deprecated or record.no_effect)
