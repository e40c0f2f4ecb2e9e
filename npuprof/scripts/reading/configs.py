"""YAML and JSON: container variables, exports of ``npuprof env``, and settings of scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise
from operator import attrgetter, itemgetter

from npuprof import catalog
from npuprof.catalog.programs import Program, find_program, load_programs
from npuprof.document.json_tree import find_json_fault, read_json_tree
from npuprof.document.keys import format_short_value
from npuprof.model import FRAMEWORK_SECTIONS, Finding, Record
from npuprof.scripts.python import environ
from npuprof.scripts.reading import program_arguments, training_launches
from npuprof.scripts.reading.config_files import (
    drop_doubles,
    find_config_section,
    mentions_config_file,
    read_config_table,
)
from npuprof.scripts.reading.kubernetes import find_container_settings
from npuprof.scripts.reading.program_arguments import NO_NAME
from npuprof.scripts.reading.recipes import (
    begins_with_flag,
    find_list_program,
    find_table_program,
    list_setting_names,
    may_be_command,
    names_other_server,
)
from npuprof.scripts.reading.shell_scripts import find_code_settings, find_shell_settings
from npuprof.scripts.reading.trees import (
    Node,
    iterate_collections,
    iterate_tables,
    parse_json,
    parse_yaml,
    spell_segment,
)
from npuprof.scripts.reading.variable_files import (
    build_variable_setting,
    split_references,
)
from npuprof.scripts.script_records import (
    OTHER,
    ImportedFile,
    Position,
    ScriptLocation,
    ScriptSetting,
    ScriptValue,
    Site,
    StartedProgram,
    UnreadLines,
    find_line_starts,
    find_position,
    recall_line_starts,
)
from npuprof.scripts.shell_lexer import Word, parse_shell_commands
from npuprof.scripts.steps import count_steps
from npuprof.scripts.words import list_words

#: A template ends before the next one begins: a search to the end of the text each time is slow.
_VARIABLE = re.compile(
    r"(\$\([A-Za-z_]\w*\)|\$\{[^{}]*\}|\$[A-Za-z_]\w*|\{\{(?:[^{}]|\{(?!\{)|\}(?!\}))*+\}\})"
)
_TEMPLATE = re.compile(r"\{\{[^{}\n]*\}\}")
_INSIDE_SHELL = "applies to this command only"
#: A container's command, in the order of its parts.
_COMMANDS = ("entrypoint", "command", "args")
_NOWHERE = "\0"  #: begins no path
_WORD = re.compile(r"\S+")
_FLAG_AND_VALUE = re.compile(r"(?s)\A(--[^\s=]+) +(.+)")
_FLAGS = re.compile(r"(?s)--\w.*\s--")
_UNJOINED = re.compile(r"(?<!\\)\n(?=[ \t]*(?:--[a-z]|'\{))")


@cache
def _certain_names() -> frozenset[bytes]:
    """Return the option names that no other tool uses."""
    options = catalog.list_records(catalog.Option)
    return frozenset(option.name.encode() for option in options if not option.common_name)


def mentions_config(data: bytes) -> bool:
    """Return whether a file can contain settings."""
    return (
        environ.mentions_variable(data)
        or not _certain_names().isdisjoint(list_words(data))
        or program_arguments.mentions_program(data)
        or program_arguments.mentions_arguments(data)
        or mentions_config_file(data)
        or training_launches.mentions_training(data)
    )


def import_json(path: str, text: str) -> ImportedFile:
    """Return the content of a JSON file."""
    problems: list[Finding] = []
    tree = _parse_json_text(path, text, problems)
    if tree is None:
        return ImportedFile(path, problems=tuple(problems))
    return _import_documents(path, text, [tree], problems)


def _parse_json_text(path: str, text: str, problems: list[Finding]) -> Node | None:
    """Return the tree of a JSON text, that of a broken one only if it has a section's settings."""
    faults: list[Finding] = []
    tree = parse_json(path, text, faults)
    # a template is filled in before a program reads it
    if (
        tree is None
        and "{{" not in text
        and mentions_config_file(text.encode(errors="replace"))
        and (fault := find_json_fault(path, text))
        and (where := fault.where)
    ):
        at = text.split("\n")[where.line - 1][where.column - 1 :][:1]
        broken = read_json_tree(text)
        if at not in ("$", "<") and any(map(find_config_section, iterate_tables([broken]))):
            # a parser of a stream stops at the end of the first value
            problems += [fault] if "extra data" not in fault.message else []
            return broken
    problems += faults
    return tree


