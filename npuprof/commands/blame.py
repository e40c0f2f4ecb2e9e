"""``blame``: print the commit that set each value of a resolved preset."""

from __future__ import annotations

from npuprof.commands.framework.parameters import FORMAT, OF_STORE, ContextVerb, PrintingVerb
from npuprof.compare.json_changes import build_origin_dict
from npuprof.document import keys
from npuprof.history.last import build_commit_fields
from npuprof.history.value_commits import BlamedValue, blame_config_values
from npuprof.model import Fields
from npuprof.report import Answer
from npuprof.report.tables import Table


class Blame(PrintingVerb, ContextVerb):
    """Print the commit that set each value of a preset."""

    usage_hint = (
        "npuprof blame bert-training prints all its values; npuprof "
        "log bert-training KEY the commits that changed one."
    )
    group = "versions"

    spec = OF_STORE
    format = FORMAT

    def run(self) -> Answer:
        """Return each value with its commit, author, date and place. Raises NpuprofError."""
        workspace = self.open_workspace()
        repository = workspace.store.repository
        config = workspace.resolve_spec(self.spec)
        blamed = blame_config_values(repository, config)
        header = ("commit", "who", "where", "value")
        return Answer(
            {
                "text": lambda: Table(
                    [_build_row(value) for value in blamed],
                    gaps=(1, 1, 2),
                    header=header,
                    wrapping=2,
                    highlighted=True,
                ),
                "json": lambda: {
                    "schema": "npuprof.blame/1",
                    "preset": config.name,
                    "values": [_build_fields(value) for value in blamed],
                },
            }
        )


def _build_row(value: BlamedValue) -> tuple[str, ...]:
    tail, written = value.tail, value.value
    if tail == ("launcher",):
        tail, written = (), {"launcher": written}
    return (
        value.commit.id[:7] if value.commit else value.copied[:7] or "-" * 7,
        f"{value.commit.author} {value.commit.date[:10]}"
        if value.commit
        else "copied"
        if value.copied
        else "not committed yet",
        str(value.origin),
        f"{keys.format_key_path(value.key, tail)} = {keys.format_toml_value(written)}",
    )


def _build_fields(value: BlamedValue) -> Fields:
    return {
        "key": keys.format_key_path(value.key, value.tail),
        "value": value.value,
        **build_commit_fields(value.commit),
        **({"copied": value.copied} if value.copied else {}),
        "origin": build_origin_dict(value.origin),
    }


VERB = Blame
