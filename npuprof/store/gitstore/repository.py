"""The git repository around a store: its revisions, released versions, and trees."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable

from npuprof.model import TYPE_CHECKING, NpuprofError, Origin, Record, build_error, did_you_mean
from npuprof.store import FILE
from npuprof.store.gitstore.objects import Git, build_refusal_finding
from npuprof.store.gitstore.tags import ReleaseTags
from npuprof.store.layout import Layout, accepts_file, enter_folder, list_plain_names, read_globs

if TYPE_CHECKING:
    from typing import Self

    from npuprof.store.versions import Version

#: The sizes of the in-memory caches.
_LAYOUTS, _TREES = 4000, 100

#: Modes of tree entries other than files.
LINK, FOLDER, SUBMODULE = "120000", "40000", "160000"
#: The mode of a preset name shared by two files, one in the store and one outside.
CLASH = "clash"


class TreeFile(Record):
    """A file of a tree: its mode, its blob id, and whether it is outside the store's folder."""

    mode: str
    oid: str
    outside: bool = False

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link: its content is the target path."""
        return self.mode == LINK


class TreeEntry(Record):
    """One entry of a tree object: a file, a folder, or a submodule."""

    mode: str
    name: str
    oid: str

    @property
    def is_folder(self) -> bool:
        """Whether it is a tree."""
        return self.mode == FOLDER

    @property
    def is_profile(self) -> bool:
        """Whether it is a TOML file, and not a submodule."""
        return self.name.endswith(".toml") and self.mode != SUBMODULE


class ResolvedRevision(Record):
    """A resolved revision of a preset: a commit, and its label ``1.2.0`` or ``abc1234``.

    ``version`` is the released version, if it is one.
    """

    commit: str
    label: str
    version: Version | None


class FormerName(Record):
    """A former name of a preset, and the commit that renamed it."""

    name: str
    commit: str


class Repository(ReleaseTags):
    """The repository around a folder.

    ``prefix`` is the folder's path below the top, ending in ``/``, or empty.

    ``bare`` is the folder of a bare repository, which then is the top. ``git`` reads it.
    """

    def __init__(self, folder: str, bare: str = "", git: Git | None = None) -> None:
        self.folder = os.path.realpath(folder)
        super().__init__(git or Git(self.folder, bare=bare))
        self.top = os.path.realpath(bare) if bare else self.git.top
        if not self.top and "GIT_DIR" not in os.environ:
            raise NpuprofError(build_refusal_finding(b"not a git repository", self.folder))
        if not self.top:  # selected only by git's own variables
            self.top = os.fsdecode(
                self.git.run_command("rev-parse", "--show-toplevel").rstrip(b"\n")
            )
        below = os.path.relpath(self.folder, self.top)
        self.prefix = "" if below == "." else f"{below}/"
        self._trees: dict[str, list[TreeEntry]] = {}
        #: the cached id of the store's tree by commit, empty if there was none
        self.roots: dict[str, str] = {}
        #: cached layouts by commit
        self.layouts: dict[str, Layout] = {}
        self._shallow: bool | None = None
        #: whether it is a source's repository, of which only the store's folder is shared
        self.is_source = False

    def resolve_commit(self, revision: str, requested: Origin | None = None) -> str:
        """Return the full commit id of a revision.

        Raises NpuprofError: unknown, ambiguous, not a commit.
        """
        if not (commit := self._find_commit(revision)):
            raise self._build_unknown_error(revision, requested)
        return commit

    def _find_commit(self, revision: str) -> str:
        if not revision or revision.startswith("-") or "\n" in revision or "\0" in revision:
            return ""  # git would parse a flag, or several names
        named = self.git.read_object(revision)
        if named is not None and named.type == "tag":
            named = self.git.read_object(f"{named.oid}^{{commit}}")
        return named.oid if named is not None and named.type == "commit" else ""

    def has_commit(self, revision: str) -> bool:
        """Return whether a revision names a commit."""
        return bool(self._find_commit(revision))

    def _build_unknown_error(self, revision: str, requested: Origin | None) -> NpuprofError:
        what = f"unknown revision {revision!r}"
        why = ""
        hint = (
            "write a version (1.2.0, or 1 for the newest 1.x.y), a branch, a tag, or a commit of "
            "git log --oneline"
        )
        if not revision:
            what = "the revision after @ is missing"
            hint = "write one, NAME@HEAD or NAME@1.2.0, or omit the @"
        elif re.fullmatch(r"[v\d.x*^~<>=!, ]*[x*^~<>=,][v\d.x*^~<>=!, ]*", revision):
            what = f"{revision!r} is a range, and a preset's revision is none"
            why = "A short version selects the newest one that begins with it."
            hint = "write NAME@1 for its newest version 1.x.y, or a version in full, NAME@1.2.0"
        elif revision.startswith("-"):
            why = "A revision cannot start with '-'."
        elif not self.git.read_object("HEAD") and revision.startswith(("HEAD", "@")):
            why, hint = "The repository has no commits yet.", "commit the presets first"
        else:
            listed = self.git.run_command(
                "for-each-ref",
                "--format=%(refname:short)",
                "refs/heads",
                "refs/tags",
                "refs/remotes",
            )
            hint = did_you_mean(revision, os.fsdecode(listed).splitlines(), hint)
            if self.is_shallow():
                why = "This clone is shallow: it contains only the newest commits."
                hint = hint if hint.startswith("did") else "fetch the rest: git fetch --unshallow"
        from npuprof.store.problems import place_error

        return place_error(build_error("NP011", what, why, hint), requested)

    def is_shallow(self) -> bool:
        """Return whether the clone lacks older commits; cached."""
        if self._shallow is None:  # worth one process for thousands of commits
            self._shallow = (
                self.git.run_command("rev-parse", "--is-shallow-repository").strip() == b"true"
            )
        return self._shallow

    def resolve_revision(
        self, name: str, revision: str, requested: Origin | None = None, at: str = ""
    ) -> ResolvedRevision:
        """Return a preset's revision resolved.

        A released version has precedence over other meanings; a range selects the newest version
        reachable from the commit ``at``, or from HEAD. The revision may be quoted. Raises
        NpuprofError.
        """
        if len(revision) > 2 and revision[0] == revision[-1] and revision[0] in "\"'":
            revision = revision[1:-1]
        from npuprof.store.versions import parse_version_request

        request = parse_version_request(revision)
        if request and (version := self.find_version(name, request, at)):
            return ResolvedRevision(
                self.resolve_commit(version.commit), version.number_text, version
            )
        if request:
            refs = [ref for ref in self.list_tag_refs(name) if request.accepts(ref.text)]
            if unreachable := self.read_versions(refs):
                raise self._build_unreachable_error(name, revision, unreachable, requested, at)
        try:
            commit = self.resolve_commit(revision, requested)
        except NpuprofError:
            # git accepts four or more digits as the start of a commit id
            if request and not revision.startswith("-") and (len(revision) < 4 or "." in revision):
                raise self._build_unreleased_error(name, revision, requested) from None
            raise
        return ResolvedRevision(
            commit, shorten_commit(commit), self.find_version_of_tag(revision, name)
        )

    def _build_unreachable_error(
        self, name: str, revision: str, versions: list[Version], requested: Origin | None, at: str
    ) -> NpuprofError:
        what = (
            f"no released version {revision} of {name} is in the history of "
            f"{shorten_commit(at) if at else 'HEAD'}"
        )
        why = (
            "A range selects the newest version that is reachable from the commit with the "
            "reference."
        )
        others = ", ".join(version.number_text for version in versions)
        hint = f"name one in full that is released elsewhere, or later, or merge it first: {others}"
        if self.is_shallow():
            hint = (
                "this clone is shallow and may not reach back to the version: git fetch --unshallow"
            )
        from npuprof.store.problems import place_error

        return place_error(build_error("NP011", what, why, hint), requested)

    def _build_unreleased_error(
        self, name: str, revision: str, requested: Origin | None
    ) -> NpuprofError:
        released = [version.number_text for version in self.load_versions(name)]
        what = f"{name} has no released version {revision}"
        why = f"A released version is an annotated tag {name}/vX.Y.Z."
        if released:
            hint = f"released are {', '.join(released)}"
        elif self.is_shallow():
            hint = "this clone is shallow and may lack the tags: git fetch --tags --unshallow"
        else:
            hint = f"none is released; npuprof release {name} makes the first"
        from npuprof.store.problems import place_error

        return place_error(build_error("NP011", what, why, hint), requested)

    def is_ancestor(self, commit: str, descendant: str) -> bool:
        """Return whether a commit is an ancestor of another, or equal to it."""
        return (
            # needs no process
            commit == descendant
            or self.git.try_command("merge-base", "--is-ancestor", commit, descendant).code == 0
        )

    def find_merge_base(self, left: str, right: str) -> str:
        """Return the merge base of two commits. Raises NpuprofError if there is none."""
        result = self.git.try_command("merge-base", left, right)
        if result.code or not result.output.strip():
            what = f"{shorten_commit(left)} and {shorten_commit(right)} have no common ancestor"
            hint = (
                "this clone is shallow: git fetch --unshallow"
                if self.is_shallow()
                else "compare the two tips: A..B"
            )
            raise build_error("NP011", what, "A...B compares B with where it left A.", hint)
        return result.output.split()[0].decode()

    def find_layout(self, commit: str) -> Layout:
        """Return the layout of presets at a commit or tree, from its ``npuprof.toml``.

        Raises NpuprofError.
        """
        if commit in self.layouts:
            return self.layouts[commit]
        layout = Layout(self.prefix)
        if commit and self.prefix and not self.is_source:
            raw = self.git.read_files([f"{commit}:{layout.project_file}"])[0]
            if raw is not None:
                layout = Layout(self.prefix, read_globs(raw))
        if len(self.layouts) > _LAYOUTS:
            # a walk visits each commit once, so that older entries are worth no more than newer
            # ones
            self.layouts.clear()
        self.layouts[commit] = layout
        return layout

    def list_profile_files(self, commit: str, layout: Layout | None = None) -> dict[str, TreeFile]:
        """Return the presets at a commit or tree by name: TOML files in the store, and outside.

        ``layout`` replaces that of ``npuprof.toml`` there. Empty if the store did not exist.
        """
        if len(self._trees) > _TREES:
            self._trees.clear()
        files = self._list_store_files(commit)
        layout = layout if layout is not None else self.find_layout(commit)
        if layout.globs:
            for name, file in self._list_outside_files(commit, layout).items():
                # an error only if somebody reads it: other presets stay usable
                files[name] = files[name]._replace(mode=CLASH) if name in files else file
        return files

    def _list_outside_files(self, commit: str, layout: Layout) -> dict[str, TreeFile]:
        """Return the presets outside the store's folder, by matching the globs in the trees.

        The trees of one depth are read together. ``state`` is what is left of the globs there.
        """
        root = self.git.read_object(f"{commit}:{layout.base.rstrip('/')}")
        if root is None or root.type != "tree":
            return {}
        files = {}
        level = [("", root.oid, layout.start)]
        while level:
            self._load_trees(tree for _, tree, _ in level)
            below = []
            for folder, tree, state in level:
                expected = list_plain_names(state)
                for entry in self._trees[tree]:
                    if expected is not None and entry.name not in expected:
                        continue
                    path = f"{folder}{entry.name}"
                    if entry.is_folder:
                        # its presets are listed by their names in the store
                        if f"{path}/" == layout.store_folder:
                            continue
                        if inner := enter_folder(state, entry.name):
                            below.append((f"{path}/", entry.oid, inner))
                    elif entry.is_profile and accepts_file(state, entry.name):
                        name = path.removesuffix(".toml")
                        if layout.takes(name):
                            files[name] = TreeFile(entry.mode, entry.oid, True)
            level = below
        return files

    def _list_store_files(self, commit: str) -> dict[str, TreeFile]:
        if not (root := self.find_store_tree(commit)):
            return {}
        files = {}
        level = [("", root)]
        while level:
            self._load_trees(tree for _, tree in level)
            below = []
            for folder, tree in level:
                for entry in self._trees[tree]:
                    # npuprof.toml is in the store's folder if that is the top of the repository
                    is_project = entry.name == FILE and not folder and not self.prefix
                    if is_project or entry.name.startswith("."):
                        continue
                    if entry.is_folder:
                        below.append((f"{folder}{entry.name}/", entry.oid))
                    elif entry.is_profile:
                        name = f"{folder}{entry.name.removesuffix('.toml')}"
                        files[name] = TreeFile(entry.mode, entry.oid)
            level = below
        return files

    def find_store_tree(self, commit: str) -> str:
        """Return the id of the store's tree at a commit, an empty string if there was none.

        Raises NpuprofError.
        """
        self.load_store_trees([commit])
        return self.roots[commit]

    def load_store_trees(self, commits: Iterable[str]) -> None:
        """Load the store's tree of each commit, in one request. Raises NpuprofError."""
        if len(self.roots) > _LAYOUTS:
            self.roots.clear()
        unread = [commit for commit in commits if commit not in self.roots]
        folder = self.prefix.rstrip("/")
        roots = self.git.read_objects([f"{commit}:{folder}" for commit in unread])
        for commit, root in zip(unread, roots, strict=True):
            if root is None:  # this fails for a missing tree, not for a missing store
                self.git.run_command("ls-tree", "--full-tree", commit, "--", self.prefix)
            elif root.type == "tree" and root.oid not in self._trees:
                self._trees[root.oid] = _parse_tree_entries(root.content, len(root.oid) // 2)
            self.roots[commit] = root.oid if root is not None and root.type == "tree" else ""

    def _load_trees(self, trees: Iterable[str]) -> None:
        """Load uncached trees together. Raises NpuprofError if one is missing."""
        unread = [tree for tree in trees if tree not in self._trees]
        for tree, content in self.git.read_contents(unread).items():
            self._trees[tree] = _parse_tree_entries(content, len(tree) // 2)

    def find_former_names(self, tip: str, names: set[str]) -> dict[str, list[FormerName]]:
        """Return the former names of presets before a commit, latest first, from one git process.

        Presets that were never renamed are omitted. The layout at the commit counts for all before
        it. Raises NpuprofError.
        """
        layout = self.find_layout(tip)
        listed = self.git.run_command(
            "-c",
            "diff.renameLimit=4000",
            "log",
            "--topo-order",
            "--diff-filter=R",
            "-M",
            "--name-status",
            "-z",
            "--no-color",
            "--no-ext-diff",
            "--no-relative",
            "--format=%x01%H",
            tip,
            "--",
            *layout.pathspecs,
        )
        current = {name: name for name in names}  # today's name, by the name at the commit
        former = defaultdict(list)
        for record in listed.split(b"\1")[1:]:
            commit, *fields = record.split(b"\0")  # status, old path, new path, status, ...
            for old_path, new_path in zip(fields[1::3], fields[2::3], strict=False):
                old = layout.name_of(os.fsdecode(old_path))
                new = layout.name_of(os.fsdecode(new_path))
                if old and new and new in current:
                    name = current.pop(new)
                    current[old] = name
                    former[name].append(FormerName(old, commit.decode()))
        return former

    def read_checked_out(self, commit: str, path: str) -> bytes | None:
        """Return a file with the line endings of this work tree, but without filters.

        None if git cannot determine it.
        """
        result = self.git.try_command("cat-file", "--filters", f"{commit}:{path}")
        return None if result.code else result.output

    def _copy(self) -> Self:
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def with_store_prefix(self, prefix: str) -> Self:
        """Return the same repository with the store in a former folder."""
        moved = self._copy()
        moved.prefix, moved.layouts, moved.roots = prefix, {}, {}
        return moved

    def with_git(self, git: Git) -> Self:
        """Return the same repository read by another git, which sees more objects."""
        copied = self._copy()
        copied.git = git
        return copied


def shorten_commit(commit: str) -> str:
    """Return the id of a commit for display."""
    return commit[:7]


def _parse_tree_entries(raw: bytes, size: int) -> list[TreeEntry]:
    """Return the entries of a tree object with ids of ``size`` bytes."""
    entries = []
    position = 0
    while position < len(raw):
        blank = raw.index(b" ", position)
        end = raw.index(b"\0", blank)
        entries.append(
            TreeEntry(
                raw[position:blank].decode(),
                os.fsdecode(raw[blank + 1 : end]),
                raw[end + 1 : end + 1 + size].hex(),
            )
        )
        position = end + 1 + size
    return entries
