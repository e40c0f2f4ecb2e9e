"""A store at one git revision: the same profiles, read from the object database."""

from __future__ import annotations

import posixpath
from typing import Any

from npuprof import document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Origin, did_you_mean
from npuprof.store import is_profile_name
from npuprof.store.repository import shorten_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from npuprof.store.repository import Entry, Repository


class Revision:
    """A store as it was at a commit. Nothing but the object database is read, every file once."""

    def __init__(self, repository: Repository, commit: str, files: dict[str, Entry] | None = None) -> None:
        self.repository = repository
        self.commit = commit
        self.label = f"{repository.prefix.rstrip('/') or 'the repository'} at {shorten_commit(commit)}"
        self._files = files
        self._contents: dict[str, bytes] = {}
        self._profiles: dict[str, Profile | NpuprofError] = {}

    @property
    def files(self) -> dict[str, Entry]:
        """The TOML files of the store by their paths below it, without ``.toml``."""
        if self._files is None:
            self._files = self.repository.list_profile_files(self.commit)
        return self._files

    def names(self) -> list[str]:
        """Return the names of all profiles, sorted."""
        return sorted(name for name in self.files if is_profile_name(name))

    def stray_files(self) -> list[str]:
        """Return the paths below the store of TOML files whose names no profile can have."""
        return sorted(f"{name}.toml" for name in self.files if not is_profile_name(name))

    def load_texts(self, names: Iterable[str]) -> None:
        """Read the texts of profiles in one go."""
        wanted = [self.files[name][1] for name in names if name in self.files]
        self._contents.update(self.repository.read_blobs(oid for oid in wanted if oid not in self._contents))

    def adopt_contents(self, contents: dict[str, bytes]) -> None:
        """Take over texts that have been read before, by their ids."""
        self._contents.update(contents)

    def read_profile_text(self, name: str) -> bytes:
        """Return the text of a profile that is there; of a link, that of the file it leads to. Raises NpuprofError."""
        for _ in range(8):
            mode, oid = self.files[name]
            if oid not in self._contents:
                self.load_texts([name])
            content = self._contents.get(oid)
            if content is None:
                raise NpuprofError(
                    [self._build_blob_finding("NP022", name, "its content is missing from the repository", "git fsck tells more")]
                )
            if mode != "120000":
                return content
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), content.decode(errors="replace")))
            name = target.removesuffix(".toml")
            if target == name or name not in self.files:
                break
        raise NpuprofError([self._build_blob_finding("NP005", name, "a link that leads out of the store", "copy the file into the store")])

    def profile(self, name: str, asked: Origin | None = None) -> Profile:
        """Return one profile. Raises NpuprofError: no such profile then, not text, not TOML."""
        found = self._profiles.get(name)
        if found is None:
            try:
                found = self._read_profile(name, asked)
            except NpuprofError as error:
                found = error
            self._profiles[name] = found
        if isinstance(found, NpuprofError):
            raise found
        return found

    def _read_profile(self, name: str, asked: Origin | None) -> Profile:
        if name not in self.files or not is_profile_name(name):
            raise NpuprofError([self._build_missing_finding(name, asked)])
        raw = self.read_profile_text(name)
        try:
            read = document.parse_document(name, self.repository.source_path(name), raw, self.commit)
        except NpuprofError as error:
            raise NpuprofError([_place_finding_at_revision(finding, self.commit) for finding in error.findings]) from None
        return Profile(read, key=f"{name}@{self.commit}", home=self)

    def _build_blob_finding(self, code: str, name: str, what: str, hint: str) -> Finding:
        where = (f"{shorten_commit(self.commit)}:{self.repository.source_path(name)}", 0, 0)
        return Finding(code, "error", f"cannot read {name}: {what}", "", hint, where=where)

    def _build_missing_finding(self, name: str, asked: Origin | None) -> Finding:
        hint = did_you_mean(name, self.names(), f"npuprof log {name} shows when it came")
        if asked is not None:
            what = f"{asked.profile} extends {name!r}, which is not in {self.label}"
            why = "Without its parent a profile has no meaning."
            return Finding("NP101", "error", what, why, hint, asked, "profile.extends", (asked.profile,))
        if not self.files:
            return Finding("NP023", "error", f"there are no profiles in {self.label}", "", "name a later revision")
        return Finding("NP023", "error", f"there is no profile {name!r} in {self.label}", "", hint)

    def __repr__(self) -> str:
        return f"Revision({shorten_commit(self.commit)!r})"


def _place_finding_at_revision(finding: Finding, commit: str) -> Finding:
    """Return a finding whose place says at which revision it was."""
    changes: dict[str, Any] = {}
    if finding.where:
        changes["where"] = (f"{shorten_commit(commit)}:{finding.where[0]}", *finding.where[1:])
    return finding._replace(**changes)
