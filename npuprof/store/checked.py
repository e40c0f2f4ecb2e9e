"""A store to check: the work tree, a revision or staged content, with texts that may be written."""

from __future__ import annotations

from contextlib import suppress

from npuprof.model import (
    TYPE_CHECKING,
    Context,
    Finding,
    NpuprofError,
    Place,
    build_error,
    renew_hints,
)
from npuprof.store import is_profile_name
from npuprof.store.base import CachedStore
from npuprof.store.folder import Folder
from npuprof.store.problems import build_bad_name_finding

if TYPE_CHECKING:
    from npuprof.document import Document
    from npuprof.document.policy import Policy
    from npuprof.document.profile import Profile
    from npuprof.resolve.config import Config
    from npuprof.store.gitstore.revisions import Revision
    from npuprof.store.spec import Workspace


class CheckedStore:
    """The store of a workspace, or a revision of it.

    What ``checks.check_store`` needs to know about it.
    """

    def __init__(self, workspace: Workspace, rev: str | None = None, plainly: bool = False) -> None:
        """Check the store of a workspace, or a revision.

        ``plainly`` cites its presets by path only, for machine formats. Raises NpuprofError if
        there is no such revision.
        """
        self.workspace = workspace
        self._past: Revision | None = None
        self._resolved: dict[str, Config] = {}
        if rev is not None:
            home = workspace.store
            revision = home.repository.load_revision(home.repository.resolve_commit(rev))
            if not revision.files:
                raise build_error(
                    "NP023",
                    f"there are no presets in {revision.label}",
                    "",
                    "name the store with --store",
                )
            # machine formats annotate files of the work tree: a path with a revision is none
            if plainly:
                revision.shown = None
            self.use_revision(revision)

    def use_revision(self, revision: Revision) -> None:
        """Check an open revision, or a proposed one, instead.

        Raises NpuprofError if it needs another npuprof.
        """
        from npuprof.store.project import require_fitting_project

        # first: the npuprof.toml of another npuprof can move the presets' folder
        require_fitting_project(self.workspace.lookups.find_project(revision))
        self._past = revision

    @property
    def home(self) -> CachedStore:
        """The store; a preset outside a store needs none. Raises NpuprofError if there is none."""
        return self._past if self._past is not None else self.workspace.listed_store

    @property
    def context(self) -> Context:
        """The context of all presets."""
        return self.workspace.resolver.context

    @property
    def label(self) -> str:
        """The path to cite for the store."""
        return self.home.label

    def load_names(self) -> list[str]:
        """Return the names of all presets, sorted, and resolve them.

        Reading all presets, then resolving all, before all checks is a quarter faster.
        """
        names = self.home.names()
        if self._past is not None:
            self._past.load_texts(names)
        profiles = {}
        for name in names:
            with suppress(Exception):  # resolving the preset fails again and reports it
                profiles[name] = self.home.profile(name)
        for name, profile in profiles.items():
            renew_hints()
            with suppress(Exception):
                self._resolved[name] = self.workspace.resolver.resolve_profile(profile)
                profile.document.forget_data()
        return names

    def find_file(self, document: Document) -> str:
        """Return the path of the writable file of a document.

        An empty string for files outside this store.
        """
        name = document.name
        # a document of the command line has no file
        if not document.text:
            return ""
        if name.endswith(".toml"):
            return name  # a file outside any store
        home = self.home
        if isinstance(home, Folder) and home.cite_file(f"{name}.toml") == document.source:
            return home.profile_path(name)
        return ""

    def cite_preset(self, name: str) -> str:
        """Return the path to cite for a preset of the store; other specs unchanged.

        Raises NpuprofError.
        """
        return self.home.cite_file(f"{name}.toml") if is_profile_name(name) else name

    def resolve_preset(self, name: str) -> Config:
        """Return a preset resolved; at a revision, by its name or the path of its file.

        Raises NpuprofError.
        """
        if name in self._resolved:
            return self._resolved.pop(name)  # it may be edited before it is checked again
        if self._past is None:
            return self.workspace.resolve_spec(name)
        return self.workspace.resolver.resolve_profile(self._find_profile(name))

    def resolve_as_far_as_can_be(self, name: str) -> Config:
        """Return a malformed preset, resolved without its malformed parts.

        Raises NpuprofError if it cannot be read.
        """
        return self.workspace.resolver.resolve_as_far_as_can_be(self._find_profile(name))

    def _find_profile(self, name: str) -> Profile:
        if self._past is None:
            return self.workspace.profile(name)
        if name.endswith(".toml"):
            path = name.removeprefix("./")
            name = self._past.layout.name_of(path) or path.removesuffix(".toml")
        return self.home.profile(name)

    def find_stray_files(self) -> list[Finding]:
        """Return a finding for each file whose name no preset can have."""
        home = self.home
        return [
            build_bad_name_finding(path)._replace(
                hint="rename the file", where=Place(home.cite_file(path))
            )
            for path in home.stray_files()
        ]

    def find_nested_stores(self) -> list[Finding]:
        """Return a finding for each folder below the store that is itself a store.

        Its presets have two names.
        """
        home = self.home
        findings = {}
        for name in home.names():
            inner = _find_inner_store(name)
            # presets that npuprof.toml lists stay in their place
            if not inner or inner in findings or home.is_outside(name):
                continue
            cited = home.cite_file(f"{name}.toml")
            what = f"{cited.removesuffix(f'{name}.toml')}{inner} is a store inside a store"
            why = (
                "Its presets have one name from here and another one from within, and both stores "
                "resolve, check and release them."
            )
            hint = (
                "move it out of this store, or its presets up into a folder of another name; "
                "presets of another team are taken by a source"
            )
            findings[inner] = Finding("NP017", what, why, hint, where=Place(cited))
        return [*findings.values()]

    def find_source_faults(self) -> list[Finding]:
        """Return edits of the lock and of vendored copies, and why the team policy cannot be read.

        Without it, presets are judged by the store's own part of it. Raises NpuprofError for an
        invalid lock or npuprof.toml.
        """
        home, lookups = self.home, self.workspace.lookups
        if not home.may_have_policy():
            return []
        findings: list[Finding] = []
        try:
            lookups.load_policy(home)
        except NpuprofError as error:
            findings += error.findings
            lookups.use_policy(home, self.load_own_policy())
        return [*findings, *lookups.find_edited_copies(home)]

    def find_kept_faults(self) -> list[Finding]:
        """Return the faults of vendored releases, and those that no preset extends.

        Raises NpuprofError.
        """
        home = self.home
        if not isinstance(home, Folder) or not home.keeps_releases:
            return []
        return [*self.workspace.lookups.find_kept_faults(home)]

    def load_own_policy(self) -> Policy:
        """Return the rules and accepted findings of the store's own npuprof.toml.

        Raises NpuprofError.
        """
        from npuprof.document.policy import Policy

        project = self.workspace.lookups.find_project(self.home)
        return Policy(project.rules, project.ignores, project.variables)


def _find_inner_store(name: str) -> str:
    """Return the folder of a preset that looks like a store, relative to this one.

    That is ``profiles``, or the folder of npuprof.toml. An empty string if there is none.
    """
    *folders, last = name.split("/")
    if "profiles" in folders:
        return "/".join(folders[: folders.index("profiles") + 1])
    return "/".join(folders) if last == "npuprof" else ""
