"""``render`` and ``env``: a preset to code, and to the environment of a shell."""

from __future__ import annotations

import os
from typing import Any

from npuprof import output, renderers, spec
from npuprof.errors import NpuprofError
from npuprof.model import Finding
from npuprof.nearest import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.config import Config


def _resolved(given: dict[str, Any], target: str | None, unset: list[str]) -> Config:
    context = spec.context(given["cann"], given["product"], target)
    workspace = spec.Workspace(given["store"], context)
    config = workspace.config(given["spec"], given["mixin"], spec.assignments(given["set_"], unset))
    if not given["no_check"]:
        _checked(config)
    return config


def _checked(config: Config) -> None:
    """Refuse a config with errors, and tell its warnings."""
    from npuprof.checks import check, gather

    findings = gather(check(config, notes=False))
    if config.abstract:
        origin = config.lineage[-1].origin("profile", "abstract")
        why = "It is only there to be extended, and may be incomplete."
        findings.insert(
            0,
            Finding(
                "NP107",
                "error",
                f"{config.name} is abstract",
                why,
                "extend it, or lay it over another with --with",
                origin,
                "profile.abstract",
                (config.name,),
            ),
        )
    if any(finding.severity == "error" for finding in findings):
        raise NpuprofError(findings)
    if findings:
        import sys

        from npuprof.report import findings_text

        output.talk(findings_text(findings, output.colour("auto", sys.stderr)).rstrip("\n"))


def render(**given: Any) -> int:
    """Write a preset as code or a command line."""
    to = given["to"]
    if to not in renderers.MODULES:
        known = tuple(renderers.MODULES)
        raise NpuprofError(
            [Finding("NP902", "error", f"unknown target {to!r}", "", did_you_mean(to, known, f"known are {', '.join(known)}"))]
        )
    config = _resolved(given, to, given["unset"])
    target = renderers.target(to)
    rendered = target.write(config, given["inline"])
    for note in rendered.notes:
        output.talk(f"npuprof: not in this target: {note}")
    if given["check"] is not None:
        return _up_to_date(given["check"], rendered.text)
    path = given["output"]
    if path is None or path == "-":
        if rendered.sidecars:
            raise NpuprofError([_needs_folder(config, rendered)])
        output.answer(rendered.text)
        return 0
    folder = path if os.path.isdir(path) or path.endswith(os.sep) or not os.path.splitext(path)[1] else os.path.dirname(path) or "."
    output.make_folder(folder)
    file = os.path.join(path, target.file) if folder == path else path
    output.write_all({**{os.path.join(folder, name): text for name, text in rendered.sidecars.items()}, file: rendered.text})
    return 0


def _needs_folder(config: Config, rendered: renderers.Rendered) -> Finding:
    files = ", ".join(rendered.sidecars)
    names = [name for name, value in config.options.items() if isinstance(value, dict)]
    what = f"the code needs {files} beside it, which cannot be written to standard output"
    return Finding(
        "NP904", "error", what, f"{', '.join(names)} is written out in the preset.", "name a folder with -o DIR", config.origin(names[0])
    )


def _up_to_date(path: str, text: str) -> int:
    try:
        with open(path, "rb") as file:
            found = file.read()
    except OSError as error:
        raise NpuprofError(
            [Finding("NP003", "error", f"cannot read {path}: {str(error.strerror).lower()}", "", "render it first", where=(path, 0, 0))]
        ) from None
    if found == text.encode():
        return 0
    mine = [line for line in text.splitlines() if line.startswith("# digest: ")]
    theirs = [line for line in found.decode(errors="replace").splitlines() if line.startswith("# digest: ")]
    if mine and mine == theirs:
        output.talk(f"npuprof: {path} was edited by hand: the preset is the same, the text is not")
    else:
        output.talk(f"npuprof: {path} is out of date: the preset has changed since it was rendered")
    return 1


def env(**given: Any) -> int:
    """Print a preset as assignments for a shell's eval."""
    from npuprof.apply import cache, write_sidecars
    from npuprof.renderers import shell as shells
    from npuprof.renderers.environment import variables

    shell = shells.SHELLS.get(given["shell"])
    if shell is None:
        known = tuple(shells.SHELLS)
        raise NpuprofError(
            [
                Finding(
                    "NP902",
                    "error",
                    f"unknown shell {given['shell']!r}",
                    "",
                    did_you_mean(given["shell"], known, f"known are {', '.join(known)}"),
                )
            ]
        )
    config = _resolved(given, "env", [])
    found, notes = variables(config, os.environ, cache(config))
    if given["undo"]:
        output.answer(shells.clear(shell, list(found)), given["output"])
        return 0
    refused = [_refused(config, name, reason) for name, text in found.items() if (reason := shell.refuses(text))]
    if refused:
        raise NpuprofError(refused)
    write_sidecars(config, cache(config))
    for note in notes:
        output.talk(f"npuprof: {note}")
    output.answer(shells.export(shell, found), given["output"])
    return 0


def _refused(config: Config, name: str, reason: str) -> Finding:
    key = f"env.{name}" if f"env.{name}" in config.settings else name.removeprefix("NPUPROF_").lower()
    hint = "use another shell, or write the value without it"
    return Finding(
        "NP903",
        "error",
        f"{name} cannot be exported: {reason}",
        "A value comes back byte for byte or not at all.",
        hint,
        config.origin(key),
        key,
        (config.name,),
    )
