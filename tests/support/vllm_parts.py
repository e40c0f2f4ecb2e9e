"""vLLM-Ascend's ``envs.py`` and ``ascend_config.py`` of PyPI, with stand-ins for vLLM."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from collections import defaultdict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

#: Releases with a wheel, and the platform and the Python that it is for; nothing in it is compiled
#: that is run here.
RELEASES = {
    "0.11.0": "manylinux_2_24_x86_64",
    "0.23.0": "manylinux_2_34_x86_64",
    "0.26.0rc1": "manylinux_2_34_x86_64",
}
PYTHONS = defaultdict(lambda: "310", {"0.26.0rc1": "311"})


def fetch_release(release: str, folder: Path) -> Path:
    """Return a folder with the two files of a release."""
    requested = (
        "--platform",
        RELEASES[release],
        "--python-version",
        PYTHONS[release],
        "--only-binary",
        ":all:",
    )
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        *requested,
        "-d",
        str(folder),
        f"vllm-ascend=={release}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no package index in reach: {done.stderr[-200:]}")
    (wheel,) = folder.glob(f"vllm_ascend-{release}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in ("envs.py", "ascend_config.py"):
            archive.extract(f"vllm_ascend/{name}", folder / release)
    wheel.unlink()
    return folder / release / "vllm_ascend"


def load_module(name: str, path: Path) -> ModuleType:
    """Return a module made of a file, each time anew."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ReadTable(dict[str, Any]):
    """A table that notes which keys somebody asks for."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.read.add(str(key))
        return super().__contains__(key)


def _build_vllm_config(additional_config: ReadTable) -> SimpleNamespace:
    """Return vLLM's configuration for a decode node that serves a mixture of experts."""
    transfer = SimpleNamespace(
        is_kv_consumer=True,
        kv_role="kv_consumer",
        get_from_extra_config=lambda name, default: default,
    )
    model = SimpleNamespace(
        is_deepseek_mla=True,
        is_moe=True,
        enforce_eager=False,
        get_total_num_kv_heads=lambda: 8,
        runner_type="generate",
        hf_text_config=SimpleNamespace(),
        hf_config=SimpleNamespace(model_type="deepseek", num_key_value_heads=8),
    )
    return SimpleNamespace(
        additional_config=additional_config,
        model_config=model,
        kv_transfer_config=transfer,
        speculative_config=None,
        quant_config=None,
        parallel_config=SimpleNamespace(
            tensor_parallel_size=1,
            data_parallel_size=4,
            pipeline_parallel_size=1,
            prefill_context_parallel_size=1,
            decode_context_parallel_size=1,
            enable_expert_parallel=True,
        ),
        scheduler_config=SimpleNamespace(max_num_batched_tokens=8192),
        cache_config=SimpleNamespace(block_size=128),
        compilation_config=SimpleNamespace(pass_config=SimpleNamespace(enable_sp=False)),
        use_v2_model_runner=False,
    )


def read_additional_config(
    folder: Path, values: dict[str, Any], monkeypatch: pytest.MonkeyPatch, **config: Any
) -> tuple[Any, set[str]]:
    """Return the ``AscendConfig`` of ``--additional-config``, and the keys that it reads.

    ``config`` are attributes of vLLM's configuration, ``parallel_config__tensor_parallel_size``,
    and what functions of vLLM-Ascend say.
    """
    fields = {name: value for name, value in config.items() if "__" not in name}

    def stand_in(name: str) -> ModuleType:
        module = ModuleType(name)
        module.__dict__["__getattr__"] = lambda attribute: (
            lambda *_, **__: fields.get(attribute, False)
        )
        module.__path__ = []
        monkeypatch.setitem(sys.modules, name, module)
        return module

    logger = SimpleNamespace(
        **{
            f"{level}{once}": lambda *_: None
            for level in ("info", "warning", "debug")
            for once in ("", "_once")
        }
    )
    stand_in("vllm").__dict__.update(
        logger=logger, envs=SimpleNamespace(VLLM_BATCH_INVARIANT=False)
    )
    for name in ("vllm.logger", "vllm.utils.math_utils", "vllm.utils", "vllm.config"):
        stand_in(name).__dict__.update(logger=logger)
    devices = SimpleNamespace(A2="A2", A3="A3", A5="A5", _310P="310P")
    stand_in("vllm_ascend.utils").__dict__.update(
        AscendDeviceType=devices, get_ascend_device_type=lambda: "A3"
    )
    stand_in("vllm.envs").__dict__.update(VLLM_BATCH_INVARIANT=False)
    envs = load_module("vllm_ascend.envs", folder / "envs.py")
    monkeypatch.setitem(sys.modules, "vllm_ascend.envs", envs)
    stand_in("vllm_ascend").__dict__.update(envs=envs)
    table = ReadTable(values)
    vllm_config = _build_vllm_config(table)
    for name, value in config.items():
        part, _, attribute = name.partition("__")
        if attribute:
            setattr(getattr(vllm_config, part), attribute, value)
        elif hasattr(vllm_config, name):
            setattr(vllm_config, name, value)
    return load_module("vllm_ascend.ascend_config", folder / "ascend_config.py").init_ascend_config(
        vllm_config
    ), table.read
