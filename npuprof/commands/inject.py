"""``inject``: a marked block in a script, written or refreshed in place, whole or not at all."""

from __future__ import annotations

import ast
import os
import re

from npuprof import report
from npuprof.model import Finding, NpuprofError
from npuprof.report import output
from npuprof.scripts import blocks
from npuprof.scripts.blocks import Block, Injector, RefreshedBlock
from npuprof.scripts.reading.source import Script

#: Names that rendered lines use and a script has to have.
_NEEDED = ("tf", "RewriterConfig", "NPURunConfig", "npu_config_proto", "npu_run_config_init", "set_keras_session_npu_config", "npu", "os")


def inject_block(
    file: str,
    spec_: str | None,
    target: str | None,
    line: int | None,
    everywhere: bool,
    check: bool,
    force: bool,
    dry_run: bool,
    cann: str | None,
    product: str | None,
    store: str | None,
) -> int:
    """Write or refresh blocks. Exit 1 with ``check`` where one is not up to date, 0 otherwise."""
    injector = Injector(store)
    if everywhere or spec_ is None:
        if spec_ is not None:
            raise _usage("--all refreshes every block with the preset it names", "leave out SPEC")
        if not everywhere and not check:
            raise _usage("which preset?", "name a SPEC, or refresh the blocks that are there with --all")
        return _refresh(_paths(file), injector, check, force, dry_run)
    if check:
        return _refresh([file], injector, True, force, dry_run, only=spec_)
    data = output.read_file_content(file)
    given = {name: value for name, value in (("cann", cann), ("product", product)) if value}
    marked = blocks.find_blocks(file, data)
    found = [block for block in marked if block.spec == spec_ or _empty(block, spec_)]
    if line is None and found:
        given |= {"target": target} if target else {}
        given |= _shell(file, data, found[0].facts | given)
        changes = [injector.refresh_block(block, given, spec_) for block in found]
        return _write({file: (data, changes)}, force, dry_run, spec_)
    place = _place(file, data, line, target, spec_)
    if around := [block for block in marked if block.first < place.line <= block.last]:
        what = f"line {place.line + 1} is inside the block of {around[0].spec}"
        raise _nowhere(
            file, what, "A block inside another could never be refreshed.", "name a line outside, or leave out --line to refresh"
        )
    given |= {"target": target or ("env" if blocks.detect_shell(file, data) else "session"), **place.facts}
    given |= _shell(file, data, given)
    new, block = _opened(data, place)
    change = injector.refresh_block(block._replace(facts={}), given, spec_)
    _needs(file, data, change)
    _twice(file, data, change)
    return _write({file: (new, [change])}, force, dry_run, spec_, data)


def check_blocks(file: str, spec_: str, store: str | None) -> int:
    """Say whether the blocks of a script that hold a preset are up to date (exit 1 if not, or if there is none)."""
    return _refresh([file], Injector(store), True, False, False, only=spec_)


def _usage(what: str, hint: str) -> NpuprofError:
    return NpuprofError([Finding("NP902", "error", what, "", hint)])


def _empty(block: Block, spec_: str) -> bool:
    """Return whether a block waits for its first preset: ``# >>> npuprof ? >>>``."""
    return block.spec == "?" and not block.text.strip()


def _paths(path: str) -> list[str]:
    from npuprof.scripts.files import find_script_files

    problems: list[Finding] = []
    return list(find_script_files([path], problems))


def _shell(file: str, data: bytes, facts: dict[str, str]) -> dict[str, str]:
    if facts.get("target") != "env":
        return {}
    return {"shell": facts.get("shell") or blocks.detect_shell(file, data) or "bash"}


