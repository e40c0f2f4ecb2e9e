"""``doctor``: report the installed adapter and vLLM, unread settings, interfering variables."""

from __future__ import annotations

import os

from npuprof.commands.framework import option, optional_argument
from npuprof.commands.framework.parameters import (
    FORMAT,
    PrintingVerb,
    ResolvingVerb,
)
from npuprof.commands.resolving import resolve_requested
from npuprof.document.keys import format_full_key
from npuprof.model import Fields, Finding, NpuprofError, Record, did_you_mean
from npuprof.renderers import build_render_finding
from npuprof.report import Answer
from npuprof.report.findings import build_finding_dict, format_findings
from npuprof.report.text import escape_controls, format_count
from npuprof.resolve.config import Config
from npuprof.runs.adapter import Adapter, Likeness, find_likeness, read_adapter
from npuprof.runs.environment_conflicts import find_interference
from npuprof.runs.installed_vllm import Vllm, find_vllm
from npuprof.system import join_lines


class _Diagnosis(Record):
    """The adapter, if any, its likely releases, the settings read, the problems, and vLLM, if any.

    ``read`` are options by the adapter, and arguments by vLLM.
    """

    adapter: Adapter | None
    likeness: Likeness | None
    read: dict[str, bool | None]
    findings: tuple[Finding, ...]
    vllm: Vllm | None


class Doctor(PrintingVerb, ResolvingVerb):
    """Diagnose the installed adapter, vLLM and the environment.

    Reports which adapter and which vLLM are installed, which settings of the preset they do not
    read, which arguments of vLLM the catalogue lacks, and which variables interfere with the
    preset. Both are read but never executed. Exits with 1 if there are problems, and with 2 if
    neither can be read.
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
    installed = option(
        "--installed",
        metavar="PATH",
        text="Read vLLM at PATH: a folder or a wheel [default: the installed one]",
    )
    report = option(
        "--report",
        metavar="FILE",
        text=(
            "Write a first report from an NPU to FILE, or - for stdout: versions, chips, names that"
            " the catalogue lacks, and a self-test of at most two minutes"
        ),
    )
    format = FORMAT

    def run(self) -> Answer:
        """Return the diagnosis.

        Exit 1 for unread settings or interfering variables, 2 if nothing could be read. With
        ``report``, return that instead. Raises NpuprofError.
        """
        config = None
        if self.spec is not None:
            config = resolve_requested(self, personal=True)  # type: ignore[arg-type]
        diagnosis = self._diagnose(config)
        if self.report:
            return self._report(_build_fields(diagnosis, None))
        serious = any(finding.severity != "info" for finding in diagnosis.findings)
        return Answer(
            {
                "text": lambda: self._format_text(diagnosis, config),
                "json": lambda: _build_fields(diagnosis, config),
            },
            code=int(serious) if diagnosis.adapter or diagnosis.vllm else 2,
        )

    def _report(self, fields: Fields) -> Answer:
        from npuprof.commands import first_report

        self.output = self.report
        # messages may have values
        fields["findings"] = [[each["code"], each["key"]] for each in fields["findings"]]
        text = first_report.build_report(fields)
        return Answer(
            {"text": lambda: first_report.format_report(text), "json": lambda: text},
            (f"read it, then send it to {first_report.find_recipient()}",),
        )

    def _diagnose(self, config: Config | None) -> _Diagnosis:
        findings: list[Finding] = []
        adapter: Adapter | None = None
        # a path names the only one that is asked for
        vllm = find_vllm(self.installed) if self.installed or not self.adapter else None
        try:
            adapter = read_adapter(self.adapter) if not self.installed or self.adapter else None
        # the environment can be diagnosed without an adapter
        except NpuprofError as error:
            findings += error.findings if self.adapter or vllm is None else ()
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
                findings.append(build_render_finding(config, "NP964", name, what, why, hint))
        if vllm is not None and config is not None:
            for name in config.shared_sections["vllm"]:
                key = format_full_key("vllm", name)
                read[key] = vllm.reads(name)
                if read[key] is False:
                    what = f"{key} is not read by the vLLM that is installed"
                    why = "vllm serve stops at an argument that its parser lacks."
                    releases = f"npuprof option {key} says which releases have it"
                    hint = did_you_mean(name, vllm.arguments or (), releases)
                    findings.append(build_render_finding(config, "NP964", key, what, why, hint))
        findings += find_interference(config, os.environ)
        return _Diagnosis(adapter, likeness, read, tuple(findings), vllm)

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
        if vllm := diagnosis.vllm:
            name = f"vllm {vllm.version}".rstrip()
            lines.append(f"package      {name} in {os.path.dirname(vllm.path)}")
            if vllm.arguments is None:
                lines.append(f"not read     {vllm.path}: {vllm.why}")
            else:
                new = ", ".join(vllm.list_uncatalogued())
                listed = f", of which the catalogue lacks {new}" if new else ""
                lines.append(
                    f"parser       {format_count(len(vllm.arguments), 'argument')}{listed}"
                )
        if config is not None and diagnosis.read:
            unknown = [name for name, known in diagnosis.read.items() if known is None]
            unread = [name for name, known in diagnosis.read.items() if known is False]
            counted = (
                f"{len(diagnosis.read) - len(unread) - len(unknown)} of "
                f"{format_count(len(diagnosis.read), 'setting')} read"
            )
            lines.append(
                f"preset       {config.name}: {counted}"
                + (f", of {', '.join(unknown)} it is unknown" if unknown else "")
            )
        return join_lines(map(escape_controls, lines)) + format_findings(
            diagnosis.findings, self.coloured
        )


def _build_fields(diagnosis: _Diagnosis, config: Config | None) -> Fields:
    adapter, vllm = diagnosis.adapter, diagnosis.vllm
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
        "vllm": vllm
        and {
            **vllm._asdict(),
            "arguments": vllm.arguments and sorted(vllm.arguments),
            "uncatalogued": vllm.list_uncatalogued(),
        },
        "releases": [*likeness.releases],
        "compared": likeness.compared,
        "different": [*likeness.different],
        "preset": config.name if config is not None else None,
        "settings": [{"key": name, "read": known} for name, known in diagnosis.read.items()],
        "findings": [build_finding_dict(finding) for finding in diagnosis.findings],
    }


VERB = Doctor
