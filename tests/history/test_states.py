"""What changes a setting of a preset, in its history: each commit is compared with resolving the preset there."""

from __future__ import annotations

import os
import random
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from npuprof.catalog import products, releases
from npuprof.model import Context
from support.histories import import_versions, list_expected_commits, resolve_setting, walk_history
from support.lanes import more_at_night
from support.repositories import Link, Node, import_graph

SEEDS = range(int(os.environ.get("NPUPROF_SEEDS", "6")))
KEYS = ["hccl_timeout", "graph_run_mode", "dynamic_dims", "stream_max_parallel_num", "precision_mode", 'options."a.b"', "env.hccl_timeout"]

# -- random presets, one line of which changes at most commits ---------------------------------------------------

OPTIONS = [
    "hccl_timeout = 1", '"hccl_timeout" = 1', '"hccl\\u005ftimeout" = 1', "hccl_timeout = 1  # how long", "  hccl_timeout = 1",
    "graph_run_mode = 1", 'dynamic_dims = "1,2;3,4"', "dynamic_dims = [[1, 2], [3, 4]]", 'stream_max_parallel_num = "A:1,B:2"',
    "stream_max_parallel_num = { A = 1, B = 2 }", 'precision_mode = "force_fp16"', '"a.b" = 1', 'dump_path = """\nhccl_timeout = 1\n"""',
    "enable_data_pre_proc = true", "# a remark",
]  # fmt: skip
PLAIN_OPTIONS = [line for line in OPTIONS if "\\" not in line and '"""' not in line]
PROFILE = [
    'description = "1"', 'scenario = "training"', "abstract = true", 'cann = ">=8.0"', 'unset = ["hccl_timeout"]',
    'locked = ["graph_run_mode"]', 'unset = ["stream_max_parallel_num.A"]', 'unset = ["dynamic_dims", "env.hccl_timeout"]',
    'owner = "team"',
]  # fmt: skip
BLOCKS = [
    "[options.hccl_timeout]\nx = 1", '[options."hccl\\u005ftimeout"]\nx = 1', "[env]\nhccl_timeout = 1",
    "[append.options]\ndynamic_dims = [[9, 9]]", '[append.options]\n"stream_max_parallel_num" = { C = [1] }',
    "[options.stream_max_parallel_num]\nA = 1",
    '[[override]]\nmatch = { scenario = "training" }\noptions = { hccl_timeout = 2 }',
    '[[override]]\n[override.match]\nscenario = "training"\n[override.options]\nhccl_timeout = 2\ngraph_run_mode = 0',
    '[[override]]\n[override.match]\nproduct = "atlas-a2-training"\n[override.options]\nhccl_timeout = 3',
    '[[override]]\nmatch.cann = ">=8.0"\nunset = ["hccl_timeout"]\n[override.append.options]\ndynamic_dims = [[7, 7]]',
    '[[override]]\n[override.match]\ntarget = "atc"\n[override.options.stream_max_parallel_num]\nA = 3',
]  # fmt: skip
CHOICES = {
    "scenario": ['"training"', '"online-inference"'], "abstract": ["true", "false"], "owner": ['"team"', '"other"'],
    "product": ['"atlas-a2-training"', '"atlas-a3"'], "target": ['"atc"', '"session"'], "cann": ['">=8.0"', '">=9.0"'],
    "dynamic_dims": ['"1,2;3,4"', '"1,2;3,5"', '"words"'], "stream_max_parallel_num": ['"A:1,B:2"', '"B:2"', '"A:3"', '"words"'],
    "precision_mode": ['"force_fp16"', '"allow_mix_precision"'], "description": ['"1"', '"2"'], "enable_data_pre_proc": ["true", "false"],
}  # fmt: skip
WRONG = {"scenario": '"nonsense"', "abstract": '"yes"', "owner": "1", "description": "true"}
NUMBERS = ["0", "1", "2", "+2", "3", "true", '"1"']
SCALAR = re.compile(r"""^(\s*"?([\w\\]+(?:\.\w+)?)"?\s*=\s*)([+\w]+|"[^"]*")(\s*(?:#.*)?)$""")


