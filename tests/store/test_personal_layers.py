"""Personal layers: four verbs overlay a shared preset with them and report it; others do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npuprof.store import spec
from npuprof.store.personal_layers import find_personal_file
from support.repositories import Repo
from support.running import Run, expect

BASE = '[profile]\nscenario = "training"\n[options]\nhccl_timeout = 1800\n'
LEAF = (
    '[profile]\ndescription = "shared"\nextends = ["base"]\nlocked = ["graph_run_mode"]\n'
    "[options]\ndeterministic = 1\ngraph_run_mode = 1\n"
)
MIXIN = "[options]\nop_compiler_cache_mode = 'enable'\n"
LAYER = "[options]\nhccl_timeout = 99\n"


@pytest.fixture
def team(repo: Repo) -> Repo:
    repo.commit({"base": BASE, "leaf": LEAF, "mixin": MIXIN})
    return repo


def find_layer(name: str = "leaf") -> Path:
    return Path(find_personal_file(spec.Workspace().profile(name)))


def write_layer(text: str, name: str = "leaf") -> Path:
    path = find_layer(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("arguments", "with_layer", "without"),
    [
        (("show", "leaf"), "hccl_timeout = 99\n", "hccl_timeout = 1800\n"),
        (("show", "leaf", "--format", "json"), '"hccl_timeout": 99', '"hccl_timeout": 1800'),
        (("explain", "leaf", "hccl_timeout"), "overridden   1800 of base", "hccl_timeout = 1800\n"),
        (("env", "leaf"), "NPUPROF_HCCL_TIMEOUT='99'", "NPUPROF_HCCL_TIMEOUT='1800'"),
        (
            ("env", "leaf", "--format", "dotenv"),
            "NPUPROF_HCCL_TIMEOUT='99'",
            "NPUPROF_HCCL_TIMEOUT='1800'",
        ),
        (("show", "leaf", "--with", "mixin"), "hccl_timeout = 99\n", "hccl_timeout = 1800\n"),
        (("show", "mixin+leaf"), "hccl_timeout = 99\n", "hccl_timeout = 1800\n"),
    ],
)
def test_four_verbs_lay_it_over_and_say_so(
    arguments: tuple[str, ...], with_layer: str, without: str, team: Repo, run: Run
) -> None:
    path = write_layer(LAYER)
    done = run(*arguments)
    assert done.code == 0, done
    assert with_layer in done.out, done
    output = (
        f"npuprof: a personal layer is applied: hccl_timeout ({path}); --no-personal omits it\n"
    )
    assert done.err == output
    done = run(*arguments, "--no-personal")
    assert done.code == 0
    assert without in done.out
    assert done.err == ""


def test_run_takes_it_too_and_its_digest_is_of_what_is_in_force(
    team: Repo, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    from npuprof.commands import run as verb

    path = write_layer(LAYER)
    seen: list[dict[str, str]] = []
    monkeypatch.setattr(
        "npuprof.commands.run.require_lone_thread", lambda: None
    )  # other tests may have left threads
    monkeypatch.setattr(
        verb,
        "_become_command",
        lambda command, environment: seen.append(environment) or verb.Answer(),
    )
    done = run("run", "leaf", "--", "true")
    assert done.code == 0
    assert str(path) in done.err
    run("run", "leaf", "--no-personal", "--", "true")
    assert [environ["NPUPROF_HCCL_TIMEOUT"] for environ in seen] == ["99", "1800"]
    shown = [
        json.loads(run("show", "leaf", "--format", "json", *arguments).out)["digest"]
        for arguments in ((), ("--no-personal",))
    ]
    assert [environ["NPUPROF_DIGEST"] for environ in seen] == shown
    assert (
        shown[0]
        == json.loads(run("render", "leaf", "--to", "json", "--set", "hccl_timeout=99").out)[
            "digest"
        ]
    )
    assert {environ["NPUPROF_PROFILE"] for environ in seen} == {"leaf"}


#: Verbs that read no personal layer.
SHARED = (
    "check",
    "check leaf",
    "list",
    "list --where hccl_timeout==99",
    "render leaf --to json",
    "diff",
    "diff leaf base",
    "diff --rev HEAD",
    "log leaf",
    "blame leaf",
    "commit --dry-run",
    "release leaf --dry-run",
    "set leaf deterministic=0 --dry-run",
    "show leaf@HEAD",
    "env leaf@HEAD",
    "show base",
)


@pytest.mark.parametrize("arguments", SHARED)
def test_nothing_else_reads_it(arguments: str, team: Repo, run: Run) -> None:
    before = run(*arguments.split())
    path = write_layer("[[[ broken")
    assert run(*arguments.split()) == before
    path.write_text(LAYER)
    assert run(*arguments.split()) == before
    assert team.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("[[[ broken", "NP001", ":1:"),
        ('[profile]\nextends = ["gone"]\n', "NP101", "extends 'gone'"),
        ('[profile]\nscenario = "offline-inference"\n', "NP", "offline-inference"),
        ("[optoins]\nx = 1\n", "NP006", "optoins"),
        ("\xff", "NP002", "UTF-8"),
    ],
)
def test_a_broken_one_is_an_error_that_names_it_and_the_way_without(
    text: str, code: str, expected: str, team: Repo, run: Run
) -> None:
    path = write_layer("")
    path.write_bytes(text.encode("latin-1"))
    for arguments in ("show leaf", "explain leaf hccl_timeout", "env leaf", "run leaf -- true"):
        assert expect(
            run(*arguments.split()), 2, code, expected, f"{path}: error NP055", "--no-personal"
        ).startswith(("error NP", str(path)))
    assert run("show", "leaf", "--no-personal").code == 0
    path.write_text(LAYER)
    team.write({"base": "[optoins]\n"})
    assert "NP055" not in expect(run("show", "leaf"), 2, "NP006"), (
        "nor is it blamed for a fault of the shared preset"
    )


def test_what_the_preset_locks_stays_locked_where_it_is_exported(team: Repo, run: Run) -> None:
    path = write_layer("[options]\ngraph_run_mode = 0\n")
    expect(run("env", "leaf"), 2, f"{path}:2:1: error", "--no-personal")


def test_mixins_and_the_command_line_come_after_it(team: Repo, run: Run) -> None:
    write_layer("[options]\nhccl_timeout = 99\nop_compiler_cache_mode = 'disable'\n")
    assert "hccl_timeout = 5\n" in run("show", "leaf", "--set", "hccl_timeout=5").out
    assert 'op_compiler_cache_mode = "enable"' in run("show", "leaf", "--with", "mixin").out
    assert 'op_compiler_cache_mode = "disable"' in run("show", "leaf").out
    assert 'description = "shared"' in run("show", "leaf").out


def test_it_may_unset_and_extend_and_all_of_that_is_told(team: Repo, run: Run) -> None:
    write_layer('[profile]\nunset = ["deterministic"]\nextends = ["mixin"]\n')
    done = run("show", "leaf")
    assert (
        "a personal layer is applied: op_compiler_cache_mode, deterministic (unset) (" in done.err
    )
    assert "deterministic" not in done.out


def test_an_abstract_preset_stays_abstract_under_it(team: Repo, run: Run) -> None:
    team.write({"base": BASE.replace("[options]", "abstract = true\n[options]")})
    write_layer(LAYER, "base")
    expect(run("env", "base"), 2, "NP107")


def test_what_it_sets_to_be_executed_needs_no_trust_and_what_the_store_sets_does(
    team: Repo, run: Run
) -> None:
    write_layer('[env]\nLD_PRELOAD = "/mine.so"\n')
    assert "LD_PRELOAD='/mine.so'" in run("env", "leaf").out
    team.write({"leaf": LEAF + '[env]\nPYTHONPATH = "/theirs"\n'})
    done = run("env", "leaf")
    assert done.code == 2
    assert "env.PYTHONPATH" in done.err
    assert "env.LD_PRELOAD =" not in done.err


def test_presets_of_one_name_in_two_projects_do_not_meet(
    team: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_layer(LAYER)
    other = Repo(team.folder.parent / "elsewhere" / team.folder.name)
    other.commit({"base": BASE, "leaf": LEAF})
    monkeypatch.chdir(other.folder)
    assert "hccl_timeout = 1800" in run("show", "leaf").out
    assert find_layer().parent.parent == path.parent.parent
    assert find_layer() != path


def test_set_and_unset_write_it_and_judge_it_over_the_preset(team: Repo, run: Run) -> None:
    path = find_layer()
    done = run("set", "--personal", "leaf", "hccl_timeout=600", "--dry-run")
    assert done.code == 0
    assert f"+++ b{path}\n" in done.out
    assert not (path.exists())
    expect(
        run("set", "--personal", "leaf", "hccl_timeout=600"),
        0,
        f"wrote {path}, which show, explain, env and run apply over leaf",
    )
    assert path.read_text() == "[options]\nhccl_timeout = 600\n"
    for arguments in (("hccl_timeout=abc",), ("graph_run_mode=0",), ("hccl_timeoot=1",)):
        expect(run("set", "--personal", "leaf", *arguments), 2, "nothing written")
    assert run("unset", "--personal", "leaf", "deterministic").code == 0
    assert (
        path.read_text()
        == '[profile]\nunset = ["deterministic"]\n\n[options]\nhccl_timeout = 600\n'
    )
    assert (
        "leaf neither sets nor inherits dump_path"
        in run("unset", "--personal", "leaf", "dump_path").err
    )
    assert run("unset", "--personal", "leaf", "hccl_timeout").code == 0
    assert "hccl_timeout" not in path.read_text()
    assert "hccl_timeout = 1800" in run("show", "leaf").out, "what is shared is in force again"
    assert run("unset", "--personal", "leaf", "hccl_timeout").code == 0
    assert "hccl_timeout" not in run("show", "leaf").out, (
        "what the layer does not set is laid over with an unset"
    )
    assert team.git("status", "--porcelain") == ""


@pytest.mark.parametrize("requested", ["leaf@HEAD", "leaf+mixin", "-", "mine.toml"])
def test_there_is_none_over_what_is_no_preset_of_the_work_tree(
    requested: str, team: Repo, run: Run
) -> None:
    (team.folder / "mine.toml").write_text(MIXIN)
    expect(
        run("set", "--personal", requested, "hccl_timeout=1", stdin=MIXIN.encode()),
        2,
        "there is no personal layer over",
    )


def test_a_relative_config_folder_is_not_taken(team: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "profiles")
    assert str(find_layer()).startswith(str(Path.home() / ".config/npuprof/personal"))
