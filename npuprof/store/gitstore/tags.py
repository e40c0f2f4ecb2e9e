"""The released versions of a repository, read from its tags."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter

from npuprof.model import TYPE_CHECKING, NpuprofError, Record
from npuprof.store.gitstore.objects import Git, GitObject
from npuprof.system import decode_safely, group_pairs, join_lines

if TYPE_CHECKING:
    from npuprof.store.versions import TagRef, Version, VersionRequest, VersionText

#: The number of commits queried individually; for more, the graph of all commits is read once.
_SINGLE_COMMITS = 2


class ReleaseTags:
    """The tags of released versions, listed and read once each, and their reachability."""

    def __init__(self, git: Git) -> None:
        self.git = git
        #: By preset; all of them under an empty string.
        self._tags: dict[str, list[TagRef]] | None = None
        self._versions: dict[str, Version | None] = {}
        self._yanks: dict[str, str] = {}
        self._newest: dict[str, str] = {}
        self._proposed: list[TagRef] = []
        self._reachability = Reachability(git)

    def list_tag_refs(self, name: str = "") -> list[TagRef]:
        """Return the unread version tags of a preset, or of all, oldest number first."""
        if self._tags is None:
            refs = sorted(
                [*list_tag_refs(self.git, "refs/tags/"), *self._proposed],
                key=attrgetter("sort_key"),
            )
            self._tags = {**_group_by_name(refs), "": refs}
        return self._tags.get(name, [])

    def load_versions(self, name: str = "") -> tuple[Version, ...]:
        """Return the released versions of a preset, or of all, oldest number first.

        Raises NpuprofError for a missing tag.
        """
        return tuple(self.read_versions(self.list_tag_refs(name)))

    def load_reachable_versions(self, name: str, commit: str) -> tuple[Version, ...]:
        """Return the released versions of a preset reachable from a commit, oldest number first.

        Raises NpuprofError.
        """
        return tuple(self.read_versions(self._list_reachable_refs(name, commit)))

    def _list_reachable_refs(self, name: str, commit: str) -> list[TagRef]:
        refs = self._reachability.group_refs(commit).get(name, [])
        proposed = [ref for ref in self._proposed if ref.name == name]
        versions = self.read_versions(proposed)
        # a proposed version has no tag yet, so that only its own commit sees it
        new = [
            ref for ref, version in zip(proposed, versions, strict=True) if version.commit == commit
        ]
        return sorted([*refs, *new], key=attrgetter("sort_key")) if new else refs

    def is_version_reachable(self, name: str, text: VersionText, commit: str) -> bool:
        """Return whether the tag of a version is in a commit's history. Raises NpuprofError."""
        return any(ref.text == text for ref in self._list_reachable_refs(name, commit))

    def propose_version(self, name: str, text: VersionText, commit: str, message: str) -> None:
        """Treat a version without a tag as released, for queries about its commit only."""
        from npuprof.store.versions import TagRef, Version

        ref = TagRef(name, text, f"proposed {name} {text}")
        self._proposed.append(ref)
        self._versions[ref.tag] = Version(
            name, text.number, ref.oid, commit, message=message.rstrip("\n"), pre=text.pre
        )
        self._tags = None

    def list_annotated_refs(self, revision: str) -> list[TagRef]:
        """Return the unread annotated version tags reachable from a revision.

        The oldest number comes first.
        """
        return list_tag_refs(self.git, f"--merged={revision}", "refs/tags/", annotated=True)

    def sees_same_versions(self, first: str, second: str) -> bool:
        """Return whether the same tags are reachable from two commits.

        Every range then resolves equally. Raises NpuprofError.
        """
        if first == second:
            return True
        return self._reachability.group_refs(first) == self._reachability.group_refs(second)

    def find_newest_version(
        self, name: str, request: VersionRequest, commit: str
    ) -> Version | None:
        """Return the newest version in a range at a commit, None if none is reachable.

        A yanked version is selected only if all versions in the range are yanked. Raises
        NpuprofError.
        """
        yanked: Version | None = None
        from npuprof.store.versions import select_newest

        for ref in select_newest(self._list_reachable_refs(name, commit), request):
            if versions := self.read_versions([ref]):
                if not self.find_yank(ref.tag):
                    return versions[0]
                yanked = yanked or versions[0]
        return yanked

    def find_yank(self, tag: str) -> str:
        """Return why a version was yanked, given its tag name; an empty string if it was not.

        An additional tag records it.
        """
        if tag not in self._yanks:
            from npuprof.store.versions import YANKED

            mark = self.git.read_object(f"refs/tags/{tag}{YANKED}")
            self._yanks[tag] = _read_yank_reason(mark) if mark else ""
        return self._yanks[tag]

    def find_newest_kept(self, name: str) -> str:
        """Return the newest version number that was not yanked, of a preset or the whole store.

        Without a ``name``, of the whole store; an empty string if there is none. Raises
        NpuprofError.
        """
        if name not in self._newest:
            versions = self.list_tag_refs(name) if name else self.load_store_versions()
            texts = [version.text for version in versions]
            kept = (
                str(text)
                for text in sorted(texts, reverse=True)
                if not text.pre and not self.find_yank(f"{name}/v{text}" if name else f"v{text}")
            )
            self._newest[name] = next(kept, "")
        return self._newest[name]

    def read_versions(self, refs: Sequence[TagRef]) -> list[Version]:
        """Return the versions of annotated tags.

        Raises NpuprofError if the repository lacks one.
        """
        unread = [ref for ref in refs if ref.tag not in self._versions]
        from npuprof.store.versions import parse_tag_object

        objects = self.git.read_objects([ref.oid for ref in unread])
        for ref, tag in zip(unread, objects, strict=True):
            if tag is None:
                absent = self.git.explain_absence([ref.oid])
                raise NpuprofError(
                    absent._replace(message=f"the tag {ref.tag} cannot be read: {absent.message}")
                )
            self._versions[ref.tag] = (
                parse_tag_object(ref, tag.content) if tag.type == "tag" else None
            )
        return [version for ref in refs if (version := self._versions[ref.tag])]

    def load_store_versions(self, commit: str = "") -> list[Version]:
        """Return the versions of the whole store, annotated tags ``vX.Y.Z``, oldest number first.

        Their name is empty. With a ``commit``, only those reachable from it.
        """
        merged = [f"--merged={commit}"] if commit else []
        listed = self.git.run_command(
            "for-each-ref",
            *merged,
            "--format=%(objecttype) %(objectname) %(refname:strip=2)",
            "refs/tags/v*",
        )
        versions = []
        from npuprof.store.versions import YANKED, TagRef, parse_tag_object, parse_version_text

        for line in decode_safely(listed).splitlines():
            kind, oid, tag = line.split(" ", 2)
            # a lightweight tag has no record, so it is not a release
            if kind != "tag" or tag.endswith(YANKED):
                continue
            text = parse_version_text(tag)
            if text is not None and (tag_object := self.git.read_object(oid)):
                versions.append(parse_tag_object(TagRef("", text, oid), tag_object.content))
        return sorted(versions, key=attrgetter("text.order"))

    def clear_versions(self) -> None:
        """Clear the cache of released versions."""
        self._tags = None
        self._versions.clear()
        self._yanks.clear()
        self._newest.clear()
        self._proposed.clear()
        self._reachability = Reachability(self.git)

    def find_version(self, name: str, request: VersionRequest, at: str) -> Version | None:
        """Return the requested version of a preset; for a range, as seen from ``at`` or HEAD.

        None if there is none.
        """
        if request.is_range:
            if not at:
                head = self.git.read_object("HEAD")
                at = head.oid if head else ""
            return self.find_newest_version(name, request, at) if at else None
        from npuprof.store.versions import select_newest

        versions = self.read_versions(select_newest(self.list_tag_refs(name), request))
        return versions[0] if versions else None

    def find_version_of_tag(self, revision: str, name: str = "") -> Version | None:
        """Return the version of a tag name (``base/v1.2.0``), of a preset or of any.

        None for other revisions.
        """
        preset, _, number = revision.removeprefix("refs/").removeprefix("tags/").rpartition("/")
        if not preset or name not in ("", preset) or not number.startswith("v"):
            return None
        from npuprof.store.versions import parse_version_text

        text = parse_version_text(number)
        if text is None:
            return None
        refs = [ref for ref in self.list_tag_refs(preset) if ref.text == text]
        versions = self.read_versions(refs)
        return versions[0] if versions else None


