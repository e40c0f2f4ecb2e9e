"""MindIE's config.json and its parts in scripts, manifests and guides: what is read, and faults."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from npuprof.checks.view import Fault
from npuprof.model import Context
from npuprof.scripts.configuration import place_fault
from npuprof.scripts.lint import check_script
from support.building import REPOSITORY
from support.importing import findings, imported, settings
from support.mindie_files import CONFIG
from support.mindie_variants import MODEL, change_file, find_faults, read_record
from support.running import Run, expect

PORT = "mindie.ServerConfig.port"
BATCH = "mindie.BackendConfig.ScheduleConfig.maxBatchSize"
MODELS = "mindie.BackendConfig.ModelDeployConfig.ModelConfig"


def places(text: str, name: str = "config.json") -> list[tuple[str, int, int]]:
    """Return code, line and column of the findings that are no notes."""
    found = [finding for finding in findings(text, name) if finding.severity != "info"]
    return [(finding.code, finding.line, finding.column) for finding in found]


def test_a_file_is_read_by_its_tables(run: Run) -> None:
    values = settings(CONFIG, "anything.json")
    assert values[PORT] == 1999
    assert values[BATCH] == 64
    assert values[MODELS] == [{"modelName": "made-up", "worldSize": 2}]
    assert imported(CONFIG, "config.json").problems == ()
    Path("config.json").write_text(CONFIG)
    expect(run("import", "config.json", "-o", "profiles/back.toml"), 0)
    render = ["render", "back", "--to", "mindie", "--trust", "--base", "config.json", "-o", "out"]
    expect(run(*render), 0)
    assert Path("out/config.json").read_text() == CONFIG
    expect(run("scan", "config.json"), 0, "no findings")


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ('"port" :', '"prot" :', ("NP212", 7, 9)),
        ("1999", '"1999"', ("NP202", 7, 9)),
        ("1999", "80", ("NP203", 7, 9)),
        ("1999", "null", ("NP202", 7, 9)),
        ('"made-up"', '"made up"', ("NP203", 19, 21)),
        ('"port" : 1999,', '"port" : 1,\n        "port" : 1999,', ("NP836", 8, 9)),
        ("1999,", "1999, // the port", ("NP835", 7, 24)),
        ("1999,", "1999,\n # the port\n", ("NP835", 8, 2)),
        # Python 3.13 names the place of the comma
        ("64\n", "64,\n", ("NP835", 28, 9) if sys.version_info < (3, 13) else ("NP835", 27, 32)),
        ("1999,", "1999", ("NP835", 8, 9)),
        ("false", "False", ("NP835", 8, 26)),
    ],
)
def test_a_fault_has_its_place(before: str, after: str, found: tuple[str, int, int]) -> None:
    assert before in CONFIG
    assert found in places(CONFIG.replace(before, after, 1))
    assert len(places(CONFIG.replace(before, after, 1))) == 1


@pytest.mark.parametrize(
    ("left_out", "found"),
    [
        (["ServerConfig.port"], ["error NP837"]),
        (["ServerConfig.port", "ServerConfig.inferMode"], ["error NP837"] * 2),
        ([f"{MODEL}.cpuMemSize"], ["error NP837"]),
        (["ServerConfig.managementPort"], []),
        (["BackendConfig.ScheduleConfig"], []),  # a part of a file
    ],
)
def test_a_file_with_nearly_all_compulsory_keys_needs_the_others(
    left_out: list[str], found: list[str]
) -> None:
    data, _ = read_record("3.0.0")
    data = change_file(data, [[key] for key in left_out])
    assert [f"{each.severity} {each.code}" for each in find_faults(data, "3.0.0")] == found
    text = json.dumps(data)
    unpinned = [f"{each.severity} {each.code}" for each in findings(text, "config.json")]
    assert unpinned == [each.replace("error", "warning") for each in found]


def test_a_value_that_a_release_does_not_read_is_not_judged() -> None:
    data, _ = read_record("3.0.0.beta.1")
    data = change_file(data, [["ServerConfig.HealthCheckConfig.npuUsageThreshold", 101]])
    assert [each.code for each in find_faults(data, "3.0.0.beta.1")] == ["NP404"]
    assert [each.code for each in find_faults(data, "3.0.0")] == ["NP203"]


def test_a_fault_in_a_list_of_tables_has_the_place_of_its_key() -> None:
    (models,) = [item for item in imported(CONFIG, "a.json").settings if item.key == MODELS]
    for tail, place in {
        (0, "worldSize"): (20, 21),
        (0, "none"): (18, 17),
        (5,): (17, 13),
        (): (17, 13),
    }.items():
        found = place_fault(Fault("NP203", "", tail=tail), models)
        assert (found.line, found.column) == place


def test_the_rest_of_a_broken_file_is_judged() -> None:
    text = CONFIG.replace('"1.0.0",', '"1.0.0", // release').replace(": 64", ": -64")
    assert places(text) == [("NP835", 2, 26), ("NP203", 27, 13)]


@pytest.mark.parametrize("port", ["{{ .Values.port }}", "${PORT}", "<port>"])
def test_a_template_is_not_called_broken(port: str) -> None:
    assert "NP835" not in [code for code, *_ in places(CONFIG.replace("1999", port))]


@pytest.mark.parametrize("quoted", [False, True])
def test_a_file_in_a_config_map_is_read(quoted: bool) -> None:
    bad = CONFIG.replace("1999", "80")
    block = "".join(f"    {line}\n" for line in bad.splitlines())
    data = f"  config.json: {json.dumps(bad)}\n" if quoted else f"  config.json: |\n{block}"
    text = f"kind: ConfigMap\ndata:\n  HCCL_BUFFSIZE: '100'\n{data}"
    # blanks are written alike, and quotes are escaped
    column = 17 + bad.index('"port"') if quoted else 13
    assert places(text, "map.yaml") == [("NP203", 4 if quoted else 11, column)]
    assert settings(text, "map.yaml")["env.HCCL_BUFFSIZE"] == "100"


def test_a_file_in_other_settings_is_read() -> None:
    text = json.dumps({"role": {"config": json.loads(CONFIG)}}, indent=1)
    assert settings(text, "deploy.json")[PORT] == 1999


@pytest.mark.parametrize(
    "text",
    [
        '{"ServerConfig": {"port": 80}}',
        '{"ServerConfig": {"port": 80, "hosts": ["a"], "timeout": 3, "workers": 2}}',
        '{"port": 80, "ipAddress": "x"}',
        '{"BackendConfig": []}',
    ],
)
def test_files_of_other_programs_are_not_read(text: str) -> None:
    assert settings(text, "config.json") == {}
    assert settings(f"```json\n{text}\n```\n", "guide.md").get(PORT, 80) == 80


GUIDE = """\
# Guide

