"""Releases that a tree pins: what selects one, which files it is for, and what names it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

import pytest

from npuprof.catalog import releases
from npuprof.scripts.pinned_releases import list_pins
from support.growth import measure_growth

if TYPE_CHECKING:
    from pathlib import Path

    from support.running import Run

#: A switch that vllm_ascend reads up to 0.11.0rc0.
LAUNCH = "export VLLM_ASCEND_ENABLE_TOPK_OPTIMIZE=1\nvllm serve m\n"
IMAGE = "quay.io/ascend/vllm-ascend"
CLONE = "git clone https://github.com/vllm-project/vllm-ascend.git"


class Row(NamedTuple):
    """A text, and the releases that it pins, each with its line."""

    text: str
    pins: tuple[str, ...]
    is_docker: bool = False


ROWS = {
    "image of Compose": Row(f'  image: "{IMAGE}:v0.18.0rc1-a3"\n', ("vllm_ascend 0.18.0rc1:1",)),
    "image with a digest": Row(
        f"image: {IMAGE}:v0.18.0-openeuler@sha256:{'0' * 64}", ("vllm_ascend 0.18.0:1",)
    ),
    "only a digest": Row(f"image: {IMAGE}@sha256:{'0' * 64}", ()),
    "image of a mirror with a port": Row(
        "docker run -it \\\n  mirror:5000/ascend/vllm-ascend:v0.18.0", ("vllm_ascend 0.18.0:2",)
    ),
    "image of someone else": Row("image: my-ascend/vllm-ascend:v0.18.0", ()),
    "branch of an image": Row(f"image: {IMAGE}:v0.11.0-dev", ()),
    # gpustack/gpustack gpustack/assets/gpu-instance-templates.yaml
    "beta of an image": Row("image: quay.io/ascend/cann:9.1.0-beta.3-a3-ubuntu22.04-py3.12", ()),
    # vllm-project/recipes models/Qwen: ascend/vllm-ascend:qwen3.8-a5
    "name of a model": Row(f"docker run {IMAGE}:qwen3.8-a5", ()),
    # alibaba/ChatLearn requirements.txt: vllm_module.py passes swap_space, which 0.33.0 has not
    "a release older than all known ones": Row(
        "deepspeed==0.14.4\nvllm==0.5.1\n", ("vllm 0.7.1:2",)
    ),
    "an unknown release between known ones": Row("vllm==0.8.99", ()),
    "latest": Row(f"docker run {IMAGE}:latest", ()),
    "variable as tag": Row(f"docker run {IMAGE}:$VERSION", ()),
    # hiyouga/LLaMA-Factory .github/workflows/tests_npu.yml
    "image of a workflow": Row(
        "container:\n  image: ascendai/cann:9.1.0-910b-ubuntu22.04-py3.12", ("cann 9.1.0:2",)
    ),
    # hiyouga/LLaMA-Factory docker/docker-npu/Dockerfile
    "default of ARG": Row(
        "ARG BASE_IMAGE=quay.io/ascend/cann:9.1.0-910b-ubuntu22.04-py3.12\nFROM ${BASE_IMAGE}\n",
        ("cann 9.1.0:2",),
        is_docker=True,
    ),
    # Ascend/MindSpeed-MM docker/Dockerfile
    "default of a reference to ARG": Row(
        'ARG BASE=""\nFROM ${BASE:-swr/ascendhub/cann:9.0.0-a3-openeuler24.03-py3.11} AS base\n'
        "ARG TORCH_NPU_VERSION=2.7.1.post8\n"
        "RUN true && \\\n    pip install --no-cache-dir torch-npu==${TORCH_NPU_VERSION} && break\n"
        "FROM base AS final\n",
        ("cann 9.0.0:2", "torch_npu 26.1.0:5"),
        is_docker=True,
    ),
    "ARG without default": Row("ARG TAG\nFROM ascend/cann:${TAG}-910b\n", (), is_docker=True),
    "stage that is only copied from": Row(
        f"FROM {IMAGE}:v0.11.0 AS old\nFROM {IMAGE}:v0.18.0\nCOPY --from=old /a /b\n",
        ("vllm_ascend 0.18.0:2",),
        is_docker=True,
    ),
    # Ascend/MindSpeed-MM docs/zh/mindspore/install_guide.md
    "pip": Row("pip install mindspore==2.7.2", ("mindspore 2.7.2:1",)),
    "two packages": Row(
        "pip install vllm==0.18.0 vllm-ascend==0.18.0",
        ("vllm 0.18.0:1", "vllm_ascend 0.18.0:1"),
    ),
    # Ascend/MindSpeed-MM examples/verl_examples/mistral/README.md
    "package of torch_npu": Row("pip install torch_npu==2.9.0", ("torch_npu 7.3.0:1",)),
    "uv and quotes": Row(
        "uv pip install 'vllm_ascend[x] == 0.18.0; python_version > \"3\"'",
        ("vllm_ascend 0.18.0:1",),
    ),
    "pyproject": Row(
        '[project]\ndependencies = [\n  "Torch.NPU==2.7.1",\n]', ("torch_npu 7.2.0:3",)
    ),
    "any patch": Row("vllm-ascend==0.18.*", ()),
    "at least": Row("vllm-ascend>=0.18.0", ()),
    "another package": Row("my-vllm-ascend==0.18.0\nvllm-ascend-extra==0.18.0", ()),
    # Ascend/MindSpeed-MM scripts/install.sh
    "variable as version": Row('pip3 install torch-npu=="$TORCH_VERSION"', ()),
    "unknown release in between": Row("vllm-ascend==0.18.9", ()),
    "comment": Row("# pip install vllm-ascend==0.18.0\nx  # vllm-ascend==0.18.0", ()),
    "clone of a tag": Row(
        "git clone --depth 1 -b v0.11.0 \\\n  https://github.com/vllm-project/vllm-ascend",
        ("vllm_ascend 0.11.0:1",),
    ),
    # vllm-project/recipes models/MiniMaxAI/MiniMax-H3.yaml
    "clone of a branch": Row(
        f"{CLONE} --branch releases/v0.26.0rc\n{CLONE} -b releases/v0.13.0", ()
    ),
    "branch with a suffix": Row(f"{CLONE} -b v0.11.0-dev", ()),
    # Ascend/MindSpeed-MM docker/scripts/model_install/install_verl_qwen3vl.sh
    "checkouts of two clones": Row(
        '[ ! -d "vllm" ] && git clone https://github.com/vllm-project/vllm.git\n'
        "cd vllm && git checkout v0.11.0 && cd ${WORK_DIR}\n"
        f'[ ! -d "vllm-ascend" ] && {CLONE}\ncd vllm-ascend && git checkout v0.13.0\n',
        ("vllm 0.11.0:2", "vllm_ascend 0.13.0:4"),
    ),
    "checkout of a commit": Row(f"{CLONE}\ncd vllm-ascend && git checkout fed8145", ()),
    "checkout elsewhere": Row(f"{CLONE}\ngit checkout v0.13.0", ()),
    "checkout with the folder": Row(
        f"{CLONE} /src/va\ngit -C /src/va checkout --detach v0.13.0", ("vllm_ascend 0.13.0:2",)
    ),
    "requirement of a repository": Row(
        "vllm-ascend @ git+https://github.com/vllm-project/vllm-ascend.git@v0.13.0",
        ("vllm_ascend 0.13.0:1",),
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_a_text_pins_exactly_the_releases_that_it_selects(row: Row) -> None:
    found = list_pins("f", row.text, row.is_docker)
    assert tuple(f"{pin.axis} {pin.release}:{pin.line}" for pin in found) == row.pins


def test_a_release_newer_than_the_list_is_judged_as_the_newest() -> None:
    axes = {"vllm_ascend": "vllm-ascend", "torch_npu": "torch-npu", "mindspore": "mindspore"}
    for axis, package in axes.items():
        (pin,) = list_pins("f", f"pip install {package}==99.1.0")
        assert pin.release == releases.load_releases(axis)[-1]
        assert pin.is_newer
        assert ", the newest known (99.1.0 in f:1)" in pin.describe()


def scan(run: Run, tree: Path, *arguments: str) -> list[str]:
    """Return file and reason of each finding about the launch."""
    answer = run("scan", tree, "--format", "json", *arguments)
    return [
        f"{os.path.relpath(one['path'], tree)} {one['code']} {one['why'].partition('Judged ')[2]}"
        for one in json.loads(answer.out)["findings"]
        if "TOPK_OPTIMIZE" in one["message"]
    ]


def write_tree(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_pin_of_a_folder_is_for_the_files_below_that_pin_nothing(
    run: Run, tmp_path: Path
) -> None:
    top = tmp_path / "requirements.txt"
    inner = tmp_path / "b" / "Dockerfile"
    files = {
        "requirements.txt": "\nvllm-ascend==0.18.0\n",
        "a/run.sh": LAUNCH,
        "b/Dockerfile": f"FROM {IMAGE}:v0.13.0-a3\n",
        "b/c/run.sh": LAUNCH,
        "own.sh": f"pip install vllm-ascend==0.9.1\n{LAUNCH}",
    }
    write_tree(tmp_path, files)
    assert scan(run, tmp_path) == [
        f"a/run.sh NP404 for vllm_ascend 0.18.0 (0.18.0 in {top}:2).",
        f"b/c/run.sh NP404 for vllm_ascend 0.13.0 (v0.13.0-a3 in {inner}:1).",
    ]
    assert scan(run, tmp_path / "a") == ["run.sh NP502 "]  # nothing outside the named folder
    requested = scan(run, tmp_path, "--framework", "vllm_ascend=0.11.0")
    assert requested == [f"{name} NP404 " for name in ("own.sh", "a/run.sh", "b/c/run.sh")]


def test_a_file_without_a_folder_reads_its_repository(run: Run, tmp_path: Path) -> None:
    write_tree(tmp_path, {"pyproject.toml": '["vllm-ascend==0.18.0"]', "a/run.sh": LAUNCH})
    (tmp_path / ".git").mkdir()
    found = run("scan", tmp_path / "a" / "run.sh").out
    assert f"(0.18.0 in {tmp_path / 'a' / '..' / 'pyproject.toml'}:1)".replace("a/../", "") in found


def test_different_pins_select_none_and_are_noted_once(run: Run, tmp_path: Path) -> None:
    files = {
        "requirements/old.txt": "vllm-ascend==0.11.0\n",
        "requirements/new.txt": "vllm-ascend==0.18.0\n",
        "a.sh": LAUNCH,
        "b.sh": LAUNCH,
    }
    write_tree(tmp_path, files)
    assert scan(run, tmp_path) == ["a.sh NP502 ", "b.sh NP502 "]
    out = run("scan", tmp_path, "--severity", "info", "--select", "NP833").out
    old, new = (tmp_path / "requirements" / name for name in ("old.txt", "new.txt"))
    assert f"{old}:1: info NP833: vllm_ascend 0.11.0 (0.11.0 in line 1), but" in out
    assert f"but vllm_ascend 0.18.0 (0.18.0 in {new}:1)" in out
    assert out.count("NP833") == 1


def test_the_summary_names_the_releases_that_files_were_judged_for(
    run: Run, tmp_path: Path
) -> None:
    write_tree(tmp_path, {"Dockerfile": f"FROM {IMAGE}:v0.18.0\n", "a.sh": LAUNCH, "b.sh": LAUNCH})
    dockerfile = str(tmp_path / "Dockerfile")
    assert run("scan", tmp_path).err.endswith(
        f"; judged for vllm_ascend 0.18.0 (v0.18.0 in {dockerfile}:1)\n"
    )
    fields = json.loads(run("scan", tmp_path, "--format", "json").out)["releases"]
    assert fields == [
        {
            "axis": "vllm_ascend",
            "release": "0.18.0",
            "written": "v0.18.0",
            "file": dockerfile,
            "line": 1,
            "is_newer": False,
            "files": 2,
        }
    ]
    counted = json.loads(run("scan", tmp_path, "--statistics", "--format", "json").out)
    assert [row["release"] for row in counted["releases"]] == ["vllm_ascend 0.18.0"]
    assert f"v0.18.0  {dockerfile}:1" in run("scan", tmp_path, "--statistics").out


def test_a_pin_of_a_notebook_is_named_by_its_cell(run: Run, tmp_path: Path) -> None:
    lines = ["!pip install vllm-ascend==0.18.0\n", "%env VLLM_ASCEND_ENABLE_TOPK_OPTIMIZE=1"]
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": lines}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))
    result = run("scan", tmp_path)
    assert "vllm_ascend 0.18.0 (0.18.0 in cell 1, line 1)" in result.out
    assert f"vllm_ascend 0.18.0 (0.18.0 in {tmp_path / 'a.ipynb'}:1)" in result.err


def test_control_characters_in_the_folder_of_a_pin_are_escaped(run: Run, tmp_path: Path) -> None:
    odd = tmp_path / "a\x1b[2J\u202e"
    write_tree(odd, {"requirements.txt": "vllm-ascend==0.18.0\n", "run.sh": LAUNCH})
    result = run("scan", tmp_path)
    assert "Judged for vllm_ascend 0.18.0 (0.18.0 in" in result.out
    assert "judged for vllm_ascend 0.18.0 (0.18.0 in" in result.err
    assert not {"\x1b", "\u202e"} & set(result.out + result.err)


def test_links_pipes_and_large_files_pin_nothing(run: Run, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write_tree(tree, {"run.sh": LAUNCH, "requirements-b.txt": "vllm-ascend==0.18.0\n" * 60_000})
    (tmp_path / "outside").write_text("vllm-ascend==0.18.0\n")
    (tree / "requirements.txt").symlink_to(tmp_path / "outside")
    os.mkfifo(tree / "requirements-a.txt")
    assert scan(run, tree) == ["run.sh NP502 "]


REPEATED = {
    "images": f" {IMAGE}:v0.18.0",
    "unknown tags": f" {IMAGE}:v0",
    "clones": f" {CLONE} -b",
    "checkouts": " git checkout -b -b",
    "folders": f" cd x; {CLONE} a; git -C a checkout v0.18.0;",
    "continued lines": " \\\n",
    "comments": " # #",
    "references": " ${X:-${X",
    "stages": "\nFROM a AS a",
    "brackets": " vllm-ascend[a==",
}


@pytest.mark.parametrize("text", REPEATED.values(), ids=REPEATED.keys())
def test_the_work_grows_with_the_length_of_a_text(text: str) -> None:
    def build(size: int) -> object:
        return lambda: list_pins("f", text * size, is_docker=True)

    assert measure_growth(build, 300) < 1.3  # type: ignore[arg-type]


def test_a_pin_of_one_framework_in_a_file_keeps_those_of_its_folders_for_others(
    run: Run, tmp_path: Path
) -> None:
    top = tmp_path / "requirements.txt"
    files = {
        "requirements.txt": "vllm-ascend==0.18.0\n",
        "run.sh": f"pip install torch-npu==2.9.0\n{LAUNCH}",
    }
    write_tree(tmp_path, files)
    (found,) = scan(run, tmp_path)
    assert f"vllm_ascend 0.18.0 (0.18.0 in {top}:1)" in found


def test_a_pin_newer_than_the_list_is_noted_once_at_its_line(run: Run, tmp_path: Path) -> None:
    files = {"Dockerfile": f"\nFROM {IMAGE}:v99.1.0\n", "a.sh": LAUNCH, "b.sh": LAUNCH}
    write_tree(tmp_path, files)
    out = run("scan", tmp_path, "--severity", "info", "--select", "NP402").out
    assert f"{tmp_path / 'Dockerfile'}:2: info NP402: vllm_ascend v99.1.0 is newer than" in out
    assert out.count("NP402") == 1
