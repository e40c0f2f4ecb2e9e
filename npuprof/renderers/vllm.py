"""A folder for ``vllm serve``: ``config.yaml`` for its ``--config``, and ``env.sh``."""

from __future__ import annotations

import json

from npuprof import catalog
from npuprof.catalog.releases import find_covered, is_range_within
from npuprof.document import keys
from npuprof.model import Any, raise_any
from npuprof.renderers import (
    Rendered,
    Target,
    add_render_header,
    build_formless_finding,
    require_json,
)
from npuprof.renderers.environment import collect_env_variables
from npuprof.renderers.environment_files import (
    format_clear_and_export_lines,
    format_yaml_key,
    format_yaml_scalar,
    quote_yaml_string,
)
from npuprof.resolve.config import Config

#: The releases of vLLM that read ``NAME: false``; the others drop it.
_READS_FALSE = ">=0.28.0"
_FORMLESS = "No line of a file for --config makes vLLM read this value."


def render_vllm(config: Config, inline: bool) -> Rendered:
    """Return ``config.yaml`` with ``env.sh`` as its sidecar; ``inline`` omits the headers.

    Raises NpuprofError for unfit values.
    """
    body = _format_config_file(config)
    model = "" if "model" in config.shared_sections["vllm"] else "MODEL "
    # [env] and the preset's identity
    variables, notes = collect_env_variables(config, None, ".", with_options=False)
    exports = format_clear_and_export_lines(config, "bash", variables)
    files = {"env.sh": exports if inline else add_render_header(config, "vllm", exports)}
    return Rendered(
        body if inline else add_render_header(config, "vllm", body, files),
        files,
        tuple(notes),
        start=f". DIR/env.sh && vllm serve {model}--config DIR/config.yaml",
    )


def _format_config_file(config: Config) -> str:
    """Return ``config.yaml`` without a header. Raises NpuprofError for unfit values."""
    arguments = config.shared_sections["vllm"]
    additional = config.shared_sections["vllm_ascend"]
    for section in ("vllm", "vllm_ascend"):
        require_json(config, section, "vllm")
    reads_false = _is_false_read(config)
    rows = {name: _list_rows(name, value, reads_false) for name, value in arguments.items()}
    problems = [
        build_formless_finding(config, keys.format_full_key("vllm", name), "vllm", _FORMLESS)
        for name in rows
        if rows[name] is None
    ]
    raise_any(problems)
    lines = [f"{key}:{text}\n" for pairs in rows.values() for key, text in pairs or ()]
    if additional:
        lines.append(f"additional-config: {_format_json_text(additional)}\n")
    # an empty YAML file is null, not a table
    return "".join(lines) or "{}\n"


def _is_false_read(config: Config) -> bool:
    """Return whether all releases that a config is for, if it names any, read false."""
    covered = find_covered("vllm", config.list_covered_versions().items())
    return bool(covered) and all(is_range_within(each, _READS_FALSE, "vllm") for each in covered)


def _list_rows(name: str, value: Any, reads_false: bool) -> list[tuple[str, str]] | None:
    """Return the keys and texts that make vLLM read a value; None if there are none.

    vLLM makes a flag of each key, and arguments of the value, but none of ``true``.
    """
    if name == "config":
        return None
    key = format_yaml_key(name)
    record = catalog.find_setting("vllm", name)
    if value is False:
        dashed = name.replace("_", "-")
        if record and record.kind == "bool" and not record.negations:
            return [(key, " false")] if record.default is False else None
        return (
            [(format_yaml_key(dashed), " false")]
            if reads_false
            else [(format_yaml_key(f"no-{dashed}"), " true")]
        )
    if not isinstance(value, list) or (record and record.kind == "json"):
        # vLLM takes an argument that begins with a dash as a flag, unless it is an integer
        if str(value).startswith("-") and not isinstance(value, int):
            return [(_join_flag(name, value), " true")]
        text = _format_json_text(value) if isinstance(value, list) else _format_scalar(value)
        return [(key, f" {text}")]
    has_dash = any(isinstance(item, str) and item.startswith("-") for item in value)
    if record and record.repeated and (has_dash or len(value) > 1):
        pairs = dict.fromkeys((_join_flag(name, item), " true") for item in value)
        return [*pairs] if len(pairs) == len(value) else None
    if has_dash or (not value and record and record.default):
        return None
    items = "".join(f"\n  - {_format_scalar(item)}" for item in value)
    return [(key, items or " []")]


def _join_flag(name: str, value: Any) -> str:
    """Return a key that contains the value of its flag."""
    return quote_yaml_string(f"{name}={value}")


def _format_scalar(value: Any) -> str:
    """Return a value as a scalar for PyYAML.

    A table as JSON text, as older releases of vLLM need.
    """
    if value and isinstance(value, (dict, list)):
        return _format_json_text(value)
    return format_yaml_scalar(value)


def _format_json_text(value: Any) -> str:
    """Return a value as JSON in single quotes."""
    text = json.dumps(value).replace("\x7f", "\\u007f").replace("'", "''")  # YAML has no DEL
    return f"'{text}'"


TARGETS = {
    "vllm": Target(
        place=84,
        summary=(
            "a folder with `config.yaml` and `env.sh` for `vllm serve`, for `[vllm]`, "
            "`[vllm_ascend]` and `[env]`"
        ),
        file="config.yaml",
        write=render_vllm,
        sections=("vllm", "vllm_ascend", "env"),
        is_folder=True,
    ),
}
