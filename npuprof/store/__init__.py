"""Stores of profiles: a folder of TOML files, named by their relative paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache

from npuprof import document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Origin, did_you_mean
from npuprof.report import say_option
from npuprof.system import lazy_module
from npuprof.system.files import read_plain_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from npuprof.document.policy import Policy
    from npuprof.document.profile import ProfileSource
    from npuprof.store import parents as _parents
    from npuprof.store import problems as _problems
    from npuprof.store.layout import Layout

    Key = TypeVar("Key")

    #: The result of reading a profile.
    ProfileOrError = Profile | NpuprofError
else:
    _parents = lazy_module("npuprof.store.parents")
    _problems = lazy_module("npuprof.store.problems")

#: The files next to the store's folder: the project file, which also lists presets outside the store, and the lock of its sources.
FILE, LOCK_FILE = "npuprof.toml", "npuprof.lock"

#: Characters besides letters and digits in a source's name; ``/`` precedes a source of a source.
_JOINTS = {ord(char): None for char in "-_/"}

#: The store that npuprof ships; also the prefix of its presets.
BUILTIN = "builtin:"

#: Project files next to a store that are not presets.
_PROJECT_FILES = ("pyproject.toml", FILE)

#: Limits of suggestions by a part of a name: its minimum length, and their number.
_LEAST_PART = 2

_MOST_NEAR = 3

_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def is_source_reference(text: str) -> bool:
    """Return whether a spec or reference names a preset of a source: ``team:base/training@2``."""
    source, colon, _ = text.partition("@")[0].partition(":")
    return bool(colon) and source != "builtin" and source.isascii() and source.translate(_JOINTS).isalnum()


@lru_cache(1 << 15)  # asked of a name wherever it comes from
def is_profile_name(name: str) -> bool:
    """Return whether a text is a valid profile name."""
    parts = name.split("/")
    return all(part and part[0] not in ".-" and _ALLOWED.issuperset(part) for part in parts) and not name.endswith(".toml")


class ReadOnceStore:
    """The base class of stores: names are valid profile names, and every profile is read once.

    ``root`` is the folder of the store; for a revision, of the store that it belongs to.
    """

    label = ""
    root = ""

    def __init__(self) -> None:
        self._profiles: dict[str, ProfileOrError] = {}
        self._hints: dict[str, str] = {}
        self._keyed: set[str] = set()
        self._policy: Policy | None = None
        self._has_read_policy = False
        self.kept: dict[str, object] = {}  #: vendored releases by reference, cached for ``kept``

    def names(self) -> list[str]:
        """Return the names of all profiles, sorted; files with invalid names are in ``stray_files``."""
        return sorted(name for name in self._list_files() if is_profile_name(name))

    def stray_files(self) -> list[str]:
        """Return the relative paths of TOML files whose names no profile can have."""
        return sorted(f"{name}.toml" for name in self._list_files() if not is_profile_name(name))

    def cite_file(self, path: str) -> str:
        """Return the path to cite for a file of the store, given its name with ``.toml``."""
        return os.path.join(self.label, path)

    def profile(self, name: str, asked: Origin | None = None) -> Profile:
        """Return a profile. ``asked`` is the reference that names it, cited in errors.

        Raises NpuprofError: missing, not a file, outside the store, not text, not TOML.
        """
        profile = self.load_profile(name, asked)
        if name not in self._keyed:
            self._keyed.add(name)
            if pins := self._find_pins(profile):
                profile.key = f"{profile.key}[{' '.join(sorted(pins))}]"
        return profile

    def load_profile(self, name: str, asked: Origin | None = None) -> Profile:
        """Return a profile without the targets of pinned ancestors in its key. Raises NpuprofError."""
        return read_once(self._profiles, name, lambda: self._read_profile(name, asked))

    def _find_pins(self, profile: Profile) -> Collection[str]:
        """Return the targets of pinned references in a profile and its ancestors: part of its key unless they are unique."""
        return ()

    def lay_over(self, profile: Profile) -> None:
        """Replace a profile from now on by one that may be written."""
        self._profiles[profile.name] = profile

    def take_out(self, name: str) -> None:
        """Remove a profile from now on, as it may be deleted."""
        self._profiles[name] = NpuprofError([_problems.build_missing_finding("NP008", name, self.label, "", None)])

    def find_policy(self, name: str) -> Policy | None:
        """Return the policy of the store's tree for a preset, None if there is none. Raises NpuprofError."""
        policy = self.load_policy()
        return policy.select(name) if policy is not None else None

    def load_policy(self) -> Policy | None:
        """Return the policy of the store's tree, cached; None if there is none. Raises NpuprofError."""
        if not self._has_read_policy:
            if self._may_have_policy():
                from npuprof.store.sources.reading import read_policy

                self._policy = read_policy(self)
            self._has_read_policy = True
        return self._policy

    def _may_have_policy(self) -> bool:
        """Return whether its tree may have a policy."""
        return True

    def _list_files(self) -> Iterable[str]:
        """Return the relative paths of the TOML files, without ``.toml``."""
        raise NotImplementedError

    def _read_profile(self, name: str, asked: Origin | None) -> Profile:
        raise NotImplementedError

    def _suggest_name(self, name: str, otherwise: str) -> str:
        """Return a suggestion for a missing name; cached, as there may be thousands of lookups."""
        if name not in self._hints:
            self._hints[name] = did_you_mean(name, self.names(), "") or self._suggest_by_part(name) or otherwise
        return self._hints[name]

    def _suggest_by_part(self, name: str) -> str:
        """Return the presets that match a part of a name, or a name after a folder; an empty string if there are none."""
        if len(name) < _LEAST_PART:
            return ""
        names = [candidate for candidate in self.names() if candidate.endswith(f"/{name}") or name.endswith(f"/{candidate}")]
        names = names or [candidate for candidate in self.names() if candidate.rpartition("/")[2].startswith((f"{name}-", f"{name}_"))]
        return f"did you mean {' or '.join(map(repr, names[:_MOST_NEAR]))}?" if names else ""


