"""Whether a script that adds the optimizer by itself switches off the rewrites of TensorFlow that do not know the NPU."""

from __future__ import annotations

from npuprof.catalog import build_finding
from npuprof.model import Finding, Place
from npuprof.scripts.reading import ImportedFile
from npuprof.scripts.reading.surfaces.entries import AddedEntry, NamedEntry
from npuprof.scripts.reading.surfaces.session import HELPERS, Rewrite

#: What makes a session; the config of one that another file makes may be changed there.
_SESSIONS = ("Session(", "managed_session(")


def build_script_finding(imported: ImportedFile, code: str, line: int, column: int, what: str, why: str, hint: str) -> Finding:
    """Return a finding at a place of a script."""
    return build_finding(code, what, why, hint, where=Place(imported.file, line, column))


def check_rewrites(imported: ImportedFile) -> list[Finding]:
    """Return whether remapping or memory_optimization stay on in a script that adds the optimizer by itself."""
    text, added = imported.text, imported.list_own_remarks(AddedEntry)
    named = any(entry.name == "NpuOptimizer" for entry in imported.list_own_remarks(NamedEntry))
    off = {rewrite.name for rewrite in imported.list_remarks(Rewrite)}
    remapped = [one for one in imported.list_own_remarks(Rewrite) if one.name == "remapping" and one.state.rpartition(".")[2] == "ON"]
    if not added or not named or (len(off) == 2 and not remapped) or not any(word in text for word in _SESSIONS):
        return []
    line, column = min((entry.line, entry.column) for entry in added)
    result = []
    for one in remapped:
        what = "remapping is switched on"
        why = "The remapper fuses nodes into ones that the NPU does not know."
        result.append(build_script_finding(imported, "NP806", one.line, one.column, what, why, "write RewriterConfig.OFF"))
    if (
        "remapping" not in off
        and not _is_remapping_helped(text)
        and ("remapping" not in text or "remapping" not in _drop_comment_lines(text))
    ):
        why = "The remapper fuses nodes into ones that the NPU does not know; nothing here switches it off."
        hint = "set graph_options.rewrite_options.remapping = RewriterConfig.OFF"
        result.append(build_script_finding(imported, "NP806", line, column, "remapping is left on", why, hint))
    if "memory_optimization" not in off and ("memory_optimization" not in text or "memory_optimization" not in _drop_comment_lines(text)):
        why = "The documented scripts switch it off; the helpers do so only where they add the entry themselves."
        hint = "set graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF"
        result.append(build_script_finding(imported, "NP807", line, column, "memory_optimization is left on", why, hint))
    return result


def _is_remapping_helped(text: str) -> bool:
    """Return whether something else in a script switches remapping off: a helper, the Estimator, or the patched Session."""
    if any(helper in text for helper in HELPERS) or "NPURunConfig" in text:
        return True
    at = text.find("npu_bridge.npu_init")
    return at >= 0 and text[text.rfind("\n", 0, at) + 1 : at].strip() in ("from", "import")


def _drop_comment_lines(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))
