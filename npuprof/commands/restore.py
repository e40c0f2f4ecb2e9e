"""``restore``: a preset as it was, the file itself or flat."""

from __future__ import annotations

import os

from npuprof.commands.log import one_preset
from npuprof.compare import plain, survey
from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError
from npuprof.report import format_findings, output
from npuprof.resolve.config import compute_digest
from npuprof.store import revisions, spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config


def restore_preset(
    asked: str, resolved: bool, dry_run: bool, store: str | None, cann: str | None, product: str | None, path: str | None
) -> int:
    """Write a preset's file as it was at a revision, or with ``resolved`` a flat one that resolves as it did then.

    What that changes is told; with ``dry_run`` nothing is written. Raises NpuprofError, and writes nothing then.
    """
    workspace = spec.Workspace(store, spec.build_context(cann, product))
    name, revision = one_preset(workspace, asked, "restore")
    if not revision:
        raise NpuprofError([Finding("NP027", "error", f"{asked!r} names no revision", "", f"say which: {name}@HEAD, {name}@1.2.0")])
    home = workspace.store
    if home.label == "builtin:":
        raise NpuprofError([Finding("NP027", "error", "the shipped presets cannot be written", "", "work in a store of your own")])
    repository = revisions.find_repository(home)
    commit, _ = repository.resolve_revision(name, revision)
    then = revisions.load_revision(home, commit)
    profile = then.profile(name)
    now = _now(workspace, name)
    if resolved:
        config = workspace.resolver.resolve_profile(profile)
        text: str | bytes = flat(config)
        if any(member.overrides for member in config.lineage) and not (cann or product):
            output.write_to_stderr(
                "npuprof: overrides for single products or releases are not in a flat preset; --cann and --product pick them"
            )
    else:
        text = _file(then.repository, commit, name, then.read_profile_text(name))
    target = path or home.profile_path(name)
    raw = text.encode() if isinstance(text, str) else text
    shown = os.path.relpath(target) if target != "-" else "-"
    after = _resolve(workspace, raw, name, shown)
    if dry_run:
        output.write_answer(raw.decode(errors="replace"))
    else:
        if path is None:
            output.make_folder(os.path.dirname(target))
        if target == "-":
            output.write_answer(raw.decode(errors="replace"))
        else:
            output.write_files_atomically({target: raw})
            output.write_to_stderr(f"npuprof: {shown} is as it was at {commit[:7]}" + (", flat" if resolved else ""))
    if isinstance(after, NpuprofError):
        output.write_to_stderr("npuprof: it cannot be resolved any more, because other files have changed:")
        output.write_to_stderr(format_findings(after.findings).rstrip("\n"))
    elif now is not None:
        said = plain.format_pair_text(survey.build_preset_pair(now, after))
        output.write_to_stderr(said.rstrip("\n") if said else "npuprof: it resolves as before")
    return 0


def flat(config: Config) -> str:
    """Return a profile without parents that resolves to the same settings. Raises NpuprofError where that cannot be."""
    from npuprof.renderers.plain import render_toml

    text = render_toml(config, True).text.lstrip("\n")
    again = Profile(parse_document(config.name, config.name, text))
    settings = {} if again.problems else {step.key: step.value for step in again.steps}
    if compute_digest(settings) != config.digest:
        what = f"a flat form of {config.name} would not resolve as it does"
        raise NpuprofError([Finding("NP027", "error", what, "Nothing was written.", "restore the file itself, without --resolved")])
    return text


def _file(repository: revisions.Repository, commit: str, name: str, raw: bytes) -> bytes:
    """Return a file as git would check it out: with the line endings of this work tree."""
    if repository.list_profile_files(commit)[name][0] == "120000":
        return raw
    code, out, _ = repository.git.try_command("cat-file", "--filters", f"{commit}:{repository.source_path(name)}")
    return raw if code else out


def _now(workspace: spec.Workspace, name: str) -> Config | None:
    try:
        return workspace.resolve_spec(name)
    except NpuprofError:
        return None


def _resolve(workspace: spec.Workspace, raw: bytes, name: str, source: str) -> Config | NpuprofError:
    """Return what a text would resolve to in the store as it is now."""
    try:
        return workspace.resolver.resolve_profile(Profile(parse_document(name, source, raw), key=f"restored:{name}", home=workspace.store))
    except NpuprofError as error:
        return error
