"""Writes run records: facts known at the start of a command, and its result.

Each file is complete at any time.

No lock is used: hundreds of ranks start in one folder at once without waiting for each other.
Creating a file, which only one process can do, claims a name; its content is replaced atomically. A
killed process leaves the record of its start.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from npuprof.catalog import find_option, find_variable, record_names
from npuprof.catalog.launchers import FACTS, find_launch, find_launcher_fact
from npuprof.document import keys
from npuprof.document.profile import INHERITED_KEYS, Profile, ProfileSource
from npuprof.document.secrets import TOKEN_ANYWHERE, hide_credentials
from npuprof.model import Fields, NpuprofError, Place, __version__, build_error
from npuprof.report import output
from npuprof.resolve import origins
from npuprof.resolve.config import Config
from npuprof.resolve.lineages import is_of_source, is_personal
from npuprof.runs.run_records import HIDDEN, SCHEMA, SUFFIX, digest_arguments, encode_value
from npuprof.store.folder import Folder
from npuprof.store.gitstore.repository import Repository
from npuprof.store.sources.stores import SourceStore
from npuprof.system import drop_empty, find_repository_top
from npuprof.system.files import build_write_error, describe_os_error, make_folder
from npuprof.system.tree import Tree, name_under_way

#: Errors of a full or failing disk: the command runs anyway.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE)
#: The maximum number of records of one preset and rank in a folder.
_MOST = 100_000


class Recorder:
    """The record of one process: written when it starts, and again when it has ended."""

    def __init__(self, folder: str, fields: Fields) -> None:
        self.folder = folder
        self.fields = fields
        self.path = ""

    def start(self) -> None:
        """Write the record before the command runs; a full disk causes only a note.

        Raises NpuprofError for other errors.
        """
        created = []
        try:
            created = make_folder(self.folder)
            self.path = self._claim_name()
        except OSError as error:
            what = f"{self.folder}: {describe_os_error(error, os.path.join(self.folder, 'x'))}"
            if error.errno not in _FULL:
                raise build_write_error(what, "The command was not started.") from None
            output.print_note(
                f"no record is kept, cannot write {what}; the command runs all the same"
            )
        output.print_created_folders(created)

    def record_start(self, pid: int) -> None:
        """Write the process id of the command."""
        self.finish(process={**self.fields["process"], "pid": pid})

    def finish(self, **more: Any) -> None:
        """Write how the command ended; on failure, print a note and keep the earlier record."""
        self.fields |= more
        if not self.path:
            return
        try:
            self._write(Tree(self.folder), os.path.basename(self.path))
        except OSError as error:
            output.print_note(
                f"{self.path} does not say how the run ended: {describe_os_error(error, self.path)}"
            )
            self.path = ""

    def _claim_name(self) -> str:
        """Return the path of a new record file with a unique name. Raises OSError."""
        rank = self.fields["process"]["rank"]
        stem = f"{name_file(self.fields['preset']['name'])}.{rank if rank is not None else 0}"
        tree = Tree(self.folder)
        temporary = name_under_way("")
        self._write(tree, temporary)
        try:
            for number in range(1, _MOST):
                name = f"{stem}{f'-{number}' if number > 1 else ''}{SUFFIX}"
                try:
                    # unlike a rename, a link fails if the name exists
                    tree.link_file(temporary, name)
                except FileExistsError:
                    continue
                except OSError:  # a file system without links
                    try:
                        os.close(tree.create_file(name))
                    except FileExistsError:
                        continue
                    tree.rename(temporary, name)
                return tree.find_path(name)
            raise OSError(errno.EEXIST, f"it contains {_MOST} records of {stem}")
        finally:
            with suppress(OSError):
                tree.remove_file(temporary)

    def _write(self, tree: Tree, name: str) -> None:
        text = json.dumps(self.fields, ensure_ascii=True, indent=2, default=str)
        tree.write_file(name, f"{text}\n".encode(), durable=True)


def name_file(preset: str) -> str:
    """Return the base name of a preset's records.

    It has dashes between folders and composed presets.
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", preset).strip(".-")[:120] or "preset"


