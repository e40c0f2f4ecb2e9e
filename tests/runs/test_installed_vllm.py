"""``doctor``: the vLLM that is installed, its parser read without being run.

The packages are made here, in the form of those of vLLM.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from npuprof.catalog.installed_arguments import list_installed_arguments
from npuprof.checks.frameworks import find_framework_faults
from npuprof.checks.scope import find_scope_faults
from npuprof.runs import adapter_files, installed_vllm
from npuprof.scripts import lint
from npuprof.scripts.lint import single_settings
from npuprof.system.files import find_packages
from support.running import Run, Store

ENGINE = """
raise SystemExit("it must not run")
class EngineArgs:
    model: str = "m"
    @staticmethod
    def add_cli_args(parser):
        group = parser.add_argument_group(title="Parallel")
        group.add_argument("--tensor-parallel-size", "-tp", **parallel["tensor_parallel_size"])
        group.add_argument("--enable-prefix-caching", **cache["enable_prefix_caching"])
        group.add_argument("--speculative-config", **spec["speculative_config"])
        group.add_argument("--warp-speed", **parallel["warp_speed"])
        return parser
"""
SERVER = """
class BaseFrontendArgs:
    chat_template: str | None = None
class FrontendArgs(BaseFrontendArgs):
    port: int = 8000
    @classmethod
    def add_cli_args(cls, parser):
        for key, value in get_kwargs(cls).items():
            extra_flags = value.pop("flags", [])
            parser.add_argument(*extra_flags, f"--{key.replace('_', '-')}", **value)
def make_arg_parser(parser):
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--headless", action="store_true")
    return AsyncEngineArgs.add_cli_args(FrontendArgs.add_cli_args(parser))
"""
READ = {
    "tensor-parallel-size",
    "tp",
    "enable-prefix-caching",
    "speculative-config",
    "warp-speed",
    "chat-template",
    "port",
    "headless",
}


def write_vllm(
    folder: Path,
    engine: str = ENGINE,
    server: str = SERVER,
    *,
    entry: str = "openai",
    metadata: str = "vllm-0.23.0+empty.dist-info/METADATA",
) -> Path:
    """Make a package with vLLM's parsers, and the metadata of its release."""
    files = {
        "vllm/__init__.py": 'raise SystemExit("it must not be imported")\n',
        "vllm/engine/arg_utils.py": engine,
        f"vllm/entrypoints/{entry}/cli_args.py": server,
        metadata: "Name: vllm\nVersion: 0.23.0+empty\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def diagnose(run: Run, *arguments: str) -> dict[str, Any]:
    done = run("doctor", *arguments, "--format", "json")
    assert done.out, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


@pytest.mark.parametrize("entry", ["openai", "common"])
@pytest.mark.parametrize(
    "metadata", ["vllm-0.23.0+empty.dist-info/METADATA", "vllm.egg-info/PKG-INFO"]
)
@pytest.mark.parametrize("form", ["folder", "package", "wheel"])
def test_the_arguments_are_those_of_both_parsers_and_of_the_fields(
    form: str, metadata: str, entry: str, tmp_path: Path, run: Run
) -> None:
    site = path = write_vllm(tmp_path / "site", entry=entry, metadata=metadata)
    if form == "package":
        path = site / "vllm"
    if form == "wheel":
        path = tmp_path / "vllm.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(site.rglob("*")):
                archive.write(file, file.relative_to(site))
    found = diagnose(run, "--installed", str(path))
    assert set(found["vllm"]["arguments"]) == READ
    assert found["vllm"]["uncatalogued"] == ["warp-speed"]
    assert found["vllm"]["version"] == "0.23.0+empty"
    assert found["findings"] == []


def test_doctor_lists_what_the_catalogue_lacks(tmp_path: Path, run: Run) -> None:
    site = write_vllm(tmp_path / "site")
    done = run("doctor", "--installed", str(site))
    assert done.code == 0, done.out
    assert done.out == (
        f"package      vllm 0.23.0+empty in {site}\n"
        "parser       8 arguments, of which the catalogue lacks warp-speed\n"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("tensor-parallel-size", True, id="its-name"),
        pytest.param("tensor_parallel_size", True, id="underscores"),
        pytest.param("speculative-config.method", True, id="key-of-json"),
        pytest.param("warp-speed", True, id="not-in-the-catalogue"),
        pytest.param("chat-template", True, id="inherited-field"),
        pytest.param("no-enable-prefix-caching", None, id="negation"),
        pytest.param("disable-prefix-caching", None, id="negation-of-some-releases"),
        pytest.param("max-num-seqs", False, id="only-in-the-catalogue"),
        pytest.param("no-chunked-prefill", False, id="negation-of-nothing"),
        pytest.param("model-tag", False, id="positional"),
        pytest.param("model", False, id="field-of-the-engine"),
    ],
)
def test_an_argument_is_read_if_the_installed_parser_has_it(
    name: str, expected: bool | None, tmp_path: Path
) -> None:
    found = installed_vllm.find_vllm(str(write_vllm(tmp_path)))
    assert found is not None
    assert found.reads(name) is expected


