"""``doctor``: adapters that are installed, read without being run.

No NPU is at hand, so packages and libraries are made here.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from npuprof import catalog
from npuprof.catalog import attribute_values, releases
from npuprof.runs import adapter, adapter_files
from support.running import Run, Store

PRESET = (
    '[profile]\nscenario = "training"\n[options]\nprecision_mode_v2 = "mixed_float16"\n'
    'hccl_timeout = 600\noo_level = "O3"\n'
)


def list_keys(release: str) -> list[str]:
    place = releases.release_index(release)
    return [
        name
        for name in catalog.record_names()
        if (option := catalog.find_option(name)) and option.states[place] == "Y"
    ]


def write_library(path: Path, names: Iterable[str]) -> None:
    """Write bytes that look like a shared library that names options."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"\x7fELF"
        + os.urandom(64)
        + b"".join(b"\0" + name.encode() for name in names)
        + b"\0"
        + os.urandom(64)
    )


def write_bridge(folder: Path, release: str, version: str = "") -> Path:
    """Make the adapter of TF 1 as a release has it: its package and its library."""
    keys = list_keys(release)
    package = folder / "npu_bridge"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('it must not be imported')\n")
    write_library(package / "_tf_adapter.so", keys)
    if version:
        (folder / f"npu_bridge-{version}.dist-info").mkdir()
        (folder / f"npu_bridge-{version}.dist-info" / "METADATA").write_text(
            f"Name: npu-bridge\nVersion: {version}\n"
        )
    return folder


def write_device(folder: Path, release: str) -> Path:
    """Make the adapter of TF 2 as a release has it: the classes of global_options()."""
    paths = [
        path
        for path in attribute_values.list_attribute_paths()
        if attribute_values.find_attribute_release(path, release) == "Y"
    ]
    groups: dict[str, dict[str, str]] = {"": {}}
    for path in paths:
        parts = path.split(".")
        for depth, name in enumerate(parts):
            group = ".".join(parts[:depth])
            called = (
                f"C_{'_'.join(parts[: depth + 1])}()"
                if depth + 1 < len(parts)
                else "OptionValue(None, None)"
            )
            groups.setdefault(group, {})[name] = called
    lines = []
    for group, names in groups.items():
        lines += [
            f"class {f'C_{group}'.replace('.', '_') if group else 'NpuConfig'}:",
            "    def __init__(self):",
        ]
        lines += [f"        self.{name} = {called}" for name, called in names.items()]
    (folder / "npu_device" / "configs").mkdir(parents=True)
    (folder / "npu_device" / "__init__.py").write_text(
        "raise SystemExit('it must not be imported')\n"
    )
    (folder / "npu_device" / "configs" / "npu_config.py").write_text("\n".join(lines) + "\n")
    return folder


def diagnose(run: Run, *arguments: str) -> dict[str, Any]:
    done = run("doctor", *arguments, "--format", "json")
    assert done.out, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


@pytest.mark.parametrize(
    ("make", "release"),
    [
        (write_bridge, "20.1"),
        (write_bridge, "5.0.1"),
        (write_bridge, "7.0.RC1"),
        (write_bridge, "9.1.0"),
        (write_device, "5.1.RC1"),
        (write_device, "9.0.0"),
    ],
)
def test_an_adapter_looks_like_the_release_that_it_is_of(
    make: Callable[[Path, str], Path], release: str, tmp_path: Path, run: Run
) -> None:
    found = diagnose(run, "--adapter", str(make(tmp_path / "site", release)))
    assert release in found["releases"]
    assert found["different"] == []
    assert found["compared"] > 30


def test_without_its_library_it_is_not_known_what_an_adapter_reads(tmp_path: Path) -> None:
    (write_bridge(tmp_path, "9.1.0") / "npu_bridge" / "_tf_adapter.so").unlink()
    assert [
        adapter.read_adapter(str(tmp_path)).reads(name)
        for name in ("hccl_timeout", "auto_tune_mode")
    ] == [None, None]
    write_device(tmp_path, "5.1.RC1")
    assert adapter.read_adapter(str(tmp_path)).reads("oo_level") is None, (
        "what only the class of TF 2 says is not all"
    )


def test_a_tf2_attribute_is_found_under_a_former_path_and_an_unread_group_is_not_judged(
    tmp_path: Path,
) -> None:
    write_device(tmp_path, "5.1.RC1")
    config = tmp_path / "npu_device" / "configs" / "npu_config.py"
    config.write_text(
        config.read_text().replace("class C_dump_config:", "class C_lost:")
        + "        self.auto_tune_mode = OptionValue(None, None)\n"
    )
    read = adapter.read_adapter(str(tmp_path))
    assert [
        read.reads(name) for name in ("auto_tune_mode", "dump_path", "oo_level", "precision_mode")
    ] == [True, None, False, True]


