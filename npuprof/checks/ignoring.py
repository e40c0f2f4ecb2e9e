"""What is wrong with what presets accept: what cannot be accepted, and what is accepted for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from npuprof.catalog import build_finding
from npuprof.catalog.acceptance import find_acceptance_fault
from npuprof.checks.view import Fault, View
from npuprof.document.policy import Ignore, TeamRule, is_name_meant
from npuprof.model import Finding, did_you_mean
from npuprof.resolve.config import Config

#: What was accepted, and who said so.
Accepted = tuple[Finding, Ignore]


def check_ignores(view: View) -> Iterator[Finding]:
    """Yield what the profile says that it accepts, and cannot be accepted."""
    own = view.config.lineage[-1]
    for one in own.ignores:
        if fault := find_acceptance_fault(one.code):
            why = "What is accepted is no longer told; this is told all the same."
            yield view.build_finding(
                Fault("NP706", f"ignore names {one.code}: {fault}", why, "take it out of ignore"), "profile.ignore", one.origin
            )


def find_idle_ignores(configs: Iterable[Config], accepted: Iterable[Accepted]) -> list[Finding]:
    """Return a note for everything that is accepted and occurs nowhere among some configs, which are all that there are of a store."""
    used = {_mark(one) for _, one in accepted}
    found: dict[tuple[str, object], Finding] = {}
    for config in configs:
        own = config.lineage[-1]
        for one in (*own.ignores, *(config.policy.ignores if config.policy else ())):
            if _mark(one) not in used and not find_acceptance_fault(one.code):
                what = f"{one.code} is accepted here ({one.reason}), and does not occur"
                why = "What is accepted for nothing hides the next one of its kind."
                hint, key = "take it out", ".".join(str(part) for part in one.origin.path if isinstance(part, str))
                found[_mark(one)] = build_finding("NP705", what, why, hint, one.origin, key, (own.name,) if not one.presets else ())
    return list(found.values())


def find_idle_globs(tables: Iterable[Ignore | TeamRule], names: Iterable[str]) -> Iterator[Finding]:
    """Yield a note for every glob of npuprof.toml that means none of the presets of a store."""
    known = list(names)
    for table in tables:
        what = f"rule {table.code}" if isinstance(table, TeamRule) else f"what is accepted of {table.code}"
        for index, glob in enumerate(table.presets):
            if table.origin is not None and not any(is_name_meant((glob,), name) for name in known):
                hint = did_you_mean(glob, known, "npuprof list tells the names; * stands for text in a segment, ** for whole segments")
                why = "A name that was misspelt, or whose preset was renamed or removed, binds nothing and looks as if it did."
                where = table.origin._replace(path=(*table.origin.path, "presets", index))
                yield build_finding(
                    "NP709", f"presets: {glob!r} of {what} means no preset", why, hint, where, f"{table.origin.path[0]}.presets"
                )


def _mark(one: Ignore) -> tuple[str, object]:
    return one.origin.document.source, one.origin.path
