"""Events of the feed and of the relay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from duly.core.job import JobEvent


class FeedEvent(JobEvent):
    """An event of an org with the identity of its job; after its `cursor`, the feed continues."""

    org_id: UUID
    job_type: str
    project_id: UUID | None
    request_id: str
    correlation_id: str
    trace_id: str | None
    subject_id: str | None
    """The subject of the job; none also if the job is no longer retained."""
    cursor: str


@dataclass(frozen=True, slots=True)
class FeedPage:
    """A page of the feed; `after` is the cursor of the next page, now or later. A feed has no last page.

    A page scans a bounded number of events of all orgs: it may be short or empty although more events follow.
    `more` says whether to read on at once.
    """

    events: tuple[FeedEvent, ...]
    after: str
    more: bool


class RelayedEvent(NamedTuple):
    """An event of an org with an endpoint or a subscription; never of a system job.

    In one batch, events are ordered by job, and those of a job by their number.
    """

    org_id: UUID
    job_id: UUID
    event_seq: int
    event_type: str
    job_type: str
    commit_xid: int
