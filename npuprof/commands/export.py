"""``render`` and ``env``: a preset to code, and to the environment of a shell or a file."""

from __future__ import annotations

import os
from typing import Any

from npuprof import renderers
from npuprof.model import Finding, NpuprofError, did_you_mean
from npuprof.report import output
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from npuprof.renderers.files import Format
    from npuprof.renderers.shell import Shell
    from npuprof.resolve.config import Config


def resolved(given: dict[str, Any], target: str | None, unset: list[str]) -> Config:
    """Return the preset that the parameters name, checked unless they say no. Raises NpuprofError."""
    context = spec.build_context(given["cann"], given["product"], target)
    workspace = spec.Workspace(given["store"], context)
    config = workspace.resolve_spec(given["spec"], given["mixin"], spec.parse_assignments(given["set_"], unset))
    if not given["no_check"]:
        _checked(config)
    return config


def _checked(config: Config) -> None:
    """Refuse a config with errors, and tell its warnings."""
    from npuprof.checks import check_config, fold_findings

    findings = fold_findings(check_config(config, notes=False, everywhere=False))
    if config.abstract:
        origin = config.lineage[-1].origin("profile", "abstract")
        why = "It is only there to be extended, and may be incomplete."
        hint = "extend it, or lay it over another with --with"
        what = f"{config.name} is abstract"
        findings.insert(0, Finding("NP107", "error", what, why, hint, origin, "profile.abstract", (config.name,)))
    if any(finding.severity == "error" for finding in findings):
        raise NpuprofError(findings)
    _tell(findings)


def _tell(findings: Iterable[Finding]) -> None:
    """Say findings beside the answer."""
    told = tuple(findings)
    if told:
        import sys

        from npuprof.report import format_findings

        output.write_to_stderr(format_findings(told, output.is_colour_wanted("auto", sys.stderr)).rstrip("\n"))


