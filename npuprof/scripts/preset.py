"""Settings of scripts to presets: what always holds is carried over, the rest is said with place and reason."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog.values import find_structure, is_same_typed_value
from npuprof.checks.judgement import judge_value_alone
from npuprof.document import keys
from npuprof.document.keys import format_key_segment, format_short_value, format_toml_value, is_visible
from npuprof.model import SECTIONS, Finding, Place
from npuprof.scripts.reading.found import UNSET, FoundSetting, ImportedFile, Site
from npuprof.scripts.sidecars import find_sidecar, find_sidecar_structure, read_sidecar
from npuprof.store import find_repository_top

#: So many presets are made of one file; every setting is compared with all of them.
_MOST_DRAFTS = 200


class Note:
    """A setting that is not in the preset, why, and what to do about it."""

    __slots__ = ("found", "hint", "why")

    def __init__(self, found: FoundSetting, why: str, hint: str = "") -> None:
        self.found = found
        self.why = why
        self.hint = hint


class Draft:
    """A preset in the making: ``settings`` by full key, ``origins`` where each comes from, ``notes`` what is left."""

    def __init__(self, name: str, file: str, surface: str = "") -> None:
        self.name = name
        self.file = file
        self.surfaces = {surface} if surface else set()
        self.settings: dict[str, Any] = {}
        self.origins: dict[str, FoundSetting] = {}
        self.notes: list[Note] = []

    def section(self, section: str) -> dict[str, Any]:
        """Return the settings of a section by plain name, in the catalogue's order."""
        found = {}
        for key, value in self.settings.items():
            where, name = keys.split_section_and_name(key)
            if where == section:
                found[name] = value
        order = catalog.record_positions(section)
        return {name: found[name] for name in sorted(found, key=lambda name: (order.get(name, len(order)), name))}

    @property
    def scenario(self) -> str | None:
        """What the settings say about the scenario, None where they say nothing."""
        if self.surfaces == {"atc"}:
            return "offline-inference"
        return {0: "online-inference", 1: "training"}.get(self.settings.get("graph_run_mode"))  # type: ignore[arg-type]


def build_drafts(imported: ImportedFile, name: str | None = None, folders: Sequence[str] = ()) -> list[Draft]:
    """Return the presets that one file makes: one, or several where it holds settings that contradict each other.

    Files that the script names are read where they lie beside it, or below the folders.
    """
    sites = {site.scope: site for site in imported.sites}
    stem = name or preset_name(imported.file)
    groups: dict[str, list[FoundSetting]] = {}
    for one in imported.found:
        if not one.commented:
            groups.setdefault(one.scope, []).append(one)
    made: list[Draft] = []
    shared: list[Draft] = []
    for scope, group in groups.items():
        draft = _build_draft(stem, imported.file, group, sites.get(scope), folders)
        (shared if group[0].surface == "env" else made).append(draft)
    merged: list[Draft] = []
    for draft in made:
        home = next((other for other in merged if _are_compatible(other, draft)), None)
        if home is None and len(merged) == _MOST_DRAFTS:
            merged[0].notes += draft.notes
            merged[0].notes += [Note(one, f"the file makes more than {_MOST_DRAFTS} presets", "split it") for one in draft.origins.values()]
        elif home is None:
            merged.append(draft)
        else:
            _absorb_draft(home, draft)
    if shared and not merged:
        merged = [Draft(stem, imported.file)]
    for draft in shared:
        for home in merged:
            _absorb_draft(home, draft)
    merged = [draft for draft in merged if draft.settings or draft.notes]
    for number, draft in enumerate(merged):
        draft.name = stem if not number else f"{stem}-{number + 1}"
    return merged


def judge_draft(draft: Draft) -> list[Finding]:
    """Return the errors of the values that a draft carries over, at their places in the scripts."""
    return [
        Finding(fault.code, fault.message, fault.why, fault.hint, key=key, where=Place(one.file, one.line, one.column))
        for key, one in draft.origins.items()
        for fault in judge_value_alone(key, draft.settings[key])
        if fault.severity == "error"
    ]