def read_once(known: dict[Key, ProfileOrError], key: Key, read: Callable[[], Profile]) -> Profile:
    """Return a cached value, else the result of ``read``; errors are cached too. Raises NpuprofError."""
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


class ComposedParts:
    """The store of a composed profile: its parts by key."""

    def __init__(self, parts: dict[str, Profile]) -> None:
        self.parts = parts

    def profile(self, name: str, asked: Origin | None = None) -> Profile:
        """Return a part by key."""
        return self.parts[name]

    def find_policy(self, name: str) -> Policy | None:
        """Return the policy of any of the parts. Raises NpuprofError."""
        joined: Policy | None = None
        for part in self.parts.values():
            policy = part.home.find_policy(part.name) if part.home is not None else None
            joined = policy if joined is None else joined.join(policy) if policy is not None else joined
        return joined


def find_extended_profile(home: ProfileSource, reference: str, referrer: Profile | None, index: int) -> Profile:
    """Return the profile of a reference in ``extends``, looked up in a store or its history. Raises NpuprofError."""
    asked = referrer.origin("profile", "extends", index) if referrer else None
    if isinstance(home, ComposedParts) or not ("@" in reference or is_source_reference(reference)):
        return home.profile(reference, asked)
    return _parents.find_distant_profile(home, reference, asked, referrer)


