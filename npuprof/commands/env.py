"""``env``: print a preset as environment variables, for a shell or in a file format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from npuprof.commands.framework import flag, option
from npuprof.commands.framework.parameters import (
    MIXINS,
    NO_CHECK,
    NO_PERSONAL,
    OUTPUT,
    SETS,
    SPEC,
    STRICT_SECTIONS,
    TRUST,
    ContextVerb,
)
from npuprof.commands.resolving import print_omitted_count, resolve_checked
from npuprof.document.keys import quote_basic_string
from npuprof.model import TRUST_CODES, TYPE_CHECKING, build_error, raise_any
from npuprof.renderers import (
    collect_sidecars,
    find_left_out_sections,
    list_fitting_targets,
    load_target,
)
from npuprof.renderers import shell as shells
from npuprof.renderers.shell import BEFORE, format_undo_lines, format_values_before, quote_posix
from npuprof.report import Answer
from npuprof.report.text import escape_controls
from npuprof.resolve.config import Config
from npuprof.system.files import is_file

if TYPE_CHECKING:
    from npuprof.renderers.environment_files import Format


def _load_formats() -> Mapping[str, Format]:
    from npuprof.renderers.environment_files import FORMATS

    return FORMATS


class Env(ContextVerb):
    """Print a preset as environment variables.

    Prints shell assignments for eval, or a file with --format.
    """

    group = "output"

    spec = SPEC
    shell = option(
        "--shell",
        "-s",
        metavar="NAME",
        text="Write for this shell: {choices} [default: bash]",
        choices=tuple(shells.SHELLS),
        noun="shell",
    )
    file_format = option(
        "--format",
        metavar="FORMAT",
        text="Write a file in this format: {choices} [default: shell assignments]",
        choices=_load_formats,
        noun="format",
    )
    output = OUTPUT
    mixin = MIXINS
    no_personal = NO_PERSONAL
    set_ = SETS
    unset: list[str] = []  # the flag of that name reverses the export here
    no_check = NO_CHECK
    trust = TRUST
    strict = STRICT_SECTIONS
    undo = flag(
        "--unset", text="Print the lines that undo the export and restore overwritten variables"
    )
    diff = flag("--diff", text="Print the changes to the current environment")

    def run(self) -> Answer:
        """Return shell assignments, the file, or the changes. Raises NpuprofError."""
        from npuprof.renderers.environment import (
            collect_env_variables,
            describe_kept_variables,
            list_unset_variables,
        )
        from npuprof.renderers.process import (
            build_fact_finder,
            sidecar_cache_folder,
            write_sidecars,
        )

        if self.file_format is not None or self.diff:
            self._refuse_shell_flags()
        config = resolve_checked(
            self, "env", self.no_check, TRUST_CODES, not self.no_personal, False
        )  # rejected below, or trusted
        if self.diff:
            return _compare_environment(config, self.file_format)
        if not self.undo:
            of_file = _load_formats()[self.file_format].sections if self.file_format else ()
            left_out = find_left_out_sections(config, ("env", "options", *of_file))
            print_omitted_count(left_out, self.strict)
        if self.file_format is not None:
            return _write_file_format(config, self.file_format, self.trust)
        shell = shells.SHELLS[self.shell or "bash"]
        variables, notes = collect_env_variables(
            config, build_fact_finder(os.environ), sidecar_cache_folder(config), self.trust
        )
        removed, unchanged = list_unset_variables(config, self.trust, variables)
        before = format_values_before((*variables, *removed), os.environ)
        environ = {} if is_file(self.output) else os.environ  # others may read a file
        omitted = []
        if before and not environ:
            line = shell.use.replace(
                "NAME", quote_posix(self.spec, bare=True) + " --unset" * self.undo
            )
            # the file may be sourced elsewhere, where these values would be wrong
            omitted = [
                (
                    "a file gets no values of your environment; "
                    f"for --unset to restore them, use {line}"
                )
            ]
        if self.undo:
            lines, notes = format_undo_lines(shell, dict.fromkeys(removed) | variables, environ)
            return Answer(lines, early_notes=(*notes, *omitted))
        notes += describe_kept_variables(unchanged, os.environ) + omitted
        saved = shells.format_host_lines(
            shell.save, (name for name in (*variables, *removed) if environ and name not in environ)
        )
        # the variable itself is part of the export, so that --unset can restore the others
        if before and environ:
            variables[BEFORE] = before
        _refuse_values(config, ((name, shell.refuses(text)) for name, text in variables.items()))
        write_sidecars(config, sidecar_cache_folder(config))
        lines = (
            saved
            + shells.format_clear_lines(shell, removed)
            + shells.format_export_lines(shell, variables)
        )
        return Answer(lines, early_notes=tuple(notes))

    def _refuse_shell_flags(self) -> None:
        other_flag = "--diff" if self.diff else "--format"
        for spelling, value in (("--shell", self.shell), ("--unset", self.undo)):
            if value:
                raise build_error(
                    "NP914",
                    f"{spelling} and {other_flag} do not go together",
                    "",
                    "omit one of them",
                )
        if self.diff and self.file_format not in (None, "json"):
            hint = "omit --format, or write --format json"
            raise build_error("NP914", f"--diff has no form for {self.file_format}", "", hint)


def _refuse_values(config: Config, reasons: Iterable[tuple[str, str]]) -> None:
    """Raise NpuprofError with all values that cannot be written."""
    from npuprof.renderers.environment import build_export_finding

    raise_any([build_export_finding(config, name, reason) for name, reason in reasons if reason])


def _write_file_format(config: Config, name: str, trusting: bool) -> Answer:
    from npuprof.renderers.environment import collect_env_variables, list_unset_variables
    from npuprof.renderers.process import build_fact_finder, sidecar_cache_folder, write_sidecars

    kind = _load_formats()[name]
    folder = sidecar_cache_folder(config)
    # a shared file must not depend on the machine that writes it
    tell = None if kind.shared else build_fact_finder(os.environ)
    variables, notes = collect_env_variables(
        config, tell, kind.folder or folder, trusting, kind.facts
    )
    if not kind.clears:
        removed, _ = list_unset_variables(config, trusting, variables)
        if removed:
            shown = ", ".join(removed)
            notes.append(f"--format {name} cannot unset {shown}: unset it where the job is started")
    _refuse_values(
        config, ((variable, kind.refuses(variable, text)) for variable, text in variables.items())
    )
    for variable, value in variables.items():
        if caveat := kind.caveat(variable, value):
            notes.append(f"{variable}: {caveat}")
    sidecars = dict(collect_sidecars(config).values())
    if kind.holds_files and any(config.shared_sections[section] for section in kind.sections):
        for target in map(load_target, list_fitting_targets(config)):
            if target.is_folder:
                rendered = target.write(config, True)
                sidecars[target.file] = rendered.text
                # its variables are in the first ConfigMap
                start = rendered.start.partition(" && ")[2].replace("DIR", kind.folder)
                notes.append(f"start: {start}")
    text = kind.write(config, variables, sidecars)
    size = sum(len(f"{key}{value}".encode()) for key, value in {**variables, **sidecars}.items())
    if kind.largest and size > kind.largest:
        what = "the variables do not fit into one ConfigMap"
        raise build_error(
            "NP903", what, "Kubernetes takes at most 1 MiB.", "keep long values in files"
        )
    if kind.folder:
        if sidecars:
            where = (
                "mount the second ConfigMap there"
                if kind.holds_files
                else "npuprof env --format k8s-configmap writes a ConfigMap of them"
            )
            notes.append(
                f"{', '.join(sidecars)} must be at {kind.folder} in the container: {where}"
            )
    else:
        write_sidecars(config, folder)
        if sidecars and kind.shared:
            notes.append(
                f"{', '.join(sidecars)} is in {folder}, and must be there where the file is read"
            )
    return Answer(text, early_notes=tuple(notes))


def _compare_environment(config: Config, file_format: str | None) -> Answer:
    from npuprof.renderers.environment import collect_env_variables, list_unset_variables
    from npuprof.renderers.environment_files import compare_environment
    from npuprof.renderers.process import build_fact_finder, sidecar_cache_folder
    from npuprof.report.json_text import format_json_answer
    from npuprof.runs.recording import hide_text

    def show_value(text: str) -> str:
        return escape_controls(
            quote_basic_string(text.encode("utf-8", "backslashreplace").decode())
        )

    variables, _ = collect_env_variables(
        config, build_fact_finder(os.environ), sidecar_cache_folder(config), trusting=True
    )  # only shown
    changes = compare_environment(variables, dict(os.environ), list_unset_variables(config)[0])
    changes = [
        # the environment may contain secrets that no preset sets
        change._replace(before=change.before and hide_text(change.name, change.before))
        for change in changes
    ]
    if file_format == "json":
        names_by_sign = {"+": "added", "~": "changed", "-": "left over"}
        rows = [
            {
                "change": names_by_sign[change.sign],
                "name": change.name,
                "before": change.before,
                "after": change.after,
            }
            for change in changes
        ]
        text = format_json_answer({"schema": "npuprof.env-diff/1", "changes": rows})
        return Answer(text.encode("utf-8", "backslashreplace"))
    lines = []
    for change in changes:
        sides = [side for side in (change.before, change.after) if side is not None]
        values = " -> ".join(map(show_value, sides))
        lines.append(f"{change.sign} {escape_controls(change.name)} = {values}\n")
    return Answer("".join(lines))


VERB = Env
