"""Text for terminals: colours, and visible forms of invisible characters."""

from __future__ import annotations

import re
from collections.abc import Collection

from npuprof.document.keys import is_visible


class Code(str):
    """A cell that is literal text: in Markdown and HTML it is set as code."""

    __slots__ = ()


class Markup(str):
    """A cell in the language of the back end that writes it, escaped already."""

    __slots__ = ()


def paint_text(text: str, code: str, coloured: bool) -> str:
    """Return text in a terminal colour."""
    return f"\033[{code}m{text}\033[0m" if coloured else text


def measure_width(text: str) -> int:
    """Return the terminal columns of a text: wide characters take two, combining marks none."""
    # nearly all texts: unicodedata is loaded for others only
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    columns = 0
    for char in text:
        if not combining(char):
            columns += 2 if east_asian_width(char) in "WF" else 1
    return columns


def count_rest(names: Collection[str], most: int = 3) -> str:
    """Return the first names of a list as visible text, with the number of further ones."""
    shown = ", ".join(map(escape_controls, list(names)[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def escape_controls(text: str) -> str:
    """Return text on one line with every invisible character escaped.

    File contents, names and messages can neither move the cursor nor change the text direction.
    """
    if is_visible(text):
        return text
    return "".join(
        char if is_visible(char) else "    " if char == "\t" else escape_code_point(char)
        for char in text
    )


def escape_lines(text: str) -> str:
    """Return text as ``escape_controls`` does, line by line: its line ends stay."""
    if is_visible(text) or is_visible(text.replace("\n", "")):
        return text
    return "\n".join(map(escape_controls, text.split("\n")))


def escape_file_line(line: str) -> str:
    """Return a line of a file with its invisible characters escaped, but tabs and line end.

    It remains a line of a patch, unless it hides something.
    """
    text = line.removesuffix("\n").removesuffix("\r")
    end = line[len(text) :] if line.endswith("\n") else "\n"
    return "\t".join(map(escape_controls, text.split("\t"))) + end


def escape_terminal_text(text: str, coloured: bool) -> str:
    """Return an answer escaped for a terminal; colours of a ``coloured`` text stay."""
    if not coloured:
        return "\n".join(escape_file_line(line).removesuffix("\n") for line in text.split("\n"))
    parts = re.split(r"(\033\[[0-9;]*m)", text)  # every second part is a colour
    parts[::2] = [escape_terminal_text(part, False) for part in parts[::2]]
    return "".join(parts)


def escape_code_point(char: str) -> str:
    """Return an invisible character as an escape that YAML and Python read."""
    return char.encode("unicode_escape").decode()


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 preset``, ``2 presets``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
