"""Notebooks: code cells as one script, IPython syntax, and shell cells."""

from __future__ import annotations

import re
from io import StringIO
from operator import attrgetter

from npuprof.catalog import build_finding
from npuprof.model import Finding, Place
from npuprof.scripts.python.parsing import Script
from npuprof.scripts.reading.python_scripts import import_python, mentions_python_setting
from npuprof.scripts.reading.shell_scripts import find_shell_settings, mentions_setting
from npuprof.scripts.reading.trees import Node, parse_json
from npuprof.scripts.script_records import (
    ImportedFile,
    PartLine,
    PartLocations,
    ScriptSetting,
    Site,
)

#: The lines in which Python looks for a coding cookie; a notebook has none.
_BEFORE = 2
_CELL_MAGIC = re.compile(r"\s*%%(!|\w+)")
_PYTHON_CELLS = {"time", "timeit", "capture", "prun", "debug", "memit", "mprun", "snakeviz"}
_SHELL_CELLS = {"bash", "sh", "!", "sx", "system"}
#: An IPython line, or a name with a question mark.
_MAGIC_LINE = re.compile(
    r"(?P<indent>\s*)(?P<target>(?:[A-Za-z_][\w., ]*=\s*)?)(?P<marker>!!?|%(?=[A-Za-z_])|\?)"
    r"(?P<rest>.*)|\s*[\w.%]+\?+\s*"
)
_ENV_MAGIC = re.compile(r"(?:set_)?env[ \t]+(?P<name>[A-Za-z_]\w*)(?:=|[ \t]+)(?P<value>.*)")
_TIME_MAGIC = re.compile(r"time(?:it)?[ \t]+(?P<statement>[^-].*)")
_PICTURE = re.compile(rb'"image/[^"]*":\s*"[^"]*"')
_SHELL_REASON = "applies to this cell's shell only: the notebook's Python does not see it"


def mentions_notebook_setting(data: bytes) -> bool:
    """Return whether a notebook can contain settings."""
    code = _PICTURE.sub(b"", data)
    return mentions_python_setting(code) or mentions_setting(code)


def import_notebook(path: str, text: str) -> ImportedFile:
    """Return the content of a notebook.

    Locations refer to the joined cells, and ``part_locations`` maps them to the file.
    """
    problems: list[Finding] = []
    tree = parse_json(path, text, problems)
    if tree is None:
        return ImportedFile(path, problems=tuple(problems))
    cells = tree.find("cells")
    if cells is None or cells.items is None:
        what, why = "the file is JSON, and no notebook", "It has no list of cells."
        return ImportedFile(
            path, problems=(build_finding("NP801", what, why, "", where=Place(path)),)
        )
    language = (
        tree.text("metadata", "kernelspec", "language")
        or tree.text("metadata", "language_info", "name")
        or "python"
    )
    if language.lower() not in ("python", "ipython"):
        what = f"the notebook is in {language}, which is not read"
        return ImportedFile(
            path, problems=(Finding("NP801", what, "", "", where=Place(path), severity="info"),)
        )
    reading = _NotebookReading(path)
    for number, cell in enumerate(cells.items, 1):
        if cell.text("cell_type") == "code" and (source := cell.find("source")):
            reading.add_cell(number, source)
    imported = import_python(path, "\n".join(reading.code).encode(errors="replace"))
    settings = sorted((*imported.settings, *reading.settings), key=attrgetter("line", "column"))
    return imported._replace(
        settings=tuple(settings),
        sites=(*imported.sites, *reading.sites),
        problems=(*reading.problems, *imported.problems),
        part_locations=PartLocations(reading.lines, "\n".join(reading.shown)),
    )


