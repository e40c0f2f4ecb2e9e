"""Launch files of public projects: Markdown, Ray, LeaderWorkerSet, KServe, and launchers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from npuprof.catalog import execution
from npuprof.catalog.execution import list_ascend_names
from support.importing import settings
from support.running import Run

WRONG = 'env.TASK_QUEUE_ENABLE = "on" is none of'

ENVIRONMENT = '{"env_vars": {"TASK_QUEUE_ENABLE": "on"}}'
#: A file that sets TASK_QUEUE_ENABLE to a word that its reader takes for 0, and where it does, by
#: line and column.
FILES = {
    "kubectl set env (kubectl reference)": (
        "a.sh",
        "kubectl set env deploy/x TASK_QUEUE_ENABLE=on\n",
        (1, 26),
    ),
    "ray job submit (Ray documentation, runtime environments)": (
        "a.sh",
        f"ray job submit --runtime-env-json '{ENVIRONMENT}' -- python x.py\n",
        (1, 35),
    ),
    "apptainer --env (Apptainer user guide)": (
        "a.sh",
        "apptainer exec --env HCCL_BUFFSIZE=200,TASK_QUEUE_ENABLE=on i python x\n",
        (1, 40),
    ),
    "eval of a text": ("a.sh", 'eval "export TASK_QUEUE_ENABLE=on"\n', (1, 14)),
    "a default that is assigned (POSIX, parameter expansion)": (
        "a.sh",
        ': "${TASK_QUEUE_ENABLE:=on}"\nexport TASK_QUEUE_ENABLE\n',
        (1, 3),
    ),
    "env behind timeout (timeout(1))": (
        "a.sh",
        "timeout -k 5 100 env TASK_QUEUE_ENABLE=on python x.py\n",
        (1, 22),
    ),
    "su -c (su(1))": ("a.sh", 'su -c "export TASK_QUEUE_ENABLE=on; python x"\n', (1, 15)),
    "runtime_env of Ray in YAML": (
        "a.yaml",
        'runtime_env:\n  env_vars:\n    TASK_QUEUE_ENABLE: "on"\n',
        (3, 5),
    ),
    "runtimeEnvYAML of KubeRay (RayJob reference)": (
        "a.yaml",
        'kind: RayJob\nspec:\n  runtimeEnvYAML: |\n    env_vars:\n      TASK_QUEUE_ENABLE: "on"\n',
        (5, 7),
    ),
    "LeaderWorkerSet": (
        "a.yaml",
        "kind: LeaderWorkerSet\nspec: {leaderWorkerTemplate: {leaderTemplate: {spec: "
        "{containers: [{name: a, env: [\n"
        '  {name: TASK_QUEUE_ENABLE, value: "on"}]}]}}}}\n',
        (3, 3),
    ),
    "InferenceService of KServe": (
        "a.yaml",
        "kind: InferenceService\nspec:\n  predictor:\n    model:\n      env:\n"
        "      - name: TASK_QUEUE_ENABLE\n"
        '        value: "on"\n',
        (6, 9),
    ),
    "a block of a README": (
        "README.md",
        "# Run\n\n```bash\nexport TASK_QUEUE_ENABLE=on\n```\n",
        (4, 8),
    ),
    "a console block with prompts": (
        "README.md",
        "```console\n$ export TASK_QUEUE_ENABLE=on\n```\n",
        (2, 10),
    ),
    "a block behind one with an open quote": (
        "README.md",
        '```sh\necho "x\n```\n```sh\nexport TASK_QUEUE_ENABLE=on\n```\n',
        (5, 8),
    ),
}


def scan_json(run: Run, *arguments: str | Path) -> list[dict[str, Any]]:
    """Return the findings of ``scan`` as JSON."""
    answer: dict[str, list[dict[str, Any]]] = json.loads(
        run("scan", *arguments, "--format", "json").out
    )
    return answer["findings"]


def list_positions(findings: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return line and column of each finding about the value of TASK_QUEUE_ENABLE."""
    about_value = [finding for finding in findings if finding["message"].startswith(WRONG)]
    return [(finding["line"], finding["column"]) for finding in about_value]


@pytest.mark.parametrize("kind", FILES)
def test_a_launch_file_is_read_where_its_settings_are_written(
    run: Run, tmp_path: Path, kind: str
) -> None:
    name, text, position = FILES[kind]
    (tmp_path / name).write_text(text)
    findings = scan_json(run, tmp_path / name)
    assert list_positions(findings) == [position]
    assert not [finding for finding in findings if finding["code"] == "NP829"]


