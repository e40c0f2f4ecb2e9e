"""``options``: list the catalogue, or search it by words and filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from npuprof import catalog
from npuprof.catalog import find_record_texts, products, releases
from npuprof.catalog.code_pages import suggest_page
from npuprof.catalog.risks import EXECUTES, find_unit_and_risk
from npuprof.commands.framework import Verb, flag, option, optional_argument
from npuprof.commands.framework.parameters import FORMAT, OUTPUT
from npuprof.commands.rule import load_team_policy
from npuprof.document import keys
from npuprof.document.keys import format_full_key
from npuprof.model import TYPE_CHECKING, build_error, did_you_mean
from npuprof.report import Answer
from npuprof.report.tables import Table

if TYPE_CHECKING:
    from typing import Any

    from npuprof.catalog.messages import ErrorCode


def _build_list(rows: list[dict[str, str]], errors: Sequence[ErrorCode] = ()) -> Answer:
    """Return a list of settings, after the error codes that led to them, as text and JSON."""
    table = Table([(row["name"], row["summary"]) for row in rows], header=("name", "what it does"))
    pages = "\n".join(map(_format_error, errors))
    shown = ("code", "meaning", "releases", "settings", "source")
    fields = [{name: getattr(error, name) for name in shown} for error in errors]
    return Answer(
        {
            "text": lambda: (
                f"{pages}\n{table.format_plain()}".strip("\n") + "\n" if pages else table
            ),
            "json": lambda: {
                "schema": "npuprof.options/1",
                "options": rows,
                **({"errors": fields} if fields else {}),
            },
        }
    )


def _format_error(error: ErrorCode) -> str:
    """Return meaning, releases and sources of an error code as lines."""
    facts = {"releases": error.releases, "source": "; ".join(error.source)}
    lines = [f"    {name}: {fact}\n" for name, fact in facts.items() if fact]
    return f"{': '.join(filter(None, (error.code, error.meaning)))}\n\n{''.join(lines)}"


def _build_row(key: str, summary: str = "") -> dict[str, str]:
    """Return the row of a full key; the default summary is its own."""
    section, name = keys.split_section_and_name(key)
    return {
        "name": f"{catalog.load_sections()[section].prefix}{name}",
        "section": section,
        "summary": summary or find_record_texts(section, name).get("summary", ""),
    }


def find_settings_of_message(text: str) -> Answer | None:
    """Return the settings that the message of a program leads to, None if there are none.

    They are those of the rules and the error codes in it, else those that it names.
    """
    from npuprof.catalog import messages  # few queries are messages

    rules = map(catalog.find_rule, messages.list_rules_with_message(text))
    errors = messages.list_errors_with_message(text)
    rows = [_build_row(key, f"{rule.code}: {rule.what}") for rule in rules for key in rule.options]
    rows += [_build_row(key) for error in errors for key in error.settings]
    if not rows and not errors:
        rows = list(map(_build_row, messages.list_named_settings(text)))
    by_name = {row["name"]: row for row in reversed(rows)}
    return _build_list([*by_name.values()][::-1], errors) if rows or errors else None


def _list_risks() -> list[str]:
    """Return what changes of settings may affect, sorted."""
    return sorted(
        {EXECUTES}
        | {risk for option in catalog.list_records(catalog.Option) for risk in option.risk}
    )


def _list_readers(name: str) -> list[str]:
    """Return the programs that read a variable."""
    return [
        getattr(catalog.find_variable(name), "framework", ""),
        *find_record_texts("env", name).get("read_by", ()),
    ]


def _list_programs() -> list[str]:
    """Return the programs that read variables, sorted."""
    return sorted(
        {reader for name in catalog.record_names("env") for reader in _list_readers(name)}
    )


class Options(Verb):
    """List or search the option catalogue.

    The catalogue covers session options, environment variables, ATC flags and arguments of
    NPURunConfig.
    """

    group = "reference"

    query = optional_argument(
        "QUERY", "Words in names and summaries, or a message [default: list all entries]", "nothing"
    )
    deprecated = flag(
        "--deprecated", text="List only entries that are deprecated, removed or without effect"
    )
    since = option(
        "--since",
        metavar="RELEASE",
        text="List only options introduced in this CANN release or later",
        complete="release",
    )
    product = option(
        "--product",
        metavar="PRODUCT",
        text="List only entries that this product or soc_version supports",
        complete="product",
    )
    risk = option(
        "--risk",
        metavar="RISK",
        text=(
            "List settings with this risk: numerics, performance, memory, compatibility, "
            "distributed, build-time, debug-output, executes"
        ),
        choices=_list_risks,
    )
    framework = option(
        "--framework",
        metavar="NAME",
        text="List only variables and settings that this framework reads",
        choices=_list_programs,
    )
    format = FORMAT
    output = OUTPUT

    def run(self) -> Answer:
        """Return the records that match all words and filters.

        Raises NpuprofError if there are none.
        """
        terms = (self.query or "").lower().split()
        filters = self._build_filters()
        rows = []
        declared = {} if filters else load_team_policy().variables
        for section, described in catalog.load_sections().items():
            team = declared if section == "env" else {}
            for name in (*described.names, *team):
                shown = f"{described.prefix}{name}"
                texts = team[name].texts if name in team else find_record_texts(section, name)
                summary = texts.get("summary", "")
                text = f"{shown} {summary}".lower()
                is_match = all(term in text for term in terms)
                if is_match and all(accepts(section, name) for accepts in filters):
                    rows.append({"name": shown, "section": section, "summary": summary})
        if not rows:
            if self.query and not filters and (found := find_settings_of_message(self.query)):
                return found
            known = {
                part: None for name in catalog.record_names() for part in (name, *name.split("_"))
            }
            query = self.query or ""
            suggestion = "" if query in known else suggest_page(query) or did_you_mean(query, known)
            hint = suggestion or ("omit a filter" if filters else "try fewer words")
            what = (
                "the filters leave nothing"
                if self.query is None
                else f"nothing in the catalogue matches {self.query!r}"
            )
            raise build_error("NP201", what, "", hint)
        return _build_list(rows)

    def _build_filters(self) -> list[Callable[[str, str], bool]]:
        """Return the filters. Raises NpuprofError for an unknown release, product or risk."""
        filters = []
        if self.deprecated:
            filters.append(
                lambda section, name: releases.is_past(catalog.find_record(section, name))
            )
        if self.since is not None:
            first = _find_release(self.since)
            filters.append(
                lambda section, name: section == "options" and _find_first_release(name) >= first
            )
        if self.product is not None:
            family = _find_family(self.product)
            filters.append(
                lambda section, name: _is_supported(catalog.find_record(section, name), family)
            )
        if self.risk is not None:
            filters.append(
                lambda section, name: (
                    self.risk in find_unit_and_risk(format_full_key(section, name))[1]
                )
            )
        if self.framework is not None:
            filters.append(
                lambda section, name: (
                    section == self.framework
                    or (section == "env" and self.framework in _list_readers(name))
                )
            )
        return filters


def _find_release(text: str) -> int:
    from npuprof.store.spec import build_context

    release = build_context(text, None).cann
    if release is None:  # an empty string is no filter
        hint = f"the newest is {releases.load_releases()[-1]}"
        raise build_error("NP401", f"--since takes a CANN release, not {text!r}", "", hint)
    return releases.release_index(release)


def _find_first_release(name: str) -> int:
    """Return the index of the first release whose adapter reads an option.

    Before all others if none does.
    """
    option = catalog.find_option(name)
    return option.states.find("Y") if option else -1


def _find_family(text: str) -> str:
    product = products.find_product(text)
    if product is None:
        raise build_error(
            "NP403", f"unknown product {text!r}", "", products.suggest_product(text)[0]
        )
    return products.find_product_family(product)


def _is_supported(record: Any, family: str) -> bool:
    supported = getattr(record, "products", ())
    return (not supported or family in supported) and family not in getattr(
        record, "products_not", ()
    )


VERB = Options
