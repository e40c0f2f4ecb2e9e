import tensorflow as tf
from npu_bridge.npu_init import *


def train():
    config = tf.ConfigProto()
    custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
    custom_op.name = "NpuOptimizer"
    custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes("allow_mix_precision")
    custom_op.parameter_map["graph_run_mode"].i = 1
    return tf.Session(config=config)


def predict():
    config = tf.ConfigProto()
    custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
    custom_op.name = "NpuOptimizer"
    custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes("force_fp16")
    custom_op.parameter_map["graph_run_mode"].i = 0
    return tf.Session(config=config)
