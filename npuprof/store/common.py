"""What stores have in common: names are what presets can be called, and every preset is read once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from npuprof.document.profile import Profile
from npuprof.model import NpuprofError, Origin, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeVar

    from npuprof.document.policy import Policy
    from npuprof.document.profile import ProfileSource

    class Store(ProfileSource, Protocol):
        """Where profiles come from: a folder now, a git revision or another team's store alike."""

        label: str

        def names(self) -> list[str]:
            """Return the names of all profiles, sorted."""

    Key = TypeVar("Key")

    #: What reading a profile came to.
    ProfileOrError = Profile | NpuprofError


#: The shortest part of a name that is looked for in others, and how many of those are told.
_LEAST_PART = 2
_MOST_NEAR = 3
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def is_profile_name(name: str) -> bool:
    """Return whether a text can be the name of a profile."""
    parts = name.split("/")
    return all(part and part[0] not in ".-" and _ALLOWED.issuperset(part) for part in parts) and not name.endswith(".toml")


class ReadOnceStore:
    """What stores have in common: names are what profiles can be called, every profile is read once.

    ``root`` is the folder of the store, of a revision that of the store it belongs to.
    """

    label = ""
    root = ""

    def __init__(self) -> None:
        self._profiles: dict[str, ProfileOrError] = {}
        self._hints: dict[str, str] = {}
        self._policy: Policy | None = None
        self._has_read_policy = False
        self.kept: dict[str, object] = {}  #: releases that lie in it as files, by the references to them: kept for ``kept``

    def names(self) -> list[str]:
        """Return the names of all profiles, sorted; files whose names cannot be used are in ``stray_files``."""
        return sorted(name for name in self._list_files() if is_profile_name(name))

    def stray_files(self) -> list[str]:
        """Return the paths below the store of TOML files whose names no profile can have."""
        return sorted(f"{name}.toml" for name in self._list_files() if not is_profile_name(name))

    def cite_file(self, path: str) -> str:
        """Return the path to cite for a file of the store, by its name with ``.toml``."""
        return os.path.join(self.label, path)

    def profile(self, name: str, asked: Origin | None = None) -> Profile:
        """Return one profile. ``asked`` is the reference that named it, to blame if there is none.

        Raises NpuprofError: no such profile, not a file, outside the store, not text, not TOML.
        """
        return read_once(self._profiles, name, lambda: self._read_profile(name, asked))

    def lay_over(self, profile: Profile) -> None:
        """Let a profile be what its name gives from here on: one that may be written."""
        self._profiles[profile.name] = profile

    def take_out(self, name: str) -> None:
        """Let a name give nothing from here on: that of a preset that may go."""
        from npuprof.store.problems import build_missing_finding

        self._profiles[name] = NpuprofError([build_missing_finding("NP008", name, self.label, "", None)])

    def find_policy(self, name: str) -> Policy | None:
        """Return what the tree of the store says of the findings of a preset, None where it says nothing. Raises NpuprofError."""
        policy = self.load_policy()
        return policy.select(name) if policy is not None else None

    def load_policy(self) -> Policy | None:
        """Return what the tree of the store says of findings, read once; None where it says nothing. Raises NpuprofError."""
        if not self._has_read_policy:
            if self._may_have_policy():
                from npuprof.store.sources.policies import read_policy

                self._policy = read_policy(self)
            self._has_read_policy = True
        return self._policy

    def _may_have_policy(self) -> bool:
        """Return whether anything may be said of findings in its tree."""
        return True

    def _list_files(self) -> Iterable[str]:
        """Return the paths of the TOML files below the store, without ``.toml``."""
        raise NotImplementedError

    def _read_profile(self, name: str, asked: Origin | None) -> Profile:
        raise NotImplementedError

    def _suggest_name(self, name: str, otherwise: str) -> str:
        """Return what else a name that is not there may have meant; looked for once, as there may be thousands."""
        if name not in self._hints:
            self._hints[name] = did_you_mean(name, self.names(), "") or self._suggest_by_part(name) or otherwise
        return self._hints[name]

    def _suggest_by_part(self, name: str) -> str:
        """Return which presets a part of a name may mean: the last segment, or how a name begins; empty where there is none."""
        if len(name) < _LEAST_PART:
            return ""
        found = [one for one in self.names() if one.endswith(f"/{name}")]
        found = found or [one for one in self.names() if one.rpartition("/")[2].startswith((f"{name}-", f"{name}_"))]
        return f"did you mean {' or '.join(map(repr, found[:_MOST_NEAR]))}?" if found else ""


def read_once(known: dict[Key, ProfileOrError], key: Key, read: Callable[[], Profile]) -> Profile:
    """Return what ``known`` has below a key, else what is read; an error is kept alike. Raises NpuprofError."""
    found = known.get(key)
    if found is None:
        try:
            found = read()
        except NpuprofError as error:
            if error.findings[0].origin is not None:
                raise  # blames whoever asked: the next to ask gets an error of its own
            found = error
        known[key] = found
    if isinstance(found, NpuprofError):
        raise found
    return found
