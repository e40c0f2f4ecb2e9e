"""The Typer application of the verbs: help, completion, unusual command lines and usage errors."""

from __future__ import annotations

import inspect
import io
import operator
import os
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from itertools import starmap
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from npuprof.commands.framework import (
    Names,
    Parameter,
    Verb,
    list_families,
    list_groups,
    list_verb_names,
    list_verbs,
    load_verb,
    split_flag,
)
from npuprof.commands.framework.usage import explain_usage, suggest_flag, suggest_verb
from npuprof.model import Fields, NpuprofError, __version__, build_usage_error, shorten_values
from npuprof.report import output
from npuprof.report.text import escape_lines, format_count

#: What npuprof is, and its commands of a first day, as lines.
_HELP = """Manage configuration presets for Huawei Ascend NPUs.

\b
The first day:
  npuprof scan .            check the settings in scripts and launch files
  npuprof import SCRIPT     make presets of them
  npuprof check             check presets
"""
Runner = Callable[[type[Verb], Fields], int]

_ANNOTATED: Any = Annotated  # subscripted with runtime values, which type checkers reject
#: The types of kinds of parameters; all others are texts.
_TYPES: dict[str, Any] = {"arguments": list[str], "many": list[str], "number": int, "flag": bool}


class _Verbs(TyperGroup):
    """The verbs that an unknown word is compared with."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            shown = [name for name, command in self.commands.items() if not command.hidden]
            vars(error)["message"] = (
                f"{vars(error).get('message', '')} {suggest_verb(args[0], shown)}".rstrip()
            )
            raise


class _GroupedVerbs(_Verbs):
    """All verbs by the headings of their groups, on one screen."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = []
        for heading, names in list_groups().items():
            listed = [name for name in dict.fromkeys(names) if name in self.commands]
            if listed:
                rows.append((heading, " ".join(listed)))
        with formatter.section("Commands (npuprof help commands describes them)"):
            formatter.write_dl(rows)


