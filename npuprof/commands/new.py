"""``new``: create a preset."""

from __future__ import annotations

from npuprof import edit
from npuprof.commands.framework import argument, flag, many, option
from npuprof.commands.framework.parameters import DRY_RUN, WRITE_ANYWAY, StoreVerb
from npuprof.edit import PathChange
from npuprof.edit.assignments import parse_assignment
from npuprof.edit.preset_file import answer_new_preset, locate_new_file
from npuprof.edit.schemaline import add_schema_line
from npuprof.renderers.trusting import trust_typed
from npuprof.report import Answer
from npuprof.store import spec
from npuprof.system import drop_empty


class New(StoreVerb):
    """Create a preset."""

    group = "presets"
    usage_hint = (
        "npuprof new NAME --extends PARENT builds on a preset; "
        "npuprof copy PRESET NAME begins with its text."
    )

    name = argument("NAME", "Name of the new preset")
    extends = many(
        "--extends",
        metavar="NAME",
        text="Extend this preset; can be repeated, and the last one wins",
        complete="spec",
    )
    description = option(
        "--description", metavar="TEXT", text="Describe when to use the preset", complete="nothing"
    )
    scenario = option(
        "--scenario",
        metavar="NAME",
        text="Set the scenario: training, online-inference or offline-inference",
    )
    abstract = flag("--abstract", text="Mark the preset as abstract: it exists only to be extended")
    set_ = many(
        "--set", metavar="KEY=VALUE", text="Set a value; can be repeated", complete="assignment"
    )
    dry_run = DRY_RUN
    no_check = WRITE_ANYWAY

    def run(self) -> Answer:
        """Return the new file as a unified diff, and write it unless it is a dry run.

        Raises NpuprofError, and then writes nothing.
        """
        home = spec.Workspace(self.store).store
        file = locate_new_file(home, self.name)
        text = add_schema_line(self._write_text(), file.path, home.root)
        answer = answer_new_preset(home, {self.name: text}, self.dry_run, self.no_check)
        if not self.dry_run:
            trust_typed(home, self.set_)
        return answer

    def _write_text(self) -> str:
        table = drop_empty(
            {
                "description": self.description,
                "scenario": self.scenario,
                "abstract": self.abstract,
                "extends": self.extends,
            }
        )
        data = {"profile": table}
        changes = [PathChange(("profile", key), value) for key, value in table.items()]
        changes += [change for text in self.set_ if (change := parse_assignment(data, text))]
        return edit.apply_changes("[profile]\n", changes)


VERB = New
