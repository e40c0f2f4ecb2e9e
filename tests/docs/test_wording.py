"""Messages name the arguments of their reader: options on a command line, or in Python."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

import npuprof
from support.building import build_store
from support.running import Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: An option of the command that is not part of a whole command, nor a flag of ATC.
_BARE = re.compile(
    r"(?<![\w-])--(?:store|with|set|unset|trust|strict|force|cann|product|target|to|no-personal|output|rev|inline)\b"
)


def _raise_first(findings: list[npuprof.Finding]) -> None:
    raise npuprof.NpuprofError(findings)


CALLS: list[tuple[Callable[[], Any], str, tuple[str, ...], str]] = [
    (
        lambda: npuprof.open_store("nowhere"),
        "It was named by path.",
        ("list", "--store", "nowhere"),
        "It was named by --store.",
    ),
    (
        lambda: npuprof.open_store("ssh://host/x.git"),
        "then path='NAME:'",
        ("list", "--store", "ssh://host/x.git"),
        "then --store NAME:",
    ),
    (
        lambda: npuprof.render(npuprof.open_store().resolve("abstract"), "session"),
        "compose it with another preset: mixins",
        ("render", "abstract", "--to", "session"),
        "compose it with another preset: --with",
    ),
    (
        lambda: npuprof.env(npuprof.open_store().resolve("power")),
        "or trust=True for this once",
        ("env", "power"),
        "or --trust for this once",
    ),
    (
        lambda: npuprof.render(npuprof.open_store().resolve("mixed"), "session", strict=True),
        "omit strict=True",
        ("render", "mixed", "--to", "session", "--strict"),
        "omit --strict",
    ),
    (
        lambda: _raise_first(npuprof.check(npuprof.open_store().resolve("frozen"))),
        "set={'session_device_id': ...}",
        ("check", "frozen"),
        "--set session_device_id=...",
    ),
    (
        lambda: npuprof.render(npuprof.open_store().resolve("offline"), "atc", strict=True),
        "",
        ("render", "offline", "--to", "atc", "--strict"),
        "give --set atc.model=...",
    ),
]
STORE = {
    "abstract": "profile.abstract = true\n",
    "power": '[env]\nLD_PRELOAD = "/x.so"\n',
    "mixed": "[options]\nhccl_timeout = 600\n[env]\nHCCL_CONNECT_TIMEOUT = 600\n",
    "frozen": "[options]\nsession_device_id = 1\n",
    "offline": (
        '[profile]\nscenario = "offline-inference"\n[atc]\nframework = 3\n'
        'soc_version = "Ascend910B1"\n'
    ),
}


def read_error(call: Callable[[], Any]) -> str:
    """Return the findings of the error that a call raises, empty if it raises none."""
    try:
        call()
    except npuprof.NpuprofError as error:
        return "\n".join(
            f"{finding.message}\n{finding.why}\n{finding.hint}" for finding in error.findings
        )
    return ""


@pytest.mark.parametrize(
    ("call", "in_python", "arguments", "on_command_line"),
    [pytest.param(*row, id=f"{row[2][0]}: {row[3]}") for row in CALLS],
)
def test_a_message_names_the_arguments_of_who_reads_it(
    call: Callable[[], Any],
    in_python: str,
    arguments: tuple[str, ...],
    on_command_line: str,
    tmp_path: Path,
    run: Run,
) -> None:
    build_store(tmp_path / "profiles", STORE)
    for _ in range(2):  # neither interface changes the messages of the other
        text = read_error(call)
        assert in_python in text
        assert not _BARE.search(re.sub(r"npuprof [a-z]+[^;:(]*", "", text)), text
        answer = run(*arguments)
        assert on_command_line in answer.err + answer.out
