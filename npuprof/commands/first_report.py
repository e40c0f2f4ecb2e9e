"""``doctor --report``: what a first report from an NPU needs, without secrets, hosts or paths.

Packages are parsed and never imported, except by the self-test. Only texts of known forms are
reported.
"""

from __future__ import annotations

import ast
import glob
import os
import platform
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from urllib.parse import unquote

from npuprof import library
from npuprof.catalog.execution import is_known_variable
from npuprof.catalog.products import find_chip_family
from npuprof.document.secrets import TOKEN_ANYWHERE
from npuprof.model import Fields, __version__
from npuprof.report.json_text import format_json_answer
from npuprof.runs.adapter import UNREADABLE
from npuprof.runs.adapter_files import list_import_folders
from npuprof.runs.log_values import STATES
from npuprof.runs.recording import is_secret_name
from npuprof.runs.run_records import HIDDEN
from npuprof.scripts.python.parsing import parse_python
from npuprof.system import decode_safely
from npuprof.system.files import read_plain_file
from npuprof.system.processes import (
    PIPE,
    ask_program,
    ask_python,
    find_program,
    find_python,
    finish,
    start_user_command,
)

#: The packages whose files are parsed, and others whose versions are reported.
_PARSED = (
    *("torch_npu", "npu_bridge", "npu_device", "vllm", "vllm_ascend"),
    *("mindspeed", "mindspeed_llm", "megatron_core", "verl"),
)
_VERSIONS = ("torch", "tensorflow", "tensorflow_cpu", "transformers", "triton_ascend", "mindspore")
#: The limit of parsing, in seconds. The self-test ends itself.
_PARSING = 30
#: The folder of CANN, unless the environment has it, and of the driver.
ROOT = "/usr/local/Ascend"
_VERSION = re.compile(r"(?im)^\w*version *= *\[?(?:[\w.]+:)?(V?\d[\w.+-]*)")
#: What is reported of a self-test's errors: codes, classes, libraries and modules.
_SIGNS = re.compile(
    r"\b(?:E[A-Z0-9]\d{4}|ERR\d{5}|NP\d{3}|[125]07\d{3}|lib\w+\.so|[A-Z]\w*(?:Error|Exception)"
    r"|(?<=No module named ')\w+)\b"
)
#: The form of reported texts, and IP addresses.
_PLAIN = re.compile(r'"[\w.+() -]{0,80}(?:/1)?"', re.ASCII)
_ADDRESS = r"(?<!\d)(?<!\d\.)\d{1,3}(?:[._-]\d{1,3}){3}(?!\.?\d)"

_SCRIPT = """
import signal
signal.alarm(100)

def step(name):
    print("step", name, flush=True)

step("start")
"""
_OPTIONS = '[options]\nprecision_mode = "allow_mix_precision"\n'
#: By package: a preset, its target, and a script that comes after the rendered code.
_TESTS = {
    "torch_npu": (
        "[env]\nTASK_QUEUE_ENABLE = 1\n[torch_npu]\njit_compile = false\n",
        "torch-npu",
        """
step("import")
configure_npu()
step("options")
assert float((torch.ones(8).npu() * 2).sum()) == 16
step("compute")
step(torch.npu.get_device_name(0))
from importlib.util import find_spec
if find_spec("vllm_ascend"):
    from vllm.platforms import current_platform
    step("vllm")
    step(current_platform.device_type)
""",
    ),
    "npu_device": (
        _OPTIONS,
        "global-options",
        """
import tensorflow as tf
step("import")
open_npu()
step("options")
assert float(tf.reduce_sum(tf.ones([8]) * 2)) == 16
step("compute")
""",
    ),
    "npu_bridge": (
        _OPTIONS,
        "session",
        """
from npu_bridge.npu_init import *
step("import")
tf = tf.compat.v1
tf.disable_eager_execution()
ones = tf.placeholder("float32", [8])
with tf.Session(config=session_config()) as session:
    step("options")
    assert session.run(tf.reduce_sum(ones * 2), {ones: [1] * 8}) == 16
step("compute")
""",
    ),
}


def build_report(diagnosis: Fields) -> str:
    """Return a report as JSON, with the fields of a diagnosis."""
    installed = {
        str(each.name).lower().replace("-", "_"): each
        for each in reversed([*metadata.distributions(path=list_import_folders())])
    }
    until = time.monotonic() + _PARSING
    home = os.environ.get("ASCEND_HOME_PATH") or f"{ROOT}/ascend-toolkit/latest"
    fields = {
        **diagnosis,
        "schema": "npuprof.first_report/1",
        "npuprof": __version__,
        "system": platform.platform(),
        "python": decode_safely(ask_python("import sys; print(sys.version.split()[0], end='')")),
        "cann": _read_version(f"{home}/*/ascend_*_install.info")
        or _read_version(f"{home}/version.cfg"),
        "driver": _read_version(f"{ROOT}/driver/version.info"),
        "npu_smi": _ask_npu_smi(),
        "versions": {
            name: installed[name].version for name in _PARSED + _VERSIONS if name in installed
        },
        "unknown_variables": {
            name: sorted(set(_list_unknown_variables(installed[name], until)))
            for name in _PARSED
            if name in installed
        },
        "parsed": time.monotonic() < until,
        "self_test": {name: _test_framework(name) for name in _TESTS if name in installed},
    }
    return _hide_private(format_json_answer(fields))


