"""Starts of training programs in Python, and their arguments.

The arguments of launchers, such as torchrun's, are facts of a job and no settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, takewhile
from operator import attrgetter
from typing import Any

from npuprof import catalog
from npuprof.document.json_tree import find_json_error
from npuprof.document.keys import format_key_segment
from npuprof.model import Record
from npuprof.scripts.reading.program_arguments import NO_FILE, NO_TABLE
from npuprof.scripts.reading.shells.expansion import split_words
from npuprof.scripts.reading.shells.sourcing import CURRENT_FOLDER
from npuprof.scripts.reading.trees import Node
from npuprof.scripts.script_records import (
    HERE,
    PLACEHOLDER,
    ScriptLocation,
    ScriptSetting,
    ScriptValue,
    StartedProgram,
    remove_script_folder,
)
from npuprof.scripts.shell_lexer import Word
from npuprof.scripts.steps import SETTING_STEPS, count_steps
from npuprof.scripts.words import build_search, finds_any

#: A script of MindFormers that starts a quoted command.
_QUOTED_COMMAND = "msrun_launcher.sh"
_PYTHON = re.compile(r"python[\d.]+")
_NO_PROGRAM = re.compile(r"-h|--help|--no[-_]python|-c")
#: Scripts that train, by their names.
_TRAINING = r"(?:train|tune)\w*\.py"
#: How scripts start programs in Python.
_TABLE = catalog.load_built_part("launchers")
#: What starts a training program, or is an argument of one.
_MENTIONS = [
    *map(build_search, _TABLE["words"]["mentions"]),
    *(
        build_search(f"{program} ", rf"(?:{'|'.join(commands)})\b")
        for program, commands in _TABLE["commands"].items()
    ),
    build_search("msrun", r"(?:_launcher\.sh)?\b"),
    build_search("torch.distributed.", r"(?:launch|run)\b"),
    build_search("python", rf"[\d.]*[ \t]+(?:-\w+[ \t]+)*\S*{_TRAINING}\b"),
    build_search("-m verl.", ""),
    # an override of Hydra, on a line that continues
    ([b"\\\n"], re.compile(rb"[ \t][+~]{0,2}[a-z]\w*\.[\w.]+=\S+[ \t]*\\\n")),
]
#: A flag without expansions.
_FLAG = re.compile(r"--?[A-Za-z_][^$`]*")
#: A word that is no flag, no override, no file of arguments, and has no expansion.
_WORD = re.compile(r"(?!.*\.(?:ya?ml|json|toml)\Z)[\w.][\w./-]*")
#: A flag with pairs as values, no switch of Hydra.
_TAKES_PAIRS = re.compile(r"--(?!multirun)[\w-]+")
#: Variables that contain any number of arguments; $arg is the variable of a loop.
_SEVERAL = re.compile(
    r"(?i)(?!\$\{?(?:arg|option)\}?\Z)\$\{?\w*(?:arg|argument|opt|option|param|flag|override)s?\}?"
    r"|\$\{?[@*].*|\$\{\w+(?:\[[@*]|:?\+).*",
    re.DOTALL,
)
#: One with a name in the singular, which may be a value: $TOKENIZER_ARG.
_ONE = re.compile(r"(?i)\$\{?\w+[^\Ws]\}?")
#: What a shell replaces outside of quotes.
_REPLACED = re.compile(r"~|.*(?:[*?]|\{[^}]*(?:,|\.\.))", re.DOTALL)
_SECRET = re.compile(r"(?i)(?:api|access|secret)[-_]?(?:key|token)|password|h(?:f|ub)[-_]token")
#: What ends a command, and what the second reading of a text changes.
_OPERATOR = re.compile(r"\d*[<>]|[|&;]")
_QUOTE = re.compile(r"['\"\\]")
#: What ends a command behind a text without quotes.
_END = re.compile(r"([^'\"]*?)\s?(?:[;|]|(?<!>)&)")
_IN_QUOTES = re.compile(r"""'[^']*'|"[^"\\$`]*\"""")
YAML_ENDINGS = (".yaml", ".yml")
_INTEGER = re.compile(r"[+-]?(?:0|[1-9](?:_?\d){0,17})")
_DECIMAL = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*|(?=[eE]))|\.\d+)(?:[eE][+-]?\d{1,2})?")
_OVERRIDE = re.compile(r"(?:(?:\+\+?|~)?[A-Za-z_][\w./@-]*(?==)|~[A-Za-z_][\w./@-]*\Z)")
#: A plain value of Hydra, in quotes or not, and a list of such.
_ITEM = r"""'[^'\\]*'|"[^"\\]*"|(?![+-]?(?:inf|nan)\b)(?:\$\{[a-z_.]*\}|[A-Za-z0-9_/+.$%*@?|:-])+"""
_ITEMS = re.compile(rf"\[(?:(?:{_ITEM})(?:, *(?:{_ITEM}))*)?\]")
#: Why an override of a program without a section is no setting.
OVERRIDE = "is an override of Hydra"
#: As many of its marks make a program the one of a section.
MOST_MARKS = 3


