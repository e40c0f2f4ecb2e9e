import tensorflow as tf
from npu_bridge.npu_init import *

OPTIONS = {
    "precision_mode_v2": "mixed_bfloat16",
    "deterministic": 1,
    "use_off_line": True,
}


def put(custom_op, key, value):
    if isinstance(value, bool):
        custom_op.parameter_map[key].b = value
    elif isinstance(value, int):
        custom_op.parameter_map[key].i = value
    else:
        custom_op.parameter_map[key].s = tf.compat.as_bytes(value)


class Trainer(object):
    TIMEOUT = 1200

    def build(self):
        config = tf.ConfigProto()
        custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
        custom_op.name = "NpuOptimizer"
        for key, value in OPTIONS.items():
            put(custom_op, key, value)
        for key in ("enable_dump", "enable_dump_debug"):
            custom_op.parameter_map[key].b = False
        put(custom_op, "hccl_timeout", Trainer.TIMEOUT)
        setattr(custom_op.parameter_map["graph_run_mode"], "i", 1)
        custom_op.parameter_map["jit_compile"].CopyFrom(tf.AttrValue(s=b"auto"))
        custom_op.parameter_map[self.key].s = b"?"
        return config
