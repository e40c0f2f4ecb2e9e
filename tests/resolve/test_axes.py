"""Axes that npuprof.toml declares: resolution against a second resolver, errors, and verbs."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import npuprof
from npuprof.commands.framework import list_verbs
from npuprof.model import NpuprofError
from npuprof.resolve import contexts
from support.building import build_store, toml
from support.repositories import Repo
from support.running import Run, expect

AXES = {"role": ["prefill", "decode", "both"], "site": ["beijing", "gz"]}
DECLARED = '[axes]\nrole = ["prefill", "decode", "both"]\nsite = ["beijing", "gz"]\n'
#: A preset that decode and one site change.
SERVING = """\
[profile]
scenario = "online-inference"

[options]
hccl_timeout = 600

[env]
HCCL_CONNECT_TIMEOUT = 1800

[[override]]
match = { role = "decode" }
options = { hccl_timeout = 900 }
env = { HCCL_CONNECT_TIMEOUT = 1900 }

[[override]]
match = { role = ["decode", "both"], site = "gz" }
options = { hccl_timeout = 1200 }
"""
#: The same without axes.
PLAIN = SERVING.partition("\n[[override]]")[0]


def declare(folder: Path, presets: dict[str, str], declared: str = DECLARED) -> Path:
    """Write a store with its npuprof.toml; return the store."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "npuprof.toml").write_text(declared)
    return build_store(folder / "profiles", presets)


# -- a second resolver: parsed TOML, folded by section 3 of the contract --------------------------


def order_layers(documents: dict[str, Any], name: str) -> list[str]:
    """Return the layers of a preset, lowest first: Python's own linearisation of its parents."""
    classes: dict[str, type] = {}

    def build(preset: str) -> type:
        if preset not in classes:
            parents = documents[preset]["profile"].get("extends", [])
            classes[preset] = type(preset, tuple(map(build, reversed(parents))), {})
        return classes[preset]

    return [cls.__name__ for cls in reversed(build(name).__mro__[:-1])]


def is_met(match: dict[str, Any], context: dict[str, str]) -> bool:
    """Return whether a context has one of the listed values on every axis of a match."""
    return all(
        context.get(axis) in (allowed if isinstance(allowed, list) else [allowed])
        for axis, allowed in match.items()
    )


def merge(known: Any, new: Any, appends: bool) -> Any:
    """Return a value after another one is set over it, or appended to it."""
    if isinstance(new, dict) and (known is None or isinstance(known, dict)):
        known = known or {}
        return known | {name: merge(known.get(name), new[name], appends) for name in new}
    if appends and isinstance(new, list):  # the lists are sets: an element occurs once
        known = known or []
        return [*known, *dict.fromkeys(item for item in new if item not in known)]
    return new


def fold(documents: dict[str, Any], name: str, context: dict[str, str]) -> tuple[Any, int]:
    """Return the settings of a preset by section and name, and how many overrides applied."""
    settings: dict[tuple[str, str], Any] = {}
    applied = 0
    for layer in order_layers(documents, name):
        document = documents[layer]
        blocks = [{**document, "unset": document["profile"].get("unset", [])}]
        met = [block for block in document["override"] if is_met(block["match"], context)]
        applied += len(met)
        for block in (*blocks, *met):
            for key in block.get("unset", []):
                section, _, plain = key.rpartition(".")
                settings.pop((section or "options", plain), None)
            for table, appends in ((block, False), (block.get("append", {}), True)):
                for section in ("options", "env"):
                    for plain, value in table.get(section, {}).items():
                        key = section, plain
                        settings[key] = merge(settings.get(key), value, appends)
    return settings, applied


LISTS = st.lists(st.sampled_from(["MatMul", "Cast", "Add"]), min_size=1, max_size=2)
MIXLIST = st.builds(lambda names: {"modify_mixlist": {"black-list": {"to-add": names}}}, LISTS)
OPTIONS = st.one_of(
    st.builds(lambda number: {"hccl_timeout": number}, st.integers(600, 605)), MIXLIST, st.just({})
)
ENV = st.dictionaries(
    st.sampled_from(["HCCL_EXEC_TIMEOUT", "HCCL_CONNECT_TIMEOUT"]), st.integers(600, 605)
)
UNSET = st.lists(
    st.sampled_from(["hccl_timeout", "env.HCCL_EXEC_TIMEOUT"]), max_size=1, unique=True
)
MATCH = st.fixed_dictionaries(
    {},
    optional={
        **{
            axis: st.one_of(
                st.sampled_from(values),
                st.lists(st.sampled_from(values), min_size=2, max_size=2, unique=True),
            )
            for axis, values in AXES.items()
        },
        "product": st.sampled_from(["atlas-a2", "atlas-a3"]),
    },
).filter(bool)


