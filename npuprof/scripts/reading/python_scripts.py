"""Reads Python scripts: one visitor for all surfaces, and a check that avoids parsing most."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache, partial

from npuprof.scripts.python import (
    environ,
    global_options_calls,
    nested_configs,
    parameter_map,
    program_calls,
    run_config_calls,
    torch_settings,
)
from npuprof.scripts.python.expressions import TOO_MUCH
from npuprof.scripts.python.imports import OPTIONS, Modules, has_options
from npuprof.scripts.python.ineffective import mark_without_effect
from npuprof.scripts.python.module import Module
from npuprof.scripts.python.optimizer_entries import is_foreign_optimizer
from npuprof.scripts.python.parameter_map import find_commented_settings
from npuprof.scripts.python.parsing import Script
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.reading import command_lists
from npuprof.scripts.reading.program_arguments import mentions_program
from npuprof.scripts.script_records import IdleConfig, ImportedFile, ScriptSetting
from npuprof.scripts.words import has_any, join_words

#: The Python surfaces.
_SURFACES = (
    parameter_map.SURFACE,
    run_config_calls.SURFACE,
    global_options_calls.SURFACE,
    command_lists.SURFACE,  # before environ, which leaves its calls out
    environ.SURFACE,
    torch_settings.SURFACE,
    program_calls.SURFACE,
)


def _encode(markers: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(map(str.encode, markers))


def _compile(markers: Iterable[bytes]) -> re.Pattern[bytes]:
    texts = map(re.escape, markers)
    # before a bracket is the whole name of a call
    return re.compile(b"|".join(rb"\b" + each if each.endswith(b"(") else each for each in texts))


_COMMAND_MARKERS = _encode(command_lists.MARKERS)
_CLASS_MARKERS = _encode(run_config_calls.SURFACE.markers)
_ENVIRON_MARKERS = _encode(environ.SURFACE.markers)
_ATC_MARKERS = _encode(command_lists.ATC_MARKERS)
_TORCH_MARKERS = _encode(torch_settings.SURFACE.markers)
#: Any of these, alone or together with ``npu``, justifies parsing.
_CERTAIN = (b"parameter_map", b"custom_optimizers", b"NpuOptimizer", b"NPURunConfig")
_CALL_MARKERS = _encode(program_calls.SURFACE.markers)
_PROGRAMS = (b"subprocess", b"system", b"popen")
_NPU = re.compile(rb"npu(?<![Ii]npu)")  # no input
_TORCH_NPU = re.compile(rb"npu(?:(?<=torch_npu)|(?<!\wnpu)\b)")
#: What each part has that sets something, by the kind of setting.
_COMMAND_PART = _compile(_COMMAND_MARKERS)
_CERTAIN_PART = _compile((*_encode(parameter_map.SURFACE.markers), *_CERTAIN))
_CLASS_PART, _ATC_PART, _TORCH_PART = map(_compile, (_CLASS_MARKERS, _ATC_MARKERS, _TORCH_MARKERS))
#: A table is an argument: its name comes before an equals sign or a quote.
_CALL_PART = re.compile(
    b"|".join(
        rb"\b" + (re.escape(each) if each.endswith(b"(") else each + rb"(?=['\"]|\s*=)")
        for each in _CALL_MARKERS
    )
)
_TABLE_PART = re.compile(b"set_option")


@lru_cache(4)  # called for a module itself, and again for each part that importers may call
def _list_parts(data: bytes) -> list[re.Pattern[bytes]]:
    """Return the patterns of parts that can set something in a script, without parsing it."""
    parts = []
    if has_any(data, _CERTAIN):
        parts.append(_CERTAIN_PART)
    if has_any(data, _CALL_MARKERS) and _CALL_PART.search(data):
        parts.append(_CALL_PART)
    if _NPU.search(join_words(data)):
        if has_options(data):
            parts.append(OPTIONS)
        if has_any(data, _CLASS_MARKERS):
            parts.append(_CLASS_PART)
        if has_any(data, _TORCH_MARKERS) and _TORCH_NPU.search(data):
            parts.append(_TORCH_PART)
    if mentions_program(data) and has_any(data, _COMMAND_MARKERS):
        parts.append(_COMMAND_PART)
    starts_program = has_any(data, _PROGRAMS)
    if starts_program and has_any(data, _ATC_MARKERS):
        parts.append(_ATC_PART)
    if _sets_variable(data) and environ.mentions_variable(data):
        parts.append(environ.SETS)
    return parts


@lru_cache(1)
def _sets_variable(data: bytes) -> bool:
    """Return whether a script may set variables, of any software."""
    may_set = has_any(data, (b"env", *_PROGRAMS)) and has_any(data, _ENVIRON_MARKERS)
    return may_set and environ.SETS.search(data) is not None


def mentions_python_setting(data: bytes) -> bool:
    """Return whether a script can contain settings, without parsing it."""
    return bool(_list_parts(data))


def _can_set(text: bytes, part: bytes, together: bool) -> bool:
    """Return whether a part of a text can set something; for the whole text, by rare markers."""
    parts = _list_parts(text)
    if part is text:
        return bool(parts)
    if together:  # of what belongs to the process, an object can only keep a table of options
        parts = [_TABLE_PART if each is _TORCH_PART else each for each in parts]
        parts = [each for each in parts if each is not _CALL_PART]
    elif environ.SETS in parts and environ.sets_own_variable(part):
        return True
    return any(each.search(part) for each in parts if each is not environ.SETS)


def calls_python_settings(path: str, data: bytes, modules: Modules) -> bool:
    """Return whether a script can call a function of its tree that sets something.

    Without parsing it.
    """
    # variables that others read are counted next to those of Ascend
    return modules.may_call(path, data, _can_set, _sets_variable(data))


def import_python(path: str, data: bytes, modules: Modules | None = None) -> ImportedFile:
    """Return the content of a Python script, for any bytes.

    With ``modules``, imported files of its tree are included.
    """
    modules = modules or Modules()
    script = modules.loaded.pop_script(path, data)
    if script.tree is None:
        return ImportedFile(path, (), (), tuple(script.problems))
    visitor = _open_visitor(script, data, modules)
    idle: list[IdleConfig] = []
    try:
        visitor.visit_module()
        nested_configs.link_nested_configs(visitor)
        is_named_elsewhere = partial(modules.is_named_elsewhere, path)
        settings, idle = mark_without_effect(
            visitor.main, visitor.settings, visitor.notes, is_named_elsewhere
        )
        settings += find_commented_settings(visitor.main)
    except RecursionError:
        script.add_script_problem("the file is nested too deeply to be read", "", "flatten it")
        settings = visitor.settings
    # the entries of other products have other options
    foreign = {
        scope
        for scope, site in visitor.sites.items()
        if site.entry and is_foreign_optimizer(site.entry)
    }
    settings = [setting for setting in settings if setting.scope not in foreign]
    _report_limits(script, settings, visitor.unfollowed)
    modules.loaded.keep_script(script, data)
    imported = ImportedFile(
        path,
        tuple(settings),
        tuple(site for scope, site in visitor.sites.items() if scope not in foreign),
        tuple(script.problems),
        script.text,
        other_records=(*visitor.notes, *idle),
        followed=tuple(visitor.functions),
    )
    vars(visitor).clear()  # the caches of its methods refer to it, and would keep its trees
    return imported


def _report_limits(
    script: Script, settings: list[ScriptSetting], unfollowed: tuple[int, str] | tuple[()]
) -> None:
    """Record settings that could not be determined within the limits as problems of the file."""
    limited = {}
    for setting in settings:
        if setting.reason.endswith(TOO_MUCH) and not setting.dead:
            _, _, limit = setting.reason.rpartition(": ")
            limited[setting.line, setting.column, limit] = setting
    for (line, column, limit), setting in limited.items():
        why = "Settings made there were not checked."
        if setting.name:
            why = f"{setting.name} was not looked at."
        script.add_script_problem(limit, why, "write it shorter", line, column)
    if unfollowed:
        line, name = unfollowed
        what = (
            f"{name}() is not looked into: the script calls more "
            "functions that set something than are followed"
        )
        why = "Its settings from here on are not in a preset."
        script.add_script_problem(what, why, "split the script", line)


def _open_visitor(script: Script, data: bytes, modules: Modules) -> Visitor:
    """Return the visitor of a script, which follows calls into other files."""

    def list_supplied(path: str) -> frozenset[bytes]:
        return modules.list_supplied(path, _can_set)

    module = Module(script, modules.open_home(script.path))
    modules.begin_script(module.index)
    visitor = Visitor(module, _choose_surfaces, modules.load, list_supplied)
    imported = modules.list_imported(script.path, data)
    # other files may have the options too
    visitor.shares_options = any(
        modules.has_options(path) and list_supplied(path) for path in imported
    )
    return visitor


def _choose_surfaces(module: Module) -> tuple[Surface, ...]:
    """Return the surfaces whose markers a file contains.

    The options of TensorFlow 2 too if an imported module has them.
    """
    if module.surfaces is None:
        data = module.script.text.encode(errors="replace")
        # another file may name torch
        sets = has_any(data, _TORCH_MARKERS) or _sets_variable(data)
        sets = sets or mentions_python_setting(data)
        modules = module.home.modules
        files = module.path, *modules.list_imported(module.path)
        shared = global_options_calls.SURFACE if any(map(modules.has_options, files)) else None
        module.surfaces = tuple(
            surface
            for surface in _SURFACES
            if surface is shared or (sets and has_any(data, map(str.encode, surface.markers)))
        )
    return module.surfaces
