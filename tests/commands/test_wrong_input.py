"""Wrong input of a stranger: what is wrong, and a command or line that helps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.repositories import Repo
from support.running import Run, Store, expect

NPUPROF = [sys.executable, "-m", "npuprof"]
PRESETS = {
    "base/training": "[profile]\nabstract = true\n[options]\nhccl_timeout = 1800\n",
    "leaf": "[profile]\nextends = ['base/training']\n[env]\nRANK_ID = { launcher = 'rank' }\n",
    "bad": "[options]\nhccl_timeout = -5\n",
}
FOLDER = "is a folder, and no preset"

#: A command line, and what it prints besides its exit code 2.
ANSWERS: dict[str, tuple[str, ...]] = {
    "check base": ("NP008", f"'base' {FOLDER}", "npuprof scan profiles/base"),
    "check profiles": (
        f"'profiles' {FOLDER}",
        "npuprof list lists presets",
        "npuprof scan profiles",
    ),
    "show .": (f"'.' {FOLDER}", "npuprof scan . reads scripts"),
    "diff profiles leaf": (f"'profiles' {FOLDER}",),
    "check --framework vllm": ("NP401", "no release of vllm is named", "the newest are "),
    "check --axis role=x": ('declare it below [axes] of npuprof.toml: role = ["x"]',),
    "check --cann": ("requires an argument", "--cann RELEASE: Check for this CANN release"),
    "check --strict=1": ("does not take a value", "--strict: Exit with 1"),
    "log leaf -n x": ("'x' is not a whole number.", "--number N: Stop after N commits"),
    "log leaf profile.extends": ("'profile.extends' is none", "all changes are listed"),
    "log leaf -n 0": ("0 is less than 1.", "--number N: Stop after N commits"),
    "source lock": ("No such command 'lock'. Known are add, list, remove, sync, update, vendor.",),
    "nothing": ("No such command 'nothing'. npuprof --help lists the commands.",),
    "version": ("npuprof --version prints the version",),
    "set leaf hccl_timeout 5": ("write hccl_timeout=VALUE without blanks",),
    "set leaf vlm.model=x": ("unknown option 'vlm'", "did you mean the section 'vllm'?"),
    "source add builtin x": (
        "NP040",
        "'builtin' cannot be the name of a source",
        "before a colon, where builtin, file,",
        "use another name",
    ),
    "run bad -- true": (
        "the command was not started: the preset has errors; --no-check skips the checks",
        "NP203",
    ),
    "env bad": ("nothing was written: the preset has errors", "NP203"),
    "render bad": ("nothing was written: the preset has errors", "NP203"),
    "bisect bad leaf -- true": ("no command was started: the preset has errors", "NP203"),
    "inject plain/a.sh bad": ("nothing was written: the preset has errors", "NP203"),
    "render --all": ('begin it with output = [{ spec = "NAME", to = "session", path',),
    "render leaf --check gone.py": ("render it first: -o gone.py in place of --check",),
    "render leaf --check a$b.py": ("render it first: -o 'a$b.py' in place of --check",),
    "check --baseline a$b": ("write it: --baseline 'a$b' --write-baseline",),
    "render base/training --base x --no-check": ("as with --to mindie",),
    "rule megatron.micro-batch-size": ("no rule reads such a key",),
    "option NP378": ("npuprof rule NP378 explains the code",),
    "option NP9999": ("npuprof rule the codes of findings",),
    "options np378": ("npuprof rule NP378 explains the code",),
    "explain NP378": ("Missing argument 'KEY'", "npuprof rule NP378 explains the code"),
    "explain leaf NP378": ("npuprof rule NP378 explains the code",),
    "explain leaf profile.ownr": ("[profile] has no key 'ownr'", "did you mean 'owner'?"),
    "explain leaf profile.foo": ("[profile] has no key 'foo'", "known are description, extends"),
    "-v": ("npuprof takes a command, or --version, or --help",),
    "source --rev x add team URL": ("npuprof source add --rev x team URL",),
    "import plain/a.sh -o profiles/x+y.toml": ("NP004", "'x+y' cannot", "write profiles/x-y.toml"),
    "new x --extends x": ("NP102", "inheritance cycle: x", "nothing written"),
    "restore @HEAD": ("'@HEAD' names no preset", "say which: NAME@HEAD"),
    "trust . RANK_ID": ("the store is in profiles", "write profiles in its place"),
    "whatran profiles/leaf.toml": (
        "profiles/leaf.toml contains no digest",
        "npuprof log profiles/leaf.toml lists the commits",
    ),
    "copy team:x y": ("npuprof new y --extends team:x makes one that follows it",),
    "sweep leaf --vary hccl_timeout=-5 -- true": ("vary other values, or change --where",),
    "whatran plain": ("plain contains no run record", "npuprof run NAME --record FOLDER"),
    "site plain": ("name an empty folder, or remove plain/a.sh if it can go",),
    "inject plain leaf": ("cannot read plain: is a directory", "name a file in it"),
    "inject binary.sh leaf": ("NP818", "binary.sh is no text"),
    "scan . -o plain": ("cannot write plain: it is a folder", "name a file in it"),
    "check leaf --programs gone": ("cannot use gone: no such file or directory",),
    "scan plain --programs gone": ("cannot use gone: no such file or directory",),
    "doctor": ("NP963", "neither vLLM nor an adapter of TensorFlow", "--adapter PATH"),
    "sweep leaf --vary hccl_timeout=1,2 --best loss -- true": (
        "The metrics are time.",
        "--metric 'loss=PATTERN'; or write min:time",
    ),
}


@pytest.mark.parametrize("line", ANSWERS)
def test_wrong_input_is_answered_with_what_helps(
    line: str, store: Store, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(PRESETS)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/a.sh").write_text("echo hi\n")
    (tmp_path / "binary.sh").write_bytes(b"\xff\xfe\0bad")
    expect(run(*line.split()), 2, *ANSWERS[line])
    assert (tmp_path / "binary.sh").read_bytes() == b"\xff\xfe\0bad"


def test_a_program_that_is_a_folder_or_not_executable_is_named_as_such(
    store: Store, tmp_path: Path
) -> None:
    store(PRESETS)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/a.sh").write_text("echo hi\n")
    for program, *answers in (
        ("plain", "it is a folder", "name a program"),
        ("plain/a.sh", "chmod +x plain/a.sh, or write its interpreter before it"),
    ):
        words = [*NPUPROF, "run", "leaf", "--", program]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 126
        assert [answer for answer in answers if answer not in done.stderr] == []


def test_a_launcher_fact_is_shown_as_it_is_written(repo: Repo, run: Run) -> None:
    repo.commit(PRESETS)
    for line in ("show leaf --origin", "blame leaf", "explain leaf env.RANK_ID"):
        expect(run(*line.split()), 0, 'RANK_ID = { launcher = "rank" }')


def test_a_commit_on_a_detached_head_says_how_to_keep_it(repo: Repo, run: Run) -> None:
    repo.commit(PRESETS)
    repo.git("checkout", "-q", "--detach")
    repo.write({"leaf": PRESETS["leaf"] + "TASK_QUEUE_ENABLE = 1\n"})
    expect(run("commit", "leaf"), 0, "HEAD is detached", "git switch -c BRANCH")
    repo.git("switch", "-q", "-c", "kept")
    repo.write({"leaf": PRESETS["leaf"]})
    assert "detached" not in run("commit", "leaf").err


@pytest.mark.parametrize("line", ["commit leaf", "release leaf 1.0.0"])
def test_without_an_identity_the_lines_that_set_one_are_shown(
    line: str, repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({name: text for name, text in PRESETS.items() if name != "bad"})
    if line.startswith("commit"):
        repo.write({"leaf": PRESETS["leaf"] + "TASK_QUEUE_ENABLE = 1\n"})
    repo.git("config", "user.useConfigOnly", "true")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{role}_NAME", raising=False)
        monkeypatch.delenv(f"GIT_{role}_EMAIL", raising=False)
    texts = (
        "does not know your name and email address",
        'git config --global user.name "Your Name"',
    )
    expect(run(*line.split()), 2, "NP022", *texts)


def test_a_value_of_a_wrong_type_has_its_own_reason(store: Store, run: Run) -> None:
    store({"leaf": "[profile]\nextends = 'a'\nextend = 1\n[[override]]\nunset = ['x']\n"})
    shown = expect(run("check", "leaf"), 2, "Without one it would apply everywhere.")
    assert shown.count("npuprof does not guess what a value of another form means.") == 1
    assert shown.count("Unknown keys would otherwise be ignored silently.") == 1


def test_an_unknown_framework_in_versions_is_no_bug(store: Store, run: Run) -> None:
    store({"leaf": "[profile]\nversions = { foo = '1' }\n"})
    assert "NP831" not in expect(run("check", "leaf"), 2, "unknown key 'foo' in versions")


def test_a_number_taken_out_of_a_list_is_no_bug(store: Store, run: Run) -> None:
    changes = "[remove.options]\nhccl_timeout = 1\n[append.options]\nhccl_timeout = [1]\n"
    store({"leaf": changes})
    assert "NP831" not in run("check", "leaf").err


@pytest.mark.parametrize("line", ["import plain/a.sh -o profiles/x y.toml", "new x --extends x"])
def test_a_rejected_preset_is_not_written(line: str, store: Store, run: Run) -> None:
    store(PRESETS)
    Path("plain").mkdir()
    Path("plain/a.sh").write_text("export HCCL_CONNECT_TIMEOUT=600\n")
    words = line.replace("x y.toml", "x~y.toml").split()
    expect(run(*(word.replace("~", " ") for word in words)), 2, "NP")
    assert sorted(path.name for path in Path("profiles").glob("x*")) == []


def test_a_file_outside_the_store_may_have_any_name(store: Store, run: Run) -> None:
    store(PRESETS)
    Path("a.sh").write_text("export HCCL_CONNECT_TIMEOUT=600\n")
    run("import", "a.sh", "-o", "x y.toml")
    run("import", "a.sh", "-o", "profiles/x y.json", "--format", "json")
    assert Path("x y.toml").exists()
    assert Path("profiles/x y.json").exists()


def test_an_output_with_errors_says_that_nothing_was_written(store: Store, run: Run) -> None:
    store(PRESETS)
    Path("npuprof.toml").write_text('[[output]]\nspec = "bad"\nto = "session"\npath = "o.py"\n')
    expect(run("render", "--all"), 2, "nothing was written: an output has errors", "NP203")
    assert not Path("o.py").exists()


def test_a_bare_repository_is_to_be_cloned(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "bare.git"], check=True)
    for line in ("git install", "git status"):
        done = subprocess.run(
            [*NPUPROF, *line.split()], cwd=tmp_path / "bare.git", capture_output=True, text=True
        )
        assert done.returncode == 2
        assert "bare.git has no work tree" in done.stderr
        assert "do it in a clone: git clone " in done.stderr


def test_arguments_of_no_named_program_are_unknown(store: Store, run: Run) -> None:
    store({"leaf": "[args]\nfoo = 1\n"})
    Path("train.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\n"
        'p.add_argument("--foo", type=int)\np.parse_args()\n'
    )
    expect(run("check", "leaf"), 0, "1 setting: 0 checked, 1 unknown (args.foo)")
    expect(run("check", "leaf", "--programs", "train.py"), 0, "1 setting: 1 checked")
