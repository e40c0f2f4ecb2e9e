"""What the README shows is what the commands print."""

import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import ACCEPT

from npuprof import catalog, renderers
from npuprof.commands.registry import list_verbs
from npuprof.document.profile import PROFILE_KEYS
from npuprof.renderers.files import FORMATS
from npuprof.renderers.shell import SHELLS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def transcript():
    """Yield the commands of the tour and what is printed below each."""
    for block in blocks("console"):
        for command, expected in re.findall(r"^\$ (.*(?:\n>.*)*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            yield re.sub(r"\n> ?", "\n", command), expected


def pattern(expected):
    """Return the expected text as a pattern: commit ids and dates are whatever they are."""
    text = re.escape(expected)
    text = re.sub(r"(?<![0-9a-f:])(?=[0-9a-f]*\d)[0-9a-f]{7}(?![0-9a-f])", "[0-9a-f]{7,}", text)
    return re.sub(r"\d{4}\\-\d\d\\-\d\d", r"\\d{4}-\\d\\d-\\d\\d", text)


@pytest.mark.accepted
def test_the_tour_prints_what_it_says(tmp_path, request):
    environment = {
        "PYTHONPATH": str(ROOT),
        "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        **{
            f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
        },
    }

    def run(command):
        return subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        ).stdout

    run(f"cp -r '{ROOT}/profiles' . && git init -q -b main && git add profiles && git commit -qm 'Add the presets'")
    steps = list(transcript())
    assert len(steps) >= 12
    text = ROOT.joinpath("README.md").read_text(encoding="utf-8")
    for command, expected in steps:
        printed = run(command)
        if request.config.getoption("--update-golden") and not re.fullmatch(pattern(expected), printed):
            shown = command.replace("\n", "\n> ")
            assert text.count(f"$ {shown}\n{expected}") == 1
            text = text.replace(f"$ {shown}\n{expected}", f"$ {shown}\n{printed}")
            (ROOT / "README.md").write_text(text, encoding="utf-8")
        else:
            assert re.fullmatch(pattern(expected), printed), f"$ {command}\n{printed}\n{ACCEPT}"


def test_the_profile_file_is_clean_and_can_be_rendered(tmp_path):
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    (shown,) = blocks("toml")
    (tmp_path / "profiles/shown.toml").write_text(shown, encoding="utf-8")
    for words in (["check", "shown", "--strict"], ["render", "shown", "-o", "out"], ["render", "shown", "--to", "estimator", "-o", "out"]):
        done = subprocess.run([sys.executable, "-m", "npuprof", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_profile_file_shows_every_key():
    (shown,) = blocks("toml")
    assert list(tomllib.loads(shown)["profile"]) == list(PROFILE_KEYS)


def test_continuous_integration_runs_the_test_command_of_the_readme():
    assert blocks("sh")[1].strip() in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def format_counts():
    counted = [len(catalog.record_names(section)) for section in ("options", "env", "atc")]
    return "{} options, {} environment variables and {} ATC flags".format(*counted)


def format_formats():
    return ", ".join(f"`{name}`" for name in FORMATS)


def format_targets():
    return format_table(("target", "form"), ((f"`{name}`", renderers.load_target(name).summary) for name in renderers.MODULES))


def format_shells():
    return format_table(("shell", "line to type"), ((name, f"`` {shell.use} ``") for name, shell in SHELLS.items()))


def format_verbs():
    rows = []
    for names, verb in list_verbs():
        if not verb.hidden:
            words = [*names, *(format_usage(one) for one in verb.parameters.values() if one.required or one.kind.startswith("argument"))]
            rows.append((f"`{' '.join(words)}`", inspect.getdoc(verb).partition("\n")[0]))
    return format_table(("verb", "does"), rows)


def format_usage(parameter):
    words = " ".join((*parameter.flags[:1], parameter.metavar))
    return words if parameter.required else f"[{words}]"


def format_table(head, rows):
    lines = ["| {} | {} |".format(*head), "|---|---|", *("| {} | {} |".format(*(cell.replace("|", r"\|") for cell in row)) for row in rows)]
    return "\n".join(["", *lines, ""])


@pytest.mark.accepted
def test_the_blocks_of_the_readme_say_what_there_is(request):
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    for make in (format_counts, format_formats, format_targets, format_shells, format_verbs):
        mark = f"<!-- {make.__name__.removeprefix('format_')} -->"
        head, _, rest = text.partition(mark)
        _, end, tail = rest.partition("<!-- end -->")
        assert end, f"README.md has no block {mark}"
        text = "".join((head, mark, make(), end, tail))
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"README.md is out of date; {ACCEPT}"


def test_the_config_map_of_the_recipe_is_the_one_that_is_written(run: Any) -> None:
    written = run("env", "bert-training", "--format", "k8s-configmap", "--store", "builtin:").out
    name = re.search(r"^  name: (.+)$", written, re.MULTILINE)
    assert name is not None
    assert f"name: {name[1]}\n" in (ROOT / "README.md").read_text(encoding="utf-8")
