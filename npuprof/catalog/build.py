"""Converts the TOML records into plain Python values. It does not validate: tests do.

Wheels do not contain this module. In a checkout or an editable install, ``system.checkout`` calls
it after each change.
"""

from __future__ import annotations

import marshal
import tomllib
from itertools import accumulate
from pathlib import Path
from typing import Any

from npuprof.catalog import condition
from npuprof.catalog.records import (
    KINDS,
    Axis,
    Packed,
    Rule,
    Setting,
    parse_framework_version,
    parse_release_version,
)
from npuprof.document import keys
from npuprof.model import TomlTable, did_you_mean
from npuprof.system import group_pairs

HERE = Path(__file__).parent
#: The pages in the order in which their options are printed.
PAGES = (
    "basic",
    "memory",
    "dynamic-shape",
    "mixed-computing",
    "debugging",
    "accuracy-tuning",
    "accuracy-comparison",
    "performance-basic",
    "performance-advanced",
    "profiling",
    "aoe",
    "build",
    "data-augmentation",
    "exception-remedy",
    "experimental",
    "deprecated",
    "undocumented",
    "removed",
)
_RENAMED_FIELDS = {"min": "minimum", "max": "maximum"}


def build_parts() -> TomlTable:
    """Return every part of the built form by module name."""
    history = _read_toml_file("releases.toml")
    releases = history["release"]
    frameworks = _read_frameworks()
    described = _describe_sections(frameworks)
    sections = _read_sections(releases, frameworks, described)
    axes = _build_axes(releases, frameworks)
    for section, records in sections.items():
        for name, record in records.items():
            try:
                records[name] = _date_record(section, record, axes)
            except ValueError as error:
                raise ValueError(f"{section}: {name}: {error}") from None
    _find_successors(sections, axes)
    options = sections["options"]
    parts: TomlTable = {"texts": {}}
    for section, records in sections.items():
        fields, texts = _split_texts(section, records)
        parts[section], parts["texts"][section] = _pack_records(fields), _pack_records(texts)
    programs = [section for section, fields in described.items() if fields.get("launch")]
    parts["flags"] = {section: _list_flags(sections[section]) for section in programs}
    for name in ("classes", "wire", "attributes", "reads", "launchers", "argument_classes"):
        parts[name] = _freeze_lists(_read_toml_file(f"{name}.toml"))
    parts["axes"] = {
        "first": _find_first_releases(options),
        "products": _read_toml_file("products.toml"),
        "releases": axes["cann"].releases,
        "sections": _freeze_lists(described),
    }
    parts["names"] = _read_toml_file("names.toml")
    parts["readers"] = {
        name: habits
        for file in _read_toml_file("readers.toml").values()
        for name, habits in file.items()
        if habits
    }
    parts["frameworks"] = {
        name: _index_framework(files["framework"]) for name, files in _list_axes(frameworks)
    }
    parts["newest"] = _find_newest_releases(releases, frameworks)
    parts["titles"] = {name: files["framework"]["title"] for name, files in frameworks.items()}
    parts["pins"] = {
        name: files["framework"]["pins"]
        for name, files in frameworks.items()
        if "pins" in files["framework"]
    }
    parts["pages"] = _read_toml_file("pages.toml")
    parts["error_codes"] = _freeze_lists(_read_toml_file("error_codes.toml")["error"])
    others = _read_toml_file("variables.toml")
    parts["variables"] = {
        **_index_variables(others["variables"]),
        "complete_prefixes": tuple(others["complete_prefixes"]),
        "misspelt": others["misspelt"],
        "option_calls": _list_option_calls(others["options"], sections, described),
    }
    names = {"product", "scenario"}.union(
        (
            keys.format_full_key(section, name.partition(".")[0])
            for section, records in sections.items()
            for name in records
        ),
        map("{}.".format, programs),  # any argument
    )
    parts["migrations"] = _build_migrations(history, names)
    parts["rules"], parts["rule_texts"] = _build_rules(
        _read_toml_file("rules.toml"), options, sections["env"], names, axes
    )
    pages = parts["pages"] | parts["rule_texts"]["rules"]
    parts["severities"] = {code: page["severity"] for code, page in pages.items()}
    return parts


