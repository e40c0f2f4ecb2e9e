"""The Python API, as its documentation describes it."""

from __future__ import annotations

import copy
import doctest
import enum
import json
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import tomli

import npuprof
from npuprof import NpuprofError
from npuprof.catalog import find_option
from npuprof.model import Fix, Place
from support.building import REPOSITORY, build_store
from support.documents import PAGES, read_blocks
from support.running import Run

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
    assert npuprof.__all__
    for name in npuprof.__all__:
        found = getattr(npuprof, name)
        assert not isinstance(found, ModuleType), f"a module hides npuprof.{name}"
        assert name == "TARGETS" or found.__doc__, f"npuprof.{name} is not documented"
    with pytest.raises(AttributeError):
        npuprof.nothing  # noqa: B018
    assert (REPOSITORY / "npuprof/py.typed").exists()


def test_importing_the_library_costs_nothing_and_needs_no_tensorflow() -> None:
    code = (
        "import sys; before = set(sys.modules); import npuprof; new = set(sys.modules) - before;"
        "assert new <= {'npuprof', '__future__'}, new;"
        f"config = npuprof.open_store({str(REPOSITORY / 'profiles')!r}).resolve('bert-training'); "
        "npuprof.render(config, 'session');"
        "heavy = {'tensorflow', 'typer', 'git', 'deepdiff', 'tomlkit', 'dataclasses', "
        "'subprocess', 'json', 'numpy'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    paths = [str(REPOSITORY), str(Path(tomli.__file__).parents[1])]
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {paths}; {code}"],
        check=True,
    )


def test_a_preset_resolves_as_the_contract_shows(library: npuprof.Library) -> None:
    config = library.resolve(
        "leaf",
        cann="9.0.0",
        product="atlas-a2-training",
        set={"hccl_timeout": 600},
        unset=["dump_path"],
    )
    assert config.options == {
        "precision_mode_v2": "mixed_bfloat16",
        "modify_mixlist": {"black-list": {"to-add": ["MatMul", "Cast"]}},
        "hccl_timeout": 600,
    }
    assert config.options["hccl_timeout"] == 600
    assert [origin.profile for origin in config.origins("precision_mode_v2")] == ["leaf", "leaf"]
    assert [origin.layer for origin in config.origins("precision_mode_v2")] == [
        "override 1",
        "values",
    ]
    assert [origin.line for origin in config.origins("hccl_timeout")] == [0, 7, 7]
    assert config.scenario == "training"
    assert len(config.digest) == 64
    assert config.digest != library.resolve("leaf").digest
    assert (
        config.digest
        == library.resolve(
            "leaf", product="Ascend910B2", set={"hccl_timeout": 600}, unset=["dump_path"]
        ).digest
    )


def test_changes_are_python_values_and_reach_into_tables(library: npuprof.Library) -> None:
    config = library.resolve(
        "leaf",
        set={
            "env.X": True,
            "modify_mixlist.white-list": {"to-add": ["Add"]},
            "dump_step": [1, "2-3"],
        },
    )
    assert config.env == {"X": True}
    assert config.options["modify_mixlist"]["white-list"] == {"to-add": ["Add"]}
    assert config.options["modify_mixlist"]["black-list"] == {"to-add": ["MatMul", "Cast"]}
    with pytest.raises(npuprof.NpuprofError, match="is not a key"):
        library.resolve("leaf", set={"a..b": 1})
    with pytest.raises(npuprof.NpuprofError, match="is a key of 150 parts"):
        library.resolve("leaf", set={".".join("a" * 150): 1})
    assert library.resolve("leaf", set={"dump_step": (1, "2-3")}).options["dump_step"] == [1, "2-3"]
    for value in (None, b"x", object(), {1: 2}, [None], {"a": {"b": {1}}}):
        with pytest.raises(npuprof.NpuprofError, match="NP202: hccl_timeout cannot be of the type"):
            library.resolve("leaf", set={"hccl_timeout": value})


