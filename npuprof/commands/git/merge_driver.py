"""``git merge-driver``: presets merged by key and list element. It never fails a merge that git could make."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence

from npuprof import catalog, checks, edit
from npuprof.commands.verb import Verb, argument
from npuprof.document import keys, parse_document
from npuprof.document.profile import Profile
from npuprof.edit.merge import Clash, find_setting_key, merge_ordered_lists
from npuprof.edit.mergetext import Merged, keep_agreed_values, merge_texts, split_conflicts
from npuprof.edit.paths import MISSING, is_same_document
from npuprof.model import Finding, NpuprofError, Origin, Path
from npuprof.report import output, writing
from npuprof.report.answer import Answer
from npuprof.resolve import Resolver
from npuprof.resolve.config import Config
from npuprof.store import Folder, is_profile_name
from npuprof.store.git import Git
from npuprof.store.spec import Workspace

_BOM = b"\xef\xbb\xbf"


class MergeDriver(Verb):
    """Merge two versions of a preset's file into ``ours``."""

    group = "git"
    hidden = True
    takes_any_word = True

    base: str = argument("base", "The file both sides come from.")
    ours: str = argument("ours", "This side, where the result goes.")
    theirs: str = argument("theirs", "The other side.")
    path: str = argument("path", "What the file is called.")
    size: str = argument("size", "How long the marks of a conflict are.", default="7")

    def run(self) -> Answer:
        """Merge a preset; the result replaces ``ours``. Exit 1 where conflicts are left in it."""
        size, files = int(self.size), (self.base, self.ours, self.theirs)
        try:
            base, *sides = map(output.read_file_content, files)
            texts = [_read_base(self.path, base), *(_read_side(self.path, side) for side in sides)]
            result = _merge_sides(texts, files, self.path, size)
        except Exception as error:  # whatever it is, git still gets a merge
            reason = error.findings[0].message if isinstance(error, NpuprofError) else str(error) or type(error).__name__
            code, text = _merge_as_text(self.ours, self.base, self.theirs, size)
            if text is not None:
                writing.write_files_atomically({self.ours: text})
            return Answer(None, (f"{self.path} is merged as text: {reason}",), 1 if code else 0)
        bom = _BOM if output.read_file_content(self.ours).startswith(_BOM) else b""
        writing.write_files_atomically({self.ours: bom + result.text.encode()})
        remarks = tuple(f"{self.path}: {_describe_clash(clash)}" for clash in result.merge.clashes)
        return Answer(None, remarks, 1 if result.merge.clashes else 0)


def _describe_clash(clash: Clash) -> str:
    here, there = ("gone" if value is MISSING else keys.format_short_value(value) for value in (clash.ours, clash.theirs))
    return f"conflict in {keys.format_key_path('', clash.path).lstrip('.')}: here {here}, there {there}"


def _read_base(path: str, raw: bytes) -> str:
    """Return the text of the base; of one that git merged itself, and left conflicts in, what its sides agree on."""
    pair = split_conflicts(raw.decode())
    return keep_agreed_values(*(_read_side(path, side.encode()) for side in pair)) if pair else _read_side(path, raw)


def _read_side(path: str, raw: bytes) -> str:
    """Return the text of one side, which has to be TOML; an empty one stands for a file that was not there."""
    return parse_document(path, path, raw).text


def _merge_sides(texts: Sequence[str], files: Sequence[str], path: str, size: int) -> Merged:
    base, ours, theirs = texts
    result = merge_texts(base, ours, theirs, size=size)
    forced = _find_unfit(result, texts, path)
    if forced:
        return merge_texts(base, ours, theirs, forced, size)
    if not result.merge.clashes:
        code, raw = _merge_as_text(files[1], files[0], files[2], size)
        text = None if code or raw is None else _read_merged(path, raw)
        if text is not None and is_same_document(tomllib.loads(text), result.data):
            return result._replace(text=text)  # as good, and it keeps every comment and the order of both sides
    return result


