"""``log``: list the commits that changed the resolved values of a preset."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from npuprof import catalog
from npuprof.commands.framework import number, optional_argument
from npuprof.commands.framework.parameters import FORMAT, OF_STORE, ContextVerb, PrintingVerb
from npuprof.document import keys
from npuprof.edit.assignments import require_key
from npuprof.model import (
    TYPE_CHECKING,
    Fields,
    Finding,
    NpuprofError,
    Path,
    build_error,
    did_you_mean,
)
from npuprof.report import Answer
from npuprof.report.findings import build_finding_dict
from npuprof.report.text import escape_controls, paint_text
from npuprof.store import is_source_reference
from npuprof.system import join_lines

if TYPE_CHECKING:
    from npuprof.history.timeline import HistoryStep
    from npuprof.store.folder import Folder
    from npuprof.store.gitstore.repository import Repository

_SAID = {
    "created": "created",
    "removed": "removed",
    "broken": "could not be resolved any more",
    "mended": "resolves again",
    "untold": "unknown here",
}


class Log(PrintingVerb, ContextVerb):
    """List the commits that changed a preset.

    Includes commits that changed an inherited value. The newest commit is first.
    """

    group = "versions"
    prose = True

    spec = OF_STORE
    key = optional_argument(
        "KEY", "Key, or path inside a value, to follow [default: all keys]", "key"
    )
    number = number(
        "--number", "-n", metavar="N", text="Stop after N commits [default: list all]", least=1
    )
    format = FORMAT

    def run(self) -> Answer:
        """Return the commits that changed a preset, or one value of it, newest first.

        Raises NpuprofError.
        """
        from npuprof.history.timeline import Timeline, walk_composition
        from npuprof.store.enclosing_repository import explain_missing_preset

        workspace = self.open_workspace()

        key, tail = _parse_key(self.key)
        is_composed = "+" in self.spec
        if is_composed:
            name, named = workspace.resolve_spec(self.spec).name, None
            repository = workspace.store.repository
            tip = repository.resolve_commit("HEAD")
        elif is_source_reference(self.spec):
            there = workspace.lookups.find_source_store(workspace.home, self.spec)
            name = self.spec.partition(":")[2].partition("@")[0]
            named = None
            repository = there.revision.repository
            tip = there.commit
        else:
            name, revision = workspace.split_single_spec(self.spec, "log")
            repository = workspace.store.repository
            named = repository.resolve_revision(name, revision) if revision else None
            tip = named.commit if named else repository.resolve_commit("HEAD")
        repository = repository.load_revision(
            tip
        ).repository  # the store may have had another folder then
        repository.git.in_blocks = self.number is None and not sys.stdout.isatty()
        if is_composed:
            walk = walk_composition(workspace, repository, tip, name, key, tail)
        else:
            version = named.version if named else None
            context = workspace.resolver.context
            walk = Timeline(repository, tip, name, context, version).walk_steps(key, tail)
        # asked before the answer: an unknown preset is an error, and no empty history
        first = next(walk, None)
        if first is None and not is_composed and name not in repository.list_profile_files(tip):
            missing = NpuprofError(_build_missing_finding(workspace.store, repository, name, tip))
            raise explain_missing_preset(workspace.store, name, missing)
        if first is None and key:
            _require_known_key(name, key)
        steps = islice(chain([first], walk), self.number) if first else ()
        # with a limit, the walk may end before the border of the clone
        shallow = repository.is_shallow() if first and self.number is None else False
        forms = {
            "text": lambda: _format_steps(name, self.coloured, steps),
            "json": lambda: {
                "schema": "npuprof.log/1",
                "preset": name,
                "key": self.key,
                "shallow": shallow,
                "commits": [_build_step_fields(step) for step in steps],
            },
        }
        notes = []
        if first is None and self.format == "text":
            notes.append(
                f"{name} has never set {key if key != self.key and not tail else self.key}"
                if self.key
                else f"no commit contains {name}"
            )
        if shallow:
            notes.append(
                "this clone is shallow, so its oldest commit seems "
                "to have made everything; git fetch --unshallow"
            )
        return Answer(forms, tuple(notes))


def _parse_key(key: str | None) -> tuple[str, Path]:
    if key is None:
        return "", ()
    name, tail = require_key(key)
    if name == "profile" and tail:  # megatron has an argument of that name
        hint = "omit it: all changes are listed, also those of [profile]"
        raise build_error("NP009", f"log follows settings, and {key!r} is none", "", hint)
    return catalog.find_key_elsewhere(name) or name, tail  # a variable without env.


def _require_known_key(name: str, key: str) -> None:
    """Raise NpuprofError for a key that no commit has set and the catalogue lacks."""
    section, plain = keys.split_section_and_name(key)
    if not catalog.find_record_texts(section, plain) and section != "env":
        what = f"{name} has never set {key!r}, and the catalogue does not know it"
        hint = did_you_mean(
            plain,
            catalog.record_names(section),
            "npuprof options lists all; variables are env.NAME",
        )
        raise build_error("NP201", what, "", hint)


def _build_missing_finding(home: Folder, repository: Repository, name: str, tip: str) -> Finding:
    there = home.in_work_tree and os.path.exists(home.profile_path(name))
    hint = did_you_mean(
        name,
        sorted(repository.list_profile_files(tip)),
        f"commit it first: npuprof commit {name}" if there else "npuprof list shows the presets",
    )
    return Finding("NP023", f"no commit has a preset {name!r}", "", hint)


def _format_steps(name: str, coloured: bool, steps: Iterable[HistoryStep]) -> Iterator[str]:
    from npuprof.compare.text_changes import format_change_lines

    for step in steps:
        commit = step.commit
        what = escape_controls(f"{commit.date[:10]} {commit.author}  {commit.subject}")
        lines = [f"{paint_text(commit.id[:7], '33', coloured)} {what}"]
        if step.kind in _SAID:
            renamed = f" as {step.name}" if step.name != name else ""
            lines.append(f"  {_SAID[step.kind]}{renamed}")
        for change in step.changes:
            lines += format_change_lines(change, "  ", coloured)
        lines += [f"  ! {escape_controls(str(finding))}" for finding in step.findings]
        yield join_lines(lines)


def _build_step_fields(step: HistoryStep) -> Fields:
    from npuprof.compare.json_changes import build_change_dict
    from npuprof.history.last import build_commit_fields

    return {
        **build_commit_fields(step.commit),
        "kind": step.kind,
        "preset": step.name,
        "changes": [build_change_dict(change) for change in step.changes],
        "findings": [build_finding_dict(finding) for finding in step.findings],
    }


VERB = Log
