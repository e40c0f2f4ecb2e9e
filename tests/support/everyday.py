"""Presets as teams write them, at random: with parents, lists, overrides, comments everywhere."""

from __future__ import annotations

import random

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
    """Writes presets."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.mark = 0

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
