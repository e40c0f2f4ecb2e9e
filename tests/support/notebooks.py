"""Notebooks with settings."""

from __future__ import annotations

import json
from typing import Any

from support.importing import HEAD, TAIL

GONE = "<applies to this cell's shell only: the notebook's Python does not see it>"


def notebook(
    *cells: str | tuple[str, str], indent: int | None = 1, joined: bool = False, **metadata: Any
) -> str:
    """Return a notebook of code cells, or of cells of a kind.

    ``joined`` writes a cell as one text.
    """
    made = []
    for cell in cells:
        kind, source = cell if isinstance(cell, tuple) else ("code", cell)
        made.append(
            {
                "cell_type": kind,
                "metadata": {},
                "source": source if joined else source.splitlines(keepends=True),
            }
        )
    return json.dumps(
        {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5},
        indent=indent,
        ensure_ascii=False,
    )


SET = 'custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes("force_fp16")\n'
#: Cells, and what is found in them.
CELLS: dict[str, tuple[tuple[str | tuple[str, str], ...], dict[str, object]]] = {
    "a configuration over several cells": (
        (HEAD, ("markdown", SET), SET, TAIL),
        {"precision_mode": "force_fp16"},
    ),
    "lines for IPython between them": (
        (
            HEAD,
            f"%matplotlib inline\n!pip install x\nfiles = !ls\ncustom_op?\n?tf\n%cd /x\n{SET}",
            TAIL,
        ),
        {"precision_mode": "force_fp16"},
    ),
    "a line for IPython in a branch": (
        (HEAD, f"if True:\n    !ls\n    %cd /x\nelse:\n    pass\n{SET}"),
        {"precision_mode": "force_fp16"},
    ),
    "%env and %set_env": (
        (
            (
                "%env HCCL_BUFFSIZE=200\n%set_env ASCEND_WORK_PATH /a b\nn = 3\n"
                "%env HCCL_ALGO=x$n\n%env HCCL_IF_IP={f()}\n%env HOME\n%env\n"
            ),
        ),
        {
            "env.HCCL_BUFFSIZE": "200",
            "env.ASCEND_WORK_PATH": "/a b",
            "env.HCCL_ALGO": "<depends on the result of get_ipython().var_expand('x$n')>",
            "env.HCCL_IF_IP": "<depends on the result of get_ipython().var_expand('{f()}')>",
        },
    ),
    "%env under a condition": (
        ("if x:\n    %env HCCL_BUFFSIZE=200\n",),
        {"env.HCCL_BUFFSIZE": "200"},
    ),
    "cells of a shell": (
        (
            "%%bash\nexport HCCL_ALGO=1\natc --framework=3 \\\n  --soc_version=Ascend910\n",
            "!export HCCL_IF_IP=3\n",
        ),
        {
            "env.HCCL_ALGO": GONE,
            "atc.framework": 3,
            "atc.soc_version": "Ascend910",
            "env.HCCL_IF_IP": GONE,
        },
    ),
    "a command over several lines": (
        ("!atc --framework=3 \\\n  --soc_version=Ascend910\nx = 1\n",),
        {"atc.framework": 3, "atc.soc_version": "Ascend910"},
    ),
    "cells of other languages": (
        (
            "%%html\nos.environ['HCCL_ALGO'] = 1 <b>\n",
            "%%writefile x.py\nimport os\nos.environ['HCCL_ALGO'] = '1'\n",
            "%%R\nx <- 1\n",
        ),
        {},
    ),
    "a cell that is timed": (
        (HEAD, f"\n%%time\n{SET}", f"%time {SET}"),
        {"precision_mode": "force_fp16"},
    ),
    "a cell that is broken beside one that is not": (
        (HEAD, "def broken(:\n", SET),
        {"precision_mode": "force_fp16"},
    ),
    "Python 2": ((HEAD, f"print 'x'\n{SET}"), {"precision_mode": "force_fp16"}),
    "a declaration of an encoding": (
        ("# -*- coding: latin-1 -*-\nimport os\nos.environ['ASCEND_WORK_PATH'] = '/é'\n",),
        {"env.ASCEND_WORK_PATH": "/é"},
    ),
}
