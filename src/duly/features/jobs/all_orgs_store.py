"""Lists of the jobs of all orgs, for operators; each is served by an index without an org.

Ended and new jobs are found by their events, the last first, as long as the events are retained. Active jobs
are found where they are: in claims, then in the ready queues in their order, then among scheduled jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from duly.core.job import JobSnapshot
from duly.core.states import HELD, Status
from duly.db.pool import Connection
from duly.db.rows import rows
from duly.db.statements import statement
from duly.features.jobs.filter import NEWEST, JobCursor, JobFilter, JobList

Scan = tuple[list[JobCursor], JobCursor | None]
"""The next jobs of a list, and the cursor after which the next scan continues, unless the list ended."""
_MAX_XID = 2**63 - 1
_MAX_SKIP = 2**31 - 1
_NIL = UUID(int=0)
_MIN_TIME = datetime(1, 1, 1, tzinfo=UTC)
_MIN_RANK = -32768


async def scan_all_orgs(conn: Connection, job_filter: JobFilter, after: JobCursor, *, limit: int) -> Scan:
    """Return up to `limit` jobs of the list of a filter."""
    match job_filter.list:
        case JobList.BY_FINGERPRINT:
            values = {"fingerprint": job_filter.fingerprint}
            return await _scan_by_time(conn, "list_by_fingerprint", values, after, limit)
        case JobList.ALL:
            return await _scan_by_commit(conn, "job.queued", after, limit)
        case JobList.ACTIVE:
            return await _scan_active(conn, job_filter, after, limit)
    if job_filter.statuses == (Status.COMPLETED,):
        return await _scan_by_commit(conn, "job.completed", after, limit)
    values = {"event_type": f"job.{job_filter.statuses[0]}"}
    return await _scan_by_time(conn, "list_ended", values, after, limit)


def checked_scan_key(key: str) -> str:
    """Return the scan key of a cursor; raise ValueError if no scan returns such a key."""
    match key.split("|"):
        case [""] | ["h"]:
            valid = True
        case ["r", _, org_id, rank]:
            valid = UUID(org_id) != _NIL and -(2**15) <= int(rank) < 2**15
        case ["s", org_id]:
            valid = UUID(org_id) != _NIL
        case [xid, skip]:
            valid = 0 <= int(xid) <= _MAX_XID and 0 <= int(skip) <= _MAX_SKIP
        case _:
            valid = False
    if not valid:
        raise ValueError(key)
    return key


async def find_org(conn: Connection, job_id: UUID) -> UUID | None:
    """Return the org of a job."""
    found = await _fetch(conn, "find_org", {"job_id": job_id})
    return found[0][0] if found else None


async def read_jobs(conn: Connection, cursors: Sequence[JobCursor]) -> dict[UUID, JobSnapshot]:
    """Return jobs of any org by id."""
    keys = {"org_ids": [job.org_id for job in cursors], "job_ids": [job.job_id for job in cursors]}
    return {
        row["job_id"]: JobSnapshot.model_validate(row) for row in await rows(conn, "jobs_all_orgs/read", keys)
    }


async def _scan_by_time(
    conn: Connection, name: str, values: dict[str, Any], after: JobCursor, limit: int
) -> Scan:
    bounds = {"before_at": after.at, "before_job": after.job_id, "limit": limit}
    found = await _fetch(conn, name, values | bounds)
    jobs = [JobCursor(at, job_id, org_id) for org_id, job_id, at in found]
    return jobs, jobs[-1] if len(jobs) == limit else None


async def _scan_by_commit(conn: Connection, event_type: str, after: JobCursor, limit: int) -> Scan:
    """Scan `limit` events and return the jobs of those of one type."""
    xid, skip = after.scan_key.split("|") if after.scan_key else (str(_MAX_XID), 0)
    values = {"event_type": event_type, "xid": xid, "skip": int(skip), "limit": limit}
    events = Counter({xid: int(skip)})
    """How many events of each transaction were read."""
    jobs: list[JobCursor] = []
    end = after
    for org_id, job_id, commit_xid, is_match in await _fetch(conn, "list_by_commit", values):
        events[commit_xid] += 1
        end = JobCursor(None, job_id, org_id, f"{commit_xid}|{events[commit_xid]}")
        if is_match:
            jobs.append(end)
    return jobs, end if events.total() - int(skip) == limit else None


async def _scan_active(conn: Connection, job_filter: JobFilter, after: JobCursor, limit: int) -> Scan:
    """Scan stage after stage until there are enough jobs."""
    jobs: list[JobCursor] = []
    stages = [key for key, (statuses, _) in _STAGES.items() if statuses.intersection(job_filter.statuses)]
    reached = after.scan_key.partition("|")[0]
    for stage in stages[stages.index(reached) if reached in stages else 0 :]:
        _, scan = _STAGES[stage]
        jobs += await scan(conn, job_filter, after if stage == reached else NEWEST, limit - len(jobs))
        if len(jobs) == limit:
            return jobs, jobs[-1]
    return jobs, None


async def _scan_claims(
    conn: Connection, job_filter: JobFilter, after: JobCursor, limit: int
) -> list[JobCursor]:
    values = {"statuses": list(job_filter.statuses), "before_job": after.job_id, "limit": limit}
    return [JobCursor(None, job, org, "h") for org, job in await _fetch(conn, "list_claimed", values)]


async def _scan_ready(
    conn: Connection, job_filter: JobFilter, after: JobCursor, limit: int
) -> list[JobCursor]:
    lane, org_id, rank = after.scan_key.split("|")[1:] if after.scan_key else ("", str(_NIL), _MIN_RANK)
    values = {
        "queue": job_filter.queue,
        "lane": lane,
        "after_org": UUID(org_id),
        "rank": int(rank),
        "after_job": after.job_id if after.scan_key else _NIL,
        "limit": limit,
    }
    return [
        JobCursor(None, job_id, org_id, f"r|{lane}|{org_id}|{rank}")
        for lane, org_id, rank, job_id in await _fetch(conn, "list_ready", values)
    ]


async def _scan_scheduled(
    conn: Connection, job_filter: JobFilter, after: JobCursor, limit: int
) -> list[JobCursor]:
    at, org_id, job_id = _MIN_TIME, _NIL, _NIL
    if after.scan_key:
        at, org_id, job_id = after.at or _MIN_TIME, UUID(after.scan_key.split("|")[1]), after.job_id
    values = {"after_at": at, "after_org": org_id, "after_job": job_id, "limit": limit}
    return [
        JobCursor(run_at, job_id, org_id, f"s|{org_id}")
        for run_at, org_id, job_id in await _fetch(conn, "list_scheduled", values)
    ]


async def _fetch(conn: Connection, name: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    return await (await conn.execute(statement(f"jobs_all_orgs/{name}"), values)).fetchall()


_StageScan = Callable[[Connection, JobFilter, JobCursor, int], Awaitable[list[JobCursor]]]
_STAGES: dict[str, tuple[frozenset[Status], _StageScan]] = {
    "h": (HELD, _scan_claims),
    "r": (frozenset({Status.QUEUED}), _scan_ready),
    "s": (frozenset({Status.QUEUED}), _scan_scheduled),
}
