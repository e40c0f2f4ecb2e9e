"""Scripts of one tree as they are judged: with the constants that they import and the functions that they call, of files of the tree."""

from __future__ import annotations

from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading import ImportedFile, may_call_settings, may_hold_settings, read_script


def read_shared_script(file: str, data: bytes, named: bool, modules: Modules) -> ImportedFile | None:
    """Return what a script sets, by functions of other files too, None where it can set nothing."""
    can_set = may_hold_settings(file, data, named) or may_call_settings(file, data, modules)
    return read_script(file, data, named, modules) if can_set else None


def open_shared(imported: ImportedFile, modules: Modules) -> ImportedFile:
    """Return what a file holds, the same where no other one names an entry of it: such a one may get there what is not set here.

    Who asks has found something, for all files of the tree are looked into.
    """
    own = {site for site in imported.sites if site.closed and site.surface == "session" and site.scope.startswith("<module>:")}
    shared = {site for site in own if site.variable and modules.is_named_elsewhere(imported.file, site.variable)}
    sites = tuple(site._replace(closed=site.closed and site not in shared) for site in imported.sites)
    return imported._replace(sites=sites) if shared else imported
