"""``diff``: compare two presets, several in a matrix, or a whole store at two revisions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress

from npuprof.commands.framework import arguments, flag, option
from npuprof.commands.framework.parameters import ContextVerb, PrintingVerb, formats
from npuprof.commands.resolving import open_workspace
from npuprof.model import (
    TYPE_CHECKING,
    Fields,
    Finding,
    NpuprofError,
    Place,
    Record,
    build_error,
    build_usage_error,
)
from npuprof.report import Answer
from npuprof.report.text import count_rest, escape_controls, format_count
from npuprof.resolve.config import Config
from npuprof.store import spec
from npuprof.store.spec import Workspace
from npuprof.system import expand_home, join_lines

if TYPE_CHECKING:
    from npuprof.compare.changes import Change
    from npuprof.compare.preset_states import Pair
    from npuprof.compare.survey import Survey
    from npuprof.report import Forms
    from npuprof.runs.ranks import Processes, Ranks

_RECORD = "record:"
_EVIDENCE = "evidence:"


class DiffContext(Record):
    """Differences of two records besides the settings: lines, JSON fields, and notes."""

    lines: tuple[str, ...] = ()
    fields: Fields = {}
    notes: tuple[str, ...] = ()


class Diff(PrintingVerb, ContextVerb):
    """Compare resolved presets or revisions.

    One preset is compared with its last commit, two with each other, and more in a matrix. Without
    SPEC, the whole store is compared with the last commit. Folders of run records are compared rank
    by rank. Text names the first 10 presets of a change; --name-only and --format json name all.
    """

    group = "versions"
    prose = True

    specs = arguments(
        "SPEC...", "Presets to compare, or to restrict --rev to [default: the whole store]", "spec"
    )
    rev = option(
        "--rev",
        metavar="REVS",
        text=(
            "Compare revisions: A..B, A...B (from their merge "
            "base), or A with the work tree [default: HEAD]"
        ),
        complete="revisions",
    )
    format = formats("text", "markdown", "html", "json")
    stat = flag("--stat", text="Print only the number of changes per preset")
    name_only = flag("--name-only", text="Print only the names of presets that differ")
    everything = flag("--all", text="Include unchanged settings, and every setting of new presets")
    raw = flag("--raw", text="Compare the files as written, without inheritance")
    link = option(
        "--link",
        metavar="URL",
        text="Link changed lines to the repository at URL in Markdown output",
        complete="nothing",
    )
    exit_code = flag("--exit-code", text="Exit with 1 if anything differs")

    _around: DiffContext = DiffContext()
    _unread: list[Finding] = []

    def run(self) -> Answer:
        """Return the differences.

        Exit 1 with ``exit_code`` if there are any, else 0. Raises NpuprofError.

        Exit 2 if a preset, or a record in a folder, cannot be read or resolved; the differences of
        all others are still reported. Without ``rev``, one preset is compared with its last commit,
        two with each other, more as a matrix, and none means the whole store against its last
        commit.
        """
        self._unread = []
        workspace = open_workspace(self.store, self.build_context(), unread=self._unread)
        if self.rev is not None or not self.specs:
            from npuprof.compare import spans, store_states

            spans.require_address("--link", self.link)
            context = workspace.resolver.context
            return self._answer_survey(
                store_states.compare_revisions(
                    workspace.store,
                    self.rev or "HEAD",
                    context,
                    self.specs,
                    self.raw,
                    is_brief=self.format == "text",
                )
            )
        if len(self.specs) > 2:
            return self._answer_matrix(workspace)
        if (
            len(self.specs) == 1
            and (processes := _find_processes(self.specs[0], workspace)) is not None
        ):
            groups, self._unread = processes
            return self._answer_ranks(groups)
        return self._answer_survey(self._compare_two(workspace), single=True)

    def _answer_survey(self, result: Survey, single: bool = False) -> Answer:
        """Return the differences as an answer; exit 2 if some are unknown."""
        different = [pair.name for pair in result.different_pairs]
        around = self._around
        forms = {
            "text": lambda: self._format_text(result, single) + join_lines(around.lines),
            "markdown": lambda: self._format_markdown(result),
            "html": lambda: _format_html(result),
            "json": lambda: _format_json(result, self.everything, single, around.fields),
        }
        notes = result.describe_unread()
        if not self.name_only:
            if self.format in ("markdown", "html"):
                notes += [f"the runs differ: {line}" for line in around.lines]
            notes += around.notes
        return self._build_answer(
            forms, different, different or result.outputs or around.lines, notes, result.has_unread
        )

    def _build_answer(
        self,
        forms: Forms,
        names: Iterable[str],
        differences: Sequence[object],
        notes: Sequence[str],
        unread: bool = False,
    ) -> Answer:
        """Return differences as an answer, with ``name_only`` only their ``names``.

        Exit 2 if some are unknown.
        """
        code = 2 if unread or self._unread else int(self.exit_code and bool(differences))
        return Answer(
            join_lines(names) if self.name_only else forms,
            tuple(notes),
            code,
            problems=self._unread,
        )

    def _format_markdown(self, result: Survey) -> str:
        from npuprof.compare import markdown_changes, store_states

        options = {"--store": self.store, "--cann": self.cann, "--product": self.product}
        command = store_states.format_diff_command(
            self.rev, options, [*(["--raw"] if self.raw else []), *self.specs]
        )
        return markdown_changes.format_survey_markdown(
            result, store_states.build_page(result, command, self.link)
        )

    def _format_text(self, result: Survey, single: bool) -> str:

        from npuprof.compare import text_changes

        if self.stat:
            return text_changes.format_survey_stat(result)
        if single:
            return text_changes.format_pair_text(result.pairs[0], self.everything, self.coloured)
        return text_changes.format_survey_text(result, self.everything, self.coloured)

    def _answer_matrix(self, workspace: spec.Workspace) -> Answer:

        from npuprof.compare import matrix

        configs = [workspace.resolve_spec(preset) for preset in self.specs]
        rows = matrix.collect_matrix_rows(configs, self.everything)
        forms = {
            "text": lambda: matrix.build_matrix_table(configs, rows) if rows else "",
            "markdown": lambda: matrix.format_matrix_markdown(configs, rows),
            "html": lambda: matrix.format_matrix_html(configs, rows),
            "json": lambda: matrix.format_matrix_json(configs, rows),
        }
        notes = []
        if any(map(_is_evidence, configs)) and not self.name_only:
            notes.append(
                "a value missing in the column of a log was a default, unset, or is not logged; "
                "npuprof verify shows which"
            )
        return self._build_answer(
            forms, (row.key for row in rows), [row.key for row in rows if not row.same], notes
        )

    def _answer_ranks(self, groups: list[Processes]) -> Answer:
        """Return the ranks that differ from the majority, and how."""
        from npuprof.compare import matrix

        different = [group for processes in groups for group in processes.groups[1:]]
        older = sum(processes.older for processes in groups)
        notes = []
        if older:
            notes.append(
                f"{format_count(older, 'older record')} of the same "
                "ranks omitted; name the files to compare them"
            )
        configs = [group.config for processes in groups for group in processes.groups]
        forms = {
            "text": lambda: "".join(map(self._format_processes, groups)),
            "markdown": lambda: matrix.format_matrix_markdown(
                configs, matrix.collect_matrix_rows(configs, self.everything)
            ),
            "html": lambda: matrix.format_matrix_html(
                configs, matrix.collect_matrix_rows(configs, self.everything)
            ),
            "json": lambda: {
                "schema": "npuprof.ranks/1",
                "presets": [_build_fields(processes) for processes in groups],
                "unread": list(
                    dict.fromkeys(
                        finding.where.file for finding in self._unread if finding.where is not None
                    )
                ),
            },
        }
        return self._build_answer(
            forms, (path for group in different for path in group.paths), different, notes
        )

    def _format_processes(self, processes: Processes) -> str:
        from npuprof.compare import text_changes
        from npuprof.runs import ranks

        lines = [escape_controls(ranks.describe_count(processes))]
        for group in processes.groups[1:] if not self.stat else ():
            assert group.pair is not None, "it is compared with the first"
            text = text_changes.format_pair_text(group.pair, self.everything, self.coloured)
            differences = [
                *text.splitlines(),
                *ranks.format_differences(group.origins, "record"),
                *ranks.format_differences(group.environment, "environment"),
            ]
            lines += ["", f"{group.title}:", *(f"  {line}" for line in differences)]
        if processes.missing:
            missing = ranks.name_ranks(processes.missing, one="rank")
            lines += ["", f"no record: {missing} of {processes.size}"]
        endings = ranks.list_endings(processes.groups)
        if endings:
            lines += ["", "how they ended:", *(f"  {line}" for line in endings)]
        return join_lines(lines)

    def _compare_two(self, workspace: spec.Workspace) -> Survey:
        from npuprof.compare import preset_states, survey
        from npuprof.compare.changes import compare_documents

        left, right = (
            self.specs if len(self.specs) == 2 else _choose_sides(workspace, self.specs[0])
        )
        if self.raw:
            after = workspace.profile(right)
            before = workspace.profile(left)
            changes = tuple(compare_documents(before.document, after.document))
            status = "changed" if changes else "unchanged"
            return survey.Survey(left, right, (preset_states.Pair(after.name, status, changes),))
        new = workspace.resolve_spec(right)
        old = workspace.resolve_spec(left)
        pair, notes = _omit_unlogged(preset_states.build_preset_pair(old, new), old, new)
        around = _compare_around(old, new)
        self._around = around._replace(notes=(*around.notes, *notes))
        return survey.Survey(old.name, new.name, (pair,))


def _choose_sides(workspace: spec.Workspace, preset: str) -> tuple[str, str]:
    """Return both sides for a single spec: a revision, else the last commit, and the work tree."""
    if preset == "-":
        why = "A single preset is compared with its last commit."
        raise build_usage_error(f"nothing to compare {preset!r} with", "name a second preset", why)
    parts = workspace.split_spec(preset)
    if len(parts) > 1:
        committed = [part if "@" in part or ":" in part else f"{part}@HEAD" for part in parts]
        return "+".join(committed), preset
    name, at, _ = preset.partition("@")
    return (preset, name) if at else (f"{preset}@HEAD", preset)


def _format_html(result: Survey) -> str:
    from npuprof.compare.html_changes import format_survey_html

    return format_survey_html(result)


def _format_json(result: Survey, everything: bool, single: bool, fields: Fields) -> str:
    from npuprof.compare.json_changes import format_survey_json

    return format_survey_json(result, everything, single, fields)


def _find_processes(
    path: str, workspace: Workspace
) -> tuple[list[Processes], list[Finding]] | None:
    """Return the processes with records in a folder, and the findings about unreadable ones.

    None if it has no records or is a preset.

    Raises NpuprofError.
    """
    folder = expand_home(path)
    if not os.path.isdir(folder):
        return None
    from npuprof.runs import ranks, run_records

    is_path = path.startswith((".", "/", "~"))
    with suppress(NpuprofError):
        # a preset has precedence over a folder of its name, unless written as a path
        if not is_path and path in workspace.store.names():
            return None
    if not run_records.list_record_names(folder):
        if is_path:
            hint = "name a preset, or a folder where npuprof run NAME --record has left records"
            raise build_error(
                "NP962", f"{path} contains no run record", "", hint, where=Place(folder)
            )
        return None
    return ranks.load_processes(folder, workspace)


def _build_fields(processes: Processes) -> Fields:
    return {
        "preset": processes.name,
        "records": processes.count,
        "size": processes.size,
        "missing": [int(label) for label in processes.missing],
        "groups": [_build_group_fields(group) for group in processes.groups],
    }


def _build_group_fields(group: Ranks) -> Fields:
    from npuprof.compare.json_changes import build_change_dict

    return {
        "ranks": [int(label) if label.isdecimal() else label for label in group.labels],
        "paths": list(group.paths),
        "digest": group.config.digest,
        "changes": [build_change_dict(change) for change in group.pair.changes]
        if group.pair is not None
        else [],
        "environment": _list_differences(group.environment),
        "record": _list_differences(group.origins),
        "ended": list(group.endings),
    }


def _list_differences(
    differences: dict[str, tuple[str | None, str | None]],
) -> list[dict[str, str | None]]:
    return [{"name": name, "before": old, "after": new} for name, (old, new) in differences.items()]


def _compare_around(before: Config, after: Config) -> DiffContext:
    """Return other differences of two records: variables that no preset set, who started them.

    Raises NpuprofError.
    """
    authors = [config.profile for config in (before, after) if config.lineage]
    if not any(author.key.startswith(_RECORD) for author in authors):
        return DiffContext()
    from npuprof.runs import ranks, run_records

    read = [fields for author in authors if (fields := run_records.find_fields(author)) is not None]
    if len(read) < 2:
        return DiffContext()
    left, right = read
    left_ending = ranks.describe_ending(left)
    right_ending = ranks.describe_ending(right)
    notes = []
    if left_ending and right_ending and left_ending != right_ending:
        notes.append(f"they ended differently: {left_ending}; {right_ending}")
    left_command = run_records.read_command(left)
    right_command = run_records.read_command(right)
    if left_command and right_command and left_command.is_other(right_command):
        notes.append(f"the commands differ: {left_command}; {right_command}")
    if str(left.get("by")) != str(right.get("by")):
        # a function in a script does not record the environment
        return DiffContext(notes=tuple(notes))
    origins = ranks.compare_origins(left, right)
    environment = ranks.compare_environments(left, right)
    lines = (
        *ranks.format_differences(origins, "record"),
        *ranks.format_differences(environment, "environment"),
    )
    fields = {
        "environment": _list_differences(environment),
        "record": _list_differences(origins),
        "ended": [left_ending, right_ending],
    }
    return DiffContext(lines, fields, tuple(notes))


def _is_evidence(config: Config) -> bool:
    """Return whether a config was reconstructed from the logs of a run."""
    return bool(config.lineage) and config.profile.key.startswith(_EVIDENCE)


def _omit_unlogged(pair: Pair, before: Config, after: Config) -> tuple[Pair, tuple[str, ...]]:
    """Return the differences that the logs of a run can show, with notes about the others.

    Defaults of the run and options that no adapter logs are missing in a preset created from logs.
    Claims are not compared if the preset has none.
    """
    if not _is_evidence(before) and not _is_evidence(after):
        return pair, ()
    omitted = []
    unknown: dict[str, None] = {}
    if _is_evidence(after):
        omitted += _list_unlogged(pair, before, after, "removed", unknown)
    if _is_evidence(before):
        omitted += _list_unlogged(pair, after, before, "added", unknown)
    changes = tuple(change for change in pair.changes if change not in omitted)
    notes: tuple[str, ...] = ()
    if unknown:
        count = format_count(len(unknown), "setting")
        shown = count_rest(unknown, 4)
        notes = (f"{count} omitted, not logged by the run ({shown}); npuprof verify says why",)
    # unknown values of a run neither add, fix nor accept findings
    pair = pair._replace(
        status="changed" if changes else "unchanged",
        changes=changes,
        broken=(),
        fixed=(),
        accepted=(),
    )
    return pair, notes


def _list_unlogged(
    pair: Pair, config: Config, run: Config, kind: str, unknown: dict[str, None]
) -> list[Change]:
    """Return the changes of a kind that a run's logs cannot show, and claims that the run lacks.

    ``kind`` is how a setting of ``config`` that the run lacks is reported. Settings whose value in
    the run is unknown are added to ``unknown``.
    """
    from npuprof.runs import imported

    evidence = imported.find_evidence(run.profile)
    agreeing = imported.compare_with_logs(config.options, evidence) if evidence is not None else {}
    omitted = []
    for change in pair.changes:
        if change.kind == kind:
            # logs show session options only
            if change.setting not in config.options or change.setting in agreeing:
                omitted.append(change)
                if not agreeing.get(change.setting):
                    unknown[change.setting] = None
        elif change.kind in ("added", "removed") and change.setting.startswith("profile."):
            omitted.append(change)
    return omitted


VERB = Diff
