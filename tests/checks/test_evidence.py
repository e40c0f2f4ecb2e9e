"""Rules from upstream's refusals, tried on what upstream's tests and public reports configure."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.building import REPOSITORY, findings

EVIDENCE = tomllib.loads((Path(__file__).parent / "evidence.toml").read_text())
RULES = {
    rule["code"]: rule
    for rule in tomllib.loads((REPOSITORY / "npuprof/catalog/rules.toml").read_text())["rule"]
    if rule["enforced"] == "framework"
}
REJECTED, ACCEPTED, NONE = EVIDENCE["rejected"], EVIDENCE["accepted"], EVIDENCE["none"]
#: An address, or a repository with the path of a test and the test.
SOURCE = re.compile(
    r"https://github\.com/[\w.-]+/[\w.-]+/(pull|issues)/\d+"
    r"|[\w.-]+/[\w.-]+ tests?/[\w./-]+\.((py|cc)(::[\w.]+)?|yaml)"
)


def list_rule_codes(row: dict[str, Any]) -> dict[str, str]:
    """Return the codes of these rules that a row's preset breaks, with their severities."""
    found = findings(row["preset"], versions=row.get("versions", {}), product=row.get("product"))
    return {f.code: f.severity for f in found if f.code in RULES}


def name_row(row: dict[str, Any]) -> str:
    """Return an id for a row: its rule and where it comes from."""
    return f"{row.get('code', 'accepted')} {row['from'].rsplit('/', 1)[-1]}"


@pytest.mark.parametrize("row", [pytest.param(row, id=name_row(row)) for row in REJECTED])
def test_a_configuration_that_upstream_rejects_breaks_its_rule(row: dict[str, Any]) -> None:
    assert list_rule_codes(row).get(row["code"]) == RULES[row["code"]]["severity"]


@pytest.mark.parametrize("row", [pytest.param(row, id=name_row(row)) for row in ACCEPTED])
def test_a_configuration_that_upstream_accepts_breaks_no_rule(row: dict[str, Any]) -> None:
    assert {code for code, level in list_rule_codes(row).items() if level != "info"} == set()


@pytest.mark.parametrize("code", RULES)
def test_a_rule_has_a_public_configuration_or_the_reason_why_not(code: str) -> None:
    has_row = any(row["code"] == code for row in REJECTED)
    assert has_row or code in NONE, (
        f"tests/checks/evidence.toml has nothing for {code}. Add a [[rejected]] row with code, "
        "from (a test upstream or an address), versions and preset; or, if neither tests nor "
        f"public reports have its settings together, add to [none]: {code} = "
        '{ searched = ["upstream", "public"], reason = "…" }.'
    )
    assert not (has_row and code in NONE), f"remove {code} from [none]: it has a configuration"


def test_evidence_names_rules_sources_and_searches() -> None:
    assert {row["code"] for row in REJECTED} | set(NONE) <= set(RULES)
    for row in (*REJECTED, *ACCEPTED):
        assert SOURCE.fullmatch(row["from"]), row["from"]
    for code, row in NONE.items():
        assert row["reason"], code
        assert set(row["searched"]) <= set(EVIDENCE["searched"]), code
        assert row["searched"], code


def test_most_rules_have_a_public_configuration() -> None:
    assert len({row["code"] for row in REJECTED}) >= 98
    assert len({row["code"] for row in REJECTED if not row.get("parsed")}) >= 91
    assert len(ACCEPTED) >= 49
