"""Verbs that write a preset elsewhere: render, env, run. Their parameters are the rows of ``verbs``."""

from __future__ import annotations

import inspect
import operator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from npuprof import verbs
from npuprof.cli import parameters

if TYPE_CHECKING:
    from collections.abc import Callable


_ANNOTATED: Any = Annotated  # subscripted with values, which a type checker cannot follow


def _hot(app: typer.Typer, verb: str, function: Callable[..., int]) -> None:
    """Make a Typer command of a row of the table that the plain form is parsed with."""

    def command(**given: Any) -> int:
        return function(**{name: given[name] if given[name] is not None else [] if name in many else None for name in given})

    many = {parameter.name for parameter in verbs.VERBS[verb] if parameter.kind == "many"}
    kinds = {"argument": str, "text": str | None, "many": list[str] | None, "flag": bool}
    parameters = []
    for row in verbs.VERBS[verb]:
        shown = row.metavar or None
        argument = row.kind == "argument"
        info = typer.Argument(metavar=shown, help=row.help) if argument else typer.Option(*row.flags, metavar=shown, help=row.help)
        default = inspect.Parameter.empty if row.kind == "argument" else row.default
        annotation: Any = operator.getitem(_ANNOTATED, (kinds[row.kind], info))
        parameters.append(inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app.command(verb, help=function.__doc__)(command)


def _render(**given: Any) -> int:
    """Write a preset as code or a command line."""
    from npuprof.commands.export import render

    return render(**given)


def _env(**given: Any) -> int:
    """Print a preset as environment exports, for a shell or as a file."""
    from npuprof.commands.export import env

    return env(**given)


def _run(
    spec: parameters.Spec,
    command: Annotated[list[str] | None, typer.Argument(metavar="CMD...", help="The command and its arguments, after --.")] = None,
    store: parameters.Store = None,
    cann: parameters.Cann = None,
    product: parameters.Product = None,
    mixin: parameters.Mixins = None,
    set_: parameters.Sets = None,
    unset: parameters.Unsets = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Skip the checks.")] = False,
) -> int:
    """Run a command in a preset's environment.

    npuprof run NAME -- python train.py
    """
    from npuprof.commands.run import run

    given = {"spec": spec, "store": store, "cann": cann, "product": product, "no_check": no_check}
    return run(command or [], **given, mixin=mixin or [], set_=set_ or [], unset=unset or [])


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
    _hot(app, "render", _render)
    _hot(app, "env", _env)
    app.command("run")(_run)
