"""What scan calls an error is what the vendor's classes reject, on each surface."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.checks.meaning import read_truth
from npuprof.checks.setting_values import find_setting_faults
from support.importing import HEAD, TAIL, findings
from support.judging import SESSION, takes_argument, takes_attribute, takes_parameter
from support.recorders import ADAPTERS_OWN, ARGUMENTS, LEAVES

ESTIMATOR = "from npu_bridge.npu_init import *\n"
TF2 = "import npu_device as npu\n"
#: The recorded classes of the vendor are those of the newest release.
RELEASE = releases.load_releases()[-1]

#: Values of every type; what a name takes of them, the judges say.
PLAIN: tuple[Any, ...] = (None, True, False, 0, 1, -1, 1.5, "0", "true", "no_such_value", [])


def has_errors(text: str) -> bool:
    """Return whether scan reports an error about one line, apart from missing lines next to it."""
    return any(
        found.severity == "error" and (not found.code.startswith("NP3") or found.code == "NP381")
        for found in findings(text, cann=RELEASE)
    )


def misspell(name: str) -> str:
    return name[:-2] + name[-1] + name[-2] if name[-1] != name[-2] else name + "x"


def list_values(
    choices: tuple[Any, ...] | None, low: int | None = None, high: int | None = None
) -> Iterator[Any]:
    seen = set()
    ends = [value for end in (low, high) if end is not None for value in (end - 1, end, end + 1)]
    for value in (
        *(choices or ()),
        *ends,
        *PLAIN,
        *(str(choice).upper() for choice in choices or ()),
    ):
        if repr(value) not in seen:
            seen.add(repr(value))
            yield value


def disagreements(cases: Iterator[tuple[str, str, bool]]) -> tuple[int, list[str]]:
    """Return the number of judged lines, and those that the vendor's class judges differently."""
    count, wrong = 0, []
    for head, line, taken in cases:
        count += 1
        if has_errors(f"{head}{line}\n") is taken:
            wrong.append(f"{'taken' if taken else 'refused'}: {line}")
    return count, wrong


def list_attribute_lines() -> Iterator[tuple[str, str, bool]]:
    for path in sorted(ADAPTERS_OWN[1]):
        for value in list_values(LEAVES[path][0]):
            yield TF2, f"npu.global_options().{path} = {value!r}", takes_attribute(path, value)
        for other in {misspell(path), path.rpartition(".")[2], f"dump_config.{path}"}:
            yield TF2, f"npu.global_options().{other} = 'x'", takes_attribute(other, "x")


def list_argument_lines() -> Iterator[tuple[str, str, bool]]:
    required = {
        "DynamicInputConfig": {
            "input_shape": "a:1,-1",
            "dynamic_dims": "2;3",
            "dynamic_node_type": 0,
            "compile_hybrid_mode": 0,
        }
    }
    for cls, name in sorted(ADAPTERS_OWN[0]):
        choices, low, high = SESSION.get(ARGUMENTS[cls][name][1], ("", (), None, None, ""))[1:4]
        for value in list_values(choices, low, high):
            arguments = {**required.get(cls, {}), name: value}
            written = ", ".join(f"{argument}={item!r}" for argument, item in arguments.items())
            yield ESTIMATOR, f"made = {cls}({written})", takes_argument(cls, name, value)
        others = {
            misspell(name),
            *(
                argument
                for argument in ("enable_dump", "precision_mode")
                if (cls, argument) not in ADAPTERS_OWN[0]
            ),
        }
        for other in sorted(others):
            arguments = {**required.get(cls, {}), other: "x"}
            yield (
                ESTIMATOR,
                f"made = {cls}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})",
                False,
            )


def list_parameter_lines() -> Iterator[tuple[str, str, bool]]:
    for name, (field, choices, low, high, _) in SESSION.items():
        for value in list_values(choices, low, high):
            for written in (value, value.encode()) if isinstance(value, str) else (value,):
                line = f'custom_op.parameter_map["{name}"].{field} = {written!r}'
                yield HEAD, f"{line}\n{TAIL}", takes_parameter(name, field, written)
        for other, sample in (("b", True), ("i", 1), ("s", b"x")):
            if other != field:
                yield HEAD, f'custom_op.parameter_map["{name}"].{other} = {sample!r}\n{TAIL}', False


@pytest.mark.parametrize("value", ["True", "0", '"on"', '"600"', "1.5", 'b"0"'])
def test_what_scan_says_to_store_instead_is_taken_and_means_the_same(value: str) -> None:
    count = 0
    for name, (field, *_) in SESSION.items():
        for stored_as in ("b", "i", "s"):
            line = f'custom_op.parameter_map["{name}"].{stored_as} = {value}'
            for found in findings(f"{HEAD}{line}\n{TAIL}"):
                match = re.fullmatch(
                    (
                        r"write (?:parameter_map\[.*\]\.\w = "
                        r")?(True|False|-?\d+|tf\.compat\.as_bytes\((.+)\))"
                    ),
                    found.hint,
                )
                if (
                    match is None
                    or found.code not in ("NP802", "NP803")
                    or match[2] in ("...", '"..."')
                ):
                    continue
                count += 1
                suggested = (
                    ast.literal_eval(match[2]).encode() if match[2] else ast.literal_eval(match[1])
                )
                texts = [
                    literal.decode() if isinstance(literal, bytes) else literal
                    for literal in (ast.literal_eval(value), suggested)
                ]
                assert takes_parameter(name, field, suggested) or texts[0] == texts[1], (
                    line,
                    found.hint,
                )  # a text is kept as it is
                assert read_truth(texts[0]) in (None, read_truth(texts[1])), (line, found.hint)
    assert count >= 1


def test_a_variable_is_judged_in_a_script_as_in_a_preset() -> None:
    judged = 0
    cases = [*catalog.record_names("env")]
    assert cases
    for name in cases:
        variable = catalog.find_variable(name)
        assert variable is not None
        if variable.common_name:  # in a script it may be a name of the script's own
            continue
        for value in {*variable.choices[:2], *variable.tolerated, "1", "-1", "on", "no_such_value"}:
            # a script that works is no error, what a preset holds is documented
            bad = (
                ("warning",) if variable.otherwise and variable.framework == "cann" else ("error",)
            )
            in_script = {
                finding.code
                for finding in findings(f"export {name}='{value}'\n", "x.sh")
                if finding.severity in bad and finding.code != "NP501"
            }
            there = {
                fault.code
                for fault in find_setting_faults(f"env.{name}", value)
                if fault.severity == "error"
            }
            assert in_script == there, (name, value)
            judged += 1
    assert judged > 500


@pytest.mark.parametrize(
    ("lines", "least"),
    [(list_attribute_lines, 1000), (list_argument_lines, 1500), (list_parameter_lines, 1500)],
    ids=["global_options", "NPURunConfig", "parameter_map"],
)
def test_scan_agrees_with_the_classes_of_the_vendor(lines: Any, least: int) -> None:
    count, wrong = disagreements(lines())
    assert count >= least
    assert wrong == []