class _NotebookReading:
    """The joined cells: the Python code, the shell commands, and the original lines."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.code = [""] * _BEFORE
        self.shown = [""] * _BEFORE
        self.lines = [PartLine(1, 1, "", 0, 0)] * _BEFORE
        self.settings: list[ScriptSetting] = []
        self.sites: list[Site] = []
        self.problems: list[Finding] = []

    def add_cell(self, number: int, source: Node) -> None:
        """Add one cell."""
        texts = self._place_lines(number, source)
        first = len(self.code) + 1
        self.shown += texts
        magic_index = next((index for index, text in enumerate(texts) if text.strip()), 0)
        magic = _CELL_MAGIC.match(texts[magic_index]) if texts else None
        if magic is None:
            self.code += self._read_python_cell(number, first, texts)
            return
        below = texts[magic_index + 1 :]
        if magic[1] in _PYTHON_CELLS:
            blank = [""] * (magic_index + 1)  # keeps the line numbers
            self.code += self._read_python_cell(number, first, [*blank, *below])
            return
        self.code += [""] * len(texts)
        if magic[1] in _SHELL_CELLS:
            self._read_shell(first + magic_index + 1, 1, below)
        elif mentions_notebook_setting("\n".join(below).encode(errors="replace")):
            what = f"the cell is for %%{magic[1]}, which is not read"
            why = "Its settings were not checked."
            self._add_problem(first + magic_index, what, why, "", "info")

    def _place_lines(self, cell: int, source: Node) -> list[str]:
        """Return the lines of a cell, and record the start of each in the file."""
        items = source.items if source.items is not None else [source]
        items = [item for item in items if isinstance(item.value, str)]
        # as Python ends lines, also at a lone carriage return
        lines = list(StringIO("".join(item.value for item in items), newline=None))
        if len(lines) == len(items):  # Jupyter's own layout: a JSON string for each line
            for number, (item, line) in enumerate(zip(items, lines, strict=True), 1):
                self.lines.append(PartLine(*item.position, line, cell, number))
        else:
            cell_text, start = "".join(lines), 0
            for number, line in enumerate(lines, 1):
                item = items[0]
                self.lines.append(PartLine(*item.position, cell_text, cell, number, start))
                start += len(line)
        return [line.removesuffix("\n") for line in lines]

    def _read_python_cell(self, number: int, first: int, texts: list[str]) -> list[str]:
        """Return the code of a cell, as blank lines if it is not Python."""
        plain = "\n".join(texts)
        # most cells have no IPython syntax, and "%" and "!" may be in texts of several lines
        if Script("", plain.encode(errors="replace")).tree is not None:
            return texts
        code = self._replace_magics(first, texts)
        script = Script(self.path, "\n".join(code).encode(errors="replace"))
        if script.tree is not None:
            return code
        # Script reports several faults: the one with a line says where
        fault = max(script.problems, key=attrgetter("line"))
        line = first + min(fault.line or 1, len(texts)) - 1
        what = fault.message.replace("the file", f"cell {number}", 1)
        why = "Nothing in the cell was read; the other cells were."
        self._add_problem(line, what, why, "correct it there")
        return [""] * len(texts)

    def _replace_magics(self, first: int, texts: list[str]) -> list[str]:
        """Return the lines of a cell with IPython syntax replaced by Python, line by line."""
        code: list[str] = []
        while len(code) < len(texts):
            index = last = len(code)
            match = _MAGIC_LINE.fullmatch(texts[index])
            if match is None:
                code.append(texts[index])
                continue
            while texts[last].endswith("\\") and last + 1 < len(texts):
                last += 1
            if match["marker"] in ("!", "!!"):
                # a command continued with backslashes is one command
                command = [match["rest"], *texts[index + 1 : last + 1]]
                self._read_shell(first + index, match.start("rest") + 1, command)
            code += [_translate_magic(match), *[""] * (last - index)]
        return code

    def _read_shell(self, line: int, column: int, texts: list[str]) -> None:
        """Add the settings of shell lines, which begin at a line and column."""
        settings, sites = find_shell_settings(
            self.path, "\n".join(texts), (line, column), _SHELL_REASON
        )
        self.settings += settings
        self.sites += sites

    def _add_problem(
        self, line: int, what: str, why: str, hint: str, severity: str = "warning"
    ) -> None:
        self.problems.append(
            Finding("NP801", what, why, hint, where=Place(self.path, line), severity=severity)
        )


def _translate_magic(match: re.Match[str]) -> str:
    """Return the Python equivalent of an IPython line.

    ``%env X=1`` sets a variable, ``%time`` runs the rest.
    """
    indent, target, marker, rest = match.groups(default="")
    if marker == "%" and not target and (assigned := _ENV_MAGIC.fullmatch(rest.strip())):
        value = repr(assigned["value"])
        if "$" in value or "{" in value:  # IPython expands names and expressions of Python
            value = f"get_ipython().var_expand({value})"
        return f'{indent}os.environ["{assigned["name"]}"] = {value}'
    if marker == "%" and (timed := _TIME_MAGIC.fullmatch(rest)):
        return f"{indent}{target}{timed['statement']}"
    return f"{indent}{target}None" if target else f"{indent}pass"
