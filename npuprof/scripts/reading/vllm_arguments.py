"""Arguments of ``vllm serve``: those of ``--additional-config`` are keys of vLLM-Ascend, others are passed through."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from npuprof import catalog
from npuprof.document.keys import format_full_key, format_key_segment
from npuprof.model import Finding
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading.trees import Node, parse_json, parse_yaml
from npuprof.scripts.records import Position, ScriptPlace, ScriptSetting, ScriptValue
from npuprof.scripts.shell_lexer import Word

ADDITIONAL = "additional-config"
#: The start of a reason for a text that is not a table of keys.
NO_TABLE = "is not a JSON object"
_MENTION = re.compile(rb"\bvllm\b|additional[-_]config")
#: Arguments unique to vLLM, which identify a file of ``--config``.
_OWN = frozenset((ADDITIONAL, "tensor-parallel-size", "gpu-memory-utilization", "max-num-batched-tokens", "max-num-seqs", "max-model-len"))
_SHORT = {"-tp": "tensor-parallel-size", "-pp": "pipeline-parallel-size", "-dp": "data-parallel-size", "-q": "quantization"}
#: Arguments with several values.
_SEVERAL = frozenset(("served-model-name", "lora-modules", "cudagraph-capture-sizes", "middleware"))
_SECRET = frozenset(("api-key", "hf-token", "ssl-keyfile-password"))
_INTEGER, _DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,17})"), re.compile(r"-?(?:0|[1-9][0-9]{0,8})\.[0-9]{1,8}")
#: Returns the place in the file for a line and column of a text in it.
Locate = Callable[[int, int], tuple[int, int]]


def mentions_vllm(data: bytes) -> bool:
    """Return whether a file names vLLM, or one of its arguments."""
    return (b"vllm" in data or b"additional" in data) and _MENTION.search(data) is not None


def find_arguments(words: Sequence[Word]) -> Sequence[Word] | None:
    """Return the words after ``vllm serve``, or after the serving module; None for another command."""
    texts = [word.text for word in words]
    for at, text in enumerate(texts[:-1]):
        if (text.rpartition("/")[2] == "vllm" and texts[at + 1] == "serve") or (
            text == "-m" and texts[at + 1].startswith("vllm.entrypoints.")
        ):
            return words[at + 2 :]
    return None


def read_arguments(path: str, words: Sequence[Word], source: str) -> Iterator[ScriptSetting]:
    """Yield the settings of arguments; ``source`` is the text of the words, empty if unknown."""
    scope = f"vllm@{words[0].line}" if words else ""
    return (setting._replace(scope=scope) for setting in _read_words(path, words, source))


def _read_words(path: str, words: Sequence[Word], source: str) -> Iterator[ScriptSetting]:
    waiting = list(words)[::-1]
    if waiting and not waiting[-1].text.startswith("-"):
        yield _build_argument(path, waiting[-1], "model", [waiting.pop()])
    while waiting:
        word = waiting.pop()
        flag, equals, _ = word.text.partition("=")
        head, dot, rest = flag.removeprefix("--").partition(".")
        name = _SHORT.get(flag, f"{head.replace('_', '-')}{dot}{rest}" if flag.startswith("--") and isinstance(word.parts[0], str) else "")
        values = [word.cut_prefix(len(flag) + 1)] if equals and name else []
        while name and waiting and not equals and not waiting[-1].text.startswith("--") and (not values or name in _SEVERAL):
            values.append(waiting.pop())
        if name == ADDITIONAL and values:
            yield from _read_additional_word(path, values[0], source)
        elif head.replace("_", "-") == ADDITIONAL:
            setting = _build_argument(path, word, name, values)
            yield setting._replace(key=f"vllm_ascend.{rest}", name=rest) if rest else setting
        else:
            yield _build_argument(path, word, name, values)


def _build_argument(path: str, word: Word, name: str, values: list[Word]) -> ScriptSetting:
    """Return an argument as a setting; a flag alone is true."""
    open_part = next((value.open_part for value in (*values, *([] if name else [word])) if value.open_part), "")
    reason = (
        f"depends on {open_part}"
        if open_part
        else "is a secret"
        if name in _SECRET
        else ""
        if name
        else "is not the full name of an argument"
    )
    texts = [_read_text(value.text) for value in values]
    value = None if reason else texts if len(texts) > 1 else texts[0] if texts else True
    place, key = ScriptPlace(path, word.line, word.column), format_full_key("vllm", name) if name else ""
    given = ScriptValue(value, reason, type(value).__name__, value)
    if name == "config" and isinstance(value, str):
        given = ScriptValue(None, "names a file that is not in the tree", "", value)
    return ScriptSetting(place, "vllm", key, name or word.text, given)


def _read_text(text: str) -> Any:
    return int(text) if _INTEGER.fullmatch(text) else float(text) if _DECIMAL.fullmatch(text) else text


def _read_additional_word(path: str, word: Word, source: str) -> Iterator[ScriptSetting]:
    """Yield the keys in a word's JSON, or the word itself if it is not JSON or has placeholders."""
    raw = source[slice(*word.span)]
    line, column = word.line, word.column + max(0, raw.find(word.text) if word.text in raw else 0)
    is_verbatim = word.text in raw
    problems: list[Finding] = []
    tree = None if word.open_part else parse_json(path, word.text, problems)

    def locate(inner_line: int, inner_column: int) -> Position:
        if not is_verbatim or not inner_line:
            return word.line, word.column
        return line + inner_line - 1, inner_column + (column - 1 if inner_line == 1 else 0)

    if tree is not None and tree.pairs is not None:
        yield from _read_additional_table(path, tree, locate)
        return
    where = problems[0].where if problems else None
    message = f": {problems[0].message.partition(': ')[2]}" if problems else ""
    reason = f"depends on {word.open_part}" if word.open_part else f"{NO_TABLE}{message}"
    place = ScriptPlace(path, *(locate(where.line, where.column) if where else (word.line, word.column)))
    yield ScriptSetting(place, "vllm", "", f"--{ADDITIONAL}", ScriptValue(None, reason))


