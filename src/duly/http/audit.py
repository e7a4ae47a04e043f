"""The audit trail of an org: who changed what and why, and whether it is as it was written."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from duly.control.audited import OWN_TARGETS
from duly.control.enrichment import Versions, enrichment
from duly.http.answers import accepted, as_json
from duly.http.caller import Caller
from duly.http.params import After, Limit, Reason, Shown, Text
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.shapes import Accepted, Strict
from duly.http.strict import StrictRoute
from duly.http.submit import IdempotencyKey, enqueued
from duly.http.values import Moment
from duly.model.access import Scope
from duly.model.job import ActorType
from duly.model.states import Status

Head = Annotated[str | None, Query(pattern="^[0-9a-f]{64}$", description="The `head` of an earlier report.")]


class EntryShown(Shown):
    """One line of the audit trail."""

    entry_id: UUID
    occurred_at: datetime
    actor_type: ActorType
    actor_id: str
    action: str
    target_type: str
    target_id: str
    reason: str | None
    request_id: str | None
    correlation_id: str | None
    detail: dict[str, Any]


class AuditShown(Shown):
    """Some entries; `after` asks for those that follow, and is null at the end."""

    entries: list[EntryShown]
    after: str | None


class AuditEventShown(Shown):
    """What became of a job, as the audit calls it; `cursor` asks for what follows."""

    event_id: str
    action: str = Field(examples=["job.enqueued", "job.succeeded"])
    occurred_at: datetime
    actor_type: ActorType
    actor_id: str
    job_id: UUID
    job_type: str
    project_id: UUID | None
    attempt: int
    status: Status
    request_id: str
    correlation_id: str
    trace_id: str | None
    detail: dict[str, Any]
    cursor: str


class AuditEvents(Shown):
    """Some events in the order of commits; `after` asks for those that follow, now or later."""

    events: list[AuditEventShown]
    after: str
    more: bool = Field(description="Whether to ask again at once: a page may be short, even empty.")


class NewChange(Strict):
    """Two versions of a record of yours."""

    target_type: str = Field(
        pattern="^[a-z][a-z0-9_]*$",
        max_length=100,
        examples=["run_sheet"],
        description="None of Duly's own, as `key`.",
        json_schema_extra={"not": {"enum": [*sorted(OWN_TARGETS)]}},
    )
    target_id: Text
    before: dict[str, Any] = Field(default={}, description="As it was. Both together may have 256 KiB.")
    after: dict[str, Any] = Field(default={}, description="As it is.")
    reason: Reason | None = None
    locale: Literal["en", "de"] = Field(default="en", description="In which language it is said.")
    names: dict[str, str] = Field(default={}, description="How fields are called, by name or path.")
    hide: list[str] = Field(default=[], max_length=100, description="Fields that are never shown.")


class ChainProblem(Shown):
    """Something that is not as it was sealed."""

    kind: str
    seal_seq: int | None
    entry_id: UUID | None
    message: str


class Verified(Shown):
    """What a verification found."""

    ok: bool
    seals: int
    sealed: int = Field(description="Entries that have their seal.")
    unsealed: int = Field(description="Entries that have none yet.")
    gone: int = Field(description="Sealed entries that retention has dropped.")
    kept_since: datetime | None
    head: str = Field(description="The hash of the last seal. Keep it elsewhere, and expect it next time.")
    broken_at: int | None = Field(description="The number of the first seal with which something is wrong.")
    problems: list[ChainProblem] = Field(description="The first hundred.")


def routes(service: Service) -> APIRouter:
    """To be read and appended to, never to be changed."""
    api = APIRouter(prefix="/v1/audit", tags=["audit"], route_class=StrictRoute)
    administers = Annotated[Caller, service.allows(Scope.ADMIN)]

    @api.get("", response_model=AuditShown, responses=documented())
    async def entries(
        who: administers,
        actor: Annotated[
            str | None,
            Query(min_length=1, max_length=500, description="Their id, alone or as `user:anna`."),
        ] = None,
        action: Annotated[
            str | None,
            Query(min_length=1, max_length=200, examples=["key.created"], description="Or its first word."),
        ] = None,
        target_id: Annotated[str | None, Query(min_length=1, max_length=500)] = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: Limit = 50,
        after: After = None,
    ) -> Response:
        """The entries of the org, the newest first.

        With a filter so many entries are looked at and no more: a page may then be short, even empty,
        although others follow.
        """
        page = await service.audit.list(
            who.org_id,
            actor=actor,
            action=action,
            target_id=target_id,
            since=since,
            until=until,
            limit=limit,
            after=after,
        )
        return as_json(AuditShown.model_validate(page))

    @api.get("/events", response_model=AuditEvents, responses=documented(410))
    async def job_events(who: administers, limit: Limit = 100, after: After = None) -> Response:
        """What became of the org's jobs, under the names of an audit, in the order of commits."""
        await service.check_everything(who)
        page = await service.audit.events(who.org_id, limit=limit, after=after)
        return as_json(AuditEvents.model_validate(page))

    @api.post("/changes", status_code=202, response_model=Accepted, responses=documented(409, 413, 415))
    async def describe_change(
        request: NewChange, who: administers, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Have an entry written that says what differs between two versions of a record.

        Secrets, personal data and what is to be hidden are told as changed, and not shown.
        """
        said = {"org_id": who.org_id, "actor": who.actor, "idempotency_key": idempotency_key}
        call = await enrichment(service.app, Versions(**dict(request)), said)
        handle = await enqueued(service, who, call)
        return accepted(who, handle.job_id, None, replayed=not handle.created)

    @api.get("/verify", response_model=Verified, responses=documented())
    async def verify(who: administers, expect: Head = None) -> Response:
        """Compare every entry with its seal, and every seal with the one before."""
        return as_json(Verified.model_validate(await service.audit.verify(who.org_id, expect=expect)))

    @api.post("/verify", status_code=202, response_model=Accepted, responses=documented())
    async def start_verification(who: administers, expect: Head = None) -> Response:
        """Have a job do it, as is right for a long trail: its result is the report.

        While one is under way, the answer is that one.
        """
        handle = await service.audit.start_verification(who.org_id, expect=expect, actor=who.actor)
        return accepted(who, handle.job_id, None, replayed=not handle.created)

    return api
