"""Files of the tree that a shell script starts, sources or passes to a program."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from npuprof.model import Place
from npuprof.scripts.reading.shells.known_variables import ASSIGNMENT, fill_word
from npuprof.scripts.script_records import HERE, UsedFile, remove_script_folder
from npuprof.scripts.shell_lexer import Command

#: A relative path to such a file: alone, as a value, or as a default.
_PATH = re.compile(
    r"(?:\A|=|:-)[\"']?((?=[\w.])[\w./@+-]*(?:\.(?:py|sh|ya?ml|toml|json)|require\w*\.txt))[\"'}]*\Z"
)
_STARTS = re.compile(
    r"(?:.*/)?(?:python[\d.]*|pip3?|torchrun|deepspeed|accelerate|msrun|(?:ba)?sh|source|\.)"
)
#: A flag or a variable of what a program writes, or a path that is to be replaced.
_WRITTEN = r"[\w-]*(?:out|save|log|dump|result|write|report|export|cache|target|dest)[\w-]*"
_NO_INPUT = re.compile(rf"(?i)-{_WRITTEN} |\b{_WRITTEN}=|path/to|your|xxx")
#: Words of commands that bring files that the tree does not have.
_BRINGS = re.compile(
    r"(?m)^(?:clone|checkout|submodule|apply|wget|curl|tar|unzip|rsync|scp|patch|gsutil|download)$"
)
#: The folder of the script, or one above it.
_HOME = re.compile(rf"{HERE}.*|[./]*")


def list_used_files(
    file: str, commands: Sequence[Command], constants: Mapping[str, str]
) -> Iterator[UsedFile]:
    """Yield the files with relative paths that a script uses, and does not make itself."""
    used: dict[str, UsedFile] = {}
    for command in commands:
        is_move = command[0].keyword in ("cd", "pushd")
        if is_move and not _HOME.fullmatch(fill_word(command[-1], constants).text):
            break
        for before, word in pairwise(() if command.file else (command[0], *command)):
            if "." not in word.text:
                continue
            text, is_fixed = remove_script_folder(fill_word(word, constants).text)
            match = _PATH.search(text)
            if match and _uses_files(command) and not _NO_INPUT.search(f"{before.text} {text}"):
                path = posixpath.normpath(match[1] if is_fixed else match[1].lstrip("./"))
                used.setdefault(path, UsedFile(path, Place(file, *word.position), is_fixed))
    if used:
        made = "\n".join(
            fill_word(word, constants).text
            for command in commands
            for word in (*command.redirected, *(() if _uses_files(command) else command))
        )
        for path, record in () if _BRINGS.search(made) else used.items():
            if posixpath.basename(path) not in made and (record.is_fixed or "/" in path):
                yield record


def _uses_files(command: Command) -> bool:
    return any(_STARTS.fullmatch(word.text) or ASSIGNMENT.match(word.text) for word in command)
