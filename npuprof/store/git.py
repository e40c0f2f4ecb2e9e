"""git as a child process: one reader of objects that stays open, and single commands."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import IO, NamedTuple

from npuprof.model import Finding, NpuprofError
from npuprof.store import find_repository_top

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: Contents by their ids, once somebody waits for them: git reads them meanwhile.
    PendingContents = Callable[[], dict[str, bytes]]

#: What a hook's git hands down about the repository it runs in, which need not be the store's.
_REPOSITORY_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_CHUNK = 400  # requests written at once: fewer bytes than a pipe holds, so neither side waits for the other
_OWN_PROCESS_MINIMUM = 200  # how many requests are worth a process of their own


class GitObject(NamedTuple):
    """An object as git stores it; ``type`` is ``commit``, ``tree``, ``blob`` or ``tag``."""

    oid: str
    type: str
    content: bytes


class GitResult(NamedTuple):
    """What a command ended with."""

    code: int
    output: bytes
    complaint: bytes


class Git:
    """git, seen from one folder. Nothing is started before it is needed."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._reader: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def read_objects(self, names: Sequence[str]) -> list[GitObject | None]:
        """Return the objects of that names, None for each that is missing or ambiguous.

        A name is whatever git takes for one (``HEAD~3``, ``main:profiles``), and never read as a flag. All come
        from one process. Raises NpuprofError where git or the repository cannot be used.
        """
        with self._lock:
            found: list[GitObject | None] = []
            for start in range(0, len(names), _CHUNK):
                found += self._read_object_batch(names[start : start + _CHUNK])
            return found

    def request_contents(self, oids: Sequence[str]) -> PendingContents:
        """Start to read the contents of objects by their full ids; return what waits for them and tells them.

        git reads while the caller does something else. What is missing is left out.
        """
        if len(oids) < _OWN_PROCESS_MINIMUM:
            return lambda: {oid: read.content for oid, read in zip(oids, self.read_objects(oids), strict=True) if read}
        process = self._start_process("cat-file", "--batch", "--buffer")
        _widen_pipe(process.stdout)
        requests = "".join(f"{oid}\n" for oid in oids).encode()
        asked = process.stdin
        assert asked is not None, "it was asked for"
        if len(requests) < _widen_pipe(asked):  # the pipe takes it all: nobody has to wait
            with contextlib.suppress(BrokenPipeError):
                asked.write(requests)
                asked.close()
            process.stdin, requests = None, b""

        def collect_contents() -> dict[str, bytes]:
            out, reason = process.communicate(requests or None)
            if process.returncode:
                raise NpuprofError([build_refusal_finding(reason, self.folder)])
            return _split_contents(out, oids)

        return collect_contents

    def _read_object_batch(self, names: Sequence[str]) -> list[GitObject | None]:
        if self._reader is None:
            self._reader = self._start_process("cat-file", "--batch")
        asked, replies = self._reader.stdin, self._reader.stdout
        assert asked is not None, "it was asked for"
        assert replies is not None, "it was asked for"
        try:
            asked.write(b"".join(os.fsencode(name) + b"\n" for name in names))
            asked.flush()
        except BrokenPipeError:
            pass  # git has ended; its reason follows
        return [self._read_reply(replies) for _ in names]

    def _read_reply(self, replies: IO[bytes]) -> GitObject | None:
        line = replies.readline()
        if not line:
            assert self._reader is not None, "it is being read"
            assert self._reader.stderr is not None, "it was asked for"
            reason = self._reader.stderr.read()
            self.close()
            raise NpuprofError([build_refusal_finding(reason, self.folder)])
        words = line.rstrip(b"\n").rsplit(b" ", 2)
        if len(words) != 3 or not words[2].isdigit() or len(words[0]) not in (40, 64):
            return None
        content = replies.read(int(words[2]))
        replies.read(1)
        return GitObject(words[0].decode(), words[1].decode(), content)

    def run_command(self, *words: str, stdin: bytes | None = None) -> bytes:
        """Return what a command prints. Raises NpuprofError with git's own reason where it fails."""
        result = self.try_command(*words, stdin=stdin)
        if result.code:
            raise NpuprofError([build_refusal_finding(result.complaint, self.folder)])
        return result.output

    def try_command(self, *words: str, stdin: bytes | None = None) -> GitResult:
        """Return exit code, output and complaints of a command. Raises NpuprofError only where git is missing."""
        process = self._start_process(*words, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
        out, reason = process.communicate(stdin)
        return GitResult(process.returncode, out, reason)

    def stream_output(self, *words: str) -> Iterator[bytes]:
        """Yield what a command prints, in blocks. Raises NpuprofError where it fails."""
        process = self._start_process(*words, stdin=subprocess.DEVNULL)
        _widen_pipe(process.stdout)
        assert process.stdout is not None, "it was asked for"
        assert process.stderr is not None, "it was asked for"
        try:
            while block := process.stdout.read(1 << 20):
                yield block
            reason = process.stderr.read()
            if process.wait():
                raise NpuprofError([build_refusal_finding(reason, self.folder)])
        finally:
            process.stdout.close()
            process.stderr.close()
            process.wait()

    def _start_process(self, *words: str, stdin: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        command = ["git", "--no-pager", "-c", "core.quotePath=false", *words]
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(  # noqa: S603 - no shell; what users wrote goes through standard input
                command, cwd=self.folder, env=build_git_environment(self.folder), stdin=stdin, stdout=pipe, stderr=pipe
            )
        except FileNotFoundError:
            if not os.path.isdir(self.folder):
                raise NpuprofError([build_refusal_finding(b"no such folder", self.folder)]) from None
            why = "Revisions and versions are read from a git repository."
            hint = "install git, or put it on the PATH; presets without '@' need none"
            raise NpuprofError([Finding("NP020", "git was not found", why, hint)]) from None
        except OSError as error:
            raise NpuprofError([build_refusal_finding(str(error).encode(), self.folder)]) from None

    def close(self) -> None:
        """End the reader, if there is one."""
        reader, self._reader = self._reader, None
        if reader is not None:
            for pipe in (reader.stdin, reader.stdout, reader.stderr):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            reader.wait()

    def __del__(self) -> None:
        self.close()


def _split_contents(replies: bytes, oids: Sequence[str]) -> dict[str, bytes]:
    """Return contents by the ids that were asked for, from all that ``cat-file --batch`` said; what is missing is left out."""
    found: dict[str, bytes] = {}
    place = 0
    for oid in oids:
        end = replies.index(b"\n", place)
        size = replies[replies.rindex(b" ", place, end) + 1 : end]
        place = end + 1
        if size.isdigit():
            found[oid] = replies[place : place + int(size)]
            place += int(size) + 1
    return found


def build_git_environment(folder: str) -> dict[str, str]:
    """Return the environment for git: messages in English, no prompts, and the repository around ``folder``."""
    found = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    if find_repository_top(folder):
        for name in _REPOSITORY_VARIABLES:
            found.pop(name, None)
    return found


def _widen_pipe(pipe: IO[bytes] | None) -> int:
    """Let a pipe hold more than usual where the system can do that; return how many bytes it holds at least."""
    assert pipe is not None, "it was asked for"
    try:
        from fcntl import F_SETPIPE_SZ, fcntl

        return fcntl(pipe.fileno(), F_SETPIPE_SZ, 1 << 19)
    except (ImportError, AttributeError, OSError):
        return 512  # what POSIX promises


def build_refusal_finding(reason: bytes, folder: str) -> Finding:
    """Return why git refused, as a finding."""
    text = reason.decode(errors="replace").strip()
    first = next((line for line in text.splitlines() if line.startswith(("fatal:", "error:"))), text.partition("\n")[0])
    first = first.removeprefix("fatal:").removeprefix("error:").strip()
    if "dubious ownership" in text:
        hint = f"if you trust its owner: git config --global --add safe.directory {find_repository_top(folder) or folder}"
        return Finding("NP021", f"git refuses the repository of {folder}: it belongs to somebody else", "", hint)
    if "not a git repository" in text or "must be run in a work tree" in text:
        why = "Revisions and versions are those of the git repository that holds the presets."
        hint = "leave out the revision, or put the store under git: git init, git add, git commit"
        return Finding("NP021", f"{folder} is not in a git repository", why, hint)
    if "cannot do a partial commit" in text:
        what = f"a {text.rstrip('.').rpartition(' ')[2]} is under way, and git then commits everything or nothing"
        return Finding("NP022", what, "", "conclude it with git add and git commit, or give it up: git status says how")
    return Finding("NP022", f"git could not answer: {first or 'it said nothing'}", "", "run git in the same folder to see more")
