"""Run records: the request, the settings passed to the command, and its result.

JSON that can be read back as a preset.

Values have TOML's types. Values without a JSON form (dates, infinite numbers) are objects with the
key ``$toml``, so that a record has the same digest when read back.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from npuprof.document import (
    Document,
    build_command_line_document,
    is_nested_too_deeply,
    keys,
    parse_toml_value,
)
from npuprof.document.profile import INHERITED_KEYS, Profile
from npuprof.model import (
    SECTIONS,
    Fields,
    Finding,
    NpuprofError,
    Path,
    Place,
    Record,
    build_error,
    raise_any,
)
from npuprof.report.output import print_note
from npuprof.resolve.digests import digest_bytes
from npuprof.store.base import ComposedParts
from npuprof.system import drop_empty, is_list_of
from npuprof.system.files import read_file_content, read_input

SCHEMA = "npuprof.run/2"
#: The previous schema: it includes the command's arguments, which may contain passwords.
_OLD_SCHEMA = "npuprof.run/1"
#: The common prefix of both schemas.
SCHEMA_BEGINNING = "npuprof.run/"
#: The suffix of records.
SUFFIX = ".run.json"
#: Replaces a credential.
HIDDEN = "***"
_MARK = "$toml"
_WHY = (
    "A record is written by npuprof run --record, or by the env-loader; by hand it proves nothing."
)


class _RecordedDocument(Document):
    """A preset file as cited in a record.

    It has its effective settings and their lines, without its text.
    """

    __slots__ = ("places",)

    def __init__(
        self,
        name: str,
        source: str,
        revision: str | None,
        data: Fields | None = None,
        places: dict[Path, tuple[int, int]] | None = None,
    ) -> None:
        super().__init__(name, source, "", data or {}, revision)
        self.places = places or {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _RecordedDocument, (self.name, self.source, self.revision, self.data, self.places)

    def locate_path(self, path: Path) -> tuple[int, int]:
        """Return the recorded line and column of a setting; (0, 0) if there are none."""
        return self.places.get(path[:2], (0, 0))

    def add_setting(self, section: str, name: str, value: Any, place: tuple[int, int]) -> None:
        """Add a setting of the file, with its place."""
        self.data.setdefault(section, {})[name] = value
        self.places[section, name] = place


def find_fields(profile: Profile) -> Fields | None:
    """Return the record fields of a profile, None if it was not created from a record."""
    content = profile.home and profile.home.content
    return content if isinstance(content, dict) else None


def list_record_names(folder: str) -> list[str]:
    """Return the names of the records in a folder, sorted; empty if it is unreadable."""
    try:
        return sorted(
            name
            for name in os.listdir(folder)
            if name.endswith(SUFFIX) and not name.startswith(".")
        )
    except OSError:
        return []


def encode_value(value: Any) -> Any:
    """Return a TOML value in its JSON form."""
    if isinstance(value, Mapping):
        # a table with this key would be read back as the value in it
        if _MARK in value:
            return {_MARK: keys.format_toml_value(dict(value))}
        return {name: encode_value(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode_value(item) for item in value]
    if isinstance(value, (str, int)) or (isinstance(value, float) and not keys.is_no_number(value)):
        return value
    return {_MARK: keys.format_toml_value(value)}


def decode_value(value: Any) -> Any:
    """Reverse ``encode_value``. Raises ValueError for invalid input."""
    if isinstance(value, dict):
        if value.keys() == {_MARK} and isinstance(value[_MARK], str):
            return parse_toml_value(value[_MARK])
        return {name: decode_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [decode_value(item) for item in value]
    if value is None:
        raise ValueError("null is not a value")
    return value


def read_record(path: str) -> Fields:
    """Return the fields of a record; - is standard input. Raises NpuprofError."""
    if path == "-":
        return parse_record("standard input", read_input())
    return parse_record(
        path,
        read_file_content(path, "name the record of a run, which npuprof run --record has written"),
    )


def read_folder(folder: str) -> tuple[dict[str, Fields], list[Finding]]:
    """Return the fields of the readable records in a folder, by path, and findings for the others.

    Raises NpuprofError if none is readable.
    """
    read = {}
    unread: list[Finding] = []
    for name in list_record_names(folder):
        path = os.path.join(folder, name)
        try:
            read[path] = read_record(path)
        except NpuprofError as error:
            unread += error.findings
    if not read:
        raise_any(unread)
    return read, unread


def parse_record(path: str, raw: bytes) -> Fields:
    """Return the fields of a record.

    Raises NpuprofError (NP960), with the place, for an invalid or unsupported one.
    """
    where = Place(path)
    try:
        fields = json.loads(raw.decode())
        fault = (
            "its top level is not an object"
            if not isinstance(fields, dict)
            else _find_fault(fields)
        )
    except json.JSONDecodeError as error:
        fields = {}
        fault = f"{error.msg[:1].lower()}{error.msg[1:]}"
        where = Place(path, error.lineno, error.colno)
    except (ValueError, RecursionError):
        fields, fault = {}, "it is not UTF-8, or nested too deeply"
    if fault:
        what = f"{path} is not a run record: {fault}"
        raise build_error(
            "NP960", what, _WHY, "take another copy of it, NAME.RANK.run.json", where=where
        )
    record: Fields = fields
    if list_texts(record.get("command")):
        _report_arguments(os.path.dirname(path) or path)
    return record


@cache
def _report_arguments(place: str) -> None:
    """Report once that records of an older npuprof contain more than new ones."""
    print_note(
        f"{place}: records of an older npuprof contain the "
        "arguments of commands, in which passwords may be"
    )


class Command(Record):
    """The command of a run.

    It has its program, its script (empty if there is none) and a digest of its arguments.

    ``arguments`` are the recorded arguments: empty unless requested.
    """

    program: str
    script: str
    digest: str
    arguments: tuple[str, ...]

    def is_other(self, other: Command) -> bool:
        """Return whether another command differs.

        False if unknown: older records lack parts of their arguments.
        """
        if self.program != other.program:
            return True
        is_cut = any(
            HIDDEN in word
            for command in (self, other)
            if not command.script
            for word in command.arguments
        )
        return self.digest != other.digest and not is_cut

    def __str__(self) -> str:
        if self.arguments:
            return shlex.join([self.program, *self.arguments])
        return " ".join(filter(None, (self.program, self.script, f"(arguments {self.digest[:7]})")))


def digest_arguments(words: Sequence[str]) -> str:
    """Return the SHA-256 of arguments."""
    return digest_bytes(json.dumps(list(words)).encode(errors="surrogateescape"))


def read_command(fields: Mapping[str, Any]) -> Command | None:
    """Return the command of a record, None if it has none."""
    command = fields.get("command")
    if words := list_texts(command):
        return Command(words[0], "", digest_arguments(words[1:]), tuple(words[1:]))
    if not isinstance(command, dict) or not _read_text(command, "program"):
        return None
    program, script, digest = (
        _read_text(command, name) for name in ("program", "script", "digest")
    )
    return Command(program, script, digest, tuple(list_texts(command.get("arguments"))))


def _find_fault(fields: Fields) -> str:
    """Return the fault of a record's relevant fields, an empty string if there is none."""
    schema = fields.get("schema")
    if schema not in (SCHEMA, _OLD_SCHEMA):
        fault = f"its schema is {schema!r}" if schema is not None else "it has no schema"
        newer = isinstance(schema, str) and schema.startswith(SCHEMA_BEGINNING)
        return f"{fault}, and this npuprof reads {SCHEMA}" if newer else fault
    preset = fields.get("preset")
    if not isinstance(preset, dict) or not isinstance(preset.get("name"), str):
        return "it does not say which preset"
    if not isinstance(fields.get("settings"), list):
        return "its settings are not a list"
    for number, setting in enumerate(fields["settings"], 1):
        if not _is_setting(setting):
            return (
                f"setting {number} has no key of a section, no "
                "value that can be read, or no list of origins"
            )
    wrong = [
        name
        for name in ("environment", "asked", "context", "exit")
        if not isinstance(fields.get(name) or {}, dict)
    ]
    wrong += ["command"] if not isinstance(fields.get("command") or {}, (list, dict)) else []
    return f"its {wrong[0]} is no object" if wrong else ""


