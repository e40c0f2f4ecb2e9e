"""A store as teams have it, grown at random: chains, mix-ins, overrides, pins, a source, rules, presets outside, blocks in scripts."""

from __future__ import annotations

import random
import re
import tomllib
from typing import Any

import npuprof
from npuprof.model import NpuprofError
from support.repositories import Repo
from support.running import Run

#: Options with values, each valid by itself and beside all others.
SCALARS: dict[str, tuple[str, ...]] = {
    "hccl_timeout": ("600", "1836", "1904", "3600"),
    "iterations_per_loop": ("1", "10", "100"),
    "deterministic": ("0", "1"),
    "graph_run_mode": ("0", "1"),
    "stream_max_parallel_num": ('"AIcoreEngine:8"', '"AIcoreEngine:10"'),
    "enable_exception_dump": ("0", "1"),
    "op_debug_level": ("0", "1"),
    "hcom_parallel": ("true", "false"),
}
LIST = "modify_mixlist.black-list.to-add"
OPERATORS = ("MatMul", "Cast", "Xlog1py", "Add", "Conv2D", "Relu", "Mul", "Sub")
RULES = """# rules of the team
requires = ">=0.0.1"  # any
presets = ["jobs/*/preset.toml"]

[[rule]]
code = "TEAM-1"
when = "scenario == 'training'"
require = "hccl_timeout != 7"
message = "seven is unlucky"
severity = "warning"
presets = ["p/*", 'p/p03', "base/b1"]  # some

[[ignore]]
code = "NP603"
reason = "ours"
presets = ["p/p0*", "mix/m2"]
"""