FROZEN = [
    pytest.param(lambda config: config.options.__setitem__("x", 5), id="set an option"),
    pytest.param(lambda config: config.settings.clear(), id="clear the settings"),
    pytest.param(
        lambda config: config.options["modify_mixlist"]["black-list"]["to-add"].append("Oops"),
        id="append to a nested list",
    ),
    pytest.param(
        lambda config: config["modify_mixlist"]["black-list"].__delitem__("to-add"),
        id="delete a nested key",
    ),
]


@pytest.mark.parametrize("change", FROZEN)
def test_a_config_says_that_it_does_not_change(
    library: npuprof.Library, change: Callable[[npuprof.Config], object]
) -> None:
    config = library.resolve("leaf")
    before = copy.deepcopy(dict(config))
    with pytest.raises(TypeError, match="copy it"):
        change(config)
    with pytest.raises(AttributeError, match="a config does not change"):
        config.name = "other"
    assert dict(config) == before == dict(library.resolve("leaf"))
    options = copy.deepcopy(config.options)
    options["modify_mixlist"]["black-list"]["to-add"].append("what is copied may change")
    assert type(options) is dict
    assert json.loads(json.dumps(config.options)) == config.options


def test_a_config_is_read_as_a_mapping(library: npuprof.Library) -> None:
    config = library.resolve("leaf", set={"env.JOB_ID": "7"})
    assert list(config) == list(config.ordered_settings())
    assert set(config) == {
        "hccl_timeout",
        "precision_mode_v2",
        "modify_mixlist",
        "dump_path",
        "env.JOB_ID",
    }
    assert len(config) == 5
    assert config["env.JOB_ID"] == "7"
    assert config.get("deterministic", 0) == 0
    assert "hccl_timeout" in config
    with pytest.raises(KeyError):
        config["deterministic"]
    assert npuprof.loads("")
    assert dict(npuprof.loads("")) == {}


def test_configs_are_equal_by_what_they_say_and_for_what(library: npuprof.Library) -> None:
    first, second = library.resolve("leaf"), library.resolve("leaf")
    assert first == second
    assert len({first, second, library.resolve("leaf", cann="9.0.0"), library.resolve("base")}) == 3
    assert first != library.resolve("leaf", cann="9.0.0")
    assert first != dict(first)


def test_a_config_can_be_sent_to_another_process(library: npuprof.Library) -> None:
    config = library.resolve(
        "leaf", product="atlas-a2", set={"hccl_timeout": 5, "env.A": "1"}, unset=["dump_path"]
    )
    again = pickle.loads(pickle.dumps(config))
    assert again == config
    assert again.preset_digest == config.preset_digest
    assert again.digest == config.digest
    assert npuprof.render(again, "json") == npuprof.render(config, "json")
    assert npuprof.check(again) == npuprof.check(config)
    assert [str(origin) for origin in again.origins("hccl_timeout")] == [
        str(origin) for origin in config.origins("hccl_timeout")
    ]


def test_a_store_is_read_like_a_collection(library: npuprof.Library, tmp_path: Path) -> None:
    assert list(library) == library.names() == ["base", "leaf"]
    assert len(library) == 2
    assert "leaf" in library
    assert "gone" not in library
    assert list(npuprof.open_store(tmp_path / "profiles")) == ["base", "leaf"]
    assert "bert-training" in npuprof.open_store("builtin:").names()


def test_a_store_is_checked_as_a_whole(library: npuprof.Library, tmp_path: Path) -> None:
    assert {finding.profiles for finding in npuprof.check(library) if finding.code == "NP303"} == {
        ("base",)
    }
    build_store(tmp_path / "profiles", {"torn": "x =", "lost": 'profile.extends = ["gone"]\n'})
    found = npuprof.check(npuprof.open_store(tmp_path / "profiles"))
    assert {finding.code for finding in found if finding.severity == "error"} == {
        "NP001",
        "NP101",
        "NP303",
    }


