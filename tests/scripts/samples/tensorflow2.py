import os

import npu_device as npu

os.environ["ASCEND_GLOBAL_LOG_LEVEL"] = "3"
os.environ.setdefault("HCCL_CONNECT_TIMEOUT", str(60 * 10))
os.environ["ASCEND_DEVICE_ID"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
options = npu.global_options()
options.precision_mode_v2 = "mixed_float16"
dump = options.dump_config
dump.enable_dump = True
options.dump_config.dump_path = "/tmp/dump"
npu.global_options().deterministic = 1
options.enable_small_channel = True
npu.open().as_default()
