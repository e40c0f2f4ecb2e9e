"""``list``: what presets there are, all or those that meet a condition."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.catalog import condition, values
from npuprof.commands.flags import one_of
from npuprof.document import keys
from npuprof.model import SECTIONS, Finding, NpuprofError, did_you_mean
from npuprof.report import format_findings, format_json_answer, output
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.profile import Profile
    from npuprof.resolve.config import Config
    from npuprof.store import Folder


def list_presets(store: str | None, tree: bool, where: str | None, format_: str, path: str | None) -> int:
    """Print the presets of a store. What cannot be read is told, and makes the exit code 2."""
    one_of("--format", format_, ("text", "json"))
    wanted = _condition(where) if where else None
    workspace = spec.Workspace(store)
    profiles: list[Profile] = []
    rows: list[dict[str, Any]] = []
    problems: dict[tuple[str, ...], Finding] = {}
    strangers = _strangers(wanted) if wanted else []
    for name in workspace.store.names():
        try:
            profile = workspace.profile(name)
            config = workspace.resolver.resolve_profile(profile)
        except NpuprofError as error:
            problems |= {(finding.code, finding.place, finding.message): finding for finding in error.findings}
            continue
        strangers = [key for key in strangers if key not in config.settings]
        if wanted is None or _meets(config, wanted):
            profiles.append(profile)
            rows.append(_row(profile, config))
    if strangers:
        hint = did_you_mean(strangers[0], catalog.record_names(), "npuprof options lists all; variables are env.NAME")
        raise NpuprofError([Finding("NP201", "error", f"--where asks for {strangers[0]!r}, which is no setting", "", hint)])
    if rows and not (tree and format_ == "text"):
        newest = _newest(workspace.store)
        for row in rows:
            row["version"] = newest.get(row["name"])
    if format_ == "json":
        output.write_answer(format_json_answer({"schema": "npuprof.list/1", "presets": rows}), path)
    else:
        output.write_answer(_tree(profiles) if tree else _table(rows), path)
    if problems:
        output.write_to_stderr(format_findings(list(problems.values())).rstrip("\n"))
    return 2 if problems else 0


def _newest(store: Folder) -> dict[str, str]:
    """Return the newest released version of each preset; nothing where there is no repository or none can be read."""
    from npuprof.store import has_release_tags

    if store.label == "builtin:" or not has_release_tags(store.root):
        return {}
    from npuprof.store import revisions

    try:
        return {
            version.name: version.number_text for version in revisions.find_repository(store).load_versions()
        }  # the newest of each comes last
    except NpuprofError:
        return {}


def _row(profile: Profile, config: Config) -> dict[str, Any]:
    return {
        "name": profile.name,
        "extends": list(profile.extends),
        "scenario": config.scenario,
        "version": None,
        "abstract": profile.abstract,
        "description": config.description,
        "digest": config.digest,
    }


def _table(rows: list[dict[str, Any]]) -> str:
    cells = [
        (row["name"], "abstract" if row["abstract"] else row["scenario"] or "-", row["version"] or "-", ", ".join(row["extends"]) or "-")
        for row in rows
    ]
    widths = [max((len(row[column]) for row in cells), default=0) for column in range(3)]
    return "".join(f"{'  '.join(f'{text:<{width}}' for text, width in zip(row[:3], widths, strict=True))}  {row[3]}\n" for row in cells)


def _tree(profiles: list[Profile]) -> str:
    heirs: dict[str, list[str]] = {}
    names = {profile.name for profile in profiles}
    for profile in profiles:
        for parent in profile.extends:
            heirs.setdefault(parent, []).append(profile.name)
    roots = [p.name for p in profiles if not any(parent in names for parent in p.extends)]
    lines: list[str] = []
    waiting = [(name, "", "") for name in reversed(roots)]
    while waiting:
        name, lead, below = waiting.pop()
        lines.append(f"{lead}{name}\n")
        children = heirs.get(name, [])
        for place in range(len(children) - 1, -1, -1):
            last = place == len(children) - 1
            waiting.append((children[place], below + ("`-- " if last else "|-- "), below + ("    " if last else "|   ")))
    return "".join(lines)


def _condition(text: str) -> Any:
    try:
        return condition.parse_condition(text)
    except (ValueError, SyntaxError):
        why = "Option names stand for their values: ==, !=, <, >, in (...), is set, is unset, and, or, not."
        raise NpuprofError(
            [Finding("NP013", "error", f"{text!r} is not a condition", why, "write 'precision_mode_v2 == \"fp16\"'")]
        ) from None


def _strangers(wanted: Any) -> list[str]:
    """Return the options a condition names that the catalogue does not know: presets may hold some nevertheless."""
    heads = [path[0] for path in condition.collect_condition_paths(wanted)]
    return [
        keys.format_full_key("options", head) for head in heads if head not in (*SECTIONS, "scenario") and catalog.find_option(head) is None
    ]


def _meets(config: Config, wanted: Any) -> bool:
    return condition.evaluate_condition(wanted, lambda path: _lookup(config, path)) is True


def _lookup(config: Config, path: tuple[str, ...]) -> tuple[bool | None, Any]:
    if path[0] == "scenario" and len(path) == 1:
        return config.scenario is not None, config.scenario
    key = keys.format_full_key(path[0], path[1]) if path[0] in SECTIONS and len(path) > 1 else path[0]
    tail = path[2:] if key != path[0] else path[1:]
    return values.find_value(key, config.settings[key], tail) if key in config.settings else (False, None)