def format_time() -> str:
    """Return the time, in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def build_fields(
    config: Config,
    request: Mapping[str, Any],
    command: Sequence[str],
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    with_arguments: bool,
) -> Fields:
    """Return the facts known before a run.

    ``variables`` are those of the preset, ``environment`` all variables.

    ``with_arguments`` keeps the arguments of the command, redacted by name.
    """
    hidden: list[str] = []
    return {
        "schema": SCHEMA,
        "npuprof": __version__,
        "by": "run",
        "state": "running",
        "asked": drop_empty(request),
        "preset": {
            "name": config.name,
            "description": config.description or None,
            **_list_claims(config),
            "digest": config.digest,
            "preset_digest": config.preset_digest,
            "digest_form": config.form,
        },
        "context": config.context._replace(target=None).build_fields(),
        "profiles": [*_describe_profiles(config)],
        "command": _describe_command(command, with_arguments),
        "settings": [
            {
                "key": key,
                "value": _hide_setting(key, value, hidden),
                "origins": [origins.build_origin_dict(origin) for origin in config.origins(key)],
            }
            for key, value in config.ordered_settings().items()
        ],
        "environment": _select_variables(variables, environment, hidden),
        "hidden": hidden,
        "process": _describe_process(environment),
        "start": format_time(),
        "end": None,
        "exit": None,
    }


def _list_claims(config: Config) -> Fields:
    claims = {name: config.find_profile_value(name) for name in INHERITED_KEYS}
    return {
        name: claim
        for name, claim in claims.items()
        if claim is not None or name not in ("versions", "axes")
    }


def _describe_profiles(config: Config) -> Iterator[Fields]:
    """Yield the preset files, lowest first.

    Each has its commit, and whether it differs from it.
    """
    for member in config.lineage:
        if member.document.text:  # composed specs have no file
            layer = (
                "personal"
                if is_personal(member)
                else "source"
                if is_of_source(member)
                else "preset"
            )
            yield {
                "name": member.name,
                "path": member.document.source,
                "layer": layer,
                **find_place(member),
            }


def _describe_process(environment: Mapping[str, str]) -> Fields:
    """Return host and launcher facts of this process."""
    facts = {
        name: find_launcher_fact(name, environment) for name in ("rank", "local-rank", "world-size")
    }
    numbers = {name.replace("-", "_"): int(fact) if fact else None for name, fact in facts.items()}
    return {
        "pid": None,
        "host": os.uname().nodename,
        **numbers,
        "job": find_launch(environment),
        "folder": os.getcwd(),
    }


def _describe_command(command: Sequence[str], with_arguments: bool) -> Fields:
    """Return the program, the first argument that is a file, and a digest of all arguments."""
    program, *arguments = command
    script = next(
        (item for item in arguments if not item.startswith("-") and os.path.isfile(item)), None
    )
    fields = {"program": program, "script": script, "digest": digest_arguments(arguments)}
    return {**fields, "arguments": hide_arguments(arguments)} if with_arguments else fields


def _select_variables(
    variables: Mapping[str, str], environment: Mapping[str, str], hidden: list[str]
) -> dict[str, str]:
    """Return the variables named by the preset or the catalogue, as the command gets them.

    Credentials are redacted.
    """
    named = {
        *variables,
        *record_names("env"),
        *(variable for row in FACTS.values() for variable in row),
    }
    selected = {}
    for name in sorted(named & environment.keys()):
        selected[name] = hide_text(name, environment[name])
        hidden += [f"env.{name}"] if selected[name] != environment[name] else []
    return selected


def _hide_setting(key: str, value: Any, hidden: list[str]) -> Any:
    section, name = keys.split_section_and_name(key)
    text = str(value)
    shown = hide_text(name if section == "env" else "", text)
    if shown != text and (isinstance(value, str) or shown == HIDDEN):
        hidden.append(key)
        return shown
    return encode_value(value)


def require_folder(path: str) -> None:
    """Raise NpuprofError if the path for records exists and is not a folder."""
    if os.path.lexists(path) and not os.path.isdir(path):
        what = f"cannot write records to {path}: it is not a folder"
        raise build_error(
            "NP012",
            what,
            "One file is written for each process.",
            "name a folder",
            where=Place(path),
        )


def find_place(member: Profile) -> Fields:
    """Return where a profile was read.

    The fields are ``commit``, ``dirty``, ``repository`` and ``source``, if known.
    """
    home, revision = member.home, member.document.revision
    if not revision and home is not None and home.is_shipped:
        return {"commit": None, "dirty": False, "source": "builtin:"}
    if revision or not isinstance(home, Folder) or not home.in_work_tree:
        return {
            "commit": revision or (home and home.commit) or None,
            "dirty": False,
            **_describe_source(home),
        }
    repository = _find_repository(home)
    if repository is None or member.key != member.name:
        return {"commit": None, "dirty": None}
    path = os.path.relpath(os.path.realpath(home.profile_path(member.name)), repository.top)
    head, committed = repository.git.read_objects(["HEAD", f"HEAD:{path}"])
    if head is None:
        return {"commit": None, "dirty": True, "repository": repository.top}
    same = committed is not None and _read_plainly(committed.content) == _read_plainly(
        member.document.text.encode()
    )
    return {"commit": head.oid, "dirty": not same, "repository": repository.top}


def _read_plainly(text: bytes) -> bytes:
    """Return a text without what a checkout may change: byte order mark and line endings."""
    return text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")


def _find_repository(home: Folder) -> Repository | None:
    if not find_repository_top(home.root) and "GIT_DIR" not in os.environ:
        return None
    try:
        return home.repository
    except NpuprofError:  # git is missing or rejects the folder: the run does not depend on it
        return None


def _describe_source(home: ProfileSource | None) -> Fields:

    if not isinstance(home, SourceStore):
        return {}
    url = hide_credentials(home.locked.url)
    return {
        "source": {
            "name": home.locked.name,
            "url": url,
            "version": home.version or None,
            "commit": home.commit,
        }
    }


#: Tokens of a text are no credentials: their number, and words such as ``pad_token`` or
#: ``token_type``.
_SECRET_NAME = re.compile(
    r"(?<!(?:pad|bos|eos|unk|sep|cls)[-_])(?<!(?:mask|stop)[-_])token"
    r"(?!iz|s(?![a-z])|[-_]?(?:budget|type|drop|embed|level|len|limit|count|size|dim|mask|weight|id|per|class|loss|rate|ratio"
    r"|dispatch|index|num|latency|pad|shift|merg|quant))"
    r"|passw|pwd|passphrase|passcode|secret|credential|cookie|bearer|auth(?!or(?!i[sz]))"
    r"|(?:api|access|private|signing|account|encryption|license|master|shared)[-_.]?(?:key|token)"
    r"|creds?(?![a-z])|(?:db|user|my|ssh)pass(?![a-z])|(?<![a-z])(?:passkey|pass|pin(?![-_]mem)|pat|pw)(?![a-z])|[-_]key$",
    re.IGNORECASE,
)
_NAME = re.compile(r"[\w.-]+")

#: Characters of an argument that is more than names and values.
_SIGNS = " \t\n\"'{"


def is_secret_name(name: str) -> bool:
    """Return whether a name suggests a credential.

    Options and variables that the catalogue describes do not count.
    """
    return (
        _SECRET_NAME.search(name) is not None
        and find_variable(name) is None
        and find_option(name) is None
    )


def hide_text(name: str, text: str) -> str:
    """Return an argument, or the value of a variable or setting, redacted for a record.

    What follows a secret name and ``=`` or ``:`` is hidden, up to the end. A text with blanks,
    quotes or braces, such as a script for ``sh -c``, a header or JSON, is omitted if it contains a
    secret name.
    """
    # by whole names: a search for secrets alone would begin anew at each character of a long word
    secrets = [match.span() for match in _NAME.finditer(text) if is_secret_name(match[0])]
    if is_secret_name(name) or (secrets and any(sign in text for sign in _SIGNS)):
        return HIDDEN
    for start, end in secrets:
        if text[end : end + 1] == "=" or (
            text[end : end + 1] == ":" and text[start - 1 : start] not in ("/", "@")
        ):  # a path, a host
            text = text[: end + 1] + HIDDEN
            break
    return hide_credentials(TOKEN_ANYWHERE.sub(HIDDEN, text))


def hide_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command, redacted for a record.

    Values after secret names are left out.
    """
    return [
        HIDDEN if _is_secret_value(argument, before) else hide_text("", argument)
        for before, argument in zip(["", *arguments], arguments, strict=False)
    ]


def _is_secret_value(argument: str, before: str) -> bool:
    """Return whether the argument before another names it as a secret.

    It is an option, or a name with ``:`` or ``=``.
    """
    is_option = before.startswith("-") and "=" not in before and not argument.startswith("-")
    return is_secret_name(before) and (
        is_option or before.endswith((":", "=")) or before.lower() == "bearer"
    )