def _read_sections(
    releases: list[TomlTable],
    frameworks: dict[str, TomlTable],
    described: dict[str, TomlTable],
) -> dict[str, TomlTable]:
    """Return the records of each section by name, with the changes of all releases applied."""
    sections = {
        "options": _read_options(releases),
        "env": _list_variables(frameworks),
        "atc": _read_toml_file("atc.toml"),
        "estimator": _read_toml_file("estimator.toml"),
    }
    for name, files in frameworks.items():
        if name in described:
            sections[name] = _list_rows(files, "settings", "settings")
    for release in releases:
        for section in ("env", "atc", "estimator"):
            records = sections[section]
            for name, change in release.get(section, {}).items():
                records[name] = _merge_fields(records.get(name, {}), change)
    _pair_flags(sections["atc"], sections["options"])
    return sections


def _split_texts(section: str, records: TomlTable) -> tuple[TomlTable, TomlTable]:
    """Return the fields that the records of a section have in code, and their other fields."""
    known = KINDS.get(section, Setting)._fields
    fields: TomlTable = {}
    texts: TomlTable = {}
    for name, record in records.items():
        fields[name], texts[name] = {}, {}
        for toml_name, value in record.items():
            field = _RENAMED_FIELDS.get(toml_name, toml_name)
            if field in known:
                fields[name][field] = _freeze_lists(value)
            else:
                texts[name][field] = value
    return fields, texts


def _list_flags(records: TomlTable) -> TomlTable:
    """Return the argument of each flag of a program, and whether the flag switches it on."""
    flags: TomlTable = {}
    for name, record in records.items():
        if "." not in name:
            flags |= dict.fromkeys((f"--{name}", *record.get("aliases", ())), (name, True))
            flags |= dict.fromkeys(record.get("negations", ()), (name, False))
    return flags


def _list_option_calls(
    rows: list[TomlTable],
    sections: dict[str, TomlTable],
    described: dict[str, TomlTable],
) -> dict[str, tuple[str, str]]:
    """Return the section and the call of each option that scripts export without effect."""
    calls = {
        name: (row["of"], row["call"].replace("NAME", name))
        for row in rows
        for name in row["names"]
    }
    for section, fields in described.items():
        if "option_call" not in fields:
            continue
        for name, record in sorted(sections[section].items()):
            if name.startswith("ACL_") and "call" not in record and name not in sections["env"]:
                calls[name] = section, fields["option_call"].replace("NAME", name)
    return calls


def _read_toml_file(name: str) -> TomlTable:
    try:
        return tomllib.loads((HERE / name).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name}: {error}") from None


def _pack_records(records: TomlTable) -> Packed:
    """Return records as bytes that can be unpacked one by one, equal for equal records."""
    # version 2 is the newest without references, which depend on what else refers to an object
    packed = [marshal.dumps(record, 2) for record in records.values()]
    return (
        " ".join(records),
        tuple(accumulate(map(len, packed[:-1]), initial=0))[: len(packed)],
        b"".join(packed),
    )


def _read_frameworks() -> dict[str, TomlTable]:
    """Return the files of each framework by stem (``framework``, ``settings``), in output order."""
    files: dict[str, TomlTable] = {}
    for path in sorted((HERE / "frameworks").glob("*/*.toml")):
        files.setdefault(path.parent.name, {})[path.stem] = _read_toml_file(
            str(path.relative_to(HERE))
        )
    return dict(sorted(files.items(), key=lambda item: int(item[1]["framework"]["place"])))


