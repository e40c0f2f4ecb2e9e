"""A config as environment variables: its own, the documented twins of options, and every option by name."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.catalog.launchers import FACTS
from npuprof.document import keys
from npuprof.model import Finding, NpuprofError
from npuprof.renderers.common import sidecars, unfit, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from npuprof.resolve.config import Config

#: The longest ``NAME=value`` with which Linux still starts a program, in bytes.
LONGEST = 131_071


def variables(config: Config, tell: Callable[[str], str | None] | None, folder: str) -> tuple[dict[str, str], list[str]]:
    """Return names and values in the order of output, and remarks.

    ``tell`` returns what the launcher knows of this process; None is for files that many processes will read.
    ``folder`` is where sidecar files lie. Raises NpuprofError for values that no environment can hold.
    """
    found: dict[str, str] = {}
    notes: list[str] = []
    for name, value in config.env.items():
        if isinstance(value, dict):
            asked = str(value.get("launcher"))
            told = tell(asked) if tell and asked in FACTS else None
            if told is not None:
                found[name] = told
            elif tell:
                notes.append(f"{name} is left out: no launcher has said its {asked} here")
            else:
                notes.append(f"{name} is left out: it differs from process to process; npuprof run fills it in")
        else:
            found[name] = _switch(name, value) if isinstance(value, bool) else str(value)
    paths = {name: f"{folder}/{file}" for name, (file, _) in sidecars(config).items()}
    for name, value in config.options.items():
        wired = paths.get(name) or wire(name, value)
        if isinstance(wired, (dict, list)):
            raise NpuprofError([unfit(config, name, "env")])
        text = as_text(wired)
        for twin in catalog.twins().get(name, ()):
            if twin in found:
                order = catalog.text("env", twin).get("precedence")
                notes.append(
                    f"{twin} keeps the value of [env]; the option {name} wins where the script sets it" + (f" ({order})" if order else "")
                )
            else:
                found[twin] = _twin(twin, value, text)
        found[f"NPUPROF_{name.upper()}"] = text
    found["NPUPROF_PROFILE"] = config.name
    found["NPUPROF_DIGEST"] = config.digest
    _refuse(config, found)
    return found, notes


def as_text(value: Any) -> str:
    """Return what an option stores as the text of a variable: 1 and 0 for a bool."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _switch(name: str, value: bool) -> str:
    """Return a bool as the variable writes it: 1 and 0 where those are its choices, else true and false."""
    record = catalog.variable(name)
    numeric = record is not None and "1" in map(str, record.choices)
    return as_text(value) if numeric else str(value).lower()


def _twin(twin: str, value: Any, text: str) -> str:
    record = catalog.variable(twin)
    assert record is not None
    spelled = str(value).lower() if isinstance(value, bool) else text
    return record.twin_values.get(spelled, spelled)


def _refuse(config: Config, found: dict[str, str]) -> None:
    problems = []
    for name, text in found.items():
        if not (name.isascii() and name.isidentifier()):
            problems.append(_refusal(config, name, "is no name of a variable", "use letters, digits and '_'"))
        elif "\0" in text:
            problems.append(_refusal(config, name, "holds a NUL character", "remove it"))
        elif len(f"{name}={text}".encode()) > LONGEST:
            problems.append(_refusal(config, name, f"is longer than {LONGEST} bytes", "keep long values in a file and pass its path"))
    if problems:
        raise NpuprofError(problems)


def _refusal(config: Config, name: str, what: str, hint: str) -> Finding:
    key = key_of(config, name)
    message = f"{ascii(name)[1:-1]} {what}"
    return Finding("NP903", "error", message, "No program could be started with it.", hint, config.origin(key), key, (config.name,))


def key_of(config: Config, name: str) -> str:
    """Return the setting that a variable comes from."""
    key = keys.full("env", name)
    if key in config.settings:
        return key
    return next((option for option in config.options if name in (f"NPUPROF_{option.upper()}", *catalog.twins().get(option, ()))), name)


def refused(config: Config, name: str, reason: str) -> Finding:
    """Return the finding on a variable that a shell or a format cannot take."""
    key = key_of(config, name)
    return Finding(
        "NP903",
        "error",
        f"{name} cannot be exported: {reason}",
        "A value comes back byte for byte or not at all.",
        "use another shell or format, or write the value without it",
        config.origin(key),
        key,
        (config.name,),
    )
