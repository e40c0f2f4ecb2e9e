"""Which settings of one script make one preset, and what the presets of one script are called."""

from __future__ import annotations

import textwrap

import pytest

from npuprof import document
from npuprof.document.profile import Profile
from npuprof.resolve import FixedPolicy, Resolver
from npuprof.resolve.digests import compute_digest
from npuprof.scripts.preset import build_drafts, format_draft
from npuprof.scripts.preset_text import format_preset
from npuprof.scripts.shared_bases import build_family
from support.importing import imported

ENTRY = "config.graph_options.rewrite_options.custom_optimizers.add()"


def session(function: str, *lines: str, config: str = "config") -> str:
    """Return a function that makes a session with these options."""
    body = [
        f"{config} = tf.ConfigProto()",
        f"op = {ENTRY.replace('config', config, 1)}",
        'op.name = "NpuOptimizer"',
        *lines,
    ]
    return f"def {function}():\n" + textwrap.indent("\n".join(body), "    ") + "\n"


def option(name: str, value: object) -> str:
    field, written = (
        ("b", value)
        if isinstance(value, bool)
        else ("i", value)
        if isinstance(value, int)
        else ("s", f'b"{value}"')
    )
    return f'op.parameter_map["{name}"].{field} = {written}'


MIXED, FP16, LOOPS = (
    option("precision_mode", "allow_mix_precision"),
    option("precision_mode", "force_fp16"),
    option("hccl_timeout", 600),
)
RUN_CONFIG = (
    "NPURunConfig(session_config={}, save_checkpoints_steps=100, "
    "precision_mode='allow_mix_precision')"
)
CLASS = """\
class Trainer:
    def __init__(self):
        config = tf.ConfigProto()
        self.op = config.graph_options.rewrite_options.custom_optimizers.add()
        self.op.name = "NpuOptimizer"
        self.op.parameter_map["use_off_line"].b = True

    def prepare(self):
        self.op.parameter_map["hccl_timeout"].i = 600
"""

MIX, FP = {"precision_mode": "allow_mix_precision"}, {"precision_mode": "force_fp16"}
BOTH = {**MIX, "hccl_timeout": 600}
#: A script, and the settings of each of the presets that it makes, by their names.
DRAFTS: dict[str, tuple[str, dict[str, dict[str, object]]]] = {
    "two that differ": (
        session("train", MIXED) + session("_Evaluate", FP16),
        {"x-train": MIX, "x-evaluate": FP},
    ),
    "one with more than the other": (
        session("train", MIXED, LOOPS) + session("evaluate", MIXED),
        {"x-train": BOTH, "x-evaluate": MIX},
    ),
    "two that are equal": (
        session("train", MIXED, LOOPS) + session("evaluate", LOOPS, MIXED),
        {"x": BOTH},
    ),
    "one of the module": (
        textwrap.dedent(session("f", MIXED).partition("\n")[2]) + session("evaluate", FP16),
        {"x": MIX, "x-evaluate": FP},
    ),
    "two of one function": (
        session("main", MIXED, config="train_config")
        + session("main", FP16, config="eval_config").partition("\n")[2],
        {"x-main-train-config": MIX, "x-main-eval-config": FP},
    ),
    "two that nothing tells apart": (
        session("main", MIXED) + session("main", FP16).partition("\n")[2],
        {"x-main": MIX, "x-main-2": FP},
    ),
    "what is exported belongs to each": (
        "os.environ['HCCL_ALGO'] = 'level0:NA'\n"
        + session("train", MIXED)
        + session("evaluate", FP16),
        {
            "x-train": {**MIX, "env.HCCL_ALGO": "level0:NA"},
            "x-evaluate": {**FP, "env.HCCL_ALGO": "level0:NA"},
        },
    ),
    "the session config of a run config": (
        session("train", LOOPS, f"run = {RUN_CONFIG.format('config')}"),
        {"x": {**BOTH, "estimator.save_checkpoints_steps": 100}},
    ),
    "the session config that another function makes": (
        session("make_config", LOOPS, "return config")
        + f"def main():\n    run = {RUN_CONFIG.format('make_config()')}\n",
        {"x": {**BOTH, "estimator.save_checkpoints_steps": 100}},
    ),
    "a run config beside a session of another function": (
        session("train", LOOPS, f"run = {RUN_CONFIG.format('config')}") + session("evaluate", FP16),
        {"x-train": {**BOTH, "estimator.save_checkpoints_steps": 100}, "x-evaluate": FP},
    ),
    "an argument that overrules its session config": (
        session("train", FP16, f"run = {RUN_CONFIG.format('config')}"),
        {"x": {**MIX, "estimator.save_checkpoints_steps": 100}},
    ),
    "an attribute in two methods": (CLASS, {"x": {"use_off_line": True, "hccl_timeout": 600}}),
    "an entry by its number": (
        session(
            "train",
            MIXED,
            (
                "config.graph_options.rewrite_options.custom_optimizers[0]"
                '.parameter_map["hccl_timeout"].i = 600'
            ),
        ),
        {"x-train-config": MIX, "x-train": {"hccl_timeout": 600}},
    ),
    "a file that is called as its function": (
        session("x", MIXED) + session("evaluate", FP16),
        {"x": MIX, "x-evaluate": FP},
    ),
}


@pytest.mark.parametrize("name", DRAFTS)
def test_each_configuration_of_a_script_is_a_preset(name: str) -> None:
    text, expected = DRAFTS[name]
    made = build_drafts(imported(f"from npu_bridge.npu_init import *\n{text}"))
    assert {draft.name: draft.settings for draft in made} == expected
    assert made
    for draft in made:
        assert not Profile(document.parse_document("x", "x.toml", format_draft(draft))).problems


