"""MLflow tags for a run: its preset, the digests and the context."""

from __future__ import annotations

from typing import Any

from npuprof.model import __version__
from npuprof.resolve.config import Config


def build_tags(config: Config) -> dict[str, str]:
    """Return the tags: ``npuprof whatran`` finds the commit by ``npuprof.digest``.

    Raises TypeError if the argument is not a config.
    """
    if not isinstance(config, Config):
        raise TypeError(
            f"a Config is needed, as resolve and loads return it, not {type(config).__name__}"
        )
    return {
        "npuprof.preset": config.name,
        "npuprof.digest": config.digest,
        "npuprof.preset_digest": config.preset_digest,
        "npuprof.context": config.context.describe(),
        "npuprof.version": __version__,
    }


def tag_run(config: Config, client: Any = None, run_id: str | None = None) -> dict[str, str]:
    """Tag an MLflow run with its config; return the tags.

    Without ``client``, tag MLflow's active run, or start one. With a client (an ``MlflowClient``,
    or any object with ``set_tags`` or ``set_tag``), tag the run ``run_id``, if given.

    Raises TypeError if ``config`` is not a config, if the client cannot set tags, and for an
    ``MlflowClient`` without ``run_id``.
    """
    tags = build_tags(config)
    if client is None:
        import mlflow

        client = mlflow if run_id is None else mlflow.MlflowClient()
    of_run = () if run_id is None else (run_id,)
    if not of_run and hasattr(client, "set_tags"):
        client.set_tags(tags)
    elif not of_run and hasattr(client, "get_run"):
        raise TypeError("run_id must be given with an MlflowClient, which sets the tags of any run")
    elif hasattr(client, "set_tag"):
        for name, value in tags.items():
            client.set_tag(*of_run, name, value)
    else:
        raise TypeError(
            "client must have set_tag or set_tags, as an MlflowClient has; "
            f"{type(client).__name__} has neither"
        )
    return tags
