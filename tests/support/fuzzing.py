"""Dice that write presets, scripts, folders, environments and command lines, odd ones among them: the same for the same seed.

What is rolled comes of two kinds: grown from the declarations of verbs and the records of the catalogue, and real files with
something in them changed. No word names a place outside of the folder a case runs in: what is rolled is really run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from npuprof import catalog
from npuprof.catalog import targets
from npuprof.commands.framework import Parameter, list_verbs
from support.building import REPOSITORY
from support.oddities import ADDRESSES, CONDITIONS, EXPRESSIONS, NEW_NAMES, REVISIONS, SPECS, VALUES, VERSIONED, WORDS

#: Verbs that have little to do without a history.
COMMITTED = ("yank", "release", "rename", "source", "review", "verify", "restore", "commit", "migrate", "log", "blame")
#: Commands that may have been run before.
BEFORE = (
    [], ["set", "leaf", "hccl_timeout=5"], ["rename", "base", "nlp/base"], ["copy", "leaf", "new"], ["unset", "leaf", "precision_mode_v2"],
    ["set", "--where", "hccl_timeout > 1", "op_debug_level=1"], ["migrate", "--all", "--cann", "8.0.0"], ["check", "--fix"], ["commit"],
    ["new", "x", "--extends", "base"], ["yank", "leaf@1.0.0", "--why", "x"], ["release", "leaf", "2.0.0"], ["restore", "leaf@HEAD"],
)  # fmt: skip
#: Files that may lie beside presets and scripts.
BESIDE = ("a.json", "ops_info.json", "fusion.cfg", "mix.json", "b.ipynb", "out.py", "npuprof.toml", ".gitattributes")


class Case(NamedTuple):
    """One command: the files of its folder, its words, its standard input, its environment, and whether git knows the folder."""

    files: dict[str, bytes]
    words: list[str]
    stdin: bytes
    environ: dict[str, str]
    committed: bool
    before: list[str] = []


@cache
def load_samples(kind: str) -> tuple[bytes, ...]:
    """Return real files: the presets of this repository, or scripts as users write them."""
    folder, endings = ("profiles", (".toml",)) if kind == "preset" else ("tests/scripts/samples", (".py", ".sh"))
    return tuple(path.read_bytes() for path in sorted((REPOSITORY / folder).rglob("*")) if path.suffix in endings)


@cache
def load_verbs() -> tuple[tuple[tuple[str, ...], dict[str, Parameter]], ...]:
    """Return every verb with its parameters."""
    return tuple((names, verb.parameters) for names, verb in list_verbs())


def roll_case(seed: object) -> Case:
    """Return the case of a seed."""
    dice = Random(str(seed))
    base = b'[profile]\nscenario = "training"\nlocked = ["hccl_timeout"]\n[options]\nhccl_timeout = 1800\nop_debug_level = 0\n'
    files = {
        "profiles/base.toml": base,
        "profiles/leaf.toml": b'[profile]\nextends = ["base"]\n[options]\nprecision_mode_v2 = "fp16"\n[env]\nHCCL_EXEC_TIMEOUT = 1\n',
        "profiles/mixed.toml": b'[profile]\nextends = ["base"]\n[options.modify_mixlist]\nblack-list = { to-add = ["Cast"] }\n',
        "profiles/odd.toml": _roll_preset(dice),
        "a.py": _roll_script(dice),
        "run.sh": _roll_shell(dice),
    }
    if dice.random() < 0.1:
        files["npuprof.toml"] = _roll_policy(dice)
    if dice.random() < 0.2:
        files[dice.choice(BESIDE)] = _roll_bytes(dice)
    if dice.random() < 0.15:
        files |= _roll_sources(dice)
    words = _roll_words(dice)
    stdin = _roll_preset(dice) if dice.random() < 0.3 else b""
    if words[:2] == ["git", "receive"]:
        stdin = _roll_pushed_refs(dice)
    committed = dice.random() < (0.7 if words[0] in COMMITTED or words[:2] == ["git", "receive"] else 0.15)
    before = dice.choice(BEFORE) if dice.random() < 0.05 else []
    return Case(files, words, stdin, _roll_environ(dice), committed, before)


def _roll_sources(dice: Random) -> dict[str, bytes]:
    """Return npuprof.toml with a source, and a lock of it: whole, changed, or another's."""
    url = dice.choice(ADDRESSES)
    rev = dice.choice(("*", "^1", ">=1,<2", "HEAD", "main", "^", "", "1.0.0", "9" * 400))
    said = f'[sources.team]\nurl = "{url}"\nrev = "{rev}"\n' + dice.choice(
        ("", 'path = "x"\n', "rules = true\n", 'vendor = "vendor/team"\n', "x = 1\n")
    )
    commit = dice.choice(("0" * 40, "f" * 40, "x", ""))
    lock = f'version = 1\n[sources.team]\nurl = "{url}"\npath = "profiles"\nrev = "{rev}"\nversion = "1.0.0"\ncommit = "{commit}"\n'
    found = {"npuprof.toml": said.encode(errors="replace")}
    if dice.random() < 0.7:
        found["npuprof.lock"] = lock.encode(errors="replace")
    if dice.random() < 0.3:
        found["vendor/team/profiles/base.toml"] = _roll_preset(dice)
        found["vendor/team/npuprof.lock"] = _roll_bytes(dice)
    return {name: _mutate(dice, data) if dice.random() < 0.3 else data for name, data in found.items()}