#: Stands for the word before the first one of a command, and behind the last one.
_NO_WORD = Word(0, 0, ("",))
#: The word of an argument, its name and value, and why the value is unknown.
Argument = tuple[Word, str, Any, str]


class Start(Record):
    """A start of a program: its script, or its module and the word that names it, its arguments."""

    program: Word
    module: str
    arguments: Sequence[Word]
    is_launched: bool = False


def mentions_training(data: bytes) -> bool:
    """Return whether a file may start a training program."""
    return finds_any(data, _MENTIONS)


def read_start(
    path: str, words: Sequence[Word], expand: Callable[[Word], Sequence[Word]], source: str
) -> tuple[StartedProgram, list[ScriptSetting], bool] | None:
    """Return the start of a program in Python by a command of a text, None for another command.

    With it come the settings of its arguments, and whether it is certain to train.
    """
    first, names = words[0], _TABLE["words"]
    # before the variables of all other commands are expanded
    is_assignment = len(words) == 1 and "=" in first.text
    if (
        is_assignment
        or first.text in names["others"]
        or not (first.open_part or any(_name_program(word) in names["starts"] for word in words))
    ):
        return None
    is_text = first.keyword == "eval"
    if is_text:  # its words, in quotes or not, are read once more
        words = [Word(*word.position, word.parts) for word in words]
    words = [part for word in words for part in expand(word)]
    if is_text:
        for at, word in enumerate(words):
            if end := _END.match(word.text):
                words[at:] = [word if word.open_part else word.with_parts(end[1])]
                break
        words = [
            word.with_parts(word.text[1:-1]) if _IN_QUOTES.fullmatch(word.text) else word
            for word in takewhile(lambda word: not _OPERATOR.match(word.text), words)
        ]
        parts = (part for word in words for part in word.parts)
        if any(isinstance(part, str) and _QUOTE.search(part) for part in parts):
            return None
    start = _find_program(words, source)
    if start is None:
        return None
    section = "verl" if start.module.startswith("verl.") else _find_section(start.arguments)
    # a line may have several starts
    scope = f"{section}@{first.line}.{first.column}"
    # Megatron-LM has none, verl may have less
    is_hydra = section == "verl" or len(_list_overrides(start.arguments)) >= MOST_MARKS
    read = _read_overrides if is_hydra else _read_flags
    script, _ = remove_script_folder("" if start.module else start.program.text)
    before = [*takewhile(lambda word: word is not start.program, words)]
    lines = {word.line for word in before if not word.origin}
    lines -= {word.line for word in start.arguments}
    record = StartedProgram(
        scope,
        CURRENT_FOLDER.sub("", script),
        start.module,
        _locate(path, start.program),
        frozenset(lines),
        _find_unranked(path, before),
        next((each.text for each in start.arguments[:1] if _WORD.fullmatch(each.text)), ""),
    )
    rows = [*read(section, start.arguments), *_find_broken_json(words, expand, source)]
    settings = [_build(path, scope, *row) for row in rows]
    is_training = re.search(_TRAINING, start.program.text) is not None
    return record, settings, start.is_launched or section != "args" or is_training


