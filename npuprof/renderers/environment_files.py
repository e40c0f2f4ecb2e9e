"""Files with environment variables: dotenv, docker, systemd, GitHub, Kubernetes, Slurm, JSON.

One row per format. A value that the format's program would not read back byte for byte is rejected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from npuprof.catalog import CONTROL_VARIABLES
from npuprof.catalog.launchers import FACTS
from npuprof.document.keys import is_visible
from npuprof.model import TYPE_CHECKING, Record, TomlTable
from npuprof.renderers import ARGUMENT_SECTIONS, ARGUMENTS
from npuprof.renderers.environment import list_unset_variables
from npuprof.renderers.shell import SHELLS, format_clear_lines, format_export_lines, quote_posix
from npuprof.report.json_text import format_json_answer
from npuprof.report.text import escape_code_point
from npuprof.resolve.digests import compute_digest
from npuprof.system import lazy_pattern

#: Texts by name: values of variables, or contents of files.
Texts = dict[str, str]

if TYPE_CHECKING:
    from typing import Any

    from npuprof.resolve.config import Config

    #: Takes the config, the variables and the sidecar files.
    Writer = Callable[[Config, Texts, Texts], str]


def _accept_any_variable(name: str, text: str) -> str:
    return ""


class Format(Record):
    """A file format for variables.

    ``write`` takes the config, the variables, and the sidecar files by name; ``refuses`` takes a
    name and a value and returns why they cannot be written, or an empty string; ``caveat`` returns
    why some readers change them. ``folder`` is the sidecar folder for the reader, empty for the
    local one; ``holds_files`` is set if the output contains the files. ``shared`` files are read by
    many processes. ``largest`` is the maximum size of all names and values, 0 for no limit.
    ``facts`` are the launcher facts that the file queries when it is used, with their variables.
    ``clears`` formats are scripts, which also unset variables. ``sections`` are those that the file
    contains too.
    """

    write: Writer
    refuses: Callable[[str, str], str] = staticmethod(_accept_any_variable)
    folder: str = ""
    holds_files: bool = False
    shared: bool = True
    largest: int = 0
    caveat: Callable[[str, str], str] = staticmethod(_accept_any_variable)
    facts: Mapping[str, str] = MappingProxyType({})
    clears: bool = False
    sections: tuple[str, ...] = ()


def _format_lines(
    line: Callable[[str, str], str], config: Config, variables: Texts, files: Texts
) -> str:
    return "".join(f"{line(name, text)}\n" for name, text in variables.items())


# -- dotenv: for python-dotenv, and if possible equal for npm's dotenv and a shell's `source` -----

_DOTENV = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
}


def _format_dotenv_line(name: str, text: str) -> str:
    quote = _find_common_quote(text)
    if quote:
        return f"{name}={quote}{text}{quote}"
    if text.endswith("\\"):
        return f"{name}={text}"  # in quotes, the backslash would escape the closing quote
    return f'{name}="{"".join(_DOTENV.get(char, char) for char in text)}"'


def _find_common_quote(text: str) -> str:
    """Return the quotes in which all readers take a text literally.

    An empty string if there are none.
    """
    if "'" not in text and not re.search(r"\r|\\\\|\\$", text):
        return "'"
    return '"' if not re.search(r'[\r\\"$`]', text) else ""


def _describe_dotenv_caveat(name: str, text: str) -> str:
    if _find_common_quote(text):
        return ""
    return (
        "python-dotenv reads it as it is; npm's dotenv may not, and a shell's source may run a "
        "part of it, or lose lines after it"
    )


def _explain_dotenv_refusal(name: str, text: str) -> str:
    if re.search(r"\$\{[^}:]*(?::-[^}]*)?\}", text):
        return "readers of dotenv files replace ${...}"
    if text.endswith("\\") and (re.search(r"[\n\r]|^[\s'\"]|\s#|^#", text) or text != text.strip()):
        return "a dotenv file cannot quote a value that ends in a backslash"
    return ""


# -- docker run --env-file: plain lines -----------------------------------------------------------


def _explain_docker_refusal(name: str, text: str) -> str:
    if "\n" in text or "\r" in text:
        return "a docker env-file has one line a variable"
    if len(f"{name}={text}".encode()) > 65_000:
        return "docker reads no longer lines than 64 KiB"
    return ""


# -- systemd: EnvironmentFile= --------------------------------------------------------------------


_SYSTEMD = str.maketrans({char: f"\\{char}" for char in '"\\`$'})


def _explain_systemd_refusal(name: str, text: str) -> str:
    if any((char < " " and char not in "\t\n") or char == "\x7f" for char in text):
        return "systemd drops variables with control characters"
    if any(0xFDD0 <= ord(char) <= 0xFDEF or ord(char) & 0xFFFE == 0xFFFE for char in text):
        return "systemd drops variables with characters that are not in Unicode"
    return ""


# -- GitHub Actions: the file $GITHUB_ENV ---------------------------------------------------------


def _format_github_env(config: Config, variables: Texts, files: Texts) -> str:
    lines = ""
    for name, text in variables.items():
        if "\n" not in text:
            lines += f"{name}={text}\n"
            continue
        mark = f"npuprof_{config.digest[:16]}"
        # a value may contain the delimiter as a line
        while mark in text.split("\n"):
            mark += "_"
        lines += f"{name}<<{mark}\n{text}\n{mark}\n"
    return lines


def _explain_github_refusal(name: str, text: str) -> str:
    if name == "NODE_OPTIONS" or name.startswith(("GITHUB_", "RUNNER_")):
        return "GitHub Actions keeps this name for itself"
    return "the runner may take a carriage return for the end of a line" if "\r" in text else ""


# -- Kubernetes -----------------------------------------------------------------------------------

_YAML = {"\\": "\\\\", '"': '\\"'}
#: The folder of a ConfigMap's files in a container.
MOUNT = "/etc/npuprof"
#: The maximum size of a ConfigMap, in bytes.
LARGEST_MAP = 1_048_576
#: Keywords that YAML 1.1 reads as a boolean or null, in any case.
_YAML_KEYWORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_PLAIN_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_.-]*")


def quote_yaml_string(text: str) -> str:
    """Return a text as YAML in double quotes."""
    shown = (
        _YAML.get(char)
        or (char if is_visible(char) and char < "\U00010000" else escape_code_point(char))
        for char in text
    )
    return f'"{"".join(shown)}"'


def format_yaml_key(name: str) -> str:
    """Return a name as a YAML key or value, quoted if YAML 1.1 would read something else."""
    is_plain = name.lower() not in _YAML_KEYWORDS and _PLAIN_NAME.fullmatch(name)
    return name if is_plain else quote_yaml_string(name)


def format_yaml_scalar(value: Any) -> str:
    """Return a text, a number, a boolean, or an empty table or list as YAML for PyYAML."""
    if isinstance(value, str):
        return format_yaml_key(value)
    if isinstance(value, float):
        text = repr(value).replace("inf", ".inf").replace("nan", ".nan")
        # without a point, YAML 1.1 reads a string
        return text if "." in text else text.replace("e", ".0e")
    return json.dumps(value)


def build_map_name(prefix: str, name: str, longest: int, content: TomlTable) -> str:
    """Return a name that is unique to the content: an immutable ConfigMap cannot be changed."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:longest].strip("-")
    return "-".join(filter(None, (prefix, plain, compute_digest(content)[:10])))


