"""The resources of webhooks: endpoints, deliveries, and the attempts to send them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

DeliveryStatus = Literal["pending", "delivered", "failed"]


class Endpoint(BaseModel):
    """A webhook endpoint without its secrets."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    endpoint_id: UUID
    url: str = Field(repr=False)  # may contain a token
    description: str
    event_types: tuple[str, ...]
    job_types: tuple[str, ...] | None
    """None means all."""
    created_by: str
    created_at: datetime
    updated_at: datetime
    disabled_at: datetime | None
    disabled_by: str | None
    disable_reason: str | None
    failures: int
    """Consecutive failed attempts."""
    failing_since: datetime | None
    shut_until: datetime | None
    """Until when the circuit breaker is open: nothing is sent."""
    old_secret_until: datetime | None
    """Until when a replaced secret signs beside the new one."""

    @property
    def key(self) -> dict[str, Any]:
        """The primary key."""
        return {"org_id": self.org_id, "endpoint_id": self.endpoint_id}


@dataclass(frozen=True, slots=True)
class NewSecret:
    """An endpoint and its new secret, which is returned only once."""

    endpoint: Endpoint
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class EndpointPage:
    """A page of endpoints; `after` is the cursor of the next page, None on the last one."""

    endpoints: tuple[Endpoint, ...]
    after: str | None


class MessageKey(NamedTuple):
    """The key of a message to an endpoint: a job and the number of its event, or an id of its own and 1."""

    job_id: UUID
    event_seq: int

    def message_id(self, *, is_job_event: bool) -> str:
        """Return the `webhook-id`, the same in every attempt: receivers detect duplicates by it."""
        return f"{'evt' if is_job_event else 'msg'}_{self.job_id.hex}_{self.event_seq}"


class Delivery(BaseModel):
    """A message to an endpoint, and its attempts."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    endpoint_id: UUID
    job_id: UUID
    event_seq: int
    event_type: str
    is_job_event: bool
    notification_id: UUID | None
    status: DeliveryStatus
    tries: int
    """Attempts since it was created or resent."""
    try_log: tuple[dict[str, Any], ...]
    """The last attempts, each with its time, response status and error."""
    due_at: datetime
    """When the next attempt is due, or the last one was."""
    created_at: datetime
    ended_at: datetime | None

    @property
    def message_id(self) -> str:
        """The `webhook-id` of its message."""
        return MessageKey(self.job_id, self.event_seq).message_id(is_job_event=self.is_job_event)

    @property
    def event_job_id(self) -> UUID | None:
        """The job of its event; None for a test or a notification."""
        return self.job_id if self.is_job_event else None

    @property
    def cursor(self) -> DeliveryCursor:
        """Its position in the delivery log."""
        return DeliveryCursor(self.created_at, self.job_id, self.event_seq)


class DeliveryCursor(NamedTuple):
    """A position in the delivery log of an endpoint."""

    created_at: datetime
    job_id: UUID
    event_seq: int


NEWEST = DeliveryCursor(datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1), 2**31 - 1)
OLDEST = DeliveryCursor(datetime.min.replace(tzinfo=UTC), UUID(int=0), 0)


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """A page of deliveries; `after` is the cursor of the next page, None on the last one.

    A filter by status or type scans a bounded number of deliveries: a page may be short or empty although
    more pages follow.
    """

    deliveries: tuple[Delivery, ...]
    after: str | None


class DeliveryFilter(NamedTuple):
    """A filter of the delivery log; None matches all."""

    status: DeliveryStatus | None = None
    event_type: str | None = None
    job_id: UUID | None = None


class Backlog(NamedTuple):
    """The pending deliveries of an endpoint, of each job only the next."""

    pending: int
    next_at: datetime | None
    """When the first of them is due."""


@dataclass(frozen=True, slots=True)
class Resent:
    """How many deliveries are resent, and whether there may be more."""

    count: int
    more: bool


class DeliveryKey(NamedTuple):
    """The primary key of a delivery."""

    org_id: UUID
    endpoint_id: UUID
    job_id: UUID
    event_seq: int


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery that this process sends, as long as its lease lasts."""

    key: DeliveryKey
    event_type: str
    data: dict[str, Any] | None
    """The content of a message that is not about an event of a job."""
    attempts: int
    """Attempts before this one."""
    is_probe: bool
    """Whether the circuit breaker is half-open: if this message is delivered, it closes."""
    failing: bool = False
    """Whether the last attempt to this endpoint failed."""

    @property
    def message_id(self) -> str:
        """The `webhook-id` of its message."""
        return MessageKey(self.key.job_id, self.key.event_seq).message_id(is_job_event=self.data is None)


@dataclass(frozen=True, slots=True)
class OutboundMessage:
    """The URL, the signing secrets and the event of a message; no event if it is no longer retained."""

    url: str = field(repr=False)
    secrets: list[str] = field(repr=False)
    event: dict[str, Any] | None


class HttpResult(NamedTuple):
    """The result of one HTTP request."""

    status: int | None
    """The HTTP status; None without a response."""
    error: str | None
    """Why the message was not delivered; None if it was."""
    retry_after: float | None
    """Seconds to wait, if the receiver requested a pause."""
    seconds: float
    counts: bool = True
    """Whether the circuit breaker counts it: not if the endpoint was never contacted."""


class AttemptResult(NamedTuple):
    """The result of an attempt: the delivery ended, or is retried after a while."""

    delivery: ClaimedDelivery
    status: DeliveryStatus
    retry_in: timedelta | None
    log_entry: dict[str, Any]
    """The entry in the `try_log` of the delivery."""
    gone: bool = False
    """Whether the receiver responded with 410 Gone."""
    counts: bool = True
    """Whether the circuit breaker counts it."""


class EndpointHealth(NamedTuple):
    """What attempts changed at an endpoint."""

    org_id: UUID
    endpoint_id: UUID
    gone: bool
    opened: bool
    """Whether its circuit breaker opened just now."""
    must_disable: bool
    """Whether it has failed for too long, or is gone."""
