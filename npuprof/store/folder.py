"""A store in a folder of TOML files, named by their relative paths.

Finds the store of a command.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from npuprof import document
from npuprof.document.profile import Profile
from npuprof.model import TYPE_CHECKING, Finding, NpuprofError, Origin
from npuprof.report import format_option
from npuprof.store import BUILTIN, FILE, RELEASED, is_profile_name
from npuprof.store.base import CachedStore
from npuprof.system import format_relative_path, is_below
from npuprof.system.files import read_plain_file

if TYPE_CHECKING:
    from npuprof.store.gitstore.revisions import StoreRepository
    from npuprof.store.layout import Layout
    from npuprof.store.project import Project


#: Project files next to a store that are not presets.
_PROJECT_FILES = ("pyproject.toml", FILE)


class Folder(CachedStore):
    """A store in a folder. Files are read on demand, each once."""

    in_work_tree = True

    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = root
        label = format_relative_path(root)
        # a folder may have the name of the shipped store
        self.label = label if label != BUILTIN else f"./{label}"
        self.key_prefix = ""  #: the prefix of its presets' keys, if another store is used too
        self.read_ahead: Mapping[str, bytes] = {}  #: texts of presets that were loaded in advance
        #: how to read files that a sparse checkout excludes
        self.read_absent: Callable[[str], bytes | None] | None = None
        self.is_implied = False  #: whether it may be missing: a repository without its own presets
        self.is_source = False  #: whether it is a vendored copy, of which only the folder is shared
        self._listed: dict[str, bool] | None = None

    @cached_property
    def repository(self) -> StoreRepository:
        """The repository around it. Raises NpuprofError if there is none."""
        from npuprof.store.gitstore.revisions import StoreRepository

        return StoreRepository(self.root)

    @cached_property
    def project_file(self) -> str:
        """The path of npuprof.toml next to the store.

        An empty string if there is none, or it belongs to another store.
        """
        if self.is_source or not self.in_work_tree or self.is_shipped:
            return ""
        path = os.path.join(find_project_folder(self), FILE)
        return path if os.path.lexists(path) else ""

    @cached_property
    def _base(self) -> str:
        """The folder of npuprof.toml; an empty string if there is none."""
        return os.path.dirname(self.project_file)

    @cached_property
    def project(self) -> Project:
        """Its npuprof.toml. Raises NpuprofError if it is invalid."""
        from npuprof.store.project import read_project

        return read_project(os.path.join(find_project_folder(self), FILE))

    @cached_property
    def keeps_releases(self) -> bool:
        """Whether it has a folder of vendored releases.

        Cached, as thousands of presets may pin one.
        """
        return os.path.isdir(f"{self.root}/{RELEASED}")

    @cached_property
    def layout(self) -> Layout:
        """The layout of presets, relative to the folder of npuprof.toml."""
        from contextlib import suppress

        from npuprof.store.layout import Layout, read_globs

        globs: tuple[str, ...] = ()
        if self.project_file:
            with suppress(OSError):  # reported when the rest of the file is read
                globs = read_globs(read_plain_file(self.project_file))
        real = os.path.realpath(self.root)
        return Layout("" if self._base == real else f"{os.path.basename(real)}/", globs)

    def may_have_policy(self) -> bool:
        """Return whether there is an npuprof.toml."""
        return bool(self.project_file)

    def names(self) -> list[str]:
        """Return the names of all profiles, sorted; files are listed once."""
        return list(self._names)

    @cached_property
    def _names(self) -> list[str]:
        return super().names()

    def _list_files(self) -> Iterable[str]:
        return self._load_listing()

    def list_names_beginning(self, text: str) -> list[str]:
        """Return the names with a prefix, sorted; folders without matches are not read."""
        if self.project_file and self.layout.globs:
            return [name for name in self.names() if name.startswith(text)]
        names = {name for name, _ in self._scan_folder(self.root, "", text)}
        names.discard(self._find_project_name())
        return sorted(name for name in names if name.startswith(text) and is_profile_name(name))

    def _find_project_name(self) -> str:
        """Return the name that npuprof.toml would have as a preset, if it is in the store."""
        return FILE.removesuffix(".toml") if self.project_file and not self.layout.prefix else ""

    def _load_listing(self) -> dict[str, bool]:
        """Return the names of the store, cached, and whether each is a plain file or a link."""
        if self._listed is None:
            listed = dict(self._scan_folder(self.root, ""))
            listed.pop(self._find_project_name(), None)
            if self.project_file and self.layout.globs:
                # a name in both is the store's here; reading it reports the clash
                listed = {**self._scan_outside(), **listed}
            self._listed = listed
        return self._listed

    def _scan_outside(self) -> dict[str, bool]:
        """Return the names of files outside the store listed by npuprof.toml.

        Raises NpuprofError for an unreadable folder.
        """
        from npuprof.store.layout import scan_outside_presets

        try:
            return dict(scan_outside_presets(self._base, self.layout))
        except OSError as error:
            path = format_relative_path(str(error.filename or self._base))
            hint = (
                f"check its permissions, or write {format_relative_path(self.project_file)} so "
                "that presets leads elsewhere"
            )
            from npuprof.store.problems import build_unreadable_finding

            raise NpuprofError(build_unreadable_finding(path, error)._replace(hint=hint)) from None

    def is_outside(self, name: str) -> bool:
        """Return whether a preset is, or would be, outside the store's folder.

        Then npuprof.toml lists it, and the store lacks it.
        """
        if not self.project_file or not self.layout.takes(name):
            return False
        return not os.path.lexists(f"{self.root}/{name}.toml")

    def locate_file(self, path: str) -> str:
        """Return the preset name of a file by its absolute path.

        An empty string if it is not in the store.
        """
        root = os.path.abspath(self.root) + os.sep
        if path.startswith(root):
            name = path[len(root) : -5]
            return name if is_profile_name(name) else ""
        if not self.project_file or not self.layout.globs:
            return ""
        # the last name may be a link, which is no preset: only its folder is resolved
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        folder = f"{self._base}{os.sep}"
        name = real[len(folder) : -5]
        is_preset = real.startswith(folder) and is_profile_name(name) and self.layout.takes(name)
        return name if is_preset else ""

    def cite_file(self, path: str) -> str:
        """Return the path to cite for a file of the store, given its name with ``.toml``."""
        if self.is_outside(path.removesuffix(".toml")):
            return format_relative_path(os.path.join(self._base, path))
        return super().cite_file(path)

    def _scan_folder(
        self, folder: str, below: str, beginning: str = ""
    ) -> Iterator[tuple[str, bool]]:
        """Yield the names below a folder, and whether each is a plain file.

        Names without the prefix ``beginning`` are skipped.
        """
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            # a repository may use presets of its sources only
            if self.is_implied and isinstance(error, FileNotFoundError):
                return
            from npuprof.store.problems import build_unreadable_finding

            raise NpuprofError(
                build_unreadable_finding(format_relative_path(folder), error)
            ) from None
        for entry in entries:
            name = entry.name
            inside = f"{below}{name}/"
            # completion asks for a prefix at each key press: other folders are not read
            if name.startswith(".") or not inside.startswith(beginning[: len(inside)]):
                continue
            if entry.is_dir(follow_symlinks=False):
                # links to folders are not entered: they may lead out of the store, or in a circle
                yield from self._scan_folder(entry.path, inside, beginning)
                if name.endswith(".toml"):  # reading it reports that it is a folder
                    yield f"{below}{name[:-5]}", False
            elif name.endswith(".toml"):
                yield f"{below}{name[:-5]}", entry.is_file(follow_symlinks=False)

    def profile_path(self, name: str) -> str:
        """Return the path of a profile's file, to open it."""
        return os.path.join(self.folder_of(name), f"{name}.toml")

    def folder_of(self, name: str) -> str:
        """Return the root of a profile's relative path: the store, or npuprof.toml's folder."""
        return self._base if self.is_outside(name) else self.root

    def _read_profile(self, name: str, requested: Origin | None) -> Profile:
        if not is_profile_name(name):
            from npuprof.store.problems import build_bad_name_finding

            raise NpuprofError(build_bad_name_finding(name, requested, self.names()))
        path = f"{self.root}/{name}.toml"
        source = f"{self.label}/{name}.toml" if not self.is_shipped else path
        is_outside = False
        if self.project_file and self.layout.takes(name):
            outer = os.path.join(self._base, f"{name}.toml")
            shown = format_relative_path(outer)
            # the store comes first: it needs no npuprof.toml to be found
            if not os.path.lexists(path):
                path, source, is_outside = outer, shown, True
            elif os.path.lexists(outer):
                from npuprof.store.problems import build_clash_finding

                raise NpuprofError(build_clash_finding(name, (source, shown), requested))
        try:
            # the listing has already seen that it is a plain file
            if not (self._listed or {}).get(name) and self._leads_elsewhere(path, is_outside):
                from npuprof.store.problems import build_link_finding

                raise NpuprofError(build_link_finding(source, name, requested, is_outside))
            raw = self.read_ahead.get(name) or read_plain_file(path)
        except (FileNotFoundError, NotADirectoryError):
            # a sparse checkout keeps the file in git only
            absent = self.read_absent(name) if self.read_absent else None
            if absent is None:
                raise NpuprofError(self._build_missing_finding(name, requested)) from None
            raw = absent
        except OSError as error:
            from npuprof.store.problems import build_unreadable_finding

            raise NpuprofError(build_unreadable_finding(source, error)) from None
        return Profile(
            document.parse_document(name, source, raw), key=f"{self.key_prefix}{name}", home=self
        )

    def _leads_elsewhere(self, path: str, outside: bool) -> bool:
        """Return whether a path leads out of the store.

        For a preset outside of it, whether it is or passes through a link.
        """
        if outside:
            return os.path.realpath(path) != path
        # most presets are directly in the store: no link can be on the way
        if os.path.dirname(path) == self.root and not os.path.islink(path):
            return False
        return not is_below(path, self.root)

    def _build_missing_finding(self, name: str, requested: Origin | None) -> Finding:
        command = "npuprof list --store builtin:" if self.label == BUILTIN else "npuprof list"
        hint = self._suggest_name(name, f"{command} lists the presets of {self.label}")
        if not self.names():
            hint = (
                f"{self.label} has no presets yet: npuprof init creates a store with samples, "
                f"npuprof new {name} makes this one"
            )
        # os.path.isdir and reading follow the link, so that its target looks missing
        if requested is None and os.path.islink(f"{self.root}/{name}.toml"):
            hint = f"{self.label}/{name}.toml is a link to a missing file: correct or remove it"
        from npuprof.store.problems import build_missing_finding

        return build_missing_finding("NP008", name, self.label, hint, requested)


