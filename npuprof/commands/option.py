"""``option``: print the catalogue entry for a name."""

from __future__ import annotations

from collections.abc import Iterator

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.catalog.readers import find_reading
from npuprof.catalog.risks import find_unit_and_risk
from npuprof.catalog.values import find_structure, load_form
from npuprof.commands.framework import Verb, argument
from npuprof.commands.framework.parameters import FORMAT, OUTPUT
from npuprof.document.keys import format_full_key, format_toml_value
from npuprof.model import Any, Fields, NpuprofError, build_error, did_you_mean
from npuprof.report import Answer

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
_SETTERS = {
    "ok": "a preset",
    "site": "the site",
    "launcher": "the launcher",
    "never": "the process only",
}


class Option(Verb):
    """Print the catalogue entry of an option."""

    group = "reference"
    prose = True
    takes_any_word = True  # an ATC flag is a key, not an option of npuprof

    key = argument(
        "KEY", "Option, environment variable, ATC flag with its dashes, or message", "key"
    )
    format = FORMAT
    output = OUTPUT

    def run(self) -> Answer:
        """Return the record with its texts, rules and advice, or the settings of a message.

        Raises NpuprofError.
        """
        try:
            section, record = _find_record(self.key)
        except NpuprofError:
            from npuprof.commands.options import find_settings_of_message
            from npuprof.runs.unknown_variables import LINE

            if found := find_settings_of_message(self.key):
                return found
            if unknown := LINE.search(self.key):
                _find_record(unknown[1])
            raise
        name = record.name
        ruled = [
            rule
            for rule in catalog.load_rules()
            if not {name, f"{section}.{name}"}.isdisjoint((*rule.options, *rule.reads))
        ]
        advised = [advice["text"] for advice in catalog.load_advice() if name in advice["options"]]
        return Answer(
            {
                "text": lambda: "\n".join(_format_record(section, record, ruled, advised)) + "\n",
                "json": lambda: _build_fields(section, record, ruled, advised),
            }
        )


def _find_record(key: str) -> tuple[str, Any]:
    """Return section and record of a user's key. Raises NpuprofError."""
    if key.startswith("--") and (flag := catalog.find_flag(key[2:])):
        return "atc", flag
    head, _, rest = key.partition(".")
    sections = catalog.load_sections()
    for section, name in ((head, rest), *((section, key) for section in sections)):
        if record := catalog.find_record(section, name):
            return section, record
    from npuprof.commands.rule import load_team_policy  # the catalogue has most names

    if declared := load_team_policy().variables.get(key.removeprefix("env.")):
        return "env", declared
    if head in sections and sections[head].dotted:
        names = [f"{head}.{name}" for name in sections[head].names]
    else:
        names = [name for described in sections.values() for name in described.names]
    plain = key.lstrip("-").strip("*?").partition("=")[0]
    is_part = any(plain.lower() in name.lower() for name in names)
    listed = (
        f"npuprof options {plain} lists those with it in their names"
        if is_part
        else "npuprof options lists all, npuprof rule the codes of findings"
    )
    from npuprof.catalog.code_pages import suggest_page

    hint = suggest_page(key) or did_you_mean(plain, names, listed)
    raise build_error("NP201", f"the catalogue has no {key!r}", "", hint)


def _build_fields(
    section: str, record: Any, ruled: list[catalog.Rule], advised: list[str]
) -> Fields:
    fields = {
        field: value
        for field, value in record._asdict().items()
        if _says_something(field, value) and field not in ("successor_states", "origin")
    }
    return {
        "schema": "npuprof.option/1",
        "section": section,
        **fields,
        **_describe_lifetime(section, record),
        **_find_texts(section, record),
        "rules": [rule.code for rule in ruled],
        "advice": advised,
    }


def _find_texts(section: str, record: Any) -> Fields:
    is_declared = isinstance(record, catalog.TeamVariable)
    return record.texts if is_declared else catalog.find_record_texts(section, record.name)


def _describe_lifetime(section: str, record: Any) -> dict[str, str]:
    """Return the sets of releases of a record as text."""
    axis = releases.find_axis(section, record)
    described = {}
    for field in ("states", "deprecated", "no_effect"):
        if letters := getattr(record, field, ""):
            text = releases.describe_set(letters, axis, unknown=field == "states")
            described["releases" if field == "states" else field] = (
                f"{'' if axis == releases.CANN else axis + ' '}{text}"
            )
    return described


def _says_something(field: str, value: Any) -> bool:
    """Return whether a field of a record is worth printing: 0 is, and so is a default of false."""
    return (
        value is not None
        and value not in ("", (), {})
        and (value is not False or field.startswith("default"))
    )


def _format_record(
    section: str, record: Any, ruled: list[catalog.Rule], advised: list[str]
) -> list[str]:
    text = _find_texts(section, record)
    title = f"{catalog.load_sections()[section].prefix}{record.name}: {text['summary']}"
    lines = [title, "", f"    {text['doc']}", ""] if text.get("doc") else [title, ""]
    lines += [f"  {label:<12} {value}" for label, value in _list_facts(section, record, text)]
    if text.get("value_docs"):
        width = max(map(len, text["value_docs"]))
        lines += [
            "",
            "  values",
            *(f"    {value:<{width}}  {meaning}" for value, meaning in text["value_docs"].items()),
        ]
    if text.get("meanings_since"):
        lines += [
            "",
            "  changes",
            *(
                f"    since {release}: {meaning}"
                for release, meaning in text["meanings_since"].items()
            ),
        ]
    if ruled:
        lines += ["", "  rules", *(f"    {rule.code}  {rule.what}" for rule in ruled)]
    for advice in advised:
        lines += ["", f"    advice: {advice}"]
    return [*lines, "", f"    source: {'; '.join(text['source'])}"]


