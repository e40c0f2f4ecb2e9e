"""``explain``: print the origin of a value, what it overrides, its meaning and its rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npuprof import catalog
from npuprof.catalog import releases, values
from npuprof.commands.framework import argument
from npuprof.commands.framework.parameters import (
    FORMAT,
    NO_PERSONAL,
    SPEC,
    PrintingVerb,
    ResolvingVerb,
)
from npuprof.commands.resolving import resolve_shown
from npuprof.document import keys
from npuprof.document.keys import format_toml_value
from npuprof.document.profile import PROFILE_KEYS
from npuprof.model import TYPE_CHECKING, Fields, Origin, Path, TomlTable, build_error, did_you_mean
from npuprof.report import Answer
from npuprof.report.text import escape_controls, paint_text
from npuprof.resolve import origins
from npuprof.resolve.config import Config
from npuprof.resolve.lineages import is_personal
from npuprof.system import list_leaves
from npuprof.system.files import read_plain_file

if TYPE_CHECKING:
    from typing import Any

    from npuprof.document.policy import TeamRule


class Explain(PrintingVerb, ResolvingVerb):
    """Explain one value and where it comes from.

    Prints the effective value, the values it overrides, its default and meaning, the rules that
    read it, and its last change.
    """

    group = "presets"
    prose = True

    spec = SPEC
    key = argument("KEY", "Option, env.NAME, profile.NAME, or a path inside a value", "key")
    format = FORMAT
    no_personal = NO_PERSONAL

    def run(self) -> Answer:
        """Return the origin of a value, the overridden values, its default, meaning and rules.

        Raises NpuprofError.
        """
        config = resolve_shown(self, not self.no_personal)
        own = self.key.removeprefix("profile.")
        if (own in PROFILE_KEYS or own in config.claims) and own not in config.settings:
            return _explain_profile_key(config, own, self.coloured)
        if own != self.key:
            hint = did_you_mean(own, PROFILE_KEYS, f"known are {', '.join(PROFILE_KEYS)}")
            raise build_error("NP201", f"[profile] has no key {own!r}", "", hint)
        key, tail = _parse_key(config, self.key)
        explained = _Explained(config, key, tail, self._find_last_change(config, key, tail))
        return Answer(
            {"text": lambda: explained.format_text(self.coloured), "json": explained.build_fields}
        )

    def _find_last_change(self, config: Config, key: str, tail: Path) -> Fields | None:
        """Return the commit that last changed a value, if the store is in a git repository."""
        if (
            self.mixin
            or self.set_
            or self.unset
            or self.store == "builtin:"
            or any(map(is_personal, config.lineage))
        ):
            return None
        from npuprof.history.last import find_last_change

        return find_last_change(self.spec, self.store, config, key, tail)


def _explain_profile_key(config: Config, name: str, coloured: bool) -> Answer:
    """Return the origin of a ``[profile]`` key.

    Inherited keys come from the nearest ancestor, others from the preset itself.
    """
    value = config.find_profile_value(name)
    origin = config.find_profile_origin(name)
    if value is None and config.lineage and name in config.profile.table:
        value = config.profile.table[name]
        origin = config.profile.origin("profile", name)
    # the releases of a table come from different presets
    inside = [claim.origin for key, claim in config.claims.items() if key.startswith(f"{name}.")]
    setters = [origin] if origin else inside
    meaning = PROFILE_KEYS[name.partition(".")[0]].help
    state = "is not set" if value is None else f"= {keys.format_toml_value(value)}"
    rules = _list_team_rules(config, name)
    rows = [("set by", author) for author in dict.fromkeys(map(_describe_author, setters))]
    fields = {
        "schema": "npuprof.explain/1",
        "preset": config.name,
        "key": f"profile.{name}",
        "set": value is not None,
        "value": value,
        "winners": [*map(origins.build_origin_dict, setters)],
        "rules": [rule.code for rule in rules],
        "summary": meaning,
    }
    rows += [("meaning", meaning), *(("rules", _describe_team_rule(rule)) for rule in rules)]
    return Answer(
        {
            "text": lambda: _format_rows(f"{config.name}: profile.{name} {state}", rows, coloured),
            "json": lambda: fields,
        }
    )


def _parse_key(config: Config, text: str) -> tuple[str, Path]:
    """Return a key and the path below it. Raises NpuprofError for an invalid or unknown key."""
    parsed = keys.parse_key_path(text)
    if parsed is None:
        from npuprof.store import assignment_arguments

        raise build_error(
            "NP009", f"{text!r} is not a key", "", assignment_arguments.suggest_bare_key(text)
        )
    key, tail = parsed
    key = catalog.find_key_elsewhere(key, config.settings) or key
    is_known = bool(_find_texts(config, key, tail))
    if not is_known and key not in config.settings and not config.history(key):
        section, name = keys.split_section_and_name(key)
        names = (*config.settings, *catalog.record_names(), *catalog.record_names("env"))
        if catalog.load_sections()[section].dotted:
            name = keys.format_key_path(name, tail)
            names = catalog.record_names(section)
        what = f"{config.name} does not set {text!r}, and the catalogue does not know it"
        hint = did_you_mean(name, names, "npuprof options lists all")
        from npuprof.catalog.code_pages import suggest_page

        raise build_error("NP201", what, "", suggest_page(text) or hint)
    return key, tail


def _find_texts(config: Config, key: str, tail: Path) -> TomlTable:
    """Return the texts of a key's record, or of the declaration of a team's variable."""
    declared = config.declared.get(key.removeprefix("env."))
    if declared is not None:
        return declared.texts
    return catalog.find_record_texts(*catalog.find_record_place(key, tail))


def _list_team_rules(config: Config, key: str) -> list[TeamRule]:
    """Return the team rules that cover a preset and read a key.

    Raises NpuprofError if npuprof.toml is invalid.
    """
    policy = config.policy if config.lineage else None
    if policy is None or not policy.rules:
        return []
    from npuprof.catalog import written_condition

    return [
        rule
        for rule in policy.rules
        if key in written_condition.list_team_reads(rule, with_facts=True)
    ]


def _describe_team_rule(rule: TeamRule) -> str:
    return f"{rule.code}: {rule.title} ({rule.origin})"


class _Explained:
    """A value at a path of a preset: its origin, overridden values, rules and last change."""

    def __init__(self, config: Config, key: str, tail: Path, last: Fields | None) -> None:
        self._config = config
        self._key = key
        self._tail = tail
        self._last = last
        self._value: Any
        self._is_set, self._value = values.find_setting_value(config.settings, key, tail)
        self._record_key = catalog.find_record_place(key, tail)
        self._texts = _find_texts(config, key, tail)
        self._setting = catalog.find_setting(*self._record_key)
        self._overridden = origins.find_overridden(config, key, tail) if config.history(key) else []
        self._clearing = [
            event.origin
            for event in config.history(key)
            if event.step.op == "unset" and not origins.are_apart(event.step.tail, tail)
        ]
        self._removed = [
            (values.find_value(key, event.step.value, tail)[1], event.origin)
            for event in config.history(key)
            if event.step.op == "remove" and values.find_value(key, event.step.value, tail)[0]
        ]
        self._rules = [
            catalog.find_rule(code)
            for code, reads in catalog.list_rule_reads().items()
            if key in reads
        ]
        self._team_rules = _list_team_rules(config, key)
        self._outcomes = _find_mixlist_outcomes(key, self._value)
        self._default = self._find_default()

    def build_fields(self) -> Fields:
        """Return the explanation as the fields of the JSON form."""
        winners = origins.find_authors_at(self._config, self._key, self._tail)
        return {
            "schema": "npuprof.explain/1",
            "preset": self._config.name,
            "key": keys.format_key_path(self._key, self._tail),
            "set": self._is_set,
            "value": self._value,
            "winners": [origins.build_origin_dict(origin) for origin in winners],
            "overruled": [
                {"value": lost, **origins.build_origin_dict(origin)}
                for lost, origin in self._overridden
            ],
            "unset_by": [origins.build_origin_dict(origin) for origin in self._clearing],
            "removed": [
                {"value": value, **origins.build_origin_dict(origin)}
                for value, origin in self._removed
            ],
            "default": self._default,
            "rules": [
                *(rule.code for rule in self._rules),
                *(rule.code for rule in self._team_rules),
            ],
            "last_change": self._last,
            "summary": self._texts.get("summary"),
            **({"counterparts": list(self._setting.counterparts)} if self._setting else {}),
            **({"outcomes": self._outcomes} if self._outcomes else {}),
        }

    def format_text(self, coloured: bool) -> str:
        """Return the explanation as a title and rows."""
        state = f"= {format_toml_value(self._value)}" if self._is_set else "is not set"
        rows = [("set by", winner) for winner in self._describe_winners()]
        rows += [
            ("overridden", f"{format_toml_value(lost)} of {_describe_author(by)}")
            for lost, by in self._overridden
        ]
        rows += [("cleared by", _describe_author(origin)) for origin in self._clearing]
        rows += [
            ("removed", f"{format_toml_value(value)} by {_describe_author(origin)}")
            for value, origin in self._removed
        ]
        rows += [("default", format_toml_value(self._default))] if self._default is not None else []
        rows += [*self._describe_meaning(), *self._describe_setting()]
        if self._outcomes:
            from npuprof.catalog.sidecars import describe_mixlist_outcome

            rows += [
                (operator, describe_mixlist_outcome(ends))
                for operator, ends in self._outcomes.items()
            ]
        rows += [("rules", f"{rule.code}: {rule.what}") for rule in self._rules]
        rows += [("rules", _describe_team_rule(rule)) for rule in self._team_rules]
        rows += [("last change", _describe_commit(self._last))] if self._last else []
        return _format_rows(
            f"{self._config.name}: {keys.format_key_path(self._key, self._tail)} {state}",
            rows,
            coloured,
        )

    def _describe_setting(self) -> Iterator[tuple[str, str]]:
        """Yield rows on a framework setting: its counterparts, and how the framework reads it."""
        setting = self._setting
        if setting is None:
            return
        for counterpart in setting.counterparts:
            if counterpart in self._config.settings:
                value = format_toml_value(self._config.settings[counterpart])
                yield "counterpart", f"{counterpart} = {value}"
            else:
                yield "counterpart", f"{counterpart}, not set"
        section = keys.split_section_and_name(self._key)[0]
        readers = f"{section} {releases.describe_readers(section, setting)}".rstrip()
        call = f", set by {setting.call.replace('{}', 'VALUE')}" if setting.call else ""
        yield "read by", f"{readers}{call}"

    def _describe_meaning(self) -> Iterator[tuple[str, str]]:
        texts = self._texts
        if not texts:
            return
        yield "meaning", f"{texts['summary']} {texts.get('doc', '')}".rstrip()
        if not isinstance(self._value, (dict, list)):
            meaning = texts.get("value_docs", {}).get(str(self._value))
            if meaning:
                yield "this value", meaning

    def _describe_winners(self) -> list[str]:
        config = self._config
        key = self._key
        tail = self._tail
        if not self._is_set:
            return []
        value = values.find_value(key, config.traced_value(key), tail)[1]
        authors = origins.collect_authors(value)
        if len(set(map(str, authors))) <= 1:
            origin = authors[0] if authors else config.origin(key, tail)
            return [_describe_author(origin)] if origin else []
        winners = []
        for path, leaf in list_leaves(value):
            location = keys.format_path(path) or "itself"
            author = _describe_author(leaf.origin)
            winners.append(f"{format_toml_value(leaf.value)} at {location}: {author}")
        return winners

    def _find_default(self) -> Any:
        record = catalog.find_record(*self._record_key)
        context = self._config.context
        if not isinstance(record, catalog.Option):
            return record.default if record else None
        family = None
        if context.product:
            from npuprof.catalog.products import find_product_family

            family = find_product_family(context.product)
        covered = releases.list_covered_releases(context.cann, self._config.cann)
        return releases.resolve_default(record, self._config.scenario, covered, family)


def _format_rows(title: str, rows: Sequence[tuple[str, str]], coloured: bool) -> str:
    """Return a title and rows of a label and a text, as lines."""
    lines = [
        f"  {paint_text(escape_controls(f'{label:<12}'), '2', coloured)} {escape_controls(text)}"
        for label, text in rows
    ]
    return "\n".join([paint_text(escape_controls(title), "1", coloured), *lines, ""])


def _describe_commit(commit: Fields) -> str:
    if not commit["commit"]:
        return "not committed yet"
    return f"{commit['commit'][:7]} {commit['date'][:10]} {commit['author']}: {commit['subject']}"


def _describe_author(origin: Origin) -> str:
    layer = "" if origin.layer == "values" else f", {origin.layer}"
    return f"{origin.profile} ({origin}{layer})" if origin.profile != origin.file else str(origin)


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
    return (
        resolve_mixlist_outcomes(value)
        if isinstance(value, dict) and not side.faults(value)
        else {}
    )


VERB = Explain
