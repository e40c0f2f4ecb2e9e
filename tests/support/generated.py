"""Parts of documentation pages that are generated: checks, catalogue, library, speed.

A page holds the words around it and parts between ``<!-- generated: NAME -->`` and
``<!-- end -->``; ``PARTS`` says what writes them.
``python -m pytest tests/docs/test_docs.py --update-golden`` writes the pages anew.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import npuprof
from npuprof import catalog
from npuprof.catalog import products, releases
from npuprof.catalog.code_pages import Page, load_pages
from npuprof.catalog.launchers import FACTS
from npuprof.commands.framework import Parameter, list_verbs
from npuprof.document import keys
from npuprof.model import Record
from npuprof.site.catalogue import CatalogueRow, list_catalogue_rows
from npuprof.store import teamrules
from npuprof.store.project import KEYS, OUTPUT_KEYS, SOURCE_KEYS, TEAM_KINDS, list_variable_keys
from npuprof.store.teamrules import ProjectKey
from support.building import REPOSITORY

#: The families of codes by how they begin.
FAMILIES = {
    "NP0": "Files, names, revisions and sources",
    "NP1": "Inheritance",
    "NP2": "Settings, one at a time",
    "NP4": "Releases, products, scenarios",
    "NP5": "Age and effect",
    "NP6": "What does not belong in a shared preset",
    "NP7": "Dead lines, and findings that are accepted",
    "NP8": "Scripts, and blocks in them",
    "NP9": "Targets and commands",
}
#: How the codes of rules between settings begin.
_RULES = "NP3"
#: The programs that rules are about, by the section of a preset; the first match counts.
PROGRAMS = {
    "vllm": "vLLM and vLLM-Ascend",
    "vllm_ascend": "vLLM and vLLM-Ascend",
    "megatron": "Megatron-LM and MindSpeed",
    "verl": "verl",
    "mindie": "MindIE",
    "torch_npu": "torch_npu",
    "atc": "ATC",
}
_OTHERS = ("Environment variables", "Session options")
#: The surfaces that have a name of their own for an option.
SURFACES = {"run_config": "NPURunConfig", "global_options": "global_options", "atc": "ATC"}
#: A flag of so many verbs is explained once.
_SHARED_BY = 6
MEASURED = REPOSITORY / "tests" / "bench" / "measured.json"


def format_checks() -> str:
    """Return all codes but rules by family: how severe each is, what it is about, and why."""
    rows = load_pages().values()
    assert {row.code[:3] for row in rows} == {*FAMILIES, _RULES}
    groups: dict[str, list[str]] = {title: [] for title in FAMILIES.values()}
    for row in rows:
        if row.code[:3] != _RULES:
            groups[FAMILIES[row.code[:3]]].append(_format_code(row))
    return _format_groups(groups.items())


def format_rules() -> str:
    """Return the rules between settings, by the program that their example is for."""
    groups: dict[str, list[str]] = {title: [] for title in [*PROGRAMS.values(), *_OTHERS]}
    for row in load_pages().values():
        if row.code[:3] == _RULES:
            sections = {section for text in row.bad.values() for section in tomllib.loads(text)}
            own = [title for section, title in PROGRAMS.items() if section in sections]
            others = _OTHERS[0] if sections - {"profile"} == {"env"} else _OTHERS[1]
            groups[own[0] if own else others].append(_format_code(row))
    return _format_groups(groups.items())


def _format_code(row: Page) -> str:
    return f"- **{row.code}** ({row.severity}): {_escape(row.title)}. {_escape(row.why)}"


def format_options() -> str:
    """Return the session options by their page, with the arguments of NPURunConfig."""
    return _format_groups(
        [
            *_group_records("option", "page"),
            ("Arguments of NPURunConfig", _format_records("argument")),
        ]
    )


def format_variables() -> str:
    """Return the environment variables by what they are for."""
    return _format_groups(_group_records("variable", "scope"))


def format_flags() -> str:
    """Return the flags of ATC that no session option stands for, by what they are for."""
    return _format_groups(_group_records("flag", "role"))


def format_settings() -> str:
    """Return the settings of frameworks by their section."""
    groups: dict[str, list[str]] = {}
    for row in list_catalogue_rows():
        if row.kind == "setting":
            section = row.key.partition(".")[0]
            if catalog.load_sections()[section].is_exact:
                continue  # thousands of names without a text of their own
            groups.setdefault(f"`[{section}]`", []).append(_format_record(row))
    return _format_groups(groups.items())


def format_products() -> str:
    lines = ["| family | products | lines | chips |", "|---|---|---|---|"]
    for name, record in products.load_products().items():
        own = ", ".join(f"`{line}`" for line in record.get("lines", ()))
        chips = ", ".join(f"`{_CHIP_PATTERN.sub('…', chip)}`" for chip in record["chips"])
        lines.append(f"| `{name}` | {record['title']} | {own} | {chips} |")
    return "\n\n{}\n\n".format("\n".join(lines))


#: What stands for any end of the name of a chip.
_CHIP_PATTERN = re.compile(r"(?:\[0-9\][+*](?:\.\*)?|\.\*)$")


def _group_records(kind: str, by: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the records of a kind by a field of theirs, as it first occurs."""
    rows = [
        (_find_field(row, by), _format_record(row))
        for row in list_catalogue_rows()
        if row.kind == kind
    ]
    first = list(dict.fromkeys(field for field, _ in rows))
    for field, group in groupby(
        sorted(rows, key=lambda row: first.index(row[0])), key=lambda row: row[0]
    ):
        yield _write_title(field), [line for _, line in group]


