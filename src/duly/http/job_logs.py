"""What the handler of a job logged, a page at a time."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.params import NUMBER_MAX, After, Limit, Shown
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.http.verbs import look
from duly.model.access import Scope

Attempt = Annotated[int | None, Query(ge=1, le=NUMBER_MAX, description="Only of this attempt.")]


class LogLineShown(Shown):
    """One line, without credentials and personal data."""

    attempt: int
    line_seq: int = Field(description="Its number within the attempt.")
    logged_at: datetime
    level: str = Field(description="`debug`, `info`, `warning`, `error` or `critical`.")
    message: str
    fields: dict[str, Any]


class LogPageShown(Shown):
    """Some lines in their order; `after` asks for those that follow. None are left if a page is empty."""

    lines: list[LogLineShown]
    after: str | None


def routes(service: Service) -> APIRouter:
    """One route."""
    api = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]

    @api.get("/{job_id}/logs", response_model=LogPageShown, responses=documented(404))
    async def logs(
        job_id: UUID, who: reads, attempt: Attempt = None, after: After = None, limit: Limit = 100
    ) -> Response:
        """What its handler logged with `ctx.log`: of each attempt the first 200 lines and the last 50."""
        await look(service, who, job_id)
        page = await service.jobs.logs(who.org_id, job_id, attempt=attempt, after=after, limit=limit)
        return as_json(LogPageShown.model_validate(page))

    return api