def import_yaml(path: str, text: str) -> ImportedFile:
    """Return the content of a YAML file. Raises ImportError without PyYAML."""
    problems: list[Finding] = []
    documents = parse_yaml(path, text, problems)
    if documents is None:
        return ImportedFile(path, problems=tuple(problems))
    pairs = [pair for table in iterate_tables(documents) for pair in table.pairs or ()]
    for key, node in pairs:
        data = node.value.encode(errors="replace") if node.is_text else b""
        is_json = b"{" in data and mentions_config_file(data)
        is_certain = key.value == "runtimeEnvYAML"  # in a job or service of KubeRay
        # a text with several lines may be a file of arguments, such as one in a ConfigMap
        may_be_arguments = b"\n" in data and program_arguments.mentions_arguments(data)
        if not node.is_text or not (is_json or is_certain or may_be_arguments):
            continue
        # a block of YAML begins on the line below its key, with an indentation that its text lacks
        source, (line, column) = _find_source(node, text)
        count_steps(line)
        above = "\n" * (line - 1)
        if is_json:
            if line == node.line:  # its line ends are escapes
                source = " " * column + source.replace("\n", " ")
            tree = _parse_json_text(path, above + source, problems)
            documents += [tree] if tree else []
        else:
            documents += parse_yaml(path, above + source, problems if is_certain else []) or []
    return _import_documents(path, text, documents, problems)


def _import_documents(
    path: str, text: str, documents: list[Node], problems: list[Finding]
) -> ImportedFile:
    records: list[Record] = []
    reader = _LaunchReader(path, text)
    if documents and documents[0].text("schema").startswith("npuprof."):
        # other files of npuprof, such as records, contain keys of options without setting them
        settings = _read_export(path, documents[0])
    else:
        places = {}
        for place, node in iterate_collections(documents):
            places[id(node)] = place
            reader.read_table(place, node)
        settings = reader.settings
        installed = catalog.list_file_sections()  # files start nothing
        launched = {item.command for item in settings if item.surface not in installed}
        variables, handled = find_container_settings(path, documents, places, launched)
        settings += variables
        unread = reader.unread.difference(setting.line for setting in settings)
        records = [*reader.started, UnreadLines(frozenset(unread))]
        for table in iterate_tables(documents):
            if id(table) not in handled:
                settings += _find_named_options(path, table)
    settings.sort(key=attrgetter("line", "column"))
    return ImportedFile(
        path,
        tuple(settings),
        tuple(reader.sites),
        (*problems, *reader.problems),
        text,
        tuple(records),
        declarative=True,
    )


