"""What is no preset and can be read as one: a row of ``KINDS`` for each kind of file that a run leaves behind.

A spec that is no preset's name, and a path that begins with ``./``, ``../``, ``/`` or ``~/`` in any case, is offered to the rows in
their order. A row says by the path, and by the first bytes of a file (None for a folder), whether it is of its kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Place
from npuprof.report.output import (
    HAND_OVER,
    UnfitFileError,
    describe_os_error,
    is_handed_over,
    peek_handed_over,
    peek_standard_input,
    read_plain_file,
    tell_remark,
)
from npuprof.report.text import count_rest
from npuprof.runs import records
from npuprof.runs.evidence.places import SUFFIXES, is_evidence, is_log

#: What logs and graph dumps are called.
EVIDENCE = "evidence of a run"
#: How many bytes of a file the rows get to see.
_HEAD, _HEAD_OF_PIPE = 4096, 1 << 16


class Kind(NamedTuple):
    """One kind: what it is called, how it is recognised, and how it is read as a profile (which may raise NpuprofError).

    What cannot be read of it goes to the list that ``read`` is given, and is raised where there is none.

    A path that ends in one of ``suffixes`` was meant for one, whether or not something is there.
    """

    noun: str
    recognize: Callable[[str, bytes | None], bool]
    read: Callable[[str, list[Finding] | None], Profile]
    suffixes: tuple[str, ...]


def _is_record(path: str, head: bytes | None) -> bool:
    return head is not None and path.endswith(records.SUFFIX)


def _read_record(path: str, unread: list[Finding] | None) -> Profile:
    return records.build_profile(path, records.read_record(path))


def _is_record_folder(path: str, head: bytes | None) -> bool:
    return head is None and bool(records.list_record_names(path))


def _read_record_folder(path: str, unread: list[Finding] | None) -> Profile:
    """Return what all processes of a folder were given. Raises NpuprofError (NP960) where they were not given the same."""
    from npuprof.runs import ranks

    read, damaged = records.read_folder(path)
    if damaged and unread is None:
        raise NpuprofError(damaged)
    (unread if unread is not None else []).extend(damaged)
    started = {record_path: fields for record_path, fields in read.items() if fields.get("by") != "env-loader"}
    launches = ranks.find_launches(started or read)
    newest = list(launches[0].paths.values())
    if len(launches) == 1 and len({ranks.identify_record(read[record_path]) for record_path in newest}) == 1:
        return records.build_profile(newest[0], read[newest[0]])
    what, why = f"{path} holds the records of {len(read)} processes", "They were not given the same, so that one is to be named."
    hint = f"name one, such as {newest[0]}; npuprof diff {path} compares them"
    raise NpuprofError([Finding("NP960", what, why, hint, where=Place(path)), *damaged])


def _read_evidence(path: str, unread: list[Finding] | None) -> Profile:
    from npuprof.runs import imported
    from npuprof.runs.evidence.reading import read_told_evidence

    evidence = read_told_evidence([path])
    run = imported.import_evidence(evidence)
    if run.differing:
        tell_remark(
            f"the processes of {path} do not agree on {count_rest(run.differing, 4)}, left out here; npuprof import says what each has"
        )
    return imported.build_profile(path, run, evidence)


_EVIDENCE_KIND = Kind(EVIDENCE, is_evidence, _read_evidence, SUFFIXES)
_RECORD_KIND = Kind("the record of a run", _is_record, _read_record, (records.SUFFIX,))
KINDS = (
    _RECORD_KIND,
    _EVIDENCE_KIND,
    Kind("a folder of records", _is_record_folder, _read_record_folder, ()),
)  # fmt: skip


def find_kind(path: str) -> Kind | None:
    """Return the kind of what is at a path, None where it is of none. Raises NpuprofError where it cannot be read, or is not there."""
    if path == "-" or is_handed_over(path):
        return _find_kind_of_pipe(path)
    if not os.path.lexists(path):
        if not path.endswith(tuple(suffix for kind in KINDS for suffix in kind.suffixes)):
            return None
        what, hint = f"there is no {path}", "check the path; npuprof list shows what presets there are"
        raise NpuprofError([Finding("NP003", what, "", hint, where=Place(path))])
    head: bytes | None = None
    try:
        if os.path.isdir(path):
            os.scandir(path).close()  # raises where nobody knows what is in it
        else:
            head = read_plain_file(path, _HEAD, whole=False)
    except OSError as error:
        what = f"cannot read {path}: {describe_os_error(error, path)}"
        hint = HAND_OVER if isinstance(error, UnfitFileError) else "check the path and its permissions"
        raise NpuprofError([Finding("NP003", what, "", hint, where=Place(path))]) from None
    return next((kind for kind in KINDS if kind.recognize(path, head)), None)


def _find_kind_of_pipe(path: str) -> Kind | None:
    """Return the kind of the content of a pipe, by its beginning, which can still be read afterwards. Raises NpuprofError.

    Standard input may be a preset, and then is of none; a pipe that the shell opens is a log where it is no record.
    """
    try:
        head = peek_standard_input(_HEAD_OF_PIPE) if path == "-" else peek_handed_over(path, _HEAD_OF_PIPE)
    except OSError as error:
        what = f"cannot read {'standard input' if path == '-' else path}: {describe_os_error(error, path)}"
        hint = "give a preset, a log or a record to it"
        raise NpuprofError([Finding("NP003", what, "", hint)]) from None
    if head.lstrip()[:1] == b"{":
        return _RECORD_KIND
    return _EVIDENCE_KIND if path != "-" or is_log(head) else None


def read_as_profile(path: str, unread: list[Finding] | None = None) -> Profile | None:
    """Return what is at a path as a profile, None where it is of no kind; what cannot be read of it goes to ``unread``.

    Raises NpuprofError, also for that where there is no list for it.
    """
    kind = find_kind(path)
    return kind.read(path, unread) if kind is not None else None


def reject_run_file(path: str) -> Profile | None:
    """Raise NpuprofError (NP961) where something at a path is what only verbs that read take; None where it is of no kind."""
    kind = find_kind(path)
    if kind is None:
        return None
    what, why = f"{path} is {kind.noun}, and no preset", "It says what was, and is read by verbs that only show, compare and check."
    hint = f"make a preset of it first: npuprof render {path} --to toml --inline -o profiles/NAME.toml"
    if kind is _EVIDENCE_KIND:
        hint = f"make a preset of it first: npuprof import {path} -o profiles/NAME.toml"
    raise NpuprofError([Finding("NP961", what, why, hint, where=Place(path))])
