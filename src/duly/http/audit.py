"""The audit trail of an org: who changed what and why, and whether it is as it was written."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.params import After, Limit, Shown
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.http.values import Moment
from duly.model.access import Scope
from duly.model.job import ActorType


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
    """To be read, never to be written."""
    api = APIRouter(prefix="/v1/audit", tags=["audit"], route_class=StrictRoute)
    administers = Annotated[Caller, service.allows(Scope.ADMIN)]

    @api.get("", response_model=AuditShown, responses=documented())
    async def entries(
        who: administers,
        action: Annotated[str | None, Query(min_length=1, max_length=200, examples=["key.created"])] = None,
        target_id: Annotated[str | None, Query(min_length=1, max_length=500)] = None,
        since: Moment | None = None,
        limit: Limit = 50,
        after: After = None,
    ) -> Response:
        """The entries of the org, the newest first.

        With a filter so many entries are looked at and no more: a page may then be short, even empty,
        although others follow.
        """
        page = await service.audit.list(
            who.org_id, action=action, target_id=target_id, since=since, limit=limit, after=after
        )
        return as_json(AuditShown.model_validate(page))

    @api.get("/verify", response_model=Verified, responses=documented())
    async def verify(
        who: administers,
        expect: Annotated[
            str | None, Query(pattern="^[0-9a-f]{64}$", description="The `head` of an earlier report.")
        ] = None,
    ) -> Response:
        """Compare every entry with its seal, and every seal with the one before."""
        return as_json(Verified.model_validate(await service.audit.verify(who.org_id, expect=expect)))

    return api
