import tensorflow as tf
from npu_bridge.npu_init import *


def train():
    config = tf.ConfigProto(allow_soft_placement=True)
    custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
    custom_op.name = "NpuOptimizer"
    custom_op.parameter_map["use_off_line"].b = True
    custom_op.parameter_map['precision_mode'].s = tf.compat.as_bytes('allow_mix_precision')
    custom_op.parameter_map["graph_run_mode"].i = 1
    config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
    config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
