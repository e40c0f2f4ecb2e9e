"""Findings for stores and presets that are missing or unreadable."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from npuprof.model import Finding, NpuprofError, Origin, Place, did_you_mean
from npuprof.report import format_option
from npuprof.store import strip_revision
from npuprof.system.files import UnfitFileError, describe_os_error, suggest_remedy

#: The command that lists the existing names.
LIST_ADVICE = "npuprof list shows the names there are"

#: The command that fetches a lock's sources; options select another lock.
SYNC = "npuprof source sync"
_WHICH = ("", "--rev", "--history")

#: Codes for a source that cannot be read on this machine: its dependents may still be valid.
UNAVAILABLE = frozenset(("NP043", "NP053", "NP054"))

#: The same, with codes for objects that are missing in git, and trees for another npuprof.
UNREADABLE = UNAVAILABLE | {"NP022", "NP041"}

_NAME_RULE = (
    "A name is a path below the store: letters, digits, "
    "'.', '_' and '-', no segment starting with '.' or '-'."
)


def place_finding(finding: Finding, requested: Origin | None) -> Finding:
    """Return a finding at its reference in ``extends``; unchanged if no preset refers to it."""
    if requested is None:
        return finding
    return finding._replace(origin=requested, key="profile.extends", profiles=(requested.profile,))


def place_error(error: NpuprofError, requested: Origin | None) -> NpuprofError:
    """Return an error whose findings are at their reference in ``extends``."""
    return NpuprofError([place_finding(finding, requested) for finding in error.findings])


def build_bad_name_finding(
    name: str, requested: Origin | None = None, known: Iterable[str] = ()
) -> Finding:
    """Return the finding for an invalid preset name; the hint lists similar ``known`` names."""
    plain = make_preset_name(name)
    names = [] if not plain else list(known)
    hint = f'write "{plain}"' if plain in names else did_you_mean(plain, names, LIST_ADVICE)
    if requested is not None and name.startswith("builtin:"):
        plain = strip_revision(name.removeprefix("builtin:"))
        hint = (
            "copy the shipped preset into this store and extend the copy: npuprof copy "
            f"{name.partition('@')[0]} {plain}"
        )
    return place_finding(_build_name_finding(name, hint), requested)


def build_file_revision_finding(path: str, revision: str) -> Finding:
    """Return the finding for a file outside the store, which has no revisions.

    The hint is git's command.
    """
    why = "A revision is one of the store's presets; this file is none of them."
    shown = path if path.startswith(("./", "../")) else f"./{path}"
    hint = (
        f"write {path} for the file as it is now, or git show {revision}:{shown} > old.toml, and "
        "./old.toml in its place"
    )
    return Finding("NP023", f"{path}@{revision}: a path takes no revision", why, hint)


def build_bad_new_name_finding(name: str) -> Finding:
    """Return the finding for an invalid new preset name, with the nearest valid name."""
    plain = make_preset_name(name)
    return _build_name_finding(name, f"write {plain}" if plain else "choose another name")


def _build_name_finding(name: str, hint: str) -> Finding:
    what = f"{name!r} cannot be the name of a preset" if name else "the name of a preset is missing"
    return Finding("NP004", what, _NAME_RULE, hint)


def make_preset_name(text: str) -> str:
    """Return the nearest valid preset name for a text, such as a path.

    Empty if no valid character is left.
    """
    plain = re.sub(
        r"^(?:[.~]{0,2}/)*(?:profiles/)?", "", text.replace("\\", "/").removesuffix(".toml")
    )
    segments = [
        re.sub(r"[^A-Za-z0-9._-]+", "-", segment).strip("-").lstrip(".-")
        for segment in plain.split("/")
    ]
    return "/".join(filter(None, segments)).removesuffix(".toml")


def build_no_store_finding(in_python: bool) -> Finding:
    """Return the finding for a missing store in this folder and its parents."""
    return Finding(
        "NP010",
        "no store found",
        "npuprof looks for a folder 'profiles' here and in every folder above.",
        "go to a project that has one, make one with npuprof init, or name it with "
        f"{format_option('store', in_python=in_python)}; 'builtin:' is the store npuprof ships",
    )


def build_no_folder_finding(store: str, why: str, in_python: bool = False) -> Finding:
    """Return the finding for a store argument that is not a folder.

    It may be a source, or a URL to add.
    """
    hint = "name a folder with presets, or create one: npuprof init"
    if re.fullmatch(r"\w[\w-]*", store):
        hint = (
            f"name a folder with presets, write {store}: for the "
            "store of that source, or create one: npuprof init"
        )
    elif re.match(r"[a-z][a-z+]*://|[\w.-]+@[\w.-]+:", store):
        hint = (
            "add the repository as a source: npuprof source add NAME URL, then "
            f"{format_option('store', 'NAME:', in_python)}"
        )
    return Finding("NP010", f"the store {store!r} is not a folder", why, hint)


def build_project_folder_finding(requested: str, is_option: bool) -> Finding:
    """Return the finding for a store argument that is a project with a store."""
    import shlex

    inner = os.path.join(requested, "profiles").removeprefix("./")
    what = f"{requested!r} is not a store of presets: the store is in {inner}"
    quoted = shlex.quote(inner)
    hint = f"write {quoted} in its place" if is_option else f"set NPUPROF_STORE={quoted}"
    return Finding("NP010", what, "", hint)


def build_missing_finding(
    code: str, name: str, label: str, hint: str, requested: Origin | None
) -> Finding:
    """Return the finding for a missing profile; for a parent, at its reference."""
    if requested is None:
        return Finding(code, f"no preset {name!r} in {label}", "", hint)
    what = f"{requested.profile} extends {name!r}, which is not in {label}"
    why = "Without its parent a preset has no meaning."
    return Finding("NP101", what, why, hint, requested, "profile.extends", (requested.profile,))


def build_clash_finding(name: str, paths: tuple[str, str], requested: Origin | None) -> Finding:
    """Return the finding for a file outside the store with the name of a preset in it."""
    what = f"{name!r} names two presets: {paths[0]} and {paths[1]}"
    why = (
        "A preset outside the store is called by its path from the folder of npuprof.toml, and a "
        "name has to mean one file."
    )
    where = None if requested else Place(paths[1])
    return Finding("NP014", what, why, "rename one of the two files", requested, "", (name,), where)


def build_link_finding(
    source: str, name: str, requested: Origin | None, is_outside: bool
) -> Finding:
    """Return the finding for a preset file behind a link that is not followed.

    In a store, these are links out of it. For a preset outside the store (``is_outside``), it is
    any link. The finding is at the reference in ``extends``, or at the file if there is none.
    """
    if is_outside:
        what = f"{source} is a link, or lies below one"
        why = (
            "Of presets outside the store no link is followed: where it leads is the machine's own "
            "affair."
        )
        hint = "put the file itself there"
    else:
        what = f"{source} is a link that leads out of the store"
        why = "A store is shared as it is; files outside it would be missing elsewhere."
        hint = "copy the file into the store"
    where = None if requested else Place(source)
    return Finding("NP005", what, why, hint, requested, "", (name,), where)


def build_unreadable_finding(source: str, error: Exception) -> Finding:
    """Return the finding for an unreadable file or folder, with the reason."""
    reason = describe_os_error(error, source)
    hint = suggest_remedy(reason, "check the path and its permissions")
    if isinstance(error, IsADirectoryError):
        hint = "rename the folder"
    elif isinstance(error, UnfitFileError):
        hint = "put a file there"
    return Finding("NP003", f"cannot read {source}: {reason}", "", hint, where=Place(source))


def lacks_source(findings: Iterable[Finding]) -> bool:
    """Return whether a source that a preset needs is missing or incomplete on this machine."""
    return any(finding.code in UNAVAILABLE for finding in findings)


def advise_sync_of(finding: Finding, arguments: str) -> Finding:
    """Return a finding about a missing source with the sync command for its lock.

    ``arguments`` are ``--rev REV`` or ``--history``. Another command in the hint stays.
    """
    before, sync, rest = finding.hint.partition(SYNC)
    _, _, old_arguments = rest.partition(" ")
    if not sync or old_arguments.partition(" ")[0] not in _WHICH:
        return finding
    return finding._replace(hint=f"{before}{sync} {arguments}")
