"""Completion candidates for the values of parameters.

They are read from files: starting a program would take too long.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from npuprof.commands.completion.cursor import (
    Candidate,
    Cursor,
    find_key_record,
    first_sentence,
    offer,
)
from npuprof.commands.framework import list_verb_names
from npuprof.document.keys import format_plain_value
from npuprof.document.profile import PROFILE_KEYS
from npuprof.model import SCENARIOS, SECTIONS, TYPE_CHECKING, NpuprofError
from npuprof.store import BUILTIN
from npuprof.store.folder import Folder, find_store, open_builtin_store
from npuprof.system import find_repository_top

if TYPE_CHECKING:
    from npuprof.catalog.records import TeamVariables


def _find_specs(cursor: Cursor) -> Iterator[Candidate]:
    """Yield presets; after ``@`` the versions and revisions of one.

    After ``+`` presets to compose with.
    """
    from npuprof.store import is_source_reference

    store = cursor.store
    composed, plus, last = cursor.current.rpartition("+")
    name, at, _ = last.partition("@")
    before = f"{composed}{plus}"
    if last.startswith(BUILTIN):
        yield from offer(open_builtin_store().names(), f"{before}{BUILTIN}")
        return
    if last.startswith("bu"):  # a shorter prefix would hide presets
        yield f"{before}{BUILTIN}", "what npuprof ships"
    if is_source_reference(last):
        yield from offer(_list_source_specs(store, last), before)
        return
    if at:
        refs = _list_refs(store)
        versions = _list_versions(refs, name)
        others = [ref for ref in refs if "/v" not in ref]
        yield from offer((*reversed(versions), "HEAD", *others), f"{before}{name}@")
        return
    home = find_store(store, os.environ)
    yield from offer(home.list_names_beginning(last), before)
    with suppress(NpuprofError):
        yield from offer((f"{name}:" for name in _list_sources_of(home)), before)


def _list_versions(refs: list[str], name: str) -> list[str]:
    """Return the versions of a preset in tags, as in ``bert/v1.2.0``, without the ``v``."""
    start = f"{name}/v"
    return [ref[len(start) :] for ref in refs if ref.startswith(start)]


def _find_released_versions(cursor: Cursor) -> Iterator[Candidate]:
    for spec, _ in _find_specs(cursor):
        if "@" not in spec or re.search(r"@v?\d[^/@]*$", spec):
            yield spec, ""


def _list_next_versions(cursor: Cursor) -> Iterator[Candidate]:
    """Yield possible next version numbers of the preset that is named before.

    They are based on the names of tags.
    """
    from npuprof.store.versions import parse_version_text

    name, *_ = cursor.positional
    released = []
    for version in _list_versions(_list_refs(cursor.store), name):
        parsed = parse_version_text(f"v{version}")
        if parsed is not None:
            released.append(parsed.number)
    if not released:
        yield "1.0.0", "the first"
        return
    major, minor, patch = max(released)
    yield f"{major}.{minor}.{patch + 1}", "text only"
    yield f"{major}.{minor + 1}.0", "anything else that takes effect"
    yield f"{major + 1}.0.0", "numerics, or a key is gone"


def _find_stores(cursor: Cursor) -> Iterator[Candidate]:
    """Yield the named stores; the shell itself completes folders."""
    names = [BUILTIN]
    with suppress(NpuprofError):
        names += (f"{name}:" for name in _list_sources_of(find_store(None, os.environ)))
    yield from offer(names)
    # with nothing typed, all names are candidates, and the shell adds no folders to them
    if not cursor.current:
        with os.scandir() as entries:
            yield from offer(
                f"{entry.name}/"
                for entry in entries
                if entry.is_dir() and not entry.name.startswith(".")
            )


def _list_sources_of(home: Folder) -> list[str]:
    if not home.project_file:  # importing the reader of projects takes as long as everything else
        return []
    return list(home.project.sources)


def _list_source_specs(store: str | None, current: str) -> Iterator[str]:
    """Yield the presets of a source; after ``@`` the versions of one."""
    from npuprof.store.sources.lookups import Lookups
    from npuprof.store.sources.mirror import find_mirror_folder

    source, _, rest = current.partition(":")
    name, at, _ = rest.partition("@")
    source_store = Lookups().open_source(find_store(store, os.environ), source)
    if not at:
        yield from (f"{source}:{item}" for item in source_store.names())
        return
    from npuprof.store.sources.released import read_cached_tags

    locked = source_store.locked
    tags = read_cached_tags(locked)  # versions as of the time when the source was locked
    if tags is not None:
        refs = sorted(item.tag for item in tags)
    else:
        refs = _list_folder_refs(find_mirror_folder(locked.url))
    # the marks of yanks are no versions
    refs = [ref for ref in refs if not ref.endswith(".yanked")]
    for version in reversed(_list_versions(refs, name)):
        yield f"{source}:{name}@{version}"


def _list_refs(store: str | None) -> list[str]:
    """Return the tags and branches of the store's repository, read from its files."""
    top = find_repository_top(find_store(store, os.environ).root)
    git = os.path.join(top, ".git")
    return _list_folder_refs(git) if top and os.path.isdir(git) else []


