"""``doctor --report``: what a first report from an NPU has, and what never gets into one.

No NPU is at hand: npu-smi, the packages and torch are stand-ins made here.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Callable
from email import message_from_string
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof.commands import first_report
from npuprof.system import processes
from support.running import Run, Store

#: The table of npu-smi, in the form of its documentation: the names differ by product.
TABLE = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc2                 Version: 24.1.rc2                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     {name:<20}| OK            | 92.2        44                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3340 / 65536         |
+===========================+===============+====================================================+
| 1     {name:<20}| Alarm         | 91.0        45                0    / 0             |
| 0                         | 0000:01:00.0  | 0           0    / 0          3341 / 65536         |
+===========================+===============+====================================================+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 3210          | python3                  | 910                     |
"""
SMI = """\
#!/bin/sh
test "$*" = info || exit 9
cat <<'END'
{table}END
"""
#: A torch without anything but what the self-test needs.
TORCH = """
from types import SimpleNamespace
npu = SimpleNamespace(
    set_compile_mode=lambda jit_compile: None, get_device_name=lambda device: "Ascend910B3"
)

class ones:
    def __init__(self, size): self.size = size
    def npu(self): return self
    def __mul__(self, other): return ones(self.size * other)
    def sum(self): return self.size
"""
#: It logs the variables that it reads, as the releases do on request.
TORCH_NPU = """
import os, sys
"os.environ.get('NOT_CODE')"
NAME = "TASK_QUEUE_ENABLE"
if "env" in os.environ["TORCH_NPU_LOGS"]:
    place = "torch_npu/utils/patch_getenv.py:15"
    line = f"I1127 10:00:01.000000 {os.getpid()} {place}] get env {NAME} = {os.environ[NAME]}"
    print(line, file=sys.stderr)
os.environ.get("ASCEND_WARP_SPEED"), os.getenv("HCCL_BUFFSIZE"), os.environ["NEW_SWITCH"]
""".replace('os.environ["NEW_SWITCH"]', "\"os.environ.get('NOT_CODE')\"")


