"""A store at one git revision: the same profiles, read from the object database."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from npuprof import document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Origin, Place
from npuprof.store import ReadOnceStore, build_missing_finding, is_profile_name
from npuprof.store.repository import Repository, TreeFile, shorten_commit

_MAX_LINKS = 8  # one that leads to itself has to end


class Revision(ReadOnceStore):
    """A store as it was at a commit (or is in a tree, by its id). Nothing but the object database is read, every file once."""

    def __init__(self, repository: Repository, commit: str, files: dict[str, TreeFile] | None = None) -> None:
        super().__init__()
        self.repository = repository
        self.root = repository.folder
        self.commit = commit
        self.shown: str | None = commit  #: the revision to cite with each file
        self.label = f"{repository.prefix.rstrip('/') or 'the repository'} at {shorten_commit(commit)}"
        self._files = files
        self._contents: dict[str, bytes] = {}

    @property
    def files(self) -> dict[str, TreeFile]:
        """The TOML files of the store by their paths below it, without ``.toml``."""
        if self._files is None:
            self._files = self.repository.list_profile_files(self.commit)
        return self._files

    def _list_files(self) -> Iterable[str]:
        return self.files

    def cite_file(self, path: str) -> str:
        """Return the path to cite for a file below the store, with the revision."""
        full = f"{self.repository.prefix}{path}"
        return f"{shorten_commit(self.shown)}:{full}" if self.shown else full

    def load_texts(self, names: Iterable[str]) -> None:
        """Read the texts of profiles in one go. Raises NpuprofError where the repository lacks any."""
        wanted = {self.files[name].oid: name for name in names if name in self.files}
        self._contents.update(self.repository.read_blobs(oid for oid in wanted if oid not in self._contents))
        if absent := [oid for oid in wanted if oid not in self._contents]:
            reason = self.repository.git.explain_absence(absent)
            what = "its content is missing from the repository"
            problems = [self._build_blob_finding("NP022", wanted[oid], what, reason.hint) for oid in absent]
            raise NpuprofError([problem._replace(why=reason.why) for problem in problems])

    def adopt_texts(self, other: Revision) -> None:
        """Take over the texts that another revision of the repository has read."""
        self._contents.update(other._contents)

    def read_profile_text(self, name: str) -> bytes:
        """Return the text of a profile that is there; of a link, that of the file it leads to. Raises NpuprofError."""
        return self._read_content(self.follow_links(name))

    def follow_links(self, name: str) -> str:
        """Return the name of the file that holds a profile's text: its own, or the one its links lead to. Raises NpuprofError."""
        return self.trace_links(name)[-1]

    def trace_links(self, name: str) -> list[str]:
        """Return the names of a file, of those its links lead to, one after the other. Raises NpuprofError."""
        found = [name]
        while len(found) <= _MAX_LINKS:
            if not self.files[found[-1]].is_link:
                return found
            link = self._read_content(found[-1]).decode(errors="replace")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(found[-1]), link))
            found.append(target.removesuffix(".toml"))
            if target == found[-1] or found[-1] not in self.files:
                break
        raise NpuprofError(
            [self._build_blob_finding("NP005", found[-1], "a link that leads out of the store", "copy the file into the store")]
        )

    def _read_content(self, name: str) -> bytes:
        oid = self.files[name].oid
        if oid not in self._contents:
            self.load_texts([name])
        return self._contents[oid]

    def _read_profile(self, name: str, asked: Origin | None) -> Profile:
        if name not in self.files or not is_profile_name(name):
            raise NpuprofError([self._build_missing_finding(name, asked)])
        raw = self.read_profile_text(name)
        try:
            read = document.parse_document(name, self.repository.source_path(name), raw, self.shown)
        except NpuprofError as error:
            raise NpuprofError([_place_finding_at_revision(finding, self.shown) for finding in error.findings]) from None
        return Profile(read, key=f"{name}@{self.commit}", home=self)

    def _build_blob_finding(self, code: str, name: str, what: str, hint: str) -> Finding:
        where = Place(self.cite_file(f"{name}.toml"))
        return Finding(code, f"cannot read {name}: {what}", "", hint, where=where)

    def _build_missing_finding(self, name: str, asked: Origin | None) -> Finding:
        if asked is None and not self.files:
            return Finding("NP023", f"there are no profiles in {self.label}", "", "name a later revision")
        hint = self._suggest_name(name, f"npuprof log {name} shows when it came")
        return build_missing_finding("NP023", name, self.label, hint, asked)

    def __repr__(self) -> str:
        return f"Revision({shorten_commit(self.commit)!r})"


class ProposedRevision(Revision):
    """A store as it is in a tree that no commit holds yet: its files are cited by their paths alone."""

    def __init__(self, repository: Repository, tree: str) -> None:
        super().__init__(repository, tree)
        self.label = f"{repository.prefix.rstrip('/') or 'the repository'} as it would be committed"
        self.shown = None

    def __repr__(self) -> str:
        return f"ProposedRevision({shorten_commit(self.commit)!r})"


def _place_finding_at_revision(finding: Finding, commit: str | None) -> Finding:
    """Return a finding of a document whose place says at which revision it was, if there is one to say."""
    if commit is None:
        return finding
    assert finding.where is not None, "a document is at fault somewhere"
    return finding._replace(where=finding.where._replace(file=f"{shorten_commit(commit)}:{finding.where.file}"))