def list_parts() -> dict[str, st.SearchStrategy[Any]]:
    """Return what a layer or an override consists of."""
    return {"options": OPTIONS, "env": ENV}


@st.composite
def stores(draw: st.DrawFn) -> dict[str, Any]:
    """Return the documents of a store by name, the last of which may extend all others."""
    names = [f"p{number}" for number in range(draw(st.integers(1, 4)))]
    documents = {}
    for place, name in enumerate(names):
        parents = draw(st.lists(st.sampled_from(names[:place]), unique=True)) if place else []
        override = st.fixed_dictionaries(
            {"match": MATCH, "unset": UNSET, **list_parts()}, optional={"append": APPEND}
        )
        documents[name] = {
            "profile": {"extends": parents, "unset": draw(UNSET)},
            **{part: draw(strategy) for part, strategy in list_parts().items()},
            "override": draw(st.lists(override, min_size=1, max_size=3)),
        }
    return documents


APPEND = st.fixed_dictionaries({"options": MIXLIST})
CONTEXT = st.fixed_dictionaries(
    {axis: st.sampled_from(values) for axis, values in AXES.items()},
    optional={"product": st.sampled_from(["atlas-a2", "atlas-a3"])},
)
#: How many stores were compared and how many overrides applied in them, over all examples.
_seen = {"stores": 0, "overrides": 0}


@settings(max_examples=60)
@given(stores(), CONTEXT)
def compare_with_second_resolver(documents: dict[str, Any], context: dict[str, str]) -> None:
    name = list(documents)[-1]
    try:
        expected, applied = fold(documents, name, context)
    except TypeError:  # Python finds no order of the parents
        expected, applied = None, 0
    with tempfile.TemporaryDirectory() as folder:
        texts = {preset: toml(document) for preset, document in documents.items()}
        store = npuprof.open_store(declare(Path(folder), texts))
        product = context.get("product")
        axes = {axis: value for axis, value in context.items() if axis in AXES}
        if expected is None:
            with pytest.raises(NpuprofError, match="NP103"):
                store.resolve(name, axes=axes, product=product)
            return
        config = store.resolve(name, axes=axes, product=product)
    actual = {("options", key): value for key, value in config.options.items()} | {
        ("env", key): value for key, value in config.env.items()
    }
    assert actual == expected
    _seen["stores"] += 1
    _seen["overrides"] += applied


def test_a_second_resolver_agrees_in_every_context() -> None:
    _seen.update(stores=0, overrides=0)
    compare_with_second_resolver()
    assert _seen["overrides"] >= _seen["stores"] / 4 > 10


# -- what is declared -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ('product = ["a"]', "'product' cannot be an axis: the name has another meaning"),
        ('To = ["a"]', "the name has another meaning"),
        ('spec = ["a"]', "the name has another meaning"),
        ('scenario = ["a"]', "the name has another meaning"),
        ('env = ["a"]', "the name has another meaning"),
        ('torch_npu = ["a"]', "the name has another meaning"),
        ('vllm = ["a"]', "the name has another meaning"),
        ('hccl_timeout = ["a"]', "the name is that of an option"),
        ('"two words" = ["a"]', "letters, digits and '_'"),
        ('In = ["a"]', "letters, digits and '_'"),
        ("role = []", "must be a list of texts"),
        ('role = "decode"', "must be a list of texts"),
        ("role = [1]", "must be a list of texts"),
        ('role = [""]', "must be a list of texts"),
        ('role = ["a b"]', "must be a list of texts"),
        ('role = ["a,b"]', "must be a list of texts"),
        ('role = ["a=b"]', "must be a list of texts"),
        ('role = ["a", "a"]', "a value is listed twice"),
    ],
)
def test_a_faulty_axis_is_an_error_of_npuprof_toml(
    tmp_path: Path, run: Run, declared: str, message: str
) -> None:
    store = declare(tmp_path, {"serving": PLAIN}, f"[axes]\n{declared}\n")
    expect(run("check", "--store", store), 2, "NP040", message)


