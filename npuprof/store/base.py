"""The base of all stores: valid names, and every profile read once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from npuprof.document.profile import Profile, ProfileSource
from npuprof.model import TYPE_CHECKING, NpuprofError, Origin, Record, did_you_mean
from npuprof.store import is_profile_name, is_source_reference

if TYPE_CHECKING:
    from typing import TypeVar

    from npuprof.store.versions import Version

    Key = TypeVar("Key")

    #: The result of reading a profile.
    ProfileOrError = Profile | NpuprofError

    #: A parent: its store, and its name there.
    Parent = tuple["CachedStore", str]


#: Limits of suggestions by a part of a name: its minimum length, and their number.
_LEAST_PART = 2

_MOST_NEAR = 3


class PinTarget(Record):
    """The target of a reference with an @: its store if it is open, its name and its commit."""

    store: CachedStore | None
    name: str
    commit: str


class CachedStore(ProfileSource):
    """The base class of stores: names are valid profile names, and every profile is read once.

    ``root`` is the folder of the store; for a revision, of the store that it belongs to.
    """

    label = ""
    release: Version | None = None  #: the release as which it was requested, if any
    seen_from = ""  #: the commit whose tags ranges select from; empty for HEAD
    commit_in_pins = ""  #: its commit, unless the keys of its profiles have it
    #: whether the targets of pinned references are part of its profiles' keys: if one name may have
    #: several
    has_pins = False

    def __init__(self) -> None:
        self._profiles: dict[str, ProfileOrError] = {}
        self._hints: dict[str, str] = {}
        self._keyed: set[str] = set()
        #: cached targets of the pinned ancestors of each profile
        self.pins: dict[str, frozenset[str]] = {}

    def names(self) -> list[str]:
        """Return the names of all profiles, sorted.

        Files with invalid names are in ``stray_files``.
        """
        return sorted(name for name in self._list_files() if is_profile_name(name))

    def stray_files(self) -> list[str]:
        """Return the relative paths of TOML files whose names no profile can have."""
        return sorted(f"{name}.toml" for name in self._list_files() if not is_profile_name(name))

    def cite_file(self, path: str) -> str:
        """Return the path to cite for a file of the store, given its name with ``.toml``."""
        return os.path.join(self.label, path)

    def profile(self, name: str, requested: Origin | None = None) -> Profile:
        """Return a profile. ``requested`` is the reference that names it, cited in errors.

        Raises NpuprofError: missing, not a file, outside the store, not text, not TOML.
        """
        profile = self.load_profile(name, requested)
        if self.has_pins and name not in self._keyed:
            self._keyed.add(name)
            if pins := self._find_pins(name):
                # sorted, since equal pins must give equal keys
                profile.key = f"{profile.key}[{' '.join(sorted(pins))}]"
        return profile

    def load_profile(self, name: str, requested: Origin | None = None) -> Profile:
        """Return a profile without the targets of pinned ancestors in its key.

        Raises NpuprofError.
        """
        return read_once(self._profiles, name, lambda: self._read_profile(name, requested))

    def _find_pins(self, name: str) -> frozenset[str]:
        """Return the targets of pinned references in a profile and its ancestors.

        Cached for each of them. The parents of a profile are finished before it, without recursion:
        a chain of parents may be long, and may have a cycle.
        """
        waiting = [(self, name)]
        opened = {}
        while waiting:
            store, current = waiting[-1]
            key = id(store), current
            if current in store.pins:
                waiting.pop()
            elif key not in opened:
                opened[key] = store.list_parents(current)
                for parent_store, parent in opened[key][1]:
                    if (id(parent_store), parent) not in opened:
                        waiting.append((parent_store, parent))
            else:
                own, parents = opened[key]
                pins = set(own)
                for parent_store, parent in parents:
                    pins.update(parent_store.pins.get(parent, ()))
                store.pins[current] = frozenset(pins)
                waiting.pop()
        return self.pins[name]

    def list_parents(self, name: str) -> tuple[set[str], list[Parent]]:
        """Return the targets of a profile's pinned parents, and all parents that can be read."""
        pins = set()
        parents = []
        with suppress(NpuprofError):  # reported when the profile is resolved
            for reference, origin in self.load_profile(name).iterate_references():
                with suppress(NpuprofError):
                    if is_source_reference(reference):
                        continue
                    if "@" not in reference:
                        if self.may_have_parent(reference):
                            parents.append((self, reference))
                    # the referring preset is part of it: two versions of one preset may pin
                    # differently
                    elif target := self._find_pinned(reference, origin):
                        pin = f"{name}@{self.commit_in_pins}:{reference}"
                        pins.add(f"{pin}={target.name}@{target.commit}")
                        if target.store and target.store.may_have_parent(target.name):
                            parents.append((target.store, target.name))
        return pins, parents

    def may_have_parent(self, name: str) -> bool:
        """Return whether a parent is read for its pins.

        An error found here would not cite the reference.
        """
        return is_profile_name(name)

    def _find_pinned(self, reference: str, requested: Origin | None) -> PinTarget | None:
        """Return the target of a reference with an @, None if there is none."""
        raise NotImplementedError

    def replace_preset(self, profile: Profile) -> None:
        """Replace a profile from now on by one that may be written."""
        self._profiles[profile.name] = profile

    def hide_preset(self, name: str) -> None:
        """Remove a profile from now on, as it may be deleted."""
        from npuprof.store.problems import build_missing_finding

        self._profiles[name] = NpuprofError(
            build_missing_finding("NP008", name, self.label, "", None)
        )

    def may_have_policy(self) -> bool:
        """Return whether its tree may have a team policy."""
        return True

    def _list_files(self) -> Iterable[str]:
        """Return the relative paths of the TOML files, without ``.toml``."""
        raise NotImplementedError

    def _read_profile(self, name: str, requested: Origin | None) -> Profile:
        raise NotImplementedError

    def _suggest_name(self, name: str, otherwise: str) -> str:
        """Return a suggestion for a missing name; cached, as there may be thousands of lookups."""
        if name not in self._hints:
            self._hints[name] = (
                did_you_mean(name, self.names(), "") or self._suggest_by_part(name) or otherwise
            )
        return self._hints[name]

    def _suggest_by_part(self, name: str) -> str:
        """Return the presets that match a part of a name, or a name after a folder.

        An empty string if there are none.
        """
        if len(name) < _LEAST_PART:
            return ""
        all_names = self.names()
        near = [
            candidate
            for candidate in all_names
            if candidate.endswith(f"/{name}") or name.endswith(f"/{candidate}")
        ]
        if not near:
            # only if nothing has the whole name: a short text begins many
            starts = (f"{name}-", f"{name}_")
            near = [path for path in all_names if path.rpartition("/")[2].startswith(starts)]
        return f"did you mean {' or '.join(map(repr, near[:_MOST_NEAR]))}?" if near else ""


def read_once(known: dict[Key, ProfileOrError], key: Key, read: Callable[[], Profile]) -> Profile:
    """Return a cached value, else the result of ``read``; errors are cached too.

    Raises NpuprofError.
    """
    profile = known.get(key)
    if profile is None:
        try:
            profile = read()
        except NpuprofError as error:
            if error.findings[0].origin is not None:
                raise  # cites the current reference: the next one gets its own error
            profile = error
        known[key] = profile
    if isinstance(profile, NpuprofError):
        raise profile
    return profile


class ComposedParts(ProfileSource):
    """The store of a composed profile: its parts by key, and what they were built from."""

    def __init__(self, parts: dict[str, Profile], content: object = None) -> None:
        self.parts = parts
        self.content = content

    def profile(self, name: str, requested: Origin | None = None) -> Profile:
        """Return a part by key."""
        return self.parts[name]

    def may_have_policy(self) -> bool:
        """Return whether any part may have a team policy."""
        return any(
            part.home is not None and part.home.may_have_policy() for part in self.parts.values()
        )
