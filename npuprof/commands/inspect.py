"""``list``, ``show``, ``explain``: what presets there are, what is in force, and why."""

from __future__ import annotations

from typing import Any, NamedTuple

from npuprof import catalog, condition, keys, output, spec, values
from npuprof.commands.flags import one_of
from npuprof.errors import NpuprofError
from npuprof.keys import shown
from npuprof.model import SECTIONS, Finding, Origin, Path
from npuprof.nearest import did_you_mean
from npuprof.renderers.plain import as_dict
from npuprof.report import dump, findings_text, paint, visible
from npuprof.sidecars import SIDECARS, mixlist_outcomes, outcome_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuprof.config import Config
    from npuprof.model import Step
    from npuprof.profile import Profile
    from npuprof.store import Folder


class Asked(NamedTuple):
    """A spec with everything that bears on its resolution, as the user wrote it."""

    spec: str
    store: str | None
    cann: str | None
    product: str | None
    mixins: Sequence[str]
    set: Sequence[str]
    unset: Sequence[str]

    def config(self) -> Config:
        """Return the spec resolved. Raises NpuprofError."""
        workspace = spec.Workspace(self.store, spec.context(self.cann, self.product))
        return workspace.config(self.spec, self.mixins, spec.assignments(self.set, self.unset))


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
            config = workspace.resolver.config(profile)
        except NpuprofError as error:
            problems |= {(finding.code, finding.place, finding.message): finding for finding in error.findings}
            continue
        strangers = [key for key in strangers if key not in config.settings]
        if wanted is None or _meets(config, wanted):
            profiles.append(profile)
            rows.append(_row(profile, config))
    if strangers:
        hint = did_you_mean(strangers[0], catalog.names(), "npuprof options lists all; variables are env.NAME")
        raise NpuprofError([Finding("NP201", "error", f"--where asks for {strangers[0]!r}, which is no setting", "", hint)])
    if rows and not (tree and format_ == "text"):
        newest = _newest(workspace.store)
        for row in rows:
            row["version"] = newest.get(row["name"])
    if format_ == "json":
        output.answer(dump({"schema": "npuprof.list/1", "presets": rows}), path)
    else:
        output.answer(_tree(profiles) if tree else _table(rows), path)
    if problems:
        output.talk(findings_text(list(problems.values())).rstrip("\n"))
    return 2 if problems else 0


def _newest(store: Folder) -> dict[str, str]:
    """Return the newest released version of each preset; nothing where there is no repository or none can be read."""
    from npuprof.store import tagged

    if store.label == "builtin:" or not tagged(store.root):
        return {}
    from npuprof import history

    try:
        return {version.name: version.text for version in history.of(store).versions()}  # the newest of each comes last
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
        return condition.parse(text)
    except (ValueError, SyntaxError):
        why = "Option names stand for their values: ==, !=, <, >, in (...), is set, is unset, and, or, not."
        raise NpuprofError(
            [Finding("NP013", "error", f"{text!r} is not a condition", why, "write 'precision_mode_v2 == \"fp16\"'")]
        ) from None


def _strangers(wanted: Any) -> list[str]:
    """Return the options a condition names that the catalogue does not know: presets may hold some nevertheless."""
    heads = [path[0] for path in condition.paths(wanted)]
    return [keys.full("options", head) for head in heads if head not in (*SECTIONS, "scenario") and catalog.option(head) is None]


def _meets(config: Config, wanted: Any) -> bool:
    return condition.holds(wanted, lambda path: _lookup(config, path)) is True


def _lookup(config: Config, path: tuple[str, ...]) -> tuple[bool | None, Any]:
    if path[0] == "scenario" and len(path) == 1:
        return config.scenario is not None, config.scenario
    key = keys.full(path[0], path[1]) if path[0] in SECTIONS and len(path) > 1 else path[0]
    tail = path[2:] if key != path[0] else path[1:]
    return values.find(key, config.settings[key], tail) if key in config.settings else (False, None)