class _LaunchReader:
    """Reads the launches of a file; ``settings`` have the paths of their tables as commands."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.settings: list[ScriptSetting] = []
        self.started: list[StartedProgram] = []
        self.unread: set[int] = set()  #: the lines of possible arguments and variables
        lowered = text.lower()
        self._named = {program.section for program in load_programs() if program.section in lowered}
        self._other = _NOWHERE  #: the path of the last table about another server
        self._whole = _NOWHERE  #: the path of the last table that was read as a whole
        self.sites: list[Site] = []
        self.problems: list[Finding] = []

    def read_table(self, place: str, node: Node) -> None:
        """Read a table or list: its fields, commands, texts and lists of arguments."""
        count_steps(len(node.pairs or node.items or ()))
        if place.startswith(self._whole):
            return
        if section := find_config_section(node):
            self._whole = place
            imported = read_config_table(self.path, section, node, place)
            self._add(place, imported.settings)
            self.sites += imported.sites
            self.problems += imported.problems
            return
        self.unread.update(name.line for name in list_setting_names(node))
        if not place.startswith(self._other):
            self._other = _NOWHERE
        if node.pairs is not None and names_other_server(place, node):
            self._other = place
        is_file = place.count("/") == 2
        may_be_table = is_file or self._other == _NOWHERE
        if words := _list_flag_words(node):
            self._add(place, training_launches.read_flags(self.path, words))
            return
        module = training_launches.find_file_module(node) if is_file else None
        if module is not None:
            self.problems += drop_doubles(self.path, "The program", node)
            section = "verl" if module.startswith("verl.") else "args"
            scope = f"{section}@{node.line}"
            for setting in program_arguments.read_file(self.path, section, node):
                if setting.name == "defaults":  # of Hydra
                    setting = setting.with_value(value=None, reason="names further files")
                    setting = setting._replace(key="")
                self._add(place, [setting], scope)
            if section == "args":  # a file of Hydra may have keys of its own
                location = ScriptLocation(self.path, *node.position)
                self.started.append(StartedProgram(f"{scope} {place}", "", module, location))
            return
        found = find_table_program(place, node, is_file) if may_be_table else None
        if found:  # a table of arguments
            program, fields = found
            lists = (value.items or () for _, value in node.pairs or () if begins_with_flag(value))
            words = _list_words(chain.from_iterable(lists))
            settings = chain(
                program_arguments.read_file(self.path, program.section, fields),
                program_arguments.read_arguments(self.path, program, words),
            )
            self._add(place, settings, f"{program.section}@{fields.line}")
            return
        is_command = self._read_command(place, node)
        children = list(self._list_children(place, node, not is_command))
        self._read_texts(place, children)
        if self._other == _NOWHERE:
            image = node.text("image").lower()
            named = {section for section in self._named if not image or section in image}
            self._read_lists(place, children, named)

    def _add(self, place: str, settings: Iterable[ScriptSetting], common: str = "") -> None:
        """Add the settings of a table, which may have a ``common`` scope."""
        for setting in settings:
            scope, program = common or setting.scope, find_program(setting.surface)
            if setting.surface in ("env", OTHER):
                scope = f"<process>:{place}"
            elif program:
                scope = f"{scope} {place}"
            is_text = isinstance(setting.value, str) or program
            found = _VARIABLE.search(str(setting.value)) if is_text else None
            if found and setting.surface in FRAMEWORK_SECTIONS:
                setting = setting.with_value(value=None, reason=f"depends on {found[0]}")
            self.settings.append(setting._replace(command=place, scope=scope))

    def _list_children(
        self, place: str, node: Node, with_arguments: bool
    ) -> Iterator[tuple[str, Node]]:
        """Yield the values of a table or list with their names; a container's command is none."""
        if place.split("/")[-2] not in _COMMANDS:
            yield from ((f"{at}.", item) for at, item in enumerate(node.items or ()))
        for key, value in node.pairs or ():
            if with_arguments or key.value not in _COMMANDS:
                yield str(key.value), value

    def _read_command(self, place: str, node: Node) -> bool:
        """Read a container's command, and return whether there is one besides arguments."""
        nodes = [value for name in _COMMANDS if (value := node.find(name)) is not None]
        words = [item for value in nodes for item in (value.items or [value])]
        found = read_command_list(self.path, words, self.text, _INSIDE_SHELL)
        self._add(place, found)
        self.unread.difference_update(word.line for word in words if found)
        return bool(found or nodes[:-1] or not node.find("args"))

    def _read_texts(self, place: str, children: list[tuple[str, Node]]) -> None:
        """Read the texts that are scripts."""
        for _, value in children:
            if not value.is_text:
                continue
            count_steps(len(value.value) // 10)
            is_list = self._other == _NOWHERE and _FLAGS.match(value.value)
            if is_list or may_be_command(value.value):
                found = read_command_list(self.path, [value], self.text, _INSIDE_SHELL)
                started = [setting for setting in found if find_program(setting.surface)]
                # a sentence about a program has more words than flags
                loose = sum(setting.reason == NO_NAME for setting in started)
                if not started or ("--" in value.value and loose * 2 < len(started)):
                    self._add(f"{place}\0{value.line}.{value.column}", found)

    def _read_lists(self, place: str, children: list[tuple[str, Node]], named: set[str]) -> None:
        """Read the lists of arguments: one and its continuations are one launch."""
        groups: dict[str, tuple[Program, list[Word]]] = {}
        # the name of a list begins those of its continuations
        for name, value in sorted(children, key=itemgetter(0)):
            if not value.items or not all(item.is_plain for item in value.items):
                continue
            words = _list_words(value.items)
            if found := find_list_program(words, named):
                named.add(found[0].section)  # then others may be of it too
                self.unread.difference_update(word.line for word in words)
                first = next(filter(name.startswith, groups), name)
                groups.setdefault(first, (found[0], []))[1].extend(found[1])
        self._named |= named
        for name, (program, words) in groups.items():
            model = dict(children).get(program.positional)
            if model and model.is_text and words[0].text.startswith("-"):
                words = _list_words([model]) + words
            is_only = len(groups) == 1 and not name.endswith(".")
            at = place if is_only else f"{place}{spell_segment(name.rstrip('.'))}/"
            self._add(at, program_arguments.read_arguments(self.path, program, words))


def _list_flag_words(table: Node) -> list[Word]:
    """Return the flags of a table that has nothing else, with their values; else nothing."""
    words = []
    for key, value in table.pairs or ():
        if not str(key.value).startswith("--"):
            return []
        words.append(Word(*key.position, (key.value,)))
        is_alone = value.value is True or value.is_null
        parts = [] if is_alone else str(value.value).split() if value.is_plain else ["..."]
        words += [_build_word(value, part) for part in parts]
    return words


def _build_word(node: Node, text: str) -> Word:
    return Word(*node.position, tuple(split_references(text, _VARIABLE)))


def _list_words(items: Iterable[Node]) -> list[Word]:
    """Return the items of a list as words: one with a flag and its value as two."""
    return [
        _build_word(item, part)
        for item in items
        if not item.is_null
        for part in _FLAG_AND_VALUE.sub(r"\1\0\2", str(item.value)).split("\0")
    ]


def read_command_list(
    path: str, nodes: Sequence[Node], text: str, reason: str
) -> list[ScriptSetting]:
    """Return the settings of a command: of its shell text or Python code, or of its arguments.

    ``text`` is the file. ``reason`` is why variables are omitted, which end with the command.
    """
    words = [node for node in nodes if node.value is not None]
    settings = []
    for before, node in pairwise([Node(0, 0), *words]):
        if not isinstance(node.value, str):
            continue
        source, position = _find_source(node, text)
        data = node.value.encode(errors="replace")
        if before.value == "-c" and "python" in str(words[0].value):
            found = find_code_settings(path, source, position)
        elif " " in source and (
            program_arguments.mentions_program(data) or environ.mentions_variable(data)
        ):
            # flags below their program
            code = _UNJOINED.sub(" \\\\\n", _join_templates(source))
            found, _ = find_shell_settings(path, code, position, reason)
        else:
            continue
        settings += _place_folded(found, node, text, source, position)
    listed, source, position = _list_words(words), "", (0, 0)
    if len(words) == 1 and _FLAGS.match(str(words[0].value)):  # a text of flags
        source, position = _find_source(words[0], text)
        commands = parse_shell_commands(_join_templates(source), *position)
        listed = [word for command in commands for word in command]
    if settings or not (started := find_list_program(listed, ())):
        return settings
    settings = list(program_arguments.read_arguments(path, *started, source))
    return _place_folded(settings, words[0], text, source, position)


def _join_templates(text: str) -> str:
    """Return a text with templates as single words."""
    return _TEMPLATE.sub(lambda match: re.sub(r"\s", "_", match[0]), text)


#: The lines of a file, which may have many commands.
_split_lines = lru_cache(1)(lambda text: text.split("\n"))


def _find_source(node: Node, text: str) -> tuple[str, Position]:
    """Return the text of a node and its position: the lines of a YAML block as they are written."""
    lines = node.value.rstrip("\n").split("\n")
    block = _split_lines(text)[node.line : node.line + len(lines)]
    if list(map(str.strip, block)) == list(map(str.strip, lines)):
        return "\n".join(block), (node.line + 1, 1)
    return node.value, node.position


def _place_folded(
    settings: list[ScriptSetting], node: Node, text: str, source: str, position: Position
) -> list[ScriptSetting]:
    """Return the settings of a text, with their places if its line ends are folded or escaped."""
    if position[0] != node.line:
        return settings
    begin = recall_line_starts(text)[node.line - 1] + node.column - 1
    starts = find_line_starts(source)
    placed = []
    for setting in settings:
        first = node.column if setting.line == node.line else 1
        start = sum(starts[setting.line - node.line :][:1])
        if word := _WORD.match(source, start + setting.column - first):
            # the file has the same words in this order, with more blanks
            begin = max(begin, text.find(word[0], begin, begin + 3 * len(source)))
        line, column = find_position(text, begin)
        placed.append(setting.with_location(line=line, column=column))
    return placed


def _read_export(path: str, document: Node) -> list[ScriptSetting]:
    """Return the variables of a JSON export; other files of npuprof set nothing."""
    if not document.text("schema").startswith("npuprof.env/"):
        return []
    variables = document.find("env") or Node(0, 0)
    return [
        build_variable_setting(path, key.position, str(key.value), (value.value,))
        for key, value in variables.pairs or ()
        if value.is_text
    ]


def _find_named_options(path: str, table: Node) -> list[ScriptSetting]:
    """Return the options in a table, without their values, if it certainly contains options.

    Two names that only options have are enough, or one of them with a value that fits.
    """
    named = []
    certainty = 0
    for key, value in table.pairs or ():
        name = key.value if isinstance(key.value, str) else ""
        option = catalog.find_option(name) if value.pairs is None else None
        if option is not None:
            reason = "the script that reads it decides"
            if value.value is not None:
                reason = f"the file says {format_short_value(value.value)}; {reason}"
            location = ScriptLocation(path, *key.position)
            scope = f"config:{table.line}:{table.column}"
            unknown = ScriptValue(None, reason)
            named.append(ScriptSetting(location, "config", name, name, unknown, scope=scope))
            if not option.common_name:
                is_choice = isinstance(value.value, str) and value.value in option.choices
                certainty += 2 if is_choice else 1
    return named if certainty > 1 else []
