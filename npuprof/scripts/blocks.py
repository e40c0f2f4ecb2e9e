"""Marked blocks in scripts: found, compared with their preset, rewritten.

Files are processed as bytes: text outside blocks stays unchanged, and a block keeps the indentation
and line ending of its first mark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from npuprof import renderers
from npuprof.catalog import build_finding
from npuprof.checks import require_exportable
from npuprof.model import (
    Context,
    Finding,
    NpuprofError,
    Place,
    Record,
    build_error,
    build_usage_error,
    raise_any,
)
from npuprof.renderers import Rendered, add_render_header, collect_sidecars, find_left_out_sections
from npuprof.renderers.environment import collect_env_variables, list_unset_variables
from npuprof.renderers.environment_files import format_clear_and_export_lines
from npuprof.renderers.shell import SHELLS
from npuprof.renderers.stamp import BLOCK_FACTS, TEXT_MARK, State, compare_rendered, stamp_text
from npuprof.resolve.config import Config
from npuprof.store import spec
from npuprof.system import decode_safely

_BEGIN = re.compile(rb"(?P<indent>[ \t]*)# >>> npuprof (?P<spec>\S+) >>>[ \t]*\r?\n?")
_END = re.compile(rb"[ \t]*# <<< npuprof(?: (?P<spec>\S+))? <<<[ \t]*\r?\n?")
#: The context facts in a block's header; those of several frameworks or axes are separated by
#: commas.
CONTEXT_FACTS = ("cann", "product", "framework", "axis")
_FACT = re.compile(rf"# (?P<name>target|{'|'.join(BLOCK_FACTS)}): (?P<value>\S+)")
#: Names that a rendered block uses and the script must define.
_NEEDED = re.compile(
    r"(?<![\w.\"'])"
    r"(tf|os|npu|npu_config_proto|npu_run_config_init|set_keras_session_npu_config|\w+Config)"
    r"(?=[.(])"
)
#: The names ``config`` and ``tf`` as variables; strings and comments are matched first to skip
#: them.
_VARIABLE = re.compile(
    r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|#.*|(?<![\w.])(?:config\b(?!=)|tf\b(?=\.))"
)

#: Opens the store of presets for a release, a product and a target.
Opener = Callable[[Context], spec.Workspace]


class Block(Record):
    """One marked block, with its header facts.

    ``first`` and ``last`` are its lines, from 0, including the markers.
    """

    spec: str
    first: int
    last: int
    indent: bytes
    newline: bytes
    text: str
    facts: dict[str, str]

    def has_line(self, line: int) -> bool:
        """Return whether a line, from 1, is after its first mark and not after its last."""
        return self.first < line <= self.last


class RefreshedBlock(Record):
    """A block as it would be written now.

    ``state`` is that of the old one; the text has sidecar files and omitted sections.
    """

    block: Block
    state: State
    text: str
    sidecars: dict[str, str]
    left_out: tuple[Finding, ...]


def find_blocks(path: str, data: bytes) -> list[Block]:
    """Return the blocks of a file. Raises NpuprofError (NP817) for unmatched markers."""
    # most files of a tree have no block: a search for bytes costs less than splitting them
    if b"# >>> npuprof " not in data and b"# <<< npuprof" not in data:
        return []
    lines = [line + b"\n" for line in data.split(b"\n")]
    marked = []
    begin = None  # the open block's first marker, in line ``first``
    first = 0
    faults = []

    def add_fault(line: int, what: str) -> None:
        why = "Nothing is written into a file whose marks are not certain."
        hint = "restore the missing mark, or delete both"
        faults.append(Finding("NP817", what, why, hint, where=Place(path, line + 1, 1)))

    for number, line in enumerate(lines):
        if match := _BEGIN.fullmatch(line):
            if begin:
                add_fault(first, "a block begins inside this one, or its end is missing")
            begin, first = match, number
        elif match := _END.fullmatch(line):
            if begin is None or match["spec"] not in (None, begin["spec"]):
                add_fault(number, "a block ends that has not begun")
            else:
                marked.append(_build_block(lines, first, number, begin))
            begin = None
    if begin:
        add_fault(first, "the block has no end")
    raise_any(faults)
    return marked


def _build_block(lines: list[bytes], first: int, last: int, begin: re.Match[bytes]) -> Block:
    """Return the block between two lines; ``begin`` is its first marker."""
    indent = begin["indent"]
    newline = b"\r\n" if lines[first].endswith(b"\r\n") else b"\n"
    inner = [line.removesuffix(b"\n").removesuffix(b"\r") for line in lines[first + 1 : last]]
    text = "".join(f"{line.removeprefix(indent).decode(errors='replace')}\n" for line in inner)
    # comments in the code below the header are not facts
    head = text.partition(TEXT_MARK)[0] if TEXT_MARK in text else ""
    facts = {fact["name"]: fact["value"] for fact in _FACT.finditer(head)}
    spec = decode_safely(begin["spec"])
    return Block(spec, first, last, indent, newline, text, facts)


class Injector:
    """Renders blocks; each preset is resolved once for all files of a run.

    A ``trusting`` injector, for comparisons only, also renders exports that need trust;
    ``with_unknown`` allows variables unknown to the catalogue. ``opener`` opens the source of
    presets that are not written yet. With ``checking``, it rejects the presets that ``render``
    rejects.
    """

    def __init__(
        self,
        store: str | None,
        trusting: bool = False,
        opener: Opener | None = None,
        with_unknown: bool = False,
        checking: bool = False,
    ) -> None:
        open_store = opener or (lambda context: spec.Workspace(store, context))
        self._trusting = trusting
        self._with_unknown = with_unknown
        self._checking = checking
        self._open_workspace = cache(
            lambda cann, product, framework, axis, target: open_store(
                spec.build_context(
                    cann or None,
                    product or None,
                    target or None,
                    framework.split(",") if framework else (),
                    axis.split(",") if axis else (),
                    store,
                )
            )
        )
        self._render = cache(self._render_block)

    def resolve_config(self, name: str, facts: Mapping[str, str], target: str = "") -> Config:
        """Return a preset resolved for the facts of a header. Raises NpuprofError."""
        context = [facts.get(fact, "") for fact in CONTEXT_FACTS]
        config = self._open_workspace(*context, target).resolve_spec(name)
        if self._checking and target:
            require_exportable(config)
        return config

    def _render_block(self, name: str, header: tuple[tuple[str, str], ...]) -> Rendered:
        """Return the text of a block, its sidecar files, and its omitted sections.

        Raises NpuprofError.
        """
        facts = dict(header)
        target = facts.get("target", "session")
        if target != "env" and target not in renderers.load_target_index():
            known = ", ".join(renderers.load_target_index())
            raise build_usage_error(f"unknown target {target!r}", f"known are {known}")
        config = self.resolve_config(name, facts, target)
        if target == "env":
            without_options = facts.get("sections") == "env"
            rendered = self._render_exports(config, facts.get("shell", "bash"), without_options)
        elif "onto" in facts:
            rendered = renderers.load_target(target).render_onto(config, facts["onto"])
        else:
            rendered = renderers.load_target(target).render(config, True)
        head, mark, rest = rendered.text.partition(TEXT_MARK)
        if not mark:
            raise build_usage_error(
                f"the target {target} cannot be used in a block", "use session or env"
            )
        _, _, body = rest.partition("\n")
        names = {"tf": facts["tensorflow"]} if "tensorflow" in facts else {}
        if "variable" in facts and "onto" not in facts and works_on_config(target):
            names["config"] = facts["variable"]
        body = rename_variables(body, names) if names else body
        head += "".join(f"# {fact}: {facts[fact]}\n" for fact in BLOCK_FACTS if fact in facts)
        return rendered._replace(text=stamp_text(head, body))

    def _render_exports(self, config: Config, shell: str, without_options: bool) -> Rendered:
        """Return the exports of a preset for a shell. Raises NpuprofError if they need files."""
        if collect_sidecars(config) and not without_options:
            files = ", ".join(name for name, _ in collect_sidecars(config).values())
            why = (
                "A script that is passed on cannot name files "
                "that only npuprof on this machine has written."
            )
            hint = 'use eval "$(npuprof env ...)" instead'
            raise build_error("NP904", f"the preset needs {files}", why, hint)
        variables, _ = collect_env_variables(
            config,
            None,
            "",
            self._trusting,
            allowing_unknown=self._with_unknown,
            with_options=not without_options,
        )
        lines = format_clear_and_export_lines(config, shell, variables)
        text = add_render_header(config, "env", lines)
        left_out = list(find_left_out_sections(config, ("env", "options")))
        for name in list_unset_variables(config)[1]:
            what = f"unset of {name}: npuprof run --trust removes it"
            left_out.append(Finding("NP917", what, ""))
        return Rendered(text, left_out=tuple(left_out))

    def refresh_block(
        self, block: Block, facts: dict[str, str] | None = None, name: str | None = None
    ) -> RefreshedBlock:
        """Return a block as it would be written now, of the preset ``name`` if given.

        Raises NpuprofError.
        """
        block = block._replace(spec=name or block.spec)
        rendered = self._render(block.spec, tuple(sorted((block.facts | (facts or {})).items())))
        return RefreshedBlock(
            block,
            compare_rendered(block.text, rendered.text),
            rendered.text,
            rendered.sidecars,
            rendered.left_out,
        )


def works_on_config(target: str) -> bool:
    """Return whether a target's lines need an existing ``config``.

    It may have another name in the script.
    """
    return target in renderers.load_target_index() and renderers.load_target(target).renames


def rename_variables(body: str, names: Mapping[str, str]) -> str:
    """Return Python text with the variables ``config`` and ``tf`` renamed by ``names``."""
    return _VARIABLE.sub(lambda match: names.get(match[0], match[0]), body)


def find_missing_names(above: bytes, block: str) -> list[str]:
    """Return the names that a Python block uses and no import in it or above defines."""
    # comments of the block use no names
    used = dict.fromkeys(_NEEDED.findall(re.sub(r"^#.*", "", block, flags=re.MULTILINE)))
    starred = re.search(rb"^\s*from\s+npu\S*\s+import\s+\*", above, re.MULTILINE)
    # a star import of the adapter defines its names, but not the modules themselves
    unknown = (
        name
        for name in used
        if not re.search(rf"\bimport\b.*\b{name}\b".encode(), above + block.encode())
    )
    return [name for name in unknown if not starred or name in ("tf", "os", "npu")]


def replace_blocks(data: bytes, changes: list[RefreshedBlock]) -> bytes:
    """Return the bytes of a file with rewritten blocks."""
    lines = data.split(b"\n")
    # from the end, so that the lines of the other blocks keep their numbers
    for change in sorted(changes, key=lambda change: -change.block.first):
        block = change.block
        inner = [
            f"# >>> npuprof {block.spec} >>>",
            *change.text.removesuffix("\n").split("\n"),
            "# <<< npuprof <<<",
        ]
        new = [
            (block.indent + line.encode() if line else b"") + block.newline.removesuffix(b"\n")
            for line in inner
        ]
        # the file ends without a line end here: half of one must not stay
        if block.last == len(lines) - 1:
            new[-1] = new[-1].removesuffix(b"\r")
        lines[block.first : block.last + 1] = new
    return b"\n".join(lines)


def rename_marks(data: bytes, names: Iterable[tuple[Block, str]]) -> bytes:
    """Return the bytes of a file with other specs in block marks; block contents stay."""
    lines = data.split(b"\n")
    for block, name in names:
        for number in (block.first, block.last):
            # with the blanks around it, as a spec may be a part of another one
            lines[number] = lines[number].replace(
                f" npuprof {block.spec} ".encode(), f" npuprof {name} ".encode()
            )
    return b"\n".join(lines)


def detect_shell(path: str, data: bytes) -> str:
    """Return the shell of a file, empty if it is not a shell script."""
    ending = os.path.splitext(path)[1].lower()
    for name, shell in SHELLS.items():
        if ending in shell.endings:
            return name
    if not data.startswith(b"#!"):
        return ""
    by_program = {
        program: name for name, shell in SHELLS.items() for program in (name, *shell.programs)
    }
    first_line = data[:200].partition(b"\n")[0]
    # any word may be the shell, as in "#!/usr/bin/env -S bash -e"
    for program in re.findall(rb"\w+", first_line):
        if program.decode() in by_program:
            return by_program[program.decode()]
    return ""


def check_file_blocks(injector: Injector, path: str, data: bytes) -> list[Finding]:
    """Return findings about outdated and edited blocks of a file."""
    try:
        return [
            finding
            for block in find_blocks(path, data)
            for finding in _check_block(injector, path, block)
        ]
    except NpuprofError as error:
        return list(error.findings)


def _check_block(injector: Injector, path: str, block: Block) -> list[Finding]:
    try:
        return check_block_state(path, block, injector.refresh_block(block).state)
    except NpuprofError as error:
        what = f"the block of {block.spec} cannot be compared with its preset"
        why = f"{error.findings[0].message}." if error.findings else ""
        hint = "see npuprof check, or name the store with --store"
        where = Place(path, block.first + 1, len(block.indent) + 1)
        return [build_finding("NP810", what, why, hint, where=where)]


def check_block_state(path: str, block: Block, state: State) -> list[Finding]:
    """Return the findings about a block."""
    if state.current:
        return []
    code, hint = "NP810", f"npuprof inject {path} {block.spec}"
    if not block.text.strip():
        what = f"the block of {block.spec} is empty"
        why = "Nothing has been written into it yet."
    elif state.edited:
        code, hint = "NP811", "move the change into the preset, then refresh with --force"
        what = f"the block of {block.spec} was edited by hand"
        why = (
            "Its text is not the one that npuprof wrote "
            "there; the next refresh would undo the edit."
        )
    else:
        what = f"the block of {block.spec} is out of date"
        why = "The preset, or npuprof, has changed since it was written."
    where = Place(path, block.first + 1, len(block.indent) + 1)
    return [build_finding(code, what, why, hint, where=where)]
