"""What else a word may mean that names no preset, or no store: a revision, a preset of a source, a path, a source itself."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from npuprof import catalog
from npuprof.document import keys
from npuprof.model import Finding, NpuprofError, find_nearest_names
from npuprof.store import Folder, find_store
from npuprof.store.gitstore import revisions
from npuprof.store.versions import find_bare_version
from npuprof.wording import say_option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.store.sources.reading import Sources

#: How many presets of a folder are listed.
_MOST_TOLD = 3


def explain_missing_preset(home: Folder, word: str, error: NpuprofError) -> NpuprofError:
    """Return the error that a store has no preset of a name, with what the name means otherwise where that can be told."""
    if len(error.findings) != 1 or error.findings[0].code not in ("NP004", "NP008", "NP023") or error.findings[0].origin is not None:
        return error
    finding = error.findings[0]
    require_no_range_of_presets(home, word)
    name, _, number = word.rpartition("/v")
    if name and number[:1].isdigit() and name in home.names():
        return NpuprofError([Finding("NP008", f"{word!r} is the tag of a released version", finding.why, f"write {name}@{number}")])
    if version := find_bare_version(word):
        what = f"{word!r} is a version, and no preset"
        return NpuprofError([Finding("NP008", what, finding.why, f"it stands behind the preset, after an @: NAME@{version}")])
    if word.partition("/")[0] == "builtin" and "/" in word:
        return NpuprofError([finding._replace(hint=f"presets that npuprof ships are named with a colon: builtin:{word.partition('/')[2]}")])
    if _is_revision(home, word):
        hint = f"npuprof diff --rev {word} compares the whole store"
        if ".." not in word:
            hint = f"NAME@{word} is a preset as it was then; npuprof check --rev {word} checks the whole store, {hint}"
        return NpuprofError([Finding("NP008", f"{word!r} is a revision, and no preset", finding.why, hint)])
    hint = suggest_preset(home, word)
    return NpuprofError([finding._replace(hint=hint)]) if hint else error


def suggest_preset(home: Folder, word: str) -> str:
    """Return what to do with a word that names no preset and is something else; an empty text where it is nothing that is known."""
    if meant := _find_path_in_store(home, word) or _find_preset_of_source(home, word):
        return f"did you mean {meant!r}?"
    return _find_other_kind(home, word)


def _find_other_kind(home: Folder, word: str) -> str:
    """Return what to do with a word that is a folder of presets, a script, or a key; an empty text where it is none of them."""
    top = os.path.realpath(home.root)
    is_store = os.path.isdir(word) and os.path.realpath(word) == top and not word.endswith("/")
    folder = word.removeprefix("./").removeprefix(f"{os.path.basename(top)}/").rstrip("/")
    if inside := [name for name in home.names() if is_store or name.startswith(f"{folder}/")]:
        more = f" and {len(inside) - _MOST_TOLD} more" if len(inside) > _MOST_TOLD else ""
        what = f"{word} is the folder of the store, whose presets" if is_store else f"{folder} is a folder of presets, which"
        return f"{what} are named one by one: {' '.join(inside[:_MOST_TOLD])}{more}"
    if os.path.isfile(word):
        return f"{word} is a file: npuprof scan {word} says what a script sets, npuprof import {word} makes a preset of it"
    if is_known_key(word):
        return f"{word} is a key, and the preset stands before it: npuprof explain NAME {word}; npuprof option {word} tells what it is"
    return ""


def explain_swapped_names(home: Folder, old: str, new: str, error: NpuprofError) -> NpuprofError:
    """Return the error that there is no preset of a name, where the name to be made is one: they were given the other way round."""
    if len(error.findings) != 1 or error.findings[0].code != "NP008" or new not in home.names():
        return error
    return NpuprofError(
        [error.findings[0]._replace(hint=f"{new} is there: the preset that is there stands before the new name: {new} {old}")]
    )


def is_known_key(word: str) -> bool:
    """Return whether the catalogue has a key of that name."""
    parsed = keys.parse_key(word)
    return parsed is not None and catalog.find_record(*keys.split_section_and_name(parsed[0])) is not None


def explain_missing_source(home: object, word: str, error: NpuprofError) -> NpuprofError:
    """Return the error that there is no source of a name, with how a version of a preset is named where it is that."""
    name, _, version = word.partition(":")
    if isinstance(home, Folder) and error.findings[0].code == "NP042" and name in home.names():
        what, why = f"{name!r} is a preset here, and no source", "SOURCE:NAME is a preset of another repository."
        hint = f"a version, or a revision, stands behind an @: {name}@{version.removeprefix('v')}" if version else f"write {name}"
        return NpuprofError([Finding("NP042", what, why, hint)])
    return error


def require_no_range_of_presets(home: Folder, word: str) -> None:
    """Raise NpuprofError where two presets are joined by dots as revisions are."""
    ends = re.split(r"\.{2,3}", word)
    if len(ends) == 2 and all(end in home.names() for end in ends):
        what, why = f"{word!r} are two presets", "Two dots stand between revisions, not between presets."
        raise NpuprofError([Finding("NP004", what, why, f"npuprof diff {ends[0]} {ends[1]} compares them")])


def _is_revision(home: Folder, word: str) -> bool:
    """Return whether git knows a word, or both ends of what looks like a range."""
    ends = [end for end in re.split(r"\.{2,3}", word) if end]
    if not ends or len(ends) > 2 or word.startswith(("-", ".", "/")) or not home.in_work_tree:
        return False
    with suppress(NpuprofError):
        repository = revisions.find_repository(home)
        return all(map(repository.has_commit, ends))
    return False


def _find_path_in_store(home: Folder, word: str) -> str:
    """Return the preset that is named with the folder of the store before it."""
    folder, _, name = word.partition("/")
    return name if name and folder == os.path.basename(os.path.realpath(home.root)) and name in home.names() else ""


def _find_preset_of_source(home: Folder, word: str) -> str:
    """Return the preset of a source whose name was joined with a slash."""
    source, slash, name = word.partition("/")
    if not slash or not home.project_file:
        return ""
    with suppress(NpuprofError):
        sources = _find_sources(home)
        if source in sources.project.sources and (names := find_nearest_names(name, sources.open_source(source).names(), 1)):
            return f"{source}:{names[0]}"
    return ""


def build_missing_store_finding(word: str, why: str, in_python: bool = False) -> Finding:
    """Return that a word names no store, with the sources there are, and how to name one; ``why`` says what it stands for."""
    known: list[str] = []
    with suppress(NpuprofError):
        known = [f"{name}:" for name in _find_sources(find_store(None, {})).project.sources]
    hint = "name a folder that holds presets, or make one: npuprof init"
    if re.match(r"[a-z][a-z+]*://|[\w.-]+@[\w.-]+:", word):
        what = "the presets of another repository are taken by its address once, and are a store by name from then on"
        return Finding(
            "NP010",
            f"the store {word!r} is not a folder",
            why,
            f"npuprof source add NAME URL, then {say_option('store', 'NAME:', in_python)} ({what})",
        )
    if sources := find_nearest_names(f"{word.rstrip(':/')}:", known, 1):
        hint = f"write {sources[0]} for the store of that source"
    elif known:
        hint = f"name a folder that holds presets, or a source: {', '.join(known)}"
    return Finding("NP010", f"the store {word!r} is not a folder", why, hint)


def _find_sources(home: Folder) -> Sources:
    from npuprof.store.sources.reading import find_sources

    return find_sources(home)


def build_file_revision_finding(path: str, revision: str) -> Finding:
    """Return that a file outside of the store has no revisions here, and how its text at one is had all the same."""
    what = f"{path}@{revision}: a path takes no revision"
    why = "A revision is one of the store's presets; this file is none of them."
    shown = path if path.startswith(("./", "../")) else f"./{path}"
    hint = f"write {path} for the file as it is now, or git show {revision}:{shown} > old.toml, and ./old.toml in its place"
    return Finding("NP023", what, why, hint)
