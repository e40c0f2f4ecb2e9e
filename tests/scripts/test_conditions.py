"""What a function sets that nothing calls, that only a test leads to, or that an early end leaves out, is told with the reason and is in no preset as if it were in force."""

# ruff: noqa: E501 (a script is told in a line)

from __future__ import annotations

from typing import Any

import pytest

from npuprof.scripts.family import build_family
from npuprof.scripts.preset import build_drafts, format_draft
from support.importing import imported

HEAD = "import sys\nimport tensorflow as tf\nfrom npu_bridge.npu_init import *\nA = '-a' in sys.argv\n"
MAKE = "config = tf.ConfigProto()\nop = config.graph_options.rewrite_options.custom_optimizers.add()\nop.name = 'NpuOptimizer'\nop.parameter_map['use_off_line'].b = True\n"
PROFILE = "op.parameter_map['profiling_mode'].b = True\n"
RUN = "tf.Session(config=config)\n"
CLASS = (
    "class Net:\n    def __init__(self, args=None):\n        self.config = tf.ConfigProto()\n"
    "        self.op = self.config.graph_options.rewrite_options.custom_optimizers.add()\n        self.op.name = 'NpuOptimizer'\n"
    "        self.op.parameter_map['use_off_line'].b = True\n"
)
METHOD = "    def profile(self):\n        self.op.parameter_map['profiling_mode'].b = True\n"
DEFINED = f"def profile():\n    {PROFILE}"
OFF: dict[str, Any] = {"use_off_line": True}
BOTH: dict[str, Any] = {**OFF, "profiling_mode": True}


def read(text: str) -> tuple[list[dict[str, Any]], list[str]]:
    drafts = build_drafts(imported(HEAD + text, "x.py"))
    return [draft.settings for draft in drafts if draft.settings], [note.why for draft in drafts for note in draft.notes]


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "settings", "why"),
    [
        # methods of a class of the script's own
        (f"{CLASS}{METHOD}net = Net()\nnet.profile()\ntf.Session(config=net.config)\n", BOTH, []),
        (f"{CLASS}{METHOD}net = Net()\ngetattr(net, 'profile')()\ntf.Session(config=net.config)\n", BOTH, []),
        # those that code out of sight may call by names of its own: nobody knows when, if ever
        (f"{CLASS}{METHOD}fit(hooks=[Net()])\ntf.Session()\n", BOTH, []),
        (f"{CLASS}{METHOD.replace('profile', '__call__')}net = Net()\nnet()\ntf.Session(config=net.config)\n", BOTH, []),
        # methods that only a test leads to
        (f"{CLASS}{METHOD}net = Net()\nif A:\n    net.profile()\ntf.Session(config=net.config)\n", OFF, ["only if A"]),
        (f"{CLASS}        if args.profile:\n            self.profile()\n{METHOD}Net()\n", OFF, ["only if args.profile"]),
        (f"{CLASS}        self.setup()\n    def setup(self):\n        if A:\n            self.profile()\n{METHOD}Net()\n", OFF, ["only if A"]),
        (f"{CLASS}        if args.a:\n            self.profile()\n        elif args.b:\n            self.profile()\n{METHOD}Net()\n", OFF,
         ["only if (args.a) or (args.b)"]),
        (f"{CLASS}        if A:\n            self.profile()\n        self.profile()\n{METHOD}Net()\n", BOTH, []),
        (f"{CLASS}        if False:\n            self.profile()\n{METHOD}Net()\n", OFF, ["never runs: False"]),
        (f"{CLASS}{METHOD}if A:\n    net = Net()\n    net.profile()\n", BOTH, []),
        # functions that set something in an object of the module, or of the function around them
        (f"{MAKE}{DEFINED}profile()\n{RUN}", BOTH, []),
        (f"{MAKE}{DEFINED}if A:\n    profile()\n{RUN}", OFF, ["only if A"]),
        (f"{MAKE}{DEFINED}def both():\n    profile()\nif A:\n    both()\n{RUN}", OFF, ["only if A"]),
        (f"{MAKE}{DEFINED}atexit.register(profile)\nif A:\n    profile()\n{RUN}", BOTH, []),
        # functions that return early, and loops that go on
        ("def make():\n" + indent(f"{MAKE}if A:\n    return config\nelse:\n    return config\n{PROFILE}"), OFF, ["never runs"]),
        ("def make():\n" + indent(f"{MAKE}return config\n{PROFILE}"), OFF, ["never runs"]),
        ("def make():\n" + indent(f"if A:\n    return tf.ConfigProto()\n{MAKE}{PROFILE}return config\n"), BOTH, []),
        ("def make():\n" + indent(f"{MAKE}if A:\n    return None\n{PROFILE}return config\n"), BOTH, []),
        ("kept = None\ndef make():\n" + indent(f"global kept\nif kept is not None:\n    return kept\n{MAKE}{PROFILE}kept = config\nreturn config\n") + "make()\nmake()\n", BOTH, []),
        (f"{MAKE}for one in sys.argv:\n    if one == '-a':\n        continue\n    {PROFILE}{RUN}", OFF, ["only if not (one == '-a')"]),
        (f"{MAKE}while True:\n    if A:\n        break\n    {PROFILE}    break\n{RUN}", OFF, ["only if not (A)"]),
        (f"{MAKE}while True:\n    if A:\n        print(A)\n    else:\n        break\n    {PROFILE}{RUN}", OFF, ["only if A"]),
        ("for one in sys.argv:\n    if one == '-a':\n        continue\n" + indent(f"{MAKE}{PROFILE}{RUN}"), BOTH, []),
        ("def main():\n" + indent(f"{MAKE}{DEFINED}if A:\n    profile()\n{RUN}") + "if sys.argv:\n    main()\n", OFF, ["only if A"]),
        ("def main():\n" + indent(f"{MAKE}{DEFINED}profile()\n{RUN}") + "if sys.argv:\n    main()\n", BOTH, []),
    ],
)  # fmt: skip
def test_what_runs_perhaps_or_never_is_not_in_force(text: str, settings: dict[str, Any], why: list[str]) -> None:
    assert read(text) == ([settings], why)


@pytest.mark.parametrize(
    ("test", "told"), [("if A:\n", "A"), ("if A:\n    pass\nelse:\n", "not (A)"), ("if not A:\n    pass\nelse:\n", "not (not A)")]
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
