"""``options``: the catalogue, searched by words."""

from __future__ import annotations

from npuprof import catalog
from npuprof.commands.parameters import OUTPUT, formats
from npuprof.commands.verb import Verb, argument
from npuprof.model import Finding, NpuprofError, did_you_mean
from npuprof.report.answer import Answer
from npuprof.report.tables import Table


class Options(Verb):
    """List the catalogue: options, environment variables, ATC flags."""

    group = "look"

    query: str | None = argument("QUERY", "Words to look for in names and summaries.", required=False)
    format: str = formats("text", "json")
    output: str | None = OUTPUT

    def run(self) -> Answer:
        """Return every record whose name or summary holds all the words of the query. Raises NpuprofError where none does."""
        words = (self.query or "").lower().split()
        rows = []
        for section, prefix in catalog.PREFIXES.items():
            for name in catalog.record_names(section):
                summary = catalog.find_record_texts(section, name).get("summary", "")
                if all(word in f"{prefix}{name} {summary}".lower() for word in words):
                    rows.append({"name": f"{prefix}{name}", "section": section, "summary": summary})
        if not rows:
            hint = did_you_mean(self.query or "", catalog.record_names(), "try fewer words")
            raise NpuprofError([Finding("NP201", f"nothing in the catalogue matches {self.query!r}", "", hint)])
        return Answer({
            "text": lambda: Table([(row["name"], row["summary"]) for row in rows]),
            "json": lambda: {"schema": "npuprof.options/1", "options": rows},
        })  # fmt: skip


VERB = Options
