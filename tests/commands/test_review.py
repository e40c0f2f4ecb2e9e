"""What CI runs on a pull request: the steps of the action and the script of the job.

Stand-ins replace the services.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from support.building import REPOSITORY
from support.repositories import ENVIRONMENT, Repo
from support.running import Run
from support.services import GitHub, GitLab, Token, describe_github_job, describe_gitlab_job, serve

yaml = pytest.importorskip("yaml")
MARKER = "<!-- npuprof: presets -->"
BASE = '[profile]\ndescription = "base"\nscenario = "training"\n\n[options]\nhccl_timeout = 1836\n'
RISKY = '[profile]\nscenario = "training"\n[env]\nLD_PRELOAD = "/opt/x.so"\n'
PIN = "git+https://git.example.org/tools/npuprof.git@" + "0123456789" * 4
SECRET = "ghs_0123456789"
ACTION = REPOSITORY / ".github/actions/presets/action.yml"
WORKFLOWS = ("npuprof/templates/github-workflow.yml", ".github/workflows/presets.yml")
SCRIPT = """import tensorflow as tf
custom_op = tf.compat.v1.ConfigProto().graph_options.rewrite_options.custom_optimizers.add()
custom_op.parameter_map["precison_mode"].s = b"allow_fp32_to_fp16"
"""
PYTHON = (
    f'#!/bin/sh\n[ "$1 $2 $3" = "-I -m pip" ] || exec "{sys.executable}" "$@"\n'
    'shift 3; printf "%s\\n" "$@" >> "$PIP_CALLS"\n'
)


@pytest.fixture
def change(tmp_path: Path) -> Repo:
    """A repository with a branch that changes one value for two presets."""
    made = Repo(tmp_path / "repo")
    made.commit({"base": BASE, "leaf": '[profile]\nextends = ["base"]\n'}, "one")
    made.git("checkout", "-q", "-b", "change")
    made.commit({"base": BASE.replace("1836", "1904")}, "two")
    return made


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a runner: npuprof is installed, and pip only logs its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (
        ("npuprof", f'#!/bin/sh\nexec "{sys.executable}" -m npuprof "$@"\n'),
        ("python", PYTHON),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    path = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    values = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": path,
        "PIP_CALLS": str(tmp_path / "pip"),
        "no_proxy": "127.0.0.1",
    }
    return {**os.environ, **ENVIRONMENT, **values}


# -- the action -----------------------------------------------------------------------------------


@pytest.fixture
def github(tmp_path: Path, change: Repo, machine: dict[str, str]) -> Iterator[GitHub]:
    service = GitHub()
    service.tokens = {SECRET: Token("github-actions[bot]", app=True)}
    with serve(service):
        machine |= describe_github_job(service, tmp_path)
        yield service


def run_action(
    action: Path, tmp_path: Path, change: Repo, machine: Mapping[str, str], **inputs: str
) -> subprocess.CompletedProcess[str]:
    """Run the steps of an action as a runner would, until one fails."""
    result = {
        "number": 7,
        "base": {"sha": change.git("rev-parse", "main")},
        "head": {"sha": change.git("rev-parse", "HEAD")},
    }
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": result}))
    described = yaml.safe_load(action.read_text())
    values = {
        name: field["default"].replace("${{ github.token }}", SECRET)
        for name, field in described["inputs"].items()
    } | inputs
    environ = {**machine, "GITHUB_ACTION_PATH": str(action.parent)}
    for step in described["runs"]["steps"]:
        if "run" not in step:
            continue
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "nothing an event holds is pasted into a script"
        env = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: values[found[1]], text)
            for name, text in step.get("env", {}).items()
        }
        script = tmp_path / "step.sh"
        script.write_text(step["run"])
        arguments = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        done = subprocess.run(
            arguments,
            cwd=change.folder,
            env={**environ, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            break
    return done


def test_the_action_keeps_one_comment(
    github: GitHub, tmp_path: Path, change: Repo, machine: dict[str, str]
) -> None:
    for number in ("1904", "1972"):
        change.write({"base": BASE.replace("1836", number)})
        change.commit(message=number)
        done = run_action(ACTION, tmp_path, change, machine)
        assert done.returncode == 0, done.stderr
        assert "the comment on pull request 7: " in done.stderr
        (body,) = github.list_bodies("github-actions[bot]")
        assert body.startswith(f"{MARKER}\n")
        assert f"1836 → {number}" in body
        assert number in (tmp_path / "summary.md").read_text()
    requested = {
        argument
        for argument in (tmp_path / "pip").read_text().split("\n")
        if argument not in ("", "install", "--quiet")
    }
    assert [os.path.samefile(argument, REPOSITORY) for argument in requested] == [True], (
        "the npuprof that the action belongs to"
    )
    below = "/repos/team/presets/issues"
    assert github.writes == [f"POST {below}/7/comments", f"PATCH {below}/comments/100"]


def test_only_what_the_pull_request_brings_stands_at_its_lines(
    github: GitHub, tmp_path: Path, change: Repo, machine: dict[str, str]
) -> None:
    change.git("checkout", "-q", "main")
    change.commit({"warned": RISKY})
    change.git(
        "checkout", "-q", "change"
    )  # what came to the target branch meanwhile is in the merge that is checked
    change.git("merge", "-q", "--no-ff", "-m", "merge", "main")
    done = run_action(ACTION, tmp_path, change, machine)
    assert done.returncode == 0, done.stderr
    assert "::warning" not in done.stdout
    assert (
        "1 warning that this pull request did not introduce is omitted here (npuprof check)"
        in done.stderr
    )
    change.commit({"warned": "# a line more\n" + RISKY, "fresh": RISKY})
    done = run_action(ACTION, tmp_path, change, machine)
    assert "::warning file=profiles/fresh.toml,line=4" in done.stdout
    assert "file=profiles/warned.toml" not in done.stdout
    arguments = [sys.executable, "-m", "npuprof", "review", "--strict"]
    done = subprocess.run(
        arguments, cwd=change.folder, env=machine, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "file=profiles/warned.toml" in done.stdout, "what fails the job is told"


def test_a_pull_request_that_only_accepts_findings_is_commented_on(
    github: GitHub, tmp_path: Path, change: Repo, machine: dict[str, str]
) -> None:
    change.git("checkout", "-q", "main")
    change.commit({"risky": RISKY})
    change.git("checkout", "-q", "-B", "change")
    (change.folder / "npuprof.toml").write_text(
        '[[ignore]]\ncode = "NP605"\nreason = "the profiler"\npresets = ["*"]\n'
    )
    change.commit(message="accept")
    done = run_action(ACTION, tmp_path, change, machine)
    assert done.returncode == 0, done.stderr
    (body,) = github.list_bodies("github-actions[bot]")
    for page in (body, (tmp_path / "summary.md").read_text()):
        assert "\n**Newly accepted**\n\n- NP605 `env.LD_PRELOAD " in page
        assert "\n  reason: `the profiler` ([`npuprof.toml:1`](" in page


def test_the_inputs_of_the_action_reach_it_as_they_are(
    github: GitHub, tmp_path: Path, change: Repo, machine: dict[str, str]
) -> None:
    change.git("mv", "profiles", "$(touch x) 'y'")
    change.commit(message="an odd store")
    done = run_action(ACTION, tmp_path, change, machine, store="$(touch x) 'y'", base="HEAD")
    assert done.returncode == 0, done.stderr
    assert github.comments == [], "nothing differs from HEAD itself"
    assert not (change.folder / "x").exists()
    done = run_action(ACTION, tmp_path, change, machine, base="nowhere", store="$(touch x) 'y'")
    assert done.returncode == 2
    assert "nowhere" in done.stderr


OLD = "[options]\ngraph_run_mode = true\n"
WANTED = [
    ({"baseline": "known file.json"}, 0),
    ({"baseline": "$(touch x).json"}, 2),
    ({"ignore": "NP1, NP202"}, 0),
    ({"select": "NP202", "severity": "error"}, 1),
    ({"baseline": "known file.json", "strict": "true"}, 1),
    ({"strict": "yes"}, 2),
]


def prepare_old_store(change: Repo, run: Run) -> None:
    """Let a store have an error and a warning of before, the error in a baseline."""
    change.git("checkout", "-q", "main")
    change.commit({"old": OLD})
    path = str(change.folder / "known file.json")
    assert (
        run(
            "check",
            "--store",
            str(change.folder / "profiles"),
            "--baseline",
            path,
            "--write-baseline",
        ).code
        == 0
    )
    change.commit({"risky": RISKY}, "known")
    change.git("rebase", "-q", "main", "change")


@pytest.mark.parametrize(("inputs", "code"), WANTED, ids=str)
def test_the_action_judges_as_its_inputs_say(
    inputs: dict[str, str],
    code: int,
    github: GitHub,
    tmp_path: Path,
    change: Repo,
    machine: dict[str, str],
    run: Run,
) -> None:
    prepare_old_store(change, run)
    done = run_action(ACTION, tmp_path, change, machine, **inputs)
    assert done.returncode == code, done.stdout + done.stderr
    assert not (change.folder / "x").exists()


# -- the workflows --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WORKFLOWS)
def test_a_workflow_may_do_no_more_than_it_needs(path: str) -> None:
    workflow = yaml.safe_load((REPOSITORY / path).read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert set(workflow[True]) == {"pull_request", "push", "merge_group"}, (
        "never pull_request_target"
    )
    assert workflow["concurrency"]["cancel-in-progress"] is True
    jobs = workflow["jobs"]
    assert jobs["review"]["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert jobs["review"]["if"] == "github.event_name == 'pull_request'"
    assert "permissions" not in jobs["check"]
    for job in jobs.values():
        assert job["steps"][0]["with"] == {"fetch-depth": 0, "persist-credentials": False}


def test_actions_of_others_are_pinned_by_commit() -> None:
    texts = [
        (REPOSITORY / path).read_text()
        for path in (*WORKFLOWS, ACTION, "npuprof/templates/github-action.yml")
    ]
    used = set(re.findall(r"^ *(?:- )?uses: (\S+)", "\n".join(texts), re.MULTILINE)) - {
        "./.github/actions/presets"
    }
    assert used
    assert [
        action for action in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action)
    ] == []


@pytest.mark.parametrize(
    ("schema", "ci", "path"),
    [
        ("vendor.github-workflows", "github", ".github/workflows/presets.yml"),
        ("vendor.github-actions", "github", ".github/actions/presets/action.yml"),
        ("vendor.gitlab-ci", "gitlab", ".gitlab/presets.yml"),
    ],
)
def test_what_is_written_and_what_this_repository_uses_follow_the_published_schemas(
    schema: str, ci: str, path: str, tmp_path: Path, run: Run
) -> None:
    pytest.importorskip("check_jsonschema")
    assert run("init", "made", "--ci", ci, "--install", PIN).code == 0
    files = [tmp_path / "made" / path, *([REPOSITORY / path] if ci == "github" else [])]
    transform = ["--data-transform", "gitlab-ci"] if ci == "gitlab" else []
    arguments = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        schema,
        *transform,
        *map(str, files),
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# -- GitLab ---------------------------------------------------------------------------------------


@pytest.fixture
def gitlab(change: Repo, machine: dict[str, str]) -> Iterator[GitLab]:
    service = GitLab()
    service.tokens = {SECRET: Token("project_3_bot", ident=41)}
    with serve(service):
        machine |= describe_gitlab_job(service, change.git("rev-parse", "main"), change.head)
        yield service


def run_job(
    change: Repo, machine: Mapping[str, str], run: Run, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the job that ``init`` writes for GitLab, as its runner would."""
    written = change.folder / ".gitlab/presets.yml"
    if not written.exists():
        assert run("init", str(change.folder), "--ci", "gitlab", "--install", PIN).code == 0
    job = yaml.safe_load(written.read_text())["presets"]
    assert job["artifacts"] == {
        "when": "always",
        "reports": {"codequality": "gl-code-quality-report.json"},
    }
    values = {name: str(value) for name, value in job["variables"].items()}
    script = "set -eo pipefail\n" + "\n".join(job["script"])
    environ = {**machine, **values, "CI_COMMIT_SHA": change.head, **more}
    return subprocess.run(
        ["bash", "-c", script],
        cwd=change.folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_gitlab_job_keeps_one_note_and_reports_code_quality(
    gitlab: GitLab, tmp_path: Path, change: Repo, machine: dict[str, str], run: Run
) -> None:
    for number in ("1904", "1972"):
        change.write({"base": BASE.replace("1836", number)})
        change.commit(message=number)
        done = run_job(change, machine, run, NPUPROF_TOKEN=SECRET)
        assert done.returncode == 0, done.stderr
        (body,) = gitlab.list_bodies("project_3_bot")
        assert number in body
        assert "https://gitlab.example.org/team/presets/-/blob/" in body, (
            "a fork's merge request is one of the project that it goes to"
        )
    notes = "/api/v4/projects/3/merge_requests/5/notes"
    assert gitlab.writes == [f"POST {notes}", f"PUT {notes}/100"]
    assert json.loads((change.folder / "gl-code-quality-report.json").read_text()) == []
    assert f"npuprof @ {PIN}\n" in (tmp_path / "pip").read_text()
    change.commit({"base": BASE.replace("hccl_timeout", "hccl_timout")}, "wrong")
    assert run_job(change, machine, run, NPUPROF_TOKEN=SECRET).returncode == 1


# -- pre-commit -----------------------------------------------------------------------------------


@pytest.fixture
def hooks(
    change: Repo, tmp_path: Path, machine: dict[str, str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run pre-commit with our hooks on what is staged.

    They find npuprof on the machine instead of installing it.
    """
    pytest.importorskip("pre_commit")
    described = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text())
    local = [{**hook, "language": "system"} for hook in described]
    (change.folder / ".pre-commit-config.yaml").write_text(
        yaml.safe_dump({"repos": [{"repo": "local", "hooks": local}]})
    )
    change.commit(message="hooks")
    environ = {**machine, "PRE_COMMIT_HOME": str(tmp_path / "pre-commit")}

    def run_hooks(*arguments: str) -> subprocess.CompletedProcess[str]:
        change.git(*(arguments or ("add", "-A")))
        arguments = [sys.executable, "-m", "pre_commit", "run", "--color", "never"]
        return subprocess.run(
            arguments, cwd=change.folder, env=environ, capture_output=True, text=True, check=False
        )

    return run_hooks


def test_the_hooks_are_what_pre_commit_takes() -> None:
    clientlib = pytest.importorskip("pre_commit.clientlib")
    described = clientlib.load_manifest(str(REPOSITORY / ".pre-commit-hooks.yaml"))
    assert [hook["id"] for hook in described] == ["npuprof-check", "npuprof-scan"]


@pytest.mark.parametrize(
    "arguments",
    [("add", "profiles/child.toml"), ("rm", "-q", "--cached", "profiles/base.toml")],
    ids=["a parent that was not added", "a parent that only git has forgotten"],
)
def test_what_is_staged_is_checked_and_not_what_lies_in_the_folder(
    arguments: tuple[str, ...],
    change: Repo,
    hooks: Callable[..., subprocess.CompletedProcess[str]],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(change.folder)
    change.write({"parent": BASE, "child": '[profile]\nextends = ["parent"]\n'})
    assert run("check").code == 0
    done = hooks(*arguments)
    assert done.returncode == 1, done.stdout
    assert "NP101" in done.stdout, done.stdout
    assert (
        f"try: git add profiles/{'parent' if arguments[0] == 'add' else 'base'}.toml" in done.stdout
    )


def test_a_hook_of_git_checks_what_is_about_to_be_committed(
    change: Repo, machine: dict[str, str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(change.folder)
    hook = change.folder / ".git/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\nexec {sys.executable} -m npuprof check --staged\n")
    hook.chmod(0o755)
    change.write(
        {
            "base": BASE.replace("hccl_timeout", "hccl_timout"),
            "leaf": "[options]\nhccl_timeout = 5\n",
        }
    )
    arguments = ["git", "commit", "-q", "-m", "x"]
    refused = subprocess.run(
        [*arguments, "-a"],
        cwd=change.folder,
        env=machine,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "NP201" in refused.stderr + refused.stdout
    taken = subprocess.run(
        [*arguments, "profiles/leaf.toml"],
        cwd=change.folder,
        env=machine,
        capture_output=True,
        text=True,
        check=False,
    )
    assert taken.returncode == 0, taken.stderr
    assert run("check", "--staged").code == 0, "the fault in the folder is not staged"
    assert run("check").code == 1


@pytest.mark.parametrize(
    "arguments", [("--rev", "HEAD"), ("--fix",), ("--cann", "8.0.0", "--cann", "9.0.0")]
)
def test_what_is_staged_is_judged_once_and_as_it_is(
    change: Repo, run: Run, arguments: tuple[str, ...]
) -> None:
    done = run("check", "--staged", *arguments)
    assert done.code == 2
    assert "NP902" in done.err


def test_the_whole_store_is_checked_and_scripts_are_scanned(
    change: Repo, hooks: Callable[[], subprocess.CompletedProcess[str]]
) -> None:
    change.write({"base": BASE.replace("hccl_timeout", "hccl_timout")})
    done = hooks()
    assert done.returncode == 1
    assert "leaf" in done.stdout
    change.write({"base": BASE})
    script = change.folder / "train.py"
    script.write_text(SCRIPT)
    done = hooks()
    assert done.returncode == 1
    assert "train.py:3" in done.stdout
    script.write_text("print('hello')\n")
    assert hooks().returncode == 0


# -- without a service ----------------------------------------------------------------------------


@pytest.fixture
def local(change: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """Return the repository of the change, which is the current folder; no job runs."""
    monkeypatch.chdir(change.folder)
    for name in ("GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    return change


def drop_links(text: str) -> str:
    return re.sub(r"\[(`[^`]*`)\]\([^)]*\)", r"\1", text)


def test_review_local_prints_the_comment_of_the_job_and_posts_nothing(
    github: GitHub, tmp_path: Path, local: Repo, machine: dict[str, str], run: Run
) -> None:
    local.commit({"leaf": RISKY + "[options]\nhccl_timeoutt = 1\n"}, "worse")
    run_action(ACTION, tmp_path, local, machine)
    (body,) = github.list_bodies("github-actions[bot]")
    asked = len(github.list_bodies("github-actions[bot]"))
    for arguments in ((), ("main",), ("--base", "main")):
        done = run("review", "--local", *arguments)
        assert done.code == 1, done.err
        assert done.out == drop_links(body).replace("the target branch", "main")
    assert len(github.list_bodies("github-actions[bot]")) == asked


def test_review_local_compares_the_work_tree_if_it_differs(local: Repo, run: Run) -> None:
    assert "1836 → 1904" in run("review", "--local").out
    local.write({"base": BASE.replace("1836", "1972")})
    done = run("review", "--local")
    assert done.code == 0, done.err
    assert "1836 → 1972" in done.out
    assert "`work tree`" in done.out
    assert done.out.startswith(f"{MARKER}\n")
    assert "1904 → 1972" in run("review", "--local", "HEAD").out


def test_review_local_starts_where_the_branch_left(local: Repo, run: Run) -> None:
    local.git("checkout", "-q", "main")
    local.commit({"other": BASE}, "elsewhere")
    local.git("update-ref", "refs/remotes/origin/trunk", "main")
    local.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    local.git("branch", "-q", "-D", "main", check=False)
    local.git("checkout", "-q", "change")
    for name in ("clean", "with a change that is not committed"):
        done = run("review", "--local")
        assert "2 presets differ" in done.out, name
        assert "other" not in done.out, name
        local.write({"leaf": '[profile]\nextends = ["base"]\nowner = "nlp"\n'})


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("review", "--local", "nowhere"), "NP011", "unknown revision 'nowhere'"),
        (("review", "--local"), "NP902", "npuprof review --local BASE"),
        (("review",), "NP060", "npuprof review --local BRANCH"),
    ],
    ids=["an unknown base", "no default branch", "no job"],
)
def test_review_says_what_to_compare_with(
    arguments: tuple[str, ...],
    code: str,
    message: str,
    local: Repo,
    run: Run,
) -> None:
    local.git("branch", "-q", "-m", "main", "trunk")
    done = run(*arguments)
    assert done.code == 2
    assert code in done.err
    assert message in done.err


def test_review_local_without_a_difference_says_that_there_is_no_comment(
    local: Repo, run: Run
) -> None:
    done = run("review", "--local", "HEAD")
    assert done.code == 0
    assert "no preset differs" in done.out
    assert "the job creates no comment for this" in done.err
