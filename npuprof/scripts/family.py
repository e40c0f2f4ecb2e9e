"""Many presets to a family: a common base, mix-ins for what several share, and leaves with the rest.

The choice is by length: a line moves into the base or a mix-in where the whole gets shorter by it. What comes out
is resolved again and compared with what went in, leaf by leaf.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from npuprof import catalog
from npuprof.catalog import values
from npuprof.document import keys, parse_document
from npuprof.document.profile import Profile
from npuprof.model import Origin
from npuprof.resolve import Resolver
from npuprof.resolve.digests import compute_digest
from npuprof.scripts import preset
from npuprof.scripts.preset import Draft

Pair = tuple[str, str]
_MOST_MIXINS = 24


class Family:
    """The files of a family by preset name, and for each leaf its digest before and after."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.proof: dict[str, tuple[str, str]] = {}
        self.lines_before = 0
        self.lines_after = 0

    @property
    def is_proven(self) -> bool:
        """Whether every leaf resolves as before."""
        return all(before == after for before, after in self.proof.values())


def build_family(drafts: list[Draft]) -> Family:
    """Return a family that resolves to the drafts."""
    result = Family()
    _make_names_unique(drafts)
    table: dict[Pair, Any] = {}
    leaves: dict[str, set[Pair]] = {}
    for draft in drafts:
        pairs = set()
        for key, value in draft.settings.items():
            pair = (
                key,
                keys.format_toml_value(values.build_canonical_value(key, value)) + (f" {value!r}" if isinstance(value, str) else ""),
            )
            table.setdefault(pair, value)
            pairs.add(pair)
        leaves[draft.name] = pairs
    base = _choose_base(leaves)
    left = {name: pairs - base for name, pairs in leaves.items()}
    mixins = _choose_mixins(left)
    if base:
        result.files["base"] = _format_shared_preset("what most of the imported scripts have in common", base, table)
    for name, pairs in mixins.items():
        result.files[name] = _format_shared_preset("shared by several of the imported scripts", pairs, table)
    for draft in drafts:
        own = set(left[draft.name])
        extends = ["base"] if base else []
        for name, pairs in mixins.items():
            if pairs <= own:
                extends.append(name)
                own -= pairs
        covered = {key for key, _ in leaves[draft.name]}
        unset = tuple(sorted(key for key, _ in base if key not in covered))
        settings = {pair[0]: table[pair] for pair in sorted(own)}
        result.files[draft.name] = preset.format_draft(draft, tuple(extends), settings, unset)
    result.lines_before = sum(len(pairs) for pairs in leaves.values())
    result.lines_after = len(base) + sum(map(len, mixins.values()))
    result.proof = _compare_leaf_digests(drafts, result.files)
    for draft in drafts:
        own = set(left[draft.name])
        for pairs in mixins.values():
            own -= pairs if pairs <= own else set()
        result.lines_after += len(own) + sum(key not in {k for k, _ in leaves[draft.name]} for key, _ in base)
    return result


def _make_names_unique(drafts: list[Draft]) -> None:
    taken: set[str] = {"base"}
    for draft in drafts:
        name, number = draft.name, 1
        while name in taken or name.startswith("mixins/"):
            number += 1
            name = f"{draft.name}-{number}"
        draft.name = name
        taken.add(name)


def _choose_base(leaves: dict[str, set[Pair]]) -> set[Pair]:
    """Return the pairs that are cheaper to say once and to take back where they do not hold."""
    if len(leaves) < 2:
        return set()
    setting: dict[str, int] = {}
    count: dict[Pair, int] = {}
    for pairs in leaves.values():
        for pair in pairs:
            count[pair] = count.get(pair, 0) + 1
            setting[pair[0]] = setting.get(pair[0], 0) + 1
    chosen: dict[str, Pair] = {}
    for pair in sorted(count, key=lambda pair: (-count[pair], pair)):
        saved = count[pair] - 1 - (len(leaves) - setting[pair[0]])
        if pair[0] not in chosen and saved > 0 and count[pair] * 2 > len(leaves):
            chosen[pair[0]] = pair
    return set(chosen.values())


def _choose_mixins(left: dict[str, set[Pair]]) -> dict[str, set[Pair]]:
    """Return groups of pairs that several leaves share, the most saving first, named by what they set."""
    rest = {name: set(pairs) for name, pairs in left.items()}
    found: dict[str, set[Pair]] = {}
    while len(found) < _MOST_MIXINS:
        distinct = list({frozenset(pairs) for pairs in rest.values() if len(pairs) > 1})
        distinct.sort(key=lambda pairs: (-len(pairs), sorted(pairs)))
        candidates = set(distinct[:60]) | {one & other for one, other in combinations(distinct[:60], 2)}
        best, saving = frozenset[Pair](), 0
        for candidate in sorted(candidates, key=sorted):
            if len(candidate) < 2:
                continue
            users = sum(candidate <= pairs for pairs in rest.values())
            saved = (len(candidate) - 1) * users - len(candidate) - 2
            if users > 1 and saved > saving:
                best, saving = candidate, saved
        if not best:
            return found
        found[_name_mixin(best, found)] = set(best)
        for name, pairs in rest.items():
            if best <= pairs:
                rest[name] = pairs - best
    return found


def _name_mixin(pairs: frozenset[Pair], taken: dict[str, set[Pair]]) -> str:
    pages: dict[str, int] = {}
    for key, _ in pairs:
        option = catalog.find_option(key)
        page = option.page if option else keys.split_section_and_name(key)[0]
        pages[page] = pages.get(page, 0) + 1
    name = f"mixins/{min(pages, key=lambda page: (-pages[page], page))}"
    number = 1
    while (name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    return name if number == 1 else f"{name}-{number}"


def _format_shared_preset(description: str, pairs: set[Pair], table: dict[Pair, Any]) -> str:
    draft = Draft("", "")
    draft.settings = {pair[0]: table[pair] for pair in sorted(pairs)}
    written = preset.format_draft(draft)
    head, _, rest = written.partition("\n")
    body = rest.partition("\n")[2]
    return f"{head}\ndescription = {keys.format_toml_value(description)}\nabstract = true\n{body}"


class _MemoryStore:
    """A store in memory."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files
        self.read: dict[str, Profile] = {}

    def profile(self, name: str, asked: Origin | None = None) -> Profile:
        if name not in self.read:
            self.read[name] = Profile(parse_document(name, f"{name}.toml", self.files[name]), home=self)
        return self.read[name]

    def find_policy(self, name: str) -> None:
        """Return nothing: these presets belong to no team yet."""


def _compare_leaf_digests(drafts: list[Draft], files: dict[str, str]) -> dict[str, tuple[str, str]]:
    store = _MemoryStore(files)
    resolver = Resolver(lambda reference, _referrer, _index: store.profile(reference))
    return {draft.name: (compute_digest(draft.settings), resolver.resolve_profile(store.profile(draft.name)).digest) for draft in drafts}
