"""The page of workers: their load, their heartbeats, and draining one."""

from __future__ import annotations

from collections import Counter

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit, as_id
from duly.core.principal import Scope
from duly.features.queues.models import WorkerState

_MAX_LOST_WORKERS = 50


async def page(visit: Visit) -> ConsolePage:
    """Show the workers that have not stopped, and the last lost ones."""
    workers = await visit.service.queues.workers()
    living = [worker for worker in workers if worker.state is not WorkerState.LOST]
    lost = [worker for worker in workers if worker.state is WorkerState.LOST]
    return visit.page(
        "workers.html",
        title=visit.t("workers.title"),
        workers=sorted(living, key=lambda worker: (worker.name, worker.started_at)),
        lost=sorted(lost, key=lambda worker: worker.heartbeat_at, reverse=True)[:_MAX_LOST_WORKERS],
        slots=sum(worker.slots for worker in living),
        running=sum(worker.running for worker in living),
        versions=Counter(worker.version for worker in living),
    )


async def drain(visit: Visit, form: Form) -> Response:
    """Drain a worker."""
    worker = await visit.service.queues.drain(
        as_id(visit.params["worker_id"]), actor=visit.actor, reason=form.reason
    )
    return visit.done("workers.drain.requested", to="/workers", name=worker.name)


ROUTES = (
    Show("/workers", page, Scope.PLATFORM, nav="workers.title"),
    Act("/workers/{worker_id}/drain", drain, Scope.PLATFORM, page=page),
)
