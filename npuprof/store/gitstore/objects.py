"""git as a child process, which obeys no repository it only reads: one reader of objects that stays open, and single commands."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from npuprof.model import Finding, NpuprofError, Place
from npuprof.report.output import name_special_file, read_plain_file
from npuprof.store.around import is_own_folder
from npuprof.system import find_repository_top, is_below, processes
from npuprof.system.processes import READ, GitProfile, Replies, SilentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

#: What a hook's git hands down about the repository it runs in, which need not be the store's.
_REPOSITORY_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
#: Where that repository has its objects: those that a push has brought are in quarantine until its hooks agree.
_OBJECT_VARIABLES = ("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH")
#: What of a work tree git itself reads, and what it writes in its folder for a commit, a tag or a setting.
_TREE_FILES = (".gitattributes", ".gitignore", ".gitmodules")
_WRITTEN = (
    "COMMIT_EDITMSG", "HEAD", "MERGE_MSG", "ORIG_HEAD", "TAG_EDITMSG", "config", "config.worktree", "gc.log", "index", "logs", "objects",
    "packed-refs", "refs", "rr-cache",
)  # fmt: skip
_ALTERNATE_LEVELS, _LONGEST_ALTERNATES = 6, 1 << 20  # git reads the list of the sixth, and follows it no further
#: A repository that somebody uses has fewer folders of objects.
_MOST_ALTERNATES = 100
_CHUNK = 400  # requests written at once: fewer bytes than a pipe holds, so neither side waits for the other


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
    """git for the repository around a folder, to read it. Nothing is started before it is needed.

    It is started in the ``top`` of the repository (an empty text where there is none), where it discovers the
    repository by its own rules, ``safe.directory`` among them: a store that looks like a bare repository is not seen.
    ``variables`` are set over those of the environment: another index, another place for objects. It reads, unless another
    ``profile`` is asked for.

    A repository without a work tree, ``bare``, is named to git, which then asks nobody who owns it: that is done here.
    """

    _reader: subprocess.Popen[bytes] | None = None  # of the class: one that was refused is taken away as well

    def __init__(self, folder: str, variables: Mapping[str, str] | None = None, bare: str = "", profile: GitProfile = READ) -> None:
        self.folder = folder
        self.profile = profile
        self.bare = os.path.realpath(bare) if bare else ""
        self.top = "" if bare else find_repository_top(os.path.realpath(folder))
        if bare and not is_own_folder(self.bare):
            raise NpuprofError([self.build_refusal(b"dubious ownership")])
        self._variables = dict(variables or {})
        self._is_looked_at = False
        self._runs_filters = False
        self._filters_off: dict[str, str] | None = None
        self._lock = threading.Lock()

    def build_refusal(self, reason: bytes) -> Finding:
        """Return why git refused, as a finding."""
        return build_refusal_finding(reason, self.bare or self.folder)

    def read_objects(self, names: Sequence[str]) -> list[GitObject | None]:
        """Return the objects of that names, None for each that is missing or ambiguous.

        A name is whatever git takes for one (``HEAD~3``, ``main:profiles``), and never read as a flag. All come
        from one process. Raises NpuprofError where git or the repository cannot be used.
        """
        with self._lock:
            objects: list[GitObject | None] = []
            for start in range(0, len(names), _CHUNK):
                objects += self._read_object_batch(names[start : start + _CHUNK])
            return objects

    def read_files(self, names: Sequence[str]) -> list[bytes | None]:
        """Return the contents of files by ``COMMIT:PATH``, None for each that is missing or no file. Raises NpuprofError."""
        return [read.content if read is not None and read.type == "blob" else None for read in self.read_objects(names)]

    def _read_object_batch(self, names: Sequence[str]) -> list[GitObject | None]:
        if self._reader is None:
            self._reader = self._start_process("cat-file", "--batch", is_asked=True)
            self._replies = Replies(self._reader)
        asked = self._reader.stdin
        assert asked is not None, "it was asked for"
        try:
            asked.write(b"".join(os.fsencode(name) + b"\n" for name in names))
            asked.flush()
        except BrokenPipeError:
            pass  # git has ended; its reason follows
        try:
            return [self._read_reply() for _ in names]
        except SilentError as error:
            self._reader = None
            raise NpuprofError([self._build_silence(error)]) from None

    def _read_reply(self) -> GitObject | None:
        line = self._replies.read_line()
        if not line:
            assert self._reader is not None, "it is being read"
            assert self._reader.stderr is not None, "it was asked for"
            reason = self._reader.stderr.read()
            self.close()
            raise NpuprofError([self.build_refusal(reason)])
        words = line.rstrip(b"\n").rsplit(b" ", 2)
        if len(words) != 3 or not words[2].isdigit() or len(words[0]) not in (40, 64):
            return None
        content = self._replies.read(int(words[2]))
        self._replies.read(1)
        return GitObject(words[0].decode(), words[1].decode(), content)

    def read_contents(self, oids: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of objects by their full ids, read in one go. Raises NpuprofError where any is missing."""
        wanted = list(dict.fromkeys(oids))
        contents = {oid: read.content for oid, read in zip(wanted, self.read_objects(wanted), strict=True) if read}
        if len(contents) < len(wanted):
            raise NpuprofError([self.explain_absence(oid for oid in wanted if oid not in contents)])
        return contents

    def list_files(self, folder: str, only_tracked: bool = False) -> list[bytes]:
        """Return the files that git would show in a folder, from there: tracked ones, and new ones that are not ignored.

        Raises NpuprofError where it is in no work tree.
        """
        kinds = "-cz" if only_tracked else "-coz"
        words = ("-C", os.path.abspath(folder)) if self.top else ()
        return self.run_command(*words, "ls-files", kinds, "--exclude-standard").split(b"\0")

    def with_filters(self) -> Git:
        """Return the same git with the filters of the configuration on."""
        git = Git(self.folder, self._variables, self.bare, self.profile)
        git._runs_filters = True
        return git

    def beside(self, variables: Mapping[str, str]) -> Git:
        """Return the same git with other variables, such as GIT_INDEX_FILE."""
        git = Git(self.folder, variables, self.bare, self.profile)
        git._runs_filters = self._runs_filters
        return git

    def _list_filters_off(self) -> dict[str, str]:
        """Return the variables that switch off all filters of the configuration."""
        listed = self.try_command("config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$")
        names = dict.fromkeys(os.fsdecode(listed.output).split("\0"))
        off = [(name, "false" if name.endswith(".required") else "") for name in names if name]
        return build_config_variables(off)

    def writing(self) -> Git:
        """Return the same git as its user would start it: hooks and filters run."""
        return Git(self.folder, self._variables, self.bare, processes.WRITE)

    def explain_absence(self, oids: Iterable[str]) -> Finding:
        """Return why objects are not there, and how to get them."""
        partial = self.try_command("config", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$").code == 0
        return build_absent_finding(list(oids), partial)

    def run_command(self, *words: str, stdin: bytes | None = None) -> bytes:
        """Return what a command prints. Raises NpuprofError with git's own reason where it fails."""
        result = self.try_command(*words, stdin=stdin)
        if result.code:
            raise NpuprofError([self.build_refusal(result.complaint)])
        return result.output

    def try_command(self, *words: str, stdin: bytes | None = None) -> GitResult:
        """Return exit code, output and complaints of a command. Raises NpuprofError only where git is missing."""
        process = self._start_process(*words, is_asked=stdin is not None)
        out, reason = self._finish(process, stdin)
        return GitResult(process.returncode, out, reason)

    def _finish(self, process: subprocess.Popen[bytes], stdin: bytes | None) -> tuple[bytes, bytes]:
        try:
            return processes.finish(process, stdin)
        except SilentError as error:
            raise NpuprofError([self._build_silence(error)]) from None

    def stream_output(self, *words: str) -> Iterator[bytes]:
        """Yield what a command prints, in blocks. Raises NpuprofError where it fails."""
        process = self._start_process(*words)
        assert process.stdout is not None, "it was asked for"
        assert process.stderr is not None, "it was asked for"
        replies = Replies(process)
        try:
            while block := replies.read_some():
                yield block
            reason = process.stderr.read()
            if process.wait():
                raise NpuprofError([self.build_refusal(reason)])
        except SilentError as error:
            raise NpuprofError([self._build_silence(error)]) from None
        finally:
            process.stdout.close()
            process.stderr.close()
            process.wait()

    def _start_process(self, *words: str, is_asked: bool = False) -> subprocess.Popen[bytes]:
        place = self.bare or self.top or self.folder
        environ = {**build_git_environment(self.top, self.bare), **self.profile.variables, **self._variables}
        if self.profile is READ and not self._runs_filters and _may_convert(words):
            if self._filters_off is None:
                self._filters_off = self._list_filters_off()
            environ |= self._filters_off
        if not self._is_looked_at:
            self._is_looked_at = True
            require_plain_files(self.bare or self.top, "" if self.bare else self.folder)
        try:
            return processes.start_git(words, place, environ, self.bare, is_asked, self.profile)
        except FileNotFoundError:
            if not os.path.isdir(place):
                raise NpuprofError([self.build_refusal(b"no such folder")]) from None
            why = "Revisions and versions are read from a git repository."
            hint = "install git, or put it on the PATH; presets without '@' need none"
            raise NpuprofError([Finding("NP020", "git was not found", why, hint)]) from None
        except OSError as error:
            raise NpuprofError([self.build_refusal(str(error).encode())]) from None

    def _build_silence(self, error: SilentError) -> Finding:
        """Return that git hangs."""
        why = "What git waits for is no plain file, lies on a disk that does not answer, or is locked."
        return Finding(
            "NP022", f"git was ended in {self.bare or self.folder}: {error.strerror}", why, "git status there tells whether it hangs"
        )

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
        with contextlib.suppress(Exception):  # nobody could take it
            self.close()


def build_config_variables(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return variables that set git's configuration: a command line could not hold a name with '=' in it."""
    count = os.environ.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdecimal() and len(count) < 6 else 0
    variables = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (name, value) in enumerate(settings, first):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def build_git_environment(top: str, bare: str = "") -> dict[str, str]:
    """Return the environment for a git that is started in the top of a repository, in a bare one, or anywhere where both are empty.

    Its messages are in English. What a hook hands down about another repository is left out, what it says of this one
    but for its objects too; where there is neither, it names the repository.
    """
    environ = {**os.environ, "LC_ALL": "C"}
    git_folder = environ.get("GIT_DIR")
    for name in ("GIT_OBJECT_DIRECTORY", "GIT_QUARANTINE_PATH"):
        if environ.get(name):
            environ[name] = os.path.abspath(environ[name])
    if not top and not bare:
        for name in _REPOSITORY_VARIABLES:
            if name in environ and name != "GIT_PREFIX":
                environ[name] = os.path.abspath(environ[name])
        return environ
    is_this = git_folder is None or (os.path.realpath(git_folder) == bare if bare else _is_git_folder_of(git_folder, top))
    gone = _REPOSITORY_VARIABLES if is_this else (*_REPOSITORY_VARIABLES, *_OBJECT_VARIABLES)
    return {name: value for name, value in environ.items() if name not in gone}


def _is_git_folder_of(folder: str, top: str) -> bool:
    """Return whether a folder is where the repository with a top keeps what it knows."""
    inside = os.path.join(top, ".git")
    if os.path.isfile(inside):
        inside = os.path.join(top, read_path(inside).removeprefix("gitdir:").strip())
    return os.path.realpath(folder) == os.path.realpath(inside)


#: Commands that read no file of the work tree, so that no filter runs.
_OBJECT_COMMANDS = frozenset((
    "cat-file", "check-attr", "check-ignore", "config", "diff-tree", "for-each-ref", "log", "ls-files", "ls-tree", "merge-base", "rev-list",
    "rev-parse", "symbolic-ref", "update-ref", "var", "verify-tag",
))  # fmt: skip


def _may_convert(words: Sequence[str]) -> bool:
    """Return whether a command of git may convert contents by filters."""
    command = next(word for word, before in zip(words, ("", *words), strict=False) if word[0] != "-" and before not in ("-c", "-C"))
    return command not in _OBJECT_COMMANDS or "--filters" in words or "--textconv" in words


def require_plain_files(repository: str, folder: str = "") -> None:
    """Raise NpuprofError where git would read a pipe, a socket or a device as a file, and wait for ever.

    ``repository`` is the folder of one without a work tree, or the top of a work tree; an empty text is none. ``folder`` is in a work tree,
    whose own files of git are looked at from there up to its top.
    """
    here = os.path.realpath(folder)
    while repository and folder:
        for name in _TREE_FILES:
            if not os.path.islink(path := os.path.join(here, name)):  # git follows no link there
                require_plain_file(path)
        if here == repository:
            break
        here = os.path.dirname(here)
    for git_folder in _list_git_folders(repository) if repository else ():
        places = [(git_folder, False), *((os.path.join(git_folder, name), name != "info") for name in ("info", "refs", "logs"))]
        for objects in _list_object_folders(os.path.join(git_folder, "objects")):
            places += [(os.path.join(objects, name), True) for name in ("info", "pack")]
        for place, below in places:
            for entry in _list_entries(place, below):
                if not entry.is_file() and not entry.is_dir():
                    require_plain_file(entry.path)


def require_no_links_out(repository: str) -> None:
    """Raise NpuprofError (NP941) where git would write through a link of its folder to another folder or out of it."""
    folders = [*_list_git_folders(repository)]
    for folder in folders:
        written = [entry for entry in _list_entries(folder) if entry.name in _WRITTEN]
        for name in ("objects", "refs", "logs"):
            written += _list_entries(os.path.join(folder, name), name != "objects")
        for entry in written:
            if entry.is_symlink() and (entry.is_dir() or not any(is_below(entry.path, top) for top in folders)):
                import shlex

                target, shown = os.path.realpath(entry.path), shlex.quote(entry.path)
                why = "A clone or an archive may have brought it, and git would write there."
                hint = f"remove it: rm {shown}; if it is your own: rm {shown} && cp -a {shlex.quote(target)} {shown}"
                raise NpuprofError([Finding("NP941", f"{entry.path} is a link to {target}", why, hint, where=Place(entry.path))])


def _list_git_folders(repository: str) -> Iterator[str]:
    """Yield where git keeps what it knows of a repository: one folder, or that of a work tree and the one it has in common with others."""
    inside = os.path.join(repository, ".git")
    if not os.path.lexists(inside):
        yield repository
        return
    require_plain_file(inside)
    if os.path.isfile(inside):
        inside = os.path.join(repository, read_path(inside).removeprefix("gitdir:").strip())
    yield inside
    common = os.path.join(inside, "commondir")
    if os.path.lexists(common):
        require_plain_file(common)
        yield os.path.join(inside, read_path(common).strip())


def _list_object_folders(objects: str) -> Iterable[str]:
    """Return a folder of objects and its alternates, as deep as git follows them."""
    folders, level = {objects: None}, [objects]
    for _ in range(_ALTERNATE_LEVELS):
        if len(folders) > _MOST_ALTERNATES:
            what = f"git cannot use {objects}: it has more than {_MOST_ALTERNATES} alternates"
            raise NpuprofError([Finding("NP021", what, "Each is another folder of objects.", "clone the repository again")])
        read = dict.fromkeys(alternate for folder in level for alternate in _read_alternates(folder))
        level = [folder for folder in read if folder not in folders]
        folders |= dict.fromkeys(level)
    return folders


def _read_alternates(objects: str) -> Iterator[str]:
    for line in read_path(os.path.join(objects, "info", "alternates"), _LONGEST_ALTERNATES).split("\n"):
        if line and not line.startswith("#"):
            if len(line) > 1 and line[0] == line[-1] == '"':  # as git writes a path with special characters
                line = _unquote_path(line, objects)
            yield os.path.realpath(os.path.join(objects, line))


def _unquote_path(line: str, objects: str) -> str:
    with contextlib.suppress(ValueError):
        path = os.fsdecode(codecs.escape_decode(os.fsencode(line[1:-1]))[0])
        if "\0" not in path:
            return path
    what = f"git cannot use {objects}/info/alternates: {line!r} is no path"
    raise NpuprofError([Finding("NP021", what, "It names a folder of objects.", "clone the repository again")])


def read_path(path: str, most: int = 4096) -> str:
    """Return the text of a file that names a path of git's, empty if it cannot be read. Raises NpuprofError for what is no path."""
    text = b""
    with contextlib.suppress(OSError):
        text = read_plain_file(path, most + 1, whole=False)
    if b"\0" in text or len(text) > most:
        what = f"git cannot use {path}: " + ("it contains a NUL byte" if b"\0" in text else f"it is longer than {most} bytes")
        raise NpuprofError([Finding("NP021", what, "It names a folder.", "clone the repository again")])
    return os.fsdecode(text)


def _list_entries(folder: str, below: bool = False) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a folder, and in those ``below`` it; no link is followed."""
    folders = [folder]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                yield entry
                if below and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def require_plain_file(path: str) -> None:
    """Raise NpuprofError where a pipe, a socket or a device is at a path that git reads."""
    try:
        kind = name_special_file(os.stat(path).st_mode)
    except OSError:
        return
    if kind:
        import shlex

        why = "git would wait for what it holds, for ever."
        raise NpuprofError(
            [Finding("NP021", f"git cannot use {path}: it is {kind}, not a file", why, f"remove it: rm {shlex.quote(path)}")]
        )


def build_refusal_finding(reason: bytes, folder: str) -> Finding:
    """Return why git refused, as a finding."""
    text = reason.decode(errors="replace").strip()
    top = find_repository_top(os.path.realpath(folder))
    first = next((line for line in text.splitlines() if line.startswith(("fatal:", "error:"))), text.partition("\n")[0])
    first = first.removeprefix("fatal:").removeprefix("error:").strip()
    if "dubious ownership" in text:
        hint = f"if you trust its owner: git config --global --add safe.directory {top or folder}"
        return Finding("NP021", f"git refuses the repository of {folder}: it belongs to somebody else", "", hint)
    if top and "not a git repository" in text:
        inside = os.path.join(top, ".git")
        why = "It may not be read." if not os.access(inside, os.R_OK | os.X_OK) else "It is not whole, or no repository at all."
        return Finding("NP021", f"git cannot use {inside}", why, f"git -C {top} status tells more")
    if "must be run in a work tree" in text:
        return Finding("NP021", f"the repository of {folder} has no work tree", "", "do it in a clone")
    if any(words in text for words in ("not a git repository", "cannot use bare repository")):
        why = "Revisions and versions are those of the git repository that holds the presets."
        hint = "put the store under git: git init, git add, git commit; presets as they are now are named without an @, and need none"
        return Finding("NP021", f"{folder} is not in a git repository", why, hint)
    if "cannot do a partial commit" in text:
        what = f"a {text.rstrip('.').rpartition(' ')[2]} is under way, and git then commits everything or nothing"
        return Finding("NP022", what, "", "conclude it with git add and git commit, or give it up: git status says how")
    if match := re.search(r"'([^']+\.lock)': File exists", text):
        why = "Another git works in this repository, or one that was killed has left it."
        return Finding("NP022", f"{match[1]} is there", why, "wait for the other; if there is none, remove it")
    if any(words in text for words in ("promisor", "transport '", "lazy fetching")):
        return build_absent_finding([], True)
    return Finding("NP022", f"git could not answer: {first or 'it said nothing'}", "", "run git in the same folder to see more")


def build_absent_finding(oids: Sequence[str], partial: bool) -> Finding:
    """Return that objects are not in the repository: a partial clone may lack some."""
    what = f"{', '.join(oids[:3]) or 'an object'} {'is' if len(oids) < 2 else 'are'} missing from the repository"
    if not partial:
        return Finding("NP022", what, "", "git fsck tells more")
    why = "This clone is partial: it has left objects with its remote, and npuprof never fetches by itself."
    return Finding("NP022", what, why, "fetch them: git fetch --refetch --no-filter")
