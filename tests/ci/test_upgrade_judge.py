"""What .ci/upgrade_judge.py makes of a made-up package in place of vLLM-Ascend's."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from support.building import REPOSITORY

CONFIG = """
from vllm.logger import logger
from vllm.utils.math_utils import cdiv
import torch_npu


class Inner:
    share = 0.5

    def __init__(self, given):
        self.enabled = given.get("enabled", False)


class AscendConfig:
    def __init__(self, vllm_config):
        self.vllm_config = vllm_config
        given = vllm_config.additional_config
        if unknown := given.keys() - {"inner", "fast", "words", "hardware", "elsewhere"}:
            raise ValueError(f"unknown: {sorted(unknown)}")
        from vllm_ascend import envs
        from vllm_ascend.utils import is_small

        self.inner = Inner(given.get("inner", {}))
        self.fast = self._get_config_value(given, "fast", "MADE_UP_FAST", envs.MADE_UP_FAST)
        self.words = cdiv(given.get("words", 7), 2)
        self.small = is_small(vllm_config)
        self.has_latent_attention = vllm_config.model_config.is_deepseek_mla
        if "hardware" in given:
            self.cores = vllm_config.device_config.number_of_cores
        logger.info_once("%s", torch_npu.npu.get_device_name())

    @staticmethod
    def _get_config_value(given, key, variable, value):
        return given.get(key, value)


def init_ascend_config(vllm_config):
    return AscendConfig(vllm_config)
"""
ENVS = """
import os
env_variables = {"MADE_UP_FAST": lambda: bool(int(os.getenv("MADE_UP_FAST", "0")))}


def __getattr__(name):
    return env_variables[name]()
"""
WORKER = """
import os
SLOW = os.getenv("VLLM_MADE_UP"), os.getenv("OMP_NUM_THREADS")
def start(vllm_config):
    return vllm_config.additional_config["elsewhere"]
"""
UTILS = """
import torch
from vllm.sequence import IntermediateTensors


class Tensors(IntermediateTensors):
    pass


@torch.inference_mode()
def unused():
    pass


_SMALL = None  # remembered, as upstream does


def is_small(vllm_config):
    global _SMALL
    if _SMALL is None:
        _SMALL = vllm_config.parallel_config.tensor_parallel_size < 4
    return _SMALL
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("release")
    (folder / "vllm_ascend").mkdir()
    texts = {
        "__init__": "",
        "ascend_config": CONFIG,
        "envs": ENVS,
        "utils": UTILS,
        "worker": WORKER,
    }
    for name, text in texts.items():
        (folder / "vllm_ascend" / f"{name}.py").write_text(text)
    lines: list[dict[str, Any]] = [
        {},
        {
            "additional_config": {"inner": {"enabled": True}, "words": 8},
            "env": {"MADE_UP_FAST": "1"},
            "model": "mla",
        },
        {"additional_config": {"wrods": 8}},
        {"env": {"MADE_UP_FAST": "yes"}},
        {"additional_config": {"hardware": True}},
        {
            "additional_config": {"elsewhere": 1},
            "env": {"VLLM_MADE_UP": "1", "OMP_NUM_THREADS": "1"},
        },
    ]
    done = subprocess.run(
        [sys.executable, REPOSITORY / ".ci/upgrade_judge.py", folder],
        input="".join(f"{json.dumps(line)}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_defaults_of_inner_tables_are_in_effect_too(answers: list[dict[str, Any]]) -> None:
    assert answers[0] == {
        "effective": {
            "ascend.fast": False,
            "ascend.has_latent_attention": False,
            "ascend.inner.enabled": False,
            "ascend.inner.share": 0.5,
            "ascend.small": True,
            "ascend.words": 4,
            "env.MADE_UP_FAST": False,
        },
        "links": {"env.MADE_UP_FAST": "ascend.fast"},
    }


def test_settings_variables_and_the_model_count(answers: list[dict[str, Any]]) -> None:
    usual, found = answers[0]["effective"], answers[1]["effective"]
    assert {name: value for name, value in found.items() if usual[name] != value} == {
        "ascend.fast": True,
        "ascend.has_latent_attention": True,
        "ascend.inner.enabled": True,
        "env.MADE_UP_FAST": True,
    }


def test_a_stop_has_upstreams_message(answers: list[dict[str, Any]]) -> None:
    assert answers[2] == {"stops": "ValueError: unknown: ['wrods']"}
    assert answers[3]["stops"].startswith("ValueError: invalid literal for int()")


def test_a_stop_that_a_stand_in_causes_is_unclear(answers: list[dict[str, Any]]) -> None:
    assert answers[4]["unclear"]
    assert "number_of_cores" in answers[4]["stops"]


def test_settings_that_other_files_read_are_named(answers: list[dict[str, Any]]) -> None:
    usual, found = answers[0]["effective"], answers[5]["effective"]
    assert found.keys() - usual.keys() == {"read.vllm_ascend.elsewhere", "read.env.VLLM_MADE_UP"}
