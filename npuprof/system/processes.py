"""The only module that starts processes: git, Python, and the user's commands.

Commands named by a repository, a preset or a log are never started; the user's commands run as
given.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import pairwise, takewhile

from npuprof.model import TYPE_CHECKING, Record

if TYPE_CHECKING:
    import subprocess
    from types import FrameType
    from typing import IO, Any, NoReturn, TypeVar

    import git

    Batch = TypeVar("Batch")
    Result = TypeVar("Result")

#: A pipe to a started process, and no stream: the values of ``subprocess``, which many commands
#: need not import.
PIPE = -1
DEVNULL = -3
#: A reading process is ended if nothing arrives from it for this long, in seconds.
PATIENCE = 60.0
#: The size of a number in a pipe, in bytes.
_NUMBER = 4
#: The longest time for one answer, as a multiple of ``PATIENCE``: a process may write single bytes
#: forever.
_LONGEST = 60
#: The limit of kept error messages, in bytes.
_MOST_MESSAGES = 1 << 20
#: The limit of reading git's memory and of one output, in bytes: a repository may name an endless
#: file.
MEMORY = 4 << 30
#: Settings that override any repository's. A folder that only looks like a bare repository is none,
#: and a file system monitor would be a program.
_ALWAYS = ("safe.bareRepository=explicit", "core.fsmonitor=false", "core.quotePath=false")


class GitProfile(Record):
    """How git is started: settings override any repository's, variables the caller's."""

    settings: tuple[str, ...]
    variables: Mapping[str, str]

    def build_command(
        self, arguments: Sequence[str], git_folder: str, more: Sequence[str] = ()
    ) -> list[str]:
        """Return a git command line; ``more`` are further settings.

        Raises FileNotFoundError without git.
        """
        program = find_program("git")
        if program is None:
            raise FileNotFoundError(2, "git was not found", "git")
        command = [program]
        if git_folder:
            command.append(f"--git-dir={git_folder}")
        command.append("--no-pager")
        for setting in (*self.settings, *more):
            command += ["-c", setting]
        return [*command, *arguments]


#: Reading git starts no programs of the repository and fetches no missing objects: the first
#: variable is for git 2.45 and later, the second blocks older ones.
READ = GitProfile(
    (
        *_ALWAYS,
        f"core.hooksPath={os.devnull}",
        "core.pager=cat",
        "core.askPass=",
        # a command of the repository
        "core.alternateRefsCommand=",
        "diff.external=",
        f"diff.orderFile={os.devnull}",
        "log.mailmap=false",
        # would start gpg, and add its output to the log
        "log.showSignature=false",
        "submodule.recurse=false",
        "gc.auto=0",
        "maintenance.auto=false",
    ),
    {
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_TERMINAL_PROMPT": "0",
        # git status would otherwise write a refreshed index
        "GIT_OPTIONAL_LOCKS": "0",
    },
)
#: Writing git runs the user's hooks, filters and signing program, as if started by hand.
WRITE = GitProfile(_ALWAYS, {"GIT_TERMINAL_PROMPT": "0", "GIT_LITERAL_PATHSPECS": "1"})
#: git for remotes starts its transport and helpers; it never prompts and fetches only what is
#: requested.
NETWORK = GitProfile(
    (
        *_ALWAYS,
        "protocol.ext.allow=never",
        f"core.hooksPath={os.devnull}",
        "core.askPass=",
        "core.alternateRefsCommand=",
        "credential.interactive=false",
        "submodule.recurse=false",
        "fetch.recurseSubmodules=false",
        "transfer.bundleURI=false",
        "fetch.bundleURI=",
        "fetch.fsckObjects=true",
        "transfer.fsckObjects=true",
        # packs stay as they arrive, instead of thousands of loose objects
        "fetch.unpackLimit=1",
        "transfer.unpackLimit=1",
        "gc.auto=0",
        "maintenance.auto=false",
        "fetch.writeCommitGraph=false",
        "fetch.prune=false",
        "fetch.pruneTags=false",
        "core.logAllRefUpdates=false",
    ),
    {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GCM_INTERACTIVE": "never",
        "GIT_ALLOW_PROTOCOL": "ssh:https:file",
        "GIT_NO_LAZY_FETCH": "1",
        # errors of transports are recognised by their English text
        "LANGUAGE": "C",
    },
)


class SilentError(OSError):
    """Raised for a reading process that was ended: silent for too long, or endless."""


@lru_cache(maxsize=64)
def _find_program(name: str, path: str) -> str | None:
    for folder in path.split(os.pathsep):
        program = os.path.join(folder, name)
        if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


def find_program(name: str) -> str | None:
    """Return the absolute path of a program, None if there is none.

    Relative folders of PATH may belong to a clone and are ignored.
    """
    return _find_program(name, os.environ.get("PATH", os.defpath))


def _start(command: list[str], **how: Any) -> subprocess.Popen[bytes]:
    import subprocess

    return subprocess.Popen(command, **how)  # noqa: S603 - no shell


# -- reading --------------------------------------------------------------------------------------


def start_git(
    arguments: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    git_folder: str = "",
    stdin: IO[bytes] | int = DEVNULL,
    profile: GitProfile = READ,
    more: Sequence[str] = (),
    is_apart: bool = False,
) -> subprocess.Popen[bytes]:
    """Start git in a folder, with pipes for output, and in its own session if it ``is_apart``.

    ``more`` are further settings. Raises OSError.
    """
    process = _start(
        profile.build_command(arguments, git_folder, more),
        cwd=folder,
        env={**environment},
        stdin=stdin,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=is_apart,
    )
    if profile is READ:
        _limit_memory(process.pid)
    return process


def _limit_memory(process: int) -> None:
    """Limit the memory of a process, except mapped files, if supported and not already limited."""
    with suppress(ImportError, AttributeError, OSError):
        import resource

        # RLIMIT_AS would count the packs that git maps
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if soft == resource.RLIM_INFINITY:
            resource.prlimit(process, resource.RLIMIT_DATA, (MEMORY, hard))


def finish(
    process: subprocess.Popen[bytes], stdin: bytes | None = None, patience: int = 1
) -> tuple[bytes, bytes]:
    """Return standard output and standard error of a process; ``stdin`` is its standard input.

    Raises SilentError if nothing arrives for ``patience`` times ``PATIENCE``, or if the output has
    no end.
    """
    until = time.monotonic() + _LONGEST * PATIENCE
    output = bytearray()
    replies = Replies(process, stdin or b"", patience)
    while piece := replies.read_some():
        output += piece
        if len(output) > MEMORY or time.monotonic() > until:
            end_silent(process)
    return bytes(output), replies.finish()[1]


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a reading process, unless it has ended, and close its pipes."""
    import subprocess

    process.kill()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    with suppress(subprocess.TimeoutExpired):  # the system ends none that waits for a disk
        process.wait(1)


