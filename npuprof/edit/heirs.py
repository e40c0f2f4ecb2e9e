"""Who builds on a preset, and whether an edit of it would break them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from npuprof import checks, document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError
from npuprof.report import output
from npuprof.store import Folder, spec


def refuse_broken_heirs(store: str | None, new: Profile, path: str) -> None:
    """Raise NpuprofError where presets of the store that build on the one in a file would have errors they have not now."""
    try:
        home = spec.Workspace(store).store
    except NpuprofError:
        return  # a file that is in no store has no heirs
    name = _find_name(home, new.name, path)
    heirs = find_heirs(home, name) if name else []
    if not heirs:
        return
    laid = spec.Workspace(store).store
    laid.lay_over(Profile(document.parse_document(name, new.document.source, new.document.text), home=laid))
    before, after = spec.Workspace(store), spec.Workspace(store)
    before.use_store(home)
    after.use_store(laid)
    brought: list[Finding] = []
    for heir in heirs:
        if errors := _find_errors(after, heir):
            known = {checks.identify_finding(finding) for finding in _find_errors(before, heir)}
            brought += [finding for finding in errors if checks.identify_finding(finding) not in known]
    if brought:
        output.tell_remark("nothing written: the change would add errors to presets that extend it; --no-check writes it anyway")
        raise NpuprofError(checks.fold_findings(brought))


def find_heirs(home: Folder, name: str) -> list[str]:
    """Return the presets of a store that extend one, or another that does, by its present text."""
    texts = dict(_read_texts(home))
    found: dict[str, None] = {}
    waiting = [name]
    while waiting:
        parent = waiting.pop()
        wanted = parent.encode()
        for heir, text in texts.items():
            # only what names it, or may in escapes, is worth a parser
            if heir not in found and heir != name and (wanted in text or b"\\u" in text or b"\\U" in text or b"\\x" in text):
                with suppress(NpuprofError):
                    if parent in home.profile(heir).extends:
                        found[heir] = None
                        waiting.append(heir)
    return sorted(found)


def _read_texts(home: Folder) -> Iterator[tuple[str, bytes]]:
    for name in home.names():
        with suppress(OSError):
            text = output.read_plain_file(home.profile_path(name))
            if b"extends" in text or b"\\" in text:
                yield name, text


def _find_name(home: Folder, name: str, path: str) -> str:
    """Return the name that a file has in a store, an empty text where it is not in it."""
    if name in home.names():
        return name if os.path.realpath(home.profile_path(name)) == os.path.realpath(path) else ""
    real = os.path.realpath(path)
    return next((one for one in home.names() if os.path.realpath(home.profile_path(one)) == real), "")


def _find_errors(workspace: spec.Workspace, name: str) -> list[Finding]:
    try:
        found = checks.check_config(workspace.resolver.resolve_profile(workspace.store.profile(name)), notes=False)
    except NpuprofError as error:
        return list(error.findings)
    return [finding for finding in found if finding.severity == "error"]
