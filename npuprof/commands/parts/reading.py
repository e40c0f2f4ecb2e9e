"""The workspace of verbs that only read: beside presets it takes what runs leave behind."""

from __future__ import annotations

from functools import partial

from npuprof.model import Context, Finding
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.profile import Profile


def open_workspace(
    store: str | None, context: Context | None = None, reads_runs: bool = True, unread: list[Finding] | None = None
) -> spec.Workspace:
    """Return a workspace that reads what runs leave behind as profiles, or says why the verb does not take them.

    What cannot be read of a folder of records goes to ``unread``; where there is no such list, the whole folder is refused for it.
    """
    workspace = spec.Workspace(store, context)
    workspace.read_other = partial(_read_run, unread=unread) if reads_runs else _refuse_run
    return workspace


def _read_run(path: str, unread: list[Finding] | None) -> Profile | None:
    from npuprof.runs.kinds import read_as_profile

    return read_as_profile(path, unread)


def _refuse_run(path: str) -> Profile | None:
    from npuprof.runs.kinds import refuse_as_profile

    return refuse_as_profile(path)
