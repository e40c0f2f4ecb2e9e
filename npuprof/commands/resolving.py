"""Functions of verbs that resolve a preset: its context and changes, and optional checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from npuprof.model import TYPE_CHECKING, Context, Finding, NpuprofError
from npuprof.report import output
from npuprof.resolve.config import Config
from npuprof.resolve.lineages import has_overrides
from npuprof.store import spec

if TYPE_CHECKING:
    from typing import Protocol

    from npuprof.document.profile import Profile
    from npuprof.model import Step

    class ResolvingVerb(Protocol):
        """A verb that resolves a spec, with the user's parameters."""

        spec: str
        store: str | None
        mixin: list[str]
        set_: list[str]
        unset: list[str]
        refusal: str

        def build_context(self, target: str | None = None) -> Context:
            """Return the context of the arguments."""


#: Codes of keys that the catalogue lacks.
_UNKNOWN = ("NP201", "NP206", "NP207", "NP208", "NP209")


def open_workspace(
    store: str | None,
    context: Context | None = None,
    reads_runs: bool = True,
    unread: list[Finding] | None = None,
) -> spec.Workspace:
    """Return a workspace that reads run logs as profiles, or rejects them with the verb's reason.

    Unreadable files in a folder of records are added to ``unread``; without such a list, the whole
    folder is rejected.
    """
    workspace = spec.Workspace(store, context)

    def read_run_file(path: str) -> Profile | None:
        from npuprof.runs import kinds

        if reads_runs:
            return kinds.read_as_profile(path, unread)
        return kinds.reject_run_file(path)

    workspace.read_other = read_run_file
    return workspace


def resolve_requested(
    verb: ResolvingVerb, target: str | None = None, personal: bool = False, reads_runs: bool = True
) -> Config:
    """Return the requested preset in the requested context.

    ``personal`` layers that apply are reported.

    With ``reads_runs``, run records and logs are accepted too.

    Raises NpuprofError.
    """
    workspace = open_workspace(verb.store, verb.build_context(target), reads_runs)
    changes = []
    # the parser of assignments is imported only if it is needed
    if verb.set_ or verb.unset:
        from npuprof.store.assignment_arguments import parse_assignments

        changes = parse_assignments(verb.set_, verb.unset)
    layers = []
    if personal:
        from npuprof.store.personal_layers import load_personal_layers

        layers = load_personal_layers(workspace.profile(verb.spec))
    if not layers:
        return workspace.resolve_spec(verb.spec, verb.mixin, changes)
    config = _resolve_with_layers(workspace, verb, changes, layers)
    _print_layers(workspace, verb, config, layers)
    return config


def _resolve_with_layers(
    workspace: spec.Workspace,
    verb: ResolvingVerb,
    changes: Sequence[Step],
    layers: Sequence[Profile],
) -> Config:
    """Return a preset with personal layers.

    Raises NpuprofError, with --no-personal as the hint if that would help.
    """
    from npuprof.store.personal_layers import build_unfit_finding

    try:
        return workspace.resolve_spec(verb.spec, verb.mixin, changes, layers)
    except NpuprofError as error:
        # errors without the layers are reported as usual
        workspace.resolve_spec(verb.spec, verb.mixin, changes)
        unfit = [build_unfit_finding(layer.document.source) for layer in layers]
        raise NpuprofError([*error.findings, *unfit]) from None


def _print_layers(
    workspace: spec.Workspace, verb: ResolvingVerb, config: Config, layers: Sequence[Profile]
) -> None:
    """Print the personal layers that apply, their files, and the keys they set."""
    shared = {member.key for member in workspace.resolve_spec(verb.spec, verb.mixin).lineage}
    steps = [
        step
        for member in config.lineage
        if member.key not in shared
        for step in (*member.steps, *member.override_steps)
    ]
    keys = ", ".join(
        dict.fromkeys(f"{step.key} (unset)" if step.op == "unset" else step.key for step in steps)
    )
    paths = ", ".join(layer.document.source for layer in layers)
    # always: a result that differs from a colleague's must be explicable
    output.print_note(
        f"a personal layer is applied: {keys or 'it sets nothing'} "
        f"({paths}); --no-personal omits it"
    )


def resolve_shown(verb: ResolvingVerb, personal: bool) -> Config:
    """Return the preset for a verb that prints it unchecked; unknown keys in changes are reported.

    Raises NpuprofError.
    """
    config = resolve_requested(verb, personal=personal)
    if config.changes:
        from npuprof.checks.setting_values import find_setting_faults
        from npuprof.checks.view import View

        view = View(config)
        output.print_findings(
            [
                view.build_finding(fault, step.key)
                for step in config.changes
                if step.op == "set"
                for fault in find_setting_faults(step.key, step.value)
                # other faults of a value are reported by check; a misspelt key would be ignored
                if fault.code in _UNKNOWN
            ]
        )
    _print_skipped_overrides(config)
    return config


def resolve_checked(
    verb: ResolvingVerb,
    target: str,
    no_check: bool,
    hidden_codes: Sequence[str] = (),
    personal: bool = False,
    reads_runs: bool = True,
) -> Config:
    """Return the requested preset after checking it.

    Warnings are printed, except for ``hidden_codes``.

    Raises NpuprofError for errors and abstract presets.
    """
    config = resolve_requested(verb, target, personal, reads_runs)
    if not no_check:
        from npuprof.checks import require_exportable

        with report_refusal(verb.refusal):
            findings = require_exportable(config)
        output.print_findings([found for found in findings if found.code not in hidden_codes])
    _print_skipped_overrides(config)
    return config


@contextmanager
def report_refusal(what: str, hint: str = "; --no-check skips the checks") -> Iterator[None]:
    """Report what was not done if the block raises NpuprofError for a preset."""
    try:
        yield
    except NpuprofError as error:
        if any(finding.profiles for finding in error.findings):
            output.print_note(f"{what}: the preset has errors{hint}")
        raise


def _print_skipped_overrides(config: Config) -> None:
    """Print the overrides that did not apply because no product or release was selected."""
    if not has_overrides(config.lineage):
        return
    from npuprof.resolve.contexts import find_unasked_overrides

    for flags, origins in find_unasked_overrides(config).items():
        count = "an override takes" if len(origins) == 1 else f"{len(origins)} overrides take"
        output.print_note(f"{count} part only with {flags}: {', '.join(map(str, origins))}")


def print_omitted_count(findings: Sequence[Finding], strict: bool) -> None:
    """Print the sections that a target does not support.

    With ``strict``, raises NpuprofError for them.
    """
    if strict and findings:
        raise NpuprofError(findings)
    for finding in findings:
        output.print_note(f"left out: {finding.message}")
