"""Finds the files of a scan: those not ignored by git, else all but hidden ones and ``.env``.

Link cycles end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from npuprof.catalog import build_finding
from npuprof.model import Finding, NpuprofError, Place, Record
from npuprof.report.output import track_items
from npuprof.scripts.reading.file_kinds import detect_named_kind, is_script_candidate
from npuprof.store import spec
from npuprof.store.gitstore.objects import Git
from npuprof.system import join_normal
from npuprof.system.files import (
    HAND_OVER,
    describe_os_error,
    is_stream,
    name_special_file,
    read_plain_file,
    suggest_remedy,
)

_SKIPPED = {"__pycache__", "node_modules", "site-packages"}
#: Kernel folders without scripts.
_KERNEL = ("/proc", "/sys", "/dev")


def find_script_files(
    paths: list[str], problems: list[Finding], with_blocks: bool = True, with_docs: bool = False
) -> Iterator[str]:
    """Yield the files below paths, without duplicates, in a fixed order.

    Unlistable folders are added to ``problems``.

    Without ``with_blocks``, kinds that cannot contain blocks are included; ``with_docs`` includes
    documentation.
    """
    search = _Search(
        problems, partial(is_script_candidate, with_blocks=with_blocks, with_docs=with_docs)
    )
    found = [
        file
        for path in track_items(paths, "paths searched")
        for file in (search.list_files(path) if os.path.isdir(path) else [path])
    ]
    yield from dict.fromkeys(found)


def read_script_files(files: list[str]) -> Iterator[tuple[str, bytes | Finding]]:
    """Yield each file with its bytes, or with a finding (NP801) if it cannot be read.

    Shows progress on a terminal.
    """
    for file in track_items(files, "files"):
        yield file, read_script_file(file, len(files) > 1)


def read_script_file(file: str, among_others: bool) -> bytes | Finding:
    """Return the bytes of a file, or a finding (NP801) if it cannot be read."""
    try:
        return read_plain_file(file)
    except OSError as error:
        what = f"cannot read the file: {describe_os_error(error, file)}"
        why = "The other files were read." if among_others else ""
        hint = suggest_remedy(what, _suggest_path(file))
        return build_finding("NP801", what, why, hint, where=Place(file))


def _suggest_path(file: str) -> str:
    """Return the hint for a missing script: it may be a preset."""
    if is_stream(file):
        return HAND_OVER
    with suppress(NpuprofError):
        if not os.path.lexists(file) and file in spec.Workspace().listed_store.names():
            return f"for a preset: npuprof check {file}"
    return "check the path"


class _Search(Record):
    """A search for candidates by name.

    Unlistable folders and special files are added to ``problems``.
    """

    problems: list[Finding]
    is_candidate: Callable[[str], bool]

    def list_files(self, folder: str) -> list[str]:
        """Return the files of a folder that git does not ignore, without git all.

        git omits pipes, which are searched separately.
        """
        try:
            listed = map(os.fsdecode, dict.fromkeys(filter(None, Git(folder).list_files(folder))))
        except NpuprofError:
            return list(self._walk(folder))
        files: list[str] = []
        paths = [os.path.join(folder, name) if folder != "." else name for name in listed]
        for path in paths:
            if os.path.isdir(path) and not os.path.islink(
                path
            ):  # a nested repository or a submodule
                files += (
                    self.list_files(path)
                    if os.path.exists(os.path.join(path, ".git"))
                    else self._walk(path)
                )
            elif self.is_candidate(path) and os.path.isfile(path):
                files.append(path)
        # git omits pipes, sockets and devices
        for here in sorted({folder, *(os.path.dirname(path) or "." for path in paths)}):
            with suppress(OSError), os.scandir(here) as entries:
                for name in sorted(
                    entry.name for entry in entries if not entry.is_file() and not entry.is_dir()
                ):
                    self._report_special_file(os.path.join(here, name) if here != "." else name)
        return sorted(files)

    def _report_special_file(self, path: str) -> None:
        """Report that a pipe, socket or device in a folder is not read."""
        with suppress(OSError):  # a dangling link
            kind = name_special_file(os.stat(path).st_mode)
            if kind and self.is_candidate(path) and not os.path.basename(path).startswith("."):
                why = "Its content may be endless; the other files were read."
                self._report(path, f"{path} is omitted: it is {kind}, not a file", why)

    def _report_unlisted_folder(self, error: OSError) -> None:
        folder = str(error.filename)
        what = f"cannot list {folder}: {describe_os_error(error, folder)}"
        self._report(folder, what, "Nothing below it was read.")

    def _report(self, path: str, what: str, why: str) -> None:
        self.problems.append(build_finding("NP801", what, why, "", where=Place(path)))

    def _walk(self, folder: str) -> Iterator[str]:
        for here, folders, names in os.walk(
            folder, onerror=self._report_unlisted_folder
        ):  # links are not followed
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith(".")
                and name not in _SKIPPED
                # files of the kernel may have no end
                and os.path.abspath(os.path.join(here, name)) not in _KERNEL
            )
            for name in sorted(names):
                # as git lists names: without "./"
                path = os.path.join(here, name) if folder != "." else join_normal(here, name)
                is_read = name[0] != "." or detect_named_kind(name) == "env"
                if is_read and self.is_candidate(path):
                    if os.path.isfile(path):
                        yield path
                    else:
                        self._report_special_file(path)