def test_an_argument_of_a_preset_that_the_installed_parser_lacks_is_a_finding(
    tmp_path: Path, store: Store, run: Run
) -> None:
    store({"serve": "[vllm]\ntensor-parallel-size = 2\nwarp-speed = 9\nmax-num-seqs = 8\n"})
    site = str(write_vllm(tmp_path / "site"))
    found = diagnose(run, "serve", "--installed", site)
    assert [(each["code"], each["key"]) for each in found["findings"]] == [
        ("NP964", "vllm.max-num-seqs")
    ]
    assert found["settings"] == [
        {"key": "vllm.max-num-seqs", "read": False},
        {"key": "vllm.tensor-parallel-size", "read": True},
        {"key": "vllm.warp-speed", "read": True},
    ]
    assert run("doctor", "serve", "--installed", site).code == 1


@pytest.mark.parametrize(
    ("engine", "server", "why"),
    [
        pytest.param(
            ENGINE + "\n        parser.add_argument(name, type=int)\n",
            SERVER,
            "its parser has an unknown form",
            id="computed-name",
        ),
        pytest.param(ENGINE, "", "its parser has an unknown form", id="no-server"),
        pytest.param("", SERVER, "its parser has an unknown form", id="no-engine"),
        pytest.param(
            "class EngineArgs:\n    a: int = 0\n", SERVER, "unknown form", id="engine-without-names"
        ),
        pytest.param(
            ENGINE + '        group.add_argument(f"--{name}")\n',
            SERVER,
            "unknown form",
            id="f-string",
        ),
        pytest.param("def", SERVER, "invalid syntax", id="syntax"),
        pytest.param(
            ENGINE,
            SERVER.replace("FrontendArgs:", "FrontendArgs(FrontendArgs):", 1),
            "recursion",
            id="cycle",
        ),
    ],
)
def test_of_a_parser_that_cannot_be_resolved_nothing_is_called_unread(
    engine: str, server: str, why: str, tmp_path: Path, store: Store, run: Run
) -> None:
    store({"serve": "[vllm]\nprot = 2\n"})
    site = str(write_vllm(tmp_path / "site", engine, server))
    found = diagnose(run, "serve", "--installed", site)
    assert found["vllm"]["arguments"] is None
    assert why in found["vllm"]["why"]
    assert found["findings"] == []
    assert f"not read     {site}/vllm: " in run("doctor", "--installed", site).out


def test_the_installed_vllm_is_that_of_the_python_on_path_then_that_beside_npuprof(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = write_vllm(tmp_path / "on_path")
    beside = write_vllm(tmp_path / "beside", ENGINE.replace("warp", "light"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(beside)])
    answer = [str(on_path)]
    monkeypatch.setattr(adapter_files, "ask_python", lambda code: json.dumps(answer).encode())
    assert diagnose(run)["vllm"]["uncatalogued"] == ["warp-speed"]
    answer.clear()
    found = diagnose(run)
    assert found["vllm"]["path"] == str(beside / "vllm")
    assert found["vllm"]["uncatalogued"] == ["light-speed"]
    assert found["findings"] == []  # no adapter is needed beside vLLM


def test_a_clone_of_vllm_in_the_current_folder_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_vllm(tmp_path / "clone"))
    monkeypatch.setattr(sys, "path", [str(Path.cwd()), *sys.path])
    assert find_packages("vllm") == []


def test_an_argument_that_the_vllm_beside_npuprof_reads_is_no_fault(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "serve.sh").write_text("vllm serve m --warp-speed 9 --swap-space 4 --warp-sped 1\n")
    preset = "[vllm]\nwarp-speed = 9\nswap-space = 4\nwarp-sped = 1\n"
    engine = ENGINE.replace('"--warp-speed"', '"--swap-space", "--warp-speed"')

    # in a scan, the installed vLLM stays the same, and answers are kept
    monkeypatch.setattr(single_settings, "_find_framework_faults", find_framework_faults)
    monkeypatch.setattr(lint, "_find_scope_faults", find_scope_faults)

    def list_codes() -> list[tuple[str, int]]:
        list_installed_arguments.cache_clear()
        scanned = run("scan", str(tmp_path / "serve.sh"), "--format", "json").out
        checked = run("check", "-", "--format", "json", stdin=preset.encode()).out
        both = [*json.loads(scanned)["findings"], *json.loads(checked)["findings"]]
        return [(each["code"], each["line"]) for each in both]

    everywhere = list_codes()
    site = write_vllm(tmp_path / "site", engine)
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    assert list_codes() == [("NP212", 1), ("NP212", 4)]
    in_script = [("NP212", 1), ("NP502", 1), ("NP212", 1)]
    assert everywhere == [*in_script, ("NP212", 2), ("NP502", 3), ("NP212", 4)]


@pytest.mark.parametrize(
    ("path", "message"),
    [("empty", "NP963: empty does not contain vLLM"), ("gone", "NP003: cannot read gone")],
)
def test_a_place_without_vllm_is_an_error(
    path: str, message: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    done = run("doctor", "--installed", path)
    assert done.code == 2
    assert message in done.err + done.out
