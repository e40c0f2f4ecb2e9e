"""Shared by variable files: decoding, conversion to settings, and the identity of exports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from npuprof import catalog
from npuprof.catalog import build_finding
from npuprof.document.keys import format_full_key
from npuprof.model import Finding, Place, is_utf8
from npuprof.renderers.environment import format_equivalent_text
from npuprof.scripts.grouping import group_by
from npuprof.scripts.python.environ import (
    explain_other_variable,
    find_variable_key,
    read_variable_text,
)
from npuprof.scripts.python.parsing import find_misfit
from npuprof.scripts.script_records import (
    HALF_CHARACTER,
    OTHER,
    PLACEHOLDER,
    ImportedFile,
    Position,
    ScriptLocation,
    ScriptSetting,
    ScriptValue,
    remove_script_folder,
)
from npuprof.scripts.steps import SETTING_STEPS, count_steps

#: Literal texts and, as one-tuples, placeholders.
Parts = tuple[str | tuple[str], ...]
#: Placeholders in manuals and templates.
_PLACEHOLDER = re.compile(
    r"""(?<!\$)\{[^\W\d][\w .-]*\}|<(?![|/])[^<>]+>|\*{3}       # {RANK_ID}, <ip>, ***
    |(?<![A-Za-z])[xX]{2,12}(?![A-Za-z0-9])         # /home/xxx, 141.xx.xx.1
    |(?<![\w.])(?=[\d.]*[xX*])(?:[\dxX*]{1,3}\.){3}[\dxX*]{1,3}(?![\w.])  # 192.168.x.x
    |(?i:(?<![a-z])(?:your|path[/_ -]to(?![a-z])))   # your_ip_here, /path/to/log
    |(?<![A-Za-z])(?:TODO|FIXME|CHANGE_?ME|REPLACE_?ME)(?![A-Za-z])
    |^[xX]+(?:\.[xX]+)+$|^(?:\.{3}|\u2026)$
    |^[A-Z]{2,}(?:[ ][A-Z]{2,})+$                    # SOCKET IFNAME FOR CURRENT NODE
    |\[[^\[\]]*[\u4e00-\u9fff]|(?:网卡|地址|端口|路径|名称|实际|填写)  # [卡号], 网卡名称""",
    re.VERBOSE,
)
_DEFAULT = re.compile(r"\$\{\w+:?[-=]([^$`\\{}'\"]*)\}")


def decode_text(path: str, data: bytes, problems: list[Finding]) -> str | None:
    """Return the text of a file with plain line ends; None and a finding if it is not text."""
    if misfit := find_misfit(data):
        where = Place(path, misfit.line)
        why = "No program can read it."
        problems.append(build_finding("NP801", misfit.message, why, misfit.hint, where=where))
        return None
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what, why = "the file is not UTF-8 text", "It was read as Latin-1."
        problems.append(
            Finding(
                "NP801", what, why, "save it as UTF-8", where=Place(path, line), severity="info"
            )
        )
        text = data.decode("latin-1")
    is_of_windows = text.count("\r\n") == text.count(
        "\n"
    )  # otherwise a carriage return is an ordinary character
    return text.replace("\r\n", "\n") if is_of_windows else text


#: The scope of the variables that a file exports.
EXPORTS = "<process>:export"


def build_variable_setting(
    path: str, at: Position, name: str, parts: Parts, reason: str = ""
) -> ScriptSetting:
    """Return a variable as a setting.

    One of another program with the reason why it is in no preset.
    """
    count_steps(SETTING_STEPS)
    key = find_variable_key(name)
    open_part = next((part[0] for part in parts if not isinstance(part, str)), "")
    if key is None:
        key, written = format_full_key("env", name), None if open_part else "".join(map(str, parts))
        other = ScriptValue(reason=explain_other_variable(name), written=written)
        return ScriptSetting(ScriptLocation(path, *at), OTHER, key, name, other, scope=EXPORTS)
    reason = reason or (f"depends on {open_part}" if open_part else "")
    text, relative = remove_script_folder("".join(part for part in parts if isinstance(part, str)))
    if not is_utf8(text):
        text, reason = "", reason or HALF_CHARACTER
    value, reason = (None, reason) if reason else read_variable_text(key, text)
    default = find_default(parts) if open_part else None
    kind, written = "" if reason else "str", None if open_part else text
    script_value = ScriptValue(
        value, reason, kind, written, default, relative=relative and not reason
    )
    return ScriptSetting(ScriptLocation(path, *at), "env", key, name, script_value, scope=EXPORTS)


def is_placeholder(text: str) -> bool:
    """Return whether a text of a manual or template is to be replaced: ``<ip>``, ``x.x.x.x``."""
    return text.isprintable() and _PLACEHOLDER.search(text) is not None


def mark_placeholders(settings: Iterable[ScriptSetting]) -> Iterator[ScriptSetting]:
    """Yield settings; those with a placeholder have no value, but a reason."""
    for setting in settings:
        words = setting.value if isinstance(setting.value, list) else [setting.value]
        text = " ".join(words) if all(isinstance(word, str) for word in words) else ""
        if not setting.reason and is_placeholder(text):
            setting = setting.with_value(value=None, reason=PLACEHOLDER, kind="", written=text)
        yield setting