def _refresh(paths: list[str], injector: Injector, check: bool, force: bool, dry_run: bool, only: str | None = None) -> int:
    files: dict[str, tuple[bytes, list[RefreshedBlock]]] = {}
    problems: list[Finding] = []
    told: list[Finding] = []
    count = 0
    for path in paths:
        try:
            data = output.read_file_content(path)
            found = [block for block in blocks.find_blocks(path, data) if only in (None, block.spec)]
            changes = []
            for block in found:
                count += 1
                facts = _shell(path, data, block.facts) if block.facts else _first(path, data)
                changes.append(injector.refresh_block(block, facts))
                told += blocks.check_block_state(path, block, changes[-1].state)
        except NpuprofError as error:
            problems += error.findings
            continue
        if changes:
            files[path] = (data, changes)
    if problems:
        raise NpuprofError(problems)
    if check:
        output.write_answer(report.format_findings(told))
        output.write_to_stderr(
            f"npuprof: {report.format_count(count, 'block')} looked at: {report.format_severity_counts(told) or 'all up to date'}"
        )
        return 1 if told or (only is not None and not count) else 0
    return _write(files, force, dry_run)


def _first(path: str, data: bytes) -> dict[str, str]:
    target = "env" if blocks.detect_shell(path, data) else "session"
    return {"target": target, **_shell(path, data, {"target": target})}


class _Place:
    """Where a new block goes: before ``line`` (from 0), with an indentation, and the name the config has there."""

    def __init__(self, line: int, indent: bytes, facts: dict[str, str]) -> None:
        self.line = line
        self.indent = indent
        self.facts = facts


def _place(file: str, data: bytes, line: int | None, target: str | None, spec_: str) -> _Place:
    lines = data.split(b"\n")
    shell = blocks.detect_shell(file, data)
    if line is not None:
        if not 1 <= line <= len(lines):
            raise _nowhere(file, f"{file} has {report.format_count(len(lines), 'line')}, and none is {line}", "", "name a line of the file")
        script = None if shell else Script(file, data)
        variable = _known(script, line) if script is not None and script.tree is not None else ""
        indent = re.match(rb"[ \t]*", lines[line - 1])
        assert indent is not None
        return _Place(line - 1, indent[0], {"variable": variable} if variable and variable != "config" else {})
    if shell:
        first = 1 if lines[0].startswith(b"#!") else 0
        return _Place(first, b"", {})
    script = Script(file, data)
    if script.tree is None:
        raise NpuprofError(script.problems)
    made = _configs(script.tree)
    if target not in (None, *blocks._RENAMED):
        raise _nowhere(file, "where should the block go?", f"Nothing in the script tells it for {target}.", "name the line with --line")
    if len(made) != 1:
        what = "the script makes no tf.ConfigProto" if not made else f"the script makes {len(made)} of them"
        places = ", ".join(f"line {node.lineno}" for node, _ in made)
        why = f"A block goes after the one line that makes the config; {what}{f' ({places})' if places else ''}."
        raise _nowhere(file, f"where should the block of {spec_} go?", why, "name the line with --line")
    node, variable = made[0]
    indent = re.match(rb"[ \t]*", lines[node.lineno - 1])
    assert indent is not None
    if lines[node.lineno - 1][len(indent[0]) : node.col_offset].strip():
        raise _nowhere(file, "the config is made in the middle of a line", "", "name the line with --line")
    return _Place(node.end_lineno or node.lineno, indent[0], {"variable": variable} if variable != "config" else {})


def _nowhere(file: str, what: str, why: str, hint: str) -> NpuprofError:
    return NpuprofError([Finding("NP818", "error", what, why, hint, where=(file, 0, 0))])