def _format_label(text: str) -> str:
    """Return a text as a label value: at most 63 characters from a small set."""
    return re.sub(r"[^A-Za-z0-9_-]+", ".", text)[:63].strip("._-")


def _format_configmap(config: Config, variables: Texts, files: Texts) -> str:
    content = {"preset": config.name, "held": [variables, files]}
    name = build_map_name("npuprof", config.name, 200, content)
    lines = _format_map(config, name, variables)
    if files:
        lines += [
            "---",
            f"# to be mounted at {MOUNT}",
            *_format_map(config, f"{name}-files", files),
        ]
    return "\n".join([*lines, ""])


def _format_map(config: Config, name: str, data: Texts) -> list[str]:
    marks = {
        "npuprof/preset": config.name,
        "npuprof/digest": config.digest,
        "npuprof/context": config.context.describe(),
    }
    labels = {
        "npuprof/preset": _format_label(config.name),
        "npuprof/digest": _format_label(config.digest),
    }
    return [
        "apiVersion: v1",
        "kind: ConfigMap",
        "metadata:",
        f"  name: {name}",
        "  labels:",
        *(f"    {key}: {quote_yaml_string(text)}" for key, text in labels.items()),
        "  annotations:",
        *(f"    {key}: {quote_yaml_string(text)}" for key, text in marks.items()),
        "immutable: true",
        "data:",
        *format_map_rows(data),
    ]