def _read_yank_reason(mark: GitObject) -> str:
    """Return the reason in the tag that marks a version as yanked: its subject, on one line."""
    message = ""
    if mark.type == "tag":
        message = decode_safely(mark.content.partition(b"\n\n")[2])
    subject = message.partition("\n\n")[0].partition("\n-----BEGIN ")[0]  # without a signature
    return " ".join(subject.split()) or "no reason is given"


def list_tag_refs(git: Git, *arguments: str, annotated: bool = False) -> list[TagRef]:
    """Return version tags as listed by ``for-each-ref`` with some arguments, oldest number first.

    Tags are read only to select ``annotated`` ones. Raises NpuprofError.
    """
    type_field = "%(objecttype)" if annotated else "tag"
    listed = git.run_command(
        "for-each-ref", f"--format={type_field} %(objectname) %(refname)", *arguments
    )
    from npuprof.store.versions import parse_tag_ref

    refs = []
    for line in decode_safely(listed).splitlines():
        kind, oid, name = line.split(" ", 2)
        if kind == "tag" and (ref := parse_tag_ref(name, oid)):
            refs.append(ref)
    return sorted(refs, key=attrgetter("sort_key"))


class CommitGraph(Record):
    """The tags reachable from each commit: a bit per tag."""

    refs: list[TagRef]
    masks: dict[str, int]


