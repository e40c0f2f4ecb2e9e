"""``run``: become a command, in the environment of a preset."""

from __future__ import annotations

import os
import sys
from typing import Any

from npuprof.commands.export import resolved
from npuprof.model import Finding, NpuprofError
from npuprof.report import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: npuprof's own variables; all others that start like them belong to presets.
_OWN = ("NPUPROF_STORE", "NPUPROF_DEBUG")


def run(command: Sequence[str], **given: Any) -> int:
    """Replace this process by a command in the preset's environment; signals and its exit code are its own.

    Returns only where that failed: 127 for a command that is not there, 126 for one that cannot be started.
    Raises NpuprofError.
    """
    from npuprof.renderers.environment import collect_env_variables
    from npuprof.renderers.process import build_fact_finder, sidecar_cache_folder, write_sidecars

    if not command:
        raise NpuprofError([Finding("NP914", "error", "no command to run", "", "write it after --: npuprof run NAME -- python train.py")])
    config = resolved(given, "env", given["unset"])
    found, notes = collect_env_variables(config, build_fact_finder(os.environ), sidecar_cache_folder(config))
    write_sidecars(config, sidecar_cache_folder(config))
    for note in notes:
        output.write_to_stderr(f"npuprof: {note}")
    environment = {name: text for name, text in os.environ.items() if not name.startswith("NPUPROF_") or name in _OWN}
    environment.update(found)
    return _become(list(command), environment)


def _become(command: list[str], environment: dict[str, str]) -> int:
    import signal

    from npuprof.report import format_findings

    sys.stdout.flush()
    sys.stderr.flush()
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and what is ignored stays ignored in the command
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606
    except OSError as error:
        missing = isinstance(error, FileNotFoundError) and not os.path.exists(command[0])
        what = f"cannot run {command[0]}: {'there is no such command' if missing else str(error.strerror).lower()}"
        hint = "check its name and PATH" if missing else "check that it may be executed, and its first line"
        sys.stderr.write(format_findings([Finding("NP915", "error", what, "", hint)], output.is_colour_wanted("auto", sys.stderr)))
        return 127 if missing else 126