def format_map_rows(data: Texts) -> list[str]:
    """Return the rows of a ConfigMap's data."""
    return [f"  {format_yaml_key(key)}: {quote_yaml_string(text)}" for key, text in data.items()]


def _format_kubernetes_env(config: Config, variables: Texts, files: Texts) -> str:
    rows = "env:\n"
    for name, text in variables.items():
        # Kubernetes replaces $(NAME) in values, and $$ by $.
        value = quote_yaml_string(text.replace("$", "$$"))
        rows += f"  - name: {format_yaml_key(name)}\n    value: {value}\n"
    if _has_arguments(config):
        from npuprof.renderers.arguments import list_words

        words = [quote_yaml_string(word.replace("$", "$$")) for word in list_words(config)]
        rows += "".join(["args:\n", *(f"  - {word}\n" for word in words)]) if words else ""
    return rows


def _has_arguments(config: Config) -> bool:
    return any(config.shared_sections[section] for section in ARGUMENT_SECTIONS)


# -- Slurm, JSON ----------------------------------------------------------------------------------


def format_clear_and_export_lines(config: Config, shell: str, variables: Texts) -> str:
    """Return the shell lines that unset and set the variables of a config."""
    removed, _ = list_unset_variables(config, exported=variables)
    lines = format_clear_lines(SHELLS[shell], removed)
    return lines + format_export_lines(SHELLS[shell], variables)


def _format_slurm_lines(config: Config, variables: Texts, files: Texts) -> str:
    name = quote_posix(config.name, bare=True)
    head = (
        "# For an sbatch script, below its #SBATCH lines; facts of each task come from: srun "
        f"npuprof run {ascii(name)[1:-1]} -- ...\n"
    )
    return head + format_clear_and_export_lines(config, "sh", variables)


#: How a process queries Slurm; no manual documents Ascend's variables for these.
SLURM_FACTS = {
    fact: slurm_variables[0]
    for fact, variables in FACTS.items()
    if (slurm_variables := [name for name in variables if name.startswith("SLURM_")])
}
_SLURM_JOB = """\
#!/bin/bash
#SBATCH --job-name={job}
#SBATCH --output=%x-{number}.out
# {what}, digest {digest}
# Resources are named where it is submitted: sbatch {example} THIS python train.py
set -e
if [ $# = 0 ]; then \
echo "npuprof: say what to run: sbatch {example} THIS python train.py" >&2; exit 2; fi
{exports}{arguments}# Each task asks Slurm which it is, and the first says what it was given.
# What is exported here goes to them, however this was submitted.
exec srun --export=ALL --kill-on-bad-exit=1 bash -c '{asks}
if [ "$SLURM_PROCID" = 0 ]; then \
printf "npuprof: %s %s\\n" "$NPUPROF_PROFILE" "$NPUPROF_DIGEST" >&2; fi
exec "$@"' npuprof "$@"
"""
#: Puts the arguments in place of a word of the command.
_FILL_COMMAND = f"""\
for word in "$@"; do
  shift
  if [ "$word" = "{ARGUMENTS}" ]; then set -- "$@" "${{ARGS[@]}}"; else set -- "$@" "$word"; fi
done
"""


