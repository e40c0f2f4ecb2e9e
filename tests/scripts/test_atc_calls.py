"""Conversions that Python starts.

The shapes are those of public scripts: samples (super_resolution/convertModel.py), ModelZoo-PyTorch
(Detr/detr_onnx2om.py) and ModelZoo-TensorFlow (ALBERT_for_ACL/libs/convert_om.py,
MTCNN_for_ACL/om_bm_predict_rnet.py) at the time of writing.
"""

from __future__ import annotations

import pytest

from support.importing import imported, settings

KNOWN = {
    "atc.framework": 5,
    "atc.model": "a.onnx",
    "atc.output": "a",
    "precision_mode": "force_fp16",
}
FLAGS = ["--framework=5", "--model=a.onnx", "--output", "a", "--precision_mode=force_fp16"]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            f"import subprocess\nsubprocess.run({['atc', *FLAGS]}, check=True)\n", id="a list"
        ),
        pytest.param(
            f"import subprocess\nwords = {['/usr/local/bin/atc', *FLAGS]}\n"
            "subprocess.check_call(words)\n",
            id="a list with a name",
        ),
        pytest.param(
            "import subprocess\nwords = ['atc']\nwords.append('--framework=5')\n"
            f"words += {FLAGS[1:]}\nsubprocess.call(words)\n",
            id="a list that grows",
        ),
        pytest.param(
            f"import subprocess\nwords = {['atc', *FLAGS]}\n"
            "subprocess.run(' '.join(words), shell=True)\n",
            id="a joined list",
        ),
        pytest.param(
            f"import os\nos.system('cd models && sudo atc {' '.join(FLAGS)} > log 2>&1')\n",
            id="a text after cd and sudo",
        ),
        pytest.param(
            f"from subprocess import Popen\nPopen('atc ' + '{' '.join(FLAGS)}', shell=True)\n",
            id="a joined text",
        ),
        pytest.param(
            "import os\nos.system('atc --framework=5 --model={} --output=a "
            "--precision_mode={}'.format('a.onnx', 'force_fp16'))\n",
            id="a formatted text",
        ),
        pytest.param(
            "import os\ndef convert(command):\n    os.system(command)\n"
            f"convert('atc {' '.join(FLAGS)}')\n",
            id="an argument of a function",
        ),
    ],
)
def test_flags_that_are_constants_are_those_of_a_conversion(script: str) -> None:
    read = imported(script)
    assert settings(script) == KNOWN
    assert [site.surface for site in read.sites] == ["atc"]


def test_a_flag_that_an_if_adds_has_its_condition() -> None:
    script = (
        "import subprocess\nwords = ['atc', '--framework=5']\nif large:\n"
        "    words.append('--model=a.onnx')\nsubprocess.call(words)\n"
    )
    always, sometimes = imported(script).settings
    assert always.branches == ()
    assert [branch.test for branch in sometimes.branches] == ["large"]


def test_what_is_filled_in_is_left_open_flag_by_flag() -> None:
    script = (
        "import subprocess\nsubprocess.run(['atc', '--model=' + name, f'--output={out}', "
        "'--framework=5', *more, extra])\n"
    )
    read = imported(script).settings
    assert [setting.name for setting in read] == ["--model", "--output", "--framework", "", ""]
    assert [setting.value for setting in read if not setting.reason] == [5]
    assert [setting.value for setting in read if setting.reason] == [None] * 4
    assert [setting.column for setting in read] == [24, 43, 62, 79, 86]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            'import os\ndef convert(h):\n    command = """\n  atc --model=a --input_shape="x:{}"\n'
            '""".format(h)\n    os.system(command)\n',
            id="a formatted text of several lines",
        ),
        pytest.param(
            "import os\nto_om = 'atc --framework=5 '\nfor shape in shapes:\n"
            "    command = to_om + str(shape)\n    os.system(command)\n",
            id="a text that a loop extends",
        ),
        pytest.param(
            "import subprocess\ncmd = 'atc %s' % ' '.join(output_list)\n"
            "subprocess.call(cmd, shell=True)\n",
            id="a joined list of unknown values",
        ),
    ],
)
def test_a_conversion_that_is_computed_is_noted(script: str) -> None:
    read = imported(script)
    assert not read.settings
    (problem,) = read.problems
    assert problem.code == "NP801"
    assert problem.severity == "info"
    assert "atc is run here in a way that is not followed" in problem.message


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            "import os\nos.system('grep atc log.txt')\nos.system('./batc --model=a')\n",
            id="atc in other names",
        ),
        pytest.param(
            "import subprocess\nsubprocess.run(['echo', 'atc '])\n"
            "subprocess.run(args)\nprint('atc --model=a')\n",
            id="atc outside of the call",
        ),
        pytest.param("import os\nos.system(command)\n# atc --model=a\n", id="atc in a comment"),
    ],
)
def test_other_programs_are_none_of_ours(script: str) -> None:
    read = imported(script)
    assert read.settings == ()
    assert read.sites == ()
    assert read.problems == ()
