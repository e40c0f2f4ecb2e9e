"""git that reads the mirror of a source, or writes it: what is wrong with a mirror is told of its source, with the repair."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress

from npuprof.model import Finding, NpuprofError, Record
from npuprof.report.locks import hold_file, lock_folders
from npuprof.report.output import describe_os_error
from npuprof.store.gitstore.objects import Git, GitObject
from npuprof.store.gitstore.repository import Repository
from npuprof.store.gitstore.revisions import Revision, load_repository_revision
from npuprof.store.sources.failures import build_cache_error, build_mirror_finding, build_os_error
from npuprof.store.sources.mirror import LOCKED, build_unfetched_finding, find_mirror_folder, require_own_cache, require_own_folder
from npuprof.store.versions import YANKED, ReleaseRecord, is_version_tag, parse_release_record
from npuprof.system.patterns import lazy_pattern
from npuprof.system.tree import Tree, make_tree

try:
    import fcntl
except ImportError:  # no locks there: git's own keep two from writing one ref
    fcntl = None  # type: ignore[assignment]


HEADS, TAGS = "refs/heads/", "refs/tags/"

_MANY = 200  # refs written at once from which on they are packed: ten thousand files slow down every listing

#: What is in no name of a ref, by git-check-ref-format.
_NO_NAME = lazy_pattern(r"[\0-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|[./]$")

_NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.logAllRefUpdates=false")

_PEELED = "^{}"  # what the name of a tag ends in where its commit is listed

#: Seconds after which a git that a killed run has left is waited for no longer.
PATIENCE = 60.0

_NEW = ".new"  # what the folder of a mirror ends with until it is complete

_OLD = ".old"  # and what one ends with that another is about to replace

#: The whole configuration of a mirror: whatever else is found there is not ours.
_CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tbare = true
\tlogAllRefUpdates = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
{extensions}"""

_SHA256 = "[extensions]\n\tobjectFormat = sha256\n"


class MirrorGit(Git):
    """git for a mirror; ``label`` names its source in messages."""

    def __init__(self, folder: str, label: str) -> None:
        self._label = label
        super().__init__(folder, bare=folder)

    def build_refusal(self, reason: bytes) -> Finding:
        """Return why git refused: whose the mirror is, what is in its way, else that it is damaged."""
        return build_mirror_finding(self._label, self.bare, reason.decode(errors="replace"))

    def explain_absence(self, oids: Iterable[str]) -> Finding:
        """Return that objects are not there: a mirror holds all that belongs to its commits."""
        return build_mirror_finding(self._label, self.bare, f"error: object {next(iter(oids), '')} is missing")


class RemoteRefs(Record):
    """The heads, the tags and the HEAD of a remote, by their full names, each with the id of its object.

    ``targets`` are the commits of the tags that are objects themselves.
    """

    refs: dict[str, str]
    targets: dict[str, str]

    @classmethod
    def parse(cls, answer: bytes) -> RemoteRefs:
        """Return what ``git ls-remote`` has listed; what has a name that no ref may have is left out."""
        refs: dict[str, str] = {}
        targets: dict[str, str] = {}
        for line in os.fsdecode(answer).split("\n"):
            oid, _, full = line.partition("\t")
            name = full.removesuffix(_PEELED)
            if is_full_id(oid) and (name == "HEAD" or (name.startswith((HEADS, TAGS)) and not _NO_NAME.search(name))):
                (refs if name == full else targets)[name] = oid
        return cls(refs, targets)

    def find_target(self, name: str) -> str:
        """Return the commit that a ref leads to."""
        return self.targets.get(name, self.refs[name])

    def is_version(self, name: str) -> bool:
        """Return whether a ref is a tag of a version, of a preset or of a whole store, or says that one was yanked."""
        return name.startswith(TAGS) and is_version_tag(name.removeprefix(TAGS).removesuffix(YANKED))


def is_full_id(text: str) -> bool:
    """Return whether a text is the id of an object, and no abbreviation."""
    return re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text) is not None