def _describe_sections(frameworks: dict[str, TomlTable]) -> dict[str, TomlTable]:
    """Return the fields of each section that presets can have, in catalogue order."""
    sections = _read_toml_file("sections.toml")
    for name, files in frameworks.items():
        if "section" in files:
            sections[name] = {
                "title": files["framework"]["title"],
                "prefix": f"{name}.",
                "dotted": True,
                **files["section"],
            }
    return sections


def _list_axes(frameworks: dict[str, TomlTable]) -> list[tuple[str, TomlTable]]:
    """Return the frameworks with known releases, those with a section first."""
    return [
        (name, files)
        for name, files in sorted(frameworks.items(), key=lambda item: "section" not in item[1])
        if "releases" in files["framework"]
    ]


def _build_axes(releases: list[TomlTable], frameworks: dict[str, TomlTable]) -> dict[str, Axis]:
    """Return the axes of releases by name: of CANN, and of the frameworks."""
    names = [release["name"] for release in releases]
    keys_by_name = {name: key for name in names if (key := parse_release_version(name))}
    return {
        name: Axis(parse_framework_version, **_index_framework(files["framework"]))
        for name, files in _list_axes(frameworks)
    } | {"cann": Axis(parse_release_version, keys_by_name)}


def _date_record(section: str, record: TomlTable, axes: dict[str, Axis]) -> TomlTable:
    """Return a record with its sets of releases as letters, as ``records`` describes them.

    Raises ValueError for an unknown release.
    """
    axis = axes[_find_axis(section, record, axes)]
    dated = dict(record)
    if isinstance(reads := dated.pop("reads", None), str):
        # a release outside of what documentation lists may read the setting all the same
        is_certain = not axis.documented or reads == "never"
        dated["states"] = axis.parse_reads(reads, "." if is_certain else "?")
    for field in ("deprecated", "no_effect", "unlimited", "always_set"):
        if field in record:
            dated[field] = axis.parse_reads(record[field])
    for field in ("flag_reads", "choice_reads"):
        if field in record:
            dated[field] = {key: axis.parse_reads(text) for key, text in record[field].items()}
    if surfaces := dated.pop("reads_on", {}):
        dated["surface_states"] = {
            surface: axis.parse_reads(reads) for surface, reads in surfaces.items()
        }
    if "replaced_by" in record:
        dated["replaced_by"] = record["replaced_by"]["key"]
        if first := record["replaced_by"].get("from"):
            dated["successor_states"] = axis.parse_reads(f"{first}..")
    return dated


def _find_newest_releases(
    releases: list[TomlTable], frameworks: dict[str, TomlTable]
) -> dict[str, tuple[str, str]]:
    """Return the newest release of each axis, and its date as text, empty if unknown."""
    newest = {"cann": (releases[-1]["name"], releases[-1])}
    for name, files in _list_axes(frameworks):
        newest[name] = list(files["framework"]["releases"].items())[-1]
    return {axis: (name, str(row.get("date", ""))) for axis, (name, row) in newest.items()}


def _find_axis(section: str, record: TomlTable, axes: dict[str, Axis]) -> str:
    """Return the axis of a record's releases: its own, or that of its framework or section."""
    name: str = record.get("axis") or record.get("framework", section)
    return name if name in axes else "cann"


def _find_successors(sections: dict[str, TomlTable], axes: dict[str, Axis]) -> None:
    """Set the ``successor_states`` of records whose successor has releases on the same axis."""
    for section, records in sections.items():
        for record in records.values():
            key = record.get("replaced_by", "")
            other, _, name = key.partition(".")
            candidates = (section, key.removeprefix("--")), (other, name), ("options", key)
            for candidate, plain in candidates if key else ():
                successor = _merge_rows(sections.get(candidate, {}), plain)
                if successor and "successor_states" not in record:
                    axis = _find_axis(candidate, successor, axes)
                    is_same = axis == _find_axis(section, record, axes)
                    record["successor_states"] = successor["states"] if is_same else ""