def _list_facts(section: str, record: Any, text: Fields) -> list[tuple[str, str]]:
    """Return labels and values of a record's facts, in reading order."""
    fields = {
        name: value
        for name, value in {
            **text,
            **record._asdict(),
            **_describe_lifetime(section, record),
        }.items()
        if _says_something(name, value)
    }
    field = (
        f", protobuf field .{fields['field']} ({_FIELDS[fields['field']]})"
        if "field" in fields
        else ""
    )
    low = fields.get("minimum", "")
    high = fields.get("maximum", "")
    form = (
        load_form(fields["structure"])
        if "structure" in fields
        else find_structure(format_full_key(section, record.name))
    )
    facts = [
        ("kind", f"{record.kind}{field}"),
        (
            "field",
            "none: no current adapter reads the key" if section == "options" and not field else "",
        ),
        ("values", [*map(format_toml_value, fields.get("choices", ()))]),
        ("range", f"{low} to {high}".strip() if (low, high) != ("", "") else ""),
        ("unit", fields.get("unit")),
        ("default", _describe_default(record._asdict(), text, releases.find_axis(section, record))),
        ("also written", form.shape if form else ""),
        ("pattern", fields.get("pattern")),
        ("example", format_toml_value(text["example"]) if "example" in text else ""),
        ("scenarios", fields.get("scenarios")),
        *_list_platform_facts(fields),
        *_list_usage_facts(section, record, fields),
        *(
            ("doubtful", f"{value}: {doubt}")
            for value, doubt in fields.get("doubtful_values", {}).items()
        ),
        ("deprecated", fields.get("deprecated")),
        ("use instead", fields.get("replaced_by") if releases.is_past(record) else ""),
        (
            "characters",
            "letters, digits, '_', '-', '.', Chinese characters, and '/' between them"
            if "path_characters" in fields
            else "",
        ),
        ("doubt", text.get("doubt")),
        ("checked", text.get("checked")),
    ]
    return [
        (label, ", ".join(value) if isinstance(value, (list, tuple)) else str(value))
        for label, value in facts
        if value
    ]


def _list_platform_facts(fields: Fields) -> Iterator[tuple[str, Any]]:
    """Yield the products and releases that support a record and its values."""
    yield "products", fields.get("products")
    yield "not on", fields.get("products_not")
    for value, families in fields.get("value_products", {}).items():
        yield "products", f"{value}: {', '.join(families)} only"
    for family, (low, high) in fields.get("product_range", {}).items():
        yield "range", f"{low} to {high} on {family}"
    if "product_count" in fields:
        low, high = fields.get("default_count") or (2, 100)
        counts = [
            f"{few} to {many} on {family}"
            for family, (few, many) in fields["product_count"].items()
        ]
        yield "count", f"{low} to {high} size profiles; {', '.join(counts)}"
    yield "releases", fields.get("releases")
    for surface, states in fields.get("surface_states", {}).items():
        reading = releases.describe_set(states, releases.CANN, unknown=True)
        yield "releases", f"{_SURFACES[surface]}: {reading}"
    yield "listed", fields.get("listed")
    since = fields.get("choices_since", {})
    until = fields.get("choices_until", {})
    for value in {**since, **until}:
        spans = [
            f"{since[value]} on" if value in since else "",
            f"gone in {until[value]}" if value in until else "",
        ]
        yield "releases", f"{value}: {', '.join(filter(None, spans))}"


def _list_usage_facts(section: str, record: Any, fields: Fields) -> Iterator[tuple[str, Any]]:
    """Yield the programs that read a record, its equivalents, and what a change may affect."""
    yield "twin of", fields.get("session_option") or fields.get("twin")
    yield "counts for", _LEVELS.get(fields.get("level", ""), "")
    spellings = fields.get("spelling", {}).items()
    named = [f"{_SURFACES[each]} {name}" for each, name in spellings if each in _SURFACES]
    yield "elsewhere", named
    yield (
        "environment",
        catalog.load_equivalent_variables().get(record.name) if section == "options" else (),
    )
    yield "risk", find_unit_and_risk(format_full_key(section, record.name))[1]
    yield "may be set by", _SETTERS.get(fields.get("freeze", ""), "")
    yield "instead", fields.get("advice")
    if section == "env":
        yield "read by", fields.get("read_by") or record.framework
        yield "read as", record.otherwise or find_reading(record).why
        yield "keys", [*record.items]
    if isinstance(record, catalog.Setting):
        yield "set by", record.call.replace("{}", "VALUE")
        yield "other values", record.otherwise
        yield "counterpart", [*record.counterparts]
    yield "no effect", fields.get("why_unread") or fields.get("no_effect")
    yield "overwritten", fields.get("overwritten_by")
    yield "precedence", fields.get("precedence")
    yield "requires", fields.get("requires")
    yield "conflicts", fields.get("conflicts")


def _describe_default(fields: Fields, text: Fields, axis: str) -> str:
    parts = releases.list_defaults(fields)
    if len(fields.get("default_since", ())) > 1:
        title = "CANN" if axis == releases.CANN else axis
        parts += [
            f"{format_toml_value(value)} from {title} {release} on"
            for release, value in fields["default_since"].items()
        ]
    if text.get("default_note"):
        parts.append(str(text["default_note"]))
    return "; ".join(parts)


VERB = Option
