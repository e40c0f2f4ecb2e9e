"""Rendered arguments, as real shells, argparse, Hydra and YAML loaders read them."""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, QuotedString
from hydra.errors import HydraException
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

import npuprof
from npuprof.renderers import arguments
from npuprof.resolve.config import Config
from support.building import build_store, config, examples, texts, toml
from support.running import Run, Store, expect

SHELLS = ["bash", "zsh"]
#: What a shell, argparse or Hydra acts on.
HOSTILE = [
    "",
    " ",
    "$(touch made)",
    "`touch made`",
    "${HOME}",
    "it's",
    '"',
    "a\nb\r\nc",
    "\\",
    "\\'",
    "a\\\\'\\",
    "=ls",
    "~",
    "*",
    "!!",
    "#",
    "a b",
    "[a]",
    "{a,b}",
    "-x",
    "--x=1",
    "-",
    "-1",
    "-1e-05",
    "@file",
    "null",
    "NULL",
    "True",
    "nan",
    "inf",
    "1e5",
    "1_0",
    "01",
    "a=b",
    "a:b",
    "a,b",
    "é\u2028\x85\U0001f600",
    "{args}",
]
#: A program with the arguments of ``build_parser``; it prints what it got.
PROGRAM = """\
import argparse, json, sys
parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("--tensor-model-parallel-size", type=int)
parser.add_argument("--lr", type=float)
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--fp16", action="store_true")
parser.add_argument("-n", type=int)
parser.add_argument("--data-path", nargs="*")
parser.add_argument("--none", nargs="*")
parser.add_argument("--betas", nargs="*", type=float)
parser.add_argument("--stage", nargs="*", action="append")
parser.add_argument("--model.hidden-size", type=int)
for number in range(int(sys.argv.pop(1))):
    parser.add_argument(f"--text-{number}")
json.dump(vars(parser.parse_args()), sys.stdout)
"""
RUN = {
    "tensor-model-parallel-size": 8,
    "lr": 1e-6,
    "bf16": True,
    "fp16": False,
    "-n": -3,
    "data-path": ["0.3", "a b", "$(touch made)"],
    "none": [],
    "betas": [-0.9, 0.95],
    "stage": [["a"], ["b", "c"], []],
    "model": {"hidden-size": 64},
    **{f"text-{number}": text for number, text in enumerate(HOSTILE)},
}


