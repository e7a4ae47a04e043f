"""Find or count the jobs of a filter by bounded scans of their list."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from duly.core.errors import ContractError
from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER
from duly.features.jobs import store as job_lists
from duly.features.jobs.all_orgs_store import checked_scan_key
from duly.features.jobs.filter import NEWEST, JobCursor, JobFilter
from duly.features.pagination import Count, decode_cursor, encode_cursor
from duly.jobs import stale_jobs
from duly.jobs.application import App

_MAX_SCANS = 10
_MATCHED_PER_SCAN = 1_000
_ASSESSED_PER_SCAN = 200
_MIN_EVENTS_PER_SCAN = 300


async def find_jobs(
    app: App, job_filter: JobFilter, start: JobCursor, size: int, *, max_scans: int | None = None
) -> tuple[list[JobCursor], JobCursor | None]:
    """Return up to `size` matching jobs, and the cursor of the next page unless the list ended.

    A filter without an index scans a bounded number of jobs: fewer than `size` may be returned although
    others follow.
    """
    if not job_filter.statuses:
        return [], None
    database = (await app.resources()).database
    limit = size + 1
    if job_filter.freshness:
        limit = _ASSESSED_PER_SCAN
    elif job_filter.needs_match:
        limit = _MATCHED_PER_SCAN
    if job_filter.scans_events:
        limit = max(limit, _MIN_EVENTS_PER_SCAN)
    found: list[JobCursor] = []
    end: JobCursor | None = start
    session = database.engine() if job_filter.needs_engine else database.tenant(job_filter.single_org)
    async with session as conn:
        await conn.execute(PREFER_INDEX_ORDER)
        for _ in range(max_scans or _MAX_SCANS):
            if end is None or len(found) > size:
                break
            jobs, end = await job_lists.scan(conn, job_filter, end, limit=limit)
            found += await _matching(conn, job_filter, jobs)
    page = found[:size]
    return page, page[-1] if len(found) > size else end


async def count_jobs(app: App, job_filter: JobFilter, limit: int) -> Count:
    """Count the jobs of a filter up to a limit, which also bounds the scan."""
    scans = max(limit // _MATCHED_PER_SCAN, 1)
    found, end = await find_jobs(app, job_filter, NEWEST, limit, max_scans=scans)
    return Count(count=len(found), at_least=end is not None)


def decode_start(job_filter: JobFilter, after: str | None, *, check_list: bool = True) -> JobCursor:
    """Return the cursor in a text; with `check_list`, raise if it belongs to another list."""
    decoded = decode_cursor(after, _parse_cursor)
    if decoded is None:
        return NEWEST
    digest, cursor = decoded
    if check_list and digest != job_filter.digest:
        raise ContractError(
            "this cursor belongs to another list", field="after", fix="use the same filters for all pages"
        )
    return cursor


def encode_end(job_filter: JobFilter, end: JobCursor | None) -> str | None:
    """Return the text of the cursor of the next page."""
    if end is None:
        return None
    scan_key = [end.scan_key] if job_filter.org_id is None else []
    at = "" if end.at is None else end.at.isoformat()
    return encode_cursor(job_filter.digest, at, end.job_id, *scan_key)


def _parse_cursor(digest: str, at: str, job_id: str, scan_key: str = "") -> tuple[str, JobCursor]:
    time = datetime.fromisoformat(at).astimezone(UTC) if at else None
    return digest, JobCursor(time, UUID(job_id), scan_key=checked_scan_key(scan_key))


async def _matching(conn: Connection, job_filter: JobFilter, jobs: list[JobCursor]) -> list[JobCursor]:
    """Return the jobs of a scan that match, in their order."""
    if job_filter.needs_match and jobs:
        matching = await job_lists.match(conn, job_filter, jobs)
        jobs = [job for job in jobs if job.job_id in matching]
    if job_filter.freshness and jobs:
        keys = [(job.org_id or job_filter.single_org, job.job_id) for job in jobs]
        evidence = await stale_jobs.read_evidence(conn, keys)
        matching = {one.job_id for one in evidence if one.assess().state is job_filter.freshness}
        jobs = [job for job in jobs if job.job_id in matching]
    return jobs