def split_references(text: str, reference: re.Pattern[str]) -> Parts:
    """Return a text with its references, the group of the pattern, separated.

    Other matches are an escaped dollar.
    """
    parts = []
    at = 0
    for match in reference.finditer(text):
        parts += [text[at : match.start()], (match[1],) if match[1] else "$"]
        at = match.end()
    return (*parts, text[at:])


def find_default(parts: Parts) -> str | None:
    """Return the text of parts with default values: ``${NAME:-text}``; None if unknown."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif match := _DEFAULT.fullmatch(part[0]):
            texts.append(match[1])
        else:
            return None
    return "".join(texts)


def leave_out(setting: ScriptSetting, why: str) -> ScriptSetting:
    """Return a setting that is checked but not imported.

    It applies only to a part of the run, or not certainly.
    """
    return setting._replace(unused=setting.unused or why)


def set_others_apart(imported: ImportedFile) -> ImportedFile:
    """Return a file with the variables of other programs separated from its settings."""
    if not any(setting.surface == OTHER for setting in imported.settings):
        return imported
    # the two are put together again by their order
    ordered = [
        setting._replace(order=setting.order or number)
        for number, setting in enumerate(imported.settings, 1)
    ]
    others = [setting for setting in ordered if setting.surface == OTHER]
    return imported._replace(
        settings=tuple(setting for setting in ordered if setting.surface != OTHER),
        other_variables=tuple(setting._replace(surface="env") for setting in others),
    )


def join_others(imported: ImportedFile, is_joined: Callable[[str], Any]) -> ImportedFile:
    """Return a file in which some variables of other programs are settings, by their names."""
    joined = {
        id(setting): setting.with_value(value=setting.assigned.written, reason="", kind="str")
        for setting in imported.other_variables
        if isinstance(setting.assigned.written, str) and is_joined(setting.name)
    }
    rest = (setting for setting in imported.other_variables if id(setting) not in joined)
    settings = (*imported.settings, *mark_placeholders(joined.values()))
    return imported._replace(settings=settings, other_variables=tuple(rest))


def settle_exports(imported: ImportedFile) -> ImportedFile:
    """Return a file with the identity of exports as records, and without duplicate options.

    ``npuprof env`` writes some options also as the toolkit's equivalent variable.
    """
    if not any(
        setting.surface == "env" and not setting.key.startswith("env.")
        for setting in imported.settings
    ):
        return imported
    identities = [
        setting for setting in imported.settings if setting.surface == "env" and not setting.key
    ]
    equivalents = _find_equivalents(imported.settings)
    settings = tuple(
        setting
        for setting in imported.settings
        if setting not in identities and id(setting) not in equivalents
    )
    return imported._replace(
        settings=settings, problems=(*imported.problems, *_describe_exports(identities))
    )


def _find_equivalents(settings: Iterable[ScriptSetting]) -> set[int]:
    """Return the ``id`` of each variable that only repeats an option of the same export."""
    options = {}
    for setting in settings:
        is_option = setting.key and not setting.key.startswith("env.")
        if setting.surface == "env" and is_option and not setting.reason:
            options[setting.key, setting.scope] = setting
    option_of = {
        f"env.{variable}": option
        for option, variables in catalog.load_equivalent_variables().items()
        for variable in variables
    }
    equivalents = set()
    for setting in settings:
        option = options.get((option_of.get(setting.key, ""), setting.scope))
        if option is None or setting.reason:
            continue
        text = format_equivalent_text(setting.name, option.value, option.assigned.written)
        if setting.value == text:
            equivalents.add(id(setting))
    return equivalents


def _describe_exports(identities: list[ScriptSetting]) -> Iterator[Finding]:
    """Yield a note for each export of a preset in a file."""
    for setting in identities:
        preset = setting.assigned.written
        if setting.name == "NPUPROF_PROFILE" and preset:
            what = f"this is an export of the preset {preset}"
            why = "npuprof env wrote it; the preset itself says where each value comes from."
            hint = f"npuprof show {preset}, if it is in your store"
            where = Place(setting.file, setting.line, setting.column)
            yield build_finding("NP828", what, why, hint, where=where)


def settle(settings: Sequence[ScriptSetting]) -> list[ScriptSetting]:
    """Return settings with a reason if the call order decides their value.

    Then a function assigns one of several values.
    """
    known = (
        setting
        for setting in settings
        if setting.surface == "env" and not setting.reason and not setting.unused
    )
    reasons: dict[int, str] = {}
    for several in group_by(known, attrgetter("name")).values():
        setter = next((setting for setting in several if setting.function), None)
        if setter is not None and len({setting.value for setting in several}) > 1:
            reasons |= dict.fromkeys(
                map(id, several),
                f"depends on the order: {setter.function}() sets it in {setter.cited_line}",
            )
    return [
        leave_out(setting, reasons[id(setting)]) if id(setting) in reasons else setting
        for setting in settings
    ]
