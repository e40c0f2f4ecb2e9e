"""Variables that a team declares in npuprof.toml: read, judged, trusted, shown and completed."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

import npuprof
from npuprof.commands import completion
from npuprof.store.project import TEAM_KINDS, parse_project
from npuprof.store.project_schema import build_project_schema
from npuprof.store.trust_state import find_trust_file
from support.repositories import Repo
from support.running import Run, Store, expect
from support.teams import Team

DECLARED = """
[variables.MY_BACKEND]
kind = "enum"
values = ["fast", "exact"]
doc = "Picks the kernels of our loader."

[variables.MY_COUNT]
kind = "int"
min = 1
max = 8
[variables.MY_SHARE]
kind = "float"
max = 1.5
[variables.MY_SWITCH]
kind = "bool"
[variables.MY_CACHE]
kind = "path"
[variables.MY_NOTE]
kind = "str"
"""
PRESET = '[profile]\nscenario = "training"\n[env]\n{}\n'


@pytest.fixture
def declare(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store whose npuprof.toml declares variables; its path."""
    folder = store({"a": PRESET.format('MY_BACKEND = "fast"\nMY_COUNT = 3')})
    (folder.parent / "npuprof.toml").write_text(DECLARED)
    monkeypatch.chdir(folder.parent)
    return folder


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('LD_PRELOAD = { kind = "path" }', "it affects execution: the dynamic linker"),
        ('HTTP_PROXY = { kind = "str" }', "it affects execution"),
        ('HCCL_BUFFSIZE = { kind = "int" }', "env.HCCL_BUFFSIZE cannot be declared: the cat"),
        ('MASTER_ADDR = { kind = "str" }', "env.MASTER_ADDR cannot be declared"),
        ('NPUPROF_X = { kind = "int" }', "it is a variable of npuprof itself"),
        ('HOME = { kind = "path" }', "it is a variable of npuprof itself"),
        ('VLLM_ASCEND_FOO = { kind = "bool" }', "no program reads it"),
        ('HCCL_BUFFERSIZE = { kind = "int" }', "no program reads it"),
        ('"a-b" = { kind = "str" }', "no shell can set it"),
        ("A = 1", "the variable 'A' must be a table"),
        ("A = {}", "'kind' is missing in [variables.A]"),
        ('A = { kind = "integer" }', "known are str, enum, int"),
        ('A = { kind = ["a"] }', "'kind' in [variables.A] must be a text"),
        ('A = { kind = "enum" }', "'values' is missing in [variables.A]"),
        ('A = { kind = "enum", values = [] }', "it takes different texts"),
        ('A = { kind = "enum", values = ["a", "a"] }', "it takes different texts"),
        ('A = { kind = "enum", values = ["a\\nb"] }', "it takes different texts"),
        ('A = { kind = "int", values = ["a"] }', "unknown key 'values' in [variables.A]"),
        ('A = { kind = "str", min = 1 }', "unknown key 'min' in [variables.A]"),
        ('A = { kind = "int", min = "1" }', "'min' in [variables.A] must be a number"),
        ('A = { kind = "int", min = true }', "'min' in [variables.A] must be a number"),
        ('A = { kind = "int", min = nan }', "'min' in [variables.A] must be a number"),
        ('A = { kind = "int", min = 3, max = 1 }', "'min' of A is above 'max'"),
        ('A = { kind = "int", docs = "x" }', "did you mean 'doc'"),
        ('A = { kind = "int", doc = "x\\ny" }', "it is not one line of text"),
    ],
)
def test_a_declaration_that_cannot_be_is_an_error_at_its_place(
    table: str, expected: str, declare: Path, run: Run
) -> None:
    (declare.parent / "npuprof.toml").write_text(f"[variables]\n{table}\n")
    done = run("check")
    expect(done, 2, "npuprof.toml:2:", "NP040", expected)
    assert "try: " in done.err
    assert "error NP040" in run("env", "a", "--trust").err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('MY_BACKEND = "fast"', ""),
        ('MY_BACKEND = "exacct"', "NP203"),
        ('MY_BACKEND = { launcher = "rank" }', "NP203"),
        ("MY_COUNT = 3", ""),
        ('MY_COUNT = "3"', ""),
        ("MY_COUNT = 9", "NP203"),
        ("MY_COUNT = 0.5", "NP202"),
        ('MY_COUNT = { launcher = "rank" }', ""),
        ("MY_SHARE = 1.5", ""),
        ("MY_SHARE = 2", "NP203"),
        ("MY_SWITCH = 1", ""),
        ('MY_SWITCH = "true"', ""),
        ('MY_SWITCH = "perhaps"', "NP203"),
        ("MY_SWITCH = true", "NP202"),
        ('MY_CACHE = "/data/cache"', ""),
        ('MY_CACHE = "$HOME/cache"', "NP211"),
        ('MY_NOTE = "any"', ""),
        ('MY_NOTE = "a b"', "NP608"),
        ('MY_BACKEDN = "fast"', "NP206"),
        ('OTHER = "fast"', "NP606"),
    ],
)
def test_a_value_is_judged_by_the_declared_kind(
    line: str, expected: str, declare: Path, run: Run
) -> None:
    (declare / "a.toml").write_text(PRESET.format(line))
    findings = json.loads(run("check", "--format", "json").out)["findings"]
    codes = [finding["code"] for finding in findings]
    assert codes == ([expected] if expected else []) or expected in codes[:1], findings
    if expected == "NP206":
        assert "MY_BACKEND" in findings[0]["hint"]
    assert ("unknown" in run("check").err) == (expected in ("NP206", "NP606"))


