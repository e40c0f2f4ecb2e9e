"""Completion candidates for the values of parameters, read from files without starting
a program.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from npuprof.commands.completion.cursor import (
    Candidate,
    Place,
    find_key_record,
    first_sentence,
    offer,
)
from npuprof.commands.framework import list_verb_names
from npuprof.document.keys import format_plain_value
from npuprof.document.profile import PROFILE_KEYS, RELEASES
from npuprof.model import SCENARIOS, SECTIONS, NpuprofError
from npuprof.store import BUILTIN
from npuprof.store.folder import Folder, find_store, open_builtin_store
from npuprof.system import find_repository_top


def _find_specs(place: Place) -> Iterator[Candidate]:
    """Yield presets; after ``@`` the versions and revisions of one.

    After ``+`` presets to compose with.
    """
    from npuprof.store import is_source_reference

    store = place.store
    stacked, plus, last = place.current.rpartition("+")
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
        refs = _list_refs(store)
        versions = [ref.rpartition("/v")[2] for ref in refs if ref.startswith(f"{name}/v")]
        yield from offer(
            (*reversed(versions), "HEAD", *(ref for ref in refs if "/v" not in ref)),
            f"{before}{name}@",
        )
        return
    home = find_store(store, os.environ)
    yield from offer(home.list_names_beginning(last), before)
    with suppress(NpuprofError):
        yield from offer((f"{name}:" for name in _list_sources_of(home)), before)


def _find_released_versions(place: Place) -> Iterator[Candidate]:
    words = (word for word, _ in _find_specs(place))
    yield from offer(word for word in words if "@" not in word or re.search(r"@v?\d[^/@]*$", word))


def _list_next_versions(place: Place) -> Iterator[Candidate]:
    """Yield possible next version numbers of the preset that is named before, based on the names of
    tags.
    """
    from npuprof.store.versions import parse_version_text

    name, *_ = place.placed
    tags = [
        ref.removeprefix(f"{name}/")
        for ref in _list_refs(place.store)
        if ref.startswith(f"{name}/v")
    ]
    released = [version.number for tag in tags if (version := parse_version_text(tag))]
    if not released:
        yield "1.0.0", "the first"
        return
    major, minor, patch = max(released)
    yield f"{major}.{minor}.{patch + 1}", "text only"
    yield f"{major}.{minor + 1}.0", "anything else that takes effect"
    yield f"{major + 1}.0.0", "numerics, or a key is gone"


def _find_stores(place: Place) -> Iterator[Candidate]:
    """Yield the named stores; the shell itself completes folders."""
    names = [BUILTIN]
    with suppress(NpuprofError):
        names += (f"{name}:" for name in _list_sources_of(find_store(None, os.environ)))
    yield from offer(names)
    if not place.current:
        with os.scandir() as entries:
            yield from offer(
                f"{entry.name}/"
                for entry in entries
                if entry.is_dir() and not entry.name.startswith(".")
            )


def _list_sources(place: Place) -> Iterator[Candidate]:
    return offer(_list_sources_of(find_store(place.store, os.environ)))


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
    from npuprof.store.sources.released import read_cached_tags

    tags = read_cached_tags(there.locked)  # versions as of the time when the source was locked
    refs = (
        sorted(item.tag for item in tags)
        if tags is not None
        else _list_folder_refs(find_mirror_folder(there.locked.url))
    )
    refs = [ref for ref in refs if not ref.endswith(".yanked")]
    yield from (
        f"{source}:{name}@{ref.rpartition('/v')[2]}"
        for ref in reversed(refs)
        if ref.startswith(f"{name}/v")
    )


def _list_refs(store: str | None) -> list[str]:
    """Return the tags and branches of the store's repository, read from its files without starting
    a program.
    """
    top = find_repository_top(os.path.realpath(find_store(store, os.environ).root))
    git = os.path.join(top, ".git")
    return _list_folder_refs(git) if top and os.path.isdir(git) else []


def _list_folder_refs(git: str) -> list[str]:
    """Return the tags and branches in a .git folder."""
    refs: set[str] = set()
    with (
        suppress(OSError),
        open(os.path.join(git, "packed-refs"), encoding="utf-8", errors="replace") as file,
    ):
        refs.update(line.split(" ", 1)[1].strip() for line in file if " refs/" in line)
    for kind in ("refs/tags", "refs/heads"):
        base = os.path.join(git, kind)
        for folder, _, names in os.walk(base):
            refs.update(
                f"{kind}/{os.path.relpath(os.path.join(folder, name), base)}" for name in names
            )
    return sorted(
        ref.split("/", 2)[2] for ref in refs if ref.startswith(("refs/tags/", "refs/heads/"))
    )


def _find_revisions(place: Place) -> Iterator[Candidate]:
    return offer(("HEAD", *_list_refs(place.store)))


def _find_revision_ranges(place: Place) -> Iterator[Candidate]:
    before, dots, _ = place.current.rpartition("..")
    return offer(("HEAD", *_list_refs(place.store)), before + dots)


def _find_assignments(place: Place) -> Iterator[Candidate]:
    """Yield keys followed by ``=``, or after it the documented values."""
    from npuprof import catalog

    key, equals, _ = place.current.partition("=")
    if not equals:
        yield from offer(
            f"{word}=" for listed in (_list_catalogue(), _list_profile_keys()) for word, _ in listed
        )
        return
    record = find_key_record(key)
    if key == "profile.scenario":
        yield from offer(SCENARIOS, f"{key}=")
    if record is not None:
        is_boolean = getattr(record, "field", "") == "b" or (
            isinstance(record, catalog.Setting) and record.kind == "bool"
        )
        choices = (*record.choices, *(("true", "false") if is_boolean else ()))
        if not choices and isinstance(record.default, (int, float, str)) and record.default != "":
            yield f"{key}={record.default}", "the default"
        yield from offer(map(format_plain_value, choices), f"{key}=")


def _list_keys(place: Place) -> Iterator[Candidate]:
    """Yield the keys of the preset that is named before, then those of the catalogue."""
    if place.placed:
        name = place.placed[0].partition("@")[0].partition("+")[0]
        with suppress(NpuprofError):
            yield from offer(
                step.key for step in find_store(place.store, os.environ).profile(name).steps
            )
        yield from _list_profile_keys()
    yield from _list_catalogue()


def _list_condition_keys(place: Place) -> Iterator[Candidate]:
    """Yield the keys that a condition may begin with."""
    if re.fullmatch(r"[\w.]*", place.current):
        yield from _list_catalogue()


def _list_catalogue() -> Iterator[Candidate]:
    from npuprof import catalog

    for section in SECTIONS:
        yield from offer(
            catalog.record_names(section), "" if section == "options" else f"{section}."
        )


def _list_profile_keys() -> Iterator[Candidate]:
    from npuprof.catalog.releases import list_frameworks

    plain = {name: key for name, key in PROFILE_KEYS.items() if key.kind != RELEASES}
    yield from ((f"profile.{name}", first_sentence(key.help)) for name, key in plain.items())
    yield from (
        (f"profile.versions.{name}", f"Releases of {name} it is meant for")
        for name in list_frameworks()
    )


def _list_releases(place: Place) -> Iterator[Candidate]:
    from npuprof.catalog.releases import load_releases

    return offer(reversed(load_releases()))


def _find_framework_releases(place: Place) -> Iterator[Candidate]:
    """Yield frameworks followed by ``=``, or after it their releases."""
    from npuprof.catalog.releases import list_frameworks, load_releases

    name, equals, _ = place.current.partition("=")
    return (
        offer(reversed(load_releases(name)), f"{name}=")
        if equals
        else offer(f"{framework}=" for framework in list_frameworks())
    )


def _list_products(place: Place) -> Iterator[Candidate]:
    from npuprof.catalog import products

    yield from (
        (name, str(products.load_products().get(name, {}).get("title", "")))
        for name in products.product_names()
    )


def _list_codes(place: Place) -> Iterator[Candidate]:
    from npuprof.catalog.code_pages import load_pages
    from npuprof.commands.rule import load_team_pages

    yield from ((code, page.title) for code, page in load_pages().items())
    yield from ((page.code, page.title) for page in load_team_pages())


def _list_topics(place: Place) -> Iterator[Candidate]:
    from npuprof.docs import load_topics

    yield from ((topic.name, topic.title) for topic in load_topics())
    yield from ((names[0], first_sentence(purpose)) for names, purpose in list_verb_names())


#: What completes the values of a parameter, by its ``complete``.
COMPLETERS: dict[str, Callable[[Place], Iterator[Candidate]]] = {
    "assignment": _find_assignments,
    "code": _list_codes,
    "condition": _list_condition_keys,
    "framework": _find_framework_releases,
    "key": _list_keys,
    "next-version": _list_next_versions,
    "nothing": lambda place: iter(()),
    "product": _list_products,
    "release": _list_releases,
    "revision": _find_revisions,
    "revisions": _find_revision_ranges,
    "source": _list_sources,
    "spec": _find_specs,
    "store": _find_stores,
    "topic": _list_topics,
    "values": _find_assignments,
    "version": _find_released_versions,
}
