"""Mirrors of sources in the user's cache, and what is fetched into them. Nothing else of npuprof touches the network.

A mirror is a bare repository. What a remote has now is fetched without a ref that leads to it, and only then becomes what the
mirror knows: its heads and tags. What a lock names is kept under ``refs/npuprof/locked``.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from urllib.parse import quote

from npuprof.model import Finding, NpuprofError, Record
from npuprof.report.locks import hold_file, lock_folders, name_under_way
from npuprof.report.output import describe_os_error
from npuprof.store.bare import is_own_folder
from npuprof.store.git import Git
from npuprof.store.sources.failures import build_cache_error, build_failure, build_fetch_error
from npuprof.store.sources.mirror import find_mirror_folder
from npuprof.store.sources.transport import HangingError, Line, Talk
from npuprof.store.sources.urls import find_url_fault, hide_credentials

try:
    import fcntl
except ImportError:  # no locks there: git's own keep two from writing one ref
    fcntl = None  # type: ignore[assignment]

#: Seconds after which a remote that gives no sign of life is given up, unless ``$NPUPROF_TIMEOUT`` says otherwise.
TIMEOUT = 60.0
LOCKED = "refs/npuprof/locked/"
_HEADS, _TAGS = "refs/heads/", "refs/tags/"
_NEW = ".new"  # what the folder of a mirror ends with until it is complete
_MANY = 200  # changed refs from which on they are written to one file
#: What git says of an id that the remote does not have, or does not give away.
_GONE = re.compile(r"not our ref|unadvertised object|no such remote ref|couldn't find remote ref")
#: What is in no name of a ref, by git-check-ref-format.
_NO_NAME = re.compile(r"[\0-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|[./]$")
_NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.logAllRefUpdates=false")

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


class Fetched(Record):
    """What a remote has: its tags and heads by name, each with the id of its object, and the commit that it would check out.

    ``moved`` are tags that the mirror knew as something else: name, the commit then, the commit now; where only the tag's
    own object is another, it is that.
    """

    tags: dict[str, str]
    heads: dict[str, str]
    head: str
    moved: tuple[tuple[str, str, str], ...]


def fetch_source(url: str, progress: bool | None = None, accept_moved: bool = False) -> Fetched:
    """Bring the mirror of a source up to date, and make it where there is none; return what the remote has.

    A tag that is another object now than the mirror knew stays as it was known, unless ``accept_moved``. How far it is
    is told on a terminal, or as ``progress`` says. Raises NpuprofError; the mirror is as it was then.
    """
    _refuse_url(url)
    timeout = _read_timeout(url)
    with _hold_mirror(url) as (folder, hold):
        line = Line(folder, _write_address(url), timeout, _is_shown(progress), hold)
        return _take_over(Git(folder, bare=folder), _fetch_refs(line, url), accept_moved)


def fetch_commit(url: str, commit: str, progress: bool | None = None) -> bool:
    """Make sure that a commit, by its full id, is in the mirror of a source and stays there; return whether it is.

    False is for one that the remote no longer has. The network is touched only for what is not there yet. Raises NpuprofError.
    """
    _refuse_url(url)
    if not _is_full_id(commit):
        return False
    mirror = find_mirror_folder(url)
    if _is_mirror(mirror) and _has_commit(Git(mirror, bare=mirror), commit):
        keep_commit(url, commit)
        return True
    fetch_source(url, progress)
    with _hold_mirror(url) as (folder, hold):
        git = Git(folder, bare=folder)
        if not _has_commit(git, commit):
            line = Line(folder, _write_address(url), _read_timeout(url), _is_shown(progress), hold)
            talk = _talk(url, line.timeout, partial(line.fetch, [commit]))
            if talk.code and not _GONE.search(talk.said):
                raise build_failure(url, talk.said, find_mirror_folder(url))
            if talk.code or not _has_commit(git, commit):
                return False
        _write_refs(git, [f"update {LOCKED}{commit} {commit}"])
    return True


def keep_commit(url: str, commit: str) -> None:
    """Keep a commit of a mirror for ever, whatever its remote does. Raises NpuprofError where it is not there."""
    mirror = find_mirror_folder(url)
    git = Git(mirror, bare=mirror)
    if git.try_command("show-ref", "--verify", "--quiet", f"{LOCKED}{commit}").code == 0:
        return
    with _hold_mirror(url) as (folder, _):
        _write_refs(Git(folder, bare=folder), [f"update {LOCKED}{commit} {commit}"])


def build_moved_finding(url: str, moved: tuple[tuple[str, str, str], ...]) -> Finding:
    """Return that tags of a source are not what they were."""
    told = "; ".join(f"{tag} was {before[:12]}, and is {now[:12]} now" for tag, before, now in moved[:5])
    more = f"; and {len(moved) - 5} more" if len(moved) > 5 else ""
    what = f"{'a tag' if len(moved) == 1 else f'{len(moved)} tags'} of {hide_credentials(url)} moved: {told}{more}"
    return Finding("NP046", what, "A tag names a version, and a version never changes.", "ask who keeps the source whether that was meant")


def _write_address(url: str) -> str:
    """Return an address as git is given it: of a path, in the form that no option and no bundle of that name can be meant by."""
    return url if not url.startswith("/") else "file://" + quote(url)


def _refuse_url(url: str) -> None:
    if fault := find_url_fault(url):
        what = f"{hide_credentials(url)!r} is no source: {fault}" if url else f"an empty address is no source: {fault}"
        raise NpuprofError([Finding("NP048", what, "", "ssh://git@host/presets.git, https://host/presets.git, /srv/presets.git")])


def _read_timeout(url: str) -> float:
    given = os.environ.get("NPUPROF_TIMEOUT", "")
    if not given:
        return TIMEOUT
    with suppress(ValueError):
        if 0 < (found := float(given)) < 1e6:
            return found
    raise build_fetch_error(url, f"NPUPROF_TIMEOUT={given} is no number of seconds.", "write one above 0, or unset it")


def _is_shown(progress: bool | None) -> bool:
    import sys

    return sys.stderr.isatty() if progress is None else progress


def _is_full_id(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text) is not None


def _is_mirror(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "HEAD"))


# The folder of a mirror: made, locked, mended


@contextmanager
def _hold_mirror(url: str) -> Iterator[tuple[str, int | None]]:
    """Give the folder of a mirror, ours alone until the end, and a handle that git is to keep open.

    A new one lies beside its place until all went well, and is gone where it did not. Raises NpuprofError.
    """
    mirror = find_mirror_folder(url)
    cache = os.path.dirname(mirror)
    _make_cache_folder(cache)
    while True:
        folder = mirror if _is_mirror(mirror) else f"{mirror}{_NEW}"
        found = _identify_folder(folder)
        with lock_folders([folder]):
            if found != _identify_folder(folder, make=False) or (folder != mirror and _is_mirror(mirror)):
                continue  # another run made it, or gave it up, while this one waited
            try:
                _mend_mirror(folder)
                hold = _hold_alive(folder)
            except OSError as error:
                raise build_cache_error(cache, f"{describe_os_error(error)}.") from None
            try:
                yield folder, hold
                if folder != mirror:
                    os.replace(folder, mirror)
            except BaseException:
                if folder != mirror:
                    _remove_folder(folder)
                raise
            finally:
                if hold is not None:
                    os.close(hold)
            return


def _make_cache_folder(cache: str) -> None:
    try:
        os.makedirs(cache, mode=0o700, exist_ok=True)
    except OSError as error:
        raise build_cache_error(cache, f"It cannot be made: {describe_os_error(error, os.path.join(cache, 'x'))}.") from None
    _refuse_foreign(cache)
    if not os.access(cache, os.R_OK | os.W_OK | os.X_OK):
        raise build_cache_error(cache, "It cannot be written.")


def _refuse_foreign(folder: str) -> None:
    if not is_own_folder(os.path.realpath(folder)):
        raise build_cache_error(folder, "It belongs to somebody else, who could change every preset that is read from it.")


def _identify_folder(folder: str, make: bool = True) -> tuple[int, int]:
    """Return what tells a folder from all others, (0, 0) where there is none. Raises NpuprofError."""
    try:
        if make:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)
        found = os.lstat(folder)
    except FileNotFoundError:
        return 0, 0
    except OSError as error:
        raise build_cache_error(folder, f"{describe_os_error(error)}.") from None
    if not stat.S_ISDIR(found.st_mode):
        raise build_cache_error(folder, "It is no folder.")
    if make:
        _refuse_foreign(folder)
    return found.st_dev, found.st_ino


def _mend_mirror(folder: str) -> None:
    """Make a folder a mirror, or give one back what it has to hold. Raises OSError."""
    for name in ("objects/pack", "objects/info", "refs/heads", "refs/tags"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    known = _read_text(os.path.join(folder, "config"))
    if known not in (_build_config(False), _build_config(True)):
        _write_text(folder, "config", _build_config(re.search(r"(?i)^\s*objectformat\s*=\s*\"?sha256", known, re.MULTILINE) is not None))
    if not _read_text(os.path.join(folder, "HEAD")).startswith("ref: refs/heads/"):
        _write_text(folder, "HEAD", "ref: refs/heads/main\n")


def _build_config(is_long: bool) -> str:
    return _CONFIG.format(version=int(is_long), extensions=_SHA256 if is_long else "")


def _read_text(path: str) -> str:
    with suppress(FileNotFoundError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read(65536)
    return ""


def _write_text(folder: str, name: str, text: str) -> None:
    under_way = name_under_way(folder)
    with open(under_way, "x", encoding="utf-8") as file:
        file.write(text)
    os.replace(under_way, os.path.join(folder, name))


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
                if time.monotonic() - started > TIMEOUT:
                    raise build_cache_error(folder, f"Another git, which a killed run has left, works there: {stale[0]}.") from None
                time.sleep(0.05)
                continue
            except OSError:
                pass  # a file system without locks
            for path in _list_leftovers(folder):
                os.unlink(path)
            break
        hold_file(handle)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _list_leftovers(folder: str) -> list[str]:
    """Return the files that a git has under way in a mirror, or that one which was killed has left."""
    found = []
    for place, folders, files in os.walk(folder):
        is_top, in_objects = place == folder, place.startswith(os.path.join(folder, "objects"))
        found += [
            os.path.join(place, name)
            for name in files
            if name.endswith(".lock") or (in_objects and name.startswith("tmp_")) or (is_top and name == "packed-refs.new")
        ]
        if in_objects:
            folders[:] = [name for name in folders if place.endswith("objects") and not name.startswith(".")]
    return found


def _remove_folder(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


# What is fetched, and what of it is taken over


def _fetch_refs(line: Line, url: str) -> dict[str, str]:
    """Fetch what a remote has that the mirror has not; return its refs. The mirror's own do not change. Raises NpuprofError."""
    for _ in range(3):
        talk = _talk(url, line.timeout, line.list_refs)
        if talk.code:
            break
        refs = _parse_remote_refs(talk.answer)
        if any(len(oid) == 64 for oid in refs.values()) and line.mirror.endswith(_NEW):
            _write_text(line.mirror, "config", _build_config(True))
        known = set(_list_refs(Git(line.mirror, bare=line.mirror)).values())
        if known and not refs:  # as a web page answers that stands where a repository was
            why = "It lists no branch and no tag now, and the mirror knows some."
            raise build_fetch_error(url, why, "git ls-remote with the address shows what it lists")
        wanted = {oid for oid in refs.values() if oid not in known}
        if not wanted:
            return refs
        talk = _talk(url, line.timeout, partial(line.fetch, sorted(wanted)))
        if not talk.code:
            return refs
        if not _GONE.search(talk.said):
            break  # else something was moved or deleted between the two
    raise build_failure(url, talk.said, find_mirror_folder(url))


