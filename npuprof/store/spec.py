"""Specs name profiles on the command line.

They are ``NAME``, ``NAME@REV``, ``SOURCE:NAME``, ``A+B``, a ``.toml`` path, and ``-``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from npuprof import catalog, document
from npuprof.catalog import releases
from npuprof.document import build_command_line_document, keys, parse_document
from npuprof.document.profile import REQUESTED, Profile
from npuprof.model import (
    TYPE_CHECKING,
    Axes,
    Context,
    Finding,
    NpuprofError,
    Step,
    build_error,
    did_you_mean,
    raise_any,
)
from npuprof.report import format_option
from npuprof.resolve import Resolver
from npuprof.resolve.config import Config
from npuprof.store import BUILTIN, is_profile_name, is_source_reference, strip_revision
from npuprof.store.base import CachedStore, ComposedParts
from npuprof.store.folder import Folder, find_store, open_builtin_store
from npuprof.system import expand_home, find_repository_top, format_relative_path
from npuprof.system.files import read_input, read_plain_file

if TYPE_CHECKING:
    from npuprof.document import Document
    from npuprof.document.policy import Policy
    from npuprof.document.profile import ProfileSource
    from npuprof.store.sources.lookups import Lookups
    from npuprof.store.sources.project_files import ProjectFiles

#: One of the specs joined by ``+``; a quoted revision may contain any.
_SPEC_PART = r"""(?:(?<=@)"[^"]*"|(?<=@)'[^']*'|[^+])+|(?:^|(?<=\+))(?=\+|$)"""

#: Prefixes of paths, which are never preset names.
_PATHS = ("./", "../", "/", "~/")

#: Codes for an unknown preset, store, name or revision.
_NOT_THERE = frozenset(("NP004", "NP008", "NP010", "NP011", "NP023", "NP043"))


