"""Notebooks: their code cells as one script, what IPython makes of lines that are no Python, and cells that a shell runs."""

from __future__ import annotations

import re

from npuprof.catalog import build_finding
from npuprof.model import Finding, Place
from npuprof.scripts.reading.found import FoundSetting, ImportedFile, Site
from npuprof.scripts.reading.places import PartLine, PartPlaces
from npuprof.scripts.reading.python import import_python, mentions_python_setting
from npuprof.scripts.reading.shell import find_shell_settings, mentions_setting
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.surfaces import env
from npuprof.scripts.reading.trees import Node, parse_json
from npuprof.scripts.reading.variables import decode_text

#: A declaration of an encoding counts in the first two lines of a script; a notebook is JSON, and has none.
_BEFORE = 2
_CELL_MAGIC = re.compile(r"\s*%%(!|\w+)[ \t]*(.*)")
_PYTHON_CELLS = {"time", "timeit", "capture", "prun", "debug", "memit", "mprun", "snakeviz"}
_SHELL_CELLS = {"bash", "sh", "!", "sx", "system"}
_SHELL_PROGRAM = re.compile(r"(?:\S*/)?(?:ba|da|z|k)?sh\b")
_WRITTEN_CELLS = {"writefile", "file"}
_SHELL_LINE = re.compile(r"(\s*)((?:[A-Za-z_][\w., ]*=\s*)?)!{1,2}(.*)")
_MAGIC_LINE = re.compile(r"(\s*)((?:[A-Za-z_][\w., ]*=\s*)?)%([A-Za-z_]\w*)[ \t]*(.*)")
_HELP_LINE = re.compile(r"(\s*)(?:\?{1,2}[\w.]+|[%\w.]+\?{1,2})\s*$")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|#.*")
_ENV_VALUE = re.compile(r"([A-Za-z_]\w*)(?:=|[ \t]+)(.*)")
_FILLED = re.compile(r"\$([A-Za-z_]\w*)")
_SHELL_REASON = "holds for this cell's shell only: the notebook's Python does not see it"
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")


def mentions_notebook_setting(data: bytes) -> bool:
    """Return whether a notebook can hold a setting."""
    return mentions_python_setting(data) or mentions_setting(data)


def import_notebook(path: str, data: bytes) -> ImportedFile:
    """Return what a notebook holds; places are those of its cells put together, and ``places`` leads from there to the file."""
    problems: list[Finding] = []
    text = decode_text(path, data, problems, "No program opens it as it stands; outputs are cleared with jupyter nbconvert --clear-output.")
    tree = parse_json(path, text, problems) if text is not None else None
    if text is None or tree is None:
        return ImportedFile(path, problems=tuple(problems))
    cells = _list_code_cells(tree)
    if cells is None:
        what, why = "the file is JSON, and no notebook", "It has no list of cells."
        return ImportedFile(path, problems=(*problems, build_finding("NP801", what, why, "", where=Place(path))))
    if (language := _find_language(tree)) != "python":
        what = f"the notebook is in {language}, which is not read"
        return ImportedFile(path, problems=(*problems, Finding("NP801", what, "", "", where=Place(path), severity="info")))
    reading = _NotebookReading(path, text.split("\n"))
    for number, cell in cells:
        reading.add_cell(number, cell)
    imported = import_python(path, "\n".join(reading.code).encode(errors="replace"))
    places = PartPlaces(reading.lines, "\n".join(reading.shown))
    found = tuple(sorted((*imported.found, *reading.found), key=lambda one: (one.line, one.column)))
    told = (*(one._replace(where=Place(path)) for one in problems), *reading.problems, *imported.problems)
    return imported._replace(found=found, sites=(*imported.sites, *reading.sites), problems=told, places=places)


def _list_code_cells(tree: Node) -> list[tuple[int, Node]] | None:
    """Return the sources of the code cells with their numbers, counted over all cells, of this form of the format or the one before."""
    cells = tree.find("cells")
    sheets = tree.find("worksheets")
    listed = cells.items if cells is not None else None
    if listed is None and sheets is not None and sheets.items is not None:
        listed = [cell for sheet in sheets.items if (inner := sheet.find("cells")) for cell in inner.items or ()]
    if listed is None:
        return None
    code = [
        (number, cell.find("source") or cell.find("input")) for number, cell in enumerate(listed, 1) if cell.text("cell_type") == "code"
    ]
    return [(number, source) for number, source in code if source is not None]


def _find_language(tree: Node) -> str:
    named = tree.text("metadata", "kernelspec", "language") or tree.text("metadata", "language_info", "name") or "python"
    return "python" if named.lower() in ("python", "ipython") else named