def _parse_remote_refs(answer: bytes) -> dict[str, str]:
    """Return heads, tags and HEAD of a remote; what has a name that no ref may have is left out."""
    found = {}
    for line in os.fsdecode(answer).split("\n"):
        oid, _, name = line.partition("\t")
        if _is_full_id(oid) and (name == "HEAD" or (name.startswith((_HEADS, _TAGS)) and not _NO_NAME.search(name))):
            found[name] = oid
    return found


def _talk(url: str, timeout: float, ask: Callable[[], Talk]) -> Talk:
    try:
        return ask()
    except HangingError:
        why = f"It gave no sign of life for {timeout:g} seconds, and was given up."
        raise build_fetch_error(url, why, "try again later; NPUPROF_TIMEOUT says for how many seconds to wait") from None


def _take_over(git: Git, refs: dict[str, str], accept_moved: bool) -> Fetched:
    """Let the mirror know what was fetched; return it. Raises NpuprofError."""
    known = _list_refs(git)
    heads, tags, known_tags = _refs_below(refs, _HEADS), _refs_below(refs, _TAGS), _refs_below(known, _TAGS)
    changed = [name for name, oid in tags.items() if known_tags.get(name, oid) != oid]
    moved = _read_moved(git, changed, known_tags, tags) if changed else ()
    gone = [f"{_HEADS}{name}" for name in _refs_below(known, _HEADS) if name not in heads]
    gone += [f"{_TAGS}{name}" for name in _find_obstacles(known_tags, tags)]
    kept = {f"{_TAGS}{name}" for name in changed} if not accept_moved else set()
    written = {name: oid for name, oid in refs.items() if name != "HEAD" and known.get(name) != oid and name not in kept}
    if len(written) > _MANY:
        _write_refs(git, [f"delete {name}" for name in gone])
        _pack_refs(git, {name: oid for name, oid in known.items() if name not in gone} | written)
        written = {name: oid for name, oid in written.items() if name in known}  # what lies in a file of its own goes before the packed
        gone = []
    elif _find_obstacles(dict.fromkeys(gone, ""), written):
        _write_refs(git, [f"delete {name}" for name in gone])
        gone = []
    _write_refs(git, [*(f"delete {name}" for name in gone), *(f"update {name} {oid}" for name, oid in written.items())])
    return Fetched(tags, heads, refs.get("HEAD", ""), moved)


