"""The checks: every code's page by its examples, and how what is found is gathered and placed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import npuprof
from npuprof import catalog, checks
from npuprof.catalog import code_pages, products, releases
from npuprof.checks.store import check_store
from npuprof.model import SEVERITIES, Finding, NpuprofError
from npuprof.store import spec
from npuprof.store.checked import CheckedStore
from support.building import REPOSITORY, build_store, codes, findings, options
from support.running import Run, Store


def used_in(*paths: str) -> set[str]:
    """Return the codes that stand in some modules of the package."""
    files = [
        file
        for path in paths
        for file in (REPOSITORY / "npuprof").glob(path)
        if "_built" not in file.parts
    ]
    return {code for file in files for code in re.findall(r'"(NP\d{3,4})"', file.read_text())}


USED = used_in("**/*.py")
#: Codes that ``check`` can give: what is found while a preset is read, resolved, and looked at.
CHECKED = used_in("checks/*.py", "document/*.py", "resolve/*.py", "store/__init__.py")
RULES = {rule.code for rule in catalog.load_rules()}
PAGES = code_pages.load_pages()

#: Those of them that no text of a preset can show.
WITHOUT_EXAMPLE = {
    "NP002",
    "NP003",
    "NP005",
    "NP008",
    "NP010",
    "NP014",
    "NP016",
    "NP017",
    "NP107",
    "NP109",
    "NP110",
    "NP512",
    "NP704",
    "NP705",
    "NP708",
    "NP709",
    "NP710",
    "NP712",
    "NP812",
    "NP835",
    "NP837",
}


def run(folder: Path, files: dict[str, str], ask: dict[str, str]) -> list[Finding]:
    """Return what the check of a whole store finds, as the command does it."""
    build_store(folder, files)
    return check_store(
        CheckedStore(spec.Workspace(str(folder), spec.build_context(**ask)))
    ).findings


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert PAGES.keys() >= USED, f"no page: {sorted(USED - PAGES.keys())}"
    assert PAGES.keys() == USED | RULES, f"no code: {sorted(PAGES.keys() - USED - RULES)}"


@pytest.mark.parametrize("code", PAGES)
def test_a_page_says_what_why_and_how(code: str) -> None:
    page = PAGES[code]
    assert page.severity in SEVERITIES
    assert page.title
    assert page.why
    assert page.why.endswith((".", "!"))
    assert page.fix
    assert bool(page.bad) == bool(page.good), "an example needs its counterpart"
    if code in CHECKED - WITHOUT_EXAMPLE or code in RULES:
        assert page.bad, "check gives this code: it needs examples"


@pytest.mark.parametrize("code", [code for code, page in PAGES.items() if page.bad])
def test_the_bad_example_is_flagged_and_the_good_one_is_not(code: str, tmp_path: Path) -> None:
    page = PAGES[code]
    bad = [
        finding for finding in run(tmp_path / "bad", page.bad, page.ask_bad) if finding.code == code
    ]
    assert bad, "the bad example is not flagged"
    assert bad[0].severity == page.severity
    for finding in bad:
        assert finding.line or code == "NP004", "a finding without a place"
        assert finding.hint, "a finding without a repair"
        assert finding.message
    good = run(tmp_path / "good", page.good, page.ask_good)
    assert [str(finding) for finding in good if finding.code == code] == []
    assert [str(finding) for finding in good if finding.severity == "error"] == [], (
        "the good example has other errors"
    )


def test_no_code_names_two_rules() -> None:
    assert len(RULES) == len(catalog.load_rules())
    assert not RULES & set(catalog.load_built_part("pages"))


@pytest.mark.parametrize(
    ("product", "cann"),
    [
        (None, None),
        *(
            (name, None)
            for name in ("atlas-a2", "atlas-a3", "atlas-training", "atlas-inference", "ascend-950")
        ),
        (None, "8.0.0"),
        (None, "9.0.0"),
    ],
)
def test_the_shipped_presets_are_clean_where_they_are_meant_for(
    product: str | None, cann: str | None
) -> None:
    workspace, judged = spec.Workspace("builtin:", spec.build_context(cann, product)), 0
    cases = [*workspace.store.names()]
    assert cases
    for name in cases:
        config = workspace.resolve_spec(name)
        meant = not product or any(
            products.is_product_covered(p, product) or products.is_product_covered(product, p)
            for p in config.products
        )
        if not meant or (
            cann and cann not in (releases.find_releases_in_range(config.cann or ">=1") or ())
        ):
            continue
        loud = [
            str(finding) for finding in checks.check_config(config) if finding.severity != "info"
        ]
        assert loud == [], name
        judged += 1
    assert judged >= 17


# -- values ---------------------------------------------------------------------------------------


def list_documented_values() -> list[tuple[str, Any]]:
    """Return every choice, bound and example of the catalogue."""
    found: list[tuple[str, Any]] = []
    for name in catalog.record_names():
        option: Any = catalog.find_option(name)
        example = catalog.find_record_texts("options", name).get("example")
        documented = [
            *option.choices,
            option.minimum,
            option.maximum,
            example,
            *((True, False) if option.field == "b" else ()),
        ]
        found += [(name, value) for value in dict.fromkeys(documented) if value is not None]
    return found


def found_for(name: str, value: Any) -> list[Finding]:
    return [
        finding
        for finding in checks.check_config(options(**{name: value}))
        if finding.key.split(".")[0].split("[")[0] == name
    ]


@pytest.mark.parametrize(("name", "value"), list_documented_values())
def test_what_is_documented_is_no_error(name: str, value: Any) -> None:
    about = [
        finding
        for finding in found_for(name, value)
        if finding.code in ("NP201", "NP202", "NP203", "NP204", "NP205")
    ]
    doubted = catalog.find_option(name).doubtful_values  # type: ignore[union-attr]
    assert [
        str(finding) for finding in about if finding.code != "NP205" or str(value) not in doubted
    ] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("options.stream_sync_timeout = 1800000\noptions.hccl_timeout = 1800", True),
        ("options.stream_sync_timeout = 1800001\noptions.hccl_timeout = 1800", False),
        ("options.stream_sync_timeout = -1\noptions.hccl_timeout = 1800", False),
        ("options.stream_sync_timeout = 60000\nenv.HCCL_EXEC_TIMEOUT = '1800'", True),
        ("options.stream_sync_timeout = 1900000\nenv.HCCL_EXEC_TIMEOUT = 1800", False),
        (
            (
                "options.stream_sync_timeout = 60000\nenv.HCCL_EXEC_TIMEOUT = 1800\n"
                "options.hccl_timeout = 10"
            ),
            False,
        ),
    ],
)
def test_a_stream_must_wait_longer_than_a_collective(text: str, expected: bool) -> None:
    messages = [
        finding.message
        for finding in findings(text)
        if "stream_sync_timeout" in finding.key or "stream_sync_timeout" in finding.message
    ]
    assert bool([message for message in messages if "hccl" in message.lower()]) == expected, (
        messages
    )


@pytest.mark.parametrize(
    "text",
    [
        "[options]\nstream_sync_timeout = 600\n",
        "[options]\nstream_sync_timeout = 600\n[env]\nHCCL_CONNECT_TIMEOUT = 600\n",
        '[options]\nlocal_device_list = "0,1"\n',
        "[options]\nstatic_memory_policy = 1\n",
        '[options]\ndump_path = ""\n',
        '[options]\nenable_dump = false\nenable_dump_debug = false\ndump_path = ""\n',
        '[options]\nauto_multistream_parallel_mode = ""\n',
        '[env]\nNPU_ENABLE_PERF = "FALSE"\n',
    ],
)
def test_what_does_no_harm_is_no_finding(text: str) -> None:
    assert [str(finding) for finding in findings(text) if finding.severity != "info"] == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            (
                "[options]\nstream_sync_timeout = 600\n[env]\n"
                'RANK_SIZE = { launcher = "world-size" }\n'
            ),
            "NP378",
        ),
        ('[options]\nstream_sync_timeout = 600\n[env]\nRANK_TABLE_FILE = "/r.json"\n', "NP378"),
        ('[options]\nenable_dump = true\ndump_path = ""\n', "NP203"),
        ("[options]\nstatic_memory_policy = 5\n", "NP203"),
        ("[env]\nMINE = 1979-05-27\n", "NP202"),
        ('[env]\nENABLE_ACLNN = "1"\n', "NP203"),
    ],
)
def test_what_does_harm_still_is_one(text: str, code: str) -> None:
    assert code in codes(text)


def test_a_misspelt_lock_or_unset_is_answered_with_its_nearest(tmp_path: Path) -> None:
    files = {
        "base": (
            '[profile]\nlocked = ["hccl_timeout", "hccl_timeot", "env.X"]\n[options]\n'
            'hccl_timeout = 600\ndump_path = "/d"\n'
        ),
        "leaf": '[profile]\nextends = ["base"]\nunset = ["dump_pth"]\n',
    }
    unset, lock = sorted(run(tmp_path, files, {}), key=lambda finding: finding.code, reverse=True)
    assert lock.code == "NP201"
    assert lock.line == 2
    assert lock.column == 27
    assert lock.hint == "did you mean 'hccl_timeout'?"
    assert lock.profiles == ("base", "leaf")
    assert unset.code == "NP702"
    assert unset.line == 3
    assert unset.column == 10
    assert unset.hint == "did you mean 'dump_path'?"


def test_an_unknown_key_of_an_override_is_placed_at_the_key() -> None:
    with pytest.raises(NpuprofError) as error:
        findings(
            '[[override]]\nmatch = { product = "atlas-a3" }\n\n[[override]]\n'
            "option = { hccl_timeout = 1 }\n"
        )
    messages = [
        (finding.line, finding.column, finding.hint)
        for finding in error.value.findings
        if finding.code == "NP006"
    ]
    assert messages == [(5, 1, "did you mean 'options'?")]


@pytest.mark.parametrize(
    ("value", "fits"), [(2**63 - 1, True), (2**63, False), (-(2**63), True), (-(2**63) - 1, False)]
)
def test_a_whole_number_has_to_fit_the_protobuf_field(value: int, fits: bool) -> None:
    found = [
        finding
        for finding in findings(f"[options]\nhccl_timeout = {value}\n")
        if "64 bits" in finding.message
    ]
    assert bool(found) != fits
    assert {finding.hint for finding in found} <= {"write a smaller number"}


# -- how findings are gathered --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ('extends = ["nowhere"]', "NP101"),
        ('extends = ["a"]', "NP102"),
        ('extends = ["b", "b"]', "NP104"),
        ('extends = ["trains", "serves"]', "NP108"),
        ('scenari = "training"', "NP006"),
        ("abstract = 1", "NP007"),
        ('[[override]]\nmatch = { produkt = "atlas-a3" }', "NP006"),
        ("[enviroment]\nA = 1", "NP006"),
    ],
)
def test_a_fault_of_form_hides_no_value(store: Store, run: Run, fault: str, code: str) -> None:
    claims = {
        name: f'profile.scenario = "{scenario}"\n'
        for name, scenario in (("trains", "training"), ("serves", "online-inference"))
    }
    values = (
        '[options]\nprecision_mode_v2 = "fp17"\nhccl_timeot = 3\n[env]\n'
        'HCCL_CONNECT_TIMEOUT = "ten"\n'
    )
    head, _, table = (
        f"[profile]\n{fault}\n".partition("[[")
        if "[[" in fault
        else (f"[profile]\n{fault}\n", "", "")
    )
    store({"b": "[options]\n", "a": f"{head}{values}{'[[' if table else ''}{table}", **claims})
    done = run("check", "a", "--format", "json")
    found = {
        (finding["code"], finding["key"])
        for finding in json.loads(done.out)["findings"]
        if finding["severity"] == "error"
    }
    assert done.code == 2
    assert code in {found_code for found_code, _ in found}
    assert {
        ("NP203", "precision_mode_v2"),
        ("NP201", "hccl_timeot"),
        ("NP202", "env.HCCL_CONNECT_TIMEOUT"),
    } <= found


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("NPUPROF_HCCL_ALGORITHM", "write HCCL_algorithm below [options]"),
        ("NPUPROF_DIGEST", "choose another name"),
        ("NPUPROF_STORE", None),
    ],
)
def test_a_variable_that_an_export_would_overwrite_is_refused(name: str, hint: str | None) -> None:
    found = [
        finding for finding in findings(f'[env]\n{name} = "x"\n') if finding.severity == "error"
    ]
    known = (
        ("NP210", hint, 2)
        if hint
        else ("NP607", "remove it, and set it where the job is started", 2)
    )
    assert [(finding.code, finding.hint, finding.line) for finding in found] == [known]


def test_an_appended_fault_is_placed_where_it_was_appended(tmp_path: Path) -> None:
    files = {
        "base": "options = { enable_dump = true, dump_path = '/d', dump_step = [1, 2] }",
        "leaf": 'profile.extends = ["base"]\nappend.options.dump_step = [3, "9-3"]\n',
    }
    (finding,) = run(tmp_path, files, {})
    assert os.path.basename(finding.path or "") == "leaf.toml"
    assert finding.line == 2
    assert finding.column == 32


@pytest.mark.parametrize(
    ("match", "code", "column"),
    [
        ('product = "atlas-a33"', "NP403", 11),
        ('product = ["atlas-a3", "atlas-a33"]', "NP403", 34),
        ('cann = "9.x"', "NP402", 11),
        ('scenario = "train"', "NP007", 11),
        ('target = "sesion"', "NP902", 11),
    ],
)
def test_an_override_that_can_never_match_is_told(
    match: str, code: str, column: int, tmp_path: Path
) -> None:
    text = f"[[override]]\nmatch = {{ {match} }}\noptions = {{ hcom_parallel = true }}\n"
    (finding,) = run(tmp_path, {"a": text}, {})
    assert finding.code == code
    assert finding.severity == "error"
    assert finding.line == 2
    assert finding.column == column


@pytest.mark.parametrize(
    "value", ["9" * 5000, "0x" + "f" * 5000, "nan", "{ a = { b = [1] } }", '"\\u0000"']
)
def test_no_value_breaks_a_check(value: str) -> None:
    try:
        found = findings(f"[options]\nhccl_timeout = {value}\n[env]\nX = {value}\n")
    except NpuprofError as error:
        found = list(error.findings)
    assert "error" in [finding.severity for finding in found if str(finding)]


ON_A3 = '\n[[override]]\nmatch.product = "atlas-a3"\noptions.hccl_timeout = '
HEIR = 'profile.extends = ["base"]'
TABLE = "options.x = { a = 1, b = { c = 2 } }"


@pytest.mark.parametrize(
    ("a", "base", "count"),
    [
        (f"options.hccl_timeout = 1{ON_A3}1", "", 1),
        (f"options.hccl_timeout = 1{ON_A3}2", "", 0),
        (
            (
                f'options.hccl_timeout = 1{ON_A3}2\n[[override]]\nmatch.cann = ">=9.0"\n'
                "options.hccl_timeout = 1"
            ),
            "",
            0,
        ),  # back again
        (
            f"{HEIR}\noptions.hccl_timeout = 1",
            f"options.hccl_timeout = 1{ON_A3}2",
            0,
        ),  # it wins over the parent's override
        (f"{HEIR}{ON_A3}1", "options.hccl_timeout = 1", 1),
        (f"{HEIR}{ON_A3}1\n{TABLE}", TABLE, 2),  # each leaf of a table
        (f"{HEIR}{ON_A3}1\n{TABLE}", TABLE.replace("2", "3"), 1),
    ],
)
def test_a_value_is_called_repeated_only_where_it_changes_nothing_anywhere(
    a: str, base: str, count: int, tmp_path: Path
) -> None:
    config = npuprof.open_store(str(build_store(tmp_path, {"a": a, "base": base}))).resolve("a")
    assert [finding.code for finding in npuprof.check(config)].count("NP701") == count


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("HCCL_ALGOO", True),
        ("HCCL_EXEC_TIME_OUT", True),
        ("JOB_NAME", False),
        ("MY_DATA_DIR", False),
        ("GPUS_PER_NODE", False),  # known, and close to NPUS_PER_NODE
    ],
)
def test_only_what_is_nearly_a_known_variable_is_called_misspelt(name: str, near: bool) -> None:
    config = npuprof.loads(f'env.{name} = "x"')
    assert ("NP206" in [finding.code for finding in npuprof.check(config)]) is near


@pytest.mark.parametrize(
    ("mixin", "codes"), [("same", []), ("other", ["NP105"]), ("table", ["NP105"])]
)
def test_a_lock_protects_the_value_and_not_who_says_it(
    mixin: str, codes: list[str], tmp_path: Path
) -> None:
    for name, text in {
        "same": '[options]\nprecision_mode_v2 = "mixed_float16"\n',
        "other": '[options]\nprecision_mode_v2 = "origin"\n',
        "model": '[profile]\nextends = ["same"]\nlocked = ["precision_mode_v2"]\n',
        "table": '[profile]\nunset = ["precision_mode_v2"]\n',
    }.items():
        (tmp_path / f"{name}.toml").write_text(text)
    found = npuprof.check(npuprof.open_store(str(tmp_path)).resolve(f"model+{mixin}"))
    assert [finding.code for finding in found if finding.severity == "error"] == codes
