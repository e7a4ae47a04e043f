"""Which jobs a list shows, and where a page of it begins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from duly.core.freshness import Freshness
from duly.core.states import Outcome, Status

ANY_STATUS = tuple(Status)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DRIFT = 60_000
"""Ids carry the milliseconds of whoever asked for the job: within a minute of those it was created at."""


class Place(NamedTuple):
    """Where a job lies in its list: by its id, or by when it ended."""

    at: datetime | None
    job_id: UUID
    org_id: UUID | None = None
    """Whose it is, in a list of all orgs."""
    spot: str = ""
    """Where such a list goes on, if that takes more; without spaces."""


NEWEST = Place(datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))
_OLDEST_ID = UUID(int=0)
_LAST_MILLISECOND = 2**48 - 1


class Choice(NamedTuple):
    """Which jobs of an org, or of all; what is None does not matter."""

    org_id: UUID | None
    statuses: tuple[Status, ...] = ANY_STATUS
    """All of them, active ones, or one that is ended."""
    outcome: Outcome | None = None
    """If the statuses do not tell it."""
    job_type: str | None = None
    queue: str | None = None
    subject_id: str | None = None
    freshness: Freshness | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    metadata: str | None = None
    """JSON: some names with their values."""
    type_prefix: str | None = None
    """How the name of the job type begins."""
    payload: str | None = None
    """JSON: some paths with their values."""
    error_code: str | None = None
    fingerprint: str | None = None
    """The kind of failure that they died of."""
    open_letter: bool = False
    """Whether they must have a dead letter that nobody resolved."""
    not_own: bool = False
    """Whether those of Duly's own types are left out."""
    keys: tuple[tuple[UUID, UUID], ...] | None = None
    """These alone, as org and job."""

    @property
    def whose(self) -> UUID:
        """The one org."""
        assert self.org_id is not None
        return self.org_id

    @property
    def path(self) -> str:
        """The statement that finds them by an index, in one org; all orgs have others for the same lists."""
        if self.keys is not None:
            return "keys"
        if self.subject_id is not None and self.org_id is not None:
            return "jobs/list_of_subject"
        if self.fingerprint is not None:
            return "jobs/list_of_kind"
        if self.statuses == ANY_STATUS:
            return "jobs/list"
        return "jobs/list_ended" if self.statuses[0].terminal else "jobs/list_active"

    @property
    def by_end(self) -> bool:
        """Whether the list is in the order of their ends, and not of their ids."""
        return self.path in ("jobs/list_ended", "jobs/list_of_kind")

    @property
    def of_the_engine(self) -> bool:
        """Whether only the engine can find them: queues, claims and workers are not a tenant's to read."""
        return self.org_id is None or self.path == "jobs/list_active" or self.freshness is not None

    @property
    def sparse(self) -> bool:
        """Whether what is looked at is not all of it jobs: of all orgs, some are found among all events."""
        by_commit = self.path == "jobs/list" or self.statuses == (Status.COMPLETED,)
        return self.org_id is None and by_commit and self.path != "jobs/list_of_kind"

    @property
    def narrow(self) -> bool:
        """Whether some of the jobs that the index finds may not fit."""
        asked = (
            *(self.outcome, self.job_type, self.type_prefix, self.queue, self.created_after),
            *(self.created_before, self.metadata, self.payload, self.error_code),
        )
        beside = self.subject_id is not None and self.path != "jobs/list_of_subject"
        besides = self.not_own or self._by_letter or beside
        return self._by_status or besides or any(value is not None for value in asked)

    @property
    def _by_status(self) -> bool:
        """Whether the list has jobs of other statuses, too."""
        mixed = self.path in ("keys", "jobs/list_of_subject", "jobs/list_of_kind")
        return mixed and self.statuses != ANY_STATUS

    @property
    def _by_letter(self) -> bool:
        return self.open_letter or (self.fingerprint is not None and self.path != "jobs/list_of_kind")

    def shows(self, status: Status, outcome: Outcome) -> bool:
        """Whether a job that is so is one of them."""
        return status in self.statuses and self.outcome in (None, outcome)

    def values(self) -> dict[str, Any]:
        """What is asked for, for the statements."""
        return {
            **self._asdict(),
            "statuses": list(self.statuses),
            "any_status": not self._by_status,
            "by_state": self._by_status or self.outcome is not None or self.error_code is not None,
            "by_letter": self.open_letter or self.fingerprint is not None,
        }

    def bounds(self, after: Place) -> dict[str, Any]:
        """What follows a place in the list; by their ids neither older nor younger than asked for."""
        latest = None if self.by_end else self.created_before
        return {
            "status": self.statuses[0],
            "first_job": _OLDEST_ID if self.created_after is None else id_at(self.created_after, -_DRIFT),
            "before_job": after.job_id if latest is None else min(after.job_id, id_at(latest, _DRIFT)),
            "before_at": after.at,
        }


def id_at(at: datetime, shift: int = 0) -> UUID:
    """Before all ids of that millisecond, and after those of the one before."""
    milliseconds = (at - _EPOCH) // timedelta(milliseconds=1) + shift
    return UUID(int=min(max(milliseconds, 0), _LAST_MILLISECOND) << 80)
