"""Digest form 3: one value has one digest, and releases of older forms stay what they were."""

from __future__ import annotations

import json
import re
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

import npuprof
from npuprof.edit.merge import merge_texts
from support.building import build_store
from support.repositories import Repo
from support.running import Run, Store, expect

#: Groups of texts: those of one group are one value, those of different groups are not.
GROUPS = {
    "numbers of variables": (
        ("env.A = 3", 'env.A = "3"'),
        ('env.A = "03"',),
        ("env.A = 3.0", 'env.A = "3.0"'),
        ("env.A = true", 'env.A = "true"'),
        ('env.A = { launcher = "rank" }',),
        ('env.A = "rank"',),
    ),
    "a switch of the catalogue": (
        ("env.HCCL_WHITELIST_DISABLE = true", "env.HCCL_WHITELIST_DISABLE = 1"),
        ("env.HCCL_WHITELIST_DISABLE = 0", 'env.HCCL_WHITELIST_DISABLE = "0"'),
    ),
    "pairs": (
        (
            'env.PYTORCH_NPU_ALLOC_CONF = "max_split_size_mb:64,expandable_segments:True"',
            'env.PYTORCH_NPU_ALLOC_CONF = "expandable_segments:True, max_split_size_mb:64"',
            "env.PYTORCH_NPU_ALLOC_CONF = { max_split_size_mb = 64, expandable_segments = true }",
            'env.PYTORCH_NPU_ALLOC_CONF = { expandable_segments = true, max_split_size_mb = "64" }',
        ),
        ('env.PYTORCH_NPU_ALLOC_CONF = "max_split_size_mb:64"',),
        ('env.PYTORCH_NPU_ALLOC_CONF = "max_split_size_mb:64,max_split_size_mb:64"',),
    ),
    "JSON arguments": (
        (
            """vllm.compilation-config = '{"mode": 3, "sizes": [1, 2]}'""",
            """vllm.compilation-config = ' {"sizes":[1,2],"mode":3}'""",
            "vllm.compilation-config = { mode = 3, sizes = [1, 2] }",
        ),
        ("""vllm.compilation-config = '{"mode": 3, "sizes": [2, 1]}'""",),
        ("""vllm.compilation-config = '{"mode": 3, "mode": 3}'""",),
        ("""vllm.compilation-config = '{"mode": null}'""",),
        ("""vllm.compilation-config = '{"mode": NaN}'""",),
        ("""vllm.compilation-config = '{"mode": 3'""",),
        ("""vllm.compilation-config = '{"mode": "\\ud800"}'""",),
        ("vllm.compilation-config = '[1]'",),
        ("vllm.compilation-config = [1]",),
    ),
    "keys of a table": (
        (
            'vllm.speculative-config = { method = "ngram", num_speculative_tokens = 3 }',
            'vllm."speculative-config.method" = "ngram"\n'
            'vllm."speculative-config.num_speculative_tokens" = 3',
            "vllm.speculative-config.num_speculative_tokens = 3\n"
            'vllm."speculative-config.method" = "ngram"',
        ),
        (
            'vllm."speculative-config.method" = "suffix"\n'
            'vllm."speculative-config.num_speculative_tokens" = 3',
        ),
        ('vllm."speculative-config.method" = "ngram"',),
    ),
    "arguments that are no variables": (
        ("vllm.port = 3",),
        ('vllm.port = "3"',),
        ("vllm.port = 3.0",),
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_a_diff_is_empty_if_and_only_if_the_digests_are_equal(name: str) -> None:
    rows = [
        (number, npuprof.loads(text)) for number, group in enumerate(GROUPS[name]) for text in group
    ]
    for (left, before), (right, after) in combinations_with_replacement(rows, 2):
        shown = dict(before), dict(after)
        assert (npuprof.diff(before, after) == []) is (left == right), shown
        assert (before.digest == after.digest) is (left == right), shown
        assert (before == after) is (left == right), shown


def test_a_preset_digest_counts_the_number_of_a_variable_as_its_text() -> None:
    digests = {
        text: npuprof.loads(text).preset_digest
        for text in ("env.A = 3", 'env.A = "3"', "env.A = 4")
    }
    assert digests["env.A = 3"] == digests['env.A = "3"'] != digests["env.A = 4"]


def test_a_preset_digest_covers_each_quoted_key_of_a_table_once() -> None:
    same, *others = GROUPS["keys of a table"]
    digests = [{npuprof.loads(text).preset_digest for text in group} for group in (same, *others)]
    assert [len(found) for found in digests] == [1, 1, 1]
    assert len(set.union(*digests)) == 3


BASE = """[vllm]
hf-overrides = '{"mode": 3, "sizes": [1]}'
"""


@pytest.mark.parametrize(
    ("child", "value"),
    [
        pytest.param("vllm.hf-overrides.x = 1", {"mode": 3, "sizes": [1], "x": 1}, id="table"),
        pytest.param(
            "append.vllm.hf-overrides.sizes = [2]", {"mode": 3, "sizes": [1, 2]}, id="append"
        ),
        pytest.param('profile.unset = ["vllm.hf-overrides.mode"]', {"sizes": [1]}, id="unset"),
        pytest.param("""vllm.hf-overrides = '{"x": 1}'""", '{"x": 1}', id="another text"),
        pytest.param("vllm.port = 1", '{"mode": 3, "sizes": [1]}', id="untouched"),
    ],
)
def test_a_json_argument_is_changed_as_its_table(tmp_path: Path, child: str, value: object) -> None:
    text = f"profile.extends = ['base']\n{child}\n"
    store = npuprof.open_store(build_store(tmp_path, {"base": BASE, "child": text}))
    config = store.resolve("child")
    assert config["vllm.hf-overrides"] == value
    assert config.origins("vllm.hf-overrides")
    rendered = npuprof.render(config, "vllm")["config.yaml"]
    line = next(line for line in rendered.splitlines() if line.startswith("hf-overrides"))
    written = line.partition(": ")[2]
    assert (written[0] == '"') is isinstance(value, str)  # a text is written as the text


@pytest.mark.parametrize(
    ("own", "repeated"),
    [
        ('env.A = "3"', "env.A"),
        ('env.PYTORCH_NPU_ALLOC_CONF = "b:2,a:1"', "env.PYTORCH_NPU_ALLOC_CONF"),
        ("vllm.compilation-config = { mode = 3 }", "vllm.compilation-config"),
    ],
)
def test_an_equal_value_in_another_form_is_inherited_anyway(
    tmp_path: Path, run: Run, own: str, repeated: str
) -> None:
    base = """env.A = 3
env.PYTORCH_NPU_ALLOC_CONF = "a:1,b:2"
vllm.compilation-config = '{"mode": 3}'
"""
    store = build_store(tmp_path, {"base": base, "child": f"profile.extends = ['base']\n{own}\n"})
    found = npuprof.check(npuprof.open_store(store).resolve("child"))
    assert [finding.key for finding in found if finding.code == "NP701"] == [repeated]


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [('"3"', "4", "4"), ("4", '"3"', "4"), ("4", '"4"', "4"), ("4", "5", "")],
)
def test_a_merge_takes_equal_texts_of_a_variable_for_no_change(
    ours: str, theirs: str, merged: str
) -> None:
    done = merge_texts(*(f"[env]\nA = {value}\n" for value in ("3", ours, theirs)))
    assert bool(done.conflicts) is (not merged)
    assert not merged or done.text == f"[env]\nA = {merged}\n"


# -- releases of older forms ----------------------------------------------------------------------

SERVING = """[profile]
description = "serving"
scenario = "online-inference"

[vllm]
model = "Qwen/Qwen3-8B"
gpu_memory_utilization = 0.9
compilation-config = '{"mode": 3}'

[env]
ASCEND_GLOBAL_LOG_LEVEL = 3
PYTORCH_NPU_ALLOC_CONF = "max_split_size_mb:64,garbage_collection_threshold:0.8"
"""
LEAF = """[profile]
description = "the same with fewer graphs"
extends = ["base@1.0.0"]

[vllm]
compilation-config = { cudagraph_mode = "NONE" }
"""
#: What npuprof 0.2.0 recorded of them.
RECORDS = {
    "base": (
        "561e80c5c3a4fa209b58dde669ce3c66e4d23ae1c914140551b59f343fd85ee4",
        "0c2dfaef9f9d9de12660d5689d7249fad03d7add4ceca7423ae45aee9756c183",
    ),
    "leaf": (
        "652e9156dad156b1e055ac256dafc7b7a5fe390594dd74b0ef2357370a63ed40",
        "f67e0c31e97627906de9640ec7532ecfd236396001be69bbd0ec0822f25153c6",
    ),
}

#: A preset with keys that are texts, and what npuprof 0.2.0 recorded of it.
QUOTED = """[vllm]
"speculative-config.method" = "ngram"
"speculative-config.num_speculative_tokens" = 3
"""
QUOTED_RECORD = (
    "a700b45023ac2ec60c91f1e73ecdf9c85184f3a89435c984187f647fd5c58481",
    "15bab00c9bcf63c7af62ea62c18f288bf4b2b99070a243f55053e0441283dc5b",
)


@pytest.fixture
def older(repo: Repo) -> Repo:
    """A repository with two presets that were released in form 2."""
    commit = repo.commit({"base": SERVING, "leaf": LEAF}, "serving")
    for name, (digest, preset_digest) in RECORDS.items():
        record = f"Digest: {digest}\nPreset-Digest: {preset_digest}\nDigest-Form: 2\n"
        if name == "leaf":
            record += f"Parent: base@1.0.0 1.0.0 {commit}\n"
        repo.git("tag", "-a", f"{name}/v1.0.0", "-m", f"{name} 1.0.0\n\n{record}")
    return repo


def test_a_release_of_form_2_has_its_values_digests_and_files(older: Repo, run: Run) -> None:
    expect(run("verify", "--tags"), 0, "2 match")
    shown = json.loads(run("show", "leaf@1.0.0", "--format", "json").out)
    assert (shown["digest"], shown["preset_digest"]) == RECORDS["leaf"]
    assert shown["digest_form"] == 2
    assert shown["vllm"] == {
        "compilation-config": {"cudagraph_mode": "NONE"},
        "gpu_memory_utilization": 0.9,
        "model": "Qwen/Qwen3-8B",
    }
    assert run("render", "leaf@1.0.0", "--to", "vllm", "-o", "out").code == 0
    written = Path("out/config.yaml").read_text()
    assert re.findall(r"digest: sha256:(\w+) \(form 2\)", written) == list(RECORDS["leaf"])
    assert 'gpu_memory_utilization: 0.9\nmodel: "Qwen/Qwen3-8B"\n' in written
    assert run("source", "vendor", ".").code == 0
    kept = [path for path in Path("profiles/.released").rglob("*") if path.is_file()]
    assert any("Digest-Form: 2" in path.read_text() for path in kept)
    assert run("check", "leaf").code == 0


def test_quoted_keys_of_a_release_of_form_2_stay_arguments_of_their_own(
    repo: Repo, run: Run
) -> None:
    repo.commit({"base": QUOTED}, "serving")
    digest, preset_digest = QUOTED_RECORD
    record = f"Digest: {digest}\nPreset-Digest: {preset_digest}\nDigest-Form: 2\n"
    repo.git("tag", "-a", "base/v1.0.0", "-m", f"base 1.0.0\n\n{record}")
    expect(run("verify", "--tags"), 0, "1 match")
    shown = json.loads(run("show", "base@1.0.0", "--format", "json").out)
    assert (shown["digest"], shown["preset_digest"]) == QUOTED_RECORD


@pytest.mark.parametrize("digest", [digest for pair in RECORDS.values() for digest in pair])
def test_digests_of_form_2_are_identified(older: Repo, run: Run, digest: str) -> None:
    older.commit({"leaf": LEAF + "port = 8000\n"}, "port")
    expect(run("whatran", digest), 0, "@1.0.0", "version 1.0.0")


def test_a_changed_preset_of_form_2_is_identified_by_its_committed_values(
    older: Repo, run: Run
) -> None:
    older.commit({"leaf": LEAF.replace("@1.0.0", "")}, "unpinned")
    older.commit({"leaf": "env.A = 1\n"}, "gone")
    expect(run("whatran", RECORDS["leaf"][0]), 0, "version 1.0.0", "2 commits")


def test_the_same_text_is_released_again_if_its_value_changed_with_the_form(
    older: Repo, run: Run
) -> None:
    older.commit(message="later")
    expect(run("release", "leaf", "--dry-run"), 0, "1.1.0", "vllm.compilation-config.mode 3")


@pytest.mark.parametrize(
    ("own", "value"),
    [
        pytest.param("", {"gpu_memory_utilization": 0.9}, id="as it was released"),
        pytest.param(
            "vllm.gpu-memory-utilization = 0.7\n", {"gpu-memory-utilization": 0.7}, id="set"
        ),
        pytest.param('unset = ["vllm.gpu-memory-utilization"]\n', {}, id="unset"),
    ],
)
def test_a_pinned_parent_keeps_its_spelling_until_a_child_sets_the_argument(
    older: Repo, run: Run, own: str, value: dict[str, float]
) -> None:
    text = f'extends = ["base@1.0.0"]\n{own}'
    older.write({"leaf": re.sub(r"^(?=extends|unset)", "profile.", text, flags=re.M)})
    config = npuprof.open_store().resolve("leaf")
    assert {key.removeprefix("vllm."): config[key] for key in config if "memory" in key} == value
    if own.startswith("vllm"):
        _, parent = config.origins("vllm.gpu-memory-utilization")
        assert (parent.profile, parent.revision) == ("base", older.head)
    assert [found for found in npuprof.check(config) if found.severity != "info"] == []
    cleared = run("unset", "leaf", "vllm.gpu_memory_utilization")
    if not own:
        assert 'unset = ["vllm.gpu-memory-utilization"]' in cleared.out


# -- one spelling ---------------------------------------------------------------------------------

MISSPELT = """[profile]
unset = ["vllm.max_model_len", "vllm.x_y.a_b"]
locked = ["vllm.gpu_memory_utilization"]
[vllm]
gpu_memory_utilization = 0.9 # a share
compilation_config = { cudagraph_mode = "NONE" }
port = 8000
[append.vllm]
lora_modules = ["a=b"]
[[override]]
match = { product = "atlas-a3" }
unset = ["vllm.served_model_name"]
vllm.max_num_seqs = 8
[env]
A_B = 1
"""
SPELLED = re.sub(
    r"vllm\.x_y|max_model_len|gpu_memory_utilization|compilation_config|lora_modules"
    r"|served_model_name|max_num_seqs",
    lambda match: match[0].replace("_", "-"),
    MISSPELT,
)


def test_other_spellings_are_errors_that_fix_corrects_everywhere(store: Store, run: Run) -> None:
    store({"p": MISSPELT})
    found = npuprof.check(npuprof.open_store().resolve("p"))
    assert sum(finding.code == "NP215" for finding in found) == 8
    assert run("render", "p", "--to", "vllm").code == 2
    run("check", "--fix")
    assert Path("profiles/p.toml").read_text() == SPELLED
    assert "NP215" not in run("check").out


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        pytest.param(
            ("set", "p", "vllm.gpu_memory_utilization=0.8"),
            ["+gpu-memory-utilization = 0.8"],
            id="set",
        ),
        pytest.param(
            ("set", "p", "vllm.max_num_seqs=1"), ["+max-num-seqs = 1"], id="set a new one"
        ),
        pytest.param(("set", "p", "vllm.lora_modules+=c=d"), [], id="append"),
        pytest.param(("unset", "p", "vllm.gpu_memory_utilization"), [], id="unset"),
        pytest.param(("migrate", "p", "--cann", "9.0.0"), [], id="migrate"),
    ],
)
def test_edits_write_dashes(
    store: Store,
    run: Run,
    arguments: tuple[str, ...],
    lines: list[str],
) -> None:
    store({"p": MISSPELT.replace("locked", "#locked")})
    done = run(*arguments)
    assert "wrote profiles/p.toml" in done.err
    text = Path("profiles/p.toml").read_text()
    names = re.findall(r"^(?:unset.*|[\w-]+ = .*|vllm\..*)$", text, re.M)
    assert not [
        name for name in names if re.search(r"^\w+_\w+ =|vllm\.\w+_", name.replace("A_B", ""))
    ]
    assert all(line[1:] in text for line in lines)
    if arguments[0] != "unset":
        assert "# a share" in text


