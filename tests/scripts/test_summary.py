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
    return HEAD + "".join(MAP.format(*one) for one in settings) + TAIL


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
    told = json.loads(run("import", "tree", "--format", "json").out)
    of_helper = [one for one in told["settings"] if one["file"].endswith("helper.py")]
    assert (len(told["settings"]), len(told["followed"]), len(of_helper)) == (3, 2, 1)
    assert (
        counted["surfaces"][0]["settings"]
        == len(told["settings"]) + len(told["followed"]) - len(of_helper)
        == 4
    )
    assert (counted["counts"]["files"], counted["counts"]["files_with_settings"]) == (4, 3)


@pytest.mark.accepted
@pytest.mark.parametrize(
    ("name", "words"),
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
    name: str, words: list[str], tmp_path: Path, run: Run, golden: Callable[[str, str], None]
) -> None:
    write(tmp_path, dict(TREE))
    golden(f"summary/{name}", run(*words).out)


def test_the_counts_are_those_of_the_tree(tmp_path: Path, run: Run) -> None:
    write(tmp_path, dict(TREE))
    done = run("scan", "tree", "--statistics", "--format", "json")
    told = json.loads(done.out)
    assert (done.code, told["schema"]) == (1, "npuprof.scan-statistics/1")
    assert (
        told["counts"]["files"],
        told["counts"]["files_with_settings"],
        told["counts"]["files_unread"],
    ) == (9, 7, 1)
    findings = json.loads(run("scan", "tree", "--format", "json").out)["findings"]
    assert told["counts"]["errors"] == sum(one["severity"] == "error" for one in findings)
    shown = sum(row["places"] for name in ("mistakes", "deprecated") for row in told[name])
    assert shown == sum(one["severity"] != "info" for one in findings)


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
    assert [one.code for one in groups] == order or [one.key for one in groups] == order
    assert {(one.code, one.key): len(one.files) for one in groups} == {
        (code, key): n_files for code, key, _, n_files in rows
    }


def test_one_fault_in_many_words_is_one_that_is_told_in_the_most_usual_ones() -> None:
    said = ["'a' is unknown", "'b' is unknown", "'b' is unknown", "'c' is unknown"]
    [one] = group_findings(
        Finding("NP203", text, key="precision_mode", where=Place("x.py", n, 1))
        for n, text in enumerate(said, 1)
    )
    assert (one.message, one.first, one.places, one.wordings, one.files) == (
        "'b' is unknown",
        "x.py:2:1",
        4,
        2,
        ("x.py",),
    )


@pytest.mark.parametrize(
    ("setting", "words", "told"),
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
    words: list[str],
    told: tuple[str, str] | None,
    tmp_path: Path,
    run: Run,
) -> None:
    write(tmp_path, {"x.py": script(setting)})
    rows = json.loads(run("scan", "--statistics", "x.py", *words, "--format", "json").out)[
        "upgrade"
    ]
    found = [row for row in rows if told and row["kind"] == told[1] and told[0] in row["what"]]
    assert bool(found) == (told is not None)
    assert told or not rows
    assert all(row["names"] == ["x.py"] and row["try"] for row in found)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["scan", "x.py", "--statistics", "--from", "8.0.0"], "say --cann RELEASE as well"),
        (
            ["scan", "x.py", "--statistics", "--from", "9.0.0", "--cann", "8.0.0"],
            "--from 9.0.0 is later",
        ),
    ],
)
def test_what_has_no_place_in_a_report_is_refused(
    words: list[str], said: str, tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"x.py": script(("precision_mode", '"origin"'))})
    done = run(*words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
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
