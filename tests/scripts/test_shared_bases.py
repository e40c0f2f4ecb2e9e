"""Presets of many scripts as a family: leaves resolve to their scripts' settings."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof import __main__, catalog
from npuprof.document import keys, parse_document
from npuprof.scripts.preset_draft import Draft, Note, Source
from npuprof.scripts.script_records import ScriptLocation, ScriptSetting, ScriptValue
from npuprof.scripts.shared_bases import Family, build_family, find_needed_releases
from npuprof.scripts.topics import find_topic, join_topics
from support.building import examples
from support.importing import HEAD, write

MIXED = {"precision_mode": "allow_mix_precision", "use_off_line": True}
OVERFLOW = {"enable_dump_debug": True, "dump_path": "/d", "dump_debug_mode": "all"}


def draft(file: str, found: dict[str, Any], *notes: Note) -> Draft:
    made = Draft(file, "session")
    made.settings = dict(found)
    made.sources = [Source(file)]
    made.notes = list(notes)
    return made


def build(files: dict[str, dict[str, Any]]) -> Family:
    return build_family([draft(file, found) for file, found in files.items()])


def table(grown: Family, name: str) -> dict[str, Any]:
    return parse_document(name, f"{name}.toml", grown.files[name]).data


MODELS = {
    f"zoo/model{number}/train.py": {**MIXED, "hccl_timeout": 600 + number} for number in range(4)
}


def test_a_base_has_what_all_scripts_share_and_the_leaves_have_the_rest() -> None:
    grown = build({**MODELS, "zoo/model4/train.py": {**MIXED, **OVERFLOW}})
    assert set(grown.files) == {"base", *(f"model{number}-train" for number in range(5))}
    assert table(grown, "base")["options"] == MIXED
    assert table(grown, "base")["profile"]["abstract"] is True
    assert {tuple(table(grown, leaf.name)["profile"]["extends"]) for leaf in grown.leaves} == {
        ("base",)
    }
    assert table(grown, "model3-train")["options"] == {"hccl_timeout": 603}
    assert table(grown, "model4-train")["options"] == OVERFLOW


SHARED: dict[str, tuple[dict[str, dict[str, Any]], dict[str, list[str]]]] = {
    "a model": (
        {"vgg/train.py": MIXED, "vgg/eval.py": MIXED, "bert/train.py": OVERFLOW},
        {"vgg": ["vgg/eval.py", "vgg/train.py"], "bert-train": ["bert/train.py"]},
    ),
    "a model twice": (
        {
            "VGG16_ID1_for_TensorFlow/train.py": MIXED,
            "VGG16_ID1_for_TensorFlow/eval.py": MIXED,
            "VGG16_ID2_for_TensorFlow/main.py": OVERFLOW,
            "a.py": {"deterministic": 1},
        },
        {
            "vgg16_id1": ["VGG16_ID1_for_TensorFlow/eval.py", "VGG16_ID1_for_TensorFlow/train.py"],
            "vgg16_id2-main": ["VGG16_ID2_for_TensorFlow/main.py"],
            "a": ["a.py"],
        },
    ),
    "what they do": (
        {"vgg/train.py": MIXED, "bert/train.py": MIXED, "gpt/train.py": OVERFLOW},
        {
            "mixed-precision-on-device": ["bert/train.py", "vgg/train.py"],
            "gpt-train": ["gpt/train.py"],
        },
    ),
    "what they do besides": (
        {
            "a/train.py": MIXED,
            "b/train.py": MIXED,
            "c/train.py": {**MIXED, "precision_mode": "allow_mix_precision_fp16"},
            "d/train.py": {**MIXED, "precision_mode": "allow_mix_precision_fp16"},
        },
        {
            "mixed-precision-on-device": ["a/train.py", "b/train.py"],
            "mixed-precision-on-device-2": ["c/train.py", "d/train.py"],
        },
    ),
    "the base alone": (
        {
            f"m{number}/a.py": {
                **MIXED,
                "deterministic": 1,
                **({"hccl_timeout": number} if number > 1 else {}),
            }
            for number in range(7)
        },
        {
            "mixed-precision-on-device": ["m0/a.py", "m1/a.py"],
            **{f"m{number}-a": [f"m{number}/a.py"] for number in range(2, 7)},
        },
    ),
    "what they share with others": (
        {
            **{f"m{number}/a.py": {**MIXED, "hccl_timeout": number} for number in range(7)},
            **{f"{name}/a.py": {**MIXED, "dynamic_input": True} for name in "bc"},
            **{f"{name}/a.py": {"dynamic_input": True} for name in "de"},
        },
        {
            **{f"m{number}-a": [f"m{number}/a.py"] for number in range(7)},
            "dynamic-shape-mixed-precision": ["b/a.py", "c/a.py"],
            "dynamic-shape": ["d/a.py", "e/a.py"],
        },
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_scripts_of_one_configuration_share_a_leaf(name: str) -> None:
    files, expected = SHARED[name]
    assert {
        leaf.name: [source.file for source in leaf.sources] for leaf in build(files).leaves
    } == expected


def test_a_leaf_lists_its_scripts_and_what_is_left_out_of_them_once() -> None:
    def note(file: str, line: int) -> Note:
        found = ScriptSetting(
            ScriptLocation(file, line, 1),
            "session",
            "hccl_timeout",
            "hccl_timeout",
            ScriptValue(reason="depends on FLAGS.t"),
        )
        return Note(found, "depends on FLAGS.t")

    drafts = [
        draft(f"m{number:02}/a.py", MIXED, note(f"m{number:02}/a.py", number + 1))
        for number in range(25)
    ]
    (text,) = build_family(drafts).files.values()
    assert 'description = "mixed precision and on device, as 25 scripts have it"' in text
    assert "\n# Imported from 25 scripts:\n# m00/a.py\n" in text
    assert text.count("/a.py\n") == 25
    assert text.endswith(
        "# Not carried over:\n# m00/a.py:1 and 24 more: hccl_timeout: depends on FLAGS.t\n"
    )


NEEDED: list[tuple[dict[str, Any], str]] = [
    ({"precision_mode": "allow_mix_precision"}, ""),  # every release has it
    ({"precision_mode": "allow_mix_precision_fp16"}, ">=6.3.RC1"),  # a value that came later
    ({"deterministic": 1}, ">=6.3.RC1"),
    ({"auto_tune_mode": "RL,GA"}, ""),  # the earliest releases have it, one later does not
    ({"auto_tune_mode": "RL,GA", "dynamic_input": True}, ">=5.0.1"),
    ({"jit_compile": "auto"}, ">=6.3.RC2"),  # one release in between did not read it
    ({"precision_mode_v2": "fp16"}, ""),  # nobody knows of some releases whether they had it
    ({"aoe_mode": "3"}, ""),  # a value that is gone since
    ({"min_group_size": True, "deterministic": 1}, ">=6.3.RC1"),  # nothing ever read the first
    ({"env.HCCL_ALGO": "level0:NA", "no_such_option": 1}, ""),
]


@pytest.mark.parametrize(
    ("found", "expected"), NEEDED, ids=[" ".join(found) for found, _ in NEEDED]
)
def test_the_releases_that_settings_need_are_said_where_they_are_certain(
    found: dict[str, Any], expected: str
) -> None:
    assert find_needed_releases(found) == expected
    assert table(build({"a.py": found}), "a")["profile"].get("cann", "") == expected


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        ([OVERFLOW], ["overflow-detection-dump"]),
        ([{"profiling_mode": True, "profiling_options": "x"}], ["profiling"]),
        (
            [{"enable_data_pre_proc": True, "precision_mode": "allow_mix_precision"}],
            ["data-preprocessing-mixed-precision"],
        ),
        (
            [{"stream_max_parallel_num": "AIcoreEngine:3", "use_off_line": True}],
            ["on-device-performance"],
        ),
        ([{"graph_memory_max_size": "1", "variable_memory_max_size": "1"}], ["memory"]),
        ([{"graph_run_mode": 1, "profile.scenario": "training"}], ["training"]),
        ([{"enable_dump": True, "dump_step": step} for step in ("0", "0|5")], ["dump", "dump"]),
    ],
)
def test_mixins_are_named_by_what_they_do(parts: list[dict[str, Any]], names: list[str]) -> None:
    assert [join_topics(facts.items()) for facts in parts] == names


def test_every_setting_of_the_catalogue_is_about_something() -> None:
    names = [
        keys.format_full_key(section, name)
        for section in catalog.load_sections()
        for name in catalog.record_names(section)
    ]
    assert len(names) > 500
    topics = {name: find_topic(name, True) for name in names}
    assert not [
        name
        for name, topic in topics.items()
        if topic != topic.lower() or not topic.replace("-", "").isalnum()
    ]


def test_what_is_off_says_less_than_what_is_on() -> None:
    assert join_topics({"enable_dump": False, "precision_mode": "force_fp16"}.items()) == "fp16"
    assert join_topics({"enable_dump": False}.items()) == "dump"


OPTIONS = {
    "precision_mode": ["allow_mix_precision", "force_fp16", "force_fp32"],
    "use_off_line": [True, False],
    "graph_run_mode": [0, 1],
    "hccl_timeout": [600, 1800],
    "enable_dump": [True],
    "dump_path": ["/a", "/b", "./c"],
    "dump_step": ["0", "0|5"],
    "modify_mixlist": [
        "./a.json",
        {"black-list": {"to-add": ["MatMul"]}},
        {"white-list": {"to-add": ["Cast"]}},
    ],
    "profiling_options": ['{"output":"/p"}', {"output": "/p"}, {"task_trace": "on"}],
    "env.HCCL_ALGO": ["level0:NA", ""],
    "estimator.save_checkpoints_steps": [10, 1000],
    "jit_compile": ["auto"],
    "deterministic": [1],
    "dynamic_dims": [[[1], [2]], "1;2"],
}
FOUND = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in OPTIONS.items()}
).filter(bool)
PATHS = st.builds(
    "/".join,
    st.tuples(
        st.sampled_from(["cv", "nlp", "CV"]),
        st.sampled_from(["vgg", "bert_ID1_for_TensorFlow", "bert", "src"]),
        st.sampled_from(["train.py", "main.py", "Yolo.py", "base.py", "a b.sh"]),
    ),
)


@examples(30)
@given(
    st.lists(st.tuples(PATHS, FOUND), min_size=1, max_size=14), st.randoms(use_true_random=False)
)
def test_a_random_family_is_what_went_in_whatever_its_order(
    made: list[tuple[str, dict[str, Any]]], rng: random.Random
) -> None:
    files: dict[str, dict[str, Any]] = {}
    for path, found in made:
        files.setdefault(path, found)
    drafts = [draft(path, found) for path, found in files.items()]
    grown = build_family(drafts)
    assert len(grown.leaves) <= len(files)
    assert [leaf.name for leaf in grown.leaves] == sorted(leaf.name for leaf in grown.leaves)
    assert sorted(source.file for leaf in grown.leaves for source in leaf.sources) == sorted(files)
    assert not any("unset" in text for text in grown.files.values())
    again = [draft(path, files[path]) for path in rng.sample(list(files), len(files))]
    assert build_family(again).files == grown.files


@pytest.mark.parametrize(
    ("out", "parent"),
    [("profiles", "base"), ("profiles/zoo/tf", "zoo/tf/base"), ("elsewhere", "base")],
)
def test_a_family_in_a_folder_of_a_store_is_found_there(
    out: str, parent: str, tmp_path: Path
) -> None:
    shared = "".join(
        f'custom_op.parameter_map["{key}"].s = b"x"\n' for key in ("dump_path", "work_path")
    )
    for number in range(5):
        own = f'custom_op.parameter_map["hccl_timeout"].i = {number}\n'
        write(tmp_path, {f"zoo/m{number}/train.py": f"{HEAD}{shared}{own}"})
    (tmp_path / "profiles").mkdir()
    assert __main__.main(["import", "zoo", "--base", "auto", "-o", out]) == 0
    texts = [path.read_text() for path in (tmp_path / out).iterdir() if path.is_file()]
    assert any(f'extends = ["{parent}"' in text for text in texts)
    store = npuprof.open_store("elsewhere" if out == "elsewhere" else "profiles")
    assert len([store.resolve(name) for name in store.names()]) == 6


NOTHING: dict[str, tuple[str, str]] = {
    "flags.py": (
        HEAD + 'custom_op.parameter_map["hccl_timeout"].i = FLAGS.t\n',
        "1 setting: depends on the command line or its parameters (FLAGS.t)",
    ),
    "if.py": (
        HEAD
        + (
            'if FLAGS.a:\n    custom_op.parameter_map["hccl_timeout"].i = 3\n'
            'custom_op.parameter_map["use_off_line"].b = FLAGS.b\n'
        ),
        "2 settings: only if FLAGS.a; depends on the command line or its parameters (FLAGS.b)",
    ),
    "dead.py": (
        HEAD
        + (
            "def f():\n    if not (1 or A)or not 1:\n"
            '        custom_op.parameter_map["job"].s = "x"\n'
        ),
        "1 setting: never runs",
    ),
    "old.py": (
        HEAD + '# custom_op.parameter_map["hccl_timeout"].i = 3\n',
        "1 setting, commented out",
    ),
    "bare.py": (HEAD, "an optimizer entry without a setting"),
    "job.sh": (
        "export RANK_SIZE=8\nexport JOB_ID=1\n",
        "2 settings: a fact of one process or job, not of a preset",
    ),
    "half.py": (HEAD + "def f(:\n", "cannot be parsed"),
    "none.py": (
        "from npu_bridge.npu_init import *\nNPURunConfig(precision_mode=None)\n",
        "1 setting, all of them None, which leaves them unset",
    ),
}


def test_scripts_that_give_no_preset_are_named_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = HEAD + 'custom_op.parameter_map["hccl_timeout"].i = 600\n'
    write(
        tmp_path,
        {
            "zoo/good.py": good,
            "zoo/plain.py": "import os\n",
            **{f"zoo/{name}": text for name, (text, _) in NOTHING.items()},
        },
    )
    zoo = str(tmp_path / "zoo")
    assert __main__.main(["import", zoo, "--format", "json"]) == 0
    reasons = {
        Path(item["file"]).name: item["reason"]
        for item in json.loads(capsys.readouterr().out)["nothing"]
    }
    assert reasons.keys() == NOTHING.keys()
    for name, (_, reason) in NOTHING.items():
        assert reason in reasons[name] or (name == "half.py" and reasons[name]), name
    assert __main__.main(["import", zoo, "--format", "text"]) == 0
    assert (
        f"{zoo}/flags.py: no preset: 1 setting: depends on "
        "the command line or its parameters (FLAGS.t)\n"
    ) in capsys.readouterr().out
    for more in ((), ("--base", "auto")):
        assert __main__.main(["import", zoo, "-o", str(tmp_path / f"out{len(more)}"), *more]) == 0
        messages = capsys.readouterr().err
        assert "8 scripts give no preset:\n" in messages
        assert "and 3 more, which --format json lists\n" in messages


def test_the_json_form_has_every_script_of_a_family(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = HEAD + 'custom_op.parameter_map["hccl_timeout"].i = 600\n'
    write(tmp_path, {f"zoo/m{number}/train.py": good for number in range(30)})
    assert (
        __main__.main(["import", str(tmp_path / "zoo"), "--base", "auto", "--format", "json"]) == 0
    )
    (leaf,) = json.loads(capsys.readouterr().out)["family"]["presets"]
    assert leaf["name"] == "zoo"
    assert leaf["kind"] == "leaf"
    assert len(leaf["sources"]) == 30
    assert leaf["sources"][0].keys() == {"file", "line", "function", "condition"}
