"""Two states of one store: which presets resolve differently, through which file, and which broke or were mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from npuprof.compare.pairs import Pair, _build_resolved_pair, compare_raw_preset, compare_resolved_preset
from npuprof.compare.reach import find_reached_presets, select_named_presets
from npuprof.compare.renames import match_renamed_presets
from npuprof.compare.sides import StoreSide, WorkTree
from npuprof.model import Context, NpuprofError, Record
from npuprof.resolve import Resolver
from npuprof.resolve.config import Config
from npuprof.store import Folder, spec
from npuprof.store.gitstore.revisions import Revision
from npuprof.store.worktree import find_converted_files


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


def compare_store_states(
    before: Revision, after: Revision | Folder, labels: tuple[str, str], context: Context, names: Sequence[str] = (), raw: bool = False
) -> Survey:
    """Return every preset of two states of a store that may differ between them, or those of given names.

    Files with equal contents whose ancestors are equal too are not even read. With ``raw`` the files are compared
    as they are written. Raises NpuprofError for a name that is in neither state.
    """
    old, new = StoreSide(before, context, before), StoreSide(after, context, before)
    unchanged = {name for name in old.names & new.names if new.is_same_file(name, before.files[name])}
    changed = (old.names | new.names) - unchanged
    untold: dict[str, str] = {}
    if isinstance(new.texts, WorkTree) and (differing := changed & old.names & new.names):
        converted, untold = find_converted_files(before.repository, differing, before.files)
        changed -= converted
    renamed = match_renamed_presets(old.texts, new.texts, old.names - new.names, new.names - old.names)
    everything = sorted({*old.names, *new.names} - set(renamed.values()))
    wanted = select_named_presets(names, everything, renamed) if names else everything
    if raw:
        affected = changed
    elif names:
        affected = set(wanted)
        old.texts.load_texts(old.names)
        new.texts.load_texts(new.names)
    else:
        affected = find_reached_presets(old, new, changed)
    pairs = []
    for name in wanted:
        was = renamed.get(name, name)
        if name not in affected and was not in affected:
            pairs.append(Pair(name, "unchanged"))
        elif raw:
            pairs.append(compare_raw_preset(old, new, name, was))
        else:
            pairs.append(compare_resolved_preset(old, new, name, was))
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
