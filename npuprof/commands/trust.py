"""``trust``: trust a store to set variables that affect execution or are unknown."""

from __future__ import annotations

import json
import os
from collections import defaultdict

from npuprof.catalog.records import TeamVariables
from npuprof.commands.framework import Verb, arguments, flag, option, optional_argument
from npuprof.commands.framework.parameters import DRY_RUN, FORMAT, OUTPUT
from npuprof.document import keys
from npuprof.model import (
    Finding,
    NpuprofError,
    Place,
    Record,
    TomlTable,
    build_error,
    build_usage_error,
    raise_any,
)
from npuprof.renderers.trusting import identify_store, list_profile_needs
from npuprof.report import Answer
from npuprof.report.isolating import collect_errors
from npuprof.report.text import count_rest, format_count
from npuprof.store import is_source_reference, spec, trust_state
from npuprof.store.base import CachedStore
from npuprof.store.problems import build_no_folder_finding
from npuprof.store.sources.lookups import Lookups
from npuprof.store.trust_state import Trusted
from npuprof.system.files import read_file_content

_SCHEMA = "npuprof.trust-answer/2"
#: The number of places shown per variable; the JSON has all.
_SHOWN_PLACES = 2


class _TrustNeed(Record):
    """A variable in presets, its value, how it affects execution, and the places that set it.

    ``declared`` is the signature of a variable that the store declares, in the first place.
    """

    variable: str
    value: str
    executes: str
    declared: str
    places: list[str]


class Trust(Verb):
    """Trust the variables and MindIE keys that a store sets.

    Lists those that need trust and saves them for your user. Variables that affect execution and
    keys of MindIE are trusted with their values, other variables by name. The commands env, run,
    render and inject reject untrusted settings. In CI, pass --trust to them, or run this command
    with --from and a reviewed file.
    """

    group = "team"
    prose = True

    store = optional_argument(
        "STORE",
        (
            "Store to trust: its folder, or team: for the source team [default: $NPUPROF_STORE, "
            "else the nearest profiles/]"
        ),
        "store",
    )
    variables = arguments(
        "VARIABLE...", "Variables to trust: NAME, or NAME=VALUE for one value [default: all]"
    )
    listed = option(
        "--from",
        metavar="FILE",
        text=(
            "Trust only the variables in FILE, written by "
            "npuprof trust STORE --dry-run --format json"
        ),
    )
    dry_run = DRY_RUN
    revoke = flag("--revoke", text="Remove all trust in the store")
    format = FORMAT
    output = OUTPUT

    def run(self) -> Answer:
        """Return the variables that need trust, and save the trust.

        Raises NpuprofError if a preset cannot be read.
        """
        folder, lookups = _find_store(self.store)
        if folder.is_shipped:
            return Answer(None, ("the presets that npuprof ships need no trust",))
        declared = lookups.find_project(folder).variables
        needs = [] if self.revoke else _collect_needs(folder, declared)
        chosen = self._choose(folder.label, needs)
        path = trust_state.find_trust_file()
        if not self.dry_run:
            # named variables are added; without names, the list replaces the earlier one
            trust_state.store_trusted(
                identify_store(folder),
                _read_fields(_build_fields(folder, chosen)),
                adding=bool(self.variables),
            )
        what = format_count(len(chosen), "variable") if chosen else "no variable"
        done = "would be trusted" if self.dry_run else "is now trusted"
        notes = [
            f"{folder.label} {done} with {what}" + ("" if self.dry_run else f", saved in {path}")
        ]
        if untrusted := [need for need in needs if need not in chosen and not self.variables]:
            notes.append(
                f"{self.listed} does not list "
                f"{', '.join(sorted({need.variable for need in untrusted}))}, which stay untrusted"
            )
        return Answer(
            {"text": lambda: _format_groups(chosen), "json": lambda: _build_fields(folder, chosen)},
            tuple(notes) if self.format == "text" else (),
        )

    def _choose(self, label: str, needs: list[_TrustNeed]) -> list[_TrustNeed]:
        """Return the variables selected by arguments or a file.

        Raises NpuprofError for variables that no preset sets.
        """
        if self.listed is not None:
            if self.variables or self.revoke:
                what = "--from cannot be combined with names of variables or --revoke"
                raise build_usage_error(
                    what, "use one of them", "The file lists the trusted stores."
                )
            allowed = _read_list(self.listed)
            return [
                need
                for need in needs
                if allowed.allows(need.variable, need.value, need.executes, need.declared)
            ]
        chosen = []
        problems = []
        for variable in self.variables:
            name, is_pair, text = variable.partition("=")
            named = [
                need
                for need in needs
                if need.variable == name and (not is_pair or need.value == text)
            ]
            if not named and not self.revoke:
                what = f"no preset of {label} sets {variable}, or it needs no trust"
                problems.append(
                    Finding(
                        "NP902", what, "", f"npuprof trust {label} --dry-run lists what needs trust"
                    )
                )
            chosen += [need for need in named if need not in chosen]
        if self.variables and self.revoke:
            problems = [
                Finding(
                    "NP902",
                    "--revoke removes all trust in a store",
                    "",
                    "omit the variables, then trust the others again",
                )
            ]
        raise_any(problems)
        return chosen if self.variables else needs


