"""What the readers of variables and of flags of ATC take, although it is not spelled as documented; each case names its source."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from npuprof import catalog
from npuprof.catalog.readers import NOT_FOUND
from npuprof.checks.settings import find_setting_faults, find_value_faults
from npuprof.checks.surfaces import OFFLINE
from npuprof.checks.view import Scope
from npuprof.scripts.preset import build_drafts, judge_draft
from support.building import REPOSITORY
from support.importing import findings, imported

FILES: dict[str, dict[str, dict[str, Any]]] = tomllib.loads((REPOSITORY / "npuprof/catalog/readers.toml").read_text())
READERS = {name: file for file, readers in FILES.items() for name in readers}
SECTIONS = {"env": catalog.find_variable, "atc": catalog.find_flag}
HABITS: dict[str, set[Any]] = {
    "any_case": {True}, "blanks": {"all", "around", "behind"}, "trailing": {",", ";", ":"}, "number": {True},
}  # fmt: skip


#: Variables of CANN whose reader nobody found: three of documented pages, the others of names without one.
NOT_FOUND_IN_CANN = 25


def list_named() -> dict[tuple[str, str], str]:
    """Return the readers that rows with listed values or a form name, empty where a row names none."""
    found = {}
    for section, find in SECTIONS.items():
        for name in catalog.record_names(section):
            record: Any = find(name)
            if (record.choices or record.pattern or record.reader) and not getattr(record, "reads", ""):
                found[section, name] = record.reader
    return found


def test_every_row_with_listed_values_or_a_form_names_its_reader() -> None:
    named = list_named()
    assert [row for row, reader in named.items() if reader != NOT_FOUND and reader not in READERS] == []
    assert READERS.keys() <= set(named.values()), "a reader of nothing"
    described = [name for (section, name), reader in named.items() if reader == NOT_FOUND and section == "env"]
    of_cann = [name for name in described if (record := catalog.find_variable(name)) and record.framework == "cann"]

    assert len(of_cann) <= NOT_FOUND_IN_CANN


def test_every_reader_has_one_source_and_known_habits() -> None:
    assert len(READERS) == sum(map(len, FILES.values()))
    for source, readers in FILES.items():
        repository, path = source.split()
        assert repository.count("/") == 1, source
        assert "." in path.rpartition("/")[2], source
        for name, habits in readers.items():
            assert all(value in HABITS[habit] for habit, value in habits.items()), name


ENTRY = "hicann/hccl src/common/alg_env_config.cc"
INPUT = "libochao-huawei/hcomm src/platform/common/externalinput.cc"
SHAPES = "hicann/ge compiler/api/aclgrph/option_utils.cc"


@pytest.mark.parametrize(
    ("key", "taken", "refused", "source"),
    [
        ("env.HCCL_DETERMINISTIC", ["True", "TRUE", "Strict"], ["yes", " true"], f"{ENTRY} ParseDeterministic: ::toupper"),
        ("env.HCCL_INTER_HCCS_DISABLE", ["true", "False"], ["1", "on"], f"{ENTRY} ParseInterLinkType: ::toupper"),
        (
            "env.HCCL_DFS_CONFIG", ["TASK_EXCEPTION:ON", "task_exception : on, Stuck_Detection:off"], ["task_exception:yes"],
            f"{ENTRY} ParseDfsConfig: blanks erased, ::tolower",
        ),
        ("env.HCCL_OP_EXPANSION_MODE", ["AIV"], ["aiv", "AIV "], f"{ENTRY} ParseOpExpansion: =="),
        ("env.HCCL_ENTRY_LOG_ENABLE", ["1"], ["01", "true"], f"{ENTRY} ParseEntryLogEnable: =="),
        ("env.HCCL_INTRA_ROCE_ENABLE", ["01"], ["2", "true"], f"{ENTRY} GetIntraLinkTypeDigit: IsAllDigit, SalStrToULong"),
        ("env.HCCL_ALGO", ["level0:NA; level1:ring"], ["level0:na;level1:ring"], f"{ENTRY} SetHcclAlgoConfig: blanks erased"),
        ("env.HCCL_OP_RETRY_ENABLE", ["L0:0 , L1:1"], ["l0:0"], f"{ENTRY} ParseRetryEnable: blanks erased"),
        (
            "env.HCCL_DEBUG_CONFIG", ["Alg,task,", "^Task"], ["alg, task", "op"],
            "hicann/hccl src/common/config_log.cc InitDebugConfigByEnv: strtok_r, strcasecmp",
        ),
        (
            "env.HCOMM_DEBUG_CONFIG", ["Data_Op,"], ["alg"],
            "hicann/hcomm src/base_comm/common/debug/plf_debug_config.cc ParseDebugConfig: empty parts skipped, strcasecmp",
        ),
        ("env.HCCL_RDMA_PCIE_DIRECT_POST_NOSTRICT", ["true"], ["1"], f"{INPUT} ParseRdmaFastPost: ::toupper"),
        ("env.HCCL_WHITELIST_DISABLE", ["01"], ["true"], f"{INPUT} ParseHcclWhitelistSwitch: SalStrToULong"),
        ("env.HCCL_SOCKET_FAMILY", ["AF_INET"], ["af_inet"], f"{INPUT} ParseHcclSocketFamily: =="),
        (
            "env.HCCL_OP_RETRY_PARAMS", ["MaxCnt: 1,  HoldTime:5000,IntervalTime:1000"], ["maxcnt:1,HoldTime:5000,IntervalTime:1000"],
            f"{INPUT} ParseRetryParams: sscanf_s",
        ),
        (
            "env.HCCL_NPU_SOCKET_PORT_RANGE", ["60000-60031, 61000"], ["AUTO"],
            "hicann/hcomm src/legacy/framework/env_config/env_func.cc CastSocketPortRange: blanks erased",
        ),
        (
            "env.DUMP_GRAPH_FORMAT", ["ONNX|Readable"], ["pbtxt"],
            "hicann/ge graph_metadef/graph/utils/graph_utils.cc NoNeedDumpGraph: ToLowerCase",
        ),
        (
            "env.ENABLE_ACLNN", ["True", " true "], ["1"],
            "hicann/ge compiler/engines/nn_engine/utils/common/configuration.cc Configuration::InitParamFromEnv: Trim, ToLowerString",
        ),
        (
            "env.NPU_DEBUG", ["True", "FALSE", "1"], ["on"],
            "tensorflow/tensorflow tensorflow/core/util/env_var.cc ReadBoolFromEnvVar: AsciiStrToLower",
        ),
        (
            "env.PRINT_MODEL", ["true", "False", "1"], ["yes"],
            "tensorflow/tensorflow tensorflow/core/util/env_var.cc ReadBoolFromEnvVar: AsciiStrToLower",
        ),
        (
            "env.ASCEND_GLOBAL_LOG_LEVEL", ["03"], ["5", "info"],
            "hicann/runtime src/dfx/log/liblog/slog/dlog_level_env.c DlogInitGlobalLogLevelByEnv: strtol",
        ),
        (
            "env.ASCEND_MODULE_LOG_LEVEL", ["GE=0:RUNTIME=1:"], ["GE=0,RUNTIME=1"],
            "hicann/runtime src/dfx/log/liblog/slog/dlog_level_env.c DlogInitModuleLogLevelByEnv: strtok_s",
        ),
        (
            "env.ASCEND_LOG_PRINT_TO_STDOUT", ["1"], ["01", "true"],
            "hicann/runtime src/dfx/log/liblog/slog/dlog_console.c DlogGetStdoutEnv: strcmp",
        ),
        (
            "env.OP_NO_REUSE_MEM", ["a/b,MatMul,"], ["a b"],
            "hicann/ge compiler/graph/build/memory/block_mem_assigner.cc CheckAndGetOpReuseEnv: empty parts skipped",
        ),
        (
            "env.ASCEND_RUNTIME_OPTIONS", ["NODRV, VIRTUAL"], ["nodrv"],
            "Ascend/mind-cluster component/ascend-docker-runtime/hook/process/process.go parseRuntimeOptions: Split, TrimSpace",
        ),
        (
            "env.ASCEND_ALLOW_LINK", ["True"], ["true"],
            "Ascend/mind-cluster component/ascend-docker-runtime/hook/process/process.go parseSoftLinkMode: ==",
        ),
        ("atc.enable_attr_compression", ["True"], ["yes", " true"], f"{SHAPES} CheckAttrCompressionParamValid: ::tolower"),
        ("atc.allow_hf32", ["true"], ["True"], f"{SHAPES} CheckAllowHF32ParamValid: !="),
        ("atc.log", ["info"], ["INFO"], "hicann/ge api/atc/cmd_flag_info.cc CmdFlagInfo::CheckValue: a set of the texts"),
        (
            "atc.input_shape", ["image:1, 3, 64, 64; info: 1, 4", " image : 1 ,-1;info:1 ~ 4"], ["image:1 2", "image:1,x"],
            f"{SHAPES} ParseInputShape, ParseInputShapeRange: names and numbers trimmed",
        ),
        ("atc.dynamic_batch_size", ["1,2,"], ["1, 2", "1;2"], f"{SHAPES} CheckDynamicBatchSizeInputShapeValid: the last comma erased"),
        (
            "atc.dynamic_image_size", ["64,64; 32, 32;"], ["64,64;32x32"],
            f"{SHAPES} CheckDynamicImagesizeInputShapeValid: digits and blanks, EraseEndSemicolon",
        ),
        ("atc.dynamic_dims", ["1,2;3,4;"], ["1, 2;3,4"], f"{SHAPES} CheckAndParseDynamicDims: EraseEndSemicolon, isdigit"),
        ("atc.output_type", ["node : 0 : FP16; other:0:FP32"], ["fp16"], "hicann/ge api/atc/omg.cc ParseOutputType: Trim of each part"),
        ("atc.is_input_adjust_hw_layout", ["true, false"], ["True"], "hicann/ge api/atc/omg.cc CheckInputFp16Nodes: Trim of each part"),
    ],
)  # fmt: skip
def test_what_a_reader_takes_is_no_finding_and_what_it_refuses_is_an_error(
    key: str, taken: list[str], refused: list[str], source: str
) -> None:
    section, name = key.split(".")
    record: Any = SECTIONS[section](name)
    assert record.reader in source
    assert READERS[record.reader] in source
    assert {text: find_setting_faults(key, text) for text in taken} == {text: [] for text in taken}
    assert {text: [fault.severity for fault in find_setting_faults(key, text)] for text in refused} == {text: ["error"] for text in refused}


def test_a_case_that_no_known_reader_refuses_is_a_note_only(monkeypatch: pytest.MonkeyPatch) -> None:
    flag = catalog.find_flag("host_env_os")
    assert flag is not None
    monkeypatch.setattr(catalog, "find_flag", lambda _: flag._replace(reader=NOT_FOUND))
    for key, noted, refused in (("atc.host_env_os", "Linux", "windows"), ("env.REPEAT_TUNE", "true", "on")):
        assert [fault.severity for fault in find_setting_faults(key, noted)] == ["info"]
        assert [fault.severity for fault in find_setting_faults(key, refused)] == ["error"]


def test_a_conversion_takes_blanks_in_shapes_that_the_adapter_refuses() -> None:
    """The adapter: hicann/tensorflow tf_adapter/util/npu_attrs.cc CheckInputShape; ATC as above."""
    conversion, training = Scope(OFFLINE, (), ()), Scope("training", (), ())
    assert list(find_value_faults(conversion, "input_shape", "image:1, 3; info: 4")) == []
    (fault,) = find_value_faults(training, "input_shape", "image:1, 3; info: 4")
    assert "adapter aborts" in fault.why
    (fault,) = find_value_faults(conversion, "input_shape", "image:1, x")
    assert "adapter" not in fault.why


LAUNCH = """\
#!/bin/bash
export HCCL_DETERMINISTIC=True
export HCCL_INTER_HCCS_DISABLE=true
export HCCL_DFS_CONFIG="TASK_EXCEPTION:ON"
export HCCL_OP_EXPANSION_MODE=aiv
python train.py
"""
CONVERT = """\
atc --model=a.onnx --framework=5 --output=o --soc_version=Ascend310P3 --input_format=NCHW \\
    --input_shape="{}"
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LAUNCH, {("NP203", 5)}),
        (CONVERT.format("image:1, 3, 64, 64; info: 1, 4"), set()),
        (CONVERT.format("image:1,x"), {("NP203", 2)}),
    ],
)
def test_scan_and_import_say_the_same_of_a_script_and_never_that_the_adapter_reads_it(text: str, expected: set[tuple[str, int]]) -> None:
    for told in (findings(text, "x.sh"), [one for draft in build_drafts(imported(text, "x.sh")) for one in judge_draft(draft)]):
        errors = [one for one in told if one.severity == "error"]
        assert {(one.code, one.line) for one in errors} == expected
        assert not any("dapter" in one.why for one in errors)