def _format_slurm_job(
    number: str, example: str, config: Config, variables: Texts, files: Texts
) -> str:
    arguments = ""
    if _has_arguments(config):
        from npuprof.renderers.arguments import format_array

        arguments = f"{format_array(config)}{_FILL_COMMAND}"
    return _SLURM_JOB.format(
        job=re.sub(r"[^A-Za-z0-9_.-]+", "-", config.name).strip("-") or "npuprof",
        number=number,
        what=ascii(config.name)[1:-1],
        digest=config.digest,
        example=example,
        exports=format_clear_and_export_lines(config, "bash", variables),
        arguments=arguments,
        asks=format_slurm_questions(config) or ":",
    )


def format_slurm_questions(config: Config) -> str:
    """Return the lines with which each task exports the launcher facts that Slurm has."""
    lines = []
    for name, value in config.env.items():
        fact = str(value.get("launcher")) if isinstance(value, dict) else ""
        if fact in SLURM_FACTS:
            lines.append(f'export {name}="${SLURM_FACTS[fact]}"')
    return "\n".join(lines)


def _format_env_json(config: Config, variables: Texts, files: Texts) -> str:
    return format_json_answer(
        {
            "schema": "npuprof.env/1",
            "preset": config.name,
            "digest": config.digest,
            "preset_digest": config.preset_digest,
            "env": variables,
        }
    )


def _format_ray_env(config: Config, variables: Texts, files: Texts) -> str:
    """Return a runtime environment of Ray, as ``ray job submit --runtime-env-json`` reads it."""
    return format_json_answer({"env_vars": variables})


FORMATS: dict[str, Format] = {
    "dotenv": Format(
        partial(_format_lines, _format_dotenv_line),
        _explain_dotenv_refusal,
        caveat=_describe_dotenv_caveat,
    ),
    "docker": Format(
        partial(_format_lines, lambda name, text: f"{name}={text}"), _explain_docker_refusal
    ),
    "systemd": Format(
        partial(_format_lines, lambda name, text: f'{name}="{text.translate(_SYSTEMD)}"'),
        _explain_systemd_refusal,
    ),
    "github": Format(_format_github_env, _explain_github_refusal),
    "k8s-configmap": Format(
        _format_configmap,
        folder=MOUNT,
        holds_files=True,
        largest=LARGEST_MAP,
        sections=("vllm", "vllm_ascend", "mindie"),
    ),
    "k8s-env": Format(_format_kubernetes_env, folder=MOUNT, sections=ARGUMENT_SECTIONS),
    "slurm": Format(_format_slurm_lines, clears=True),
    "slurm-job": Format(
        partial(_format_slurm_job, "%j", "-N 2 --ntasks-per-node=8"),
        facts=SLURM_FACTS,
        clears=True,
        sections=ARGUMENT_SECTIONS,
    ),
    "slurm-array": Format(
        partial(_format_slurm_job, "%A_%a", "--array=0-9 -N 1 --ntasks-per-node=8"),
        facts=SLURM_FACTS,
        clears=True,
        sections=ARGUMENT_SECTIONS,
    ),
    "ray": Format(_format_ray_env),
    "json": Format(_format_env_json, shared=False),
}


#: Variables that npuprof obeys, or keeps for undoing an export: none belongs to a preset.
_LASTING = (*CONTROL_VARIABLES, "BEFORE")


class VariableChange(Record):
    """A change of a variable by an export; None is an unset variable."""

    sign: str
    name: str
    before: str | None
    after: str | None


def compare_environment(
    variables: Texts, environ: Texts, removed: list[str]
) -> list[VariableChange]:
    """Return the changes of an export.

    ``-`` is for variables that this preset unsets, ``removed``, and variables of another preset
    that this one does not set.
    """
    changes = [
        VariableChange("~" if name in environ else "+", name, environ.get(name), text)
        for name, text in variables.items()
        if environ.get(name) != text
    ]
    cleared = [name for name in removed if name in environ]
    cleared += [
        name
        for name in sorted(environ)
        if name.startswith("NPUPROF_") and name.removeprefix("NPUPROF_") not in _LASTING
    ]
    changes += [
        VariableChange("-", name, environ[name], None) for name in cleared if name not in variables
    ]
    return changes