class Reachability:
    """Reachability of tags from commits, loaded on demand."""

    def __init__(self, git: Git) -> None:
        self._git = git
        #: Tags by preset, by commit or by mask of the graph: many commits have the same mask.
        self._seen: dict[str | int, dict[str, list[TagRef]]] = {}
        self._graph: CommitGraph | None = None

    def group_refs(self, commit: str) -> dict[str, list[TagRef]]:
        """Return the version tags reachable from a commit (full id) by preset.

        Raises NpuprofError.
        """
        if commit in self._seen:
            return self._seen[commit]
        if self._graph is None and len(self._seen) >= _SINGLE_COMMITS:
            self._graph = self._load_graph(commit)
        if self._graph is None or commit not in self._graph.masks:
            self._seen[commit] = _group_by_name(
                list_tag_refs(self._git, f"--merged={commit}", "refs/tags/")
            )
            return self._seen[commit]
        mask = self._graph.masks[commit]
        if mask not in self._seen:
            self._seen[mask] = _group_by_name(
                ref for bit, ref in enumerate(self._graph.refs) if mask >> bit & 1
            )
        return self._seen[mask]

    def _load_graph(self, commit: str) -> CommitGraph:
        """Return the graph of the commits behind branches, tags and one commit.

        It comes from one process.
        """
        refs = list_tag_refs(self._git, "refs/tags/")
        targets = self._git.read_objects([f"{ref.oid}^{{commit}}" for ref in refs])
        tips = [target.oid if target else "" for target in targets]
        listed = self._git.run_command(
            "rev-list",
            "--topo-order",
            "--reverse",  # parents first
            "--parents",
            # shallow clones lack the commits of older tags
            "--ignore-missing",
            "--branches",
            "--remotes",
            "--stdin",
            stdin=join_lines([commit, *(tip for tip in tips if tip)]).encode(),
        )
        masks: dict[str, int] = {}
        own = defaultdict[str, int](int)
        for bit, tip in enumerate(tips):
            own[tip] |= 1 << bit
        for line in listed.decode().splitlines():
            oid, *parents = line.split(" ")
            mask = own.get(oid, 0)
            for parent in parents:
                mask |= masks.get(parent, 0)
            masks[oid] = mask
        return CommitGraph(refs, masks)


def _group_by_name(refs: Iterable[TagRef]) -> dict[str, list[TagRef]]:
    return group_pairs((ref.name, ref) for ref in refs)
