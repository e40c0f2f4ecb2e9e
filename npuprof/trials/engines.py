"""Sweeps for schedulers: a Slurm array script, or a Kubernetes Indexed Job manifest.

Each task is one combination.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Container, Sequence

from npuprof.model import Record, build_error
from npuprof.renderers import collect_sidecars
from npuprof.renderers.environment import collect_env_variables
from npuprof.renderers.environment_files import (
    LARGEST_MAP,
    MOUNT,
    SLURM_FACTS,
    build_map_name,
    format_clear_and_export_lines,
    format_map_rows,
    format_slurm_questions,
    quote_yaml_string,
)
from npuprof.resolve.config import Config
from npuprof.trials.process_groups import GRACE
from npuprof.trials.running import Setup

ENGINES = ("slurm-array", "k8s-indexed-job")

#: Slurm's default maximum array size: MaxArraySize is 1001, and the first index 0.
_LARGEST_ARRAY = 1001
_PARTS = (
    "Where MaxArraySize (scontrol show config) is too small, submit parts: sbatch --array=0-999 "
    "THIS 0; sbatch --array=0-999 THIS 1000; ..."
)

_SLURM = """\
#!/bin/bash
#SBATCH --job-name={job}
#SBATCH --array=0-{last}{limit}
#SBATCH --output=/dev/null
# {what}: {count} combinations, one a task; npuprof sweep --results, with the same words, \
tells what came of them.
# Resources are named where it is submitted: sbatch -N 1 --ntasks-per-node=8 THIS
{parts}out={out}
cd {here} || exit 2
asks=:
task=$((SLURM_ARRAY_TASK_ID + ${{1:-0}}))
case "$task" in
{branches}*) echo "npuprof: there is no combination $task" >&2; exit 2 ;;
esac
mkdir -p "$out" || exit 2
began=$(date +%s.%N)
srun --export=ALL --kill-on-bad-exit=1 bash -c "$asks"'
exec "$@"' npuprof {limited}"$@" >"$out/$digest.log" 2>&1 </dev/null
code=$?
# The result is there as a whole or not at all: a job that is killed leaves none, \
and its combination is run again.
echo "$code $began $(date +%s.%N)" >"$out/$digest.part" && mv "$out/$digest.part" "$out/$digest.end"
exit "$code"
"""
_POD = """\
#!/bin/sh
case "$JOB_COMPLETION_INDEX" in
{branches}*) echo "npuprof: there is no combination $JOB_COMPLETION_INDEX" >&2; exit 2 ;;
esac
began=$(date +%s)
{limited}"$@"
code=$?
# Output may end without the end of a line.
echo
echo "{{\\"npuprof_trial\\": \\"$digest\\", \\"exit\\": $code, \
\\"seconds\\": $(($(date +%s) - began))}}"
exit "$code"
"""


class Script(Record):
    """A script of a job, or the branches of combinations in it: files by path, and notes."""

    text: str
    files: dict[str, str]
    notes: set[str]


def write_slurm_array(
    name: str, configs: Sequence[Config], setup: Setup, folder: str, jobs: int
) -> Script:
    """Return the script of an array; results are written to a folder. Raises NpuprofError."""
    folders = [os.path.join(folder, "code", config.digest[:16]) for config in configs]
    tasks = _build_tasks(configs, folders, setup, "bash", SLURM_FACTS)
    is_large = len(configs) > _LARGEST_ARRAY
    script = _SLURM.format(
        job=re.sub(r"[^A-Za-z0-9_.-]+", "-", f"sweep-{name}").strip("-"),
        last=len(configs) - 1,
        limit=f"%{jobs}" if jobs > 1 else "",
        what=ascii(name)[1:-1],
        count=len(configs),
        out=shlex.quote(os.path.join(folder, "results")),
        here=shlex.quote(os.getcwd()),
        branches=tasks.text,
        limited=_format_limit(setup),
        parts=f"# {_PARTS}\n" if is_large else "",
    )
    return Script(script, tasks.files, tasks.notes | ({_PARTS} if is_large else set()))


def _format_limit(setup: Setup) -> str:
    """Return the command that limits a trial's time; the task still records how it ended."""
    return f"timeout --kill-after={GRACE:g} {setup.timeout:g} " if setup.timeout is not None else ""


