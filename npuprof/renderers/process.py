"""Fills the caller's ConfigProto as the rendered code would."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping

from npuprof import catalog
from npuprof.catalog.launchers import find_launcher_fact
from npuprof.model import Any, build_error
from npuprof.renderers import (
    collect_sidecars,
    encode_fitting_value,
    place_sidecars,
    reject_lost_options,
)
from npuprof.resolve.config import Config
from npuprof.system import find_user_folder
from npuprof.system.files import UnfitFileError, describe_os_error, make_folder, read_plain_file

_REWRITER_OFF = 2  # RewriterConfig.OFF
#: Variables that npuprof itself obeys; all others with this prefix belong to presets.
_OBEYED = tuple(f"NPUPROF_{name}" for name in catalog.CONTROL_VARIABLES)


def fill_config_proto(config: Config, config_proto: Any, folder: str | None) -> Any:
    """Set the options in ``config_proto.graph_options``; return it.

    Sidecar files are written to ``folder``, without one to npuprof's cache. Raises NpuprofError for
    options without a protobuf field, before anything is changed.
    """
    records = {}
    lost = {}
    for name in config.options:
        record = catalog.find_option(name)
        if record is not None and record.field:
            records[name] = record
        else:
            lost[name] = ""
    reject_lost_options(config, lost, "session")
    values = {
        name: encode_fitting_value(config, record, config.options[name], "session")
        for name, record in records.items()
    }
    sidecar_folder = folder or sidecar_cache_folder(config)
    values |= place_sidecars(config, sidecar_folder)
    write_sidecars(config, sidecar_folder)
    rewrite_options = config_proto.graph_options.rewrite_options
    for entry in rewrite_options.custom_optimizers:
        if entry.name == "NpuOptimizer":
            break
    else:
        entry = rewrite_options.custom_optimizers.add()
        entry.name = "NpuOptimizer"
    for name, record in records.items():
        # a path may contain bytes that are not UTF-8
        value = os.fsencode(values[name]) if record.field == "s" else values[name]
        setattr(entry.parameter_map[name], str(record.field), value)
    rewrite_options.remapping = _REWRITER_OFF
    rewrite_options.memory_optimization = _REWRITER_OFF
    return config_proto


def strip_environment(environ: Mapping[str, str], removed: Collection[str]) -> dict[str, str]:
    """Return an environment without earlier exports of presets and ``removed`` variables."""
    return {
        name: text
        for name, text in environ.items()
        if name not in removed and (name in _OBEYED or not name.startswith("NPUPROF_"))
    }


def sidecar_cache_folder(config: Config) -> str:
    """Return the cache folder for a config's sidecar files: named by the digest, so never stale."""
    return os.path.join(find_user_folder("cache"), config.digest)


def build_fact_finder(environ: Mapping[str, str]) -> Callable[[str], str | None]:
    """Return a function that finds launcher facts of this process in variables and rank table."""

    def find_known_fact(name: str) -> str | None:
        fact = find_launcher_fact(name, environ)
        path = environ.get("RANK_TABLE_FILE")
        if fact is not None or not path:
            return fact

        try:
            return find_launcher_fact(name, environ, read_plain_file(path).decode())
        except UnfitFileError as error:
            what = f"cannot read {path}: {describe_os_error(error, path)}"
            why = "RANK_TABLE_FILE names it."
            raise build_error(
                "NP003", what, why, "name the rank table's file, or clear RANK_TABLE_FILE"
            ) from None
        # a missing table only has no facts; a pipe or a device is an error, as it could block
        except (OSError, ValueError):
            return None

    return find_known_fact


def write_sidecars(config: Config, folder: str) -> None:
    """Write the sidecar files of a config into a folder. Raises NpuprofError."""
    files = dict(collect_sidecars(config).values())
    if files:
        from npuprof.system.writing import PlannedWrite, write_planned_files

        make_folder(folder)
        planned = [
            PlannedWrite(os.path.join(folder, name), text.encode(), below=folder)
            for name, text in files.items()
        ]
        write_planned_files(planned)
