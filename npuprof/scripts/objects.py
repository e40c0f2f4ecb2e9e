"""Drafts of objects that one line of a script makes unlike each other: one for each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from npuprof.catalog.values import is_same_typed_value
from npuprof.scripts.configurations import Group, Layout
from npuprof.scripts.draft import Draft, Note, Source
from npuprof.scripts.drafting import absorb_draft
from npuprof.scripts.reading.rehearsal.variants import Variant


def build_variants(
    layout: Layout, given: Mapping[str, Group], build: Callable[[Group], Draft]
) -> tuple[list[Draft], dict[str, list[Draft]]]:
    """Return a draft for each of the objects that one line makes unlike each other, and those that have settings of a scope, by that.

    ``given`` are the session configurations that a NPURunConfig is given, ``build`` makes a draft of a group.
    """
    families: dict[str, list[Variant]] = {}
    for one in layout.variants:
        families.setdefault(one.family, []).append(one)
    made: list[Draft] = []
    taken: dict[str, list[Draft]] = {}
    for variants in families.values():
        groups = [group for group in layout.groups if _has_any(group, variants)]
        if not groups:
            continue  # what they set belongs to other files, which call it
        drafts = []
        for at, variant in enumerate(variants):
            parts = [_select(group, variant, at == 0) for group in groups]
            drafts.append(_build_variant(layout, parts, variant, variants, build))
        made += drafts
        taken |= {group.scope: drafts for group in groups}
    return made, taken


def find_used_at(drafts: Sequence[Draft], line: int, is_one_of_them: bool) -> Draft | None:
    """Return the draft of the object that is used in a line; what all of them set where it is one of them, but nobody knows which."""
    found = [draft for draft in drafts if draft.used_at == line or (is_one_of_them and len(drafts) == 1)]
    if found or not is_one_of_them:
        return found[0] if found else None
    shared = Draft(drafts[0].name, drafts[0].file)
    shared.surfaces = set(drafts[0].surfaces)
    for key, value in drafts[0].settings.items():
        if all(key in one.settings and is_same_typed_value(one.settings[key], value) for one in drafts):
            shared.settings[key], shared.origins[key] = value, drafts[0].origins[key]
    return shared


def _has_any(group: Group, variants: Sequence[Variant]) -> bool:
    labels = {one.label for one in variants}
    return any(not labels.isdisjoint(one.objects) for one in group.found)


def _select(group: Group, variant: Variant, is_first: bool) -> Group:
    """Return of a group what one of the objects has; what none has is told with the first one."""
    return group._replace(found=tuple(one for one in group.found if variant.label in one.objects or (is_first and not one.objects)))


def _build_variant(
    layout: Layout, groups: Sequence[Group], variant: Variant, variants: Sequence[Variant], build: Callable[[Group], Draft]
) -> Draft:
    home = next((group for group in groups if not group.is_fragment), groups[0])
    draft = build(home)
    for group in groups:
        if group is not home and group.found:
            part = build(group)
            for key, value in list(part.settings.items()):
                if key in draft.settings and not is_same_typed_value(draft.settings[key], value):
                    _set_aside(draft, part, key)
            absorb_draft(draft, part)
    draft.labels = layout.describe_object(home)
    draft.used_at = variant.line if variant.is_given else 0
    if len(variants) > 1:
        draft.labels = (_tell_apart(variant, variants), *draft.labels)
        draft.sources = [Source(draft.file, variant.line, variant.owner or variant.function)]
    return draft


def _set_aside(draft: Draft, part: Draft, key: str) -> None:
    """Leave out what two functions set to different values, of which nobody knows which comes last."""
    lines = " and ".join(str(one.origins[key].line) for one in (draft, part))
    for one in (draft, part):
        found = one.origins.pop(key)
        del one.settings[key]
        one.carried = [other for other in one.carried if other.key != key]
        one.notes.append(Note(found, f"lines {lines} set it to different values"))


def _tell_apart(variant: Variant, variants: Sequence[Variant]) -> str:
    """Return what tells an object from the others: its class, the function that uses it, or the line where it does."""
    for names in ([one.owner for one in variants], [one.function for one in variants]):
        if all(names) and len(set(names)) == len(names):
            return names[variants.index(variant)]
    return f"line-{variant.line}"
