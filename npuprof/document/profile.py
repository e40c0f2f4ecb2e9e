"""A document parsed as a profile: its metadata, its parents, and its steps in order.

Keys are not compared with the catalogue here; the checks do that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import starmap
from sys import intern

from npuprof.document import Document, keys
from npuprof.model import (
    FRAMEWORK_SECTIONS,
    LIST_OPS,
    SCENARIOS,
    SECTIONS,
    TYPE_CHECKING,
    Axes,
    Finding,
    Fix,
    Origin,
    Path,
    Record,
    Step,
    TomlTable,
    renew_hints,
    suggest_name,
)
from npuprof.system import is_list_of

if TYPE_CHECKING:
    from typing import Any

    from npuprof.document.policy import Ignore


#: The numbers of the current digest form, and of the form in which older releases are read.
FORM, OLDER_FORM = 3, 2

#: Keys that users expect in ``[profile]``, with their actual place.
_SET_ELSEWHERE = {
    "name": "a preset is called as its file is: npuprof rename OLD NEW gives it another name",
    "version": "a version is a tag that npuprof release makes",
}


class ProfileKey(Record):
    """One key of ``[profile]``: its type as messages name it, an example, and its purpose.

    ``inherited`` keys are inherited by dependents: the nearest profile that sets one decides. The
    order of an ``unordered`` list has no meaning. A list that ``names_settings`` contains keys.
    """

    kind: str
    example: str
    help: str
    inherited: bool = False
    unordered: bool = False
    names_settings: bool = False


TEXT = "text"
NAMES = "a list of names"
SWITCH = "true or false"
ACCEPTED = "a list of tables with code and reason"
RELEASES = "a table of releases by framework"
VALUES = "a table of lists of values by axis"
#: The types of keys, and of the elements of lists.
_PLAIN_KINDS = {TEXT: str, SWITCH: bool, RELEASES: dict, VALUES: dict}
_ELEMENTS = {NAMES: str, ACCEPTED: dict}
#: The keys of ``[profile]`` in the order in which npuprof writes them.
PROFILE_KEYS = {
    "description": ProfileKey(TEXT, '"when to use this preset"', "When to use the preset."),
    "extends": ProfileKey(NAMES, '["base/training"]', "The presets it builds on; later wins."),
    "scenario": ProfileKey(TEXT, '"training"', "The purpose of the preset.", inherited=True),
    "cann": ProfileKey(
        TEXT, '">=8.0,<10"', 'CANN releases it is meant for, as ">=8.0,<10"', inherited=True
    ),
    "products": ProfileKey(
        NAMES, '["atlas-a2"]', "Product families it is meant for", inherited=True, unordered=True
    ),
    "versions": ProfileKey(
        RELEASES,
        '{ torch_npu = ">=7.1" }',
        "Releases of frameworks it is meant for; cann may be among them.",
        inherited=True,
    ),
    "axes": ProfileKey(
        VALUES,
        '{ role = ["decode"] }',
        "Values of axes of npuprof.toml that it is meant for.",
        inherited=True,
    ),
    "abstract": ProfileKey(SWITCH, "true", "Whether it is only there to be extended."),
    "owner": ProfileKey(TEXT, '"nlp-team"', "Who looks after it."),
    "deprecated": ProfileKey(
        TEXT,
        '"use base/training-v2"',
        "Why the preset should no longer be extended, and what to use instead.",
    ),
    "unset": ProfileKey(
        NAMES,
        '["dump_path"]',
        "Inherited keys to clear: option names, or section.name.",
        unordered=True,
        names_settings=True,
    ),
    "locked": ProfileKey(
        NAMES,
        '["hccl_timeout"]',
        "Keys that whoever extends the preset may not change.",
        unordered=True,
        names_settings=True,
    ),
    "ignore": ProfileKey(
        ACCEPTED,
        "[{ code = 'NP378', reason = 'one device only' }]",
        "Findings of its values that are accepted, each with its reason.",
    ),
}
#: The keys that dependents inherit.
INHERITED_KEYS = tuple(name for name, key in PROFILE_KEYS.items() if key.inherited)
#: The keys of an override's ``match``, besides framework names.
MATCH_KEYS = ("product", "cann", "scenario", "target")
#: The tables of a profile file, and the keys of an ``[[override]]``.
TABLES = ("profile", *SECTIONS, *LIST_OPS, "override")
OVERRIDE_KEYS = ("match", "unset", *SECTIONS, *LIST_OPS)


class Override(Record):
    """An ``[[override]]`` block: its match and the steps it applies."""

    match: Axes
    steps: tuple[Step, ...]
    layer: str


#: The key in ``Profile.yanked`` for the profile itself, if the requested version was yanked.
REQUESTED = ""


class Yank(Record):
    """Why a version was yanked, and what to use instead."""

    why: str
    hint: str


class ProfileSource:
    """Where profiles are looked up by name: a folder, a revision, a source, or memory.

    ``root`` is its folder or address, empty in memory; ``parts`` are the profiles of a composed
    one, by key; ``content`` is the file that they were built from, as a pipe cannot be read again.
    ``is_locked``: it belongs to another repository and is read as it was locked.
    """

    label = "this store"
    root = ""
    commit = ""
    parts: Mapping[str, Profile] = {}
    content: object = None
    is_shipped = False
    is_locked = False

    def profile(self, name: str, requested: Origin | None = None) -> Profile:
        """Return a profile; ``requested`` is the reference that names it. Raises NpuprofError."""
        raise NotImplementedError

    def is_outside(self, name: str) -> bool:
        """Return whether a preset is outside the store's folder: npuprof.toml lists it."""
        return False

    def may_have_policy(self) -> bool:
        """Return whether its tree may have a team policy."""
        return False

    def find_plain_name(self, name: str) -> str:
        """Return the name of a preset without that of its source."""
        return name

    def find_own_parent(self, reference: str, requested: Origin | None) -> Profile | None:
        """Return the preset of a reference with an @ if the store itself has its versions.

        None if git has them. Raises NpuprofError.
        """
        return None