def _merge_rows(records: TomlTable, name: str) -> TomlTable:
    """Return the record of a name with its ``states``; a table is read where any key of it is."""
    keys = [name] if name in records else [key for key in records if key.startswith(f"{name}.")]
    letters = [records[key].get("states", "") for key in keys]
    states = "".join(map(max, zip(*letters, strict=True))) if all(letters) else ""
    return {**records[keys[0]], "states": states} if keys else {}


def _list_variables(frameworks: dict[str, TomlTable]) -> TomlTable:
    """Return the variables of all frameworks, each with the first framework that reads it."""
    return {
        name: {**record, "framework": framework}
        for framework, files in frameworks.items()
        for name, record in _list_rows(files, "variables", "env").items()
    }


def _list_rows(files: TomlTable, stem: str, kind: str) -> TomlTable:
    """Return the rows by hand of a framework, and those that ``[generated]`` completes.

    A name in ``groups.toml`` stands for all keys that begin with it.
    """
    by_hand = files.get(stem, {})
    common = files["framework"].get("generated", {}).get(kind)
    if not common:
        return {
            name: {**row, **_find_generated(files, kind, name)} for name, row in by_hand.items()
        }
    grouped = {}
    for group in files.get("groups", {}).get(kind, ()):
        fields = {field: value for field, value in group.items() if field != "names"}
        grouped.update(dict.fromkeys(group["names"], fields))
    prefix = f"{kind}."
    found = {
        k.removeprefix(prefix): r for k, r in files["upstream"].items() if k.startswith(prefix)
    }
    return {
        name: {
            **common,
            "summary": common["summary"].replace("NAME", name.partition(".")[0]),
            **grouped.get(name.partition(".")[0], {}),
            **found.get(name, {}),
            **by_hand.get(name, {}),
        }
        for name in {**by_hand, **found}
    }


def _find_generated(files: TomlTable, kind: str, name: str) -> TomlTable:
    """Return who reads a setting, and with which defaults, by the sources (``upstream.toml``).

    The other fields of that file are only compared with the rows by hand.
    """
    found: TomlTable = files.get("upstream", {}).get(f"{kind}.{name}", {})
    fields = ("reads", "deprecated", "default_since")
    return {field: found[field] for field in fields if field in found}


def _index_framework(record: TomlTable) -> TomlTable:
    """Return the releases of a framework with sort keys, and its packages with their releases."""
    packages = {
        package: release
        for release, names in record.get("packages", {}).items()
        for package in names
    }
    return {
        "documented": record.get("documented", False),
        "runs_on": {
            name: row["runs_on"] for name, row in record["releases"].items() if "runs_on" in row
        },
        "releases": {
            name: key for name in record["releases"] if (key := parse_framework_version(name))
        },
        "packages": {
            name: (parse_framework_version(name), release) for name, release in packages.items()
        },
    }


def _index_variables(rows: list[TomlTable]) -> TomlTable:
    """Return what ``variables.toml`` has on variables of other programs, as ``execution`` reads it.

    ``effects`` pairs each effect on code execution, empty for none, with its names;
    ``effects_by_prefix`` is by prefix: a prefix never makes a name harmless. ``numbers`` are
    variables with numbers, ``forms`` patterns by name. ``protections`` has what is lost and the
    values that keep it, by name; ``protections_by_suffix`` has suffixes in capitals.
    """
    effects = []
    index: TomlTable = {
        "effects_by_prefix": {},
        "numbers": [],
        "forms": {},
        "protections": {},
        "protections_by_suffix": {},
    }
    for row in rows:
        effects.append((row["executes"] or "", " ".join(n for n in row["names"] if "*" not in n)))
        for name in row["names"]:
            if row["executes"] and name.endswith("*"):
                index["effects_by_prefix"][name.removesuffix("*")] = row["executes"]
            if row.get("number"):
                index["numbers"].append(name)
            if "form" in row:
                index["forms"][name] = row["form"]
            if "protects" in row:
                by = "protections_by_suffix" if name.startswith("*") else "protections"
                index[by][name.removeprefix("*")] = row["protects"], row.get("kept_by", ())
    frozen: TomlTable = _freeze_lists({"effects": effects, **index})
    return frozen


