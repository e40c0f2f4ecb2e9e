"""Rows of the catalogue from records of what each release of a program accepts.

A record (``.ci/upstream/vllm/0.23.0.json``) has the ``arguments`` of a parser, the ``classes``
behind those that take JSON, with their fields, and the ``variables``. A new one is recorded from an
unpacked package, or by ``training_parser`` from the files of a clone; CI uses the recorded ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
#: Writes a set of releases as ranges.
Ranges = Callable[[set[str]], str]

_CI = Path(__file__).resolve().parent
_RECORDER = _CI / "vllm_parser.py"
_KEPT = ("optional", "repeated", "items", "parsed_as")


def load_record(framework: str, release: str, packages: Path | None) -> Row | None:
    """Return the record of a release, recorded anew if its package is there; None without one."""
    path = find_record(framework, release)
    folder = packages / release if packages else None
    if folder and folder.is_dir():
        result = subprocess.run(  # noqa: S603 - our own script
            [sys.executable, _RECORDER, folder], stdout=subprocess.PIPE, text=True, check=True
        )
        path.parent.mkdir(exist_ok=True)
        path.write_text(result.stdout, "utf-8")
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def find_record(framework: str, release: str) -> Path:
    """Return the file of a record."""
    return _CI / "upstream" / framework / f"{release}.json"


def write_record(path: Path, record: Row) -> None:
    """Write a record, with a line for each argument."""
    lines = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}"
        for name, row in record["arguments"].items()
    )
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f'{{"arguments": {{\n{lines}\n}}, "classes": {{}}, "variables": {{}}}}\n', "utf-8"
    )


def normalize(value: Any) -> str:
    """Return a default as comparable text: switches and numbers in one form."""
    text = str(value).strip("\"'").lower()
    text = {"true": "1", "false": "0"}.get(text, text)
    try:
        return str(float(text))
    except ValueError:
        return text


def find_changes(defaults: dict[str, Any]) -> Row:
    """Return the default by the release from which on it holds, if releases have several.

    ``defaults`` are by release, oldest first. A release without one (None) ends what the ones
    before it say. Texts differ if they mean different values: ``"1"`` is ``True``.
    """
    changes: Row = {}
    last = None
    for release, value in defaults.items():
        if value is None:
            changes, last = {}, None
        elif (meant := normalize(value)) != last:
            changes[release], last = value, meant
    return changes if len(changes) > 1 else {}


def list_forms(record: Row) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a release by key: arguments, the fields of their JSON, variables."""
    for name, row in record["arguments"].items():
        yield f"settings.{name}", row
        if "class" in row:
            yield from _list_fields(record["classes"], f"settings.{name}", row["class"], ())
    for name, row in record["variables"].items():
        yield f"env.{name}", row


def _list_fields(
    classes: Row, prefix: str, name: str, inside: tuple[str, ...]
) -> Iterator[tuple[str, Row]]:
    for field, row in classes.get(name, {}).items():
        key = f"{prefix}.{field}"
        yield key, row
        if "class" in row and row["class"] not in inside:
            yield from _list_fields(classes, key, row["class"], (*inside, name))


def make_rows(records: dict[str, Row], write_ranges: Ranges, unknown: str) -> dict[str, Row]:
    """Return the rows of ``upstream.toml`` from the records by release, oldest first.

    A row describes the newest release that has it. ``unknown`` precedes the ranges of all.
    """
    found: dict[str, dict[str, Row]] = {}
    for release, record in records.items():
        for key, form in list_forms(record):
            found.setdefault(key, {})[release] = form
    return {
        key: {
            "reads": unknown + write_ranges(set(forms)),
            **(_describe if key.startswith("settings.") else _describe_variable)(
                forms, write_ranges
            ),
        }
        for key, forms in sorted(found.items())
    }


def _describe_variable(forms: dict[str, Row], write_ranges: Ranges) -> Row:
    """Return the row of a variable: kind, all choices with their reader, and its defaults."""
    newest = list(forms.values())[-1]
    row = {name: newest[name] for name in ("kind", "parsed_as", "default") if name in newest}
    if choices := _describe_choices(forms, write_ranges).get("choices"):
        is_folded = newest.get("any_case", False)
        reader = "env_with_choices in any case" if is_folded else "env_with_choices"
        row |= {"choices": choices, "reader": reader}
    defaults = {
        release: None if form.get("computed") else form.get("default")
        for release, form in forms.items()
    }
    if changes := find_changes(defaults):
        row["default_since"] = changes
    return row


