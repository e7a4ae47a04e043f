"""Routes of notifications: send, list, preview and resend them; the inbox, preferences and suppressions."""

import contextlib
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.core.errors import UnknownJob
from duly.core.principal import Scope
from duly.features.notifications.models import (
    DeliveryStatus,
    Notification,
    NotificationPage,
    Preference,
    SentNotification,
    Suppression,
    SuppressionPage,
)
from duly.features.notifications.recipient import IN_APP, Recipient, in_app_address
from duly.features.notifications.service import MAX_RECIPIENTS_PER_CALL
from duly.features.templates.routes import Body, Key, Locale, Subject
from duly.http.params import After, PageSize, ReasonBody, ReasonParam, StrictModel, Text, Timestamp
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import ResponseModel, list_model, page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute, combine_routers

To = Annotated[
    str,
    Field(
        min_length=3,
        max_length=400,
        description="Channel and recipient: `email:anna@example.com`, `in_app:<user>`, `webhook:<endpoint>`.",
        examples=["email:anna@example.com"],
    ),
]
ToParam = Annotated[str, Query(min_length=3, max_length=400, examples=["email:anna@example.com"])]


class NotificationRequest(StrictModel):
    """A notification to some recipients: all of them, or none."""

    template_key: Key
    payload: dict[str, Any] = Field(default={}, description="The values of the template; up to 16 KiB.")
    to: list[To] = Field(min_length=1, max_length=MAX_RECIPIENTS_PER_CALL)
    locale: Locale = "en"
    scheduled_for: Timestamp | None = Field(default=None, description="The earliest delivery.")
    bucket: Text | None = Field(
        default=None,
        description="A recipient gets the same payload once per bucket; by default once per day in UTC. "
        "Up to 200 bytes.",
    )
    job_id: UUID | None = Field(default=None, description="The job that it is about.")


class MarkReadRequest(StrictModel):
    """The notifications that the requester has read."""

    notification_ids: list[UUID] | None = Field(default=None, max_length=1_000, description="Default: all.")


class PreviewRequest(StrictModel):
    """A template by its key, or a subject and a body that are not stored."""

    template_key: Key | None = None
    subject: Subject | None = None
    body: Body | None = None
    locale: Locale = "en"
    payload: dict[str, Any] = Field(default={})


class PreferenceUpdate(StrictModel):
    """Whether a recipient wants notifications of a template."""

    to: To | None = Field(default=None, description="Default: the requester, in the product.")
    template_key: Key | None = Field(default=None, description="Default: all templates without their own.")
    wanted: bool | None = Field(strict=True, description="Null: as for all templates.")


class NewSuppression(ReasonBody):
    """A recipient that gets no more notifications."""

    to: To


class MarkReadResponse(ResponseModel):
    """How many notifications were unread."""

    read: int


class RenderedMessage(ResponseModel):
    """A rendered template."""

    subject: str
    body: str


_SUBJECT = {"subject": "As it was sent; null before."}
SentResponse = list_model(
    "notifications", response_model(SentNotification, exclude=("recipient",), to=str), "SentNotifications"
)
NotificationResponse = response_model(
    Notification, descriptions={**_SUBJECT, "delivery_job_id": "The job that delivers it."}
)
NotificationPageResponse = page_model("notifications", NotificationResponse)
InboxItem = response_model(
    Notification,
    "InboxItem",
    include=(*("notification_id", "template_key", "job_id", "subject", "body", "sent_at", "read_at"),),
    descriptions={
        "subject": "Null if the requester may no longer see the job.",
        "body": "Plain text; null like the subject.",
    },
)
InboxResponse = page_model("notifications", InboxItem, "Inbox", unread=(int, "Counted up to 1000."))
PreferenceList = list_model(
    "preferences",
    response_model(
        Preference,
        exclude=("channel", "recipient"),
        descriptions={"template_key": "Empty: all templates without a preference of their own."},
    ),
    "Preferences",
    to=str,
)
SuppressionResponse = response_model(Suppression)
SuppressionPageResponse = page_model("suppressions", SuppressionResponse)


