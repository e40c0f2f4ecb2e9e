"""The preset behind a file: digests and a name, in a record, a rendered file, an environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from npuprof.model import Fields, Finding, Place, Record, build_error
from npuprof.renderers.stamp import judge_found_text
from npuprof.resolve.digests import list_digests
from npuprof.runs.evidence import Evidence
from npuprof.runs.evidence.evidence_files import read_logs
from npuprof.runs.kinds import EVIDENCE, find_kind
from npuprof.runs.run_records import (
    SCHEMA_BEGINNING,
    SUFFIX,
    decode_value,
    parse_record,
    read_folder,
)
from npuprof.system import decode_safely, expand_home
from npuprof.system.files import (
    describe_os_error,
    is_handed_over,
    read_file_content,
    read_input,
    read_plain_file,
)

#: The minimum length of a digest prefix.
_LEAST = 6
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{6,64})", re.ASCII)
_WHOLE = r"(?:sha256:)?([0-9a-f]{64})"


def _compile(header: str, variable: str, key: str, value: str) -> re.Pattern[str]:
    """Return a pattern for one fact.

    It matches in a header or tag, in a variable of any notation, and in JSON.
    """
    ways = (
        rf"^[ \t]*\"?(?:#|//|rem)?[ \t]*{header}:[ \t]*",  # a notebook line is quoted
        rf"{variable}[\"'}}]*(?:[ \t]*(?:[=:]|\n[ \t]*value:)[ \t]*|[ \t]+)[\"']?",
        rf"\"{key}\":[ \t]*\"",
    )
    return re.compile(rf"(?im)(?:{'|'.join(ways)}){value}")


#: The facts in npuprof's texts, with their patterns.
_FACT_PATTERNS = {
    "digest": _compile("digest", "NPUPROF_DIGEST", "digest", rf"{_WHOLE}\b"),
    "preset_digest": _compile(
        "preset[- ]digest", "NPUPROF_PRESET_DIGEST", "preset_digest", rf"{_WHOLE}\b"
    ),
    "name": _compile("preset", "NPUPROF_PROFILE", "name", r"([^\s\"';\\]+)"),
    "context": re.compile(r"(?im)^[ \t]*\"?#[ \t]*context:[ \t]*([^\n\\\"]+)"),
}
#: The variables that npuprof sets for a process, by fact.
_VARIABLES = {
    "digest": b"NPUPROF_DIGEST",
    "preset_digest": b"NPUPROF_PRESET_DIGEST",
    "name": b"NPUPROF_PROFILE",
}


class Clue(Record):
    """Clues about the preset behind a file.

    They are digests, complete or as prefixes, and its name.

    ``location`` is where the clue is: a file with a line, or a process. ``record`` are the fields
    of a record, ``evidence`` the content of a log. ``edited`` is why the file is known to be
    changed since it was written.
    """

    location: str
    digest: str = ""
    preset_digest: str = ""
    name: str = ""
    record: Fields = {}
    evidence: Evidence | None = None
    edited: str = ""

    @property
    def digests(self) -> tuple[str, ...]:
        """The known digests, that of the resolved config first."""
        return tuple(digest for digest in (self.digest, self.preset_digest) if digest)


def read_clues(argument: str, unread: list[Finding]) -> list[Clue]:
    """Return the clues of a user's argument: a file, a folder of records, or a digest.

    Raises NpuprofError for anything else.

    Unreadable files of a folder are added to ``unread`` if others can be read.
    """
    path = expand_home(argument)
    # an existing file comes before a digest: its name may consist of hexadecimal digits
    if argument == "-":
        if _is_evidence(argument):
            return [_read_evidence(argument)]
        return _read_text("standard input", read_input())
    if os.path.isdir(path):
        return _read_folder(path, unread)
    if os.path.isfile(path) and not is_handed_over(path) and _is_evidence(path):
        return [_read_evidence(path)]
    if os.path.exists(path):
        if path.endswith("/environ"):  # of /proc: variables of a process
            return _read_variables(path, _read_environ(path))
        return _read_text(path, read_file_content(path))
    if match := _DIGEST.fullmatch(argument.lower()):
        return [Clue("", digest=match[1])]
    find_kind(path)  # raises for a missing path that looks like a log or record
    what = f"{argument!r} is neither a file nor a digest"
    hint = (
        f"a digest is 64 hexadecimal digits, of which the first {_LEAST} are enough; npuprof "
        "whatran --pid N reads a process"
    )
    raise build_error("NP962", what, "", hint)


def read_process(pid: int) -> list[Clue]:
    """Return the clues in a live process's environment.

    Raises NpuprofError if it is unreadable or has none.
    """
    return _read_variables(f"process {pid}", _read_environ(f"/proc/{pid}/environ"))


def _read_environ(path: str) -> bytes:
    """Return the content of a process's ``environ`` file. Raises NpuprofError."""
    try:
        return read_plain_file(path)
    except OSError as error:
        reason, hint = describe_os_error(error, path), "ask as the user that it runs as"
        if isinstance(error, FileNotFoundError):
            reason, hint = "there is no such process", "it may have ended"
        what = f"cannot read {path}: {reason}"
        raise build_error(
            "NP003", what, "Only the owner of a process can read its environment.", hint
        ) from None


