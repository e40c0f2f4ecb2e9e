"""Tags on their way to a remote: where they go, which of them are not there, and why it did not take them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from npuprof.model import Finding, NpuprofError
from npuprof.report.text import count_rest
from npuprof.store.gitstore.objects import build_refusal_finding
from npuprof.store.sources.fetching import read_timeout
from npuprof.store.sources.transport import HangingError, Line, Talk
from npuprof.store.versions import YANKED, parse_version_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.store.gitstore.repository import Repository

#: A ref that was not taken, as git tells it: the kind of refusal, the name, why.
_REFUSED = re.compile(r"^\s*! \[([^\]]+)\]\s+(\S+)(?: -> \S+)?(?: \((.*)\))?$")
#: How many tags a message names.
_SHOWN = 4


class RemoteTags(NamedTuple):
    """The released versions of a repository that a remote does not have, and those that are others there."""

    missing: list[str]
    other: list[str]


def find_remote(repository: Repository) -> str:
    """Return where a push goes: what the branch, or the repository, says; else origin. Raises NpuprofError where there is no remote."""
    said = repository.git.try_command("config", "-z", "--get-regexp", r"^(branch\..*\.(pushremote|remote)|remote\.pushdefault)$").output
    known = dict(entry.partition("\n")[::2] for entry in os.fsdecode(said).split("\0") if entry)
    branch = os.fsdecode(repository.git.try_command("symbolic-ref", "--quiet", "--short", "HEAD").output).strip()
    remotes = os.fsdecode(repository.git.run_command("remote")).splitlines()
    for key in (f"branch.{branch}.pushremote", "remote.pushdefault", f"branch.{branch}.remote"):
        if known.get(key):
            return known[key]
    if not remotes:
        hint = "name one: git remote add origin URL"
        raise NpuprofError([Finding("NP026", "there is no remote to push to", "", hint)])
    return "origin" if "origin" in remotes else remotes[0]


def compare_remote_tags(repository: Repository, remote: str, head: str, name: str | None = None, number: str = "") -> RemoteTags:
    """Return which tags of versions that a commit comes after a remote lacks, or has as others; of one preset, or one version, if given.

    Raises NpuprofError where the remote cannot be asked.
    """
    form = "--format=%(objecttype) %(objectname) %(refname)"
    listed = os.fsdecode(repository.git.run_command("for-each-ref", f"--merged={head}", form, "refs/tags/"))
    rows = [line.split(" ", 2) for line in listed.splitlines()]
    here = {ref.removeprefix("refs/tags/"): oid for kind, oid, ref in rows if kind == "tag"}
    said = os.fsdecode(_talk(repository, remote, Line.list_tags, build_refusal_finding).answer)
    there = {ref.removeprefix("refs/tags/"): oid for oid, _, ref in (line.partition("\t") for line in said.splitlines())}
    wanted = [tag for tag in here if (found := _split_version_tag(tag)) and name in (None, found[0]) and number in ("", found[1])]
    other = [tag for tag in wanted if tag in there and there[tag] != here[tag]]
    return RemoteTags([tag for tag in wanted if tag not in there], other)


def _split_version_tag(tag: str) -> tuple[str, str] | None:
    """Return name and number of the version that a tag is of, or says that it is yanked; the name of the whole store is empty."""
    name, _, number = tag.removesuffix(YANKED).rpartition("/")
    return (name, number[1:]) if number.startswith("v") and parse_version_text(number) else None


def advise_other_tags(tags: Sequence[str]) -> str:
    """Return what to do with versions that somebody else has released under the same numbers, and pushed first."""
    one = len(tags) == 1
    word = "it is another" if one else "they are others"
    return f"{word} there: take yours away (git tag -d {' '.join(tags)}), then git fetch --tags, and release again"


def push_tags(repository: Repository, remote: str, tags: Sequence[str]) -> Finding | None:
    """Push these tags and nothing else, all or none; return why that failed, None where it did not. The tags stay here anyway."""
    refs = [f"refs/tags/{tag}:refs/tags/{tag}" for tag in tags]
    try:
        _talk(repository, remote, lambda line: line.push(refs), _explain_refusal)
    except NpuprofError as error:
        told = error.findings[0]
        why = told.why or told.message.removeprefix("git could not answer: ")
        what = f"the tags are made, and {remote} did not take them"
        if "does not support --atomic" in why:
            why = "The server cannot take all or none of several tags."
            return Finding("NP026", what, why, f"push what one push may leave half done: {format_push_command(remote, tags, atomic=False)}")
        return Finding("NP026", what, why, told.hint or f"push them again: {format_push_command(remote, tags)}")
    return None


def _talk(repository: Repository, remote: str, ask: Callable[[Line], Talk], explain: Callable[[bytes, str], Finding]) -> Talk:
    """Return what a remote answers. Raises NpuprofError where it does not, with what ``explain`` makes of what git said."""
    timeout = read_timeout(remote)
    git_folder = os.path.join(repository.git.top, os.fsdecode(repository.git.run_command("rev-parse", "--git-common-dir").rstrip(b"\n")))
    try:
        talk = ask(Line(git_folder, remote, timeout, top=repository.git.top))
    except HangingError:
        why = f"{remote} sent nothing for {timeout:g} seconds."
        hint = "try again later; NPUPROF_TIMEOUT is how many seconds to wait"
        raise NpuprofError([Finding("NP022", f"git could not answer: {remote} is silent", why, hint)]) from None
    if refused := re.search(r"transport '([^']+)' not allowed", talk.messages):
        why = f"npuprof talks to remotes over ssh, https and file only, not over {refused[1]}."
        raise NpuprofError([Finding("NP022", f"git could not answer: {remote} was not asked", why, "use git itself")])
    if talk.code:
        raise NpuprofError([explain(talk.messages.encode(), repository.folder)])
    return talk


def format_push_command(remote: str, tags: Sequence[str], atomic: bool = True) -> str:
    """Return what pushes tags, to type."""
    return f"git push {'--atomic ' if atomic and len(tags) > 1 else ''}{remote} {' '.join(tags)}"


def _explain_refusal(said: bytes, folder: str) -> Finding:
    """Return why a push failed: what the remote says in its own words, then each reason once with the tags it holds for."""
    lines = [line.rstrip() for line in said.decode(errors="replace").splitlines()]
    words = [text for line in lines if line.startswith("remote:") and (text := line.removeprefix("remote:").strip())]
    reasons: dict[str, list[str]] = {}
    for line in lines:
        if refused := _REFUSED.match(line):
            reasons.setdefault(refused[3] or refused[1], []).append(refused[2])
    if not reasons:
        finding = build_refusal_finding(said, folder)
        why = "; ".join(words) or finding.message.removeprefix("git could not answer: ")
        return finding._replace(why=why, hint="")
    why = "; ".join([*words, *(f"{count_rest(tags, _SHOWN)}: {reason}" for reason, tags in reasons.items())])
    taken = [tag for reason, tags in reasons.items() if "already exists" in reason for tag in tags]
    return Finding("NP022", "git could not answer: the push was refused", why, advise_other_tags(taken) if taken else "")
