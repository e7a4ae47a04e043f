"""Routes of the queues and workers of the installation, for its operators."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import Field

from duly.core.principal import Scope
from duly.features.overview.models import PlatformOverview
from duly.features.queues.service import MAX_COUNT, MAX_WEIGHT, Queue, QueueStats, WorkerSnapshot
from duly.http.params import NUMERIC, ReasonBody
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import list_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

Name = Annotated[str, Path(min_length=1, max_length=50, examples=["q:default"])]
Weight = Annotated[
    int, Field(ge=1, le=MAX_WEIGHT, description="The share of the workers' free slots."), NUMERIC
]


class NewQueue(ReasonBody):
    """A queue, for workers that serve it."""

    queue: str = Field(min_length=1, max_length=50, examples=["q:reports"])
    weight: Weight = 1


class QueueWeight(ReasonBody):
    """The share of a queue of the workers' free slots."""

    weight: Weight


class QueueAlerts(ReasonBody):
    """The thresholds of a queue's alerts; one that is missing or null is that of the settings."""

    alert_depth: Annotated[int, Field(ge=1, le=MAX_COUNT - 1), NUMERIC] | None = Field(
        default=None, description="Alert above this number of queued jobs."
    )
    alert_wait: float | None = Field(
        default=None, ge=1, le=31_536_000, strict=True, description="Alert above this wait in seconds."
    )


_DESCRIPTIONS = {
    "alert_depth": "Alert above this number of queued jobs; null: as the settings say.",
    "alert_wait": "Alert above this wait in seconds; null: as the settings say.",
}
QueueResponse = response_model(Queue, descriptions=_DESCRIPTIONS)
QueueStatsResponse = response_model(QueueStats, exclude=("oldest_waiting_age",), descriptions=_DESCRIPTIONS)
QueueList = list_model("queues", QueueStatsResponse, "Queues")
WorkerResponse = response_model(
    WorkerSnapshot, "Worker", descriptions={"lease": "The seconds after which a silent worker is lost."}
)
WorkerList = list_model("workers", WorkerResponse, "Workers")
PlatformOverviewResponse = response_model(
    PlatformOverview,
    queues=(list[QueueStatsResponse], "All queues, by weight."),  # type: ignore[valid-type]
)


def routes(service: Service) -> APIRouter:
    """Return the routes of queues and workers. They belong to no org: their audit trail is the system's."""
    api = APIRouter(prefix="/v1/platform", tags=["platform"], route_class=StrictRoute)
    runs = Annotated[Requester, service.allows(Scope.PLATFORM)]
    refusals = problem_responses(404, 413, 415)

    @api.get("/overview", response_model=PlatformOverviewResponse, responses=problem_responses())
    async def overview(requester: runs) -> PlatformOverview:
        """Get the statistics of the installation."""
        return await service.overview.platform()

    @api.get("/workers", response_model=WorkerList, responses=problem_responses())
    async def workers(requester: runs) -> dict[str, object]:
        """List the workers that have not stopped, newest first."""
        return {"workers": await service.queues.workers()}

    @api.post("/workers/{worker_id}/drain", response_model=WorkerResponse, responses=refusals)
    async def drain_worker(worker_id: UUID, request: ReasonBody, requester: runs) -> WorkerSnapshot:
        """Drain a worker, as SIGTERM does: it claims no more jobs, finishes or returns its own, and stops.

        The worker reads the request with its next heartbeat. Idempotent.
        """
        return await service.queues.drain(worker_id, actor=requester.actor, reason=request.reason)

    @api.get("/queues", response_model=QueueList, responses=problem_responses())
    async def queues(requester: runs) -> dict[str, object]:
        """List the queues with their queued, scheduled and running jobs, by weight."""
        return {"queues": await service.queues.stats()}

    @api.post(
        "/queues", status_code=201, response_model=QueueResponse, responses=problem_responses(409, 413, 415)
    )
    async def create_queue(request: NewQueue, requester: runs) -> Queue:
        """Create a queue. Idempotent."""
        return await service.queues.create(actor=requester.actor, **dict(request))

    @api.post("/queues/{name}/pause", response_model=QueueResponse, responses=refusals)
    async def pause_queue(name: Name, request: ReasonBody, requester: runs) -> Queue:
        """Pause a queue: running jobs continue, queued ones wait until it is resumed."""
        return await service.queues.pause(name, actor=requester.actor, reason=request.reason)

    @api.post("/queues/{name}/resume", response_model=QueueResponse, responses=refusals)
    async def resume_queue(name: Name, request: ReasonBody, requester: runs) -> Queue:
        """Resume a queue."""
        return await service.queues.resume(name, actor=requester.actor, reason=request.reason)

    @api.post("/queues/{name}/weight", response_model=QueueResponse, responses=refusals)
    async def weigh_queue(name: Name, request: QueueWeight, requester: runs) -> Queue:
        """Set the weight of a queue."""
        return await service.queues.set_weight(
            name, request.weight, actor=requester.actor, reason=request.reason
        )

    @api.post("/queues/{name}/alerts", response_model=QueueResponse, responses=refusals)
    async def set_alerts(name: Name, request: QueueAlerts, requester: runs) -> Queue:
        """Set the number of queued jobs and the wait above which a queue raises alerts."""
        wait = None if request.alert_wait is None else timedelta(seconds=request.alert_wait)
        return await service.queues.set_alerts(
            name, depth=request.alert_depth, wait=wait, actor=requester.actor, reason=request.reason
        )

    return api
