"""git for a source's mirror; errors name the source and the repair."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from npuprof.model import Finding, NpuprofError, Record
from npuprof.store.gitstore.objects import Git
from npuprof.store.gitstore.revisions import Revision, StoreRepository
from npuprof.store.sources.failures import build_cache_error, build_mirror_finding
from npuprof.store.sources.mirror import (
    LOCKED,
    build_unfetched_finding,
    find_mirror_folder,
    require_own_cache,
    require_own_folder,
)
from npuprof.store.versions import YANKED, is_version_tag
from npuprof.system import decode_safely, join_lines
from npuprof.system.files import describe_os_error
from npuprof.system.locks import lock_folders
from npuprof.system.tree import Tree, make_tree

HEADS, TAGS = "refs/heads/", "refs/tags/"

#: The number of refs written at once above which they are packed: ten thousand files would slow
#: every listing down.
_MANY = 200

#: Characters invalid in ref names, by git-check-ref-format.
_NO_NAME = re.compile(r"[\0-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|[./]$")

_NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.logAllRefUpdates=false")

#: The commits in the history of a mirror's refs, by its folder: a log asks for each lock of a
#: repository.
_HISTORIES: dict[str, set[str]] = {}

_PEELED = "^{}"  # the suffix of a listed tag's commit


class MirrorGit(Git):
    """git for a mirror; ``label`` names its source in messages."""

    def __init__(self, folder: str, label: str) -> None:
        self._label = label
        super().__init__(folder, bare=folder)

    def build_refusal(self, reason: bytes) -> NpuprofError:
        """Return git's error: another owner, an obstacle, else a damaged mirror."""
        return NpuprofError(build_mirror_finding(self._label, self.bare, decode_safely(reason)))

    def make(self, has_long_ids: bool = False) -> None:
        """Create the mirror, with SHA-256 ids if ``has_long_ids``.

        One without refs may be recreated. Raises NpuprofError.
        """
        self.close()
        # git init does not change the object format of an existing repository
        Tree(self.bare).remove("config")
        self.run_command(
            "init",
            "-q",
            "--bare",
            # the user's template may bring hooks and settings
            "--template=",
            *(["--object-format=sha256"] if has_long_ids else []),
        )

    def explain_absence(self, oids: Iterable[str]) -> Finding:
        """Return the finding for missing objects: the commits of a mirror must be complete."""
        return build_mirror_finding(
            self._label, self.bare, f"error: object {next(iter(oids), '')} is missing"
        )


class RemoteRefs(Record):
    """The heads, tags and HEAD of a remote, by full name, each with its object id.

    ``targets`` are the commits of annotated tags.
    """

    refs: dict[str, str]
    targets: dict[str, str]

    @classmethod
    def parse(cls, answer: bytes) -> RemoteRefs:
        """Return the refs listed by ``git ls-remote``, without invalid names."""
        refs = {}
        targets = {}
        for line in os.fsdecode(answer).split("\n"):
            oid, _, full = line.partition("\t")
            # an annotated tag is listed twice: its own id, then "NAME^{}" with its commit
            name = full.removesuffix(_PEELED)
            is_ref = name.startswith((HEADS, TAGS)) and not _NO_NAME.search(name)
            if not is_full_id(oid) or not (is_ref or name == "HEAD"):
                continue
            if name == full:
                refs[name] = oid
            else:
                targets[name] = oid
        return cls(refs, targets)

    def find_target(self, name: str) -> str:
        """Return the commit of a ref."""
        return self.targets.get(name, self.refs[name])

    def is_version(self, name: str) -> bool:
        """Return whether a ref is a version tag, of a preset or of a whole store, or a yank."""
        return name.startswith(TAGS) and is_version_tag(
            name.removeprefix(TAGS).removesuffix(YANKED)
        )


class MovedTag(Record):
    """A tag that was known differently: its name, its old commit and its new one.

    The commits are equal if the tag was recreated at its commit: its release record may differ. For
    tags of other objects, they are object ids.
    """

    tag: str
    old: str
    new: str


def is_full_id(text: str) -> bool:
    """Return whether a text is a full object id."""
    return re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text) is not None


def shorten_ids(first: str, second: str) -> tuple[str, str]:
    """Return two ids for messages: 12 digits, or more to differ."""
    length = 12
    while first != second and first[: length - 3] == second[: length - 3]:
        length += 1  # at least three more digits after the common ones
    return first[:length], second[:length]


def put_refs(git: MirrorGit, written: dict[str, str], deleted: Iterable[str] = ()) -> None:
    """Delete refs of a mirror, then write others, which may conflict with the deleted ones.

    Raises NpuprofError.
    """
    write_refs(git, [f"delete {name}" for name in deleted])
    write_refs(git, [f"update {name} {oid}" for name, oid in written.items()])
    if len(written) > _MANY:
        git.run_command("pack-refs", "--all")