def _read_variables(location: str, raw: bytes) -> list[Clue]:
    """Return the clues in NUL-separated variables of a process or file."""
    by_name = {}
    for entry in raw.split(b"\0"):
        name, _, text = entry.partition(b"=")
        by_name[name] = text
    fields: Fields = {
        fact: decode_safely(by_name.get(variable, b"")) for fact, variable in _VARIABLES.items()
    }
    if not fields["digest"] and not fields["preset_digest"]:
        what = f"{location} has no NPUPROF_DIGEST"
        why = "npuprof run and npuprof env set it for the commands they start."
        raise build_error(
            "NP962",
            what,
            why,
            "look at the process that npuprof started, or at one of its children",
        )
    return [Clue(location, **fields)]


def _read_folder(path: str, unread: list[Finding]) -> list[Clue]:
    """Return the clues of a folder's records, each preset and digest once, or of its logs."""
    records, damaged = read_folder(path)
    if not records and _is_evidence(path):
        return [_read_evidence(path)]
    unread += damaged
    if not records:
        hint = "name a file, or a folder of npuprof run NAME --record FOLDER"
        raise build_error("NP962", f"{path} contains no run record", "", hint, where=Place(path))
    clues: dict[tuple[str, ...], Clue] = {}
    for record, fields in records.items():
        clue = _read_fields(record, fields)
        clues.setdefault((*clue.digests, clue.name), clue)
    return list(clues.values())


def _is_evidence(path: str) -> bool:
    """Return whether a path contains logs or graph dumps."""
    kind = find_kind(path)
    return kind is not None and kind.noun == EVIDENCE


def _read_evidence(path: str) -> Clue:
    return Clue(
        "standard input" if path == "-" else path, evidence=read_logs([path], with_unknown=True)
    )


def _read_text(path: str, raw: bytes) -> list[Clue]:
    """Return the clues in a file, each preset once. Raises NpuprofError if there are none."""
    # standard input has no suffix, but the schema of a record is at its beginning
    if path.endswith(SUFFIX) or (raw[:1] == b"{" and SCHEMA_BEGINNING.encode() in raw[:200]):
        return [_read_fields(path, parse_record(path, raw))]
    if b"\0" in raw and b"NPUPROF_" in raw:  # a copy of an environ file
        return _read_variables(path, raw)
    text = decode_safely(raw).replace("\r\n", "\n")
    clues = list(dict.fromkeys(_find_clues(path, text)))
    if not clues:
        what = f"{path} contains no digest"
        why = "Files that npuprof renders, exports and records name their preset."
        hint = (
            f"npuprof log {path} lists the commits of a preset"
            if path.endswith(".toml")
            else "npuprof import reads the settings of a file that npuprof has not written, and "
            "diff compares them with a preset"
        )
        raise build_error("NP962", what, why, hint, where=Place(path))
    if judge_found_text(text).edited:
        clues = [clue._replace(edited="somebody edited it since it was rendered") for clue in clues]
    return clues


def _read_fields(path: str, fields: Fields) -> Clue:
    """Return the clue in the fields of a record."""
    preset = fields["preset"]
    digests: Fields = {name: str(preset.get(name) or "") for name in ("digest", "preset_digest")}
    return Clue(
        path,
        **digests,
        name=preset["name"],
        record=fields,
        edited=_explain_edit(fields),
    )


def _explain_edit(fields: Fields) -> str:
    """Return why a record is known to be edited: its values differ from its digest; else empty.

    Empty if some of them are redacted.
    """
    digest = fields["preset"].get("digest")
    if not digest or fields.get("hidden"):
        return ""
    settings = {setting["key"]: decode_value(setting["value"]) for setting in fields["settings"]}
    if digest in list_digests(settings):
        return ""
    return "its settings do not give its digest: somebody edited it"


def _find_clues(path: str, text: str) -> Iterator[Clue]:
    """Yield the clue of each part of a text; a new part starts where a fact gets another value."""
    facts = sorted(
        (match.start(), kind, match[1].strip())
        for kind, pattern in _FACT_PATTERNS.items()
        for match in pattern.finditer(text)
    )
    parts: list[tuple[int, Fields]] = []  #: the first line of each part, and its facts
    for start, kind, value in facts:
        if not parts or parts[-1][1].get(kind, value) != value:
            parts.append((text.count("\n", 0, start) + 1, {}))
        parts[-1][1][kind] = value
    for line, part in parts:
        if "digest" in part or "preset_digest" in part:  # a name alone identifies nothing
            part.pop("context", "")  # it only tells parts apart
            yield Clue(f"{path}:{line}", **part)
