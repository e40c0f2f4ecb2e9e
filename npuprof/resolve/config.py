"""A resolved profile: effective values, their origins, and the values they override."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter

from npuprof import catalog
from npuprof.catalog import releases, values
from npuprof.catalog.values import FrozenDict, copy_value, freeze_value
from npuprof.document import keys
from npuprof.document.profile import FORM, Lineage, Profile
from npuprof.model import (
    TYPE_CHECKING,
    Axes,
    Context,
    Event,
    NpuprofError,
    Origin,
    Path,
    Step,
    TomlTable,
    did_you_mean,
)
from npuprof.report.text import Code, Markup, format_count
from npuprof.resolve.claims import AXES, VERSIONS, find_axis, format_claim
from npuprof.resolve.digests import compute_digest, compute_preset_digest
from npuprof.system import group_pairs

if TYPE_CHECKING:
    from typing import Any, TypeVar

    from npuprof.catalog.records import TeamVariables
    from npuprof.document.policy import Policy
    from npuprof.resolve import Resolver
    from npuprof.resolve.claims import Claims

    Result = TypeVar("Result")

#: The public attributes of a Config; all others are internal to checks and renderers.
_FOR_USERS = frozenset(
    (
        "abstract",
        "atc",
        "axes",
        "cann",
        "context",
        "description",
        "digest",
        "env",
        "estimator",
        "get",
        "items",
        "keys",
        "name",
        "options",
        "origins",
        "preset_digest",
        "products",
        "scenario",
        "values",
        "versions",
    )
)


class MissingSettingError(KeyError):
    """Raised for a key that a config does not set.

    It is a KeyError whose message, computed on first use, suggests a similar key.
    """

    def __init__(self, key: str, config: Config | None = None) -> None:
        super().__init__(key)
        self.config = config

    def __reduce__(self) -> tuple[Any, ...]:
        return MissingSettingError, self.args, {"config": self.config}

    def __str__(self) -> str:
        key = self.args[0]
        if self.config is None or not isinstance(key, str):
            return super().__str__()
        known = catalog.find_key_record(key) is not None
        message = f"{self.config.name} does not set {key!r}"
        hint = "config.get(key) gives None then" if known else suggest_config_key(self.config, key)
        return f"{message}: {hint}" if hint else message


def suggest_config_key(config: Config, key: str) -> str:
    """Return a suggestion for a key that neither the config nor the catalogue has.

    An empty string if none is similar.
    """
    section, _ = keys.split_section_and_name(key)
    if elsewhere := catalog.find_key_elsewhere(key, config.settings):
        return f"write {elsewhere!r}"
    described = catalog.load_sections()[section]
    return did_you_mean(
        key, dict.fromkeys((*config.settings, *map(described.format_key, described.names)))
    )


class Config(Mapping[str, "Any"]):
    """One preset, resolved for one context; immutable.

    As a mapping, it returns every setting by its full key: ``config["precision_mode_v2"]``,
    ``config["env.JOB_ID"]``, in the catalogue's order; ``options``, ``env``, ``estimator`` and
    ``atc`` show one section each, by plain name. Values have TOML's types: str, int, float, bool,
    list, dict. Two configs are equal if their digests and contexts are. They can be hashed, and
    pickled for another process.

    ``name`` is the requested spec, ``context`` the context of the resolution (CANN release,
    product, target). ``lineage`` lists the profiles that took part, lowest first, and ``changes``
    the changes of the caller. ``settings`` are the settings in resolution order, ``claims`` the
    scenario, releases and products. ``memo`` caches derived values.
    """

    name: str
    context: Context
    lineage: Lineage
    settings: TomlTable
    resolver: Resolver
    changes: tuple[Step, ...]
    claims: Claims
    memo: TomlTable

    def __init__(
        self,
        name: str,
        context: Context,
        lineage: Lineage,
        settings: TomlTable,
        tracer: Callable[[str], tuple[Any, list[Event]]],
        resolver: Resolver,
        changes: tuple[Step, ...] = (),
        claims: Claims | None = None,
    ) -> None:
        # __setattr__ rejects every assignment
        self.__dict__.update(
            name=name,
            context=context,
            lineage=lineage,
            settings=FrozenDict(settings),
            resolver=resolver,
            changes=changes,
            claims=claims or {},
            memo={},
            _tracer=tracer,
            _traced={},
        )

    _tracer: Callable[[str], tuple[Any, list[Event]]]
    _traced: dict[str, tuple[Any, list[Event]]]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"a config does not change: resolve with set={{...}} in place of setting {name}"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(
            f"a config does not change: resolve with unset=[...] in place of deleting {name}"
        )

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name in _FOR_USERS or name.startswith("__")]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def _repr_html_(self) -> str:
        return _format_html(self)

    def __getitem__(self, key: str) -> Any:
        try:
            return freeze_value(self.settings[key])
        except KeyError:
            raise MissingSettingError(key, self) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.ordered_settings())

    def __len__(self) -> int:
        return len(self.settings)

    def __bool__(self) -> bool:
        return True  # a config without settings is still true

    def __contains__(self, key: object) -> bool:
        return key in self.settings

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __reduce__(self) -> tuple[Any, ...]:
        from npuprof.resolve import rebuild_config

        return rebuild_config, (
            self.name,
            self.context,
            self.lineage,
            self.claims,
            self.changes,
            self.policy,
            self.resolver.in_python,
        )

    def remember(self, mark: str, compute: Callable[[], Result]) -> Result:
        """Return a derived value, computed on first use."""
        if mark not in self.memo:
            self.memo[mark] = compute()
        value: Result = self.memo[mark]
        return value

    @property
    def shared_sections(self) -> dict[str, TomlTable]:
        """All settings as ``sections`` returns them, computed once; not to be modified."""
        return self.remember("sections", self.sections)

    def sections(self) -> dict[str, TomlTable]:
        """Return all settings by section and plain name.

        In each section, those of the catalogue come first, in its order.
        """
        by_section: dict[str, TomlTable] = {section: {} for section in catalog.load_sections()}
        for key, value in self.settings.items():
            section, name = keys.split_section_and_name(key)
            by_section[section][name] = copy_value(value)  # changes do not reach the store's data
        for section, settings in by_section.items():
            if len(settings) > 1:
                place = catalog.load_sections()[section].find_position
                by_section[section] = {name: settings[name] for name in sorted(settings, key=place)}
        return by_section

    @property
    def options(self) -> Mapping[str, Any]:
        """The session options, by name."""
        return self._freeze_section("options")

    @property
    def env(self) -> Mapping[str, Any]:
        """The environment variables, by name."""
        return self._freeze_section("env")

    @property
    def estimator(self) -> Mapping[str, Any]:
        """The arguments of NPURunConfig that are not session options, by name."""
        return self._freeze_section("estimator")

    @property
    def atc(self) -> Mapping[str, Any]:
        """The ATC flags without an equivalent session option, by name."""
        return self._freeze_section("atc")

    def _freeze_section(self, section: str) -> Mapping[str, Any]:
        return self.remember(
            f"frozen {section}", lambda: freeze_value(self.shared_sections[section])
        )

    def find_profile_value(self, name: str) -> Any:
        """Return an inherited key of ``[profile]``.

        It is the profile's own value, else the intersection of its parents' values.
        """
        if name in ("versions", "axes"):
            return dict(getattr(self, name)) or None
        return self.claims[name].value if name in self.claims else None

    def find_profile_origin(self, name: str) -> Origin | None:
        """Return the origin of the effective value of a ``[profile]`` key.

        None if no profile sets it.
        """
        return self.claims[name].origin if name in self.claims else None

    @property
    def profile(self) -> Profile:
        """Its own profile, the last of the lineage."""
        return self.lineage[-1]

    @property
    def description(self) -> str:
        """The profile's own description."""
        return str(self.profile.table.get("description", "")) if self.lineage else ""

    @property
    def scenario(self) -> str | None:
        """training, online-inference, offline-inference, or None."""
        scenario: str | None = self.find_profile_value("scenario")
        return scenario

    @property
    def cann(self) -> str | None:
        """The range of CANN releases the profile is meant for."""
        cann: str | None = self.find_profile_value("cann")
        return cann

    @property
    def versions(self) -> Mapping[str, str]:
        """The ranges of releases that the profile is meant for, by framework.

        That of CANN is ``cann``.
        """
        return self._freeze_claims(VERSIONS)

    @property
    def axes(self) -> Mapping[str, list[str]]:
        """The values of declared axes that the profile is meant for, by axis."""
        return self._freeze_claims(AXES)

    def _freeze_claims(self, prefix: str) -> Mapping[str, Any]:
        return self.remember(
            prefix,
            lambda: FrozenDict(
                {
                    axis: claim.value
                    for name, claim in self.claims.items()
                    if (axis := name.removeprefix(prefix)) != name
                }
            ),
        )

    def list_ranges(self) -> dict[str, str]:
        """Return the ranges of releases that the profile is meant for.

        They are by name: of CANN (``cann``) and of frameworks.
        """
        return ({"cann": self.cann} if self.cann else {}) | dict(self.versions)

    def list_covered_versions(self) -> Axes:
        """Return the framework releases that the preset supports.

        If a release was requested, it is the only one.
        """
        meant = {
            axis: releases.find_judged_releases(spec, axis) or ()
            for axis, spec in self.versions.items()
        }
        return meant | {axis: (release,) for axis, release in self.context.versions}

    @property
    def products(self) -> tuple[str, ...]:
        """The product families the profile is meant for."""
        return tuple(self.find_profile_value("products") or ())

    @property
    def abstract(self) -> bool:
        """Whether the profile exists only to be extended."""
        return bool(self.lineage) and self.profile.abstract

    def list_ancestors(self, profile: Profile) -> list[Profile]:
        """Return the ancestors of a member of the lineage, nearest first."""
        by_name = group_pairs(
            (member.name, member) for member in self.lineage[: self.lineage.index(profile)]
        )
        ancestors = []
        waiting = [profile]
        for member in waiting:
            source = member.name.rpartition(":")[0] if member.key.startswith("source:") else ""
            for reference in member.extends:
                name = reference.partition("@")[0]
                # references inside a source lack its prefix, which names of its presets have
                full = f"{source}{'/' if ':' in name else ':'}{name}" if source else name
                ancestors += [parent for parent in by_name.pop(full, ()) if parent not in ancestors]
            # breadth first, so that nearer ancestors come first
            waiting += ancestors[len(waiting) - 1 :]
        return ancestors

    @property
    def policy(self) -> Policy | None:
        """The team policy for the preset, from the tree it was read from; None if there is none.

        Raises NpuprofError if the policy is invalid.
        """
        return self.resolver.lookups.find_policy(self.profile)

    @property
    def form(self) -> int:
        """The digest form: that of the release the preset was read from, else the current."""
        return self.profile.form if self.lineage else FORM

    @property
    def declared(self) -> TeamVariables:
        """The variables that the stores of its presets declare, by name.

        A declaration of the preset's own store counts more than one of a source.
        """
        declared: TeamVariables = {}
        for policy in self.policies:
            declared |= policy.variables
        return declared

    @property
    def policies(self) -> list[Policy]:
        """The policies of the stores of its presets, that of its own store last."""
        return self.remember("policies", self._find_policies)

    def _find_policies(self) -> list[Policy]:
        homes = map(id, map(attrgetter("home"), self.lineage))
        # one member of each store
        members = dict(zip(homes, self.lineage)).values()  # noqa: B905 - strict= takes longer
        policies = []
        for member in sorted(members, key=lambda member: member is self.profile):
            try:
                policy = self.resolver.lookups.find_policy(member)
            except NpuprofError:  # an invalid npuprof.toml is reported where it is read
                continue
            if policy:
                policies.append(policy)
        return policies

    @property
    def digest(self) -> str:
        """SHA-256 of the effective values, in hexadecimal.

        It is equal for equal results on every machine, independent of the context.
        """
        return self.remember("digest", lambda: compute_digest(self.settings, self.form))

    @property
    def _identity(self) -> tuple[str, Context]:
        # in one form, whatever the release
        return self.remember("identity", lambda: compute_digest(self.settings)), self.context

    @property
    def preset_digest(self) -> str:
        """SHA-256 of the layers, in hexadecimal: the same for equal presets in every context."""
        return self.remember("preset digest", lambda: compute_preset_digest(self.lineage))

    def ordered_settings(self) -> TomlTable:
        """Return all settings by full key, in the catalogue's order, section by section."""
        return {
            keys.format_full_key(section, name): value
            for section, named in self.shared_sections.items()
            for name, value in named.items()
        }

    def replace_parts(self, **parts: Any) -> Config:
        """Return the same config with other attributes."""
        replaced = object.__new__(Config)
        replaced.__dict__.update(self.__dict__, **parts)
        return replaced

    def _trace_key(self, key: str) -> tuple[Any, list[Event]]:
        if key not in self._traced:
            self._traced[key] = self._tracer(key)
        return self._traced[key]

    def history(self, key: str) -> list[Event]:
        """Return every step that changed a setting, first to last."""
        return self._trace_key(key)[1]

    def origin(self, key: str, tail: Path = ()) -> Origin | None:
        """Return the origin of the effective value at a key or below it.

        For tables and lists, the last origin.
        """
        leaf, _ = self._trace_key(key)
        if tail:
            leaf = values.find_value(key, leaf, tail)[1]
        if isinstance(leaf, values.Leaf):
            return leaf.origin
        # the value is a table or list: the last step that wrote there decides
        for event in reversed(self.history(key)):
            if event.step.op != "unset" and values.find_value(key, event.step.value, tail)[0]:
                return event.origin.locate_below(*tail)
        return self.origin(key, tail[:-1]) if tail else None

    def origins(self, key: str) -> list[Origin]:
        """Return the origins of a setting, the effective value's first.

        Those of the values that it overrides follow.

        ``key`` may reach into a value (``modify_mixlist.black-list.to-add``); the origin of each
        step that wrote there is listed, appends included. The list is empty for a known key that is
        not set. Raises KeyError for an unknown key, with a similar one as a suggestion, and
        TypeError for a key that is not a string.
        """
        if not isinstance(key, str):
            raise TypeError(f"key must be a str, not {type(key).__name__}")
        parsed = keys.parse_key(key)
        if parsed is None:
            raise MissingSettingError(key, self)
        full, tail = parsed
        # a key that was set and unset is known, too
        is_known = full in self.settings or self.history(full) or catalog.find_key_record(full)
        if not is_known and suggest_config_key(self, full):
            raise MissingSettingError(key, self)
        return [
            _find_inner_origin(event, tail)
            for event in reversed(self.history(full))
            if event.step.op != "unset" and values.find_value(full, event.step.value, tail)[0]
        ]

    def traced_value(self, key: str) -> Any:
        """Return the effective value with every leaf as ``values.Leaf``, which has its origin."""
        return self._trace_key(key)[0]

    def __repr__(self) -> str:
        return f"Config({self.name!r}, {format_count(len(self), 'setting')})"


