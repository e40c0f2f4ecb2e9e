"""What a named tuple, a data class or a namespace of a script holds counts where one call says it and nothing can change it."""

from __future__ import annotations

from typing import Any

import pytest
from importing import HEAD, TAIL, settings

SET = f"{HEAD}custom_op.parameter_map['precision_mode'].s = tf.compat.as_bytes(cfg.mode)\n{TAIL}"
FP16 = {"precision_mode": "force_fp16"}
UNKNOWN = {"precision_mode": "<depends on the command line or its parameters (cfg.mode)>"}
DATA = "@dataclass\nclass Cfg:\n    size: int = 1\n    mode: str = 'force_fp16'\n"
TUPLE = "Cfg = namedtuple('Cfg', ['size', 'mode'])\n"


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("cfg = SimpleNamespace(mode='force_fp16')\n", FP16),
        ("cfg = argparse.Namespace(mode='force_' + 'fp16')\n", FP16),
        (f"{TUPLE}cfg = Cfg(1, 'force_fp16')\n", FP16),
        (f"{TUPLE}cfg = Cfg(size=1, mode='force_fp16')\n", FP16),
        ("Cfg = collections.namedtuple('Cfg', 'size mode')\ncfg = Cfg(1, 'force_fp16')\n", FP16),
        ("class Cfg(NamedTuple):\n    size: int\n    mode: str = 'force_fp16'\ncfg = Cfg(1)\n", FP16),
        (f"{DATA}cfg = Cfg()\n", FP16),
        (f"{DATA}cfg = Cfg(2, mode='force_fp16')\n", FP16),
        (f"{DATA.replace('@dataclass', '@dataclasses.dataclass(frozen=True)')}cfg = Cfg()\n", FP16),
        # what may have another value
        ("cfg = SimpleNamespace(mode='force_fp16')\ncfg.mode = sys.argv[1]\n", UNKNOWN),
        ("cfg = SimpleNamespace(mode='force_fp16')\nsetattr(cfg, sys.argv[1], 1)\n", UNKNOWN),
        ("cfg = SimpleNamespace(mode='force_fp16')\nchange(cfg)\n", UNKNOWN),
        ("cfg = SimpleNamespace(mode='force_fp16')\nother = cfg\n", UNKNOWN),
        ("cfg = SimpleNamespace(mode='force_fp16')\ncfg = SimpleNamespace(mode='origin')\n", UNKNOWN),
        ("cfg = SimpleNamespace(**{'mode': 'force_fp16'})\n", UNKNOWN),
        ("cfg = SimpleNamespace(mode='force_fp16')\ncfg.__dict__.update(mode='origin')\n", UNKNOWN),
        (f"{DATA}    def __post_init__(self):\n        self.mode = 'origin'\ncfg = Cfg()\n", UNKNOWN),
        (f"{DATA}Cfg.mode = 'origin'\ncfg = Cfg()\n", UNKNOWN),
        (f"{DATA.replace('@dataclass', '@other')}cfg = Cfg()\n", UNKNOWN),
    ],
)  # fmt: skip
def test_what_a_record_holds_is_read(text: str, read_as: dict[str, Any]) -> None:
    assert settings(text + SET) == read_as
