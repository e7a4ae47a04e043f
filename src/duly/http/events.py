"""The events of a job, as pages and as streams."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from duly.http import streams
from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.params import NUMBER_MAX
from duly.http.problems import documented
from duly.http.reader import Reader, last_known
from duly.http.service import Service
from duly.http.shapes import EventPage, EventShown
from duly.http.strict import StrictRoute
from duly.http.verbs import look
from duly.model.access import Scope

After = Annotated[int, Query(ge=0, le=NUMBER_MAX, description="The number of the last one you know.")]
LastEventId = Annotated[str | None, Header(description="The same as `after`, as browsers send it.")]
Accept = Annotated[str, Header(description=f"`{streams.MEDIA_TYPE}` for a stream.")]


def routes(service: Service) -> APIRouter:
    """One route, two ways to read."""
    api = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]

    @api.get(
        "/{job_id}/events",
        response_model=EventPage,
        responses={**documented(404), 200: streams.documented_as("Its events in order.")},
    )
    async def events(
        job_id: UUID, who: reads, after: After = 0, last_event_id: LastEventId = None, accept: Accept = ""
    ) -> Response:
        """Its events in order, each once; as a stream, until it has ended, if that is what is accepted."""
        seen = await look(service, who, job_id)
        reader = Reader(service, who, seen.job, last_known(after, last_event_id), EventShown.of)
        if streams.MEDIA_TYPE in accept:
            return await reader.stream()
        found = [EventShown.of(event) for event in await reader.next()]
        return as_json(EventPage(events=found, after=reader.after))

    return api
