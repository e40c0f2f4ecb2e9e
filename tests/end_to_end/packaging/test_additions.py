"""What is added at its one place shows everywhere: in help, schema, checks, code, exports."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.building import Checkout
from support.lanes import rest_at_night

#: What is added, by what it is; the fields are explained at the top of the file.
ADDITIONS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("additions.toml").read_text()
)


class Said(NamedTuple):
    """A command, what it is given, and what its answer holds, or does not."""

    words: str
    stdin: str
    holds: str
    code: int = 0


@pytest.mark.parametrize("what", rest_at_night(3, ADDITIONS))
def test_one_place_is_enough(what: str, checkout: Checkout) -> None:
    addition = ADDITIONS[what]
    shows, before, new_files = (
        [Said(*row) for row in addition["shows"]],
        addition.get("before", ""),
        addition.get("new_files", {}),
    )
    (checkout.folder / "old.toml").write_text('[options]\nwork_path = "./x"\n')
    (checkout.folder / "script.newsh").write_text("\n")
    for name, content in addition.get("scripts", {}).items():
        (checkout.folder / name).parent.mkdir(exist_ok=True)
        (checkout.folder / name).write_text(content)
    for said in shows:
        then = checkout.start(*said.words.split(), stdin=said.stdin)
        assert said.holds not in then.stdout or said.code != then.returncode, (
            f"{said.words} says so already"
        )
    path = checkout.package / addition["file"]
    path.parent.mkdir(exist_ok=True)
    text = path.read_text() if path.exists() else ""
    assert text.count(before) == 1 or not before
    head, mark, tail = text.partition(before) if before else (text, "", "")
    path.write_text(head + addition["text"] + mark + tail)
    for name, content in new_files.items():
        (checkout.package / name).write_text(content)
    for said in shows:
        assert said.holds in checkout.run(*said.words.split(), stdin=said.stdin, code=said.code), (
            said.words
        )
    for said in (Said(*row) for row in addition.get("hides", ())):
        assert said.holds not in checkout.run(
            *said.words.split(), stdin=said.stdin, code=said.code
        ), said.words
    for words, file, holds in addition.get("writes", ()):
        checkout.run(*words.split())
        assert holds in (checkout.folder / file).read_text(), words