def test_a_library_that_has_only_what_tf2_reads_is_no_doubt_about_the_release(
    tmp_path: Path, run: Run
) -> None:
    write_device(tmp_path, "7.0.0")
    names = [
        name
        for name in list_keys("7.0.0")
        if "global_options" in (catalog.find_option(name) or pytest.fail(name)).spelling
    ]
    write_library(tmp_path / "npu_device" / "_npu_device_backends.so", names)
    found = diagnose(run, "--adapter", str(tmp_path))
    assert "7.0.0" in found["releases"]
    assert found["different"] == []
    read = adapter.read_adapter(str(tmp_path))
    assert [read.reads(name) for name in ("aoe_mode", "in_out_pair", "use_off_line")] == [
        True,
        False,
        False,
    ]


def test_what_a_preset_sets_and_the_adapter_does_not_read_is_told(
    tmp_path: Path, store: Store, run: Run
) -> None:
    store({"bert": PRESET})
    site = str(write_bridge(tmp_path / "site", "7.0.0", "1.15.0"))
    done = run("doctor", "bert", "--adapter", site)
    assert done.code == 1
    assert "NP964: oo_level is not read" in done.out
    assert "npu_bridge 1.15.0" in done.out
    assert "2 of 3 settings read" in done.out
    found = diagnose(run, "bert", "--adapter", site)
    assert {setting["key"]: setting["read"] for setting in found["settings"]} == {
        "precision_mode_v2": True,
        "hccl_timeout": True,
        "oo_level": False,
    }
    assert run("doctor", "bert", "--unset", "oo_level", "--adapter", site).code == 0


def test_the_adapter_of_the_python_on_path_is_found_and_not_imported(
    tmp_path: Path, store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"bert": PRESET})
    monkeypatch.setenv("PYTHONPATH", str(write_bridge(tmp_path / "site", "9.1.0")))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    done = run("doctor", "bert")
    assert done.code == 0
    assert done.err == ""
    assert f"npu_bridge in {tmp_path}/site" in done.out