def _find_store(name: str | None) -> tuple[CachedStore, Lookups]:
    """Return the selected store, and its lookups: ``team:`` is a source at its locked commit.

    Raises NpuprofError.
    """
    if name is None or not name.endswith(":") or not is_source_reference(name):
        if name is not None and name != "builtin:" and not os.path.isdir(name):
            raise NpuprofError(
                build_no_folder_finding(
                    name, "STORE is the folder of a store, or a source with its colon."
                )
            )
        workspace = spec.Workspace(name)
        return workspace.store, workspace.lookups
    workspace = spec.Workspace()
    return workspace.lookups.open_source(workspace.home, name[:-1]), workspace.lookups


def _collect_needs(folder: CachedStore, declared: TeamVariables) -> list[_TrustNeed]:
    """Return the variables of a store that need trust, all ``declared`` ones among them.

    Raises NpuprofError with all unreadable presets.
    """
    by_pair = {
        (name, ""): _TrustNeed(name, "", "", variable.signature, [str(variable.origin)])
        for name, variable in declared.items()
    }
    problems: list[Finding] = []
    for name in folder.names():
        with collect_errors(problems):
            for need in list_profile_needs(folder.profile(name)):
                # a variable that executes nothing is trusted by name, whatever its value
                text = need.text if need.executes else ""
                by_pair.setdefault(
                    (need.name, text), _TrustNeed(need.name, text, need.executes, "", [])
                ).places.append(str(need.origin))
    raise_any(problems)
    return [by_pair[pair] for pair in sorted(by_pair)]


def _read_list(path: str) -> Trusted:
    """Return the content of a trust file. Raises NpuprofError if it is unreadable or invalid."""
    raw = read_file_content(path)
    try:
        fields = json.loads(raw)
        if fields["schema"] != _SCHEMA:
            raise ValueError(fields["schema"])
        return _read_fields(fields)
    except (ValueError, LookupError, TypeError, RecursionError):
        hint = "write one with npuprof trust STORE --dry-run --format json, and review it"
        raise build_error(
            "NP931", f"{path} does not list the stores to trust", "", hint, where=Place(path)
        ) from None


def _read_fields(fields: TomlTable) -> Trusted:
    rows = fields["names"]
    return Trusted(
        frozenset(str(row["variable"]) for row in rows if "declared" not in row),
        frozenset((str(row["variable"]), str(row["value"])) for row in fields["pairs"]),
        frozenset((str(row["variable"]), row["declared"]) for row in rows if "declared" in row),
    )


def _format_groups(needs: list[_TrustNeed]) -> str:
    """Return the variables, grouped by the reason why they need trust."""
    groups = defaultdict(list)
    for need in needs:
        value = f" = {keys.format_short_value(need.value)}" if need.executes else ""
        reason = "trusted by name: not in the catalogue"
        if need.executes:
            reason = f"trusted with this value: {need.executes}"
        elif need.declared:
            reason = "trusted by name and kind: declared in npuprof.toml"
            value = f": {need.declared}"
        groups[reason].append(
            f"  {need.variable}{value}  ({count_rest(need.places, _SHOWN_PLACES)})\n"
        )
    return "".join(f"{reason}\n{''.join(lines)}" for reason, lines in sorted(groups.items()))


def _build_fields(folder: CachedStore, needs: list[_TrustNeed]) -> TomlTable:
    # a pair may have an empty value
    rows = [
        {
            name: item
            for name, item in need._asdict().items()
            if item or (name == "value" and need.executes)
        }
        for need in needs
    ]
    return {
        "schema": _SCHEMA,
        "store": folder.label,
        "pairs": [row for row in rows if "executes" in row],
        "names": [row for row in rows if "executes" not in row],
    }


VERB = Trust
