"""What a change of ``npuprof.toml`` asks for in the next version of a whole store: its rules, and the npuprof it needs, bind consumers."""

from __future__ import annotations

from collections.abc import Iterator

from npuprof.document.policy import TeamRule
from npuprof.history.proposal import Reason
from npuprof.model import NpuprofError
from npuprof.store.gitstore.revisions import Revision
from npuprof.store.sources.beside import list_project_paths
from npuprof.store.sources.ranges import find_excluded_version, parse_version_range
from npuprof.store.sources.reading import find_sources


def explain_project_changes(before: Revision, after: Revision) -> list[Reason]:
    """Return which step each change of npuprof.toml and of its lock asks for. Raises NpuprofError where they are not understood now."""
    names = list_project_paths(after.repository.prefix)
    texts = [_read_texts(home, names) for home in (before, after)]
    changed = [name for name, was, now in zip(names, *texts, strict=True) if was != now]
    if not changed:
        return []
    try:
        reasons = [*_explain_rules(_read_rules(before), _read_rules(after))]
        reasons += _explain_requirement(find_sources(before).project.requires, find_sources(after).project.requires)
    except NpuprofError as error:
        _read_rules(after)
        return [Reason("major", f"{names[0]} could not be read then: {error.findings[0].message}")]
    return reasons or [Reason("patch", f"only what {' and '.join(changed)} says besides has changed")]


def _read_texts(home: Revision, names: tuple[str, str]) -> list[bytes]:
    files = home.repository.git.read_objects([f"{home.commit}:{name}" for name in names])
    return [file.content.replace(b"\r\n", b"\n") if file is not None else b"" for file in files]


def _read_rules(home: Revision) -> dict[str, TeamRule]:
    policy = home.load_policy()
    return {rule.code: rule._replace(origin=None) for rule in policy.rules} if policy else {}


def _explain_rules(before: dict[str, TeamRule], after: dict[str, TeamRule]) -> Iterator[Reason]:
    """Yield a reason a rule: what may be an error now and was none is major, as in a consumer that takes over the rules."""
    for code in sorted({*before, *after}):
        was, now = before.get(code), after.get(code)
        if was == now:
            continue
        if now is None:
            yield Reason("minor", f"the rule {code} is gone")
        elif was is not None and was._replace(message="") == now._replace(message=""):
            yield Reason("patch", f"the rule {code} says it otherwise: {now.title}")
        else:
            what = f"new rule {code}" if was is None else f"the rule {code} is another"
            yield Reason("major" if now.severity == "error" else "minor", f"{what} ({now.severity}): {now.title}")


def _explain_requirement(before: str, after: str) -> Iterator[Reason]:
    if before == after:
        return
    ranges = [parse_version_range(text or "*") for text in (before, after)]
    was, now = ranges
    narrower = was is None or now is None or find_excluded_version(was, now) is not None
    shown = f"{before or 'any'} → {after or 'any'}"
    yield Reason("major", f"needs another npuprof: {shown}") if narrower else Reason("minor", f"needs less of npuprof: {shown}")
