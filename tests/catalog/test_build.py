"""The build of the catalogue: conditions with unknown names, and releases in conditions."""

from __future__ import annotations

import tomllib
from typing import Any, NamedTuple

import pytest

from npuprof.catalog import build, condition, releases
from npuprof.catalog.releases import load_releases


def build_rule(
    monkeypatch: pytest.MonkeyPatch, file: str, before: str, after: str
) -> dict[str, Any]:
    """Return the built catalogue after a text in one of its files was replaced once."""

    def read(name: str) -> dict[str, Any]:
        text = (build.HERE / name).read_text()
        assert name != file or before in text
        return tomllib.loads(text.replace(before, after, 1) if name == file else text)

    monkeypatch.setattr(build, "_read_toml_file", read)
    return build.build_parts()


class UnknownNameCase(NamedTuple):
    file: str
    before: str
    after: str
    message: str


@pytest.mark.parametrize(
    ("file", "before", "after", "message"),
    [
        pytest.param(
            *UnknownNameCase(
                file="rules.toml",
                before='when = "precision_mode_v2 is set',
                after='when = "precison_mode_v2 is set',
                message="rules.toml: NP301: unknown name 'precison_mode_v2' in "
                '"precison_mode_v2 is set and precision_mode is set": '
                "did you mean 'precision_mode_v2'",
            ),
            id="when of a rule",
        ),
        pytest.param(
            *UnknownNameCase(
                file="rules.toml",
                before='needs = "precision_mode in',
                after='needs = "precision_mod in',
                message="rules.toml: NP302: unknown name 'precision_mod'",
            ),
            id="needs of a rule",
        ),
        pytest.param(
            *UnknownNameCase(
                file="rules.toml",
                before="env.ENABLE_HF32_EXECUTION is set",
                after="env.ENABLE_HF32_EXECUTON is set",
                message="rules.toml: advice on op_precision_mode: ",
            ),
            id="advice",
        ),
        pytest.param(
            *UnknownNameCase(
                file="releases.toml",
                before='when = "fp_point is set"',
                after='when = "fp_pont is set"',
                message="releases.toml: M24: unknown name 'fp_pont'",
            ),
            id="migration",
        ),
        pytest.param(
            *UnknownNameCase(
                file="options/deprecated.toml",
                before="iterations_per_loop != 1",
                after="iteration_per_loop != 1",
                message="options/deprecated.toml: enable_data_pre_proc: "
                "unknown name 'iteration_per_loop'",
            ),
            id="deprecated option",
        ),
        pytest.param(
            *UnknownNameCase(
                file="frameworks/cann/variables.toml",
                before="env.PROFILING_MODE is set",
                after="env.PROFILING_MOD is set",
                message="frameworks/cann/variables.toml: env.PROFILING_OPTIONS: "
                "unknown name 'env.PROFILING_MOD'",
            ),
            id="variable",
        ),
        pytest.param(
            *UnknownNameCase(
                file="releases.toml",
                before='when = "fp_point is set"',
                after="when = \"cann >= '8.5'\"",
                message="releases.toml: M24: unknown name 'cann'",
            ),
            id="version compared",
        ),
    ],
)
def test_an_unknown_name_in_a_condition_fails_the_build(
    monkeypatch: pytest.MonkeyPatch, file: str, before: str, after: str, message: str
) -> None:
    with pytest.raises(ValueError, match="unknown name") as raised:
        build_rule(monkeypatch, file, before, after)
    assert str(raised.value).startswith(message)


NAMES = {"hccl_timeout", "product", "scenario", "env.HCCL_CONNECT_TIMEOUT", "vllm_ascend.refresh"}
AXES = {axis: releases.load_axis(axis) for axis in ("cann", "torch_npu", "vllm_ascend")}


@pytest.mark.parametrize(
    "text",
    [
        "cann >= '8.x'",
        "cann >= 8.5",
        "cann >= ('8.5', '9.0')",
        "cann == '8.4'",
        "cann in ('8.5', '8.4')",
        "vllm_ascend < '0.1'",
        "cann is set",
        "cann.x == '8.5'",
        "'8.5' <= cann",
        "cann == product",
        "cann",
        "cann * 2 > 1",
        "torch_npu > '3.0'",
        "hccl_timeout > 1 and not (vllm_ascend == 'new')",
        "hccl_timeout >",
        "hccl_timeout.max == 1 or hccl_timout == 1",
        "env.HCCL_TIMEOUT is set",
        "vllm_ascend.fresh == true",
    ],
)
def test_a_condition_that_cannot_be_evaluated_is_an_error_that_names_its_record(text: str) -> None:
    with pytest.raises(ValueError, match=r"^rules\.toml: NP999: "):
        build.parse_condition(text, "rules.toml: NP999", NAMES, AXES)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("cann >= '8.5'", "8.5.0", "9.2.0"),
        ("cann > '8.5'", "9.0.0", "9.2.0"),
        ("cann < '8.0.RC1'", "20.1", "7.0.0.alpha003"),
        ("cann <= '8.4'", "20.1", "8.3.RC1"),  # a bound between two releases
        ("cann == '8.1'", "8.1.RC1", "8.1.RC1"),
        ("cann in ('8.5', '9.0.0')", "8.5.0", "9.0.0"),
        ("not cann < '9.1'", "9.1.0", "9.2.0"),
        ("cann > '8.3' and cann != '8.5'", "9.0.0", "9.2.0"),
        ("cann not in ('9.1', '9.2') and cann >= '8.1'", "8.2.RC1", "9.0.0"),
        ("vllm_ascend > '0.9' and vllm_ascend < '0.11'", "0.9.1rc1", "0.11.0rc3"),
        ("vllm_ascend == '0.10.0rc1'", "0.10.0rc1", "0.10.0rc1"),
        ("torch_npu >= '7.1' and torch_npu < '26'", "7.1.0", "7.3.1"),
        ("torch_npu > '2.9.0'", "7.3.1", "26.2.0-beta.1"),
        ("torch_npu == '2.9.0.post2'", "26.0.0", "26.0.0"),
    ],
)
def test_releases_in_a_condition_are_those_of_a_range(text: str, first: str, last: str) -> None:
    tree = build.parse_condition(text, "", NAMES, AXES)
    axis = condition.collect_condition_paths(tree)[0][0]
    known = load_releases(axis)
    met = [
        name
        for name in known
        if condition.evaluate_condition(tree, lambda path, name=name: (True, name))
    ]  # type: ignore[misc]
    assert met == list(known[known.index(first) : known.index(last) + 1])


def test_the_newest_stable_release_is_not_a_candidate() -> None:
    assert {axis: releases.find_newest_stable(axis) for axis in AXES} == {
        "cann": "9.2.0",
        "torch_npu": "26.1.0",
        "vllm_ascend": "0.23.0.post1",
    }
