"""git that talks to a remote: nothing is prompted, nothing is started but transports, and what hangs is given up."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import BinaryIO, NamedTuple, cast

from npuprof.report.terminal import progress_line
from npuprof.store.gitstore.objects import Git, build_config_variables, build_git_environment
from npuprof.store.sources.failures import build_os_error
from npuprof.system import lazy_pattern, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

    Tell = Callable[[str], None]

_FLAGS = (
    "--progress", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--no-show-forced-updates",
    "--stdin",
)  # fmt: skip
#: The programs of the other side: the configuration of a repository may name others.
UPLOAD, _RECEIVE = "--upload-pack=git-upload-pack", "--receive-pack=git-receive-pack"
#: Settings that start a program on this side, write a file, or decide who gets a password.
_SENSITIVE = r"^(core\.sshcommand|credential\.(.*\.)?helper|http\.(.*\.)?(sslverify|savecookies|cookiefile|curloptresolve|proxy))$"
#: Values that replace such settings of a repository, unless the user or the system has one.
_SAFE = {"sslverify": "true", "savecookies": "false", "cookiefile": "", "curloptresolve": "", "proxy": ""}
#: The scopes of settings of the user and the system.
_OWN = ("system", "global", "command")
#: Fewer bytes a second, over the time in which a sign of life is waited for, are none: a remote may send one now and then for ever.
LEAST_SPEED = 10
_LONGEST_LIST = 64 * 1024 * 1024  # bytes of refs that are taken from a remote
#: What of the surrounding git or of a desktop has no say here.
_LEFT_OUT = (
    "SSH_ASKPASS", "GIT_TEMPLATE_DIR", "GIT_NAMESPACE", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_DEFAULT_HASH", "GIT_PROTOCOL_FROM_USER", "GIT_HTTP_LOW_SPEED_LIMIT",
    "GIT_HTTP_LOW_SPEED_TIME",
)  # fmt: skip
#: How far something is: git's own lines, or those of the other side.
_PROGRESS = lazy_pattern(r"(?:remote: )?[A-Z][\w ]*: +\d[\w %()/.,|]*")
_MOST_LINES = 200  # what a remote says is kept up to this many lines
_MOST_BYTES = 4096  # and up to this many bytes of one
_LOOK = 0.2  # seconds after which the process is looked at, if it says nothing


class HangingError(Exception):
    """A remote gave no sign of life, or sent too little to come to an end."""


class Talk(NamedTuple):
    """What a git that talked to a remote ended with: its exit code, what it answered, and what it said, without its progress."""

    code: int
    answer: bytes
    messages: str


class Line(NamedTuple):
    """How to talk to a remote for a mirror, or for the repository whose work tree has its ``top`` there.

    ``timeout`` is for how many seconds it may give no sign of life, ``progress`` whether to tell how far it is.
    """

    mirror: str
    url: str
    timeout: float
    progress: bool = False
    top: str = ""

    def push(self, refs: Iterable[str]) -> Talk:
        """Push refs, all or none, and nothing else. Raises HangingError."""
        return self._talk(["push", "--atomic", "--no-follow-tags", _RECEIVE, "--", self.url, *refs])

    def list_refs(self) -> Talk:
        """Ask for the heads, the tags and the HEAD of a remote, as ``git ls-remote`` does. Raises HangingError."""
        return self._talk(["ls-remote", UPLOAD, "--", self.url, "HEAD", "refs/heads/*", "refs/tags/*"])

    def fetch(self, wanted: Iterable[str]) -> Talk:
        """Fetch objects by their ids; no ref is written. Raises HangingError, NpuprofError where there is no room for the list.

        By ids, as git looks for each name among all the others.
        """
        try:
            with tempfile.TemporaryFile(dir=self.mirror) as listed:  # a command line does not hold any number of them
                listed.write("".join(f"{oid}\n" for oid in wanted).encode())
                listed.seek(0)
                return self._talk(["fetch", *_FLAGS, UPLOAD, "--", self.url], cast("BinaryIO", listed))
        except OSError as error:
            raise build_os_error(self.mirror, error) from None

    def _talk(self, words: Sequence[str], listed: BinaryIO | None = None) -> Talk:
        environ = _build_environment(self)
        slow = (f"http.lowSpeedLimit={LEAST_SPEED}", f"http.lowSpeedTime={max(1, round(self.timeout))}")
        git_folder = "" if self.top else self.mirror

        def start() -> subprocess.Popen[bytes]:
            return processes.start_git_talk(words, self.top or self.mirror, environ, slow, listed, git_folder)

        with progress_line() if self.progress else nullcontext(_say_nothing) as tell, _run_with_us(start) as process:
            return _listen(process, self, tell)


def _say_nothing(text: str) -> None:
    pass


def _build_environment(line: Line) -> dict[str, str]:
    """Return the environment: the user's own, but for what prompts, and for what belongs to another repository."""
    bare = "" if line.top else line.mirror
    environ = {name: text for name, text in build_git_environment(line.top, bare).items() if name not in _LEFT_OUT}
    environ |= processes.NETWORK.variables
    return environ | build_program_variables(Git(line.top or bare, bare=bare), line.timeout)


