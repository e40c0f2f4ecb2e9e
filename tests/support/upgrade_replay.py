"""Recipes of public trees, and what releases of vLLM-Ascend and vLLM make of them.

``NPUPROF_VLLM_SOURCES`` names a folder with what .ci/upgrade_judge.py runs: ``vllm-ascend.git``,
or ``vllm-ascend/RELEASE`` for releases without a tag, and ``vllm/RELEASE``, unpacked source
packages; ``NPUPROF_VLLM_PYTHON`` a Python that has the packages of .ci/vllm_parser.py.
``python -m support.upgrade_replay`` in ``tests`` writes what is recorded anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import npuprof
from npuprof.catalog.releases import find_releases_in_range, load_axis
from npuprof.renderers.environment import collect_env_variables
from support.building import REPOSITORY, build_store, toml

RECORDS = REPOSITORY / "tests/catalog/upgrade"
#: Settings of recipes: facts, with the repository, the path and the commit that they are of.
#: Addresses, ports, paths, names and devices of a machine are left out. ``model`` is the kind of
#: model in .ci/upgrade_judge.py.
RECIPES = RECORDS / "recipes.jsonl"
#: For each release what is in effect without settings, then what differs with those of a line.
EFFECTIVE = RECORDS / "effective.jsonl"
STEPS = (
    ("0.13.0", "0.18.0"),
    ("0.18.0", "0.23.0"),
    ("0.23.0", "0.26.0rc1"),
    ("0.26.0rc1", "0.30.0rc2"),
)
RELEASES = tuple(dict.fromkeys(release for step in STEPS for release in step))
#: Shipped presets that serve, and what the judge stands a model in for them with.
SHIPPED = ("vllm-", "serving/")
KINDS = {"v3.2": "sparse", "v4": "sparse", "glm-5": "sparse", "deepseek": "mla", "kimi": "mla"}
#: Defaults that nothing reads on an NPU, with where that is to be seen.
WITHOUT_EFFECT = {
    "env.VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE": "vllm/config/vllm.py: for models "
    "with chunked local attention, which no recipe serves",
    "env.VLLM_ALLREDUCE_USE_FLASHINFER": "cuda_communicator.py alone reads it",
    "env.VLLM_DBO_COMM_SMS": "vllm/v1/worker/gpu_ubatch_wrapper.py alone reads it",
    "env.VLLM_ENABLE_PREGRAD_PASSES": "vllm/compilation/compiler_interface.py: for Inductor",
    "env.VLLM_FLASHINFER_ALLREDUCE_BACKEND": "flashinfer_all_reduce.py alone reads it",
    "env.VLLM_FLOAT32_MATMUL_PRECISION": "vllm/v1/worker/gpu_worker.py alone reads it",
    "env.VLLM_MAIN_CUDA_VERSION": "vllm's build reads it",
    "env.VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "vllm/v1/worker/gpu_worker.py alone reads it",
    "env.VLLM_MOE_SKIP_PADDING": "routers of vLLM's own experts, which vLLM-Ascend replaces",
    "env.VLLM_USE_FLASHINFER_SAMPLER": "topk_topp_sampler.py: for CUDA",
    "env.VLLM_USE_MEGA_AOT_ARTIFACT": "its default depends on PyTorch, which is a stand-in",
    "env.VLLM_USE_V2_MODEL_RUNNER": "patch_use_v2_model_runner.py: none is off",
    "vllm.all2all_backend": "vllm/config/parallel.py: none was the same; platform.py sets it",
    "vllm.attention_config.disable_flashinfer_prefill": "vllm_ascend/platform.py: off always",
    "vllm.attention_config.indexer_kv_dtype": "ascend_config.py: neither is a quantized one",
    "vllm.disable_cascade_attn": "vllm_ascend/platform.py: off always",
    "vllm.disable_nccl_for_dp_synchronization": "dp_utils.py of the runner for GPUs reads it",
    "vllm.kv_transfer_config.kv_buffer_device": "it is the platform's, which is a stand-in",
}
#: Tables and arguments that do nothing while a switch is off, with the switch.
SWITCHES = {
    "ascend.c8_enable_reshape_optim": "ascend.enable_sparse_li_c8",
    "ascend.eplb_config.": "ascend.eplb_config.dynamic_eplb",
    "vllm.cp_kv_cache_interleave_size": "vllm.decode_context_parallel_size",
    "vllm.dcp_comm_backend": "vllm.decode_context_parallel_size",
    "vllm.eplb_config.": "vllm.enable_eplb",
    "vllm.kv_offloading_backend": "vllm.kv_offloading_size",
    "vllm.profiler_config.": "vllm.profiler_config.profiler",
}
SECTIONS = ("env", "vllm_ascend", "vllm")
#: What the judge gives itself.
LEFT_OUT = ("model",)

#: Read at once: tests run without the variables of the person who runs them.
_SOURCES = os.environ.get("NPUPROF_VLLM_SOURCES", "")
_PYTHON = os.environ.get("NPUPROF_VLLM_PYTHON", sys.executable)

MISSING = object()
Settings = dict[str, Any]
Preset = dict[str, dict[str, Any]]


def load_recipes() -> list[dict[str, Any]]:
    """Return the recipes."""
    return [json.loads(line) for line in RECIPES.read_text("utf-8").splitlines()]


def list_words(arguments: dict[str, Any]) -> Iterator[str]:
    """Yield the words of the command line that a table of vLLM's arguments stands for."""
    for name, value in arguments.items():
        if value is True or value is False:
            yield f"--{name}" if value else f"--no-{name}"
            continue
        yield f"--{name}"
        if isinstance(value, dict):
            yield json.dumps(value)
        else:
            yield from map(str, value if isinstance(value, list) else [value])


