"""The commit that last changed a value, and the JSON fields of a commit."""

from __future__ import annotations

from npuprof.catalog import values
from npuprof.history.timeline import Timeline
from npuprof.model import NpuprofError, Path, is_same_typed_value
from npuprof.resolve.config import Config
from npuprof.store import spec
from npuprof.store.gitstore.commits import Commit
from npuprof.system import find_repository_top


def build_commit_fields(commit: Commit | None) -> dict[str, str | None]:
    """Return a commit as fields of JSON answers, all None if the value is not committed yet."""
    return {name: getattr(commit, field, None) for name, field in _FIELDS.items()}


_FIELDS = {
    "commit": "id",
    "author": "author",
    "email": "email",
    "date": "date",
    "subject": "subject",
}


def find_last_change(
    preset: str, store: str | None, config: Config, key: str, tail: Path
) -> dict[str, str | None] | None:
    """Return the fields of the commit that last changed a resolved value.

    All are None if it is not committed yet. Returns None without history: no repository, no git, or
    a preset without commits.
    """
    workspace = spec.Workspace(store, config.context)
    try:
        if not find_repository_top(workspace.store.root):
            return None
        name, revision = workspace.split_single_spec(preset, "explain")
        repository = workspace.store.repository
        named = repository.resolve_revision(name, revision) if revision else None
        tip = named.commit if named else repository.resolve_commit("HEAD")
        timeline = Timeline(repository, tip, name, config.context, named.version if named else None)
        if not revision:
            committed = timeline.load_tip()
            if not isinstance(committed, Config):
                # It may need a vendored release, which Timeline does not read.
                profile = repository.load_revision(tip).profile(name)
                committed = workspace.resolver.resolve_profile(profile)
            was_set, was = values.find_setting_value(committed.settings, key, tail)
            is_set, now = values.find_setting_value(config.settings, key, tail)
            # the value is in the work tree only
            if was_set != is_set or not is_same_typed_value(was, now):
                return build_commit_fields(None)
        step = next(timeline.walk_steps(key, tail, everywhere=False), None)
    except NpuprofError:
        return None
    return build_commit_fields(step.commit) if step and step.kind != "untold" else None
