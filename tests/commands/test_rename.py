"""``rename`` and ``copy``: references follow the preset, and every preset resolves as before."""

from __future__ import annotations

from pathlib import Path

import pytest

import npuprof
from npuprof.model import NpuprofError
from support.repositories import Repo
from support.running import Run

BASE = (
    '# first\n[profile]\ndescription = "base" # it\n'
    'scenario = "training"\n\n[options]\nhccl_timeout = 1836\n'
)
PRESETS = {
    "base/old": BASE,
    "child": (
        "[profile]\nextends = [ # why\n  'base/old', # this\n"
        '  "mix",\n]\n[options]\ndeterministic = 1\n'
    ),
    "mix": "[options]\ngraph_run_mode = 1\n",
    "other": 'profile.extends = ["""base/old"""] # c\r\n',
    "near": '[profile]\nextends = ["base/older"]\n',
    "base/older": "[options]\nhccl_timeout = 600\n",
}


@pytest.fixture
def project(repo: Repo) -> Path:
    repo.commit(PRESETS)
    return repo.folder


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if ".git" not in path.parts and path.is_file()
    }


def digests(folder: Path) -> dict[str, tuple[str, str]]:
    store = npuprof.open_store(folder)
    found = {}
    for name in store:
        try:
            config = store.resolve(name)
        except NpuprofError:
            continue
        found[name] = (config.digest, config.preset_digest)
    return found


# -- rename ---------------------------------------------------------------------------------------


def test_the_file_and_what_extends_it_have_the_new_name_and_all_else_stays(
    project: Path, run: Run, repo: Repo
) -> None:
    before, was = content(project), digests(project / "profiles")
    tried = run("rename", "base/old", "team/new", "--dry-run")
    assert tried.code == 0, tried.err
    assert content(project) == before, tried.err
    done = run("rename", "base/old", "team/new")
    assert done.code == 0
    assert done.out == tried.out
    expected = {
        name: raw.replace(b"'base/old'", b'"team/new"').replace(b'"""base/old"""', b'"team/new"')
        for name, raw in before.items()
    }
    expected = {name: raw.replace(b'"base/old"', b'"team/new"') for name, raw in expected.items()}
    expected["profiles/team/new.toml"] = expected.pop("profiles/base/old.toml")
    assert content(project) == expected
    was["team/new"] = was.pop("base/old")
    assert digests(project / "profiles") == was
    assert "renamed base/old to team/new, also in 2 other files" in done.err
    repo.git("add", "-A")
    assert "R100\tprofiles/base/old.toml\tprofiles/team/new.toml" in repo.git(
        "diff", "--cached", "-M", "--name-status"
    )
    repo.git("reset", "-q", "--hard")
    repo.git("apply", "-", stdin=done.out.encode())
    assert content(project) == expected


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("base/old", "mix"), "NP923"),
        (("base/old", "base/old"), "NP923"),
        (("base/old", "../out"), "NP004"),
        (("base/odl", "new"), "NP008"),
        (("base/old+mix", "new"), "NP004"),
        (("bert-training", "new", "--store", "builtin:"), "NP920"),
        (("link", "new"), "NP920"),
    ],
)
def test_what_cannot_be_renamed_is_refused(
    arguments: tuple[str, ...], code: str, project: Path, run: Run
) -> None:
    (project / "profiles" / "link.toml").symlink_to("mix.toml")
    before = content(project)
    result = run("rename", *arguments)
    assert result.code == 2, result.err
    assert code in result.err, result.err
    assert content(project) == before


@pytest.mark.parametrize(
    "arguments", [("new", "npuprof"), ("copy", "a", "npuprof"), ("rename", "a", "npuprof")]
)
def test_the_file_of_the_project_is_no_preset_where_the_store_is_the_top(
    arguments: tuple[str, ...], repo: Repo, run: Run
) -> None:
    (repo.folder / "a.toml").write_text(BASE)
    result = run(*arguments, "--store", repo.folder)
    assert result.code == 2, result.err
    assert "NP004" in result.err, result.err
    assert not (repo.folder / "npuprof.toml").exists()


def test_a_preset_that_cannot_be_read_stands_in_the_way_unless_it_is_left(
    project: Path, run: Run
) -> None:
    (project / "profiles" / "broken.toml").write_text("[profile\n")
    result = run("rename", "mix", "new")
    assert result.code == 2
    assert "broken.toml" in result.err
    assert "--no-check" in result.err
    result = run("rename", "mix", "new", "--no-check")
    assert result.code == 0
    assert "broken.toml" in result.err
    assert (project / "profiles" / "new.toml").exists()


