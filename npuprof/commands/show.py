"""``show``: print a resolved preset, optionally with the origin of each value."""

from __future__ import annotations

from npuprof.commands.framework import flag
from npuprof.commands.framework.parameters import (
    NO_PERSONAL,
    SPEC,
    PrintingVerb,
    ResolvingVerb,
    formats,
)
from npuprof.commands.resolving import resolve_shown
from npuprof.document import keys
from npuprof.model import Any, Fields, Path
from npuprof.renderers.flattened import build_config_fields, collect_profile_head
from npuprof.report import Answer
from npuprof.report.text import escape_controls, paint_text
from npuprof.resolve.config import Config


class Show(PrintingVerb, ResolvingVerb):
    """Print the resolved preset."""

    group = "presets"

    spec = SPEC
    origin = flag("--origin", text="Print the origin of each value")
    format = formats("toml", "json")
    no_personal = NO_PERSONAL

    def run(self) -> Answer:
        """Return the preset resolved, optionally with origins. Raises NpuprofError."""
        config = resolve_shown(self, not self.no_personal)
        return Answer(
            {"toml": lambda: self._format_toml(config), "json": lambda: self._build_fields(config)}
        )

    def _build_fields(self, config: Config) -> Fields:
        from npuprof.resolve import origins

        fields = build_config_fields(config)
        if self.origin:
            fields["origins"] = {
                key: list(map(origins.build_origin_dict, config.origins(key)))
                for key in config.ordered_settings()
            }
        return fields

    def _format_toml(self, config: Config) -> str:
        lines = ["[profile]"]
        lines += [
            f"{name} = {keys.format_toml_value(value)}"
            for name, value in collect_profile_head(config).items()
        ]
        for section, settings in config.sections().items():
            if settings:
                lines += ["", f"[{section}]"]
            for name, value in settings.items():
                key = keys.format_full_key(section, name)
                if self.origin:
                    lines += _format_value_lines(
                        config,
                        key,
                        keys.format_key_segment(name),
                        config.traced_value(key),
                        (),
                        self.coloured,
                    )
                else:
                    lines.append(
                        f"{keys.format_key_segment(name)} = {keys.format_toml_value(value)}"
                    )
        return "\n".join(lines) + "\n"


def _format_value_lines(
    config: Config, key: str, name: str, value: Any, tail: Path, coloured: bool
) -> list[str]:
    """Return the lines of a value, with the origin of each leaf and list element as a comment."""
    from npuprof.resolve import origins

    # the table of a variable names a fact of the launcher
    if isinstance(value, dict) and not key.startswith("env."):
        lines = []
        for part, item in value.items():
            inner_name = f"{name}.{keys.format_key_segment(part)}"
            lines += _format_value_lines(config, key, inner_name, item, (*tail, part), coloured)
        # an empty table would otherwise be missing
        return lines or [f"{name} = {{}}"]
    authors = origins.collect_authors(value)
    losers = [
        f"{keys.format_toml_value(lost)} ({origin})"
        for lost, origin in origins.find_overridden(config, key, tail)
    ]
    overridden = f"over {', '.join(losers)}" if losers else ""
    # one author for all elements is cited once, behind the list
    if isinstance(value, list) and len(set(map(str, authors))) > 1:
        lines = [f"{name} = ["]
        for item in value:
            written = keys.format_toml_value(origins.strip_origins(item))
            author = str(origins.collect_authors(item)[0])
            lines.append(f"    {written},{_format_origin_comment(author, coloured)}")
        return [*lines, f"]{_format_origin_comment(overridden, coloured)}"]
    author = str(authors[0]) if authors else str(config.origin(key, tail))
    written = keys.format_toml_value(origins.strip_origins(value))
    comment = f"{author}, {overridden}" if overridden else author
    return [f"{name} = {written}{_format_origin_comment(comment, coloured)}"]


def _format_origin_comment(text: str, coloured: bool) -> str:
    return paint_text(f"  # {escape_controls(text)}", "2", coloured) if text else ""


VERB = Show
