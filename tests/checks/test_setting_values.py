"""Values of single settings: paths, exact names, structured values, and who supports them."""

from __future__ import annotations

import json

import pytest

from support.building import findings

MODES = "[options]\nop_precision_mode = { ByOpType = { Conv2D = %r } }\n"
MIXED = '[options]\nprecision_mode_v2 = "mixed_float16"\n'
PROFILED = "[options]\nprofiling_mode = true\n"
OFFLINE = '[profile]\nscenario = "offline-inference"\n'
NEW_NAME = "use ASCEND_LOG_PRINT_TO_STDOUT"
LISTED = '[options]\nop_select_implmode = "high_precision"\noptypelist_for_implmode = %s\n'


def list_codes(text: str) -> set[str]:
    """Return the codes of errors and warnings, except for deprecated options."""
    return {finding.code for finding in findings(text) if finding.severity != "info"} - {
        "NP501",
        "NP604",
    }


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('[options]\nop_compiler_cache_dir = "/home/a b"\n', "NP203"),
        ('[options]\nop_compiler_cache_dir = "/home/a(1)"\n', "NP203"),
        ('[options]\nop_compiler_cache_dir = "/数据/cache"\n', None),
        (
            '[options]\nenable_dump = true\ndump_path = "/home/a b"\n',
            None,
        ),  # its page names no characters
        (f'{OFFLINE}[options]\nop_debug_config = "/etc/a b.cfg"\n', "NP203"),
        (f'{OFFLINE}[atc]\nmodel = "/models/a b.pb"\n', "NP203"),
    ],
)
def test_a_path_is_made_of_what_its_manual_allows(text: str, code: str | None) -> None:
    assert list_codes(text) - {"NP605"} == ({code} if code else set())


@pytest.mark.parametrize(
    ("path", "expanded"),
    [
        ("$HOME/x", True),
        ("${HOME}/x", True),
        ("/a/$USER", True),
        ("$(pwd)/x", True),
        ("~", True),
        ("~/x", True),
        ("~me/x", True),
        ("./x", False),
        ("/a/b~", False),
        ("/a/~b", False),
        ("cost$", False),
        ("/a/$1", False),
    ],
)
@pytest.mark.parametrize(
    "preset",
    [
        "[options]\nenable_dump = true\ndump_path = '%s'\n",
        "[options]\ngraph_compiler_cache_dir = '%s'\n",
        "[options]\nprofiling_mode = true\nprofiling_options = { output = '%s' }\n",
        "[env]\nDUMP_GE_GRAPH = 2\nDUMP_GRAPH_PATH = '%s'\n",
        "[env]\nASCEND_CUSTOM_OPP_PATH = '/opt:%s'\n",
        "[estimator]\nmodel_dir = '%s'\n",
    ],
)
def test_what_only_a_shell_expands_is_an_error_in_every_path(
    preset: str, path: str, expanded: bool
) -> None:
    assert bool(list_codes(preset % path) & {"NP211", "NP204"}) is expanded


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("$LD_LIBRARY_PATH:/opt/lib", "NP211"),
        ("/opt/lib:~/lib", "NP211"),
        ("$ORIGIN/../lib:/opt", None),
        ("/opt", None),
    ],
)
def test_no_export_expands_the_paths_of_other_programs(value: str, code: str | None) -> None:
    assert list_codes(f"[env]\nMY_LIBRARY_PATH = '{value}'\n") == ({code} if code else set())


@pytest.mark.parametrize("path", ["$HOME/x.pb", "~/x.pb"])
def test_no_shell_expands_the_path_of_a_flag(path: str) -> None:
    assert list_codes(f"{OFFLINE}[atc]\nmodel = '{path}'\n") == {"NP211"}