def _roll_pushed_refs(dice: Random) -> bytes:
    """Return what git tells a hook of a push: the old and the new commit of each reference."""
    commits = ("0" * 40, "f" * 40, "HEAD", "", "x", "0" * 64)
    refs = ("refs/heads/main", "refs/tags/leaf/v1.0.0", "refs/tags/leaf/v1.0.0.yanked", "refs/tags/v1.0.0", "x", "refs/heads/\udcff")
    rows = [f"{dice.choice(commits)} {dice.choice(commits)} {dice.choice(refs)}" for _ in range(dice.randrange(4))]
    return dice.choice(("\n", "\n", " ", "\0")).join([*rows, ""]).encode(errors="surrogateescape")


def _roll_policy(dice: Random) -> bytes:
    """Return rules and ignored findings of a team."""
    from npuprof.document.keys import quote_basic_string

    lines = []
    for _ in range(dice.randrange(1, 4)):
        asked, required = (quote_basic_string(dice.choice(CONDITIONS)) for _ in range(2))
        lines += [f'[[rule]]\ncode = "{dice.choice(("T-1", "T-2", "NP1", ""))}"', f"require = {required}"]
        lines += [f"when = {asked}"] if dice.random() < 0.5 else []
        if dice.random() < 0.4:
            code, pattern = dice.choice(("NP201", "T-1", "NP")), dice.choice(("*", "**/x", "leaf"))
            lines += [f'[[ignore]]\ncode = "{code}"\nreason = "x"\npresets = ["{pattern}"]']
    return "\n".join([*lines, ""]).encode(errors="replace")


def _roll_words(dice: Random) -> list[str]:
    names, parameters = dice.choice(load_verbs())
    words = list(names)
    for name, parameter in parameters.items():
        wanted = parameter.required or dice.random() < (0.5 if parameter.kind.startswith("argument") else 0.12)
        if not wanted or dice.random() < 0.02:
            continue
        for _ in range(dice.choice((1, 1, 2, 3)) if parameter.kind in ("many", "arguments") else 1):
            value = _roll_argument(dice, name, parameter)
            if parameter.flags:
                flag = dice.choice(parameter.flags)
                words += (
                    [flag]
                    if parameter.kind == "flag"
                    else [f"{flag}={value}"]
                    if flag.startswith("--") and dice.random() < 0.5
                    else [flag, value]
                )
            else:
                words.append(value)
    if dice.random() < 0.04:
        words.insert(dice.randrange(len(words) + 1), dice.choice(("--help", "--", "-x", "--nope", "--format", "-o", *WORDS)))
    return words


