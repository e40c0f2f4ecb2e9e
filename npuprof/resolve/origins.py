"""Origins of effective and overridden values at a path of a preset."""

from __future__ import annotations

from npuprof.catalog import values
from npuprof.model import LIST_OPS, Any, Fields, Origin, Path, Step
from npuprof.resolve.config import Config
from npuprof.system import list_items, map_leaves


def find_overridden(config: Config, key: str, tail: Path) -> list[tuple[Any, Origin]]:
    """Return the overridden values at a path with their origins, latest first."""
    winners = {
        (origin.revision, origin.file, origin.path) for origin in find_authors_at(config, key, tail)
    }
    lost = []
    history = config.history(key)
    # the common case: a single step overrides nothing
    if winners and len(history) == 1:
        return []
    places = _locate_step_values(key, [event.step for event in history], tail)
    for event, place in reversed([*zip(history, places, strict=True)]):
        if event.step.op in ("unset", "remove") or place is None:
            continue
        is_set, value = values.find_value(key, event.step.value, place)
        if not is_set:
            continue
        # all parts of a string have the place of the string
        written = isinstance(event.step.value, str)
        origin = event.origin if written else event.origin.locate_below(*place)
        inside = {
            (origin.revision, origin.file, path)
            for path in ([origin.path] if written else _list_paths(value, origin.path))
        }
        # a step counts as overridden only if none of its leaves is effective
        if not inside & winners:
            lost.append((value, origin))
    return lost


def find_authors_at(config: Config, key: str, tail: Path) -> list[Origin]:
    """Return the origin of each leaf at a path, in order."""
    is_set, value = values.find_value(key, config.traced_value(key), tail)
    return collect_authors(value) if is_set and value is not None else []


def collect_authors(value: Any) -> list[Origin]:
    """Return the origin of each leaf of a value."""
    if isinstance(value, values.Leaf):
        return [value.origin]
    return [origin for _, item in list_items(value) for origin in collect_authors(item)]


def _locate_step_values(key: str, steps: list[Step], tail: Path) -> list[Path | None]:
    """Return, for each step, the path in its value that contributes to ``tail``.

    ``tail`` is a path in the effective value. A step that does not contribute has None.
    """
    depth = next((depth for depth, part in enumerate(tail) if isinstance(part, int)), None)
    if depth is None:
        return [tail for _ in steps]
    states = list_states(key, steps)
    places: list[Path | None] = []
    index = tail[depth]
    # backwards: the index in the effective list is followed into the lists of earlier layers
    for step, before, after in reversed([*zip(steps, states, states[1:], strict=False)]):
        place = index
        if step.op in LIST_OPS:
            old, new, own = (
                values.find_value(key, values.parse_structured_value(key, state), tail[:depth])[1]
                or []
                for state in (before, after, step.value)
            )
            if step.op == "remove":
                kept = [
                    number for number, item in enumerate(old) if values.subtract_lists([item], own)
                ]
                index = kept[index] if index < len(kept) else len(old)
            elif index < len(old):
                places.append(None)
                continue
            else:
                # appended elements come after the existing ones; a set lacks repeated ones
                place = index - len(old)
                while place < len(own) and [own[place]] != new[index : index + 1]:
                    place += 1
        places.append((*tail[:depth], place, *tail[depth + 1 :]))
    return places[::-1]


def list_states(key: str, steps: list[Step]) -> list[Any]:
    """Return the value of a setting before each step, and after the last one."""
    states = [None]
    for step in steps:
        states.append(
            values.remove_path(key, states[-1], step.tail)
            if step.op == "unset"
            else values.change_value(key, step.op, states[-1], step.value)
        )
    return states


def are_apart(path: Path, other_path: Path) -> bool:
    """Return whether neither path contains the other."""
    return any(left != right for left, right in zip(path, other_path, strict=False))


def _list_paths(value: Any, path: Path) -> list[Path]:
    return [
        path,
        *(inner for name, item in list_items(value) for inner in _list_paths(item, (*path, name))),
    ]


def strip_origins(value: Any) -> Any:
    """Return a traced value without its origins."""
    return map_leaves(lambda leaf: leaf.value if isinstance(leaf, values.Leaf) else leaf, value)


def build_origin_dict(origin: Origin) -> Fields:
    """Return an origin as the fields of the JSON form."""
    return {
        "profile": origin.profile,
        "path": origin.file,
        "line": origin.line or None,
        "column": origin.column or None,
        "layer": origin.layer,
        "revision": origin.revision,
    }
