"""The summary of many scripts: important faults, shared settings, effects of a release."""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from npuprof.model import Finding, Place
from npuprof.scripts.summary.report import group_findings
from support.importing import HEAD, TAIL, write
from support.running import Run

MAP = 'custom_op.parameter_map["{}"].s = tf.compat.as_bytes({})\n'


def script(*settings: tuple[str, str]) -> str:
    return HEAD + "".join(MAP.format(*setting) for setting in settings) + TAIL


TREE: dict[str, str] = {
    "tree/a/train.py": script(("precision_mode", '"allow_mix_precision"')),
    "tree/b/train.py": script(("precision_mode", '"allow_mix_precision"')),
    "tree/c/train.py": script(
        ("precision_mode", '"allow_mix_precision"'), ("auto_tune_mode", '"GA"')
    ),
    "tree/d/train.py": script(
        ("precision_mode", "FLAGS.precision"), ("precison_mode", '"force_fp32"')
    ),
    "tree/e/train.py": script(("precision_mode", '"allow_mixed"'), ("dump_path", "FLAGS.dump")),
    "tree/f/train.py": script(("precision_mode", '"allow_mixed_precision"')),
    "tree/g/run.sh": (
        "export HCCL_CONNECT_TIMEOUT=600 RANK_ID=0\n"
        "atc --model=a.pb --framework=3 --output=a --soc_version=Ascend310P3\n"
    ),
    "tree/g/none.py": "print(1)\n",
    "tree/g/broken.py": f"{HEAD}custom_op.parameter_map[\n",
}


def test_what_a_helper_sets_is_counted_for_each_script_that_calls_it(
    tmp_path: Path, run: Run
) -> None:
    helper = (
        "def get_config():\n"
        f"{textwrap.indent(HEAD + MAP.format('precision_mode', repr('force_fp16')), '    ')} "
        "   return config\n"
    )
    caller = "from helper import get_config\nsess = tf.Session(config=get_config())\n"
    write(
        tmp_path,
        {
            "tree/helper.py": helper,
            "tree/a.py": caller,
            "tree/b.py": caller,
            "tree/c.py": TREE["tree/c/train.py"],
        },
    )
    counted = json.loads(run("scan", "tree", "--statistics", "--format", "json").out)
    read = json.loads(run("import", "tree", "--format", "json").out)
    of_helper = [item for item in read["settings"] if item["file"].endswith("helper.py")]
    assert len(read["settings"]) == 3
    assert len(read["followed"]) == 2
    assert len(of_helper) == 1
    assert counted["surfaces"][0]["settings"] == 3 + 2 - 1  # the helper's counts once per caller
    assert counted["counts"]["files"] == 4
    assert counted["counts"]["files_with_settings"] == 3


@pytest.mark.accepted
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (
            "scan-upgrade.txt",
            ["scan", "tree", "--statistics", "--cann", "9.0.0", "--from", "8.0.0"],
        ),
        ("scan.html", ["scan", "tree", "--statistics", "--cann", "9.0.0", "--format", "html"]),
        ("scan.txt", ["scan", "tree", "--statistics"]),
    ],
)
def test_a_tree_is_told_as_accepted(
    name: str, arguments: list[str], tmp_path: Path, run: Run, golden: Callable[[str, str], None]
) -> None:
    write(tmp_path, dict(TREE))
    golden(f"summary/{name}", run(*arguments).out)


def test_the_counts_are_those_of_the_tree(tmp_path: Path, run: Run) -> None:
    write(tmp_path, dict(TREE))
    done = run("scan", "tree", "--statistics", "--format", "json")
    report = json.loads(done.out)
    assert done.code == 1
    assert report["schema"] == "npuprof.scan-statistics/1"
    assert report["counts"]["files"] == 9
    assert report["counts"]["files_with_settings"] == 7
    assert report["counts"]["files_unread"] == 1
    findings = json.loads(run("scan", "tree", "--format", "json").out)["findings"]
    severities = [finding["severity"] for finding in findings]
    assert report["counts"]["errors"] == severities.count("error")
    shown = sum(row["places"] for name in ("mistakes", "deprecated") for row in report[name])
    assert shown == len(severities) - severities.count("info")


