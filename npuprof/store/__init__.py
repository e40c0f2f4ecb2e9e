"""Where profiles are kept: a folder of TOML files, named by their paths below it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol, TypeVar

from npuprof import document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Origin, Place, did_you_mean
from npuprof.report.output import UnfitFileError, describe_os_error, read_plain_file
from npuprof.store.layout import FILE, Layout, read_globs
from npuprof.wording import say_option

TYPE_CHECKING = False
if TYPE_CHECKING:
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
#: The store that npuprof ships, and what stands before the name of a preset in it.
BUILTIN = "builtin:"
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def is_profile_name(name: str) -> bool:
    """Return whether a text can be the name of a profile."""
    parts = name.split("/")
    return all(part and part[0] not in ".-" and _ALLOWED.issuperset(part) for part in parts) and not name.endswith(".toml")


#: Reads what a store's tree says of findings; what knows npuprof.toml puts itself here.
_read_policy: Callable[[ReadOnceStore], Policy | None] = lambda home: None  # noqa: E731


def use_policies(read: Callable[[ReadOnceStore], Policy | None]) -> None:
    """Let stores have what ``read`` knows of the findings of their presets."""
    global _read_policy
    _read_policy = read


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
        self._profiles[name] = NpuprofError([build_missing_finding("NP008", name, self.label, "", None)])

    def find_policy(self, name: str) -> Policy | None:
        """Return what the tree of the store says of the findings of a preset, None where it says nothing. Raises NpuprofError."""
        policy = self.load_policy()
        return policy.select(name) if policy is not None else None

    def load_policy(self) -> Policy | None:
        """Return what the tree of the store says of findings, read once; None where it says nothing. Raises NpuprofError."""
        if not self._has_read_policy:
            self._policy = _read_policy(self) if self._may_have_policy() else None
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


#: What lies beside a store in a project, and is no preset.
_PROJECT_FILES = ("pyproject.toml", FILE)


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


class Folder(ReadOnceStore):
    """A store in a folder. Reads nothing before it is asked, and every file once."""

    in_work_tree = True

    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = root
        self.label = _format_relative_path(root)
        self.beside = ""  #: what stands before the keys of its presets, where another store is read too
        self.repository: object = None  #: the one around it, once somebody asks: kept for ``revisions``
        self.read_absent: Callable[[str], bytes | None] | None = None  #: how to read what git keeps out of the folder
        self.is_implied = False  #: whether it may be missing: a repository that has no presets of its own yet
        self.is_source = False  #: whether it is a copy of a source, of which the folder alone is shared
        self.keeps_releases: bool | None = None  #: whether there is a folder of releases kept as files, once somebody asks
        self.project: object = None  #: what npuprof.toml says, once somebody asks: kept for ``sources.beside``
        self.sources: object = None  #: those that it names, likewise
        self._listed: dict[str, bool] | None = None
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

    def _list_files(self) -> Iterable[str]:
        return self._load_listing()

    def list_names_beginning(self, text: str) -> list[str]:
        """Return the names that begin with a text, sorted; folders in which none can are not looked into."""
        if self.layout.globs:
            return [name for name in self.names() if name.startswith(text)]
        found = (name for name, _ in self._scan_folder(self.root, "", text))
        reserved = FILE.removesuffix(".toml") if self.project_file and not self.layout.prefix else ""
        return sorted({name for name in found if name.startswith(text) and name != reserved and is_profile_name(name)})

    def _load_listing(self) -> dict[str, bool]:
        """Return the names of the store, looked up once, and whether each is a plain file, no link."""
        if self._listed is None:
            found = dict(self._scan_folder(self.root, ""))
            if self.project_file and not self.layout.prefix:
                found.pop(FILE.removesuffix(".toml"), None)
            if self.layout.globs:
                found = {**self._scan_outside(), **found}
            self._listed = found
        return self._listed

    def _scan_outside(self) -> dict[str, bool]:
        """Return the names that npuprof.toml names files outside the store by. Raises NpuprofError where a folder cannot be read."""
        from npuprof.store.outside import scan_outside_presets

        folder = os.path.dirname(self.project_file)
        try:
            return dict(scan_outside_presets(folder, self.layout))
        except OSError as error:
            path = _format_relative_path(str(error.filename or folder))
            hint = f"check its permissions, or write {_format_relative_path(self.project_file)} so that presets leads elsewhere"
            raise NpuprofError([_build_unreadable_finding(path, error)._replace(hint=hint)]) from None

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
            return _format_relative_path(os.path.join(os.path.dirname(self.project_file), path))
        return super().cite_file(path)

    def _scan_folder(self, folder: str, below: str, beginning: str = "") -> Iterator[tuple[str, bool]]:
        """Yield the names below a folder, and whether each is a plain file; what no name of that ``beginning`` is in is passed over."""
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            if self.is_implied and isinstance(error, FileNotFoundError):
                return
            raise NpuprofError([_build_unreadable_finding(_format_relative_path(folder), error)]) from None
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
            from npuprof.store.bad_names import build_bad_name_finding

            raise NpuprofError([build_bad_name_finding(name, asked, self.names())])
        path = f"{self.root}/{name}.toml"
        source = f"{self.label}/{name}.toml" if self.label != BUILTIN else path
        if self.project_file and self.layout.takes(name):
            other = os.path.join(os.path.dirname(self.project_file), f"{name}.toml")
            shown = _format_relative_path(other)
            if not os.path.lexists(path):
                path, source = other, shown
            elif os.path.lexists(other):
                raise NpuprofError([build_clash_finding(name, (source, shown), asked)])
        try:
            if not (self._listed or {}).get(name) and self._leads_elsewhere(path, path != f"{self.root}/{name}.toml"):
                raise NpuprofError([build_outside_finding(source, name, asked, path != f"{self.root}/{name}.toml")])
            raw = read_plain_file(path)
        except (FileNotFoundError, NotADirectoryError):
            kept = self.read_absent(name) if self.read_absent else None
            if kept is None:
                raise NpuprofError([self._build_missing_finding(name, asked)]) from None
            raw = kept
        except OSError as error:
            raise NpuprofError([_build_unreadable_finding(source, error)]) from None
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


def read_profile_file(path: str, home: ProfileSource | None) -> Profile:
    """Return the profile in one file outside any store; its parents are looked up in ``home``. Raises NpuprofError."""
    source = _format_relative_path(path)
    try:
        raw = read_plain_file(path)
    except FileNotFoundError:
        raise NpuprofError([Finding("NP008", f"there is no file {path!r}", "", _suggest_for_file(path, home))]) from None
    except (OSError, ValueError) as error:
        raise NpuprofError([_build_unreadable_finding(source, error)]) from None
    return Profile(document.parse_document(path, source, raw), key=f"file:{os.path.realpath(path)}", home=home)


def _suggest_for_file(path: str, home: ProfileSource | None) -> str:
    name = path.removesuffix(".toml")
    if isinstance(home, Folder) and name in home.names():
        return f"did you mean the preset {name!r}? It is named without .toml"
    return "give a path to a TOML file, or a profile's name"


def find_store(given: str | None, environ: dict[str, str] | os._Environ[str]) -> Folder:
    """Return the store: as given, else ``$NPUPROF_STORE``, else ``profiles/`` in the nearest folder above.

    Raises NpuprofError where there is none.
    """
    asked = given or environ.get("NPUPROF_STORE")
    if asked == BUILTIN:
        return open_builtin_store()
    if asked:
        if not os.path.isdir(asked):
            what = f"the store {asked!r} is not a folder"
            origin = say_option("store") if given else "$NPUPROF_STORE"
            hint = "name a folder that holds presets, or make one: npuprof init"
            raise NpuprofError([Finding("NP010", what, f"It was named by {origin}.", hint)])
        if _holds_store_below(asked):
            inner = os.path.join(asked, "profiles").removeprefix("./")
            what = f"{asked!r} is no store of presets: those are in {inner}"
            raise NpuprofError(
                [Finding("NP010", what, "", f"write {say_option('store', inner)}" if given else f"set NPUPROF_STORE={inner}")]
            )
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
            raise NpuprofError([_build_no_store_finding()])
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


def has_release_tags(root: str) -> bool:
    """Return whether a store can have released versions: whether a repository around it has tags.

    git itself is only asked where this says so. Where a repository is kept in an unusual way, the answer is yes.
    """
    top = find_repository_top(os.path.realpath(root))
    if not top:
        return False
    git = os.path.join(top, ".git")
    try:
        if os.path.isfile(git) or os.path.isdir(os.path.join(git, "reftable")) or os.listdir(os.path.join(git, "refs", "tags")):
            return True
        return b" refs/tags/" in read_plain_file(os.path.join(git, "packed-refs"))
    except UnfitFileError:
        return True
    except OSError:
        return False


def has_sparse_checkout(root: str) -> bool:
    """Return whether git may keep files of a store out of the work tree: only then it is asked."""
    top = find_repository_top(os.path.realpath(root))
    git = os.path.join(top, ".git")
    return bool(top) and (os.path.isfile(git) or os.path.exists(os.path.join(git, "info", "sparse-checkout")))


def find_repository_top(folder: str) -> str:
    """Return the nearest folder from ``folder`` upward that holds a ``.git``, or an empty text."""
    here = folder
    while not os.path.exists(os.path.join(here, ".git")):
        above = os.path.dirname(here)
        if above == here:
            return ""
        here = above
    return here


def open_builtin_store(beside: bool = False) -> Folder:
    """Return the presets that npuprof ships, read-only; ``beside`` another store, whose presets may have the same names."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shipped = os.path.join(package, "profiles")
    store = Folder(shipped if os.path.isdir(shipped) else os.path.join(os.path.dirname(package), "profiles"))
    store.label = BUILTIN
    store.beside = BUILTIN if beside else ""
    return store


