"""Two states of one store: which presets resolve differently, through which file, and which broke or were mended."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from npuprof import checks
from npuprof.compare import changes as diff
from npuprof.compare.changes import Change
from npuprof.compare.renames import match_renamed_presets
from npuprof.compare.scopes import find_scoped_changes
from npuprof.model import Context, Finding, NpuprofError, Record, did_you_mean
from npuprof.report.output import read_plain_file
from npuprof.resolve import Resolver
from npuprof.resolve.config import Config
from npuprof.store import Folder, has_release_tags, has_sparse_checkout, spec
from npuprof.store.parents import is_source_reference
from npuprof.store.repository import TreeFile
from npuprof.store.revision import Revision
from npuprof.store.sources.mirror import UNTOLD, advise_sync_of, is_untold
from npuprof.store.worktree import find_converted_files, find_work_tree_layout, list_absent_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.policy import TeamRule
    from npuprof.store.sources.opening import Sources

_EXTENDS = re.compile(rb"""extends["']?\s*=\s*\[([^\]]*)\]""")
_NAMES = re.compile(rb"""\s*(?:(?:"[^"\\\n]*"|'[^'\n]*')\s*(?:,\s*|$))*""")
_NAME = re.compile(rb"""("[^"\n]*"|'[^'\n]*')""")
_ESCAPE = re.compile(rb"\\[uUx]")


class Pair(Record):
    """One preset before and after. ``status`` is ``changed``, ``added``, ``removed``, ``unchanged``, or ``unknown`` where nobody can tell.

    ``was`` is the name it had before, where it was renamed. ``broken`` are the errors and warnings it has now and had not
    before, ``mended`` the other way round; ``valid`` says whether it has no errors, before and after (None: not there).
    ``unread`` says that nothing is known of what differs: it cannot be read or resolved now, or a source that one of its sides
    builds on is not on this machine, as ``untold`` says.
    """

    name: str
    status: str
    changes: tuple[Change, ...] = ()
    was: str = ""
    before: Config | None = None
    after: Config | None = None
    broken: tuple[Finding, ...] = ()
    mended: tuple[Finding, ...] = ()
    valid: tuple[bool | None, bool | None] = (None, None)
    unread: bool = False
    untold: tuple[Finding, ...] = ()

    @property
    def is_touched(self) -> bool:
        """Whether there is anything to say about it: it differs, has other warnings, or that cannot be told."""
        return bool(self.is_different or self.broken or self.mended or self.untold)

    @property
    def is_different(self) -> bool:
        """Whether it resolves differently, has another name or other errors."""
        came_and_went = (*self.broken, *self.mended)
        return bool(
            self.status not in ("unchanged", "unknown") or self.was or any(finding.severity == "error" for finding in came_and_went)
        )


class Survey(Record):
    """All presets of two states of a store that were asked for; ``before`` and ``after`` name the states.

    ``untold`` are files of which nobody can tell whether they differ, as a filter is not run, and the names of the filters.
    """

    before: str
    after: str
    pairs: tuple[Pair, ...]
    untold: Mapping[str, str] = MappingProxyType({})

    @property
    def touched_pairs(self) -> list[Pair]:
        """The presets that there is anything to say about."""
        return [pair for pair in self.pairs if pair.is_touched]

    @property
    def unknown_pairs(self) -> list[Pair]:
        """The presets of which nobody can tell whether they differ, and that are not known to."""
        return [pair for pair in self.pairs if pair.untold and not pair.is_different]

    @property
    def different_pairs(self) -> list[Pair]:
        """The presets that differ; those that only have other warnings do not."""
        return [pair for pair in self.pairs if pair.is_different]


