"""Files of the tree that a shell script starts, sources or passes to a program."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

from npuprof.model import Place
from npuprof.scripts.reading.shells.known_variables import ASSIGNMENT, fill_word
from npuprof.scripts.script_records import UsedFile, find_position, remove_script_folder
from npuprof.scripts.shell_lexer import Command

#: A relative path to such a file, also below a variable: alone, as a value, or as a default.
_PATH = re.compile(
    r"(?:\A|=|:-)[\"']?(?P<above>\$\w+/|\$\{\w+\}/)?"
    r"(?P<path>(?=[\w.])[\w./@+-]*(?:\.(?:py|sh|ya?ml|toml|json)|require\w*\.txt))[\"'}]*\Z"
)
#: The same as a value of a YAML file.
_VALUE = re.compile(
    r"\n[ \t-]*(?P<key>\w[\w.-]*):[ \t]+[\"']?(?:\./)?"
    r"(?P<path>\w[\w./@+-]*/[\w.@+-]+\.(?:py|sh|ya?ml|toml|json))[\"']?[ \t]*(?:\#.*)?(?!.)"
)
#: A file with as many is a list of data.
_MOST_VALUES = 100
_STARTS = re.compile(
    r"(?:.*/)?(?:python[\d.]*|pip3?|torchrun|deepspeed|accelerate|msrun|(?:ba)?sh|source|\.)"
)
#: A part of a name; any length would take quadratic time.
_PART = r"[\w-]{0,40}"
#: A flag or a variable of what a program writes or omits, or a path that is to be replaced.
_WRITTEN = (
    rf"{_PART}(?:out|save|log|dump|result|write|report|export|cache|target|dest|exclude){_PART}"
)
_NO_INPUT = re.compile(rf"(?i)-{_WRITTEN} |\b{_WRITTEN}=\S{{0,200}}\Z|path/to|your|xxx")
#: Words of commands that bring files that the tree does not have.
_BRINGS = re.compile(
    r"(?m)^(?:clone|checkout|submodule|apply|wget|curl|tar|unzip|rsync|scp|patch|gsutil|download|\.\..*\*)$"
)
#: A relative folder, and one above another.
_FOLDER = re.compile(r"(?!/)[\w./+-]*[\w./+]")
_ABOVE = re.compile(r"[./]*")


def list_used_files(
    file: str, commands: Sequence[Command], constants: Mapping[str, str]
) -> Iterator[UsedFile]:
    """Yield the files with relative paths that a script uses, and does not make itself."""
    used: dict[str, UsedFile] = {}
    # the folder to which the script has gone, whether from its own, and whether it made that
    folder, is_known, is_made = ".", False, False
    made_names: set[str] | None = None
    for command in commands:
        if any(word.keyword in ("cd", "pushd") for word in command[:2]):
            text, is_own = remove_script_folder(fill_word(command[-1], constants).text)
            if not is_own and _ABOVE.fullmatch(folder + text):
                continue
            if command[0].keyword != "cd" or command.shells or not _FOLDER.fullmatch(text):
                break
            folder = posixpath.normpath(text if is_own else posixpath.join(folder, text))
            is_known = is_known or is_own
            if made_names is None:
                made_names = _list_made_names(commands)
            is_made = not _ABOVE.fullmatch(folder) and posixpath.basename(folder) in made_names
        for before, word in pairwise(() if command.file or is_made else (command[0], *command)):
            if "." not in word.text:
                continue
            text, is_own = remove_script_folder(fill_word(word, constants).text)
            match = _PATH.search(text)
            if match and _uses_files(command) and not _NO_INPUT.search(f"{before.text} {text}"):
                path = match["path"]
                is_fixed = is_own or (is_known and not match["above"])
                # a program may look for a name alone elsewhere
                is_alone = "/" not in path and not path.endswith((".py", ".sh"))
                is_open = is_alone or (not is_fixed and bool(match["above"] or folder != "."))
                if not (is_own or match["above"]):
                    path = posixpath.join(folder, path)
                path = posixpath.normpath(path)
                path = path if is_fixed else path.lstrip("./")
                record = UsedFile(path, Place(file, *word.position), is_fixed, is_open)
                used.setdefault(path, record)
    if used:
        made = "\n".join(
            fill_word(word, constants).text
            for command in commands
            for word in (*command.redirected, *(() if _uses_files(command) else command))
        )
        for path, record in () if _BRINGS.search(made) else used.items():
            if posixpath.basename(path) not in made:
                yield record


def list_named_files(file: str, text: str) -> Iterator[UsedFile]:
    """Yield the files with relative paths that are values in a YAML file."""
    found = [*islice(_VALUE.finditer(f"\n{text}"), _MOST_VALUES)]
    for match in found if len(found) < _MOST_VALUES else ():
        # a command in the file may bring or make what it names again
        is_made = re.search(rf"\w {re.escape(match['path'])}\b", text)
        if not (is_made or _NO_INPUT.search(f"-{match['key']} {match['path']}")):
            where = Place(file, *find_position(text, match.start("path") - 1))
            yield UsedFile(match["path"], where, False, False)


def _list_made_names(commands: Sequence[Command]) -> set[str]:
    """Return the names in paths that a script may make."""
    return {
        name
        for command in commands
        if command[0].keyword != "cd" and not _uses_files(command)
        for word in command
        for name in word.text.split("/")
    }


def _uses_files(command: Command) -> bool:
    return any(_STARTS.fullmatch(word.text) or ASSIGNMENT.match(word.text) for word in command)
