"""What scripts import from files of their own tree: constants, and functions with settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from npuprof.scripts.import_resolution import open_modules
from npuprof.scripts.preset import build_drafts
from npuprof.scripts.python.visitor import Visitor
from npuprof.scripts.reading import import_script
from support.importing import HEAD, write

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable
    from pathlib import Path

    from npuprof.scripts.python.calls import Entered

MAKE = """\
import tensorflow as tf
from npu_bridge.npu_init import *
def get_config(precision="allow_fp32_to_fp16", timeout=None):
    config = tf.ConfigProto()
    custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
    custom_op.name = "NpuOptimizer"
    custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(precision)
    if timeout:
        custom_op.parameter_map["hccl_timeout"].i = timeout
    return config
"""
MAKER = """\
import tensorflow as tf
from npu_bridge.npu_init import *
class Base(object):
    GRAPH = 0
    def __init__(self, mode="force_fp32"):
        self.mode = mode
class Maker(Base):
    def build(self):
        config = tf.ConfigProto()
        op = config.graph_options.rewrite_options.custom_optimizers.add()
        op.name = "NpuOptimizer"
        op.parameter_map["precision_mode"].s = tf.compat.as_bytes(self.mode)
        return config
    @staticmethod
    def plain():
        return Maker("force_fp16").build()
class Holder:
    def __init__(self, mode, debug=False):
        self.config = tf.ConfigProto()
        self.op = self.config.graph_options.rewrite_options.custom_optimizers.add()
        self.op.name = "NpuOptimizer"
        self.op.parameter_map["precision_mode"].s = tf.compat.as_bytes(mode)
        if debug:
            self.op.parameter_map["op_debug_level"].i = 1
    def wait(self, seconds):
        self.op.parameter_map["hccl_timeout"].i = seconds
    def get(self):
        return self.config