def _find_unranked(path: str, words: Sequence[Word]) -> ScriptLocation | None:
    """Return the place of several nodes if a launcher gets neither a rank nor a meeting place.

    ``torch.distributed.run`` takes 0 as the rank of a node that gets none.
    """
    known = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
    nodes, found, is_torchrun = "1", None, False
    for word, following in pairwise((*words, _NO_WORD)):
        name, equals, value = word.text.partition("=")
        flag = name.replace("_", "-")
        is_torchrun |= _name_program(word) in known
        if flag == "--nnodes":
            nodes, found = value if equals else following.text, _locate(path, word)
        # the variable may have the rank
        is_open = following.text == following.open_part != "" and (equals or name[:1] != "-")
        if is_open or flag.startswith(("--node-rank", "--rdzv", "--standalone")):
            return None
    # variables with PET_ are for the launcher, which reads the others of them itself
    is_several = nodes not in ("1", "1:1") and "PET_" not in nodes
    return found if is_torchrun and is_several else None


def _find_broken_json(
    words: Sequence[Word], expand: Callable[[Word], Sequence[Word]], source: str
) -> Iterator[Argument]:
    """Yield the runtime environment of a job of Ray if it is no JSON, and JSON without its end."""
    for word, following in pairwise(words):
        name, equals, _ = word.text.partition("=")
        if not name.startswith("--"):
            continue
        value = word.value if equals else following
        if not (value.open_part or "{" in value.text):
            continue
        # without its quotes, so that all variables are expanded
        plain = Word(*value.position, tuple(filter(None, value.parts)), span=value.span)
        runs = [run for each in expand(plain) for run in split_words(each, source)]
        parts = [part for run in runs for part in (*run.parts, " ")]
        # what a variable may stand for: nothing, or a value
        texts = ["".join(p if isinstance(p, str) else each for p in parts) for each in ("", "0")]
        is_cut = texts[0].startswith('{"') and texts[0].count("{") > texts[0].count("}")
        if is_cut or name == "--runtime-env-json":
            errors = [*filter(None, map(find_json_error, texts))]
            if len(errors) == len(texts):
                (_, column, reason), text = max(zip(errors, texts, strict=True))
                count = text[: column - 1].rstrip().count(" ") + 1
                # the values of variables inside are set above
                place = max(runs[:count], key=attrgetter("position"))
                yield place.with_parts(name), "", None, f"{NO_TABLE}: {reason}"


def read_flags(path: str, words: Sequence[Word]) -> list[ScriptSetting]:
    """Return the settings of the flags of a program that is not named beside them."""
    section = _find_section(words)
    scope = f"{section}@{words[0].line}"
    return [_build(path, scope, *row) for row in _read_flags(section, words)]


def _find_section(words: Sequence[Word]) -> str:
    """Return the section of a program's arguments, by their flags or overrides."""
    marks = {f"--{name}" for name in catalog.load_sections()["megatron"].launch["marks"]}
    flags = {word.text.partition("=")[0] for word in words}
    # Megatron-DeepSpeed has a parser of its own
    if len(marks & flags) >= MOST_MARKS and "--deepspeed" not in flags:
        return "megatron"
    names = _list_overrides(words)
    known = [name for name in names if catalog.find_setting("verl", name)]
    return "verl" if len(known) >= max(MOST_MARKS, len(names) / 2) else "args"


def _list_overrides(words: Sequence[Word]) -> set[str]:
    """Return the keys below others that overrides of Hydra set."""
    found = set()
    is_value = False  # of a flag with several, as --cfg-options has
    for before, word in pairwise((_NO_WORD, *words)):
        match = _OVERRIDE.match(word.text)
        is_value = bool(match) and (is_value or _TAKES_PAIRS.fullmatch(before.text) is not None)
        if match and "." in match[0] and not is_value:
            found.add(match[0].lstrip("+~"))
    return found


