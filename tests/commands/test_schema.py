"""``npuprof schema``, judged by Taplo and ajv, and the line in a preset that names the file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from npuprof.catalog.preset_schema import build_profile_schema
from npuprof.edit.schemaline import move_schema_line
from npuprof.model import NpuprofError
from npuprof.runs.run_records import load_record_schema
from npuprof.store.project import parse_project
from npuprof.store.project_schema import build_project_schema
from support.building import REPOSITORY
from support.running import Run
from support.schemas import LET_PASS, PROJECT_LET_PASS, PROJECT_UNDERLINED, RULES, UNDERLINED

jsonschema = pytest.importorskip("jsonschema")
MODULES = REPOSITORY / ".venv/node_modules"
PROJECT = jsonschema.Draft7Validator(build_project_schema())
STRICT = """
for (const [dialect, schema] of JSON.parse(require("fs").readFileSync(0))) {
  const ajv = new (require(dialect).default)({
    strict: true, strictTypes: true, strictTuples: true, formats: {"date-time": true},
    logger: {log: console.log, warn: console.log, error: console.log}})
  ajv.compile(schema)
}
"""
SCHEMAS = [
    ("ajv", build_profile_schema()),
    ("ajv", build_project_schema()),
    ("ajv/dist/2020", load_record_schema()),
]


@pytest.mark.skipif(
    not (MODULES / "ajv").is_dir() or not shutil.which("node"), reason="no ajv from npm"
)
def test_ajv_takes_each_schema_in_its_strict_mode() -> None:
    environ = {**os.environ, "NODE_PATH": str(MODULES)}
    done = subprocess.run(
        ["node", "-e", STRICT],
        input=json.dumps(SCHEMAS),
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", done.stderr


def lint_with_taplo(folder: Path) -> dict[str, str]:
    """Return the first fault of each file below a folder, as Taplo reports it.

    Even Better TOML, the extension of editors, is made of Taplo.
    """
    taplo = MODULES / ".bin/taplo"
    if not taplo.exists() or not shutil.which("node"):
        pytest.skip("no Taplo from npm")
    done = subprocess.run(
        [taplo, "lint", "--colors", "never"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    found: dict[str, str] = {}
    for part in f"\n{done.stderr}".split("\nerror: ")[1:]:
        result, _, place = part.partition("┌─ ")
        found.setdefault(str(Path(place.partition(":")[0]).relative_to(folder)), result.strip())
    return found


def test_taplo_underlines_what_is_wrong_and_nothing_else(tmp_path: Path, run: Run) -> None:
    assert run("init").code == 0
    for kind, texts in (("bad", UNDERLINED), ("good", LET_PASS)):
        (tmp_path / "profiles" / kind).mkdir()
        for number, text in enumerate(texts):
            (tmp_path / f"profiles/{kind}/{number}.toml").write_text(f"{text}\n")
    (tmp_path / "npuprof.toml").write_text(RULES)
    found = lint_with_taplo(tmp_path)
    missed = [
        text for number, text in enumerate(UNDERLINED) if f"profiles/bad/{number}.toml" not in found
    ]
    assert missed == []
    assert {path: result for path, result in found.items() if "/bad/" not in path} == {}


def test_taplo_finds_the_schema_by_the_line_in_the_preset_alone(tmp_path: Path, run: Run) -> None:
    assert run("init").code == 0
    assert run("new", "team/nlp/bert", "--extends", "bert-training").code == 0
    (tmp_path / "npuprof.toml").write_text("[sources.team]\nurl = 1\n")
    (tmp_path / ".taplo.toml").unlink()
    for path in ("profiles/team/nlp/bert.toml", "profiles/bert-training.toml"):
        with (tmp_path / path).open("a") as file:
            file.write("\n[estimator]\nnothing = 1\n")
    assert set(lint_with_taplo(tmp_path)) == {
        "profiles/team/nlp/bert.toml",
        "profiles/bert-training.toml",
    }


# -- npuprof.toml ---------------------------------------------------------------------------------


def test_the_schema_of_the_project_is_one() -> None:
    PROJECT.check_schema(PROJECT.schema)
    assert PROJECT.schema["$id"] == "urn:npuprof:project"


@pytest.mark.parametrize("text", PROJECT_UNDERLINED)
def test_what_npuprof_toml_cannot_mean_is_refused_by_npuprof_and_by_the_schema(text: str) -> None:
    assert not PROJECT.is_valid(tomllib.loads(text))
    if "NP999" not in text:  # said as a warning, where it counts
        with pytest.raises(NpuprofError, match=r"^npuprof\.toml:\d+:\d+: error NP0\d\d: "):
            parse_project("npuprof.toml", text.replace("url = 'u'", "url = 'file:///u'").encode())


@pytest.mark.parametrize("text", [*PROJECT_LET_PASS, RULES])
def test_what_npuprof_toml_may_say_is_not_refused(text: str) -> None:
    parse_project("npuprof.toml", text.encode())
    PROJECT.validate(tomllib.loads(text))


def test_every_key_of_npuprof_toml_is_in_the_schema_with_its_meaning() -> None:
    from npuprof.store import project, teamrules

    tables = PROJECT.schema["properties"]
    assert set(tables) == set(project.KEYS)
    assert set(tables["sources"]["additionalProperties"]["properties"]) == set(project.SOURCE_KEYS)
    assert set(tables["rule"]["items"]["properties"]) == set(teamrules.KEYS)
    assert set(tables["ignore"]["items"]["properties"]) == set(teamrules.IGNORE_KEYS)
    assert all(value["description"] for value in tables.values())


# -- the files of a store -------------------------------------------------------------------------


def test_the_schemas_of_a_store_are_told_to_be_old_and_written_anew(
    run: Run, tmp_path: Path
) -> None:
    assert run("init").code == 0
    assert run("schema", "--check").code == 0
    (tmp_path / "profiles/.schema.json").write_text("{}")
    (tmp_path / "profiles/.project.schema.json").unlink()
    result = run("schema", "--check")
    assert result.code == 1
    assert result.out == ""
    assert (
        "profiles/.schema.json, profiles/.project.schema.json: out of date; "
        "run npuprof schema --update"
    ) in result.err
    result = run("schema", "--update")
    assert result.code == 0
    assert result.out == "profiles/.schema.json\nprofiles/.project.schema.json\n"
    assert (tmp_path / "profiles/.schema.json").read_text() == run("schema").out
    assert (tmp_path / "profiles/.project.schema.json").read_text() == run(
        "schema", "--of", "project"
    ).out
    assert "up to date" in run("schema", "--update").err


def test_what_does_not_go_together_is_refused(run: Run) -> None:
    assert run("init").code == 0
    for arguments in (("--update", "--check"), ("--update", "-o", "x"), ("--check", "--of", "run")):
        result = run("schema", *arguments)
        assert result.code == 2, arguments
        assert "NP902" in result.err, arguments
    assert "read-only" in run("schema", "--update", "--store", "builtin:").err


# -- the line -------------------------------------------------------------------------------------


def first_line(path: str) -> str:
    return Path(path).read_text().partition("\n")[0]


def test_the_line_leads_to_the_same_file_from_wherever_a_preset_goes(run: Run) -> None:
    assert run("init").code == 0
    assert run("copy", "bert-training", "a/b/c").code == 0
    assert first_line("profiles/a/b/c.toml") == "#:schema ../../.schema.json"
    result = run("rename", "a/b/c", "c")
    assert result.code == 0, result.err
    assert "-#:schema ../../.schema.json\n+#:schema ./.schema.json\n" in result.out
    assert "similarity index" not in result.out
    assert first_line("profiles/c.toml") == "#:schema ./.schema.json"
    assert "similarity index 100%" in run("rename", "c", "d").out
    assert first_line("profiles/d.toml") == "#:schema ./.schema.json"


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("#:schema ./s.json\n[profile]\n", "#:schema ../../p/s.json\n[profile]\n"),
        (
            "# mine\r\n\r\n#:schema ./s.json\r\n[profile]\r\n",
            "# mine\r\n\r\n#:schema ../../p/s.json\r\n[profile]\r\n",
        ),
        ("#:schema https://host/s.json\n[profile]\n", "#:schema https://host/s.json\n[profile]\n"),
        ("[profile]\n#:schema ./s.json\n", "[profile]\n#:schema ./s.json\n"),
        (
            '[profile]\ndescription = """\n#:schema ./s.json\n"""\n',
            '[profile]\ndescription = """\n#:schema ./s.json\n"""\n',
        ),
        ("", ""),
    ],
)
def test_only_a_path_that_editors_read_is_changed(text: str, moved: str) -> None:
    assert move_schema_line(text, "p/x.toml", "q/r/x.toml") == moved
