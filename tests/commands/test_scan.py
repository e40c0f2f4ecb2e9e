"""What ``scan`` prints for a tree: certain and likely findings, groups, and what was not judged."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from npuprof.hosting import reports
from npuprof.model import Finding, Place
from support.importing import write
from support.running import Run

#: A key that no known release of vLLM-Ascend has.
UNKNOWN = "vllm serve m --additional-config '{\"weight_prefetch_confg\": {}}'\n"


@pytest.mark.parametrize(
    ("arguments", "mark", "code"),
    [
        ([], "likely", 0),
        (["--strict"], "likely", 1),
        (["--framework", "vllm_ascend=0.18.0"], "certain", 1),
    ],
)
def test_an_unknown_setting_is_likely_wrong_until_a_release_is_named(
    arguments: list[str], mark: str, code: int, tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"serve.sh": UNKNOWN})
    done = run("scan", "serve.sh", *arguments, "--format", "json")
    (finding,) = json.loads(done.out)["findings"]
    assert finding["code"] == "NP212"
    assert finding["certainty"] == mark
    assert done.code == code
    assert ("NP212: likely: " in run("scan", "serve.sh", *arguments).out) == (mark == "likely")


#: Faults of each kind: a name, a key in JSON, a choice, a type and a range.
FAULTY = (
    "vllm serve m --prot 1 --dtype int3 --max-num-seqs lots --gpu-memory-utilization 92 "
    '--speculative-config \'{"methd": "ngram", "num_speculative_tokens": "three"}\'\n'
)


@pytest.mark.parametrize(
    ("named", "code"),
    [
        pytest.param(["vllm_ascend=0.23.0"], 1, id="recorded"),
        pytest.param(["vllm=0.18.0"], 1, id="vLLM recorded"),
        pytest.param(["vllm_ascend=0.60.0"], 0, id="newer"),
        pytest.param(["vllm=0.60.0"], 0, id="vLLM newer"),
        pytest.param(["vllm_ascend=0.11.0"], 0, id="without a record"),
        pytest.param(["vllm=0.11.0"], 0, id="vLLM without a record"),
        pytest.param(["vllm_ascend=0.60.0", "vllm=0.23.0"], 1, id="on a recorded vLLM"),
    ],
)
def test_arguments_of_a_release_that_nobody_has_read_are_no_certain_errors(
    named: list[str], code: int, tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"serve.sh": FAULTY})
    flags = [word for release in named for word in ("--framework", release)]
    done = run("scan", "serve.sh", *flags, "--format", "json")
    assert done.code == code
    found = json.loads(done.out)["findings"]
    assert sum(each["severity"] == ("error" if code else "warning") for each in found) == 6


def test_the_formats_of_services_name_likely_findings() -> None:
    finding = Finding(
        "NP212", "is unknown", where=Place("a.sh", 1), severity="warning", certainty="likely"
    )
    (result,) = json.loads(reports.FORMATS["sarif"]([finding]))["runs"][0]["results"]
    assert result["level"] == "warning"
    assert result["properties"] == {"certainty": "likely"}
    assert "::likely: is unknown" in reports.FORMATS["github"]([finding])


#: Scripts with the same wrong value, and one of each other topic.
TREE = {
    **{f"tree/examples/{n}.sh": "export HCCL_CONNECT_TIMEOUT=abc\n" for n in range(18)},
    "tree/a/old.sh": "export ASCEND_SLOG_PRINT_TO_STDOUT=1\n",
    "tree/a/name.sh": "export HCCL_BUFFSIZ=200\n",
    "tree/tests/run.sh": "export HCCL_CONNECT_TIMEOUT=abc\n",
    "tree/z/run.sh": "export HCCL_CONNECT_TIMEOUT=def\n",
    "tree/README.md": "```sh\nexport HCCL_CONNECT_TIMEOUT=abc\n```\n",
}


def test_many_findings_of_a_folder_are_groups_in_the_order_of_their_topics(
    tmp_path: Path, run: Run
) -> None:
    write(tmp_path, TREE)
    lines = run("scan", "tree", "--docs", "--severity", "info").out.split("\n")
    heads = [line for line in lines if re.fullmatch(r"[A-Z][a-z ,]+: \d+ findings?", line)]
    assert heads == [
        "Names and syntax: 1 finding",
        "Values: 19 findings",
        "In documents: 1 finding",
        "In tests: 1 finding",
        "Notes: 1 finding",
    ]
    first, second = (line for line in lines if " NP202: " in line and line[0] in "23")
    assert '"abc"' in first
    assert '"def"' in second
    shown = "tree/examples/0.sh:1:8, tree/examples/1.sh:1:8, tree/examples/10.sh:1:8"
    assert f"   where: in 18 files: {shown} and 15 more; at risk: distributed" in lines
    assert "       1         0  tree/examples/0.sh" in lines
    for flag in ("--statistics", "--write-baseline", "--format sarif"):
        assert sum(flag in line for line in lines) == 1, flag


@pytest.mark.parametrize(
    "arguments",
    [
        ["tree", "--all"],
        ["tree/a", "tree/z"],
        [f"tree/examples/{n}.sh" for n in range(18)] + ["tree/a/name.sh"] * 3 + ["tree/z/run.sh"],
    ],
    ids=["all", "few", "files"],
)
def test_few_findings_and_those_of_named_files_are_listed_one_by_one(
    arguments: list[str], tmp_path: Path, run: Run
) -> None:
    write(tmp_path, TREE)
    out = run("scan", *arguments).out
    assert "tree/a/name.sh:1:8: warning NP206: " in out
    assert "--statistics" not in out


def test_findings_below_a_folder_for_tests_come_last(tmp_path: Path, run: Run) -> None:
    wrong = "export HCCL_CONNECT_TIMEOUT=abc\n"
    write(tmp_path, {"tree/tests/a.sh": wrong, "tree/z/b.sh": wrong})
    listed = json.loads(run("scan", "tree", "--format", "json").out)["findings"]
    assert [finding["path"] for finding in listed] == ["tree/z/b.sh", "tree/tests/a.sh"]
    # the folder itself may be named so
    write(tmp_path, {"tests/a.sh": wrong, "tests/fixtures/b.sh": wrong, "tests/z.sh": wrong})
    listed = json.loads(run("scan", "tests", "--format", "json").out)["findings"]
    assert [finding["path"] for finding in listed] == [
        "tests/a.sh",
        "tests/z.sh",
        "tests/fixtures/b.sh",
    ]


def test_what_was_seen_and_not_judged_is_counted_with_lines(tmp_path: Path, run: Run) -> None:
    train = (
        "export HCCL_CONNECT_TIMEOUT=600\n"
        'ARGS="\n    --tensor-model-parallel-size 8\n    --bf16"\n'
        "# torchrun pretrain.py --bf16\n"
        "torchrun $ARGS pretrain.py \\\n    --bf16 --lr 1\n"
        "pip install --no-deps x\n"
        'case "$1" in\n  --help) exit;;\nesac\n'
        "vllm serve m --seed 1\n"
    )
    files = {
        "tree/train.sh": train,
        "tree/ds.json": '{"zero_optimization": {\n"stage": 2}}\n',
        "tree/data.json": '{"a": 1}\n',
        "tree/model.yaml": "a: 1\nb:\n  - c: 2\n",
        "tree/options.yaml": "precision_mode_v2: origin\n",
    }
    write(tmp_path, files)
    covered = json.loads(run("scan", "tree", "--format", "json").out)["coverage"]
    assert {seen["surface"]: (seen["lines"], seen["files"]) for seen in covered["not_judged"]} == {
        "program arguments": (3, 1),
        "YAML": (3, 1),
        "DeepSpeed configs": (2, 1),
        "options that other code interprets": (1, 1),
    }
    shown = "3 lines of program arguments in 1 file"
    noted = run("scan", "tree").err
    assert "5 files scanned: no findings in 3 checked settings (1 note " in noted
    assert f"\n  not judged: 3 lines of YAML in 1 file, {shown}, 2 lines of " in noted
    assert f" 1 file, {shown}, 2 lines of " in run("import", "tree", "--format", "text").err
    write(tmp_path, {"none/a.yaml": files["tree/model.yaml"]})
    assert ": nothing was checked; no settings\n" in run("scan", "none").err


@pytest.mark.parametrize("name", ["a.sh", "a.yaml"])
def test_counting_a_hostile_line_ends(name: str, tmp_path: Path, run: Run) -> None:
    write(tmp_path, {f"tree/{name}": f"{'-' * 400_000}\n--{'a' * 400_000})\n- a: 1\n"})
    done = run("scan", "tree")
    assert done.code == 0
    assert ("1 line of YAML" in done.err) == (name == "a.yaml")
