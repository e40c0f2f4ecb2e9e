"""``source vendor``: copy a locked source into this repository."""

from __future__ import annotations

import os

from npuprof.commands.framework import argument, option
from npuprof.commands.framework.parameters import StoreVerb
from npuprof.model import build_error
from npuprof.report import Answer
from npuprof.store import RELEASED, spec
from npuprof.store.sources.copies import (
    collect_files,
    find_fit_folder,
    read_manifest,
    reject_foreign_files,
    write_copy,
)
from npuprof.store.sources.manifest import MANIFEST, build_manifest, digest_manifest
from npuprof.store.sources.opening import Sources
from npuprof.store.sources.vendored import find_copy_folder
from npuprof.store.sources.vendored_files import KeptFiles

#: The name of the store itself.
OWN = "."


class Vendor(StoreVerb):
    """Copy a locked source into this repository.

    Its presets are then read from the copy, and nothing is fetched. With . as NAME, npuprof copies
    the released versions that presets of this store extend into .released. They then resolve
    without git history, as in a wheel or an image.
    """

    group = "team"

    name = argument("NAME", "Source to copy, or . for released versions of this store", "source")
    into = option(
        "--into",
        metavar="FOLDER",
        text=(
            "Copy to FOLDER, relative to npuprof.toml [default: the existing copy, or vendor/NAME]"
        ),
    )

    def run(self) -> Answer:
        """Write the copy and add it to npuprof.toml.

        Raises NpuprofError, and then writes nothing.
        """
        if self.name == OWN:
            return self._keep_releases()
        files = spec.open_project_files(self.store)
        (source,) = files.select_sources([self.name])
        locked = Sources(files.project, files.lock).open_source(source.name).locked
        folder = (
            (source.vendor or f"vendor/{source.name}")
            if self.into is None
            else self.into.rstrip("/") or self.into
        )
        texts = collect_files(locked)
        # the copy first: a lock that names a missing copy would break whatever reads the source
        write_copy(find_fit_folder(files, source, folder, texts), texts)
        known = locked._replace(copy=digest_manifest(texts[MANIFEST]))
        files.write({source.name: {"vendor": folder}}, {**files.lock.sources, source.name: known})
        note = (
            f"copied {source.name} {locked.shown} into {folder}: "
            f"{len(texts)} files, read from there from now on"
        )
        if (
            source.vendor
            and source.vendor != folder
            and os.path.isdir(os.path.join(files.folder, source.vendor))
        ):
            return Answer(
                None,
                (
                    note,
                    (
                        f"the copy in {source.vendor} stays; nothing "
                        f"reads it any more: git rm -r {source.vendor}"
                    ),
                ),
            )
        return Answer(None, (note,))

    def _keep_releases(self) -> Answer:
        """Write the releases that presets of the store extend.

        Raises NpuprofError, and then writes nothing.
        """
        home = spec.open_project_files(self.store, needs_lock=False).home
        if self.into is not None:
            what = f"--into {self.into!r}: the releases that a store extends are kept in it"
            raise build_error("NP940", what, "Nothing else says where they are.", "omit --into")
        releases = KeptFiles()
        releases.add_store(home)
        top = find_copy_folder(home.root, RELEASED)
        reject_foreign_files(top, home.root, releases.files, read_manifest(top))
        # an existing folder is emptied if no preset extends a release any more
        if releases.files or os.path.isdir(top):
            write_copy(top, {**releases.files, MANIFEST: build_manifest(releases.files)})
        notes = [
            f"{reference} is not a released version and was not vendored: it may change"
            for reference in releases.passed_over
        ]
        shown = ", ".join(
            f"{reference} ({version})" if not reference.endswith(f"@{version}") else reference
            for reference, version in releases.references.items()
        )
        outcome = (
            f"kept in {home.label}/{RELEASED}: {shown}; git add {home.label}/{RELEASED}"
            if shown
            else f"no preset of {home.label} extends a released "
            "version of another one of it: nothing is kept"
        )
        return Answer(None, (*notes, outcome))


VERB = Vendor