class WorkTree:
    """A store in a folder, with the ids git would give to its files; what a sparse checkout keeps out of it is there."""

    def __init__(self, folder: Folder, before: Revision) -> None:
        self.store = folder
        self.absent: dict[str, TreeFile] = {}
        self._repository = before.repository
        self._texts: dict[str, bytes] = {}
        there = set(folder.names())
        if has_sparse_checkout(folder.root) or before.files.keys() - there:
            self.absent = {
                name: file
                for name, file in list_absent_files(before.repository, find_work_tree_layout(before.repository, folder)).items()
                if name not in there
            }
            folder.read_absent = lambda name: self.read_profile_text(name) if name in self.absent else None

    def load_texts(self, names: set[str]) -> None:
        """Read what is not in the folder in one go; files are read one by one, when they are asked for."""
        wanted = {name: self.absent[name].oid for name in names if name in self.absent and name not in self._texts}
        found = self._repository.git.read_contents(wanted.values()) if wanted else {}
        self._texts |= {name: found[oid] for name, oid in wanted.items()}

    def read_profile_text(self, name: str) -> bytes:
        """Return the text of a file; empty where it cannot be read (the resolver will say why)."""
        if name in self.absent:
            self.load_texts({name})
        if name not in self._texts:
            try:
                self._texts[name] = read_plain_file(self.store.profile_path(name))
            except OSError:
                self._texts[name] = b""
        return self._texts[name]

    def is_same_file(self, name: str, other: TreeFile) -> bool:
        """Return whether a file is what git has, line endings aside."""
        if name in self.absent:
            return self.absent[name] == other
        text = self.read_profile_text(name)
        for content in (text, text.replace(b"\r\n", b"\n")) if b"\r\n" in text else (text,):
            if compute_blob_id(content, len(other.oid)) == other.oid:
                return not os.path.islink(self.store.profile_path(name))
        return False


