"""Print what a release of vLLM-Ascend makes of settings, as lines of JSON.

    python .ci/upgrade_judge.py SOURCES [REVISION] [--vllm FOLDER] <SETTINGS

``SOURCES`` is a git directory of vllm-project/vllm-ascend with the ``REVISION``, or the folder of
an unpacked source package. ``FOLDER`` is that of vLLM's source package for the release; with it,
vLLM's parser and its envs.py are run too, which needs what ``vllm_parser.py`` needs. Reads
settings from the standard input, one table a line: ``additional_config``, ``env`` (texts),
``vllm`` (words of the command line) and ``model`` (a name of ``MODELS``). For each prints either
what is in effect, as ``effective`` (flat: ``ascend.``, ``env.`` and ``vllm.`` before each name,
and ``read.`` before keys and variables that only other files of the package name) with ``links``
from variables to the attributes that their values go to, or ``stops`` with the message. A stop is
``unclear`` where only what stands in for the rest of vLLM has caused it.

Upstream's ascend_config.py, envs.py and utils.py run as they are. What they need of others is
replaced: see ``REPLACED``, ``MODELS`` and ``describe_start``.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import json
import os
import re
import sys
import tarfile
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from enum import Enum
from importlib.machinery import ModuleSpec
from io import BytesIO, StringIO
from pathlib import Path
from subprocess import PIPE, run
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

#: Packages that stand-ins replace: they need a device, or days to build, and the readers of the
#: configuration only name them. Every attribute exists, every call gives another stand-in.
#: A package that is not listed is missing, as upstream asks whether some of CANN's are there.
REPLACED = (
    *("torch", "torch_npu", "torchvision", "torchair", "transformers", "safetensors", "triton"),
    "vllm",
)
#: Modules of vLLM that the readers take values from: those of ``--vllm`` run.
REAL = ("vllm.envs", "vllm.utils.math_utils")
#: What stands in for a model, by name: a mixture of experts each, as dense models need no less.
#: ``gqa`` is one with grouped queries, ``mla`` has latent attention, ``sparse`` an indexer too.
_EXPERTS = {
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "hidden_size": 4096,
    "moe_intermediate_size": 1536,
    "num_experts": 128,
    "n_routed_experts": 128,
    "model_type": "made-up",
}
MODELS: dict[str, dict[str, Any]] = {
    "gqa": _EXPERTS,
    "mla": _EXPERTS | {"kv_lora_rank": 512},
    "sparse": _EXPERTS | {"kv_lora_rank": 512, "index_topk": 2048},
}
#: The machine, as the built package names it. Checks for other devices are not judged.
DEVICE = "A2"
#: Values that differ from start to start.
_RANDOM = re.compile("[0-9a-f]{32}")
#: What a start without arguments has; those given count instead. Two devices, as one of them
#: switches off what needs tensor parallelism; data parallelism is 1.
PARALLEL = {
    "tensor_parallel_size": 2,
    "data_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "prefill_context_parallel_size": 1,
    "decode_context_parallel_size": 1,
    "enable_expert_parallel": True,
    "enable_eplb": False,
}


class StandIn:
    """Anything of a package that is replaced."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(name)

    def __call__(self, *given: Any, **_: Any) -> Any:
        """Return a stand-in; as a decorator, the function or class as it is."""
        alone = len(given) == 1 and isinstance(given[0], type | types.FunctionType)
        return given[0] if alone else StandIn(self.__name__)

    def __getitem__(self, key: Any) -> Any:
        return StandIn(self.__name__)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__