def find_file_module(table: Node) -> str | None:
    """Return the module of the program of which a file has the arguments as keys.

    None if there is none, and empty if the file does not tell which one it is.
    """
    names = {str(key.value) for key, _ in table.pairs or ()}
    modules = _TABLE["files"].items()
    found = (module for module, marks in modules if len(names.intersection(marks)) >= MOST_MARKS)
    return next(found, None)


def _name_program(word: Word) -> str:
    name = word.text.rpartition("/")[2]
    return "python" if _PYTHON.fullmatch(name) else name


def _find_program(words: Sequence[Word], source: str) -> Start | None:
    """Return the program in Python that a command of a text starts, None for another command."""
    is_launched = False
    # a program behind "--" is started by another one
    inner = [at for at, word in enumerate(words, 1) if word.text == "--"]
    if inner and (start := _find_program(words[inner[-1] :], source)):
        return start._replace(is_launched=True)
    for at, (word, following) in enumerate(pairwise((*words, _NO_WORD)), 1):
        name = _name_program(word)
        module = _TABLE["commands"].get(name, {}).get(following.text)
        if module:
            return Start(word, module, words[at + 1 :], True)
        if name == _QUOTED_COMMAND:
            return _find_script(split_words(following, source), "msrun", True)
        if name in _TABLE["launchers"]:
            count_steps(len(words) - at)
            is_certain = is_launched or name not in ("python", "uv")
            start = _find_script(words[at:], name, is_certain)
            if start or name != "uv":  # it may run another launcher
                return start
        is_launched |= name in _TABLE["words"]["around"]
    return None


def _find_script(words: Sequence[Word], launcher: str, is_launched: bool) -> Start | None:
    """Return the program after the arguments of a launcher or of Python."""
    is_module = is_value = False
    for at, word in enumerate(words):
        flag, equals, _ = word.text.partition("=")
        if _NO_PROGRAM.fullmatch(flag):
            return None
        is_switch = flag in _TABLE["launchers"][launcher]["switches"]
        if is_switch or flag.startswith("-"):
            is_module |= flag in ("-m", "--module")
            # a value may be attached to a flag of one letter
            is_value = not (equals or is_switch or re.match("-[^-].", flag))
            continue
        count_steps(len(words) - at)
        arguments = words[at + 1 :]
        # arguments of the launcher in a variable, before a script
        is_unknown = word.text == word.open_part and not is_module
        if is_value or (is_unknown and any(each.text.endswith(".py") for each in arguments)):
            is_value = False
            continue
        if not is_module:
            is_script = word.text.endswith(".py") or (is_launched and word.open_part)
            return Start(word, "", arguments, is_launched) if is_script else None
        if inner := _TABLE["modules"].get(word.text):
            return _find_script(arguments, inner, True)
        if word.text in _TABLE["words"]["others"]:  # pip installs programs
            return None
        return Start(word, word.text, arguments, is_launched)
    return None


def _read_flags(section: str, words: Sequence[Word]) -> Iterator[Argument]:
    """Yield the flags and their values."""
    remaining = [*takewhile(lambda word: word.text != "--", words)][::-1]
    while remaining:
        word = remaining.pop()
        name, equals, _ = word.text.partition("=")
        if not _FLAG.fullmatch(name):
            if word.open_part and word.text[0] in "-$`":
                yield word, "", None, ""
            elif word is words[0] and word.text.endswith(YAML_ENDINGS) and section == "args":
                yield word, "", word.text, NO_FILE
            continue
        name = name if section == "verl" else name.removeprefix("--")
        record = catalog.find_setting(section, name)
        values = [word.value] if equals else []
        if not equals and not (record and record.kind == "bool"):
            while remaining and not _begins_next(remaining[-1]):
                values.append(remaining.pop())
        given = [each for each in values if equals or each.text or each.quoted]
        value, reason = _read_values(given)
        if record and values and not given:  # only empty variables
            value, reason = "", PLACEHOLDER
        following = remaining[-1].text if remaining and not values else ""
        if _ONE.fullmatch(following) and not (record and record.kind == "bool"):
            reason = f"depends on {following}"
        yield word, name, value, reason
        # a variable behind a value may bring more flags
        last = values[-1] if len(values) > 1 else word
        is_whole = last.open_part and last.text == last.open_part and not last.quoted
        if is_whole and not (record and record.kind in ("any", "list")):
            yield last, "", None, ""