class Workspace:
    """A store for one command: finds profiles by spec, resolves them, reads every file once."""

    def __init__(
        self,
        store: str | None = None,
        context: Context | None = None,
        in_python: bool = False,
        opened: ProfileSource | None = None,
        by: Workspace | None = None,
    ) -> None:
        """Use the named store, or one that is ``opened``: a folder, or a revision.

        The workspace ``by`` opened it; what that has looked up is used.
        """
        self._named = store
        if opened is not None:
            self.home = opened
        self._names: dict[str, str] = {}
        self._overlays: dict[str, Profile] = {}  # by path of files outside the store
        self.resolver = Resolver(self, context, in_python=in_python)
        #: Reads other files as profiles, by path; returns None for unknown kinds. If None, only
        #: presets are accepted.
        self.read_other: Callable[[str], Profile | None] | None = None
        self._others: dict[str, Profile | None] = {}
        self._opened_by = by

    @cached_property
    def home(self) -> ProfileSource:
        """The source of profiles: the store, or its replacement.

        Raises NpuprofError if there is none.
        """
        requested = self._named or os.environ.get("NPUPROF_STORE", "")
        if requested.endswith(":") and is_source_reference(requested):
            return self.lookups.open_source(find_store(None, {}), requested[:-1])
        folder = self._find_bare_store(requested)
        if folder is None:
            folder = find_store(self._named, os.environ, self.resolver.in_python)
        _require_this_npuprof(folder)
        return folder

    def _find_bare_store(self, requested: str) -> Folder | None:
        """Return the store of a bare repository.

        None if there is none, or a nearer store exists.
        """
        if not requested and os.path.isdir("profiles"):
            return None
        from npuprof.store.enclosing_repository import BareStore, find_bare_repository

        repository = find_bare_repository(requested)
        return BareStore(repository, requested or "profiles") if repository else None

    @property
    def listed_store(self) -> CachedStore:
        """The store whose presets can be listed: a folder, or a source.

        Raises NpuprofError if there is none.
        """
        home = self.home
        return home if isinstance(home, CachedStore) else self.store

    @property
    def store(self) -> Folder:
        """The store, a folder.

        Raises NpuprofError if there is none, or another kind was requested.
        """
        home = self.home
        if not isinstance(home, Folder):
            what = f"{home.label} is read as it is locked: it has no files and no history here"
            argument = format_option("store", in_python=self.resolver.in_python)
            hint = f"omit {argument}, and name its presets as in npuprof show team:NAME"
            raise build_error("NP010", what, "", hint)
        return home

    @cached_property
    def lookups(self) -> Lookups:
        """Finds and caches parents at revisions, sources and policies."""
        if self._opened_by is not None:
            return self._opened_by.lookups
        from npuprof.store.sources.lookups import Lookups

        return Lookups()

    def find_parent(self, reference: str, referrer: Profile | None, index: int) -> Profile:
        """Return the profile of a reference in ``extends``. Raises NpuprofError."""
        home = referrer.home if referrer is not None and referrer.home is not None else self.home
        if "@" in reference or (":" in reference and not home.parts):
            return self.lookups.find_parent_from(home, reference, referrer, index)
        requested = referrer.origin("profile", "extends", index) if referrer else None
        return home.profile(reference, requested)

    def load_policy(self) -> Policy | None:
        """Return the team policy of the store, None if it has none. Raises NpuprofError."""
        home = self.listed_store
        return self.lookups.load_policy(home) if home.may_have_policy() else None

    def find_policy(self, profile: Profile) -> Policy | None:
        """Return the team policy for a preset, None if it has none. Raises NpuprofError."""
        home = profile.home
        if home is None or not home.may_have_policy():
            return None
        return self.lookups.find_policy(profile)

    def find_axes(self, profile: Profile) -> Axes | None:
        """Return the axes declared where a profile was read; None if unknown.

        Raises NpuprofError.
        """
        return self.lookups.find_axes(profile)

    @property
    def declared_axes(self) -> Axes:
        """The axes that npuprof.toml declares. Raises NpuprofError if there is no store."""
        home = self.home
        return self.lookups.find_project(home).axes if home.may_have_policy() else {}

    def profile(self, spec: str) -> Profile:
        """Return the profile of a spec; several joined by ``+`` become one that extends them all.

        Raises NpuprofError.
        """
        if spec.startswith(_PATHS) and os.path.exists(expand_home(spec)):
            run_profile = self._read_other_kind(spec)
            if run_profile is not None:
                return run_profile
        if "+" in spec and not _is_one_file(spec):
            parts = self.split_spec(spec)
            if len(parts) > 1:
                if any(part != part.strip() or not part for part in parts):
                    raise NpuprofError(build_bad_stack_finding(spec, parts))
                return self.compose_profiles(spec, [self.profile(part) for part in parts])
        if spec == "-":
            return self._piped
        try:
            return self._find_named_profile(spec)
        except NpuprofError as error:
            finding = error.findings[0]
            # a name without a folder may be a run's file, too
            run_profile = self._read_other_kind(spec) if finding.code in _NOT_THERE else None
            if run_profile is not None:
                return run_profile
            raise (self._explain_lost_path(spec, finding) or error) from None

    def _explain_lost_path(self, spec: str, finding: Finding) -> NpuprofError | None:
        """Return the error for a missing path, which may have been meant as a run's file.

        None if the spec is not a path.
        """
        if (
            self.read_other is None
            or not spec.startswith(_PATHS)
            or finding.code != "NP004"
            or os.path.lexists(expand_home(spec))
        ):
            return None
        hint = "check the path; a file of a preset ends in .toml"
        if finding.hint.startswith("write "):  # the preset with that path
            hint = finding.hint
        return build_error("NP003", f"there is no {spec}", "", hint)

    def _read_other_kind(self, spec: str) -> Profile | None:
        """Return another kind of file as a profile, None if it is of no known kind.

        Raises NpuprofError.
        """
        path = expand_home(spec)
        if self.read_other is None or _is_file_spec(path):
            return None
        if path not in self._others:  # a pipe can be read once, and a log may be long
            self._others[path] = self.read_other(path)
        profile = self._others[path]
        if profile is not None:
            self._names[profile.key] = spec
        return profile

    def _find_named_profile(self, spec: str) -> Profile:
        """Return the preset of a spec with a single part other than standard input.

        Raises NpuprofError.
        """
        if _is_file_spec(spec):
            return self._load_file_profile(spec)
        if spec.startswith(BUILTIN):
            return self._load_builtin_profile(spec)
        if is_source_reference(spec):
            return self._load_source_profile(spec)
        if "@" in spec:
            return self._load_revision_profile(spec)
        try:
            return self.home.profile(spec)
        except NpuprofError as error:
            if not isinstance(self.home, Folder):
                raise
            from npuprof.store.enclosing_repository import explain_missing_preset

            raise explain_missing_preset(self.home, spec, error) from None

    @cached_property
    def _piped(self) -> Profile:
        """The profile in standard input, which can be read only once. Raises NpuprofError."""
        if (profile := self._read_other_kind("-")) is not None:
            return profile
        raw = read_input("give the preset to it, as in npuprof show - < preset.toml")
        return Profile(
            parse_document("-", "<stdin>", raw), key="stdin:", home=self._find_home_store()
        )

    def split_single_spec(self, requested: str, verb: str) -> tuple[str, str]:
        """Return name and revision of a spec that must be one preset of the store.

        Raises NpuprofError.
        """
        name, at, revision = requested.partition("@")
        if at and " " in requested:
            require_no_blanks(requested)
        if requested.startswith(BUILTIN) or is_source_reference(requested):
            what = f"{verb} takes a preset of this repository, not {requested!r}"
            hint = "do it in the repository of the source, then npuprof source update here"
            if requested.startswith(BUILTIN):
                hint = f"npuprof copy {name} {name.removeprefix(BUILTIN)} makes one of your own"
            raise build_error("NP024", what, "", hint)
        if requested.endswith(".toml"):
            inside = self.profile(requested).name
            if not inside.endswith(".toml"):  # a file of the store has the name of its preset
                name, revision = inside, ""
        if "+" in name or name == "-" or name.endswith(".toml"):
            what = f"{verb} takes one preset of the store, not {requested!r}"
            why = "Only presets in git under one name have a history."
            raise build_error("NP024", what, why, "name one preset")
        return name, revision

    def split_spec(self, spec: str) -> list[str]:
        """Return the specs joined by ``+``.

        A revision that contains a ``+`` is quoted: ``NAME@"REV"``.
        """
        return re.findall(_SPEC_PART, spec)

    def _load_revision_profile(self, spec: str) -> Profile:
        """Return the profile of ``NAME@REV``, with its parents at that revision."""
        name, _, revision = spec.partition("@")
        if not name:
            raise NpuprofError(build_nameless_revision_finding(revision))
        if " " in spec:
            require_no_blanks(spec)
        if _is_file_spec(name):
            inside = self._find_name_in_store(name)
            if not inside:
                from npuprof.store.problems import build_file_revision_finding

                raise NpuprofError(build_file_revision_finding(name, revision))
            name = inside
        pinned = self.lookups.load_profile_at_revision(self.home, f"{name}@{revision}")
        home = pinned.profile.home
        if isinstance(self.home, Folder) and not self.home.in_work_tree and home is not None:
            from npuprof.store.project import require_fitting_project

            # that of a work tree was checked when it was opened
            require_fitting_project(self.lookups.find_project(home))
        self._names[pinned.profile.key] = pinned.label
        if pinned.yanked:
            pinned.profile.yanked[REQUESTED] = pinned.yanked
        return pinned.profile

    @cached_property
    def _builtin(self) -> Folder:
        """The store that npuprof ships, next to this one."""
        return open_builtin_store(is_second=True)

    def _load_builtin_profile(self, spec: str) -> Profile:
        """Return the profile of ``builtin:NAME``, independent of the store."""
        name, at, _ = spec.removeprefix(BUILTIN).partition("@")
        if at:
            what = f"{spec!r}: built-in presets have no versions"
            hint = f"write {BUILTIN}{name}; npuprof --version says which that is"
            raise build_error("NP023", what, "They are part of the installed npuprof.", hint)
        profile = self._builtin.profile(name)
        self._names[profile.key] = spec
        return profile

    def _load_source_profile(self, spec: str) -> Profile:
        """Return the profile of ``SOURCE:NAME`` or ``SOURCE:NAME@VERSION``."""
        profile = self.lookups.find_source_profile(self.home, spec)
        if "@" in spec:
            self._names[profile.key] = spec
        return profile

    def compose_profiles(self, name: str, parts: Sequence[Profile]) -> Profile:
        """Return a profile without settings that composes others, in order."""
        joined = Profile(
            build_command_line_document(name, {}),
            key=f"composed:{'+'.join(part.key for part in parts)}",
        )
        joined.stacked = True
        joined.home = ComposedParts({part.key: part for part in parts})
        joined.table = {
            "extends": [part.key for part in parts],
            "description": parts[-1].table.get("description", ""),
        }
        return joined

    def resolve_spec(
        self,
        spec: str,
        mixins: Sequence[str] = (),
        changes: Sequence[Step] = (),
        layers: Sequence[Profile] = (),
    ) -> Config:
        """Return a spec resolved, with personal layers, then mix-ins, then command line changes.

        Raises NpuprofError.
        """
        profile = self.profile(spec)
        name = self._names.get(profile.key, profile.name)
        if mixins or layers:
            parts = [profile, *layers, *(self.profile(mixin) for mixin in mixins)]
            composed = self.compose_profiles(name, parts)
            if not mixins:  # still the shared preset
                for key in ("description", "abstract"):
                    if key in profile.table:
                        composed.table[key] = profile.table[key]
            profile = composed
        self.require_known_unset(profile, name, changes)
        return self.resolver.resolve_profile(profile, name, changes)

    def require_known_unset(self, profile: Profile, name: str, changes: Sequence[Step]) -> None:
        """Raise NpuprofError for unsetting an unknown key that is not set.

        A misspelt key would silently stay effective.
        """
        unknown = [
            step.key
            for step in changes
            if step.op == "unset"
            and not catalog.find_record_texts(*keys.split_section_and_name(step.key))
        ]
        if not unknown:
            return
        from npuprof.store.assignment_arguments import (
            place_argument,
            suggest_key,
            suggest_unknown_key,
        )

        sets = [step for step in changes if step.op != "unset"]
        settings = self.resolver.resolve_profile(profile, name, sets).settings
        why = "A misspelt key would silently stay effective."
        lists_all = f"npuprof show {name} lists the effective values"
        where = place_argument("unset", self.resolver.in_python)
        problems = []
        for key in unknown:
            if key not in settings:
                what = f"{name} does not set {key!r}, and the catalogue does not know it"
                hint = suggest_key(key, settings, suggest_unknown_key(key, lists_all))
                problems.append(Finding("NP924", what, why, hint, where=where))
        raise_any(problems)

    def open_beside(self, context: Context | None = None) -> Workspace:
        """Return a workspace of the same store for another context, with the same lookups.

        Raises NpuprofError.
        """
        return Workspace(None, context, self.resolver.in_python, self.store, self)

    def _load_file_profile(self, path: str) -> Profile:
        """Return the profile in a file: a preset of the store if the file is in it."""
        home = self._find_home_store()
        name = self._find_name_in_store(path)
        if home is not None and name:
            return home.profile(name)
        if path in self._overlays:
            return self._overlays[path]
        return read_profile_file(path, home)

    def replace_preset(self, document: Document) -> None:
        """Replace the text of a preset or file from now on by one that may be written."""
        if _is_file_spec(document.name):
            key = f"file:{os.path.realpath(document.name)}"
            self._overlays[document.name] = Profile(document, key, self._find_home_store())
        else:
            self.listed_store.replace_preset(Profile(document, home=self.store))

    def use_file(self, path: str, raw: bytes) -> None:
        """Use this text for the profile of a path outside the store. Raises NpuprofError."""
        self._overlays[path] = Profile(parse_document(path, path, raw), f"file:{path}", self.home)

    def _find_name_in_store(self, path: str) -> str:
        """Return the name of the profile in a file inside the store, else an empty string."""
        home = self._find_home_store()
        return home.locate_file(os.path.abspath(path)) if home is not None else ""

    def _find_home_store(self) -> Folder | None:
        try:
            return self.store
        except NpuprofError:
            if self._named:
                raise
            return None