def one_of(kind: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that is not among the known ones."""
    names = tuple(known)
    if name not in names:
        hint = did_you_mean(name, names, f"known are {', '.join(names)}")
        raise NpuprofError([Finding("NP902", "error", f"unknown {kind} {name!r}", "", hint)])


def render(**given: Any) -> int:
    """Write a preset as code or a command line."""
    to = given["to"]
    one_of("target", to, renderers.MODULES)
    config = resolved(given, to, given["unset"])
    target = renderers.load_target(to)
    rendered = target.write(config, given["inline"])
    if given["check"] is not None:
        if os.path.isfile(given["check"]) and "# >>> npuprof " in _read(given["check"], missing=""):
            from npuprof.commands.inject import check_blocks

            return check_blocks(given["check"], given["spec"], given["store"])
        return _up_to_date(given["check"], to, rendered)
    for note in rendered.notes:
        output.write_to_stderr(f"npuprof: not in this target: {note}")
    _tell(rendered.findings)
    path = given["output"]
    if path is None or path == "-" or output.is_stream(path):
        if rendered.sidecars:
            raise NpuprofError([_needs_folder(config, rendered)])
        output.write_answer(rendered.text, path)
        return 0
    named = not os.path.isdir(path) and not path.endswith(os.sep) and (os.path.splitext(path)[1] or os.path.isfile(path))
    folder = os.path.dirname(path) or "." if named else path
    made = output.make_folder(folder)
    file = os.path.join(path, target.file) if folder == path else path
    try:
        output.write_files_atomically(
            {**{os.path.join(folder, name): text for name, text in rendered.sidecars.items()}, file: rendered.text}
        )
    except NpuprofError:
        output.remove_folders(made)
        raise
    return 0


def _needs_folder(config: Config, rendered: renderers.Rendered) -> Finding:
    from npuprof.renderers.common import collect_sidecars

    names = list(collect_sidecars(config))
    what = f"the code needs {', '.join(rendered.sidecars)} beside it, which cannot be written to standard output"
    why = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} written out in the preset."
    return Finding("NP904", "error", what, why, "name a folder with -o DIR", config.origin(names[0]))


def _up_to_date(path: str, to: str, rendered: renderers.Rendered) -> int:
    """Say whether a rendered file, and the sidecar files beside it, are what would be rendered now."""
    from npuprof.renderers.stamp import compare_rendered

    if os.path.isdir(path):
        path = os.path.join(path, renderers.load_target(to).file)
    state = compare_rendered(_read(path), rendered.text, same_body=to == "env-loader")
    folder = os.path.dirname(path)
    beside = [os.path.join(folder, name) for name in rendered.sidecars]
    wrong = [file for file, text in zip(beside, rendered.sidecars.values(), strict=True) if _read(file, missing="\0") != text]
    for file in wrong:
        output.write_to_stderr(f"npuprof: {file} is not what the preset says it holds")
    if state.current:
        return 1 if wrong else 0
    if state.foreign:
        output.write_to_stderr(f"npuprof: {path} was not rendered by npuprof, or has lost its header")
    if state.edited:
        output.write_to_stderr(f"npuprof: {path} was edited by hand: its text is not the one that was rendered")
    if state.stale:
        output.write_to_stderr(f"npuprof: {path} is out of date: the preset, or npuprof, has changed since it was rendered")
    return 1


def _read(path: str, missing: str | None = None) -> str:
    try:
        return output.read_file_content(path, "render it first").decode(errors="replace")
    except NpuprofError:
        if missing is None:
            raise
        return missing


def env(**given: Any) -> int:
    """Print a preset as assignments for a shell's eval, or as a file that holds an environment."""
    form = given["format"]
    if form is not None or given["diff"]:
        return _env_file(form, given)
    from npuprof.renderers import shell as shells
    from npuprof.renderers.environment import collect_env_variables
    from npuprof.renderers.process import build_fact_finder, sidecar_cache_folder, write_sidecars

    shell = _shell(given["shell"] or "bash")
    config = resolved(given, "env", [])
    found, notes = collect_env_variables(config, build_fact_finder(os.environ), sidecar_cache_folder(config))
    if given["undo"]:
        output.write_answer(shells.format_clear_lines(shell, list(found)), given["output"])
        return 0
    _refuse(config, ((name, shell.refuses(text)) for name, text in found.items()))
    write_sidecars(config, sidecar_cache_folder(config))
    for note in notes:
        output.write_to_stderr(f"npuprof: {note}")
    output.write_answer(shells.format_export_lines(shell, found), given["output"])
    return 0


def _shell(name: str) -> Shell:
    from npuprof.renderers.shell import SHELLS

    one_of("shell", name, SHELLS)
    return SHELLS[name]


def _refuse(config: Config, reasons: Iterable[tuple[str, str]]) -> None:
    from npuprof.renderers.environment import build_export_finding

    problems = [build_export_finding(config, name, reason) for name, reason in reasons if reason]
    if problems:
        raise NpuprofError(problems)


def _env_file(form: str | None, given: dict[str, Any]) -> int:
    from npuprof.renderers import files
    from npuprof.renderers.common import collect_sidecars
    from npuprof.renderers.environment import collect_env_variables
    from npuprof.renderers.process import build_fact_finder, sidecar_cache_folder, write_sidecars

    if form is not None:
        one_of("format", form, files.FORMATS)
    for flag, wanted in (("--shell", given["shell"]), ("--unset", given["undo"])):
        if wanted and (form is not None or given["diff"]):
            beside = "--diff" if given["diff"] else "--format"
            raise NpuprofError([Finding("NP914", "error", f"{flag} and {beside} do not go together", "", "leave one of them out")])
    config = resolved(given, "env", [])
    if given["diff"]:
        found, _ = collect_env_variables(config, build_fact_finder(os.environ), sidecar_cache_folder(config))
        return _env_diff(form, files.compare_environment(found, dict(os.environ)), given["output"])
    kind: Format = files.FORMATS[str(form)]
    found, notes = collect_env_variables(
        config, None if kind.shared else build_fact_finder(os.environ), kind.folder or sidecar_cache_folder(config)
    )
    _refuse(config, ((name, kind.refuses(name, text)) for name, text in found.items()))
    beside_it = dict(collect_sidecars(config).values())
    text = kind.write(config, found, beside_it)
    if (
        form == "k8s-configmap"
        and sum(len(f"{name}{value}".encode()) for name, value in {**found, **beside_it}.items()) > files.LARGEST_MAP
    ):
        what = "the variables do not fit into one ConfigMap"
        raise NpuprofError([Finding("NP903", "error", what, "Kubernetes takes at most 1 MiB.", "keep long values in files")])
    if kind.folder:
        if beside_it:
            notes.append(f"{', '.join(beside_it)} must be at {kind.folder} in the container: env --format k8s-configmap holds them")
    else:
        write_sidecars(config, sidecar_cache_folder(config))
        if beside_it and kind.shared:
            notes.append(f"{', '.join(beside_it)} is in {sidecar_cache_folder(config)}, and must be there where the file is read")
    for note in notes:
        output.write_to_stderr(f"npuprof: {note}")
    output.write_answer(text, given["output"])
    return 0


def _env_diff(form: str | None, changes: list[tuple[str, str, str | None, str | None]], path: str | None) -> int:
    from npuprof.document.keys import quote_basic_string
    from npuprof.report import escape_controls, format_json_answer

    def shown(text: str) -> str:
        return escape_controls(quote_basic_string(text.encode("utf-8", "backslashreplace").decode()))

    if form not in (None, "json"):
        hint = "leave --format out, or write --format json"
        raise NpuprofError([Finding("NP914", "error", f"--diff has no form for {form}", "", hint)])
    if form == "json":
        words = {"+": "added", "~": "changed", "-": "left over"}
        rows = [{"change": words[sign], "name": name, "before": old, "after": new} for sign, name, old, new in changes]
        text = format_json_answer({"schema": "npuprof.env-diff/1", "changes": rows}).encode("utf-8", "backslashreplace").decode()
    else:
        lines = []
        for sign, name, old, new in changes:
            values = " -> ".join(shown(value) for value in (old, new) if value is not None)
            lines.append(f"{sign} {escape_controls(name)} = {values}\n")
        text = "".join(lines)
    output.write_answer(text, path)
    return 0
