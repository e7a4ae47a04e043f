"""Routes of events: those of a job, and the feed of the org."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from duly.core.job import JobEvent
from duly.core.principal import Scope
from duly.features.events.models import FeedEvent
from duly.features.events.reader import FEED_PAGE_SIZE, FeedReader, JobEventReader
from duly.features.jobs.models import EVENT_FIELDS, EventPage, event_response
from duly.features.jobs.responses import visible_job
from duly.http import params, sse
from duly.http.params import MAX_INT32, PageSize
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response, list_model, preferred_wait, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

_RESUME = "The same as `after`, as browsers send it."
After = Annotated[int, Query(ge=0, le=MAX_INT32, description="The number of the last event you have.")]
LastEventId = Annotated[str | None, Header(description=_RESUME)]
Accept = Annotated[str, Header(description=f"`{sse.MEDIA_TYPE}` for a stream.")]

FeedEventResponse = response_model(
    FeedEvent,
    exclude=("org_id", "subject_id", "actor_id", "payload_json"),
    descriptions={"cursor": "The position of the event; `after` it, the next ones follow."},
    **EVENT_FIELDS,
)
FeedResponse = list_model(
    "events",
    FeedEventResponse,
    "FeedPage",
    after=(str, "The cursor of the next page, now or later."),
    more=(bool, "Whether to ask again at once: a page may be empty although more events follow."),
)


def feed_event_response(event: JobEvent) -> Any:
    """Return the response of an event of the feed, without validating it again."""
    return FeedEventResponse.model_construct(**dict(event), payload=event.payload_json)


def routes(service: Service) -> APIRouter:
    """Return the routes of events."""
    api = APIRouter(prefix="/v1", route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]

    @api.get(
        "/jobs/{job_id}/events",
        tags=["jobs"],
        response_model=EventPage,
        responses={**problem_responses(404), 200: sse.stream_documentation("The events in order.")},
    )
    async def events(
        job_id: UUID,
        requester: reads,
        after: After = 0,
        last_event_id: LastEventId = None,
        accept: Accept = "",
    ) -> Response:
        """List the events of a job in order, or stream them until the job has ended."""
        found = await visible_job(service, requester, job_id)
        start = sse.resume_after(after, last_event_id)
        reader = JobEventReader(service, requester, found.job, start, event_response)
        if sse.MEDIA_TYPE in accept:
            return await reader.stream()
        page = [event_response(event) for event in await reader.next()]
        return json_response(EventPage.model_construct(events=page, after=reader.after))

    @api.get(
        "/feed",
        tags=["feed"],
        response_model=FeedResponse,
        responses={**problem_responses(410), 200: sse.stream_documentation("The events in commit order.")},
    )
    async def feed(
        requester: reads,
        limit: PageSize = FEED_PAGE_SIZE,
        after: params.After = None,
        last_event_id: Annotated[str | None, Header(max_length=4000, description=_RESUME)] = None,
        accept: Accept = "",
        prefer: Annotated[
            str | None, Header(description="`wait=N`: respond when there are events, or after N seconds.")
        ] = None,
    ) -> Response:
        """List all events of the org after a cursor; without one, from the oldest that is retained.

        Each event comes at least once and none is skipped. A stream if `text/event-stream` is accepted.
        """
        reader = FeedReader(service, requester, last_event_id or after)
        if sse.MEDIA_TYPE in accept:
            return await reader.stream(feed_event_response)
        wait = preferred_wait(prefer, service.options.wait_max)
        page = await reader.next(limit, wait)
        body = FeedResponse.model_construct(
            events=[feed_event_response(event) for event in page.events], after=page.after, more=page.more
        )
        return json_response(body, headers={"preference-applied": f"wait={wait:g}"} if wait else None)

    return api
