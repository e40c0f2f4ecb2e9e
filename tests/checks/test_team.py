"""Team rules in npuprof.toml: their faults, and their evaluation wherever rules are checked.

They are read from the tree that is checked.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import npuprof
from npuprof.document.policy import is_name_meant
from npuprof.model import NpuprofError
from npuprof.store.project import parse_project
from npuprof.store.teamrules import find_name_glob_fault
from support.building import REPOSITORY
from support.repositories import Repo
from support.running import Run

REPEATABLE = """[[rule]]
code = "TEAM-1"
when = "scenario == 'training'"
require = "deterministic == 1"
message = "training is repeatable"
presets = ["production/*"]
"""
SHORT = '[[rule]]\ncode = "TEAM-2"\nrequire = "hccl_timeout <= 1800"\nseverity = "warning"\n'
TRAINING = '[profile]\nscenario = "training"\n'


def rule(require: str, **more: str) -> str:
    return "".join(
        f"{name} = '''{text}'''\n"
        for name, text in {"code": "TEAM-1", "require": require, **more}.items()
    )


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """Lay out presets with an npuprof.toml beside their store."""

    def build(tables: str, **presets: str) -> Path:
        (tmp_path / "npuprof.toml").write_text(tables)
        Repo(tmp_path, init=False).write(
            {name.replace("__", "/"): text for name, text in presets.items()}
        )
        return tmp_path

    return build


def list_messages(config: Any, code: str = "TEAM-1") -> list[str]:
    return [finding.message for finding in npuprof.check(config) if finding.code == code]


# -- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "message", "line"),
    [
        pytest.param(
            rule("deterministic == 1", code="NP999"),
            "codes that begin with NP are npuprof's own",
            2,
            id="code of npuprof",
        ),
        pytest.param(
            rule("deterministic == 1", code="1 x"),
            "a code is a letter with letters",
            2,
            id="code with a blank",
        ),
        pytest.param(
            'require = "deterministic == 1"\n', "'code' is missing in [rule]", 1, id="no code"
        ),
        pytest.param(
            rule("deterministic"), "deterministic is not a condition", 3, id="a name alone"
        ),
        pytest.param(
            rule("1 == 1"), "has the same result for every preset", 3, id="constant condition"
        ),
        pytest.param(rule("deterministic = 1"), "is not a condition", 3, id="assignment"),
        pytest.param(
            rule("determinstic == 1"), "'determinstic' is no setting", 3, id="unknown setting"
        ),
        pytest.param(
            rule("deterministic == true"),
            "deterministic is a whole number, but is compared with true",
            3,
            id="value of another type",
        ),
        pytest.param(
            rule("deterministic == 1", when="__import__('os')"),
            "is not a condition",
            4,
            id="call in a condition",
        ),
        pytest.param(
            rule("deterministic == 1", message=""),
            "it is not one line of text",
            4,
            id="empty message",
        ),
        pytest.param(
            rule("deterministic == 1") + 'presets = ["a.toml"]\n',
            "the name of a preset has no .toml",
            4,
            id="file name of a preset",
        ),
        pytest.param(
            rule("deterministic == 1") + "mesage = 'x'\n",
            "did you mean 'message'?",
            4,
            id="unknown key",
        ),
    ],
)
def test_what_a_rule_cannot_say_is_told_at_its_place(table: str, message: str, line: int) -> None:
    with pytest.raises(NpuprofError) as raised:
        parse_project("npuprof.toml", f"[[rule]]\n{table}".encode())
    (finding,) = raised.value.findings
    assert finding.code == "NP040"
    assert finding.line == line
    assert message in f"{finding.message} {finding.hint}"


def test_all_faults_of_rules_are_told_at_once() -> None:
    with pytest.raises(NpuprofError) as raised:
        parse_project(
            "npuprof.toml",
            (
                b'[[rule]]\ncode = "NP1"\nrequire = "x"\n[[rule]]\n'
                b'severity = "no"\n[[rule]]\ncode = 1\nrequire = 1\n'
            ),
        )
    assert len(raised.value.findings) == 7


def test_two_rules_of_one_file_have_two_codes() -> None:
    with pytest.raises(NpuprofError, match=r"'team-1' is there already, in line 1"):
        parse_project(
            "npuprof.toml",
            (
                f"[[rule]]\n{rule('deterministic == 1')}[[rule]]\n"
                f"{rule('deterministic == 1', code='team-1')}"
            ).encode(),
        )


# -- judging --------------------------------------------------------------------------------------


class RequirementCase(NamedTuple):
    require: str
    when: str
    preset: str
    message: str | None


@pytest.mark.parametrize(
    ("require", "when", "preset", "message"),
    [
        pytest.param(
            *RequirementCase(
                require="deterministic == 1",
                when="",
                preset="options.deterministic = 1\n",
                message=None,
            ),
            id="required value",
        ),
        pytest.param(
            *RequirementCase(
                require="deterministic == 1",
                when="",
                preset="options.deterministic = 0\n",
                message="deterministic == 1 is required",
            ),
            id="another value",
        ),
        pytest.param(
            *RequirementCase(
                require="deterministic == 1",
                when="",
                preset="",
                message="deterministic == 1 is required: deterministic is not set",
            ),
            id="not set",
        ),  # whatever its default is
        pytest.param(
            *RequirementCase(
                require="dump_path is unset",
                when="",
                preset="",
                message=None,
            ),
            id="unset as required",
        ),
        pytest.param(
            *RequirementCase(
                require="dump_path is unset",
                when="",
                preset='options.dump_path = "/x"\n',
                message="dump_path is unset is required",
            ),
            id="set though it must be unset",
        ),
        pytest.param(
            *RequirementCase(
                require="hccl_timeout > 1 or deterministic == 1",
                when="",
                preset="options.deterministic = 1\n",
                message=None,
            ),
            id="one of two conditions",
        ),
        pytest.param(
            *RequirementCase(
                require="deterministic == 1",
                when="hccl_timeout > 10",
                preset="",
                message=None,
            ),
            id="rule without its condition",
        ),  # what is unset meets no condition
        pytest.param(
            *RequirementCase(
                require="deterministic == 1",
                when="hccl_timeout > 10",
                preset="options.hccl_timeout = 20\n",
                message="deterministic == 1 is required: deterministic is not set",
            ),
            id="rule with its condition",
        ),
        pytest.param(
            *RequirementCase(
                require="deterministic == 1",
                when="scenario == 'training'",
                preset="",
                message=None,
            ),
            id="rule of another scenario",
        ),
        pytest.param(
            *RequirementCase(
                require="env.MY_SITE == 'a'",
                when="",
                preset='env.MY_SITE = "b"\n',
                message="env.MY_SITE == 'a' is required",
            ),
            id="a variable",
        ),
        pytest.param(
            *RequirementCase(
                require="atc.framework in (1, 3)",
                when="",
                preset="atc.framework = 5\n",
                message="atc.framework in (1, 3) is required",
            ),
            id="a flag",
        ),
        pytest.param(
            *RequirementCase(
                require="product in ('atlas-a2', 'atlas-a3')",
                when="",
                preset="",
                message="product in ('atlas-a2', 'atlas-a3') is required: product is unknown",
            ),
            id="no product",
        ),
    ],
)
def test_what_is_required_must_be_true(
    require: str,
    when: str,
    preset: str,
    message: str | None,
    project: Callable[..., Path],
    run: Run,
) -> None:
    project(f"[[rule]]\n{rule(require, **({'when': when} if when else {}))}", a=preset)
    assert list_messages(npuprof.open_store().resolve("a")) == ([message] if message else [])


def test_a_sentence_of_the_team_goes_on_where_a_reason_follows(
    project: Callable[..., Path], run: Run
) -> None:
    project(
        f"[[rule]]\n{rule('deterministic == 1', message='Runs repeat.')}",
        a="",
        b="options.deterministic = 0\n",
    )
    store = npuprof.open_store()
    assert list_messages(store.resolve("a")) == ["Runs repeat: deterministic is not set"]
    assert list_messages(store.resolve("b")) == ["Runs repeat"]


def test_a_rule_binds_the_presets_that_its_globs_mean(
    project: Callable[..., Path], run: Run
) -> None:
    bad = f"{TRAINING}options.deterministic = 0\n".replace("options.", "[options]\n")
    folder = project(
        REPEATABLE,
        production__bert=bad,
        production__nlp__bert=bad,
        bert=bad,
        test__production__x=bad,
    )
    result = run("check", "--format", "json")
    found = {
        tuple(finding["profiles"]): finding
        for finding in json.loads(result.out)["findings"]
        if finding["code"] == "TEAM-1"
    }
    assert result.code == 1
    assert sorted(found) == [("production/bert",)]
    finding = found["production/bert",]
    assert finding["message"] == "training is repeatable"
    assert finding["severity"] == "error"
    assert finding["line"] == 4
    assert finding["key"] == "deterministic"
    assert (
        finding["why"]
        == "TEAM-1 in npuprof.toml requires deterministic == 1 where scenario == 'training'."
    )
    assert finding["hint"] == "write deterministic = 1"
    assert (folder / "profiles").is_dir()


def test_a_rule_is_judged_in_every_context_of_a_preset(project: Callable[..., Path]) -> None:
    project(
        SHORT,
        a=(
            'options.hccl_timeout = 600\n[[override]]\nmatch = { product = "atlas-a3" }\n'
            "options.hccl_timeout = 3600\n"
        ),
    )
    store = npuprof.open_store()
    assert list_messages(store.resolve("a"), "TEAM-2") == [
        "hccl_timeout <= 1800 is required on atlas-a3"
    ]
    assert list_messages(store.resolve("a", product="atlas-a2"), "TEAM-2") == []
    assert "hccl_timeout <= 1800 is required" in list_messages(
        store.resolve("a", set={"hccl_timeout": 2000}), "TEAM-2"
    )


def test_what_is_only_there_to_be_extended_breaks_no_rule(project: Callable[..., Path]) -> None:
    project(SHORT, a="profile.abstract = true\n", b='profile.extends = ["a"]\n')
    assert [len(list_messages(npuprof.open_store().resolve(name), "TEAM-2")) for name in "ab"] == [
        0,
        1,
    ]


def test_a_rule_binds_what_is_composed_of_a_preset_that_it_binds(
    project: Callable[..., Path], run: Run
) -> None:
    project(
        REPEATABLE,
        production__a=f"{TRAINING}[options]\ndeterministic = 1\n",
        mix="options.deterministic = 0\n",
    )
    assert run("check", "production/a").code == 0
    for arguments in (
        ("check", "production/a+mix"),
        ("render", "production/a", "--with", "mix", "--to", "session"),
    ):
        result = run(*arguments)
        assert "TEAM-1" in result.out + result.err, arguments


def test_an_export_and_an_edit_are_judged_by_the_rules(
    project: Callable[..., Path], run: Run
) -> None:
    folder = project(REPEATABLE, production__a=f"{TRAINING}[options]\ndeterministic = 1\n")
    for arguments in (
        ("render", "production/a", "--to", "session"),
        ("env", "production/a", "--shell", "bash"),
    ):
        assert run(*arguments).code == 0
        result = run(*arguments, "--set", "deterministic=0")
        assert result.code == 2
        assert result.out == ""
        assert "error TEAM-1: training is repeatable" in result.err
    before = (folder / "profiles/production/a.toml").read_text()
    refused = run("set", "production/a", "deterministic=0")
    assert refused.code == 2
    assert "TEAM-1" in refused.err
    assert (folder / "profiles/production/a.toml").read_text() == before


def test_a_pickled_config_keeps_the_rules(project: Callable[..., Path]) -> None:
    project(SHORT, a="")
    config = npuprof.open_store().resolve("a")
    assert (
        list_messages(pickle.loads(pickle.dumps(config)), "TEAM-2")
        == list_messages(config, "TEAM-2")
        != []
    )


SCRIPT = """import tensorflow as tf
config = tf.compat.v1.ConfigProto()
op = config.graph_options.rewrite_options.custom_optimizers.add()
op.name = "NpuOptimizer"
{lines}
session = tf.compat.v1.Session(config=config)
"""


def store_in_map(**values: str) -> str:
    return "\n".join(
        f'op.parameter_map["{name}"].{"s" if value[:1] == chr(34) else "i"} = {value}'
        for name, value in values.items()
    )


@pytest.mark.parametrize(
    ("requested", "lines", "broken"),
    [
        pytest.param(
            rule("deterministic == 1"), store_in_map(deterministic="1"), False, id="required value"
        ),
        pytest.param(
            rule("deterministic == 1"), store_in_map(deterministic="0"), True, id="another value"
        ),
        pytest.param(
            rule("deterministic == 1"), store_in_map(hccl_timeout="1836"), True, id="not set"
        ),  # all of the map is here
        pytest.param(
            rule("deterministic == 1"),
            store_in_map(hccl_timeout="1836") + "\nhelp(op)",
            False,
            id="map passed to other code",
        ),  # and here it may not be
        pytest.param(
            rule("deterministic == 1"),
            store_in_map(deterministic="flag"),
            False,
            id="value from a flag",
        ),  # nobody knows
        pytest.param(
            rule("deterministic == 1"),
            "if flag:\n    " + store_in_map(deterministic="0"),
            True,
            id="another value under a condition",
        ),
        pytest.param(
            rule("dump_path is unset"),
            store_in_map(dump_path='"/d"'),
            True,
            id="set though it must be unset",
        ),
        pytest.param(
            rule("hccl_timeout <= 1800", when="deterministic == 1"),
            store_in_map(deterministic="1", hccl_timeout="1836"),
            True,
            id="the rule applies",
        ),
        pytest.param(
            rule("hccl_timeout <= 1800", when="deterministic == 1"),
            store_in_map(hccl_timeout="1836"),
            False,
            id="the rule does not apply",
        ),
        pytest.param(
            rule("env.HCCL_WHITELIST_DISABLE == 1"),
            store_in_map(hccl_timeout="1836"),
            False,
            id="a variable",
        ),  # set elsewhere, if at all
        pytest.param(
            rule("deterministic == 1") + "presets = ['a']\n",
            store_in_map(deterministic="0"),
            False,
            id="a rule for one preset",
        ),  # of presets by name
    ],
)
def test_scripts_are_judged_by_the_rules_that_bind_all(
    requested: str, lines: str, broken: bool, project: Callable[..., Path], run: Run
) -> None:
    project(f"[[rule]]\n{requested}", a="")
    Path("s.py").write_text(SCRIPT.format(lines=lines))
    assert ("TEAM-1" in run("scan", "s.py", "--select", "TEAM-1").out) == broken


def test_shell_scripts_are_judged_by_rules(project: Callable[..., Path], run: Run) -> None:
    project(f"[[rule]]\n{rule('env.HCCL_WHITELIST_DISABLE == 1')}", a="")
    Path("s.sh").write_text("export HCCL_WHITELIST_DISABLE=0\n")
    assert "s.sh:1:8: error TEAM-1" in run("scan", "s.sh").out


def test_rules_that_cannot_be_read_stop_a_scan(project: Callable[..., Path], run: Run) -> None:
    project("[[rule]]\n", a="")
    Path("s.py").write_text(SCRIPT.format(lines=store_in_map(deterministic="0")))
    refused = run("scan", "s.py")
    assert refused.code == 2, refused
    assert "error NP040" in refused.out + refused.err, refused


def test_pages_and_codes_are_those_of_the_store_named(
    project: Callable[..., Path], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(SHORT, a="")
    (folder / "elsewhere").mkdir()
    (folder / "profiles").rename(folder / "other")
    monkeypatch.chdir(folder / "elsewhere")
    assert "TEAM-2 (warning)" in run("rule", "TEAM-2", "--store", folder / "other").out
    assert run("check", "--select", "TEAM-2", "--store", folder / "other").code == 0
    assert run("check", "--select", "TEAM-3", "--store", folder / "other").code == 2


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*", ["a"]),
        ("**", ["a", "p/a", "p/q/a", "p/q/r/b"]),
        ("p/*", ["p/a"]),
        ("p/**", ["p/a", "p/q/a", "p/q/r/b"]),
        ("**/a", ["a", "p/a", "p/q/a"]),
        ("p/**/b", ["p/q/r/b"]),
        ("*/q/*", ["p/q/a"]),
        ("p/q", []),
        ("p*", []),
    ],
)
def test_a_star_stays_within_a_segment_and_two_stand_for_any_number(
    glob: str, names: list[str]
) -> None:
    assert [
        name for name in ("a", "p/a", "p/q/a", "p/q/r/b") if is_name_meant((glob,), name)
    ] == names


@pytest.mark.parametrize(
    "glob", ["", "/a", "a/", "a//b", "../a", "a.toml", "a?", "[ab]", ".a", "a**"]
)
def test_what_is_no_glob_of_names_is_told(glob: str) -> None:
    assert find_name_glob_fault(glob)


# -- pages and formats ----------------------------------------------------------------------------


def test_the_page_of_a_rule_of_the_team_is_shown(project: Callable[..., Path], run: Run) -> None:
    project(REPEATABLE + SHORT)
    (Path.cwd() / "profiles").mkdir()
    for requested in ("TEAM-1", "team-1"):
        page = run("rule", requested)
        assert page.code == 0
        assert page.out.startswith("TEAM-1 (error): training is repeatable\n")
        assert "for production/*" in page.out
        assert "deterministic == 1" in page.out
    assert run("rule").out.endswith("TEAM-2  warning  hccl_timeout <= 1800 is required\n")
    assert "did you mean 'TEAM-2'" in run("rule", "TEAM-22").err
    assert json.loads(run("rule", "TEAM-1", "--format", "json").out)["severity"] == "error"


# -- versions -------------------------------------------------------------------------------------


def test_a_tree_is_judged_by_the_rules_that_it_holds(repo: Repo, run: Run) -> None:
    repo.commit({"production/a": TRAINING})
    (repo.folder / "npuprof.toml").write_text(REPEATABLE)
    repo.commit(message="rules")
    (repo.folder / "npuprof.toml").unlink()
    assert [
        run("check", *arguments).code
        for arguments in ((), ("--rev", "HEAD~1"), ("--rev", "HEAD"), ("production/a@HEAD",))
    ] == [0, 0, 1, 1]
    assert "TEAM-1" in run("diff", "--rev", "HEAD~1..HEAD").out
    assert "TEAM-1" not in run("diff", "--rev", "HEAD..HEAD").out


def test_a_commit_and_a_release_are_judged_by_the_rules(repo: Repo, run: Run) -> None:
    (repo.folder / "npuprof.toml").write_text(REPEATABLE)
    repo.commit(
        {"production/a": f"{TRAINING}[options]\ndeterministic = 1\n", "production/old": TRAINING}
    )
    repo.write({"production/a": f"{TRAINING}[options]\ndeterministic = 0\n"})
    refused = run("commit")
    assert refused.code == 2, refused.err
    assert "error TEAM-1: training is repeatable" in refused.err, refused.err
    assert run("release", "production/a", "1.0.0").code == 2  # what is there is not committed
    repo.git("checkout", "-q", ".")
    assert run("release", "production/a", "1.0.0").code == 0
    refused = run("release", "production/old", "1.0.0")
    assert refused.code == 2
    assert "TEAM-1" in refused.err


def test_a_merge_that_breaks_a_rule_of_the_team_is_a_conflict(repo: Repo, run: Run) -> None:
    table = f"[[rule]]\n{rule('deterministic == 1', when='hccl_timeout > 600')}"
    (repo.folder / "npuprof.toml").write_text(table)
    repo.commit({"a": "[options]\nhccl_timeout = 600\n\n\n\n\ndeterministic = 1\n"})
    program = f'"{sys.executable}" -m npuprof git merge-driver %O %A %B %P'
    repo.git("config", "merge.npuprof.driver", f"PYTHONPATH='{REPOSITORY}' {program}")
    (repo.folder / ".git/info/attributes").write_text("profiles/**/*.toml merge=npuprof\n")
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"a": "[options]\nhccl_timeout = 601\n\n\n\n\ndeterministic = 1\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "[options]\nhccl_timeout = 600\n\n\n\n\ndeterministic = 0\n"})
    merged = subprocess.run(
        ["git", "merge", "side"], cwd=repo.folder, capture_output=True, text=True, check=False
    )
    assert merged.returncode, merged.stdout
    assert "break TEAM-1" in merged.stdout + merged.stderr


# -- sources --------------------------------------------------------------------------------------


def test_a_rule_of_the_consumer_stands_in_place_of_one_of_the_source_with_its_code(
    repo: Repo, run: Run, tmp_path: Path
) -> None:
    team = Repo(tmp_path / "team")
    (team.folder / "npuprof.toml").write_text(SHORT)
    team.commit({"slow": "options.hccl_timeout = 3600\n"})
    repo.commit({"job": 'profile.extends = ["team:slow"]\n'})
    assert run("source", "add", "team", f"file://{team.folder}", "--rev", "main").code == 0
    path = repo.folder / "npuprof.toml"
    path.write_text(path.read_text() + "rules = true\n")
    assert "TEAM-2" in run("check", "job").out
    path.write_text(path.read_text() + SHORT.replace("1800", "7200"))
    assert "TEAM-2" not in run("check", "job").out


# -- who reads a key ------------------------------------------------------------------------------

READING = """\
[[rule]]
code = "TEAM-1"
when = "scenario == 'training'"
require = "hccl_timeout == 600"
message = "ten minutes"
[[rule]]
code = "TEAM-2"
require = "options.hccl_timeout is set or env.HCCL_ALGO is set"
[[rule]]
code = "TEAM-3"
require = "env.HCCL_ALGO is set"
presets = ["other/*"]
[[rule]]
code = "TEAM-4"
require = "product != 'atlas-a3'"
"""


@pytest.mark.parametrize(
    ("preset", "key", "codes"),
    [
        ("a", "hccl_timeout", ["TEAM-1", "TEAM-2"]),
        ("a", "HCCL_ALGO", ["TEAM-2"]),
        ("other/b", "HCCL_ALGO", ["TEAM-2", "TEAM-3"]),
        ("a", "profile.scenario", ["TEAM-1"]),
        ("a", "profile.owner", []),
    ],
)
def test_explain_lists_the_rules_of_the_team_that_bind_a_preset_and_read_a_key(
    preset: str, key: str, codes: list[str], project: Callable[..., Path], run: Run
) -> None:
    project(READING, a="", other__b="")
    shown = run("explain", preset, key)
    read = [
        line.split()[1].rstrip(":")
        for line in shown.out.splitlines()
        if line.startswith("  rules") and "TEAM" in line
    ]
    assert shown.code == 0, shown.out + shown.err
    assert read == codes, shown.out + shown.err
    fields = json.loads(run("explain", preset, key, "--format", "json").out)
    assert [code for code in fields["rules"] if code.startswith("TEAM")] == codes


@pytest.mark.parametrize(
    ("key", "codes", "exit_code"),
    [
        ("hccl_timeout", ["NP378", "NP379", "NP380", "TEAM-1", "TEAM-2"], 0),
        ("HCCL_ALGO", ["TEAM-2", "TEAM-3"], 0),
        ("scenario", ["TEAM-1"], 0),
        ("product", ["TEAM-4"], 0),
        ("nothing", [], 2),
    ],
)
def test_rule_lists_who_reads_a_key(
    key: str, codes: list[str], exit_code: int, project: Callable[..., Path], run: Run
) -> None:
    project(READING, a="")
    shown = run("rule", key)
    assert shown.code == exit_code, shown.err
    assert [
        line.split()[0] for line in shown.out.splitlines() if not line.startswith("code")
    ] == codes, shown.err
