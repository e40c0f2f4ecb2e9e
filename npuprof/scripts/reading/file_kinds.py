"""Detection and reading of files by kind: one row per kind."""

from __future__ import annotations

import os
import re
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from npuprof.catalog import build_finding
from npuprof.model import LIKELY, Finding, Place, Record
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.python.parsing import LARGEST_SCRIPT, find_misfit
from npuprof.scripts.reading.variable_files import (
    decode_text,
    mark_placeholders,
    set_others_apart,
    settle_exports,
)
from npuprof.scripts.script_records import ImportedFile, ScriptSetting
from npuprof.scripts.steps import (
    MOST_STEPS,
    SETTING_STEPS,
    TooManySteps,
    count_steps,
    limit_steps,
)


class Kind(Record):
    """One kind of file.

    ``endings`` are suffixes, ``named`` full names, ``programs`` interpreters, ``begins`` matches
    the content.

    A kind without ``read`` is not supported: named files are reported, files below a folder
    skipped. ``export`` are the flags with which ``npuprof env`` writes such a file.

    ``read`` returns the content of a text (Python: bytes), ``mentions`` whether bytes can contain
    settings, without parsing. Both are ``module:function`` in this package, imported on first use.
    ``shown`` is the name in help texts. ``holds_blocks`` kinds can contain blocks of presets.
    ``data`` files serve many purposes: below a folder, large or unreadable ones are skipped or only
    noted. ``docs`` kinds are read below a folder only on request. For kinds with imports, ``calls``
    is ``mentions`` for called functions and for options of TensorFlow 2 created there.
    """

    shown: str
    read: str = ""
    mentions: str = ""
    endings: tuple[str, ...] = ()
    named: str = ""
    programs: bytes = b""
    begins: bytes = b""
    holds_blocks: bool = False
    data: bool = False
    docs: bool = False
    calls: str = ""
    export: str = ""


#: In order of detection: a known suffix decides, else the first kind that matches the name or the
#: content.
KINDS: dict[str, Kind] = {
    "python": Kind(
        "Python",
        "reading.python_scripts:import_python",
        "reading.python_scripts:mentions_python_setting",
        (".py", ".pyw", ".pyi"),
        programs=rb"python",
        begins=rb"(?:\s|#.*\n)*+(?:import|from)\s+\w[\w.]*(?:\s+import\b|\s+as\b|,|\s*\n)",
        holds_blocks=True,
        calls="reading.python_scripts:calls_python_settings",
    ),
    "shell": Kind(
        "shell",
        "reading.shell_scripts:import_shell_script",
        "reading.shell_scripts:mentions_setting",
        (".sh", ".bash", ".ksh", ".zsh", ".sbatch", ".slurm"),
        programs=rb"\b(?:ba|z|k|da)?sh\b",
        begins=rb"(?:.*\n)*?[ \t]*export[ \t]+[A-Za-z_]\w*=",
        holds_blocks=True,
        calls="reading.shell_scripts:sources_settings",
    ),
    "fish": Kind("fish scripts", endings=(".fish",), programs=rb"\bfish\b", export="--shell fish"),
    "csh": Kind(
        "csh scripts", endings=(".csh", ".tcsh"), programs=rb"\bt?csh\b", export="--shell tcsh"
    ),
    "pwsh": Kind(
        "PowerShell scripts", endings=(".ps1",), programs=rb"\bpwsh\b", export="--shell pwsh"
    ),
    "notebook": Kind(
        "notebooks",
        "reading.notebook:import_notebook",
        "reading.notebook:mentions_notebook_setting",
        (".ipynb",),
        begins=rb'\s*\{\s*"cells"',
        data=True,
    ),
    "docker": Kind(
        "Dockerfiles",
        "reading.docker:import_dockerfile",
        "reading.shell_scripts:mentions_setting",
        (".dockerfile",),
        r"(?:Docker|Container)file.*",
        begins=rb"(?:\s|#.*\n|ARG[ \t].*\n)*+FROM[ \t]+\S",
        export="--format docker",
    ),
    "yaml": Kind(
        "YAML",
        "reading.markdown:import_yaml_page",
        "reading.configs:mentions_config",
        (".yaml", ".yml"),
        data=True,
    ),
    "json": Kind(
        "JSON",
        "reading.configs:import_json",
        "reading.configs:mentions_config",
        (".json",),
        begins=rb'\s*\{(?!\s*"cells")',
        data=True,
    ),
    "markdown": Kind(
        "Markdown",
        "reading.markdown:import_markdown",
        "reading.markdown:mentions_guide",
        (".md", ".markdown"),
        data=True,
        docs=True,
    ),
    "unit": Kind(
        "systemd units",
        endings=(".service",),
        begins=rb"(?:\s|[#;].*\n)*+\[(?:Unit|Service)\]",
        export="--format systemd",
    ),
    "env": Kind(
        "env files",
        "reading.env_files:import_env_file",
        "python.environ:mentions_variable",
        (".env", ".dotenv"),
        r".*\.(?:dot)?env(?:\.[\w-]+)?",
        begins=rb"(?:\s|#.*\n)*+[A-Za-z_]\w*=\S.*\n(?:(?:#.*|[A-Za-z_]\w*(?:=|<<).*)?(?:\n|\Z))",
        holds_blocks=True,
    ),
}
_UNKNOWN = Kind("")
#: The path of standard input without a name.
STDIN = "<stdin>"
_BY_ENDING = {ending: name for name, kind in KINDS.items() for ending in kind.endings}
_BY_NAME = {name: re.compile(kind.named) for name, kind in KINDS.items() if kind.named}


