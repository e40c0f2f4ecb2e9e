"""``source vendor``: copy a locked source into this repository."""

from __future__ import annotations

import os
from collections.abc import Mapping

from npuprof.commands.framework.parameters import STORE
from npuprof.commands.framework.verb import Verb, argument, option
from npuprof.model import Finding, NpuprofError, Place
from npuprof.report.answer import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.commands.source.place import ProjectPlace
    from npuprof.store.sources.project import Source


#: The name of the store itself.
OWN = "."


class Vendor(Verb):
    """Copy a locked source into this repository.

    Its presets are then read from the copy, and nothing is fetched. With . as NAME, npuprof copies the released versions that
    presets of this store extend into .released. They then resolve without git history, as in a wheel or an image.
    """

    group = "team"

    name: str = argument("NAME", "Source to copy, or . for released versions of this store")
    into: str | None = option(
        "--into", metavar="FOLDER", text="Copy to FOLDER, relative to npuprof.toml [default: the existing copy, or vendor/NAME]"
    )
    store: str | None = STORE

    def run(self) -> Answer:
        """Write the copy and name it in npuprof.toml. Raises NpuprofError, and writes nothing then."""
        from npuprof.commands.source.copying import collect_files
        from npuprof.commands.source.place import ProjectPlace
        from npuprof.store.sources.reading import Sources
        from npuprof.store.sources.vendored import MANIFEST, digest_manifest

        if self.name == OWN:
            return self._keep_releases()
        place = ProjectPlace(self.store)
        (source,) = place.select_sources([self.name])
        locked = Sources(place.project, place.lock).open_source(source.name).locked
        folder = (source.vendor or f"vendor/{source.name}") if self.into is None else self.into.rstrip("/") or self.into
        texts = collect_files(locked)
        top = find_fit_folder(place, source, folder, texts)
        write_copy(top, texts)
        known = locked._replace(copy=digest_manifest(texts[MANIFEST]))
        place.write({source.name: {"vendor": folder}}, {**place.lock.sources, source.name: known})
        remark = f"copied {source.name} {locked.shown} into {folder}: {len(texts)} files, read from there from now on"
        if source.vendor and source.vendor != folder and os.path.isdir(os.path.join(place.folder, source.vendor)):
            return Answer(None, (remark, f"the copy in {source.vendor} stays; nothing reads it any more: git rm -r {source.vendor}"))
        return Answer(None, (remark,))

    def _keep_releases(self) -> Answer:
        """Write the releases that presets of the store extend. Raises NpuprofError, and writes nothing then."""
        from npuprof.commands.source.keeping import KeptFiles
        from npuprof.commands.source.place import ProjectPlace
        from npuprof.store.kept import FOLDER
        from npuprof.store.sources.vendored import MANIFEST, find_copy_folder, format_manifest

        home = ProjectPlace(self.store, needs_lock=False).home
        if self.into is not None:
            what = f"--into {self.into!r}: the releases that a store extends are kept in it"
            raise NpuprofError([Finding("NP940", what, "Nothing else says where they are.", "leave out --into")])
        kept = KeptFiles()
        kept.add_store(home)
        top = find_copy_folder(home.root, FOLDER)
        _refuse_own_files(top, home.root, kept.files, _read_manifest(top))
        if kept.files or os.path.isdir(top):
            write_copy(top, {**kept.files, MANIFEST: format_manifest(kept.files)})
        remarks = [f"{reference} is no released version, and not kept: what it means may change" for reference in kept.passed_over]
        told = ", ".join(
            f"{reference} ({version})" if not reference.endswith(f"@{version}") else reference
            for reference, version in kept.references.items()
        )
        if not told:
            return Answer(None, (*remarks, f"no preset of {home.label} extends a released version of another one of it: nothing is kept"))
        return Answer(None, (*remarks, f"kept in {home.label}/{FOLDER}: {told}; git add {home.label}/{FOLDER}"))


