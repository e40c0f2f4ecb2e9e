"""Optimizer entries of one configuration, and TensorFlow rewriters that conflict with the NPU.

There should be one entry, named NpuOptimizer, as a later one takes over. A script that adds it
directly must also disable the rewriters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuprof.checks.view import Fault
from npuprof.model import Finding
from npuprof.scripts.configuration import place_fault
from npuprof.scripts.python.optimizer_entries import AddedEntry, NamedEntry
from npuprof.scripts.python.parameter_map import HELPERS, Rewrite
from npuprof.scripts.script_records import (
    IdleConfig,
    ImportedFile,
    LocatedRecord,
    ScriptSetting,
    are_exclusive,
)

_TURNS = (
    "The adapter reads both in turn: the later wins where they say the same key, and the checks "
    "between options see one at a time."
)
#: A line that ends a path through a script, and one that removes entries.
_LEAVES = re.compile(r"[ \t]*(?:return|raise|break|continue|(?:sys\.)?exit\b)")
_TAKES_AWAY = re.compile(r"[ \t]*del\b|.*(?:\bClear\w*|\.pop|\.CopyFrom|\.remove)\(")
#: An assignment, with its target.
_BINDS = re.compile(r"[ \t]*((?:[^\s=:\[\]]|\[[^\[\]]*\])+)\s*(?::[^=\n]*)?=(?!=)")
#: Session constructors; a session from another file may change its config there.
_SESSIONS = ("Session(", "managed_session(")
#: The rewriters that must be off, with the code and reason of the finding otherwise.
_REWRITES = {
    "remapping": (
        "NP806",
        (
            "The remapper fuses nodes into ones that the NPU "
            "does not know; nothing here switches it off."
        ),
    ),
    "memory_optimization": (
        "NP807",
        (
            "The documented scripts switch it off; helpers "
            "do so only where they add the entry themselves."
        ),
    ),
}


def find_nameless_entries(imported: ImportedFile) -> Iterator[Finding]:
    """Yield the entries with options but without a name, if no other code could name them."""
    filled = {setting.scope for setting in imported.settings if not setting.commented}
    nameless = {
        site.scope: site.variable
        for site in imported.sites
        if site.entry is None and site.variable.isidentifier()
    }
    for entry in imported.list_own_records(AddedEntry):
        variable = nameless.get(entry.site, "")
        filling_or_adding = r"[ \t]*(?:\.[ \t]*parameter_map\b|=[^=]*custom_optimizers\.add\()"
        is_judged = variable and not entry.name and entry.site in filled
        if is_judged and not re.search(
            rf"(?<![\w.]){variable}\b(?!{filling_or_adding})", imported.text
        ):
            what = f"the optimizer entry {variable} has no name"
            why = (
                "The adapter looks for an entry named exactly NpuOptimizer; all options of "
                "another are lost silently."
            )
            yield place_fault(
                Fault("NP808", what, why, f'write {variable}.name = "NpuOptimizer"'), entry
            )


def find_idle_configs(imported: ImportedFile) -> Iterator[Finding]:
    """Yield the unused configurations with an entry, each at its entry.

    The script creates a session without them.
    """
    for idle in imported.list_records(IdleConfig):
        entries = (
            entry
            for entry in imported.list_own_records(AddedEntry)
            if entry.site in idle.scopes and not entry.scope
        )
        settings = (
            item
            for item in imported.settings
            if item.scope in idle.scopes and not item.commented and item.file == imported.file
        )
        what = (
            f"{idle.name} has an entry for the adapter, and nothing is given {idle.name}: "
            f"{idle.session}(...) is made without it in line {idle.session_line}"
        )
        why = "Its settings have no effect on that session."
        hint = f"write {idle.session}(config={idle.name})"
        places: list[LocatedRecord | ScriptSetting] = [
            *entries,
            *settings,
            LocatedRecord(imported.file, idle.line, 1),
        ]
        yield place_fault(Fault("NP823", what, why, hint), places[0])


def find_double_entries(imported: ImportedFile) -> Iterator[Finding]:
    """Yield the entries added to a configuration that already has one with that name."""
    names = {site.scope: site.entry for site in imported.sites}
    named = [
        entry
        for entry in imported.list_own_records(AddedEntry)
        if (entry.name or names.get(entry.site)) == "NpuOptimizer"
    ]
    lines = imported.text.split("\n")
    earlier: dict[tuple[str, str], list[AddedEntry]] = {}
    for entry in sorted(named, key=lambda entry: entry.line):
        others = earlier.setdefault((entry.scope, entry.owner), [])
        before = next(
            (
                other
                for other in reversed(others)
                if not are_exclusive(other.branches, entry.branches)
            ),
            None,
        )
        others.append(entry)
        if before and before.line < entry.line:
            within = before.branches == entry.branches[: len(before.branches)]
            what = (
                f"a second entry named NpuOptimizer is added to {entry.config}; the first is "
                f"added in line {before.line}"
            )
            if _is_same_config(lines[before.line : entry.line - 1], entry.owner, may_leave=within):
                yield place_fault(
                    Fault(
                        "NP820", what, _TURNS, f"set the options in the entry of line {before.line}"
                    ),
                    entry,
                )


def _is_same_config(between: list[str], owner: str, may_leave: bool) -> bool:
    """Return whether lines keep the object that entries are added to, and its entries."""
    parts = owner.split(".")
    holders = {".".join(parts[: count + 1]) for count in range(len(parts))}
    for line in between:
        bound = _BINDS.match(line)
        if (
            (bound and bound[1] in holders)
            or _TAKES_AWAY.match(line)
            or (not may_leave and _LEAVES.match(line))
        ):
            return False
    return True


def check_rewrites(imported: ImportedFile) -> Iterator[Finding]:
    """Yield findings for remapping or memory_optimization left on.

    The script adds the optimizer directly.
    """
    added = imported.list_own_records(AddedEntry)
    named = any(entry.name == "NpuOptimizer" for entry in imported.list_own_records(NamedEntry))
    if not added or not named or not any(word in imported.text for word in _SESSIONS):
        return
    for rewrite in imported.list_own_records(Rewrite):
        if rewrite.name == "remapping" and rewrite.state.rpartition(".")[2] == "ON":
            why = "The remapper fuses nodes into ones that the NPU does not know."
            yield place_fault(
                Fault("NP806", "remapping is switched on", why, "write RewriterConfig.OFF"), rewrite
            )
    off = {rewrite.name for rewrite in imported.list_records(Rewrite)} | (
        {"remapping"} if _is_remapping_helped(imported.text) else set()
    )
    first = min(added, key=lambda entry: (entry.line, entry.column))
    for name, (code, why) in _REWRITES.items():
        if name not in off and not re.search(rf"^(?![ \t]*#).*{name}", imported.text, re.MULTILINE):
            hint = f"set graph_options.rewrite_options.{name} = RewriterConfig.OFF"
            yield place_fault(Fault(code, f"{name} is left on", why, hint), first)


def _is_remapping_helped(text: str) -> bool:
    """Return whether other code of a script disables remapping.

    It is a helper, the Estimator, or the patched Session.
    """
    patched = re.search(r"^[ \t]*(?:from|import)[ \t]+npu_bridge\.npu_init", text, re.MULTILINE)
    return (
        patched is not None or "NPURunConfig" in text or any(helper in text for helper in HELPERS)
    )
