"""``git status``: what of the drivers is set up."""

from __future__ import annotations

from npuprof.commands.git.configuration import list_settings, name_sample_preset, open_git, read_setting
from npuprof.commands.parameters import OUTPUT, STORE, formats
from npuprof.commands.verb import Verb
from npuprof.report.answer import Answer
from npuprof.report.tables import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.report.answer import Forms


class Status(Verb):
    """Say what of it is set up (exit 1 if anything is missing)."""

    group = "git"

    store: str | None = STORE
    format: str = formats("text", "json")
    output: str | None = OUTPUT

    def run(self) -> Answer:
        """Return which drivers are configured, and whether the presets of the store use them. Raises NpuprofError."""
        git = open_git(False)
        rows: dict[str, str] = {}
        for name, value in list_settings().items():
            here, user = read_setting(git, "--local", name), read_setting(git, "--global", name)
            found = here if here is not None else user
            where = "this repository" if here is not None else "this user"
            rows[name] = "missing" if found is None else where if found == value else f"{where}, by another npuprof"
        sample = name_sample_preset(git, self.store)
        said = git.run_command("check-attr", "-z", "diff", "merge", "--", sample).decode(errors="replace").split("\0")
        uses = dict(zip(said[1::3], said[2::3], strict=False))
        for name in ("diff", "merge"):
            rows[f"attribute {name}"] = "set" if uses.get(name) == "npuprof" else "missing"
        whole = "missing" not in rows.values()
        remark = "complete" if whole else "not complete; npuprof git install sets up what is missing"
        forms: Forms = {
            "text": lambda: Table(list(rows.items())),
            "json": lambda: {"schema": "npuprof.git-status/1", "complete": whole, "parts": rows},
        }
        return Answer(forms, (remark,) if self.format == "text" else (), 0 if whole else 1)


VERB = Status
