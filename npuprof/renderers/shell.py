"""Assignments for the shells' ``eval``.

One row per shell; values that a shell cannot take byte for byte are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from npuprof.model import LONGEST_WORD, Record, is_utf8, is_variable_name


class Shell(Record):
    """How one shell sets and clears a variable.

    ``assign`` takes a name and a quoted value. ``refuses`` returns why a value cannot be written,
    or an empty string. ``use`` is the line that a user types. ``endings`` are the suffixes of its
    scripts, ``programs`` its other names after ``#!``. ``save`` and ``restore`` preserve a variable
    that the shell does not export, if an export overwrites it.
    """

    assign: str
    clear: str
    quote: Callable[[str], str]
    refuses: Callable[[str], str]
    use: str
    endings: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    save: str = ""
    restore: str = ""


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
    body = (
        text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "'\\n'").replace("\r", "'\\r'")
    )
    return f"'{body}'"


def _quote_tcsh(text: str) -> str:
    # tcsh replaces "!" in single quotes, too
    return quote_posix(text).replace("!", "\\!")


def _explain_tcsh_refusal(text: str) -> str:
    # Between backquotes, tcsh turns every line end into a blank, whatever the quoting.
    return "tcsh cannot take a line end through eval" if "\n" in text or "\r" in text else ""


_CONTROL = {
    "\n": "`n",
    "\r": "`r",
    "\t": "`t",
    "\b": "`b",
    "\f": "`f",
    "\v": "`v",
    "\a": "`a",
    "\x1b": "`e",
}


def _quote_pwsh(text: str) -> str:
    # In PowerShell, curly quotes end a string like straight ones.
    if any(char < " " for char in text):
        body = "".join(
            _CONTROL.get(char) or (f"`{char}" if char in '`"$\u201c\u201d\u201e' else char)
            for char in text
        )
        return f'"{body}"'
    body = "".join(char * 2 if char in "'\u2018\u2019\u201a\u201b" else char for char in text)
    return f"'{body}'"


def _explain_pwsh_refusal(text: str) -> str:
    return "" if text else "PowerShell removes a variable that is set to an empty text"


_BASH = Shell(
    "export {name}={value}",
    "unset {name}",
    quote_posix,
    _accept_any_text,
    'eval "$(npuprof env NAME --shell bash)"',
    (".sh", ".bash"),
    save='_NPUPROF_WAS_{name}="${{{name}+x${name}}}"',
    restore=(
        '[ -z "${{_NPUPROF_WAS_{name}-}}" ] || '
        '{name}="${{_NPUPROF_WAS_{name}#x}}"; unset _NPUPROF_WAS_{name}'
    ),
)
SHELLS: dict[str, Shell] = {
    "bash": _BASH,
    "zsh": _BASH._replace(use='eval "$(npuprof env NAME --shell zsh)"', endings=(".zsh",)),
    "sh": _BASH._replace(
        use='eval "$(npuprof env NAME --shell sh)"', endings=(".ksh",), programs=("dash",)
    ),
    "fish": Shell(
        "set -gx {name} {value};",
        "set -e {name};",
        _quote_fish,
        _accept_any_text,
        "npuprof env NAME --shell fish | source",
        (".fish",),
        (),
        (
            "set -e _NPUPROF_WAS_{name}; set -qg {name}; and not set -qgx {name}; and set -g "
            "_NPUPROF_WAS_{name} ${name};"
        ),
        (
            "set -q _NPUPROF_WAS_{name}; and set -g {name} "
            "$_NPUPROF_WAS_{name}; set -e _NPUPROF_WAS_{name};"
        ),
    ),
    "tcsh": Shell(
        "setenv {name} {value};",
        "unsetenv {name};",
        _quote_tcsh,
        _explain_tcsh_refusal,
        'eval "`npuprof env NAME --shell tcsh`"',
        (".csh", ".tcsh"),
        ("csh",),
    ),
    "pwsh": Shell(
        "${{env:{name}}} = {value}",
        "Remove-Item -ErrorAction Ignore Env:{name}",
        _quote_pwsh,
        _explain_pwsh_refusal,
        "npuprof env NAME --shell pwsh | Out-String | Invoke-Expression",
        (".ps1",),
    ),
}


def format_export_lines(shell: Shell, variables: dict[str, str]) -> str:
    """Return the lines that set variables; ``refuses`` must have accepted the values."""
    return "".join(
        f"{shell.assign.format(name=name, value=shell.quote(text))}\n"
        for name, text in variables.items()
    )


def format_clear_lines(shell: Shell, names: list[str]) -> str:
    """Return the lines that undo an export."""
    return "".join(f"{shell.clear.format(name=name)}\n" for name in names)


def format_host_lines(template: str, names: Iterable[str]) -> str:
    """Return the lines of ``save`` or ``restore`` for variables other than npuprof's own."""
    return "".join(
        f"{template.format(name=name)}\n"
        for name in names
        if template and not name.startswith("NPUPROF_")
    )


