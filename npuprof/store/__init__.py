"""Where profiles are kept: a folder of TOML files, named by their paths below it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress

from npuprof import document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Origin, did_you_mean
from npuprof.report import say_option
from npuprof.report.output import read_plain_file
from npuprof.store.problems import (
    build_bad_name_finding,
    build_clash_finding,
    build_missing_finding,
    build_no_folder_finding,
    build_no_store_finding,
    build_outside_finding,
    build_project_folder_finding,
    build_unreadable_finding,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from npuprof.document.policy import Policy
    from npuprof.store.layout import Layout

    Key = TypeVar("Key")

    #: What reading a profile came to.
    ProfileOrError = Profile | NpuprofError

#: The files next to the store's folder: the project file, which also names presets outside the store, and the lock of its sources.
FILE, LOCK_FILE = "npuprof.toml", "npuprof.lock"

#: The store that npuprof ships, and what stands before the name of a preset in it.
BUILTIN = "builtin:"

#: What lies beside a store in a project, and is no preset.
_PROJECT_FILES = ("pyproject.toml", FILE)

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
        self._keyed: set[str] = set()
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
        profile = self.load_profile(name, asked)
        if name not in self._keyed:
            self._keyed.add(name)
            if pins := self._find_pins(profile):
                profile.key = f"{profile.key}[{' '.join(sorted(pins))}]"
        return profile

    def load_profile(self, name: str, asked: Origin | None = None) -> Profile:
        """Return one profile without what its ancestors with an @ mean in its key. Raises NpuprofError."""
        return read_once(self._profiles, name, lambda: self._read_profile(name, asked))

    def _find_pins(self, profile: Profile) -> Collection[str]:
        """Return what the references with an @ of a profile and its ancestors mean: part of its key if that is not the same everywhere."""
        return ()

    def lay_over(self, profile: Profile) -> None:
        """Let a profile be what its name gives from here on: one that may be written."""
        self._profiles[profile.name] = profile

    def take_out(self, name: str) -> None:
        """Let a name give nothing from here on: that of a preset that may go."""
        self._profiles[name] = NpuprofError([build_missing_finding("NP008", name, self.label, "", None)])

    def find_policy(self, name: str) -> Policy | None:
        """Return what the tree of the store says of the findings of a preset, None where it says nothing. Raises NpuprofError."""
        policy = self.load_policy()
        return policy.select(name) if policy is not None else None

    def load_policy(self) -> Policy | None:
        """Return what the tree of the store says of findings, read once; None where it says nothing. Raises NpuprofError."""
        if not self._has_read_policy:
            if self._may_have_policy():
                from npuprof.store.sources.reading import read_policy

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
        """Return which presets a part of a name, or a name with a folder before it, may mean; an empty text if there is none."""
        if len(name) < _LEAST_PART:
            return ""
        names = [candidate for candidate in self.names() if candidate.endswith(f"/{name}") or name.endswith(f"/{candidate}")]
        names = names or [candidate for candidate in self.names() if candidate.rpartition("/")[2].startswith((f"{name}-", f"{name}_"))]
        return f"did you mean {' or '.join(map(repr, names[:_MOST_NEAR]))}?" if names else ""


def read_once(known: dict[Key, ProfileOrError], key: Key, read: Callable[[], Profile]) -> Profile:
    """Return what ``known`` has below a key, else what is read; an error is kept alike. Raises NpuprofError."""
    profile = known.get(key)
    if profile is None:
        try:
            profile = read()
        except NpuprofError as error:
            if error.findings[0].origin is not None:
                raise  # blames whoever asked: the next to ask gets an error of its own
            profile = error
        known[key] = profile
    if isinstance(profile, NpuprofError):
        raise profile
    return profile


class Folder(ReadOnceStore):
    """A store in a folder. Reads nothing before it is asked, and every file once."""

    in_work_tree = True

    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = root
        label = format_relative_path(root)
        self.label = label if label != BUILTIN else f"./{label}"  # a folder of that name is not the shipped store
        self.is_shipped = False  #: whether it is the store that npuprof ships
        self.beside = ""  #: what stands before the keys of its presets, where another store is read too
        self.repository: object = None  #: the one around it, once somebody asks: kept for ``revisions``
        self.read_ahead: Mapping[str, bytes] = {}  #: texts of presets that were read before anyone asked for the presets
        self.read_absent: Callable[[str], bytes | None] | None = None  #: how to read what git keeps out of the folder
        self.is_implied = False  #: whether it may be missing: a repository that has no presets of its own yet
        self.is_source = False  #: whether it is a copy of a source, of which the folder alone is shared
        self.keeps_releases: bool | None = None  #: whether there is a folder of releases kept as files, once somebody asks
        self.project: object = None  #: what npuprof.toml says, once somebody asks: kept for ``sources.project``
        self.sources: object = None  #: those that it names, likewise
        self._listed: dict[str, bool] | None = None
        self._names: list[str] | None = None
        self._real = ""
        self._layout: Layout | None = None
        self._project_file: str | None = None

    @property
    def project_file(self) -> str:
        """The path of npuprof.toml beside the store, looked for once; an empty text where there is none, or it is not about this store."""
        if self._project_file is None:
            alone = self.is_source or not self.in_work_tree or self.label == BUILTIN
            path = "" if alone else os.path.join(find_project_folder(self), FILE)
            self._project_file = path if path and os.path.lexists(path) else ""
        return self._project_file

    @property
    def layout(self) -> Layout:
        """Where the presets are, seen from the folder of npuprof.toml."""
        if self._layout is None:
            from npuprof.store.layout import Layout, read_globs

            globs: tuple[str, ...] = ()
            if self.project_file:
                with suppress(OSError):  # told by whoever asks what else the file says
                    globs = read_globs(read_plain_file(self.project_file))
            real = os.path.realpath(self.root)
            inside = bool(self.project_file) and os.path.dirname(self.project_file) == real
            self._layout = Layout("" if inside else f"{os.path.basename(real)}/", globs)
        return self._layout

    def _may_have_policy(self) -> bool:
        return bool(self.project_file)

    def names(self) -> list[str]:
        """Return the names of all profiles, sorted, as every store does; the files are looked at once."""
        if self._names is None:
            self._names = super().names()
        return list(self._names)

    def _list_files(self) -> Iterable[str]:
        return self._load_listing()

    def list_names_beginning(self, text: str) -> list[str]:
        """Return the names that begin with a text, sorted; folders in which none can are not looked into."""
        if self.project_file and self.layout.globs:
            return [name for name in self.names() if name.startswith(text)]
        names = (name for name, _ in self._scan_folder(self.root, "", text))
        reserved = FILE.removesuffix(".toml") if self.project_file and not self.layout.prefix else ""
        return sorted({name for name in names if name.startswith(text) and name != reserved and is_profile_name(name)})

    def _load_listing(self) -> dict[str, bool]:
        """Return the names of the store, looked up once, and whether each is a plain file, no link."""
        if self._listed is None:
            listed = dict(self._scan_folder(self.root, ""))
            if self.project_file and not self.layout.prefix:
                listed.pop(FILE.removesuffix(".toml"), None)
            if self.project_file and self.layout.globs:
                listed = {**self._scan_outside(), **listed}
            self._listed = listed
        return self._listed

    def _scan_outside(self) -> dict[str, bool]:
        """Return the names that npuprof.toml names files outside the store by. Raises NpuprofError where a folder cannot be read."""
        from npuprof.store.layout import scan_outside_presets

        folder = os.path.dirname(self.project_file)
        try:
            return dict(scan_outside_presets(folder, self.layout))
        except OSError as error:
            path = format_relative_path(str(error.filename or folder))
            hint = f"check its permissions, or write {format_relative_path(self.project_file)} so that presets leads elsewhere"
            raise NpuprofError([build_unreadable_finding(path, error)._replace(hint=hint)]) from None

    def is_outside(self, name: str) -> bool:
        """Return whether a preset lies outside the store's folder, or would if it were there: npuprof.toml names it, the store has none."""
        if not self.project_file or not self.layout.takes(name):
            return False
        return not os.path.lexists(f"{self.root}/{name}.toml")

    def locate_file(self, path: str) -> str:
        """Return the name of the preset in a file by its absolute path; an empty text where it is none of the store."""
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
        """Return the path to cite for a file of the store, by its name with ``.toml``."""
        if self.is_outside(path.removesuffix(".toml")):
            return format_relative_path(os.path.join(os.path.dirname(self.project_file), path))
        return super().cite_file(path)

    def _scan_folder(self, folder: str, below: str, beginning: str = "") -> Iterator[tuple[str, bool]]:
        """Yield the names below a folder, and whether each is a plain file; what no name of that ``beginning`` is in is passed over."""
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            if self.is_implied and isinstance(error, FileNotFoundError):
                return
            raise NpuprofError([build_unreadable_finding(format_relative_path(folder), error)]) from None
        for entry in entries:
            name = entry.name
            inside = f"{below}{name}/"
            if name.startswith(".") or not inside.startswith(beginning[: len(inside)]):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._scan_folder(entry.path, inside, beginning)
                if name.endswith(".toml"):
                    yield f"{below}{name[:-5]}", False  # a folder that looks like a preset: reading it tells
            elif name.endswith(".toml"):
                yield f"{below}{name[:-5]}", entry.is_file(follow_symlinks=False)

    def profile_path(self, name: str) -> str:
        """Return the path of a profile's file, as it can be opened."""
        return os.path.join(self.folder_of(name), f"{name}.toml")

    def folder_of(self, name: str) -> str:
        """Return the folder below which a profile's file is found by its name: the store, or that of npuprof.toml."""
        return os.path.dirname(self.project_file) if self.is_outside(name) else self.root

    def _read_profile(self, name: str, asked: Origin | None) -> Profile:
        if not is_profile_name(name):
            raise NpuprofError([build_bad_name_finding(name, asked, self.names())])
        path = f"{self.root}/{name}.toml"
        source = f"{self.label}/{name}.toml" if self.label != BUILTIN else path
        if self.project_file and self.layout.takes(name):
            outer = os.path.join(os.path.dirname(self.project_file), f"{name}.toml")
            shown = format_relative_path(outer)
            if not os.path.lexists(path):
                path, source = outer, shown
            elif os.path.lexists(outer):
                raise NpuprofError([build_clash_finding(name, (source, shown), asked)])
        try:
            if not (self._listed or {}).get(name) and self._leads_elsewhere(path, path != f"{self.root}/{name}.toml"):
                raise NpuprofError([build_outside_finding(source, name, asked, path != f"{self.root}/{name}.toml")])
            raw = self.read_ahead.get(name) or read_plain_file(path)
        except (FileNotFoundError, NotADirectoryError):
            absent = self.read_absent(name) if self.read_absent else None
            if absent is None:
                raise NpuprofError([self._build_missing_finding(name, asked)]) from None
            raw = absent
        except OSError as error:
            raise NpuprofError([build_unreadable_finding(source, error)]) from None
        return Profile(document.parse_document(name, source, raw), key=f"{self.beside}{name}", home=self)

    def _leads_elsewhere(self, path: str, outside: bool) -> bool:
        """Return whether a path leads out of the store; of a preset outside of it, whether it is a link, or below one."""
        if outside:
            return os.path.realpath(path) != path
        self._real = self._real or os.path.realpath(self.root)
        return not os.path.realpath(path).startswith(self._real.rstrip(os.sep) + os.sep)

    def _build_missing_finding(self, name: str, asked: Origin | None) -> Finding:
        hint = self._suggest_name(
            name, f"npuprof list{' --store builtin:' if self.label == 'builtin:' else ''} shows what is in {self.label}"
        )
        if not self.names():
            hint = f"{self.label} holds no preset yet: npuprof init lays out a store with some, npuprof new {name} makes this one"
        if asked is None and os.path.islink(f"{self.root}/{name}.toml"):
            hint = f"{self.label}/{name}.toml is a link to a file that is not there: mend or remove it"
        return build_missing_finding("NP008", name, self.label, hint, asked)


