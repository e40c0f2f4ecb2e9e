"""``whatran``: identify the preset of a digest, a run, a rendered file or an environment."""

from __future__ import annotations

from npuprof.commands.framework import number, optional_argument
from npuprof.commands.framework.parameters import FORMAT, PrintingVerb, StoreVerb
from npuprof.compare.json_changes import build_change_dict
from npuprof.compare.text_changes import format_pair_text
from npuprof.history.last import build_commit_fields
from npuprof.model import Fields, Finding, build_usage_error
from npuprof.report import Answer
from npuprof.report.text import escape_controls, format_count, paint_text
from npuprof.runs import fingerprints
from npuprof.runs.identify import Identified, Identifier, Match
from npuprof.store import spec
from npuprof.store.gitstore.commits import Commit
from npuprof.system import join_lines

_NOT_FOUND = (
    (
        "the store was changed and not committed when it ran: the record of the run has all "
        "values (npuprof show, npuprof diff)"
    ),
    "the preset was changed by --set, --with, or a personal layer",
    (
        "it is of another repository, of a branch that is not here (git fetch --all), or of a "
        "commit that was amended or thrown away since"
    ),
    "it was made of a source that is not on this machine: npuprof source sync --history",
)


class WhatRan(StoreVerb, PrintingVerb):
    """Identify the preset of a run.

    Prints the matching preset with its commits and versions, and what has changed since. X is a
    digest or its beginning, a run record or a folder of them, a rendered file, an exported
    environment, or a run log. Exits with 1 if no preset matches.
    """

    group = "runs"
    prose = True

    what = optional_argument("X", "Digest or file to identify, or - for stdin")
    pid = number(
        "--pid",
        metavar="N",
        text="Identify the preset in the environment of the running process N",
        least=1,
    )
    format = FORMAT

    def run(self) -> Answer:
        """Return the presets with the digests.

        Exit 1 if a digest matches no preset. Raises NpuprofError.

        Exit 2 if a record in a folder cannot be read; all others are still reported.
        """
        if (self.what is None) is (self.pid is None):
            what = (
                "whatran takes one thing to look at"
                if self.what is not None
                else "whatran has nothing to look at"
            )
            raise build_usage_error(
                what, "npuprof whatran out/bert.0.run.json, or npuprof whatran --pid 4711"
            )
        unread: list[Finding] = []
        read = (
            fingerprints.read_process(self.pid)
            if self.pid is not None
            else fingerprints.read_clues(self.what or "", unread)
        )
        identifier = Identifier(spec.Workspace(self.store))
        identified = [identifier.identify(clue) for clue in read]
        notes = tuple(dict.fromkeys(note for item in identified for note in item.notes))
        return Answer(
            {
                "text": lambda: "\n".join(self._format_identified(item) for item in identified),
                "json": lambda: {
                    "schema": "npuprof.whatran/1",
                    "found": [_build_fields(item) for item in identified],
                },
            },
            notes,
            2 if unread else int(not all(item.matches for item in identified)),
            problems=unread,
        )

    def _format_identified(self, identified: Identified) -> str:
        clue = identified.clue
        digest = clue.digests[0] if clue.digests else ""
        location = f"{clue.location}: " if clue.location else ""
        name = f" ({clue.name})" if clue.name else ""
        lines = [escape_controls(f"{location}{digest[:12]}{name}").rstrip(" ")]
        for match in identified.matches:
            lines += [f"  {line}" for line in self._format_match(match)]
        if not identified.matches and clue.evidence is not None:
            lines.append(
                "  every preset, as it is and as it was, says something else than this log, or "
                "nothing that a log proves"
            )
        elif not identified.matches:
            lines += [
                "  no preset had this digest. It may be that",
                *(f"    - {reason}" for reason in _NOT_FOUND),
            ]
        return join_lines(lines)

    def _format_match(self, match: Match) -> list[str]:
        over = f" {' '.join(match.requested)}" if match.requested else ""
        released = f"@{match.versions[-1]}" if match.versions else ""
        lines = [paint_text(escape_controls(f"{match.name}{released}{over}"), "1", self.coloured)]
        if match.fit is not None:
            unknown = f", {match.fit.unknown} undecided" if match.fit.unknown else ""
            lines.append(
                f"  fits     {match.fit.in_force} of {match.fit.total} "
                f"options in force, none otherwise{unknown}"
            )
        if match.newest is not None and match.oldest is not None:
            same = match.newest.id == match.oldest.id
            count = "" if match.count == 1 else f", {format_count(match.count, 'commit')}"
            lines.append(
                f"  {'commit' if same else 'newest'}   {_format_commit(match.newest)}{count}"
            )
            lines += [] if same else [f"  first    {_format_commit(match.oldest)}"]
        if match.versions:
            lines.append(f"  version  {', '.join(match.versions)}")
        context = match.config.context.describe()
        lines += [f"  context  {context}"] if context != "any" else []
        if match.in_work_tree:
            lines.append(
                "  now      the same"
                + ("" if match.newest else ", in the work tree and in no commit")
            )
        elif match.now is None:
            lines.append("  now      there is no such preset, or it cannot be resolved")
        else:
            called = escape_controls(f"renamed to {match.renamed}, ") if match.renamed else ""
            changes = (
                f"{format_count(len(match.now.changes), 'change')} since"
                if match.now.is_touched
                else "the same"
            )
            lines.append(f"  now      {called}{changes}")
            lines += [
                f"    {line}"
                for line in format_pair_text(match.now, coloured=self.coloured).splitlines()
            ]
        return lines


def _format_commit(commit: Commit) -> str:
    return escape_controls(
        f"{commit.id[:7]}  {commit.date[:10]}  {commit.author}  {commit.subject}"
    )


def _build_fields(identified: Identified) -> Fields:
    clue = identified.clue
    return {
        "where": clue.location or None,
        "digest": clue.digest or None,
        "preset_digest": clue.preset_digest or None,
        "name": clue.name or None,
        "presets": [_build_match_fields(match) for match in identified.matches],
        "notes": list(identified.notes),
    }


def _build_match_fields(match: Match) -> Fields:
    changes = (
        [build_change_dict(change) for change in match.now.changes]
        if match.now is not None
        else None
    )
    return {
        "name": match.name,
        "matched": match.kind,
        "in_force": match.fit.in_force if match.fit is not None else None,
        "digest": match.config.digest,
        "preset_digest": match.config.preset_digest,
        "context": match.config.context.build_fields(),
        "asked": list(match.requested),
        "versions": list(match.versions),
        "commits": match.count,
        "newest": match.newest and build_commit_fields(match.newest),
        "first": match.oldest and build_commit_fields(match.oldest),
        "work_tree": match.in_work_tree,
        "changes_since": [] if match.in_work_tree else changes,
        "renamed_to": match.renamed or None,
    }


VERB = WhatRan