def make_settings(preset: Preset, model: str) -> Settings:
    """Return a preset as the judge takes it."""
    return {
        "model": model,
        "additional_config": preset.get("vllm_ascend", {}),
        "env": {name: str(value) for name, value in preset.get("env", {}).items()},
        "vllm": list(list_words(preset.get("vllm", {}))),
    }


def find_key(settings: Settings) -> str:
    """Return what settings are recorded by."""
    text = json.dumps(settings, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def can_judge() -> bool:
    """Return whether the sources that the judge runs are at hand."""
    return bool(_SOURCES)


def judge(settings: Iterable[Settings], release: str) -> list[dict[str, Any]]:
    """Return what a release says to settings: its own readers run."""
    folder = Path(_SOURCES)
    package = folder / "vllm-ascend" / release
    sources = [package] if package.is_dir() else [folder / "vllm-ascend.git", f"v{release}"]
    vllm = load_axis("vllm_ascend").runs_on[release]["vllm"]
    done = subprocess.run(
        [
            _PYTHON,
            REPOSITORY / ".ci/upgrade_judge.py",
            *sources,
            "--vllm",
            folder / "vllm" / vllm,
        ],
        input="".join(f"{json.dumps(each)}\n" for each in settings),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def write_records(lines: Iterable[tuple[str, str, Settings]]) -> None:
    """Judge settings, given with a name and a release, and write what is recorded."""
    wanted = list(lines)
    rows: list[dict[str, Any]] = []
    for release in RELEASES:
        here = list(
            {
                find_key(settings): (name, settings)
                for name, at, settings in reversed(wanted)
                if at == release
            }.values()
        )[::-1]
        empty = make_settings({}, "gqa")
        base, *answers = judge([empty, *(settings for _, settings in here)], release)
        rows.append({"release": release, "links": base["links"], "base": base["effective"]})
        for (name, settings), answer in zip(here, answers, strict=True):
            row = {"release": release, "name": name, "key": find_key(settings)}
            if "stops" in answer:
                row |= answer
            else:
                found, usual = answer["effective"], base["effective"]
                row["differs"] = {
                    key: value
                    for key, value in found.items()
                    if key not in usual or usual[key] != value
                }
                row |= {"gone": gone} if (gone := sorted(usual.keys() - found.keys())) else {}
            rows.append(row)
    RECORDS.mkdir(exist_ok=True)
    texts = dict.fromkeys(json.dumps(row, ensure_ascii=False) for row in rows)
    EFFECTIVE.write_text("".join(f"{text}\n" for text in texts), "utf-8")


@cache
def _load_records() -> tuple[dict[str, Any], dict[tuple[str, str], Any]]:
    rows = [json.loads(line) for line in EFFECTIVE.read_text("utf-8").splitlines()]
    bases = {row["release"]: row for row in rows if "base" in row}
    return bases, {(row["release"], row["key"]): row for row in rows if "key" in row}


def load_base(release: str) -> dict[str, Any]:
    """Return what is in effect at a release without settings."""
    base: dict[str, Any] = _load_records()[0][release]["base"]
    return base


def load_links(release: str) -> dict[str, str]:
    """Return the attributes that the values of variables go to at a release."""
    links: dict[str, str] = _load_records()[0][release]["links"]
    return links


def recall(settings: Settings, release: str) -> dict[str, Any] | None:
    """Return what the judge said of settings, as ``judge`` does; None without a record."""
    row = _load_records()[1].get((release, find_key(settings)))
    if row is None or "stops" in row:
        return row
    gone = row.get("gone", ())
    kept = {key: value for key, value in load_base(release).items() if key not in gone}
    return {"effective": kept | row["differs"], "links": load_links(release)}


class Difference(NamedTuple):
    """A name with other values in effect at two releases; ``None`` where nothing has it."""

    name: str
    old: Any
    new_name: str | None
    new: Any
    #: Whether the settings give the old value: otherwise it is a default.
    given: bool


def _find_successors(name: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return what a name is at a later release: an attribute may be in another table."""
    effective = new["effective"]
    if name in new["links"]:  # a variable whose value goes on to an attribute
        return [new["links"][name]]
    if name in effective:
        return [name]
    section, _, rest = name.partition(".")
    if section == "read":
        return [each for each in (rest, f"ascend.{rest.partition('.')[2]}") if each in effective]
    if section != "ascend":
        return []
    # the key, or a variable that it had its value from, may be read without an attribute
    sources = [f"vllm_ascend.{rest}", *(each for each, to in old["links"].items() if to == name)]
    if read := [f"read.{each}" for each in sources if f"read.{each}" in effective]:
        return read
    last = name.rpartition(".")[2]
    same = [each for each in effective if each.startswith("ascend.") and each.endswith(f".{last}")]
    return same if len(same) == 1 else []


def is_off(name: str, effective: dict[str, Any]) -> bool:
    """Return whether a name is of a table whose switch is off; a size of one is off too."""
    for table, switch in SWITCHES.items():
        if name.startswith(table) and name != switch:
            value = effective.get(switch)
            return not value or (type(value) is int and value == 1)
    return False


def _interpret(name: str, value: Any, effective: dict[str, Any]) -> Any:
    """Return what a value stands for."""
    if name == "vllm.api_server_count" and value is None:  # vllm/entrypoints/cli/serve.py
        return effective["vllm.data_parallel_size"]
    return value


def _is_same(value: Any, later: Any) -> bool:
    """Return whether two values are the same; a text where a switch is wanted is on."""
    if isinstance(later, bool) and isinstance(value, str):
        return bool(value) == later
    return bool(value == later)


def compare_effects(
    old: dict[str, Any], new: dict[str, Any], releases: tuple[str, str]
) -> list[Difference]:
    """Return what is in effect before and not after, both as ``judge`` gives them.

    A default of what only the later release has is no change, nor is the end of something that
    was at its default. Variables count by the attributes that a release passes their values to.
    """
    usual, later_usual = map(load_base, releases)
    found, seen = [], set(new["links"])
    for name, value in old["effective"].items():
        if name in old["links"]:
            continue
        given = usual.get(name) != value
        successors = _find_successors(name, old, new)
        seen.update(successors)
        found += [
            Difference(name, value, successor, later, given)
            for successor in successors
            if not _is_same(
                _interpret(name, value, old["effective"]),
                later := _interpret(successor, new["effective"][successor], new["effective"]),
            )
            # of what only other files read, the value is not known
            and not (name.startswith("read.") or successor.startswith("read."))
        ]
        if (
            not successors
            and given
            and not any(part.startswith(f"{name}.") for part in new["effective"])
        ):
            found.append(Difference(name, value, None, None, given))
    found = [
        each
        for each in found
        if each.name not in WITHOUT_EFFECT
        if not (is_off(each.name, old["effective"]) and is_off(each.name, new["effective"]))
    ]
    for name, value in new["effective"].items():
        if name not in seen and (name not in later_usual or later_usual[name] != value):
            found.append(Difference(name, None, name, value, given=False))
    return found


class Replayed(NamedTuple):
    """A recipe that was migrated to the later release of a step."""

    settings: Settings
    migrated: Settings
    reports: list[dict[str, Any]]
    steps: list[dict[str, Any]]

    def list_lost(self) -> list[str]:
        """Return the settings that are changed or gone without a step or report about them."""
        lost = []
        for name, value in list_leaves(self.settings).items():
            if list_leaves(self.migrated).get(name, MISSING) != value:
                moved = any(_has(str(row["option"]), {name}) for row in self.steps)
                named = self.names(Difference(name, value, None, None, given=True))
                lost += [] if moved or named else [name]
        return lost

    def names(self, difference: Difference) -> bool:
        """Return whether a report, or a step that takes something out, is about a difference.

        A step that moves a setting has to keep what is in effect: it excuses nothing. Nor does an
        error in a value or between values, which is there without migrating too.
        """
        names = {_format_key(name) for name in (difference.name, difference.new_name) if name}
        for row in self.reports:
            if row["severity"] == "error" and not row["code"].startswith(("NP4", "NP5")):
                continue
            text = " ".join(str(row.get(field) or "") for field in ("key", "message"))
            if names & set(re.findall(r"[\w.-]*\w", text)):
                return True
        return any(_has(str(row["option"]), names) for row in self.steps if not row.get("to"))


def _has(key: str, names: set[str]) -> bool:
    """Return whether a key is one of some names, or a table that has one of them."""
    return any(name == key or name.startswith(f"{key}.") for name in names)


def list_leaves(settings: Settings) -> dict[str, Any]:
    """Return variables, keys and arguments by the names that presets have for them."""
    found = {f"env.{name}": value for name, value in settings["env"].items()}

    def add(prefix: str, table: dict[str, Any]) -> None:
        for key, value in table.items():
            if isinstance(value, dict) and value:
                add(f"{prefix}.{key}", value)
            else:
                found[f"{prefix}.{key}"] = value

    add("vllm_ascend", settings["additional_config"])
    name = ""
    for word in settings["vllm"]:
        if word.startswith("--"):
            name = f"vllm.{word.removeprefix('--').removeprefix('no-')}"
            found[name] = [word]
        else:
            found[name] = [*found[name], word]
    return found


def _format_key(name: str) -> str:
    """Return the key of a preset for a name of what is in effect."""
    name = name.removeprefix("read.")
    section, _, rest = name.partition(".")
    if section != "vllm" or "-" in rest:
        return name.replace("ascend.", "vllm_ascend.", 1) if section == "ascend" else name
    argument, dot, field = rest.partition(".")
    return f"vllm.{argument.replace('_', '-')}{dot}{field}"


def migrate(
    folder: Path, recipes: list[dict[str, Any]], step: tuple[str, str]
) -> dict[str, Replayed]:
    """Return recipes migrated over a step by the command, by name."""
    old, new = step
    texts = {
        recipe["name"]: toml({"profile": {"description": "d"}, **recipe["preset"]})
        for recipe in recipes
    }
    store = build_store(folder / "profiles", texts)
    words = ["migrate", "--all", "--framework", f"vllm_ascend={new}", "--from", old]
    done = subprocess.run(
        [sys.executable, "-m", "npuprof", *words, "--no-check", "--format", "json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    said = {row["preset"]: row for row in json.loads(done.stdout)["presets"]}
    found = {}
    for recipe in recipes:
        name = recipe["name"]
        data = tomllib.loads((store / f"{name}.toml").read_text("utf-8"))
        row = said.get(name, {})
        found[name] = Replayed(
            make_settings(recipe["preset"], recipe["model"]),
            make_settings({key: data.get(key, {}) for key in SECTIONS}, recipe["model"]),
            row.get("findings", []),
            row.get("steps", []),
        )
    return found


def find_within(spec: str) -> tuple[str, ...]:
    """Return the releases of vLLM-Ascend in a range."""
    return tuple(find_releases_in_range(spec, "vllm_ascend") or ())


def list_shipped(release: str) -> list[dict[str, Any]]:
    """Return the shipped presets that serve with a release, resolved, in the form of recipes."""
    store = npuprof.open_store(REPOSITORY / "profiles")
    recipes = []
    for name in store.names():
        if not name.startswith(SHIPPED):
            continue
        config = store.resolve(name)
        spec = config.versions.get("vllm_ascend", "")
        if config.abstract or (spec and release not in find_within(spec)):
            continue
        config = store.resolve(name, versions={"vllm_ascend": release})
        variables, _ = collect_env_variables(config, None, "", with_options=False)
        own = {key: value for key, value in variables.items() if not key.startswith("NPUPROF_")}
        preset: Preset = {"env": own}
        for key, value in config.items():
            section, _, rest = key.partition(".")
            if section in ("vllm", "vllm_ascend") and rest not in LEFT_OUT:
                preset.setdefault(section, {})[rest] = json.loads(json.dumps(value))
        kind = next((kind for part, kind in KINDS.items() if part in name), "gqa")
        recipes.append({"name": name, "model": kind, "preset": preset})
    return recipes


def main() -> None:
    """Write the records of all recipes at all releases, as they are and as they are migrated."""
    lines = [
        (recipe["name"], release, make_settings(recipe["preset"], recipe["model"]))
        for release in RELEASES
        for recipe in load_recipes()
    ]
    for step in STEPS:
        recipes = [*load_recipes(), *list_shipped(step[0])]
        with tempfile.TemporaryDirectory() as folder:
            replayed = migrate(Path(folder), recipes, step)
        for name, each in replayed.items():
            lines += [(name, step[0], each.settings), (name, step[1], each.migrated)]
    write_records(lines)


if __name__ == "__main__":
    main()
