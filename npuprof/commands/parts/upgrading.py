"""The releases of an upgrade: ``--from`` is the earlier one, ``--cann`` the later one."""

from __future__ import annotations

from npuprof.catalog.releases import release_index
from npuprof.model import Finding, NpuprofError
from npuprof.store import spec


def find_earlier_release(given: str | None, release: str | None) -> str:
    """Return the release given with ``--from``, or an empty text if there is none.

    Raises NpuprofError if that release is unknown or later than the one to move to, or if there is none to move to.
    """
    if given is None:
        return ""
    since = str(spec.build_context(given).cann)
    if release is None:
        raise NpuprofError([Finding("NP902", "--from needs to know which release to move to", "", "say --cann RELEASE as well")])
    if release_index(since) > release_index(release):
        what = f"--from {since} is later than --cann {release}"
        raise NpuprofError([Finding("NP902", what, "A move goes to a later release.", "say it the other way round")])
    return since
