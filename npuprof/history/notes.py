"""Release notes and changelogs in Markdown: of a planned release, and of all past ones."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence

from npuprof.compare.folds import fold_shared_changes, identify_lasting_change
from npuprof.compare.markdown_changes import format_change_table, format_shared_changes
from npuprof.compare.spans import Page, collect_revisions
from npuprof.compare.spans import format_listed_span as span
from npuprof.history.planning import PlannedRelease, ReleasePlan, count_followers
from npuprof.store.versions import Version

#: The start of the machine-readable record in a tag message.
_RECORD = re.compile(r"^(?:Digest|Preset-Digest|Digest-Form|Parent):", re.MULTILINE)


def format_release_notes(plan: ReleasePlan) -> str:
    """Return the release notes of a plan.

    Shared changes come first, by cause, then presets with changes of their own, then dependents.
    """
    alone = plan.releases[0] if len(plan.releases) == 1 and not plan.store else None
    title = (
        plan.store.tag
        if plan.store
        else f"{alone.name} {alone.number}"
        if alone
        else "Released presets"
    )
    out = [f"# {title}\n"]
    if plan.store:
        out.append(
            _format_reasons(plan.store.was, plan.store.proposal.step, plan.store.proposal.reasons)
        )
        if plan.store.removed:
            out.append(f"\nRemoved: {_format_names(plan.store.removed)}\n")
        if plan.store.renamed:
            out.append(
                "\nRenamed: "
                f"{', '.join(f'{span(was)} → {span(name)}' for was, name in plan.store.renamed)}\n"
            )
    if plan.removed:
        out.append(f"\nGone since they were released: {_format_names(plan.removed)}\n")
    pairs = [planned.pair for planned in plan.releases if planned.pair]
    page = Page(revisions=collect_revisions(pairs))
    wide, shared = fold_shared_changes(pairs, identify_lasting_change)
    if wide:
        out.append(f"\n## Changes of several presets\n{format_shared_changes(wide, page)}")
    alike: dict[tuple[str, tuple[str, ...]], list[PlannedRelease]] = {}
    for planned in plan.releases:
        own = (
            [
                change
                for change in planned.pair.changes
                if identify_lasting_change(change) not in shared
            ]
            if planned.pair
            else []
        )
        if not planned.follows and own:
            out.append(_format_release(planned, alone) + f"\n{format_change_table(own, page)}")
        elif not planned.follows and planned.proposal.former:
            out.append(_format_release(planned, alone))
        elif not planned.follows:
            alike.setdefault((planned.proposal.step, planned.proposal.reasons), []).append(planned)
    for (step, reasons), group in alike.items():
        if len(group) == 1:
            out.append(_format_release(group[0], alone))
        else:
            out.append(
                f"\n## {len(group)} presets\n"
                f"{_format_reasons('', step, reasons)}\n{_list_numbers(group)}"
            )
    for labels, group in plan.list_followers().items():
        out.append(f"\n## {count_followers(group)} {_format_names(labels, ' and ')}\n\n")
        out.append(_list_numbers(group))
    return "".join(out)


def _format_release(planned: PlannedRelease, alone: PlannedRelease | None) -> str:
    head = "" if alone else f"\n## {span(planned.name)} {planned.number}\n"
    former = f"\nWas {span(planned.proposal.former)}.\n" if planned.proposal.former else ""
    return (
        head
        + former
        + _format_reasons(planned.was, planned.proposal.step, planned.proposal.reasons)
    )


def _list_numbers(releases: Iterable[PlannedRelease]) -> str:
    return "".join(
        (
            f"- {span(new.name)} {f'{new.was} → ' if new.was else ''}{new.number} "
            f"({new.proposal.step})\n"
        )
        for new in releases
    )


def _format_reasons(was: str, step: str, reasons: Sequence[str]) -> str:
    if step == "first":
        return "\nThe first release.\n"
    return f"\nA {step} step{f' after {was}' if was else ''}:\n\n" + "".join(
        f"- {span(reason)}\n" for reason in reasons
    )


def format_changelog(
    versions: Sequence[Version],
    yanks: Mapping[str, str],
    now: Mapping[str, str],
    names: Container[str],
) -> str:
    """Return the changelog from tag messages, by preset, newest version first.

    The whole store comes first.

    ``now`` maps former names of presets in tags to current ones, under which they are listed.
    ``names`` are the existing presets.
    """
    named: dict[str, list[Version]] = {}
    for version in sorted(
        versions, key=lambda version: (version.name, version.text.order, version.tag_name)
    ):
        named.setdefault(version.name, [])
        named.setdefault(now.get(version.tag_name, version.name), []).insert(0, version)
    for name, listed in named.items():
        listed.sort(key=lambda version: (version.name == name, version.text.order), reverse=True)
    out = ["# Changelog\n"]
    for name, listed in sorted(named.items()):
        out.append(f"\n## {span(name) if name else 'The whole store'}\n")
        if later := sorted(
            {
                now[version.tag_name]
                for version in versions
                if version.name == name and version.tag_name in now
            }
        ):
            out.append(f"\nGoes on as {_format_names(later)}.\n")
        elif name and name not in names:
            out.append("\nThe preset no longer exists.\n")
        for version in listed:
            former = f", as {span(version.name)}" if version.name != name else ""
            out.append(f"\n### {version.number_text} ({version.date[:10]}){former}\n")
            if reason := yanks.get(version.tag_name):
                out.append(f"\n**Yanked**: {span(reason)}\n")
            if body := _read_body(version):
                out.append(
                    "\n" + "".join(f"    {line}\n" if line else "\n" for line in body.split("\n"))
                )
    return "".join(out)


def _read_body(version: Version) -> str:
    """Return the body of a tag message, without record and signature."""
    body = version.message.partition("\n")[2].partition("\n-----BEGIN ")[0]
    record = _RECORD.search(body)
    return (body[: record.start()] if record else body).strip("\n").expandtabs()


def _format_names(names: Iterable[str], joint: str = ", ") -> str:
    return joint.join(map(span, names))