def routes(service: Service) -> APIRouter:
    """Return the routes of notifications."""
    return combine_routers(_notification_routes(service), _preference_routes(service))


def _notification_routes(service: Service) -> APIRouter:
    """Return the routes of messages: readers use their own inbox, operators send to others."""
    api = APIRouter(prefix="/v1", tags=["notifications"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    operates = Annotated[Requester, service.allows(Scope.OPERATE)]
    notifications = service.notifications

    @api.get("/inbox", response_model=InboxResponse, responses=problem_responses())
    async def inbox(
        requester: reads,
        unread: Annotated[bool, Query(description="Only unread ones.")] = False,
        limit: PageSize = 50,
        after: After = None,
    ) -> dict[str, object]:
        """List the notifications of the requester, newest first."""
        page = await notifications.inbox(
            requester.org_id, in_app_address(requester.actor), unread=unread, limit=limit, after=after
        )
        items = await _redact_hidden(service, requester, page.notifications)
        return {"notifications": items, "unread": page.unread, "after": page.after}

    @api.post("/inbox/read", response_model=MarkReadResponse, responses=problem_responses(413, 415))
    async def mark_read(request: MarkReadRequest, requester: reads) -> MarkReadResponse:
        """Mark notifications of the requester as read. Idempotent."""
        count = await notifications.mark_read(
            requester.org_id, in_app_address(requester.actor), request.notification_ids
        )
        return MarkReadResponse(read=count)

    @api.get("/notifications", response_model=NotificationPageResponse, responses=problem_responses())
    async def list_notifications(
        requester: operates,
        status: DeliveryStatus | None = None,
        channel: Annotated[str | None, Query(pattern="^[a-z][a-z0-9_]{0,49}$")] = None,
        recipient: Annotated[str | None, Query(min_length=1, max_length=400)] = None,
        job_id: UUID | None = None,
        limit: PageSize = 50,
        after: After = None,
    ) -> NotificationPage:
        """List the notifications of the org, newest first.

        A filter scans a bounded number of notifications: a page may be short or empty although more pages
        follow.
        """
        await service.check_everything(requester)
        return await notifications.list(
            requester.org_id,
            status=status,
            channel=channel,
            recipient=recipient,
            job_id=job_id,
            limit=limit,
            after=after,
        )

    @api.post(
        "/notifications",
        status_code=202,
        response_model=SentResponse,
        responses=problem_responses(404, 413, 415),
    )
    async def send(request: NotificationRequest, requester: operates) -> dict[str, object]:
        """Send a notification, now or at a time. Idempotent: a recipient gets it once."""
        if request.job_id is not None:
            job = (await service.jobs.status(requester.org_id, request.job_id)).job
            await service.check_subject(requester, job)
        sent = await notifications.send(requester.org_id, actor=requester.actor, **dict(request))
        return {"notifications": sent}

    @api.post(
        "/notifications/preview",
        response_model=RenderedMessage,
        responses=problem_responses(404, 413, 415),
    )
    async def preview(request: PreviewRequest, requester: operates) -> RenderedMessage:
        """Render a message. A value that the payload lacks is an error that names it."""
        message = await notifications.preview(requester.org_id, **dict(request))
        return RenderedMessage(subject=message.subject, body=message.body)

    @api.get(
        "/notifications/{notification_id}",
        response_model=NotificationResponse,
        responses=problem_responses(404),
    )
    async def show(notification_id: UUID, requester: operates) -> Notification:
        """Get a notification and the status of its delivery."""
        await service.check_everything(requester)
        return await notifications.show(requester.org_id, notification_id)

    @api.post(
        "/notifications/{notification_id}/resend",
        status_code=202,
        response_model=NotificationResponse,
        responses=problem_responses(404, 409, 413, 415),
    )
    async def resend(notification_id: UUID, request: ReasonBody, requester: operates) -> Notification:
        """Resend a failed or suppressed notification; a pending one stays as it is."""
        await service.check_everything(requester, "change")
        return await notifications.resend(
            requester.org_id, notification_id, actor=requester.actor, reason=request.reason
        )

    return api


def _preference_routes(service: Service) -> APIRouter:
    """Return the routes of preferences and suppressions."""
    api = APIRouter(prefix="/v1", tags=["notifications"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    administers = Annotated[Requester, service.allows(Scope.ADMIN)]
    preferences, suppressions = service.notifications.preferences, service.notifications.suppressions

    @api.get("/notification-preferences", response_model=PreferenceList, responses=problem_responses())
    async def show_preferences(requester: reads, to: ToParam | None = None) -> dict[str, object]:
        """List the preferences of the requester, in the product; operators may name another recipient."""
        recipient = allowed_recipient(requester, to)
        return {"to": str(recipient), "preferences": await preferences.of(requester.org_id, recipient)}

    @api.put(
        "/notification-preferences", response_model=PreferenceList, responses=problem_responses(413, 415)
    )
    async def set_preference(request: PreferenceUpdate, requester: reads) -> dict[str, object]:
        """Set a preference of the requester; operators may name another recipient."""
        recipient = allowed_recipient(requester, request.to)
        changed = await preferences.set(
            requester.org_id,
            recipient,
            wanted=request.wanted,
            template_key=request.template_key or "",
            actor=requester.actor,
        )
        return {"to": str(recipient), "preferences": changed}

    @api.get(
        "/notification-suppressions", response_model=SuppressionPageResponse, responses=problem_responses()
    )
    async def list_suppressions(
        requester: administers, limit: PageSize = 50, after: After = None
    ) -> SuppressionPage:
        """List the suppressed recipients: addresses that bounced, people who left."""
        return await suppressions.list(requester.org_id, limit=limit, after=after)

    @api.post(
        "/notification-suppressions",
        response_model=SuppressionResponse,
        responses=problem_responses(413, 415),
    )
    async def suppress(request: NewSuppression, requester: administers) -> Suppression:
        """Suppress a recipient: nothing is sent to it any more. Idempotent."""
        return await suppressions.add(
            requester.org_id, request.to, actor=requester.actor, reason=request.reason
        )

    @api.delete(
        "/notification-suppressions", status_code=204, response_class=Response, responses=problem_responses()
    )
    async def end_suppression(to: ToParam, reason: ReasonParam, requester: administers) -> None:
        """End the suppression of a recipient. Idempotent."""
        await suppressions.remove(requester.org_id, to, actor=requester.actor, reason=reason)

    return api


def allowed_recipient(requester: Requester, to: str | None) -> Recipient:
    """Return the requester, in the product, or the recipient that an operator names."""
    own = Recipient(IN_APP, in_app_address(requester.actor))
    recipient = own if to is None else Recipient.parse(to)
    if recipient != own:
        # Otherwise every reader of a job could have mail sent to strangers.
        requester.principal.require(Scope.OPERATE)
    return recipient


async def _redact_hidden(
    service: Service, requester: Requester, page: tuple[Notification, ...]
) -> list[BaseModel]:
    """Remove subject and body of notifications about jobs that the requester may no longer see."""
    if not service.rules:
        return [*page]
    subjects: dict[UUID, str | None] = {}
    for job_id in {item.job_id for item in page if item.job_id}:
        with contextlib.suppress(UnknownJob):
            subjects[job_id] = (await service.jobs.status(requester.org_id, job_id)).job.subject_id
    visible = await service.visible_subjects(requester, subjects.values())
    return [
        item
        if item.job_id is None or (item.job_id in subjects and subjects[item.job_id] in visible)
        else item.model_copy(update={"subject": None, "body": None})
        for item in page
    ]