def show_preset(asked: Asked, origin: bool, format_: str, path: str | None, color: str) -> int:
    """Print a preset resolved, with the origins of its values if wanted."""
    one_of("--format", format_, ("toml", "json"))
    one_of("--color", color, ("auto", "always", "never"))
    config = asked.config()
    if format_ == "json":
        found = as_dict(config)
        if origin:
            found["origins"] = {key: _origins(config, key) for key in config.ordered()}
        output.answer(dump(found), path)
        return 0
    coloured = path is None and output.colour(color)
    lines = ["[profile]"]
    head = {"description": config.description, "scenario": config.scenario, "cann": config.cann, "products": list(config.products)}
    lines += [f"{name} = {keys.toml(value)}" for name, value in head.items() if value]
    for section in SECTIONS:
        found = config.section(section)
        if found:
            lines += ["", f"[{section}]"]
        for name, value in found.items():
            key = keys.full(section, name)
            if origin:
                lines += _lines(config, key, keys.segment(name), config.leaves(key), (), coloured)
            else:
                lines.append(f"{keys.segment(name)} = {keys.toml(value)}")
    output.answer("\n".join(lines) + "\n", path)
    return 0


def _lines(config: Config, key: str, name: str, value: Any, tail: Path, coloured: bool) -> list[str]:
    """Return the lines of one value with the origin of each leaf and list element as a comment."""
    if isinstance(value, dict):
        inner = [_lines(config, key, f"{name}.{keys.segment(part)}", item, (*tail, part), coloured) for part, item in value.items()]
        return [line for lines in inner for line in lines] or [f"{name} = {{}}"]
    if isinstance(value, list) and len({str(origin) for origin in _authors(value)}) > 1:
        lines = [f"{name} = ["]
        lines += [f"    {keys.toml(_plain(item))},{_comment(str(_authors(item)[0]), coloured)}" for item in value]
        return [*lines, f"]{_comment(_over(config, key, tail), coloured)}"]
    authors = _authors(value)
    by = str(authors[0]) if authors else str(config.origin(key, tail))
    over = _over(config, key, tail)
    return [f"{name} = {keys.toml(_plain(value))}{_comment(by + (f', {over}' if over else ''), coloured)}"]


def _comment(text: str, coloured: bool) -> str:
    return paint(f"  # {visible(text)}", "2", coloured) if text else ""


def _authors(value: Any) -> list[Origin]:
    if isinstance(value, values.Leaf):
        return [value.origin]
    items = value.values() if isinstance(value, dict) else value
    return [origin for item in items for origin in _authors(item)]


def _plain(value: Any) -> Any:
    if isinstance(value, values.Leaf):
        return value.value
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value]


def _over(config: Config, key: str, tail: Path) -> str:
    losers = _losers(config, key, tail)
    return "over " + ", ".join(f"{shown(value)} ({origin})" for value, origin in losers) if losers else ""


def _losers(config: Config, key: str, tail: Path) -> list[tuple[Any, Origin]]:
    """Return what was written at a place and is no longer in force, the last first."""
    winners = {(origin.revision, origin.file, origin.path) for origin in _authors_at(config, key, tail)}
    lost = []
    history = config.history(key)
    for event, place in reversed([*zip(history, _places(key, [event.step for event in history], tail), strict=True)]):
        found, value = values.find(key, event.step.value, place) if place is not None else (False, None)
        if event.step.op == "unset" or place is None or not found:
            continue
        written = isinstance(event.step.value, str)  # all that stands in a text has the place of the text
        origin = event.origin if written else event.origin._replace(path=(*event.origin.path, *place))
        inside = {(origin.revision, origin.file, path) for path in ([origin.path] if written else _paths(value, origin.path))}
        if not inside & winners:
            lost.append((value, origin))
    return lost


