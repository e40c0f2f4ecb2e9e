"""What to write instead of a word that cannot be the name of a preset: by who refers to it, and what is in the store."""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from functools import lru_cache

from npuprof.model import Finding, Origin, did_you_mean
from npuprof.store.problems import LIST_ADVICE, place_finding

#: How many names are listed where a pattern takes more.
_MOST_TOLD = 3


_WHY = "A name is a path below the store: letters, digits, '.', '_' and '-', no segment starting with '.' or '-'."


_NAME = r"(?![.-])[\w.-]+(?:/(?![.-])[\w.-]+)*"


def build_bad_name_finding(name: str, asked: Origin | None = None, known: Collection[str] = ()) -> Finding:
    """Return what is to be said of a text that cannot be the name of a profile, where presets of some names are ``known``."""
    what = f"{name!r} cannot be the name of a profile" if name else "the name of a profile is missing"
    hint = _find_parent_hint(name, known) if asked is not None else _find_spec_hint(name, known)
    return place_finding(Finding("NP004", what, _WHY, hint), asked)


def build_bad_new_name_finding(name: str, old: str = "") -> Finding:
    """Return what is to be said of a text that a new preset cannot be called by, one that is made of an ``old`` one perhaps."""
    plain = _make_name(name + old.rpartition("/")[2] if name.endswith("/") else name)
    hint = f"write {plain}" if plain else "choose another name"
    if name.startswith(("../", "/", "~")):
        hint = f"a preset is made in the store, {plain or 'NAME'} for one; --store names another store"
    what = f"{name!r} cannot be the name of a profile" if name else "the name of a profile is missing"
    return Finding("NP004", what, _WHY, hint)


def _find_parent_hint(name: str, known: Collection[str]) -> str:
    """Return what to write in ``extends``: a name there is, as a parent is never named by a path."""
    if not name:
        return f"take it out, or name a parent; {LIST_ADVICE}"
    if alike := _find_alike(name, known):
        return f'write "{alike}"'
    if name.startswith("builtin:"):
        plain = name.removeprefix("builtin:").partition("@")[0]
        return f"what npuprof ships changes with it: npuprof copy {name.partition('@')[0]} {plain} makes one of this store to extend"
    parts = [part.strip() for part in re.split(r"[,+]", name)]
    if len(parts) > 1 and all(re.fullmatch(_NAME, part, re.ASCII) for part in parts):
        return "name each by itself: " + ", ".join(f'"{part}"' for part in parts)
    if name.startswith((".", "/", "~")) or "/../" in name:
        return "parents are presets of the same store: name one of it, or copy the other one in"
    return did_you_mean(_make_name(name), known, LIST_ADVICE)


def _find_spec_hint(name: str, known: Collection[str]) -> str:
    """Return what to type instead of a name on the command line."""
    if not name:
        return LIST_ADVICE
    if name.endswith("/"):
        return "leave the / off; npuprof check without a name looks at the whole store"
    if alike := _find_alike(name, known):
        return f'write "{alike}"'
    if re.match(r"HEAD\b|.*\.\.|[^/]*[~^]", name) and "/" not in name:
        return f"a revision stands behind a name, bert@{name}; two of them are compared by npuprof diff --rev {name}"
    if re.search(r"[*?\[]", name):
        return _find_pattern_hint(name, known)
    if len(parts := [part.strip() for part in name.split(",")]) > 1:
        return f"a + lays one preset over another, {'+'.join(filter(None, parts))}; verbs that take several take a word for each"
    if name.endswith(".toml"):
        return "leave out the .toml"
    if name.startswith((".", "/", "~")):
        return did_you_mean(_make_name(name), known, "for a file elsewhere give a path that ends in .toml")
    return did_you_mean(_make_name(name), known, LIST_ADVICE)


def _find_pattern_hint(name: str, known: Collection[str]) -> str:
    meant = [preset for preset in known if fnmatchcase(preset, name)]
    if not meant:
        return f"a name is taken as it is, and no preset would match; {LIST_ADVICE}"
    more = f" (and {len(meant) - _MOST_TOLD} more)" if len(meant) > _MOST_TOLD else ""
    return f"a name is taken as it is; name each: {' '.join(meant[:_MOST_TOLD])}{more}; npuprof check without a name looks at all"


def _find_alike(name: str, known: Collection[str]) -> str:
    """Return the name that differs in nothing but what no name holds, or in the folder of the store before it; empty for none."""
    plain = re.sub(r"^(?:\.{0,2}/)*(?:profiles/)?", "", name.replace("\\", "/").removesuffix(".toml"))
    if plain in known:
        return plain
    names = _group_by_letters(tuple(known)).get(_keep_letters(plain), [])
    return names[0] if len(names) == 1 else ""


@lru_cache(2)
def _group_by_letters(known: tuple[str, ...]) -> dict[str, list[str]]:
    """Return names by their letters and digits: made once for all the words that are none."""
    groups: dict[str, list[str]] = {}
    for name in known:
        groups.setdefault(_keep_letters(name), []).append(name)
    return groups


def _keep_letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def _make_name(text: str) -> str:
    """Return the name that a text is nearest to; empty where nothing is left."""
    plain = re.sub(r"^(?:[.~]{0,2}/)*(?:profiles/)?", "", text.replace("\\", "/").removesuffix(".toml"))
    segments = [re.sub(r"[^A-Za-z0-9._-]+", "-", segment).strip("-").lstrip(".-") for segment in plain.split("/")]
    name = "/".join(filter(None, segments)).removesuffix(".toml")
    return name if re.fullmatch(_NAME, name, re.ASCII) else ""
