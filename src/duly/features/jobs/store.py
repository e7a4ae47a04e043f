"""Job lists: scan the list that an index serves, match its jobs, count jobs by status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from duly.core.states import HELD, Status
from duly.db.pool import Connection
from duly.db.rows import rows
from duly.db.statements import statement
from duly.features.jobs.all_orgs_store import Scan, scan_all_orgs
from duly.features.jobs.filter import JobCursor, JobFilter
from duly.features.pagination import Count, capped_count


async def scan(conn: Connection, job_filter: JobFilter, after: JobCursor, *, limit: int) -> Scan:
    """Return up to `limit` jobs of the list of a filter, and where the next scan continues."""
    if job_filter.keys is not None:
        named = sorted(job_filter.keys, key=lambda key: key[1], reverse=True)
        return [JobCursor(None, job, org) for org, job in named if job < after.job_id], None
    if job_filter.org_id is None:
        return await scan_all_orgs(conn, job_filter, after, limit=limit)
    values = {**job_filter.list_values(after), "limit": limit}
    cursor = await conn.execute(statement(f"jobs/{job_filter.list}"), values)
    jobs = [JobCursor(at, job_id, job_filter.org_id) for job_id, at in await cursor.fetchall()]
    return jobs, jobs[-1] if len(jobs) == limit else None


async def match(conn: Connection, job_filter: JobFilter, jobs: Sequence[JobCursor]) -> set[UUID]:
    """Return the ids of those jobs that match what their list does not imply."""
    keys = {"org_ids": [job.org_id for job in jobs], "job_ids": [job.job_id for job in jobs]}
    cursor = await conn.execute(statement("jobs/match"), {**job_filter.match_values(), **keys})
    return {row[0] for row in await cursor.fetchall()}


async def count_by_status(conn: Connection, org_id: UUID | None, *, limit: int) -> dict[Status, Count]:
    """Count the jobs of an org, or of all orgs, in each status that an index serves."""
    name = "jobs_all_orgs/count_by_status" if org_id is None else "jobs/count_by_status"
    counts = {status: capped_count(0, limit) for status in HELD}
    for row in await rows(conn, name, {"org_id": org_id, "limit": limit}):
        counts[Status(row["status"])] = capped_count(row["n"], limit)
    return counts


async def read_transaction_time(conn: Connection) -> datetime:
    """Return the time that this transaction writes to its rows."""
    [[now]] = await (await conn.execute(statement("jobs/read_transaction_time"))).fetchall()
    return now  # type: ignore[no-any-return]
