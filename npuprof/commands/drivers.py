"""What git calls for a preset: textconv, the diff driver and the merge driver. None of them fails a git command."""

from __future__ import annotations

import os
import re
import sys
import tomllib

from npuprof import catalog, checks, edit
from npuprof.document import Document, keys, parse_document
from npuprof.document.profile import Profile
from npuprof.edit.tree import MISSING, is_same_document
from npuprof.model import Finding, NpuprofError, Path
from npuprof.report import output
from npuprof.resolve import Resolver
from npuprof.store import Folder, is_profile_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuprof.edit.mergetext import Merged
    from npuprof.model import Origin
    from npuprof.resolve.config import Config

_FALLBACK = (NpuprofError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError, LookupError, TypeError, AttributeError)


def textconv(path: str) -> int:
    """Print the normal form of a preset's file, or the file as it is where it cannot be read."""
    raw = output.read_file_content(path)
    try:
        said = _normal(path, raw)
    except _FALLBACK:
        said = raw
    _write(said)
    return 0


def _normal(path: str, raw: bytes) -> bytes:
    """Return the normal form of a file; of one with conflicts, that of both sides with the conflicts marked."""
    from npuprof.edit.mergetext import format_conflicts, split_conflicts
    from npuprof.edit.normal import format_normal_form

    pair = split_conflicts(raw.decode())
    if pair is None:
        return format_normal_form(parse_document(path, path, raw).data).encode()
    ours, theirs = (format_normal_form(parse_document(path, path, side).data) for side in pair)
    return format_conflicts(ours, theirs).encode()


def diff_driver(words: Sequence[str]) -> int:
    """Print what differs between two versions of a file; git hands over its names as it does to any diff command."""
    if len(words) < 7:
        output.write_answer(f"* Unmerged path {words[0]}\n" if words else "")
        return 0
    path, old, _, _, new = words[:5]
    before, after = output.read_file_content(old), output.read_file_content(new)
    named = words[7] if len(words) > 7 else path
    head = f"diff --npuprof a/{path} b/{named}\n"
    try:
        said = _changes(path, before if old != os.devnull else None, named, after if new != os.devnull else None)
    except _FALLBACK:
        said = ""
    body = said.encode() or _unified(f"a/{path}", before, f"b/{named}", after)
    _write(head.encode() + body)
    return 0


def _changes(path: str, before: bytes | None, named: str, after: bytes | None) -> str:
    """Return the changes between two files as they are written, or nothing where only their text differs."""
    from npuprof.compare import changes
    from npuprof.compare.plain import format_change_lines

    old: Document | None = None if before is None else parse_document(path, path, before)
    new: Document | None = None if after is None else parse_document(named, named, after)
    found = [line for change in changes.compare_documents(old, new) for line in format_change_lines(change, "  ")]
    said = "new preset" if old is None else "removed" if new is None else ""
    return "".join(f"{line}\n" for line in ([f"  {said}"] if said else []) + found)


def _unified(old: str, before: bytes, new: str, after: bytes) -> bytes:
    from difflib import diff_bytes, unified_diff

    def rows(raw: bytes) -> list[bytes]:
        return raw.splitlines(keepends=True) if b"\r" not in raw else [row for row in raw.replace(b"\n", b"\n\0").split(b"\0") if row]

    end = b"\n\\ No newline at end of file\n"
    found = diff_bytes(unified_diff, rows(before), rows(after), old.encode(), new.encode())
    return b"".join(line if line.endswith(b"\n") else line + end for line in found)


def merge_driver(base: str, ours: str, theirs: str, path: str, size: int) -> int:
    """Merge a preset; the result replaces ``ours``. Return 1 where conflicts are left in it."""
    try:
        texts = [_base(path, output.read_file_content(base)), *(_text(path, output.read_file_content(side)) for side in (ours, theirs))]
        result = _merged(texts, (base, ours, theirs), path, size)
    except Exception as error:  # whatever it is, git still gets a merge
        reason = error.findings[0].message if isinstance(error, NpuprofError) else str(error) or type(error).__name__
        output.write_to_stderr(f"npuprof: {path} is merged as text: {reason}")
        code, text = _merge_file(ours, base, theirs, size)
        if text is not None:
            output.write_files_atomically({ours: text})
        return 1 if code else 0
    bom = b"\xef\xbb\xbf" if output.read_file_content(ours).startswith(b"\xef\xbb\xbf") else b""
    output.write_files_atomically({ours: bom + result.text.encode()})
    for clash in result.merge.clashes:
        sides = " ".join(
            f"{word} {'gone' if value is MISSING else keys.format_short_value(value)}{comma}"
            for word, value, comma in (("here", clash.ours, ","), ("there", clash.theirs, ""))
        )
        output.write_to_stderr(f"npuprof: {path}: conflict in {keys.format_key_path('', clash.path).lstrip('.')}: {sides}")
    return 1 if result.merge.clashes else 0


def _base(path: str, raw: bytes) -> str:
    """Return the text of the base; of one that git merged itself, and left conflicts in, what its sides agree on."""
    from npuprof.edit.mergetext import keep_agreed_values, split_conflicts

    pair = split_conflicts(raw.decode())
    return keep_agreed_values(*(_text(path, side.encode()) for side in pair)) if pair else _text(path, raw)


def _text(path: str, raw: bytes) -> str:
    """Return the text of one side, which has to be TOML; an empty one stands for a file that was not there."""
    return parse_document(path, path, raw).text