@pytest.mark.parametrize(
    ("mode", "product", "code"),
    [
        ("high_precision", "atlas-training", None),
        ("high_performance", "atlas-training", None),
        ("super_performance", "atlas-training", None),
        ("support_out_of_bound_index", "atlas-training", None),
        ("keep_fp16", "atlas-training", None),
        ("enable_float_32_execution", "atlas-a2", None),
        ("enable_float_32_execution", "ascend-950", None),
        ("enable_float_32_execution", "atlas-training", "NP409"),
        ("enable_hi_float_32_execution", "atlas-a2", "NP205"),
        ("high_precison", "atlas-a2", "NP204"),
    ],
)
def test_each_mode_of_an_operator_is_judged_for_its_product(
    mode: str, product: str, code: str | None
) -> None:
    assert list_codes(f'[profile]\nproducts = ["{product}"]\n{MODES % mode}') == (
        {code} if code else set()
    )


@pytest.mark.parametrize(("kind", "code"), [("fast1", "NP409"), ("fast", None)])
def test_a_member_of_a_text_is_judged_for_its_product(kind: str, code: str | None) -> None:
    text = (
        '[profile]\nproducts = ["atlas-training"]\n[options]\n'
        f'experimental_accelerate_train_mode = "{kind}|step|0.9"\n'
    )
    assert list_codes(text) == ({code} if code else set())


@pytest.mark.parametrize(
    ("text", "key"),
    [
        pytest.param(
            f'{MIXED}modify_mixlist = {{ black-list = {{ to-add = ["Conv2D", "Matmul"] }} }}\n',
            "modify_mixlist.black-list.to-add[1]",
            id="an element of a list",
        ),
        pytest.param(
            f'{MIXED}customize_dtypes = {{ "OpType::softmaxv2" = {{ InputDtype = ["float"] }} }}\n',
            'customize_dtypes."OpType::softmaxv2"',
            id="a key of a table",
        ),
        pytest.param(LISTED % '"softmaxV2"', "optypelist_for_implmode[0]", id="an operator type"),
        pytest.param(
            '[options]\nenable_scope_fusion_passes = "ScopeLayernormPass"\n',
            "enable_scope_fusion_passes[0]",
            id="a fusion pass",
        ),
    ],
)
def test_a_name_in_another_case_is_a_warning_at_that_name(text: str, key: str) -> None:
    assert [
        (finding.code, finding.key) for finding in findings(text) if finding.code == "NP205"
    ] == [("NP205", key)]


@pytest.mark.parametrize(
    ("lists", "doubtful"),
    [
        ('{ gray-list = { to-add = ["Cast"] } }', True),
        ('{ gray-list = { to-add = ["Cast"] }, white-list = { to-remove = ["Cast"] } }', False),
        ('{ white-list = { to-remove = ["Cast"] } }', False),
    ],
)
def test_an_addition_to_the_gray_list_alone_is_told_to_change_nothing(
    lists: str, doubtful: bool
) -> None:
    assert list_codes(f"{MIXED}modify_mixlist = {lists}\n") == ({"NP205"} if doubtful else set())


@pytest.mark.parametrize(
    ("types", "code"),
    [
        ('["float16", "float"]', None),
        ('["bf16", ""]', None),
        ('["FLOAT16"]', None),
        ('["float17"]', "NP204"),
        ('["flaot"]', "NP204"),
        ('["float32"]', "NP204"),
        ('["bfloat16"]', "NP204"),
    ],
)
def test_data_types_are_those_of_cann(types: str, code: str | None) -> None:
    assert list_codes(
        f'{MIXED}customize_dtypes = {{ "OpType::Add" = {{ InputDtype = {types} }} }}\n'
    ) == ({code} if code else set())


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ('"Pooling,LRN"', None),
        ('["ROIAlign"]', None),
        ('"Conv2D"', "NP205"),
        ('"Pooling,Poolling"', "NP205"),
    ],
)
def test_operators_for_an_implementation_mode_are_those_the_manual_lists(
    value: str, code: str | None
) -> None:
    assert list_codes(LISTED % value) == ({code} if code else set())
    assert list_codes(OFFLINE + LISTED % value) == set()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (
            (
                '{ output = "/tmp", task_trace = "on", training_trace '
                '= "on", fp_point = "", bp_point = "" }'
            ),
            None,
        ),
        ('{ output = "/tmp", op_trace = "on" }', None),
        ('{ output = "/tmp", op_trace = "on", task_trace = "on" }', "NP204"),
        ('{ storage_limit = "100MB" }', "NP204"),
        ('{ trainig_trace = "on" }', "NP205"),
        ('"op_trace:task_trace"', "NP203"),
        ('"training_trace:task_trace"', "NP205"),
    ],
)
def test_what_profiling_collects_is_read_member_by_member(options: str, code: str | None) -> None:
    assert list_codes(f"{PROFILED}profiling_options = {options}\n") == ({code} if code else set())


