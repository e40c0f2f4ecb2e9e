"""``explain``: who set a value, whom it overruled, what it means, and which rules read it."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.catalog import values
from npuprof.catalog.sidecars import SIDECARS, describe_mixlist_outcome, resolve_mixlist_outcomes
from npuprof.commands import origins
from npuprof.commands.flags import one_of
from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.model import Finding, NpuprofError, Origin, Path, did_you_mean
from npuprof.report import escape_controls, format_json_answer, output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.commands.show import Asked
    from npuprof.resolve.config import Config


def explain_key(asked: Asked, key: str, format_: str, path: str | None) -> int:
    """Print who set a value, whom it overruled, its default and meaning, and the rules that read it."""
    one_of("--format", format_, ("text", "json"))
    config = asked.config()
    parsed = keys.parse_key_path(key)
    if parsed is None:
        raise NpuprofError([Finding("NP009", "error", f"{key!r} is not a key", "", "write the option's name, or section.name")])
    full, tail = parsed
    section, name = keys.split_section_and_name(full)
    found, value = values.find_value(full, config.settings[full], tail) if full in config.settings else (False, None)
    known = catalog.find_record_texts(section, name)
    if not found and not known and full not in config.settings and not config.history(full):
        names = (*config.settings, *catalog.record_names(), *catalog.record_names("env"))
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
    losers = origins.losers(config, full, tail) if config.history(full) else []
    events = [event for event in config.history(full) if event.step.op == "unset" and not origins.apart(event.step.tail, tail)]
    ruled = [rule for rule in catalog.load_rules() if full in rule.reads]
    last = _last_change(asked, config, full, tail)
    if format_ == "json":
        answer = {
            "schema": "npuprof.explain/1",
            "preset": config.name,
            "key": keys.format_key_path(full, tail),
            "set": found,
            "value": value,
            "winners": [origins.as_dict(origin) for origin in origins.authors_at(config, full, tail)],
            "overruled": [{"value": lost, **origins.as_dict(origin)} for lost, origin in losers],
            "unset_by": [origins.as_dict(event.origin) for event in events],
            "default": _default_of(config, section, name),
            "rules": [rule.code for rule in ruled],
            "last_change": last,
            "summary": known.get("summary"),
            **({"outcomes": _moves(full, value)} if _moves(full, value) else {}),
        }
        output.write_answer(format_json_answer(answer), path)
        return 0
    state = f"= {keys.format_toml_value(value)}" if found else "is not set"
    lines = [f"{config.name}: {keys.format_key_path(full, tail)} {state}"]
    lines += _winners(config, full, tail)
    lines += [f"  overruled    {format_short_value(lost)} of {_who(origin)}" for lost, origin in losers]
    lines += [f"  cleared by   {_who(event.origin)}" for event in events]
    default = _default_of(config, section, name)
    if default is not None:
        lines.append(f"  default      {format_short_value(default)}")
    if known:
        lines.append(f"  meaning      {known['summary']} {known.get('doc', '')}".rstrip())
        meaning = known.get("value_docs", {}).get(str(value)) if not isinstance(value, (dict, list)) else None
        if meaning:
            lines.append(f"  this value   {meaning}")
    lines += [f"  {operator:<12} {describe_mixlist_outcome(ends)}" for operator, ends in _moves(full, value).items()]
    lines += [f"  read by      {rule.code}: {rule.what}" for rule in ruled]
    if last:
        said = f"{last['commit'][:7]} {last['date'][:10]} {last['author']}: {last['subject']}" if last["commit"] else "not committed yet"
        lines.append(f"  last change  {said}")
    output.write_answer("\n".join(map(escape_controls, lines)) + "\n", path)
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
    return resolve_mixlist_outcomes(value) if isinstance(value, dict) and not side.faults(value) else {}


def _who(origin: Origin) -> str:
    layer = "" if origin.layer == "values" else f", {origin.layer}"
    return f"{origin.profile} ({origin}{layer})" if origin.profile != origin.file else str(origin)


def _winners(config: Config, key: str, tail: Path) -> list[str]:
    found, value = values.find_value(key, config.traced_value(key), tail) if key in config.settings else (False, None)
    if not found:
        return []
    if isinstance(value, values.Leaf):
        return [f"  set by       {_who(value.origin)}"]
    authors = origins.authors(value)
    if len({str(origin) for origin in authors}) <= 1:
        origin = authors[0] if authors else config.origin(key, tail)
        return [f"  set by       {_who(origin)}"] if origin else []
    return [
        f"  set by       {format_short_value(leaf.value)} at {keys.format_key_path('', path).lstrip('.') or 'itself'}: {_who(leaf.origin)}"
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
        record: Any = {"env": catalog.find_variable, "estimator": catalog.find_argument, "atc": catalog.find_flag}[section](name)
        return record.default if record else None
    option = catalog.find_option(name)
    family = products.find_product_family(config.context.product) if config.context.product else None
    return View(config).resolve_default(option, family) if option else None
