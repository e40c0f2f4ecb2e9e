"""Scripts of one tree as they are judged: with the constants that they import and the functions that they call, of files of the tree."""

from __future__ import annotations

from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading import ImportedFile, Site, may_call_settings, may_hold_settings, read_script


class Sharing:
    """Scripts of one tree, read one by one."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules

    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file that scripts import, none where it cannot be read."""
        return self._modules.read(path)

    def read_script(self, file: str, data: bytes, named: bool) -> ImportedFile | None:
        """Return what a script sets, by functions of other files too, None where it can set nothing."""
        can_set = may_hold_settings(file, data, named) or may_call_settings(file, data, self._modules)
        return read_script(file, data, named, self._modules) if can_set else None

    def open_shared(self, imported: ImportedFile) -> ImportedFile:
        """Return what a file holds, the same where no other one names an entry of it: such a one may get there what is not set here.

        Who asks has found something, for all files of the tree are looked into.
        """
        sites = tuple(site._replace(closed=site.closed and not self._is_shared(imported.file, site)) for site in imported.sites)
        return imported if sites == imported.sites else imported._replace(sites=sites)

    def _is_shared(self, file: str, site: Site) -> bool:
        own = site.closed and site.surface == "session" and site.scope.startswith("<module>:") and site.variable
        return bool(own) and self._modules.is_named_elsewhere(file, site.variable)
