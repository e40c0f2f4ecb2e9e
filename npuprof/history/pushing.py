"""Push version tags to the remote of the branch, and explain rejections."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from npuprof.history.git_queries import read_settings
from npuprof.model import Finding, NpuprofError, build_error
from npuprof.report import Answer
from npuprof.report.text import count_rest, format_count
from npuprof.store.gitstore.objects import build_refusal_finding
from npuprof.store.gitstore.repository import Repository
from npuprof.store.sources.fetching import read_timeout
from npuprof.store.sources.transport import HangingError, Line
from npuprof.system import group_pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.report import Forms

#: A rejected ref in git's output: kind, name, reason.
_REFUSED = re.compile(r"^\s*! \[([^\]]+)\]\s+(\S+)(?: -> \S+)?(?: \((.*)\))?$")
#: The maximum number of tags in a message.
_SHOWN = 4


def find_remote(repository: Repository) -> str:
    """Return the push remote of the branch or repository, else origin.

    Raises NpuprofError if there is no remote.
    """
    known = dict(
        read_settings(repository, r"^(branch\..*\.(pushremote|remote)|remote\.pushdefault)$")
    )
    branch = os.fsdecode(
        repository.git.try_command("symbolic-ref", "--quiet", "--short", "HEAD").output
    ).strip()
    remotes = os.fsdecode(repository.git.run_command("remote")).splitlines()
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
    is_single = len(tags) == 1
    word = "it is another" if is_single else "they are others"
    return (
        f"{word} there: take yours away (git tag -d "
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
    git_folder = os.path.join(
        repository.git.top,
        os.fsdecode(repository.git.run_command("rev-parse", "--git-common-dir").rstrip(b"\n")),
    )
    try:
        talk = Line(git_folder, remote, timeout, top=repository.git.top).push(refs)
    except HangingError:
        why = f"{remote} sent nothing for {timeout:g} seconds."
        hint = "try again later; NPUPROF_TIMEOUT is how many seconds to wait"
        raise build_error("NP022", f"git failed: {remote} is silent", why, hint) from None
    if refused := re.search(r"transport '([^']+)' not allowed", talk.messages):
        why = f"npuprof talks to remotes over ssh, https and file only, not over {refused[1]}."
        raise build_error("NP022", f"git failed: {remote} was not asked", why, "use git itself")
    if talk.code:
        raise NpuprofError(_explain_refusal(talk.messages.encode(), repository.folder))


def format_push_command(remote: str, tags: Sequence[str], atomic: bool = True) -> str:
    """Return the command that pushes tags."""
    return f"git push {'--atomic ' if atomic and len(tags) > 1 else ''}{remote} {' '.join(tags)}"


def _explain_refusal(output: bytes, folder: str) -> Finding:
    """Return why a push failed: the remote's message, then each reason once with its tags."""
    lines = [line.rstrip() for line in output.decode(errors="replace").splitlines()]
    words = [
        text
        for line in lines
        if line.startswith("remote:") and (text := line.removeprefix("remote:").strip())
    ]
    reasons = group_pairs(
        (refused[3] or refused[1], refused[2])
        for line in lines
        if (refused := _REFUSED.match(line))
    )
    if not reasons:
        finding = build_refusal_finding(output, folder)
        why = "; ".join(words) or finding.message.removeprefix("git failed: ")
        return finding._replace(why=why, hint="")
    own = {
        reason: tags for reason, tags in reasons.items() if not reason.startswith("atomic ")
    }  # the others only follow from these
    why = "; ".join(
        [
            *words,
            *(f"{count_rest(tags, _SHOWN)}: {reason}" for reason, tags in (own or reasons).items()),
        ]
    )
    taken = [tag for reason, tags in reasons.items() if "already exists" in reason for tag in tags]
    return Finding(
        "NP022", "git failed: the push was refused", why, advise_other_tags(taken) if taken else ""
    )
