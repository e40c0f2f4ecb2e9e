"""Draws a run from a seed: a preset, what its scripts really set, what the adapter wrote down of it, and what is left of that."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from support.adapterlogs import dumps, files, truth, wire
from support.adapterlogs.process import play
from support.adapterlogs.stage import Epoch, Plan, Played, Session
from support.adapterlogs.tf2 import Plan2, Played2, play2

#: Options that decide whether there is anything to log at all, or that the two ends of this writer would have to guess.
LEFT_OUT = {"use_off_line", "job", "profiling_mode", "dynamic_graph_execute_mode", "dynamic_inputs_shape_range"}
#: Options whose text is free, so that it may be long, or hold a newline.
FREE = ("dump_layer", "op_debug_config", "debug_dir", "fusion_switch_file", "optypelist_for_implmode", "HCCL_algorithm", "insert_op_file")
#: Options of which the adapter refuses an empty text.
REFUSED = {"precision_mode", "precision_mode_v2", "jit_compile", "aoe_mode", "op_select_implmode", "op_compiler_cache_mode", "dump_mode"}
#: What an attribute of TF 2 does not take, though the session option does.
NOT_IN_TF2 = {("topo_sorting_mode", 2), ("graph_slice", "manual"), ("dynamic_node_type", 0), ("dynamic_node_type", 1)} | {
    ("op_select_implmode", f"{mode}_for_all") for mode in ("high_precision", "high_performance")
}
BORN = {"a": 2021, "b": 2021, "c": 2022, "d": 2022, "e": 2023, "f": 2023, "g": 2026}


class Case(NamedTuple):
    """A run: its preset, what to give to a reader, its processes and the truth of a value in one of them.

    Of those that are ``seen`` at least a line is left. ``shared`` says that nothing in the lines tells its processes apart; with ``hosts``
    every process has the first one's number in its lines, and a folder of its own.
    """

    seed: int
    title: str
    preset: dict[str, Any]
    paths: list[Path]
    find: Callable[[int, str, Any], truth.Truth]
    pids: tuple[int, ...]
    seen: frozenset[int]
    shared: bool
    hosts: bool = False

    @property
    def truths(self) -> dict[int, dict[str, truth.Truth]]:
        """The truth of each setting of the preset, by process."""
        return {pid: {name: self.find(pid, name, value) for name, value in self.preset.items()} for pid in self.pids}

    @property
    def text(self) -> str:
        """The preset as a file."""
        return write_preset(self.preset)


def write_preset(options: Mapping[str, Any]) -> str:
    """Return a preset's file."""
    return "[options]\n" + "".join(f"{name} = {_write_toml(value)}\n" for name, value in options.items())


def _write_toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _draw_value(option: wire.Option, rng: random.Random) -> Any:
    if option.name in FREE and rng.random() < 0.15:
        return rng.choice(
            ["layer_层/名" * rng.randint(20, 160), "a,b\nge.exec.precision_mode: force_fp16\n c", "x" * rng.randint(880, 960)]
        )
    if option.name == "dump_path" and rng.random() < 0.3:
        return "/data/link/dump"
    return rng.choice(option.values)


def _draw_preset(options: list[wire.Option], rng: random.Random, *, needs: bool) -> dict[str, Any]:
    drawn = rng.sample(options, rng.randint(4, min(16, len(options))))
    preset = {option.name: _draw_value(option, rng) for option in drawn if option.name not in LEFT_OUT}
    for name in list(preset):
        for need, value in wire.NEEDS.get(name, {}).items():
            if needs and rng.random() < 0.8:
                preset.setdefault(need, value)
    return preset


def _draw_other(option: wire.Option, value: Any, rng: random.Random) -> Any:
    others = [other for other in option.values if other != value]
    return rng.choice(others) if others else value


def _misspell(name: str, rng: random.Random) -> str:
    place = rng.randrange(1, len(name))
    return rng.choice([name[:place] + name[place + 1 :], name + "s", name.replace("_", "-"), name.upper()]) + "_"