def _configs(tree: ast.Module) -> list[tuple[ast.Assign, str]]:
    """Return the statements that make a ConfigProto and the names they give it."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
            made = node.value.func
            name = made.attr if isinstance(made, ast.Attribute) else made.id if isinstance(made, ast.Name) else ""
            if name == "ConfigProto" and isinstance(node.targets[0], (ast.Name, ast.Attribute)):
                found.append((node, ast.unparse(node.targets[0])))
    return sorted(found, key=lambda pair: pair[0].lineno)


def _known(script: Script, line: int) -> str:
    """Return the name of the config that was made last before a line."""
    assert script.tree is not None
    before = [variable for node, variable in _configs(script.tree) if (node.end_lineno or 0) < line]
    return before[-1] if before else ""


def _opened(data: bytes, place: _Place) -> tuple[bytes, Block]:
    """Return the file with an empty pair of marks, and the block between them."""
    lines = data.split(b"\n")
    newline = b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"
    if place.line >= len(lines):
        lines.append(b"")
        if newline == b"\r\n" and not lines[-2].endswith(b"\r"):
            lines[-2] += b"\r"
    ending = newline[:-1]
    lines[place.line : place.line] = [place.indent + b"# >>> npuprof ? >>>" + ending, place.indent + b"# <<< npuprof <<<" + ending]
    return b"\n".join(lines), Block("?", place.line, place.line + 1, place.indent, newline, "")


def _needs(file: str, data: bytes, change: RefreshedBlock) -> None:
    """Say which names the block uses that the script does not seem to have."""
    if blocks.detect_shell(file, data):
        return
    body = "\n".join(line for line in change.text.split("\n") if not line.startswith("#"))
    text = data.decode(errors="replace")
    starred = re.search(r"^\s*from\s+npu\S*\s+import\s+\*", text, re.MULTILINE)
    missing = [
        name
        for name in _NEEDED
        if re.search(rb"(?<![\w.\"'])" + name.encode() + rb"(?=[.(])", body.encode())
        and not re.search(rf"\bimport\b.*\b{name}\b", text)
        and not (starred and name not in ("tf", "os", "npu"))
    ]
    if missing:
        output.write_to_stderr(f"npuprof: the block uses {', '.join(missing)}, which {file} does not import")


def _twice(file: str, data: bytes, change: RefreshedBlock) -> None:
    """Say where the script adds an optimizer entry already; checks of the adapter see one entry at a time."""
    adds = re.compile(rb"^[^#\n]*custom_optimizers\.add\(", re.MULTILINE)
    there = adds.search(data)
    if there and adds.search(change.text.encode()):
        line = data.count(b"\n", 0, there.start()) + 1
        output.write_to_stderr(
            f"npuprof: {file} adds an optimizer entry itself (line {line} before); the adapter reads both, and later values win"
        )


def _write(
    files: dict[str, tuple[bytes, list[RefreshedBlock]]], force: bool, dry_run: bool, name: str | None = None, old: bytes | None = None
) -> int:
    refused: list[Finding] = []
    wanted: dict[str, str | bytes] = {}
    shown: list[str] = []
    for path, (data, changes) in files.items():
        due = [change for change in changes if not change.state.current]
        if not force:
            refused += [one for change in due for one in blocks.check_block_state(path, change.block, change.state) if one.code == "NP811"]
        names = {change.block.first: name for change in due if name}
        new = blocks.replace_blocks(data, due, names)
        before = data if old is None else old
        if new != before:
            _encodable(path, data, due)
            wanted[path] = new
            shown.append(_diff(path, before, new))
        folder = os.path.dirname(path)
        for change in changes:
            for beside, text in change.sidecars.items():
                if _other(os.path.join(folder, beside), text):
                    wanted[os.path.join(folder, beside)] = text
    if refused:
        raise NpuprofError(
            [finding._replace(severity="error", hint="move the change into the preset, or use --force") for finding in refused]
        )
    if dry_run:
        output.write_answer("".join(shown))
        output.write_to_stderr(f"npuprof: {report.format_count(len(wanted), 'file')} would change: {', '.join(wanted) or 'none'}")
        return 0
    if wanted:
        output.write_files_atomically(wanted)
    output.write_to_stderr(f"npuprof: wrote {', '.join(wanted)}" if wanted else "npuprof: everything is up to date")
    return 0


def _other(path: str, text: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read() != text.encode()
    except OSError:
        return True


def _encodable(path: str, data: bytes, due: list[RefreshedBlock]) -> None:
    """Refuse to put text that is not ASCII into a file that is not UTF-8."""
    if all(change.text.isascii() for change in due):
        return
    try:
        data.decode()
    except UnicodeDecodeError:
        what = f"{path} is not UTF-8, and the block holds text that is not ASCII"
        raise NpuprofError([Finding("NP801", "error", what, "", "save the script as UTF-8 first", where=(path, 0, 0))]) from None


def _diff(path: str, before: bytes, after: bytes) -> str:
    import difflib

    def split(data: bytes) -> list[str]:
        return [f"{line}\n" for line in data.decode(errors="replace").replace("\r\n", "\n").split("\n")]

    return "".join(difflib.unified_diff(split(before), split(after), path, path, n=2))