def _begins_next(word: Word) -> bool:
    """Return whether a word is no value: a flag, or a variable with any number of arguments."""
    is_split = not word.quoted or "@" in word.text
    is_several = is_split and word.text == word.open_part and _SEVERAL.fullmatch(word.text)
    return bool(is_several or _FLAG.fullmatch(word.text.partition("=")[0]))


def _read_values(words: Sequence[Word]) -> tuple[Any, str]:
    """Return the value of a flag, and why it is unknown."""
    for word in words:
        if word.open_part:
            return None, f"depends on {word.open_part}"
        if len(words) > 1 and HERE in word.text:
            return None, "begins in the folder of the script"
        if not word.quoted and _REPLACED.match(word.text):
            return None, f"depends on {word.text}, which a shell replaces"
    # a number has only this written form
    values = [
        number if str(number := _convert(word.text)) == word.text else word.text for word in words
    ]
    if not values:
        return True, ""
    return values if len(values) > 1 else values[0], ""


def _convert(text: str) -> Any:
    """Return a number if a text is one, else the text."""
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def _read_overrides(section: str, words: Sequence[Word]) -> Iterator[Argument]:
    """Yield Hydra's overrides and flags."""
    no_setting = OVERRIDE if section == "args" else ""
    for at, word in enumerate(words):
        match = _OVERRIDE.match(word.text)
        if word.text.startswith("-"):
            pair = words[at : at + 2]
            is_alone = any("=" in each.text for each in pair)
            yield from _read_flags(section, pair[:1] if is_alone else pair)
        elif match:
            value, reason = _read_values([word.value] if match[0] != word.text else [])
            if isinstance(value, str):
                value, reason = _read_hydra_value(word.value.text)
            yield word, match[0], value, no_setting or reason
        elif word.open_part:
            yield word, "", None, ""


def _read_hydra_value(text: str) -> tuple[Any, str]:
    """Return a plain value or a list of such, as Hydra reads it, and why it is none."""
    if _ITEMS.fullmatch(text):
        return [_read_item(item) for item in re.findall(_ITEM, text)], ""
    if not text or re.fullmatch(_ITEM, text):
        return _read_item(text), ""
    return None, "is no plain value of Hydra"


def _read_item(text: str) -> Any:
    if text[:1] in ("'", '"'):
        return text[1:-1]
    names = {"true": True, "false": False, "null": "null"}
    return names.get(text.lower(), _convert(text))


def _locate(path: str, word: Word) -> ScriptLocation:
    file, call = word.origin or (path, ())
    return ScriptLocation(file, *word.position, call=call)


def _build(path: str, scope: str, word: Word, name: str, value: Any, reason: str) -> ScriptSetting:
    """Return an argument as a setting; one without a name depends on something."""
    count_steps(SETTING_STEPS)
    if _SECRET.search(name):
        value, reason = None, "is a secret"
    if not (name or reason):
        reason = f"depends on {word.open_part}"
    value, is_relative = remove_script_folder(value)
    assigned = ScriptValue(None if reason else value, reason, "", value, relative=is_relative)
    section, _, _ = scope.partition("@")
    parts = name.split(".")
    key = ".".join(map(format_key_segment, (section, *(parts if all(parts) else [name]))))
    key, name = (key, name) if name else ("", word.text)
    return ScriptSetting(_locate(path, word), section, key, name, assigned, scope=scope)