def _is_setting(setting: Any) -> bool:
    try:
        origins, value = setting.get("origins", []), decode_value(setting["value"])
        is_known = keys.split_section_and_name(setting["key"])[
            0
        ] in SECTIONS and not is_nested_too_deeply({"value": value})
        return is_known and is_list_of(dict, origins)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return False


@cache
def load_record_schema() -> Fields:
    """Return the published schema of a record, for programs that read or write records."""
    text = (
        resources.files("npuprof")
        .joinpath("catalog", "run-record.schema.json")
        .read_text(encoding="utf-8")
    )
    schema: Fields = json.loads(text)
    return schema


def build_profile(path: str, fields: Fields) -> Profile:
    """Return a record as a profile with the effective settings, each at its original place."""
    parts: dict[str, _RecordedDocument] = {}
    for setting in fields["settings"]:
        origin = (setting.get("origins") or [{}])[0]
        file, revision = _read_text(origin, "path") or path, _read_text(origin, "revision") or None
        name = _read_text(origin, "profile") or fields["preset"]["name"]
        key = f"record:{path}:{name}@{revision or ''}:{file}"
        line, column = (
            number if type(number := origin.get(part)) is int else 0 for part in ("line", "column")
        )
        document = parts.setdefault(key, _RecordedDocument(name, file, revision))
        document.add_setting(
            *keys.split_section_and_name(setting["key"]),
            decode_value(setting["value"]),
            (line, column),
        )
    written = fields["preset"].get("digest_form")
    form = written if type(written) is int else 1
    profiles = {key: Profile(document, key, form=form) for key, document in parts.items()}
    head = {
        "description": fields["preset"].get("description"),
        **{name: fields["preset"].get(name) for name in INHERITED_KEYS},
    }
    table = {"profile": drop_empty(head)}
    profile = Profile(
        build_command_line_document(path, table),
        f"record:{path}",
        ComposedParts(profiles, fields),
        form,
    )
    profile.table = {**profile.table, "extends": list(profiles)}
    profile.stacked = True
    return profile


def _read_text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def list_texts(value: Any) -> list[str]:
    """Return the strings of a record's list, which may have been edited."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def read_table(context: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return releases or axes in a record's context, which may have been edited."""
    value = context.get(name)
    return (
        {name: text for name, text in value.items() if isinstance(text, str)}
        if isinstance(value, dict)
        else {}
    )


def list_requested_changes(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the mix-ins and changes of a record's request, as arguments: ``--set KEY=VALUE``."""
    request = fields.get("asked") or {}
    return tuple(
        f"--{flag} {text}"
        for flag in ("with", "set", "unset")
        for text in list_texts(request.get(flag))
    )