def _pack_refs(git: Git, refs: dict[str, str]) -> None:
    """Write all refs of a mirror to its one file, as ``git pack-refs`` would: ten thousand files of their own take seconds."""
    names = sorted(refs, key=os.fsencode)
    asked = "".join(f"{refs[name]}^{{}}\n" for name in names).encode()
    peeled = git.run_command("cat-file", "--batch-check=%(objectname)", stdin=asked).decode().splitlines()
    lines = ["# pack-refs with: peeled fully-peeled sorted \n"]
    for name, target in zip(names, peeled, strict=True):
        lines.append(f"{refs[name]} {name}\n")
        if target != refs[name]:
            lines.append(f"^{target}\n")
    path = os.path.join(git.bare, "packed-refs")
    try:
        with open(f"{path}.lock", "x", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            file.write("".join(lines))
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.lock", path)
    except OSError as error:
        if not isinstance(error, FileExistsError):
            with suppress(OSError):
                os.unlink(f"{path}.lock")
        raise build_cache_error(git.bare, f"{describe_os_error(error)}.") from None


def _list_refs(git: Git) -> dict[str, str]:
    listed = os.fsdecode(git.run_command("for-each-ref", "--format=%(objectname) %(refname)"))
    return {name: oid for oid, _, name in (line.partition(" ") for line in listed.splitlines())}


def _refs_below(refs: dict[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): oid for name, oid in refs.items() if name.startswith(prefix)}


def _find_obstacles(known: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """Return the tags that are gone upstream and stand where others now need a folder, or the other way round."""
    old = {name for name in known if name not in wanted}
    if not old:
        return []
    folders = {name[:end] for name in wanted for end in _slashes(name)}
    return [name for name in old if name in folders or any(name[:end] in wanted for end in _slashes(name))]


def _slashes(name: str) -> list[int]:
    return [match.start() for match in re.finditer("/", name)]


def _read_moved(git: Git, names: list[str], known: dict[str, str], now: dict[str, str]) -> tuple[tuple[str, str, str], ...]:
    asked = [f"{oid}^{{commit}}" for name in names for oid in (known[name], now[name])]
    commits = iter(git.read_objects(asked))
    moved = []
    for name in names:
        before, after = next(commits), next(commits)
        differ = before is not None and after is not None and before.oid != after.oid
        moved.append((name, before.oid, after.oid) if differ and before and after else (name, known[name], now[name]))
    return tuple(moved)


def _write_refs(git: Git, lines: list[str]) -> None:
    """Change refs of a mirror, all or none. Raises NpuprofError."""
    if lines:
        git.run_command(*_NO_HOOKS, "update-ref", "--no-deref", "--stdin", stdin=os.fsencode("".join(f"{line}\n" for line in lines)))


def _has_commit(git: Git, commit: str) -> bool:
    """Return whether a commit is in a mirror, and all that belongs to it. Raises NpuprofError."""
    if git.try_command("show-ref", "--verify", "--quiet", f"{LOCKED}{commit}").code == 0:
        return True
    found = git.read_objects([commit])[0]
    if found is None or found.type != "commit":
        return False
    return git.try_command("rev-list", "--objects", "--quiet", commit, "--not", "--all").code == 0
