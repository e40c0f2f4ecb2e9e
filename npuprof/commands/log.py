"""``log``, ``blame`` and ``list --versions``: the past of presets."""

from __future__ import annotations

import os
from typing import Any

from npuprof.catalog import values
from npuprof.commands.flags import one_of
from npuprof.compare import data, plain
from npuprof.document import keys
from npuprof.model import Finding, NpuprofError, Path
from npuprof.report import build_finding_dict as finding_dict
from npuprof.report import escape_controls, format_json_answer, output, paint_text
from npuprof.store import is_profile_name, revisions, spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.history.timeline import HistoryStep
    from npuprof.resolve.config import Config
    from npuprof.store.commits import Commit

_NOBODY: dict[str, Any] = {"commit": None, "author": None, "email": None, "date": None, "subject": None}


def log_preset(
    name: str, key: str | None, store: str | None, cann: str | None, product: str | None,
    number: int | None, format_: str, path: str | None, color: str,
) -> int:  # fmt: skip
    """Print the commits that changed what a preset resolves to, or one value of it, newest first."""
    from npuprof.history.timeline import Timeline
    from npuprof.store.commits import load_commit_headers

    one_of("--format", format_, ("text", "json"))
    one_of("--color", color, ("auto", "always", "never"))
    full, tail = _key(key)
    workspace = spec.Workspace(store, spec.build_context(cann, product))
    name, revision = one_preset(workspace, name, "log")
    repository = revisions.find_repository(workspace.store)
    tip = repository.resolve_revision(name, revision)[0] if revision else repository.resolve_commit("HEAD")
    repository = revisions.load_repository_revision(repository, tip).repository  # the store may have been another folder then
    steps: list[HistoryStep] = []
    timeline = Timeline(repository, tip, name, workspace.resolver.context)
    for step in timeline.walk_steps(full, tail):
        steps.append(step)
        if number is not None and len(steps) >= number:
            break
    if not steps and name not in repository.list_profile_files(tip):
        raise NpuprofError([_never(repository, name, tip)])
    load_commit_headers(repository, (step.commit for step in steps))
    shallow = repository.is_shallow() if steps and number is None else False
    if format_ == "json":
        found = {"schema": "npuprof.log/1", "preset": name, "key": key, "shallow": shallow, "commits": [_dict(step) for step in steps]}
        output.write_answer(format_json_answer(found), path)
    else:
        coloured = path is None and output.is_colour_wanted(color)
        output.write_answer("".join(_text(step, name, coloured) for step in steps), path)
        if not steps:
            output.write_to_stderr(f"npuprof: {name} has never set {key}" if key else f"npuprof: no commit holds {name}")
    if shallow:
        output.write_to_stderr("npuprof: this clone is shallow, so its oldest commit seems to have made everything; git fetch --unshallow")
    return 0


def _key(key: str | None) -> tuple[str, Path]:
    if key is None:
        return "", ()
    parsed = keys.parse_key(key)
    if parsed is None:
        raise NpuprofError([Finding("NP009", "error", f"{key!r} is not a key", "", "write the option's name, or section.name")])
    return parsed


def one_preset(workspace: spec.Workspace, asked: str, verb: str) -> tuple[str, str]:
    """Return name and revision of a spec that must be one preset of the store. Raises NpuprofError."""
    name, _, revision = asked.partition("@")
    if asked.endswith(".toml"):
        inside = workspace.profile(asked).name
        name, revision = (inside, "") if not inside.endswith(".toml") else (name, revision)
    if "+" in name or name == "-" or name.endswith(".toml"):
        what = f"{verb} takes one preset of the store, not {asked!r}"
        raise NpuprofError([Finding("NP024", "error", what, "Only what git keeps under one name has a history.", "name one preset")])
    return name, revision


def _never(repository: revisions.Repository, name: str, tip: str) -> Finding:
    from npuprof.model import did_you_mean

    known = sorted(repository.list_profile_files(tip))
    return Finding(
        "NP023", "error", f"no commit has a profile {name!r}", "", did_you_mean(name, known, "commit it first; npuprof list shows all")
    )


def _text(step: HistoryStep, name: str, coloured: bool) -> str:
    commit = step.commit
    who = f"{commit.date[:10]} {escape_controls(commit.author)}"
    head = f"{paint_text(commit.id[:7], '33', coloured)} {who}  {escape_controls(commit.subject)}"
    said = {"created": "created", "removed": "removed", "broken": "could not be resolved any more", "mended": "resolves again"}
    lines = [head]
    if step.kind in said:
        lines.append(f"  {said[step.kind]}" + (f" as {step.name}" if step.name != name else ""))
    for change in step.changes:
        lines += plain.format_change_lines(change, "  ", coloured)
    lines += [f"  ! {escape_controls(str(finding))}" for finding in step.findings]
    return "".join(f"{line}\n" for line in lines)


