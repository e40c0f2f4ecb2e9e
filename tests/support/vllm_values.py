"""Values that vLLM's parser and classes accept or refuse, by the records of its releases."""

from pathlib import Path

RECORDS = Path(__file__).parent.parent.parent / ".ci" / "upstream" / "vllm"
GOOD = {
    "bool": [True, False],
    "str": ["word"],
    "json": [{}, '{"key": 1}'],
    "list": [[]],
    "any": ["word", 1],
}
BAD = {
    "bool": ["maybe", [1], {"a": 1}],
    "int": ["lots", 1.5, [1], {"a": 1}],
    "float": ["lots", {"a": 1}],
    "size": ["lots", "3q", True],
    "str": [["a"]],
    "list": [{"a": 1}],
}


def list_rows(record):
    """Yield the arguments of a release and the fields of their JSON, each with its path."""

    def list_fields(path, name, inside):
        for field, row in record["classes"].get(name, {}).items():
            yield (*path, field), row
            if "class" in row and row["class"] not in inside:
                yield from list_fields((*path, field), row["class"], (*inside, name))

    for name, row in record["arguments"].items():
        yield (name,), row
        if "class" in row:
            yield from list_fields((name,), row["class"], ())


def list_values(path, row):
    """Yield values with whether the release accepts them, by its own kind, choices and bounds."""
    kind, is_field = row["kind"], len(path) > 1
    if "|" in kind or "nargs" in row or row.get("repeated"):
        item = "word" if kind == "str" else 1
        if "choices" in row:
            item = row["choices"][0]
        yield [item] if kind != "json" else {}, row.get("nargs") in ("+", "*")
        return
    if choices := [] if "." in str(row.get("choices", "")) else row.get("choices", []):
        yield from ((choice, True) for choice in choices)
        yield "no-such-choice", False
        return
    if kind in ("int", "size", "float"):
        low = row.get("ge", row["gt"] + (1 if kind != "float" else 0.01) if "gt" in row else None)
        high = row.get("le", row["lt"] - (1 if kind != "float" else 0.01) if "lt" in row else None)
        inside = [each for each in (low, high) if each is not None] or [1, 8]
        yield from ((value, True) for value in inside)
        yield str(inside[0]), True
        if low is not None:
            yield row.get("ge", row.get("gt", 0) + 1) - 1, "gt" in row and "ge" not in row and False
        if high is not None:
            yield row.get("le", row.get("lt", 0)) + 1, False
        if kind == "size":
            yield from (("32k", True), ("2K", True))
    elif kind == "json" and (is_field or "class" in row):
        yield {}, True
    else:
        yield from ((value, True) for value in GOOD[kind])
    if row.get("optional") and not is_field:
        yield "None", True
    yield from ((value, False) for value in BAD.get(kind, ()) if not (kind == "str" and is_field))