class Machine:
    """A machine with stand-ins: its import folder, and its programs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site, self.programs, self.root = folder / "site", folder / "bin", folder / "Ascend"
        for made in (self.site, self.programs):
            made.mkdir()
        (self.programs / "python3").symlink_to(sys.executable)
        monkeypatch.setenv("PATH", f"{self.programs}:/usr/bin:/bin")
        inherited = os.environ.get("PYTHONPATH", "")
        monkeypatch.setenv("PYTHONPATH", f"{self.site}:{inherited}")
        monkeypatch.setattr(first_report, "ROOT", str(self.root))

    def add_program(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def install(self, name: str, version: str, code: str = "") -> None:
        package = self.site / name
        package.mkdir()
        (package / "__init__.py").write_text(code)
        info = self.site / f"{name}-{version}.dist-info"
        info.mkdir()
        shown = name.replace("_", "-")
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {shown}\nVersion: {version}\n"
        )
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n{name}/gone.py,,\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def report(run: Run) -> Callable[[], dict[str, Any]]:
    """Make a report; return its fields."""

    def command() -> dict[str, Any]:
        done = run("doctor", "--report", "-", "--format", "json")
        assert done.code == 0, done.err
        fields: dict[str, Any] = json.loads(done.out)
        return fields

    return command


Report = Callable[[], dict[str, Any]]


def test_a_machine_with_nothing_has_a_report_that_says_so(
    machine: Machine, tmp_path: Path, run: Run
) -> None:
    done = run("doctor", "--report", tmp_path / "report.md")
    assert done.code == 0
    text = (tmp_path / "report.md").read_text()
    before, fenced = text.split("```json\n")
    assert "send it to" in before
    fields = json.loads(fenced.removesuffix("```\n"))
    assert fields["schema"] == "npuprof.first_report/1"
    assert [fields[name] for name in ("adapter", "vllm", "cann", "driver")] == [None] * 4
    assert [fields[name] for name in ("versions", "self_test")] == [{}, {}]
    assert fields["npu_smi"]["installed"] is False


def test_a_preset_adds_what_does_not_fit_to_it_but_not_its_name(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"acme": "[options]\nhccl_timeout = 600\n"})
    monkeypatch.setenv("ASCEND_GLOBAL_LOG_LEVEL", "ninety")
    done = run("doctor", "acme", "--report", "-")
    assert done.code == 0
    assert "acme" not in done.out + done.err
    assert "ninety" not in done.out
    fields = json.loads(done.out.split("```")[1].removeprefix("json"))
    assert ["NP203", "env.ASCEND_GLOBAL_LOG_LEVEL"] in fields["findings"]


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("910B3", "atlas-a2"),
        ("310P3", "atlas-inference"),
        ("Ascend910", None),  # of A3, and of others: its table has half of the name
        ("777X", None),
    ],
)
def test_versions_and_product(
    name: str, product: str | None, machine: Machine, report: Report
) -> None:
    machine.add_program("npu-smi", SMI.format(table=TABLE.format(name=name)))
    toolkit = machine.root / "ascend-toolkit/latest/aarch64-linux"
    toolkit.mkdir(parents=True)
    (toolkit / "ascend_toolkit_install.info").write_text(
        "package_name=Ascend-cann-toolkit\nversion=8.5.0\ninnerversion=V100R001C25\n"
        f"path={machine.root}\n"
    )
    (machine.root / "driver").mkdir()
    (machine.root / "driver/version.info").write_text("Version=25.0.rc1\npackage_version=25\n")
    fields = report()
    assert (fields["cann"], fields["driver"]) == ("8.5.0", "25.0.rc1")
    assert fields["npu_smi"] == {
        "installed": True,
        "version": "24.1.rc2",
        "chips": [name, name],
        "products": {name: product},
    }


def test_a_version_file_of_the_older_form(machine: Machine, report: Report) -> None:
    home = machine.root / "ascend-toolkit/latest"
    home.mkdir(parents=True)
    (home / "version.cfg").write_text(
        "# version: 1.0\nruntime_running_version=[7.2.0.1.231:8.0.RC1]\n"
    )
    assert report()["cann"] == "8.0.RC1"


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\necho dcmi module initialize failed. ret is -8005\nexit 255\n",
        "#!/bin/sh\nsleep 100\n",
        "#!/nowhere/sh\n",
    ],
    ids=["fails", "hangs", "cannot start"],
)
def test_an_npu_smi_that_says_nothing_is_a_result(
    text: str, machine: Machine, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 2)
    machine.add_program("npu-smi", text)
    empty = {"installed": True, "version": None, "chips": [], "products": {}}
    assert report()["npu_smi"] == empty


@pytest.mark.parametrize("serving", [False, True])
def test_the_self_test_renders_runs_and_verifies(
    serving: bool, machine: Machine, report: Report
) -> None:
    if serving:
        machine.install("vllm_ascend", "0.23.0")
        machine.install("vllm", "0.23.0")
        platforms = "class current_platform:\n    device_type = 'npu'\n"
        (machine.site / "vllm/platforms.py").write_text(platforms)
    machine.install("torch", "2.9.0+cpu", TORCH)
    machine.install("torch_npu", "2.9.0", TORCH_NPU)
    fields = report()
    assert {"torch": "2.9.0+cpu", "torch_npu": "2.9.0"}.items() <= fields["versions"].items()
    assert fields["unknown_variables"]["torch_npu"] == ["ASCEND_WARP_SPEED"]
    assert fields["self_test"]["torch_npu"] == {
        "exit": 0,
        "steps": [
            *("start", "import", "options", "compute", "Ascend910B3"),
            *(["vllm", "npu"] if serving else []),
        ],
        "signs": [],
        "settings": {"env.TASK_QUEUE_ENABLE": "in force"},
    }


@pytest.mark.parametrize(
    ("code", "signs"),
    [
        ("raise ImportError('libhccl.so: cannot open')", ["ImportError", "NP970", "libhccl.so"]),
        ("import numpie", ["ModuleNotFoundError", "NP970", "numpie"]),
        (
            "raise SystemExit('EI0001: x ERR99999 507033')",
            ["507033", "EI0001", "ERR99999", "NP970"],
        ),
    ],
)
def test_what_fails_without_an_npu_is_said(
    code: str, signs: list[str], machine: Machine, report: Report
) -> None:
    machine.install("torch", "2.9.0", TORCH)
    machine.install("torch_npu", "2.9.0", code)
    found = report()["self_test"]["torch_npu"]
    assert (found["exit"], found["steps"], found["settings"]) == (1, ["start"], {})
    assert found["signs"] == signs


@pytest.mark.parametrize("package", first_report._TESTS)
def test_what_a_self_test_runs_is_python_with_the_function_that_it_calls(package: str) -> None:
    preset, target, script = first_report._TESTS[package]
    code = npuprof.render(npuprof.loads(preset), target)
    compile(f"{first_report._SCRIPT}{code}{script}", package, "exec")
    made = re.findall(r"(?m)^def (\w+)", code)
    assert any(f"{function}()" in script for function in made)


def test_a_self_test_that_hangs_is_ended(
    machine: Machine, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = first_report._SCRIPT.replace("alarm(100)", "alarm(1)")
    assert script != first_report._SCRIPT
    monkeypatch.setattr(first_report, "_SCRIPT", script)
    machine.install("torch", "2.9.0", TORCH)
    machine.install("torch_npu", "2.9.0", "import time\ntime.sleep(100)")
    found = report()["self_test"]["torch_npu"]
    assert (found["exit"], found["steps"]) == (-14, ["start"])


def test_the_self_test_imports_nothing_of_the_current_folder(
    machine: Machine, report: Report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("torch", "json", "typing", "npuprof", "sitecustomize"):
        (clone / f"{name}.py").write_text(f"open({str(tmp_path / 'started')!r}, 'w')\n")
    (clone / "npuprof.toml").write_text("[[[")
    monkeypatch.chdir(clone)
    machine.install("torch", "2.9.0", TORCH)
    machine.install("torch_npu", "2.9.0", TORCH_NPU)
    assert report()["self_test"]["torch_npu"]["exit"] == 0
    assert not (tmp_path / "started").exists()


def test_a_package_that_is_installed_editable_is_read(
    machine: Machine, report: Report, tmp_path: Path
) -> None:
    machine.install("vllm_ascend", "0.23.0rc1")
    checkout = tmp_path / "check out" / "vllm_ascend"
    checkout.mkdir(parents=True)
    (checkout / "envs.py").write_text(
        'import os\nenv_variables = {"VLLM_ASCEND_WARP": lambda: os.getenv("VLLM_ASCEND_WARP")}\n'
    )
    origin = {"url": checkout.parent.as_uri(), "dir_info": {"editable": True}}
    place = machine.site / "vllm_ascend-0.23.0rc1.dist-info" / "direct_url.json"
    place.write_text(json.dumps(origin))
    assert report()["unknown_variables"] == {"vllm_ascend": ["VLLM_ASCEND_WARP"]}


def test_parsing_ends_in_time(
    machine: Machine, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_report, "_PARSING", 0)
    machine.install("vllm_ascend", "0.23.0", 'import os\nos.getenv("VLLM_ASCEND_WARP")\n')
    fields = report()
    assert (fields["unknown_variables"], fields["parsed"]) == ({"vllm_ascend": []}, False)


def test_the_address_is_that_of_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "names no address" in first_report.find_recipient()
    text = "Name: npuprof\nProject-URL: Homepage, https://example.org\n"
    text += "Project-URL: Issues, https://example.org/npuprof/issues\n"
    found = SimpleNamespace(metadata=message_from_string(text))
    monkeypatch.setattr(metadata, "distributions", lambda name: [found])
    assert first_report.find_recipient() == "https://example.org/npuprof/issues"


# -- what no report has ---------------------------------------------------------------------------

#: A host, a user, an address, a token and a password, wherever the outside can put one.
PLANTED = {
    "host": "trainer17.lab.example.com",
    "user": "alice",
    "home": "/home/alice",
    "address": "10.11.12.13",
    "token": "hf_abcdefghijklmnopqrstuvwxyz",
    "password": "hunter2hunter2",
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_nothing_private_is_reported(
    planted: str, machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(platform, "node", lambda: PLANTED["host"])
    monkeypatch.setenv("LOGNAME", PLANTED["user"])
    monkeypatch.setenv("HOME", PLANTED["home"])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("DB_PASSWORD", PLANTED["password"])
    monkeypatch.setenv("HF_TOKEN", PLANTED["token"])
    monkeypatch.setenv("ASCEND_HOME_PATH", f"{machine.root}/{planted}")
    for name in ("HCCL_IF_IP", "ASCEND_GLOBAL_LOG_LEVEL", f"X_{planted.upper()}".replace("/", "_")):
        monkeypatch.setenv(name, planted)
    named = planted.upper().replace("/", "_").replace(".", "_")
    smi = f"| npu-smi Version: {planted} |\nVersion: 1.{planted}\nhost {planted}\n"
    smi += f"| 0  {planted} | OK |\n| 1  910{planted[:8]} | OK |\n"
    machine.add_program("npu-smi", SMI.format(table=smi))
    for folder, name in (("driver", "version.info"), ("cann", "version.cfg")):
        (machine.root / folder).mkdir(parents=True)
        (machine.root / folder / name).write_text(f"path={planted}\nVersion={planted}\n")
    machine.install("torch", "2.9.0", TORCH)
    version = f"1.0+{planted.strip('/').replace('/', '.')}"
    machine.install("vllm_ascend", version, f"import os\nos.getenv('X_{named}', '{planted}')\n")
    code = f"import sys\nprint('{planted}', 'step {planted}')\nprint('\\nstep {planted}')\n"
    code += f"print('lib/{planted}/libx.so', '{planted}.Error')\n"
    machine.install("torch_npu", "2.9.0", code + f"raise OSError('{planted}/x {planted}')")
    done = run("doctor", "--report", "-")
    assert done.code == 0, done.err
    assert '"OSError"' in done.out
    shown = done.out.casefold()
    for text in {planted, planted.partition(".")[0] if "com" in planted else planted, named}:
        assert text.casefold() not in shown, done.out
    assert str(tmp_path) not in done.out


@given(text=st.text(max_size=30), planted=st.sampled_from([*PLANTED.values()]))
def test_no_text_with_something_private_passes(text: str, planted: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(platform, "node", lambda: PLANTED["host"])
        patch.setenv("LOGNAME", PLANTED["user"])
        patch.setenv("DB_PASSWORD", PLANTED["password"])
        written = {f"{text}-{planted}-{text}": [f"{text}+{planted}", text, 1, None], "x y": text}
        cleaned = first_report._hide_private(json.dumps(written))
    assert planted not in cleaned
    (found, *_), plain = json.loads(cleaned).values()
    assert found == "***"
    assert plain in (text, "***")
    assert not set("@\\\n\"'") & set(plain)


def test_versions_chips_and_names_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "LOGNAME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(platform, "node", lambda: "npu")
    texts = ["2.9.0+cpu", "7.3.0.1.231", "Ascend910_9392", "CUDA_ROOT_DIR", "env.HCCL_ALGO"]
    texts += ["global_options().hcom_parallel", "torch_npu", "default or set"]
    text = json.dumps([*texts, None, 3])
    assert first_report._hide_private(text) == text