#: Ways in which public scripts give the variable to the process itself or to one that they start,
#: by line and column.
PYTHON = [
    pytest.param("os.environ |= {'TASK_QUEUE_ENABLE': 'on'}", (2, 16), id="environ |= table"),
    pytest.param(
        "os.environ.update(TASK_QUEUE_ENABLE='on')", (2, 37), id="environ.update with a keyword"
    ),
    pytest.param(
        "subprocess.run(['x'], env={**os.environ, 'TASK_QUEUE_ENABLE': 'on'})",
        (2, 42),
        id="env of a program",
    ),
    pytest.param(
        "env = os.environ.copy()\nenv['TASK_QUEUE_ENABLE'] = 'on'",
        (3, 1),
        id="a copy of the environment",
    ),
    pytest.param(
        "env = dict(os.environ)\nenv.update({'TASK_QUEUE_ENABLE': 'on'})",
        (3, 13),
        id="a dict of the environment",
    ),
    pytest.param(
        "ray.init(runtime_env={'env_vars': {'TASK_QUEUE_ENABLE': 'on'}})",
        (2, 36),
        id="runtime_env of Ray",
    ),
    pytest.param(
        "subprocess.run(['env', 'TASK_QUEUE_ENABLE=on', 'python', 'a.py'])",
        (2, 24),
        id="an argument of env",
    ),
    pytest.param(
        "subprocess.run(['bash', '-c', 'export TASK_QUEUE_ENABLE=on; python a.py'])",
        (2, 31),
        id="a command of bash",
    ),
    pytest.param(
        (
            "words = ['docker', 'run', '-v', x,\n"
            "  '-e', 'TASK_QUEUE_ENABLE=on', f'{y}=1']\nsubprocess.Popen(words)"
        ),
        (3, 9),
        id="an argument of docker",
    ),
    pytest.param(
        "os.system('TASK_QUEUE_ENABLE=on python a.py')", (2, 11), id="a command of the system"
    ),
]


@pytest.mark.parametrize(("text", "position"), PYTHON)
def test_an_environment_that_python_passes_on_is_read(
    run: Run, tmp_path: Path, text: str, position: tuple[int, int]
) -> None:
    (tmp_path / "a.py").write_text(f"import os, subprocess, ray\n{text}\n")
    assert list_positions(scan_json(run, tmp_path / "a.py")) == [position]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("HCCL__BUFFSIZE", "HCCL_BUFFSIZE"),
        ("TASK_QUEU_ENABLE", "TASK_QUEUE_ENABLE"),
        ("TORCHNPU_LOGS", "TORCH_NPU_LOGS"),
        ("GLOBAL_ASCEND_LOG_LEVEL", "ASCEND_GLOBAL_LOG_LEVEL"),
        ("FILE_RANK_TABLE", "RANK_TABLE_FILE"),
        ("RANKK_ID", "RANK_ID"),
    ],
)
def test_a_name_as_people_break_them_is_found_with_the_one_that_is_meant(
    run: Run, tmp_path: Path, name: str, meant: str
) -> None:
    (tmp_path / "a.sh").write_text(f"export {name}=1\nexport HCCL_ALGO=level0:NA\n")
    out = run("scan", tmp_path / "a.sh").out
    assert f"a.sh:1:8: warning NP206: no known environment variable {name!r}" in out
    assert f"did you mean {meant!r}" in out


OVERWRITTEN = """\
export HCCL_BUFFSIZE=512
export HCCL_ALGO=level0:NA
source /usr/local/Ascend/ascend-toolkit/set_env.sh
source /usr/local/Ascend/{folder}/set_env.sh
"""


