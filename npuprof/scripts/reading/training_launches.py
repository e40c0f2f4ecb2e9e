"""Starts of training programs in Python, and their arguments.

The arguments of launchers, such as torchrun's, are facts of a job and no settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from npuprof import catalog
from npuprof.catalog.programs import find_program
from npuprof.document.keys import format_full_key, format_key_segment
from npuprof.model import Record
from npuprof.scripts.reading.hydra_values import parse_hydra_value
from npuprof.scripts.reading.program_arguments import NO_FILE
from npuprof.scripts.reading.shells.expansion import split_words
from npuprof.scripts.script_records import (
    Position,
    ScriptLocation,
    ScriptSetting,
    ScriptValue,
    StartedProgram,
    remove_script_folder,
)
from npuprof.scripts.shell_lexer import Word
from npuprof.scripts.steps import SETTING_STEPS, count_steps

#: The flags without a value of each launcher, as its parser has them.
_SWITCHES = {
    "torchrun": "--standalone --use-env --use_env --virtual-local-rank --virtual_local_rank",
    "deepspeed": "--force_multi --save_pid --no_local_rank --no_ssh --no_ssh_check"
    " --elastic_training --bind_cores_to_rank",
    "accelerate": "--multi_gpu --tpu --cpu --ipex --use_xpu --use_deepspeed --use_fsdp"
    " --use_parallelism_config --use_megatron_lm --same_network --quiet -q --debug"
    " --enable_cpu_affinity --dynamo_use_fullgraph --dynamo_use_dynamic"
    " --dynamo_use_regional_compilation --no_tpu_cluster --tpu_use_cluster --tpu_use_sudo"
    " --fp8_override_linear_precision",
    "msrun": "",
    "python": "-b -B -d -E -i -I -O -OO -P -q -s -S -u -v -x",
}
#: Modules that are launchers.
_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
}
#: Programs whose next argument is a command of theirs, and the module that it starts.
_COMMANDS = {
    "llamafactory-cli": (("train",), "llamafactory.cli"),
    "swift": (("sft", "pt", "rlhf"), "swift.cli.{}"),
}
_PYTHON = re.compile(r"python[\d.]*")
_NO_PROGRAM = re.compile(r"-h|--help|--no[-_]python|-c")
_OTHERS = frozenset(("echo", "printf", "cat", "grep", "pkill", "pgrep", "which", "ps", "pip"))
#: Launchers that start another program after their own arguments.
_AROUND = frozenset(("mpirun", "mpiexec", "horovodrun"))
_STARTS = frozenset((*_SWITCHES, *_COMMANDS, "ray", "msrun_launcher.sh", "eval"))
_MAY_START = re.compile(r"python|torchrun|msrun|deepspeed|accelerate|llamafactory-cli|swift")
_MENTION = re.compile(
    rb"\b(?:torchrun|msrun(?:_launcher\.sh)?|deepspeed|torch\.distributed\.(?:launch|run)"
    rb"|accelerate launch|ray job submit|llamafactory-cli|swift (?:sft|pt|rlhf))\b"
    rb"|-m verl\.|--tensor-model-parallel-size\b"
)
_FLAG = re.compile(r"--[A-Za-z_]|-[A-Za-z]")
#: Variables that contain any number of arguments.
_SEVERAL = re.compile(
    r"(?i)\$\{?\w*(?:arg|argument|opt|option|param|flag|override)s?\}?|\$\{?[@*].*"
    r"|\$\{\w+(?:\[[@*]|:?\+).*",
    re.DOTALL,
)
#: What a shell replaces outside of quotes.
_REPLACED = re.compile(r"~|.*(?:[*?]|\{[^}]*(?:,|\.\.))", re.DOTALL)
_SECRET = re.compile(r"(?i)(?:api|access|secret)[-_]?(?:key|token)|password|h(?:f|ub)[-_]token")
#: What ends a command, and what the second reading of a text changes.
_OPERATOR = re.compile(r"\d*[<>]|[|&;]")
_QUOTE = re.compile(r"['\"\\]")
_YAML = (".yaml", ".yml")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d+)?")
_OVERRIDE = re.compile(r"(?P<prefix>\+\+|\+|~)?(?P<key>[A-Za-z_][\w./@-]*)(?:=|\Z)")
_HYDRA_FLAGS = {"-cn": "--config-name", "-cp": "--config-path", "-cd": "--config-dir"}
#: As many of its marks make a program Megatron's.
_MOST_MARKS = 3


class Start(Record):
    """A start of a program: its script or its module, its arguments, and its launcher if any."""

    script: Word | None
    module: str
    arguments: Sequence[Word]
    is_launched: bool = False


def mentions_training(data: bytes) -> bool:
    """Return whether a file may start a training program."""
    return _MENTION.search(data) is not None


def may_train(text: str) -> bool:
    """Return whether a text may have a start of a program in Python."""
    return _MAY_START.search(text) is not None


def may_start(words: Sequence[Word]) -> bool:
    """Return whether a command may start a program, before its variables are expanded."""
    if words[0].text in _OTHERS:
        return False
    names = (word.text.rpartition("/")[2] for word in words)
    return bool(words[0].open_part) or any(
        name in _STARTS or _PYTHON.fullmatch(name) for name in names
    )


def find_start(words: Sequence[Word], source: str) -> Start | None:
    """Return the program in Python that a command of a text starts, None for another command."""
    if words[0].keyword == "eval":
        words = list(takewhile(lambda word: not _OPERATOR.match(word.text), words))
        if any(_QUOTE.search(word.text) for word in words):
            return None  # the shell reads the text once more
    is_launched = False
    for at, word in enumerate(words):
        rest = words[at + 1 :]
        name = word.text.rpartition("/")[2]
        following = rest[0].text if rest else ""
        if _PYTHON.fullmatch(name):
            name = "python"
        is_launched |= name in _AROUND
        if name in _COMMANDS and following in _COMMANDS[name][0]:
            return Start(None, _COMMANDS[name][1].format(following), rest[1:], True)
        if name == "msrun_launcher.sh" and rest:
            inner = split_words(rest[0], source)
            return _find_script(inner, "msrun", True) if inner else None
        if name == "ray" and [each.text for each in rest[:2]] == ["job", "submit"]:
            is_launched = True
        elif name == "accelerate":
            return _find_script(rest[1:], name, True) if following == "launch" else None
        elif name in _SWITCHES:
            return _find_script(rest, name, is_launched or name != "python")
    return None


def _find_script(words: Sequence[Word], launcher: str, is_launched: bool) -> Start | None:
    """Return the program after the arguments of a launcher or of Python."""
    switches = _SWITCHES[launcher].split()
    is_module = False
    at = 0
    while at < len(words):
        word = words[at]
        flag, equals, _ = word.text.partition("=")
        if _NO_PROGRAM.fullmatch(flag):
            return None
        if flag in ("-m", "--module"):
            is_module = True
            if launcher == "python":
                at += 1
                break
        elif not word.text.startswith("-"):
            # arguments of the launcher in a variable, before a script
            is_unknown = word.text == word.open_part and not is_module
            if not is_unknown or not any(each.text.endswith(".py") for each in words[at + 1 :]):
                break
        elif not equals and flag not in switches and not _attaches_value(launcher, flag):
            following = words[at + 1].text if at + 1 < len(words) else ""
            at += not following.startswith("--")
        at += 1
    if at >= len(words):
        return None
    program, arguments = words[at], words[at + 1 :]
    if not is_module:
        is_script = program.text.endswith(".py") or (is_launched and program.open_part)
        return Start(program, "", arguments, is_launched) if is_script else None
    if inner := _MODULES.get(program.text):
        return _find_script(arguments, inner, True)
    return Start(None, program.text, arguments, is_launched)


def _attaches_value(launcher: str, flag: str) -> bool:
    return launcher == "python" and len(flag) > 2


def read_start(
    path: str, start: Start, position: Position
) -> tuple[StartedProgram, list[ScriptSetting]]:
    """Return the record of a start, and the settings of its arguments."""
    section = _choose_section(start)
    scope = f"{section}@{position[0]}"
    read = _read_overrides if section == "verl" else _read_flags
    settings = [setting._replace(scope=scope) for setting in read(path, section, start.arguments)]
    script = start.script
    where = (script.line, script.column) if script else position
    file, call = (script.origin if script else None) or (path, ())
    location = ScriptLocation(file, *where, call=call)
    text, _ = remove_script_folder(script.text if script else "")
    return StartedProgram(scope, text, start.module, location), settings


def _choose_section(start: Start) -> str:
    if start.module.startswith("verl."):
        return "verl"
    megatron = find_program("megatron")
    marks = {f"--{name}" for name in megatron.marks} if megatron else set()
    flags = {word.text.partition("=")[0] for word in start.arguments}
    return "megatron" if len(marks & flags) >= _MOST_MARKS else "args"


def _read_flags(path: str, section: str, words: Sequence[Word]) -> Iterator[ScriptSetting]:
    """Yield the settings of flags and their values."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word.text == "--":
            return
        if not _is_flag(word):
            if _is_several(word) or word.text == word.open_part:
                yield _build(path, section, word, "", None, f"depends on {word.open_part}")
            elif at == 1 and word.text.endswith(_YAML) and section == "args":
                written = None if word.open_part else remove_script_folder(word.text)[0]
                setting = _build(path, section, word, "", None, NO_FILE)
                yield setting.with_value(written=written)
            continue
        name, equals, _ = word.text.partition("=")
        name = name.removeprefix("--")
        if "$" in name or "`" in name:
            yield _build(path, section, word, "", None, f"depends on {word.open_part}")
            continue
        record = catalog.find_setting(section, name)
        values = [word.value] if equals else []
        while not equals and at < len(words) and not (record and record.kind == "bool"):
            following = words[at]
            if _is_flag(following) or following.text == "--" or _is_several(following):
                break
            values.append(following)
            at += 1
        value, reason = _read_values(values)
        yield _build(path, section, word, name, value, reason)
        last = values[-1] if values else word
        is_list = record and record.kind in ("any", "list")
        if len(values) > 1 and last.text == last.open_part and not (last.quoted or is_list):
            yield _build(path, section, last, "", None, f"depends on {last.open_part}")


