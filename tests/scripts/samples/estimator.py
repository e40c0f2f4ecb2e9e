from npu_bridge.npu_init import *
from absl import flags

flags.DEFINE_integer("loops", 100, "iterations on the device")
FLAGS = flags.FLAGS

dump = DumpConfig(enable_dump=True, dump_path="/tmp/dump", dump_step="0|5")
more = dict(hcom_parallel=True)
config = NPURunConfig(
    model_dir="./model",
    save_checkpoints_steps=1000,
    session_config=None,
    precision_mode="allow_mix_precision",
    iterations_per_loop=FLAGS.loops,
    dump_config=dump,
    profiling_config=ProfilingConfig(True, '{"output":"/tmp/p","training_trace":"on"}'),
    experimental_config=ExperimentalConfig(
        graph_memory_optimize_config=GraphMemoryOptimizeConfig(graph_slice="auto"),
    ),
    memory_config=MemoryConfig(static_memory_policy=2),
    op_debug_level=None,
    **more
)
