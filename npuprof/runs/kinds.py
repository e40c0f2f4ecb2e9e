"""Files of runs that can be read as presets: a row of ``KINDS`` for each kind of file.

A spec that is not a preset's name, and a path that begins with ``./``, ``../``, ``/`` or ``~/``, is
passed to the rows in order. A row recognises its kind by the path, and by the first bytes of a file
(None for a folder).
"""

from __future__ import annotations

import os
from collections.abc import Callable

from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Place, Record, build_error, raise_any
from npuprof.report.output import print_note
from npuprof.report.text import count_rest
from npuprof.runs import imported, ranks, run_records
from npuprof.runs.evidence.evidence_files import read_logs
from npuprof.runs.evidence.log_locations import SUFFIXES, build_read_error, is_evidence, is_log
from npuprof.runs.installed_files import is_installed_file, read_installed_file
from npuprof.system.files import (
    HAND_OVER,
    UnfitFileError,
    describe_os_error,
    is_handed_over,
    peek_handed_over,
    peek_standard_input,
    read_plain_file,
)

#: The name of logs and graph dumps in messages.
EVIDENCE = "evidence of a run"
#: The number of first bytes passed to the rows.
_HEAD, _HEAD_OF_PIPE = 4096, 1 << 16


class Kind(Record):
    """One kind of run file: how it is recognised, and how it is read as a profile.

    Reading may raise NpuprofError.

    ``read`` adds unreadable parts to the given list, and raises without one. A path with one of
    ``suffixes`` is of this kind even if it does not exist.
    """

    noun: str
    recognize: Callable[[str, bytes | None], bool]
    read: Callable[[str, list[Finding] | None], Profile]
    suffixes: tuple[str, ...]


def _is_record(path: str, head: bytes | None) -> bool:
    return head is not None and path.endswith(run_records.SUFFIX)


def _read_record(path: str, unread: list[Finding] | None) -> Profile:
    return run_records.build_profile(path, run_records.read_record(path))


def _is_record_folder(path: str, head: bytes | None) -> bool:
    return head is None and bool(run_records.list_record_names(path))


def _read_record_folder(path: str, unread: list[Finding] | None) -> Profile:
    """Return the settings of all processes with records in a folder.

    Raises NpuprofError (NP960) if they differ.
    """
    read, damaged = run_records.read_folder(path)
    if unread is not None:
        unread += damaged
    else:
        raise_any(damaged)
    started = {
        record_path: fields
        for record_path, fields in read.items()
        if fields.get("by") != "env-loader"
    }
    launches = ranks.find_launches(started or read)
    newest = list(launches[0].paths.values())
    if (
        len(launches) == 1
        and len({ranks.identify_record(read[record_path]) for record_path in newest}) == 1
    ):
        return run_records.build_profile(newest[0], read[newest[0]])
    what = f"{path} contains the records of {len(read)} processes"
    why = "Their settings differ, so name one of them."
    hint = f"name one, such as {newest[0]}; npuprof diff {path} compares them"
    raise NpuprofError([Finding("NP960", what, why, hint, where=Place(path)), *damaged])


def _read_evidence(path: str, unread: list[Finding] | None) -> Profile:

    evidence = read_logs([path])
    run = imported.import_evidence(evidence)
    if run.differing:
        print_note(
            f"the processes of {path} differ in {count_rest(run.differing, 4)}, omitted here; "
            "npuprof import lists the values of each"
        )
    return imported.build_profile(path, run, evidence)


_EVIDENCE_KIND = Kind(EVIDENCE, is_evidence, _read_evidence, SUFFIXES)
_INSTALLED_KIND = Kind("an installed file", is_installed_file, read_installed_file, ())
_RECORD_KIND = Kind("the record of a run", _is_record, _read_record, (run_records.SUFFIX,))
KINDS = (
    _RECORD_KIND,
    _EVIDENCE_KIND,
    Kind("a folder of records", _is_record_folder, _read_record_folder, ()),
    _INSTALLED_KIND,
)


def find_kind(path: str) -> Kind | None:
    """Return the kind of a path, None if it has none.

    Raises NpuprofError for an unreadable or missing path.
    """
    if path == "-" or is_handed_over(path):
        return _find_kind_of_pipe(path)
    if not os.path.lexists(path):
        if not path.endswith(tuple(suffix for kind in KINDS for suffix in kind.suffixes)):
            return None
        what, hint = f"there is no {path}", "check the path; npuprof list shows the presets"
        raise build_error("NP003", what, "", hint, where=Place(path))
    head: bytes | None = None
    try:
        if os.path.isdir(path):
            os.scandir(path).close()  # raises if it is unreadable
        else:
            head = read_plain_file(path, _HEAD, whole=False)
    except OSError as error:
        hint = (
            HAND_OVER if isinstance(error, UnfitFileError) else "check the path and its permissions"
        )
        raise build_read_error(path, describe_os_error(error, path), hint) from None
    return next((kind for kind in KINDS if kind.recognize(path, head)), None)


def _find_kind_of_pipe(path: str) -> Kind | None:
    """Return the kind of a pipe by its first bytes, which stay readable. Raises NpuprofError.

    Standard input may be a preset, which has no kind; a pipe opened by the shell is a log unless it
    is a record.
    """
    try:
        head = (
            peek_standard_input(_HEAD_OF_PIPE)
            if path == "-"
            else peek_handed_over(path, _HEAD_OF_PIPE)
        )
    except OSError as error:
        what = (
            f"cannot read {'standard input' if path == '-' else path}: "
            f"{describe_os_error(error, path)}"
        )
        raise build_error("NP003", what, "", "give a preset, a log or a record to it") from None
    if head.lstrip()[:1] == b"{":
        return _RECORD_KIND
    return _EVIDENCE_KIND if path != "-" or is_log(head) else None


def read_as_profile(path: str, unread: list[Finding] | None) -> Profile | None:
    """Return a run's file or folder as a profile, None if it has no kind.

    Unreadable parts are added to ``unread``.

    Raises NpuprofError, also for unreadable parts without that list.
    """
    kind = find_kind(path)
    return kind.read(path, unread) if kind is not None else None


def reject_run_file(path: str) -> Profile | None:
    """Raise NpuprofError (NP961) for a path that only reading verbs accept.

    None if it has no kind.
    """
    kind = find_kind(path)
    if kind is None:
        return None
    what = f"{path} is {kind.noun}, and no preset"
    why = "It is a record of a past run; only commands that show, compare and check read it."
    hint = (
        f"make a preset of it first: npuprof render {path} --to toml --inline -o profiles/NAME.toml"
    )
    if kind is _INSTALLED_KIND:
        why = "Only commands that show, compare and check read it."
    if kind in (_EVIDENCE_KIND, _INSTALLED_KIND):
        hint = f"make a preset of it first: npuprof import {path} -o profiles/NAME.toml"
    raise build_error("NP961", what, why, hint, where=Place(path))
