"""Values that are hard to quote, and what a real shell makes of an export of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from npuprof.renderers.shell import SHELLS, format_export_lines

AWKWARD = [
    "",
    " ",
    "  two  blanks ",
    "'",
    '"',
    "''",
    '"\'"',
    "\\",
    "\\\\",
    "\\'",
    "end\\",
    "$HOME",
    "${HOME}",
    "$(touch never)",
    "`id`",
    "!",
    "!!",
    "a!b",
    "^a^b",
    "%PATH%",
    "*",
    "?",
    "[a]",
    "~",
    "~root",
    "#",
    "# comment",
    "a #b",
    ";",
    "&& false",
    "| cat",
    "> never",
    "<",
    "(",
    ")",
    "{a,b}",
    "-n",
    "--help",
    "=",
    "a=b",
    "\t",
    "a\tb",
    "\x1b[31m",
    "\x7f",
    "\x01",
    "é",
    "日本語",
    "😀",
    "\u2028",
    "\ufeff",
    "\u2019",
    "\u201c",
    "a\u0301",
    "\x85",
    "\n",
    "a\nb",
    "a\n",
    "\na",
    "a\n\n",
    "\r",
    "a\r\nb",
    "a\r",
    "EOF\nx",
    "$$(X)",
    "$$",
    "$'a'",
    "\\n",
    "a\\\nb",
    "'\n'",
    '{"a": [1, "b"]}',
    "x" * 100_000,
]


def read_back(
    shell: str,
    tmp_path: Path,
    found: dict[str, str],
    before: dict[str, str] | None = None,
    text: str = "",
) -> dict[str, str]:
    """Let a real shell evaluate an export by the line that users type.

    Return the environment of a program it starts.
    """
    program = next(filter(shutil.which, (*SHELLS[shell].programs, shell)), None)
    if not program:
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "export"
    file.write_bytes((text or format_export_lines(SHELLS[shell], found)).encode())
    line = SHELLS[shell].use.replace(f"npuprof env NAME --shell {shell}", f"cat '{file}'")
    assert str(file) in line, "the line that users type asks for another shell"
    command = [program, "-c", f"{line}; env -0"]
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        **(before or {}),
    }
    done = subprocess.run(command, env=environ, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    pairs = (item.partition(b"=") for item in done.stdout.split(b"\0") if item)
    return {name.decode(): value.decode() for name, _, value in pairs if name.startswith(b"T_")}