@pytest.mark.parametrize(
    ("preset", "texts"),
    [
        ('[[override]]\nmatch = { rol = "decode" }', ["3:11", "'rol' in match", "'role'"]),
        (
            '[[override]]\nmatch = { role = "decod" }',
            ["3:11", "'decod' of the axis", "'decode'", "npuprof.toml declares the axes"],
        ),
        (
            '[[override]]\nmatch = { role = ["both", "gz"] }',
            ["'gz' of the axis", "prefill, decode"],
        ),
        ('[profile.axes]\nrol = ["decode"]', ["'rol' in axes", "'role'"]),
        ('[profile.axes]\nrole = ["prefil"]', ["'prefil' of the axis", "'prefill'"]),
    ],
)
def test_an_undeclared_name_in_a_preset_is_np006_with_the_nearest(
    tmp_path: Path, run: Run, preset: str, texts: list[str]
) -> None:
    store = declare(tmp_path, {"serving": f"# a preset\n{preset}\noptions.hccl_timeout = 900\n"})
    expect(run("check", "--store", store), 2, "NP006", *texts)


@pytest.mark.parametrize("value", ['"decode"', "[]", "[1]"])
def test_axes_of_a_preset_are_lists_of_texts(tmp_path: Path, run: Run, value: str) -> None:
    store = declare(tmp_path, {"serving": f"[profile.axes]\nrole = {value}\n"})
    expect(run("check", "--store", store), 2, "NP007", "'role' in axes must be a list of texts")


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (["show", "serving", "--axis", "rol=decode"], ["unknown axis 'rol'", "'role'"]),
        (["show", "serving", "--axis", "role=decod"], ["'decod' of the axis", "'decode'"]),
        (["list", "--where", "role == 'decod'"], ["'decod' of the axis", "'decode'"]),
        (["list", "--where", "role in ('both', 'x')"], ["'x' of the axis", "prefill, decode"]),
        (["check", "--axis", "role"], ["'' of the axis", "prefill, decode"]),
    ],
)
def test_an_undeclared_name_in_an_argument_is_np006_with_the_nearest(
    tmp_path: Path, run: Run, arguments: list[str], texts: list[str]
) -> None:
    store = declare(tmp_path, {"serving": SERVING})
    expect(run(*arguments, "--store", store), 2, "NP006", *texts)


def test_two_values_of_one_axis_are_an_error(tmp_path: Path, run: Run) -> None:
    store = declare(tmp_path, {"serving": SERVING})
    chosen = ("--axis", "role=decode", "--axis", "role=both")
    expect(
        run("show", "serving", *chosen, "--store", store), 2, "--axis selects two values of an axis"
    )


def test_a_preset_without_npuprof_toml_has_no_axes(tmp_path: Path, run: Run) -> None:
    store = build_store(tmp_path / "profiles", {"serving": SERVING})
    expect(run("check", "--store", store), 2, "NP006", "unknown key 'role' in match")
    with pytest.raises(NpuprofError, match="NP006"):
        npuprof.loads(SERVING)


def test_a_change_of_npuprof_toml_takes_effect(tmp_path: Path, run: Run) -> None:
    store = declare(tmp_path, {"serving": SERVING})
    assert run("check", "--store", store).code == 0
    declare(tmp_path, {}, '[axes]\nrole = ["prefill", "both"]\n')
    expect(run("check", "--store", store), 2, "'decode' of the axis 'role'", "'site' in match")


def test_a_revision_has_the_axes_of_its_own_npuprof_toml(repo: Repo, run: Run) -> None:
    declare(repo.folder, {"serving": SERVING})
    repo.commit({})
    declare(repo.folder, {"serving": PLAIN}, "")
    expect(run("show", "serving@HEAD"), 0, "hccl_timeout = 600")
    expect(run("check", "--rev", "HEAD"), 0)
    repo.commit({})
    expect(run("log", "serving", "env.HCCL_CONNECT_TIMEOUT"), 0, "HCCL_CONNECT_TIMEOUT")
    (repo.folder / "profiles/serving.toml").write_text(SERVING)
    expect(run("check"), 2, "NP006")


# -- narrowing ------------------------------------------------------------------------------------


def narrow(**presets: str) -> dict[str, str]:
    return {name: f"[profile]\n{head}\n" for name, head in presets.items()}


