"""The refs of a remote and those of its mirror: what was listed, what changes of it, and how that is written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress

from npuprof.model import Record
from npuprof.store.git import Git, GitObject
from npuprof.store.sources.failures import build_os_error
from npuprof.store.sources.mirrorgit import MirrorGit
from npuprof.store.versions import YANKED, ReleaseRecord, parse_release_record, parse_version_text
from npuprof.system.tree import Tree

HEADS, TAGS = "refs/heads/", "refs/tags/"
_MANY = 200  # changed refs from which on they are written to one file
#: What is in no name of a ref, by git-check-ref-format.
_NO_NAME = re.compile(r"[\0-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|[./]$")
_NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.logAllRefUpdates=false")
_PEELED = "^{}"  # what the name of a tag ends in where its commit is listed


class RemoteRefs(Record):
    """The heads, the tags and the HEAD of a remote, by their full names, each with the id of its object.

    ``targets`` are the commits of the tags that are objects themselves.
    """

    refs: dict[str, str]
    targets: dict[str, str]

    @classmethod
    def parse(cls, answer: bytes) -> RemoteRefs:
        """Return what ``git ls-remote`` has listed; what has a name that no ref may have is left out."""
        found: dict[str, str] = {}
        targets: dict[str, str] = {}
        for line in os.fsdecode(answer).split("\n"):
            oid, _, full = line.partition("\t")
            name = full.removesuffix(_PEELED)
            if is_full_id(oid) and (name == "HEAD" or (name.startswith((HEADS, TAGS)) and not _NO_NAME.search(name))):
                (found if name == full else targets)[name] = oid
        return cls(found, targets)

    def find_target(self, name: str) -> str:
        """Return the commit that a ref leads to."""
        return self.targets.get(name, self.refs[name])

    def is_version(self, name: str) -> bool:
        """Return whether a ref is a tag of a version, of a preset or of a whole store, or says that one was yanked."""
        return name.startswith(TAGS) and is_version_tag(name.removeprefix(TAGS).removesuffix(YANKED))


def is_version_tag(tag: str) -> bool:
    """Return whether a tag names a version: ``v2.1.0`` of a whole store, ``base/v2.1.0`` of a preset."""
    number = tag.rpartition("/")[2]
    return number.startswith("v") and parse_version_text(number) is not None


def is_full_id(text: str) -> bool:
    """Return whether a text is the id of an object, and no abbreviation."""
    return re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text) is not None


def shorten_ids(one: str, other: str) -> tuple[str, str]:
    """Return two ids as messages show them: as long as it takes to tell them apart."""
    same = next((index for index, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), 0)
    length = max(12, same + 4)
    return one[:length], other[:length]


def put_refs(git: MirrorGit, known: dict[str, str], written: dict[str, str], gone: Iterable[str] = ()) -> None:
    """Write refs of a mirror that knows some, and take others away; many go to its one file. Raises NpuprofError."""
    gone = list(gone)
    if len(written) > _MANY:
        write_refs(git, [f"delete {name}" for name in gone])
        _pack_refs(git, {name: oid for name, oid in known.items() if name not in gone} | written)
        written = {name: oid for name, oid in written.items() if name in known}  # what lies in a file of its own goes before the packed
        gone = []
    elif find_obstacles(dict.fromkeys(gone, ""), written):
        write_refs(git, [f"delete {name}" for name in gone])
        gone = []
    write_refs(git, [*(f"delete {name}" for name in gone), *(f"update {name} {oid}" for name, oid in written.items())])


def _pack_refs(git: MirrorGit, refs: dict[str, str]) -> None:
    """Write all refs of a mirror to its one file, as ``git pack-refs`` would: ten thousand files of their own take seconds."""
    names = sorted(refs, key=os.fsencode)
    asked = "".join(f"{refs[name]}^{{}}\n" for name in names).encode()
    peeled = git.run_command("cat-file", "--batch-check=%(objectname)", stdin=asked).decode().splitlines()
    lines = ["# pack-refs with: peeled fully-peeled sorted \n"]
    for name, target in zip(names, peeled, strict=True):
        lines.append(f"{refs[name]} {name}\n")
        if target != refs[name]:
            lines.append(f"^{target}\n")
    lock = "packed-refs.lock"
    try:
        tree = Tree(git.bare)
        with open(tree.create_file(lock), "wb") as file:
            file.write("".join(lines).encode(errors="surrogateescape"))
            file.flush()
            os.fsync(file.fileno())
        tree.rename(lock, "packed-refs")
    except OSError as error:
        if not isinstance(error, FileExistsError):
            with suppress(OSError):
                Tree(git.bare).remove_file(lock)
        raise build_os_error(git.bare, error) from None


def list_refs(git: Git) -> dict[str, str]:
    """Return the refs of a mirror by their full names, each with the id of its object. Raises NpuprofError."""
    listed = os.fsdecode(git.run_command("for-each-ref", "--format=%(objectname) %(refname)"))
    return {name: oid for oid, _, name in (line.partition(" ") for line in listed.splitlines())}


def select_below(refs: dict[str, str], prefix: str) -> dict[str, str]:
    """Return the refs whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): oid for name, oid in refs.items() if name.startswith(prefix)}


def find_obstacles(known: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """Return the tags that are gone upstream and stand where others now need a folder, or the other way round."""
    old = {name for name in known if name not in wanted}
    if not old:
        return []
    folders = {name[:end] for name in wanted for end in _slashes(name)}
    return [name for name in old if name in folders or any(name[:end] in wanted for end in _slashes(name))]


def _slashes(name: str) -> list[int]:
    return [match.start() for match in re.finditer("/", name)]


def read_moved(git: Git, names: list[str], known: dict[str, str], now: dict[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Return tags that have moved: name, the commit then, the commit now, or the objects where one leads to no commit.

    A tag that was made anew at its commit is the same version, whatever its message says, but where it records other parents or
    contradicts the digests: what the version resolves to may be another then. The two commits are one there.
    """
    asked = [f"{oid}{kind}" for name in names for oid in (known[name], now[name]) for kind in ("^{commit}", "")]
    found = iter(git.read_objects(asked))
    moved = []
    for name in names:
        before, made_before, after, made_after = next(found), next(found), next(found), next(found)
        if before is None or after is None:
            moved.append((name, known[name], now[name]))
        elif before.oid != after.oid or _is_contradicted(_read_record(made_before), _read_record(made_after)):
            moved.append((name, before.oid, after.oid))
    return tuple(moved)


def _is_contradicted(one: ReleaseRecord, other: ReleaseRecord) -> bool:
    """Return whether two tags of one commit record what cannot both be; what only one of them records does not count, but for parents."""
    if set(one.parents) != set(other.parents) or set(one.faults) != set(other.faults):
        return True
    if one.form != other.form and None not in (one.form, other.form):
        return False  # digests of two forms say nothing of one another
    pairs = ((one.digest, other.digest), (one.preset_digest, other.preset_digest))
    return any(left and right and left != right for left, right in pairs)


def _read_record(made: GitObject | None) -> ReleaseRecord:
    """Return what a tag records of a release; one that is no object of its own records nothing."""
    if made is None or made.type != "tag":
        return ReleaseRecord()
    return parse_release_record(made.content.decode(errors="replace").partition("\n\n")[2].rstrip("\n"))


def write_refs(git: Git, lines: list[str]) -> None:
    """Change refs of a mirror, all or none. Raises NpuprofError."""
    if lines:
        git.run_command(*_NO_HOOKS, "update-ref", "--no-deref", "--stdin", stdin=os.fsencode("".join(f"{line}\n" for line in lines)))