def _find_field(row: CatalogueRow, field: str) -> str:
    place = keys.split_section_and_name(row.key)
    return str(
        getattr(catalog.find_record(*place), field, "")
        or catalog.find_record_texts(*place).get(field, "")
    )


def _write_title(field: str) -> str:
    return {"aoe": "AOE", "io": "Inputs and outputs", "required-if": "Required for some"}.get(
        field, field.replace("-", " ").capitalize()
    )


def _format_records(kind: str) -> list[str]:
    return [_format_record(row) for row in list_catalogue_rows() if row.kind == kind]


def _format_record(row: CatalogueRow) -> str:
    """Return a record as a line: purpose, values, scope, and what a change may alter."""
    name = row.key.partition(".")[2] if row.kind != "option" else row.key
    facts = [
        f"`{row.value}`{f' in {row.unit}' if row.unit else ''}" if row.value else "",
        f"default `{row.default}`" if row.default else "",
        f"{row.state}{f', use `{row.replacement}`' if row.replacement else ''}"
        if row.state
        else "",
        _describe_readers(row),
        f"only {', '.join(row.products)}" if row.products else "",
        *(
            f"{SURFACES[surface]} `{spelling}`"
            for surface, spelling in row.spelling
            if surface in SURFACES and spelling != name
        ),
        f"at risk: {', '.join(row.risk)}" if row.risk else "",
    ]
    return (
        f"- `{'--' if row.kind == 'flag' else ''}{name}`: {_escape(row.summary)} "
        f"_{'; '.join(filter(None, facts))}_"
    )


def _describe_readers(row: CatalogueRow) -> str:
    """Return the releases that read a record, empty if all known ones do."""
    section, name = keys.split_section_and_name(row.key)
    record = catalog.find_record(section, name)
    if not row.readers or record is None:
        return ""
    axis = releases.find_axis(section, record)
    title = catalog.load_built_part("titles")[axis]
    if row.readers == "none":
        return f"read by no release of {title}"
    # the heading of a setting names the framework
    return row.readers if row.kind == "setting" else f"{title} {row.readers}"


def format_reference() -> str:
    """Return the reference of ``import npuprof`` from its signatures and docstrings."""
    functions = [name for name in npuprof.__all__ if inspect.isfunction(getattr(npuprof, name))]
    examples = _make_examples()
    assert {*functions, *examples, "TARGETS"} == set(npuprof.__all__)
    parts = [
        *(_format_function(name, getattr(npuprof, name)) for name in functions),
        *(_format_class(example) for example in examples.values()),
    ]
    return "\n\n" + "\n\n".join(parts) + "\n\n"


def _make_examples() -> dict[str, Any]:
    """Return one of each class that users meet: what ``dir`` says of it is what they are shown."""
    config = npuprof.loads("options.hccl_timeot = 600")
    other = npuprof.loads("options.hccl_timeout = 600")
    (finding, *_) = npuprof.check(config)
    (change, *_) = npuprof.diff(config, other)
    made = [
        npuprof.open_store("builtin:"),
        config,
        config.origins("hccl_timeot")[0],
        finding,
        change,
        npuprof.NpuprofError([finding]),
    ]
    return {type(example).__name__: example for example in made}


def _format_function(name: str, function: Callable[..., Any], level: str = "###") -> str:
    markdown = f"{level} `{name}`\n\n```text\n{name}{_format_signature(function, 100)}\n```\n\n"
    return markdown + _format_docstring(inspect.getdoc(function) or "")


