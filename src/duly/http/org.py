"""The caller's own org: what it is, what it has, and what it may."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.figures import CountShown, LimitShown, OverviewShown
from duly.http.params import After, Limit, Shown
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import Scope
from duly.model.policy import DEADLETTER
from duly.store.orgs import OrgStatus

_NONE = CountShown(count=0, at_least=False)


class OrgShown(Shown):
    """One org."""

    org_id: UUID
    name: str
    status: OrgStatus
    created_at: datetime
    updated_at: datetime


class OrgNow(OrgShown):
    """The org with its figures."""

    limits: LimitShown = Field(description="Of all its jobs together; job types may have their own.")
    overview: OverviewShown


class LimitsShown(Shown):
    """Some limits; `after` asks for those that follow, and is null at the end."""

    limits: list[LimitShown]
    after: str | None


class OrgQueue(Shown):
    """A queue as the org sees it: what others have in it is theirs."""

    queue: str
    weight: int
    paused_at: datetime | None
    waiting: CountShown = Field(description="Jobs of the org that could start now.")
    oldest_waiting_at: datetime | None


class OrgQueues(Shown):
    """Every queue, the weightiest first."""

    queues: list[OrgQueue]


def routes(service: Service) -> APIRouter:
    """The org of the credential; no request can name another."""
    api = APIRouter(prefix="/v1", tags=["org"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]

    @api.get("/org", response_model=OrgNow, responses=documented())
    async def org(who: reads) -> Response:
        """The org, its figures, and what limits all of its jobs together."""
        said = OrgShown.model_validate(await service.orgs.get(who.org_id)).model_dump()
        limits = LimitShown.model_validate(await service.limits.get(who.org_id))
        return as_json(OrgNow(**said, limits=limits, overview=await _overview(who)))

    @api.get("/org/overview", response_model=OverviewShown, responses=documented())
    async def overview(who: reads) -> Response:
        """What waits, what runs, what died and what ended within a day."""
        return as_json(await _overview(who))

    @api.get("/org/limits", response_model=LimitsShown, responses=documented())
    async def limits(who: reads, limit: Limit = 50, after: After = None) -> Response:
        """What was ever limited or paused: of all jobs of the org, and of its job types."""
        page = await service.limits.list(who.org_id, limit=limit, after=after)
        return as_json(LimitsShown.model_validate(page))

    @api.get("/queues", response_model=OrgQueues, responses=documented())
    async def queues(who: reads) -> Response:
        """The queues, whether they are paused, and what the org has waiting there."""
        shares = {share.queue: share for share in (await _overview(who)).waiting}
        listed = [
            OrgQueue(
                queue=queue.queue,
                weight=queue.weight,
                paused_at=queue.paused_at,
                waiting=shares[queue.queue].waiting if queue.queue in shares else _NONE,
                oldest_waiting_at=shares[queue.queue].oldest_waiting_at if queue.queue in shares else None,
            )
            for queue in await service.queues.known()
            if queue.queue != DEADLETTER
        ]
        return as_json(OrgQueues(queues=listed))

    async def _overview(who: Caller) -> OverviewShown:
        return OverviewShown.model_validate(await service.overview.org(who.org_id))

    return api
