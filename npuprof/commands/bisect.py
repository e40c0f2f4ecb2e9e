"""``bisect``: find which of the settings that differ between two presets make a run fail."""

from __future__ import annotations

from npuprof import renderers
from npuprof.commands.framework import argument, arguments, option, option_with_default
from npuprof.commands.framework.parameters import (
    DEVICES,
    FRESH,
    JOBS,
    MAX_RUNS,
    NO_CHECK,
    REPEAT,
    TIMEOUT,
    TRUST,
    PrintingVerb,
    ResolvingVerb,
    formats,
)
from npuprof.commands.resolving import open_workspace, report_refusal
from npuprof.model import build_error
from npuprof.report import Answer
from npuprof.report.terminal import progress_line
from npuprof.store import assignment_arguments
from npuprof.trials import answers
from npuprof.trials.bisecting import Bisection
from npuprof.trials.combinations import Combinations, Difference
from npuprof.trials.coupled_changes import tie_changes
from npuprof.trials.journal import Journal
from npuprof.trials.outcomes import Judgement, compile_pattern, parse_tolerance
from npuprof.trials.running import Runner, Setup
from npuprof.trials.search import BAD, UNKNOWN
from npuprof.trials.setup import build_fit, build_setup, warn_of_newer_files


class Bisect(PrintingVerb, ResolvingVerb):
    """Find the settings that make a run fail.

    npuprof bisect GOOD BAD -- python train.py

    Runs the command with combinations of the differing settings, in the environment of npuprof run.
    Only combinations that pass the checks are run. An exit code of 0 means good, 1 to 124 bad, and
    125 undecided. Codes 126 and 127 stop the bisect, and so do signals by default. In the command,
    {code} is the path of a file rendered for the run. Results are stored in .npuprof/trials: run
    the same command again to resume.
    """

    group = "runs"
    prose = True
    usage_hint = (
        "Put the command after --, with its options: npuprof bisect GOOD BAD -- python train.py"
    )

    good = argument("GOOD", "Preset that works", "spec")
    bad = argument("BAD", "Preset that does not work", "spec")
    command = arguments("CMD...", "Command to run, with its arguments, after --")
    to = option(
        "--to",
        "-t",
        metavar="TARGET",
        text="Render the file that {code} in CMD names for TARGET: {choices} [default: session]",
        choices=renderers.load_target_index,
        noun="target",
    )
    metric = option(
        "--metric",
        metavar="REGEX",
        text=(
            "Judge successful runs by the number that REGEX "
            "matches in the output [default: by exit code]"
        ),
    )
    tolerance = option_with_default(
        "--tolerance",
        metavar="T",
        text="Count a metric within T of BAD's value as bad: a percentage or a number",
        default="1%",
    )
    hang = option(
        "--hang",
        metavar="WHAT",
        text="Count runs that exceed --timeout as bad, or skip them [default: skip]",
        choices=("bad", "skip"),
    )
    signal = option(
        "--signal",
        metavar="WHAT",
        text="Count runs killed by a signal as {choices} [default: stop the bisect]",
        choices=("bad",),
    )
    repeat = REPEAT
    jobs = JOBS
    devices = DEVICES
    timeout = TIMEOUT
    max_runs = MAX_RUNS
    fresh = FRESH
    format = formats("text", "toml", "json")
    no_check = NO_CHECK
    trust = TRUST

    def run(self) -> Answer:
        """Return the cause.

        Exit 1 if a member of it is undecided, 2 if there is no cause. Raises NpuprofError.
        """
        parse_tolerance(self.tolerance, 1.0)  # checked before anything runs
        metrics = {self.metric: compile_pattern(self.metric)} if self.metric else {}
        setup = build_setup(self, metrics)
        workspace = open_workspace(self.store, self.build_context(self.to or "env"))
        changes = assignment_arguments.parse_assignments(self.set_, self.unset)
        ends = [
            workspace.resolve_spec(spec_, self.mixin, changes) for spec_ in (self.good, self.bad)
        ]
        # both ends must run: otherwise no combination of them can be judged
        for end in ends:
            with report_refusal("no command was started"):
                build_fit(setup, self.trust, not self.no_check)(end)
        difference = Difference(*ends)
        if not difference.changes:
            what = f"{ends[0].name} and {ends[1].name} have the same settings"
            raise build_error(
                "NP954", what, "", "name two presets that differ; npuprof diff shows how"
            )
        return self._bisect(difference, setup)

    def _bisect(self, difference: Difference, setup: Setup) -> Answer:
        judgement = Judgement(
            BAD if self.hang == "bad" else UNKNOWN,
            self.signal or "",
            self.repeat or 1,
            self.metric or "",
        )
        context = difference.before.context
        identity = {
            "command": list(setup.command),
            "context": context.describe(),
            "target": context.target,
            "metrics": sorted(setup.metrics),
            "timeout": setup.timeout,
        }
        combinations = Combinations(difference, "trial", build_fit(setup))
        units, drops = tie_changes(combinations)
        journal = Journal(identity, self.fresh)
        newer = warn_of_newer_files(setup.command, journal)
        runner = Runner(setup, journal, judgement.judge_run)
        bisection = Bisection(combinations, units, drops, runner, judgement)
        try:
            with progress_line() as tell:
                bisection.find(self.tolerance, tell)
        finally:
            journal.close()
        cause = bisection.cause
        return Answer(
            {
                "text": lambda: answers.format_answer_text(bisection),
                "toml": lambda: _format_smallest(bisection),
                "json": lambda: answers.build_answer_fields(bisection, self.command),
            },
            (*newer, *bisection.notes, *sorted(runner.notes)),
            2 if cause is None else int(bool(cause.undecided)),
        )


def _format_smallest(bisection: Bisection) -> str:
    """Return the good preset with the smallest bad change applied."""
    config = bisection.combinations.find_config(
        bisection.cause.units if bisection.cause else bisection.in_question
    )
    assert config is not None
    return renderers.load_target("toml").render(config, inline=True).text


VERB = Bisect
