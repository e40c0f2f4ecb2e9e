"""``render``: render a preset as code or as a command line."""

from __future__ import annotations

import os
from collections.abc import Sequence

from npuprof import renderers
from npuprof.catalog.releases import list_frameworks
from npuprof.commands.framework import argument, flag, option
from npuprof.commands.framework.parameters import (
    NO_CHECK,
    SPEC_HELP,
    STRICT_SECTIONS,
    TRUST,
    ResolvingVerb,
)
from npuprof.commands.resolving import (
    open_workspace,
    print_omitted_count,
    resolve_checked,
)
from npuprof.model import (
    TYPE_CHECKING,
    Finding,
    NpuprofError,
    build_error,
    build_usage_error,
    select_errors,
)
from npuprof.renderers import collect_sidecars
from npuprof.renderers.stamp import read_header
from npuprof.report import Answer
from npuprof.report.output import print_findings, print_note
from npuprof.report.text import format_count
from npuprof.resolve.config import Config
from npuprof.store import FILE
from npuprof.system import decode_safely, group_pairs
from npuprof.system.files import is_stream, read_file_content

if TYPE_CHECKING:
    from npuprof.document.json_tree import Edit
    from npuprof.renderers.outputs import OutputFiles
    from npuprof.store.outputs import Outputs

#: The value of ``--check`` without a FILE.
_ANY = "*"


