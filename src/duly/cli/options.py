"""The options that commands share."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, TypedDict
from uuid import UUID

import typer

from duly.app import Duly
from duly.cli.app_loader import load_app, read_payload
from duly.core.job import SYSTEM_ORG, Actor, ActorType
from duly.jobs.request_context import LogContextFilter
from duly.observability.logs import Logs
from duly.settings import Settings


class Depends(NamedTuple):
    """Mark a parameter of a command as the result of a function that has options of its own."""

    make: Callable[..., Any]


class LogLevel(StrEnum):
    """The lowest level of log lines that a command writes."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ChangeOptions(TypedDict):
    """Who makes an audited change, and why."""

    actor: Actor
    reason: str


class PageOptions(TypedDict):
    """The size of a page, and the cursor that it starts after."""

    limit: int
    after: str | None


def _actor_name(name: str | None) -> str | None:
    kind, colon, _ = (name or "").partition(":")
    if colon and kind not in set(ActorType):
        raise typer.BadParameter(f"unknown type {kind!r}; use one of {', '.join(ActorType)}")
    return name


def _org_or_platform(text: str | UUID) -> UUID:
    try:
        return SYSTEM_ORG if text == "platform" else UUID(str(text))
    except ValueError:
        raise typer.BadParameter("use the id of an org, or the word platform") from None


def _time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("write it as 2026-11-15T12:00:00Z") from None
    if at.tzinfo is None:
        raise typer.BadParameter("add a zone, such as Z or +02:00")
    return at


def argument(summary: str, metavar: str | None = None) -> Any:
    """Return a required argument for `Annotated`."""
    return typer.Argument(metavar=metavar, help=summary, show_default=False)


def time_option(name: str, summary: str) -> Any:
    """Return an option for `Annotated` that takes a time with its zone, as 2026-11-15T12:00:00Z."""
    return typer.Option(name, parser=_time, metavar="RFC3339", help=summary)


def number_option(name: str, summary: str, convert: Callable[[str], Any] = int) -> Any:
    """Return an option for `Annotated` that takes a number, or none for no limit."""

    def parse(value: Any) -> Any:
        if not isinstance(value, str):
            return value  # the default
        try:
            return None if value.lower() == "none" else convert(value)
        except ValueError:
            raise typer.BadParameter("use a number, or none for no limit") from None

    return typer.Option(name, parser=parse, metavar="NUMBER", help=summary, show_default=False)


AppName = Annotated[
    str | None, typer.Option("--app", envvar="DULY_APP", help="Load job types from this module:attribute.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Org = Annotated[UUID, typer.Option("--org", envvar="DULY_ORG", help="Select the org by its id.")]
OptionalOrg = Annotated[
    UUID | None, typer.Option("--org", envvar="DULY_ORG", help="Select the org by its id.")
]
Owner = Annotated[
    UUID,
    typer.Option(
        "--org",
        envvar="DULY_ORG",
        parser=_org_or_platform,
        metavar="UUID",
        help="Select the org by its id, or `platform` for the installation.",
    ),
]
ActorName = Annotated[
    str | None,
    typer.Option(
        "--actor",
        help="Act as this operator, or as type:id such as user:17.",
        show_default="OS user",
        callback=_actor_name,
    ),
]
Reason = Annotated[str, typer.Option("--reason", help="Record this reason in the audit trail.")]
OptionalReason = Annotated[
    str | None, typer.Option("--reason", help="Record this reason in the audit trail.")
]
Size = Annotated[int, typer.Option("--limit", help="Limit the number of results.")]
After = Annotated[str | None, typer.Option("--after", help="Continue after this cursor of a page.")]
JobId = Annotated[UUID, argument("Select the job by its id.")]
JobType = Annotated[str | None, typer.Option("--type", help="Filter by job type.")]
_PayloadText = Annotated[
    str, typer.Option("--payload", metavar="JSON", help="Set the payload: JSON, @file, or - for stdin.")
]
LogLevelOption = Annotated[
    LogLevel | None,
    typer.Option("--log-level", help="Set the log level on stderr.", show_default="DULY_LOG_LEVEL"),
]


def _loaded_app(app: AppName = None) -> Duly:
    return load_app(app)


def acting(actor: ActorName = None) -> Actor:
    """Return the actor of a name: an operator, unless the name has another type."""
    kind, colon, ident = (actor or "").partition(":")
    return Actor(ActorType(kind), ident) if colon else Actor.operator(actor or _os_user())


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as in a container
        return f"uid-{os.getuid()}"


def _change(reason: Reason, actor: ActorName = None) -> ChangeOptions:
    return {"actor": acting(actor), "reason": reason}


def _paging(limit: Size = 50, after: After = None) -> PageOptions:
    return {"limit": limit, "after": after}


def _payload(payload: _PayloadText) -> dict[str, Any]:
    return read_payload(payload)


def _payload_or_empty(payload: _PayloadText = "{}") -> dict[str, Any]:
    return read_payload(payload)


LoadedApp = Annotated[Duly, Depends(_loaded_app)]
"""The application without opening it, for commands that check or prepare the database."""
ActorOption = Annotated[Actor, Depends(acting)]
Change = Annotated[ChangeOptions, Depends(_change)]
Paging = Annotated[PageOptions, Depends(_paging)]
Payload = Annotated[dict[str, Any], Depends(_payload)]
OptionalPayload = Annotated[dict[str, Any], Depends(_payload_or_empty)]


def write_logs(
    settings: Settings, level: LogLevel | None, *, as_json: bool, otherwise: LogLevel = LogLevel.INFO
) -> None:
    """Write logs to stderr at the level of the command, else of the settings."""
    chosen = level or settings.log_level or otherwise
    Logs(as_json or settings.log_format == "json", chosen, (LogContextFilter(),)).configure()
