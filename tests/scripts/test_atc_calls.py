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
        f"import subprocess\nsubprocess.run({['atc', *FLAGS]}, check=True)\n",
        (
            f"import subprocess\nwords = {['/usr/local/bin/atc', *FLAGS]}\n"
            "subprocess.check_call(words)\n"
        ),
        (
            f"import subprocess\nwords = {['atc', *FLAGS]}\n"
            "subprocess.run(' '.join(words), shell=True)\n"
        ),
        f"import os\nos.system('cd models && sudo atc {' '.join(FLAGS)} > log 2>&1')\n",
        f"from subprocess import Popen\nPopen('atc ' + '{' '.join(FLAGS)}', shell=True)\n",
        (
            "import os\nos.system('atc --framework=5 --model={} --output=a "
            "--precision_mode={}'.format('a.onnx', 'force_fp16'))\n"
        ),
        (
            "import os\ndef convert(command):\n    os.system(command)\n"
            f"convert('atc {' '.join(FLAGS)}')\n"
        ),
    ],
)
def test_flags_that_are_constants_are_those_of_a_conversion(script: str) -> None:
    read = imported(script)
    assert settings(script) == KNOWN
    assert [site.surface for site in read.sites] == ["atc"]


def test_what_is_filled_in_is_left_open_flag_by_flag() -> None:
    script = (
        "import subprocess\nsubprocess.run(['atc', '--model=' + name, f'--output={out}', "
        "'--framework=5', *more, extra])\n"
    )
    read = imported(script).settings
    assert [(one.name, one.value, bool(one.reason)) for one in read] == [
        ("--model", None, True),
        ("--output", None, True),
        ("--framework", 5, False),
        ("", None, True),
        ("", None, True),
    ]
    assert [one.column for one in read] == [24, 43, 62, 79, 86]


@pytest.mark.parametrize(
    "script",
    [
        (
            'import os\ndef convert(h):\n    command = """\n  atc --model=a --input_shape="x:{}"\n'
            '""".format(h)\n    os.system(command)\n'
        ),
        (
            "import os\nto_om = 'atc --framework=5 '\nfor shape in shapes:\n"
            "    command = to_om + str(shape)\n    os.system(command)\n"
        ),
        (
            "import subprocess\nwords = ['atc']\n"
            "words.append('--framework=5')\nsubprocess.call(words)\n"
        ),
        (
            "import subprocess\ncmd = 'atc %s' % ' '.join(output_list)\n"
            "subprocess.call(cmd, shell=True)\n"
        ),
    ],
)
def test_a_conversion_that_is_computed_is_noted(script: str) -> None:
    read = imported(script)
    assert not read.settings
    assert [(one.code, one.severity) for one in read.problems] == [("NP801", "info")]
    assert "atc is run here in a way that is not followed" in read.problems[0].message


@pytest.mark.parametrize(
    "script",
    [
        "import os\nos.system('grep atc log.txt')\nos.system('./batc --model=a')\n",
        (
            "import subprocess\nsubprocess.run(['echo', 'atc '])\n"
            "subprocess.run(args)\nprint('atc --model=a')\n"
        ),
        "import os\nos.system(command)\n# atc --model=a\n",
    ],
)
def test_other_programs_are_none_of_ours(script: str) -> None:
    read = imported(script)
    assert (read.settings, read.sites, read.problems) == ((), (), ())
