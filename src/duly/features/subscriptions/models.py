"""The resource of subscriptions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict

OUTCOMES = ("completed", "failed", "dead", "canceled")
"""The outcomes of jobs to subscribe to. A subscription to `failed` includes `dead`."""


class Subscription(BaseModel):
    """A subscription of a recipient to the outcome of one job, of the jobs of a type, or of all jobs."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    subscription_id: UUID
    job_id: UUID | None
    job_type: str | None
    outcomes: tuple[str, ...]
    channel: str
    recipient: str
    locale: str
    created_by: str
    created_at: datetime
    told_at: datetime | None
    """When the recipient was last notified."""


@dataclass(frozen=True, slots=True)
class SubscriptionPage:
    """A page of subscriptions; `after` is the cursor of the next page, None on the last one."""

    subscriptions: tuple[Subscription, ...]
    after: str | None
