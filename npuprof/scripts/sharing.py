"""What many presets have in common, said once: a base, and mix-ins, chosen by the length of what has to be written.

The length of a family is the number of its lines that say something: a line for each setting and each ``scenario``
wherever it stands, a line for each entry of an ``extends``, and ``FILE_LINES`` for each file, which stand for its head,
its description and for having to open it. What makes the whole shorter is shared, and nothing else; the greatest gain comes first.

Nobody inherits what it has to take back. A mix-in is extended where all of it holds. A base may be overruled, which costs the line
that would stand there anyway, but only by who sets the same key; so no ``unset`` is ever needed. Who shares a single line with a base
says that line itself: an ``extends`` would be no shorter, and what is overruled has to be read as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

from npuprof.catalog import values
from npuprof.document import keys

#: A key, and the text of its value.
Pair = tuple[str, str]

#: What a file more costs, in lines.
FILE_LINES = 4

_MOST_MIXINS = 24
_MOST_PAIRS = 200  #: the commonest ones, among which a base is looked for
_MOST_SEEDS = 40  #: the commonest ones, which are tried two by two
_MOST_BASE_SEEDS = 8
MOST_TOPICS = 2


def list_pairs(facts: Mapping[str, Any]) -> frozenset[Pair]:
    """Return settings as pairs of key and text, the same for the same value only; what is written as a string is that very string."""
    return frozenset((key, _write_value(key, value)) for key, value in facts.items())


def _write_value(key: str, value: Any) -> str:
    written = keys.format_toml_value(values.build_canonical_value(key, value))
    return f"{written} {value!r}" if isinstance(value, str) else written


class Index:
    """Which leaves have a pair, and which have its key: sets of leaves as bits."""

    def __init__(self, leaves: Sequence[Iterable[Pair]]) -> None:
        self.pairs: dict[Pair, int] = {}
        self.keys: dict[str, int] = {}
        for at, pairs in enumerate(leaves):
            for pair in pairs:
                self.pairs[pair] = self.pairs.get(pair, 0) | 1 << at
        for pair, bits in self.pairs.items():
            self.keys[pair[0]] = self.keys.get(pair[0], 0) | bits

    def list_common_pairs(self, most: int) -> list[Pair]:
        """Return the pairs that more than one leaf has, the commonest first."""
        common = [pair for pair, bits in self.pairs.items() if bits.bit_count() > 1]
        return sorted(common, key=lambda pair: (-self.pairs[pair].bit_count(), pair))[:most]


def measure_alone(leaves: Iterable[Iterable[object]]) -> int:
    """Return the length of presets of which each says everything itself."""
    return sum(FILE_LINES + sum(1 for _ in pairs) for pairs in leaves)


def measure_family(shared: Iterable[Iterable[object]], own: Iterable[tuple[int, Iterable[object]]]) -> int:
    """Return the length of a family: of what is shared, and of the leaves, each with the number of those it extends."""
    return measure_alone(shared) + sum(FILE_LINES + parents + sum(1 for _ in pairs) for parents, pairs in own)


def choose_base(leaves: Sequence[frozenset[Pair]], may_overrule: Callable[[str], bool]) -> tuple[frozenset[Pair], set[int]]:
    """Return the pairs of a base, and the leaves that extend it; nothing where it would not be shorter.

    It is one for most of the leaves, or if there is none for a quarter of them; what fewer have in common is for mix-ins.
    """
    for fewest in (len(leaves) // 2 + 1, -(-len(leaves) // 4)):
        pairs, heirs = _find_base(leaves, may_overrule, fewest)
        if pairs:
            return pairs, heirs
    return frozenset(), set()


def _find_base(leaves: Sequence[frozenset[Pair]], may_overrule: Callable[[str], bool], fewest: int) -> tuple[frozenset[Pair], set[int]]:
    index = Index(leaves)
    common = index.list_common_pairs(_MOST_PAIRS)

    def find_heirs(pairs: Iterable[Pair]) -> tuple[int, int]:
        """Return the leaves that may extend a base of these pairs and share two of them at least, and how many lines it saves them."""
        allowed = reduce(and_, (index.keys[key] if may_overrule(key) else index.pairs[key, text] for key, text in pairs))
        having = [allowed & index.pairs[pair] for pair in pairs]
        once = heirs = 0
        for bits in having:
            once, heirs = once | bits, heirs | once & bits
        return heirs, sum((bits & heirs).bit_count() for bits in having) - heirs.bit_count()

    def weigh(pairs: frozenset[Pair]) -> int:
        heirs, saved = find_heirs(pairs)
        lacking = fewest - heirs.bit_count()  # of sets that are no base the one that comes nearest is looked at further
        return saved - len(pairs) - FILE_LINES if lacking <= 0 else -len(index.pairs) - FILE_LINES - lacking

    best, gain = frozenset[Pair](), 0
    for seed in common[:_MOST_BASE_SEEDS]:
        chosen = frozenset({seed})
        reached = weigh(chosen)
        while True:
            wider = [chosen | {pair} for pair in common if all(pair[0] != key for key, _ in chosen)]
            narrower = [chosen - {pair} for pair in sorted(chosen)] if len(chosen) > 1 else []
            tried = max(((weigh(one), one) for one in (*wider, *narrower)), key=lambda pair: (pair[0], _order_back(pair[1])), default=None)
            if tried is None or tried[0] <= reached:
                break
            reached, chosen = tried
        if reached > gain:
            best, gain = chosen, reached
    if not best:
        return best, set()
    return best, set(_list_bits(find_heirs(best)[0]))


def choose_mixins(leaves: Sequence[frozenset[Pair]], find_topic: Callable[[Pair], str]) -> list[tuple[frozenset[Pair], set[int]]]:
    """Return the pairs of mix-ins and the leaves that extend each, the most saving first.

    A mix-in is about one thing or two: what has nothing to do with each other is not put together, or nobody could name it. So there
    is one about the same two things.
    """
    rest = [set(pairs) for pairs in leaves]
    found: list[tuple[frozenset[Pair], set[int]]] = []
    taken: set[frozenset[str]] = set()
    while len(found) < _MOST_MIXINS:
        index = Index(rest)
        best, gain, heirs = frozenset[Pair](), 0, 0
        for pairs in _find_closed_sets(index, find_topic):
            if frozenset(map(find_topic, pairs)) in taken:
                continue
            users = reduce(and_, (index.pairs[pair] for pair in pairs))
            saved = users.bit_count() * (len(pairs) - 1) - len(pairs) - FILE_LINES
            if saved > gain or (saved == gain and best and _order_back(pairs) > _order_back(best)):
                best, gain, heirs = pairs, saved, users
        if not best:
            break
        taking = set(_list_bits(heirs))
        for at in taking:
            rest[at] -= best
        found.append((best, taking))
        if len(topics := frozenset(map(find_topic, best))) > 1:
            taken.add(topics)
    return found


def _find_closed_sets(index: Index, find_topic: Callable[[Pair], str]) -> Iterator[frozenset[Pair]]:
    """Yield what all leaves have that have a common pair, or two of them, within the topics of those."""
    common = index.list_common_pairs(_MOST_PAIRS)
    topics = {pair: find_topic(pair) for pair in common}
    seen: set[tuple[int, frozenset[str]]] = set()

    def close(bits: int, about: frozenset[str]) -> frozenset[Pair] | None:
        if bits.bit_count() < 2 or (bits, about) in seen:
            return None
        seen.add((bits, about))
        pairs = frozenset(pair for pair in common if topics[pair] in about and not bits & ~index.pairs[pair])
        return pairs if len(pairs) > 1 else None

    for pair in common:
        if pairs := close(index.pairs[pair], frozenset({topics[pair]})):
            yield pairs
    for at, one in enumerate(common[:_MOST_SEEDS]):
        for other in common[at + 1 : _MOST_SEEDS]:
            about = frozenset({topics[one], topics[other]})
            if len(about) <= MOST_TOPICS and (pairs := close(index.pairs[one] & index.pairs[other], about)):
                yield pairs


def _order_back(pairs: frozenset[Pair]) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """Return a key by which, of equally good sets, the longer one and then the first by name is the greatest."""
    return len(pairs), tuple(tuple(-ord(char) for char in f"{key}\0{text}") for key, text in sorted(pairs))


def _list_bits(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