@pytest.mark.parametrize(
    "options",
    [
        'precision_mode_v2 = "fp17"',
        'precision_mode_v2 = "fp16"\nprecision_mode = "force_fp16"',
        "hccl_timeot = 1",
    ],
)
def test_what_is_rendered_exported_or_applied_is_checked_first(options: str) -> None:
    config = npuprof.loads(f"[options]\n{options}\n")
    for export in (
        lambda **how: npuprof.render(config, "session", **how),
        lambda **how: npuprof.env(config, **how),
    ):
        with pytest.raises(npuprof.NpuprofError):
            export()
    with pytest.raises(npuprof.NpuprofError):
        npuprof.apply(config, SimpleNamespace(graph_options=None))
    if "timeot" not in options:
        assert "precision_mode" in npuprof.render(config, "session", check=False)
        assert "NPUPROF_PRECISION_MODE_V2" in npuprof.env(config, check=False)


def test_a_target_gets_the_overrides_that_are_for_it() -> None:
    text = (
        '[options]\nhccl_timeout = 1\n[[override]]\nmatch = { target = "session" }\n'
        "options = { hccl_timeout = 2 }\n"
    )
    config = npuprof.loads(text, set={"deterministic": 1})
    assert json.loads(npuprof.render(config, "json"))["options"] == {
        "hccl_timeout": 1,
        "deterministic": 1,
    }
    assert ".i = 2" in npuprof.render(config, "session", inline=True)
    assert ".i = 1" in npuprof.render(config, "session", inline=True)
    with pytest.raises(
        npuprof.NpuprofError, match="resolved for the target keras, not for session"
    ):
        npuprof.render(npuprof.loads(text, target="keras"), "session")