def format_report(text: str) -> str:
    """Return a report as Markdown."""
    return (
        f"# First report of an NPU\n\nRead it, then send it to {find_recipient()}. It has versions,"
        " names and results, but no values of variables, paths, host or user names.\n\n"
        f"```json\n{text}```\n"
    )


def find_recipient() -> str:
    """Return the address for reports in the metadata of npuprof, or that there is none."""
    for each in metadata.distributions(name="npuprof"):
        if match := re.search("(?m)^Project-URL: Issues, (.+)", str(each.metadata)):
            return match[1]
    return "whoever gave you npuprof (this installation names no address)"


def _hide_private(text: str) -> str:
    """Return JSON without texts of other forms, and those with a name or a secret of the user."""
    names = map(os.environ.get, ("USER", "LOGNAME", "HOME"))
    # the labels of the host, the user, and the last part of his home
    own = re.findall(r"[^/\s.]{3,}(?![^.\s])", " ".join([platform.node(), *filter(None, names)]))
    public = {"root", "localhost", *re.split("[_ ]", " ".join(_PARSED))}
    words = {word for word in own if word.lower() not in public}
    words |= {
        value for name, value in os.environ.items() if len(value) > 5 and is_secret_name(name)
    }
    private = re.compile(
        rf"(?<![a-z])(?:{'|'.join(map(re.escape, words)) or '(?!)'})(?![a-z])|{_ADDRESS}"
        f"|{TOKEN_ANYWHERE.pattern}",
        re.IGNORECASE,
    )
    return re.sub(
        r'"(?:[^"\\]|\\.)*"',
        lambda match: (
            match[0]
            if _PLAIN.fullmatch(match[0]) and not private.search(match[0])
            else f'"{HIDDEN}"'
        ),
        text,
    )


def _list_unknown_variables(distribution: metadata.Distribution, until: float) -> Iterator[str]:
    """Yield the variables that a package reads and the catalogue lacks, while there is time."""
    paths = [str(distribution.locate_file(name)) for name in distribution.files or ()]
    # an editable package is elsewhere
    if origin := re.search('"file://([^"]+)', distribution.read_text("direct_url.json") or ""):
        folder = glob.escape(unquote(origin[1]))
        paths += glob.iglob(f"{folder}/**/*.py", recursive=True)
    for path in paths:
        if path.endswith(".py") and time.monotonic() < until:
            with suppress(*UNREADABLE):
                text = decode_safely(read_plain_file(path))
                yield from _list_reads(text) if "env" in text else ()


def _list_reads(text: str) -> Iterator[str]:
    for node in ast.walk(parse_python(text)):
        match node:
            case ast.Call(reader, [ast.Constant(str(name)), *_]) | ast.Subscript(
                reader, ast.Constant(str(name))
            ) if (
                re.fullmatch("[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+", name)
                and "env" in ast.unparse(reader)
                and not is_known_variable(name)
            ):
                yield name


def _read_version(pattern: str) -> str | None:
    """Return the version in the first file of a pattern that has one, None if none has."""
    for path in sorted(glob.glob(pattern)):
        with suppress(OSError):
            if match := _VERSION.search(decode_safely(read_plain_file(path))):
                return match[1]
    return None


def _ask_npu_smi() -> Fields:
    """Return the version of npu-smi, and the products by the names that it shows."""
    text = decode_safely(ask_program("npu-smi", "info"))
    version = re.search(r"Version: *(V?\d[\w.]*)", text)
    names = re.findall(r"(?m)^\| *\d+ +((?:Ascend)?\d{3}\w{0,8}) +\|", text)
    return {
        "installed": bool(find_program("npu-smi")),
        "version": version and version[1],
        "chips": names,
        # some products have half of their name in this table: they are not found
        "products": {name: find_chip_family(f"Ascend{name}") for name in names},
    }


def _test_framework(package: str) -> Fields:
    """Return the result of the self-test of a framework: a preset, rendered, run and verified."""
    preset, target, script = _TESTS[package]
    code = f"{_SCRIPT}{library.render(library.loads(preset), target)}{script}"
    command = [sys.executable, "-m", "npuprof", "run", "-", "--store", "builtin:", "--prove", "--"]
    command += [str(find_python()), "-c", code]
    # no file of the current folder is imported
    process = start_user_command(command, cwd=os.sep, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    output = errors = b""
    with suppress(OSError):
        output, errors = finish(process, preset.encode(), 2)
    shown = decode_safely(errors)
    return {
        "exit": process.returncode,
        "steps": re.findall(r"(?m)^step (\w+)$", decode_safely(output)),
        "signs": sorted({*_SIGNS.findall(shown)}),
        "settings": dict(re.findall(rf"(?m)^(\S+) +({'|'.join(STATES)})\b", shown)),
    }
