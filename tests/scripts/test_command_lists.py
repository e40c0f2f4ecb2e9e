"""Command lines of servers in Python, in shell arrays, and in the commands of images."""

from __future__ import annotations

from typing import Any

import pytest

from npuprof.scripts.preset import build_drafts
from support.importing import imported

SERVE = '"vllm", "serve", "a/b"'

#: A script, and the settings of each launch in it, as lines of keys and values.
LAUNCHES = [
    pytest.param(
        f'subprocess.Popen([{SERVE}, "--max-model-len", "4096"])',
        [{"vllm.model": "a/b", "vllm.max-model-len": 4096}],
        id="list",
    ),
    pytest.param(
        f'common = ["--port", "80"]\ncmd = [{SERVE}] + common\ncmd.append("--enforce-eager")\n'
        'cmd.extend(["--seed", "1"])\ncmd += ["--dtype=bfloat16"]\nrun(cmd)',
        [
            {
                "vllm.model": "a/b",
                "vllm.port": 80,
                "vllm.enforce-eager": True,
                "vllm.seed": 1,
                "vllm.dtype": "bfloat16",
            }
        ],
        id="list with changes",
    ),
    pytest.param(
        'def start(model, args):\n    subprocess.run(["vllm", "serve", model, *args])\n'
        'start("a/b", ["--max-model-len", "4096"])',
        [{"vllm.model": "a/b", "vllm.max-model-len": 4096}],
        id="helper of the script",
    ),
    pytest.param(
        "def build():\n"
        f'    cmd = [{SERVE}]\n    cmd.append("--enforce-eager")\n    return cmd\n'
        "subprocess.Popen(build())",
        [{"vllm.model": "a/b", "vllm.enforce-eager": True}],
        id="returned",
    ),
    pytest.param(
        "class Server:\n    def build(self):\n"
        f'        cmd = [{SERVE}, "--port", "80"]\n        return cmd\n'
        "    def start(self):\n        subprocess.Popen(self.build())\nServer().start()",
        [{"vllm.model": "a/b", "vllm.port": 80}],
        id="returned by a method",
    ),
    pytest.param(
        'cmd = ["vllm", "serve", model, "--port", "80"]\n'
        'subprocess.Popen(" ".join(cmd), shell=True)',
        [{"vllm.port": 80}],
        id="joined for a shell",
    ),
    # vllm-project/recipes: Google/gemma4-modal.py
    pytest.param(
        f'cmd = [{SERVE}]\ncmd += ["--limit-mm-per-prompt", '
        """f"'{json.dumps({'image': 0})}'", "--reasoning-parser gemma4", f"--port {port}"]\n"""
        'subprocess.Popen(" ".join(cmd), shell=True)',
        [
            {
                "vllm.model": "a/b",
                "vllm.limit-mm-per-prompt": {"image": 0},
                "vllm.reasoning-parser": "gemma4",
            }
        ],
        id="quoted and split by a shell",
    ),
    pytest.param(
        "from vllm.utils import get_open_port\n"
        'args = ["--max-model-len", "4096"]\nif fast:\n    args += ["--seed", "1"]\n'
        'else:\n    args += ["--seed", "2"]\nwith RemoteServer("a/b", args): pass',
        [{"vllm.model": "a/b", "vllm.max-model-len": 4096}],
        id="flags under conditions",
    ),
    pytest.param(
        "from vllm.utils import get_open_port\n"
        'with RemoteServer("a/b", ["--max-model-len", "4096"], '
        'env_dict={"HCCL_OP_EXPANSION_MODE": "AIV", "OMP_NUM_THREADS": "1"}): pass',
        [
            {
                "vllm.model": "a/b",
                "vllm.max-model-len": 4096,
                "env.HCCL_OP_EXPANSION_MODE": "AIV",
                "env.OMP_NUM_THREADS": "1",
            }
        ],
        id="server arguments and environment",
    ),
    pytest.param(
        f'subprocess.Popen([{SERVE}], env={{**os.environ, "HCCL_BUFFSIZE": "300"}})\n'
        'subprocess.Popen(["vllm", "serve", "c/d"], env={**os.environ, "HCCL_BUFFSIZE": "400"})',
        [
            {"vllm.model": "a/b", "env.HCCL_BUFFSIZE": "300"},
            {"vllm.model": "c/d", "env.HCCL_BUFFSIZE": "400"},
        ],
        id="two starts with their environments",
    ),
    pytest.param(
        'if prefill:\n    cmd = ["vllm", "serve", "a/b"]\n'
        'else:\n    cmd = ["vllm", "serve", "c/d"]\n'
        'cmd.append("--enforce-eager")\nsubprocess.Popen(cmd)',
        [
            {"vllm.model": "a/b", "vllm.enforce-eager": True},
            {"vllm.model": "c/d", "vllm.enforce-eager": True},
        ],
        id="two branches",
    ),
    pytest.param(
        'os.system(f"export HCCL_BUFFSIZE=300; vllm serve a/b --port {port} --seed 1")',
        [{"vllm.model": "a/b", "vllm.seed": 1, "env.HCCL_BUFFSIZE": "300"}],
        id="text for a shell",
    ),
    pytest.param(
        'subprocess.run(["bash", "-c", "HCCL_BUFFSIZE=300 vllm serve a/b --seed 1"])',
        [{"vllm.model": "a/b", "vllm.seed": 1, "env.HCCL_BUFFSIZE": "300"}],
        id="text in a list",
    ),
]


