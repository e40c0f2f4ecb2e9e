"""Files of the tree that a script may call: which can set something, and which surfaces each is read for."""

from __future__ import annotations

import ast
from collections.abc import Callable

from npuprof.scripts.python import environ, global_options, parameter_map, run_config
from npuprof.scripts.python.imports import Home, Modules
from npuprof.scripts.python.module import Module
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.syntax import Script
from npuprof.scripts.python.visitor import Surface, Visitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    Mentions = Callable[[bytes], bool]

#: What is read of Python, and the words one of which a file has to hold to be worth parsing.
SURFACES = (parameter_map.SURFACE, run_config.SURFACE, global_options.SURFACE, environ.SURFACE)
WORDS = tuple(dict.fromkeys((*(word for surface in SURFACES for word in surface.words), *parameter_map.HELPERS)))


def may_follow(path: str, data: bytes, modules: Modules, mentions: Mentions) -> bool:
    """Return whether a script imports a module of its tree that can set something, without parsing the script."""
    return any(modules.supplies(imported, mentions) for imported in modules.list_imported(path, data))


def open_visitor(script: Script, data: bytes, modules: Modules | None, mentions: Mentions) -> Visitor:
    """Return the visitor of a script; with ``modules`` its calls of functions of other files are followed."""
    if modules is None:
        return Visitor(Module(script, None), _choose_surfaces)
    home = modules.open_home(script.path)
    module = Module(script, home)
    supplying = [path for path in modules.list_imported(script.path, data) if modules.supplies(path, mentions)]
    visitor = Visitor(module, _choose_surfaces, lambda path: modules.load(path) if modules.supplies(path, mentions) else None)
    visitor.shares_options = any(_has_options(modules, path) for path in supplying)  # other files have them too
    modules.rebound = _find_rebound_constants(home, module.scope)
    return visitor


def _find_rebound_constants(home: Home, scope: Scope) -> set[tuple[str, str]]:
    """Return the names of modules that a script gives other values: ``settings.PRECISION = ...``."""
    found: set[tuple[str, str]] = set()
    for text in scope.rebound:
        owner, dot, name = text.rpartition(".")
        if dot and name != "*" and scope.list_binding_kinds(owner.partition(".")[0]) == {"import"}:
            path = home.find_module(ast.parse(owner, mode="eval").body, scope)
            found |= {(path, name)} if path else set()
    return found


def _choose_surfaces(module: Module) -> tuple[Surface, ...]:
    """Return what reads a file: the surfaces whose words it holds, and that of the options where a module that it imports has them."""
    text = module.script.text
    modules = module.home.modules if isinstance(module.home, Home) else None
    files = (module.path, *modules.list_imported(module.path, modules.read(module.path))) if modules is not None else ()
    shared = modules is not None and any(_has_options(modules, path) for path in files)
    return tuple(one for one in SURFACES if any(word in text for word in one.words) or (one is global_options.SURFACE and shared))


def _has_options(modules: Modules, path: str) -> bool:
    """Return whether a module, or one that it imports, names the options of TensorFlow 2."""
    files = (path, *modules.list_imported(path, modules.read(path)))
    return any(b"global_options" in modules.read(one) for one in files)