def write_preset(dice: random.Random, name: str) -> str:
    """Return a random preset; a few of them are no TOML."""
    parents = {"leaf": [["mid"], ["mid", "side"], ["side", "mid"], ["base@1", "mid"], ["side"]], "mid": [["base"], ["base", "side"]]}
    while True:
        profile = [f"extends = {dice.choice(parents[name])}".replace("'", '"')] if name in parents else []
        profile += dice.sample(PROFILE, dice.randrange(3))
        options = dice.sample(OPTIONS if dice.random() < 0.5 else PLAIN_OPTIONS, dice.randrange(1, 6))
        parts = ["\n".join(["[profile]", *profile]), "\n".join(["[options]", *options])]
        if dice.random() < 0.1:
            parts = ["\n".join(f"profile.{line}" for line in profile), "\n".join(f"options.{line.strip()}" for line in options)]
        text = "\n".join([*parts, *dice.sample(BLOCKS, dice.choice([0, 0, 1, 1, 2]))]) + "\n"
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            if dice.random() < 0.95:
                continue
        return text


def edit_preset(dice: random.Random, old: str) -> str:
    """Return a preset with one scalar changed in place, as most commits do, or a line that says nothing."""
    lines = old.split("\n")
    places = [place for place, line in enumerate(lines) if SCALAR.match(line)]
    if dice.random() < 0.1:
        place = dice.randrange(len(lines))
        lines[place] = {"# a remark": "# another", "": "# a remark"}.get(lines[place], f" {lines[place]}")
    for place in dice.sample(places, min(len(places), dice.choice([1, 1, 1, 2]))):
        match = SCALAR.match(lines[place])
        assert match, "those were looked for"
        name = match[2].rpartition(".")[2]
        right = dice.choice(CHOICES.get(name, NUMBERS))
        lines[place] = f"{match[1]}{right if dice.random() < 0.95 else WRONG.get(name, right)}{match[4]}"
    return "\n".join(lines)


def grow_history(dice: random.Random, count: int) -> list[Node]:
    """Return commits that edit, rewrite, remove, rename and link presets, with merges among them; the last holds all.

    The first is only there to be released: it has another history.
    """
    names = ["base", "base", "side", "mid", "leaf", "leaf", "other"]
    nodes = [Node((), {"base": write_preset(dice, "base")}, ("base/v1.0.0",)), Node((), {name: write_preset(dice, name) for name in names})]
    tips = [1]
    for number in range(2, count):
        parent = dice.choice(tips)
        tree = dict(nodes[parent].presets)
        name, action = dice.choice(names), dice.random()
        merged = [dice.choice([tip for tip in tips if tip != parent])] if action < 0.1 and len(tips) > 1 else []
        if merged:
            tree |= {name: text for name, text in nodes[merged[0]].presets.items() if dice.random() < 0.5}
        elif name in tree and not isinstance(tree[name], Link) and action < 0.85:
            tree[name] = edit_preset(dice, tree[name])
        elif name in tree and name not in ("leaf", "other") and action < 0.9:
            text = tree.pop(name)
            tree |= {} if action < 0.87 else {"other": text, name: Link("other.toml")}
        else:
            tree[name] = write_preset(dice, name)
        nodes.append(Node((parent, *merged), tree))
        tips = [tip for tip in tips if tip not in merged and (tip != parent or dice.random() < 0.15)] + [number]
    return [*nodes, Node(tips[::-1], nodes[-1].presets)] if len(tips) > 1 else nodes


def list_named_contexts(nodes: Sequence[Node]) -> list[Context]:
    """Return the products, releases and targets that overrides of any commit may match."""
    found = {match for node in nodes for text in node.presets.values() for match in re.findall(r'(product|cann|target) = "([^"]*)"', text)}
    makes = {
        "product": lambda name: Context(product=products.find_product(name) or name),
        "cann": lambda text: Context((releases.find_releases_in_range(text) or [None])[-1]),
        "target": lambda name: Context(target=name),
    }
    return [makes[word](name) for word, name in sorted(found)]


