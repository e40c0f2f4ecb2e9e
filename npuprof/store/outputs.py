"""``[[output]]`` in npuprof.toml: the files that ``render --all`` writes, each in its context."""

from __future__ import annotations

import os
from functools import cached_property

from npuprof.model import (
    TYPE_CHECKING,
    Context,
    NpuprofError,
    Origin,
    Record,
    build_error,
    raise_any,
)
from npuprof.store import FILE
from npuprof.store.folder import Folder, find_project_folder
from npuprof.store.spec import Workspace, build_context
from npuprof.system.files import read_plain_file

if TYPE_CHECKING:
    from typing import Any

    from npuprof.resolve.config import Config
    from npuprof.store.base import CachedStore


class Output(Record):
    """A spec, the context in which it is rendered, and its file or folder.

    The path is relative to the folder of npuprof.toml; the target is that of the context.
    """

    spec: str
    path: str
    context: Context
    origin: Origin | None

    def describe(self) -> str:
        """Return the spec with its context: ``serving+decode for atlas-a3``."""
        context = self.context.describe().replace("product ", "")
        return self.spec if context == "any" else f"{self.spec} for {context}"


class Outputs:
    """The outputs of a store in a folder or at a revision. Each is resolved in its own context."""

    def __init__(self, workspace: Workspace, home: CachedStore) -> None:
        self.home: Any = home  # a folder or a revision, unless nothing is declared
        self._workspace = workspace
        self._opened: dict[Context, Workspace] = {}

    @cached_property
    def base(self) -> str:
        """The folder of npuprof.toml, or its path in the repository at a revision."""
        if isinstance(self.home, Folder):
            return find_project_folder(self.home)
        return str(self.home.layout.base)

    @property
    def folder(self) -> str:
        """The folder of npuprof.toml from the current folder, empty if it is that."""
        folder = os.path.relpath(self.base)
        return "" if folder == os.curdir else folder

    @cached_property
    def declared(self) -> tuple[Output, ...]:
        """The outputs in npuprof.toml. Raises NpuprofError if it, or one of them, is invalid."""
        home = self.home
        if home.is_shipped or home.is_locked or not home.may_have_policy():
            return ()
        problems = []
        outputs = []
        for texts, origin in self._workspace.lookups.find_project(home).outputs:
            try:
                outputs.append(self._read_output(dict(texts), origin))
            except NpuprofError as error:
                problems += [
                    finding._replace(code="NP040", origin=origin, key="output")
                    for finding in error.findings
                ]
        raise_any(problems)
        return tuple(outputs)

    def _read_output(self, texts: dict[str, str], origin: Origin) -> Output:
        """Return the output of a table. Raises NpuprofError."""
        spec, to, path = (texts.pop(name) for name in ("spec", "to", "path"))
        cann, product = (texts.pop(name, None) for name in ("cann", "product"))
        workspace = self._open(Context())
        axes = {name: texts.pop(name) for name in workspace.declared_axes if name in texts}
        if self._is_in_store(path):
            what = f"the output {path!r} is in the store"
            why = "A rendered file would be one of its presets, or hide one."
            raise build_error("NP040", what, why, "name a path outside of it")
        context = build_context(cann, product, to, texts, axes, workspace)
        return Output(spec, path.rstrip("/"), context, origin)

    def _open(self, context: Context) -> Workspace:
        if context not in self._opened:
            self._opened[context] = Workspace(None, context, opened=self.home, by=self._workspace)
        return self._opened[context]

    def _is_in_store(self, path: str) -> bool:
        layout = self.home.layout
        folder = layout.store_folder.casefold()
        if folder and f"{path.casefold()}/".startswith(folder):
            return True
        return path.casefold().endswith(".toml") and (not folder or layout.takes(path[:-5]))

    def require_no_link(self, path: str) -> None:
        """Raise NpuprofError (NP941) if a file to write is reached through a link."""
        file = os.path.join(self.base, path)
        if (real := os.path.realpath(file)) != file:
            what = f"{path} is reached through a link, and is {real}"
            why = "It may be the file of another output, or a preset. Nothing was written."
            raise build_error("NP941", what, why, f"name the path itself in {FILE}")

    def resolve(self, output: Output) -> Config:
        """Return the spec of an output resolved in its context. Raises NpuprofError."""
        workspace = self._open(output.context)
        parts = workspace.split_spec(output.spec)
        return workspace.resolve_spec("+".join(self._find_part(workspace, part) for part in parts))

    def _find_part(self, workspace: Workspace, part: str) -> str:
        """Return a part of a spec; the path of a preset's file as its name."""
        if not part.endswith(".toml"):
            return part
        layout = self.home.layout
        if name := layout.name_of(f"{layout.base}{part}"):
            return str(name)
        raw = self.read_file(part)
        if raw is None:
            hint = "write its path from the folder of npuprof.toml"
            raise build_error("NP008", f"there is no file {part!r}", "", hint)
        # from the folder of npuprof.toml, not from the current one
        workspace.use_file(part, raw)
        return part

    def read_file(self, path: str) -> bytes | None:
        """Return the content of a file by its path from npuprof.toml, None if there is none.

        What is not a plain file is empty. Raises NpuprofError if git cannot be read.
        """
        if not isinstance(self.home, Folder):
            there = f"{self.home.commit}:{self.base}{path}"
            content: bytes | None = self.home.repository.git.read_files([there])[0]
            return content
        try:
            return read_plain_file(os.path.join(self.base, path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return b""