def _places(key: str, steps: list[Step], tail: Path) -> list[Path | None]:
    """Return where in the value of each step that stands which lands at a place of the whole; None where nothing does.

    An appended element lands behind those that are there already.
    """
    depth = next((depth for depth, part in enumerate(tail) if isinstance(part, int)), None)
    if depth is None:
        return [tail for _ in steps]
    found: list[Path | None] = []
    value: Any = None
    for step in steps:
        if step.op == "append":
            before = values.find(key, value, tail[:depth])[1]
            index = tail[depth] - (len(before) if isinstance(before, list) else 0)
            found.append((*tail[:depth], index, *tail[depth + 1 :]) if index >= 0 else None)
            value = values.append(key, value, step.value)
        else:
            found.append(tail)
            value = values.remove(key, value, step.tail) if step.op == "unset" else values.merge(key, value, step.value)
    return found


def _apart(one: Path, other: Path) -> bool:
    """Return whether neither of two places holds the other."""
    return any(left != right for left, right in zip(one, other, strict=False))


def _authors_at(config: Config, key: str, tail: Path) -> list[Origin]:
    found, value = values.find(key, config.leaves(key), tail)
    return _authors(value) if found and value is not None else []


def _paths(value: Any, path: Path) -> list[Path]:
    if isinstance(value, dict):
        return [path, *(inner for name, item in value.items() for inner in _paths(item, (*path, name)))]
    if isinstance(value, list):
        return [path, *(inner for index, item in enumerate(value) for inner in _paths(item, (*path, index)))]
    return [path]


def _origins(config: Config, key: str) -> list[dict[str, Any]]:
    return [
        {
            "profile": origin.profile,
            "path": origin.file,
            "line": origin.line or None,
            "column": origin.column or None,
            "revision": origin.revision,
            "layer": origin.layer,
        }
        for origin in config.origins(key)
    ]


def explain_key(asked: Asked, key: str, format_: str, path: str | None) -> int:
    """Print who set a value, whom it overruled, its default and meaning, and the rules that read it."""
    one_of("--format", format_, ("text", "json"))
    config = asked.config()
    parsed = keys.place(key)
    if parsed is None:
        raise NpuprofError([Finding("NP009", "error", f"{key!r} is not a key", "", "write the option's name, or section.name")])
    full, tail = parsed
    section, name = keys.section_and_name(full)
    found, value = values.find(full, config.settings[full], tail) if full in config.settings else (False, None)
    known = catalog.text(section, name)
    if not found and not known and full not in config.settings and not config.history(full):
        names = (*config.settings, *catalog.names(), *catalog.names("env"))
        raise NpuprofError(
            [
                Finding(
                    "NP201",
                    "error",
                    f"{config.name} does not set {key!r}, and the catalogue does not know it",
                    "",
                    did_you_mean(key, names),
                )
            ]
        )
    losers = _losers(config, full, tail) if config.history(full) else []
    events = [event for event in config.history(full) if event.step.op == "unset" and not _apart(event.step.tail, tail)]
    ruled = [rule for rule in catalog.rules() if full in rule.reads]
    last = _last_change(asked, config, full, tail)
    if format_ == "json":
        answer = {
            "schema": "npuprof.explain/1",
            "preset": config.name,
            "key": keys.show(full, tail),
            "set": found,
            "value": value,
            "winners": [_place(origin) for origin in _authors_at(config, full, tail)],
            "overruled": [{"value": lost, **_place(origin)} for lost, origin in losers],
            "unset_by": [_place(event.origin) for event in events],
            "default": _default_of(config, section, name),
            "rules": [rule.code for rule in ruled],
            "last_change": last,
            "summary": known.get("summary"),
            **({"outcomes": _moves(full, value)} if _moves(full, value) else {}),
        }
        output.answer(dump(answer), path)
        return 0
    state = f"= {keys.toml(value)}" if found else "is not set"
    lines = [f"{config.name}: {keys.show(full, tail)} {state}"]
    lines += _winners(config, full, tail)
    lines += [f"  overruled    {shown(lost)} of {_who(origin)}" for lost, origin in losers]
    lines += [f"  cleared by   {_who(event.origin)}" for event in events]
    default = _default_of(config, section, name)
    if default is not None:
        lines.append(f"  default      {shown(default)}")
    if known:
        lines.append(f"  meaning      {known['summary']} {known.get('doc', '')}".rstrip())
        meaning = known.get("value_docs", {}).get(str(value)) if not isinstance(value, (dict, list)) else None
        if meaning:
            lines.append(f"  this value   {meaning}")
    lines += [f"  {operator:<12} {outcome_words(ends)}" for operator, ends in _moves(full, value).items()]
    lines += [f"  read by      {rule.code}: {rule.what}" for rule in ruled]
    if last:
        said = f"{last['commit'][:7]} {last['date'][:10]} {last['author']}: {last['subject']}" if last["commit"] else "not committed yet"
        lines.append(f"  last change  {said}")
    output.answer("\n".join(map(visible, lines)) + "\n", path)
    return 0