@pytest.mark.parametrize("seed", more_at_night(SEEDS[:2], SEEDS[2:]))
def test_a_setting_has_the_history_that_resolving_every_commit_tells(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    nodes = grow_history(dice, 60)
    repo = import_graph(tmp_path / "repo", nodes)
    monkeypatch.chdir(repo.folder)
    graph = {line.split()[0]: line.split()[1:] for line in repo.git("rev-list", "--parents", "HEAD").splitlines()}
    context = dice.choice([Context(), Context(product="atlas-a2-training"), Context("8.0.0", None, "atc")])
    contexts = [context, *(list_named_contexts(nodes) if context == Context() else [])]
    judged = 0
    for key in KEYS:
        found = walk_history(repo.folder, key, context)
        assert {step[0] for step in found} == list_expected_commits(repo.folder, graph, key, contexts), key
        judged += len(found)
    assert judged > 5


# -- lines that change in place, and what else that can change ----------------------------------------------------

LEAF = '[profile]\nextends = ["base"]\n'
TIMEOUT = "[options]\nhccl_timeout = @\n"
BESIDE = "[profile]\n@\n[options]\nhccl_timeout = 1\n"
OVERRIDE = "[options]\nhccl_timeout = 1\n[[override]]\n[override.match]\n@\n[override.options]\nhccl_timeout = 9\n"
DIMS = '[options]\ndynamic_dims = "@"\nhccl_timeout = 1\n'


def fill(text: str, *words: object) -> list[str]:
    """Return versions of a text, each with another word where it has ``@``."""
    return [text.replace("@", str(word)) for word in words]


#: What is asked for, the preset, versions of what it extends, and what each step that is told leaves, oldest first.
HISTORIES: dict[str, tuple[str, str, list[str], list[Any]]] = {
    "the value": ("hccl_timeout", LEAF, fill(TIMEOUT, 1, 2, 3), [1, 2, 3]),
    "the value written otherwise": ("hccl_timeout", LEAF, fill(TIMEOUT, 1, "+1", "1 ", " 1", "1 # one"), [1]),
    "the value of another kind": ("hccl_timeout", LEAF, fill(TIMEOUT, 1, "true", '"1"', "1.0", 1, "[1]"), [1, True, "1", 1.0, 1, [1]]),
    "truth": ("enable_data_pre_proc", LEAF, fill("[options]\nenable_data_pre_proc = @\n", "true", "false", "true"), [True, False, True]),
    "text": ("dump_path", LEAF, fill('[options]\ndump_path = "@"\n', "a", "", "#", "a = 1"), ["a", "", "#", "a = 1"]),
    "text with an escape": ("dump_path", LEAF, fill('[options]\ndump_path = "@"\n', "a", r"\u0061", "b", r"\t"), ["a", "b", "\t"]),
    "text of many lines": ("dump_path", LEAF, fill('[options]\ndump_path = """\nx = @\n"""\n', 1, 2), ["x = 1\n", "x = 2\n"]),
    "numbers of many digits": ("hccl_timeout", LEAF, fill(TIMEOUT, 10**17, 10**18, 10**18 + 1), [10**17, 10**18, 10**18 + 1]),
    "how lines end": ("hccl_timeout", LEAF, [*fill(TIMEOUT, 1), *fill(TIMEOUT.replace("\n", "\r\n"), 2, 3)], [1, 2, 3]),
    "an escaped key": ("hccl_timeout", LEAF, fill('[options]\n"hccl\\u005ftimeout" = @\n', 1, 2), [1, 2]),
    "a dotted key": ("hccl_timeout", LEAF, fill("options.hccl_timeout = @\n", 1, 2), [1, 2]),
    "a key that holds a dot": ('options."a.b"', LEAF, fill('[options]\n"a.b" = @\nb = @\n', 1, 2), [1, 2]),
    "a value inline": ("hccl_timeout", LEAF, fill("options = { hccl_timeout = @ }\n", 1, 2), [1, 2]),
    "a key below a table of the name": ("hccl_timeout", LEAF, fill("[options.hccl_timeout]\nx = @\n", 1, 2), [{"x": 1}, {"x": 2}]),
    "a part of the value": ("dynamic_dims", LEAF, fill(DIMS, "1,2;3,4", "1,2;3,5"), ["1,2;3,4", "1,2;3,5"]),
    "another value": ("hccl_timeout", LEAF, fill("[options]\ngraph_run_mode = @\nhccl_timeout = 1\n", 0, 1, 0), [1]),
    "both values of the name": ("hccl_timeout", LEAF, fill("[env]\nhccl_timeout = @\n[options]\nhccl_timeout = @\n", 1, 2), [1, 2]),
    "the key": ("graph_run_mode", LEAF, fill("[options]\n@ = 1\n", "a", "graph_run_mode", "a"), [1, "not set"]),
    "a remark": ("hccl_timeout", LEAF, fill("# @\n[options]\nhccl_timeout = 1 # @\n", "a", "b"), [1]),
    "a remark that comes and goes": ("hccl_timeout", LEAF, fill("@\n[options]\nhccl_timeout = 1\n", "", "# b", "\t# c", " "), [1]),
    "a remark that was the value": ("hccl_timeout", LEAF, fill("[options]\n@hccl_timeout = 1\n", "", "# "), [1, "not set"]),
    "the number of lines": ("hccl_timeout", LEAF, fill("[options]\n@hccl_timeout = 1\n", "", "a = 1\n", "hccl_timeout = 2 #"), [1, 2]),
    "what is overruled": ("hccl_timeout", LEAF + "[options]\nhccl_timeout = 5\n", fill(TIMEOUT, 5, 6, 7), [5]),
    "what is unset": ("hccl_timeout", LEAF + 'unset = ["hccl_timeout"]\n', fill(TIMEOUT, 1, 2), []),
    "what is locked": ("hccl_timeout", LEAF, fill('[profile]\nlocked = ["hccl_timeout"]\n' + TIMEOUT, 1, 2), [1, 2]),
    "text for people": ("hccl_timeout", LEAF, fill(BESIDE, 'description = "1"', 'description = "2"'), [1]),
    "the kind of another value": ("hccl_timeout", LEAF, fill(BESIDE, "abstract = true", "abstract = 1"), [1, "broken"]),
    "a scenario that there is not": ("hccl_timeout", LEAF, fill(BESIDE, 'scenario = "x"', 'scenario = "training"'), ["broken", 1]),
    "the scenario that the preset matches": (
        "hccl_timeout", LEAF + '[[override]]\nmatch = { scenario = "training" }\noptions = { hccl_timeout = 9 }\n',
        fill(BESIDE, 'scenario = "training"', 'scenario = "online-inference"', 'scenario = "training"'), [9, 1, 9],
    ),
    "a scenario that is matched": (
        "hccl_timeout", LEAF + 'scenario = "training"\n', fill(OVERRIDE, 'scenario = "training"', 'scenario = "online-inference"'), [9, 1],
    ),
    "a product that is matched": ("hccl_timeout", LEAF, fill(OVERRIDE, 'product = "atlas-a3"', 'product = "atlas-a2-training"'), [1, 9]),
    "a release that is matched": ("hccl_timeout", LEAF, fill(OVERRIDE, 'cann = ">=8.0"', 'cann = ">=9.0"'), [9, 1]),
    "a target that is matched": ("hccl_timeout", LEAF, fill(OVERRIDE, 'target = "atc"', 'target = "session"'), [9, 1]),
    "a value that does not match": ("hccl_timeout", LEAF, [OVERRIDE.replace("@", 'target = "x"').replace("9", n) for n in "89"], [1]),
    "what is added to": (
        "hccl_timeout", LEAF + "[append.options]\ndynamic_dims = [[9, 9]]\n", fill(DIMS, "1,2", "x", "3,4"), [1, "broken", 1],
    ),
    "what an override adds to": (
        "hccl_timeout", LEAF + '[[override]]\nmatch = { target = "atc" }\nappend.options.dynamic_dims = [[9, 9]]\n',
        fill(DIMS, "1,2", "x", "3,4"), [1, "broken", 1],
    ),
    "what something is taken out of": (
        "stream_max_parallel_num", LEAF + 'unset = ["stream_max_parallel_num.A"]\n',
        fill('[options]\nstream_max_parallel_num = "@"\n', "A:1", "B:1", "B:2"), ["B:1", "B:2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("told", HISTORIES)
def test_a_line_that_changes_in_place_has_the_consequences_that_resolving_finds(
    tmp_path: Path, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, leaf, versions, expected = HISTORIES[told]
    context = Context("8.0.0", "atlas-a2-training", "atc")
    repo = import_versions(tmp_path / "repo", [{"leaf": leaf, "base": text} for text in versions])
    monkeypatch.chdir(repo.folder)
    found = walk_history(repo.folder, key, context)
    assert list(resolve_setting(repo.folder, [step[0] for step in found[::-1]], key, context).values()) == expected


# -- what is not in the files that change -------------------------------------------------------------------------


def walk_versions(folder: Path, versions: list[dict[str, str]], key: str = "hccl_timeout") -> list[Any]:
    """Return what each step of a history leaves, oldest first; the first ``base`` has been released before as 1.0.0."""
    nodes = [Node((), {"base": versions[0]["base"]}, ("base/v1.0.0",)), *(Node((number,), tree) for number, tree in enumerate(versions))]
    repo = import_graph(folder / "repo", nodes)
    found = walk_history(repo.folder, key, Context())
    return list(resolve_setting(repo.folder, [step[0] for step in found[::-1]], key, Context()).values())


def test_a_pinned_parent_is_as_it_was_whatever_becomes_of_its_name(tmp_path: Path) -> None:
    leaf = '[profile]\nextends = ["base@1"]\n[options]\ngraph_run_mode = {}\n'
    versions = [{"base": text, "leaf": leaf.format(0)} for text in fill(TIMEOUT, 1, 5, 1, 7)]
    assert walk_versions(tmp_path, versions) == [1]
    assert walk_versions(tmp_path / "2", [*versions, {**versions[-1], "leaf": leaf.format(1)}], "graph_run_mode") == [0, 1]


def test_a_pinned_parent_and_the_plain_one_are_two(tmp_path: Path) -> None:
    leaf = '[profile]\nextends = ["base@1", "base"]\n'
    assert walk_versions(tmp_path, [{"base": text, "leaf": leaf} for text in fill(TIMEOUT, 1, 5, 1, 7)]) == [1, 5, 1, 7]


def test_a_change_where_a_link_leads_is_in_the_history(tmp_path: Path) -> None:
    versions = [{"real": text, "base": Link("real.toml"), "leaf": LEAF} for text in fill(TIMEOUT, 1, 5, 7)]
    beside = [{**versions[-1], "leaf": f"# {number}\n{LEAF}"} for number in range(3)]
    assert walk_versions(tmp_path, [*versions, *beside]) == [1, 5, 7]
    assert walk_versions(tmp_path / "2", [{**tree, "leaf": Link("real.toml")} for tree in versions]) == [1, 5, 7]


def test_a_file_that_becomes_a_link_has_its_history(tmp_path: Path) -> None:
    one, two, other = fill(TIMEOUT, 1, 2, 3)
    trees = [{"base": one}, {"base": two}, {"base": Link("real.toml"), "real": two}, {"base": Link("real.toml"), "real": other}]
    assert walk_versions(tmp_path, [{**tree, "leaf": LEAF} for tree in trees]) == [1, 2, 3]
