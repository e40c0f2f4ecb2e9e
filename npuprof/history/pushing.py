"""Push version tags to the remote of the branch, and explain rejections."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence

from npuprof.history.git_queries import read_settings
from npuprof.model import TYPE_CHECKING, Finding, NpuprofError, build_error
from npuprof.report import Answer
from npuprof.report.text import count_rest, format_count
from npuprof.store.gitstore.objects import build_refusal_finding
from npuprof.store.gitstore.repository import Repository
from npuprof.store.sources.fetching import read_timeout
from npuprof.store.sources.transport import HangingError, Line
from npuprof.system import decode_safely

if TYPE_CHECKING:
    from npuprof.report import Forms

#: A rejected ref in git's output: kind, name, reason.
_REJECTED = re.compile(
    r"^\s*! \[(?P<kind>[^\]]+)\]\s+(?P<ref>\S+)(?: -> \S+)?(?: \((?P<reason>.*)\))?$"
)
#: The maximum number of tags in a message.
_SHOWN = 4


def find_remote(repository: Repository) -> str:
    """Return the push remote of the branch or repository, else origin.

    Raises NpuprofError if there is no remote.
    """
    pattern = r"^(branch\..*\.(pushremote|remote)|remote\.pushdefault)$"
    known = dict(read_settings(repository, pattern))
    head = repository.git.try_command("symbolic-ref", "--quiet", "--short", "HEAD")
    branch = os.fsdecode(head.output).strip()
    remotes = os.fsdecode(repository.git.run_command("remote")).splitlines()
    # the order in which git push looks for its remote
    for key in (f"branch.{branch}.pushremote", "remote.pushdefault", f"branch.{branch}.remote"):
        if known.get(key):
            return known[key]
    if not remotes:
        hint = "name one: git remote add origin URL"
        raise build_error("NP026", "there is no remote to push to", "", hint)
    return "origin" if "origin" in remotes else remotes[0]


def push_new_tags(repository: Repository, forms: Forms | str, tags: Sequence[str]) -> Answer:
    """Push tags to the remote of the branch.

    Return the answer, with exit code 2 and the reason if that fails.
    """
    try:
        remote = find_remote(repository)
        _push_tags(repository, remote, tags)
    except NpuprofError as error:
        return Answer(forms, code=2, problems=error.findings[:1])
    return Answer(forms, (f"pushed {format_count(len(tags), 'tag')} to {remote}",))


def write_push_command(repository: Repository, tags: Sequence[str]) -> str:
    """Return the command that pushes tags to the remote of the branch."""
    try:
        return format_push_command(find_remote(repository), tags)
    except NpuprofError:
        return (
            f"{format_push_command('origin', tags)}, once "
            "there is a remote: git remote add origin URL"
        )


def advise_other_tags(tags: Sequence[str]) -> str:
    """Return what to do if somebody else has already pushed versions with the same numbers."""
    difference = "it is another" if len(tags) == 1 else "they are others"
    return (
        f"{difference} there: take yours away (git tag -d "
        f"{' '.join(tags)}), then git fetch --tags, and release again"
    )


def _push_tags(repository: Repository, remote: str, tags: Sequence[str]) -> None:
    """Push exactly these tags, all or none.

    Raises NpuprofError if that fails; the local tags stay in any case.
    """
    try:
        _push_refs(repository, remote, [f"refs/tags/{tag}:refs/tags/{tag}" for tag in tags])
    except NpuprofError as error:
        finding = error.findings[0]
        why = finding.why or finding.message.removeprefix("git failed: ")
        what = f"the tags are made, and {remote} did not take them"
        hint = finding.hint or f"push them again: {format_push_command(remote, tags)}"
        if "does not support --atomic" in why:
            why = "The server cannot take all or none of several tags."
            hint = (
                "push separately, which may be interrupted halfway: "
                f"{format_push_command(remote, tags, atomic=False)}"
            )
        raise build_error("NP026", what, why, hint) from None


def _push_refs(repository: Repository, remote: str, refs: Sequence[str]) -> None:
    """Push refs. Raises NpuprofError with the reason unless the remote accepts all."""
    timeout = read_timeout(remote)
    common_dir = repository.git.run_command("rev-parse", "--git-common-dir").rstrip(b"\n")
    # linked work trees have their objects in the common folder
    git_folder = os.path.join(repository.git.top, os.fsdecode(common_dir))
    try:
        result = Line(git_folder, remote, timeout, top=repository.git.top).push(refs)
    except HangingError:
        why = f"{remote} sent nothing for {timeout:g} seconds."
        hint = "try again later; NPUPROF_TIMEOUT is how many seconds to wait"
        raise build_error("NP022", f"git failed: {remote} is silent", why, hint) from None
    # before the exit code: git's advice would be to allow the transport
    transport = re.search(r"transport '([^']+)' not allowed", result.messages)
    if transport:
        why = f"npuprof talks to remotes over ssh, https and file only, not over {transport[1]}."
        raise build_error("NP022", f"git failed: {remote} was not asked", why, "use git itself")
    if result.code:
        raise NpuprofError(_explain_rejection(result.messages.encode(), repository.folder))


def format_push_command(remote: str, tags: Sequence[str], atomic: bool = True) -> str:
    """Return the command that pushes tags."""
    options = "--atomic " if atomic and len(tags) > 1 else ""
    return f"git push {options}{remote} {' '.join(tags)}"


def _explain_rejection(output: bytes, folder: str) -> Finding:
    """Return why a push failed: the remote's message, then each reason once with its tags."""
    messages = []
    tags_of_reasons = defaultdict(list)
    for line in decode_safely(output).splitlines():
        if line.startswith("remote:"):
            messages.append(line.removeprefix("remote:").strip())
        elif rejected := _REJECTED.match(line.rstrip()):
            reason = rejected["reason"] or rejected["kind"]
            tags_of_reasons[reason].append(rejected["ref"])
    messages = [message for message in messages if message]
    if not tags_of_reasons:
        finding = build_refusal_finding(output, folder)
        why = "; ".join(messages) or finding.message.removeprefix("git failed: ")
        return finding._replace(why=why, hint="")
    taken = [
        tag
        for reason, tags in tags_of_reasons.items()
        if "already exists" in reason
        for tag in tags
    ]
    # "atomic push failed" only follows from the rejection of other tags.
    causes = [reason for reason in tags_of_reasons if not reason.startswith("atomic ")]
    for reason in causes or tags_of_reasons:
        messages.append(f"{count_rest(tags_of_reasons[reason], _SHOWN)}: {reason}")
    hint = advise_other_tags(taken) if taken else ""
    return Finding("NP022", "git failed: the push was refused", "; ".join(messages), hint)
