"""JSON Schemas of single records: an option, a variable, an argument, a flag."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from npuprof import catalog
from npuprof.catalog import products
from npuprof.catalog.key_value_pairs import find_pairs_form
from npuprof.catalog.launchers import FACTS, NUMBERS
from npuprof.catalog.readers import NOT_FOUND, find_habits, find_reading
from npuprof.catalog.shapes import Schema, table_schema
from npuprof.catalog.values import load_form
from npuprof.model import TomlTable

LAUNCHER: Schema = {"$ref": "#/definitions/launcher"}


def build_choice_schema(choices: Iterable[Schema]) -> Schema:
    """Return the union of schemas; a single schema unchanged."""
    schemas = list(choices)
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def build_text_schema(patterns: Iterable[str]) -> Schema:
    """Return the schema of a text that matches one of some patterns in full.

    Of any text without patterns.
    """
    alternatives = "|".join(f"(?:{pattern})" for pattern in dict.fromkeys(patterns) if pattern)
    return (
        {"type": "string", "pattern": f"^(?:{alternatives})$"}
        if alternatives
        else {"type": "string"}
    )


def build_launcher_schema(facts: Iterable[str] = FACTS) -> Schema:
    """Return the schema of ``{ launcher = FACT }``."""
    return table_schema(
        {"launcher": {"enum": list(facts)}},
        ["launcher"],
        "Filled at start, for each process, from the launcher.",
    )


def build_product_schema() -> Schema:
    """Return the schema of a product: a family, a line, or a chip by its soc_version."""
    return {"anyOf": [{"enum": list(products.product_names())}, _build_chip_schema()]}


def _build_chip_schema() -> Schema:
    return build_text_schema(
        pattern for family in products.load_products().values() for pattern in family["chips"]
    )


def build_option_schema(option: catalog.Option) -> Schema:
    """Return the schema of a session option."""
    described = build_description("options", option.name)
    if option.default is not None:
        described["default"] = option.default
    if option.deprecated.endswith("Y"):
        described["deprecated"] = True
    kinds = [_build_plain_option_schema(option)]
    if option.structure:
        kinds.append(load_form(option.structure).schema)
    return described | build_choice_schema(kinds)


def build_appended_schema(option: catalog.Option) -> Schema | None:
    """Return the schema of the lists that can be appended to an option; None if it has none."""
    structure = load_form(option.structure) if option.structure else None
    lists = _keep_lists(structure.schema) if structure is not None else None
    if structure is None or lists is None:
        return None
    kinds = (
        [lists]
        if structure.file or lists == table_schema({})
        else [_build_plain_option_schema(option), lists]
    )
    return build_description("options", option.name, examples=False) | build_choice_schema(kinds)


def _keep_lists(schema: Schema) -> Schema | None:
    """Return a schema reduced to its lists, without length limits.

    None if there is none, and a table becomes empty.
    """
    if "anyOf" in schema:
        lists = [listed for listed in map(_keep_lists, schema["anyOf"]) if listed is not None]
        return {"anyOf": lists} if lists else None
    if not schema:  # any type: a list in it can be appended to
        return {"anyOf": [{"type": "array"}, {"type": "object"}]}
    if schema.get("type") == "array":
        if isinstance(schema["items"], list):
            return {"type": "array", "items": {"anyOf": schema["items"]}}
        return {name: value for name, value in schema.items() if name != "minItems"}
    if schema.get("type") != "object":
        return None
    if "properties" not in schema and "additionalProperties" not in schema:
        return schema
    inner = {
        name: inner_lists
        for name, value in schema.get("properties", {}).items()
        if (inner_lists := _keep_lists(value)) is not None
    }
    rest = schema.get("additionalProperties", False)
    return {
        "type": "object",
        "properties": inner,
        "additionalProperties": (_keep_lists(rest) or False) if isinstance(rest, dict) else rest,
    }


def _build_plain_option_schema(option: catalog.Option) -> Schema:
    """Return the schema of an option's text, number or switch in any release, on any surface."""
    if option.value_field == "b":
        return {"type": "boolean"}
    flag = catalog.find_flag(option.flag)
    odd: list[Any] = [*option.doubtful_values, *option.choices_until]
    if option.field == "i":
        odd = [int(text) for text in odd if text.lstrip("-").isdigit()]
    if option.choices:
        converted = (
            [choice for choice in flag.choices if type(choice) is type(option.choices[0])]
            if flag
            else []
        )
        enum = {"enum": list(dict.fromkeys((*option.choices, *option.tolerated, *odd, *converted)))}
        more = (
            [build_text_schema([flag.pattern])]
            if flag and flag.pattern and option.field != "i"
            else []
        )
        return build_choice_schema([enum, *more])
    if option.field == "i":
        plain = {"type": "integer", **build_bounds(option.minimum, option.maximum)}
        taken = (
            [plain, {"type": "integer", **build_bounds(flag.minimum, flag.maximum)}]
            if flag and flag.kind == "int"
            else [plain]
        )
        return build_choice_schema([*taken, *([{"enum": odd}] if odd and len(plain) > 1 else [])])
    if option.kind.startswith("path"):
        return {
            "type": "string",
            **({} if (option.name, "NP203") in catalog.load_excuses() else {"minLength": 1}),
        }
    if option.pattern and not (option.structure and _is_spelt_freely(option)):
        return build_text_schema(
            [option.pattern, option.lax_pattern, *(_list_read_patterns(flag) if flag else ())]
        )
    return {"type": "string"}


