"""Assignments for the shells' ``eval``. One row per shell; values that a shell cannot take byte for byte are rejected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from npuprof.model import LONGEST_WORD, Record, is_utf8


class Shell(Record):
    """How one shell sets and clears a variable.

    ``assign`` takes a name and a quoted value. ``refuses`` returns why a value cannot be written, or an empty string.
    ``use`` is the line that a user types. ``endings`` are the suffixes of its scripts, ``programs`` its other names after
    ``#!``.
    """

    assign: str
    clear: str
    quote: Callable[[str], str]
    refuses: Callable[[str], str]
    use: str
    endings: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


def _accept_any_text(text: str) -> str:
    return ""


def quote_posix(text: str, bare: bool = False) -> str:
    """Return text quoted for sh; with ``bare`` only if necessary."""
    if bare and text and all(char in _PLAIN for char in text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")


def _quote_fish(text: str) -> str:
    # A command substitution splits at line ends, so they are written outside the quotes.
    body = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "'\\n'").replace("\r", "'\\r'")
    return f"'{body}'"


def _quote_tcsh(text: str) -> str:
    return "'" + text.replace("'", "'\\''").replace("!", "\\!") + "'"


def _explain_tcsh_refusal(text: str) -> str:
    # Between backquotes, tcsh turns every line end into a blank, whatever the quoting.
    return "tcsh cannot take a line end through eval" if "\n" in text or "\r" in text else ""


_CONTROL = {"\n": "`n", "\r": "`r", "\t": "`t", "\b": "`b", "\f": "`f", "\v": "`v", "\a": "`a", "\x1b": "`e"}


def _quote_pwsh(text: str) -> str:
    if any(char < " " for char in text):
        # In PowerShell, curly quotes end a string like straight ones.
        body = "".join(_CONTROL.get(char) or (f"`{char}" if char in '`"$\u201c\u201d\u201e' else char) for char in text)
        return f'"{body}"'
    return "'" + "".join(char * 2 if char in "'\u2018\u2019\u201a\u201b" else char for char in text) + "'"


def _explain_pwsh_refusal(text: str) -> str:
    return "" if text else "PowerShell removes a variable that is set to an empty text"


_EXPORT, _UNSET = "export {name}={value}", "unset {name}"
SHELLS: dict[str, Shell] = {
    "bash": Shell(
        _EXPORT, _UNSET, quote_posix, _accept_any_text, 'eval "$(npuprof env NAME --shell bash)"', (".sh", ".bash"),
    ),
    "zsh": Shell(_EXPORT, _UNSET, quote_posix, _accept_any_text, 'eval "$(npuprof env NAME --shell zsh)"', (".zsh",)),
    "sh": Shell(_EXPORT, _UNSET, quote_posix, _accept_any_text, 'eval "$(npuprof env NAME --shell sh)"', (".ksh",), ("dash",)),
    "fish": Shell(
        "set -gx {name} {value};", "set -e {name};", _quote_fish, _accept_any_text,
        "npuprof env NAME --shell fish | source", (".fish",),
    ),
    "tcsh": Shell(
        "setenv {name} {value};", "unsetenv {name};", _quote_tcsh, _explain_tcsh_refusal,
        'eval "`npuprof env NAME --shell tcsh`"', (".csh", ".tcsh"), ("csh",),
    ),
    "pwsh": Shell(
        "${{env:{name}}} = {value}", "Remove-Item -ErrorAction Ignore Env:{name}", _quote_pwsh, _explain_pwsh_refusal,
        "npuprof env NAME --shell pwsh | Out-String | Invoke-Expression", (".ps1",),
    ),
}  # fmt: skip


def format_export_lines(shell: Shell, variables: dict[str, str]) -> str:
    """Return the lines that set variables; ``refuses`` must have accepted the values."""
    return "".join(f"{shell.assign.format(name=name, value=shell.quote(text))}\n" for name, text in variables.items())


def format_clear_lines(shell: Shell, names: list[str]) -> str:
    """Return the lines that undo an export."""
    return "".join(f"{shell.clear.format(name=name)}\n" for name in names)


# -- undoing an export: it also exports the values that it overwrites ----------------------------------------------

#: Contains the values of variables before the first export, as a JSON object.
BEFORE = "NPUPROF_BEFORE"


def format_values_before(names: Iterable[str], environ: Mapping[str, str]) -> str:
    """Return the value of ``NPUPROF_BEFORE`` for an export into an environment, an empty string for none.

    While an export is active, its own values cannot be distinguished, so the saved values stay unchanged.
    """
    if environ.get("NPUPROF_DIGEST"):
        return environ.get(BEFORE, "")
    before = {name: environ[name] for name in names if name in environ and not name.startswith("NPUPROF_") and is_utf8(environ[name])}
    if not before:
        return ""
    import json

    text = json.dumps(before, sort_keys=True)
    return text if len(text) + len(BEFORE) + 1 <= LONGEST_WORD else ""


def format_undo_lines(shell: Shell, names: Iterable[str], environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the lines that undo an export, and notes: variables get their earlier values, if they are known."""
    known = _read_values_before(environ)
    refused = {name: reason for name, text in known.items() if (reason := shell.refuses(text)) and text}
    restored = {name: text for name, text in known.items() if name not in refused and (text or not shell.refuses(text))}
    cleared = [name for name in dict.fromkeys((*names, *refused, *((BEFORE,) if BEFORE in environ else ()))) if name not in restored]
    notes = [f"{name} is unset, not restored: {reason}" for name, reason in refused.items()]
    return format_clear_lines(shell, cleared) + format_export_lines(shell, restored), notes


def _read_values_before(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the saved values; empty if another program wrote the variable."""
    if not environ.get(BEFORE):
        return {}
    import json

    try:
        values = json.loads(environ[BEFORE])
    except (ValueError, RecursionError):
        return {}
    pairs = values.items() if isinstance(values, dict) else ()
    return {name: text for name, text in pairs if isinstance(text, str) and name.isascii() and name.isidentifier() and "\0" not in text}
