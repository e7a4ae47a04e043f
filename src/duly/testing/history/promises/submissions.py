"""What clients were told, against the jobs there are."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from itertools import pairwise
from uuid import UUID

from duly.testing.history.book import Book, Findings, Row, promise

Named = tuple[UUID, str]
"""Org and idempotency key."""


@promise
def i1(book: Book, found: Findings) -> None:
    """Every acknowledged job exists, every job was asked for, an unknown answer means one job at most.

    Jobs that clients did not ask for (ticks of schedules, replays, children) are not looked at, nor are orgs
    of which the clients' log does not speak.
    """
    told: set[tuple[UUID, UUID]] = set()
    unknown: set[Named] = set()
    for asked in book.history.submissions:
        found.facts += 1
        if asked.answer == "unknown":
            unknown.add((asked.org_id, asked.idempotency_key))
        if asked.answer != "ok":
            continue
        if asked.job_id is None or book.story((asked.org_id, asked.job_id)).job is None:
            found.report(
                f"client {asked.client} was told of a job that does not exist",
                (asked.org_id, asked.job_id) if asked.job_id else None,
                idempotency_key=asked.idempotency_key,
            )
        else:
            told.add((asked.org_id, asked.job_id))
    _jobs_were_asked_for(book, found, told, unknown)


def _jobs_were_asked_for(
    book: Book, found: Findings, told: set[tuple[UUID, UUID]], unknown: set[Named]
) -> None:
    orgs = {asked.org_id for asked in book.history.submissions}
    of_unknown: dict[Named, list[Row]] = defaultdict(list)
    for story, job in book.jobs:
        if story.key[0] not in orgs or _is_nobodys(job):
            continue
        found.facts += 1
        named = (story.key[0], job["idempotency_key"])
        if named in unknown:
            of_unknown[named].append(job)
        elif story.key not in told:
            found.report("nobody asked for this job", story.key, idempotency_key=named[1])
    for named, jobs in of_unknown.items():
        for before, after in _doubles(jobs):
            found.report(
                "one submission whose answer was lost made two jobs",
                (named[0], after["job_id"]),
                idempotency_key=named[1],
                other=before["job_id"],
            )


def _is_nobodys(job: Row) -> bool:
    return bool(job["replay_of"] or job["parent_id"] or job["idempotency_key"].startswith("schedule:"))


@promise
def i10(book: Book, found: Findings) -> None:
    """The same key of the same org within its time to live is the same job."""
    told: dict[Named, set[UUID]] = defaultdict(set)
    for asked in book.history.submissions:
        if asked.answer == "ok" and asked.job_id is not None and asked.idempotency_key:
            found.facts += 1
            told[asked.org_id, asked.idempotency_key].add(asked.job_id)
    made: dict[Named, list[Row]] = defaultdict(list)
    for story, job in book.jobs:
        found.facts += 1
        made[story.key[0], job["idempotency_key"]].append(job)
    for (org, key), job_ids in told.items():
        # What is no job is the subject of another promise.
        rows = [row for one in job_ids if (row := book.story((org, one)).job) is not None]
        for before, after in _doubles(rows):
            _report(found, org, key, before, after, "clients were told of two jobs for one key")
    for (org, key), rows in made.items():
        for before, after in _doubles(rows):
            _report(found, org, key, before, after, "two jobs have one key")
    _remembers(book, found, told)


def _remembers(book: Book, found: Findings, told: dict[Named, set[UUID]]) -> None:
    """The ledger names the job that was told, for as long as it remembers the key."""
    for row in book.history.ledger:
        job_ids = told.get((row["org_id"], row["idempotency_key"]))
        if job_ids is None:
            continue
        found.facts += 1
        if row["job_id"] not in job_ids:
            found.report(
                "the ledger names another job than the one that was told",
                (row["org_id"], row["job_id"]),
                idempotency_key=row["idempotency_key"],
                told=sorted(map(str, job_ids)),
            )


def _doubles(jobs: list[Row]) -> list[tuple[Row, Row]]:
    """Neighbours in time of which the second came while the key of the first was still known."""
    ordered = sorted(jobs, key=lambda job: (job["created_at"], str(job["job_id"])))
    return [
        (before, after) for before, after in pairwise(ordered) if after["created_at"] < _forgotten_at(before)
    ]


def _forgotten_at(job: Row) -> object:
    return job["created_at"] + timedelta(seconds=float(job["policy"]["ledger_ttl"]))


def _report(found: Findings, org: UUID, key: str, before: Row, after: Row, message: str) -> None:
    found.report(message, (org, after["job_id"]), idempotency_key=key, first=before["job_id"])
