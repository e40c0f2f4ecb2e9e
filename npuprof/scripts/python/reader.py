"""Reads Python scripts: one visitor for all surfaces, and a fast check that avoids
parsing most files.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial

from npuprof.scripts.python import (
    atc_calls,
    environ,
    global_options_calls,
    nested_configs,
    parameter_map,
    program_calls,
    run_config_calls,
    torch_settings,
)
from npuprof.scripts.python.expressions import TOO_MUCH
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.python.ineffective import mark_without_effect
from npuprof.scripts.python.module import Module
from npuprof.scripts.python.optimizer_entries import is_foreign_optimizer
from npuprof.scripts.python.parameter_map import find_commented_settings
from npuprof.scripts.python.parsing import Script
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.script_records import IdleConfig, ImportedFile, ScriptSetting

#: The Python surfaces.
_SURFACES = (
    parameter_map.SURFACE,
    run_config_calls.SURFACE,
    global_options_calls.SURFACE,
    environ.SURFACE,
    atc_calls.SURFACE,
    torch_settings.SURFACE,
    program_calls.SURFACE,
)
_ENCODED = {surface: tuple(word.encode() for word in surface.words) for surface in _SURFACES}
#: Any of these, alone or together with ``npu``, justifies parsing.
_CERTAIN = (
    b"parameter_map",
    b"custom_optimizers",
    b"NpuOptimizer",
    b"NPURunConfig",
    *_ENCODED[program_calls.SURFACE],
)
_WORDS = frozenset(word for words in _ENCODED.values() for word in words)
_CLASSES, _ATC, _ENVIRON, _TORCH = (
    _ENCODED[one.SURFACE] for one in (run_config_calls, atc_calls, environ, torch_settings)
)
_PROGRAMS = (b"subprocess", b"system", b"popen")
_TORCH_NPU = re.compile(rb"torch_npu|\bnpu\b")


@lru_cache(4)  # called for a module itself, and again for each part that importers may call
def mentions_python_setting(data: bytes) -> bool:
    """Return whether a script can contain settings, without parsing it."""
    if any(word in data for word in _CERTAIN):
        return True
    # Each class has Config in its name, and each word that sets a variable env, unless it starts a
    # program.
    if b"npu" in data and (
        b"global_options" in data or (b"Config" in data and any(word in data for word in _CLASSES))
    ):
        return True
    if b"torch" in data and any(word in data for word in _TORCH) and _TORCH_NPU.search(data):
        return True
    starts_program = any(word in data for word in _PROGRAMS)
    if starts_program and any(word in data for word in _ATC):
        return True
    may_set_variable = (starts_program or b"env" in data) and any(word in data for word in _ENVIRON)
    return may_set_variable and environ.mentions_variable(data)


def _can_set(text: bytes, part: bytes) -> bool:
    """Return whether a part of a text can set something; for the whole text, by rare words."""
    return mentions_python_setting(text) and (part is text or any(word in part for word in _WORDS))


def calls_python_settings(path: str, data: bytes, modules: Modules) -> bool:
    """Return whether a script can call a function of its tree that sets something,
    without parsing it.
    """
    return modules.may_call(path, data, _can_set)


def import_python(path: str, data: bytes, modules: Modules | None = None) -> ImportedFile:
    """Return the content of a Python script, for any bytes.

    With ``modules``, imported files of its tree are included.
    """
    modules = modules or Modules()
    script = modules.take_script(path, data)
    if script.tree is None:
        return ImportedFile(path, (), (), tuple(script.problems))
    visitor = _open_visitor(script, data, modules)
    idle: list[IdleConfig] = []
    try:
        visitor.visit_module()
        nested_configs.link_nested_configs(visitor)
        is_named_elsewhere = partial(modules.is_named_elsewhere, path)
        settings, idle = mark_without_effect(
            visitor.main, visitor.found, visitor.notes, is_named_elsewhere
        )
        settings += find_commented_settings(visitor.main)
    except RecursionError:
        script.add_script_problem("the file is nested too deeply to be read", "", "flatten it")
        settings = visitor.found
    others = {
        scope
        for scope, site in visitor.sites.items()
        if site.entry and is_foreign_optimizer(site.entry)
    }
    settings = [setting for setting in settings if setting.scope not in others]
    _tell_what_is_too_much(script, settings, visitor.unfollowed)
    modules.keep_script(script, data)
    sites = tuple(site for scope, site in visitor.sites.items() if scope not in others)
    notes, followed = (*visitor.notes, *idle), tuple(visitor.functions)
    return ImportedFile(
        path,
        tuple(settings),
        sites,
        tuple(script.problems),
        script.text,
        notes,
        followed=followed,
    )


def _tell_what_is_too_much(
    script: Script, every: list[ScriptSetting], unfollowed: tuple[int, str] | tuple[()]
) -> None:
    """Record settings that could not be determined within the limits as problems of the file."""
    told = {
        (one.line, one.column, one.reason.rpartition(": ")[2]): one
        for one in every
        if one.reason.endswith(TOO_MUCH) and not one.dead
    }
    for (line, column, reason), one in told.items():
        why = (
            f"{one.name} was not looked at."
            if one.name
            else "Settings made there were not checked."
        )
        script.add_script_problem(reason, why, "write it shorter", line, column)
    if unfollowed:
        line, name = unfollowed
        what = (
            f"{name}() is not looked into: the script calls more "
            "functions that set something than are followed"
        )
        script.add_script_problem(
            what, "Its settings from here on are not in a preset.", "split the script", line
        )


def _open_visitor(script: Script, data: bytes, modules: Modules) -> Visitor:
    """Return the visitor of a script, which follows calls into other files."""
    module = Module(script, modules.open_home(script.path))
    visitor = Visitor(
        module,
        _choose_surfaces,
        modules.load,
        lambda path: bool(modules.list_supplied(path, _can_set)),
    )
    imported = modules.list_imported(script.path, data)  # other files may have the options too
    visitor.shares_options = any(
        modules.has_options(path) and modules.list_supplied(path, _can_set) for path in imported
    )
    modules.index = module.index
    return visitor


def _choose_surfaces(module: Module) -> tuple[Surface, ...]:
    """Return the surfaces for a file: by its words, and the options surface if an imported module
    has it.
    """
    text = module.script.text
    modules = module.home.modules
    shared = any(map(modules.has_options, (module.path, *modules.list_imported(module.path))))
    return tuple(
        one
        for one in _SURFACES
        if any(word in text for word in one.words)
        or (one is global_options_calls.SURFACE and shared)
    )
