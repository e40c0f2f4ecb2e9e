"""Files that npuprof 0.1.0 and 0.2.0 wrote are read as these versions read them.

They are stores, tags, locks, copies of sources, run records and baselines.

The bundles in ``data`` were written by wheels that were built from these versions, in
``/srv/presets/VERSION``: a team store with two releases, and a repository with presets that extend
it, three released versions, a vendored copy, a run record, a rendered module, a baseline of
findings, and ``show --format json`` of each preset and version.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.running import Run

DATA = Path(__file__).parent / "data"
VERSIONS = ["0.1.0", "0.2.0"]


@pytest.fixture(params=VERSIONS)
def work(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository that a version wrote, with its source beside it, as the current folder."""
    version = str(request.param)
    for name, flags in (("work", ()), ("team", ("--mirror",))):
        target = tmp_path / (name if name == "work" else "team.git")
        subprocess.run(
            ["git", "clone", "-q", *flags, str(DATA / f"{version}-{name}.bundle"), str(target)],
            check=True,
        )
    folder = tmp_path / "work"
    for name in ("npuprof.toml", "npuprof.lock"):
        path = folder / name
        path.write_text(path.read_text().replace(f"/srv/presets/{version}", str(tmp_path)))
    monkeypatch.chdir(folder)
    return folder


def test_presets_and_versions_have_the_values_and_digests_that_they_had(
    work: Path, run: Run
) -> None:
    shown = sorted(work.glob("shown-*.json"))
    assert len(shown) == 6
    for path in shown:
        before = json.loads(path.read_text())
        done = run("show", path.stem.removeprefix("shown-"), "--format", "json")
        assert done.code == 0, done.err
        now = json.loads(done.out)
        sections = ("options", "env", "estimator", "atc", "scenario", "cann", "products", "lineage")
        assert {key: now[key] for key in sections} == {key: before[key] for key in sections}, (
            path.name
        )
        if "@" in path.stem:
            assert now["preset_digest"] == before["preset_digest"], path.name


def test_released_versions_are_what_their_tags_say(work: Path, run: Run) -> None:
    done = run("verify", "--tags")
    assert done.code == 0, done.out + done.err
    found = [line.split()[:2] + line.split()[3:] for line in done.out.splitlines()]
    assert found == [
        ["pinned", "1.0.0", "matches"],
        ["serving", "1.0.0", "matches"],
        ["serving", "1.1.0", "matches"],
    ]


def test_a_lock_and_a_copy_of_a_source_are_used_and_updated(work: Path, run: Run) -> None:
    assert run("source", "sync").code == 0
    assert "1.1.0" in run("source", "list").out
    assert run("source", "update", "--frozen").code == 0
    assert run("source", "vendor", "team").code == 0
    (work / "npuprof.toml").write_text(
        (work / "npuprof.toml").read_text().replace('vendor = "vendor/team"\n', "")
    )
    assert run("source", "update", "--yes").code == 0
    assert run("show", "serving").code == 0


def test_a_record_names_its_preset_and_a_baseline_its_findings(work: Path, run: Run) -> None:
    (record,) = (work / "records").glob("*.run.json")
    identified = run("whatran", f"records/{record.name}")
    assert identified.code == 0, identified.err
    assert "serving" in identified.out, identified.err
    assert len(json.loads((work / "baseline.json").read_text())["findings"]) == 6
    checked = run("check", "--baseline", "baseline.json")
    assert "5 in the baseline, 1 gone from it" in checked.err.replace("\n  ", " "), (
        "NP380 has another message since"
    )
    context = ("--cann", "9.0.0", "--product", "atlas-a2-training")
    rendered = run("render", "serving", "--check", "session.py", *context)
    is_old = "session.py is out of date: the preset, or npuprof, has changed" in rendered.err
    assert rendered.code == int(is_old), rendered