def open_project_files(store: str | None, needs_lock: bool = True) -> ProjectFiles:
    """Return npuprof.toml and the lock of a repository, which need not have presets yet.

    Raises NpuprofError.
    """
    from npuprof.store.sources.project_files import ProjectFiles

    absence: NpuprofError | None = None
    try:
        home = Workspace(store).store
    except NpuprofError as error:
        if store or os.environ.get("NPUPROF_STORE") or error.findings[0].code != "NP010":
            raise
        absence = error
        home = Folder(os.path.join(find_repository_top(".") or os.getcwd(), "profiles"))
        home.is_implied = True
    return ProjectFiles(home, needs_lock, absence)


def _require_this_npuprof(home: Folder) -> None:
    """Raise NpuprofError if npuprof.toml needs another npuprof, or is invalid."""
    if not home.project_file:
        return
    from npuprof.store.project import explain_unfit_file, require_fitting_project

    try:
        require_fitting_project(home.project)
    except NpuprofError:
        # first: keys that are unknown here may be valid for the other npuprof
        if unmet := explain_unfit_file(home.project_file):
            raise NpuprofError(unmet) from None
        raise


def _is_file_spec(spec: str) -> bool:
    return spec.endswith(".toml")


def _is_one_file(spec: str) -> bool:
    """Return whether a spec that contains a ``+`` is a single path.

    That is an existing file, or one whose first part is not a spec.
    """
    if not _is_file_spec(spec):
        return False
    first = spec.partition("+")[0]
    is_spec = first == "-" or _is_file_spec(first) or is_profile_name(strip_revision(first))
    return not is_spec or os.path.isfile(spec)


