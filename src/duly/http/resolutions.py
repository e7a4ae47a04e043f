"""What operators do about jobs that ended: replay, fix or discard what died, or do any of them again."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from duly.http.answers import accepted, as_json
from duly.http.caller import Caller
from duly.http.letter_shapes import LetterShown
from duly.http.letters import seen_letter
from duly.http.params import Why
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.shapes import Accepted
from duly.http.strict import StrictRoute
from duly.http.verbs import look
from duly.model.access import Scope


class Fix(Why):
    """A payload that the job should have had."""

    payload: dict[str, Any] = Field(description="The arguments of the job type, by name.")


def routes(service: Service) -> APIRouter:
    """Ended jobs never change: what is done again is a new job."""
    api = APIRouter(prefix="/v1/jobs", tags=["dead letters"], route_class=StrictRoute)
    operates = Annotated[Caller, service.allows(Scope.OPERATE)]
    refusals = documented(404, 409, 413, 415)

    @api.post("/{job_id}/replay", status_code=202, response_model=Accepted, responses=refusals)
    async def replay(job_id: UUID, request: Why, who: operates) -> Response:
        """Do a dead job again, as a new one; asked again, the same new one."""
        letter = await seen_letter(service, who, job_id, "change")
        handle = await service.dead_letters.replay(who.org_id, job_id, who.actor, request.reason)
        return accepted(who, handle.job_id, letter.subject_id, replayed=not handle.created)

    @api.post("/{job_id}/fix", status_code=202, response_model=Accepted, responses=refusals)
    async def fix(job_id: UUID, request: Fix, who: operates) -> Response:
        """Do a dead job again, as a new one with another payload."""
        letter = await seen_letter(service, who, job_id, "change")
        handle = await service.dead_letters.fix(
            who.org_id, job_id, request.payload, who.actor, request.reason
        )
        return accepted(who, handle.job_id, letter.subject_id, replayed=not handle.created)

    @api.post("/{job_id}/discard", response_model=LetterShown, responses=refusals)
    async def discard(job_id: UUID, request: Why, who: operates) -> Response:
        """Take the letter out of the box: nothing more will be done. Asked again, it changes nothing."""
        await seen_letter(service, who, job_id, "change")
        await service.dead_letters.discard(who.org_id, job_id, who.actor, request.reason)
        return as_json(LetterShown.model_validate(await service.dead_letters.get(who.org_id, job_id)))

    @api.post("/{job_id}/rerun", status_code=202, response_model=Accepted, responses=refusals)
    async def rerun(job_id: UUID, request: Why, who: operates) -> Response:
        """Do any ended job again, as a new one; as long as that is active, asking again finds it."""
        job = (await look(service, who, job_id, action="change")).job
        handle = await service.dead_letters.rerun(who.org_id, job_id, who.actor, request.reason)
        return accepted(who, handle.job_id, job.subject_id, replayed=not handle.created)

    return api
