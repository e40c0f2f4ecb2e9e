"""Variables that launchers pass to programs, such as ``--export`` of Slurm, ``-e`` of docker,
``-x`` of mpirun.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from npuprof.scripts.reading.shells.known_variables import list_assignments
from npuprof.scripts.script_records import find_position
from npuprof.scripts.shell_lexer import Command, Word

#: A variable that a program is given: its name, its place, and its value.
Given = tuple[str, Word, Word]

#: Flags of MPICH and Intel MPI with separate name and value arguments.
_PAIRED = ("-genv", "-env")
#: Launchers, with their variable flags. ssh and kubectl contain them in their command lines.
LAUNCHERS = {
    **dict.fromkeys(("sbatch", "srun"), ("--export",)),
    **dict.fromkeys(("docker", "podman", "nerdctl"), ("-e", "--env")),
    **dict.fromkeys(("mpirun", "mpiexec", "mpiexec.hydra", "horovodrun"), ("-x", *_PAIRED)),
    **dict.fromkeys(("singularity", "apptainer"), ("--env",)),
    "ray": ("--runtime-env-json",),
    **dict.fromkeys(("ssh", "kubectl", "oc"), ()),
}

_DIRECTIVE = re.compile(r"^#SBATCH[ \t][^\n]*?--export(?:=|[ \t]+)([^\s\"']+)", re.MULTILINE)
_VARIABLE = re.compile(r"(?:(?<=^)|(?<=,))([A-Za-z_]\w*)=([^,]*)")


def find_directive_exports(text: str, commands: Sequence[Command]) -> Iterator[Given]:
    """Yield the variables of ``#SBATCH`` lines before the first command: name, place, value."""
    end = commands[0][0].span[0] if commands else len(text)
    for match in _DIRECTIVE.finditer(text, 0, end):
        yield from _split_list(match[1], *find_position(text, match.start(1)))


def find_given(launcher: str, words: Sequence[Word]) -> Iterator[Given]:
    """Yield the variables in a launcher's arguments."""
    if launcher == "ssh":
        yield from _find_remote(words)
    if launcher in ("kubectl", "oc") and [word.text for word in words[:2]] == ["set", "env"]:
        yield from (variable for word in words[2:] for variable in _split_assignment(word))
    for place, word in enumerate(words):
        flag = next((flag for flag in LAUNCHERS[launcher] if _has_flag(word.text, flag)), "")
        begin = len(flag) + word.text.startswith(f"{flag}=")
        is_apart = word.text == flag
        if not flag or len(words) - place < (3 if flag in _PAIRED else 1 + is_apart):
            continue
        given = (
            words[place + 1]
            if is_apart
            else word.cut_prefix(begin).with_position(word.line, word.column + begin)
        )
        if flag == "--export" or launcher in ("singularity", "apptainer"):
            yield from _split_list(given.text, given.line, given.column)
        elif flag == "--runtime-env-json":
            yield from _split_json(given)
        elif flag in _PAIRED:
            yield given.text, given, words[place + 2]
        else:
            yield from _split_assignment(given)


def _has_flag(text: str, flag: str) -> bool:
    """Return whether a word is a flag, alone or with its value: ``--env X=Y``, ``--env=X=Y``,
    ``-eX=Y``.
    """
    return text == flag or (
        flag not in _PAIRED and text.startswith(flag if len(flag) == 2 else f"{flag}=")
    )


def _find_remote(words: Sequence[Word]) -> Iterator[Given]:
    """Yield the variables in an ssh command line: ``ssh HOST X=Y CMD``.

    The value of ``-o`` is not one.
    """
    for before, word in pairwise(words):
        if before.text != "-o" and not re.search(r"\s", word.text):
            yield from _split_assignment(word)


def _split_assignment(word: Word) -> Iterator[Given]:
    return ((name, word, word.cut_prefix(len(name) + 1)) for name, _ in list_assignments([word]))


def _split_json(word: Word) -> Iterator[Given]:
    """Yield the ``env_vars`` of a Ray runtime environment."""
    try:
        variables = json.loads(word.text)["env_vars"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    yield from (
        (name, word, word.with_parts(value)) for name, value in variables if isinstance(value, str)
    )


def _split_list(text: str, line: int, column: int) -> Iterator[Given]:
    for match in _VARIABLE.finditer(text):
        word = Word(line, column + match.start(), (match[0],))
        yield (
            match[1],
            word,
            word.with_parts((match[2],) if set(match[2]) & {"$", "`"} else match[2]),
        )
