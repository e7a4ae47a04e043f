"""Notifications of the org: sent, looked at, tried out. And what the caller was told in the product."""

from contextlib import suppress
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.notification_shapes import (
    InboxShown,
    NewNotification,
    NotificationShown,
    NotificationsShown,
    OneSent,
    Preview,
    Read,
    ReadNow,
    Sent,
    Told,
    WordsShown,
)
from duly.http.params import After, Limit, Why
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import Scope
from duly.model.errors import UnknownJob
from duly.notify.recipients import own_address
from duly.store.notifications import DeliveryStatus


def routes(service: Service) -> APIRouter:
    """Everybody reads what they were told; whoever operates tells others."""
    api = APIRouter(prefix="/v1", tags=["notifications"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]
    operates = Annotated[Caller, service.allows(Scope.OPERATE)]
    told = service.notifications

    @api.get("/inbox", response_model=InboxShown, responses=documented())
    async def inbox(
        who: reads,
        unread: Annotated[bool, Query(description="Only what was not read.")] = False,
        limit: Limit = 50,
        after: After = None,
    ) -> Response:
        """What the caller was told, the newest first."""
        page = await told.inbox(who.org_id, own_address(who.actor), unread=unread, limit=limit, after=after)
        shown = InboxShown.model_validate(page)
        await _veil(service, who, shown.notifications)
        return as_json(shown)

    @api.post("/inbox/read", response_model=ReadNow, responses=documented(413, 415))
    async def mark_read(request: Read, who: reads) -> Response:
        """The caller has read it. Asked again, it changes nothing."""
        read = await told.mark_read(who.org_id, own_address(who.actor), request.notification_ids)
        return as_json(ReadNow(read=read))

    @api.get("/notifications", response_model=NotificationsShown, responses=documented())
    async def list_notifications(
        who: operates,
        status: DeliveryStatus | None = None,
        channel: Annotated[str | None, Query(pattern="^[a-z][a-z0-9_]{0,49}$")] = None,
        recipient: Annotated[str | None, Query(min_length=1, max_length=400)] = None,
        job_id: UUID | None = None,
        limit: Limit = 50,
        after: After = None,
    ) -> Response:
        """The notifications of the org, the newest first.

        With a filter so many are looked at and no more: a page may then be short, even empty, although
        others follow.
        """
        await service.check_everything(who)
        page = await told.list(
            who.org_id,
            status=status,
            channel=channel,
            recipient=recipient,
            job_id=job_id,
            limit=limit,
            after=after,
        )
        return as_json(NotificationsShown.model_validate(page))

    @api.post("/notifications", status_code=202, response_model=Sent, responses=documented(404, 413, 415))
    async def send(request: NewNotification, who: operates) -> Response:
        """Have people told, now or not before a time. Asked again, nobody is told twice."""
        if request.job_id is not None:
            await service.check_subject(who, (await service.jobs.glance(who.org_id, request.job_id)).job)
        sent = await told.send(who.org_id, actor=who.actor, **dict(request))
        shown = [
            OneSent(notification_id=one.notification_id, to=str(one.recipient), created=one.created)
            for one in sent
        ]
        return as_json(Sent(notifications=shown), 202)

    @api.post("/notifications/preview", response_model=WordsShown, responses=documented(404, 413, 415))
    async def preview(request: Preview, who: operates) -> Response:
        """What a message would say. A value that the payload does not have is an error that names it."""
        words = await told.preview(who.org_id, **dict(request))
        return as_json(WordsShown(subject=words.subject, body=words.body))

    @api.get("/notifications/{notification_id}", response_model=NotificationShown, responses=documented(404))
    async def show(notification_id: UUID, who: operates) -> Response:
        """One notification, and what became of it."""
        await service.check_everything(who)
        return as_json(NotificationShown.model_validate(await told.show(who.org_id, notification_id)))

    @api.post(
        "/notifications/{notification_id}/resend",
        status_code=202,
        response_model=NotificationShown,
        responses=documented(404, 409, 413, 415),
    )
    async def resend(notification_id: UUID, request: Why, who: operates) -> Response:
        """Have one told again that failed or was suppressed. What is to be told anyway stays as it is."""
        await service.check_everything(who, "change")
        again = await told.resend(who.org_id, notification_id, actor=who.actor, reason=request.reason)
        return as_json(NotificationShown.model_validate(again), 202)

    return api


async def _veil(service: Service, who: Caller, told: list[Told]) -> None:
    """Take the words from what is about jobs that they may no longer see, or that are gone."""
    if not service.rules:
        return
    about: dict[UUID, str | None] = {}
    for job_id in {one.job_id for one in told if one.job_id}:
        with suppress(UnknownJob):
            about[job_id] = (await service.jobs.glance(who.org_id, job_id)).job.subject_id
    open_to_them = await service.seen(who, about.values())
    for one in told:
        if one.job_id and (one.job_id not in about or about[one.job_id] not in open_to_them):
            one.subject = one.body = None
