"""Conditional, skipped and late settings, and those in expressions: effective, or with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from npuprof.scripts.preset import build_drafts, format_draft
from npuprof.scripts.preset_draft import Draft, Note
from npuprof.scripts.shared_bases import build_family
from support.importing import imported

HEAD = (
    "import atexit, os, sys\nimport tensorflow as tf\n"
    "from npu_bridge.npu_init import *\nA = '-a' in sys.argv\n"
)
MAKE = (
    "config = tf.ConfigProto()\nop = "
    "config.graph_options.rewrite_options.custom_optimizers.add()\nop.name = 'NpuOptimizer'\n"
    "op.parameter_map['use_off_line'].b = True\n"
)
PROFILE = "op.parameter_map['profiling_mode'].b = True\n"
RUN = "tf.Session(config=config)\n"
CLASS = (
    "class Net:\n    def __init__(self, args=None):\n        self.config = tf.ConfigProto()\n"
    "        self.op = self.config.graph_options.rewrite_options.custom_optimizers.add()\n"
    "        self.op.name = 'NpuOptimizer'\n"
    "        self.op.parameter_map['use_off_line'].b = True\n"
)
METHOD = "    def profile(self):\n        self.op.parameter_map['profiling_mode'].b = True\n"
DEFINED = f"def profile():\n    {PROFILE}"
OFF: dict[str, Any] = {"use_off_line": True}
BOTH: dict[str, Any] = {**OFF, "profiling_mode": True}


def list_notes(drafts: list[Draft]) -> list[Note]:
    """Return the settings that are not carried over, each with its reason."""
    return [note for draft in drafts for note in draft.notes]


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "settings", "why"),
    [
        pytest.param(
            (
                f"{CLASS}        if args.a:\n            self.profile()\n        elif args.b:\n"
                f"            self.profile()\n{METHOD}Net()\n"
            ),
            OFF,
            ["only if (args.a) or (args.b)"],
            id="a method called in two branches",
        ),
        pytest.param(
            (
                f"{CLASS}        if A:\n            self.profile()\n"
                f"        self.profile()\n{METHOD}Net()\n"
            ),
            BOTH,
            [],
            id="a method called in a branch and after it",
        ),
        pytest.param(
            f"{MAKE}{DEFINED}def both():\n    profile()\nif A:\n    both()\n{RUN}",
            OFF,
            ["only if A"],
            id="a function called in a branch",
        ),
        pytest.param(
            "def make():\n" + indent(f"{MAKE}return config\n{PROFILE}"),
            OFF,
            ["never runs"],
            id="code after return",
        ),
        pytest.param(
            "kept = None\ndef make():\n"
            + indent(
                "global kept\nif kept is not None:\n    return kept\n"
                f"{MAKE}{PROFILE}kept = config\nreturn config\n"
            )
            + "make()\nmake()\n",
            BOTH,
            [],
            id="code after a conditional return",
        ),
        pytest.param(
            f"{MAKE}while True:\n    if A:\n        break\n    {PROFILE}    break\n{RUN}",
            OFF,
            ["only if not (A)"],
            id="code after a conditional break",
        ),
    ],
)
def test_what_runs_perhaps_or_never_is_not_in_force(
    text: str, settings: dict[str, Any], why: list[str]
) -> None:
    drafts = build_drafts(imported(HEAD + text, "x.py"))
    assert [draft.settings for draft in drafts if draft.settings] == [settings]
    assert [note.why for note in list_notes(drafts)] == why


@pytest.mark.parametrize(
    ("test", "condition"),
    [
        pytest.param("if A:\n", "A", id="if"),
        pytest.param("if A:\n    pass\nelse:\n", "not (A)", id="else"),
        pytest.param("if not A:\n    pass\nelse:\n", "not (not A)", id="else of not"),
    ],
)
def test_a_configuration_that_is_made_under_a_test_only_says_so(test: str, condition: str) -> None:
    config, *entry = MAKE.splitlines(keepends=True)
    script = f"{HEAD}{config}{test}{indent(''.join(entry))}{RUN}"
    (draft,) = build_drafts(imported(script, "x.py"))
    assert draft.settings == OFF
    description = f'description = "imported from x.py, made only if {condition}"'
    assert description in format_draft(draft)
    (text,) = build_family([draft]).files.values()
    assert "# Made only under a test:\n" in text
    assert f": if {condition}\n" in text
    always = build_drafts(imported(HEAD + MAKE + RUN, "x.py"))
    assert "made only" not in format_draft(always[0]).lower()
    assert "Made only" not in "".join(build_family(always).files.values())


ENV = "os.environ['HCCL_CONNECT_TIMEOUT'] = '600'\n"
LATE = "comes after the session was made"


def loop(head: str) -> str:
    return f"{MAKE}{head}:\n    {PROFILE}{RUN}"


def wrap_in_try(body: str, handler: str = "except ImportError:\n    pass\n") -> str:
    return f"{MAKE}try:\n{indent(body)}{handler}{RUN}"


def set_before_rest(lines: str) -> str:
    return (
        f"{MAKE}def put(op):\n    print(op)\n{indent(f'{lines}{chr(10)}{PROFILE}')}put(op)\n{RUN}"
    )


@pytest.mark.parametrize(
    ("text", "keys", "why"),
    [
        pytest.param(
            wrap_in_try(f"{PROFILE}import absent\n"),
            {*BOTH},
            "",
            id="before an import that may fail",
        ),
        pytest.param(loop("for one in ('a', 'b')"), {*BOTH}, "", id="in a loop"),
        pytest.param(
            f"def main(*_):\n{indent(MAKE + PROFILE + RUN)}launch_all(main)\n",
            {*BOTH},
            "",
            id="in a function that other code calls",
        ),
        pytest.param(
            set_before_rest("if len(sys.argv) > 9:\n    sys.exit(1)"),
            {*BOTH},
            "",
            id="after a conditional exit",
        ),
        pytest.param(
            "def make():\n"
            + indent(f"{MAKE}if len(sys.argv) > 9:\n    return None\n{PROFILE}return config")
            + "tf.Session(config=make())\n",
            {*BOTH},
            "",
            id="after a conditional return",
        ),
        # the environment
        pytest.param(
            f"{MAKE}{ENV}{RUN}",
            {"use_off_line", "env.HCCL_CONNECT_TIMEOUT"},
            "",
            id="a variable before the session",
        ),
        pytest.param(
            f"{MAKE}with tf.Session(config=config):\n    {ENV}",
            {*OFF},
            LATE,
            id="a variable in the session",
        ),
        pytest.param(
            f"{MAKE}{RUN}os.environ.update(HCCL_CONNECT_TIMEOUT='600')\n",
            {*OFF},
            LATE,
            id="a variable after the session",
        ),
        pytest.param(
            (
                "import npu_device as npu\n"
                f"npu.global_options().use_off_line = True\nnpu.open()\n{ENV}"
            ),
            {*OFF},
            "comes after npu.open() (line 7)",
            id="a variable after npu.open()",
        ),
        pytest.param(
            (
                f"{MAKE}est = "
                "tf.estimator.Estimator(config=tf.estimator.RunConfig(session_config=config))\n"
                f"est.train(fn)\n{ENV}"
            ),
            {*OFF},
            "comes after train() ran (line 10)",
            id="a variable after train()",
        ),
    ],
)
def test_what_may_be_passed_over_or_comes_late_is_in_no_preset(
    text: str, keys: set[str], why: str
) -> None:
    drafts = build_drafts(imported(HEAD + text, "x.py"))
    assert {key for draft in drafts for key in draft.settings} == keys
    late = ("profiling_mode", "env.HCCL_CONNECT_TIMEOUT")
    reasons = [note.why for note in list_notes(drafts) if note.setting.key in late]
    if why:
        assert why in reasons[0]
    else:
        assert not reasons


ENTRY = MAKE.partition("op.parameter")[0]
SET = "setattr(op.parameter_map['use_off_line'], 'b', True)"
#: Why what an entry had before is not carried over either.
TAKEN = [
    (
        "line 9 sets it again, to what depends on "
        "op.parameter_map['use_off_line'].CopyFrom(AttrValue(b=False))"
    ),
    "depends on op.parameter_map['use_off_line'].CopyFrom(AttrValue(b=False))",
]
SET_ENV = {"env.HCCL_CONNECT_TIMEOUT": "600"}


@pytest.mark.parametrize(
    ("line", "settings", "why"),
    [
        pytest.param(
            "[setattr(op.parameter_map[k], 'b', True) for k in ('use_off_line',)]",
            {},
            ["the key is computed: depends on the name k"],
            id="in a comprehension",
        ),
        pytest.param(
            "sys.argv and setattr(op.parameter_map['use_off_line'], 'b', True)",
            {},
            ["only if sys.argv"],
            id="behind and",
        ),
        pytest.param(
            "put = lambda: setattr(op.parameter_map['use_off_line'], 'b', True)\nput()",
            {},
            [f"only if lambda: {SET} is called"],
            id="in a lambda",
        ),
        pytest.param(
            (
                "op.parameter_map['use_off_line'].b = True\n"
                "op.parameter_map['use_off_line'].CopyFrom(AttrValue(b=False))"
            ),
            {},
            TAKEN,
            id="CopyFrom",
        ),
        pytest.param(
            "op.parameter_map.get_or_create('use_off_line').b = True",
            {},
            ["depends on op.parameter_map.get_or_create('use_off_line')"],
            id="get_or_create",
        ),
        pytest.param(
            "from x import reset_global_options as reset\nreset().jit_compile = '1'",
            {},
            [],
            id="a function with another name",
        ),
        pytest.param(
            "x.one = op.parameter_map['use_off_line']\nx.one.b = True",
            {},
            ["x.one is a second name of it, which is not followed"],
            id="a second name of an entry",
        ),
        pytest.param(
            "setattr(npu.global_options(), 'jit_compile', '1')",
            {},
            ["depends on setattr(npu.global_options(), 'jit_compile', '1')"],
            id="setattr on the options",
        ),
        pytest.param(
            "old = os.environ.setdefault('HCCL_CONNECT_TIMEOUT', '600')",
            SET_ENV,
            [],
            id="setdefault",
        ),
    ],
)
def test_what_an_expression_sets_on_its_way_is_read_or_told(
    line: str, settings: dict[str, object], why: list[str]
) -> None:
    drafts = build_drafts(imported(f"{HEAD}{ENTRY}{line}\n{RUN}", "x.py"))
    assert {key: value for draft in drafts for key, value in draft.settings.items()} == settings
    assert [note.why for note in list_notes(drafts)] == why
