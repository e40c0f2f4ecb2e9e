"""``git install``: the drivers in git's configuration, and the attributes that call them."""

from __future__ import annotations

import os

from npuprof.commands.git.configuration import (
    NOTE,
    USE,
    find_attributes,
    list_settings,
    name_scope,
    open_git,
    read_setting,
)  # fmt: skip
from npuprof.commands.parameters import EVERYWHERE, STORE
from npuprof.commands.verb import Verb
from npuprof.report import output, writing
from npuprof.report.answer import Answer
from npuprof.report.locks import lock_folders
from npuprof.report.writing import Wanted


class Install(Verb):
    """Set up the drivers: diff, textconv, three-way merge.

    The attributes that call them go to .gitattributes; with --global to the user's own.
    """

    group = "git"

    everywhere: bool = EVERYWHERE
    store: str | None = STORE

    def run(self) -> Answer:
        """Write the configuration and the attributes; what is there already stays. Raises NpuprofError."""
        git, scope = open_git(self.everywhere), name_scope(self.everywhere)
        path, pattern = find_attributes(git, self.everywhere, self.store)
        done = []
        for name, value in list_settings().items():
            if read_setting(git, scope, name) != value:
                git.run_command("config", scope, name, value)
                done.append(name)
        if _add_attributes(path, f"{pattern} {USE}", "" if self.everywhere else git.folder):
            done.append(path)
        place = "all repositories of this user" if self.everywhere else git.folder
        remarks = [f"{'set up for' if done else 'already set up for'} {place}" + "".join(f"\n  {name}" for name in done)]
        if not self.everywhere and path in done:
            remarks.append("commit .gitattributes; everybody who runs 'npuprof git install' then has the drivers")
        return Answer(None, tuple(remarks))


def _add_attributes(path: str, line: str, below: str) -> bool:
    """Add a line to a file of attributes, and return whether it was not there yet. Raises NpuprofError."""
    output.make_folder(os.path.dirname(path))
    with lock_folders([os.path.dirname(os.path.realpath(path))]):
        known = writing.read_known_file(path)
        old = (known or b"").decode(errors="surrogateescape")
        if line in old.replace("\r", "").split("\n"):
            return False
        end = "\r\n" if "\r\n" in old else "\n"
        gap = "" if not old or old.endswith("\n") else end
        text = f"{old}{gap}{NOTE}{end}{line}{end}"
        writing.write_wanted_files([Wanted(path, text.encode(errors="surrogateescape"), known, below)])
    return True


VERB = Install
