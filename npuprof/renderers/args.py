"""Files with the arguments of a program: a shell array, an ``@file`` of argparse, and YAML."""

from __future__ import annotations

from npuprof.model import Any, Path
from npuprof.renderers import ARGUMENT_SECTIONS, Rendered, Target, add_render_header
from npuprof.renderers.arguments import format_array, format_text, list_argument_words, list_rows
from npuprof.renderers.environment_files import format_yaml_key, format_yaml_scalar
from npuprof.resolve.config import Config


def _list_lines(section: str, path: Path, value: Any) -> list[str]:
    """Return an argument as lines of an ``@file``. Raises ValueError."""
    lines = [word for row in list_argument_words(section, path, value) for word in row]
    if any(line.startswith("@") or (line and line.splitlines() != [line]) for line in lines):
        raise ValueError("argparse reads one argument a line, and a file for each @NAME.")
    return lines


def _list_yaml_rows(section: str, path: Path, value: Any) -> list[tuple[Path, str]]:
    """Return the path of an argument and its value as YAML. Raises ValueError."""
    if path[0].startswith(("-", "+", "~")):
        raise ValueError("A YAML file has no flags, and only keys that are set.")
    return [(path, _format_yaml_value(value, section == "verl"))]


def _format_yaml_value(value: Any, with_null: bool) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_format_yaml_value(item, with_null) for item in value)}]"
    if isinstance(value, dict):
        pairs = [
            f"{format_yaml_key(k)}: {_format_yaml_value(v, with_null)}" for k, v in value.items()
        ]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, bool) or (with_null and value == "null"):
        return str(value).lower()
    format_text(value)  # only for its error
    return format_yaml_scalar(value)


def render_array(config: Config, inline: bool) -> Rendered:
    """Return the array ``ARGS`` for bash and zsh. Raises NpuprofError."""
    return Rendered(add_render_header(config, "args", format_array(config)))


def render_file(config: Config, inline: bool) -> Rendered:
    """Return one word a line, without a header: argparse has no comments. Raises NpuprofError."""
    lines = list_rows(config, _list_lines, ("megatron", "args"), "args-file")
    return Rendered("".join(f"{line}\n" for line in lines))


def render_yaml(config: Config, inline: bool) -> Rendered:
    """Return nested YAML. Raises NpuprofError."""
    lines = []
    above: Path = ()
    for path, text in list_rows(config, _list_yaml_rows, ("args", "verl"), "args-yaml"):
        for depth, name in enumerate(path, 1):
            if path[:depth] != above[:depth]:
                value = f" {text}" if depth == len(path) else ""
                lines.append(f"{'  ' * (depth - 1)}{format_yaml_key(name)}:{value}\n")
        above = path
    # an empty YAML file is null, not a table
    body = "".join(lines) or "{}\n"
    return Rendered(add_render_header(config, "args-yaml", body))


TARGETS = {
    "args": Target(
        place=85,
        summary="the array `ARGS` of a shell, with arguments of `[megatron]`, `[verl]` or `[args]`",
        file="args.sh",
        write=render_array,
        sections=ARGUMENT_SECTIONS,
    ),
    "args-file": Target(
        place=86,
        summary="an `@file` for argparse, with arguments of `[megatron]` or `[args]`",
        file="args.txt",
        write=render_file,
        sections=("megatron", "args"),
    ),
    "args-yaml": Target(
        place=87,
        summary="nested YAML, with arguments of `[args]` or `[verl]`",
        file="args.yaml",
        write=render_yaml,
        sections=("args", "verl"),
    ),
}