def end_silent(process: subprocess.Popen[bytes]) -> NoReturn:
    """End a process that does not answer. Raises SilentError."""
    end_process(process)
    raise SilentError(110, "it did not answer in time")


class Replies:
    """The output of a process, which is ended if it is silent for ``patience`` times ``PATIENCE``.

    ``stdin`` is its whole input; without it, the caller may write to the process.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], stdin: bytes | None = None, patience: int = 1
    ) -> None:
        self._process, self._stdin = process, memoryview(stdin or b"")
        self._patience = patience * PATIENCE
        self._buffer = bytearray()  # bytes are removed from its front without copying the rest
        self._errors = bytearray()
        self._waiting = select.poll()
        self._pipes: dict[int, IO[bytes]] = {}
        for pipe, event in (
            (process.stdout, select.POLLIN),
            (process.stderr, select.POLLIN),
            (None if stdin is None else process.stdin, select.POLLOUT),
        ):
            if pipe is not None:
                self._pipes[pipe.fileno()] = pipe
                self._waiting.register(pipe, event)

    def read_line(self) -> bytes:
        """Return the next line with its end; the incomplete rest if the process has ended.

        Raises SilentError.
        """
        while (end := self._buffer.find(b"\n")) < 0:
            piece = self.read_some()
            if not piece:
                return self.read(len(self._buffer))
            self._buffer += piece
        return self.read(end + 1)

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, fewer if the process has ended. Raises SilentError."""
        while len(self._buffer) < size and (piece := self.read_some()):
            self._buffer += piece
        content = bytes(memoryview(self._buffer)[:size])  # copied once
        del self._buffer[:size]
        return content

    def read_some(self) -> bytes:
        """Return the next bytes of the process, empty at its end. Raises SilentError."""
        return self._read_from(self._process.stdout)

    def finish(self) -> tuple[int, bytes]:
        """Return the exit code and standard error of a process that has ended its output.

        Raises SilentError.
        """
        import subprocess

        while self._read_from(self._process.stderr):
            pass
        try:
            self._process.wait(self._patience)
        except subprocess.TimeoutExpired:
            end_silent(self._process)
        end_process(self._process)
        return self._process.returncode, bytes(self._errors)

    def _read_from(self, pipe: IO[bytes] | None) -> bytes:
        """Return the next bytes from a pipe.

        The others are served meanwhile, as the process would otherwise wait for them.
        """
        until = time.monotonic() + _LONGEST * PATIENCE
        while pipe in self._pipes.values():
            ready = self._waiting.poll(self._patience * 1000)
            if not ready and self._process.poll() is not None:
                break  # a process that it started keeps the pipe open
            if not ready or time.monotonic() > until:
                end_silent(self._process)
            for handle, _ in ready:
                piece = self._serve_pipe(handle)
                if self._pipes.get(handle) is pipe:
                    return piece
        return b""

    def _serve_pipe(self, handle: int) -> bytes:
        """Read from a pipe that is ready, or write to it.

        Return what went through, empty at the end.
        """
        pipe = self._pipes[handle]
        piece = b""
        if pipe is not self._process.stdin:
            # the size of a full pipe; more memory would be mapped anew each time
            piece = os.read(handle, 1 << 16)
        else:
            with suppress(BrokenPipeError):  # it reads no more
                # a pipe that poll reports as writable has room for PIPE_BUF bytes: more could block
                piece = bytes(self._stdin[: os.write(handle, self._stdin[: select.PIPE_BUF])])
            self._stdin = self._stdin[len(piece) :]
        # more is read and dropped: with a full pipe the process would wait forever
        if pipe is self._process.stderr and len(self._errors) < _MOST_MESSAGES:
            self._errors += piece
        if not piece:
            self._waiting.unregister(handle)
            self._pipes.pop(handle).close()
        return piece