def _dict(step: HistoryStep) -> dict[str, Any]:
    return {
        **_commit(step.commit),
        "kind": step.kind,
        "preset": step.name,
        "changes": [data.build_change_dict(change) for change in step.changes],
        "findings": [finding_dict(finding) for finding in step.findings],
    }


def _commit(commit: Commit) -> dict[str, Any]:
    return {
        "commit": commit.id,
        "author": commit.author,
        "email": commit.email,
        "date": commit.date,
        "subject": commit.subject,
    }


def last_change(asked: str, store: str | None, config: Config, key: str, tail: Path) -> dict[str, Any] | None:
    """Return the commit that last changed a resolved value, ``{"commit": None, ...}`` where that is not committed yet.

    None where there is nothing to tell: no repository, no git, a preset that has no history.
    """
    from npuprof.history.timeline import Timeline
    from npuprof.store.git import find_repository_top

    workspace = spec.Workspace(store, config.context)
    try:
        if not find_repository_top(os.path.abspath(workspace.store.root)):
            return None
        name, revision = one_preset(workspace, asked, "explain")
        repository = revisions.find_repository(workspace.store)
        tip = repository.resolve_revision(name, revision)[0] if revision else repository.resolve_commit("HEAD")
        if not revision:
            committed = workspace.resolver.resolve_profile(revisions.load_revision(workspace.store, tip).profile(name))
            sides = [
                values.find_value(key, side.settings[key], tail) if key in side.settings else (False, None) for side in (committed, config)
            ]
            if sides[0][0] != sides[1][0] or not values.is_same_typed_value(sides[0][1], sides[1][1]):
                return _NOBODY
        step = next(Timeline(repository, tip, name, config.context).walk_steps(key, tail), None)
    except NpuprofError:
        return None
    return _commit(step.commit) if step else None


def blame_preset(asked: str, store: str | None, cann: str | None, product: str | None, format_: str, path: str | None, color: str) -> int:
    """Print a preset resolved, each value with the commit, author and date that wrote it, and its place."""
    from npuprof.history.blame import blame_config_values
    from npuprof.store.commits import load_commit_headers

    one_of("--format", format_, ("text", "json"))
    one_of("--color", color, ("auto", "always", "never"))
    workspace = spec.Workspace(store, spec.build_context(cann, product))
    repository = revisions.find_repository(workspace.store)
    config = workspace.resolve_spec(asked)
    lines = blame_config_values(repository, config)
    load_commit_headers(repository, {line.commit.id: line.commit for line in lines if line.commit}.values())
    if format_ == "json":
        found = [
            {
                "key": keys.format_key_path(line.key, line.tail),
                "value": line.value,
                **(_commit(line.commit) if line.commit else _NOBODY),
                "origin": data.build_origin_dict(line.origin),
            }
            for line in lines
        ]
        output.write_answer(format_json_answer({"schema": "npuprof.blame/1", "preset": config.name, "values": found}), path)
        return 0
    coloured = path is None and output.is_colour_wanted(color)
    rows = [
        (
            line.commit.id[:7] if line.commit else "-" * 7,
            f"{line.commit.author} {line.commit.date[:10]}" if line.commit else "not committed yet",
            str(line.origin),
            f"{keys.format_key_path(line.key, line.tail)} = {keys.format_toml_value(line.value)}",
        )
        for line in lines
    ]
    widths = [max((len(escape_controls(row[column])) for row in rows), default=0) for column in (1, 2)]
    output.write_answer(
        "".join(
            f"{paint_text(commit, '33', coloured)} {who:<{widths[0]}} {place:<{widths[1]}}  {what}\n"
            for commit, who, place, what in ((row[0], *map(escape_controls, row[1:])) for row in rows)
        ),
        path,
    )
    return 0


def list_versions(store: str | None, format_: str, path: str | None) -> int:
    """Print the released versions of every preset."""
    one_of("--format", format_, ("text", "json"))
    workspace = spec.Workspace(store)
    repository = revisions.find_repository(workspace.store)
    versions = [version for version in repository.load_versions() if is_profile_name(version.name)]
    if format_ == "json":
        rows = [_version(version) for version in versions]
        output.write_answer(format_json_answer({"schema": "npuprof.versions/1", "versions": rows}), path)
        return 0
    if not versions:
        output.write_to_stderr(f"npuprof: nothing in {workspace.store.label} has been released yet")
    widths = [max((len(text) for text in column), default=0) for column in zip(*((v.name, v.number_text) for v in versions), strict=True)]
    output.write_answer(
        "".join(
            f"{v.name:<{widths[0]}}  {v.number_text:<{widths[1]}}  {v.commit[:7]}  {v.date[:10]}  {v.digest[:12] or '-'}\n"
            for v in versions
        ),
        path,
    )
    return 0


def _version(version: revisions.Version) -> dict[str, Any]:
    return {
        "name": version.name,
        "version": version.number_text,
        "tag": f"{version.name}/v{version.number_text}",
        "commit": version.commit,
        "date": version.date,
        "digest": version.digest or None,
    }
