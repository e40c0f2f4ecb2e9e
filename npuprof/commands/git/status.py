"""``git status``: show which drivers and hooks are installed."""

from __future__ import annotations

from npuprof.commands.framework import Verb
from npuprof.commands.framework.parameters import FORMAT, OUTPUT, STORE
from npuprof.hosting.git_drivers import (
    list_diff_settings,
    list_settings,
    name_sample_preset,
    open_git,
    read_setting,
)
from npuprof.hosting.git_hooks import HOOKS, find_hook, judge_hook
from npuprof.report import Answer
from npuprof.report.tables import Table
from npuprof.store.gitstore.objects import Git
from npuprof.system import decode_safely


class Status(Verb):
    """Show which drivers and hooks are installed.

    Exits with 1 if anything is missing.
    """

    group = "team"

    store = STORE
    format = FORMAT
    output = OUTPUT

    def run(self) -> Answer:
        """Return the configured drivers, and whether the presets of the store use them.

        Raises NpuprofError.
        """
        git = open_git(False)
        rows = {
            name: _judge_setting(git, name, value) or "missing"
            for name, value in list_settings().items()
        }
        extra = {
            name: _judge_setting(git, name, value) for name, value in list_diff_settings().items()
        }
        # without any of them, --diff was not used
        absent = "missing" if any(extra.values()) else "not asked for (--diff)"
        rows |= {name: setting or absent for name, setting in extra.items()}
        sample = name_sample_preset(git, self.store)
        attributes = decode_safely(
            git.run_command("check-attr", "-z", "diff", "merge", "--", sample)
        ).split("\0")
        uses = dict(zip(attributes[1::3], attributes[2::3], strict=False))
        rows |= {
            f"attribute {name}": "set" if uses.get(name) == "npuprof" else "missing"
            for name in ("diff", "merge")
        }
        hooks = {name: judge_hook(find_hook(git, name), name) for name in HOOKS}
        has_hooks = any(state not in ("missing", "somebody else's") for state in hooks.values())
        rows |= {
            f"hook {name}": state if state == "set" or has_hooks else "not asked for (--hook)"
            for name, state in hooks.items()
        }
        is_complete = not {"missing", "not executable", "somebody else's"} & {*rows.values()}
        note = (
            "complete"
            if is_complete
            else "not complete; npuprof git install adds the missing parts"
        )
        return Answer(
            {
                "text": lambda: Table(list(rows.items())),
                "json": lambda: {
                    "schema": "npuprof.git-status/1",
                    "complete": is_complete,
                    "parts": rows,
                },
            },
            (note,) if self.format == "text" else (),
            int(not is_complete),
        )


def _judge_setting(git: Git, name: str, value: str) -> str:
    """Return where a setting is configured, and whether by this npuprof; empty if it is not set."""
    here = read_setting(git, "--local", name)
    user = read_setting(git, "--global", name)
    # git prefers the setting of the repository
    effective = here if here is not None else user
    if effective is None:
        return ""
    where = "this repository" if here is not None else "this user"
    return where if effective == value else f"{where}, by another npuprof"


VERB = Status