@pytest.mark.parametrize(
    ("presets", "left"),
    [
        (narrow(a='axes.role = ["decode", "both"]'), ["decode", "both"]),
        (narrow(b='axes.role = ["both"]', a='extends = ["b"]'), ["both"]),
        (
            narrow(
                c='axes.role = ["both", "decode"]',
                b='axes.role = ["decode"]',
                a='extends = ["c", "b"]',
            ),
            ["decode"],
        ),
        (narrow(b='axes.role = ["both"]', a='extends = ["b"]\naxes.role = ["decode"]'), ["decode"]),
    ],
)
def test_parents_narrow_an_axis_together_and_own_values_decide(
    tmp_path: Path, presets: dict[str, str], left: list[str]
) -> None:
    config = npuprof.open_store(declare(tmp_path, presets)).resolve("a")
    assert config.axes == {"role": tuple(left)} or config.axes == {"role": left}
    assert pickle.loads(pickle.dumps(config)) == config


def test_an_empty_intersection_names_both_presets(tmp_path: Path, run: Run) -> None:
    presets = narrow(c='axes.role = ["both"]', b='axes.role = ["decode"]', a='extends = ["c", "b"]')
    store = declare(tmp_path, presets)
    both = ["no role", "for both by c", "for decode by b"]
    expect(run("show", "a", "--store", store), 2, "NP108", *both)
    expect(run("show", "b", "--with", "c", "--store", store), 2, "NP108", "no role")


def test_a_value_that_the_preset_excludes_is_a_warning(tmp_path: Path, run: Run) -> None:
    store = declare(tmp_path, {"serving": '[profile]\naxes = { role = ["decode"] }\n'})
    message = "the preset is meant for role decode, not for both"
    expect(run("check", "--axis", "role=both", "--store", store), 0, "NP407", message)
    assert "NP407" not in run("check", "--axis", "role=decode", "--store", store).out


def test_set_writes_a_list_of_values(tmp_path: Path, run: Run) -> None:
    store = declare(tmp_path, {"serving": PLAIN})
    assert run("set", "serving", "profile.axes.role=decode,both", "--store", store).code == 0
    config = npuprof.open_store(store).resolve("serving")
    assert list(config.axes["role"]) == ["decode", "both"]
    assert run("set", "serving", "profile.axes.role=decod", "--store", store).code == 2


# -- checks ---------------------------------------------------------------------------------------

#: stream_sync_timeout, in ms, is too short for hccl_timeout.
TOO_SHORT = """\
[options]
hccl_timeout = 1800
[[override]]
match = { role = "decode" }
options = { stream_sync_timeout = 600000 }
[[override]]
match = { role = "both", site = "gz", product = "atlas-a3" }
options = { stream_sync_timeout = 600000 }
"""


def test_a_finding_names_the_values_it_applies_to(tmp_path: Path, run: Run) -> None:
    store = declare(
        tmp_path, {"serving": TOO_SHORT, "part": narrow(a='extends = ["serving"]')["a"]}
    )
    output = expect(run("check", "--store", store), 0, "NP378", "for role decode")
    assert "on atlas-a3 for role both for site gz" in output
    output = expect(run("check", "--axis", "site=beijing", "--store", store), 0, "for role decode")
    assert "role both" not in output


def test_a_preset_is_judged_for_its_own_values_only(tmp_path: Path, run: Run) -> None:
    limited = f'[profile]\naxes = {{ role = ["both"], site = ["gz"] }}\n{TOO_SHORT}'
    store = declare(tmp_path, {"serving": limited})
    output = expect(run("check", "--store", store), 0, "NP711", 'matches role = "decode"')
    assert "for role decode" not in output
    assert "NP378" in output


def test_an_override_that_no_value_reaches_is_dead(tmp_path: Path, run: Run) -> None:
    narrowed = SERVING.replace(
        "[options]", '[profile.axes]\nrole = ["prefill", "both"]\n[options]', 1
    )
    store = declare(tmp_path, {"serving": narrowed})
    output = expect(run("check", "--store", store), 0, "NP711")
    assert output.count("NP711") == 1
    assert "role prefill, both" in output


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        ((), 1, ["TEAM-1", "deterministic is not set for role decode"]),
        (("--axis", "role=decode"), 1, ["TEAM-1"]),
        (("--axis", "role=both"), 0, ["no findings"]),
    ],
)
def test_a_team_rule_reads_an_axis(
    tmp_path: Path, run: Run, arguments: tuple[str, ...], code: int, texts: list[str]
) -> None:
    rule = (
        "\n[[rule]]\ncode = 'TEAM-1'\nwhen = \"role == 'decode'\"\nrequire = 'deterministic == 1'\n"
    )
    store = declare(tmp_path, {"serving": SERVING}, f"{DECLARED}{rule}")
    expect(run("check", *arguments, "--store", store), code, *texts)
    fixed = SERVING.replace("hccl_timeout = 900", "hccl_timeout = 900, deterministic = 1")
    build_store(store, {"serving": fixed})
    expect(run("check", *arguments, "--store", store), 0, "no findings")


