"""Lines of arguments for vLLM, right and wrong ones, and what npuprof says to them."""

from __future__ import annotations

import json
import random
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import npuprof
from npuprof.document.keys import format_toml_value
from npuprof.model import Context
from npuprof.scripts.lint import check_script
from npuprof.scripts.reading.file_kinds import import_script
from support.vllm_files import REPOSITORY, load_record

#: Lines with what vLLM says to them; ``python -m support.vllm_lines`` in ``tests`` renews it.
TABLE = REPOSITORY / "tests/support/tables/vllm_lines.json"
#: How many lines of a release the table has, by verdict.
SHARES = {"accepted": 220, "parser": 120, "class": 80}

#: Texts that are right for some kinds and wrong for others.
TEXTS = (
    "", "0", "1", "8", "-1", "-7", "92", "0.5", "1.5", "-0.5", "1e3", "1e400", "nan", "inf",
    "1_000",
    " 4 ", "+4", "007", "32k", "32K", "1.5k", "1.5K", "2q", "auto", "None", "null", "word", "true",
    "True", "false", "off", "a,b", "a=b", "{}", "[]", "[1]", '"x"', '{"a": 1}', '{"a": {"b": [1]}}',
    "{bad", "99999999999999999999", "日本",
)  # fmt: skip
#: Values of JSON fields.
VALUES = (
    None, True, False, 0, 1, 3, -1, 92, 0.5, 1.0, -0.5, 1e30, "", "0", "1", "8", "1.5", "1.0",
    "32k",
    "word", "auto", "None", "true", "off", [], [1], ["a"], ["1"], [1.5], [None], [[1]], {},
    {"a": 1},
)  # fmt: skip
#: Arguments that name a file or hold a secret, whose value is no setting.
_SKIPPED = ("config", "api-key", "hf-token", "ssl-keyfile-password")


def _change_case(word: str) -> str:
    return word.lower() if word != word.lower() else word.upper()