def _merged(texts: Sequence[str], files: Sequence[str], path: str, size: int) -> Merged:
    from npuprof.edit.mergetext import merge_texts

    base, ours, theirs = texts
    result = merge_texts(base, ours, theirs, size=size)
    forced = _unfit(result, texts, path)
    if forced:
        return merge_texts(base, ours, theirs, forced, size)
    if not result.merge.clashes:
        code, raw = _merge_file(files[1], files[0], files[2], size)
        text = None if code or raw is None else _text_of(path, raw)
        if text is not None and is_same_document(tomllib.loads(text), result.data):
            return result._replace(text=text)  # as good, and it keeps every comment and the order of both sides
    return result


def _text_of(path: str, raw: bytes) -> str | None:
    try:
        return _text(path, raw)
    except NpuprofError:
        return None


def _unfit(result: Merged, texts: Sequence[str], path: str) -> list[Path]:
    """Return the changes of theirs that bring errors neither side has alone, or an order nobody chose."""
    forced: list[Path] = []
    home = _store(path, result.ours)
    if home is None:
        return forced
    folder, name = home
    if result.merge.guessed and not _any_order(result, texts, folder, name):
        forced.append(("profile", "extends"))
    before = [_findings(folder, name, text) for text in texts[1:]]
    now, resolved = _findings(folder, name, result.ours)
    if resolved and not all(whole for _, whole in before):
        return forced  # what a side cannot be resolved for may hide errors that it has already
    known = {_mark(finding) for findings, _ in before for finding in findings}
    for finding in now:
        if finding.severity != "error" or _mark(finding) in known:
            continue
        rule = next((rule for rule in catalog.load_rules() if rule.code == finding.code), None)
        concerned = {*(rule.reads if rule else ()), finding.key, finding.key.partition(".")[0]}
        steps = [step.path for step in result.merge.steps]
        forced += [step for step in steps if _concerns(step, concerned)] or steps
        output.write_to_stderr(f"npuprof: {path}: together, both sides break {finding.code}: {finding.message}")
    return forced


def _concerns(path: Path, concerned: set[str]) -> bool:
    from npuprof.edit.merge import find_setting_key

    return any(find_setting_key(path[:end]) in concerned for end in range(2, len(path) + 1) if find_setting_key(path[:end]))


def _any_order(result: Merged, texts: Sequence[str], folder: Folder, name: str) -> bool:
    """Return whether parents that both sides added give the same preset whichever come first."""
    from npuprof.edit.merge import merge_ordered_lists

    below, mine, other = (tomllib.loads(text).get("profile", {}).get("extends", []) for text in texts)
    swapped, _ = merge_ordered_lists(below, other, mine)
    try:
        one = _config(folder, name, result.ours)
        two = _config(folder, name, edit.apply_changes(result.ours, [edit.PathChange(("profile", "extends"), swapped)]))
    except NpuprofError:
        return False
    return one.digest == two.digest


def _store(path: str, text: str) -> tuple[Folder, str] | None:
    """Return the store a file of the work tree belongs to, and the name of its preset.

    That is a folder ``profiles``, else ``$NPUPROF_STORE``, else the nearest folder above that holds what the
    preset extends.
    """
    parts = path.split("/")
    for depth in range(len(parts) - 1, 0, -1):
        name = "/".join(parts[depth:]).removesuffix(".toml")
        if parts[depth - 1] == "profiles" and is_profile_name(name):
            return Folder(os.path.join(*parts[:depth])), name
    given = os.environ.get("NPUPROF_STORE")
    roots = [given] if given else [os.path.join(".", *parts[:depth]) for depth in range(len(parts) - 1, -1, -1)]
    parents = tomllib.loads(text).get("profile", {}).get("extends", [])
    for root in roots:
        name = os.path.relpath(path, root).removesuffix(".toml")
        if is_profile_name(name) and all(os.path.isfile(os.path.join(root, f"{parent}.toml")) for parent in parents):
            return Folder(root), name
    return None


class _Overlay:
    """A store in which one preset has another text."""

    def __init__(self, folder: Folder, name: str, text: str) -> None:
        self.label = folder.label
        self._folder = folder
        self._name = name
        self._own = Profile(parse_document(name, f"{name}.toml", text), home=self)

    def names(self) -> list[str]:
        return sorted({self._name, *self._folder.names()})

    def profile(self, name: str, asked: Origin | None = None) -> Profile:
        return self._own if name == self._name else self._folder.profile(name, asked)


def _config(folder: Folder, name: str, text: str) -> Config:
    store = _Overlay(folder, name, text)

    def lookup(reference: str, referrer: Profile | None, index: int) -> Profile:
        if "@" in reference or ":" in reference:
            from npuprof.store.spec import Workspace

            workspace = Workspace()
            workspace.use_store(folder)
            return workspace.find_extended_profile(reference, referrer, index)
        return store.profile(reference, referrer.origin("profile", "extends", index) if referrer else None)

    return Resolver(lookup).resolve_profile(store.profile(name))


def _findings(folder: Folder, name: str, text: str) -> tuple[list[Finding], bool]:
    """Return what is wrong with a preset, and whether it could be resolved."""
    try:
        return checks.check_config(_config(folder, name, text)), True
    except NpuprofError as error:
        return list(error.findings), False


def _mark(finding: Finding) -> tuple[str, str, str]:
    """Return what makes a finding the same on both sides: numbers of overrides differ from side to side."""
    return finding.code, re.sub(r"\[\d+\]", "[]", finding.key), finding.message


def _merge_file(ours: str, base: str, theirs: str, size: int) -> tuple[int, bytes | None]:
    """Return git's own merge of three files, and how many conflicts are in it; None where it has no answer."""
    from npuprof.store.git import Git

    names = [word for label in ("ours", "base", "theirs") for word in ("-L", label)]
    files = [os.path.abspath(name) for name in (ours, base, theirs)]
    code, text, _ = Git(os.getcwd()).try_command("merge-file", "-p", f"--marker-size={size}", *names, *files)
    return code, None if code >= 128 else text


def _write(raw: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()