def test_a_team_rule_with_an_undeclared_value_is_an_error(tmp_path: Path, run: Run) -> None:
    rule = "\n[[rule]]\ncode = 'T-1'\nrequire = \"role != 'decod'\"\n"
    store = declare(tmp_path, {"serving": SERVING}, f"{DECLARED}{rule}")
    expect(run("check", "--store", store), 2, "NP040", "'decod' of the axis", "'decode'")


def test_more_than_200_contexts_are_a_note_and_a_bounded_number_is_judged(
    tmp_path: Path, run: Run
) -> None:
    axes = {f"axis{number}": [f"v{value}" for value in range(7)] for number in range(6)}
    overrides = [
        f'[[override]]\nmatch = {{ {axis} = "{value}" }}\noptions.hccl_timeout = {600 + place}\n'
        for place, (axis, value) in enumerate(
            (axis, value) for axis, values in axes.items() for value in values
        )
    ]
    deep = ", ".join(f'{axis} = "v0"' for axis in axes)
    overrides.append(f"[[override]]\nmatch = {{ {deep} }}\noptions = {{ hccl_timeout = 99 }}\n")
    store = declare(tmp_path, {"serving": "".join(overrides)}, toml({"axes": axes}))
    output = expect(
        run("check", "--severity", "info", "--store", store),
        0,
        "NP712",
        "serving has 262144 contexts, of which 200 are checked",
    )
    assert "serving.toml:1" in output
    assert "NP711" not in output  # the override with six values can match
    config = npuprof.open_store(store).resolve("serving")
    assert len(contexts.ContextMap(config)._points) == 200


# -- without axes ---------------------------------------------------------------------------------


def test_axes_alone_change_no_byte(tmp_path: Path, run: Run) -> None:
    outputs = []
    for declared in ("", DECLARED):
        store = declare(tmp_path, {"serving": PLAIN}, declared)
        verbs = (["show", "serving"], ["list"], ["check"], ["explain", "serving", "hccl_timeout"])
        outputs.append([run(*verb, "--format", "json", "--store", store) for verb in verbs])
        outputs[-1].append(run("render", "serving", "--to", "json", "--store", store))
        fields = json.loads(outputs[-1][0].out)
        assert "axes" not in fields
        assert "axes" not in fields["context"]
    assert outputs[0] == outputs[1]


def test_a_value_that_no_override_matches_changes_no_digest(tmp_path: Path) -> None:
    store = npuprof.open_store(declare(tmp_path, {"serving": PLAIN}))
    plain, decode = store.resolve("serving"), store.resolve("serving", axes={"role": "decode"})
    assert (plain.digest, plain.preset_digest) == (decode.digest, decode.preset_digest)
    assert plain != decode


# -- verbs ----------------------------------------------------------------------------------------


#: A command that fails unless the preset was resolved for decode.
IS_DECODE = ["--", "sh", "-c", "test $HCCL_CONNECT_TIMEOUT = 1900"]


def list_context_verbs() -> Iterator[Any]:
    """Yield the verbs that take a product."""
    for names, verb in list_verbs():
        flags = {flag for parameter in verb.parameters.values() for flag in parameter.flags}
        if "--product" in flags and names != ("options",):  # which reads no preset
            yield pytest.param(flags, id=" ".join(names))