class Grower:
    """Writes the store and makes random edits of it."""

    def __init__(self, repo: Repo, run: Run, dice: random.Random) -> None:
        self.repo, self.run, self.dice = repo, run, dice
        self.folder = repo.folder
        self.mark = 0

    # -- texts ---------------------------------------------------------------------------------------------------

    def comment(self) -> str:
        self.mark += 1
        return f"  # c{self.mark}."

    def text(self, extends: list[str], abstract: bool = False, listed: bool = False) -> str:
        dice = self.dice
        lines = [f"# head{self.comment()}", "[profile]", f'description = "preset {self.mark}"{self.comment()}', 'scenario = "training"']
        if abstract:
            lines.append("abstract = true")
        if extends:
            quote = dice.choice(["'", '"', '"""'])
            if dice.random() < 0.3:
                lines += ["extends = [", *(f"  {quote}{name}{quote},{self.comment()}" for name in extends), "]"]
            else:
                lines.append(f"extends = [{', '.join(f'{quote}{name}{quote}' for name in extends)}]{self.comment()}")
        keys = dice.sample(sorted(SCALARS), dice.randint(0, 4))
        lines += ["", f"[options]{self.comment()}", 'precision_mode_v2 = "mixed_float16"']
        lines += [f"{key} = {dice.choice(SCALARS[key])}{self.comment() if dice.random() < 0.7 else ''}" for key in keys]
        kind = 1 - dice.random() if listed else 1
        names = ", ".join(f'"{name}"' for name in dice.sample(OPERATORS, dice.randint(1, 3)))
        if kind < 0.2:
            lines += ["", f"[options.modify_mixlist]{self.comment()}", f"black-list = {{ to-add = [{names}] }}{self.comment()}"]
        elif kind < 0.3:
            lines += ["", "[options.modify_mixlist.black-list]", f"to-add = [{self.comment()}", f"  {names},{self.comment()}", "]"]
        elif kind < 0.5:
            lines += ["", "[append.options.modify_mixlist]", f"black-list = {{ to-add = [{names}] }}{self.comment()}"]
        if dice.random() < 0.4:
            lines += ["", "[env]", f"HCCL_EXEC_TIMEOUT = {dice.choice([1800, 3600])}{self.comment()}"]
        for _ in range(dice.choice([0, 0, 1, 2])):
            key = dice.choice(sorted(SCALARS))
            match = dice.choice(['product = "atlas-a3"', 'cann = ">=9.0"', 'product = "atlas-a2", cann = "<9.0"'])
            lines += [
                "",
                f"[[override]]{self.comment()}",
                f"match = {{ {match} }}",
                f"options = {{ {key} = {dice.choice(SCALARS[key])} }}{self.comment()}",
            ]
        end = "\r\n" if dice.random() < 0.15 else "\n"
        return end.join(lines) + end

    def grow(self, team: Repo | None = None) -> None:
        dice = self.dice
        presets: dict[str, str] = {}
        bases = [f"base/b{number}" for number in range(10)]
        mixins = [f"mix/m{number}" for number in range(10)]
        for place, name in enumerate(bases):
            presets[name] = self.text(dice.sample(bases[:place], min(place, dice.choice([0, 1, 1]))), abstract=dice.random() < 0.4)
        for name in mixins:
            presets[name] = self.text([], listed=True)
        self.repo.commit(presets)
        for name in bases[:4]:
            done = self.run("release", name)
            assert done.code == 0, done.err
        more: dict[str, str] = {}
        for number in range(36):
            parents = dice.sample(bases[4:], 1) + sorted(dice.sample(mixins, dice.choice([0, 1, 2])))
            kind = dice.random()
            if kind < 0.2:
                parents = [f"{dice.choice(bases[:4])}@1", *parents[1:]]
            elif kind < 0.3 and team is not None:
                parents = [*parents[1:], "team:shared"]
            elif kind < 0.6 and number:
                parents = [f"p/p{dice.randrange(number):02}"]
            more[f"p/p{number:02}"] = self.text(parents, listed=dice.random() < 0.5)
        self.repo.write(more)
        for number in range(4):
            path = self.folder / f"jobs/j{number}/preset.toml"
            path.parent.mkdir(parents=True)
            path.write_text(self.text([dice.choice(bases)]))
        (self.folder / "npuprof.toml").write_text(RULES)
        if team is not None:
            done = self.run("source", "add", "team", f"file://{team.folder}", "--rev", "main")
            assert done.code == 0, done.err
        for number, name in enumerate(dice.sample(sorted({**presets, **more}), 8)):
            script = self.folder / (f"s{number}.py" if number % 2 else f"s{number}.sh")
            python = (
                "import tensorflow as tf\n\nconfig = tf.compat.v1.ConfigProto()  # mine\nsession = tf.compat.v1.Session(config=config)\n"
            )
            script.write_text(python if number % 2 else "#!/bin/sh\n# mine\n")
            self.run("inject", script, name)
        self.repo.commit(message="all")

    # -- what is there -------------------------------------------------------------------------------------------

    def content(self) -> dict[str, bytes]:
        skipped = (".git", "home")
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and not set(skipped) & set(path.relative_to(self.folder).parts)
        }

    def comments(self) -> set[str]:
        return {mark for raw in self.content().values() for mark in re.findall(r"# c\d+\.", raw.decode())}

    def resolved(self) -> dict[str, Any]:
        """Return the config of every preset, None where it cannot be resolved."""
        store = npuprof.open_store(self.folder / "profiles")
        found: dict[str, Any] = {}
        for name in store:
            try:
                found[name] = store.resolve(name)
            except NpuprofError:
                found[name] = None
        return found

    def stale(self) -> list[str]:
        """Return what is said of each block: which are out of date."""
        return sorted(line for line in self.run("inject", self.folder, "--all", "--check").out.splitlines())

    # -- edits ---------------------------------------------------------------------------------------------------

    def edit(self) -> str:
        """Make one edit and hold what it did against what it has to do; return its words."""
        kind = self.dice.choice(["rename", "rename", "copy", "set", "append", "add", "where", "where", "unset", "migrate", "extends"])
        before, was, marks = self.content(), self.resolved(), self.comments()
        words, judge = getattr(self, f"_plan_{kind}")(was)
        said = " ".join(words)
        done = self.run(*words)
        assert done.code in (0, 1, 2), (said, done.err)
        after = self.content()
        if done.code == 2:
            assert after == before, (said, done.err, "what failed wrote something")
            return f"{said}: {done.err.splitlines()[0]}"
        if kind != "unset":
            assert marks <= self.comments(), (said, marks - self.comments())
        now = self.resolved()
        assert None not in now.values(), (said, "a preset that resolved does not any more")
        judge(was, now, done)
        return said

    def _new_name(self, old: str) -> str:
        self.mark += 1
        folder = "jobs/n" if old.startswith("jobs/") else self.dice.choice(["p/new", "team/a/b", "base/c", "x"])
        return f"{folder}{self.mark}/preset" if old.startswith("jobs/") else f"{folder}{self.mark}"

    def _choose(self, was: dict[str, Any]) -> str:
        return self.dice.choice(sorted(was))

    def _plan_rename(self, was: dict[str, Any]) -> Any:
        old = self._choose(was)
        new = self._new_name(old)
        blocks, texts = self.stale(), self.content()

        def judge(was: dict[str, Any], now: dict[str, Any], done: Any) -> None:
            assert {new if name == old else name: _sum(config) for name, config in was.items()} == _sums(now), (old, new)
            assert sorted(line.replace(new, old) for line in self.stale()) == blocks
            for path, raw in self.content().items():
                if path.endswith(".toml"):
                    then = texts[path.replace(new, old) if path not in texts else path]
                    assert _other_lines(then, old, new) == _other_lines(raw, old, new), path

        return ["rename", old, new], judge

    def _plan_copy(self, was: dict[str, Any]) -> Any:
        old = self._choose(was)
        new = self._new_name("p")
        texts = self.content()

        def judge(was: dict[str, Any], now: dict[str, Any], done: Any) -> None:
            assert _sums(was) == {name: found for name, found in _sums(now).items() if name != new}
            (path,) = self.content().keys() - texts.keys()
            assert self.content()[path] in texts.values()
            assert now[new].settings == was[old].settings

        return ["copy", old, new], judge

    def _judge_one(self, name: str, key: str, find_expected: Any) -> Any:
        def judge(was: dict[str, Any], now: dict[str, Any], done: Any) -> None:
            for other in was:
                reached = name in {member.key for member in was[other].lineage} | {member.key for member in now[other].lineage}
                if not reached:
                    assert _sum(was[other]) == _sum(now[other]), (name, other)
            expected = find_expected(was[name])
            found = now[name].settings.get(key.partition(".")[0])
            for part in key.split(".")[1:]:
                found = found[part]
            assert found == expected, (name, key, found, expected)
            kept = {one: value for one, value in was[name].settings.items() if one != key.partition(".")[0]}
            assert kept == {one: value for one, value in now[name].settings.items() if one != key.partition(".")[0]}

        return judge

    def _plan_set(self, was: dict[str, Any]) -> Any:
        name, key = self._choose(was), self.dice.choice(sorted(SCALARS))
        value = self.dice.choice(SCALARS[key])
        return ["set", name, f"{key}={value}"], self._judge_one(name, key, lambda _: tomllib.loads(f"x = {value}")["x"])

    def _plan_append(self, was: dict[str, Any]) -> Any:
        name, value = self._choose(was), self.dice.choice(OPERATORS)
        return ["set", name, "--append", f"{LIST}={value}"], self._judge_one(name, LIST, lambda config: _add(config, value))

    def _plan_add(self, was: dict[str, Any]) -> Any:
        name, value = self._choose(was), self.dice.choice(OPERATORS)
        return ["set", name, f"{LIST}+={value}"], self._judge_one(name, LIST, lambda config: _add(config, value))

    def _plan_extends(self, was: dict[str, Any]) -> Any:
        name, parent = self._choose(was), f"mix/m{self.dice.randrange(10)}"

        def judge(was: dict[str, Any], now: dict[str, Any], done: Any) -> None:
            assert parent in {member.name for member in now[name].lineage}
            for other in was:
                if name not in {member.key for member in was[other].lineage}:
                    assert _sum(was[other]) == _sum(now[other]), (name, other)

        return ["set", name, f"profile.extends+={parent}"], judge

    def _plan_unset(self, was: dict[str, Any]) -> Any:
        name = self._choose(was)
        key = self.dice.choice(sorted(set(was[name].settings) & set(SCALARS)) or ["hccl_timeout"])
        return ["unset", name, key], self._judge_one(name, key, lambda _: None)

    def _plan_where(self, was: dict[str, Any]) -> Any:
        test, key = self.dice.sample(sorted(SCALARS), 2)
        asked, value = self.dice.choice(SCALARS[test]), self.dice.choice(SCALARS[key])
        meant = tomllib.loads(f"x = {asked}\ny = {value}")
        matched = {name for name, config in was.items() if config.settings.get(test) == meant["x"]}

        def judge(was: dict[str, Any], now: dict[str, Any], done: Any) -> None:
            for name in was:
                if name in matched:
                    assert now[name].settings[key] == meant["y"], (name, key)
                elif not matched & {member.key for member in was[name].lineage}:
                    assert _sum(was[name]) == _sum(now[name]), name
                others = [{one: found for one, found in side[name].settings.items() if one != key} for side in (was, now)]
                assert others[0] == others[1], name

        return ["set", "--where", f"{test} == {asked}", f"{key}={value}", "--yes"], judge

    def _plan_migrate(self, was: dict[str, Any]) -> Any:
        release = self.dice.choice(["8.0.0", "8.5.0", "9.0.0", "9.1.0"])

        def judge(was: dict[str, Any], now: dict[str, Any], done: Any) -> None:
            assert was.keys() == now.keys()
            again = self.run("migrate", "--all", "--cann", release, "--dry-run")
            assert "nothing to change in any preset" in again.err, again.out

        return ["migrate", "--all", "--cann", release], judge


def _sum(config: Any) -> tuple[str, str]:
    return (config.digest, config.preset_digest)


def _sums(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {name: _sum(config) for name, config in found.items()}


def _other_lines(raw: bytes, *names: str) -> list[str]:
    return [line for line in raw.decode().split("\n") if not any(name in line for name in names)]


def _add(config: Any, value: str) -> list[str]:
    held = config.settings.get("modify_mixlist")
    there = held.get("black-list", {}).get("to-add", []) if isinstance(held, dict) else []
    return [*there, *([] if value in there else [value])]