def _find_first_releases(options: TomlTable) -> dict[str, int]:
    """Return, by surface with states of its own, the first release that may read an option."""
    first: dict[str, int] = {}
    for record in options.values():
        for surface, states in record.get("surface_states", {}).items():
            age = len(states) - len(states.lstrip("."))
            first[surface] = min(first.get(surface, age), age)
    return first


def _freeze_lists(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_freeze_lists, value))
    if isinstance(value, dict):
        return {key: _freeze_lists(item) for key, item in value.items()}
    return value


def _read_options(releases: list[TomlTable]) -> TomlTable:
    """Return the options page by page, with the changes of all releases applied."""
    pages = {page: _read_toml_file(f"options/{page}.toml") for page in PAGES}
    page_by_name = {name: page for page, records in pages.items() for name in records}
    for release in releases:
        for name, change in release.get("options", {}).items():
            if name in page_by_name:
                _change_option(pages[page_by_name[name]][name], release["name"], dict(change))
            elif "page" in change:
                page_by_name[name] = change["page"]
                pages[change["page"]][name] = {"reads": f"{release['name']}..", **change}
            else:
                raise ValueError(
                    f"releases.toml: {release['name']} changes "
                    f"{name}, which is on no page, and names none"
                )
    return {
        name: {"page": page, **record}
        for page, records in pages.items()
        for name, record in records.items()
    }


#: The kind of a flag that has an equivalent option of some kind; text by default.
_FLAG_KINDS = {"int": "int", "bool": "bool", "path-file": "path", "path-dir": "path"}


def _pair_flags(flags: TomlTable, options: TomlTable) -> None:
    """Set the equivalent option of flags.

    A flag without its own record gets the data of its option.
    """
    for name, record in options.items():
        if flag := record.get("spelling", {}).get("atc", "").removeprefix("--"):
            inherited = {
                "summary": record["summary"],
                "kind": _FLAG_KINDS.get(record["kind"], "str"),
                "source": record["source"],
            }
            flags[flag] = {**flags.get(flag, inherited), "twin": name}


def _change_option(record: TomlTable, release: str, change: TomlTable) -> None:
    """Apply a release's change to the record of an option."""
    for value in change.pop("choices", ()):
        record.setdefault("choices_since", {})[str(value)] = release
        if value not in record["choices"]:
            record["choices"].append(value)
    for value in change.pop("refuses", ()):
        record.setdefault("choices_until", {})[str(value)] = release
        record["choices"].remove(value)
    if "default" in change:
        first = record["reads"].partition("..")[0]
        born = {first: record["default"]} if "default" in record else {}
        record.setdefault("default_since", born)[release] = change["default"]
    for mark in ("deprecated", "no_effect"):
        if mark in change:
            change[mark] = f"{release}.."
    if "meaning" in change:
        record.setdefault("meanings_since", {})[release] = change.pop("meaning")
    record.update(_merge_fields(record, change))


def _merge_fields(record: TomlTable, change: TomlTable) -> TomlTable:
    """Return a record with the fields of a change: tables are merged, other values replaced."""
    return record | {
        key: record.get(key, {}) | value if isinstance(value, dict) else value
        for key, value in change.items()
    }


