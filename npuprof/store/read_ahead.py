"""A store in a folder of which some files were read before anyone asked for the presets in them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import Origin
from npuprof.store import Folder


class ReadAheadStore(Folder):
    """The same store as another, with all it knows, but presets are parsed from ``texts``, by name, where these have them."""

    def __init__(self, store: Folder, texts: Mapping[str, bytes]) -> None:
        self.__dict__ = vars(store)
        self.texts = texts

    def _read_profile(self, name: str, asked: Origin | None) -> Profile:
        raw = self.texts.get(name)
        if not raw or self.layout.globs or os.path.islink(self.profile_path(name)):
            return super()._read_profile(name, asked)  # it may lie elsewhere
        return Profile(parse_document(name, self.cite_file(f"{name}.toml"), raw), key=f"{self.beside}{name}", home=self)