def shorten_ids(first: str, second: str) -> tuple[str, str]:
    """Return two ids as messages show them: as long as it takes to tell them apart."""
    same = next((index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
    length = max(12, same + 4)
    return first[:length], second[:length]


def put_refs(git: MirrorGit, written: dict[str, str], gone: Iterable[str] = ()) -> None:
    """Delete refs of a mirror, which may be in the way of others, and write those. Raises NpuprofError."""
    write_refs(git, [f"delete {name}" for name in gone])
    write_refs(git, [f"update {name} {oid}" for name, oid in written.items()])
    if len(written) > _MANY:
        git.run_command("pack-refs", "--all")


def list_refs(git: Git) -> dict[str, str]:
    """Return the refs of a mirror by their full names, each with the id of its object. Raises NpuprofError."""
    listed = os.fsdecode(git.run_command("for-each-ref", "--format=%(objectname) %(refname)"))
    return {name: oid for oid, _, name in (line.partition(" ") for line in listed.splitlines())}


def select_below(refs: dict[str, str], prefix: str) -> dict[str, str]:
    """Return the refs whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): oid for name, oid in refs.items() if name.startswith(prefix)}


def find_obstacles(known: Iterable[str], wanted: Collection[str]) -> list[str]:
    """Return the known tags that are gone upstream and whose names are folders of wanted ones, or the other way round."""
    folders = set().union(*map(_list_parents, wanted))
    names = set(wanted)
    return [name for name in known if name not in names and (name in folders or not names.isdisjoint(_list_parents(name)))]


def _list_parents(name: str) -> list[str]:
    return [name[: match.start()] for match in re.finditer("/", name)]


def read_moved(git: Git, names: list[str], known: dict[str, str], now: dict[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Return tags that have moved: name, the commit then, the commit now, or the objects where one leads to no commit.

    A tag that was made anew at its commit is the same version, whatever its message says, but where it records other parents or
    contradicts the digests: what the version resolves to may be another then. The two commits are one there.
    """
    asked = [f"{oid}{kind}" for name in names for oid in (known[name], now[name]) for kind in ("^{commit}", "")]
    objects = iter(git.read_objects(asked))
    moved = []
    for name in names:
        before, made_before, after, made_after = next(objects), next(objects), next(objects), next(objects)
        if before is None or after is None:
            moved.append((name, known[name], now[name]))
        elif before.oid != after.oid or _is_contradicted(_read_record(made_before), _read_record(made_after)):
            moved.append((name, before.oid, after.oid))
    return tuple(moved)


def _is_contradicted(first: ReleaseRecord, second: ReleaseRecord) -> bool:
    """Return whether two tags of one commit record what cannot both be; what only one of them records does not count, but for parents."""
    if set(first.parents) != set(second.parents) or set(first.faults) != set(second.faults):
        return True
    if first.form != second.form and None not in (first.form, second.form):
        return False  # digests of two forms say nothing of one another
    pairs = ((first.digest, second.digest), (first.preset_digest, second.preset_digest))
    return any(a and b and a != b for a, b in pairs)


def _read_record(tag: GitObject | None) -> ReleaseRecord:
    """Return what a tag records of a release; one that is no object of its own records nothing."""
    if tag is None or tag.type != "tag":
        return ReleaseRecord()
    return parse_release_record(tag.content.decode(errors="replace").partition("\n\n")[2].rstrip("\n"))


def write_refs(git: Git, lines: list[str]) -> None:
    """Change refs of a mirror, all or none. Raises NpuprofError."""
    if lines:
        git.run_command(*_NO_HOOKS, "update-ref", "--no-deref", "--stdin", stdin=os.fsencode("".join(f"{line}\n" for line in lines)))


class HeldMirror(Record):
    """The folder of a mirror that is ours alone, and a handle that git is to keep open; ``label`` names its source in messages.

    ``old`` is the folder of the one that it is to replace, an empty text where there is none.
    """

    folder: str
    hold: int | None
    label: str
    old: str = ""

    @property
    def is_new(self) -> bool:
        """Whether it is made now."""
        return self.folder.endswith(_NEW)

    def open_git(self) -> MirrorGit:
        """Return a git that reads and writes it."""
        return MirrorGit(self.folder, self.label)

    def use_long_ids(self) -> None:
        """Make it one of objects with SHA-256 ids. Raises NpuprofError."""
        try:
            Tree(self.folder).write_file("config", _build_config(True).encode())
        except OSError as error:
            raise build_os_error(self.folder, error) from None


@contextmanager
def hold_mirror(url: str, label: str, remake: bool = False) -> Iterator[HeldMirror]:
    """Give the folder of a mirror, ours alone until the end; with ``remake`` a new one, whatever is there.

    A new one lies beside its place until all went well, and is gone where it did not: what was there stays then.
    Raises NpuprofError.
    """
    mirror = find_mirror_folder(url)
    cache = os.path.dirname(mirror)
    _make_cache_folder(cache)
    while True:
        folder = mirror if not remake and is_mirror(mirror) else f"{mirror}{_NEW}"
        identity = _identify_folder(folder)
        with lock_folders([folder, mirror] if os.path.isdir(mirror) else [folder]):
            if identity != _identify_folder(folder, make=False) or (folder != mirror and not remake and is_mirror(mirror)):
                continue  # another run made it, or gave it up, while this one waited
            try:
                if _take_back(mirror):
                    continue
                if remake:
                    _empty_folder(folder)
                _mend_mirror(folder)
                hold = _hold_alive(folder)
            except OSError as error:
                raise build_os_error(cache, error) from None
            try:
                yield HeldMirror(folder, hold, label, mirror if remake and os.path.isdir(mirror) else "")
                if folder != mirror:
                    _replace_mirror(folder, mirror)
            except BaseException:
                if folder != mirror:
                    Tree(cache).remove(os.path.basename(folder))
                raise
            finally:
                if hold is not None:
                    os.close(hold)
            return


def is_mirror(folder: str) -> bool:
    """Return whether a folder is a mirror, or was one and can be mended in its place."""
    return os.path.isdir(os.path.join(folder, "objects"))


def _replace_mirror(folder: str, mirror: str) -> None:
    """Put a new mirror in its place. Raises NpuprofError."""
    cache, name = os.path.split(mirror)
    try:
        tree = Tree(cache)
        if os.path.lexists(mirror):
            tree.remove(f"{name}{_OLD}")
            tree.rename(name, f"{name}{_OLD}")
        tree.rename(os.path.basename(folder), name)
    except OSError as error:
        raise build_os_error(cache, error) from None
    tree.remove(f"{name}{_OLD}")


def _take_back(mirror: str) -> bool:
    """Put a mirror back that a killed run was about to replace; return whether there was one. Raises OSError."""
    cache, name = os.path.split(mirror)
    old = f"{name}{_OLD}"
    if not os.path.lexists(f"{mirror}{_OLD}"):
        return False
    if os.path.lexists(mirror):  # its successor took its place
        Tree(cache).remove(old)
        return False
    Tree(cache).rename(old, name)
    return True


def _make_cache_folder(cache: str) -> None:
    try:
        make_tree(cache, 0o700)
    except OSError as error:
        raise build_cache_error(cache, f"It cannot be made: {describe_os_error(error, os.path.join(cache, 'x'))}.") from None
    require_own_cache()
    if not os.access(cache, os.R_OK | os.W_OK | os.X_OK):
        raise build_cache_error(cache, "It cannot be written.")


def _identify_folder(folder: str, make: bool = True) -> tuple[int, int]:
    """Return what tells a folder from all others, (0, 0) where there is none. Raises NpuprofError."""
    try:
        if make and not os.path.lexists(folder):
            Tree(os.path.dirname(folder)).make_folder(os.path.basename(folder), 0o700)
        status = os.lstat(folder)
    except FileNotFoundError:
        return 0, 0
    except OSError as error:
        raise build_os_error(folder, error) from None
    if not stat.S_ISDIR(status.st_mode):
        raise build_cache_error(folder, "It is no folder.")
    if make:
        require_own_folder(folder)
    return status.st_dev, status.st_ino


def _mend_mirror(folder: str) -> None:
    """Make a folder a mirror, or give one back what it has to hold. Raises OSError."""
    tree = Tree(folder)
    for name in ("objects/pack", "objects/info", "refs/heads", "refs/tags"):
        tree.make_folder(name)
    known = _read_text(os.path.join(folder, "config"))
    if known not in (_build_config(False), _build_config(True)):
        is_long = re.search(r"(?i)^\s*objectformat\s*=\s*\"?sha256", known, re.MULTILINE) is not None
        tree.write_file("config", _build_config(is_long).encode())
    if not _read_text(os.path.join(folder, "HEAD")).startswith("ref: refs/heads/"):
        tree.write_file("HEAD", b"ref: refs/heads/main\n")


def _build_config(is_long: bool) -> str:
    return _CONFIG.format(version=int(is_long), extensions=_SHA256 if is_long else "")


def _read_text(path: str) -> str:
    with suppress(FileNotFoundError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read(65536)
    return ""


def _hold_alive(folder: str) -> int | None:
    """Return a handle that marks the mirror as one in use as long as anybody has it open, once nobody else has.

    A run that is killed leaves its git alive for a while; then locks are those of a living one. They are removed once there is
    none. Raises NpuprofError where it lives on.
    """
    if fcntl is None:
        return None
    handle = os.open(os.path.join(folder, "HEAD"), os.O_RDONLY)
    try:
        started = time.monotonic()
        while stale := _list_leftovers(folder):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() - started > PATIENCE:
                    raise build_cache_error(
                        folder, f"Another git, which a killed run has left, works there: {os.path.join(folder, stale[0])}."
                    ) from None
                time.sleep(0.05)
                continue
            except OSError:
                pass  # a file system without locks
            for name in _list_leftovers(folder):
                Tree(folder).remove_file(name)
            break
        hold_file(handle)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _list_leftovers(folder: str) -> list[str]:
    """Return the files that a git has under way in a mirror, or that one which was killed has left."""
    paths = []
    for place, folders, files in Tree(folder).walk():
        in_objects = place.split("/", 1)[0] == "objects"
        paths += [
            os.path.join(place, name)
            for name in files
            if name.endswith(".lock") or (in_objects and name.startswith("tmp_")) or (not place and name == "packed-refs.new")
        ]
        if in_objects:
            folders[:] = [name for name in folders if place == "objects" and not name.startswith(".")]
    return paths


def _empty_folder(folder: str) -> None:
    """Remove all that is in a folder, which stays the one that is locked. Raises OSError."""
    tree = Tree(folder)
    for name in tree.list_names(""):
        tree.remove(name)


def open_mirror(name: str, url: str, path: str) -> Repository:
    """Return the repository of a source as it was fetched, with its store in ``path``.

    Raises NpuprofError where it was never fetched here, or somebody else owns it.
    """
    folder = find_mirror_folder(url)
    if not os.path.exists(folder):
        raise NpuprofError([build_unfetched_finding(name, "it was never fetched on this machine")])
    require_own_cache()
    repository = Repository(os.path.join(folder, path) if path else folder, folder, MirrorGit(folder, f"the source {name!r}"))
    repository.is_source = True
    return repository


def load_mirror_revision(repository: Repository, name: str, commit: str) -> Revision:
    """Return the store in the mirror of a source at a commit.

    Raises NpuprofError if the mirror lacks the commit: never fetched, or kept and lost with a part of the mirror.
    """
    if repository.git.read_objects([commit])[0] is None:
        if repository.git.run_command("for-each-ref", "--format=%(refname)", f"{LOCKED}{commit}").strip():
            raise NpuprofError([repository.git.explain_absence([commit])])
        raise NpuprofError([build_unfetched_finding(name, f"the commit {commit[:7]} is not on this machine")])
    return load_repository_revision(repository, commit)
