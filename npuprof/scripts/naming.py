"""Names of presets created from scripts.

A name consists of the file's name, of its folder if the file name is generic, and of the function.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import zip_longest
from operator import attrgetter

from npuprof.catalog import load_built_part
from npuprof.scripts.grouping import group_by
from npuprof.scripts.preset_draft import Draft

# numbers of devices and sizes do not name a model either: train_8p
_SCALE = re.compile(r"\d+[pkn]?")
#: Suffixes of model zoos after a model's name.
_PURPOSE = re.compile(r"_for_(?:tensorflow|pytorch|mindspore|acl)[\w.]*$", re.IGNORECASE)
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")
_PART_BREAK = re.compile(r"[-_.]")


@cache
def _load_generic_parts() -> frozenset[str]:
    """Return the parts of file and folder names that do not name a model."""
    return frozenset(load_built_part("names")["generic"])


def preset_name(file: str) -> str:
    """Return a valid preset name from a file name."""
    return _clean(os.path.splitext(posixpath.basename(file.replace(os.sep, "/")))[0]) or "imported"


def name_drafts(stem: str, drafts: Sequence[Draft]) -> None:
    """Name the presets of one file.

    The only one is named after the file; of several, each has its function and its configuration
    appended if they differ, then a number.
    """
    if len(drafts) == 1:
        drafts[0].name = stem
        return
    names = []
    configs = []
    for draft in drafts:
        function, config = draft.labels
        names.append(_join_names(stem, _clean_label(function)))
        configs.append(_clean_label(config))
    _distinguish_names(names, configs, _join_names)
    for draft, name in zip(drafts, number_names(names), strict=True):
        draft.name = name


def name_all_drafts(drafts: Sequence[Draft]) -> None:
    """Name the presets of several files uniquely, independent of file order."""
    by_file = group_by(drafts, attrgetter("file"))
    for file, stem in name_files(sorted(by_file)).items():
        name_drafts(stem, by_file[file])
    order = sorted(drafts, key=attrgetter("file"))
    for draft, name in zip(order, number_names(draft.name for draft in order), strict=True):
        draft.name = name


def _clean_label(text: str) -> str:
    """Return the name of a function, variable or file as a part of a preset name."""
    return (
        _clean(posixpath.basename(text.replace(os.sep, "/").rstrip("/")))
        .replace("_", "-")
        .strip("-")
        .lower()
    )


def _clean(text: str) -> str:
    return _FOREIGN.sub("-", text).lstrip(".-")


def _join_names(name: str, part: str) -> str:
    """Return a name with a part appended, without repeating it."""
    spelled = _PART_BREAK.sub("-", name.lower())
    if not part or spelled == part or spelled.endswith(f"-{part}"):
        return name
    return f"{name}-{part}"


def name_for_folder(name: str, folder: str) -> str:
    """Return a name with that of a folder appended."""
    return _join_names(name, _clean_label(folder))


def number_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return the names with numbers appended to duplicates, ignoring letter case."""
    used = {name.lower() for name in taken}
    last_number: dict[str, int] = {}  # the search starts there, as it grows with the square else
    numbered = []
    for name in names:
        free, number = name, last_number.get(name.lower(), 1)
        while free.lower() in used:
            number += 1
            free = f"{name}-{number}"
        last_number[name.lower()] = number
        used.add(free.lower())
        numbered.append(free)
    return numbered


def name_files(files: Sequence[str]) -> dict[str, str]:
    """Return a unique name for each file.

    Equal names get distinguishing folders, nearest first, then their suffixes, then numbers.
    """
    paths = list(dict.fromkeys(files))
    folders_of_files = [_list_folders(file) for file in paths]
    names = [_name_file(file) for file in paths]
    for folders in zip_longest(*folders_of_files, fillvalue=""):
        _distinguish_names(names, folders, _prefix_name)
    suffixes = [_clean_label(os.path.splitext(file)[1].lstrip(".")) for file in paths]
    _distinguish_names(names, suffixes, _join_names)
    return dict(zip(paths, number_names(names), strict=True))


def _distinguish_names(
    names: list[str], parts: Sequence[str], join: Callable[[str, str], str]
) -> None:
    """Join each of the equal names with its part, unless their parts are equal too."""
    indices_of_names = group_by(range(len(names)), lambda index: names[index].lower())
    for indices in indices_of_names.values():
        if len({parts[index] for index in indices}) > 1:
            for index in indices:
                names[index] = join(names[index], parts[index])


def _name_file(file: str) -> str:
    """Return the name of a single file, prefixed by its nearest meaningful folder if generic."""
    stem = preset_name(file).lower()
    parts = (part for part in _PART_BREAK.split(stem) if part and not _SCALE.fullmatch(part))
    if not _load_generic_parts().issuperset(parts):
        return stem
    folders = _list_folders(file)
    return _prefix_name(stem, folders[0]) if folders else stem


def _prefix_name(name: str, folder: str) -> str:
    """Return a name with a folder in front, without repeating it."""
    if not folder or name == folder or name.startswith(f"{folder}-"):
        return name
    return f"{folder}-{name}"


def _list_folders(file: str) -> list[str]:
    """Return the meaningful folders of a file, nearest first, as parts of a name."""
    parts = os.path.dirname(file).replace(os.sep, "/").split("/")
    cleaned = [
        _PURPOSE.sub("", _clean(part).lower())
        for part in reversed(parts)
        if part not in ("", ".", "..")
    ]
    return [part for part in cleaned if part and part not in _load_generic_parts()]


def name_covering_folder(files: Sequence[str], everything: Iterable[str]) -> str:
    """Return the name of the folder with exactly these files.

    Empty if there is none with a meaningful name.
    """
    folders = [os.path.dirname(os.path.normpath(file)) for file in files]
    if len({os.path.isabs(folder) for folder in folders}) != 1:
        return ""
    top = os.path.commonpath(folders)
    prefix = os.path.join(top, "")
    names = _list_folders(os.path.join(os.path.basename(top), "x"))
    inside = [file for file in everything if os.path.normpath(file).startswith(prefix)]
    return names[0] if names and len(inside) == len(files) else ""
