"""Faults in YAML files of a tree with programs: keys, and names that the tree lacks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial

from npuprof.catalog import build_finding
from npuprof.model import LIKELY, Finding, Place, did_you_mean
from npuprof.scripts.lint.program_faults import find_flag_faults, find_missing_files
from npuprof.scripts.programs.finding import Programs
from npuprof.scripts.reading.config_files import drop_doubles
from npuprof.scripts.reading.shells.used_files import list_named_files
from npuprof.scripts.reading.trees import iterate_collections, parse_yaml
from npuprof.scripts.script_records import find_position
from npuprof.system import decode_safely

#: A key of a table at the top of a YAML file, and the minimum number of them to look for a program.
#: A search for what begins with a line feed is faster than for the start of a line.
_KEY = re.compile(r"\n([A-Za-z_]\w*):")
_FEWEST_KEYS = 12
#: A value that is a name in a module of a package.
_DOTTED = re.compile(
    r"\n[ -]*(?:\w+[ ]*:[ ]*)?['\"]?((?:[A-Za-z_]\w*\.){2,}\w+)['\"]?[ ]*(?:#|\r?(?!.))"
)
#: Any key, the maximum share and number of unknown ones, and the path of a table that may have any.
_ANY_KEY = re.compile(r"\n *(?:- )?([a-z_]\w*):(?=\s)")
_OPEN_TABLE = re.compile(r"/(?:hydra/|(?!\d)[^/]*(?:arg|param|env|fsdp|accelerator))")
_UNKNOWN_KEYS = 0.1
_MOST_UNKNOWN = 10


def judge_yaml(path: str, data: bytes, programs: Programs) -> Iterator[Finding]:
    """Yield findings about the keys of a YAML file, and about names and files that its tree lacks.

    Keys may be arguments of a program above it. argparse takes such defaults without a check of
    their names and choices.
    """
    text = decode_safely(data)
    parse = partial(parse_yaml, path, text, [])
    yield from _judge_names(path, text, programs)
    yield from find_missing_files(path, [*list_named_files(path, text)], programs)
    keys = _KEY.findall(f"\n{text}")
    documents = f"\n{text}".split("\n---")
    if any(len({*each}) < len(each) for each in map(_KEY.findall, documents)):
        for document in parse() or ():
            yield from drop_doubles(path, "The program", document)
    parser = programs.find_by_keys(path, keys) if len(keys) >= _FEWEST_KEYS else None
    if parser is None:
        yield from _find_unknown_keys(path, text, programs)
        return
    for key, node in (pair for document in parse() or () for pair in document.pairs or ()):
        known = parser.keys.get(key.value)
        flag = known.flags[0] if known else f"--{key.value}"
        value = node.value if known and known.kind and node.is_text else ...
        # other code may take more than the choices
        quoted = (str(value).lower(), path, programs.list_tree(path))
        search = quoted if known else (flag, path)
        for fault in find_flag_faults(parser, flag, value, programs):
            if not programs.is_quoted(*search):
                fault = fault._replace(why="argparse does not check it.", **LIKELY)
                yield fault.place(where=Place(path, *key.position))


def _judge_names(path: str, text: str, programs: Programs) -> Iterator[Finding]:
    """Yield likely findings about names of classes and modules that the tree of a file lacks."""
    for match in _DOTTED.finditer(f"\n{text}"):
        if lacking := programs.find_lacking(os.path.dirname(path), match[1]):
            yield build_finding(
                "NP846",
                f"the tree has no {match[1]}",
                f"Python stops there: {lacking} lacks a part of it.",
                "correct the name",
                where=Place(path, *find_position(text, match.start(1) - 1)),
                **LIKELY,
            )


def _find_unknown_keys(path: str, text: str, programs: Programs) -> Iterator[Finding]:
    """Yield likely findings about the keys of a YAML file that no Python file of its tree has.

    Nearly all others are arguments of programs of the tree, or fields of its classes.
    """
    found = _ANY_KEY.findall(f"\n{text}")
    keys = dict.fromkeys(found)
    if sum("_" in key for key in keys) < _FEWEST_KEYS:
        return
    defined = programs.list_defined(path)
    unknown = [key for key in keys if f"--{key}".replace("_", "-") not in defined]
    if len(unknown) > min(len(keys) * _UNKNOWN_KEYS, _MOST_UNKNOWN):
        return
    # others may be for the file itself, or of a schema
    unknown = [
        key
        for key in unknown
        if found.count(key) == 1
        and not re.search(rf"[&*.{{]{key}\b", text)
        and not programs.is_quoted(key, path)
    ]
    tables = iterate_collections(parse_yaml(path, text, []) or []) if unknown else ()
    for place, table in tables:
        pairs = table.pairs or ()
        own = [key for key, _ in pairs if key.value in unknown]
        # another table may have any keys
        for key in own if len(own) < len(pairs) and not _OPEN_TABLE.search(place) else ():
            what = f"no program of the tree has an argument {key.value}"
            why = "Nearly all other keys are arguments of its programs, or fields of its classes."
            hint = did_you_mean(key.value, [each[2:] for each in defined], "remove it")
            where = Place(path, *key.position)
            yield build_finding("NP212", what, why, hint, where=where, **LIKELY)
