"""A config as environment variables: its own, the documented twins of options, and every option by name."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.errors import NpuprofError
from npuprof.launch import fact
from npuprof.model import Finding
from npuprof.renderers.common import sidecars, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from npuprof.config import Config

#: The longest ``NAME=value`` with which Linux still starts a program, in bytes.
LONGEST = 131_071


def variables(config: Config, environ: Mapping[str, str], folder: str) -> tuple[dict[str, str], list[str]]:
    """Return names and values in the order of output, and remarks.

    ``environ`` is where facts of the launcher are looked up, ``folder`` where sidecar files lie. Raises NpuprofError for values that no
    environment can hold.
    """
    found: dict[str, str] = {}
    notes: list[str] = []
    for name, value in config.env.items():
        if isinstance(value, dict):
            told = fact(value["launcher"], environ)
            if told is None:
                notes.append(f"{name} is left out: no launcher has said its {value['launcher']} here")
            else:
                found[name] = told
        else:
            found[name] = str(value)
    paths = {name: f"{folder}/{file}" for name, (file, _) in sidecars(config).items()}
    for name, value in config.options.items():
        text = paths[name] if name in paths else as_text(wire(name, value))
        for twin in catalog.twins().get(name, ()):
            if twin in found:
                notes.append(f"{twin} keeps the value of [env]; the option {name} wins where the script sets it")
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


def _twin(twin: str, value: Any, text: str) -> str:
    record = catalog.variable(twin)
    assert record is not None
    spelled = str(value).lower() if isinstance(value, bool) else text
    return record.twin_values.get(spelled, spelled)


def _refuse(config: Config, found: dict[str, str]) -> None:
    problems = []
    for name, text in found.items():
        if "\0" in text:
            problems.append(_refusal(config, name, "holds a NUL character", "remove it"))
        elif len(f"{name}={text}".encode()) > LONGEST:
            problems.append(_refusal(config, name, f"is longer than {LONGEST} bytes", "keep long values in a file and pass its path"))
    if problems:
        raise NpuprofError(problems)


def _refusal(config: Config, name: str, what: str, hint: str) -> Finding:
    key = f"env.{name}" if f"env.{name}" in config.settings else name.removeprefix("NPUPROF_").lower()
    return Finding(
        "NP903", "error", f"{name} {what}", "No program could be started with it.", hint, config.origin(key), key, (config.name,)
    )
