"""``sweep``: run a command with every allowed combination of values.

The runs are local, or jobs of a scheduler.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from npuprof import renderers
from npuprof.commands.framework import arguments, flag, many, option
from npuprof.commands.framework.parameters import (
    DEVICES,
    FRESH,
    JOBS,
    MAX_RUNS,
    NO_CHECK,
    SETS,
    SPEC,
    TIMEOUT,
    TRUST,
    UNSETS,
    ContextVerb,
    PrintingVerb,
    formats,
)
from npuprof.commands.resolving import open_workspace
from npuprof.edit.conditions import Conditions
from npuprof.model import (
    Finding,
    NpuprofError,
    Step,
    build_error,
    build_usage_error,
    did_you_mean,
)
from npuprof.report import Answer
from npuprof.report.terminal import progress_line
from npuprof.resolve.config import Config
from npuprof.store import assignment_arguments
from npuprof.system import decode_safely
from npuprof.system.files import read_file_content
from npuprof.trials import result_tables
from npuprof.trials.engines import ENGINES, write_indexed_job, write_slurm_array
from npuprof.trials.journal import Journal
from npuprof.trials.metrics import list_missing_metrics
from npuprof.trials.outcomes import compile_pattern, require_command
from npuprof.trials.result_tables import describe_choices
from npuprof.trials.running import Runner, Setup, write_texts
from npuprof.trials.setup import build_fit, build_setup, warn_of_newer_files
from npuprof.trials.sweeping import (
    TIME,
    Axis,
    Combination,
    Goal,
    build_axes,
    combine_axes,
    find_best,
    find_result,
    import_pod_logs,
    import_results,
    list_configs,
    parse_goal,
    run_combinations,
)


class Sweep(PrintingVerb, ContextVerb):
    """Run a command with combinations of values.

    npuprof sweep NAME --vary hccl_timeout=600,1800 --vary graph_run_mode=0,1 -- python train.py

    Runs every combination that passes the checks. Results are stored in .npuprof/trials: run the
    same command again to resume. With --to slurm-array or k8s-indexed-job, npuprof prints a job
    script or manifest and runs nothing.
    """

    group = "runs"
    usage_hint = (
        "Put the command after --, with its options: npuprof "
        "sweep NAME --vary KEY=V1,V2 -- python train.py"
    )

    spec = SPEC
    command = arguments("CMD...", "Command to run, with its arguments, after --")
    vary = many(
        "--vary",
        metavar="KEY=V1,V2,...",
        text="Try these values of KEY; can be repeated",
        complete="values",
    )
    mixin = many(
        "--with", metavar="A,B,...", text="Try each of these presets as an overlay; can be repeated"
    )
    where = many(
        "--where",
        metavar="COND",
        text=(
            "Run only combinations whose resolved values "
            "meet COND; if repeated, all conditions apply"
        ),
        complete="condition",
    )
    metric = many(
        "--metric",
        metavar="NAME=REGEX",
        text=(
            "Read a number from the output with REGEX; NAME "
            "alone reads it from a JSON line; can be repeated"
        ),
    )
    best = option(
        "--best",
        metavar="METRIC",
        text="Print the preset that is best by METRIC, such as max:speed, min:loss or time",
    )
    to: str | None = None
    engines = many(
        "--to",
        "-t",
        metavar="TARGET",
        text=(
            "Render the file of {code} in CMD for TARGET, or print a slurm-array or "
            "k8s-indexed-job; can be repeated [default: session]"
        ),
        complete="nothing",
    )
    image = option(
        "--image", metavar="IMAGE", text="Use IMAGE for the containers of a k8s-indexed-job"
    )
    results = flag(
        "--results",
        text="Print the stored results, including those of jobs, without running anything",
    )
    logs = option(
        "--logs",
        metavar="FILE",
        text=(
            "Read results of a k8s-indexed-job from FILE, "
            "written by kubectl logs -l job-name=NAME --tail=-1"
        ),
    )
    jobs = JOBS
    devices = DEVICES
    timeout = TIMEOUT
    max_runs = MAX_RUNS
    fresh = FRESH
    format = formats("text", "csv", "json")
    set_ = SETS
    unset = UNSETS
    no_check = NO_CHECK
    trust = TRUST

    def run(self) -> Answer:
        """Return the result of each combination, the best one, or the scheduler's job.

        Exit 2 for missing results. Raises NpuprofError.
        """
        engine = self._split_targets()
        metrics = self._parse_metrics()
        setup = build_setup(self, metrics)
        axes = tuple(build_axes(self.vary, self.mixin))
        combinations = self._combine(setup, axes)
        configs = list_configs(combinations)
        if not configs:
            hint = "vary other values, or change --where"
            nothing = Finding(
                "NP954",
                "no combination is left to run",
                "--where or the checks exclude all combinations.",
                hint,
            )
            raise NpuprofError([nothing, *(combinations[0].errors if combinations else ())])
        identity = {
            "command": list(setup.command),
            "context": configs[0].context.describe(),
            "target": setup.target,
            "sweep": True,
            "metrics": dict(sorted(metrics.items())),
            "timeout": setup.timeout,
        }
        journal = Journal(identity, self.fresh)
        try:
            if engine and not self._tells():
                return self._write_engine(engine, configs, setup, journal)
            return self._answer(setup, journal, axes, combinations)
        finally:
            journal.close()

    def _tells(self) -> bool:
        """Return whether nothing is run or written.

        The arguments of a scheduler job can also query its results.
        """
        return self.results or self.logs is not None

    # -- arguments --------------------------------------------------------------------------------

    def _split_targets(self) -> str:
        """Return the scheduler, empty for none, and set ``to``, the target of rendered files.

        Raises NpuprofError.
        """
        known = (*renderers.load_target_index(), *ENGINES)
        for name in self.engines:
            if name not in known:
                hint = did_you_mean(name, known, f"known are {', '.join(known)}")
                raise build_usage_error(f"unknown target {name!r}", hint)
        engines = [name for name in self.engines if name in ENGINES]
        targets = [name for name in self.engines if name not in ENGINES]
        if len(engines) > 1 or len(targets) > 1:
            what = (
                f"--to {' and --to '.join(engines if len(engines) > 1 else targets)} "
                "do not go together"
            )
            raise build_error("NP914", what, "", "omit one of them")
        if engines == ["k8s-indexed-job"] and self.image is None and not self._tells():
            hint = "say --image registry/train:1.0"
            raise build_error(
                "NP914", "a k8s-indexed-job needs the image of its containers", "", hint
            )
        self.to = targets[0] if targets else None
        return engines[0] if engines else ""

    def _parse_metrics(self) -> dict[str, str]:
        metrics = {}
        for text in self.metric:
            name, equals, pattern = text.partition("=")
            is_pattern = not equals and any(
                sign in "()[]\\*+?|" for sign in name
            )  # as for bisect, whose only metric needs no name
            if not name.strip() or name == TIME or (equals and not pattern) or is_pattern:
                hint = "write it as in 'loss=loss: ([0-9.]+)'; time is known of every run"
                raise build_usage_error(f"--metric {text!r} names no metric", hint)
            metrics[name] = compile_pattern(pattern) if equals else ""
        return metrics

    def _combine(self, setup: Setup, axes: Sequence[Axis]) -> list[Combination]:
        workspace = open_workspace(self.store, self.build_context(self.to or "env"))
        workspace.profile(self.spec)  # report its own faults first
        fixed = assignment_arguments.parse_assignments(self.set_, self.unset)

        def resolve(mixins: Sequence[str], steps: Sequence[Step]) -> Config:
            return workspace.resolve_spec(self.spec, mixins, [*fixed, *steps])

        where = Conditions(self.where, workspace.declared_axes) if self.where else None
        return combine_axes(
            axes,
            resolve,
            build_fit(setup, self.trust, not self.no_check),
            where.accept if where else lambda config: True,
        )

    # -- answers ----------------------------------------------------------------------------------

    def _answer(
        self,
        setup: Setup,
        journal: Journal,
        axes: tuple[Axis, ...],
        combinations: Sequence[Combination],
    ) -> Answer:
        names = tuple(setup.metrics)
        goal = parse_goal(self.best, names) if self.best else None
        # jobs of a scheduler leave their results in files
        import_results(journal, setup.metrics, setup.timeout)
        notes = self._import_pod_logs(setup, journal, combinations)
        is_complete = True
        if not self._tells():
            notes, is_complete = self._run_all(setup, journal, combinations)
        rows = tuple(
            (combination, find_result(combination, journal)) for combination in combinations
        )
        notes = (
            *notes,
            *list_missing_metrics(
                setup.metrics, [result.metrics for _, result in rows if result is not None]
            ),
        )
        sweep = result_tables.Sweep(self.spec, axes, rows, names)
        if goal is not None:
            return _answer_best(sweep, goal, notes)
        return Answer(
            {
                "text": lambda: result_tables.build_table(sweep),
                "csv": lambda: result_tables.format_csv(sweep),
                "json": lambda: result_tables.build_fields(sweep, self.command),
            },
            notes,
            0 if is_complete else 2,
        )

    def _import_pod_logs(
        self, setup: Setup, journal: Journal, combinations: Sequence[Combination]
    ) -> tuple[str, ...]:
        if self.logs is None:
            return ()
        text = decode_safely(
            read_file_content(self.logs, "write it with kubectl logs -l job-name=NAME --tail=-1")
        )
        imported = import_pod_logs(
            journal,
            setup.metrics,
            text,
            [config.digest for config in list_configs(combinations)],
            setup.timeout,
        )
        return () if imported else (f"{self.logs} contains no new results of this sweep",)

    def _run_all(
        self, setup: Setup, journal: Journal, combinations: Sequence[Combination]
    ) -> tuple[tuple[str, ...], bool]:
        newer = warn_of_newer_files(setup.command, journal)
        runner = Runner(setup, journal, require_command)
        with progress_line() as tell:
            is_complete = run_combinations(combinations, runner, tell)
        notes = [*newer, *sorted(runner.notes)]
        if not is_complete:
            notes.append("not all combinations were run: say a greater --max-runs to go on")
        return tuple(notes), is_complete

    def _write_engine(
        self, engine: str, configs: Sequence[Config], setup: Setup, journal: Journal
    ) -> Answer:
        known = [config for config in configs if config.digest not in journal.results]
        if not known:
            what = "all combinations have been run"
            raise build_error("NP914", what, "", "use --results to see the results, or --fresh")
        if engine == "k8s-indexed-job":
            assert self.image is not None
            text, notes = write_indexed_job(
                self.spec, known, setup, self.image, setup.jobs if self.jobs else len(known)
            )
            return Answer(text, early_notes=tuple(sorted(notes)))
        folder = os.path.abspath(journal.folder)
        array = write_slurm_array(self.spec, known, setup, folder, self.jobs or 0)
        files = {os.path.relpath(path, folder): text for path, text in array.files.items()}
        write_texts(journal.tree, files)
        journal.tree.make_folder("results")
        return Answer(array.text, early_notes=tuple(sorted(array.notes)))


def _answer_best(sweep: result_tables.Sweep, goal: Goal, notes: tuple[str, ...]) -> Answer:
    best = find_best(sweep.rows, goal)
    if best is None:
        why = "Only runs that end with 0 count, and values that are numbers."
        raise build_error(
            "NP954",
            f"no run has printed {goal.name}",
            why,
            "look at the pattern, and at the logs of the runs",
        )
    extreme = "greatest" if goal.greatest else "least"
    choices = describe_choices(sweep, best.combination)
    return Answer(
        renderers.load_target("toml").render(best.config, inline=True).text,
        early_notes=(*notes, f"{choices}: {extreme} {goal.name} {best.value:g}"),
    )


VERB = Sweep