def find_store(
    named: str | None, environ: dict[str, str] | os._Environ[str], in_python: bool = False
) -> Folder:
    """Return the named store, else ``$NPUPROF_STORE``, else the nearest ``profiles/`` above.

    Raises NpuprofError if there is none; the message names the option, or the library's argument if
    ``in_python``.
    """
    requested = named or environ.get("NPUPROF_STORE")
    if requested == BUILTIN:
        return open_builtin_store()
    if requested:
        if not os.path.isdir(requested):
            from npuprof.store.problems import build_no_folder_finding

            option = format_option("store", in_python=in_python) if named else "$NPUPROF_STORE"
            why = f"It was named by {option}."
            raise NpuprofError(build_no_folder_finding(requested, why, in_python))
        if _has_store_below(requested):
            from npuprof.store.problems import build_project_folder_finding

            raise NpuprofError(build_project_folder_finding(requested, bool(named)))
        return Folder(requested)
    folder = os.getcwd()
    while True:
        candidate = os.path.join(folder, "profiles")
        if os.path.isdir(candidate):
            return Folder(candidate)
        # npuprof.toml ends the search: presets above it belong to another project
        if os.path.isfile(os.path.join(folder, FILE)):
            implied = Folder(candidate)
            implied.is_implied = True
            return implied
        parent = os.path.dirname(folder)
        if parent == folder:
            from npuprof.store.problems import build_no_store_finding

            raise NpuprofError(build_no_store_finding(in_python))
        folder = parent


