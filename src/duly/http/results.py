"""Results: found for good under their permalink, partial while the job runs, final when it is done."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.control.results import Result, Snapshot
from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.params import NUMBER_MAX
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.shapes import ROOM
from duly.http.strict import StrictRoute
from duly.model.access import Scope
from duly.model.errors import UnknownResult
from duly.model.job import JobSnapshot
from duly.model.states import Outcome, Status

Seq = Annotated[int | None, Query(ge=1, le=NUMBER_MAX, description="One of them; else the latest.")]


class SnapshotShown(BaseModel):
    """One partial result, or the final one."""

    seq: int
    kind: str = Field(description="`partial` or `final`.")
    chunk_key: str | None
    created_at: datetime
    value: Any
    large: bool = Field(description="Whether the value was left out of the list; ask for it by its number.")

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """As it is shown."""
        return cls(**{name: getattr(snapshot, name) for name in cls.model_fields})


class ResultShown(BaseModel):
    """What is kept under a permalink."""

    result_id: UUID
    job_id: UUID
    job_type: str
    subject_id: str | None
    status: Status
    outcome: Outcome
    snapshot: SnapshotShown | None = Field(description="Null while there is none.")
    latest_seq: int = Field(description="The number of the latest snapshot; 0 while there is none.")
    expires_at: datetime | None = Field(description="Not dropped before then.")
    status_url: str

    @classmethod
    def of(cls, who: Caller, found: Result, room: str = ROOM) -> Self:
        """As it is shown."""
        job = found.job
        return cls(
            result_id=job.result_id,
            job_id=job.job_id,
            job_type=job.job_type,
            subject_id=job.subject_id,
            status=job.status,
            outcome=job.outcome,
            snapshot=None if found.snapshot is None else SnapshotShown.of(found.snapshot),
            latest_seq=found.latest_seq,
            expires_at=found.expires_at,
            status_url=who.link(f"{room}/jobs/{job.job_id}"),
        )


class SnapshotPage(BaseModel):
    """Some snapshots in their order; `after` asks for those that follow."""

    snapshots: list[SnapshotShown]
    after: int


def routes(service: Service) -> APIRouter:
    """Permalinks."""
    api = APIRouter(prefix="/v1/results", tags=["results"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]

    @api.get("/{result_id}", response_model=ResultShown, responses=documented(404))
    async def result(
        result_id: UUID,
        who: reads,
        seq: Seq = None,
    ) -> Response:
        """The latest snapshot, or one by its number; it stays when the job fails or is canceled."""
        return as_json(ResultShown.of(who, await look_up(service, who, result_id, seq)))

    @api.get("/{result_id}/snapshots", response_model=SnapshotPage, responses=documented(404))
    async def snapshots(
        result_id: UUID,
        who: reads,
        after: Annotated[
            int, Query(ge=0, le=NUMBER_MAX, description="The number of the last one you know.")
        ] = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
    ) -> Response:
        """The snapshots in their order, partial ones first."""
        await _check(service, who, await service.results.job(who.org_id, result_id))
        found = await service.results.list(who.org_id, result_id, after=after, limit=limit)
        return as_json(
            SnapshotPage(
                snapshots=[SnapshotShown.of(one) for one in found], after=found[-1].seq if found else after
            )
        )

    return api


async def look_up(
    service: Service, who: Caller, result_id: UUID, seq: int | None, job_type: str | None = None
) -> Result:
    """The result, if it is the caller's to see, and of the type that the route is about."""
    found = await service.results.get(who.org_id, result_id, seq=seq)
    await _check(service, who, found.job, job_type)
    return found


async def _check(service: Service, who: Caller, job: JobSnapshot, job_type: str | None = None) -> None:
    if job_type not in (None, job.job_type) or not await service.sees(who, job.subject_id):
        raise UnknownResult(
            f"no result {job.result_id} in this org", field="result_id", fix="check the id and the org"
        )
