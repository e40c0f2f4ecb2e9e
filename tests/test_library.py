"""The library, as the contract shows it."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from building import REPOSITORY, build_store, toml

import npuprof

BASE = """
[profile]
description = "for all"
scenario = "training"

[options]
hccl_timeout = 1800
dump_path = "/tmp/dump"
modify_mixlist = { black-list = { to-add = ["MatMul"] } }
"""
LEAF = """
[profile]
extends = ["base"]

[options]
precision_mode_v2 = "mixed_float16"
hccl_timeout = 900

[append.options.modify_mixlist]
black-list = { to-add = ["Cast"] }

[[override]]
match = { product = "atlas-a2" }
options = { precision_mode_v2 = "mixed_bfloat16" }
"""


@pytest.fixture
def library(tmp_path: Path) -> npuprof.Library:
    return npuprof.open_store(str(build_store(tmp_path / "profiles", {"base": BASE, "leaf": LEAF})))


def test_every_public_name_is_what_it_says_after_everything_was_imported() -> None:
    for module in pkgutil.walk_packages(npuprof.__path__, "npuprof."):
        if not module.name.endswith("__main__") and "_built" not in module.name:
            import_module(module.name)
    for name in npuprof.__all__:
        found = getattr(npuprof, name)
        assert not isinstance(found, ModuleType), f"a module hides npuprof.{name}"
        assert name == "TARGETS" or found.__doc__, f"npuprof.{name} is not documented"
    with pytest.raises(AttributeError):
        npuprof.nothing  # noqa: B018


def test_importing_the_library_costs_nothing_and_needs_no_tensorflow() -> None:
    code = (
        "import sys; before = set(sys.modules); import npuprof; new = set(sys.modules) - before;"
        "assert new <= {'npuprof', '__future__'}, new;"
        f"config = npuprof.open_store({str(REPOSITORY / 'profiles')!r}).resolve('bert-training'); npuprof.render(config, 'session');"
        "heavy = {'tensorflow', 'typer', 'git', 'deepdiff', 'tomlkit', 'dataclasses', 'subprocess', 'json', 'numpy'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); {code}"], check=True)


def test_a_preset_resolves_as_the_contract_shows(library: npuprof.Library) -> None:
    config = library.resolve("leaf", cann="9.0.0", product="atlas-a2-training", set={"hccl_timeout": 600}, unset=["dump_path"])
    assert config.options == {
        "precision_mode_v2": "mixed_bfloat16",
        "modify_mixlist": {"black-list": {"to-add": ["MatMul", "Cast"]}},
        "hccl_timeout": 600,
    }
    assert config.options["hccl_timeout"] == 600
    assert [origin.profile for origin in config.origins("precision_mode_v2")] == ["leaf", "leaf"]
    assert [origin.layer for origin in config.origins("precision_mode_v2")] == ["override 1", "values"]
    assert [origin.line for origin in config.origins("hccl_timeout")] == [0, 7, 7]
    assert config.scenario == "training"
    assert len(config.digest) == 64
    assert config.digest != library.resolve("leaf").digest
    assert config.digest == library.resolve("leaf", product="Ascend910B2", set={"hccl_timeout": 600}, unset=["dump_path"]).digest


def test_plain_values_are_python_values(library: npuprof.Library) -> None:
    config = npuprof.loads(
        'options = { a = 1979-05-27, b = [1, { c = 0.5 }], d = true }\nenv.X = "1"\natc.framework = 3\nestimator.tf_random_seed = 1'
    )
    assert type(config.options["d"]) is bool
    assert config.options["b"] == [1, {"c": 0.5}]
    assert (config.env, config.atc, config.estimator) == ({"X": "1"}, {"framework": 3}, {"tf_random_seed": 1})


def test_changes_are_python_values_and_reach_into_tables(library: npuprof.Library) -> None:
    config = library.resolve("leaf", set={"env.X": True, "modify_mixlist.white-list": {"to-add": ["Add"]}, "dump_step": [1, "2-3"]})
    assert config.env == {"X": True}
    assert config.options["modify_mixlist"]["white-list"] == {"to-add": ["Add"]}
    assert config.options["modify_mixlist"]["black-list"] == {"to-add": ["MatMul", "Cast"]}
    with pytest.raises(npuprof.NpuprofError, match="is not a key"):
        library.resolve("leaf", set={"a..b": 1})
    assert library.resolve("leaf", set={"dump_step": (1, "2-3")}).options["dump_step"] == [1, "2-3"]
    for value in (None, b"x", object(), {1: 2}, [None], {"a": {"b": {1}}}):
        with pytest.raises(npuprof.NpuprofError, match="NP202: hccl_timeout cannot be of the type"):
            library.resolve("leaf", set={"hccl_timeout": value})


def test_what_is_returned_can_be_changed_without_changing_the_store(library: npuprof.Library) -> None:
    for name in ("leaf", "base"):
        config = library.resolve(name)
        config.options["modify_mixlist"]["black-list"]["to-add"].append("Oops")
        config.settings.clear()
    assert library.resolve("leaf").options["modify_mixlist"]["black-list"]["to-add"] == ["MatMul", "Cast"]
    assert library.resolve("base").options["modify_mixlist"]["black-list"]["to-add"] == ["MatMul"]


def test_findings_carry_the_fields_of_the_contract(library: npuprof.Library) -> None:
    config = npuprof.loads("[options]\nhcom_paralel = true\n")
    (finding,) = npuprof.check(config)
    assert (finding.code, finding.severity, finding.key) == ("NP201", "error", "hcom_paralel")
    assert (finding.path, finding.line, finding.column) == ("<text>", 2, 1)
    assert finding.hint == "did you mean 'hcom_parallel'?"
    assert finding.message


def test_rendering_takes_every_target_it_lists(library: npuprof.Library) -> None:
    config = npuprof.loads("options = { hccl_timeout = 600 }")
    assert {"session", "toml", "json"} <= set(npuprof.TARGETS)
    for target in ("session", "toml", "json"):
        assert "hccl_timeout" in npuprof.render(config, target)
    assert json.loads(npuprof.render(config, "json"))["options"] == {"hccl_timeout": 600}
    with pytest.raises(npuprof.NpuprofError, match="unknown target 'sesion'"):
        npuprof.render(config, "sesion")


def test_the_flattened_preset_resolves_to_the_same(library: npuprof.Library) -> None:
    config = library.resolve("leaf", product="atlas-a2")
    assert npuprof.loads(npuprof.render(config, "toml")).digest == config.digest
    assert toml({"options": config.options}) in toml({"options": npuprof.loads(npuprof.render(config, "toml")).options})


def test_text_can_have_parents_in_a_store(library: npuprof.Library) -> None:
    config = npuprof.loads('profile.extends = ["leaf"]\noptions.hccl_timeout = 1', store=library, product="atlas-a2")
    assert config.options["precision_mode_v2"] == "mixed_bfloat16"
    assert [profile.name for profile in config.lineage] == ["base", "leaf", "<text>"]


def test_errors_have_places_and_repairs(library: npuprof.Library, tmp_path: Path) -> None:
    with pytest.raises(npuprof.NpuprofError) as caught:
        library.resolve("laef")
    (finding,) = caught.value.findings
    assert (finding.code, finding.hint) == ("NP008", "did you mean 'leaf'?")
    with pytest.raises(npuprof.NpuprofError, match="not a folder"):
        npuprof.open_store(str(tmp_path / "gone"))
    with pytest.raises(npuprof.NpuprofError) as caught:
        npuprof.loads("[options]\nx =\n")
    assert caught.value.findings[0].place == "<text>:2:4"
    assert "<text>:2:4: error NP001" in str(caught.value)


def test_the_store_lists_its_names(library: npuprof.Library) -> None:
    assert library.names() == ["base", "leaf"]
    assert "bert-training" in npuprof.open_store("builtin:").names()


def test_a_store_is_found_as_the_command_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_store(tmp_path / "a/profiles", {"x": ""})
    build_store(tmp_path / "b", {"y": ""})
    (tmp_path / "a/deep/er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a/deep/er")
    assert npuprof.open_store().names() == ["x"]
    monkeypatch.setenv("NPUPROF_STORE", str(tmp_path / "b"))
    assert npuprof.open_store().names() == ["y"]


def test_the_package_is_typed() -> None:
    assert (REPOSITORY / "npuprof/py.typed").exists()


def test_json_answers_carry_the_same_fields(library: npuprof.Library, run: Any) -> None:
    (Path("profiles") / "bad.toml").write_text("[options]\nhcom_paralel = true\n")
    answer = json.loads(run("check", "bad", "--format", "json").out)
    (finding,) = answer["findings"]
    assert finding.keys() >= {"code", "severity", "message", "path", "line", "column", "key", "hint"}
    assert answer["schema"] == "npuprof.findings/1"


def test_a_target_that_does_not_exist_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[options]\n")
    with pytest.raises(npuprof.NpuprofError, match=r"unknown target 'sesion'.*did you mean 'session'"):
        npuprof.open_store(str(tmp_path)).resolve("a", target="sesion")


OFFLINE = '[profile]\nscenario = "offline-inference"\n[options]\nprecision_mode_v2 = "fp16"\n'


@pytest.mark.parametrize("target", [name for name in npuprof.TARGETS if name not in ("atc", "toml", "json")])
def test_a_preset_for_the_atc_compiler_is_no_session(target: str) -> None:
    with pytest.raises(npuprof.NpuprofError, match="NP916"):
        npuprof.render(npuprof.loads(OFFLINE), target)


@pytest.mark.parametrize("target", ["atc", "toml", "json"])
def test_a_preset_for_the_atc_compiler_is_written_for_it(target: str) -> None:
    assert "fp16" in npuprof.render(npuprof.loads(OFFLINE), target)


def test_a_preset_for_the_atc_compiler_fills_no_config_proto() -> None:
    with pytest.raises(npuprof.NpuprofError, match="NP916"):
        npuprof.apply(npuprof.loads(OFFLINE), object())
