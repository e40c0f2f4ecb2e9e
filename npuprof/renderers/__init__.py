"""Write a config down: one module for each family of targets, each ending in its table ``TARGETS``, a row a target."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from npuprof.catalog.targets import MODULES as MODULES
from npuprof.model import Finding, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config


class Rendered(Record):
    """What a target gives: the text, the sidecar files it expects beside it (name to text), and remarks.

    ``notes`` say what belongs elsewhere, ``findings`` what the place that reads the text does with it.
    """

    text: str
    sidecars: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


class Target(Record):
    """One render target: ``write`` takes a config and whether only bare lines are wanted.

    ``place`` is its place in lists of all targets, a number that is written out. ``surface`` names the spellings of
    options that it writes. ``renames`` tells whether its bare lines work on a ``config`` that may have another name.
    """

    place: int
    summary: str
    file: str
    write: Callable[[Config, bool], Rendered]
    surface: str = ""
    renames: bool = False


def load_target(name: str) -> Target:
    """Return a target by name. Raises KeyError."""
    table: dict[str, Any] = import_module(f"npuprof.renderers.{MODULES[name]}").TARGETS
    found: Target = table[name]
    return found
