"""Commands from typed functions.

A command is a function: its parameters are the arguments and options, its docstring is the help, and its
result is what it prints.

    queues = Group("queues", "Manage queues.")

    @queues.command("list", columns=columns("queue", "weight", "paused_at"))
    async def list_queues(duly: Duly) -> Rows:
        '''List the queues.'''
        return {"queues": await duly.queues.stats()}

    @queues.command()
    async def pause(duly: Duly, queue: QueueName, change: Change) -> Queue:
        '''Pause a queue; its jobs stay queued.'''
        return await duly.queues.pause(queue, **change)

Parameters: a first parameter `duly: Duly` is the open application and adds --app. `Change` adds --actor and
--reason, `Paging` adds --limit and --after. The other types in `duly.cli.options` and any
`Annotated[..., typer.Option(...)]` add one option each. `Annotated[T, Depends(make)]` adds the options of the
function `make` and is its result. Every command has --json.

Results: --json prints the result itself. Without it, a command with `columns` prints a table, an `Output` its
text, a `Handle` its job id, None nothing, and every other result a line per field.

To add a group, add it to `GROUPS` in `duly.cli.program` and run `python -m tests.architecture.pages`.
"""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from inspect import Parameter, Signature
from typing import Any, Protocol, TypeVar, get_args

import typer

from duly.app import Duly
from duly.cli.app_loader import load_app
from duly.cli.options import AppName, AsJson, Depends
from duly.cli.output import Columns, Output, print_result
from duly.jobs.request_context import context

F = TypeVar("F", bound=Callable[..., Any])
Rows = Mapping[str, Any]
"""A result of which one value holds the rows of the table."""


class LoadApp(Protocol):
    """A loader of the application that a command opens."""

    def __call__(self, name: str | None, *, job_types: bool = False) -> AbstractAsyncContextManager[Duly]:
        """Load the application of that name; the command opens it."""


class Group:
    """A group of commands, as `duly queues`; without a name, the program itself."""

    def __init__(self, name: str | None, summary: str, *, load: LoadApp = load_app) -> None:
        self.name = name
        self.typer = typer.Typer(
            help=summary,
            no_args_is_help=True,
            add_completion=False,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
        )
        self._load = load

    def add(self, group: Group) -> None:
        """Add a group below this one."""
        self.typer.add_typer(group.typer, name=group.name)

    def command(
        self,
        name: str | None = None,
        *,
        columns: Columns | None = None,
        job_types: bool = False,
        stream: bool = False,
        hidden: bool = False,
    ) -> Callable[[F], F]:
        """Add the decorated function as a command.

        With `job_types`, the command requires --app, as it needs the job types that are declared there.
        With `stream`, the command prints until Ctrl-C ends it.
        """

        def add(function: F) -> F:
            opens_app, options = _opens_app(function), _options(function)

            def run(**values: Any) -> None:
                arguments = _arguments(function, values)
                app = self._load(values["app"], job_types=job_types) if opens_app else None
                with suppress(KeyboardInterrupt) if stream else nullcontext():
                    result = _call(function, arguments, app)
                    print_result(result, columns, as_json=values["as_json"])
                    if isinstance(result, Output) and result.code:
                        raise typer.Exit(result.code)

            run.__name__, run.__doc__ = function.__name__, function.__doc__
            run.__signature__ = Signature([*options.values()])  # type: ignore[attr-defined]
            self.typer.command(name, hidden=hidden)(run)
            return function

        return add


def _call(
    function: Callable[..., Any], arguments: Mapping[str, Any], app: AbstractAsyncContextManager[Duly] | None
) -> Any:
    if not inspect.iscoroutinefunction(function):
        return function(**arguments)

    async def call() -> Any:
        if app is None:
            return await function(**arguments)
        async with app as duly:
            return await function(duly, **arguments)

    with context(request_id=f"cli-{uuid.uuid4().hex}"):
        return asyncio.run(call())


def _options(function: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the parameters that Typer turns into options: the command's own, --app and --json."""
    options = _own_options(function)
    shared = {"app": (AppName, None)} if _opens_app(function) else {}
    for name, (annotation, default) in {**shared, "as_json": (AsJson, False)}.items():
        parameter = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        options.setdefault(name, parameter)
    return options


def _own_options(function: Callable[..., Any]) -> dict[str, Parameter]:
    options: dict[str, Parameter] = {}
    for parameter in _parameters(function):
        make = _dependency(parameter)
        # Keyword-only: an option without a default may follow one that has a default.
        own = {parameter.name: parameter.replace(kind=Parameter.KEYWORD_ONLY)}
        options |= _own_options(make) if make else own
    return options


def _arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function from the values of the options; dependencies are called."""
    arguments = {}
    for parameter in _parameters(function):
        make = _dependency(parameter)
        arguments[parameter.name] = make(**_arguments(make, values)) if make else values[parameter.name]
    return arguments


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters without the open application."""
    found = inspect.signature(function, eval_str=True).parameters.values()
    return [parameter for parameter in found if parameter.annotation is not Duly]


def _opens_app(function: Callable[..., Any]) -> bool:
    return len(_parameters(function)) < len(inspect.signature(function).parameters)


def _dependency(parameter: Parameter) -> Callable[..., Any] | None:
    found = [one.make for one in get_args(parameter.annotation) if isinstance(one, Depends)]
    return found[0] if found else None
