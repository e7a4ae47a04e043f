"""Records of requests and answers: half of the history that the promises are checked against."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from duly.client.requests import JobSubmission
from duly.testing.history import Cancellation, RecordedSubmission

MAX_UNANSWERED = 1_000
_CLIENT = "demo"


class ClientRecord(NamedTuple):
    """The client's part of a history."""

    submissions: list[RecordedSubmission]
    cancellations: list[Cancellation]


class SubmissionLog:
    """Submissions until their job has ended and was checked, so its size is bounded by the active jobs."""

    def __init__(self) -> None:
        self.open: OrderedDict[UUID, list[RecordedSubmission]] = OrderedDict()
        """What was told of each job, the oldest first."""
        self._unanswered: OrderedDict[str, RecordedSubmission] = OrderedDict()
        self._canceled: dict[UUID, list[Cancellation]] = defaultdict(list)

    def record_request(self, org_id: UUID, requests: Sequence[JobSubmission]) -> None:
        """Record a request before its answer: if the answer is lost, it is unknown whether the job exists."""
        for request in requests:
            key = request["idempotency_key"]
            self._unanswered[key] = RecordedSubmission(_CLIENT, org_id, key, request["job_type"], "unknown")
        while len(self._unanswered) > MAX_UNANSWERED:
            self._unanswered.popitem(last=False)

    def record_answer(self, org_id: UUID, requests: Sequence[JobSubmission], job_ids: Sequence[UUID]) -> None:
        """Record the answer to a request."""
        for request, job_id in zip(requests, job_ids, strict=True):
            unanswered = self._unanswered.pop(request["idempotency_key"], None)
            if unanswered is not None:
                self.open.setdefault(job_id, []).append(replace(unanswered, answer="ok", job_id=job_id))

    def record_cancellation(self, org_id: UUID, job_id: UUID, status: str) -> None:
        """Record a cancellation and its answer."""
        self._canceled[job_id].append(Cancellation(_CLIENT, org_id, job_id, "ok", str(status)))

    def of(self, job_ids: Collection[UUID], keys: Collection[str]) -> ClientRecord:
        """Return the records of these jobs; they are kept until `forget`."""
        record_answer = [request for job_id in job_ids for request in self.open.get(job_id, ())]
        unsure = [request for key, request in self._unanswered.items() if key in keys]
        record_cancellation = [request for job_id in job_ids for request in self._canceled.get(job_id, ())]
        return ClientRecord([*record_answer, *unsure], record_cancellation)

    def forget(self, job_ids: Iterable[UUID]) -> None:
        """Drop the records of jobs that have ended and were checked."""
        for job_id in job_ids:
            self.open.pop(job_id, None)
            self._canceled.pop(job_id, None)