def _last_change(asked: Asked, config: Config, key: str, tail: Path) -> dict[str, Any] | None:
    """Return the commit that last changed a value, where the preset is one of a store under git."""
    if asked.mixins or asked.set or asked.unset or asked.store == "builtin:":
        return None
    from npuprof.commands.log import last_change

    return last_change(asked.spec, asked.store, config, key, tail)


def _moves(key: str, value: Any) -> dict[str, dict[str, str]]:
    """Return where the operators of a mixed-precision list end, by the list they are in by default."""
    if key != "modify_mixlist":
        return {}
    side = SIDECARS["mixlist"]
    if isinstance(value, str):  # the file, where it is on this machine
        try:
            with open(value, encoding="utf-8") as file:
                value = side.parse(file.read())
        except (OSError, ValueError):
            return {}
    return mixlist_outcomes(value) if isinstance(value, dict) and not side.faults(value) else {}


def _place(origin: Origin) -> dict[str, Any]:
    return {
        "profile": origin.profile,
        "path": origin.file,
        "line": origin.line or None,
        "column": origin.column or None,
        "layer": origin.layer,
        "revision": origin.revision,
    }


def _who(origin: Origin) -> str:
    layer = "" if origin.layer == "values" else f", {origin.layer}"
    return f"{origin.profile} ({origin}{layer})" if origin.profile != origin.file else str(origin)


def _winners(config: Config, key: str, tail: Path) -> list[str]:
    found, value = values.find(key, config.leaves(key), tail) if key in config.settings else (False, None)
    if not found:
        return []
    if isinstance(value, values.Leaf):
        return [f"  set by       {_who(value.origin)}"]
    authors = _authors(value)
    if len({str(origin) for origin in authors}) <= 1:
        origin = authors[0] if authors else config.origin(key, tail)
        return [f"  set by       {_who(origin)}"] if origin else []
    return [
        f"  set by       {shown(leaf.value)} at {keys.show('', path).lstrip('.') or 'itself'}: {_who(leaf.origin)}"
        for path, leaf in _walk(value, ())
    ]


def _walk(value: Any, path: Path) -> list[tuple[Path, values.Leaf]]:
    if isinstance(value, values.Leaf):
        return [(path, value)]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [pair for name, item in items for pair in _walk(item, (*path, name))]


def _default_of(config: Config, section: str, name: str) -> Any:
    from npuprof.catalog import products
    from npuprof.checks.view import View

    if section != "options":
        record: Any = {"env": catalog.variable, "estimator": catalog.argument, "atc": catalog.flag}[section](name)
        return record.default if record else None
    option = catalog.option(name)
    family = products.family(config.context.product) if config.context.product else None
    return View(config).default(option, family) if option else None
