import tensorflow as tf
from npu_bridge.npu_init import *
print "loading"
try:
    config = tf.ConfigProto()
except Exception, e:
    print "no", e
mask = 777
op = config.graph_options.rewrite_options.custom_optimizers.add()
op.name = "NpuOptimizer"
op.parameter_map["precision_mode"].s = "force_fp32"
op.parameter_map["mix_compile_mode"].b = 1
