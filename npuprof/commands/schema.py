"""``schema``: print the JSON Schema of a preset, of npuprof.toml, or of a run record."""

from __future__ import annotations

import os
from collections.abc import Callable

from npuprof.catalog.preset_schema import build_profile_schema
from npuprof.commands.framework import Verb, flag, option_with_default
from npuprof.commands.framework.parameters import OUTPUT, STORE
from npuprof.edit.preset_file import require_writable_store
from npuprof.edit.schemaline import PRESET_SCHEMA, PROJECT_SCHEMA
from npuprof.model import Fields, build_usage_error
from npuprof.report import Answer
from npuprof.report.json_text import format_json_answer
from npuprof.runs.run_records import load_record_schema
from npuprof.store import spec
from npuprof.store.project import Project
from npuprof.store.project_schema import build_project_schema
from npuprof.system import join_lines, writing
from npuprof.system.writing import PlannedWrite

_BUILDERS: dict[str, Callable[[], Fields]] = {
    "profile": build_profile_schema,
    "project": build_project_schema,
    "run": load_record_schema,
}


class Schema(Verb):
    """Print the JSON Schema of a preset file.

    With --check, exits with 1 if the schemas in the store are not up to date.
    """

    usage_hint = "npuprof schema; npuprof schema --update rewrites those of a store for editors."
    group = "reference"

    of = option_with_default(
        "--of",
        metavar="FILE",
        text="Select the file type: preset (profile), npuprof.toml (project) or run record (run)",
        default="profile",
        choices=tuple(_BUILDERS),
    )
    update = flag("--update", text="Write the schemas into the store, for editors")
    check = flag("--check", text="Check whether the schemas in the store are up to date")
    output = OUTPUT
    store = STORE

    def run(self) -> Answer:
        """Return the schema, or the status of a store's schema files. Raises NpuprofError."""
        if self.update or self.check:
            return self._keep_files()
        return Answer({"": _BUILDERS[self.of]})

    def _keep_files(self) -> Answer:
        if (self.update and self.check) or self.output is not None or self.of != "profile":
            what = (
                "--update and --check are about all schemas of a "
                "store: one of the two, and neither --of nor -o"
            )
            raise build_usage_error(what, "omit the arguments that do not apply")
        home = spec.Workspace(self.store).store
        require_writable_store(home)
        outdated = []
        for name, text in build_editor_schemas(home.project).items():
            path = os.path.join(home.root, name)
            known = writing.read_known_file(path)
            if known != text.encode():
                outdated.append(PlannedWrite(path, text.encode(), known, home.root))
        cited = [home.cite_file(os.path.basename(file.path)) for file in outdated]
        if self.check:
            notes = (
                (f"{', '.join(cited)}: out of date; run npuprof schema --update",) if cited else ()
            )
            return Answer(None, notes or ("the schemas are up to date",), code=1 if cited else 0)
        if outdated:
            writing.write_planned_files(outdated)
        return Answer(join_lines(cited), () if cited else ("the schemas are up to date",))


def build_editor_schemas(project: Project) -> dict[str, str]:
    """Return the schema files for editors of a store with this project, by file name."""
    preset_schema = build_profile_schema(project.axes, project.variables)
    schemas = {PRESET_SCHEMA: preset_schema, PROJECT_SCHEMA: build_project_schema()}
    return {name: format_json_answer(schema) for name, schema in schemas.items()}


VERB = Schema
