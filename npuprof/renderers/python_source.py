"""Python source as black would format it, for the forms of rendered code.

Compatible with Python 3.7.
"""

from __future__ import annotations

from npuprof.document.keys import is_no_number, is_visible
from npuprof.model import Any
from npuprof.report.text import escape_code_point, measure_width

WIDTH = 88
#: The folder of the rendered file, which contains its sidecar files.
SCRIPT_FOLDER = "os.path.dirname(os.path.abspath(__file__))"


def format_literal(value: Any) -> str:
    """Return a value as a Python literal.

    Texts in double quotes unless single ones need fewer escapes.
    """
    if isinstance(value, str):
        return _quote_python_string(value)
    if isinstance(value, list):
        return f"[{', '.join(map(format_literal, value))}]"
    if isinstance(value, dict):
        items = (f"{format_literal(name)}: {format_literal(item)}" for name, item in value.items())
        return f"{{{', '.join(items)}}}"
    if is_no_number(value):
        return f'float("{value}")'
    return repr(value)


def _quote_python_string(text: str) -> str:
    if '"' not in text and "\\" not in text and is_visible(text):
        return f'"{text}"'
    quote = "'" if '"' in text and text.count('"') > text.count("'") else '"'
    escapes = {"\\": "\\\\", quote: f"\\{quote}"}
    body = "".join(
        escapes.get(char) or (char if is_visible(char) else escape_code_point(char))
        for char in text
    )
    return quote + body + quote


def format_statement(head: str, argument: str, tail: str, indent: str) -> list[str]:
    """Return ``head + argument + tail`` on one line, or broken after ``head`` if it is too long.

    ``head`` ends in an opening bracket, ``tail`` starts with the closing one. If even the head of
    an assignment is too long, its right side is put in brackets.
    """
    line = f"{indent}{head}{argument}{tail}"
    if measure_width(line) <= WIDTH:
        return [line]
    target, equals, right = head.rpartition(" = ")
    if equals and measure_width(f"{indent}{head}") > WIDTH:
        inner = format_statement(right, argument, tail, f"{indent}    ")
        return [f"{indent}{target} = (", *inner, f"{indent})"]
    return [f"{indent}{head}", f"{indent}    {argument}", f"{indent}{tail}"]


def format_assignment(target: str, value: str, indent: str) -> list[str]:
    """Return ``target = value``, with the value in brackets on its own line if needed."""
    line = f"{indent}{target} = {value}"
    # black adds no brackets if the value is too long inside them, too
    if measure_width(line) <= WIDTH or len(indent) + 4 + measure_width(value) > WIDTH:
        return [line]
    return [f"{indent}{target} = (", f"{indent}    {value}", f"{indent})"]


def format_call(argument: Any, indent: str = "", end: str = "") -> list[str]:
    """Return the lines of a call or an argument.

    A string is an argument. ``(head, body, tail)`` with a string body is broken if it is too long
    for a line; with a list of arguments, each gets its own line, and the trailing comma keeps black
    from joining them.
    """
    if isinstance(argument, str):
        return [f"{indent}{argument}{end}"]
    head, body, tail = argument
    if isinstance(body, str):
        return format_statement(head, body, f"{tail}{end}", indent)
    if not body:
        return [f"{indent}{head}{tail}{end}"]
    inner = [line for item in body for line in format_call(item, f"{indent}    ", ",")]
    return [f"{indent}{head}", *inner, f"{indent}{tail}{end}"]
