"""Writes blocks into scripts: places new ones, refreshes or compares existing ones; all or none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from npuprof.document.keys import is_visible
from npuprof.model import Finding, NpuprofError, Place, Record, build_error, raise_any
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
from npuprof.system import drop_empty, writing
from npuprof.system.files import read_file_content, read_plain_file
from npuprof.system.locks import lock_files


class InjectionRequest(Record):
    """The request for a block: preset, target, line, release, product, frameworks, axes."""

    file: str
    spec: str
    target: str | None
    line: int | None
    cann: str | None
    product: str | None
    framework: str
    axis: str

    def list_facts(self, *names: str) -> dict[str, str]:
        """Return the given fields of the request, as facts of the block's header."""
        return drop_empty({name: getattr(self, name) for name in names})


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
    inject = _replace_lines if replacing else _inject_into_file
    # the file is read under the lock: what is written must be based on its last text
    with lock_files(file):
        data = read_file_content(file)
        if b"\0" in data:
            what = f"{file} is no text"
            raise _build_place_error(file, what, "A block is lines of a script.", "name a script")
        return inject(requested, injector, how, data)


def _inject_into_file(
    requested: InjectionRequest, injector: Injector, how: Writing, data: bytes
) -> Answer:
    """Refresh the blocks of the preset in a file, or write a new one."""
    file, spec = requested.file, requested.spec
    facts = requested.list_facts(*blocks.CONTEXT_FACTS, "target")
    existing = blocks.find_blocks(file, data)
    # an empty block of "?" has no preset yet
    own = [
        block
        for block in existing
        if block.spec == spec or (block.spec == "?" and not block.text.strip())
    ]
    if requested.line is None and own:
        changes = []
        for block in own:
            block_facts = _choose_facts(file, data, block.facts | facts)
            changes.append(injector.refresh_block(block, block_facts, spec))
        return write_blocks({file: FileBlocks(data, data, changes)}, how)
    _require_fitting_target(file, data, _choose_facts(file, data, facts)["target"])
    # report its errors first
    injector.resolve_config(spec, facts, requested.target or "")
    location = _locate_block(requested, data)
    line = data.count(b"\n", 0, location.start)
    around = next((block for block in existing if block.has_line(line)), None)
    if around is not None:
        what = f"line {line + 1} is inside the block of {around.spec}"
        why = "A block inside another could never be refreshed."
        raise _build_place_error(file, what, why, "name a line outside, or omit --line to refresh")
    new = open_blocks(data, [location])
    block = next(block for block in blocks.find_blocks(file, new) if block.spec == NEW)
    change = injector.refresh_block(block, _choose_facts(file, data, location.facts | facts), spec)
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
    if plan.file is not None:
        answer = write_blocks({requested.file: plan.file}, how)
    else:
        note = f"nothing in {requested.file} is hand-written and equals {requested.spec}"
        answer = Answer(None, (f"{note}: see --check",))
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
    with lock_files(*inside):
        answer = write_blocks(_refresh_files(inside, injector, None), how, below=below)
    return answer._replace(problems=(*answer.problems, *problems))


def _select_files_below(paths: Iterable[str], below: str) -> tuple[list[str], list[Finding]]:
    """Return files without duplicates, and findings about those outside the folder.

    Links may lead there.
    """
    targets: dict[str, str] = {}
    problems = []
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
    takes_variables = shell or detect_script_kind(file, data, by_text=True) == "env"
    facts = {"target": "env" if takes_variables else "session"} | facts
    if facts["target"] == "env":
        return {"shell": shell or "bash"} | facts
    return facts


def _require_fitting_target(file: str, data: bytes, target: str) -> None:
    """Raise NpuprofError (NP818) if a file's language differs from the target's.

    The language is Python, or shell assignments.
    """
    kind = KINDS.get(detect_script_kind(file, data, by_text=True))
    if kind is None:
        return
    shell = blocks.detect_shell(file, data)
    if not kind.holds_blocks and not shell:
        hint = "name a Python or shell script"
        if kind.export:
            hint = f"print the code and copy it: npuprof env SPEC {kind.export}"
        what = f"{kind.shown} cannot contain a block"
        why = "A block is Python, or assignments of a shell."
        raise _build_place_error(file, what, why, hint)
    # sh has no arrays, also where the file is called *.sh
    if target == "args" and shell in ("bash", "zsh") and not re.match(rb"#!.*\b(da)?sh\b", data):
        return
    takes_variables = bool(shell or kind is KINDS["env"])
    if (target == "env") != takes_variables or target == "args":
        languages = {"args": "an array of bash or zsh", "env": "assignments of a shell"}
        language = languages.get(target, "Python")
        what = f"a block of {target} is {language}, and {file} is {kind.shown}"
        raise _build_place_error(file, what, "", "omit --to, or name another file")