def test_a_fixed_value_of_the_hint_is_written(declare: Path, run: Run) -> None:
    (declare / "a.toml").write_text(PRESET.format("MY_SWITCH = true"))
    assert run("check", "--fix").code == 0
    assert 'MY_SWITCH = "true"' in (declare / "a.toml").read_text() or (
        "MY_SWITCH = 1" in (declare / "a.toml").read_text()
    )
    assert run("check").code == 0


def test_a_declaration_grants_no_trust_until_the_store_is_trusted_once(
    declare: Path, run: Run
) -> None:
    done = run("env", "a")
    expect(done, 2, "NP930", "npuprof.toml declares it as enum", "grants no trust")
    listed = run("trust", "profiles")
    # the whole list, also what no preset sets yet
    expect(listed, 0, "trusted by name and kind", "MY_NOTE: str", "with 6 variables")
    assert run("env", "a").code == 0
    (declare / "b.toml").write_text(PRESET.format('MY_NOTE = "later"'))
    assert run("env", "b").code == 0
    assert run("env", "b", "--format", "docker").code == 0
    assert run("trust", "profiles", "--revoke").code == 0
    assert run("env", "a").code == 2


CHANGES = {
    "another kind": ('kind = "int"\nmin = 1\nmax = 8', 'kind = "str"', "MY_COUNT"),
    "a wider range": ("max = 8", "max = 9", "MY_COUNT"),
    "a value added": ('"exact"]', '"exact", "new"]', "MY_BACKEND"),
    "a name added": ('[variables.MY_NOTE]\nkind = "str"', "", "MY_NOTE"),
}


@pytest.mark.parametrize(("old", "new", "name"), CHANGES.values(), ids=CHANGES)
def test_what_changes_in_the_list_asks_again_and_the_rest_does_not(
    old: str, new: str, name: str, declare: Path, run: Run
) -> None:
    project = declare.parent / "npuprof.toml"
    first, second = DECLARED, DECLARED.replace(old, new)
    if not new:
        first, second = second, first
    values = {"MY_COUNT": "MY_COUNT = 3", "MY_BACKEND": 'MY_BACKEND = "fast"'}
    values["MY_NOTE"] = 'MY_NOTE = "x"'
    (declare / "a.toml").write_text(PRESET.format(values[name]))
    (declare / "b.toml").write_text(PRESET.format("MY_SWITCH = 1"))
    project.write_text(first)
    if new:
        assert run("trust", "profiles").code == 0
    else:
        assert run("trust", "profiles", "MY_SWITCH").code == 0
    project.write_text(second)
    expect(run("env", "a"), 2, "NP930", f"env.{name} is not trusted")
    assert run("env", "b").code == 0
    project.write_text(first.replace("Picks", "Chooses"))
    assert run("env", "a").code == (0 if new else 2), "a description is no reason to ask"


