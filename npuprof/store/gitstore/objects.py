"""git as a child process that does not trust the repository: an object reader, and commands."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice

from npuprof.model import (
    TYPE_CHECKING,
    Finding,
    NpuprofError,
    Place,
    Record,
    build_error,
    fail_read,
)
from npuprof.system import (
    decode_safely,
    expand_home,
    find_repository_top,
    find_shared_folder,
    is_below,
    lazy_pattern,
    processes,
)
from npuprof.system.files import name_special_file, read_plain_file
from npuprof.system.folder_owner import is_own_folder
from npuprof.system.processes import READ, GitProfile, Replies, SilentError

if TYPE_CHECKING:
    import subprocess

#: Variables from a hook's git about its repository, which may differ from the store's.
_REPOSITORY_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
)
#: The object folders of a hook's repository: pushed objects are in quarantine until the hooks
#: accept them.
_OBJECT_VARIABLES = (
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
)
#: The files that git itself reads in a work tree, and those it writes in its folder for a commit,
#: tag or setting.
_TREE_FILES = (".gitattributes", ".gitignore", ".gitmodules")
_WRITTEN = (
    "COMMIT_EDITMSG",
    "HEAD",
    "MERGE_MSG",
    "ORIG_HEAD",
    "TAG_EDITMSG",
    "config",
    "config.worktree",
    "gc.log",
    "index",
    "logs",
    "objects",
    "packed-refs",
    "refs",
    "rr-cache",
)
#: git reads the sixth list of alternates and follows no further.
_ALTERNATE_LEVELS = 6
#: The number of bytes of a configuration file or a list of alternates that are read.
_LONGEST_ALTERNATES = 1 << 20
#: The maximum number of object folders of a real repository, and of configuration files and the
#: files that they name.
_MOST_ALTERNATES = 100
#: The number of entries below a folder among which git's files are searched: an ignored folder may
#: have millions.
_MOST_ENTRIES = 4_000
#: A setting that names a file, in any section, and a quote or escape in its value.
_NAMED_FILE = lazy_pattern(
    r"(?im)^[ \t]*(?:\[.*\][ \t]*)?(?:path|excludesfile|attributesfile)[ \t]*="
    r'((?:"(?:[^"\\\n]|\\\r?\n|\\.)*"|[^"\\#;\n]|\\\r?\n|\\.)*)'
)
_QUOTE = lazy_pattern(r'"|\\\r?\n|\\(.)')
_CHUNK = 400  # requests written at once: they fit into a pipe, so neither side blocks


class GitObject(Record):
    """A git object; ``type`` is ``commit``, ``tree``, ``blob`` or ``tag``."""

    oid: str
    type: str
    content: bytes


class GitResult(Record):
    """The result of a command."""

    code: int
    output: bytes
    complaint: bytes


class Git:
    """git for the repository around a folder, read-only by default.

    Processes are started on demand.

    It runs at the ``top`` of the repository (an empty string if there is none) and discovers the
    repository by its own rules, including ``safe.directory``: a store that looks like a bare
    repository is not recognised as one. ``variables`` override the environment: another index,
    another object folder. Another ``profile`` permits more.

    A ``bare`` repository is named explicitly, for which git skips the ownership check: it is done
    here.
    """

    #: A class attribute, so that __del__ finds it although __init__ failed.
    _reader: subprocess.Popen[bytes] | None = None

    def __init__(
        self,
        folder: str,
        variables: Mapping[str, str] | None = None,
        bare: str = "",
        profile: GitProfile = READ,
    ) -> None:
        self.folder = folder
        self.profile = profile
        self.bare = os.path.realpath(bare) if bare else ""
        self.top = "" if bare else find_repository_top(folder)
        if bare and not is_own_folder(self.bare):
            raise self.build_refusal(b"dubious ownership")
        #: Whether git writes its output in blocks; otherwise each commit at once, for readers that
        #: may need only the first.
        self.in_blocks = False
        self._variables = dict(variables or {})
        self._has_checked_files = False
        self._runs_filters = False
        self._lock = threading.Lock()

    def build_refusal(self, reason: bytes) -> NpuprofError:
        """Return git's error."""
        finding = build_refusal_finding(reason, self.bare or self.folder)
        return fail_read(finding) if finding.code == "NP022" else NpuprofError(finding)

    def read_objects(self, names: Sequence[str]) -> list[GitObject | None]:
        """Return the objects with some names, None for each missing or ambiguous one.

        A name is any git revision (``HEAD~3``, ``main:profiles``), and never parsed as a flag. All
        objects come from one process. Raises NpuprofError if git or the repository cannot be used.
        """
        with self._lock:
            objects = []
            for start in range(0, len(names), _CHUNK):
                objects += self._read_object_batch(names[start : start + _CHUNK])
            return objects

    def read_files(self, names: Sequence[str]) -> list[bytes | None]:
        """Return file contents by ``COMMIT:PATH``, None for each missing file.

        Raises NpuprofError.
        """
        return [
            file.content if file is not None and file.type == "blob" else None
            for file in self.read_objects(names)
        ]

    def _read_object_batch(self, names: Sequence[str]) -> list[GitObject | None]:
        if self._reader is None:
            self._reader = self._start_process("cat-file", "--batch", is_asked=True)
            self._replies = Replies(self._reader)
        requests = self._reader.stdin
        assert requests is not None, "is_asked opens a pipe"
        try:
            asked = [f"{name}\n" for name in names if "\n" not in name]
            requests.write(os.fsencode("".join(asked)))
            requests.flush()
        except BrokenPipeError:
            pass  # git has exited; its reason follows
        try:
            # git reads names line by line: one with a line end would be two
            return [None if "\n" in name else self._read_reply() for name in names]
        except SilentError as error:
            self._reader = None
            raise self._build_silence(error) from None

    def _read_reply(self) -> GitObject | None:
        """Return the next object: ``OID TYPE SIZE``, its content, and a newline.

        None for ``NAME missing`` and ``NAME ambiguous``.
        """
        line = self._replies.read_line()
        if not line:
            _, reason = self._replies.finish()
            self.close()
            raise self.build_refusal(reason)
        header = line.rstrip(b"\n").rsplit(b" ", 2)
        if len(header) != 3:
            return None
        oid, kind, digits = header
        # "NAME missing" has three parts, too, if the name contains a blank
        if not digits.isdigit() or len(oid) not in (40, 64):  # SHA-1 or SHA-256
            return None
        size = int(digits)
        return GitObject(oid.decode(), kind.decode(), self._replies.read(size + 1)[:size])

    def read_object(self, name: str) -> GitObject | None:
        """Return one object by name, None if it does not exist. Raises NpuprofError."""
        return self.read_objects([name])[0]

    def read_contents(self, oids: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of objects by full id, read together.

        Raises NpuprofError if any is missing.
        """
        requested = list(dict.fromkeys(oids))
        contents = {
            oid: read.content
            for oid, read in zip(requested, self.read_objects(requested), strict=True)
            if read
        }
        if len(contents) < len(requested):
            absent = [oid for oid in requested if oid not in contents]
            raise NpuprofError(self.explain_absence(absent))
        return contents

    def list_files(self, folder: str, only_tracked: bool = False) -> list[bytes]:
        """Return the tracked files of a folder, and its new files that are not ignored.

        Raises NpuprofError outside a work tree.
        """
        kinds = "-cz" if only_tracked else "-coz"
        # from the top, git would list all of the repository
        start = ("-C", os.path.abspath(folder)) if self.top else ()
        return self.run_command(*start, "ls-files", kinds, "--exclude-standard").split(b"\0")

    def with_filters(self) -> Git:
        """Return the same git with filters enabled."""
        git = Git(self.folder, self._variables, self.bare, self.profile)
        git._runs_filters = True
        return git

    def beside(self, variables: Mapping[str, str]) -> Git:
        """Return the same git with other variables, such as GIT_INDEX_FILE."""
        git = Git(self.folder, variables, self.bare, self.profile)
        git._runs_filters = self._runs_filters
        return git

    @cached_property
    def _filters_off(self) -> dict[str, str]:
        """The variables that disable all configured filters."""
        listed = self.try_command(
            "config",
            "-z",
            "--name-only",
            "--get-regexp",
            r"^filter\..*\.(clean|smudge|process|required)$",
        )
        # git has no switch for all filters: an empty command disables one
        names = dict.fromkeys(os.fsdecode(listed.output).split("\0"))
        off = [(name, "false" if name.endswith(".required") else "") for name in names if name]
        return build_config_variables(off)

    def writing(self) -> Git:
        """Return the same git as its user would start it, with hooks and filters."""
        return Git(self.folder, self._variables, self.bare, processes.WRITE)

    def explain_absence(self, oids: Iterable[str]) -> Finding:
        """Return why objects are missing, and how to get them."""
        marks = self.try_command(
            "config", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$"
        )
        return build_absent_finding(list(oids), partial=marks.code == 0)

    def run_command(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        """Return the output of a command. Raises NpuprofError with git's reason if it fails."""
        result = self.try_command(*arguments, stdin=stdin)
        if result.code:
            raise self.build_refusal(result.complaint)
        return result.output

    def try_command(self, *arguments: str, stdin: bytes | None = None) -> GitResult:
        """Return exit code, output and errors of a command.

        Raises NpuprofError only if git is missing.
        """
        process = self._start_process(*arguments, is_asked=stdin is not None)
        patience = 1 if self.profile is READ else 10  # hooks and remotes may take longer
        try:
            output, complaint = processes.finish(process, stdin, patience)
        except SilentError as error:
            raise self._build_silence(error) from None
        if b"warning: ignoring broken ref" in complaint:
            # git goes on without the ref; the failed read is only noted, and reported as a warning
            self.build_refusal(complaint.replace(b"warning: ignoring", b"error: it ignores a"))
        return GitResult(process.returncode, output, complaint)

    def stream_output(self, *arguments: str) -> Iterator[bytes]:
        """Yield the output of a command in blocks. Raises NpuprofError if it fails."""
        process = self._start_process(*arguments)
        replies = Replies(process)
        try:
            while block := replies.read_some():
                yield block
            code, reason = replies.finish()
            if code:
                raise self.build_refusal(reason)
        except SilentError as error:
            raise self._build_silence(error) from None
        finally:
            processes.end_process(process)

    def _start_process(self, *arguments: str, is_asked: bool = False) -> subprocess.Popen[bytes]:
        folder = self.bare or self.top or self.folder
        environ = {
            **build_git_environment(self.top, self.bare),
            **self.profile.variables,
            **self._variables,
        }
        if self.profile is READ and not self._runs_filters and _may_convert(arguments):
            environ |= self._filters_off
        if self.in_blocks:
            environ["GIT_FLUSH"] = "0"
        if not self._has_checked_files:
            self._has_checked_files = True
            require_plain_files(self.bare or self.top, "" if self.bare else self.folder)
        try:
            stdin = processes.PIPE if is_asked else processes.DEVNULL
            return processes.start_git(arguments, folder, environ, self.bare, stdin, self.profile)
        except FileNotFoundError:
            # Python raises the same error for a missing working directory
            if not os.path.isdir(folder):
                raise self.build_refusal(b"no such folder") from None
            why = "Revisions and versions are read from a git repository."
            hint = "install git, or put it on the PATH; presets without '@' need none"
            raise build_error("NP020", "git was not found", why, hint) from None
        except OSError as error:
            raise self.build_refusal(str(error).encode()) from None

    def _build_silence(self, error: SilentError) -> NpuprofError:
        """Return the error for a hanging git."""
        why = (
            "git waits for something other than a plain file, for an unresponsive disk, or for a "
            "lock."
        )
        what = f"git was ended in {self.bare or self.folder}: {error.strerror}"
        return fail_read(
            Finding("NP022", what, why, "run git status there to see whether it hangs")
        )

    def close(self) -> None:
        """End the reader, if there is one."""
        reader, self._reader = self._reader, None
        if reader is not None:
            processes.end_process(reader)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # no caller could handle it
            self.close()


def build_config_variables(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return variables that configure git; unlike ``git -c``, they accept names with '='."""
    count = os.environ.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdecimal() and len(count) < 6 else 0
    variables = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (name, value) in enumerate(settings, first):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def build_git_environment(top: str, bare: str = "") -> dict[str, str]:
    """Return the environment for a git started at the ``top`` of a work tree, or in ``bare``.

    Messages are in English. A hook's variables about another repository are dropped; about this
    one, all except object folders. If both are empty, they select the repository.
    """
    environ = {**os.environ, "LC_ALL": "C"}
    git_folder = environ.get("GIT_DIR")
    for name in ("GIT_OBJECT_DIRECTORY", "GIT_QUARANTINE_PATH"):
        if environ.get(name):
            # a hook has relative paths, and git is started in another folder
            environ[name] = os.path.abspath(environ[name])
    if not top and not bare:
        for name in _REPOSITORY_VARIABLES:
            if name in environ and name != "GIT_PREFIX":
                environ[name] = os.path.abspath(environ[name])
        return environ
    is_this = git_folder is None or os.path.realpath(git_folder) == (
        bare or os.path.realpath(next(_list_git_folders(top)))
    )
    dropped = _REPOSITORY_VARIABLES if is_this else (*_REPOSITORY_VARIABLES, *_OBJECT_VARIABLES)
    return {name: value for name, value in environ.items() if name not in dropped}


#: Commands that read no work tree files, so that no filters run.
_OBJECT_COMMANDS = frozenset(
    (
        "cat-file",
        "check-attr",
        "check-ignore",
        "config",
        "diff-tree",
        "for-each-ref",
        "log",
        "ls-files",
        "ls-tree",
        "merge-base",
        "rev-list",
        "rev-parse",
        "symbolic-ref",
        "update-ref",
        "var",
        "verify-tag",
    )
)


def _may_convert(arguments: Sequence[str]) -> bool:
    """Return whether a git command may convert contents by filters."""
    # cat-file runs filters with these flags only
    if "--filters" in arguments or "--textconv" in arguments:
        return True
    rest = iter(arguments)
    for argument in rest:
        if argument in ("-c", "-C"):
            next(rest)  # its value
        elif argument[0] != "-":
            return argument not in _OBJECT_COMMANDS
    raise ValueError(f"no git command: {arguments}")


def require_plain_files(repository: str, folder: str) -> None:
    """Raise NpuprofError if git would read a pipe, socket or device as a file, and block.

    ``repository`` is the folder of a bare repository or the top of a work tree; empty for none.
    ``folder`` is in a work tree; git's files above and below it are checked too.
    """
    repository = repository or os.environ.get("GIT_DIR", "")
    git_folders = [*_list_git_folders(repository)] if repository else []
    if repository and folder:
        for nested in _check_work_tree(os.path.realpath(folder)):
            if nested not in git_folders:
                git_folders.append(nested)
    _require_plain_settings(git_folders, repository)
    for git_folder in git_folders:
        for entry in _list_git_entries(git_folder):
            is_daemon = entry.name == "fsmonitor--daemon.ipc"  # git's own socket
            if not is_daemon and not entry.is_file() and not entry.is_dir():
                require_plain_file(entry.path)


def _check_work_tree(folder: str) -> list[str]:
    """Check the files that git reads in a work tree, and return the nested git folders.

    Raises NpuprofError for a special file.
    """
    nested = []
    for entry in islice(_list_entries(folder, True), _MOST_ENTRIES):
        if entry.name in _TREE_FILES:
            require_plain_file(entry.path)
        elif entry.name == ".git" and entry.is_dir():  # git looks into nested repositories
            nested.append(entry.path)
    above = os.path.dirname(folder)
    while above != folder:  # a work tree may begin above its git folder
        folder, above = above, os.path.dirname(above)
        for name in _TREE_FILES:
            require_plain_file(os.path.join(folder, name))
    return nested


def _list_git_entries(git_folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a git folder that git reads, including those of alternates."""
    yield from _list_entries(git_folder)
    yield from _list_entries(os.path.join(git_folder, "info"))
    for name in ("refs", "logs", "reftable"):
        yield from _list_entries(os.path.join(git_folder, name), below=True)
    for objects in _list_object_folders(os.path.join(git_folder, "objects")):
        yield from _list_entries(objects, below=True)


def _require_plain_settings(git_folders: Sequence[str], top: str) -> None:
    """Check the configuration files, and the files that they name.

    Those are included files, and lists of patterns.
    """
    shared = os.path.join(find_shared_folder("config"), "git")
    user = os.environ.get("GIT_CONFIG_GLOBAL") or expand_home("~/.gitconfig")
    own = [os.environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"), user]
    own += [
        os.path.join(folder, name)
        for folder in (shared, *git_folders)
        for name in ("config", "config.worktree", "ignore", "attributes")
    ]
    files = [(file, "") for file in own]
    for file, named_in in files:  # grows by the files that a file names
        require_plain_file(file, named_in)
        raw = b""
        with contextlib.suppress(OSError, ValueError):
            raw = read_plain_file(file, _LONGEST_ALTERNATES, whole=False)
        # most files name no others, and the pattern is only compiled if one does
        if b"path" not in raw.lower() and b"sfile" not in raw.lower():
            continue
        for match in _NAMED_FILE.finditer(os.fsdecode(raw)):
            # git expands ~user, too
            path = os.path.expanduser(_QUOTE.sub(r"\1", match[1].strip()))
            if len(files) < _MOST_ALTERNATES:
                # an included path is relative to its file, a list of patterns to the work tree
                files += [(os.path.join(base, path), file) for base in (os.path.dirname(file), top)]


def require_no_links_out(repository: str) -> None:
    """Raise NpuprofError (NP941) if git would write through a link in its folder."""
    folders = [*_list_git_folders(repository)]
    for folder in folders:
        written = [entry for entry in _list_entries(folder) if entry.name in _WRITTEN]
        for name in ("objects", "refs", "logs"):
            written += _list_entries(os.path.join(folder, name), name != "objects")
        for entry in written:
            if not entry.is_symlink():
                continue
            # a link to a file inside may be git's: older versions made HEAD one
            if entry.is_dir() or not any(is_below(entry.path, top) for top in folders):
                raise _build_link_error(entry.path)


def _build_link_error(path: str) -> NpuprofError:
    import shlex

    target, shown = os.path.realpath(path), shlex.quote(path)
    why = "A clone or an archive may have brought it, and git would write there."
    hint = (
        f"remove it: rm {shown}; if it is your own: rm {shown} && cp -a "
        f"{shlex.quote(target)} {shown}"
    )
    return build_error("NP941", f"{path} is a link to {target}", why, hint, where=Place(path))


def _list_git_folders(repository: str) -> Iterator[str]:
    """Yield the git folders of a repository: one, or that of a work tree and the common one."""
    inside = os.path.join(repository, ".git")
    if not os.path.lexists(inside):
        yield repository
        return
    require_plain_file(inside)
    if os.path.isfile(inside):
        # in a linked work tree or submodule, .git is a file with the path of the folder
        inside = os.path.join(repository, read_path(inside).removeprefix("gitdir:").strip())
    yield inside
    common = os.path.join(inside, "commondir")
    if os.path.lexists(common):
        require_plain_file(common)
        yield os.path.join(inside, read_path(common).strip())


def _list_object_folders(objects: str) -> Iterable[str]:
    """Return an object folder and its alternates, as deep as git follows them."""
    folders, level = {objects: None}, [objects]
    for _ in range(_ALTERNATE_LEVELS):
        if len(folders) > _MOST_ALTERNATES:
            what = f"git cannot use {objects}: it has more than {_MOST_ALTERNATES} alternates"
            raise build_error(
                "NP021", what, "Each is another folder of objects.", "clone the repository again"
            )
        alternates = dict.fromkeys(chain.from_iterable(map(_read_alternates, level)))
        level = [folder for folder in alternates if folder not in folders]
        folders |= dict.fromkeys(level)
    return folders


def _read_alternates(objects: str) -> Iterator[str]:
    text = read_path(os.path.join(objects, "info", "alternates"), _LONGEST_ALTERNATES)
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        if len(line) > 1 and line[0] == line[-1] == '"':  # git's quoting of special characters
            line = _unquote_path(line, objects)
        yield os.path.realpath(os.path.join(objects, line))


def _unquote_path(line: str, objects: str) -> str:
    with contextlib.suppress(ValueError):
        path = os.fsdecode(codecs.escape_decode(os.fsencode(line[1:-1]))[0])
        if "\0" not in path:
            return path
    what = f"git cannot use {objects}/info/alternates: {line!r} is no path"
    raise build_error("NP021", what, "It names a folder of objects.", "clone the repository again")


def read_path(path: str, most: int = 4096) -> str:
    """Return the text of a git file with a path, empty if it cannot be read.

    Raises NpuprofError for an invalid path.
    """
    text = b""
    with contextlib.suppress(OSError):
        text = read_plain_file(path, most + 1, whole=False)
    if b"\0" in text or len(text) > most:
        what = f"git cannot use {path}: " + (
            "it contains a NUL byte" if b"\0" in text else f"it is longer than {most} bytes"
        )
        raise build_error("NP021", what, "It names a folder.", "clone the repository again")
    return os.fsdecode(text)


def _list_entries(folder: str, below: bool = False) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder, and of those ``below`` it except git folders.

    The nearest entries come first. Links are not followed.
    """
    folders = [folder]
    for current in folders:  # grows by the folders in it
        with contextlib.suppress(OSError), os.scandir(current) as entries:
            for entry in entries:
                yield entry
                if below and entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                    folders.append(entry.path)


def require_plain_file(path: str, named_in: str = "") -> None:
    """Raise NpuprofError for a pipe, socket or device at a path that git reads.

    ``named_in`` is the file that names it.
    """
    try:
        kind = name_special_file(os.stat(path).st_mode)
    except (OSError, ValueError):
        return
    if not kind or os.path.realpath(path) == os.devnull:
        return
    import shlex

    why = "git would wait for its content forever."
    hint = (
        f"remove the line that names it from {named_in}"
        if named_in
        else f"remove it: rm {shlex.quote(path)}"
    )
    raise fail_read(Finding("NP021", f"git cannot use {path}: it is {kind}, not a file", why, hint))


#: git's messages about lock files: in its folder, and of a configuration file.
_LOCKED = (
    r"'(?P<lock>[^']+\.lock)': File exists"
    r"|could not lock config file (?P<config>.+): File exists"
)


def build_refusal_finding(reason: bytes, folder: str) -> Finding:
    """Return git's error as a finding; the phrases are those of git's messages in English."""
    import shlex

    text = decode_safely(reason).strip()
    top = find_repository_top(folder)
    if "dubious ownership" in text:
        what = f"git refuses the repository of {folder}: it belongs to somebody else"
        hint = f"if you trust its owner: git config --global --add safe.directory {top or folder}"
        return Finding("NP021", what, "", hint)
    # a .git is there, so it is damaged or unreadable rather than missing
    if top and "not a git repository" in text:
        inside = os.path.join(top, ".git")
        why = "It is not whole, or no repository at all."
        if not os.access(inside, os.R_OK | os.X_OK):
            why = "It may not be read."
        hint = f"for details: git -C {top} status"
        return Finding("NP021", f"git cannot use {inside}", why, hint)
    if "must be run in a work tree" in text or os.path.isdir(os.path.join(folder, "refs")):
        what = f"the repository of {folder} has no work tree"
        return Finding("NP021", what, "", f"do it in a clone: git clone {shlex.quote(folder)}")
    if "not a git repository" in text or "cannot use bare repository" in text:
        why = "Revisions and versions are those of the presets' git repository."
        hint = (
            'git init && git add . && git commit -m "Add presets"; '
            "presets without '@' need no repository"
        )
        return Finding("NP021", f"{folder} is not in a git repository", why, hint)
    if "malformed object name HEAD" in text:
        what = f"the repository of {folder} has no commits yet"
        return Finding("NP011", what, "", "commit the presets first")
    if "cannot do a partial commit" in text:  # "... during a merge."
        operation = text.rstrip(".").rpartition(" ")[2]
        what = f"a {operation} is under way, and git then commits everything or nothing"
        hint = "conclude it with git add and git commit, or give it up: git status says how"
        return Finding("NP022", what, "", hint)
    if "user.email" in text or "ident name" in text:
        hint = (
            'git config --global user.name "Your Name" && '
            "git config --global user.email you@example.com, then repeat the command"
        )
        why = "Commits and tags name their author."
        return Finding("NP022", "git does not know your name and email address", why, hint)
    if match := re.search(_LOCKED, text):
        config = os.path.realpath(os.path.join(folder, match["config"] or ""))
        lock = match["lock"] or f"{config}.lock"
        why = "Another git works in this repository, or one that was killed has left it."
        hint = f"wait for the other; if no git runs, delete the file: rm {shlex.quote(lock)}"
        return Finding("NP022", f"{lock} is there", why, hint)
    # git 2.45 reports that lazy fetching is off; older versions, that the transport is not allowed
    if any(phrase in text for phrase in ("promisor", "transport '", "lazy fetching")):
        return build_absent_finding([], True)
    cause = find_first_error(text) or "it said nothing"
    return Finding("NP022", f"git failed: {cause}", "", "run git in the same folder to see more")


def find_first_error(text: str) -> str:
    """Return git's first line with an error, else its first line, without the prefix."""
    lines = text.splitlines() or [""]
    first = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0])
    return first.removeprefix("fatal:").removeprefix("error:").strip()


def build_absent_finding(oids: Sequence[str], partial: bool) -> Finding:
    """Return the finding for objects missing in the repository: a partial clone may lack some."""
    what = (
        f"{', '.join(oids[:3]) or 'an object'} "
        f"{'is' if len(oids) < 2 else 'are'} missing from the repository"
    )
    if not partial:
        return Finding("NP022", what, "", "for details: git fsck")
    why = (
        "This clone is partial: it has left objects with its remote, and npuprof never fetches by "
        "itself."
    )
    return Finding("NP022", what, why, "fetch them: git fetch --refetch --no-filter")
