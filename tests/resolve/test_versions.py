"""Releases of frameworks beside CANN.

Data, ranges in both numberings, claims, contexts, and variables that a release does not read.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import npuprof
from npuprof.catalog import releases
from npuprof.catalog.records import parse_framework_version
from npuprof.catalog.releases import find_release, find_releases_in_range
from npuprof.resolve.digests import compute_preset_digest
from npuprof.store import spec
from support.building import REPOSITORY, build_store
from support.running import Run

FILES = {
    path.parent.name: tomllib.loads(path.read_text())
    for path in REPOSITORY.glob("npuprof/catalog/frameworks/*/framework.toml")
}
#: The frameworks with releases.
SOURCE = {name: rows for name, rows in FILES.items() if "releases" in rows}


@pytest.mark.parametrize("name", SOURCE)
def test_releases_and_packages_of_a_framework_are_in_order_and_found_by_their_names(
    name: str,
) -> None:
    listed, packages = SOURCE[name]["releases"], SOURCE[name].get("packages", {})
    versions = [parse_framework_version(text) for text in listed]
    assert None not in versions
    assert versions == sorted(set(versions))  # type: ignore[type-var]
    names = [package for siblings in packages.values() for package in siblings]
    assert None not in map(parse_framework_version, names)
    assert len(set(map(parse_framework_version, names))) == len(names)
    assert all(
        find_release(text, name) == text and find_releases_in_range(text, name) == (text,)
        for text in listed
    )
    assert all(
        find_release(text, name) == release for release, names in packages.items() for text in names
    )
    assert not packages or list(packages) == list(listed)
    required = {"title", "place", "releases", "source", "pins"}
    assert (
        required
        <= SOURCE[name].keys()
        <= required | {"packages", "documented", "upstream", "generated"}
    )
    assert all(row.keys() <= {"date", "ref", "refs", "runs_on"} for row in listed.values())
    assert not any({"ref", "refs"} <= row.keys() for row in listed.values())
    assert any({"ref", "refs"} & row.keys() for row in listed.values()) is (
        "upstream" in SOURCE[name]
    )
    assert SOURCE[name]["pins"]
    assert SOURCE[name]["pins"].keys() <= {"images", "packages", "repositories"}


class RangeCase(NamedTuple):
    """A range of releases, and its first and last release."""

    axis: str
    text: str
    first: str
    last: str


@pytest.mark.parametrize(
    "case",
    [
        RangeCase(axis="torch_npu", text=">=7.1,<10", first="7.1.0", last="7.3.1"),
        RangeCase(axis="torch_npu", text="<26", first="5.0.0", last="7.3.1"),
        RangeCase(axis="torch_npu", text="6.0.rc2", first="6.0.RC2", last="6.0.RC2"),
        RangeCase(axis="torch_npu", text="2.9.0", first="7.3.0", last="7.3.0"),
        RangeCase(axis="torch_npu", text="==2.9.0.post2", first="26.0.0", last="26.0.0"),
        # 2.7.1 has a package in each
        RangeCase(axis="torch_npu", text=">=2.7,<2.8", first="7.2.0", last="26.2.0-beta.1"),
        RangeCase(axis="torch_npu", text=">=2.7,<2.8,<26", first="7.2.0", last="7.3.1"),
        RangeCase(axis="torch_npu", text="<2.14", first="5.0.0", last="26.2.0-beta.1"),
        RangeCase(axis="vllm_ascend", text=">=0.9.1,<0.11", first="0.9.1", last="0.11.0rc3"),
        RangeCase(axis="vllm_ascend", text=">=v0.11.0", first="0.11.0", last="0.30.0rc2"),
        RangeCase(axis="mindspore", text=">2.4.1,<=2.5", first="2.4.10", last="2.5.0"),
    ],
    ids=lambda case: f"{case.axis} {case.text}",
)
def test_a_range_holds_the_releases_between_its_ends(
    case: RangeCase,
) -> None:
    found = find_releases_in_range(case.text, case.axis)
    known = list(releases.load_releases(case.axis))
    assert found == tuple(known[known.index(case.first) : known.index(case.last) + 1])


@pytest.mark.parametrize(
    ("head", "code", "messages"),
    [
        ('versions.torch_npu = ">=3.0"', "NP402", ("not a range of releases", "26.1.0", "2.12.0")),
        ('versions.torch_npu = "7.x"', "NP402", ("not a range of releases", '">=7,<8"')),
        ('versions.torch_npu = "7.4"', "NP402", ("contains no known release", "26.1.0", "2.12.0")),
        (
            'versions.torchnpu = ">=7.1"',
            "NP006",
            ("unknown key 'torchnpu' in versions", "write torch_npu"),
        ),
        ("versions.torch_npu = 7.1", "NP007", ("'torch_npu' in versions must be text", '">=7.1"')),
        ('versions = ">=7.1"', "NP007", ("'versions' must be a table",)),
        (
            'cann = ">=8.0"\nversions.cann = ">=9.0"',
            "NP007",
            ('cann = ">=8.0"', 'versions.cann = ">=9.0"', "remove one"),
        ),
        (
            'verions = { torch_npu = ">=7.1" }',
            "NP006",
            ("unknown key 'verions' in [profile]", "'versions'"),
        ),
    ],
)
def test_what_is_no_release_of_a_framework_is_reported_with_what_to_write(
    tmp_path: Path, head: str, code: str, messages: tuple[str, ...]
) -> None:
    store = npuprof.open_store(build_store(tmp_path, {"p": f"[profile]\n{head}\n"}))
    (finding,) = [finding for finding in npuprof.check(store) if finding.code == code]
    shown = f"{finding.message} {finding.hint}"
    assert all(text in shown for text in messages), shown
    assert finding.line > 1


@pytest.mark.parametrize(
    ("versions", "messages"),
    [
        ({"torch_npu": "7.4"}, ("unknown torch_npu release '7.4'", "26.1.0", "2.12.0")),
        ({"torch_npu": "3.0"}, ("unknown torch_npu release '3.0'",)),
        ({"torchnpu": "7.3"}, ("unknown framework 'torchnpu'", "'torch_npu'")),
        ({"cann": "99"}, ("unknown CANN release '99'",)),
    ],
)
def test_what_is_asked_for_has_to_be_a_release(
    versions: dict[str, str], messages: tuple[str, ...]
) -> None:
    with pytest.raises(npuprof.NpuprofError) as caught:
        npuprof.loads("", versions=versions)
    assert all(text in str(caught.value) for text in messages)


@pytest.mark.parametrize("release", ["27.0", "26.3.0rc1", "2.15.0", "v2.14.0.post1"])
@pytest.mark.parametrize("is_in_preset", [True, False])
def test_a_release_newer_than_all_known_ones_is_judged_as_the_newest_with_one_note(
    release: str, is_in_preset: bool
) -> None:
    newest = releases.load_releases("torch_npu")[-1]
    text = "[env]\nUSE_STORE_IN_CAT = 1\nTASK_QUEUE_ENABEL = 1\n"
    versions = {} if is_in_preset else {"torch_npu": release}
    if is_in_preset:
        text = f'[profile]\nversions.torch_npu = "{release}"\n{text}'
    found = {
        finding.code: finding for finding in npuprof.check(npuprof.loads(text, versions=versions))
    }
    assert sorted(found) == ["NP206", "NP402", "NP404"]
    assert found["NP402"].severity == "info"
    assert newest in found["NP402"].why
    assert found["NP404"].severity == "warning"
    assert newest in found["NP404"].message
    assert found["NP206"].severity == "warning"


def test_two_releases_of_one_framework_are_not_selected_together() -> None:
    with pytest.raises(
        npuprof.NpuprofError, match=r"torch_npu is asked for twice: 7\.3\.0 and 7\.1\.0"
    ):
        spec.build_context(versions=["torch_npu=7.3", "torch_npu=7.1"])
    assert spec.build_context(
        "9.0.0", versions={"cann": "9.0.0", "torch_npu": "2.9.0"}
    ).versions == (("torch_npu", "7.3.0"),)
    with pytest.raises(npuprof.NpuprofError, match="cann is asked for twice"):
        spec.build_context("9.0.0", versions={"cann": "8.0.0"})
    with pytest.raises(TypeError, match="versions must be a dict"):
        npuprof.loads("", versions={"torch_npu": 7})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        pytest.param(
            {"a": 'versions = { torch_npu = ">=7.1", cann = ">=8.1" }'},
            (">=8.1", {"torch_npu": ">=7.1"}),
            id="two frameworks",
        ),
        pytest.param(
            {"a": 'cann = ">=8.1"\nversions.cann = ">=8.1"'}, (">=8.1", {}), id="CANN in both forms"
        ),
        pytest.param(
            {"b": 'versions.torch_npu = ">=7.1"', "a": 'extends = ["b"]'},
            (None, {"torch_npu": ">=7.1"}),
            id="inherited",
        ),
        pytest.param(
            {
                "b": 'versions.torch_npu = ">=7.1"',
                "a": 'extends = ["b"]\nversions.vllm_ascend = "0.11.0"',
            },
            (None, {"torch_npu": ">=7.1", "vllm_ascend": "0.11.0"}),
            id="inherited and own",
        ),
        pytest.param(
            {
                "b": 'versions.torch_npu = ">=7.1"',
                "c": 'versions.torch_npu = "<26"',
                "a": 'extends = ["b", "c"]',
            },
            (None, {"torch_npu": ">=7.1,<26"}),
            id="intersection of two parents",
        ),
        pytest.param(
            {
                "b": 'versions.torch_npu = ">=7.1"',
                "c": 'versions.torch_npu = ">=7.3"',
                "a": 'extends = ["b", "c"]',
            },
            (None, {"torch_npu": ">=7.3"}),
            id="narrower of two parents",
        ),
        pytest.param(
            {
                "b": 'versions.torch_npu = ">=7.1"',
                "a": 'extends = ["b"]\nversions.torch_npu = ">=6.0.0"',
            },
            (None, {"torch_npu": ">=6.0.0"}),
            id="own range overrides",
        ),
    ],
)
def test_a_preset_is_for_the_releases_that_all_it_builds_on_leave_over(
    tmp_path: Path, heads: dict[str, str], expected: Any
) -> None:
    config = spec.Workspace(
        str(build_store(tmp_path, {name: f"[profile]\n{head}\n" for name, head in heads.items()}))
    ).resolve_spec("a")
    assert (config.cann, dict(config.versions)) == expected


@pytest.mark.parametrize("sides", [("<7.1", ">=7.3"), ("<2.8", ">=2.9"), ("6.0.0", "2.9.0")])
def test_parents_that_leave_no_release_are_both_named(
    tmp_path: Path, sides: tuple[str, str]
) -> None:
    texts = {
        name: f'[profile]\nversions.torch_npu = "{side}"\n'
        for name, side in zip("bc", sides, strict=True)
    }
    store = npuprof.open_store(
        build_store(tmp_path, {**texts, "a": '[profile]\nextends = ["b", "c"]\n'})
    )
    with pytest.raises(npuprof.NpuprofError) as caught:
        store.resolve("a")
    (finding,) = caught.value.findings
    assert finding.code == "NP108"
    assert "no release of torch_npu" in finding.message
    assert all(f"by {name}" in finding.message for name in "bc")


BLOCK = "\n[[override]]\nmatch = {{ {} }}\n{}\n"
NEWER = BLOCK.format('torch_npu = ">=7.3"', "env.PER_STREAM_QUEUE = 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "[env]\nPER_STREAM_QUEUE = 1", [], id="no release"
        ),  # no range: nothing is judged
        pytest.param(
            '[profile]\nversions.torch_npu = ">=7.3"\n[env]\nPER_STREAM_QUEUE = 1',
            [],
            id="read in all releases",
        ),
        pytest.param(
            '[profile]\nversions.torch_npu = ">=7.1"\n[env]\nPER_STREAM_QUEUE = 1',
            ["error NP404 7.1.0 to 7.2.0"],
            id="not read in the first releases",
        ),
        pytest.param(
            '[profile]\nversions.torch_npu = ">=2.8"\n[env]\nPER_STREAM_QUEUE = 1',
            ["error NP404 7.2.0"],
            id="range over two numberings",
        ),
        pytest.param(
            '[profile]\nversions.torch_npu = ">=7.1"\n' + NEWER,
            [],
            id="set in overrides for new releases",
        ),
        pytest.param(NEWER, [], id="overrides without a release"),
        pytest.param(
            '[profile]\nversions.torch_npu = ">=7.1"\n'
            + BLOCK.format('torch_npu = ">=7.2"', "env.PER_STREAM_QUEUE = 1"),
            ["error NP404 7.2.0"],
            id="override that includes a release too old",
        ),
        pytest.param(
            '[profile]\nversions.torch_npu = ">=7.1"\n'
            + BLOCK.format('product = "atlas-a3"', "env.PER_STREAM_QUEUE = 1"),
            ["error NP404 7.1.0 to 7.2.0"],
            id="override for a product",
        ),
        pytest.param(
            '[profile]\nversions.torch_npu = ">=7.1"\n[env]\nPER_STREAM_QUEUE = 1'
            + BLOCK.format('torch_npu = "<7.3"', 'unset = ["env.PER_STREAM_QUEUE"]'),
            [],
            id="unset for old releases",
        ),
        pytest.param(
            '[profile]\nversions.torch_npu = ">=7.1"\n'
            + BLOCK.format('torch_npu = "<7.1"', "env.TASK_QUEUE_ENABLE = 1"),
            ["warning NP711"],
            id="override outside the range",
        ),
        pytest.param(
            BLOCK.format('torch_npu = ">=99"', "env.TASK_QUEUE_ENABLE = 1"),
            ["warning NP711"],
            id="override for a release after all",
        ),
        pytest.param(
            BLOCK.format('torch_npu = "4.0"', "env.TASK_QUEUE_ENABLE = 1"),
            ["error NP402"],
            id="override for an unknown release",
        ),
        pytest.param(
            '[profile]\nversions.vllm_ascend = ">=0.11.0"\n[env]\nVLLM_ASCEND_MLA_PA = 1',
            ["error NP404 0.12.0rc1 to 0.30.0rc2"],
            id="removed from vllm_ascend",
        ),
        pytest.param(
            "[env]\nVLLM_ASCEND_MLA_PA = 1", ["warning NP502"], id="no release of vllm_ascend"
        ),
        pytest.param(
            '[profile]\nversions.torch_npu = ">=5.0.0"\n[env]\nNPU_ASD_ENABLE = 1',
            ["warning NP404 5.0.0"],
            id="not read yet, but by other programs",
        ),
        pytest.param(
            '[profile]\nversions.torch_npu = ">=7.1"\n[env]\nNPU_ASD_ENABLE = 1',
            ["warning NP501 7.1.0"],
            id="read by torch_npu for longer than its page says",
        ),
        pytest.param(
            '[profile]\nversions.mindspore = ">=2.2"\n[env]\nMS_ENABLE_TFT = "{TTP:1}"',
            ["warning NP405 2.2.0 to 2.3.1"],
            id="new after MindSpore 2.3.1",
        ),
        # env_var_list.rst of mindspore-ai/docs: branch r2.3.q1 is that of 2.3.0rc1, by
        # tools/generate_html/base_version.json
        pytest.param(
            '[profile]\nversions.mindspore = ">=2.2"\n[env]\nMS_SIMULATION_LEVEL = 1',
            ["warning NP405 2.2.0 to 2.2.14"],
            id="new after MindSpore 2.2.14",
        ),
        pytest.param(
            '[profile]\nversions.mindspore = ">=2.3.0"\n[env]\nMS_SIMULATION_LEVEL = 1\nMS_JIT = 0',
            [],
            id="known in MindSpore 2.3",
        ),
        pytest.param(
            '[profile]\nversions.mindspore = ">=2.3.0"\n[env]\nMS_CUSTOM_DEPEND_CONFIG_PATH = "/a"',
            ["warning NP405 2.3.0"],
            id="new after MindSpore 2.3.0",
        ),
        pytest.param(
            (
                '[profile]\nversions.mindspore = "2.6.0rc1"\n[env]\n'
                'MS_DEV_MINDRECORD_SHARD_BY_BLOCK = "True"'
            ),
            [],
            id="known in a release candidate",
        ),
    ],
)
def test_a_variable_is_judged_at_each_release_that_the_preset_is_meant_for(
    text: str, expected: list[str]
) -> None:
    found = [
        finding for finding in npuprof.check(npuprof.loads(text)) if finding.severity != "info"
    ]
    shown = [f"{finding.severity} {finding.code} {finding.message}" for finding in found]
    assert len(found) == len(expected), shown
    for line, parts in zip(shown, expected, strict=True):
        assert all(part in line for part in parts.split(" ", 2)), line


def test_an_override_on_a_release_takes_part_only_where_it_is_selected() -> None:
    text = '[profile]\nversions.torch_npu = ">=7.1"\n' + NEWER
    assert [
        npuprof.loads(text, versions=versions).env for versions in (None, {"torch_npu": "7.2"})
    ] == [{}, {}]
    config = npuprof.loads(text, versions={"torch_npu": "2.9.0.post2"})
    assert config.env == {"PER_STREAM_QUEUE": 1}
    assert config.context.describe() == "torch_npu 26.0.0"
    assert config != npuprof.loads(text, versions={"torch_npu": "7.3"})


def test_presets_without_releases_of_frameworks_have_the_digests_and_fields_that_they_had(
    tmp_path: Path,
) -> None:
    plain = npuprof.loads('[profile]\ncann = ">=8.0"\n[options]\nhccl_timeout = 600\n')
    spelled = npuprof.loads('[profile.versions]\ncann = ">=8.0"\n[options]\nhccl_timeout = 600\n')
    dated = npuprof.loads(
        '[profile]\ncann = ">=8.0"\nversions.torch_npu = ">=7.1"\n[options]\nhccl_timeout = 600\n'
    )
    assert plain.preset_digest == spelled.preset_digest
    assert (
        compute_preset_digest(plain.lineage, form=2)
        == "f7258fc9612ef4e9f0865faa70c26a3fbcef5584a2ead39ff14db12d98409410"
    )
    assert plain.digest == dated.digest
    assert plain.preset_digest != dated.preset_digest
    assert "versions" not in npuprof.render(plain, "json") + npuprof.render(plain, "toml")
    assert 'versions = { torch_npu = ">=7.1" }' in npuprof.render(dated, "toml")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["show", "p", "--framework", "torch_npu=7.3"], "PER_STREAM_QUEUE = 1"),
        (["env", "p", "--framework=torch_npu=2.9.0"], "export NPUPROF_CONTEXT='torch_npu 7.3.0'"),
        (
            ["render", "p", "--to", "toml", "--framework", "torch_npu=7.3", "--cann", "9.0.0"],
            "# context: cann 9.0.0, torch_npu 7.3.0",
        ),
        (
            ["check", "p", "--cann", "9.0.0", "--cann", "8.5.0", "--framework", "torch_npu=7.3"],
            "9.0.0 torch_npu 7.3.0",
        ),
        (["diff", "p", "q", "p", "--all"], "profile.versions.torch_npu"),
        (["set", "p", "profile.versions.torch_npu=>=7.2", "--dry-run"], '+torch_npu = ">=7.2"'),
        (
            ["scan", "job.sh", "--framework", "torch_npu=7.2"],
            "env.PER_STREAM_QUEUE is not read in torch_npu 7.2.0",
        ),
        (
            ["inject", "job.sh", "p", "--framework", "torch_npu=7.3", "--dry-run"],
            "# framework: torch_npu=7.3",
        ),
        (
            ["check", "q", "--framework", "torch_npu=7.2"],
            "warning NP406: the preset is meant for torch_npu >=7.3, not for 7.2.0",
        ),
    ],
)
def test_commands_take_releases_of_frameworks(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: str
) -> None:
    texts = {
        "p": '[profile.versions]\ncann = ">=8.5"\ntorch_npu = ">=7.1"\n' + NEWER,
        "q": '[profile.versions]\ntorch_npu = ">=7.3"\n',
    }
    build_store(tmp_path / "profiles", texts)
    (tmp_path / "job.sh").write_text("export PER_STREAM_QUEUE=1\npython train.py\n")
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert expected in done.out + done.err


def test_explain_names_the_presets_that_set_the_releases_of_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    base = '[profile.versions]\ntorch_npu = ">=7.3"\n'
    leaf = '[profile]\nextends = ["base"]\nversions = { verl = ">=0.8", vllm = ">=0.23" }\n'
    build_store(tmp_path / "profiles", {"base": base, "leaf": leaf})
    lines = run("explain", "leaf", "profile.versions").out.splitlines()
    assert [line.split(maxsplit=2)[2] for line in lines if "set by" in line] == [
        "base (profiles/base.toml:2)",
        "leaf (profiles/leaf.toml:3)",
    ]
