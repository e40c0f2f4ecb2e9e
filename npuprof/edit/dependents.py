"""Who builds on a preset, and whether an edit of it would break them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from npuprof import checks
from npuprof.document.profile import Profile
from npuprof.edit.changed import build_opener, find_faults
from npuprof.model import Finding, NpuprofError
from npuprof.report import output
from npuprof.store import Folder, spec
from npuprof.system.patterns import lazy_pattern

_WORD = lazy_pattern(r"[^\s\"',\[\]]+")


def require_valid_dependents(workspace: spec.Workspace, path: str, old: Profile, new: str) -> None:
    """Raise NpuprofError where presets of the store that extend one, with another text in its file, get errors they have not now."""
    try:
        home = workspace.store
    except NpuprofError:
        return  # a file that is in no store has no heirs
    name = _find_name(home, old.name, path)
    if not name:
        return
    texts = _list_read(workspace, old)
    texts |= {sibling: _read_text(home, sibling) for sibling in home.names() if sibling not in texts}
    home.read_ahead = texts
    heirs = find_dependents(home, name)
    if not heirs:
        return
    openers = build_opener(home), build_opener(home, {name: (old.document.source, new)})
    before, after = (opener(workspace.resolver.context) for opener in openers)
    brought: list[Finding] = []
    for heir in heirs:
        if errors := _find_errors(after, heir):
            known = {checks.identify_finding(finding) for finding in _find_errors(before, heir)}
            brought += [finding for finding in errors if checks.identify_finding(finding) not in known]
    if brought:
        output.tell_remark("nothing written: the change would add errors to presets that extend it; --no-check writes it anyway")
        raise NpuprofError(checks.fold_findings(brought))


def find_dependents(home: Folder, name: str) -> list[str]:
    """Return the presets of a store that extend one, or another that does."""
    mentions: dict[str, list[str]] = {known: [] for known in home.names()}
    for heir, text in home.read_ahead.items():
        for word in mentions.keys() & _list_words(home, heir, text):
            mentions[word].append(heir)
    dependents: dict[str, None] = {}
    waiting = [name]
    while waiting:
        parent = waiting.pop()
        for heir in mentions.get(parent, ()):
            if heir not in dependents and heir != name:
                with suppress(NpuprofError):
                    if parent in home.profile(heir).extends:
                        dependents[heir] = None
                        waiting.append(heir)
    return sorted(dependents)


def _list_words(home: Folder, heir: str, text: bytes) -> Sequence[str]:
    """Return all that may be the name of a parent in a preset's text: only where there are escapes, its parents by a parser."""
    if b"\\u" in text or b"\\U" in text or b"\\x" in text:
        with suppress(NpuprofError):
            return home.profile(heir).extends
    return _WORD.findall(text.decode(errors="replace")) if b"extends" in text else ()


def _list_read(workspace: spec.Workspace, profile: Profile) -> dict[str, bytes]:
    """Return the texts of the presets of the same store that a preset builds on, and its own: they were read to judge it."""
    try:
        lineage = workspace.resolver.lineages.find_lineage(profile)
    except NpuprofError:
        return {}
    return {member.name: member.document.text.encode() for member in lineage if member.home is profile.home}


def _read_text(home: Folder, name: str) -> bytes:
    """Return the text of a preset's file, an empty one where it cannot be read."""
    try:
        return output.read_plain_file(home.profile_path(name))
    except OSError:
        return b""


def _find_name(home: Folder, name: str, path: str) -> str:
    """Return the name that a file has in a store, an empty text where it is not in it."""
    real = os.path.realpath(path)
    if name in home.names():
        return name if os.path.realpath(home.profile_path(name)) == real else ""
    return next((candidate for candidate in home.names() if os.path.realpath(home.profile_path(candidate)) == real), "")


def _find_errors(workspace: spec.Workspace, name: str) -> list[Finding]:
    findings = find_faults(lambda: workspace.resolver.resolve_profile(workspace.store.profile(name)))
    return [finding for finding in findings if finding.severity == "error"]