def _roll_argument(dice: Random, name: str, parameter: Parameter) -> str:
    if dice.random() < 0.12:
        return dice.choice(("", *WORDS))
    if parameter.choices and dice.random() < 0.9:
        return dice.choice(parameter.list_choices())
    known: Sequence[str] = {
        "SPEC": SPECS, "SPEC...": SPECS, "NAME": SPECS, "NAME...": SPECS, "RELEASE": ("8.0", "9.0.0", "8.0.RC3", "7", "99"),
        "REV": REVISIONS, "PRODUCT": ("atlas-a2", "910B2", "atlas-a2-training", "x"), "COND": CONDITIONS, "REVS": REVISIONS,
        "TARGET": targets.NAMES, "VERSION": ("1.0.0", "2.0.0-rc.1", "1", "v1", "major", "1.0", "v1.0.0-"),
        "NAME@VERSION": (*VERSIONED, *SPECS), "NEW": NEW_NAMES, "GIT-URL": ADDRESSES,
        "CODE,": ("NP201", "NP", "NP201,NP3", ",", "T-1", "NP201,"),
        "TEXT": ("x", "", "a\nb", "\x1b[31m", "é", "\udcff", "x" * 5000, "-", "#", "Digest: x"),
        "URL": ("https://x.example.org/", "git+https://x.example.org/a", "x", "javascript:1", "https://u:p@x/"),
        "RISK": ("numerics", "x", ""), "LEVEL": ("error", "info", "x"), "QUERY": ("hccl", "*", "[", "(", "\\"),
        "WHEN": ("always", "never", "auto", "x"), "PATH...": ("a.py", "run.sh", ".", "profiles", "a.json", "nope"),
        "FILE...": ("a.py", "run.sh", "a.json", "nope", "-", "profiles", "b.ipynb"), "CMD...": ("true", "--", "echo", "x"),
        "N": ("0", "1", "5", "999999999999"), "DIR": ("profiles", ".", "nope", "builtin:", "a.py", ""),
        "CODE": ("NP001", "NP301", "np301", "NP999"), "STORE": ("profiles", ".", "nope", "builtin:"),
        "PATH": ("out", "out.py", "a.py", "profiles", "deep/er/x"), "FOLDER": ("new", ".", "a.py", "profiles"),
    }.get(parameter.metavar, ())  # fmt: skip
    if name == "output" or (name == "check" and parameter.metavar == "FILE"):
        return dice.choice(("out", "a.py", "profiles", "x/y", "out.py"))
    if name in ("deed", "words"):
        return dice.choice(("post-merge", "post-rewrite", "rebase", "amend", "0", "1", "0" * 40, "HEAD", "profiles/odd.toml", "x"))
    if parameter.metavar == "SPEC" and name == "spec" and dice.random() < 0.1:
        return dice.choice(("team:base", "team:base@1", "team:", "HEAD", "main", "profiles/base", "team/base", "./d.toml@HEAD"))
    if name in ("file", "base", "ours", "theirs", "path") and not known:
        return dice.choice(("a.py", "run.sh", "profiles/odd.toml", "profiles/leaf.toml", "profiles/base.toml", "nope", "."))
    if parameter.metavar.startswith("KEY=VALUE"):
        return f"{_roll_key(dice)}={dice.choice(VALUES)}"
    return (
        dice.choice(known) if known else _roll_key(dice) if parameter.metavar.startswith("KEY") else dice.choice((*WORDS, _roll_key(dice)))
    )


def _roll_key(dice: Random) -> str:
    section = dice.choice(("options", "options", "env", "estimator", "atc", "profile"))
    name = dice.choice(
        ("a", "é", '"a b"', "''", "black-list", *(catalog.record_names(section) if section != "profile" else ("unset", "extends", "x")))
    )
    name += dice.choice(("", "", "", "", ".a", ".b" * dice.choice((2, 33, 400)), ".black-list.to-add", "[0]", ".", ".'a'"))
    return name if section == "options" else f"{section}.{name}"


def _roll_preset(dice: Random) -> bytes:
    if dice.random() < 0.4:
        return _mutate(dice, dice.choice(load_samples("preset")))
    lines = ["[profile]", *(f"{name} = {dice.choice(texts)}" for name, texts in _PROFILE.items() if dice.random() < 0.3)]
    for section in ("options", "env", "estimator", "atc", "append.options", "override"):
        if dice.random() < (0.8 if section == "options" else 0.3):
            lines += [f"[{section}]" if section != "override" else "[[override]]"]
            if section == "override":
                lines += [
                    f"match = {dice.choice(_MATCHES)}",
                    f"{dice.choice(('options', 'env', 'append', 'unset'))} = {dice.choice(VALUES)}",
                ]
            kind = section.rpartition(".")[2] if section != "override" else "options"
            for _ in range(dice.randrange(5)):
                known = _quote_name(dice.choice((*catalog.record_names(kind), "a", "_", "a b", "é", "")))
                name = f"options.{known}" if section == "override" else known
                lines.append(f"{name} = {_roll_value(dice, kind, name)}")
    text = "\n".join([*lines, ""]).encode(errors="surrogateescape")
    return _mutate(dice, text) if dice.random() < 0.2 else text