def _read_additional_table(path: str, table: Node, locate: Locate) -> Iterator[ScriptSetting]:
    """Yield the vLLM-Ascend keys of a table, by path."""
    for names, key, node in _list_leaves(table, ()):
        value, reason = build_value(node), "" if node.value is not None or not node.is_plain else "null says nothing"
        given = ScriptValue(None if reason else value, reason, type(value).__name__)
        name, full = ".".join(names), ".".join(map(format_key_segment, ("vllm_ascend", *names)))
        yield ScriptSetting(ScriptPlace(path, *locate(key.line, key.column)), "vllm", full, name, given)


def _list_leaves(table: Node, around: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node, Node]]:
    for key, node in table.pairs or ():
        names = (*around, str(key.value))
        if node.pairs and catalog.find_setting("vllm_ascend", ".".join(names)) is None:
            yield from _list_leaves(node, names)
        else:
            yield names, key, node


def build_value(node: Node) -> Any:
    """Return a node as a plain value."""
    if node.pairs is not None:
        return {str(key.value): build_value(value) for key, value in node.pairs}
    return node.value if node.items is None else [build_value(item) for item in node.items]


def is_config_table(table: Node) -> bool:
    """Return whether a table is a file of ``vllm serve --config``: it has arguments unique to vLLM."""
    names = {str(key.value).replace("_", "-") for key, _ in table.pairs or ()}
    return ADDITIONAL in names or len(names & _OWN) > 1


def read_config_table(path: str, table: Node) -> Iterator[ScriptSetting]:
    """Yield the settings of a file of ``vllm serve --config``."""
    return (setting._replace(scope=f"vllm@{table.line}") for setting in _read_pairs(path, table))


def _read_pairs(path: str, table: Node) -> Iterator[ScriptSetting]:
    for key, node in table.pairs or ():
        name = str(key.value).replace("_", "-")
        if name != ADDITIONAL:
            value = build_value(node)
            given = ScriptValue(value, "" if value is not None else "null says nothing", type(value).__name__)
            yield ScriptSetting(ScriptPlace(path, key.line, key.column), "vllm", format_full_key("vllm", name), name, given)
        elif node.pairs is not None:
            yield from _read_additional_table(path, node, lambda line, column: (line, column))
        else:
            yield from _read_additional_word(path, Word(node.line, node.column, (str(node.value),)), "")


def follow_config_files(path: str, settings: Sequence[ScriptSetting], modules: Modules) -> Iterator[ScriptSetting]:
    """Yield the settings of files named by ``--config``, then the others, which override them."""
    assert modules.locate_file is not None
    rest = []
    for setting in settings:
        is_named = setting.key == "vllm.config" and isinstance(setting.given.written, str)
        files = modules.locate_file(path, setting.given.written, False) if is_named else ()
        documents = parse_yaml(files[0], modules.read(files[0]).decode(errors="replace"), []) if len(files) == 1 else None
        rest += [] if documents else [setting]
        for item in read_config_table(files[0], documents[0]) if documents else ():
            yield item.with_place(call=(setting.line, setting.column))._replace(scope=setting.scope, branches=setting.branches)
    yield from rest


def read_listed_words(path: str, words: Sequence[Word]) -> Iterator[ScriptSetting]:
    """Yield the settings in a list of words, such as ``args`` of a container, that starts or continues ``vllm serve``."""
    arguments = find_arguments(words)
    if arguments is None and any(word.text.partition("=")[0].replace("_", "-") == f"--{ADDITIONAL}" for word in words):
        arguments = words
    yield from read_arguments(path, arguments, "") if arguments else ()
