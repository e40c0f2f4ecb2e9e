"""git for remotes: no prompts, no programs except transports, and a timeout."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import BinaryIO, cast

from npuprof.model import TYPE_CHECKING, Record
from npuprof.report.terminal import progress_line
from npuprof.store.gitstore.objects import Git, build_config_variables, build_git_environment
from npuprof.store.sources.failures import build_cache_error
from npuprof.system import decode_safely, join_lines, processes
from npuprof.system.files import describe_os_error

if TYPE_CHECKING:
    import subprocess

    ShowProgress = Callable[[str], None]

_FLAGS = (
    "--progress",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--no-show-forced-updates",
    "--stdin",
)
#: The programs on the remote side: a repository's configuration may name others.
UPLOAD, _RECEIVE = "--upload-pack=git-upload-pack", "--receive-pack=git-receive-pack"
#: Settings that start a local program, write a file, or decide who gets a password.
_SENSITIVE = (
    r"^(core\.sshcommand|credential\.(.*\.)?helper"
    r"|http\.(.*\.)?(sslverify|savecookies|cookiefile|curloptresolve|proxy))$"
)
#: Replacements for such settings of a repository, unless the user or the system sets them.
_SAFE = {
    "sslverify": "true",
    "savecookies": "false",
    "cookiefile": "",
    "curloptresolve": "",
    "proxy": "",
}
#: The scopes of user and system settings.
_OWN = ("system", "global", "command")
#: The minimum speed in bytes per second over the timeout: a remote may send single bytes forever.
LEAST_SPEED = 10
_LONGEST_LIST = 64 * 1024 * 1024  # the maximum size of a remote's list of refs
#: Variables of the surrounding git or desktop that are dropped.
_LEFT_OUT = (
    "SSH_ASKPASS",
    "GIT_TEMPLATE_DIR",
    "GIT_NAMESPACE",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_DEFAULT_HASH",
    "GIT_PROTOCOL_FROM_USER",
    "GIT_HTTP_LOW_SPEED_LIMIT",
    "GIT_HTTP_LOW_SPEED_TIME",
)
#: Progress lines of git or the remote.
_PROGRESS = re.compile(r"(?:remote: )?[A-Z][\w ]*: +\d[\w %()/.,|]*")
_MOST_LINES = 200  # the number of lines kept of a remote's messages
_MOST_BYTES = 4096  # the number of bytes kept of each line
_LOOK = 0.2  # seconds between looks at a silent process


class HangingError(Exception):
    """Raised if a remote sends nothing, or too little to finish."""


class Talk(Record):
    """The result of a git command with a remote: exit code, answer, and messages.

    The messages are without progress.
    """

    code: int
    answer: bytes
    messages: str


class Line(Record):
    """A connection to a remote for a mirror, or for the repository with the work tree ``top``.

    ``timeout`` is the maximum silence in seconds, ``progress`` whether to show progress.
    """

    mirror: str
    url: str
    timeout: float
    progress: bool = False
    top: str = ""

    def push(self, refs: Iterable[str]) -> Talk:
        """Push exactly these refs, all or none. Raises HangingError."""
        return self._talk(["push", "--atomic", "--no-follow-tags", _RECEIVE, "--", self.url, *refs])

    def list_refs(self) -> Talk:
        """Return the heads, tags and HEAD of a remote, as ``git ls-remote`` does.

        Raises HangingError.
        """
        return self._talk(
            ["ls-remote", UPLOAD, "--", self.url, "HEAD", "refs/heads/*", "refs/tags/*"]
        )

    def fetch(self, oids: Iterable[str]) -> Talk:
        """Fetch objects by id, without writing refs: git searches each name among all others.

        Raises HangingError, NpuprofError if the list cannot be written.
        """
        try:
            # in a file, as the length of command lines is limited
            with tempfile.TemporaryFile(dir=self.mirror) as listed:
                listed.write(join_lines(oids).encode())
                listed.seek(0)
                return self._talk(
                    ["fetch", *_FLAGS, UPLOAD, "--", self.url], cast("BinaryIO", listed)
                )
        except OSError as error:
            raise build_cache_error(self.mirror, f"{describe_os_error(error)}.") from None

    def _talk(self, arguments: Sequence[str], stdin: BinaryIO | None = None) -> Talk:
        environ = _build_environment(self)
        slow = (
            f"http.lowSpeedLimit={LEAST_SPEED}",
            f"http.lowSpeedTime={max(1, round(self.timeout))}",
        )
        git_folder = "" if self.top else self.mirror

        def start() -> subprocess.Popen[bytes]:
            return processes.start_git(
                arguments,
                self.top or self.mirror,
                environ,
                git_folder,
                stdin or processes.DEVNULL,
                processes.NETWORK,
                slow,
                is_apart=True,
            )

        with (
            progress_line() if self.progress else nullcontext(lambda text: None) as show,
            _run_with_us(start) as process,
        ):
            return _listen(process, self, show)


def _build_environment(line: Line) -> dict[str, str]:
    """Return the user's environment, without prompts and variables of another repository."""
    bare = "" if line.top else line.mirror
    environ = {
        name: text
        for name, text in build_git_environment(line.top, bare).items()
        if name not in _LEFT_OUT
    }
    environ |= processes.NETWORK.variables
    return environ | build_program_variables(Git(line.top or bare, bare=bare), line.timeout)