@pytest.mark.parametrize(
    ("folder", "text", "line"),
    [
        pytest.param(
            "mindie",
            "HCCL_BUFFSIZE is overwritten in line 4 by /usr/local/Ascend/mindie/set_env.sh",
            1,
            id="mindie",
        ),
        pytest.param("nnal/atb", "LCCL_DETERMINISTIC is overwritten in line 5", 1, id="atb"),
        pytest.param("nnal/asdsip", "", 0, id="asdsip"),
    ],
)
def test_an_export_that_a_sourced_environment_overwrites_is_found(
    run: Run, tmp_path: Path, folder: str, text: str, line: int
) -> None:
    before = "export LCCL_DETERMINISTIC=1\n" if "atb" in folder else ""
    (tmp_path / "a.sh").write_text(before + OVERWRITTEN.format(folder=folder))
    lines = [row for row in run("scan", tmp_path / "a.sh").out.splitlines() if "NP832" in row]
    assert len(lines) == bool(text)
    if text:
        assert f"a.sh:{line}:8: warning NP832: {text}" in lines[0]
    with (tmp_path / "a.sh").open("a") as file:
        file.write("export HCCL_BUFFSIZE=512\nexport LCCL_DETERMINISTIC=1\n")
    assert "NP832" not in run("scan", tmp_path / "a.sh").out


@pytest.mark.parametrize(("folder", "count"), [("nnal/atb", 0), ("atb-models", 1), ("mindie", 1)])
def test_the_library_atb_overwrites_no_task_queue_but_its_models_do(
    run: Run, tmp_path: Path, folder: str, count: int
) -> None:
    (tmp_path / "a.sh").write_text(
        f"export TASK_QUEUE_ENABLE=2\nsource /usr/local/Ascend/{folder}/set_env.sh\n"
    )
    assert run("scan", tmp_path / "a.sh").out.count("NP832: TASK_QUEUE_ENABLE") == count


def test_a_conversion_in_eval_is_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(
        'eval "atc --model=a.pb --framework=3 --output=a '
        '--soc_version=Ascend310P3 --no_such_flag=1"\n'
    )
    assert "no_such_flag" in run("scan", tmp_path / "a.sh").out


def test_markdown_below_a_folder_is_read_only_if_that_is_asked_for(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text("```bash\nexport TASK_QUEUE_ENABLE=on\n```\n")
    (tmp_path / "plain.md").write_text("export TASK_QUEUE_ENABLE=on\n```python\nx = 1\n```\n")
    assert "0 files scanned" in run("scan", tmp_path).err
    answer = run("scan", tmp_path, "--docs")
    assert answer.code == 1
    assert answer.out.count("NP203") == 1
    assert 'TASK_QUEUE_ENABLE = "on"' in run("import", tmp_path, "--docs").out


LAUNCH = """\
export TASK_QUEUE_ENABLE=1
export HCCL_BUFFSIZE=$SIZE
export FOO_X=1
export BAR_Y=2
export ASCEND_LAUNCH_BLOCKING=0
"""


def test_scan_import_and_check_say_how_much_was_checked_and_what_is_unknown(run: Run) -> None:
    Path("launch.sh").write_text(LAUNCH)
    coverage = "5 settings: 2 checked, 1 dynamic, 2 unknown (BAR_Y, FOO_X)"
    counts = {"settings": 5, "checked": 2, "dynamic": 1, "unknown": 2, "names": ["BAR_Y", "FOO_X"]}
    assert (
        f"1 file scanned: no findings in 2 checked settings; {coverage}\n"
        in run("scan", "launch.sh").err
    )
    assert json.loads(run("scan", "launch.sh", "--format", "json").out)["coverage"] == counts
    assert coverage in run("import", "launch.sh").err
    assert json.loads(run("import", "launch.sh", "--format", "json").out)["coverage"] == counts
    Path("profiles").mkdir()
    Path("profiles/a.toml").write_text(
        '[env]\nFOO_X = "1"\nTASK_QUEUE_ENABLE = 1\n[options]\nhccl_timeout = 600\n'
    )
    assert "3 settings: 2 checked, 1 unknown (FOO_X)" in run("check").err
    assert json.loads(run("check", "--format", "json").out)["coverage"]["names"] == ["FOO_X"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(
            "a.yaml",
            "runtime_env:\n  env_vars: [TASK_QUEUE_ENABLE\n",
            id="YAML that ends too early",
        ),
        pytest.param(
            "a.yaml", "runtime_env:\n  env_vars: TASK_QUEUE_ENABLE\n", id="YAML without a table"
        ),
        pytest.param(
            "a.sh",
            "ray job submit --runtime-env-json '{\"env_vars\": [' TASK_QUEUE_ENABLE\n",
            id="JSON with an open quote",
        ),
        pytest.param(
            "a.sh", "ray job submit --runtime-env-json TASK_QUEUE_ENABLE=on\n", id="no JSON"
        ),
        pytest.param("README.md", "```bash\nexport TASK_QUEUE_ENABLE=on\n", id="an open block"),
        pytest.param(
            "README.md",
            "```bash\n" * 2000 + "export TASK_QUEUE_ENABLE=on",
            id="thousands of open blocks",
        ),
    ],
)
def test_a_broken_launch_file_ends_no_scan(run: Run, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "good.sh").write_text("export TASK_QUEUE_ENABLE=on\n")
    answer = run("scan", tmp_path / name, tmp_path / "good.sh")
    assert "good.sh:1:8: error NP203" in answer.out
    is_faulty = "NP801: the file is not YAML" in answer.out
    assert is_faulty == text.endswith("[TASK_QUEUE_ENABLE\n")
    assert answer.code == (2 if is_faulty else 1)