def test_the_environment_is_that_of_the_command(
    library: npuprof.Library, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = library.resolve("leaf", set={"env.HCCL_CONNECT_TIMEOUT": 600})
    found = npuprof.env(config)
    assert found["HCCL_CONNECT_TIMEOUT"] == "600"
    result = run("env", "leaf", "--set", "env.HCCL_CONNECT_TIMEOUT=600", "--shell", "bash")
    assert set(re.findall(r"^export (\w+)=", result.out, re.MULTILINE)) == found.keys()
    with pytest.raises(npuprof.NpuprofError, match="NP930"):
        npuprof.env(npuprof.loads('env.LD_PRELOAD = "/x.so"'))
    with pytest.raises(npuprof.NpuprofError) as caught:
        npuprof.env(npuprof.loads('env.LD_PRELOAD = "/x.so"\nenv.BASH_ENV = "/x"'))
    assert [finding.hint for finding in caught.value.findings] == [
        "",
        "pass trust=True for this once",
    ]
    assert (
        npuprof.env(npuprof.loads('env.LD_PRELOAD = "/x.so"'), trust=True)["LD_PRELOAD"] == "/x.so"
    )


@pytest.mark.parametrize("trust", [False, True])
def test_an_environment_for_a_command_is_without_what_the_preset_unsets(trust: bool) -> None:
    config = npuprof.loads(
        'profile.unset = ["env.HCCL_ALGO", "env.BASH_ENV"]\nenv.HCCL_CONNECT_TIMEOUT = 600\n'
    )
    outer = {
        "HCCL_ALGO": "x",
        "BASH_ENV": "/host",
        "HCCL_CONNECT_TIMEOUT": "1",
        "NPUPROF_HCCL_TIMEOUT": "1",
        "NPUPROF_STORE": "/s",
    }
    found = npuprof.env(config, outer, trust=trust, check=False)
    kept = {"NPUPROF_STORE": "/s"} if trust else {"NPUPROF_STORE": "/s", "BASH_ENV": "/host"}
    assert found == npuprof.env(config, check=False) | kept
    assert found["HCCL_CONNECT_TIMEOUT"] == "600"


#: A misuse of a store, or of a config of it, and what is said.
MISUSE: list[tuple[Callable[[Any, Any], object], type[Exception], str]] = [
    pytest.param(
        lambda store, config: npuprof.check(None), TypeError, "a Config is needed", id="check None"
    ),
    pytest.param(
        lambda store, config: npuprof.diff(config, {}),
        TypeError,
        "a Config is needed",
        id="diff with a dict",
    ),
    pytest.param(
        lambda store, config: npuprof.render(config, ["session"]),
        TypeError,
        "target must be a str, not list",
        id="render for a list",
    ),
    pytest.param(
        lambda store, config: npuprof.render(config, "sesion"),
        NpuprofError,
        "unknown target 'sesion'",
        id="render for an unknown target",
    ),
    pytest.param(
        lambda store, config: npuprof.env(config, "PATH"),
        TypeError,
        "environ must be a mapping of texts, not str",
        id="env with a text",
    ),
    pytest.param(
        lambda store, config: npuprof.apply(config, None),
        TypeError,
        "must be a tf.compat.v1.ConfigProto, not NoneType",
        id="apply to None",
    ),
    pytest.param(
        lambda store, config: store.resolve("leaf", unset="dump_path"),
        TypeError,
        "unset must be a list of texts, not one text",
        id="unset one text",
    ),
    pytest.param(
        lambda store, config: store.resolve("leaf", unset=[1]),
        TypeError,
        "unset must be a list of texts",
        id="unset a number",
    ),
    pytest.param(
        lambda store, config: store.resolve("leaf", mixins=["-"]),
        NpuprofError,
        "npuprof.loads",
        id="standard input as a mixin",
    ),
    pytest.param(
        lambda store, config: store.resolve("leaf+-"),
        NpuprofError,
        "npuprof.loads",
        id="standard input in a name",
    ),
    pytest.param(
        lambda store, config: store.resolve("leaf", set=["a=1"]),
        TypeError,
        "set must be a dict",
        id="set a list",
    ),
    pytest.param(
        lambda store, config: store.resolve("leaf", set={3: 1}),
        TypeError,
        "each key a str",
        id="set a key that is a number",
    ),
    pytest.param(
        lambda store, config: store.resolve("leaf", cann=9.0),
        TypeError,
        "cann must be a str, not float",
        id="release as a float",
    ),
    pytest.param(
        lambda store, config: store.resolve("leaf", product=""),
        NpuprofError,
        "unknown product ''",
        id="empty product",
    ),
    pytest.param(
        lambda store, config: store.resolve("leaf", target="sesion"),
        NpuprofError,
        "did you mean 'session'",
        id="unknown target of a store",
    ),
    pytest.param(
        lambda store, config: store.resolve(None),
        TypeError,
        "name must be a str or a pathlib.Path, not NoneType",
        id="resolve None",
    ),
    pytest.param(
        lambda store, config: npuprof.loads(b""),
        TypeError,
        "text must be a str, not bytes",
        id="load bytes",
    ),
    pytest.param(
        lambda store, config: npuprof.loads("a = '\ud800'"),
        TypeError,
        "lone surrogate",
        id="load a lone surrogate",
    ),
    pytest.param(
        lambda store, config: npuprof.loads("", store="profiles"),
        TypeError,
        "store must be the result of open_store",
        id="store as a text",
    ),
    pytest.param(
        lambda store, config: npuprof.open_store(""),
        NpuprofError,
        "error NP010: path is empty",
        id="open an empty path",
    ),
    pytest.param(
        lambda store, config: npuprof.open_store("empty"),
        NpuprofError,
        "error NP010: there is no preset in empty",
        id="open an empty folder",
    ),
]


@pytest.mark.parametrize(("use", "kind", "message"), MISUSE)
def test_misuse_is_an_error_in_words(
    library: npuprof.Library, use: Callable[..., object], kind: type[Exception], message: str
) -> None:
    Path("empty").mkdir()
    with pytest.raises(kind, match=re.escape(message)):
        use(library, library.resolve("leaf"))


def test_the_examples_of_the_docstrings_are_true(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    failed, tried = doctest.testmod(import_module("npuprof.library"))
    assert failed == 0
    assert tried > 0


@pytest.mark.nightly("docs/test_docs.py::test_what_a_page_shows_is_what_happens")
def test_the_snippets_of_pages_and_docstrings_are_typed(tmp_path: Path) -> None:
    shown = [
        block for path in PAGES.values() for block in read_blocks(path.read_text(encoding="utf-8"))
    ]
    snippets = [block.text for block in shown if block.language == "python" and not block.path]
    for name, module in (("npuprof", "npuprof.library"), ("npuprof.integrations.arguments",) * 2):
        examples = (
            example.examples
            for example in doctest.DocTestFinder().find(import_module(module), globs={})
        )
        snippets += [
            f"from {name} import *\n" + "".join(line.source for line in lines)
            for lines in examples
            if lines
        ]
    assert len(snippets) > 6
    for number, snippet in enumerate(snippets):
        (tmp_path / f"snippet{number}.py").write_text(snippet, encoding="utf-8")
    arguments = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--ignore-missing-imports",
        "--follow-imports=silent",
        "--no-error-summary",
    ]
    arguments += [f"snippet{number}.py" for number in range(len(snippets))]
    done = subprocess.run(
        arguments,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPYPATH": str(REPOSITORY)},
    )
    assert done.returncode == 0, done.stdout


def test_findings_carry_the_fields_of_the_contract(library: npuprof.Library) -> None:
    config = npuprof.loads("[options]\nhcom_paralel = true\n")
    (finding,) = npuprof.check(config)
    assert finding.code == "NP201"
    assert finding.severity == "error"
    assert finding.key == "hcom_paralel"
    assert finding.path == "<text>"
    assert finding.line == 2
    assert finding.column == 1
    assert finding.hint == "did you mean 'hcom_parallel'?"
    assert finding.message


def test_text_can_have_parents_in_a_store(library: npuprof.Library) -> None:
    config = npuprof.loads(
        'profile.extends = ["leaf"]\noptions.hccl_timeout = 1', store=library, product="atlas-a2"
    )
    assert config.options["precision_mode_v2"] == "mixed_bfloat16"
    assert [profile.name for profile in config.lineage] == ["base", "leaf", "<text>"]


def test_errors_have_places_and_repairs(library: npuprof.Library, tmp_path: Path) -> None:
    with pytest.raises(npuprof.NpuprofError) as caught:
        library.resolve("laef")
    (finding,) = caught.value.findings
    assert finding.code == "NP008"
    assert finding.hint == "did you mean 'leaf'?"
    with pytest.raises(npuprof.NpuprofError, match="not a folder") as caught:
        npuprof.open_store(str(tmp_path / "gone"))
    assert caught.value.findings[0].why == "It was named by path."
    with pytest.raises(npuprof.NpuprofError) as caught:
        npuprof.loads("[options]\nx =\n")
    assert caught.value.findings[0].place == "<text>:2:4"
    assert "<text>:2:4: error NP001" in str(caught.value)


def test_a_store_is_found_as_the_command_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_store(tmp_path / "a/profiles", {"x": ""})
    build_store(tmp_path / "b", {"y": ""})
    (tmp_path / "a/deep/er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a/deep/er")
    assert npuprof.open_store().names() == ["x"]
    monkeypatch.setenv("NPUPROF_STORE", str(tmp_path / "b"))
    assert npuprof.open_store().names() == ["y"]


OFFLINE = '[profile]\nscenario = "offline-inference"\n[options]\nprecision_mode_v2 = "fp16"\n'


@pytest.mark.parametrize("target", npuprof.TARGETS)
def test_a_preset_for_the_atc_compiler_is_written_for_it_and_no_session(target: str) -> None:
    config = npuprof.loads(OFFLINE)
    if target in ("ge", "atc", "toml", "json"):
        assert "fp16" in npuprof.render(config, target)
    else:
        with pytest.raises(npuprof.NpuprofError, match="NP916"):
            npuprof.render(config, target)
    with pytest.raises(npuprof.NpuprofError, match="NP916"):
        npuprof.apply(config, SimpleNamespace(graph_options=None))


class Mode(str, enum.Enum):  # noqa: UP042 - as scripts write it
    FP16 = "fp16"


class Text(str):
    pass


class Seconds(enum.IntEnum):
    LONG = 600


class OfNumpy:
    """A number or an array, as numpy has them: they say what they are in plain Python."""

    def __init__(self, value: Any) -> None:
        self.tolist = lambda: value


RING: list[Any] = []
RING.append(RING)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        pytest.param(Mode.FP16, "fp16", id="enum of texts"),
        pytest.param(Text("a"), "a", id="subclass of str"),
        pytest.param(Seconds.LONG, 600, id="enum of numbers"),
        pytest.param(OfNumpy(3), 3, id="number of NumPy"),
        pytest.param(OfNumpy(True), True, id="truth value of NumPy"),
        pytest.param(OfNumpy([[0.5]]), [[0.5]], id="array of NumPy"),
        pytest.param((Seconds.LONG,), [600], id="tuple"),
        pytest.param({Text("a"): Mode.FP16}, {"a": "fp16"}, id="table"),
    ],
)
def test_a_value_is_held_as_the_plain_value_that_it_stands_for(
    given: object, stored: object
) -> None:
    value = npuprof.loads("", set={"x": given}).options["x"]
    assert value == stored
    assert json.dumps(value) == json.dumps(stored)
    assert type(value) is type(stored) or isinstance(value, (list, dict))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(None, id="None"),
        pytest.param(b"x", id="bytes"),
        pytest.param({1: 2}, id="a key that is no text"),
        pytest.param("\ud800", id="lone surrogate"),
        pytest.param(["\ud800"], id="lone surrogate in a list"),
        pytest.param({"\ud800": 1}, id="lone surrogate in a key"),
        pytest.param(RING, id="a list that contains itself"),
        pytest.param({"a": RING}, id="such a list in a table"),
        pytest.param(OfNumpy(1j), id="complex number"),
        pytest.param(10**5000, id="huge"),
        pytest.param([-(10**5000)], id="small"),
    ],
)
def test_a_value_that_no_preset_can_hold_is_refused_by_name(value: object) -> None:
    with pytest.raises(NpuprofError, match="NP202: x cannot be"):
        npuprof.loads("", set={"x": value})


