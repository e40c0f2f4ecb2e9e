"""What only a test leads to, what may be passed over, what comes late, and what calls in
expressions set: in force, or told with the reason.
"""

from __future__ import annotations

from typing import Any

import pytest

from npuprof.scripts.preset import build_drafts, format_draft
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


def read(text: str) -> tuple[list[dict[str, Any]], list[str]]:
    drafts = build_drafts(imported(HEAD + text, "x.py"))
    return [draft.settings for draft in drafts if draft.settings], [
        note.why for draft in drafts for note in draft.notes
    ]


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "settings", "why"),
    [
        (
            (
                f"{CLASS}        if args.a:\n            self.profile()\n        elif args.b:\n"
                f"            self.profile()\n{METHOD}Net()\n"
            ),
            OFF,
            ["only if (args.a) or (args.b)"],
        ),
        (
            (
                f"{CLASS}        if A:\n            self.profile()\n"
                f"        self.profile()\n{METHOD}Net()\n"
            ),
            BOTH,
            [],
        ),
        (
            f"{MAKE}{DEFINED}def both():\n    profile()\nif A:\n    both()\n{RUN}",
            OFF,
            ["only if A"],
        ),
        ("def make():\n" + indent(f"{MAKE}return config\n{PROFILE}"), OFF, ["never runs"]),
        (
            "kept = None\ndef make():\n"
            + indent(
                "global kept\nif kept is not None:\n    return kept\n"
                f"{MAKE}{PROFILE}kept = config\nreturn config\n"
            )
            + "make()\nmake()\n",
            BOTH,
            [],
        ),
        (
            f"{MAKE}while True:\n    if A:\n        break\n    {PROFILE}    break\n{RUN}",
            OFF,
            ["only if not (A)"],
        ),
    ],
)
def test_what_runs_perhaps_or_never_is_not_in_force(
    text: str, settings: dict[str, Any], why: list[str]
) -> None:
    assert read(text) == ([settings], why)


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("if A:\n", "A"),
        ("if A:\n    pass\nelse:\n", "not (A)"),
        ("if not A:\n    pass\nelse:\n", "not (not A)"),
    ],
)
def test_a_configuration_that_is_made_under_a_test_only_says_so(test: str, told: str) -> None:
    made = f"config = tf.ConfigProto()\n{test}{indent(MAKE.partition(chr(10))[2])}{RUN}"
    (draft,) = build_drafts(imported(HEAD + made, "x.py"))
    assert draft.settings == OFF
    assert 'description = "imported from x.py, made only if ' + told + '"' in format_draft(draft)
    (text,) = build_family([draft]).files.values()
    assert "# Made only under a test:\n" in text
    assert f": if {told}\n" in text
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
    ("text", "held", "why"),
    [
        (wrap_in_try(f"{PROFILE}import absent\n"), {*BOTH}, ""),
        (loop("for one in ('a', 'b')"), {*BOTH}, ""),
        (f"def main(*_):\n{indent(MAKE + PROFILE + RUN)}launch_all(main)\n", {*BOTH}, ""),
        (set_before_rest("if len(sys.argv) > 9:\n    sys.exit(1)"), {*BOTH}, ""),
        (
            (
                "def make():\n"
                f"{indent(f'{MAKE}if len(sys.argv) > 9:{chr(10)}    return None{chr(10)}{PROFILE}return config')}tf.Session(config=make())\n"
            ),
            {*BOTH},
            "",
        ),
        # the environment
        (f"{MAKE}{ENV}{RUN}", {"use_off_line", "env.HCCL_CONNECT_TIMEOUT"}, ""),
        (f"{MAKE}with tf.Session(config=config):\n    {ENV}", {*OFF}, LATE),
        (f"{MAKE}{RUN}os.environ.update(HCCL_CONNECT_TIMEOUT='600')\n", {*OFF}, LATE),
        (
            (
                "import npu_device as npu\n"
                f"npu.global_options().use_off_line = True\nnpu.open()\n{ENV}"
            ),
            {*OFF},
            "comes after npu.open() (line 7)",
        ),
        (
            (
                f"{MAKE}est = "
                "tf.estimator.Estimator(config=tf.estimator.RunConfig(session_config=config))\n"
                f"est.train(fn)\n{ENV}"
            ),
            {*OFF},
            "comes after train() ran (line 10)",
        ),
    ],
)
def test_what_may_be_passed_over_or_comes_late_is_in_no_preset(
    text: str, held: set[str], why: str
) -> None:
    drafts = build_drafts(imported(HEAD + text, "x.py"))
    left = {note.setting.key: note.why for draft in drafts for note in draft.notes}
    assert {key for draft in drafts for key in draft.settings} == held
    told = left.get("profiling_mode", left.get("env.HCCL_CONNECT_TIMEOUT", ""))
    assert why in told if why else not told


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
        (
            "[setattr(op.parameter_map[k], 'b', True) for k in ('use_off_line',)]",
            {},
            ["the key is computed: depends on the name k"],
        ),
        (
            "sys.argv and setattr(op.parameter_map['use_off_line'], 'b', True)",
            {},
            ["only if sys.argv"],
        ),
        (
            "put = lambda: setattr(op.parameter_map['use_off_line'], 'b', True)\nput()",
            {},
            [f"only if lambda: {SET} is called"],
        ),
        (
            (
                "op.parameter_map['use_off_line'].b = True\n"
                "op.parameter_map['use_off_line'].CopyFrom(AttrValue(b=False))"
            ),
            {},
            TAKEN,
        ),
        (
            "op.parameter_map.get_or_create('use_off_line').b = True",
            {},
            ["depends on op.parameter_map.get_or_create('use_off_line')"],
        ),
        ("from x import reset_global_options as reset\nreset().jit_compile = '1'", {}, []),
        (
            "x.one = op.parameter_map['use_off_line']\nx.one.b = True",
            {},
            ["x.one is a second name of it, which is not followed"],
        ),
        (
            "setattr(npu.global_options(), 'jit_compile', '1')",
            {},
            ["depends on setattr(npu.global_options(), 'jit_compile', '1')"],
        ),
        ("old = os.environ.setdefault('HCCL_CONNECT_TIMEOUT', '600')", SET_ENV, []),
    ],
)
def test_what_an_expression_sets_on_its_way_is_read_or_told(
    line: str, settings: dict[str, object], why: list[str]
) -> None:
    drafts = build_drafts(imported(f"{HEAD}{ENTRY}{line}\n{RUN}", "x.py"))
    assert {key: value for draft in drafts for key, value in draft.settings.items()} == settings
    assert [note.why for draft in drafts for note in draft.notes] == why
