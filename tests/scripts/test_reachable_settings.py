"""Which files call something that sets settings is known without parsing them."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuprof.scripts.import_resolution import open_modules
from npuprof.scripts.reading import may_call_settings
from support.importing import write

HELPER = """import os
class Reader:
    def level(self):
        return os.environ.get("ASCEND_GLOBAL_LOG_LEVEL") or os.environ["ASCEND_LOG"]
class Base:
    def set(self):
        os.environ["ASCEND_GLOBAL_LOG_LEVEL"] = "1"
    def get(self):
        return 1
class Heir(Base):
    def outer(self):
        self.set()
class Made:
    def __init__(self):
        Base().set()
def foreign():
    os.environ["NCCL_DEBUG"] = "INFO"
def direct():
    os.environ["ASCEND_GLOBAL_LOG_LEVEL"] = "1"
def \\
    around():
    def inner():
        direct()
    inner()
# how the environment is read
def evaluate():
    return "environment"
made = Heir()
def started():
    subprocess.run(["env", "ASCEND_GLOBAL_LOG_LEVEL=1"])
def system():
    try:
        return platform.system()
    except subprocess.TimeoutExpired:
        return run_in_subprocess(my_env=1)
def computed(table):
    os.environ.update({name: str(value) for name, value in table.items()})
def merge(table):
    os.environ.update({"ASCEND_GLOBAL_LOG_LEVEL": "1", **table})
from elsewhere import Foreign
class Outside(Foreign):
    def set(self):
        os.environ["ASCEND_GLOBAL_LOG_LEVEL"] = "1"
class Further(Outside):
    pass
class Hook:
    def run(self):
        self.step()
class HookHeir(Hook):
    def step(self):
        os.environ["ASCEND_GLOBAL_LOG_LEVEL"] = "1"
"""


@pytest.mark.parametrize(
    ("script", "reached"),
    [
        ("from helper import direct\ndirect()", True),
        ("from helper import direct as other\nother()", True),
        ("import helper\nhelper.around()", True),
        ("from helper import Heir\nHeir().set()", True),
        ("from helper import Base\nclass Own(Base):\n    def f(self):\n        self.set()", True),
        ("from helper import made\nmade.outer()", True),
        ("from helper import Made\nMade()", True),
        ("from helper import Made\nclass Own(Made):\n    pass\nOwn()", True),
        ("from helper import direct\nprint(direct)", False),
        ("from helper import foreign\nforeign()", False),
        ("from helper import Reader\nReader().level()", False),
        ("from helper import Base\nBase().get()", False),
        ("from helper import evaluate\nevaluate()", False),
        ("from helper import Reader\nmodel.direct()", False),
        ("from helper import started\nstarted()", True),
        ("from helper import system\nsystem()", False),
        ("from helper import computed\ncomputed({})", False),
        ("from helper import merge\nmerge({})", True),
        ("from helper import Outside\nOutside().set()", False),
        ("from helper import Further\nFurther().set()", False),
        ("from helper import Base as Other\nOther.set(1)", True),
        ("from helper import Base\ndef f(base):\n    base.set()\nf(Base())", True),
        ("from helper import HookHeir\nHookHeir().run()", True),
    ],
)
def test_a_call_is_followed_where_it_can_lead_to_a_setting(
    script: str, reached: bool, tmp_path: Path
) -> None:
    write(tmp_path, {"helper.py": HELPER, "run.py": script})
    data = script.encode()
    modules = open_modules([str(tmp_path)])
    assert may_call_settings(str(tmp_path / "run.py"), data, modules) is reached


def test_a_helper_is_reached_from_its_importers_importer_only_by_its_names(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "helper.py": HELPER,
            "middle.py": (
                "from helper import direct\ndef start():\n    direct()\ndef stop():\n    0\n"
            ),
        },
    )
    modules = open_modules([str(tmp_path)])

    def reach(name: str) -> bool:
        text = f"from middle import {name}\n{name}()".encode()
        return may_call_settings(str(tmp_path / f"{name}.py"), text, modules)

    assert reach("start")
    assert not reach("stop")


PROCESS = """import torch, torch_npu
from vllm import LLM
class Accelerator:
    def name(self):
        return "npu"
    def limit(self):
        torch.npu.set_per_process_memory_fraction(0.5)
def get_accelerator():
    return Accelerator()
class Options:
    def __init__(self):
        self.table = {"ACL_OP_COMPILER_CACHE_MODE": "enable"}
    def use(self):
        torch.npu.set_option(self.table)
class MegatronLLM:
    def start(self):
        return LLM("model")
    def save(self):
        return "additional_config.json"
    def pass_table(self):
        return start(additional_config={"a": 1})
class OtherLLM:
    pass
def build():
    return OtherLLM()
"""


@pytest.mark.parametrize(
    ("script", "reached"),
    [
        ("from helper import get_accelerator\nget_accelerator().name()", False),
        ("from helper import Accelerator\nAccelerator().limit()", True),
        ("from helper import Options\nOptions()", True),
        ("from helper import MegatronLLM\nMegatronLLM().start()", True),
        ("from helper import build\nbuild()", False),
        ("from helper import MegatronLLM\nMegatronLLM().save()", False),
        ("from helper import MegatronLLM\nMegatronLLM().pass_table()", True),
    ],
)
def test_a_class_sets_only_what_its_objects_keep_or_its_methods_call(
    script: str, reached: bool, tmp_path: Path
) -> None:
    write(tmp_path, {"helper.py": PROCESS, "run.py": script})
    modules = open_modules([str(tmp_path)])
    assert may_call_settings(str(tmp_path / "run.py"), script.encode(), modules) is reached