def test_without_an_adapter_the_environment_is_looked_at_all_the_same(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_MODULE_LOG_LEVEL", "GE=1:FMK=7")
    done = run("doctor")
    assert done.code == 2
    assert "NP963" in done.out
    assert '"GE=1:FMK=7" is not in its format' in done.out


@pytest.mark.parametrize("how", ["package", "wheel", "library"])
def test_a_package_a_wheel_and_a_library_can_be_named(how: str, tmp_path: Path, run: Run) -> None:
    site = write_bridge(tmp_path / "site", "9.0.0", "1.15.9")
    path = {
        "package": site / "npu_bridge",
        "wheel": tmp_path / "npu_bridge-1.15.9-py3-none-any.whl",
        "library": site / "npu_bridge" / "_tf_adapter.so",
    }[how]
    if how == "wheel":
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(site.rglob("*")):
                archive.write(file, file.relative_to(site))
    found = diagnose(run, "--adapter", str(path))
    assert set(found["adapter"]["options"]) == set(list_keys("9.0.0"))
    assert "9.0.0" in found["releases"]
    if how == "wheel":
        assert found["adapter"]["packages"][0]["version"] == "1.15.9"


def test_a_package_whose_name_only_ends_like_an_adapter_is_none(tmp_path: Path, run: Run) -> None:
    site = write_bridge(tmp_path / "site", "9.0.0")
    (site / "my_npu_device").mkdir()
    (site / "my_npu_device" / "__init__.py").touch()
    packages = diagnose(run, "--adapter", str(site))["adapter"]["packages"]
    assert [package["name"] for package in packages] == ["npu_bridge"]


def test_of_short_names_that_a_compiler_may_have_kept_elsewhere_nobody_can_tell(
    tmp_path: Path, store: Store, run: Run
) -> None:
    store({"bert": PRESET})
    write_library(tmp_path / "a.so", [name for name in list_keys("9.1.0") if len(name) > 15])
    found = diagnose(run, "bert", "--adapter", str(tmp_path / "a.so"))
    assert {setting["key"]: setting["read"] for setting in found["settings"]} == {
        "precision_mode_v2": True,
        "hccl_timeout": None,
        "oo_level": None,
    }
    assert found["different"] == []


def test_what_would_never_end_is_not_opened(tmp_path: Path, run: Run) -> None:
    os.mkfifo(tmp_path / "pipe.so")
    (tmp_path / "huge.so").touch()
    os.truncate(tmp_path / "huge.so", 3 << 30)
    assert (
        "it is a named pipe, not a file"
        in run("doctor", "--adapter", str(tmp_path / "pipe.so")).out
    )
    assert "it is longer than 512 MiB" in run("doctor", "--adapter", str(tmp_path / "huge.so")).out
    write_library(tmp_path / "tf.so", list_keys(releases.load_releases()[-1]))
    result = run("doctor", "--adapter", str(tmp_path))
    assert result.code in (0, 1), result
    assert "pipe.so" in result.out, result


def test_what_a_wheel_unpacks_to_is_bounded(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter_files, "_LARGEST", 1 << 20)
    with zipfile.ZipFile(tmp_path / "tf.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("npu_bridge/__init__.py", "")
        wheel.writestr("npu_bridge/_tf_adapter.so", b"\0" * (1 << 21))
    assert (
        "_tf_adapter.so: it is longer than 1 MiB"
        in run("doctor", "--adapter", str(tmp_path / "tf.whl")).out
    )


def test_names_are_found_across_the_pieces_that_a_file_is_read_in() -> None:
    whole = b"\0precision_mode_v2\0x\0hccl_timeout\0"
    for size in range(1, len(whole) + 1):
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
        assert adapter.find_names(
            iter(pieces), ["precision_mode_v2", "hccl_timeout", "oo_level"]
        ) == {"precision_mode_v2", "hccl_timeout"}
    assert adapter.find_names(iter([b"precision_mode_v2x\0"]), ["precision_mode_v2"]) == frozenset()


def test_files_that_cannot_be_read_are_told_and_the_others_are(tmp_path: Path, run: Run) -> None:
    site = write_bridge(tmp_path / "site", "9.0.0")
    (site / "npu_bridge" / "broken.py").write_text("class X(:\n")
    (site / "npu_bridge" / "deep.py").write_text("class X: pass\n" + "(" * 5000)
    (site / "npu_bridge" / "gone.so").symlink_to("nowhere")
    (site / "npu_bridge" / "zero.py").write_bytes(b"class X: pass\n\0")
    found = diagnose(run, "--adapter", str(site))
    assert {os.path.basename(file["path"]) for file in found["adapter"]["unread"]} == {
        "broken.py",
        "deep.py",
        "gone.so",
        "zero.py",
    }
    assert not any("None" in file["why"] for file in found["adapter"]["unread"])
    assert "9.0.0" in found["releases"]


@pytest.mark.parametrize("name", ["empty", "text", "missing", "other.so", "bad.whl"])
def test_what_is_no_adapter_is_told(name: str, tmp_path: Path, run: Run) -> None:
    path = tmp_path / name
    if name == "empty":
        path.mkdir()
    elif name == "bad.whl":
        path.write_bytes(b"PK\x03\x04" + b"\0" * 30 + b"PK\x05\x06")
    elif name != "missing":
        path.write_bytes(b"\0precision_mode\0nothing")
    done = run("doctor", "--adapter", str(path))
    assert done.code == 2
    assert "NP963" in done.out or "NP003" in done.out


@pytest.mark.parametrize(
    ("environ", "message", "code"),
    [
        ({"ASCEND_MODULE_LOG_LEVEL": "FMK=1:GE=0"}, "", 0),
        ({"ASCEND_MODULE_LOG_LEVEL": "fmk=1"}, "ASCEND_MODULE_LOG_LEVEL", 1),
        (
            {"ASCEND_SLOG_PRINT_TO_STDOUT": "1", "ASCEND_PROCESS_LOG_PATH": "/l"},
            "leaves ASCEND_PROCESS_LOG_PATH without effect",
            1,
        ),
        (
            {"ASCEND_SLOG_PRINT_TO_STDOUT": "1", "ASCEND_LOG_PRINT_TO_STDOUT": "0"},
            "contradict each other",
            1,
        ),
        (
            {"RANK_TABLE_FILE": "/t.json", "CM_CHIEF_IP": "10.0.0.1"},
            "CM_ variables are combined with RANK_TABLE_FILE",
            1,
        ),
        ({"PROFILING_MODE": "dynamic"}, "PROFILING_MODE = dynamic overrides profiling_mode", 1),
        ({"RANK_ID": "first"}, "env.RANK_ID takes a whole number", 1),
        ({"ASCEND_RT_VISIBLE_DEVICES": "0,1", "RANK_SIZE": "8"}, "", 0),
    ],
)
def test_what_in_the_environment_gets_in_the_way_is_told(
    environ: dict[str, str],
    message: str,
    code: int,
    tmp_path: Path,
    store: Store,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store({"bert": f"{PRESET}profiling_mode = false\n"})
    site = str(write_bridge(tmp_path / "site", "9.1.0"))
    for name, text in environ.items():
        monkeypatch.setenv(name, text)
    done = run("doctor", "bert", "--adapter", site)
    assert done.code == code, done.out
    assert message in done.out, done.out
    assert bool(message) is ("NP" in done.out)
