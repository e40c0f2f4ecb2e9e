"""Read settings out of existing scripts by their syntax, never by running them: one module for each surface."""

from __future__ import annotations

from npuprof.importers._found import Found, Imported, Site
from npuprof.importers.files import read, wanted

__all__ = ["Found", "Imported", "Site", "read", "wanted"]
