"""torch_npu's own Python files, fetched by pip and run with recorders for torch.

What a row of the catalogue calls is taken out of the files of the package ``torch_npu.npu``; a new
row needs nothing here.
"""

from __future__ import annotations

import ast
import compileall
import importlib
import io
import subprocess
import sys
import types
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from support.recorders import execute

#: The wheel; which Python it is for does not matter to its Python files.
WHEEL = "torch-npu==2.14.0"
FOR = (
    "--platform",
    "manylinux_2_28_x86_64",
    "--implementation",
    "cp",
    "--python-version",
    "3.11",
    "--only-binary",
    ":all:",
    "--no-deps",
)
FOLDERS = ("torch_npu/npu", "torch_npu/npu/aclnn", "torch_npu/utils", "torch_npu/_init/common")
#: Packages whose ``__init__`` is not run: it needs torch itself.
SHELLS = (
    "torch_npu",
    "torch_npu.npu",
    "torch_npu.utils",
    "torch_npu._init",
    "torch_npu._init.common",
)


def fetch_files(folder: Path) -> Path:
    """Put the Python files of the wheel into a folder; return it.

    Raises CalledProcessError where pip cannot fetch the wheel.
    """
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        *FOR,
        "--dest",
        str(folder),
        WHEEL,
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(io.BytesIO(wheel.read_bytes())) as archive:
        wanted = [
            name
            for name in archive.namelist()
            if name.endswith(".py") and name.rpartition("/")[0] in FOLDERS
        ]
        archive.extractall(folder, wanted)
    wheel.unlink()
    with warnings.catch_warnings():  # of escape sequences
        warnings.simplefilter("ignore")
        compileall.compile_dir(folder, quiet=2)
    return folder


class Extension(types.ModuleType):
    """``torch_npu._C``: takes what the C++ code takes, and remembers it.

    Any other function takes anything.
    """

    def __init__(self, received: dict[str, Any]) -> None:
        super().__init__("torch_npu._C")
        self._received = received

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *given: self._received.__setitem__(name, given)

    def _npu_setOption(self, option: dict[str, str]) -> None:
        assert all(type(text) is str for pair in option.items() for text in pair), option
        self._received.update(option)

    def _npu_getOption(self, name: str) -> bytes | None:
        value = self._received.get(name)
        return value if value is None else value.encode()

    def _npu_set_device_res_limit(self, device: int, kind: int, value: int) -> None:
        self._received["_npu_set_device_res_limit", kind] = device, value


def _build_torch(received: dict[str, Any]) -> dict[str, types.ModuleType]:
    """Return torch and its module of back ends, as far as files of torch_npu need them."""
    torch, backends = types.ModuleType("torch"), types.ModuleType("torch.backends")

    class ContextProp:
        def __init__(self, getter: Any, setter: Any) -> None:
            self.getter, self.setter = getter, setter

        def __get__(self, made: Any, kind: Any) -> Any:
            return self.getter()

        def __set__(self, made: Any, value: Any) -> None:
            self.setter(value)

    class PropModule(types.ModuleType):
        def __init__(self, module: Any, name: str) -> None:
            super().__init__(name)

    def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
        if type(mode) is not bool:
            raise TypeError(mode)
        received["use_deterministic_algorithms"] = mode

    names = {
        "ContextProp": ContextProp,
        "PropModule": PropModule,
        "__allow_nonbracketed_mutation": None,
    }
    vars(backends).update(names)
    timeouts = types.SimpleNamespace(
        set_op_timeout_ms=lambda number: received.update(set_op_timeout_ms=number)
    )
    are_enabled = lambda: received.get("use_deterministic_algorithms", False)  # noqa: E731
    vars(torch).update(
        backends=backends,
        ops=types.SimpleNamespace(npu=timeouts),
        use_deterministic_algorithms=use_deterministic_algorithms,
        are_deterministic_algorithms_enabled=are_enabled,
    )
    return {"torch": torch, "torch.backends": backends}


@cache
def _load_definitions(folder: Path) -> tuple[tuple[str, types.CodeType], ...]:
    """Return the compiled definitions of the package, each with the names it defines."""
    found = []
    for path in sorted((folder / "torch_npu/npu").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            name = node.name if isinstance(node, ast.FunctionDef) else getattr(target, "id", "")
            if name and not ast.unparse(node).endswith("None"):
                found.append(
                    (name, compile(ast.Module([node], []), str(path), "exec", dont_inherit=True))
                )
    return tuple(found)


def _take_definitions(folder: Path, names: set[str], home: dict[str, Any]) -> None:
    """Run the statements that define names, each of the first file that has it."""
    for name, code in _load_definitions(folder):
        if name in names and name not in home:
            exec(code, home)


@contextmanager
def record_torch_npu(folder: Path, names: set[str]) -> Iterator[dict[str, Any]]:
    """Put torch_npu where code imports it, with the ``names`` of its package ``npu``.

    Yield what the C extension receives.
    """
    received: dict[str, Any] = {}
    modules = _build_torch(received)
    before = {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] in ("torch", "torch_npu")
    }
    for name in before:
        del sys.modules[name]
    try:
        for name in SHELLS:
            modules[name] = types.ModuleType(name)
            modules[name].__path__ = [str(folder / name.replace(".", "/"))]
        package, npu = modules["torch_npu"], modules["torch_npu.npu"]
        vars(package).update(npu=npu, _C=Extension(received))
        sys.modules.update({**modules, "torch_npu._C": package._C})
        vars(npu).update(
            is_initialized=lambda: False,
            _lazy_init=lambda: None,
            device_count=lambda: 8,
            current_device=lambda: 3,
        )
        config = importlib.import_module("torch_npu.npu.npu_config")
        errors = importlib.import_module("torch_npu.utils._error_code")
        shared = {
            "ErrCode": errors.ErrCode,
            "pta_error": errors.pta_error,
            "_get_device_index": int,
            "torch_npu": package,
        }
        vars(npu).update(
            {name: getattr(config, name) for name in config.__all__},
            npu_config=config,
            torch=modules["torch"],
            **shared,
        )
        vars(npu).update(warnings=types.SimpleNamespace(warn=lambda *words, **more: None))
        _take_definitions(folder, {*names, "CubeMathType"}, vars(npu))
        npu.aclnn = importlib.import_module("torch_npu.npu.aclnn")
        modules["torch"].npu = npu
        yield received
    finally:
        for name in [
            name for name in sys.modules if name.partition(".")[0] in ("torch", "torch_npu")
        ]:
            del sys.modules[name]
        sys.modules.update(before)


def run_code(folder: Path, names: set[str], text: str) -> dict[str, Any]:
    """Return what the C extension receives of a text.

    The function of a rendered module is called.
    """
    with record_torch_npu(folder, names) as received, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of options that will go
        made = execute(text)
        if "configure_npu" in made:
            made["configure_npu"]()
        received["MM_BMM_ND_ENABLE", "flag"] = sys.modules[
            "torch_npu.npu.npu_config"
        ].get_mm_bmm_format_nd()
    return received
