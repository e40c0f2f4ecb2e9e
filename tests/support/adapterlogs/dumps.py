"""Writes the graphs that an adapter of 2026 dumps with PRINT_MODEL=1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from support.adapterlogs import wire
from support.adapterlogs.process import PlayedSession

_PLAIN = {
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    ord('"'): '\\"',
    ord("'"): "\\'",
    ord("\\"): "\\\\",
}


def escape(text: str) -> str:
    """Return a text as protobuf's text form writes it: bytes beyond ASCII in octal."""
    return "".join(
        _PLAIN.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
        for byte in text.encode()
    )


def _write_node(
    name: str,
    op: str,
    attributes: Mapping[str, str],
    device: str = "",
    inputs: tuple[str, ...] = (),
) -> Iterator[str]:
    yield f'node {{\n  name: "{name}"\n  op: "{op}"\n'
    yield from (f'  input: "{source}"\n' for source in inputs)
    if device:
        yield f'  device: "{device}"\n'
    yield '  attr {\n    key: "T"\n    value {\n      type: DT_FLOAT\n    }\n  }\n'
    for key in sorted(attributes):
        yield (
            f'  attr {{\n    key: "{key}"\n    value {{\n'
            f'      s: "{escape(attributes[key])}"\n    }}\n  }}\n'
        )
    yield "}\n"


def list_attributes(session: PlayedSession) -> dict[str, str]:
    """Return the attributes that the adapter adds to a node: the values that it read."""
    found: dict[str, str] = {}
    for option in wire.list_options().values():
        unset = next(
            (key.unset for key in sorted(option.keys, key=lambda key: key.stage != "p")), ""
        )
        requested = session.maps.requested[option.name]
        for attribute in option.attributes:
            key = attribute.lstrip("+")[1:]
            text = next(
                (stage[key] for stage in session.maps[:3] if key in stage),
                requested if requested is not None else unset,
            )
            if text is not None:
                found[f"_{key}"] = text
    found["_enable_small_channel"] = session.maps.session["ge.enableSmallChannel"]
    return found


def write_graph(session: PlayedSession) -> str:
    """Return a graph as it is dumped before partition: one marked node among others."""
    device = "/job:localhost/replica:0/task:0/device:CPU:0"
    parts = [
        *_write_node("layer_0/kernel", "Const", {"_class": "loc:@layer\n_precision_mode: x"}),
        *_write_node("IteratorGetNext", "IteratorGetNext", list_attributes(session), device),
        *_write_node("dense/MatMul", "MatMul", {}, device, ("IteratorGetNext", "layer_0/kernel")),
    ]
    return "".join([*parts, "versions {\n  producer: 134\n}\n"])
