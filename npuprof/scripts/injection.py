"""Writes blocks into scripts: places new ones, refreshes or compares existing ones; all or none."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable

from npuprof.document.keys import is_visible
from npuprof.model import Finding, NpuprofError, Place, Record, build_error
from npuprof.report import Answer
from npuprof.report.findings import format_findings, format_severity_counts
from npuprof.report.isolating import isolate_faults
from npuprof.report.text import format_count
from npuprof.scripts import blocks
from npuprof.scripts.block_files import FileBlocks, Writing, write_blocks
from npuprof.scripts.blocks import Injector
from npuprof.scripts.import_resolution import open_modules
from npuprof.scripts.python.expressions import name_callee
from npuprof.scripts.python.parsing import Script
from npuprof.scripts.reading import import_script
from npuprof.scripts.reading.file_kinds import KINDS, detect_script_kind
from npuprof.scripts.replacing.edits import NEW, Cut, Lines, open_blocks
from npuprof.scripts.replacing.plan import plan_replacement
from npuprof.system import writing
from npuprof.system.files import read_file_content, read_plain_file
from npuprof.system.locks import lock_folders


class InjectionRequest(Record):
    """The request for a block: preset, target, line, release, product, frameworks."""

    file: str
    spec: str
    target: str | None
    line: int | None
    cann: str | None
    product: str | None
    framework: str = ""

    def list_facts(self, *names: str) -> dict[str, str]:
        """Return the given fields of the request, as facts of the block's header."""
        return {name: value for name in names if (value := getattr(self, name))}


def inject_block(
    requested: InjectionRequest, injector: Injector, how: Writing, replacing: bool
) -> Answer:
    """Refresh the blocks of a preset in a script, or write its first one.

    With ``replacing`` in place of other lines.

    Raises NpuprofError, and then writes nothing.
    """
    file = requested.file
    if not is_visible(requested.spec) or not re.fullmatch(r"\S+", requested.spec):
        what = f"{requested.spec!r} cannot be used in the mark of a block"
        why = "A mark contains one word of visible characters."
        raise _build_place_error(
            file, what, why, "give the preset a name without blanks and hidden characters"
        )
    with lock_folders([os.path.dirname(os.path.realpath(file))]):
        return (_replace_lines if replacing else _inject_into_file)(
            requested, injector, how, read_file_content(file)
        )


def _inject_into_file(
    requested: InjectionRequest, injector: Injector, how: Writing, data: bytes
) -> Answer:
    file = requested.file
    facts = requested.list_facts(*blocks.CONTEXT_FACTS, "target")
    marked = blocks.find_blocks(file, data)
    waiting = [
        block
        for block in marked
        if block.spec == requested.spec or (block.spec == "?" and not block.text.strip())
    ]
    if requested.line is None and waiting:
        changes = [
            injector.refresh_block(
                block, _choose_facts(file, data, block.facts | facts), requested.spec
            )
            for block in waiting
        ]
        return write_blocks({file: FileBlocks(data, data, changes)}, how)
    _require_fitting_target(file, data, _choose_facts(file, data, facts)["target"])
    # report its errors first
    injector.resolve_config(requested.spec, facts, requested.target or "")
    place = _find_place(requested, data)
    line = data.count(b"\n", 0, place.start)
    if around := [block for block in marked if block.has_line(line)]:
        what = f"line {line + 1} is inside the block of {around[0].spec}"
        why = "A block inside another could never be refreshed."
        raise _build_place_error(file, what, why, "name a line outside, or omit --line to refresh")
    new = open_blocks(data, [place])
    block = next(block for block in blocks.find_blocks(file, new) if block.spec == NEW)
    change = injector.refresh_block(
        block, _choose_facts(file, data, place.facts | facts), requested.spec
    )
    missing = ", ".join(blocks.find_missing_names(data, change.text))
    notes = [f"the block uses {missing}, which {file} does not import"] if missing else []
    answer = write_blocks({file: FileBlocks(data, new, [change])}, how)
    return answer._replace(notes=(*notes, *answer.notes))


def _replace_lines(
    requested: InjectionRequest, injector: Injector, how: Writing, data: bytes
) -> Answer:
    """Replace the hand-written lines of a script by a block of the preset."""
    modules = open_modules([])
    before = import_script(requested.file, data, modules=modules)
    plan = plan_replacement(
        data, requested.spec, injector, requested.list_facts(*blocks.CONTEXT_FACTS), modules, before
    )
    nothing = Answer(
        None,
        (f"nothing in {requested.file} is hand-written and equals {requested.spec}: see --check",),
    )
    answer = write_blocks({requested.file: plan.file}, how) if plan.file is not None else nothing
    return answer._replace(notes=(*plan.notes, *plan.other_configurations, *answer.notes))


