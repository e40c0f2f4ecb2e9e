"""Where in a shell script a flag of a command line and its value are written."""

from __future__ import annotations

import re

from npuprof.scripts.migration.places import Change, Places, StuckError, find_new_words
from npuprof.scripts.migration.planning import DueStep

#: A flag of a command line, then its value, in quotes or not, and the end of the word.
_GAP = r"(?P<gap>=|[ \t]+(?:\\\r?\n[ \t]*)?|\\\r?\n[ \t]*)"
_FLAG = rf"""["']?(?P<name>{{name}}){_GAP}["']?(?P<value>{{value}})(?=["'\s;&|)]|$)"""


class ShellScript:
    """A shell script whose flags can be changed."""

    def __init__(self, text: str) -> None:
        self.places = Places(text, python=False)

    def find_use(self, name: str) -> int:
        """Return 0: nothing but a command line uses the name of a flag."""
        return 0

    def list_changes(self, due: DueStep) -> list[Change]:
        """Return what makes a step. Raises StuckError."""
        one, text = due.setting, self.places.text
        if due.step.action == "drop":
            raise StuckError("a flag is taken out by hand")
        new_name, new_value = find_new_words(due)
        start = self.places.find(one.line, one.column)
        match = re.compile(_FLAG.format(name=re.escape(one.name), value=re.escape(str(one.written)))).match(text, start)
        if match is None:
            raise StuckError("its name and its value are not written out where it stands")
        return [Change(*match.span("name"), new_name), Change(*match.span("value"), str(new_value))]
