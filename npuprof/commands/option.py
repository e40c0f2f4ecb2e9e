"""``option``: print what the catalogue contains about one name."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.catalog.readers import find_reading
from npuprof.catalog.values import load_form
from npuprof.commands.framework.parameters import OUTPUT, formats
from npuprof.commands.framework.verb import Verb, argument
from npuprof.compare.changes import find_unit_and_risk
from npuprof.document.keys import format_toml_value
from npuprof.model import SECTIONS, Finding, NpuprofError, did_you_mean
from npuprof.report.answer import Answer
from npuprof.report.tables import Page, wrap_paragraph

_FIELDS = {"b": "bool", "i": "int", "s": "bytes"}
_LEVELS = {
    "init": "the first session of a process decides",
    "init+session": "process initialisation and every session",
    "session": "every session",
    "graph": "the graph",
    "adapter": "the adapter itself",
    "adapter+session": "the adapter and every session",
}
_SURFACES = {"run_config": "NPURunConfig", "global_options": "global_options()", "atc": "atc"}
_SETTERS = {"ok": "a preset", "site": "the site", "launcher": "the launcher", "never": "the process only"}


class Option(Verb):
    """Print the catalogue entry of an option."""

    group = "reference"
    prose = True
    paged = True
    takes_any_word = True  # an ATC flag is a key, not an option of ours

    key: str = argument("KEY", "Option, environment variable, or ATC flag with its dashes")
    format: str = formats("text", "json")
    output: str | None = OUTPUT

    def run(self) -> Answer:
        """Return the record with its prose, its rules and the advice about it. Raises NpuprofError."""
        section, name = _find_section(self.key)
        record: Any = catalog.find_record(section, name)
        ruled = [rule for rule in catalog.load_rules() if name in rule.options or name in rule.reads or f"env.{name}" in rule.reads]
        advised = [advice["text"] for advice in catalog.load_advice() if name in advice["options"]]
        return Answer({
            "text": lambda: Page(lambda columns: "\n".join(_format_record(section, record, ruled, advised, columns)) + "\n"),
            "json": lambda: _build_fields(section, record, ruled, advised),
        })  # fmt: skip


def _find_section(key: str) -> tuple[str, str]:
    """Return section and name of what a user calls a record. Raises NpuprofError."""
    if key.startswith("--") and catalog.find_flag(key[2:]):
        return "atc", key[2:]
    head, dot, rest = key.partition(".")
    if dot and head in SECTIONS and catalog.find_record(head, rest):
        return head, rest
    for section in catalog.PREFIXES:
        if catalog.find_record(section, key):
            return section, key
    names = [name for section in catalog.PREFIXES for name in catalog.record_names(section)]
    plain = key.lstrip("-")
    inside = bool(plain) and any(plain.lower() in name.lower() for name in names)
    if "=" in key and key.partition("=")[0] in names:
        hint = f"write {key.partition('=')[0]}, without a value"
    elif (part := key.strip("*?")) != key and part:
        hint = f"npuprof options {part} lists those with it in their names"
    elif _is_preset(key):
        hint = f"it is a preset: npuprof show {key}"
    else:
        listed = f"npuprof options {plain} lists those with it in their names" if inside else "npuprof options lists all"
        hint = did_you_mean(plain, names, listed)
    raise NpuprofError([Finding("NP201", f"the catalogue has no {key!r}", "", hint)])


def _is_preset(word: str) -> bool:
    """Return whether the store around has a preset of a name."""
    from npuprof.store import find_store

    try:
        return word in find_store(None, os.environ).names()
    except NpuprofError:
        return False


def _build_fields(section: str, record: Any, ruled: list[catalog.Rule], advised: list[str]) -> dict[str, Any]:
    fields = {field: value for field, value in record._asdict().items() if _says_something(field, value)}
    return {
        "schema": "npuprof.option/1",
        "section": section,
        **fields,
        **({"releases": _describe_releases(fields["states"])} if "states" in fields else {}),
        **catalog.find_record_texts(section, record.name),
        "rules": [rule.code for rule in ruled],
        "advice": advised,
    }


def _says_something(field: str, value: Any) -> bool:
    """Return whether a field of a record tells something: 0 does, and so does a default of false."""
    return value is not None and value not in ("", (), {}) and (value is not False or field.startswith("default"))


def _format_record(section: str, record: Any, ruled: list[catalog.Rule], advised: list[str], columns: int) -> list[str]:
    text = catalog.find_record_texts(section, record.name)
    lines = [f"{catalog.PREFIXES[section]}{record.name}: {text['summary']}", "", *wrap_paragraph(text.get("doc", ""), columns), ""]
    lines += [f"  {label:<12} {value}" for label, value in _list_facts(section, record, text)]
    if text.get("value_docs"):
        width = max(map(len, text["value_docs"]))
        lines += ["", "  values", *(f"    {value:<{width}}  {meaning}" for value, meaning in text["value_docs"].items())]
    if text.get("meanings_since"):
        lines += ["", "  changes", *(f"    since {release}: {meaning}" for release, meaning in text["meanings_since"].items())]
    if ruled:
        lines += ["", "  rules", *(f"    {rule.code}  {rule.what}" for rule in ruled)]
    for advice in advised:
        lines += ["", *wrap_paragraph(f"advice: {advice}", columns)]
    return [*lines, "", *wrap_paragraph(f"source: {'; '.join(text['source'])}", columns)]


def _list_facts(section: str, record: Any, text: dict[str, Any]) -> list[tuple[str, str]]:
    """Return label and value of what is true of a record, in the order to read."""
    facts: list[tuple[str, str]] = []

    def fact(label: str, value: str) -> None:
        if value:
            facts.append((label, value))

    fields = record._asdict()
    kind = record.kind + (f", protobuf field .{record.field} ({_FIELDS[record.field]})" if fields.get("field") else "")
    fact("kind", kind)
    if section == "options" and record.field is None:
        fact("field", "none: no current adapter reads the key")
    fact("values", ", ".join(map(format_toml_value, record.choices)) if fields.get("choices") else "")
    low, high = fields.get("minimum"), fields.get("maximum")
    fact("range", f"{'' if low is None else low} to {'' if high is None else high}".strip() if low is not None or high is not None else "")
    fact("unit", fields.get("unit", ""))
    fact("default", _describe_default(fields, text))
    if section == "options":
        _add_option_facts(fact, record, text)
    else:
        fact("products", ", ".join(fields.get("products", ())))
        fact("not on", ", ".join(fields.get("products_not", ())))
        for value, families in fields.get("value_products", {}).items():
            fact("products", f"{value}: {', '.join(families)} only")
        for family, (least, most) in fields.get("product_range", {}).items():
            fact("range", f"{least} to {most} on {family}")
        fact("twin of", fields.get("session_option") or fields.get("twin") or "")
        fact("risk", ", ".join(find_unit_and_risk(f"{section}.{record.name}")[1]))
        fact("may be set by", _SETTERS.get(fields.get("freeze", ""), ""))
        fact("instead", fields.get("advice", ""))
        if section == "env":
            _add_variable_facts(fact, record, text)
        fact("precedence", str(text.get("precedence", "")))
        fact("requires", ", ".join(fields.get("requires", ()) or text.get("requires", ())))
        fact("conflicts", ", ".join(fields.get("conflicts", ()) or text.get("conflicts", ())))
    for value, doubt in fields.get("doubtful_values", {}).items():
        fact("doubtful", f"{value}: {doubt}")
    fact(
        "deprecated",
        f"yes{' since ' + fields['deprecated_since'] if fields.get('deprecated_since') else ''}" if fields.get("deprecated") else "",
    )
    fact("use instead", fields.get("replaced_by") or fields.get("replacement") or "")
    if fields.get("path_characters"):
        fact("characters", "letters, digits, '_', '-', '.', Chinese characters, and '/' between them")
    fact("doubt", text.get("doubt", ""))
    return facts


def _add_variable_facts(fact: Callable[[str, str], None], variable: catalog.Variable, text: dict[str, Any]) -> None:
    fact("read by", ", ".join(text.get("read_by", ())) or variable.framework)
    fact("read as", variable.otherwise or find_reading(variable).why)
    fact("keys", ", ".join(variable.items))
    fact("since", str(text.get("since", "")))
    fact("until", variable.until)
    fact("no effect", variable.dead)
    fact("overwritten", str(text.get("overwritten_by", "")))


def _add_option_facts(fact: Callable[[str, str], None], option: catalog.Option, text: dict[str, Any]) -> None:
    if option.structure:
        fact("also written", load_form(option.structure).shape)
    fact("pattern", option.pattern)
    fact("example", format_toml_value(text["example"]) if "example" in text else "")
    fact("scenarios", ", ".join(option.scenarios))
    fact("products", ", ".join(option.products))
    for value, families in option.value_products.items():
        fact("products", f"{value}: {', '.join(families)} only")
    for family, (low, high) in option.product_range.items():
        fact("range", f"{low} to {high} on {family}")
    if option.product_count:
        low, high = option.default_count or (2, 100)
        counts = [f"{few} to {many} on {family}" for family, (few, many) in option.product_count.items()]
        fact("count", f"{low} to {high} size profiles; {', '.join(counts)}")
    fact("releases", _describe_releases(option.states))
    for surface, states in option.surface_states.items():
        fact("releases", f"{_SURFACES[surface]}: {_describe_releases(states)}")
    fact("listed", ", ".join(option.listed))
    for value, since in option.choices_since.items():
        fact("releases", f"{value}: {since} on" + (f", gone in {option.choices_until[value]}" if value in option.choices_until else ""))
    for value in option.choices_until:
        if value not in option.choices_since:
            fact("releases", f"{value}: gone in {option.choices_until[value]}")
    fact("counts for", _LEVELS.get(option.level, ""))
    fact("elsewhere", ", ".join(f"{_SURFACES[surface]} {name}" for surface, name in option.spelling.items() if surface in _SURFACES))
    fact("environment", ", ".join(catalog.load_env_twins().get(option.name, ())))
    fact("risk", ", ".join(option.risk))
    fact("no effect", f"since {option.no_effect_since}" if option.no_effect_since else "yes" if option.no_effect else "")


def _describe_default(fields: dict[str, Any], text: dict[str, Any]) -> str:
    parts = [format_toml_value(fields["default"])] if fields.get("default") is not None else []
    by_scenario = {name: fields.get(f"default_{name}") for name in ("training", "inference")}
    parts += [f"{format_toml_value(value)} in {name}" for name, value in by_scenario.items() if value is not None]
    parts += [f"{format_toml_value(value)} on {product}" for product, value in fields.get("default_by_product", {}).items()]
    if len(fields.get("default_since", ())) > 1:
        parts += [f"{format_toml_value(value)} from CANN {release} on" for release, value in fields["default_since"].items()]
    if text.get("default_note"):
        parts.append(str(text["default_note"]))
    return "; ".join(parts)


def _describe_releases(states: str) -> str:
    """Return the releases an option is read in, in words."""
    names = releases.load_releases()
    parts, start = [], 0
    for place in range(1, len(states) + 1):
        if place == len(states) or states[place] != states[start]:
            if states[start] in "Y?":
                first, last = names[start], names[place - 1]
                span = first if first == last else f"{first} on" if place == len(states) else f"{first} to {last}"
                parts.append(span + (" (unknown)" if states[start] == "?" else ""))
            start = place
    return ", ".join(parts) or "none"


VERB = Option