class Profile:
    """The content of one document, before its keys are compared with the catalogue.

    ``key`` identifies the profile in an inheritance graph (its name, and the store and revision it
    was pinned to). ``problems`` are its structural faults: a profile that has any cannot be
    resolved. ``yanked`` maps references to the yanked versions they resolve to; it is filled when
    the parents are looked up. ``outdated`` maps references to parents whose vendored release
    differs from the referenced one. ``named`` are the places of names that must be frameworks of
    the catalogue or declared axes. ``form`` is the digest form of the release it was read from,
    else the current.
    """

    def __init__(
        self,
        document: Document,
        key: str | None = None,
        home: ProfileSource | None = None,
        form: int = FORM,
    ) -> None:
        self.document = document
        self.form = FORM if form >= FORM else OLDER_FORM  # form 1 has the same rules
        self.name = document.name
        self.key = f"{key or document.name}{'' if self.form == FORM else ' in the older form'}"
        self.home = home
        self.layers: dict[int, str] = {}  #: the content for digests, by form; computed on first use
        # composed on the command line: the spec named last wins, even over its dependents
        self.stacked = False
        self.yanked: dict[str, Yank] = {}
        self.outdated: dict[str, str] = {}
        self.problems: list[Finding] = []
        self.named: list[Path] = []
        renew_hints()
        reader = _Reader(document, self.problems, self.named, self.form)
        self.table = reader.profile_table()
        self.steps = reader.steps(
            document.data, (), self.table.get("unset", []), ("profile", "unset")
        )
        self.overrides = reader.overrides()
        self.touched: frozenset[str] | None = None

    def __getstate__(self) -> TomlTable:
        """Return the state to pickle, without the store, which belongs to the process."""
        return {**self.__dict__, "home": None}

    def edit(self, document: Document, edits: Mapping[Path, Any]) -> Profile:
        """Return the profile of another text that only edits settings, and moves other lines.

        ``edits`` are the values by section and name, None for one that is not set.
        """
        edited = object.__new__(Profile)
        edited.__dict__.update(self.__dict__, document=document, layers={})
        if edits:
            steps = [
                Step("set", keys.format_full_key(*path), value, path)
                for path, value in edits.items()
                if value is not None
            ]
            edited.steps = (*[step for step in self.steps if step.path not in edits], *steps)
            edited.touched = None
        return edited

    def touches(self, key: str) -> bool:
        """Return whether any step of the profile, overrides included, changes a setting."""
        if self.touched is None:
            self.touched = frozenset([step.key for step in (*self.steps, *self.override_steps)])
        return key in self.touched

    @property
    def override_steps(self) -> list[Step]:
        """The steps of all overrides, in order."""
        return [step for override in self.overrides for step in override.steps]

    @property
    def changed_lists(self) -> list[str]:
        """The keys of lists to which it appends, or from which it removes, overrides included."""
        steps = (*self.steps, *self.override_steps)
        return [step.key for step in steps if step.op in LIST_OPS]

    @property
    def extends(self) -> tuple[str, ...]:
        """The parents as written; later wins."""
        return tuple(self.table.get("extends", ()))

    def iterate_references(self) -> Iterator[tuple[str, Origin]]:
        """Yield the parents as written, each with its place."""
        return (
            (reference, self.origin("profile", "extends", index))
            for index, reference in enumerate(self.extends)
        )

    @property
    def locked(self) -> tuple[str, ...]:
        """The keys that dependents of this profile may not change, as written."""
        return tuple(self.table.get("locked", ()))

    def list_ranges(self) -> dict[str, str]:
        """Return the release ranges that the profile itself sets, for ``cann`` and frameworks."""
        ranges = dict(self.table.get("versions", {}))
        return {"cann": self.table["cann"], **ranges} if "cann" in self.table else ranges

    def locate_range(self, axis: str) -> Path:
        """Return the path of the release range that the profile sets for an axis."""
        if axis in self.document.data.get("profile", {}):
            return "profile", axis
        return "profile", "versions", axis

    @property
    def ignores(self) -> tuple[Ignore, ...]:
        """The findings that the profile accepts."""
        tables = self.table.get("ignore")
        if not tables:
            return ()
        from npuprof.document.policy import Ignore  # few profiles accept findings

        return tuple(
            Ignore(table["code"], table["reason"], self.origin("profile", "ignore", index))
            for index, table in enumerate(tables)
        )

    @property
    def abstract(self) -> bool:
        """Whether the profile exists only to be extended."""
        return bool(self.table.get("abstract", False))

    def origin(self, *path: Any, layer: str = "values") -> Origin:
        """Return the origin of a path in this profile's document."""
        return Origin(self.document, path, layer)

    def __repr__(self) -> str:
        return f"Profile({self.key!r})"


