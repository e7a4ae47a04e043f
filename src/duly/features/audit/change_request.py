"""What every change is asked with, checked: for which org, by whom and why."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from duly.core.errors import ContractError, Forbidden, MissingField, UnknownOrg
from duly.core.job import Actor, ActorType
from duly.db.pool import Connection
from duly.features.limits import store as gates
from duly.jobs.request_context import as_uuid, checked_actor, checked_text

_MOST = 1000
_OWN = "duly."
_STOPPABLE = ("duly.bulk",)
_TENANTS = (ActorType.USER, ActorType.API_KEY)


class ChangeRequest(NamedTuple):
    """Who wants a change, and why."""

    actor: Actor
    reason: str | None

    @property
    def by(self) -> str:
        """The actor in a word, for a column."""
        return f"{self.actor.type}:{self.actor.id}"


def change_request(actor: Actor, reason: str | None, *, optional: bool = False) -> ChangeRequest:
    """Who and why; a missing one is an error that names it."""
    if checked_actor(actor) is None:
        raise MissingField("missing", field="actor", fix="say who asks: Actor.user(...), .api_key, .system")
    if reason is None and not optional:
        raise MissingField("missing", field="reason", fix="say why; it is kept in the audit trail")
    return ChangeRequest(actor, checked_text("reason", reason))


def may_touch(actor: Actor, job_type: str) -> bool:
    """Whether they may change what becomes of such a job: Duly's own are for who runs the installation."""
    return actor.type not in _TENANTS or not job_type.startswith(_OWN)


def check_stop(actor: Actor, job_type: str) -> None:
    """Raise unless they may ask for its end: whoever has one change made to many jobs may stop it."""
    if job_type not in _STOPPABLE:
        check_touch(actor, job_type)


def check_touch(actor: Actor, job_type: str) -> None:
    """Raise if it is Duly's own, and they are somebody's users."""
    if not may_touch(actor, job_type):
        raise Forbidden(
            f"{job_type} is Duly's own work", field="job_id", fix="ask whoever runs the installation"
        )


def org_uuid(org_id: UUID | str) -> UUID:
    """The org's id, also from its text."""
    found = as_uuid("org_id", org_id)
    if found is None:
        raise MissingField("missing", field="org_id", fix="say for which org")
    return found


async def check_org_exists(conn: Connection, org_id: UUID) -> None:
    """Raise if there is no such org; asked for when there is nothing to show."""
    if not await gates.org_exists(conn, org_id):
        raise unknown_org(org_id)


def unknown_org(org_id: UUID) -> UnknownOrg:
    """There is no such org."""
    return UnknownOrg(f"no org {org_id}", field="org_id", fix="check the id, or create the org first")


def required_text(field: str, value: str) -> str:
    """A text that is there."""
    found = checked_text(field, value)
    if found is None:
        raise MissingField("missing", field=field, fix=f"pass {field}")
    return found


def count(n: int) -> int:
    """How many, within reason."""
    if type(n) is not int or not 0 < n <= _MOST:
        raise ContractError(f"{n!r} is out of range", field="n", fix=f"use 1 to {_MOST}")
    return n