def _build_rules(
    source: TomlTable,
    options: TomlTable,
    variables: TomlTable,
    names: set[str],
    axes: dict[str, Axis],
) -> tuple[TomlTable, TomlTable]:
    """Return the rules as checks use them and, separately, their texts."""
    facts = {"product", "scenario", *axes}
    rules = []
    required = {}
    for record in source["rule"]:
        rule = _build_rule(record, options, names, axes)
        rules.append(rule)
        required[rule.code] = tuple(sorted(_find_required(rule.when, options) - facts))
    advice = tuple(source.get("advice", ()))
    for record in advice:
        location = f"rules.toml: advice on {record['options'][0]}"
        parse_condition(record.get("when", "true"), location, names, {})
    equivalents = group_pairs(
        (record["session_option"], name)
        for name, record in variables.items()
        if record.get("session_option") and (record.get("twin_direct") or record.get("twin_values"))
    )
    codes_by_trigger = group_pairs((key, rule.code) for rule in rules for key in rule.triggers)
    index = {
        # rows in the order of the fields: `find_rule` makes them records again
        "rules": _pack_records({rule.code: tuple(rule._asdict().values()) for rule in rules}),
        "equivalents": _freeze_lists(equivalents),
        "excuses": _build_excuses(options, variables, names),
        "outside": tuple(
            name
            for name, record in variables.items()
            if record.get("freeze") in ("never", "launcher")
        ),
        "reads": {rule.code: rule.reads for rule in rules},
        "codes_by_trigger": _freeze_lists(codes_by_trigger),
        "required": required,
    }
    texts = {record["code"]: record for record in source["rule"]}
    return index, {"rules": texts, "advice": advice}


def _build_rule(
    record: TomlTable, options: TomlTable, names: set[str], axes: dict[str, Axis]
) -> Rule:
    """Return a rule with its parsed conditions, and with what they read."""
    facts = {"product", "scenario", *axes}
    location = f"rules.toml: {record['code']}"
    when = parse_condition(record["when"], location, names, axes)
    needs = parse_condition(record["needs"], location, names, axes) if "needs" in record else None
    trees = [when, needs] if needs else [when]
    read = _list_names(*trees)
    varied = read & facts - {"scenario"}
    if any("default_by_product" in options.get(name, {}) for name in read):
        varied.add("product")
    also_atc: str = record["why"] if record["enforced"] in _ALSO_ATC else ""
    return Rule(
        **{field: record[field] for field in ("code", "what", "why", "hint")},
        options=tuple(record["options"]),
        when=when,
        needs=needs,
        reads=tuple(sorted(read - facts)),
        triggers=tuple(sorted(_list_names(when) - facts)),
        axes=tuple(sorted(varied)),
        compares=tuple(sorted(_list_compared_names(trees) - facts)),
        atc=record.get("atc", also_atc),
    )


#: Who enforces rules that apply to a conversion too.
_ALSO_ATC = ("docs", "estimator")
#: Fields of options and variables with the condition of an excuse, and the codes that it excuses.
_EXCUSES = {
    "deprecated_unless": ("NP501",),
    "empty_unless": ("NP203",),
    "unread_while": ("NP203", "NP205"),
}


def _build_excuses(
    options: TomlTable, variables: TomlTable, names: set[str]
) -> dict[tuple[str, str], Any]:
    """Return, by key and code, the condition under which a setting is not reported."""
    excuses = {}
    for key, record in (
        *options.items(),
        *((f"env.{name}", record) for name, record in variables.items()),
    ):
        if "page" in record:
            location = f"options/{record['page']}.toml: {key}"
        else:
            location = f"frameworks/{record['framework']}/variables.toml: {key}"
        for field, codes in _EXCUSES.items():
            if field in record:
                excuse = parse_condition(record[field], location, names, {})
                excuses.update({(key, code): excuse for code in codes})
    return excuses


def parse_condition(text: str, location: str, names: set[str], axes: dict[str, Axis]) -> Any:
    """Return a condition of a record, with the releases that it selects.

    Only rules are evaluated for releases.

    Raises ValueError with the location of the record for unknown names and releases.
    """
    try:
        tree = _spell_arguments(_list_releases(condition.parse_condition(text), axes), names)
        for name in _list_names(tree).difference(names, axes):
            if f"{name.partition('.')[0]}." in names:
                continue
            raise ValueError(
                f'unknown name {name!r} in "{text}": '
                f"{did_you_mean(name, sorted(names.union(axes)), 'no name is similar')}"
            )
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"{location}: {error}") from None
    return tree


