"""``trust``: let a store set variables that decide what is executed."""

from __future__ import annotations

import os
from typing import Any

from npuprof.commands.framework.parameters import DRY_RUN, OUTPUT, formats
from npuprof.commands.framework.verb import Verb, argument, flag
from npuprof.document import keys
from npuprof.model import Finding, NpuprofError, Record
from npuprof.report.answer import Answer
from npuprof.report.tables import Table
from npuprof.store import ReadOnceStore, spec
from npuprof.store.parents import is_source_reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.profile import Profile


class _Found(Record):
    """A pair of variable and value that presets write, what it decides, and the places it stands at."""

    name: str
    text: str
    does: str
    places: list[str]


class Trust(Verb):
    """Let a store set variables that decide what is executed.

    They are shown, each with its value, and kept for this user: env, run and inject refuse all others.
    """

    group = "export"
    prose = True

    store: str | None = argument(
        "STORE", "The folder that holds the presets, or team: for a source; the store that would be used if none is named.", required=False
    )
    dry_run: bool = DRY_RUN
    revoke: bool = flag("--revoke", text="Trust the store with nothing any more.")
    format: str = formats("text", "json")
    output: str | None = OUTPUT

    def run(self) -> Answer:
        """Return the pairs of variable and value, and keep them. Raises NpuprofError where a preset cannot be read."""
        from npuprof.store import trust

        folder = _find_store(self.store)
        if folder.label == "builtin:":
            return Answer(None, ("the presets that npuprof ships need no trust",))
        found = [] if self.revoke else _collect_pairs(folder)
        path = trust.find_trust_file()
        if not self.dry_run:
            trust.keep_trusted_pairs(folder.root, [(pair.name, pair.text) for pair in found])
        what = f"{len(found)} {'pair' if len(found) == 1 else 'pairs'} of variable and value" if found else "nothing"
        done = "would be trusted" if self.dry_run else "is now trusted"
        remark = f"{folder.label} {done} with {what}" + ("" if self.dry_run else f", kept in {path}")
        return Answer(
            {
                "text": lambda: Table([_build_row(pair) for pair in found], header=("variable", "value", "written at", "decides")),
                "json": lambda: _build_fields(folder, found),
            },
            (remark,) if self.format == "text" else (),
        )


def _find_store(asked: str | None) -> ReadOnceStore:
    """Return the store that is meant: ``team:`` is that of a source, as it is locked. Raises NpuprofError."""
    if asked is None or not asked.endswith(":") or not is_source_reference(asked):
        if asked is not None and asked != "builtin:" and not os.path.isdir(asked):
            from npuprof.store.missing import build_missing_store_finding

            raise NpuprofError([build_missing_store_finding(asked, "STORE is the folder of a store, or a source with its colon.")])
        return spec.Workspace(asked).store
    from npuprof.store.sources.reading import find_sources

    return find_sources(spec.Workspace().home).open_source(asked[:-1])


def _collect_pairs(folder: ReadOnceStore) -> list[_Found]:
    """Return the pairs that the presets of a store write. Raises NpuprofError with all presets that cannot be read."""
    found: dict[tuple[str, str], _Found] = {}
    problems: list[Finding] = []
    for name in folder.names():
        try:
            profile = folder.profile(name)
        except NpuprofError as error:
            problems += error.findings
            continue
        for pair in _list_profile_pairs(profile):
            found.setdefault((pair.name, pair.text), pair._replace(places=[])).places.extend(pair.places)
    if problems:
        raise NpuprofError(problems)
    return [found[pair] for pair in sorted(found)]


def _list_profile_pairs(profile: Profile) -> list[_Found]:
    from npuprof.catalog.powers import find_power
    from npuprof.renderers.environment import format_power_text

    pairs: list[_Found] = []
    for step in (*profile.steps, *(step for override in profile.overrides for step in override.steps)):
        section, name = keys.split_section_and_name(step.key)
        if section == "env" and step.op != "unset" and (does := find_power(name)):
            pairs.append(_Found(name, format_power_text(name, step.value), does, [str(profile.origin(*step.path))]))
    return pairs


def _build_row(pair: _Found) -> tuple[str, ...]:
    return pair.name, keys.format_toml_value(pair.text), ", ".join(pair.places), pair.does


def _build_fields(folder: ReadOnceStore, found: list[_Found]) -> dict[str, Any]:
    pairs = [{"variable": pair.name, "value": pair.text, "decides": pair.does, "places": pair.places} for pair in found]
    return {"schema": "npuprof.trust-answer/1", "store": folder.root, "pairs": pairs}


VERB = Trust
