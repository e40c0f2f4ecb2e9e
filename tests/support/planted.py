"""Repositories with traps for git."""

from __future__ import annotations

import shutil
from pathlib import Path

from support.repositories import Repo


def configure_everything(repo: Repo, program: Path) -> None:
    """Let the repository name a program wherever git would take one."""
    hooks = repo.folder / "hooks"
    hooks.mkdir()
    for name in (
        "post-index-change",
        "pre-commit",
        "fsmonitor-watchman",
        "reference-transaction",
        "post-checkout",
        "pre-auto-gc",
    ):
        shutil.copy(program, hooks / name)
    for name in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "core.askPass",
        "core.editor",
        "core.gitProxy",
        "core.alternateRefsCommand",
        "pager.log",
        "pager.status",
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "merge.x.driver",
        "gpg.program",
        "gpg.ssh.program",
        "credential.helper",
        "sequence.editor",
        "interactive.diffFilter",
        "uploadpack.packObjectsHook",
        "remote.origin.uploadpack",
        "remote.origin.vcs",
        "alias.log",
        "alias.cat-file",
        "trace2.eventTarget",
    ):
        repo.git("config", name, f"!{program}" if name.startswith("alias.") else str(program))
    repo.git("config", "core.hooksPath", "hooks")
    repo.git("config", "log.showSignature", "true")
    repo.git("config", "filter.x.required", "true")
    (repo.folder / ".git/info/attributes").write_text("* diff=x filter=x merge=x\n")


def plant_bare_repository(folder: Path, program: Path) -> None:
    """Turn a folder into a bare repository that lacks an object.

    It has a remote, a program, to fetch the object from.
    """
    source = folder.parent / "planted"
    made = Repo(source)
    made.commit({"x": "[options]\nhccl_timeout = 1\n"})
    for name in ("HEAD", "refs", "objects"):
        target = shutil.copytree if (source / ".git" / name).is_dir() else shutil.copy
        target(source / ".git" / name, folder / name)
    tree = made.git("rev-parse", "HEAD^{tree}")
    (folder / "objects" / tree[:2] / tree[2:]).unlink()
    (folder / "config").write_text(
        "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tworktree = .\n"
        f"\tfsmonitor = {program}\n\tpager = {program}\n"
        f'[remote "origin"]\n\turl = ext::{program} %S\n\tpromisor = true\n'
        "\tpartialclonefilter = blob:none\n"
        '[extensions]\n\tpartialclone = origin\n[protocol "ext"]\n\tallow = always\n'
    )
    shutil.rmtree(source)