def _refresh_files(paths: list[str], injector: Injector, only: str | None) -> dict[str, FileBlocks]:
    """Return the blocks of each file as they would be written now.

    Raises NpuprofError with the faults of all files.
    """
    files = {}
    problems: list[Finding] = []
    for path in paths:
        try:
            with isolate_faults(path, problems):
                data = read_file_content(path)
                changes = [
                    injector.refresh_block(block, _choose_facts(path, data, block.facts))
                    for block in blocks.find_blocks(path, data)
                    if only is None or block.spec == only
                ]
                if changes:
                    files[path] = FileBlocks(data, data, changes)
        except NpuprofError as error:
            problems += error.findings
    raise_any(problems)
    return files


def _locate_block(requested: InjectionRequest, data: bytes) -> Cut:
    """Return the location of a new block.

    It goes before the named line, else where the script creates its config.
    """
    file, line = requested.file, requested.line
    lines = Lines(data)
    takes_variables = _choose_facts(file, data, {})["target"] == "env"
    if line is None and takes_variables:
        # first, so that all commands get the variables, but below the line that names the shell
        start = min(lines.starts[1], len(data)) if data.startswith(b"#!") else 0
        return Cut(start, b"", {}, ())
    script = None if takes_variables else Script(file, data)
    statements, alias = [], "tf"
    if script is not None and script.tree is not None:
        statements = _find_config_statements(script.tree)
        alias = _find_tensorflow_alias(script.tree)
    if line is not None:
        if not 1 <= line <= len(lines.lines):
            what = f"{file} has {format_count(len(lines.lines), 'line')}, and none is {line}"
            raise _build_place_error(file, what, "", "name a line of the file")
        # the last config that is created above the line
        names = ["config", *(name for node, name in statements if (node.end_lineno or 0) < line)]
        return _build_location(lines, line, line, names[-1], alias)
    if script is not None and script.tree is None:
        raise NpuprofError(script.problems)
    node, variable = _choose_config(requested, statements)
    text_before = lines.lines[node.lineno - 1][: node.col_offset]
    if text_before[len(lines.find_indent(node.lineno)) :].strip():  # as after "if x:" or ";"
        raise _build_place_error(
            file, "the config is made in the middle of a line", "", "name the line with --line"
        )
    next_line = (node.end_lineno or node.lineno) + 1
    return _build_location(lines, next_line, node.lineno, variable, alias)


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
        configs = f"{len(statements)} of them ({places})" if statements else "no tf.ConfigProto"
        what = f"where should the block of {requested.spec} go?"
        why = (
            "A block goes after the only line that creates the config; "
            f"the script creates {configs}."
        )
        raise _build_place_error(requested.file, what, why, "name the line with --line")
    return statements[0]


def _build_location(lines: Lines, before: int, like: int, variable: str, alias: str) -> Cut:
    """Return the location before a line, from 1, indented like another one.

    Its facts are the local names of the config and of TensorFlow, unless they are the usual ones.
    """
    start = min(lines.starts[before - 1], len(lines.data))  # the last line may have no end
    facts = {}
    if variable != "config":
        facts["variable"] = variable
    if alias != "tf":
        facts["tensorflow"] = alias
    return Cut(start, lines.find_indent(like), facts, ())


def _find_tensorflow_alias(tree: ast.Module) -> str:
    """Return the import name of TensorFlow, or of its version 1.

    It is ``tf`` unless only another name is used.
    """
    names = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(imported):
                modules: tuple[str, ...] = ("tensorflow", "tensorflow.compat.v1")
            case ast.ImportFrom("tensorflow.compat", imported):
                modules = ("v1",)
            case _:
                continue
        names += [alias.asname or alias.name for alias in imported if alias.name in modules]
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
    # ast.walk goes level by level, and callers need the last one above a line
    return sorted(statements, key=lambda statement: statement[0].lineno)
