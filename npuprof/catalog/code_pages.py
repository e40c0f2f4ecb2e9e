"""The page of each finding code: meaning, reason, fix, examples, and whether it can be accepted."""

from __future__ import annotations

from functools import cache

from npuprof.catalog import load_built_part
from npuprof.model import Record, TomlTable

#: Findings that can never be accepted.
_NEVER = {
    "NP105": "whoever locked the value relies on it",
    "NP413": "a target rejects it",
    "NP607": "npuprof itself reads it",
}


class Page(Record):
    """The page of one code.

    ``bad`` and ``good`` are example presets (name to text); ``ask`` is the context to check them
    in.
    """

    code: str
    title: str
    severity: str
    why: str
    fix: str
    bad: dict[str, str]
    good: dict[str, str]
    ask_bad: dict[str, str]
    ask_good: dict[str, str]
    source: tuple[str, ...] = ()


def suggest_page(text: str) -> str:
    """Return the command that explains a code, an empty string for another text."""
    code = text.upper()
    return f"npuprof rule {code} explains the code" if code in load_pages() else ""


@cache
def load_pages() -> dict[str, Page]:
    """Return the pages by code, in order."""
    records: dict[str, TomlTable] = {
        **load_built_part("pages"),
        **load_built_part("rule_texts")["rules"],
    }
    codes = sorted(records, key=lambda code: (len(code), code))
    return {code: _build_page(code, records[code]) for code in codes}


def _build_page(code: str, record: TomlTable) -> Page:
    """Return the page of a code, or that of a rule, whose record has other names for two fields."""
    is_rule = "what" in record
    return Page(
        code=code,
        title=record["what" if is_rule else "title"],
        severity=record["severity"],
        why=record["why"],
        fix=record["hint" if is_rule else "fix"],
        bad=_example_files(record.get("bad", {})),
        good=_example_files(record.get("good", {})),
        ask_bad=record.get("ask") or _example_context(record, "bad"),
        ask_good=record.get("ask") or _example_context(record, "good"),
        source=tuple(record.get("source", ())),
    )


def _example_files(example: str | dict[str, str]) -> dict[str, str]:
    return {"example": example} if isinstance(example, str) else example


def _example_context(record: TomlTable, side: str) -> dict[str, str]:
    return {"product": record[f"{side}_product"]} if f"{side}_product" in record else {}


def find_acceptance_fault(code: str) -> str:
    """Return why findings of a code cannot be accepted, an empty string if they can.

    Team codes always can.
    """
    if code in _NEVER:
        return f"it cannot be accepted: {_NEVER[code]}"
    if not code.startswith("NP"):
        return "" if code.isprintable() and code else "it is not a code"
    if code not in load_built_part("severities"):
        return "there is no such code"
    if code[2:] < "2" and len(code) == 5:
        return "it cannot be accepted: a preset that cannot be read or resolved has no values"
    if code.startswith("NP9"):
        return "it cannot be accepted: a target or a command rejects it"
    return ""
