"""What functions of TensorFlow, of protobuf and of the adapter do with a configuration that they are given."""

from __future__ import annotations

#: What takes a configuration as it is then: sessions, estimators, copies.
TAKING = frozenset(
    (
        "Supervisor", "Server", "RunConfig", "NPURunConfig", "Estimator", "NPUEstimator", "set_session", "managed_session",
        "prepare_or_wait_for_session", "prepare_session", "wait_for_session", "recover_session", "set_keras_session_npu_config",
        "init_resource", "ChiefSessionCreator", "WorkerSessionCreator", "deepcopy", "copy",
    )
)  # fmt: skip
COPYING = frozenset(("deepcopy", "copy"))
#: What gives back the configuration that it is given, with an entry in it.
PASSING = frozenset(("npu_config_proto", "npu_session_config_init", "npu_run_config_init"))
LOOKING = frozenset(
    (
        "print", "str", "repr", "isinstance", "len", "type", "id", "hasattr", "format", "info", "debug", "warning", "warn", "error",
        "log", "bool", "dir", "pprint", "MessageToJson", "MessageToDict", "MessageToString",
    )
)  # fmt: skip
#: What does not fail on what scripts give it.
QUIET = LOOKING | frozenset(
    (
        "as_bytes", "as_str", "as_text", "set_verbosity", "bytes", "encode", "decode", "RewriterConfig", "GPUOptions", "GraphOptions",
        "OptimizerOptions", "dict", "list", "tuple", "set", "range", "enumerate", "zip", "sorted", "reversed", "append", "items", "keys",
        "values", "join", "strip", "lower", "upper", "startswith", "endswith", "replace", "time", "exists", "isfile", "isdir", "abspath",
        "dirname", "basename", "critical", "getLogger", "setdefault", "setattr", "partial", "super",
    )
)  # fmt: skip
#: What runs a session of its own by then at the latest.
TRAINING = frozenset(("train", "evaluate", "predict", "train_and_evaluate", "fit"))
#: What keeps a function for the end of the program, or for a signal; and what calls one that it is given.
DEFERRING = frozenset(("register", "signal", "finalize", "register_at_fork"))
CALLING = frozenset(
    ("run", "main", "Fire", "Thread", "Process", "Timer", "submit", "map", "apply", "apply_async", "starmap", "spawn", "launch", "start")
)
KEEPING = frozenset(("append", "update", "put", "add", "extend", "insert", "setdefault", "dict", "list", "tuple", "set", "namedtuple"))
WRITTEN = frozenset(("SerializeToString", "SerializePartialToString", "__deepcopy__"))
EMPTYING = frozenset(("Clear", "clear", "ParseFromString", "FromString"))
#: Methods of a configuration through which it gets nowhere.
OF_MESSAGES = frozenset(
    ("HasField", "ClearField", "Clear", "IsInitialized", "ListFields", "ByteSize", "WhichOneof", "MergeFrom", "CopyFrom")
)
REWRITE = ("graph_options", "rewrite_options")
#: Names that lead from a configuration to where the adapter's options are.
INWARD = frozenset(("graph_options", "rewrite_options", "custom_optimizers", "parameter_map"))


def describe_taking(name: str) -> str:
    """Return what a function does that takes a configuration as it is when it is called; empty for others."""
    if name in COPYING:
        return f"{name}() took a copy"
    if "RunConfig" in name or name.endswith("Estimator"):
        return f"{name}() was given the configuration"
    return "the session was made" if name in TAKING or name.endswith(("Session", "SessionCreator")) else ""