@pytest.mark.parametrize(
    ("line", "code"),
    [('MY_NOTE = "$(id)"', "NP930"), ('MY_NOTE = "-x"', "NP930"), ('MY_BACKEND = "no"', "NP203")],
)
def test_a_value_outside_the_kind_or_for_a_shell_is_rejected_after_trust_too(
    line: str, code: str, declare: Path, run: Run
) -> None:
    assert run("trust", "profiles").code == 0
    (declare / "a.toml").write_text(PRESET.format(line))
    expect(run("env", "a"), 2, f"error {code}")


def test_a_reviewed_list_trusts_declarations_as_they_were(declare: Path, run: Run) -> None:
    reviewed = declare.parent / "trusted.json"
    reviewed.write_text(run("trust", "profiles", "--dry-run", "--format", "json").out)
    project = declare.parent / "npuprof.toml"
    project.write_text(DECLARED.replace('"exact"]', '"exact", "new"]'))
    done = run("trust", "profiles", "--from", reviewed)
    expect(done, 0, "does not list MY_BACKEND, which stay untrusted")
    assert run("env", "a").code == 2
    project.write_text(DECLARED)
    assert run("trust", "profiles", "--from", reviewed).code == 0
    assert run("env", "a").code == 0


def test_a_trust_file_without_declarations_is_still_read(declare: Path, run: Run) -> None:
    assert run("trust", "profiles").code == 0
    path = Path(find_trust_file())
    fields = json.loads(path.read_text())
    entry = next(iter(fields["stores"].values()))
    assert entry.pop("declared")
    entry["names"] = ["MY_BACKEND", "MY_COUNT"]
    path.write_text(json.dumps(fields))
    assert run("env", "a").code == 0


def test_a_declared_variable_is_shown_like_one_of_the_catalogue(declare: Path, run: Run) -> None:
    for key in ("env.MY_BACKEND", "MY_BACKEND"):
        expect(run("option", key), 0, "Picks the kernels", '"fast", "exact"', "npuprof.toml:2")
    fields = json.loads(run("option", "MY_COUNT", "--format", "json").out)
    assert (fields["kind"], fields["minimum"], fields["maximum"]) == ("int", 1, 8)
    expect(run("options", "my_"), 0, "env.MY_BACKEND Picks the kernels", "env.MY_NOTE str")
    expect(run("explain", "a", "env.MY_BACKEND"), 0, "meaning Picks the kernels of our loader.")
    expect(run("explain", "a", "env.MY_NOTE"), 0, "is not set", "meaning str")
    (declare.parent / "npuprof.toml").unlink()
    assert run("option", "MY_COUNT").code == 2
    assert run("options", "my_backend").code == 2


def test_names_and_values_are_completed(declare: Path) -> None:
    def complete(*arguments: str) -> list[str]:
        *before, current = arguments
        return [text for text, _ in completion.find_candidates(before, current)]

    assert "env.MY_BACKEND=" in complete("show", "a", "--set", "env.MY_")
    assert complete("show", "a", "--set", "env.MY_BACKEND=") == [
        "env.MY_BACKEND=fast",
        "env.MY_BACKEND=exact",
    ]
    assert "env.MY_SWITCH=1" in complete("set", "a", "env.MY_SWITCH=")
    assert "env.MY_NOTE" in complete("explain", "a", "env.MY_")
    (declare.parent / "npuprof.toml").write_text("broken")
    assert "env.HCCL_ALGO=" in complete("show", "a", "--set", "env.HCCL_A")


