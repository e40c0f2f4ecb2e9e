"""Files of every kind that scripts are read from."""

from __future__ import annotations

#: A file, its name, and what is found in it: values, and reasons in angle brackets.
READ: dict[str, tuple[str, str, dict[str, object]]] = {
    "ENV with several variables, and over several lines": (
        "Dockerfile",
        (
            "ENV HCCL_BUFFSIZE=200 \\\n  # a comment\n\n"
            "  HCCL_ALGO='a b' ASCEND_WORK_PATH=a\\ b\\\n/c\n"
        ),
        {"env.HCCL_BUFFSIZE": "200", "env.HCCL_ALGO": "a b", "env.ASCEND_WORK_PATH": "a b/c"},
    ),
    "the old form of ENV takes the rest of the line": (
        "Dockerfile",
        "env ASCEND_WORK_PATH /a b\n",
        {"env.ASCEND_WORK_PATH": "/a b"},
    ),
    "ENV fills in what the file has set before": (
        "x.Dockerfile",
        (
            'ENV A=/opt\nENV A=/usr ASCEND_WORK_PATH="$A/w" ASCEND_OPP_PATH=${A}/o\n'
            "ENV ASCEND_CACHE_PATH=$A\n"
        ),
        {
            "env.ASCEND_WORK_PATH": "/opt/w",
            "env.ASCEND_OPP_PATH": "/opt/o",
            "env.ASCEND_CACHE_PATH": "/usr",
        },
    ),
    "the default of an ARG is no value": (
        "Containerfile",
        "ARG V=1\nENV HCCL_ALGO=$V HCCL_IF_IP='$V'\n",
        {"env.HCCL_ALGO": "<depends on $V>", "env.HCCL_IF_IP": "$V"},
    ),
    "only the stages that the last one is built on count": (
        "Dockerfile.train",
        (
            "FROM u AS a\nENV HCCL_ALGO=1\nFROM a AS b\nENV HCCL_IF_IP=2\n"
            "FROM --platform=x a\nENV HCCL_BUFFSIZE=3\n"
        ),
        {
            "env.HCCL_ALGO": "1",
            "env.HCCL_IF_IP": "<belongs to an earlier stage that the last one is not based on>",
            "env.HCCL_BUFFSIZE": "3",
        },
    ),
    "what RUN exports is gone when it ends, what it converts is not": (
        "Dockerfile",
        "FROM u\nRUN export HCCL_ALGO=1 && \\\n    atc --framework=3\nENV HCCL_BUFFSIZE=3\n",
        {
            "env.HCCL_ALGO": "<applies to this RUN line only, not to other commands in the image>",
            "atc.framework": 3,
            "env.HCCL_BUFFSIZE": "3",
        },
    ),
    "--export of Slurm": (
        "a.sbatch",
        "#!/bin/bash\n#SBATCH --export=ALL,HCCL_BUFFSIZE=200,HCCL_ALGO=$X,HCCL_IF_IP=1\n\necho\n"
        "#SBATCH --export=HCCL_RDMA_TC=1\n"
        "srun --export ALL,HCCL_RDMA_SL=3 python x.py\n",
        {
            "env.HCCL_BUFFSIZE": "200",
            "env.HCCL_ALGO": "<depends on $X>",
            "env.HCCL_IF_IP": "1",
            "env.HCCL_RDMA_SL": "3",
        },
    ),
    "a file of variables": (
        "prod.env",
        (
            '# x\nHCCL_BUFFSIZE=200 # note\nexport HCCL_ALGO="a b"\nASCEND_WORK_PATH=$HOME/x\n'
            "HCCL_IF_IP='$HOME'\nHCCL_RDMA_TC=\"a\\nb\"\n"
        ),
        {
            "env.HCCL_BUFFSIZE": "200",
            "env.HCCL_ALGO": "a b",
            "env.ASCEND_WORK_PATH": "<depends on $HOME>",
            "env.HCCL_IF_IP": "$HOME",
            "env.HCCL_RDMA_TC": (
                "<programs that read such files take its backslashes, or # behind it, differently>"
            ),
        },
    ),
    "a file of variables that is a script": (
        ".env.local",
        "if [ -d /x ]; then\n  HCCL_BUFFSIZE=200\nfi\nA=1; HCCL_ALGO=$A\n",
        {"env.HCCL_BUFFSIZE": "200", "env.HCCL_ALGO": "1"},
    ),
    "a table of variables": (
        "a.json",
        '{"any": {"HCCL_ALGO": "x", "PATH": "y", "HCCL_BUFFSIZE": true}}',
        {"env.HCCL_ALGO": "x", "env.HCCL_BUFFSIZE": "<is True or true: write it in quotes>"},
    ),
    "options that an export carries": (
        "x.sh",
        (
            "export NPUPROF_ENABLE_DUMP=1 NPUPROF_HCCL_TIMEOUT=1800 NPUPROF_STORE=/x "
            "NPUPROF_NONE=1\nexport NPUPROF_DUMP_PATH=$X\n"
        ),
        {"enable_dump": True, "hccl_timeout": 1800, "dump_path": "<depends on $X>"},
    ),
    "options that a script gives to its children": (
        "x.py",
        (
            "import os\nos.environ['NPUPROF_HCCL_TIMEOUT'] = '1800'\n"
            "os.environ['NPUPROF_ENABLE_DUMP'] = 'x'\n"
        ),
        {"hccl_timeout": 1800, "enable_dump": "<'x' is not a switch: write 1 or 0>"},
    ),
    "the variable that stands for an option beside it": (
        "x.sh",
        (
            "export NPUPROF_HCCL_TIMEOUT=1800 HCCL_EXEC_TIMEOUT=1800\n"
            "export NPUPROF_AOE_MODE=2 AOE_MODE=1\n"
        ),
        {"hccl_timeout": 1800, "aoe_mode": "2", "env.AOE_MODE": "1"},
    ),
}
CONTAINER = (
    "kind: Pod\nspec:\n  containers:\n  - name: main\n"
    "    envFrom: [{configMapRef: {name: m}}]\n    env:\n"
)
MAP = (
    '---\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  HCCL_BUFFSIZE: "200"\n  HCCL_ALGO: ring\n'
)
KUBERNETES: dict[str, tuple[str, dict[str, object]]] = {
    "a ConfigMap alone": (
        MAP + "  HCCL_RDMA_TC: 3\n  other.cfg: x\n",
        {
            "env.HCCL_BUFFSIZE": "200",
            "env.HCCL_ALGO": "ring",
            "env.HCCL_RDMA_TC": "<is not a string: Kubernetes rejects it without quotes>",
        },
    ),
    "what a container says itself beside its ConfigMap": (
        f"{CONTAINER}    - {{name: HCCL_BUFFSIZE, value: '1'}}\n{MAP}",
        {
            "env.HCCL_BUFFSIZE": '<containers differ: main says "1", the ConfigMap m says "200">',
            "env.HCCL_ALGO": "ring",
        },
    ),
    "a container that ends before the others": (
        "initContainers:\n- {name: i, env: [{name: HCCL_ALGO, "
        "value: x}, {name: HCCL_RDMA_TC, value: '1'}]}\n"
        "- {name: s, restartPolicy: Always, env: [{name: HCCL_BUFFSIZE, value: '2'}]}\n"
        "containers:\n- {name: a, env: [{name: HCCL_RDMA_TC, value: '3'}]}\n",
        {
            "env.HCCL_ALGO": "<applies to the init container i only>",
            "env.HCCL_RDMA_TC": "3",
            "env.HCCL_BUFFSIZE": "2",
        },
    ),
    "a ConfigMap that no container takes": (
        f"{CONTAINER}    - {{name: HCCL_RDMA_TC, value: '1'}}\n{MAP}".replace(
            "configMapRef: {name: m}", "configMapRef: {name: n}"
        ),
        {
            "env.HCCL_RDMA_TC": "1",
            "env.HCCL_BUFFSIZE": "<no container of this file takes the ConfigMap m>",
            "env.HCCL_ALGO": "<no container of this file takes the ConfigMap m>",
        },
    ),
    "a reference to one key of a ConfigMap": (
        "containers:\n- env:\n  - name: HCCL_ALGO\n"
        "    valueFrom: {configMapKeyRef: {name: m, key: HCCL_BUFFSIZE}}\n"
        "  - name: POD_NAME\n    valueFrom: {fieldRef: {fieldPath: metadata.name}}\n"
        '---\nkind: ConfigMap\nmetadata: {name: m}\ndata: {HCCL_BUFFSIZE: "200"}\n',
        {
            "env.HCCL_ALGO": "<is filled in when the container starts>",
            "env.POD_NAME": "<is filled in when the container starts>",
            "env.HCCL_BUFFSIZE": "<no container of this file takes the ConfigMap m>",
        },
    ),
    "names in values are filled in when the container starts": (
        (
            "env:\n- {name: A, value: x}\n- {name: HCCL_ALGO, value: '$$(A)-$A'}\n"
            "- {name: HCCL_IF_IP, value: '$(B)'}\n"
        ),
        {"env.HCCL_ALGO": "$(A)-$A", "env.HCCL_IF_IP": "<depends on $(B)>"},
    ),
    "the tasks of a job of Volcano": (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec:\n  tasks:\n  - template:\n"
        "      spec:\n        containers:\n"
        "        - name: t\n          env:\n          - {name: HCCL_ALGO, value: ring}\n",
        {"env.HCCL_ALGO": "ring"},
    ),
    "a list of Compose": (
        (
            "services:\n  a:\n    environment:\n    - HCCL_ALGO=$$a\n    - HCCL_BUFFSIZE\n"
            "    - HCCL_IF_IP=${IP:-1}\n    - PATH=/x\n    - {}\n"
        ),
        {
            "env.HCCL_ALGO": "$a",
            "env.HCCL_BUFFSIZE": "<depends on HCCL_BUFFSIZE>",
            "env.HCCL_IF_IP": "<depends on ${IP:-1}>",
        },
    ),
    "a table of Compose": (
        "services:\n  a: &a\n    environment:\n      HCCL_BUFFSIZE: 200\n"
        "      HCCL_ALGO: ring\n      HCCL_IF_IP:\n"
        "  b:\n    environment: {HCCL_ALGO: tree}\n  c: {image: x}\n  d: *a\n",
        {
            "env.HCCL_BUFFSIZE": "200",
            "env.HCCL_ALGO": (
                '<containers differ: the service a says "ring", the service b says "tree">'
            ),
            "env.HCCL_IF_IP": "<depends on HCCL_IF_IP>",
        },
    ),
    "services that are none": (
        "services: [a]\n---\nservices:\n  a: x\n  b: {environment: x}\n--- 1\n",
        {},
    ),
    "a list that containers share": (
        (
            "a: &e [{name: HCCL_ALGO, value: x}]\ncontainers:\n"
            "- {name: a, env: *e}\n- {name: b, env: *e}\n"
        ),
        {"env.HCCL_ALGO": "x"},
    ),
}
#: A config, and whether its settings are told of: only where it is certain that options of Ascend
#: are meant.
CONFIGS: dict[str, tuple[str, str, list[str]]] = {
    "an option with one of its values": (
        "a.yaml",
        "npu:\n  precision_mode: allow_mix_precision\n  job: x\n  loss: 1\n",
        ["precision_mode", "job"],
    ),
    "two options with names of their own": (
        "a.yml",
        "iterations_per_loop: 10\nenable_dump: on\n",
        ["iterations_per_loop", "enable_dump"],
    ),
    "a value of another tool": ("a.json", '{"precision_mode": "FP16", "batch": 3}', []),
    "names that others have too": (
        "a.yaml",
        "job: worker\ntask_index: 0\ninput_shape: [1, 2]\ndeterministic: true\njit_compile: true\n",
        [],
    ),
    "names in different tables": ("a.yaml", "a:\n  hccl_timeout: 3\nb:\n  enable_dump: true\n", []),
    "a schema that describes options": (
        "a.json",
        '{"properties": {"precision_mode": {"type": "x"}, "enable_dump": {"type": "y"}}}',
        [],
    ),
    "a preset as JSON": (
        "a.json",
        '{"schema": "npuprof.config/1", "options": {"precision_mode": "allow_mix_precision"}}',
        [],
    ),
}