class Render(ResolvingVerb):
    """Render a preset as code.

    Depending on the target, prints Python code, an atc command line or a flattened preset. With
    --check, exits with 1 if the file is not up to date.
    """

    group = "output"
    usage_hint = (
        "npuprof render bert-training --to session --output x.py writes a file; npuprof inject "
        "train.py bert-training writes into a script."
    )

    spec = argument("SPEC", SPEC_HELP, "spec", default="")
    to = option(
        "--to",
        "-t",
        metavar="TARGET",
        text="Render for TARGET: {choices} [default: session; with --check, that of FILE]",
        choices=renderers.load_target_index,
        noun="target",
    )
    output = option(
        "--output",
        "-o",
        metavar="PATH",
        text=(
            "Write to PATH: a file, or a folder for the "
            "code and the files it needs [default: stdout]"
        ),
    )
    no_check = NO_CHECK
    strict = STRICT_SECTIONS
    base = option(
        "--base",
        metavar="FILE",
        text="Merge the preset over FILE; other keys stay as they are, in order and format",
    )
    inline = flag("--inline", text="Print only the lines to paste, without a function")
    force = flag(
        "--force", text="Overwrite files that npuprof did not write or that were edited by hand"
    )
    check = option(
        "--check",
        metavar="[FILE]",
        text="Check whether FILE, or with --all each output, is up to date without writing it",
        implied=_ANY,
    )
    trust = TRUST
    every = flag("--all", text="Render the outputs that npuprof.toml declares")

    def run(self) -> Answer:
        """Return the code, or write it with its sidecar files; with ``check`` only compare.

        Raises NpuprofError.
        """
        if self.every:
            return self._render_outputs()
        if not self.spec or self.check == _ANY:
            missing = "FILE after --check" if self.spec else "SPEC"
            hint = "name it, or add --all for the outputs that npuprof.toml declares"
            raise build_usage_error(f"there is no {missing}", hint)
        to = self.to or "session"
        if self.check is not None:
            to = self._follow_header(self.check)
        config = resolve_checked(self, to, self.no_check)
        if self.trust or self.check is not None:
            from npuprof.renderers.trusting import TRUSTING

            config.memo[TRUSTING] = True
        target = renderers.load_target(to)
        rendered = target.render(config, self.inline)
        rendered, changes = self._merge(to, config, rendered)
        print_omitted_count(rendered.left_out, self.strict)
        if self.check is not None:
            # a script with blocks is compared block by block; a rendered file as a whole
            if os.path.isfile(self.check) and "# >>> npuprof " in _read_text(self.check):
                from npuprof.scripts.blocks import Injector
                from npuprof.scripts.injection import check_blocks

                return check_blocks([self.check], Injector(self.store, trusting=True), self.spec)
            return _compare_with_file(self.check, config, to, rendered, changes)
        _print_notes(rendered)
        if self.output is None or self.output == "-" or is_stream(self.output):
            # standard output takes one text: each file is headed by its name
            if target.is_folder:
                files = {target.file: rendered.text, **rendered.sidecars}
                text = "".join(f"# {name}\n{text}" for name, text in files.items())
                return Answer(text, _list_start(rendered, "."))
            if rendered.sidecars:
                raise NpuprofError(_build_folder_finding(config, rendered))
            return Answer(rendered.text)
        from npuprof.renderers.placing import write_rendered_files

        written = write_rendered_files(self.output, target.file, rendered, self.force)
        start = _list_start(rendered, os.path.dirname(written[0]) or ".")
        return Answer(notes=(f"wrote {', '.join(written)}", *start))

    def _merge(
        self, to: str, config: Config, rendered: renderers.Rendered
    ) -> tuple[renderers.Rendered, list[str] | None]:
        """Return rendered files merged over an installed one, and how that differs.

        With ``check``, the checked file is the installed one. None for targets that do not merge.
        """
        target = renderers.load_target(to)
        if target.find_edits is None:
            if self.base:
                hint = "omit --base, or render a JSON file that exists, as with --to mindie"
                raise build_usage_error(f"{target.file} is not merged over another file", hint)
            return rendered, None
        path = self.base if self.check is None else _find_code(self.check, to)
        if not path:
            return rendered, []
        from npuprof.document.json_tree import apply_edits, find_json_fault

        raw = read_file_content(path, "name the installed file")
        if fault := find_json_fault(path, raw):
            raise NpuprofError(fault)
        text = raw.decode()
        edits = target.find_edits(config, text)
        rendered = rendered._replace(text=apply_edits(text, edits))
        return rendered, [_describe_edit(path, text, edit) for edit in edits]

    def _follow_header(self, path: str) -> str:
        """Return the target of a file; its context is taken over, except for named values."""
        index = renderers.load_target_index()
        if os.path.isdir(path):
            there = (to for to in index if os.path.isfile(_find_code(path, to)))
            path = _find_code(path, self.to or next(there, "session"))
        # a pipe can be read once
        header = read_header(_read_text(path) if os.path.isfile(path) else "")
        named = {argument.partition("=")[0] for argument in (*self.frameworks, *self.axes)}
        for name, value in header.context.items():
            if name in named:
                continue
            if name in ("cann", "product"):
                setattr(self, name, getattr(self, name) or value)
            else:
                pairs = self.frameworks if name in list_frameworks() else self.axes
                pairs.append(f"{name}={value}")
        return self.to or (header.target if header.target in index else "session")

    def _render_outputs(self) -> Answer:
        """Write the files of all outputs, or compare them with what is there."""
        from shlex import quote

        from npuprof.renderers import outputs as files
        from npuprof.renderers.placing import Placed, write_all_rendered
        from npuprof.store.outputs import Outputs

        self._require_plain()
        workspace = open_workspace(self.store)
        outputs = Outputs(workspace, workspace.store)
        rendered = self._list_rendered(outputs)
        folder = outputs.folder
        left = [quote(os.path.join(folder, path)) for path in files.find_left_over_files(outputs)]
        notes = [f"no output declares these files any more: rm {' '.join(left)}"] if left else []
        if self.check is not None:
            return self._check_outputs(outputs, rendered, notes)
        placed = []
        for entry in rendered:
            if entry.problems or self.force:
                outputs.require_no_link(entry.code)
                print_omitted_count(entry.rendered.left_out, strict=False)
                _print_notes(entry.rendered, f"{entry.output.path}: ")
                code = os.path.join(folder, entry.code)
                # a file without a header is only known by its form
                force = self.force or not entry.needs_force
                placed.append(Placed(code, entry.rendered, folder or os.curdir, force))
        written = write_all_rendered(placed) if placed else []
        same = len(rendered) - len(placed)
        notes = [*(f"wrote {path}" for path in written), *notes]
        return Answer(notes=(*notes, f"{format_count(same, 'output')} unchanged"))

    def _require_plain(self) -> None:
        """Raise NpuprofError for parameters that an output has in npuprof.toml."""
        parameters = ("spec", "to", "output", "base", "inline", "cann", "product", "frameworks")
        if any(getattr(self, name) for name in (*parameters, "axes", "mixin", "set_", "unset")):
            what = f"--all takes presets, targets and contexts from {FILE} only"
            raise build_usage_error(what, "omit the other parameters, or --all")

    def _list_rendered(self, outputs: Outputs) -> list[OutputFiles]:
        """Return all outputs rendered, after their checks. Raises NpuprofError with all errors."""
        from npuprof.checks import fold_findings, require_exportable
        from npuprof.renderers.outputs import render_outputs

        entries, findings = render_outputs(
            outputs,
            lambda config: () if self.no_check else require_exportable(config),
            trusting=self.trust or self.check is not None,
        )
        for entry in entries if self.strict else ():
            findings += entry.rendered.left_out
        if select_errors(findings):
            print_note("nothing was written: an output has errors")
            raise NpuprofError(fold_findings(findings))
        print_findings(fold_findings(findings))
        if not entries:
            hint = 'begin it with output = [{ spec = "NAME", to = "session", path = "x.py" }]'
            raise build_error("NP040", f"{FILE} declares no output", "", hint)
        return entries

    def _check_outputs(
        self, outputs: Outputs, rendered: list[OutputFiles], over: list[str]
    ) -> Answer:
        """Return the files that are not up to date, by preset."""
        from npuprof.renderers.outputs import describe_problems

        if self.check != _ANY:
            chosen = os.path.relpath(os.path.realpath(str(self.check)), outputs.base)
            rendered = [entry for entry in rendered if chosen in (entry.output.path, entry.code)]
            over = []
            if not rendered:
                what = f"{self.check} is the file of no output"
                raise build_usage_error(what, f"{FILE} declares them")
        wrong = [entry for entry in rendered if entry.problems]
        lines = []
        for name, entries in group_pairs(
            (entry.output.describe(), entry) for entry in wrong
        ).items():
            lines.append(f"{name}:\n")
            lines += [f"  {line}\n" for line in describe_problems(entries, outputs.folder)]
        force = any(entry.needs_force for entry in wrong)
        notes = [f"not up to date: {len(wrong)} of {format_count(len(rendered), 'output')}"]
        if wrong:
            notes.append(f"renew them: npuprof render --all{' --force' if force else ''}")
        return Answer("".join(lines), (*notes, *over), int(bool(wrong or over)))