def _is_spelt_freely(option: catalog.Option) -> bool:
    """Return whether the text of a structured option may differ from its pattern.

    Unknown names are only warned about, and 0.9 is 00.9.
    """
    return option.kind == "list" or "'number'" in repr(load_form(option.structure).schema)


def build_variable_schema(variable: catalog.Variable) -> Schema:
    """Return the schema of an environment variable: its text, a number, or a launcher fact."""
    described = build_description("env", variable.name)
    if variable.deprecated.endswith("Y"):
        described["deprecated"] = True
    facts = _list_taken_facts(variable)
    launcher = LAUNCHER if facts == list(FACTS) else build_launcher_schema(facts)
    return {
        **described,
        **build_choice_schema(
            [*_build_plain_variable_schemas(variable), *([launcher] if facts else [])]
        ),
    }


def _list_taken_facts(variable: catalog.Variable) -> list[str]:
    """Return the launcher facts that a variable accepts; another rank is only warned about."""
    if variable.choices or variable.kind == "pairs":
        return []
    meant = variable.launcher
    known = NUMBERS if variable.kind in ("int", "float") else FACTS
    if not meant:
        return list(known)
    return [
        fact
        for fact in FACTS
        if (fact == meant and fact in known) or {fact, meant} == {"rank", "local-rank"}
    ]


def _build_plain_variable_schemas(variable: catalog.Variable) -> list[Schema]:
    if pairs := find_pairs_form(variable.name):
        return [{"type": "string"}, {"type": "number"}, pairs.schema]
    if find_reading(variable).others:  # the checks evaluate the text
        known = [{"enum": list(variable.choices)}] if variable.choices else []
        return [*known, {"type": "string"}, {"type": "number"}]
    if variable.choices:
        texts = [*variable.choices, *variable.tolerated]
        digits = [int(text) for text in texts if text.isdigit() and str(int(text)) == text]
        if variable.separator or _find_taken_habits(variable):
            listed = {
                "enum": texts
            }  # in addition to the pattern, since editors suggest listed values
            return [
                listed,
                _build_word_schema(variable, texts),
                *([{"enum": digits}] if digits else []),
            ]
        return [{"enum": [*texts, *digits]}]
    if variable.kind in ("int", "float"):
        step = {"multipleOf": variable.multiple_of} if variable.multiple_of > 1 else {}
        kind = "integer" if variable.kind == "int" else "number"
        odd = (
            "[^A-Za-z]+"
            if variable.kind == "int"
            else "[^A-DF-Za-df-z]+|[^A-Za-z]*(?:[Ii][Nn][Ff][A-Za-z]*|[Nn][Aa][Nn])[^A-Za-z]*"
        )
        return [
            {"type": kind, **build_bounds(variable.minimum, variable.maximum), **step},
            build_text_schema([odd]),
        ]
    return [build_text_schema(_list_read_patterns(variable)), {"type": "number"}]


def _list_read_patterns(record: catalog.Entry) -> list[str]:
    """Return patterns for the texts that a reader accepts.

    Empty if it ignores case, which JSON Schema cannot express.
    """
    habits = find_habits(record)
    plain = record.pattern.removeprefix("^").removesuffix("$") if "trailing" in habits else ""
    more = [rf"(?:{plain}){habits['trailing']}"] if plain else []
    more += [r"[^\n]*\s[^\n]*"] if "blanks" in habits else []
    return [] if "any_case" in habits else [record.pattern, *more]


def _find_taken_habits(record: catalog.Entry) -> TomlTable:
    """Return what the reader ignores.

    Letter case if the reader is unknown, since the checks then only print a note.
    """
    return {"any_case": True} if record.reader == NOT_FOUND else find_habits(record)