class Folder(ReadOnceStore):
    """A store in a folder. Files are read on demand, each once."""

    in_work_tree = True

    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = root
        label = format_relative_path(root)
        self.label = label if label != BUILTIN else f"./{label}"  # a folder with the name of the shipped store
        self.is_shipped = False  #: whether it is the store that npuprof ships
        self.beside = ""  #: the key prefix of its presets, if another store is used too
        self.repository: object = None  #: the repository around it, cached for ``revisions``
        self.read_ahead: Mapping[str, bytes] = {}  #: texts of presets that were loaded in advance
        self.read_absent: Callable[[str], bytes | None] | None = None  #: how to read files that a sparse checkout excludes
        self.is_implied = False  #: whether it may be missing: a repository without its own presets
        self.is_source = False  #: whether it is a vendored copy, of which only the folder is shared
        self.keeps_releases: bool | None = None  #: whether it has a folder of vendored releases, determined on demand
        self.project: object = None  #: its npuprof.toml, cached for ``sources.project``
        self.sources: object = None  #: its sources, likewise
        self._listed: dict[str, bool] | None = None
        self._names: list[str] | None = None
        self._real = ""
        self._layout: Layout | None = None
        self._project_file: str | None = None

    @property
    def project_file(self) -> str:
        """The path of npuprof.toml next to the store, cached; an empty string if there is none, or it belongs to another store."""
        if self._project_file is None:
            alone = self.is_source or not self.in_work_tree or self.label == BUILTIN
            path = "" if alone else os.path.join(find_project_folder(self), FILE)
            self._project_file = path if path and os.path.lexists(path) else ""
        return self._project_file

    @property
    def layout(self) -> Layout:
        """The layout of presets, relative to the folder of npuprof.toml."""
        if self._layout is None:
            from contextlib import suppress

            from npuprof.store.layout import Layout, read_globs

            globs: tuple[str, ...] = ()
            if self.project_file:
                with suppress(OSError):  # reported when the rest of the file is read
                    globs = read_globs(read_plain_file(self.project_file))
            real = os.path.realpath(self.root)
            inside = bool(self.project_file) and os.path.dirname(self.project_file) == real
            self._layout = Layout("" if inside else f"{os.path.basename(real)}/", globs)
        return self._layout

    def _may_have_policy(self) -> bool:
        return bool(self.project_file)

    def names(self) -> list[str]:
        """Return the names of all profiles, sorted; files are listed once."""
        if self._names is None:
            self._names = super().names()
        return list(self._names)

    def _list_files(self) -> Iterable[str]:
        return self._load_listing()

    def list_names_beginning(self, text: str) -> list[str]:
        """Return the names with a prefix, sorted; folders without matches are not read."""
        if self.project_file and self.layout.globs:
            return [name for name in self.names() if name.startswith(text)]
        names = (name for name, _ in self._scan_folder(self.root, "", text))
        reserved = FILE.removesuffix(".toml") if self.project_file and not self.layout.prefix else ""
        return sorted({name for name in names if name.startswith(text) and name != reserved and is_profile_name(name)})

    def _load_listing(self) -> dict[str, bool]:
        """Return the names of the store, cached, and whether each is a plain file rather than a link."""
        if self._listed is None:
            listed = dict(self._scan_folder(self.root, ""))
            if self.project_file and not self.layout.prefix:
                listed.pop(FILE.removesuffix(".toml"), None)
            if self.project_file and self.layout.globs:
                listed = {**self._scan_outside(), **listed}
            self._listed = listed
        return self._listed

    def _scan_outside(self) -> dict[str, bool]:
        """Return the names of files outside the store listed by npuprof.toml. Raises NpuprofError for an unreadable folder."""
        from npuprof.store.layout import scan_outside_presets

        folder = os.path.dirname(self.project_file)
        try:
            return dict(scan_outside_presets(folder, self.layout))
        except OSError as error:
            path = format_relative_path(str(error.filename or folder))
            hint = f"check its permissions, or write {format_relative_path(self.project_file)} so that presets leads elsewhere"
            raise NpuprofError([_problems.build_unreadable_finding(path, error)._replace(hint=hint)]) from None

    def is_outside(self, name: str) -> bool:
        """Return whether a preset is, or would be, outside the store's folder: npuprof.toml lists it and the store lacks it."""
        if not self.project_file or not self.layout.takes(name):
            return False
        return not os.path.lexists(f"{self.root}/{name}.toml")

    def locate_file(self, path: str) -> str:
        """Return the preset name of a file by its absolute path; an empty string if it is not in the store."""
        root = os.path.abspath(self.root) + os.sep
        name = path[len(root) : -5]
        if path.startswith(root):
            return name if is_profile_name(name) else ""
        folder = f"{os.path.dirname(self.project_file)}{os.sep}"
        if not self.project_file or not self.layout.globs:
            return ""
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        name = real[len(folder) : -5]
        return name if real.startswith(folder) and is_profile_name(name) and self.layout.takes(name) else ""

    def cite_file(self, path: str) -> str:
        """Return the path to cite for a file of the store, given its name with ``.toml``."""
        if self.is_outside(path.removesuffix(".toml")):
            return format_relative_path(os.path.join(os.path.dirname(self.project_file), path))
        return super().cite_file(path)

    def _scan_folder(self, folder: str, below: str, beginning: str = "") -> Iterator[tuple[str, bool]]:
        """Yield the names below a folder, and whether each is a plain file; names without the prefix ``beginning`` are skipped."""
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            if self.is_implied and isinstance(error, FileNotFoundError):
                return
            raise NpuprofError([_problems.build_unreadable_finding(format_relative_path(folder), error)]) from None
        for entry in entries:
            name = entry.name
            inside = f"{below}{name}/"
            if name.startswith(".") or not inside.startswith(beginning[: len(inside)]):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._scan_folder(entry.path, inside, beginning)
                if name.endswith(".toml"):
                    yield f"{below}{name[:-5]}", False  # a folder with a preset's name: reading it reports that
            elif name.endswith(".toml"):
                yield f"{below}{name[:-5]}", entry.is_file(follow_symlinks=False)

    def profile_path(self, name: str) -> str:
        """Return the path of a profile's file, to open it."""
        return os.path.join(self.folder_of(name), f"{name}.toml")

    def folder_of(self, name: str) -> str:
        """Return the root of a profile's relative path: the store, or the folder of npuprof.toml."""
        return os.path.dirname(self.project_file) if self.is_outside(name) else self.root

    def _read_profile(self, name: str, asked: Origin | None) -> Profile:
        if not is_profile_name(name):
            raise NpuprofError([_problems.build_bad_name_finding(name, asked, self.names())])
        path = f"{self.root}/{name}.toml"
        source = f"{self.label}/{name}.toml" if self.label != BUILTIN else path
        if self.project_file and self.layout.takes(name):
            outer = os.path.join(os.path.dirname(self.project_file), f"{name}.toml")
            shown = format_relative_path(outer)
            if not os.path.lexists(path):
                path, source = outer, shown
            elif os.path.lexists(outer):
                raise NpuprofError([_problems.build_clash_finding(name, (source, shown), asked)])
        try:
            if not (self._listed or {}).get(name) and self._leads_elsewhere(path, path != f"{self.root}/{name}.toml"):
                raise NpuprofError([_problems.build_outside_finding(source, name, asked, path != f"{self.root}/{name}.toml")])
            raw = self.read_ahead.get(name) or read_plain_file(path)
        except (FileNotFoundError, NotADirectoryError):
            absent = self.read_absent(name) if self.read_absent else None
            if absent is None:
                raise NpuprofError([self._build_missing_finding(name, asked)]) from None
            raw = absent
        except OSError as error:
            raise NpuprofError([_problems.build_unreadable_finding(source, error)]) from None
        return Profile(document.parse_document(name, source, raw), key=f"{self.beside}{name}", home=self)

    def _leads_elsewhere(self, path: str, outside: bool) -> bool:
        """Return whether a path leads out of the store; for a preset outside of it, whether it is or passes through a link."""
        if outside:
            return os.path.realpath(path) != path
        if os.path.dirname(path) == self.root and not os.path.islink(path):
            return False
        self._real = self._real or os.path.realpath(self.root)
        return not os.path.realpath(path).startswith(self._real.rstrip(os.sep) + os.sep)

    def _build_missing_finding(self, name: str, asked: Origin | None) -> Finding:
        hint = self._suggest_name(
            name, f"npuprof list{' --store builtin:' if self.label == 'builtin:' else ''} lists the presets of {self.label}"
        )
        if not self.names():
            hint = f"{self.label} has no presets yet: npuprof init creates a store with samples, npuprof new {name} makes this one"
        if asked is None and os.path.islink(f"{self.root}/{name}.toml"):
            hint = f"{self.label}/{name}.toml is a link to a missing file: correct or remove it"
        return _problems.build_missing_finding("NP008", name, self.label, hint, asked)