def _format_relative_path(path: str) -> str:
    """Return a path as users want to read it: relative where it lies below the current folder."""
    full = os.path.abspath(path)
    here = os.getcwd()
    return full[len(here) :].lstrip(os.sep) if full.startswith(here.rstrip(os.sep) + os.sep) else full


def _build_no_store_finding() -> Finding:
    return Finding(
        "NP010",
        "no store of presets was found",
        "npuprof looks for a folder 'profiles' here and in every folder above.",
        "go to a project that has one, make one with npuprof init, or name it with "
        f"{say_option('store')}; 'builtin:' is the store npuprof ships",
    )


def build_missing_finding(code: str, name: str, label: str, hint: str, asked: Origin | None) -> Finding:
    """Return that a store has no profile of a name; of a parent, at the reference to it."""
    if asked is None:
        return Finding(code, f"there is no profile {name!r} in {label}", "", hint)
    what = f"{asked.profile} extends {name!r}, which is not in {label}"
    why = "Without its parent a profile has no meaning."
    return Finding("NP101", what, why, hint, asked, "profile.extends", (asked.profile,))


def build_clash_finding(name: str, paths: tuple[str, str], asked: Origin | None = None) -> Finding:
    """Return that a file outside the store has the name of a preset in it."""
    what = f"{name!r} names two presets: {paths[0]} and {paths[1]}"
    why = "A preset outside the store is called by its path from the folder of npuprof.toml, and a name has to mean one file."
    return Finding("NP014", what, why, "rename one of the two files", asked, "", (name,), None if asked else Place(paths[1]))


def build_outside_finding(source: str, name: str, asked: Origin | None, outside: bool = False) -> Finding:
    """Return that a preset's file is a link that leads out of the store; of a preset ``outside`` of it, that it is a link at all."""
    what, hint = f"{source} is a link that leads out of the store", "copy the file into the store"
    why = "A store is shared as it is; what lies outside it would be missing elsewhere."
    if outside:
        what, hint = f"{source} is a link, or lies below one", "put the file itself there"
        why = "Of presets outside the store no link is followed: where it leads is the machine's own affair."
    return Finding("NP005", what, why, hint, asked, "", (name,), None if asked else Place(source))


def _build_unreadable_finding(source: str, error: Exception) -> Finding:
    reason = describe_os_error(error, source)
    hint = (
        "rename the folder"
        if isinstance(error, IsADirectoryError)
        else "put a file there"
        if isinstance(error, UnfitFileError)
        else "check the path and its permissions"
    )
    return Finding("NP003", f"cannot read {source}: {reason}", "", hint, where=Place(source))