def find_python() -> str | None:
    """Return the absolute path of the Python on PATH, None if there is none."""
    return find_program("python3") or find_program("python")


def ask_python(code: str) -> bytes:
    """Return the output of some code in the Python on PATH, empty if there is none or it fails.

    It runs isolated from the current folder and the environment: nothing of a clone is imported.
    """
    return ask_program(find_python() or "python", "-I", "-c", code)


def ask_program(name: str, *arguments: str) -> bytes:
    """Return the output of a program, empty if there is none on PATH or it fails."""
    program = find_program(name)
    if program is None:
        return b""
    try:
        process = _start(
            [program, *arguments], cwd=os.sep, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
        )
        output, _ = finish(process)
    except OSError:
        return b""
    return output


# -- writing by GitPython -------------------------------------------------------------------------


def open_git_writer(top: str) -> git.Git:
    """Return git at the top of a repository, as its user would start it.

    Hooks, filters and signing are enabled. It discovers the repository itself; GitPython's own
    search would accept a store that looks like a repository.
    """
    commands: git.Git = _import_gitpython().Git(top)
    commands.set_persistent_git_options(c=list(WRITE.settings))
    commands.update_environment(**WRITE.variables)
    return commands


@contextmanager
def limit_environment(environment: Mapping[str, str]) -> Iterator[None]:
    """Make GitPython pass on exactly this environment: it can add variables, but not remove any."""
    removed = {name: os.environ.pop(name) for name in set(os.environ).difference(environment)}
    try:
        yield
    finally:
        os.environ.update(removed)


def _import_gitpython() -> Any:
    """Return GitPython with the selected git: even its import would start any that it finds."""
    program = find_program("git") or "git"
    saved = {
        name: os.environ.get(name) for name in ("GIT_PYTHON_REFRESH", "GIT_PYTHON_GIT_EXECUTABLE")
    }
    os.environ.update(GIT_PYTHON_REFRESH="quiet", GIT_PYTHON_GIT_EXECUTABLE=program)
    try:
        import git
    finally:
        for name, text in saved.items():
            os.environ.pop(name)
            if text is not None:
                os.environ[name] = text
    git.Git.GIT_PYTHON_GIT_EXECUTABLE = program
    return git


# -- the user's commands --------------------------------------------------------------------------


