"""The route of the log lines of a job."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from duly.core.principal import Scope
from duly.features.job_logs.service import JobLogLine, LogPage
from duly.features.jobs.responses import visible_job
from duly.http.params import MAX_INT32, After, PageSize
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

Attempt = Annotated[int | None, Query(ge=1, le=MAX_INT32, description="Only of this attempt.")]
LogLineResponse = response_model(
    JobLogLine,
    descriptions={
        "line_seq": "The number of the line within the attempt.",
        "level": "`debug`, `info`, `warning`, `error` or `critical`.",
        "fields": "Without credentials and personal data.",
    },
)
LogPageResponse = page_model("lines", LogLineResponse, "LogPage")


def routes(service: Service) -> APIRouter:
    """Return the route of log lines."""
    api = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]

    @api.get("/{job_id}/logs", response_model=LogPageResponse, responses=problem_responses(404))
    async def logs(
        job_id: UUID,
        requester: reads,
        attempt: Attempt = None,
        after: After = None,
        limit: PageSize = 100,
    ) -> LogPage:
        """List the lines that the handler logged: the first 200 and the last 50 of each attempt.

        An empty page means that no more lines exist yet; `after` still works later.
        """
        await visible_job(service, requester, job_id)
        return await service.jobs.logs(requester.org_id, job_id, attempt=attempt, after=after, limit=limit)

    return api
