"""The use of a script's configurations: which calls take them, and which run before a line.

Only simple cases are known: a named configuration created by one statement, and statements of one
function in sequence.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from npuprof.scripts.python.expressions import PLAIN, list_parts, name_callee, write_source
from npuprof.scripts.python.module import NodeIndex
from npuprof.scripts.python.optimizer_entries import AddedEntry
from npuprof.scripts.python.scopes import Scope, statement_blocks
from npuprof.scripts.python.statements import DEFINITIONS, FUNCTIONS, find_start
from npuprof.scripts.script_records import Position

#: Calls that take a configuration's current state.
_SESSIONS = {
    "Session",
    "InteractiveSession",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "Supervisor",
    "Server",
    "managed_session",
    "ChiefSessionCreator",
    "set_keras_session_npu_config",
    "init_resource",
}
#: Sessions of the whole process, independent of their configuration; a ``requests.Session()`` is
#: not one.
_OF_PROCESS = re.compile(r"(?:tf|tensorflow|train)\..+|set_keras_session_npu_config|init_resource")
#: Calls that start a session with an estimator's configuration.
TRAINING = frozenset(("train", "evaluate", "predict", "train_and_evaluate"))
#: Calls whose result contains a configuration.
_CONTAINERS = frozenset(
    (
        "RunConfig",
        "NPURunConfig",
        "Estimator",
        "NPUEstimator",
        "npu_run_config_init",
        "npu_config_proto",
    )
)
_OPENING = re.compile(r"\w*npu\w*\.open")
#: Calls of torch_npu, and calls that may pass variables to another process.
_OF_TORCH = re.compile(r"(?:torch|torch_npu)\.npu\.set_device|[\w.()\[\]]+\.npu")
_STARTERS = frozenset(("run", "Popen", "system", "call", "check_call", "spawn", "Process", "init"))
_WITH = (ast.With, ast.AsyncWith)
#: Expressions whose parts may not run.
_MAYBE = (
    ast.Lambda,
    ast.IfExp,
    ast.BoolOp,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


class Uses:
    """The uses of one configuration in a function or module.

    Attributes:
        line: Where it is created.
        sites: The scopes of its optimizer entries.
        takers: The calls that start a session with it.
        names: Its own name, and those of run configurations and estimators that contain it.
        is_open: Whether other code may have it, or may create it.

    """

    def __init__(self, home: ast.AST, name: str, parents: Mapping[ast.AST, ast.AST]) -> None:
        self.line = 0
        self.sites: list[str] = []
        self.takers: list[ast.Call] = []
        self.names = [name]
        # any code may read the attribute of a class
        self.is_open = isinstance(home, ast.ClassDef)
        self._parents = parents
        for known in self.names:  # also over those that are added
            nodes = list(_iterate_names(home, known))
            loads = [node for node in nodes if isinstance(node.ctx, ast.Load)]
            stores = [node for node in nodes if not isinstance(node.ctx, ast.Load)]
            self._read_creations([getattr(parents[node], "value", None) for node in stores])
            for node in loads:
                self._read_use(node)

    def _read_creations(self, values: list[ast.expr | None]) -> None:
        """Read the values of a name: one call creates the configuration."""
        match values:
            case [ast.Call() as call] if name_callee(call) in ("ConfigProto", *_CONTAINERS):
                pass
            case _:
                self.is_open = True
        if values:
            self.line = self.line or getattr(values[0], "lineno", 0)

    def _read_use(self, node: ast.Name) -> None:
        """Read one use of a name: as an argument, the owner of a method, or a target."""
        top: ast.Name | ast.Attribute | ast.Subscript = node
        parent = self._parents[top]
        while isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is top:
            top = parent
            parent = self._parents[top]
        if isinstance(top, ast.Name):
            self._read_argument(node)
        elif isinstance(parent, ast.Call) and parent.func is top:
            if name_callee(parent) in TRAINING:
                self.takers.append(parent)
            else:
                self.is_open |= top.value is node
        else:
            self.is_open |= isinstance(top.ctx, ast.Load) and not isinstance(parent, ast.Assign)

    def _read_argument(self, node: ast.AST) -> None:
        """Read the calls around a name, and the name that their result is assigned to."""
        calls = []
        while not isinstance(node, ast.stmt):
            node = self._parents[node]
            if isinstance(node, ast.Call):
                calls.append(node)
        for call in calls:
            if name_callee(call) in _SESSIONS | TRAINING:
                self.takers.append(call)
                return
        is_contained = _CONTAINERS.issuperset(map(name_callee, calls))
        match node:
            case ast.Assign([ast.Name(target), *_], value) if value in calls and is_contained:
                if target not in self.names:
                    self.names.append(target)
                    return
        # printing does not pass the configuration on
        if not calls or name_callee(calls[0]) != "print":
            self.is_open = True


def _iterate_names(home: ast.AST, name: str) -> Iterator[ast.Name]:
    """Yield the uses of a function's name, including nested functions."""
    waiting = list_parts(home)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and node.id == name:
            yield node
        if isinstance(node, FUNCTIONS) and Scope(node).list_bindings(name):
            node = node.args  # the name is another one in its body
        waiting += list_parts(node)