def _describe(forms: dict[str, Row], write_ranges: Ranges) -> Row:
    newest = list(forms.values())[-1]
    kind, kinds = newest["kind"], _list_kinds(forms)
    row: Row = {"kind": kind}
    if kind == "size":
        row |= {"kind": "int", "parsed_as": "size"}
    elif "nargs" in newest and newest["nargs"] != "?":
        row |= {"kind": "list", "items": "|".join(kinds)}
    elif "|" in kind:
        row |= {"kind": "any"}
    if len(kinds) > 1 and "nargs" not in newest:
        row["kinds"] = kinds
    row |= _describe_choices(forms, write_ranges)
    row |= _describe_flags(forms, write_ranges)
    row |= {name: newest[name] for name in _KEPT if name in newest}
    if all("class" in form for form in forms.values()):
        row["closed"] = True
    if newest.get("nargs") == "?" or any(form.get("bare") for form in forms.values()):
        row["bare"] = True
    row |= _describe_range(forms, write_ranges)
    if any(form.get("optional") for form in forms.values()):
        row["optional"] = True
    if always := {release for release, form in forms.items() if form.get("always")}:
        row["always_set"] = write_ranges(always)
    # the text None is a value of an optional argument; keys of verl have no flags
    defaults = {
        release: form.get("default", "None" if form.get("optional") else "computed")
        for release, form in forms.items()
        if "default" in form or "flags" in form or form.get("optional")
    }
    if "default" in newest and newest["default"] not in ({}, []):
        row["default"] = newest["default"]
    changes = {
        release: value
        for (_, before), (release, value) in zip(
            [("", None), *defaults.items()], defaults.items(), strict=False
        )
        if value != before
    }
    if len(changes) > 1 and not any(value in ({}, []) for value in changes.values()):
        row["default_since"] = changes
    return row


def _list_kinds(forms: dict[str, Row]) -> list[str]:
    """Return the kinds of values of any release, the newest first."""
    kinds: dict[str, None] = {}
    for form in reversed(forms.values()):
        names = [*form["kind"].split("|"), *form.get("others", ())]
        kinds |= dict.fromkeys("int" if name == "size" else name for name in names)
    return list(kinds)


def _describe_range(forms: dict[str, Row], write_ranges: Ranges) -> Row:
    """Return the widest bounds of releases that have some; ``unlimited`` are the others.

    ``above`` and ``below`` are bounds without equality.
    """
    limited = {name: form for name, form in forms.items() if {"gt", "ge", "lt", "le"} & set(form)}
    row: Row = {}
    for exclusive, inclusive, field, name, step in (
        ("gt", "ge", "minimum", "above", 1),
        ("lt", "le", "maximum", "below", -1),
    ):
        if not limited or not all({exclusive, inclusive} & set(form) for form in limited.values()):
            continue
        bounds = []
        for form in limited.values():
            bound, is_open = form.get(inclusive), inclusive not in form
            if bound is None:
                bound = form[exclusive]
                if form["kind"] in ("int", "size"):
                    bound, is_open = bound + step, False
            bounds.append((bound * step, is_open, bound))
        _, is_open, bound = min(bounds)
        row[field] = bound
        row |= {name: bound} if is_open else {}
    if row and len(limited) < len(forms):
        row["unlimited"] = write_ranges(set(forms) - set(limited))
    return row


def _describe_choices(forms: dict[str, Row], write_ranges: Ranges) -> Row:
    """Return the choices of all releases, with the releases of those that not all have."""
    limited = {release: form["choices"] for release, form in forms.items() if "choices" in form}
    choices = list(
        dict.fromkeys(value for values in reversed(limited.values()) for value in values)
    )
    row: Row = {"choices": choices} if choices else {}
    having = {
        str(value): {release for release, values in limited.items() if value in values}
        for value in choices
    }
    partial = {
        value: write_ranges(releases)
        for value, releases in having.items()
        if releases != set(limited)
    }
    if partial:
        row["choice_reads"] = partial
    if choices and (unlimited := set(forms) - set(limited)):
        row["unlimited"] = write_ranges(unlimited)
    return row


def _describe_flags(forms: dict[str, Row], write_ranges: Ranges) -> Row:
    """Return the other spellings and the negations, with the releases of those that not all have.

    ``--no-NAME`` of a switch is left out where all releases have it.
    """
    having: dict[str, set[str]] = {}
    names: dict[str, str] = {}
    for release, form in forms.items():
        for flag in form.get("flags", [])[1:]:
            having.setdefault(flag, set()).add(release)
            names[flag] = form["flags"][0].removeprefix("--")
    for flag, known in having.items():
        if flag.startswith("--no-"):  # later parsers accept it without listing it
            first = next(at for at, release in enumerate(forms) if release in known)
            known.update([*forms][first:])
    row: Row = {}
    negations = [flag for flag in having if _is_negation(flag, names[flag])]
    aliases = [flag for flag in having if flag not in negations]
    row |= {"aliases": aliases} if aliases else {}
    row |= {"negations": negations} if negations else {}
    if partial := {flag: write_ranges(r) for flag, r in having.items() if r != set(forms)}:
        row["flag_reads"] = partial
    return row


def _is_negation(flag: str, name: str) -> bool:
    plain = flag.removeprefix("--")
    opposite = {"enable": "disable", "disable": "enable"}
    first, _, rest = name.partition("-")
    return plain in (f"no-{name}", f"{opposite.get(first)}-{rest}")
