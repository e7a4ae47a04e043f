"""What was asked for, and what was answered: half of the history that promises are checked against."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from duly.client.requests import JobSubmission as Asking
from duly.testing.history import Cancellation, JobSubmission

_MOST_UNKNOWN = 1_000
_US = "demo"


class Said(NamedTuple):
    """One side of a history."""

    submissions: list[JobSubmission]
    cancellations: list[Cancellation]


class Asked:
    """Submissions until their job has ended and was checked; so it holds no more than is at work."""

    def __init__(self) -> None:
        self.open: OrderedDict[UUID, list[JobSubmission]] = OrderedDict()
        """What was told of each job, the oldest first."""
        self._unknown: OrderedDict[str, JobSubmission] = OrderedDict()
        self._canceled: dict[UUID, list[Cancellation]] = defaultdict(list)

    def asking(self, org_id: UUID, wishes: Sequence[Asking]) -> None:
        """Before the answer: should it be lost, it is not known whether there is a job."""
        for one in wishes:
            key = one["idempotency_key"]
            self._unknown[key] = JobSubmission(_US, org_id, key, one["job_type"], "unknown")
        while len(self._unknown) > _MOST_UNKNOWN:
            self._unknown.popitem(last=False)

    def told(self, org_id: UUID, wishes: Sequence[Asking], job_ids: Sequence[UUID]) -> None:
        """The answer."""
        for one, job_id in zip(wishes, job_ids, strict=True):
            known = self._unknown.pop(one["idempotency_key"], None)
            if known is not None:
                self.open.setdefault(job_id, []).append(replace(known, answer="ok", job_id=job_id))

    def canceled(self, org_id: UUID, job_id: UUID, status: str) -> None:
        """Somebody asked for the end, and was told this."""
        self._canceled[job_id].append(Cancellation(_US, org_id, job_id, "ok", str(status)))

    def of(self, job_ids: Collection[UUID], keys: Collection[str]) -> Said:
        """What was asked about these jobs. What was told of them stays until `forget`."""
        told = [one for job_id in job_ids for one in self.open.get(job_id, ())]
        unsure = [one for key, one in self._unknown.items() if key in keys]
        canceled = [one for job_id in job_ids for one in self._canceled.get(job_id, ())]
        return Said([*told, *unsure], canceled)

    def forget(self, job_ids: Iterable[UUID]) -> None:
        """These have ended, and were checked."""
        for job_id in job_ids:
            self.open.pop(job_id, None)
            self._canceled.pop(job_id, None)
