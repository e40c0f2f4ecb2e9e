"""Logs of runs, made line by line in the formats of adapters and of the engine."""

from __future__ import annotations

from collections.abc import Mapping

#: What a block of init options and one of sessions has where nobody set anything, as far as tests
#: look at it; nothing of it was captured.
INIT = {
    "ge.deterministic": "0",
    "ge.exec.profilingMode": "0",
    "ge.graphRunMode": "1",
    "graph_run_mode": "1",
    "op_debug_config": "",
    "ge.exec.opDebugConfig": "",
    "ge.exec.hcclExecuteTimeOut": "",
    "ge.exec.op_precision_mode": "",
    "profiling_mode": "0",
}
SESSION = {
    "ge.hcomParallel": "1",
    "ge.jit_compile": "2",
    "jit_compile": "2",
    "ge.enableSmallChannel": "0",
    "ge.graphRunMode": "1",
    "ge.exec.enableDump": "0",
    "ge.exec.dumpPath": "",
    "ge.exec.dumpMode": "output",
    "ge.exec.hcclExecuteTimeOut": "",
    "dump_layer": "",
    "ge.exec.dumpLayer": "",
    "ge.exec.op_precision_mode": "",
}


def write_line(
    text: str,
    file: str = "npu_attrs.cc",
    pid: int = 100,
    thread: str | None = None,
    level: str = "INFO",
    old: bool = False,
) -> str:
    """Return a line of the adapter as plog has it: cut if too long, without thread if ``old``."""
    logger, tid = (
        ("adp_logger.cc", " ")
        if old
        else ("adapter_logger.cc", f"{pid if thread is None else thread} ")
    )
    head = (
        f"[{level}] FMK({pid},python3.7):2026-03-04-05:06:07.008.009 "
        f"[{logger}:28][TF_ADAPTER] [{file}:77]{tid}"
    )
    return (head + text).encode()[:1022].decode(errors="surrogateescape") + "\n"


def write_engine_line(text: str, function: str, pid: int = 100, level: str = "INFO") -> str:
    """Return a line of the engine."""
    return (
        f"[{level}] GE({pid},python3.7):2026-03-04-05:06:07.008.009 "
        f"[ge_api.cc:250]{pid} {function}:{text}\n"
    )


def write_block(
    title: str,
    texts: Mapping[str, str],
    pid: int = 100,
    old: bool = False,
    file: str = "ge_plugin.cc",
    thread: str | None = None,
) -> str:
    """Return a block: its title, its keys in the order of their bytes, and a line that ends it."""
    lines = [write_line(title, file, pid, thread, old=old)]
    lines += [
        write_line(f"{key}: {texts[key]}", "npu_attrs.cc", pid, thread, old=old)
        for key in sorted(texts)
    ]
    return "".join(
        [*lines, write_line("[GEOP] something else goes on.", "geop_npu.cc", pid, thread, old=old)]
    )


def write_run(init: Mapping[str, str] = {}, *sessions: Mapping[str, str], pid: int = 100) -> str:
    """Return the log of the adapter of 2026 for a process that starts the engine once.

    Options of sessions after the first come too late.
    """
    text = write_block("Init options: ", {**INIT, **init}, pid)
    for number, session in enumerate(sessions or ({},)):
        if number:
            text += write_line("[GePlugin] Ge has already initialized", "ge_plugin.cc", pid)
        text += write_line("init options: ", "geop_npu.cc", pid)
        text += write_block(
            "Session options: ", {**SESSION, **session}, pid, file="session_manager.cc"
        )
    return text


def write_tf2_line(text: str, level: str = "I") -> str:
    """Return a line of the adapter for TensorFlow 2."""
    return f"2026-03-04 05:06:07.000008: {level} core/npu_wrapper.cpp:195] {text}\n"


def write_tf2_block(
    texts: Mapping[str, str], title: str = "Start graph engine with options:"
) -> str:
    """Return the block of a process that opens its device."""
    lines = [
        title,
        *(f"  {key}:{texts[key]}" for key in sorted(texts)),
        "Start graph engine succeed",
    ]
    return "".join(map(write_tf2_line, lines))


def write_dump(
    texts: Mapping[str, str], operation: str = "Add", end: str = "versions {\n  producer: 134\n}\n"
) -> str:
    """Return a graph dump in which one node carries the attributes, between two that carry none."""

    def write_node(name: str, op: str, attributes: Mapping[str, str]) -> str:
        nodes = "".join(
            f'  attr {{\n    key: "{key}"\n    value {{\n      s: "{text}"\n    }}\n  }}\n'
            for key, text in attributes.items()
        )
        return f'node {{\n  name: "{name}"\n  op: "{op}"\n{nodes}}}\n'

    return (
        write_node("a", "Const", {"_class": "x"})
        + write_node("b", operation, texts)
        + write_node("c", "Const", {})
        + end
    )
