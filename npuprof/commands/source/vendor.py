"""``source vendor``: a copy of a locked store in this repository."""

from __future__ import annotations

import os
import posixpath

from npuprof.commands.parameters import STORE
from npuprof.commands.verb import Verb, argument, option
from npuprof.model import Finding, NpuprofError
from npuprof.report.answer import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.store.sources.lock import LockedSource


class Vendor(Verb):
    """Copy the store of a source, as it is locked, into this repository: its presets are read from there, and nothing is fetched."""

    group = "sources"

    name: str = argument("NAME", "The source.")
    into: str | None = option("--into", metavar="FOLDER", text="Where to, from the folder of npuprof.toml; vendor/NAME if not said.")
    store: str | None = STORE

    def run(self) -> Answer:
        """Write the copy and name it in npuprof.toml. Raises NpuprofError, and writes nothing then."""
        from npuprof.commands.source.place import ProjectPlace
        from npuprof.store.sources.project import is_store_path
        from npuprof.store.sources.reading import Sources
        from npuprof.store.sources.vendored import MARK

        place = ProjectPlace(self.store)
        (source,) = place.select_sources([self.name])
        locked = Sources(place.project, place.lock).open_source(source.name).locked
        folder = self.into or source.vendor or f"vendor/{source.name}"
        if folder == "." or not is_store_path(folder):
            raise NpuprofError([Finding("NP040", f"{folder!r} is no folder below that of npuprof.toml", "", "write --into vendor/team")])
        top = os.path.join(place.folder, folder)
        if os.path.realpath(top).startswith(os.path.realpath(place.home.root) + os.sep):
            what = f"{folder} lies in the store {place.home.label}"
            why = "Its presets would be presets of this repository as well, under other names."
            raise NpuprofError([Finding("NP940", what, why, f"name a folder beside it: --into vendor/{source.name}")])
        if folder != source.vendor and os.path.isdir(top) and os.listdir(top) and not os.path.isfile(os.path.join(top, MARK)):
            why = "A copy replaces what is in its folder."
            hint = "name an empty or a new folder with --into"
            raise NpuprofError([Finding("NP940", f"{folder} holds files that are no copy of {source.name}", why, hint)])
        count = write_copy(top, locked)
        place.write({source.name: {"vendor": folder}}, place.lock.sources)
        remark = f"copied {source.name} {locked.shown} into {folder}: {count} files, read from there from now on"
        return Answer(None, (remark,))


def write_copy(top: str, locked: LockedSource) -> int:
    """Copy the store of a source into a folder, in the place of what is there; return the number of files. Raises NpuprofError."""
    from npuprof.report import output, writing
    from npuprof.report.locks import lock_folders
    from npuprof.report.writing import Wanted
    from npuprof.store.sources.vendored import MARK

    texts = _collect_texts(locked)
    made = output.make_folder(top)
    try:
        with lock_folders([top]):
            files = {os.path.join(top, name): text for name, text in texts.items()}
            for path in files:
                writing.make_folder_below(os.path.dirname(path), top)
            gone = [path for path in _list_files(top) if path not in files]
            mark = os.path.join(top, MARK)
            writing.write_wanted_files([Wanted(mark, b"not whole\n", below=top)])  # who is killed from here on leaves no copy
            writing.write_wanted_files([Wanted(path, text, below=top) for path, text in files.items() if path != mark])
            writing.write_wanted_files([Wanted(mark, files[mark], below=top)])
            for path in gone:
                os.unlink(path)
    except BaseException:
        output.remove_folders(made)
        raise
    return len(texts)


def _collect_texts(locked: LockedSource) -> dict[str, bytes]:
    """Return the files of a copy by their paths in it: the store, and those at the versions referred to. Raises NpuprofError."""
    from npuprof.store.revisions import load_repository_revision
    from npuprof.store.sources.mirror import open_mirror
    from npuprof.store.sources.vendored import MARK, PROJECT_FILES, VERSIONS

    repository = open_mirror(locked.name, locked.url, locked.path)
    found: dict[str, bytes] = {}
    for below, commit in {"": locked.commit, **{f"{VERSIONS}/{pin.commit}/": pin.commit for pin in locked.versions.values()}}.items():
        there = load_repository_revision(repository, commit)
        names = there.names()
        there.load_texts(names)
        found |= {f"{below}{name}.toml": there.read_profile_text(name) for name in names}
        found[f"{below}{MARK}"] = f"{commit}\n".encode()
        beside = posixpath.dirname(locked.path)
        read = repository.git.read_objects([f"{commit}:{posixpath.join(beside, name)}" for name in PROJECT_FILES])
        files = zip(PROJECT_FILES, read, strict=True)
        found |= {f"{below}.{name}": one.content for name, one in files if one is not None and one.type == "blob"}
    return found


def _list_files(top: str) -> list[str]:
    from npuprof.store.sources.vendored import MARK, PROJECT_FILES

    marks = (MARK, *(f".{name}" for name in PROJECT_FILES))
    return [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names if name.endswith(".toml") or name in marks]


VERB = Vendor