def build_context(
    cann: str | None = None,
    product: str | None = None,
    target: str | None = None,
    versions: Mapping[str, str] | Sequence[str] = (),
    axes: Mapping[str, str] | Sequence[str] = (),
    store: Workspace | str | None = None,
) -> Context:
    """Return a context from a user's arguments.

    ``versions`` are releases by framework (or cann), or texts like ``torch_npu=7.3``; ``axes`` are
    values of the axes that the ``store`` declares, by name or like ``role=decode``. Raises
    NpuprofError for an unknown release, product, target, framework, axis or value.
    """
    problems: list[Finding] = []
    newer: dict[str, str] = {}
    frameworks = _read_versions(
        {"cann": cann} if cann is not None else {}, versions, newer, problems
    )
    cann = frameworks.pop("cann", None)
    release = _find_release(cann, newer, problems) if cann is not None else None
    family = _find_product(product, problems) if product is not None else None
    if target is not None:
        _require_target(target, problems)
    selected: tuple[tuple[str, str], ...] = ()
    if axes:
        from npuprof.store.axes import read_selected_axes

        workspace = store if isinstance(store, Workspace) else Workspace(store)
        selected = read_selected_axes(_split_pairs(axes), workspace.declared_axes, problems)
    raise_any(problems)
    return Context(
        release,
        family,
        target,
        tuple(sorted(frameworks.items())),
        tuple(sorted(newer.items())),
        selected,
    )


