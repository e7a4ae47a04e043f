"""Routes of dead letters: list them, replay, fix or discard one or many; rerun any ended job."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from duly.core.principal import Scope
from duly.features.dead_letters.models import DeadLetter, DeadLetterDetail, DeadLetterGroup, ReplayReport
from duly.features.dead_letters.replay import unknown_letter
from duly.features.jobs.models import Accepted
from duly.features.jobs.responses import accepted, visible_job
from duly.http.options import EVERY_SUBJECT
from duly.http.params import NUMERIC, After, PageSize, ReasonBody, Text
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import ResponseModel, list_model, page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

Fingerprint = Annotated[str | None, Query(min_length=1, max_length=500)]
JobType = Annotated[str | None, Query(min_length=1, max_length=200)]


class DeadLetterSelection(ReasonBody):
    """The open dead letters of a change, oldest first."""

    fingerprint: Text | None = None
    job_type: Text | None = None


class ReplayRequest(DeadLetterSelection):
    """The dead letters to replay, oldest first, and the rate of the new jobs."""

    per_second: float = Field(
        ge=0.001, le=10_000, strict=True, description="How many of the new jobs become due per second."
    )
    limit: Annotated[int, Field(ge=1, le=1000), NUMERIC] = 100


class DiscardRequest(DeadLetterSelection):
    """The dead letters to discard, oldest first."""

    limit: Annotated[int, Field(ge=1, le=1000), NUMERIC] = 100


class FixRequest(ReasonBody):
    """The corrected payload of a job."""

    payload: dict[str, Any] = Field(description="The arguments of the job type, by name.")


_RESOLUTION = (str | None, "`replayed`, `fixed` or `discarded`; null while it is open.")
_DESCRIPTIONS = {"fingerprint": "The same for failures of one kind."}
DeadLetterResponse = response_model(
    DeadLetter, exclude=("org_id", "job_retained"), descriptions=_DESCRIPTIONS, resolution=_RESOLUTION
)
DeadLetterDetailResponse = response_model(
    DeadLetterDetail, exclude=("org_id", "job_retained"), descriptions=_DESCRIPTIONS, resolution=_RESOLUTION
)
DeadLetterPage = page_model("letters", DeadLetterResponse, "DeadLetterPage")
DeadLetterGroupList = list_model(
    "groups", response_model(DeadLetterGroup, exclude=("org_id", "org_name")), "DeadLetterGroups"
)


class ReplacementJob(ResponseModel):
    """The new job of a dead letter."""

    job_id: UUID
    status_url: str


class SkippedDeadLetter(ResponseModel):
    """A dead letter that stays open, and the reason."""

    job_id: UUID
    why: str


class ReplayResponse(ResponseModel):
    """The result of a replay of many dead letters."""

    jobs: list[ReplacementJob] = Field(description="In the order in which they become due.")
    left: list[SkippedDeadLetter]
    last_run_at: datetime | None = Field(description="When the last of the new jobs becomes due.")


class DiscardResponse(ResponseModel):
    """The result of discarding many dead letters."""

    discarded: int = Field(description="The number of discarded dead letters.")


def routes(service: Service) -> APIRouter:
    """Return the routes of dead letters. Ended jobs never change: a replay is a new job."""
    api = APIRouter(prefix="/v1", tags=["dead letters"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    operates = Annotated[Requester, service.allows(Scope.OPERATE)]
    dead_letters = service.dead_letters
    many, one = problem_responses(404, 413, 415), problem_responses(404, 409, 413, 415)

    @api.post("/jobs/{job_id}/replay", status_code=202, response_model=Accepted, responses=one)
    async def replay(job_id: UUID, request: ReasonBody, requester: operates) -> Response:
        """Replay a dead letter as a new job. Idempotent: a repeated request returns the same new job."""
        letter = await visible_dead_letter(service, requester, job_id, "change")
        handle = await dead_letters.replay(requester.org_id, job_id, requester.actor, request.reason)
        return accepted(requester, handle.job_id, letter.subject_id, replayed=not handle.created)

    @api.post("/jobs/{job_id}/fix", status_code=202, response_model=Accepted, responses=one)
    async def fix(job_id: UUID, request: FixRequest, requester: operates) -> Response:
        """Replay a dead letter as a new job with another payload."""
        letter = await visible_dead_letter(service, requester, job_id, "change")
        handle = await dead_letters.fix(
            requester.org_id, job_id, request.payload, requester.actor, request.reason
        )
        return accepted(requester, handle.job_id, letter.subject_id, replayed=not handle.created)

    @api.post("/jobs/{job_id}/discard", response_model=DeadLetterResponse, responses=one)
    async def discard(job_id: UUID, request: ReasonBody, requester: operates) -> DeadLetter:
        """Discard a dead letter; the job is not retried. Idempotent."""
        await visible_dead_letter(service, requester, job_id, "change")
        await dead_letters.discard(requester.org_id, job_id, requester.actor, request.reason)
        return await dead_letters.get(requester.org_id, job_id)

    @api.post("/jobs/{job_id}/rerun", status_code=202, response_model=Accepted, responses=one)
    async def rerun(job_id: UUID, request: ReasonBody, requester: operates) -> Response:
        """Run an ended job again as a new job; while that one is active, a repeated request returns it."""
        job = (await visible_job(service, requester, job_id, action="change")).job
        handle = await dead_letters.rerun(requester.org_id, job_id, requester.actor, request.reason)
        return accepted(requester, handle.job_id, job.subject_id, replayed=not handle.created)

    @api.get("/dead-letters", response_model=DeadLetterPage, responses=problem_responses())
    async def list_letters(
        requester: reads,
        fingerprint: Fingerprint = None,
        job_type: JobType = None,
        resolved: bool = False,
        limit: PageSize = 50,
        after: After = None,
    ) -> dict[str, object]:
        """List the open dead letters of the org, or the resolved ones; newest first."""
        page = await dead_letters.list(
            requester.org_id,
            fingerprint=fingerprint,
            job_type=job_type,
            resolved=resolved,
            limit=limit,
            after=after,
        )
        visible = await service.visible_subjects(requester, [_subject(letter) for letter in page.letters])
        letters = [letter for letter in page.letters if _subject(letter) in visible]
        return {"letters": letters, "after": page.after}

    @api.get("/dead-letters/groups", response_model=DeadLetterGroupList, responses=problem_responses())
    async def groups(requester: reads) -> dict[str, object]:
        """List the open dead letters by kind of failure, latest first."""
        await service.check_everything(requester)
        return {"groups": await dead_letters.groups(requester.org_id)}

    @api.post("/dead-letters/replay", status_code=202, response_model=ReplayResponse, responses=many)
    async def replay_many(request: ReplayRequest, requester: operates) -> ReplayResponse:
        """Replay many dead letters as new jobs that become due at a rate."""
        await service.check_everything(requester, "change")
        report = await dead_letters.replay_many(requester.org_id, actor=requester.actor, **dict(request))
        return _replay_response(requester, report)

    @api.post("/dead-letters/discard", response_model=DiscardResponse, responses=many)
    async def discard_many(request: DiscardRequest, requester: operates) -> DiscardResponse:
        """Discard many dead letters; their jobs are not retried."""
        await service.check_everything(requester, "change")
        count = await dead_letters.discard_many(requester.org_id, actor=requester.actor, **dict(request))
        return DiscardResponse(discarded=count)

    @api.get(
        "/dead-letters/{job_id}", response_model=DeadLetterDetailResponse, responses=problem_responses(404)
    )
    async def letter(job_id: UUID, requester: operates) -> DeadLetterDetail:
        """Get a dead letter with its error and the input of its job."""
        return await visible_dead_letter(service, requester, job_id, "read")

    return api


async def visible_dead_letter(
    service: Service, requester: Requester, job_id: UUID, action: str
) -> DeadLetterDetail:
    """Return a dead letter on whose subject the requester may act; else raise as for an unknown one."""
    letter = await service.dead_letters.get(requester.org_id, job_id)
    if not await service.is_visible(requester, _subject(letter), action):
        raise unknown_letter(job_id)
    return letter


def _subject(letter: DeadLetter) -> str | None:
    """Return the subject; that of a dead letter that outlived its job is unknown, so it may be any."""
    return letter.subject_id if letter.job_retained else EVERY_SUBJECT


def _replay_response(requester: Requester, report: ReplayReport) -> ReplayResponse:
    job_ids = [handle.job_id for handle in report.replayed]
    return ReplayResponse(
        jobs=[
            ReplacementJob(job_id=job_id, status_url=requester.link(f"/v1/jobs/{job_id}"))
            for job_id in job_ids
        ],
        left=[SkippedDeadLetter(job_id=job_id, why=why) for job_id, why in report.left.items()],
        last_run_at=report.last_run_at,
    )