def test_a_table_with_both_spellings_is_left_and_reported(store: Store, run: Run) -> None:
    text = "[vllm]\nmax_num_seqs = 3\nmax-num-seqs = 4\n"
    store({"p": text})
    expect(run("check", "--fix"), 1, "NP215", "max-num-seqs is set too: remove one of them")
    assert Path("profiles/p.toml").read_text() == text


def test_arguments_of_the_command_line_are_spelled_with_dashes(store: Store, run: Run) -> None:
    store({"p": "[vllm]\nmax-num-seqs = 3\nport = 1\n"})
    changes = ("--set", "vllm.max_num_seqs=4", "--unset", "vllm.port")
    assert "[vllm]\nmax-num-seqs = 4\n" in run("show", "p", *changes).out
    config = npuprof.open_store().resolve("p", set={"vllm.max_num_seqs": 5})
    assert dict(config) == {"vllm.max-num-seqs": 5, "vllm.port": 1}


def test_the_editor_schema_rejects_underscores_in_names_of_arguments(run: Run) -> None:
    import jsonschema

    schema = json.loads(run("schema").out)
    assert not list(jsonschema.Draft7Validator(schema).iter_errors({"vllm": {"max-num-seqs": 1}}))
    assert list(jsonschema.Draft7Validator(schema).iter_errors({"vllm": {"max_num_seqs": 1}}))


def test_a_condition_names_an_argument_with_underscores(store: Store, run: Run) -> None:
    store({"p": "[vllm]\nmax-num-seqs = 3\n", "q": "[vllm]\nmax-num-seqs = 5\n"})
    assert run("list", "--where", "vllm.max_num_seqs > 4").out.split()[0] == "q"