class StandInModule(types.ModuleType):
    """A module whose attributes all exist."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        # whether a thing is there: nothing that needs a device is
        return False if name.startswith(("HAS_", "is_")) else StandIn(name)


class Finder:
    """Finds stand-ins, and the few modules of vLLM that run."""

    def __init__(self, vllm: Path | None) -> None:
        self.vllm = vllm

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """Return where a module comes from; None if it is not replaced."""
        if name.partition(".")[0] not in REPLACED:
            return None
        if self.vllm and name in REAL:
            path = (self.vllm / name.replace(".", "/")).with_suffix(".py")
            if path.is_file():
                return importlib.util.spec_from_file_location(name, path)
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> types.ModuleType:
        """Return a module of stand-ins."""
        return StandInModule(spec.name)

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        """Make a module a package too: its modules are stand-ins as well."""
        module.__path__ = []


def divide_up(number: int, by: int) -> int:
    """Return vLLM's ``cdiv``, where no package of vLLM is at hand."""
    return -(-number // by)


def install_stand_ins(folder: Path, vllm: Path | None) -> None:
    """Make vllm_ascend of a folder importable; its own ``__init__`` registers it with vLLM."""
    sys.meta_path.insert(0, Finder(vllm))  # type: ignore[arg-type]
    sys.path.insert(0, str(folder))
    built = types.ModuleType("vllm_ascend._build_info")  # written when the package is built
    vars(built).update(__device_type__=DEVICE, __soc_version__="ASCEND910B1")
    sys.modules["vllm_ascend._build_info"] = built
    importlib.import_module("vllm.utils.math_utils").__dict__.setdefault("cdiv", divide_up)
    # the images of all releases have Ascend's Triton, which this asks for
    vars(importlib.import_module("vllm.triton_utils"))["HAS_TRITON"] = True
    # vLLM's reads a variable, once; the module itself needs kernels
    invariant = importlib.import_module("vllm.model_executor.layers.batch_invariant")
    vars(invariant)["vllm_is_batch_invariant"] = lambda: (
        os.environ.get("VLLM_BATCH_INVARIANT", "0") not in ("", "0")
    )
    if vllm is None:
        vars(importlib.import_module("vllm.envs"))["VLLM_BATCH_INVARIANT"] = False


class TransferConfig(SimpleNamespace):
    """vLLM's table of a split deployment, with the questions that the readers ask it."""

    def get_from_extra_config(self, key: str, default: Any) -> Any:
        """Return a value of the connector's own table."""
        return (self.kv_connector_extra_config or {}).get(key, default)

    @property
    def is_kv_producer(self) -> bool:
        """Return whether it computes prompts for others."""
        return self.kv_role in ("kv_producer", "kv_both")

    @property
    def is_kv_consumer(self) -> bool:
        """Return whether it takes over prompts that others computed."""
        return self.kv_role in ("kv_consumer", "kv_both")


def describe_start(settings: dict[str, Any], given: dict[str, Any]) -> SimpleNamespace:
    """Return what stands in for VllmConfig: vLLM makes it only with a model and a device.

    Sizes and tables are those that vLLM's parser reads from the arguments, ``given``.
    """
    text = MODELS[settings.get("model", "gqa")]
    model = SimpleNamespace(**text, to_dict=lambda: text, architectures=["MadeUp"])
    compilation = given.get("compilation_config") or {}
    transfer = given.get("kv_transfer_config")
    drafts = given.get("speculative_config")
    batched = given.get("max_num_batched_tokens") or 8192
    return SimpleNamespace(
        additional_config=settings.get("additional_config") or {},
        model_config=SimpleNamespace(
            hf_config=model,
            hf_text_config=model,
            model="made-up",
            architectures=model.architectures,
            is_moe=True,
            is_deepseek_mla="kv_lora_rank" in text,
            use_mla="kv_lora_rank" in text,
            enforce_eager=bool(given.get("enforce_eager")),
            quantization=given.get("quantization"),
            max_model_len=given.get("max_model_len") or 32768,
            model_arch_config=SimpleNamespace(total_num_attention_heads=64),
            get_total_num_kv_heads=lambda: text["num_key_value_heads"],
            get_hidden_size=lambda: text["hidden_size"],
            get_num_experts=lambda: text["num_experts"],
            is_hybrid=False,
            get_num_layers=lambda *_: text["num_hidden_layers"],
        ),
        parallel_config=SimpleNamespace(
            **PARALLEL
            | {key: given[key] for key in PARALLEL if given.get(key)}
            | {"world_size": 2, "world_size_across_dp": 2, "use_sequence_parallel_moe": False}
            | {"distributed_executor_backend": "mp", "eplb_config": None}
            | {"enable_batch_sharded_sampling": False}
        ),
        scheduler_config=SimpleNamespace(
            max_num_batched_tokens=batched,
            max_num_seqs=given.get("max_num_seqs") or 256,
            enable_chunked_prefill=given.get("enable_chunked_prefill") is not False,
            async_scheduling=bool(given.get("async_scheduling")),
        ),
        cache_config=SimpleNamespace(
            block_size=given.get("block_size") or 128,
            enable_prefix_caching=given.get("enable_prefix_caching") is not False,
            cache_dtype=given.get("kv_cache_dtype") or "auto",
        ),
        compilation_config=SimpleNamespace(
            pass_config=SimpleNamespace(
                **{"enable_sp": False} | (compilation.get("pass_config") or {})
            ),
            compile_ranges_endpoints=[],
            compile_ranges_split_points=[],
            cudagraph_mode=compilation.get("cudagraph_mode"),
            cudagraph_capture_sizes=compilation.get("cudagraph_capture_sizes") or [],
            max_cudagraph_capture_size=None,
        ),
        speculative_config=drafts
        and SimpleNamespace(**{"num_speculative_tokens": 1, "method": "mtp"} | drafts),
        kv_transfer_config=transfer
        and TransferConfig(
            **{"kv_role": None, "kv_connector": None, "kv_connector_extra_config": {}} | transfer
        ),
        attention_config=SimpleNamespace(indexer_kv_dtype="auto"),
        use_v2_model_runner=False,  # unless a variable says so, on Ascend
        quant_config=None,
        lora_config=None,
        device_config=SimpleNamespace(device_type="npu"),
    )


def simplify(value: Any) -> Any:
    """Return a value as JSON has it; the name of its class for other objects."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, dict):
        return {str(key): simplify(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = [simplify(each) for each in value]
        return sorted(items, key=str) if isinstance(value, set | frozenset) else items
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return f"<{type(value).__name__}>"


def flatten(prefix: str, value: Any, seen: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object and of those of the same package inside it."""
    own = getattr(type(value), "__module__", "").startswith("vllm_ascend")
    if own and not isinstance(value, Enum) and value not in seen:
        names = vars(value).keys() | {
            name
            for name, each in vars(type(value)).items()
            if not callable(each)
            and not isinstance(each, property | staticmethod | classmethod)
            and name not in ("_defaults", "model_config")  # of the class, not set by anyone
        }
        for name in sorted(names):
            if name == "config" and isinstance(value.config, dict):  # holds what others ask for
                yield from flatten(prefix, value.config, seen)
            elif not name.startswith("_") and name != "vllm_config":
                yield from flatten(f"{prefix}.{name}", getattr(value, name), (*seen, value))
    elif isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from flatten(f"{prefix}.{key}", inner, seen)
    else:
        yield prefix, simplify(value)


def list_texts(folder: Path) -> set[str]:
    """Return the texts in the Python files of the package: keys and variables are among them."""
    found: set[str] = set()
    for path in sorted((folder / "vllm_ascend").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def list_leaves(table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys of a table."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from list_leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def list_other_reads(
    settings: dict[str, Any], effective: dict[str, Any], texts: set[str]
) -> Iterator[str]:
    """Yield the settings that only other files than those of the configuration name.

    What comes of their values is not judged, but whether they are named at all is.
    """
    keys = (key for key in list_leaves(settings.get("additional_config") or {}))
    shown = {name.rpartition(".")[2] for name in effective if name.startswith("ascend.")}
    for key in keys:
        if key.rpartition(".")[2] in texts - shown:
            yield f"read.vllm_ascend.{key}"
    for name in settings.get("env") or {}:
        # others are read by PyTorch, CANN and the system as well
        if name.startswith("VLLM_") and name in texts and f"env.{name}" not in effective:
            yield f"read.env.{name}"


def read_config(settings: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return what the readers make of settings; called once in a process, as they remember."""
    module = importlib.import_module("vllm_ascend.ascend_config")
    envs = importlib.import_module("vllm_ascend.envs")
    start = describe_start(settings, given)
    vars(importlib.import_module("vllm.config"))["get_current_vllm_config"] = lambda: start
    links: dict[str, str] = {}

    def note(read: Callable[..., Any], prefix: str) -> Callable[..., Any]:
        def call(*words: Any) -> Any:
            names = [word for word in words if isinstance(word, str)]
            for name in names:
                if name in envs.env_variables and len(names) > 1:
                    (key, *_) = (word for word in names if word != name)
                    links[f"env.{name}"] = f"{prefix}.{key}"
            return read(*words)

        return staticmethod(call)  # type: ignore[return-value]

    for owner, prefix in (
        ("AscendConfig", "ascend"),
        ("SchedulerConfig", "ascend.scheduler_config"),
    ):
        each = getattr(module, owner, None)
        if hasattr(each, "_get_config_value"):
            each._get_config_value = note(each._get_config_value, prefix)  # noqa: SLF001
    # files that a configuration names are on no other machine: all are there
    with (
        patch.object(os.path, "exists", lambda _: True),
        patch.object(os, "access", lambda *_: True),
        patch.object(os, "makedirs", lambda *_, **__: None),
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
    ):
        found = module.init_ascend_config(start)
        effective = dict(flatten("ascend", found))
        effective |= {f"env.{name}": simplify(read()) for name, read in envs.env_variables.items()}
    return {"effective": effective, "links": links}


def read_in_child(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what a function returns in a process of its own, or why it stopped."""
    ours, theirs = os.pipe()
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        os.close(ours)
        try:
            answer = call()
        except BaseException as error:
            # an attribute that a stand-in lacks, or a comparison with one
            about = f"{type(error).__name__}: {error}"
            unclear = any(word in about for word in ("SimpleNamespace", "StandIn"))
            answer = {"stops": about} | ({"unclear": True} if unclear else {})
        with os.fdopen(theirs, "w") as out:
            json.dump(answer, out)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as given:
        answer = json.load(given)
    os.waitpid(child, 0)
    return answer


def plain(value: Any) -> Any:
    """Return what vLLM's parser made of a value: the fields of a class that were given."""
    if hasattr(value, "__dataclass_fields__"):
        return {
            name: plain(inner)
            for name in value.__dataclass_fields__
            if not name.startswith("_")
            and (inner := getattr(value, name, None)) is not None
            and "Mock" not in type(inner).__name__
        }
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return simplify(value)


def parse_lines(folder: Path, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what vLLM's own parser and envs.py say to the settings of each line."""
    from vllm_judge import Judge  # needs what the package needs

    with redirect_stdout(sys.stderr), redirect_stderr(StringIO()):
        judge = Judge(folder)
    rows = []
    spec = importlib.util.spec_from_file_location("variables_of_vllm", folder / "vllm/envs.py")
    assert spec is not None
    assert spec.loader is not None
    variables = importlib.util.module_from_spec(spec)
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        spec.loader.exec_module(variables)
    for line in lines:
        row: dict[str, Any] = {"given": {}, "effective": {}}
        words = list(line.get("vllm") or ())
        with ExitStack() as stack:
            for each in judge.classes.values():
                if hasattr(each, "__post_init__"):
                    stack.enter_context(patch.object(each, "__post_init__", lambda *_: None))
            said = stack.enter_context(redirect_stderr(StringIO()))
            try:
                found = plain(vars(judge.parser.parse_args(["m", *words])))
            except (SystemExit, Exception) as error:
                said_last = said.getvalue().strip().splitlines()[-1:]
                row["stops"] = f"{type(error).__name__}: {' '.join(said_last) or error}"
                rows.append(row)
                continue
        row["given"] = found
        for name, value in found.items():
            if name not in ("model_tag", "additional_config"):
                row["effective"] |= dict(flatten(f"vllm.{name}", value))
        home = {"HOME": "/home", "XDG_CACHE_HOME": "/home", "XDG_CONFIG_HOME": "/home"}
        with patch.dict(os.environ, home | (line.get("env") or {}), clear=True):
            for name, read in variables.environment_variables.items():
                with suppress(Exception):
                    value = simplify(read())
                    if not _RANDOM.search(str(value)):
                        row["effective"][f"env.{name}"] = value
        rows.append(row)
    return {"rows": rows}


def export(sources: str, revision: str | None, folder: Path) -> Path:
    """Return the folder of the sources; a revision's package is put into ``folder``."""
    if revision is None:
        return Path(sources).resolve()
    command = ["git", f"--git-dir={sources}", "archive", revision, "vllm_ascend"]
    packed = run(command, stdout=PIPE, check=True).stdout  # noqa: S603
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def judge(
    lines: list[dict[str, Any]], sources: str, revision: str | None, vllm: Path | None
) -> list[dict[str, Any]]:
    """Return what a release says to the settings of each line."""
    parsed: list[dict[str, Any]] = [{"given": {}, "effective": {}} for _ in lines]
    if vllm:  # in a process of its own: its mocks and the stand-ins would meet
        answer = read_in_child(lambda: parse_lines(vllm, lines))
        if "rows" not in answer:
            raise SystemExit(answer["stops"])
        parsed = answer["rows"]
    with tempfile.TemporaryDirectory() as folder:
        package = export(sources, revision, Path(folder))
        texts = list_texts(package)
        install_stand_ins(package, vllm)
        sys.modules.setdefault("regex", importlib.import_module("re"))
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            importlib.import_module("vllm_ascend.ascend_config")
            importlib.import_module("vllm_ascend.utils")

        def read(line: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
            os.environ.clear()
            os.environ.update({"HOME": "/home"} | (line.get("env") or {}))
            os.chdir(folder)
            return read_config(line, row["given"])

        answers = []
        for line, row in zip(lines, parsed, strict=True):
            if "stops" in row:
                answers.append({"stops": f"vllm: {row['stops']}"})
                continue
            answer = read_in_child(lambda line=line, row=row: read(line, row))
            if "effective" in answer:
                answer["effective"] |= {
                    name: value
                    for name, value in row["effective"].items()
                    if name not in answer["effective"]
                }
                others = list_other_reads(line, answer["effective"], texts)
                answer["effective"] |= dict.fromkeys(others, True)
            answers.append(answer)
    return answers


def main() -> None:
    """Judge the lines of the standard input."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sources")
    parser.add_argument("revision", nargs="?")
    parser.add_argument("--vllm", type=Path)
    words = parser.parse_args()
    lines = [json.loads(line) for line in sys.stdin if line.strip()]
    vllm = words.vllm and words.vllm.resolve()
    for answer in judge(lines, words.sources, words.revision, vllm):
        print(json.dumps(answer, ensure_ascii=False, sort_keys=True))


if __name__ == "__main__":
    main()
