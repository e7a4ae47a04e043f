"""Dead letters: looked at, in groups or one by one, and replayed by the many."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from duly.control.replays import no_letter
from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.letter_shapes import (
    DiscardMany,
    Groups,
    GroupShown,
    LetterDetail,
    LetterPage,
    LetterShown,
    ManyDiscarded,
    ManyReplayed,
    ReplayMany,
)
from duly.http.options import EVERY_SUBJECT
from duly.http.params import After, Limit
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import Scope
from duly.store.dead import DeadLetter, DeadLetterDetail

Fingerprint = Annotated[str | None, Query(min_length=1, max_length=500)]
JobType = Annotated[str | None, Query(min_length=1, max_length=200)]


def routes(service: Service) -> APIRouter:
    """The box."""
    api = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]
    operates = Annotated[Caller, service.allows(Scope.OPERATE)]

    @api.get("", response_model=LetterPage, responses=documented())
    async def list_letters(
        who: reads,
        fingerprint: Fingerprint = None,
        job_type: JobType = None,
        resolved: bool = False,
        limit: Limit = 50,
        after: After = None,
    ) -> Response:
        """The letters that are open, or those that were resolved; the newest first."""
        page = await service.dead_letters.list(
            who.org_id,
            fingerprint=fingerprint,
            job_type=job_type,
            resolved=resolved,
            limit=limit,
            after=after,
        )
        open_to_them = await service.seen(who, [_about(letter) for letter in page.letters])
        seen = [letter for letter in page.letters if _about(letter) in open_to_them]
        return as_json(
            LetterPage(letters=[LetterShown.model_validate(one) for one in seen], after=page.after)
        )

    @api.get("/groups", response_model=Groups, responses=documented())
    async def groups(who: reads) -> Response:
        """The open letters by kind of failure, the latest first."""
        await service.check_everything(who)
        found = await service.dead_letters.groups(who.org_id)
        return as_json(Groups(groups=[GroupShown.model_validate(one) for one in found]))

    @api.post("/replay", status_code=202, response_model=ManyReplayed, responses=documented(404, 413, 415))
    async def replay_many(request: ReplayMany, who: operates) -> Response:
        """Do many again, as new jobs that come due one after the other."""
        await service.check_everything(who, "change")
        done = await service.dead_letters.replay_many(who.org_id, actor=who.actor, **dict(request))
        return as_json(ManyReplayed.of(who, done), 202)

    @api.post("/discard", response_model=ManyDiscarded, responses=documented(404, 413, 415))
    async def discard_many(request: DiscardMany, who: operates) -> Response:
        """Take many out of the box: nothing more will be done."""
        await service.check_everything(who, "change")
        done = await service.dead_letters.discard_many(who.org_id, actor=who.actor, **dict(request))
        return as_json(ManyDiscarded(discarded=done))

    @api.get("/{job_id}", response_model=LetterDetail, responses=documented(404))
    async def letter(job_id: UUID, who: operates) -> Response:
        """One letter with its whole error and its job's input."""
        return as_json(LetterDetail.model_validate(await seen_letter(service, who, job_id, "read")))

    return api


async def seen_letter(service: Service, who: Caller, job_id: UUID, action: str) -> DeadLetterDetail:
    """A letter about something that they may see; any other raises as if there were none."""
    letter = await service.dead_letters.get(who.org_id, job_id)
    if not await service.sees(who, _about(letter), action):
        raise no_letter(job_id)
    return letter


def _about(letter: DeadLetter) -> str | None:
    """A letter that has outlived its job may be about anything."""
    return letter.subject_id if letter.kept else EVERY_SUBJECT
