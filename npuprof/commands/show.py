"""``show``: a preset as it resolves, and who set each value of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from npuprof.catalog import values
from npuprof.commands import origins
from npuprof.commands.flags import one_of
from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.model import SECTIONS, Path
from npuprof.renderers.plain import build_config_fields
from npuprof.report import escape_controls, format_json_answer, output, paint_text
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuprof.resolve.config import Config


class Asked(NamedTuple):
    """A spec with everything that bears on its resolution, as the user wrote it."""

    spec: str
    store: str | None
    cann: str | None
    product: str | None
    mixins: Sequence[str]
    set: Sequence[str]
    unset: Sequence[str]

    def config(self) -> Config:
        """Return the spec resolved. Raises NpuprofError."""
        workspace = spec.Workspace(self.store, spec.build_context(self.cann, self.product))
        return workspace.resolve_spec(self.spec, self.mixins, spec.parse_assignments(self.set, self.unset))


def show_preset(asked: Asked, origin: bool, format_: str, path: str | None, color: str) -> int:
    """Print a preset resolved, with the origins of its values if wanted."""
    one_of("--format", format_, ("toml", "json"))
    one_of("--color", color, ("auto", "always", "never"))
    config = asked.config()
    if format_ == "json":
        found = build_config_fields(config)
        if origin:
            found["origins"] = {key: [origins.as_dict(origin) for origin in config.origins(key)] for key in config.ordered_settings()}
        output.write_answer(format_json_answer(found), path)
        return 0
    coloured = path is None and output.is_colour_wanted(color)
    lines = ["[profile]"]
    head = {"description": config.description, "scenario": config.scenario, "cann": config.cann, "products": list(config.products)}
    lines += [f"{name} = {keys.format_toml_value(value)}" for name, value in head.items() if value]
    for section in SECTIONS:
        found = config.section(section)
        if found:
            lines += ["", f"[{section}]"]
        for name, value in found.items():
            key = keys.format_full_key(section, name)
            if origin:
                lines += _lines(config, key, keys.format_key_segment(name), config.traced_value(key), (), coloured)
            else:
                lines.append(f"{keys.format_key_segment(name)} = {keys.format_toml_value(value)}")
    output.write_answer("\n".join(lines) + "\n", path)
    return 0


def _lines(config: Config, key: str, name: str, value: Any, tail: Path, coloured: bool) -> list[str]:
    """Return the lines of one value with the origin of each leaf and list element as a comment."""
    if isinstance(value, dict):
        inner = [
            _lines(config, key, f"{name}.{keys.format_key_segment(part)}", item, (*tail, part), coloured) for part, item in value.items()
        ]
        return [line for lines in inner for line in lines] or [f"{name} = {{}}"]
    if isinstance(value, list) and len({str(origin) for origin in origins.authors(value)}) > 1:
        lines = [f"{name} = ["]
        lines += [f"    {keys.format_toml_value(_plain(item))},{_comment(str(origins.authors(item)[0]), coloured)}" for item in value]
        return [*lines, f"]{_comment(_over(config, key, tail), coloured)}"]
    authors = origins.authors(value)
    by = str(authors[0]) if authors else str(config.origin(key, tail))
    over = _over(config, key, tail)
    return [f"{name} = {keys.format_toml_value(_plain(value))}{_comment(by + (f', {over}' if over else ''), coloured)}"]


def _comment(text: str, coloured: bool) -> str:
    return paint_text(f"  # {escape_controls(text)}", "2", coloured) if text else ""


def _plain(value: Any) -> Any:
    if isinstance(value, values.Leaf):
        return value.value
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value]


def _over(config: Config, key: str, tail: Path) -> str:
    losers = origins.losers(config, key, tail)
    return "over " + ", ".join(f"{format_short_value(value)} ({origin})" for value, origin in losers) if losers else ""