def _find_inner_origin(event: Event, tail: Path) -> Origin:
    value = event.step.value
    path = event.origin.path
    for part in tail:
        # a mapping written as one string has no positions inside it
        if isinstance(value, str):
            break
        value, path = value[part], (*path, part)
    return event.origin._replace(path=path)


def _format_html(config: Config) -> str:
    """Return a config as an HTML table of its settings.

    It has their values, origins and overridden values.
    """
    from npuprof.report.html import escape_html, fold_long_text, format_notebook_table

    lines = [
        config.description,
        _describe_purpose(config),
        f"digest {config.digest[:12]}, {format_count(len(config), 'setting')}",
    ]
    rows = []
    for key in config:
        winner, *losers = [str(origin) for origin in config.origins(key)] or [""]
        overridden = ""
        if losers:
            origins = "<br>".join(map(escape_html, losers))
            overridden = f"<details><summary>{len(losers)}</summary>{origins}</details>"
        rows.append(
            (
                Code(key),
                fold_long_text(keys.format_toml_value(config[key])),
                winner,
                Markup(overridden),
            )
        )
    return format_notebook_table(
        config.name, lines, ("setting", "value", "set by", "overridden"), rows
    )


def _describe_purpose(config: Config) -> str:
    requested = config.context
    titles = {"scenario": "", "cann": "CANN ", "products": ""}
    parts = [
        titles.get(name, f"{find_axis(name)} ") + format_claim(claim.value)
        for name, claim in config.claims.items()
    ]
    if requested._replace(target=None) != Context():
        parts.append(f"resolved for {requested.describe()}")
    parts += [f"target {requested.target}" if requested.target else ""]
    return "; ".join(filter(None, parts))