def check_blocks(paths: list[str], injector: Injector, only: str | None = None) -> Answer:
    """Report whether blocks are up to date, optionally only those of one preset.

    The exit code is 1 if one is not, or if there are none.
    """
    changes = [
        (path, change)
        for path, file in _refresh_files(paths, injector, only).items()
        for change in file.changes
    ]
    findings = [
        finding
        for path, change in changes
        for finding in blocks.check_block_state(path, change.block, change.state)
    ]
    note = (
        f"{format_count(len(changes), 'block')} looked at: "
        f"{format_severity_counts(findings) or 'all up to date'}"
    )
    is_missing = only is not None and not changes
    if is_missing:
        note = (
            f"{', '.join(paths)} has no block of {only}; "
            f"npuprof inject {paths[0]} {only} writes one"
        )
    return Answer(format_findings(findings), (note,), 1 if findings or is_missing else 0)


def refresh_blocks(paths: list[str], injector: Injector, how: Writing, below: str) -> Answer:
    """Refresh all blocks of some files; ``below`` is the folder in which they were found.

    Raises NpuprofError, and then writes nothing.

    Files reached by a link out of that folder are skipped and reported.
    """
    inside, problems = _select_files_below(filter(_may_hold_block, paths), below)
    with lock_folders(os.path.dirname(os.path.realpath(path)) for path in inside):
        answer = write_blocks(_refresh_files(inside, injector, None), how, below=below)
    return answer._replace(problems=(*answer.problems, *problems))


def _select_files_below(paths: Iterable[str], below: str) -> tuple[list[str], list[Finding]]:
    """Return files without duplicates, and findings about those outside the folder.

    Links may lead there.
    """
    targets: dict[str, str] = {}
    problems: list[Finding] = []
    for path in paths:
        try:
            targets.setdefault(writing.find_target(path, below), path)
        except NpuprofError as error:
            problems += [
                finding._replace(severity="warning", why="It is left as it is.")
                for finding in error.findings
            ]
    return list(targets.values()), problems


def _may_hold_block(path: str) -> bool:
    """Return whether a file has a block mark.

    Unreadable files count, and are reported when they are read.
    """
    try:
        return b" npuprof" in read_plain_file(path)
    except OSError:
        return True


def _choose_facts(file: str, data: bytes, facts: dict[str, str]) -> dict[str, str]:
    """Return the facts of a block, with target and shell from the file if its header lacks them."""
    shell = blocks.detect_shell(file, data)
    facts = {
        "target": "env"
        if shell or detect_script_kind(file, data, by_text=True) == "env"
        else "session"
    } | facts
    return {"shell": shell or "bash"} | facts if facts["target"] == "env" else facts


def _require_fitting_target(file: str, data: bytes, target: str) -> None:
    """Raise NpuprofError (NP818) if a file's language differs from the target's.

    The language is Python, or shell assignments.
    """
    kind = KINDS.get(detect_script_kind(file, data, by_text=True))
    if kind is None:
        return
    shell = blocks.detect_shell(file, data)
    if not kind.holds_blocks and not shell:
        hint = (
            f"print the code and copy it: npuprof env SPEC {kind.export}"
            if kind.export
            else "name a Python or shell script"
        )
        raise _build_place_error(
            file,
            f"{kind.shown} cannot contain a block",
            "A block is Python, or assignments of a shell.",
            hint,
        )
    if (target == "env") != bool(shell or kind is KINDS["env"]):
        what = (
            f"a block of {target} is {'assignments of a shell' if target == 'env' else 'Python'}, "
            f"and {file} is {kind.shown}"
        )
        raise _build_place_error(file, what, "", "omit --to, or name another file")


def _refresh_files(paths: list[str], injector: Injector, only: str | None) -> dict[str, FileBlocks]:
    """Return the blocks of each file as they would be written now.

    Raises NpuprofError with the faults of all files.
    """
    files: dict[str, FileBlocks] = {}
    problems: list[Finding] = []
    for path in paths:
        try:
            with isolate_faults(path, problems):
                data = read_file_content(path)
                marked = [
                    block for block in blocks.find_blocks(path, data) if only in (None, block.spec)
                ]
                changes = [
                    injector.refresh_block(block, _choose_facts(path, data, block.facts))
                    for block in marked
                ]
                files |= {path: FileBlocks(data, data, changes)} if changes else {}
        except NpuprofError as error:
            problems += error.findings
    if problems:
        raise NpuprofError(problems)
    return files


