"""``inject``: write a preset into a script as a marked block, and refresh such blocks."""

from __future__ import annotations

import os

from npuprof.commands.framework import argument, flag, number, option, optional_argument
from npuprof.commands.framework.parameters import DRY_RUN, TRUST, ContextVerb
from npuprof.commands.resolving import report_refusal
from npuprof.model import Finding, build_usage_error
from npuprof.report import Answer
from npuprof.scripts.block_files import Writing
from npuprof.scripts.blocks import Injector
from npuprof.scripts.file_discovery import find_script_files
from npuprof.scripts.injection import InjectionRequest, check_blocks, inject_block, refresh_blocks


class Inject(ContextVerb):
    """Write a preset into a script as a block.

    Run it again to refresh the block. With --check, exits with 1 if a block is not up to date.
    """

    usage_hint = "npuprof inject train.py bert-training"
    group = "scripts"

    file = argument("FILE", "Script to edit; with --all, a script or a folder")
    spec = optional_argument("SPEC", "Preset to write; omit it with --all", "spec")
    target = option(
        "--to",
        "-t",
        metavar="TARGET",
        text="Render for TARGET [default: session in Python, env in shell scripts]",
        complete="nothing",
    )
    replace = flag("--replace", text="Replace the hand-written lines that set the same values")
    line = number(
        "--line",
        metavar="N",
        text=(
            "Insert a new block before line N [default: after the line that creates the config; "
            "at the top of shell scripts]"
        ),
    )
    everywhere = flag("--all", text="Refresh every block in FILE")
    check = flag("--check", text="Check whether the blocks are up to date without writing them")
    force = flag("--force", text="Overwrite blocks that were edited by hand")
    dry_run = DRY_RUN
    trust = TRUST

    @report_refusal(ContextVerb.refusal, "")
    def run(self) -> Answer:
        """Write or refresh blocks.

        Exit 1 with ``check`` if one is outdated, else 0. Raises NpuprofError.
        """
        if self.file.endswith(".toml"):
            hint = "name the script: npuprof inject train.py NAME"
            raise build_usage_error(f"{self.file} is a preset, and no script", hint)
        # a check exports nothing, and so needs no trust
        injector = Injector(self.store, trusting=self.check or self.trust, checking=True)
        if self.replace:
            self._refuse_beside_replace()
        if self.spec is None or self.everywhere:
            self._require_clear_arguments()
            problems: list[Finding] = []
            files = list(find_script_files([self.file], problems))
            if self.check:
                answer = check_blocks(files, injector)
            else:
                below = self.file if os.path.isdir(self.file) else ""
                answer = refresh_blocks(files, injector, Writing(self.force, self.dry_run), below)
            return answer._replace(problems=(*problems, *answer.problems))
        if self.check:
            return check_blocks([self.file], injector, self.spec)
        request = InjectionRequest(
            self.file,
            self.spec,
            self.target,
            self.line,
            self.cann,
            self.product,
            ",".join(self.frameworks),
            ",".join(self.axes),
        )
        return inject_block(request, injector, Writing(self.force, self.dry_run), self.replace)

    def _refuse_beside_replace(self) -> None:
        others = {
            "--all": self.everywhere,
            "--check": self.check,
            "--line": self.line,
            "--to": self.target,
        }
        flags = [name for name, value in others.items() if value]
        if flags or self.spec is None:
            what = (
                f"--replace needs a preset, and goes without {', '.join(flags or others)}: the "
                "lines say where the block goes"
            )
            raise build_usage_error(what, f"npuprof inject {self.file} SPEC --replace")

    def _require_clear_arguments(self) -> None:
        if (self.spec is None) != (self.everywhere or self.check):
            raise build_usage_error(
                f"which preset is to go into {self.file}?",
                "name one behind the file, or refresh the blocks "
                "that are there with --all and without a preset",
            )


VERB = Inject
