"""Names of presets created from scripts: from the file, its folder if the file name is generic, and
the function.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from npuprof.scripts.grouping import group_by
from npuprof.scripts.preset_draft import Draft

#: Generic words of file and folder names.
_COMMON = {
    "all",
    "app",
    "args",
    "ascend",
    "atc",
    "bench",
    "benchmark",
    "bin",
    "build",
    "classifier",
    "cli",
    "code",
    "common",
    "config",
    "configs",
    "contrib",
    "convert",
    "core",
    "debug",
    "demo",
    "distributed",
    "dump",
    "env",
    "estimator",
    "eval",
    "evaluate",
    "evaluation",
    "example",
    "examples",
    "experiment",
    "export",
    "finetune",
    "finetuning",
    "freeze",
    "full",
    "helper",
    "helpers",
    "index",
    "infer",
    "inference",
    "init",
    "launch",
    "lib",
    "main",
    "model",
    "models",
    "multi",
    "net",
    "network",
    "new",
    "npu",
    "official",
    "offline",
    "online",
    "options",
    "performance",
    "pipeline",
    "predict",
    "prediction",
    "pretrain",
    "pretraining",
    "profile",
    "profiling",
    "python",
    "research",
    "run",
    "script",
    "scripts",
    "serve",
    "server",
    "serving",
    "session",
    "settings",
    "setup",
    "shell",
    "single",
    "solver",
    "source",
    "src",
    "start",
    "tensorflow",
    "tensorflow1",
    "tensorflow2",
    "test",
    "tests",
    "tf",
    "tf1",
    "tf2",
    "tool",
    "tools",
    "train",
    "trainer",
    "training",
    "util",
    "utils",
}
_SCALE = re.compile(r"\d+[pkn]?")
#: Suffixes of model zoos after a model's name.
_PURPOSE = re.compile(r"_for_(?:tensorflow|pytorch|mindspore|acl)[\w.]*$", re.IGNORECASE)
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")
_WORD_BREAK = re.compile(r"[-_.]")


def preset_name(file: str) -> str:
    """Return a valid preset name from a file name."""
    return _clean(os.path.splitext(posixpath.basename(file.replace(os.sep, "/")))[0]) or "imported"


def name_drafts(stem: str, drafts: Sequence[Draft]) -> None:
    """Name the presets of one file: its stem, with function and config if there are several, then
    numbered.
    """
    if len(drafts) == 1:
        drafts[0].name = stem
        return
    labels = [[_clean_label(label) for label in (*draft.labels, "", "")[:2]] for draft in drafts]
    names = [_join_names(stem, function) for function, _ in labels]
    _part_names(names, [config for _, config in labels], _join_names)
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


def _join_names(name: str, more: str) -> str:
    """Return a name with a part appended, without repeating it."""
    spelled = _WORD_BREAK.sub("-", name.lower())
    return name if not more or spelled == more or spelled.endswith(f"-{more}") else f"{name}-{more}"


def number_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return the names with numbers appended to duplicates, ignoring letter case."""
    known = {name.lower() for name in taken}
    last: dict[str, int] = {}
    numbered = []
    for name in names:
        free, number = name, last.get(name.lower(), 1)
        while free.lower() in known:
            number += 1
            free = f"{name}-{number}"
        last[name.lower()] = number
        known.add(free.lower())
        numbered.append(free)
    return numbered


def name_files(files: Sequence[str]) -> dict[str, str]:
    """Return a unique name for each file: its own, then with distinguishing folders, then its
    suffix, then a number.
    """
    paths = list(dict.fromkeys(files))
    folders = [_list_folders(file) for file in paths]
    names = [_name_file(file) for file in paths]
    for step in range(max(map(len, folders), default=0)):
        _part_names(names, [own[step] if step < len(own) else "" for own in folders], _prefix_name)
    _part_names(
        names, [_clean_label(os.path.splitext(file)[1].lstrip(".")) for file in paths], _join_names
    )
    return dict(zip(paths, number_names(names), strict=True))


def _part_names(names: list[str], more: Sequence[str], join: Callable[[str, str], str]) -> None:
    """Append to equal names what distinguishes them."""
    for group in group_by(range(len(names)), lambda at: names[at].lower()).values():
        if len({more[at] for at in group}) > 1:
            for at in group:
                names[at] = join(names[at], more[at])


def _name_file(file: str) -> str:
    """Return the name of a single file, prefixed by the nearest meaningful folder if it
    is generic.
    """
    stem = preset_name(file).lower()
    words = (word for word in _WORD_BREAK.split(stem) if word and not _SCALE.fullmatch(word))
    return (
        _prefix_name(stem, next(iter(_list_folders(file)), ""))
        if _COMMON.issuperset(words)
        else stem
    )


def _prefix_name(name: str, folder: str) -> str:
    return (
        name
        if not folder or name == folder or name.startswith(f"{folder}-")
        else f"{folder}-{name}"
    )


def _list_folders(file: str) -> list[str]:
    """Return the meaningful folders of a file, nearest first, as parts of a name."""
    parts = os.path.dirname(file).replace(os.sep, "/").split("/")
    cleaned = [
        _PURPOSE.sub("", _clean(part).lower())
        for part in reversed(parts)
        if part not in ("", ".", "..")
    ]
    return [part for part in cleaned if part and part not in _COMMON]


def name_covering_folder(files: Sequence[str], everything: Iterable[str]) -> str:
    """Return the name of the folder with exactly these files.

    Empty if there is none with a meaningful name.
    """
    folders = [os.path.dirname(os.path.normpath(file)) for file in files]
    if len({os.path.isabs(folder) for folder in folders}) != 1:
        return ""
    top = os.path.commonpath(folders)
    names = _list_folders(os.path.join(os.path.basename(top), "x"))
    inside = [
        file for file in everything if os.path.normpath(file).startswith(os.path.join(top, ""))
    ]
    return names[0] if names and len(inside) == len(files) else ""
