import tensorflow as tf

SIZE = 15 * 1024 * 1024 * 1024
FOLDER = "/var/" + "dump"

opt = tf.compat.v1.ConfigProto().graph_options.rewrite_options.custom_optimizers.add()
opt.name = b"NpuOptimizer"
pm = opt.parameter_map
pm["precision_mode_v2"].s = b"mixed_float16"
pm["dump_path"].s = bytes(FOLDER, "utf-8")
pm["dump_step"].s = "0|5".encode()
pm["dump_mode"].s = tf.compat.as_bytes("al" "l")
pm["graph_memory_max_size"].s = tf.compat.as_bytes(str(SIZE))
pm["op_compiler_cache_dir"].s = tf.compat.as_bytes("%s/%d" % (FOLDER, 2 ** 3))
pm["debug_dir"].s = tf.compat.as_bytes("{}/{name}".format(FOLDER, name="kernels"))
pm["work_path"].s = tf.compat.as_bytes(f"{FOLDER}/aoe")
pm["enable_dump"].b, pm["hccl_timeout"].i = True, 60 * 10
