"""``render``: render a preset as code or as a command line."""

from __future__ import annotations

import os

from npuprof import renderers
from npuprof.commands.framework import flag, option, option_with_default
from npuprof.commands.framework.parameters import (
    NO_CHECK,
    SPEC,
    STRICT_SECTIONS,
    ResolvingVerb,
)
from npuprof.commands.resolving import print_findings, print_omitted_count, resolve_checked
from npuprof.model import Finding, NpuprofError
from npuprof.renderers import collect_sidecars
from npuprof.renderers.stamp import compare_rendered
from npuprof.report import Answer, output
from npuprof.resolve.config import Config
from npuprof.system.files import is_stream, read_file_content


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

    spec = SPEC
    to = option_with_default(
        "--to",
        "-t",
        metavar="TARGET",
        text="Render for TARGET: {choices}",
        default="session",
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
    inline = flag("--inline", text="Print only the lines to paste, without a function")
    force = flag(
        "--force", text="Overwrite files that npuprof did not write or that were edited by hand"
    )
    check = option(
        "--check", metavar="FILE", text="Check whether FILE is up to date without writing it"
    )

    def run(self) -> Answer:
        """Return the code, or write it with its sidecar files; with ``check`` only compare.

        Raises NpuprofError.
        """
        config = resolve_checked(self, self.to, self.no_check)
        target = renderers.load_target(self.to)
        rendered = target.render(config, self.inline)
        print_omitted_count(rendered.left_out, self.strict)
        if self.check is not None:
            # a script with blocks is compared block by block; a rendered file as a whole
            if os.path.isfile(self.check) and "# >>> npuprof " in _read_text(
                self.check, missing=""
            ):
                from npuprof.scripts.blocks import Injector
                from npuprof.scripts.injection import check_blocks

                return check_blocks([self.check], Injector(self.store, trusting=True), self.spec)
            return _compare_with_file(self.check, self.to, rendered)
        for note in rendered.notes:
            output.print_note(f"not in this target: {note}")
        print_findings(rendered.findings)
        if self.output is None or self.output == "-" or is_stream(self.output):
            # standard output takes one text: each file is headed by its name
            if target.is_folder:
                files = {target.file: rendered.text, **rendered.sidecars}
                return Answer("".join(f"# {name}\n{text}" for name, text in files.items()))
            if rendered.sidecars:
                raise NpuprofError(_build_folder_finding(config, rendered))
            return Answer(rendered.text)
        from npuprof.renderers.placing import write_rendered_files

        written = write_rendered_files(self.output, target.file, rendered, self.force)
        return Answer(notes=(f"wrote {', '.join(written)}",))


def _build_folder_finding(config: Config, rendered: renderers.Rendered) -> Finding:
    names = list(collect_sidecars(config))
    what = (
        f"the code needs {', '.join(rendered.sidecars)} as sidecar "
        "files, which cannot be written to standard output"
    )
    why = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} written out in the preset."
    return Finding("NP904", what, why, "name a folder with -o DIR", config.origin(names[0]))


def _compare_with_file(path: str, to: str, rendered: renderers.Rendered) -> Answer:
    """Report whether a rendered file and its sidecar files are up to date."""
    if os.path.isdir(path):
        path = os.path.join(path, renderers.load_target(to).file)
    state = compare_rendered(_read_text(path), rendered.text, same_body=to == "env-loader")
    folder = os.path.dirname(path)
    sidecars = [os.path.join(folder, name) for name in rendered.sidecars]
    wrong = [
        file
        for file, text in zip(sidecars, rendered.sidecars.values(), strict=True)
        # no sidecar file contains a NUL, so that a missing one differs
        if _read_text(file, missing="\0") != text
    ]
    notes = [f"{file} differs from the content in the preset" for file in wrong]
    if state.current:
        return Answer(None, tuple(notes), 1 if wrong else 0)
    if state.foreign:
        notes.append(f"{path} was not rendered by npuprof, or has lost its header")
    if state.edited:
        notes.append(f"{path} was edited by hand: its text is not the one that was rendered")
    if state.stale:
        notes.append(
            f"{path} is out of date: the preset, or npuprof, has changed since it was rendered"
        )
    return Answer(None, tuple(notes), 1)


def _read_text(path: str, missing: str | None = None) -> str:
    try:
        return read_file_content(path, "render it first").decode(errors="replace")
    except NpuprofError:
        if missing is None:
            raise
        return missing


VERB = Render
