"""The store of a source, and the versions of its presets: what the lock says of them, else what its mirror has."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cached_property, partial

from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Origin
from npuprof.store import is_profile_name
from npuprof.store.sources.lock import LockedVersion, LockedVersions
from npuprof.store.sources.mirror import build_later_finding, find_mirror_folder, open_mirror, require_commit
from npuprof.store.sources.ranges import parse_version_range
from npuprof.store.sources.released import (
    ReleasedTag,
    build_unknown_finding,
    find_named_commit,
    find_newest_kept,
    find_released_version,
    load_released_tags,
)
from npuprof.store.sources.texts import SourceTexts
from npuprof.store.sources.wording import name_source_in_error, place_finding
from npuprof.store.versions import YANKED, parse_version_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.store.repository import Repository
    from npuprof.store.revision import Pin, Revision
    from npuprof.store.versions import Version


class SourceStore(SourceTexts):
    """The store of a source at a commit, and those at the versions of its presets: each is such a store as well."""

    @cached_property
    def _locked_versions(self) -> LockedVersions:
        return LockedVersions(self.locked.versions)

    @cached_property
    def _versions(self) -> dict[tuple[str, bool], SourceStore]:
        return {}

    @cached_property
    def _keyed(self) -> set[str]:
        return set()

    def profile(self, name: str, asked: Origin | None = None) -> Profile:
        """Return one profile. What the lock says of its own ancestors with an @ is part of its key: another lock may say otherwise.

        Raises NpuprofError.
        """
        found = super().profile(name, asked)
        if self.locked.versions and not self.is_version and name not in self._keyed:
            self._keyed.add(name)
            if pins := self._find_pins(found):
                found.key = f"{found.key}[{' '.join(sorted(pins))}]"
        return found

    def _find_pins(self, profile: Profile) -> set[str]:
        """Return what the lock says of the references with an @ that a profile and its ancestors in this store make."""
        found: set[str] = set()
        seen, waiting = {profile.name}, [profile]
        while waiting:
            for reference in waiting.pop().extends:
                if reference in self.locked.versions:
                    found.add(f"{reference}={self.locked.versions[reference].commit}")
                elif is_profile_name(reference) and reference not in seen:
                    seen.add(reference)
                    with suppress(NpuprofError):  # told where it is resolved
                        waiting.append(super().profile(reference))
        return found

    def find_version(self, reference: str, asked: Origin | None = None, is_own: bool = False) -> SourceStore:
        """Return the store as it was where ``NAME@VERSION`` was released, as far as that can be reached from the locked commit.

        For its own presets (``is_own``) a whole number may mean what was released elsewhere, as where they are kept. Raises NpuprofError.
        """
        key = reference, is_own
        if key not in self._versions:
            self._versions[key] = self._open_version(reference, asked, is_own)
            self._versions[key].which = self.which
        return self._versions[key]

    def _open_version(self, reference: str, asked: Origin | None, is_own: bool) -> SourceStore:
        self.refuse_unfit()
        name, _, wanted = reference.partition("@")
        pinned = None if self.is_version else self._locked_versions.find(reference)
        copied: dict[str, LockedVersion] = {}
        if pinned is None and self._copy is not None:
            pinned = LockedVersions(copied := self._copy.read_references()).find(reference)
        yanked = pinned.yanked if pinned else ""
        if self.copy is not None and pinned is not None:
            shown = f"{name}/v{pinned.version}" if pinned.version != "-" else pinned.commit[:7]
            copy = self.copy.find_version(pinned.commit)
            return SourceStore(self.locked, self.source, shown=shown, copy=copy, commit=pinned.commit, yanked=yanked)
        if self.copy is not None and (not is_own or not os.path.isdir(find_mirror_folder(self.locked.url))):
            raise NpuprofError([place_finding(self._build_uncopied_finding(reference, {**self.locked.versions, **copied}, asked), asked)])
        if pinned is None and not is_own and not self.is_version and self.locked.releases:
            pinned = self._find_released(reference, asked)
            yanked = pinned.yanked
        if pinned is not None:
            shown = f"{name}/v{pinned.version}" if pinned.version != "-" else pinned.commit[:7]
            return SourceStore(
                self.locked, self.source, shown=shown, commit=pinned.commit, yanked=yanked,
                find_version=partial(self._open_pinned, reference, pinned, asked, is_own), is_own=is_own,
            )  # fmt: skip
        pin = self._find_pin(reference, wanted, asked, is_own)
        shown = f"{pin.name}/v{pin.version}" if pin.version else pin.commit[:7]
        if pin.released and not pinned:  # the lock says nothing of it
            yanked = self.revision.repository.find_yank(shown)
        return SourceStore(self.locked, self.source, pin.home, shown, pin.released, yanked=yanked)

    def _find_released(self, reference: str, asked: Origin | None) -> LockedVersion:
        """Return what a reference that the lock does not spell was when the source was locked. Raises NpuprofError."""
        name, _, wanted = reference.partition("@")
        wanted = wanted.strip("\"'")
        try:
            if commit := find_named_commit(self.revision.repository, self.commit, wanted) if not _is_number(wanted) else "":
                return LockedVersion("-", commit)
            tags = self._released_tags
        except NpuprofError as error:
            raise NpuprofError([place_finding(finding, asked) for finding in error.findings]) from None
        found = find_released_version(tags, name, wanted)
        if found is None:
            raise NpuprofError([place_finding(build_unknown_finding(self.source, f"{name}@{wanted}", tags), asked)])
        tag = f"{name}/v{found.version}"
        is_yanked = any(one.tag == f"{tag}{YANKED}" for one in tags)
        return found._replace(yanked=self.revision.repository.find_yank(tag) or "no reason is given") if is_yanked else found

    @cached_property
    def _released_tags(self) -> list[ReleasedTag]:
        return load_released_tags(self.locked, lambda: self.revision.repository)

    def _build_uncopied_finding(self, reference: str, there: dict[str, LockedVersion], asked: Origin | None) -> Finding:
        """Return that a version is not in the copy; without a preset that refers to it no update brings it."""
        name, first = reference.partition("@")[0], self.source.partition("/")[0]
        update = f"copy it: npuprof source update {first}"
        if asked is None:
            has = sorted({pin.version for other, pin in there.items() if other.partition("@")[0] == name and pin.version != "-"})
            update = f'refer to it in a preset, extends = ["{self.source}:{reference}"], and {update}'
            update = f"of {name} it has {', '.join(has)}; {update}" if has else update
        what = f"the copy of the source {self.source!r} has no {reference}"
        return Finding("NP044", what, "It holds the versions that presets refer to.", update)

    def _open_pinned(self, reference: str, pinned: LockedVersion, asked: Origin | None, is_own: bool) -> tuple[Revision, Version | None]:
        """Return the store at a version that the lock names, and the version, if its tag is there. Raises NpuprofError."""
        from npuprof.store.revisions import load_repository_revision

        name, _, wanted = reference.partition("@")
        if not self._has_tag(name, pinned):  # the lock knows better than tags that were moved or deleted
            require_commit(self.revision.repository, self.source, pinned.commit)
            return load_repository_revision(self.revision.repository, pinned.commit), None
        pin = self._find_pin(reference, pinned.version if pinned.version != "-" else wanted, asked, is_own)
        return pin.home, pin.released

    def _find_pin(self, reference: str, wanted: str, asked: Origin | None, is_own: bool) -> Pin:
        from npuprof.store import revisions

        name = reference.partition("@")[0]
        try:
            pin = revisions.find_pin(self.revision, f"{name}@{wanted}", asked)
        except NpuprofError as error:
            raise name_source_in_error(error, self.source, name) from None
        if pin.released and not is_own and not self.revision.repository.is_version_reachable(name, pin.released.text, self.commit):
            raise NpuprofError([build_later_finding(self.source, reference, pin.version, asked)])
        return pin

    def list_versions(self) -> list[SourceStore]:
        """Return the stores at the versions that its lock holds, each commit once. Raises NpuprofError."""
        found = {pin.commit: reference for reference, pin in self.locked.versions.items()} if not self.is_version else {}
        return [self.find_version(reference) for reference in found.values()]

    def advise_yanked(self, reference: str) -> str:
        """Return what to do about a reference to a version that was yanked, as far as that is known here."""
        source, _, name = reference.partition("@")[0].partition(":")
        update = f"npuprof source update {source}"
        if "/" in self.source:
            return f"it is named where {self.source.rpartition('/')[0]} is kept; once mended there: npuprof source update"
        newest = ""
        with suppress(NpuprofError):  # it is a copy, and the mirror is not here
            tags = open_mirror(self.source, self.locked.url, self.locked.path)
            newest = self._find_newest_kept(tags, name) if self.is_version else tags.find_newest_kept("")
        if self.is_version:
            newer = f'write "{source}:{name}@{newest}" in its place' if newest else "put another version behind the @"
            return f"{newer}, then {update}"
        number, wanted = parse_version_text(newest), parse_version_range(self.locked.rev)
        if number is None or (wanted is not None and wanted.accepts(number)):
            return f"{update} takes {newest or 'a newer version, once there is one'}"
        return f'write rev = "^{number.number[0]}.{number.number[1]}" in {self.asked or "npuprof.toml"}, then {update}'

    def _find_newest_kept(self, tags: Repository, name: str) -> str:
        if not self.locked.releases:
            return tags.find_newest_kept(name, self.locked.commit)
        return find_newest_kept(load_released_tags(self.locked, lambda: tags), name)

    def _has_tag(self, name: str, pinned: LockedVersion) -> bool:
        """Return whether the tag of a version names the commit that was locked."""
        found = self.revision.repository.git.read_objects([f"refs/tags/{name}/v{pinned.version}^{{commit}}"])[0]
        return found is not None and found.oid == pinned.commit


def _is_number(wanted: str) -> bool:
    """Return whether a text behind an @ is a number of a version, and no id of a commit: one of few digits, or with dots."""
    return "." in wanted or (wanted.removeprefix("v").isdigit() and len(wanted) < 4)
