"""What the README shows is what the commands print."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from documents import PAGES, list_blocks

from npuprof.document.profile import PROFILE_KEYS

ROOT = Path(__file__).parent.parent


def test_the_profile_file_is_clean_and_can_be_rendered(tmp_path):
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    shown = list_blocks("presets.md", "toml")[0]
    (tmp_path / "profiles/shown.toml").write_text(shown, encoding="utf-8")
    for words in (["check", "shown", "--strict"], ["render", "shown", "-o", "out"], ["render", "shown", "--to", "estimator", "-o", "out"]):
        done = subprocess.run([sys.executable, "-m", "npuprof", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_profile_file_shows_every_key():
    shown = list_blocks("presets.md", "toml")[0]
    assert list(tomllib.loads(shown)["profile"]) == list(PROFILE_KEYS)


def test_the_readme_takes_a_minute():
    assert len(PAGES["README"].read_bytes()) <= 12_000


def test_continuous_integration_runs_the_test_command_of_the_readme():
    assert list_blocks("README", "sh")[1].strip() in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
