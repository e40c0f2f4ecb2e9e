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


class Expectation(NamedTuple):
    """A command line and its input, and a text in its output, with the exit code.

    It is a row of additions.toml.
    """

    command: str
    stdin: str
    text: str
    code: int = 0


@pytest.mark.parametrize("what", rest_at_night(3, ADDITIONS))
def test_one_place_is_enough(what: str, checkout: Checkout) -> None:
    addition = ADDITIONS[what]
    shown = [Expectation(*row) for row in addition["shows"]]
    assert shown
    hidden = [Expectation(*row) for row in addition.get("hides", ())]
    before = addition.get("before", "")
    (checkout.folder / "old.toml").write_text('[options]\nwork_path = "./x"\n')
    (checkout.folder / "script.newsh").write_text("\n")
    for name, content in addition.get("scripts", {}).items():
        (checkout.folder / name).parent.mkdir(exist_ok=True)
        (checkout.folder / name).write_text(content)
    for row in shown:
        result = checkout.start(*row.command.split(), stdin=row.stdin)
        is_shown = row.text in result.stdout and row.code == result.returncode
        assert not is_shown, f"{row.command} says so already"
    path = checkout.package / addition["file"]
    path.parent.mkdir(exist_ok=True)
    text = path.read_text() if path.exists() else ""
    assert text.count(before) == 1 or not before
    index = text.index(before) if before else len(text)
    path.write_text(text[:index] + addition["text"] + text[index:])
    for name, content in addition.get("new_files", {}).items():
        (checkout.package / name).write_text(content)
    for row in shown:
        output = checkout.run(*row.command.split(), stdin=row.stdin, code=row.code)
        assert row.text in output, row.command
    for row in hidden:
        output = checkout.run(*row.command.split(), stdin=row.stdin, code=row.code)
        assert row.text not in output, row.command
    for command, file, content in addition.get("writes", ()):
        checkout.run(*command.split())
        assert content in (checkout.folder / file).read_text(), command