class _ListedVerbs(_GroupedVerbs):
    """All verbs by name and summary, without parameters, for npuprof --help and suggestions."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, purpose in {
            **{names[0]: purpose for names, purpose in list_verb_names()},
            **list_families(),
        }.items():
            self.add_command(TyperCommand(name, help=purpose))


def suggest_next_steps() -> str:
    """Return the next steps for a bare npuprof; they depend on whether a store has presets."""
    from npuprof.store.folder import find_store

    try:
        store = find_store(None, os.environ)
        names = store.names()
    except NpuprofError:
        return (
            "No store of presets here: npuprof init creates one; "
            "npuprof import SCRIPT creates presets from a script."
        )
    if not names:
        return f"{store.label} has no presets yet: run npuprof init, or npuprof new NAME."
    first = next((name for name in names if "/" not in name), names[0])
    return (
        f"{store.label} has {format_count(len(names), 'preset')}: "
        f"npuprof list, npuprof show {first}, npuprof check."
    )


def run_arguments(arguments: list[str], runner: Runner) -> int:
    """Run a command line through Typer; return the exit code. Typer prints usage errors itself."""
    flag, *surplus = arguments or [""]
    if flag in ("--install-completion", "--show-completion") and surplus:
        what = f"{flag} takes no word, and was given {surplus[0]!r}"
        why = "It is for the shell that runs it: bash, zsh, fish or PowerShell."
        raise build_usage_error(
            what, f"start the shell that is meant, and say there: npuprof {flag}", why
        )
    try:
        words = arguments or ["--help"]
        result = build_application(words, runner)(
            args=words, prog_name="npuprof", standalone_mode=False
        )
        if not arguments:
            output.write_to_stderr(suggest_next_steps())
            return 2
    except typer.Exit as stop:
        return stop.exit_code
    except SystemExit as ended:  # Typer's answers to completion, and to a closed pipe
        if not ended.code:
            return 0
        raise BrokenPipeError from None
    except Exception as error:
        # the variables with the command line, such as COMP_WORDS, are missing
        if isinstance(error, (KeyError, ValueError)) and "_NPUPROF_COMPLETE" in os.environ:
            raise build_usage_error(
                "the shell requests a completion without the command line",
                "unset _NPUPROF_COMPLETE, or reinstall the completion",
            ) from None
        show = getattr(error, "show", None)
        code = getattr(error, "exit_code", None)
        if show is None or code is None:
            raise
        suggest_flag(error, arguments)
        # in a text first: Click writes without escapes, and an argument may contain control
        # characters
        message = io.StringIO()
        show(file=message)
        message.writelines(f"{line}\n" for line in explain_usage(error, arguments))
        text = message.getvalue().replace("not in the range x>=", "less than ")
        text = text.replace("a valid int range", "a whole number")
        lines = map(shorten_values, text.rstrip("\n").split("\n"))
        output.write_to_stderr(escape_lines("\n".join(lines)))
        return int(code)
    return result if isinstance(result, int) else 0


def build_application(arguments: list[str], runner: Runner) -> typer.Typer:
    """Return the application with the verb that the arguments name.

    If they name none, all verbs are included, without parameters unless completing: building
    parameters is slow.
    """
    loaded = load_verb([argument for argument in arguments if argument != "--"])
    is_completing = any(name.endswith("_COMPLETE") for name in os.environ)
    families = list_families()
    is_listed = loaded is None and not is_completing and families.keys().isdisjoint(arguments[:1])
    app = typer.Typer(
        name="npuprof",
        cls=_ListedVerbs if is_listed else _GroupedVerbs,
        # npuprof's own suggestions also know abbreviations and verbs of other tools
        suggest_commands=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=_HELP)(_show_version)
    if is_listed:
        return app
    groups: dict[Names, typer.Typer] = {(): app}  # of two-word verbs, by first word
    for (*family, name), verb in [(loaded.names, loaded.verb)] if loaded else list_verbs():
        group = tuple(family)
        if group not in groups:
            groups[group] = typer.Typer(
                name=group[0],
                cls=_Verbs,
                suggest_commands=False,
                help=families[group[0]],
                no_args_is_help=True,
                rich_markup_mode=None,
            )
            app.add_typer(groups[group])
        verb_arguments = arguments[len(group) + 1 :] if loaded else []
        _add_verb(groups[group], name, verb, runner, verb_arguments)
    return app


def format_help(names: list[str]) -> str:
    """Return the help of a verb, or of a group of two-word verbs, as ``--help`` prints it."""
    text = io.StringIO()
    with redirect_stdout(text):
        build_application(names, lambda verb, values: 0)(
            args=[*names, "--help"], prog_name="npuprof", standalone_mode=False
        )
    return text.getvalue()


def _add_verb(
    app: typer.Typer, name: str, verb: type[Verb], runner: Runner, arguments: list[str]
) -> None:
    """Build a Typer command from the declaration of a verb, for a command line."""

    def command(**values: Any) -> int:
        if not verb.takes_any_word:
            require_single_values(verb, arguments)
        return runner(verb, values)

    signature = list(starmap(_build_parameter, verb.parameters.items()))
    vars(command)["__signature__"] = inspect.Signature(signature)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    settings: Fields = {"ignore_unknown_options": verb.takes_any_word}
    if verb.hidden and arguments not in (["--help"], ["-h"]):
        settings["help_option_names"] = []  # git passes arbitrary words, but never --help alone
    app.command(name, help=inspect.getdoc(verb), hidden=verb.hidden, context_settings=settings)(
        command
    )


def _build_parameter(name: str, parameter: Parameter) -> inspect.Parameter:
    shown = parameter.metavar or None
    if parameter.kind in ("argument", "arguments"):
        info = typer.Argument(metavar=shown, help=parameter.describe())
    else:
        info = typer.Option(
            *parameter.flags, metavar=shown, help=parameter.describe(), min=parameter.least
        )
    default = inspect.Parameter.empty if parameter.required else parameter.default
    kind = _TYPES.get(parameter.kind, str)
    annotation: Any = operator.getitem(
        _ANNOTATED, (kind if parameter.required or kind is bool else kind | None, info)
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from npuprof.catalog.releases import describe_newest_releases

        typer.echo(f"npuprof {__version__}\nnewest known releases:")
        for release in describe_newest_releases():
            typer.echo(f"  {release}")
        raise typer.Exit


def _show_version(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version"),
    ] = False,
) -> None:
    """Print the version if asked for."""


def require_single_values(verb: type[Verb], arguments: Sequence[str]) -> None:
    """Raise NpuprofError (NP902) for a flag with two values, or with a flag as its value."""
    values: dict[str, dict[str, None]] = {}
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            break
        spelling, equals, value = split_flag(argument)
        parameter = verb.spellings.get(spelling)
        if parameter is None or parameter.kind == "flag":
            continue
        value = value if equals else next(rest, "")
        # a flag is hardly meant as a value; --flag=--value still passes it
        if not equals and (value == "--" or value in verb.spellings):
            what = f"{argument} has no {parameter.metavar}: {value} follows instead"
            hint = f"write {argument} {parameter.metavar}"
            raise build_usage_error(
                what, hint, "It would be taken for the value, and not be heeded."
            )
        # equal values do no harm, as in a script that adds a flag twice
        if value and parameter.kind != "many":
            values.setdefault(parameter.flags[0], {})[value] = None
    for flag, texts in values.items():
        if len(texts) > 1:
            what = f"{flag} is given more than once: {' and '.join(texts)}"
            hint = "omit all but one of them"
            if verb.spellings[flag].metavar == "COND":
                hint = "join the conditions by 'and'"
            raise build_usage_error(what, hint, "It has one value.")
