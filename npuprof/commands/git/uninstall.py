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


class Uninstall(StoreVerb):
    """Remove the drivers, attributes and hooks."""

    group = "team"

    server = flag("--server", text="Remove the hook of a bare repository")
    everywhere = EVERYWHERE

    def run(self) -> Answer:
        """Remove what ``git install`` wrote, and nothing else. Raises NpuprofError."""
        if self.server:
            git = open_server_git()
            hook = find_hook(git, SERVER_HOOK)
            reject_outside_hook(git, hook)
            return Answer(
                None,
                (
                    f"removed\n  {hook}"
                    if remove_hook(hook, SERVER_HOOK)
                    else "nothing was set up here",
                ),
            )
        git = open_git(self.everywhere)
        scope = name_scope(self.everywhere)
        if not self.everywhere:
            reject_foreign_folder(git)
        path, added_lines = find_attributes(git, self.everywhere, self.store)
        done = []
        for name in (*list_settings(), *list_diff_settings()):
            if read_setting(git, scope, name) is not None:
                write_setting(git, scope, name, None)
                done.append(name)
        if edit_attributes(
            path,
            lambda old: _drop_attributes(old, added_lines),
            "" if self.everywhere else git.folder,
        ):
            done.append(path)
        for name in () if self.everywhere else HOOKS:
            hook = find_hook(git, name)
            reject_outside_hook(git, hook)
            if remove_hook(hook, name):
                done.append(hook)
        where = (
            "for all repositories of this user" if self.everywhere else "for this repository alone"
        )
        return Answer(
            None, (list_below("removed" if done else f"nothing was set up {where}", done),)
        )


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