def test_a_pin_keeps_the_name_that_its_revision_has(project: Path, run: Run, repo: Repo) -> None:
    repo.release("base/old", "1.0.0")
    repo.commit(
        {
            "pinned": "[profile]\nextends = ['base/old@1.0.0']\n",
            "both": "[profile]\nextends = ['base/old']\n",
        }
    )
    was = digests(project / "profiles")
    result = run("rename", "base/old", "new")
    assert result.code == 0, result.err
    assert "base/old@1.0.0" in (project / "profiles" / "pinned.toml").read_text()
    assert "profiles/pinned.toml:2 keeps base/old@1.0.0" in result.err
    was["new"] = was.pop("base/old")
    assert digests(project / "profiles") == was


PROJECT = """\
presets = ["jobs/*/preset.toml", "single.toml"]
[[rule]]
code = "TEAM-1"
require = "hccl_timeout == 1836"
presets = ["mix", 'base/old'] # both
[[rule]]
code = "TEAM-2"
require = "hccl_timeout == 1836"
presets = ["base/*"]
[[ignore]]
code = "NP378"
reason = "so"
presets = ["base/old"]
"""


def test_what_the_project_says_of_it_by_name_goes_with_it(project: Path, run: Run) -> None:
    (project / "npuprof.toml").write_text(PROJECT)
    result = run("rename", "base/old", "new")
    assert result.code == 0, result.err
    assert (project / "npuprof.toml").read_text() == PROJECT.replace("'base/old'", '"new"').replace(
        "base/old", "new"
    )


@pytest.mark.parametrize("arguments", [("jobs/x/preset", "elsewhere"), ("mix", "jobs/y/preset")])
def test_a_preset_outside_the_store_is_not_renamed(
    arguments: tuple[str, ...], project: Path, run: Run
) -> None:
    (project / "npuprof.toml").write_text(PROJECT)
    (project / "jobs/x").mkdir(parents=True)
    (project / "jobs/x/preset.toml").write_text(BASE)
    result = run("rename", *arguments)
    assert result.code == 2
    assert "NP920" in result.err
    assert "git mv" in result.err


SCRIPT = (
    "#!/bin/bash\necho before\n  # >>> npuprof {spec} >>>\n  # <<< npuprof{end} <<<\necho after\n"
)


def test_marked_blocks_go_with_it_and_stay_up_to_date(project: Path, run: Run, repo: Repo) -> None:
    blocks = {
        "own.sh": "base/old",
        "heir.sh": "child",
        "stack.sh": "child+base/old",
        "pin.sh": "base/old@HEAD",
        "apart.sh": "mix",
    }
    assert blocks
    for name, spec in blocks.items():
        (project / name).write_text(SCRIPT.format(spec=spec, end=f" {spec}"))
        assert run("inject", name, spec).code == 0
    (project / "empty.sh").write_text(SCRIPT.format(spec="base/old", end=" base/old"))
    (project / "edited.sh").write_text((project / "own.sh").read_text().replace("1836", "1837"))
    edited = (project / "edited.sh").read_text()
    repo.git("add", "-A")
    result = run("rename", "base/old", "new")
    assert result.code == 0, result.err
    assert blocks
    for name, spec in blocks.items():
        assert (
            f"# >>> npuprof {spec if '@' in spec else spec.replace('base/old', 'new')} >>>"
            in (project / name).read_text()
        )
        checked = run("inject", name, "--check")
        assert checked.code == 0, (name, checked.out)
    assert (project / "empty.sh").read_text() == SCRIPT.format(spec="new", end=" new")
    assert (project / "edited.sh").read_text() == edited.replace(
        ">>> npuprof base/old >>>", ">>> npuprof new >>>"
    )


# -- copy -----------------------------------------------------------------------------------------


def test_a_copy_has_the_text_and_nothing_refers_to_it(project: Path, run: Run) -> None:
    before = content(project)
    result = run("copy", "base/old", "team/new")
    assert result.code == 0, result.err
    assert content(project) == {**before, "profiles/team/new.toml": BASE.encode()}
    assert "npuprof set team/new profile.description=TEXT" in result.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("base/old", "mix"), "NP923"),
        (("base/odl", "new"), "NP008"),
        (("base/old+mix", "new"), "NP920"),
    ],
)
def test_what_cannot_be_copied_is_refused(
    arguments: tuple[str, ...], code: str, project: Path, run: Run
) -> None:
    before = content(project)
    result = run("copy", "--", *arguments)
    assert result.code == 2, result.err
    assert code in result.err, result.err
    assert content(project) == before
