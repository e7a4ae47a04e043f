"""Who works: what each worker does, when it was heard of, and having one drain."""

from __future__ import annotations

from collections import Counter

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import Page, Visit, as_id
from duly.core.principal import Scope
from duly.features.overview.models import WorkerState

_LOST_SHOWN = 50


async def page(visit: Visit) -> Page:
    """The workers that have not said goodbye."""
    found = await visit.service.queues.workers()
    living = [one for one in found if one.state is not WorkerState.LOST]
    lost = [one for one in found if one.state is WorkerState.LOST]
    return visit.page(
        "workers.html",
        title=visit.t("workers.title"),
        workers=sorted(living, key=lambda one: (one.name, one.started_at)),
        lost=sorted(lost, key=lambda one: one.heartbeat_at, reverse=True)[:_LOST_SHOWN],
        slots=sum(one.slots for one in living),
        running=sum(one.running for one in living),
        versions=Counter(one.version for one in living),
    )


async def drain(visit: Visit, form: Form) -> Response:
    """Have one finish what it holds, and end."""
    asked = await visit.service.queues.drain(
        as_id(visit.params["worker_id"]), actor=visit.actor, reason=form.reason
    )
    return visit.done("workers.drain.requested", to="/workers", name=asked.name)


ROUTES = (
    Show("/workers", page, Scope.PLATFORM, nav="workers.title"),
    Act("/workers/{worker_id}/drain", drain, Scope.PLATFORM, page=page),
)
