"""Promises about enqueueing: the answers to clients against the stored jobs."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from itertools import pairwise
from uuid import UUID

from duly.testing.history.checker import HistoryIndex, PromiseFindings, Row, promise

OrgKey = tuple[UUID, str]
"""Org and idempotency key."""


@promise
def i1(index: HistoryIndex, findings: PromiseFindings) -> None:
    """Every acknowledged job exists, every job was submitted, an unknown answer means at most one job.

    Jobs that no client submits (ticks of schedules, replays, children) are not checked, nor are orgs without
    submissions.
    """
    acknowledged: set[tuple[UUID, UUID]] = set()
    unknown: set[OrgKey] = set()
    for submission in index.history.submissions:
        findings.facts += 1
        if submission.answer == "unknown":
            unknown.add((submission.org_id, submission.idempotency_key))
        if submission.answer != "ok":
            continue
        if submission.job_id is None or index.job((submission.org_id, submission.job_id)).row is None:
            findings.report(
                f"client {submission.client} got the id of a job that does not exist",
                (submission.org_id, submission.job_id) if submission.job_id else None,
                idempotency_key=submission.idempotency_key,
            )
        else:
            acknowledged.add((submission.org_id, submission.job_id))
    _check_submitted(index, findings, acknowledged, unknown)


def _check_submitted(
    index: HistoryIndex, findings: PromiseFindings, acknowledged: set[tuple[UUID, UUID]], unknown: set[OrgKey]
) -> None:
    orgs = {submission.org_id for submission in index.history.submissions}
    by_unknown_key: dict[OrgKey, list[Row]] = defaultdict(list)
    for job, row in index.stored_jobs:
        if job.key[0] not in orgs or _is_not_submitted(row):
            continue
        findings.facts += 1
        org_key = (job.key[0], row["idempotency_key"])
        if org_key in unknown:
            by_unknown_key[org_key].append(row)
        elif job.key not in acknowledged:
            findings.report("no client submitted this job", job.key, idempotency_key=org_key[1])
    for org_key, jobs in by_unknown_key.items():
        for before, after in _duplicates(jobs):
            findings.report(
                "one submission with a lost answer created two jobs",
                (org_key[0], after["job_id"]),
                idempotency_key=org_key[1],
                other=before["job_id"],
            )


def _is_not_submitted(row: Row) -> bool:
    return bool(row["replay_of"] or row["parent_id"] or row["idempotency_key"].startswith("schedule:"))


@promise
def i10(index: HistoryIndex, findings: PromiseFindings) -> None:
    """The same idempotency key of the same org within its time to live is the same job."""
    acknowledged: dict[OrgKey, set[UUID]] = defaultdict(set)
    for submission in index.history.submissions:
        if submission.answer == "ok" and submission.job_id is not None and submission.idempotency_key:
            findings.facts += 1
            acknowledged[submission.org_id, submission.idempotency_key].add(submission.job_id)
    stored: dict[OrgKey, list[Row]] = defaultdict(list)
    for job, row in index.stored_jobs:
        findings.facts += 1
        stored[job.key[0], row["idempotency_key"]].append(row)
    for (org, key), job_ids in acknowledged.items():
        # I1 reports ids that are no jobs.
        rows = [job.row for job_id in job_ids if (job := index.job((org, job_id))).row is not None]
        for before, after in _duplicates(rows):
            _report(findings, org, key, before, after, "clients got two jobs for one key")
    for (org, key), rows in stored.items():
        for before, after in _duplicates(rows):
            _report(findings, org, key, before, after, "two jobs have one key")
    _check_ledger(index, findings, acknowledged)


def _check_ledger(
    index: HistoryIndex, findings: PromiseFindings, acknowledged: dict[OrgKey, set[UUID]]
) -> None:
    """Check that the ledger names the acknowledged job of each key it holds."""
    for entry in index.history.ledger:
        job_ids = acknowledged.get((entry["org_id"], entry["idempotency_key"]))
        if job_ids is None:
            continue
        findings.facts += 1
        if entry["job_id"] not in job_ids:
            findings.report(
                "the ledger names another job than the acknowledged one",
                (entry["org_id"], entry["job_id"]),
                idempotency_key=entry["idempotency_key"],
                acknowledged=sorted(map(str, job_ids)),
            )


def _duplicates(jobs: list[Row]) -> list[tuple[Row, Row]]:
    """Return neighbours in time of which the second was created before the key of the first expired."""
    ordered = sorted(jobs, key=lambda row: (row["created_at"], str(row["job_id"])))
    return [
        (before, after)
        for before, after in pairwise(ordered)
        if after["created_at"] < _key_expires_at(before)
    ]


def _key_expires_at(row: Row) -> object:
    return row["created_at"] + timedelta(seconds=float(row["policy"]["ledger_ttl"]))


def _report(findings: PromiseFindings, org: UUID, key: str, before: Row, after: Row, message: str) -> None:
    findings.report(message, (org, after["job_id"]), idempotency_key=key, first=before["job_id"])