def preset_name(file: str) -> str:
    """Return a name a preset may have, made of a file's name."""
    stem = posixpath.basename(file.replace(os.sep, "/"))
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.splitext(stem)[0]).lstrip(".-")
    return stem or "imported"


def _build_draft(name: str, file: str, group: list[FoundSetting], site: Site | None, folders: Sequence[str]) -> Draft:
    draft = Draft(name, file, group[0].surface)
    base = len(site.branches) if site else 0
    steady = _find_steady_settings(group, base)
    for one in group:
        if one.reason == UNSET:
            continue
        why, hint = _find_obstacle(one)
        if one.dead:
            why = f"never runs: {one.condition}" if one.condition else "never runs"
        if not why and one.branches[base:] and id(one) not in steady:
            why = f"only if {_format_condition(one, base)}"
            hint = _suggest_override(one, base)
        if why:
            draft.notes.append(Note(one, why, hint))
            if one.key in draft.settings and not one.dead and (one.reason or one.branches[base:]):
                continue
        else:
            draft.settings[one.key] = _read_preset_value(one, folders)
            draft.origins[one.key] = one
    return draft


def _find_steady_settings(group: list[FoundSetting], base: int) -> set[int]:
    """Return the settings that hold although they stand in branches: every arm of the ``if`` says the same."""
    found: set[int] = set()
    arms: dict[tuple[str, int, int], list[FoundSetting]] = {}
    for one in group:
        if len(one.branches) == base + 1 and not one.reason and one.key:
            arms.setdefault((one.key, one.branches[base][0], len(one.branches)), []).append(one)
    for ones in arms.values():
        numbers = sorted(one.branches[base][1] for one in ones)
        whole = len(numbers) > 1 and numbers == [1 - len(numbers), *range(len(numbers) - 1)]
        if whole and all(is_same_typed_value(one.value, ones[0].value) for one in ones):
            found |= {id(one) for one in ones}
    return found


def _format_condition(one: FoundSetting, base: int) -> str:
    texts = [text for _, _, text in one.branches[base:]]
    return " and ".join(texts if len(texts) == 1 else (f"({text})" for text in texts))


def _suggest_override(one: FoundSetting, base: int) -> str:
    """Return what to make of a branch: an override where the condition names a product or a scenario, else a mix-in."""
    text = _format_condition(one, base)
    from npuprof.catalog import products

    for word in re.findall(r"Ascend\w+", text):
        if family := products.find_product(word):
            return f'[[override]] match = {{ product = "{family}" }}'
    if re.search(r"\b(?:is_|do_)?train(?:ing)?\b", text, re.IGNORECASE) and "not " not in text:
        return '[[override]] match = { scenario = "training" }'
    if re.search(r"\b(?:do_|is_)?(?:infer(?:ence)?|predict|eval|test)\b", text, re.IGNORECASE) and "not " not in text:
        return '[[override]] match = { scenario = "online-inference" }'
    return "a mix-in preset, laid over this one with --with"


def _find_obstacle(one: FoundSetting) -> tuple[str, str]:
    """Return why a setting cannot be in a preset, and what to do; empty where it can."""
    if one.reason:
        hint = f"{format_toml_value(one.default)} is what the script takes if nobody says otherwise" if one.default is not None else ""
        return one.reason, hint
    if one.surface == "session":
        option = catalog.find_option(one.name)
        if option is None:
            return "no adapter reads the key", "see npuprof scan"
        if option.field is not None and one.field != option.field:
            return f"stored in .{one.field}, the adapter reads .{option.field}", "see npuprof scan"
        return "", ""
    section, name = keys.split_section_and_name(one.key)
    if section == "env":
        variable = catalog.find_variable(name)
        if variable is None:
            return "the catalogue does not know the variable", ""
        if variable.freeze in ("never", "launcher"):
            hint = f'write {name} = {{ launcher = "{variable.launcher}" }}' if variable.launcher else variable.advice
            return "a fact of one process or job, not of a preset", hint
        return "", ""
    if one.key in catalog.load_attributes()["choices"]:
        return "an attribute of global_options() that is no option", ""
    if section == "options" and catalog.find_option(one.key) is None:
        return "the catalogue does not know the option", "see npuprof scan"
    if section == "estimator":
        argument = catalog.find_argument(name)
        if argument is None:
            return "NPURunConfig takes no such argument", "see npuprof scan"
        return ("an object of the script", "") if argument.kind == "object" else ("", "")
    return "", ""