# -- undoing an export: it also exports the values that it overwrites -----------------------------

#: Contains the values of variables before the first export, as a JSON object.
BEFORE = "NPUPROF_BEFORE"


def format_values_before(names: Iterable[str], environ: Mapping[str, str]) -> str:
    """Return the value of ``NPUPROF_BEFORE`` for an export into an environment, empty for none.

    While an export is active, its own values cannot be distinguished, so the saved values stay
    unchanged.
    """
    if environ.get("NPUPROF_DIGEST"):
        return environ.get(BEFORE, "")
    before = {
        name: environ[name]
        for name in names
        if name in environ and not name.startswith("NPUPROF_") and is_utf8(environ[name])
    }
    if not before:
        return ""
    import json

    text = json.dumps(before, sort_keys=True)
    # Linux starts no program with a longer variable
    return text if len(text) + len(BEFORE) + 1 <= LONGEST_WORD else ""


def format_undo_lines(
    shell: Shell, variables: Mapping[str, str | None], environ: Mapping[str, str]
) -> tuple[str, list[str]]:
    """Return the lines that undo an export of variables (None: it removed one), and notes.

    Variables get their earlier values, if they are known. Those that were changed since the export
    stay, and so do all others, whatever ``NPUPROF_BEFORE`` contains.
    """
    saved = _read_values_before(environ)
    known = environ.keys() | saved.keys()
    if "NPUPROF_DIGEST" in environ:
        # what is no longer exported is the shell's own, which only the shell sees
        variables = {name: text for name, text in variables.items() if name in known}
    changed, notes = _find_changed_variables(variables, environ, known)
    restored = {}
    unset = []
    for name in variables:
        if name in changed:
            continue
        if name in saved and not shell.refuses(saved[name]):
            restored[name] = saved[name]
            continue
        unset.append(name)
        if saved.get(name):
            notes.append(f"{name} is unset, not restored: {shell.refuses(saved[name])}")
    cleared = [name for name in unset if variables[name] is not None]
    # saved values of other variables are still needed
    if BEFORE in environ and saved.keys() <= variables.keys():
        cleared.append(BEFORE)
    lines = (
        format_clear_lines(shell, cleared),
        format_host_lines(shell.restore, unset),
        format_export_lines(shell, restored),
    )
    return "".join(lines), notes


def _find_changed_variables(
    variables: Mapping[str, str | None], environ: Mapping[str, str], known: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return the variables that were changed since an export, and notes."""
    differing = [
        name for name, text in variables.items() if name in known and environ.get(name) != text
    ]
    if "NPUPROF_DIGEST" in differing:
        note = (
            "another preset, or another version of it, is exported here: later changes of its "
            "variables are not detected"
        )
        return [], [note]
    changed = [name for name in differing if not name.startswith("NPUPROF_")]
    return changed, [
        f"{name} is left as it is: it was changed since the export" for name in changed
    ]


def _read_values_before(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the saved values; empty if another program wrote the variable."""
    if not environ.get(BEFORE):
        return {}
    import json

    try:
        values = json.loads(environ[BEFORE])
    except (ValueError, RecursionError):
        return {}
    texts = {}
    for name, text in values.items() if isinstance(values, dict) else ():
        # a shell gets names without quotes, and any program may have set the variable
        is_name = is_variable_name(name) and not name.startswith("NPUPROF_")
        if is_name and isinstance(text, str) and "\0" not in text:
            texts[name] = text
    return texts