#: A file and its text, and position and hint of the finding NP206: empty if something else in the
#: file names the variable.
READS = [
    # vllm-ascend issue 5568 and PR 5581 exported the two misspelt names of devices; here they are
    # read
    pytest.param("a.sh", "export RANK_ID=$RANKK_ID", "1:16 RANK_ID", id="a shell script"),
    pytest.param(
        "a.sh",
        "export RANK_SIZE=8\npython a.py \\\n  --ids $ASCEBD_RT_VISIBLE_DEVICES",
        "3:9 ASCEND_RT_VISIBLE_DEVICES",
        id="a continued line",
    ),
    pytest.param(
        "a.sh",
        "export RANK_SIZE=8\nids=(0 $ASCEND_RT_VISIBLE_DEVICE)",
        "2:8 ASCEND_RT_VISIBLE_DEVICES",
        id="an array",
    ),
    pytest.param(
        "Dockerfile", "FROM a\nENV RANK_ID=$RANKK_ID", "2:13 RANK_ID", id="ENV of a Dockerfile"
    ),
    pytest.param(
        "Dockerfile", "FROM a\nRUN RANK_ID=$RANKK_ID make", "2:13 RANK_ID", id="RUN of a Dockerfile"
    ),
    pytest.param(
        "a.md",
        "# Start\n```bash\nexport RANK_ID=$RANKK_ID\n```",
        "3:16 RANK_ID",
        id="a block of Markdown",
    ),
    pytest.param(
        "a.sh", ": ${RANKK_ID:=0}\nexport RANK_ID=$RANKK_ID", "", id="a default is assigned"
    ),
    pytest.param(
        "a.sh", "for RANKK_ID in 0 1; do RANK_ID=$RANKK_ID a; done", "", id="a loop variable"
    ),
    pytest.param("a.sh", "export RANK_ID='$RANKK_ID'", "", id="single quotes"),
    pytest.param(
        "a.sh", "source own.sh\nexport RANK_ID=$RANKK_ID", "", id="a sourced file sets it"
    ),
    pytest.param(
        "a.sh", "source ./absent.sh\nexport RANK_ID=$RANKK_ID", "", id="a missing file may set it"
    ),
    pytest.param("a.sh", "export RANK_ID=$JOB_IDD", "", id="a common name with a suffix"),
    pytest.param(
        "a.sh", "export RANK_ID=${OMPI_COMM_WORLD_RANK:-0}", "", id="a variable of another program"
    ),
]


@pytest.mark.parametrize(("name", "text", "expected"), READS)
def test_a_read_of_a_misspelt_name_is_found_unless_the_file_names_it_otherwise(
    run: Run, name: str, text: str, expected: str
) -> None:
    Path("own.sh").write_text("RANKK_ID=2\n")
    Path(name).write_text(f"{text}\n")
    findings = [finding for finding in scan_json(run, name) if finding["code"] == "NP206"]
    if not expected:
        assert not findings
        return
    position, _, meant = expected.partition(" ")
    (finding,) = findings
    assert f"{finding['line']}:{finding['column']}" == position
    assert finding["severity"] == "warning"
    assert finding["hint"] == f"did you mean {meant!r}?"