def _read_preset_value(one: FoundSetting, folders: Sequence[str]) -> Any:
    """Return the value a preset holds; a sidecar file that lies beside the script is written out."""
    structure = find_sidecar_structure(one) if find_structure(one.key) else None  # other files stay where they are
    path = find_sidecar(one.file, one.value, folders) if structure else None
    text = read_sidecar(path) if path else None
    parsed = structure.parse(text) if structure and text is not None else None
    return parsed if structure and parsed and not structure.faults(parsed) and structure.format(parsed) else one.value


def _are_compatible(home: Draft, draft: Draft) -> bool:
    if "atc" in home.surfaces | draft.surfaces:
        return False
    return all(key not in home.settings or is_same_typed_value(home.settings[key], value) for key, value in draft.settings.items())


def _absorb_draft(home: Draft, draft: Draft) -> None:
    for key, value in draft.settings.items():
        home.settings.setdefault(key, value)
        home.origins.setdefault(key, draft.origins[key])
    home.notes += draft.notes
    home.surfaces |= draft.surfaces - {"env"}


def format_draft(draft: Draft, extends: tuple[str, ...] = (), settings: dict[str, Any] | None = None, unset: tuple[str, ...] = ()) -> str:
    """Return a preset as TOML, with what was left out as comments."""
    own = draft.settings if settings is None else settings
    lines = ["[profile]", f"description = {format_toml_value(f'imported from {_escape_file_name(cite_script(draft.file))}')}"]
    if extends:
        lines.append(f"extends = {format_toml_value(list(extends))}")
    if draft.scenario:
        lines.append(f"scenario = {format_toml_value(draft.scenario)}")
    if unset:
        lines.append(f"unset = {format_toml_value(list(unset))}")
    shape = Draft(draft.name, draft.file)
    shape.settings = own
    for section in SECTIONS:
        found = shape.section(section)
        plain = {name: value for name, value in found.items() if not isinstance(value, dict) or section != "options"}
        if plain:
            lines += ["", f"[{section}]", *(f"{format_key_segment(name)} = {format_toml_value(value)}" for name, value in plain.items())]
        for name, value in found.items():
            if name not in plain:
                lines += [
                    "",
                    f"[{section}.{format_key_segment(name)}]",
                    *(f"{format_key_segment(part)} = {format_toml_value(item)}" for part, item in value.items()),
                ]
    return "\n".join([*lines, *_format_remarks(draft.notes), ""])


def _format_remarks(notes: list[Note]) -> list[str]:
    if not notes:
        return []
    lines = ["", "# Not carried over:"]
    for note in notes:
        one = note.found
        value = f" = {format_short_value(one.value)}" if not one.reason and one.value is not None else ""
        place = f"{cite_script(one.file)}:{one.line}" + (f" ({one.part})" if one.part else "")
        lines.append(_format_comment(f"{place}: {one.key or 'a computed key'}{value}: {note.why}"))
        if note.hint:
            lines.append(_format_comment(f"    {note.hint}"))
    return lines


@cache
def cite_script(file: str) -> str:
    """Return the path of a script as a preset names it, the same on every machine: from the top of its repository, or its name."""
    if not os.path.isabs(file) and os.pardir not in file.split(os.sep):
        return file
    full = os.path.realpath(file)
    top = find_repository_top(os.path.dirname(full))
    return os.path.relpath(full, top) if top else os.path.basename(full)


def _escape_file_name(file: str) -> str:
    """Return the name of a file as text, which it need not be."""
    return file.encode(errors="backslashreplace").decode()


def _format_comment(text: str) -> str:
    flat = "".join(char if is_visible(char) else " " for char in _escape_file_name(text))
    return f"# {flat}"