def _list_folder_refs(git: str) -> list[str]:
    """Return the tags and branches in a .git folder, without ``refs/tags/`` and ``refs/heads/``."""
    refs = set()
    packed = os.path.join(git, "packed-refs")
    with suppress(OSError), open(packed, encoding="utf-8", errors="replace") as file:
        for line in file:
            _, _, ref = line.partition(" ")
            for start in ("refs/tags/", "refs/heads/"):
                if ref.startswith(start):
                    refs.add(ref.removeprefix(start).strip())
    # new refs are files until git packs them
    for kind in ("refs/tags", "refs/heads"):
        base = os.path.join(git, kind)
        for folder, _, names in os.walk(base):
            refs.update(os.path.relpath(os.path.join(folder, name), base) for name in names)
    return sorted(refs)


def _find_revision_ranges(cursor: Cursor) -> Iterator[Candidate]:
    before, dots, _ = cursor.current.rpartition("..")
    return offer(("HEAD", *_list_refs(cursor.store)), before + dots)


def _find_assignments(cursor: Cursor) -> Iterator[Candidate]:
    """Yield keys followed by ``=``, or after it the documented values."""
    from npuprof import catalog

    key, equals, _ = cursor.current.partition("=")
    if not equals:
        for name, _ in (*_list_catalogue(cursor), *_list_profile_keys()):
            yield f"{name}=", ""
        return
    record = find_key_record(key) or _load_variables(cursor).get(key.removeprefix("env."))
    if key == "profile.scenario":
        yield from offer(SCENARIOS, f"{key}=")
    if record is not None:
        is_boolean = getattr(record, "field", "") == "b" or (
            isinstance(record, catalog.Setting) and record.kind == "bool"
        )
        choices = (*record.choices, "true", "false") if is_boolean else record.choices
        if not choices and isinstance(record.default, (int, float, str)) and record.default != "":
            yield f"{key}={record.default}", "the default"
        yield from offer(map(format_plain_value, choices), f"{key}=")


def _list_keys(cursor: Cursor) -> Iterator[Candidate]:
    """Yield the keys of the preset that is named before, then those of the catalogue."""
    if cursor.positional:
        name = cursor.positional[0].partition("@")[0].partition("+")[0]
        with suppress(NpuprofError):
            yield from offer(
                step.key for step in find_store(cursor.store, os.environ).profile(name).steps
            )
        yield from _list_profile_keys()
    yield from _list_catalogue(cursor)


def _list_condition_keys(cursor: Cursor) -> Iterator[Candidate]:
    """Yield the keys that a condition may begin with."""
    if re.fullmatch(r"[\w.]*", cursor.current):
        yield from _list_catalogue(cursor)


def _list_catalogue(cursor: Cursor) -> Iterator[Candidate]:
    """Yield the keys of the catalogue, then the variables of the team."""
    from npuprof import catalog

    for section in SECTIONS:
        prefix = "" if section == "options" else f"{section}."
        yield from offer(catalog.record_names(section), prefix)
    if cursor.current.startswith("args."):
        yield from _list_program_flags()
    yield from offer(_load_variables(cursor), "env.")


