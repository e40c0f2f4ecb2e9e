"""Graph dumps, of which only the nodes that carry options are read.

The result is that of reading each line, at less cost.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuprof.catalog.wire import load_attribute_names
from npuprof.runs.evidence import graph_dump, line_splitting
from npuprof.runs.evidence.evidence_files import read_evidence
from npuprof.runs.verdicts import judge_process
from support.growth import count_calls
from support.logged import write_dump

#: What most nodes of a graph are like: some text in them looks like the end of a node, or like an
#: option.
PLAIN = """node {
  name: "layer_7/dense/MatMul"
  op: "MatMul"
  input: "layer_7/x"
  attr {
    key: "_output_shapes"
    value {
      list {
        shape {
        }
      }
    }
  }
  attr {
    key: "_class"
    value {
      s: "a\\n}\\nnode {\\n _graph_run_mode \\"_job\\""
    }
  }
}
"""


def read_dumps(path: Path) -> list[Any]:
    return [process.dumps for process in read_evidence([str(path)]).processes]


def test_a_dump_says_the_same_in_pieces_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "_graph_run_mode": "1",
        **dict.fromkeys(sorted(load_attribute_names())[:40], "a\\n}\\nb"),
    }
    library = 'library {\n  function {\n    node_def {\n      name: "a"\n    }\n  }\n}\n'
    long = PLAIN.replace("layer_7/x", "y" * 9_000)
    whole = (
        PLAIN * 3
        + write_dump(texts, end="")
        + long
        + library
        + write_dump({**texts, "_job": "x" * 300}, "GeOp")
    )
    path, found = tmp_path / "a.pbtxt", 0
    for end in range(len(whole) // 2, len(whole) + 1, 501):
        path.write_text(whole[:end])
        monkeypatch.setattr(line_splitting, "_PIECE", 1 << 24)
        at_once = read_dumps(path)
        for size in (1 << 8, 700, 1 << 12):
            monkeypatch.setattr(line_splitting, "_PIECE", size)
            assert read_dumps(path) == at_once, (end, size)
        found += sum(map(len, at_once))
    assert found > 10
    path.write_text(PLAIN + write_dump(texts, end="").removesuffix("\n"))
    ((dump,),) = read_dumps(path)
    assert dump[1].whole, "only the last newline is missing"


def test_a_block_that_is_too_long_ends_and_what_follows_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_dump, "_LONGEST_BLOCK", 5_000)
    monkeypatch.setattr(line_splitting, "_PIECE", 700)
    options = write_dump(
        dict.fromkeys(["_graph_run_mode", *sorted(load_attribute_names())[:40]], "1"), end=""
    )
    weights = PLAIN.replace("layer_7/x", "y" * 20_000)
    path = tmp_path / "a.pbtxt"
    path.write_text(PLAIN + weights + options + weights)
    ((dump,),) = read_dumps(path)
    assert len(dump[1].values) == 41
    assert dump[1].whole
    path.write_text(weights + options + weights[:-5])
    ((dump,),) = read_dumps(path)
    assert len(dump[1].values) == 41
    assert not dump[1].whole


def test_a_node_without_options_costs_next_to_nothing(tmp_path: Path) -> None:
    def build_reading(number: int) -> Callable[[], object]:
        path = tmp_path / f"{number}.pbtxt"
        path.write_text(PLAIN * number + write_dump({"_graph_run_mode": "1"}))
        return lambda: read_evidence([str(path)])

    assert (count_calls(build_reading(5_000)) - count_calls(build_reading(1_000))) / 4_000 < 4


NAMES = ["_graph_run_mode", *sorted(load_attribute_names())[:29]]


@pytest.mark.parametrize(
    "lost",
    [
        "  attr {\n",
        f'    key: "{NAMES[9]}"\n',
        "    value {\n",
        '      s: "text9"\n',
        f'    key: "{NAMES[9]}"\n    value {{\n',
    ],
)
def test_a_node_that_has_lost_a_line_says_nothing_of_what_it_does_not_have(
    tmp_path: Path, lost: str
) -> None:
    text = write_dump({name: f"text{number}" for number, name in enumerate(NAMES)})
    (tmp_path / "BeforeSubGraph_1.pbtxt").write_text(text)
    assert (
        judge_process({"no_such_key": 1}, read_evidence([str(tmp_path)]).processes[0])[0].state
        == "absent"
    )
    first, rest = text[: text.index(NAMES[9]) - 20], text[text.index(NAMES[9]) - 20 :]
    (tmp_path / "BeforeSubGraph_1.pbtxt").write_text(first + rest.replace(lost, "", 1))
    states = [
        judge_process({"no_such_key": 1}, process)[0].state
        for process in read_evidence([str(tmp_path)]).processes
    ]
    assert states in (["cannot tell"], [])  # a node with too few attributes is none


@pytest.mark.parametrize(("text", "state"), [('"0|5"', "in force"), ('"0"5"', "cannot tell")])
def test_a_text_with_a_quotation_mark_that_is_not_escaped_is_not_read(
    tmp_path: Path, text: str, state: str
) -> None:
    dump = write_dump({**dict.fromkeys(NAMES, "x"), "_enable_dump": "1", "_dump_step": "0|5"})
    (tmp_path / "BeforeSubGraph_1.pbtxt").write_text(dump.replace('"0|5"', text))
    (process,) = read_evidence([str(tmp_path)]).processes
    assert judge_process({"dump_step": "0|5"}, process)[0].state == state
