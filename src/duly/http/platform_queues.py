"""Queues and workers of the installation, for those who look after it."""

from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import Field
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.figures import CountShown
from duly.http.params import Shown, Why
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.http.values import NUMERIC
from duly.model.access import Scope
from duly.store.queues import WorkerState

Name = Annotated[str, Path(min_length=1, max_length=50, examples=["q:default"])]
Weight = Annotated[int, Field(ge=1, le=1000, description="Its share of the workers' free slots."), NUMERIC]


class NewQueue(Why):
    """A queue to be made, for workers that have it among theirs."""

    queue: str = Field(min_length=1, max_length=50, examples=["q:reports"])
    weight: Weight = 1


class NewWeight(Why):
    """Another share of the workers' free slots."""

    weight: Weight


class NewAlerts(Why):
    """From when on somebody is told of a queue: what is left out, or null, is as the settings say."""

    alert_depth: Annotated[int, Field(ge=1, le=9_999), NUMERIC] | None = Field(
        default=None, description="More waiting jobs than that are an alert."
    )
    alert_wait: float | None = Field(
        default=None, ge=1, le=31_536_000, strict=True, description="A wait of more seconds is an alert."
    )


class QueueShown(Shown):
    """A queue: how much weight it has, whether it is paused, and from when on somebody is told."""

    queue: str
    weight: int
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    alert_depth: int | None = Field(description="More waiting jobs are an alert; null: as the settings say.")
    alert_wait: timedelta | None = Field(
        description="A wait of more seconds is an alert; null: as the settings say."
    )


class QueueStatsShown(QueueShown):
    """A queue with what is in it. For dead letters, what waits are those that are open."""

    waiting: CountShown = Field(description="Jobs that could start now.")
    scheduled: CountShown = Field(description="Jobs whose time has not come, retries among them.")
    running: CountShown
    oldest_waiting_at: datetime | None


class Queues(Shown):
    """Every queue, the weightiest first."""

    queues: list[QueueStatsShown]


class WorkerShown(Shown):
    """One worker that has not said goodbye."""

    worker_id: UUID
    name: str
    host: str
    pid: int
    version: str
    queues: list[str]
    slots: int
    running: int
    lease: timedelta = Field(description="The seconds that it may be silent.")
    started_at: datetime
    heartbeat_at: datetime
    draining_at: datetime | None = Field(description="Since when it claims nothing more.")
    drain_requested_at: datetime | None = Field(description="When an operator has asked it to drain.")
    drain_requested_by: str | None
    drain_reason: str | None
    state: WorkerState


class Workers(Shown):
    """The workers, the youngest first."""

    workers: list[WorkerShown]


class PlatformShown(Shown):
    """What the installation has. No count goes further than 10,000."""

    looked_at: datetime
    queues: list[QueueStatsShown]
    orgs: CountShown
    failed: CountShown = Field(description="Jobs that failed within a day.")
    canceled: CountShown = Field(description="Jobs that were canceled within a day.")
    suspects: CountShown = Field(
        description="Jobs that can hardly be believed, as far as one look finds them."
    )
    workers: int
    slots: int
    database_bytes: int | None


def routes(service: Service) -> APIRouter:
    """Queues belong to no org: their audit trail is the system's."""
    api = APIRouter(prefix="/v1/platform", tags=["platform"], route_class=StrictRoute)
    runs = Annotated[Caller, service.allows(Scope.PLATFORM)]
    refusals = documented(404, 413, 415)

    @api.get("/overview", response_model=PlatformShown, responses=documented())
    async def overview(who: runs) -> Response:
        """The figures of the whole installation."""
        return as_json(PlatformShown.model_validate(await service.overview.platform()))

    @api.get("/workers", response_model=Workers, responses=documented())
    async def workers(who: runs) -> Response:
        """The workers that have not said goodbye, the youngest first."""
        found = await service.queues.workers()
        return as_json(Workers(workers=[WorkerShown.model_validate(one) for one in found]))

    @api.post("/workers/{worker_id}/drain", response_model=WorkerShown, responses=refusals)
    async def drain_worker(worker_id: UUID, request: Why, who: runs) -> Response:
        """Have a worker drain, as by SIGTERM: it takes nothing more, finishes or gives back its jobs, ends.

        It hears of it with its next heartbeat. Asked again, it changes nothing.
        """
        done = await service.queues.drain(worker_id, actor=who.actor, reason=request.reason)
        return as_json(WorkerShown.model_validate(done))

    @api.get("/queues", response_model=Queues, responses=documented())
    async def queues(who: runs) -> Response:
        """Every queue with what waits, what is to come and what runs; the weightiest first."""
        found = await service.queues.stats()
        return as_json(Queues(queues=[QueueStatsShown.model_validate(one) for one in found]))

    @api.post("/queues", status_code=201, response_model=QueueShown, responses=documented(409, 413, 415))
    async def create_queue(request: NewQueue, who: runs) -> Response:
        """Make a queue. Asked again, it changes nothing."""
        made = await service.queues.create(actor=who.actor, **dict(request))
        return as_json(QueueShown.model_validate(made), 201)

    @api.post("/queues/{name}/pause", response_model=QueueShown, responses=refusals)
    async def pause_queue(name: Name, request: Why, who: runs) -> Response:
        """Start nothing from it until it is resumed; what runs goes on, new jobs wait."""
        done = await service.queues.pause(name, actor=who.actor, reason=request.reason)
        return as_json(QueueShown.model_validate(done))

    @api.post("/queues/{name}/resume", response_model=QueueShown, responses=refusals)
    async def resume_queue(name: Name, request: Why, who: runs) -> Response:
        """Let its jobs start again."""
        done = await service.queues.resume(name, actor=who.actor, reason=request.reason)
        return as_json(QueueShown.model_validate(done))

    @api.post("/queues/{name}/weight", response_model=QueueShown, responses=refusals)
    async def weigh_queue(name: Name, request: NewWeight, who: runs) -> Response:
        """Give it another share of the workers' free slots."""
        done = await service.queues.set_weight(name, request.weight, actor=who.actor, reason=request.reason)
        return as_json(QueueShown.model_validate(done))

    @api.post("/queues/{name}/alerts", response_model=QueueShown, responses=refusals)
    async def set_alerts(name: Name, request: NewAlerts, who: runs) -> Response:
        """Say from how many waiting jobs, and from how long a wait on, somebody is told."""
        wait = None if request.alert_wait is None else timedelta(seconds=request.alert_wait)
        done = await service.queues.set_alerts(
            name, depth=request.alert_depth, wait=wait, actor=who.actor, reason=request.reason
        )
        return as_json(QueueShown.model_validate(done))

    return api