@pytest.mark.parametrize(("ids", "code"), [("[0, 9]", None), ('"0,10"', "NP205")])
def test_a_device_of_two_digits_is_doubtful(ids: str, code: str | None) -> None:
    assert list_codes(f"[options]\nlocal_device_list = {ids}\nlocal_rank_id = 0\n") - {"NP601"} == (
        {code} if code else set()
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ASCEND_WORK_PATH", "write text"),
        ("HCCL_CONNECT_TIMEOUT", "write a whole number, 120 to 7200 s"),
    ],
)
def test_a_boolean_of_a_variable_without_switches_is_answered_with_its_values(
    name: str, hint: str
) -> None:
    found = [item.hint for item in findings(f"[env]\n{name} = true\n") if item.code == "NP202"]
    assert found == [hint]


@pytest.mark.parametrize(
    ("name", "text", "odd", "meant"),
    [
        pytest.param(
            "MINDIE_LOG_LEVEL", "llm\uff1adebug", "\uff1a", "llm:debug", id="a full-width colon"
        ),
        pytest.param("MINDIE_LOG_TO_FILE", "true'", "'", "true", id="a stray quote"),
        pytest.param(
            "HCCL_OP_EXPANSION_MODE", "\u201cAIV\u201d", "\u201c", "AIV", id="typographic quotes"
        ),
        pytest.param("ASCEND_GLOBAL_LOG_LEVEL", "\uff11", "\uff11", "1", id="a full-width digit"),
    ],
)
def test_a_character_that_only_looks_right_is_named(
    name: str, text: str, odd: str, meant: str
) -> None:
    (found,) = [
        item for item in findings(f"[env]\n{name} = {json.dumps(text)}\n") if item.code == "NP203"
    ]
    assert found.message == f'env.{name} = "{text}" contains {odd}'
    assert found.hint == f"write {meant}"
    assert found.fix is not None
    assert found.fix.value == meant


def test_a_number_is_not_guessed_to_be_a_path() -> None:
    found = [item for item in findings("options.dump_path = 5\n") if item.code == "NP202"]
    assert [item.hint for item in found] == ['write text like "/home/test/output"']
    assert [item.fix for item in found] == [None]


@pytest.mark.parametrize(
    ("text", "fits"),
    [("0.5", True), ("nan", False), ("inf", False), ('"nan"', False), ('"-inf"', False)],
)
def test_a_variable_that_takes_a_number_takes_finite_ones_only(text: str, fits: bool) -> None:
    assert ("NP202" in list_codes(f"[env]\nNPU_MEMORY_FRACTION = {text}\n")) is not fits