def _has_store_below(folder: str) -> bool:
    """Return whether a folder is a project that contains a store, rather than a store."""
    try:
        names = os.listdir(folder)
        below = os.listdir(os.path.join(folder, "profiles")) if "profiles" in names else []
    except OSError:
        return False
    own = [
        name
        for name in names
        if name.endswith(".toml") and name not in _PROJECT_FILES and not name.startswith(".")
    ]
    # a folder with its own presets is a store, even if a folder "profiles" is in it
    return not own and any(name.endswith(".toml") for name in below)


def find_project_folder(home: Folder) -> str:
    """Return the folder of ``npuprof.toml``: the store's parent, or the top of a repository."""
    root = os.path.realpath(home.root)
    return root if os.path.exists(os.path.join(root, ".git")) else os.path.dirname(root)


def open_builtin_store(is_second: bool = False) -> Folder:
    """Return the read-only store that npuprof ships.

    ``is_second`` is set if another store is used too, whose presets may have the same names.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shipped = os.path.join(package, "profiles")
    if not os.path.isdir(shipped):  # a checkout
        shipped = os.path.join(os.path.dirname(package), "profiles")
    store = Folder(shipped)
    store.label = BUILTIN
    store.is_shipped = True
    store.key_prefix = BUILTIN if is_second else ""
    return store