def _is_flag(word: Word) -> bool:
    return isinstance(word.parts[0], str) and _FLAG.match(word.parts[0]) is not None


def _is_several(word: Word) -> bool:
    """Return whether a word is a variable with any number of arguments."""
    is_all = word.text.startswith(("$@", "${@")) or "[@]" in word.text
    is_whole = word.text == word.open_part and (not word.quoted or is_all)
    return is_whole and _SEVERAL.fullmatch(word.text) is not None


def _read_values(words: Sequence[Word]) -> tuple[Any, str]:
    """Return the value of a flag, and why it is unknown."""
    for word in words:
        if word.open_part:
            return None, f"depends on {word.open_part}"
        if word.text.startswith("~/") or (not word.quoted and _REPLACED.match(word.text)):
            return None, f"depends on {word.text}, which a shell replaces"
    values = [_convert(word.text) for word in words]
    if not values:
        return True, ""
    return values if len(values) > 1 else values[0], ""


def _convert(text: str) -> Any:
    """Return a number if it has only this written form, else the text."""
    if not _NUMBER.fullmatch(text):
        return text
    number: int | float = float(text) if "." in text else int(text)
    return number if str(number) == text else text


def _build(
    path: str, section: str, word: Word, name: str, value: Any, reason: str
) -> ScriptSetting:
    count_steps(SETTING_STEPS)
    file, call = word.origin or (path, ())
    location = ScriptLocation(file, word.line, word.column, call=call)
    if name and _SECRET.search(name):
        value, reason = None, "is a secret"
    value, is_relative = remove_script_folder(value)
    assigned = ScriptValue(None if reason else value, reason, relative=is_relative)
    parts = name.split(".")
    key = ".".join(map(format_key_segment, (section, *(parts if all(parts) else [name]))))
    return ScriptSetting(location, section, key if name else "", name or word.text, assigned)


