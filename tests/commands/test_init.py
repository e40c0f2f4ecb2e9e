"""``init``: a store that works at once, and never over what is there."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from npuprof.hosting import installed
from support.building import REPOSITORY
from support.repositories import Repo
from support.running import Run

COMMIT = "0123456789" * 4
PIN = f"git+https://git.example.org/tools/npuprof.git@{COMMIT}"


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_scan_reads_no_schema_of_a_new_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    assert run("init", "--sample", "vllm").code == 0
    assert Path("profiles/.schema.json").exists()
    Path("run.sh").write_text("export HCCL_BUFFSIZE=200\n")
    assert "not judged" not in run("scan", ".").err


@pytest.mark.parametrize("ci", ["github", "gitlab", "none"])
def test_a_new_store_is_clean_and_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, ci: str
) -> None:
    folder = tmp_path / "pro ject"
    folder.mkdir()
    monkeypatch.chdir(folder)
    result = run("init", "--ci", ci, *(["--install", PIN] if ci != "none" else []))
    assert result.code == 0, result.err
    assert result.out.splitlines() == files(folder)
    assert {
        "profiles/bert-training.toml",
        "profiles/.schema.json",
        ".gitattributes",
        ".taplo.toml",
    } <= set(files(folder))
    assert (".github/workflows/presets.yml" in files(folder)) == (ci == "github")
    assert (".gitlab/presets.yml" in files(folder)) == (ci == "gitlab")
    assert run("check").code == 0
    assert run("render", "bert-training").code == 0
    assert (
        tomllib.loads((folder / ".taplo.toml").read_text())["rule"][0]["schema"]["path"]
        == "profiles/.schema.json"
    )


SAMPLES = {
    "tensorflow": ("bert-training", "base/training", "session"),
    "torch": ("torch-pretraining", "base/torch-training", "torch-npu"),
    "vllm": ("vllm-serving", "base/vllm-serving", "vllm"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_a_clean_store_for_its_framework(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    preset, parent, target = SAMPLES[name]
    result = run("init", "made", "--ci", "none", "--sample", name)
    assert result.code == 0, result.err
    assert f"npuprof show {preset}" in result.err
    monkeypatch.chdir(tmp_path / "made")
    assert {preset, parent} <= set(run("list").out.split())
    checked = run("check", "--strict")
    assert checked.code == 0, checked.out
    rendered = run("render", preset, "--to", target, "-o", tmp_path / "out")
    assert rendered.code == 0, rendered.err


def test_without_a_terminal_the_sample_is_that_of_tensorflow(tmp_path: Path, run: Run) -> None:
    assert run("init", "made").code == 0
    assert run("init", "named", "--sample", "tensorflow").code == 0
    assert files(tmp_path / "made") == files(tmp_path / "named")
    assert run("init", "other", "--sample", "jax").code == 2


@pytest.mark.parametrize(
    ("typed", "asked", "preset"),
    [
        ("\n", 1, "bert-training"),
        ("vllm\n", 1, "vllm-serving"),
        ("what\n TORCH \n", 2, "torch-pretraining"),
        ("\x04", 1, "bert-training"),
    ],
    ids=["the default", "a name", "another try", "the end of input"],
)
def test_on_a_terminal_init_asks_for_the_sample(
    typed: str, asked: int, preset: str, tmp_path: Path
) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "npuprof", "init", "made"]
    os.write(master, typed.encode())
    child = subprocess.Popen(
        command, stdin=slave, stdout=subprocess.DEVNULL, stderr=slave, cwd=tmp_path
    )
    os.close(slave)
    output = b""
    while True:
        try:
            read = os.read(master, 4096)
        except OSError:  # the end, on Linux
            break
        if not read:
            break
        output += read
    os.close(master)
    assert child.wait() == 0, output
    assert output.count(b"sample presets: tensorflow, torch, vllm [tensorflow]") == asked
    assert (tmp_path / f"made/profiles/{preset}.toml").exists(), output


def test_one_file_in_the_way_stops_all(tmp_path: Path, run: Run) -> None:
    other = tmp_path / "made/.github/workflows/presets.yml"
    other.parent.mkdir(parents=True)
    other.write_text("mine")
    result = run("init", "made", "--install", PIN)
    assert result.code == 2
    assert ".github/workflows/presets.yml exists already" in result.err
    assert files(tmp_path / "made") == [".github/workflows/presets.yml"]


@pytest.mark.parametrize(
    ("there", "folder", "what", "hint"),
    [
        pytest.param(
            {"profiles/a.toml": ""},
            "profiles/base",
            "lies in it: profiles",
            "npuprof list",
            id="in a store",
        ),
        pytest.param(
            {}, "profiles", "lies in it: profiles", "npuprof init .", id="where a store would be"
        ),
        pytest.param({"profiles/.keep": ""}, "profiles/new", "", "", id="in an empty folder"),
        pytest.param(
            {},
            "sub/profiles",
            "lies in it: sub/profiles",
            "npuprof init sub",
            id="where one would be below",
        ),
    ],
)
def test_no_store_is_laid_out_in_a_store_nor_where_one_would_be(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
    there: dict[str, str],
    folder: str,
    what: str,
    hint: str,
) -> None:
    made = Repo(tmp_path / "made")
    for name, text in there.items():
        (made.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (made.folder / name).write_text(text)
    monkeypatch.chdir(made.folder)
    before = files(made.folder)
    result = run("init", folder)
    assert result.code == (2 if what else 0), result.err
    if what:
        assert what in result.err
        assert hint in result.err
        assert files(made.folder) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--ci gitlub", "gitlab"),
        ("--ci github", "NP063"),
        (f"--ci none --install {PIN}", "NP902"),
    ],
)
def test_a_ci_that_cannot_be_written_is_refused(
    arguments: str, message: str, run: Run, tmp_path: Path
) -> None:
    result = run("init", "made", *arguments.split())
    assert result.code == 2, result.err
    assert message in result.err, result.err
    assert not (tmp_path / "made").exists(), result.err


def test_this_repository_uses_what_it_hands_out() -> None:
    action = (REPOSITORY / ".github/actions/presets/action.yml").read_text()
    template = (REPOSITORY / "npuprof/templates/github-action.yml").read_text()
    own = '"$GITHUB_ACTION_PATH/../../.." # the npuprof that this action belongs to'
    assert action == template.replace("@REQUIREMENT@", own)
    assert (
        "uses: ./.github/actions/presets"
        in (REPOSITORY / ".github/workflows/presets.yml").read_text()
    )
    assert (
        "profiles/**/*.toml diff=npuprof merge=npuprof"
        in (REPOSITORY / ".gitattributes").read_text().splitlines()
    )


# -- what CI installs -----------------------------------------------------------------------------


def test_without_a_pin_plain_init_leaves_ci_out_and_says_how_to_add_it(
    tmp_path: Path, run: Run
) -> None:
    result = run("init", "made")
    assert result.code == 0
    assert "no CI is among them" in result.err
    assert "npuprof init --ci github --install" in result.err
    assert not (tmp_path / "made/.github").exists()
    result = run("init", "made", "--ci", "github", "--install", PIN)
    assert result.code == 0, result.err
    assert (
        f"pip install --quiet 'npuprof @ {PIN}'"
        in (tmp_path / "made/.github/actions/presets/action.yml").read_text()
    )


@pytest.mark.parametrize(
    "address",
    [
        pytest.param(f"npuprof @ {PIN}", id="a named requirement"),
        pytest.param(
            f"git+ssh://git@git.example.org/tools/npuprof@{COMMIT}#subdirectory=python/npuprof",
            id="git over ssh with a subdirectory",
        ),
        pytest.param(
            "https://files.example.org/npuprof-0.1.0-py3-none-any.whl#sha256=" + "0" * 64,
            id="a wheel with its hash",
        ),
    ],
)
def test_what_is_installed_comes_out_of_yaml_and_shell_as_it_went_in(
    tmp_path: Path, run: Run, address: str
) -> None:
    ci, path = (
        ("gitlab", ".gitlab/presets.yml")
        if "whl" in address
        else ("github", ".github/actions/presets/action.yml")
    )
    assert run("init", "made", "--ci", ci, "--install", address).code == 0
    result = yaml.safe_load((tmp_path / "made" / path).read_text())
    line = (
        result["presets"]["script"][0]
        if ci == "gitlab"
        else next(s["run"] for s in result["runs"]["steps"] if "pip" in s.get("run", ""))
    )
    arguments = shlex.split(line.removeprefix("(").removesuffix(")"))
    program = ["cd", "/", "&&", "python", "-I", "-m", "pip", "install", "--quiet"]
    assert arguments == [*program, f"npuprof @ {address.removeprefix('npuprof @ ')}"]


#: What tells a job, or the author of one, how to install npuprof in a checkout of somebody's
#: branch.
INSTALLING = (
    "npuprof/templates/github-action.yml",
    "npuprof/templates/gitlab-ci.yml",
    "npuprof/docs/guides/pull-requests.md",
    ".github/actions/presets/action.yml",
    ".github/workflows/release.yml",
)
TRAP = (
    "import os\nopen(os.path.join(os.path.dirname(os.path.abspath(__file__)), "
    "'trapped'), 'w').close()\n"
)


@pytest.mark.parametrize("file", INSTALLING)
def test_a_step_that_installs_runs_no_module_of_the_branch(tmp_path: Path, file: str) -> None:
    calls = re.findall(
        r"^[^#\n]*?\bpython3?((?: -\w+)*) -m (\w+)", (REPOSITORY / file).read_text(), re.MULTILINE
    )
    assert calls
    for name in ("json", "runpy", "sitecustomize", "typing", *{module for _, module in calls}):
        (tmp_path / f"{name}.py").write_text(TRAP)
    for flags, module in calls:
        subprocess.run(
            [sys.executable, *flags.split(), "-m", module, "--help"],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert not (tmp_path / "trapped").exists(), f"python{flags} -m {module}"


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_no_folder_of_the_branch_is_taken_for_the_requirement(
    tmp_path: Path, run: Run, kind: str
) -> None:
    """pip reads `npuprof @ git+https://...` as a path first, with one slash where there are two."""
    assert (
        run(
            "init", "made", "--ci", kind, "--install", f"git+https://127.0.0.1:9/npuprof@{COMMIT}"
        ).code
        == 0
    )
    texts = [path.read_text() for path in (tmp_path / "made").rglob("*.yml")]
    (line,) = {
        match for text in texts for match in re.findall(r"(?:run: |  - )(.*-m pip install.*)", text)
    }
    (requirement,) = re.findall(r"'(npuprof @ [^']+)'", line)
    folder = tmp_path / "made" / os.path.normpath(requirement)
    folder.mkdir(parents=True)
    (folder / "setup.py").write_text(TRAP)
    arguments = line.replace("python -I", f"{sys.executable} -I")
    done = subprocess.run(
        ["bash", "-c", arguments],
        cwd=tmp_path / "made",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "https://127.0.0.1:9/npuprof" in done.stderr
    assert not (folder / "trapped").exists()


@pytest.mark.parametrize(
    "address",
    [
        "npuprof",
        ".",
        "git+https://git.example.org/tools/npuprof@main",
        f"git+http://git.example.org/tools/npuprof@{COMMIT}",
        f"{PIN}\n    - run: touch x",
        f"git+https://git.example.org/$(touch x)@{COMMIT}",
        "https://files.example.org/npuprof-0.1.0-py3-none-any.whl",
        f"git+https://ada:hunter2@git.example.org/npuprof@{COMMIT}",
        f"git+https://hunter2@git.example.org/npuprof@{COMMIT}",
    ],
)
def test_what_pins_nothing_or_is_more_than_an_address_is_refused(
    tmp_path: Path, run: Run, address: str
) -> None:
    result = run("init", "made", "--ci", "github", "--install", address)
    assert result.code == 2
    assert "NP063" in result.err
    assert "hunter2" not in result.err
    assert not (tmp_path / "made").exists()


GIT = {"vcs": "git", "commit_id": COMMIT}
HASH = "f" * 64
RECORDS = [
    pytest.param(
        {"url": "https://git.example.org/npuprof", "vcs_info": GIT},
        f"git+https://git.example.org/npuprof@{COMMIT}",
        id="git over https",
    ),
    pytest.param(
        {"url": "https://git.example.org/n", "vcs_info": GIT, "subdirectory": "python"},
        f"git+https://git.example.org/n@{COMMIT}#subdirectory=python",
        id="git with a subdirectory",
    ),
    pytest.param(
        {"url": "https://ada:hunter2@git.example.org/n", "vcs_info": GIT},
        f"git+https://git.example.org/n@{COMMIT}",
        id="git with a password",
    ),
    pytest.param(
        {"url": "https://x.example.org/n.whl", "archive_info": {"hashes": {"sha256": HASH}}},
        f"https://x.example.org/n.whl#sha256={HASH}",
        id="wheel with hashes",
    ),
    pytest.param(
        {"url": "https://x.example.org/n.tar.gz", "archive_info": {"hash": f"sha256={HASH}"}},
        f"https://x.example.org/n.tar.gz#sha256={HASH}",
        id="sdist with a hash",
    ),
    pytest.param(
        {
            "url": "https://x.example.org/n.whl?token=hunter2",
            "archive_info": {"hashes": {"sha256": HASH}},
        },
        "",
        id="wheel with a token in its query",
    ),
    pytest.param(
        {"url": "https://x.example.org/n.whl", "archive_info": {}}, "", id="wheel without a hash"
    ),
    pytest.param({"url": "ssh://git@git.example.org/n", "vcs_info": GIT}, "", id="git over ssh"),
    pytest.param(
        {"url": "https://git.example.org/n", "vcs_info": {"vcs": "hg", "commit_id": COMMIT}},
        "",
        id="Mercurial",
    ),
    pytest.param(
        {"url": "https://git.example.org/n", "vcs_info": {**GIT, "commit_id": "main"}},
        "",
        id="git without a commit",
    ),
]


@pytest.mark.parametrize(("record", "address"), RECORDS)
def test_the_record_of_an_installation_tells_what_others_can_install(
    record: Any, address: str
) -> None:
    assert installed.read_direct_url(json.dumps(record)) == (
        f"npuprof @ {address}" if address else ""
    )


def test_ci_installs_npuprof_as_this_one_was(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = json.dumps({"url": "https://ada:hunter2@git.example.org/npuprof", "vcs_info": GIT})
    for content, place, code in (
        (record, REPOSITORY, 0),
        (None, REPOSITORY, 2),
        (record, tmp_path, 2),
    ):
        found = SimpleNamespace(
            locate_file=place.joinpath, read_text={"direct_url.json": content}.get
        )
        monkeypatch.setattr("importlib.metadata.distribution", {"npuprof": found}.__getitem__)
        assert run("init", f"made{code}", "--ci", "gitlab").code == code
        assert (
            ".github/workflows/presets.yml" in run("init", f"plain{place == tmp_path}{code}").out
        ) == (not code)
    text = (tmp_path / "made0/.gitlab/presets.yml").read_text()
    assert f"'npuprof @ git+https://git.example.org/npuprof@{COMMIT}'" in text
    assert "hunter2" not in text