@pytest.mark.parametrize("flags", [*list_context_verbs()])
def test_a_verb_that_takes_a_product_takes_axes(flags: set[str]) -> None:
    assert "--axis" in flags


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["show", "serving"], "hccl_timeout = 900"),
        (["show", "serving", "--format", "json"], '"role": "decode"'),
        (["explain", "serving", "hccl_timeout"], "= 900"),
        (["render", "serving", "--to", "toml"], "# context: role decode"),
        (["env", "serving"], "HCCL_CONNECT_TIMEOUT='1900'"),
        (["run", "serving", "--", "env"], "HCCL_CONNECT_TIMEOUT=1900"),
        (["diff", "plain", "serving"], "600 → 900"),
        (["blame", "serving"], "900"),
        (["log", "serving", "hccl_timeout"], "900"),
        (["check", "serving"], "1 preset checked"),
        (["check", "--cann", "9.0.0", "--cann", "8.5.0"], "9.0.0 role decode"),
        (["migrate", "serving", "--cann", "9.0.0", "--dry-run"], ""),
        (["restore", "serving@HEAD", "--resolved", "-o", "-", "--dry-run"], ""),
        (["inject", "train.py", "serving", "--dry-run"], "axis: role=decode"),
        (
            ["sweep", "serving", "--vary", "stream_sync_timeout=-1", *IS_DECODE],
            "-1                   0",
        ),
    ],
)
def test_a_verb_resolves_for_the_selected_value(
    repo: Repo, arguments: list[str], text: str
) -> None:
    declare(repo.folder, {"serving": SERVING, "plain": PLAIN})
    (repo.folder / "train.py").write_text("import tensorflow as tf\nconfig = tf.ConfigProto()\n")
    repo.commit({})
    place = arguments.index("--") if "--" in arguments else len(arguments)
    command = [*arguments[:place], "--axis", "role=decode", *arguments[place:]]
    done = subprocess.run(
        [sys.executable, "-m", "npuprof", *command],
        cwd=repo.folder,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert text in done.stdout + done.stderr


def test_where_selects_by_the_value_that_a_preset_is_for(tmp_path: Path, run: Run) -> None:
    presets = narrow(one='axes.role = ["decode"]', two='axes.role = ["decode", "both"]', three="")
    store = declare(tmp_path, presets)
    output = run("list", "--where", "role == 'decode'", "--format", "json", "--store", store).out
    assert [row["name"] for row in json.loads(output)["presets"]] == ["one"]


def test_a_diff_of_revisions_names_the_values(repo: Repo, run: Run) -> None:
    declare(repo.folder, {"serving": SERVING})
    repo.commit({})
    declare(repo.folder, {"serving": SERVING.replace("= 900", "= 1000")})
    expect(run("diff", "--rev", "HEAD"), 0, "(role decode) hccl_timeout 900 → 1000 s")


def test_a_record_has_the_selected_values(repo: Repo, run: Run) -> None:
    declare(repo.folder, {"serving": SERVING})
    repo.commit({})
    command = ["run", "serving", "--axis", "role=decode", "--record", "runs", "--", "true"]
    done = subprocess.run([sys.executable, "-m", "npuprof", *command], cwd=repo.folder)
    assert done.returncode == 0
    [record] = (repo.folder / "runs").glob("*.run.json")
    fields = json.loads(record.read_text())
    assert fields["context"] == {"axes": {"role": "decode"}}
    assert fields["asked"]["axis"] == ["role=decode"]
    expect(run("whatran", record), 0, "serving", "role decode")
    expect(run("show", record), 0, "hccl_timeout = 900")


def test_editor_schemas_of_a_store_know_its_axes(tmp_path: Path, run: Run) -> None:
    store = declare(tmp_path, {"serving": SERVING})
    assert run("schema", "--update", "--store", store).code == 0
    [schema] = [
        fields
        for path in store.glob("*schema*.json")
        if (fields := json.loads(path.read_text()))["$id"] == "urn:npuprof:profile"
    ]
    match = schema["definitions"]["override"]["properties"]["match"]["properties"]
    assert {"enum": ["beijing", "gz"]} in match["site"]["anyOf"]


def test_every_pair_of_values_is_a_context(tmp_path: Path) -> None:
    store = npuprof.open_store(declare(tmp_path, {"serving": SERVING}))
    timeouts = {
        (role, site): store.resolve("serving", axes={"role": role, "site": site})["hccl_timeout"]
        for role, site in itertools.product(AXES["role"], AXES["site"])
    }
    assert timeouts == {
        ("prefill", "beijing"): 600,
        ("prefill", "gz"): 600,
        ("decode", "beijing"): 900,
        ("decode", "gz"): 1200,
        ("both", "beijing"): 600,
        ("both", "gz"): 1200,
    }
