"""Read settings out of existing scripts by their syntax, never by running them: one module for each surface."""

from __future__ import annotations

from npuprof.scripts.reading.files import read, wanted
from npuprof.scripts.reading.found import Found, Imported, Site

__all__ = ["Found", "Imported", "Site", "read", "wanted"]