@pytest.mark.parametrize(
    ("rows", "order"),
    [
        (
            [("NP501", "auto_tune_mode", "warning", 9), ("NP201", "x", "error", 1)],
            ["NP201", "NP501"],
        ),
        (
            [("NP201", "dump_pth", "error", 2), ("NP201", "precison_mode", "error", 1)],
            ["precison_mode", "dump_pth"],
        ),
    ],
)
def test_errors_come_first_then_numerics_then_what_most_scripts_have(
    rows: list[tuple[str, str, str, int]], order: list[str]
) -> None:
    findings = [
        Finding(code, f"{code} of {key}", key=key, where=Place(f"{n}.py", 1, 1), severity=severity)
        for code, key, severity, n_files in rows
        for n in range(n_files)
    ]
    groups = group_findings(findings)
    assert order in ([group.code for group in groups], [group.key for group in groups])
    assert {(group.code, group.key): len(group.files) for group in groups} == {
        (code, key): n_files for code, key, _, n_files in rows
    }


def test_one_fault_in_many_words_is_one_that_is_told_in_the_most_usual_ones() -> None:
    messages = ["'a' is unknown", "'b' is unknown", "'b' is unknown", "'c' is unknown"]
    (group,) = group_findings(
        Finding("NP203", message, key="precision_mode", where=Place("x.py", line, 1))
        for line, message in enumerate(messages, 1)
    )
    assert group.message == "'b' is unknown"
    assert group.first == "x.py:2:1"
    assert group.places == 4
    assert group.wordings == 2
    assert group.files == ("x.py",)


@pytest.mark.parametrize(
    ("setting", "arguments", "touched"),
    [
        (("auto_tune_mode", '"GA"'), ["--cann", "9.0.0"], ("auto_tune_mode", "decide")),
        (("auto_tune_mode", '"GA"'), ["--cann", "5.0.4"], ("auto_tune_mode", "deprecated")),
        (("precision_mode", '"force_fp32"'), ["--cann", "9.0.0"], ("precision_mode", "rename")),
        (
            ("precision_mode", '"force_fp16"'),
            ["--cann", "9.0.0"],
            ("precision_mode", "decide"),
        ),  # training or not is not said
        (("graph_memory_max_size", '"1"'), ["--cann", "9.0.0"], ("graph_memory_max_size", "drop")),
        (("precision_mode_v2", '"origin"'), ["--cann", "5.0.4"], ("precision_mode_v2", "gone")),
        (
            ("static_memory_policy", "1"),
            ["--cann", "9.0.0"],
            None,
        ),  # as text it is refused, and no step is about that
        (("dump_path", '"a"'), ["--cann", "9.0.0", "--from", "8.0.0"], ("hccl_timeout", "default")),
        (
            ("dump_path", '"a"'),
            ["--cann", "7.0.RC1", "--from", "6.3.RC2"],
            None,
        ),  # a default of TensorFlow 2 alone changed
    ],
)
def test_what_a_release_touches_is_told_with_its_scripts(
    setting: tuple[str, str],
    arguments: list[str],
    touched: tuple[str, str] | None,
    tmp_path: Path,
    run: Run,
) -> None:
    write(tmp_path, {"x.py": script(setting)})
    done = run("scan", "--statistics", "x.py", *arguments, "--format", "json")
    rows = json.loads(done.out)["upgrade"]
    if touched is None:
        assert rows == []
        return
    name, kind = touched
    found = [row for row in rows if row["kind"] == kind and name in row["what"]]
    assert found
    assert all(row["names"] == ["x.py"] and row["try"] for row in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scan", "x.py", "--statistics", "--from", "8.0.0"], "say --cann RELEASE as well"),
        (
            ["scan", "x.py", "--statistics", "--from", "9.0.0", "--cann", "8.0.0"],
            "--from 9.0.0 is later",
        ),
    ],
)
def test_what_has_no_place_in_a_report_is_refused(
    arguments: list[str], message: str, tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"x.py": script(("precision_mode", '"origin"'))})
    done = run(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert "try:" in done.err


@pytest.mark.parametrize("name", ["<script>alert(1)<.py", "a\nb.py"])
def test_hostile_names_and_values_of_a_tree_stay_text(name: str, tmp_path: Path, run: Run) -> None:
    value = "</td><script src=http://x/>"
    lines = script(
        ("precision_mode", repr(value)),
        (value, repr(value + "\x1b")),
        ("dump_path", f"FLAGS[{value!r}]"),
    )
    write(tmp_path, {f"tree/{name}": lines, "tree/b.py": lines})
    page = run("scan", "tree", "--statistics", "--cann", "9.0.0", "--format", "html").out
    assert html.escape(value) in page
    assert "<script" not in page
    assert not {
        char
        for char in page + run("scan", "tree", "--statistics").out
        if not char.isprintable() and char != "\n"
    }
    assert (
        json.loads(run("scan", "tree", "--statistics", "--format", "json").out)["counts"]["files"]
        == 2
    )
