"""A folder for ``vllm serve``: ``config.yaml`` for its ``--config``, and ``env.sh``."""

from __future__ import annotations

import json
from typing import Any

from npuprof.document import keys
from npuprof.model import NpuprofError
from npuprof.renderers import Rendered, Target, add_render_header, build_unfit_finding
from npuprof.renderers.environment import collect_env_variables
from npuprof.renderers.environment_files import format_clear_and_export_lines, format_yaml_key
from npuprof.resolve.config import Config


def render_vllm(config: Config, inline: bool) -> Rendered:
    """Return ``config.yaml`` with ``env.sh`` as its sidecar; ``inline`` omits the headers.

    Raises NpuprofError for unfit values.
    """
    arguments = config.shared_sections["vllm"]
    additional = config.shared_sections["vllm_ascend"]
    for section in ("vllm", "vllm_ascend"):
        for name, value in config.shared_sections[section].items():
            try:
                # JSON has neither infinite numbers nor dates
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError):
                key = keys.format_full_key(section, name)
                raise NpuprofError(build_unfit_finding(config, key, "vllm")) from None
    lines = []
    for name, value in arguments.items():
        # --no-NAME has dashes only
        key = format_yaml_key(name.replace("_", "-") if value is False else name)
        lines.append(f"{key}:{_format_argument(value)}\n")
    if additional:
        lines.append(f"additional-config: {_format_json_text(additional)}\n")
    # [env] and the preset's identity
    variables, notes = collect_env_variables(config, None, ".", with_options=False)
    exports = format_clear_and_export_lines(config, "bash", variables)
    files = {"env.sh": exports if inline else add_render_header(config, "vllm", exports)}
    # an empty YAML file is null, not a table
    body = "".join(lines) or "{}\n"
    return Rendered(
        body if inline else add_render_header(config, "vllm", body, files), files, tuple(notes)
    )


def _format_argument(value: Any) -> str:
    """Return a value as YAML after its key; the items of a list are arguments of the command."""
    if isinstance(value, list) and value:
        return "".join(f"\n  - {_format_scalar(item)}" for item in value)
    return f" {_format_scalar(value)}"


def _format_scalar(value: Any) -> str:
    """Return a value as a scalar for PyYAML.

    A table as JSON text, as older releases of vLLM need.
    """
    if isinstance(value, str):
        return format_yaml_key(value)
    if isinstance(value, float):
        text = repr(value)
        # without a point, YAML 1.1 reads a string
        return text if "." in text else text.replace("e", ".0e")
    if value and isinstance(value, (dict, list)):
        return _format_json_text(value)
    return json.dumps(value)


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
