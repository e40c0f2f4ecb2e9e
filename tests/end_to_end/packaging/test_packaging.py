"""What is built, published and put into a container: contents, metadata, and who may do it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from support.building import REPOSITORY

yaml = pytest.importorskip("yaml")
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((REPOSITORY / ".github/workflows").glob("*.yml"))
DEPENDABOT = REPOSITORY / ".github/dependabot.yml"
HOME = "https://git.example.org/team/npuprof"


def build(
    folder: Path, *arguments: str, source: Path = REPOSITORY, **environment: str
) -> dict[str, Path]:
    """Build the package from a checkout; return the files by their ends."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        folder,
        *arguments,
        source,
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "TERM": "dumb", **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.suffix: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What the release workflow builds, where the address of the repository is known."""
    return build(
        tmp_path_factory.mktemp("published"),
        "--wheel",
        NPUPROF_HOME=f"{HOME}/",
        NPUPROF_REVISION="abc123",
    )


def read_metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as file:
        name = next(name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        return file.read(name).decode()


def test_the_wheel_holds_what_runs_and_nothing_else(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built[".whl"]) as file:
        names = file.namelist()
        entries = file.read(
            next(name for name in names if name.endswith("entry_points.txt"))
        ).decode()
    assert {name.partition("/")[0] for name in names} == {
        "npuprof",
        f"npuprof-{built['.whl'].name.split('-')[1]}.dist-info",
    }
    there = set(names)
    assert {
        "npuprof/profiles/bert-training.toml",
        "npuprof/catalog/_built/options.marshal",
        "npuprof/templates/page.css",
        "npuprof/py.typed",
        "npuprof/catalog/run-record.schema.json",
        "npuprof/docs/reference/changelog.md",
        "npuprof/integrations/pytest_plugin.py",
    } <= there
    kept = "npuprof/profiles/.released/"
    assert f"{kept}base/offline-inference@1.0.0/.release" in there
    others = [name for name in names if not name.startswith(kept)]
    sections = r"catalog/frameworks/\w+/section\.toml$"  # their folders are the list of sections
    assert sum(bool(re.search(sections, name)) for name in others) >= 3
    assert [
        name
        for name in others
        if re.search(
            rf"__pycache__|\.pyc$|^npuprof/(?!{sections})catalog/[^_].*\.toml$|tests/|/\.", name
        )
    ] == []
    assert "npuprof = npuprof.integrations.pytest_plugin" in entries
    assert "npuprof = npuprof.__main__:script" in entries
    assert built[".whl"].stat().st_size < 2_500_000
    cases = [*(REPOSITORY / "npuprof/docs").rglob("*.md")]
    assert cases
    for page in cases:
        assert str(page.relative_to(REPOSITORY)) in there


def test_the_source_archive_holds_all_that_is_in_the_repository_and_nothing_else(
    built: dict[str, Path],
) -> None:
    with tarfile.open(built[".gz"]) as file:
        names = {name.partition("/")[2] for name in file.getnames() if not name.endswith("/")}
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    known = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    tracked = {name for name in known if name and (REPOSITORY / name).is_file()}
    assert names - tracked == {"PKG-INFO"}
    assert tracked - names == set()


def test_an_index_takes_both_and_shows_the_readme(
    built: dict[str, Path], published: dict[str, Path]
) -> None:
    pytest.importorskip("twine")
    files = [built[".whl"], built[".gz"], published[".whl"]]
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_no_address_is_made_up_and_nothing_leads_nowhere_where_there_is_no_home(
    built: dict[str, Path],
) -> None:
    metadata = read_metadata(built[".whl"])
    assert "\nProject-URL:" not in metadata
    assert "\nHome-page:" not in metadata
    shown = metadata.partition("\n\n")[2]
    assert not re.search(r"\]\((?!https?://|#)", shown), (
        "what leads into the repository leads nowhere from an index"
    )
    written = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    words = re.sub(r"!\[[^\]]*\]\([^)]*\)|<picture>.*?</picture>", "", written)
    assert "<picture>" not in shown
    assert shown.split() == re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words).split(), (
        "and all its words are there"
    )


def test_with_a_home_links_and_pictures_lead_there_from_an_index_too(
    published: dict[str, Path],
) -> None:
    metadata = read_metadata(published[".whl"])
    assert f"Project-URL: Homepage, {HOME}\n" in metadata
    assert (
        f"Project-URL: Changelog, {HOME}/blob/main/npuprof/docs/reference/changelog.md\n"
        in metadata
    )
    shown = re.sub(r"(?ms)^```.*?^```|`[^`\n]*`", "", metadata.partition("\n\n")[2])
    pictures = re.findall(r'src(?:set)?="([^"]+)"', shown)
    assert len(pictures) == 6
    for picture in pictures:
        assert (REPOSITORY / picture.removeprefix(f"{HOME}/raw/abc123/")).is_file(), picture
    links = re.findall(r"\]\(([^)\s]+)\)", shown)
    assert len(links) > 2
    for link in links:
        assert re.match(r"https?://|#", link), f"{link} leads nowhere from an index"
        if link.startswith(HOME):
            kind, revision, path = link.removeprefix(f"{HOME}/").split("/", 2)
            assert revision == "abc123", link
            assert (REPOSITORY / path.partition("#")[0]).is_file(), link
            assert (kind == "raw") == (
                path.endswith((".png", ".svg"))
                and "![" in shown.partition(link)[0].rpartition("\n")[2]
            )


def test_every_python_that_is_promised_is_tried() -> None:
    promised = {
        name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)
    }
    matrix = yaml.safe_load((REPOSITORY / ".github/workflows/ci.yml").read_text())["jobs"]["all"][
        "strategy"
    ]["matrix"]["python"]
    listed = re.search(r"for minor in ([\d ]+);", (REPOSITORY / ".ci/run").read_text())
    assert listed is not None
    assert promised == set(matrix) == {"3.11", *(f"3.{minor}" for minor in listed[1].split())}


def test_every_system_that_is_promised_is_tried() -> None:
    matrix = yaml.safe_load((REPOSITORY / ".github/workflows/ci.yml").read_text())["jobs"]["all"][
        "strategy"
    ]["matrix"]
    systems = {row["system"] for row in matrix["include"] if "system" in row} | {*matrix["system"]}
    assert systems == {"ubuntu-latest", "macos-latest"}
    assert "on Linux or macOS" in (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_the_image_has_no_files_that_a_checkout_only_caches(tmp_path: Path) -> None:
    """Without ``.gitignore``, which no image is made from, the package is built as well."""
    (tmp_path / "src").mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", ".ci", "profiles", "npuprof"):
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
        copy(REPOSITORY / name, tmp_path / "src" / name)
    cache = tmp_path / "src/npuprof/catalog/_built"
    cache.mkdir(exist_ok=True)
    (cache / "options.marshal").write_bytes(b"old")
    wheel = build(tmp_path / "dist", "--wheel", source=tmp_path / "src")[".whl"]
    with zipfile.ZipFile(wheel) as file:
        assert len(file.read("npuprof/catalog/_built/options.marshal")) > 100


# -- who publishes --------------------------------------------------------------------------------


def list_steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    return [step for job in jobs.values() for step in job.get("steps", ())]


def test_workflows_follow_the_published_schema() -> None:
    pytest.importorskip("check_jsonschema")
    for schema, files in (("github-workflows", WORKFLOWS), ("dependabot", [DEPENDABOT])):
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
        done = subprocess.run([*command, *files], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_what_others_wrote_is_pinned_by_its_commit(workflow: Path) -> None:
    used = [step["uses"] for step in list_steps(workflow) if "uses" in step]
    assert any("@" in action for action in used)
    assert [
        action
        for action in used
        if not action.startswith("./")
        and not re.fullmatch(r"[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}", action)
    ] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_ends_and_leaves_no_token_behind(workflow: Path) -> None:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    assert [job for job in jobs if "uses" not in job and "timeout-minutes" not in job] == []
    checkouts = [
        step
        for step in list_steps(workflow)
        if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert checkouts
    assert [step for step in checkouts if step["with"].get("persist-credentials")] == []
    assert all("persist-credentials" in step["with"] for step in checkouts)


def test_every_folder_with_pinned_actions_gets_newer_ones() -> None:
    (update,) = yaml.safe_load(DEPENDABOT.read_text())["updates"]
    actions = sorted((REPOSITORY / ".github/actions").glob("*/action.yml"))
    folders = [f"/{action.parent.relative_to(REPOSITORY)}" for action in actions]
    assert update["directories"] == ["/", *folders]


def test_a_release_is_off_until_it_is_switched_on_and_only_its_last_job_may_publish() -> None:
    workflow = yaml.safe_load((REPOSITORY / ".github/workflows/release.yml").read_text())
    assert workflow[True] == {
        "push": {"tags": ["npuprof-v*"]}
    }  # vX.Y.Z are versions of the presets of this repository
    assert workflow["permissions"] == {"contents": "read"}
    first = workflow["jobs"]["ci"]  # what is not green is not built, and not published
    assert first == {"if": "vars.NPUPROF_RELEASE == 'on'", "uses": "./.github/workflows/ci.yml"}
    assert "workflow_call" in yaml.safe_load((REPOSITORY / first["uses"]).read_text())[True]
    assert workflow["jobs"]["build"]["needs"] == "ci"
    assert "if" not in workflow["jobs"]["build"]
    assert "permissions" not in workflow["jobs"]["build"]
    publish = workflow["jobs"]["publish"]
    assert publish["needs"] == "build"
    assert publish["environment"] == "pypi"
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert publish["steps"][-1]["with"] == {"attestations": True}
    assert not re.search(r"secrets|password|(?<!id-)token", repr(workflow))
    cases = [*list_steps(REPOSITORY / ".github/workflows/release.yml")]
    assert cases
    for step in cases:
        assert "${{" not in step.get("run", ""), "what a tag is called is no part of a command"


def test_the_container_is_made_of_what_is_there() -> None:
    containerfile = (REPOSITORY / ".ci/Containerfile").read_text()
    cases = [*re.findall(r"^COPY (?!--from)(.+) \S+$", containerfile, re.MULTILINE)]
    assert cases
    for line in cases:
        for path in line.split():
            assert (REPOSITORY / path).exists(), path
    needed = {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        ".ci/built.py",
        ".ci/metadata.py",
        "profiles",
        "npuprof",
    }
    assert needed <= set(re.sub(r"\n", " ", containerfile).split())
    subprocess.run(["sh", "-n", REPOSITORY / ".ci/image-root"], check=True)
    assert "USER 65534" in containerfile
