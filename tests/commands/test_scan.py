"""What ``scan`` prints for a tree: certain and likely findings, groups, and what was not judged."""

from __future__ import annotations

import json
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


def test_the_formats_of_services_name_likely_findings() -> None:
    finding = Finding(
        "NP212", "is unknown", where=Place("a.sh", 1), severity="warning", certainty="likely"
    )
    (result,) = json.loads(reports.FORMATS["sarif"]([finding]))["runs"][0]["results"]
    assert result["level"] == "warning"
    assert result["properties"] == {"certainty": "likely"}
    assert "::likely: is unknown" in reports.FORMATS["github"]([finding])
