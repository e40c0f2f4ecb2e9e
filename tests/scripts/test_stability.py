"""Whether a scan of a file depends on other files, on their order and on batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from npuprof.model import Context
from npuprof.scripts import scanning, steps
from npuprof.scripts.reading.shells.known_variables import find_constants
from npuprof.scripts.shell_lexer import parse_shell_commands
from support.importing import write

if TYPE_CHECKING:
    from pathlib import Path

ENABLE = "import os\ndef enable(size):\n    os.environ['HCCL_BUFFSIZE'] = size\n"
#: Three modules that import each other; the first and the last re-export what the second defines.
CYCLE = {
    "first.py": "from second import enable\n",
    "second.py": f"from third import other\n{ENABLE}",
    "third.py": "from first import enable\n",
    "use_a.py": "from first import enable\nenable('a')\n",
    "use_z.py": "from third import enable\nenable('z')\n",
}
#: A package whose modules import the package that imports them, as in large frameworks.
PACKAGE = {
    "suite/__init__.py": "from .trainer import Trainer\nfrom .tools import enable\n",
    "suite/trainer.py": "from suite.tools import get_logger\nclass Trainer:\n    pass\n",
    "suite/tools/__init__.py": "from .logger import get_logger\nfrom .switches import enable\n",
    "suite/tools/logger.py": "from suite import Trainer\ndef get_logger(): pass\n",
    "suite/tools/switches.py": f"from suite.tools.logger import get_logger\n{ENABLE}",
    "use_a.py": "from suite.tools.switches import enable\nenable('a')\n",
    "use_z.py": "from suite import enable\nenable('z')\n",
}


@pytest.fixture(name="tree", params=[CYCLE, PACKAGE], ids=["three modules", "package"])
def _tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write(tmp_path, request.param)
    return tmp_path


def _scan(*paths: Path) -> list[str]:
    """Return the findings of a scan: one for each caller."""
    result = scanning.scan_scripts(list(map(str, paths)), Context(), None, None)
    messages = sorted(f"{finding.where} {finding.message}" for finding in result.findings)
    assert len(messages) == 2
    return messages


def test_unrelated_files_change_no_result(tree: Path) -> None:
    before = _scan(tree)
    added = {f"use_b{number:02}.py": "" for number in range(100)}
    write(tree, dict(added))
    with_empty_files = _scan(tree)
    for name in added:
        (tree / name).unlink()
    assert with_empty_files == before
    assert _scan(tree) == before


def test_batches_change_no_result(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _scan(tree)
    monkeypatch.setattr(scanning, "_BATCH", 1)
    assert _scan(tree) == before


def test_the_order_of_files_changes_no_result(tree: Path) -> None:
    files = sorted(tree.rglob("*.py"))
    assert _scan(*files) == _scan(*reversed(files))


VALUES = "[" + "'1'," * 100 + "]"
#: Short texts that take more steps than there are.
ENDLESS_PYTHON = {
    "nested loops": (
        f"for a in {VALUES}:\n for b in {VALUES}:\n  for c in {VALUES}:\n"
        "   os.environ['HCCL_BUFFSIZE'] = a\n"
    ),
    "doubled names": (
        "v0 = '1'\n"
        + "".join(f"v{n} = v{n - 1} if q else v{n - 1}\n" for n in range(1, 25))
        + "os.environ['HCCL_BUFFSIZE'] = v24\n" * 100
    ),
    "assigned attributes": (
        "import npu_device as npu\nop.a0 = npu.global_options()\n"
        + "".join(f"op.a{n} = op.a{n - 1}\n" * 20 for n in range(1, 10))
        + "op.a9.precision_mode = 'x'\n"
    ),
    "many settings": "os.environ['HCCL_BUFFSIZE'] = '1'\n" * 2_000,
}


ENDLESS = {
    **{title: ("a.py", f"import os\n{text}") for title, text in ENDLESS_PYTHON.items()},
    "words": ("a.sh", "export HCCL_BUFFSIZE=1\necho" + " a" * 30_000),
    "nested substitutions": ("a.sh", f"export HCCL_BUFFSIZE={'$(echo ' * 900}1{')' * 900}\n"),
    "long values": ("a.sh", f"A={'a' * 5_000}\nexport HCCL_BUFFSIZE={'$A' * 500}\n"),
    "subshells": ("a.sh", "(export HCCL_BUFFSIZE=1)\n" * 300 + "python a.py\n" * 3_000),
    "unset variables": ("a.sh", "export HCCL_BUFFSIZE=1\nunset HCCL_BUFFSIZE\n" * 300),
    "cut values": ("a.sh", "export HCCL_BUFFSIZE=1 b\n" * 600),
    "JSON values": ("a.json", f'{{"HCCL_BUFFSIZE": [{"1, " * 20_000}1]}}'),
    "YAML values": ("a.yaml", f"HCCL_BUFFSIZE: [{'1, ' * 20_000}1]"),
    "aliases": (
        "a.yaml",
        "lists:\n- &a0 [b]\n"
        + "".join(f"- &a{n} [{f'*a{n - 1}, ' * 10}]\n" for n in range(1, 12))
        + "model: m\nadditional_config: {b: *a11}\n",
    ),
}


@pytest.mark.parametrize(("name", "text"), ENDLESS.values(), ids=ENDLESS.keys())
def test_a_file_beyond_its_steps_is_one_finding_and_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setattr(steps, "MOST_STEPS", 100_000)
    wrong = "import os\nos.environ['HCCL_BUFFSIZE'] = 'x'\n"
    write(tmp_path, {name: text, "b.py": wrong})
    result = scanning.scan_scripts([str(tmp_path)], Context(), None, None)
    beyond, other = sorted(result.findings, key=lambda finding: finding.code, reverse=True)
    assert beyond.code == "NP801"
    assert name in str(beyond.where)
    assert "steps" in beyond.message
    assert "b.py" in str(other.where)


def test_a_shell_variable_that_doubles_another_stays_short() -> None:
    doubled = "".join(f"v{n}=$v{n - 1}$v{n - 1}\n" for n in range(1, 21))
    constants = find_constants(list(parse_shell_commands(f"v0=a\n{doubled}")))
    assert max(map(len, constants.values())) == 8192