def find_store(given: str | None, environ: dict[str, str] | os._Environ[str], in_python: bool = False) -> Folder:
    """Return the store: as given, else ``$NPUPROF_STORE``, else ``profiles/`` in the nearest folder above.

    Raises NpuprofError where there is none; its message names the argument, ``in_python`` that of the library.
    """
    asked = given or environ.get("NPUPROF_STORE")
    if asked == BUILTIN:
        return open_builtin_store()
    if asked:
        if not os.path.isdir(asked):
            named = say_option("store", in_python=in_python) if given else "$NPUPROF_STORE"
            raise NpuprofError([build_no_folder_finding(asked, f"It was named by {named}.", in_python)])
        if _holds_store_below(asked):
            raise NpuprofError([build_project_folder_finding(asked, bool(given), in_python)])
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
            raise NpuprofError([build_no_store_finding(in_python)])
        here = parent


def _holds_store_below(folder: str) -> bool:
    """Return whether a folder is a project with a store in it, rather than a store."""
    try:
        names = os.listdir(folder)
        below = os.listdir(os.path.join(folder, "profiles")) if "profiles" in names else []
    except OSError:
        return False
    own = [name for name in names if name.endswith(".toml") and name not in _PROJECT_FILES and not name.startswith(".")]
    return not own and any(name.endswith(".toml") for name in below)


def find_project_folder(home: Folder) -> str:
    """Return the folder of ``npuprof.toml``: beside the store's, or the store itself where that is the top of its repository."""
    root = os.path.realpath(home.root)
    return root if os.path.exists(os.path.join(root, ".git")) else os.path.dirname(root)


def open_builtin_store(beside: bool = False) -> Folder:
    """Return the presets that npuprof ships, read-only; ``beside`` another store, whose presets may have the same names."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shipped = os.path.join(package, "profiles")
    store = Folder(shipped if os.path.isdir(shipped) else os.path.join(os.path.dirname(package), "profiles"))
    store.label = BUILTIN
    store.is_shipped = True
    store.beside = BUILTIN if beside else ""
    return store


def format_relative_path(path: str) -> str:
    """Return a path as users want to read it: relative where it lies below the current folder."""
    full = os.path.abspath(path)
    here = os.getcwd()
    return full[len(here) :].lstrip(os.sep) if full.startswith(here.rstrip(os.sep) + os.sep) else full