@pytest.mark.parametrize(("script", "launches"), LAUNCHES)
def test_a_command_line_in_python_is_a_launch(script: str, launches: list[Any]) -> None:
    drafts = build_drafts(imported(f"import os, runpy, subprocess, sys\n{script}\n"))
    assert [draft.settings for draft in drafts] == launches


def test_a_setting_has_the_position_of_its_item_in_the_list() -> None:
    script = 'import subprocess\nsubprocess.Popen(["vllm", "serve", "a/b",\n    "--port", "80"])\n'
    places = {item.key: (item.line, item.column) for item in imported(script).settings}
    assert places == {"vllm.model": (2, 36), "vllm.port": (3, 5)}


@pytest.mark.parametrize(
    "script",
    [
        'parser.add_argument("--max-model-len", type=int)',
        'remove_flags(command, ["--max-model-len", "--max-num-seqs"])',
        'assert build() == ["vllm", "serve", "--max-model-len", "4096"]',
        'self.assertEqual(build(), ["--max-model-len", "4096"])',
        'parser.parse_args(["--max-model-len", "4096"])',
        'run(["python", "bench.py", "--max-model-len", "4096"])',
        'subprocess.run(["vllm", "bench", "serve", "--max-num-seqs", "4"])',
        'DEFAULTS = {"HCCL_BUFFSIZE": "the size of buffers"}\nshow(DEFAULTS)',
        'show(env={"HOST": "a", "HCCL_BUFFSIZE": "the size", "NAME": "b"})',
    ],
)
def test_a_list_that_starts_nothing_is_no_launch(script: str) -> None:
    assert not imported(f"import subprocess, vllm\n{script}\n").settings


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "script",
    [
        "cmd = ['vllm', 'serve']\n" + "cmd += cmd\n" * 200 + "run(cmd)",
        "a = ['vllm', 'serve']\n" + "a = [*a, *a]\n" * 200 + "run(a)",
        "def f():\n    return f()\nrun(f())\ncmd = ['vllm', 'serve', *cmd]\nrun(cmd)",
        "".join(
            f"if a{n}:\n    cmd = ['vllm', 'serve', '{n}']\nelse:\n    cmd = ['vllm', 'serve']\n"
            "cmd += cmd\n"
            for n in range(100)
        )
        + "run(cmd)",
    ],
    ids=["doubled", "unpacked", "recursive", "branches"],
)
def test_lists_that_grow_end_in_bounded_time(script: str) -> None:
    imported(f"import vllm\n{script}\n")


