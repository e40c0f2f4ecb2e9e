"""What a variable or a flag takes on one product family only, or from one release on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuprof.catalog import Flag, Variable, releases
from npuprof.catalog.readers import find_spelling
from npuprof.checks.view import Fault, Scope
from npuprof.document.keys import format_short_value


def find_family_faults(scope: Scope, key: str, record: Variable | Flag, text: str) -> Iterator[Fault]:
    """Yield what the product families in question do not take of a value, and what the releases do not."""
    text = find_spelling(record, text)
    parts = text.split(record.separator) if record.separator else [text]
    for part in dict.fromkeys((*parts, *text.replace(";", ":").split(":"))):  # a node may be named before its value
        works = record.value_products.get(part)
        barred = [family for family in scope.families if family not in works] if works else []
        if works and barred:
            what = f"{key} = {format_short_value(part)} is not supported on {', '.join(barred)}"
            yield Fault("NP409", what, "", f"the value works on {', '.join(works)}")
    yield from find_form_faults(scope, key, record, text)
    if isinstance(record, Variable):
        yield from _find_variable_faults(scope, key, record, text)
    elif record.default_count:
        for family in scope.families or ("",):
            low, high = record.product_count.get(family, record.default_count)
            if not low <= len(parts) <= high:
                what = f"{key} has {len(parts)} sizes" + (f" on {family}" if family else "")
                yield Fault("NP381", what, "The engine builds one graph for each.", f"write {low} to {high} of them")
                break


def find_form_faults(scope: Scope, key: str, record: Variable | Flag, text: str) -> Iterator[Fault]:
    """Yield the product families that take a narrower form of a value."""
    for family in scope.families if record.product_pattern else ():
        pattern = record.product_pattern.get(family)
        if pattern and not re.fullmatch(pattern, text):
            what = f"{key} = {format_short_value(text)} is not supported on {family}"
            fault = Fault("NP409", what, "", "see the notes of npuprof option, or set it in an [[override]] for other products")
            yield fault if isinstance(record, Variable) else fault._replace(severity="warning")  # ATC may take more than its manual says


def _find_variable_faults(scope: Scope, key: str, variable: Variable, text: str) -> Iterator[Fault]:
    for family in scope.families:
        low, high = variable.product_range.get(family, (None, None))
        bounded = low is not None and high is not None and re.fullmatch(r"-?[0-9]+", text, re.ASCII)
        if bounded and (len(text) > 19 or not (low or 0) <= int(text) <= (high or 0)):
            what = f"{key} = {format_short_value(text)[1:-1]} is out of range on {family}"
            yield Fault("NP410", what, "", f"there write {low} to {high} {variable.unit}".rstrip())
    for release, pattern in variable.pattern_before.items():
        early = [name for name in scope.releases if releases.release_index(name) < releases.release_index(release)]
        if (early or not scope.releases) and not re.fullmatch(pattern, text):
            span = f"CANN {early[0] if len(early) == 1 else f'{early[0]} to {early[-1]}'}" if early else f"releases before {release}"
            what = f"{key} = {format_short_value(text)} is not complete for {span}"
            yield Fault("NP412", what, f"Before {release} the value had more parts, and later releases still take them.", "write all parts")