def draw_entries(preset: Mapping[str, Any], rng: random.Random, right: float) -> dict[str, wire.Entry]:
    """Return what a script makes of a preset: set right, left out, misspelt, set to something else, or set in the wrong field."""
    entries: dict[str, wire.Entry] = {}
    for name, value in preset.items():
        option = wire.list_options()[name]
        fate = "right" if rng.random() < right else rng.choice(["left out", "misspelt", "other", "wrong field"])
        if fate == "right":
            entries[name] = (option.field, value)
        elif fate == "misspelt":
            entries[_misspell(name, rng)] = (option.field, value)
        elif fate == "other":
            entries[name] = (option.field, _draw_other(option, value, rng))
        elif fate == "wrong field" and name not in REFUSED:
            entries[name] = ("i" if option.field == "s" else "s", str(value))
    return entries


def _draw_damage(rng: random.Random) -> files.Damage:
    if rng.random() < 0.35:
        return files.Damage()
    return files.Damage(
        foreign=rng.random() < 0.4,
        modules=rng.random() < 0.5,
        junk=rng.random() < 0.25,
        clock=rng.random() < 0.3,
        drop=rng.choice([0, 0, 0, 1, 2]),
        rotate=rng.choice([0, 0, 400, 400, 900]),
        lost=rng.choice([0, 0, 1, 2]),
        tail=rng.random() < 0.2,
        label=rng.random() < 0.06,
        crlf=rng.random() < 0.06,
    )


def _draw_epochs(preset: Mapping[str, Any], snapshot: str, rng: random.Random) -> list[Epoch]:
    right = rng.choice([1.0, 0.85, 0.6])
    entries = draw_entries(preset, rng, right)
    epochs = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        sessions = []
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            sessions.append(Session(entries, rng.choice([1, 1, 2]), rng.choice([1, 1, 2])))
            if rng.random() < 0.6:
                entries = draw_entries(preset, rng, right)
        resource = None
        if snapshot == "g" and rng.random() < 0.12:
            drawn = draw_entries(preset, rng, 0.6)
            resource = {name: drawn[name][1] for name in preset if name in drawn and drawn[name][0] == wire.list_options()[name].field}
        operator = rng.choice(["init", "data"]) if resource is None and rng.random() < 0.1 else ""
        epochs.append(Epoch(sessions, resource, operator, draw_entries(preset, rng, 0.5)))
    return epochs


def _choose_start(snapshot: str, rng: random.Random) -> datetime:
    return datetime(BORN[snapshot], rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23), rng.randint(0, 59), 12, 345678)


def _write_dumps(folder: Path, played: Played, pid: int, rng: random.Random) -> set[int]:
    """Write the graphs of a process; return the sessions of which a graph is whole."""
    place = folder / "extra-info" / "graph" / f"{pid}_0"
    place.mkdir(parents=True, exist_ok=True)
    whole = set()
    for number, held in enumerate(played.sessions):
        for after in (False, True):
            raw = dumps.write_graph(held, after=after, nodes=rng.randint(0, 6)).encode()
            cut = rng.random() < 0.15
            (place / f"{'After' if after else 'Before'}SubGraph_{number}.pbtxt").write_bytes(raw[: rng.randrange(len(raw))] if cut else raw)
            if not cut and not after:
                whole.add(number)
    return whole


def _touch(path: Path) -> Path:
    path.touch()
    return path


def _write(folder: Path, snapshot: str, processes: list[files.Process], rng: random.Random, *, hosts: bool) -> tuple[str, files.Written]:
    damage, layout = _draw_damage(rng), "hosts" if hosts else rng.choice(["folder", "folder", "screen", "file"])
    if hosts:
        alike = [process._replace(pid=processes[0].pid) for process in processes]
        (folder / "hosts").mkdir(exist_ok=True)
        _touch(folder / "hosts" / "nothing.log")
        return f"{layout} {damage}", files.write_hosts(folder / "hosts", alike, damage, rng)
    if layout == "folder":
        old = snapshot in "ab" and rng.random() < 0.5
        written = files.write_folder(folder / "ascend" / "log", processes, damage, rng, old=old)
        return f"{layout} {damage}", written if written.paths else written._replace(paths=[_touch(folder / "nothing.log")])
    path = folder / "screen.log"
    return f"{layout} {damage}", files.write_screen(path, processes, damage, rng, mixed=layout == "screen")


