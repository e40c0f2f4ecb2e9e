"""Flags of an ``atc`` command line: checked together, in a script as in a preset, and empty."""

from __future__ import annotations

import pytest

from npuprof import catalog, checks
from npuprof.scripts.preset import build_drafts
from support.building import config, toml
from support.importing import findings, imported

#: A chip, flags of which one is checked by another or by the chip, and the code of the finding.
TOGETHER = [
    pytest.param(
        "Ascend910B1",
        {"output_type": "a:0:FP16", "out_nodes": "a:0"},
        "",
        id="output types with their nodes",
    ),
    pytest.param(
        "Ascend910B1", {"output_type": "a:0:FP16"}, "NP912", id="output types without nodes"
    ),
    pytest.param(
        "Ascend910B1",
        {"deterministic_level": "0", "deterministic": "1"},
        "NP912",
        id="two levels of determinism",
    ),
    pytest.param(
        "Ascend310B1", {"input_shape": "a:1~10,3"}, "NP409", id="a range on a chip without ranges"
    ),
    pytest.param(
        "Ascend910B1",
        {"is_input_adjust_hw_layout": "true,false", "input_fp16_nodes": "a;b"},
        "",
        id="a switch for each input",
    ),
    pytest.param(
        "Ascend910B1",
        {"is_output_adjust_hw_layout": "true", "out_nodes": "a:0;b:0"},
        "NP912",
        id="one switch for two outputs",
    ),
    pytest.param(
        "Ascend910B1",
        {"dynamic_batch_size": "1,2", "input_shape": "a:-1,3;b:4"},
        "",
        id="batch sizes with an open dimension",
    ),
    pytest.param(
        "Ascend910B1",
        {"dynamic_image_size": "1,2;3,4", "input_shape": "a:1,3,2,2", "input_format": "NCHW"},
        "NP382",
        id="image sizes with a fixed shape",
    ),
    pytest.param(
        "Ascend910B1",
        {"framework": 5, "input_format": "NCDHW"},
        "",
        id="a format of framework 5",
    ),
    pytest.param(
        "Ascend910B1", {"optimization_switch": "A:on;B:off"}, "", id="switches with a colon"
    ),
    pytest.param(
        "Ascend910B1", {"optimization_switch": "A=on"}, "NP205", id="switches with an equals sign"
    ),
]


@pytest.mark.parametrize(("chip", "own_flags", "code"), TOGETHER)
def test_flags_are_judged_by_those_beside_them_in_a_line_and_in_a_preset(
    chip: str, own_flags: dict[str, str | int], code: str
) -> None:
    flags = {"framework": 3, "soc_version": chip, **own_flags}
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
    checked = {finding.code for finding in checks.check_config(config(document), notes=False)}
    assert checked == scanned


#: In api/atc/atc_flags.cc of hicann/ge the default of these is the empty text; cmd_flag_info.cc
#: compares ``STOPPING`` with a table.
EMPTY = ("output_type", "input_shape", "host_env_os")


@pytest.mark.parametrize("line", ["--{}=", '--{} ""', "--{}=''"])
@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_flag_is_one_that_is_not_given(name: str, line: str) -> None:
    text = (
        f"atc --model=a.pb --framework=3 --output=o --soc_version=Ascend310P3 {line.format(name)}\n"
    )
    (finding,) = findings(text, "x.sh")
    assert finding.code == "NP502"
    assert finding.severity == "warning"
    assert finding.message == f"--{name} is empty, which atc takes as not given"
    (draft,) = build_drafts(imported(text, "x.sh"))
    assert [note.why for note in draft.notes] == ["empty, which atc takes as not given"]
