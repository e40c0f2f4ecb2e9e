"""What is wrong with a framework's own settings: [torch_npu], [vllm_ascend], and [vllm], whose arguments are passed through."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.checks.arguments import find_path_faults, find_plain_value_faults
from npuprof.checks.meaning import describe_value_kind, find_nul_faults
from npuprof.checks.view import Fault
from npuprof.document.keys import is_no_number
from npuprof.model import FRAMEWORK_SECTIONS, Path, suggest_name

_IGNORED = {
    "torch_npu": "torch_npu takes a misspelt attribute without an error, and ignores it.",
    "vllm_ascend": "vLLM-Ascend 0.27.1rc1 and newer stop at a key that they do not know, older releases ignore it.",
}


def find_framework_faults(section: str, name: str, value: Any) -> list[Fault]:
    """Return what is wrong with a setting of a framework, or with those in a table of settings; each with its place below ``name``."""
    return [fault for path, item in catalog.list_settings(section, name, value) for fault in _find_item_faults(section, name, path, item)]


def _find_item_faults(section: str, name: str, path: Path, value: Any) -> list[Fault]:
    dotted = ".".join((name, *path))
    key = f"{section}.{dotted}"
    if section == "vllm":
        if name.replace("_", "-") == "additional-config":
            return [Fault("NP212", f"{key} has a section of its own", "There its keys are checked.", "move its keys below [vllm_ascend]")]
        wrong = is_no_number(value) or hasattr(value, "isoformat")
        what = f"{key} takes text, a number, true, false, a list or a table, not {describe_value_kind(value)}"
        return [Fault("NP202", what, "No YAML value has this form.", "write it as text")] if wrong else find_nul_faults(key, value, "")
    record = catalog.find_setting(section, dotted)
    if record is None:
        return [_build_unknown_fault(section, dotted)._replace(tail=path)]
    if record.kind in ("json", "list"):
        is_taken = isinstance(value, dict if record.kind == "json" else list)
        wanted = "a table" if record.kind == "json" else "a list"
        faults = [] if is_taken else [Fault("NP202", f"{key} takes {wanted}, not {describe_value_kind(value)}", "", f"write {wanted}")]
    else:
        faults = find_plain_value_faults(key, record, value) or (find_path_faults(key, value) if record.kind == "path" else [])
    return [fault._replace(tail=(*path, *fault.tail)) for fault in faults]


def _build_unknown_fault(section: str, dotted: str) -> Fault:
    """Return that a framework has no setting of this name: another one, or another section, may be meant."""
    group = f"{dotted.rpartition('.')[0]}."
    is_closed = any(catalog.find_setting(section, name).closed for name in catalog.record_names(section) if name.startswith(group))  # type: ignore[union-attr]
    why = f"vLLM-Ascend stops at an unknown key of {group[:-1]}." if is_closed else _IGNORED[section]
    leaf = dotted.rpartition(".")[2]
    other = next((other for other in FRAMEWORK_SECTIONS if catalog.find_setting(other, dotted)), "")
    if other or catalog.find_option(leaf) is not None or catalog.find_variable(leaf) is not None:
        home = other or ("options" if catalog.find_option(leaf) is not None else "env")
        return Fault("NP212", f"{section} has no setting {dotted!r}", why, f"{dotted} belongs below [{home}]")
    known = catalog.record_names(section)
    same = [name for name in known if name.rpartition(".")[2] == leaf]
    hint, fix = suggest_name(dotted, known, f"npuprof options {section} lists all")
    return Fault("NP212", f"{section} has no setting {dotted!r}", why, f"did you mean {same[0]!r}?" if len(same) == 1 else hint, fix=fix)
