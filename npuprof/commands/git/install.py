"""``git install``: install the merge driver, its attributes, and optional drivers and hooks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from npuprof.commands.framework import flag
from npuprof.commands.framework.parameters import EVERYWHERE, StoreVerb
from npuprof.hosting.git_drivers import (
    add_attributes,
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
    build_foreign_hook_finding,
    find_hook,
    judge_hook,
    reject_foreign_folder,
    reject_outside_hook,
    write_hook,
)
from npuprof.model import Finding, build_usage_error
from npuprof.report import Answer
from npuprof.store.gitstore.objects import Git
from npuprof.system import writing
from npuprof.system.files import make_folder
from npuprof.system.locks import lock_files
from npuprof.system.writing import PlannedWrite

_PATCHES = (
    "patches made with these diffs cannot be applied: git diff --no-textconv --no-ext-diff and "
    "git format-patch make ones that can"
)
_PLAIN = (
    "git diff is git's own again, and its patches apply; "
    "npuprof git install --diff lets it speak of settings"
)


class Install(StoreVerb):
    """Install git drivers for presets.

    Presets are then merged by key and list element. The attributes that call the drivers are
    written to .gitattributes, or with --global to your own attributes file. Without --diff, the
    output of git diff stays plain and its patches
    apply.
    """

    group = "team"

    diff = flag(
        "--diff",
        text=(
            "Show settings in git diff, log and show; patches then need --no-textconv --no-ext-diff"
        ),
    )
    hook = flag(
        "--hook", text="Check the store after each merge and rebase, and report new findings"
    )
    server = flag(
        "--server",
        text="Install only a hook that rejects pushes with errors in presets, in a bare repository",
    )
    everywhere = EVERYWHERE

    def run(self) -> Answer:
        """Write the configuration, attributes and hooks; existing ones stay.

        Exit 2 if a hook could not be written.

        Raises NpuprofError.
        """
        if self.server:
            return self._install_server()
        if self.hook and self.everywhere:
            what = "--hook and --global do not go together"
            why = "A hook belongs to one repository."
            raise build_usage_error(
                what, "run npuprof git install --hook in each repository that is to have it", why
            )
        git = open_git(self.everywhere)
        scope = name_scope(self.everywhere)
        if not self.everywhere:
            reject_foreign_folder(git)
        path, lines = find_attributes(git, self.everywhere, self.store)
        settings = {
            **list_settings(),
            **(list_diff_settings() if self.diff else dict.fromkeys(list_diff_settings())),
        }
        done: list[str] = []
        removed: list[str] = []
        for name, value in settings.items():
            if read_setting(git, scope, name) != value:
                write_setting(git, scope, name, value)
                (removed if value is None else done).append(name)
        make_folder(os.path.dirname(path))
        if edit_attributes(
            path, lambda old: add_attributes(old, lines), "" if self.everywhere else git.folder
        ):
            done.append(path)
        problems = _write_hooks(git, done) if self.hook else []
        target = "all repositories of this user" if self.everywhere else git.folder
        state = "set up" if done or removed else "already set up"
        notes = [list_below(f"{state} for {target}", done)]
        if removed:
            notes += [list_below("removed", removed), _PLAIN]
        elif self.diff:
            notes.append(_PATCHES)
        if not self.everywhere and path in done:
            notes.append(
                "commit .gitattributes; everybody who runs "
                "'npuprof git install' then has the drivers"
            )
        return Answer(None, tuple(notes), 2 if problems else 0, problems=problems)

    def _install_server(self) -> Answer:
        """Write the hook of a server. Raises NpuprofError."""
        if self.diff or self.hook or self.everywhere or self.store:
            what = "--server goes with no other option"
            why = "A server merges nothing and shows no differences."
            hint = (
                "for a store with another name, change the hook: npuprof git receive --store NAME"
            )
            raise build_usage_error(what, hint, why)
        git = open_server_git()
        done: list[str] = []
        problems = _write_hooks(git, done, [SERVER_HOOK])
        if problems:
            return Answer(None, code=2, problems=problems)
        return Answer(
            None,
            (list_below(f"{'set up for' if done else 'already set up for'} {git.folder}", done),),
        )


def _write_hooks(git: Git, done: list[str], names: Sequence[str] = HOOKS) -> list[Finding]:
    """Write the missing hooks and list them; return findings for those that cannot be written."""
    problems = []
    for name in names:
        path = find_hook(git, name)
        reject_outside_hook(git, path)
        state = judge_hook(path, name)
        if state == "somebody else's":
            problems.append(build_foreign_hook_finding(path, name))
        elif state != "set":
            write_hook(path, name)
            done.append(path)
    return problems


def list_below(title: str, names: Iterable[str]) -> str:
    """Return a title, and each name on a line below it."""
    return "\n  ".join([title, *names])


def edit_attributes(path: str, change: Callable[[str], str], below: str) -> bool:
    """Change the text of an attributes file, or delete it if nothing is left.

    Return whether it differs. Raises NpuprofError.
    """
    with lock_files(path):
        known = writing.read_known_file(path)
        old = (known or b"").decode(errors="surrogateescape")
        text = change(old)
        if text == old:
            return False
        writing.write_planned_files(
            [PlannedWrite(path, text.encode(errors="surrogateescape") or None, known, below)]
        )
    return True


VERB = Install