def _find_release(cann: str, newer: dict[str, str], problems: list[Finding]) -> str:
    release, is_newer = releases.find_judged_release(cann)
    if is_newer:
        newer[releases.CANN] = cann
    if not release:
        known = releases.load_releases()
        inside = releases.find_release_inside(cann)
        hint = f"write {inside}"
        if not inside:
            hint = did_you_mean(cann, known, f"the newest are {', '.join(known[-8:])}")
        why = "The behavior of an option depends on the release."
        problems.append(Finding("NP401", f"unknown CANN release {cann!r}", why, hint))
    return release


def _find_product(product: str, problems: list[Finding]) -> str | None:
    from npuprof.catalog.products import find_product, suggest_product

    family = find_product(product)
    if family is None:
        hint, _ = suggest_product(product)
        problems.append(Finding("NP403", f"unknown product {product!r}", "", hint))
    return family


def _require_target(target: str, problems: list[Finding]) -> None:
    from npuprof.catalog.targets import list_target_names

    if target not in (listed := list_target_names()):
        hint = did_you_mean(
            target, listed, f"known are {', '.join(listed)}; npuprof help targets describes each"
        )
        problems.append(Finding("NP902", f"unknown target {target!r}", "", hint))


def _read_versions(
    known: dict[str, str],
    versions: Mapping[str, str] | Sequence[str],
    newer: dict[str, str],
    problems: list[Finding],
) -> dict[str, str]:
    """Return a user's framework releases, including CANN's as written.

    Faults are added to the problems, releases newer than all known ones to ``newer``.
    """
    if not versions:
        return known
    names = ("cann", *releases.list_frameworks())
    for name, text in _split_pairs(versions):
        release, is_newer = text, False
        if name != "cann" and name in names:
            release, is_newer = releases.find_judged_release(text, name)
        if is_newer:
            newer[name] = text
        if name not in names:
            hint = did_you_mean(name, names, f"known are {', '.join(names)}")
            problems.append(Finding("NP902", f"unknown framework {name!r}", "", hint))
        elif not release:
            why = "The behavior of a variable depends on the release."
            hint = f"write --framework {name}=RELEASE; {releases.describe_known_releases(name)}"
            what = f"unknown {name} release {text!r}" if text else f"no release of {name} is named"
            problems.append(Finding("NP401", what, why, hint))
        elif known.setdefault(name, release) != release:
            what = f"{name} is asked for twice: {known[name]} and {release}"
            why = "A preset is resolved for one release of each."
            problems.append(Finding("NP902", what, why, "omit one of them"))
    return known


