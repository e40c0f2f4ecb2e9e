"""What binds the findings of a store's presets: what its own npuprof.toml says, and the rules of sources that it takes over."""

from __future__ import annotations

from npuprof.document.policy import Policy
from npuprof.store.sources.beside import read_project
from npuprof.store.sources.reading import find_sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.profile import ProfileSource
    from npuprof.store.sources.project import Project


def read_policy(home: ProfileSource) -> Policy | None:
    """Return what holds for the findings of a store's presets, None where nothing is said; own rules replace those of the same code.

    Raises NpuprofError where npuprof.toml cannot be understood, or a source whose rules count is not there.
    """
    project = find_project(home)
    rules = project.rules
    own = {rule.code for rule in rules}
    for name, source in project.sources.items():
        if source.rules:
            policy = find_sources(home).open_source(name).load_policy()
            rules += tuple(rule for rule in policy.rules if rule.code not in own and rule not in rules) if policy else ()
    return Policy(rules, project.ignores) if rules or project.ignores else None


def find_project(home: ProfileSource) -> Project:
    """Return what a store's own npuprof.toml says. Raises NpuprofError where it cannot be understood."""
    from npuprof.store import Folder

    return read_project(home) if isinstance(home, Folder) else find_sources(home).project
