"""``log``, ``blame`` and ``list --versions``: the past of presets."""

from __future__ import annotations

import os
from typing import Any

from npuprof.catalog import values
from npuprof.commands.flags import one_of
from npuprof.compare import data, plain
from npuprof.document import keys
from npuprof.model import Finding, NpuprofError, Path
from npuprof.report import as_dict as finding_dict
from npuprof.report import dump, output, paint, visible
from npuprof.store import is_name, revisions, spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.history.timeline import Step
    from npuprof.resolve.config import Config
    from npuprof.store.commits import Commit

_NOBODY: dict[str, Any] = {"commit": None, "author": None, "email": None, "date": None, "subject": None}


def log_preset(
    name: str, key: str | None, store: str | None, cann: str | None, product: str | None,
    number: int | None, format_: str, path: str | None, color: str,
) -> int:  # fmt: skip
    """Print the commits that changed what a preset resolves to, or one value of it, newest first."""
    from npuprof.history.timeline import Timeline
    from npuprof.store.commits import load

    one_of("--format", format_, ("text", "json"))
    one_of("--color", color, ("auto", "always", "never"))
    full, tail = _key(key)
    workspace = spec.Workspace(store, spec.context(cann, product))
    name, revision = one_preset(workspace, name, "log")
    repository = revisions.of(workspace.store)
    tip = repository.find(name, revision)[0] if revision else repository.commit("HEAD")
    repository = revisions.at_repository(repository, tip).repository  # the store may have been another folder then
    steps: list[Step] = []
    timeline = Timeline(repository, tip, name, workspace.resolver.context)
    for step in timeline.steps(full, tail):
        steps.append(step)
        if number is not None and len(steps) >= number:
            break
    if not steps and name not in repository.files(tip):
        raise NpuprofError([_never(repository, name, tip)])
    load(repository, (step.commit for step in steps))
    shallow = repository.shallow() if steps and number is None else False
    if format_ == "json":
        found = {"schema": "npuprof.log/1", "preset": name, "key": key, "shallow": shallow, "commits": [_dict(step) for step in steps]}
        output.answer(dump(found), path)
    else:
        coloured = path is None and output.colour(color)
        output.answer("".join(_text(step, name, coloured) for step in steps), path)
        if not steps:
            output.talk(f"npuprof: {name} has never set {key}" if key else f"npuprof: no commit holds {name}")
    if shallow:
        output.talk("npuprof: this clone is shallow, so its oldest commit seems to have made everything; git fetch --unshallow")
    return 0


def _key(key: str | None) -> tuple[str, Path]:
    if key is None:
        return "", ()
    parsed = keys.parse(key)
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

    known = sorted(repository.files(tip))
    return Finding(
        "NP023", "error", f"no commit has a profile {name!r}", "", did_you_mean(name, known, "commit it first; npuprof list shows all")
    )


def _text(step: Step, name: str, coloured: bool) -> str:
    commit = step.commit
    head = f"{paint(commit.id[:7], '33', coloured)} {commit.date[:10]} {visible(commit.author)}  {visible(commit.subject)}"
    said = {"created": "created", "removed": "removed", "broken": "could not be resolved any more", "mended": "resolves again"}
    lines = [head]
    if step.kind in said:
        lines.append(f"  {said[step.kind]}" + (f" as {step.name}" if step.name != name else ""))
    for change in step.changes:
        lines += plain.lines(change, "  ", coloured)
    lines += [f"  ! {visible(str(finding))}" for finding in step.findings]
    return "".join(f"{line}\n" for line in lines)


def _dict(step: Step) -> dict[str, Any]:
    return {
        **_commit(step.commit),
        "kind": step.kind,
        "preset": step.name,
        "changes": [data.change_dict(change) for change in step.changes],
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
    from npuprof.store.git import top

    workspace = spec.Workspace(store, config.context)
    try:
        if not top(os.path.abspath(workspace.store.root)):
            return None
        name, revision = one_preset(workspace, asked, "explain")
        repository = revisions.of(workspace.store)
        tip = repository.find(name, revision)[0] if revision else repository.commit("HEAD")
        if not revision:
            committed = workspace.resolver.config(revisions.at(workspace.store, tip).profile(name))
            sides = [values.find(key, side.settings[key], tail) if key in side.settings else (False, None) for side in (committed, config)]
            if sides[0][0] != sides[1][0] or not values.same(sides[0][1], sides[1][1]):
                return _NOBODY
        step = next(Timeline(repository, tip, name, config.context).steps(key, tail), None)
    except NpuprofError:
        return None
    return _commit(step.commit) if step else None


def blame_preset(asked: str, store: str | None, cann: str | None, product: str | None, format_: str, path: str | None, color: str) -> int:
    """Print a preset resolved, each value with the commit, author and date that wrote it, and its place."""
    from npuprof.history.blame import blame
    from npuprof.store.commits import load

    one_of("--format", format_, ("text", "json"))
    one_of("--color", color, ("auto", "always", "never"))
    workspace = spec.Workspace(store, spec.context(cann, product))
    repository = revisions.of(workspace.store)
    config = workspace.config(asked)
    lines = blame(repository, config)
    load(repository, {line.commit.id: line.commit for line in lines if line.commit}.values())
    if format_ == "json":
        found = [
            {
                "key": keys.show(line.key, line.tail),
                "value": line.value,
                **(_commit(line.commit) if line.commit else _NOBODY),
                "origin": data.origin_dict(line.origin),
            }
            for line in lines
        ]
        output.answer(dump({"schema": "npuprof.blame/1", "preset": config.name, "values": found}), path)
        return 0
    coloured = path is None and output.colour(color)
    rows = [
        (
            line.commit.id[:7] if line.commit else "-" * 7,
            f"{line.commit.author} {line.commit.date[:10]}" if line.commit else "not committed yet",
            str(line.origin),
            f"{keys.show(line.key, line.tail)} = {keys.toml(line.value)}",
        )
        for line in lines
    ]
    widths = [max((len(visible(row[column])) for row in rows), default=0) for column in (1, 2)]
    output.answer(
        "".join(
            f"{paint(commit, '33', coloured)} {visible(who):<{widths[0]}} {visible(place):<{widths[1]}}  {visible(what)}\n"
            for commit, who, place, what in rows
        ),
        path,
    )
    return 0


def list_versions(store: str | None, format_: str, path: str | None) -> int:
    """Print the released versions of every preset."""
    one_of("--format", format_, ("text", "json"))
    workspace = spec.Workspace(store)
    repository = revisions.of(workspace.store)
    versions = [version for version in repository.versions() if is_name(version.name)]
    if format_ == "json":
        rows = [_version(version) for version in versions]
        output.answer(dump({"schema": "npuprof.versions/1", "versions": rows}), path)
        return 0
    if not versions:
        output.talk(f"npuprof: nothing in {workspace.store.label} has been released yet")
    widths = [max((len(text) for text in column), default=0) for column in zip(*((v.name, v.text) for v in versions), strict=True)]
    output.answer(
        "".join(f"{v.name:<{widths[0]}}  {v.text:<{widths[1]}}  {v.commit[:7]}  {v.date[:10]}  {v.digest[:12] or '-'}\n" for v in versions),
        path,
    )
    return 0


def _version(version: revisions.Version) -> dict[str, Any]:
    return {
        "name": version.name,
        "version": version.text,
        "tag": f"{version.name}/v{version.text}",
        "commit": version.commit,
        "date": version.date,
        "digest": version.digest or None,
    }
