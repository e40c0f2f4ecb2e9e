"""``yank``: mark a released version as yanked, with an additional tag."""

from __future__ import annotations

from contextlib import suppress

from npuprof.commands.framework import argument, flag, required_option
from npuprof.commands.framework.parameters import DRY_RUN, StoreVerb
from npuprof.history import git_writing, pushing
from npuprof.model import NpuprofError, build_error, build_usage_error
from npuprof.report import Answer
from npuprof.report.text import count_rest, format_count
from npuprof.store import spec
from npuprof.store.gitstore.repository import Repository
from npuprof.store.versions import YANKED, Version, parse_version_text

#: The maximum number of versions in a hint.
_SHOWN = 5


class Yank(StoreVerb):
    """Mark a released version as yanked.

    Adds the tag NAME/vX.Y.Z.yanked and deletes nothing. Presets that pin the version still resolve,
    with a warning. Ranges such as @1 select another version if there is one.
    """

    usage_hint = (
        'npuprof yank bert-training@1.2.0 --why "diverges on 910B: use 1.2.1"; '
        "a yank is taken back by deleting its tag: git tag -d NAME/vX.Y.Z.yanked"
    )
    group = "versions"
    prose = True

    spec = argument("NAME@VERSION", "Released version, or @VERSION for one of the store", "version")
    why = required_option(
        "--why",
        metavar="TEXT",
        text="Give the reason, shown to everyone who uses the version",
        complete="nothing",
    )
    push = flag("--push", text="Push the new tag, and nothing else, to the remote of the branch")
    dry_run = DRY_RUN

    def run(self) -> Answer:
        """Tag a version as yanked.

        Raises NpuprofError if the version is missing, already yanked, or no reason was given.
        """
        why = " ".join(self.why.split())
        if not why:
            raise build_usage_error(
                "--why gives no reason", "describe the fault, and the replacement"
            )
        workspace = spec.Workspace(self.store)
        repository = workspace.store.repository
        version = _find_version(workspace, repository, self.spec)
        tag = f"{version.tag_name}{YANKED}"
        if reason := repository.find_yank(version.tag_name):
            if self.push and reason == why and not self.dry_run:  # an earlier push may have failed
                return pushing.push_new_tags(repository, f"{tag}\n", [tag])
            what = f"{version.tag_name} is yanked already: {reason}"
            raise build_error(
                "NP026", what, "The reason for a version cannot be changed.", "use another version"
            )
        reach = _describe_heirs(workspace, version)
        if self.dry_run:
            return Answer(f"{tag} at {version.commit[:7]}\n{why}\n", reach)
        # at the version's target, so that clones with one tag get the other
        git_writing.create_tags(repository, version.commit, {tag: f"{why}\n"})
        if self.push:
            done = pushing.push_new_tags(repository, f"{tag}\n", [tag])
            return done._replace(notes=(*reach, *done.notes))
        return Answer(
            f"{tag}\n", (*reach, f"share it with {pushing.write_push_command(repository, [tag])}")
        )


def _find_version(workspace: spec.Workspace, repository: Repository, requested: str) -> Version:
    """Return the version of a preset or store with a complete number. Raises NpuprofError."""
    name, at, number = requested.partition("@")
    # v1.2.0 is how git names a version of the whole store
    if not at and name.startswith("v") and parse_version_text(name):
        name, number = "", name
    if name:
        name, number = workspace.split_single_spec(requested, "yank")
    known = list(repository.load_versions(name)) if name else repository.load_store_versions()
    text = parse_version_text(number)
    found = next((version for version in known if version.text == text), None)
    if found is not None:
        return found
    called = name or "the store"
    what = (
        f"{called} has no released version {number}"
        if number
        else f"{requested!r} names no version"
    )
    released = [f"{ref.name}@{ref.text}" for ref in repository.list_tag_refs()]
    hint = (
        f"released are {count_rest(released, _SHOWN)}"
        if released
        else "nothing is released yet: npuprof release NAME makes a version"
    )
    if known:
        hint = (
            f"released are {', '.join(version.number_text for version in known)}; write "
            f"{name}@{known[-1].number_text}"
        )
    raise build_error("NP011", what, "A version is yanked by its whole number.", hint)


def _describe_heirs(workspace: spec.Workspace, version: Version) -> tuple[str, ...]:
    """Return a note on the number of presets that pin the version: check warns about each."""
    pins = {f"{version.name}@{version.text}", f"{version.name}@v{version.text}"}
    dependents = []
    for name in workspace.store.names():
        with suppress(NpuprofError):  # check reports it
            if not pins.isdisjoint(workspace.store.profile(name).extends):
                dependents.append(name)
    if not dependents or not version.name:
        return ()
    return (
        (
            f"{format_count(len(dependents), 'preset')} "
            f"extend{'s' if len(dependents) == 1 else ''} it (NP704): {', '.join(dependents)}"
        ),
    )


VERB = Yank