#: A preset after all its ancestors, lowest first.
Lineage = tuple[Profile, ...]


class _Reader:
    def __init__(
        self, document: Document, problems: list[Finding], named: list[Path], form: int
    ) -> None:
        self.form = form
        self.document = document
        self.problems = problems
        self.named = named
        for name, value in document.data.items():
            if name not in TABLES:
                # [overrides] and [options2] are more likely misspelt than unknown
                meant = next((table for table in TABLES if name.startswith(table)), "")
                if name in PROFILE_KEYS:
                    hint = f"{name} belongs below [profile]"
                elif meant:
                    hint = f"write [{meant}]"
                else:
                    hint = f"options go below [options]; the tables are {', '.join(TABLES)}"
                self.add_unknown_name(f"unknown table or key {name!r}", (name,), TABLES, hint)
            elif name != "override" and not isinstance(value, dict):
                self.add_problem("NP007", f"{name!r} must be a table", (name,), f"write [{name}]")

    def add_unknown_name(
        self, message: str, path: Path, known: Iterable[str], otherwise: str
    ) -> None:
        why = "Unknown keys would otherwise be ignored silently."
        self.add_problem("NP006", message, path, *suggest_name(path[-1], known, otherwise), why)

    def add_unknown_scenario(self, value: str, path: Path) -> None:
        hint, fix = suggest_name(value, SCENARIOS, f"known are {', '.join(SCENARIOS)}")
        self.add_problem(
            "NP007",
            f"unknown scenario {value!r}",
            path,
            hint,
            Fix(fix.name) if fix else None,
            "Checks and defaults depend on the scenario.",
        )

    def add_problem(
        self,
        code: str,
        message: str,
        path: Path,
        hint: str,
        fix: Fix | None = None,
        why: str = "npuprof does not guess what a value of another form means.",
    ) -> None:
        origin = Origin(self.document, path)
        shown = keys.format_path(path)
        self.problems.append(
            Finding(code, message, why, hint, origin, shown, (self.document.name,), fix=fix)
        )

    def profile_table(self) -> TomlTable:
        table = self.document.data.get("profile", {})
        if not isinstance(table, dict):
            return {}
        good = {}
        for name, value in table.items():
            key = PROFILE_KEYS.get(name)
            if key is None:
                self._add_unknown_profile_key(name)
            elif not _is_of_kind(key.kind, value):
                self._add_wrong_kind(name, key, value)
            elif name == "scenario" and value not in SCENARIOS:
                self.add_unknown_scenario(value, ("profile", name))
            else:
                good[intern(name)] = value
        if "ignore" in good and not self._read_ignores(good["ignore"]):
            del good["ignore"]
        if "versions" in good:
            good |= self._read_versions(good.pop("versions"), good.get("cann"))
        for name, values in list(good.get("axes", {}).items()):
            if values and _is_of_kind(NAMES, values):
                self.named.append(("profile", "axes", name))
            else:
                what = f"{name!r} in axes must be a list of texts"
                hint = f'write {name} = ["..."]'
                self.add_problem("NP007", what, ("profile", "axes", name), hint)
        for index, name in enumerate(good.get("locked", ())):
            self.parse_key(name, ("profile", "locked", index))
        return good

    def _add_unknown_profile_key(self, name: str) -> None:
        known: Iterable[str] = PROFILE_KEYS
        hint = f"options go below [options]; known here are {', '.join(PROFILE_KEYS)}"
        if name in _SET_ELSEWHERE:
            known = ()
            hint = _SET_ELSEWHERE[name]
        self.add_unknown_name(f"unknown key {name!r} in [profile]", ("profile", name), known, hint)

    def _add_wrong_kind(self, name: str, key: ProfileKey, value: Any) -> None:
        """Add the problem of a value of another kind, with the value that it may mean."""
        example = key.example
        fix = None
        if key.kind == NAMES and isinstance(value, str):
            names = re.findall(r"[^\s,;]+", value)
            if names:
                example = keys.format_toml_value(names)
                # with several names, the text may also be one name with a blank
                fix = Fix(names) if names == [value] else None
        elif key.kind == TEXT:
            meant = value[0] if isinstance(value, list) and len(value) == 1 else value
            # TOML reads cann = 8.0 as a number
            if isinstance(meant, (str, int, float)) and not isinstance(meant, bool):
                example = keys.format_toml_value(str(meant))
        what = f"{name!r} must be {key.kind}"
        self.add_problem("NP007", what, ("profile", name), f"write {name} = {example}", fix)

    def parse_key(self, name: str, path: Path) -> tuple[str, tuple[str, ...]] | None:
        """Return a key with its tail, None if it is not one; that is added to the problems."""
        parsed = keys.parse_key(name)
        if parsed is None:
            self.add_problem(
                "NP009", f"{name!r} is not a key", path, "write the option's name, or section.name"
            )
        return parsed

    def _read_versions(self, table: TomlTable, cann: str | None) -> TomlTable:
        """Return ``versions`` as keys of ``[profile]``: the ranges for CANN and frameworks.

        Faults are added to the problems.
        """
        ranges: TomlTable = {}
        for name, value in table.items():
            path = ("profile", "versions", name)
            if not isinstance(value, str):
                self.add_problem(
                    "NP007",
                    f"{name!r} in versions must be text",
                    path,
                    f'write {name} = ">={value}"',
                )
            elif name == "cann" and cann not in (None, value):
                what = (
                    f"cann = {keys.format_toml_value(cann)} and versions.cann = "
                    f"{keys.format_toml_value(value)} contradict each other"
                )
                self.add_problem(
                    "NP007",
                    what,
                    path,
                    "remove one of them",
                    why="Both say for which releases of CANN the preset is.",
                )
            elif name == "cann":
                ranges["cann"] = value
            else:
                self.named.append(path)
                ranges.setdefault("versions", {})[name] = value
        return ranges

    def _read_ignores(self, tables: list[TomlTable]) -> bool:
        """Return whether every ``ignore`` table has exactly a code and a reason.

        Faults are added to the problems.
        """
        before = len(self.problems)
        for index, table in enumerate(tables):
            path = ("profile", "ignore", index)
            for name in [name for name in table if name not in ("code", "reason")]:
                self.add_unknown_name(
                    f"unknown key {name!r} in ignore",
                    (*path, name),
                    ("code", "reason"),
                    "known are code, reason",
                )
            for name, example in (("code", "'NP378'"), ("reason", "'one device only'")):
                value = table.get(name)
                hint = f"write {name} = {example}"
                if name not in table:
                    why = "Readers of the preset need to see which finding is accepted, and why."
                    self.add_problem("NP007", f"an ignore needs a {name}", path, hint, why=why)
                elif not isinstance(value, str) or not value.strip():
                    what = f"{name!r} of an ignore must be text"
                    self.add_problem("NP007", what, (*path, name), hint)
        return len(self.problems) == before

    def steps(
        self, table: TomlTable, base: Path, unset: list[str], unset_path: Path
    ) -> tuple[Step, ...]:
        """Return the steps of a layer in order: ``unset``, values, ``remove``, ``append``."""
        found = []
        for index, name in enumerate(unset):
            if parsed := self.parse_key(name, (*unset_path, index)):
                found.append(Step("unset", parsed[0], None, (*unset_path, index), parsed[1]))
        for op, values, path in (
            ("set", table, base),
            *((op, table.get(op), (*base, op)) for op in LIST_OPS),
        ):
            if not isinstance(values, dict):
                continue
            for name in () if op == "set" else [name for name in values if name not in SECTIONS]:
                self.add_unknown_name(
                    f"unknown table {name!r} in {op}",
                    (*path, name),
                    SECTIONS,
                    f"write [{op}.options]",
                )
            for section in filter(values.__contains__, SECTIONS):
                block = values[section]
                if isinstance(block, dict):
                    found += [
                        self._build_value_step(op, section, name, value, _join(path, section, name))
                        for name, value in block.items()
                    ]
                elif path:
                    self.add_problem(
                        "NP007",
                        f"{section!r} must be a table",
                        (*path, section),
                        f"write {section} = {{ ... }}",
                    )
        return tuple(found)

    def _build_value_step(self, op: str, section: str, name: str, value: Any, path: Path) -> Step:
        """Return the step of a key; a quoted one with dots is a key of the table that it names."""
        is_split = section in FRAMEWORK_SECTIONS and self.form == FORM
        if is_split and all(parts := name.split(".")):
            name, *tail = parts
            for part in reversed(tail):
                value = {part: value}
        return Step(op, keys.format_full_key(section, name), value, path)

    def overrides(self) -> tuple[Override, ...]:
        blocks = self.document.data.get("override", [])
        if not is_list_of(dict, blocks):
            self.add_problem(
                "NP007",
                "'override' must be an array of tables",
                ("override",),
                "write [[override]]",
            )
            return ()
        return tuple(starmap(self.build_override, enumerate(blocks)))

    def build_override(self, index: int, block: TomlTable) -> Override:
        path = ("override", index)
        for name, value in block.items():
            if name not in OVERRIDE_KEYS:
                hint = f"known are {', '.join(OVERRIDE_KEYS)}"
                self.add_unknown_name(
                    f"unknown key {name!r} in [[override]]", (*path, name), OVERRIDE_KEYS, hint
                )
            elif name in LIST_OPS and not isinstance(value, dict):
                self.add_problem(
                    "NP007",
                    f"{name!r} must be a table",
                    (*path, name),
                    f"write {name}.options = {{ ... }}",
                )
        match = block.get("match")
        # an override without a match would apply everywhere: its values belong into the tables
        # above
        if not isinstance(match, dict) or not match:
            self.add_problem(
                "NP007",
                "an override needs a match",
                (*path, "match"),
                'write match = { product = "atlas-a3" }',
                why="Without one it would apply everywhere.",
            )
            match = {}
        values_by_axis = {}
        for name, value in match.items():
            if name not in MATCH_KEYS:
                self.named.append((*path, "match", name))
            if _is_of_kind(TEXT, value) or _is_of_kind(NAMES, value):
                texts = (value,) if isinstance(value, str) else tuple(value)
                values_by_axis[name] = texts
                for index, scenario in enumerate(texts if name == "scenario" else ()):
                    if scenario not in SCENARIOS:
                        listed = () if isinstance(value, str) else (index,)
                        self.add_unknown_scenario(scenario, (*path, "match", name, *listed))
            else:
                self.add_problem(
                    "NP007",
                    f"{name!r} must be text or a list of texts",
                    (*path, "match", name),
                    f'write {name} = "..."',
                )
        unset = block.get("unset", [])
        if not _is_of_kind(NAMES, unset):
            plain = isinstance(unset, str) and keys.parse_key(unset) is not None
            hint = (
                f"write unset = {keys.format_toml_value([unset])}"
                if plain
                else 'write unset = ["dump_path"]'
            )
            self.add_problem(
                "NP007",
                "'unset' must be a list of names",
                (*path, "unset"),
                hint,
                Fix([unset]) if plain else None,
            )
            unset = []
        return Override(
            values_by_axis,
            self.steps(block, path, unset, (*path, "unset")),
            f"override {index + 1}",
        )


@cache  # presets share their paths, as thousands set the same keys
def _join(path: Path, section: str, name: str) -> Path:
    return (*path, section, name)


def _is_of_kind(kind: str, value: Any) -> bool:
    if kind in _ELEMENTS:
        return isinstance(value, list) and all(isinstance(item, _ELEMENTS[kind]) for item in value)
    return isinstance(value, _PLAIN_KINDS[kind])
