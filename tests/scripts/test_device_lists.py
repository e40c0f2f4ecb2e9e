"""Lists of devices: their order, their numbers in a container, and the variable of containers."""

from __future__ import annotations

import pytest

from support.building import findings as find_preset_faults
from support.importing import findings, imported


@pytest.mark.parametrize(
    ("text", "right"), [("1,0", "0,1"), ("0,0", "0"), ("2,3,1", "1,2,3"), ("10,9", "9,10")]
)
def test_a_device_list_must_ascend(text: str, right: str) -> None:
    (finding,) = findings(f"export ASCEND_RT_VISIBLE_DEVICES={text}\n", "a.sh")
    assert finding.code == "NP203"
    assert finding.severity == "error"
    assert finding.hint == f'write "{right}"'
    preset = f'[env]\nASCEND_RT_VISIBLE_DEVICES = "{text}"\n'
    assert finding.message in [fault.message for fault in find_preset_faults(preset)]
    assert not findings(f"export ASCEND_RT_VISIBLE_DEVICES={right}\n", "a.sh")


def test_a_number_of_any_length_is_no_internal_error() -> None:
    (finding,) = findings(f"export ASCEND_RT_VISIBLE_DEVICES={'1' * 5000},2\n", "a.sh")
    assert finding.code == "NP203"


COMPOSE = (
    "services:\n  a:\n    environment:\n"
    "      ASCEND_VISIBLE_DEVICES: 4,5\n      ASCEND_RT_VISIBLE_DEVICES: {}\n"
)


def test_numbers_of_the_host_in_a_container_are_reported() -> None:
    run = "docker run -e ASCEND_VISIBLE_DEVICES=4,5 -e ASCEND_RT_VISIBLE_DEVICES={} a\n"
    assert [fault.code for fault in findings(run.format("4,5"), "a.sh")] == ["NP3112"]
    assert [fault.code for fault in findings(COMPOSE.format('"4,5"'), "a.yaml")] == ["NP3112"]
    assert not findings(run.format("0,1"), "a.sh")
    assert not findings(COMPOSE.format('"0,1"'), "a.yaml")
    # outside of containers, both may have the numbers of the host
    text = "export ASCEND_VISIBLE_DEVICES=4,5\nexport ASCEND_RT_VISIBLE_DEVICES=4,5\npython a.py\n"
    assert not findings(text, "a.sh")


EXPORT = "export ASCEND_VISIBLE_DEVICES=1,2\n"


@pytest.mark.parametrize(
    "text", [f"{EXPORT}vllm serve /m\n", "ASCEND_VISIBLE_DEVICES=1,2 python a.py\n"]
)
def test_a_script_that_sets_the_devices_of_a_container_for_a_program_has_a_warning(
    text: str,
) -> None:
    (finding,) = findings(text, "a.sh")
    assert finding.code == "NP841"
    assert "ASCEND_RT_VISIBLE_DEVICES" in finding.hint
    (setting,) = [it for it in imported(text, "a.sh").settings if it.surface == "env"]
    assert setting.unused


#: Scripts in which something reads the variable.
READERS = {
    "docker": f"{EXPORT}docker run -e ASCEND_VISIBLE_DEVICES a python a.py\n",
    "docker alone": "docker run -e ASCEND_VISIBLE_DEVICES=1 a python a.py\n",
    "the script": f"{EXPORT}python a.py --devices $ASCEND_VISIBLE_DEVICES\n",
    "nothing here": EXPORT,
    "another selection": f"{EXPORT}export ASCEND_RT_VISIBLE_DEVICES=1\npython a.py\n",
}


@pytest.mark.parametrize("case", READERS)
def test_the_devices_of_a_container_are_set_where_something_reads_them(case: str) -> None:
    assert not findings(READERS[case], "a.sh")
