"""Random presets, scripts, environments and command lines, the same for the same seed.

Words come from the declarations of verbs, keys from the records of the catalogue; files are real
ones with something in them changed, or lines with odd values. No word names a place outside of the
folder a case runs in: what is rolled is really run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from npuprof import catalog
from npuprof.catalog import targets
from npuprof.commands.framework import Parameter, list_verbs
from support.building import REPOSITORY

#: Verbs that have little to do without a history.
COMMITTED = (
    "yank",
    "release",
    "rename",
    "source",
    "review",
    "verify",
    "restore",
    "commit",
    "migrate",
    "log",
    "blame",
)
#: What TOML can contain, and what it cannot, as it is written.
VALUES = (
    "true",
    "0",
    "-1",
    "9" * 4301,
    "0x" + "f" * 4000,
    "1e400",
    "nan",
    "-0.0",
    '""',
    '"\\u0000"',
    "[]",
    "{}",
    "[[]]",
    '[1, "a"]',
    "{ a = { b = [1] } }",
    "1979-05-27",
    f'"{"x" * 70_000}"',
    "'''\n'''",
    '{ launcher = "rank" }',
    "{ launcher = 1 }",
    "9223372036854775808",
    '"${A}"',
    '"a\\nb"',
    '"\\u001b[31m"',
    '"\\U0001F600"',
    '"32:1,2;3"',
    '"1;2"',
    '"../x"',
    '"fp16"',
    "[" * 120 + "]" * 120,
    "{" + ".".join("a" * 150) + "=1}",
    "yes",
    "",
    "=",
    '"[1,2"',
    '"' + "1," * 3000 + '"',
    "[{ a = 1 }, { a = 2 }]",
)
WORDS = (
    "",
    "-",
    "--",
    "@",
    ":",
    "*",
    "é",
    "\udcff",
    "a b",
    "a\nb",
    "\x1b[31m",
    "x" * 300,
    "9" * 4301,
    "-1",
    "0",
    "{}",
    "$HOME",
    "'",
    "\\",
    "+",
    "a@b@c",
    "a:b",
    "a=",
    "=a",
    "a.b.c",
    "nan",
    "\u202e",
)
SPECS = (
    "base",
    "leaf",
    "mixed+leaf",
    "odd",
    "odd+leaf",
    "leaf@HEAD",
    "leaf@1",
    "leaf@1.0.0",
    "odd@HEAD~1",
    "leaf@9",
    "./odd.toml",
    "profiles",
    "profiles/odd.toml",
    "-",
    "builtin:bert-training",
    "team:odd",
    "nope",
    "leaf@",
    "a/../leaf",
    "leaf@HEAD..",
)
CONDITIONS = (
    "hccl_timeout > 1800",
    "hccl_timeout",
    "not " * 300 + "x",
    "((" * 200,
    "a is set",
    "1 < 2 < 3",
    "a.b.c == 'x'",
    "env.X == 1",
    "a in (1, 2)",
    "-'a' == 1",
    "a = 1",
    "lambda: 1",
    "a == 1j",
    "9" * 4301 + " == a",
    "a == 1e999",
    "x is unset and",
    "\0",
    "f'{a}' == 1",
)
EXPRESSIONS = (
    "1",
    "'fp16'",
    "b'fp16'",
    "9" * 4301,
    "0x" + "f" * 3573,
    "10 ** 2000",
    "-" * 80 + "1",
    "'a' * 10 ** 10",
    "1 << 10 ** 9",
    "str(" * 60 + "1" + ")" * 60,
    "FLAGS.x",
    "os.environ['A']",
    "'%d' % 'a'",
    "f'{x!r:>{10**9}}'",
    "1 / 0",
    "0 ** -1",
    "[1][5]",
    "int('9' * 5000)",
    "b'\\xff'",
    "'\\ud800'",
    "1e400",
    "1j",
    "None",
    "lambda: 0",
    "x if y else z",
    "[i for i in range(10**9)]",
    "','.join(['a'] * 10**8)",
    "(yield)",
    "{**a}",
    "tf.compat.as_bytes()",
    "json.dumps({'a': 1})",
    "'%*d' % (10 ** 9, 1)",
    "len(5)",
)
#: What parameters are given, by what their help calls it.
GIVEN: dict[str, Sequence[str]] = {
    "SPEC": SPECS,
    "SPEC...": SPECS,
    "NAME": SPECS,
    "NAME...": SPECS,
    "RELEASE": ("8.0", "9.0.0", "8.0.RC3", "99"),
    "REV": ("HEAD", "HEAD~1", "HEAD~1..HEAD", "..", "HEAD:profiles", "-x", "leaf/v1.0.0"),
    "PRODUCT": ("atlas-a2", "910B2", "x"),
    "COND": CONDITIONS,
    "TARGET": targets.list_target_names(),
    "VERSION": ("1.0.0", "2.0.0-rc.1", "1", "major", "v1.0.0-"),
    "NAME@VERSION": ("leaf@1.0.0", "leaf@2.0.0", "v1.0.0", "@1.0.0", "leaf@", *SPECS),
    "NEW": (
        "new",
        "nlp/new",
        "BASE",
        "leaf/x",
        "base.toml",
        "../x",
        ".x",
        "a//b",
        "HEAD",
        "new@1",
        "é",
        "x" * 300,
        "base/base",
        "",
    ),
    "GIT-URL": (
        ".",
        "nope",
        "file:///nonexistent",
        "",
        "-x",
        "--upload-pack=x",
        "ext::sh -c x",
        "file:///nonexistent/\udcff",
        "fd::1",
    ),
    "CODE,": ("NP201", "NP", "NP201,NP3", ","),
    "TEXT": ("x", "", "a\nb", "\x1b[31m", "\udcff", "x" * 5000, "Digest: x"),
    "URL": ("https://x.example.org/", "x", "javascript:1", "https://u:p@x/"),
    "RISK": ("numerics", "x", ""),
    "LEVEL": ("error", "x"),
    "QUERY": ("hccl", "*", "[", "\\"),
    "WHEN": ("always", "never", "auto", "x"),
    "PATH...": ("a.py", "run.sh", ".", "profiles", "nope"),
    "FILE...": ("a.py", "run.sh", "nope", "-", "profiles"),
    "CMD...": ("true", "--", "echo"),
    "N": ("0", "1", "999999999999"),
    "DIR": ("profiles", ".", "nope", "builtin:", "a.py", ""),
    "CODE": ("NP001", "NP999"),
    "STORE": ("profiles", "nope", "builtin:"),
    "PATH": ("out", "out.py", "a.py", "profiles", "deep/er/x"),
    "FOLDER": ("new", ".", "a.py", "profiles"),
}
ENVIRON = {
    "NPUPROF_STORE": ("nope", "", "builtin:", "\udcff"),
    "GIT_DIR": ("nope", ""),
    "COLUMNS": ("0", "-5", "x", "9" * 30),
    "HOME": ("nope", "a.py", "\udcff"),
    "XDG_CACHE_HOME": ("\udcff", "", "a.py", "rel"),
    "FORCE_COLOR": ("1",),
    "TERM": ("dumb", ""),
    "PATH": ("", "/nonexistent"),
    "RANK_ID": ("x", "-1"),
    "SLURM_PROCID": ("x", "9" * 30),
    "SOURCE_DATE_EPOCH": ("x", "-1", "9" * 30),
    "GIT_INDEX_FILE": ("nope",),
    "_NPUPROF_COMPLETE": ("complete_bash", "x"),
    "COMP_WORDS": ("npuprof show ", "npuprof '"),
}


class Case(NamedTuple):
    """One command: files, arguments, input, environment, and whether git has the folder."""

    files: dict[str, bytes]
    words: list[str]
    stdin: bytes
    environ: dict[str, str]
    committed: bool


@cache
def load_samples(folder: str, *endings: str) -> tuple[bytes, ...]:
    """Return real files below a folder of this repository."""
    return tuple(
        path.read_bytes()
        for path in sorted((REPOSITORY / folder).rglob("*"))
        if path.suffix in endings
    )


@cache
def load_verbs() -> tuple[tuple[tuple[str, ...], dict[str, Parameter]], ...]:
    """Return every verb with its parameters."""
    return tuple((names, verb.parameters) for names, verb in list_verbs())


def roll_case(seed: object) -> Case:
    """Return the case of a seed."""
    dice = Random(str(seed))
    files = {
        "profiles/base.toml": (
            b'[profile]\nscenario = "training"\n'
            b'locked = ["hccl_timeout"]\n[options]\nhccl_timeout = 1800\n'
        ),
        "profiles/leaf.toml": (
            b'[profile]\nextends = ["base"]\n[options]\n'
            b'precision_mode_v2 = "fp16"\n[env]\nHCCL_EXEC_TIMEOUT = 1\n'
        ),
        "profiles/mixed.toml": (
            b'[profile]\nextends = ["base"]\n[options.modify_mixlist]\n'
            b'black-list = { to-add = ["Cast"] }\n'
        ),
        "profiles/odd.toml": _roll_preset(dice),
        "a.py": _roll_script(dice),
        "run.sh": _mutate(dice, dice.choice(load_samples("tests/scripts/samples", ".sh"))),
    }
    arguments = _roll_words(dice)
    environ = {
        name: dice.choice(ENVIRON[name])
        for name in dice.sample(sorted(ENVIRON), dice.choice((0, 0, 0, 1)))
    }
    stdin = _roll_preset(dice) if dice.random() < 0.3 else b""
    return Case(
        files,
        arguments,
        stdin,
        environ,
        dice.random() < (0.7 if arguments[0] in COMMITTED else 0.15),
    )


def _roll_words(dice: Random) -> list[str]:
    names, parameters = dice.choice(load_verbs())
    arguments = list(names)
    for name, parameter in parameters.items():
        if not parameter.required and dice.random() > (
            0.5 if parameter.kind.startswith("argument") else 0.12
        ):
            continue
        for _ in range(dice.choice((1, 1, 2)) if parameter.kind in ("many", "arguments") else 1):
            flag, value = parameter.flags[:1], _roll_argument(dice, name, parameter)
            arguments += [*flag] if parameter.kind == "flag" else [*flag, value]
    if dice.random() < 0.04:
        arguments.insert(
            dice.randrange(len(arguments) + 1),
            dice.choice(("--help", "--", "-x", "--nope", "--format", "-o", *WORDS)),
        )
    return arguments


def _roll_argument(dice: Random, name: str, parameter: Parameter) -> str:
    if dice.random() < 0.12:
        return dice.choice(WORDS)
    if parameter.choices and dice.random() < 0.9:
        return dice.choice(parameter.list_choices())
    if name == "output" or (name == "check" and parameter.metavar == "FILE"):
        return dice.choice(("out", "a.py", "profiles", "x/y", "out.py"))
    if name in ("file", "base", "ours", "theirs", "path"):
        return dice.choice(
            ("a.py", "run.sh", "profiles/odd.toml", "profiles/leaf.toml", "nope", ".")
        )
    if parameter.metavar.startswith("KEY"):
        return _roll_key(dice) + (f"={dice.choice(VALUES)}" if "=" in parameter.metavar else "")
    return dice.choice(GIVEN.get(parameter.metavar) or (*WORDS, _roll_key(dice)))


def _roll_key(dice: Random) -> str:
    section = dice.choice(("options", "options", "env", "estimator", "atc"))
    name = dice.choice(("a", "é", '"a b"', "black-list", *catalog.record_names(section)))
    name += dice.choice(
        ("", "", "", ".a", ".b" * dice.choice((2, 400)), ".black-list.to-add", "[0]", ".")
    )
    return name if section == "options" else f"{section}.{name}"


def _roll_preset(dice: Random) -> bytes:
    if dice.random() < 0.5:
        return _mutate(dice, dice.choice(load_samples("profiles", ".toml")))
    keys, names = (
        ("description", "extends", "scenario", "cann", "products", "abstract", "locked", "unset"),
        catalog.record_names("options"),
    )
    values = ('["base"]', '["odd"]', '["hccl_timeout"]', '["a..b"]', '">=8.0,<10"', *VALUES)
    lines = ["[profile]", *(f"{name} = {dice.choice(values)}" for name in dice.sample(keys, 2))]
    for section in dice.sample(
        ("[options]", "[env]", "[atc]", "[append.options]", "[[override]]"), dice.randrange(1, 4)
    ):
        head = [f"match = {dice.choice(VALUES)}"] if section == "[[override]]" else []
        lines += [
            section,
            *head,
            *(f"{dice.choice(names)} = {dice.choice(VALUES)}" for _ in range(dice.randrange(5))),
        ]
    return "\n".join([*lines, ""]).encode(errors="surrogateescape")


def _roll_script(dice: Random) -> bytes:
    if dice.random() < 0.4:
        return _mutate(dice, dice.choice(load_samples("tests/scripts/samples", ".py")))
    lines = [
        "import os, json",
        "import tensorflow as tf",
        "from npu_bridge.npu_init import *",
        "config = tf.ConfigProto()",
    ]
    lines += [
        "custom_op = config.graph_options.rewrite_options.custom_optimizers.add()",
        'custom_op.name = "NpuOptimizer"',
    ]
    for _ in range(dice.randrange(1, 7)):
        name, value = dice.choice(catalog.record_names("options")), dice.choice((*EXPRESSIONS, "x"))
        lines += dice.choice(
            (
                [f'custom_op.parameter_map["{name}"].{dice.choice("sbif")} = {value}'],
                [f"NPURunConfig({name}={value})"],
                [f"npu.global_options().{name} = {value}"],
                [f'os.environ["ASCEND_{name.upper()}"] = {value}'],
                [
                    f"for k, v in {{'{name}': {value}}}.items():",
                    "    custom_op.parameter_map[k].s = v",
                ],
                [f"if {value}:", f"    custom_op.parameter_map['{name}'].s = {value}"],
                [f"x = {value}"],
                [f"def f(x={value}):", "    custom_op.parameter_map[x].s = x", f"f({value})"],
                [f"print '{value}'"],
            )
        )
    return "\n".join([*lines, ""]).encode(errors="surrogatepass")


def _mutate(dice: Random, data: bytes) -> bytes:
    for _ in range(dice.randrange(1, 5)):
        start = dice.randrange(len(data) + 1)
        end = min(len(data), start + dice.choice((1, 3, 10, 60)))
        pieces = (
            b"",
            data[start:end] * 2,
            dice.choice(VALUES).encode(),
            bytes([dice.randrange(256)]),
            b"\n",
            b'"',
            b"[",
            b"\r",
            b"=",
            b"\t",
        )
        data = (
            data[:start] + dice.choice(pieces) + data[end:] if dice.random() < 0.9 else data[:start]
        )
    return data


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write the files of a case."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