class Calls:
    """The calls of one script that take configurations.

    Attributes:
        sessions: Those that start a session, with any configuration.
        of_process: Those that read the process environment.
        openings: Those that open the device of TensorFlow 2.
        uses: The uses of each configuration with an optimizer entry, by its scope.

    """

    def __init__(self, index: NodeIndex, added: Iterable[AddedEntry]) -> None:
        self._index = index
        calls = index.calls
        self.sessions = [
            call
            for call in calls
            if name_callee(call) in _SESSIONS and _OF_PROCESS.fullmatch(write_source(call.func))
        ]
        self.openings = [
            call
            for call in calls
            if name_callee(call) == "open" and _OPENING.match(write_source(call.func))
        ]
        training = [call for call in calls if name_callee(call) in TRAINING]
        self.of_process = [*self.sessions, *self.openings, *training]
        self.uses: dict[str, Uses] = {}
        known = {}
        for entry in added:
            if entry.config.isidentifier() and entry.config not in index.declared:
                home = self.list_around((entry.line, entry.column))[-1]
                key = home, entry.config
                if key not in known:
                    known[key] = Uses(home, entry.config, self._parents)
                self.uses[entry.site] = known[key]
                known[key].sites.append(entry.site)

    def list_named(self, names: tuple[str, ...]) -> list[ast.Call]:
        """Return the calls of torch_npu with these names, unless the script starts processes."""
        if not names or any(name_callee(call) in _STARTERS for call in self._index.calls):
            return []
        return [
            call
            for call in self._index.calls
            if name_callee(call) in names and _OF_TORCH.fullmatch(write_source(call.func))
        ]

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {
            child: node
            for node in self._index.nodes
            if type(node) not in PLAIN
            for child in list_parts(node)
        }

    @cached_property
    def _statements(self) -> list[ast.stmt]:
        return sorted(
            (node for node in self._index.nodes if isinstance(node, ast.stmt)), key=find_start
        )

    def list_around(self, position: Position) -> list[ast.AST]:
        """Return the statement at a position and its ancestors, up to its function or module."""
        line, column = position
        start = line, column - 1  # columns of nodes begin at 0
        index = bisect_right(self._statements, start, key=find_start) - 1
        around: list[ast.AST] = [self._statements[index]]
        while len(around) == 1 or not isinstance(around[-1], (ast.Module, *DEFINITIONS)):
            around.append(self._parents[around[-1]])
        return around

    def has_run(self, call: ast.Call, around: list[ast.AST]) -> bool:
        """Return whether a call has certainly run before the statement ``around[0]``.

        ``around`` are that statement and its ancestors.
        """
        node: ast.AST = call
        while not isinstance(node, ast.stmt):
            node = self._parents[node]
            if isinstance(node, _MAYBE):
                return False
        # the call is in a statement around it: only "with" runs its call before its body
        if node in around:
            return isinstance(node, _WITH)
        parent = self._parents[node]
        while isinstance(parent, _WITH) and parent not in around:
            node = parent
            parent = self._parents[node]
        if parent not in around or not isinstance(node, (*_WITH, ast.Expr, ast.Assign)):
            return False
        sibling = around[around.index(parent) - 1]
        return any(
            node in block and sibling in block[block.index(node) :]
            for block in statement_blocks(parent)
        )