_PROFILE = {
    "description": ('"x"', "1", '"""a\nb"""'),
    "extends": (
        '["base"]', '["odd"]', '["nope"]', '["base@1.0.0"]', "[]", '["base", "base"]', '[""]', "1", '["base@"]', '["leaf", "base"]',
    ),
    "scenario": ('"training"', '"offline-inference"', '"x"', "1"),
    "cann": ('">=8.0,<10"', '"8.0"', '""', '"<"', '">=9' + "9" * 4301 + '"', "8"),
    "products": ('["atlas-a2"]', '["x"]', "[]", '"x"'),
    "abstract": ("true", "1"),
    "owner": ('"x"', "[]"),
    "locked": ('["hccl_timeout"]', '[""]', '["a.b.c"]', '["env.A"]'),
    "unset": (
        '["hccl_timeout"]', '["env.A"]', '["modify_mixlist.black-list"]', '["a..b"]', '["op_debug_level.x"]', '["hccl_timeout.a"]', "1",
    ),
}  # fmt: skip
_MATCHES = (
    '{ product = "atlas-a2" }', '{ cann = ">=9" }', '{ target = "session" }', '{ scenario = "training" }', "{}", "1", '{ x = "y" }',
    '{ product = ["910B2", "x"] }', '{ cann = "" }',
)  # fmt: skip


