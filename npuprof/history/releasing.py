"""The data of a release: the earlier versions of a preset, and its parents."""

from __future__ import annotations

from collections.abc import Iterator

from npuprof.resolve.config import Config
from npuprof.store import is_source_reference
from npuprof.store.gitstore.repository import Repository
from npuprof.store.gitstore.revisions import Revision
from npuprof.store.sources.lookups import Lookups
from npuprof.store.sources.storedigest import digest_texts
from npuprof.store.versions import ParentRecord, ReleaseRecord, Version


def list_earlier_versions(
    repository: Repository, names: set[str], head: str
) -> dict[str, list[Version]]:
    """Return the versions of presets that are ancestors of a commit, oldest first.

    Those under former names count. The history is read once. Raises NpuprofError.
    """
    versions_of = {name: list(repository.load_reachable_versions(name, head)) for name in names}
    if repository.list_tag_refs():
        for name, formers in repository.find_former_names(head, names).items():
            for former in formers:
                versions_of[name] += repository.load_reachable_versions(former.name, former.commit)
    for name, versions in versions_of.items():
        # of one number under two names, the current name counts as the later one
        versions.sort(key=lambda version: (version.text.order, version.name == name))
    return versions_of


def find_last_release(versions: list[Version]) -> Version | None:
    """Return the newest version that is not a pre-release, from versions sorted oldest first.

    None if there is none.
    """
    return next((version for version in reversed(versions) if not version.pre), None)


def build_release_record(config: Config) -> ReleaseRecord:
    """Return the record for the tag of a preset, resolved at the commit to release.

    Raises NpuprofError.
    """
    parents = tuple(dict.fromkeys(list_pinned_parents(config)))
    return ReleaseRecord(config.digest, config.preset_digest, config.form, parents)


def digest_store(committed: Revision) -> str:
    """Return the digest of a store's presets at a commit, in the form of the lock, without prefix.

    Raises NpuprofError.
    """
    names = [name for name, file in committed.files.items() if not file.outside]
    committed.load_texts(names)
    texts = {name: committed.read_profile_text(name) for name in names}
    _, _, digest = digest_texts(texts).partition(":")
    return digest


def list_pinned_parents(config: Config) -> Iterator[ParentRecord]:
    """Yield what pinned parents, and parents from sources, resolve to at the preset's commit.

    Raises NpuprofError.
    """
    lookups = Lookups()
    waiting = [("", config.profile.home, config.profile.name)]
    seen = set()
    while waiting:
        view, home, name = waiting.pop(0)
        # only presets at a commit of this repository have pins to record
        if (view, id(home), name) in seen or not isinstance(home, Revision):
            continue
        seen.add((view, id(home), name))
        for reference, requested in home.profile(name).iterate_references():
            if is_source_reference(reference):
                source = lookups.find_source_store(home, reference, requested)
                yield ParentRecord(view, reference, source.version, source.commit)
                continue
            if "@" not in reference:
                waiting.append((view, home, reference))
                continue
            pin = home.pin_parent(reference, requested)
            parent = ParentRecord(view, reference, pin.version, pin.commit)
            yield parent
            waiting.append((parent.own_view, pin.home, pin.name))
