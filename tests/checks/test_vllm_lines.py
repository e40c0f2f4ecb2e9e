"""Lines that vLLM's parser and its classes were asked about: what they refuse is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.vllm_files import fetch_parser, load_record
from support.vllm_lines import (
    SHARES,
    TABLE,
    find_preset_errors,
    find_script_errors,
    judge_lines,
    list_presets,
    write_line,
)

ROWS = json.loads(TABLE.read_text("utf-8"))


@pytest.mark.parametrize("release", ROWS)
def test_a_line_is_an_error_in_a_script_and_in_a_preset_if_vllm_refuses_it(release: str) -> None:
    record = load_record(release)
    wrong, missed, presets = [], {"script": 0, "preset": 0}, 0
    for verdict, lines in ROWS[release].items():
        for words in lines:
            is_right = verdict == "accepted"
            errors = find_script_errors(words, release)
            missed["script"] += not is_right and not errors
            wrong += [f"{write_line(words)}{errors[0]}"] if is_right and errors else []
            for preset in list_presets(words, record):
                errors = find_preset_errors(preset, release)
                presets += not is_right
                missed["preset"] += not is_right and not errors
                wrong += [f"{preset}{errors[0]}"] if is_right and errors else []
    assert not wrong, "\n".join(wrong)
    assert {verdict: len(lines) for verdict, lines in ROWS[release].items()} == SHARES
    assert missed["script"] <= 0.13 * (SHARES["parser"] + SHARES["class"])
    assert presets > 100
    assert missed["preset"] <= 0.1 * presets


@pytest.mark.nightly(
    "checks/test_vllm_lines.py"
    "::test_a_line_is_an_error_in_a_script_and_in_a_preset_if_vllm_refuses_it"
)
@pytest.mark.timeout(1500)
def test_vllm_itself_says_what_is_recorded(tmp_path: Path) -> None:
    python, folder = fetch_parser("0.18.0", tmp_path)
    for verdict, lines in ROWS["0.18.0"].items():
        assert set(judge_lines(str(python), str(folder), lines)) == {verdict}