def _find_place(requested: InjectionRequest, data: bytes) -> Cut:
    """Return the location of a new block.

    It goes before the named line, else where the script creates its config.
    """
    file, line = requested.file, requested.line
    lines = Lines(data)
    shell = _choose_facts(file, data, {})["target"] == "env"
    if line is None and shell:
        return Cut(min(lines.starts[1], len(data)) if data.startswith(b"#!") else 0, b"", {}, ())
    script = None if shell else Script(file, data)
    statements = _find_config_statements(script.tree) if script and script.tree else []
    alias = _find_tensorflow_alias(script.tree) if script and script.tree else "tf"
    if line is not None:
        if not 1 <= line <= len(lines.lines):
            what = f"{file} has {format_count(len(lines.lines), 'line')}, and none is {line}"
            raise _build_place_error(file, what, "", "name a line of the file")
        before = [variable for node, variable in statements if (node.end_lineno or 0) < line]
        return _build_place(lines, line, line, before[-1] if before else "config", alias)
    if script is not None and script.tree is None:
        raise NpuprofError(script.problems)
    node, variable = _choose_config(requested, statements)
    if lines.lines[node.lineno - 1][len(lines.find_indent(node.lineno)) : node.col_offset].strip():
        raise _build_place_error(
            file, "the config is made in the middle of a line", "", "name the line with --line"
        )
    return _build_place(lines, (node.end_lineno or node.lineno) + 1, node.lineno, variable, alias)


def _choose_config(
    requested: InjectionRequest, statements: list[tuple[ast.Assign, str]]
) -> tuple[ast.Assign, str]:
    """Return the only statement that creates a config, and its name.

    Raises NpuprofError if there is not exactly one, or none is needed.
    """
    if requested.target is not None and not blocks.works_on_config(requested.target):
        why = f"The script does not show it for {requested.target}."
        raise _build_place_error(
            requested.file, "where should the block go?", why, "name the line with --line"
        )
    if len(statements) != 1:
        places = ", ".join(f"line {node.lineno}" for node, _ in statements)
        what = f"{len(statements)} of them ({places})" if statements else "no tf.ConfigProto"
        why = (
            f"A block goes after the only line that creates the config; the script creates {what}."
        )
        raise _build_place_error(
            requested.file,
            f"where should the block of {requested.spec} go?",
            why,
            "name the line with --line",
        )
    return statements[0]


def _build_place(lines: Lines, before: int, like: int, variable: str, alias: str) -> Cut:
    """Return the location before a line, from 1, indented like another one.

    Its facts are the local names of the config and of TensorFlow.
    """
    start = min(lines.starts[before - 1], len(lines.data))
    facts = {"variable": variable} if variable != "config" else {}
    return Cut(
        start, lines.find_indent(like), facts | ({"tensorflow": alias} if alias != "tf" else {}), ()
    )


def _find_tensorflow_alias(tree: ast.Module) -> str:
    """Return the import name of TensorFlow, or of its version 1.

    It is ``tf`` unless only another name is used.
    """
    names = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(imported):
                names += [
                    alias.asname or alias.name
                    for alias in imported
                    if alias.name in ("tensorflow", "tensorflow.compat.v1")
                ]
            case ast.ImportFrom("tensorflow.compat", imported):
                names += [alias.asname or alias.name for alias in imported if alias.name == "v1"]
    return "tf" if "tf" in names or not names else names[0]


def _build_place_error(file: str, what: str, why: str, hint: str) -> NpuprofError:
    return build_error("NP818", what, why, hint, where=Place(file))


def _find_config_statements(tree: ast.Module) -> list[tuple[ast.Assign, str]]:
    """Return the statements that create a ConfigProto, with its names."""
    statements = []
    for node in ast.walk(tree):
        match node:
            case ast.Assign([ast.Name() | ast.Attribute() as target], ast.Call() as call) if (
                name_callee(call) == "ConfigProto"
            ):
                statements.append((node, ast.unparse(target)))
    return sorted(statements, key=lambda statement: statement[0].lineno)