def _build_tasks(
    configs: Sequence[Config],
    folders: Sequence[str],
    setup: Setup,
    shell: str,
    facts: Container[str] = (),
) -> Script:
    """Return the tasks of combinations; ``facts`` are asked for when a task runs."""
    branches = []
    files: dict[str, str] = {}
    notes = set()
    for number, (config, folder) in enumerate(zip(configs, folders, strict=True)):
        texts = dict(collect_sidecars(config).values()) | setup.render_code(config)
        files |= {os.path.join(folder, file): text for file, text in texts.items()}
        variables, more = collect_env_variables(config, None, folder, True, facts)
        notes.update(more)
        questions = format_slurm_questions(config) if facts else ""
        branches += [
            f"{number})\ndigest={config.digest}\n",
            format_clear_and_export_lines(config, shell, variables),
            f"asks={shlex.quote(questions)}\n" if questions else "",
            f"set -- {shlex.join(setup.fill_command(config, folder))}\n;;\n",
        ]
    return Script("".join(branches), files, notes)


_JOB = """\
# Name the devices that a task needs below resources, as in: limits: {{ huawei.com/Ascend910: 8 }}
# backoffLimitPerIndex and maxFailedIndexes need Kubernetes 1.29 (1.28: with the feature gate \
JobBackoffLimitPerIndex).
apiVersion: batch/v1
kind: Job
metadata:
  name: {job}
  annotations:
    npuprof/preset: {preset}
spec:
  completions: {count}
  parallelism: {parallelism}
  completionMode: Indexed
  backoffLimitPerIndex: 0
  maxFailedIndexes: {count}
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: trial
        image: {image}
        command: ["sh", "{mount}/run.sh"]
        resources: {{}}
        volumeMounts:
        - name: trials
          mountPath: {mount}
      volumes:
      - name: trials
        configMap:
          name: {job}
          items:
"""


def write_indexed_job(
    name: str, configs: Sequence[Config], setup: Setup, image: str, jobs: int
) -> tuple[str, set[str]]:
    """Return the manifest of a ConfigMap and an Indexed Job, and notes.

    Raises NpuprofError if a ConfigMap is too small.
    """
    folders = [f"{MOUNT}/{number}" for number in range(len(configs))]
    # an image need not have bash
    tasks = _build_tasks(configs, folders, setup, "sh")
    # keys of a ConfigMap have no /: NUMBER-FILE is mounted as NUMBER/FILE
    paths = {}
    data = {}
    for path, text in tasks.files.items():
        key = f"{os.path.basename(os.path.dirname(path))}-{os.path.basename(path)}"
        paths[key] = os.path.relpath(path, MOUNT)
        data[key] = text
    paths["run.sh"] = "run.sh"
    data["run.sh"] = _POD.format(branches=tasks.text, limited=_format_limit(setup))
    size = sum(len(f"{key}{text}".encode()) for key, text in data.items())
    if size > LARGEST_MAP:
        what = f"{len(configs)} combinations do not fit into one ConfigMap: {size:,} bytes"
        hint = "vary fewer values, or exclude combinations with --where"
        raise build_error("NP903", what, "Kubernetes takes at most 1 MiB.", hint)
    job = build_map_name("sweep", name, 30, {"held": data, "command": list(setup.command)})
    head = ["apiVersion: v1", "kind: ConfigMap", "metadata:", f"  name: {job}", "immutable: true"]
    manifest = _JOB.format(
        job=job,
        preset=quote_yaml_string(name),
        count=len(configs),
        parallelism=min(jobs, len(configs)),
        image=quote_yaml_string(image),
        mount=MOUNT,
    )
    items = [
        f"          - key: {quote_yaml_string(key)}\n            path: {quote_yaml_string(path)}\n"
        for key, path in paths.items()
    ]
    lines = [*head, "data:", *format_map_rows(data), "---", manifest]
    return "\n".join(lines) + "".join(items), tasks.notes
