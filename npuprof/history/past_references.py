"""What presets refer to, seen from the store at successive commits."""

from __future__ import annotations

from npuprof.document.profile import ProfileSource
from npuprof.history.snapshots import Snapshots
from npuprof.model import Origin
from npuprof.store.gitstore.revisions import Pin
from npuprof.store.sources.lookups import Lookups
from npuprof.store.sources.opening import Sources


class PastLookups(Lookups):
    """Lookups in the snapshots of a history, as in a store with sources and releases."""

    def __init__(self, snapshots: Snapshots) -> None:
        super().__init__()
        self._snapshots = snapshots

    def find_sources(self, home: ProfileSource) -> Sources:
        """Return the sources of the current commit, or of another store. Raises NpuprofError."""
        return self._snapshots.sources if home is self._snapshots else super().find_sources(home)

    def find_pin(self, home: ProfileSource, reference: str, requested: Origin | None) -> Pin:
        """Return the target of ``NAME@REV`` before the current commit, or in another store.

        Raises NpuprofError.
        """
        return (
            self._snapshots.pin_parent(reference, requested)
            if home is self._snapshots
            else super().find_pin(home, reference, requested)
        )
