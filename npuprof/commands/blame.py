"""``blame``: print the commit that set each value of a resolved preset."""

from __future__ import annotations

from typing import Any

from npuprof.commands.framework.parameters import CANN, COLOR, OF_STORE, OUTPUT, PRODUCT, STORE, formats
from npuprof.commands.framework.verb import Verb
from npuprof.compare.data import build_origin_dict
from npuprof.document import keys
from npuprof.history.blame import blame_config_values
from npuprof.history.last import build_commit_fields
from npuprof.report.answer import Answer
from npuprof.report.tables import Table
from npuprof.store import spec
from npuprof.store.gitstore import revisions
from npuprof.store.gitstore.commits import load_commit_headers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.history.blame import BlamedValue


class Blame(Verb):
    """Print the commit that set each value of a preset."""

    usage_hint = "npuprof blame bert-training prints all its values; npuprof log bert-training KEY the commits that changed one."
    group = "versions"
    paged = True

    spec: str = OF_STORE
    format: str = formats("text", "json")
    store: str | None = STORE
    cann: str | None = CANN
    product: str | None = PRODUCT
    output: str | None = OUTPUT
    color: str = COLOR

    def run(self) -> Answer:
        """Return each value with the commit, author and date that wrote it, and its place. Raises NpuprofError."""
        workspace = spec.Workspace(self.store, spec.build_context(self.cann, self.product))
        repository = revisions.find_repository(workspace.store)
        config = workspace.resolve_spec(self.spec)
        found = blame_config_values(repository, config)
        load_commit_headers({one.commit.id: one.commit for one in found if one.commit}.values())
        header = ("commit", "who", "where", "value")
        return Answer({
            "text": lambda: Table([_build_row(one) for one in found], gaps=(1, 1, 2), header=header, wrapping=2, highlighted=True),
            "json": lambda: {"schema": "npuprof.blame/1", "preset": config.name, "values": [_build_fields(one) for one in found]},
        })  # fmt: skip


def _build_row(one: BlamedValue) -> tuple[str, ...]:
    return (
        one.commit.id[:7] if one.commit else one.copied[:7] or "-" * 7,
        f"{one.commit.author} {one.commit.date[:10]}" if one.commit else "copied" if one.copied else "not committed yet",
        str(one.origin),
        f"{keys.format_key_path(one.key, one.tail)} = {keys.format_toml_value(one.value)}",
    )


def _build_fields(one: BlamedValue) -> dict[str, Any]:
    return {
        "key": keys.format_key_path(one.key, one.tail),
        "value": one.value,
        **build_commit_fields(one.commit),
        **({"copied": one.copied} if one.copied else {}),
        "origin": build_origin_dict(one.origin),
    }


VERB = Blame