def build_program_variables(git: Git, timeout: float) -> dict[str, str]:
    """Return variables that make git ignore settings of a repository that start a program, write a file or redirect a password.

    The ssh, the credential helpers and the http settings of the user and the system are used.

    ssh ends if nothing arrives for ``timeout`` seconds, unless the user names another command. The program of the other side has to be
    named on the command line: of several in the configuration, git takes the first.
    """
    listed = os.fsdecode(git.try_command("config", "--show-scope", "-z", "--get-regexp", _SENSITIVE).output).split("\0")
    entries = [(scope, *entry.partition("\n")[::2]) for scope, entry in zip(listed[::2], listed[1::2], strict=False)]
    own = [(name, value) for scope, name, value in entries if scope in _OWN]
    foreign = dict.fromkeys(name for scope, name, _ in entries if scope not in _OWN)
    reset = [(name, dict(own).get(name, safe)) for name in foreign if (safe := _SAFE.get(name.rpartition(".")[2])) is not None]
    if helpers := [(name, "") for name in foreign if name.endswith("helper")]:  # an empty one ends the list of those before
        reset += [*helpers, *(entry for entry in own if entry[0].endswith("helper"))]
    program, wait = os.environ.get("GIT_SSH"), max(1, round(timeout))
    ssh = os.environ.get("GIT_SSH_COMMAND") or dict(own).get("core.sshcommand") or (program and shlex.quote(program))
    variables = {"GIT_SSH_COMMAND": ssh} if ssh else {
        "GIT_SSH_COMMAND": f"ssh -o BatchMode=yes -o ConnectTimeout={wait} -o ServerAliveInterval={wait} -o ServerAliveCountMax=1",
        "GIT_SSH_VARIANT": "ssh",
    }  # fmt: skip
    return variables | build_config_variables(reset)


def _listen(process: subprocess.Popen[bytes], line: Line, tell: Tell) -> Talk:
    """Take in what git says until it ends. Raises HangingError if that, and what its files grow by, is too little for too long."""
    assert process.stdout is not None, "it was asked for"
    assert process.stderr is not None, "it was asked for"
    messages, answer = _Messages(tell), bytearray()
    takers: dict[int, Callable[[bytes], None]] = {process.stderr.fileno(): messages.take, process.stdout.fileno(): answer.extend}
    since, heard, enough = time.monotonic(), 0, LEAST_SPEED * line.timeout
    before = _measure_packs(line.mirror)
    with selectors.DefaultSelector() as selector:
        for handle in takers:
            os.set_blocking(handle, False)
            selector.register(handle, selectors.EVENT_READ)
        while process.poll() is None:
            for key, _ in selector.select(_LOOK):
                piece = _read_available(key.fd)
                takers[key.fd](piece)
                heard += len(piece)
                if not piece:
                    selector.unregister(key.fd)
            came = heard + _measure_packs(line.mirror)
            if came - before >= enough:
                since, before = time.monotonic(), came
            elif time.monotonic() - since > line.timeout or len(answer) > _LONGEST_LIST:
                raise HangingError
    for handle, take in takers.items():  # what still holds a pipe, as the master of ssh's connections may, is not waited for
        while piece := _read_available(handle):
            take(piece)
    return Talk(process.returncode, bytes(answer), messages.finish())


def _read_available(handle: int) -> bytes:
    """Return what a pipe has now, nothing where that is nothing."""
    with suppress(BlockingIOError):
        return os.read(handle, 65536)
    return b""


def _measure_packs(mirror: str) -> int:
    """Return how many bytes have come so far: a pack grows in the folder while it arrives."""
    total = 0
    with suppress(OSError), os.scandir(os.path.join(mirror, "objects", "pack")) as entries:
        for entry in entries:
            with suppress(OSError):
                total += entry.stat().st_size
    return total


class _Messages:
    """What git says: how far it is goes to the terminal, the rest is kept, as far as it is of any use."""

    def __init__(self, tell: Tell) -> None:
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._rest = b""
        self._tell = tell

    def take(self, heard: bytes) -> None:
        *lines, self._rest = re.split(rb"[\r\n]+", self._rest + heard)
        self._rest = self._rest[:_MOST_BYTES]
        for line in lines:
            self._take_line(line)

    def finish(self) -> str:
        self._take_line(self._rest)
        return "\n".join(self._lines)

    def _take_line(self, line: bytes) -> None:
        text = line[:_MOST_BYTES].decode(errors="replace").rstrip()
        if _PROGRESS.fullmatch(text):
            self._tell(f"fetching: {text}")
        elif text:
            self._lines.append(text)


@contextmanager
def _run_with_us(start: Callable[[], subprocess.Popen[bytes]]) -> Iterator[subprocess.Popen[bytes]]:
    """Give a started process that ends with this block, whatever ends it: it has a session of its own, no terminal reaches it."""

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    mine = [number for number in (signal.SIGTERM, signal.SIGHUP) if is_main and signal.getsignal(number) is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, end)
    process = None
    try:
        with processes.hold_signals():
            process = start()
        yield process
    finally:
        if process is not None:
            _kill_group(process)
            for pipe in filter(None, (process.stdout, process.stderr)):
                pipe.close()
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End git and all that it started; it may first take away what it has under way."""
    if process.returncode is not None:
        return  # the number may be somebody else's by now
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
