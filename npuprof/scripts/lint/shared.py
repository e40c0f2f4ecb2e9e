"""Options of TensorFlow 2 that a script sets in an object of another file, or by a function there: judged with its own.

All else of a script is judged file by file: what a helper does to one session config is told of the helper.
"""

from __future__ import annotations

from npuprof.scripts.reading import ImportedFile, may_hold_settings, read_script
from npuprof.scripts.reading.files import may_share_options
from npuprof.scripts.reading.modules import Modules

_SURFACE = "global_options"


class Sharing:
    """Scripts of one tree, read one by one."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules

    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file that scripts import, none where it cannot be read."""
        return self._modules.read(path)

    def read_script(self, file: str, data: bytes, named: bool) -> ImportedFile | None:
        """Return what a script holds and what it sets in options of others, None where there can be neither."""
        alone = read_script(file, data, named) if may_hold_settings(file, data) else None
        if not may_share_options(file, data, self._modules):
            return alone
        followed = read_script(file, data, named, self._modules)
        options = tuple(one for one in followed.found if one.surface == _SURFACE)
        groups = followed.facts.get("groups", ())
        if not options and not groups:
            return alone
        if alone is None:
            alone = ImportedFile(file, facts={"text": followed.facts["text"]})
        return alone._replace(
            found=(*(one for one in alone.found if one.surface != _SURFACE), *options),
            sites=(*(site for site in alone.sites if site.surface != _SURFACE), *(s for s in followed.sites if s.surface == _SURFACE)),
            facts={**alone.facts, "groups": groups},
        )