def find_store(given: str | None, environ: dict[str, str] | os._Environ[str], in_python: bool = False) -> Folder:
    """Return the store: the given one, else ``$NPUPROF_STORE``, else ``profiles/`` in the nearest parent folder.

    Raises NpuprofError if there is none; the message names the option, or the library's argument if ``in_python``.
    """
    asked = given or environ.get("NPUPROF_STORE")
    if asked == BUILTIN:
        return open_builtin_store()
    if asked:
        if not os.path.isdir(asked):
            named = say_option("store", in_python=in_python) if given else "$NPUPROF_STORE"
            raise NpuprofError([_problems.build_no_folder_finding(asked, f"It was named by {named}.", in_python)])
        if _holds_store_below(asked):
            raise NpuprofError([_problems.build_project_folder_finding(asked, bool(given), in_python)])
        return Folder(asked)
    here = os.getcwd()
    while True:
        candidate = os.path.join(here, "profiles")
        if os.path.isdir(candidate):
            return Folder(candidate)
        if os.path.isfile(os.path.join(here, FILE)):
            implied = Folder(candidate)
            implied.is_implied = True
            return implied
        parent = os.path.dirname(here)
        if parent == here:
            raise NpuprofError([_problems.build_no_store_finding(in_python)])
        here = parent


def _holds_store_below(folder: str) -> bool:
    """Return whether a folder is a project that contains a store, rather than a store."""
    try:
        names = os.listdir(folder)
        below = os.listdir(os.path.join(folder, "profiles")) if "profiles" in names else []
    except OSError:
        return False
    own = [name for name in names if name.endswith(".toml") and name not in _PROJECT_FILES and not name.startswith(".")]
    return not own and any(name.endswith(".toml") for name in below)


def find_project_folder(home: Folder) -> str:
    """Return the folder of ``npuprof.toml``: the store's parent, or the store itself at the top of its repository."""
    root = os.path.realpath(home.root)
    return root if os.path.exists(os.path.join(root, ".git")) else os.path.dirname(root)


def open_builtin_store(beside: bool = False) -> Folder:
    """Return the read-only store that npuprof ships; ``beside`` another store, whose presets may have the same names."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shipped = os.path.join(package, "profiles")
    store = Folder(shipped if os.path.isdir(shipped) else os.path.join(os.path.dirname(package), "profiles"))
    store.label = BUILTIN
    store.is_shipped = True
    store.beside = BUILTIN if beside else ""
    return store


def format_relative_path(path: str) -> str:
    """Return a path for display: relative if it is below the current folder."""
    full = os.path.abspath(path)
    here = os.getcwd()
    return full[len(here) :].lstrip(os.sep) if full.startswith(here.rstrip(os.sep) + os.sep) else full
