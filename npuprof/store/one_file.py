"""A preset in a file of its own, outside any store."""

from __future__ import annotations

import os

from npuprof import document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError
from npuprof.report.output import read_plain_file
from npuprof.store import Folder, format_relative_path
from npuprof.store.problems import build_unreadable_finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.profile import ProfileSource


def read_profile_file(path: str, home: ProfileSource | None) -> Profile:
    """Return the profile in one file outside any store; its parents are looked up in ``home``. Raises NpuprofError."""
    source = format_relative_path(path)
    try:
        raw = read_plain_file(path)
    except FileNotFoundError:
        raise NpuprofError([Finding("NP008", f"there is no file {path!r}", "", _suggest_for_file(path, home))]) from None
    except (OSError, ValueError) as error:
        raise NpuprofError([build_unreadable_finding(source, error)]) from None
    return Profile(document.parse_document(path, source, raw), key=f"file:{os.path.realpath(path)}", home=home)


def _suggest_for_file(path: str, home: ProfileSource | None) -> str:
    name = path.removesuffix(".toml")
    if isinstance(home, Folder) and name in home.names():
        return f"did you mean the preset {name!r}? It is named without .toml"
    return "give a path to a TOML file, or a profile's name"
