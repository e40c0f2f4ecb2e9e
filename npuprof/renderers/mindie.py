"""A folder for MindIE: ``config.json``, merged over an installed one, and ``env.sh``."""

from __future__ import annotations

from npuprof.document.json_tree import Edit, apply_edits, find_edits
from npuprof.renderers import Rendered, Target, add_render_header, require_json
from npuprof.renderers.environment import collect_env_variables
from npuprof.renderers.environment_files import format_clear_and_export_lines
from npuprof.resolve.config import Config


def render_mindie(config: Config, inline: bool) -> Rendered:
    """Return ``config.json`` with ``env.sh`` as its sidecar; ``inline`` omits the latter's header.

    Raises NpuprofError for unfit values.
    """
    variables, notes = collect_env_variables(config, None, ".", with_options=False)
    exports = format_clear_and_export_lines(config, "bash", variables)
    files = {"env.sh": exports if inline else add_render_header(config, "mindie", exports)}
    return Rendered(
        apply_edits("{}\n", find_config_edits(config, "{}\n")),
        files,
        tuple(notes),
        start=". DIR/env.sh && MIES_CONFIG_JSON_PATH=DIR/config.json mindieservice_daemon",
    )


def find_config_edits(config: Config, text: str) -> list[Edit]:
    """Return the edits that give an installed file the settings of a config.

    Raises NpuprofError for unfit values.
    """
    require_json(config, "mindie", "mindie")
    return find_edits(text, config.shared_sections["mindie"])


TARGETS = {
    "mindie": Target(
        place=87,
        summary=(
            "a folder with `config.json`, merged over `--base FILE`, and `env.sh` for MindIE, for "
            "`[mindie]` and `[env]`"
        ),
        file="config.json",
        write=render_mindie,
        sections=("mindie", "env"),
        is_folder=True,
        find_edits=find_config_edits,
    ),
}
