"""What is added at its one place shows everywhere: in help, schema, checks, code, exports."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from building import Checkout
from lanes import rest_at_night


class Said(NamedTuple):
    """A command, what it is given, and what its answer holds, or does not."""

    words: str
    stdin: str
    holds: str
    code: int = 0


class Addition(NamedTuple):
    """What is added to one file, before a line of it or at its end, and how it shows; with it come files that are new."""

    file: str
    text: str
    shows: tuple[Said, ...]
    before: str = ""
    new_files: dict[str, str] = {}


OPTION = """
[brand_new_depth]
field = "i"
kind = "int"
min = 1
max = 8
since = "9.1.0"
level = "session"
risk = ["performance"]
spelling = { session = "brand_new_depth", run_config = "brand_new_depth", atc = "--brand_new_depth" }
summary = "How deep the new thing goes."
source = ["a test"]
"""
VARIABLE = """
[BRAND_NEW_SWITCH]
kind = "bool01"
choices = ["0", "1"]
freeze = "ok"
summary = "Switches the new thing."
source = ["a test"]
"""
FLAG = """
[brand_new_flag]
kind = "int"
min = 1
summary = "Counts the new thing."
source = ["a test"]
"""
RULE = '''
[[rule]]
code = "NP999"
name = "brand-new-rule"
severity = "warning"
options = ["hccl_timeout"]
when = "hccl_timeout == 77"
what = "hccl_timeout is 77"
why = "A test says so."
hint = "write another number"
enforced = "docs"
source = ["a test"]
bad = """
[options]
hccl_timeout = 77
"""
good = """
[options]
hccl_timeout = 78
"""
'''
RELEASE = """
[[release]]
name = "11.0.0"
date = 2027-01-01
adapter = "r11"
code = true
confidence = "certain"
source = "a test"

[release.options]
dump_mode = { choices = ["everything"] }
precision_mode_v2 = { refuses = ["fp16"] }
jit_compile = { default = "false" }
op_compiler_cache_dir = { deprecated = true, replaced_by = "debug_dir" }
input_fusion_size = { no_effect = true }
work_path = { removed = true }
oo_level = { missing = true }
hcom_parallel = { meaning = "it runs in circles" }
hccl_timeout = { value_products = { 99 = ["atlas-a3"] } }
brand_new_depth = { page = "memory", field = "i", kind = "int", level = "session", risk = ["memory"], summary = "N.", source = ["a test"] }

[release.env]
HCCL_CONNECT_TIMEOUT = { deprecated = true }

[[release.step]]
rule = "M99"
option = "work_path"
when = "work_path is set"
loss = "none"
action = "drop"
why = "Nothing reads it."
decide = "unset it"
source = "a test"

"""
SHELL = """\
    "newsh": Shell("let {name} be {value}", "forget {name}", quote_posix, _accept_any_text, "newsh <(npuprof env NAME --shell newsh)",
                   (".newsh",), ("nsh",)),
"""
TARGET = '''\
"""Every option on a line of its own."""

from __future__ import annotations

from npuprof.renderers import Rendered, Target
from npuprof.renderers import config_section


def render_lines(config, inline):
    """Return the lines."""
    return Rendered("".join(f"{name}: {value}\\n" for name, value in config_section(config, "options").items()))


TARGETS = {
    "lines": Target(45, "a line for each option", "options.txt", render_lines, "session"),
}
'''
SETTINGS = """
description = "Settings of a made-up framework."
unknown = "It ignores other keys."

[depth]
kind = "int"
minimum = 1
default = 2
call = "madeup.depth = {}"
risk = ["performance"]
summary = "How deep the framework goes."
source = ["a test"]