@pytest.mark.parametrize(
    ("option", "text", "wrong"),
    [
        ("modify_mixlist", '{"black-list": {"to-add": ["MatMul"]}}', True),
        ("modify_mixlist", "./ops_info.json", False),
        ("op_precision_mode", "high_precision", True),
        ("op_precision_mode", "[ByOpType]\nMatMul=high_precision", True),
        ("op_precision_mode", "./high_precision.ini", False),
        ("op_debug_config", "ccec_g, oom", True),
        ("op_debug_config", "op_debug_config=oom", True),
        ("op_debug_config", "/etc/oom.cfg", False),
        ("customize_dtypes", "conv1::InputDtype:float16", True),
        ("fusion_switch_file", "off", True),
    ],
)
def test_the_content_of_a_file_is_not_taken_for_its_path(
    option: str, text: str, wrong: bool
) -> None:
    assert ("NP203" in list_codes(f"{MIXED}{option} = {json.dumps(text)}\n")) is wrong


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ('RANK_ID = { launcher = "rank" }', None),
        ('RANK_ID = { launcher = "world-size" }', "NP203"),
        ('RANK_SIZE = { launcher = "rank" }', "NP203"),
        ('ASCEND_DEVICE_ID = { launcher = "rank" }', "NP205"),
        ('HCCL_IF_IP = { launcher = "node-rank" }', "NP203"),
        ('ASCEND_GLOBAL_LOG_LEVEL = { launcher = "rank" }', "NP203"),
        ('NPU_LOOP_SIZE = { launcher = "job" }', "NP203"),
        ('JOB_ID = { launcher = "job" }', None),
        ('MY_SEED = { launcher = "rank" }', None),
    ],
)
def test_a_variable_takes_the_fact_of_a_launcher_that_it_stands_for(
    setting: str, code: str | None
) -> None:
    assert list_codes(f"[env]\n{setting}\n") == ({code} if code else set())


@pytest.mark.parametrize(
    ("cann", "severity", "hint"),
    [
        ("==8.0.0", "info", f"from CANN 9.2.0: {NEW_NAME}"),
        (">=8.0,<9.2", "info", f"from CANN 9.2.0: {NEW_NAME}"),
        (">=8.0", "warning", f"from CANN 9.2.0: {NEW_NAME}"),
        (">=9.2", "warning", NEW_NAME),
        ("", "info", NEW_NAME),
    ],
)
def test_an_old_name_of_a_variable_is_deprecated_where_there_is_a_new_one(
    cann: str, severity: str, hint: str
) -> None:
    text = f'[profile]\ncann = "{cann}"\n' if cann else ""
    [finding] = findings(f"{text}[env]\nASCEND_SLOG_PRINT_TO_STDOUT = 1\n")
    assert finding.code == "NP501"
    assert finding.severity == severity
    assert finding.hint == hint


@pytest.mark.parametrize(("cann", "code"), [(">=8.0,<=8.5.0", None), (">=8.0,<=9.0.0", "NP203")])
def test_a_value_of_older_releases_is_fine_where_the_last_one_that_is_meant_takes_it(
    cann: str, code: str | None
) -> None:
    assert list_codes(f'[profile]\ncann = "{cann}"\n[options]\naoe_mode = "mdat"\n') == (
        {code} if code else set()
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            f'[env]\nPYTORCH_NPU_ALLOC_CONF = "{"x" * 60_000}:1,'
            f'max_split_size_mb:{"9 " * 20_000}b"\n',
            id="a text of pairs",
        ),
        pytest.param(
            f'[env]\nHCCL_EXEC_TIMEOUT = "{"9" * 300}"\nHCCL_CONNECT_TIMEOUT = "{"x" * 60_000}"\n',
            id="two numbers",
        ),
        pytest.param(
            f"[options]\nmodify_mixlist.black-list.to-add = [[{'1, ' * 20_000}]]\n", id="a list"
        ),
        pytest.param(f'[options]\ninput_shape = {{ {"a" * 60_000} = "b" }}\n', id="a key"),
    ],
)
def test_a_finding_about_a_long_value_is_short(text: str) -> None:
    found = [finding for finding in findings(text) if finding.severity == "error"]
    assert found
    assert all(
        len(finding.message) < 250 and len(finding.why) < 250 and len(finding.hint) < 600
        for finding in found
    )