def _quote_name(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else f'"{name}"'


def _roll_value(dice: Random, section: str, name: str) -> str:
    option: Any = catalog.find_option(name.removeprefix("options."))
    if section == "options" and option is not None and dice.random() < 0.6:
        if option.choices:
            return repr(dice.choice(option.choices)).replace("'", '"').replace("True", "true").replace("False", "false")
        return {"b": "true", "i": "1"}.get(option.field or "", '"1"')
    return dice.choice(VALUES)


def _roll_script(dice: Random) -> bytes:
    if dice.random() < 0.35:
        return _mutate(dice, dice.choice(load_samples("script")))
    lines = [
        "import os, json",
        "import tensorflow as tf",
        "from npu_bridge.npu_init import *",
        "x = " + dice.choice(EXPRESSIONS),
        "config = tf.ConfigProto()",
    ]
    lines += ["custom_op = config.graph_options.rewrite_options.custom_optimizers.add()", 'custom_op.name = "NpuOptimizer"']
    for _ in range(dice.randrange(1, 7)):
        name, value = dice.choice(catalog.record_names("options")), dice.choice((*EXPRESSIONS, "x"))
        line = dice.choice(
            (
                f'custom_op.parameter_map["{name}"].{dice.choice("sbif")} = {value}',
                f"custom_op.parameter_map[{value}].s = {value}",
                f"NPURunConfig({name}={value})",
                f"NPURunConfig({value}, *x, **{{}})",
                f"npu.global_options().{name} = {value}",
                f'os.environ["ASCEND_{name.upper()}"] = {value}',
                f"for k, v in {{'{name}': {value}}}.items():\n    custom_op.parameter_map[k].s = v",
                f"if {value}:\n    custom_op.parameter_map['{name}'].s = {value}",
                f"x = {value}",
                f"setattr(custom_op.parameter_map['{name}'], 's', {value})",
                f"def f(x={value}):\n    custom_op.parameter_map[x].s = x\nf({value})",
                f"print '{value}'",
                f"DEFINE_string({value}, {value})\ncustom_op.parameter_map['{name}'].s = FLAGS.{name}",
                f"def f(k):\n    custom_op.parameter_map[k].s = {value}\nfor k in ['{name}'] * {dice.choice((2, 41, 512))}:\n    f(k)",
                f"for k, v in {dict.fromkeys((f'{name}{i}' for i in range(dice.choice((2, 300, 301)))), 1)}.items():\n"
                "    custom_op.parameter_map[k].i = v",
                f"for x in {value}:\n    custom_op.parameter_map['{name}'].s = x",
                f"config.graph_options.rewrite_options.remapping = {value}",
            )
        )
        lines.append(line)
    text = "\n".join([*lines, ""]).encode(errors="surrogatepass")
    return _mutate(dice, text) if dice.random() < 0.2 else text


def _roll_shell(dice: Random) -> bytes:
    if dice.random() < 0.4:
        return _mutate(dice, dice.choice(load_samples("script")))
    value = dice.choice(
        (
            '"$A"', "'a", "$((1/0))", "$(cat)", "`x", "${A:-1}", "${A", "a\\", '"a\nb"', "<<E\nx\nE", "{1..9999999}", "9" * 4301, "é", "",
            "$'\\xff'", "\x00",
        )
    )  # fmt: skip
    lines = [
        f"export ASCEND_GLOBAL_LOG_LEVEL={value}",
        f"atc --model={value} --framework=5 --soc_version={value} \\",
        f"  --{dice.choice(catalog.record_names('atc'))}={value}",
    ]
    return "\n".join(dice.sample(lines, len(lines))).encode()


def _roll_bytes(dice: Random) -> bytes:
    return dice.choice(
        (
            b"", b"{", b"[]", b"{}", b"null", b'{"a": 1e999}', b"[" * 9999, b"\xff\xfe", b"\0", b'{"black-list": {"to-add": 1}}',
            b'{"Switch": {"GraphFusion": {"A": 1}}}', b'{"cells": [{"source": 1}]}', b'{"cells": 1}', b"# npuprof: preset\n",
            b"[store]\npath = 1\n", b"[a]\nb = 1\n", b"9" * 5000, b"a = 1\n" * 99,
        )
    )  # fmt: skip


def _mutate(dice: Random, data: bytes) -> bytes:
    for _ in range(dice.randrange(1, 5)):
        start = dice.randrange(len(data) + 1)
        end = min(len(data), start + dice.choice((1, 1, 3, 10, 60)))
        piece = dice.choice(
            (
                b"", b"", data[start:end] * 2, dice.choice(VALUES).encode(), bytes([dice.randrange(256)]), b"\n", b'"', b"[", b"'''", b"\r",
                b" " * 300, b"=", b"\t",
            )
        )  # fmt: skip
        data = data[:start] + piece + data[end:] if dice.random() < 0.9 else data[:start]
    return data


def _roll_environ(dice: Random) -> dict[str, str]:
    if dice.random() < 0.75:
        return {}
    odd = {
        "NPUPROF_STORE": ("nope", "", "profiles", "builtin:", "a.py", "\udcff"), "GIT_DIR": ("nope", "", ".git"),
        "COLUMNS": ("0", "-5", "x", "9" * 30), "HOME": ("nope", "a.py", "\udcff"), "XDG_CACHE_HOME": ("\udcff", "", "a.py", "rel"),
        "XDG_STATE_HOME": ("\udcff", "", "a.py"), "NO_COLOR": ("1",), "FORCE_COLOR": ("1",), "TERM": ("dumb", ""),
        "PATH": ("", "/nonexistent"), "RANK_ID": ("x", "-1", ""), "SLURM_PROCID": ("x", "9" * 30), "OMPI_COMM_WORLD_RANK": ("",),
        "LC_ALL": ("x",), "SOURCE_DATE_EPOCH": ("x", "-1", "9" * 30), "TZ": ("x",), "GIT_CEILING_DIRECTORIES": ("\udcff",),
        "NPUPROF_DIGEST": ("\udcff",), "GIT_WORK_TREE": ("nope",), "GIT_INDEX_FILE": ("nope",), "GIT_CONFIG_COUNT": ("x",),
        "_NPUPROF_COMPLETE": ("complete_bash", "x"), "COMP_WORDS": ("npuprof show ", "npuprof '"),
    }  # fmt: skip
    return {name: dice.choice(odd[name]) for name in dice.sample(sorted(odd), dice.choice((1, 1, 2)))}


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write the files of a case."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
