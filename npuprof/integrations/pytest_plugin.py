"""A pytest plugin: with ``--npuprof``, each preset is a test that fails with its findings.

Without that flag, and without ``npuprof = STORE`` in pytest's settings, the plugin does nothing and
imports nothing of npuprof.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import npuprof

_DEFAULT = "\0"


class PresetError(Exception):
    """The findings of a preset."""

    def __init__(self, findings: list[Any]) -> None:
        super().__init__(findings)
        self.findings = findings


class PresetItem(pytest.Item):
    """One preset of the store; without a name, the other files of the store."""

    preset: str
    home: Any
    reports: dict[str, list[Any]]

    def runtest(self) -> None:
        """Report what the check of the store found about the preset. Raises PresetError."""
        failing = ("error", "warning") if self.config.getoption("npuprof_strict") else ("error",)
        if not self.reports:  # the first test checks the store for all of them
            from npuprof.library import check_opened_store

            self.reports.update(check_opened_store(self.home).by_preset)
        findings = [item for item in self.reports[self.preset] if item.severity in failing]
        if findings:
            raise PresetError(findings)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the findings as ``npuprof check`` shows them."""
        if not isinstance(excinfo.value, PresetError):
            return super().repr_failure(excinfo, style)
        # imported here: without --npuprof, the plugin loads nothing of npuprof
        from npuprof.report.findings import format_findings

        return format_findings(excinfo.value.findings).rstrip("\n")

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where the preset is, and its name."""
        return Path(self.home.store.root), None, f"npuprof: {self.name}"


class PresetCollector(pytest.Collector):
    """The presets of one store."""

    home: Any

    def collect(self) -> Iterator[PresetItem]:
        """Yield a test for each preset, and one for the other files of the store."""
        reports: dict[str, list[Any]] = {}
        for preset in (*self.home.names(), ""):
            item = PresetItem.from_parent(self, name=preset or "other files of the store")
            item.preset, item.home, item.reports = preset, self.home, reports
            yield item


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags and the matching ini setting."""
    group = parser.getgroup("npuprof", "presets for Ascend NPUs")
    group.addoption(
        "--npuprof",
        nargs="?",
        const=_DEFAULT,
        metavar="STORE",
        dest="npuprof",
        help=(
            "Check the presets of a store, each as a test; without STORE that of the folder "
            "pytest is run in. --npuprof=profiles"
        ),
    )
    group.addoption(
        "--npuprof-strict",
        action="store_true",
        dest="npuprof_strict",
        help="Warnings in presets fail as well.",
    )
    parser.addini(
        "npuprof", "the store whose presets are checked, from the folder of this file", default=""
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add a test for each preset, so that -k and --last-failed select among them too."""
    store = config.getoption("npuprof")
    setting = str(config.getini("npuprof"))
    if store is None and setting:
        store = os.path.join(config.rootpath, setting)
    if not store:
        return

    try:
        home = npuprof.open_store(None if store == _DEFAULT else store)
    except npuprof.NpuprofError as error:
        raise pytest.UsageError(f"npuprof: {error}") from None
    collector = PresetCollector.from_parent(session, name="npuprof", nodeid="npuprof")
    collector.home = home
    items += collector.collect()