def find_fit_folder(place: ProjectPlace, source: Source, folder: str, texts: Mapping[str, bytes]) -> str:
    """Return the path of a folder that files of the copy of a source may be written to. Raises NpuprofError if none may.

    A copy owns its folder: what is there that its list does not name is somebody's work.
    """
    from npuprof.report.locks import find_foreign_file
    from npuprof.store.sources.project import find_copy_fault
    from npuprof.store.sources.vendored import find_copy_folder
    from npuprof.system.tree import is_below

    hint = f"name an empty or a new folder: --into vendor/{source.name}"
    if fault := find_copy_fault(folder):
        raise NpuprofError([Finding("NP040", f"--into {folder!r} {fault}", "", hint)])
    top = find_copy_folder(place.folder, folder)
    why = "A copy replaces what is in its folder."
    for other in place.project.sources.values():
        pair = [f"{one.lower()}/" for one in (other.vendor, folder)]
        if other.name != source.name and other.vendor and (pair[0].startswith(pair[1]) or pair[1].startswith(pair[0])):
            raise NpuprofError([Finding("NP940", f"{folder} holds the copy of the source {other.name!r}, or lies in it", why, hint)])
    is_inside, is_around = is_below(top, place.home.root), is_below(place.home.root, top)
    if is_inside or is_around:
        what = f"{folder} is in the store {place.home.label}" if is_inside else f"{folder} contains the store {place.home.label}"
        what = f"{folder} is the store itself" if is_inside and is_around else what
        why = "Its presets would be presets of this repository as well, or be replaced by those of the source."
        raise NpuprofError([Finding("NP940", what, why, hint)])
    known = _read_manifest(top)
    _refuse_own_files(top, place.folder, texts, known)
    if file := find_foreign_file(top, known):
        what = f"{folder} holds files that are no copy of {source.name}: {os.path.relpath(os.path.join(top, file), place.folder)}"
        way = (
            "move them away, or say another one with --into"
            if folder == f"vendor/{source.name}"
            else f"name an empty or a new folder: --into vendor/{source.name}"
        )
        raise NpuprofError([Finding("NP940", what, why, way)])
    return top


def _refuse_own_files(top: str, base: str, texts: Mapping[str, bytes], known: Mapping[str, set[str]]) -> None:
    """Raise NpuprofError (NP940) if a copy would replace an uncommitted edit or a file of the user's own.

    A file may be replaced if it is as copied (``known`` has the digests), as it will be, or as in git's index. Paths in messages start
    at ``base``.
    """
    from npuprof.report.output import read_plain_file
    from npuprof.store.gitstore.objects import Git
    from npuprof.store.sources.vendored import MANIFEST, MARK

    git = Git(top)
    place = os.path.relpath(os.path.realpath(top), git.top) if git.top else ""
    for name in texts:
        path = os.path.join(top, name)
        if name in (MANIFEST, MARK) or not os.path.lexists(path) or _is_as_copied(top, name, known.get(name, set())):
            continue
        there = read_plain_file(path).replace(b"\r\n", b"\n") if os.path.isfile(path) else b""
        (staged,) = git.read_objects([f":{os.path.normpath(os.path.join(place, name))}"]) if git.top else (None,)
        if there not in (texts[name], staged.content.replace(b"\r\n", b"\n") if staged else None):
            shown = os.path.relpath(path, base)
            why = "A copy replaces what is in its folder, and git does not have this text; nothing was written."
            hint = f"take it back (git restore {shown}), or move it away (mv {shown} ..)"
            raise NpuprofError([Finding("NP940", f"{shown} is not what was copied", why, hint, where=Place(shown))])


def _is_as_copied(top: str, name: str, digests: set[str]) -> bool:
    """Return whether a file of a copy has one of the digests, and is reached through no link."""
    from npuprof.report.output import read_plain_file
    from npuprof.store.sources.vendored import find_equal_text

    path = os.path.join(top, name)
    if not os.path.isfile(path) or _is_link(top, name):
        return False
    raw = read_plain_file(path)
    return any(find_equal_text(raw, digest) is not None for digest in digests)


