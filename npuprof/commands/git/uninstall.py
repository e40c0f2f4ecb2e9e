"""``git uninstall``: remove what ``git install`` wrote."""

from __future__ import annotations

from npuprof.commands.framework import flag
from npuprof.commands.framework.parameters import EVERYWHERE, StoreVerb
from npuprof.commands.git.install import edit_attributes, list_below
from npuprof.hosting.git_drivers import (
    NOTE,
    USE,
    find_attributes,
    list_diff_settings,
    list_settings,
    name_scope,
    open_git,
    open_server_git,
    read_setting,
    write_setting,
)
from npuprof.hosting.git_hooks import (
    HOOKS,
    SERVER_HOOK,
    find_hook,
    reject_foreign_folder,
    reject_outside_hook,
    remove_hook,
)
from npuprof.report import Answer
from npuprof.store.gitstore.objects import Git


class Uninstall(StoreVerb):
    """Remove the drivers, attributes and hooks."""

    group = "team"

    server = flag("--server", text="Remove the hook of a bare repository")
    everywhere = EVERYWHERE

    def run(self) -> Answer:
        """Return the list of what was removed: settings, the attributes file and hooks.

        Only what ``git install`` wrote is removed. Raises NpuprofError.
        """
        if self.server:
            return _uninstall_server()
        git = open_git(self.everywhere)
        # checked before the first change: the configuration may belong to another repository
        if not self.everywhere:
            reject_foreign_folder(git)
        path, own_lines = find_attributes(git, self.everywhere, self.store)
        removed = _unset_settings(git, name_scope(self.everywhere))
        if edit_attributes(
            path,
            lambda text: _drop_attributes(text, own_lines),
            "" if self.everywhere else git.folder,
        ):
            removed.append(path)
        # a hook belongs to one repository, so --global has installed none
        if not self.everywhere:
            removed += _remove_hooks(git)
        if removed:
            return Answer(None, (list_below("removed", removed),))
        scope = "all repositories of this user" if self.everywhere else "this repository alone"
        return Answer(None, (f"nothing was set up for {scope}",))


def _uninstall_server() -> Answer:
    """Return whether npuprof's hook of the bare repository was removed. Raises NpuprofError."""
    git = open_server_git()
    hook = find_hook(git, SERVER_HOOK)
    reject_outside_hook(git, hook)
    if remove_hook(hook, SERVER_HOOK):
        return Answer(None, (list_below("removed", [hook]),))
    return Answer(None, ("nothing was set up here",))


def _unset_settings(git: Git, scope: str) -> list[str]:
    """Return the names of the git settings that were removed, also those of ``--diff``."""
    removed = []
    for name in (*list_settings(), *list_diff_settings()):
        if read_setting(git, scope, name) is not None:
            write_setting(git, scope, name, None)
            removed.append(name)
    return removed


def _remove_hooks(git: Git) -> list[str]:
    """Return the paths of the hooks that contained npuprof's lines. Raises NpuprofError."""
    removed = []
    for name in HOOKS:
        hook = find_hook(git, name)
        reject_outside_hook(git, hook)
        if remove_hook(hook, name):
            removed.append(hook)
    return removed


def _drop_attributes(text: str, added_lines: list[str]) -> str:
    """Return an attributes file without npuprof's lines, also for other stores below its note."""
    remaining = ""
    is_below_note = False
    for line in text.splitlines(keepends=True):
        is_ours = line.strip() in (NOTE, *added_lines)
        if not is_ours and not (is_below_note and line.rstrip().endswith(f" {USE}")):
            remaining += line
        is_below_note = line.strip() == NOTE
    return remaining


VERB = Uninstall