def _list_program_flags() -> Iterator[Candidate]:
    """Yield the arguments that programs in the current folder define, each in its own file."""
    from npuprof.scripts.programs.finding import Programs

    programs = Programs((), ())
    for name in sorted(os.listdir()):
        if name.endswith(".py") and (parser := programs.read_own_parser(name)):
            for flag, argument in parser.flags.items():
                if "--help" not in argument.flags:
                    yield f"args.{flag.removeprefix('--')}", f"defined in {argument.where}"


def _load_variables(cursor: Cursor) -> TeamVariables:
    """Return the variables that the store's npuprof.toml declares; none if it cannot be read."""
    with suppress(NpuprofError):
        home = find_store(cursor.store, os.environ)
        if home.project_file:
            return home.project.variables
    return {}


def _list_profile_keys() -> Iterator[Candidate]:
    from npuprof.catalog.releases import list_frameworks

    plain = {name: key for name, key in PROFILE_KEYS.items() if not key.kind.startswith("a table")}
    yield from ((f"profile.{name}", first_sentence(key.help)) for name, key in plain.items())
    yield from (
        (f"profile.versions.{name}", f"Releases of {name} it is meant for")
        for name in list_frameworks()
    )


def _list_releases(cursor: Cursor) -> Iterator[Candidate]:
    from npuprof.catalog.releases import load_releases

    return offer(reversed(load_releases()))


def _find_framework_releases(cursor: Cursor) -> Iterator[Candidate]:
    """Yield frameworks followed by ``=``, or after it their releases."""
    from npuprof.catalog.releases import list_frameworks, load_releases

    name, equals, _ = cursor.current.partition("=")
    return (
        offer(reversed(load_releases(name)), f"{name}=")
        if equals
        else offer(f"{framework}=" for framework in list_frameworks())
    )


def _find_axis_values(cursor: Cursor) -> Iterator[Candidate]:
    """Yield declared axes followed by ``=``, or after it their values."""
    home = find_store(cursor.store, os.environ)
    name, equals, _ = cursor.current.partition("=")
    declared = home.project.axes if home.project_file else {}
    return (
        offer(declared.get(name, ()), f"{name}=")
        if equals
        else offer(f"{axis}=" for axis in declared)
    )


def _list_products(cursor: Cursor) -> Iterator[Candidate]:
    from npuprof.catalog import products

    yield from (
        (name, str(products.load_products().get(name, {}).get("title", "")))
        for name in products.product_names()
    )


def _list_codes(cursor: Cursor) -> Iterator[Candidate]:
    from npuprof.catalog.code_pages import load_pages
    from npuprof.commands.rule import load_team_pages

    yield from ((code, page.title) for code, page in load_pages().items())
    yield from ((page.code, page.title) for page in load_team_pages())


def _list_topics(cursor: Cursor) -> Iterator[Candidate]:
    from npuprof.docs import load_topics

    yield from ((topic.name, topic.title) for topic in load_topics())
    yield from ((names[0], first_sentence(purpose)) for names, purpose in list_verb_names())


#: What completes the values of a parameter, by its ``complete``.
COMPLETERS: dict[str, Callable[[Cursor], Iterator[Candidate]]] = {
    "assignment": _find_assignments,
    "axis": _find_axis_values,
    "code": _list_codes,
    "condition": _list_condition_keys,
    "framework": _find_framework_releases,
    "key": _list_keys,
    "next-version": _list_next_versions,
    "nothing": lambda cursor: iter(()),
    "product": _list_products,
    "release": _list_releases,
    "revision": lambda cursor: offer(("HEAD", *_list_refs(cursor.store))),
    "revisions": _find_revision_ranges,
    "source": lambda cursor: offer(_list_sources_of(find_store(cursor.store, os.environ))),
    "spec": _find_specs,
    "store": _find_stores,
    "topic": _list_topics,
    "values": _find_assignments,
    "version": _find_released_versions,
}
