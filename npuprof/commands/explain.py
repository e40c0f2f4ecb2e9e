"""``explain``: print the origin of a value, the values it overrides, its meaning, and the rules that read it."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof import catalog
from npuprof.catalog import Rule, releases, values
from npuprof.commands.framework import argument
from npuprof.commands.framework.parameters import (
    COLOR,
    NO_PERSONAL,
    OUTPUT,
    SPEC,
    ResolvingVerb,
    formats,
)
from npuprof.commands.resolving import resolve_shown
from npuprof.document import keys
from npuprof.document.keys import format_toml_value
from npuprof.document.profile import PROFILE_KEYS
from npuprof.model import FRAMEWORK_SECTIONS, Origin, Path, build_error, did_you_mean
from npuprof.report import Answer
from npuprof.report.text import escape_controls, paint_text
from npuprof.resolve import origins
from npuprof.resolve.config import Config
from npuprof.resolve.lineages import is_personal
from npuprof.system import lazy_module
from npuprof.system.files import read_plain_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from npuprof.catalog import products
    from npuprof.document.policy import TeamRule
else:
    products = lazy_module("npuprof.catalog.products")


class Explain(ResolvingVerb):
    """Explain one value and where it comes from.

    Prints the effective value, the values it overrides, its default and meaning, the rules that read it, and its last change.
    """

    group = "presets"
    prose = True

    spec: str = SPEC
    key: str = argument("KEY", "Option, env.NAME, profile.NAME, or a path inside a value")
    format: str = formats("text", "json")
    no_personal: bool = NO_PERSONAL
    output: str | None = OUTPUT
    color: str = COLOR

    def run(self) -> Answer:
        """Return the origin of a value, the overridden values, its default, meaning and rules. Raises NpuprofError."""
        config = resolve_shown(self, not self.no_personal)
        own = self.key.removeprefix("profile.")
        if (own in PROFILE_KEYS or own in config.claims) and own not in config.settings:
            return _explain_profile_key(config, own, self.coloured)
        key, tail = _parse_key(config, self.key)
        place = config, key, tail, self._find_last_change(config, key, tail)
        return Answer({"text": lambda: _format_explanation(self.coloured, *place), "json": lambda: _build_fields(*place)})

    def _find_last_change(self, config: Config, key: str, tail: Path) -> dict[str, Any] | None:
        """Return the commit that last changed a value, if the store is in a git repository."""
        if self.mixin or self.set_ or self.unset or self.store == "builtin:" or any(map(is_personal, config.lineage)):
            return None
        from npuprof.history.last import find_last_change

        return find_last_change(self.spec, self.store, config, key, tail)


def _explain_profile_key(config: Config, name: str, coloured: bool) -> Answer:
    """Return the origin of a ``[profile]`` key: for inherited keys the nearest ancestor, else the preset itself."""
    value, origin = config.find_profile_value(name), config.find_profile_origin(name)
    if value is None and config.lineage and name in config.lineage[-1].table:
        value, origin = config.lineage[-1].table[name], config.lineage[-1].origin("profile", name)
    meaning = PROFILE_KEYS[name.partition(".")[0]].help
    state = "is not set" if value is None else f"= {keys.format_toml_value(value)}"
    rules = _list_team_rules(config, name)
    rows = [("set by", _describe_author(origin))] if origin else []
    fields = {
        "schema": "npuprof.explain/1", "preset": config.name, "key": f"profile.{name}", "set": value is not None, "value": value,
        "winners": [origins.build_origin_dict(origin)] if origin else [], "rules": [rule.code for rule in rules], "summary": meaning,
    }  # fmt: skip
    rows += [("meaning", meaning), *(("read by", _describe_team_rule(rule)) for rule in rules)]
    return Answer({"text": lambda: _format_rows(f"{config.name}: profile.{name} {state}", rows, coloured), "json": lambda: fields})


def _parse_key(config: Config, text: str) -> tuple[str, Path]:
    """Return a key and the path below it. Raises NpuprofError for an invalid or unknown key."""
    parsed = keys.parse_key_path(text)
    if parsed is None:
        from npuprof.store import one_time

        raise build_error("NP009", f"{text!r} is not a key", "", one_time.suggest_bare_key(text))
    if elsewhere := catalog.find_key_elsewhere(parsed[0], config.settings):
        parsed = elsewhere, parsed[1]
    known = catalog.find_record_texts(*catalog.find_record_place(*parsed))
    if not known and parsed[0] not in config.settings and not config.history(parsed[0]):
        section, name = keys.split_section_and_name(parsed[0])
        names = (*config.settings, *catalog.record_names(), *catalog.record_names("env"))
        if section in FRAMEWORK_SECTIONS:
            name, names = keys.format_key_path(name, parsed[1]), catalog.record_names(section)
        what = f"{config.name} does not set {text!r}, and the catalogue does not know it"
        raise build_error("NP201", what, "", did_you_mean(name, names, "npuprof options lists all"))
    return parsed


def _find_value(config: Config, key: str, tail: Path) -> tuple[bool, Any]:
    """Return whether a path is set, and its value."""
    return values.find_value(key, config.settings[key], tail) if key in config.settings else (False, None)


def _find_overruled(config: Config, key: str, tail: Path) -> list[tuple[Any, Origin]]:
    return origins.find_overruled(config, key, tail) if config.history(key) else []


def _list_clearing(config: Config, key: str, tail: Path) -> list[Origin]:
    """Return the origins of the steps that cleared a path."""
    events = config.history(key)
    return [event.origin for event in events if event.step.op == "unset" and not origins.are_apart(event.step.tail, tail)]


def _list_rules(key: str) -> list[Rule]:
    return [catalog.find_rule(code) for code, reads in catalog.list_rule_reads().items() if key in reads]


def _list_team_rules(config: Config, key: str) -> list[TeamRule]:
    """Return the team rules that cover a preset and read a key. Raises NpuprofError if npuprof.toml is invalid."""
    policy = config.policy if config.lineage else None
    if policy is None or not policy.rules:
        return []
    from npuprof.catalog import written_condition

    return [rule for rule in policy.rules if key in written_condition.list_team_reads(rule, with_facts=True)]


def _describe_team_rule(rule: TeamRule) -> str:
    return f"{rule.code}: {rule.title} ({rule.origin})" if rule.origin else f"{rule.code}: {rule.title}"


def _build_fields(config: Config, key: str, tail: Path, last: dict[str, Any] | None) -> dict[str, Any]:
    is_set, value = _find_value(config, key, tail)
    outcomes = _find_mixlist_outcomes(key, value)
    return {
        "schema": "npuprof.explain/1",
        "preset": config.name,
        "key": keys.format_key_path(key, tail),
        "set": is_set,
        "value": value,
        "winners": [origins.build_origin_dict(origin) for origin in origins.find_authors_at(config, key, tail)],
        "overruled": [{"value": lost, **origins.build_origin_dict(origin)} for lost, origin in _find_overruled(config, key, tail)],
        "unset_by": [origins.build_origin_dict(origin) for origin in _list_clearing(config, key, tail)],
        "default": _find_default(config, key, tail),
        "rules": [*(rule.code for rule in _list_rules(key)), *(rule.code for rule in _list_team_rules(config, key))],
        "last_change": last,
        "summary": catalog.find_record_texts(*catalog.find_record_place(key, tail)).get("summary"),
        **({"counterparts": list(setting.counterparts)} if (setting := _find_setting(key, tail)) else {}),
        **({"outcomes": outcomes} if outcomes else {}),
    }


def _format_explanation(coloured: bool, config: Config, key: str, tail: Path, last: dict[str, Any] | None) -> str:
    is_set, value = _find_value(config, key, tail)
    state = f"= {format_toml_value(value)}" if is_set else "is not set"
    rows = [("set by", winner) for winner in _describe_winners(config, key, tail)]
    rows += [("overridden", f"{format_toml_value(lost)} of {_describe_author(by)}") for lost, by in _find_overruled(config, key, tail)]
    rows += [("cleared by", _describe_author(origin)) for origin in _list_clearing(config, key, tail)]
    default = _find_default(config, key, tail)
    rows += [("default", format_toml_value(default))] if default is not None else []
    rows += _describe_meaning(key, tail, value)
    rows += _describe_setting(config, key, tail)
    if outcomes := _find_mixlist_outcomes(key, value):
        from npuprof.catalog.sidecars import describe_mixlist_outcome

        rows += [(operator, describe_mixlist_outcome(ends)) for operator, ends in outcomes.items()]
    rows += [("read by", f"{rule.code}: {rule.what}") for rule in _list_rules(key)]
    rows += [("read by", _describe_team_rule(rule)) for rule in _list_team_rules(config, key)]
    rows += [("last change", _describe_commit(last))] if last else []
    return _format_rows(f"{config.name}: {keys.format_key_path(key, tail)} {state}", rows, coloured)


def _format_rows(title: str, rows: Sequence[tuple[str, str]], coloured: bool) -> str:
    """Return a title and rows of a label and a text, as lines."""
    lines = [f"  {paint_text(escape_controls(f'{label:<12}'), '2', coloured)} {escape_controls(text)}" for label, text in rows]
    return "\n".join([paint_text(escape_controls(title), "1", coloured), *lines, ""])


def _find_setting(key: str, tail: Path) -> catalog.Setting | None:
    section, name = catalog.find_record_place(key, tail)
    return catalog.find_setting(section, name) if section in FRAMEWORK_SECTIONS else None


def _describe_setting(config: Config, key: str, tail: Path) -> list[tuple[str, str]]:
    """Return the counterparts of a framework setting with their values in the preset, and how the framework reads it."""
    if (setting := _find_setting(key, tail)) is None:
        return []
    states = {partner: format_toml_value(config.settings[partner]) for partner in setting.counterparts if partner in config.settings}
    rows = [
        ("counterpart", f"{partner} = {states[partner]}" if partner in states else f"{partner}, not set")
        for partner in setting.counterparts
    ]
    since, until = f" since {setting.since}" if setting.since else "", f" until {setting.until}" if setting.until else ""
    call = f", set by {setting.call.replace('{}', 'VALUE')}" if setting.call else ""
    return [*rows, ("read by", f"{keys.split_section_and_name(key)[0]}{since}{until}{call}")]


def _describe_meaning(key: str, tail: Path, value: Any) -> list[tuple[str, str]]:
    texts = catalog.find_record_texts(*catalog.find_record_place(key, tail))
    if not texts:
        return []
    rows = [("meaning", f"{texts['summary']} {texts.get('doc', '')}".rstrip())]
    meaning = texts.get("value_docs", {}).get(str(value)) if not isinstance(value, (dict, list)) else None
    return [*rows, ("this value", meaning)] if meaning else rows


def _describe_commit(commit: dict[str, Any]) -> str:
    if not commit["commit"]:
        return "not committed yet"
    return f"{commit['commit'][:7]} {commit['date'][:10]} {commit['author']}: {commit['subject']}"


def _describe_author(origin: Origin) -> str:
    layer = "" if origin.layer == "values" else f", {origin.layer}"
    return f"{origin.profile} ({origin}{layer})" if origin.profile != origin.file else str(origin)


def _describe_winners(config: Config, key: str, tail: Path) -> list[str]:
    there, value = values.find_value(key, config.traced_value(key), tail) if key in config.settings else (False, None)
    if not there:
        return []
    authors = origins.collect_authors(value)
    if len(set(map(str, authors))) <= 1:
        origin = authors[0] if authors else config.origin(key, tail)
        return [_describe_author(origin)] if origin else []
    return [
        f"{format_toml_value(leaf.value)} at {keys.format_key_path('', path).lstrip('.') or 'itself'}: {_describe_author(leaf.origin)}"
        for path, leaf in _list_leaves(value, ())
    ]


def _list_leaves(value: Any, path: Path) -> list[tuple[Path, values.Leaf]]:
    if isinstance(value, values.Leaf):
        return [(path, value)]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [pair for name, item in items for pair in _list_leaves(item, (*path, name))]


def _find_mixlist_outcomes(key: str, value: Any) -> dict[str, dict[str, str]]:
    """Return the resulting list of each operator in a mixed-precision list, by built-in list."""
    if key != "modify_mixlist":
        return {}
    from npuprof.catalog.sidecars import SIDECARS, resolve_mixlist_outcomes

    side = SIDECARS["mixlist"]
    if isinstance(value, str):  # the file, if it exists here
        try:
            value = side.parse(read_plain_file(value).decode())
        except (OSError, ValueError):
            return {}
    return resolve_mixlist_outcomes(value) if isinstance(value, dict) and not side.faults(value) else {}


def _find_default(config: Config, key: str, tail: Path) -> Any:
    section, name = catalog.find_record_place(key, tail)
    if section != "options":
        record = catalog.find_record(section, name)
        return record.default if record else None
    option = catalog.find_option(name)
    asked = config.context
    family = products.find_product_family(asked.product) if asked.product else None
    covered = releases.list_covered_releases(asked.cann, config.cann)
    return releases.resolve_default(option, config.scenario, covered, family) if option else None


VERB = Explain
