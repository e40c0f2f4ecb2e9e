"""Names of presets that are made of scripts: from the file, the function, and the folders where the file name says nothing."""

from __future__ import annotations

import os
import posixpath
import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence

from npuprof.scripts.draft import Draft

#: Words of file names that say what a script does, and not of which model.
_KINDS = frozenset(
    (
        "args", "atc", "bench", "benchmark", "build", "classifier", "common", "config", "configs", "convert", "debug", "demo",
        "distributed", "dump", "env", "estimator", "eval", "evaluate", "evaluation", "experiment", "export", "finetune", "finetuning",
        "freeze", "full", "helper", "helpers", "infer", "inference", "launch", "model", "models", "multi", "net", "network", "offline",
        "online", "options", "performance", "pipeline", "predict", "prediction", "pretrain", "pretraining", "profile", "profiling", "serve",
        "server", "serving", "session", "settings", "setup", "single", "solver", "test", "train", "trainer", "training", "util", "utils",
    )
)  # fmt: skip
#: Words of file names that say nothing at all; the folder stands for them.
_ENTRIES = frozenset(("main", "run", "start", "init", "app", "index", "script", "code", "cli", "npu", "tf", "tf1", "tf2", "new", "all"))
_SCALE = re.compile(r"\d+[pkn]?")
#: Folders that say nothing of what is in them.
_PLAIN_FOLDERS = frozenset(
    (
        "src", "source", "scripts", "script", "code", "lib", "python", "tools", "tool", "bin", "test", "tests", "tf", "tf1", "tf2",
        "tensorflow", "tensorflow1", "tensorflow2", "models", "model", "utils", "train", "training", "core", "research", "official",
        "contrib", "npu", "ascend", "app", "shell", "examples", "example", "configs", "config",
    )
)  # fmt: skip
#: What model zoos write behind the name of a model.
_PURPOSE = re.compile(r"_for_(?:tensorflow|pytorch|mindspore|acl)[\w.]*$", re.IGNORECASE)
_NUMBER = re.compile(r"_id\d+$", re.IGNORECASE)
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")
_WORD_BREAK = re.compile(r"[-_.]")


def preset_name(file: str) -> str:
    """Return a name a preset may have, made of a file's name."""
    stem = posixpath.basename(file.replace(os.sep, "/"))
    return _clean(os.path.splitext(stem)[0]) or "imported"


def name_drafts(stem: str, drafts: Sequence[Draft]) -> None:
    """Name the presets of one file: its stem, with the function and what else tells them apart where there are several."""
    if len(drafts) == 1:
        drafts[0].name = stem
        return
    names = _tell_apart(drafts, [lambda draft: stem, *(_label_at(number) for number in range(3))])
    for draft, name in zip(drafts, names, strict=True):
        draft.name = name


def name_all_drafts(drafts: Sequence[Draft]) -> None:
    """Name the presets of several files so that no two have one name, whatever the order of the files."""
    by_file: dict[str, list[Draft]] = {}
    for draft in drafts:
        by_file.setdefault(draft.file, []).append(draft)
    for file, stem in name_files(sorted(by_file)).items():
        name_drafts(stem, by_file[file])
    order = sorted(drafts, key=lambda draft: draft.file)
    for draft, name in zip(order, number_names(draft.name for draft in order), strict=True):
        draft.name = name


def _label_at(number: int) -> Callable[[Draft], str]:
    return lambda draft: clean_label(draft.labels[number]) if number < len(draft.labels) else ""


def clean_label(text: str) -> str:
    """Return the name of a function, a variable or a written file as the part of a name."""
    plain = posixpath.basename(text.replace(os.sep, "/").rstrip("/"))
    return _clean(plain).replace("_", "-").strip("-").lower()


def _clean(text: str) -> str:
    return _FOREIGN.sub("-", text).lstrip(".-")


def join_names(name: str, more: str) -> str:
    """Return a name with a part more, which is not said twice."""
    if not more or not name:
        return name or more
    said = _WORD_BREAK.sub("-", name.lower())
    return name if said == more or said.endswith(f"-{more}") else f"{name}-{more}"


def _tell_apart(items: Sequence[Draft], parts: Sequence[Callable[[Draft], str]]) -> list[str]:
    """Return a name for each item: the first parts of all, and of the others as many as tell them apart; a number last."""
    names = [join_names(parts[0](item), parts[1](item)) for item in items]
    for part in parts[2:]:
        for group in _find_clashes(names):
            more = [part(items[at]) for at in group]
            if len(set(more)) > 1:
                for at, text in zip(group, more, strict=True):
                    names[at] = join_names(names[at], text)
    return number_names(names)


def _find_clashes(names: Sequence[Hashable]) -> list[list[int]]:
    found: dict[Hashable, list[int]] = {}
    for at, name in enumerate(names):
        found.setdefault(name.lower() if isinstance(name, str) else name, []).append(at)
    return [group for group in found.values() if len(group) > 1]


