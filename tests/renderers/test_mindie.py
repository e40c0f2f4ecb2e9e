"""The folder for MindIE: config.json alone, over an installed file, and compared with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import npuprof
from support.building import config
from support.mindie_files import CONFIG
from support.running import Run, Store, expect

PRESET = """
[mindie]
ServerConfig.port = 2001
BackendConfig.ScheduleConfig.maxPrefillTokens = 2048
[[mindie.BackendConfig.ModelDeployConfig.ModelConfig]]
worldSize = 4
[env]
HCCL_BUFFSIZE = 1024
"""
MERGED = (
    CONFIG.replace("1999", "2001")
    .replace('"maxBatchSize" : 64', '"maxBatchSize" : 64,\n            "maxPrefillTokens" : 2048')
    .replace('"worldSize" : 2', '"worldSize" : 4')
)


@pytest.fixture
def preset(store: Store) -> None:
    store({"serving": PRESET})
    Path("installed.json").write_text(CONFIG)


@pytest.mark.usefixtures("preset")
def test_only_the_settings_of_the_preset_change_in_the_installed_file(run: Run) -> None:
    result = run("render", "serving", "--to", "mindie", "--base", "installed.json", "-o", "out")
    expect(result, 0, "wrote out/config.json, out/env.sh")
    assert Path("out/config.json").read_text() == MERGED
    assert "export HCCL_BUFFSIZE='1024'" in Path("out/env.sh").read_text()
    assert Path("installed.json").read_text() == CONFIG


@pytest.mark.usefixtures("preset")
def test_a_deployed_file_is_compared_by_what_the_preset_sets(run: Run) -> None:
    changed = run("render", "serving", "--check", "installed.json")
    assert changed.code == 1
    assert changed.err.splitlines() == [
        "npuprof: installed.json:7: ServerConfig.port is 1999, and 2001 in the preset",
        "npuprof: installed.json:20: BackendConfig.ModelDeployConfig.ModelConfig.0.worldSize is 2, "
        "and 4 in the preset",
        "npuprof: installed.json:27: BackendConfig.ScheduleConfig.maxPrefillTokens is not set",
    ]
    Path("installed.json").write_text(MERGED.replace('"made-up"', '"another"'))
    assert run("render", "serving", "--check", "installed.json") == (0, "", "")
    Path("installed.json").write_text(f"\ufeff{CONFIG}")
    assert run("render", "serving", "--check", "installed.json") == changed
    expect(run("render", "serving", "--to", "mindie", "-o", "out"), 0)
    expect(run("render", "serving", "--check", "out"), 0)
    Path("out/env.sh").write_text("export HCCL_BUFFSIZE=1\n")
    expect(run("render", "serving", "--check", "out"), 1, "out/env.sh differs")


def test_without_a_base_the_file_has_the_settings_alone() -> None:
    files = npuprof.render(config(PRESET), "mindie")
    assert json.loads(files["config.json"]) == {
        "ServerConfig": {"port": 2001},
        "BackendConfig": {
            "ScheduleConfig": {"maxPrefillTokens": 2048},
            "ModelDeployConfig": {"ModelConfig": [{"worldSize": 4}]},
        },
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n  "a": 1, // no\n}', "bad.json:2:11: error NP835 comments are not allowed"),
        ('{\n  "a": 1\n  "b": 2\n}', "bad.json:3:3: error NP835"),
        ("[1]", "bad.json: error NP835 it is no object"),
        (b'{"a": "\xff"}', "bad.json: error NP835"),
        ("[" * 200_000, "bad.json: error NP835 nested too deeply"),
    ],
)
@pytest.mark.usefixtures("preset")
def test_a_broken_base_is_reported(run: Run, text: str | bytes, words: str) -> None:
    Path("bad.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    place, _, reason = words.partition(" NP835")
    result = run("render", "serving", "--to", "mindie", "--base", "bad.json", "-o", "out")
    expect(result, 2, f"{place} NP835", *reason.split(" ", 1)[1:])
    assert not Path("out").exists()


@pytest.mark.usefixtures("preset")
def test_other_targets_have_no_base(run: Run) -> None:
    result = run("render", "serving", "--to", "json", "--base", "installed.json")
    expect(result, 2, "profile.json is not merged over another file")
    expect(run("render", "serving", "--to", "mindie", "--base", "none.json"), 2, "none.json")


@pytest.mark.parametrize("value", ["inf", "2026-01-01"])
def test_a_value_that_json_lacks_is_an_error(value: str) -> None:
    preset = config(f"[mindie]\nServerConfig.ipAddress = {value}\n")
    with pytest.raises(npuprof.NpuprofError) as caught:
        npuprof.render(preset, "mindie", check=False)
    assert [finding.code for finding in caught.value.findings] == ["NP901"]


@pytest.mark.usefixtures("preset")
def test_a_config_map_has_the_file(run: Run) -> None:
    result = run("env", "serving", "--format", "k8s-configmap")
    expect(result, 0, "start: MIES_CONFIG_JSON_PATH=/etc/npuprof/config.json")
    variables, files = yaml.safe_load_all(result.out)
    assert variables["data"]["HCCL_BUFFSIZE"] == "1024"
    assert json.loads(files["data"]["config.json"])["ServerConfig"] == {"port": 2001}
    Path("map.yaml").write_text(result.out)
    expect(run("import", "map.yaml", "-o", "profiles/back.toml"), 0)
    expect(run("diff", "serving", "back", "--exit-code"), 0)


@pytest.mark.usefixtures("preset")
def test_two_installed_files_differ_by_their_values(run: Run) -> None:
    same = json.dumps(json.loads(CONFIG))
    Path("same.json").write_text(same)
    assert run("diff", "./installed.json", "./same.json", "--exit-code") == (0, "", "")
    Path("other.json").write_text(MERGED)
    result = run("diff", "./installed.json", "./other.json", "--exit-code")
    expect(
        result,
        1,
        "~ mindie.ServerConfig.port 1999 → 2001",
        "via ./other.json:7, before ./installed.json:7",
        "worldSize = 4 }]",
        "+ mindie.BackendConfig.ScheduleConfig.maxPrefillTokens 2048",
    )
    Path("bad.json").write_text(CONFIG.replace("64", "64, # many"))
    expect(run("diff", "./installed.json", "./bad.json"), 2, "./bad.json:27:34: error NP835")
    expect(run("set", "./other.json", "env.A=1"), 2, "npuprof import ./other.json")
