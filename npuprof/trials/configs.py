"""The configs of combinations: a flat preset each, resolved and checked like any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from npuprof.checks import check_before_export, identify_finding
from npuprof.document import keys, parse_document
from npuprof.document.profile import INHERITED_KEYS, Profile
from npuprof.model import SECTIONS, Finding, NpuprofError
from npuprof.resolve.digests import compute_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config
    from npuprof.trials.units import Difference

    #: What two findings share that are the same fault.
    Fault = tuple[str, str, str]


def build_flat_config(settings: Mapping[str, Any], like: Config, name: str) -> Config:
    """Return a config of these settings that is for what another one is for, in its context. Raises NpuprofError."""
    tables: dict[str, dict[str, Any]] = {
        "profile": {key: value for key in INHERITED_KEYS if (value := like.find_profile_value(key))},
        **{section: {} for section in SECTIONS},
    }
    for key, value in settings.items():
        section, plain = keys.split_section_and_name(key)
        tables[section][plain] = value
    text = "\n".join(format_table(section, table) for section, table in tables.items() if table)
    profile = Profile(parse_document(name, f"<{name}>", text), key=f"trial:{compute_digest(dict(settings))}")
    config = like.resolver.resolve_profile(profile, name)  # type: ignore[attr-defined]
    config.memo["policy"] = like.policy
    found: Config = config
    return found


def format_table(name: str, table: Mapping[str, Any]) -> str:
    """Return a table of a preset, a line a key."""
    return f"[{name}]\n" + "".join(f"{keys.format_key_segment(key)} = {keys.format_toml_value(value)}\n" for key, value in table.items())


class Combinations:
    """The configs of what lies between two: which of them the checks allow, and why not the others.

    A combination is allowed that has no error which neither end has; ``fit`` raises NpuprofError for more of them.
    """

    def __init__(self, difference: Difference, name: str, fit: Callable[[Config], None] | None = None) -> None:
        self.difference = difference
        self._name = name
        self._fit = fit
        self._errors: dict[int, tuple[Finding, ...]] = {}
        self._configs: dict[int, Config | None] = {}
        self.excused = {identify_finding(one) for mask in (0, difference.every) for one in self._find_errors(mask)}

    def find_config(self, mask: int) -> Config | None:
        """Return the config of a combination; an end is the config that was given. None for what cannot be resolved."""
        if mask == 0:
            return self.difference.before
        if mask == self.difference.every:
            return self.difference.after
        if mask not in self._configs:
            self._find_errors(mask)
        return self._configs[mask]

    def compute_digest(self, mask: int) -> str:
        """Return the digest of a combination."""
        return compute_digest(self.difference.build_settings(mask))

    def find_new_errors(self, mask: int) -> tuple[Finding, ...]:
        """Return the errors of a combination that neither end has."""
        errors = self._find_errors(mask)
        if self._configs[mask] is None:  # what cannot be resolved cannot be run
            return errors
        return tuple(one for one in errors if identify_finding(one) not in self.excused)

    def _find_errors(self, mask: int) -> tuple[Finding, ...]:
        if mask not in self._errors:
            config = None
            try:
                config = build_flat_config(self.difference.build_settings(mask), self.difference.after, self._name)
                found = tuple(one for one in check_before_export(config) if one.severity == "error")
                if self._fit is not None and not found:
                    self._fit(config)
            except NpuprofError as error:
                found = error.findings
            self._configs[mask], self._errors[mask] = config, found
        return self._errors[mask]