def number_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return the names with a number behind those that are there already, whatever their case."""
    known = {name.lower() for name in taken}
    last: dict[str, int] = {}
    found = []
    for name in names:
        free, number = name, last.get(name.lower(), 1)
        while free.lower() in known:
            number += 1
            free = f"{name}-{number}"
        last[name.lower()] = number
        known.add(free.lower())
        found.append(free)
    return found


def name_files(files: Sequence[str]) -> dict[str, str]:
    """Return a name for each file of several: what its own name says, else the nearest folder that tells it from the others."""
    found = list(dict.fromkeys(files))
    ways = [_list_ways(file) for file in found]
    names = [_name_file(file) for file in found]
    for step in range(max(map(len, ways), default=0)):
        for group in _find_clashes(names):
            more = [ways[at][step] if step < len(ways[at]) else ("", "") for at in group]
            if len(set(more)) > 1:
                for at, (folder, short) in zip(group, more, strict=True):
                    names[at] = _prefix_name(folder, short, names[at])
    for label in (_label_folders, _label_stem, _label_kind):
        for group in _find_clashes(names):
            labels = label([found[at] for at in group])
            if len(set(labels)) > 1:
                for at, text in zip(group, labels, strict=True):
                    names[at] = join_names(names[at], text)
    return dict(zip(found, number_names(names), strict=True))


def _label_folders(files: Sequence[str]) -> list[str]:
    """Return the folders that say nothing and that not all of the files have: ``src`` for the second of train.py, src/train.py."""
    folders = [[name for name in reversed(_list_folders(file)) if _shorten_folder(name) in _PLAIN_FOLDERS] for file in files]
    common = 0
    while len({tuple(own[: common + 1]) for own in folders}) == 1 and common < len(folders[0]):
        common += 1
    return ["-".join(own[common:]) for own in folders]


def _label_stem(files: Sequence[str]) -> list[str]:
    """Return the names of files beside each other that say nothing, but for those that the folder is called by, too."""
    stems = [preset_name(file).lower() for file in files]
    return [
        "" if stem == _name_file(file) or _name_file(file).endswith(f"-{stem}") else stem for stem, file in zip(stems, files, strict=True)
    ]


def _label_kind(files: Sequence[str]) -> list[str]:
    """Return the suffixes of files, which tell a.py from a.sh."""
    return [clean_label(os.path.splitext(file)[1].lstrip(".")) for file in files]


def _name_file(file: str) -> str:
    """Return the name of a file alone, with the nearest folder that says something where it says nothing."""
    stem = preset_name(file).lower()
    words = [word for word in _WORD_BREAK.split(stem) if word and word not in _ENTRIES and not _SCALE.fullmatch(word)]
    if not _KINDS.issuperset(words):
        return stem
    folders = [short for name in _list_folders(file) if (short := _shorten_folder(name)) not in _PLAIN_FOLDERS]
    folder = next((name for name in folders if name not in _KINDS), "")
    if words or not folders:
        return _prefix_name(folder, folder, stem)
    kind = folders[0] if folders[0] in _KINDS else ""  # ads/eval/main.py
    return _prefix_name(folder, folder, kind) if kind else folder


def _shorten_folder(name: str) -> str:
    return _NUMBER.sub("", _PURPOSE.sub("", name)) or name


def _list_ways(file: str) -> list[tuple[str, str]]:
    """Return what may be put before the name of a file, and its short form: folders that say something, the nearest first."""
    folders = _list_folders(file)
    telling = [name for name in folders if _shorten_folder(name) not in _PLAIN_FOLDERS]
    forms = [(form, _shorten_folder(name)) for name in telling for form in (_shorten_folder(name), _PURPOSE.sub("", name) or name, name)]
    return list(dict.fromkeys(forms))


def _prefix_name(folder: str, short: str, name: str) -> str:
    """Return a name behind that of a folder, which takes the place of a shorter form of it."""
    if not folder or name == folder or name.startswith(f"{folder}-"):
        return name
    if name == short or name.startswith(f"{short}-"):
        return f"{folder}{name[len(short) :]}"
    return f"{folder}-{name}"


def _list_folders(file: str) -> list[str]:
    """Return the folders a file lies in, the nearest first, as parts of a name."""
    parts = os.path.dirname(file).replace(os.sep, "/").split("/")
    return [cleaned for part in reversed(parts) if part not in ("", ".", "..") and (cleaned := _clean(part).lower())]


def find_covering_folder(files: Sequence[str], everything: Sequence[str]) -> str:
    """Return the folder that holds these files and no other one; empty where there is none that says something.

    ``everything`` is sorted.
    """
    folders = [os.path.dirname(os.path.normpath(file)) for file in files]
    if len({os.path.isabs(folder) for folder in folders}) != 1:
        return ""
    top = os.path.commonpath(folders)
    name = _shorten_folder(_clean(os.path.basename(top)).lower()) if top else ""
    if not name or name in _PLAIN_FOLDERS or top == os.curdir:
        return ""
    inside = f"{top}{os.sep}"
    start, end = bisect_left(everything, inside), bisect_left(everything, f"{top}{chr(ord(os.sep) + 1)}")
    return top if end - start == len(files) else ""
