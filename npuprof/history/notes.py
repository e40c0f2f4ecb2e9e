"""Release notes and changelogs in Markdown: of a planned release, and of all past ones."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from operator import attrgetter

from npuprof.compare.folds import fold_shared_changes, identify_lasting_change
from npuprof.compare.markdown_changes import format_change_table, format_shared_changes
from npuprof.compare.spans import Page, collect_revisions
from npuprof.compare.spans import format_listed_span as span
from npuprof.history.planning import (
    PlannedRelease,
    ReleasePlan,
    StoreRelease,
    count_followers,
)
from npuprof.store.versions import Version
from npuprof.system import join_lines

#: The start of the machine-readable record in a tag message.
_RECORD = re.compile(r"^(?:Digest|Preset-Digest|Digest-Form|Parent):", re.MULTILINE)


def format_release_notes(plan: ReleasePlan) -> str:
    """Return the release notes of a plan.

    Shared changes come first, by cause, then presets with changes of their own, then dependents.
    """
    alone = plan.releases[0] if len(plan.releases) == 1 and not plan.store else None
    title = "Released presets"
    if plan.store:
        title = plan.store.tag
    elif alone:
        title = f"{alone.name} {alone.number}"
    out = f"# {title}\n"
    if plan.store:
        out += _format_store_changes(plan.store)
    if plan.removed:
        out += f"\nGone since they were released: {_format_names(plan.removed)}\n"
    pairs = [planned.pair for planned in plan.releases if planned.pair]
    page = Page(revisions=collect_revisions(pairs))
    wide, shared = fold_shared_changes(pairs, identify_lasting_change)
    if wide:
        out += f"\n## Changes of several presets\n{format_shared_changes(wide, page)}"
    same_reasons = defaultdict(list)
    for planned in plan.releases:
        if planned.follows:
            continue
        changes = planned.pair.changes if planned.pair else ()
        own = [change for change in changes if identify_lasting_change(change) not in shared]
        if own:
            out += _format_release(planned, alone) + f"\n{format_change_table(own, page)}"
        elif planned.proposal.former:
            out += _format_release(planned, alone)
        else:
            same_reasons[planned.proposal.step, planned.proposal.reasons].append(planned)
    for (step, texts), group in same_reasons.items():
        if len(group) == 1:
            out += _format_release(group[0], alone)
        else:
            out += (
                f"\n## {len(group)} presets\n"
                f"{_format_reasons('', step, texts)}\n{_list_numbers(group)}"
            )
    for labels, group in plan.list_followers().items():
        out += f"\n## {count_followers(group)} {_format_names(labels, ' and ')}\n\n"
        out += _list_numbers(group)
    return out


def _format_store_changes(store: StoreRelease) -> str:
    """Return why the whole store has a new number, and which presets have other names or none."""
    out = _format_reasons(store.was, store.proposal.step, store.proposal.reasons)
    if store.removed:
        out += f"\nRemoved: {_format_names(store.removed)}\n"
    if store.renamed:
        names = [f"{span(was)} → {span(name)}" for was, name in store.renamed]
        out += f"\nRenamed: {', '.join(names)}\n"
    return out


def _format_release(planned: PlannedRelease, alone: PlannedRelease | None) -> str:
    out = "" if alone else f"\n## {span(planned.name)} {planned.number}\n"
    if planned.proposal.former:
        out += f"\nWas {span(planned.proposal.former)}.\n"
    return out + _format_reasons(planned.was, planned.proposal.step, planned.proposal.reasons)


def _list_numbers(releases: Iterable[PlannedRelease]) -> str:
    return join_lines(
        f"- {span(new.name)} {f'{new.was} → ' if new.was else ''}{new.number} ({new.proposal.step})"
        for new in releases
    )


def _format_reasons(was: str, step: str, reasons: Sequence[str]) -> str:
    if step == "first":
        return "\nThe first release.\n"
    after = f" after {was}" if was else ""
    return f"\nA {step} step{after}:\n\n" + "".join(f"- {span(reason)}\n" for reason in reasons)


def format_changelog(
    versions: Sequence[Version],
    yanks: Mapping[str, str],
    now: Mapping[str, str],
    names: Container[str],
) -> str:
    """Return the changelog from tag messages, by preset, newest version first.

    The whole store comes first. ``now`` maps former names of presets in tags to current ones, under
    which they are listed. ``names`` are the existing presets.
    """
    versions_of: dict[str, list[Version]] = {}
    current_names = defaultdict(set)
    for version in sorted(versions, key=attrgetter("name", "text.order", "tag_name")):
        # the former name is listed, too, with a note where it goes on
        versions_of.setdefault(version.name, [])
        current = now.get(version.tag_name)
        if current is not None:
            current_names[version.name].add(current)
        versions_of.setdefault(version.name if current is None else current, []).insert(0, version)
    out = "# Changelog\n"
    for name, listed in sorted(versions_of.items()):
        # versions under the current name come before those under former ones
        listed.sort(key=lambda version: (version.name == name, version.text.order), reverse=True)
        out += f"\n## {span(name) if name else 'The whole store'}\n"
        if name in current_names:
            out += f"\nGoes on as {_format_names(sorted(current_names[name]))}.\n"
        elif name and name not in names:
            out += "\nThe preset no longer exists.\n"
        out += "".join(_format_version(version, name, yanks) for version in listed)
    return out


def _format_version(version: Version, name: str, yanks: Mapping[str, str]) -> str:
    """Return a version in the changelog of a preset: its former name, its yank, its message."""
    former = f", as {span(version.name)}" if version.name != name else ""
    out = f"\n### {version.number_text} ({version.date[:10]}){former}\n"
    if reason := yanks.get(version.tag_name):
        out += f"\n**Yanked**: {span(reason)}\n"
    if body := _read_body(version):
        # indented, as a text of a tag may contain Markdown
        out += "\n" + "".join([f"    {line}\n" if line else "\n" for line in body.split("\n")])
    return out


def _read_body(version: Version) -> str:
    """Return the body of a tag message, without record and signature."""
    _, _, rest = version.message.partition("\n")
    # git appends the signature of a tag to its message
    body, _, _ = rest.partition("\n-----BEGIN ")
    record = _RECORD.search(body)
    return (body[: record.start()] if record else body).strip("\n").expandtabs()


def _format_names(names: Iterable[str], joint: str = ", ") -> str:
    return joint.join(map(span, names))