SHELL = [
    pytest.param(
        'CMD=(vllm serve a/b)\nCMD+=("--port" 80)\n"${CMD[@]}"',
        [{"vllm.model": "a/b", "vllm.port": 80}],
        id="a command in an array",
    ),
    pytest.param(
        "ARGS=(--port 80)\nif [ $1 ]; then ARGS+=(--enforce-eager); fi\n"
        'vllm serve a/b "${ARGS[@]}"',
        [{"vllm.model": "a/b", "vllm.port": 80}],
        id="a flag under a condition",
    ),
    pytest.param(
        "export HCCL_BUFFSIZE=200\nvllm serve a/b &\nexport HCCL_BUFFSIZE=400\nvllm serve c/d",
        [
            {"vllm.model": "a/b", "env.HCCL_BUFFSIZE": "200"},
            {"vllm.model": "c/d", "env.HCCL_BUFFSIZE": "400"},
        ],
        id="an export between two starts",
    ),
    pytest.param(
        "export HCCL_BUFFSIZE=200 PYTHONHASHSEED=0\n"
        "if [ $1 = prefill ]; then\n  export OMP_NUM_THREADS=1\n  vllm serve a/b\n"
        "else\n  export HCCL_BUFFSIZE=400\n  vllm serve c/d\nfi",
        [
            {
                "vllm.model": "a/b",
                "env.HCCL_BUFFSIZE": "200",
                "env.PYTHONHASHSEED": "0",
                "env.OMP_NUM_THREADS": "1",
            },
            {"vllm.model": "c/d", "env.HCCL_BUFFSIZE": "400", "env.PYTHONHASHSEED": "0"},
        ],
        id="a branch for each role",
    ),
    pytest.param(
        "export HCCL_BUFFSIZE=200\nif [ $1 ]; then export HCCL_BUFFSIZE=400; fi\nvllm serve a/b",
        [{"vllm.model": "a/b", "env.HCCL_BUFFSIZE": "200"}],
        id="an export that another one may replace",
    ),
    pytest.param(
        "HCCL_BUFFSIZE=200 python a.py\nvllm serve a/b",
        [{"vllm.model": "a/b"}, {"env.HCCL_BUFFSIZE": "200"}],
        id="a variable of another command",
    ),
    pytest.param(
        "export HCCL_BUFFSIZE=200\nvllm serve a/b &\nexport HCCL_BUFFSIZE=400\npython a.py",
        [{"vllm.model": "a/b", "env.HCCL_BUFFSIZE": "200"}, {"env.HCCL_BUFFSIZE": "400"}],
        id="an export after the start",
    ),
    # omni-ai-npu/omni-infer: tools/scripts/pd_run.sh
    pytest.param(
        "HCCL_BUFFSIZE=0\nif [ $HCCL_BUFFSIZE -gt 0 ]; then export HCCL_BUFFSIZE; fi\n"
        "vllm serve a/b",
        [{"vllm.model": "a/b"}],
        id="a default that is not exported",
    ),
]


@pytest.mark.parametrize(("script", "launches"), SHELL)
def test_a_start_in_a_shell_script_has_what_reaches_it(script: str, launches: list[Any]) -> None:
    drafts = build_drafts(imported(f"{script}\n", "x.sh"))
    assert [draft.settings for draft in drafts] == launches


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ('if [ -z "$HCCL_BUFFSIZE" ]; then HCCL_BUFFSIZE=3; export HCCL_BUFFSIZE; fi', "3"),
        ('HCCL_BUFFSIZE=3; if [ -n "$OTHER" ]; then export HCCL_BUFFSIZE; fi', "3"),
        ('HCCL_BUFFSIZE=0; if [ "$HCCL_BUFFSIZE" != 0 ]; then export HCCL_BUFFSIZE; fi', None),
        ('HCCL_BUFFSIZE=0; [ "$HCCL_BUFFSIZE" != 0 ] && export HCCL_BUFFSIZE', None),
    ],
)
def test_a_value_that_is_tested_before_its_export_is_unknown(
    script: str, value: str | None
) -> None:
    (setting,) = imported(f"{script}\nvllm serve\n", "x.sh").settings
    assert setting.value == value


@pytest.mark.parametrize(
    "command",
    [
        'CMD ["bash", "-c", "export HCCL_BUFFSIZE=300 && vllm serve a/b"]',
        'ENTRYPOINT ["sh", "-c", "HCCL_BUFFSIZE=300 vllm serve a/b"]',
        "CMD export HCCL_BUFFSIZE=300 && vllm serve a/b",
    ],
)
def test_a_variable_of_the_command_of_an_image_belongs_to_its_launch(command: str) -> None:
    (draft,) = build_drafts(imported(f"FROM x\n{command}\n", "Dockerfile"))
    assert draft.settings == {"vllm.model": "a/b", "env.HCCL_BUFFSIZE": "300"}