def describe_kinds() -> str:
    """Return the kinds of files that are read, for help texts."""
    *first, last = (kind.shown for kind in KINDS.values() if kind.read)
    return f"{', '.join(first)} and {last}"


@cache
def _load_function(reference: str) -> Any:
    """Return a function of this package by ``module:function``."""
    module, _, function = reference.partition(":")
    return getattr(import_module(f"npuprof.scripts.{module}"), function)


@lru_cache(1)  # called several times for each file
def detect_named_kind(path: str) -> str:
    """Return the kind of a file by name, empty if unknown."""
    ending = os.path.splitext(path)[1].lower()
    base = os.path.basename(path)
    # to splitext, ".env" is a name without an ending
    if by_ending := _BY_ENDING.get(ending) or _BY_ENDING.get(base.lower()):
        return by_ending
    return next((name for name, pattern in _BY_NAME.items() if pattern.fullmatch(base)), "")


def detect_script_kind(path: str, data: bytes, by_text: bool = False) -> str:
    """Return the kind of a file (a key of ``KINDS``), empty if no reader supports it.

    With ``by_text``, unknown names are detected by content; formats common to many kinds, such as
    exports, come last.
    """
    if named_kind := detect_named_kind(path):
        return named_kind
    if data.startswith(b"#!") and (by_text or not os.path.splitext(path)[1]):
        line = data[:200].partition(b"\n")[0]
        for name, kind in KINDS.items():
            if kind.programs and re.search(kind.programs, line):
                return name
        # another interpreter: its text may look like any of these
        return ""
    if by_text:
        for name, kind in reversed(KINDS.items()):
            if kind.begins and re.match(kind.begins, data[:2000]):
                return name
    return ""


def is_script_candidate(path: str, with_blocks: bool = False, with_docs: bool = False) -> bool:
    """Return whether a file below a folder is worth opening, by its name.

    With ``with_blocks``, only kinds with blocks; documentation only with ``with_docs``.
    """
    kind = KINDS.get(detect_named_kind(path))
    if kind is None:
        # such scripts name their program in the first line
        return not os.path.splitext(path)[1]
    is_documentation = kind.docs and not with_docs
    if with_blocks or not kind.read or is_documentation or path.endswith(".schema.json"):
        return kind.holds_blocks
    try:
        return not kind.data or os.path.getsize(path) <= LARGEST_SCRIPT
    except OSError:
        return True  # opening it reports why it cannot be read


def may_hold_settings(path: str, data: bytes) -> bool:
    """Return whether a file can contain settings, without parsing it."""
    kind = KINDS.get(detect_script_kind(path, data))
    if kind is not None and not kind.read:
        return False
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data:
        # reported as unsupported, with any content; Dockerfile.enc may be encrypted
        return kind not in (None, KINDS["docker"]) and not kind.data
    has_block = b">>> npuprof " in data and (kind is None or kind.holds_blocks)
    return has_block or (kind is not None and _load_function(kind.mentions)(data))


