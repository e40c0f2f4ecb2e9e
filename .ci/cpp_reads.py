"""What C++ sources read: environment variables, and options that they register."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from python_reads import COMPUTED, Read

#: Functions and macros that read the variable that their first argument names.
_READERS = (
    "getenv|secure_getenv|GetEnv|get_and_log_env|GetBoolTypeOption|getCvar\\w+|MM_SYS_GET_ENV"
    "|Read(?:Bool|Int64|String|Float)FromEnvVar|REGISTER_OPTION_INIT_BY_ENV|get_env|check_env|parse_env"
)
_OPTION = re.compile(
    r"^\s*(?:TORCH_NPU_)?REGISTER_OPTION(?:_HOOK|_INIT_BY_ENV)?\(\s*(\w+)", re.MULTILINE
)
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_CONSTANT = re.compile(
    r"(?:\bconst\b|\bconstexpr\b|\bstatic\b|#define|\binline\b)[^;\n]*?\b(\w+)\s*(?:\[\w*\])?\s*=?\s*"
    r'(?:std::(?:string|vector<std::string>))?[({\s]*((?:"\w+"[,\s]*)+)'
)
_HEADER = re.compile(
    r"(?:#define\s+(?P<macro>\w+)\((?P<words>[^)\n]*)\)|(?P<name>\w+)\s*\((?P<parameters>[^(){};]*"
    r"(?:char|string|string_view)\b[^(){};]*)\)\s*(?:const|noexcept|override|\s)*\{)"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LITERAL = re.compile(r'"[^"]*"|-?[\d.]+|true|false')
#: Readers whose second argument is the default.
_WITH_DEFAULT = re.compile("Cvar|FromEnvVar|GetBoolType")


@dataclass(frozen=True)
class Call:
    """One call of a reader: where it is, its name, and its arguments as written."""

    start: int
    name: str
    arguments: list[str]


def find_reads(files: dict[str, str]) -> set[Read]:
    """Return what the files of one release read."""
    plain = {path: _strip(text) for path, text in files.items()}
    constants: dict[str, set[str]] = {}
    local: dict[str, dict[str, set[str]]] = {}
    for path, text in plain.items():
        local[path] = {}
        for name, value in _CONSTANT.findall(text):
            for found in re.findall(r'"(\w+)"', value):
                local[path].setdefault(name, set()).add(found)
                constants.setdefault(name, set()).add(found)
    readers = {_READERS: 0}
    while True:
        reads, wrappers = set[Read](), dict(readers)
        for path, text in plain.items():
            reads |= _find_options(path, text)
            if not re.search("|".join(readers), text):
                continue
            for call in _find_calls(text, readers):
                index = next((i for name, i in readers.items() if re.fullmatch(name, call.name)), 0)
                if index >= len(call.arguments):
                    continue
                names = _name_variables(call.arguments[index], local[path], constants)
                if call.name == "REGISTER_OPTION_INIT_BY_ENV":
                    names = {call.arguments[0].upper()}
                default = call.arguments[index + 1] if len(call.arguments) > index + 1 else ""
                kind, known = _describe(call.name, default)
                literal = _write_literal(known or _find_alternative(text, call))
                if default and not known and re.search(_WITH_DEFAULT, call.name):
                    literal = COMPUTED
                reads |= {Read("env", name, path, kind, known, (), literal) for name in names}
                if not names:
                    wrappers |= _find_wrapper(text, call, index)
        if wrappers == readers:
            return reads
        readers = wrappers


_STRIPPED: dict[str, str] = {}


def _strip(text: str) -> str:
    """Return a source without its comments."""
    if text not in _STRIPPED:
        _STRIPPED[text] = _COMMENT.sub(lambda found: found[1] or " ", text)
    return _STRIPPED[text]


def _find_options(path: str, text: str) -> set[Read]:
    return {
        Read("settings", name, path)
        for name in _OPTION.findall(text)
        if name not in ("name", "id", "key")
    }


def _find_calls(text: str, readers: dict[str, int]) -> Iterator[Call]:
    """Yield the calls of readers, with the arguments up to the closing parenthesis."""
    for found in re.finditer(rf"\b({'|'.join(readers)})\s*\(", text):
        depth, start, arguments = 0, found.end(), list[str]()
        for position in range(found.end(), min(len(text), found.end() + 400)):
            character = text[position]
            if character in "({[":
                depth += 1
            elif (character == ")" and not depth) or (character == "," and not depth):
                arguments.append(text[start:position].strip())
                start = position + 1
                if character == ")":
                    yield Call(found.start(), found[1], arguments)
                    break
            elif character in ")}]":
                depth -= 1


def _name_variables(
    argument: str, local: dict[str, set[str]], constants: dict[str, set[str]]
) -> set[str]:
    """Return the variables that an argument names, none if it is not a constant."""
    if texts := re.findall(r'"([^"]*)"', argument):
        return {text for text in texts if _NAME.fullmatch(text)} if "+" not in argument else set()
    if found := re.fullmatch(r"MM_ENV_(\w+)", argument):
        return {found[1]}
    name = re.sub(r"\.(?:c_str|data)\(\)$", "", argument).split("::")[-1]
    return local.get(name) or constants.get(name, set())


def _describe(reader: str, default: str) -> tuple[str, str]:
    """Return the kind that a reader gives, and a default if it is a literal."""
    kind = {"Bool": "bool", "Int": "int"}.get((re.search("Bool|Int", reader) or [""])[0], "")
    literal = re.fullmatch(_LITERAL, default)
    known = literal and re.search(_WITH_DEFAULT, reader)
    return kind, default.strip('"') if known else ""


def _find_alternative(text: str, call: Call) -> str:
    """Return the constant in ``name != nullptr ? … : constant`` after ``name = getenv(…)``.

    ``COMPUTED`` for any other expression, and for several ones behind a condition.
    """
    before = re.search(r"(\w+)\s*=\s*(?:std::)?$", text[max(0, call.start - 80) : call.start])
    if before is None:
        return ""
    name = before[1]
    # up to where the name is that of another variable
    after = re.split(rf"\b{name}\s*=[^=]", text[call.start : call.start + 1500], maxsplit=1)[0]
    found = re.findall(
        rf"\b{name}\s*!=\s*(?:nullptr|NULL)\s*\)?\s*\?[^;]*?[^:]:\s*([^:;]+);", after
    )
    alternatives = {each.strip() for each in found}
    if not alternatives:
        return ""
    constant = alternatives.pop()
    return constant if not alternatives and re.fullmatch(_LITERAL, constant) else COMPUTED


def _write_literal(default: str) -> str:
    return default if default in ("", COMPUTED) else repr(default.strip('"'))


def _find_wrapper(text: str, call: Call, index: int) -> dict[str, int]:
    """Return the function around a call whose parameter is the name that is read."""
    name = re.sub(r"\.(?:c_str|data)\(\)$", "", call.arguments[index])
    header = [None, *_HEADER.finditer(text, max(0, call.start - 3000), call.start)][-1]
    if header is None or not _NAME.fullmatch(name):
        return {}
    words = (header["words"] or header["parameters"] or "").split(",")
    for position, word in enumerate(words):
        if re.search(rf"\b{name}\s*(?:=.*)?$", word.strip()):
            found = header["macro"] or header["name"]
            return {} if found in ("if", "while", "for", "main") else {found: position}
    return {}