#: Names of scripts and manuals, with the one that is read; empty for a name of the script's own.
NAMES = {
    "HCCL_BUFFERSIZE": "HCCL_BUFFSIZE",
    "HCCL_BUFFER_SIZE": "HCCL_BUFFSIZE",
    "HCCL_BUFF_SIZE": "HCCL_BUFFSIZE",
    "HCCL_BUFSIZE": "HCCL_BUFFSIZE",
    "HCCL_NPU_SOCKET_PORT": "HCCL_NPU_SOCKET_PORT_RANGE",
    "ASCEND_LAUNCH_BLOCK": "ASCEND_LAUNCH_BLOCKING",
    "ASCEND_LOG_LEVEL": "ASCEND_GLOBAL_LOG_LEVEL",
    "ASCEND_RT_VISIBLE_DEVICE": "ASCEND_RT_VISIBLE_DEVICES",
    "TASK_QUEUE": "TASK_QUEUE_ENABLE",
    "TASK_QUEUE_ENABLED": "TASK_QUEUE_ENABLE",
    "CPU_AFFINITY_CONFIG": "CPU_AFFINITY_CONF",
    "HCLL_IF_IP": "HCCL_IF_IP",
    "HCCL_WHITELIST_DISABEL": "HCCL_WHITELIST_DISABLE",
    # of ModelZoo-PyTorch and MindSpeed-MM
    "TP_WORLD_SIZE": "",
    "NPU_WORLD_SIZE": "",
    "NPU_PER_NODE": "",
    "NPU_FUSED_ENABLE": "",
    "RANKSIZE": "",
    "ASCEND_HOME": "",
    "ASCEND_ATC_PATH": "",
    "MGE_INSTALL_PATH": "",
    "TORCH_UCC_BLOCKING_WAIT": "",
    # of other vendors
    "MCCL_BUFFSIZE": "",
    "NCCL_BUFFSIZE": "",
    "RCCL_BUFFSIZE": "",
    "CNCL_BUFFSIZE": "",
    "AMD_VISIBLE_DEVICES": "",
}


@pytest.mark.parametrize(("name", "meant"), NAMES.items(), ids=NAMES)
def test_scan_check_and_import_agree_on_which_names_are_misspelt(
    run: Run, tmp_path: Path, name: str, meant: str
) -> None:
    (tmp_path / "a.sh").write_text(f"export {name}=1\n")
    (tmp_path / "a.toml").write_text(f'[env]\n{name} = "1"\n')
    for answer in (
        run("scan", tmp_path / "a.sh").out,
        run("check", tmp_path / "a.toml").out,
        run("import", "--format", "text", tmp_path / "a.sh").out if meant else "",
    ):
        assert f"did you mean {meant!r}?" in answer if meant else "did you mean" not in answer


def test_no_known_variable_looks_like_a_misspelt_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for name in list_ascend_names() if name.isupper()]
    assert len(names) > 600
    index = execution._index_spellings()
    monkeypatch.setattr(execution, "is_known_variable", lambda name: False)
    taken = []
    for name in names:
        others = {
            spelling: [other for other in index.get(spelling, ()) if other != name]
            for spelling in execution._list_spellings(name)
        }
        monkeypatch.setattr(execution, "_index_spellings", lambda others=others: others)
        taken += [name] if execution.find_meant_variable.__wrapped__(name) else []
    # the sources of MindSpore have both spellings
    assert set(taken) <= {
        "MS_DEV_ENABLE_PASS_CIRCEL_RECOVERY",
        "MS_DEV_ENABLE_PASS_CIRCLE_RECOVERY",
    }


@pytest.mark.parametrize(
    ("name", "text", "is_own"),
    [
        ("a.py", "import os\nx = os.environ.get('{}')\n", True),
        ("a.py", "import os\nx = os.environ['{}']\n", True),
        ("a.py", "import os\nx = os.getenv('{}', 1)\n", True),
        ("a.sh", "python x.py --n ${{}:-8}\n", True),
        ("a.sh", "python x.py --n ${}\n", True),
        ("a.sh", "export {}=2\n", False),
        ("a.py", "import os\nos.environ['{}'] = '2'\n", False),
    ],
)
def test_a_name_that_the_tree_reads_is_its_own(
    run: Run, tmp_path: Path, name: str, text: str, is_own: bool
) -> None:
    (tmp_path / "b.sh").write_text("export HCCL_CONNECT_TIMEOT=600\nexport HCCL_BUFFERSIZE=1\n")
    (tmp_path / name).write_text(text.replace("{}", "HCCL_CONNECT_TIMEOT"))
    found = {finding["key"] for finding in scan_json(run, tmp_path) if finding["code"] == "NP206"}
    assert found == {"env.HCCL_BUFFERSIZE"} | (set() if is_own else {"env.HCCL_CONNECT_TIMEOT"})