"""
FILL = (
    'def fill(op, mode="force_fp16"):\n'
    '    op.parameter_map["precision_mode"].s = tf.compat.as_bytes(mode)\n'
)
SET = f'{HEAD}custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(PRECISION)\n'
MIX, FP32 = {"precision_mode": "allow_mix_precision"}, {"precision_mode": "force_fp32"}


def read_tree(
    folder: Path, files: dict[str, str], script: str = "train.py", followed: bool = True
) -> list[dict[str, Any]]:
    """Return what each preset of a script sets.

    With ``followed``, other files of its tree are read too, as ``import`` does.
    """
    write(folder, files)
    modules = open_modules([str(folder)]) if followed else None
    path = str(folder / script)
    data = (folder / script).read_bytes()
    return [
        draft.settings
        for draft in build_drafts(import_script(path, data, modules=modules))
        if draft.settings
    ]


@pytest.mark.parametrize(
    ("imported", "text", "settings"),
    [
        pytest.param(
            "from a.npu import Maker",
            "tf.Session(config=Maker('allow_mix_precision').build())",
            [],
            id="an imported class",
        ),
        pytest.param(
            "import a.npu",
            "tf.Session(config=a.npu.Maker().build())",
            [],
            id="a class of an imported module",
        ),
        pytest.param(
            "from a import npu as tools",
            "maker = tools.Maker(mode='allow_mix_precision')\ntf.Session(config=maker.build())",
            [],
            id="a module with another name",
        ),
        pytest.param(
            "from a.npu import *",
            "with tf.Session(config=Maker.plain()) as sess:\n    pass",
            [],
            id="a static method of a star import",
        ),
        pytest.param(
            "from a.npu import Maker as M",
            "class Mine(M):\n    pass\ntf.Session(config=Mine('allow_mix_precision').build())",
            [],
            id="a subclass",
        ),
        pytest.param(
            "from a.npu import Maker",
            (
                "class Mine(Maker):\n    def __init__(self):\n"
                "        super().__init__('allow_mix_precision')\n"
                "tf.Session(config=Mine().build())"
            ),
            [],
            id="a subclass with super",
        ),
        pytest.param(
            "from a.npu import Holder",
            "held = Holder('force_fp32', True)\ntf.Session(config=held.get())",
            [FP32 | {"op_debug_level": 1}],
            id="an object that keeps the configuration",
        ),
        pytest.param(
            "from a.npu import Holder",
            "held = Holder('force_fp32')\nheld.wait(600)\ntf.Session(config=held.get())",
            [FP32 | {"hccl_timeout": 600}],
            id="a method that adds a setting",
        ),
        pytest.param(
            "from a.npu import Holder",
            (
                "a = Holder('force_fp32')\nb = Holder('allow_mix_precision')\n"
                "tf.Session(config=a.get())\ntf.Session(config=b.get())"
            ),
            [FP32, MIX],
            id="two objects",
        ),
        pytest.param(
            "from a.npu import Maker",
            "maker = Maker()\nmaker.mode = FLAGS.mode\ntf.Session(config=maker.build())",
            [],
            id="an attribute that depends on the run",
        ),
        pytest.param(
            "from a.npu import Maker",
            "@FLAGS.register\nclass Mine(Maker):\n    pass\ntf.Session(config=Mine().build())",
            [],
            id="a decorated subclass",
        ),
    ],
)
def test_what_an_object_of_a_class_of_another_file_sets_is_of_the_script(
    imported: str, text: str, settings: list[dict[str, Any]], tmp_path: Path
) -> None:
    files = {
        "train.py": f"import tensorflow as tf\n{imported}\n{text}\n",
        "a/__init__.py": "",
        "a/npu.py": MAKER,
    }
    assert read_tree(tmp_path, files) == settings


@pytest.mark.parametrize(
    ("files", "settings"),
    [
        pytest.param(
            {
                "train.py": f"from settings import *\n{SET}",
                "settings.py": '__all__ = ["OTHER"]\nPRECISION = "force_fp32"\n',
            },
            [],
            id="a name outside of __all__",
        ),
        pytest.param(
            {
                "train.py": f"from a import b\n{SET}".replace("PRECISION", "b.PRECISION"),
                "a/__init__.py": "",
                "a/b.py": 'PRECISION = "force_fp32"\n',
            },
            [FP32],
            id="a module of a package",
        ),
        pytest.param(
            {
                "train.py": f"from a import c, b, d\n{SET}".replace("PRECISION", "b.PRECISION"),
                "a/b.py": 'PRECISION = "force_fp32"\n',
            },
            [FP32],
            id="a module without __init__.py",
        ),
        pytest.param(
            {
                "m/train.py": f"from settings import PRECISION\n{SET}",
                "settings.py": 'PRECISION = "force_fp32"\n',
            },
            [FP32],
            id="a module of the folder above",
        ),
        pytest.param(
            {
                "m/train.py": f"from settings.npu import PRECISION\n{SET}",
                "settings/npu.py": 'PRECISION = "force_fp16"\n',
                "m/settings.py": "",
            },
            [],
            id="a module that another one hides",
        ),
        pytest.param(
            {
                "train.py": f"from settings import PRECISION\n{SET}",
                "settings.py": 'BASE = "force"\nPRECISION = BASE + "_fp32"\n',
            },
            [FP32],
            id="a constant of constants",
        ),
        pytest.param(
            {
                "train.py": f"from settings import C\n{SET}".replace("PRECISION", "C.PRECISION"),
                "settings.py": 'class C:\n    PRECISION = "force_fp32"\n',
            },
            [FP32],
            id="a constant of a class",
        ),
        pytest.param(
            {
                "train.py": (
                    f"import settings\n{HEAD}for k, v in settings.ALL.items():\n"
                    "    custom_op.parameter_map[k].s = v\n"
                ),
                "settings.py": 'ALL = {"precision_mode": b"force_fp32"}\n',
            },
            [FP32],
            id="a table in a loop",
        ),
        pytest.param(
            {
                "train.py": f"from settings import __file__ as PRECISION\n{SET}",
                "settings.py": "import os\nHERE = os.path.dirname(__file__)\n",
            },
            [],
            id="__file__ of a module",
        ),
    ],
)
def test_constants_of_modules_fold(
    files: dict[str, str], settings: list[dict[str, Any]], tmp_path: Path
) -> None:
    script = next(iter(files))
    assert read_tree(tmp_path, files, script, followed=False) == []
    assert read_tree(tmp_path, files, script) == settings


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(
            {
                "train.py": f"from settings import PRECISION\n{SET}",
                "settings.py": 'PRECISION = "a"\nif asked():\n    PRECISION = "b"\n',
            },
            id="set again in a branch",
        ),
        pytest.param(
            {
                "train.py": f"from settings import PRECISION\n{SET}",
                "settings.py": (
                    'PRECISION = "a"\ndef f():\n    global PRECISION\n    PRECISION = "b"\n'
                ),
            },
            id="set by a function",
        ),
        pytest.param(
            {
                "train.py": f"import settings\nsettings.PRECISION = FLAGS.p\n{SET}".replace(
                    "(PRECISION", "(settings.PRECISION"
                ),
                "settings.py": 'PRECISION = "a"\n',
            },
            id="set by the script",
        ),
        pytest.param(
            {
                "train.py": (
                    "import settings\nfrom settings import PRECISION\n"
                    f"settings.PRECISION = FLAGS.p\n{SET}"
                ),
                "settings.py": 'PRECISION = "a"\n',
            },
            id="set by the script under another name",
        ),
        pytest.param(
            {
                "train.py": f"from a import PRECISION\n{SET}",
                "a.py": "from b import PRECISION\n",
                "b.py": "from a import PRECISION\n",
            },
            id="modules that import each other",
        ),
        pytest.param(
            {"train.py": f"from train import PRECISION\n{SET}"}, id="a script that imports itself"
        ),
        pytest.param({"train.py": f"from settings import PRECISION\n{SET}"}, id="a missing module"),
        pytest.param(
            {"train.py": f"from settings import PRECISION\n{SET}", "settings.py": "def ("},
            id="a module with a syntax error",
        ),
        pytest.param(
            {
                "train.py": f"from settings import PRECISION\n{SET}",
                "settings.py": 'import os\nPRECISION = os.environ["P"]\n',
            },
            id="a value of the environment",
        ),
        pytest.param(
            {
                "train.py": (
                    "try:\n    from a import PRECISION\nexcept ImportError:\n"
                    f"    from b import PRECISION\n{SET}"
                ),
                "a.py": 'PRECISION = "a"\n',
                "b.py": 'PRECISION = "b"\n',
            },
            id="two modules",
        ),
    ],
)
def test_what_may_have_another_value_stays_unknown(files: dict[str, str], tmp_path: Path) -> None:
    assert read_tree(tmp_path, files) == []


def test_modules_outside_of_the_tree_are_not_looked_at(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "settings.py": 'PRECISION = "force_fp32"\n',
            "secret/settings.py": 'PRECISION = "force_fp32"\n',
        },
    )
    inside = tmp_path / "tree"
    assert read_tree(inside, {"train.py": f"from settings import PRECISION\n{SET}"}) == []
    (inside / "settings.py").symlink_to(tmp_path / "secret" / "settings.py")
    assert read_tree(inside, {"train.py": f"from settings import PRECISION\n{SET}"}) == []


@pytest.mark.parametrize(
    ("script", "settings"),
    [
        pytest.param(
            (
                "import npu_utils\nwith "
                'tf.Session(config=npu_utils.get_config("allow_mix_precision")) as s:\n    pass\n'
            ),
            [MIX],
            id="a function of a module",
        ),
        pytest.param(
            'from npu_utils import *\nget_config("allow_mix_precision", timeout=60)\n',
            [{**MIX, "hccl_timeout": 60}],
            id="a function of a star import",
        ),
        pytest.param(
            'from npu_utils import get_config\nPRECISION = "force_fp32"\nget_config(PRECISION)\n',
            [FP32],
            id="a constant as argument",
        ),
        pytest.param(
            (
                "from npu_utils import get_config\ndef run(p):\n"
                '    return get_config(p)\nrun("force_fp32")\n'
            ),
            [FP32],
            id="a parameter as argument",
        ),
        pytest.param(
            (
                "from npu_utils import get_config\ndef \\\n  run(p):\n"
                '    return get_config(p)\nrun("force_fp32")\n'
            ),
            [FP32],
            id="a definition over two lines",
        ),
        pytest.param(
            'from npu_utils import get_config\nfor p in ["force_fp32"]:\n    get_config(p)\n',
            [FP32],
            id="a loop variable as argument",
        ),
        pytest.param(
            (
                'from npu_utils import get_config\nget_config("force_fp32")\n'
                'get_config("force_fp32")\n'
            ),
            [FP32],
            id="two equal calls",
        ),
        pytest.param(
            (
                'from npu_utils import get_config\na = get_config("force_fp32")\n'
                'b = get_config("allow_mix_precision")\n'
            ),
            [FP32, MIX],
            id="two different calls",
        ),
        pytest.param(
            "from npu_utils import get_config\nget_config(*given)\n", [], id="unpacked arguments"
        ),
        pytest.param(
            "from npu_utils import get_config\nget_config(FLAGS.precision)\n",
            [],
            id="an argument that depends on the run",
        ),
        pytest.param(
            'from npu_utils import get_config\nget_config = print\nget_config("force_fp32")\n',
            [],
            id="a name that is bound again",
        ),
        pytest.param(
            (
                "from npu_utils import get_config\ndef get_config(p):\n    pass\n"
                'get_config("force_fp32")\n'
            ),
            [],
            id="a name that is defined again",
        ),
        pytest.param(
            "from npu_utils import fill\n"
            + HEAD
            + 'fill(custom_op)\ncustom_op.parameter_map["precision_mode"].s = b"force_fp32"\n',
            [FP32],
            id="an entry as argument",
        ),
        pytest.param(
            (
                "from npu_utils import add_entry\nconfig = tf.ConfigProto()\nadd_entry(config)\n"
                "run = NPURunConfig(session_config=config, hccl_timeout=60)\n"
                "from npu_bridge import NPURunConfig\n"
            ),
            [{"hccl_timeout": 60, "precision_mode": "force_fp16"}],
            id="a configuration as argument",
        ),
        pytest.param(
            'from npu_utils import make_run\nmake_run(mode="force_fp32")\n',
            [{**FP32, "enable_dump": True, "dump_path": "/d"}],
            id="an NPURunConfig",
        ),
        pytest.param(
            "from npu_utils import set_options\nset_options()\n",
            [{"precision_mode_v2": "mixed_float16"}],
            id="options of TensorFlow 2",
        ),
        pytest.param(
            'from npu_utils import set_environment\nset_environment("1")\n',
            [{"env.ASCEND_GLOBAL_LOG_LEVEL": "1"}],
            id="a variable",
        ),
        pytest.param(
            'from npu_utils import changed\nchanged("force_fp32")\n',
            [],
            id="a parameter that changes",
        ),
    ],
)
def test_functions_of_modules_are_read_with_the_arguments_of_the_call(
    script: str, settings: list[dict[str, Any]], tmp_path: Path
) -> None:
    helper = f"""{MAKE}{FILL}import os
