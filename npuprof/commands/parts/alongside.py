"""What lies beside a store in its repository and goes along when presets are rewritten: baselines, and blocks in scripts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from npuprof.model import Context
from npuprof.store import Folder, spec
from npuprof.system.tree import find_repository_top

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.report.writing import Wanted

#: How many blocks a remark lists.
_SHOWN = 5


def find_baseline_files(home: Folder) -> Iterator[str]:
    """Yield the files of the repository of a store that may be baselines, by their names; none without a repository."""
    top = find_repository_top(os.path.realpath(home.root))
    if top:
        from npuprof.scripts.files import find_files

        yield from find_files([os.path.relpath(top)], [], lambda path: path.endswith(".json") or "baseline" in os.path.basename(path))


def format_baseline_change(wanted: Wanted) -> str:
    """Return what changes in a baseline as a unified diff."""
    from npuprof.report.rowdiff import format_row_difference

    before, after = ((content or b"").decode(errors="replace") for content in (wanted.known, wanted.content))
    return format_row_difference(os.path.normpath(wanted.path), before, after, "    {")


def tell_outdated_blocks(home: Folder, store: str | None, open_changed: Callable[[Context], spec.Workspace]) -> tuple[str, ...]:
    """Return a remark on the blocks in scripts of the repository that presets make out of date, as a changed store has them."""
    top = find_repository_top(os.path.realpath(home.root))
    if not top:
        return ()
    from npuprof.scripts.blocks import Injector
    from npuprof.scripts.renaming import find_outdated_blocks

    place = os.path.relpath(top)
    before, after = Injector(store, trusting=True), Injector(store, trusting=True, open_store=open_changed)
    found = [f"{path}:{block.first + 1} ({block.spec})" for path, block in find_outdated_blocks(place, before, after)]
    if not found:
        return ()
    more = f" and {len(found) - _SHOWN} more" if found[_SHOWN:] else ""
    counted = "1 block in a script is" if len(found) == 1 else f"{len(found)} blocks in scripts are"
    return (f"{counted} out of date by that: {', '.join(found[:_SHOWN])}{more}; npuprof inject {place} --all writes anew",)
