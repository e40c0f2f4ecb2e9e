"""The check of a whole store.

The library returns it; ``check``, ``review``, the hooks and the site show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain

from npuprof.catalog import build_finding
from npuprof.catalog.execution import is_unknown_variable
from npuprof.checks import Verdict, check_config, check_values, fold_findings, judge_config
from npuprof.checks.lifetimes import build_newer_findings
from npuprof.model import (
    TYPE_CHECKING,
    Context,
    Finding,
    NpuprofError,
    Place,
    Record,
    build_error,
    select_errors,
)
from npuprof.report.coverage import Coverage
from npuprof.report.isolating import isolate_faults
from npuprof.report.output import track_items

if TYPE_CHECKING:
    from typing import Protocol

    from npuprof.document.policy import Policy
    from npuprof.resolve.config import Config

    class CheckedStore(Protocol):
        """A store in one context: its presets by name, and the faults of its other files."""

        @property
        def context(self) -> Context:
            """The context of all presets."""

        @property
        def label(self) -> str:
            """The path to cite for the store."""

        def load_names(self) -> list[str]:
            """Return the names of all presets, sorted, which are then in memory.

            Raises NpuprofError if they cannot be listed.
            """

        def cite_preset(self, name: str) -> str:
            """Return the path to cite for a preset."""

        def resolve_preset(self, name: str) -> Config:
            """Return a preset resolved. Raises NpuprofError."""

        def resolve_as_far_as_can_be(self, name: str) -> Config:
            """Return a malformed preset, resolved without its malformed parts.

            Raises NpuprofError if it cannot be read.
            """

        def find_stray_files(self) -> list[Finding]:
            """Return a finding for each file whose name no preset can have."""

        def find_nested_stores(self) -> list[Finding]:
            """Return a finding for each folder below the store that is itself a store."""

        def find_source_faults(self) -> list[Finding]:
            """Return edits of the lock and of vendored copies, and faults of the team policy.

            Without it, presets are judged by the store's own part of it. Raises NpuprofError for an
            invalid lock.
            """

        def find_kept_faults(self) -> list[Finding]:
            """Return the faults of vendored releases. Raises NpuprofError."""

        def load_own_policy(self) -> Policy:
            """Return the store's own part of its team policy. Raises NpuprofError."""


class PresetReport(Verdict):
    """The verdict on one preset: resolved, or None if it cannot be read, resolved or judged.

    Internal errors about it.
    """

    name: str
    config: Config | None
    faults: list[Finding]


class StoreReport(Record):
    """All findings about a store, or about the ``specs`` of it that were checked.

    ``copies`` are edits of the lock and of vendored sources and releases, and policies that cannot
    be read. ``faults`` are internal errors outside the presets. ``newer`` are notes on requested
    releases that are newer than all known ones. ``idle`` are entries of ``ignore`` and globs
    without effect; they are known only if everything was read, in every context. ``outputs`` are
    about the outputs in npuprof.toml. ``by_programs`` means that parsers judged the arguments.
    """

    presets: list[PresetReport]
    is_whole: bool
    stray_names: list[Finding] = []
    duplicates: list[Finding] = []
    nested_stores: list[Finding] = []
    copies: list[Finding] = []
    idle: list[Finding] = []
    faults: list[Finding] = []
    newer: list[Finding] = []
    outputs: list[Finding] = []
    by_programs: bool = False

    @property
    def by_preset(self) -> dict[str, list[Finding]]:
        """The findings by preset; under an empty name, those about other files."""
        others = [
            *self.stray_names,
            *self.duplicates,
            *self.nested_stores,
            *self.copies,
            *self.faults,
            *self.newer,
            *self.idle,
            *self.outputs,
        ]
        return {
            "": others,
            **{preset.name: [*preset.findings, *preset.faults] for preset in self.presets},
        }

    @cached_property
    def findings(self) -> list[Finding]:
        """All findings, each fault once with all presets that it affects, sorted by place."""
        return fold_findings(chain.from_iterable(self.by_preset.values()))

    @cached_property
    def accepted(self) -> list[Finding]:
        """All accepted findings, each fault once."""
        return fold_findings(item.finding for preset in self.presets for item in preset.accepted)

    @property
    def count(self) -> int:
        """The number of presets that exist."""
        return sum(_does_exist(preset) for preset in self.presets)

    @property
    def unreadable(self) -> list[str]:
        """The names of the presets that could not be read, resolved or judged."""
        return [preset.name for preset in self.presets if preset.config is None]

    @property
    def unresolved(self) -> int:
        """The number of files that could not be read, resolved or judged.

        With any, no statement about all presets is possible.
        """
        # Presets, a wheel or an export could not read these copies.
        unfit = len(select_errors(self.copies))
        return unfit + len(self.unreadable) + len(self.stray_names) + len(self.faults)

    @cached_property
    def coverage(self) -> Coverage:
        """The number of known settings of all resolved presets, and the unknown ones."""
        configs = [preset.config for preset in self.presets if preset.config is not None]
        numbers = Counter(chain.from_iterable(config.settings for config in configs))
        declared = {*chain.from_iterable(config.declared for config in configs)}
        unknown = []
        for key, number in numbers.items():
            name = key.removeprefix("env.")
            # arguments of a program that is not named
            is_foreign = key.startswith("args.") and not self.by_programs
            is_variable = name != key and name not in declared
            if is_foreign or (is_variable and is_unknown_variable(name)):
                unknown += [name] * number
        return Coverage(numbers.total() - len(unknown), 0, unknown)