def may_call_settings(path: str, data: bytes, modules: Modules) -> bool:
    """Return whether a file can call functions of its tree with settings, without parsing it."""
    kind = KINDS.get(detect_script_kind(path, data), _UNKNOWN)
    if not kind.calls or b"\0" in data:
        return False
    try:
        with limit_steps():
            return _load_function(kind.calls)(path, data, modules)  # type: ignore[no-any-return]
    except TooManySteps:
        return True  # reading it reports that


def read_script(path: str, data: bytes, named: bool, modules: Modules | None) -> ImportedFile:
    """Return the content of a file for any bytes; faults are in ``problems``, nothing is raised.

    Locations refer to the text that was read: for a notebook, ``part_locations`` maps them to the
    file. An unreadable data file that was not ``named`` has only a note. With ``modules``, imported
    files of its tree are included.
    """
    kind = KINDS.get(detect_script_kind(path, data, by_text=True), _UNKNOWN)
    if not kind.read:
        what, hint = _describe_unread_kind(path, kind, data)
        why = "The settings in this file are not checked."
        unread = build_finding("NP801", what, why, hint, where=Place(path))
        is_reported = named and not path.endswith(".toml")  # verbs report more about presets
        return ImportedFile(path, problems=(unread,) if is_reported else ())
    problems: list[Finding] = []
    # Python decodes by its coding cookie
    text = data if kind is KINDS["python"] else decode_text(path, data, problems)
    imported = ImportedFile(path)
    if text is not None:
        read = _load_function(kind.read)
        try:
            with limit_steps():
                found = read(path, text, modules) if kind.calls else read(path, text)
                count_steps(SETTING_STEPS * (len(found.settings) + len(found.sites)))
            imported = settle_exports(set_others_apart(found))
            imported = imported._replace(settings=tuple(mark_placeholders(imported.settings)))
        except TooManySteps:
            what = f"the file is not read: that takes more than {MOST_STEPS:,} steps"
            why = "The limit keeps one file, often a generated one, from stopping all others."
            problems.append(build_finding("NP801", what, why, "split it", where=Place(path)))
    if (
        kind is KINDS["shell"]
        and imported.settings
        and 0 < data.count(b"\n") == data.count(b"\r\n")
    ):
        what = "lines end with a carriage return, and a shell reads it as part of the last word"
        why, hint = "Names of commands and values are wrong.", "convert the file, as with dos2unix"
        where = Place(path, 1)
        problems.append(build_finding("NP844", what, why, hint, where=where, **LIKELY))
    if imported.part_locations is not None:  # then line numbers of the file are meaningless
        problems = [problem._replace(where=Place(path)) for problem in problems]
    problems += imported.problems
    if not named and kind.data:
        problems = [
            each if each.code == "NP844" else each._replace(severity="info") for each in problems
        ]
    return imported._replace(problems=tuple(problems))


def _describe_unread_kind(path: str, kind: Kind, data: bytes) -> tuple[str, str]:
    """Return message and hint for an unsupported kind."""
    if kind is not _UNKNOWN:
        new = "npuprof new NAME --set env.VARIABLE=VALUE"
        hint = (
            f"put its variables into a preset: {new}, and "
            f"export that: npuprof env NAME {kind.export}"
        )
        return f"{kind.shown} are not read", hint
    if misfit := find_misfit(data):
        return misfit.message, misfit.hint
    hint = "give it the ending of its kind: .py, .sh, .env"
    if path == STDIN:
        hint = "name its file: npuprof scan - --stdin-filename run.sh"
    return "the kind of the file is not known", hint


def import_script(
    path: str, data: bytes, named: bool = True, modules: Modules | None = None
) -> ImportedFile:
    """Return the content of a file, with locations in the file."""
    return place_settings(read_script(path, data, named, modules))


def place_settings(imported: ImportedFile) -> ImportedFile:
    """Return the content of a file with locations mapped to the file."""
    parts = imported.part_locations
    if parts is None:
        return imported

    def locate(setting: ScriptSetting) -> ScriptSetting:
        location = parts.find_location(setting.line, setting.column)
        return setting.with_location(line=location.line, column=location.column, part=location.part)

    sites = []
    for site in imported.sites:
        location = parts.find_location(site.line, site.column)
        sites.append(site._replace(line=location.line, column=location.column))
    return imported._replace(
        settings=tuple(map(locate, imported.settings)),
        other_variables=tuple(map(locate, imported.other_variables)),
        sites=tuple(sites),
        problems=tuple(map(parts.locate_finding, imported.problems)),
        part_locations=None,
    )