def _list_fields(
    classes: dict[str, Any], name: str, depth: int = 2
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    for field, row in classes.get(name, {}).items():
        yield (field,), row
        if "class" in row and depth > 1:
            for path, inner in _list_fields(classes, row["class"], depth - 1):
                yield (field, *path), inner


def _list_argument_lines(
    name: str, row: dict[str, Any], pick: random.Random
) -> Iterator[list[str]]:
    flag = f"--{name}"
    choices = [str(choice) for choice in row.get("choices", [])]
    bounds = [row[each] for each in ("ge", "gt", "le", "lt") if each in row]
    edges = [str(bound + step) for bound in bounds for step in (-1, 0, 1, 0.25)]
    close = [*pick.sample(choices, min(3, len(choices))), *map(_change_case, choices[:2]), *edges]
    texts = [*close, *pick.sample(TEXTS, 14)]
    if row["kind"] == "bool":
        yield [flag]
        yield from ([each] for each in row["flags"])
        yield [f"--no-{name}"]
        yield [flag, pick.choice(("true", "0", "word"))]
        yield [f"{flag}={pick.choice(('true', 'False', '1', ''))}"]
        return
    for text in texts:
        yield [f"{flag}={text}"] if text.startswith("-") or pick.random() < 0.3 else [flag, text]
    first = texts[0]
    yield [flag]
    yield [flag, first, pick.choice(TEXTS[1:])]
    yield [flag, first, flag, first]
    yield [f"--no-{name}"]
    yield [f"{flag}s", first]
    yield [flag[:-1], first]
    yield [flag[: len(flag) * 2 // 3], first]
    yield [flag.replace("-", "_").replace("__", "--", 1), first]
    yield [f"{flag}.a", first]
    for short in row["flags"][1:]:
        yield [short, pick.choice(texts)]


def _list_field_lines(
    name: str, path: tuple[str, ...], row: dict[str, Any], pick: random.Random
) -> Iterator[list[str]]:
    flag, dotted = f"--{name}", ".".join(path)
    choices = row.get("choices", [])
    bounds = [row[each] for each in ("ge", "gt", "le", "lt") if each in row]
    close: list[Any] = [bound + step for bound in bounds for step in (-1, 0, 1, 0.25)]
    close += [*pick.sample(choices, min(2, len(choices)))]
    close += [_change_case(str(choice)) for choice in choices[:2]]
    for value in [*close, *pick.sample(VALUES, 8)]:
        table = value
        for part in reversed(path):
            table = {part: table}
        yield [flag, json.dumps(table)]
    for value in pick.sample(TEXTS[1:], 3):
        yield [f"{flag}.{dotted}={value}"]
    table = 1
    for part in reversed((*path[:-1], f"{path[-1]}x")):
        table = {part: table}
    yield [flag, json.dumps(table)]


def list_lines(record: dict[str, Any], seed: int) -> list[list[str]]:
    """Return lines for all arguments of a release and all fields of their JSON."""
    pick = random.Random(seed)
    lines = []
    for name, row in record["arguments"].items():
        if name in _SKIPPED:
            continue
        lines += _list_argument_lines(name, row, pick)
        for path, inner in _list_fields(record["classes"], row.get("class", "")):
            lines += _list_field_lines(name, path, inner, pick)
    return [json.loads(each) for each in dict.fromkeys(map(json.dumps, lines))]


def write_line(words: list[str]) -> str:
    """Return a line as it is in a script."""
    return f"vllm serve m {shlex.join(words)}\n"


def find_script_errors(words: list[str], release: str) -> list[str]:
    """Return the errors about a line in a script that runs on a release."""
    imported = import_script("serve.sh", write_line(words).encode())
    context = Context(versions=(("vllm", release),))
    return [
        f"{each.code} {each.message}"
        for each in check_script(imported, context)
        if each.severity == "error"
    ]


def list_presets(words: list[str], record: dict[str, Any]) -> list[str]:
    """Return presets that mean the same as a line with one argument in full; maybe none."""
    flag, equals, text = words[0].partition("=")
    if not equals and len(words) == 2:
        text = words[1]
    elif not (equals and len(words) == 1):
        return []
    name, _, inner = flag.removeprefix("--").partition(".")
    row = record["arguments"].get(name)
    if (
        row is None
        or inner
        or row["kind"] == "bool"
        or name == "additional-config"  # has a section of its own
        or not flag.startswith("--")
    ):
        return []
    values: list[Any] = [text]
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,9})(\.[0-9]+)?", text):
        values.append(json.loads(text))
    if text.startswith("{"):
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = None
        if isinstance(parsed, dict) and "null" not in text:
            values.append(parsed)
    return [f"[vllm]\n{name} = {format_toml_value(value)}\n" for value in values]


def find_preset_errors(preset: str, release: str) -> list[str]:
    """Return the errors about a preset at a release."""
    found = npuprof.check(npuprof.loads(preset, versions={"vllm": release}))
    return [f"{each.code} {each.message}" for each in found if each.severity == "error"]


def judge_lines(python: str, folder: str, lines: list[list[str]]) -> list[str]:
    """Return what the package in a folder says to lines, by a Python that builds its parser."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(lines, file)
        file.flush()
        done = subprocess.run(
            [python, REPOSITORY / ".ci/vllm_judge.py", folder, file.name],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    verdicts: list[str] = json.loads(done.stdout)
    return verdicts


def record_table(release: str, python: str, folder: str) -> None:
    """Write lines of a release with their verdicts to the table."""
    lines = list_lines(load_record(release), 72)
    random.Random(72).shuffle(lines)
    found: dict[str, list[list[str]]] = {verdict: [] for verdict in SHARES}
    chosen = lines[:3000]
    for words, verdict in zip(chosen, judge_lines(python, folder, chosen), strict=True):
        if len(found.get(verdict, ())) < SHARES.get(verdict, 0):
            found[verdict].append(words)
    table = json.loads(TABLE.read_text("utf-8")) if TABLE.is_file() else {}
    table[release] = found
    rows = (
        f' "{name}": {{\n'
        + ",\n".join(
            f'  "{verdict}": [\n'
            + ",\n".join(f"   {json.dumps(words, ensure_ascii=False)}" for words in each)
            + "\n  ]"
            for verdict, each in of_release.items()
        )
        + "\n }"
        for name, of_release in sorted(table.items())
    )
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":  # RELEASE PYTHON FOLDER, as for ``.ci/vllm_judge.py``
    record_table(*sys.argv[1:])
