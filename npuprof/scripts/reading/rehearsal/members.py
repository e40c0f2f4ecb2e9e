"""What objects and classes of a script have, as it comes by: attributes, methods, what they inherit, and ``super()``."""

from __future__ import annotations

import ast

from npuprof.scripts.reading.rehearsal.heap import NOTHING, Above, Callable, Instance, Made, Thing, Values
from npuprof.scripts.reading.rehearsal.ledger import Ledger


class Members(Ledger):
    """The part of a rehearsal that knows of attributes."""

    def evaluate(self, node: ast.expr | None) -> Values:
        """Return what an expression stands for, after what its calls do."""
        raise NotImplementedError

    def make_unknown(self, node: ast.expr) -> Thing | None:
        """Return an object that a name stands for whose making is not in sight."""
        thing = self.heap.make(self.describe_birth(True)._replace(loops=()))
        if isinstance(node, ast.Name):
            owner = self.frame.find_owner(node.id) or self.frame.find_module()
            self.heap.bind(owner, node.id, frozenset((thing,)))
        elif isinstance(node, ast.Attribute):
            self.store_attribute(node, frozenset((thing,)))
        return thing

    def find_attribute(self, owner: Instance | Made | Above, name: str) -> Values:
        """Return what an attribute of an object, or of a class, stands for; its methods belong to the object."""
        instance = owner.instance if isinstance(owner, Above) else owner if isinstance(owner, Instance) else None
        if isinstance(owner, Instance) and owner.body is not None and name in owner.body.values:
            return owner.body.values[name]
        cls = owner if isinstance(owner, Made) else owner.cls
        members = self._find_inherited(cls, name, 0) if isinstance(owner, Above) else self._find_member(cls, name)
        return frozenset(value._replace(owner=instance) if isinstance(value, Callable) else value for value in members)

    def _find_member(self, cls: Made, name: str, depth: int = 0) -> Values:
        found = cls.body.values.get(name)
        if found is None and depth < 5:
            return self._find_inherited(cls, name, depth)
        return found or NOTHING

    def _find_inherited(self, cls: Made, name: str, depth: int) -> Values:
        for base in cls.node.bases:
            owner = self.frame.find_owner(base.id) if isinstance(base, ast.Name) else None
            for value in owner.values[base.id] if owner is not None and isinstance(base, ast.Name) else ():
                if isinstance(value, Made) and (inherited := self._find_member(value, name, depth + 1)):
                    return inherited
        return NOTHING

    def find_slot(self, node: ast.Attribute) -> Values:
        """Return what an attribute of an object out of sight has been given, by its text."""
        text = _format_slot(node)
        return self.frame.find_module().values.get(text, NOTHING) if text else NOTHING

    def store_attribute(self, node: ast.Attribute, values: Values) -> None:
        """Let an attribute stand for values."""
        owners = self.evaluate(node.value)
        self.note_loose(values)
        for one in owners:
            if isinstance(one, (Instance, Made)):
                self.heap.bind((one.cls if isinstance(one, Instance) else one).body, node.attr, values)
            if isinstance(one, Instance) and one.body is not None:
                self.heap.bind(one.body, node.attr, values)
        if not owners:
            self.heap.share(values)
            if text := _format_slot(node):
                self.heap.bind(self.frame.find_module(), text, values)

    def find_above(self, given: list[Values]) -> Values:
        """Return what ``super()`` stands for in the method that is gone through, or ``super(cls, self)`` with what it is given."""
        running = self.frame.running
        owner = running.owner if running is not None else None
        within = next((one for one in given[0] if isinstance(one, Made)), None) if given else running.within if running else None
        return frozenset((Above(owner, within),)) if owner is not None and within is not None else NOTHING


def _format_slot(node: ast.Attribute) -> str:
    parts = [node.attr]
    owner: ast.expr = node.value
    while isinstance(owner, ast.Attribute):
        parts.append(owner.attr)
        owner = owner.value
    return ".".join((owner.id, *reversed(parts))) if isinstance(owner, ast.Name) else ""