#: What the library gives that is meant as a value, by its name, of a store and two presets of it.
VALUES: dict[str, Callable[[npuprof.Library, npuprof.Config, npuprof.Config], Any]] = {
    "a store": lambda store, leaf, other: store,
    "a config": lambda store, leaf, other: leaf,
    "a finding at a key": lambda store, leaf, other: next(
        finding for finding in npuprof.check(leaf) if finding.origin
    ),
    "a finding with a fix": lambda store, leaf, other: next(
        finding for finding in npuprof.check(leaf) if finding.fix
    ),
    "a change": lambda store, leaf, other: npuprof.diff(leaf, other)[0],
    "an origin": lambda store, leaf, other: leaf.origins("hccl_timeout")[0],
    "an origin on a command line": lambda store, leaf, other: other.origins("hccl_timeout")[0],
    "a claim": lambda store, leaf, other: leaf.claims["scenario"],
    "an option": lambda store, leaf, other: find_option("hccl_timeout"),
    "a step": lambda store, leaf, other: leaf.history("modify_mixlist")[0].step,
    "an event": lambda store, leaf, other: leaf.history("modify_mixlist")[0],
    "a context": lambda store, leaf, other: other.context,
    "a place": lambda store, leaf, other: Place("a.py", 3, 1),
    "a fix with a table": lambda store, leaf, other: Fix({"a": [1, {"b": float("nan")}]}),
    "a document": lambda store, leaf, other: leaf.lineage[0].document,
}
COPIES: dict[str, Callable[[Any], Any]] = {
    **{
        f"pickle {protocol}": lambda value, protocol=protocol: pickle.loads(
            pickle.dumps(value, protocol)
        )
        for protocol in (0, 2, pickle.HIGHEST_PROTOCOL)
    },
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("name", VALUES)
def test_what_is_meant_as_a_value_equals_its_copies_and_does_not_change(name: str) -> None:
    build_store(
        Path("profiles"),
        {
            "base": BASE,
            "leaf": f"{LEAF}[env]\nHCCL_CONNECT_TIMEOUT = '1h'\n[estimator]\nnope = 1\n",
        },
    )
    store = npuprof.open_store()
    leaf, other = (
        store.resolve("leaf"),
        store.resolve("leaf", set={"hccl_timeout": 3}, cann="9.0.0"),
    )
    value = VALUES[name](store, leaf, other)
    shown = repr(value)
    for way, make in COPIES.items():
        again = make(value)
        assert type(again) is type(value)
        assert again == value, way
        assert hash(again) == hash(value), way
        assert {value: 1}[again] == 1
        assert name == "a store" or repr(again) == shown  # which says how it was opened
    assert value != "another kind"
    if name not in (
        "a step",
        "a document",
    ):  # which are made by thousands, and handed out inside of others
        for field in (*getattr(value, "_fields", ("name",)), "nope"):
            with pytest.raises(AttributeError):
                setattr(value, field, 1)
            with pytest.raises(AttributeError):
                delattr(value, field)
    assert repr(value) == shown
    assert " at 0x" not in shown


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        pytest.param(Fix(1), Fix(True), False, id="number and truth value"),
        pytest.param(Fix(1), Fix(1.0), False, id="integer and float"),
        pytest.param(Fix([1]), Fix([True]), False, id="elements of a list"),
        pytest.param(Fix({"a": 1, "b": 2}), Fix({"b": 2, "a": 1}), True, id="order of a table"),
        pytest.param(Fix(float("nan")), Fix(float("nan")), True, id="NaN"),
        pytest.param(Fix(0.5), Fix(0.5), True, id="equal floats"),
        pytest.param(Fix([1]), Fix((1,)), False, id="list and tuple"),
        pytest.param(Fix("1"), Fix(1), False, id="text and number"),
        pytest.param(Place("a", 1), Place("a", 1, 0), True, id="a default written out"),
        pytest.param(Place("a", 1), Fix("a"), False, id="another class"),
    ],
)
def test_records_are_compared_by_type_and_value(left: Any, right: Any, same: bool) -> None:
    assert (left == right) is same
    assert not same or hash(left) == hash(right)


