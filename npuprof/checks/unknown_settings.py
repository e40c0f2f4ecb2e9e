"""Faults of unknown settings of frameworks, which few presets have."""

from __future__ import annotations

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.catalog.programs import find_program
from npuprof.checks.view import Fault
from npuprof.model import Fix, suggest_name

#: More settings with the same last name are no hint where programs add arguments.
_FEW_NAMES = 3


def build_unknown_fault(section: str, dotted: str) -> Fault:
    """Return the fault of an unknown framework setting.

    The hint is a similar name, or the section that has the name. It is a warning where programs add
    arguments.
    """
    sections = catalog.load_sections()
    is_open = sections[section].is_exact
    group = dotted.rpartition(".")[0]
    is_closed = any(setting.closed for setting in catalog.list_settings_below(section, group))
    why = (
        f"{sections[section].title} stops at an unknown key of {group}."
        if is_closed
        else sections[section].unknown
    )
    what = f"{section} has no setting {dotted!r}"
    leaf = dotted.rpartition(".")[2]
    for home in () if is_open else sections.values():
        name = dotted if home.dotted else leaf
        if home.launch or sections[section].launch:
            name = name.replace("_", "-") if home.launch else name.replace("-", "_")
        is_other = home.is_exact or home.name in (section, "estimator", "atc")
        if is_other or releases.is_past(home.find(name)):
            continue
        if home.find(name) is not None or catalog.list_settings_below(home.name, name):
            hint = (
                f"{name} belongs below [{home.name}]; on a command line it is "
                f"{home.format_key(name)}"
            )
            return Fault("NP212", what, why, hint)
    if found := catalog.list_flags(section).get(f"-{dotted.lstrip('-')}"):
        return Fault("NP212", what, why, f"write {found[0]}", fix=Fix(None, found[0]))
    program = find_program(section)
    starts = program.list_starting(f"--{dotted}") if program else {}
    if len(starts) > 1:  # at some release it may be the start of one only
        hint = f"write {' or '.join(sorted(starts))}"
        return Fault("NP212", what, why, hint, severity="warning")
    known = sections[section].names
    same = [name for name in known if name.rpartition(".")[2] == leaf]
    hint, fix = suggest_name(dotted, known, f"npuprof options {section} lists all")
    if same and not (is_open and (fix or len(same) > _FEW_NAMES)):
        hint, fix = f"did you mean {' or '.join(map(repr, same))}?", None
    return Fault("NP212", what, why, hint, severity="warning" if is_open else "error", fix=fix)