def test_the_schema_of_the_store_has_the_variables(declare: Path, run: Run) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    assert run("schema", "--update").code == 0
    schema = json.loads((declare / ".schema.json").read_text())
    validator = jsonschema.Draft7Validator(schema)
    for name, value, is_valid in (
        ("MY_BACKEND", "fast", True),
        ("MY_BACKEND", "slow", False),
        ("MY_COUNT", 8, True),
        ("MY_COUNT", 9, False),
        ("MY_SWITCH", "true", True),
        ("MY_NOTE", "x", True),
        ("OTHER", "x", True),
    ):
        assert validator.is_valid({"env": {name: value}}) is is_valid, (name, value)
    described = schema["definitions"]["env"]["properties"]["MY_BACKEND"]["description"]
    assert described == "Picks the kernels of our loader."
    assert run("schema", "--check").code == 0
    (declare.parent / "npuprof.toml").write_text(DECLARED.replace("fast", "quick"))
    assert run("schema", "--check").code == 1


@pytest.mark.parametrize("kind", TEAM_KINDS)
def test_the_schema_of_npuprof_toml_has_the_keys_of_each_kind_as_npuprof(kind: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft7Validator(build_project_schema())
    for more in ({}, {"values": ["a"]}, {"min": 1}, {"max": 2, "doc": "d"}, {"values": []}):
        lines = [f"{name} = {json.dumps(value)}" for name, value in more.items()]
        text = "\n".join(["[variables.MY_X]", f'kind = "{kind}"', *lines])
        try:
            parse_project("npuprof.toml", text.encode())
        except npuprof.NpuprofError:
            accepted = False
        else:
            accepted = True
        data = {"variables": {"MY_X": {"kind": kind, **more}}}
        assert validator.is_valid(data) is accepted, (kind, more)
    assert not validator.is_valid({"variables": {"MY_X": {"kind": kind, "value": 1}}})
    assert not validator.is_valid({"variables": {"MY_X": {"kind": f"{kind}s"}}})


def test_the_site_shows_what_a_variable_means(declare: Path, run: Run, tmp_path: Path) -> None:
    assert run("site", tmp_path / "site").code == 0
    assert "Picks the kernels of our loader." in (tmp_path / "site/presets/a.html").read_text()


def test_a_config_keeps_the_declarations_in_another_process(declare: Path) -> None:
    config = npuprof.open_store(declare).resolve("a", set={"env.MY_COUNT": 9})
    for one in (config, pickle.loads(pickle.dumps(config))):
        assert [finding.code for finding in npuprof.check(one)] == ["NP203"]


def test_a_revision_is_judged_by_its_own_npuprof_toml(repo: Repo, run: Run) -> None:
    project = repo.folder / "npuprof.toml"
    project.write_text(DECLARED.replace("max = 8", "max = 2"))
    first = repo.commit({"a": PRESET.format("MY_COUNT = 3")})
    project.write_text(DECLARED)
    assert run("check", "a").code == 0
    expect(run("check", f"a@{first}"), 1, "NP203", "env.MY_COUNT = 3 is out of range")


def test_a_source_is_judged_and_trusted_by_its_own_declarations(
    app: Repo, team: Team, run: Run
) -> None:
    (team.repo.folder / "npuprof.toml").write_text(DECLARED)
    team.publish({"base": PRESET.format("MY_COUNT = 3")}, "1.1.0", "base/v1.1.0")
    assert run("source", "update", "--yes").code == 0
    app.write({"own": '[profile]\nextends = ["team:base"]\n[env]\nMY_BACKEND = "slow"\n'})
    expect(run("check", "own"), 1, 'env.MY_BACKEND = "slow" is none of')
    app.write({"own": '[profile]\nextends = ["team:base"]\n[options]\nhccl_timeout = 700\n'})
    expect(run("check", "own"), 0, "no findings")
    expect(run("env", "own"), 2, "env.MY_COUNT is not trusted: npuprof.toml declares it as int")
    assert run("trust", "team:").code == 0
    assert run("env", "own").code == 0
    # the consumer's own value is trusted with the consumer's store
    app.write({"own": '[profile]\nextends = ["team:base"]\n[env]\nMY_COUNT = 4\n'})
    expect(run("env", "own"), 2, "env.MY_COUNT is not trusted: the catalogue does not know it")
    (app.folder / "npuprof.toml").write_text(
        (app.folder / "npuprof.toml").read_text() + '[variables.MY_COUNT]\nkind="int"\nmax=3\n'
    )
    expect(run("check", "own"), 1, "env.MY_COUNT = 4 is out of range", "write at most 3")
