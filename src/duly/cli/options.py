"""The options that many commands share."""

from __future__ import annotations

import getpass
import os
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import typer

from duly.model.job import Actor, ActorType
from duly.model.system import SYSTEM_ORG


def _known_type(name: str | None) -> str | None:
    kind, colon, _ = (name or "").partition(":")
    if colon and kind not in set(ActorType):
        raise typer.BadParameter(f"unknown type {kind!r}; use one of {', '.join(ActorType)}")
    return name


def _whose(given: str | UUID) -> UUID:
    try:
        return SYSTEM_ORG if given == "platform" else UUID(str(given))
    except ValueError:
        raise typer.BadParameter("use the id of an org, or the word platform") from None


AppName = Annotated[
    str | None,
    typer.Option("--app", envvar="DULY_APP", help="Where your job types are declared, as module:attribute."),
]
Org = Annotated[UUID, typer.Option("--org", envvar="DULY_ORG", help="The org it is about.")]
Owner = Annotated[
    UUID,
    typer.Option(
        "--org",
        envvar="DULY_ORG",
        parser=_whose,
        metavar="UUID",
        help="The org it is about; the word platform for what is the installation's.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable: JSON on stdout, nothing else.")]
ActorName = Annotated[
    str | None,
    typer.Option(
        "--actor",
        help="Who asks: a name, or type:id as in user:17. By default the OS user.",
        callback=_known_type,
    ),
]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the audit trail.")]
Size = Annotated[int, typer.Option("--limit", help="How many at most.")]
After = Annotated[str | None, typer.Option("--after", help="The page after the one that said so.")]
JobId = Annotated[UUID, typer.Argument(help="The job.", show_default=False)]
JobType = Annotated[str | None, typer.Option("--type", help="Only of this job type.")]
Payload = Annotated[str, typer.Option("--payload", help="JSON, @file to read it from, or - for stdin.")]


def acting(name: str | None) -> Actor:
    """Who asks: an operator, unless another type is said."""
    kind, colon, ident = (name or "").partition(":")
    if colon:
        return Actor(ActorType(kind), ident)
    return Actor.operator(name or _os_user())


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as in a container
        return f"uid-{os.getuid()}"


def moment(text: str | None, option: str) -> datetime | None:
    """A time with its zone, as RFC 3339 writes it."""
    try:
        at = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("write it as 2026-11-15T12:00:00Z", param_hint=option) from None
    if at is not None and at.tzinfo is None:
        raise typer.BadParameter("add a zone, such as Z or +02:00", param_hint=option)
    return at


def number(text: str, option: str, kind: type[int] | type[float]) -> Any:
    """A number, or None for the word none."""
    try:
        return None if text.lower() == "none" else kind(text)
    except ValueError:
        raise typer.BadParameter("use a number, or none for no limit", param_hint=option) from None