```json
"BackendConfig" : {
    "npuDeviceIds" : [[0,1, ...]],
    "ModelDeployConfig" : {
        "maxSeqLen" : 4096, // tokens
        "ModelConfig" : [ { "worldSize" : 2, ... "modelName" : <name> } ]
    },
    "ScheduleConfig" : {
        ...
        "maxBatchSize" : "64",
    }
}
```

1. Then:

   ```
   "maxSeqLen": 0,
   "maxInputTokenLen": 4096, "truncation": <true or false>,
   ......
   ```

```json
{"model": "x", "stream": true, "max_tokens": 3, "port": 3}
```
"""


def test_parts_in_guides_are_read_as_far_as_they_go() -> None:
    assert places(GUIDE, "guide.md") == [("NP202", 12, 9), ("NP203", 20, 4), ("NP3523", 21, 4)]
    values = settings(GUIDE, "guide.md")
    assert values[MODELS] == [{"worldSize": 2}]
    assert sorted(values) == sorted(
        [
            MODELS,
            BATCH,
            "mindie.BackendConfig.ModelDeployConfig.maxSeqLen",
            "mindie.BackendConfig.ModelDeployConfig.maxInputTokenLen",
            "mindie.BackendConfig.npuDeviceIds",
        ]
    )


SIDE_BY_SIDE = """\
```
"httpsEnabled" : false, # why
...
"multiNodesInferEnabled" : true,
...
"npuDeviceIds" : [[0,1,2,3,4,5,6,7]],
...
"modelName" : "any" # no comma
"modelWeightPath" : "weights",
"worldSize":7,
```
"""


def test_keys_of_several_tables_side_by_side_are_read() -> None:
    assert settings(SIDE_BY_SIDE, "guide.md") == {
        "mindie.ServerConfig.httpsEnabled": False,
        "mindie.BackendConfig.multiNodesInferEnabled": True,
        "mindie.BackendConfig.npuDeviceIds": [[0, 1, 2, 3, 4, 5, 6, 7]],
        MODELS: [{"modelName": "any", "modelWeightPath": "weights", "worldSize": 7}],
    }
    assert places(SIDE_BY_SIDE, "guide.md") == [("NP3500", 8, 1)]


def test_files_within_other_tables_of_a_guide_are_read() -> None:
    roles = [{"role": number, "config": json.loads(CONFIG)} for number in (1, 2)]
    text = f"```json\n{json.dumps({'roles': roles}, indent=1)}\n```\n"
    assert [site.surface for site in imported(text, "guide.md").sites] == ["mindie", "mindie"]


def test_keys_that_stand_for_comments_are_passed_over() -> None:
    assert places(CONFIG.replace('"port"', '"_comment" : "the port", "port"')) == []


# MindIE-LLM's ModelParam reads no other key of a model
def test_a_misspelt_key_of_a_model_is_found() -> None:
    for slip in ("worldsize", "worldSzie"):
        assert places(CONFIG.replace('"worldSize"', f'"{slip}"')) == [("NP212", 20, 21)]
    assert places(CONFIG.replace('"worldSize"', '"kv_timeout" : 1, "worldSize"')) == []


# keys of files before 3.0.0, which the sources since then do not read
def test_keys_of_older_releases_are_not_called_unknown() -> None:
    old = CONFIG.replace('"port"', '"tlsPkPwd" : "file", "kmcKsfMaster" : "file", "port"')
    assert places(old) == []
    found = check_script(imported(old, "a.json"), Context(versions=(("mindie", "3.0.0"),)))
    assert [finding.code for finding in found] == ["NP404", "NP404"]


def test_guides_are_read_on_request(run: Run) -> None:
    Path("docs").mkdir()
    Path("docs/guide.md").write_text(GUIDE)
    expect(run("scan", "docs"), 0)
    expect(run("scan", "--docs", "docs"), 1, "docs/guide.md:12:9: error NP202")


def test_only_a_whole_file_shows_what_is_unset() -> None:
    assert [site.closed for site in imported(CONFIG, "config.json").sites] == [True]
    part = CONFIG.replace('"port" : 1999,', '"port" : 1999, ...')
    assert [site.closed for site in imported(f"```json\n{part}```", "a.md").sites] == [False]


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(rule, id=rule["code"])
        for rule in tomllib.loads((REPOSITORY / "npuprof/catalog/rules.toml").read_text())["rule"]
        # notes are for presets
        if rule["options"][0].startswith("mindie.") and rule["severity"] != "info"
    ],
)
def test_a_file_is_judged_like_a_preset(rule: dict[str, Any]) -> None:
    codes = []
    for name in ("bad", "good"):
        preset = tomllib.loads(rule[name])
        versions = tuple(preset.get("profile", {}).get("versions", {}).items())
        file = imported(json.dumps(preset["mindie"]), "config.json")
        found = check_script(file, Context(versions=versions))
        codes.append(rule["code"] in {finding.code for finding in found})
    assert codes == [True, False]
