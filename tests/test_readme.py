"""What the README shows is what the commands print."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_the_tour_prints_what_it_says(tmp_path):
    environment = {
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
    for command, expected in steps:
        printed = run(command)
        assert re.fullmatch(pattern(expected), printed), f"$ {command}\n{printed}"


def test_the_profile_file_is_clean_and_can_be_rendered(tmp_path):
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    (shown,) = blocks("toml")
    (tmp_path / "profiles/shown.toml").write_text(shown, encoding="utf-8")
    for words in (["check", "shown", "--strict"], ["render", "shown", "-o", "out"], ["render", "shown", "--to", "estimator", "-o", "out"]):
        done = subprocess.run([sys.executable, "-m", "npuprof", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_continuous_integration_runs_the_test_command_of_the_readme():
    assert blocks("sh")[1].strip() in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_numbers_of_the_catalogue_are_true():
    from npuprof import catalog

    counted = [len(catalog.record_names(section)) for section in ("options", "env", "atc")]
    assert "{} options, {} environment variables and {} ATC flags".format(*counted) in README


def test_every_verb_and_target_is_in_the_reference():
    from npuprof import renderers
    from npuprof.commands.registry import list_verbs

    names = [*renderers.MODULES, *(" ".join(names) for names, verb in list_verbs() if not verb.hidden)]
    assert [name for name in names if f"`{name}" not in README] == []