def list_flat(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that the program of ``PROGRAM`` should have, by its names of them."""
    flat = {**section, **{f"model.{key}": value for key, value in section["model"].items()}}
    del flat["model"]
    return {name.lstrip("-").replace("-", "_"): value for name, value in flat.items()}


def render(preset: Config, target: str) -> str:
    """Return the text of a preset, which may set unknown arguments, without a header."""
    text = npuprof.render(preset, target, inline=True, check=False)
    assert isinstance(text, str)
    return text


def read_array(shell: str, text: str) -> list[str]:
    """Return the words of the array that a real shell has after reading a file."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh", newline="") as file:
        file.write(text)
        file.flush()
        show = '. "$1"; for word in "${ARGS[@]}"; do printf "%s\\0" "$word"; done'
        done = subprocess.run([shell, "-c", show, "x", file.name], capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout.decode().split("\0")[:-1]


# -- argparse -------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("section", ["megatron", "args"])
def test_a_program_gets_from_a_shell_what_the_preset_has(
    shell: str, section: str, program: Path, tmp_path: Path
) -> None:
    text = npuprof.render(config(toml({section: RUN})), "args", check=False)
    assert isinstance(text, str)
    (tmp_path / "args.sh").write_text(text)
    line = f'. ./args.sh; {sys.executable} train.py {len(HOSTILE)} "${{ARGS[@]}}"'
    done = subprocess.run([shell, "-c", line], cwd=tmp_path, capture_output=True, check=True)
    assert json.loads(done.stdout) == list_flat(RUN)
    assert not (tmp_path / "made").exists()


def test_a_command_of_run_gets_what_the_preset_has(program: Path, tmp_path: Path) -> None:
    build_store(tmp_path / "profiles", {"leaf": toml({"args": RUN})})
    command = [sys.executable, "train.py", str(len(HOSTILE)), "{args}"]
    done = subprocess.run(
        [sys.executable, "-m", "npuprof", "run", "leaf", "--", *command],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == list_flat(RUN)
    assert not (tmp_path / "made").exists()


words = texts | st.sampled_from(HOSTILE)
single = words.filter(lambda text: text != "--" and "\0" not in text)
followed = single.filter(lambda text: not text.startswith("-"))
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
values = (
    st.booleans()
    | single
    | numbers
    | st.lists(followed, max_size=3)
    | st.lists(st.integers(-9, 9), max_size=3)
    | st.lists(st.lists(followed, max_size=3), min_size=1, max_size=3)
)
flags = st.from_regex(r"[a-z][a-z0-9_-]{0,6}", fullmatch=True)


def parse(given_words: Sequence[str], section: Mapping[str, Any], **flags: Any) -> dict[str, Any]:
    """Return what a real parser makes of words; it has the arguments of a section."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, add_help=False, exit_on_error=False, **flags
    )
    for name, value in section.items():
        kinds: dict[str, Any] = {"action": "store_true"}
        if isinstance(value, list):
            items = value[0] if value and isinstance(value[0], list) else value
            kinds = {"nargs": "*", "type": type(items[0]) if items else str}
            if items is not value:
                kinds |= {"action": "append", "type": str}
        elif not isinstance(value, bool):
            kinds = {"type": type(value)}
        parser.add_argument(f"--{name}", dest=name, **kinds)
    return vars(parser.parse_args(given_words))


@given(st.dictionaries(flags, values, max_size=6))
def test_argparse_reads_the_words_of_every_value_as_the_preset_has_it(
    section: dict[str, Any],
) -> None:
    assert parse(arguments.list_words(config(toml({"args": section}))), section) == section


@examples(20)
@given(st.dictionaries(flags, values, max_size=6))
def test_shells_read_the_words_of_every_value_byte_for_byte(section: dict[str, Any]) -> None:
    preset = config(toml({"megatron": section}))
    for shell in SHELLS:
        assert read_array(shell, render(preset, "args")) == arguments.list_words(preset)


@given(st.dictionaries(flags, values, max_size=6))
def test_argparse_reads_a_file_of_arguments_or_a_finding_names_the_value(
    section: dict[str, Any],
) -> None:
    preset = config(toml({"args": section}))
    try:
        text = render(preset, "args-file")
    except npuprof.NpuprofError as error:
        named = {finding.key.removeprefix("args.") for finding in error.findings}
        assert named == {name for name, value in section.items() if is_refused(value)}
        return
    with tempfile.NamedTemporaryFile("w", newline="", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        assert parse([f"@{file.name}"], section, fromfile_prefix_chars="@") == section


def is_refused(value: Any) -> bool:
    """Return whether no line of a file contains a value, or another file would be read."""
    if isinstance(value, list):
        # a lone value is behind its flag
        lone = len(value) == 1 and not isinstance(value[0], list)
        return any(
            is_refused(item) or (not lone and isinstance(item, str) and item.startswith("@"))
            for item in value
        )
    return isinstance(value, str) and bool(value) and value.splitlines() != [value]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1979-05-27", "no form"),
        ("x = [true]", "no form"),
        ("x = [{ a = 1 }]", "no form"),
        ("x = [['a'], 'b']", "no form"),
        ("x = '--'", "no form"),
        ("x = ['a', '-b']", "with a dash as a flag"),
        ("x = [1, -1e-05]", "with a dash as a flag"),
        ('x = "a\\u0000"', "NUL"),
        (f"x = '{'a' * 140_000}'", "bytes in an argument"),
        ("x.y.z = [true]", "no form"),
    ],
)
def test_a_value_that_argparse_cannot_get_is_an_error_at_its_place(text: str, why: str) -> None:
    preset = config(f"[args]\nfine = 1\n{text}\n")
    with pytest.raises(npuprof.NpuprofError) as caught:
        render(preset, "args")
    (finding,) = caught.value.findings
    assert finding.code == "NP901"
    assert finding.key == ("args.x.y.z" if "y.z" in text else "args.x")
    assert finding.line == 3
    assert why in finding.why


# -- Hydra ----------------------------------------------------------------------------------------

PARSER = OverridesParser.create()


def read_override(word: str) -> Override:
    override = PARSER.parse_override(word)
    assert not override.is_sweep_override()
    return override


def simplify(value: Any) -> Any:
    """Return a value of Hydra without its classes for quotes."""
    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [simplify(item) for item in value]
    if isinstance(value, dict):
        return {key: simplify(item) for key, item in value.items()}
    return value


def expect_hydra_value(value: Any) -> Any:
    """Return a value as Hydra should have it: the text "null" is its null."""
    if isinstance(value, list):
        return [expect_hydra_value(item) for item in value]
    if isinstance(value, dict):
        return {key: expect_hydra_value(item) for key, item in value.items()}
    return None if value == "null" else value


pieces = st.lists(
    st.sampled_from([*"a1'\\\"$,:=[]{}() \t\n", "nan", "inf", "null", "true", "1e", "${x}", "_"])
).map("".join)
hydra_texts = (pieces | words).filter(lambda text: "\0" not in text)
keys = st.from_regex(r"[a-z_][a-z0-9_/.-]{0,5}", fullmatch=True).filter(
    lambda key: key not in ("nan", "inf", "null", "true", "false")
)
hydra_values = st.recursive(
    st.booleans() | numbers | hydra_texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(st.dictionaries(keys, inner, max_size=3), max_size=2)
    ),
    max_leaves=6,
)


@given(hydra_values, st.sampled_from(["", "+", "++", "~"]))
def test_hydra_reads_every_value_as_the_preset_has_it(value: Any, prefix: str) -> None:
    # a boolean says whether the key is deleted, whatever its value
    value = [value] if prefix == "~" and isinstance(value, bool) else value
    key = f"{prefix}actor_rollout_ref.actor.x-y.0"
    (word,) = arguments.list_words(config(toml({"verl": {key: value}})))
    override = read_override(word)
    assert override.key_or_group == "actor_rollout_ref.actor.x-y.0"
    assert override.type is not None
    assert override.type.name == {"": "CHANGE", "+": "ADD", "++": "FORCE_ADD", "~": "DEL"}[prefix]
    assert repr(simplify(override.value())) == repr(expect_hydra_value(value))


def is_key(key: str) -> bool:
    """Return whether Hydra takes a key; one without a name would stand for everything."""
    try:
        read_override(f"{key}=1")
    except HydraException:
        return False
    return key.lstrip("+~").partition("@")[0] != ""


@given(st.text("a1_$.-/@+~:0", min_size=1, max_size=8))
def test_a_key_is_accepted_exactly_if_hydra_takes_it(key: str) -> None:
    assert bool(arguments._HYDRA_KEY.fullmatch(key)) is is_key(key)


def test_short_keys_are_accepted_exactly_if_hydra_takes_them() -> None:
    short = ["".join(key) for size in (1, 2, 3) for key in product("a0$.-/@+~", repeat=size)]
    taken = {key for key in short if is_key(key)}
    assert {key for key in short if arguments._HYDRA_KEY.fullmatch(key)} == taken
    assert 80 <= len(taken) <= len(short) - 500


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a.b.c = 1e-6", ["a.b.c=1e-06"]),
        ("a = { b = 1, c = 'x' }", ["a.b=1", "a.c=x"]),
        ('"+trainer.foo" = 1', ["+trainer.foo=1"]),
        ('"++trainer.foo" = "null"', ["++trainer.foo=null"]),
        ('"~trainer.foo" = true', ["~trainer.foo"]),
        ('"~trainer.foo" = false', []),
        ('"~trainer.foo" = "x"', ["~trainer.foo=x"]),
        (
            '"actor@actor_rollout_ref.actor" = "dp_actor"',
            ["actor@actor_rollout_ref.actor=dp_actor"],
        ),
        ("a = [1, 'b c', { d = true }]", ["a=[1,'b c',{d:true}]"]),
        ("a = {}", ["a={}"]),
        ("a = 'NULL'", ["a='NULL'"]),
        ("a = 'data/x.parquet'", ["a=data/x.parquet"]),
        ("a = 1\n'--config-name' = 'ppo'\n'-m' = true", ["--config-name", "ppo", "-m", "a=1"]),
    ],
)
def test_a_key_of_verl_has_one_form(text: str, wanted: list[str]) -> None:
    assert sorted(arguments.list_words(config(f"[verl]\n{text}\n"))) == sorted(wanted)
    listed = arguments.list_words(config(f"[verl]\n{text}\n"))
    overrides = [word for word in listed if "=" in word]
    assert not any(word.startswith("-") for word in listed[len(listed) - len(overrides) :])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("'a b' = 1", "Hydra's grammar has no such key."),
        ("a = 1979-05-27", "no form"),
        ("a = [{ '1' = 2 }]", "key of a table"),
        ("a = [{ NaN = 2 }]", "key of a table"),
    ],
)
def test_what_hydra_cannot_get_is_an_error(text: str, why: str) -> None:
    with pytest.raises(npuprof.NpuprofError) as caught:
        render(config(f"[verl]\n{text}\n"), "args")
    (finding,) = caught.value.findings
    assert finding.code == "NP901"
    assert why in finding.why


def test_a_program_of_hydra_has_the_configuration_that_the_preset_says(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/other.yaml").write_text("a: {b: 1, c: x}\ngone: 1\nempty: x\n")
    (tmp_path / "main.py").write_text(
        "import hydra, json, sys\nfrom omegaconf import OmegaConf\n"
        "@hydra.main(version_base=None, config_path='conf', config_name='none')\n"
        "def main(cfg):\n    json.dump(OmegaConf.to_container(cfg), sys.stdout)\nmain()\n"
    )
    section = """
a.b = 1e-6
a.c = "it's $(touch made), \\"x\\"\\\\ "
"+new.texts" = ["a b", "c\\nd", { k = "v" }]
"~gone" = true
empty = "null"
"hydra/job_logging" = "disabled"
"hydra.run.dir" = "."
"hydra.output_subdir" = "null"
"--config-name" = "other"
"""
    text = render(config(f"[verl]{section}"), "args")
    (tmp_path / "args.sh").write_text(text)
    found = []
    for shell in SHELLS:
        line = f'. ./args.sh; {sys.executable} main.py "${{ARGS[@]}}"'
        done = subprocess.run([shell, "-c", line], cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found == [
        {
            "a": {"b": 1e-6, "c": 'it\'s $(touch made), "x"\\ '},
            "empty": None,
            "new": {"texts": ["a b", "c\nd", {"k": "v"}]},
        }
    ] * len(SHELLS)
    assert not (tmp_path / "made").exists()


# -- YAML -----------------------------------------------------------------------------------------

plain = st.booleans() | numbers | texts
yaml_values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(texts.filter(lambda n: "." not in n and n[:1] not in "-+~"), yaml_values))
def test_pyyaml_reads_back_exactly_the_arguments(section: dict[str, Any]) -> None:
    document = yaml.safe_load(render(config(toml({"args": section})), "args-yaml"))
    assert repr(sort(document)) == repr(sort(section))


def sort(value: Any) -> Any:
    """Return a value with the keys of its tables in order."""
    if isinstance(value, dict):
        return {key: sort(value[key]) for key in sorted(value)}
    return [sort(item) for item in value] if isinstance(value, list) else value


def test_omegaconf_reads_the_yaml_of_verl() -> None:
    text = "[verl]\na.b.c = 1e-6\na.b.d = ['x y', 'null', 2]\na.e = 'null'\nf = 'yes'\n"
    assert OmegaConf.to_container(OmegaConf.create(render(config(text), "args-yaml"))) == {
        "a": {"b": {"c": 1e-6, "d": ["x y", None, 2]}, "e": None},
        "f": "yes",
    }


@pytest.mark.parametrize("text", ["'+a.b' = 1", "'~a' = true", "'--config-name' = 'x'"])
def test_a_prefix_of_hydra_and_a_flag_are_errors_in_yaml(text: str) -> None:
    with pytest.raises(npuprof.NpuprofError) as caught:
        render(config(f"[verl]\n{text}\n"), "args-yaml")
    (finding,) = caught.value.findings
    assert "only keys that are set" in finding.why


def test_a_date_has_no_form_in_yaml() -> None:
    preset = config(toml({"args": {"a": [datetime.date(1979, 5, 27)]}}))
    with pytest.raises(npuprof.NpuprofError, match=r"args\.a cannot be carried"):
        render(preset, "args-yaml")


# -- commands -------------------------------------------------------------------------------------


@pytest.fixture
def leaf(store: Store) -> None:
    store({"leaf": toml({"args": {"a": 1, "text": "it's $HOME"}, "env": {"HCCL_BUFFSIZE": 9}})})


@pytest.mark.parametrize("target", ["args", "args-file", "args-yaml"])
@pytest.mark.usefixtures("leaf")
def test_a_file_is_written_compared_and_renewed(target: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / npuprof.renderers.load_target(target).file
    command = ("render", "leaf", "--to", target)
    expect(run(*command, "-o", path), 0)
    expect(run(*command, "--check", path), 0)
    # the header names the target, if a file can have one
    has_header = target != "args-file"
    assert path.read_text().startswith("# Generated by npuprof ") is has_header
    expect(run("render", "leaf", "--check", path), 0 if has_header else 1)
    expect(run(*command, "--set", "args.a=2", "--check", path), 1, "out of date")
    path.write_text(path.read_text() + "\n")
    expect(run(*command, "--check", path), 1)
    expect(run(*command, "-o", path), 2, "--force")
    expect(run(*command, "-o", path, "--force"), 0)
    expect(run(*command, "--check", path), 0)


@pytest.mark.usefixtures("leaf")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_block_of_a_script_sets_the_array(shell: str, run: Run, tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text(f'#!/usr/bin/env {shell}\nprintf "<%s>" "${{ARGS[@]}}"\n')
    expect(run("inject", script, "leaf", "--to", "args"), 0, "wrote", "left out: [env]")
    expect(run("render", "leaf", "--check", script), 0)
    done = subprocess.run([shell, script], capture_output=True, check=True)
    assert done.stdout.decode() == "<--a><1><--text><it's $HOME>"
    (tmp_path / "profiles/leaf.toml").write_text("args.a = 2\n")
    expect(run("render", "leaf", "--check", script), 1)
    expect(run("inject", script, "leaf"), 0, "wrote")
    assert subprocess.run([shell, script], capture_output=True, check=True).stdout == b"<--a><2>"


@pytest.mark.usefixtures("leaf")
@pytest.mark.parametrize(
    ("name", "text"),
    [("x.sh", "#!/bin/sh\n"), ("x", "#!/bin/dash\n"), ("x.fish", "\n"), ("x.py", "x = 1\n")],
)
def test_a_script_without_such_arrays_gets_no_block(
    name: str, text: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    expect(
        run("inject", tmp_path / name, "leaf", "--to", "args"),
        2,
        "NP818",
        "a block of args is an array of bash or zsh",
    )
    assert (tmp_path / name).read_text() == text


@pytest.mark.usefixtures("leaf")
def test_arguments_of_two_programs_are_an_error_that_names_both(run: Run) -> None:
    changes = ("--set", "verl.a=1")
    for command in (
        ("render", "leaf", *changes, "--to", "args"),
        ("run", "leaf", *changes, "--", "true", "{args}"),
    ):
        expect(run(*command), 2, "NP901", "[args] and [verl] are arguments of different programs")


@pytest.mark.parametrize(
    ("target", "section", "other"),
    [("args-file", "verl", "[verl] (a)"), ("args-yaml", "megatron", "[megatron] (a)")],
)
def test_a_section_that_a_form_lacks_is_named(
    target: str, section: str, other: str, run: Run, store: Store
) -> None:
    store({"leaf": f"{section}.a = 1\n"})
    expect(run("render", "leaf", "--to", target), 0, f"left out: {other} is for {{args}}")
    expect(run("render", "leaf", "--to", target, "--strict"), 2, "NP917")


@pytest.mark.usefixtures("leaf")
def test_a_word_of_the_command_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    show = "import sys; print(sys.argv[1:])"
    command = [sys.executable, "-c", show, "x{args}", "{args}", "y", "{args}"]
    npuprof_run = [sys.executable, "-m", "npuprof", "run", "leaf"]
    done = subprocess.run([*npuprof_run, "--", *command], capture_output=True, check=True)
    given_words = ["--a", "1", "--text", "it's $HOME"]
    assert done.stdout.decode() == f"{['x{args}', *given_words, 'y', *given_words]}\n"
    assert b"left out" not in done.stderr
    # within a word, it is the command's own
    done = subprocess.run([*npuprof_run, "--", *command[:4]], capture_output=True, check=True)
    assert done.stdout.decode() == "['x{args}']\n"
    assert b"left out: [args] (a, text) is for {args} in the command" in done.stderr
    # a record has what was started
    arguments_of_record = ["--record", "runs", "--record-args", "--", *command[:3], "{args}"]
    subprocess.run([*npuprof_run, *arguments_of_record], capture_output=True, check=True)
    (record,) = Path("runs").glob("*.run.json")
    assert json.loads(record.read_text())["command"]["arguments"][-4:] == given_words


def test_a_preset_without_arguments_has_none_for_the_command(run: Run, store: Store) -> None:
    store({"leaf": "[options]\nhccl_timeout = 600\n"})
    expect(
        run("run", "leaf", "--", "true", "{args}"), 2, "NP914", "leaf has no arguments", "[verl]"
    )


SRUN = '#!/bin/bash\nwhile [ "${1#--}" != "$1" ]; do shift; done\nSLURM_PROCID=0 exec "$@"\n'


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    return {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_ARRAY_TASK_ID": "1"}


@pytest.mark.parametrize("form", ["slurm-job", "slurm-array"])
def test_a_slurm_job_puts_the_arguments_into_its_command(
    form: str, store: Store, run: Run, tmp_path: Path, slurm: dict[str, str]
) -> None:
    store({"leaf": toml({"args": {"texts": [*filter(is_free, HOSTILE)], "z": True}})})
    result = run("env", "leaf", "--format", form)
    assert result.code == 0
    assert "left out" not in result.err
    (tmp_path / "job.sh").write_text(result.out, newline="")
    show = "import json, sys; print(json.dumps(sys.argv[1:]))"
    command = ["bash", "job.sh", sys.executable, "-c", show, "a b", "{args}", "x{args}"]
    done = subprocess.run(command, cwd=tmp_path, env=slurm, capture_output=True, check=True)
    given_words = ["--texts", *filter(is_free, HOSTILE), "--z"]
    assert json.loads(done.stdout) == ["a b", *given_words, "x{args}"]
    assert not (tmp_path / "made").exists()


def is_free(text: str) -> bool:
    """Return whether argparse takes a text among several values."""
    return not text.startswith("-")


@pytest.mark.usefixtures("leaf")
def test_each_task_of_a_sweep_has_its_arguments(
    run: Run, tmp_path: Path, slurm: dict[str, str]
) -> None:
    command = ["--vary", "args.a=1,2", "--", "sh", "-c", 'printf "<%s>" "$@"', "x", "{args}"]
    script = run("sweep", "leaf", "--to", "slurm-array", *command).out
    (tmp_path / "job.sh").write_text(script)
    subprocess.run(["bash", "job.sh"], env=slurm, check=True)
    outputs = [path.read_text() for path in tmp_path.rglob("*.log")]
    assert outputs == ["<--a><2><--text><it's $HOME>"]
    expect(run("sweep", "leaf", *command), 0)
    # the result of the array's task is known
    outputs = [path.read_text() for path in tmp_path.rglob("logs/*.log")]
    assert outputs == ["<--a><1><--text><it's $HOME>"]


def expand(text: str) -> Iterator[str]:
    """Yield the parts of an argument as the kubelet reads it: $$ is $, $(NAME) is replaced."""
    while text:
        assert not (text.startswith("$(") and ")" in text)
        yield text[0]
        text = text[2:] if text.startswith("$$") else text[1:]


def test_kubernetes_has_the_arguments_as_a_list(store: Store, run: Run) -> None:
    store({"leaf": toml({"args": {"texts": [*filter(is_free, HOSTILE), "$$(X)", "$$$"]}})})
    result = run("env", "leaf", "--format", "k8s-env")
    assert "left out" not in result.err
    container = yaml.safe_load(result.out)
    assert ["".join(expand(text)) for text in container["args"]] == [
        "--texts",
        *filter(is_free, HOSTILE),
        "$$(X)",
        "$$$",
    ]


@pytest.mark.usefixtures("leaf")
@pytest.mark.parametrize("form", ["slurm", "dotenv", "k8s-configmap"])
def test_a_format_without_arguments_names_them(form: str, run: Run) -> None:
    expect(run("env", "leaf", "--format", form), 0, "left out: [args] (a, text)")
