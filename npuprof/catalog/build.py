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
    Setting,
    parse_framework_version,
    parse_release_version,
)
from npuprof.document import keys
from npuprof.model import did_you_mean
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


def build_parts() -> dict[str, Any]:
    """Return every part of the built form by module name."""
    history = _read_toml_file("releases.toml")
    releases = history["release"]
    frameworks = _read_frameworks()
    described = _describe_sections(frameworks)
    sections = {
        "options": _read_options(releases),
        "env": _list_variables(frameworks),
        "atc": _read_toml_file("atc.toml"),
        "estimator": _read_toml_file("estimator.toml"),
    }
    sections |= {
        name: files.get("settings", {}) for name, files in frameworks.items() if name in described
    }
    options = sections["options"]
    for release in releases:
        for section in ("env", "atc", "estimator"):
            for name, change in release.get(section, {}).items():
                sections[section][name] = _merge_fields(sections[section].get(name, {}), change)
    _pair_flags(sections["atc"], options)
    parts: dict[str, Any] = {"texts": {}}
    for section, records in sections.items():
        known = KINDS.get(section, Setting)._fields
        kept, texts = {}, {}
        for name, record in records.items():
            fields = {_RENAMED_FIELDS.get(field, field): value for field, value in record.items()}
            kept[name] = {
                field: _freeze_lists(value) for field, value in fields.items() if field in known
            }
            texts[name] = {field: value for field, value in fields.items() if field not in known}
        parts[section], parts["texts"][section] = _pack_records(kept), _pack_records(texts)
    parts |= {
        name: _freeze_lists(_read_toml_file(f"{name}.toml"))
        for name in ("classes", "wire", "attributes", "reads")
    }
    parts["axes"] = {
        "first": _find_first_releases(options),
        "products": _read_toml_file("products.toml"),
        "releases": {
            release["name"]: parse_release_version(release["name"]) for release in releases
        },
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
        name: _index_framework(files["framework"])
        for name, files in sorted(
            frameworks.items(), key=lambda item: "section" not in item[1]
        )  # those with a section come first
        if "releases" in files["framework"]
    }
    parts["titles"] = {name: files["framework"]["title"] for name, files in frameworks.items()}
    parts["pages"] = _read_toml_file("pages.toml")
    others = _read_toml_file("variables.toml")
    calls = {
        name: (row["of"], row["call"].replace("NAME", name))
        for row in others["options"]
        for name in row["names"]
    }
    calls |= {
        name: (section, row["option_call"].replace("NAME", name))
        for section, row in described.items()
        for name, record in sorted(sections[section].items())
        if "option_call" in row
        and name.startswith("ACL_")
        and "call" not in record
        and name not in sections["env"]
    }
    rows = others["variables"]
    forms = {name: row["form"] for row in rows if "form" in row for name in row["names"]}
    parts["variables"] = (
        *_index_variables(rows),
        tuple(others["complete_prefixes"]),
        calls,
        forms,
        _index_protections(rows),
    )
    names = {"product", "scenario"}.union(
        keys.format_full_key(section, name.partition(".")[0])
        for section, records in sections.items()
        for name in records
    )
    axes = {
        name: Axis(parse_framework_version, **record)
        for name, record in parts["frameworks"].items()
    }
    axes["cann"] = Axis(parse_release_version, parts["axes"]["releases"])
    parts["migrations"] = _build_migrations(history, names)
    parts["rules"], parts["rule_texts"] = _build_rules(
        _read_toml_file("rules.toml"), options, sections["env"], names, axes
    )
    parts["severities"] = {
        code: page["severity"]
        for code, page in (parts["pages"] | parts["rule_texts"]["rules"]).items()
    }
    return parts


def _read_toml_file(name: str) -> dict[str, Any]:
    try:
        return tomllib.loads((HERE / name).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name}: {error}") from None


def _pack_records(records: dict[str, Any]) -> Packed:
    """Return records as bytes that every Python version unpacks one by one, equal for equal
    records; a command needs few records.
    """
    packed = [marshal.dumps(record, 2) for record in records.values()]
    return (
        " ".join(records),
        tuple(accumulate(map(len, packed[:-1]), initial=0))[: len(packed)],
        b"".join(packed),
    )