def start_user_command(command: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
    """Start a command of the user: a pager, a trial, npuprof itself.

    Raises OSError if that fails.
    """
    return _start(list(command), **how)


def name_signal(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    # Python names only the first and the last real-time signal
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


@contextmanager
def handle_signals(
    handler: Callable[[int, FrameType | None], Any] | signal.Handlers, numbers: Iterable[int]
) -> Iterator[None]:
    """Handle some signals by a function, and as before afterwards."""
    try:
        before = {number: signal.signal(number, handler) for number in numbers}
    except ValueError:  # not in the main thread, which gets the signals
        yield
        return
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def hold_signals() -> Iterator[None]:
    """Defer termination signals while a process is started.

    Afterwards it is registered, and can be ended.
    """
    received = []

    def record(number: int, frame: object) -> None:
        received.append(number)

    numbers = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) not in (signal.SIG_IGN, None)  # None: not set by Python
    ]
    try:
        with handle_signals(record, numbers):
            yield
    finally:
        for signalled in received:
            signal.raise_signal(signalled)


def exec_user_command(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process with a command of the user. Raises OSError if that fails."""
    os.execvpe(command[0], list(command), environment)  # noqa: S606 - the user's command


def fork() -> int:
    """Fork a child process that becomes a command; return 0 in it, else its process id."""
    return os.fork()


# -- copies of this process -----------------------------------------------------------------------


def map_in_processes(
    work: Callable[[Batch], Result], batches: Sequence[Batch], prepare: Callable[[], object] = list
) -> Iterator[Result]:
    """Yield the results of ``work`` for batches, in order, from this process and a copy per CPU.

    This process works alone if that is as fast, or if it cannot be forked (other threads, not
    Linux). Before a fork, it does what all would have to ``prepare``. It works on what a copy
    leaves that failed or was killed.
    """
    import threading

    count = min(len(os.sched_getaffinity(0)), len(batches) // 8) if sys.platform == "linux" else 1
    # a fork has no other threads: locks that they held would stay locked
    if count < 2 or threading.active_count() > 1:
        yield from map(work, batches)
        return
    prepare()
    import pickle

    # each begins at a place of its own, as neighbours have imports in common
    starts = [len(batches) * place // count for place in range(count + 1)]
    queues = [_open_queue(range(*part)) for part in pairwise(starts)]

    def work_from(place: int) -> Iterator[tuple[int, Result]]:
        for queue in queues[place:] + queues[:place]:
            while taken := os.read(queue, _NUMBER):  # no other process gets it
                number = int.from_bytes(taken)
                yield number, work(batches[number])

    copies: dict[int, IO[bytes]] = {}
    results: dict[int, Result] = {}
    done = 0
    try:
        with suppress(OSError):  # as many as the system allows
            for place in range(1, count):
                _start_copy(work_from(place), copies)
        for number, result in work_from(0):
            results[number] = result
            while done in results:
                yield results.pop(done)
                done += 1
        for output in copies.values():
            with suppress(EOFError, pickle.UnpicklingError):
                while True:
                    results.update([pickle.load(output)])  # noqa: S301 - of a copy of this process
    finally:
        for process, output in copies.items():
            output.close()
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
        for queue in queues:
            os.close(queue)
    for number in range(done, len(batches)):
        yield results.pop(number) if number in results else work(batches[number])


def _open_queue(numbers: Iterable[int]) -> int:
    """Return a pipe with numbers, without those for which it has no room."""
    queue, end = os.pipe()
    os.set_blocking(end, False)
    os.write(end, b"".join(number.to_bytes(_NUMBER) for number in numbers))
    os.close(end)
    return queue


def _start_copy(results: Iterator[object], copies: dict[int, IO[bytes]]) -> None:
    """Start a copy of this process, and add it to those with what they write: their results.

    It writes at the end, as this process works until then. Interrupts are for this process. Raises
    OSError.
    """
    import pickle

    parent = os.getpid()
    output, end = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        process = os.fork()
        if not process:
            try:
                os.close(output)  # without a reader, writing fails
                pickled = map(pickle.dumps, results)
                kept = [*takewhile(lambda _: os.getppid() == parent, pickled)]
                with os.fdopen(end, "wb") as file:
                    file.writelines(kept)
            finally:
                os._exit(0)
        copies[process] = os.fdopen(output, "rb")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(end)