def _build_word_schema(record: catalog.Entry, texts: Sequence[Any]) -> Schema:
    """Return the schema of one of some texts, or of several joined ones, as the reader accepts."""
    habits = _find_taken_habits(record)
    alternatives = "|".join(_build_word_pattern(str(text), "any_case" in habits) for text in texts)
    word = f"{'0*' if 'number' in habits else ''}(?:{alternatives})"
    word = f"(?:{habits['part_name']})?{word}" if "part_name" in habits else word
    word = rf"\s*{word}\s*" if "blanks" in habits else word
    return build_text_schema(
        [word + (f"(?:{_escape(record.separator)}{word})*" if record.separator else "")]
    )


def _build_word_pattern(text: str, any_case: bool) -> str:
    if not any_case:
        return _escape(text)
    return "".join(
        f"[{letter.upper()}{letter.lower()}]" if letter.isalpha() else _escape(letter)
        for letter in text
    )


def _escape(text: str) -> str:
    """Return a text escaped for every dialect: some reject what ``re.escape`` escapes."""
    return "".join(f"\\{char}" if char in r".^$*+?()[]{}|\/" else char for char in text)


#: The JSON types that each kind of an argument takes.
_ARGUMENT_TYPES = {
    "bool": ("boolean",),
    "int": ("integer", "string"),
    "float": ("number", "string"),
    "str": ("number", "object", "string"),
    "json": ("array", "boolean", "number", "object", "string"),
    "list": ("array",),
}


def build_value_schema(section: str, record: catalog.Entry) -> Schema:
    """Return the schema of an estimator argument, an ATC flag, or a plain framework setting."""
    described = build_description(section, record.name)
    if isinstance(record, catalog.Flag) and record.deprecated:
        described["deprecated"] = True
    if record.default is not None:
        described["default"] = record.default
    if isinstance(record, catalog.Flag) and record.choices and _find_taken_habits(record):
        return described | build_choice_schema(
            [{"enum": list(record.choices)}, _build_word_schema(record, record.choices)]
        )
    if record.choices:
        return described | {"enum": list(record.choices)}
    kind = {"int": "integer", "bool": "boolean", "float": "number"}.get(record.kind, "string")
    if kind in ("integer", "number"):
        return described | {"type": kind, **build_bounds(record.minimum, record.maximum)}
    if isinstance(record, catalog.Flag) and record.kind == "chip":
        return described | {
            "anyOf": [
                _build_chip_schema(),
                {"type": "string", "not": {"type": "string", "pattern": "^Ascend"}},
            ]
        }
    patterns = _list_read_patterns(record) if isinstance(record, catalog.Flag) else []
    return (
        described | {"type": kind} if kind != "string" else described | build_text_schema(patterns)
    )


def build_argument_schema(section: str, record: catalog.Setting, fields: Schema) -> Schema:
    """Return the schema of a program's argument, or of a field in its JSON."""
    schema = build_description(section, record.name)
    kinds = {*(record.kinds or (record.kind,)), *(record.items or record.kind).split("|")}
    if "any" in kinds:
        return schema
    is_open = record.unlimited or record.name.endswith("backend")
    if record.choices and kinds == {"str"} and not (is_open or "0" in record.choices):
        return schema | {"enum": [*dict.fromkeys((*record.choices, "", "None"))]}
    types = {name for kind in kinds for name in _ARGUMENT_TYPES[kind]}
    if record.bare or record.repeated or "." in record.name:  # pydantic converts
        types |= {"array", "boolean", "number", "string"}
    bounds = {} if record.unlimited else build_bounds(record.minimum, record.maximum)
    keywords = {
        "integer": bounds,
        "number": bounds,
        "object": {"properties": fields, "additionalProperties": not record.closed},
    }
    if kinds <= {"int", "float"}:  # None, nan, inf
        keywords["string"] = {"pattern": "[0-9nN]|auto|^$"}
    return schema | {"anyOf": [{"type": name, **keywords.get(name, {})} for name in sorted(types)]}


def build_bounds(low: float | None, high: float | None) -> Schema:
    """Return the bounds of a number that are set."""
    return {
        name: bound for name, bound in (("minimum", low), ("maximum", high)) if bound is not None
    }


def build_description(section: str, name: str, examples: bool = True) -> Schema:
    """Return the description of a setting, followed by its values and their meanings."""
    text = catalog.find_record_texts(section, name)
    lines = [" ".join(filter(None, (text.get("summary"), text.get("doc"))))]
    lines += [f"{value}: {meaning}" for value, meaning in text.get("value_docs", {}).items()]
    described: Schema = {"description": "\n".join(filter(None, lines))} if any(lines) else {}
    if examples and (example := text.get("example")) is not None:
        described["examples"] = [example]
    return described