def _read_frameworks() -> dict[str, dict[str, Any]]:
    """Return the files of each framework by name without suffix, in output order: ``framework``,
    ``settings`` and so on.
    """
    files: dict[str, dict[str, Any]] = {}
    for path in sorted((HERE / "frameworks").glob("*/*.toml")):
        files.setdefault(path.parent.name, {})[path.stem] = _read_toml_file(
            str(path.relative_to(HERE))
        )
    return dict(sorted(files.items(), key=lambda item: int(item[1]["framework"]["place"])))


def _describe_sections(frameworks: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
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


def _list_variables(frameworks: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the environment variables of all frameworks, each with the first framework
    that reads it.
    """
    return {
        name: {**record, "framework": framework}
        for framework, files in frameworks.items()
        for name, record in files.get("variables", {}).items()
    }


def _index_framework(record: dict[str, Any]) -> dict[str, Any]:
    """Return the releases of a framework with sort keys, and its packages with their releases."""
    packages = {
        package: release
        for release, names in record.get("packages", {}).items()
        for package in names
    }
    return {
        "documented": record.get("documented", False),
        "releases": {name: parse_framework_version(name) for name in record["releases"]},
        "packages": {
            name: (parse_framework_version(name), release) for name, release in packages.items()
        },
    }


def _index_variables(
    rows: list[dict[str, Any]],
) -> tuple[tuple[tuple[str, str], ...], dict[str, str], tuple[str, ...]]:
    """Return how variables affect code execution, an empty string if they do not: with their names,
    and by prefix.

    The third element lists variables with numbers. A prefix never makes a name harmless.
    """
    exact = tuple(
        (row["executes"] or "", " ".join(name for name in row["names"] if "*" not in name))
        for row in rows
    )
    beginnings = {
        name[:-1]: row["executes"]
        for row in rows
        if row["executes"]
        for name in row["names"]
        if name[-1] == "*"
    }
    return (
        exact,
        beginnings,
        tuple(name for row in rows if row.get("number") for name in row["names"]),
    )


def _index_protections(rows: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what variables protect the user from, with the values that keep the protection: by
    name, and by ending.
    """
    by_name = {
        name: (row["protects"], tuple(row.get("kept_by", ())))
        for row in rows
        if "protects" in row
        for name in row["names"]
    }
    endings = {
        name[1:]: row for name, row in by_name.items() if name[0] == "*"
    }  # in capitals, for any letter case
    return {name: row for name, row in by_name.items() if name[0] != "*"}, endings


def _find_first_releases(options: dict[str, Any]) -> dict[str, int]:
    """Return the index of the first release in which each surface with states of its own may read
    an option.
    """
    first: dict[str, int] = {}
    for record in options.values():
        for surface, states in record["surface_states"].items():
            age = len(states) - len(states.lstrip("."))
            first[surface] = min(first.get(surface, age), age)
    return first


def _freeze_lists(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_freeze_lists, value))
    return (
        {key: _freeze_lists(item) for key, item in value.items()}
        if isinstance(value, dict)
        else value
    )


def _read_options(releases: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the options page by page, with the changes of all releases applied."""
    pages = {page: _read_toml_file(f"options/{page}.toml") for page in PAGES}
    homes = {name: page for page, records in pages.items() for name in records}
    for release in releases:
        for name, change in release.get("options", {}).items():
            if name in homes:
                _change_option(pages[homes[name]][name], release["name"], dict(change))
            elif "page" in change:
                homes[name] = change["page"]
                pages[homes[name]][name] = {**change, "since": release["name"]}
            else:
                raise ValueError(
                    f"releases.toml: {release['name']} changes "
                    f"{name}, which is on no page, and names none"
                )
    options: dict[str, Any] = {}
    for page, records in pages.items():
        for name, record in records.items():
            try:
                options[name] = {
                    "page": page,
                    **record,
                    "states": _compute_release_states(record, releases),
                }
                options[name]["surface_states"] = {
                    surface: _compute_release_states({"field": "", **born}, releases)
                    for surface, born in record.get("born_on", {}).items()
                }
            except ValueError as error:
                raise ValueError(f"options/{page}.toml: {name}: {error} of releases") from None
    return options


#: The kind of a flag that has an equivalent option of some kind; text by default.
_FLAG_KINDS = {"int": "int", "bool": "bool", "path-file": "path", "path-dir": "path"}


def _pair_flags(flags: dict[str, Any], options: dict[str, Any]) -> None:
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


def _change_option(record: dict[str, Any], release: str, change: dict[str, Any]) -> None:
    """Apply a release's change to the record of an option."""
    for value in change.pop("choices", ()):
        record.setdefault("choices_since", {})[str(value)] = release
        if value not in record["choices"]:
            record["choices"].append(value)
    for value in change.pop("refuses", ()):
        record.setdefault("choices_until", {})[str(value)] = release
        record["choices"].remove(value)
    if "default" in change:
        born = {record["since"]: record["default"]} if "default" in record else {}
        record.setdefault("default_since", born)[release] = change["default"]
    for mark in ("deprecated", "no_effect"):
        if mark in change:
            record[f"{mark}_since"] = release
    if change.pop("removed", False):
        record["removed_in"] = release
    if change.pop("missing", False):
        record.setdefault("missing_in", []).append(release)
    if "meaning" in change:
        record.setdefault("meanings_since", {})[release] = change.pop("meaning")
    record.update(_merge_fields(record, change))


def _merge_fields(record: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the fields of a change: tables are merged, other values replaced."""
    return record | {
        key: record.get(key, {}) | value if isinstance(value, dict) else value
        for key, value in change.items()
    }


def _compute_release_states(record: dict[str, Any], releases: list[dict[str, Any]]) -> str:
    """Return a letter for each release: ``Y`` if the adapter reads the key, ``.`` if not, ``?`` if
    unknown.
    """
    names = [release["name"] for release in releases]
    if "field" not in record and "removed_in" not in record:
        return "." * len(names)
    first = names.index(record["since"]) if "since" in record else names.index("9.0.0")
    unknown = (
        names.index(record["absent_in"]) + 1
        if "absent_in" in record
        else first
        if "since" in record
        else 0
    )
    last = names.index(record["removed_in"]) if "removed_in" in record else len(names)
    letters = []
    for place, release in enumerate(releases):
        name = release["name"]
        if name in record.get("missing_in", ()) or place >= last or place < min(unknown, first):
            known = "."
        elif place < first:
            known = "?"
        else:
            known = "Y" if release["code"] or last == len(names) else "?"
        if known == "." and name.startswith(f"{record.get('since')}.alpha"):
            known = "?"
        letters.append(known)
    return "".join(letters)


def _build_rules(
    source: dict[str, Any],
    options: dict[str, Any],
    variables: dict[str, Any],
    names: set[str],
    axes: dict[str, Axis],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rules as checks use them and, separately, their texts."""
    by_code: dict[str, Any] = {}
    required, texts = {}, {}
    facts = {"product", "scenario", *axes}
    for record in source["rule"]:
        place = f"rules.toml: {record['code']}"
        when = parse_condition(record["when"], place, names, axes)
        needs = parse_condition(record["needs"], place, names, axes) if "needs" in record else None
        trees = [when, needs] if needs else [when]
        read = _list_names(*trees)
        varied = read & facts - {"scenario"} | {
            "product" for name in read if "default_by_product" in options.get(name, {})
        }
        atc = record.get("atc", "" if record["enforced"] == "adapter" else record["why"])
        by_code[record["code"]] = (
            record["code"],
            record["name"],
            tuple(record["options"]),
            when,
            needs,
            record["what"],
            record["why"],
            record["hint"],
            tuple(sorted(read - facts)),
            tuple(sorted(_list_names(when) - facts)),
            tuple(sorted(varied)),
            tuple(sorted(_list_compared_names(trees) - facts)),
            atc,
        )
        required[record["code"]] = tuple(sorted(_find_required(when, options) - facts))
        texts[record["code"]] = record
    advice = tuple(source.get("advice", ()))
    for record in advice:
        parse_condition(
            record.get("when", "true"), f"rules.toml: advice on {record['options'][0]}", names, {}
        )
    twins = group_pairs(
        (record["session_option"], name)
        for name, record in variables.items()
        if record.get("session_option") and (record.get("twin_direct") or record.get("twin_values"))
    )
    excuses = {
        (name, code): parse_condition(
            record[field],
            f"options/{record['page']}.toml: {name}"
            if "page" in record
            else f"frameworks/{record['framework']}/variables.toml: {name}",
            names,
            {},
        )
        for name, record in (
            *options.items(),
            *((f"env.{name}", record) for name, record in variables.items()),
        )
        for field, code in (
            ("deprecated_unless", "NP501"),
            ("empty_unless", "NP203"),
            ("unread_while", "NP203"),
            ("unread_while", "NP205"),
        )
        if field in record
    }
    outside = tuple(
        name for name, record in variables.items() if record.get("freeze") in ("never", "launcher")
    )
    index = {
        "rules": _pack_records(by_code),
        "twins": _freeze_lists(twins),
        "excuses": excuses,
        "outside": outside,
    }
    index |= {
        "reads": {code: rule[8] for code, rule in by_code.items()},
        "codes_by_trigger": _freeze_lists(
            group_pairs((key, code) for code, rule in by_code.items() for key in rule[9])
        ),
        "required": required,
    }
    return index, {"rules": texts, "advice": advice}


def parse_condition(text: str, place: str, names: set[str], axes: dict[str, Axis]) -> Any:
    """Return a condition of a record, with the releases that it selects.

    Only rules are evaluated for releases.

    Raises ValueError with the place of the record for unknown names and releases.
    """
    try:
        tree = _list_releases(condition.parse_condition(text), axes)
        for name in _list_names(tree).difference(names, axes):
            raise ValueError(
                f'unknown name {name!r} in "{text}": '
                f"{did_you_mean(name, sorted(names.union(axes)), 'no name is similar')}"
            )
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"{place}: {error}") from None
    return tree


def _list_releases(tree: Any, axes: dict[str, Axis]) -> Any:
    """Return a condition in which each comparison of a release axis is a list of releases.

    An order is that of a range.

    Raises ValueError for any other use of an axis, and for a comparison that is true for no
    release.
    """
    word, *parts = tree
    if word in ("and", "or", "not"):
        return (word, *(_list_releases(part, axes) for part in parts))
    match parts:
        case ("value", (name,)), ("const", str() | tuple() as bound) if axis := axes.get(name):
            ordered = word in ("<", "<=", ">", ">=")
            bounds = bound if isinstance(bound, tuple) else (bound,)
            selected = (
                axis.find_releases_in_range(f"{word}{bound}")
                if ordered
                else tuple(map(axis.find_release, bounds))
            )
            if selected and None not in selected:
                return "not in" if word in ("!=", "not in") else "in", parts[0], ("const", selected)
    if odd := _list_names(tree).intersection(axes):
        raise ValueError(f"{', '.join(odd)} is not compared with known releases")
    return tree


def _find_required(tree: Any, options: dict[str, Any]) -> set[str]:
    """Return names that must be set for a condition to be true, in any scenario and on
    any product.
    """
    if tree[0] == "and":
        return {name for child in tree[1:] for name in _find_required(child, options)}
    names = _list_names(tree)
    if len(names) != 1:
        return set()
    option = options.get("".join(names), {})
    vague = any(name.startswith("default_") and name != "default_note" for name in option)
    if tree[0] != "set" and (
        vague
        or condition.evaluate_condition(tree, lambda path: (False, option.get("default"))) is True
    ):
        return set()
    return names


def _build_migrations(history: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """Return the migrations from release to release: steps in the order of their rules."""
    steps = [
        (
            row["rule"],
            row["option"],
            parse_condition(row["when"], f"releases.toml: {row['rule']}", names, {}),
            release["name"],
            row["loss"],
            row["action"],
            row.get("to", ""),
            tuple(row.get("values", {}).items()),
            tuple(row.get("scenarios", ())),
            row["why"],
            row["decide"],
            row["source"],
        )
        for release in history["release"]
        for row in release.get("step", ())
    ]
    steps.sort(key=lambda step: int(step[0].removeprefix("M")))
    defaults = tuple(
        (
            row["option"],
            row.get("unless", ""),
            release["name"],
            row["before"],
            row["after"],
            row.get("surface", ""),
        )
        for release in history["release"]
        for row in release.get("default", ())
    )
    return {"steps": tuple(steps), "defaults": defaults}


def _list_names(*trees: Any) -> set[str]:
    """Return the settings in conditions, and the facts about the job."""
    return {
        condition.find_key(path)[0]
        for tree in trees
        for path in condition.collect_condition_paths(tree)
    }


def _list_compared_names(trees: list[Any]) -> set[str]:
    """Return the names whose values conditions compare; others are only tested for being set."""
    compared = {path for tree in trees for path in condition.collect_compared_paths(tree)}
    members = (
        path
        for tree in trees
        for path in condition.collect_condition_paths(tree)
        if condition.find_key(path)[1]
    )
    return {condition.find_key(path)[0] for path in (*compared, *members)}
