"""``schema``: the JSON Schema of a profile file."""

from __future__ import annotations

from npuprof.commands.parameters import OUTPUT
from npuprof.commands.verb import Verb
from npuprof.report.answer import Answer


class Schema(Verb):
    """Print the JSON Schema of a profile file, for editors."""

    group = "edit"

    output: str | None = OUTPUT

    def run(self) -> Answer:
        """Return the schema."""
        from npuprof.catalog.schema import build_profile_schema

        return Answer({"": build_profile_schema})


VERB = Schema