DESCRIPTIONS: dict[str, tuple[str, list[str]]] = {
    "one": (session("train", MIXED), ["x.py"]),
    "two that differ": (
        session("train", MIXED) + session("evaluate", FP16),
        ["x.py: train()", "x.py: evaluate()"],
    ),
    "two that are equal": (
        session("train", MIXED) + session("evaluate", MIXED),
        ["x.py: train(), evaluate()"],
    ),
    "many that are equal": (
        "".join(session(f"f{n}", MIXED) for n in range(9)),
        ["x.py: f0(), f1(), f2(), f3(), f4(), f5() and 3 more"],
    ),
    "two under conditions": (
        f"if FLAGS.a:\n    op = {ENTRY}\n    {MIXED}\nelse:\n    op = {ENTRY}\n    {FP16}\n",
        ["x.py: line 2 if FLAGS.a", "x.py: line 5 if not (FLAGS.a)"],
    ),
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_the_description_says_which_configuration_of_a_script_it_is(name: str) -> None:
    text, expected = DESCRIPTIONS[name]
    made = [format_draft(draft).splitlines()[1] for draft in build_drafts(imported(text))]
    assert made == [f'description = "imported from {origin}"' for origin in expected]


def test_what_an_argument_overrules_is_left_out_with_its_place() -> None:
    (draft,) = build_drafts(
        imported(
            "from npu_bridge.npu_init import *\n"
            + DRAFTS["an argument that overrules its session config"][0]
        )
    )
    assert [(note.setting.line, note.why) for note in draft.notes] == [
        (6, "the argument of NPURunConfig in line 7 overrides it")
    ]


MEMORY = "NPURunConfig(experimental_config=ExperimentalConfig(graph_memory_optimize_config"
#: What an object of the adapter, or a group of attributes, is given that no option stands for, and
#: why no preset holds it.
FOREIGN = {
    "NPURunConfig(dump_config=DumpConfig(dump_pth='/d'))": "DumpConfig does not take it",
    f"{MEMORY}=GraphMemoryOptimizeConfig(recompute='auto')))": (
        "an argument of GraphMemoryOptimizeConfig that is not an option"
    ),
    "NPURunConfig(profiling_config=ProfilingConfig(fp_point='x'))": (
        "ProfilingConfig does not take it"
    ),
    "npu.global_options().experimental.nosuch.deeper = 3": "global_options() does not take it",
}
#: What a script writes, and what a preset holds of it or why it holds nothing.
WRITTEN: dict[str, object] = {
    "{1: 2}": "a dict is not a value of an option",
    "1j": "a complex is not a value of an option",
    "1 << 20000": "the value is too large",
}


def resolves_as_before(text: str, file: str = "x.py") -> bool:
    """Return whether the presets and the family of a script have the script's settings."""
    made = build_drafts(imported(text, file))
    alone = [Profile(document.parse_document("x", "x.toml", format_draft(draft))) for draft in made]
    is_same = [
        Resolver(FixedPolicy(None, profile)).resolve_profile(profile).digest for profile in alone
    ] == [compute_digest(draft.settings) for draft in made]
    build_family(made)  # it raises unless every leaf resolves as before
    return is_same


@pytest.mark.parametrize("written", FOREIGN)
def test_an_argument_that_no_option_stands_for_is_left_out_with_the_reason(written: str) -> None:
    text = (
        "import npu_device as npu\nfrom npu_bridge.npu_init import *\n"
        f"{session('train', MIXED)}\nx = 1\n{written}\n"
    )
    assert resolves_as_before(text)
    (note,) = (
        note
        for draft in build_drafts(imported(text))
        for note in draft.notes
        if note.setting.line == text.count("\n")
    )
    assert note.why == FOREIGN[written]


@pytest.mark.parametrize(
    "target",
    [
        "NPURunConfig(precision_mode={})",
        "NPURunConfig(model_dir={})",
        "npu.global_options().precision_mode = {}",
    ],
)
@pytest.mark.parametrize("written", WRITTEN)
def test_a_value_is_carried_over_as_a_preset_holds_it_or_left_out_with_the_reason(
    written: str, target: str
) -> None:
    text = (
        f"import npu_device as npu\nfrom npu_bridge.npu_init import *\n{target.format(written)}\n"
    )
    assert resolves_as_before(text)
    (draft,) = build_drafts(imported(text))
    assert [*draft.settings.values(), *(note.why for note in draft.notes)] == [WRITTEN[written]]


def test_half_a_character_in_a_file_of_data_is_left_out_with_the_reason() -> None:
    pod = (
        '{"kind": "Pod", "spec": {"containers": [{"env": [{"name": "HCCL_ALGO", "value": '
        '"\\ud800"}, {"name": "JOB_ID", "value": "7"}]}]}}'
    )
    assert resolves_as_before(pod, "pod.json")
    (draft,) = build_drafts(imported(pod, "pod.json"))
    assert [note.why for note in draft.notes][:1] == [
        "the text contains a lone surrogate, which UTF-8 cannot encode"
    ]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('{"output":"/tmp"}', """'{"output":"/tmp"}'"""),
        ("plain", '"plain"'),
        ('it\'s "so"!', '"it\'s \\"so\\"!"'),
        ('a "b"\nc', r'"a \"b\"\nc"'),
        ("C:\\tmp", r'"C:\\tmp"'),
    ],
)
def test_a_text_is_written_as_one_would_write_it(value: str, written: str) -> None:
    text = format_preset({"description": "x"}, {"dump_path": value})
    assert f"\ndump_path = {written}\n" in text
    assert document.parse_document("x", "x.toml", text).data["options"]["dump_path"] == value