def test_errors_keep_their_findings_in_a_copy() -> None:
    with pytest.raises(NpuprofError) as caught:
        npuprof.loads("[options]\na = [")
    assert (
        pickle.loads(pickle.dumps(caught.value)).findings
        == copy.deepcopy(caught.value).findings
        == caught.value.findings
    )


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("precison_mode_v2", "did you mean 'precision_mode_v2'"),
        ("hccl_timeot", "did you mean 'hccl_timeout'"),
        ("HCCL_CONNECT_TIMEOUT", "write 'env.HCCL_CONNECT_TIMEOUT'"),
        ("env.HCCL_CONNECT_TIMEOT", "did you mean 'env.HCCL_CONNECT_TIMEOUT'"),
    ],
)
def test_a_misspelt_key_is_a_key_error_that_names_the_near_one(key: str, message: str) -> None:
    config = npuprof.loads("options.hccl_timeout = 600")
    for ask in (config.__getitem__, config.origins):
        with pytest.raises(KeyError) as caught:
            ask(key)
        assert message in str(caught.value)
        assert caught.value.args == (key,)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert config.get(key) is None
    assert key not in config


def test_a_known_key_that_nobody_sets_has_no_origin_and_is_said_not_to_be_set() -> None:
    config = npuprof.loads("env.OWN = 1")
    assert config.origins("hccl_timeout") == []
    assert config.origins("env.ANYTHING_AT_ALL") == []
    with pytest.raises(KeyError, match="does not set 'hccl_timeout'"):
        config["hccl_timeout"]
    with pytest.raises(KeyError, match=r"^5$"):
        config[5]  # type: ignore[index]


def test_a_preset_and_its_mixins_may_be_named_by_paths(tmp_path: Path) -> None:
    (tmp_path / "it.toml").write_text("options.hccl_timeout = 7\n")
    (tmp_path / "over.toml").write_text("options.hccl_timeout = 8\n")
    store = npuprof.open_store("builtin:")
    assert store.resolve(tmp_path / "it.toml")["hccl_timeout"] == 7
    assert store.resolve(tmp_path / "it.toml", mixins=[tmp_path / "over.toml"])["hccl_timeout"] == 8