def compute_blob_id(content: bytes, length: int) -> str:
    """Return the id that git gives to the content of a file; its length tells the hash that a repository uses."""
    import hashlib

    make = hashlib.sha256 if length == 64 else hashlib.sha1
    return make(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def build_preset_pair(before: Config, after: Config, name: str = "") -> Pair:
    """Return what differs between two configs, and between the errors they have."""
    changes = tuple(_compare_with_scopes(before, after))
    made = Pair(name or after.name, "changed" if changes else "unchanged", changes, "", before, after)
    return _add_fault_changes(made, _judge_side(before, ""), _judge_side(after, ""))


def compare_store_states(
    before: Revision, after: Revision | Folder, labels: tuple[str, str], context: Context, names: Sequence[str] = (), raw: bool = False
) -> Survey:
    """Return every preset of two states of a store that may differ between them, or those of given names.

    Files with equal contents whose ancestors are equal too are not even read. With ``raw`` the files are compared
    as they are written. Raises NpuprofError for a name that is in neither state.
    """
    old, new = _StoreSide(before, context, before), _StoreSide(after, context, before)
    unchanged = {name for name in old.names & new.names if new.is_same_file(name, before.files[name])}
    changed = (old.names | new.names) - unchanged
    untold: dict[str, str] = {}
    if isinstance(new.texts, WorkTree) and (differing := changed & old.names & new.names):
        converted, untold = find_converted_files(before.repository, differing, before.files)
        changed -= converted
    renamed = match_renamed_presets(old.texts, new.texts, old.names - new.names, new.names - old.names)
    everything = sorted({*old.names, *new.names} - set(renamed.values()))
    wanted = _select_named_presets(names, everything, renamed) if names else everything
    if raw:
        affected = changed
    elif names:
        affected = set(wanted)
        old.texts.load_texts(old.names)
        new.texts.load_texts(new.names)
    else:
        affected = _find_reached_presets(old, new, changed)
    pairs = []
    for name in wanted:
        was = renamed.get(name, name)
        if name not in affected and was not in affected:
            pairs.append(Pair(name, "unchanged"))
        elif raw:
            pairs.append(_compare_raw_preset(old, new, name, was))
        else:
            pairs.append(_compare_resolved_preset(old, new, name, was))
    return Survey(*labels, tuple(pairs), untold)


def compare_lock_states(before: Folder, after: Folder, labels: tuple[str, str], context: Context) -> Survey:
    """Return what differs in the presets of a folder between two states of the sources they build on.

    The two are the same folder, each with the sources of its state; a preset that none of them reaches is unchanged.
    """
    resolvers: list[Resolver] = []
    for side in (before, after):
        workspace = spec.Workspace(None, context)
        workspace.use_store(side)
        resolvers.append(workspace.resolver)
    pairs: list[Pair] = []
    for name in after.names():
        sides: list[Config | NpuprofError | None] = []
        for store, resolver in zip((before, after), resolvers, strict=True):
            try:
                sides.append(resolver.resolve_profile(store.profile(name)))
            except NpuprofError as error:
                sides.append(error)
        lines = [[(member.key, member.document.text) for member in side.lineage] for side in sides if isinstance(side, Config)]
        if len(lines) == 2 and lines[0] == lines[1]:
            pairs.append(Pair(name, "unchanged"))
        else:
            pairs.append(_build_resolved_pair(sides[0], sides[1], name, name, (before.label, after.label)))
    return Survey(*labels, tuple(pairs))


def _compare_with_scopes(before: Config, after: Config) -> list[Change]:
    found = diff.compare_configs(before, after)
    return [*found, *find_scoped_changes(before, after, found)]


class _StoreSide:
    """One state: its names, its texts, and its presets resolved."""

    def __init__(self, store: Revision | Folder, context: Context, other: Revision) -> None:
        self.store = store
        self.texts: Revision | WorkTree = store if isinstance(store, Revision) else WorkTree(store, other)
        self.names = set(store.names())
        if isinstance(self.texts, WorkTree):
            self.names |= self.texts.absent.keys()
        self.workspace = spec.Workspace(None, context)
        self.workspace.use_store(store)

    def is_same_file(self, name: str, other: TreeFile) -> bool:
        """Return whether a file is what the other state has, certainly: where a link leads may have changed."""
        if other.is_link:
            return False
        return self.texts.is_same_file(name, other) if isinstance(self.texts, WorkTree) else self.texts.files[name] == other

    def read_parent_names(self, name: str) -> list[str] | None:
        """Return all names that a file may extend, without parsing it where its text is plain; None: cannot be read."""
        try:
            found = read_plain_parents(self.texts.read_profile_text(name))
            return list(self.store.profile(name).extends) if found is None else found
        except NpuprofError:
            return None

    def resolve_preset(self, name: str) -> Config | NpuprofError | None:
        if name not in self.names:
            return None
        try:
            return self.workspace.resolver.resolve_profile(self.store.profile(name))
        except NpuprofError as error:
            return error


def _select_named_presets(names: Sequence[str], known: list[str], renamed: dict[str, str]) -> list[str]:
    found, problems = [], []
    now = {was: name for name, was in renamed.items()}
    for name in names:
        name = now.get(name, name)
        if name in known:
            found.append(name)
        else:
            problems.append(Finding("NP008", f"there is no profile {name!r} on either side", "", did_you_mean(name, known)))
    if problems:
        raise NpuprofError(problems)
    return sorted(dict.fromkeys(found))


def _find_reached_presets(old: _StoreSide, new: _StoreSide, changed: set[str]) -> set[str]:
    """Return the changed names and all that may extend them; their texts have been read, each once."""
    moved = _have_moved_ranges(old.store, new.store)
    sources = _find_moved_sources(old.store, new.store)
    if _have_other_rules(old.store, new.store):
        return {*old.names, *new.names}
    if not changed and not moved and not sources:
        return set()
    new.texts.load_texts(new.names)
    heirs: dict[str, set[str]] = {}
    reached = set(changed)
    for name in new.names - changed:
        parents = new.read_parent_names(name)
        if parents is None:
            reached.add(name)
        for parent in parents or ():
            heirs.setdefault(parent, set()).add(name)
            if (moved and "@" in parent) or (is_source_reference(parent) and parent.partition(":")[0] in sources):
                reached.add(name)
    waiting = list(reached)
    while waiting:
        more = heirs.get(waiting.pop(), set()) - reached
        reached |= more
        waiting += more
    if isinstance(old.texts, Revision) and isinstance(new.texts, Revision):
        old.texts.adopt_texts(new.texts)
    old.texts.load_texts(reached)
    return reached


def _have_moved_ranges(before: Revision | Folder, after: Revision | Folder) -> bool:
    """Return whether a reference with an @ may mean something else in one state than in the other, though no file differs."""
    if not isinstance(before, Revision) or not before.commit or not has_release_tags(before.root):
        return False
    if before.release or (isinstance(after, Revision) and after.release):
        return True
    repository = before.repository
    seen = after.seen_from if isinstance(after, Revision) else ""
    head = None if seen else repository.git.read_objects(["HEAD"])[0]
    commit = seen or (head.oid if head else "")
    return not commit or not repository.sees_same_versions(before.commit, commit)


def _find_moved_sources(before: Revision | Folder, after: Revision | Folder) -> set[str]:
    """Return the names of the sources that are not the same in two states; all where one of them cannot be read."""
    from npuprof.store.sources.reading import find_sources

    try:
        old, new = find_sources(before), find_sources(after)
    except NpuprofError:
        return _AnyName()
    names = {*old.project.sources, *new.project.sources}
    return {
        name
        for name in names
        if (old.project.sources.get(name), old.lock.sources.get(name)) != (new.project.sources.get(name), new.lock.sources.get(name))
        or _has_edited_copy(old, name) != _has_edited_copy(new, name)
    }


def _has_edited_copy(sources: Sources, name: str) -> bool:
    from npuprof.store.sources.reading import find_copy_faults

    return sources.open_copy is not None and bool(sources.project.sources[name].vendor) and bool(find_copy_faults(sources, name))


def _have_other_rules(before: Revision | Folder, after: Revision | Folder) -> bool:
    """Return whether two states have other rules of the team; what cannot be understood is another rule."""
    said: list[list[TeamRule] | None] = []
    for home in (before, after):
        try:
            policy = home.load_policy()
            said.append([rule._replace(origin=None) for rule in policy.rules] if policy else [])
        except NpuprofError:
            said.append(None)
    return said[0] is None or said[0] != said[1]


class _AnyName(set[str]):
    """Stands for all names that there may be."""

    def __contains__(self, name: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


def read_plain_parents(text: bytes) -> list[str] | None:
    """Return the names that the text of a preset may extend, found without parsing; None where that takes a parser.

    Too many names do no harm: what looks like ``extends`` may stand in a comment or inside another text.
    """
    if _ESCAPE.search(text):
        return None  # the key itself may be written with it
    bodies = _EXTENDS.findall(text)
    if not all(map(_NAMES.fullmatch, bodies)) or (b"extends" in text and not bodies):
        return None
    return [name[1:-1].decode(errors="replace") for body in bodies for name in _NAME.findall(body)]


def _compare_resolved_preset(old: _StoreSide, new: _StoreSide, name: str, was: str) -> Pair:
    sides = old.resolve_preset(was), new.resolve_preset(name)
    made = _build_resolved_pair(*sides, name, was, (old.store.label, new.store.label))
    if not made.untold:
        return made
    untold = [
        advise_sync_of(finding, f"--rev {side.store.commit[:12]}") if isinstance(side.store, Revision) else finding
        for side, found in zip((old, new), sides, strict=True)
        for finding in _list_untold(found)
    ]
    return made._replace(untold=tuple(dict.fromkeys(untold)))


def _build_resolved_pair(
    before: Config | NpuprofError | None, after: Config | NpuprofError | None, name: str, was: str, labels: tuple[str, str]
) -> Pair:
    left = None if isinstance(before, NpuprofError) else before
    right = None if isinstance(after, NpuprofError) else after
    changes = tuple(_compare_with_scopes(left, right)) if left and right else ()
    untold = tuple(dict.fromkeys((*_list_untold(before), *_list_untold(after))))
    if before is None or after is None:
        status = "added" if before is None else "removed"
        only = right or left
        if only:
            changes = tuple(diff.build_one_sided_changes(only.ordered_settings(), status, only.origin))
    else:
        status = "changed" if changes or left is None or right is None else "unchanged"
        if left is None and right is None:
            status = "unchanged"
        status = "unknown" if untold else status
    unread = bool(untold) or isinstance(after, NpuprofError)
    made = Pair(name, status, changes, was if was != name else "", left, right, unread=unread, untold=untold)
    return _add_fault_changes(made, _judge_side(before, labels[0]), _judge_side(after, labels[1]))


def _list_untold(side: Config | NpuprofError | None) -> tuple[Finding, ...]:
    """Return what says that a source is not on this machine, so that nobody can tell what a preset is on a side."""
    return tuple(finding for finding in side.findings if finding.code in UNTOLD) if isinstance(side, NpuprofError) else ()


def _compare_raw_preset(old: _StoreSide, new: _StoreSide, name: str, was: str) -> Pair:
    documents: list[Any] = []
    faults: list[tuple[Finding, ...]] = []
    for side, called in ((old, was), (new, name)):
        try:
            documents.append(side.store.profile(called).document if called in side.names else None)
            faults.append(())
        except NpuprofError as error:
            documents.append(None)
            faults.append(tuple(error.findings))
    changes = tuple(diff.compare_documents(*documents))
    there = (was in old.names, name in new.names)
    status = "changed" if changes or any(faults) else "unchanged"
    status = status if all(there) else "added" if there[1] else "removed"
    return Pair(
        name, status, changes, was if was != name else "", None, None, faults[1], () if faults[1] else faults[0], unread=bool(faults[1])
    )


class _Verdict(NamedTuple):
    """What is wrong with one side of a pair: errors and warnings; ``label`` is what its store is called in them.

    One that is not ``judged`` could not be read or resolved: of what the checks would say of it, nothing is known.
    """

    is_there: bool
    faults: tuple[Finding, ...]
    label: str
    judged: bool = True

    @property
    def valid(self) -> bool | None:
        """Whether it has no errors; None where it is not there, or nobody can tell."""
        if is_untold(self.faults):
            return None
        return not any(fault.severity == "error" for fault in self.faults) if self.is_there else None

    def list_marks(self) -> list[tuple[str, str, str]]:
        """Return what makes each fault the same on the other side, where the store has another name."""
        marks = map(checks.identify_finding, self.faults)
        return [(code, key, message.replace(self.label, "the store") if self.label else message) for code, key, message in marks]


def _judge_side(side: Config | NpuprofError | None, label: str) -> _Verdict:
    if isinstance(side, NpuprofError):
        return _Verdict(True, tuple(side.findings), label, judged=False)
    try:
        return _Verdict(side is not None, tuple(checks.check_config(side, notes=False)) if side is not None else (), label)
    except NpuprofError as error:  # what the team says in that tree cannot be understood
        return _Verdict(True, tuple(error.findings), label, judged=False)


def _add_fault_changes(made: Pair, before: _Verdict, after: _Verdict) -> Pair:
    """Return a pair with the errors and warnings that came and went, found or from resolving."""
    marks = before.list_marks(), after.list_marks()
    broken = tuple(fault for fault, mark in zip(after.faults, marks[1], strict=True) if mark not in marks[0])
    broken = broken if not is_untold(before.faults) else ()
    known = after.is_there and after.judged and not is_untold(before.faults)
    mended = tuple(fault for fault, mark in zip(before.faults, marks[0], strict=True) if mark not in marks[1]) if known else ()
    return made._replace(broken=broken, mended=mended, valid=(before.valid, after.valid))