def _split_pairs(given: Mapping[str, str] | Sequence[str]) -> Iterable[tuple[str, str]]:
    """Return pairs that are given by name, or as texts like ``role=decode``."""
    if isinstance(given, Mapping):
        return given.items()
    return (argument.partition("=")[::2] for argument in given)


def read_profile_file(path: str, home: ProfileSource | None) -> Profile:
    """Return the profile in a file outside any store; its parents are in ``home``.

    Raises NpuprofError.
    """
    source = format_relative_path(path)
    try:
        raw = read_plain_file(path)
    except FileNotFoundError:
        name = path.removesuffix(".toml")
        hint = "give a path to a TOML file, or a preset's name"
        if isinstance(home, Folder) and name in home.names():
            hint = f"did you mean the preset {name!r}? It is named without .toml"
        raise build_error("NP008", f"there is no file {path!r}", "", hint) from None
    except (OSError, ValueError) as error:
        from npuprof.store.problems import build_unreadable_finding

        raise NpuprofError(build_unreadable_finding(source, error)) from None
    return Profile(
        document.parse_document(path, source, raw), key=f"file:{os.path.realpath(path)}", home=home
    )


def build_bad_stack_finding(spec: str, parts: Sequence[str]) -> Finding:
    """Return the finding for specs joined by ``+`` with blanks, or with a missing part."""
    plain = "+".join(filter(None, map(str.strip, parts)))
    what = f"{spec!r} contains blanks"
    if not all(map(str.strip, spec.split("+"))):
        what = f"{spec!r} names no preset on one side of a +"
    why = "A + composes two specs; the second wins. Quote a revision that contains a +."
    from npuprof.store.problems import LIST_ADVICE

    return Finding("NP004", what, why, f"write {plain}" if plain else LIST_ADVICE)


def require_no_blanks(spec: str) -> None:
    """Raise NpuprofError for blanks around the ``@`` of a spec, or at its ends."""
    plain = "@".join(part.strip() for part in spec.split("@", 1))
    if plain != spec:
        raise build_error(
            "NP004", f"{spec!r} contains blanks", "NAME@REV is one word.", f"write {plain}"
        )


def build_nameless_revision_finding(revision: str) -> Finding:
    """Return the finding for a revision without a preset name."""
    from npuprof.store.problems import LIST_ADVICE

    hint = LIST_ADVICE
    if revision:
        hint = (
            f"write the name of a preset before it, bert-training@{revision}; npuprof check --rev "
            f"{revision} checks the whole store"
        )
    why = "NAME@REV is a preset as it was at a revision."
    return Finding("NP004", f"'@{revision}' names no preset", why, hint)