def _read_merged(path: str, raw: bytes) -> str | None:
    try:
        return _read_side(path, raw)
    except NpuprofError:
        return None


def _find_unfit(result: Merged, texts: Sequence[str], path: str) -> list[Path]:
    """Return the changes of theirs that bring errors neither side has alone, or an order nobody chose."""
    forced: list[Path] = []
    home = _find_home(path, result.ours)
    if home is None:
        return forced
    folder, name = home
    if result.merge.guessed and not _fits_any_order(result, texts, folder, name):
        forced.append(("profile", "extends"))
    before = [_find_faults(folder, name, text) for text in texts[1:]]
    now, resolved = _find_faults(folder, name, result.ours)
    if resolved and not all(whole for _, whole in before):
        return forced  # what a side cannot be resolved for may hide errors that it has already
    known = {_identify_fault(finding) for findings, _ in before for finding in findings}
    for finding in now:
        if finding.severity != "error" or _identify_fault(finding) in known:
            continue
        rule = next((rule for rule in catalog.load_rules() if rule.code == finding.code), None)
        concerned = {*(rule.reads if rule else ()), finding.key, finding.key.partition(".")[0]}
        steps = [step.path for step in result.merge.steps]
        forced += [step for step in steps if _concerns_setting(step, concerned)] or steps
        output.tell_remark(f"{path}: together, both sides break {finding.code}: {finding.message}")
    return forced


def _concerns_setting(path: Path, concerned: set[str]) -> bool:
    return any(find_setting_key(path[:end]) in concerned for end in range(2, len(path) + 1) if find_setting_key(path[:end]))


def _fits_any_order(result: Merged, texts: Sequence[str], folder: Folder, name: str) -> bool:
    """Return whether parents that both sides added give the same preset whichever come first."""
    below, mine, other = (tomllib.loads(text).get("profile", {}).get("extends", []) for text in texts)
    swapped, _ = merge_ordered_lists(below, other, mine)
    try:
        one = _resolve_text(folder, name, result.ours)
        two = _resolve_text(folder, name, edit.apply_changes(result.ours, [edit.PathChange(("profile", "extends"), swapped)]))
    except NpuprofError:
        return False
    return one.digest == two.digest


def _find_home(path: str, text: str) -> tuple[Folder, str] | None:
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


def _resolve_text(folder: Folder, name: str, text: str) -> Config:
    store = _Overlay(folder, name, text)

    def lookup(reference: str, referrer: Profile | None, index: int) -> Profile:
        if "@" in reference or ":" in reference:
            workspace = Workspace()
            workspace.use_store(folder)
            return workspace.find_extended_profile(reference, referrer, index)
        return store.profile(reference, referrer.origin("profile", "extends", index) if referrer else None)

    return Resolver(lookup).resolve_profile(store.profile(name))


def _find_faults(folder: Folder, name: str, text: str) -> tuple[list[Finding], bool]:
    """Return what is wrong with a preset, and whether it could be resolved."""
    try:
        return checks.check_config(_resolve_text(folder, name, text)), True
    except NpuprofError as error:
        return list(error.findings), False


def _identify_fault(finding: Finding) -> tuple[str, str, str]:
    """Return what makes a finding the same on both sides: numbers of overrides differ from side to side."""
    return finding.code, re.sub(r"\[\d+\]", "[]", finding.key), finding.message


def _merge_as_text(ours: str, base: str, theirs: str, size: int) -> tuple[int, bytes | None]:
    """Return git's own merge of three files, and how many conflicts are in it; None where it has no answer."""
    names = [word for label in ("ours", "base", "theirs") for word in ("-L", label)]
    files = [os.path.abspath(name) for name in (ours, base, theirs)]
    code, text, _ = Git(os.getcwd()).try_command("merge-file", "-p", f"--marker-size={size}", *names, *files)
    return code, None if code >= 128 else text


VERB = MergeDriver
