"""Flags of an ``atc`` command line that are judged together, in a script as in a preset, and flags
that are empty.
"""

from __future__ import annotations

import pytest

from npuprof import catalog, checks
from npuprof.scripts.preset import build_drafts
from support.building import config, toml
from support.importing import findings, imported

#: What stands together: one flag judged by what another one, or the chip, says.
TOGETHER = [
    ("Ascend910B1", {"output_type": "a:0:FP16", "out_nodes": "a:0"}, ""),
    ("Ascend910B1", {"output_type": "a:0:FP16"}, "NP912"),
    ("Ascend910B1", {"deterministic_level": "0", "deterministic": "1"}, "NP912"),
    ("Ascend310B1", {"input_shape": "a:1~10,3"}, "NP409"),
    ("Ascend910B1", {"is_input_adjust_hw_layout": "true,false", "input_fp16_nodes": "a;b"}, ""),
    ("Ascend910B1", {"is_output_adjust_hw_layout": "true", "out_nodes": "a:0;b:0"}, "NP912"),
    ("Ascend910B1", {"dynamic_batch_size": "1,2", "input_shape": "a:-1,3;b:4"}, ""),
    (
        "Ascend910B1",
        {"dynamic_image_size": "1,2;3,4", "input_shape": "a:1,3,2,2", "input_format": "NCHW"},
        "NP382",
    ),
    ("Ascend910B1", {"framework": 5, "input_format": "NCDHW"}, ""),
    ("Ascend910B1", {"optimization_switch": "A:on;B:off"}, ""),
    ("Ascend910B1", {"optimization_switch": "A=on"}, "NP205"),
]


@pytest.mark.parametrize(("chip", "given", "code"), TOGETHER)
def test_flags_are_judged_by_those_beside_them_in_a_line_and_in_a_preset(
    chip: str, given: dict[str, str | int], code: str
) -> None:
    flags = {"framework": 3, "soc_version": chip, **given}
    line = " ".join(f"--{name}='{value}'" for name, value in flags.items())
    scanned = {
        finding.code
        for finding in findings(f"atc --model=a --output=o {line}\n", "x.sh")
        if finding.severity != "info"
    }
    assert scanned == ({code} if code else set())
    own = {name: value for name, value in flags.items() if catalog.find_option(name) is None}
    options = {
        name: int(value) if name == "deterministic" else value
        for name, value in flags.items()
        if name not in own
    }
    document = toml({"profile": {"scenario": "offline-inference"}, "options": options, "atc": own})
    assert {
        finding.code for finding in checks.check_config(config(document), notes=False)
    } == scanned


#: In api/atc/atc_flags.cc of hicann/ge the default of these is the empty text; cmd_flag_info.cc
#: compares ``STOPPING`` with a table.
EMPTY = ("output_type", "input_shape", "host_env_os")


@pytest.mark.parametrize("line", ["--{}=", '--{} ""', "--{}=''"])
@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_flag_is_one_that_is_not_given(name: str, line: str) -> None:
    text = (
        f"atc --model=a.pb --framework=3 --output=o --soc_version=Ascend310P3 {line.format(name)}\n"
    )
    (found,) = findings(text, "x.sh")
    assert (found.code, found.severity) == ("NP502", "warning")
    assert found.message == f"--{name} is empty, which atc takes as not given"
    (draft,) = build_drafts(imported(text, "x.sh"))
    assert [note.why for note in draft.notes] == ["empty, which atc takes as not given"]