def draw_case(folder: Path, seed: int) -> Case:
    """Return a run, written down below a folder."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    if rng.random() < 0.2:
        return _draw_case2(folder, seed, rng)
    snapshot = rng.choice("abbccddeeffgggggggg")
    options = [o for o in wire.list_options().values() if o.read and (snapshot in o.read or rng.random() < 0.05)]
    preset = _draw_preset(options, rng, needs=True)
    modules = frozenset(rng.choice([["FMK"], ["FMK"], ["FMK"], ["FMK", "GE"], ["GE"], []]))
    common = _draw_epochs(preset, snapshot, rng)
    threads = rng.random() < 0.2
    prefix = rng.choice(["", "/home/jenkins/workspace/build/tensorflow/"])
    console = snapshot == "a" and rng.random() < 0.3
    played: list[Played] = []
    for number in range(rng.choice([1, 1, 2, 4])):
        epochs = _draw_epochs(preset, snapshot, rng) if rng.random() < 0.25 else common
        played.append(play(Plan(snapshot, 4242 + 100 * number, epochs, modules, threads, prefix, console), rng))
    start = _choose_start(snapshot, rng)
    program = rng.choice(["python3.7", "python", "python3"])
    processes = [files.Process(each.pid, program, each.lines, start + timedelta(milliseconds=number)) for number, each in enumerate(played)]
    hosts = len(played) > 1 and not console and rng.random() < 0.15
    title, written = _write(folder, snapshot, processes, rng, hosts=hosts)
    dumped: list[set[int]] = [set() for _ in played]
    if snapshot == "g" and rng.random() < 0.3:
        for number, each in enumerate(played):
            place = folder / "hosts" / f"host-{number}" if hosts else folder
            dumped[number] = _write_dumps(place, each, played[0].pid if hosts else each.pid, rng)
        written.paths.extend([] if hosts else [folder / "extra-info"])
    known = {each.pid: (each, whole, graphs) for each, whole, graphs in zip(played, written.whole, dumped, strict=True)}

    def find(pid: int, name: str, value: Any) -> truth.Truth:
        each, whole, graphs = known[pid]
        return truth.find_truth(each, name, value, whole, graphs)

    told = f"TF 1 {wire.SNAPSHOTS[snapshot]} {'+'.join(sorted(modules)) or 'default level'}{' threads' if threads else ''}"
    told += f" {title}{' dumps' if any(dumped) else ''}{' console' if console else ''}"
    return Case(seed, told, preset, written.paths, find, tuple(known), written.list_seen(known), console, hosts)


def _draw_case2(folder: Path, seed: int, rng: random.Random) -> Case:
    snapshot = rng.choice("bcdefgggg")
    known = wire.list_options()
    named = [known[each.name] for each in wire.list_attributes() if each.name in known and snapshot in each.mapped]
    preset = _draw_preset([option for option in named if option.name != "profiling_options"], rng, needs=False)
    preset = {name: value for name, value in preset.items() if "\n" not in str(value) and str(value) not in wire.LINKS}
    preset = {name: value for name, value in preset.items() if (name, value) not in NOT_IN_TF2} or {"deterministic": 1}
    played: list[Played2] = []
    values: dict[str, Any] = {}
    level, engine = rng.choice([0, 0, 0, 1, 2]), rng.random() < 0.3
    for number in range(rng.choice([1, 1, 2])):
        if not number or rng.random() < 0.4:
            entries = draw_entries(preset, rng, rng.choice([1.0, 0.8]))
            values = {name: value for name, (field, value) in entries.items() if name in known and field == known[name].field}
        played.append(play2(Plan2(snapshot, 4242 + 100 * number, values, level, engine and snapshot == "g")))
    start = _choose_start(snapshot, rng)
    processes = [files.Process(each.pid, "python3.7", each.lines, start) for each in played]
    title, written = _write(folder, snapshot, processes, rng, hosts=False)
    kept = {each.pid: (each, whole) for each, whole in zip(played, written.whole, strict=True)}

    def find(pid: int, name: str, value: Any) -> truth.Truth:
        return truth.find_truth2(kept[pid][0], name, value, kept[pid][1])

    told = f"TF 2 {wire.SNAPSHOTS[snapshot]} level {level}{' GE' if engine else ''} {title}"
    return Case(seed, told, preset, written.paths, find, tuple(kept), written.list_seen(kept), True)
