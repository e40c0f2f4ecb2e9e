# ruff: noqa: E501 (a tree is told in a few lines)
"""What objects have from the classes that theirs is made of, in this file and in those that it imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from importing import HEAD, write

from npuprof.scripts.following import open_modules
from npuprof.scripts.preset import build_drafts
from npuprof.scripts.reading import import_script

if TYPE_CHECKING:
    from pathlib import Path

FP32 = {"precision_mode": "force_fp32"}
HELD = 'mode = "force_fp32"\n'
INIT = "def __init__(self):\n        "


def _write_job(bases: str = "Base", beginning: str = "", imports: str = "from base import Base\n", end: str = "Job().run()\n") -> str:
    """Return a script whose class fills an entry with what its object has."""
    made = "".join(f"        {line}\n" for line in HEAD.splitlines()[2:])
    filled = '        custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(self.mode)\n'
    own = f"    {beginning}\n" if beginning else ""
    return f"{''.join(HEAD.splitlines(True)[:2])}{imports}class Job({bases}):\n{own}    def run(self):\n{made}{filled}{end}"


def _read_settings(folder: Path, files: dict[str, str], script: str = "train.py") -> dict[str, Any]:
    write(folder, files)
    path = folder / script
    drafts = build_drafts(import_script(str(path), path.read_bytes(), modules=open_modules([str(folder)])))
    assert len(drafts) == 1
    return drafts[0].settings


@pytest.mark.parametrize(
    "files",
    [
        {"train.py": _write_job(imports=f"class Base:\n    {HELD}")},
        {"train.py": _write_job(), "base.py": f"class Base:\n    {HELD}"},
        {"train.py": _write_job(), "base.py": f"class Base(object):\n    {INIT}self.{HELD}"},
        {"train.py": _write_job("base.Base", imports="import base\n"), "base.py": f"class Base:\n    {HELD}"},
        {"train.py": _write_job(), "base.py": "from root import Root\nclass Base(Root):\n    pass\n", "root.py": f"class Root:\n    {HELD}"},
        {"train.py": _write_job(), "base.py": f"from abc import ABC\nclass Base(ABC):\n    {HELD}"},
        {"train.py": _write_job("Other, Base", imports="from base import Base, Other\n"), "base.py": f"class Base:\n    {HELD}class Other:\n    pass\n"},
        {"train.py": _write_job(beginning=HELD), "base.py": 'class Base:\n    mode = "force_fp16"\n'},
        {"train.py": _write_job(beginning=f"{INIT}super().__init__()\n        self.{HELD}"), "base.py": f"class Base:\n    {INIT}self.mode = None\n"},
        {"train.py": _write_job(beginning=f'{INIT}super().__init__("force_fp32")'), "base.py": "class Base:\n    def __init__(self, mode):\n        self.mode = mode\n"},
        {"train.py": _write_job(beginning=f'{INIT}Base.__init__(self, mode="force_fp32")'), "base.py": "class Base:\n    def __init__(self, n=1, mode=None):\n        self.mode = mode\n"},
        {"train.py": _write_job(end='Job("force_fp32").run()\n'), "base.py": "class Base:\n    def __init__(self, mode):\n        self.mode = mode\n"},
        {"train.py": _write_job(end='Job("force_fp32").run()\n', beginning="def __init__(self, mode):\n        super(Job, self).__init__(mode)"), "base.py": "class Base:\n    def __init__(self, mode):\n        self.mode = mode\n"},
        {"train.py": _write_job(end="").replace("self.mode", "Job.mode"), "base.py": f"class Base:\n    {HELD}"},
        {"train.py": _write_job("object", HELD, "", f"class Child(Job):\n    steps = 3\n    {HELD}Child().run()\n")},
        {"train.py": _write_job("object", 'mode = "force_fp16"\n', "", f"class Child(Job):\n    {HELD}Child().run()\n")},
        {"train.py": _write_job("object", end="", beginning=HELD, imports=""), "main.py": "from train import Job\nJob().run()\n"},
    ],
)  # fmt: skip
def test_what_an_object_inherits_folds(files: dict[str, str], tmp_path: Path) -> None:
    assert _read_settings(tmp_path, files) == FP32


@pytest.mark.parametrize(
    "files",
    [
        {"train.py": _write_job()},
        {"train.py": _write_job("Base, Other", imports="from base import Base\nfrom elsewhere import Other\n"), "base.py": f"class Base:\n    {HELD}"},
        {"train.py": _write_job(), "base.py": f"class Base:\n    {HELD}    def run(self):\n        self.mode = 3\n"},
        {"train.py": _write_job(), "base.py": f"class Base:\n    {HELD}    def __getattr__(self, name):\n        return 3\n"},
        {"train.py": _write_job(), "base.py": f"class Base:\n    {HELD}register(Base)\n"},
        {"train.py": _write_job(end='job = Job()\njob.mode = "force_fp16"\njob.run()\n'), "base.py": f"class Base:\n    {HELD}"},
        {"train.py": _write_job(beginning=f"{INIT}pass"), "base.py": f"class Base:\n    {INIT}self.{HELD}"},
        {"train.py": _write_job(beginning=f'{INIT}self.mode = "force_fp16"\n        super().__init__()'), "base.py": f"class Base:\n    {INIT}self.{HELD}"},
        {"train.py": _write_job("object", HELD, "", 'class Child(Job):\n    mode = "force_fp16"\nChild().run()\nJob().run()\n')},
        {"train.py": _write_job("object", "mode = None\n", "", ""), "main.py": f"from train import Job\nclass Child(Job):\n    {HELD}Child().run()\n"},
        {"train.py": _write_job("object", HELD, "", ""), "main.py": 'from train import Job\njob = Job()\njob.mode = "force_fp16"\njob.run()\n'},
        {"train.py": f'{HEAD}from base import Base\nmade = Base()\ncustom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(made.mode)\n', "base.py": f'class Base:\n    {HELD}    {INIT}self.set()\n    def set(self):\n        self.mode = "x"\n'},
    ],
)  # fmt: skip
def test_what_an_heir_or_another_file_may_change_stays_unknown(files: dict[str, str], tmp_path: Path) -> None:
    assert _read_settings(tmp_path, files) == {}
