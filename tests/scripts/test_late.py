"""Settings that come after the last use of their object: scan says so where that is certain, and nowhere else."""

from __future__ import annotations

import pytest

from support.importing import HEAD, TAIL, findings

SET = 'custom_op.parameter_map["hccl_timeout"].i = 1800\n'
LATE = f"{HEAD}{TAIL}{SET}"
NPU = "import npu_device as npu\n"
MODE = 'npu.global_options().precision_mode = "allow_mix_precision"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (LATE, ["hccl_timeout stands after the session was made (line 8)"]),
        (f"{NPU}npu.open().as_default()\n{MODE}", ["precision_mode stands after npu.open() (line 2)"]),
        (f"{HEAD}{SET}{TAIL}", []),
        (f"{NPU}{MODE}npu.open().as_default()\n", []),
        (f"{LATE}again = tf.Session(config=config)\n", []),  # one of them has it
        (f"{HEAD}{TAIL.replace('sess =', 'if FLAGS.first: sess =')}{SET}", []),
        (f"{HEAD}{TAIL}if FLAGS.other:\n    config = make()\n    {SET}", []),
        (f"{HEAD}build(config)\n{SET}", []),  # who knows when it is looked at
        (f"{LATE}train(config)\n", []),
        (f"{HEAD}def main():\n    {TAIL.strip().splitlines()[-1]}\n{SET}main()\n", []),
        (f"{HEAD}for step in range(3):\n    sess = tf.Session(config=config)\n    {SET}", []),
    ],
)  # fmt: skip
def test_a_setting_after_the_last_use_of_its_object_is_told(text: str, told: list[str]) -> None:
    assert [one.message for one in findings(text) if one.code == "NP822"] == told
