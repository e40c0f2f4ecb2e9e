"""Recognizes launches in YAML and JSON by their shape, whatever their keys are.

A launch is a list of arguments, a text for a shell, or a table with a program's fields. Tables and
lists of variables belong to the launches in the same table and below it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from npuprof.catalog import find_setting
from npuprof.catalog.execution import is_known_variable
from npuprof.catalog.programs import Program, load_programs
from npuprof.scripts.python import environ
from npuprof.scripts.reading.program_arguments import find_start, mentions_program
from npuprof.scripts.reading.trees import Node
from npuprof.scripts.shell_lexer import Word

_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:[_-][A-Z0-9]+)+|[A-Z]{2,}")
_ASSIGNMENT = re.compile(r"([A-Z][A-Z0-9_-]+)=")
#: Servers with arguments of the same names, as the only text of a value or the name of a table.
_OTHER_SERVERS = re.compile(
    r"[\w./:-]*(?:sglang|mindie|lmdeploy|tensorrt|trt-?llm|llama[.-]?(?:cpp|box)|vox-?box)"
    r"[\w./:-]*",
    re.IGNORECASE,
)
_EXPORT = re.compile(r"^[ \t]*export[ \t]+[A-Z][A-Z0-9_-]+=", re.MULTILINE)
#: Arguments of many programs.
_SHARED = frozenset(
    ("host", "port", "model", "seed", "config", "dtype", "device", "tokenizer", "api-key")
)
#: Marks that other servers have taken over.
_OF_OTHERS = {"tensor-parallel-size"}
#: The words of a line among which a program begins: ``A=1 exec python3 -m vllm...``.
_MOST_BEFORE = 8


def names_other_server(path: str, table: Node) -> bool:
    """Return whether a table is certainly about a server that npuprof does not know."""
    texts = [value.value for _, value in table.pairs or () if value.is_text]
    return any(map(_OTHER_SERVERS.fullmatch, [path.split("/")[-2], *texts]))


def list_setting_names(node: Node) -> list[Node]:
    """Return the keys and items that look like variables or arguments of any program."""
    keys = (key for key, value in node.pairs or () if value.is_plain and "_" in str(key.value))
    items = [item for item in node.items or () if str(item.value).startswith("--")]
    return items + [key for key in keys if _NAME.fullmatch(key.value)]


def holds_variables(node: Node, beside_launch: bool = False) -> bool:
    """Return whether a table or list contains variables: all names are, and two are known.

    One of Ascend or vLLM is enough, and any name beside a launch.
    """
    names = []
    for key, value in node.pairs or ():
        if not value.is_plain or str(value.value).count(" ") > 5:
            return False
        names.append(str(key.value))
    for item in node.items or ():
        match = _ASSIGNMENT.match(str(item.value))
        only = item.pairs[0][0].value if item.pairs and len(item.pairs) == 1 else ""
        is_entry = item.find("value") or item.find("valueFrom")
        names.append(match[1] if match else item.text("name") if is_entry else str(only))
    if not names or sum(map(bool, map(_NAME.fullmatch, names))) * 4 < len(names) * 3:
        return False
    is_certain = any(name.startswith("VLLM_") or environ.is_ascend_variable(name) for name in names)
    return is_certain or beside_launch or sum(map(is_known_variable, names)) > 1


def find_list_program(
    words: Sequence[Word], named: Collection[str]
) -> tuple[Program, Sequence[Word]] | None:
    """Return the program of a list, and its arguments without its start; None for another list.

    A list of arguments has flags of one program, most of them in its exact spelling, and one that
    others do not have. Its flags alone are enough if the program is ``named`` in the file.
    """
    if started := find_start(words):
        return started
    flags = [word.text.partition("=")[0] for word in words if word.text.startswith("--")]
    # the model may precede the flags
    is_begun = any(word.text.startswith("-") for word in words[:2])
    has_values = len(flags) < len(words) or any("=" in word.text for word in words)
    for program in load_programs() if is_begun else ():
        names = [program.spell_argument(flag[2:]) for flag in flags]
        known = [name for name in names if f"--{name.partition('.')[0]}" in program.flags]
        own = {*program.marks, *program.tables}.intersection(names) - _OF_OTHERS
        is_named = program.section in named and not _SHARED.issuperset(known)
        # flags without values are a list of names, unless all of them are switches
        records = [find_setting(program.section, name) for name in known]
        is_whole = has_values or {record and record.kind for record in records} == {"bool"}
        is_likely = is_whole and len(known) * 3 >= len(names) * 2
        if is_likely if own else is_named and len(known) == len(names):
            return program, words
    return None


def begins_with_flag(node: Node) -> bool:
    """Return whether a node is a list of arguments, such as ``extraArgs``."""
    return any(str(item.value).startswith("--") for item in (node.items or ())[:1])


def find_table_program(place: str, table: Node, is_file: bool) -> tuple[Program, Node] | None:
    """Return the program of which a table has arguments, and a table of them; None for others.

    A file of arguments has a table of another section, or two arguments of no other program: then
    all its keys are arguments. A table in another file has mostly arguments, or nothing else if it
    is not named after the program.
    """
    title = place.split("/")[-2].lower()
    names = [
        str(key.value)
        for key, value in table.pairs or ()
        if not (value.is_null or begins_with_flag(value))
    ]
    for program in load_programs():
        spelt = set(map(program.spell_argument if is_file else program.spell_field, names))
        own = len(spelt.intersection(program.marks))
        records = filter(None, (find_setting(program.section, name) for name in spelt))
        # the file of another program may have some of the same names
        is_own = is_file and (own > 1 or not spelt.isdisjoint(program.tables))
        if is_own and len([*records]) * 2 > len(spelt):
            return program, table
        if own and not is_file:
            fields = _select_fields(program, table)
            share = 2 / 3 if own > 1 or program.section in title else 1
            if 1 < len(fields.pairs or ()) >= len(names) * share:
                return program, fields
    return None


def _select_fields(program: Program, table: Node) -> Node:
    """Return a table of the fields that a program has; a wrapper may have others."""
    fields = Node(*table.position)
    fields.pairs = []
    for key, value in table.pairs or ():
        name = program.spell_field(str(key.value))
        record = find_setting(program.section, name) if f"--{name}" in program.flags else None
        if not record or value.is_null:
            continue
        if value.pairs is None or name in program.tables or record.kind == "json":
            fields.pairs.append((Node(*key.position, name), value))
    return fields


def may_be_command(text: str) -> bool:
    """Return whether a text may be a script: a line begins with a program, or exports a variable.

    Prose and manuals with code blocks are none.
    """
    if "```" in text:
        return False
    return _EXPORT.search(text) is not None or (
        mentions_program(text.encode(errors="replace"))
        and any(map(_begins_with_program, text.split("\n")))
    )


def _begins_with_program(line: str) -> bool:
    """Return whether a line begins with a program, perhaps after variables and wrappers."""
    words = line.split(maxsplit=_MOST_BEFORE)[:_MOST_BEFORE]
    return find_start([Word(1, 1, (word,)) for word in words]) is not None
