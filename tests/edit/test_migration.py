"""Presets migrated to another release: applied steps, remaining steps, unchanged text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npuprof import __main__
from npuprof.catalog import load_built_part
from npuprof.edit import PathChange, apply_changes
from support.importing import write
from support.running import Run, Store

ROWS = load_built_part("migrations")


def migrate(
    folder: Path, options: str, *arguments: str, release: str = "9.0.0", head: str = ""
) -> tuple[int, str]:
    write(
        folder, {"profiles/p.toml": f'[profile]\ndescription = "d"\n{head}\n[options]\n{options}'}
    )
    code = __main__.main(
        ["migrate", "p", "--cann", release, "--store", str(folder / "profiles"), *arguments]
    )
    return code, (folder / "profiles/p.toml").read_text().partition("[options]\n")[2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('mstune_mode = "2" # tune\n', 'aoe_mode = "2" # tune\n'),
        ('precision_mode = "must_keep_origin_dtype"\n', 'precision_mode_v2 = "origin"\n'),
        ('precision_mode = "force_fp32"\n', 'precision_mode_v2 = "cube_fp16in_fp32out"\n'),
        (
            '# why\nprecision_mode   =   "allow_mix_precision"   # keep\n',
            '# why\nprecision_mode_v2   =   "mixed_float16"   # keep\n',
        ),
        ("precision_mode = 'allow_mix_precision_bf16'\n", 'precision_mode_v2 = "mixed_bfloat16"\n'),
        ("static_memory_policy = 1\n", "static_memory_policy = 2\n"),
        ("jit_compile = true\n", 'jit_compile = "true"\n'),
        ('use_off_line = true\ngraph_memory_max_size = "1"\n', "use_off_line = true\n"),
        (
            (
                'op_select_implmode = "high_precision"\n'
                'optypelist_for_implmode = "Pooling,SoftmaxV2"\n'
            ),
            (
                "op_precision_mode = { ByOpType = { Pooling = "
                '"high_precision", SoftmaxV2 = "high_precision" } }\n'
            ),
        ),
        ('precision_mode = "allow_fp32_to_fp16"\n', 'precision_mode = "allow_fp32_to_fp16"\n'),
    ],
)
def test_a_step_that_loses_nothing_is_made_in_place(
    before: str, after: str, tmp_path: Path
) -> None:
    code, text = migrate(tmp_path, before)
    assert text == after
    assert code == 0


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ('op_tune_mode = "GA"\n', "op_tune_mode"),
        ('auto_tune_mode = "RL,GA"\n', "auto_tune_mode"),
        ('op_select_implmode = "high_precision"\n', "op_select_implmode"),
        ("op_debug_level = 3\n", "op_debug_level"),
        ("variable_format_optimize = true\n", "variable_format_optimize"),
        ("dynamic_input = true\n", "dynamic_input"),
        ('es_cluster_config = "a"\n', "es_cluster_config"),
        ('precision_mode = "force_fp16"\n', "precision_mode"),
        ('precision_mode = "force_fp32"\nprecision_mode_v2 = "origin"\n', "precision_mode"),
    ],
)
def test_a_step_that_needs_a_person_changes_nothing_and_is_told(
    options: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = migrate(tmp_path, options, "--format", "json")
    assert code == 1
    assert text == options
    found = [
        finding
        for finding in json.loads(capsys.readouterr().out)["findings"]
        if finding["code"] == "NP511"
    ]
    assert key in {finding["key"] for finding in found}
    assert all(finding["hint"] and finding["why"] for finding in found)


def test_a_step_that_depends_on_the_scenario_is_made_where_it_is_certain(tmp_path: Path) -> None:
    inference = migrate(
        tmp_path, 'precision_mode = "force_fp16"\n', head='scenario = "online-inference"\n'
    )
    assert inference == (0, 'precision_mode_v2 = "fp16"\n')
    training = migrate(tmp_path, 'precision_mode = "force_fp16"\n', head='scenario = "training"\n')
    assert training == (1, 'precision_mode = "force_fp16"\n')


def test_what_a_parent_sets_is_left_to_the_parent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"profiles/base.toml": '[options]\nprecision_mode = "force_fp32"\n'})
    code, text = migrate(tmp_path, "use_off_line = true\n", head='extends = ["base"]\n')
    assert code == 1
    assert text == "use_off_line = true\n"
    assert "NP513" in capsys.readouterr().out


def test_the_range_of_releases_follows(tmp_path: Path) -> None:
    migrate(tmp_path, 'precision_mode = "force_fp32"\n', head='cann = ">=5.0.4,<10"\n')
    assert 'cann = ">=9.0.0,<10"' in (tmp_path / "profiles/p.toml").read_text()
    migrate(tmp_path, "use_off_line = true\n", head='cann = ">=5.0.4,<10"\n')
    assert 'cann = ">=5.0.4,<10"' in (tmp_path / "profiles/p.toml").read_text()


@pytest.mark.parametrize(
    ("head", "arguments", "message"),
    [
        pytest.param("", [], {}, id="no release"),
        pytest.param(
            "",
            ["--from", "5.0.4"],
            {
                "hcom_parallel",
                "jit_compile",
                "static_memory_policy",
                "op_compiler_cache_mode",
                "hccl_timeout",
            },
            id="from 5.0.4",
        ),
        pytest.param("", ["--from", "8.0.0"], {"hccl_timeout"}, id="from 8.0.0"),
        pytest.param("", ["--from", "9.0.0"], set(), id="from 9.0.0"),
        pytest.param(
            'cann = ">=8.0.0"\n',
            ["--from", "5.0.4"],
            {"hccl_timeout"},
            id="the preset's release overrides --from",
        ),  # what the preset says counts
    ],
)
def test_a_preset_that_names_no_release_comes_from_the_one_that_is_given(
    head: str,
    arguments: list[str],
    message: set[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    migrate(tmp_path, "use_off_line = true\n", "--format", "json", *arguments, head=head)
    found = [
        finding
        for finding in json.loads(capsys.readouterr().out)["findings"]
        if finding["code"] == "NP512"
    ]
    assert {finding["key"] for finding in found} >= set(message)
    assert bool(found) == bool(message)
    assert all(finding["path"].endswith("p.toml") for finding in found)


@pytest.mark.parametrize(("values", "code"), [("9.1.0", "NP902"), ("nine", "NP401")])
def test_a_release_to_come_from_is_known_and_not_later(
    values: str, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert migrate(tmp_path, 'mstune_mode = "2"\n', "--from", values) == (2, 'mstune_mode = "2"\n')
    assert code in capsys.readouterr().err


def test_each_step_says_in_json_what_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    migrate(
        tmp_path, 'static_memory_policy = 1\nprecision_mode = "force_fp32"\n', "--format", "json"
    )
    assert sorted(step["loss"] for step in json.loads(capsys.readouterr().out)["steps"]) == [
        "none",
        "text",
    ]


def test_a_dry_run_writes_nothing_and_shows_the_difference_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = 'precision_mode = "allow_mix_precision"\nauto_tune_mode = "GA"\n'
    assert migrate(tmp_path, before, "--dry-run") == (1, before)
    out = capsys.readouterr().out
    assert out.index("precision_mode_v2") < out.index("M9") < out.index("NP511")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[options]\na = 1 # c\nb = 2\n", "[options]\nz = 3 # c\nb = 2\n"),
        ('options.a = 1\noptions . "a=" = 2\n', 'options.z = 3\noptions . "a=" = 2\n'),
        ("[options.a]\nx = 1\n\n[env]\n", "[options]\nz = 3\n\n[env]\n"),
        (
            '[[override]]\n"" = 1\n[options]\na = 1\n"" = 2\n',
            '[[override]]\n"" = 1\n[options]\nz = 3\n"" = 2\n',
        ),
    ],
)
def test_a_key_is_renamed_where_it_stands(before: str, after: str) -> None:
    assert apply_changes(before, [PathChange(("options", "a"), 3, name="z")]) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{ a = 1 }", "{ z = 3 }"),
        ("{ b = 2, a = 1 }", "{ b = 2, z = 3 }"),
        ('{ "}" = 2, a = 1}', '{ "}" = 2, z = 3}'),
    ],
)
def test_an_inline_table_keeps_the_blanks_at_its_braces(before: str, after: str) -> None:
    assert (
        apply_changes(f"options = {before}\n", [PathChange(("options", "a"), 3, name="z")])
        == f"options = {after}\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            'mstune_mode = "1"\naoe_mode = "2"\n',
            "the preset sets aoe_mode as well",
            id="both names set",
        ),
        pytest.param(
            'precision_mode = "allow_mix_precision"\n[[override]]\n'
            'match = { product = "atlas-a2" }\n'
            'options = { precision_mode = "allow_fp32_to_bf16" }\n',
            'an override gives it "allow_fp32_to_bf16"',
            id="value without a new form in an override",
        ),
        pytest.param(
            'op_select_implmode = "high_precision"\n'
            'optypelist_for_implmode = "Pooling"\n[[override]]\n'
            'match = { product = "atlas-a2" }\n'
            'options = { optypelist_for_implmode = "SoftmaxV2" }\n',
            "an override changes optypelist_for_implmode alone",
            id="override that changes one of two keys",
        ),
    ],
)
def test_a_key_gets_its_new_name_everywhere_or_nowhere(
    options: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert migrate(tmp_path, options) == (1, options)
    assert message in capsys.readouterr().out


def test_a_family_is_migrated_from_its_base_upwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    child = '[profile]\nextends = ["p"]\n\n[options]\nprecision_mode = "force_fp32"\n'
    write(
        tmp_path,
        {
            "profiles/child.toml": child,
            "profiles/p.toml": '[options]\nprecision_mode = "allow_mix_precision"\n',
        },
    )
    again = ["migrate", "child", "--cann", "9.0.0", "--store", str(tmp_path / "profiles")]
    assert __main__.main(again) == 1
    assert "p sets it too and has to be migrated first" in capsys.readouterr().out
    assert (tmp_path / "profiles/child.toml").read_text() == child
    assert migrate(tmp_path, 'precision_mode = "allow_mix_precision"\n', "--no-check") == (
        1,
        'precision_mode_v2 = "mixed_float16"\n',
    )
    assert (
        "child names precision_mode, and inherits precision_mode_v2 now" in capsys.readouterr().out
    )
    assert __main__.main(again) == 0
    assert (
        (tmp_path / "profiles/child.toml")
        .read_text()
        .endswith('\nprecision_mode_v2 = "cube_fp16in_fp32out"\n')
    )
    assert __main__.main(["check", "--cann", "9.0.0", "--store", str(tmp_path / "profiles")]) == 0


# -- a whole store --------------------------------------------------------------------------------

STORE = {
    "zz-base": (
        '[profile]\ndescription = "b"\ncann = ">=8.0,<9"\n\n[options]\n# why\n'
        'precision_mode = "allow_mix_precision" # keep\n'
    ),
    "heir": (
        '[profile]\ndescription = "h"\nextends = ["zz-base"]\n\n[options]\n'
        'precision_mode = "must_keep_origin_dtype"\n'
    ),
    "plain": '[profile]\ndescription = "p"\nextends = ["zz-base"]\n',
    "apart": '[profile]\ndescription = "a"\n\n[options]\njit_compile = true\n',
}


def store_texts(folder: Path) -> dict[str, str]:
    return {path.stem: path.read_text() for path in folder.glob("*.toml")}


def test_a_store_is_moved_parents_first_as_preset_after_preset_would_be(
    tmp_path: Path, store: Store, run: Run
) -> None:
    folder = store(STORE)
    alone = write(tmp_path / "one", {f"profiles/{name}.toml": text for name, text in STORE.items()})
    for name in ("zz-base", "apart", "heir", "plain"):
        run(
            "migrate",
            name,
            "--cann",
            "9.0.0",
            "--no-check",
            "--store",
            tmp_path / "one" / "profiles",
        )
    tried = run("migrate", "--all", "--cann", "9.0.0", "--dry-run")
    assert store_texts(folder) == STORE
    done = run("migrate", "--all", "--cann", "9.0.0")
    assert (done.code, done.out) == (tried.code, tried.out) == (0, done.out), done.err
    assert store_texts(folder) == store_texts(tmp_path / "one" / "profiles"), alone
    assert 'precision_mode_v2 = "origin"' in store_texts(folder)["heir"]
    assert (
        done.out.index("zz-base: M") < done.out.index("heir: M") < done.out.index("--- a/profiles/")
    )
    assert "wrote 3 files" in done.err
    again = run("migrate", "--all", "--cann", "9.0.0")
    assert again.code == 0
    assert again.out == ""
    assert "nothing to change" in again.err


def test_what_is_left_to_decide_in_a_store_is_told_once_and_is_the_exit(
    store: Store, run: Run
) -> None:
    store({**STORE, "zz-base": STORE["zz-base"] + 'op_tune_mode = "GA"\n'})
    result = run("migrate", "--all", "--cann", "9.0.0", "--format", "json")
    assert result.code == 1
    fields = json.loads(result.out)
    assert fields["schema"] == "npuprof.migrate-store/1"
    assert fields["cann"] == "9.0.0"
    assert fields["files"] == ["profiles/apart.toml", "profiles/zz-base.toml", "profiles/heir.toml"]
    assert {"apart", "zz-base", "heir", "plain"} == {
        preset["preset"] for preset in fields["presets"]
    }


def test_a_store_with_a_preset_that_cannot_be_read_is_not_moved(store: Store, run: Run) -> None:
    folder = store({**STORE, "broken": "[profile\n", "lost": "[profile]\nextends = ['nowhere']\n"})
    result = run("migrate", "--all", "--cann", "9.0.0")
    assert result.code == 2
    assert "broken.toml" in result.err
    assert "nowhere" in result.err
    assert store_texts(folder)["zz-base"] == STORE["zz-base"]


@pytest.mark.parametrize("arguments", [(), ("p", "--all")])
def test_a_preset_or_all_of_them_are_moved(
    arguments: tuple[str, ...], store: Store, run: Run
) -> None:
    store(STORE)
    result = run("migrate", *arguments, "--cann", "9.0.0")
    assert result.code == 2
    assert "NP902" in result.err


@pytest.mark.parametrize("arguments", [("old.py",), ("src",), ("train",)])
def test_scripts_are_rejected_with_the_scan_that_reports_what_breaks(
    arguments: tuple[str, ...], tmp_path: Path, run: Run
) -> None:
    script = "#!/usr/bin/python\nprint(1)\n"
    write(
        tmp_path,
        {
            "profiles/p.toml": '[options]\nmstune_mode = "2"\n',
            "p/y.py": script,
            "old.py": script,
            "src/a.py": script,
            "train": script,
        },
    )
    result = run("migrate", *arguments, "--cann", "9.0.0")
    assert result.code == 2, result.err
    assert f"npuprof scan {arguments[-1]} --cann 9.0.0 reports" in result.err, result.err
    assert run("migrate", "p", "--cann", "9.0.0").code == 0, (
        "a preset wins over a folder of its name"
    )