class _NotebookReading:
    """The cells one after the other: Python as it is run, what shells run, and the lines as they are written."""

    def __init__(self, path: str, file_lines: list[str]) -> None:
        self.path = path
        self.file_lines = file_lines
        self.code = [""] * _BEFORE
        self.shown = [""] * _BEFORE
        self.lines = [PartLine(1, 1, "", 0, 0)] * _BEFORE
        self.found: list[FoundSetting] = []
        self.sites: list[Site] = []
        self.problems: list[Finding] = []

    def add_cell(self, number: int, source: Node) -> None:
        """Take in one cell."""
        texts = self._place_lines(number, source)
        first = len(self.code) + 1
        self.shown += texts
        filled = next((place for place, text in enumerate(texts) if text.strip()), 0)
        magic = _CELL_MAGIC.match(texts[filled]) if texts else None
        if magic is None:
            self.code += self._read_python_cell(number, first, texts)
        elif magic[1] in _PYTHON_CELLS:
            self.code += self._read_python_cell(number, first, [*[""] * (filled + 1), *texts[filled + 1 :]])
        else:
            self.code += [""] * len(texts)
            if magic[1] in _SHELL_CELLS or (magic[1] == "script" and _SHELL_PROGRAM.match(magic[2])):
                self._read_shell(first + filled + 1, 1, texts[filled + 1 :])
            elif magic[1] in _WRITTEN_CELLS and env.mentions_variable("\n".join(texts).encode(errors="replace")):
                what = f"the cell is written to {magic[2].split()[-1] if magic[2].strip() else 'a file'} and not run here"
                self._add_problem(first + filled, what, "What it sets was not looked at.", "name that file", "info")

    def _place_lines(self, cell: int, source: Node) -> list[str]:
        """Return the lines of a cell, and remember where each begins in the file."""
        texts: list[str] = []
        joined = False
        for item in source.items if source.items is not None else [source]:
            if not isinstance(item.value, str):
                continue
            written = self.file_lines[item.line - 1]
            starts = [item.column, *_find_line_starts(written, item.column, item.end - 1), item.end - 1]
            for place, text in enumerate(item.value.split("\n")):
                text = text.removesuffix("\r").replace("\r", " ")
                if place == 0 and joined:
                    texts[-1] += text
                    continue
                if place and place == item.value.count("\n") and not text:
                    break
                at, end = starts[place : place + 2]
                texts.append(text)
                self.lines.append(PartLine(item.line, at + 1, written[at:end], cell, len(texts)))
            joined = bool(item.value) and not item.value.endswith("\n")
        return texts

    def _read_python_cell(self, number: int, first: int, texts: list[str]) -> list[str]:
        plain = "\n".join(texts)
        if Script("", plain.encode(errors="replace")).tree is not None:
            return texts
        code = self._replace_magics(first, texts)
        script = Script(self.path, "\n".join(code).encode(errors="replace"))
        if script.tree is not None:
            return code
        fault = next((one for one in script.problems if one.where is not None and one.where.line), None)
        what = (fault or script.problems[0]).message.replace("the file", f"cell {number}", 1)
        line = fault.where.line if fault is not None and fault.where is not None else 1
        self._add_problem(first + min(line, len(texts)) - 1, what, "Nothing in the cell was read; the other cells were.", "mend it")
        return [""] * len(texts)

    def _replace_magics(self, first: int, texts: list[str]) -> list[str]:
        """Return the lines of a cell with what only IPython understands made Python, line by line."""
        code: list[str] = []
        place = depth = 0
        while place < len(texts):
            text = texts[place]
            last = place
            match = help_line = None
            if depth <= 0:  # in brackets a line may well begin with a percent sign
                match = _SHELL_LINE.fullmatch(text) or _MAGIC_LINE.fullmatch(text)
                help_line = _HELP_LINE.fullmatch(text)
            if match:
                while texts[last].endswith("\\") and last + 1 < len(texts):
                    last += 1
            if match and match.re is _SHELL_LINE:
                self._read_shell(first + place, match.start(3) + 1, [match[3], *texts[place + 1 : last + 1]])
                code.append(f"{match[1]}{match[2]}None" if match[2] else f"{match[1]}pass")
            elif match:
                code.append(_translate_magic(match))
            elif help_line:
                code.append(f"{help_line[1]}pass")
            else:
                code.append(text)
                bare = _QUOTED.sub("", text)
                depth += sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))
            code += [""] * (last - place)
            place = last + 1
        return code

    def _read_shell(self, line: int, column: int, texts: list[str]) -> None:
        found, sites = find_shell_settings(self.path, "\n".join(texts), (line, column), _SHELL_REASON)
        self.found += found
        self.sites += sites

    def _add_problem(self, line: int, what: str, why: str, hint: str, severity: str = "warning") -> None:
        self.problems.append(Finding("NP801", what, why, hint, where=Place(self.path, line), severity=severity))


def _translate_magic(match: re.Match[str]) -> str:
    """Return the Python that a line magic stands for: ``%env X=1`` sets a variable, ``%time`` runs what stands behind it."""
    indent, target, name, rest = match.groups()
    given = _ENV_VALUE.fullmatch(rest.strip()) if name in ("env", "set_env") and not target else None
    if given:
        value = given[2]
        if "$" in value or "{" in value:  # IPython fills in names and expressions of Python
            filled = _FILLED.sub(r"{\1}", value)
            line = f'{indent}os.environ["{given[1]}"] = f{filled!r}'
            if Script("", line.strip().encode(errors="replace")).tree is None:
                line = f'{indent}os.environ["{given[1]}"] = input({value!r})'
            return line
        return f'{indent}os.environ["{given[1]}"] = {value!r}'
    if name in ("time", "timeit") and rest and not rest.startswith("-"):
        return f"{indent}{target}{rest}"
    return f"{indent}{target}None" if target else f"{indent}pass"


def _find_line_starts(written: str, at: int, end: int) -> list[int]:
    """Return where the lines of a text begin that is written as one string, but for the first."""
    return [escape.end() for escape in _ESCAPED.finditer(written, at, end) if escape[1] in ("n", "u000a", "u000A")]
