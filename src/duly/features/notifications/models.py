"""Notifications, preferences and suppressions, and pages of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.features.notifications.recipient import Recipient


class DeliveryStatus(StrEnum):
    """The status of the delivery of a notification."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"
    SUPPRESSED = "suppressed"


@dataclass(frozen=True, slots=True)
class NewNotification:
    """A notification to be added."""

    org_id: UUID
    channel: str
    recipient: str
    template_key: str
    payload: Mapping[str, Any]
    """The values of the template."""
    created_by: str
    locale: str = "en"
    job_id: UUID | None = None
    """The job that it is about."""
    bucket: str | None = None
    """A recipient gets the same payload once per bucket; by default once per day in UTC."""
    scheduled_at: datetime | None = None
    """The earliest delivery; by default now."""


class AddedNotification(NamedTuple):
    """The id of an added notification, and whether it is new."""

    notification_id: UUID
    created: bool


@dataclass(frozen=True, slots=True)
class SentNotification:
    """A notification to one recipient."""

    notification_id: UUID
    recipient: Recipient
    created: bool
    """False if it existed already; it is not delivered again."""

    @property
    def to(self) -> str:
        """The recipient as a text."""
        return str(self.recipient)


class Notification(BaseModel):
    """A notification to one recipient."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    notification_id: UUID
    job_id: UUID | None
    channel: str
    recipient: str
    template_key: str
    locale: str
    payload: dict[str, Any]
    schedule_bucket: str
    subject: str | None
    """As it was sent; None before."""
    body: str | None
    delivery_status: DeliveryStatus
    attempt_count: int
    last_error: str | None
    delivery_job_id: UUID | None
    """The job that delivers it; of a webhook, the id of the delivery."""
    scheduled_at: datetime
    sent_at: datetime | None
    read_at: datetime | None
    created_by: str
    created_at: datetime


class DueNotification(Notification):
    """A pending notification, and the reasons not to send it."""

    suppressed_for: str | None
    """Why the recipient is suppressed."""
    opted_out: bool
    """Whether the recipient has opted out of the template."""
    job_subject_id: str | None = None
    """The subject of the job that it is about."""
    hidden: bool = False
    """Whether its creator may no longer see that job."""

    @property
    def key(self) -> tuple[UUID, UUID]:
        """The key of its row."""
        return self.org_id, self.notification_id

    @property
    def refusal(self) -> str | None:
        """Why it is not sent; None if it is."""
        if self.suppressed_for is not None:
            return f"the recipient is suppressed: {self.suppressed_for}"
        if self.hidden:
            return "its creator may no longer see the job"
        return f"the recipient opted out of {self.template_key}" if self.opted_out else None


class DeliveryUpdate(NamedTuple):
    """The result of a delivery attempt."""

    status: DeliveryStatus
    subject: str | None = None
    body: str | None = None
    error: str | None = None
    attempts: int = 0
    """How many attempts it adds to the count."""


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """A page of notifications; `after` is the cursor of the next page.

    A filter that no index serves scans a bounded number of notifications: a page may be short or empty
    although more pages follow.
    """

    notifications: tuple[Notification, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class Inbox(NotificationPage):
    """A page of the in-app notifications of a user."""

    unread: int
    """The number of unread notifications, counted up to 1000."""


class Preference(BaseModel):
    """Whether a recipient wants a template; the empty key stands for all templates without a preference."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: str
    recipient: str
    template_key: str
    wanted: bool
    updated_by: str
    updated_at: datetime


class Suppression(BaseModel):
    """A recipient that gets no notifications, and why."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: str
    recipient: str
    reason: str
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SuppressionPage:
    """A page of suppressed recipients; `after` is the cursor of the next page."""

    suppressions: tuple[Suppression, ...]
    after: str | None
