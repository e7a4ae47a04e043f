"""Notifications, subscriptions and templates as they are asked for and as they are shown."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from duly.http.params import Shown, Text, Why
from duly.http.shapes import Strict
from duly.http.values import Moment
from duly.notify.notifications import MOST_AT_ONCE
from duly.store.notifications import DeliveryStatus

To = Annotated[
    str,
    Field(
        min_length=3,
        max_length=400,
        description="How, and whom: `email:anna@example.com`, `in_app:<user>`, `webhook:<endpoint>`.",
        examples=["email:anna@example.com"],
    ),
]
LOCALE = "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$"
KEY = r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$"
Locale = Annotated[str, Field(pattern=LOCALE, max_length=12, examples=["de"])]
Key = Annotated[str, Field(pattern=KEY, max_length=100, examples=["job.completed"])]
Outcome = Literal["completed", "failed", "dead", "canceled"]


class NewNotification(Strict):
    """People who are to be told something: all of them, or none."""

    template_key: Key
    payload: dict[str, Any] = Field(default={}, description="What the template may speak of; up to 16 KiB.")
    to: list[To] = Field(min_length=1, max_length=MOST_AT_ONCE)
    locale: Locale = "en"
    scheduled_for: Moment | None = Field(default=None, description="Not before then.")
    bucket: Text | None = Field(
        default=None,
        description="The same payload is told to the same recipient once in a bucket; "
        "without one, once in a day of UTC. Up to 200 bytes.",
    )
    job_id: UUID | None = Field(default=None, description="The job that it is about.")


class OneSent(Shown):
    """Under which id somebody will be told."""

    notification_id: UUID
    to: str
    created: bool = Field(description="False if it was noted before: then it is not told again.")


class Sent(Shown):
    """In the order of the recipients, each once."""

    notifications: list[OneSent]


class NotificationShown(Shown):
    """One notification as it is now."""

    notification_id: UUID
    job_id: UUID | None
    channel: str
    recipient: str
    template_key: str
    locale: str
    payload: dict[str, Any]
    schedule_bucket: str
    subject: str | None = Field(description="As it was told; null until then.")
    body: str | None
    delivery_status: DeliveryStatus
    attempt_count: int
    last_error: str | None
    delivery_job_id: UUID | None = Field(description="The job that delivers it.")
    scheduled_at: datetime
    sent_at: datetime | None
    read_at: datetime | None
    created_by: str
    created_at: datetime


class NotificationsShown(Shown):
    """Some notifications; `after` asks for those that follow, and is null at the end."""

    notifications: list[NotificationShown]
    after: str | None


class Told(Shown):
    """Something that the caller was told; without words if they may no longer see the job it is about."""

    notification_id: UUID
    template_key: str
    job_id: UUID | None
    subject: str | None
    body: str | None = Field(description="Plain text.")
    sent_at: datetime | None
    read_at: datetime | None


class InboxShown(Shown):
    """What the caller was told, the newest first."""

    notifications: list[Told]
    unread: int = Field(description="Counted up to 1000.")
    after: str | None


class Read(Strict):
    """What the caller has read."""

    notification_ids: list[UUID] | None = Field(
        default=None, max_length=1_000, description="Without it, everything."
    )


class ReadNow(Shown):
    """How many of them were new."""

    read: int


class Preview(Strict):
    """A template by its key, or words that nobody has kept yet."""

    template_key: Key | None = None
    subject: str | None = Field(default=None, max_length=1_000)
    body: str | None = Field(default=None, max_length=32 * 1024)
    locale: Locale = "en"
    payload: dict[str, Any] = Field(default={})


class WordsShown(Shown):
    """What a message would say."""

    subject: str
    body: str


class TemplateWords(Why):
    """An org's own words."""

    subject: str = Field(min_length=1, max_length=1_000)
    body: str = Field(max_length=32 * 1024)


class TemplateShown(Shown):
    """An org's own words of one language."""

    template_key: str
    locale: str
    subject: str
    body: str
    updated_by: str
    updated_at: datetime


class TemplatesShown(Shown):
    """Some templates; `after` asks for those that follow, and is null at the end."""

    templates: list[TemplateShown]
    after: str | None


class PreferenceChange(Strict):
    """What a recipient wants to hear from now on."""

    to: To | None = Field(default=None, description="Without it, the caller, in the product.")
    template_key: Key | None = Field(default=None, description="Without it, all that are not named.")
    wanted: bool | None = Field(strict=True, description="Null: whatever they want of all.")


class PreferenceShown(Shown):
    """What a recipient wants of a template; the empty key stands for all that are not named."""

    template_key: str
    wanted: bool
    updated_by: str
    updated_at: datetime


class PreferencesShown(Shown):
    """What a recipient wants; what is not named is wanted."""

    to: str
    preferences: list[PreferenceShown]


class NewSuppression(Why):
    """Somebody to whom nothing is sent any more."""

    to: To


class SuppressionShown(Shown):
    """Somebody to whom nothing is sent, and why."""

    channel: str
    recipient: str
    reason: str
    created_by: str
    created_at: datetime


class SuppressionsShown(Shown):
    """Some of them; `after` asks for those that follow, and is null at the end."""

    suppressions: list[SuppressionShown]
    after: str | None


class NewSubscription(Strict):
    """Of which jobs somebody wants to be told how they end: one, those of a type, or without either all."""

    to: To | None = Field(default=None, description="Without it, the caller, in the product.")
    job_id: UUID | None = None
    job_type: str | None = Field(default=None, min_length=1, max_length=200)
    outcomes: list[Outcome] = Field(
        default=["completed", "failed", "dead", "canceled"],
        min_length=1,
        max_length=4,
        description="`failed` includes `dead`.",
    )
    locale: Locale = "en"


class SubscriptionShown(Shown):
    """Who is told how which jobs end."""

    subscription_id: UUID
    job_id: UUID | None
    job_type: str | None
    outcomes: list[str]
    channel: str
    recipient: str
    locale: str
    created_by: str
    created_at: datetime
    told_at: datetime | None = Field(description="When there was last something to tell.")


class SubscriptionsShown(Shown):
    """Some subscriptions; `after` asks for those that follow, and is null at the end."""

    subscriptions: list[SubscriptionShown]
    after: str | None
