"""Conflicts of an environment with a preset.

They are invalid variables, and variables that override its settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from npuprof import catalog, checks
from npuprof.catalog import build_finding
from npuprof.catalog.values import encode_field_value
from npuprof.document import build_command_line_document, keys
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError
from npuprof.renderers.environment import format_equivalent_text, format_variable_text
from npuprof.resolve.config import Config
from npuprof.store.spec import Workspace

_FROM = "the environment"


def find_interference(config: Config | None, environ: Mapping[str, str]) -> list[Finding]:
    """Return the conflicts of an environment with a preset, or with any."""
    set_here = {
        name: text
        for name in catalog.record_names("env")
        if (text := environ.get(name)) is not None
    }
    findings = [*_find_log_faults(set_here)]
    own = dict(config.env) if config is not None else {}
    exported = (
        {(name, text) for _, name, text in _list_twins(config)} if config is not None else set()
    )
    others = {
        name: text
        for name, text in set_here.items()
        # npuprof run sets those itself
        if name not in own and (name, text) not in exported
    }
    reported = {finding.key for finding in findings}
    findings += [
        finding for finding in _check_variables(config, others) if finding.key not in reported
    ]
    if config is not None:
        known = " ".join(finding.message for finding in findings)
        findings += [
            finding
            for finding in _find_rivals(config, others)
            if keys.split_section_and_name(finding.key)[1] not in known
        ]
    return findings


def _check_variables(config: Config | None, others: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the additional findings that variables would cause if the preset set them."""
    if not others:
        return
    document = build_command_line_document(_FROM, {"env": dict(others)})
    workspace = Workspace()
    layer = Profile(document, key="composed:environment")
    try:
        if config is None:
            seen = workspace.resolver.resolve_profile(layer)
        else:
            context = workspace.resolver.for_context(config.context)
            joined = Profile(
                build_command_line_document(config.name, {}), key="composed:surroundings"
            )
            seen = context.resolve_members(
                (*config.lineage, layer, joined), config.name, config.claims, config.changes
            )
        before = (
            {(earlier.code, earlier.key) for earlier in checks.check_config(config)}
            if config is not None
            else set()
        )
        findings = checks.check_config(seen)
    except NpuprofError:
        return
    for finding in findings:
        section, name = keys.split_section_and_name(finding.key) if finding.key else ("", "")
        concerned = (section == "env" and name in others) or any(
            name in finding.message for name in others
        )
        if concerned and (finding.code, finding.key) not in before and finding.severity != "info":
            yield finding._replace(severity="warning", profiles=())


def _find_log_faults(set_here: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the faults of combinations of log variables."""
    screens = {
        name: set_here[name]
        for name in ("ASCEND_LOG_PRINT_TO_STDOUT", "ASCEND_SLOG_PRINT_TO_STDOUT")
        if name in set_here
    }
    printing = next((name for name, text in screens.items() if text == "1"), "")
    if printing and "ASCEND_PROCESS_LOG_PATH" in set_here:
        what = f"{printing}=1 leaves ASCEND_PROCESS_LOG_PATH without effect"
        why = "Screen output is not saved to files."
        yield build_finding(
            "NP965", what, why, "unset one of the two", key="env.ASCEND_PROCESS_LOG_PATH"
        )
    if len(set(screens.values())) > 1:
        what = (
            f"{' and '.join(f'{name}={text}' for name, text in screens.items())} "
            "contradict each other"
        )
        why = "Releases before 9.2.0 know only the second; later ones take the first."
        yield build_finding(
            "NP965", what, why, "give both one value", key="env.ASCEND_LOG_PRINT_TO_STDOUT"
        )


def _list_twins(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield the variables that npuprof sets for a preset's options: option, name and text."""
    twins = catalog.load_equivalent_variables()
    for option, value in config.options.items():
        for name in twins.get(option, ()):
            yield (
                option,
                name,
                format_equivalent_text(
                    name, value, format_variable_text(encode_field_value(option, value))
                ),
            )


def _find_rivals(config: Config, others: Mapping[str, str]) -> Iterator[Finding]:
    """Yield variables that set an option of the preset to another value."""
    for option, name, text in _list_twins(config):
        if name in others:
            order = str(catalog.find_record_texts("env", name).get("precedence", ""))
            what = (
                f"{name}={others[name]!r} says something else than {option} = "
                f"{keys.format_short_value(config.options[option])}"
            )
            why = (
                "Where the script sets the option it wins; "
                "where it does not, the variable is effective."
            ) + (f" ({order})" if order else "")
            hint = f"unset {name}, or start the run with npuprof run, which sets it to {text!r}"
            yield Finding(
                "NP965", what, why, hint, config.origin(option), f"env.{name}", severity="info"
            )