def build_program_variables(git: Git, timeout: float) -> dict[str, str]:
    """Return variables that make git ignore dangerous settings of a repository.

    Those start programs, write files or redirect passwords. The ssh, credential helper and http
    settings of the user and the system are used. ssh exits if nothing arrives for ``timeout``
    seconds, unless the user configured another command. The remote program must be named on the
    command line: git takes the first of several in the configuration.
    """
    output = git.try_command("config", "--show-scope", "-z", "--get-regexp", _SENSITIVE).output
    fields = os.fsdecode(output).split("\0")  # scope, "NAME\nVALUE", scope, ...
    own = []  # a name may occur twice
    foreign: dict[str, None] = {}
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        name, _, value = entry.partition("\n")
        if scope in _OWN:
            own.append((name, value))
        else:
            foreign[name] = None
    last_own = dict(own)
    reset = []
    for name in foreign:
        safe = _SAFE.get(name.rpartition(".")[2])
        if safe is not None:
            # the repository's value would override the user's, so that this one is set again
            reset.append((name, last_own.get(name, safe)))
    if helpers := [name for name in foreign if name.endswith("helper")]:
        reset += [(name, "") for name in helpers]  # an empty helper resets the list
        reset += [(name, value) for name, value in own if name.endswith("helper")]
    program = os.environ.get("GIT_SSH")
    ssh = (
        os.environ.get("GIT_SSH_COMMAND")
        or last_own.get("core.sshcommand")
        # GIT_SSH is a path, GIT_SSH_COMMAND a shell command
        or (program and shlex.quote(program))
    )
    variables = build_config_variables(reset)
    if ssh:
        return variables | {"GIT_SSH_COMMAND": ssh}
    seconds = max(1, round(timeout))
    return variables | {
        "GIT_SSH_COMMAND": (
            f"ssh -o BatchMode=yes -o ConnectTimeout={seconds} -o "
            f"ServerAliveInterval={seconds} -o ServerAliveCountMax=1"
        ),
        # the setting ssh.variant of a repository would change the arguments
        "GIT_SSH_VARIANT": "ssh",
    }


def _listen(process: subprocess.Popen[bytes], line: Line, show: ShowProgress) -> Talk:
    """Read git's output until it ends.

    Raises HangingError if output and files grow too slowly for too long.
    """
    assert process.stdout is not None, "start_git opens a pipe"
    assert process.stderr is not None, "start_git opens a pipe"
    messages, answer = _Messages(show), bytearray()
    consumers = {
        process.stderr.fileno(): messages.add,
        process.stdout.fileno(): answer.extend,
    }
    least = LEAST_SPEED * line.timeout
    since, received = time.monotonic(), 0
    before = _measure_packs(line.mirror)
    with selectors.DefaultSelector() as selector:
        for handle in consumers:
            # what is left at the end is read without a wait
            os.set_blocking(handle, False)
            selector.register(handle, selectors.EVENT_READ)
        # git's exit ends the loop: helpers may keep the pipes open
        while process.poll() is None:
            for key, _ in selector.select(_LOOK):
                piece = _read_available(key.fd)
                consumers[key.fd](piece)
                received += len(piece)
                if not piece:
                    # a closed pipe stays readable: the loop would spin
                    selector.unregister(key.fd)
            total = received + _measure_packs(line.mirror)
            # packs count, too: during a long download git may print nothing
            if total - before >= least:
                since, before = time.monotonic(), total
            elif time.monotonic() - since > line.timeout or len(answer) > _LONGEST_LIST:
                raise HangingError
    # not until the end of the pipes: ssh's connection master, for example, may keep one open
    for handle, consume in consumers.items():
        while piece := _read_available(handle):
            consume(piece)
    return Talk(process.returncode, bytes(answer), messages.finish())


def _read_available(handle: int) -> bytes:
    """Return the available content of a pipe, possibly empty."""
    with suppress(BlockingIOError):
        return os.read(handle, 65536)
    return b""


def _measure_packs(mirror: str) -> int:
    """Return the number of received bytes: a pack grows in the folder while it arrives."""
    total = 0
    with suppress(OSError), os.scandir(os.path.join(mirror, "objects", "pack")) as entries:
        for entry in entries:
            with suppress(OSError):
                total += entry.stat().st_size
    return total


class _Messages:
    """git's messages: progress is shown on the terminal, the last others are stored."""

    def __init__(self, show: ShowProgress) -> None:
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._rest = b""
        self._show = show

    def add(self, piece: bytes) -> None:
        *lines, self._rest = re.split(rb"[\r\n]+", self._rest + piece)
        # a remote may send one endless line
        self._rest = self._rest[:_MOST_BYTES]
        for line in lines:
            self._add_line(line)

    def finish(self) -> str:
        self._add_line(self._rest)
        return "\n".join(self._lines)

    def _add_line(self, line: bytes) -> None:
        text = decode_safely(line[:_MOST_BYTES]).rstrip()
        if _PROGRESS.fullmatch(text):
            self._show(f"fetching: {text}")
        elif text:
            self._lines.append(text)


@contextmanager
def _run_with_us(start: Callable[[], subprocess.Popen[bytes]]) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a started process that ends with this block in any case.

    It has its own session, out of the terminal's reach.
    """

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    # handlers of a Python caller stay; by default, the process would end without the block below
    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL
    ]
    process = None
    with processes.handle_signals(end, numbers):
        try:
            with processes.hold_signals():
                process = start()
            yield process
        finally:
            if process is not None:
                _kill_group(process)
                for pipe in filter(None, (process.stdout, process.stderr)):
                    pipe.close()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End git and its child processes; git may first remove its temporary files."""
    if process.returncode is not None:
        return  # the number may have been reused
    with suppress(ProcessLookupError, PermissionError):
        # ssh and git-remote-https are children in the same session
        os.killpg(process.pid, signal.SIGTERM)
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
