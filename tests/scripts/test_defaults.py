"""What the command line gives if nobody says otherwise is judged where nothing around it can keep it out."""

from __future__ import annotations

import pytest

from support.importing import HEAD, TAIL, findings

FLAGS = """\
from absl import flags
flags.DEFINE_string("mode", "allow_mixed_precision", "")
flags.DEFINE_string("right", "allow_mix_precision", "")
flags.DEFINE_string("none", None, "")
flags.DEFINE_string("empty", "", "")
flags.DEFINE_integer("loops", 0, "")
flags.DEFINE_string("timeout", "600", "")
FLAGS = flags.FLAGS
"""
MAP = "custom_op.parameter_map"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (f'{MAP}["precision_mode"].s = tf.compat.as_bytes(FLAGS.mode)\n', 'precision_mode = "allow_mixed_precision" is none of'),
        (f'{MAP}["iterations_per_loop"].i = FLAGS.loops\n', "iterations_per_loop = 0 is out of range"),
        ("NPURunConfig(precision_mode=FLAGS.mode)\n", 'precision_mode = "allow_mixed_precision" is none of'),
        (f'{MAP}["precision_mode"].s = tf.compat.as_bytes(FLAGS.right)\n', ""),
        (f'{MAP}["precision_mode"].s = tf.compat.as_bytes(FLAGS.none)\n', ""),
        (f'{MAP}["dump_mode"].s = tf.compat.as_bytes(FLAGS.empty)\n', ""),
        (f'if FLAGS.mode != "allow_mixed_precision":\n    {MAP}["precision_mode"].s = tf.compat.as_bytes(FLAGS.mode)\n', ""),
        (f'{MAP}["hccl_timeout"].i = int(FLAGS.timeout)\n', ""),
        (f'def f(mode="mixed"):\n    {MAP}["precision_mode"].s = tf.compat.as_bytes(mode)\n', ""),  # every caller may give another
    ],
)
def test_a_default_of_the_command_line_is_judged(lines: str, told: str) -> None:
    found = [one for one in findings(f"{FLAGS}{HEAD}{lines}{TAIL}") if one.code == "NP203"]
    assert [one.severity for one in found] == ["warning"] * bool(told)
    for one in found:
        assert one.message.startswith(told)
        assert one.message.endswith("; it is the default, which the script takes if nobody says otherwise")
