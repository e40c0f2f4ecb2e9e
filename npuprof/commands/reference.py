"""``options``, ``option``, ``rule``: the catalogue and the pages of the codes."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.catalog import pages, releases
from npuprof.commands.flags import one_of
from npuprof.document.keys import format_short_value
from npuprof.model import Finding, NpuprofError, did_you_mean
from npuprof.report import format_json_answer, output

_SECTIONS = {"options": "", "env": "env.", "estimator": "estimator.", "atc": "--"}
_FIELDS = {"b": "bool", "i": "int", "s": "bytes"}


def list_options(query: str | None, format_: str, path: str | None) -> int:
    """Print every record whose name or summary holds all the words of a query."""
    one_of("--format", format_, ("text", "json"))
    words = (query or "").lower().split()
    rows = []
    for section, prefix in _SECTIONS.items():
        for name in catalog.record_names(section):
            summary = catalog.find_record_texts(section, name).get("summary", "")
            hay = f"{prefix}{name} {summary}".lower()
            if all(word in hay for word in words):
                rows.append({"name": f"{prefix}{name}", "section": section, "summary": summary})
    if not rows:
        hint = did_you_mean(query or "", catalog.record_names(), "try fewer words")
        raise NpuprofError([Finding("NP201", "error", f"nothing in the catalogue matches {query!r}", "", hint)])
    if format_ == "json":
        output.write_answer(format_json_answer({"schema": "npuprof.options/1", "options": rows}), path)
    else:
        width = max(len(row["name"]) for row in rows)
        output.write_answer("".join(f"{row['name']:<{width}}  {row['summary']}\n" for row in rows), path)
    return 0


def show_option(key: str, format_: str, path: str | None) -> int:
    """Print everything the catalogue knows of one name."""
    one_of("--format", format_, ("text", "json"))
    section, name = _find(key)
    record = {"options": catalog.find_option, "env": catalog.find_variable, "estimator": catalog.find_argument, "atc": catalog.find_flag}[
        section
    ](name)
    assert record is not None
    text = catalog.find_record_texts(section, name)
    ruled = [rule for rule in catalog.load_rules() if name in rule.options or name in rule.reads or f"env.{name}" in rule.reads]
    advised = [advice["text"] for advice in catalog.load_advice() if name in advice["options"]]
    if format_ == "json":
        fields = {field: value for field, value in record._asdict().items() if _says(field, value)}
        read = {"releases": _span(fields["states"])} if "states" in fields else {}
        found = {
            "schema": "npuprof.option/1",
            "section": section,
            **fields,
            **read,
            **text,
            "rules": [rule.code for rule in ruled],
            "advice": advised,
        }
        output.write_answer(format_json_answer(found), path)
        return 0
    lines = [f"{_SECTIONS[section]}{name}: {text['summary']}", "", *_wrapped(text.get("doc", ""), "  "), ""]
    lines += [f"  {label:<12} {value}" for label, value in _facts(section, record, text)]
    if text.get("value_docs"):
        lines += ["", "  values"]
        width = max(map(len, text["value_docs"]))
        lines += [f"    {value:<{width}}  {meaning}" for value, meaning in text["value_docs"].items()]
    if text.get("meanings_since"):
        lines += ["", "  changes"]
        lines += [f"    since {release}: {meaning}" for release, meaning in text["meanings_since"].items()]
    if ruled:
        lines += ["", "  rules"]
        lines += [f"    {rule.code}  {rule.what}" for rule in ruled]
    for advice in advised:
        lines += ["", *_wrapped(f"advice: {advice}", "  ")]
    lines += ["", *_wrapped(f"source: {'; '.join(text['source'])}", "  ")]
    output.write_answer("\n".join(lines) + "\n", path)
    return 0


def _says(field: str, value: Any) -> bool:
    """Return whether a field of a record tells something: 0 does, and so does a default of false."""
    return value is not None and value not in ("", (), {}) and (value is not False or field.startswith("default"))


def _find(key: str) -> tuple[str, str]:
    if key.startswith("--") and catalog.find_flag(key[2:]):
        return "atc", key[2:]
    tables = {"options": catalog.find_option, "env": catalog.find_variable, "estimator": catalog.find_argument, "atc": catalog.find_flag}
    head, dot, rest = key.partition(".")
    if dot and head in tables and tables[head](rest):
        return head, rest
    for section, find in tables.items():
        if find(key):
            return section, key
    names = [name for section in tables for name in catalog.record_names(section)]
    hint = did_you_mean(key.lstrip("-"), names, "npuprof options lists all")
    raise NpuprofError([Finding("NP201", "error", f"the catalogue has no {key!r}", "", hint)])


def _facts(section: str, record: Any, text: dict[str, Any]) -> list[tuple[str, str]]:
    """Return label and value of what is true of a record, in the order to read."""
    found: list[tuple[str, str]] = []

    def fact(label: str, value: str) -> None:
        if value:
            found.append((label, value))

    fields = record._asdict()
    kind = record.kind + (f", protobuf field .{record.field} ({_FIELDS[record.field]})" if fields.get("field") else "")
    fact("kind", kind)
    if section == "options" and record.field is None:
        fact("field", "none: no current adapter reads the key")
    fact("values", ", ".join(map(format_short_value, record.choices)) if fields.get("choices") else "")
    low, high = fields.get("minimum"), fields.get("maximum")
    fact("range", f"{'' if low is None else low} to {'' if high is None else high}".strip() if low is not None or high is not None else "")
    fact("unit", fields.get("unit", ""))
    fact("default", _default(fields, text))
    if section == "options":
        _option_facts(fact, record, text)
    else:
        fact("products", ", ".join(fields.get("products", ())))
        fact("twin of", fields.get("session_option") or fields.get("twin") or "")
        fact(
            "may be set by",
            {"ok": "a preset", "site": "the site", "launcher": "the launcher", "never": "the process only"}.get(
                fields.get("freeze", ""), ""
            ),
        )
        fact("instead", fields.get("advice", ""))
        fact("precedence", str(text.get("precedence", "")))
        fact("requires", ", ".join(fields.get("requires", ()) or text.get("requires", ())))
        fact("conflicts", ", ".join(fields.get("conflicts", ()) or text.get("conflicts", ())))
    fact(
        "deprecated",
        f"yes{' since ' + fields['deprecated_since'] if fields.get('deprecated_since') else ''}" if fields.get("deprecated") else "",
    )
    fact("use instead", fields.get("replaced_by") or fields.get("replacement") or "")
    fact("doubt", text.get("doubt", ""))
    return found


def _option_facts(fact: Any, option: catalog.Option, text: dict[str, Any]) -> None:
    if option.structure:
        from npuprof.catalog.structures import STRUCTURES

        fact("also written", STRUCTURES[option.structure].shape)
    fact("pattern", option.pattern)
    fact("example", format_short_value(text["example"]) if "example" in text else "")
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
    fact("releases", _span(option.states))
    for value, since in option.choices_since.items():
        fact("releases", f"{value}: {since} on" + (f", gone in {option.choices_until[value]}" if value in option.choices_until else ""))
    for value in option.choices_until:
        if value not in option.choices_since:
            fact("releases", f"{value}: gone in {option.choices_until[value]}")
    for value, doubt in option.doubtful_values.items():
        fact("doubtful", f"{value}: {doubt}")
    levels = {
        "init": "the first session of a process decides",
        "init+session": "process initialisation and every session",
        "session": "every session",
        "graph": "the graph",
        "adapter": "the adapter itself",
        "adapter+session": "the adapter and every session",
    }
    fact("counts for", levels.get(option.level, ""))
    surfaces = {"run_config": "NPURunConfig", "global_options": "global_options()", "atc": "atc"}
    fact("elsewhere", ", ".join(f"{surfaces[surface]} {name}" for surface, name in option.spelling.items() if surface in surfaces))
    fact("environment", ", ".join(catalog.load_env_twins().get(option.name, ())))
    fact("risk", ", ".join(option.risk))
    fact("no effect", f"since {option.no_effect_since}" if option.no_effect_since else "yes" if option.no_effect else "")


def _default(fields: dict[str, Any], text: dict[str, Any]) -> str:
    parts = [format_short_value(fields["default"])] if fields.get("default") is not None else []
    by_scenario = {name: fields.get(f"default_{name}") for name in ("training", "inference")}
    parts += [f"{format_short_value(value)} in {name}" for name, value in by_scenario.items() if value is not None]
    parts += [f"{format_short_value(value)} on {product}" for product, value in fields.get("default_by_product", {}).items()]
    if len(fields.get("default_since", ())) > 1:
        parts += [f"{format_short_value(value)} from CANN {release} on" for release, value in fields["default_since"].items()]
    if text.get("default_note"):
        parts.append(str(text["default_note"]))
    return "; ".join(parts)


def _span(states: str) -> str:
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


def _wrapped(text: str, indent: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 96, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def show_rule(code: str | None, format_: str, path: str | None) -> int:
    """Print the page of a code, or the list of all codes."""
    one_of("--format", format_, ("text", "json"))
    known = pages.load_pages()
    if code is None:
        rows = [{"code": page.code, "severity": page.severity, "title": page.title} for page in known.values()]
        text = "".join(f"{row['code']}  {row['severity']:<7}  {row['title']}\n" for row in rows)
        output.write_answer(format_json_answer({"schema": "npuprof.rules/1", "rules": rows}) if format_ == "json" else text, path)
        return 0
    page = known.get(code.upper())
    if page is None:
        hint = did_you_mean(code, known, "npuprof rule lists all codes")
        raise NpuprofError([Finding("NP902", "error", f"there is no code {code!r}", "", hint)])
    if format_ == "json":
        output.write_answer(format_json_answer({"schema": "npuprof.rule/1", **page._asdict()}), path)
        return 0
    lines = [f"{page.code} ({page.severity}): {page.title}", "", *_wrapped(f"Why: {page.why}", "  "), *_wrapped(f"Try: {page.fix}", "  ")]
    for label, files, asked in (("is flagged", page.bad, page.ask_bad), ("is fine", page.good, page.ask_good)):
        for name, text in files.items():
            asking = "".join(f" --{flag} {value}" for flag, value in asked.items())
            lines += [
                "",
                f"  {name}.toml {label}{f' with{asking}' if asking else ''}:",
                *(f"    {line}".rstrip() for line in text.strip("\n").split("\n")),
            ]
    if page.source:
        lines += ["", *_wrapped(f"source: {'; '.join(page.source)}", "  ")]
    output.write_answer("\n".join(lines) + "\n", path)
    return 0
