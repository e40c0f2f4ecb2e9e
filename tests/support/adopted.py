"""Trees of scripts to adopt."""

from __future__ import annotations

from support.replaced import ENTRY, HEAD, MIXED, OFF, RUN

PLAIN = f"{HEAD}{ENTRY}{MIXED}custom_op.parameter_map['use_off_line'].b = True\n{OFF}{RUN}"
OTHER = PLAIN.replace("allow_mix_precision", "force_fp16")
HELPER = f"""{HEAD}def get_config(precision='allow_fp32_to_fp16'):
    config = tf.ConfigProto()
    custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
    custom_op.name = 'NpuOptimizer'
    custom_op.parameter_map['precision_mode'].s = tf.compat.as_bytes(precision)
    return config
"""
CALLS = "from npu_utils import get_config\nsess = tf.Session(config=get_config('force_fp32'))\n"
