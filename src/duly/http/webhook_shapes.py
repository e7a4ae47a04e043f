"""Webhooks as they are asked for and as they are shown."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from duly.http.params import Shown, Why
from duly.http.values import NUMERIC, Moment
from duly.store.delivery_log import DeliveryStatus
from duly.webhooks.delivery_log import MOST_RESENT
from duly.webhooks.endpoint_rules import EVENT_TYPES

_DAY = 24 * 60 * 60
Url = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2000,
        description="https, without a user, a password or a fragment; a public host.",
        examples=["https://example.com/hooks/duly"],
    ),
]
EventTypes = Annotated[
    list[Annotated[str, Field(json_schema_extra={"enum": [*EVENT_TYPES]})]],
    Field(
        min_length=1,
        max_length=len(EVENT_TYPES),
        description="A wild card means every kind but `job.progressed`, which is told of only by its name.",
    ),
]
JobTypes = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=200)]],
    Field(max_length=100, description="Only events of jobs of these types; none means all."),
]
Description = Annotated[str, Field(max_length=500)]
Secret = Annotated[
    str,
    Field(
        pattern="^whsec_[A-Za-z0-9+/]{32,86}={0,2}$",
        description="One that the receiver has already: the base64 of 24 to 64 bytes. Else one is made.",
    ),
]


class NewWebhook(Why):
    """An endpoint that is to be told of events from now on."""

    url: Url = Field(repr=False)
    event_types: EventTypes
    job_types: JobTypes = Field(default=[])
    description: Description = ""
    secret: Secret | None = Field(default=None, repr=False)


class WebhookChange(Why):
    """What is to be different; what is left out stays."""

    url: Url | None = Field(default=None, repr=False)
    event_types: EventTypes | None = None
    job_types: JobTypes | None = None
    description: Description | None = None


class SecretRotation(Why):
    """How long the old secret signs beside the new one."""

    overlap_seconds: Annotated[int, Field(ge=0, le=90 * _DAY), NUMERIC] = _DAY
    secret: Secret | None = Field(default=None, repr=False)


class ResendFailed(Why):
    """Which messages to send again: those that have failed for good, the oldest first."""

    since: Moment = Field(description="Those that were written since then.")
    limit: Annotated[int, Field(ge=1, le=MOST_RESENT), NUMERIC] = MOST_RESENT


class WebhookShown(Shown):
    """An endpoint: everything but its secrets."""

    endpoint_id: UUID
    url: str
    description: str
    event_types: list[str]
    job_types: list[str] | None = Field(description="Null means all.")
    created_by: str
    created_at: datetime
    updated_at: datetime
    disabled_at: datetime | None
    disabled_by: str | None
    disable_reason: str | None
    failures: int = Field(description="Tries that failed, one after the other.")
    failing_since: datetime | None
    shut_until: datetime | None = Field(description="Until when nothing is sent, as too much has failed.")
    old_secret_until: datetime | None = Field(description="Until when a secret that was replaced signs, too.")


class WebhookMade(WebhookShown):
    """An endpoint with its new secret, which is shown this once."""

    secret: str


class WebhooksShown(Shown):
    """Some endpoints; `after` asks for those that follow, and is null at the end."""

    endpoints: list[WebhookShown]
    after: str | None


class DeliveryShown(Shown):
    """A message to an endpoint, and what became of it."""

    message_id: str = Field(description="As in `webhook-id`, and in `id` of the message.")
    event_type: str
    job_id: UUID | None = Field(
        validation_alias="about", description="The job it is about; null of a test or a notification."
    )
    event_seq: int
    notification_id: UUID | None
    status: DeliveryStatus
    tries: int = Field(description="Since it was written, or sent again by hand.")
    try_log: list[dict[str, Any]] = Field(description="The last tries, each with its time, answer and error.")
    due_at: datetime = Field(
        description="When it is tried next; of one that has ended, when it last was due."
    )
    created_at: datetime
    ended_at: datetime | None


class DeliveriesShown(Shown):
    """Some messages; `after` asks for those that follow, and is null at the end."""

    deliveries: list[DeliveryShown]
    after: str | None


class ResentShown(Shown):
    """How many messages are sent again, and whether there may be more of them."""

    count: int
    more: bool
