"""Names of classes and modules in YAML files that the tree lacks, from public repairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuprof.model import Context, Finding
from npuprof.scripts.scanning import scan_scripts

#: A tree with a package, and code that knows some names.
TREE = {
    "nemo/__init__.py": "",
    "nemo/asr/__init__.py": "from nemo.asr import modules\n",
    "nemo/asr/modules.py": "class Encoder:\n    pass\n",
    "nemo/asr/open.py": "from torch.nn import *\n",
    "nemo/asr/data/list.txt": "",
    "own/verl/__init__.py": "",
    "own/__init__.py": "",
    "src/anomalib/__init__.py": "",
}


def scan(folder: Path, text: str, file: str = "configs/run.yaml") -> list[Finding]:
    """Return the findings about names in a YAML file of the tree."""
    for name, content in {**TREE, file: text}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    found = scan_scripts([str(folder)], Context(), None, None).findings
    return [each for each in found if each.code == "NP846"]


LACKING = [
    # examples/tts/conf/fastpitch_align_ipa.yaml of NeMo before 512191239
    pytest.param(
        "g2p:\n  _target_: nemo.asr.g2ps.IPAG2P\n", "nemo.asr.g2ps.IPAG2P", id="no such module"
    ),
    # examples/asr/bad_quartznet15x5.yaml of NeMo before 8ea1d7563
    pytest.param("header:\n  full_spec: nemo.asr.Encoder  # old\n", "nemo.asr.Encoder", id="moved"),
    # examples/emotion_conversion of fairseq
    pytest.param(
        'model:\n  class_path: "nemo.asr.modules.Decoder"\n', "nemo.asr.modules.Decoder", id="class"
    ),
    pytest.param("- anomalib.data.Folder\n", "anomalib.data.Folder", id="in the folder src"),
]


@pytest.mark.parametrize(("text", "name"), LACKING)
def test_a_dotted_name_that_a_package_lacks_is_likely_a_slip(
    tmp_path: Path, text: str, name: str
) -> None:
    (found,) = scan(tmp_path, text)
    assert (found.severity, found.certainty) == ("warning", "likely")
    assert found.message == f"the tree has no {name}"


RIGHT = [
    pytest.param("_target_: nemo.asr.modules.Encoder\n", id="there"),
    pytest.param("_target_: nemo.asr.modules.Encoder.build\n", id="method"),
    pytest.param("modules: nemo.asr.modules\n", id="module"),
    pytest.param("folder: nemo.asr.data.list\n", id="folder of data"),
    pytest.param("_target_: nemo.asr.open.Conv2d\n", id="names of another package"),
    pytest.param("_target_: torch.optim.AdamW\n", id="another package"),
    pytest.param("text: see nemo.asr.g2ps.IPAG2P for more\n", id="text"),
    pytest.param("# _target_: nemo.asr.g2ps.IPAG2P\n", id="comment"),
]


@pytest.mark.parametrize("text", RIGHT)
def test_a_name_that_code_may_have_is_no_slip(tmp_path: Path, text: str) -> None:
    assert scan(tmp_path, text) == []


def test_a_package_inside_of_another_one_hides_no_installed_package(tmp_path: Path) -> None:
    # rllm/trainer/config/_generated_agent_ppo_trainer.yaml of rllm: rllm/trainer/verl is not verl
    text = "_target_: verl.utils.profiler.ProfilerConfig\n"
    assert scan(tmp_path, text, "own/config/run.yaml") == []
