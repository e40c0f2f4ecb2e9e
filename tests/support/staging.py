"""Run users' scripts with the adapter's stand-ins, and record the received options."""

from __future__ import annotations

import itertools
import sys
import types
from typing import Any

from support.recorders import ARGUMENTS, adapter, execute


def record(source: str, tf: Any, **flags: Any) -> list[Any]:
    """Return the options that sessions, NPURunConfig and TF 2 receive from a script, in order.

    ``FLAGS`` has these attributes.
    """
    records: list[Any] = []
    with adapter(tf) as journal:
        fake: Any = sys.modules["tensorflow"]
        npu: Any = sys.modules["npu_device"]
        init: Any = sys.modules["npu_bridge.npu_init"]
        made: Any = sys.modules["npu_bridge.estimator.npu.npu_config"]
        from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

        class Session:
            def __init__(self, config: Any = None, **more: Any) -> None:
                records.append(("session", describe(config)))

            def __enter__(self) -> Session:
                return self

            def __exit__(self, *error: object) -> None:
                pass

            def run(self, *arguments: Any) -> None:
                pass

        fake.Session, fake.ConfigProto, fake.compat.v1.Session = (
            Session,
            tf.compat.v1.ConfigProto,
            Session,
        )
        fake.logging = types.SimpleNamespace(info=lambda *given: None)
        fake.estimator.Estimator = lambda **given: None
        init.RewriterConfig, init.tf = RewriterConfig, fake
        for name in ARGUMENTS:
            kind = (
                _record_creation(getattr(made, name), records)
                if name == "NPURunConfig"
                else getattr(made, name)
            )
            setattr(init, name, kind)
            setattr(made, name, kind)
        execute(
            source,
            "train.py",
            {
                "__name__": "__main__",
                "FLAGS": types.SimpleNamespace(**flags),
                "RewriterConfig": RewriterConfig,
            },
        )
        records += [("open", arguments) for name, arguments in journal.calls if name == "open"]
        records.append(("options", dict(npu.global_options().assigned)))
    return records


def record_all(source: str, tf: Any, *names: str) -> list[Any]:
    """Return what a script does for each way its switches can stand."""
    return [
        record(source, tf, **dict(zip(names, states, strict=True)))
        for states in itertools.product((False, True), repeat=len(names))
    ]


def describe(config: Any) -> Any:
    if config is None:
        return None
    rewrite = config.graph_options.rewrite_options
    entries = [(entry.name, _describe_parameters(entry)) for entry in rewrite.custom_optimizers]
    rest = type(config)()
    rest.CopyFrom(config)
    del rest.graph_options.rewrite_options.custom_optimizers[:]
    return entries, rest.SerializeToString(deterministic=True)


def _describe_parameters(entry: Any) -> list[tuple[str, str, Any]]:
    """Return the key, field and value of each parameter of an optimizer entry."""
    parameters = []
    for key, value in entry.parameter_map.items():
        field = value.WhichOneof("value")
        parameters.append((key, field, getattr(value, field)))
    return sorted(parameters)


def _record_creation(kind: type, records: list[Any]) -> type:
    def init(self: Any, **arguments: Any) -> None:
        kind.__init__(self, **arguments)  # type: ignore[misc]
        records.append(("run config", _describe_given(arguments)))

    return type(kind.__name__, (kind,), {"__init__": init})


def _describe_given(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _describe_given(value.given)
        if hasattr(value, "given")
        else describe(value)
        if hasattr(value, "graph_options")
        else value
        for name, value in sorted(arguments.items())
        if value is not None  # the class has that anyway
    }