def list_refs(git: Git) -> dict[str, str]:
    """Return the refs of a mirror by full name, each with its object id. Raises NpuprofError."""
    listed = os.fsdecode(git.run_command("for-each-ref", "--format=%(objectname) %(refname)"))
    refs = {}
    for line in listed.splitlines():
        oid, _, name = line.partition(" ")
        refs[name] = oid
    return refs


def select_below(refs: dict[str, str], prefix: str) -> dict[str, str]:
    """Return the refs with a prefix, without the prefix."""
    return {name.removeprefix(prefix): oid for name, oid in refs.items() if name.startswith(prefix)}


def list_reached(git: Git, tips: Iterable[str]) -> set[str]:
    """Return the commits in the history of objects, by id. Raises NpuprofError."""
    lines = join_lines(tips).encode()
    return set(git.run_command("rev-list", "--stdin", stdin=lines).decode().split())


def is_verified(git: Git, commit: str) -> bool:
    """Return whether the refs of a mirror contain a commit.

    A failed sync may leave commits that they do not contain.
    """
    pinned, commit_object = git.read_objects([f"{LOCKED}{commit}", commit])
    # a pin needs no walk through the history
    if pinned or not commit_object:
        return bool(pinned)
    if commit not in _HISTORIES.get(git.bare, ()):  # a sync may have added some since
        _HISTORIES[git.bare] = list_reached(git, list_refs(git).values())
    return commit in _HISTORIES[git.bare]


def read_moved(
    git: Git, names: list[str], known: dict[str, str], now: dict[str, str]
) -> tuple[MovedTag, ...]:
    """Return moved tags, given their known and current object ids by name."""
    old = git.read_objects([f"{known[name]}^{{commit}}" for name in names])
    new = git.read_objects([f"{now[name]}^{{commit}}" for name in names])
    return tuple(
        MovedTag(name, before.oid, after.oid)
        if before and after
        # a tag of another object, or an object that the mirror lacks
        else MovedTag(name, known[name], now[name])
        for name, before, after in zip(names, old, new, strict=True)
    )


def write_refs(git: Git, lines: list[str]) -> None:
    """Change refs of a mirror, all or none. Raises NpuprofError."""
    if lines:
        git.run_command(
            *_NO_HOOKS,
            "update-ref",
            # a symbolic ref of the mirror would lead to another one
            "--no-deref",
            "--stdin",
            stdin=os.fsencode(join_lines(lines)),
        )


@contextmanager
def lock_mirror(url: str, label: str) -> Iterator[MirrorGit]:
    """Lock the mirror of a URL, creating it if necessary, and yield its git.

    Raises NpuprofError.
    """
    folder = find_mirror_folder(url)
    try:
        make_tree(os.path.dirname(folder), 0o700)
        # before the folder below is created or trusted: its owner could replace it
        require_own_cache()
        make_tree(folder, 0o700)
    except OSError as error:
        raise build_cache_error(
            folder, f"It cannot be made: {describe_os_error(error, folder)}."
        ) from None
    require_own_folder(folder)
    with lock_folders([folder]):
        git = MirrorGit(folder, label)
        if not is_mirror(folder):
            git.make()
        yield git


def is_mirror(folder: str) -> bool:
    """Return whether a folder contains a mirror."""
    return os.path.isdir(os.path.join(folder, "objects"))


def open_mirror(name: str, url: str, path: str) -> StoreRepository:
    """Return the repository of a fetched source, with its store in ``path``.

    Raises NpuprofError if it was never fetched here, or has another owner.
    """
    folder = find_mirror_folder(url)
    if not os.path.exists(folder):
        raise NpuprofError(build_unfetched_finding(name, "it was never fetched on this machine"))
    require_own_cache()
    repository = StoreRepository(
        os.path.join(folder, path) if path else folder,
        folder,
        MirrorGit(folder, f"the source {name!r}"),
    )
    # npuprof.toml of a source lists presets outside its store, which are not shared
    repository.is_source = True
    return repository


def load_mirror_revision(repository: StoreRepository, name: str, commit: str) -> Revision:
    """Return the store in the mirror of a source at a commit.

    Raises NpuprofError if the mirror lacks the commit: never fetched, not verified, or lost with a
    part of the mirror.
    """
    git = repository.git
    if is_verified(git, commit):
        return repository.load_revision(commit)
    if git.run_command("for-each-ref", "--format=%(refname)", f"{LOCKED}{commit}").strip():
        raise NpuprofError(git.explain_absence([commit]))
    what = f"the commit {commit[:7]} is not on this machine"
    raise NpuprofError(build_unfetched_finding(name, what))