def _read_manifest(top: str) -> dict[str, set[str]]:
    """Return the names in the list of a copy with their digests, the list itself included; nothing if there is no list.

    While a copy replaces another one, a name has the digests of both.
    """
    from npuprof.report.output import read_plain_file
    from npuprof.store.sources.vendored import MANIFEST, MARK
    from npuprof.system.tree import is_plain_name

    try:
        said = read_plain_file(os.path.join(top, MANIFEST)).decode(errors="surrogateescape")
    except OSError:
        return {}
    found: dict[str, set[str]] = {}
    for line in said.splitlines():
        name, _, digest = line.rpartition(" ")
        if is_plain_name(name):
            found.setdefault(name, set()).add(digest)
    return {**found, MANIFEST: set(), MARK: set()}  # what they contain changes while a copy is written


def write_copy(top: str, texts: dict[str, bytes]) -> None:
    """Write the files of a copy, its list among them, into a folder; files of an earlier copy that it lacks go. Raises NpuprofError.

    If ``texts`` has a mark of its commit, that says "not whole" until all is written.
    """
    from npuprof.report import output, writing
    from npuprof.report.locks import lock_folders
    from npuprof.report.writing import Wanted
    from npuprof.store.sources.vendored import MANIFEST, MARK

    made = output.make_folder(top)
    try:
        with lock_folders([top]):
            files = {os.path.join(top, name): text for name, text in texts.items()}
            for name in texts:
                if _is_link(top, name):
                    raise NpuprofError([_build_link_finding(os.path.join(top, name))])
            for path in files:
                made = [*writing.make_folder_below(os.path.dirname(path), top), *made]
            gone = [path for path in _list_copied(top) if path not in files]
            mark, listed = os.path.join(top, MARK), os.path.join(top, MANIFEST)
            # who is killed from here on leaves no copy, and no file that the list does not name
            writing.write_wanted_files([Wanted(listed, _join_manifests(top, texts[MANIFEST]), below=top)])
            if mark in files:
                writing.write_wanted_files([Wanted(mark, b"not whole\n", below=top)])
            last = [path for path in (listed, mark) if path in files]
            writing.write_wanted_files([Wanted(path, text, below=top) for path, text in files.items() if path not in last])
            writing.write_wanted_files([Wanted(path, None, below=top) for path in gone])
            for path in gone:
                writing.remove_empty_folders(path, top)
            writing.write_wanted_files([Wanted(path, files[path], below=top) for path in last])
    except BaseException:
        output.remove_folders(made)
        raise


def _is_link(top: str, name: str) -> bool:
    """Return whether a file of a copy, or a folder on the way to it, is a link."""
    return os.path.realpath(os.path.join(top, name)) != os.path.join(os.path.realpath(top), name)


def _build_link_finding(path: str) -> Finding:
    why = "The files of a copy are in its folder and nowhere else; nothing was changed."
    return Finding("NP941", f"{path} leads to {os.path.realpath(path)} by a link", why, f"remove the link: rm {path}", where=Place(path))


def _join_manifests(top: str, new: bytes) -> bytes:
    """Return the list of a copy that becomes another one: the lines of both."""
    lines = {f"{name} {digest}\n" for name, digests in _read_manifest(top).items() for digest in digests}
    lines.update(f"{line}\n" for line in new.decode(errors="surrogateescape").splitlines())
    return "".join(sorted(lines)).encode(errors="surrogateescape")


def _list_copied(top: str) -> list[str]:
    """Return the presets and marks of an earlier copy that are there as they were copied, by its list."""
    from npuprof.store.kept import RECORD
    from npuprof.store.sources.vendored import MARK, PROJECT_FILES, REFERENCES

    marks = (RECORD, MARK, REFERENCES, *(f".{name}" for name in PROJECT_FILES))
    known = _read_manifest(top)
    names = [name for name in known if name.endswith(".toml") or os.path.basename(name) in marks]
    return [os.path.join(top, name) for name in names if _is_as_copied(top, name, known[name])]


VERB = Vendor
