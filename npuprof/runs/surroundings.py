"""What in an environment would get in the way of a preset: variables with bad values, and those that win over what it sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from npuprof import catalog, checks
from npuprof.document import build_command_line_document, keys
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError
from npuprof.renderers.common import encode_field_value
from npuprof.renderers.environment import format_twin_text, format_variable_text
from npuprof.resolve.config import Config
from npuprof.store.spec import Workspace

_FROM = "the environment"
_ITEM = re.compile(r"[A-Z][A-Z0-9_]*=[0-4]")
_RANK_TABLE = ("RANK_TABLE_FILE",)
_CHIEF = ("CM_CHIEF_IP", "CM_CHIEF_PORT", "CM_CHIEF_DEVICE", "CM_WORKER_SIZE")


def find_interference(config: Config | None, environ: Mapping[str, str]) -> list[Finding]:
    """Return what in an environment would interfere with a preset, or with any."""
    set_here = {name: text for name in catalog.record_names("env") if (text := environ.get(name)) is not None}
    found = [*_find_log_faults(set_here), *_find_launcher_faults(set_here)]
    own = dict(config.env) if config is not None else {}
    shared = {name: text for name, text in set_here.items() if name not in own and _is_shared(name)}
    told = {finding.key for finding in found}
    found += [one for one in _check_variables(config, shared) if one.key not in told]
    if config is not None:
        known = " ".join(finding.message for finding in found)
        found += [
            one for one in _find_rivals(config, shared) if one.severity != "info" or keys.split_section_and_name(one.key)[1] not in known
        ]
    return found


def _is_shared(name: str) -> bool:
    known = catalog.find_variable(name)
    return known is not None and not (known.per_process or known.launcher or known.freeze == "never")


def _check_variables(config: Config | None, shared: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what the checks say of variables as if the preset set them, and do not say without them."""
    if not shared:
        return
    document = build_command_line_document(_FROM, {"env": dict(shared)})
    workspace = Workspace()
    layer = Profile(document, key="composed:environment")
    try:
        if config is None:
            seen = workspace.resolver.resolve_profile(layer)
        else:
            context = workspace.resolver.for_context(config.context)
            base = config.lineage[-1]
            joined = Profile(build_command_line_document(config.name, {}), key="composed:surroundings")
            lineage = (*config.lineage, layer, joined) if base is not joined else config.lineage
            seen = context.resolve_members(lineage, config.name, config.claims, config.changes)
        before = {(one.code, one.key) for one in checks.check_config(config)} if config is not None else set()
        findings = checks.check_config(seen)
    except NpuprofError:
        return
    for finding in findings:
        section, name = keys.split_section_and_name(finding.key) if finding.key else ("", "")
        concerned = (section == "env" and name in shared) or any(name in finding.message for name in shared)
        if concerned and (finding.code, finding.key) not in before and finding.severity != "info":
            yield finding._replace(severity="warning", profiles=())


def _find_log_faults(set_here: Mapping[str, str]) -> Iterator[Finding]:
    modules = set_here.get("ASCEND_MODULE_LOG_LEVEL")
    for item in (modules or "").split(":") if modules is not None else ():
        if not _ITEM.fullmatch(item):
            what = f"ASCEND_MODULE_LOG_LEVEL: {item!r} is no MODULE=LEVEL" if item else "ASCEND_MODULE_LOG_LEVEL has an empty item"
            why = "Items are joined by colons, each a module in capitals with a level from 0 to 4; a bad one voids them all."
            yield Finding("NP965", what, why, "write ASCEND_MODULE_LOG_LEVEL=FMK=1:GE=1", key="env.ASCEND_MODULE_LOG_LEVEL")
    level = set_here.get("ASCEND_GLOBAL_LOG_LEVEL")
    if level is not None and level not in ("0", "1", "2", "3", "4"):
        what = f"ASCEND_GLOBAL_LOG_LEVEL={level!r} is no level"
        yield Finding("NP965", what, "A bad value means 3: errors only.", "write a number from 0 to 4", key="env.ASCEND_GLOBAL_LOG_LEVEL")
    screen = [name for name in ("ASCEND_LOG_PRINT_TO_STDOUT", "ASCEND_SLOG_PRINT_TO_STDOUT") if set_here.get(name) == "1"]
    if screen and "ASCEND_PROCESS_LOG_PATH" in set_here:
        what = f"{screen[0]}=1 leaves ASCEND_PROCESS_LOG_PATH without effect"
        why = "What is printed on the screen is not saved to files."
        yield Finding("NP965", what, why, "unset one of the two", key="env.ASCEND_PROCESS_LOG_PATH")
    both = [set_here.get(name) for name in ("ASCEND_LOG_PRINT_TO_STDOUT", "ASCEND_SLOG_PRINT_TO_STDOUT")]
    if None not in both and both[0] != both[1]:
        what = f"ASCEND_LOG_PRINT_TO_STDOUT={both[0]} and ASCEND_SLOG_PRINT_TO_STDOUT={both[1]} contradict each other"
        why = "Releases before 9.2.0 know only the second; later ones take the first."
        yield Finding("NP965", what, why, "give both one value", key="env.ASCEND_LOG_PRINT_TO_STDOUT")


def _find_launcher_faults(set_here: Mapping[str, str]) -> Iterator[Finding]:
    table = [name for name in _RANK_TABLE if set_here.get(name)]
    chief = [name for name in _CHIEF if set_here.get(name)]
    if table and chief:
        what = f"{table[0]} and {', '.join(chief)} are both set"
        why = "A job is started with a rank table, or without one; never both."
        yield Finding("NP965", what, why, "unset the one that the launcher does not use", key=f"env.{table[0]}")


def _find_rivals(config: Config, shared: Mapping[str, str]) -> Iterator[Finding]:
    """Yield variables that stand for an option of the preset, and say something else or win over it."""
    twins = catalog.load_env_twins()
    for option, value in config.options.items():
        rivals = dict.fromkeys((*twins.get(option, ()), *(name for name in shared if option in _list_ranked(name))))
        for name in rivals:
            if name not in shared:
                continue
            ranked = _list_ranked(name)
            wins = name in ranked and option in ranked and ranked.index(name) < ranked.index(option)
            if (name, shared[name]) == ("PROFILING_MODE", "dynamic"):
                wins = True
            written = encode_field_value(option, value)
            text = format_twin_text(name, value, format_variable_text(written)) if name in twins.get(option, ()) else None
            if text == shared[name]:
                continue
            shown = keys.format_short_value(value)
            order = str(catalog.find_record_texts("env", name).get("precedence", ""))
            if wins:
                what = f"{name}={shared[name]!r} wins over {option} = {shown}"
                yield Finding("NP965", what, f"The order is {order}.", f"unset {name} before the run", config.origin(option), f"env.{name}")
            elif text is not None:
                what = f"{name}={shared[name]!r} says something else than {option} = {shown}"
                why = "Where the script sets the option it wins; where it does not, the variable is in force." + (
                    f" ({order})" if order else ""
                )
                hint = f"unset {name}, or start the run with npuprof run, which sets it to {text!r}"
                yield Finding("NP965", what, why, hint, config.origin(option), f"env.{name}", severity="info")


def _list_ranked(name: str) -> list[str]:
    """Return the names in the order in which a variable and its rivals win, as its record says."""
    order = str(catalog.find_record_texts("env", name).get("precedence", ""))
    part = next((part for part in order.split(";") if re.search(rf"\b{name}\b", part)), "")
    return re.findall(r"[A-Za-z][A-Za-z0-9_]{2,}", part) if ">" in part else []
