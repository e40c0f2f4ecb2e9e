"""``npuprof schema``, and what editors make of it: Taplo and ajv themselves, and the line in a preset that names the file."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import npuprof
from npuprof.catalog.schema import build_profile_schema
from npuprof.edit.merge import merge_texts
from npuprof.edit.schemaline import move_schema_line
from npuprof.model import NpuprofError
from npuprof.runs.records import load_record_schema
from npuprof.store.sources.project import parse_project
from npuprof.store.sources.project_schema import build_project_schema
from support.building import REPOSITORY
from support.running import Run, Store
from support.schemas import LET_PASS, PROJECT_LET_PASS, PROJECT_UNDERLINED, RULES, UNDERLINED

jsonschema = pytest.importorskip("jsonschema")
MODULES = REPOSITORY / ".venv/node_modules"
PROJECT = jsonschema.Draft7Validator(build_project_schema())
STRICT = """
const [path, dialect] = process.argv.slice(1)
const Ajv = require(dialect).default
const schema = JSON.parse(require("fs").readFileSync(path))
const ajv = new Ajv({strict: true, strictTypes: true, strictTuples: true, formats: {"date-time": true}, logger: {
  log: console.log, warn: console.log, error: console.log}})
ajv.compile(schema)
"""
SCHEMAS = [(build_profile_schema, "ajv"), (build_project_schema, "ajv"), (load_record_schema, "ajv/dist/2020")]


@pytest.mark.skipif(not (MODULES / "ajv").is_dir() or not shutil.which("node"), reason="no ajv from npm")
@pytest.mark.parametrize(("build", "dialect"), SCHEMAS, ids=["profile", "project", "run"])
def test_ajv_takes_each_schema_in_its_strict_mode(build: Callable[[], Any], dialect: str, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(build()))
    done = subprocess.run(
        ["node", "-e", STRICT, path, dialect], env={**os.environ, "NODE_PATH": str(MODULES)}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def lint_with_taplo(folder: Path) -> dict[str, str]:
    """Return what Taplo, which Even Better TOML is made of, says of the files below a folder: the first fault of each."""
    taplo = MODULES / ".bin/taplo"
    if not taplo.exists() or not shutil.which("node"):
        pytest.skip("no Taplo from npm")
    done = subprocess.run(
        [taplo, "lint", "--colors", "never"], cwd=folder, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}
    )
    found: dict[str, str] = {}
    for part in f"\n{done.stderr}".split("\nerror: ")[1:]:
        said, _, place = part.partition("┌─ ")
        found.setdefault(str(Path(place.partition(":")[0]).relative_to(folder)), said.strip())
    return found


def test_taplo_underlines_what_is_wrong_and_nothing_else(tmp_path: Path, run: Run) -> None:
    assert run("init").code == 0
    for kind, texts in (("bad", UNDERLINED), ("good", LET_PASS)):
        (tmp_path / "profiles" / kind).mkdir()
        for number, text in enumerate(texts):
            (tmp_path / f"profiles/{kind}/{number}.toml").write_text(f"{text}\n")
    (tmp_path / "npuprof.toml").write_text(RULES)
    found = lint_with_taplo(tmp_path)
    missed = [text for number, text in enumerate(UNDERLINED) if f"profiles/bad/{number}.toml" not in found]
    assert missed == []
    assert {path: said for path, said in found.items() if "/bad/" not in path} == {}


def test_taplo_finds_the_schema_by_the_line_in_the_preset_alone(tmp_path: Path, run: Run) -> None:
    assert run("init").code == 0
    assert run("new", "team/nlp/bert", "--extends", "bert-training").code == 0
    (tmp_path / ".taplo.toml").unlink()
    for path in ("profiles/team/nlp/bert.toml", "profiles/bert-training.toml"):
        with (tmp_path / path).open("a") as file:
            file.write("\n[estimator]\nnothing = 1\n")
    assert set(lint_with_taplo(tmp_path)) == {"profiles/team/nlp/bert.toml", "profiles/bert-training.toml"}


def test_taplo_checks_npuprof_toml_of_a_new_store(tmp_path: Path, run: Run) -> None:
    assert run("init").code == 0
    (tmp_path / "npuprof.toml").write_text("[sources.team]\nurl = 1\n")
    assert set(lint_with_taplo(tmp_path)) == {"npuprof.toml"}


# -- npuprof.toml -------------------------------------------------------------------------------------------------


def test_the_schema_of_the_project_is_one() -> None:
    PROJECT.check_schema(PROJECT.schema)
    assert PROJECT.schema["$id"] == "urn:npuprof:project"


@pytest.mark.parametrize("text", PROJECT_UNDERLINED)
def test_what_npuprof_toml_cannot_mean_is_refused_by_npuprof_and_by_the_schema(text: str) -> None:
    assert not PROJECT.is_valid(tomllib.loads(text))
    if "NP999" not in text:  # said as a warning, where it counts
        with pytest.raises(NpuprofError):
            parse_project("npuprof.toml", text.replace("url = 'u'", "url = 'file:///u'").encode())


@pytest.mark.parametrize("text", [*PROJECT_LET_PASS, RULES])
def test_what_npuprof_toml_may_say_is_not_refused(text: str) -> None:
    parse_project("npuprof.toml", text.encode())
    PROJECT.validate(tomllib.loads(text))


def test_the_schema_refuses_no_npuprof_toml_that_is_read() -> None:
    dice, read = random.Random(7), 0
    for _ in range(1500):
        text = dice.choice([*PROJECT_LET_PASS[1:], RULES])
        for _ in range(dice.randrange(1, 3)):
            place = dice.randrange(len(text))
            text = text[:place] + dice.choice(("", *" *^~<>=.,:/-vV1aN_'\"")) + text[place + dice.randrange(2) :]
        try:
            data = tomllib.loads(text)
            parse_project("npuprof.toml", text.encode())
        except (tomllib.TOMLDecodeError, NpuprofError):
            continue
        read += 1
        assert PROJECT.is_valid(data), text
    assert read > 200


def test_every_key_of_npuprof_toml_is_in_the_schema_with_its_meaning() -> None:
    from npuprof.store.sources import project, teamrules

    tables = PROJECT.schema["properties"]
    assert set(tables) == set(project._KEYS)
    assert set(tables["sources"]["additionalProperties"]["properties"]) == set(project._SOURCE_KEYS)
    assert set(tables["rule"]["items"]["properties"]) == set(teamrules.KEYS)
    assert set(tables["ignore"]["items"]["properties"]) == set(teamrules.IGNORE_KEYS)
    assert all(value["description"] for value in tables.values())


# -- the files of a store -----------------------------------------------------------------------------------------


def test_the_schemas_of_a_store_are_told_to_be_old_and_written_anew(run: Run, tmp_path: Path) -> None:
    assert run("init").code == 0
    assert run("schema", "--check").code == 0
    (tmp_path / "profiles/.schema.json").write_text("{}")
    (tmp_path / "profiles/.project.schema.json").unlink()
    said = run("schema", "--check")
    assert (said.code, said.out) == (1, "")
    assert "profiles/.schema.json, profiles/.project.schema.json: not what this npuprof writes; npuprof schema --update does" in said.err
    said = run("schema", "--update")
    assert (said.code, said.out) == (0, "profiles/.schema.json\nprofiles/.project.schema.json\n")
    assert (tmp_path / "profiles/.schema.json").read_text() == run("schema").out
    assert (tmp_path / "profiles/.project.schema.json").read_text() == run("schema", "--of", "project").out
    assert "up to date" in run("schema", "--update").err


@pytest.mark.parametrize("words", [("--update", "--check"), ("--update", "-o", "x"), ("--check", "--of", "run")])
def test_what_does_not_go_together_is_refused(run: Run, words: tuple[str, ...]) -> None:
    assert run("init").code == 0
    said = run("schema", *words)
    assert said.code == 2
    assert "NP902" in said.err
    assert run("schema", "--update", "--store", "builtin:").code == 2


# -- the line -----------------------------------------------------------------------------------------------------


def first_line(path: str) -> str:
    return Path(path).read_text().partition("\n")[0]


def test_new_presets_name_the_schema_where_the_store_has_one(run: Run) -> None:
    assert run("init").code == 0
    assert first_line("profiles/bert-training.toml") == "#:schema ./.schema.json"
    assert first_line("profiles/base/training.toml") == "#:schema ../.schema.json"
    assert run("new", "team/a", "--set", "hccl_timeout=600").code == 0
    assert first_line("profiles/team/a.toml") == "#:schema ../.schema.json"
    Path("profiles/.schema.json").unlink()
    assert run("new", "team/b").code == 0
    assert first_line("profiles/team/b.toml") == "[profile]"


def test_the_line_leads_to_the_same_file_from_wherever_a_preset_goes(run: Run) -> None:
    assert run("init").code == 0
    assert run("copy", "bert-training", "a/b/c").code == 0
    assert first_line("profiles/a/b/c.toml") == "#:schema ../../.schema.json"
    said = run("rename", "a/b/c", "c")
    assert said.code == 0, said.err
    assert "-#:schema ../../.schema.json\n+#:schema ./.schema.json\n" in said.out
    assert "similarity index" not in said.out
    assert first_line("profiles/c.toml") == "#:schema ./.schema.json"
    said = run("rename", "c", "d")
    assert "similarity index 100%" in said.out
    assert first_line("profiles/d.toml") == "#:schema ./.schema.json"


@pytest.mark.parametrize(("text", "moved"), [
    ("#:schema ./s.json\n[profile]\n", "#:schema ../../p/s.json\n[profile]\n"),
    ("# mine\r\n\r\n#:schema ./s.json\r\n[profile]\r\n", "# mine\r\n\r\n#:schema ../../p/s.json\r\n[profile]\r\n"),
    ("#:schema https://host/s.json\n[profile]\n", "#:schema https://host/s.json\n[profile]\n"),
    ("[profile]\n#:schema ./s.json\n", "[profile]\n#:schema ./s.json\n"),
    ('[profile]\ndescription = """\n#:schema ./s.json\n"""\n', '[profile]\ndescription = """\n#:schema ./s.json\n"""\n'),
    ("[profile]\n", "[profile]\n"), ("", ""),
])  # fmt: skip
def test_only_a_path_that_editors_read_is_changed(text: str, moved: str) -> None:
    assert move_schema_line(text, "p/x.toml", "q/r/x.toml") == moved