def _format_class(example: Any) -> str:
    kind = type(example)
    parts = [f"### `{kind.__name__}`", _format_docstring(inspect.getdoc(kind) or "")]
    for name in dir(example):
        member = vars(kind).get(name)
        if (
            name.startswith("_")
            or not inspect.getdoc(member)
            or not (isinstance(member, property) or inspect.isfunction(member))
        ):
            continue
        plain = inspect.unwrap(member) if inspect.isfunction(member) else None
        shown = f"`{name}{_format_signature(plain)}`" if plain else f"`{name}`"
        first, _, rest = _format_docstring(inspect.getdoc(member) or "").partition("\n\n")
        parts.append(
            f"- {shown}: {first}"
            + "".join(f"\n\n  {line}" for line in [rest.replace("\n", "\n  ")] if rest)
        )
    fields = (
        [f"`{name}`" for name in kind.__annotations__ if not name.startswith("_")]
        if issubclass(kind, Record)
        else []
    )
    head = [*parts[:2], f"Fields: {', '.join(fields)}."] if fields else parts[:2]
    return "\n\n".join(head) + ("\n\n" + "\n".join(parts[2:]) if parts[2:] else "")


def _format_signature(function: Callable[..., Any], width: int = 1000) -> str:
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self"
    ]
    whole = inspect.Signature(
        parameters, return_annotation=inspect.signature(function).return_annotation
    )
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(whole))
    if len(signature) <= width:
        return signature
    inside, _, rest = signature[1:].rpartition(")")
    return "(\n    " + re.sub(r", (?=\w+: |\*,)", ",\n    ", inside) + f",\n){rest}"


def _format_docstring(text: str) -> str:
    """Return a docstring as Markdown: names in single backticks, sessions as blocks of text."""
    prose, _, session = text.replace("``", "`").partition(">>> ")
    block = f"\n\n```text\n>>> {session.strip()}\n```" if session else ""
    return _escape(prose.strip()) + block


def format_speed() -> str:
    """Return the figures that benchmarks kept, a table for each.

    A row without a figure says why it was not measured.
    """
    parts = []
    for bench, kept in _load_figures().items():
        rows = [
            (
                title,
                f"{figure:.2f}" if figure is not None else missing,
                _judge_figure(figure, limit, more),
            )
            for title, figure, limit, more, missing in kept["rows"]
        ]
        head = f"`tests/bench/bench_{bench}.py`, {kept['day']}, {kept['machine']}:"
        table = [
            "| what | measured | limit |",
            "|---|--:|--:|",
            *(f"| {_escape(' | '.join(row))} |" for row in rows),
        ]
        parts.append("\n".join([head, "", *table]))
    return "\n\n" + "\n\n".join(parts) + "\n\n"


def _judge_figure(figure: float | None, limit: float | None, more: bool) -> str:
    if limit is None:
        return ""
    is_met = figure is None or (figure >= limit if more else figure <= limit)
    return f"{'at least' if more else 'at most'} {limit:g}{'' if is_met else ', not held'}"


