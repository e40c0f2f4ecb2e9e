"""``doctor``: report the installed adapter, unread options and interfering variables."""

from __future__ import annotations

import os

from npuprof.catalog import build_finding
from npuprof.commands.framework import option, optional_argument
from npuprof.commands.framework.parameters import (
    FORMAT,
    PrintingVerb,
    ResolvingVerb,
)
from npuprof.commands.resolving import resolve_requested
from npuprof.model import Fields, Finding, NpuprofError, Record
from npuprof.report import Answer
from npuprof.report.findings import build_finding_dict, format_findings
from npuprof.report.text import escape_controls, format_count
from npuprof.resolve.config import Config
from npuprof.runs.adapter import Adapter, Likeness, find_likeness, read_adapter
from npuprof.runs.environment_conflicts import find_interference


class _Diagnosis(Record):
    """The adapter, if any, its likely releases, the options it reads, and the problems."""

    adapter: Adapter | None
    likeness: Likeness | None
    read: dict[str, bool | None]
    findings: tuple[Finding, ...]


class Doctor(PrintingVerb, ResolvingVerb):
    """Diagnose the installed adapter and the environment.

    Reports which adapter is installed, which options of the preset it does not read, and which
    variables interfere with the preset. The adapter is read but never executed. Exits with 1 if
    there are problems, and with 2 if no adapter can be read.
    """

    group = "runs"
    prose = True

    spec = optional_argument(
        "SPEC",
        "Preset, run record or run log to diagnose [default: only the adapter and the environment]",
        "spec",
    )
    adapter = option(
        "--adapter",
        metavar="PATH",
        text=(
            "Read the adapter at PATH: a folder, a wheel or "
            "a shared library [default: the installed one]"
        ),
    )
    format = FORMAT

    def run(self) -> Answer:
        """Return the diagnosis.

        Exit 1 for unread options or interfering variables, 2 if no adapter could be read.
        """
        config = None
        if self.spec is not None:
            config = resolve_requested(self, personal=True)  # type: ignore[arg-type]
        diagnosis = self._diagnose(config)
        serious = any(finding.severity != "info" for finding in diagnosis.findings)
        return Answer(
            {
                "text": lambda: self._format_text(diagnosis, config),
                "json": lambda: _build_fields(diagnosis, config),
            },
            code=2 if diagnosis.adapter is None else int(serious),
        )

    def _diagnose(self, config: Config | None) -> _Diagnosis:
        findings: list[Finding] = []
        adapter: Adapter | None = None
        try:
            adapter = read_adapter(self.adapter)
        # the environment can be diagnosed without an adapter
        except NpuprofError as error:
            findings += error.findings
        read = (
            {name: adapter.reads(name) for name in config.options}
            if adapter is not None and config is not None
            else {}
        )
        likeness = find_likeness(adapter) if adapter is not None else None
        for name, known in read.items():
            # None means unknown, which is no fault
            if known is False and config is not None:
                what = f"{name} is not read by the adapter that is installed"
                why = "TF 1 silently ignores unknown keys; TF 2 rejects them."
                hint = (
                    "unset it, or install an adapter that reads "
                    f"it: npuprof option {name} says since when"
                )
                findings.append(
                    build_finding(
                        "NP964", what, why, hint, config.origin(name), name, (config.name,)
                    )
                )
        findings += find_interference(config, os.environ)
        return _Diagnosis(adapter, likeness, read, tuple(findings))

    def _format_text(self, diagnosis: _Diagnosis, config: Config | None) -> str:
        lines = []
        if diagnosis.adapter is not None:
            named = [
                (f"{package.name} {package.version}".rstrip(), os.path.dirname(package.path))
                for package in diagnosis.adapter.packages
            ]
            lines += [f"adapter      {name} in {folder}" for name, folder in named]
            keys = diagnosis.adapter.keys or ()
            lines += [
                f"library      {path}: {format_count(len(keys), 'option')} named"
                for path in diagnosis.adapter.libraries
            ]
            lines += [f"not read     {path}: {why}" for path, why in diagnosis.adapter.unread]
        if diagnosis.likeness is not None:
            first = diagnosis.likeness.releases[0]
            last = diagnosis.likeness.releases[-1]
            span = f"CANN {first}" + (f" to {last}" if last != first else "")
            compared = f"{diagnosis.likeness.compared} names compared"
            if diagnosis.likeness.different:
                compared += f", of which {len(diagnosis.likeness.different)} disagree"
            lines.append(f"looks like   {span} ({compared})")
        if config is not None and diagnosis.adapter is not None:
            unknown = [name for name, known in diagnosis.read.items() if known is None]
            unread = [name for name, known in diagnosis.read.items() if known is False]
            counted = (
                f"{len(diagnosis.read) - len(unread) - len(unknown)} of "
                f"{format_count(len(diagnosis.read), 'option')} read"
            )
            lines.append(
                f"preset       {config.name}: {counted}"
                + (f", of {', '.join(unknown)} it is unknown" if unknown else "")
            )
        return "".join(f"{escape_controls(line)}\n" for line in lines) + format_findings(
            diagnosis.findings, self.coloured
        )


def _build_fields(diagnosis: _Diagnosis, config: Config | None) -> Fields:
    adapter = diagnosis.adapter
    likeness = diagnosis.likeness or Likeness((), 0, ())
    return {
        "schema": "npuprof.doctor/1",
        "adapter": None
        if adapter is None
        else {
            "packages": [package._asdict() for package in adapter.packages],
            "libraries": list(adapter.libraries),
            "options": sorted(adapter.keys) if adapter.keys is not None else None,
            "arguments": None,  # the classes of TensorFlow 1 are no longer read
            "attributes": sorted(adapter.attributes) if adapter.attributes is not None else None,
            "unread": [{"path": path, "why": why} for path, why in adapter.unread],
        },
        "releases": [*likeness.releases],
        "compared": likeness.compared,
        "different": [*likeness.different],
        "preset": config.name if config is not None else None,
        "settings": [{"key": name, "read": known} for name, known in diagnosis.read.items()],
        "findings": [build_finding_dict(finding) for finding in diagnosis.findings],
    }


VERB = Doctor