def _spell_arguments(tree: Any, names: set[str]) -> Any:
    """Return a condition with arguments of programs as their section has them.

    A name in a condition has no dashes.
    """
    operator, *parts = tree
    if operator == "const":
        return tree
    if operator not in ("value", "set", "unset"):
        return (operator, *(_spell_arguments(part, names) for part in parts))
    section, *inner = parts[0]
    if inner and f"{section}." in names and f"{section}.{inner[0]}" not in names:
        inner[0] = inner[0].replace("_", "-")
    return operator, (section, *inner)


def _list_releases(tree: Any, axes: dict[str, Axis]) -> Any:
    """Return a condition in which each comparison of a release axis is a list of releases.

    An order is that of a range.

    Raises ValueError for any other use of an axis, and for a comparison that is true for no
    release.
    """
    operator, *parts = tree
    if operator in ("and", "or", "not"):
        return (operator, *(_list_releases(part, axes) for part in parts))
    match parts:
        case ("value", (name,)), ("const", str() | tuple() as bound) if axis := axes.get(name):
            selected: tuple[str | None, ...] | None
            if operator in ("<", "<=", ">", ">="):
                selected = axis.find_releases_in_range(f"{operator}{bound}")
            else:
                bounds = bound if isinstance(bound, tuple) else (bound,)
                selected = tuple(map(axis.find_release, bounds))
            if selected and None not in selected:
                membership = "not in" if operator in ("!=", "not in") else "in"
                return membership, parts[0], ("const", selected)
    if uncompared := _list_names(tree).intersection(axes):
        raise ValueError(f"{', '.join(uncompared)} is not compared with known releases")
    return tree


def _find_required(tree: Any, options: TomlTable) -> set[str]:
    """Return the names that must be set for a condition to be true, in any scenario and product."""
    operator, *parts = tree
    if operator == "and":
        return {name for part in parts for name in _find_required(part, options)}
    names = _list_names(tree)
    if len(names) != 1:
        return set()
    if operator == "set":
        return names
    # the default of an unset option may make the condition true
    (name,) = names
    option = options.get(name, {})
    if any(field.startswith("default_") and field != "default_note" for field in option):
        return set()
    truth = condition.evaluate_condition(tree, lambda path: (False, option.get("default")))
    return set() if truth is True else names


def _build_migrations(history: TomlTable, names: set[str]) -> TomlTable:
    """Return the migrations from release to release: steps in the order of their rules."""
    steps = []
    defaults = []
    for release in history["release"]:
        for row in release.get("step", ()):
            step = {
                "to": "",
                "scenarios": (),
                **row,
                "when": parse_condition(row["when"], f"releases.toml: {row['rule']}", names, {}),
                "since": release["name"],
                "values": tuple(row.get("values", {}).items()),
            }
            steps.append(_freeze_lists(step))
        for row in release.get("default", ()):
            change = {"unless": "", "surface": "", **row, "since": release["name"]}
            del change["source"]
            defaults.append(change)
    steps.sort(key=lambda step: int(step["rule"].removeprefix("M")))
    return {"steps": tuple(steps), "defaults": tuple(defaults)}


def _list_names(*trees: Any) -> set[str]:
    """Return the settings in conditions, and the facts about the job."""
    paths = (path for tree in trees for path in condition.collect_condition_paths(tree))
    return {condition.find_key(path)[0] for path in paths}


def _list_compared_names(trees: list[Any]) -> set[str]:
    """Return the names whose values conditions compare; others are only tested for being set."""
    names = set()
    for tree in trees:
        compared = condition.collect_compared_paths(tree)
        for path in condition.collect_condition_paths(tree):
            key, path_inside = condition.find_key(path)
            if path in compared or path_inside:
                names.add(key)
    return names
