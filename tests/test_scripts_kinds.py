"""Files that are no Python and no plain shell: what each kind sets, what it says and does not carry, and where."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from conftest import Result
from dotenv import dotenv_values
from hypothesis import given
from hypothesis import strategies as st
from importing import findings, imported, settings, write

from npuprof.scripts.preset import build_drafts
from npuprof.scripts.reading import env_files
from npuprof.scripts.reading.files import KINDS, detect_script_kind, is_script_candidate, may_hold_settings

#: A file, its name, and what is found in it: values, and reasons in angle brackets.
READ: dict[str, tuple[str, str, dict[str, object]]] = {
    "ENV with several variables, and over several lines": (
        "Dockerfile",
        "ENV HCCL_BUFFSIZE=200 \\\n  # a comment\n\n  HCCL_ALGO='a b' ASCEND_WORK_PATH=a\\ b\\\n/c\n",
        {"env.HCCL_BUFFSIZE": "200", "env.HCCL_ALGO": "a b", "env.ASCEND_WORK_PATH": "a b/c"},
    ),
    "the old form of ENV takes the rest of the line": ("Dockerfile", "env ASCEND_WORK_PATH /a b\n", {"env.ASCEND_WORK_PATH": "/a b"}),
    "ENV fills in what the file has set before": (
        "x.Dockerfile",
        'ENV A=/opt\nENV A=/usr ASCEND_WORK_PATH="$A/w" ASCEND_OPP_PATH=${A}/o\nENV ASCEND_CACHE_PATH=$A\n',
        {"env.ASCEND_WORK_PATH": "/opt/w", "env.ASCEND_OPP_PATH": "/opt/o", "env.ASCEND_CACHE_PATH": "/usr"},
    ),
    "the default of an ARG is no value": (
        "Containerfile",
        "ARG V=1\nENV HCCL_ALGO=$V HCCL_IF_IP='$V'\n",
        {"env.HCCL_ALGO": "<depends on $V>", "env.HCCL_IF_IP": "$V"},
    ),
    "only the stages that the last one is built on count": (
        "Dockerfile.train",
        "FROM u AS a\nENV HCCL_ALGO=1\nFROM a AS b\nENV HCCL_IF_IP=2\nFROM --platform=x a\nENV HCCL_BUFFSIZE=3\n",
        {
            "env.HCCL_ALGO": "1",
            "env.HCCL_IF_IP": "<stands in an earlier stage, which the last one is not built on>",
            "env.HCCL_BUFFSIZE": "3",
        },
    ),
    "what RUN exports is gone when it ends, what it converts is not": (
        "Dockerfile",
        "FROM u\nRUN export HCCL_ALGO=1 && \\\n    atc --framework=3\nENV HCCL_BUFFSIZE=3\n",
        {
            "env.HCCL_ALGO": "<holds for this RUN line only, not for what else runs in the image>",
            "atc.framework": 3,
            "env.HCCL_BUFFSIZE": "3",
        },
    ),
    "--export of Slurm": (
        "a.sbatch",
        "#!/bin/bash\n#SBATCH --export=ALL,HCCL_BUFFSIZE=200,HCCL_ALGO=$X,HCCL_IF_IP=1\n\necho\n#SBATCH --export=HCCL_RDMA_TC=1\n"
        "srun --export ALL,HCCL_RDMA_SL=3 python x.py\n",
        {"env.HCCL_BUFFSIZE": "200", "env.HCCL_ALGO": "<depends on $X>", "env.HCCL_IF_IP": "1", "env.HCCL_RDMA_SL": "3"},
    ),
    "a file of variables": (
        "prod.env",
        "# x\nHCCL_BUFFSIZE=200 # note\nexport HCCL_ALGO=\"a b\"\nASCEND_WORK_PATH=$HOME/x\nHCCL_IF_IP='$HOME'\nHCCL_RDMA_TC=\"a\\nb\"\n",
        {
            "env.HCCL_BUFFSIZE": "200",
            "env.HCCL_ALGO": "a b",
            "env.ASCEND_WORK_PATH": "<depends on $HOME>",
            "env.HCCL_IF_IP": "$HOME",
            "env.HCCL_RDMA_TC": "<programs that read such files take its backslashes, or # behind it, differently>",
        },
    ),
    "a file of variables that is a script": (
        ".env.local",
        "if [ -d /x ]; then\n  HCCL_BUFFSIZE=200\nfi\nA=1; HCCL_ALGO=$A\n",
        {"env.HCCL_BUFFSIZE": "200", "env.HCCL_ALGO": "1"},
    ),
    "options that an export carries": (
        "x.sh",
        "export NPUPROF_ENABLE_DUMP=1 NPUPROF_HCCL_TIMEOUT=1800 NPUPROF_STORE=/x NPUPROF_NONE=1\nexport NPUPROF_DUMP_PATH=$X\n",
        {"enable_dump": True, "hccl_timeout": 1800, "dump_path": "<depends on $X>"},
    ),
    "options that a script gives to its children": (
        "x.py",
        "import os\nos.environ['NPUPROF_HCCL_TIMEOUT'] = '1800'\nos.environ['NPUPROF_ENABLE_DUMP'] = 'x'\n",
        {"hccl_timeout": 1800, "enable_dump": "<'x' is no switch: write 1 or 0>"},
    ),
    "the variable that stands for an option beside it": (
        "x.sh",
        "export NPUPROF_HCCL_TIMEOUT=1800 HCCL_EXEC_TIMEOUT=1800\nexport NPUPROF_AOE_MODE=2 AOE_MODE=1\n",
        {"hccl_timeout": 1800, "aoe_mode": "2", "env.AOE_MODE": "1"},
    ),
}  # fmt: skip

CONTAINER = "kind: Pod\nspec:\n  containers:\n  - name: main\n    envFrom: [{configMapRef: {name: m}}]\n    env:\n"
MAP = '---\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  HCCL_BUFFSIZE: "200"\n  HCCL_ALGO: ring\n'
KUBERNETES: dict[str, tuple[str, dict[str, object]]] = {
    "a ConfigMap alone": (
        MAP + "  HCCL_RDMA_TC: 3\n  other.cfg: x\n",
        {
            "env.HCCL_BUFFSIZE": "200",
            "env.HCCL_ALGO": "ring",
            "env.HCCL_RDMA_TC": "<is no text: Kubernetes refuses it, it has to stand in quotes>",
        },
    ),
    "what a container says itself beside its ConfigMap": (
        f"{CONTAINER}    - {{name: HCCL_BUFFSIZE, value: '1'}}\n{MAP}",
        {"env.HCCL_BUFFSIZE": '<containers differ: main says "1", the ConfigMap m says "200">', "env.HCCL_ALGO": "ring"},
    ),
    "a ConfigMap that one container takes as it is, and another not": (
        "containers:\n- {name: a, envFrom: [{configMapRef: {name: m}}]}\n"
        f"- {{name: b, envFrom: [{{configMapRef: {{name: m}}}}], env: [{{name: HCCL_ALGO, value: x}}]}}\n{MAP}",
        {"env.HCCL_BUFFSIZE": "200", "env.HCCL_ALGO": '<containers differ: b says "x", the ConfigMap m says "ring">'},
    ),
    "a container that ends before the others": (
        "initContainers:\n- {name: i, env: [{name: HCCL_ALGO, value: x}, {name: HCCL_RDMA_TC, value: '1'}]}\n"
        "- {name: s, restartPolicy: Always, env: [{name: HCCL_BUFFSIZE, value: '2'}]}\n"
        "containers:\n- {name: a, env: [{name: HCCL_RDMA_TC, value: '3'}]}\n",
        {
            "env.HCCL_ALGO": "<holds for the init container i only>",
            "env.HCCL_RDMA_TC": "3",
            "env.HCCL_BUFFSIZE": "2",
        },
    ),
    "a ConfigMap that no container takes": (
        f"{CONTAINER}    - {{name: HCCL_RDMA_TC, value: '1'}}\n{MAP}".replace("configMapRef: {name: m}", "configMapRef: {name: n}"),
        {
            "env.HCCL_RDMA_TC": "1",
            "env.HCCL_BUFFSIZE": "<no container of this file takes the ConfigMap m>",
            "env.HCCL_ALGO": "<no container of this file takes the ConfigMap m>",
        },
    ),
    "a reference to one key of a ConfigMap": (
        "containers:\n- env:\n  - name: HCCL_ALGO\n    valueFrom: {configMapKeyRef: {name: m, key: HCCL_BUFFSIZE}}\n"
        "  - name: POD_NAME\n    valueFrom: {fieldRef: {fieldPath: metadata.name}}\n"
        '---\nkind: ConfigMap\nmetadata: {name: m}\ndata: {HCCL_BUFFSIZE: "200"}\n',
        {
            "env.HCCL_ALGO": "<is filled in when the container starts>",
            "env.POD_NAME": "<is filled in when the container starts>",
            "env.HCCL_BUFFSIZE": "<no container of this file takes the ConfigMap m>",
        },
    ),
    "names in values are filled in when the container starts": (
        "env:\n- {name: A, value: x}\n- {name: HCCL_ALGO, value: '$$(A)-$A'}\n- {name: HCCL_IF_IP, value: '$(B)'}\n",
        {"env.HCCL_ALGO": "$(A)-$A", "env.HCCL_IF_IP": "<depends on $(B)>"},
    ),
    "the tasks of a job of Volcano": (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec:\n  tasks:\n  - template:\n      spec:\n        containers:\n"
        "        - name: t\n          env:\n          - {name: HCCL_ALGO, value: ring}\n",
        {"env.HCCL_ALGO": "ring"},
    ),
    "containers that differ": (
        "containers:\n- {name: a, env: [{name: HCCL_ALGO, value: x}, {name: HCCL_IF_IP, value: y}]}\n"
        "- {name: b, env: [{name: HCCL_ALGO, value: z}, {name: HCCL_IF_IP, value: y}]}\n",
        {"env.HCCL_ALGO": '<containers differ: a says "x", b says "z">', "env.HCCL_IF_IP": "y"},
    ),
    "a list of Compose": (
        "services:\n  a:\n    environment:\n    - HCCL_ALGO=$$a\n    - HCCL_BUFFSIZE\n    - HCCL_IF_IP=${IP:-1}\n    - PATH=/x\n    - {}\n",
        {"env.HCCL_ALGO": "$a", "env.HCCL_BUFFSIZE": "<depends on HCCL_BUFFSIZE>", "env.HCCL_IF_IP": "<depends on ${IP:-1}>"},
    ),
    "a table of Compose": (
        "services:\n  a: &a\n    environment:\n      HCCL_BUFFSIZE: 200\n      HCCL_ALGO: ring\n      HCCL_IF_IP:\n"
        "  b:\n    environment: {HCCL_ALGO: tree}\n  c: {image: x}\n  d: *a\n",
        {
            "env.HCCL_BUFFSIZE": "200",
            "env.HCCL_ALGO": '<containers differ: the service a says "ring", the service b says "tree">',
            "env.HCCL_IF_IP": "<depends on HCCL_IF_IP>",
        },
    ),
    "services that are none": ("services: [a]\n---\nservices:\n  a: x\n  b: {environment: x}\n--- 1\n", {}),
    "a list that containers share": (
        "a: &e [{name: HCCL_ALGO, value: x}]\ncontainers:\n- {name: a, env: *e}\n- {name: b, env: *e}\n",
        {"env.HCCL_ALGO": "x"},
    ),
}

#: A config, and whether its settings are told of: only where it is certain that options of Ascend are meant.
CONFIGS: dict[str, tuple[str, str, list[str]]] = {
    "an option with one of its values": (
        "a.yaml",
        "npu:\n  precision_mode: allow_mix_precision\n  job: x\n  loss: 1\n",
        ["precision_mode", "job"],
    ),
    "two options with names of their own": ("a.yml", "iterations_per_loop: 10\nenable_dump: on\n", ["iterations_per_loop", "enable_dump"]),
    "variables": ("a.json", '{"env": {"HCCL_ALGO": "x", "PATH": "y"}}', ["env.HCCL_ALGO"]),
    "a value of another tool": ("a.json", '{"precision_mode": "FP16", "batch": 3}', []),
    "names that others have too": (
        "a.yaml",
        "job: worker\ntask_index: 0\ninput_shape: [1, 2]\ndeterministic: true\njit_compile: true\n",
        [],
    ),
    "names in different tables": ("a.yaml", "a:\n  hccl_timeout: 3\nb:\n  enable_dump: true\n", []),
    "a schema that describes options": ("a.json", '{"properties": {"precision_mode": {"type": "x"}, "enable_dump": {"type": "y"}}}', []),
    "a preset as JSON": ("a.json", '{"schema": "npuprof.config/1", "options": {"precision_mode": "allow_mix_precision"}}', []),
}


@pytest.mark.parametrize("case", READ)
def test_every_kind_of_file_says_what_it_sets(case: str) -> None:
    name, text, wanted = READ[case]
    assert settings(text, name) == wanted
    assert may_hold_settings(name, text.encode())


@pytest.mark.parametrize("case", KUBERNETES)
def test_containers_and_config_maps_say_what_they_set(case: str) -> None:
    text, wanted = KUBERNETES[case]
    assert settings(text, "a.yaml") == wanted


#: Files with values out of range that no preset has, and the lines that scan names.
APART: dict[str, tuple[str, str, list[int]]] = {
    "containers that differ": (
        "job.yaml",
        "containers:\n- {name: a, env: [{name: HCCL_CONNECT_TIMEOUT, value: '9000'}]}\n"
        "- {name: b, env: [{name: HCCL_CONNECT_TIMEOUT, value: '600'}]}\n",
        [2],
    ),
    "an init container": ("job.yaml", "initContainers:\n- {env: [{name: HCCL_CONNECT_TIMEOUT, value: '9000'}]}\n", [2]),
    "a stage before the last one": ("Dockerfile", "FROM u AS a\nENV HCCL_CONNECT_TIMEOUT=9000\nFROM u\n", [2]),
    "what ends with its line": ("Dockerfile", "FROM u\nENV HCCL_CONNECT_TIMEOUT=600\nRUN export HCCL_CONNECT_TIMEOUT=9000\n", [3]),
    "the order of calls": ("x.sh", "f() {\n  export HCCL_CONNECT_TIMEOUT=9000\n}\nexport HCCL_CONNECT_TIMEOUT=600\nf\n", [2]),
    "a default": ("x.sh", "export HCCL_CONNECT_TIMEOUT=${T:-9000}\nexport HCCL_EXEC_TIMEOUT=${HCCL_EXEC_TIMEOUT--5}\n", [1, 2]),
    "what is no default": ("x.sh", "export HCCL_CONNECT_TIMEOUT=${T:+9000}\nexport HCCL_EXEC_TIMEOUT=${T:-$U}\n", []),
    "the default of a service": ("compose.yaml", "services:\n  a:\n    environment: ['HCCL_CONNECT_TIMEOUT=${T:-9000}']\n", [3]),
    "services that differ": (
        "compose.yaml",
        "services:\n  a:\n    environment:\n      HCCL_CONNECT_TIMEOUT: 9000\n  b:\n    environment:\n    - HCCL_CONNECT_TIMEOUT=600\n",
        [4],
    ),
    "the default of an image": ("Dockerfile", "FROM u\nARG T\nENV HCCL_CONNECT_TIMEOUT=${T:-9000}\n", [3]),
}


@pytest.mark.parametrize("case", APART)
def test_a_value_that_no_preset_has_is_judged_all_the_same(case: str) -> None:
    name, text, lines = APART[case]
    assert [(one.code, one.line, one.severity) for one in findings(text, name)] == [("NP203", line, "error") for line in lines]
    carried = {key: value for draft in build_drafts(imported(text, name)) for key, value in draft.settings.items()}
    assert carried == ({"env.HCCL_CONNECT_TIMEOUT": "600"} if "RUN" in text else {})


@pytest.mark.parametrize("case", CONFIGS)
def test_settings_in_a_config_are_told_of_where_that_is_certain_and_never_carried(
    case: str, run: Callable[..., Result], tmp_path: Path
) -> None:
    name, text, keys = CONFIGS[case]
    found = imported(text, name).found
    assert [one.key for one in found] == keys
    assert all(one.surface == "config" and one.reason.endswith("the script that reads it decides") for one in found)
    assert [one.severity for one in findings(text, name)] == ["info"] * bool(keys)
    write(tmp_path, {name: text})
    assert run("scan", str(tmp_path / name)).code == 0
    made = run("import", str(tmp_path / name))
    assert made.code == 2
    assert "nothing to make a preset of" in made.err


def test_settings_in_a_config_beside_a_script_are_in_the_report(run: Callable[..., Result], tmp_path: Path) -> None:
    write(tmp_path, {"a.sh": "export HCCL_ALGO=x\n", "a.yaml": "npu:\n  precision_mode: allow_mix_precision\n"})
    made = run("import", str(tmp_path), "--name", "mine", "--format", "text")
    assert "a.sh: mine\n" in made.out  # a config makes no preset, so there is one to be named
    assert 'a.yaml:2: precision_mode: the file says "allow_mix_precision"; the script that reads it decides\n' in made.out


#: Kinds that npuprof does not read: a file, its text, and the flags of ``env`` that write such a file.
UNREAD = {
    "a.fish": ("set -gx HCCL_ALGO ring\n", "--shell fish"),
    "fish-script": ("#!/usr/bin/env fish\nset -gx HCCL_ALGO ring\n", "--shell fish"),
    "a.csh": ("setenv HCCL_ALGO ring\n", "--shell tcsh"),
    "a.tcsh": ("setenv HCCL_ALGO ring\n", "--shell tcsh"),
    "a.ps1": ("$env:HCCL_ALGO = 'ring'\n", "--shell pwsh"),
    "npu.service": ("[Service]\nEnvironment=HCCL_ALGO=ring\n", "--format systemd"),
}


@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.parametrize("verb", ["scan", "import"])
def test_a_file_of_a_kind_that_is_not_read_is_reported_if_named_and_skipped_below_a_folder(
    verb: str, name: str, run: Callable[..., Result], tmp_path: Path
) -> None:
    text, flags = UNREAD[name]
    write(tmp_path, {f"d/{name}": text, "d/x.sh": "export HCCL_BUFFSIZE=200\n"})
    done = run(verb, tmp_path / "d" / name)
    said = done.out + done.err
    assert done.code == 2
    assert "NP801" in said
    assert " are not read" in said
    assert f"npuprof env NAME {flags}" in said
    done = run(verb, tmp_path / "d")
    assert (done.code, name in done.out + done.err) == (0, False)


def test_places_are_those_of_the_names() -> None:
    text = 'ENV A=1 \\\n  HCCL_ALGO="x"\n'
    assert [(one.line, one.column) for one in imported(text, "Dockerfile").found] == [(2, 3)]
    text = '{"env":\n  {"HCCL_ALGO": "x", "HCCL_IF_IP": "y"}}'
    assert [(one.line, one.column) for one in imported(text, "x.json").found] == [(2, 4), (2, 22)]
    text = "#SBATCH --export=ALL,HCCL_ALGO=1\n"
    assert [(one.line, one.column) for one in imported(text, "x.slurm").found] == [(1, 22)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a/Dockerfile", "docker"), ("Dockerfile.gpu", "docker"), ("x.dockerfile", "docker"), ("Containerfile", "docker"),
        # as vllm-ascend and others name theirs
        ("Dockerfile.a3.openEuler", "docker"), ("Dockerfile_dev", "docker"), ("Containerfile-npu", "docker"), ("a3.Dockerfile", "docker"),
        ("Dockerfile.sh", "shell"), ("my.Dockerfile.txt", ""),
        (".env", "env"), ("x.env", "env"), (".env.local", "env"), ("x.dotenv", "env"), ("env.py", "python"), ("x.env.py", "python"),
        ("X.IPYNB", "notebook"), ("x.yml", "yaml"), ("x.slurm", "shell"), ("x.service", "unit"), ("environment", ""), ("x.txt", ""),
    ],
)  # fmt: skip
def test_a_name_tells_the_kind(name: str, kind: str) -> None:
    assert detect_script_kind(name, b"") == kind
    assert is_script_candidate(name) == (kind not in ("", "unit") or name == "environment")


#: Files whose name tells no kind, and what is said of them.
NAMELESS = {
    "an env file": ("npu.list", "HCCL_CONNECT_TIMEOUT=9000\nHCCL_IF_IP=1\n", "NP203"),
    "an export as JSON": ("npu.list", '{"schema": "npuprof.env/1", "env": {"HCCL_CONNECT_TIMEOUT": "9000"}}', "NP203"),
    "an image": ("image.in", "# x\nARG B=u\nFROM $B\nRUN \\\n  export A=1\nENV HCCL_CONNECT_TIMEOUT=9000\n", "NP203"),
    "a shebang": ("train.in", "#!/bin/bash\nHCCL_CONNECT_TIMEOUT=9000 python x.py\n", "NP203"),
    "exports": ("train.conf", "set -e\n  export HCCL_CONNECT_TIMEOUT=9000\n", "NP203"),
    "Python": ("train", "# x\nimport os\nos.environ['HCCL_CONNECT_TIMEOUT'] = '9000'\n", "NP203"),
    "prose": ("notes.txt", "HCCL_CONNECT_TIMEOUT is 9000 here\n", "the kind of the file is not known"),
    "nothing": ("notes.txt", "", "the kind of the file is not known"),
}


@pytest.mark.parametrize("case", NAMELESS)
def test_a_file_that_is_named_is_known_by_its_text(case: str, run: Callable[..., Result], tmp_path: Path) -> None:
    name, text, said = NAMELESS[case]
    write(tmp_path, {f"d/{name}": text})
    done = run("scan", tmp_path / "d" / name)
    assert (done.code, said in done.out, "NP801" in done.out) == (1 if said == "NP203" else 2, True, said != "NP203")
    if "." in name:
        assert run("scan", tmp_path / "d").code == 0


def test_blocks_are_looked_for_only_where_one_can_stand() -> None:
    assert {name for name, kind in KINDS.items() if kind.holds_blocks} == {"python", "shell", "env"}


@pytest.mark.parametrize("verb", ["import", "scan"])
def test_help_names_every_kind_of_file(verb: str, run: Callable[..., Result]) -> None:
    said = " ".join(run(verb, "--help").out.split())
    assert [kind.shown for kind in KINDS.values() if (kind.shown in said) != bool(kind.read)] == []


LINES = st.lists(st.sampled_from(["'", '"', "a", " ", "#", "\\", "$", "{", "}", "\n", "é", "export "]), max_size=14).map("".join)


@given(LINES)
def test_what_is_told_of_a_file_of_variables_is_what_python_dotenv_reads(text: str) -> None:
    text = f"export HCCL_ALGO={text}\n"
    with mock.patch.object(env_files, "import_shell_script", wraps=env_files.import_shell_script) as as_script:
        told = settings(text, "x.env").get("env.HCCL_ALGO", "<nothing>")
    if not str(told).startswith("<") and not as_script.called:
        assert dotenv_values(stream=io.StringIO(text)).get("HCCL_ALGO") == told
