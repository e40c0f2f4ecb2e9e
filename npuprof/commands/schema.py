"""``schema``: the JSON Schema of a profile file, and of the record of a run."""

from __future__ import annotations

from npuprof.commands.parameters import OUTPUT
from npuprof.commands.verb import Verb, option
from npuprof.report.answer import Answer


class Schema(Verb):
    """Print the JSON Schema of a profile file, for editors."""

    group = "edit"

    of: str = option("--of", metavar="FILE", text="Of what: {choices}.", default="profile", choices=("profile", "run"))
    output: str | None = OUTPUT

    def run(self) -> Answer:
        """Return the schema."""
        if self.of == "run":
            from npuprof.runs.schema import build_record_schema

            return Answer({"": build_record_schema})
        from npuprof.catalog.schema import build_profile_schema

        return Answer({"": build_profile_schema})


VERB = Schema
