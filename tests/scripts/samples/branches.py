import argparse

import tensorflow as tf
from npu_bridge.npu_init import *

parser = argparse.ArgumentParser()
parser.add_argument("--precision_mode", default="allow_mix_precision")
parser.add_argument("--profiling", action="store_true")
args = parser.parse_args()


def session_config():
    config = tf.ConfigProto()
    custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
    custom_op.name = "NpuOptimizer"
    custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(args.precision_mode)
    if args.profiling:
        custom_op.parameter_map["profiling_mode"].b = True
    elif args.chip == "Ascend910B2":
        custom_op.parameter_map["jit_compile"].s = tf.compat.as_bytes("false")
    custom_op.parameter_map["use_off_line"].b = True
    if False:
        custom_op.parameter_map["enable_dump"].b = True
    # custom_op.parameter_map["dump_path"].s = tf.compat.as_bytes("/tmp")
    return config