import npu_device as npu
from npu_bridge.estimator.npu.npu_config import NPURunConfig, DumpConfig
def add_entry(config):
    op = config.graph_options.rewrite_options.custom_optimizers.add()
    op.name = "NpuOptimizer"
    fill(op)
def make_run(mode):
    dump = DumpConfig(enable_dump=True, dump_path="/d")
    return NPURunConfig(precision_mode=mode, dump_config=dump)
def set_options():
    npu.global_options().precision_mode_v2 = "mixed_float16"
def set_environment(level):
    os.environ["ASCEND_GLOBAL_LOG_LEVEL"] = level
def outer(mode):
    return get_config(precision=mode)
def around(mode, again=False):
    if again:
        around(mode)
    return get_config(mode)
def changed(mode):
    mode = mode or "force_fp16"
    return get_config(mode)
"""
    assert read_tree(tmp_path, {"train.py": script, "npu_utils.py": helper}) == settings
    if settings and 'parameter_map["precision_mode"]' not in script:
        assert read_tree(tmp_path, {}, followed=False) != settings


def test_a_path_beside_a_helper_of_another_folder_stays_unknown(tmp_path: Path) -> None:
    helper = 'import os\nHERE = os.path.dirname(__file__)\nDUMP = os.path.join(HERE, "dump")\n'
    script = (
        "from u.h import DUMP\n"
        f'{HEAD}custom_op.parameter_map["dump_path"].s = tf.compat.as_bytes(DUMP)\n'
    )
    assert read_tree(tmp_path, {"train.py": script, "u/h.py": helper}) == []


@pytest.mark.parametrize("expression", ["MIX", "u.h.MIX", "find_mix()"])
def test_a_file_beside_the_script_is_not_taken_for_one_of_that_name_beside_a_helper(
    expression: str, tmp_path: Path
) -> None:
    helper = (
        "import os\nMIX = os.path.dirname(__file__) + "
        '"/ops.json"\ndef find_mix():\n    return MIX\n'
    )
    line = f'custom_op.parameter_map["modify_mixlist"].s = tf.compat.as_bytes({expression})\n'
    files = {
        "train.py": f"import u.h\nfrom u.h import MIX, find_mix\n{HEAD}{line}",
        "u/h.py": helper,
    }
    mixlists = {
        "ops.json": '{"black-list": {"to-add": ["Add"]}}',
        "u/ops.json": '{"white-list": {"to-add": ["MatMul"]}}',
    }
    assert read_tree(tmp_path, files | mixlists) == []


def test_a_helper_that_sets_nothing_is_entered_once_whatever_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = """import os
def choose():
    os.environ["HCCL_ALGO"] = "b"
