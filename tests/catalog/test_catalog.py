"""Every row of the catalogue: its fields, the names in it, and its built form."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from typing import Any

import pytest

from npuprof import catalog
from npuprof.catalog import build, condition, products, releases
from npuprof.catalog.launchers import FACTS
from npuprof.catalog.records import parse_release_version
from npuprof.catalog.sidecars import SIDECARS
from npuprof.catalog.structures import STRUCTURES
from npuprof.checks.setting_values import find_setting_faults
from npuprof.document import keys
from npuprof.model import SCENARIOS
from support.building import REPOSITORY

SOURCE = REPOSITORY / "npuprof/catalog"
OPTIONS = catalog.record_names()
RELEASES = releases.load_releases()
FAMILIES = tuple(products.load_products())
SECTIONS = {
    "options": catalog.find_option,
    "env": catalog.find_variable,
    "estimator": catalog.find_argument,
    "atc": catalog.find_flag,
}
ROWS = [(section, name) for section in SECTIONS for name in catalog.record_names(section)]
LEVELS = {"", "init", "init+session", "session", "graph", "adapter", "adapter+session"}
TYPES = {"b": bool, "i": int, "s": str}


def option(name: str) -> catalog.Option:
    found = catalog.find_option(name)
    assert found is not None
    return found


def toml(name: str) -> dict[str, Any]:
    return tomllib.loads((SOURCE / name).read_text())


def test_every_page_is_listed_and_no_name_stands_twice() -> None:
    assert {path.stem for path in (SOURCE / "options").glob("*.toml")} == set(build.PAGES)
    seen = Counter(name for page in build.PAGES for name in toml(f"options/{page}.toml"))
    assert [name for name, count in seen.items() if count > 1] == []


def test_what_a_release_did_to_an_option_is_told_by_the_release_alone() -> None:
    dated = {
        "choices_since",
        "choices_until",
        "default_since",
        "deprecated_since",
        "meanings_since",
    }
    records = [row for page in build.PAGES for row in toml(f"options/{page}.toml").items()]
    assert len(records) == len(catalog.record_names())
    assert [(name, "see releases.toml") for name, record in records if dated & record.keys()] == []


#: What a value can be, by section.
KINDS = {
    "options": {
        "bool",
        "int",
        "enum",
        "string",
        "pattern",
        "list",
        "json",
        "path-file",
        "path-dir",
    },
    "env": {
        "bool01",
        "bool",
        "flag",
        "int",
        "float",
        "str",
        "path",
        "pathlist",
        "list",
        "json",
        "pairs",
    },
    "atc": {"bool", "int", "str", "path", "chip"},
    "estimator": {"bool", "int", "str", "path", "object"},
}


@pytest.mark.parametrize(("section", "name"), ROWS)
def test_every_row_says_what_it_is_and_names_its_source(section: str, name: str) -> None:
    text = catalog.find_record_texts(section, name)
    assert text["summary"].endswith((".", "?"))
    assert len(text["summary"]) < 200
    assert text["source"], "no source"
    assert all(isinstance(source, str) and source for source in text["source"])
    record = SECTIONS[section](name)
    assert record is not None
    assert record.kind in KINDS[section]
    entries = [text["summary"], text.get("doc", ""), text.get("doubt", "")]
    assert not any(re.search(r"\bTODO\b|\bFIXME\b", entry) for entry in entries)


#: The fields of the TOML files that are not fields of records: prose, and what the rules and states
#: are built from.
PROSE = {
    "summary",
    "doc",
    "default_note",
    "value_docs",
    "source",
    "checked",
    "doubt",
    "confidence",
    "example",
    "ge_option",
    "ge_level",
    "meanings_since",
    "product_notes",
    "format",
    "precedence",
    "when",
    "related_option",
    "replaces",
    "experimental_note",
    "python_default",
    "type",
    "ge_key",
    "env",
    "tf2",
    "conflicts",
    "requires",
    "file",
    "separator",
    "experimental",
    "undocumented",
    "role",
    "products_not",
    "twin_direct",
    "deprecated_unless",
    "empty_unless",
    "unread_while",
    "read_by",
    "overwritten_by",
    "why_unread",
    "audience",
}


def test_no_record_has_a_field_that_nobody_reads() -> None:
    named = [
        (section.name, name)
        for section in catalog.load_sections().values()
        for name in section.names
    ]
    unread = [(*place, catalog.find_record_texts(*place).keys() - PROSE) for place in named]
    assert [row for row in unread if row[2]] == []


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_whole(name: str) -> None:
    record = option(name)
    assert record.field in (None, "b", "i", "s")
    assert record.level in LEVELS
    assert set(record.scenarios) <= set(SCENARIOS)
    assert not record.structure or record.structure in {**STRUCTURES, **SIDECARS}
    assert record.minimum is None or record.maximum is None or record.minimum <= record.maximum
    for pattern in filter(None, (record.pattern, record.lax_pattern)):
        re.compile(pattern)
    if record.field:
        assert record.risk, "no risk named"
        assert record.level or record.page == "removed"
        assert record.spelling.get("session", name) == name
    assert set(record.spelling) <= {"session", "run_config", "global_options", "atc"}
    if record.replaced_by:
        for key in re.findall(r"[A-Za-z_][\w.]*", record.replaced_by)[:1]:
            assert any(SECTIONS[section](key.removeprefix("env.")) for section in SECTIONS), (
                f"replacement {key} does not exist"
            )


@pytest.mark.parametrize("name", OPTIONS)
def test_the_values_a_record_names_fit_its_field(name: str) -> None:
    record, texts = option(name), catalog.find_record_texts("options", name)
    named = [record.default, record.default_training, record.default_inference]
    named += [*record.default_by_product.values(), *record.default_since.values()]
    defaults = [value for value in named if value is not None]
    assert {type(value) for value in (*record.choices, *defaults) if record.field} <= {
        TYPES.get(record.field or "")
    }
    assert [value for value in defaults if record.choices and value not in record.choices] == []
    bounds = (
        -(2**63) if record.minimum is None else record.minimum,
        2**63 if record.maximum is None else record.maximum,
    )
    assert [
        value for value in defaults if type(value) is int and not bounds[0] <= value <= bounds[1]
    ] == []
    faults = find_setting_faults(name, texts["example"]) if "example" in texts else []
    assert [fault for fault in faults if fault.severity == "error"] == []
    known = {
        str(value) for value in (*record.choices, *record.doubtful_values, *record.choices_until)
    }
    assert {*texts.get("value_docs", {})} <= known or not record.choices


@pytest.mark.parametrize("name", OPTIONS)
def test_the_releases_and_products_of_an_option_exist(name: str) -> None:
    record = option(name)
    assert len(record.states) == len(RELEASES)
    assert set(record.states) <= set("Y.?")
    assert bool(record.field) == ("Y" in record.states), "read, but nowhere"
    named = [*record.default_since, *record.choices_since.values(), *record.choices_until.values()]
    for letters in filter(None, (record.deprecated, record.no_effect)):
        assert len(letters) == len(RELEASES)
        assert "Y" in letters
        assert set(letters) <= set("Y.")
    text = catalog.find_record_texts("options", name)
    named += text.get("meanings_since", {})
    assert [release for release in named if release not in RELEASES] == []
    families = [
        *record.products,
        *record.default_by_product,
        *record.product_range,
        *record.product_count,
    ]
    families += [family for allowed in record.value_products.values() for family in allowed]
    assert [family for family in families if family not in FAMILIES] == []
    for low, high in (*record.product_range.values(), *record.product_count.values()):
        assert low <= high
    for table in (record.value_products, record.choices_since):
        known = {
            str(choice)
            for choice in (*record.choices, *record.doubtful_values, *record.choices_until)
        }
        if record.choices:
            assert table.keys() <= known, table


def test_no_two_options_share_a_name_on_a_surface() -> None:
    for surface in ("session", "run_config", "global_options", "atc"):
        spelled = Counter(
            option(name).spelling[surface] for name in OPTIONS if surface in option(name).spelling
        )
        assert [name for name, count in spelled.items() if count > 1] == [], surface


def test_the_variables_of_options_are_unique_in_any_case() -> None:
    assert [
        name for name, count in Counter(name.upper() for name in OPTIONS).items() if count > 1
    ] == []
    assert not {f"NPUPROF_{name.upper()}" for name in OPTIONS} & {
        f"NPUPROF_{name}" for name in (*catalog.PROVENANCE_VARIABLES, *catalog.CONTROL_VARIABLES)
    }
    assert all(
        re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
        for name in (*OPTIONS, *catalog.record_names("env"))
    )


def test_what_an_option_names_on_other_surfaces_exists() -> None:
    flags, variables = 0, 0
    for name, record in ((name, option(name)) for name in OPTIONS):
        if spelled := record.spelling.get("atc"):
            flag = catalog.find_flag(spelled.removeprefix("--"))
            assert flag is not None, name
            assert flag.twin == name
            plain = {
                value: value
                for value in map(str, record.choices)
                if value not in record.doubtful_values
            }
            assert not flag.choices or {
                str(value) for value in record.surface_values.get("atc", plain).values()
            } <= {*map(str, flag.choices)}
            flags += 1
        for variable in (*record.env, *catalog.load_equivalent_variables().get(name, ())):
            found = catalog.find_variable(variable)
            assert found is not None, variable
            assert variable in record.env or found.session_option == name
            variables += 1
    assert flags > 30
    assert variables > 20


@pytest.mark.parametrize("name", catalog.record_names("env"))
def test_a_variable_is_whole(name: str) -> None:
    record = catalog.find_variable(name)
    assert record is not None
    assert record.freeze in ("ok", "site", "launcher", "never")
    assert all(isinstance(choice, str) for choice in record.choices), (
        "environment variables are strings"
    )
    assert set(record.products) <= set(FAMILIES)
    assert not record.launcher or record.launcher in FACTS
    assert not record.session_option or catalog.find_option(record.session_option)
    if record.default is not None:
        errors = [
            fault
            for fault in find_setting_faults(f"env.{name}", str(record.default))
            if fault.severity == "error"
        ]
        assert errors == []
    if record.replaced_by and record.framework == "cann":
        assert any(
            SECTIONS[section](re.split(r"[ ,(]", record.replaced_by)[0]) for section in SECTIONS
        ), record.replaced_by
    if record.session_option and record.twin_values:
        known = option(record.session_option)
        spoken = {str(choice).lower() for choice in known.choices} or {"true", "false"}
        assert set(record.twin_values) <= spoken | {str(choice) for choice in known.choices}


@pytest.mark.parametrize("name", catalog.record_names("atc"))
def test_a_flag_is_whole(name: str) -> None:
    record = catalog.find_flag(name)
    assert record is not None
    without = catalog.find_record_texts("atc", name).get("products_not", ())
    assert {*record.products, *without} <= set(FAMILIES)
    assert not record.twin or catalog.find_option(record.twin), record.twin
    assert record.default is None or not record.choices or record.default in record.choices
    if record.pattern:
        re.compile(record.pattern)
    if record.replaced_by:
        assert catalog.find_flag(record.replaced_by.removeprefix("--")) or catalog.find_option(
            record.replaced_by
        ), record.replaced_by
    for other in (*record.requires, *record.conflicts):
        names = re.findall(r"--([a-z][\w]*)", other) or [re.split(r"[ =]", other)[0]]
        assert any(catalog.find_flag(name) or catalog.find_option(name) for name in names), other


def test_releases_are_found_by_their_names_and_name_their_source() -> None:
    rows = toml("releases.toml")["release"]
    assert len(set(RELEASES)) == len(RELEASES)
    assert all(row["source"] and row["confidence"] for row in rows)
    assert all(parse_release_version(name) for name in RELEASES)
    assert [name for name in RELEASES if releases.find_release(name) != name] == []


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("8.0", "8.0.0"),
        ("8.0.0", "8.0.0"),
        ("CANN 8.0.0", "8.0.0"),
        ("8.0.RC1", "8.0.RC1"),
        ("8.0.rc1", "8.0.RC1"),
        ("9.0", "9.0.0"),
        ("5.1.RC2", "5.1.RC2"),
        ("20.1", "20.1"),
        ("6.0.1", "6.0.1"),
        ("8", "8.0.0"),
        ("8.0.9", None),
        ("", None),
        ("x", None),
        ("8.0.0.0", None),
        ("11.0", None),
    ],
)
def test_a_release_is_found_as_people_write_it(written: str, found: str | None) -> None:
    assert releases.find_release(written) == found


@pytest.mark.parametrize(
    ("spec", "inside", "outside"),
    [
        (">=8.0,<10", ("8.0.0", "8.1.RC1", "9.2.0"), ("7.0.0", "20.1", "8.0.RC3")),
        (">=8.0.RC1,<8.0", ("8.0.RC1", "8.0.RC3"), ("8.0.0", "7.0.0")),
        ("8.0.0", ("8.0.0",), ("8.0.RC3", "8.1.RC1")),
        ("==9.0.0", ("9.0.0",), ("9.1.0",)),
        ("!=9.0.0", ("9.1.0", "20.1"), ("9.0.0",)),
        ("<5.0.1", ("20.1", "20.2"), ("5.0.1",)),
        (">20.1,<=5.0.2", ("20.2", "5.0.1", "5.0.2"), ("20.1", "5.0.3")),
        (" >= 8.0 , < 9 ", ("8.5.0",), ("9.0.0",)),
    ],
)
def test_a_range_holds_what_people_expect(
    spec: str, inside: tuple[str, ...], outside: tuple[str, ...]
) -> None:
    within = releases.find_releases_in_range(spec)
    assert within is not None
    assert set(inside) <= set(within)
    assert not set(outside) & set(within)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_product_is_whole(family: str) -> None:
    record = products.load_products()[family]
    assert record["title"]
    assert record["source"]
    assert all(
        line.startswith(family) or family == "ascend-950" for line in record.get("lines", ())
    )
    for pattern in record["chips"]:
        re.compile(pattern)


@pytest.mark.parametrize(
    ("chip", "family"),
    [
        ("Ascend910B2", "atlas-a2"),
        ("Ascend910B4-1", "atlas-a2"),
        ("Ascend910_9391", "atlas-a3"),
        ("Ascend910_9589", "ascend-950"),
        ("Ascend910B", "atlas-training"),
        ("Ascend910A", "atlas-training"),
        ("Ascend910ProB", "atlas-training"),
        ("Ascend310P3", "atlas-inference"),
        ("Ascend310B1", "atlas-200i-500-a2"),
        ("Ascend310", "atlas-200-300-500"),
        ("Ascend910X", None),
        ("ascend310", None),
    ],
)
def test_a_chip_belongs_to_one_family(chip: str, family: str | None) -> None:
    assert products.find_product(chip) == (chip if family else None)
    assert products.find_product_family(chip) == (family or chip)
    matching = [
        name
        for name, record in products.load_products().items()
        if any(re.fullmatch(pattern, chip) for pattern in record["chips"])
    ]
    assert matching == ([family] if family else [])


# -- rules ----------------------------------------------------------------------------------------

RULES = toml("rules.toml")


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule["code"]) for rule in RULES["rule"]])
def test_a_rule_is_whole(rule: dict[str, Any]) -> None:
    assert re.fullmatch(r"NP3\d{2,3}", rule["code"])
    assert re.fullmatch(r"[a-z0-9-]+", rule["name"])
    assert rule["severity"] in ("error", "warning", "info")
    assert rule["source"]
    assert rule["enforced"] in ("adapter", "estimator", "docs", "framework")
    assert rule["options"]
    for name in rule["options"]:
        parsed = keys.parse_key(name)
        assert parsed is not None
        is_known = catalog.find_record(*catalog.find_record_place(*parsed))
        assert is_known or catalog.find_variable(name), name
    assert rule["bad"] != rule["good"]


@pytest.mark.parametrize("number", range(len(RULES.get("advice", ()))))
def test_advice_is_whole(number: int) -> None:
    advice = RULES["advice"][number]
    assert advice["text"].endswith(".")
    assert advice["source"]
    assert advice["options"]
    for name in advice["options"]:
        assert any(find(name.split(".", 1)[-1]) for find in SECTIONS.values()), name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "f(x)",
        "a[0] == 1",
        "lambda: 1",
        "a == b == c",
        "__import__('os')",
        "a is None",
        "[x for x in a]",
        "a if b else c",
        "x := 1",
        "a ** 2",
        "yield",
        "a == {}",
        "a == [1]",
        "f'{a}' == 1",
        "(" * 300 + "a" + ")" * 300,
    ],
)
def test_what_is_no_condition_is_refused_and_never_run(text: str) -> None:
    with pytest.raises((ValueError, SyntaxError, MemoryError, RecursionError)):
        condition.parse_condition(text)


@pytest.mark.parametrize(
    ("text", "settings", "answer"),
    [
        ("a is set", {"a": 0}, True),
        ("a is set", {}, False),
        ("a is unset", {}, True),
        ("not a is set", {"a": 1}, False),
        ("a == 1", {"a": 1}, True),
        ("a == 1", {}, None),
        ("a != 1", {}, None),
        ("a in (1, 2)", {"a": 2}, True),
        ("a not in (1,)", {"a": 2}, True),
        ("a > 1", {"a": "x"}, None),
        ("a == true", {"a": True}, True),
        ("a.b == 'x'", {"a.b": "x"}, True),
        ("a == -1", {"a": -1}, True),
        ("a is set and b == 1", {}, False),
        ("a is unset or b == 1", {}, True),
        ("a is set or b == 1", {}, None),
        ("a is unset and b == 1", {}, None),
        ("a > b * 1000", {"a": 1001, "b": 1}, True),
        ("a > b * 1000", {"a": 1000, "b": 1}, False),
        ("a > b * 1000", {"a": 1}, None),
        ("a < b + 32", {"a": 1031, "b": 1000}, True),
        ("a < b + 32", {"a": 1032, "b": 1000}, False),
        ("a % b != 0", {"a": 8, "b": 3}, True),
        ("a % b != 0", {"a": 8, "b": 0}, None),
        ("'x' in a", {"a": ["x"]}, True),
        ("'x' in a", {}, None),
        ("a < 2 and (b is set or not c == 1)", {"a": 1, "c": 2}, True),
    ],
)
def test_conditions_have_three_answers(
    text: str, settings: dict[str, Any], answer: bool | None
) -> None:
    def lookup(path: tuple[str, ...]) -> tuple[bool | None, Any]:
        key = ".".join(path)
        return key in settings, settings.get(key)

    assert condition.evaluate_condition(condition.parse_condition(text), lookup) is answer


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in catalog.record_names("env")
        if (v := catalog.find_variable(name)) and v.pattern
    ],
)
def test_a_variable_with_a_format_has_an_example_of_it(name: str) -> None:
    variable = catalog.find_variable(name)
    assert variable is not None
    assert re.fullmatch(variable.pattern, catalog.find_record_texts("env", name)["example"])
