"""Judges arguments in presets by the parsers of programs that the user names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from npuprof.catalog.programs import find_program
from npuprof.checks.store import StoreReport
from npuprof.document.keys import format_full_key
from npuprof.model import Finding, NpuprofError
from npuprof.resolve.config import Config
from npuprof.scripts.lint.program_faults import BY_CATALOGUE, find_flag_faults
from npuprof.scripts.programs.finding import Programs
from npuprof.scripts.programs.parsers import Parser
from npuprof.store.checked import CheckedStore

#: As many of its marks make a program the one of a section.
_MOST_MARKS = 3


def judge_presets(checked: CheckedStore, report: StoreReport, paths: Sequence[str]) -> StoreReport:
    """Return a report with the findings of the parsers of programs at some paths.

    They replace those about the same arguments by the names of known releases.
    """
    programs = Programs((), paths)
    parsers = programs.list_parsers()
    presets = []
    for preset in report.presets:
        findings = preset.findings
        with suppress(NpuprofError):  # it is in the report
            config = checked.resolve_preset(preset.name)
            judged = dict(_iterate_faults(config, parsers, programs))
            findings = [
                finding
                for finding in findings
                if finding.key not in judged or finding.code not in BY_CATALOGUE
            ]
            findings += [
                found._replace(profiles=(preset.name,))
                for several in judged.values()
                for found in several
            ]
        presets.append(preset._replace(findings=findings))
    return report._replace(presets=presets)


def _iterate_faults(
    config: Config, parsers: Sequence[Parser], programs: Programs
) -> Iterator[tuple[str, list[Finding]]]:
    """Yield the arguments that some parsers judge by full key, with what all of them reject."""
    sections = config.sections()
    for program in filter(None, map(find_program, ("megatron", "args"))):
        marks = {f"--{name}" for name in program.marks}
        own = [each for each in parsers if len(marks & each.flags.keys()) >= _MOST_MARKS]
        own = own if marks else [each for each in parsers if each not in own]
        for name, value in sections.get(program.section, {}).items() if own else ():
            key = format_full_key(program.section, name)
            yield key, list(_find_faults(config, own, programs, key, name, value))


def _find_faults(
    config: Config,
    parsers: Sequence[Parser],
    programs: Programs,
    key: str,
    name: str,
    value: Any,
) -> Iterator[Finding]:
    if isinstance(value, dict):
        for inner, item in value.items():
            yield from _find_faults(config, parsers, programs, key, f"{name}.{inner}", item)
        return
    flag = name if name.startswith("-") else f"--{name}"
    if value is False:  # no flag, or that of the negation
        return
    found = [find_flag_faults(parser, flag, value, programs) for parser in parsers]
    if all(found):
        fault = found[0][0]
        yield Finding(
            fault.code,
            fault.message,
            fault.why,
            fault.hint,
            config.origin(key),
            key,
            severity=fault.severity,
            certainty=fault.certainty,
        )