def test_a_shell_passes_on_a_recorded_misspelling_and_does_not_read_it(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "a.sh").write_text("export TASK_QUEUE=1\ndocker run -e TASK_QUEUE=$TASK_QUEUE x\n")
    assert "NP206" in run("scan", tmp_path).out
    (tmp_path / "a.py").write_text("import os\nprint(os.environ['TASK_QUEUE'])\n")
    assert "NP206" not in run("scan", tmp_path).out


def test_a_recorded_misspelling_is_an_error_without_a_release(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("export HCCL_BUFFERSIZE=200\nexport TASK_QUEU_ENABLE=1\n")
    assert [finding["severity"] for finding in scan_json(run, tmp_path)] == ["error", "warning"]


def test_a_recommended_pair_is_one_note_for_a_tree(run: Run, tmp_path: Path) -> None:
    for name in ("a.sh", "b.sh"):
        (tmp_path / name).write_text("export HCCL_IF_IP=10.0.0.1\nexport HCCL_SOCKET_IFNAME=eth0\n")
    (finding,) = scan_json(run, tmp_path)
    assert finding["code"] == "NP391"
    assert finding["severity"] == "info"


SET_OPTION = 'write torch.npu.set_option({"ACL_PRECISION_MODE": ...}) in the script'
IN_SESSION = "precision_mode is a session option: set it where the script makes its session"
#: A file that exports an option, and the hint of what is found. torch_npu has no variable for the
#: precision mode (EnvVariables.cpp of Ascend/pytorch), but reads the two of the compile cache.
OPTIONS = [
    pytest.param(
        "a.sh", "export ACL_PRECISION_MODE=must_keep_origin_dtype", SET_OPTION, id="a shell script"
    ),
    pytest.param(
        "Dockerfile", "FROM a\nENV ACL_PRECISION_MODE x", SET_OPTION, id="ENV of a Dockerfile"
    ),
    pytest.param(
        "a.md", "```sh\nexport ACL_PRECISION_MODE=x\n```", SET_OPTION, id="a block of Markdown"
    ),
    pytest.param(
        "a.yaml",
        "spec:\n  containers:\n  - env:\n    - {name: ACL_PRECISION_MODE, value: x}",
        SET_OPTION,
        id="a container",
    ),
    pytest.param(
        "a.py",
        "import os\nos.environ |= {'precision_mode': 'x', 'RANK_ID': '0'}",
        IN_SESSION,
        id="a session option in Python",
    ),
    pytest.param(
        "a.sh", "export ACL_OP_COMPILER_CACHE_MODE=enable", "", id="a variable that is read"
    ),
    pytest.param("a.sh", "precision_mode=x", "", id="a variable that is not exported"),
    pytest.param(
        "a.sh",
        "export precision_mode=x\npython a.py --mode ${precision_mode}",
        "",
        id="a variable that the script reads",
    ),
    pytest.param("a.sh", "export PRECISION_MODE=x", "", id="a name in capitals"),
    pytest.param(
        "a.py",
        "import os\nos.environ['precision_mode'] = 'x'\nprint(os.environ.get('precision_mode'))",
        "",
        id="a variable that Python reads",
    ),
    pytest.param(
        "a.py",
        "import torch_npu\ntorch_npu.npu.set_option({'ACL_PRECISION_MODE': 'x'})",
        "",
        id="an option of torch_npu",
    ),
]


@pytest.mark.parametrize(("name", "text", "hint"), OPTIONS)
def test_an_option_that_is_exported_as_a_variable_is_found_with_where_it_goes(
    run: Run, tmp_path: Path, name: str, text: str, hint: str
) -> None:
    (tmp_path / name).write_text(f"{text}\n")
    findings = scan_json(run, tmp_path, "--docs")
    misplaced = [finding for finding in findings if finding["code"] == "NP206"]
    assert [finding["hint"] for finding in misplaced] == ([hint] if hint else [])
    assert {finding["severity"] for finding in misplaced} <= {"warning"}


def test_a_text_that_python_appends_to_makes_a_variable_unknown() -> None:
    name = 'os.environ["HCCL_SOCKET_IFNAME"]'
    found = settings(f'import os\n{name} = "a"\n{name} += ",b"\nimport torch_npu\n')
    assert "depends on the environment" in found["env.HCCL_SOCKET_IFNAME"]
