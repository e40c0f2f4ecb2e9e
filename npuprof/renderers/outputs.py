"""The outputs of a store as files: rendered, compared with what is there, and written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from npuprof.catalog import build_finding
from npuprof.checks import judge_config
from npuprof.checks import store as checks
from npuprof.model import Context, Finding, NpuprofError, Record
from npuprof.renderers import Rendered, load_target
from npuprof.renderers.stamp import (
    State,
    add_output,
    compare_rendered,
    compare_sidecar,
    is_listed_sidecar,
    read_header,
    read_listed_sidecars,
)
from npuprof.renderers.trusting import COMPARED
from npuprof.report.isolating import isolate_faults
from npuprof.resolve.config import Config
from npuprof.resolve.digests import list_digests
from npuprof.store.checked import CheckedStore
from npuprof.store.outputs import Output, Outputs
from npuprof.system import group_pairs

#: The problems of a file by field of ``State``, worst first.
PROBLEMS = {
    "foreign": "not written by npuprof",
    "edited": "edited by hand",
    "missing": "missing",
    "stale": "stale",
}
_GENERATED = ("^# output: ", '^  "output": "')

#: Returns the content of a file, None if there is none.
Reader = Callable[[str], bytes | None]


class OutputFiles(Record):
    """A rendered output: its code file, and by problem its files that are not current."""

    output: Output
    code: str
    rendered: Rendered
    problems: dict[str, list[str]]

    def describe_problems(self, folder: str = "") -> list[str]:
        """Return each problem with its files, whose paths are relative to the folder."""
        return [
            f"{PROBLEMS[name]}: {', '.join(os.path.join(folder, path) for path in paths)}"
            for name, paths in self.problems.items()
        ]

    @property
    def needs_force(self) -> bool:
        """Whether a file is overwritten only with ``--force``."""
        return not self.problems.keys().isdisjoint(("foreign", "edited"))


def compare_with_files(
    config: Config, target: str, code: str, rendered: Rendered, read: Reader
) -> dict[str, State | None]:
    """Return the status of a code file and its sidecar files; None for a missing one."""
    old = _decode(read(code))
    states: dict[str, State | None] = {code: None}
    if old is not None:
        digests = list_digests(config.settings)
        states[code] = compare_rendered(old, rendered.text, target == "env-loader", digests)
    listed = read_listed_sidecars(old or "")
    for name, text in rendered.sidecars.items():
        path = os.path.join(os.path.dirname(code), name)
        existing = _decode(read(path))
        states[path] = None
        if existing is not None:
            is_listed = is_listed_sidecar(name, existing, listed)
            states[path] = compare_sidecar(existing, text, is_listed)
    return states


def _decode(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode(errors="replace")


def _name_problem(state: State | None) -> str:
    """Return the problem of a file; an empty string if it is current."""
    if state is None:
        return "missing"
    return next((name for name in PROBLEMS if getattr(state, name, False)), "")


def render_output(outputs: Outputs, output: Output, config: Config) -> OutputFiles:
    """Return an output as it is rendered, compared with its files. Raises NpuprofError."""
    name = output.context.target or ""
    target = load_target(name)
    code = f"{output.path}/{target.file}" if target.is_folder else output.path
    rendered = target.render(config)
    rendered = rendered._replace(text=add_output(rendered.text, output.path))
    states = compare_with_files(config, name, code, rendered, outputs.read_file)
    problems = group_pairs((_name_problem(state), path) for path, state in states.items())
    problems.pop("", None)
    return OutputFiles(output, code, rendered, problems)


def find_shared_files(files: Sequence[OutputFiles]) -> Iterator[Finding]:
    """Yield an error for each file of an output that another one writes, too."""
    owners: dict[str, tuple[Output, str]] = {}
    for entry in files:
        folder = os.path.dirname(entry.code)
        texts = {os.path.join(folder, name): text for name, text in entry.rendered.sidecars.items()}
        for path, text in {entry.code: entry.rendered.text, **texts}.items():
            other, known = owners.setdefault(path.casefold(), (entry.output, text))
            if other is not entry.output and known != text:
                what = f"the outputs {other.path!r} and {entry.output.path!r} both write {path}"
                why = "It is a file next to the code of one of them."
                hint = "put each of them in a folder of its own"
                yield Finding("NP040", what, why, hint, entry.output.origin, "output")


def find_left_over_files(outputs: Outputs) -> dict[str, list[str]]:
    """Return the files of outputs that are not declared any more, by the path of the output.

    Ignored files are not found, nor those of targets without a header.
    """
    patterns = [word for pattern in _GENERATED for word in ("-e", pattern)]
    try:
        git = outputs.home.repository.git
        searched = git.try_command("-C", outputs.base, "grep", "-IlzE", "--untracked", *patterns)
    except NpuprofError:  # no repository
        return {}
    declared = {output.path for output in outputs.declared}
    left: dict[str, list[str]] = {}
    for path in map(os.fsdecode, searched.output.split(b"\0")):
        text = _decode(outputs.read_file(path)) if path else None
        header = read_header(text) if text else None
        if text is None or header is None or not header.output or header.output in declared:
            continue
        # the folder or file itself may be that of another output now
        if declared.isdisjoint((path, os.path.dirname(path))):
            folder = os.path.dirname(path)
            beside = [os.path.join(folder, name) for name, _ in sorted(read_listed_sidecars(text))]
            there = [other for other in beside if outputs.read_file(other) is not None]
            left.setdefault(header.output, []).extend([path, *there])
    return left


def check_store(
    store: CheckedStore, specs: Sequence[str] = (), notes: bool = True, progress: bool = False
) -> checks.StoreReport:
    """Return all findings about a store and its outputs, or about ``specs`` of it only.

    Raises NpuprofError as ``checks.store.check_store``.
    """
    report = checks.check_store(store, specs, notes, progress)
    if specs or store.context != Context():
        return report
    faults: list[Finding] = []
    findings: list[Finding] = []
    try:
        with isolate_faults(store.label, faults):
            findings += _find_output_faults(store, report)
    except NpuprofError as error:  # npuprof.toml is invalid
        findings += error.findings
    return report._replace(outputs=findings, faults=[*report.faults, *faults])


def _find_output_faults(store: CheckedStore, report: checks.StoreReport) -> Iterator[Finding]:
    """Yield the findings about the outputs of a store, each judged in its context."""
    outputs = Outputs(store.workspace, store.home)
    known = {finding.message for finding in chain(*report.by_preset.values())}
    files = []
    for output in outputs.declared:
        findings = []
        try:
            config = outputs.resolve(output)
            config.memo[COMPARED] = True
            findings = judge_config(config, notes=False).findings
            files.append(render_output(outputs, output, config))
        except NpuprofError as error:
            findings += error.findings
        for finding in findings:
            if finding.message not in known:
                has_place = finding.origin or finding.where
                place = finding.origin if has_place else output.origin
                names = finding.profiles or (output.spec,)
                yield finding._replace(origin=place, profiles=names)
    yield from find_shared_files(files)
    for entry in files:
        if entry.problems:
            yield _build_output_finding(entry)


def _build_output_finding(entry: OutputFiles) -> Finding:
    output = entry.output
    problems = "; ".join(entry.describe_problems())
    what = f"the output {output.path} of {output.describe()} is not up to date; {problems}"
    why = "Whoever uses its files does not get the values of the presets."
    hint = f"npuprof render --all{' --force' if entry.needs_force else ''}"
    names = (output.spec,)
    return build_finding("NP713", what, why, hint, output.origin, "output", names)
