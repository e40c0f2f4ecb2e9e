"""``check``: every finding of the presets named, or of the whole store."""

from __future__ import annotations

import gc
import os
from contextlib import suppress

from npuprof import checks, report
from npuprof.commands.flags import Form
from npuprof.model import Finding, NpuprofError
from npuprof.store import build_bad_name_finding, spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from npuprof.resolve.config import Config


def check_presets(
    specs: Sequence[str],
    store: str | None,
    cann: str | None,
    product: str | None,
    format_: str,
    severity: str | None,
    strict: bool,
    path: str | None,
    color: str,
) -> int:
    """Check presets and print what was found.

    Exit 2 where a preset could not be read or resolved, 1 where there are errors, 0 otherwise.
    """
    form = Form(format_, severity, strict, path, color).known()
    gc.freeze()
    gc.disable()  # thousands of small values, none of them garbage
    workspace = spec.Workspace(store, spec.build_context(cann, product))
    found: list[Finding] = []
    unresolved = 0
    notes = form.least == "info"
    names = list(specs) or workspace.store.names()
    if not specs:
        found += _strays(workspace)
        unresolved += len(found)
        for name in names:  # all files before all checks: one kind of work at a time is faster by a fifth
            with suppress(NpuprofError):
                workspace.profile(name)
    configs: list[Config] = []
    for name in names:
        try:
            configs.append(workspace.resolve_spec(name))
        except NpuprofError as error:
            unresolved += 1
            found += [finding._replace(profiles=finding.profiles or (name,)) for finding in error.findings]
    for config in configs:
        found += checks.check_config(config, notes)
    findings = checks.fold_findings(found)
    form.hand_out(form.told(findings), _closing(findings, len(names), notes))
    return 2 if unresolved else form.code(findings)


def _closing(findings: Sequence[Finding], number: int, notes: bool) -> str:
    more = "" if notes else " (--severity info shows notes as well)"
    return f"{report.format_count(number, 'preset')} checked: {report.format_severity_counts(findings) or 'nothing found'}{more}"


def _strays(workspace: spec.Workspace) -> Iterator[Finding]:
    for stray in workspace.store.stray_files():
        yield build_bad_name_finding(stray)._replace(hint="rename the file", where=(os.path.join(workspace.store.label, stray), 0, 0))