["cache.mode"]
kind = "str"
choices = ["on", "off"]
otherwise = "It takes any other word as off."
summary = "Keeps what was computed."
source = ["a test"]
"""
FRAMEWORK_TARGET = '''\
"""Settings of a made-up framework."""

from __future__ import annotations

from npuprof import catalog
from npuprof.renderers import Rendered, Target
from npuprof.renderers import config_section


def render_madeup(config, inline):
    """Return a line for each setting."""
    tables = config_section(config, "madeup").items()
    settings = [(name, path, value) for name, table in tables for path, value in catalog.list_settings("madeup", name, table)]
    return Rendered("".join(f"{'.'.join((name, *path))}: {value!r}\\n" for name, path, value in settings))


TARGETS = {
    "madeup": Target(86, "lines for a made-up framework", "madeup.txt", render_madeup, sections=("madeup",), takes_options=False),
}
'''
VERB = '''\
"""``greet``: a verb for a test."""

from __future__ import annotations

from npuprof.commands.framework.parameters import SPEC
from npuprof.commands.framework import Verb
from npuprof.report import Answer


class Greet(Verb):
    """Greet a preset."""

    group = "reference"

    spec: str = SPEC

    def run(self) -> Answer:
        """Return the greeting."""
        return Answer(f"hello {self.spec}\\n")


VERB = Greet
'''
KEY = '    "audience": ProfileKey(TEXT, \'"everybody"\', "Who is to read it."),\n'

DEEP = "[options]\nbrand_new_depth = {}\n"
ADDITIONS = {
    "an option": Addition("catalog/options/basic.toml", OPTION, (
        Said("options", "", "brand_new_depth"),
        Said("option brand_new_depth", "", "How deep the new thing goes."),
        Said("schema", "", '"description": "How deep the new thing goes."'),
        Said("check -", DEEP.format(9), "brand_new_depth = 9 is out of range", 1),
        Said("check - --cann 8.0", DEEP.format(2), "not read in CANN 8.0.0", 1),
        Said("check -", "[options]\nbrand_new_deth = 2\n", "did you mean 'brand_new_depth'", 1),
        Said("render -", DEEP.format(2), 'parameter_map["brand_new_depth"].i = 2'),
        Said("render - --to estimator", DEEP.format(2), "brand_new_depth=2"),
        Said("render - --to env-loader", DEEP.format(2), '"brand_new_depth": "i"'),
        Said("render - --to atc", '[profile]\nscenario = "offline-inference"\n' + DEEP.format(2), "--brand_new_depth=2"),
        Said("options brand_new", "", "--brand_new_depth"),
        Said("env - --format docker", DEEP.format(2), "NPUPROF_BRAND_NEW_DEPTH=2"),
    )),
    "a variable": Addition("catalog/env/cann.toml", VARIABLE, (
        Said("options brand_new", "", "BRAND_NEW_SWITCH"),
        Said("schema", "", "BRAND_NEW_SWITCH"),
        Said("check -", "[env]\nBRAND_NEW_SWITCH = 2\n", 'is none of "0", "1"', 1),
    )),
    "a flag": Addition("catalog/atc.toml", FLAG, (
        Said("options brand_new", "", "--brand_new_flag"),
        Said("schema", "", "brand_new_flag"),
        Said("check -", '[profile]\nscenario = "offline-inference"\n[atc]\nbrand_new_flag = 0\n', "at least 1", 1),
        Said("render - --to atc", '[profile]\nscenario = "offline-inference"\n[atc]\nbrand_new_flag = 3\n', "--brand_new_flag=3"),
    )),
    "a rule": Addition("catalog/rules.toml", RULE, (
        Said("check -", "[options]\nhccl_timeout = 77\n", "warning NP999: hccl_timeout is 77"),
        Said("rule", "", "NP999"),
        Said("rule NP999", "", "A test says so."),
        Said("option hccl_timeout", "", "NP999"),
    )),
    "a release": Addition("catalog/releases.toml", RELEASE, (
        Said("schema", "", "known up to 11.0.0"),
        Said("check - --cann 11.0", "[options]\nbrand_new_depth = 1\n", "1 preset checked"),
        Said("check - --cann 9.2", "[options]\nbrand_new_depth = 1\n", "not read in CANN 9.2.0", 1),
        Said("check - --cann 9.2", '[options]\ndump_mode = "everything"\n', "is not known in CANN 9.2.0", 1),
        Said("check - --cann 11.0", '[options]\nprecision_mode_v2 = "fp16"\n', "is no longer accepted", 1),
        Said("check - --cann 11.0", '[options]\nop_compiler_cache_dir = "./x"\n', "deprecated since CANN 11.0.0"),
        Said("check - --cann 11.0", "[options]\ninput_fusion_size = 1\n", "input_fusion_size has no effect"),
        Said("check - --cann 11.0", '[options]\nwork_path = "./x"\n', "work_path is not read in CANN 11.0.0", 1),
        Said("check - --cann 11.0", '[options]\noo_level = "O3"\n', "oo_level is not read in CANN 11.0.0", 1),
        Said("check - --product atlas-a2", "[options]\nhccl_timeout = 99\n", "is not supported on atlas-a2", 1),
        Said("check -", "[env]\nHCCL_CONNECT_TIMEOUT = 600\n", "env.HCCL_CONNECT_TIMEOUT is deprecated"),
        Said("option jit_compile", "", "from CANN 11.0.0 on"),
        Said("option hcom_parallel", "", "since 11.0.0: it runs in circles"),
        Said("migrate old --cann 11.0 --dry-run --store .", "", '- work_path "./x"'),
    ), before="# What changes nothing in a preset"),
    "a shell": Addition("renderers/shell.py", SHELL, (
        Said("env - --shell newsh", "[env]\nTMPDIR = 1\n", "let TMPDIR be '1'"),
        Said("env - --shell newsh --unset", "[env]\nTMPDIR = 1\n", "forget TMPDIR"),
        Said("env --help", "", "newsh"),
        Said("env - --shell none", "", "known are bash, zsh, sh, newsh, fish", 2),
        Said("inject script.newsh old --store . --line 1 --dry-run", "", "let "),
    ), before='    "fish": Shell('),
    "a target": Addition("renderers/lines.py", TARGET, (
        Said("render - --to lines", "[options]\nhccl_timeout = 600\n", "hccl_timeout: 600"),
        Said("render - --to line", "", "did you mean 'lines'?", 2),
        Said("render --help", "", "estimator, lines,"),
        Said("check -", '[[override]]\nmatch = { target = "lines" }\noptions = { hccl_timeout = 600 }\n', "1 preset checked"),
        Said("render - --to estimator", '[options]\njob = "worker"\n', "carried by session, session-migrated, init-resource, lines", 2),
    )),
    "a framework with settings of its own": Addition("model.py", '"madeup", ', (
        Said("options madeup", "", "madeup.cache.mode"),
        Said("option madeup.depth", "", "How deep the framework goes."),
        Said("schema", "", '"description": "How deep the framework goes."'),
        Said("check -", "[madeup]\ndepth = 0\n", "madeup.depth = 0 is out of range", 1),
        Said("check -", '[madeup]\ncache = { mode = "offf" }\n', "It takes any other word as off.", 1),
        Said("check -", "[madeup]\ndeth = 2\n", "did you mean 'depth'", 1),
        Said("render - --to madeup", '[madeup]\ndepth = 2\ncache.mode = "on"\n', "depth: 2\ncache.mode: 'on'"),
        Said("render - --to session", "[madeup]\ndepth = 2\n", "npuprof render --to madeup"),
        Said("diff - old --store .", "[madeup]\ndepth = 2\n", "- madeup.depth 2"),
    ), before='"torch_npu", "vllm_ascend"', new_files={"catalog/settings/madeup.toml": SETTINGS, "renderers/madeup.py": FRAMEWORK_TARGET}),
    "a verb": Addition("commands/greet.py", VERB, (
        Said("greet you", "", "hello you"),
        Said("--help", "", "Greet a preset."),
        Said("greet --help", "", "Preset: NAME"),
    )),
    "a key of [profile]": Addition("document/profile.py", KEY, (
        Said("check -", '[profile]\naudience = "all"\n[options]\nhccl_timeout = 600\n', "1 preset checked"),
        Said("check -", "[profile]\naudience = 1\n", "'audience' must be text", 2),
        Said("schema", "", "Who is to read it."),
    ), before='    "unset": ProfileKey('),
}  # fmt: skip


@pytest.mark.parametrize("what", rest_at_night(3, ADDITIONS))
def test_one_place_is_enough(what: str, checkout: Checkout) -> None:
    addition = ADDITIONS[what]
    (checkout.folder / "old.toml").write_text('[options]\nwork_path = "./x"\n')
    (checkout.folder / "script.newsh").write_text("\n")
    for said in addition.shows:
        before = checkout.start(*said.words.split(), stdin=said.stdin)
        assert said.holds not in before.stdout or said.code != before.returncode, f"{said.words} says so already"
    path = checkout.package / addition.file
    text = path.read_text() if path.exists() else ""
    assert text.count(addition.before) == 1 or not addition.before
    head, mark, tail = text.partition(addition.before) if addition.before else (text, "", "")
    path.write_text(head + addition.text + mark + tail)
    for name, content in addition.new_files.items():
        (checkout.package / name).write_text(content)
    for said in addition.shows:
        assert said.holds in checkout.run(*said.words.split(), stdin=said.stdin, code=said.code), said.words
