"""Job types: what can be asked for by its name, and what its payload has to look like."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, Self

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from duly.client.job import Job
from duly.client.registry import Registry
from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.params import Shown
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import Scope
from duly.model.errors import UnknownJobType
from duly.model.policy import Category

_OWN = "duly."


class JobTypeShown(Shown):
    """A job type and the policy that its jobs have, unless a request says otherwise."""

    job_type: str
    category: Category
    queue: str
    max_attempts: int
    timeout: timedelta = Field(description="The seconds that one attempt may take.")
    schedulable: bool = Field(description="Whether it may be delayed or put on a schedule.")
    payload_schema: dict[str, Any] = Field(description="The JSON Schema of its payload.")

    @classmethod
    def of(cls, job: Job[..., Any]) -> Self:
        """As it is shown."""
        return cls(
            job_type=job.name,
            category=job.policy.category,
            queue=job.policy.queue,
            max_attempts=job.policy.retry.max_attempts,
            timeout=job.policy.timeout,
            schedulable=job.policy.schedulable,
            payload_schema=job.codec.schema(),
        )


class JobTypes(Shown):
    """Every job type by its name."""

    job_types: list[JobTypeShown]


def routes(service: Service) -> APIRouter:
    """What this installation can do."""
    api = APIRouter(prefix="/v1/job-types", tags=["jobs"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]

    @api.get("", response_model=JobTypes, responses=documented())
    async def job_types(who: reads) -> Response:
        """The job types that can be asked for, by their names."""
        found = sorted(offered(service.app.registry), key=lambda job: job.name)
        return as_json(JobTypes(job_types=[JobTypeShown.of(job) for job in found]))

    return api


def offered(registry: Registry) -> Iterator[Job[..., Any]]:
    """The job types of the application: Duly's own maintenance is nobody else's to ask for."""
    return (job for job in registry if not job.name.startswith(_OWN))


def check_offered(job_type: str) -> None:
    """Raise as for an unknown job type if it is Duly's own."""
    if job_type.startswith(_OWN):
        raise UnknownJobType(
            f"{job_type!r} is not declared", field="job_type", fix="see the list of job types"
        )