def show(kind):
    print(os.environ)
    table = {}
    table["kind"] = kind
def prepare(kind, first=False):
    if first:
        show(kind)
    else:
        show([kind])
"""
    calls = 'prepare("a", first=True)\nprepare("b")\nprepare("c", first=True)\n'
    entered = []
    enter: Callable[..., None] = vars(Visitor)["_enter"]

    def note(visitor: Visitor, call: ast.Call, target: Entered, *others: Any) -> None:
        entered.append(target.function.name)
        enter(visitor, call, target, *others)

    monkeypatch.setattr(Visitor, "_enter", note)
    script = f'import os\nfrom helper import prepare\n{calls}os.environ["HCCL_ALGO"] = "a"\n'
    settings = read_tree(tmp_path, {"train.py": script, "helper.py": helper})
    assert settings == [{"env.HCCL_ALGO": "a"}]
    assert entered == ["prepare", "show"]


def test_what_one_call_skips_is_read_for_another(tmp_path: Path) -> None:
    helper = """import os
def choose(level, is_first=False):
    if is_first:
        print(level)
    else:
        os.environ["ASCEND_GLOBAL_LOG_LEVEL"] = level
"""
    script = 'from helper import choose\nchoose("1", is_first=True)\nchoose("3")\n'
    settings = read_tree(tmp_path, {"train.py": script, "helper.py": helper})
    assert settings == [{"env.ASCEND_GLOBAL_LOG_LEVEL": "3"}]