def _does_exist(preset: PresetReport) -> bool:
    """Return whether a preset exists: no finding says that there is none of its name."""
    return not preset.findings or any(
        finding.code != "NP008" or finding.where is not None for finding in preset.findings
    )


def check_store(
    store: CheckedStore,
    specs: Sequence[str] = (),
    notes: bool = True,
    progress: bool = False,
    find_output_faults: Callable[[], Iterable[Finding]] = tuple,
) -> StoreReport:
    """Return all findings about a store, or about ``specs`` of it only.

    Without ``notes``, only errors and warnings. The outputs of npuprof.toml are judged in their own
    contexts, and therefore only if no other is requested.

    A fault in one file, even an internal error, hides no finding about another. With ``progress``,
    a terminal shows how many presets are done. Raises NpuprofError if there is nothing to check, or
    the store cannot be listed.
    """
    faults: list[Finding] = []

    def collect_findings(find: Callable[[], Iterable[Finding]]) -> list[Finding]:
        """Return findings about other files than presets."""
        found: list[Finding] = []
        try:
            with isolate_faults(store.label, faults):
                found += find()
        except NpuprofError as error:
            found += error.findings
        return found

    copies = [] if specs else collect_findings(store.find_source_faults)
    names = specs or store.load_names()
    presets = [
        _check_preset(store, name, notes)
        for name in (track_items(names, "presets") if progress else names)
    ]
    newer = build_newer_findings(store.context) if notes else []
    if specs:
        return StoreReport(presets, False, newer=newer)
    stray_names = collect_findings(store.find_stray_files)
    if not (names or stray_names or copies or faults):
        what = f"there is no preset in {store.label}, so nothing was checked"
        hint = (
            "npuprof init creates a store with samples, npuprof new NAME a preset; or name "
            "another store with --store"
        )
        raise build_error("NP010", what, "", hint)
    reported = {finding.message for preset in presets for finding in preset.findings}
    copies += [
        finding
        for finding in collect_findings(store.find_kept_faults)
        if finding.message not in reported
    ]
    report = StoreReport(
        presets,
        is_whole=store.context == Context(),
        stray_names=stray_names,
        duplicates=list(_find_duplicates(store, names)),
        nested_stores=collect_findings(store.find_nested_stores),
        copies=copies,
        faults=faults,
        newer=newer,
        outputs=collect_findings(find_output_faults) if store.context == Context() else [],
    )
    if not notes or not report.is_whole or report.unresolved:
        return report
    return report._replace(idle=collect_findings(lambda: _find_idle_entries(store, presets)))


def _check_preset(store: CheckedStore, name: str, notes: bool) -> PresetReport:
    """Return a preset with its findings.

    If it cannot be resolved, why, with the findings about its values.
    """
    config = None
    verdict = Verdict([], [])
    faults: list[Finding] = []

    def cite() -> str:
        return store.cite_preset(name)

    try:
        with isolate_faults(cite, faults, name):
            config = store.resolve_preset(name)
            verdict = judge_config(config, notes)
    except NpuprofError as error:
        verdict.findings.extend(
            finding._replace(profiles=finding.profiles or (name,)) for finding in error.findings
        )
        # a file that cannot be read has no further findings
        with suppress(NpuprofError), isolate_faults(cite, faults, name):
            partial = store.resolve_as_far_as_can_be(name)
            verdict.findings.extend(
                check_config(partial, notes)
                if _has_all_settings(error)
                else check_values(partial, notes)
            )
        config = None
    return PresetReport(
        verdict.findings, verdict.accepted, name, None if faults else config, faults
    )


def _has_all_settings(error: NpuprofError) -> bool:
    """Return whether all settings of an unresolvable preset are known.

    Then the faults are only in its metadata.
    """
    return all(
        finding.code in ("NP006", "NP007", "NP009")
        and finding.origin is not None
        and finding.origin.path[:1] == ("profile",)
        and finding.origin.path[1:2] not in ((), ("extends",), ("unset",))
        for finding in error.findings
    )


def _find_duplicates(store: CheckedStore, names: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding for each preset whose name differs from another's only in letter case.

    Some file systems ignore case.
    """
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(name.lower(), name)
        if other != name:
            why = (
                "On file systems without case, as on Windows and "
                "macOS, a clone contains only one of the two."
            )
            what = f"the presets {other} and {name} differ in case only"
            where = Place(store.cite_preset(name))
            yield build_finding(
                "NP016", what, why, "rename one of them", where=where, profiles=(name,)
            )


def _find_idle_entries(store: CheckedStore, presets: Sequence[PresetReport]) -> Iterator[Finding]:
    """Yield a note for each entry of ``ignore``, and each own glob, that has no effect."""
    from npuprof.checks.accepted import find_idle_globs, find_idle_ignores

    configs = [preset.config for preset in presets if preset.config is not None]
    accepted = chain.from_iterable(preset.accepted for preset in presets)
    yield from find_idle_ignores(configs, accepted)
    own = store.load_own_policy()  # the policy of a source covers its own presets
    yield from find_idle_globs((*own.rules, *own.ignores), [preset.name for preset in presets])