def _describe_edit(path: str, text: str, edit: Edit) -> str:
    """Return how an installed file differs from a preset."""
    line = text.count("\n", 0, edit.start) + 1
    there = text[edit.start : edit.end]
    how = f"{there}, and {edit.text} in the preset" if there else "not set"
    return f"{path}:{line}: {'.'.join(map(str, edit.path))} is {how}"


def _print_notes(rendered: renderers.Rendered, prefix: str = "") -> None:
    for note in rendered.notes:
        print_note(f"{prefix}not in this target: {note}")
    print_findings(rendered.findings)


def _list_start(rendered: renderers.Rendered, folder: str) -> tuple[str, ...]:
    """Return the note with the command that uses rendered files, if there is one."""
    from shlex import quote

    return (f"start: {rendered.start.replace('DIR', quote(folder))}",) if rendered.start else ()


def _build_folder_finding(config: Config, rendered: renderers.Rendered) -> Finding:
    names = list(collect_sidecars(config))
    what = (
        f"the code needs {', '.join(rendered.sidecars)} as sidecar "
        "files, which cannot be written to standard output"
    )
    why = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} written out in the preset."
    return Finding("NP904", what, why, "name a folder with -o DIR", config.origin(names[0]))


def _find_code(path: str, to: str) -> str:
    """Return the code file of a target at a path, which may be its folder."""
    return os.path.join(path, renderers.load_target(to).file) if os.path.isdir(path) else path


def _compare_with_file(
    path: str,
    config: Config,
    to: str,
    rendered: renderers.Rendered,
    changes: Sequence[str] | None,
) -> Answer:
    """Report whether a rendered file and its sidecar files are up to date.

    ``changes`` are the differences of an installed file, which may be alone.
    """
    from npuprof.renderers.outputs import compare_with_files
    from npuprof.system.writing import read_known_file

    path = _find_code(path, to)
    if not os.path.exists(path):
        _read_text(path)  # raises the error
    states = compare_with_files(config, to, path, rendered, read_known_file)
    state = states.pop(path)
    notes = [
        f"{file} differs from the content in the preset"
        for file, sidecar in states.items()
        if not sidecar.current and not (changes is not None and sidecar.missing)
    ]
    if changes is not None:
        notes += changes
    else:
        if state.foreign:
            notes.append(
                f"{path} was not rendered by npuprof, or has lost its header; "
                f"npuprof inject --check {path} checks the blocks of a script"
            )
        if state.edited:
            notes.append(f"{path} was edited by hand: its text is not the one that was rendered")
        if state.stale:
            notes.append(
                f"{path} is out of date: the preset, or npuprof, has changed since it was rendered"
            )
    return Answer(None, tuple(notes), int(bool(notes)))


def _read_text(path: str) -> str:
    from shlex import quote

    hint = f"render it first: -o {quote(path)} in place of --check"
    return decode_safely(read_file_content(path, hint))


VERB = Render