def draw_speed() -> str:
    """Return an SVG plot of the costs of commands, in multiples of a bare interpreter."""
    kept = next(iter(_load_figures().values()))
    rows = {title: figure for title, figure, *_ in kept["rows"] if figure is not None}
    bars = [
        ("npuprof " + title.removesuffix(" / bare"), figure)
        for title, figure in rows.items()
        if title.endswith(" / bare")
    ]
    render = next(
        figure
        for title, figure in rows.items()
        if title.startswith("render ") and title.endswith(" / bare")
    )
    bars += [
        (title.removesuffix(" / render"), figure * render)
        for title, figure in rows.items()
        if title.endswith(" / render")
    ]
    most = max(figure for _, figure in bars)
    height = 22 * len(bars) + 30
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="800" height="{height}" '
            'font-family="sans-serif" font-size="12" role="img">'
        ),
        "<title>What commands cost, in multiples of a bare Python</title>",
        f"<desc>{'; '.join(f'{title}: {figure:.1f}' for title, figure in bars)}</desc>",
        f'<rect width="800" height="{height}" fill="#fff"/>',
    ]
    for place, (title, figure) in enumerate(bars):
        y, width = 20 + 22 * place, 440 * figure / most
        colour = "#1f77b4" if title.startswith("npuprof") else "#999"
        parts += [
            f'<text x="292" y="{y + 4}" text-anchor="end">{title}</text>',
            f'<rect x="300" y="{y - 8}" width="{width:.0f}" height="16" fill="{colour}"/>',
            f'<text x="{306 + width:.0f}" y="{y + 4}">{figure:.1f}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def format_usage() -> str:
    """Return what each verb takes; what many of them share is told once."""
    verbs = [(" ".join(names), verb) for names, verb in list_verbs() if not verb.hidden]
    counts = Counter(
        _format_parameter(parameter)
        for _, verb in verbs
        for parameter in verb.parameters.values()
        if parameter.flags
    )
    shared = [line for line, count in counts.items() if count >= _SHARED_BY]
    found = []
    for name, verb in verbs:
        described = [
            (parameter, _format_parameter(parameter)) for parameter in verb.parameters.values()
        ]
        also = [f"`{parameter.flags[0]}`" for parameter, line in described if line in shared]
        lines = [
            _escape(str(inspect.getdoc(verb))),
            "",
            *(line for _, line in described if line not in shared),
        ]
        found.append(
            (
                f"`npuprof {name}`",
                [*lines, *([f"- Common flags: {', '.join(also)}"] if also else [])],
            )
        )
    return _format_groups(
        [*found, ("What many verbs share", sorted(shared, key=lambda line: line.lstrip("- `")))]
    )


def _format_parameter(parameter: Parameter) -> str:
    flags = " ".join(filter(None, (", ".join(sorted(parameter.flags, key=len)), parameter.metavar)))
    default = (
        f" [default: {parameter.default}]" if parameter.kind != "flag" and parameter.default else ""
    )
    return f"- `{flags}`: {_escape(parameter.describe())}{default}"


def _load_figures() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


#: The launchers by how the names of their variables begin; the first match counts.
LAUNCHERS = {
    "Ascend": ("RANK_", "ASCEND_", "DEVICE_", "CM_", "HCCL_", "JOB_"),
    "torchrun": ("RANK", "LOCAL_", "WORLD_", "GROUP_"),
    "Open MPI, PMIx": ("OMPI_", "PMIX_"),
    "MPICH, Intel MPI": ("PMI_", "MPI_"),
    "Slurm": ("SLURM_",),
    "PBS": ("PBS_",),
    "Kubernetes": ("POD_", "XDL_"),
}


def format_launchers() -> str:
    """Return a table of the variables with each fact, a column for each launcher."""
    rows: dict[str, dict[str, list[str]]] = {name: {} for name in LAUNCHERS}
    for fact, variables in FACTS.items():
        for variable in variables:
            name = next(
                name for name, beginnings in LAUNCHERS.items() if variable.startswith(beginnings)
            )
            rows[name].setdefault(fact, []).append(f"`{variable}`")
    lines = [f"| launcher | {' | '.join(f'`{fact}`' for fact in FACTS)} |"]
    lines.append(f"|{'---|' * (len(FACTS) + 1)}")
    for name, found in rows.items():
        cells = (" ".join(found.get(fact, ())) for fact in FACTS)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(["", "", *lines, "", ""])


def format_project_keys() -> str:
    """Return a table of the keys of npuprof.toml and of its tables, with an example of each."""
    tables: dict[str, dict[str, ProjectKey]] = {
        "": KEYS,
        "[sources.NAME]": SOURCE_KEYS,
        "[variables.NAME]": {
            name: key for kind in TEAM_KINDS for name, key in list_variable_keys(kind).items()
        },
        "[[rule]]": teamrules.KEYS,
        "[[ignore]]": teamrules.IGNORE_KEYS,
        "[[output]]": OUTPUT_KEYS,
    }
    lines = ["", "", "| table | key | meaning | example |", "|---|---|---|---|"]
    for table, rows in tables.items():
        for name, key in rows.items():
            table_cell = f"`{table}`" if table else "top"
            lines.append(f"| {table_cell} | `{name}` | {key.doc} | `{key.example}` |")
    return "\n".join([*lines, "", ""])


def _format_groups(groups: Iterable[tuple[str, list[str]]]) -> str:
    return (
        "\n\n"
        + "\n\n".join(f"## {title}\n\n" + "\n".join(lines) for title, lines in groups)
        + "\n\n"
    )


def _escape(text: str) -> str:
    """Return prose in which nothing begins a tag; what stands apart begins none."""
    return re.sub(r"<(?=[A-Za-z/!?])", r"\<", text)


#: What makes the parts of the pages, by name.
PARTS: dict[str, Callable[[], str]] = {
    "checks": format_checks,
    "rules": format_rules,
    "options": format_options,
    "environment-variables": format_variables,
    "flags": format_flags,
    "settings": format_settings,
    "products": format_products,
    "launchers": format_launchers,
    "project-keys": format_project_keys,
    "reference": format_reference,
    "speed": format_speed,
    "usage": format_usage,
}