LINE = "#:schema ./.schema.json\n"
OPTIONS = "[options]\nhccl_timeout = 600\n"
PROFILE = '[profile]\ndescription = "x"\n\n'


@pytest.mark.parametrize("text", [
    f"{LINE}{OPTIONS}", f"# mine\n\n{LINE}\n{OPTIONS}",
    f'{LINE}[[override]]\nmatch = {{ product = "atlas-a3" }}\noptions = {{ hccl_timeout = 600 }}\n', LINE,
])  # fmt: skip
def test_the_line_stays_above_all_else_whatever_is_edited(text: str, run: Run, store: Store) -> None:
    store({"one": text})
    before = text.partition("#:schema")[0]
    for words in (
        ("set", "one", "profile.description=x"), ("set", "one", "deterministic=1"), ("unset", "one", "hccl_timeout"),
        ("set", "one", "env.HCCL_EXEC_TIMEOUT=1800"), ("unset", "one", "deterministic"), ("set", "one", "profile.owner=me"),
    ):  # fmt: skip
        run(*words, "--no-check")
        assert Path("profiles/one.toml").read_text().startswith(before + LINE), words


@pytest.mark.parametrize(("base", "ours", "theirs"), [
    (OPTIONS, f"{OPTIONS}deterministic = 1\n", LINE + OPTIONS), (OPTIONS, PROFILE + OPTIONS, LINE + OPTIONS),
    (OPTIONS, LINE + OPTIONS, LINE + PROFILE + OPTIONS), (LINE + OPTIONS, LINE + PROFILE + OPTIONS, f"{LINE}{OPTIONS}deterministic = 1\n"),
])  # fmt: skip
def test_a_merge_keeps_the_line_once_and_on_top(base: str, ours: str, theirs: str) -> None:
    merged = merge_texts(base, ours, theirs).text
    assert merged.startswith(LINE)
    assert merged.count("#:schema") == 1


def test_the_line_is_no_part_of_a_digest() -> None:
    with_line, without = npuprof.loads(LINE + OPTIONS), npuprof.loads(OPTIONS)
    assert (with_line.digest, with_line.preset_digest) == (without.digest, without.preset_digest)
    assert with_line == without
