"""Completion candidates for presets, versions, revisions and stores, read from files without starting a program."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from npuprof.commands.completion.places import Candidate, offer
from npuprof.model import NpuprofError
from npuprof.store import BUILTIN
from npuprof.store.folder import Folder, find_store, open_builtin_store
from npuprof.system import find_repository_top


def find_specs(store: str | None, current: str) -> Iterator[Candidate]:
    """Yield presets; after ``@`` the versions and revisions of one; after ``+`` presets to compose with."""
    from npuprof.store import is_source_reference

    stacked, plus, last = current.rpartition("+")
    name, at, _ = last.partition("@")
    before = f"{stacked}{plus}"
    if last.startswith(BUILTIN):
        yield from offer(open_builtin_store().names(), f"{before}{BUILTIN}")
        return
    if last.startswith("bu"):  # a shorter prefix would hide presets
        yield f"{before}{BUILTIN}", "what npuprof ships"
    if is_source_reference(last):
        yield from offer(_list_source_words(store, last), before)
        return
    if at:
        refs = list_refs(store)
        versions = [ref.rpartition("/v")[2] for ref in refs if ref.startswith(f"{name}/v")]
        yield from offer((*reversed(versions), "HEAD", *(ref for ref in refs if "/v" not in ref)), f"{before}{name}@")
        return
    home = find_store(store, os.environ)
    yield from offer(home.list_names_beginning(last), before)
    with suppress(NpuprofError):
        yield from offer((f"{name}:" for name in _list_sources_of(home)), before)


def list_next_versions(store: str | None, name: str) -> Iterator[Candidate]:
    """Yield possible next version numbers of a preset, based on the names of tags."""
    from npuprof.store.versions import parse_version_text

    released = [
        version.number for ref in list_refs(store) if ref.startswith(f"{name}/v") and (version := parse_version_text(ref[len(name) + 1 :]))
    ]
    if not released:
        yield "1.0.0", "the first"
        return
    major, minor, patch = max(released)
    yield f"{major}.{minor}.{patch + 1}", "text only"
    yield f"{major}.{minor + 1}.0", "anything else that takes effect"
    yield f"{major + 1}.0.0", "numerics, or a key is gone"


def find_stores(current: str) -> Iterator[Candidate]:
    """Yield the named stores; the shell itself completes folders."""
    names = [BUILTIN]
    with suppress(NpuprofError):
        names += (f"{name}:" for name in list_sources(None))
    yield from offer(names)
    if not current:
        with os.scandir() as entries:
            yield from offer(f"{entry.name}/" for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def list_sources(store: str | None) -> list[str]:
    """Return the names of a store's sources. Raises NpuprofError."""
    return _list_sources_of(find_store(store, os.environ))


def _list_sources_of(home: Folder) -> list[str]:
    if not home.project_file:  # importing the reader of projects takes as long as everything else
        return []
    return list(home.project.sources)


def _list_source_words(store: str | None, current: str) -> Iterator[str]:
    """Yield the presets of a source; after ``@`` the versions of one."""
    source, _, rest = current.partition(":")
    name, at, _ = rest.partition("@")
    from npuprof.store.sources.lookups import Lookups
    from npuprof.store.sources.mirror import find_mirror_folder

    there = Lookups().open_source(find_store(store, os.environ), source)
    if not at:
        yield from (f"{source}:{item}" for item in there.names())
        return
    from npuprof.store.sources.released import read_kept_tags

    tags = read_kept_tags(there.locked)  # versions as of the time when the source was locked
    refs = sorted(item.tag for item in tags) if tags is not None else _list_folder_refs(find_mirror_folder(there.locked.url))
    refs = [ref for ref in refs if not ref.endswith(".yanked")]
    yield from (f"{source}:{name}@{ref.rpartition('/v')[2]}" for ref in reversed(refs) if ref.startswith(f"{name}/v"))


def list_refs(store: str | None) -> list[str]:
    """Return the tags and branches of the store's repository, read from its files without starting a program."""
    top = find_repository_top(os.path.realpath(find_store(store, os.environ).root))
    git = os.path.join(top, ".git")
    return _list_folder_refs(git) if top and os.path.isdir(git) else []


def _list_folder_refs(git: str) -> list[str]:
    """Return the tags and branches in a .git folder."""
    refs: set[str] = set()
    try:
        with open(os.path.join(git, "packed-refs"), encoding="utf-8", errors="replace") as file:
            refs.update(line.split(" ", 1)[1].strip() for line in file if " refs/" in line)
    except OSError:
        pass
    for kind in ("refs/tags", "refs/heads"):
        base = os.path.join(git, kind)
        for folder, _, names in os.walk(base):
            refs.update(f"{kind}/{os.path.relpath(os.path.join(folder, name), base)}" for name in names)
    return sorted(ref.split("/", 2)[2] for ref in refs if ref.startswith(("refs/tags/", "refs/heads/")))