def _read_overrides(path: str, section: str, words: Sequence[Word]) -> Iterator[ScriptSetting]:
    """Yield the settings of Hydra's overrides and flags."""
    remaining = list(words)[::-1]
    while remaining:
        word = remaining.pop()
        head = word.parts[0] if isinstance(word.parts[0], str) else ""
        flag, equals, _ = head.partition("=")
        if flag.startswith("-"):
            name = _HYDRA_FLAGS.get(flag, flag)
            values = [word.value] if equals else []
            if not equals and remaining and "=" not in remaining[-1].text:
                values = [remaining.pop()]
            value, reason = _read_values(values)
            key = format_full_key(section, name)
            yield _build(path, section, word, name, value, reason)._replace(key=key)
            continue
        match = _OVERRIDE.match(head)
        if match is None or ("=" not in head and (match["prefix"] != "~" or word.open_part)):
            if word.open_part:
                yield _build(path, section, word, "", None, f"depends on {word.open_part}")
            continue
        value, reason = True, ""
        if equals:
            text = word.value
            value, reason = _read_values([text])
            if not reason:
                try:
                    value = parse_hydra_value(text.text)
                except ValueError:
                    value, reason = None, "is a sweep or a function of Hydra"
        prefix, name = match["prefix"] or "", match["key"]
        yield _build(path, section, word, f"{prefix}{name}", value, reason)
